/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Functions of the software device for drivers/front, which stands between the device and a program
 * as a kernel does. For all other purposes drivers/front uses the command interface.
 */
#ifndef SOFT_HOOKS_H
#define SOFT_HOOKS_H

#include <sys/types.h>

#include "mlx5_cmd.h"

/*
 * Passes events of the context to @fn from now on, instead of queueing them for event_get(). The
 * device calls @fn from any thread, with locks held, so @fn must not call the device. If @fn is
 * NULL, events are queued again. When the function returns, the previous @fn is not running.
 */
void soft_event_sink(struct mlx5_ctx *ctx,
		     void (*fn)(void *arg, const struct mlx5_cmd_event *event), void *arg);

/*
 * Calls @fn each time an event makes a channel readable. The device calls @fn from any thread, with
 * locks held, so @fn must not call the device. The calls end when the channel is destroyed.
 */
void soft_channel_sink(struct mlx5_channel *ch, void (*fn)(void *arg), void *arg);

/*
 * Returns the descriptor of the file that has the device's pages, -1 without the option mmap. The
 * device owns the descriptor: duplicate it for a program.
 */
int soft_node_fd(const struct mlx5_ctx *ctx);
/* Returns the offset of a UAR page in the file of soft_node_fd(), in bytes. */
uint64_t soft_uar_offset(const struct mlx5_uar *uar);
/*
 * Returns the index of the first page of an allocation of device memory, from which libmlx5
 * computes the offset for mmap().
 */
uint32_t soft_dm_page(const struct mlx5_dm *dm);

#define SOFT_PLAN_IPS 8

/* The port of a device with the option port=, as far as the options determine it. */
struct soft_plan {
	char port[64];                 /* name of the ethdev */
	uint8_t ip[SOFT_PLAN_IPS][16]; /* GIDs 1 to n_ip; GID 0 follows from the MAC */
	uint32_t n_ip;
	/* a MAC that the address ip[0] determines, for an ethdev whose MAC may be chosen */
	uint8_t mac[6];
};

/*
 * Checks the options @args of device @name, as an open does, without opening the device. Sets
 * *plan. Returns 0 or a negative errno (logged).
 */
int soft_plan_port(const char *name, const char *args, struct soft_plan *plan);

/* Returns the ticks of the device's clock per millisecond. */
uint32_t soft_clock_khz(void);

/*
 * Identifies the device that now owns QPN @qpn at address @gid in shared memory: sets *opening to a
 * value that changes whenever the device is closed and opened again. The value is 0 for the device
 * itself, for QPN 0 of an address that processes share, and without option shm. Never waits. Any
 * thread. Returns 0; -EAGAIN while the value is not known yet; -EHOSTUNREACH if no process has the
 * address or the QPN; or another negative errno.
 */
int soft_peer_opening(struct mlx5_ctx *ctx, const uint8_t gid[16], uint32_t qpn, uint64_t *opening);

/*
 * Writes the packets that the option capture has collected. For a process that exits with the
 * device open. Any thread.
 */
void soft_flush(struct mlx5_ctx *ctx);

/* Returns the length of an MR in bytes. */
uint64_t soft_mr_length(const struct mlx5_mr *mr);

/* Converts the firmware status of a command to the kernel's errno: 0 or a negative errno. */
int soft_kernel_status_errno(uint8_t status);

/*
 * Runs the device in the calling thread, with progress=thread. The device's own thread sleeps while
 * these calls are frequent. Never waits. Any thread. Returns false if the device had no work.
 */
bool soft_assist(struct mlx5_ctx *ctx);
/*
 * Runs the device once, as soft_assist() does, for a caller that does not poll: the device's own
 * thread does not nap after the call, so that it receives the answer of a peer at once.
 */
bool soft_run(struct mlx5_ctx *ctx);
/*
 * Returns true if the calling thread is in soft_assist() or soft_run() already, so that this call
 * comes from a signal handler. The thread then may hold locks of the device, and must call nothing
 * that waits for them.
 */
bool soft_interrupted(void);
/*
 * Reports that the program has rung a doorbell. The next soft_assist_posted() runs the device, so
 * that all doorbells between two polls cost one turn. A program that does not poll never calls
 * soft_assist_posted(). So after the device's own thread has found such doorbells several times,
 * soft_posted() itself runs the device. Any thread.
 */
void soft_posted(struct mlx5_ctx *ctx);
/* Runs the device as soft_assist() does, if soft_posted() was called since. Returns true then. */
bool soft_assist_posted(struct mlx5_ctx *ctx);
/*
 * Call it before a thread of the program is cancelled (pthread_cancel()). A thread that ended in a
 * turn would leave the device's locks taken. So all turns disable the cancellation of their thread
 * from now on. Turns that began before have ended when this function returns. Any thread but one
 * that soft_interrupted() is about.
 */
void soft_expect_cancel(struct mlx5_ctx *ctx);
/*
 * Executes requests whose doorbells were rung before, by up to 32 turns. Waits for a thread that
 * runs the device or executes a command, as a command does. Any thread.
 */
void soft_catch_up(struct mlx5_ctx *ctx);

/* The part of a region of memory that peers may map: @len bytes from byte @skip of the region on.
 */
