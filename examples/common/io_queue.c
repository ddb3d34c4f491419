/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests to a backing: by io_uring, or one at a time by preadv2() and pwritev2(). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <liburing.h>
#include <sys/uio.h>

#include "backing.h"
#include "program.h"

#define MAX_RING 32768u /* maximum requests of an io_uring; IORING_MAX_ENTRIES in Linux */

struct request {
	uint8_t *buf;
	uint64_t offset;
	uint64_t tag;
	uint64_t left; /* bytes not yet transferred; the kernel may execute a request in parts */
	uint32_t next; /* index of the next free request */
	enum io_op op;
};

struct io_queue {
	struct backing *b;
	struct io_uring ring;
	bool uring, fixed_mem, fixed_file;
	uint32_t depth;
	uint32_t free; /* index of the first free request; depth if there is none */
	uint32_t unsubmitted;
	struct io_done *done; /* requests that completed in io_start(), or that io_submit() ended */
	uint32_t ndone;
	struct request req[];
};

/*
 * Creates the io_uring. A worker polls, so the kernel need not interrupt it. With the first two
 * sets of flags, the kernel reports pending work by a flag in the ring, and io_reap() then enters
 * the kernel. These flags need Linux 6.1 and 5.19; an older kernel returns EINVAL, and the next set
 * is tried.
 */
static int
init_ring(struct io_queue *q)
{
	static const unsigned int ways[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		0,
	};
	uint32_t i;
	int rc = -EINVAL;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]) && rc == -EINVAL; i++)
		rc = io_uring_queue_init(q->depth, &q->ring, ways[i]);
	return rc;
}

static int
open_ring(struct io_queue *q, void *mem, size_t len)
{
	struct iovec iov = {mem, len};
	int rc;

	if (q->depth > MAX_RING) {
		say("io_uring has at most %u requests, not %u: give more lcores, less --queues or "
		    "--depth, or --io sync",
		    MAX_RING, q->depth);
		return -EINVAL;
	}
	rc = init_ring(q);
	if (rc == -ENOSYS || rc == -EPERM) {
		say("the kernel refuses io_uring here: %s; many containers forbid it, and so can "
		    "the sysctl kernel.io_uring_disabled: give --io sync, which uses blocking "
		    "system calls",
		    strerror(-rc));
		return rc;
	}
	if (rc != 0) {
		say("io_uring cannot be set up for %u requests: %s", q->depth, strerror(-rc));
		return rc;
	}
	/*
	 * Registering the file and the memory only makes requests cheaper. It may fail, for
	 * instance at the limit of locked memory.
	 */
	q->fixed_file = io_uring_register_files(&q->ring, &q->b->fd, 1) == 0;
	q->fixed_mem = len != 0 && io_uring_register_buffers(&q->ring, &iov, 1) == 0;
	return 0;
}

int
io_queue_create(struct backing *b, bool uring, uint32_t depth, void *mem, size_t len,
		struct io_queue **out)
{
	struct io_queue *q = calloc(1, sizeof(*q) + depth * sizeof(q->req[0]));
	uint32_t i;
	int rc = 0;

	if (q == NULL)
		return -ENOMEM;
	q->b = b;
	q->depth = depth;
	q->uring = uring;
	q->done = calloc(depth, sizeof(*q->done));
	if (q->done == NULL)
		rc = -ENOMEM;
	for (i = 0; i < depth; i++)
		q->req[i].next = i + 1;
	if (rc == 0 && uring)
		rc = open_ring(q, mem, len);
	if (rc != 0) {
		free(q->done);
		free(q);
		return rc;
	}
	*out = q;
	return 0;
}

void
io_queue_destroy(struct io_queue *q)
{
	if (q->uring)
		io_uring_queue_exit(&q->ring);
	free(q->done);
	free(q);
}

/*
 * Returns true if data of acknowledged writes may be lost. A FUA write that failed for lack of
 * space has lost nothing, nor has one with invalid parameters, which the kernel rejects first.
 */
