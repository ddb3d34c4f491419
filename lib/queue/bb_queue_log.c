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
	[BB_REFUSED_STATE] = {-ENOTCONN, "the QP's state takes no posts: sends need RTS, "
					 "receives INIT or later"},
	[BB_REFUSED_OWNER] = {-EPERM, "posted by a thread that does not own the queue: post from "
				      "its owner, or hand the queue over first"},
	[BB_REFUSED_MAX_SGE] = {-EINVAL, "more pieces than the queue has room for: create the QP "
					 "with a larger max_sge"},
	[BB_REFUSED_SGE_LEN] = {-EINVAL, "a piece is longer than 2^31 bytes: split it"},
	[BB_REFUSED_MAX_INLINE] = {-EINVAL, "more inline data than the queue's max_inline: create "
					    "the QP with a larger one, or post registered memory"},
	[BB_REFUSED_ATOMIC_LEN] = {-EINVAL, "the local piece of an atomic must be 8 bytes"},
	[BB_REFUSED_ATOMIC_ALIGN] = {-EINVAL, "the remote address of an atomic must be a multiple "
					      "of 8"},
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
bb_queue_refuse(const char *queue, uint32_t qpn, uint32_t owner, uint8_t *logged,
		enum bb_refusal why)
{
	if ((*logged >> why & 1) != 0)
		return refusals[why].err;
	*logged |= (uint8_t)(1u << why);
	if (why == BB_REFUSED_OWNER)
		BB_QUEUE_LOG(ERR, "%s queue of QP 0x%06x: %s (owner lcore %u, caller lcore %d)",
			     queue, qpn, refusals[why].text, owner, (int)rte_lcore_id());
	else
		BB_QUEUE_LOG(ERR, "%s queue of QP 0x%06x: %s", queue, qpn, refusals[why].text);
	return refusals[why].err;
}

bool
bb_queue_is_owner(uint32_t owner)
{
	return owner == LCORE_ID_ANY || owner == rte_lcore_id();
}
