/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parses the command line and runs the cases, from the start to the output files. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "bench.h"
#include "output.h"
#include "remote.h"
#include "stop.h"

static const char help[] =
	"usage: bench [options]\n"
	"       bench [EAL options] -- [options]\n"
	"\n"
	"Measures the cost of Bluebell beside hand-written baselines, in one run.\n"
	"\n"
	"  --case NAME,...      run only these cases (--list shows them)\n"
	"  --config FILE        run the cases that FILE has as sections, such as [post], in their order\n"
	"                       there. Settings of a section: repeat = N; in [size] also\n"
	"                       size = LIST, in [scale] also qps = LIST. Section [bench] has\n"
	"                       those of the run: repeat, device, peer-device, csv, json, report.\n"
	"                       Options after --config override them. An example, which makes\n"
	"                       a page with every plot: app/bench/report/report.ini\n"
	"  --repeat N           pairs of measurements for each line; bench prints medians (31)\n"
	"  --size LIST          message sizes of the case size, powers of two from 8 to 1048576\n"
	"                       (8,64,512,4096,32768,262144)\n"
	"  --qps LIST           numbers of queue pairs of the case scale, up to 10000\n"
	"                       (1,10,100,1000)\n"
	"  --quick              a short run: checks that all works; its figures mean nothing\n"
	"  --device SPEC --peer-device SPEC\n"
	"                       devices of the case wire, here and in the second process (a pair\n"
	"                       of net_memif), for example with --vdev here:\n"
	"                       soft0,port=net_af_packet0,ip=192.0.2.1/24\n"
	"  --peer-eal ARG       one more argument for the EAL of the second process, such as\n"
	"                       --vdev=net_af_packet0,iface=veth1; repeat for more\n"
	"  --csv[=FILE]         all lines as CSV in FILE; without FILE, after the table\n"
	"  --json FILE          all lines as JSON\n"
	"  --report FILE.html   all lines as one page with plots, which needs no network\n"
	"  --list               list the cases\n"
	"  --list-kernels       list the names for --kernel\n"
	"  --kernel NAME,... --side ours|floor --instructions N\n"
	"                       run each loop of Bluebell (ours) or of the baseline (floor) N\n"
	"                       times and print nothing: for devtools/instructions, under valgrind\n"
	"  --help\n"
	"\n"
	"How to read a line. bench measures baseline and Bluebell alternately, --repeat times. The\n"
	"figures are medians, the ratio is the median of the pairs' ratios. The baseline must lie\n"
	"within 1.3 x of the figure recorded for it, scaled by the core's clock or by L; otherwise\n"
	"the line says so and has no ratio. A slow baseline gives no verdict, because the ratio\n"
	"would look too good. If the baseline is faster than recorded, \"reached\" means that\n"
	"Bluebell meets the goal against the measured baseline, and \"missed\" that it misses the\n"
	"goal even against the recorded one. Otherwise there is no verdict.\n"
	"\n"
	"L is the round trip of a cache line between the two CPUs in use, the measuring one and\n"
	"the device's, as a median. bench takes it before and after each pair of a line that uses\n"
	"both CPUs, and discards a pair in which it changed by more than 20 %.\n"
	"\n"
	"A line whose threads waited for a CPU for 5 % of their time or more shared it with other\n"
	"work: it has no ratio and no verdict. The same holds if the host of a virtual machine\n"
	"took that much time from its CPUs.\n"
	"\n"
	"Lines of a latency also have quantiles: p50, p90, p99, p99.9 and the maximum of single\n"
	"operations of baseline and Bluebell, in ns, over all pairs that were not discarded. Each\n"
	"of these operations ends with a reading of the TSC; those of the mean do not.\n"
	"\n"
	"Lines of two processes: the second process is this program again, with its own EAL on the\n"
	"other CPU. bench compares their data after each run. UCX's own program, ucx_perftest\n"
	"(Debian: ucx-utils), measures UCX where it is installed.\n"
	"\n"
	"Without EAL options: the first two allowed CPUs, no PCI, hugepages if the machine has\n"
	"them. The cases post, post_poll and poll need no EAL.\n"
	"\n"
	"Ctrl-C ends the run: bench drops the current line and writes all earlier ones. A second\n"
	"Ctrl-C ends the program at once.\n"
	"\n"
	"Exit status: 0 measured, targets reached or not; 1 a measurement failed, a file could not\n"
	"be written or the run was stopped; 2 usage.\n"
	"\n"
	"Examples\n"
	"  Two cases:\n"
	"    bench --case post,lcore\n"
	"  A short run of all cases, which checks that they work; its figures mean nothing:\n"
	"    bench --quick\n"
	"  A page with plots:\n"
	"    bench --case size --repeat 9 --report bench.html\n";

struct args {
	const char *cases, *csv_file, *json, *report, *kernel, *side, *serve;
	uint64_t instructions;
	bool csv;
	struct bench_config config;
};

