/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "eal_args.h"

#define HUGEPAGES "/sys/kernel/mm/hugepages"

/* Parts of EAL's configuration. An option of EAL sets one or several of them. */
#define MEMORY 1u
#define PLAIN  2u /* memory in plain pages */
#define FILES  4u
#define PCI    8u

static const struct {
	const char *name;
	uint32_t decides;
} known[] = {
	{"-m", MEMORY},
	{"--no-huge", MEMORY | PLAIN},
	{"--socket-mem", MEMORY},
	{"--socket-limit", MEMORY},
	{"--in-memory", MEMORY | FILES},
	{"--huge-dir", MEMORY},
	{"--huge-unlink", MEMORY},
	{"--legacy-mem", MEMORY},
	{"--single-file-segments", MEMORY},
	{"--match-allocations", MEMORY},
	{"--proc-type", MEMORY | FILES}, /* a secondary process has the memory of the primary */
	{"--file-prefix", FILES},
	{"--no-shconf", FILES},
	{"-a", PCI},
	{"--allow", PCI},
	{"-b", PCI},
	{"--block", PCI},
	{"--no-pci", PCI},
};

/*
 * Returns the parts of the configuration, as a bit mask, that EAL's argument @arg decides. EAL
 * accepts abbreviated options, as getopt_long() does.
 */
static uint32_t
decides(const char *arg)
{
	size_t i, len = strncmp(arg, "--", 2) == 0 ? strcspn(arg, "=") : 2;

	if (arg[0] != '-' || strlen(arg) < 2 || (arg[1] == '-' && len < 3))
		return 0;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(known[i].name, arg, len) == 0)
			return known[i].decides;
	return 0;
}

static uint64_t
read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	uint64_t n = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

uint64_t
eal_free_hugepages(const char *dir)
{
	DIR *d = opendir(dir);
	uint64_t kb, sum = 0;
	struct dirent *e;
	char path[512];

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, "hugepages-%" SCNu64 "kB", &kb) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", dir, e->d_name);
		sum += read_number(path) * kb;
	}
	closedir(d);
	return sum / 1024;
}

uint64_t
eal_hugepages_to_reserve(const char *dir, uint32_t mb)
{
	const uint64_t free_mb = eal_free_hugepages(dir);
	char path[512];

	snprintf(path, sizeof(path), "%s/hugepages-2048kB/nr_hugepages", dir);
	return read_number(path) + (free_mb < mb ? (mb - free_mb + 1) / 2 : 0);
}

bool
eal_spec_no_pci(const char *spec)
{
	const char *port = strstr(spec, ",port=");

	return strncmp(spec, "soft", 4) == 0 &&
	       (port == NULL || strncmp(port, ",port=net_", strlen(",port=net_")) == 0);
}

int
eal_args_complete(int argc, char **argv, const struct eal_need *need, char **out, bool *plain)
{
	static char no_huge[] = "--no-huge", m[] = "-m", mb[16], in_memory[] = "--in-memory",
		    single[] = "--single-file-segments", no_shconf[] = "--no-shconf",
		    no_pci[] = "--no-pci";
	uint32_t given = 0;
	int i, n = 0;

	for (i = 0; i < argc; i++) {
		out[n++] = argv[i];
		given |= i > 0 ? decides(argv[i]) : 0;
	}
	*plain = !(given & MEMORY) && need->free_mb < need->mb;
	if (*plain) {
		snprintf(mb, sizeof(mb), "%" PRIu32, need->mb);
		out[n++] = no_huge;
		out[n++] = m;
		out[n++] = mb;
	} else if (!(given & (MEMORY | FILES))) {
		/*
		 * With shm= another process maps the files of EAL's memory. --single-file-segments
		 * makes EAL use few files.
		 */
		out[n++] = in_memory;
		out[n++] = single;
	}
	if ((*plain || (given & PLAIN)) && !(given & FILES))
		out[n++] = no_shconf;
	if (need->no_pci && !(given & PCI))
		out[n++] = no_pci;
	out[n] = NULL;
	return n;
}

int
eal_start_completed(const char *name, int argc, char **argv, uint32_t mb, bool no_pci)
{
	const struct eal_need need = {mb, eal_free_hugepages(HUGEPAGES), no_pci};
	static char **args; /* never freed, because EAL may hold pointers to them */
	bool plain;
	int n;

	args = calloc((size_t)argc + EAL_ARGS_MAX_ADDED + 1, sizeof(*args));
	if (args == NULL) {
		rte_errno = ENOMEM;
		return -1;
	}
	n = eal_args_complete(argc, argv, &need, args, &plain);
	if (plain)
		fprintf(stderr,
			"%s: %" PRIu64 " of %" PRIu32
			" MB of hugepages are free, so EAL gets plain "
			"pages (--no-huge -m %" PRIu32 "), which costs TLB misses. To reserve "
			"hugepages of 2 MB: echo %" PRIu64 " > /proc/sys/vm/nr_hugepages\n",
			name, need.free_mb, mb, mb, eal_hugepages_to_reserve(HUGEPAGES, mb));
	n = rte_eal_init(n, args);
	/* The line above reports the missing hugepages, so the library need not log them too. */
	if (n >= 0 && plain)
		rte_log_set_level_pattern("bluebell.hugepages", RTE_LOG_WARNING);
	return n;
}
