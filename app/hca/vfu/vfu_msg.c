/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The messages of vfio-user. Structures and numbers are those of QEMU's docs/interop/vfio-user.rst,
 * which takes them from linux/vfio.h; integers are in host order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca_log.h"
#include "vfu.h"

enum {
	CMD_VERSION = 1,
	CMD_DMA_MAP,
	CMD_DMA_UNMAP,
	CMD_GET_INFO,
	CMD_REGION_INFO,
	CMD_REGION_IO_FDS,
	CMD_IRQ_INFO,
	CMD_SET_IRQS,
	CMD_REGION_READ,
	CMD_REGION_WRITE,
	CMD_DMA_READ,
	CMD_DMA_WRITE,
	CMD_RESET,
	CMD_DIRTY_PAGES,
	CMD_REGION_WRITE_MULTI,
};

/*
 * Flags of linux/vfio.h. Device: VFIO_DEVICE_FLAGS_RESET and _PCI. Region: _READ and _WRITE, and
 * for a region that can be mapped _MMAP and _CAPS. Interrupt: VFIO_IRQ_INFO_EVENTFD.
 */
#define DEVICE_FLAGS  (1u << 0 | 1u << 1)
#define REGION_FLAGS  (1u << 0 | 1u << 1)
#define REGION_MAPS   (1u << 2 | 1u << 3)
#define CAP_SPARSE    1u /* VFIO_REGION_INFO_CAP_SPARSE_MMAP, version 1 */
#define IRQ_EVENTFD   (1u << 0)
#define MAP_WRITE     (1u << 1)
#define UNMAP_ALL     (1u << 1)
#define SET_DATA_NONE (1u << 0)
#define SET_DATA_BOOL (1u << 1)
#define SET_DATA_FD   (1u << 2)
#define SET_TRIGGER   (1u << 5)

struct map_req {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

struct unmap_req {
	uint32_t argsz, flags;
	uint64_t addr, size;
};

struct device_info {
	uint32_t argsz, flags, num_regions, num_irqs;
};

struct region_info {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t size, offset;
};

/* A region of which one part can be mapped. */
struct map_info {
	struct region_info region;
	uint16_t cap, version;
	uint32_t next;
	uint32_t n_areas, reserved;
	uint64_t off, size;
};

struct irq_info {
	uint32_t argsz, flags, index, count;
};

struct irq_set {
	uint32_t argsz, flags, index, start, count;
};

struct region_access {
	uint64_t offset;
	uint32_t region, count;
};

/*
 * Copies the @len bytes that every message of this command has. Returns false if the message is
 * shorter.
 */
static bool
body(const struct vfu *v, void *to, size_t len)
{
	if (v->len - sizeof(struct vfu_hdr) < len)
		return false;
	memcpy(to, v->msg + sizeof(struct vfu_hdr), len);
	return true;
}

static int
refuse(struct vfu *v, const struct vfu_hdr *h, int err)
{
	return vfu_reply(v, h, NULL, 0, NULL, 0, err);
}

static int
version(struct vfu *v, const struct vfu_hdr *h)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":8,"
				   "\"max_data_xfer_size\":4096}}";
	uint16_t number[2];

	if (!body(v, number, sizeof(number)) || number[0] != 0) {
		HCA_LOG(ERR, "vfio-user: the client's version is not 0.x");
		(void)refuse(v, h, EINVAL);
		return -EPROTO;
	}
	v->versioned = true;
	number[1] = 0;
	return vfu_reply(v, h, number, sizeof(number), caps, sizeof(caps), 0);
}

static int
dma_map(struct vfu *v, const struct vfu_hdr *h)
{
	struct map_req r;
	int rc;

	if (!body(v, &r, sizeof(r)) || v->n_fds > 1)
		return refuse(v, h, EINVAL);
	rc = guest_map(v->guest, r.addr, r.size, v->n_fds > 0 ? v->fds[0] : -1, r.offset,
		       (r.flags & MAP_WRITE) != 0);
	HCA_LOG(DEBUG, "DMA_MAP 0x%" PRIx64 "+0x%" PRIx64 ", flags %u, %s: %s", r.addr, r.size,
		r.flags, v->n_fds > 0 ? "file" : "no file", strerror(-rc));
	if (rc != 0)
		HCA_LOG(ERR, "cannot map %" PRIu64 " bytes of guest memory at 0x%" PRIx64 ": %s",
			r.size, r.addr, strerror(-rc));
	return refuse(v, h, -rc);
}

