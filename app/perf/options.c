/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <rte_version.h>

#include "perf.h"

enum {
	OPT_CONNECTION = 256,
	OPT_IB_PORT,
	OPT_TX_DEPTH,
	OPT_RX_DEPTH,
	OPT_CQ_MOD,
	OPT_INLINE,
	OPT_OUTS,
	OPT_QP_TIMEOUT,
	OPT_ATOMIC,
	OPT_CHECK,
	OPT_SILENCE,
	OPT_REPORT_GBITS,
	OPT_JSON,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"protocol", required_argument, NULL, 'P'},
	{"device", required_argument, NULL, 'd'},
	{"size", required_argument, NULL, 's'},
	{"iters", required_argument, NULL, 'n'},
	{"all", no_argument, NULL, 'a'},
	{"bidirectional", no_argument, NULL, 'b'},
	{"duration", required_argument, NULL, 'D'},
	{"qp", required_argument, NULL, 'q'},
	{"rdma-cm", no_argument, NULL, 'R'},
	{"mtu", required_argument, NULL, 'm'},
	{"gid-index", required_argument, NULL, 'g'},
	{"port", required_argument, NULL, 'p'},
	{"connection", required_argument, NULL, OPT_CONNECTION},
	{"ib-port", required_argument, NULL, OPT_IB_PORT},
	{"tx-depth", required_argument, NULL, OPT_TX_DEPTH},
	{"rx-depth", required_argument, NULL, OPT_RX_DEPTH},
	{"cq-mod", required_argument, NULL, OPT_CQ_MOD},
	{"inline", required_argument, NULL, OPT_INLINE},
	{"outs", required_argument, NULL, OPT_OUTS},
	{"qp-timeout", required_argument, NULL, OPT_QP_TIMEOUT},
	{"atomic", required_argument, NULL, OPT_ATOMIC},
	{"check", no_argument, NULL, OPT_CHECK},
	{"silence", required_argument, NULL, OPT_SILENCE},
	{"report-gbits", no_argument, NULL, OPT_REPORT_GBITS},
	{"json", required_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int
parse_protocol(struct options *o, const char *arg)
{
	o->proto = protocol_find(arg);
	if (o->proto != NULL)
		return 0;
	say("--protocol %s: unknown protocol; known protocols:", arg);
	protocol_list(stderr);
	return -1;
}

static int
parse_mtu(struct options *o, const char *arg)
{
	if (option_u32("mtu", arg, 256, 4096, &o->mtu) != 0)
		return -1;
	if ((o->mtu & (o->mtu - 1)) == 0)
		return 0;
	say("--mtu %s: give 256, 512, 1024, 2048 or 4096", arg);
	return -1;
}

static int
parse_connection(const char *arg, int *type)
{
	for (*type = BB_QPT_RC; *type <= BB_QPT_UD; ++*type)
		if (strcasecmp(arg, bb_qp_type_name((enum bb_qp_type) * type)) == 0)
			return 0;
	say("--connection %s: give RC, UC or UD", arg);
	return -1;
}

static int
parse_atomic(struct options *o, const char *arg)
{
	o->cmp_swap = strcmp(arg, "cmp_swap") == 0;
	if (o->cmp_swap || strcmp(arg, "fetch_add") == 0)
		return 0;
	say("--atomic %s: give fetch_add or cmp_swap", arg);
	return -1;
}

static int
parse_one(struct options *o, int c, int *type)
{
	switch (c) {
	case 'P':
		return parse_protocol(o, optarg);
	case 'd':
		o->device = optarg;
		return 0;
	case 's':
		o->size_given = true;
		return option_u32("size", optarg, 1, 1u << 30, &o->size);
	case 'a':
		o->all = true;
		return 0;
	case 'b':
		o->bidirectional = true;
		return 0;
	case 'D':
		return option_u32("duration", optarg, 1, 86400, &o->duration);
	case 'q':
		return option_u32("qp", optarg, 1, QPS_MAX, &o->qps);
	case 'R':
		o->rdma_cm = true;
		return 0;
	case 'n':
		o->iters_given = true;
		return option_u64("iters", optarg, 1, 1u << 30, &o->iters);
	case 'm':
		return parse_mtu(o, optarg);
	case 'g':
		return option_u32("gid-index", optarg, 0, UINT8_MAX, &o->gid_index);
	case 'p':
		return option_u32("port", optarg, 1, UINT16_MAX, &o->tcp_port);
	case OPT_CONNECTION:
		return parse_connection(optarg, type);
	case OPT_IB_PORT:
		return option_u32("ib-port", optarg, 1, UINT8_MAX, &o->ib_port);
	case OPT_TX_DEPTH:
		return option_u32("tx-depth", optarg, 1, 15000, &o->tx_depth);
	case OPT_RX_DEPTH:
		return option_u32("rx-depth", optarg, 1, 16384, &o->rx_depth);
	case OPT_CQ_MOD:
		o->cq_mod_given = true;
		return option_u32("cq-mod", optarg, 1, 1024, &o->cq_mod);
	case OPT_INLINE:
		return option_u32("inline", optarg, 0, 1024, &o->max_inline);
	case OPT_OUTS:
		return option_u32("outs", optarg, 1, UINT8_MAX, &o->out_reads);
	case OPT_QP_TIMEOUT:
		return option_u32("qp-timeout", optarg, 1, 31, &o->qp_timeout);
	case OPT_ATOMIC:
		return parse_atomic(o, optarg);
	case OPT_CHECK:
		o->check = true;
		return 0;
	case OPT_SILENCE:
		return option_u32("silence", optarg, 1, 86400, &o->seconds);
	case OPT_REPORT_GBITS:
		o->gbits = true;
		return 0;
	case OPT_JSON:
		o->json = optarg;
		return 0;
	default:
		say("see bb_perf --help");
		return -1;
	}
}

/* Fills in defaults that depend on the protocol or on other options. */
static void
fill_in(struct options *o)
{
	const struct protocol *proto = o->proto;
	bool pingpong = proto->verb == VERB_PINGPONG;

	if (o->all)
		o->size = SIZE_MAX_ALL;
	else if (!o->size_given)
		o->size = proto->size;
	if (o->duration > 0)
		o->iters = UINT64_MAX;
	if (o->iters == 0)
		o->iters = proto->iters;
	if (o->mtu == 0 && pingpong)
		o->mtu = 1024;
	if (o->tx_depth == 0)
		o->tx_depth = proto->bandwidth ? 128 : 1;
	if (o->tx_depth > o->iters)
		o->tx_depth = (uint32_t)o->iters;
	if (o->cq_mod == 0)
		o->cq_mod = o->size > 8192 && !o->all ? 1 : 100;
	if (o->cq_mod > o->tx_depth)
		o->cq_mod = o->tx_depth;
	/*
	 * UC and UD lose a message if no receive is posted. So posts a receive for each message, at
	 * most 8192.
	 */
	if (o->rx_depth == 0)
		o->rx_depth = pingpong               ? 500
			      : o->type == BB_QPT_RC ? 512
			      : o->iters < 8192      ? (uint32_t)o->iters
						     : 8192;
	if (o->rx_depth > o->iters && !pingpong)
		o->rx_depth = (uint32_t)o->iters;
}

/* Checks --all, --bidirectional, --duration and --qp. The limits are those of perftest. */
static int
check_test(const struct options *o)
{
	const struct protocol *proto = o->proto;
	bool pingpong = proto->verb == VERB_PINGPONG;

	if (o->all && (pingpong || proto->verb == VERB_ATOMIC)) {
		say("--all: %s has only one size; leave out --all", proto->peer);
		return -1;
	}
	if (o->all && (o->size_given || o->duration > 0)) {
		say("--all: runs all sizes, each with --iters messages; leave out %s",
		    o->size_given ? "--size" : "--duration");
		return -1;
	}
	if (!proto->bandwidth && (o->bidirectional || o->qps > 1)) {
		say("%s: only for bandwidth tests; leave it out with %s",
		    o->bidirectional ? "--bidirectional" : "--qp", proto->name);
		return -1;
	}
	if (o->duration > 0 && pingpong) {
		say("--duration: %s counts messages; give --iters to both ends", proto->peer);
		return -1;
	}
	if (o->duration > 0 && (o->iters_given || o->check)) {
		say("--duration: the number of messages is unknown; leave out %s",
		    o->iters_given ? "--iters" : "--check");
		return -1;
	}
	return 0;
}

/* Checks --rdma-cm. */
static int
check_rdma_cm(const struct options *o)
{
	const struct protocol *proto = o->proto;

	if (!o->rdma_cm)
		return 0;
	if (proto->verb == VERB_PINGPONG) {
		say("--rdma-cm: %s connects by TCP only; leave out --rdma-cm", proto->peer);
		return -1;
	}
	if (o->type != BB_QPT_RC) {
		say("--rdma-cm: only RC queue pairs; leave out --rdma-cm or --connection %s",
		    bb_qp_type_name(o->type));
		return -1;
	}
	if (proto->verb == VERB_WRITE && !proto->bandwidth && o->duration > 0) {
		say("--rdma-cm: the end of %s that is ready first disconnects the other; give "
		    "--iters instead of --duration",
		    proto->peer);
		return -1;
	}
	return 0;
}

static int
check_together(struct options *o, int type)
{
	const struct protocol *proto = o->proto;

	if (proto == NULL) {
		say("--protocol NAME is missing; it names the program of the peer:");
		protocol_list(stderr);
		return -1;
	}
	o->type = type >= 0 ? (enum bb_qp_type)type : protocol_first_type(proto);
	if ((proto->types & 1u << o->type) == 0) {
		say("--connection %s: %s has no such queue pairs", bb_qp_type_name(o->type),
		    proto->peer);
		return -1;
	}
	if (proto->verb == VERB_ATOMIC && o->size_given && o->size != 8) {
		say("--size %u: atomics have 8 bytes; leave --size out", o->size);
		return -1;
	}
	if (o->gbits && !proto->bandwidth) {
		say("--report-gbits: %s measures no bandwidth; leave out --report-gbits",
		    proto->name);
		return -1;
	}
	if (proto->verb == VERB_PINGPONG && o->tx_depth > 1) {
		say("--tx-depth %u: pingpong has one message in flight; leave out --tx-depth",
		    o->tx_depth);
		return -1;
	}
	if (!proto->bandwidth && o->iters == 1 && proto->verb != VERB_PINGPONG) {
		say("--iters %" PRIu64 ": a latency is the time from one message to the next; "
		    "give 2 or more",
		    o->iters);
		return -1;
	}
	if (o->cq_mod != 0 && o->tx_depth != 0 && o->cq_mod > o->tx_depth) {
		say("--cq-mod %u is more than --tx-depth %u: the send queue would fill with no "
		    "completion in flight; give --cq-mod at most the depth",
		    o->cq_mod, o->tx_depth);
		return -1;
	}
	if (check_test(o) != 0 || check_rdma_cm(o) != 0)
		return -1;
	fill_in(o);
	return 0;
}

static const char short_options[] = "P:d:s:n:abD:q:Rm:g:x:p:h";

/*
 * Handles an invalid option. Parses the other arguments only to find the server's address and port.
 * A server may already wait for this client, and main() then connects to it and closes the
 * connection, so that the server stops waiting.
 */
static int
refused(struct options *o, int argc, char **argv)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		/* Ignores arguments that are not options. */
		if (c == 'R')
			o->rdma_cm = true;
		if (c == '?' ||
		    (c == 'p' && option_u32("port", optarg, 1, UINT16_MAX, &o->tcp_port) != 0))
			return -1;
	}
	if (optind == argc - 1)
		o->host = argv[optind];
	return -1;
}

