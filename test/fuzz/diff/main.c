/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The program: seeds, replays, defects. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_log.h>

#include "../../fakes/bare_eal.h"
#include "diff.h"

static const char help[] =
	"diff: random calls of the API on a device and on a model; after each step both must agree\n"
	"in what the call returned, completions, events, queue pair states, numbers and memory.\n"
	"\n"
	"usage: diff [options]                  run seeds\n"
	"       diff [options] --replay FILE... run saved sequences\n"
	"       diff [options] --defects NAME,...  is each seeded defect of soft0 found?\n"
	"\n"
	"  --device SPEC    what bb_dev_open() takes, soft0 if not given; two devices are joined by\n"
	"                   '+': soft0+soft1, and queue pairs connect across them\n"
	"                   The model executes whole messages: give no device with packets\n"
	"                   (wire=1, port=, shm=)\n"
	"  --seeds A..B     seeds to run, 1..200 if not given; A.. goes on until time is over\n"
	"  --steps N        steps of a sequence, 120 if not given\n"
	"  --seconds N, --minutes N  stop after this time\n"
	"  --save DIR       where minimised failures go, as DIR/diff-SEED.txt; . if not given\n"
	"  --raw            save a failure as it is, not minimised\n"
	"  --at-least N     with --defects: how many must be found\n"
	"  --log            show what library and device log\n"
	"\n"
	"A saved sequence is one step a line, \"write qp=0 flags=8 n=1 key0=2 len0=64 rkey=3\"; what is\n"
	"not said is 0. Numbers of objects are slots: a step on an empty slot does nothing, so lines\n"
	"can be taken out and changed by hand. flags are enum bb_send_flags and 65536 for a request of\n"
	"the next post_list or recv_list, access is enum bb_access,\n"
	"buf/off a place in one of four buffers of 4096 bytes (3 is for receives).\n"
	"\n"
	"examples:\n"
	"  diff --seeds 1..5000                       a few seconds\n"
	"  diff --device soft0+soft1 --minutes 10\n"
	"  diff --replay test/fuzz/diff/regress/*.txt\n"
	"  diff --defects flip_bit,lose_write --seeds 1..50\n"
	"\n"
	"The exit code is 0 if nothing disagreed.\n";

enum {
	OPT_DEVICE = 256,
	OPT_SEEDS,
	OPT_STEPS,
	OPT_SECONDS,
	OPT_MINUTES,
	OPT_SAVE,
	OPT_RAW,
	OPT_REPLAY,
	OPT_DEFECTS,
	OPT_AT_LEAST,
	OPT_LOG,
};

static struct {
	const char *device, *save, *defects;
	uint64_t first, last;
	uint32_t steps, seconds, at_least;
	bool raw, replay, log;
	char **files;
} opt = {.device = "soft0", .save = ".", .first = 1, .last = 200, .steps = 120};

/* The running sequence, printed if the process crashes. */
static struct seq seq;
static uint64_t running;

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static void
died(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/diff-crash-%llu.txt", opt.save,
		 (unsigned long long)running);
	if (seq.n < MAX_STEPS)
		seq.n++;
	fprintf(stderr, "diff: died in seed %llu, step %u; replay with --replay %s\n",
		(unsigned long long)running, seq.n, path);
	(void)seq_save(path, &seq, opt.device, "the process died");
}

static void
on_signal(int sig)
{
	signal(sig, SIG_DFL);
	died();
	raise(sig);
}

static int
usage(const char *what, const char *arg)
{
	fprintf(stderr, "diff: %s%s; see --help\n", what, arg);
	return 2;
}

static bool
parse_number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return end != text && *end == '\0';
}

static bool
parse_seeds(char *text)
{
	char *dots = strstr(text, "..");

	if (dots == NULL) {
		if (!parse_number(text, &opt.first))
			return false;
		opt.last = opt.first;
		return true;
	}
	*dots = '\0';
	opt.last = UINT64_MAX;
	return parse_number(text, &opt.first) &&
	       (dots[2] == '\0' || parse_number(dots + 2, &opt.last));
}

static int
parse_args(int argc, char **argv)
{
	static const struct option options[] = {
		{"device", required_argument, NULL, OPT_DEVICE},
		{"seeds", required_argument, NULL, OPT_SEEDS},
		{"steps", required_argument, NULL, OPT_STEPS},
		{"seconds", required_argument, NULL, OPT_SECONDS},
		{"minutes", required_argument, NULL, OPT_MINUTES},
		{"save", required_argument, NULL, OPT_SAVE},
		{"raw", no_argument, NULL, OPT_RAW},
		{"replay", no_argument, NULL, OPT_REPLAY},
		{"defects", required_argument, NULL, OPT_DEFECTS},
		{"at-least", required_argument, NULL, OPT_AT_LEAST},
		{"log", no_argument, NULL, OPT_LOG},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t n = 0;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		bool number =
			c == OPT_STEPS || c == OPT_SECONDS || c == OPT_MINUTES || c == OPT_AT_LEAST;

		if (number && !parse_number(optarg, &n))
			return usage("not a number: ", optarg);
		switch (c) {
		case OPT_DEVICE:
			opt.device = optarg;
			break;
		case OPT_SEEDS:
			if (!parse_seeds(optarg))
				return usage("not seeds like 1..100: ", optarg);
			break;
		case OPT_STEPS:
			if (n == 0 || n > MAX_STEPS)
				return usage("--steps takes 1 to 2000, not ", optarg);
			opt.steps = (uint32_t)n;
			break;
		case OPT_SECONDS:
		case OPT_MINUTES:
			opt.seconds = (uint32_t)(c == OPT_MINUTES ? n * 60 : n);
			break;
		case OPT_SAVE:
			opt.save = optarg;
			break;
		case OPT_RAW:
			opt.raw = true;
			break;
		case OPT_REPLAY:
			opt.replay = true;
			break;
		case OPT_DEFECTS:
			opt.defects = optarg;
			break;
		case OPT_AT_LEAST:
			opt.at_least = (uint32_t)n;
			break;
		case OPT_LOG:
			opt.log = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			return usage("bad option", "");
		}
	}
	opt.files = argv + optind;
	if (opt.replay && *opt.files == NULL)
		return usage("--replay needs files", "");
	if (!opt.replay && *opt.files != NULL)
		return usage("what is ", *opt.files);
	return 0;
}

