/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by the programs: options after EAL's, messages, stopping. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

#include "stop.h"

/* Name and command line of a program. */
struct program {
	const char *name;
	const char *no_huge; /* EAL arguments for a run without hugepages */
	const struct option *options;
	void (*help)(FILE *out);
	/*
	 * Parses the options into *@o. Returns 0 to continue, 1 if the program is done (--help), -1
	 * on an error.
	 */
	int (*parse)(void *o, int argc, char **argv);
};

/* Prints a line on stderr, after the program's name. Not before program_args(). */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Splits the arguments: EAL's come before "--", the program's after it. Without "--" all are EAL's,
 * except --help. Prints errors.
 * @param prog must outlive the program's use of say()
 * @param eal_argc number of EAL's arguments
 * @return as program.parse
 */
int program_args(const struct program *prog, void *o, int argc, char **argv, int *eal_argc);

/* Starts EAL and catches signals (stop.h). */
int program_start(int eal_argc, char **argv);

/* Ends EAL if that is safe. Nothing of DPDK may be used afterwards. */
void program_end(void);

/*
 * Parses the value @arg of --@name into *@out, from @min to @max. On an error prints it and returns
 * -1.
 */
int option_u64(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out);
int option_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out);

#endif
