/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cm.h"
#include "eal_foreign.h"
#include "libc.h"
#include "preload.h"
#include "qp1.h"
#include "soft_hooks.h"
#include "ucma.h"
#include "uverbs_wait.h"

/*
 * Maximum number of rdma_cm IDs of a process. The CM engine allocates two slots for each ID, of
 * about 400 bytes each.
 */
#define MAX_IDS   8192u
#define ACK_DELAY 16u /* local_ca_ack_delay that uverbs reports */
#define MS        UINT64_C(1000000)
/* MADs that are handled while the lock is held once, so that peers cannot keep it taken. */
#define MAX_MADS 64u
/*
 * A process that exits waits up to LAST_NS for the answers to its DREQs, and repeats a DREQ after
 * LAST_REPEAT_NS. (Linux repeats DREQs even after the end of the process.)
 */
#define LAST_NS        (500 * MS)
#define LAST_REPEAT_NS (25 * MS)

struct cm_file {
	unsigned int refs;    /* number of references; __atomic */
	struct ucma_file *f;  /* NULL after end_file(); protected by the lock */
	struct cm_file *next; /* next in the list "files"; protected by the lock */
	int fd;               /* eventfd, which the program has as a higher descriptor */
	struct uverbs_wait wait;
};

/*
 * Protects the variables below, the node and QP1. A thread that holds the lock must not be
 * cancelled, because users of librdmacm cancel threads that wait for events. It must not execute
 * signal handlers either, because a handler may call exit(), which takes the lock.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t self; /* process of the node; a child of fork() starts a node of its own */
static struct mlx5_ctx *device;
static struct ucma *node;
static struct qp1 *qp1;
static struct cm_file *files;
static pthread_t thread;
static int wake = -1;         /* eventfd; ends a sleep of the thread */
static uint64_t sleeps_until; /* time up to which the thread sleeps */
static bool stopping;
static cm_find_fn *find_file; /* looks up a descriptor of the program */
/* Reference that node_file() has taken. The command's thread releases it without the lock. */
static struct cm_file *named;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
lock_node(struct thread_state *caller)
{
	thread_hold(caller);
	mask_ready();
	pthread_mutex_lock(&lock);
}

/* Releases the lock. Handlers of signals that have come meanwhile run in this call. */
static void
unlock_node(const struct thread_state *caller)
{
	pthread_mutex_unlock(&lock);
	thread_release(caller);
}

static void
raise_fd(int fd)
{
	const uint64_t one = 1;

	if (libc_write(fd, &one, sizeof(one)) < 0)
		return; /* the counter is at its maximum, so the descriptor is readable anyway */
}

/* ---- Callbacks of the rdma_cm node */

static void
node_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	struct mlx5_port port;
	struct bb_gid gid;
	uint32_t i;

	(void)ctx;
	if (device->cmd->port_query(device, 1, &port) != 0)
		return;
	for (i = 0; i < port.gids; i++)
		if (device->cmd->gid_query(device, 1, i, &gid) == 0 && gid.type == BB_GID_ROCE_V2 &&
		    memcmp(gid.raw, net->src, 16) == 0) {
			qp1_send(qp1, i, net, mad);
			return;
		}
}

static int
node_gid(void *ctx, uint32_t index, struct bb_gid *gid)
{
	(void)ctx;
	return device->cmd->gid_query(device, 1, index, gid);
}

static int
node_reach(void *ctx, uint32_t sgid_index, const uint8_t dgid[16], uint32_t qpn, uint64_t *opening)
{
	int ret = soft_peer_opening(device, dgid, qpn, opening);

	(void)ctx;
	/* If the link knows the peer's process, other processes of the peer's host do not matter.
	 */
	return ret != 0 || *opening != 0 ? ret : qp1_reach(qp1, sgid_index, dgid);
}

static int
node_port_take(void *ctx, const uint8_t (*gid)[16], uint32_t n, bool any, uint32_t service_id,
	       void **port)
{
	struct soft_service *service;
	int ret = soft_service_take(device, gid, n, any, service_id, &service);

	(void)ctx;
	*port = service;
	return ret;
}

static void
node_port_give(void *ctx, void *port)
{
	(void)ctx;
	soft_service_give(port);
}

