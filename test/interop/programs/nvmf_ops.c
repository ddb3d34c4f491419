/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Each operation of bb_nvmf.h against a target, with its data compared.
 * usage: nvmf_ops EAL_OPTION... -- DEVICE ADDR:PORT NQN HOST [windows]
 * Prints a line for each step. If the connection fails, prints "refused: CAUSE". Exit status: 0; 1
 * a step failed; 3 no connection.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bb_nvmf.h>
#include <bluebell.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#define DEPTH 16u
#define LEN   (1u << 20)

static struct bb_nvmf *n;
static struct bb_mr *mr;
static const struct bb_nvmf_shape *shape;
static uint8_t *mem; /* LEN bytes to write, LEN bytes to read into */

static void
check(bool ok, const char *what, uint32_t len, uint64_t at, int error)
{
	if (ok)
		return;
	fprintf(stderr, "nvmf_ops: %s of %u bytes at %llu: %d; %s\n", what, len,
		(unsigned long long)at, error,
		bb_nvmf_broken(n) == NULL ? "connected" : bb_nvmf_broken(n));
	exit(1);
}

/* Waits until @count requests have completed. Returns the first error. */
static int
finish(uint32_t count)
{
	struct bb_nvmf_done done[DEPTH];
	uint32_t i, got;
	int rc = 0;

	bb_nvmf_ring(n);
	while (count > 0) {
		got = bb_nvmf_poll(n, done, DEPTH);
		for (i = 0; i < got; i++)
			rc = rc == 0 ? done[i].error : rc;
		count -= got;
	}
	return rc;
}

static int
run(enum bb_nvmf_op op, uint32_t flags, uint8_t *data, uint32_t len, uint64_t at)
{
	const struct bb_nvmf_request req = {.op = op,
					    .flags = flags,
					    .length = len,
					    .offset = at,
					    .mem = data,
					    .mr = data == NULL ? NULL : mr};
	int rc = bb_nvmf_submit(n, &req);

	return rc != 0 ? rc : finish(1);
}

static void
fill(uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		mem[i] = (uint8_t)(seed >> 24);
	}
}

/* Reads a range and compares it with the first bytes of the memory. */
static void
read_back(uint32_t len, uint64_t at)
{
	int rc;

	memset(mem + LEN, 0x55, len);
	rc = run(BB_NVMF_READ, 0, mem + LEN, len, at);
	check(rc == 0, "READ", len, at, rc);
	check(memcmp(mem, mem + LEN, len) == 0, "data of a READ", len, at, 0);
}

static void
write_and_read(void)
{
	const uint32_t max = shape->max_io < LEN ? shape->max_io : LEN;
	const uint32_t len[] = {shape->block, 4096, 12288, 65536, max};
	uint32_t i, j, cells = 0;
	int rc;

	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		const uint64_t at[] = {0, shape->capacity / 2, shape->capacity - len[i]};

		for (j = 0; len[i] <= max && j < sizeof(at) / sizeof(at[0]); j++, cells++) {
			fill(len[i], i * 3 + j + 1);
			rc = run(BB_NVMF_WRITE, j == 1 ? BB_NVMF_FUA : 0, mem, len[i], at[j]);
			check(rc == 0, "WRITE", len[i], at[j], rc);
			read_back(len[i], at[j]);
		}
	}
	printf("WRITE, WRITE with FUA, READ: %u ranges of up to %u bytes\n", cells, max);
}

/* As many requests at once as the target permits. */
static void
many(void)
{
	const uint32_t count = shape->depth < DEPTH ? shape->depth : DEPTH, len = 8192;
	struct bb_nvmf_request req = {.length = len, .mr = mr};
	uint32_t i, round;
	int rc;

	fill(count * len, 77);
	memset(mem + LEN, 0, count * len);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < count; i++) {
			req.op = round == 0 ? BB_NVMF_WRITE : BB_NVMF_READ;
			req.mem = mem + (round == 0 ? 0 : LEN) + i * len;
			req.offset = i * (uint64_t)len * 3;
			rc = bb_nvmf_submit(n, &req);
			check(rc == 0, "submission", len, req.offset, rc);
		}
		rc = finish(count);
		check(rc == 0, "one of many requests", len, 0, rc);
	}
	check(memcmp(mem, mem + LEN, count * len) == 0, "data of many requests", len, 0, 0);
	printf("%u outstanding requests\n", count);
}

