/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Register pages in shared memory (front_share_doorbells()). The guest stores to them without a
 * call of the front, any value at any time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "front_guest.h"

#define T(name)                                                                                    \
	TEST_ON(NULL, NULL, struct g_guest, open_shared(f, "soft0,link=ib"), close_shared(f), name)

#define FILE_BYTES ((size_t)FRONT_UAR_END * PAGE)
#define SHARED     ((size_t)(FRONT_UAR_END - FRONT_UAR_SHARED) * PAGE)
#define ROUNDS     2000

static void
open_shared(struct g_guest *g, const char *device)
{
	int fd;

	g_open(g, device);
	fd = front_share_doorbells(g->f);
	assert_true(fd >= 0);
	g->shared = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(g->shared, MAP_FAILED);
}

static void
close_shared(struct g_guest *g)
{
	g_close(g);
	OK(munmap(g->shared, FILE_BYTES));
}

static void
store(struct g_guest *g, uint32_t uar, uint32_t off, uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)(g->shared + (size_t)uar * PAGE + off), value,
			 __ATOMIC_RELAXED);
}

/* Writes new data, and checks that it arrives. */
static void
check_write(struct g_guest *g, struct g_owner *u)
{
	static uint8_t seed;
	const uint8_t *e;
	uint32_t i;

	seed++;
	for (i = 0; i < G_BYTES; i++)
		*g_at(g, &u->from, G_VA_FROM % PAGE + i) = (uint8_t)(seed + i * 7);
	g_post_write(g, u);
	e = g_cqe(g, &u->cq);
	assert_int_equal(e[63] >> 4, 0);
	assert_int_equal(bb_prm_dword(e, 56) & 0xffffff, u->qp.qpn);
	for (i = 0; i < G_BYTES; i++)
		assert_int_equal(*g_at(g, &u->to, G_VA_TO % PAGE + i), (uint8_t)(seed + i * 7));
}

/* Returns the next of a sequence of values that differ in all bits. */
static uint64_t
next_value(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state ^ *state >> 29;
}

/* Fills a page with values, none of which is 0. */
static void
fill(struct g_guest *g, uint32_t uar, uint64_t *state)
{
	uint32_t off;

	for (off = 0; off < PAGE; off += 8)
		store(g, uar, off, next_value(state) | 1);
}

T(test_store_to_a_shared_page_runs_the_queue_without_a_call)
{
	static const uint32_t bells[] = {0x800, 0x900, 0xa00, 0xb00};
	struct g_owner u;
	size_t i;

	g_owner_open(f, &u);
	assert_true(u.uar >= FRONT_UAR_SHARED && u.uar < FRONT_UAR_END);
	for (i = 0; i < sizeof(bells) / sizeof(bells[0]); i++) {
		f->bell = bells[i];
		assert_int_equal(front_shared_stores(f->f), i);
		check_write(f, &u);
	}
	g_owner_close(f, &u);
}

T(test_nothing_runs_without_the_store)
{
	struct g_owner u;
	uint8_t *pages = f->shared;
	uint32_t i;

	g_owner_open(f, &u);
	f->shared = calloc(1, FILE_BYTES); /* g_ring() stores to other memory */
	assert_non_null(f->shared);
	g_post_write(f, &u);
	for (i = 0; i < ROUNDS; i++)
		(void)front_poll(f->f);
	assert_int_equal(*(g_at(f, &u.cq.ring, u.cq.offset) + 63) >> 4, 0xf);
	free(f->shared);
	f->shared = pages;
	g_owner_close(f, &u);
}

T(test_kernel_keeps_pages_that_are_not_shared)
{
	struct g_guest *g = f;
	uint32_t i, uar[200];
	uint64_t state = 1;

	for (i = 0; i < 200; i++) {
		uar[i] = g_alloc(g, BB_PRM_OP_ALLOC_UAR, 0);
		assert_true(uar[i] >= FRONT_UAR_FIRST && uar[i] < FRONT_UAR_SHARED);
		fill(g, uar[i], &state);
	}
	(void)front_poll(g->f);
	assert_int_equal(front_shared_stores(g->f), 0);
	for (i = 0; i < 200; i++)
		assert_int_equal(run_on(g, BB_PRM_OP_DEALLOC_UAR, 0, uar[i]), BB_PRM_STAT_OK);
}

/* Returns the number of mappings of doorbell files. */
static uint32_t
mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	uint32_t n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "bluebell-doorbells") != NULL;
	fclose(maps);
	return n;
}

