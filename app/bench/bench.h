/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The bench: measures what the library costs beside a floor written by hand, in
 * one run and alternately, so that both see the same machine.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

#define BENCH_MAX_REPEAT   1001
#define BENCH_MAX_PEER_EAL 16
#define BENCH_MAX_POINTS   16 /* of a sweep */
#define BENCH_MIN_SIZE     8u
#define BENCH_MAX_SIZE     (1u << 20)
#define BENCH_MAX_QPS      10000u

/* What a sweep goes over, ascending. */
struct bench_sweep {
	uint32_t at[BENCH_MAX_POINTS];
	unsigned int n;
};

struct bench_opts {
	unsigned int repeat;
	bool quick;
	const char *device, *peer_device; /* NULL: what the case has */
	const char *peer_eal[BENCH_MAX_PEER_EAL];
	unsigned int n_peer_eal;
	struct bench_sweep sizes, qps;
	int eal_argc; /* 0: our own choice */
	char **eal_argv;
};
extern struct bench_opts opts;

/* ---- measure.c */

/* Pin the calling thread; -errno. */
int pin(unsigned int cpu);
uint64_t tsc(void);
double tsc_ghz(void);  /* measured once */
double core_ghz(void); /* measured now: the clock the core runs at */
double ns_since(uint64_t start);
double median(double *v, unsigned int n); /* sorts v */

/* CPUs of the measuring thread and of its peer (device, echo): the first two allowed. */
extern unsigned int cpu_self, cpu_peer;
void cpus_choose(void);
bool have_peer_cpu(void);
/* Round trip of a cache line between both CPUs, ns; the peer's must be free. */
double measure_l(void);
/* Run @fn on the peer CPU. 0 or -errno. */
struct peer;
int peer_start(void *(*fn)(void *), void *arg, struct peer **peer);
void peer_join(struct peer *peer);

/* One measurement: ns (or whatever the row's unit is) per operation; < 0: failed. */
typedef double (*measure_fn)(void *arg);

/*
 * Times of single operations, which a measurement of a latency adds, of the side that is
 * measured now, in halves of a TSC tick. They are taken beside the mean, not in the time that
 * it is of: a reading of the TSC is a tenth of the shortest.
 */
extern struct hist measure_samples;

/* @last becomes now. One way: half of what has passed since. */
static inline void
sample_round_trip(uint64_t *last)
{
	const uint64_t now = tsc();

	hist_add(&measure_samples, now - *last);
	*last = now;
}

static inline void
sample_whole(uint64_t *last)
{
	const uint64_t now = tsc();

	hist_add(&measure_samples, 2 * (now - *last));
	*last = now;
}

/* Quantiles of such times, of all pairs that were not thrown away; ns. */
#define BENCH_QUANTILES 5
struct tail {
	uint64_t samples; /* 0: none were taken */
	double ns[BENCH_QUANTILES];
};
/* "p50" to "max", and as a part of a million. */
extern const struct quantile {
	const char *name, *key;
	uint32_t ppm;
} bench_quantiles[BENCH_QUANTILES];

/* Floor and ours, alternately; medians over opts.repeat pairs. */
struct pair {
	double floor, ours;
	double ratio;             /* median of the pairs' ratios */
	double floor_limit_scale; /* what a recorded time is multiplied with here */
	double l_before, l_after; /* 0: not a cross-core figure */
	double floor_l, ours_l;   /* medians of the pairs' figures in their own L */
	struct tail floor_tail, ours_tail;
	unsigned int pairs;  /* that the medians are of */
	unsigned int thrown; /* pairs thrown away as L moved */
	double shared;   /* part of the time that other work had of its CPUs; 0: nothing to speak of
			  */
	bool floor_only; /* there is nothing of ours beside it */
	bool valid;
};
void measure_pair(measure_fn floor, void *floor_arg, measure_fn ours, void *ours_arg,
		  struct pair *p);
/*
 * The same, L measured around each pair; a pair in which it moved is thrown away. @ours
 * may be NULL: a floor or a peer alone.
 */
void measure_pair_cross(measure_fn floor, void *floor_arg, measure_fn ours, void *ours_arg,
			struct pair *p);
/*
 * What a side opens and closes in each of its runs is no part of what it measures: threads that
 * wait for a CPU meanwhile do not count as a row's.
 */
