/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A front that records its calls; see hca_rig.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca_rig.h"

struct fake_front fake_front;

int
front_open(const char *device_and_opts, const struct front_host *host, struct front **f)
{
	if (strcmp(device_and_opts, "none") == 0)
		return -ENODEV;
	fake_front = (struct fake_front){
		.opens = fake_front.opens + 1, .host = host, .poll_ms = -1, .shared_fd = -1};
	*f = (struct front *)(void *)&fake_front;
	return 0;
}

void
front_close(struct front *f)
{
	(void)f;
	fake_front.opens--;
	if (fake_front.shared_fd >= 0)
		close(fake_front.shared_fd);
	fake_front.shared_fd = -1;
}

int
front_share_doorbells(struct front *f)
{
	(void)f;
	if (fake_front.shared_fd >= 0)
		close(fake_front.shared_fd);
	fake_front.shared_fd = memfd_create("doorbells", MFD_CLOEXEC);
	if (fake_front.shared_fd < 0 ||
	    ftruncate(fake_front.shared_fd, (off_t)FRONT_UAR_END * HCA_PAGE) != 0)
		return -EMFILE;
	return fake_front.shared_fd;
}

uint64_t
front_shared_stores(const struct front *f)
{
	(void)f;
	return fake_front.polls;
}

void
front_reset(struct front *f)
{
	(void)f;
	fake_front.resets++;
}

bool
front_command(struct front *f, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	(void)f;
	(void)outlen;
	if (fake_front.unknown)
		return false;
	fake_front.commands++;
	fake_front.inlen = inlen;
	memcpy(fake_front.in, in, inlen < 64 ? inlen : 64);
	bb_prm_set(out, BB_PRM_CMD_STATUS, fake_front.status);
	return true;
}

void
front_doorbell(struct front *f, uint32_t uar, uint32_t off, const void *data, uint32_t len)
{
	struct fake_bell *b = &fake_front.bell[fake_front.bells++ % 8];

	(void)f;
	*b = (struct fake_bell){.uar = uar, .off = off, .len = len};
	memcpy(b->data, data, len < sizeof(b->data) ? len : sizeof(b->data));
}

uint8_t *
front_dm(struct front *f, uint64_t off, uint32_t len)
{
	uint64_t at = off - HCA_DM_FIRST;

	(void)f;
	return len <= sizeof(fake_front.dm) && at <= sizeof(fake_front.dm) - len
		       ? fake_front.dm + at
		       : NULL;
}

uint32_t
front_context_pages(const struct front *f)
{
	(void)f;
	return fake_front.context_pages;
}

int
front_poll(struct front *f)
{
	(void)f;
	fake_front.polls++;
	return fake_front.poll_ms;
}

int
front_caps(struct front *f, uint16_t type, bool current, uint8_t out[256])
{
	(void)f;
	(void)current;
	memset(out, 0, 256);
	if (type == BB_PRM_CAP_ATOMIC)
		return 0;
	if (type != BB_PRM_CAP_GENERAL)
		return -ENOENT;
	bb_prm_set(out, BB_PRM_HCA_LOG_MAX_QP, 9);
	bb_prm_set(out, BB_PRM_HCA_PORT_TYPE, 1);
	bb_prm_set(out, BB_PRM_HCA_DEVICE_MEMORY, 1);
	bb_prm_set(out, BB_PRM_HCA_PG, 1);
	return 0;
}

int
front_set_address(struct front *f, uint32_t index, const struct bb_gid *gid, const uint8_t mac[6])
{
	(void)f;
	fake_front.addresses++;
	fake_front.address_index = index;
	fake_front.address_set = gid != NULL;
	if (gid != NULL) {
		fake_front.address = *gid;
		memcpy(fake_front.mac, mac, sizeof(fake_front.mac));
	}
	return fake_front.address_ret;
}

void
front_stop(struct front *f, bool stop)
{
	(void)f;
	fake_front.stopped = stop;
}
