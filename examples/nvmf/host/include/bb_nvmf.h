/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Initiator of NVMe over Fabrics: connect to a namespace, register memory, submit requests, ring,
 * poll, close. The peer is nvmf_target or any other target of NVMe over RDMA. The library is
 * libbluebell_nvmf.a; "pkg-config bluebell_nvmf" has the flags to link it. nvmf_client and the I/O
 * engine for fio use this library.
 *
 * An object is a controller of the target with its admin queue and one I/O queue. Thread rule: only
 * the thread that opened an object may use it. The thread must be an lcore or registered by
 * rte_thread_register(). Use one object per thread, each on its own device, because calls that
 * create or destroy objects of one device must not overlap. Only bb_nvmf_open() and
 * bb_nvmf_close() wait.
 * bb_nvmf_submit(), bb_nvmf_ring() and bb_nvmf_poll() take no lock. They allocate memory and call
 * the kernel only while the connection is being restored.
 *
 * No data is copied: a command names the caller's memory by address and key, and the target reads
 * and writes it by RDMA. The target may access the memory of a request from bb_nvmf_submit() until
 * bb_nvmf_poll() returns the request or bb_nvmf_close() returns. With @ref bb_nvmf_attr.windows it
 * has no access at any other time; without, its keys are valid as long as the memory is registered.
 *
 * Lost connections: with @ref bb_nvmf_attr.reconnect_ms the library connects again, and sends all
 * outstanding requests again. A second execution has the same effect as the first one, unless
 * another host changed the range in between. So a caller must not change a range or the memory of a
 * request before the request has completed. Requests with BB_NVMF_NO_RETRY fail after a loss, and
 * are not sent again. After a loss of power at the target, writes that no flush covered may be
 * gone, although a later flush succeeds: bb_nvmf_reconnects() says that the connection was
 * restored.
 *
 * A target may still execute the commands of a lost connection. Such a late execution can
 * overwrite newer data after the repeated request has completed. Once nvmf_target has detected the
 * loss, it lets the library wait until the old commands have ended. Whether another target does so
 * is unknown to a host: see NVMe Base Specification 2.1, 9.6 Communication Loss Handling. Linux's
 * nvme-rdma has the same gap. BB_NVMF_NO_RETRY prevents only the second execution: the target may
 * execute the failed request later, even after requests that were submitted after it.
 *
 * No digest protects the data between the library and the target. The transport has its own CRC.
 *
 * The library does not trust the target: it checks each field of a response that it uses.
 */
#ifndef BB_NVMF_H
#define BB_NVMF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_dev;
struct bb_mr;

/** A connection to a namespace. */
struct bb_nvmf;

/** Maximum number of outstanding requests. */
#define BB_NVMF_MAX_DEPTH 256u

/** Attributes of a connection. The strings are copied. */
struct bb_nvmf_attr {
	/** address and port of the target: "192.0.2.1:4420", "[2001:db8::1]:4420" */
	const char *addr;
	const char *subnqn; /**< qualified name of the subsystem */
	/** qualified name of this host; NULL: the library's default name */
	const char *hostnqn;
	uint32_t nsid;          /**< number of the namespace, from 1 on */
	uint32_t depth;         /**< wanted number of outstanding requests, at least 1 */
	uint32_t timeout_ms;    /**< time limit of each reply of the target, 1 to 3600000 */
	uint32_t keep_alive_ms; /**< keep-alive timeout; 0: none */
	/**
	 * time limit to restore a lost connection, counted from the loss to the next completed
	 * request; 0: do not restore
	 */
	uint32_t reconnect_ms;
	/**
	 * for each request use a memory window of type 2, which is invalidated when the request
	 * ends
	 */
	bool windows;
	/** bb_nvmf_open() returns -EINTR once *stop is not 0; NULL if not used */
	const volatile int *stop;
};

/**
 * Sets the defaults: depth 32, NSID 1, 30 s for each reply, keep-alive timeout 15 s, no
 * reconnection, no windows. Address and subsystem are NULL.
 */
void bb_nvmf_attr_init(struct bb_nvmf_attr *attr);

/** Properties of a namespace. */
struct bb_nvmf_shape {
	uint64_t capacity; /**< bytes, a multiple of block */
	uint32_t block;    /**< bytes of a block, a power of two */
	uint32_t max_io;   /**< maximum bytes of a request with data, a multiple of block */
	uint32_t depth;    /**< maximum outstanding requests */
	bool read_only;    /**< the target rejects changes */
	bool compare, zeroes, discard; /**< the target executes BB_NVMF_COMPARE, ... */
};

/** Operations. */
enum bb_nvmf_op {
	BB_NVMF_READ,
	BB_NVMF_WRITE,
	/** makes the data of all writes that completed before the flush durable */
	BB_NVMF_FLUSH,
	BB_NVMF_COMPARE, /**< fails with -EILSEQ if the memory and the range differ */
	BB_NVMF_ZEROES,  /**< makes a range of up to 65536 blocks read as zeros */
	BB_NVMF_DISCARD, /**< the data of a range is no longer needed */
};

/** Flags of a request. */
enum bb_nvmf_flag {
	/**
	 * READ: returns only data that is on the medium. WRITE, ZEROES: complete once the data is
	 * on the medium.
	 */
	BB_NVMF_FUA = 1,
	/** the request fails if the connection is lost; the target may still execute it later */
	BB_NVMF_NO_RETRY = 2,
};

