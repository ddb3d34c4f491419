/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command line after "--". */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct engine;

/* Types of operations of --op mixed, in the order of their names in --mix. */
enum mix_kind {
	MIX_WRITE,
	MIX_READ,
	MIX_FETCH_ADD,
	MIX_CMP_SWAP,
	MIX_KINDS,
};
extern const char *const mix_names[MIX_KINDS];

#define MIX_MAX 1000 /* maximum sum of the weights */

#define MAX_OPS   16
#define MAX_SIZES 64
#define MAX_SGL   16
#define MAX_SIZE  (UINT32_C(1) << 30)
#define MAX_QPS   32000

/* Exit statuses. An interrupted run exits with 128 + signal, as in shells. */
enum {
	EXIT_FAILED = 1, /* a verification, a completion or the set-up failed */
	EXIT_USAGE = 2,
};

struct options {
	const char *device; /* device specification for bb_dev_open() */
	const struct engine *ops[MAX_OPS];
	uint32_t nops;
	uint32_t sizes[MAX_SIZES];
	uint32_t nsizes;
	uint32_t depth, burst, signal_every;
	uint32_t max_inline; /* largest message sent inline, in bytes; 0: none */
	uint32_t qps;        /* number of queue pairs per lcore */
	uint32_t lcores;
	uint32_t mix[MIX_KINDS]; /* weights of the types */
	uint32_t sgl;            /* number of SGEs of a message */
	uint32_t offset;         /* offset of a message's data from a 64-byte boundary, in bytes */
	bool blueflame;
	bool verify;
	bool csv;
	uint64_t rate;   /* open loop: operations per second; 0 for a closed loop */
	double duration; /* seconds per test; INFINITY if it runs until stopped */
	double patience; /* seconds without a completion after which a test is aborted */
	double interval; /* seconds between lines of statistics; 0 for none */
	uint64_t seed;
	const char *json;
	const char *listen, *connect; /* address and port; NULL if the option is not given */
	const char *cmdline_file;
	bool interactive;
};

/* Returns the number of tests that @o describes. Atomics have only one size. */
uint32_t options_tests(const struct options *o);

/* Returns true if a mode in @o sends operations from the target too. */
bool options_two_way(const struct options *o);
/* Returns true if an operation in @o is two-sided: the target must post receives or send. */
bool options_two_sided(const struct options *o);
/* Returns true if --mix in @o contains atomics. */
bool options_mix_atomic(const struct options *o);

/* Returns true if the program reads commands; otherwise it runs all tests and exits. */
static inline bool
options_session(const struct options *o)
{
	return o->interactive || o->cmdline_file != NULL;
}

/* Returns the operation type of test @n, from 0, and sets *@size to the test's message size. */
const struct engine *options_test(const struct options *o, uint32_t n, uint32_t *size);

/*
 * Sets option @name, given without dashes, to @value, as the command line does. Also sets "verify",
 * to on or off. Prints errors; *@o may then be partly changed. @return 0, or -1.
 */
int options_set(struct options *o, const char *name, const char *value);

/*
 * Checks that the options agree with each other, and sets the defaults of unset ones. @return 0, or
 * -1 after printing the error.
 */
int options_fit(struct options *o);

void options_help(FILE *out);

#endif
