/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fault injection: packets that are lost, duplicated, reordered, corrupted or delayed, and a link
 * that accepts no packets. Each direction has its own rates. The device's seed selects the packets.
 * So if the same packets come in the same order, the same faults apply to them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "soft_wire.h"

#include "soft_ctl.h"

/* Range of the extra delay of a reordered packet, in addition to the delay of all packets. */
#define REORDER_MIN_US 20u
#define REORDER_MAX_US 500u
#define MILLION        1000000u
#define ECN_MASK       3u
#define MAX_MS         3600000u
#define ECN_CE         3u

static const struct {
	const char *key;
	size_t at;
} rates[] = {
	{"drop", offsetof(struct soft_net_fault, drop)},
	{"dup", offsetof(struct soft_net_fault, dup)},
	{"reorder", offsetof(struct soft_net_fault, reorder)},
	{"corrupt", offsetof(struct soft_net_fault, corrupt)},
	{"ecn", offsetof(struct soft_net_fault, ecn)},
};

/* Converts a percentage such as "1" or "0.05" to millionths. Returns 0 or -EINVAL. */
static int
parse_percent(const char *value, uint32_t *millionths)
{
	uint32_t whole = 0, part = 0, unit = MILLION / 100;
	const char *p = value;

	if (p == NULL || *p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		whole = whole * 10 + (uint32_t)(*p - '0');
		if (whole > 100)
			return -EINVAL;
	}
	if (*p == '.') {
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			part += unit * (uint32_t)(*p - '0');
		}
	}
	if (*p != '\0' || whole * (MILLION / 100) + part > MILLION)
		return -EINVAL;
	*millionths = whole * (MILLION / 100) + part;
	return 0;
}

/* Parses a decimal number from 1 to @max, followed by no other text. Returns 0 or -EINVAL. */
static int
parse_number(const char *value, uint32_t max, uint32_t *number)
{
	unsigned long v;
	char *end;

	if (*value < '0' || *value > '9')
		return -EINVAL;
	v = strtoul(value, &end, 10);
	if (*end != '\0' || v == 0 || v > max)
		return -EINVAL;
	*number = (uint32_t)v;
	return 0;
}

static int
parse_ms(const char *value, uint32_t *ms)
{
	return parse_number(value, MAX_MS, ms);
}

/*
 * Copies the text before the colon to @first and returns the text after the colon. Returns NULL if
 * there is no colon or the text is too long.
 */
static const char *
split(const char *value, char first[16])
{
	const char *colon = value != NULL ? strchr(value, ':') : NULL;

	if (colon == NULL || colon - value >= 16)
		return NULL;
	memcpy(first, value, (size_t)(colon - value));
	first[colon - value] = '\0';
	return colon + 1;
}

/* Parses "PERCENT:MS" of the options tx_stall and rx_stall. Returns 0 or -EINVAL. */
static int
parse_stall(const char *value, struct soft_net_fault *f)
{
	char percent[16];
	const char *ms = split(value, percent);

	if (ms == NULL || parse_percent(percent, &f->stall) != 0)
		return -EINVAL;
	return parse_ms(ms, &f->stall_ms);
}

/* Parses "PACKETS" or "PACKETS:MS" of the options tx_full and rx_full. Returns 0 or -EINVAL. */
static int
parse_full(const char *value, struct soft_net_fault *f)
{
	char packets[16];
	const char *ms = split(value, packets);
	uint32_t for_ms = 0;

	if (ms != NULL && parse_ms(ms, &for_ms) != 0)
		return -EINVAL;
	if (value == NULL ||
	    parse_number(ms != NULL ? packets : value, UINT32_MAX, &f->full_after) != 0)
		return -EINVAL;
	f->full_ms = for_ms;
	return 0;
}

int
soft_flap_opt(const char *value, struct soft_opts *opts)
{
	char up[16];
	const char *down = split(value, up);

	if (down == NULL || parse_ms(up, &opts->flap_up) != 0)
		return -EINVAL;
	return parse_ms(down, &opts->flap_down);
}

int
soft_net_fault_opt(const char *key, const char *value, struct soft_opts *opts)
{
	struct soft_net_fault *f = strncmp(key, "tx_", 3) == 0 ? &opts->tx_fault : &opts->rx_fault;
	unsigned long us;
	char *end;
	uint32_t i;

	key += 3;
	for (i = 0; i < RTE_DIM(rates); i++)
		if (strcmp(key, rates[i].key) == 0)
			return parse_percent(value,
					     (uint32_t *)(void *)((uint8_t *)f + rates[i].at));
	if (strcmp(key, "stall") == 0)
		return parse_stall(value, f);
	if (strcmp(key, "full") == 0)
		return parse_full(value, f);
	if (value == NULL || *value < '0' || *value > '9')
		return -EINVAL;
	us = strtoul(value, &end, 10);
	if (*end != '\0' || us > MILLION)
		return -EINVAL;
	f->delay = (uint32_t)us;
	return 0;
}

