/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>
#include <unistd.h>

#include "fw.h"
#include "hca_pci.h"
#include "hca_time.h"

/*
 * An 8-byte store to a register is a doorbell if the client sends nothing more for this time. A
 * BlueFlame copy of a WQE begins with the same 8 bytes, so only the time distinguishes the two. A
 * copy of more than 8 bytes waits for its other stores without a time limit. A store to another
 * register, or to the start of the same register, ends the copy.
 */
#define BF_WAIT_NS    500000u
#define DOORBELL_SIZE 8u

static void *
host_window(void *arg, const uint64_t *pa, uint32_t n, unsigned int log_sz)
{
	return guest_window(&((struct hca *)arg)->guest, pa, n, log_sz);
}

static void
host_unwindow(void *arg, void *window, uint32_t n, unsigned int log_sz)
{
	(void)n;
	(void)log_sz;
	guest_window_free(&((struct hca *)arg)->guest, window);
}

static void *
host_at(void *arg, uint64_t pa, uint64_t len, bool write)
{
	return guest_at(&((struct hca *)arg)->guest, pa, len, write);
}

static void
host_eqe(void *arg, uint32_t eqn, uint8_t type, uint8_t sub, const void *data, unsigned int len)
{
	hca_eq_post(arg, eqn, type, sub, data, len);
}

static void
host_event(void *arg, uint8_t type, uint8_t sub, const void *data, unsigned int len)
{
	hca_event(arg, type, sub, data, len);
}

static bool
host_room(void *arg, uint8_t type)
{
	return hca_event_room(arg, type);
}

static void
host_fatal(void *arg)
{
	hca_fatal(arg, HCA_HEALTH_HW);
}

static void
dev_read(void *arg, uint32_t region, uint64_t off, void *buf, uint32_t len)
{
	struct hca *h = arg;

	if (region == VFU_CONFIG)
		memcpy(buf, h->config + off, len);
	else
		hca_bar_read(h, off, buf, len);
}

static void
dev_write(void *arg, uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	if (region == VFU_CONFIG)
		hca_config_write(arg, off, buf, len);
	else
		hca_bar_write(arg, off, buf, len);
}

static void
dev_reset(void *arg)
{
	struct hca *h = arg;

	hca_reset(h);
	hca_config_init(h);
}

/*
 * Offers the register pages of users to the monitor, which maps them for the guest. Each client
 * gets a new file, because the last one may still have the old file mapped.
 */
static int
share_doorbells(struct hca *h)
{
	int fd = front_share_doorbells(h->front);

	if (fd < 0)
		return fd;
	h->vfu.dev.map_fd = fd;
	h->vfu.dev.map_off = (uint64_t)FRONT_UAR_SHARED * HCA_PAGE;
	h->vfu.dev.map_size = (uint64_t)(FRONT_UAR_END - FRONT_UAR_SHARED) * HCA_PAGE;
	return 0;
}

int
hca_open(struct hca *h, const struct hca_opts *o)
{
	const struct vfu_dev dev = {
		.arg = h,
		.bar0_size = HCA_BAR0_SIZE,
		.config_size = sizeof(h->config),
		.n_msix = HCA_N_MSIX,
		.map_fd = -1,
		.read = dev_read,
		.write = dev_write,
		.reset = dev_reset,
	};
	int rc;

	h->o = *o;
	h->host = (struct front_host){
		.arg = h,
		.window = host_window,
		.unwindow = host_unwindow,
		.at = host_at,
		.eqe = host_eqe,
		.event = host_event,
		.room = host_room,
		.fatal = host_fatal,
	};
	guest_init(&h->guest);
	vfu_init(&h->vfu, &dev, &h->guest);
	rc = front_open(o->device, &h->host, &h->front);
	if (rc != 0)
		goto fini;
	if (o->eth)
		rc = front_ethernet(h->front);
	if (rc != 0)
		goto close;
	hca_config_init(h);
	fw_reset(h);
	return 0;

close:
	front_close(h->front);
fini:
	guest_fini(&h->guest);
	return rc;
}

int
hca_attach(struct hca *h, int fd)
{
	int rc = h->o.shared ? share_doorbells(h) : 0;

	if (rc == 0)
		vfu_attach(&h->vfu, fd);
	else
		close(fd);
	return rc;
}

void
hca_close(struct hca *h)
{
	if (h->vfu.fd >= 0)
		vfu_detach(&h->vfu);
	hca_reset(h);
	front_close(h->front);
	fw_fini(h);
	hca_cmdq_fini(h);
	guest_fini(&h->guest);
}

/* Copies the counters of frames, which this thread writes, for other threads. */
static void
copy_frames(struct hca *h)
{
	const uint64_t *from = (const void *)front_frames(h->front);
	uint64_t *to = (void *)&h->stats.frames;
	size_t i;

	for (i = 0; from != NULL && i < sizeof(h->stats.frames) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

int
hca_poll(struct hca *h)
{
	bool resumed = hca_cmdq_resume(h);
	int ms;

	/*
	 * The time does not count while input is unread: the next store may already be in the
	 * socket.
	 */
	if (h->bf.len == DOORBELL_SIZE && hca_now() - h->bf.since >= BF_WAIT_NS &&
	    !vfu_has_input(&h->vfu))
		hca_bf_flush(h);
	guest_drop_writes(&h->guest);
	ms = front_poll(h->front);
	copy_frames(h);
	if (h->o.shared)
		__atomic_store_n(&h->stats.shared_stores, front_shared_stores(h->front),
				 __ATOMIC_RELAXED);
	if (resumed)
		return 0;
	return h->bf.len == DOORBELL_SIZE && ms != 0 ? 1 : ms;
}
