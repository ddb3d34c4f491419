/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * testrdma: run RDMA operations through one device and check what they do.
 *
 * Read next: testrdma.h (what a row, a pair and a slot are), run.c (the loop),
 * modes/ (one file per kind of operation), verify.c (how memory is checked).
 */

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "testrdma.h"

volatile sig_atomic_t stop_signal;

static void
on_signal(int sig)
{
	stop_signal = sig;
}

/* The first signal ends the run with a summary, a second one ends the program. */
static void
catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* "--" and what stands behind it; EAL has what stands before. */
static int
split_args(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

static int
parse_args(struct test *t, int argc, char **argv, int eal_argc)
{
	int i, rc;

	for (i = 1; i < eal_argc; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
			options_help(stdout);
			return 1;
		}
		if (options_known(argv[i])) {
			fprintf(stderr,
				"testrdma: %s is not an EAL option: put it behind --, as in "
				"testrdma -l 0 -- %s ...\n",
				argv[i], argv[i]);
			return -1;
		}
	}
	if (eal_argc == argc)
		return options_parse(&t->o, 1, argv);
	argv[eal_argc] = argv[0];
	rc = options_parse(&t->o, argc - eal_argc, argv + eal_argc);
	argv[eal_argc] = NULL;
	return rc;
}

static void
run_rows(struct test *t, struct row *row)
{
	uint32_t i, k;

	t->nrows = options_rows(&t->o);
	report_start(t);
	for (i = 0; i < t->o.nops; i++) {
		const struct engine *e = t->o.ops[i];

		for (k = 0; k < (e->atomic ? 1 : t->o.nsizes); k++) {
			if (t->fatal || stop_signal != 0)
				return;
			row_layout(t, row, e, e->atomic ? 8 : t->o.sizes[k]);
			row_run(t, row);
			report_row(t, row);
			json_row(t, row);
			t->verified += row->res.bytes;
			if (row->res.errors > 0)
				t->failed++;
			else if (row->complete)
				t->passed++;
			t->row_no++;
		}
	}
}

static int
run(struct test *t)
{
	struct row *row;
	int rc = test_open(t);

	t->started = rte_rdtsc();
	if (rc != 0)
		return -rc;
	row = rte_zmalloc("row", sizeof(*row), 64);
	if (row == NULL) {
		fprintf(stderr, "testrdma: no memory\n");
		return EXIT_FAILED;
	}
	json_start(t);
	run_rows(t, row);
	report_summary(t);
	rte_free(row);
	if (t->errors > 0)
		return EXIT_FAILED;
	return stop_signal != 0 && t->passed < t->nrows ? 128 + stop_signal : 0;
}

int
main(int argc, char **argv)
{
	static struct test t;
	int eal_argc = split_args(argc, argv), rc;

	rc = parse_args(&t, argc, argv, eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	if (t.o.json != NULL && json_open(t.o.json) != 0)
		return EXIT_USAGE;
	if (rte_eal_init(eal_argc, argv) < 0) {
		fprintf(stderr,
			"testrdma: EAL did not start: %s; without hugepages give "
			"--no-huge -m 512\n",
			rte_strerror(rte_errno));
		json_close(&t, EXIT_FAILED);
		return EXIT_FAILED;
	}
	catch_signals();
	rc = run(&t);
	if (json_close(&t, rc) != 0 && rc == 0)
		rc = EXIT_FAILED;
	test_close(&t);
	rte_eal_cleanup();
	return rc;
}