/* A process may have 65,530 mappings (vm.max_map_count), for all its functions. */
T(test_pages_of_users_run_out_and_leave_the_kernel_its_own)
{
	const uint16_t uid = g_user(f);
	uint32_t n = 0, before = mappings();

	do {
		box(f, BB_PRM_OP_ALLOC_UAR, uid, 16);
	} while (run(f) == BB_PRM_STAT_OK && ++n <= FRONT_UAR_END);
	assert_int_equal(n, FRONT_UAR_END - FRONT_UAR_SHARED);
	assert_int_equal(mappings(), before);
	assert_true(g_alloc(f, BB_PRM_OP_ALLOC_UAR, 0) < FRONT_UAR_SHARED);
	front_reset(f->f);
}

T(test_store_to_the_arm_register_of_a_shared_page_arms_the_cq)
{
	struct g_owner u;
	uint8_t bell[8];
	uint64_t word;

	g_owner_open(f, &u);
	bb_put32(bell, u.cq.ci & 0xffffff);
	bb_put32(bell + 4, u.cq.cqn);
	memcpy(g_ram(f, u.cq.dbr) + 4, bell, 4);
	memcpy(&word, bell, sizeof(word));
	store(f, u.uar, 0x20, word);
	(void)front_poll(f->f);
	check_write(f, &u);
	(void)front_poll(f->f);
	assert_int_equal(f->comps, 1);
	assert_int_equal(f->comp_cqn, u.cq.cqn);
	g_owner_close(f, &u);
}

/* As ib_send_bw -e: the first requests of two CQs, both of the value 0. */
T(test_first_arm_request_that_another_hides_is_found)
{
	struct g_cq other = {0};
	struct g_owner u;
	uint8_t bell[8] = {0};
	uint64_t word;

	g_owner_open(f, &u);
	g_cq(f, &other, u.uid, u.uar);
	memset(g_ram(f, u.cq.dbr) + 4, 0, 4);
	memset(g_ram(f, other.dbr) + 4, 0, 4);
	bb_put32(bell + 4, u.cq.cqn);
	memcpy(&word, bell, sizeof(word));
	store(f, u.uar, 0x20, word);
	bb_put32(bell + 4, other.cqn);
	memcpy(&word, bell, sizeof(word));
	store(f, u.uar, 0x20, word);
	(void)front_poll(f->f);
	(void)front_poll(f->f);
	check_write(f, &u);
	(void)front_poll(f->f);
	assert_int_equal(f->comps, 1);
	assert_int_equal(f->comp_cqn, u.cq.cqn);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_CQ, u.uid, other.cqn), BB_PRM_STAT_OK);
	g_owner_close(f, &u);
}

T(test_any_values_in_the_own_page_execute_only_what_was_posted)
{
	struct g_owner u, other;
	uint64_t state = 2;
	uint32_t i;

	g_owner_open(f, &u);
	g_owner_open(f, &other);
	for (i = 0; i < ROUNDS; i++) {
		fill(f, u.uar, &state);
		/* A doorbell that names a queue of another page. */
		store(f, u.uar, 0x800,
		      (uint64_t)__builtin_bswap32(other.qp.qpn << 8 | 3) << 32 | 1);
		(void)front_poll(f->f);
	}
	assert_int_equal(*(g_at(f, &u.cq.ring, u.cq.offset) + 63) >> 4, 0xf);
	assert_int_equal(*(g_at(f, &other.cq.ring, other.cq.offset) + 63) >> 4, 0xf);
	check_write(f, &u);
	check_write(f, &other);
	assert_int_equal(f->fatals, 0);
	g_owner_close(f, &other);
	g_owner_close(f, &u);
}

T(test_new_user_does_not_see_stores_to_a_free_page)
{
	struct g_owner u;
	uint64_t state = 3, stores;
	uint32_t i;

	g_owner_open(f, &u);
	check_write(f, &u);
	g_owner_close(f, &u);
	stores = front_shared_stores(f->f);
	for (i = FRONT_UAR_SHARED; i < FRONT_UAR_END; i++)
		fill(f, i, &state);
	(void)front_poll(f->f);
	g_owner_open(f, &u);
	(void)front_poll(f->f);
	assert_int_equal(front_shared_stores(f->f), stores);
	assert_int_equal(f->events, 0);
	check_write(f, &u);
	g_owner_close(f, &u);
}

T(test_pages_of_another_function_are_another_file)
{
	static const struct g_path path = {.lid = 2}; /* of soft1 */
	static struct g_guest second;
	struct g_owner u, v;
	uint64_t state = 4;

	open_shared(&second, "soft1,link=ib");
	second.path = &path;
	g_owner_open(f, &u);
	g_owner_open(&second, &v);
	fill(f, u.uar, &state);
	fill(f, v.uar, &state);
	(void)front_poll(second.f);
	assert_int_equal(front_shared_stores(second.f), 0);
	(void)front_poll(f->f);
	check_write(&second, &v);
	check_write(f, &u);
	g_owner_close(&second, &v);
	g_owner_close(f, &u);
	close_shared(&second);
}