/*
 * Returns the next pseudorandom number (xorshift64*). If the seed is not 0, the state runs through
 * all values except 0.
 */
static uint32_t
draw(struct soft_engine *e)
{
	uint64_t x = e->net.faults != 0 ? e->net.faults : e->dev->opts.seed * 2 + 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	e->net.faults = x;
	return (uint32_t)(x * 0x2545f4914f6cdd1dull >> 32);
}

static bool
draw_fault(struct soft_engine *e, uint32_t millionths)
{
	return millionths != 0 && draw(e) % MILLION < millionths;
}

bool
soft_net_loses(struct soft_engine *e)
{
	if (e->net.spared) {
		e->net.spared = false;
		return false;
	}
	return draw_fault(e, e->dev->opts.tx_fault.drop);
}

/*
 * Holds a packet until time @due. Takes ownership of @m. Returns false if the packet is dropped
 * instead.
 */
static bool
hold(struct soft_engine *e, struct soft_packet_msg *m, uint64_t due)
{
	struct soft_packet_msg *at;

	if (e->n_held_packets >= 2 * SOFT_WIRE_QUEUE) {
		free(m);
		return false;
	}
	e->n_held_packets++;
	e->chores = true;
	m->due = due;
	TAILQ_FOREACH_REVERSE(at, &e->held_packets, soft_packets, held)
	{
		if (at->due <= m->due)
			break;
	}
	if (at != NULL)
		TAILQ_INSERT_AFTER(&e->held_packets, at, m, held);
	else
		TAILQ_INSERT_HEAD(&e->held_packets, m, held);
	return true;
}

static struct soft_packet_msg *
copy(const struct soft_packet_msg *m)
{
	struct soft_packet_msg *twin = malloc(sizeof(*m) + m->len);

	if (twin != NULL)
		memcpy(twin, m, sizeof(*m) + m->len);
	return twin;
}

/*
 * Returns true if a switch may mark the packet, because its ECN field is ECT(0) or ECT(1): the
 * sender understands ECN (RFC 3168, 5).
 */
static bool
may_be_marked(const struct soft_packet_msg *m)
{
	uint32_t ecn = m->net.tclass & ECN_MASK;

	return ecn != 0 && ecn != ECN_CE;
}

