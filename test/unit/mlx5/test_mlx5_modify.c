/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The mailboxes of the QP transitions, and the decoding of QUERY_QP. */
#include "mlx5_fixture.h"

#define ACCESS_BITS (BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE)
#define INIT_MASK   (BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS)
#define RTR_MASK                                                                                   \
	(BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN |               \
	 BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
	(BB_QP_STATE | BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN |          \
	 BB_QP_MAX_RD_ATOMIC)

static const uint8_t dgid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 7};

static struct bb_qp_attr
attributes(void)
{
	struct bb_qp_attr a = DEFAULTS(qp_attr);

	a.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC;
	a.path_mtu = 2048;
	a.dest_qpn = 0x345678;
	a.rq_psn = 0xabcdef;
	a.sq_psn = 0x123456;
	a.max_rd_atomic = 5;
	a.max_dest_rd_atomic = 5;
	a.min_rnr_timer = 12;
	a.timeout = 17;
	a.retry_cnt = 6;
	a.rnr_retry = 3;
	memcpy(a.path.dgid, dgid, sizeof(dgid));
	a.path.sgid_index = 1;
	a.path.hop_limit = 33;
	a.path.traffic_class = 0x69;
	a.path.sl = 5;
	a.path.flow_label = 0xabcde;
	return a;
}

static void
to_state(struct fixture *f, struct bb_qp_attr *a, enum bb_qp_state state, uint32_t mask)
{
	a->state = state;
	assert_int_equal(bb_qp_modify(f->qp, a, mask), 0);
}

static void
to_rts(struct fixture *f, struct bb_qp_attr *a)
{
	to_state(f, a, BB_QP_INIT, INIT_MASK);
	to_state(f, a, BB_QP_RTR, RTR_MASK);
	to_state(f, a, BB_QP_RTS, RTS_MASK);
}

/*
 * Returns the context of the last mailbox of @op after checking its QP number and optional
 * parameters.
 */
static const uint8_t *
context(uint16_t op, uint32_t qpn, uint32_t opt)
{
	const uint8_t *in = stub_box(op);

	assert_non_null(in);
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_QP_QPN), qpn);
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK), opt);
	return in + BB_PRM_MODIFY_QP_QPC.byte;
}

T_QP(test_rst2init_mailbox_has_port_rights_and_counter_set)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *c, *ads;

	a.pkey_index = 3;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	c = context(BB_PRM_OP_RST2INIT_QP, f->qp->qpn, 0);
	ads = c + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_PM_STATE), 3);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RRE), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RWE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RAE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_ATOMIC_MODE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_COUNTER_SET_ID), STUB_FIRST_ID & 0xff);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM), 1);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_PKEY_INDEX), 3);

	/* INIT to INIT names the changed attributes. */
	a.pkey_index = 4;
	to_state(f, &a, BB_QP_INIT, BB_QP_STATE | BB_QP_PKEY_INDEX);
	c = context(BB_PRM_OP_INIT2INIT_QP, f->qp->qpn, BB_PRM_OPTPAR_PKEY_INDEX);
	ads = c + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_PKEY_INDEX), 4);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM), 1);
	to_state(f, &a, BB_QP_INIT, BB_QP_STATE | BB_QP_ACCESS | BB_QP_PORT);
	context(BB_PRM_OP_INIT2INIT_QP, f->qp->qpn, ACCESS_BITS | BB_PRM_OPTPAR_PRI_PORT);
}

/* A query returns the path that was set, on each type of link. */
static void
path_back(const struct fixture *f, const uint8_t *ads, const struct bb_path *want)
{
	struct bb_path p;

	mlx5_path_get(mlx5_dev_of(f->dev), ads, &p);
	assert_fields(p, port, want->port, sgid_index, want->sgid_index);
	assert_fields(p, hop_limit, want->hop_limit, traffic_class, want->traffic_class);
	assert_fields(p, flow_label, want->flow_label, static_rate, want->static_rate);
	assert_fields(p, sl, want->sl, dlid, want->dlid, is_global, want->is_global);
	assert_int_equal(p.src_path_bits, want->src_path_bits);
	assert_memory_equal(p.dgid, want->dgid, sizeof(p.dgid));
}

