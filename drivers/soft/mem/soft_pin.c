/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory that stays accessible to the device until it is deregistered. A card accesses the pages
 * that the kernel has pinned, also after the program has unmapped them. Here the device maps pages
 * that are in a file a second time. It gets no second mapping of private pages, nor of a file of
 * the program. If the program unmaps such pages, or truncates the file, a request that accesses
 * them finds pages of zeros (soft_fill()).
 */
#define _GNU_SOURCE /* MAP_POPULATE */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "soft_ctl.h"
#include "soft_gaps.h"
#include "soft_own.h"

#define PAGE UINT64_C(4096) /* alignment of offsets for mmap(), at least */
/* A process has 65,530 mappings at most (vm.max_map_count), of which the program needs some, too.
 */
#define MAX_PINS 4096u
/* Number of bytes that soft_fill() maps at once if nothing else is mapped there. */
#define FILL_BYTES (UINT64_C(64) << 10)

static uint32_t n_pins; /* mappings of all devices; __atomic */

static void
unmap(struct soft_map *map)
{
	/*
	 * A system call, because UCX replaces munmap() of libc, and its replacement takes locks
	 * that its callers of ibv_dereg_mr() hold (src/ucm of 1.13).
	 */
	(void)syscall(SYS_munmap, map->start, map->len);
	map->start = NULL;
	__atomic_fetch_sub(&n_pins, 1, __ATOMIC_RELAXED);
}

/* Maps @len bytes of the file of @pin. Does nothing if that is not possible. */
static void
map_again(struct soft_dev *dev, struct soft_pin *pin, uint64_t len)
{
	const uint64_t skip = pin->file.off % PAGE;
	uint8_t *to;

	if (__atomic_fetch_add(&n_pins, 1, __ATOMIC_RELAXED) >= MAX_PINS)
		goto refuse;
	to = soft_own_map(dev, skip + len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  pin->file.fd, pin->file.off - skip);
	if (to == MAP_FAILED)
		goto refuse;
	/* A child that is made without fork() must not write into the memory of its parent. */
	(void)syscall(SYS_madvise, to, skip + len, MADV_DONTFORK);
	pin->map = (struct soft_map){.start = to, .len = skip + len, .base = to + skip};
	return;

refuse:
	__atomic_fetch_sub(&n_pins, 1, __ATOMIC_RELAXED);
}

void
soft_mkey_pin(struct soft_dev *dev, struct soft_mkey *m)
{
	struct soft_pin *pin = &m->pin;
	const uint64_t len = soft_mkey_length(m);

	if (dev->memory == NULL || m->detour == SOFT_DETOUR_PAGED || len == 0 ||
	    !(m->rr || m->rw || m->atomic))
		return;
	pin->asked = true;
	pin->program = m->base;
	pin->found = dev->memory(m->base, len, &pin->file) && pin->file.fd >= 0;
	if (!pin->found || pin->file.len != len)
		return;
	map_again(dev, pin, len);
	if (pin->map.start != NULL)
		__atomic_store_n(&m->base, pin->map.base, __ATOMIC_RELAXED);
}

bool
soft_mkey_pass_pin(struct soft_mkey *from, struct soft_mkey *to)
{
	if (from->pin.map.start == NULL)
		return false;
	to->pin = from->pin;
	to->base = from->base;
	from->pin.map.start = NULL;
	return true;
}

void
soft_mkey_unpin(struct soft_mkey *m)
{
	if (m->pin.map.start != NULL)
		unmap(&m->pin.map);
}

/* ---- Pages that the program has unmapped, or cut off their file */

/* Returns the key of a direct MR that covers address @at of this process, or NULL. */
static struct soft_mkey *
find_covering(const struct soft_dev *dev, uintptr_t at, uint64_t *left)
{
	const uint32_t end = soft_mkey_end(dev);
	struct soft_mkey *m;
	uintptr_t base;
	uint32_t id;

	for (id = 0; id < end; id++) {
		m = __atomic_load_n(&dev->mkeys[id], __ATOMIC_ACQUIRE);
		if (m == NULL || m->ind != NULL)
			continue;
		base = (uintptr_t)__atomic_load_n(&m->base, __ATOMIC_RELAXED);
		/* A key over the whole address space names no region. */
		if (base == 0 || at < base || at - base >= soft_mkey_length(m))
			continue;
		*left = soft_mkey_length(m) - (at - base);
		return m;
	}
	return NULL;
}

