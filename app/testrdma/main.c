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
run_tests(struct tester *t, struct test *test)
{
	const struct engine *e;
	uint32_t size;

	t->ntests = options_tests(&t->o);
	report_start(t);
	while (!t->fatal && stop_signal == 0 &&
	       (e = options_test(&t->o, t->test_no, &size)) != NULL) {
		test_layout(t, test, e, size);
		test_run(t, test);
		test_finish(t, test);
	}
}

static int
run(struct tester *t)
{
	struct test *test;
	int rc;

	t->lcore = BB_LCORE_SELF;
	rc = tester_open_device(t);
	if (rc == 0)
		rc = tester_open_queues(t);
	t->started = rte_rdtsc();
	if (rc != 0)
		return stop_signal != 0 ? 128 + stop_signal : -rc;
	test = rte_zmalloc("row", sizeof(*test), 64);
	if (test == NULL) {
		say("no memory for the list of tests");
		return EXIT_FAILED;
	}
	json_start(t);
	run_tests(t, test);
	report_summary(t);
	rte_free(test);
	if (t->errors > 0)
		return EXIT_FAILED;
	return stop_signal != 0 && t->passed < t->ntests ? 128 + stop_signal : 0;
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
