/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "number.h"
#include "target.h"

static const struct option longopts[] = {
	{"file", required_argument, NULL, 'f'},
	{"size", required_argument, NULL, 's'},
	{"block", required_argument, NULL, 'b'},
	{"buffered", no_argument, NULL, 'B'},
	{"read-only", no_argument, NULL, 'r'},
	{"io", required_argument, NULL, 'i'},
	{"device", required_argument, NULL, 'd'},
	{"listen", required_argument, NULL, 'l'},
	{"depth", required_argument, NULL, 'q'},
	{"max-io", required_argument, NULL, 'm'},
	{"clients", required_argument, NULL, 'c'},
	{"idle", required_argument, NULL, 'I'},
	{"per-address", required_argument, NULL, 'A'},
	{"help", no_argument, NULL, 'h'},
	{"wait", required_argument, NULL, 'W'},
	{"defect", required_argument, NULL, 'D'}, /* only for tests, so not in the help text */
	{NULL, 0, NULL, 0},
};

static const char text[] =
	"usage: storage_target [EAL options] -- --file FILE [options]\n"
	"\n"
	"Serves a file or a block device to clients over RDMA: storage_client, fio with\n"
	"storage_fio.so, or your own program with bb_blk.h. RDMA READ and WRITE move the\n"
	"data between the clients' memory and registered buffers of the target. io_uring\n"
	"moves the data between these buffers and the file. Each lcore has its own device,\n"
	"listening port and io_uring; together they are one queue of the target.\n"
	"\n"
	"File\n"
	"  --file FILE      file or block device to serve; locked against a second target\n"
	"  --size BYTES     size of the file, which is created or extended if necessary; of a block\n"
	"                   device, the number of bytes to use. A multiple of --block; the suffix may\n"
	"                   be K, M, G or T\n"
	"  --block BYTES    bytes of a block, 512 to 4096 (default 4096); offsets and lengths of\n"
	"                   requests are multiples of it\n"
	"  --read-only      refuse writes\n"
	"  --buffered       use the page cache; the default is O_DIRECT if the file system supports it\n"
	"  --wait S         seconds to wait until another target, such as a killed one, unlocks the\n"
	"                   file (default 10)\n"
	"  --io uring|sync  io_uring (default), or blocking system calls if io_uring is forbidden\n"
	"\n"
	"Clients\n"
	"  --device SPEC      soft0 (default), mlx5_0, soft0,shm=desk,ip=192.0.2.1/24, ...; give it\n"
	"                     once per lcore; further lcores use the last one\n"
	"  --listen ADDR:PORT address and port of the first lcore (default 127.0.0.1:18700). The other\n"
	"                     lcores use the next ports. With port 0 each lcore uses a free port\n"
	"  --clients N        maximum number of connections of an lcore (default 8)\n"
	"  --idle S           seconds without a command after which a connection may be closed to\n"
	"                     make room for a new one (default 60). A connection that has sent no\n"
	"                     command may be closed after 2 s\n"
	"  --per-address N    maximum number of connections from one address to an lcore (default 0:\n"
	"                     no limit)\n"
	"  --depth N          outstanding commands of a connection, 1 to 256 (default 64)\n"
	"  --max-io BYTES     maximum length of a command (default 128K); each command has a buffer of\n"
	"                     this size\n"
	"  -h, --help         this text\n"
	"\n"
	"The data of an acknowledged write is in the file, even if this process dies. It is on the\n"
	"medium if the write had FUA, or after a later flush was acknowledged.\n"
	"\n"
	"Exit status: 0 stopped by SIGINT or SIGTERM; 1 the target could not start or continue;\n"
	"2 wrong usage.\n"
	"\n"
	"Examples, in two processes of a host over shared memory:\n"
	"    storage_target -l 0 -- --file disk --size 1G \\\n"
	"      --device soft0,shm=desk,ip=192.0.2.1/24\n"
	"    storage_client -l 1 -- --rw randread --verify \\\n"
	"      --device soft0,shm=desk,ip=192.0.2.2/24 --connect 127.0.0.1:18700\n";

