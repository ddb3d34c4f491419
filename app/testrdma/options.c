/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <math.h>
#include <stdlib.h>

#include <rte_config.h>
#include <rte_version.h>

#include "number.h"
#include "testrdma.h"

#define DEFAULT_SECONDS  30.0 /* seconds of all tests together if --duration is not given */
#define MAX_TEST_SECONDS 2.0

enum {
	OPT_DEPTH = 256,
	OPT_BURST,
	OPT_SIGNAL_EVERY,
	OPT_INLINE,
	OPT_DB,
	OPT_QPS,
	OPT_LCORES,
	OPT_SGL,
	OPT_MIX,
	OPT_RATE,
	OPT_OFFSET,
	OPT_VERIFY,
	OPT_DURATION,
	OPT_SEED,
	OPT_JSON,
	OPT_CSV,
	OPT_CMDLINE_FILE,
	OPT_INTERVAL,
	OPT_PATIENCE,
	OPT_LISTEN,
	OPT_CONNECT,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"device", required_argument, NULL, 'd'},
	{"op", required_argument, NULL, 'o'},
	{"size", required_argument, NULL, 's'},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"burst", required_argument, NULL, OPT_BURST},
	{"signal-every", required_argument, NULL, OPT_SIGNAL_EVERY},
	{"inline", required_argument, NULL, OPT_INLINE},
	{"db", required_argument, NULL, OPT_DB},
	{"qps", required_argument, NULL, OPT_QPS},
	{"qps-per-lcore", required_argument, NULL, OPT_QPS},
	{"worker-lcores", required_argument, NULL, OPT_LCORES},
	{"sgl", required_argument, NULL, OPT_SGL},
	{"mix", required_argument, NULL, OPT_MIX},
	{"rate", required_argument, NULL, OPT_RATE},
	{"offset", required_argument, NULL, OPT_OFFSET},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"seed", required_argument, NULL, OPT_SEED},
	{"json", required_argument, NULL, OPT_JSON},
	{"csv", no_argument, NULL, OPT_CSV},
	{"interactive", no_argument, NULL, 'i'},
	{"cmdline-file", required_argument, NULL, OPT_CMDLINE_FILE},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"connect", required_argument, NULL, OPT_CONNECT},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"patience", required_argument, NULL, OPT_PATIENCE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int
parse_ops(struct options *o, const char *arg)
{
	const struct engine *e;
	unsigned int i;
	size_t n;

	o->nops = 0;
	for (;; arg += n + 1) {
		n = strcspn(arg, ",");
		e = engine_find(arg, n);
		if (e == NULL) {
			fprintf(stderr,
				"testrdma: --op: unknown operation \"%.*s\"; the "
				"operations are:",
				(int)n, arg);
			for (i = 0; i < nengines; i++)
				fprintf(stderr, " %s", engines[i]->name);
			fprintf(stderr, "\n");
			return -1;
		}
		for (i = 0; i < o->nops; i++)
			if (o->ops[i] == e)
				break;
		if (i == o->nops)
			o->ops[o->nops++] = e;
		if (arg[n] == '\0')
			return 0;
	}
}

static int
size_error(const char *item, size_t len, const char *wrong)
{
	say("--size: \"%.*s\" %s; give sizes from 1 to 1G as 8,64,4K or a range as "
	    "8..1M (times 4), 8..1M:x2, 64..512:+64",
	    (int)len, item, wrong);
	return -1;
}

static int
add_size(struct options *o, uint64_t size)
{
	uint32_t i;

	for (i = 0; i < o->nsizes; i++)
		if (o->sizes[i] == size)
			return 0;
	if (o->nsizes == MAX_SIZES)
		return -1;
	o->sizes[o->nsizes++] = (uint32_t)size;
	return 0;
}

