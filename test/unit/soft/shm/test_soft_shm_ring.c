/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_test.h"
#include "soft_shm_ring.h"

struct world {
	uint8_t *data;
	uint64_t head;
	struct soft_ring_tx tx;
	struct soft_ring_rx rx;
	uint64_t seed;
};

static int
setup(void **st)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(posix_memalign((void **)&w->data, 64, SOFT_RING_SIZE), 0);
	memset(w->data, 0, SOFT_RING_SIZE);
	soft_ring_tx_init(&w->tx, w->data, &w->head);
	soft_ring_rx_init(&w->rx, w->data, &w->head);
	w->seed = 1;
	*st = w;
	return 0;
}

static int
teardown(void **st)
{
	struct world *w = *st;

	free(w->data);
	free(w);
	return 0;
}

static uint32_t
draw(struct world *w, uint32_t n)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->seed >> 33) % n;
}

static bool
put(struct world *w, uint32_t len, uint32_t tag)
{
	struct soft_ring_rec *rec = soft_ring_reserve(&w->tx, len);
	uint8_t *p = (uint8_t *)(rec + 1);

	if (rec == NULL)
		return false;
	rec->flow_label = tag;
	rec->sgid = (uint8_t)(tag * 7);
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(tag + i * 3);
	soft_ring_publish(&w->tx, rec, len);
	return true;
}

static bool
get(struct world *w, uint32_t len, uint32_t tag)
{
	struct soft_ring_rec rec;
	const uint8_t *p = soft_ring_peek(&w->rx, &rec);

	if (p == NULL)
		return false;
	assert_fields(rec, len, len, flow_label, tag, sgid, (uint8_t)(tag * 7));
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(p[i], (uint8_t)(tag + i * 3));
	soft_ring_pop(&w->rx);
	return true;
}

#define T(name) TEST_WITH(setup, teardown, name)

/* Every length, many laps, any fill level: records come out as they went in, in order. */
T(test_records_come_out_as_they_went_in)
{
	struct world *w = *state;
	uint32_t len[1u << 16], in = 0, out = 0, full = 0;

	while (in < 60000) {
		uint32_t n = draw(w, 6000);

		while (n-- != 0 && in < 60000) {
			len[in] = draw(w, 8) != 0 ? 1 + draw(w, 200) : 1 + draw(w, SOFT_RING_MAX);
			if (!put(w, len[in], in)) {
				full++;
				break;
			}
			in++;
		}
		for (n = draw(w, 6000); n != 0 && out != in; n--, out++)
			assert_true(get(w, len[out], out));
		soft_ring_release(&w->rx);
	}
	for (; out != in; out++)
		assert_true(get(w, len[out], out));
	assert_false(soft_ring_waiting(&w->rx));
	assert_false(get(w, 0, 0));
	assert_true(full > 10);
	assert_true(w->tx.tail > 8 * SOFT_RING_SIZE);
	assert_false(w->tx.broken || w->rx.broken);
}

/* Full until the consumer returns space, and never one byte more. */
T(test_ring_is_full_to_the_byte)
{
	struct world *w = *state;
	uint32_t n = 0, i;

	while (put(w, SOFT_RING_MAX, n))
		n++;
	assert_int_equal(n, SOFT_RING_SIZE / soft_ring_size(SOFT_RING_MAX));
	assert_true(get(w, SOFT_RING_MAX, 0));
	assert_false(put(w, SOFT_RING_MAX, n));
	assert_true(get(w, SOFT_RING_MAX, 1));
	soft_ring_release(&w->rx);
	assert_true(put(w, SOFT_RING_MAX, n));
	for (i = 2; i <= n; i++)
		assert_true(get(w, SOFT_RING_MAX, i));
	assert_false(soft_ring_waiting(&w->rx));
}

T(test_record_longer_than_the_ring_is_refused)
{
	struct world *w = *state;

	assert_null(soft_ring_reserve(&w->tx, SOFT_RING_MAX + 1));
	assert_null(soft_ring_reserve(&w->tx, UINT32_MAX));
	assert_false(w->tx.broken);
	assert_true(put(w, 1, 1));
}

T(test_hostile_consumer_index_is_detected)
{
	static const uint64_t words[] = {UINT64_C(1) << 63, UINT64_C(1) << 40,
					 -(UINT64_C(2) << 20)};
	struct world *w = *state;

	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint32_t n = 0;

		soft_ring_tx_init(&w->tx, w->data, &w->head);
		w->head = 0;
		assert_true(put(w, 100, 0));
		w->head = w->tx.tail + words[i];
		while (put(w, 4000, n))
			assert_true(n++ < SOFT_RING_SIZE / 4000);
		assert_true(w->tx.broken);
		w->head = w->tx.tail;
		assert_false(put(w, 1, 0));
	}
}

