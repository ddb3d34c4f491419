/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests that find pages missing. The target has a region that is registered on demand. Requests
 * reach it by the key of the region, by a memory window, and by lists of keys that DEVX makes (KLM
 * and KSM). The requester has such a region, too. It also sends datagrams. Prints a line for each.
 * Exit status: 0 if all data arrived. usage: odp_access TARGET [GID_INDEX [REQUESTER GID_INDEX]]
 *
 * The regions are in shared memory. So they keep their data when the program gives their pages
 * back.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "need.h"

#define PAGE  4096u
#define PAGES 32u
#define HALF  (PAGES / 2 * PAGE)
#define BYTES 6000u
#define GRAM  700u /* bytes of a datagram */
#define GRH   40u
#define QKEY  0x1234u
#define START UINT64_C(0x400000000) /* of keys of DEVX */

/* CREATE_MKEY (struct mlx5_ifc_create_mkey_in_bits): sizes and offsets in bytes. */
#define IN_BYTES    0x110u
#define OUT_BYTES   16u
#define MKC         0x10u
#define KLM_BYTES   16u
#define CREATE_MKEY 0x200u
#define MODE_KLM    2u
#define MODE_KSM    3u
#define LR_LW_RR_RW (0xfu << 10)
#define LOW_BYTE    0x77u

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *ud;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint8_t gid_index;
	uint8_t *region, *data; /* data: plain memory of two pages */
	struct ibv_mr *on_demand, *plain;
};

static struct side requester, target;
static uint32_t rounds;

static void
put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static void
put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

static void
open_side(struct side *s, const char *device, const char *gid_index)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	struct mlx5dv_context_attr devx = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = need(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	int fd = memfd_create("region", 0);

	for (; s->ctx == NULL && *list != NULL; list++)
		if (strcmp(ibv_get_device_name(*list), device) == 0)
			s->ctx = mlx5dv_open_device(*list, &devx);
	need(s->ctx, device);
	must(ibv_query_port(s->ctx, 1, &s->port), "ibv_query_port");
	s->gid_index = gid_index != NULL ? (uint8_t)atoi(gid_index) : 0;
	must(ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid), "ibv_query_gid");
	s->pd = need(ibv_alloc_pd(s->ctx), "ibv_alloc_pd");
	s->cq = need(ibv_create_cq(s->ctx, 64, NULL, NULL, 0), "ibv_create_cq");
	init.send_cq = init.recv_cq = s->cq;
	s->qp = need(ibv_create_qp(s->pd, &init), "ibv_create_qp");
	init.qp_type = IBV_QPT_UD;
	s->ud = need(ibv_create_qp(s->pd, &init), "ibv_create_qp");
	must(fd < 0 || ftruncate(fd, PAGES * PAGE) != 0, "memfd_create");
	s->region = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(s->region == MAP_FAILED, "mmap");
	s->data = need(aligned_alloc(PAGE, 2 * PAGE), "memory");
	s->plain = need(ibv_reg_mr(s->pd, s->data, 2 * PAGE, all), "ibv_reg_mr");
	s->on_demand = need(ibv_reg_mr(s->pd, s->region, PAGES * PAGE, all | IBV_ACCESS_ON_DEMAND),
			    "ibv_reg_mr on demand");
}

