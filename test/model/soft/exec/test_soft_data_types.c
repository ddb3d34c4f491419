/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UC and UD queue pairs of the software device, made by hand with mailboxes and WQEs: what the
 * device refuses. The table of mailboxes follows Linux's opt_mask[] of mlx5_ib.
 */
#include <endian.h>
#include <stdio.h>

#include "../soft_rig.h"

#define QPC 0x18u
#define ADS (QPC + 0x18u)

#define QP_OP  0x02
#define LENGTH 0x01
#define PROT   0x04

#define GID_INDEX 1u

struct rig {
	struct rig_dev d;
	struct rig_uar u;
	struct rig_cq scq, rcq;
	struct rig_qp a, b;
	struct rig_mem m;
};

static void
rig_start_with(struct rig *r, uint32_t st, const char *args)
{
	struct rig_qp_attr attr = {
		.log_sq = 6, .log_rq = 4, .log_stride = 6, .uidx = 0xa0a, .st = st};
	struct rig_link l = rig_link_default();

	memset(r, 0, sizeof(*r));
	rig_dev_open(&r->d, "soft0", args);
	rig_uar_open(&r->u, &r->d, MLX5_UAR_BF);
	rig_cq_open(&r->scq, &r->u, 8);
	rig_cq_open(&r->rcq, &r->u, 8);
	rig_qp_open(&r->a, &r->u, &r->scq, &r->scq, &attr);
	attr.uidx = 0xb0b;
	rig_qp_open(&r->b, &r->u, &r->rcq, &r->rcq, &attr);
	rig_mem_open(&r->m, &r->d, NULL, 64 * 1024, RIG_ALL);
	rig_connect(&r->a, &r->b, &l);
}

static void
rig_start(struct rig *r, uint32_t st)
{
	rig_start_with(r, st, NULL);
}

static void
rig_end(struct rig *r)
{
	rig_qp_close(&r->a);
	rig_qp_close(&r->b);
	rig_mem_close(&r->m);
	rig_cq_close(&r->scq);
	rig_cq_close(&r->rcq);
	rig_uar_close(&r->u);
	rig_dev_close(&r->d);
}

/* Writes the address vector of a valid datagram from a to b. */
static void
av_from(struct rig *r, uint32_t qkey, uint32_t sgid)
{
	uint8_t seg[48];
	unsigned int i;

	/* The setter writes 64 bits; the first half is the Q_Key. */
	mlx5dv_set_dgram_seg((struct mlx5_wqe_datagram_seg *)(void *)seg, (uint64_t)qkey << 32,
			     r->b.qpn, 1, 0, 0, 0xc001, r->d.mac, 0, 64, sgid << 20, r->d.gid.raw);
	for (i = 0; i < 3; i++)
		memcpy(rig_seg(&r->a, r->a.pi, 1 + i), seg + 16 * i, 16);
}

static void
av(struct rig *r, uint32_t qkey)
{
	av_from(r, qkey, GID_INDEX);
}

static void
datagram(struct rig *r, uint8_t opcode, uint32_t len, uint32_t qkey)
{
	av(r, qkey);
	rig_data(&r->a, 4, &r->m, 0, len);
	rig_wqe(&r->a, opcode, RIG_CQE, 5, 0x55667788);
}

/* The address vector is written by rdma-core's own setter; checks the arriving data and the CQE. */
TEST(test_datagram_arrives_after_40_bytes)
{
	/* Link-local GID of soft0. */
	static const uint8_t link_local[16] = {0xfe, 0x80, [9] = 0xbb, [11] = 0xff, 0xfe};
	struct rig_cqe e;
	struct rig r;
	unsigned int i;

	rig_start(&r, BB_PRM_QP_ST_UD);
	for (i = 0; i < 100; i++)
		r.m.p[i] = (uint8_t)(i + 1);
	rig_recv(&r.b, &r.m, 4096, 200);
	datagram(&r, MLX5_OPCODE_SEND_IMM, 100, RIG_QKEY);
	rig_done(&r.a, MLX5_OPCODE_SEND_IMM, 0);
	rig_wait(&r.rcq, &r.u, &e);
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_IMM);
	assert_int_equal(e.bytes, 140);
	assert_int_equal(e.imm, 0x55667788);
	assert_memory_equal(r.m.p + 4096 + 40, r.m.p, 100);
	/* IPv6 header of RoCE v2: version, next header UDP. */
	assert_int_equal(r.m.p[4096] >> 4, 6);
	assert_int_equal(r.m.p[4096 + 6], 17);
	/* From an IPv4 address to an IPv6 address: the data still has 40 bytes in front. */
	rig_recv(&r.b, &r.m, 4096, 200);
	av_from(&r, RIG_QKEY, 3);
	memcpy(rig_seg(&r.a, r.a.pi, 3), link_local, sizeof(link_local));
	rig_data(&r.a, 4, &r.m, 0, 100);
	rig_wqe(&r.a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0);
	rig_ring(&r.a);
	rig_wait(&r.rcq, &r.u, &e);
	assert_int_equal(e.bytes, 140);
	assert_int_equal(r.m.p[4096] >> 4, 6);
	assert_memory_equal(r.m.p + 4096 + 40, r.m.p, 100);
	rig_end(&r);
}

