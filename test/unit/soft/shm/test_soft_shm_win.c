/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of peers: hostile directories, windows that are replaced while a peer is inside, and
 * invalid files.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bb_test.h"
#include "soft_shm.h"

#define PAGE  ((uint64_t)65536) /* a multiple of every host's page size */
#define PAGES 16
#define SEG   3u
#define GEN   7u
#define PDN   5u
#define KEY   0x4217u
#define START UINT64_C(0x7000000000001000)
#define LEN   UINT64_C(5000)
#define ALL   (SOFT_SHM_READ | SOFT_SHM_WRITE | SOFT_SHM_ATOMIC)

struct world {
	struct soft_dev dev;
	struct soft_shm shm;
	struct soft_shm_tx tx;
	struct soft_shm_dir *ours, *theirs;
	struct soft_shm_key *key;
	uint8_t *file;
	int fd;
};

static struct world *w;

static void *
zeros(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static const char *
take(uint32_t slot, uint32_t gen, uint64_t off, uint64_t len)
{
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_SEGMENT);
	m.u.segment.slot = slot;
	m.u.segment.gen = gen;
	m.u.segment.off = off;
	m.u.segment.len = len;
	return soft_shm_win_take(&w->shm, &w->tx, &m, w->fd);
}

/* A valid key for the middle of a window that is the middle of a file. */
static int
setup(void **st)
{
	(void)st;
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->ours = zeros(sizeof(*w->ours));
	w->theirs = zeros(sizeof(*w->theirs));
	w->shm.dev = &w->dev;
	w->shm.dir = w->ours;
	w->tx.dir = w->theirs;
	w->fd = memfd_create("app", MFD_CLOEXEC);
	assert_true(w->fd >= 0 && ftruncate(w->fd, (off_t)(PAGES * PAGE)) == 0);
	w->file = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	assert_ptr_not_equal(w->file, MAP_FAILED);
	assert_null(take(SEG, GEN, 4 * PAGE, 8 * PAGE));
	w->key = &w->theirs->keys[KEY >> 8];
	*w->key = (struct soft_shm_key){
		.seq = 1,
		.key = KEY,
		.pdn = PDN,
		.rights = ALL,
		.start = START,
		.len = LEN,
		.seg = SEG,
		.gen = GEN,
		.off = 6 * PAGE + 100,
	};
	return 0;
}

static int
teardown(void **st)
{
	(void)st;
	soft_shm_win_drop(&w->shm, &w->tx);
	soft_shm_win_chores(&w->shm, true);
	assert_null(w->shm.old);
	munmap(w->file, PAGES * PAGE);
	close(w->fd);
	munmap(w->ours, sizeof(*w->ours));
	munmap(w->theirs, sizeof(*w->theirs));
	free(w);
	return 0;
}

static bool
find(struct soft_shm_cached_key *n)
{
	memset(n, 0xff, sizeof(*n));
	return soft_shm_key_find(&w->tx, PDN, ALL, KEY, n);
}

/* ---- Keys */

#define T(name) TEST_WITH(setup, teardown, name)

T(test_found_address_is_that_of_the_peers_byte)
{
	struct soft_shm_cached_key n;

	w->file[6 * PAGE + 99] = 1;
	w->file[6 * PAGE + 100] = 2;
	w->file[6 * PAGE + 100 + LEN - 1] = 3;
	assert_true(find(&n));
	assert_fields(n, key, KEY, seq, 1, rights, ALL, start, START, len, LEN);
	assert_ptr_equal(n.now, &w->key->seq);
	assert_fields(n, base[-1], 1, base[0], 2, base[LEN - 1], 3);
	n.base[1] = 9;
	assert_int_equal(w->file[6 * PAGE + 101], 9);
}

T(test_access_needs_rights_of_qp_and_key)
{
	struct soft_shm_cached_key n;

	w->key->rights = SOFT_SHM_READ | SOFT_SHM_WRITE;
	assert_true(soft_shm_key_find(&w->tx, PDN, SOFT_SHM_WRITE | SOFT_SHM_ATOMIC, KEY, &n));
	assert_int_equal(n.rights, SOFT_SHM_WRITE);
	w->key->rights = 0;
	assert_true(find(&n));
	assert_int_equal(n.rights, 0);
	w->key->rights = ALL;
	assert_true(soft_shm_key_find(&w->tx, PDN, 0, KEY, &n));
	assert_int_equal(n.rights, 0);
}

