/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Properties of UD: Q_Keys, the GRH, address handles, and which side learns of a lost datagram.
 * Sources: man ibv_post_send, ibv_create_ah, ibv_poll_cq; IBTA vol. 1, 9.8; Linux's rxe.
 */
#ifndef BB_DEBUG
#define BB_DEBUG 1
#endif
#include "../mlx5_types.h"
#include "bb_bytes.h"

#define OWN 0x80000000u /* sends the QP's own Q_Key */

static void
arrives(struct types_env *t, uint64_t wr_id, size_t at, uint32_t len)
{
	struct bb_wc wc;

	env_poll(&t->e, &t->e.b, &wc, 1);
	expect(&wc, t->e.b.qp, wr_id, BB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, len + 40);
	assert_int_equal(wc.src_qp, t->e.a.qp->qpn);
	assert_memory_equal(t->e.b.buf + at + 40, t->e.a.buf, len);
}

/* A Q_Key with the top bit set is controlled: only a QP that has it can send it. */
TYPES_TEST(BB_QPT_UD, test_controlled_qkey_is_sent_by_its_owner_only)
{
	struct bb_qp_attr attr;

	fill(t->e.a.buf, 100, 1);
	bb_qp_attr_init(&attr);
	attr.qkey = OWN | 7;
	OK(bb_qp_modify(t->e.b.qp, &attr, BB_QP_QKEY));
	types_receive(t, 3, 0, 140);
	/* The sender's own Q_Key is sent, whatever the other bits are. */
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, OWN | 7, 100);
	env_silent(&t->e, &t->e.b);
	OK(bb_qp_modify(t->e.a.qp, &attr, BB_QP_QKEY));
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, OWN | 7, 100);
	arrives(t, 3, 0, 100);
	memset(&attr, 0, sizeof(attr));
	OK(bb_qp_query(t->e.b.qp, &attr));
	assert_int_equal(attr.qkey, OWN | 7);
	assert_int_equal(attr.state, BB_QP_RTS);
}

/* Lost datagrams are reported to neither side, and the receives stay for datagrams that fit. */
TYPES_TEST(BB_QPT_UD, test_lost_datagrams_are_reported_to_neither_side)
{
	struct bb_dev_stats before, after;
	struct bb_path path;
	struct bb_ah *ah;

	fill(t->e.a.buf, 4096, 1);
	OK(bb_dev_stats(t->e.b.dev, &before));
	/* No receive is posted. */
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 10);
	env_silent(&t->e, &t->e.b);
	OK(bb_dev_stats(t->e.b.dev, &after));
	assert_int_equal(after.out_of_buffer, before.out_of_buffer + 1);
	/* The datagram is too long for the receive, by one byte and by the length of the GRH. */
	types_receive(t, 1, 0, 139);
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 100);
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 139);
	env_silent(&t->e, &t->e.b);
	/* No device at the address. */
	types_path(&t->e.b, 1, &path);
	path.dgid[15] = 0x0e; /* soft14 */
	OK(bb_ah_create(t->e.a.pd, &path, &ah));
	types_send_ud(t, ah, t->e.b.qp->qpn, TYPES_QKEY, 10);
	OK(bb_ah_destroy(ah));
	env_silent(&t->e, &t->e.b);
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 99);
	arrives(t, 1, 0, 99);
	/* A QP that is not in RTR or RTS. */
	{
		struct bb_qp_attr attr;

		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		OK(bb_qp_modify(t->e.b.qp, &attr, BB_QP_STATE));
		types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 10);
	}
}