/* The receive has no room for the 40 bytes, and stays posted. */
TEST(test_empty_datagram_needs_room_for_the_grh)
{
	static const char *const links[] = {NULL, "wire=1"};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct rig r;

		rig_start_with(&r, BB_PRM_QP_ST_UD, links[i]);
		rig_recv(&r.b, &r.m, 4096, 39);
		av(&r, RIG_QKEY);
		rig_wqe(&r.a, MLX5_OPCODE_SEND, RIG_CQE, 4, 0);
		rig_done(&r.a, MLX5_OPCODE_SEND, 0);
		rig_expect_none(&r.rcq, &r.u);
		rig_end(&r);
	}
}

/* Datagrams to the right GID with another MAC, or with hop limit 0, are lost. */
TEST(test_datagram_to_another_mac_is_lost)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct rig r;
		uint8_t *seg;

		rig_start(&r, BB_PRM_QP_ST_UD);
		rig_recv(&r.b, &r.m, 4096, 200);
		/* rmac is bytes 20 to 25 of the address vector, hop_limit byte 27. */
		datagram(&r, MLX5_OPCODE_SEND, 8, RIG_QKEY);
		seg = rig_seg(&r.a, 0, 2);
		seg[i == 0 ? 9 : 11] = 0;
		if (i == 0)
			seg[9] = 0x77;
		rig_done(&r.a, MLX5_OPCODE_SEND, 0);
		rig_expect_none(&r.rcq, &r.u);
		datagram(&r, MLX5_OPCODE_SEND, 8, RIG_QKEY);
		rig_done(&r.a, MLX5_OPCODE_SEND, 2);
		rig_end(&r);
	}
}

struct wqe_case {
	const char *name;
	uint32_t st;
	void (*build)(struct rig *r);
	uint8_t syndrome, vendor;
};

/* Defines a function that posts a WQE and spoils it. */
#define BUILD(name, ...)                                                                           \
	static void name(struct rig *r)                                                            \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

BUILD(read_wqe, rig_read(&r->a, &r->m, 0, 8, &r->m, 4096, RIG_CQE))
BUILD(write_wqe, rig_write(&r->a, &r->m, 0, 8, &r->m, 4096, RIG_CQE))
BUILD(atomic_wqe, rig_atomic(&r->a, MLX5_OPCODE_ATOMIC_FA, &r->m, 0, &r->m, 4096, 1, 0, RIG_CQE))
BUILD(masked_wqe,
      rig_atomic(&r->a, MLX5_OPCODE_ATOMIC_MASKED_FA, &r->m, 0, &r->m, 4096, 1, 0, RIG_CQE))
BUILD(umr_wqe, rig_wqe(&r->a, MLX5_OPCODE_UMR, RIG_CQE, 8, 0))
BUILD(send_inv_wqe, av(r, RIG_QKEY); rig_wqe(&r->a, MLX5_OPCODE_SEND_INVAL, RIG_CQE, 4, 0))

/* A SEND in RC format: its data is where the address vector should be. */
BUILD(no_av, rig_send(&r->a, &r->m, 0, 8, RIG_CQE))
BUILD(short_av, av(r, RIG_QKEY); rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 3, 0))

static void
compact_av(struct rig *r)
{
	av(r, RIG_QKEY);
	((uint8_t *)rig_seg(&r->a, r->a.pi, 1))[8] &= 0x7f;
	rig_data(&r->a, 4, &r->m, 0, 8);
	rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0);
}

static void
empty_gid(struct rig *r)
{
	uint32_t v = htobe32(9u << 20);

	av(r, RIG_QKEY);
	memcpy((uint8_t *)rig_seg(&r->a, r->a.pi, 2) + 12, &v, 4);
	rig_data(&r->a, 4, &r->m, 0, 8);
	rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0);
}

