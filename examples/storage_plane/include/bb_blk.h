/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * A client of storage_target, the block target of examples/storage_plane: open, register memory,
 * submit, ring, poll, close. A library of its own, libbluebell_blk.a, which is linked into the
 * program by "pkg-config bluebell_blk"; storage_client and the engine for fio use nothing else.
 *
 * A connection is one queue pair to one queue of the target (a port). It belongs to the thread that
 * opened it, an lcore or one of rte_thread_register(): all calls with it are that thread's. Use one
 * connection for each thread, each on a device of its own, since the calls of a device that make
 * and unmake objects must not overlap. Nothing but open and close waits; submit, ring and poll take
 * no lock, call no allocator, and the kernel only to look after the connection, once in many polls
 * that find nothing.
 *
 * Data is the caller's memory, registered by bb_blk_reg(); the target reads and writes it by the
 * key that goes with each command, and nothing else of the process. From bb_blk_submit() until
 * bb_blk_poll() has given the request back, or bb_blk_close() has returned, it is the target's,
 * whatever has become of the connection.
 *
 * Neither side trusts the other one: what the target sends is checked, and a checksum goes with all
 * data (CRC32C), which costs the processor a pass over it.
 */
#ifndef BB_BLK_H
#define BB_BLK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_dev;
struct bb_mr;

/** A connection, opaque. */
struct bb_blk;

/** Most requests of a connection at a time. */
#define BB_BLK_MAX_DEPTH 256u
/** Most bytes of a request of any target. */
#define BB_BLK_MAX_IO (1u << 20)

/** What a connection is to be like. */
struct bb_blk_attr {
	const char *addr; /**< a queue of the target: "192.0.2.1:18700", "[2001:db8::1]:18700" */
	uint32_t depth;   /**< requests at a time that are wanted, from 1; fewer may be granted */
	uint32_t timeout_ms; /**< of open and close, each step; not 0 */
};

/** What a target serves. */
struct bb_blk_shape {
	uint64_t capacity; /**< bytes, a multiple of block */
	uint32_t block;    /**< bytes, a power of two */
	uint32_t max_io;   /**< bytes of a request at most, a multiple of block */
	uint32_t queues;   /**< it listens at as many ports, each served by an lcore */
	uint16_t depth;    /**< requests of this connection at a time, as granted */
	bool read_only;    /**< takes no writes */
};

/** What is asked of the target. */
enum bb_blk_op {
	BB_BLK_READ = 1,
	BB_BLK_WRITE = 2,
	BB_BLK_FLUSH = 3, /**< all writes that were completed before it are on the medium then */
};

/** Flags of a request. */
enum bb_blk_flag {
	BB_BLK_FUA = 1, /**< of a write: it is on the medium before it completes */
};

/** A request; the struct itself may go when bb_blk_submit() has returned. */
struct bb_blk_request {
	enum bb_blk_op op;
	uint16_t flags;   /**< enum bb_blk_flag */
	uint32_t length;  /**< bytes, and */
	uint64_t offset;  /**< where, in bytes: multiples of the block; both 0 of a flush */
	void *mem;        /**< inside of mr; not of a flush */
	struct bb_mr *mr; /**< of bb_blk_reg(); not of a flush */
	void *user;       /**< comes back */
};

/** A request that is done. */
struct bb_blk_done {
	void *user; /**< of the request */
	/**
	 * 0, or what the target said: -EINVAL, -ERANGE, -EROFS as of bb_blk_submit(); -EBADMSG data
	 * whose checksum was wrong there, or here behind a read; -ENOSPC no space left; -EIO the
	 * medium failed, or an earlier flush did. Or -ECONNRESET: the connection broke before it
	 * was completed, and the target may have done it or not.
	 */
	int error;
};

/**
 * Connect, and wait for it. The device and the connection are then this thread's. Control path.
 * A target that has no place for a client now is asked again until timeout_ms is over.
 * @param dev stays the caller's, and open until bb_blk_close().
 * @param attr read during the call only, its addr too.
 * @param why gets one sentence when it fails, cut off at @p len; NULL with a @p len of 0: none.
 * @return 0; -EINVAL something of @p attr; -ECONNREFUSED the target refused, or nobody is there;
 *   -EPROTO it is no target; -ETIMEDOUT; -ENOMEM; errors of bb_ep_create(), bb_ep_connect().
 */
int bb_blk_open(struct bb_dev *dev, const struct bb_blk_attr *attr, struct bb_blk **blk, char *why,
		size_t len);

/**
 * Disconnect, wait for it at most timeout_ms, and free. Requests under way do not come back; the
 * target may have done them or not, and reaches for no memory any more. Control path.
 * @return 0; -EBUSY memory is registered still, and nothing was done.
 */
int bb_blk_close(struct bb_blk *blk);

/** What the target serves, and the depth it has granted; valid until bb_blk_close(). */
const struct bb_blk_shape *bb_blk_shape(const struct bb_blk *blk);

/**
 * Register memory for data, which stays the caller's. Control path.
 * @param mr memory of as many requests as one likes; of this connection only.
 * @return as of bb_mr_reg().
 */
int bb_blk_reg(struct bb_blk *blk, void *mem, size_t len, struct bb_mr **mr);

/**
 * Undo it. With requests of that memory under way the connection breaks. Control path.
 * @return as of bb_mr_dereg().
 */
int bb_blk_dereg(struct bb_blk *blk, struct bb_mr *mr);

/**
 * Begin a request; bb_blk_ring() sends it. Requests may be carried out in any order: one that is
 * to follow another one is submitted when that is done.
 * @return 0; -EAGAIN as many as the depth are under way: poll; -EINVAL it is no request, no
 * multiple of the block or too long, or the memory is outside of mr; -ERANGE it ends behind the
 * capacity; -EROFS a write, and the target takes none; -ENOTCONN the connection is over.
 */
int bb_blk_submit(struct bb_blk *blk, const struct bb_blk_request *req);

/** Send what was submitted since: one doorbell. */
void bb_blk_ring(struct bb_blk *blk);

/**
 * Take up to @p n that are done, in any order. It also runs a device with inline progress, so call
 * it again and again. When the connection breaks all that were under way come with -ECONNRESET.
 * @return how many.
 */
uint32_t bb_blk_poll(struct bb_blk *blk, struct bb_blk_done *done, uint32_t n);

/** Requests under way. */
uint32_t bb_blk_pending(const struct bb_blk *blk);

/** NULL while it stands, else one sentence that says why not; valid until bb_blk_close(). */
const char *bb_blk_broken(const struct bb_blk *blk);

#ifdef __cplusplus
}
#endif

#endif
