/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lcores of tests. Each may run on every processor of the process, so that tests that run side by
 * side share all processors. Lcores on fixed processors would all be on the first ones.
 */
#ifndef EAL_CPUS_H
#define EAL_CPUS_H

#include <stdio.h>

/*
 * Writes EAL's option for @lcores, such as "0" or "0,1". Each lcore gets the processors that this
 * process may use, or processor 0 if /proc does not list them.
 */
static inline void
eal_cpus(char *text, size_t size, const char *lcores)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[1024], cpus[401] = "0";

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Cpus_allowed_list: %400s", cpus) == 1)
			break;
	if (f != NULL)
		fclose(f);
	snprintf(text, size, "--lcores=(%s)@(%s)", lcores, cpus);
}

#endif
