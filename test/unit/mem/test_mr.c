/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions: rights, iova, pages on demand, and re-registration. */
#include "../core/core_fixture.h"

#define LW BB_ACCESS_LOCAL_WRITE
#define RW BB_ACCESS_REMOTE_WRITE
#define RR BB_ACCESS_REMOTE_READ
#define RA BB_ACCESS_REMOTE_ATOMIC
#define ZB BB_ACCESS_ZERO_BASED
#define OD BB_ACCESS_ON_DEMAND
#define RO BB_ACCESS_RELAXED_ORDERING

#define TRANS BB_MR_REREG_TRANSLATION

static uint8_t mem[4][4096] __attribute__((aligned(4096)));

static uint32_t
lookup(struct bb_pd *pd, const void *p, size_t len)
{
	struct bb_lkey_cache cache;

	bb_lkey_cache_init(&cache, pd);
	return bb_mem_lkey(&cache, p, len);
}

static uint32_t
count(const struct bb_mem_entry *e)
{
	return e == NULL ? 0 : 1 + count(e->left) + count(e->right);
}

/* Returns the number of entries in the address table of @pd. */
static uint32_t
entries_of(const struct bb_pd *pd)
{
	return count(pd->mem->root);
}

static struct bb_mem_stats
stats_of(struct bb_pd *pd)
{
	struct bb_mem_stats s;

	assert_int_equal(bb_mem_stats(pd, &s), 0);
	return s;
}

static const struct fake_mr *
driver_mr(const struct bb_mr *mr)
{
	const struct bb_mr_priv *p = (const struct bb_mr_priv *)mr;

	return (const struct fake_mr *)p->reg->drv_mr;
}

static void
all_on(struct fixture *f)
{
	f->dev->attr.odp = true;
	f->dev->attr.odp_write = true;
	f->dev->attr.odp_read = true;
	f->dev->attr.odp_implicit = true;
	f->dev->attr.relaxed_ordering = true;
}

/* Every combination of rights: granted as requested, or rejected by the rule that it breaks. */
T(test_each_combination_of_rights_is_granted_or_refused_by_its_rule)
{
	all_on(f);
	for (uint32_t a = 0; a < 256; a++) {
		struct bb_mr *mr = NULL;
		int want = 0, ret;

		if ((a & (RW | RA)) != 0 && (a & LW) == 0)
			want = -EINVAL; /* man ibv_reg_mr */
		else if ((a & OD) != 0 && (a & RA) != 0)
			want = -ENOTSUP; /* the device lacks odp_atomic */
		log_begin();
		ret = bb_mr_reg(f->pd, mem[0], 4096, a | RO, &mr);
		assert_int_equal(ret, want);
		if (want != 0) {
			log_expect("are not registered");
			assert_null(mr);
			continue;
		}
		log_stop();
		assert_int_equal(mr->access, a | RO);
		assert_int_equal(driver_mr(mr)->access, a | RO);
		assert_int_equal(mr->iova, (a & ZB) != 0 ? 0 : (uintptr_t)mem[0]);
		assert_int_equal(driver_mr(mr)->iova, mr->iova);
		/*
		 * A region that no WQE may use has no lkey; one that no peer may use has no rkey.
		 */
		if ((a & OD) != 0)
			assert_int_equal(mr->lkey, BB_LKEY_NONE);
		else
			assert_int_equal(mr->lkey, driver_mr(mr)->pub.lkey);
		assert_int_equal(mr->rkey, (a & (RW | RR | RA)) != 0 ? driver_mr(mr)->pub.rkey : 0);
		/* Lookups return only keys that address memory by its virtual address. */
		assert_int_equal(lookup(f->pd, mem[0], 1),
				 (a & (OD | ZB)) != 0 ? BB_LKEY_NONE : mr->lkey);
		assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(lookup(f->pd, mem[0], 1), BB_LKEY_NONE);
	}
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(stats_of(f->pd).bytes, 0);
}

/*
 * Rights of the optional range are never rejected: libibverbs and the kernel drop unsupported
 * ones.
 */
