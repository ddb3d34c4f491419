/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * --check: verifies that the payload is what the peer sent.
 *
 * A pingpong server returns what it received, so the client knows every byte. perftest fills its
 * memory with random bytes, or with zeros for write_lat, and sends the same bytes again and again.
 * So the bytes of a slot must always be the same. Two bb_perf processes fill their memory with the
 * same pattern, another one for each queue pair, so every byte is known. The first message shows
 * whether the peer is bb_perf.
 */
#include <stdlib.h>

#include <rte_common.h>

#include "perf.h"

#define KNOWN_MIN 8 /* this many equal bytes show that both ends use the same pattern */

static uint8_t
pattern(size_t i)
{
	return (uint8_t)((i * UINT64_C(0x9e3779b97f4a7c15)) >> 37);
}

/* Returns the index of the pattern byte with which the memory of a queue pair begins. */
static size_t
first_of(const struct perf_qp *q)
{
	/* A prime, so that the patterns of two queue pairs start at different bytes. */
	return (size_t)q->index * 7919;
}

static void
fill(const struct perf_qp *q, uint8_t *at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = pattern(first_of(q) + i);
}

static int
start_qp(struct perf *p, struct perf_qp *q)
{
	enum verb verb = p->o.proto->verb;

	/* The layout is that of the first size of the test. Later sizes need fewer slots. */
	q->slot_hashes = calloc(2 * (size_t)p->layout.slots, sizeof(*q->slot_hashes));
	if (q->slot_hashes == NULL) {
		say("--check: no memory for the values to compare");
		return -1;
	}
	if (verb == VERB_PINGPONG) {
		memset(q->out, 0x7b, p->half_size);
	} else if (verb == VERB_WRITE && !p->o.proto->bandwidth) {
		/*
		 * The last byte of the buffer is a message count, which must start at 0. Fills the
		 * other bytes with a value that the peer does not send, so that missing bytes are
		 * detected.
		 */
		if (p->o.check)
			memset(q->in, 0xee, p->o.size - 1);
	} else if (verb == VERB_READ || verb == VERB_ATOMIC) {
		fill(q, q->in, p->half_size);
	} else {
		fill(q, q->out, p->half_size);
	}
	return 0;
}

int
check_start(struct perf *p)
{
	uint32_t i;

	for (i = 0; i < p->o.qps; i++)
		if (start_qp(p, &p->qps[i]) != 0)
			return -1;
	return 0;
}

void
check_stop(struct perf *p)
{
	uint32_t i;

	for (i = 0; p->qps != NULL && i < p->o.qps; i++) {
		free(p->qps[i].slot_hashes);
		p->qps[i].slot_hashes = NULL;
	}
}

void
check_next_size(struct perf *p)
{
	uint32_t i;

	/* Atomics have only one size, so these words are hashes and not values of atomics. */
	for (i = 0; i < p->o.qps; i++)
		memset(p->qps[i].slot_hashes, 0, 2 * p->layout.slots * sizeof(uint64_t));
}

static uint64_t
hash(const uint8_t *at, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	while (len-- > 0)
		h = (h ^ *at++) * UINT64_C(0x100000001b3);
	return h;
}

static int
differs(const uint8_t *is, const uint8_t *want, size_t len, const char *what, uint64_t n)
{
	size_t i;

	for (i = 0; i < len && is[i] == want[i]; i++)
		;
	if (i == len)
		return 0;
	say("%s %" PRIu64 ": byte %zu is 0x%02x, expected 0x%02x", what, n, i, is[i], want[i]);
	return -1;
}

int
check_message(struct perf *p, struct perf_qp *q, uint64_t n, const uint8_t *data)
{
	const uint8_t *expected = p->o.proto->verb == VERB_READ ? q->in : q->out;
	const char *what = p->o.proto->verb == VERB_READ ? "READ" : "message";
	uint64_t slot = n % p->layout.slots, *last_hash = &q->slot_hashes[2 * slot], h;

	expected += msg_slot_offset(&p->layout, n);
	if (!p->peer_judged && p->size >= KNOWN_MIN) {
		p->bytes_known = memcmp(data, expected, KNOWN_MIN) == 0;
		p->peer_judged = true;
	}
	p->res.checked += p->size;
	if (p->bytes_known)
		return differs(data, expected, p->size, what, n);
	h = hash(data, p->size);
	if (last_hash[1] == 0) {
		last_hash[0] = h;
		last_hash[1] = 1;
		return 0;
	}
	if (last_hash[0] == h)
		return 0;
	say("%s %" PRIu64 ": the data from slot %" PRIu64 " of the buffer differs from an "
	    "earlier message of that slot",
	    what, n, slot);
	return -1;
}

int
check_gap(const struct perf *p, const uint8_t *half, uint64_t used, uint8_t value)
{
	uint32_t step = p->layout.step;
	size_t i, slot;

	for (i = 0; i < p->half_size; i++) {
		slot = step > 0 ? i / step : 0;
		if (slot < used && (step > 0 ? i % step : i) < p->size)
			continue;
		if (half[i] != value) {
			say("byte %zu, outside of all messages, changed to 0x%02x", i, half[i]);
			return -1;
		}
	}
	return 0;
}