static bool
lost(const struct request *r, int res)
{
	if (r->op == IO_WRITE_SYNC)
		return res < 0 && res != -ENOSPC && res != -EDQUOT && res != -EFBIG &&
		       res != -EINVAL;
	return res < 0 && r->op == IO_SYNC;
}

/* Fills @done with the result of a request, and frees the request. */
static void
release(struct io_queue *q, struct request *r, int res, struct io_done *done)
{
	done->tag = r->tag;
	done->res = res;
	r->next = q->free;
	q->free = (uint32_t)(r - q->req);
}

/* Ends a request with the kernel's result. */
static void
finish(struct io_queue *q, struct request *r, int res, struct io_done *done)
{
	if (lost(r, res) && !__atomic_exchange_n(&q->b->sync_failed, 1, __ATOMIC_RELAXED))
		say("a write to the medium failed: %s; all later flushes and FUA writes fail",
		    strerror(-res));
	release(q, r, res, done);
}

/*
 * Handles @res, the kernel's result for a part of a request. Returns true if the request has
 * completed. If @res is smaller than the request, the caller must submit the rest, whose result
 * shows the cause. A @res of 0 means that another process has truncated the file.
 */
static bool
account(struct request *r, int res, int *result)
{
	*result = res < 0 ? res : 0;
	if (res < 0 || (r->op != IO_READ && r->op != IO_WRITE && r->op != IO_WRITE_SYNC))
		return res != -EINTR && res != -EAGAIN;
	if (res == 0 || (uint64_t)res > r->left) {
		*result = -EIO;
		return true;
	}
	r->buf += res;
	r->offset += (uint32_t)res;
	r->left -= (uint32_t)res;
	return r->left == 0;
}

/*
 * Returns the mode of fallocate() for a request. A hole of a file reads as zeros. On a block device
 * FALLOC_FL_ZERO_RANGE writes zeros if the device has no faster way, and FALLOC_FL_PUNCH_HOLE
 * fails.
 */
static int
mode_of(const struct io_queue *q, const struct request *r)
{
	return FALLOC_FL_KEEP_SIZE |
	       (r->op == IO_ZERO && q->b->device ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
}

static void
queue(struct io_queue *q, struct request *r)
{
	uint32_t len = (uint32_t)r->left; /* for reads and writes */
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);
	int fd = q->fixed_file ? 0 : q->b->fd;

	/* @sqe is not NULL, because the ring has an entry for each request. */
	switch (r->op) {
	case IO_READ:
		if (q->fixed_mem)
			io_uring_prep_read_fixed(sqe, fd, r->buf, len, r->offset, 0);
		else
			io_uring_prep_read(sqe, fd, r->buf, len, r->offset);
		break;
	case IO_WRITE:
	case IO_WRITE_SYNC:
		if (q->fixed_mem)
			io_uring_prep_write_fixed(sqe, fd, r->buf, len, r->offset, 0);
		else
			io_uring_prep_write(sqe, fd, r->buf, len, r->offset);
		if (r->op == IO_WRITE_SYNC)
			sqe->rw_flags = RWF_DSYNC;
		break;
	case IO_SYNC:
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	case IO_ZERO:
	case IO_DISCARD:
		io_uring_prep_fallocate(sqe, fd, mode_of(q, r), (off_t)r->offset, (off_t)r->left);
		break;
	}
	if (q->fixed_file)
		io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(sqe, r);
	q->unsubmitted++;
}

/* Passes the requests in the ring to the kernel. Returns a negative errno if it takes none. */
static int
pass_on(struct io_queue *q)
{
	const int rc = io_uring_submit(&q->ring);

	if (rc > 0)
		q->unsubmitted -= (uint32_t)rc;
	return rc < 0 ? rc : 0;
}

/* Writes, and waits until the medium has the data. Kernels before 4.7 do not know RWF_DSYNC. */
static ssize_t
write_sync(int fd, const struct iovec *iov, off_t offset)
{
	ssize_t n = pwritev2(fd, iov, 1, offset, RWF_DSYNC);

	if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
		return n;
	n = pwritev(fd, iov, 1, offset);
	return n >= 0 && fdatasync(fd) != 0 ? -1 : n;
}