/* As libmlx5 writes it without is_global. */
static void
no_grh(struct rig *r)
{
	av(r, RIG_QKEY);
	memset((uint8_t *)rig_seg(&r->a, r->a.pi, 2) + 10, 0, 6);
	memset(rig_seg(&r->a, r->a.pi, 3), 0, 16);
	rig_data(&r->a, 4, &r->m, 0, 8);
	rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0);
}

BUILD(grh_to_nobody, no_grh(r); *((uint8_t *)rig_seg(&r->a, r->a.last, 2) + 12) = 1 << 6)
BUILD(over_mtu, datagram(r, MLX5_OPCODE_SEND, 4097, RIG_QKEY))
BUILD(bad_key, av(r, RIG_QKEY);
      mlx5dv_set_data_seg(rig_seg(&r->a, r->a.pi, 4), 8, 0xbad00, (uintptr_t)r->m.p);
      rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0))

static void
inline_beyond(struct rig *r)
{
	uint32_t hdr = htobe32(0x80000000u | 13);

	av(r, RIG_QKEY);
	memcpy(rig_seg(&r->a, r->a.pi, 4), &hdr, 4);
	rig_wqe(&r->a, MLX5_OPCODE_SEND, RIG_CQE, 5, 0);
}

static void
opmod(struct rig *r)
{
	uint16_t at = r->a.pi;

	datagram(r, MLX5_OPCODE_SEND, 8, RIG_QKEY);
	*(uint8_t *)rig_seg(&r->a, at, 0) = 1;
}

/* Opmod gives the size: 8 for 4 bytes, 9 for 8 bytes. */
static void
masked_opmod(struct rig *r, uint8_t v, uint32_t bytes, uint8_t opcode, uint32_t ds)
{
	uint16_t at = r->a.pi;

	rig_raddr(&r->a, (uintptr_t)r->m.p + 4096, r->m.mr->rkey);
	memset(rig_seg(&r->a, at, 2), 0, 16);
	memset(rig_seg(&r->a, at, 3), 0, 16);
	rig_data(&r->a, ds - 1, &r->m, 0, bytes);
	rig_wqe(&r->a, opcode, RIG_CQE, ds, 0);
	*(uint8_t *)rig_seg(&r->a, at, 0) = v;
}

BUILD(masked_no_size, masked_opmod(r, 0, 8, MLX5_OPCODE_ATOMIC_MASKED_FA, 4))
BUILD(masked_16, masked_opmod(r, 0x0a, 16, MLX5_OPCODE_ATOMIC_MASKED_FA, 4))
BUILD(masked_short_cs, masked_opmod(r, 0x09, 8, MLX5_OPCODE_ATOMIC_MASKED_CS, 4))
BUILD(masked_wrong_piece, masked_opmod(r, 0x08, 8, MLX5_OPCODE_ATOMIC_MASKED_CS, 4))

/* The QP has atomic_mode 1, which allows plain atomics only. */
BUILD(masked_mode, masked_opmod(r, 0x08, 4, MLX5_OPCODE_ATOMIC_MASKED_CS, 4))

static void
refused_wqe(const struct wqe_case *c, const char *args)
{
	struct rig r;

	printf("%s\n", c->name);
	rig_start_with(&r, c->st, args);
	rig_recv(&r.b, &r.m, 8192, 8192);
	c->build(&r);
	rig_ring(&r.a);
	assert_int_equal(rig_expect_error(&r.a, 0, c->syndrome), c->vendor);
	assert_int_equal(rig_qp_state(&r.a), BB_PRM_QP_ERR);
	/* The peer of an unreliable QP does not notice. */
	if (c->st != BB_PRM_QP_ST_RC) {
		assert_int_equal(rig_qp_state(&r.b), BB_PRM_QP_RTS);
		rig_expect_none(&r.rcq, &r.u);
	}
	rig_end(&r);
}

