/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Log lines of send and receive queues; the log type is "bluebell.queue". Not installed. */
#ifndef BB_QUEUE_LOG_H
#define BB_QUEUE_LOG_H

#include <rte_log.h>

#include "bb_sq.h"

extern int bb_queue_logtype;

#define BB_QUEUE_LOG(level, ...) bb_queue_log(RTE_LOG_##level, __VA_ARGS__)
void bb_queue_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Returns the errno of @why. Logs @why once per queue; *@logged records the reasons that were
 * logged. @queue is the start of the log line: "send queue of QP", "receive queue of QP" or "SRQ".
 */
int bb_queue_refuse(const char *queue, uint32_t qpn, uint32_t owner, uint16_t *logged,
		    enum bb_refusal why);

#endif
