/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A pair of CM engines for cmocka, whose end 1 listens. */
#ifndef IBCM_TEST_H
#define IBCM_TEST_H

#include "bb_test.h"
#include "ibcm_pair.h"

#define SERVICE 0x1061c06ull

static const struct bb_ibcm_service plain = {
	.service_id = SERVICE, .mask = UINT64_MAX, .cookie = 99};

static int
setup(void **state)
{
	struct pair *p = pair_new(NULL);

	OK(bb_ibcm_listen(p->end[1].cm, &plain));
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	pair_free(*state);
	return 0;
}

#define PAIR_TEST(name_) TEST_AS(setup, teardown, NULL, struct pair, p, name_)

#endif
