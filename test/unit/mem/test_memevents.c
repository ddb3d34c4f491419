/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A PD that follows the heap by EAL's memory events. EAL has events with hugepages only; without
 * hugepages the test is skipped.
 */
#include <pthread.h>

#include <rte_malloc.h>
#include <rte_memory.h>

#include "../core/core_fixture.h"

#define MIB ((size_t)1 << 20)

/* Returns the number of free hugepages of 2 MiB. */
static unsigned long
hugepages_free(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned long n = 0;

	if (f == NULL || fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f != NULL)
		fclose(f);
	return n;
}

static uint32_t
lookup(struct bb_pd *pd, const void *p, size_t len)
{
	struct bb_lkey_cache cache;

	bb_lkey_cache_init(&cache, pd);
	return bb_mem_lkey(&cache, p, len);
}

static struct bb_mem_stats
stats_of(struct bb_pd *pd)
{
	struct bb_mem_stats s;

	assert_int_equal(bb_mem_stats(pd, &s), 0);
	return s;
}

static int
sum_cb(const struct rte_memseg_list *msl, const struct rte_memseg *ms, size_t len, void *arg)
{
	*(uint64_t *)arg += len;
	return 0;
}

static uint64_t
bytes_of(const struct bb_mem_entry *e)
{
	return e == NULL ? 0 : e->end - e->start + bytes_of(e->left) + bytes_of(e->right);
}

/* Asserts that exactly EAL's mapped memory is registered. */
static void
assert_all_registered(struct bb_pd *pd)
{
	uint64_t mapped = 0;

	assert_int_equal(rte_memseg_contig_walk(sum_cb, &mapped), 0);
	assert_int_equal(bytes_of(pd->mem->root), mapped);
}

T(test_growing_heap_is_registered)
{
	void *before, *big, *bigger;
	volatile uintptr_t gone; /* volatile: GCC 14 follows plain pointers */
	uint32_t heap;

	before = rte_malloc(NULL, 1000, 0);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_true(f->pd->mem->events);
	assert_int_not_equal(lookup(f->pd, before, 1000), BB_LKEY_NONE);
	assert_all_registered(f->pd);
	heap = stats_of(f->pd).heap;

	big = rte_malloc(NULL, 20 * MIB, 0);
	assert_non_null(big);
	assert_true(stats_of(f->pd).heap > heap);
	assert_all_registered(f->pd);
	bigger = rte_malloc(NULL, 30 * MIB, 0);
	assert_non_null(bigger);
	assert_all_registered(f->pd);

	gone = (uintptr_t)big;
	rte_free(big);
	assert_all_registered(f->pd);
	assert_int_equal(lookup(f->pd, (const void *)gone, 20 * MIB), BB_LKEY_NONE);
	assert_int_not_equal(lookup(f->pd, before, 1000), BB_LKEY_NONE);
	rte_free(bigger);
	assert_all_registered(f->pd);
	assert_true(stats_of(f->pd).retired > 0);
	assert_true(bb_mem_reap(f->pd) > 0);
	assert_int_equal(stats_of(f->pd).retired, 0);
	assert_int_equal(fake.mrs, stats_of(f->pd).heap);
	rte_free(before);
}

/* Core's own rte_malloc() under dev->lock may grow the heap. */
T(test_heap_event_under_the_device_lock_does_not_deadlock)
{
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_qp *qp;
	void *fill[64];
	unsigned int n = 0, grown = 0;

	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	attr.sq_depth = 1;
	attr.rq_depth = 0;
	/* Fills the heap, then creates a QP: sometimes the QP is what maps a page. */
	while (n < RTE_DIM(fill) && grown == 0) {
		uint64_t bytes = stats_of(f->pd).bytes;

		fill[n] = rte_malloc(NULL, MIB / 2 - 256 + n * 4, 64);
		assert_non_null(fill[n]);
		n++;
		pthread_mutex_lock(&f->dev->lock);
		fill[n - 1] = rte_realloc(fill[n - 1], MIB / 2 + 4096, 64);
		pthread_mutex_unlock(&f->dev->lock);
		assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
		assert_int_not_equal(lookup(f->pd, qp, sizeof(*qp)), BB_LKEY_NONE);
		assert_int_equal(bb_qp_destroy(qp), 0);
		grown += stats_of(f->pd).bytes > bytes;
	}
	assert_int_not_equal(grown, 0);
	while (n > 0)
		rte_free(fill[--n]);
}

