/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command line behind "--". */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct engine;

/* What --op mixed is made of, in this order. */
enum mix_kind {
	MIX_WRITE,
	MIX_READ,
	MIX_FETCH_ADD,
	MIX_CMP_SWAP,
	MIX_KINDS,
};
extern const char *const mix_names[MIX_KINDS];

#define MIX_MAX 1000 /* sum of the weights */

#define MAX_OPS   16
#define MAX_SIZES 64
#define MAX_SGL   16
#define MAX_SIZE  (UINT32_C(1) << 30)
#define MAX_QPS   32000

/* Exit statuses. An interrupted run exits with 128 + signal, as shells have it. */
enum {
	EXIT_FAILED = 1, /* verification, a completion error, or set-up failed */
	EXIT_USAGE = 2,
};

struct options {
	const char *device; /* spec string for bb_dev_open() */
	const struct engine *ops[MAX_OPS];
	uint32_t nops;
	uint32_t sizes[MAX_SIZES];
	uint32_t nsizes;
	uint32_t depth, burst, signal_every;
	uint32_t max_inline; /* bytes; 0: data is always gathered */
	uint32_t qps;        /* of each lcore */
	uint32_t lcores;
	uint32_t mix[MIX_KINDS]; /* weights */
	uint32_t sgl;            /* pieces of a message on its local side */
	uint32_t offset;         /* of data from a 64-byte boundary */
	bool blueflame;
	bool verify;
	bool csv;
	uint64_t rate;   /* operations in a second of an open loop, 0: none */
	double duration; /* seconds per row; INFINITY: until it is stopped */
	double patience; /* seconds without a completion until a row is given up */
	double interval; /* seconds between statistics, 0: none */
	uint64_t seed;
	const char *json;
	const char *listen, *connect; /* address and port, or NULL */
	bool ops_given;
	const char *cmdline_file;
	bool interactive;
};

/* Rows that @o asks for: atomics have one size. */
uint32_t options_rows(const struct options *o);

/* Does an operation of @o have targets that initiate? Are there atomics in its mix? */
bool options_two_way(const struct options *o);
/* Does one take work of the target? */
bool options_two_sided(const struct options *o);
bool options_mix_atomic(const struct options *o);

/* Commands are read, instead of all rows being run. */
static inline bool
options_session(const struct options *o)
{
	return o->interactive || o->cmdline_file != NULL;
}

/* The row of number @n, counted from 0: its operation and size. */
const struct engine *options_row(const struct options *o, uint32_t n, uint32_t *size);

/*
 * Set option @name, without its dashes, as the command line does; also "verify" to on or off. Says
 * what is wrong; *@o may be half changed then.
 * @return 0, or -1.
 */
int options_set(struct options *o, const char *name, const char *value);

/* Options that contradict each other; those left open get their values. @return 0, or said, -1. */
int options_fit(struct options *o);

void options_help(FILE *out);

#endif