static void
report(const struct failure *f)
{
	printf("step %u: ", f->at + 1);
	if (f->at < seq.n)
		step_print(stdout, &seq.s[f->at]);
	else
		printf("(the end)\n");
	printf("  %s\n", f->why);
}

static int
replay(struct exec *x)
{
	struct failure f;
	int bad = 0;
	char **p;

	for (p = opt.files; *p != NULL; p++) {
		if (seq_load(*p, &seq) != 0)
			return 2;
		if (!run_seq(x, &seq, &f)) {
			printf("%s: %u steps, agreed\n", *p, seq.n);
			continue;
		}
		printf("%s: ", *p);
		report(&f);
		bad++;
	}
	return bad != 0;
}

static void
save(struct exec *x, struct failure *f)
{
	char path[512];

	if (!opt.raw) {
		printf("making it smaller: %u steps", seq.n);
		fflush(stdout);
		minimise(x, &seq, f);
		printf(" -> %u\n", seq.n);
		report(f);
	}
	snprintf(path, sizeof(path), "%s/diff-%llu.txt", opt.save, (unsigned long long)running);
	if (seq_save(path, &seq, opt.device, f->why) == 0)
		printf("replay with: diff --device %s --replay %s\n", opt.device, path);
}

/* Prints how much real traffic there was. */
static void
print_counts(const struct exec *x)
{
	static const char *const names[] = {"send",      "write", "read", "cmp_swap",
					    "fetch_add", "nop",   "recv", "recv imm",
					    "local_inv", "bind",  "mkey"};
	const struct exec_counts *c = exec_counts(x);

	printf("completed:");
	for (uint32_t i = 0; i < RTE_DIM(names); i++)
		printf(" %s %llu%s", names[i], (unsigned long long)c->good[i],
		       i + 1 < RTE_DIM(names) ? "," : "\n");
	for (uint32_t i = 1; i <= BB_WC_GENERAL_ERR; i++)
		if (c->bad[i] != 0)
			printf("  %s: %llu\n", bb_wc_status_name((enum bb_wc_status)i),
			       (unsigned long long)c->bad[i]);
}

/* Runs seeds until one fails. Returns 1 if one failed, else 0. */
static int
run_seeds(struct exec *x, bool quiet)
{
	time_t start = time(NULL), said = start, now = start;
	uint64_t steps = 0;
	struct failure f;

	for (running = opt.first; running <= opt.last; running++) {
		now = time(NULL);
		if (opt.seconds != 0 && now - start >= (time_t)opt.seconds)
			break;
		if (!quiet && now - said >= 10) {
			printf("%llu sequences, %llu steps in %ld s\n",
			       (unsigned long long)(running - opt.first), (unsigned long long)steps,
			       (long)(now - start));
			fflush(stdout);
			said = now;
		}
		if (run_random(x, running, opt.steps, &seq, &f)) {
			if (quiet) {
				printf("found by seed %llu: %s\n", (unsigned long long)running,
				       f.why);
				return 1;
			}
			printf("seed %llu, ", (unsigned long long)running);
			report(&f);
			save(x, &f);
			return 1;
		}
		steps += seq.n;
	}
	if (quiet)
		printf("not found in %llu sequences\n", (unsigned long long)(running - opt.first));
	else
		printf("%llu sequences, %llu steps, all agreed\n",
		       (unsigned long long)(running - opt.first), (unsigned long long)steps);
	if (!quiet)
		print_counts(x);
	return 0;
}

/* Runs one device after the other, each with one defect. */
static int
try_defects(void)
{
	char names[512], spec[128], why[256], *save_ptr, *name;
	uint32_t found = 0, n = 0;
	struct exec *x;

	snprintf(names, sizeof(names), "%s", opt.defects);
	for (name = strtok_r(names, ",", &save_ptr); name != NULL;
	     name = strtok_r(NULL, ",", &save_ptr)) {
		snprintf(spec, sizeof(spec), "soft0,seed=0,defect=%s", name);
		x = exec_open(spec, why, sizeof(why));
		if (x == NULL)
			return usage(why, "");
		printf("%-14s ", name);
		fflush(stdout);
		found += (uint32_t)run_seeds(x, true);
		exec_close(x);
		n++;
	}
	printf("%u of %u defects found\n", found, n);
	return found < opt.at_least;
}

int
main(int argc, char **argv)
{
	struct exec *x;
	char why[256];
	int ret = parse_args(argc, argv);

	if (ret != 0)
		return ret;
	if (bare_eal_init() < 0)
		return usage("EAL does not start", "");
	/* Otherwise refused calls would fill the log. */
	if (!opt.log)
		rte_openlog_stream(fopen("/dev/null", "w"));
	signal(SIGSEGV, on_signal);
	signal(SIGABRT, on_signal);
	if (__sanitizer_set_death_callback != NULL)
		__sanitizer_set_death_callback(died);
	if (opt.defects != NULL)
		return try_defects();
	x = exec_open(opt.device, why, sizeof(why));
	if (x == NULL)
		return usage(why, "");
	ret = opt.replay ? replay(x) : run_seeds(x, false);
	exec_close(x);
	return ret;
}
