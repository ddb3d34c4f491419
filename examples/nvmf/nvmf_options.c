/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include <bluebell.h>

#include "nvmf_program.h"

static const struct option longopts[] = {
	{"subsystem", required_argument, NULL, 's'},
	{"serial", required_argument, NULL, 'S'},
	{"host", required_argument, NULL, 'H'},
	{"namespace", required_argument, NULL, 'n'},
	{"device", required_argument, NULL, 'd'},
	{"listen", required_argument, NULL, 'l'},
	{"block", required_argument, NULL, 'b'},
	{"io", required_argument, NULL, 'I'},
	{"depth", required_argument, NULL, 'q'},
	{"max-io", required_argument, NULL, 'm'},
	{"in-capsule", required_argument, NULL, 'c'},
	{"io-queues", required_argument, NULL, 'i'},
	{"queues", required_argument, NULL, 'Q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char text[] =
	"usage: nvmf_target [EAL options] -- --subsystem NQN --namespace SPEC [options]\n"
	"\n"
	"An NVMe over Fabrics target: serves namespaces over RDMA to any initiator, such as\n"
	"Linux's nvme-rdma (nvme connect -t rdma). One lcore serves all hosts.\n"
	"\n"
	"Subsystems\n"
	"  --subsystem NQN      qualified name of a subsystem, such as nqn.2026-01.org.example:disk;\n"
	"                       give it up to 16 times. The three options below belong to the\n"
	"                       last --subsystem\n"
	"  --namespace SPEC     a namespace, up to 32; the first one has NSID 1. SPEC is file:PATH, a\n"
	"                       file or block device; malloc:SIZE, memory of this process; or\n"
	"                       null:SIZE, without storage: reads return zeros. Words may follow,\n"
	"                       each after a comma: ro for a read-only namespace; for a file\n"
	"                       size=SIZE, to which it is created or extended, and buffered, to use\n"
	"                       the page cache. SIZE is a multiple of --block; the suffix may be K,\n"
	"                       M, G or T\n"
	"  --host NQN           a host that may connect, up to 32; without it any host may\n"
	"  --serial TEXT        serial number, up to 20 characters (default BB1, BB2, ...)\n"
	"  --io uring|sync      io_uring (default), or blocking system calls if io_uring is forbidden\n"
	"  --block BYTES        bytes of a block of all namespaces, 512 to 4096 (default 4096)\n"
	"\n"
	"Transport\n"
	"  --device SPEC        soft0 (default), mlx5_0, soft0,port=net_tap0, ...\n"
	"  --listen ADDR:PORT   address and port (default :4420: all addresses of the device)\n"
	"  --queues N           queues of all hosts, 1 to 4096 (default 32). A host uses one, and\n"
	"                       one for each of its I/O queues\n"
	"  --io-queues N        I/O queues of a host, 1 to 128 (default 8)\n"
	"  --depth N            entries of an I/O queue, 2 to 1024 (default 64)\n"
	"  --max-io BYTES       largest transfer of a command, a power of two, 8K to 1M\n"
	"                       (default 128K)\n"
	"  --in-capsule BYTES   data that a command may carry, 0 to 16K, a multiple of 16\n"
	"                       (default 4K)\n"
	"  -h, --help           this text\n"
	"\n"
	"The data of a completed write to a file is in the file, even if this process dies. It is on\n"
	"the medium if the write had FUA, or after a later flush has completed.\n"
	"\n"
	"A queue takes --depth times --max-io of EAL's memory (-m MB).\n"
	"\n"
	"Exit status: 0 stopped by SIGINT or SIGTERM; 1 the target could not start or continue;\n"
	"2 wrong usage.\n"
	"\n"
	"Example, and the commands of a Linux host:\n"
	"    nvmf_target -l 0 --vdev net_af_packet0,iface=eth1 -- \\\n"
	"      --device soft0,port=net_af_packet0,ip=192.0.2.9/24 \\\n"
	"      --subsystem nqn.2026-01.org.example:disk --namespace file:disk,size=1G\n"
	"    nvme discover -t rdma -a 192.0.2.9 -s 4420\n"
	"    nvme connect -t rdma -a 192.0.2.9 -s 4420 -n nqn.2026-01.org.example:disk\n";

void
nvmf_help(FILE *out)
{
	fputs(text, out);
}

static struct subsystem *
last_subsystem(struct options *o, const char *option)
{
	if (o->subsystems != 0)
		return &o->subsystem[o->subsystems - 1];
	say("--%s: give --subsystem first", option);
	return NULL;
}

static int
add_subsystem(struct options *o)
{
	static const char *const serials[MAX_SUBSYSTEMS] = {
		"BB1", "BB2",  "BB3",  "BB4",  "BB5",  "BB6",  "BB7",  "BB8",
		"BB9", "BB10", "BB11", "BB12", "BB13", "BB14", "BB15", "BB16"};
	uint32_t i;

	if (o->subsystems == MAX_SUBSYSTEMS) {
		say("--subsystem: %u at most", MAX_SUBSYSTEMS);
		return -1;
	}
	if (!nvmf_nqn_valid(optarg) || strcmp(optarg, NVMF_DISCOVERY) == 0) {
		say("--subsystem %s: give a qualified name of up to %u characters, as in "
		    "nqn.2026-01.org.example:disk",
		    optarg, NVMF_NQN_MAX);
		return -1;
	}
	for (i = 0; i < o->subsystems; i++) {
		if (strcmp(o->subsystem[i].nqn, optarg) == 0) {
			say("--subsystem %s: the name occurs twice", optarg);
			return -1;
		}
	}
	o->subsystem[o->subsystems].serial = serials[o->subsystems];
	o->subsystem[o->subsystems++].nqn = optarg;
	return 0;
}

static int
add_host(struct options *o)
{
	struct subsystem *s = last_subsystem(o, "host");

	if (s == NULL)
		return -1;
	if (s->hosts == MAX_HOSTS || !nvmf_nqn_valid(optarg)) {
		say("--host %s: give a qualified name of up to %u characters, at most %u times for "
		    "a subsystem",
		    optarg, NVMF_NQN_MAX, MAX_HOSTS);
		return -1;
	}
	s->host[s->hosts++] = optarg;
	return 0;
}

/* Parses the words after the first comma of a --namespace. */
static int
parse_words(struct space *to, char *words)
{
	char *word, *rest = NULL;

	for (word = strtok_r(words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
		if (strcmp(word, "ro") == 0) {
			to->read_only = true;
		} else if (strcmp(word, "buffered") == 0 && to->kind == SPACE_FILE) {
			to->buffered = true;
		} else if (strncmp(word, "size=", 5) == 0 && to->kind == SPACE_FILE) {
			if (option_u64("namespace", word + 5, 4096, INT64_MAX, &to->size) != 0)
				return -1;
		} else {
			say("--namespace: \"%s\" is no word of it; see nvmf_target --help", word);
			return -1;
		}
	}
	return 0;
}

static int
add_namespace(struct options *o)
{
	static const char *const kinds[] = {"malloc:", "null:", "file:"};
	struct subsystem *s = last_subsystem(o, "namespace");
	char *words = strchr(optarg, ',');
	struct space *to;
	uint32_t i;

	if (s == NULL)
		return -1;
	if (s->spaces == MAX_NAMESPACES) {
		say("--namespace: %u at most for a subsystem", MAX_NAMESPACES);
		return -1;
	}
	to = &s->space[s->spaces++];
	if (words != NULL)
		*words++ = '\0';
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(optarg, kinds[i], len) != 0)
			continue;
		to->kind = (enum space_kind)i;
		to->path = optarg + len;
		if (to->kind != SPACE_FILE &&
		    option_u64("namespace", optarg + len, 4096, 1ull << 50, &to->size) != 0)
			return -1;
		return words == NULL ? 0 : parse_words(to, words);
	}
	say("--namespace %s: give file:PATH, malloc:SIZE or null:SIZE", optarg);
	return -1;
}

static int
set_serial(struct options *o)
{
	struct subsystem *s = last_subsystem(o, "serial");

	if (s == NULL)
		return -1;
	if (strlen(optarg) > 20) {
		say("--serial %s: 20 characters at most", optarg);
		return -1;
	}
	s->serial = optarg;
	return 0;
}

static int
set_listen(struct options *o)
{
	struct sockaddr_storage addr;

	o->listen = optarg;
	if (bb_cm_addr(optarg, &addr) == 0)
		return 0;
	say("--listen %s: give an address and a port, as in 192.0.2.1:4420", optarg);
	return -1;
}

static int
parse_one(struct options *o, int c)
{
	switch (c) {
	case 's':
		return add_subsystem(o);
	case 'S':
		return set_serial(o);
	case 'H':
		return add_host(o);
	case 'n':
		return add_namespace(o);
	case 'd':
		o->device = optarg;
		return 0;
	case 'l':
		return set_listen(o);
	case 'b':
		return option_u32("block", optarg, 512, 4096, &o->block);
	case 'I':
		o->uring = strcmp(optarg, "uring") == 0;
		if (o->uring || strcmp(optarg, "sync") == 0)
			return 0;
		say("--io %s: give uring or sync", optarg);
		return -1;
	case 'q':
		return option_u32("depth", optarg, 2, NVMF_MAX_DEPTH, &o->depth);
	case 'm':
		return option_u32("max-io", optarg, 2 * NVMF_PAGE, 1 << 20, &o->max_io);
	case 'c':
		return option_u32("in-capsule", optarg, 0, 16384, &o->in_capsule);
	case 'i':
		return option_u32("io-queues", optarg, 1, NVMF_MAX_QUEUES, &o->io_queues);
	case 'Q':
		return option_u32("queues", optarg, 1, 4096, &o->queues);
	default:
		say("see nvmf_target --help");
		return -1;
	}
}

/* Checks options that depend on each other. */
static int
check(const struct options *o)
{
	uint32_t i, j;

	if (o->subsystems == 0) {
		say("--subsystem NQN is missing; see nvmf_target --help");
		return -1;
	}
	if ((o->block & (o->block - 1)) != 0 || (o->max_io & (o->max_io - 1)) != 0) {
		say("--block %u, --max-io %u: both must be powers of two", o->block, o->max_io);
		return -1;
	}
	if (o->in_capsule % 16 != 0 || o->in_capsule > o->max_io) {
		say("--in-capsule %u: give a multiple of 16, and at most --max-io %u",
		    o->in_capsule, o->max_io);
		return -1;
	}
	if ((uint64_t)o->queues * (o->depth < NVMF_ADMIN_DEPTH ? NVMF_ADMIN_DEPTH : o->depth) >
	    32768) {
		say("--queues %u times --depth %u: the product must be at most 32768, the maximum "
		    "requests of an io_uring",
		    o->queues, o->depth);
		return -1;
	}
	for (i = 0; i < o->subsystems; i++) {
		const struct subsystem *s = &o->subsystem[i];

		if (s->spaces == 0) {
			say("--subsystem %s: give it a --namespace", s->nqn);
			return -1;
		}
		for (j = 0; j < s->spaces; j++) {
			if (s->space[j].size % o->block == 0)
				continue;
			say("--namespace: %" PRIu64 " bytes are no multiple of --block %u",
			    s->space[j].size, o->block);
			return -1;
		}
	}
	return 0;
}

int
nvmf_options_parse(void *opt, int argc, char **argv)
{
	struct options *o = opt;
	int c;

	*o = (struct options){
		.device = "soft0",
		.listen = ":4420",
		.block = 4096,
		.depth = 64,
		.max_io = 131072,
		.in_capsule = 4096,
		.io_queues = 8,
		.queues = 32,
		.uring = true,
	};
	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		if (c == 'h') {
			nvmf_help(stdout);
			return 1;
		}
		if (parse_one(o, c) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see nvmf_target --help", argv[optind]);
		return -1;
	}
	return check(o);
}
