/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4(), ppoll() */
#endif
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca_log.h"
#include "hca_pci.h"
#include "hca_time.h"
#include "options.h"

/* Interval of attempts to accept a client while no file descriptor is free, ns. */
#define RETRY_NS UINT64_C(500000000)

/* The socket at which the clients of a function connect. */
struct listener {
	int fd;
	/*
	 * Time of hca_now() from which the socket is watched again after accept4() has failed. 0 if
	 * the last accept4() succeeded.
	 */
	uint64_t retry_at;
};

/* Returns whether a process listens at @addr. */
static bool
in_use(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool used;

	if (fd < 0)
		return true;
	used = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
	close(fd);
	return used;
}

/* Returns a listening socket at @path, or -1 after printing the error. */
static int
listen_at(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int fd;

	memcpy(addr.sun_path, path, strlen(path));
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode) || in_use(&addr)) {
			say("--socket %s: %s; give another path", path,
			    S_ISSOCK(st.st_mode) ? "another process listens there"
						 : "the file exists and is not a socket");
			return -1;
		}
		unlink(path); /* left by a process that died */
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	    listen(fd, 1) == 0)
		return fd;
	say("--socket %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static void
accept_client(struct hca *h, struct listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (fd < 0) {
		/* The client stays in the queue of the socket, which would end each sleep. */
		if (l->retry_at == 0)
			HCA_LOG(ERR,
				"a client waits: accept4() failed: %s; retried every %u ms; "
				"raise the limit of open files (ulimit -n)",
				strerror(errno), (unsigned int)(RETRY_NS / 1000000));
		l->retry_at = hca_now() + RETRY_NS;
		return;
	}
	l->retry_at = 0;
	if (h->vfu.fd >= 0) {
		HCA_LOG(ERR, "a second client connected: rejected, as a virtual machine uses the "
			     "device");
		close(fd);
		return;
	}
	if (hca_attach(h, fd) != 0)
		return;
	HCA_LOG(NOTICE, "client connected");
	hca_count(&h->stats.clients);
}

static void
receive(struct hca *h)
{
	int rc = vfu_receive(&h->vfu);

	if (rc == 0)
		return;
	HCA_LOG(NOTICE, "client disconnected%s%s; the device is reset", rc == -EPIPE ? "" : ": ",
		rc == -EPIPE ? "" : strerror(-rc));
	vfu_detach(&h->vfu);
}

/* Reports pages of the guest whose file is too short; see guest.h. */
static void
report_lost_pages(void)
{
	static unsigned int reported;
	unsigned int lost = guest_lost_pages();

	if (lost != reported)
		HCA_LOG(ERR, "%u pages of guest memory are lost: the monitor truncated their file",
			lost - reported);
	reported = lost;
}

/* Listens at the socket of each function. Returns the number of functions that listen. */
static unsigned int
listen_all(const struct hca *h, const struct function *f, unsigned int n,
	   struct listener *listeners)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		listeners[i] = (struct listener){.fd = listen_at(f[i].socket)};
		if (listeners[i].fd < 0)
			break;
		hca_log_function(n > 1 ? f[i].name : NULL);
		HCA_LOG(NOTICE, "%s, %s port, listens at %s",
			h[i].o.vf ? "virtual function" : "function",
			h[i].o.eth ? "Ethernet" : "InfiniBand", f[i].socket);
	}
	return i;
}

/*
 * Returns the descriptor to poll for clients, -1 if an attempt to accept one must wait. Then limits
 * the sleep *@ms, which is negative if it has no limit, to that wait.
 */
static int
watched(const struct listener *l, int *ms)
{
	uint64_t now = l->retry_at != 0 ? hca_now() : 0;
	int wait;

	if (now >= l->retry_at)
		return l->fd;
	wait = (int)((l->retry_at - now) / 1000000) + 1;
	if (*ms < 0 || *ms > wait)
		*ms = wait;
	return -1;
}

/* Runs all devices. Returns the milliseconds until the next call must follow, as hca_poll(). */
static int
poll_all(struct hca *h, const struct function *f, unsigned int n)
{
	unsigned int i;
	int ms, least = -1;

	for (i = 0; i < n; i++) {
		hca_log_function(n > 1 ? f[i].name : NULL);
		ms = hca_poll(&h[i]);
		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	/* A function may have given work to one that ran before it. */
	for (i = 0; i < n && n > 1 && least != 0; i++)
		if (front_left(h[i].front))
			least = 0;
	report_lost_pages();
	return least;
}

/*
 * Sleeps until a socket is readable, at most @ms milliseconds. Returns false after printing an
 * error.
 */
static bool
sleep_on(struct pollfd *p, unsigned int n, int ms, const sigset_t *open_mask)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	unsigned int i;

	if (ppoll(p, n, ms < 0 ? NULL : &t, open_mask) >= 0)
		return true;
	for (i = 0; i < n; i++)
		p[i].revents = 0;
	if (errno == EINTR)
		return true;
	say("ppoll: %s", strerror(errno));
	return false;
}

int
hca_serve(struct hca *h, const struct function *f, unsigned int n)
{
	struct listener listeners[HCA_MAX_FUNCTIONS];
	struct pollfd p[2 * HCA_MAX_FUNCTIONS];
	unsigned int i, listening;
	int ms, rc = -1;
	sigset_t open_mask;

	pthread_sigmask(SIG_BLOCK, NULL, &open_mask);
	sigdelset(&open_mask, SIGINT);
	sigdelset(&open_mask, SIGTERM);
	listening = listen_all(h, f, n, listeners);
	if (listening < n)
		goto unlink;
	while (stop_signal == 0) {
		ms = poll_all(h, f, n);
		for (i = 0; i < n; i++) {
			p[2 * i] = (struct pollfd){watched(&listeners[i], &ms), POLLIN, 0};
			p[2 * i + 1] = (struct pollfd){h[i].vfu.fd, POLLIN, 0};
		}
		if (!sleep_on(p, 2 * n, ms, &open_mask))
			goto unlink;
		for (i = 0; i < n; i++) {
			hca_log_function(n > 1 ? f[i].name : NULL);
			/*
			 * Handle messages before new clients: if the client has left, the next
			 * client can then be accepted.
			 */
			if (p[2 * i + 1].fd >= 0 && p[2 * i + 1].revents != 0)
				receive(&h[i]);
			if (p[2 * i].revents != 0)
				accept_client(&h[i], &listeners[i]);
		}
	}
	rc = 0;
unlink:
	for (i = 0; i < listening; i++) {
		close(listeners[i].fd);
		unlink(f[i].socket);
	}
	return rc;
}
