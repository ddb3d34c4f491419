/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Frames from the wire to a port's stack: any bytes, in any order, at any time. The first byte
 * selects the port's options (enum option). Steps follow: a frame has its kind, its length in two
 * bytes, and its bytes. Checksums can be corrected, so that mutations get past them.
 *
 * Invariants: no byte outside the frame is read, none outside an answer written. Each frame is
 * either a RoCE datagram for one of our addresses, or handled, or counted as dropped for one
 * reason. A datagram lies inside its frame. Answers are whole frames from our MAC, at most one
 * per frame. The neighbour table keeps its bounds and its static entries.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "bb_bytes.h"
#include "fuzz.h"
#include "soft_port_stack.h"

#define MAX_STEPS 64
#define MAX_FRAME 2000

enum option {
	OPTION_VLAN = 1,
	OPTION_NO_ROOM = 2, /* sometimes there is no memory for an answer */
	OPTION_HOSTED = 4,  /* a host has set the addresses, and gets what is no RoCE datagram */
};

enum step {
	STEP_FRAME,   /* the upper bits: enum frame_flags */
	STEP_TIME,    /* advances by a multiple of 256 ms */
	STEP_RESOLVE, /* looks up one of sixteen neighbours */
	STEPS,
};

enum frame_flags {
	FRAME_SUMS = 4,
	FRAME_STRIPPED = 8,
	FRAME_IP_GOOD = 16,
	FRAME_L4_GOOD = 32,
	FRAME_BAD = 64,
};

static const uint8_t us[6] = {0x02, 0xbb, 0, 0, 0, 1}, peer[6] = {0x02, 0xcc, 0, 0, 0, 2};

struct world {
	struct fuzz_in in;
	struct soft_port_stack s;
	uint64_t now;
	uint8_t *out;
	uint32_t out_len, sent, rooms;
	bool short_of;
};

/* Checks the last answer, when the next one is begun or at the end. */
static void
look_at_answer(struct world *w)
{
	if (w->out == NULL)
		return;
	check(w->out_len >= 42 && w->out_len <= MAX_FRAME + 4, "length of an answer");
	check(memcmp(w->out + 6, us, 6) == 0, "an answer of another MAC");
	free(w->out);
	w->out = NULL;
}

static uint8_t *
room(void *arg, uint32_t len)
{
	struct world *w = arg;

	look_at_answer(w);
	if (w->short_of && ++w->rooms % 3 == 0)
		return NULL;
	w->sent++;
	w->out_len = len;
	w->out = malloc(len);
	check(w->out != NULL, "malloc");
	memset(w->out, 0, len);
	return w->out;
}

static void
address(const char *text, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (inet_pton(AF_INET, text, ip + 12) == 1)
		ip[10] = ip[11] = 0xff;
	else
		check(inet_pton(AF_INET6, text, ip) == 1, "inet_pton");
}

static void
world_open(struct world *w, uint8_t options)
{
	struct soft_port_opts o = {.n_ip = 2, .n_neigh = 1};
	uint8_t ip[2][16], mac[2][6];
	uint32_t i;

	address("192.0.2.1", o.ip[0].addr);
	o.ip[0].prefix = 96 + 24;
	address("2001:db8::1", o.ip[1].addr);
	o.ip[1].prefix = 64;
	address("192.0.2.250", o.neigh[0].ip);
	memcpy(o.neigh[0].mac, peer, 6);
	o.vlan = options & OPTION_VLAN ? 12 : 0;
	w->short_of = (options & OPTION_NO_ROOM) != 0;
	soft_port_stack_init(&w->s, &o, us, room, w);
	if ((options & OPTION_HOSTED) == 0)
		return;
	soft_port_stack_host(&w->s);
	for (i = 0; i < o.n_ip; i++) {
		memcpy(ip[i], o.ip[i].addr, sizeof(ip[i]));
		memcpy(mac[i], us, sizeof(mac[i]));
	}
	/* The last address has a MAC of its own, as that of a macvlan has. */
	mac[1][5] ^= 0x10;
	soft_port_stack_set(&w->s, (const uint8_t(*)[16])ip, (const uint8_t(*)[6])mac, o.n_ip);
}

static uint16_t
sum(const uint8_t *p, uint32_t len, uint32_t add)
{
	for (uint32_t i = 0; i < len; i++)
		add += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (add >> 16 != 0)
		add = (add & 0xffff) + (add >> 16);
	return (uint16_t)~add;
}

/* Corrects the checksums of IPv4, ICMP or ICMPv6 in what looks like one. */
static void
set_sums(uint8_t *p, uint32_t len)
{
	uint32_t l3 = len > 18 && p[12] == 0x81 ? 18 : 14, l4, add = 0;

	if (len >= l3 + 28 && p[l3] == 0x45) {
		bb_put16(p + l3 + 10, 0);
		bb_put16(p + l3 + 10, sum(p + l3, 20, 0));
		l4 = l3 + 20;
		if (p[l3 + 9] != IPPROTO_ICMP)
			return;
		len = (uint32_t)(p[l3 + 2] << 8 | p[l3 + 3]) + l3;
	} else if (len >= l3 + 48 && p[l3] >> 4 == 6 && p[l3 + 6] == IPPROTO_ICMPV6) {
		l4 = l3 + 40;
		len = RTE_MIN(len, (uint32_t)(p[l3 + 4] << 8 | p[l3 + 5]) + l4);
		add = (uint16_t)~sum(p + l3 + 8, 32, IPPROTO_ICMPV6 + len - l4);
	} else {
		return;
	}
	if (len < l4 + 4 || len > MAX_FRAME)
		return;
	bb_put16(p + l4 + 2, 0);
	bb_put16(p + l4 + 2, sum(p + l4, len - l4, add));
}

