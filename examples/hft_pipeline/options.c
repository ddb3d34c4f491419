/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "generate.h"
#include "hft.h"

enum {
	OPT_FILE = 256,
	OPT_GENERATE,
	OPT_JSON,
	OPT_HGRM,
	OPT_DEVICE,
	OPT_PEER_DEVICE,
	OPT_LISTEN,
	OPT_CONNECT,
	OPT_STAGES,
	OPT_DEFECT,
	OPT_SEED,
	OPT_U32, /* OPT_U32 + i is the option u32_options[i] */
};

/* Options with a 32-bit number. */
static const struct {
	const char *name;
	size_t offset;
	uint32_t min, max;
} u32_options[] = {
	{"messages", offsetof(struct options, messages), 2, 100000000},
	{"symbols", offsetof(struct options, symbols), 1, ITCH_SYMBOLS},
	{"rate", offsetof(struct options, rate), 0, 100000000},
	{"slots", offsetof(struct options, slots), RDMA_RING_MIN_SLOTS, RDMA_RING_MAX_SLOTS},
	{"kill-after", offsetof(struct options, kill_after), 1, UINT32_MAX},
	{"wait", offsetof(struct options, wait_s), 1, 3600},
	{"max-orders", offsetof(struct options, params.max_orders), 1, 1u << 28},
	{"imbalance", offsetof(struct options, params.imbalance), 1, 1000000},
	{"shares", offsetof(struct options, params.shares), 1, 1000000},
	{"max-shares", offsetof(struct options, params.max_shares), 1, UINT32_MAX},
	{"max-position", offsetof(struct options, params.max_position), 1, UINT32_MAX},
	{"max-rate", offsetof(struct options, params.max_rate), 1, UINT32_MAX},
	{"collar", offsetof(struct options, params.collar), 1, UINT32_MAX},
	{"warm", offsetof(struct options, params.warm), 0, 1},
	{"worker", offsetof(struct options, worker), 0, STAGES - 1},
};

#define U32_OPTIONS (sizeof(u32_options) / sizeof(u32_options[0]))

const struct option hft_options[] = {
	{"file", required_argument, NULL, OPT_FILE},
	{"generate", required_argument, NULL, OPT_GENERATE},
	{"json", required_argument, NULL, OPT_JSON},
	{"hgrm", required_argument, NULL, OPT_HGRM},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"peer-device", required_argument, NULL, OPT_PEER_DEVICE},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"connect", required_argument, NULL, OPT_CONNECT},
	{"stages", required_argument, NULL, OPT_STAGES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"defect", required_argument, NULL, OPT_DEFECT}, /* used by tests, so not in the help */
	{"messages", required_argument, NULL, OPT_U32 + 0},
	{"symbols", required_argument, NULL, OPT_U32 + 1},
	{"rate", required_argument, NULL, OPT_U32 + 2},
	{"slots", required_argument, NULL, OPT_U32 + 3},
	{"kill-after", required_argument, NULL, OPT_U32 + 4},
	{"wait", required_argument, NULL, OPT_U32 + 5},
	{"max-orders", required_argument, NULL, OPT_U32 + 6},
	{"imbalance", required_argument, NULL, OPT_U32 + 7},
	{"shares", required_argument, NULL, OPT_U32 + 8},
	{"max-shares", required_argument, NULL, OPT_U32 + 9},
	{"max-position", required_argument, NULL, OPT_U32 + 10},
	{"max-rate", required_argument, NULL, OPT_U32 + 11},
	{"collar", required_argument, NULL, OPT_U32 + 12},
	{"warm", required_argument, NULL, OPT_U32 + 13},
	{"worker", required_argument, NULL, OPT_U32 + 14},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Parses --stages, such as "feed+gateway,book+strategy+risk". A comma separates lcores. */
static int
parse_stages(struct options *o, const char *arg)
{
	const char *p = arg, *wrong = NULL;
	bool seen[STAGES] = {false};
	uint32_t s, worker = 0;
	size_t n;

	for (;; p += n + 1) {
		n = strcspn(p, "+,");
		for (s = 0; s < STAGES; s++)
			if (n == strlen(stage_name[s]) && strncmp(p, stage_name[s], n) == 0)
				break;
		if (s == STAGES)
			wrong = "unknown stage";
		else if (seen[s])
			wrong = "a stage is listed twice";
		if (wrong != NULL)
			break;
		seen[s] = true;
		o->worker_of[s] = (uint8_t)worker;
		if (p[n] == '\0')
			break;
		worker += p[n] == ',';
	}
	for (s = 0; s < STAGES && wrong == NULL; s++)
		if (!seen[s])
			wrong = "a stage is missing";
	if (wrong == NULL && worker == 0)
		wrong = "all stages belong to one worker, at least two are needed";
	if (wrong != NULL) {
		say("--stages %s: %s; list feed, book, strategy, risk and gateway, with + "
		    "between stages of one worker and a comma between workers",
		    arg, wrong);
		return -1;
	}
	o->workers = worker + 1;
	return 0;
}