T(test_freed_follower_leaves_the_other_one)
{
	struct bb_pd *pd;
	void *p;

	assert_int_equal(bb_pd_alloc(f->dev, &pd), 0);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_int_equal(bb_mem_follow_heap(pd), 0);
	p = rte_malloc(NULL, 20 * MIB, 0);
	assert_non_null(p);
	assert_int_not_equal(lookup(f->pd, p, 20 * MIB), BB_LKEY_NONE);
	assert_int_not_equal(lookup(pd, p, 20 * MIB), lookup(f->pd, p, 20 * MIB));
	assert_int_equal(bb_pd_free(pd), 0);
	rte_free(p);
	p = rte_malloc(NULL, 24 * MIB, 0);
	assert_int_not_equal(lookup(f->pd, p, 24 * MIB), BB_LKEY_NONE);
	assert_all_registered(f->pd);
	rte_free(p);
}

/* A heap of external memory raises events too; rte_extmem_register() does not. */
T(test_external_heap_raises_events_too)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = aligned_alloc(2 * MIB, 4 * MIB);
	void *p;
	volatile uintptr_t gone; /* volatile: GCC 14 follows plain pointers */
	uint32_t heap;

	assert_non_null(mem);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_int_equal(rte_malloc_heap_create("bbheap"), 0);
	assert_int_equal(rte_malloc_heap_memory_add("bbheap", mem, 2 * MIB, NULL, 0, page), 0);
	p = rte_malloc_socket(NULL, 1000, 0, rte_malloc_heap_get_socket("bbheap"));
	assert_non_null(p);
	assert_int_not_equal(lookup(f->pd, p, 1000), BB_LKEY_NONE);
	/* The calls for EAL without events have no effect here. */
	heap = stats_of(f->pd).heap;
	assert_int_equal(bb_mem_add_heap(f->pd, mem, 2 * MIB), 0);
	assert_int_equal(stats_of(f->pd).heap, heap);
	gone = (uintptr_t)p;
	rte_free(p);
	assert_int_equal(bb_mem_del_heap(f->pd, mem, 2 * MIB), 0);
	assert_int_equal(lookup(f->pd, (const void *)gone, 1000), BB_LKEY_NONE);
	assert_int_equal(bb_mem_add_heap(f->pd, mem, 2 * MIB), 0);
	assert_int_equal(rte_malloc_heap_memory_remove("bbheap", mem, 2 * MIB), 0);
	assert_int_equal(lookup(f->pd, (const void *)gone, 1000), BB_LKEY_NONE);
	assert_int_equal(rte_malloc_heap_destroy("bbheap"), 0);

	assert_int_equal(rte_extmem_register(mem, 2 * MIB, NULL, 0, page), 0);
	assert_int_equal(lookup(f->pd, mem, 16), BB_LKEY_NONE);
	assert_int_equal(rte_extmem_unregister(mem, 2 * MIB), 0);
	free(mem);
}

static uint32_t stop;

static void *
churn(void *arg)
{
	for (unsigned int i = 0; i < 60; i++) {
		void *p = rte_malloc(NULL, 4 * MIB + (i % 7) * MIB, 0);

		rte_free(p);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Another thread makes the heap grow and shrink while this one looks up keys and calls the
 * control path. There is no deadlock, and memory that stays allocated keeps its key.
 */
T(test_growing_heap_and_lookups_do_not_deadlock)
{
	struct bb_lkey_cache cache;
	static char buf[4096];
	struct bb_mr *mr;
	uint32_t key;
	pthread_t t;
	void *p = rte_malloc(NULL, 100, 0);

	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	bb_lkey_cache_init(&cache, f->pd);
	key = bb_mem_lkey(&cache, p, 100);
	assert_int_not_equal(key, BB_LKEY_NONE);
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, churn, NULL), 0);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		void *q = rte_malloc(NULL, 100, 0);

		assert_int_equal(bb_mem_lkey(&cache, p, 100), key);
		assert_int_not_equal(bb_mem_lkey(&cache, q, 100), BB_LKEY_NONE);
		assert_int_equal(bb_mr_reg(f->pd, buf, sizeof(buf), 0, &mr), 0);
		assert_int_equal(bb_mr_dereg(mr), 0);
		rte_free(q);
	}
	pthread_join(t, NULL);
	assert_all_registered(f->pd);
	rte_free(p);
}

int
main(void)
{
	static char *argv[] = {(char *)(uintptr_t) "test",
			       (char *)(uintptr_t) "--in-memory",
			       (char *)(uintptr_t) "-m",
			       (char *)(uintptr_t) "4",
			       (char *)(uintptr_t) "-l",
			       (char *)(uintptr_t) "0",
			       (char *)(uintptr_t) "--no-pci",
			       (char *)(uintptr_t) "--no-telemetry",
			       (char *)(uintptr_t) "--log-level=lib.eal:error"};

	if (hugepages_free() < 64) {
		printf("SKIP: needs 64 free hugepages of 2 MiB: sysctl vm.nr_hugepages=64\n");
		return 77;
	}
	if (rte_eal_init(RTE_DIM(argv), argv) < 0) {
		fprintf(stderr, "EAL does not start\n");
		return 1;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
