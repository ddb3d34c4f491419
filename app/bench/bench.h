/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The program bench compares the cost of the library with that of a hand-written baseline. It runs
 * the two alternately, so that other work on the machine affects both alike.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "histogram.h"

#define BENCH_MAX_REPEAT   1001
#define BENCH_MAX_PEER_EAL 16
#define BENCH_MAX_POINTS   16 /* maximum number of values that a case measures for a parameter */
#define BENCH_MIN_SIZE     8u
#define BENCH_MAX_SIZE     (1u << 20)
#define BENCH_MAX_QPS      10000u

/* Values of a parameter (a size, a number of QPs, ...) that a case measures, in ascending order. */
struct bench_sweep {
	uint32_t at[BENCH_MAX_POINTS];
	unsigned int n;
};

struct bench_opts {
	unsigned int repeat;
	bool quick;
	const char *device, *peer_device; /* device specifications; NULL for those of the case */
	const char *peer_eal[BENCH_MAX_PEER_EAL];
	unsigned int n_peer_eal;
	struct bench_sweep sizes, qps;
	int eal_argc; /* number of EAL arguments; 0 for the default ones */
	char **eal_argv;
};

/* ---- opts.c */

extern struct bench_opts opts;
/*
 * Returns true if a signal has stopped the run (stop.h). The current measurement is then discarded,
 * and the earlier results are reported. A stopped case still removes its network namespaces and
 * child processes.
 */
bool bench_stopped(void);
/*
 * Parses @text, a whole number within [lo, hi]; @what names it in error texts. Exits the program on
 * an error.
 */
uint64_t bench_number(const char *what, const char *text, uint64_t lo, uint64_t hi);
/*
 * Parses the list @text of sizes (powers of two) or of numbers of QPs; @what says which. Exits the
 * program on an error.
 */
void bench_sizes(const char *what, const char *text);
void bench_qps(const char *what, const char *text);

/* ---- measure.c */

/* Pins the calling thread to @cpu. Returns 0 or -errno. */
int pin(unsigned int cpu);
uint64_t tsc(void);
double tsc_ghz(void);  /* measured at the first call */
double core_ghz(void); /* current clock of the core, measured at each call */
double ns_since(uint64_t start);
double median(double *v, unsigned int n); /* also sorts v */

/*
 * CPU of the measuring thread, and CPU of the device or of the second process. cpus_choose() takes
 * the first two CPUs that this process may use.
 */
extern unsigned int cpu_self, cpu_peer;
void cpus_choose(void);
bool have_peer_cpu(void);
/*
 * Measures L, the round trip of a cache line between cpu_self and cpu_peer, in ns. cpu_peer must be
 * idle.
 */
double measure_l(void);
/*
 * Also watches process @pid from now on: each measurement then counts the time that this process
 * waits for a CPU as lost to other work. @pid is 0 if there is no second process.
 */
void measure_peer_process(pid_t pid);
/*
 * peer_start() starts a thread that runs @fn on cpu_peer. It returns 0 or -errno. peer_join() waits
 * until @fn returns.
 */
struct peer;
int peer_start(void *(*fn)(void *), void *arg, struct peer **peer);
void peer_join(struct peer *peer);

/*
 * Runs one measurement. Returns ns per operation, or a value in the unit that its line of the
 * report has. A negative number is an error.
 */
typedef double (*measure_fn)(void *arg);

/*
 * Times of single operations, in halves of a TSC tick. A measurement of a latency, of the baseline
 * or of Bluebell, adds its times here. The mean does not contain these operations, because a
 * reading of the TSC takes a tenth of the shortest operation.
 */
extern struct hist measure_samples;

/*
 * Adds the latency of one direction: half of the time since *@last. The histogram's unit is half a
 * TSC tick, so the number added is the whole time in ticks. Sets *@last to now.
 */
static inline void
sample_round_trip(uint64_t *last)
{
	const uint64_t now = tsc();

	hist_add(&measure_samples, now - *last);
	*last = now;
}

/*
 * A measurement of n round trips. The first half gives the mean latency. The second half gives the
 * latencies of single round trips (sample_round_trip()).
 */
