/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * nvmf_client: generates load for nvmf_target, and checks the target's data.
 *
 * Read next: bb_nvmf.h (the library), client.h (jobs), client_run.c (the loop of a job).
 */
#include <stdlib.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "client.h"
#include "output.h"

static bool
options_no_pci(const void *options)
{
	const struct options *o = options;
	uint32_t i;

	for (i = 0; i < o->devices; i++)
		if (!eal_spec_no_pci(o->device[i]))
			return false;
	return true;
}

static const struct program program = {
	.name = "nvmf_client",
	.memory_mb = 256,
	.options = (const struct option[]){{"rw", 1, NULL, 0},
					   {"device", 1, NULL, 0},
					   {"connect", 1, NULL, 0},
					   {"verify", 0, NULL, 0},
					   {NULL, 0, NULL, 0}},
	.help = client_help,
	.parse = client_options_parse,
	.no_pci = options_no_pci,
};

static int
open_devices(const struct options *o, struct job *jobs, uint32_t n)
{
	unsigned int lcore = rte_get_main_lcore();
	const char *spec;
	uint32_t i;
	int rc;

	for (i = 0; i < n; i++) {
		jobs[i].o = o;
		jobs[i].index = i;
		jobs[i].jobs = n;
		jobs[i].lcore = lcore;
		lcore = rte_get_next_lcore(i == 0 ? (unsigned int)-1 : lcore, 1, 0);
		spec = o->device[i < o->devices ? i : o->devices - 1];
		rc = bb_dev_open(spec, &jobs[i].dev);
		if (rc != 0) {
			say("--device %s: cannot be opened: %s; the lines above say why", spec,
			    strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/*
 * Calls @fn for each job on the job's lcore, and waits for all. Returns 0, or the error of the
 * first job that failed.
 */
static int
step(struct job *jobs, uint32_t n, int (*fn)(void *))
{
	uint32_t i;
	int rc = 0;

	for (i = 1; i < n; i++)
		rte_eal_remote_launch(fn, &jobs[i], jobs[i].lcore);
	fn(&jobs[0]);
	rte_eal_mp_wait_lcore();
	for (i = 0; i < n && rc == 0; i++)
		rc = jobs[i].rc;
	return rc;
}

static int
run(const struct options *o)
{
	static struct job jobs[MAX_JOBS];
	uint32_t n = rte_lcore_count(), i;
	bool ran = false;
	int rc;

	if (n > MAX_JOBS) {
		say("%u lcores: give at most %u by -l", n, MAX_JOBS);
		return EXIT_USAGE;
	}
	if (open_devices(o, jobs, n) != 0) {
		rc = EXIT_FAILED;
	} else {
		rc = step(jobs, n, job_open);
		if (rc == 0 && o->check != NULL)
			jobs[0].rc = rc = journal_read(o, jobs, n);
		if (rc == 0) {
			printf("nvmf_client: connected, depth %u\n",
			       bb_nvmf_shape(jobs[0].nvmf)->depth);
			fflush(stdout);
			ran = true;
			rc = step(jobs, n, job_run);
		}
		step(jobs, n, job_close);
		rc = client_report(o, jobs, n);
		/* A run that did not connect leaves the journal of an earlier one as it is. */
		if (ran && o->journal != NULL && journal_write(o, jobs, n) != 0)
			rc = EXIT_FAILED;
	}
	for (i = 0; i < n; i++) {
		free(jobs[i].table);
		if (jobs[i].dev != NULL)
			bb_dev_close(jobs[i].dev);
	}
	return rc;
}

int
main(int argc, char **argv)
{
	static struct options o;
	int eal_argc, rc;

	rc = program_args(&program, &o, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	/* Check now that the files can be written, not after the run. */
	if (!output_try("json", o.json) || !output_try("journal", o.journal))
		return EXIT_USAGE;
	if (program_start(eal_argc, argv) != 0)
		return EXIT_FAILED;
	rc = run(&o);
	program_end();
	return rc;
}
