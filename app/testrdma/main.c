/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * testrdma: runs RDMA operations through one device and checks their effects.
 *
 * Read next: testrdma.h (tests, pairs and slots), run.c (the loop), modes/ (one file per type of
 * operation), verify.c (checks of memory). For sessions: session.c, commands.c, runner.c (tests in
 * the background).
 */

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "remote.h"
#include "session.h"

static void
run_rows(struct tester *t, struct row *row)
{
	const struct engine *e;
	uint32_t size;

	t->nrows = options_rows(&t->o);
	report_start(t);
	while (!t->fatal && stop_signal == 0 &&
	       (e = options_row(&t->o, t->row_no, &size)) != NULL) {
		row_layout(t, row, e, size);
		row_run(t, row);
		row_over(t, row);
	}
}

static int
run(struct tester *t)
{
	struct row *row;
	int rc;

	t->lcore = BB_LCORE_SELF;
	rc = tester_open_device(t);
	if (rc == 0)
		rc = tester_open_queues(t);
	t->started = rte_rdtsc();
	if (rc != 0)
		return -rc;
	row = rte_zmalloc("row", sizeof(*row), 64);
	if (row == NULL) {
		say("no memory");
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

static int
run_server(struct tester *t)
{
	struct server *server = NULL;
	int rc = -tester_open_device(t);

	json_start(t);
	if (rc == 0)
		rc = serve_open(t, &server);
	if (rc == 0) {
		serve_run(server, true);
		t->errors = serve_errors(server);
	}
	serve_close(server);
	if (rc == 0 && t->errors > 0)
		return EXIT_FAILED;
	return rc == 0 && stop_signal != 0 ? 128 + stop_signal : rc;
}

int
main(int argc, char **argv)
{
	static struct tester t;
	int eal_argc, rc;

	rc = program_args(&testrdma_program, &t.o, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	if (t.o.json != NULL && json_open(t.o.json) != 0)
		return EXIT_USAGE;
	if (program_start(eal_argc, argv) != 0) {
		json_close(&t, EXIT_FAILED);
		return EXIT_FAILED;
	}
	if (t.o.listen != NULL) {
		rc = run_server(&t);
	} else if (options_session(&t.o) || t.o.lcores > 1) {
		rc = session_run(&t.o);
		program_end();
		return rc;
	} else {
		rc = run(&t);
	}
	if (json_close(&t, rc) != 0 && rc == 0)
		rc = EXIT_FAILED;
	tester_close_queues(&t);
	tester_close_device(&t);
	program_end();
	return rc;
}