void measure_aside_begin(void);
void measure_aside_end(void);

/* ---- report.c */

enum goal {
	GOAL_NONE,
	GOAL_AT_MOST,  /* ratio ours / floor */
	GOAL_AT_LEAST, /* ratio ours / floor, for rates */
	GOAL_BELOW,    /* ours itself */
	GOAL_BELOW_L,  /* ours in L */
};

/* How the recorded floor is brought to this machine and moment. */
enum limit_by {
	LIMIT_NONE,
	LIMIT_NS,     /* ns on a core of 3.8 GHz */
	LIMIT_L,      /* in L */
	LIMIT_RATE,   /* M/s on a core of 3.8 GHz */
	LIMIT_RATE_L, /* M/s at L = 125 ns */
};

/* The plot of lines that a row is a point of. */
enum bench_plot {
	PLOT_NONE,
	PLOT_SIZE, /* rate over message size; x in bytes */
	PLOT_QPS,  /* rate over QPs */
};

struct row {
	char name[48];
	enum bench_plot plot;
	uint32_t x;
	const char *ours_line, *floor_line; /* names of the lines */
	const char *unit;
	struct pair p;
	enum goal goal;
	double target;
	enum limit_by limit_by;
	double limit_lo, limit_hi; /* a range, or twice the same figure */
	char note[200];
};

/* A row and what became of it. */
struct judged {
	struct row row;
	const char *verdict; /* "reached", "missed", "not judged", "failed", "skipped", "" */
	double ratio;        /* 0: none shown */
	char why[160];
};
#define BENCH_MAX_ROWS 512
/* In the order they were measured; NULL: no more. */
const struct judged *report_judged(unsigned int i);

/* Takes a copy; prints it at once, as a line of the table. */
void report_row(const struct row *row);
void report_skip(const char *name, const char *why);
void report_header(void);
/* All rows again as CSV or JSON to @path; NULL: to stdout. 0 or -errno. */
int report_csv(const char *path);
int report_json(const char *path);
/* html.c: as a page of HTML to @path, with the L of the beginning. 0 or -errno. */
int report_html(const char *path, double l);
/* What the row must reach, as "<= 1.5 x"; "": it has no goal. */
#define REPORT_GOAL 24
void report_goal(const struct row *row, char text[static REPORT_GOAL]);
/* How many targets were reached, missed, not judged; without an end of line. */
void report_summary(FILE *f);
unsigned int report_failed(void);
unsigned int report_count(void);

/* ---- main.c */

/*
 * A signal has ended the run (stop.h): what is measured now is of no use any more, rows before it
 * are reported. What a case has made, namespaces and processes, goes the way it goes without a
 * signal.
 */
bool bench_stopped(void);

/* ---- cases */

struct bench_case {
	const char *name;
	const char *what;
	int (*run)(void); /* 0 or -errno, which ends the bench */
};
extern const struct bench_case case_post, case_post_poll, case_poll, case_inline, case_lcore,
	case_lkey, case_bandwidth, case_qps, case_pauses, case_mapped, case_memif, case_peers,
	case_wire, case_shm, case_loss, case_kernel, case_size, case_scale;

/* ---- main.c */

/* A whole number within [lo, hi], else exit. */
uint64_t bench_number(const char *what, const char *text, uint64_t lo, uint64_t hi);
bool bench_has_case(const char *name);
/* The line of --list; "": there is no such case. */
const char *bench_case_what(const char *name);
/* A list of sizes, powers of two, or of numbers of QPs; @what names it. Else exit. */
void bench_sizes(const char *what, const char *text);
void bench_qps(const char *what, const char *text);

/* ---- config.c */

/* Cases in the order they run. */
#define BENCH_MAX_RUNS 32
struct bench_config {
	struct {
		char name[16];
		unsigned int repeat; /* 0: as all */
	} runs[BENCH_MAX_RUNS];
	unsigned int n;
	const char *csv, *json, *report; /* NULL: none */
};
/* A file in the manner of INI; what it says of the whole run goes to opts. 0, or exit code. */
int bench_config_load(const char *path, struct bench_config *config);

/* ---- count.c */
int count_list(void);
int count_run(const char *kernel, const char *side, uint64_t n);

#endif
