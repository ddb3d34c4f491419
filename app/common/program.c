/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "number.h"
#include "output.h"
#include "program.h"

static const struct program *program;
static const void *options; /* set once program.parse() has filled them */

void
say(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

static bool
is_own_option(const char *arg)
{
	const struct option *l;
	size_t n;

	if (strncmp(arg, "--", 2) != 0)
		return false;
	arg += 2;
	n = strcspn(arg, "=");
	for (l = program->options; l->name != NULL; l++)
		if (strlen(l->name) == n && strncmp(l->name, arg, n) == 0)
			return true;
	return false;
}

int
program_args(const struct program *prog, void *o, int argc, char **argv, int *eal_argc)
{
	int i, rc, n;

	program = prog;
	output_watch();
	for (n = 1; n < argc; n++)
		if (strcmp(argv[n], "--") == 0)
			break;
	*eal_argc = n;
	for (i = 1; i < n; i++) {
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
			program->help(stdout);
			return 1;
		}
		if (is_own_option(argv[i])) {
			say("%s is not an EAL option: put it after --, as in %s -l 0 -- %s ...",
			    argv[i], program->name, argv[i]);
			return -1;
		}
	}
	options = o;
	optind = 0; /* makes getopt_long() start at the first argument again */
	if (n == argc)
		return program->parse(o, 1, argv);
	argv[n] = argv[0];
	rc = program->parse(o, argc - n, argv + n);
	argv[n] = NULL;
	return rc;
}

int
program_start(int eal_argc, char **argv)
{
	if (eal_start_completed(program->name, eal_argc, argv, program->memory_mb,
				program->no_pci(options)) < 0) {
		/*
		 * Prints no cause if rte_errno is 0. EAL does not set it for every failure, for
		 * example if another program holds EAL's files.
		 */
		say("EAL did not start%s%s; see the lines of EAL above. Without hugepages give "
		    "--no-huge -m %u; to run beside another DPDK program give --file-prefix NAME",
		    rte_errno != 0 ? ": " : "", rte_errno != 0 ? rte_strerror(rte_errno) : "",
		    program->memory_mb);
		return -1;
	}
	stop_catch(0);
	return 0;
}

void
program_end(void)
{
	struct rte_devargs *da;

	/*
	 * rte_eal_cleanup() of DPDK 22.11 wakes EAL's interrupt thread (rte_eal_alarm_cleanup())
	 * and unmaps memory without waiting for it. The thread then reads the handles of all
	 * registered interrupts, which may be unmapped. net_memif never unregisters its listening
	 * socket, so the thread crashes there (SIGSEGV in rte_intr_fd_get()). The end of the
	 * process releases the same resources.
	 */
	for (da = rte_devargs_next("vdev", NULL); da != NULL; da = rte_devargs_next("vdev", da))
		if (strncmp(da->name, "net_memif", strlen("net_memif")) == 0)
			return;
	rte_eal_cleanup();
}

int
option_u64(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *wrong = number_parse(arg, strlen(arg), out);

	if (wrong == NULL && *out >= min && *out <= max)
		return 0;
	say("--%s %s %s; give a number from %" PRIu64 " to %" PRIu64, name, arg,
	    wrong != NULL ? wrong : "is out of range", min, max);
	return -1;
}

int
option_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t v;

	if (option_u64(name, arg, min, max, &v) != 0)
		return -1;
	*out = (uint32_t)v;
	return 0;
}
