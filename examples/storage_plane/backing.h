/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What a target serves, a file or a block device, and the way to it: io_uring, or plain calls that
 * wait, for machines that forbid io_uring. A backing is shared by the workers of a target; each has
 * a queue of its own.
 */
#ifndef BACKING_H
#define BACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring;

struct backing {
	int fd;
	uint64_t capacity; /* bytes, a multiple of block */
	uint32_t block;
	bool direct; /* O_DIRECT */
	bool device; /* a block device */
	bool read_only;
	/*
	 * A sync has failed. The kernel tells that once and then forgets which pages it has lost,
	 * so no later sync is to be believed: all that promise durability fail from here on.
	 */
	int sync_failed;
};

struct backing_attr {
	const char *path;
	uint64_t size;   /* bytes to create it with, or to which it must come; 0: as it is */
	uint32_t block;  /* bytes */
	uint32_t wait_s; /* for another target of it to let go of it */
	bool buffered;   /* no O_DIRECT */
	bool read_only;
};

/* Open it, and lock it against a second target. Says what is wrong, and returns -errno. */
int backing_open(struct backing *b, const struct backing_attr *attr);
void backing_close(struct backing *b);

enum io_op {
	IO_READ,
	IO_WRITE,
	IO_WRITE_SYNC, /* on the medium when it is done: FUA */
	IO_SYNC,
};

/* A request that is done. */
struct io_done {
	uint64_t tag;
	int res; /* 0 or -errno; of all bytes */
};

/* One worker's queue. */
struct io_queue;

/*
 * @param uring false: plain calls
 * @param depth requests at a time
 * @param mem, @param len where all data is; registered with io_uring if that may be
 * @return 0; -ENOMEM; -errno of io_uring_queue_init(), and what to do is said
 */
int io_queue_create(struct backing *b, bool uring, uint32_t depth, void *mem, size_t len,
		    struct io_queue **q);
/* Nothing may be under way. */
void io_queue_destroy(struct io_queue *q);

/* "io_uring, registered buffers": what it uses. */
const char *io_queue_way(const struct io_queue *q);

/* Begin a request; there are never more than depth. */
void io_start(struct io_queue *q, enum io_op op, uint64_t tag, void *buf, uint32_t len,
	      uint64_t offset);
/* Tell the kernel, once for all that was begun. 0 or -errno. */
int io_submit(struct io_queue *q);
/* Take up to @n that are done. Never waits with io_uring. */
uint32_t io_reap(struct io_queue *q, struct io_done *done, uint32_t n);

#endif