T(test_unsupported_optional_rights_are_dropped)
{
	struct bb_mr *mr;

	for (uint32_t bit = 0; bit < 32; bit++) {
		bool known = bit < 8, optional = bit >= 20 && bit < 30;
		uint32_t a = LW | 1u << bit;

		mr = NULL;
		if (known)
			continue;
		assert_logged(bb_mr_reg(f->pd, mem[0], 64, a, &mr), optional ? 0 : -EINVAL,
			      optional ? NULL : "unknown access right");
		if (!optional)
			continue;
		/* The device supports none of them. */
		assert_int_equal(mr->access, LW);
		assert_int_equal(driver_mr(mr)->access, LW);
		assert_int_equal(bb_mr_dereg(mr), 0);
	}
	f->dev->attr.relaxed_ordering = true;
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 64, LW | BB_ACCESS_OPTIONAL_RANGE, &mr), 0);
	assert_int_equal(mr->access, LW | RO);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

#define REFUSE(ret_, text_, call_)                                                                 \
	do {                                                                                       \
		log_begin();                                                                       \
		assert_int_equal(call_, ret_);                                                     \
		log_expect(text_);                                                                 \
	} while (0)

T(test_on_demand_needs_the_capability_of_each_right)
{
	struct bb_mr *mr = NULL;

	/* ib_check_mr_access() returns EOPNOTSUPP. */
	REFUSE(-ENOTSUP, "no on-demand paging", bb_mr_reg(f->pd, mem[0], 64, OD, &mr));
	f->dev->attr.odp = true;
	REFUSE(-ENOTSUP, "odp_write", bb_mr_reg(f->pd, mem[0], 64, OD | LW | RW, &mr));
	REFUSE(-ENOTSUP, "odp_read", bb_mr_reg(f->pd, mem[0], 64, OD | RR, &mr));
	f->dev->attr.odp_read = true;
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 64, OD | RR, &mr), 0);
	assert_int_equal(bb_mr_dereg(mr), 0);
	f->dev->attr.odp_write = true;
	f->dev->attr.odp_atomic = true;
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 64, OD | LW | RW | RR | RA, &mr), 0);
	assert_int_equal(bb_mr_dereg(mr), 0);
	mr = NULL;
	/* The whole address space: NULL and SIZE_MAX, with ON_DEMAND only. */
	REFUSE(-ENOTSUP, "whole address space",
	       bb_mr_reg(f->pd, NULL, SIZE_MAX, OD | LW | RW, &mr));
	f->dev->attr.odp_implicit = true;
	REFUSE(-EINVAL, "iova 0", bb_mr_reg_iova(f->pd, NULL, SIZE_MAX, 4096, OD | LW, &mr));
	f->dev->attr.max_mr_size = 1 << 20;
	REFUSE(-EINVAL, "max_mr_size", bb_mr_reg(f->pd, NULL, SIZE_MAX, LW | RW, &mr));
	REFUSE(-EINVAL, "max_mr_size", bb_mr_reg(f->pd, NULL, SIZE_MAX - 1, OD | LW, &mr));
	assert_null(mr);
	assert_int_equal(bb_mr_reg(f->pd, NULL, SIZE_MAX, OD | LW | RW, &mr), 0);
	assert_int_equal(mr->lkey, BB_LKEY_NONE);
	assert_int_equal(stats_of(f->pd).bytes, 0);
	assert_int_equal(lookup(f->pd, mem[0], 1), BB_LKEY_NONE);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