/* Parses a range of sizes "A..B", "A..B:xK" or "A..B:+K". A and B are always among the sizes. */
static int
add_range(struct options *o, const char *item, size_t len, const char *dots)
{
	const char *end = item + len, *step = memchr(item, ':', len);
	const char *hi_end = step != NULL ? step : end, *wrong;
	uint64_t lo, hi, k = 4, size;
	bool times = true;

	wrong = number_parse(item, (size_t)(dots - item), &lo);
	if (wrong == NULL)
		wrong = number_parse(dots + 2, (size_t)(hi_end - dots - 2), &hi);
	if (wrong == NULL && step != NULL) {
		step++;
		if (step == end || (*step != 'x' && *step != '+'))
			wrong = "has a step that is neither :xK nor :+K";
		else {
			times = *step == 'x';
			wrong = number_parse(step + 1, (size_t)(end - step - 1), &k);
		}
	}
	if (wrong == NULL && (lo == 0 || hi > MAX_SIZE))
		wrong = "is out of range";
	if (wrong == NULL && lo > hi)
		wrong = "ends below its start";
	if (wrong == NULL && (k == 0 || k > MAX_SIZE || (times && k == 1)))
		wrong = "has a step that adds nothing, or is too large";
	if (wrong != NULL)
		return size_error(item, len, wrong);
	for (size = lo; size < hi; size = times ? size * k : size + k)
		if (add_size(o, size) != 0)
			return size_error(item, len, "has more than 64 sizes");
	return add_size(o, hi) == 0 ? 0 : size_error(item, len, "has more than 64 sizes");
}

static int
parse_sizes(struct options *o, const char *arg)
{
	const char *dots, *wrong;
	uint64_t size;
	size_t n;

	o->nsizes = 0;
	for (;; arg += n + 1) {
		n = strcspn(arg, ",");
		dots = strstr(arg, "..");
		if (dots != NULL && dots < arg + n) {
			if (add_range(o, arg, n, dots) != 0)
				return -1;
		} else {
			wrong = number_parse(arg, n, &size);
			if (wrong == NULL && (size == 0 || size > MAX_SIZE))
				wrong = "is out of range";
			if (wrong != NULL)
				return size_error(arg, n, wrong);
			if (add_size(o, size) != 0)
				return size_error(arg, n, "is one more than 64 sizes");
		}
		if (arg[n] == '\0')
			return 0;
	}
}

const char *const mix_names[MIX_KINDS] = {
	[MIX_WRITE] = "write",
	[MIX_READ] = "read",
	[MIX_FETCH_ADD] = "fetch_add",
	[MIX_CMP_SWAP] = "cmp_swap",
};

/* Parses the value of --mix, such as "write:70,read:30". */
static int
parse_mix(struct options *o, const char *arg)
{
	uint32_t weights[MIX_KINDS] = {0}, i;
	const char *item, *colon;
	uint64_t weight, sum = 0;
	size_t n;

	for (item = arg;; item += n + 1) {
		n = strcspn(item, ",");
		colon = memchr(item, ':', n);
		for (i = 0; colon != NULL && i < MIX_KINDS; i++)
			if (strlen(mix_names[i]) == (size_t)(colon - item) &&
			    memcmp(mix_names[i], item, (size_t)(colon - item)) == 0)
				break;
		if (colon == NULL || i == MIX_KINDS || weights[i] != 0 ||
		    number_parse(colon + 1, n - (size_t)(colon + 1 - item), &weight) != NULL ||
		    weight == 0 || weight > MIX_MAX)
			break;
		weights[i] = (uint32_t)weight;
		sum += weight;
		if (item[n] == '\0' && sum <= MIX_MAX) {
			memcpy(o->mix, weights, sizeof(weights));
			return 0;
		}
		if (item[n] == '\0')
			break;
	}
	say("--mix %s: give weights of write, read, fetch_add, cmp_swap, together at most %u, as "
	    "in "
	    "write:70,read:30",
	    arg, MIX_MAX);
	return -1;
}

bool
options_mix_atomic(const struct options *o)
{
	return o->mix[MIX_FETCH_ADD] != 0 || o->mix[MIX_CMP_SWAP] != 0;
}

bool
options_two_way(const struct options *o)
{
	uint32_t i;

	for (i = 0; i < o->nops; i++)
		if (o->ops[i]->two_way)
			return true;
	return false;
}

bool
options_two_sided(const struct options *o)
{
	uint32_t i;

	for (i = 0; i < o->nops; i++)
		if (o->ops[i]->two_way || o->ops[i]->recv)
			return true;
	return false;
}

static int
parse_seconds(const char *name, const char *arg, double least, double *seconds)
{
	char *end;

	*seconds = strtod(arg, &end);
	if (end == arg || *end != '\0' || !isfinite(*seconds) || *seconds < least ||
	    *seconds > 86400) {
		say("--%s %s: give seconds, %g to 86400", name, arg, least);
		return -1;
	}
	return 0;
}

