/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * storage_client: load for a target, and checks of what it does. Each lcore is a job with a device,
 * a connection to a queue of the target, and a part of the device that no other job touches.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <bluebell.h>

#include "bb_blk.h"
#include "histogram.h"
#include "program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define MAX_JOBS 16u

enum rw {
	RW_READ,
	RW_WRITE,
	RW_RANDREAD,
	RW_RANDWRITE,
	RW_RANDRW, /* half of each */
};

struct options {
	const char *device[MAX_JOBS];
	uint32_t devices;
	const char *connect;
	enum rw rw;
	uint32_t bs, depth, wait_s;
	uint64_t ios; /* of each job; 0: as many as blocks, or --seconds */
	uint64_t seconds;
	uint64_t offset, size; /* 0: all */
	uint64_t seed;
	uint64_t flush_every; /* writes; 0: only at the end */
	bool fua, verify;
	const char *journal; /* file to write */
	const char *check;   /* a journal to check what is there against */
	const char *json;
};

/* What is known of a block of bs bytes: numbers of writes to it, 0: none. */
struct block {
	uint32_t acked; /* the last one completed */
	uint32_t sent;  /* the last one sent */
	bool busy;      /* a request of it is under way */
};

struct request {
	uint8_t *mem;
	uint64_t block;
	uint64_t began;
	uint32_t seq; /* of a write */
	enum bb_blk_op op;
	struct request *next;
};

struct job {
	const struct options *o;
	uint32_t index, lcore, jobs;
	struct bb_dev *dev;
	struct bb_blk *blk;
	uint8_t *mem;
	struct bb_mr *mr;
	struct request *requests, *free;
	uint64_t first, blocks; /* its part, in units of bs */
	uint64_t ios;           /* to do; 0: until --seconds are over, with --check: none */
	struct block *table;    /* of blocks */
	uint64_t random;
	uint64_t cursor; /* of sequential ones */
	uint32_t seq;    /* of the last write */
	uint32_t unflushed;
	bool flushing;
	/* The result. */
	uint64_t begun, reads, writes, flushes, verified, wrong, failed, unwritten;
	uint64_t foreign; /* blocks with data of an earlier run, whose write was not acknowledged */
	uint64_t cycles;
	struct hist latency; /* ns */
	int rc;              /* 0 or -errno: it could not be set up, or the connection broke */
	char why[256];
};

/* client_options.c */
int client_options_parse(void *o, int argc, char **argv);
void client_help(FILE *out);

/* client_run.c; by the job's own lcore, as its queues are that one's */
int job_open(void *job);
int job_run(void *job);
int job_close(void *job);

/* journal.c: what was acknowledged, as a file */
int journal_write(const struct options *o, const struct job *jobs, uint32_t n);
/*
 * Fills the tables of open jobs from the journal, and limits the jobs to the blocks that it names.
 */
int journal_read(const struct options *o, struct job *jobs, uint32_t n);

/* client_report.c: the exit status */
int client_report(const struct options *o, const struct job *jobs, uint32_t n);

#endif
