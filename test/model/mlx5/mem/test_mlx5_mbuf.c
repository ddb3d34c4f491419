/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Sends from and receives into mbuf chains, and data scattered to CQEs, through the public API. */
#include "../mlx5_env.h"

#include <rte_mbuf.h>

#include "bb_mbuf.h"

#define SEG 256u /* bytes of a segment after its headroom */

struct rig {
	struct env e;
	struct rte_mempool *mp;
	struct bb_lkey_cache cache_a, cache_b;
};

static void
rig_open(struct rig *r, bool registered)
{
	static unsigned int n;
	char name[32];

	memset(r, 0, sizeof(*r));
	env_start(&r->e);
	snprintf(name, sizeof(name), "mbufs%u", n++);
	r->mp = rte_pktmbuf_pool_create(name, 255, 0, 0, RTE_PKTMBUF_HEADROOM + SEG, SOCKET_ID_ANY);
	assert_non_null(r->mp);
	if (registered) {
		OK(bb_mem_add_mempool(r->e.a.pd, r->mp));
		if (r->e.b.pd != r->e.a.pd)
			OK(bb_mem_add_mempool(r->e.b.pd, r->mp));
	}
	bb_lkey_cache_init(&r->cache_a, r->e.a.pd);
	bb_lkey_cache_init(&r->cache_b, r->e.b.pd);
}

/* Closes the rig and checks that every mbuf is back in its pool. */
static void
rig_close(struct rig *r)
{
	assert_int_equal(rte_mempool_avail_count(r->mp), 255);
	env_stop(&r->e);
	rte_mempool_free(r->mp);
}

/* Returns a chain with @lens[i] bytes in segment i; 0 gives an empty segment. */
static struct rte_mbuf *
chain(struct rig *r, const uint32_t *lens, uint32_t n, uint32_t seed)
{
	struct rte_mbuf *head = NULL, *m;
	uint32_t i;

	for (i = 0; i < n; i++) {
		m = rte_pktmbuf_alloc(r->mp);
		assert_non_null(m);
		assert_true(lens[i] <= SEG);
		m->data_len = (uint16_t)lens[i];
		m->pkt_len = lens[i];
		fill(rte_pktmbuf_mtod(m, uint8_t *), lens[i], seed + i);
		if (head == NULL)
			head = m;
		else
			assert_int_equal(rte_pktmbuf_chain(head, m), 0);
	}
	return head;
}

static void
check_same(const struct rte_mbuf *got, const struct rte_mbuf *want)
{
	uint8_t a[2048], b[2048];

	assert_int_equal(got->pkt_len, want->pkt_len);
	assert_true(want->pkt_len <= sizeof(a));
	assert_memory_equal(rte_pktmbuf_read(got, 0, got->pkt_len, a),
			    rte_pktmbuf_read(want, 0, want->pkt_len, b), want->pkt_len);
}

#define T(name) TEST_ON_AS(struct rig, r, rig_open(r, true), rig_close(r), name)

T(test_chain_is_sent_segment_by_segment)
{
	static const uint32_t shapes[][4] = {
		{1, 0, 0, 0}, {256, 0, 0, 0},       {256, 1, 0, 0}, {3, 250, 7, 0},
		{0, 5, 0, 9}, {256, 256, 256, 256}, {0, 0, 0, 0},
	};
	static const uint32_t room[4] = {SEG, SEG, SEG, SEG};
	struct rte_mbuf *out, *in;
	struct bb_wc wc;
	size_t i;

	for (i = 0; i < RTE_DIM(shapes); i++) {
		out = chain(r, shapes[i], 4, (uint32_t)i * 10);
		in = chain(r, room, 4, 99);
		OK(bb_post_recv_mbuf(r->e.b.qp, &r->cache_b, (uintptr_t)in, in));
		bb_qp_ring_recv(r->e.b.qp);
		if (i & 1)
			OK(bb_post_send_imm_mbuf(r->e.a.qp, &r->cache_a, (uintptr_t)out, out,
						 0x11223344, BB_SEND_SIGNALED));
		else
			assert_int_equal(bb_post_send_mbuf(r->e.a.qp, &r->cache_a, (uintptr_t)out,
							   out, BB_SEND_SIGNALED),
					 0);
		bb_qp_ring(r->e.a.qp);
		env_poll(&r->e, &r->e.b, &wc, 1);
		expect(&wc, r->e.b.qp, (uintptr_t)in, BB_WC_SUCCESS);
		assert_int_equal((wc.flags & BB_WC_WITH_IMM) != 0, i & 1);
		OK(bb_mbuf_set_len(in, wc.byte_len));
		check_same(in, out);
		env_expect(&r->e, &r->e.a, (uintptr_t)out, BB_WC_SUCCESS);
		rte_pktmbuf_free(in);
		rte_pktmbuf_free(out);
	}
}

