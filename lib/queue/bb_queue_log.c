/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdio.h>

#include <rte_lcore.h>

#include "bb_queue_log.h"

RTE_LOG_REGISTER(bb_queue_logtype, bluebell.queue, NOTICE)

static const struct {
	int err;
	const char *text;
} refusals[] = {
	[BB_REFUSED_STATE] =
		{-ENOTCONN,
		 "the QP is neither in RTS nor in ERR, so it accepts no sends: connect it"},
	[BB_REFUSED_OWNER] = {-EPERM, "the calling thread does not own the queue: post from the "
				      "owner, or hand the queue over first"},
	[BB_REFUSED_MAX_SGE] = {-EINVAL, "more SGEs than the queue's max_sge: create the queue "
					 "with a larger max_sge"},
	[BB_REFUSED_SGE_LEN] = {-EINVAL, "an SGE is longer than 2^31 bytes: split the SGE"},
	[BB_REFUSED_MAX_INLINE] = {-EINVAL, "more inline data than the queue's max_inline: "
					    "create the QP with a larger max_inline, or post "
					    "registered memory"},
	[BB_REFUSED_ATOMIC_LEN] = {-EINVAL, "the local SGE of an atomic must have 8 bytes, that "
					    "of a masked atomic 4 or 8"},
	[BB_REFUSED_ATOMIC_ALIGN] = {-EINVAL, "the remote address of an atomic must be a multiple "
					      "of its size"},
	[BB_REFUSED_NO_RQ] = {-EINVAL, "the QP has no receive queue of its own: post to its SRQ, "
				       "or create it with an rq_depth"},
	[BB_REFUSED_LKEY] = {-EFAULT, "no registration of the PD covers a segment of the mbuf: "
				      "register its pool with bb_mem_add_mempool()"},
	[BB_REFUSED_MKEY_PIECES] = {-EINVAL, "too many pieces for a memory key: at most 52, or "
					     "51 blocks of a pattern, and what a WQE of the "
					     "queue can hold; create the QP with a larger "
					     "sq_depth or max_inline"},
	[BB_REFUSED_MKEY_BLOCK] =
		{-EINVAL,
		 "a BIND_MW without a window, or an invalid layout of a memory key: a piece must "
		 "have 1 to 2^31 bytes, a block of a pattern 1 to 65535 including its gap, and the "
		 "repeat count must be at least 1"},
	[BB_REFUSED_OPCODE] =
		{-EINVAL,
		 "the QP's type does not support this operation: RC supports all, UC no READs and "
		 "no atomics, UD only SENDs with an address handle"},
	[BB_REFUSED_FLAGS] =
		{-EINVAL,
		 "a flag is not allowed for the operation: FENCE is for RC, SOLICITED for SENDs "
		 "and writes with immediate, INLINE for SENDs and writes, by a function *_inline() or a "
		 "list"},
	[BB_REFUSED_AH] = {-EINVAL, "the request has no address handle of the QP's PD, which UD "
				    "needs"},
	[BB_REFUSED_WQE_SIZE] = {-EINVAL,
				 "the request needs a WQE of 128 bytes: create the QP with "
				 "max_sge 3 or more, or sq_depth 2 or more"},
	[BB_REFUSED_UNSUPPORTED] =
		{-ENOTSUP, "the device does not support this operation: see bb_dev_query()"},
};

void
bb_queue_log(uint32_t level, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	rte_log(level, (uint32_t)bb_queue_logtype, "bluebell.queue: %s\n", line);
}

int
bb_queue_refuse(const char *queue, uint32_t qpn, uint32_t owner, uint16_t *logged,
		enum bb_refusal why)
{
	if ((*logged >> why & 1) != 0)
		return refusals[why].err;
	*logged |= (uint16_t)(1u << why);
	if (why == BB_REFUSED_OWNER)
		BB_QUEUE_LOG(ERR, "%s 0x%06x: %s (owner lcore %u, caller lcore %d)", queue, qpn,
			     refusals[why].text, owner, (int)rte_lcore_id());
	else
		BB_QUEUE_LOG(ERR, "%s 0x%06x: %s", queue, qpn, refusals[why].text);
	return refusals[why].err;
}

bool
bb_queue_is_owner(uint32_t owner)
{
	return owner == LCORE_ID_ANY || owner == rte_lcore_id();
}