static int
dma_unmap(struct vfu *v, const struct vfu_hdr *h)
{
	struct unmap_req r;
	int rc = 0;

	if (!body(v, &r, sizeof(r)))
		return refuse(v, h, EINVAL);
	if (r.flags & UNMAP_ALL)
		guest_reset(v->guest);
	else
		rc = guest_unmap(v->guest, r.addr, r.size);
	HCA_LOG(DEBUG, "unmap 0x%" PRIx64 "+0x%" PRIx64 ": %s", r.addr, r.size, strerror(-rc));
	return vfu_reply(v, h, &r, sizeof(r), NULL, 0, -rc);
}

static uint64_t
region_size(const struct vfu *v, uint32_t region)
{
	return region == VFU_BAR0     ? v->dev.bar0_size
	       : region == VFU_CONFIG ? v->dev.config_size
				      : 0;
}

static int
device_info(struct vfu *v, const struct vfu_hdr *h)
{
	struct device_info i = {sizeof(i), DEVICE_FLAGS, VFU_REGIONS, VFU_IRQS};

	return vfu_reply(v, h, &i, sizeof(i), NULL, 0, 0);
}

static int
region_info(struct vfu *v, const struct vfu_hdr *h)
{
	struct region_info i;
	struct map_info m;
	uint32_t room;

	if (!body(v, &i, sizeof(i)) || i.index >= VFU_REGIONS)
		return refuse(v, h, EINVAL);
	room = i.argsz;
	i = (struct region_info){
		.argsz = sizeof(i),
		.index = i.index,
		.size = region_size(v, i.index),
	};
	i.flags = i.size != 0 ? REGION_FLAGS : 0;
	if (i.index != VFU_BAR0 || v->dev.map_fd < 0)
		return vfu_reply(v, h, &i, sizeof(i), NULL, 0, 0);
	i.flags |= REGION_MAPS;
	i.argsz = sizeof(m);
	i.cap_offset = sizeof(i);
	/* The client asks again, with room for argsz bytes. */
	if (room < sizeof(m))
		return vfu_reply(v, h, &i, sizeof(i), NULL, 0, 0);
	m = (struct map_info){
		.region = i,
		.cap = CAP_SPARSE,
		.version = 1,
		.n_areas = 1,
		.off = v->dev.map_off,
		.size = v->dev.map_size,
	};
	return vfu_reply_fd(v, h, &m, sizeof(m), v->dev.map_fd);
}

static int
irq_info(struct vfu *v, const struct vfu_hdr *h)
{
	struct irq_info i;

	if (!body(v, &i, sizeof(i)) || i.index >= VFU_IRQS)
		return refuse(v, h, EINVAL);
	i = (struct irq_info){.argsz = sizeof(i), .index = i.index};
	if (i.index == VFU_MSIX) {
		i.count = v->dev.n_msix;
		i.flags = IRQ_EVENTFD;
	}
	return vfu_reply(v, h, &i, sizeof(i), NULL, 0, 0);
}

/*
 * Returns whether all descriptors of the message may be eventfds, which have no file type. A write
 * to a pipe or socket without a reader would end this process by SIGPIPE.
 */
static bool
are_eventfds(const struct vfu *v)
{
	struct stat st;
	uint32_t i;

	for (i = 0; i < v->n_fds; i++)
		if (fstat(v->fds[i], &st) != 0 || (st.st_mode & S_IFMT) != 0)
			return false;
	return true;
}

static void
set_eventfd(struct vfu *v, uint32_t vector, int fd)
{
	int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;

	/* Sets O_NONBLOCK, because a full eventfd must not block the device. */
	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (v->irq_fd[vector] >= 0)
		close(v->irq_fd[vector]);
	v->irq_fd[vector] = fd;
	if (fd >= 0 && v->irq_pending[vector])
		(void)vfu_irq(v, vector);
}

/*
 * Sets or removes the eventfds of MSI-X vectors, or triggers vectors. Returns 0 or a positive
 * errno.
 */
