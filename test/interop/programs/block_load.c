/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests of 4 KiB at random places of a block device, with direct I/O. Runs in a guest, where fio
 * with all its libraries would take most of the memory.
 * usage: block_load DEVICE fill|read|check|write DEPTH SECONDS
 * fill writes each block once: a stamp with its number, and zeros. check reads and compares the
 * stamps. Prints "N requests in S s".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK     4096u
#define MAX_DEPTH 256u
#define STAMP     0x6c6c656265756c62ull

struct load {
	int fd;
	bool write, stamp, fill;
	uint64_t blocks, next, done, random;
	uint8_t *mem;
	aio_context_t ctx;
	struct iocb cb[MAX_DEPTH];
};

static void
die(const char *what)
{
	fprintf(stderr, "block_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns the block of the next request. */
static uint64_t
pick(struct load *l)
{
	if (l->fill)
		return l->next++;
	/* xorshift64 of Marsaglia */
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random % l->blocks;
}

static void
submit(struct load *l, uint32_t i)
{
	uint64_t block = pick(l), *data = (uint64_t *)(void *)(l->mem + (size_t)i * BLOCK);
	struct iocb *cb = &l->cb[i];

	if (l->fill) {
		data[0] = STAMP;
		data[1] = block;
	} else if (l->stamp) {
		data[0] = data[1] = 0;
	}
	*cb = (struct iocb){
		.aio_data = i,
		.aio_lio_opcode = l->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)l->fd,
		.aio_buf = (uintptr_t)data,
		.aio_nbytes = BLOCK,
		.aio_offset = (int64_t)(block * BLOCK),
	};
	if (syscall(SYS_io_submit, l->ctx, 1, &cb) != 1)
		die("io_submit");
}

static void
completed(struct load *l, const struct io_event *e)
{
	const struct iocb *cb = &l->cb[e->data];
	const uint64_t *data = (const uint64_t *)(uintptr_t)cb->aio_buf;
	const uint64_t block = (uint64_t)cb->aio_offset / BLOCK;

	if (e->res != BLOCK) {
		errno = e->res < 0 ? (int)-e->res : EIO;
		die("a request failed");
	}
	if (l->stamp && !l->fill && (data[0] != STAMP || data[1] != block)) {
		fprintf(stderr, "block_load: wrong data at block %lu\n", (unsigned long)block);
		exit(1);
	}
	l->done++;
}

static void
run(struct load *l, uint32_t depth, double limit)
{
	const double start = seconds();
	struct io_event events[MAX_DEPTH];
	uint32_t i, busy = 0;
	bool over = false;
	long n, j;

	for (i = 0; i < depth && (!l->fill || l->next < l->blocks); i++, busy++)
		submit(l, i);
	while (busy > 0) {
		n = syscall(SYS_io_getevents, l->ctx, 1, depth, events, NULL);
		if (n < 1)
			die("io_getevents");
		over = l->fill ? l->next >= l->blocks : seconds() - start >= limit;
		for (j = 0; j < n; j++) {
			completed(l, &events[j]);
			busy--;
			over = over || (l->fill && l->next >= l->blocks);
			if (over)
				continue;
			submit(l, (uint32_t)events[j].data);
			busy++;
		}
	}
	printf("%lu requests in %.6f s\n", (unsigned long)l->done, seconds() - start);
}

int
main(int argc, char **argv)
{
	static struct load l = {.random = 0x9e3779b97f4a7c15ull};
	uint32_t depth = argc == 5 ? (uint32_t)atoi(argv[3]) : 0;
	uint64_t size = 0;

	if (depth == 0 || depth > MAX_DEPTH) {
		fprintf(stderr, "usage: block_load DEVICE fill|read|check|write DEPTH SECONDS\n");
		return 2;
	}
	l.fill = strcmp(argv[2], "fill") == 0;
	l.write = l.fill || strcmp(argv[2], "write") == 0;
	l.stamp = l.fill || strcmp(argv[2], "check") == 0;
	l.fd = open(argv[1], O_RDWR | O_DIRECT);
	if (l.fd < 0 || ioctl(l.fd, BLKGETSIZE64, &size) != 0)
		die(argv[1]);
	l.blocks = size / BLOCK;
	l.mem = aligned_alloc(BLOCK, (size_t)depth * BLOCK);
	if (l.mem == NULL || l.blocks == 0)
		die("no memory, or an empty device");
	memset(l.mem, 0, (size_t)depth * BLOCK);
	if (syscall(SYS_io_setup, depth, &l.ctx) != 0)
		die("io_setup");
	run(&l, depth, atof(argv[4]));
	return 0;
}