/* A key is not found if it differs from the requested one or was removed. */
T(test_other_or_removed_key_is_not_found)
{
	struct soft_shm_cached_key n;

	assert_false(soft_shm_key_find(&w->tx, PDN + 1, ALL, KEY, &n));
	assert_null(n.now);
	/* The same index: an older key, and another variant. */
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, KEY - 1, &n));
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, KEY + 1, &n));
	/* Another index, with an entry that has another key, and without an entry. */
	w->theirs->keys[(KEY >> 8) + 1] = *w->key;
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, KEY + 0x100, &n));
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, KEY + 0x200, &n));
	/* Beyond the table, in the memory of other tables. */
	memcpy(&w->theirs->qps[0], w->key, sizeof(*w->key));
	((struct soft_shm_key *)(void *)&w->theirs->qps[0])->key = 1u << (SOFT_LOG_MAX_MKEY + 8);
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, 1u << (SOFT_LOG_MAX_MKEY + 8), &n));
	assert_false(soft_shm_key_find(&w->tx, PDN, ALL, UINT32_MAX, &n));
	assert_true(find(&n));
	w->key->seq = 2;
	assert_false(find(&n));
	assert_null(n.now);
	w->key->seq = 3;
	assert_true(find(&n));
	assert_int_equal(n.seq, 3);
}

/* Whatever the directory says, no address outside the window is returned. */
T(test_hostile_directory_gives_no_address_outside)
{
	static const struct {
		uint64_t off, len, start;
		bool ok;
	} ranges[] = {
		{4 * PAGE, 8 * PAGE, START, true},
		{4 * PAGE, 8 * PAGE + 1, START, false},
		{4 * PAGE - 1, 8, START, false},
		{4 * PAGE + 1, 8 * PAGE, START, false},
		{12 * PAGE - 1, 1, START, true},
		{12 * PAGE - 1, 2, START, false},
		{12 * PAGE, 0, START, true},
		{12 * PAGE, 1, START, false},
		{0, 8, START, false},
		{UINT64_MAX, 8, START, false},
		{UINT64_MAX - 7, 8, START, false},
		{4 * PAGE, UINT64_MAX, 0, false},
		{5 * PAGE, UINT64_MAX - PAGE + 1, 0, false},
		{4 * PAGE, 8, UINT64_MAX - 8, true},
		{4 * PAGE, 8, UINT64_MAX - 7, false},
		{4 * PAGE, 8, UINT64_MAX, false},
	};
	static const uint32_t segs[] = {0, SEG - 1, SEG + 1, SOFT_SHM_SEGS, UINT32_MAX};
	struct soft_shm_cached_key n;

	for (unsigned int i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		w->key->off = ranges[i].off;
		w->key->len = ranges[i].len;
		w->key->start = ranges[i].start;
		if (find(&n) != ranges[i].ok)
			fail_msg("range %u", i);
		assert_int_equal(n.now != NULL, ranges[i].ok);
	}
	w->key->off = 6 * PAGE;
	w->key->len = LEN;
	w->key->start = START;
	for (unsigned int i = 0; i < sizeof(segs) / sizeof(segs[0]); i++) {
		w->key->seg = segs[i];
		assert_false(find(&n));
	}
	w->key->seg = SEG;
	assert_true(find(&n));
	/* The slot holds another file: the message that brings or announces it is late. */
	w->key->gen = GEN + 1;
	assert_false(find(&n));
	w->key->gen = GEN - 1;
	assert_false(find(&n));
}

/* ---- Entries that change while they are read */

static uint8_t *trap;
static struct soft_shm_key *straddles;

/* The reader has reached the second page: now the peer changes the entry. */
static void
on_trap(int sig)
{
	(void)sig;
	mprotect(trap, PAGE, PROT_READ | PROT_WRITE);
	straddles->len = 2;
	straddles->seq = straddles->seq == 1 ? 3 : 2;
}

TEST(test_torn_entry_is_not_used)
{
	struct sigaction act = {.sa_handler = on_trap}, old, old_bus;
	uint8_t *mem = zeros(2 * PAGE);
	struct soft_shm_key copy;
	uint32_t seq;

	trap = mem + PAGE;
	/* The entry's first two words are in the previous page. */
	straddles = (struct soft_shm_key *)(void *)(trap - 16);
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_int_equal(sigaction(SIGBUS, &act, &old_bus), 0);
	for (seq = 1; seq <= 3; seq += 2) {
		*straddles = (struct soft_shm_key){.seq = seq, .len = 1};
		mprotect(trap, PAGE, PROT_NONE);
		assert_false(soft_shm_read(&copy, straddles, sizeof(copy)));
		assert_int_equal(straddles->len, 2);
	}
	sigaction(SIGSEGV, &old, NULL);
	sigaction(SIGBUS, &old_bus, NULL);
	straddles->seq = 5;
	assert_true(soft_shm_read(&copy, straddles, sizeof(copy)));
	assert_fields(copy, seq, 5, len, 2);
	munmap(mem, 2 * PAGE);
}

/* ---- Windows */

static bool
mapped(const void *at)
{
	return msync((void *)(uintptr_t)at, 4096, MS_ASYNC) == 0;
}

/*
 * A replaced window stays mapped until engines inside it have left; later entries do not prolong
 * that.
 */