static int
set_msix(struct vfu *v, const struct irq_set *s)
{
	uint32_t i;

	if (!(s->flags & SET_TRIGGER))
		return EINVAL; /* the virtual machine monitor masks vectors itself: it emulates
				  the MSI-X table */
	if (s->start > v->dev.n_msix || s->count > v->dev.n_msix - s->start)
		return EINVAL;
	if (s->flags & SET_DATA_NONE && s->count == 0) {
		for (i = 0; i < v->dev.n_msix; i++)
			set_eventfd(v, i, -1);
		return 0;
	}
	if (s->flags & SET_DATA_FD) {
		if (v->n_fds != 0 && (v->n_fds != s->count || !are_eventfds(v)))
			return EINVAL;
		for (i = 0; i < s->count; i++) {
			set_eventfd(v, s->start + i, v->n_fds != 0 ? v->fds[i] : -1);
			if (v->n_fds != 0)
				v->fds[i] = -1;
		}
		return 0;
	}
	for (i = 0; i < s->count; i++) {
		const uint8_t *on = v->msg + sizeof(struct vfu_hdr) + sizeof(*s);

		if (s->flags & SET_DATA_BOOL &&
		    v->len - sizeof(struct vfu_hdr) - sizeof(*s) < s->count)
			return EINVAL;
		if (s->flags & SET_DATA_NONE || (s->flags & SET_DATA_BOOL && on[i] != 0))
			(void)vfu_irq(v, s->start + i);
	}
	return 0;
}

static int
set_irqs(struct vfu *v, const struct vfu_hdr *h)
{
	struct irq_set s;

	if (!body(v, &s, sizeof(s)) || s.index >= VFU_IRQS)
		return refuse(v, h, EINVAL);
	HCA_LOG(DEBUG, "DEVICE_SET_IRQS: index %u, flags 0x%x, vectors %u+%u, %u files", s.index,
		s.flags, s.start, s.count, v->n_fds);
	if (s.index == VFU_MSIX)
		return refuse(v, h, set_msix(v, &s));
	/*
	 * The other kinds of interrupts have no vector, so a client can only disable them (count
	 * 0).
	 */
	return refuse(v, h, s.count == 0 ? 0 : EINVAL);
}

/* Returns whether an access lies inside its region and is not too long. */
static bool
access_ok(const struct vfu *v, const struct region_access *a)
{
	uint64_t size = region_size(v, a->region);

	return a->count <= VFU_MAX_DATA && a->offset < size && a->count <= size - a->offset;
}

static int
region_read(struct vfu *v, const struct vfu_hdr *h)
{
	uint8_t data[VFU_MAX_DATA];
	struct region_access a;

	if (!body(v, &a, sizeof(a)) || !access_ok(v, &a))
		return refuse(v, h, EINVAL);
	memset(data, 0, a.count);
	v->dev.read(v->dev.arg, a.region, a.offset, data, a.count);
	return vfu_reply(v, h, &a, sizeof(a), data, a.count, 0);
}

static int
region_write(struct vfu *v, const struct vfu_hdr *h)
{
	struct region_access a;
	int rc;

	if (!body(v, &a, sizeof(a)) || !access_ok(v, &a) ||
	    v->len - sizeof(*h) - sizeof(a) < a.count)
		return refuse(v, h, EINVAL);
	rc = vfu_reply(v, h, &a, sizeof(a), NULL, 0, 0);
	v->dev.write(v->dev.arg, a.region, a.offset, v->msg + sizeof(*h) + sizeof(a), a.count);
	return rc;
}

int
vfu_message(struct vfu *v, const struct vfu_hdr *h)
{
	if ((h->flags & VFU_TYPE) == VFU_REPLY)
		return 0; /* this server sends no commands, so it waits for no reply */
	if (!v->versioned && h->cmd != CMD_VERSION) {
		HCA_LOG(ERR, "vfio-user: the client's first message is %u, not VERSION", h->cmd);
		return -EPROTO;
	}
	switch (h->cmd) {
	case CMD_VERSION:
		return version(v, h);
	case CMD_DMA_MAP:
		return dma_map(v, h);
	case CMD_DMA_UNMAP:
		return dma_unmap(v, h);
	case CMD_GET_INFO:
		return device_info(v, h);
	case CMD_REGION_INFO:
		return region_info(v, h);
	case CMD_IRQ_INFO:
		return irq_info(v, h);
	case CMD_SET_IRQS:
		return set_irqs(v, h);
	case CMD_REGION_READ:
		return region_read(v, h);
	case CMD_REGION_WRITE:
		return region_write(v, h);
	case CMD_RESET:
		v->dev.reset(v->dev.arg);
		return refuse(v, h, 0);
	default:
		HCA_LOG(INFO, "vfio-user: message %u is not supported", h->cmd);
		return refuse(v, h, ENOTSUP);
	}
}
