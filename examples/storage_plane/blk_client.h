/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client of storage_target: connect, submit, poll, disconnect. Small enough to be taken over:
 * blk_client.[ch] and blk_proto.[ch] are all of it; storage_client and the engine for fio use
 * nothing else.
 *
 * A connection is one queue pair to one queue of the target (a port). It belongs to the thread that
 * opened it, an lcore or one of rte_thread_register(): use one for each thread, each on a device of
 * its own, since the calls of a device that make and unmake objects must not overlap. Nothing
 * but open and close waits.
 *
 * Data is the caller's memory, registered by blk_reg(); the target reads and writes it by the key
 * that goes with each command, and nothing else of the process. It must not be touched until its
 * request is done, whatever has become of the connection.
 */
#ifndef BLK_CLIENT_H
#define BLK_CLIENT_H

#include <bluebell.h>

#include "blk_proto.h"

struct blk;

struct blk_attr {
	const char *addr;    /* a queue of the target: "192.0.2.1:18700" */
	uint32_t depth;      /* requests at a time that are wanted; fewer may be granted */
	uint32_t timeout_ms; /* of open and close */
};

/*
 * Connect. @p why gets a sentence when it fails.
 * @return 0; -ECONNREFUSED the target refused, or nobody is there; -EPROTO it is no target;
 *   errors of bb_ep_create(), bb_ep_connect().
 */
int blk_open(struct bb_dev *dev, const struct blk_attr *attr, struct blk **blk, char *why,
	     size_t len);

/* Disconnect and free. Memory is to be unregistered before. */
void blk_close(struct blk *blk);

/* What the target serves, and the depth it has granted. */
const struct blk_shape *blk_shape(const struct blk *blk);

/* Register memory for data; bb_mr_dereg() undoes it. */
int blk_reg(struct blk *blk, void *mem, size_t len, struct bb_mr **mr);

struct blk_request {
	enum blk_op op;
	uint16_t flags;  /* enum blk_flag */
	uint32_t length; /* bytes, and */
	uint64_t offset; /* where: multiples of the block; 0 of a flush */
	void *mem;       /* inside of mr; not of a flush */
	struct bb_mr *mr;
	void *user; /* comes back */
};

/*
 * Begin a request; blk_ring() sends it.
 * @return 1; 0 as many as the depth are under way: poll; -EINVAL it is none of the target's, or
 *   the memory is outside of mr; -ENOTCONN the connection is over.
 */
int blk_submit(struct blk *blk, const struct blk_request *req);

/* Send what was submitted since: one doorbell. */
void blk_ring(struct blk *blk);

struct blk_done {
	void *user;
	/*
	 * 0; that of blk_status_errno(); -EBADMSG also for data of a read that does not have the
	 * checksum which the target has sent; -ECONNRESET the connection broke before it was
	 * completed: the target may have done it or not.
	 */
	int error;
};

/*
 * Take up to @p n that are done, in any order. When the connection breaks all that were under way
 * come with -ECONNRESET.
 */
uint32_t blk_poll(struct blk *blk, struct blk_done *done, uint32_t n);

/* Requests under way. */
uint32_t blk_pending(const struct blk *blk);

/* NULL while it stands, else one sentence. */
const char *blk_broken(const struct blk *blk);

#endif
