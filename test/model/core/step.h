/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Counts what code executes, instruction by instruction: the CPU's trap flag stops after each
 * instruction, and a signal handler decodes the next one. So the counts include locks, divisions
 * and system calls of inline functions. Replacements of the same name count allocations and
 * pthread locks. x86-64 only.
 */
#ifndef STEP_H
#define STEP_H

#include <stdint.h>

struct step_counts {
	uint64_t instructions;
	uint64_t locks;     /* instructions with a lock prefix, and exchanges with memory */
	uint64_t syscalls;  /* syscall, sysenter, int 0x80 */
	uint64_t divisions; /* integer and SSE */
	uint64_t allocs;    /* malloc, rte_malloc and their variants, free too */
	uint64_t mutexes;   /* pthread_mutex_lock and its variants */
};

/* Where instructions are counted, NULL for nowhere. The tested code may switch it while it runs. */
extern struct step_counts *volatile step_to;

/* Runs @fn under the trap flag and counts into @c. One thread at a time. */
void step_run(void (*fn)(void *arg), void *arg, struct step_counts *c);

#endif
