/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* bb_hca: a ConnectX for a virtual machine. Read hca.h first. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "hca_log.h"
#include "hca_pci.h"
#include "options.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

/*
 * Inserts "--" before the options, so that EAL does not parse them. Does nothing if the command
 * line already has "--".
 */
static char **
with_separator(int *argc, char **argv)
{
	static char separator[] = "--", **out; /* static, because EAL uses its arguments until
						  the program ends */
	int i;

	for (i = 1; i < *argc; i++)
		if (strcmp(argv[i], separator) == 0)
			return argv;
	out = calloc((size_t)*argc + 2, sizeof(*out));
	if (out == NULL)
		return argv;
	out[0] = argv[0];
	out[1] = separator;
	memcpy(&out[2], &argv[1], (size_t)(*argc - 1) * sizeof(*out));
	++*argc;
	return out;
}

int
main(int argc, char **argv)
{
	static struct options o;
	static struct hca h[HCA_MAX_FUNCTIONS];
	unsigned int i;
	int eal_argc, rc;
	sigset_t stop;

	/*
	 * Blocks the signals before EAL starts threads. Otherwise one of these threads could take a
	 * signal that must end a sleep of this thread.
	 */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
	argv = with_separator(&argc, argv);
	rc = program_args(&hca_program, &o, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	if (program_start(eal_argc, argv) != 0)
		return EXIT_FAILED;
	hca_log_level(o.verbose ? RTE_LOG_DEBUG : RTE_LOG_NOTICE);
	guest_catch_sigbus();
	for (i = 0; i < o.n_functions; i++) {
		rc = hca_open(&h[i], &o.functions[i].hca);
		if (rc != 0) {
			say("cannot open %s: %s", o.functions[i].device, strerror(-rc));
			rc = EXIT_FAILED;
			goto close;
		}
	}
	hca_telemetry(h, o.functions, o.n_functions);
	rc = hca_serve(h, o.functions, o.n_functions) == 0 ? 0 : EXIT_FAILED;
close:
	while (i-- > 0)
		hca_close(&h[i]);
	program_end();
	return rc;
}
