/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fixture for tests of the poll loop: a CQ with completions written by hand, a counting poller,
 * and EAL.
 */
#ifndef LOOP_FAKE_H
#define LOOP_FAKE_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_lcore.h>

#include "bb_defaults.h"
#include "bb_loop.h"
#include "bb_post.h"
#include "bb_test.h"

#define LOG_SIZE 10
#define SIZE     (1u << LOG_SIZE)
#define WORKER   1

/* A CQ with one QP, of user index 0, in plain memory. */
struct fake {
	struct bb_cq cq;
	struct bb_qp qp;
	struct bb_qp *qps[1];
	uint8_t *cqes;
	uint8_t *wqes;
	struct bb_sq_wqe *wqe_info;
	uint64_t reg[128];
	uint32_t sq_rec[2], cq_rec[2];
	uint32_t written; /* CQEs */
	/* Recorded by the callback. */
	uint64_t next_wr_id;
	unsigned int calls, completions, largest;
	bool misordered;
	struct bb_loop *loop;
	void (*hook)(struct fake *f);
	struct fake *other;
	int rc;
};

static inline struct fake *
fake_new(uint32_t owner)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct bb_sq_conf conf = {
		.blocks = SIZE,
		.qpn = 5,
		.depth = SIZE,
		.max_sge = 1,
		.max_inline = 28,
		.sig_every = 1,
		.owner = UINT32_MAX, /* posted to by this thread before the loop runs */
	};

	assert_non_null(f);
	f->cqes = aligned_alloc(64, SIZE * 64);
	f->wqes = aligned_alloc(64, SIZE * 64);
	f->wqe_info = calloc(SIZE, sizeof(*f->wqe_info));
	assert_true(f->cqes != NULL && f->wqes != NULL && f->wqe_info != NULL);
	conf.buf = f->wqes;
	conf.wqes = f->wqe_info;
	conf.dbrec = &f->sq_rec[1];
	conf.reg = f->reg;
	assert_int_equal(bb_sq_init(&f->qp.sq, &conf), 0);
	bb_sq_enable(&f->qp.sq, true);
	f->qps[0] = &f->qp;
	assert_int_equal(bb_cqring_init(&f->cq.ring, f->cqes, LOG_SIZE, f->cq_rec), 0);
	f->cq.qps = f->qps;
	f->cq.owner = owner;
	for (uint32_t i = 0; i < SIZE; i++)
		assert_int_equal(bb_post_nop(&f->qp, i, BB_SEND_SIGNALED), 0);
	return f;
}

static inline void
fake_free(struct fake *f)
{
	free(f->cqes);
	free(f->wqes);
	free(f->wqe_info);
	free(f);
}

/* Completes @n more NOPs as a device does. Any thread, one at a time. */
static inline void
fake_complete(struct fake *f, uint32_t n)
{
	for (; n > 0; n--, f->written++) {
		uint32_t i = f->written & (SIZE - 1);
		struct bb_cqe *cqe = (struct bb_cqe *)(void *)(f->cqes + (size_t)i * 64);

		assert_true(f->written < SIZE);
		memset(cqe, 0, offsetof(struct bb_cqe, op_own));
		cqe->sop_qpn = bb_be32(5);
		cqe->wqe_counter = bb_be16((uint16_t)f->written);
		bb_cqe_own_store(&cqe->op_own, BB_CQE_REQ << 4 | (f->written >> LOG_SIZE & 1));
	}
}

static inline void
on_cq(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg)
{
	struct fake *f = arg;

	for (unsigned int i = 0; i < n; i++)
		if (cq != &f->cq || wc[i].wr_id != f->next_wr_id++ || wc[i].qp != &f->qp ||
		    wc[i].status != BB_WC_SUCCESS)
			f->misordered = true;
	f->calls++;
	if (n > f->largest)
		f->largest = n;
	__atomic_store_n(&f->completions, f->completions + n, __ATOMIC_RELEASE);
	if (f->hook != NULL)
		f->hook(f);
}

static inline struct bb_loop *
loop_new(uint32_t lcore)
{
	struct bb_loop_attr attr = DEFAULTS(loop_attr);
	struct bb_loop *loop = NULL;

	attr.lcore = lcore;
	attr.max_cqs = 2;
	attr.max_pollers = 2;
	assert_int_equal(bb_loop_create(&attr, &loop), 0);
	assert_int_equal(bb_loop_lcore(loop), lcore);
	assert_false(bb_loop_running(loop));
	return loop;
}

/* A poller that runs an action at its third call. */
struct poller {
	struct bb_loop *loop, *other;
	unsigned int calls;
	int rc[4];
	void (*at_three)(struct poller *p);
};

static inline unsigned int
on_poll(void *arg)
{
	struct poller *p = arg;

	__atomic_store_n(&p->calls, p->calls + 1, __ATOMIC_RELEASE);
	if (p->calls == 3 && p->at_three != NULL)
		p->at_three(p);
	return 1;
}

static inline int
setup(void **state)
{
	static char args[][24] = {"test_loop",   "-l",           "0-1",      "--no-huge",
				  "-m",          "64",           "--no-pci", "--no-telemetry",
				  "--no-shconf", "--log-level=4"};
	char *argv[RTE_DIM(args) + 1];
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	argv[i] = NULL;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		strcpy(args[2], "0");
	return rte_eal_init((int)i, argv) < 0 ? -1 : 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	return rte_eal_cleanup();
}

#endif
