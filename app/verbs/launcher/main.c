/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* bb_verbs: starts a verbs program. The program finds the software ConnectX as its RDMA device. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

#include "address.h"
#include "loadable.h"
#include "preload.h"
#include "tree.h"
#include "vdev.h"

#define DEFAULT_DEVICE "soft0,shm=verbs"
#define NAP            ",nap=2000"

struct options {
	const char *device, *address, *host, *vdev;
	bool ib, quiet;
	char **program;
};

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	va_list ap;

	fputs("bb_verbs: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void
help(FILE *out)
{
	fputs("usage: bb_verbs [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
	      "\n"
	      "Runs a program that uses verbs (libibverbs) on the software ConnectX: without a card,\n"
	      "a kernel module or root. The program sees one device, mlx5_0. Programs that are started\n"
	      "with the same network reach one another, as hosts of one network do.\n"
	      "\n"
	      "  --device DEVICE   the device, NAME[,OPTION...], default " DEFAULT_DEVICE
	      ". shm=NAME is\n"
	      "                    the network, in the shared memory of this host. With port=VDEV the\n"
	      "                    network is that of --vdev, and may have other hosts\n"
	      "  --vdev VDEV       the DPDK port of port=, NAME[,OPTION...] as in other DPDK programs:\n"
	      "                    net_memif, net_af_packet or net_af_xdp. One process can use it.\n"
	      "                    Needs --address\n"
	      "  --address IP      address of the process, IP[/BITS], default auto: a free address of\n"
	      "                    " ADDRESS_NET
	      ".0.0/16. BITS is the length of the network's prefix\n"
	      "  --host NAME       all processes that are started with this name and network share one\n"
	      "                    address, as the processes of a host do: each has 1024 QP numbers of its\n"
	      "                    own, and ports of rdma_cm are those of the host. Without --address, the\n"
	      "                    address of " ADDRESS_NET ".0.0/16 follows from the name\n"
	      "  --link LAYER      link layer, eth or ib, default eth: RoCE. ib has LIDs, but no network:\n"
	      "                    the program reaches only itself, with --device soft0\n"
	      "  --quiet           do not print the line with the device and the GID of the program\n"
	      "  --help            print this text\n"
	      "  --version         print the version\n"
	      "\n"
	      "Exit status: that of the program; 1: the device cannot be opened, 2: wrong options, 127:\n"
	      "the program cannot be started.\n"
	      "\n"
	      "Examples, in two terminals:\n"
	      "  bb_verbs -- ib_write_bw -x 1\n"
	      "  bb_verbs -- ib_write_bw -x 1 localhost\n"
	      "\n"
	      "The same by RoCEv2 frames over an interface, for example to another host:\n"
	      "  bb_verbs --vdev net_af_packet0,iface=eth1 --device soft0,port=net_af_packet0 \\\n"
	      "      --address 192.0.2.1/24 -- ib_write_bw -x 1\n"
	      "\n"
	      "The first line of the output names the GID index for the program: -x of perftest, -g of\n"
	      "the ibv_*_pingpong programs. BB_VERBS_TRACE=1 in the environment lists the calls that\n"
	      "the kernel would get.\n",
	      out);
}

/* Parses the command line. Returns 0 to continue, 1 if all is done, -1 on an error. */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"device", required_argument, NULL, 'd'},
						{"address", required_argument, NULL, 'a'},
						{"host", required_argument, NULL, 'H'},
						{"link", required_argument, NULL, 'l'},
						{"vdev", required_argument, NULL, 'V'},
						{"quiet", no_argument, NULL, 'q'},
						{"help", no_argument, NULL, 'h'},
						{"version", no_argument, NULL, 'v'},
						{NULL, 0, NULL, 0}};
	int c;

	*o = (struct options){.device = DEFAULT_DEVICE, .address = "auto"};
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o->device = optarg;
			break;
		case 'a':
			o->address = optarg;
			break;
		case 'H':
			o->host = optarg;
			break;
		case 'l':
			o->ib = strcmp(optarg, "ib") == 0;
			if (!o->ib && strcmp(optarg, "eth") != 0) {
				say("invalid --link %s (eth or ib)", optarg);
				return -1;
			}
			break;
		case 'V':
			o->vdev = optarg;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'h':
			help(stdout);
			return 1;
		case 'v':
			puts("bb_verbs " VERBS_VERSION);
			return 1;
		default:
			return -1;
		}
	}
	o->program = argv + optind;
	if (*o->program != NULL)
		return 0;
	say("no program to start: give one, such as bb_verbs -- ibv_devinfo; see --help");
	return -1;
}

