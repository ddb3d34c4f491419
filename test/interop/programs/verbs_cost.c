/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Cost of WRITEs by drivers/verbs compared with bare ibv_wr_*() and ibv_start_poll() on one
 * device.
 *
 *   verbs_cost EAL-OPTIONS -- DEVICE [ROUNDS [WRITES]]
 *
 * Each side has a QP of its own that is connected to itself. Rounds alternate between the sides.
 * A round has WRITES signalled WRITEs of 64 bytes in batches of 16. The medians of their times
 * are compared. The time runs from the first post to the last completion, so it includes the
 * kernel's and the device's work. Both sides take completions one by one (see verbs_caps.c on
 * rxe's provider).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rte_eal.h>

#include "self.h"

#define BATCH      16u
#define LEN        64u
#define ROUNDS_MAX 1001u
#define WAIT_NS    (UINT64_C(60) * 1000000000)

static uint8_t mem[4096] __attribute__((aligned(4096)));

static struct self ours;

static struct {
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
} bare;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct ibv_context *
open_bare(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			return ibv_open_device(list[i]);
	return NULL;
}

static int
bare_connect(struct ibv_qp *qp, uint8_t gid)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	union ibv_gid dgid;

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (ibv_query_gid(qp->context, 1, gid, &dgid) != 0 ||
	    ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
		    0)
		return -1;
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = qp->qp_num;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = dgid;
	a.ah_attr.grh.sgid_index = gid;
	a.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) != 0)
		return -1;
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 18;
	a.retry_cnt = 7;
	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int
bare_make(const char *name, uint8_t gid)
{
	struct ibv_context *ctx = open_bare(name);
	struct ibv_cq_init_attr_ex cattr = {.cqe = 256};
	struct ibv_qp_init_attr_ex init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp;

	if (ctx == NULL)
		return -1;
	init.pd = ibv_alloc_pd(ctx);
	bare.cq = ibv_create_cq_ex(ctx, &cattr);
	if (init.pd == NULL || bare.cq == NULL)
		return -1;
	bare.mr = ibv_reg_mr(init.pd, mem, sizeof(mem),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = ibv_cq_ex_to_cq(bare.cq);
	init.recv_cq = init.send_cq;
	qp = ibv_create_qp_ex(ctx, &init);
	if (bare.mr == NULL || qp == NULL)
		return -1;
	bare.ex = ibv_qp_to_qp_ex(qp);
	return bare_connect(qp, gid);
}

static int
ours_batch(void)
{
	const struct bb_sge sge = {(uintptr_t)mem, LEN, ours.mr->lkey};
	const uint64_t end = now_ns() + WAIT_NS;
	uint64_t raddr = (uintptr_t)mem + 2048;
	unsigned int i, n, done = 0;
	struct bb_wc wc[BATCH];

	for (i = 0; i < BATCH; i++)
		if (bb_post_write(ours.qp, i, &sge, 1, raddr, ours.mr->rkey, BB_SEND_SIGNALED) != 0)
			return -1;
	bb_qp_ring(ours.qp);
	while (done < BATCH) {
		n = bb_cq_poll(ours.cq, wc, BATCH);
		for (i = 0; i < n; i++)
			if (wc[i].status != BB_WC_SUCCESS || wc[i].wr_id != done + i)
				return -1;
		done += n;
		if (n == 0 && now_ns() > end)
			return -1;
	}
	return 0;
}

static int
bare_batch(void)
{
	struct ibv_poll_cq_attr attr = {0};
	const uint64_t end = now_ns() + WAIT_NS;
	uint64_t raddr = (uintptr_t)mem + 3072;
	unsigned int i, done = 0;

	ibv_wr_start(bare.ex);
	for (i = 0; i < BATCH; i++) {
		bare.ex->wr_id = i;
		bare.ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(bare.ex, bare.mr->rkey, raddr);
		ibv_wr_set_sge(bare.ex, bare.mr->lkey, (uintptr_t)mem, LEN);
	}
	if (ibv_wr_complete(bare.ex) != 0)
		return -1;
	while (done < BATCH) {
		if (ibv_start_poll(bare.cq, &attr) != 0) {
			if (now_ns() > end)
				return -1;
			continue;
		}
		if (bare.cq->status != IBV_WC_SUCCESS || bare.cq->wr_id != done)
			return -1;
		done++;
		ibv_end_poll(bare.cq);
	}
	return 0;
}

static int
by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t
median(uint64_t *ns, unsigned int n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	return ns[n / 2];
}

static int
run(unsigned int rounds, unsigned int batches)
{
	static int (*const batch[2])(void) = {bare_batch, ours_batch};
	static uint64_t ns[2][ROUNDS_MAX];
	double mid[2];

	for (unsigned int r = 0; r <= rounds; r++) {
		for (unsigned int side = 0; side < 2; side++) {
			const uint64_t start = now_ns();

			for (unsigned int i = 0; i < batches; i++) {
				if (batch[side]() != 0) {
					printf("%s: a write failed\n", side == 0 ? "bare" : "ours");
					return -1;
				}
			}
			/* The first round of each side warms up. */
			if (r != 0)
				ns[side][r - 1] = now_ns() - start;
		}
	}
	for (unsigned int side = 0; side < 2; side++)
		mid[side] = (double)median(ns[side], rounds) / (batches * BATCH);
	printf("a write: bare %.2f us, by drivers/verbs %.2f us, ratio %.3f; medians of %u rounds of "
	       "%u\n",
	       mid[0] / 1000, mid[1] / 1000, mid[1] / mid[0], rounds, batches * BATCH);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned int rounds = 1001, writes = BATCH;
	int args = rte_eal_init(argc, argv);
	uint8_t gid;

	if (args < 0 || argc - args < 2)
		return 2;
	argc -= args;
	argv += args;
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		writes = (unsigned int)strtoul(argv[3], NULL, 10);
	if (rounds == 0 || rounds > ROUNDS_MAX || writes < BATCH)
		return 2;
	if (self_open(&ours, argv[1], mem, sizeof(mem), &gid) != 0 ||
	    bare_make(argv[1], gid) != 0) {
		printf("no queue pairs\n");
		return 1;
	}
	return run(rounds, writes / BATCH) != 0;
}
