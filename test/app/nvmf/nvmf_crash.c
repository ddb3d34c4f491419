/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writes to a target until the target dies, connects to the next target, and checks that it has the
 * data of all acknowledged writes; test_nvmf_crash.py kills the targets.
 *
 * usage: nvmf_crash EAL... -- DEVICE ADDRESS NQN ROUNDS SEED
 *
 * Output: "round N: A acknowledged, V checked" after each check, "busy N" when a target has
 * acknowledged MANY writes. Exit status: 0 all rounds were checked, 1 data is lost, 2 other errors.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include <bluebell.h>

#include "bb_nvmf.h"

#define BLOCK  4096u
#define BLOCKS 512u
#define DEPTH  32u
#define UNIT   512u
#define MAGIC  0x6873617263626262ull
#define MANY   200u /* writes that a target acknowledges before it may be killed */
#define WAIT_S 120

/* One for each block. Sequence numbers start at 1; a block has one outstanding write at most. */
static struct {
	uint64_t sent, acked;
	bool busy;
} block[BLOCKS];

static struct slot {
	uint32_t block;
	bool busy, flush;
} slot[DEPTH];

static struct bb_nvmf *n;
static struct bb_mr *mr;
static uint8_t *mem; /* BLOCK bytes for each slot */
static uint64_t acked, rng;

static void
die(const char *what, const char *why)
{
	printf("nvmf_crash: %s: %s\n", what, why);
	fflush(stdout);
	exit(2);
}

static uint32_t
random_below(uint32_t limit)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rng >> 32) % limit);
}

static void
fill(uint8_t *at, uint32_t b, uint64_t seq)
{
	uint64_t stamp[3] = {MAGIC, b, seq};
	uint32_t i;

	memset(at, (int)(seq * 7 + b), BLOCK);
	for (i = 0; i < BLOCK; i += UNIT)
		memcpy(at + i, stamp, sizeof(stamp));
}

/* Checks the data of block @b. All units must be of one write. Returns whether it is valid. */
static bool
valid(const uint8_t *at, uint32_t b)
{
	static uint8_t want[BLOCK], zero[BLOCK];
	uint64_t stamp[3];

	if (memcmp(at, zero, BLOCK) == 0)
		return block[b].acked == 0;
	memcpy(stamp, at, sizeof(stamp));
	if (stamp[0] != MAGIC || stamp[1] != b || stamp[2] < block[b].acked ||
	    stamp[2] > block[b].sent)
		return false;
	fill(want, b, stamp[2]);
	if (memcmp(at, want, BLOCK) != 0)
		return false;
	/* A later target must have it, too: this read was acknowledged with its data. */
	block[b].acked = block[b].sent = stamp[2];
	return true;
}

/* ---- Connection */

static void
connect_target(struct bb_dev *dev, const char *addr, const char *nqn)
{
	const time_t end = time(NULL) + WAIT_S;
	struct bb_nvmf_attr attr;
	char why[200] = "";
	int rc;

	bb_nvmf_attr_init(&attr);
	attr.addr = addr;
	attr.subnqn = nqn;
	attr.depth = DEPTH;
	attr.timeout_ms = 5000;
	do {
		rc = bb_nvmf_open(dev, &attr, &n, why, sizeof(why));
	} while (rc != 0 && time(NULL) < end);
	if (rc != 0)
		die("no connection", why);
	if (bb_nvmf_shape(n)->block != BLOCK || bb_nvmf_shape(n)->depth < DEPTH ||
	    bb_nvmf_shape(n)->capacity < BLOCKS * BLOCK)
		die("shape", "another one than the test's");
	if (bb_nvmf_reg(n, mem, DEPTH * BLOCK, &mr) != 0)
		die("memory", "not registered");
}

static void
disconnect_target(void)
{
	(void)bb_nvmf_dereg(n, mr);
	if (bb_nvmf_close(n) != 0)
		die("close", "memory is registered");
	memset(slot, 0, sizeof(slot));
}

