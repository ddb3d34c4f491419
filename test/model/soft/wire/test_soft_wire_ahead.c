/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Out-of-order packets that a queue pair of the software device holds after a lost packet: they
 * are freed with the queue pair, their number is bounded, and traffic works without holding any.
 * AddressSanitizer finds leaked packets.
 */
#include "../soft_rig.h"
#include "soft_ctl.h"
#include "soft_wire.h"

#define LEN   32768u
#define SEEDS 10u

static uint32_t
kept(const struct soft_engine *e)
{
	return __atomic_load_n(&e->n_stored_packets, __ATOMIC_RELAXED);
}

/* Opens a pair with packet loss by @more, and posts a WRITE of many packets; none is sent yet. */
static struct soft_engine *
begin(struct rig_pair *p, const char *more, uint32_t seed)
{
	struct rig_link l = rig_link_default();
	char args[160];

	l.mtu = 1;
	l.retry = 7;
	l.timeout = 10;
	assert_true(snprintf(args, sizeof(args),
			     "wire=1,virtual_time,tx_drop=10,tx_delay=20,seed=%u%s", seed,
			     more) < (int)sizeof(args));
	rig_pair_open(p, args, false, &l);
	/*
	 * The peer has shown that it repeats selectively: all packets it sends belong to one
	 * message.
	 */
	rig_soft_qp(&p->b)->wire->roce.resp.store_until = UINT64_MAX;
	rig_write(&p->a, &p->ma, 0, LEN, &p->mb, 0, RIG_CQE);
	return rig_soft_qp(&p->b)->engine;
}

/* Runs until some packets are held. */
static void
until_kept(struct rig_pair *p, const struct soft_engine *e)
{
	uint32_t i;

	rig_ring(&p->a);
	for (i = 0; kept(e) == 0; i++) {
		assert_true(i < 100000);
		rig_poll(p->u[0]);
	}
	assert_int_equal(rig_soft_qp(&p->b)->wire->roce.resp.n_out_of_order, kept(e));
}

/*
 * Runs to the end. *most: the largest number of packets held. Returns the number of resent
 * packets.
 */
static uint64_t
finish(struct rig_pair *p, const struct soft_engine *e, uint32_t *most)
{
	struct rig_cqe c;
	uint32_t i;

	*most = 0;
	rig_ring(&p->a);
	for (i = 0; !rig_cqe(&p->ca, &c); i++) {
		assert_true(i < 1000000);
		rig_poll(p->u[0]);
		if (kept(e) > *most)
			*most = kept(e);
	}
	assert_int_equal(c.opcode, 0);
	assert_memory_equal(p->mb.p, p->ma.p, LEN);
	return rig_soft_qp(&p->a)->wire->roce.stats.retransmitted;
}

TEST(test_reset_drops_packets_held_ahead)
{
	struct soft_engine *e;
	struct rig_pair p;
	uint32_t seed;

	for (seed = 1; seed <= SEEDS; seed++) {
		e = begin(&p, "", seed);
		until_kept(&p, e);
		if (seed % 2 == 0)
			rig_qp_error(&p.b);
		rig_qp_reset(&p.b);
		assert_int_equal(kept(e), 0);
		/* Packets in flight find no queue pair. */
		rig_polls(p.u[0], 100);
		assert_int_equal(kept(e), 0);
		rig_pair_close(&p);
	}
}

TEST(test_error_drops_packets_held_ahead)
{
	struct soft_engine *e;
	struct rig_pair p;

	e = begin(&p, "", 1);
	until_kept(&p, e);
	rig_qp_error(&p.b);
	assert_int_equal(kept(e), 0);
	rig_pair_close(&p);
}

