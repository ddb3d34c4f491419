/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Fixture for tests of core: EAL, the captured log, and objects of the fake driver. */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include "../../fakes/bare_eal.h"
#include "../../fakes/log_catch.h"
#include "bb_defaults.h"
#include "core_fake.h"

/* Starts EAL without hugepages, files or devices. */
static inline int
fake_eal_init(void)
{
	if (bare_eal_init() >= 0)
		return 0;
	fprintf(stderr, "EAL does not start\n");
	return 1;
}

/* A PD made by hand, for tests without EAL. */
struct bare_pd {
	struct bb_dev dev;
	struct bb_pd pd;
};

static inline void
bare_pd_init(struct bare_pd *b)
{
	fake_reset();
	memset(b, 0, sizeof(*b));
	snprintf(b->dev.name, sizeof(b->dev.name), "bare");
	b->dev.drv = &fake_driver;
	b->dev.attr = fake.attr;
	pthread_mutex_init(&b->dev.lock, NULL);
	b->pd.dev = &b->dev;
	assert_int_equal(bb_mem_table_create(&b->pd, &b->pd.mem), 0);
}

static inline void
bare_pd_fini(struct bare_pd *b)
{
	fake_fail(FAKE_NONE, 0);
	bb_mem_heap_event(b->pd.mem, RTE_MEM_EVENT_FREE, NULL, SIZE_MAX);
	assert_true(bb_mem_reap(&b->pd) >= 0);
	assert_int_equal(fake.mrs, 0);
	bb_mem_table_free(b->pd.mem);
	pthread_mutex_destroy(&b->dev.lock);
}

/* A device with a PD and a CQ. */
struct fixture {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
};

static inline struct bb_cq *
fixture_cq(struct bb_dev *dev, uint32_t depth)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	attr.depth = depth;
	assert_int_equal(bb_cq_create(dev, &attr, &cq), 0);
	return cq;
}

static inline int
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_reset();
	assert_int_equal(bb_dev_open("fake0", &f->dev), 0);
	assert_int_equal(bb_pd_alloc(f->dev, &f->pd), 0);
	f->cq = fixture_cq(f->dev, 256);
	*state = f;
	return 0;
}

/* Fails if a test left objects behind. */
static inline int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fake.fail = FAKE_NONE;
	assert_int_equal(bb_cq_destroy(f->cq), 0);
	assert_int_equal(bb_pd_free(f->pd), 0);
	assert_int_equal(bb_dev_close(f->dev), 0);
	free(f);
	assert_fields(fake, devs, 0, pds, 0, mrs, 0, cqs, 0, qps, 0);
	return 0;
}

/* A test whose body gets the device with its PD and CQ as @f. */
#define T(name)                                                                                    \
	static void name##_on(struct fixture *f);                                                  \
	TEST_WITH(fixture_setup, fixture_teardown, name)                                           \
	{                                                                                          \
		name##_on(*state);                                                                 \
	}                                                                                          \
	static void name##_on(struct fixture *f __attribute__((unused)))

#endif