TEST(test_wqes_the_type_lacks_are_refused)
{
	static const struct wqe_case cases[] = {
		{"UC READ", BB_PRM_QP_ST_UC, read_wqe, QP_OP, 0x6d},
		{"UC atomic", BB_PRM_QP_ST_UC, atomic_wqe, QP_OP, 0x6d},
		{"UD READ", BB_PRM_QP_ST_UD, read_wqe, QP_OP, 0x6d},
		{"UD WRITE", BB_PRM_QP_ST_UD, write_wqe, QP_OP, 0x6d},
		{"UD atomic", BB_PRM_QP_ST_UD, atomic_wqe, QP_OP, 0x6d},
		{"UD masked atomic", BB_PRM_QP_ST_UD, masked_wqe, QP_OP, 0x6d},
		{"UD UMR", BB_PRM_QP_ST_UD, umr_wqe, QP_OP, 0x6d},
		{"UD SEND_INV", BB_PRM_QP_ST_UD, send_inv_wqe, QP_OP, 0x6d},
		{"UD SEND without an address vector", BB_PRM_QP_ST_UD, no_av, QP_OP, 0x68},
		{"UD SEND with two thirds of one", BB_PRM_QP_ST_UD, short_av, QP_OP, 0x68},
		{"address vector of 16 bytes", BB_PRM_QP_ST_UD, compact_av, QP_OP, 0x68},
		{"empty source GID", BB_PRM_QP_ST_UD, empty_gid, QP_OP, 0x68},
		{"no GRH on RoCE", BB_PRM_QP_ST_UD, no_grh, QP_OP, 0x68},
		{"over the MTU", BB_PRM_QP_ST_UD, over_mtu, LENGTH, 0x69},
		{"key that does not exist", BB_PRM_QP_ST_UD, bad_key, PROT, 0x52},
		{"inline data beyond the WQE", BB_PRM_QP_ST_UD, inline_beyond, QP_OP, 0x68},
		{"opmod", BB_PRM_QP_ST_UD, opmod, QP_OP, 0x68},
		{"masked atomic of no size", BB_PRM_QP_ST_RC, masked_no_size, QP_OP, 0x68},
		{"masked atomic of 16 bytes", BB_PRM_QP_ST_RC, masked_16, QP_OP, 0x68},
		{"masked CMP_SWAP too short", BB_PRM_QP_ST_RC, masked_short_cs, QP_OP, 0x68},
		{"masked atomic, other piece", BB_PRM_QP_ST_RC, masked_wrong_piece, LENGTH, 0x69},
		{"masked atomic, atomic_mode 1", BB_PRM_QP_ST_RC, masked_mode, 0x12, 0x8a},
	};
	/* On InfiniBand a bit says whether there is a GRH. */
	static const struct wqe_case need_grh = {"no GRH where one is needed", BB_PRM_QP_ST_UD,
						 no_grh, QP_OP, 0x68},
				     grh_nowhere = {"GRH to nobody", BB_PRM_QP_ST_UD, grh_to_nobody,
						    QP_OP, 0x68};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused_wqe(&cases[i], NULL);
	refused_wqe(&need_grh, "link=ib,grh_required");
	refused_wqe(&grh_nowhere, "link=ib");
}

struct edit {
	uint32_t at;
	struct bb_prm_field f;
	uint32_t v;
};
#define Q(name, v)                                                                                 \
	{                                                                                          \
		QPC, BB_PRM_QPC_##name, v                                                          \
	}
#define A(name, v)                                                                                 \
	{                                                                                          \
		ADS, BB_PRM_ADS_##name, v                                                          \
	}
#define O(v)                                                                                       \
	{                                                                                          \
		0, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, v                                              \
	}