TEST(test_destroyed_qp_drops_packets_held_ahead)
{
	struct soft_engine *e;
	struct rig_pair p;
	uint32_t seed;

	for (seed = 1; seed <= SEEDS; seed++) {
		e = begin(&p, "", seed);
		until_kept(&p, e);
		rig_qp_close(&p.b);
		assert_int_equal(kept(e), 0);
		rig_polls(p.u[0], 100);
		assert_int_equal(kept(e), 0);
		rig_qp_close(&p.a);
		rig_cq_close(&p.ca);
		rig_cq_close(&p.cb);
		rig_mem_close(&p.ma);
		rig_mem_close(&p.mb);
		rig_uar_close(&p.ua);
		rig_dev_close(&p.d);
	}
}

/*
 * Other queue pairs of the engine hold almost all packets that the bound allows: this queue pair
 * works with the remainder.
 */
TEST(test_qp_works_with_the_rest_of_the_bound)
{
	struct soft_engine *e;
	struct rig_pair p;
	uint32_t left, most;

	for (left = 0; left < 4; left++) {
		e = begin(&p, "", 1 + left);
		e->n_stored_packets = SOFT_WIRE_QUEUE - left;
		(void)finish(&p, e, &most);
		assert_int_equal(most, SOFT_WIRE_QUEUE);
		assert_int_equal(kept(e), SOFT_WIRE_QUEUE - left);
		e->n_stored_packets = 0;
		rig_pair_close(&p);
	}
}

/*
 * All packets of the bound are held, some of them for a dead sender's packet that never comes. A
 * queue pair that waits only briefly keeps its share; in the end the room goes to others.
 */
TEST(test_packets_of_a_dead_sender_lose_their_room)
{
	const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6};
	struct soft_wire *dead, *alive;
	struct soft_engine *e;
	struct rig_qp c, d;
	struct rig_link l = rig_link_default();
	struct rig_pair p;
	uint32_t fill, n;
	struct rig_cqe cqe;
	int late;

	e = begin(&p, "", 1);
	until_kept(&p, e);
	rig_qp_error(&p.a);
	rig_polls(p.u[0], 1000);
	n = kept(e);
	assert_int_not_equal(n, 0);
	dead = rig_soft_qp(&p.b)->wire;
	l.mtu = 1;
	l.retry = 7;
	l.timeout = 10;
	rig_qp_open(&c, p.u[0], &p.ca, &p.ca, &attr);
	rig_qp_open(&d, p.u[0], &p.cb, &p.cb, &attr);
	rig_connect(&c, &d, &l);
	alive = rig_soft_qp(&d)->wire;
	alive->roce.resp.store_until = UINT64_MAX;
	fill = SOFT_WIRE_QUEUE - n;
	e->n_stored_packets += fill;
	while (rig_cqe(&p.ca, &cqe))
		;
	for (late = 0; late < 2; late++) {
		memset(p.mb.p, 0, LEN);
		rig_write(&c, &p.ma, 0, LEN, &p.mb, 0, RIG_CQE);
		rig_ring(&c);
		while (!rig_cqe(&p.ca, &cqe))
			rig_poll(p.u[0]);
		assert_int_equal(cqe.opcode, 0);
		assert_memory_equal(p.mb.p, p.ma.p, LEN);
		assert_int_equal(dead->roce.resp.n_out_of_order, late ? 0 : n);
		assert_true((alive->roce.stats.stored != 0) == late);
		e->dev->virtual_us += 100000;
	}
	assert_int_equal(kept(e), fill);
	e->n_stored_packets = 0;
	rig_qp_close(&c);
	rig_qp_close(&d);
	rig_pair_close(&p);
}

/*
 * Without holding, like an adapter that drops out-of-order packets: no packet is held, and many
 * more are sent.
 */