/*
 * The pages stay mapped when the region is deregistered, because the program may map memory of its
 * own there meanwhile.
 */
bool
soft_fill(struct mlx5_ctx *ctx, const void *at)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t start = (uintptr_t)at & ~(page - 1);
	struct soft_mkey *m;
	uint64_t left, len;
	int ret = EEXIST;

	/* The thread is in a turn of an engine, so no key is freed meanwhile. */
	m = find_covering(soft_ctx(ctx)->dev, (uintptr_t)at, &left);
	if (m == NULL)
		return false;
	len = ((uintptr_t)at - start + RTE_MIN(left, FILL_BYTES) + page - 1) &
	      ~(uint64_t)(page - 1);
	if (len > page)
		ret = soft_own_zeros(start, len);
	if (ret == EEXIST)
		ret = soft_own_zeros(start, page);
	/* EEXIST: another thread has mapped the page since the fault. */
	if (ret != 0 && ret != EEXIST)
		return false;
	__atomic_store_n(&m->filled, true, __ATOMIC_RELAXED);
	return true;
}

bool
soft_fill_cut(struct mlx5_ctx *ctx, const void *at)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uint64_t left;
	struct soft_mkey *m = find_covering(soft_ctx(ctx)->dev, (uintptr_t)at, &left);

	/* A system call, because a program may replace mmap() of libc. */
	if (m == NULL ||
	    syscall(SYS_mmap, (uintptr_t)at & ~(page - 1), page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1)
		return false;
	__atomic_store_n(&m->filled, true, __ATOMIC_RELAXED);
	return true;
}

/* ---- Publication to peers, and fork() */

void *
soft_map_aside(struct mlx5_ctx *ctx, size_t len, int prot, int flags, int fd, uint64_t off)
{
	return soft_own_map(soft_ctx(ctx)->dev, len, prot, flags, fd, off);
}

void
soft_mkey_share(struct soft_dev *dev, const struct soft_mkey *m)
{
	if (dev->share != NULL)
		dev->share->key_add(dev, m);
}

void
soft_share_by(struct mlx5_ctx *ctx, soft_memory_fn *fn)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;

	pthread_mutex_lock(&dev->lock);
	__atomic_store_n(&dev->memory, fn, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&dev->lock);
}

/*
 * Lets engines access the memory of a key at the program's address, before a fork() makes it
 * private. Returns false if the device has no own mapping, or if the program has unmapped the
 * memory. Then the own mapping stays.
 */
static bool
to_program(struct soft_dev *dev, struct soft_mkey *m)
{
	struct soft_pin *pin = &m->pin;
	struct soft_memory now;

	if (pin->map.start == NULL)
		return false;
	if (!dev->memory(pin->program, soft_mkey_length(m), &now) || now.dev != pin->file.dev ||
	    now.ino != pin->file.ino || now.off != pin->file.off || now.len != pin->file.len) {
		pin->found = false; /* the file may be closed from now on */
		return false;
	}
	__atomic_store_n(&m->base, pin->program, __ATOMIC_RELAXED);
	return true;
}

void
soft_share_pause(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	bool wait = false, moved = false;
	struct soft_mkey *m;
	uint32_t id, end;

	pthread_mutex_lock(&dev->lock);
	end = soft_mkey_end(dev);
	for (id = 0; id < end; id++) {
		m = dev->mkeys[id];
		if (m == NULL)
			continue;
		wait |= dev->share != NULL && dev->share->key_del(dev, id);
		moved |= to_program(dev, m);
	}
	if (wait)
		dev->share->wait(dev);
	if (moved)
		soft_quiesce();
	for (id = 0; moved && id < end; id++) {
		m = dev->mkeys[id];
		if (m != NULL && m->pin.map.start != NULL && m->base == m->pin.program)
			unmap(&m->pin.map);
	}
}

void
soft_share_resume(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	const uint32_t end = soft_mkey_end(dev);
	struct soft_mkey *m;
	uint32_t id;

	for (id = 0; id < end; id++) {
		m = dev->mkeys[id];
		if (m == NULL)
			continue;
		if (m->pin.asked && m->pin.map.start == NULL)
			soft_mkey_pin(dev, m);
		soft_mkey_share(dev, m);
	}
	pthread_mutex_unlock(&dev->lock);
}
