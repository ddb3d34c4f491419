/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Is memory mapped? What the kernel finds out by pinning, read from
 * /proc/self/maps: only that shows hugepages and reserved ranges for what they are,
 * without touching them. No allocation and no stdio, as it runs inside EAL's memory
 * callbacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "soft_ctl.h"

struct scan {
	uint64_t need, end; /* still to be covered: [need, end) */
	bool write;
};

/* One line, "start-end rwxp ...". 1: covered, 0: go on, -EFAULT. */
static int
take_line(struct scan *scan, const char *line, size_t len)
{
	uint64_t num[2] = {0, 0};
	size_t i = 0;
	int n;

	for (n = 0; n < 2; n++, i++) {
		for (; i < len && line[i] != '-' && line[i] != ' '; i++) {
			char c = line[i];

			num[n] = num[n] << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		}
	}
	if (len < 2 || i > len - 2)
		return 0;
	if (num[1] <= scan->need)
		return 0;
	if (num[0] > scan->need || line[i] != 'r' || (scan->write && line[i + 1] != 'w'))
		return -EFAULT;
	scan->need = num[1];
	return scan->need >= scan->end ? 1 : 0;
}

static int
scan_file(int fd, struct scan *scan)
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
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EFAULT;
		have += (size_t)got;
		for (;;) {
			const char *nl = memchr(buf + at, '\n', have - at);

			if (nl == NULL)
				break;
			ret = take_line(scan, buf + at, (size_t)(nl - buf) - at);
			if (ret != 0)
				return ret < 0 ? ret : 0;
			at = (size_t)(nl - buf) + 1;
		}
		memmove(buf, buf + at, have - at);
		have -= at;
		if (have == sizeof(buf))
			return -EIO;
	}
}

int
soft_maps_check(const void *addr, size_t len, bool write)
{
	struct scan scan = {
		.need = (uintptr_t)addr,
		.end = (uintptr_t)addr + len,
		.write = write,
	};
	int fd, ret;

	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = scan_file(fd, &scan);
	close(fd);
	return ret;
}
