/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * ALLOC_MEMIC and DEALLOC_MEMIC: device memory of a kernel's driver. The kernel manages the pages
 * and asks for one range after the other, until the device finds room in one
 * (mlx5_cmd_alloc_memic(), Linux 6.1, drivers/infiniband/hw/mlx5/dm.c).
 */
#include <inttypes.h>

#include "bb_prm_kernel.h"
#include "soft_dm.h"
#include "soft_host.h"
#include "soft_kernel.h"

#define SOFT_SYNDROME 0xbb0c0000u

int
soft_cmd_alloc_memic(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_ALLOC_MEMIC_LOG_ALIGN, 0},
						   {BB_PRM_ALLOC_MEMIC_RANGE_START, 0},
						   {BB_PRM_ALLOC_MEMIC_RANGE_SIZE, 0},
						   {BB_PRM_ALLOC_MEMIC_SIZE, 0}};
	uint64_t start = bb_prm_get64(cmd->in, BB_PRM_ALLOC_MEMIC_RANGE_START), at;
	uint64_t bytes = (uint64_t)cmd->dev->ctl->memic.pages * SOFT_KERNEL_PAGE;
	uint32_t range = bb_prm_get(cmd->in, BB_PRM_ALLOC_MEMIC_RANGE_SIZE);
	uint32_t size = bb_prm_get(cmd->in, BB_PRM_ALLOC_MEMIC_SIZE);
	uint32_t align = bb_prm_get(cmd->in, BB_PRM_ALLOC_MEMIC_LOG_ALIGN);
	struct soft_dm *d;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	at = start - SOFT_DM_BAR;
	if ((start | range) % SOFT_KERNEL_PAGE != 0 || start < SOFT_DM_BAR || range > bytes ||
	    at > bytes - range)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid range of %u bytes at 0x%" PRIx64
				   " (whole pages inside 0x%" PRIx64 " bytes at 0x%" PRIx64 ")",
				   range, start, bytes, SOFT_DM_BAR);
	if (size == 0 || size > range)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid memic_size %u (1 to %u, the bytes of the range)", size,
				   range);
	if (align > SOFT_LOG_DM_ALIGN - 6)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_memic_addr_alignment %u (0 to %u)",
				   align, SOFT_LOG_DM_ALIGN - 6);
	d = soft_dm_take(cmd->ctx, size, (uint32_t)(at / SOFT_KERNEL_PAGE),
			 (uint32_t)((at + range) / SOFT_KERNEL_PAGE));
	/* The kernel tries the next range only after NO_RES. */
	if (d == NULL)
		return SOFT_REFUSE(cmd, NO_RES,
				   "no free pages for %u bytes in the range at 0x%" PRIx64, size,
				   start);
	bb_prm_set64(cmd->out, BB_PRM_ALLOC_MEMIC_OUT_START,
		     SOFT_DM_BAR + (uint64_t)d->page * SOFT_KERNEL_PAGE);
	return 0;
}

int
soft_cmd_dealloc_memic(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DEALLOC_MEMIC_START, 0},
						   {BB_PRM_DEALLOC_MEMIC_SIZE, 0}};
	uint64_t start = bb_prm_get64(cmd->in, BB_PRM_DEALLOC_MEMIC_START);
	uint32_t size = bb_prm_get(cmd->in, BB_PRM_DEALLOC_MEMIC_SIZE);
	struct soft_dm *d;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	d = soft_dm_find(cmd->dev, start, size);
	if (d == NULL || d->ctx != cmd->ctx || size != d->pub.len)
		return SOFT_REFUSE(cmd, BAD_RES,
				   "no allocation of %u bytes of device memory is at 0x%" PRIx64,
				   size, start);
	if (d->mrs != 0)
		return SOFT_REFUSE(cmd, RES_BUSY,
				   "%u keys use the device memory at 0x%" PRIx64
				   ": destroy them first",
				   d->mrs, start);
	soft_dm_give(d);
	return 0;
}
