/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * conform: runs the rows of the conformance suite on devices.
 *
 * Read next: conform.h (rows and fixtures), ops.c (the verbs), rows_data.c (the plainest area).
 */
#include <getopt.h>
#include <sched.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "conform.h"

#define EXIT_USAGE  2
#define EXIT_SKIP   77
#define MAX_DEVICES 64

static struct {
	const char *device[MAX_DEVICES];
	unsigned int n;
	const char *filter, *json, *address;
	double timeout;
	unsigned long max_failures;
	bool list, verbose, all_skips;
} o = {.timeout = 10};

static const char help[] =
	"usage: conform [options] [-- EAL options]\n"
	"\n"
	"Runs the tests of the conformance suite, called rows, on a device and prints the rows\n"
	"that fail. The name of a row is area/QP type/verb/..., as data/rc/write/64K/signaled/2.\n"
	"Pairs of QPs use RoCE v2 GIDs if both ports have them. The rows of data, atomic and\n"
	"unreliable also run over each other kind of GID. Some rows are assumptions about cards\n"
	"(--list marks them): if a card differs, conform prints that, and the run does not fail.\n"
	"\n"
	"  -d, --device SPEC      device to test (default soft0). SPEC+SPEC: requester on the\n"
	"                         first, target on the second. Several --device are tested one\n"
	"                         after the other.\n"
	"                         %p in a SPEC stands for the process ID of conform\n"
	"  -a, --address IP       connect queue pairs by rdma_cm at this address of the target,\n"
	"                         as iWARP does; others are connected by bb_qp_connect()\n"
	"  -f, --filter LIST      rows to run: patterns with commas between; a word without\n"
	"                         * or ? matches anywhere in the name\n"
	"  -l, --list             print names and sources of the rows, run nothing\n"
	"  -m, --max-failures N   end the tests of a device after N failed rows (default: never)\n"
	"  -t, --timeout S        seconds after which a completion counts as lost (default 10)\n"
	"      --allowed-skips F  a row that skips fails, unless a line of F allows it;\n"
	"                         may be given more than once\n"
	"      --all-skips        a line in a file of --allowed-skips that no row needs fails the\n"
	"                         run\n"
	"      --json FILE        write all results as JSON; - is standard output\n"
	"  -v, --verbose          print every row\n"
	"  -h, --help             this text\n"
	"\n"
	"For port=net_memif0 and port=net_memif1, or net_ring_wire0 and net_ring_wire1, conform\n"
	"creates the two ethdevs and joins them. Other ethdevs need --vdev after --.\n"
	"\n"
	"Options after -- are for DPDK's EAL. Without them EAL gets lcores 0 and 1 and no hugepages.\n"
	"\n"
	"Exit status: 0 every row that ran holds; 1 a row failed (its name, the expected result\n"
	"and the log of the library are printed); 2 wrong usage; 77 there is no such device.\n"
	"\n"
	"Examples\n"
	"  The software device, its WRITEs only:\n"
	"    conform --filter 'data/rc/write*' -v\n"
	"  Two devices, and one that runs in a thread and shuffles payload:\n"
	"    conform -d soft0+soft1 -d soft0,progress=thread,shuffle=1\n"
	"  A device with a seeded defect, on which rows must fail (a build with -Ddefects=true):\n"
	"    conform -d soft0,defect=imm_swap\n"
	"  A card, with hugepages:\n"
	"    conform -d mlx5_0 --json card.json -- -l 2\n";

static int
number(const char *name, const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end != text && *end == '\0' && *value > 0)
		return 0;
	fprintf(stderr, "conform: %s %s: give a number over 0\n", name, text);
	return -1;
}