T(test_chain_is_written_segment_by_segment)
{
	static const uint32_t lens[] = {100, 0, 256, 17};
	struct rte_mbuf *m;
	uint8_t want[512];

	m = chain(r, lens, 4, 5);
	OK(bb_post_write_mbuf(r->e.a.qp, &r->cache_a, 3, m, raddr_of(&r->e.b, 77), r->e.b.mr->rkey,
			      BB_SEND_SIGNALED));
	env_done(&r->e, &r->e.a, 3, BB_WC_SUCCESS);
	assert_memory_equal(r->e.b.buf + 77, rte_pktmbuf_read(m, 0, 373, want), 373);
	assert_int_equal(r->e.b.buf[76], 0);
	assert_int_equal(r->e.b.buf[77 + 373], 0);
	rte_pktmbuf_free(m);
}

/* One mbuf for each receive, refilled as receives complete, on an RQ and on an SRQ. */
TEST(test_receives_are_refilled_as_they_complete)
{
	int shared;

	for (shared = 0; shared < 2; shared++) {
		struct bb_srq *srq = NULL;
		struct bb_srq_attr attr;
		struct bb_qp *qp;
		struct bb_wc wc;
		struct rig r;
		uint32_t i, posted = 0;

		rig_open(&r, true);
		qp = r.e.b.qp;
		if (shared) {
			struct bb_qp_init_attr init = r.e.init;
			struct bb_qp_attr a;

			bb_srq_attr_init(&attr);
			attr.depth = 20;
			OK(bb_srq_create(r.e.b.pd, &attr, &srq));
			init.send_cq = r.e.b.cq;
			init.recv_cq = r.e.b.cq;
			init.srq = srq;
			OK(bb_qp_create(r.e.b.pd, &init, &qp));
			bb_qp_attr_init(&a);
			a.state = BB_QP_RESET;
			OK(bb_qp_modify(r.e.a.qp, &a, BB_QP_STATE));
			connect_pair(r.e.a.qp, qp, &r.e.attr);
		}
		for (i = 0; i < 300; i++) {
			uint32_t len = i % SEG;
			struct rte_mbuf *m;
			uint8_t data[SEG];
			uint32_t n;
			int err;

			/*
			 * A full queue takes fewer mbufs than asked for, and never too many are
			 * allocated.
			 */
			n = shared ? bb_fill_srq_mbuf(srq, &r.cache_b, r.mp, 3, &err)
				   : bb_fill_recv_mbuf(qp, &r.cache_b, r.mp, 3, &err);
			assert_int_equal(err, 0);
			assert_in_range(n, 1, 3);
			posted += n;
			if (shared)
				bb_srq_ring(srq);
			else
				bb_qp_ring_recv(qp);
			assert_int_equal(rte_mempool_avail_count(r.mp), 255 - (posted - i));
			fill(data, len, i);
			memcpy(r.e.a.buf, data, len);
			{
				struct bb_sge sge = sge_of(&r.e.a, 0, len);

				OK(bb_post_send(r.e.a.qp, i, &sge, 1, BB_SEND_SIGNALED));
			}
			bb_qp_ring(r.e.a.qp);
			env_poll(&r.e, &r.e.b, &wc, 1);
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			assert_ptr_equal(wc.qp, qp);
			m = (struct rte_mbuf *)(uintptr_t)wc.wr_id;
			OK(bb_mbuf_set_len(m, wc.byte_len));
			assert_int_equal(m->pkt_len, len);
			assert_int_equal(m->data_len, len);
			assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), data, len);
			rte_pktmbuf_free(m);
			env_poll(&r.e, &r.e.a, &wc, 1);
		}
		/* Destroying the queues and freeing the posted mbufs returns all of them. */
		if (shared) {
			OK(bb_qp_destroy(qp));
			OK(bb_srq_destroy(srq));
		}
		env_stop(&r.e);
		rte_mempool_free(r.mp);
	}
}

