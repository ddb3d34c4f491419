/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Helpers of the tests of memory windows and indirect keys. Side a's operations access b's
 * memory.
 */
#ifndef KEYS_ENV_H
#define KEYS_ENV_H

#include "../mlx5_env.h"

#define REMOTE (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC)

enum op {
	OP_WRITE,
	OP_READ,
	OP_ATOMIC,
	OPS
};

static const uint32_t right_of[OPS] = {
	[OP_WRITE] = BB_ACCESS_REMOTE_WRITE,
	[OP_READ] = BB_ACCESS_REMOTE_READ,
	[OP_ATOMIC] = BB_ACCESS_REMOTE_ATOMIC,
};

/* Registers the MRs again, with MW_BIND, and creates the QPs. */
static inline void
keys_start(struct env *e)
{
	struct side *sides[] = {&e->a, &e->b};
	unsigned int i;

	env_open(e);
	for (i = 0; i < 2; i++) {
		struct side *s = sides[i];

		OK(bb_mr_dereg(s->mr));
		OK(bb_mr_reg(s->pd, s->buf, ENV_BUF, ENV_ALL | BB_ACCESS_MW_BIND, &s->mr));
	}
	env_up(e);
}

/* Replaces the QPs after an error. */
static inline void
fresh(struct env *e)
{
	OK(bb_qp_destroy(e->a.qp));
	OK(bb_qp_destroy(e->b.qp));
	env_up(e);
}

static inline uint8_t
done(struct env *e, struct side *s, enum bb_wc_opcode opcode)
{
	struct bb_wc wc;

	bb_qp_ring(s->qp);
	env_poll(e, s, &wc, 1);
	assert_ptr_equal(wc.qp, s->qp);
	if (wc.status == BB_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
	return wc.status;
}

/* Runs one operation of a on b's memory and returns its status. Replaces the QPs after an error. */
static inline uint8_t
try(struct env *e, enum op op, uint64_t raddr, uint32_t rkey, uint32_t len)
{
	static const enum bb_wc_opcode opcode[OPS] = {BB_WC_RDMA_WRITE, BB_WC_RDMA_READ,
						      BB_WC_FETCH_ADD};
	struct bb_sge sge = sge_of(&e->a, 0, len);
	uint8_t status;

	switch (op) {
	case OP_WRITE:
		OK(bb_post_write(e->a.qp, 1, &sge, 1, raddr, rkey, BB_SEND_SIGNALED));
		break;
	case OP_READ:
		OK(bb_post_read(e->a.qp, 1, &sge, 1, raddr, rkey, BB_SEND_SIGNALED));
		break;
	default:
		sge.len = 8;
		OK(bb_post_fetch_add(e->a.qp, 1, &sge, raddr, rkey, 1, BB_SEND_SIGNALED));
		break;
	}
	status = done(e, &e->a, opcode[op]);
	if (status != BB_WC_SUCCESS)
		fresh(e);
	return status;
}

static inline void
all_refused(struct env *e, uint64_t raddr, uint32_t rkey)
{
	enum op op;

	for (op = OP_WRITE; op < OPS; op++)
		assert_int_equal(try(e, op, raddr, rkey, 8), BB_WC_REM_ACCESS_ERR);
}

/* A test of the QPs and regions that keys_start() makes. */
#define KEYS_TEST(name) TEST_ON_AS(struct env, e, keys_start(e), env_stop(e), name)

#endif
