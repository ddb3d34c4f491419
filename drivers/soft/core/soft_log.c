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
#define CALL_SITES       128

static struct {
	pthread_mutex_t lock;
	struct {
		const void *key;
		time_t second;
		uint32_t lines, dropped;
	} site[CALL_SITES];
} limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
soft_log_text(uint32_t level, const void *key, const char *text)
{
	uint32_t i = (uint32_t)((uintptr_t)key >> 3) % CALL_SITES, dropped = 0;
	struct timespec now;
	bool drop;

	if (!rte_log_can_log((uint32_t)soft_logtype, level))
		return;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&limit.lock);
	if (limit.site[i].key != key || limit.site[i].second != now.tv_sec) {
		if (limit.site[i].key == key)
			dropped = limit.site[i].dropped;
		limit.site[i].key = key;
		limit.site[i].second = now.tv_sec;
		limit.site[i].lines = 0;
		limit.site[i].dropped = 0;
	}
	drop = limit.site[i].lines >= LINES_PER_SECOND;
	if (drop)
		limit.site[i].dropped++;
	else
		limit.site[i].lines++;
	pthread_mutex_unlock(&limit.lock);

	if (dropped != 0)
		rte_log(level, (uint32_t)soft_logtype,
			"soft: dropped %u lines like the next one (at most %d per second)\n",
			dropped, LINES_PER_SECOND);
	if (!drop)
		rte_log(level, (uint32_t)soft_logtype, "soft: %s\n", text);
}

void
soft_log_forget(void)
{
	pthread_mutex_init(&limit.lock, NULL);
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
