/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Wrapper of bb_blk.h for the I/O engine of fio. It includes no header of DPDK, because these
 * headers and those of fio cannot be included in one source file.
 */
#ifndef FIO_BLK_H
#define FIO_BLK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fio_blk;

struct fio_blk_attr {
	const char *eal; /* EAL's arguments, separated by spaces */
	const char *device;
	const char *addr;
	uint32_t depth;
	bool threads; /* jobs are threads of one process, not processes */
};

enum fio_blk_op {
	FIO_BLK_READ,
	FIO_BLK_WRITE,
	FIO_BLK_WRITE_FUA,
	FIO_BLK_FLUSH,
};

struct fio_blk_done {
	void *user;
	int error; /* 0 or -errno */
};

/*
 * Starts EAL if the process has not, and connects. Call it from the thread of the job. Returns 0,
 * or a negative errno and the cause in @why.
 */
int fio_blk_open(const struct fio_blk_attr *attr, struct fio_blk **f, uint64_t *capacity,
		 uint32_t *depth, char *why, size_t len);
void fio_blk_close(struct fio_blk *f);

/* Allocates and registers the memory of the job's data. Call it once. Returns NULL on an error. */
void *fio_blk_alloc(struct fio_blk *f, size_t len);
void fio_blk_free(struct fio_blk *f);

/* Do the same as bb_blk_submit(), bb_blk_ring(), bb_blk_poll() and bb_blk_broken(). */
int fio_blk_submit(struct fio_blk *f, enum fio_blk_op op, void *mem, uint32_t len, uint64_t offset,
		   void *user);
void fio_blk_ring(struct fio_blk *f);
uint32_t fio_blk_poll(struct fio_blk *f, struct fio_blk_done *done, uint32_t n);
const char *fio_blk_broken(const struct fio_blk *f);

#endif