static int
parse(int argc, char **argv)
{
	enum {
		OPT_JSON = 256,
		OPT_SKIPS,
		OPT_ALL_SKIPS
	};
	static const struct option known[] = {
		{"device", required_argument, NULL, 'd'},
		{"address", required_argument, NULL, 'a'},
		{"filter", required_argument, NULL, 'f'},
		{"list", no_argument, NULL, 'l'},
		{"max-failures", required_argument, NULL, 'm'},
		{"timeout", required_argument, NULL, 't'},
		{"allowed-skips", required_argument, NULL, OPT_SKIPS},
		{"json", required_argument, NULL, OPT_JSON},
		{"all-skips", no_argument, NULL, OPT_ALL_SKIPS},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	double value;
	int opt;

	while ((opt = getopt_long(argc, argv, "+d:a:f:lm:t:vh", known, NULL)) != -1) {
		if (opt == 'd' && o.n < MAX_DEVICES)
			o.device[o.n++] = optarg;
		else if (opt == 'a')
			o.address = optarg;
		else if (opt == 'f')
			o.filter = optarg;
		else if (opt == 'l')
			o.list = true;
		else if (opt == 'm' && number("--max-failures", optarg, &value) == 0)
			o.max_failures = (unsigned long)value;
		else if (opt == 't' && number("--timeout", optarg, &o.timeout) == 0)
			;
		else if (opt == OPT_SKIPS && skips_load(optarg) == 0)
			;
		else if (opt == OPT_JSON)
			o.json = optarg;
		else if (opt == OPT_ALL_SKIPS)
			o.all_skips = true;
		else if (opt == 'v')
			o.verbose = true;
		else if (opt == 'h')
			return 1;
		else
			return -1;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		fprintf(stderr, "conform: %s: options only; see --help\n", argv[optind]);
		return -1;
	}
	if (o.n == 0)
		o.device[o.n++] = "soft0";
	return 0;
}

/*
 * Starts EAL with two lcores that may run on every CPU of this process: 0 for the rows, which
 * start threads of their own, and 1 for progress=lcore.
 */
static int
eal_start(char *name, int argc, char **argv)
{
	static char lcores[4096] = "(0,1)@(";
	static char fixed[][24] = {
		"--log-level=lib.eal:4", "--no-huge",      "-m",      "512", "--no-pci",
		"--no-shconf",           "--no-telemetry", "--lcores"};
	char *own[RTE_DIM(fixed) + WIRE_ARGS + 3] = {name};
	size_t len = strlen(lcores);
	cpu_set_t set;
	unsigned int wires;
	int i;

	if (argc != 0) {
		argv[-1] = name;
		return rte_eal_init(argc + 1, argv - 1);
	}
	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && len < sizeof(lcores) - 8; i++)
		if (CPU_ISSET(i, &set))
			len += (size_t)sprintf(lcores + len, "%s%d",
					       lcores[len - 1] == '(' ? "" : ",", i);
	strcpy(lcores + len, ")");
	for (i = 0; i < (int)RTE_DIM(fixed); i++)
		own[i + 1] = fixed[i];
	own[i + 1] = lcores;
	wires = wires_eal(o.device, o.n, &own[i + 2]);
	return rte_eal_init(i + 2 + (int)wires, own);
}

static void
run_row(struct fx *fx, struct row *row, const char *spec)
{
	const char *name, *missing = need_missing(fx, row_needs(row), &name);

	log_clear();
	if (missing != NULL) {
		snprintf(row->why, sizeof(row->why), "%s", missing);
		row->missing = name;
		row->result = SKIP;
		if (skip_allowed(spec, name) != NULL)
			return;
		row->result = FAIL;
		snprintf(row->why, sizeof(row->why),
			 "skips, as %s: the list of allowed skips does not have \"%s\" here",
			 missing, name);
		return;
	}
	if (setjmp(fx->jmp) == 0) {
		row->run(fx, row);
		check_no_event(fx, &fx->a, "at the end of the row");
		if (fx->two)
			check_no_event(fx, &fx->b, "at the end of the row");
		row->result = PASS;
	} else {
		snprintf(row->why, sizeof(row->why), "over %s: %s", fx->gid_kind, fx->why);
		/* The behaviour of a card is unknown, that of the software device is known. */
		row->result = row_assumed(row) && !(fx->a.attr.software && fx->b.attr.software)
				      ? DIFFERS
				      : FAIL;
	}
	fx_undo(fx);
}

static void
print_row(const struct fx *fx, const struct row *row, const char *spec)
{
	static const char *const word[RESULTS] = {[NOT_RUN] = "not run",
						  [PASS] = "pass",
						  [SKIP] = "skip",
						  [FAIL] = "FAIL",
						  [DIFFERS] = "assumption differs"};

	if (row->result != FAIL && row->result != DIFFERS && !o.verbose)
		return;
	if (row->result == PASS)
		printf("pass %s %s over %s\n", spec, row->name, fx->gid_kind);
	else
		printf("%s %s %s: %s\n", word[row->result], spec, row->name, row->why);
	if (row->result == FAIL)
		log_dump(stdout);
	fflush(stdout);
}

/* After a failure the state of the devices is unknown: open them again. */
static int
reopen(struct fx *fx, const char *spec, unsigned int nth)
{
	if (!fx_close(fx))
		printf("conform: %s: something of the failed row could not be destroyed\n", spec);
	return fx_open(fx, spec, o.timeout, o.address, nth);
}

