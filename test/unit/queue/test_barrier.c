/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Doorbell records, registers and owner bits: the width of each access, and messages passed
 * between two threads. TSan shows that no access to a WQE or CQE races after it was handed over.
 */
#include <pthread.h>

#include "bb_cqring.h"
#include "bb_sq.h"
#include "queue_test.h"

#define ROUNDS 20000u

TEST(test_stores_have_their_width)
{
	uint64_t mem[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	uint32_t rec[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
	uint8_t *byte = (uint8_t *)&mem[1];

	bb_dbrec_store(&rec[1], 0x01020304);
	assert_int_equal(bb_dbrec_load(&rec[1]), 0x01020304);
	assert_true(rec[0] == UINT32_MAX && rec[2] == UINT32_MAX);
	bb_uar_store64(&mem[1], 0x1122334455667788ull);
	assert_int_equal(mem[1], 0x1122334455667788ull);
	bb_cqe_own_store(byte + 3, 0xf1);
	assert_int_equal(bb_cqe_own_load(byte + 3), 0xf1);
	assert_int_equal(mem[1], 0x11223344f1667788ull);
	assert_true(mem[0] == UINT64_MAX && mem[2] == UINT64_MAX);
}

/*
 * A queue and its device. One thread builds WQEs and rings. The other reads the record and the
 * WQEs, and writes a CQE per signalled WQE. The rings are small, so every slot is reused often.
 */
struct pair {
	struct bb_sq sq;
	struct bb_cqring cq;
	uint8_t *sq_buf, *cq_buf;
	uint32_t sq_rec;
	uint32_t cq_rec[2] __attribute__((aligned(8)));
	uint64_t reg[64] __attribute__((aligned(64)));
	struct bb_sq_wqe wqes[16];
	uint32_t bad;
};

static void *
device(void *arg)
{
	struct pair *p = arg;
	uint16_t ci = 0;
	uint32_t pi = 0, seen = 0;

	while (seen < ROUNDS) {
		uint16_t to = (uint16_t)bb_be32(bb_dbrec_load(&p->sq_rec));

		while (ci != to) {
			const uint8_t *w = p->sq_buf + (size_t)(ci & 15) * 64;
			struct bb_cqe *cqe;
			uint64_t value;

			/* the index, and 8 inline bytes with the same value */
			memcpy(&value, w + 36, sizeof(value));
			if ((w[1] << 8 | w[2]) != ci || value != seen)
				p->bad++;
			while (pi - bb_be32(bb_dbrec_load(&p->cq_rec[0])) == 8)
				sched_yield();
			cqe = (struct bb_cqe *)(void *)(p->cq_buf + (size_t)(pi & 7) * 64);
			cqe->wqe_counter = bb_be16(ci);
			cqe->timestamp = seen;
			bb_cqe_own_store(&cqe->op_own, (uint8_t)(pi >> 3 & 1));
			pi++;
			seen++;
			ci++;
		}
		sched_yield();
	}
	return NULL;
}

TEST(test_queue_pair_of_threads_sees_stores_in_order)
{
	uint64_t posted = 0, done = 0;
	struct bb_sq_conf conf = {0};
	static struct pair p;
	struct guarded sq_ring = guarded_alloc(16 * 64, false);
	struct guarded cq_ring = guarded_alloc(8 * 64, false);
	pthread_t thread;

	p.sq_buf = sq_ring.p;
	p.cq_buf = cq_ring.p;
	conf.buf = p.sq_buf;
	conf.wqes = p.wqes;
	conf.blocks = 16;
	conf.qpn = 1;
	conf.depth = 16;
	conf.max_inline = 28;
	conf.sig_every = 1;
	conf.dbrec = &p.sq_rec;
	conf.reg = p.reg;
	conf.bf_size = 256;
	conf.db_mode = BB_DB_BLUEFLAME;
	conf.owner = UINT32_MAX;
	assert_int_equal(bb_sq_init(&p.sq, &conf), 0);
	assert_int_equal(bb_cqring_init(&p.cq, p.cq_buf, 3, p.cq_rec), 0);
	bb_sq_enable(&p.sq, true);
	assert_int_equal(pthread_create(&thread, NULL, device, &p), 0);
	while (done < ROUNDS) {
		struct bb_cqe *cqe;

		while (posted < ROUNDS && bb_sq_post_inline(&p.sq, BB_WQE_RDMA_WRITE, true, posted,
							    &posted, 8, 0, 0, 0, 0) == 0)
			posted++;
		bb_sq_ring(&p.sq);
		while ((cqe = bb_cqring_peek(&p.cq)) != NULL) {
			p.cq.ci++;
			if (cqe->timestamp != done ||
			    bb_sq_complete(&p.sq, bb_be16(cqe->wqe_counter))->wr_id != done)
				p.bad++;
			done++;
		}
		bb_cqring_update(&p.cq);
		sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(p.bad, 0);
	guarded_free(&sq_ring);
	guarded_free(&cq_ring);
}

TEST_MAIN(0)