static void
mark(struct soft_packet_msg *m)
{
	uint8_t *ip = m->data;
	uint32_t old, sum;

	m->net.tclass |= ECN_CE;
	if (ip[0] >> 4 == 6) {
		ip[1] |= ECN_CE << 4;
		return;
	}
	/* Updates the checksum of the IPv4 header incrementally (RFC 1624, equation 3). */
	old = (uint32_t)ip[0] << 8 | ip[1];
	ip[1] |= ECN_CE;
	sum = (uint16_t) ~((uint32_t)ip[10] << 8 | ip[11]);
	sum += (uint16_t)~old + ((uint32_t)ip[0] << 8 | ip[1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	bb_put16(ip + 10, (uint16_t)~sum);
}

/* Selects all faults of the next packet. A lost packet gets no other faults. */
static uint8_t
draw_hits(struct soft_engine *e, const struct soft_packet_msg *m, const struct soft_net_fault *f)
{
	uint8_t hits = 0;

	if (draw_fault(e, f->drop))
		return SOFT_HIT_DROP;
	if (draw_fault(e, f->dup))
		hits |= SOFT_HIT_DUP;
	if (draw_fault(e, f->corrupt))
		hits |= SOFT_HIT_CORRUPT;
	if (draw_fault(e, f->reorder))
		hits |= SOFT_HIT_REORDER;
	if (may_be_marked(m) && draw_fault(e, f->ecn))
		hits |= SOFT_HIT_ECN;
	return hits;
}

static void
pass(struct soft_engine *e, struct soft_packet_msg *m, const struct soft_net_fault *f)
{
	uint64_t us = f->delay, now = soft_ticks(e->dev), due, *until = &e->net.stall_until[m->rx];
	uint32_t *stalled = &e->net.stalled[m->rx];

	if (draw_fault(e, f->stall))
		*until = now + soft_time_cycles(f->stall_ms * UINT64_C(1000000));
	if ((m->hits & SOFT_HIT_REORDER) != 0)
		us += REORDER_MIN_US + draw(e) % (REORDER_MAX_US - REORDER_MIN_US);
	due = now + soft_time_cycles(us * 1000);
	/*
	 * During a stall every packet waits. When the stall is over, packets that it held may not
	 * have left yet. This packet must leave after them, so it waits, too.
	 */
	if (*stalled != 0 || now < *until) {
		m->hits |= SOFT_HIT_STALL;
		if (hold(e, m, RTE_MAX(due, *until)))
			++*stalled;
	} else if (us != 0 || !soft_packet_forward(e, m)) {
		(void)hold(e, m, due);
	}
}

/*
 * Counts a packet that passed in one direction. After the configured number of packets, the link
 * behaves as if its buffer were full: it accepts no packet until the configured time has passed.
 */
static void
count(struct soft_engine *e, bool rx, const struct soft_net_fault *f)
{
	uint64_t until = UINT64_MAX;

	if (f->full_after == 0 || ++e->net.passed[rx] != f->full_after)
		return;
	if (f->full_ms != 0)
		until = soft_ticks(e->dev) + soft_time_cycles(f->full_ms * UINT64_C(1000000));
	__atomic_store_n(&e->net.full_until[rx], until, __ATOMIC_RELAXED);
}

void
soft_net_fault_apply(struct soft_engine *e, struct soft_packet_msg *m,
		     const struct soft_net_fault *f)
{
	struct soft_packet_msg *twin = NULL;
	uint8_t hits = draw_hits(e, m, f);

	count(e, m->rx, f);
	m->hits = hits;
	if (m->rx || (m->hits & SOFT_HIT_DROP) != 0)
		soft_packet_capture(e, m->rx ? SOFT_CAPTURE_IN : SOFT_CAPTURE_OUT, m->data, m->len,
				    m->hits);
	if ((m->hits & SOFT_HIT_DROP) != 0) {
		free(m);
		return;
	}
	/*
	 * Sets the ECN mark before it corrupts the packet, because a switch marks only valid IP
	 * packets.
	 */
	if ((m->hits & SOFT_HIT_ECN) != 0)
		mark(m);
	if ((m->hits & SOFT_HIT_DUP) != 0) {
		twin = copy(m);
		m->hits &= (uint8_t)~SOFT_HIT_DUP;
	}
	if ((m->hits & SOFT_HIT_CORRUPT) != 0) {
		uint32_t bit = draw(e) % (m->len * 8);

		m->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	pass(e, m, f);
	if (twin != NULL) {
		twin->hits = SOFT_HIT_DUP | (hits & SOFT_HIT_ECN);
		if (draw_fault(e, f->reorder))
			twin->hits |= SOFT_HIT_REORDER;
		pass(e, twin, f);
	}
}

void
soft_packet_capture_begin(struct soft_engine *e, enum soft_capture_dir dir, const uint8_t *ip,
			  uint32_t len, uint8_t hits)
{
	/* Names of the faults, in the order of the bits SOFT_HIT_*. */
	static const char *const names[] = {"drop", "dup", "reorder", "corrupt", "ecn", "stall"};
	char note[64];
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < RTE_DIM(names); i++)
		if ((hits >> i & 1) != 0)
			at += (size_t)snprintf(note + at, sizeof(note) - at, "%s%s_%s",
					       at != 0 ? " " : "",
					       dir == SOFT_CAPTURE_OUT ? "tx" : "rx", names[i]);
	soft_capture_begin(e->dev->capture, dir, ip, len, at != 0 ? note : NULL);
}

void
soft_packet_capture_end(struct soft_engine *e, bool keep)
{
	soft_capture_end(e->dev->capture, keep);
	e->net.busy = true;
	e->chores = true;
}

/* Simulates the option flap: takes the port down and up, depending on the time. */
static void
flap(struct soft_dev *dev)
{
	uint64_t edge;
	bool down = soft_flap_down(&dev->flap, soft_dev_ns(dev), &edge);

	if (soft_fault_dead(dev) || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED) == down)
		return;
	/*
	 * Several engines may see the change. The exchange selects the engine that raises the
	 * event.
	 */
	if (__atomic_exchange_n(&dev->port_down, down, __ATOMIC_ACQ_REL) != down)
		soft_event_raise(dev, NULL, BB_PRM_EVENT_PORT_CHANGE);
}

bool
soft_net_run(struct soft_engine *e)
{
	struct soft_dev *dev = e->dev;

	if (dev->opts.virtual_time)
		__atomic_fetch_add(&dev->virtual_us, 1, __ATOMIC_RELAXED);
	if (soft_net_flaps(dev))
		flap(dev);
	return (dev->capture != NULL && soft_capture_run(dev->capture)) || dev->opts.virtual_time ||
	       soft_net_flaps(dev);
}

void
soft_net_fault_run(struct soft_engine *e)
{
	struct soft_packet_msg *m;
	uint64_t now = soft_ticks(e->dev);

	while ((m = TAILQ_FIRST(&e->held_packets)) != NULL && m->due <= now) {
		bool stalled = (m->hits & SOFT_HIT_STALL) != 0, rx = m->rx;

		TAILQ_REMOVE(&e->held_packets, m, held);
		if (!soft_packet_forward(e, m)) {
			TAILQ_INSERT_HEAD(&e->held_packets, m, held);
			return;
		}
		e->n_held_packets--;
		if (stalled)
			e->net.stalled[rx]--;
	}
}

void
soft_net_fault_drop_all(struct soft_engine *e)
{
	struct soft_packet_msg *m;

	while ((m = TAILQ_FIRST(&e->held_packets)) != NULL) {
		TAILQ_REMOVE(&e->held_packets, m, held);
		free(m);
	}
	e->n_held_packets = 0;
	memset(e->net.stalled, 0, sizeof(e->net.stalled));
}