/** A request. bb_nvmf_submit() copies the struct. */
struct bb_nvmf_request {
	enum bb_nvmf_op op;
	uint32_t flags;   /**< enum bb_nvmf_flag */
	uint32_t length;  /**< bytes, a multiple of the block; 0 for a flush */
	uint64_t offset;  /**< bytes, a multiple of the block; 0 for a flush */
	void *mem;        /**< data of READ, WRITE and COMPARE, inside of @ref mr */
	struct bb_mr *mr; /**< result of bb_nvmf_reg() for requests with data */
	void *user;       /**< value that bb_nvmf_poll() returns with the request */
};

/** A completed request. */
struct bb_nvmf_done {
	void *user; /**< bb_nvmf_request.user */
	/**
	 * 0 or an error. -ECONNRESET: the connection was lost before the target replied, and the
	 * target may have executed the request or not. Other errors are the target's: -ERANGE,
	 * -EROFS, -ENOSPC, -EOPNOTSUPP, -EINVAL, -ENODEV: no such namespace, -EILSEQ:
	 * BB_NVMF_COMPARE found a difference, -EIO: all others.
	 */
	int error;
};

/**
 * Connects to a namespace and waits for the result. If the target has no queue left, tries again
 * until timeout_ms has passed. Control path.
 * @param dev must stay open until bb_nvmf_close(). The caller closes it.
 * @param why receives one sentence on an error, truncated to @p len bytes. May be NULL if @p len
 *   is 0.
 * @return 0; -EINVAL invalid @p attr; -ECONNREFUSED the target refused, or nothing listens at the
 *   address; -EPROTO the target's replies are invalid, or it lacks a required feature; -ETIMEDOUT;
 *   -EINTR @ref bb_nvmf_attr.stop is not 0;
 *   -ENOTSUP windows on a device without them; -ENOMEM; errors of bb_cm_create() and
 *   bb_qp_create().
 */
int bb_nvmf_open(struct bb_dev *dev, const struct bb_nvmf_attr *attr, struct bb_nvmf **n, char *why,
		 size_t len);

/**
 * Disconnects, waits for the target's answer at most 200 ms, and frees the object. After the call
 * the target cannot access the memory, and may have executed outstanding requests or not. Control
 * path.
 * @return 0, or -EBUSY if memory is still registered: the connection has ended, and bb_nvmf_poll()
 * returns the outstanding requests with -ECONNRESET. Deregister the memory and call again.
 */
int bb_nvmf_close(struct bb_nvmf *n);

/** Returns the properties of the namespace. Valid until bb_nvmf_close(). */
const struct bb_nvmf_shape *bb_nvmf_shape(const struct bb_nvmf *n);

/**
 * Registers memory for data. The caller remains its owner. The registration survives the loss of
 * connections. Control path.
 * @return as bb_mr_reg().
 */
int bb_nvmf_reg(struct bb_nvmf *n, void *mem, size_t len, struct bb_mr **mr);

/**
 * Deregisters memory. No request that uses it may be outstanding, unless bb_nvmf_broken() returns a
 * cause. Control path.
 * @return as bb_mr_dereg().
 */
int bb_nvmf_dereg(struct bb_nvmf *n, struct bb_mr *mr);

/**
 * Adds a request, which the next bb_nvmf_ring() or bb_nvmf_poll() sends. The target executes
 * requests in any order. If a request must follow another one, submit it after the other one has
 * completed.
 * @return 0; -EAGAIN as many requests as the depth are outstanding, or BB_NVMF_NO_RETRY while the
 * connection is being restored: poll; -EINVAL invalid request,
 * length or offset is not a multiple of the block, too long, or the memory is outside of mr;
 * -ERANGE the range ends after the capacity; -EROFS change of a read-only namespace; -EOPNOTSUPP
 * the target does not execute the operation; -ENOTCONN the connection has ended.
 */
int bb_nvmf_submit(struct bb_nvmf *n, const struct bb_nvmf_request *req);

/** Sends all requests that were submitted since the last call, with one doorbell. */
void bb_nvmf_ring(struct bb_nvmf *n);

/**
 * Writes up to @p max completed requests to @p done, in any order. Call it in a loop, also without
 * outstanding requests: it sends the keep-alive commands, restores connections, and runs a device
 * with progress=inline.
 * The target ends a connection without Keep Alive, so the time between two calls must be below half
 * of keep_alive_ms. For timeout_ms and reconnect_ms at most 100 ms of the time between two calls
 * count, so a pause of the caller does not exceed these limits.
 * @return number of completed requests.
 */
uint32_t bb_nvmf_poll(struct bb_nvmf *n, struct bb_nvmf_done *done, uint32_t max);

/** Returns the number of outstanding requests. */
uint32_t bb_nvmf_pending(const struct bb_nvmf *n);

/** Returns how often the connection was restored. */
uint32_t bb_nvmf_reconnects(const struct bb_nvmf *n);

/**
 * Returns NULL while the connection works or is being restored, otherwise the cause of its end as
 * one sentence, which is valid until bb_nvmf_close().
 */
const char *bb_nvmf_broken(const struct bb_nvmf *n);

#ifdef __cplusplus
}
#endif

#endif