/* As for the next guest, while the monitor of the last one still has its file. */
T(test_new_file_has_nothing_of_the_last_one)
{
	uint8_t *last = f->shared;
	struct g_owner u;
	uint64_t state = 6;
	uint32_t i;
	int fd;

	g_owner_open(f, &u);
	check_write(f, &u);
	front_reset(f->f);
	fd = front_share_doorbells(f->f);
	assert_true(fd >= 0);
	f->shared = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(f->shared, MAP_FAILED);
	g_owner_open(f, &u);
	memset(last, 0, FILE_BYTES);
	check_write(f, &u);
	g_post_write(f, &u); /* the store stays in the page, because nothing polls it */
	for (i = 0; i < FILE_BYTES; i++)
		if (last[i] != 0)
			fail_msg("byte 0x%x of the last file", i);
	(void)g_cqe(f, &u.cq);
	for (i = FRONT_UAR_SHARED; i < FRONT_UAR_END; i++) {
		uint8_t *pages = f->shared;

		f->shared = last;
		fill(f, i, &state);
		f->shared = pages;
	}
	(void)front_poll(f->f);
	check_write(f, &u);
	g_owner_close(f, &u);
	OK(munmap(last, FILE_BYTES));
}

T(test_file_cannot_be_resized)
{
	char path[64];
	int fd = front_share_doorbells(f->f); /* replaces the first file */

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(truncate(path, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, (off_t)FILE_BYTES + PAGE), -1);
	assert_int_equal(errno, EPERM);
}

T(test_file_stays_while_a_page_is_allocated)
{
	struct g_owner u;

	g_owner_open(f, &u);
	assert_int_equal(front_share_doorbells(f->f), -EBUSY);
	check_write(f, &u);
	g_owner_close(f, &u);
}

struct hammer {
	struct g_guest *g;
	uint32_t uar;
	bool stop;
};

/* Stores values to all registers of a page until stop is set. */
static void *
hammer(void *arg)
{
	struct hammer *h = arg;
	uint64_t state = 5;

	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED))
		fill(h->g, h->uar, &state);
	return NULL;
}

T(test_stores_during_polls_lose_no_request)
{
	struct hammer h = {.g = f};
	struct g_owner u;
	pthread_t t;
	uint32_t i;

	g_owner_open(f, &u);
	h.uar = u.uar;
	OK(pthread_create(&t, NULL, hammer, &h));
	for (i = 0; i < 50; i++)
		check_write(f, &u);
	__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
	OK(pthread_join(t, NULL));
	g_owner_close(f, &u);
}

struct ringer {
	struct g_guest *g;
	uint32_t qpn, cqn; /* of the present owner */
	bool stop;
};

#define REUSED (FRONT_UAR_SHARED + 100) /* page of each owner */

/* Rings doorbells of the present owner's queues in REUSED and its neighbours until stop is set. */
static void *
ring_pages(void *arg)
{
	struct ringer *r = arg;
	uint32_t uar, reg, n = 0;
	uint64_t qp, cq;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		uar = REUSED - 1 + n++ % 3;
		qp = __builtin_bswap32(__atomic_load_n(&r->qpn, __ATOMIC_RELAXED) << 8 | 3);
		cq = __builtin_bswap32(__atomic_load_n(&r->cqn, __ATOMIC_RELAXED));
		for (reg = 0x800; reg < 0xc00; reg += 0x100)
			store(r->g, uar, reg, qp << 32 | __builtin_bswap32((n & 0xffff) << 8));
		store(r->g, uar, 0x20, cq << 32 | __builtin_bswap32(n));
	}
	return NULL;
}

/* The device gives numbers in turn. Allocates and frees pages until REUSED is next. */
static void
pass_other_pages(struct g_guest *g)
{
	const uint16_t uid = g_user(g);
	uint32_t uar;

	do {
		uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, uid);
		assert_int_equal(run_on(g, BB_PRM_OP_DEALLOC_UAR, uid, uar), BB_PRM_STAT_OK);
	} while (uar != REUSED - 1);
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_UCTX, 0, uid), BB_PRM_STAT_OK);
}

/*
 * The program of the last owner still has the page mapped. The next owner gets the same page, and
 * the same memory for its queues.
 */
