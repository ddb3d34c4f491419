/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The open loop of testrdma --rate in virtual time. The device takes SERVICE ticks per operation
 * and stalls once. Operations that became due during the stall must show it; a closed loop hides
 * it.
 */

#include "bb_test.h"
#include "histogram.h"
#include "rate.h"

#define HZ      1000000 /* ticks per second: a tick is a microsecond */
#define RATE    10000   /* operations per second: one in 100 ticks */
#define SERVICE 10
#define STALL   200000 /* ticks; a tenth of all operations become due in the stall */
#define AT      500000
#define LENGTH  2000000

/* Returns when the device completes an operation that it gets at @now while idle. */
static uint64_t
device(uint64_t now)
{
	if (now >= AT && now < AT + STALL)
		now = AT + STALL;
	return now + SERVICE;
}

/* Runs one operation at a time: posts it when it is due and the previous one has completed. */
static void
open_loop(struct hist *lat)
{
	struct schedule s;
	uint64_t now = 0, k, latency;

	hist_reset(lat);
	schedule_begin(&s, 0, HZ, RATE);
	for (k = 0; schedule_due(&s, k) < LENGTH; k++) {
		if (now < schedule_due(&s, k))
			now = schedule_due(&s, k);
		assert_true(schedule_count(&s, now) > k);
		now = device(now);
		assert_true(schedule_latency(&s, k, now, &latency));
		hist_add(lat, latency);
	}
}

static void
closed_loop(struct hist *lat)
{
	uint64_t end;

	hist_reset(lat);
	for (uint64_t now = 0; now < LENGTH; now = end) {
		end = device(now);
		hist_add(lat, end - now);
	}
}

TEST(test_stall_shows_in_an_open_loop)
{
	static struct hist open, closed;
	uint64_t due_in_stall = (uint64_t)STALL * RATE / HZ;

	open_loop(&open);
	assert_fields(open, count, (uint64_t)LENGTH * RATE / HZ, max, STALL + SERVICE);
	/*
	 * Operations due in the stall waited between 0 and STALL, evenly. The queue that built up
	 * delays some more.
	 */
	assert_true(open.count / due_in_stall == 10);
	assert_true(hist_quantile(&open, 950000) >= STALL / 2);
	assert_true(hist_quantile(&open, 990000) >= STALL * 9 / 10);
	/* Half of the operations are not affected. */
	assert_int_equal(hist_quantile(&open, 500000), SERVICE);

	closed_loop(&closed);
	assert_int_equal(closed.max, STALL + SERVICE);
	assert_int_equal(hist_quantile(&closed, 999900), SERVICE);
}

/* The schedule does not drift over a year, at rates that do not divide the clock. */
TEST(test_schedule_does_not_drift_over_a_year)
{
	static const uint64_t rates[] = {1, 3, 7, 999, 1000000, 33333333, 100000000};
	const uint64_t hz = 2600000000, start = 12345;
	struct schedule s;

	for (unsigned int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t day = rates[i] * 86400, want = hz * 86400, got;

		schedule_begin(&s, start, hz, rates[i]);
		assert_int_equal(schedule_due(&s, 0), start);
		got = schedule_due(&s, day) - start;
		assert_true(got <= want);
		/* A step is rounded down by 2^-24 of a cycle at most. */
		assert_true(want - got <= (day >> RATE_SHIFT) + 1);
	}
}

/* Exactly the due operations are counted; none is due after the end. */
TEST(test_exactly_the_due_operations_are_counted)
{
	static const uint64_t rates[] = {1, 7, 999, 333333, 100000000};
	struct schedule s;
	uint64_t latency;

	for (unsigned int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		schedule_begin(&s, 1000, 2600000000, rates[i]);
		assert_int_equal(schedule_count(&s, 999), 0);
		for (uint64_t k = 0; k < 1000; k++) {
			uint64_t due = schedule_due(&s, k);

			assert_int_equal(schedule_count(&s, due), k + 1);
			assert_int_equal(schedule_count(&s, due - 1), k);
		}
	}
	schedule_begin(&s, 1000, HZ, RATE);
	s.limit = 6;
	assert_int_equal(schedule_count(&s, UINT64_MAX >> 1), 6);
	assert_true(schedule_latency(&s, 5, 1700, &latency));
	assert_int_equal(latency, 200);
	assert_false(schedule_latency(&s, 6, 1700, &latency));
	assert_true(schedule_latency(&s, 5, 1400, &latency));
	assert_int_equal(latency, 0);
}

TEST_MAIN(0)
