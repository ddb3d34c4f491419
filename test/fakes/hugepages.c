/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * EAL memory on hugepages of 2 MiB, on a machine without any. Replaces by -Wl,--wrap=NAME what the
 * driver asks EAL about the memory, and what the software device reads from /proc/self/smaps.
 */
#include <stdint.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include "soft_ctl.h"

#define HUGEPAGE (UINT64_C(2) << 20)

struct rte_memseg_list *__real_rte_mem_virt2memseg_list(const void *addr);
struct rte_memseg_list *__wrap_rte_mem_virt2memseg_list(const void *addr);
int __wrap_rte_eal_has_hugepages(void);
int __wrap_soft_maps_page(const void *addr, size_t len, uint64_t *page);

struct rte_memseg_list *
__wrap_rte_mem_virt2memseg_list(const void *addr)
{
	struct rte_memseg_list *real = __real_rte_mem_virt2memseg_list(addr);
	static struct rte_memseg_list list;

	if (real == NULL)
		return NULL;
	list = *real;
	list.page_sz = HUGEPAGE;
	return &list;
}

int
__wrap_rte_eal_has_hugepages(void)
{
	return 1;
}

int
__wrap_soft_maps_page(const void *addr, size_t len, uint64_t *page)
{
	(void)addr;
	(void)len;
	*page = HUGEPAGE;
	return 0;
}
