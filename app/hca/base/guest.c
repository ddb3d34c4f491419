/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "guest.h"
#include "hca_log.h"

#define PAGE            4096u
#define MAX_WINDOW_LOG  43 /* log2 of the maximum bytes of all windows (ranges of guest pages) */
#define MAX_PAGES       (UINT64_C(1) << 26) /* of all windows; each takes 8 bytes of this process */
#define MAPS_OF_PROCESS 8192u               /* mappings that the rest of the process may need */
#define MAX_MAP_COUNT   65530u              /* Linux: default of vm.max_map_count */
#define DROP_CALLS      64u /* guest_drop_writes(): calls in which each window has its turn */

static struct guest *guests;
static volatile sig_atomic_t lost_pages;

/* Returns the limit of the system on the mappings of a process. */
static uint32_t
max_map_count(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	uint32_t n = MAX_MAP_COUNT;

	if (f == NULL)
		return n;
	if (fscanf(f, "%" SCNu32, &n) != 1)
		n = MAX_MAP_COUNT;
	fclose(f);
	return n;
}

void
guest_init(struct guest *g)
{
	uint32_t maps = max_map_count(), n = 0;

	memset(g, 0, sizeof(*g));
	g->max_pages = MAX_PAGES;
	g->max_bytes = UINT64_C(1) << MAX_WINDOW_LOG;
	TAILQ_INIT(&g->with_holes);
	g->next = guests;
	guests = g;
	maps = maps > 2 * MAPS_OF_PROCESS ? maps - MAPS_OF_PROCESS : maps / 2;
	for (g = guests; g != NULL; g = g->next)
		n++;
	for (g = guests; g != NULL; g = g->next)
		g->max_runs = maps / n;
}

static struct guest_map *
map_of(struct guest *g, uint64_t addr)
{
	uint32_t i;

	if (g->last < g->n_maps && addr - g->maps[g->last].addr < g->maps[g->last].size)
		return &g->maps[g->last];
	for (i = 0; i < g->n_maps; i++)
		if (addr - g->maps[i].addr < g->maps[i].size) {
			g->last = i;
			return &g->maps[i];
		}
	return NULL;
}

void *
guest_at(struct guest *g, uint64_t addr, uint64_t len, bool write)
{
	struct guest_map *m = map_of(g, addr);

	if (g->blocked || m == NULL || m->mem == NULL || (write && !m->writable) ||
	    len > m->size - (addr - m->addr))
		return NULL;
	return m->mem + (addr - m->addr);
}

/*
 * Returns the number of pages, from page @i of the window on, that are contiguous RAM of one
 * mapping. Returns 0 if page @i is not writable RAM. Otherwise sets *@map to the mapping.
 */
static uint32_t
run_length(struct guest *g, const struct guest_window *w, uint32_t i, struct guest_map **map)
{
	uint64_t page = UINT64_C(1) << w->log_sz, left;
	struct guest_map *m = map_of(g, w->pa[i]);
	uint32_t run = 1;

	if (g->blocked || m == NULL || m->mem == NULL || !m->writable)
		return 0;
	left = m->size - (w->pa[i] - m->addr);
	if (left < page)
		return 0;
	while (i + run < w->n && w->pa[i + run] == w->pa[i] + run * page &&
	       left >= (run + 1) * page)
		run++;
	*map = m;
	return run;
}

/* Returns the number of pages, from page @i of the window on, that are not writable RAM. */
static uint32_t
hole_length(struct guest *g, const struct guest_window *w, uint32_t i)
{
	struct guest_map *m;
	uint32_t n = 0;

	if (g->blocked)
		return w->n - i;
	while (i + n < w->n && run_length(g, w, i + n, &m) == 0)
		n++;
	return n;
}

