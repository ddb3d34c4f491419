/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Server side of vfio-user (QEMU, docs/interop/vfio-user.rst): one PCI device and one client at a
 * time, the virtual machine monitor.
 *
 * Each access to a register is a message, in order. Replies to writes leave before the write takes
 * effect: the guest's processor goes on meanwhile. Only the part of BAR 0 that the device shares is
 * memory, which the client may map: accesses there are then no messages.
 *
 * A client that breaks the protocol, or does not read its replies, loses its connection. Then, and
 * when a client leaves, the device is reset, and another client may connect.
 *
 * Thread rule: one thread.
 */
#ifndef HCA_VFU_H
#define HCA_VFU_H

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"

/* Regions and interrupts, as in linux/vfio.h (VFIO_PCI_*). */
enum vfu_region {
	VFU_BAR0 = 0,
	VFU_CONFIG = 7,
	VFU_REGIONS = 9
};
enum vfu_irq {
	VFU_MSIX = 2,
	VFU_IRQS = 5
};

#define VFU_MAX_DATA 4096u /* bytes of one register access */
#define VFU_MAX_MSG  65536u
#define VFU_MAX_FDS  16u
#define VFU_MSIX_MAX 64u

/* Functions of the device that the server calls. */
struct vfu_dev {
	void *arg; /* first argument of each function */
	uint64_t bar0_size;
	uint32_t config_size;
	uint32_t n_msix; /* at most VFU_MSIX_MAX */
	/*
	 * Part of BAR 0 that the client may map: @map_size bytes at offset @map_off of the BAR and
	 * of the file @map_fd, whole pages. map_fd -1: no part.
	 */
	int map_fd;
	uint64_t map_off, map_size;
	/* Access to registers. The range lies inside the region. Bytes are as on the bus. */
	void (*read)(void *arg, uint32_t region, uint64_t off, void *buf, uint32_t len);
	void (*write)(void *arg, uint32_t region, uint64_t off, const void *buf, uint32_t len);
	void (*reset)(void *arg);
};

struct vfu {
	struct vfu_dev dev;
	struct guest *guest;
	int fd;                         /* connection, -1 if there is none */
	bool versioned;                 /* VERSION, the first message of a client, has arrived */
	int irq_fd[VFU_MSIX_MAX];       /* eventfd of each vector, -1 if the guest has masked it */
	bool irq_pending[VFU_MSIX_MAX]; /* raised while the vector had no eventfd */
	/* Bytes of the next message that have arrived, and their descriptors. */
	uint32_t len;
	int fds[VFU_MAX_FDS];
	uint32_t n_fds;
	uint8_t msg[VFU_MAX_MSG];
};

void vfu_init(struct vfu *v, const struct vfu_dev *dev, struct guest *g);

/* Serves connection @fd, which becomes non-blocking. The server closes it. */
void vfu_attach(struct vfu *v, int fd);
/*
 * Receives what the client has sent and executes each complete message. Call it when the
 * connection is readable. Returns 0, or a negative errno after which the caller must call
 * vfu_detach(): -EPIPE if the client has left, otherwise logged.
 */
int vfu_receive(struct vfu *v);
/* Returns true if the client has sent bytes that vfu_receive() has not read. */
bool vfu_has_input(const struct vfu *v);
/* Closes the connection, the interrupts and the guest's memory, and resets the device. */
void vfu_detach(struct vfu *v);

/*
 * Raises an MSI-X vector. Returns false if the guest has masked the vector, or QEMU replaces its
 * eventfds. Then the interrupt is pending, and is raised when the vector gets an eventfd.
 */
bool vfu_irq(struct vfu *v, uint32_t vector);
/* Drops the pending interrupts. Each reset of the device calls it. */
void vfu_irq_reset(struct vfu *v);

/* Header of a message. Only vfu.c and vfu_msg.c use it. */
struct vfu_hdr {
	uint16_t id, cmd;
	uint32_t size, flags, error;
};
#define VFU_REPLY    1u
#define VFU_TYPE     15u
#define VFU_NO_REPLY 16u
#define VFU_ERROR    32u

/*
 * Executes the message in v->msg, v->len bytes with the header. Takes descriptors from v->fds by
 * setting their entry to -1. Returns 0 or a negative errno that ends the connection.
 */
int vfu_message(struct vfu *v, const struct vfu_hdr *h);
/*
 * Replies to @req with the error @err (a positive errno, 0 for none) and with the data @a followed
 * by @b.
 */
int vfu_reply(struct vfu *v, const struct vfu_hdr *req, const void *a, uint32_t alen, const void *b,
	      uint32_t blen, int err);
/*
 * Replies with the data @a and with the descriptor @fd, which stays open. Replies with an error if
 * @fd cannot be sent.
 */
int vfu_reply_fd(struct vfu *v, const struct vfu_hdr *req, const void *a, uint32_t alen, int fd);

#endif
