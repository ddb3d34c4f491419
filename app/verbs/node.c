/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device of the process. The first context opens the device. It stays open until the process
 * ends, so that its address does not change between contexts.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

#include "address.h"
#include "libc.h"
#include "mlx5_cmd.h"
#include "preload.h"
#include "share.h"
#include "soft_gaps.h"
#include "soft_hooks.h"
#include "soft_host.h"

/*
 * A program that exits with open contexts runs the device LAST_TURNS times, with pauses of
 * LAST_NAP_US microseconds.
 */
#define LAST_TURNS  100
#define LAST_NAP_US 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char name[BB_DEV_NAME_MAX], args[1024];
static struct mlx5_ctx *base;
static uint64_t node_guid;     /* 0 until the rdma_cm node is opened */
static __thread bool has_lock; /* the thread holds the lock */
static bool cancels;           /* the program cancels threads; protected by the lock */
static pid_t owner;
static __thread int fork_cancel; /* cancellation state of the thread that calls fork() */
static bool paused;              /* memory is private for a fork() */
static bool removed;      /* the program has closed the device's descriptors, and so the device */
static int pages_fd = -1; /* the device's first descriptor, of its pages; -1: no device; atomic */

/*
 * Makes all memory private again before fork(), so that the child gets a copy of each page, as of
 * every private page.
 */
static void
before_fork(void)
{
	paused = base != NULL && getpid() == owner && !soft_interrupted();
	if (!paused)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &fork_cancel);
	mask_ready(); /* for share_swap() */
	soft_share_pause(base);
	soft_fork_before(base);
	share_lock();
	share_end();
}

static void
in_parent(void)
{
	if (!paused)
		return;
	share_unlock();
	soft_fork_parent(base);
	soft_share_resume(base);
	pthread_setcancelstate(fork_cancel, NULL);
}

/*
 * Runs in the child, which has copies of the locks. The device stays with the parent. The child
 * may open a device of its own.
 */
static void
in_child(void)
{
	if (base == NULL)
		return;
	if (paused)
		share_unlock();
	fault_forked();
	soft_fork_child(base);
	cm_forget();
	pthread_mutex_init(&lock, NULL);
	base = NULL;
	__atomic_store_n(&pages_fd, -1, __ATOMIC_RELAXED);
	node_guid = 0;
	if (paused)
		pthread_setcancelstate(fork_cancel, NULL);
}

/* Reads @len bytes in hexadecimal, which may contain colons, from a file that stands for /sys. */
static bool
read_hex(const char *file, uint8_t *to, size_t len)
{
	char path[PATH_MAX], text[64] = "";
	size_t n = 0;
	const char *s;
	FILE *f = libc_fopen(node_path(file, path), "re");

	if (f == NULL)
		return false;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	memset(to, 0, len);
	for (s = text; *s != '\0' && n < 2 * len; s++) {
		if (!isxdigit((unsigned char)*s))
			continue;
		to[n / 2] =
			(uint8_t)(to[n / 2] << 4 |
				  (isdigit((unsigned char)*s) ? *s - '0' : tolower(*s) - 'a' + 10));
		n++;
	}
	return n == 2 * len;
}

/*
 * Checks that the port has the MAC that bb_verbs has read before it started the program: the files
 * for /sys have the link-local address of this MAC as GID 0.
 */
static int
check_mac(struct mlx5_ctx *ctx)
{
	struct bb_gid gid;
	uint8_t raw[16];

	if (getenv(VERBS_ENV_VDEV) == NULL || !read_hex(VERBS_GID_0, raw, sizeof(raw)) ||
	    (ctx->cmd->gid_query(ctx, 1, 0, &gid) == 0 && memcmp(gid.raw, raw, 16) == 0))
		return 0;
	fprintf(stderr,
		"bb_verbs: %s: the MAC of the port is not the one that bb_verbs found: let bb_verbs "
		"run in the network namespace of the program, and do not change the MAC meanwhile\n",
		name);
	return -EADDRNOTAVAIL;
}

/* Handles a failed access to memory; see fault_catch(). */
static bool
fill(int sig, const void *at)
{
	share_escape();
	if (base == NULL || !soft_serving())
		return false;
	return sig == SIGBUS ? soft_fill_cut(base, at) : soft_fill(base, at);
}