/* Maps @bytes of zeros, which are private to this process. */
static bool
map_zeros(uint8_t *at, uint64_t bytes)
{
	return mmap(at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/*
 * Returns the number of mappings of this process that a window needs: one for each run of pages
 * that are contiguous RAM, or that are no RAM. Sets *@hole to the index of the first page that is
 * no RAM, or to the number of pages if all are RAM.
 */
static uint32_t
count_runs(struct guest *g, const struct guest_window *w, uint32_t *hole)
{
	uint32_t i, run, runs = 0;
	struct guest_map *m;

	*hole = w->n;
	for (i = 0; i < w->n; i += run, runs++) {
		run = run_length(g, w, i, &m);
		if (run != 0)
			continue;
		if (*hole == w->n)
			*hole = i;
		run = hole_length(g, w, i);
	}
	return runs;
}

/*
 * Maps the guest pages of a window into its range of this process, with one call for each run, and
 * zeros where a page is no RAM. Returns false on a failure.
 */
static bool
window_fill(struct guest *g, struct guest_window *w)
{
	uint32_t i, run;

	for (i = 0; i < w->n; i += run) {
		uint8_t *at = w->at + ((uint64_t)i << w->log_sz);
		struct guest_map *m = NULL;
		uint64_t bytes;

		run = run_length(g, w, i, &m);
		if (run == 0) {
			run = hole_length(g, w, i);
			if (!map_zeros(at, (uint64_t)run << w->log_sz))
				return false;
			continue;
		}
		bytes = (uint64_t)run << w->log_sz;
		if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd,
			 (off_t)(m->offset + (w->pa[i] - m->addr))) == MAP_FAILED) {
			HCA_LOG(ERR, "cannot map guest page 0x%" PRIx64 ": %s", w->pa[i],
				strerror(errno));
			return false;
		}
	}
	return true;
}

/* Returns false (logged) if the guest may not have @runs more mappings for its windows. */
static bool
runs_fit(const struct guest *g, uint32_t runs)
{
	if (runs <= g->max_runs && g->runs <= g->max_runs - runs)
		return true;
	HCA_LOG(ERR,
		"the guest's memory regions need %u more mappings of this process, and have %u of at "
		"most %u; raise vm.max_map_count of the host, or use hugepages in the guest",
		runs, g->runs, g->max_runs);
	return false;
}

/* Maps a new window. Returns false (logged) if a page is not RAM, or if mappings ran out. */
static bool
window_map(struct guest *g, struct guest_window *w)
{
	uint32_t hole;

	w->runs = count_runs(g, w, &hole);
	if (hole == w->n)
		return runs_fit(g, w->runs) && window_fill(g, w);
	HCA_LOG(ERR, "cannot map guest page 0x%" PRIx64 " of 2^%u bytes: it is not writable RAM",
		w->pa[hole], w->log_sz);
	return false;
}

/* Adds a window to the list of those with holes, or removes it. @holes: a page has no RAM. */
static void
set_holes(struct guest *g, struct guest_window *w, bool holes)
{
	if (holes == w->holes)
		return;
	w->holes = holes;
	if (holes) {
		TAILQ_INSERT_TAIL(&g->with_holes, w, hole);
		g->n_with_holes++;
	} else {
		TAILQ_REMOVE(&g->with_holes, w, hole);
		g->n_with_holes--;
	}
}

static struct guest_window **
window_list(struct guest *g, const void *at)
{
	return &g->windows[((uintptr_t)at / PAGE) & (GUEST_WINDOW_LISTS - 1)];
}

void *
guest_window(struct guest *g, const uint64_t *pa, uint32_t n, unsigned int log_sz)
{
	struct guest_window *w, **list;
	uint64_t bytes;
	uint32_t i;

	if (n == 0 || log_sz < 12 || log_sz > MAX_WINDOW_LOG ||
	    n > UINT64_C(1) << (MAX_WINDOW_LOG - log_sz)) {
		HCA_LOG(ERR, "cannot map %u guest pages of 2^%u bytes: invalid number or size", n,
			log_sz);
		return NULL;
	}
	bytes = (uint64_t)n << log_sz;
	if (n > g->max_pages - g->pages || bytes > g->max_bytes - g->bytes) {
		HCA_LOG(ERR,
			"cannot map %u guest pages of 2^%u bytes: the guest's memory regions have "
			"%" PRIu64 " of at most %" PRIu64 " pages, %" PRIu64 " of at most %" PRIu64
			" bytes; use hugepages in the guest",
			n, log_sz, g->pages, g->max_pages, g->bytes, g->max_bytes);
		return NULL;
	}
	for (i = 0; i < n; i++)
		if (pa[i] & (PAGE - 1))
			return NULL;
	w = calloc(1, sizeof(*w) + n * sizeof(w->pa[0]));
	if (w == NULL)
		return NULL;
	w->n = n;
	w->log_sz = log_sz;
	memcpy(w->pa, pa, n * sizeof(w->pa[0]));
	w->at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->at == MAP_FAILED)
		goto free;
	if (!window_map(g, w))
		goto unmap;
	g->runs += w->runs;
	g->pages += n;
	g->bytes += bytes;
	list = window_list(g, w->at);
	w->next = *list;
	*list = w;
	return w->at;