T(test_chains_that_do_not_fit_are_refused)
{
	static const uint32_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct rte_mbuf *m;
	struct bb_sge sge[2];
	int err;

	assert_true(r->e.a.qp->sq.max_sge < 8 && r->e.b.qp->rq.max_sge < 8);
	m = chain(r, ones, 8, 1);
	assert_int_equal(bb_post_send_mbuf(r->e.a.qp, &r->cache_a, 1, m, 0), -EINVAL);
	assert_int_equal(bb_post_write_mbuf(r->e.a.qp, &r->cache_a, 1, m, raddr_of(&r->e.b, 0),
					    r->e.b.mr->rkey, 0),
			 -EINVAL);
	assert_int_equal(bb_post_recv_mbuf(r->e.b.qp, &r->cache_b, 1, m), -EINVAL);
	/* The caller's own list: up to the longest chain. */
	assert_int_equal(bb_mbuf_data_sge(&r->cache_a, m, sge, 2), -EINVAL);
	assert_int_equal(bb_mbuf_room_sge(&r->cache_a, m, sge, 2), -EINVAL);
	/* Longer than the chain has room for. */
	assert_int_equal(bb_mbuf_set_len(m, 8 * SEG + 1), -EMSGSIZE);
	assert_int_equal(m->pkt_len, 8);
	assert_int_equal(m->data_len, 1);
	OK(bb_mbuf_set_len(m, SEG + 3));
	assert_int_equal(m->data_len, SEG);
	assert_int_equal(m->next->data_len, 3);
	assert_int_equal(m->next->next->data_len, 0);
	OK(bb_mbuf_set_len(m, 8 * SEG));
	rte_pktmbuf_free(m);
	/* The refused calls posted nothing. */
	OK(bb_post_nop(r->e.a.qp, 9, BB_SEND_SIGNALED));
	env_done(&r->e, &r->e.a, 9, BB_WC_SUCCESS);
	rig_close(r);

	/* An mbuf of a pool that is not registered. */
	rig_open(r, false);
	m = chain(r, ones, 2, 1);
	assert_int_equal(bb_post_send_mbuf(r->e.a.qp, &r->cache_a, 1, m, 0), -EFAULT);
	assert_int_equal(bb_post_recv_mbuf(r->e.b.qp, &r->cache_b, 1, m), -EFAULT);
	OK(bb_fill_recv_mbuf(r->e.b.qp, &r->cache_b, r->mp, 4, &err));
	assert_int_equal(err, -EFAULT);
	rte_pktmbuf_free(m);
}

/* ---- scatter_to_cqe: the user cannot see whether data came in the CQE. */

TEST(test_short_receive_is_copied_from_the_cqe)
{
	int shared;

	for (shared = 0; shared < 2; shared++) {
		struct bb_srq *srq = NULL;
		struct bb_srq_attr attr;
		struct bb_sge sge[4];
		struct bb_wc wc;
		struct env e;
		uint32_t len, i;

		env_open(&e);
		e.init.scatter_to_cqe = true;
		if (shared) {
			bb_srq_attr_init(&attr);
			attr.max_sge = 4;
			OK(bb_srq_create(e.b.pd, &attr, &srq));
		}
		side_qp(&e, &e.a);
		e.init.srq = srq;
		side_qp(&e, &e.b);
		connect_pair(e.a.qp, e.b.qp, &e.attr);
		for (len = 0; len <= 40; len++) {
			uint8_t data[40], want[64];
			uint32_t at = 0;

			memset(e.b.buf, 0xee, 4096);
			memset(want, 0xee, sizeof(want));
			fill(data, len, len);
			sge[0] = sge_of(&e.b, 0, 5);
			sge[1] = sge_of(&e.b, 100, 0);
			sge[2] = sge_of(&e.b, 200, 20);
			sge[3] = sge_of(&e.b, 300, 15);
			if (shared) {
				OK(bb_post_srq_recv(srq, len, sge, 4));
				bb_srq_ring(srq);
			} else {
				OK(bb_post_recv(e.b.qp, len, sge, 4));
				bb_qp_ring_recv(e.b.qp);
			}
			OK(bb_post_send_inline(e.a.qp, 1, data, len, BB_SEND_SIGNALED));
			bb_qp_ring(e.a.qp);
			env_poll(&e, &e.b, &wc, 1);
			expect(&wc, e.b.qp, len, BB_WC_SUCCESS);
			assert_int_equal(wc.byte_len, len);
			for (i = 0; i < 4; i++) {
				uint32_t n = RTE_MIN(sge[i].len, len - at);

				assert_memory_equal(e.b.buf + i * 100, data + at, n);
				/* The bytes after the data are untouched. */
				assert_memory_equal(e.b.buf + i * 100 + n, want, 60);
				at += n;
			}
			env_poll(&e, &e.a, &wc, 1);
		}
		/* The message is too long for the receive's list; only the poll can detect that. */
		if (shared) {
			OK(bb_post_srq_recv(srq, 9, sge, 1));
			bb_srq_ring(srq);
		} else {
			OK(bb_post_recv(e.b.qp, 9, sge, 1));
			bb_qp_ring_recv(e.b.qp);
		}
		memset(e.b.buf, 0xee, 64);
		OK(bb_post_send_inline(e.a.qp, 1, "123456", 6, 0));
		bb_qp_ring(e.a.qp);
		env_expect(&e, &e.b, 9, BB_WC_LOC_LEN_ERR);
		assert_memory_equal(e.b.buf, "12345\xee", 6);
		OK(bb_qp_destroy(e.b.qp));
		e.b.qp = NULL;
		if (shared)
			OK(bb_srq_destroy(srq));
		env_stop(&e);
	}
}

