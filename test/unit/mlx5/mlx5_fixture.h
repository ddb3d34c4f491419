/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A device on the stub of the command interface, with a PD, a CQ and a QP. */
#ifndef MLX5_FIXTURE_H
#define MLX5_FIXTURE_H

#include <errno.h>
#include <string.h>

#include "bb_defaults.h"
#include "bb_test_on.h"
#include "bluebell.h"
#include "cmd_stub.h"
#include "mlx5.h"

struct fixture {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
};

static inline int
stub_setup(void **state)
{
	(void)state;
	stub_reset();
	return 0;
}

/* Nothing that the stub gave out may be left. */
static inline int
stub_teardown(void **state)
{
	(void)state;
	return stub_alive() == 0 ? 0 : -1;
}

static inline void
open_dev(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(bb_dev_open("stub0", &f->dev), 0);
	assert_int_equal(bb_pd_alloc(f->dev, &f->pd), 0);
}

static inline void
make_qp(struct fixture *f, struct bb_qp_init_attr *init)
{
	struct bb_cq_attr cq = DEFAULTS(cq_attr);

	cq.depth = 1024;
	assert_int_equal(bb_cq_create(f->dev, &cq, &f->cq), 0);
	init->send_cq = f->cq;
	init->recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, init, &f->qp), 0);
}

static inline void
open_qp(struct fixture *f)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	open_dev(f);
	make_qp(f, &init);
}

static inline void
close_dev(struct fixture *f)
{
	if (f->dev == NULL)
		return;
	if (f->qp != NULL)
		assert_int_equal(bb_qp_destroy(f->qp), 0);
	if (f->cq != NULL)
		assert_int_equal(bb_cq_destroy(f->cq), 0);
	assert_int_equal(bb_pd_free(f->pd), 0);
	assert_int_equal(bb_dev_close(f->dev), 0);
	memset(f, 0, sizeof(*f));
}

#define T(name) TEST_WITH(stub_setup, stub_teardown, name)
/* A test that opens the device itself; what is left of it is closed after the body. */
#define T_F(name)                                                                                  \
	TEST_ON(stub_setup, stub_teardown, struct fixture, memset(f, 0, sizeof(*f)), close_dev(f), \
		name)
/* A test on an open device, and one on its queue pair as well. */
#define T_DEV(name)                                                                                \
	TEST_ON(stub_setup, stub_teardown, struct fixture, open_dev(f), close_dev(f), name)
#define T_QP(name)                                                                                 \
	TEST_ON(stub_setup, stub_teardown, struct fixture, open_qp(f), close_dev(f), name)

#endif
