/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Checks which processes may use a device. */
#include <errno.h>
#include <pthread.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "bb_dev_priv.h"

/* Number of fork() calls between the process that was started as a program and this process. */
static uint32_t generation;
/*
 * True if EAL was initialised before fork(). EAL, its memory and its threads then belong to an
 * ancestor of this process, so this process cannot open devices.
 */
static bool eal_inherited;

static void
in_child(void)
{
	generation++;
	/*
	 * EAL has no lcores before rte_eal_init(). So a non-zero number shows that the parent
	 * process had called rte_eal_init() before the fork.
	 */
	eal_inherited |= rte_lcore_count() != 0;
}

__attribute__((constructor)) static void
watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

uint32_t
bb_process_generation(void)
{
	return generation;
}

int
bb_process_check(void)
{
	if (rte_lcore_count() == 0) {
		BB_LOG(ERR, "EAL is not initialised: call rte_eal_init() before bb_dev_open()");
		return -EINVAL;
	}
	if (eal_inherited) {
		BB_LOG(ERR, "devices cannot be opened in a child of fork(), which shares EAL's "
			    "heap with its parent: call fork() before rte_eal_init(), or exec() "
			    "a program that calls rte_eal_init()");
		return -ENOTSUP;
	}
	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		BB_LOG(ERR, "devices cannot be opened in a secondary process: start it as a "
			    "primary process, with its own --file-prefix");
		return -ENOTSUP;
	}
	return 0;
}

int
bb_process_owns(const struct bb_dev *dev)
{
	if (dev->generation == generation)
		return 0;
	BB_LOG(ERR,
	       "%s: the parent process opened this device before fork(): use its queues and keys "
	       "in the parent only",
	       dev->name);
	return -ENOTSUP;
}
