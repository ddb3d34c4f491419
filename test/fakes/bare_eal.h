/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef BARE_EAL_H
#define BARE_EAL_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "eal_cpus.h"

/*
 * Starts EAL with one lcore and without hugepages, files or devices. Returns the result of
 * rte_eal_init().
 */
static inline int
bare_eal_init(void)
{
	char prefix[48], lcores[512];
	char *argv[] = {(char *)(uintptr_t) "test",
			(char *)(uintptr_t) "--no-huge",
			(char *)(uintptr_t) "-m",
			(char *)(uintptr_t) "256",
			lcores,
			(char *)(uintptr_t) "--no-pci",
			(char *)(uintptr_t) "--no-telemetry",
			(char *)(uintptr_t) "--no-shconf",
			(char *)(uintptr_t) "--log-level=lib.eal:error",
			prefix};

	eal_cpus(lcores, sizeof(lcores), "0");
	snprintf(prefix, sizeof(prefix), "--file-prefix=bbtest%d", (int)getpid());
	return rte_eal_init(RTE_DIM(argv), argv);
}

#endif