/* Opens the device with the options of the environment. Returns 0 or a negative errno. */
static int
open_base(void)
{
	static bool registered;
	const char *spec = getenv(VERBS_ENV_DEVICE);
	const bool next = getenv(VERBS_ENV_AUTO) != NULL;
	int ret;

	if (spec == NULL) {
		fprintf(stderr,
			"bb_verbs: start this program by bb_verbs, which makes its device\n");
		return -ENODEV;
	}
	ret = port_open();
	if (ret != 0)
		return ret;
	rte_log_set_global_level(RTE_LOG_WARNING);
	/* Some PMDs open their sockets only now. */
	port_mark(getenv(VERBS_ENV_VDEV) != NULL);
	ret = address_open(spec, next, "progress=thread,mmap", name, args, sizeof(args), &base);
	port_mark(false);
	if (ret == -EADDRINUSE)
		fprintf(stderr,
			"bb_verbs: another process has the address of this device: give each "
			"process an address, or leave out --address\n");
	owner = getpid();
	if (ret == 0) {
		ret = check_mac(base);
		if (ret != 0) {
			(void)base->cmd->close(base);
			base = NULL;
		}
	}
	if (ret == 0) {
		__atomic_store_n(&pages_fd, soft_node_fd(base), __ATOMIC_RELAXED);
		share_device(base);
		soft_share_by(base, share_memory);
		doorbell_file(soft_node_fd(base));
		soft_sleep_by(base, &doorbell_ops);
		if (cancels)
			soft_expect_cancel(base);
		fault_catch(fill);
		if (!registered) {
			fds_init();
			(void)pthread_atfork(before_fork, in_parent, in_child);
		}
		registered = true;
	}
	return ret;
}

static int
install(void *arg, int fd, struct uverbs_events *events)
{
	(void)arg;
	if (fds_set(fd, FD_EVENTS, events))
		return 0;
	fprintf(stderr, "bb_verbs: descriptor %d is too high (at most 65535)\n", fd);
	return -EMFILE;
}

/* Opens the device if it is not open. Returns 0 or a negative errno. */
static int
need_base(void)
{
	if (base == NULL && removed && getenv(VERBS_ENV_VDEV) != NULL) {
		fprintf(stderr,
			"bb_verbs: %s: the program has closed the descriptors of its port\n", name);
		return -ENODEV;
	}
	if (base == NULL)
		return open_base();
	if (getpid() == owner)
		return 0;
	fprintf(stderr,
		"bb_verbs: process %d shares the memory of process %d, which has the device: open "
		"devices after vfork() and clone() only in a program that is executed\n",
		(int)getpid(), (int)owner);
	return -ENODEV;
}

static int
open_locked(int *fd)
{
	struct uverbs_attr attr = {.dev = name,
				   .args = args,
				   .clock = true,
				   .link_up = port_waits(),
				   .install = install};
	struct uverbs_file *file;
	int ret = need_base();

	if (ret == 0)
		ret = uverbs_open(&attr, &file, fd);
	if (ret == 0 && !fds_set(*fd, FD_NODE, file)) {
		uverbs_close(file);
		libc_close(*fd);
		ret = -EMFILE;
	}
	return ret;
}

/* Returns the GUID in the files that stand for /sys, by which librdmacm finds the device. */
static uint64_t
read_guid(void)
{
	uint8_t raw[8];
	uint64_t guid = 0;
	unsigned int i;

	for (i = 0; read_hex(VERBS_GUID, raw, sizeof(raw)) && i < sizeof(raw); i++)
		guid = guid << 8 | raw[i];
	return guid;
}

/* Has the type of cm_find_fn. */
static struct cm_file *
cm_of(int fd)
{
	struct fd_ref ref = fds_get(fd);

	if (ref.kind == FD_CM)
		return ref.p;
	fds_put(&ref);
	return NULL;
}

static int
open_cm_locked(int *fd)
{
	struct cm_file *file;
	int ret = need_base();

	if (node_guid == 0)
		node_guid = read_guid();
	if (ret == 0)
		ret = cm_open(base, node_guid, cm_of, &file, fd);
	if (ret == 0 && !fds_set(*fd, FD_CM, file)) {
		cm_put(file);
		libc_close(*fd);
		ret = -EMFILE;
	}
	return ret;
}

/* Returns @fd, or -1 with errno if @ret is a negative errno. */
static int
result(int ret, int fd)
{
	if (ret == 0)
		return fd;
	errno = -ret;
	return -1;
}

static void
lock_node(struct thread_state *caller)
{
	thread_hold(caller);
	pthread_mutex_lock(&lock);
	has_lock = true;
}

static void
unlock_node(const struct thread_state *caller)
{
	has_lock = false;
	pthread_mutex_unlock(&lock);
	thread_release(caller);
}

/* Calls @open under the lock. */
static int
open_node(int (*open)(int *fd))
{
	struct thread_state caller;
	int fd = -1, ret;

	if (soft_interrupted())
		return result(-EIO, fd);
	lock_node(&caller);
	ret = open(&fd);
	unlock_node(&caller);
	return result(ret, fd);
}

int
node_open(void)
{
	return open_node(open_locked);
}

int
node_open_cm(void)
{
	return open_node(open_cm_locked);
}

/*
 * Replaces pthread_cancel(). As on a card, no verb of the data path is a cancellation point,
 * although it may run the device. A PMD or EAL may call this function, with the lock held, for a
 * thread of its own, which does not run the device.
 */
