/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "client.h"
#include "pattern.h"

static const struct option longopts[] = {
	{"rw", required_argument, NULL, 'w'},
	{"bs", required_argument, NULL, 'b'},
	{"depth", required_argument, NULL, 'q'},
	{"ios", required_argument, NULL, 'n'},
	{"seconds", required_argument, NULL, 't'},
	{"offset", required_argument, NULL, 'o'},
	{"size", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'S'},
	{"fua", no_argument, NULL, 'F'},
	{"flush-every", required_argument, NULL, 'f'},
	{"verify", no_argument, NULL, 'v'},
	{"journal", required_argument, NULL, 'J'},
	{"check", required_argument, NULL, 'C'},
	{"json", required_argument, NULL, 'j'},
	{"device", required_argument, NULL, 'd'},
	{"connect", required_argument, NULL, 'c'},
	{"wait", required_argument, NULL, 'W'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char text[] =
	"usage: storage_client [EAL options] -- [options]\n"
	"\n"
	"Load for storage_target, and checks of what it does. Each lcore has a connection of its\n"
	"own and an equal part of the place. What is written can be told by what is read: where\n"
	"it belongs, which write it was.\n"
	"\n"
	"Load\n"
	"  --rw KIND          read, write (one after the other), randread (default), randwrite,\n"
	"                     randrw\n"
	"  --bs BYTES         of each request (default 4096)\n"
	"  --depth N          requests of an lcore at a time (default 32)\n"
	"  --ios N            of each lcore; default, without --seconds: as many as there are blocks\n"
	"  --seconds S        end after S seconds\n"
	"  --offset BYTES, --size BYTES   the place (default: the whole device)\n"
	"  --fua              each write is on the medium when it completes\n"
	"  --flush-every N    a flush behind every N writes of an lcore; there is one at the end\n"
	"                     unless --fua was given\n"
	"  --seed N           of order and data (default 1)\n"
	"\n"
	"Checks. Checksums of the data on its way are always checked\n"
	"  --verify           what is read: whole, from its place, and not older than the last\n"
	"                     write that this run has completed\n"
	"  --journal FILE     write down which writes were acknowledged, also when the target is gone\n"
	"  --check FILE       read the blocks that such a journal names, and no others: what was\n"
	"                     acknowledged must be there\n"
	"\n"
	"Where\n"
	"  --device SPEC        soft0 (default), mlx5_0, soft0,shm=desk,ip=192.0.2.2/24, ...; once\n"
	"                       for each lcore\n"
	"  --connect ADDR:PORT  the first lcore's queue (default 127.0.0.1:18700); the next ones go\n"
	"                       to the ports behind it\n"
	"  --wait S             seconds to wait for the target's answer, of the connection and of\n"
	"                       requests, before it counts as an error (default 30)\n"
	"\n"
	"Result\n"
	"  --json FILE        write it to FILE as JSON, too\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 all was right; 1 something was wrong, failed, or the target is gone;\n"
	"2 wrong usage; 130 stopped by Ctrl-C (143: SIGTERM), and what was done is right.\n";

void
client_help(FILE *out)
{
	fputs(text, out);
}

static int
parse_rw(struct options *o, const char *arg)
{
	static const char *const names[] = {"read", "write", "randread", "randwrite", "randrw"};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(arg, names[i]) == 0) {
			o->rw = (enum rw)i;
			return 0;
		}
	}
	say("--rw %s: give read, write, randread, randwrite or randrw", arg);
	return -1;
}

static int
parse_more(struct options *o, int c)
{
	struct sockaddr_storage addr;

	switch (c) {
	case 'd':
		if (o->devices == MAX_JOBS) {
			say("--device: %u at most", MAX_JOBS);
			return -1;
		}
		o->device[o->devices++] = optarg;
		return 0;
	case 'c':
		o->connect = optarg;
		if (bb_cm_addr(optarg, &addr) == 0)
			return 0;
		say("--connect %s: give an address and a port, as in 192.0.2.1:18700", optarg);
		return -1;
	case 'W':
		return option_u32("wait", optarg, 1, 3600, &o->wait_s);
	case 'J':
		o->journal = optarg;
		return 0;
	case 'C':
		o->check = optarg;
		return 0;
	case 'j':
		o->json = optarg;
		return 0;
	default:
		say("see storage_client --help");
		return -1;
	}
}

static int
parse_one(struct options *o, int c)
{
	switch (c) {
	case 'w':
		return parse_rw(o, optarg);
	case 'b':
		return option_u32("bs", optarg, PATTERN_UNIT, BB_BLK_MAX_IO, &o->bs);
	case 'q':
		return option_u32("depth", optarg, 1, BB_BLK_MAX_DEPTH, &o->depth);
	case 'n':
		return option_u64("ios", optarg, 1, UINT32_MAX, &o->ios);
	case 't':
		return option_u64("seconds", optarg, 1, 1000000, &o->seconds);
	case 'o':
		return option_u64("offset", optarg, 0, INT64_MAX, &o->offset);
	case 's':
		return option_u64("size", optarg, PATTERN_UNIT, INT64_MAX, &o->size);
	case 'S':
		return option_u64("seed", optarg, 0, INT64_MAX, &o->seed);
	case 'f':
		return option_u64("flush-every", optarg, 1, UINT32_MAX, &o->flush_every);
	case 'F':
		o->fua = true;
		return 0;
	case 'v':
		o->verify = true;
		return 0;
	default:
		return parse_more(o, c);
	}
}

int
client_options_parse(void *opt, int argc, char **argv)
{
	struct options *o = opt;
	int c;

	*o = (struct options){
		.connect = "127.0.0.1:18700",
		.rw = RW_RANDREAD,
		.bs = 4096,
		.depth = 32,
		.wait_s = 30,
		.seed = 1,
	};
	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		if (c == 'h') {
			client_help(stdout);
			return 1;
		}
		if (parse_one(o, c) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see storage_client --help", argv[optind]);
		return -1;
	}
	if (o->bs % PATTERN_UNIT != 0 || o->offset % o->bs != 0) {
		say("--bs %u, --offset %" PRIu64 ": give a multiple of %u, and a multiple of that",
		    o->bs, o->offset, PATTERN_UNIT);
		return -1;
	}
	if (o->fua && o->flush_every != 0) {
		say("--fua and --flush-every: with FUA there is nothing to flush");
		return -1;
	}
	if (o->check != NULL) {
		o->rw = RW_READ;
		o->verify = true;
		o->ios = o->seconds = 0;
	}
	if (o->devices == 0)
		o->device[o->devices++] = "soft0";
	return 0;
}
