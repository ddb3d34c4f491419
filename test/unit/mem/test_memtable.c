/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The address table against a map of pages, and against a concurrent reader. */
#include "../core/core_fixture.h"

#define BASE    0x7f0000000000ull
#define PAGES   128u
#define PAGE    4096ull
#define MAX_MRS 12
#define STEPS   6000

#define P(addr) ((void *)(uintptr_t)(addr))

static struct bare_pd b;

static uint64_t rng;

static uint32_t
rnd(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 33) % n;
}

/* The reference: the key of each page, and a list of explicit registrations. */
static uint32_t heap_key[PAGES]; /* 0: not heap */
static struct bb_mr *mrs[MAX_MRS];

static void
model_alloc(uint32_t first, uint32_t n)
{
	uint32_t old_key = fake.next_key, i;

	bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_ALLOC, P(BASE + first * PAGE), n * PAGE);
	for (i = first; i < first + n; i++) {
		const struct fake_mr *mr;

		if (heap_key[i] != 0)
			continue;
		/* Exactly one of the registrations that the event made covers the page. */
		for (mr = fake.mr_list; mr != NULL; mr = mr->next) {
			if (mr->pub.lkey < old_key || mr->start > BASE + i * PAGE ||
			    mr->end <= BASE + i * PAGE)
				continue;
			assert_int_equal(heap_key[i], 0);
			heap_key[i] = mr->pub.lkey;
		}
		assert_int_not_equal(heap_key[i], 0);
	}
}

static void
model_free(uint32_t first, uint32_t n)
{
	bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_FREE, P(BASE + first * PAGE), n * PAGE);
	for (uint32_t i = first; i < first + n; i++)
		heap_key[i] = 0;
}

static void
model_explicit(uint32_t slot)
{
	uint32_t len, access;
	uint64_t start;

	if (mrs[slot] != NULL) {
		assert_int_equal(bb_mr_dereg(mrs[slot]), 0);
		mrs[slot] = NULL;
		return;
	}
	start = BASE + rnd(PAGES) * PAGE + rnd(PAGE);
	len = 1 + rnd(rnd(2) ? 600 : 60000);
	access = rnd(3) ? BB_ACCESS_LOCAL_WRITE : BB_ACCESS_REMOTE_READ;
	assert_int_equal(bb_mr_reg(&b.pd, P(start), len, access, &mrs[slot]), 0);
}

/* Returns whether @key is a right answer for the range, by the reference only. */
static bool
model_right(uint64_t addr, uint64_t len, uint32_t key)
{
	bool writable = false, readable = false, key_writable = false, key_readable = false;

	if (addr >= BASE && addr < BASE + PAGES * PAGE && len <= BASE + PAGES * PAGE - addr) {
		uint32_t k = heap_key[(addr - BASE) / PAGE];

		for (uint64_t a = addr; a < addr + len; a = (a / PAGE + 1) * PAGE)
			if (heap_key[(a - BASE) / PAGE] != k)
				k = 0;
		if (k != 0) {
			writable = true;
			key_writable |= key == k;
		}
	}
	for (uint32_t i = 0; i < MAX_MRS; i++) {
		uint64_t start, end;

		if (mrs[i] == NULL)
			continue;
		start = (uintptr_t)mrs[i]->addr;
		end = start + mrs[i]->len;
		if (addr < start || addr >= end || len > end - addr)
			continue;
		if (mrs[i]->access & BB_ACCESS_LOCAL_WRITE) {
			writable = true;
			key_writable |= key == mrs[i]->lkey;
		} else {
			readable = true;
			key_readable |= key == mrs[i]->lkey;
		}
	}
	if (writable)
		return key_writable;
	return readable ? key_readable : key == BB_LKEY_NONE;
}

/* Asserts that the counters and the driver's list agree with the reference. */
static void
model_counts(void)
{
	struct bb_mem_stats s;
	uint64_t bytes = 0;
	uint32_t i, live = 0, explicit_mrs = 0;
	const struct fake_mr *mr;

	for (i = 0; i < MAX_MRS; i++) {
		explicit_mrs += mrs[i] != NULL;
		bytes += mrs[i] != NULL ? mrs[i]->len : 0;
	}
	for (mr = fake.mr_list; mr != NULL; mr = mr->next) {
		bool used = false;

		for (i = 0; i < PAGES; i++)
			used |= heap_key[i] == mr->pub.lkey;
		live += used;
		bytes += used ? mr->end - mr->start : 0;
	}
	assert_int_equal(bb_mem_stats(&b.pd, &s), 0);
	assert_fields(s, mrs, explicit_mrs, heap, live, bytes, bytes);
	assert_int_equal(s.mrs + s.heap + s.retired, fake.mrs);
}

