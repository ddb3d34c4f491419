/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* SRQs of the fake driver. Only core_fake.h includes this file. */
#ifndef CORE_FAKE_SRQ_H
#define CORE_FAKE_SRQ_H

#include <stdlib.h>
#include <string.h>

#include "bb_driver.h"

/* SRQs, if fake.attr has them. One block of memory holds ring, tables and doorbell record. */
#define FAKE_SRQ_WQES 8

static int
fake_srq_create(struct bb_srq *srq)
{
	struct bb_srqring_conf conf;
	uint8_t *mem = aligned_alloc(64, FAKE_SRQ_WQES * 64 + 256);

	assert_non_null(mem);
	memset(&conf, 0, sizeof(conf));
	conf.buf = mem;
	conf.wr_ids = (uint64_t *)(void *)(mem + FAKE_SRQ_WQES * 64);
	conf.held = mem + FAKE_SRQ_WQES * 64 + 64;
	conf.dbrec = (uint32_t *)(void *)(mem + FAKE_SRQ_WQES * 64 + 128);
	conf.wqes = FAKE_SRQ_WQES;
	conf.depth = srq->ctrl->attr.depth;
	conf.log_stride = 6;
	conf.max_sge = srq->ctrl->attr.max_sge;
	conf.srqn = 0x500;
	conf.owner = srq->ctrl->attr.lcore;
	assert_int_equal(bb_srqring_init(&srq->ring, &conf), 0);
	srq->srqn = conf.srqn;
	srq->ctrl->priv = mem;
	return 0;
}

static int
fake_srq_destroy(struct bb_srq *srq)
{
	free(srq->ctrl->priv);
	return 0;
}

static int
fake_srq_modify(struct bb_srq *srq, uint32_t limit)
{
	return 0;
}

static int
fake_srq_query(struct bb_srq *srq, uint32_t *limit)
{
	*limit = srq->ctrl->attr.limit;
	return 0;
}

#endif
