/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * nvmf_client: generates load for a target, and checks the target's data. Each lcore runs a job. A
 * job has a device, a controller of the target, and a range of blocks that no other job accesses.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <bluebell.h>

#include "bb_nvmf.h"
#include "histogram.h"
#include "program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define MAX_JOBS 16u
#define MAX_BS   (1u << 20)

enum rw {
	RW_READ,
	RW_WRITE,
	RW_RANDREAD,
	RW_RANDWRITE,
	RW_RANDRW, /* reads and writes, half of each */
};

struct options {
	const char *device[MAX_JOBS];
	uint32_t devices;
	const char *connect, *subsystem, *host;
	enum rw rw;
	uint32_t bs, depth, wait_s, reconnect_s, nsid;
	uint64_t ios; /* requests per job; 0: one per block, or until seconds have passed */
	uint64_t seconds;
	uint64_t offset, size; /* range in bytes; size 0: up to the end of the device */
	uint64_t seed;
	uint64_t flush_every; /* number of writes before each flush; 0: one flush at the end */
	bool fua, verify, windows;
	const char *journal; /* journal to write; NULL if none */
	const char *check;   /* journal whose blocks are read and checked; NULL if none */
	const char *json;
};

/* State of a block of bs bytes. acked and sent are 0 before the first write to the block. */
struct block {
	uint32_t acked; /* sequence number of the last completed write */
	uint32_t sent;  /* sequence number of the last write sent */
	bool busy;      /* a request for the block is outstanding */
};

struct request {
	uint8_t *mem;
	uint64_t block;
	uint64_t began;
	uint32_t seq; /* sequence number of a write; not used for other operations */
	enum bb_nvmf_op op;
	struct request *next;
};

struct job {
	const struct options *o;
	uint32_t index, lcore, jobs;
	struct bb_dev *dev;
	struct bb_nvmf *nvmf;
	uint32_t reconnects;
	uint8_t *mem;
	struct bb_mr *mr;
	struct request *requests, *free;
	uint64_t first, blocks; /* first block and number of blocks of the job, in units of bs */
	/* requests to execute; 0 means until --seconds have passed, or none with --check */
	uint64_t ios;
	struct block *table; /* one entry per block */
	uint64_t random;
	uint64_t cursor; /* next block of sequential requests */
	uint32_t seq;    /* sequence number of the last write */
	uint32_t unflushed;
	bool flushing;
	/* TSC of the last completed request after the user's interrupt; 0 before the interrupt */
	uint64_t progress;
	uint32_t pending; /* number of outstanding requests at the last check of progress */
	/* Results of the job: numbers of requests, by kind and outcome. */
	uint64_t begun, reads, writes, flushes, verified, wrong, failed, unwritten;
	/*
	 * number of blocks with data of an earlier run; the journal has no acknowledged write to
	 * these blocks
	 */
	uint64_t foreign;
	uint64_t cycles;
	struct hist latency; /* latencies in ns */
	int rc; /* 0, or a negative errno if the job could not start or the connection broke */
	char why[256];
};

/* Defined in client_options.c. */
int client_options_parse(void *o, int argc, char **argv);
void client_help(FILE *out);

/* client_run.c. Only the job's lcore may call these, because it owns the queues. */
int job_open(void *job);
int job_run(void *job);
int job_close(void *job);

/* journal.c: lists of acknowledged writes. Return 0, or a negative number and print the error. */
int journal_write(const struct options *o, const struct job *jobs, uint32_t n);
/*
 * Fills the tables of open jobs from the journal, and limits the jobs to the blocks that it names.
 */
int journal_read(const struct options *o, struct job *jobs, uint32_t n);

/* client_report.c: prints the results, and returns the exit status. */
int client_report(const struct options *o, const struct job *jobs, uint32_t n);

#endif
