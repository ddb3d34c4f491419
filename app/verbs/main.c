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
#include <sys/stat.h>
#include <unistd.h>

#include <rte_log.h>

#include "address.h"
#include "preload.h"
#include "tree.h"

#define DEFAULT_DEVICE "soft0,shm=verbs"
#define NAP            ",nap=2000"

struct options {
	const char *device, *address, *host;
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
	      "                    the network, in the shared memory of this host\n"
	      "  --address IP      address of the process, IP[/BITS], default auto: a free address of\n"
	      "                    " ADDRESS_NET ".0.0/16\n"
	      "  --host NAME       all processes that are started with this name and network share one\n"
	      "                    address, as the processes of a host do: each has QP numbers of its own,\n"
	      "                    and ports of rdma_cm are those of the host. Without --address, the\n"
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
	      "The first line of the output names the GID index for the program: -x of perftest, -g of\n"
	      "the ibv_*_pingpong programs. BB_VERBS_TRACE=1 in the environment lists the calls that\n"
	      "the kernel would get.\n",
	      out);
}

/* Parses the command line. Returns 0 to continue, 1 if all is done, -1 on an error. */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"device", required_argument, NULL, 'd'}, {"address", required_argument, NULL, 'a'},
		{"host", required_argument, NULL, 'H'},   {"link", required_argument, NULL, 'l'},
		{"quiet", no_argument, NULL, 'q'},        {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},      {NULL, 0, NULL, 0}};
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

/*
 * Appends the options for the address and the link layer to the device's name. If they are invalid,
 * prints the cause and returns false.
 */
static bool
device_of(const struct options *o, char *spec, size_t size, bool *choose)
{
	const bool shm = strstr(o->device, ",shm=") != NULL;
	const char *ip = strcmp(o->address, "auto") == 0 ? "" : o->address;
	const bool host = o->host != NULL;
	char own[32];
	int n;

	if (strstr(o->device, ",port=") != NULL) {
		say("--device %s: port= is not supported yet: give shm=NAME", o->device);
		return false;
	}
	if (host && (o->host[0] == '\0' || strstr(o->device, ",host=") != NULL)) {
		say("--host needs a name, and excludes host= in --device");
		return false;
	}
	if (strstr(o->device, ",ip=") != NULL || strstr(o->device, ",progress=") != NULL) {
		say("--device %s: leave out ip= and progress=: --address sets the address, and a "
		    "thread always runs the device",
		    o->device);
		return false;
	}
	if ((ip[0] != '\0' || host) && !shm) {
		say("%s needs a network: --device soft0,shm=NAME", host ? "--host" : "--address");
		return false;
	}
	if (host && ip[0] == '\0') {
		const unsigned int number = host_number(o->host);

		snprintf(own, sizeof(own), ADDRESS_NET ".%u.%u/%d", number >> 8, number & 255,
			 ADDRESS_BITS);
		ip = own;
	}
	*choose = shm && ip[0] == '\0';
	n = snprintf(spec, size, "%s%s%s%s%s%s%s%s", o->device, host ? ",host=" : "",
		     host ? o->host : "", o->ib ? ",link=ib" : "",
		     strstr(o->device, ",nap=") == NULL ? NAP : "", ip[0] != '\0' ? ",ip=" : "", ip,
		     ip[0] != '\0' && strchr(ip, '/') == NULL ? "/24" : "");
	if (n >= 0 && (size_t)n < size)
		return true;
	say("--device is too long (at most %zu bytes)", size - 1);
	return false;
}

/* ---- The program to start */