static int
options_parse(void *options, int argc, char **argv)
{
	struct options *o = options;
	int c, type = -1;

	memset(o, 0, sizeof(*o));
	o->device = "soft0";
	o->gid_index = GID_ANY;
	o->tcp_port = 18515;
	o->max_inline = UINT32_MAX;
	/*
	 * 17 means 0.5 s, as the kernel's rdma_cm uses on RoCE (CMA_IBOE_PACKET_LIFETIME in cma.c).
	 * perftest's default is 14 (67 ms): its 7 retries last 0.5 s in all, but a busy machine may
	 * suspend a peer for longer.
	 */
	o->qp_timeout = 17;
	o->seconds = 60;
	o->qps = 1;

	while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		if (c == 'h') {
			options_help(stdout);
			return 1;
		}
		if (c == OPT_VERSION) {
			printf("bb_perf %s, %s\n", PERF_VERSION, rte_version());
			return 1;
		}
		if (parse_one(o, c == 'x' ? 'g' : c, &type) != 0)
			return c == '?' ? -1 : refused(o, argc, argv);
	}
	if (optind < argc)
		o->host = argv[optind++];
	if (optind < argc) {
		say("\"%s\": only one HOST can be given; see bb_perf --help", argv[optind]);
		return -1;
	}
	return check_together(o, type);
}

uint32_t
options_sizes(const struct options *o)
{
	uint32_t n = 0;

	if (!o->all)
		return 1;
	while (n < SIZE_COUNT && SIZE_MIN << n <= o->size)
		n++;
	return n;
}

uint32_t
options_size(const struct options *o, uint32_t i)
{
	return o->all ? SIZE_MIN << i : o->size;
}

static bool
options_no_pci(const void *options)
{
	return eal_spec_no_pci(((const struct options *)options)->device);
}

const struct program perf_program = {
	.name = "bb_perf",
	.memory_mb = 256,
	.options = long_options,
	.help = options_help,
	.parse = options_parse,
	.no_pci = options_no_pci,
};