T_F(test_init2rtr_mailbox_has_the_roce_path)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *c, *ads;

	memcpy(stub.dmac, "\x02\x11\x22\x33\x44\x55", 6);
	open_qp(f);
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	to_state(f, &a, BB_QP_RTR, RTR_MASK);
	c = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0);
	ads = c + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_MTU), 4);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_MSG_MAX), 30);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_REMOTE_QPN), 0x345678);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_NEXT_RCV_PSN), 0xabcdef);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_MIN_RNR_NAK), 12);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RRA_MAX), 3);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_RMAC_47_32), 0x0211);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_RMAC_31_0), 0x22334455);
	assert_memory_equal(ads + BB_PRM_ADS_RGID_RIP.byte, dgid, sizeof(dgid));
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX), 1);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT), 33);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_DSCP), 0x69 >> 2);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_TCLASS), 0x69);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_ETH_PRIO), 5);
	/* 0x3cde ^ (0xabcde >> 14 = 0x2a), on top of 0xc000. */
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), 0xc000 + (0x3cde ^ 0x2a));
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_RLID), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_GRH), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_SL), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_MLID), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM), 1);
	path_back(f, ads, &a.path);
}

/* RoCE v1 has no UDP port and no DSCP. */
T_QP(test_roce_v1_path_has_no_udp_port_and_dscp)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *ads;

	a.path.sgid_index = 0;
	a.path.hop_limit = 0;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	a.pkey_index = 2;
	to_state(f, &a, BB_QP_RTR, RTR_MASK | BB_QP_ACCESS | BB_QP_PKEY_INDEX);
	ads = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, ACCESS_BITS | BB_PRM_OPTPAR_PKEY_INDEX) +
	      BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_DSCP), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_PKEY_INDEX), 2);
	/* The first router would drop a hop limit of 0. */
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT), 64);
}

/* A QP that serves no READs and atomics grants no right to them, whatever its access flags. */
T_QP(test_qp_that_serves_no_reads_grants_no_right_to_them)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *c;

	a.access |= BB_ACCESS_REMOTE_READ;
	a.max_dest_rd_atomic = 0;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	to_state(f, &a, BB_QP_RTR, RTR_MASK);
	c = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, ACCESS_BITS);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RWE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RRE), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RAE), 0);
	to_state(f, &a, BB_QP_RTS, RTS_MASK | BB_QP_ACCESS);
	c = context(BB_PRM_OP_RTR2RTS_QP, f->qp->qpn, ACCESS_BITS);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RWE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RRE), 0);
	to_state(f, &a, BB_QP_RTS, BB_QP_STATE | BB_QP_ACCESS);
	c = context(BB_PRM_OP_RTS2RTS_QP, f->qp->qpn, ACCESS_BITS);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RAE), 0);
}

/* The port for flow label 0 is derived from the QP numbers and stays in the device's range. */
T_F(test_source_port_without_flow_label_follows_the_qpns)
{
	struct bb_qp_attr a = attributes();
	uint32_t port, ports[2];

	bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT, 0xf000);
	bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT, 0xf00f);
	open_qp(f);
	a.path.flow_label = 0;
	for (unsigned int i = 0; i < 200; i++) {
		a.dest_qpn = 0x100 + i * 77;
		to_state(f, &a, BB_QP_INIT, INIT_MASK);
		to_state(f, &a, BB_QP_RTR, RTR_MASK);
		port = bb_prm_get(context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0) +
					  BB_PRM_QPC_ADS.byte,
				  BB_PRM_ADS_UDP_SPORT);
		assert_in_range(port, 0xf000, 0xf00f);
		ports[i & 1] = port;
		to_state(f, &a, BB_QP_RESET, BB_QP_STATE);
		stub.n_boxes = 0;
	}
	assert_int_not_equal(ports[0], ports[1]);
}