T(test_iova_replaces_the_address_of_the_key)
{
	struct bb_mr *mr = NULL;

	assert_int_equal(bb_mr_reg_iova(f->pd, mem[0] + 5, 64, 0x7000005, LW | RW, &mr), 0);
	assert_int_equal(mr->iova, 0x7000005);
	assert_ptr_equal(mr->addr, mem[0] + 5);
	assert_int_equal(driver_mr(mr)->iova, 0x7000005);
	assert_int_equal(driver_mr(mr)->start, (uintptr_t)mem[0] + 5);
	assert_int_equal(lookup(f->pd, mem[0] + 5, 1), BB_LKEY_NONE);
	assert_int_equal(stats_of(f->pd).bytes, 64);
	assert_int_equal(bb_mr_dereg(mr), 0);
	/* An iova equal to the virtual address. */
	assert_int_equal(bb_mr_reg_iova(f->pd, mem[0], 64, (uintptr_t)mem[0], LW, &mr), 0);
	assert_int_equal(lookup(f->pd, mem[0], 64), mr->lkey);
	assert_int_equal(bb_mr_dereg(mr), 0);
	mr = NULL;
	/* ib_uverbs_reg_mr(): start and hca_va agree below the page size, else EINVAL. */
	REFUSE(-EINVAL, "offset in a page", bb_mr_reg_iova(f->pd, mem[0] + 5, 64, 0, LW, &mr));
	REFUSE(-EINVAL, "must start on a page", bb_mr_reg(f->pd, mem[0] + 5, 64, LW | ZB, &mr));
	REFUSE(-EINVAL, "exceeds 2^64",
	       bb_mr_reg_iova(f->pd, mem[0], 8192, UINT64_MAX - 4095, LW, &mr));
	assert_null(mr);
	assert_int_equal(bb_mr_reg_iova(f->pd, mem[0], 4095, UINT64_MAX - 4095, LW, &mr), 0);
	assert_int_equal(bb_mr_dereg(mr), 0);
	/*
	 * An iova of 0 has the effect of ZERO_BASED (man ibv_reg_mr); ZERO_BASED takes
	 * precedence.
	 */
	assert_int_equal(bb_mr_reg_iova(f->pd, mem[0], 64, 0x7000000, LW | ZB, &mr), 0);
	assert_int_equal(mr->iova, 0);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_mr_reg_iova(NULL, mem[0], 64, 0, LW, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_iova(f->pd, mem[0], 64, 0, LW, NULL), -EINVAL);
}

static void
same(const struct bb_mr *a, const struct bb_mr *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

/* As ibv_rereg_mr(), ib_uverbs_rereg_mr() and, for ON_DEMAND, mlx5_ib_rereg_user_mr(). */
T(test_rereg_refuses_what_the_kernel_refuses)
{
	struct bb_mr_priv *priv;
	struct bb_dev other = *f->dev;
	struct bb_pd foreign = {.dev = &other};
	struct bb_mr *mr, was;

	all_on(f);
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 4096, LW, &mr), 0);
	priv = (struct bb_mr_priv *)mr;
	was = *mr;
	assert_int_equal(bb_mr_rereg(NULL, TRANS, NULL, mem[1], 64, 0), -EINVAL);
	REFUSE(-EINVAL, "combination", bb_mr_rereg(mr, 0, NULL, NULL, 0, 0));
	REFUSE(-EINVAL, "combination", bb_mr_rereg(mr, 8 | TRANS, NULL, mem[1], 64, 0));
	REFUSE(-EINVAL, "NULL or empty", bb_mr_rereg(mr, TRANS, NULL, NULL, 64, 0));
	REFUSE(-EINVAL, "NULL or empty", bb_mr_rereg(mr, TRANS, NULL, mem[1], 0, 0));
	REFUSE(-EINVAL, "exceeds the address space",
	       bb_mr_rereg(mr, TRANS, NULL, mem[1], SIZE_MAX, 0));
	REFUSE(-EINVAL, "PD", bb_mr_rereg(mr, BB_MR_REREG_PD, NULL, NULL, 0, 0));
	REFUSE(-EINVAL, "PD", bb_mr_rereg(mr, BB_MR_REREG_PD, &foreign, NULL, 0, 0));
	REFUSE(-EINVAL, "the flag BB_MR_REREG_ACCESS is not",
	       bb_mr_rereg(mr, TRANS, NULL, mem[1], 64, LW));
	REFUSE(-EINVAL, "unknown access right",
	       bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | 1 << 8));
	REFUSE(-EINVAL, "need LOCAL_WRITE", bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, RW));
	REFUSE(-EINVAL, "ZERO_BASED",
	       bb_mr_rereg(mr, BB_MR_REREG_ACCESS | TRANS, NULL, mem[1], 64, LW | ZB));
	REFUSE(-ENOTSUP, "only with BB_MR_REREG_TRANSLATION",
	       bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | OD));
	f->dev->attr.max_mr_size = 4096;
	REFUSE(-EINVAL, "max_mr_size", bb_mr_rereg(mr, TRANS, NULL, mem[1], 4097, 0));
	priv->windows = 1;
	REFUSE(-EBUSY, "1 memory window is bound", bb_mr_rereg(mr, TRANS, NULL, mem[1], 64, 0));
	REFUSE(-EBUSY, "not deregistered", bb_mr_dereg(mr));
	priv->windows = 0;
	priv->mkeys = 2;
	REFUSE(-EBUSY, "2 keys refer", bb_mr_rereg(mr, TRANS, NULL, mem[1], 64, 0));
	REFUSE(-EBUSY, "2 keys refer", bb_mr_dereg(mr));
	priv->mkeys = 0;
	priv->kind = BB_DRV_MR_DM;
	REFUSE(-EINVAL, "device memory and dma-bufs", bb_mr_rereg(mr, TRANS, NULL, mem[1], 64, 0));
	priv->kind = BB_DRV_MR_MEM;
	same(mr, &was);
	assert_int_equal(lookup(f->pd, mem[0], 4096), mr->lkey);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

