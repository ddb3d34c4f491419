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
	[BB_REFUSED_STATE] = {-ENOTCONN, "the QP's state allows no sends: they need RTS"},
	[BB_REFUSED_OWNER] = {-EPERM, "posted by a thread that does not own the queue: post from "
				      "its owner, or hand the queue over first"},
	[BB_REFUSED_MAX_SGE] = {-EINVAL, "more pieces than the queue has room for: create the QP "
					 "with a larger max_sge"},
	[BB_REFUSED_SGE_LEN] = {-EINVAL, "a piece is longer than 2^31 bytes: split it"},
	[BB_REFUSED_MAX_INLINE] = {-EINVAL, "more inline data than the queue's max_inline: create "
					    "the QP with a larger one, or post registered memory"},
	[BB_REFUSED_ATOMIC_LEN] = {-EINVAL, "the local piece of an atomic must be 8 bytes, of a "
					    "masked one 4 or 8"},
	[BB_REFUSED_ATOMIC_ALIGN] = {-EINVAL, "the remote address of an atomic must be a multiple "
					      "of its size"},
	[BB_REFUSED_NO_RQ] = {-EINVAL, "the QP has no receive queue of its own: post to its SRQ, "
				       "or create it with an rq_depth"},
	[BB_REFUSED_LKEY] = {-EFAULT, "no registration of the PD holds a segment of the mbuf: "
				      "register its pool with bb_mem_add_mempool()"},
	[BB_REFUSED_MKEY_PIECES] = {-EINVAL, "more pieces of a memory key than a WQE or the queue "
					     "has room for: at most 52, or 51 blocks of a pattern; "
					     "create the QP with a larger sq_depth or max_inline"},
	[BB_REFUSED_MKEY_BLOCK] = {-EINVAL, "invalid layout of a memory key: a piece has 1 to 2^31 "
					    "bytes, a block of a pattern 1 to 65535 with its gap, "
					    "and a pattern repeats at least once"},
	[BB_REFUSED_OPCODE] =
		{-EINVAL,
		 "the QP's type does not support this operation: RC supports all, UC no READs and "
		 "no atomics, UD only SENDs with an address handle"},
	[BB_REFUSED_FLAGS] =
		{-EINVAL,
		 "a flag is not allowed for the operation: FENCE is for RC, SOLICITED for SENDs "
		 "and writes with immediate, INLINE for SENDs and writes"},
	[BB_REFUSED_AH] = {-EINVAL, "a datagram needs an address handle of the QP's PD"},
	[BB_REFUSED_WQE_SIZE] = {-EINVAL,
				 "the request needs a WQE of 128 bytes: create the QP with "
				 "a max_sge of 3, or an sq_depth of 2, or more"},
	[BB_REFUSED_LACKED] = {-ENOTSUP,
			       "the device does not support this operation: see bb_dev_query()"},
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