struct soft_memory {
	int fd; /* descriptor of the file that holds the part; the device duplicates it. -1 if the
		   program has closed it: the file can then not be mapped again */
	dev_t dev; /* of the file, by which the device sees that the program has closed @fd since */
	ino_t ino;
	uint64_t off; /* offset of the part in the file */
	uint64_t skip, len;
};

/*
 * Finds the file behind [addr, addr + len). Returns false if there is none; peers then reach the
 * memory by packets. Must not call the device.
 */
typedef bool soft_memory_fn(const uint8_t *addr, uint64_t len, struct soft_memory *m);

/*
 * Calls @fn for each memory region with remote rights that the program registers from now on. The
 * device maps the file of a whole region a second time, and accesses the region by that mapping, so
 * the program may unmap the region before it deregisters it. Call it after the first context was
 * opened, before memory is registered.
 */
void soft_share_by(struct mlx5_ctx *ctx, soft_memory_fn *fn);
/*
 * From the return on, peers access all regions of the device by packets, and no longer by mappings
 * of the memory. The device itself accesses them at the program's addresses. soft_share_resume()
 * calls the function given to soft_share_by() again for each region. Between the two calls the
 * caller holds the device's lock, so that no other thread registers memory. The caller must not
 * call other functions of the device meanwhile.
 */
void soft_share_pause(struct mlx5_ctx *ctx);
void soft_share_resume(struct mlx5_ctx *ctx);

/* Returns true if the calling thread runs the device, or is the device's own thread. */
bool soft_serving(void);
/*
 * For a handler of SIGSEGV, in a thread for which soft_serving() returns true. Maps pages of zeros
 * at @at, where nothing is mapped, if a registered region covers this address. Returns true if the
 * access can be repeated. Async-signal-safe.
 */
bool soft_fill(struct mlx5_ctx *ctx, const void *at);

/*
 * ---- Devices with the option host=NAME: all processes with one NAME share their addresses, as the
 * processes of one machine do. Below, these processes are called the processes of a host.
 */

/* log2 of the number of QPNs of a process of a host. */
#define SOFT_LOG_QPNS 10
/* Number of the highest bits of a communication ID that identify the process of a host. */
#define SOFT_ID_PREFIX_BITS 8
/*
 * Returns the value of the SOFT_ID_PREFIX_BITS highest bits in all communication IDs of this
 * process. Returns 0 if the device has no option host; then the bits may have any value.
 */
uint32_t soft_id_prefix(const struct mlx5_ctx *ctx);
/* A service ID of rdma_cm, which is a port number, that this process has taken. */
struct soft_service;
/*
 * Takes a service ID for the process, at @n addresses of its host. REQs and SIDR_REQs for it then
 * arrive in this process. @any: @gid has all addresses of the host. Returns 0, or a negative errno.
 * If another process of the host has the service ID at one of the addresses, returns the errno of
 * Linux's rdma_cm: -EADDRNOTAVAIL if either process takes it at all addresses, else -EADDRINUSE.
 * Sets *service to NULL if the device has no option host. Any thread.
 */
int soft_service_take(struct mlx5_ctx *ctx, const uint8_t (*gid)[16], uint32_t n, bool any,
		      uint32_t service_id, struct soft_service **service);
/* Releases a service ID. @service may be NULL. */
void soft_service_give(struct soft_service *service);
/*
 * Takes locks of the device before fork(), after soft_share_pause(), so that no thread is in the
 * middle of making a socket. soft_fork_parent() releases the locks in the parent.
 */
void soft_fork_before(struct mlx5_ctx *ctx);
void soft_fork_parent(struct mlx5_ctx *ctx);
/*
 * Forgets the device of a context in a child of fork(). The parent must have called
 * soft_fork_before(). Makes the locks usable for a device of the child. Closes the child's copies
 * of sockets, so that peers and the table of the host notice when the parent ends. The child may
 * open the device anew, and must not use the context. Its memory stays allocated.
 */
void soft_fork_child(struct mlx5_ctx *ctx);

/* Functions with which an idle device's thread waits for a doorbell (option mmap). */
struct soft_doorbell_ops {
	/*
	 * Write-protects the program's mappings of UAR pages, from soft_uar_start() on in the file
	 * of soft_node_fd(). Leaves out mappings at addresses for which own() returns true. Returns
	 * a descriptor, or -1 on failure. When a thread stores to a protected page, the descriptor
	 * becomes readable, and the thread waits for disarm().
	 */
	int (*arm)(bool (*own)(void *arg, const void *at), void *arg);
	/* Ends the protection, lets waiting stores go on, and closes the descriptor. */
	void (*disarm)(int fd);
};
uint64_t soft_uar_start(void);
/*
 * Lets the device's thread sleep while the device is idle, with progress=thread. Without this call,
 * or if arm() fails, the thread naps instead (option nap).
 */
void soft_sleep_by(struct mlx5_ctx *ctx, const struct soft_doorbell_ops *ops);

/* Cause of the end of a sleep of the device's thread. */
enum soft_wake {
	SOFT_WAKE_DOORBELL,
	SOFT_WAKE_PEER,    /* a packet or another message of a peer */
	SOFT_WAKE_COMMAND, /* a command of the program */
	SOFT_WAKE_TIME,    /* a timer, or work that was found just before the sleep */
	SOFT_WAKES
};
/* Returns the number of sleeps of the device's thread, by cause of their end (enum soft_wake). */
void soft_sleep_counts(const struct mlx5_ctx *ctx, uint64_t n[SOFT_WAKES]);

#endif