static int
submit(uint32_t i, enum bb_nvmf_op op, uint32_t b, uint32_t flags)
{
	const struct bb_nvmf_request req = {.op = op,
					    .flags = flags,
					    .length = op == BB_NVMF_FLUSH ? 0 : BLOCK,
					    .offset = op == BB_NVMF_FLUSH ? 0 : (uint64_t)b * BLOCK,
					    .mem = mem + i * BLOCK,
					    .mr = mr,
					    .user = &slot[i]};
	int rc = bb_nvmf_submit(n, &req);

	if (rc == 0) {
		slot[i].block = b;
		slot[i].busy = true;
		slot[i].flush = op == BB_NVMF_FLUSH;
	}
	return rc;
}

/* ---- Check */

/* Reads all blocks. Returns false if a target died meanwhile; the next one is checked as well. */
static bool
check_all(void)
{
	struct bb_nvmf_done done[1];
	uint32_t b;

	for (b = 0; b < BLOCKS; b++) {
		if (submit(0, BB_NVMF_READ, b, 0) != 0)
			return false;
		bb_nvmf_ring(n);
		while (bb_nvmf_poll(n, done, 1) == 0)
			if (bb_nvmf_broken(n) != NULL)
				return false;
		if (done[0].error != 0)
			return false;
		if (valid(mem, b))
			continue;
		printf("LOST: block %u: write %" PRIu64 " is acknowledged, %" PRIu64
		       " was sent last\n",
		       b, block[b].acked, block[b].sent);
		fflush(stdout);
		_exit(1); /* exit() with memory in use is a leak for LeakSanitizer */
	}
	return true;
}

/* ---- Load */

static void
start_one(uint32_t i)
{
	const uint32_t what = random_below(16), b = random_below(BLOCKS);

	if (what == 0) {
		(void)submit(i, BB_NVMF_FLUSH, 0, 0);
		return;
	}
	if (block[b].busy)
		return;
	fill(mem + i * BLOCK, b, block[b].sent + 1);
	if (submit(i, BB_NVMF_WRITE, b, what < 6 ? BB_NVMF_FUA : 0) != 0)
		return;
	block[b].sent++;
	block[b].busy = true;
}

/* Writes until the target is gone. */
static void
load(uint32_t round)
{
	struct bb_nvmf_done done[DEPTH];
	const uint64_t before = acked;
	uint32_t i, got;
	bool reported = false;

	while (bb_nvmf_broken(n) == NULL) {
		for (i = 0; i < DEPTH; i++)
			if (!slot[i].busy)
				start_one(i);
		bb_nvmf_ring(n);
		got = bb_nvmf_poll(n, done, DEPTH);
		for (i = 0; i < got; i++) {
			struct slot *s = done[i].user;

			s->busy = false;
			if (s->flush)
				continue;
			block[s->block].busy = false;
			if (done[i].error != 0)
				continue;
			block[s->block].acked = block[s->block].sent;
			acked++;
		}
		if (!reported && acked - before >= MANY) {
			reported = true;
			printf("busy %u\n", round);
			fflush(stdout);
		}
	}
	for (i = 0; i < BLOCKS; i++)
		block[i].busy = false;
}

int
main(int argc, char **argv)
{
	struct bb_dev *dev;
	uint32_t round, rounds;
	int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 6)
		die("usage", "nvmf_crash EAL... -- DEVICE ADDRESS NQN ROUNDS SEED");
	argv += used;
	rounds = (uint32_t)strtoul(argv[4], NULL, 10);
	rng = strtoull(argv[5], NULL, 10);
	mem = rte_zmalloc("blocks", DEPTH * BLOCK, BLOCK);
	if (mem == NULL || bb_dev_open(argv[1], &dev) != 0)
		die("start", "no memory or no device");
	for (round = 0; round <= rounds; round++) {
		connect_target(dev, argv[2], argv[3]);
		while (!check_all()) {
			disconnect_target();
			connect_target(dev, argv[2], argv[3]);
		}
		printf("round %u: %" PRIu64 " acknowledged, %u checked\n", round, acked, BLOCKS);
		fflush(stdout);
		if (round < rounds)
			load(round);
		disconnect_target();
	}
	bb_dev_close(dev);
	rte_free(mem);
	rte_eal_cleanup();
	return 0;
}