static uint64_t
drops(const struct world *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SOFT_DROPS; i++)
		n += w->s.stats.drop[i];
	return n;
}

static void
step_frame(struct world *w, uint8_t flags)
{
	struct soft_port_hw hw = {
		.vlan_stripped = (flags & FRAME_STRIPPED) != 0,
		.ip_good = (flags & FRAME_IP_GOOD) != 0,
		.l4_good = (flags & FRAME_L4_GOOD) != 0,
		.ip_bad = (flags & FRAME_BAD) != 0,
		.l4_bad = (flags & FRAME_BAD) != 0,
		.tci = 12,
	};
	uint32_t i, len = fuzz_u16(&w->in) % (MAX_FRAME + 1), sent = w->sent;
	uint64_t dropped = drops(w);
	/* Room for set_sums(); then memory of the frame's exact size. */
	uint8_t *scratch = calloc(1, MAX_FRAME), *p = malloc(len > 0 ? len : 1);
	struct soft_port_rx rx, again;
	enum soft_port_in in;

	check(scratch != NULL && p != NULL, "malloc");
	for (i = 0; i < len && w->in.left != 0; i++)
		scratch[i] = fuzz_u8(&w->in);
	if ((flags & FRAME_SUMS) != 0)
		set_sums(scratch, len);
	memcpy(p, scratch, len);
	free(scratch);
	in = soft_port_input(&w->s, p, len, &hw, &rx, w->now);
	check((drops(w) != dropped) == (in == SOFT_PORT_IN_DROPPED) && drops(w) <= dropped + 1,
	      "a frame is dropped for one reason");
	check(w->s.hosted ? in == SOFT_PORT_IN_ROCE || in == SOFT_PORT_IN_HOST
			  : in != SOFT_PORT_IN_HOST,
	      "a frame that is neither for the device nor for the host");
	check(w->sent <= sent + 1 && (in == SOFT_PORT_IN_DONE || w->sent == sent),
	      "an answer to what is not dealt with");
	if (in == SOFT_PORT_IN_ROCE) {
		/* Taken by the guess or not: the result must be that of the full parser. */
		check(soft_port_parse(&w->s, p, len, &hw, &again) == SOFT_DROP_NONE &&
			      memcmp(&rx, &again, sizeof(rx)) == 0,
		      "a datagram that was taken for another");
		check(soft_port_is_own_addr(&w->s, rx.net.dst) && rx.dport == BB_ROCE_UDP_PORT,
		      "a datagram that is not for us");
		check(rx.l4_len >= SOFT_UDP_HDR && rx.l3_off + rx.l3_len <= len &&
			      rx.l4_off == rx.l3_off + (rx.v4 ? 20 : 40) &&
			      rx.l4_off + rx.l4_len <= rx.l3_off + rx.l3_len,
		      "a datagram that is not in its frame");
		check(memcmp(rx.dst_mac, soft_port_own_mac(&w->s, rx.net.dst), 6) == 0,
		      "a datagram to the MAC of another address");
		check(soft_ip_is_host(rx.net.src), "a datagram of no host");
		/* Bytes that the engine reads. */
		for (i = 0; i < rx.l4_len; i++)
			sent += p[rx.l4_off + i];
	}
	free(p);
}

static void
step_resolve(struct world *w, uint8_t which)
{
	uint8_t ip[16], mac[6] = {0};
	char text[64];

	snprintf(text, sizeof(text), which & 8 ? "2001:db8::%u" : "192.0.2.%u", which % 8 + 1u);
	address(text, ip);
	if (soft_port_resolve(&w->s, ip, w->now, NULL, mac) == SOFT_NEIGH_FOUND)
		check((mac[0] & 1) == 0 && memcmp(mac, "\0\0\0\0\0\0", 6) != 0,
		      "a neighbour without a MAC");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct soft_neigh_entry *e;
	uint8_t ip[16];

	check(w != NULL, "calloc");
	w->in = (struct fuzz_in){data, len};
	world_open(w, fuzz_u8(&w->in));
	for (uint32_t i = 0; i < MAX_STEPS && w->in.left != 0; i++) {
		uint8_t step = fuzz_u8(&w->in);

		switch (step % 4) {
		case STEP_FRAME:
			step_frame(w, step);
			break;
		case STEP_TIME:
			w->now += (uint64_t)fuzz_u8(&w->in) << 28;
			soft_neigh_tick(&w->s.neigh, w->now);
			break;
		case STEP_RESOLVE:
			step_resolve(w, fuzz_u8(&w->in));
			break;
		default:
			break;
		}
		check(w->s.neigh.count <= SOFT_NEIGH_MAX && w->s.neigh.asking <= SOFT_NEIGH_ASKING,
		      "the table's bounds");
	}
	address("192.0.2.250", ip);
	e = soft_neigh_peek(&w->s.neigh, ip);
	check(e != NULL && e->state == SOFT_NEIGH_STATIC && memcmp(e->mac, peer, 6) == 0,
	      "the static neighbour");
	look_at_answer(w);
	free(w);
	return 0;
}