static void
node_readable(void *ctx, void *file_arg, bool readable)
{
	struct cm_file *file = file_arg;
	uint64_t n;

	(void)ctx;
	if (readable) {
		raise_fd(file->fd);
		uverbs_wait_wake(&file->wait);
	} else if (libc_read(file->fd, &n, sizeof(n)) < 0) {
		return; /* cannot happen: the descriptor is readable */
	}
}

/*
 * Copies between @own and memory of the program. The kernel copies, so that an unmapped address
 * makes the command fail and raises no SIGSEGV.
 */
static int
copy(void *own, uint64_t addr, size_t len, bool write)
{
	struct iovec here = {own, len}, there = {(void *)(uintptr_t)addr, len};
	ssize_t done = write ? process_vm_writev(self, &here, 1, &there, 1, 0)
			     : process_vm_readv(self, &here, 1, &there, 1, 0);

	if (done >= 0 || (errno != ENOSYS && errno != EPERM))
		return done == (ssize_t)len ? 0 : -EFAULT;
	/* A sandbox forbids the system call, so copy without it. */
	if (addr == 0)
		return -EFAULT;
	memcpy(write ? there.iov_base : own, write ? own : there.iov_base, len);
	return 0;
}

static int
node_copy_in(void *ctx, void *to, uint64_t from, size_t len)
{
	(void)ctx;
	return copy(to, from, len, false);
}

static int
node_copy_out(void *ctx, uint64_t to, const void *from, size_t len)
{
	(void)ctx;
	/* The cast removes const, but the copy only reads @from. */
	return copy((void *)(uintptr_t)from, to, len, true);
}