/* Returns the file that execvp() would run, NULL if there is none. */
static const char *
find_program(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");
	size_t len;

	if (strchr(name, '/') != NULL)
		return name;
	for (at = at != NULL ? at : "/usr/bin:/bin"; *at != '\0'; at += len + (at[len] == ':')) {
		len = strcspn(at, ":");
		if (snprintf(path, size, "%.*s/%s", (int)len, at, name) < (int)size &&
		    access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

/*
 * Returns true if @name is a program that can be started. Rejects setuid and setgid programs, for
 * which the dynamic linker ignores LD_PRELOAD.
 */
static bool
may_start(const char *name)
{
	char path[PATH_MAX];
	const char *file = find_program(name, path, sizeof(path));
	struct stat st;

	if (file == NULL || stat(file, &st) != 0 || access(file, X_OK) != 0) {
		say("%s: %s", name, file == NULL ? "not found in PATH" : strerror(errno));
		return false;
	}
	if ((st.st_mode & (S_ISUID | S_ISGID)) == 0)
		return true;
	say("%s is setuid or setgid, so it would not load the device's library: start a copy "
	    "without that right",
	    file);
	return false;
}

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
report(struct mlx5_ctx *ctx, const char *spec)
{
	char text[INET6_ADDRSTRLEN];
	struct mlx5_port port;
	struct bb_gid gid;
	uint32_t i, best = 0;

	if (ctx->cmd->port_query(ctx, 1, &port) != 0)
		return;
	if (port.link_layer != BB_LINK_ETHERNET) {
		say("mlx5_0 is %s, InfiniBand, LID 0x%x", spec, port.lid);
		return;
	}
	for (i = 0; i < port.gids; i++)
		if (ctx->cmd->gid_query(ctx, 1, i, &gid) == 0 && gid.type == BB_GID_ROCE_V2)
			best = i;
	if (ctx->cmd->gid_query(ctx, 1, best, &gid) != 0)
		return;
	if (memcmp(gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0)
		(void)inet_ntop(AF_INET, gid.raw + 12, text, sizeof(text));
	else
		(void)inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	say("mlx5_0 is %s, address %s, GID index %u (RoCE v2)", spec, text, best);
}

/* Sets LD_PRELOAD to @library, followed by the libraries that LD_PRELOAD already has. */
static bool
preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char all[2 * PATH_MAX];

	if (snprintf(all, sizeof(all), "%s%s%s", library, old != NULL && *old != '\0' ? ":" : "",
		     old != NULL ? old : "") >= (int)sizeof(all)) {
		say("LD_PRELOAD is too long");
		return false;
	}
	return setenv("LD_PRELOAD", all, 1) == 0;
}

int
main(int argc, char **argv)
{
	char spec[1100], name[BB_DEV_NAME_MAX], args[1024], root[PATH_MAX], library[PATH_MAX];
	struct mlx5_ctx *ctx;
	struct options o;
	bool choose;
	int ret = parse(argc, argv, &o);

	if (ret != 0)
		return ret > 0 ? 0 : 2;
	if (!device_of(&o, spec, 900, &choose))
		return 2;
	if (!may_start(o.program[0]) || !find_library(library, sizeof(library)))
		return 127;
	rte_log_set_global_level(RTE_LOG_WARNING);
	ret = address_open(spec, choose, "progress=inline", name, args, sizeof(args), &ctx);
	if (ret != 0) {
		say("%s: the device cannot be opened: %s", spec, strerror(-ret));
		return 1;
	}
	snprintf(spec, sizeof(spec), "%s%s%s", name, args[0] != '\0' ? "," : "", args);
	if (!o.quiet)
		report(ctx, o.device);
	ret = tree_make(ctx, root, sizeof(root));
	(void)ctx->cmd->close(ctx);
	if (ret == 0) {
		ret = tree_watch(root);
		if (ret != 0)
			tree_remove(root);
	}
	if (ret != 0) {
		say("cannot make the files that stand for /sys in TMPDIR or /tmp: %s",
		    strerror(-ret));
		return 1;
	}
	setenv(VERBS_ENV_DEVICE, spec, 1);
	setenv(VERBS_ENV_TREE, root, 1);
	if (choose)
		setenv(VERBS_ENV_AUTO, "1", 1);
	else
		unsetenv(VERBS_ENV_AUTO);
	if (preload(library))
		execvp(o.program[0], o.program);
	say("%s: %s", o.program[0], strerror(errno));
	tree_remove(root);
	return 127;
}
