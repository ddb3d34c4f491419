/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the programs have in common: options behind EAL's, what they say, how they are stopped. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

#include "stop.h"

/* Each program defines it. */
struct program {
	const char *name;
	const char *no_huge; /* EAL's arguments that do without hugepages */
	const struct option *options;
	void (*help)(FILE *out);
	/* Options to *@o: 0 to go on, 1 if that was all (--help), -1 if they are wrong. */
	int (*parse)(void *o, int argc, char **argv);
};

extern const struct program program;

/* A line on stderr, behind the program's name. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * EAL's arguments stand before "--", ours behind it, and without "--" all are EAL's; only --help
 * is ours there, too. Says what is wrong.
 * @param eal_argc how many arguments are EAL's
 * @return as program.parse
 */
int program_args(void *o, int argc, char **argv, int *eal_argc);

/* Start EAL, and catch signals (stop.h). */
int program_start(int eal_argc, char **argv);

/* The end of EAL, where it is safe: nothing of DPDK is used after this. */
void program_end(void);

/* The number @arg of --@name to *@out if it is from @min to @max; else says so, -1. */
int option_u64(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out);
int option_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out);

#endif
