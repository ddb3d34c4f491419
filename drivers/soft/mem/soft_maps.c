/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Checks whether memory is mapped, and finds its page size. The kernel learns both when it pins
 * pages. This file asks the kernel for the mappings, which shows hugepages and reserved ranges. Of
 * the memory it reads one byte of each mapping, to find the end of a file. Since Linux 6.11 the
 * ioctl PROCMAP_QUERY of /proc/self/maps finds the mapping of an address. For older kernels the
 * code reads /proc/self/maps and smaps. The code allocates nothing and uses no stdio, because it
 * runs inside EAL's memory callbacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "soft_access.h"
#include "soft_ctl.h"

/*
 * Argument of PROCMAP_QUERY, with the layout of struct procmap_query in include/uapi/linux/fs.h of
 * Linux 6.11. The headers of older distributions lack it.
 */
struct procmap {
	uint64_t size;
	uint64_t query_flags; /* 0: the mapping that contains addr */
	uint64_t addr;
	uint64_t start, end;
	uint64_t flags; /* PROCMAP_READABLE, PROCMAP_WRITABLE and others */
	uint64_t page_size;
	uint64_t unused[6]; /* offset in the file, inode, device, name, build ID */
};
#define PROCMAP_QUERY    _IOWR('f', 17, struct procmap)
#define PROCMAP_READABLE 0x1u
#define PROCMAP_WRITABLE 0x2u

/*
 * Processes one line of a /proc file. Returns 0 to continue; 1 or a negative errno to end the scan.
 */
typedef int take_line_fn(void *arg, const char *line, size_t len);

struct range {
	uint64_t need, end; /* remaining range that no mapping has covered yet: [need, end) */
	bool write;
};

struct pages {
	uint64_t start, end;
	uint64_t page;
	bool here; /* the last lines read describe a mapping that overlaps [start, end) */
};

/*
 * Parses the two addresses of a line "start-end rwxp ..." into @num. Returns the offset of the
 * access rights in the line, or 0 if the line has another format.
 */
static size_t
mapping(const char *line, size_t len, uint64_t num[2])
{
	size_t i = 0;
	int n;

	num[0] = num[1] = 0;
	for (n = 0; n < 2; n++, i++) {
		for (; i < len && line[i] != '-' && line[i] != ' '; i++) {
			char c = line[i];

			if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
				return 0;
			num[n] = num[n] << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		}
	}
	return len < 2 || i > len - 2 ? 0 : i;
}

/*
 * Marks the range as covered up to @end, the end of a mapping that has the rights. A mapping of a
 * file has no pages after the end of the file, and an access there raises SIGBUS. So the last byte
 * of the range in this mapping is checked. Returns 1 if all of the range is covered, 0 if not yet,
 * or -EFAULT.
 */
static int
cover(struct range *r, uint64_t end)
{
	if (!soft_paged_backed(RTE_MIN(end, r->end) - 1))
		return -EFAULT;
	r->need = end;
	return r->need >= r->end ? 1 : 0;
}

static int
take_range(void *arg, const char *line, size_t len)
{
	struct range *r = arg;
	uint64_t num[2];
	size_t at = mapping(line, len, num);

	if (at == 0 || num[1] <= r->need)
		return 0;
	if (num[0] > r->need || line[at] != 'r' || (r->write && line[at + 1] != 'w'))
		return -EFAULT;
	return cover(r, num[1]);
}

static int
take_page(void *arg, const char *line, size_t len)
{
	static const char key[] = "KernelPageSize:";
	struct pages *p = arg;
	uint64_t num[2], kib = 0;
	size_t i;

	if (mapping(line, len, num) != 0) {
		p->here = num[1] > p->start;
		return num[0] >= p->end ? 1 : 0;
	}
	if (!p->here || len < sizeof(key) || memcmp(line, key, sizeof(key) - 1) != 0)
		return 0;
	for (i = sizeof(key) - 1; i < len; i++)
		if (line[i] >= '0' && line[i] <= '9')
			kib = kib * 10 + (uint64_t)(line[i] - '0');
	if (kib != 0 && kib * 1024 < p->page)
		p->page = kib * 1024;
	return 0;
}

