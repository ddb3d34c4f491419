/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Replacements for the calls of libc by which libibverbs, libmlx5 and librdmacm use descriptors of
 * the kernel's devices. A call for another file goes on to libc. Each replacement looks up libc's
 * function at its first use. Constructors of this library would be too late for that, because
 * constructors of other libraries run before them and make such calls.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* the headers would rename these functions of libc */
#undef _FORTIFY_SOURCE   /* the headers would define some of these functions inline */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>

#include "libc.h"
#include "preload.h"

static void
trace(const char *what, unsigned int a, unsigned int b, int rc)
{
	if (getenv(VERBS_ENV_TRACE) != NULL)
		fprintf(stderr, "verbs: %s 0x%x 0x%x: %s\n", what, a, b, strerror(rc));
}

/* Returns @ok if @rc is 0. Otherwise sets errno to @rc and returns -1. */
static ssize_t
result(int rc, size_t ok)
{
	if (rc == 0)
		return (ssize_t)ok;
	errno = rc;
	return -1;
}

/*
 * Call it before a command of the device. Returns false if the command must fail. Otherwise call
 * thread_release() after the command.
 */
static bool
command_begin(struct thread_state *before)
{
	if (node_interrupted())
		return false;
	thread_hold(before);
	node_catch_up();
	return true;
}

PUBLIC ssize_t
write(int fd, const void *buf, size_t len)
{
	struct fd_ref ref;
	uint32_t opcode = 0;
	struct thread_state before;
	int rc = EIO;

	REAL(ssize_t, write, int, const void *, size_t);
	if (!fds_maybe(fd))
		return real(fd, buf, len);
	ref = fds_get(fd);
	if (ref.kind == FD_NONE)
		return real(fd, buf, len);
	if (ref.kind != FD_NODE && ref.kind != FD_CM) {
		/* The kernel's event file has no write(). */
		rc = ref.kind == FD_EVENTS ? EINVAL : ENODEV;
	} else if (command_begin(&before)) {
		if (ref.kind == FD_NODE)
			rc = uverbs_write(ref.p, buf, len);
		thread_release(&before);
		/* The file of rdma_cm itself blocks signals, but not while it waits for an event.
		 */
		if (ref.kind == FD_CM)
			rc = cm_write(ref.p, buf, len);
	}
	if (len >= sizeof(opcode) && buf != NULL)
		memcpy(&opcode, buf, sizeof(opcode));
	trace(ref.kind == FD_CM ? "rdma_cm command" : "command", opcode, (unsigned int)len, rc);
	fds_put(&ref);
	return result(rc, len);
}

PUBLIC int
ioctl(int fd, unsigned long request, ...)
{
	const struct ib_uverbs_ioctl_hdr *h;
	struct fd_ref ref;
	struct thread_state before;
	va_list ap;
	void *arg;
	int rc = EIO;

	REAL(int, ioctl, int, unsigned long, ...);
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request != RDMA_VERBS_IOCTL || !fds_maybe(fd))
		return real(fd, request, arg);
	ref = fds_get(fd);
	if (ref.kind == FD_NONE)
		return real(fd, request, arg);
	h = arg;
	if (ref.kind != FD_NODE) {
		rc = ref.kind == FD_ORPHAN ? ENODEV : ENOTTY;
	} else if (command_begin(&before)) {
		rc = uverbs_ioctl(ref.p, arg);
		thread_release(&before);
	}
	trace("method", h != NULL ? h->object_id : 0, h != NULL ? h->method_id : 0, rc);
	fds_put(&ref);
	return (int)result(rc, 0);
}

PUBLIC ssize_t
read(int fd, void *buf, size_t len)
{
	struct fd_ref ref;
	ssize_t n;

	REAL(ssize_t, read, int, void *, size_t);
	if (!fds_maybe(fd))
		return real(fd, buf, len);
	ref = fds_get(fd);
	if (ref.kind == FD_NONE)
		return real(fd, buf, len);
	n = ref.kind == FD_EVENTS ? uverbs_events_read(ref.p, buf, len)
	    : ref.kind == FD_NODE || ref.kind == FD_CM
		    ? -EINVAL /* the kernel's device nodes have no read() */
		    : -ENODEV;
	fds_put(&ref);
	return n < 0 ? result((int)-n, 0) : n;
}

