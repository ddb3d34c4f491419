/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * EAL for tests. Each lcore may run on every processor of the process, so that tests that run side
 * by side share all processors. Lcores on fixed processors would all be on the first ones.
 */
#ifndef BARE_EAL_H
#define BARE_EAL_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

/* Further options of EAL. */
#define EAL_OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define EAL_BARE(mb)     "--no-huge", "-m", mb, "--no-telemetry"

/*
 * Starts EAL without files or devices on @lcores, such as "0,1", with the options @more. @prefix is
 * that of its runtime directory. Returns the result of rte_eal_init().
 */
static inline int
eal_start(const char *prefix, const char *lcores, const char *const *more)
{
	char line[1024], cpus[401] = "0", map[512], file_prefix[64];
	const char *argv[32] = {"test", map, file_prefix, "--no-pci", "--no-shconf"};
	FILE *f = fopen("/proc/self/status", "r");
	int n = 5;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Cpus_allowed_list: %400s", cpus) == 1)
			break;
	if (f != NULL)
		fclose(f);
	snprintf(map, sizeof(map), "--lcores=(%s)@(%s)", lcores, cpus);
	snprintf(file_prefix, sizeof(file_prefix), "--file-prefix=%s", prefix);
	while (*more != NULL && n + 1 < (int)RTE_DIM(argv))
		argv[n++] = *more++;
	return rte_eal_init(n, (char **)(uintptr_t)argv);
}

/* The same, but returns 0, or 77 after it has printed why EAL does not start. */
static inline int
eal_start_or_skip(const char *prefix, const char *lcores, const char *const *more)
{
	if (eal_start(prefix, lcores, more) >= 0)
		return 0;
	fprintf(stderr, "skipped: EAL does not start: %s\n", rte_strerror(rte_errno));
	return 77;
}

/*
 * Starts EAL with one lcore and without hugepages, files or devices. Returns the result of
 * rte_eal_init().
 */
static inline int
bare_eal_init(void)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "bbtest%d", (int)getpid());
	return eal_start(prefix, "0", EAL_OPTIONS(EAL_BARE("256"), "--log-level=lib.eal:error"));
}

#endif