/* Returns the number of the host's address in ADDRESS_NET: a hash of the name (FNV-1a). */
static unsigned int
host_number(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash % ADDRESS_HOSTS + 1;
}

/* Checks which options exclude or need each other. Prints the cause if it returns false. */
static bool
check_options(const struct options *o, bool shm, bool port)
{
	const bool address = strcmp(o->address, "auto") != 0;

	if (port && o->vdev == NULL) {
		say("--device %s: give the port of port=, too, for example --vdev "
		    "net_af_packet0,iface=eth1",
		    o->device);
		return false;
	}
	if (!port && o->vdev != NULL) {
		say("--vdev %s needs --device soft0,port=%.*s", o->vdev, (int)strcspn(o->vdev, ","),
		    o->vdev);
		return false;
	}
	if (o->host != NULL && (o->host[0] == '\0' || strstr(o->device, ",host=") != NULL)) {
		say("--host needs a name, and excludes host= in --device");
		return false;
	}
	if (strstr(o->device, ",progress=") != NULL ||
	    (strstr(o->device, ",ip=") != NULL && !port)) {
		say("--device %s: leave out ip= and progress=: --address sets the address, and a "
		    "thread always runs the device",
		    o->device);
		return false;
	}
	if (o->host != NULL && !shm) {
		say("--host needs the network of shared memory: --device soft0,shm=NAME");
		return false;
	}
	if (address && !shm && !port) {
		say("--address needs a network: --device soft0,shm=NAME");
		return false;
	}
	return true;
}

/*
 * Appends the options for the address and the link layer to the device's name. If they are invalid,
 * prints the cause and returns false.
 */
static bool
device_of(const struct options *o, char *spec, size_t size, bool *choose)
{
	const bool shm = strstr(o->device, ",shm=") != NULL;
	const char *ip = strcmp(o->address, "auto") == 0 ? "" : o->address, *bits = "";
	const bool host = o->host != NULL;
	char own[32];
	int n;

	if (!check_options(o, shm, strstr(o->device, ",port=") != NULL))
		return false;
	if (host && ip[0] == '\0') {
		const unsigned int number = host_number(o->host);

		snprintf(own, sizeof(own), ADDRESS_NET ".%u.%u/%d", number >> 8, number & 255,
			 ADDRESS_BITS);
		ip = own;
	}
	if (ip[0] != '\0' && strchr(ip, '/') == NULL)
		bits = strchr(ip, ':') == NULL ? "/24" : "/64";
	*choose = shm && ip[0] == '\0';
	n = snprintf(spec, size, "%s%s%s%s%s%s%s%s", o->device, host ? ",host=" : "",
		     host ? o->host : "", o->ib ? ",link=ib" : "",
		     strstr(o->device, ",nap=") == NULL ? NAP : "", ip[0] != '\0' ? ",ip=" : "", ip,
		     bits);
	if (n >= 0 && (size_t)n < size)
		return true;
	say("--device is too long (at most %zu bytes)", size - 1);
	return false;
}

/* ---- The program to start */

/* Finds the library to preload: in a build folder beside this program, otherwise installed. */
static bool
find_library(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 40);
	char *slash;

	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		if (slash != NULL) {
			strcpy(slash + 1, "libbb-verbs.so");
			if (access(path, R_OK) == 0)
				return true;
		}
	}
	snprintf(path, size, "%s/libbb-verbs.so", VERBS_LIBDIR);
	if (access(path, R_OK) == 0)
		return true;
	say("%s: %s: is bb_verbs installed completely?", path, strerror(errno));
	return false;
}