/* The static rate is the device's code, or that of the next lower rate that the device has. */
T_F(test_static_rate_is_rounded_down_to_the_devices)
{
	/* enum ibv_rate values and device codes: kernel, ib_to_mlx5_rate_map(). */
	static const struct {
		uint32_t support;
		uint8_t rate;
		uint32_t code;
		uint8_t back; /* rate that a query returns */
	} rates[] = {
		{0xfffe, 0, 0, 0},
		{0xfffe, 2, 7, 2},
		{0xfffe, 3, 8, 3},
		{0xfffe, 10, 15, 10},
		{0xfffe, 12, 1, 12},
		{0xfffe, 15, 2, 15},
		{0xfffe, 16, 3, 16},
		{0xfffe, 17, 4, 17},
		{0xfffe, 20, 5, 20},
		{0xfffe, 21, 6, 21},
		/* 14, 168, 600 and 800 Gb/s have no code of four bits: the next lower rate. */
		{0xfffe, 11, 15, 10},
		{0xfffe, 14, 1, 12},
		{0xfffe, 22, 6, 21},
		{0xfffe, 23, 6, 21},
		/* Some devices support few rates, or none. */
		{1 << 8, 10, 8, 3},
		{1 << 8, 2, 0, 0},
		{1 << 6 | 1 << 8, 2, 0, 0},
		{0, 17, 0, 0},
	};
	struct bb_qp_attr a = attributes();
	struct bb_path back;
	const uint8_t *ads;

	for (unsigned int i = 0; i < RTE_DIM(rates); i++) {
		bb_prm_set(stub.general, BB_PRM_HCA_STAT_RATE_SUPPORT, rates[i].support);
		open_qp(f);
		a.path.static_rate = rates[i].rate;
		to_state(f, &a, BB_QP_INIT, INIT_MASK);
		to_state(f, &a, BB_QP_RTR, RTR_MASK);
		ads = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0) + BB_PRM_QPC_ADS.byte;
		assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_STAT_RATE), rates[i].code);
		mlx5_path_get(mlx5_dev_of(f->dev), ads, &back);
		assert_int_equal(back.static_rate, rates[i].back);
		close_dev(f);
		stub.n_boxes = 0;
	}
}

/* The UDP source port: from the flow label, else from both QP numbers, in the device's range. */
T_F(test_source_port_stays_in_the_devices_range)
{
	static const struct {
		uint32_t min, max, flow_label, port;
	} cases[] = {
		{0xc000, 0xffff, 0x3fff, 0xffff},
		/* From 0xabcdf1 * 0xfedcba, as the kernel's rdma_calc_flow_label(). */
		{0xc000, 0xffff, 0, 0xdaef},
		{0xd000, 0xd00f, 0x3fff, 0xd00f},
		{0xd000, 0xd00f, 0x3ff0, 0xd000},
		{0xd00f, 0xd00f, 0x3ff0, 0xd00f},
		/* Invalid ranges: the dynamic ports are used. */
		{0, 0xd00f, 0x3fff, 0xffff},
		{0xd010, 0xd00f, 0, 0xdaef},
	};
	struct bb_qp_attr a = attributes();
	const uint8_t *ads;

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		stub_reset();
		bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT, cases[i].min);
		bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT, cases[i].max);
		stub.next_id = 0xabcdef;
		open_qp(f);
		assert_int_equal(f->qp->qpn, 0xabcdf1);
		a.dest_qpn = 0xfedcba;
		a.path.flow_label = cases[i].flow_label;
		to_state(f, &a, BB_QP_INIT, INIT_MASK);
		to_state(f, &a, BB_QP_RTR, RTR_MASK);
		ads = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0) + BB_PRM_QPC_ADS.byte;
		assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), cases[i].port);
		close_dev(f);
	}
}