static void
model_run(uint64_t seed)
{
	struct bb_lkey_cache cache;

	rng = seed;
	bare_pd_init(&b);
	memset(heap_key, 0, sizeof(heap_key));
	bb_lkey_cache_init(&cache, &b.pd);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t first = rnd(PAGES), n = 1 + rnd(rnd(4) ? 6 : PAGES);

		n = RTE_MIN(n, PAGES - first);
		switch (rnd(8)) {
		case 0:
		case 1:
		case 2:
			model_alloc(first, n);
			break;
		case 3:
		case 4:
		case 5:
			model_free(first, n);
			break;
		case 6:
			model_explicit(rnd(MAX_MRS));
			break;
		case 7:
			assert_true(bb_mem_reap(&b.pd) >= 0);
			assert_int_equal(b.pd.mem->stats.retired, 0);
			break;
		}
		model_counts();
		for (uint32_t i = 0; i < 20; i++) {
			uint64_t addr = BASE - 100 + rnd((uint32_t)(PAGES * PAGE) + 200);
			uint64_t len = rnd(2) ? rnd(64) : rnd(40000);
			uint32_t key = bb_mem_lkey(&cache, P(addr), len);

			if (!model_right(addr, len, key)) {
				print_error("seed %llu step %u: 0x%llx+%llu gives 0x%x\n",
					    (unsigned long long)seed, step,
					    (unsigned long long)addr, (unsigned long long)len, key);
				fail();
			}
			if (key != BB_LKEY_NONE)
				assert_non_null(fake_mr_of(key));
		}
	}
	for (uint32_t i = 0; i < MAX_MRS; i++)
		if (mrs[i] != NULL)
			model_explicit(i);
	bare_pd_fini(&b);
}

TEST(test_table_equals_a_plain_model)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		model_run(seed);
}

/* More entries than the first arrays hold; each is found, in any order. */
TEST(test_table_grows_past_its_first_arrays)
{
	const uint32_t n = 5000;
	struct bb_lkey_cache cache;
	struct bb_mr **many = calloc(n, sizeof(struct bb_mr *));
	uint32_t j;

	assert_non_null(many);
	bare_pd_init(&b);
	bb_lkey_cache_init(&cache, &b.pd);
	for (uint32_t i = 0; i < n; i++) {
		j = i * 2053 % n; /* 2053 and 5000 are coprime: visits each entry once,
				   * scattered */
		assert_int_equal(
			bb_mr_reg(&b.pd, P(BASE + j * PAGE), PAGE, BB_ACCESS_LOCAL_WRITE, &many[j]),
			0);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(bb_mem_lkey(&cache, P(BASE + i * PAGE), PAGE), many[i]->lkey);
	for (uint32_t i = 0; i < n; i += 2) {
		assert_int_equal(bb_mr_dereg(many[i]), 0);
		many[i] = NULL;
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(bb_mem_lkey(&cache, P(BASE + i * PAGE + 7), 8),
				 many[i] != NULL ? many[i]->lkey : BB_LKEY_NONE);
	for (uint32_t i = 1; i < n; i += 2)
		assert_int_equal(bb_mr_dereg(many[i]), 0);
	bare_pd_fini(&b);
	free(many);
}

/*
 * A writer maps and unmaps chunks, pages of chunks and explicit registrations while a reader
 * looks up. A key encodes its chunk, so the reader can judge it alone: a stable chunk always has
 * its key, a moving chunk has its own key or none.
 */
#define CHUNK_PAGES 16u
#define CHUNKS      200u /* outgrows the first arrays while the reader runs */
#define CHUNK       (CHUNK_PAGES * PAGE)

static uint32_t writer_done;

static void *
writer(void *arg)
{
	for (uint32_t i = 0; i < 20000; i++) {
		/* Even chunks are stable; this picks an odd one. */
		uint64_t chunk = BASE + (rnd(CHUNKS / 2) * 2 + 1) * CHUNK;
		uint32_t page = rnd(CHUNK_PAGES);

		switch (rnd(4)) {
		case 0:
			bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_FREE, P(chunk), CHUNK);
			bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_ALLOC, P(chunk), CHUNK);
			break;
		case 1:
			bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_FREE, P(chunk), CHUNK);
			break;
		case 2:
			bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_FREE, P(chunk + page * PAGE),
					  PAGE);
			break;
		case 3:
			(void)bb_mem_reap(&b.pd);
			break;
		}
	}
	__atomic_store_n(&writer_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static uint32_t
key_of_chunk(uint32_t chunk)
{
	return (uint32_t)((BASE + chunk * CHUNK) >> 12);
}

TEST(test_reader_beside_a_writer_finds_stable_chunks)
{
	struct bb_lkey_cache cache;
	uint64_t found = 0, none = 0, wrong = 0, lost = 0, r = 1;
	pthread_t t;

	rng = 42;
	bare_pd_init(&b);
	fake.key_is_page = true;
	writer_done = 0;
	bb_lkey_cache_init(&cache, &b.pd);
	/* A few stable chunks first; the table must outgrow its array while the reader runs. */
	for (uint32_t i = 0; i < CHUNKS; i += 2)
		if (i < 40)
			bb_mem_heap_event(b.pd.mem, RTE_MEM_EVENT_ALLOC, P(BASE + i * CHUNK),
					  CHUNK);
	assert_int_equal(pthread_create(&t, NULL, writer, NULL), 0);
	/* The writer may finish before this thread gets its CPU back. */
	for (uint32_t i = 0; i < 1000 || !__atomic_load_n(&writer_done, __ATOMIC_ACQUIRE); i++) {
		uint32_t chunk, key;

		r = r * 6364136223846793005ull + 1442695040888963407ull;
		chunk = (uint32_t)(r >> 33) % CHUNKS;
		key = bb_mem_lkey(&cache, P(BASE + chunk * CHUNK + (r >> 20) % (CHUNK - 64)), 64);
		if (key == key_of_chunk(chunk))
			found++;
		else if (key != BB_LKEY_NONE)
			wrong++;
		else if (chunk < 40 && chunk % 2 == 0)
			lost++;
		else
			none++;
	}
	pthread_join(t, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(lost, 0);
	assert_true(found > 0);
	assert_true(none > 0);
	assert_non_null(b.pd.mem->blocks->next);
	bare_pd_fini(&b);
}

TEST_MAIN(0)
