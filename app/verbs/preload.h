/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the library that bb_verbs preloads into a verbs program. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <ucontext.h>

#include "cm/cm.h"
#include "uverbs.h"

/* Environment in which bb_verbs starts a program. */
#define VERBS_ENV_DEVICE   "BB_VERBS_DEVICE"   /* NAME,OPTIONS of the software device */
#define VERBS_ENV_AUTO     "BB_VERBS_AUTO"     /* if set, each process takes a free IP address */
#define VERBS_ENV_VDEV     "BB_VERBS_VDEV"     /* vdev for port= of the device, as EAL's --vdev */
#define VERBS_ENV_TREE     "BB_VERBS_TREE"     /* folder with the files for /sys and /dev */
#define VERBS_ENV_TRACE    "BB_VERBS_TRACE"    /* if set, prints each verbs command on stderr */
#define VERBS_ENV_NO_POLL  "BB_VERBS_NO_POLL"  /* if set, only the device's thread executes WQEs */
#define VERBS_ENV_NO_SHARE "BB_VERBS_NO_SHARE" /* if set, peers reach memory only by packets */

/*
 * Path and device number of the device node that the program sees. They are those of Linux's first
 * uverbs device.
 */
#define VERBS_NODE  "/dev/infiniband/uverbs0"
#define VERBS_MAJOR 231
#define VERBS_MINOR 192
/* The node of rdma_cm, a misc device. The kernel gives it any free minor number. */
#define VERBS_CM_NODE  "/dev/infiniband/rdma_cm"
#define VERBS_CM_MAJOR 10
#define VERBS_CM_MINOR 58
/* File with the GUID of the device. */
#define VERBS_GUID "/sys/class/infiniband/mlx5_0/node_guid"
/* File with the link-local GID of the port. */
#define VERBS_GID_0 "/sys/class/infiniband/mlx5_0/ports/1/gids/0"

/* ---- fds.c: the program's descriptors that are files of the device */
enum fd_kind {
	FD_NONE,
	FD_NODE,   /* the device node: struct uverbs_file */
	FD_EVENTS, /* events: struct uverbs_events */
	FD_CM,     /* the rdma_cm node: struct cm_file */
	FD_ORPHAN, /* was a file of the device in the parent process, before fork() */
};

struct fd_ref {
	enum fd_kind kind;
	void *p;
};

/* Returns false if a descriptor is certainly not in the table. Async-signal-safe. */
bool fds_maybe(int fd);
/*
 * Looks up a descriptor and takes a reference, which fds_put() releases. Returns kind FD_NONE if
 * the descriptor is not in the table. With kind FD_ORPHAN there is no reference.
 */
struct fd_ref fds_get(int fd);
void fds_put(const struct fd_ref *ref);
/*
 * Makes the table of this process and registers handlers of fork(). Call this before fds_set(), and
 * before the node registers its own handlers, which then run first: they wait for turns of the
 * device, and a handler of a signal in such a turn may need the table.
 */
void fds_init(void);
/* Enters a descriptor into the table. Returns false if its number is too high. */
bool fds_set(int fd, enum fd_kind kind, void *p);
/*
 * Enters @to, a duplicate of @fd, if @fd is the device node or the rdma_cm node. The file is closed
 * with its last descriptor. Returns false if the number is too high.
 */
bool fds_dup(int fd, int to);
/* Removes a descriptor and closes its file. The caller closes the descriptor itself. */
void fds_close(int fd);
/* Closes the files of all descriptors from @first to @last, and those that fds_leave() has left. */
void fds_close_range(unsigned int first, unsigned int last);
/*
 * Removes the descriptors from @first to @last, whose files the next fds_close_range() closes. For
 * a handler that has interrupted the device.
 */
void fds_leave(unsigned int first, unsigned int last);

/*
 * Closes the files of all descriptors. Calls on these descriptors fail with ENODEV from now on.
 * Returns true if there was a file.
 */
bool fds_orphan(void);
/* Returns true if a file of the device node is open. */
bool fds_any_node(void);

/* ---- base/thread.c */
/* State of a thread before thread_hold(). */
struct thread_state {
	sigset_t signals;
	int cancel;
};
/*
 * Blocks the signals of the calling thread, except those of faults, and disables its cancellation,
 * until thread_release(). A holder of locks must not be cancelled. If an exit of the process takes
 * the lock, its holder must execute no signal handler either, because a handler may call exit().
 */
void thread_hold(struct thread_state *before);
/* Executes the handlers of signals that have come since thread_hold(). */
void thread_release(const struct thread_state *before);

