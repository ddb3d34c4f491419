/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Time of a device for packets, timers and CQEs: the TSC or virtual time. */
#include <pthread.h>
#include <time.h>

#include "soft_clock.h"
#include "soft_hooks.h"

/*
 * Frequency of the TSC in Hz. MHz would be too coarse: Arm's counters may have 19.2 MHz, which
 * rounds to MHz with an error of 1 %.
 */
static uint64_t soft_tsc_hz;
static uint64_t soft_tsc_us; /* ticks per microsecond, in 2^-20, rounded up */
static uint64_t soft_tsc_ns; /* duration of a tick, in 2^-20 ns */
static pthread_once_t soft_tsc_once = PTHREAD_ONCE_INIT;

static uint64_t
soft_tsc_measure(void)
{
	struct timespec a, b;
	uint64_t t0, t1, ns;

	clock_gettime(CLOCK_MONOTONIC, &a);
	t0 = rte_rdtsc();
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
		t1 = rte_rdtsc();
		ns = (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec -
		     (uint64_t)a.tv_nsec;
	} while (ns < 2000000);
	return RTE_MAX((t1 - t0) * 1000000000 / ns, 1u);
}

static void
soft_tsc_init(void)
{
	soft_tsc_hz = rte_get_tsc_hz();
	/* Without EAL the frequency is unknown, so it is measured. */
	if (soft_tsc_hz == 0)
		soft_tsc_hz = soft_tsc_measure();
	soft_tsc_us = ((soft_tsc_hz << 20) - 1) / 1000000 + 1;
	soft_tsc_ns = (UINT64_C(1000000000) << 20) / soft_tsc_hz;
}

void
soft_time_init(void)
{
	pthread_once(&soft_tsc_once, soft_tsc_init);
}

uint32_t
soft_clock_khz(void)
{
	uint64_t hz;

	soft_time_init();
	hz = rte_get_tsc_hz();
	return (uint32_t)((hz != 0 ? hz : soft_tsc_hz) / 1000);
}

uint64_t
soft_us_ticks(uint64_t us)
{
	return (uint64_t)((unsigned __int128)us * soft_tsc_us >> 20);
}

uint64_t
soft_time_cycles(uint64_t ns)
{
	return soft_us_ticks(ns / 1000 + 1);
}

/*
 * Converts TSC ticks to ns. Runs in every poll, so it does not divide. The product has more than 64
 * bits.
 */
static inline uint64_t
soft_tsc_to_ns(uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * soft_tsc_ns >> 20);
}

uint64_t
soft_tick_ns(void)
{
	return soft_tsc_ns;
}

uint64_t
soft_dev_ns(const struct soft_dev *dev)
{
	return soft_tsc_to_ns(soft_ticks(dev));
}

void
soft_engine_clock(struct soft_engine *e)
{
	soft_engine_clock_inline(e);
}

void
soft_engine_clock_other(struct soft_engine *e)
{
	e->ticks = soft_ticks(e->dev);
	e->ns = soft_tsc_to_ns(e->ticks);
	e->timed = true;
	e->stamped = false;
}
