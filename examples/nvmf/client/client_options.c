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
	{"subsystem", required_argument, NULL, 'N'},
	{"namespace", required_argument, NULL, 'i'},
	{"host", required_argument, NULL, 'H'},
	{"reconnect", required_argument, NULL, 'R'},
	{"windows", no_argument, NULL, 'M'},
	{"wait", required_argument, NULL, 'W'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char text[] =
	"usage: nvmf_client [EAL options] -- --connect ADDR --subsystem NQN [options]\n"
	"\n"
	"Sends requests to an NVMe over Fabrics target, such as nvmf_target, and checks the data.\n"
	"Each lcore has its own connection and an equal part of the range. The data written\n"
	"contains its offset and the number of the write, so that a read can be checked.\n"
	"\n"
	"Connection\n"
	"  --connect ADDR:PORT  address and port of the target, as in 192.0.2.1:4420\n"
	"  --subsystem NQN      qualified name of the subsystem\n"
	"  --namespace N        number of the namespace (default 1)\n"
	"  --host NQN           qualified name of this host, if the target has a list of hosts\n"
	"  --device SPEC        soft0 (default), mlx5_0, soft0,shm=desk,ip=192.0.2.2/24, ...; give it\n"
	"                       once per lcore\n"
	"  --wait S             seconds to wait for a reply of the target (default 30)\n"
	"  --reconnect S        if the connection is lost, connect again for up to S seconds, and send\n"
	"                       the outstanding requests again; without it the run fails\n"
	"  --windows            give the target a right to memory only while a request needs it\n"
	"\n"
	"Load\n"
	"  --rw KIND          read, write (both sequential), randread (default), randwrite, randrw\n"
	"  --bs BYTES         bytes of each request (default 4096)\n"
	"  --depth N          outstanding requests per lcore (default 32)\n"
	"  --ios N            requests per lcore; the default, without --seconds, is one per block\n"
	"  --seconds S        end after S seconds\n"
	"  --offset BYTES, --size BYTES   range of the device (default: the whole device)\n"
	"  --fua              each write completes only when its data is on the medium\n"
	"  --flush-every N    send a flush after every N writes of an lcore. Without --fua there is\n"
	"                     also a flush at the end\n"
	"  --seed N           seed of the order of blocks and of the data (default 1)\n"
	"\n"
	"Checks\n"
	"  --verify           check the data read: it must be complete, from the right offset, and not\n"
	"                     older than the last write that this run has completed\n"
	"  --journal FILE     write the list of acknowledged writes to FILE, even if the target dies\n"
	"  --check FILE       read only the blocks in such a journal, and check that all acknowledged\n"
	"                     writes are there\n"
	"\n"
	"Result\n"
	"  --json FILE        also write the result to FILE as JSON\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 success; 1 wrong data, a failed request, or a lost target; 2 wrong usage;\n"
	"130 stopped by Ctrl-C (143: SIGTERM) without an error before.\n"
	"\n"
	"Example, and the check after the target was killed and started again:\n"
	"    nvmf_client -l 1 -- --connect 192.0.2.1:4420 --subsystem nqn.2026-01.org.example:disk \\\n"
	"      --device soft0,shm=desk,ip=192.0.2.2/24 --rw randwrite --seconds 60 --journal written\n"
	"    nvmf_client -l 1 -- --connect 192.0.2.1:4420 --subsystem nqn.2026-01.org.example:disk \\\n"
	"      --device soft0,shm=desk,ip=192.0.2.2/24 --check written\n";

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
			say("--device: give at most %u", MAX_JOBS);
			return -1;
		}
		o->device[o->devices++] = optarg;
		return 0;
	case 'c':
		o->connect = optarg;
		if (bb_cm_addr(optarg, &addr) == 0)
			return 0;
		say("--connect %s: give an address and a port, as in 192.0.2.1:4420", optarg);
		return -1;
	case 'N':
		o->subsystem = optarg;
		return 0;
	case 'H':
		o->host = optarg;
		return 0;
	case 'i':
		return option_u32("namespace", optarg, 1, UINT32_MAX - 1, &o->nsid);
	case 'R':
		return option_u32("reconnect", optarg, 1, 3600, &o->reconnect_s);
	case 'M':
		o->windows = true;
		return 0;
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
		say("see nvmf_client --help");
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
		return option_u32("bs", optarg, PATTERN_UNIT, MAX_BS, &o->bs);
	case 'q':
		return option_u32("depth", optarg, 1, BB_NVMF_MAX_DEPTH, &o->depth);
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

/* Checks options that depend on each other. */
static int
check(const struct options *o)
{
	if (o->connect == NULL || o->subsystem == NULL) {
		say("--connect ADDR:PORT or --subsystem NQN is missing; see nvmf_client --help");
		return -1;
	}
	if (o->bs % PATTERN_UNIT != 0 || o->offset % o->bs != 0) {
		say("--bs %u, --offset %" PRIu64 ": --bs must be a multiple of %u, and --offset a "
		    "multiple of --bs",
		    o->bs, o->offset, PATTERN_UNIT);
		return -1;
	}
	if (o->fua && o->flush_every != 0) {
		say("--fua and --flush-every: give only one, because FUA writes need no flush");
		return -1;
	}
	return 0;
}

int
client_options_parse(void *opt, int argc, char **argv)
{
	struct options *o = opt;
	int c;

	*o = (struct options){
		.rw = RW_RANDREAD,
		.bs = 4096,
		.depth = 32,
		.wait_s = 30,
		.nsid = 1,
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
		say("\"%s\" is not an option; see nvmf_client --help", argv[optind]);
		return -1;
	}
	if (check(o) != 0)
		return -1;
	if (o->check != NULL) {
		o->rw = RW_READ;
		o->verify = true;
		o->ios = o->seconds = 0;
	}
	if (o->devices == 0)
		o->device[o->devices++] = "soft0";
	return 0;
}
