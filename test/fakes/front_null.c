/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A front that does nothing, for tests of bb_hca. It aborts if bb_hca breaks a rule of front.h. All
 * functions are weak: a test defines those that it needs for its own purpose.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_prm_hca.h"
#include "front.h"
#include "hca.h"

/* Applies to all declarations of front.h. */
#pragma weak front_open
#pragma weak front_close
#pragma weak front_ethernet
#pragma weak front_ethernet_port
#pragma weak front_frames
#pragma weak front_stop
#pragma weak front_reset
#pragma weak front_command
#pragma weak front_doorbell
#pragma weak front_share_doorbells
#pragma weak front_shared_stores
#pragma weak front_dm
#pragma weak front_set_address
#pragma weak front_context_pages
#pragma weak front_poll
#pragma weak front_caps
#pragma weak front_ctx

int
front_open(const char *device_and_opts, const struct front_host *host, struct front **f)
{
	static uint8_t front;

	(void)device_and_opts, (void)host;
	*f = (struct front *)(void *)&front;
	return 0;
}

void
front_close(struct front *f)
{
	(void)f;
}

int
front_ethernet(struct front *f)
{
	(void)f;
	return 0;
}

bool
front_ethernet_port(struct front *f, uint8_t mac[6], uint32_t *frame)
{
	(void)f, (void)mac, (void)frame;
	return false;
}

const struct front_frames *
front_frames(const struct front *f)
{
	(void)f;
	return NULL;
}

void
front_stop(struct front *f, bool stop)
{
	(void)f, (void)stop;
}

void
front_reset(struct front *f)
{
	(void)f;
}

bool
front_command(struct front *f, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	(void)f, (void)in, (void)inlen, (void)out, (void)outlen;
	return false;
}

void
front_doorbell(struct front *f, uint32_t uar, uint32_t off, const void *data, uint32_t len)
{
	uint8_t copy[HCA_PAGE];

	(void)f;
	if (uar >= HCA_BAR0_SIZE / HCA_PAGE || off >= HCA_PAGE || len > HCA_PAGE - off)
		abort();
	memcpy(copy, data, len);
}

int
front_share_doorbells(struct front *f)
{
	(void)f;
	return -1;
}

uint64_t
front_shared_stores(const struct front *f)
{
	(void)f;
	return 0;
}

/* Device memory fills the second half of its range of BAR 0. */
uint8_t *
front_dm(struct front *f, uint64_t off, uint32_t len)
{
	static uint8_t dm[(FRONT_DM_END - FRONT_DM_FIRST) / 2 * HCA_PAGE];
	uint64_t at = off - (HCA_DM_FIRST + sizeof(dm));

	(void)f;
	if (off < HCA_DM_FIRST || off >= HCA_BAR0_SIZE)
		abort();
	return len <= sizeof(dm) && at <= sizeof(dm) - len ? dm + at : NULL;
}

int
front_set_address(struct front *f, uint32_t index, const struct bb_gid *gid, const uint8_t mac[6])
{
	(void)f, (void)gid, (void)mac;
	if (index >= FRONT_ADDRESSES)
		abort();
	return 0;
}

uint32_t
front_context_pages(const struct front *f)
{
	(void)f;
	return 0;
}

int
front_poll(struct front *f)
{
	(void)f;
	return -1;
}

/* There are general capabilities, all 0. */
int
front_caps(struct front *f, uint16_t type, bool current, uint8_t out[256])
{
	(void)f, (void)current;
	memset(out, 0, 256);
	return type == BB_PRM_CAP_GENERAL ? 0 : -1;
}

struct mlx5_ctx *
front_ctx(struct front *f)
{
	(void)f;
	return NULL;
}