/* Prints what the program sees: the device and the GID with its address. */
static void
report(const struct tree_port *port, const char *spec)
{
	char text[INET6_ADDRSTRLEN];
	const uint8_t *raw;
	uint32_t i, best = 0;
	bool v4;

	if (port->ib) {
		say("mlx5_0 is %s, InfiniBand, LID 0x%x", spec, port->lid);
		return;
	}
	for (i = 0; i < TREE_GIDS; i++)
		if (port->valid[i] && port->gid[i].type == BB_GID_ROCE_V2)
			best = i;
	raw = port->gid[best].raw;
	v4 = memcmp(raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
	(void)inet_ntop(v4 ? AF_INET : AF_INET6, raw + (v4 ? 12 : 0), text, sizeof(text));
	say("mlx5_0 is %s, address %s, GID index %u (RoCE v2)", spec, text, best);
}

/*
 * Opens and closes the device @spec, to check its options, to choose an address, and to read its
 * GIDs. Completes @spec. Returns 0 or a negative errno.
 */
static int
try_device(char *spec, size_t size, bool choose, struct tree_port *port)
{
	char name[BB_DEV_NAME_MAX], args[1024];
	struct mlx5_port attr;
	struct mlx5_ctx *ctx;
	uint32_t i;
	int ret;

	ret = address_open(spec, choose, "progress=inline", name, args, sizeof(args), &ctx);
	if (ret != 0)
		return ret;
	snprintf(spec, size, "%s%s%s", name, args[0] != '\0' ? "," : "", args);
	*port = (struct tree_port){.ib = false};
	ret = ctx->cmd->port_query(ctx, 1, &attr);
	for (i = 0; ret == 0 && i < RTE_MIN(attr.gids, TREE_GIDS); i++)
		port->valid[i] = ctx->cmd->gid_query(ctx, 1, i, &port->gid[i]) == 0;
	if (ret == 0) {
		port->ib = attr.link_layer != BB_LINK_ETHERNET;
		port->lid = attr.lid;
	}
	(void)ctx->cmd->close(ctx);
	return ret;
}

/*
 * Checks the options of a device with port=, and computes its GIDs. Does not open it. Returns 0 or
 * a negative errno.
 */
static int
try_port(const char *spec, const char *given, char *vdev, size_t size, struct tree_port *port)
{
	const size_t len = strcspn(spec, ",");
	char name[BB_DEV_NAME_MAX];
	struct soft_plan plan;
	int ret;

	if (len >= sizeof(name))
		return -ENAMETOOLONG;
	snprintf(name, sizeof(name), "%.*s", (int)len, spec);
	ret = soft_plan_port(name, spec + len + 1, &plan);
	return ret != 0 ? ret : vdev_port(given, &plan, vdev, size, port);
}

/*
 * Adds @library to LD_PRELOAD, after the libraries that LD_PRELOAD already has: the library of
 * AddressSanitizer must be the first.
 */
static bool
preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char all[2 * PATH_MAX];

	if (snprintf(all, sizeof(all), "%s%s%s", old != NULL ? old : "",
		     old != NULL && *old != '\0' ? ":" : "", library) >= (int)sizeof(all)) {
		say("LD_PRELOAD is too long");
		return false;
	}
	return setenv("LD_PRELOAD", all, 1) == 0;
}

/* Sets the environment in which the library finds the device. */
static void
set_environment(const char *spec, const char *vdev, const char *root, bool choose)
{
	setenv(VERBS_ENV_DEVICE, spec, 1);
	setenv(VERBS_ENV_TREE, root, 1);
	unsetenv(VERBS_ENV_AUTO);
	unsetenv(VERBS_ENV_VDEV);
	if (choose)
		setenv(VERBS_ENV_AUTO, "1", 1);
	if (vdev[0] != '\0')
		setenv(VERBS_ENV_VDEV, vdev, 1);
}

int
main(int argc, char **argv)
{
	char spec[1100], vdev[512] = "", root[PATH_MAX], library[PATH_MAX];
	struct tree_port port;
	struct options o;
	bool choose;
	int ret = parse(argc, argv, &o);

	if (ret != 0)
		return ret > 0 ? 0 : 2;
	if (!device_of(&o, spec, 900, &choose))
		return 2;
	if (!program_may_start(o.program[0]) || !find_library(library, sizeof(library)))
		return 127;
	rte_log_set_global_level(RTE_LOG_WARNING);
	ret = o.vdev != NULL ? try_port(spec, o.vdev, vdev, sizeof(vdev), &port)
			     : try_device(spec, sizeof(spec), choose, &port);
	if (ret != 0) {
		say("%s: the device cannot be opened: %s", spec, strerror(-ret));
		return 1;
	}
	if (!o.quiet)
		report(&port, o.device);
	ret = tree_make(&port, root, sizeof(root));
	if (ret != 0) {
		say("cannot make the files that stand for /sys in TMPDIR, or /dev/shm and /tmp: %s",
		    strerror(-ret));
		return 1;
	}
	ret = tree_watch(root);
	if (ret != 0) {
		say("cannot start the process that removes %s at the end: pidfd_open(2) or fork(2): "
		    "%s; a seccomp profile of the container may reject it",
		    root, strerror(-ret));
		tree_remove(root);
		return 1;
	}
	set_environment(spec, vdev, root, choose);
	if (preload(library))
		execvp(o.program[0], o.program);
	say("%s: %s", o.program[0], strerror(errno));
	tree_remove(root);
	return 127;
}
