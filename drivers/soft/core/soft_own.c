/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, memfd_create() */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <rte_common.h>

#include "soft_ctl.h"
#include "soft_own.h"

/* Largest number of places that soft_own_map() rejects, and of holes in which they lie. */
#define TRIES 4096u
#define PLUGS 128u
/* Flag of Linux 4.17. An older kernel takes the address as a hint. */
#define FIXED_NOREPLACE 0x100000

/* Whole pages; empty if start and end are equal. */
struct range {
	uintptr_t start, end;
};

/*
 * The functions below use system calls, because a program may replace mmap() and munmap() of libc.
 */
static void
unmap(const struct range *r)
{
	if (r->start != r->end)
		(void)syscall(SYS_munmap, r->start, r->end - r->start);
}

/* Maps pages of zeros. Returns the address, or -1 with errno. */
static long
map_zeros(uintptr_t at, size_t len, int flags)
{
	return syscall(SYS_mmap, at, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

int
soft_own_zeros(uintptr_t at, size_t len)
{
	const long to = map_zeros(at, len, FIXED_NOREPLACE);

	if (to == -1)
		return errno;
	if ((uintptr_t)to == at)
		return 0;
	(void)syscall(SYS_munmap, to, len);
	return ENOSYS;
}

uint32_t
soft_mkey_end(const struct soft_dev *dev)
{
	const struct soft_draw *d = &dev->ctl->mkey_draw;

	return d->first + __atomic_load_n(&d->n, __ATOMIC_RELAXED);
}

/* Returns true if registered memory overlaps @in, and sets *region to its pages then. */
static bool
find_region(const struct soft_dev *dev, const struct range *in, uintptr_t page,
	    struct range *region)
{
	const uint32_t end = soft_mkey_end(dev);
	const struct soft_mkey *m;
	uintptr_t base, last;
	uint32_t id;

	for (id = 0; id < end; id++) {
		m = __atomic_load_n(&dev->mkeys[id], __ATOMIC_ACQUIRE);
		if (m == NULL || m->ind != NULL || soft_mkey_length(m) == 0)
			continue;
		base = (uintptr_t)__atomic_load_n(&m->base, __ATOMIC_RELAXED);
		last = base + (soft_mkey_length(m) - 1);
		/* A key over the whole address space names no region. */
		if (base == 0 || last < base)
			continue;
		region->start = base & -page;
		region->end = (last | (page - 1)) + 1;
		if (region->start < in->end && region->end > in->start)
			return true;
	}
	return false;
}

/* Returns half of @len, which is whole pages, rounded up to whole pages. */
static uintptr_t
half(uintptr_t len, uintptr_t page)
{
	return (len / 2 + page - 1) & -page;
}

/*
 * Maps zeros in a region, so that the kernel does not choose @place again: where @place overlaps
 * the region, and below and above as far as nothing is mapped, by halves. Returns what it has
 * mapped.
 */
static struct range
plug(const struct range *region, const struct range *place, uintptr_t page)
{
	struct range p = {RTE_MAX(region->start, place->start), RTE_MIN(region->end, place->end)};
	uintptr_t start = region->start, end = region->end;

	/* Another thread has mapped memory there meanwhile. */
	if (soft_own_zeros(p.start, p.end - p.start) != 0)
		return (struct range){0};
	while (start != p.start && soft_own_zeros(start, p.start - start) != 0)
		start += half(p.start - start, page);
	while (end != p.end && soft_own_zeros(p.end, end - p.end) != 0)
		end -= half(end - p.end, page);
	return (struct range){start, end};
}

/* Adds @p to the @n plugs, or makes a plug beside it larger. Returns the number of plugs. */
static unsigned int
add_plug(struct range *plugs, unsigned int n, const struct range *p)
{
	if (n != 0 && plugs[n - 1].start == p->end)
		plugs[n - 1].start = p->start;
	else if (n != 0 && plugs[n - 1].end == p->start)
		plugs[n - 1].end = p->end;
	else
		plugs[n++] = *p;
	return n;
}

/*
 * Reserves @len bytes outside of all regions: pages of zeros, which an access to an unmapped region
 * does not notice. Writes of the device to them are lost, as all its writes to such a region.
 */
static int
reserve(const struct soft_dev *dev, size_t len, uintptr_t page, struct range *place)
{
	struct range plugs[PLUGS], region, p;
	unsigned int n = 0, tries;
	int ret = -ENOMEM;
	long at;

	for (tries = 0; tries < TRIES && n < PLUGS; tries++) {
		at = map_zeros(0, len, 0);
		if (at == -1)
			break;
		*place = (struct range){(uintptr_t)at, (uintptr_t)at + len};
		if (!find_region(dev, place, page, &region)) {
			ret = 0;
			break;
		}
		unmap(place);
		p = plug(&region, place, page);
		n = add_plug(plugs, n, &p);
	}
	while (n > 0)
		unmap(&plugs[--n]);
	return ret;
}

/* Returns the page size of a file, which is a huge page in hugetlbfs. */
static uintptr_t
page_of(int fd, uintptr_t page)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC
		       ? (uintptr_t)fs.f_bsize
		       : page;
}

void *
soft_own_map(const struct soft_dev *dev, size_t len, int prot, int flags, int fd, uint64_t off)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), align = page_of(fd, page);
	const size_t whole = (len + align - 1) & -align;
	struct range place, used;
	int err;
	void *p;

	if (dev == NULL || __atomic_load_n(&dev->memory, __ATOMIC_RELAXED) == NULL)
		return mmap(NULL, len, prot, flags, fd, (off_t)off);
	if (whole < len || len == 0 || reserve(dev, whole + align - page, page, &place) != 0) {
		errno = len == 0 ? EINVAL : ENOMEM;
		return MAP_FAILED;
	}
	used.start = (place.start + align - 1) & -align;
	used.end = used.start + whole;
	unmap(&(struct range){place.start, used.start});
	unmap(&(struct range){used.end, place.end});
	p = mmap((void *)used.start, len, prot, flags | MAP_FIXED, fd, (off_t)off);
	if (p == MAP_FAILED) {
		err = errno;
		unmap(&used);
		errno = err;
	}
	return p;
}

int
soft_own_file(const char *name, uint64_t len, unsigned int flags)
{
	struct rlimit limit;
	int fd, ret;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && len > limit.rlim_cur)
		return -EFBIG;
	fd = memfd_create(name, MFD_CLOEXEC | flags);
	if (fd >= 0 && ftruncate(fd, (off_t)len) == 0)
		return fd;
	ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

const char *
soft_own_file_hint(int ret)
{
	return ret == -EFBIG ? ": raise the limit of file sizes (ulimit -f)" : "";
}
