/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Log lines, resolution of lcore ids, and hints on errors of memory registration. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <rte_lcore.h>
#include <rte_log.h>

#include "bb_dev_priv.h"

RTE_LOG_REGISTER(bb_logtype, bluebell, NOTICE)

void
bb_log(uint32_t level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!rte_log_can_log((uint32_t)bb_logtype, level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	rte_log(level, (uint32_t)bb_logtype, "BLUEBELL: %s\n", line);
}

int
bb_lcore_resolve(uint32_t lcore, uint32_t *resolved)
{
	if (lcore == BB_LCORE_SELF) {
		lcore = rte_lcore_id();
		if (lcore == LCORE_ID_ANY) {
			BB_LOG(ERR, "this thread is not an lcore: call rte_thread_register() in "
				    "it, or name the lcore that will own the queue");
			return -EINVAL;
		}
	}
	if (lcore >= RTE_MAX_LCORE || rte_eal_lcore_role(lcore) == ROLE_OFF) {
		BB_LOG(ERR, "lcore %u is not in use: give it to EAL with -l or --lcores", lcore);
		return -EINVAL;
	}
	*resolved = lcore;
	return 0;
}

const char *
bb_mem_hint(int err, bool dmabuf)
{
	switch (err) {
	case -EFAULT:
		return "; the memory must be mapped, and writable if a right to write is "
		       "requested";
	case -EBADF:
		return dmabuf ? "; the dma-buf's file descriptor is not open" : "";
	case -EINVAL:
		return dmabuf ? "; the file must be a dma-buf that contains the range" : "";
	case -ENOMEM:
		return "; the limit of locked memory is reached (raise it: ulimit -l), or all "
		       "keys of the device are in use (max_mr, max_umem)";
	case -EPERM:
		return "; this user may not lock memory (raise the limit: ulimit -l)";
	case -EIO:
	case -ENODEV:
		return "; the device is gone or in error: close it and open it again";
	default:
		return "";
	}
}