/* Each mailbox is refused with BAD_PARAM; the same command without the bad field succeeds. */
TEST(test_fields_the_type_lacks_are_refused)
{
	static const struct {
		const char *name;
		uint32_t st;
		uint16_t op;
		struct edit edit[2];
	} cases[] = {
		{"another st", BB_PRM_QP_ST_UC, BB_PRM_OP_RST2INIT_QP, {Q(ST, 0)}},
		{"UC rre", BB_PRM_QP_ST_UC, BB_PRM_OP_RST2INIT_QP, {Q(RRE, 1)}},
		{"UC rae", BB_PRM_QP_ST_UC, BB_PRM_OP_RST2INIT_QP, {Q(RAE, 1)}},
		{"UC q_key", BB_PRM_QP_ST_UC, BB_PRM_OP_RST2INIT_QP, {Q(Q_KEY, 1)}},
		{"UC log_rra_max", BB_PRM_QP_ST_UC, BB_PRM_OP_INIT2RTR_QP, {Q(LOG_RRA_MAX, 1)}},
		{"UC min_rnr_nak", BB_PRM_QP_ST_UC, BB_PRM_OP_INIT2RTR_QP, {Q(MIN_RNR_NAK, 1)}},
		{"UC RRE", BB_PRM_QP_ST_UC, BB_PRM_OP_INIT2RTR_QP, {O(BB_PRM_OPTPAR_RRE)}},
		{"UC no path", BB_PRM_QP_ST_UC, BB_PRM_OP_INIT2RTR_QP, {A(HOP_LIMIT, 0)}},
		{"UC retry_count", BB_PRM_QP_ST_UC, BB_PRM_OP_RTR2RTS_QP, {Q(RETRY_COUNT, 1)}},
		{"UC rnr_retry", BB_PRM_QP_ST_UC, BB_PRM_OP_RTR2RTS_QP, {Q(RNR_RETRY, 1)}},
		{"UC log_sra_max", BB_PRM_QP_ST_UC, BB_PRM_OP_RTR2RTS_QP, {Q(LOG_SRA_MAX, 1)}},
		{"UC timeout", BB_PRM_QP_ST_UC, BB_PRM_OP_RTR2RTS_QP, {A(ACK_TIMEOUT, 1)}},
		{"UC RNR_TIMEOUT",
		 BB_PRM_QP_ST_UC,
		 BB_PRM_OP_RTR2RTS_QP,
		 {O(BB_PRM_OPTPAR_RNR_TIMEOUT)}},
		{"UD rwe", BB_PRM_QP_ST_UD, BB_PRM_OP_RST2INIT_QP, {Q(RWE, 1)}},
		{"UD atomic_mode", BB_PRM_QP_ST_UD, BB_PRM_OP_RST2INIT_QP, {Q(ATOMIC_MODE, 1)}},
		{"UD port 2", BB_PRM_QP_ST_UD, BB_PRM_OP_RST2INIT_QP, {A(VHCA_PORT_NUM, 2)}},
		{"UD remote_qpn", BB_PRM_QP_ST_UD, BB_PRM_OP_INIT2RTR_QP, {Q(REMOTE_QPN, 1)}},
		{"UD next_rcv_psn", BB_PRM_QP_ST_UD, BB_PRM_OP_INIT2RTR_QP, {Q(NEXT_RCV_PSN, 1)}},
		{"UD hop_limit", BB_PRM_QP_ST_UD, BB_PRM_OP_INIT2RTR_QP, {A(HOP_LIMIT, 1)}},
		{"UD mtu 0", BB_PRM_QP_ST_UD, BB_PRM_OP_INIT2RTR_QP, {Q(MTU, 0)}},
		{"UD RWE", BB_PRM_QP_ST_UD, BB_PRM_OP_INIT2RTR_QP, {O(BB_PRM_OPTPAR_RWE)}},
		{"UD PRI_PORT",
		 BB_PRM_QP_ST_UD,
		 BB_PRM_OP_INIT2RTR_QP,
		 {O(BB_PRM_OPTPAR_PRI_PORT)}},
		{"UD rnr_retry", BB_PRM_QP_ST_UD, BB_PRM_OP_RTR2RTS_QP, {Q(RNR_RETRY, 1)}},
		{"UD PKEY_INDEX",
		 BB_PRM_QP_ST_UD,
		 BB_PRM_OP_RTR2RTS_QP,
		 {O(BB_PRM_OPTPAR_PKEY_INDEX)}},
		{"RC Q_KEY", BB_PRM_QP_ST_RC, BB_PRM_OP_RTR2RTS_QP, {O(BB_PRM_OPTPAR_Q_KEY)}},
		{"RC q_key", BB_PRM_QP_ST_RC, BB_PRM_OP_RST2INIT_QP, {Q(Q_KEY, 1)}},
	};
	static const uint16_t way[] = {BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,
				       BB_PRM_OP_RTR2RTS_QP};
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	struct rig_link l = rig_link_default();
	size_t i, k;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig r;

		printf("%s\n", cases[i].name);
		rig_start(&r, cases[i].st);
		rig_qp_reset(&r.a);
		for (k = 0; way[k] != cases[i].op; k++)
			assert_int_equal(rig_qp_modify(&r.a, way[k], &r.d, r.b.qpn, &l), 0);
		rig_qp_mailbox(&r.a, cases[i].op, &r.d, r.b.qpn, &l, in);
		for (k = 0; k < 2 && cases[i].edit[k].f.width != 0; k++)
			bb_prm_set(in + cases[i].edit[k].at, cases[i].edit[k].f,
				   cases[i].edit[k].v);
		assert_int_equal(soft_cmd_if.obj_modify(r.a.obj, in, sizeof(in), out, sizeof(out)),
				 -EREMOTEIO);
		assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), BB_PRM_STAT_BAD_PARAM);
		assert_int_equal(rig_qp_modify(&r.a, cases[i].op, &r.d, r.b.qpn, &l), 0);
		rig_end(&r);
	}
}

