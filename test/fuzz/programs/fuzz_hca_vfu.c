/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A hostile client of vfio-user. An input is a list of messages: command, flags, a body, and how
 * many file descriptors come with it. Some bodies follow the form of their message, so that they
 * get further; some messages are cut or have a wrong size. The answers are read and dropped, after
 * a check of the file that comes with the answer about shared register pages.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <rte_log.h>

#include "fuzz_hca.h"

#define MAX_BODY 4200u
#define SET_IRQS 8u

/*
 * Bits of the first byte. The lowest three bits 0: the client has not sent VERSION. With both bits
 * the file of shared pages cannot be sent to the first client.
 */
#define SHARED     8u
#define UNSENDABLE 16u

static int doorbells = -1; /* file of shared register pages */
static int interrupt = -1; /* eventfd of all vectors */

int
front_share_doorbells(struct front *f)
{
	(void)f;
	if (doorbells >= 0)
		close(doorbells);
	doorbells = memfd_create("doorbells", MFD_CLOEXEC);
	fuzz_check(doorbells >= 0);
	return doorbells;
}

void
front_close(struct front *f)
{
	(void)f;
	if (doorbells >= 0)
		close(doorbells);
	doorbells = -1;
}

static void
put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* Checks that @fd is the file of shared register pages, and closes it. */
static void
check_file(int fd)
{
	struct stat got, own;

	fuzz_check(fstat(fd, &got) == 0 && fstat(doorbells, &own) == 0);
	fuzz_check(got.st_ino == own.st_ino);
	close(fd);
}

/* Takes the answers, so that the connection does not fill. */
static void
drain(int client)
{
	uint8_t buf[8192];
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {buf, sizeof(buf)};
	struct cmsghdr *c;
	int fd;

	for (;;) {
		struct msghdr mh = {.msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control.buf,
				    .msg_controllen = sizeof(control.buf)};

		if (recvmsg(client, &mh, MSG_DONTWAIT) <= 0)
			return;
		c = CMSG_FIRSTHDR(&mh);
		if (c == NULL)
			continue;
		fuzz_check(c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)));
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
		check_file(fd);
	}
}

/*
 * Sends a message. Returns vfu_receive()'s value. It is never -ENOBUFS, as the client reads its
 * replies.
 */
static int
message(struct fuzz_hca *f, struct fuzz_in *in)
{
	uint8_t msg[sizeof(struct vfu_hdr) + MAX_BODY] = {0}, how = fuzz_u8(in);
	uint32_t i, n, len = fuzz_u16(in) % MAX_BODY;
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct vfu_hdr h = {.id = how, .cmd = fuzz_u8(in) % 20, .flags = how & 0x30};
	struct iovec iov = {msg, sizeof(h) + len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int file = h.cmd == SET_IRQS && (how & 4) == 0 ? interrupt : f->ram_fd;
	int fds[4] = {file, file, file, file};
	struct cmsghdr *c;
	int rc;

	h.size = (uint32_t)sizeof(h) + len;
	if (how & 0x40)
		h.size = fuzz_u32(in);
	memcpy(msg, &h, sizeof(h));
	/* Words of the body. Registers that are read or written lie where they mean something. */
	n = fuzz_u8(in) % 16;
	for (i = 0; i < n && 4 * i + 4 <= len; i++) {
		uint32_t v = fuzz_u8(in);

		put32(msg + sizeof(h) + 4 * i, v < 0xf0 ? v << (v >> 4) : fuzz_u32(in));
	}
	if (how & 3) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE((how & 3) * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((how & 3) * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (how & 3) * sizeof(int));
	}
	if (how & 0x80)
		iov.iov_len = 1 + fuzz_u8(in) % iov.iov_len;
	(void)sendmsg(f->client, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	rc = vfu_receive(&f->h.vfu);
	fuzz_check(rc != -ENOBUFS);
	return rc;
}

static void
connect_again(struct fuzz_hca *f)
{
	vfu_detach(&f->h.vfu);
	fuzz_check(f->h.guest.n_maps == 0);
	close(f->client);
	fuzz_hca_attach(f);
	f->h.vfu.versioned = true;
}

/* Returns the number of open descriptors among the lowest 64. */
static int
open_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	static struct fuzz_hca f;
	uint8_t how = fuzz_u8(&in);
	int fds;

	if (interrupt < 0)
		interrupt = eventfd(0, EFD_NONBLOCK);
	fuzz_check(interrupt >= 0);
	fds = open_fds();
	rte_log_set_global_level(RTE_LOG_CRIT);
	fuzz_hca_open(&f, (how & SHARED) != 0);
	f.h.vfu.versioned = how % 8 != 0;
	if ((how & SHARED) != 0 && (how & UNSENDABLE) != 0)
		f.h.vfu.dev.map_fd = INT_MAX;
	while (in.left > 0) {
		if (message(&f, &in) != 0)
			connect_again(&f);
		(void)hca_poll(&f.h);
		drain(f.client);
	}
	fuzz_hca_close(&f);
	fuzz_check(open_fds() == fds); /* no descriptor is left open */
	return 0;
}
