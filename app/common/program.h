/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that the programs share: options after those of EAL, messages on stderr, signals. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "eal_args.h"
#include "stop.h"

/* Name and command line of a program. */
struct program {
	const char *name;
	uint32_t memory_mb; /* MB of EAL's memory that the program needs */
	const struct option *options;
	void (*help)(FILE *out);
	/*
	 * Parses the options into *@o. Returns 0 to continue, 1 if the program is done (--help), -1
	 * on an error.
	 */
	int (*parse)(void *o, int argc, char **argv);
	/* Returns true if no device in @o is a PCI device of EAL (eal_spec_no_pci()). */
	bool (*no_pci)(const void *o);
};

/* Prints a line on stderr that begins with the program's name. Call program_args() first. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Splits the arguments: EAL's come before "--", the program's after it. Without "--" all are EAL's,
 * except --help. Prints errors.
 * @param prog must outlive the program's use of say()
 * @param eal_argc number of EAL's arguments
 * @return as program.parse
 */
int program_args(const struct program *prog, void *o, int argc, char **argv, int *eal_argc);

/*
 * Starts EAL, with the arguments that the user left out (eal_args.h), and installs the signal
 * handlers of stop.h. Returns 0, or -1 after printing the error.
 */
int program_start(int eal_argc, char **argv);

/*
 * Calls rte_eal_cleanup(), except with net_memif, where it may crash. Use nothing of DPDK
 * afterwards.
 */
void program_end(void);

/*
 * Parses @arg, the value of option --@name, and checks that it is from @min to @max. Returns 0 and
 * sets *@out, or returns -1 after printing the error.
 */
int option_u64(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out);
int option_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out);

#endif