T(test_replaced_window_stays_until_engines_left)
{
	uint64_t *first = &w->ours->engine[2].v, *second = &w->ours->engine[9].v;
	struct soft_shm_cached_key before, after;
	uint32_t rev = w->tx.rev;

	assert_true(find(&before));
	*first = 5;  /* inside */
	*second = 8; /* outside */
	assert_null(take(SEG, GEN, 2 * PAGE, 12 * PAGE));
	assert_int_not_equal(w->tx.rev, rev);
	assert_true(find(&after));
	assert_ptr_not_equal(before.base, after.base);
	w->file[6 * PAGE + 100] = 77;
	assert_int_equal(after.base[0], 77);
	soft_shm_win_chores(&w->shm, false);
	assert_int_equal(before.base[0], 77);
	*second = 9;
	soft_shm_win_chores(&w->shm, false);
	assert_int_equal(before.base[0], 77);
	/* The engine has left and entered again. */
	*first = 7;
	soft_shm_win_chores(&w->shm, false);
	assert_null(w->shm.old);
	assert_false(mapped((void *)((uintptr_t)(before.base - 100))));
	assert_int_equal(after.base[0], 77);
}

T(test_dropped_window_is_unmapped_when_engines_have_left)
{
	struct soft_shm_cached_key n, other;
	uint32_t rev;

	assert_null(take(SEG + 1, GEN, 0, PAGE));
	assert_true(find(&n));
	rev = w->tx.rev;
	w->ours->engine[0].v = 1;
	soft_shm_win_drop(&w->shm, &w->tx);
	assert_int_not_equal(w->tx.rev, rev);
	assert_false(find(&other));
	soft_shm_win_chores(&w->shm, false);
	assert_true(mapped((void *)((uintptr_t)(n.base - 100))));
	w->ours->engine[0].v = 2;
	soft_shm_win_chores(&w->shm, false);
	assert_null(w->shm.old);
	assert_false(mapped((void *)((uintptr_t)(n.base - 100))));
}

/* A range that the file does not have; earlier windows stay. */
T(test_missing_range_leaves_earlier_windows)
{
	static const struct {
		uint64_t off, len;
	} parts[] = {
		{0, 0},
		{0, PAGES * PAGE + 1},
		{PAGE, PAGES * PAGE},
		{PAGES * PAGE, PAGE},
		{UINT64_MAX & ~(PAGE - 1), PAGE},
		{PAGE, UINT64_MAX & ~(PAGE - 1)},
		{UINT64_MAX & ~(PAGE - 1), 2 * PAGE},
		{PAGE + 1, PAGE},
	};
	struct soft_shm_cached_key n;
	void *map;
	int p[2];

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (take(SEG, GEN, parts[i].off, parts[i].len) == NULL)
			fail_msg("part %u", i);
		assert_true(find(&n));
	}
	assert_int_equal(soft_shm_map_segment(NULL, -1, 0, PAGE, &map), -EBADF);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(soft_shm_map_segment(NULL, p[0], 0, PAGE, &map), -EINVAL);
	close(p[0]);
	close(p[1]);
	assert_int_equal(soft_shm_map_segment(NULL, w->fd, (PAGES - 1) * PAGE, PAGE, &map), 0);
	munmap(map, PAGE);
}

/* ---- Memory that peers make for each other */

T(test_file_has_a_fixed_size_and_one_writer)
{
	const void *at = soft_shm_reserve(NULL, 2 * PAGE);
	uint8_t *mine;
	void *map;
	int fd, other;

	assert_non_null(at);
	assert_int_equal(soft_shm_create(NULL, "t", 2 * PAGE, &fd, &map), 0);
	mine = map;
	mine[PAGE] = 5;
	assert_int_not_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_int_not_equal(ftruncate(fd, (off_t)(3 * PAGE)), 0);
	assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_ptr_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(soft_shm_map(fd, PAGE, at), -EINVAL);
	assert_int_equal(soft_shm_map(fd, 3 * PAGE, at), -EINVAL);
	assert_int_equal(((const uint8_t *)at)[PAGE], 0);
	assert_int_equal(soft_shm_map(fd, 2 * PAGE, at), 0);
	assert_int_equal(((const uint8_t *)at)[PAGE], 5);
	assert_int_equal(soft_shm_unmap(2 * PAGE, at), 0);
	assert_int_equal(((const uint8_t *)at)[PAGE], 0);
	/* A file that the peer could truncate. */
	other = memfd_create("o", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(other >= 0 && ftruncate(other, (off_t)(2 * PAGE)) == 0);
	assert_int_equal(soft_shm_map(other, 2 * PAGE, at), -EPERM);
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(soft_shm_map(other, 2 * PAGE, at), -EPERM);
	assert_int_equal(soft_shm_map(-1, 2 * PAGE, at), -EPERM);
	close(other);
	close(fd);
	munmap(map, 2 * PAGE);
	munmap((void *)(uintptr_t)at, 2 * PAGE);
}

TEST_MAIN(0)