/* Parses --defect: drop:N, twice:N, swap:N, book:N, order:N, seq:N, credit:N or kill:N. */
static int
parse_defect(struct options *o, const char *arg)
{
	static const char *const names[] = {"",      "drop", "twice",  "swap", "book",
					    "order", "seq",  "credit", "kill"};
	size_t n = strcspn(arg, ":");
	uint64_t at;
	uint32_t i;

	for (i = DEFECT_DROP; i <= DEFECT_KILL; i++) {
		if (n != strlen(names[i]) || strncmp(arg, names[i], n) != 0 || arg[n] == '\0')
			continue;
		if (option_u64("defect", arg + n + 1, 1, UINT32_MAX, &at) != 0)
			return -1;
		o->defect = (enum defect)i;
		o->defect_at = (uint32_t)at;
		return 0;
	}
	say("--defect %s: give drop:N, twice:N, swap:N, book:N, order:N, seq:N, credit:N or kill:N",
	    arg);
	return -1;
}

static int
parse_addr(const char *name, const char *arg)
{
	struct sockaddr_storage addr;
	uint16_t port;

	if (bb_cm_addr(arg, &addr) == 0) {
		port = ntohs(((const struct sockaddr_in *)&addr)->sin_port);
		if (port > 0 && port <= UINT16_MAX - (LINKS - 1))
			return 0;
	}
	say("--%s %s: give an address and a port of 1 to %d, as in 192.0.2.1:18600", name, arg,
	    UINT16_MAX - (LINKS - 1));
	return -1;
}

static int
parse_one(struct options *o, int c)
{
	int i;

	switch (c) {
	case OPT_FILE:
		o->file = optarg;
		return 0;
	case OPT_GENERATE:
		o->generate = optarg;
		return 0;
	case OPT_JSON:
		o->json = optarg;
		return 0;
	case OPT_HGRM:
		o->hgrm = optarg;
		return 0;
	case OPT_DEVICE:
		o->device = optarg;
		return 0;
	case OPT_PEER_DEVICE:
		o->peer_device = optarg;
		return 0;
	case OPT_LISTEN:
		o->listen = optarg;
		return parse_addr("listen", optarg);
	case OPT_CONNECT:
		o->connect = optarg;
		return parse_addr("connect", optarg);
	case OPT_STAGES:
		return parse_stages(o, optarg);
	case OPT_DEFECT:
		return parse_defect(o, optarg);
	case OPT_SEED:
		return option_u64("seed", optarg, 0, UINT64_MAX, &o->seed);
	default:
		break;
	}
	i = c - OPT_U32;
	if (i < 0 || i >= (int)U32_OPTIONS) {
		say("see hft_pipeline --help");
		return -1;
	}
	return option_u32(u32_options[i].name, optarg, u32_options[i].min, u32_options[i].max,
			  (uint32_t *)(void *)((char *)o + u32_options[i].offset));
}

static int
check_together(struct options *o)
{
	if (o->listen != NULL && o->connect != NULL) {
		say("--listen and --connect exclude each other: one end listens, the other "
		    "connects");
		return -1;
	}
	if ((o->listen != NULL || o->connect != NULL) &&
	    o->worker_of[STAGE_FEED] != o->worker_of[STAGE_GATEWAY]) {
		say("--stages: with --listen or --connect, feed and gateway must share a worker, "
		    "because one clock measures the time; give feed+gateway,...");
		return -1;
	}
	if (o->listen != NULL &&
	    (o->file != NULL || o->kill_after != 0 || o->json != NULL || o->hgrm != NULL)) {
		say("--file, --kill-after, --json and --hgrm are options of the end that connects; "
		    "leave them out with --listen");
		return -1;
	}
	if (o->kill_after != 0 && o->worker_of[STAGE_RISK] == o->worker_of[STAGE_GATEWAY]) {
		say("--kill-after: the kill switch needs the link from risk to gateway; give them "
		    "different workers in --stages");
		return -1;
	}
	if (o->worker != ALL_WORKERS && (o->listen == NULL || o->worker >= o->workers ||
					 o->worker == o->worker_of[STAGE_FEED])) {
		say("--worker %u: give --listen, and the number of a worker that does not run the "
		    "feed; --stages makes %u workers, and the first has number 0",
		    o->worker, o->workers);
		return -1;
	}
	if ((o->slots & (o->slots - 1)) != 0) {
		say("--slots %u: give a power of two", o->slots);
		return -1;
	}
	o->params.symbols = o->symbols;
	if (o->peer_device == NULL)
		o->peer_device = o->device;
	return 0;
}

int
options_parse(void *opt, int argc, char **argv)
{
	struct options *o = opt;
	int c;

	*o = (struct options){
		.device = "soft0",
		.messages = 200000,
		.symbols = 8,
		.seed = 1,
		.rate = 200000,
		.slots = 1024,
		.wait_s = 60,
		.worker = ALL_WORKERS,
		.params = {.max_orders = 4096,
			   .imbalance = 2,
			   .shares = 100,
			   .max_shares = 300,
			   .max_position = 2000,
			   .max_rate = 2000,
			   .collar = 1000,
			   .warm = 1},
	};
	if (parse_stages(o, "feed+gateway,book+strategy+risk") != 0)
		return -1;
	while ((c = getopt_long(argc, argv, "h", hft_options, NULL)) != -1) {
		if (c == 'h') {
			options_help(stdout);
			return 1;
		}
		if (parse_one(o, c) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see hft_pipeline --help", argv[optind]);
		return -1;
	}
	return check_together(o);
}