/* Parses option @c of getopt_long() and its argument @arg. */
static int
parse_one(struct options *o, int c, char *arg)
{
	switch (c) {
	case 'd':
		o->device = arg;
		return 0;
	case 'o':
		return parse_ops(o, arg);
	case 's':
		return parse_sizes(o, arg);
	case OPT_DEPTH:
		return option_u32("depth", arg, 1, 32768, &o->depth);
	case OPT_BURST:
		return option_u32("burst", arg, 1, 32768, &o->burst);
	case OPT_SIGNAL_EVERY:
		return option_u32("signal-every", arg, 1, 32768, &o->signal_every);
	case OPT_INLINE:
		return option_u32("inline", arg, 0, 1024, &o->max_inline);
	case OPT_QPS:
		return option_u32("qps-per-lcore", arg, 1, MAX_QPS, &o->qps);
	case OPT_SGL:
		return option_u32("sgl", arg, 1, MAX_SGL, &o->sgl);
	case OPT_RATE:
		return option_u64("rate", arg, 0, 100000000, &o->rate);
	case OPT_MIX:
		return parse_mix(o, arg);
	case OPT_OFFSET:
		return option_u32("offset", arg, 0, 63, &o->offset);
	case OPT_SEED:
		return option_u64("seed", arg, 0, UINT64_MAX, &o->seed);
	case OPT_DB:
		if (strcmp(arg, "doorbell") != 0 && strcmp(arg, "blueflame") != 0) {
			say("--db %s: give doorbell or blueflame", arg);
			return -1;
		}
		o->blueflame = arg[0] == 'b';
		return 0;
	case OPT_VERIFY:
		o->verify = true;
		return 0;
	case OPT_DURATION:
		return parse_seconds("duration", arg, 0.001, &o->duration);
	case OPT_INTERVAL:
		return parse_seconds("interval", arg, 0, &o->interval);
	case OPT_PATIENCE:
		return parse_seconds("patience", arg, 0.1, &o->patience);
	case OPT_LCORES:
		return option_u32("worker-lcores", arg, 1, RTE_MAX_LCORE, &o->lcores);
	case OPT_LISTEN:
		o->listen = arg;
		return 0;
	case OPT_CONNECT:
		o->connect = arg;
		return 0;
	case OPT_CMDLINE_FILE:
		o->cmdline_file = arg;
		return 0;
	case 'i':
		o->interactive = true;
		return 0;
	case OPT_JSON:
		o->json = arg;
		return 0;
	case OPT_CSV:
		o->csv = true;
		return 0;
	default:
		say("see testrdma --help");
		return -1;
	}
}

int
options_set(struct options *o, const char *name, const char *value)
{
	const struct option *l;
	char arg[512];

	if (strcmp(name, "verify") == 0) {
		if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) {
			say("set verify %s: give on or off", value);
			return -1;
		}
		o->verify = strcmp(value, "on") == 0;
		return 0;
	}
	/*
	 * Handles "lcores" here, because on the command line it is an EAL option with a different
	 * meaning.
	 */
	if (strcmp(name, "lcores") == 0)
		return option_u32(name, value, 1, RTE_MAX_LCORE, &o->lcores);
	if (strcmp(name, "duration") == 0 && strcmp(value, "0") == 0) {
		o->duration = 0;
		return 0;
	}
	for (l = long_options; l->name != NULL && strcmp(l->name, name) != 0; l++)
		;
	if (l->name == NULL || l->has_arg != required_argument ||
	    snprintf(arg, sizeof(arg), "%s", value) >= (int)sizeof(arg)) {
		say("set %s: unknown setting, or its value is too long", name);
		return -1;
	}
	return parse_one(o, l->val, arg);
}

const struct engine *
options_test(const struct options *o, uint32_t n, uint32_t *size)
{
	uint32_t i;

	for (i = 0; i < o->nops; i++) {
		uint32_t sizes = o->ops[i]->atomic ? 1 : o->nsizes;

		if (n < sizes) {
			*size = o->ops[i]->atomic ? 8 : o->sizes[n];
			return o->ops[i];
		}
		n -= sizes;
	}
	return NULL;
}

uint32_t
options_tests(const struct options *o)
{
	uint32_t i, tests = 0;

	for (i = 0; i < o->nops; i++)
		tests += o->ops[i]->atomic ? 1 : o->nsizes;
	return tests;
}

/*
 * Checks the message sizes of a mix with atomics. An atomic uses 8 bytes of its operation's slot.
 */