static int
call(struct io_queue *q, struct request *r)
{
	struct iovec iov = {r->buf, r->left};
	ssize_t n;

	if (r->op == IO_SYNC)
		n = fdatasync(q->b->fd);
	else if (r->op == IO_ZERO || r->op == IO_DISCARD)
		n = fallocate(q->b->fd, mode_of(q, r), (off_t)r->offset, (off_t)r->left);
	else if (r->op == IO_READ)
		n = preadv2(q->b->fd, &iov, 1, (off_t)r->offset, 0);
	else if (r->op == IO_WRITE)
		n = pwritev2(q->b->fd, &iov, 1, (off_t)r->offset, 0);
	else
		n = write_sync(q->b->fd, &iov, (off_t)r->offset);
	return n < 0 ? -errno : (int)n;
}

void
io_start(struct io_queue *q, enum io_op op, uint64_t tag, void *buf, uint64_t len, uint64_t offset)
{
	struct request *r = &q->req[q->free];
	int result;

	q->free = r->next;
	*r = (struct request){.buf = buf, .offset = offset, .tag = tag, .left = len, .op = op};
	if ((op == IO_SYNC || op == IO_WRITE_SYNC) &&
	    __atomic_load_n(&q->b->sync_failed, __ATOMIC_RELAXED)) {
		finish(q, r, -EIO, &q->done[q->ndone++]);
		return;
	}
	if (q->uring) {
		queue(q, r);
		/*
		 * One at a time, because the kernel starts a batch only when it has prepared all
		 * requests of the batch, and the medium idles meanwhile. io_submit() handles
		 * errors.
		 */
		(void)pass_on(q);
		return;
	}
	while (!account(r, call(q, r), &result))
		;
	finish(q, r, result, &q->done[q->ndone++]);
}

/*
 * Ends the requests that the kernel has not taken, with -EIO. No thread of the kernel reads the
 * ring (IORING_SETUP_SQPOLL), so the entries can be taken back.
 */
static void
withdraw(struct io_queue *q)
{
	struct io_uring_sq *sq = &q->ring.sq;
	unsigned int first = __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE), i;

	for (i = first; i != sq->sqe_tail; i++) {
		const struct io_uring_sqe *sqe = &sq->sqes[i & (*sq->kring_entries - 1)];

		release(q, (struct request *)(uintptr_t)sqe->user_data, -EIO, &q->done[q->ndone++]);
	}
	sq->sqe_head = sq->sqe_tail = first;
	__atomic_store_n(sq->ktail, first, __ATOMIC_RELEASE);
	q->unsubmitted = 0;
}

int
io_submit(struct io_queue *q)
{
	int rc;

	if (q->unsubmitted == 0)
		return 0;
	rc = pass_on(q);
	/* The kernel has too few resources now. The next call submits the remaining requests. */
	if (rc == -EAGAIN || rc == -EBUSY || rc == -EINTR)
		return 0;
	if (rc < 0)
		withdraw(q);
	return rc;
}

uint32_t
io_reap(struct io_queue *q, struct io_done *done, uint32_t n)
{
	uint32_t took = 0, head, seen = 0;
	struct io_uring_cqe *cqe;
	int result;

	while (q->ndone > 0 && took < n)
		done[took++] = q->done[--q->ndone];
	if (!q->uring)
		return took;
	if ((IO_URING_READ_ONCE(*q->ring.sq.kflags) &
	     (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0)
		(void)io_uring_get_events(&q->ring);
	io_uring_for_each_cqe(&q->ring, head, cqe)
	{
		struct request *r = io_uring_cqe_get_data(cqe);

		if (took == n)
			break;
		seen++;
		if (account(r, cqe->res, &result))
			finish(q, r, result, &done[took++]);
		else
			queue(q, r);
	}
	io_uring_cq_advance(&q->ring, seen);
	return took;
}