TEST(test_device_that_holds_nothing_resends_more)
{
	uint64_t again[2] = {0};
	struct soft_engine *e;
	struct rig_pair p;
	uint32_t seed, i, most;

	for (seed = 1; seed <= SEEDS; seed++)
		for (i = 0; i < 2; i++) {
			e = begin(&p, i == 0 ? "" : ",no_keep", seed);
			again[i] += finish(&p, e, &most);
			assert_int_equal(kept(e), 0);
			assert_int_equal(rig_soft_qp(&p.a)->wire->roce.attr.selective, i == 0);
			if (i == 0)
				assert_in_range(most, 1, SOFT_WIRE_MAX_OOO - 1);
			else
				assert_int_equal(most + rig_soft_qp(&p.b)->wire->roce.stats.stored,
						 0);
			rig_pair_close(&p);
		}
	printf("%ju sent again, without keeping %ju\n", (uintmax_t)again[0], (uintmax_t)again[1]);
	assert_true(again[0] * 4 < again[1]);
}

/* Delivers a packet of the QP's peer with a PSN @ahead after the first one. */
static void
deliver(struct rig_pair *p, uint8_t opcode, uint32_t ahead, uint32_t len, uint32_t rkey)
{
	static const uint8_t payload[1024];
	struct soft_wire *w = rig_soft_qp(&p->b)->wire;
	const struct bb_roce_attr *attr = &w->roce.attr;
	const struct bb_roce_pkt pkt = {
		.opcode = opcode,
		.flags = BB_ROCE_MIGREQ,
		.pkey = attr->pkey,
		.dqpn = p->b.qpn,
		.psn = (attr->rq_psn + ahead) & BB_ROCE_PSN_MASK,
		.va = (uintptr_t)p->mb.p,
		.rkey = rkey,
		.dmalen = len,
		.imm = rkey,
		.payload = payload,
		.len = len,
	};
	struct bb_roce_net net = attr->path;

	memcpy(net.src, attr->path.dst, 16);
	memcpy(net.dst, attr->path.src, 16);
	soft_wire_rx(rig_soft_qp(&p->b)->engine, w, &pkt, &net);
}

/*
 * A packet that was held fails because of its key, after the device has read its short payload. The
 * next packet with its PSN has other data, which does not fit a CQE or is not that of a receive.
 */
TEST(test_held_packet_that_fails_leaves_no_data_for_a_later_cqe)
{
	static const uint8_t ops[] = {BB_ROCE_SEND_ONLY, BB_ROCE_WRITE_ONLY_IMM,
				      BB_ROCE_WRITE_ONLY_IMM};
	static const uint32_t lens[] = {1024, 1024, 16};
	const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6, .cs_res = 1};
	struct rig_link l = rig_link_default();
	struct rig_pair p;
	struct rig_cqe c;
	struct rig_qp own;
	uint32_t i;

	for (i = 0; i < RTE_DIM(ops); i++) {
		rig_pair_open(&p, "wire=1,virtual_time,seed=1", false, &l);
		own = p.b;
		rig_qp_open(&p.b, p.u[0], &p.cb, &p.cb, &attr);
		rig_qp_reset(&p.a);
		rig_connect(&p.a, &p.b, &l);
		rig_recv(&p.b, &p.mb, 0, 2048);
		deliver(&p, BB_ROCE_WRITE_ONLY, 1, 8, p.mb.mr->rkey);
		deliver(&p, BB_ROCE_WRITE_ONLY, 0, 8, p.mb.mr->rkey);
		deliver(&p, BB_ROCE_SEND_ONLY_INV, 2, 20, 0xdead00);
		assert_int_equal(rig_soft_qp(&p.b)->wire->roce.stats.stored, 1);
		deliver(&p, BB_ROCE_WRITE_ONLY, 1, 8, p.mb.mr->rkey);
		assert_int_equal(rig_soft_qp(&p.b)->wire->roce.resp.n_out_of_order, 0);
		assert_false(rig_cqe(&p.cb, &c));
		deliver(&p, ops[i], 2, lens[i], p.mb.mr->rkey);
		assert_true(rig_cqe(&p.cb, &c));
		assert_int_equal(c.bytes, lens[i]);
		assert_int_equal(rig_cqe_bytes(&p.cb)[63] & 0xc, 0);
		rig_qp_close(&p.b);
		p.b = own;
		rig_pair_close(&p);
	}
}

TEST_MAIN(0)
