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

/* Kinds of operations of --op mixed, in this order. */
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
	EXIT_FAILED = 1, /* failed verification, completion error, or failed set-up */
	EXIT_USAGE = 2,
};

struct options {
	const char *device; /* device specification for bb_dev_open() */
	const struct engine *ops[MAX_OPS];
	uint32_t nops;
	uint32_t sizes[MAX_SIZES];
	uint32_t nsizes;
	uint32_t depth, burst, signal_every;
	uint32_t max_inline; /* bytes; 0 if data is always gathered */
	uint32_t qps;        /* per lcore */
	uint32_t lcores;
	uint32_t mix[MIX_KINDS]; /* weights */
	uint32_t sgl;            /* pieces of a message in local memory */
	uint32_t offset;         /* offset of data from a 64-byte boundary */
	bool blueflame;
	bool verify;
	bool csv;
	uint64_t rate;   /* operations per second of an open loop; 0 if it is closed */
	double duration; /* seconds per test; INFINITY until stopped */
	double patience; /* seconds without a completion after which a test is given up */
	double interval; /* seconds between statistics; 0 if off */
	uint64_t seed;
	const char *json;
	const char *listen, *connect; /* address and port, or NULL */
	bool ops_given;
	const char *cmdline_file;
	bool interactive;
};

/* Returns the number of tests for @o: atomics have one size. */
uint32_t options_rows(const struct options *o);

/* Returns true if an operation of @o makes targets initiate. */
bool options_two_way(const struct options *o);
/* Returns true if an operation of @o needs work of the target. */
bool options_two_sided(const struct options *o);
/* Returns true if the mix of @o has atomics. */
bool options_mix_atomic(const struct options *o);

/* Returns true if commands are read, instead of all tests being run. */
static inline bool
options_session(const struct options *o)
{
	return o->interactive || o->cmdline_file != NULL;
}

/* Returns the operation and the size of test @n, counted from 0. */
const struct engine *options_row(const struct options *o, uint32_t n, uint32_t *size);

/*
 * Sets option @name, without its dashes, as on the command line; also "verify" to on or off. Prints
 * errors; *@o may then be partly changed.
 * @return 0, or -1.
 */
int options_set(struct options *o, const char *name, const char *value);

/*
 * Checks options against each other and sets unset ones. @return 0, or -1 after printing the error.
 */
int options_fit(struct options *o);

void options_help(FILE *out);

#endif
