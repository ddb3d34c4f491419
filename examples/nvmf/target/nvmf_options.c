/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of nvmf_target, and its configuration file, which has the same settings. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <bluebell.h>

#include "number.h"
#include "nvmf_program.h"

#define MAX_ARGS 512

/* Options of the command line; config_parse_again() parses them again. */
static char *arguments[MAX_ARGS + 1];
static int n_arguments;

static const char text[] =
	"usage: nvmf_target [EAL options] -- --subsystem NQN --namespace SPEC [options]\n"
	"       nvmf_target [EAL options] -- --config FILE [options]\n"
	"\n"
	"An NVMe over Fabrics target: serves namespaces over RDMA to any initiator, such as\n"
	"Linux's nvme-rdma (nvme connect -t rdma). Up to 8 lcores (-l) share the I/O queues.\n"
	"\n"
	"Subsystems\n"
	"  --subsystem NQN      qualified name of a subsystem, such as nqn.2026-01.org.example:disk;\n"
	"                       give it up to 16 times. The three options below belong to the\n"
	"                       last --subsystem\n"
	"  --namespace SPEC     a namespace, up to 32; the first one has NSID 1. SPEC is file:PATH, a\n"
	"                       file or block device; malloc:SIZE, memory of this process; or\n"
	"                       null:SIZE, without storage: reads return zeros. Words may follow,\n"
	"                       each after a comma: ro for a read-only namespace; nsid=N, its number\n"
	"                       from 1 to 32; for a file size=SIZE, to which it is created or\n"
	"                       extended, and buffered, to use the page cache. SIZE is a multiple of\n"
	"                       --block; the suffix may be K, M, G or T\n"
	"  --host NQN           a host that may connect, up to 32; without it any host may\n"
	"  --serial TEXT        serial number, up to 20 characters (default: made from the NQN)\n"
	"  --io uring|sync      io_uring (default), or blocking system calls if io_uring is forbidden\n"
	"  --block BYTES        bytes of a block of all namespaces, 512 to 4096 (default 4096): a\n"
	"                       multiple of the logical block of each device that is written\n"
	"\n"
	"Transport\n"
	"  --device SPEC        soft0 (default), mlx5_0, soft0,port=net_tap0, ...\n"
	"  --listen ADDR:PORT   address and port, up to 8 times (default :4420: all addresses of the\n"
	"                       device)\n"
	"  --queues N           queues of all hosts, 1 to 4096 (default 32). A host uses one, and\n"
	"                       one for each of its I/O queues. Each lcore serves an equal share,\n"
	"                       the first one all admin queues: its share limits the hosts. With\n"
	"                       io_uring a share times --depth (at least 32) may be 32768 at most\n"
	"  --io-queues N        I/O queues of a host, 1 to 128 (default 8)\n"
	"  --depth N            entries of an I/O queue, 2 to 1024 (default 64)\n"
	"  --max-io BYTES       largest transfer of a command, a power of two, 8K to 1M\n"
	"                       (default 128K)\n"
	"  --in-capsule BYTES   data that a command may carry, 0 to 16K, a multiple of 16\n"
	"                       (default 4K)\n"
	"  --keep-alive MS      longest keep-alive time that a host may ask for; a host that asks for\n"
	"                       none is refused (default 0: any, and none)\n"
	"  --sleep US           an lcore that has had no work for US microseconds sleeps until a\n"
	"                       completion arrives, 10 ms at most; 1 to 1000000 (default 0: it polls\n"
	"                       and takes a whole CPU)\n"
	"  -h, --help           this text\n"
	"\n"
	"Configuration file\n"
	"  --config FILE        has the options above as lines NAME = VALUE: those of subsystems in\n"
	"                       sections [subsystem NQN], all others in a section [target]. Options\n"
	"                       after --config override its values; --listen replaces all its\n"
	"                       addresses. After SIGHUP the target reads the file again, and changes\n"
	"                       subsystems, hosts and namespaces. All else needs a restart\n"
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
config_help(FILE *out)
{
	fputs(text, out);
}

/* ---- Settings of the target */

static int
set_device(struct config *c, const char *value)
{
	c->device = value;
	return 0;
}