T_F(test_init2rtr_mailbox_has_the_infiniband_path)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *ads;

	stub.port.link_layer = BB_LINK_INFINIBAND;
	memcpy(stub.dmac, "\x02\x11\x22\x33\x44\x55", 6);
	open_qp(f);
	a.path.dlid = 0x1357;
	a.path.sl = 9;
	a.path.src_path_bits = 0x2b;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	to_state(f, &a, BB_QP_RTR, RTR_MASK);
	ads = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0) + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_RLID), 0x1357);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_SL), 9);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_MLID), 0x2b);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM), 1);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_GRH), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_RMAC_31_0), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT), 0);

	to_state(f, &a, BB_QP_RESET, BB_QP_STATE);
	a.path.is_global = 1;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	to_state(f, &a, BB_QP_RTR, RTR_MASK);
	ads = context(BB_PRM_OP_INIT2RTR_QP, f->qp->qpn, 0) + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_GRH), 1);
	assert_memory_equal(ads + BB_PRM_ADS_RGID_RIP.byte, dgid, sizeof(dgid));
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_FLOW_LABEL), 0xabcde);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT), 33);
	path_back(f, ads, &a.path);
}

T_QP(test_rtr2rts_mailbox_has_psn_retries_and_depths)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *c, *ads;

	to_rts(f, &a);
	c = context(BB_PRM_OP_RTR2RTS_QP, f->qp->qpn, 0);
	ads = c + BB_PRM_QPC_ADS.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_NEXT_SEND_PSN), 0x123456);
	/* 5 READs: rounded down at the initiator, up at the target. */
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_SRA_MAX), 2);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RETRY_COUNT), 6);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RNR_RETRY), 3);
	/* Requests an acknowledgement every 2^8 packets. */
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_ACK_REQ_FREQ), 8);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_ACK_TIMEOUT), 17);

	a.access = BB_ACCESS_REMOTE_READ;
	a.min_rnr_timer = 21;
	to_state(f, &a, BB_QP_RTS, BB_QP_STATE | BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER);
	c = context(BB_PRM_OP_RTS2RTS_QP, f->qp->qpn, ACCESS_BITS | BB_PRM_OPTPAR_RNR_TIMEOUT);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RRE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RWE), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_MIN_RNR_NAK), 21);

	to_state(f, &a, BB_QP_ERR, BB_QP_STATE);
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_2ERR_QP), BB_PRM_MODIFY_QP_QPN), f->qp->qpn);
	to_state(f, &a, BB_QP_RESET, BB_QP_STATE);
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_2RST_QP), BB_PRM_MODIFY_QP_QPN), f->qp->qpn);
}

/* Without the capability atomics are not in the context and cannot be requested. */
T_F(test_atomics_without_the_capability_are_refused)
{
	struct bb_qp_attr a = attributes();
	const uint8_t *c;

	bb_prm_set(stub.general, BB_PRM_HCA_ATOMIC, 0);
	open_qp(f);
	a.state = BB_QP_INIT;
	assert_int_equal(bb_qp_modify(f->qp, &a, INIT_MASK), -EINVAL);
	a.access = BB_ACCESS_REMOTE_WRITE;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	c = context(BB_PRM_OP_RST2INIT_QP, f->qp->qpn, 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_ATOMIC_MODE), 0);
}

