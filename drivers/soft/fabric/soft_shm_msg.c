/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* struct ucred, accept4() */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "soft_shm_msg.h"

static_assert(sizeof(struct soft_shm_msg) == 256, "all messages have one size");
static_assert(1 + 9 + SOFT_SHM_NAME + 32 + SOFT_SHM_SUFFIX <=
		      sizeof(((struct sockaddr_un *)NULL)->sun_path),
	      "all names fit");

/* Linux include/uapi/asm-generic/socket.h and unistd.h; missing in older headers. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/*
 * Length of the listen queue: room for a burst of connections from untrusted users. The kernel
 * limits the length to net.core.somaxconn.
 */
#define BACKLOG 1024

/* ---- Addresses of sockets */

socklen_t
soft_shm_address(const char *fabric, const uint8_t gid[16], const char *suffix,
		 struct sockaddr_un *sun)
{
	size_t at = 1, i;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	/*
	 * A first byte of 0 makes the name abstract: it belongs to the network namespace, not to a
	 * file.
	 */
	at += (size_t)snprintf(sun->sun_path + at, sizeof(sun->sun_path) - at, "bluebell/%.*s/",
			       SOFT_SHM_NAME - 1, fabric);
	for (i = 0; i < 16; i++)
		at += (size_t)snprintf(sun->sun_path + at, sizeof(sun->sun_path) - at, "%02x",
				       gid[i]);
	at += (size_t)snprintf(sun->sun_path + at, sizeof(sun->sun_path) - at, "%.*s",
			       SOFT_SHM_SUFFIX - 1, suffix);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at);
}

/* ---- Messages */

static const char *
hello_check(const struct soft_shm_msg *m)
{
	return m->u.hello.n_gids == 0 || m->u.hello.n_gids > SOFT_SHM_GIDS
		       ? "its HELLO names no address, or more than a device can have"
		       : NULL;
}

static const char *
segment_check(const struct soft_shm_msg *m)
{
	if (m->u.segment.slot >= SOFT_SHM_SEGS)
		return "it sent a segment with an invalid slot number";
	if (m->u.segment.len == 0 || m->u.segment.off > INT64_MAX ||
	    m->u.segment.len > INT64_MAX - m->u.segment.off)
		return "it sent a segment with an invalid offset or length";
	return NULL;
}

const char *
soft_shm_msg_check(const struct soft_shm_msg *m, size_t len, uint32_t n_fds, bool from_listener)
{
	static const uint8_t fds[SOFT_SHM_TYPES] = {
		[SOFT_SHM_HELLO] = 2,
		[SOFT_SHM_WELCOME] = 1,
		[SOFT_SHM_SEGMENT] = 1,
	};

	if (len != sizeof(*m) || m->magic != SOFT_SHM_MAGIC)
		return "it sent a message that is not of this library";
	if (m->version != SOFT_SHM_VERSION)
		return "it runs a version of this library with another shared-memory layout: run "
		       "the same version in both";
	if (m->type == 0 || m->type >= SOFT_SHM_TYPES)
		return "it sent a message of an unknown type";
	if (m->type != SOFT_SHM_BYE &&
	    (m->type != SOFT_SHM_HELLO && m->type != SOFT_SHM_WAKE) != from_listener)
		return "it sent a message that only the other end of the connection may send";
	if (n_fds != fds[m->type])
		return "it sent a message with a wrong number of file descriptors";
	if (m->type == SOFT_SHM_HELLO)
		return hello_check(m);
	return m->type == SOFT_SHM_SEGMENT ? segment_check(m) : NULL;
}

void
soft_shm_msg_init(struct soft_shm_msg *m, enum soft_shm_type type)
{
	memset(m, 0, sizeof(*m));
	m->magic = SOFT_SHM_MAGIC;
	m->version = SOFT_SHM_VERSION;
	m->type = (uint16_t)type;
}

