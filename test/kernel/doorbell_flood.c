/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Stores random bytes to all of a register page, as any program of a guest can. Then moves data by
 * a new QP. Exit status: 0 if the data arrived. usage: doorbell_flood DEVICE GID_INDEX STORES
 */
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "need.h"

#define PAGE  4096u
#define BF    0x800u /* first doorbell register */
#define ARM   0x20u  /* register that arms CQs */
#define BYTES 4096u

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint8_t gid_index;
static uint64_t seed = 1;

static uint64_t
draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Creates a QP that is connected to itself. */
static struct ibv_qp *
make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = need(ibv_create_qp(pd, &init), "ibv_create_qp");
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.dlid = port.lid,
			    .port_num = 1,
			    .is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.dgid = gid, .sgid_index = gid_index, .hop_limit = 1}},
	};

	must(ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
	return qp;
}

/*
 * Stores once: any width at any offset, or a doorbell or a whole copy of a WQE that name a QP near
 * @qpn, or a request to arm a CQ near @cqn.
 */
static void
store(volatile uint8_t *page, uint32_t qpn, uint32_t cqn)
{
	uint32_t at = (uint32_t)draw() % PAGE, i, kind = (uint32_t)draw() % 4;
	uint32_t number = kind == 1 ? cqn : (qpn + (uint32_t)draw() % 4) << 8;
	uint64_t value = draw();

	if (kind != 0) {
		value = (uint64_t)htobe32(number | (kind == 1 ? 0 : (uint32_t)draw() % 64)) << 32 |
			(uint32_t)value;
		at = kind == 1 ? ARM : BF + at % (PAGE - BF) / 256 * 256;
		*(volatile uint64_t *)(volatile void *)(page + at) = value;
		for (i = 8; kind == 3 && i < 64; i += 8)
			*(volatile uint64_t *)(volatile void *)(page + at + i) = draw();
		return;
	}
	switch (draw() % 4) {
	case 0:
		page[at] = (uint8_t)value;
		break;
	case 1:
		*(volatile uint16_t *)(volatile void *)(page + at / 2 * 2) = (uint16_t)value;
		break;
	case 2:
		*(volatile uint32_t *)(volatile void *)(page + at / 4 * 4) = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)(volatile void *)(page + at / 8 * 8) = value;
	}
}

/* Writes half of @buf to the other half by a new QP. Returns whether the data arrived. */
static bool
moves_data(uint8_t *buf, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)buf, BYTES / 2, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 77,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)buf + BYTES / 2;
	wr.wr.rdma.rkey = mr->rkey;
	for (uint32_t i = 0; i < BYTES / 2; i++)
		buf[i] = (uint8_t)(i * 7 + 1);
	must(ibv_post_send(make_qp(), &wr, &bad), "ibv_post_send");
	while (ibv_poll_cq(cq, 1, &wc) != 1 || wc.wr_id != 77)
		;
	return wc.status == IBV_WC_SUCCESS && memcmp(buf, buf + BYTES / 2, BYTES / 2) == 0;
}

int
main(int argc, char **argv)
{
	struct mlx5dv_obj obj = {0};
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_cq dvcq = {0};
	struct ibv_device **list = need(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *ctx = NULL;
	struct ibv_mr *mr;
	volatile uint8_t *page;
	uint8_t *buf;
	long n;

	if (argc != 4)
		return 2;
	for (; ctx == NULL && *list != NULL; list++)
		if (strcmp(ibv_get_device_name(*list), argv[1]) == 0)
			ctx = ibv_open_device(*list);
	need(ctx, argv[1]);
	gid_index = (uint8_t)atoi(argv[2]);
	must(ibv_query_port(ctx, 1, &port), "ibv_query_port");
	must(ibv_query_gid(ctx, 1, gid_index, &gid), "ibv_query_gid");
	pd = need(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	cq = need(ibv_create_cq(ctx, 64, NULL, NULL, 0), "ibv_create_cq");
	buf = need(aligned_alloc(PAGE, BYTES), "memory");
	mr = need(ibv_reg_mr(pd, buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		  "ibv_reg_mr");
	obj.qp.in = make_qp();
	obj.qp.out = &dv;
	obj.cq.in = need(ibv_create_cq(ctx, 64, NULL, NULL, 0), "ibv_create_cq");
	obj.cq.out = &dvcq;
	must(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), "mlx5dv_init_obj");
	page = (volatile uint8_t *)((uintptr_t)dv.bf.reg & ~(uintptr_t)(PAGE - 1));
	printf("flood begins\n");
	fflush(stdout);
	for (n = atol(argv[3]); n > 0; n--)
		store(page, obj.qp.in->qp_num, dvcq.cqn);
	if (!moves_data(buf, mr)) {
		printf("wrong data after the flood\n");
		return 1;
	}
	printf("%s stores, then right data\n", argv[3]);
	return 0;
}