/*
 * Passes each line to @take. Returns 1 if @take ended the scan, 0 at the end of the file, or a
 * negative errno.
 */
static int
scan_fd(int fd, take_line_fn *take, void *arg)
{
	char buf[16384];
	size_t have = 0;
	ssize_t got;
	int ret;

	for (;;) {
		size_t at = 0;

		got = read(fd, buf + have, sizeof(buf) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 ? 0 : -errno;
		have += (size_t)got;
		for (;;) {
			const char *nl = memchr(buf + at, '\n', have - at);

			if (nl == NULL)
				break;
			ret = take(arg, buf + at, (size_t)(nl - buf) - at);
			if (ret != 0)
				return ret;
			at = (size_t)(nl - buf) + 1;
		}
		memmove(buf, buf + at, have - at);
		have -= at;
		if (have == sizeof(buf))
			return -EIO;
	}
}

static int
scan(const char *path, take_line_fn *take, void *arg)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = scan_fd(fd, take, arg);
	close(fd);
	return ret;
}

/*
 * Finds the mapping of @addr; @fd is /proc/self/maps. Returns 0, -EFAULT if nothing is mapped
 * there, or -ENOSYS if the kernel cannot answer.
 */
static int
query(int fd, uint64_t addr, struct procmap *q)
{
	*q = (struct procmap){.size = sizeof(*q), .addr = addr};
	if (ioctl(fd, PROCMAP_QUERY, q) == 0)
		return 0;
	return errno == ENOENT ? -EFAULT : -ENOSYS;
}

/*
 * Returns 0 if [r->need, r->end) is mapped with the requested rights, -EFAULT if not, or -ENOSYS if
 * the kernel does not have the ioctl PROCMAP_QUERY.
 */
static int
query_range(int fd, struct range *r)
{
	struct procmap q;
	int ret;

	do {
		ret = query(fd, r->need, &q);
		if (ret != 0)
			return ret;
		if ((q.flags & PROCMAP_READABLE) == 0 ||
		    (r->write && (q.flags & PROCMAP_WRITABLE) == 0))
			return -EFAULT;
		ret = cover(r, q.end);
	} while (ret == 0);
	return ret < 0 ? ret : 0;
}

int
soft_maps_check(const void *addr, size_t len, bool write)
{
	struct range r = {
		.need = (uintptr_t)addr,
		.end = (uintptr_t)addr + len,
		.write = write,
	};
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = query_range(fd, &r);
	if (ret == -ENOSYS) {
		ret = scan_fd(fd, take_range, &r);
		ret = ret == 0 ? -EFAULT : ret < 0 ? ret : 0;
	}
	close(fd);
	return ret;
}

/* Sets p->page to the smallest page size in the range. Returns 0, -EFAULT or -ENOSYS. */
static int
query_pages(struct pages *p)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), ret = 0;
	struct procmap q;
	uint64_t at;

	if (fd < 0)
		return -ENOSYS;
	for (at = p->start; ret == 0 && at < p->end; at = q.end) {
		ret = query(fd, at, &q);
		if (ret == 0)
			p->page = RTE_MIN(p->page, q.page_size);
	}
	close(fd);
	return ret;
}

int
soft_maps_page(const void *addr, size_t len, uint64_t *page)
{
	struct pages p = {
		.start = (uintptr_t)addr,
		.end = (uintptr_t)addr + len,
		.page = UINT64_MAX,
	};
	int ret = query_pages(&p);

	if (ret == -ENOSYS)
		ret = scan("/proc/self/smaps", take_page, &p);
	if (ret < 0)
		return ret;
	if (p.page == UINT64_MAX)
		return -EFAULT;
	*page = p.page;
	return 0;
}
