/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The file or block device that a target serves, called the backing. Requests to it use io_uring,
 * or blocking system calls on machines that forbid io_uring. All workers of a target share the
 * backing. Each worker has its own queue of requests.
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
	bool direct; /* opened with O_DIRECT */
	bool device; /* block device, not a file */
	bool read_only;
	/*
	 * A sync has failed. The kernel reports lost pages only once, so a later sync may succeed
	 * although data is lost. So after the first failure each flush and each FUA write fails.
	 */
	int sync_failed;
};

struct backing_attr {
	const char *path;
	uint64_t size;   /* size in bytes: a smaller file grows to it; 0 keeps the present size */
	uint32_t block;  /* bytes of a block */
	uint32_t wait_s; /* seconds to wait until another target unlocks the file */
	bool buffered;   /* does not use O_DIRECT */
	bool read_only;
};

/*
 * Opens the file or device, and locks it against a second target. Returns 0 or a negative errno,
 * and prints the error.
 */
int backing_open(struct backing *b, const struct backing_attr *attr);
/* Unlocks and closes a file or device that has no outstanding requests in any queue. */
void backing_close(struct backing *b);
/*
 * Finds the size of an open file or device again, and makes a smaller file as large as attr->size.
 * Returns 0 or a negative errno, and prints the error.
 */
int backing_resize(struct backing *b, const struct backing_attr *attr);
/*
 * Sets *@size to the present size in bytes, and checks that backing_resize() is permitted to make
 * the size of @attr. Changes nothing. Returns 0 or a negative errno, and prints the error.
 */
int backing_size(struct backing *b, const struct backing_attr *attr, uint64_t *size);
/* Undoes backing_resize(): gives a file its old size. Prints the error if that fails. */
void backing_shrink(struct backing *b, const struct backing_attr *attr, uint64_t size);

enum io_op {
	IO_READ,
	IO_WRITE,
	IO_WRITE_SYNC, /* completes when the data is on the medium: FUA */
	IO_SYNC,
	IO_ZERO,    /* makes a range read as zeros */
	IO_DISCARD, /* frees the space of a range, if the file system or device can */
};

/* A completed request. */
struct io_done {
	uint64_t tag;
	int res; /* 0 if all bytes were transferred, else a negative errno */
};

/* One worker's queue. */
struct io_queue;

/*
 * Creates a queue of requests.
 * @param uring use io_uring; if false, each request is a blocking system call
 * @param depth maximum number of outstanding requests
 * @param mem, @param len memory of all requests; registered with io_uring if the limit of locked
 * memory permits that; @len 0: the requests may be anywhere
 * @return 0; -ENOMEM; or a negative errno of io_uring_queue_init(), and prints what to do
 */
int io_queue_create(struct backing *b, bool uring, uint32_t depth, void *mem, size_t len,
		    struct io_queue **q);
/* Destroys a queue that has no outstanding requests. */
void io_queue_destroy(struct io_queue *q);

/*
 * Starts a request. Call io_submit() afterwards, because the kernel may not have taken the request.
 * The caller must not exceed the depth.
 */
void io_start(struct io_queue *q, enum io_op op, uint64_t tag, void *buf, uint64_t len,
	      uint64_t offset);
/*
 * Passes the started requests that the kernel has not taken to it. Returns 0; or a negative errno,
 * if the kernel accepts no more requests: then the requests that it has not accepted end with -EIO.
 */
int io_submit(struct io_queue *q);
/* Returns up to @n completed requests in @done, and their number. Does not wait. */
uint32_t io_reap(struct io_queue *q, struct io_done *done, uint32_t n);

#endif