static void
compare(void)
{
	const uint32_t len = 8192;
	int rc;

	fill(len, 5);
	rc = run(BB_NVMF_WRITE, 0, mem, len, 65536);
	check(rc == 0, "WRITE", len, 65536, rc);
	rc = run(BB_NVMF_COMPARE, 0, mem, len, 65536);
	check(rc == (shape->compare ? 0 : -EOPNOTSUPP), "COMPARE of equal data", len, 65536, rc);
	mem[len - 1] ^= 1;
	rc = run(BB_NVMF_COMPARE, 0, mem, len, 65536);
	check(rc == (shape->compare ? -EILSEQ : -EOPNOTSUPP), "COMPARE of other data", len, 65536,
	      rc);
	printf("COMPARE: %s\n", shape->compare ? "equal and other data" : "the target has none");
}

static void
clear(void)
{
	const uint32_t len = 65536;
	int rc;

	fill(len, 9);
	rc = run(BB_NVMF_WRITE, 0, mem, len, len);
	check(rc == 0, "WRITE", len, len, rc);
	rc = run(BB_NVMF_ZEROES, 0, NULL, len / 2, len);
	check(rc == (shape->zeroes ? 0 : -EOPNOTSUPP), "ZEROES", len / 2, len, rc);
	if (shape->zeroes)
		memset(mem, 0, len / 2);
	read_back(len, len);
	printf("ZEROES: %s\n", shape->zeroes ? "half of a range" : "the target has none");
	rc = run(BB_NVMF_DISCARD, 0, NULL, len, 2 * len);
	check(rc == (shape->discard ? 0 : -EOPNOTSUPP), "DISCARD", len, 2 * len, rc);
	read_back(len, len);
	printf("DISCARD: %s\n",
	       shape->discard ? "the range beside it is unchanged" : "the target has none");
}

int
main(int argc, char **argv)
{
	int skip = rte_eal_init(argc, argv), rc;
	struct bb_nvmf_attr attr;
	struct bb_dev *dev;
	char why[192];

	if (skip < 0 || argc - skip < 5 || bb_dev_open(argv[skip + 1], &dev) != 0)
		return 1;
	bb_nvmf_attr_init(&attr);
	attr.addr = argv[skip + 2];
	attr.subnqn = argv[skip + 3];
	attr.hostnqn = argv[skip + 4];
	attr.windows = argc - skip > 5;
	attr.depth = DEPTH;
	attr.timeout_ms = 120000;
	rc = bb_nvmf_open(dev, &attr, &n, why, sizeof(why));
	if (rc != 0) {
		printf("refused: %s\n", why);
		return 3;
	}
	shape = bb_nvmf_shape(n);
	printf("connected: %llu bytes in blocks of %u, largest transfer %u, depth %u\n",
	       (unsigned long long)shape->capacity, shape->block, shape->max_io, shape->depth);
	mem = rte_zmalloc("data", 2 * (size_t)LEN, 4096);
	if (mem == NULL || bb_nvmf_reg(n, mem, 2 * (size_t)LEN, &mr) != 0)
		return 1;
	write_and_read();
	many();
	compare();
	clear();
	rc = run(BB_NVMF_FLUSH, 0, NULL, 0, 0);
	check(rc == 0, "FLUSH", 0, 0, rc);
	printf("FLUSH\n");
	rc = run(BB_NVMF_READ, 0, mem, shape->block, shape->capacity);
	check(rc == -ERANGE, "READ", shape->block, shape->capacity, rc);
	rc = bb_nvmf_dereg(n, mr);
	check(rc == 0, "deregistration", 0, 0, rc);
	rc = bb_nvmf_close(n);
	printf("disconnected\n");
	return rc == 0 && bb_dev_close(dev) == 0 ? 0 : 1;
}
