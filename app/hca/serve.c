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
#include "options.h"

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
accept_client(struct hca *h, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (h->vfu.fd >= 0) {
		HCA_LOG(ERR, "a second client connected: rejected, as a virtual machine uses the "
			     "device");
		close(fd);
		return;
	}
	HCA_LOG(NOTICE, "client connected");
	vfu_attach(&h->vfu, fd);
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

int
hca_serve(struct hca *h, const char *path)
{
	int listener = listen_at(path), rc = 0, ms;
	sigset_t open_mask;

	if (listener < 0)
		return -1;
	pthread_sigmask(SIG_BLOCK, NULL, &open_mask);
	sigdelset(&open_mask, SIGINT);
	sigdelset(&open_mask, SIGTERM);
	HCA_LOG(NOTICE, "%s, %s port, listens at %s", h->o.vf ? "virtual function" : "function",
		h->o.eth ? "Ethernet" : "InfiniBand", path);
	while (stop_signal == 0) {
		struct pollfd p[2] = {{listener, POLLIN, 0}, {h->vfu.fd, POLLIN, 0}};
		struct timespec t;

		ms = hca_poll(h);
		report_lost_pages();
		t = (struct timespec){ms / 1000, ms % 1000 * 1000000L};
		if (ppoll(p, 2, ms < 0 ? NULL : &t, &open_mask) < 0) {
			if (errno == EINTR)
				continue;
			say("ppoll: %s", strerror(errno));
			rc = -1;
			break;
		}
		/*
		 * When a client has left, the next client, which may be waiting already, can
		 * connect.
		 */
		if (p[1].fd >= 0 && p[1].revents != 0)
			receive(h);
		if (p[0].revents != 0)
			accept_client(h, listener);
	}
	close(listener);
	unlink(path);
	return rc;
}