T(test_hostile_length_returns_nothing_outside_the_ring)
{
	static const uint32_t lens[] = {SOFT_RING_MAX + 1, SOFT_RING_SIZE, 0x7fffffff,
					0x80000000,        0xfffffff0,     0xfffffffe,
					SOFT_RING_WRAP};
	struct world *w = *state;
	struct soft_ring_rec rec;

	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		soft_ring_rx_init(&w->rx, w->data, &w->head);
		soft_ring_at(w->data, 0)->len = lens[i];
		assert_true(soft_ring_waiting(&w->rx));
		assert_null(soft_ring_peek(&w->rx, &rec));
		assert_true(w->rx.broken);
		soft_ring_at(w->data, 0)->len = 4;
		assert_null(soft_ring_peek(&w->rx, &rec));
	}
	/* A record that would exceed the end of the ring. */
	soft_ring_rx_init(&w->rx, w->data, &w->head);
	w->rx.head = SOFT_RING_SIZE - 64;
	soft_ring_at(w->data, w->rx.head)->len = 49;
	assert_null(soft_ring_peek(&w->rx, &rec));
	assert_true(w->rx.broken);
	w->rx.broken = false;
	soft_ring_at(w->data, w->rx.head)->len = 48;
	assert_non_null(soft_ring_peek(&w->rx, &rec));
	/* A wrap mark at the end leads to the start, which has another wrap mark. */
	soft_ring_at(w->data, w->rx.head)->len = SOFT_RING_WRAP;
	soft_ring_at(w->data, 0)->len = SOFT_RING_WRAP;
	assert_null(soft_ring_peek(&w->rx, &rec));
	assert_true(w->rx.broken);
}

/*
 * A packet that is still being written is not visible; after the last one no stale record is
 * visible.
 */
T(test_unfinished_packet_is_invisible)
{
	struct world *w = *state;
	struct soft_ring_rec *rec;

	memset(w->data + SOFT_RING_AHEAD * 64, 0xff, SOFT_RING_SIZE - SOFT_RING_AHEAD * 64);
	rec = soft_ring_reserve(&w->tx, 24);
	assert_non_null(rec);
	assert_false(soft_ring_waiting(&w->rx));
	memset(rec + 1, 1, 24);
	soft_ring_publish(&w->tx, rec, 24);
	assert_true(soft_ring_waiting(&w->rx));
	assert_non_null(soft_ring_peek(&w->rx, &(struct soft_ring_rec){0}));
	soft_ring_pop(&w->rx);
	assert_false(soft_ring_waiting(&w->rx));
	assert_int_equal(w->head, 0);
	soft_ring_release(&w->rx);
	assert_int_equal(w->head, 64);
}

/*
 * The producer clears lines ahead of the tail. It clears none that the consumer has not read, at
 * any fill level.
 */
T(test_clearing_ahead_spares_unread_records)
{
	struct world *w = *state;
	uint32_t in = 0, out = 0, spare, i;

	for (spare = 0; spare <= 2 * SOFT_RING_AHEAD; spare++) {
		while (put(w, 1 + in % 48, in))
			in++;
		/* The producer learns the new head when the ring looks full. */
		for (i = 0; i < spare && out != in; i++, out++)
			assert_true(get(w, 1 + out % 48, out));
		soft_ring_release(&w->rx);
		if (put(w, 1 + in % 48, in))
			in++;
		for (; out != in; out++)
			assert_true(get(w, 1 + out % 48, out));
		assert_false(soft_ring_waiting(&w->rx));
		soft_ring_release(&w->rx);
	}
	assert_true(w->tx.tail > 8 * SOFT_RING_SIZE);
}

/* A consumer that polls never sees an old record, whatever the lengths of the records before. */
T(test_cleared_lines_follow_records_of_any_length)
{
	struct world *w = *state;
	uint32_t i, len;

	memset(w->data + SOFT_RING_AHEAD * 64, 0xff, SOFT_RING_SIZE - SOFT_RING_AHEAD * 64);
	for (i = 0; i < 100000; i++) {
		len = draw(w, 4) != 0 ? 1 + draw(w, 48) : 1 + draw(w, 6 * 64);
		assert_true(put(w, len, i));
		assert_true(get(w, len, i));
		assert_false(soft_ring_waiting(&w->rx));
		soft_ring_release(&w->rx);
	}
}

TEST_MAIN(0)