struct round_trips {
	uint64_t half;        /* half of the number of round trips */
	uint64_t start, last; /* TSC after the first round trip, and after the last one */
	double ns;            /* mean latency of one direction, in ns */
};

/* Records that round trip @k has ended; the first one is 1. */
static inline void
round_trip_done(struct round_trips *t, uint64_t k)
{
	/* Does not measure the first round trip, because it also wakes the second process. */
	if (k == 1)
		t->start = tsc();
	if (k > t->half)
		sample_round_trip(&t->last);
	if (k == t->half) {
		t->ns = ns_since(t->start) / (double)(t->half - 1) / 2;
		t->last = tsc();
	}
}

static inline void
sample_whole(uint64_t *last)
{
	const uint64_t now = tsc();

	hist_add(&measure_samples, 2 * (now - *last));
	*last = now;
}

/* Quantiles of the times of single operations in all accepted pairs, in ns. */
#define BENCH_QUANTILES 5
struct tail {
	uint64_t samples; /* number of single operations; 0 if none was timed */
	double ns[BENCH_QUANTILES];
};
/* names from "p50" to "max", and the quantiles in millionths */
extern const struct quantile {
	const char *name, *key;
	uint32_t ppm;
} bench_quantiles[BENCH_QUANTILES];

/*
 * Results of the baseline and of Bluebell, which run alternately: medians over opts.repeat pairs of
 * runs. L is the round trip of a cache line, see measure_l().
 */
struct pair {
	double baseline, bluebell;
	double ratio; /* median of the pairs' ratios */
	/* factor that converts a recorded time of the baseline to this machine */
	double baseline_limit_scale;
	/*
	 * L (round trip of a cache line between the two CPUs) in ns, before and after the runs; 0
	 * with one CPU
	 */
	double l_before, l_after;
	/*
	 * medians of the pairs' figures, each divided by L (round trip of a cache line between two
	 * CPUs) of its pair
	 */
	double baseline_l, bluebell_l;
	struct tail baseline_tail, bluebell_tail;
	unsigned int pairs; /* number of pairs of runs in the medians */
	/*
	 * number of pairs of runs rejected because the round trip of a cache line between the CPUs
	 * changed
	 */
	unsigned int rejected;
	double shared;      /* fraction of the time lost to other work; 0 if negligible */
	bool baseline_only; /* only the baseline is measured, not Bluebell */
	bool valid;
};
void measure_pair(measure_fn baseline, void *baseline_arg, measure_fn bluebell, void *bluebell_arg,
		  struct pair *p);
/*
 * Does the same as measure_pair(), for a measurement that needs both CPUs. Before and after each
 * pair of runs it measures L, the round trip of a cache line between the CPUs. It rejects a pair in
 * which L changed. If @bluebell is NULL, only @baseline is measured.
 */
void measure_pair_cross(measure_fn baseline, void *baseline_arg, measure_fn bluebell,
			void *bluebell_arg, struct pair *p);
/*
 * Mark the begin and the end of a part of a run that opens or closes resources. A measurement is
 * invalid if its threads lost too much time to other work on the CPUs. The time lost in this part
 * does not count.
 */
void measure_setup_begin(void);
void measure_setup_end(void);

/* ---- report.c */

enum goal {
	GOAL_NONE,
	GOAL_AT_MOST,  /* the ratio Bluebell / baseline is at most target; for times */
	GOAL_AT_LEAST, /* the ratio Bluebell / baseline is at least target; for rates */
	GOAL_BELOW,    /* Bluebell's time is at most target */
	/*
	 * Bluebell's time, divided by L (round trip of a cache line between two CPUs), is at most
	 * target
	 */
	GOAL_BELOW_L,
};

/*
 * Unit of a recorded figure of the baseline. It decides how the figure is converted to the clock of
 * this machine and to its L (round trip of a cache line between two CPUs).
 */