static void
connect_side(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.dlid = peer->port.lid,
			    .port_num = 1,
			    .is_global = s->port.link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = s->gid_index,
				    .hop_limit = 64}},
	};

	must(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void
start_ud(const struct side *s)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	must(ibv_modify_qp(s->ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(s->ud, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(s->ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

static void
wait_done(const struct side *s, const char *what)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s->cq, 1, &wc) != 1)
		;
	if (wc.status != IBV_WC_SUCCESS) {
		printf("%s: %s\n", what, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

/* Takes all pages of the regions out of the program's page tables, and so from the device. */
static void
give_back(void)
{
	must(madvise(requester.region, PAGES * PAGE, MADV_DONTNEED) != 0 ||
		     madvise(target.region, PAGES * PAGE, MADV_DONTNEED) != 0,
	     "madvise");
}

static void
fill(uint8_t *p)
{
	uint32_t i;

	rounds++;
	for (i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(i * 7 + rounds);
}

static void
compare(const char *what, const uint8_t *got, const uint8_t *want)
{
	if (memcmp(got, want, BYTES) != 0) {
		printf("%s: wrong data\n", what);
		exit(1);
	}
}

/* Posts a request of the requester with @len bytes at @addr of @mr. Waits for it. */
static void
request(const char *what, enum ibv_wr_opcode opcode, const struct ibv_mr *mr, uint8_t *addr,
	uint32_t len, uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	must(ibv_post_send(requester.qp, &wr, &bad), "ibv_post_send");
	wait_done(&requester, what);
}

/*
 * Writes to @raddr of @rkey, whose memory is @at. The pages are missing: at first because nothing
 * has touched them, then because the program has given them back.
 */
static void
write_twice(const char *what, uint32_t rkey, uint64_t raddr, const uint8_t *at)
{
	int i;

	for (i = 0; i < 2; i++) {
		fill(requester.data);
		give_back();
		request(what, IBV_WR_RDMA_WRITE, requester.plain, requester.data, BYTES, raddr,
			rkey);
		compare(what, at, requester.data);
	}
	printf("%s: right data\n", what);
}

/*
 * Makes a key over two parts of the target's region by DEVX: its second half, then its first half.
 * Returns the key.
 */
static uint32_t
make_list(uint32_t mode)
{
	/* A list of KLM is padded to four entries. */
	const uint32_t room = mode == MODE_KSM ? 2 : 4;
	uint8_t in[IN_BYTES + 4 * KLM_BYTES] = {0}, out[OUT_BYTES] = {0}, *mkc = in + MKC;
	struct mlx5dv_pd dvpd = {0};
	struct mlx5dv_obj obj = {.pd = {.in = target.pd, .out = &dvpd}};
	uint32_t i, index;

	must(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), "mlx5dv_init_obj");
	put32(in, CREATE_MKEY << 16);
	put32(mkc, LR_LW_RR_RW | mode << 8);
	put32(mkc + 4, 0xffffff00 | LOW_BYTE);
	put32(mkc + 12, dvpd.pdn);
	put64(mkc + 16, START);
	put64(mkc + 24, PAGES * PAGE);
	put32(mkc + 0x34, room);
	/* log2 of the bytes of an entry */
	put32(mkc + 0x38, mode == MODE_KSM ? (uint32_t)__builtin_ctz(HALF) : 0);
	put32(in + 0x60, 2);
	for (i = 0; i < 2; i++) {
		uint8_t *klm = in + IN_BYTES + i * KLM_BYTES;

		put32(klm, mode == MODE_KSM ? 0 : HALF);
		put32(klm + 4, target.on_demand->lkey);
		put64(klm + 8, (uintptr_t)target.region + (i == 0 ? HALF : 0));
	}
	need(mlx5dv_devx_obj_create(target.ctx, in, IN_BYTES + room * KLM_BYTES, out, sizeof(out)),
	     "CREATE_MKEY");
	memcpy(&index, out + 8, sizeof(index));
	return be32toh(index) << 8 | LOW_BYTE;
}

static void
write_window(void)
{
	uint8_t *at = target.region + 2 * PAGE + 11;
	struct ibv_mw *mw = need(ibv_alloc_mw(target.pd, IBV_MW_TYPE_1), "ibv_alloc_mw");
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = target.on_demand,
			      .addr = (uintptr_t)target.region + 100,
			      .length = 8 * PAGE,
			      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
	};

	must(ibv_bind_mw(target.qp, mw, &bind), "ibv_bind_mw");
	wait_done(&target, "bind");
	write_twice("window", mw->rkey, (uintptr_t)at, at);
	must(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
}

/* The target's pages are missing. */
static void
other_operations(void)
{
	uint8_t *at = target.region + 9 * PAGE + 200;
	struct ibv_sge sge = {(uintptr_t)at, BYTES, target.on_demand->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	uint64_t before = 1000, after;

	fill(at);
	give_back();
	request("READ", IBV_WR_RDMA_READ, requester.plain, requester.data, BYTES, (uintptr_t)at,
		target.on_demand->rkey);
	compare("READ", requester.data, at);
	printf("READ: right data\n");

	fill(requester.data);
	must(ibv_post_recv(target.qp, &wr, &bad), "ibv_post_recv");
	give_back();
	request("SEND", IBV_WR_SEND, requester.plain, requester.data, BYTES, 0, 0);
	wait_done(&target, "receive");
	compare("SEND", at, requester.data);
	printf("SEND: right data\n");

	memcpy(at, &before, sizeof(before));
	give_back();
	request("atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, requester.plain, requester.data,
		sizeof(before), (uintptr_t)at, target.on_demand->rkey);
	memcpy(&after, at, sizeof(after));
	if (memcmp(requester.data, &before, sizeof(before)) != 0 || after != before + 5) {
		printf("atomic: wrong data\n");
		exit(1);
	}
	printf("atomic: right data\n");
}

/* The requester's own pages are missing. */
static void
own_pages(void)
{
	uint8_t *own = requester.region + 5 * PAGE + 30;

	fill(own);
	give_back();
	request("WRITE from missing pages", IBV_WR_RDMA_WRITE, requester.on_demand, own, BYTES,
		(uintptr_t)target.data, target.plain->rkey);
	compare("WRITE from missing pages", target.data, own);
	printf("WRITE from missing pages: right data\n");

	fill(target.data);
	give_back();
	request("READ to missing pages", IBV_WR_RDMA_READ, requester.on_demand, own, BYTES,
		(uintptr_t)target.data, target.plain->rkey);
	compare("READ to missing pages", own, target.data);
	printf("READ to missing pages: right data\n");
}

/* Sends a datagram from missing pages of the requester to plain memory of the target. */
static void
datagram(void)
{
	uint8_t *own = requester.region + 20 * PAGE - 100;
	struct ibv_ah_attr to = {
		.dlid = target.port.lid,
		.port_num = 1,
		.is_global = target.port.link_layer == IBV_LINK_LAYER_ETHERNET,
		.grh = {.dgid = target.gid, .sgid_index = requester.gid_index, .hop_limit = 64}};
	struct ibv_sge from = {(uintptr_t)own, GRAM, requester.on_demand->lkey};
	struct ibv_sge at = {(uintptr_t)target.data, GRH + GRAM, target.plain->lkey};
	struct ibv_send_wr wr = {.sg_list = &from,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr recv = {.sg_list = &at, .num_sge = 1}, *bad_recv;

	start_ud(&target);
	start_ud(&requester);
	wr.wr.ud.ah = need(ibv_create_ah(requester.pd, &to), "ibv_create_ah");
	wr.wr.ud.remote_qpn = target.ud->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	fill(own);
	must(ibv_post_recv(target.ud, &recv, &bad_recv), "ibv_post_recv");
	give_back();
	must(ibv_post_send(requester.ud, &wr, &bad), "ibv_post_send");
	wait_done(&requester, "datagram");
	wait_done(&target, "receive of a datagram");
	if (memcmp(target.data + GRH, own, GRAM) != 0) {
		printf("datagram: wrong data\n");
		exit(1);
	}
	printf("datagram: right data\n");
}

int
main(int argc, char **argv)
{
	uint8_t *at;

	if (argc != 2 && argc != 3 && argc != 5)
		return 2;
	open_side(&target, argv[1], argc > 2 ? argv[2] : NULL);
	open_side(&requester, argc > 3 ? argv[3] : argv[1], argc > 2 ? argv[argc - 1] : NULL);
	connect_side(&target, &requester);
	connect_side(&requester, &target);
	at = target.region + 5;
	write_twice("region", target.on_demand->rkey, (uintptr_t)at, at);
	write_window();
	write_twice("KLM", make_list(MODE_KLM), START + 7, target.region + HALF + 7);
	at = target.region + PAGE + 9;
	write_twice("KSM", make_list(MODE_KSM), START + HALF + PAGE + 9, at);
	other_operations();
	own_pages();
	datagram();
	return 0;
}