static int
mix_fit(const struct options *o)
{
	uint32_t i;

	for (i = 0; i < o->nops && o->ops[i]->pick == NULL; i++)
		;
	if (i == o->nops || !options_mix_atomic(o))
		return 0;
	for (i = 0; i < o->nsizes; i++) {
		if (o->sizes[i] < 8) {
			say("--size %u: a --mix with atomics needs sizes of at least 8 bytes",
			    o->sizes[i]);
			return -1;
		}
	}
	if (o->sgl > 1) {
		say("--sgl %u: a --mix with atomics needs --sgl 1", o->sgl);
		return -1;
	}
	return 0;
}

int
options_fit(struct options *o)
{
	uint32_t i;

	if (o->listen != NULL && (o->connect != NULL || options_session(o))) {
		say("--listen makes testrdma only a target; %s",
		    o->connect != NULL ? "leave out --connect"
				       : "with commands, use listen ADDRESS:PORT");
		return -1;
	}
	if (o->burst == 0)
		o->burst = o->depth < 32 ? o->depth : 32;
	if (o->signal_every == 0)
		o->signal_every = o->rate != 0 ? 1 : o->depth < 16 ? o->depth : 16;
	if (o->burst > o->depth) {
		say("--burst %u is more than --depth %u; give a burst of at most the depth",
		    o->burst, o->depth);
		return -1;
	}
	if (o->signal_every > o->depth) {
		say("--signal-every %u is more than --depth %u: the queue would fill "
		    "with no completion in flight; give at most the depth",
		    o->signal_every, o->depth);
		return -1;
	}
	if (o->max_inline > 0 && o->sgl > 1) {
		say("--inline needs one SGE; leave out --sgl %u or --inline", o->sgl);
		return -1;
	}
	if (mix_fit(o) != 0)
		return -1;
	for (i = 0; i < o->nops && o->rate != 0; i++) {
		if (o->ops[i]->two_way) {
			say("--rate %" PRIu64 ": operation %s waits for messages of the peer and "
			    "cannot keep a rate; leave out one of them",
			    o->rate, o->ops[i]->name);
			return -1;
		}
	}
	for (i = 0; i < o->nops; i++) {
		bool atomic =
			o->ops[i]->atomic || (o->ops[i]->pick != NULL && options_mix_atomic(o));

		if (atomic && o->offset % 8 != 0) {
			say("--offset %u: %s needs addresses aligned to 8 bytes; "
			    "give 0, 8, 16, ... or leave it out of --op",
			    o->offset, o->ops[i]->name);
			return -1;
		}
	}
	if (options_session(o) && o->duration == 0 && options_tests(o) == 1)
		o->duration = INFINITY; /* the run lasts until it is stopped */
	if (o->duration == 0) {
		o->duration = DEFAULT_SECONDS / options_tests(o);
		if (o->duration > MAX_TEST_SECONDS)
			o->duration = MAX_TEST_SECONDS;
	}
	return 0;
}

static int
options_parse(void *options, int argc, char **argv)
{
	struct options *o = options;
	unsigned int i;
	int c;

	memset(o, 0, sizeof(*o));
	o->device = "soft0";
	o->depth = 128;
	o->patience = 30;
	o->qps = 1;
	o->lcores = 1;
	o->sgl = 1;
	o->seed = 1;
	o->blueflame = true;
	o->mix[MIX_WRITE] = o->mix[MIX_READ] = 50;
	for (i = 0; i < nengines; i++)
		if (!engines[i]->mode)
			o->ops[o->nops++] = engines[i];
	if (parse_sizes(o, "8..1M") != 0)
		return -1;

	while ((c = getopt_long(argc, argv, "d:o:s:hi", long_options, NULL)) != -1) {
		if (c == 'h') {
			options_help(stdout);
			return 1;
		}
		if (c == OPT_VERSION) {
			printf("testrdma %s, %s\n", TESTRDMA_VERSION, rte_version());
			return 1;
		}
		if (parse_one(o, c, optarg) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see testrdma --help", argv[optind]);
		return -1;
	}
	/*
	 * A session calls options_fit() at each start, on a copy, so that unset options stay unset.
	 */
	if (options_session(o)) {
		struct options fitted = *o;

		return options_fit(&fitted);
	}
	return options_fit(o);
}

static bool
options_no_pci(const void *options)
{
	return eal_spec_no_pci(((const struct options *)options)->device);
}

const struct program testrdma_program = {
	.name = "testrdma",
	.memory_mb = 512,
	.options = long_options,
	.help = options_help,
	.parse = options_parse,
	.no_pci = options_no_pci,
};