/* Called at most once per command. */
static int
node_file(void *ctx, uint32_t fd, struct ucma_file **f)
{
	(void)ctx;
	named = find_file((int)fd);
	if (named == NULL)
		return libc_fcntl((int)fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
	*f = named->f;
	return *f != NULL ? 0 : -ENOENT;
}

/* ---- The thread that receives MADs and handles timeouts */

/* Returns the time up to which the thread may sleep. */
static uint64_t
deadline(uint64_t now)
{
	const uint64_t at = ucma_deadline(node), retry = now + QP1_RETRY_NS;

	return qp1_holds(qp1) && retry < at ? retry : at;
}

/* Handles at most MAX_MADS received MADs. Returns true if there may be more. */
static bool
receive(uint64_t now)
{
	struct bb_ibcm_gmp gmp;
	const uint8_t *mad;
	uint32_t len, i;

	for (i = 0; i < MAX_MADS; i++) {
		mad = qp1_receive(qp1, &gmp, &len);
		if (mad == NULL)
			return false;
		ucma_rx(node, &gmp, mad, len, now);
		qp1_done(qp1);
	}
	return true;
}

/* Counters of dropped messages: of the CM engine, then of QP1. */
enum {
	DROPS = BB_IBCM_DROPS + QP1_DROPS
};

/* Prints the counters that have changed. @printed: the values printed last. */
static void
trace_drops(const uint64_t *drops, uint64_t *printed)
{
	int i;

	for (i = 0; i < DROPS; i++) {
		if (drops[i] != printed[i])
			fprintf(stderr, "verbs: rdma_cm has dropped %llu messages: %s\n",
				(unsigned long long)drops[i],
				i < BB_IBCM_DROPS
					? bb_ibcm_drop_name((enum bb_ibcm_drop)i)
					: qp1_drop_name((enum qp1_drop)(i - BB_IBCM_DROPS)));
		printed[i] = drops[i];
	}
}

/* Returns the milliseconds until the time @at, rounded up; -1 if @at is BB_IBCM_NEVER. */
static int
until(uint64_t at, uint64_t now)
{
	const uint64_t ms = at <= now ? 0 : (at - now + MS - 1) / MS;

	return at == BB_IBCM_NEVER ? -1 : ms < 1000000 ? (int)ms : 1000000;
}

static void *
serve(void *arg)
{
	struct pollfd p[2] = {{.fd = wake, .events = POLLIN}, {.events = POLLIN}};
	uint64_t drops[DROPS] = {0}, printed[DROPS] = {0};
	const bool trace = getenv(VERBS_ENV_TRACE) != NULL;
	uint64_t n, now;
	int wait = 0;
	bool more;

	(void)arg;
	p[1].fd = qp1_fd(qp1);
	while (poll(p, 2, wait) >= 0 || errno == EINTR) {
		if ((p[0].revents & POLLIN) != 0 && libc_read(wake, &n, sizeof(n)) < 0)
			break; /* not possible */
		pthread_mutex_lock(&lock);
		if (stopping) {
			pthread_mutex_unlock(&lock);
			break;
		}
		now = now_ns();
		more = receive(now);
		ucma_tick(node, now);
		qp1_retry(qp1, now);
		sleeps_until = more ? now : deadline(now);
		wait = until(sleeps_until, now);
		if (trace) {
			memcpy(drops, ucma_stats(node)->drop, sizeof(ucma_stats(node)->drop));
			memcpy(drops + BB_IBCM_DROPS, qp1_drops(qp1), QP1_DROPS * sizeof(*drops));
		}
		pthread_mutex_unlock(&lock);
		if (trace)
			trace_drops(drops, printed);
	}
	return NULL;
}

/* ---- Open files of the node */

static int
start_node(struct mlx5_ctx *ctx, uint64_t node_guid)
{
	static const struct ucma_ops ops = {
		.tx = node_tx,
		.gid = node_gid,
		.reach = node_reach,
		.readable = node_readable,
		.copy_in = node_copy_in,
		.copy_out = node_copy_out,
		.file = node_file,
		.port_take = node_port_take,
		.port_give = node_port_give,
	};
	struct ucma_attr attr = {.ops = &ops,
				 .node_guid = node_guid,
				 .ack_delay = ACK_DELAY,
				 .id_prefix = (uint8_t)soft_id_prefix(ctx),
				 .log_qpns = SOFT_LOG_QPNS,
				 .max_ids = MAX_IDS};
	struct mlx5_port port;
	int ret = ctx->cmd->port_query(ctx, 1, &port);

	if (ret != 0)
		return ret;
	if (port.link_layer != BB_LINK_ETHERNET || ctx->cmd->qp1_claim == NULL)
		return -ENODEV;
	if (getrandom(&attr.seed, sizeof(attr.seed), 0) != sizeof(attr.seed))
		return -errno;
	attr.gids = port.gids;
	attr.mtu = (uint8_t)(__builtin_ctz(port.active_mtu) - 7);
	device = ctx;
	self = getpid();
	wake = eventfd(0, EFD_CLOEXEC);
	if (wake < 0)
		return -errno;
	ret = ucma_create(&attr, &node);
	if (ret != 0)
		goto close_wake;
	ret = qp1_open(ctx, &qp1);
	if (ret != 0)
		goto destroy_node;
	ret = eal_foreign_thread(&thread, serve, NULL);
	if (ret == 0)
		return 0;
	qp1_close(qp1);
destroy_node:
	ucma_destroy(node);
	node = NULL;
close_wake:
	libc_close(wake);
	wake = -1;
	return ret;
}

static int
open_locked(struct mlx5_ctx *ctx, uint64_t node_guid, struct cm_file *file, int *fd)
{
	int ret = stopping ? -EIO : node == NULL ? start_node(ctx, node_guid) : 0;

	if (ret != 0)
		return ret;
	/*
	 * A program may close all descriptors above its own. So this file has the lower number of
	 * the two. cm_put() closes it.
	 */
	file->fd = eventfd(0, EFD_CLOEXEC);
	*fd = file->fd < 0 ? -1 : libc_fcntl(file->fd, F_DUPFD_CLOEXEC, file->fd);
	if (*fd < 0)
		return -errno;
	ret = ucma_open(node, file, &file->f);
	if (ret != 0) {
		libc_close(*fd);
		return ret;
	}
	file->next = files;
	files = file;
	return 0;
}

int
cm_open(struct mlx5_ctx *ctx, uint64_t node_guid, cm_find_fn *find, struct cm_file **out, int *fd)
{
	struct cm_file *file = calloc(1, sizeof(*file));
	struct thread_state caller;
	int ret;

	if (file == NULL)
		return -ENOMEM;
	file->refs = 1;
	file->fd = -1;
	lock_node(&caller);
	find_file = find;
	ret = open_locked(ctx, node_guid, file, fd);
	unlock_node(&caller);
	if (ret == 0)
		*out = file;
	else
		cm_put(file);
	return ret;
}

void
cm_get(struct cm_file *file)
{
	__atomic_fetch_add(&file->refs, 1, __ATOMIC_RELAXED);
}

/* Ends the thread's sleep if a timeout was added that is earlier than its end. */
static void
wake_thread(uint64_t now)
{
	if (deadline(now) < sleeps_until)
		raise_fd(wake);
}

/* Destroys the rdma_cm IDs that were created through an open file of the node. */
static void
end_file(struct cm_file *file)
{
	const uint64_t now = now_ns();

	if (file->f == NULL)
		return;
	ucma_close(file->f, now);
	file->f = NULL;
	wake_thread(now);
}

void
cm_put(struct cm_file *file)
{
	struct thread_state caller;
	struct cm_file **at;

	if (__atomic_fetch_sub(&file->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	lock_node(&caller);
	for (at = &files; *at != NULL && *at != file; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = file->next;
	end_file(file);
	unlock_node(&caller);
	if (file->fd >= 0)
		libc_close(file->fd);
	free(file);
}

/* ---- Commands */

static int
command(struct cm_file *file, const void *buf, size_t len)
{
	const uint64_t now = now_ns();
	int ret = ucma_write(file->f, buf, len, now);

	wake_thread(now);
	return -ret;
}

static void
put_file(void *file)
{
	cm_put(file);
}

/* Waits for an event. The thread may be cancelled meanwhile. Returns 0 or an errno. */
static int
wait_for_event(struct cm_file *file, uint32_t seen)
{
	int ret;

	pthread_cleanup_push(put_file, file);
	ret = uverbs_wait(&file->wait, seen);
	pthread_cleanup_pop(0);
	return -ret;
}

int
cm_write(struct cm_file *file, const void *buf, size_t len)
{
	struct thread_state caller;
	struct cm_file *ref;
	uint32_t seen;
	bool ended;
	int rc;

	for (;;) {
		seen = uverbs_wait_begin(&file->wait);
		lock_node(&caller);
		ended = file->f == NULL;
		rc = ended ? EAGAIN : command(file, buf, len);
		ref = named;
		named = NULL;
		unlock_node(&caller);
		/*
		 * Call cm_put() without the lock, because it takes the lock if this is the last
		 * reference.
		 */
		if (ref != NULL)
			cm_put(ref);
		/*
		 * If the file has ended, the process is exiting. As in the kernel, the call then
		 * does not return.
		 */
		if (!ended && (rc != EAGAIN || (libc_fcntl(file->fd, F_GETFL) & O_NONBLOCK) != 0))
			return rc;
		rc = wait_for_event(file, seen);
		if (rc != 0 && !ended)
			return rc;
	}
}

/* Waits until all peers have answered the DREQs, or until LAST_NS have passed. */
static void
finish(void)
{
	struct pollfd p = {.fd = qp1_fd(qp1), .events = POLLIN};
	uint64_t now = now_ns();
	const uint64_t end = now + LAST_NS;

	while (now < end && ucma_finish(node, LAST_REPEAT_NS, now) != 0) {
		(void)poll(&p, 1, until(deadline(now), now));
		now = now_ns();
		(void)receive(now);
		ucma_tick(node, now);
		qp1_retry(qp1, now);
	}
}

void
cm_stop(void)
{
	struct thread_state caller;
	struct cm_file *file;
	bool started;

	lock_node(&caller);
	started = node != NULL && !stopping;
	stopping = true;
	for (file = files; started && file != NULL; file = file->next)
		end_file(file);
	unlock_node(&caller);
	if (!started)
		return;
	raise_fd(wake);
	pthread_join(thread, NULL);
	finish();
	qp1_close(qp1);
}

void
cm_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	if (wake >= 0)
		libc_close(wake);
	wake = -1;
	node = NULL;
	qp1 = NULL;
	files = NULL;
	named = NULL;
	stopping = false;
}