enum limit_by {
	LIMIT_NONE,
	LIMIT_NS, /* the recorded figure is in ns on a 3.8 GHz core */
	/* the recorded figure is a multiple of L (round trip of a cache line between two CPUs) */
	LIMIT_L,
	LIMIT_RATE,   /* the recorded figure is in M/s on a 3.8 GHz core */
	LIMIT_RATE_L, /* the recorded figure is in M/s for a cache line round trip (L) of 125 ns */
};

/* The plot in which a result is a point. */
enum bench_plot {
	PLOT_NONE,
	PLOT_SIZE, /* rate over message size; x in bytes */
	PLOT_QPS,  /* rate over number of QPs; x is the number */
};

struct row {
	char name[48];
	enum bench_plot plot;
	uint32_t x;
	const char *bluebell_line, *baseline_line; /* names of the lines in the plot */
	const char *unit;
	struct pair p;
	enum goal goal;
	double target;
	enum limit_by limit_by;
	double limit_lo, limit_hi; /* range of the recorded baseline; equal if it is one figure */
	char note[200];
};

/* A result and its verdict. */
struct judged {
	struct row row;
	const char *verdict; /* "reached", "missed", "not judged", "failed", "skipped", "" */
	double ratio;        /* 0 if no ratio is shown */
	char why[160];
};
#define BENCH_MAX_ROWS 512
/* Returns result @i in the order of measurement, NULL after the last. */
const struct judged *report_judged(unsigned int i);

/* Stores a copy of the result and prints the result as a line of the table. */
void report_row(const struct row *row);
void report_skip(const char *name, const char *why);
void report_header(void);
/* Write all results as CSV or JSON to @path, or to stdout if @path is NULL. Return 0 or -errno. */
int report_csv(const char *path);
int report_json(const char *path);
/*
 * html.c: writes all results as an HTML page to @path. @l is L, the round trip of a cache line
 * between two CPUs, in ns at the start of the run. Returns 0 or -errno.
 */
int report_html(const char *path, double l);
/*
 * report_goal() writes the goal of a result as text of at most REPORT_GOAL bytes, such as "<= 1.5
 * x". It writes "" if there is no goal.
 */
#define REPORT_GOAL 24
void report_goal(const struct row *row, char text[static REPORT_GOAL]);
/* Prints how many targets were reached, missed or not judged, without a newline. */
void report_summary(FILE *f);
unsigned int report_failed(void);
unsigned int report_count(void);

/* ---- cases */

struct bench_case {
	const char *name;
	const char *what;
	int (*run)(void); /* returns 0, or -errno, which ends the bench */
};
extern const struct bench_case case_post, case_post_poll, case_poll, case_inline, case_lcore,
	case_lkey, case_bandwidth, case_qps, case_pauses, case_mapped, case_memif, case_peers,
	case_wire, case_shm, case_loss, case_kernel, case_size, case_scale, case_ring;

/* ---- config.c */

/* Maximum number of cases in a configuration file. */
#define BENCH_MAX_RUNS 32
struct bench_config {
	struct {
		char name[16];
		/* number of pairs of runs (baseline, then Bluebell); 0 for the default */
		unsigned int repeat;
	} runs[BENCH_MAX_RUNS];
	unsigned int n;
	const char *csv, *json, *report; /* output paths; NULL if not written */
};
/*
 * Loads the configuration file @path (INI). Sets opts from the options of the whole run. Returns 0,
 * or an exit code.
 */
int bench_config_load(const char *path, struct bench_config *config);

/* ---- cases.c */

bool bench_has_case(const char *name);
/* Returns the description of a case for --list, or "" if there is no such case. */
const char *bench_case_what(const char *name);
/* Prints the lines of --list. */
void cases_list(FILE *out);
/*
 * Returns true if all names in @list, which are separated by commas, are cases. Otherwise prints
 * the name that is not.
 */
bool cases_check(const char *list);
/*
 * Run the cases of a list (NULL for all cases), or those of a configuration file. Return 0, or the
 * -errno of the first case that fails.
 */
int cases_run(const char *list);
int cases_run_config(const struct bench_config *config);

/* ---- count.c */
int count_list(void);
/* Runs the loops @names, separated by commas, @n times each. Returns 0, or -errno of the first that
 * fails. */
int count_run(const char *names, const char *side, uint64_t n);

#endif