int
check_atomic(struct perf *p, struct perf_qp *q, uint64_t n, uint64_t old)
{
	uint64_t *last_hash = &q->slot_hashes[2 * (n % p->layout.slots)];

	p->res.checked += sizeof(old);
	if (last_hash[1] != 0 && last_hash[0] != old) {
		say("atomic %" PRIu64 " returned 0x%" PRIx64 ", expected 0x%" PRIx64 "; does "
		    "another client use the same server?",
		    n, old, last_hash[0]);
		return -1;
	}
	last_hash[0] = p->o.cmp_swap ? old : old + 1;
	last_hash[1] = 1;
	return 0;
}

/*
 * Returns the expected value of byte @i of a WRITE latency message. Do not call it
 * for the last byte of a message. With --all the peer sends all sizes from the same address. So if
 * a shorter message ended at this byte, the byte still has the last message count of that size.
 * Other bytes are 0.
 */
static uint8_t
write_lat_byte(const struct perf *p, uint32_t i)
{
	bool last = p->o.all && i + 1 >= SIZE_MIN && ((i + 1) & i) == 0;

	return last ? (uint8_t)p->o.iters : 0;
}

int
check_write_lat(struct perf *p, uint64_t n)
{
	uint8_t *in = p->qps[0].in;
	uint32_t i, len = p->size - 1;

	for (i = 0; i < len; i++) {
		if (in[i] != write_lat_byte(p, i)) {
			say("message %" PRIu64 ": byte %u is 0x%02x, expected 0x%02x, although the "
			    "last byte has arrived; is the peer's --size the same?",
			    n, i, in[i], write_lat_byte(p, i));
			return -1;
		}
	}
	memset(in, 0xee, len);
	p->res.checked += p->size;
	return 0;
}

void
check_pingpong_fill(struct perf *p, uint64_t n)
{
	uint8_t *out = p->qps[0].out;
	uint32_t i;

	for (i = 0; i < p->o.size; i++)
		out[i] = i % PAGE == 0 ? 0 : (uint8_t)(pattern(i) + n);
}

int
check_pingpong(struct perf *p, uint64_t n, const uint8_t *data)
{
	uint32_t i;

	if (is_client(p)) {
		p->res.checked += p->o.size;
		return differs(data, p->qps[0].out, p->o.size, "message", n);
	}
	for (i = 0; i < p->o.size; i += PAGE) {
		p->res.checked++;
		if (data[i] != 0) {
			say("message %" PRIu64
			    ": byte %u is 0x%02x, not 0; the client needs -c too",
			    n, i, data[i]);
			return -1;
		}
	}
	return 0;
}

static int
check_written(struct perf *p, const struct perf_qp *q)
{
	uint64_t used = RTE_MIN(p->o.iters, (uint64_t)p->layout.slots), n;
	const uint8_t *at;
	uint32_t i;
	bool known;

	/* The first queue pair shows whether the peer is bb_perf. */
	known = p->size >= KNOWN_MIN && memcmp(p->qps->in, p->qps->out, KNOWN_MIN) == 0;
	for (n = 0; n < used; n++) {
		at = q->in + msg_slot_offset(&p->layout, n);
		p->res.checked += p->size;
		if (known && differs(at, q->out + msg_slot_offset(&p->layout, n), p->size,
				     "message", n) != 0)
			return -1;
		/*
		 * Looks for 16 zero bytes, the initial contents. 16 random bytes of perftest are
		 * never all 0.
		 */
		for (i = 0; !known && i + 16 <= p->size; i += 16) {
			static const uint8_t zero[16];

			if (memcmp(at + i, zero, sizeof(zero)) == 0) {
				say("message %" PRIu64 ": nothing was written at byte %u", n, i);
				return -1;
			}
		}
	}
	return check_gap(p, q->in, used, 0);
}

static int
check_words(struct perf *p, const struct perf_qp *q)
{
	uint64_t now, was, grown = 0, want = p->o.cmp_swap ? 0 : p->o.iters;
	uint8_t old[8];
	size_t i, k;

	for (i = 0; i < p->half_size; i += sizeof(now)) {
		for (k = 0; k < sizeof(old); k++)
			old[k] = pattern(first_of(q) + i + k);
		memcpy(&was, old, sizeof(was));
		memcpy(&now, q->in + i, sizeof(now));
		grown += now - was;
	}
	p->res.words_grown += grown;
	if (!p->o.check)
		return 0;
	p->res.checked += p->half_size;
	if (grown == want)
		return 0;
	say("the atomics have increased the local words by %" PRIu64 ", not by %" PRIu64
	    "; did the peer run %" PRIu64 " of them, and is its -A the same?",
	    grown, want, p->o.iters);
	return -1;
}

static int
check_target_of(struct perf *p, const struct perf_qp *q)
{
	enum verb verb = p->o.proto->verb;
	size_t i;

	if (verb == VERB_ATOMIC)
		return check_words(p, q);
	if (!p->o.check)
		return 0;
	if (verb == VERB_WRITE && p->o.proto->bandwidth)
		return check_written(p, q);
	if (verb == VERB_READ)
		p->res.checked += p->half_size;
	for (i = 0; verb == VERB_READ && i < p->half_size; i++) {
		if (q->in[i] != pattern(first_of(q) + i)) {
			say("byte %zu of the local memory has changed, but the peer may only read",
			    i);
			return -1;
		}
	}
	return 0;
}

int
check_target(struct perf *p)
{
	uint32_t i;

	for (i = 0; i < p->o.qps; i++)
		if (check_target_of(p, &p->qps[i]) != 0)
			return -1;
	return 0;
}
