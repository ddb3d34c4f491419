/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Wrapper of bb_nvmf.h for the I/O engine of fio. It includes no header of DPDK, because these
 * headers and those of fio cannot be included in one source file.
 */
#ifndef FIO_NVMF_H
#define FIO_NVMF_H

#include "bb_nvmf.h"

struct fio_nvmf_attr {
	const char *eal; /* EAL's arguments, separated by spaces */
	const char *device;
	struct bb_nvmf_attr nvmf;
	bool threads; /* jobs are threads of one process, not processes */
};

/* Connection of a job. Fill it with zeros before fio_nvmf_open(). */
struct fio_nvmf {
	struct bb_dev *dev;
	struct bb_nvmf *nvmf;
	struct bb_mr *mr;
	void *mem;
	bool threads;
};

/*
 * Starts EAL if the process has not, and connects. Call it from the thread of the job. Returns 0,
 * or a negative errno and the cause in @why.
 */
int fio_nvmf_open(struct fio_nvmf *f, const struct fio_nvmf_attr *attr, char *why, size_t len);
void fio_nvmf_close(struct fio_nvmf *f);

/* Allocates and registers the memory of the job's data. Call it once. Returns NULL on an error. */
void *fio_nvmf_alloc(struct fio_nvmf *f, size_t len);
void fio_nvmf_free(struct fio_nvmf *f);

#endif
