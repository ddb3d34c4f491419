/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A send queue in plain memory, surrounded by bytes that must not change. */
#ifndef SQ_FIXTURE_H
#define SQ_FIXTURE_H

#include "bb_sq_atomic.h"
#include "queue_test.h"

#define SQ_QPN      0xabcdefu
#define SQ_BF_HALF  256u
#define SQ_REG_SIZE (2 * SQ_BF_HALF)
#define SQ_FILL     0xee

struct sq_fixture {
	struct bb_sq sq;
	struct bb_sq_conf conf;
	struct guarded ring;
	struct bb_sq_wqe *wqes;
	uint32_t dbrec[2];
	/* Not aligned by an attribute: AddressSanitizer's stack frames are aligned to 32 bytes
	 * only. */
	uint8_t reg_room[SQ_REG_SIZE + BB_WQE_BB];
	uint64_t *reg;
	size_t size; /* of the ring, in bytes */
};

/* Sets defaults that a test may change before sq_fixture_start(). */
static inline void
sq_fixture_conf(struct sq_fixture *f, uint32_t blocks)
{
	memset(f, 0, sizeof(*f));
	f->reg = (uint64_t *)(f->reg_room + (-(uintptr_t)f->reg_room & (BB_WQE_BB - 1)));
	f->conf.blocks = blocks;
	f->conf.qpn = SQ_QPN;
	f->conf.depth = 0; /* the largest depth that fits */
	f->conf.max_sge = 2;
	f->conf.max_inline = 28;
	f->conf.sig_every = 1;
	f->conf.bf_size = SQ_BF_HALF;
	f->conf.owner = UINT32_MAX;
}

static inline void
sq_fixture_start(struct sq_fixture *f)
{
	f->size = (size_t)f->conf.blocks * BB_WQE_BB;
	f->ring = guarded_alloc(f->size, false);
	memset(f->ring.p, SQ_FILL, f->size);
	f->wqes = calloc(f->conf.blocks, sizeof(*f->wqes));
	assert_non_null(f->wqes);
	memset(f->reg, SQ_FILL, SQ_REG_SIZE);
	f->dbrec[0] = 0x11111111;
	f->dbrec[1] = 0x22222222;
	if (f->conf.depth == 0) {
		uint32_t inl = 2 + bb_wqe_inline_ds(f->conf.max_inline), sgl = 2 + f->conf.max_sge;
		uint32_t per_wqe = bb_wqe_blocks(inl > sgl ? inl : sgl);

		f->conf.depth = f->conf.blocks / per_wqe;
	}
	f->conf.buf = f->ring.p;
	f->conf.wqes = f->wqes;
	f->conf.dbrec = &f->dbrec[1];
	f->conf.reg = f->reg;
	assert_int_equal(bb_sq_init(&f->sq, &f->conf), 0);
	bb_sq_enable(&f->sq, true);
}

static inline void
sq_fixture_end(struct sq_fixture *f)
{
	guarded_free(&f->ring);
	free(f->wqes);
}

/* Posts and completes NOPs until the next WQE starts at 16-bit block index @idx. */
static inline void
sq_fixture_seek(struct sq_fixture *f, uint16_t idx)
{
	while (f->sq.pi != idx) {
		uint16_t at = f->sq.pi;

		assert_int_equal(bb_sq_post_nop(&f->sq, 0, BB_SEND_SIGNALED), 0);
		bb_sq_complete(&f->sq, at);
	}
	f->sq.rung_seq = f->sq.seq;
}

/* Asserts that the ring holds @e from block @idx on, wrapped at its end. */
static inline void
sq_expect(const struct sq_fixture *f, uint16_t idx, const struct bytes *e)
{
	size_t start = (size_t)idx % f->conf.blocks * BB_WQE_BB, i;

	for (i = 0; i < e->len; i++) {
		uint8_t got = f->ring.p[(start + i) % f->size];

		if (got != e->b[i])
			fail_msg("WQE %u byte %zu: 0x%02x, not 0x%02x", idx, i, got, e->b[i]);
	}
}

/* Appends the expected control segment. */
static inline void
put_ctrl(struct bytes *e, uint16_t idx, uint8_t opcode, uint32_t ds, uint8_t fm_ce_se, uint32_t imm)
{
	put32(e, (uint32_t)idx << 8 | opcode);
	put32(e, SQ_QPN << 8 | ds);
	put32(e, fm_ce_se);
	put_mem(e, &imm, 4);
}

static inline void
put_raddr(struct bytes *e, uint64_t raddr, uint32_t rkey)
{
	put64(e, raddr);
	put32(e, rkey);
	put32(e, 0);
}

static inline void
put_data(struct bytes *e, uint32_t len, uint32_t lkey, uint64_t addr)
{
	put32(e, len);
	put32(e, lkey);
	put64(e, addr);
}

/* A test that makes its send queues itself. */
#define T_OWN_SQ(name) TEST_ON(NULL, NULL, struct sq_fixture, (void)0, (void)0, name)
/* Tests on a send queue of @blocks blocks: T_SQ_CONF's body changes the defaults and starts it. */
#define T_SQ_CONF(blocks, name)                                                                    \
	TEST_ON(NULL, NULL, struct sq_fixture, sq_fixture_conf(f, blocks), sq_fixture_end(f), name)
#define T_SQ(blocks, name)                                                                         \
	TEST_ON(NULL, NULL, struct sq_fixture, (sq_fixture_conf(f, blocks), sq_fixture_start(f)),  \
		sq_fixture_end(f), name)

#endif
