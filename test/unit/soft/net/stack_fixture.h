/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A port's stack between frames of frames.h and the frames that it sends. */
#ifndef STACK_FIXTURE_H
#define STACK_FIXTURE_H

#include <rte_common.h>

#include "bb_test.h"
#include "frames.h"
#include "soft_port_stack.h"

#define SEC   UINT64_C(1000000000)
#define ROCE  BB_ROCE_UDP_PORT
#define US4   "192.0.2.1"
#define US6   "2001:db8::1"
#define LL    "fe80::bb:ff:fe00:1" /* link-local address of MAC_US */
#define PEER4 "192.0.2.2"
#define PEER6 "2001:db8::2"

static struct soft_port_stack s;
static struct soft_port_rx rx;
static struct frame out; /* the last frame sent */
static unsigned int sent;
static bool no_room;
static struct frame f;

static uint8_t *
room(void *arg, uint32_t len)
{
	assert_ptr_equal(arg, &sent);
	if (no_room)
		return NULL;
	sent++;
	memset(out.b, 0xee, sizeof(out.b));
	out.len = len;
	return out.b;
}

static void
start(uint32_t vlan)
{
	struct soft_port_opts o = {.n_ip = 2, .vlan = vlan, .n_neigh = 1};

	memcpy(o.ip[0].addr, ip_of(US4), 16);
	o.ip[0].prefix = 96 + 24;
	memcpy(o.ip[1].addr, ip_of(US6), 16);
	o.ip[1].prefix = 64;
	memcpy(o.neigh[0].ip, ip_of("203.0.113.9"), 16);
	memcpy(o.neigh[0].mac, "\x02\xdd\0\0\0\x09", 6);
	soft_port_stack_init(&s, &o, (const uint8_t *)MAC_US, room, &sent);
	sent = 0;
	no_room = false;
}

static int
setup(void **st)
{
	(void)st;
	start(0);
	return 0;
}

/* The frame is copied to memory of its exact size, so that ASan detects a read past its end. */
static enum soft_port_in
input_hw(const struct soft_port_hw *hw, uint64_t now)
{
	uint8_t *exact = malloc(f.len > 0 ? f.len : 1);
	enum soft_port_in in;

	assert_non_null(exact);
	memcpy(exact, f.b, f.len);
	in = soft_port_input(&s, exact, f.len, hw, &rx, now);
	free(exact);
	return in;
}

static enum soft_port_in
input(void)
{
	static const struct soft_port_hw none;

	return input_hw(&none, SEC);
}

static void
dropped_line(enum soft_port_drop why, int line)
{
	uint64_t before = s.stats.drop[why], sum = 0, after = 0;
	unsigned int i, n = sent;

	for (i = 0; i < SOFT_DROPS; i++)
		sum += s.stats.drop[i];
	if (input() != SOFT_PORT_IN_DROPPED)
		fail_msg("line %d: not dropped", line);
	for (i = 0; i < SOFT_DROPS; i++)
		after += s.stats.drop[i];
	if (s.stats.drop[why] != before + 1 || after != sum + 1)
		fail_msg("line %d: not counted as %s", line, soft_port_drop_str(why));
	if (sent != n)
		fail_msg("line %d: answered", line);
}
#define dropped(why) dropped_line(why, __LINE__)

#endif
