/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Pages that programs map: UAR pages and device memory. With the option mmap they are in one file.
 * drivers/front gives the descriptor of this file to a program as its device node, so mmap() works
 * as on a node of the kernel. Without the option they are memory of this process. Register pages of
 * a guest's users may be in memory of the guest's host instead (soft_host.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_kernel.h"
#include "soft_own.h"

/*
 * libmlx5 maps page i of device memory at the file offset n * page size. Bits 0 to 7 of n are bits
 * 0 to 7 of i. Bits 8 to 15 of n are the command MLX5_IB_MMAP_DEVICE_MEM. The other bits of i are
 * in n from bit 16 on (providers/mlx5/mlx5.h, verbs.c: ibv_alloc_dm()).
 */
#define DM_COMMAND    8u
#define DM_BLOCK      256u /* number of device memory pages that are contiguous in the file */
#define DM_OFFSET(i_) (((uint64_t)((i_) / DM_BLOCK) << 16 | DM_COMMAND << 8) * SOFT_KERNEL_PAGE)
/*
 * In the file, the UAR pages come after all device memory. They are in the order of their numbers,
 * from number 0 on.
 */
#define UAR_OFFSET ((uint64_t)1 << 33)
#define FILE_BYTES (UAR_OFFSET + ((uint64_t)SOFT_UAR_PAGE << SOFT_LOG_MAX_UAR))

int
soft_node_start(struct soft_dev *dev)
{
	int ret;

	dev->ctl->node_fd = -1;
	if (!dev->opts.mmap)
		return 0;
	ret = soft_own_file("bluebell-pages", FILE_BYTES, 0);
	if (ret < 0) {
		SOFT_LOG(ERR, "%s: cannot create the file of its pages (option mmap): %s%s",
			 dev->name, strerror(-ret), soft_own_file_hint(ret));
		return ret;
	}
	dev->ctl->node_fd = ret;
	return 0;
}

void
soft_node_stop(struct soft_dev *dev)
{
	if (dev->ctl->node_fd >= 0)
		close(dev->ctl->node_fd);
	dev->ctl->node_fd = -1;
}

/* Sets the base of @page to zeroed memory. Returns false if there is no memory. */
bool
soft_node_uar(struct soft_dev *dev, struct soft_uar_page *page)
{
	const struct soft_host *host = page->ctx->host;
	const int fd = dev->ctl->node_fd;
	uint8_t *base;

	if (page->shared) {
		base = host->uar_pages + (size_t)(page->id - host->uar_first) * SOFT_UAR_PAGE;
	} else if (fd < 0) {
		base = aligned_alloc(SOFT_UAR_PAGE, SOFT_UAR_PAGE);
	} else {
		base = soft_own_map(dev, SOFT_UAR_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    UAR_OFFSET + (uint64_t)page->id * SOFT_UAR_PAGE);
		if (base == MAP_FAILED)
			base = NULL;
	}
	if (base != NULL)
		memset(base, 0, SOFT_UAR_PAGE);
	page->base = base;
	return base != NULL;
}

void
soft_node_uar_free(struct soft_dev *dev, struct soft_uar_page *page)
{
	if (page->shared)
		return;
	if (dev->ctl->node_fd < 0)
		free(page->base);
	else
		(void)munmap(page->base, SOFT_UAR_PAGE);
}

uint8_t *
soft_node_dm(struct soft_dev *dev, uint32_t pages)
{
	const int fd = dev->ctl->node_fd;
	const size_t len = (size_t)pages * SOFT_KERNEL_PAGE;
	uint8_t *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t i, n;

	if (mem == MAP_FAILED)
		return NULL;
	for (i = 0; fd >= 0 && i < pages; i += n) {
		n = RTE_MIN(pages - i, DM_BLOCK);
		if (mmap(mem + (size_t)i * SOFT_KERNEL_PAGE, (size_t)n * SOFT_KERNEL_PAGE,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)DM_OFFSET(i)) == MAP_FAILED) {
			(void)munmap(mem, len);
			return NULL;
		}
	}
	return mem;
}

/* ---- Functions that drivers/front calls */

int
soft_node_fd(const struct mlx5_ctx *ctx)
{
	return ((const struct soft_ctx *)(const void *)ctx)->dev->ctl->node_fd;
}

uint64_t
soft_uar_offset(const struct mlx5_uar *uar)
{
	return UAR_OFFSET + (uint64_t)uar->page_id * SOFT_UAR_PAGE;
}

uint64_t
soft_uar_start(void)
{
	return UAR_OFFSET;
}

uint32_t
soft_dm_page(const struct mlx5_dm *dm)
{
	return ((const struct soft_dm *)(const void *)dm)->page;
}
