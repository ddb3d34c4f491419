/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client of storage_target outside the tree, built from the installed bluebell_blk.pc.
 * usage: blk EAL_OPTION... -- DEVICE [ADDR:PORT of a target]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bb_blk.h>
#include <bluebell.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #what, why);       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Runs one request to its end. */
static int
run(struct bb_blk *blk, struct bb_mr *mr, enum bb_blk_op op, void *mem, uint32_t len, uint64_t at)
{
	struct bb_blk_request req = {
		.op = op, .length = len, .offset = at, .mem = mem, .mr = mr, .user = mem};
	struct bb_blk_done done;
	int rc = bb_blk_submit(blk, &req);

	if (rc != 0)
		return rc;
	bb_blk_ring(blk);
	while (bb_blk_poll(blk, &done, 1) == 0)
		;
	return done.user == mem ? done.error : -EPROTO;
}

int
main(int argc, char **argv)
{
	struct bb_blk_attr attr = {.addr = "127.0.0.1:1", .depth = 4, .timeout_ms = 10000};
	int n = rte_eal_init(argc, argv);
	char why[160] = "", *mem;
	struct bb_dev *dev;
	struct bb_blk *blk;
	struct bb_mr *mr;
	uint32_t block;

	CHECK(n > 0 && argc > n + 1 && bb_dev_open(argv[n + 1], &dev) == 0);
	CHECK(bb_blk_open(dev, &attr, &blk, why, sizeof(why)) == -ECONNREFUSED);
	CHECK(strstr(why, "does storage_target run") != NULL);
	attr.depth = 0;
	CHECK(bb_blk_open(dev, &attr, &blk, why, sizeof(why)) == -EINVAL);
	CHECK(strcmp(why, strerror(EINVAL)) == 0);
	if (argc > n + 2) {
		attr.addr = argv[n + 2];
		attr.depth = 4;
		CHECK(bb_blk_open(dev, &attr, &blk, why, sizeof(why)) == 0);
		CHECK(bb_blk_shape(blk)->depth == 4);
		block = bb_blk_shape(blk)->block;
		mem = rte_zmalloc("data", 2 * (size_t)block, 4096);
		CHECK(mem != NULL && bb_blk_reg(blk, mem, 2 * (size_t)block, &mr) == 0);
		memset(mem, 0x5a, block);
		CHECK(run(blk, mr, BB_BLK_WRITE, mem, block, block) == 0);
		CHECK(run(blk, NULL, BB_BLK_FLUSH, NULL, 0, 0) == 0);
		CHECK(run(blk, mr, BB_BLK_READ, mem + block, block, block) == 0);
		CHECK(memcmp(mem, mem + block, block) == 0);
		CHECK(run(blk, mr, BB_BLK_READ, mem, block, bb_blk_shape(blk)->capacity) ==
		      -ERANGE);
		CHECK(bb_blk_close(blk) == -EBUSY && bb_blk_broken(blk) == NULL);
		CHECK(bb_blk_dereg(blk, mr) == 0 && bb_blk_close(blk) == 0);
		rte_free(mem);
		printf("a block of %u bytes written, flushed and read\n", block);
	}
	CHECK(bb_dev_close(dev) == 0);
	return rte_eal_cleanup();
}
