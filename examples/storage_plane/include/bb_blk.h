/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Client library of storage_target, the block target of examples/storage_plane: open a connection,
 * register memory, submit requests, ring, poll, close. The library is libbluebell_blk.a;
 * "pkg-config bluebell_blk" has the flags to link it. storage_client and the I/O engine for fio use
 * this library.
 *
 * A connection is one queue pair, which is connected to one queue of the target. Each queue of the
 * target has a port of its own. Thread rule: only the thread that opened a connection may use it.
 * The thread must be an lcore or registered by rte_thread_register(). Use one connection per
 * thread, each on its own device, because calls that create or destroy objects of one device must
 * not overlap. Only bb_blk_open() and bb_blk_close() wait. bb_blk_submit(), bb_blk_ring() and
 * bb_blk_poll() take no lock and allocate no memory. bb_blk_poll() calls the kernel only after many
 * polls without a result, to check the connection.
 *
 * The caller's memory must be registered by bb_blk_reg(). The target reads and writes it by the key
 * in each command, and has access to no other memory of the process. The target may access the
 * memory of a request from bb_blk_submit() until bb_blk_poll() returns the request or
 * bb_blk_close() returns, even if the connection breaks meanwhile.
 *
 * Client and target do not trust each other. The library checks each message of the target. A
 * CRC32C protects all data, which costs the CPU one pass over the data.
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

/** A connection. */
struct bb_blk;

/** Maximum number of outstanding requests of a connection. */
#define BB_BLK_MAX_DEPTH 256u
/** Maximum length of a request in bytes. A target may permit less. */
#define BB_BLK_MAX_IO (1u << 20)

/** Attributes of a connection. */
struct bb_blk_attr {
	const char *addr; /**< queue of the target: "192.0.2.1:18700", "[2001:db8::1]:18700" */
	uint32_t depth; /**< outstanding requests wanted, at least 1; the target may grant fewer */
	uint32_t timeout_ms; /**< time limit of each step of open and close, in ms; not 0 */
};

/** Properties of a target. */
struct bb_blk_shape {
	uint64_t capacity; /**< bytes, a multiple of block */
	uint32_t block;    /**< bytes of a block, a power of two */
	uint32_t max_io;   /**< maximum bytes of a request, a multiple of block */
	uint32_t queues;   /**< number of queues, each with a port and an lcore of its own */
	uint16_t depth;    /**< outstanding requests that the target grants to this connection */
	bool read_only;    /**< the target rejects writes */
};

/** Operations of the target. */
enum bb_blk_op {
	BB_BLK_READ = 1,
	BB_BLK_WRITE = 2,
	BB_BLK_FLUSH = 3, /**< moves all writes that have completed before to the medium */
};

/** Flags of a request. */
enum bb_blk_flag {
	BB_BLK_FUA = 1, /**< for a write: it completes only when the data is on the medium */
};

/** A request. bb_blk_submit() copies the struct. */
struct bb_blk_request {
	enum bb_blk_op op;
	uint16_t flags;   /**< enum bb_blk_flag */
	uint32_t length;  /**< bytes, a multiple of the block; 0 for a flush */
	uint64_t offset;  /**< bytes, a multiple of the block; 0 for a flush */
	void *mem;        /**< memory of the data, inside @ref mr; not used for a flush */
	struct bb_mr *mr; /**< result of bb_blk_reg(); not used for a flush */
	void *user;       /**< value that bb_blk_poll() returns with the request */
};

/** A completed request. */
struct bb_blk_done {
	void *user; /**< bb_blk_request.user */
	/**
	 * 0 or an error. -EINVAL, -ERANGE, -EROFS: the target rejected the request, for the causes
	 * of bb_blk_submit(). -EBADMSG: wrong checksum of the data of a write at the target, or of
	 * a read here. -ENOSPC: no space left. -EIO: the medium or an earlier flush failed.
	 * -ECONNRESET: the connection broke before the request completed, and the target may have
	 * executed the request or not.
	 */
	int error;
};

/**
 * Connects to a target and waits for the result. From then on only the calling thread may use the
 * device and the connection. If the target has its maximum number of clients, tries again until
 * timeout_ms has passed. Control path.
 * @param dev must stay open until bb_blk_close(). The caller closes it.
 * @param attr not used after the call.
 * @param why receives one sentence on an error, truncated to @p len bytes. May be NULL if @p len
 *   is 0.
 * @return 0; -EINVAL invalid @p attr; -ECONNREFUSED the target refused, or nothing listens at the
 *   address; -EPROTO the peer is not a target; -ETIMEDOUT; -ENOMEM; errors of bb_ep_create() and
 *   bb_ep_connect().
 */
int bb_blk_open(struct bb_dev *dev, const struct bb_blk_attr *attr, struct bb_blk **blk, char *why,
		size_t len);

/**
 * Disconnects, waits for the result at most timeout_ms, and frees the connection. Outstanding
 * requests are not returned; the target may have executed them or not. After the call the target
 * cannot access the memory. Control path.
 * @return 0, or -EBUSY if memory is still registered; the connection is then unchanged.
 */
int bb_blk_close(struct bb_blk *blk);

/** Returns the properties of the target, and the granted depth. Valid until bb_blk_close(). */
const struct bb_blk_shape *bb_blk_shape(const struct bb_blk *blk);

/**
 * Registers memory for data. The caller remains its owner. Control path.
 * @param mr the result, for any number of requests of this connection.
 * @return as bb_mr_reg().
 */
int bb_blk_reg(struct bb_blk *blk, void *mem, size_t len, struct bb_mr **mr);

/**
 * Deregisters memory. If outstanding requests use the memory, the connection breaks. Control path.
 * @return as bb_mr_dereg().
 */
int bb_blk_dereg(struct bb_blk *blk, struct bb_mr *mr);

/**
 * Adds a request, which the next bb_blk_ring() sends. The target executes requests in any order. If
 * a request must follow another one, submit it after the other one has completed.
 * @return 0; -EAGAIN as many requests as the depth are outstanding: poll; -EINVAL invalid request,
 * length or offset is not a multiple of the block, too long, or the memory is outside of mr;
 * -ERANGE the range ends after the capacity; -EROFS write to a read-only target; -ENOTCONN the
 * connection has ended.
 */
int bb_blk_submit(struct bb_blk *blk, const struct bb_blk_request *req);

/** Sends all requests that were submitted since the last call, with one doorbell. */
void bb_blk_ring(struct bb_blk *blk);

/**
 * Writes up to @p n completed requests to @p done, in any order. Call it in a loop, because it also
 * runs a device with progress=inline. If the connection breaks, returns all outstanding requests
 * with the error -ECONNRESET.
 * @return number of completed requests.
 */
uint32_t bb_blk_poll(struct bb_blk *blk, struct bb_blk_done *done, uint32_t n);

/** Returns the number of outstanding requests. */
uint32_t bb_blk_pending(const struct bb_blk *blk);

/**
 * Returns NULL while the connection works, otherwise the cause as one sentence, which is valid
 * until bb_blk_close().
 */
const char *bb_blk_broken(const struct bb_blk *blk);

#ifdef __cplusplus
}
#endif

#endif
