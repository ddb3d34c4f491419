/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A responder whose peer repeats selectively, and SENDs that arrive ahead of a missing packet. */
#ifndef ROCE_EARLY_FAKE_H
#define ROCE_EARLY_FAKE_H

#include "roce_fake.h"

static inline void
begin(struct fake *f)
{
	fake_init_ahead(f, BB_ROCE_RC, FAKE_AHEADS);
	f->recvs = FAKE_LOG;
	/* The peer has shown that it repeats selectively. */
	f->qp.resp.store_until = UINT64_MAX;
}
#define T_BEGIN(name) TEST_ON(NULL, NULL, struct fake, begin(f), (void)0, name)

/* Receives a SEND of one packet, with its number as immediate and without AckReq. */
static inline void
send(struct fake *f, int n)
{
	const struct bb_roce_pkt more = {.imm = (uint32_t)n};

	fake_rx(f, RC(SEND_ONLY_IMM), n, 8, &more);
}

/* Asserts that the SENDs of packets @first to @last arrived in order, from receive @done on. */
static inline void
expect_sends(const struct fake *f, uint32_t done, int first, int last)
{
	assert_int_equal(f->n_done, done + (uint32_t)(last - first + 1));
	for (; first <= last; first++, done++) {
		assert_fields(f->done[done], imm, (uint32_t)first, status, 0);
	}
}

/* Asserts that @n packets are kept and the caller holds no others. */
static inline void
expect_kept(const struct fake *f, uint32_t n)
{
	assert_fields(*f, qp.resp.n_out_of_order, n, n_kept, n);
}

#endif