/* The Q_Key is applied only with its bit, in every transition after RST2INIT. */
TEST(test_qkey_is_applied_only_with_its_bit)
{
	static const uint16_t way[] = {BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2INIT_QP,
				       BB_PRM_OP_INIT2RTR_QP, BB_PRM_OP_RTR2RTS_QP,
				       BB_PRM_OP_RTS2RTS_QP};
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];
	uint32_t want = 0x100;
	struct rig_link l = rig_link_default();
	struct rig r;
	size_t i;

	rig_start(&r, BB_PRM_QP_ST_UD);
	rig_qp_reset(&r.a);
	assert_int_equal(rig_qp_query(&r.a, BB_PRM_QPC_Q_KEY), 0);
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		rig_qp_mailbox(&r.a, way[i], &r.d, 0, &l, in);
		bb_prm_set(in + QPC, BB_PRM_QPC_Q_KEY, 0x100 + (uint32_t)i);
		/* Alternates between the bit set and clear; RST2INIT does not need it. */
		if (i % 2 == 1)
			bb_prm_set(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK, BB_PRM_OPTPAR_Q_KEY);
		if (i == 0 || i % 2 == 1)
			want = 0x100 + (uint32_t)i;
		OK(soft_cmd_if.obj_modify(r.a.obj, in, sizeof(in), out, sizeof(out)));
		assert_int_equal(rig_qp_query(&r.a, BB_PRM_QPC_Q_KEY), want);
	}
	rig_end(&r);
}

/*
 * The receiver's engine does not run. The sender's requests complete in order; datagrams that the
 * device cannot queue are lost.
 */
TEST(test_idle_receiver_loses_what_cannot_be_queued)
{
	const unsigned int many = 5000;
	struct rig_qp_attr attr = {
		.log_sq = 6, .log_rq = 13, .log_stride = 4, .uidx = 0xb0b, .st = BB_PRM_QP_ST_UD};
	struct rig_uar u2;
	struct rig_link l = rig_link_default();
	struct rig_cqe e;
	unsigned int i, n;
	struct rig r;

	rig_start(&r, BB_PRM_QP_ST_UD);
	rig_qp_close(&r.b);
	rig_cq_close(&r.rcq);
	rig_uar_open(&u2, &r.d, MLX5_UAR_BF);
	rig_cq_open(&r.rcq, &u2, 13);
	rig_qp_open(&r.b, &u2, &r.rcq, &r.rcq, &attr);
	rig_qp_up(&r.b, &r.d, 0, &l);
	for (i = 0; i < many; i++)
		rig_recv(&r.b, &r.m, 4096, 48);
	for (i = 0; i < many; i++) {
		memcpy(r.m.p, &i, sizeof(i));
		datagram(&r, MLX5_OPCODE_SEND_IMM, 8, RIG_QKEY);
		/* The immediate value identifies the datagram. */
		((uint32_t *)rig_seg(&r.a, r.a.last, 0))[3] = i;
		rig_done(&r.a, MLX5_OPCODE_SEND_IMM, r.a.last);
	}
	rig_expect_none(&r.rcq, &r.u);
	for (n = 0; n < 4096; n++) {
		rig_wait(&r.rcq, &u2, &e);
		assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_IMM);
		assert_int_equal(e.imm, n);
	}
	rig_expect_none(&r.rcq, &u2);
	/* The receiver works again. */
	datagram(&r, MLX5_OPCODE_SEND, 8, RIG_QKEY);
	rig_done(&r.a, MLX5_OPCODE_SEND, r.a.last);
	rig_wait(&r.rcq, &u2, &e);
	assert_int_equal(e.bytes, 48);
	/* Datagrams in flight to a QP that is destroyed are freed. */
	datagram(&r, MLX5_OPCODE_SEND, 8, RIG_QKEY);
	rig_done(&r.a, MLX5_OPCODE_SEND, r.a.last);
	rig_qp_close(&r.b);
	rig_cq_close(&r.rcq);
	rig_uar_close(&u2);
	rig_qp_close(&r.a);
	rig_mem_close(&r.m);
	rig_cq_close(&r.scq);
	rig_uar_close(&r.u);
	rig_dev_close(&r.d);
}

TEST_MAIN(0)
