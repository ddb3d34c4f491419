/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <string.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca_log.h"
#include "hca_time.h"
#include "vfu.h"

/* vfu_receive() ends after this number of messages, or once this time has passed. */
#define MAX_MESSAGES 64
#define TURN_NS      UINT64_C(5000000)

void
vfu_init(struct vfu *v, const struct vfu_dev *dev, struct guest *g)
{
	uint32_t i;

	memset(v, 0, sizeof(*v));
	v->dev = *dev;
	v->guest = g;
	v->fd = -1;
	for (i = 0; i < VFU_MSIX_MAX; i++)
		v->irq_fd[i] = -1;
}

static void
close_fds(struct vfu *v)
{
	while (v->n_fds > 0)
		if (v->fds[--v->n_fds] >= 0)
			close(v->fds[v->n_fds]);
}

void
vfu_attach(struct vfu *v, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	v->fd = fd;
	v->len = 0;
	v->versioned = false;
}

void
vfu_detach(struct vfu *v)
{
	uint32_t i;

	if (v->fd >= 0)
		close(v->fd);
	v->fd = -1;
	v->len = 0;
	close_fds(v);
	for (i = 0; i < VFU_MSIX_MAX; i++)
		if (v->irq_fd[i] >= 0) {
			close(v->irq_fd[i]);
			v->irq_fd[i] = -1;
		}
	/*
	 * Resets the device first: the reset frees the ranges in which this process has mapped
	 * pages of the guest.
	 */
	v->dev.reset(v->dev.arg);
	guest_reset(v->guest);
}

/* Stores the descriptors that came with a message. Returns false if there are too many. */
static bool
take_fds(struct vfu *v, struct msghdr *mh)
{
	bool fits = (mh->msg_flags & MSG_CTRUNC) == 0;
	struct cmsghdr *c;
	size_t i, n;
	int fd;

	for (c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (v->n_fds < VFU_MAX_FDS) {
				v->fds[v->n_fds++] = fd;
			} else {
				close(fd);
				fits = false;
			}
		}
	}
	return fits;
}

/*
 * Receives at most up to the end of the current message. So the descriptors of the next message
 * stay in the socket. Returns the number of bytes, 0 if there are none now, or a negative errno.
 */
static int
receive_some(struct vfu *v, uint32_t want)
{
	/*
	 * Has room for more descriptors than are permitted. QEMU's user-mode emulation does not
	 * report MSG_CTRUNC, so their number must show that there were too many.
	 */
	union {
		char buf[CMSG_SPACE(2 * VFU_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {v->msg + v->len, want - v->len};
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(v->fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0
		       : errno == ECONNRESET             ? -EPIPE
							 : -errno;
	if (!take_fds(v, &mh)) {
		HCA_LOG(ERR,
			"vfio-user: the file descriptors of a message did not arrive: it has more "
			"than %u, or this process has no free descriptor (ulimit -n)",
			VFU_MAX_FDS);
		return -EPROTO;
	}
	if (n == 0)
		return -EPIPE;
	v->len += (uint32_t)n;
	return (int)n;
}

bool
vfu_has_input(const struct vfu *v)
{
	char c;

	return v->fd >= 0 && recv(v->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

int
vfu_receive(struct vfu *v)
{
	struct vfu_hdr h;
	uint64_t until = hca_now() + TURN_NS;
	uint32_t want, n;
	int rc;

	/*
	 * Executes messages for a limited time, so that the guests of other functions are served
	 * in between. The next poll() reports the remaining messages.
	 */
	for (n = 0; n < MAX_MESSAGES;) {
		want = sizeof(h);
		if (v->len >= sizeof(h)) {
			memcpy(&h, v->msg, sizeof(h));
			want = h.size;
			if (want < sizeof(h) || want > VFU_MAX_MSG) {
				HCA_LOG(ERR, "vfio-user: invalid message of %u bytes (%zu to %u)",
					want, sizeof(h), VFU_MAX_MSG);
				return -EPROTO;
			}
		}
		if (v->len < want) {
			rc = receive_some(v, want);
			if (rc <= 0)
				return rc;
			continue;
		}
		rc = vfu_message(v, &h);
		v->len = 0;
		close_fds(v);
		if (rc != 0)
			return rc;
		if (hca_now() >= until)
			return 0;
		n++;
	}
	return 0;
}