/* ---- base/mask.c */
extern __thread bool mask_unblocked __attribute__((tls_model("initial-exec")));
/* Unblocks SIGSEGV and SIGBUS in this thread, so that the handler of fault_catch() runs. */
void mask_unblock(void);
/* Does the same before this thread runs the device. Costs nothing if it is done already. */
static inline void
mask_ready(void)
{
	if (__builtin_expect(!mask_unblocked, 0))
		mask_unblock();
}
/* Returns true if the program has blocked @sig, SIGSEGV or SIGBUS, in this thread. */
bool mask_blocks(int sig);
/*
 * For a handler, if mask_blocks() returns true: blocks @sig from the handler's return on, and makes
 * it pending. @context: the handler's last argument.
 */
void mask_keep(int sig, ucontext_t *context);
/* Call it in a child of fork(). */
void mask_forked(void);

/* ---- fault.c */
/*
 * Handles accesses from now on to unmapped memory (SIGSEGV) and to pages after the end of their
 * file (SIGBUS), by @fill. If @fill returns true, the access at @at is repeated. Otherwise the
 * program's own action for the signal applies. @fill must be async-signal-safe.
 */
void fault_catch(bool (*fill)(int sig, const void *at));
/* Call it in a child of fork(), in which other threads may have held locks. */
void fault_forked(void);

/* ---- port/port_driver.c */
/*
 * Returns the name of the PMD of a vdev, given as NAME[,OPTIONS]. Returns NULL if bb_verbs does not
 * support the PMD.
 */
const char *port_driver(const char *vdev);

/* ---- Defined by port/port_fds.c. A test of the descriptors defines its own versions. */
/* Returns @flags, with @cloexec in threads of the PMD. */
int port_flags(int flags, int cloexec);
/* Records that a thread of the PMD has opened @fd. Ignores other threads. Returns @fd. */
int port_own(int fd);
/* Records that a thread of the PMD closes @fd. Ignores other threads. */
void port_disown(int fd);
/* Returns true if the calling thread must not find the folder @path. */
bool port_hides(const char *path);

/* ---- port/port_fds.c */
/*
 * Sets whether descriptors that the calling thread opens from now on are those of the PMD. They are
 * closed in children of fork() and in programs that are executed.
 */
void port_mark(bool pmd);
/* Closes the descriptors of the PMD. Runs in a child of fork(). */
void port_close_all(void);

/* ---- port/port_lock.c */
/*
 * Locks the port for this process. The lock is that of a file beside those for /sys, which all
 * processes of a launcher share. It ends with the process or with close() of @fd, and fork() does
 * not pass it on. Returns 0; -EBUSY if another process has the lock; or another negative errno.
 * Errors are printed on stderr.
 */
int port_lock(const char *vdev, int *fd);

/* ---- port/port.c */
/*
 * Creates the ethdev of a device with port=, unless this process has it. Returns 0, also if the
 * device has no port=, or a negative errno after a message on stderr. If EAL cannot start, further
 * calls report and return the error of the first call. Call it with a lock held.
 */
int port_open(void);
/*
 * Returns true if the link of the port comes up only when the peer opens its device. perftest does
 * not start while the port is down, and both ends cannot start second.
 */
bool port_waits(void);

/* ---- Defined by node.c. A unit test defines its own versions. */
/* Opens the device node. Returns a descriptor, or -1 with errno. */
int node_open(void);
/* Opens the rdma_cm node. Returns a descriptor, or -1 with errno. */
int node_open_cm(void);
/* Returns @path, or the path of the file that replaces it. @to has room for PATH_MAX bytes. */
const char *node_path(const char *path, char *to);

/*
 * The program closes the descriptors from @first to @last. Closes the device first if they include
 * its own, because the program closes all descriptors that it does not know.
 */
void node_closes(unsigned int first, unsigned int last);
/* Reads the device's clock, in ticks of 1/@khz ms. Returns 0 or a negative errno. */
int node_clock(uint64_t *cycles, uint32_t *khz);
/*
 * Call soft_assist(), soft_posted() and soft_assist_posted() (soft_hooks.h) for the device of the
 * process. Valid while a context is open.
 */
bool node_assist(void);
void node_posted(void);
bool node_assist_posted(void);
/*
 * Returns true in a signal handler that has interrupted a call which runs the device, such as
 * ibv_poll_cq(). The thread holds locks of the device, so commands must fail.
 */
bool node_interrupted(void);
/*
 * Executes requests that the program has posted, before a command that may destroy their queue
 * pair: a card needs no further call of the program for them. Waits if another thread runs the
 * device.
 */
void node_catch_up(void);

#endif