void
target_help(FILE *out)
{
	fputs(text, out);
}

static int
choose(const char *option, const char *arg, const char *const *names, const char *all)
{
	int i;

	for (i = 0; names[i] != NULL; i++)
		if (strcmp(arg, names[i]) == 0)
			return i;
	say("--%s %s: give %s", option, arg, all);
	return -1;
}

static int
parse_one(struct options *o, int c)
{
	static const char *const ways[] = {"sync", "uring", NULL};
	static const char *const defects[] = {"none", "ack-only", "flip-read", "flip-write", NULL};
	struct sockaddr_storage addr;
	int n;

	switch (c) {
	case 'f':
		o->file.path = optarg;
		return 0;
	case 's':
		return option_u64("size", optarg, BLK_MIN_BLOCK, INT64_MAX, &o->file.size);
	case 'b':
		return option_u32("block", optarg, BLK_MIN_BLOCK, BLK_MAX_BLOCK, &o->file.block);
	case 'B':
		o->file.buffered = true;
		return 0;
	case 'r':
		o->file.read_only = true;
		return 0;
	case 'i':
		n = choose("io", optarg, ways, "uring or sync");
		o->uring = n == 1;
		return n < 0 ? -1 : 0;
	case 'd':
		if (o->devices == MAX_WORKERS) {
			say("--device: %u at most", MAX_WORKERS);
			return -1;
		}
		o->device[o->devices++] = optarg;
		return 0;
	case 'l':
		o->listen = optarg;
		if (bb_cm_addr(optarg, &addr) == 0)
			return 0;
		say("--listen %s: give an address and a port, as in 192.0.2.1:18700", optarg);
		return -1;
	case 'q':
		return option_u32("depth", optarg, 1, BB_BLK_MAX_DEPTH, &o->depth);
	case 'm':
		return option_u32("max-io", optarg, BLK_MIN_BLOCK, BB_BLK_MAX_IO, &o->max_io);
	case 'c':
		return option_u32("clients", optarg, 1, 1024, &o->clients);
	case 'I':
		return option_u32("idle", optarg, 1, 1000000, &o->idle_s);
	case 'A':
		return option_u32("per-address", optarg, 0, 1024, &o->per_address);
	case 'W':
		return option_u32("wait", optarg, 0, 3600, &o->file.wait_s);
	case 'D':
		n = choose("defect", optarg, defects, "ack-only, flip-read or flip-write");
		o->defect = (enum defect)n;
		return n < 0 ? -1 : 0;
	default:
		say("see storage_target --help");
		return -1;
	}
}

int
target_options_parse(void *opt, int argc, char **argv)
{
	struct options *o = opt;
	int c;

	*o = (struct options){
		.listen = "127.0.0.1:18700",
		.file.block = 4096,
		.file.wait_s = 10,
		.depth = 64,
		.max_io = 131072,
		.clients = 8,
		.idle_s = 60,
		.uring = true,
	};
	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
		if (c == 'h') {
			target_help(stdout);
			return 1;
		}
		if (parse_one(o, c) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see storage_target --help", argv[optind]);
		return -1;
	}
	if (o->file.path == NULL) {
		say("--file FILE is missing: the file or block device to serve; see storage_target --help");
		return -1;
	}
	if ((o->file.block & (o->file.block - 1)) != 0 || o->max_io % o->file.block != 0) {
		say("--block %u, --max-io %u: --block must be a power of two, and --max-io a multiple "
		    "of --block",
		    o->file.block, o->max_io);
		return -1;
	}
	if (o->file.size % o->file.block != 0) {
		say("--size %" PRIu64 ": give a multiple of --block %u", o->file.size,
		    o->file.block);
		return -1;
	}
	if ((uint64_t)o->clients * o->depth > 32768) {
		say("--clients %u times --depth %u: the product must be at most 32768, the maximum "
		    "requests of an io_uring",
		    o->clients, o->depth);
		return -1;
	}
	if (o->devices == 0)
		o->device[o->devices++] = "soft0";
	return 0;
}