unmap:
	munmap(w->at, bytes);
free:
	free(w);
	return NULL;
}

void
guest_window_free(struct guest *g, void *window)
{
	struct guest_window **p, *w;

	for (p = window_list(g, window); *p != NULL; p = &(*p)->next) {
		w = *p;
		if (w->at != window)
			continue;
		*p = w->next;
		set_holes(g, w, false);
		g->runs -= w->runs;
		g->pages -= w->n;
		g->bytes -= (uint64_t)w->n << w->log_sz;
		munmap(w->at, (uint64_t)w->n << w->log_sz);
		free(w);
		return;
	}
}

/*
 * Maps a window (range of guest pages) again after the guest's memory map has changed. The software
 * device may access the window at any time. So if the pages cannot be mapped, maps zeros.
 *
 * The window keeps the mappings that it once needed, so that it gets them back: other windows
 * cannot take them while this one has holes.
 */
static void
window_refill(struct guest *g, struct guest_window *w)
{
	uint64_t bytes = (uint64_t)w->n << w->log_sz;
	uint32_t hole, runs = count_runs(g, w, &hole);
	bool filled = false;

	if (runs <= w->runs || runs_fit(g, runs - w->runs)) {
		if (runs > w->runs) {
			g->runs += runs - w->runs;
			w->runs = runs;
		}
		/* In the course of window_fill() the range has both old and new mappings. */
		filled = (runs <= g->max_runs - g->runs || map_zeros(w->at, bytes)) &&
			 window_fill(g, w);
	}
	if (!filled && !map_zeros(w->at, bytes)) {
		HCA_LOG(ERR, "cannot map zeros: %s", strerror(errno));
		abort();
	}
	set_holes(g, w, hole < w->n || !filled);
}

/* Maps every window again that has a page in [@addr, @addr + @size) of the guest addresses. */
static void
refill(struct guest *g, uint64_t addr, uint64_t size)
{
	struct guest_window *w;
	uint32_t l, i;

	for (l = 0; l < GUEST_WINDOW_LISTS; l++)
		for (w = g->windows[l]; w != NULL; w = w->next) {
			uint64_t page = UINT64_C(1) << w->log_sz;

			for (i = 0; i < w->n; i++)
				if (w->pa[i] - addr < size || addr - w->pa[i] < page)
					break;
			if (i < w->n)
				window_refill(g, w);
		}
}

void
guest_drop_writes(struct guest *g)
{
	uint32_t i, n = (g->n_with_holes + DROP_CALLS - 1) / DROP_CALLS;
	struct guest_window *w;

	for (i = 0; i < n; i++) {
		w = TAILQ_FIRST(&g->with_holes);
		(void)madvise(w->at, (uint64_t)w->n << w->log_sz, MADV_DONTNEED);
		TAILQ_REMOVE(&g->with_holes, w, hole);
		TAILQ_INSERT_TAIL(&g->with_holes, w, hole);
	}
}

void
guest_block(struct guest *g, bool block)
{
	if (block == g->blocked)
		return;
	g->blocked = block;
	refill(g, 0, UINT64_MAX);
}

/* Returns false if @fd is a regular file that is shorter than @end. */
static bool
file_reaches(int fd, uint64_t end)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= end);
}

/*
 * Returns true (logged) if @fd is a file of hugepages. Windows map single pages of a file with
 * MAP_FIXED. For such a file the kernel would round the length up to a hugepage, and replace other
 * memory of this process.
 */
