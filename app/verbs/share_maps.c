/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Finds out what the mappings of the process are, from /proc/self/maps. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libc.h"
#include "share.h"

/* Size and alignment of the heaps that malloc() uses in threads: HEAP_MAX_SIZE of glibc, arena.c.
 */
#define ARENA ((uintptr_t)64 << 20)
/* Bytes of stack that this thread may use while it shares memory. */
#define NEAR ((uintptr_t)64 << 10)

struct line {
	uintptr_t from, end;
	char rights[5]; /* "rwxp"; s instead of p: shared */
	uint64_t off, dev, ino;
	char path[64]; /* first characters of the path */
};

/* Reader of /proc/self/maps. Allocates nothing, because an allocator may call madvise(). */
struct reader {
	int fd;
	size_t have, at; /* bytes in text, and the position in them */
	char text[4096];
};

static bool
parse(const char *text, struct line *l)
{
	unsigned long from, end, off, ino;
	unsigned int major, minor;

	l->path[0] = '\0';
	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %63s", &from, &end, l->rights, &off, &major,
		   &minor, &ino, l->path) < 7)
		return false;
	l->from = from;
	l->end = end;
	l->off = off;
	l->dev = makedev(major, minor);
	l->ino = ino;
	return true;
}

/* Moves the unread text to the start of the buffer and reads more text after it. Returns false at
 * the end of the file. */
static bool
more_text(struct reader *r)
{
	ssize_t n;

	memmove(r->text, r->text + r->at, r->have - r->at);
	r->have -= r->at;
	r->at = 0;
	n = r->fd < 0 ? 0 : libc_read(r->fd, r->text + r->have, sizeof(r->text) - r->have);
	if (n <= 0)
		return false;
	r->have += (size_t)n;
	return true;
}

/* Reads the next mapping. Returns false at the end. */
static bool
next_line(struct reader *r, struct line *l)
{
	char *end;
	bool ok;

	while ((end = memchr(r->text + r->at, '\n', r->have - r->at)) == NULL &&
	       r->have - r->at < sizeof(r->text))
		if (!more_text(r))
			return false;
	if (end == NULL)
		return false;
	*end = '\0';
	ok = parse(r->text + r->at, l);
	r->at = (size_t)(end + 1 - r->text);
	return ok;
}

static bool
reader_open(struct reader *r)
{
	r->fd = libc_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	r->have = r->at = 0;
	return r->fd >= 0;
}

static void
reader_close(const struct reader *r)
{
	if (r->fd >= 0)
		libc_close(r->fd);
}

static struct share_file *
file_of(const struct line *l, struct share_file *files, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && l->rights[3] == 's'; i++)
		if (files[i].ino == l->ino && files[i].dev == l->dev)
			return &files[i];
	return NULL;
}

bool
share_on_stack(uintptr_t from, uintptr_t end)
{
	uintptr_t here = (uintptr_t)&here;
	pthread_attr_t attr;
	bool on = true;
	size_t len;
	void *at;

	/*
	 * The current stack may be another one than the thread's: coroutines have stacks of their
	 * own.
	 */
	if (from < here + NEAR && end > here - NEAR)
		return true;
	if (gettid() == getpid())
		return false; /* the main thread's stack needs no check here: its mapping has the
				 name [stack] */
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return false;
	if (pthread_attr_getstack(&attr, &at, &len) == 0)
		on = from < (uintptr_t)at + len && end > (uintptr_t)at;
	(void)pthread_attr_destroy(&attr);
	return on;
}

/* Returns the kind of a mapping that maps none of the files of share.c. */
static enum share_kind
kind_of(const struct line *l)
{
	if (l->rights[0] != 'r' || l->rights[1] != 'w')
		return SHARE_RIGHTS;
	if (strncmp(l->path, "[stack", 6) == 0)
		return SHARE_STACK;
	if (l->ino != 0 || l->rights[3] != 'p')
		return SHARE_FILE;
	return l->path[0] == '\0' || strcmp(l->path, "[heap]") == 0 ||
			       strncmp(l->path, "[anon:", 6) == 0
		       ? SHARE_PRIVATE
		       : SHARE_FILE;
}

/*
 * Returns true if @from is in a heap that malloc() uses in threads, and @next is the unused rest of
 * that heap. Such a heap must not be shared: malloc() discards unused pages by a call of madvise()
 * that no library can replace, and then expects zeros in them.
 */
static bool
arena(uintptr_t from, const struct line *l, const struct line *next)
{
	return next->from == l->end && next->rights[0] == '-' && next->end % ARENA == 0 &&
	       from >= next->end - ARENA;
}

struct share_found
share_scan(uintptr_t from, uintptr_t end, struct share_file *files, unsigned int n)
{
	struct share_found found = {.kind = SHARE_PRIVATE};
	struct line l, last = {0};
	struct share_file *file;
	struct reader r;
	uintptr_t need = from;
	enum share_kind kind;
	unsigned int i;

	if (!reader_open(&r)) {
		found.kind = SHARE_UNKNOWN;
		return found;
	}
	for (i = 0; i < n; i++)
		files[i].mapped = false;
	while (next_line(&r, &l)) {
		file = file_of(&l, files, n);
		if (file != NULL)
			file->mapped = true;
		if (last.end > from && last.from < end && found.kind == SHARE_PRIVATE &&
		    arena(from, &last, &l))
			found.kind = SHARE_ARENA;
		last = l;
		if (l.end <= from || l.from >= end)
			continue;
		kind = l.from > need ? SHARE_HOLE : file != NULL ? SHARE_OURS : kind_of(&l);
		if (need == from) {
			found = (struct share_found){kind, file, l.off + (from - l.from)};
		} else if (kind != found.kind || file != found.file ||
			   (file != NULL && l.off + (need - l.from) != found.off + (need - from))) {
			found.kind =
				kind == SHARE_PRIVATE || kind == SHARE_OURS ? SHARE_MIXED : kind;
		}
		need = l.end;
	}
	if (need < end)
		found.kind = SHARE_HOLE;
	reader_close(&r);
	return found;
}

bool
share_each(uintptr_t from, uintptr_t end, struct share_file *files, unsigned int n,
	   share_each_fn *fn, void *arg)
{
	const struct share_file *file;
	uintptr_t at, stop;
	bool more = true;
	struct reader r;
	struct line l;

	if (!reader_open(&r))
		return false;
	while (more && next_line(&r, &l)) {
		file = file_of(&l, files, n);
		at = l.from > from ? l.from : from;
		stop = l.end < end ? l.end : end;
		if (file != NULL && at < stop)
			more = fn(arg, file, at, stop - at, l.off + (at - l.from));
	}
	reader_close(&r);
	return true;
}

const char *
share_why(enum share_kind kind)
{
	static const char *const why[] = {
		[SHARE_UNKNOWN] = "/proc/self/maps cannot be opened",
		[SHARE_HOLE] = "a part of it is not mapped",
		[SHARE_FILE] = "it belongs to a file, to huge pages or to other shared memory",
		[SHARE_RIGHTS] = "it is not readable and writable",
		[SHARE_STACK] = "it is on a stack",
		[SHARE_ARENA] = "malloc() uses it for a thread",
		[SHARE_MIXED] = "a part of it is shared already, with other memory",
	};

	return kind < sizeof(why) / sizeof(why[0]) && why[kind] != NULL ? why[kind] : "";
}