static int
set_listen(struct config *c, const char *value)
{
	const bool of_file = c->line != 0;
	struct sockaddr_storage addr;

	if (bb_cm_addr(value, &addr) != 0)
		return config_wrong(c, "listen", value,
				    "give an address and a port, as in 192.0.2.1:4420");
	/* Of the file and the options, the later one replaces the addresses of the other. */
	if (c->listen_of_file != of_file)
		c->listeners = 0;
	c->listen_of_file = of_file;
	if (c->listeners == MAX_LISTENERS)
		return config_wrong(c, "listen", value, "at most %u listeners", MAX_LISTENERS);
	c->listen[c->listeners++] = value;
	return 0;
}

static int
set_io(struct config *c, const char *value)
{
	c->uring = strcmp(value, "uring") == 0;
	if (c->uring || strcmp(value, "sync") == 0)
		return 0;
	return config_wrong(c, "io", value, "give uring or sync");
}

static int read_file(struct config *c, const char *path);

/* A setting. Its value is passed to set(), or is a number if set is NULL. */
static const struct setting {
	const char *name;
	int (*set)(struct config *c, const char *value);
	bool of_subsystem;
	size_t at; /* offset of the number in struct config */
	uint32_t min, max;
	uint32_t multiple; /* the number must be a multiple of this; 0: a power of two */
} settings[] = {
	{.name = "subsystem", .set = config_subsystem},
	{.name = "serial", .set = config_serial, .of_subsystem = true},
	{.name = "host", .set = config_host, .of_subsystem = true},
	{.name = "namespace", .set = config_namespace, .of_subsystem = true},
	{.name = "device", .set = set_device},
	{.name = "listen", .set = set_listen},
	{.name = "io", .set = set_io},
	{.name = "config", .set = read_file},
	{"block", NULL, false, offsetof(struct config, block), 512, 4096, 0},
	{"max-io", NULL, false, offsetof(struct config, max_io), 2 * NVMF_PAGE, 1 << 20, 0},
	{"in-capsule", NULL, false, offsetof(struct config, in_capsule), 0, 16384, 16},
	{"depth", NULL, false, offsetof(struct config, depth), 2, NVMF_MAX_DEPTH, 1},
	{"io-queues", NULL, false, offsetof(struct config, io_queues), 1, NVMF_MAX_QUEUES, 1},
	{"queues", NULL, false, offsetof(struct config, queues), 1, 4096, 1},
	{"keep-alive", NULL, false, offsetof(struct config, keep_alive), 0, UINT32_MAX, 1},
	{"sleep", NULL, false, offsetof(struct config, sleep_us), 0, 1000000, 1},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static int
set_number(struct config *c, const struct setting *s, const char *value)
{
	const char *wrong;
	uint64_t v;

	wrong = number_parse(value, strlen(value), &v);
	if (wrong != NULL || v < s->min || v > s->max)
		return config_wrong(c, s->name, value, "the value %s; give a number from %u to %u",
				    wrong != NULL ? wrong : "is out of range", s->min, s->max);
	if (s->multiple == 0 && (v & (v - 1)) != 0)
		return config_wrong(c, s->name, value, "give a power of two");
	if (s->multiple > 1 && v % s->multiple != 0)
		return config_wrong(c, s->name, value, "give a multiple of %u", s->multiple);
	*(uint32_t *)(void *)((char *)c + s->at) = (uint32_t)v;
	return 0;
}

static int
set(struct config *c, const char *name, const char *value)
{
	const struct setting *s = settings;

	while (s < settings + SETTINGS && strcmp(s->name, name) != 0)
		s++;
	/* In a file, sections replace the option subsystem, and config is not allowed. */
	if (s == settings + SETTINGS ||
	    (c->line != 0 && (s->set == config_subsystem || s->set == read_file)))
		return config_wrong(
			c, name, value,
			"unknown; known are serial, host and namespace in [subsystem NQN], "
			"and device, listen, io, block, max-io, in-capsule, depth, "
			"io-queues, queues, keep-alive and sleep in [target]");
	if (c->line != 0 && !s->of_subsystem && (c->ini.section == NULL || c->current != NULL))
		return config_wrong(c, name, value, "put it into the section [target]");
	return s->set != NULL ? s->set(c, value) : set_number(c, s, value);
}

/* ---- The configuration file */

/* Begins a section: [target] or [subsystem NQN]. */
static int
section(struct config *c, char *name)
{
	static const char word[] = "subsystem ";

	c->current = NULL;
	if (strcmp(name, "target") == 0)
		return 0;
	if (strncmp(name, word, sizeof(word) - 1) == 0)
		return config_subsystem(c, name + sizeof(word) - 1 +
						   strspn(name + sizeof(word) - 1, " \t"));
	say("%s:%u: [%s]: the section is neither [target] nor [subsystem NQN]", c->ini.path,
	    c->line, name);
	return -1;
}

static int
read_file(struct config *c, const char *path)
{
	int rc;

	if (c->file != NULL)
		return config_wrong(c, "config", path, "give it once");
	if (ini_open(&c->ini, path) != 0) {
		say("%s: the configuration cannot be read: %s", path, c->ini.error);
		return -1;
	}
	c->file = path;
	while ((rc = ini_next(&c->ini)) == 1) {
		c->line = c->ini.line;
		if (c->ini.name == NULL)
			rc = section(c, c->ini.section);
		else
			rc = set(c, c->ini.name, c->ini.value);
		if (rc != 0)
			return -1;
	}
	if (rc != 0)
		say("%s:%u: %s", path, c->ini.line, c->ini.error);
	c->line = 0;
	c->current = NULL;
	return rc == 0 ? 0 : -1;
}

/* ---- All settings */

/* Checks settings that depend on each other. */
static int
check(struct config *c)
{
	uint32_t i, j;

	if (c->subsystems == 0) {
		say("--subsystem NQN is missing; see nvmf_target --help");
		return -1;
	}
	if (c->in_capsule > c->max_io) {
		say("in-capsule %u: give at most max-io, %u", c->in_capsule, c->max_io);
		return -1;
	}
	for (i = 0; i < c->subsystems; i++) {
		const struct subsystem *s = &c->subsystem[i];

		c->line = s->line;
		if (s->spaces == 0)
			return config_wrong(c, "subsystem", s->nqn, "give it a namespace");
		for (j = 0; j < s->spaces; j++) {
			char size[24];

			if (s->space[j].size % c->block == 0)
				continue;
			c->line = s->space[j].line;
			snprintf(size, sizeof(size), "%" PRIu64, s->space[j].size);
			return config_wrong(c, "namespace", size,
					    "the size is no multiple of block, %u", c->block);
		}
	}
	c->line = 0;
	return 0;
}

static int
parse(struct config *c, int argc, char **argv)
{
	struct option longopts[SETTINGS + 2] = {{"help", no_argument, NULL, 'h'}};
	int opt, index;
	uint32_t i;

	for (i = 0; i < SETTINGS; i++)
		longopts[i + 1] = (struct option){settings[i].name, required_argument, NULL, 's'};
	*c = (struct config){
		.device = "soft0",
		.block = 4096,
		.depth = 64,
		.max_io = 131072,
		.in_capsule = 4096,
		.io_queues = 8,
		.queues = 32,
		.uring = true,
	};
	optind = 0;
	while ((opt = getopt_long(argc, argv, "h", longopts, &index)) != -1) {
		if (opt == 'h') {
			config_help(stdout);
			return 1;
		}
		if (opt != 's') {
			say("see nvmf_target --help");
			return -1;
		}
		if (set(c, longopts[index].name, optarg) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see nvmf_target --help", argv[optind]);
		return -1;
	}
	if (c->listeners == 0)
		c->listen[c->listeners++] = ":4420";
	return check(c);
}

int
config_parse(void *config, int argc, char **argv)
{
	if (argc > MAX_ARGS) {
		say("%d arguments: at most %d; give a file by --config", argc, MAX_ARGS);
		return -1;
	}
	memcpy(arguments, argv, (size_t)argc * sizeof(argv[0]));
	n_arguments = argc;
	return parse(config, argc, argv);
}

int
config_parse_again(struct config *c)
{
	return parse(c, n_arguments, arguments);
}