/* Each attribute that can change, and all at once, with the key unchanged and changed. */
T(test_rereg_changes_each_attribute)
{
	struct bb_pd *pd2;
	struct bb_mr *mr;
	uint32_t old;

	assert_int_equal(bb_pd_alloc(f->dev, &pd2), 0);
	for (int new_key = 0; new_key < 2; new_key++) {
		for (uint32_t flags = 1; flags < 8; flags++) {
			bool trans = flags & TRANS, pd = flags & BB_MR_REREG_PD,
			     access = flags & BB_MR_REREG_ACCESS;
			struct bb_pd *owner = pd ? pd2 : f->pd;
			uint8_t *at = trans ? mem[2] : mem[0];
			size_t len = trans ? 8192 : 4096;

			fake.rereg_new_key = new_key;
			assert_int_equal(bb_mr_reg(f->pd, mem[0], 4096, LW, &mr), 0);
			old = mr->lkey;
			assert_int_equal(bb_mr_rereg(mr, flags, pd ? pd2 : NULL,
						     trans ? mem[2] : NULL, trans ? 8192 : 0,
						     access ? LW | RR : 0),
					 0);
			assert_int_equal(mr->lkey != old, new_key);
			assert_int_equal(mr->lkey, driver_mr(mr)->pub.lkey);
			assert_int_equal(mr->rkey, access ? driver_mr(mr)->pub.rkey : 0);
			assert_ptr_equal(mr->pd, owner);
			assert_ptr_equal(mr->addr, at);
			assert_fields(*mr, len, len, iova, (uintptr_t)at);
			assert_int_equal(mr->access, access ? LW | RR : LW);
			assert_int_equal(driver_mr(mr)->access, mr->access);
			/* Lookups find the new range in the new PD and nothing else. */
			assert_int_equal(lookup(owner, at, len), mr->lkey);
			if (trans)
				assert_int_equal(lookup(owner, mem[0], 1), BB_LKEY_NONE);
			if (pd)
				assert_int_equal(lookup(f->pd, at, 1), BB_LKEY_NONE);
			/* The reserved table entry was released. */
			assert_int_equal(entries_of(owner), 1);
			assert_int_equal(entries_of(f->pd) + entries_of(pd2), 1);
			assert_int_equal(f->pd->mrs, pd ? 0 : 1);
			assert_int_equal(pd2->mrs, pd ? 1 : 0);
			assert_int_equal(stats_of(owner).mrs, 1);
			assert_int_equal(stats_of(owner).bytes, len);
			assert_int_equal(stats_of(pd ? f->pd : pd2).mrs, 0);
			assert_int_equal(stats_of(pd ? f->pd : pd2).bytes, 0);
			assert_int_equal(bb_mr_dereg(mr), 0);
			assert_int_equal(lookup(owner, at, 1), BB_LKEY_NONE);
		}
	}
	assert_int_equal(bb_pd_free(pd2), 0);
}

