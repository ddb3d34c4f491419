/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdio.h>

#include "hca_log.h"
#include "hca_time.h"

RTE_LOG_REGISTER(hca_logtype, bluebell.hca, NOTICE)

#define SECOND 1000000000u

static const char *function;

void
hca_log_function(const char *name)
{
	function = name;
}

void
hca_log_level(uint32_t level)
{
	rte_log_set_level((uint32_t)hca_logtype, level);
}

bool
hca_log_debug(void)
{
	return rte_log_can_log((uint32_t)hca_logtype, RTE_LOG_DEBUG);
}

/*
 * Returns true if a log line may be written now. Also reports how many lines were suppressed in the
 * last second.
 */
static bool
may_log(void)
{
	static uint64_t start;
	static uint32_t lines, missing;
	uint64_t now = hca_now();

	if (now - start >= SECOND) {
		if (missing != 0)
			rte_log(RTE_LOG_WARNING, (uint32_t)hca_logtype,
				"hca: %u more log lines in this second were dropped\n", missing);
		start = now;
		lines = 0;
		missing = 0;
	}
	if (lines == HCA_LOG_BURST) {
		missing++;
		return false;
	}
	lines++;
	return true;
}

void
hca_log(uint32_t level, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!rte_log_can_log((uint32_t)hca_logtype, level) ||
	    (level != RTE_LOG_DEBUG && !may_log()))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rte_log(level, (uint32_t)hca_logtype, "hca: %s%s%s\n", function != NULL ? function : "",
		function != NULL ? ": " : "", text);
}