static bool
has_hugepages(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0 || fs.f_type != HUGETLBFS_MAGIC)
		return false;
	HCA_LOG(ERR, "the guest's memory is in hugepages of the host: give the guest shared memory "
		     "of 4 KiB pages (memory-backend-memfd without hugetlb=on)");
	return true;
}

int
guest_map(struct guest *g, uint64_t addr, uint64_t size, int fd, uint64_t offset, bool writable)
{
	struct guest_map m = {.addr = addr, .size = size, .offset = offset, .fd = -1};
	uint32_t i;

	if (size == 0 || (addr | size | offset) & (PAGE - 1) || size - 1 > UINT64_MAX - addr ||
	    size > INT64_MAX || offset > INT64_MAX - size)
		return -EINVAL;
	for (i = 0; i < g->n_maps; i++)
		if (addr - g->maps[i].addr < g->maps[i].size || g->maps[i].addr - addr < size)
			return -EEXIST;
	if (g->n_maps == GUEST_MAX_MAPS)
		return -ENOSPC;
	if (fd >= 0) {
		if (!file_reaches(fd, offset + size) || has_hugepages(fd))
			return -EINVAL;
		m.mem = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd,
			     (off_t)offset);
		if (m.mem == MAP_FAILED)
			return -errno;
		m.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (m.fd < 0) {
			munmap(m.mem, size);
			return -EMFILE;
		}
		m.writable = writable;
	}
	g->maps[g->n_maps++] = m;
	refill(g, addr, size);
	return 0;
}

static void
unmap_one(struct guest *g, uint32_t i)
{
	struct guest_map m = g->maps[i];

	g->maps[i] = g->maps[--g->n_maps];
	refill(g, m.addr, m.size);
	if (m.mem != NULL)
		munmap(m.mem, m.size);
	if (m.fd >= 0)
		close(m.fd);
}

int
guest_unmap(struct guest *g, uint64_t addr, uint64_t size)
{
	uint32_t i, inside = 0;

	for (i = 0; i < g->n_maps; i++) {
		const struct guest_map *m = &g->maps[i];
		bool within = m->addr - addr < size && m->size <= size - (m->addr - addr);

		if (!within && (m->addr - addr < size || addr - m->addr < m->size))
			return -EINVAL;
		inside += within;
	}
	if (inside == 0)
		return -EINVAL;
	for (i = 0; i < g->n_maps;)
		if (g->maps[i].addr - addr < size)
			unmap_one(g, i);
		else
			i++;
	return 0;
}

void
guest_reset(struct guest *g)
{
	while (g->n_maps > 0)
		unmap_one(g, g->n_maps - 1);
}

void
guest_fini(struct guest *g)
{
	struct guest **p;

	guest_reset(g);
	for (p = &guests; *p != NULL; p = &(*p)->next)
		if (*p == g) {
			*p = g->next;
			break;
		}
}

/* Returns whether @at is memory of a guest that this process has mapped. */
static bool
is_guest_memory(const uint8_t *at)
{
	const struct guest_window *w;
	const struct guest *g;
	uint32_t i;

	for (g = guests; g != NULL; g = g->next) {
		for (i = 0; i < g->n_maps; i++)
			if (g->maps[i].mem != NULL &&
			    (uintptr_t)at - (uintptr_t)g->maps[i].mem < g->maps[i].size)
				return true;
		for (i = 0; i < GUEST_WINDOW_LISTS; i++)
			for (w = g->windows[i]; w != NULL; w = w->next)
				if ((uintptr_t)at - (uintptr_t)w->at < (uint64_t)w->n << w->log_sz)
					return true;
	}
	return false;
}

/* Runs in the SIGBUS handler, so it calls only mmap(), which is a bare system call. */
static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;

	(void)context;
	if (is_guest_memory(at) && map_zeros(at - ((uintptr_t)at & (PAGE - 1)), PAGE)) {
		lost_pages++;
		return;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

void
guest_catch_sigbus(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

unsigned int
guest_lost_pages(void)
{
	return (unsigned int)lost_pages;
}