T_QP(test_refused_modify_changes_nothing)
{
	struct bb_qp_attr a = attributes();

	stub.fail_op = BB_PRM_OP_RST2INIT_QP;
	stub.fail_status = BB_PRM_STAT_BAD_QP_STATE;
	a.state = BB_QP_INIT;
	assert_int_equal(bb_qp_modify(f->qp, &a, INIT_MASK), -EINVAL);
	assert_int_equal(f->qp->state, BB_QP_RESET);
	stub.fail_op = 0;
	to_state(f, &a, BB_QP_INIT, INIT_MASK);
	stub.av_errno = -EHOSTUNREACH;
	a.state = BB_QP_RTR;
	assert_int_equal(bb_qp_modify(f->qp, &a, RTR_MASK), -EHOSTUNREACH);
	assert_int_equal(f->qp->state, BB_QP_INIT);
	stub.av_errno = 0;
	to_state(f, &a, BB_QP_RTR, RTR_MASK);
}

T_QP(test_query_translates_the_context)
{
	static const struct {
		uint32_t prm;
		enum bb_qp_state state;
	} states[] = {
		{BB_PRM_QP_RST, BB_QP_RESET}, {BB_PRM_QP_INIT, BB_QP_INIT},
		{BB_PRM_QP_RTR, BB_QP_RTR},   {BB_PRM_QP_RTS, BB_QP_RTS},
		{BB_PRM_QP_SQD, BB_QP_SQD},   {BB_PRM_QP_SQER, BB_QP_ERR},
		{BB_PRM_QP_ERR, BB_QP_ERR},
	};
	uint8_t *c = stub.query_qpc + BB_PRM_QUERY_QP_OUT_QPC.byte;
	struct bb_qp_attr a = attributes(), q;

	to_rts(f, &a);
	bb_prm_set(c, BB_PRM_QPC_STATE, BB_PRM_QP_RTS);
	bb_prm_set(c, BB_PRM_QPC_MTU, 5);
	bb_prm_set(c, BB_PRM_QPC_RRE, 1);
	bb_prm_set(c, BB_PRM_QPC_REMOTE_QPN, 0x111);
	bb_prm_set(c, BB_PRM_QPC_NEXT_RCV_PSN, 0x222);
	bb_prm_set(c, BB_PRM_QPC_NEXT_SEND_PSN, 0x333);
	bb_prm_set(c, BB_PRM_QPC_LOG_SRA_MAX, 3);
	bb_prm_set(c, BB_PRM_QPC_LOG_RRA_MAX, 4);
	bb_prm_set(c, BB_PRM_QPC_RETRY_COUNT, 2);
	bb_prm_set(c + BB_PRM_QPC_ADS.byte, BB_PRM_ADS_SRC_ADDR_INDEX, 2);
	bb_prm_set(c + BB_PRM_QPC_ADS.byte, BB_PRM_ADS_VHCA_PORT_NUM, 1);
	bb_prm_set(c + BB_PRM_QPC_ADS.byte, BB_PRM_ADS_ACK_TIMEOUT, 9);
	assert_int_equal(bb_qp_query(f->qp, &q), 0);
	assert_fields(q, state, BB_QP_RTS, access, BB_ACCESS_REMOTE_READ, path_mtu, 4096);
	assert_fields(q, dest_qpn, 0x111, rq_psn, 0x222, sq_psn, 0x333, max_rd_atomic, 8);
	assert_fields(q, max_dest_rd_atomic, 16, retry_cnt, 2, timeout, 9, path.sgid_index, 2);
	for (size_t i = 0; i < RTE_DIM(states); i++) {
		bb_prm_set(c, BB_PRM_QPC_STATE, states[i].prm);
		assert_int_equal(bb_qp_query(f->qp, &q), 0);
		assert_int_equal(q.state, states[i].state);
		/*
		 * Only the move to ERR by the device is taken over; the owner makes all other
		 * moves.
		 */
		assert_int_equal(f->qp->state,
				 states[i].state == BB_QP_ERR ? BB_QP_ERR : BB_QP_RTS);
	}
	/* In ERR the attributes set last remain. */
	assert_int_equal(q.dest_qpn, 0x345678);
	stub.fail_op = BB_PRM_OP_QUERY_QP;
	stub.fail_errno = -EIO;
}

TEST_MAIN(stub_eal_init("mlx5_modify"))
