/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A program outside the tree that has copied rdma_ring.h and rdma_ring.c. Passes messages through a
 * ring between two queue pairs of soft0. Compiles as C and as C++.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "rdma_ring.h"

#define SLOTS    8u
#define MESSAGES 1000u

static int
check(int rc, const char *what)
{
	if (rc != 0)
		fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	return rc;
}

/* Connects @qp and @peer, with the right to write to each other's memory. */
static int
join(struct bb_dev *dev, struct bb_qp *qp, struct bb_qp *peer)
{
	struct bb_qp_addr addr, peer_addr;
	struct bb_qp_attr attr;
	uint8_t gid;
	int rc;

	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE;
	rc = bb_gid_choose(dev, attr.path.port, NULL, &gid);
	if (rc == 0)
		rc = bb_qp_addr(qp, attr.path.port, gid, &addr);
	if (rc == 0)
		rc = bb_qp_addr(peer, attr.path.port, gid, &peer_addr);
	attr.path.sgid_index = gid;
	if (rc == 0)
		rc = bb_qp_connect(qp, &addr, &peer_addr, &attr);
	if (rc == 0)
		rc = bb_qp_connect(peer, &peer_addr, &addr, &attr);
	return rc;
}

/* Passes the messages; returns 0 if all came once, in order and unchanged. */
static int
pass(struct bb_cq *cq, struct rdma_ring_tx *tx, struct rdma_ring_rx *rx)
{
	char out[RDMA_RING_DATA], in[RDMA_RING_DATA];
	unsigned int sent = 0, came = 0;
	uint64_t turns = 0;
	struct bb_wc wc;
	int rc;

	while (came < MESSAGES && turns++ < 100000000) {
		for (rc = 0; rc == 0 && sent < MESSAGES; sent += rc == 0) {
			memset(out, (int)(sent % 251), sizeof(out));
			rc = rdma_ring_push(tx, out); /* -EAGAIN: the ring is full */
		}
		if (rc != 0 && rc != -EAGAIN)
			return rc;
		rdma_ring_tx_flush(tx);
		if (bb_cq_poll(cq, &wc, 1) != 0)
			return -EIO;
		rc = rdma_ring_pop(rx, in);
		if (rc < 0)
			return rc;
		memset(out, (int)(came % 251), sizeof(out));
		if (rc == 1 && memcmp(in, out, sizeof(in)) != 0)
			return -EBADMSG;
		came += (unsigned int)rc;
		rdma_ring_rx_flush(rx);
	}
	return came == MESSAGES && tx->full > 0 ? 0 : -ETIMEDOUT;
}

int
main(int argc, char **argv)
{
	struct bb_mr *slots_mr, *credit_mr;
	struct bb_region slots, credit;
	struct bb_qp_init_attr init;
	struct bb_qp *from, *to;
	struct rdma_ring_tx tx;
	struct rdma_ring_rx rx;
	struct bb_cq_attr attr;
	struct bb_dev *dev;
	struct bb_cq *cq;
	struct bb_pd *pd;
	void *mem, *word;

	if (rte_eal_init(argc, argv) < 0)
		return 2;
	mem = rte_zmalloc("ring", rdma_ring_bytes(SLOTS), RDMA_RING_SLOT);
	word = rte_zmalloc("credit", RDMA_RING_SLOT, RDMA_RING_SLOT);
	if (mem == NULL || word == NULL || check(bb_dev_open("soft0", &dev), "bb_dev_open") != 0)
		return 1;
	bb_cq_attr_init(&attr);
	if (check(bb_pd_alloc(dev, &pd), "bb_pd_alloc") != 0 ||
	    check(bb_cq_create(dev, &attr, &cq), "bb_cq_create") != 0)
		return 1;
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = cq;
	init.sq_depth = 32;
	init.rq_depth = 0;
	init.max_inline = RDMA_RING_INLINE;
	if (check(bb_qp_create(pd, &init, &from), "bb_qp_create") != 0 ||
	    check(bb_qp_create(pd, &init, &to), "bb_qp_create") != 0 ||
	    check(join(dev, from, to), "connect") != 0)
		return 1;
	rdma_ring_format(mem, SLOTS);
	if (check(bb_mr_reg(pd, mem, rdma_ring_bytes(SLOTS),
			    BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, &slots_mr),
		  "bb_mr_reg") != 0 ||
	    check(bb_mr_reg(pd, word, 8, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE,
			    &credit_mr),
		  "bb_mr_reg") != 0 ||
	    check(bb_region_of(slots_mr, "slots", 0, rdma_ring_bytes(SLOTS), &slots), "slots") !=
		    0 ||
	    check(bb_region_of(credit_mr, "credit", 0, 8, &credit), "credit") != 0)
		return 1;
	if (check(rdma_ring_tx_init(&tx, from, RDMA_RING_INLINE, word, &slots),
		  "rdma_ring_tx_init") != 0 ||
	    check(rdma_ring_rx_init(&rx, to, mem, SLOTS, &credit), "rdma_ring_rx_init") != 0 ||
	    check(pass(cq, &tx, &rx), "pass") != 0)
		return 1;
	printf("%u messages passed through %u slots\n", MESSAGES, SLOTS);
	return 0;
}