ENV_TEST_OPEN(test_short_read_is_copied_from_the_cqe)
{
	struct bb_sge sge[3];
	struct bb_wc wc[2];
	uint64_t v = 41, old;
	uint32_t len, i;

	e->init.scatter_to_cqe = true;
	/*
	 * A short queue, so that WQEs wrap within their segments; the library asks for one CQE in
	 * four requests.
	 */
	e->init.sq_depth = 6;
	e->init.max_sge = 4;
	env_up(e);
	fill(e->b.buf, 4096, 3);
	for (i = 0; i < 200; i++) {
		len = i % 40 + 3;
		memset(e->a.buf, 0xee, 1024);
		sge[0] = sge_of(&e->a, 0, 1);
		sge[1] = sge_of(&e->a, 100, 2);
		sge[2] = sge_of(&e->a, 200, len - 3);
		/*
		 * The unsignalled READ comes first: its data is in place when the next request
		 * has completed.
		 */
		OK(bb_post_read(e->a.qp, 1,
				&(struct bb_sge){(uintptr_t)e->a.buf + 512, 8, e->a.mr->lkey}, 1,
				raddr_of(&e->b, i), e->b.mr->rkey, 0));
		OK(bb_post_read(e->a.qp, 2, sge, 3, raddr_of(&e->b, i * 3), e->b.mr->rkey,
				BB_SEND_SIGNALED));
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->a, wc, 1);
		expect(&wc[0], e->a.qp, 2, BB_WC_SUCCESS);
		assert_int_equal(wc[0].opcode, BB_WC_RDMA_READ);
		assert_int_equal(wc[0].byte_len, len);
		assert_memory_equal(e->a.buf, e->b.buf + i * 3, 1);
		assert_memory_equal(e->a.buf + 100, e->b.buf + i * 3 + 1, 2);
		assert_memory_equal(e->a.buf + 200, e->b.buf + i * 3 + 3, len - 3);
		assert_int_equal(e->a.buf[1], 0xee);
		assert_int_equal(e->a.buf[102], 0xee);
		assert_int_equal(e->a.buf[200 + len - 3], 0xee);
		assert_memory_equal(e->a.buf + 512, e->b.buf + i, 8);
	}
	memcpy(e->b.buf + 2048, &v, 8);
	for (i = 0; i < 20; i++) {
		sge[0] = sge_of(&e->a, 800, 8);
		OK(bb_post_fetch_add(e->a.qp, i, sge, raddr_of(&e->b, 2048), e->b.mr->rkey, 1,
				     i & 1 ? 0 : BB_SEND_SIGNALED));
		OK(bb_post_nop(e->a.qp, 100, i & 1 ? BB_SEND_SIGNALED : 0));
		bb_qp_ring(e->a.qp);
		env_poll(e, &e->a, wc, 1);
		assert_int_equal(wc[0].status, BB_WC_SUCCESS);
		memcpy(&old, e->a.buf + 800, 8);
		assert_int_equal(old, 41 + i);
	}
}

TEST_MAIN(env_eal_init("mlx5_mbuf"))
