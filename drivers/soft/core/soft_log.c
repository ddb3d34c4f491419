/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <rte_log.h>

#include "soft_ctl.h"

RTE_LOG_REGISTER(soft_logtype, bluebell.soft, NOTICE)

/*
 * Limit of log lines per second. Lines that come from one position in the code share a limit, so
 * that a peer that sends bad packets cannot fill a disk.
 */
#define LINES_PER_SECOND 100
#define PLACES           128

static struct {
	pthread_mutex_t lock;
	struct {
		const void *key;
		time_t second;
		uint32_t lines, dropped;
	} place[PLACES];
} limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
soft_log_text(uint32_t level, const void *key, const char *text)
{
	uint32_t i = (uint32_t)((uintptr_t)key >> 3) % PLACES, dropped = 0;
	struct timespec now;
	bool drop;

	if (!rte_log_can_log((uint32_t)soft_logtype, level))
		return;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&limit.lock);
	if (limit.place[i].key != key || limit.place[i].second != now.tv_sec) {
		if (limit.place[i].key == key)
			dropped = limit.place[i].dropped;
		limit.place[i].key = key;
		limit.place[i].second = now.tv_sec;
		limit.place[i].lines = 0;
		limit.place[i].dropped = 0;
	}
	drop = limit.place[i].lines >= LINES_PER_SECOND;
	if (drop)
		limit.place[i].dropped++;
	else
		limit.place[i].lines++;
	pthread_mutex_unlock(&limit.lock);

	if (dropped != 0)
		rte_log(level, (uint32_t)soft_logtype,
			"soft: dropped %u lines like the next one (at most %d per second)\n",
			dropped, LINES_PER_SECOND);
	if (!drop)
		rte_log(level, (uint32_t)soft_logtype, "soft: %s\n", text);
}

void
soft_log(uint32_t level, const char *fmt, ...)
{
	char text[2048]; /* large enough for the longest line, which lists all options */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	soft_log_text(level, fmt, text);
}