PUBLIC int
pthread_cancel(pthread_t thread)
{
	struct thread_state caller;

	REAL(int, pthread_cancel, pthread_t);
	if (!has_lock && !soft_interrupted()) {
		lock_node(&caller);
		cancels = true;
		if (base != NULL && getpid() == owner)
			soft_expect_cancel(base);
		unlock_node(&caller);
	}
	return real(thread);
}

/* Call it before the thread runs the device. Returns false if there is no device. */
static bool
ready(void)
{
	if (base == NULL)
		return false;
	mask_ready();
	return true;
}

bool
node_assist(void)
{
	return ready() && soft_assist(base);
}

void
node_posted(void)
{
	if (ready())
		soft_posted(base);
}

bool
node_assist_posted(void)
{
	return ready() && soft_assist_posted(base);
}

bool
node_interrupted(void)
{
	return soft_interrupted();
}

void
node_catch_up(void)
{
	if (ready())
		soft_catch_up(base);
}

int
node_clock(uint64_t *cycles, uint32_t *khz)
{
	*khz = soft_clock_khz();
	return base != NULL ? base->cmd->clock(base, cycles) : -ENODEV;
}

/*
 * Closes all contexts and the device, whose next context opens it anew. Otherwise the device's
 * thread would use descriptors that are the program's by then.
 */
static void
remove_device(void)
{
	struct thread_state caller;

	lock_node(&caller);
	if (__atomic_exchange_n(&pages_fd, -1, __ATOMIC_RELAXED) >= 0) {
		if (fds_orphan())
			fprintf(stderr,
				"bb_verbs: the program closes descriptors of %s that it did not "
				"open: its open contexts no longer work; call closefrom() and the "
				"like before a device is opened\n",
				name);
		/* Children do not get shared pages, and before_fork() needs the device. */
		mask_ready(); /* for share_swap() */
		share_lock();
		share_end();
		share_unlock();
		cm_stop();
		cm_forget();
		(void)base->cmd->close(base);
		base = NULL;
		removed = true;
	}
	unlock_node(&caller);
}

void
node_closes(unsigned int first, unsigned int last)
{
	const int fd = __atomic_load_n(&pages_fd, __ATOMIC_RELAXED);

	if (fd >= 0 && (unsigned int)fd >= first && (unsigned int)fd <= last && getpid() == owner &&
	    !soft_interrupted())
		remove_device();
}

/* Prints how often each cause woke the device's thread: a hint if a program is slow. */
static void
report_sleeps(void)
{
	uint64_t n[SOFT_WAKES];

	if (getenv(VERBS_ENV_TRACE) == NULL)
		return;
	soft_sleep_counts(base, n);
	fprintf(stderr,
		"verbs: the device's thread was woken %llu times by doorbells, %llu by peers, %llu "
		"by commands, %llu by timers\n",
		(unsigned long long)n[SOFT_WAKE_DOORBELL], (unsigned long long)n[SOFT_WAKE_PEER],
		(unsigned long long)n[SOFT_WAKE_COMMAND], (unsigned long long)n[SOFT_WAKE_TIME]);
}

/*
 * Closes the device when the process exits, so that peers are informed. If the program has not
 * closed its contexts, other threads may still use them. The device then stays open, and this
 * function only sends the ACKs that are due. If a signal handler that has interrupted the device
 * calls exit(), the process ends as if it was killed.
 */
static void __attribute__((destructor)) stop(void)
{
	struct thread_state caller;
	unsigned int i;

	if (base == NULL || getpid() != owner)
		return;
	__atomic_store_n(&pages_fd, -1, __ATOMIC_RELAXED);
	if (soft_interrupted())
		return;
	report_sleeps();
	cm_stop();
	if (!fds_any_node()) {
		lock_node(&caller);
		(void)base->cmd->close(base);
		base = NULL;
		unlock_node(&caller);
		return;
	}
	for (i = 0; i < LAST_TURNS; i++) {
		(void)node_assist();
		usleep(LAST_NAP_US);
	}
	soft_flush(base);
}

/*
 * Replaces the function of libbluebell that registers the software device. This library does not
 * contain libbluebell, and needs no registration.
 */
void
mlx5_cmd_register(const struct mlx5_cmd_if *cmd)
{
	(void)cmd;
}

/* ---- Paths */

const char *
node_path(const char *path, char *to)
{
	static const char *const roots[] = {"/sys/class/infiniband", "/sys/class/misc/rdma_cm",
					    "/dev/infiniband"};
	const char *tree;
	unsigned int i;

	if (path == NULL || path[0] != '/')
		return path;
	if (port_hides(path))
		return "/"; /* has no libraries */
	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (strncmp(path, roots[i], strlen(roots[i])) != 0)
			continue;
		tree = getenv(VERBS_ENV_TREE);
		if (tree != NULL && snprintf(to, PATH_MAX, "%s%s", tree, path) < PATH_MAX)
			return to;
	}
	return path;
}