/* Name of read() in programs that are built with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
PUBLIC ssize_t
__read_chk(int fd, void *buf, size_t len, size_t room)
{
	REAL(ssize_t, __read_chk, int, void *, size_t, size_t);
	return fds_maybe(fd) && len <= room ? read(fd, buf, len) : real(fd, buf, len, room);
}

/* ---- Calls that close descriptors */

/*
 * Closes the files of descriptors that a call is about to close. In a handler that has interrupted
 * the device they stay open until a later call.
 */
static void
close_files(unsigned int first, unsigned int last)
{
	struct thread_state before;

	if (node_interrupted()) {
		fds_leave(first, last);
		return;
	}
	thread_hold(&before);
	fds_close_range(first, last);
	thread_release(&before);
}

PUBLIC int
close(int fd)
{
	REAL(int, close, int);
	if (fds_maybe(fd))
		close_files((unsigned int)fd, (unsigned int)fd);
	else if (fd >= 0)
		node_closes((unsigned int)fd, (unsigned int)fd);
	port_disown(fd);
	return real(fd);
}

static void
close_own(unsigned int first, unsigned int last)
{
	close_files(first, last);
	node_closes(first, last);
}

/* Enters the descriptor @to, the result of a call that has duplicated @fd. Returns @to. */
static int
duplicated(int fd, int to)
{
	if (fds_dup(fd, to))
		return port_own(to);
	(void)libc_close(to);
	return (int)result(EMFILE, 0);
}

PUBLIC int
dup(int fd)
{
	REAL(int, fcntl, int, int, ...);
	return duplicated(fd, real(fd, port_flags(F_DUPFD, F_DUPFD_CLOEXEC), 0));
}

/* Closes the file of @to before @fd replaces it. A call that fails closes nothing. */
static void
before_dup(int fd, int to)
{
	if (to >= 0 && libc_fcntl(fd, F_GETFD) >= 0)
		close_own((unsigned int)to, (unsigned int)to);
}

PUBLIC int
dup2(int fd, int to)
{
	REAL(int, dup2, int, int);
	if (fd == to)
		return real(fd, to);
	before_dup(fd, to);
	return duplicated(fd, real(fd, to));
}

PUBLIC int
dup3(int fd, int to, int flags)
{
	REAL(int, dup3, int, int, int);
	if (fd == to || (flags & ~O_CLOEXEC) != 0)
		return real(fd, to, flags);
	before_dup(fd, to);
	return duplicated(fd, real(fd, to, flags));
}

#define FCNTL(name_)                                                                               \
	PUBLIC int name_(int fd, int command, ...)                                                 \
	{                                                                                          \
		va_list ap;                                                                        \
		void *arg;                                                                         \
		int rc;                                                                            \
                                                                                                   \
		REAL(int, name_, int, int, ...);                                                   \
		va_start(ap, command);                                                             \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		rc = real(fd, command, arg);                                                       \
		return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, rc) : rc; \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

PUBLIC int
close_range(unsigned int first, unsigned int last, int flags)
{
	REAL(int, close_range, unsigned int, unsigned int, int);
	if ((flags & (int)CLOSE_RANGE_CLOEXEC) == 0)
		close_own(first, last);
	return real(first, last, flags);
}

PUBLIC void
closefrom(int first)
{
	REAL(void, closefrom, int);
	close_own(first < 0 ? 0 : (unsigned int)first, ~0u);
	real(first);
}

/* ---- Sockets */

/*
 * Replaces socket(). Rejects RDMA netlink, so that libibverbs and librdmacm look for devices in
 * /sys, where they find only the software device and not the machine's own RDMA devices.
 */
PUBLIC int
socket(int domain, int type, int protocol)
{
	REAL(int, socket, int, int, int);
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA)
		return (int)result(EPROTONOSUPPORT, 0);
	return port_own(real(domain, port_flags(type, SOCK_CLOEXEC), protocol));
}

/* Replaces accept() for the PMD of a port, which accepts connections in a thread of EAL. */
PUBLIC int
accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	REAL(int, accept4, int, struct sockaddr *, socklen_t *, int);
	return port_own(real(fd, addr.__sockaddr__, len, port_flags(0, SOCK_CLOEXEC)));
}