T(test_freed_pages_that_are_rung_reach_no_queue_of_the_next_owner)
{
	const uint32_t first = f->next;
	struct ringer r = {.g = f};
	uint8_t *to, kept[64];
	struct g_owner u;
	uint32_t i, j;
	pthread_t t;

	OK(pthread_create(&t, NULL, ring_pages, &r));
	for (i = 0; i < 10; i++) {
		f->next = first;
		memset(g_ram(f, 0), 0, (RAM_PAGES - first) * PAGE);
		pass_other_pages(f);
		g_owner_open(f, &u);
		assert_int_equal(u.uar, REUSED);
		__atomic_store_n(&r.qpn, u.qp.qpn, __ATOMIC_RELAXED);
		__atomic_store_n(&r.cqn, u.cq.cqn, __ATOMIC_RELAXED);
		for (j = 0; j < 20; j++)
			(void)front_poll(f->f);
		assert_int_equal(*(g_at(f, &u.cq.ring, u.cq.offset) + 63) >> 4, 0xf);
		check_write(f, &u);
		g_post_write(f, &u);
		if (i % 2 == 0)
			front_reset(f->f);
		else
			g_owner_close(f, &u);
		/* The WQE that was posted last is not executed any more. */
		to = g_at(f, &u.to, G_VA_TO % PAGE);
		memset(to, 0xee, sizeof(kept));
		memset(kept, 0xee, sizeof(kept));
		for (j = 0; j < 20; j++)
			(void)front_poll(f->f);
		assert_memory_equal(to, kept, sizeof(kept));
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	OK(pthread_join(t, NULL));
	assert_int_equal(f->events, 0);
	assert_int_equal(f->fatals, 0);
}

struct waiter {
	struct g_guest *g;
	struct g_owner *u;
	uint32_t events;
	const char *failed; /* why the thread has ended early, or NULL */
	bool done, stop;
};

static const uint8_t *
next_cqe(struct g_guest *g, struct g_cq *cq)
{
	uint32_t slot = cq->ci & ((1u << cq->log) - 1), owner = cq->ci >> cq->log & 1;
	const uint8_t *e = g_at(g, &cq->ring, cq->offset + slot * 64);
	uint8_t op_own = __atomic_load_n(&e[63], __ATOMIC_ACQUIRE);

	return op_own >> 4 == 0xf || (op_own & 1u) != owner ? NULL : e;
}

/* Posts a write, arms the CQ and waits for its event, again and again, as a program with events. */
static void *
wait_for_events(void *arg)
{
	struct waiter *w = arg;
	struct g_cq *cq = &w->u->cq;
	uint32_t i, seen = 0;
	uint8_t bell[8];
	uint64_t word;

	for (i = 0; i < w->events; i++) {
		g_post_write(w->g, w->u);
		bb_put32(bell, (seen & 3) << 28 | (cq->ci & 0xffffff));
		bb_put32(bell + 4, cq->cqn);
		memcpy(&word, bell, sizeof(word));
		__atomic_store_n((uint32_t *)(void *)(g_ram(w->g, cq->dbr) + 4), (uint32_t)word,
				 __ATOMIC_RELEASE);
		store(w->g, w->u->uar, 0x20, word);
		while (__atomic_load_n(&w->g->comps, __ATOMIC_ACQUIRE) == seen) {
			if (__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
				w->failed = "an event is missing";
				return NULL;
			}
			sched_yield();
		}
		seen++;
		if (next_cqe(w->g, cq) == NULL) {
			w->failed = "an event has no CQE";
			break;
		}
		cq->ci++;
		bb_put32(g_ram(w->g, cq->dbr), cq->ci);
	}
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

T(test_arms_during_polls_lose_no_event)
{
	/* Enough for a slow machine with ThreadSanitizer. */
	const time_t end = time(NULL) + 100;
	struct waiter w = {.g = f, .events = 500};
	struct g_owner u;
	pthread_t t;

	g_owner_open(f, &u);
	w.u = &u;
	OK(pthread_create(&t, NULL, wait_for_events, &w));
	while (!__atomic_load_n(&w.done, __ATOMIC_ACQUIRE) && time(NULL) < end)
		(void)front_poll(f->f);
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	OK(pthread_join(t, NULL));
	if (w.failed != NULL)
		fail_msg("%s", w.failed);
	assert_int_equal(f->comps, 500);
	g_owner_close(f, &u);
}

TEST(test_file_stays_when_the_device_fails_and_is_opened_again)
{
	static struct g_guest guest;
	struct g_guest *f = &guest;
	struct g_owner u;
	uint64_t end;

	open_shared(f, "soft0,link=ib,fault=dev_fatal:2");
	g_owner_open(f, &u);
	check_write(f, &u);
	g_post_write(f, &u);
	end = g_now() + G_WAIT_S;
	while (f->fatals == 0 && g_now() < end)
		(void)front_poll(f->f);
	assert_int_equal(f->fatals, 1);
	front_reset(f->f);
	g_owner_open(f, &u);
	check_write(f, &u);
	g_owner_close(f, &u);
	close_shared(f);
}

TEST_MAIN(0)
