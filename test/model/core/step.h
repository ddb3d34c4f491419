/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Count what code really does, instruction by instruction: the CPU's trap flag
 * stops after each one, and a signal handler looks at the next. So a lock in an
 * inline function, a division or a system call cannot hide. Allocations and
 * pthread locks are counted by functions of the same name in front of the real
 * ones. x86-64 only.
 */
#ifndef STEP_H
#define STEP_H

#include <stdint.h>

struct step_counts {
	uint64_t instructions;
	uint64_t locks;     /* lock prefix, or exchange with memory */
	uint64_t syscalls;  /* syscall, sysenter, int 0x80 */
	uint64_t divisions; /* integer, and SSE */
	uint64_t allocs;    /* malloc and its like, free too; rte_malloc and its like */
	uint64_t mutexes;   /* pthread_mutex_lock and its like */
};

/* Where counts go; NULL: nowhere. The code under test may switch it as it runs. */
extern struct step_counts *volatile step_to;

/* Run @fn under the trap flag, counting into @c. One thread at a time. */
void step_run(void (*fn)(void *arg), void *arg, struct step_counts *c);

#endif
