/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * dma-bufs. The software device is a CPU, so it maps a dma-buf with mmap(). The device cannot use a
 * buffer whose exporter has no mmap(), and assumes coherent caches.
 *
 * This file makes the checks of ib_umem_dmabuf_get() and dma_buf_get() of the kernel, in the same
 * order.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_GET_SEALS */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "soft_ctl.h"
#include "soft_kernel.h"
#include "soft_own.h"

#define DMA_BUF_FS_MAGIC 0x444d4142 /* linux/magic.h: DMA_BUF_MAGIC */

/*
 * Returns true if @fd is a memfd that option dmabuf=memfd accepts in place of a dma-buf. Such a
 * memfd is sealed against shrinking but not against writes, as udmabuf requires.
 */
static bool
stand_in(const struct soft_dev *dev, int fd)
{
	int seals = dev->opts.dmabuf_memfd ? fcntl(fd, F_GET_SEALS) : -1;

	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && (seals & F_SEAL_WRITE) == 0;
}

/*
 * Returns the size of dma-buf @fd in bytes, or a negative errno (logged) if @fd is not a dma-buf.
 */
static int64_t
dmabuf_size(const struct soft_dev *dev, const char *what, int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) != 0) {
		int err = errno;

		SOFT_LOG(ERR,
			 "%s: cannot register a dma-buf as %s: %d is not an open file descriptor",
			 dev->name, what, fd);
		return -err;
	}
	if ((uint32_t)fs.f_type == DMA_BUF_FS_MAGIC) {
		int64_t size = lseek(fd, 0, SEEK_END);

		return size >= 0 ? size : -errno;
	}
	if (stand_in(dev, fd) && fstat(fd, &st) == 0)
		return st.st_size;
	SOFT_LOG(ERR, "%s: cannot register a dma-buf as %s: file descriptor %d is not a dma-buf%s",
		 dev->name, what, fd,
		 dev->opts.dmabuf_memfd
			 ? " or a memfd sealed against shrinking but not against writes"
			 : "; to register a sealed memfd instead, open the device with "
			   "dmabuf=memfd");
	return -EINVAL;
}

int
soft_dmabuf_map(const struct soft_dev *dev, const char *what, int fd, uint64_t offset, uint64_t len,
		bool write, struct soft_map *map)
{
	uint64_t skip = offset % soft_kernel_host_page();
	int64_t size;
	void *p;

	if (dev->opts.no_dmabuf) {
		SOFT_LOG(ERR, "%s: cannot register a dma-buf as %s: option no_dmabuf is set",
			 dev->name, what);
		return -EOPNOTSUPP;
	}
	size = dmabuf_size(dev, what, fd);
	if (size < 0)
		return (int)size;
	if (len == 0 || len > (uint64_t)size || offset > (uint64_t)size - len) {
		SOFT_LOG(ERR,
			 "%s: cannot register a dma-buf as %s: the range of %" PRIu64
			 " bytes at offset %" PRIu64 " is empty or ends after the %" PRId64
			 " bytes of the dma-buf",
			 dev->name, what, len, offset, size);
		return -EINVAL;
	}
	p = soft_own_map(dev, skip + len, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			 fd, offset - skip);
	if (p == MAP_FAILED) {
		int err = errno;

		SOFT_LOG(ERR,
			 "%s: cannot register a dma-buf as %s: the CPU cannot map it: %s; a "
			 "software device needs an exporter that supports mmap()",
			 dev->name, what, strerror(err));
		return -err;
	}
	map->start = p;
	map->len = skip + len;
	map->base = map->start + skip;
	return 0;
}

void
soft_dmabuf_unmap(struct soft_map *map)
{
	if (map->start != NULL)
		(void)munmap(map->start, map->len);
	map->start = NULL;
}

int
soft_dmabuf_mr(const struct soft_dev *dev, const struct mlx5_mr_attr *attr, struct soft_map *map)
{
	int ret = soft_kernel_dmabuf_mr(dev->name, attr->access, attr->offset, attr->iova);

	if (ret != 0)
		return ret;
	if (attr->len > UINT64_MAX - attr->iova) {
		SOFT_LOG(ERR, "%s: cannot register a dma-buf as MR: iova + length exceeds 2^64",
			 dev->name);
		return -EINVAL;
	}
	return soft_dmabuf_map(dev, "MR", attr->fd, attr->offset, attr->len,
			       (attr->access & MLX5_ACCESS_LOCAL_WRITE) != 0, map);
}
