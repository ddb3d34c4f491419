/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Adds the arguments of EAL that the user left out: hugepages if enough are free, otherwise plain
 * pages. So a program runs on every machine without any option of EAL.
 */
#ifndef EAL_ARGS_H
#define EAL_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define EAL_ARGS_MAX_ADDED 5

/* Memory of EAL that a program needs, and hugepages of this machine. */
struct eal_need {
	uint32_t mb;      /* MB of memory */
	uint64_t free_mb; /* MB of free hugepages of all sizes; see eal_free_hugepages() */
	bool no_pci;      /* true if the program uses no PCI device through EAL */
};

/*
 * Returns the MB of free hugepages. @dir is /sys/kernel/mm/hugepages; tests pass a folder of their
 * own.
 */
uint64_t eal_free_hugepages(const char *dir);

/*
 * Returns the number for /proc/sys/vm/nr_hugepages with which @mb MB are free: the hugepages of 2
 * MB that @dir has, used ones too, and those that are missing.
 */
uint64_t eal_hugepages_to_reserve(const char *dir, uint32_t mb);

/*
 * Returns true if the device @spec uses no PCI device of EAL: a software device without port=, or
 * with a virtual port (port=net_...).
 */
bool eal_spec_no_pci(const char *spec);

/*
 * Copies the @argc arguments of EAL in @argv to @out, and adds:
 *
 * - without an option for memory (-m, --no-huge, --socket-mem, --in-memory, ...): --no-huge -m MB
 *   if fewer than need->mb MB of hugepages are free, otherwise --in-memory, which needs no rights
 *   on files in /dev/hugepages;
 * - with plain pages and without an option for EAL's files (--file-prefix, --no-shconf, ...):
 *   --no-shconf, so that several programs can run at the same time;
 * - with need->no_pci and without an option for PCI (-a, -b, --no-pci): --no-pci.
 *
 * @param out array of @argc + EAL_ARGS_MAX_ADDED + 1 pointers; NULL follows the last argument
 * @param plain set to true if --no-huge was added
 * @return number of arguments in @out
 */
int eal_args_complete(int argc, char **argv, const struct eal_need *need, char **out, bool *plain);

/*
 * Starts EAL with the @argc arguments in @argv, completed for @mb MB of memory. If the added
 * arguments give EAL plain pages, prints a line on stderr that begins with @name. Returns the
 * result of rte_eal_init().
 */
int eal_start_completed(const char *name, int argc, char **argv, uint32_t mb, bool no_pci);

#endif
