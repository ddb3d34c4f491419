/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Interrupts, and replies to messages. */
#include <errno.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca_log.h"
#include "vfu.h"

bool
vfu_irq(struct vfu *v, uint32_t vector)
{
	uint64_t one = 1;

	if (vector >= VFU_MSIX_MAX)
		return false;
	v->irq_pending[vector] = v->irq_fd[vector] < 0;
	return !v->irq_pending[vector] &&
	       write(v->irq_fd[vector], &one, sizeof(one)) == (ssize_t)sizeof(one);
}

void
vfu_irq_reset(struct vfu *v)
{
	memset(v->irq_pending, 0, sizeof(v->irq_pending));
}

/* Replies as vfu_reply(), with the descriptor @fd unless it is -1. */
static int
reply(struct vfu *v, const struct vfu_hdr *req, const void *a, uint32_t alen, const void *b,
      uint32_t blen, int err, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct vfu_hdr h = {
		.id = req->id,
		.cmd = req->cmd,
		.size = (uint32_t)sizeof(h) + alen + blen,
		.flags = VFU_REPLY | (err != 0 ? VFU_ERROR : 0),
		.error = (uint32_t)err,
	};
	struct iovec iov[3] = {
		{&h, sizeof(h)},
		{(void *)(uintptr_t)a, alen},
		{(void *)(uintptr_t)b, blen},
	};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 3};
	struct cmsghdr *c;
	ssize_t sent;

	if (fd >= 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	if (req->flags & VFU_NO_REPLY)
		return 0;
	sent = sendmsg(v->fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent == (ssize_t)h.size)
		return 0;
	if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
		return -EPIPE;
	/*
	 * The kernel limits the descriptors in flight (ETOOMANYREFS), those to other clients
	 * included.
	 */
	if (sent < 0 && fd >= 0 && errno != EAGAIN) {
		err = errno;
		HCA_LOG(ERR, "vfio-user: cannot send a file descriptor: %s", strerror(err));
		return reply(v, req, NULL, 0, NULL, 0, err, -1);
	}
	HCA_LOG(ERR, "vfio-user: the client does not read its replies: connection closed");
	return -ENOBUFS;
}

int
vfu_reply(struct vfu *v, const struct vfu_hdr *req, const void *a, uint32_t alen, const void *b,
	  uint32_t blen, int err)
{
	return reply(v, req, a, alen, b, blen, err, -1);
}

int
vfu_reply_fd(struct vfu *v, const struct vfu_hdr *req, const void *a, uint32_t alen, int fd)
{
	return reply(v, req, a, alen, NULL, 0, 0, fd);
}
