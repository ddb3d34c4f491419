/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Log lines, limited in number, and the status of a refused command. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "front_priv.h"

#define LOG_NS 1000000000u /* FRONT_LOG_BURST lines at most in this time */

RTE_LOG_REGISTER_SUFFIX(front_logtype, front, INFO);

uint64_t
front_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* All fronts of the process share the counters, and fronts may run in several threads. */
bool
front_may_log(uint32_t level)
{
	static uint64_t start;
	static uint32_t lines, dropped;
	uint64_t now, last = __atomic_load_n(&start, __ATOMIC_RELAXED);
	uint32_t n;

	if (level == RTE_LOG_DEBUG)
		return true;
	now = front_now();
	if (now - last >= LOG_NS &&
	    __atomic_compare_exchange_n(&start, &last, now, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		__atomic_store_n(&lines, 0, __ATOMIC_RELAXED);
		n = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
		if (n != 0)
			rte_log(RTE_LOG_WARNING, (uint32_t)front_logtype,
				"front: %u more log lines in this second were dropped\n", n);
	}
	if (__atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) < FRONT_LOG_BURST)
		return true;
	__atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
	return false;
}

void
front_refuse(struct front_cmd *cmd, enum bb_prm_status status, uint32_t syndrome)
{
	memset(cmd->out, 0, cmd->outlen);
	bb_prm_set(cmd->out, BB_PRM_CMD_STATUS, status);
	bb_prm_set(cmd->out, BB_PRM_CMD_SYNDROME, syndrome);
	FRONT_LOG(ERR, "refused command 0x%x of uid %u: status 0x%x, syndrome 0x%x\n", cmd->op,
		  cmd->user != NULL ? cmd->user->uid : UINT16_MAX, status, syndrome);
}

void
front_refuse_errno(struct front_cmd *cmd, int err, uint32_t syndrome)
{
	front_refuse(cmd,
		     err == -EBUSY    ? BB_PRM_STAT_RES_BUSY
		     : err == -ENOMEM ? BB_PRM_STAT_NO_RES
		     : err == -EIO    ? BB_PRM_STAT_INT_ERR
				      : BB_PRM_STAT_BAD_PARAM,
		     syndrome);
}