/*
 * Runs the rows over the @nth kind of GID. Later kinds run only the rows that ask for each kind
 * and pass so far.
 */
static int
run_rows(struct fx *fx, struct column *col, unsigned int nth)
{
	unsigned int i, failed = 0;
	int ret = 0;

	for (i = 0; i < col->rows.n && ret == 0; i++) {
		struct row *row = &col->rows.row[i];

		if (!row_matches(row, o.filter) ||
		    (nth != 0 && (!row_each_gid(row) || row->result != PASS)))
			continue;
		run_row(fx, row, col->spec);
		print_row(fx, row, col->spec);
		failed += row->result == FAIL;
		if (o.max_failures != 0 && failed == o.max_failures)
			return 0;
		if (row->result == FAIL || row->result == DIFFERS)
			ret = reopen(fx, col->spec, nth);
	}
	if (ret != 0)
		printf("conform: %s cannot be opened again: %s\n", col->spec, strerror(-ret));
	return ret;
}

static int
run_device(struct column *col)
{
	unsigned int i, nth, count[RESULTS] = {0};
	double start = now_s();
	static struct fx fx;
	int ret = 0;

	for (nth = 0; ret == 0; nth++) {
		log_clear();
		ret = fx_open(&fx, col->spec, o.timeout, o.address, nth);
		if (ret == -ENOENT && nth != 0)
			break;
		if (ret != 0) {
			printf("conform: %s cannot be opened: %s\n", col->spec, strerror(-ret));
			log_dump(stdout);
			return ret == -ENODEV ? EXIT_SKIP : 1;
		}
		ret = run_rows(&fx, col, nth);
		for (i = 0, count[FAIL] = 0; i < col->rows.n; i++)
			count[FAIL] += col->rows.row[i].result == FAIL;
		if (ret == 0 && !fx_close(&fx) && count[FAIL] == 0) {
			printf("FAIL %s: its objects could not be destroyed at the end\n",
			       col->spec);
			log_dump(stdout);
			ret = -EBUSY;
		}
	}
	memset(count, 0, sizeof(count));
	for (i = 0; i < col->rows.n; i++)
		count[col->rows.row[i].result]++;
	printf("%s: %u rows passed, %u failed, %u skipped", col->spec, count[PASS], count[FAIL],
	       count[SKIP]);
	if (count[DIFFERS] != 0)
		printf(", %u assumed otherwise", count[DIFFERS]);
	printf("; %.1f s\n", now_s() - start);
	fflush(stdout);
	if (count[NOT_RUN] == col->rows.n)
		printf("conform: no row matches\n");
	return (ret != 0 && ret != -ENOENT) || count[FAIL] != 0 ||
			       count[PASS] + count[SKIP] + count[DIFFERS] == 0
		       ? 1
		       : 0;
}

static int
run_all(struct column *col)
{
	int rc = 0;

	for (unsigned int i = 0; i < o.n; i++) {
		int ret = run_device(&col[i]);

		if (rc != 1 && ret != 0)
			rc = ret;
	}
	if (o.all_skips && skips_unused() != 0)
		rc = 1;
	if (o.json != NULL && report_json(o.json, col, o.n) != 0)
		rc = 1;
	return rc;
}

int
main(int argc, char **argv)
{
	static struct column col[MAX_DEVICES];
	int rc = parse(argc, argv);

	if (rc != 0) {
		fputs(rc > 0 ? help : "conform: see --help\n", rc > 0 ? stdout : stderr);
		return rc > 0 ? 0 : EXIT_USAGE;
	}
	for (unsigned int i = 0; i < o.n; i++) {
		col[i].spec = o.device[i];
		rows_generate(&col[i].rows);
	}
	if (o.list) {
		report_list(&col[0].rows, o.filter);
		rc = 0;
		goto free_rows;
	}
	rc = EXIT_USAGE;
	if (eal_start(argv[0], argc - optind, argv + optind) < 0) {
		fprintf(stderr, "conform: EAL does not start: %s\n", rte_strerror(rte_errno));
		rc = 1;
		goto free_rows;
	}
	rc = 1;
	if (wires_make(o.device, o.n) == 0 && log_start() == 0)
		rc = run_all(col);
	log_stop();
	/* net_memif uses EAL's interrupt thread, for which the cleanup does not wait. */
	if (!wires_in_eal())
		rte_eal_cleanup();
free_rows:
	for (unsigned int i = 0; i < o.n; i++)
		rows_free(&col[i].rows);
	return rc;
}
