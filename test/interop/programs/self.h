/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* An RC queue pair of a kernel device that is connected to itself. */
#ifndef SELF_H
#define SELF_H

#include <bluebell.h>

struct self {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_channel *ch;
	struct bb_cq *cq;
	struct bb_mr *mr;
	struct bb_qp *qp;
};

/*
 * Opens it; the peer may write to @mem. *gid is the index of the chosen GID. Returns 0 or -errno.
 */
int self_open(struct self *s, const char *device, void *mem, size_t len, uint8_t *gid);
/* Closes everything. Returns 0 or -errno. */
int self_close(struct self *s);

#endif