static uint32_t
ones_complement(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0, i;

	for (i = 0; i < len; i += 2)
		sum += bb_get16(p + i);
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The bytes in front of the data: RoCE v1, v2 over IPv6 and over IPv4. */
TYPES_TEST(BB_QPT_UD, test_header_has_the_fields_of_the_path)
{
	uint8_t *h;
	struct bb_path path;
	struct bb_gid from, to;
	struct bb_ah *ah;
	unsigned int gid;
	struct bb_wc wc;

	h = t->e.b.buf;
	for (gid = 0; gid < 4; gid++) {
		uint32_t payload = 12 + 8 + 12 + 4; /* BTH, DETH, 9 bytes padded, ICRC */

		OK(bb_gid_query(t->e.a.dev, 1, gid, &from));
		OK(bb_gid_query(t->e.b.dev, 1, gid, &to));
		types_path(&t->e.b, gid, &path);
		path.hop_limit = 7;
		path.traffic_class = 0xb8;
		path.flow_label = 0x12345;
		OK(bb_ah_create(t->e.a.pd, &path, &ah));
		memset(h, 0xee, 60);
		types_receive(t, gid, 0, 60);
		types_send_ud(t, ah, t->e.b.qp->qpn, TYPES_QKEY, 9);
		env_poll(&t->e, &t->e.b, &wc, 1);
		assert_int_equal(wc.flags & BB_WC_GRH, BB_WC_GRH);
		assert_int_equal(wc.sl, 0);
		assert_int_equal(wc.slid, 0);
		assert_int_equal(wc.byte_len, 49);
		assert_int_equal(h[49], 0xee);
		OK(bb_ah_destroy(ah));
		if (from.type == BB_GID_ROCE_V2 && from.raw[10] == 0xff) {
			static const uint8_t zero[20];

			assert_memory_equal(h, zero, 20);
			assert_int_equal(h[20], 0x45);
			assert_int_equal(h[21], 0xb8);
			assert_int_equal(bb_get16(h + 22), 20 + 8 + payload);
			assert_int_equal(h[28], 7);
			assert_int_equal(h[29], 17);
			assert_int_equal(ones_complement(h + 20, 20), 0xffff);
			assert_memory_equal(h + 32, from.raw + 12, 4);
			assert_memory_equal(h + 36, to.raw + 12, 4);
			continue;
		}
		assert_int_equal(bb_get32(h), 6u << 28 | 0xb8u << 20 | 0x12345);
		assert_int_equal(bb_get16(h + 4),
				 from.type == BB_GID_ROCE_V2 ? 8 + payload : payload);
		assert_int_equal(h[6], from.type == BB_GID_ROCE_V2 ? 17 : 0x1b);
		assert_int_equal(h[7], 7);
		assert_memory_equal(h + 8, from.raw, 16);
		assert_memory_equal(h + 24, to.raw, 16);
	}
}

/* On InfiniBand the receive has a GRH if the sender asked for it; its completion has LID and SL. */
TEST_IF(!env_thread() && !env_two_uars(), test_datagram_on_infiniband_names_lid_and_sl)
{
	struct bb_port_attr port;
	struct bb_path path;
	struct types_env t = {0};
	struct env *e = &t.e;
	struct bb_ah *ah;
	struct bb_wc wc;
	unsigned int grh;

	env_open_spec(e, "soft0,link=ib");
	e->init.type = BB_QPT_UD;
	env_qps(e);
	OK(bb_qp_ud_up(e->a.qp, 1, 0, TYPES_QKEY, 1));
	OK(bb_qp_ud_up(e->b.qp, 1, 0, TYPES_QKEY, 1));
	OK(bb_port_query(e->a.dev, 1, &port));
	fill(e->a.buf, 50, 3);
	for (grh = 0; grh < 2; grh++) {
		types_path(&e->b, 0, &path);
		path.sl = 11;
		path.is_global = (uint8_t)grh;
		OK(bb_ah_create(e->a.pd, &path, &ah));
		memset(e->b.buf, 0xee, 100);
		types_receive(&t, grh, 0, 100);
		types_send_ud(&t, ah, e->b.qp->qpn, TYPES_QKEY, 50);
		env_poll(e, &e->b, &wc, 1);
		assert_int_equal((wc.flags & BB_WC_GRH) != 0, grh);
		assert_int_equal(wc.sl, 11);
		assert_int_equal(wc.slid, port.lid);
		assert_int_equal(wc.src_qp, e->a.qp->qpn);
		assert_int_equal(wc.pkey_index, 0);
		assert_int_equal(wc.byte_len, 90);
		assert_int_equal(e->b.buf[0], grh ? 0x60 : 0xee);
		assert_int_equal(e->b.buf[39] == 0xee, !grh);
		assert_memory_equal(e->b.buf + 40, e->a.buf, 50);
		OK(bb_ah_destroy(ah));
	}
	path.dlid = 0;
	assert_int_equal(bb_ah_create(e->a.pd, &path, &ah), -EINVAL);
	path.dlid = 1;
	path.src_path_bits = 128;
	assert_int_equal(bb_ah_create(e->a.pd, &path, &ah), -EINVAL);
	env_stop(e);
}

TYPES_TEST(BB_QPT_UD, test_impossible_address_handles_are_refused)
{
	struct bb_path path, bad;
	struct bb_ah *ah;

	types_path(&t->e.b, 1, &path);
#define REFUSE(change, errno_)                                                                     \
	do {                                                                                       \
		bad = path;                                                                        \
		change;                                                                            \
		assert_int_equal(bb_ah_create(t->e.a.pd, &bad, &ah), errno_);                      \
	} while (0)
	REFUSE(bad.port = 0, -EINVAL);
	REFUSE(bad.sgid_index = 9, -EINVAL);
	REFUSE(bad.sl = 8, -EINVAL);
	REFUSE(bad.src_path_bits = 1, -EINVAL);
	REFUSE(bad.dgid[0] = 1, -EHOSTUNREACH);
#undef REFUSE
	assert_int_equal(bb_ah_create(NULL, &path, &ah), -EINVAL);
	assert_int_equal(bb_ah_create(t->e.a.pd, NULL, &ah), -EINVAL);
	assert_int_equal(bb_ah_destroy(NULL), -EINVAL);

	OK(bb_ah_create(t->e.a.pd, &path, &ah));
	assert_int_equal(bb_pd_free(t->e.a.pd), -EBUSY);
	OK(bb_ah_destroy(ah));
}

/* A QP that sends to itself, and a QP that answers the sender of a datagram. */
TYPES_TEST(BB_QPT_UD, test_receiver_answers_by_src_qp)
{
	struct bb_sge sge;
	struct bb_path path;
	struct bb_ah *self;
	struct bb_wc wc[2];

	fill(t->e.a.buf, 64, 3);
	types_receive(t, 1, 0, 200);
	types_send_ud(t, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 64);
	env_poll(&t->e, &t->e.b, wc, 1);
	sge = sge_of(&t->e.a, 1024, 200);
	OK(bb_post_recv(t->e.a.qp, 2, &sge, 1));
	bb_qp_ring_recv(t->e.a.qp);
	OK(bb_post_send_ud_imm_inline(t->e.b.qp, 3, "answer", 6, t->to_a, wc[0].src_qp, TYPES_QKEY,
				      0x01020304, BB_SEND_SOLICITED));
	bb_qp_ring(t->e.b.qp);
	env_poll(&t->e, &t->e.a, wc, 1);
	expect(&wc[0], t->e.a.qp, 2, BB_WC_SUCCESS);
	assert_int_equal(wc[0].imm, 0x01020304);
	assert_int_equal(wc[0].flags, BB_WC_WITH_IMM | BB_WC_SOLICITED | BB_WC_GRH);
	assert_int_equal(wc[0].src_qp, t->e.b.qp->qpn);
	assert_memory_equal(t->e.a.buf + 1024 + 40, "answer", 6);

	types_path(&t->e.a, 1, &path);
	OK(bb_ah_create(t->e.a.pd, &path, &self));
	OK(bb_post_recv(t->e.a.qp, 4, &sge, 1));
	bb_qp_ring_recv(t->e.a.qp);
	OK(bb_post_send_ud_inline(t->e.a.qp, 5, "self", 4, self, t->e.a.qp->qpn, TYPES_QKEY,
				  BB_SEND_SIGNALED));
	bb_qp_ring(t->e.a.qp);
	env_poll(&t->e, &t->e.a, wc, 2);
	assert_int_equal(wc[0].wr_id + wc[1].wr_id, 9);
	assert_memory_equal(t->e.a.buf + 1024 + 40, "self", 4);
	OK(bb_ah_destroy(self));
}

/*
 * The largest WQEs of a UD queue have room for two pieces, or 32 bytes, less than those of other
 * types.
 */
TEST(test_largest_datagram_wqes_arrive)
{
	struct types_env t = {0};
	struct env *e = &t.e;
	struct bb_dev_attr dev;
	struct bb_qp_init_attr init;
	struct bb_sge sge[64];
	struct bb_path path;
	unsigned int i;
	struct bb_qp *qp;

	env_open(e);
	OK(bb_dev_query(e->a.dev, &dev));
	init = e->init;
	init.type = BB_QPT_UD;
	init.send_cq = init.recv_cq = e->a.cq;
	init.sq_depth = 8;
	init.max_sge = dev.max_sge - 1;
	assert_int_equal(bb_qp_create(e->a.pd, &init, &qp), -EINVAL);
	init.max_sge = 1;
	init.max_inline = dev.max_inline - 31;
	assert_int_equal(bb_qp_create(e->a.pd, &init, &qp), -EINVAL);
	e->init.type = BB_QPT_UD;
	e->init.sq_depth = 8;
	e->init.max_sge = dev.max_sge - 2;
	e->init.max_inline = dev.max_inline - 32;
	env_qps(e);
	OK(bb_qp_ud_up(e->a.qp, 1, 0, TYPES_QKEY, 1));
	OK(bb_qp_ud_up(e->b.qp, 1, 0, TYPES_QKEY, 1));
	types_path(&e->b, 1, &path);
	OK(bb_ah_create(e->a.pd, &path, &t.to_b));
	fill(e->a.buf, 4096, 8);
	for (i = 0; i < dev.max_sge - 2; i++)
		sge[i] = sge_of(&e->a, i * 7, 7);
	/* Uses all pieces, for more messages than the ring is deep. */
	for (i = 0; i < 20; i++) {
		types_receive(&t, i, 0, 4096);
		OK(bb_post_send_ud(e->a.qp, i, sge, dev.max_sge - 2, t.to_b, e->b.qp->qpn,
				   TYPES_QKEY, BB_SEND_SIGNALED));
		env_done(e, &e->a, i, BB_WC_SUCCESS);
		arrives(&t, i, 0, 7 * (dev.max_sge - 2));
		types_receive(&t, i, 0, 4096);
		OK(bb_post_send_ud_inline(e->a.qp, i, e->a.buf, dev.max_inline - 32, t.to_b,
					  e->b.qp->qpn, TYPES_QKEY, BB_SEND_SIGNALED));
		env_done(e, &e->a, i, BB_WC_SUCCESS);
		arrives(&t, i, 0, dev.max_inline - 32);
	}
	types_stop(&t);
}

/* Neither pieces nor inline data (man ibv_create_qp sets no minimum): all datagrams are empty. */
TYPES_TEST(BB_QPT_UD, test_queue_without_pieces_sends_empty_datagrams)
{
	struct bb_qp *qp;
	struct bb_wc wc;

	OK(bb_qp_destroy(t->e.a.qp));
	t->e.init.send_cq = t->e.init.recv_cq = t->e.a.cq;
	t->e.init.max_sge = 0;
	t->e.init.max_inline = 0;
	OK(bb_qp_create(t->e.a.pd, &t->e.init, &qp));
	t->e.a.qp = qp;
	OK(bb_qp_ud_up(qp, 1, 0, TYPES_QKEY, 1));
	assert_int_equal(
		bb_post_send_ud_inline(qp, 1, "x", 1, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, 0),
		-EINVAL);
	types_receive(t, 7, 0, 40);
	OK(bb_post_send_ud(qp, 2, NULL, 0, t->to_b, t->e.b.qp->qpn, TYPES_QKEY, BB_SEND_SIGNALED));
	bb_qp_ring(qp);
	env_poll(&t->e, &t->e.a, &wc, 1);
	expect(&wc, qp, 2, BB_WC_SUCCESS);
	arrives(t, 7, 0, 0);
}

/* Debug builds check the handle's PD in each post. This file is compiled as a debug build. */
TYPES_TEST(BB_QPT_UD, test_handle_of_another_pd_is_refused)
{
	struct bb_ah *ah, *bad[2] = {NULL, NULL};
	struct bb_qp_stats before, after;
	struct bb_path path;
	struct bb_sge sge;
	struct bb_pd *pd;
	unsigned int i;

	types_path(&t->e.b, 1, &path);
	OK(bb_pd_alloc(t->e.a.dev, &pd));
	OK(bb_ah_create(pd, &path, &ah));
	bad[1] = ah;
	sge = sge_of(&t->e.a, 0, 20);
	OK(bb_qp_stats(t->e.a.qp, &before));
	for (i = 0; i < 2; i++) {
		assert_int_equal(bb_post_send_ud(t->e.a.qp, 1, &sge, 1, bad[i], 1, 2, 0), -EINVAL);
		assert_int_equal(bb_post_send_ud_imm(t->e.a.qp, 1, &sge, 1, bad[i], 1, 2, 3, 0),
				 -EINVAL);
		assert_int_equal(bb_post_send_ud_inline(t->e.a.qp, 1, "x", 1, bad[i], 1, 2, 0),
				 -EINVAL);
		assert_int_equal(
			bb_post_send_ud_imm_inline(t->e.a.qp, 1, "x", 1, bad[i], 1, 2, 3, 0),
			-EINVAL);
	}
	OK(bb_qp_stats(t->e.a.qp, &after));
	assert_int_equal(after.posted, before.posted);
	OK(bb_ah_destroy(ah));
	OK(bb_pd_free(pd));
}

/*
 * The header in front of a datagram follows the GID's type. RoCE v1 has a GRH whose next header
 * is IBA's transport (0x1b). RoCE v2 has a GRH with next header UDP (17), or an IPv4 header.
 */
static void
headers_are_of_the_gid(const char *spec, bool v1)
{
	struct bb_port_attr port;
	struct types_env t;
	struct bb_path path;
	uint32_t g, n[3] = {0};
	struct bb_gid gid;
	struct bb_ah *ah;

	types_start_on(&t, spec, BB_QPT_UD);
	OK(bb_port_query(t.e.a.dev, 1, &port));
	for (g = 0; g < port.gids; g++) {
		const uint8_t *grh = t.e.b.buf;

		if (bb_gid_query(t.e.b.dev, 1, g, &gid) != 0)
			continue;
		n[gid.type]++;
		types_path(&t.e.b, g, &path);
		path.is_global = 1;
		path.hop_limit = 9;
		OK(bb_ah_create(t.e.a.pd, &path, &ah));
		types_receive(&t, g, 0, 140);
		types_send_ud(&t, ah, t.e.b.qp->qpn, TYPES_QKEY, 100);
		env_expect(&t.e, &t.e.b, g, BB_WC_SUCCESS);
		if (gid.type == BB_GID_ROCE_V2 && gid.raw[10] == 0xff) {
			assert_int_equal(grh[20], 0x45);
			assert_int_equal(grh[29], 17);
		} else {
			assert_int_equal(grh[0] >> 4, 6);
			assert_int_equal(grh[6], gid.type == BB_GID_ROCE_V2 ? 17 : 0x1b);
		}
		OK(bb_ah_destroy(ah));
	}
	assert_true(n[BB_GID_ROCE_V2] >= 2 && (n[BB_GID_ROCE_V1] != 0) == v1);
	types_stop(&t);
}

TEST_IF(!env_thread() && !env_two_uars(), test_datagram_headers_are_of_the_kind_of_the_gid)
{
	headers_are_of_the_gid("soft0", true);
	headers_are_of_the_gid("soft0,wire=1", false);
}

TEST_MAIN(env_eal_init("mlx5_ud"))