int
soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * SOFT_SHM_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (n != 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	do {
		sent = sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/*
 * Extracts the descriptors of a message. Returns the number of descriptors. The kernel creates no
 * more of them than the buffer can hold.
 */
static uint32_t
take_fds(struct msghdr *msg, int fds[SOFT_SHM_MAX_FDS])
{
	struct cmsghdr *c;
	uint32_t n = 0;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0), i;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i + sizeof(int) <= bytes; i += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i, sizeof(fd));
			if (n < SOFT_SHM_MAX_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

int
soft_shm_recv(int sock, bool from_listener, struct soft_shm_msg *m, int fds[SOFT_SHM_MAX_FDS],
	      const char **why)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * SOFT_SHM_MAX_FDS)];
	} control;
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	uint32_t n, i;
	ssize_t len;

	/*
	 * ECONNRESET: the peer closed the socket with unread data. The kernel returns this error
	 * once, before the peer's remaining messages.
	 */
	do {
		len = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	if (len < 0)
		return errno == EAGAIN ? 0 : errno == EPIPE ? -ECONNRESET : -errno;
	/*
	 * First extracts the descriptors: even an invalid message may carry some, and this process
	 * owns them now.
	 */
	for (i = 0; i < SOFT_SHM_MAX_FDS; i++)
		fds[i] = -1;
	n = take_fds(&msg, fds);
	/* There was room for SOFT_SHM_MAX_FDS descriptors, so fewer show that none was free. */
	if ((msg.msg_flags & MSG_CTRUNC) != 0 && n < SOFT_SHM_MAX_FDS)
		*why = "no file descriptor is free for the memory that it shares (ulimit -n)";
	else if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
		*why = "it sent a message that is not of this library";
	else
		*why = soft_shm_msg_check(m, (size_t)len, n, from_listener);
	if (*why == NULL)
		return 1;
	for (i = 0; i < n; i++)
		close(fds[i]);
	/*
	 * No valid message is empty, so length 0 means that the peer has disconnected, or pretends
	 * to.
	 */
	return len == 0 ? -ECONNRESET : -EPROTO;
}

/* ---- Sockets */

static int
new_socket(int *sock)
{
	*sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *sock < 0 ? -errno : 0;
}

int
soft_shm_peer(int sock, pid_t *pid, uid_t *uid)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || len != sizeof(cred))
		return -errno;
	*pid = cred.pid;
	*uid = cred.uid;
	return 0;
}

bool
soft_shm_peer_lives(int sock, int pidfd)
{
	struct pollfd fds[] = {{.fd = sock, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};

	return poll(fds, RTE_DIM(fds), 0) == 0;
}

int
soft_shm_peer_fd(int sock, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd = -1;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) != 0) {
		if (errno != ENOPROTOOPT || pid <= 0)
			return -errno;
		/*
		 * Linux before 6.5 has no SO_PEERPIDFD. The pid may belong to another process if
		 * the peer ended before this call. Then the peer's socket is closed, unless a child
		 * of fork() holds it.
		 */
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0)
			return -errno;
	}
	if (soft_shm_peer_lives(sock, fd))
		return fd;
	close(fd);
	return -ESRCH;
}

/* Builds the address at which the device with the QPNs of a slot listens. */
static socklen_t
slot_address(const char *fabric, const uint8_t gid[16], uint32_t slot, struct sockaddr_un *sun)
{
	char suffix[SOFT_SHM_SUFFIX] = "";

	if (slot != 0)
		snprintf(suffix, sizeof(suffix), "/%u", slot);
	return soft_shm_address(fabric, gid, suffix, sun);
}

int
soft_shm_connect(const char *fabric, const uint8_t gid[16], uint32_t slot, int *out)
{
	struct sockaddr_un sun;
	socklen_t len = slot_address(fabric, gid, slot, &sun);
	int sock, ret = new_socket(&sock);

	if (ret != 0)
		return ret;
	if (connect(sock, (const struct sockaddr *)&sun, len) != 0) {
		ret = -errno;
		close(sock);
		return ret;
	}
	*out = sock;
	return 0;
}

int
soft_shm_listen(const char *fabric, const uint8_t gid[16], uint32_t slot, int *out, pid_t *pid)
{
	struct sockaddr_un sun;
	socklen_t len = slot_address(fabric, gid, slot, &sun);
	int sock, other, ret = new_socket(&sock);
	uid_t uid;

	if (ret != 0)
		return ret;
	if (bind(sock, (const struct sockaddr *)&sun, len) != 0 || listen(sock, BACKLOG) != 0) {
		ret = -errno;
		close(sock);
		if (pid == NULL)
			return ret;
		*pid = 0;
		if (ret == -EADDRINUSE && soft_shm_connect(fabric, gid, slot, &other) == 0) {
			soft_shm_peer(other, pid, &uid);
			close(other);
		}
		return ret;
	}
	*out = sock;
	return 0;
}

int
soft_shm_accept(int listener, int *sock)
{
	do {
		*sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (*sock < 0 && (errno == EINTR || errno == ECONNABORTED));
	return *sock < 0 ? -errno : 0;
}