/* Parses the options. Returns -1 to continue, otherwise the exit code. */
static int
parse(int argc, char **argv, struct args *a)
{
	static const struct option longs[] = {
		{"case", required_argument, NULL, 'c'},
		{"config", required_argument, NULL, 'C'},
		{"repeat", required_argument, NULL, 'r'},
		{"size", required_argument, NULL, 'z'},
		{"qps", required_argument, NULL, 'Q'},
		{"quick", no_argument, NULL, 'q'},
		{"device", required_argument, NULL, 'd'},
		{"peer-device", required_argument, NULL, 'p'},
		{"peer-eal", required_argument, NULL, 'e'},
		{"serve", required_argument, NULL, 'S'},
		{"csv", optional_argument, NULL, 'v'},
		{"json", required_argument, NULL, 'j'},
		{"report", required_argument, NULL, 'R'},
		{"list", no_argument, NULL, 'l'},
		{"list-kernels", no_argument, NULL, 'k'},
		{"kernel", required_argument, NULL, 'K'},
		{"side", required_argument, NULL, 's'},
		{"instructions", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			a->cases = optarg;
			if (!cases_check(optarg))
				return 2;
			break;
		case 'C':
			c = bench_config_load(optarg, &a->config);
			if (c != 0)
				return c;
			if (a->config.csv != NULL)
				a->csv_file = a->config.csv;
			if (a->config.json != NULL)
				a->json = a->config.json;
			if (a->config.report != NULL)
				a->report = a->config.report;
			break;
		case 'r':
			opts.repeat =
				(unsigned int)bench_number("--repeat", optarg, 1, BENCH_MAX_REPEAT);
			break;
		case 'z':
			bench_sizes("--size", optarg);
			break;
		case 'Q':
			bench_qps("--qps", optarg);
			break;
		case 'q':
			opts.quick = true;
			opts.repeat = 3;
			break;
		case 'd':
			opts.device = optarg;
			break;
		case 'p':
			opts.peer_device = optarg;
			break;
		case 'e':
			if (opts.n_peer_eal == BENCH_MAX_PEER_EAL) {
				fprintf(stderr,
					"bench: --peer-eal can be given at most %d "
					"times\n",
					BENCH_MAX_PEER_EAL);
				return 2;
			}
			opts.peer_eal[opts.n_peer_eal++] = optarg;
			break;
		case 'S':
			a->serve = optarg;
			break;
		case 'v':
			a->csv = optarg == NULL;
			if (optarg != NULL)
				a->csv_file = optarg;
			break;
		case 'j':
			a->json = optarg;
			break;
		case 'R':
			a->report = optarg;
			break;
		case 'l':
			cases_list(stdout);
			return 0;
		case 'k':
			count_list();
			return 0;
		case 'K':
			a->kernel = optarg;
			break;
		case 's':
			a->side = optarg;
			break;
		case 'i':
			a->instructions = bench_number("--instructions", optarg, 1, UINT32_MAX);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fprintf(stderr,
				"bench: --help shows the options; EAL options go before --\n");
			return 2;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "bench: \"%s\" is not an option: --help shows them\n",
			argv[optind]);
		return 2;
	}
	if (a->cases != NULL && a->config.n != 0) {
		fprintf(stderr, "bench: give --case or --config, not both\n");
		return 2;
	}
	if ((opts.device == NULL) != (opts.peer_device == NULL)) {
		fprintf(stderr, "bench: give both --device and --peer-device, or neither\n");
		return 2;
	}
	if ((a->kernel != NULL) != (a->instructions != 0) ||
	    (a->side != NULL) != (a->instructions != 0)) {
		fprintf(stderr, "bench: give --kernel, --side and --instructions together\n");
		return 2;
	}
	return -1;
}

/*
 * Splits the arguments at "--": those before it are for EAL, those after it for the bench. Without
 * "--" all are for the bench.
 */
static void
split(int *argc, char ***argv)
{
	int i;

	for (i = 1; i < *argc; i++) {
		if (strcmp((*argv)[i], "--") != 0)
			continue;
		opts.eal_argc = i;
		opts.eal_argv = *argv;
		(*argv)[i] = (*argv)[0];
		*argc -= i;
		*argv += i;
		return;
	}
}

/* Writes all outputs, even if one of them fails. Returns 0 if none failed. */
static int
write_all(const struct args *a, double l)
{
	int rc = 0;

	if (a->csv)
		rc |= report_csv(NULL);
	if (a->csv_file != NULL)
		rc |= report_csv(a->csv_file);
	if (a->json != NULL)
		rc |= report_json(a->json);
	if (a->report != NULL)
		rc |= report_html(a->report, l);
	return rc;
}

int
main(int argc, char **argv)
{
	struct args a = {.cases = NULL};
	double l;
	int rc;

	output_watch();
	split(&argc, &argv);
	rc = parse(argc, argv, &a);
	if (rc >= 0)
		return rc;
	if (a.instructions != 0)
		return count_run(a.kernel, a.side, a.instructions) != 0;

	if (a.serve != NULL)
		return serve(a.serve);
	cpus_choose();
	rc = pin(cpu_self);
	if (rc != 0) {
		fprintf(stderr, "bench: cannot run on CPU %u: %s\n", cpu_self, strerror(-rc));
		return 1;
	}
	/* Checks the outputs before the measurements, which may take hours. */
	if (!output_try("csv", a.csv_file) || !output_try("json", a.json) ||
	    !output_try("report", a.report))
		return 1;
	stop_catch(SA_RESTART);
	l = measure_l();
	printf("TSC %.2f GHz, core %.2f GHz, L %.0f ns, ", tsc_ghz(), core_ghz(), l);
	if (opts.repeat > 1)
		printf("medians of %u pairs\n", opts.repeat);
	else
		printf("one pair for each line, no medians\n");
	report_header();
	rc = a.config.n != 0 ? cases_run_config(&a.config) : cases_run(a.cases);
	remote_end();
	report_summary(stdout);
	printf("\n");
	if (bench_stopped())
		fprintf(stderr, "bench: stopped by a signal; lines finished and written: %u\n",
			report_count());
	return write_all(&a, l) != 0 || rc != 0 || report_failed() != 0 || bench_stopped();
}
