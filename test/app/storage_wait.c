/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client whose target breaks the connection and then stops answering: its polls must not block.
 *
 *   storage_wait EAL_OPTIONS -- DEVICE ADDR:PORT
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "bb_blk.h"

#define BS     4096u
#define WAIT_S 30u

/* Polls until the request returns. Returns the longest poll in milliseconds, or an errno. */
static int
longest_poll(struct bb_blk *blk, struct bb_blk_done *done)
{
	const uint64_t hz = rte_get_tsc_hz(), end = rte_get_tsc_cycles() + WAIT_S * hz;
	uint64_t longest = 0, t0, t;
	uint32_t n;

	do {
		t0 = rte_get_tsc_cycles();
		n = bb_blk_poll(blk, done, 1);
		t = rte_get_tsc_cycles();
		if (t - t0 > longest)
			longest = t - t0;
	} while (n == 0 && t < end);
	return n == 0 ? -ETIMEDOUT : (int)(longest * 1000 / hz);
}

int
main(int argc, char **argv)
{
	struct bb_blk_attr attr = {.depth = 4, .timeout_ms = WAIT_S * 1000};
	struct bb_blk_request req = {.op = BB_BLK_READ, .length = BS};
	int used = rte_eal_init(argc, argv), rc;
	struct bb_blk_done done = {.error = 0};
	struct bb_dev *dev;
	struct bb_blk *blk;
	char why[160];

	if (used < 0 || argc - used != 3)
		return 2;
	attr.addr = argv[used + 2];
	if (bb_dev_open(argv[used + 1], &dev) != 0)
		return 1;
	if (bb_blk_open(dev, &attr, &blk, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	req.mem = rte_zmalloc("data", BS, BS);
	rc = req.mem == NULL ? -ENOMEM : bb_blk_reg(blk, req.mem, BS, &req.mr);
	if (rc == 0 && bb_blk_submit(blk, &req) == 0) {
		bb_blk_ring(blk);
		rc = longest_poll(blk, &done);
		printf("longest poll %d ms, then %s: %s\n", rc, strerror(-done.error),
		       bb_blk_broken(blk));
	}
	if (req.mr != NULL)
		bb_blk_dereg(blk, req.mr);
	bb_blk_close(blk);
	rte_free(req.mem);
	bb_dev_close(dev);
	rte_eal_cleanup();
	return rc >= 0 ? 0 : 1;
}