/* A re-registration that the driver refuses changes nothing in either PD. */
T(test_refused_rereg_changes_nothing)
{
	struct bb_mr *mr, was;
	struct bb_pd *pd2;

	assert_int_equal(bb_pd_alloc(f->dev, &pd2), 0);
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 4096, LW, &mr), 0);
	was = *mr;
	fake_fail(FAKE_MR_REREG, -EFAULT);
	for (uint32_t flags = 1; flags < 8; flags++) {
		bool trans = flags & TRANS;

		assert_int_equal(bb_mr_rereg(mr, flags, pd2, trans ? mem[1] : NULL, trans ? 64 : 0,
					     flags & BB_MR_REREG_ACCESS ? LW | RR : 0),
				 -EFAULT);
		same(mr, &was);
		assert_int_equal(lookup(f->pd, mem[0], 4096), mr->lkey);
		assert_int_equal(lookup(f->pd, mem[1], 1), BB_LKEY_NONE);
		assert_int_equal(lookup(pd2, mem[0], 1), BB_LKEY_NONE);
		assert_int_equal(lookup(pd2, mem[1], 1), BB_LKEY_NONE);
		assert_int_equal(stats_of(f->pd).bytes, 4096);
		assert_int_equal(stats_of(pd2).mrs, 0);
		assert_int_equal(entries_of(pd2), 0);
	}
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_pd_free(pd2), 0);
}

/* The iova stays until the memory changes. A region that becomes ON_DEMAND leaves the table. */
T(test_rereg_keeps_the_iova_until_the_memory_changes)
{
	struct bb_mr *mr;

	all_on(f);
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 4096, LW | ZB, &mr), 0);
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RR), 0);
	assert_fields(*mr, iova, 0, access, LW | RR | ZB);
	assert_int_equal(lookup(f->pd, mem[0], 1), BB_LKEY_NONE);
	assert_int_equal(bb_mr_rereg(mr, TRANS, NULL, mem[1], 4096, 0), 0);
	assert_fields(*mr, iova, (uintptr_t)mem[1], access, LW | RR);
	assert_int_equal(lookup(f->pd, mem[1], 4096), mr->lkey);
	assert_int_equal(
		bb_mr_rereg(mr, TRANS | BB_MR_REREG_ACCESS, NULL, mem[1], 4096, LW | RR | OD), 0);
	assert_fields(*mr, lkey, BB_LKEY_NONE, rkey, driver_mr(mr)->pub.rkey);
	assert_int_equal(lookup(f->pd, mem[1], 1), BB_LKEY_NONE);
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW | OD), 0);
	assert_int_equal(mr->rkey, 0);
	assert_logged(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW), -ENOTSUP,
		      "only with BB_MR_REREG_TRANSLATION");
	assert_int_equal(bb_mr_dereg(mr), 0);
	/* A reserved table entry does not disturb concurrent heap events. */
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 4096, LW, &mr), 0);
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_ALLOC, mem[2], 8192);
	assert_int_equal(bb_mr_rereg(mr, TRANS, NULL, mem[1], 4096, 0), 0);
	assert_int_not_equal(lookup(f->pd, mem[2], 8192), BB_LKEY_NONE);
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_FREE, mem[2], 8192);
	assert_int_equal(lookup(f->pd, mem[2], 1), BB_LKEY_NONE);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

T(test_rereg_without_the_operation_is_unsupported)
{
	static struct bb_driver without;
	const struct bb_driver *with = f->dev->drv;
	struct bb_mr *mr;

	/* The driver registered last lacks the operation. */
	without = fake_driver;
	without.name = "lame";
	without.mr_rereg = NULL;
	bb_driver_register(&without);
	assert_int_equal(bb_mr_reg(f->pd, mem[0], 64, LW, &mr), 0);
	f->dev->drv = with + 1;
	assert_string_equal(f->dev->drv->name, "lame");
	REFUSE(-ENOTSUP, "cannot re-register", bb_mr_rereg(mr, TRANS, NULL, mem[1], 64, 0));
	assert_int_equal(lookup(f->pd, mem[0], 64), mr->lkey);
	f->dev->drv = with;
	assert_int_equal(bb_mr_dereg(mr), 0);
}

TEST_MAIN(fake_eal_init())
