/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory of the verbs driver on the null provider: device memory, re-registration, windows. */
#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

static uint8_t page[4096] __attribute__((aligned(4096)));

T_F(test_device_memory_is_copied_and_transferred)
{
	uint8_t data[256], back[256];
	struct bb_dev_attr attr;
	uint64_t counter = 40;
	struct bb_sge sge;
	struct bb_mr *mr;
	struct bb_dm *dm;

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i ^ 0x5a);
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_int_equal(attr.max_dm_size, 4096);
		/* At least the alignment that atomics need. */
		assert_true(attr.max_dm_log_align >= 3);
		assert_int_equal(bb_dm_alloc(f->dev, 4097, 0, &dm), -EINVAL);
		assert_int_equal(bb_dm_alloc(f->dev, 1024, 6, &dm), 0);
		assert_fields(null_dev, dm_len, 1024, dm_log_align, 6);
		assert_int_equal(bb_dm_write(dm, 512, data, sizeof(data)), 0);
		memset(back, 0, sizeof(back));
		assert_int_equal(bb_dm_read(dm, back, 516, sizeof(back) - 4), 0);
		assert_memory_equal(back, data + 4, sizeof(back) - 4);
		assert_int_equal(bb_dm_write(dm, 1020, data, 8), -EFAULT);

		/* Its second half, with addresses from 0. */
		assert_int_equal(bb_mr_reg_dm(f->pd, dm, 512, 512,
					      BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, &mr),
				 0);
		assert_int_equal(mr->iova, 0);
		assert_int_equal(bb_mr_reg_dm(f->pd, dm, 512, 513, 0, &mr), -EINVAL);
		sge = (struct bb_sge){4, 100, mr->lkey};
		one(f, bb_post_write(f->qp, 1, &sge, 1, TO, f->mr->rkey, BB_SEND_SIGNALED), 1,
		    BB_WC_RDMA_WRITE);
		assert_memory_equal(mem + LEN, data + 4, 100);
		sge = piece(f, FROM, 64);
		one(f, bb_post_write(f->qp, 2, &sge, 1, 256, mr->rkey, BB_SEND_SIGNALED), 2,
		    BB_WC_RDMA_WRITE);
		assert_int_equal(bb_dm_read(dm, back, 512 + 256, 64), 0);
		assert_memory_equal(back, mem, 64);
		assert_int_equal(bb_dm_write(dm, 512 + 8, &counter, sizeof(counter)), 0);
		sge = piece(f, TO, 8);
		one(f, bb_post_fetch_add(f->qp, 3, &sge, 8, mr->rkey, 2, BB_SEND_SIGNALED), 3,
		    BB_WC_FETCH_ADD);
		assert_int_equal(bb_dm_read(dm, back, 512 + 8, sizeof(counter)), 0);
		assert_int_equal(memcmp(back, &(uint64_t){42}, sizeof(counter)), 0);

		/* It stays while keys refer to it. */
		assert_int_equal(bb_dm_free(dm), -EBUSY);
		assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(bb_dm_free(dm), 0);
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

/* An error of the provider is returned unchanged, and everything stays as it was. */
T_ON(BB_QPT_RC, false, test_refused_device_memory_changes_nothing)
{
	uint8_t word[4] = {1, 2, 3, 4}, back[4] = {0};
	struct bb_dm *dm = NULL;
	struct bb_mr *mr = NULL;

	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), -ENOMEM);
	assert_null(dm);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), 0);
	null_dev.fail_at = 1;
	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 64, 0, &mr), -ENOMEM);
	assert_null(mr);
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 1;
	assert_logged(bb_dm_write(dm, 0, word, 4), -EIO,
		      "cannot copy 4 bytes at offset 0 of device memory");
	assert_logged(bb_dm_write(dm, 0, word, 4), 0, NULL);
	null_dev.fail_at = 1;
	assert_int_equal(bb_dm_read(dm, back, 0, 4), -EIO);
	assert_int_equal(bb_dm_read(dm, back, 0, 4), 0);
	assert_memory_equal(back, word, 4);
	assert_int_equal(bb_dm_free(dm), 0);
}

/* libhns copies short receives to the address in the request, so that must be a pointer. */
T_F(test_region_with_other_iova_is_refused_over_libhns)
{
	const uint32_t access = BB_ACCESS_LOCAL_WRITE;
	const uint64_t elsewhere = UINT64_C(0x100000) + (TO & 0xfff);
	struct bb_mr *mr[5];
	struct bb_mw *mw;
	struct bb_dm *dm;
	uint32_t objects;
	int ret[5], hns;

	for (hns = 0; hns < 2; hns++) {
		null_dev.vendor_id = hns ? 0x19e5 : 0;
		make(f, BB_QPT_RC, false, 0);
		assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), 0);
		objects = null_dev.objects;
		log_begin();
		ret[0] = bb_mr_reg_iova(f->pd, mem + LEN, 64, elsewhere, access, &mr[0]);
		ret[1] = bb_mr_reg_iova(f->pd, page, sizeof(page), 0, access, &mr[1]);
		ret[2] =
			bb_mr_reg(f->pd, page, sizeof(page), access | BB_ACCESS_ZERO_BASED, &mr[2]);
		ret[3] = bb_mr_reg_dmabuf(f->pd, 0, LEN, 0, 1, access, &mr[3]);
		ret[4] = bb_mr_reg_dm(f->pd, dm, 0, 64, access, &mr[4]);
		log_expect(hns ? "the iova must be the address of the memory in this process, "
				 "because libhns copies short receives"
			       : NULL);
		for (uint32_t i = 0; i < RTE_DIM(ret); i++) {
			assert_int_equal(ret[i], hns ? -ENOTSUP : 0);
			if (ret[i] == 0)
				assert_int_equal(bb_mr_dereg(mr[i]), 0);
		}
		assert_int_equal(null_dev.objects, objects);
		/* A window has no memory of its own. */
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &mw), 0);
		assert_int_equal(bb_mw_free(mw), 0);
		assert_int_equal(bb_dm_free(dm), 0);
		fixture_free(f);
		null_reset();
	}
}

/*
 * rxe of Linux 6.12 refuses the right; the iova has the same effect. Device memory needs the
 * right.
 */
T_ON(BB_QPT_RC, false, test_zero_based_right_is_left_out_beside_an_iova)
{
	const uint32_t access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_ZERO_BASED;
	struct bb_dm *dm;
	struct bb_mr *mr;

	assert_int_equal(bb_mr_reg(f->pd, page, sizeof(page), access, &mr), 0);
	assert_fields(null_dev, reg_access, IBV_ACCESS_LOCAL_WRITE, reg_iova, 0);
	assert_fields(*mr, iova, 0, access, access);
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0,
				     BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ),
			 0);
	assert_int_equal(null_dev.rereg.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_mr_reg(f->pd, page, sizeof(page), BB_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(null_dev.reg_iova, (uintptr_t)page);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), 0);
	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 64, access, &mr), 0);
	assert_int_equal(null_dev.reg_access, access);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_dm_free(dm), 0);
}

static uint32_t
lkey_of(struct bb_pd *pd, const void *ptr, uint64_t len)
{
	struct bb_lkey_cache cache;

	bb_lkey_cache_init(&cache, pd);
	return bb_mem_lkey(&cache, ptr, len);
}

/* Later requests use the new keys of the region; so do binds, which have a key only. */
T_ON(BB_QPT_RC, false, test_rereg_gives_later_requests_new_keys)
{
	static uint8_t other[LEN] __attribute__((aligned(64)));
	const uint32_t rights = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_MW_BIND | BB_ACCESS_REMOTE_READ;
	uint32_t lkey, rkey;
	struct bb_dev_attr attr;
	struct bb_pd *pd;
	struct bb_mr *mr;
	struct bb_mw *mw;

	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_true(attr.mr_rereg);
	assert_int_equal(bb_pd_alloc(f->dev, &pd), 0);
	assert_int_equal(bb_mr_reg(f->pd, mem, LEN, rights, &mr), 0);
	lkey = mr->lkey;
	rkey = mr->rkey;

	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, other, 2048, 0), 0);
	assert_int_equal(null_dev.rereg.flags, IBV_REREG_MR_CHANGE_TRANSLATION);
	assert_ptr_equal(null_dev.rereg.addr, other);
	assert_int_equal(null_dev.rereg.len, 2048);
	assert_true(mr->lkey != lkey && mr->rkey != rkey);
	assert_int_equal(lkey_of(f->pd, other, 2048), mr->lkey);
	assert_int_equal(lkey_of(f->pd, other, 2049), BB_LKEY_NONE);
	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
	one(f,
	    bb_mw_bind(f->qp, 1, mw, mr, (uintptr_t)other, 64, BB_ACCESS_REMOTE_READ,
		       BB_SEND_SIGNALED),
	    1, BB_WC_BIND_MW);
	/* A window is bound to it. */
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, mem, 64, 0), -EBUSY);
	assert_int_equal(bb_mw_free(mw), 0);

	null_dev.fail_errno = EOPNOTSUPP;
	null_dev.fail_at = 1;
	lkey = mr->lkey;
	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, mem, 64, 0), -ENOTSUP);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(lkey_of(f->pd, other, 2048), lkey);
	assert_int_equal(lkey_of(f->pd, mem, 64), f->mr->lkey);

	assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_PD | BB_MR_REREG_ACCESS, pd, NULL, 0,
				     BB_ACCESS_LOCAL_WRITE),
			 0);
	assert_int_equal(null_dev.rereg.flags, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS);
	assert_int_equal(null_dev.rereg.access, IBV_ACCESS_LOCAL_WRITE);
	assert_ptr_not_equal(null_dev.rereg.pd, NULL);
	assert_null(null_dev.rereg.addr);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(lkey_of(pd, other, 64), mr->lkey);
	assert_int_equal(lkey_of(f->pd, other, 64), BB_LKEY_NONE);
	assert_int_equal(bb_pd_free(pd), -EBUSY);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_pd_free(pd), 0);
}

/* The new region exists even if only the fork() advice for the old memory failed. */
T_ON(BB_QPT_RC, false, test_rereg_survives_a_failed_fork_advice)
{
	static uint8_t other[LEN] __attribute__((aligned(64)));
	struct bb_mr *mr;
	uint32_t lkey;

	assert_int_equal(bb_mr_reg(f->pd, mem, LEN, BB_ACCESS_LOCAL_WRITE, &mr), 0);
	lkey = mr->lkey;
	null_dev.rereg.code = IBV_REREG_MR_ERR_DO_FORK_OLD;
	assert_logged(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, other, 64, 0), 0,
		      "excludes its old memory from fork()");
	assert_int_not_equal(mr->lkey, lkey);
	assert_ptr_equal(mr->addr, other);
	assert_int_equal(lkey_of(f->pd, other, 64), mr->lkey);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

/* An optional right reaches the provider: there is no way to query its support. */
T(test_relaxed_ordering_reaches_the_provider)
{
	const uint32_t access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_RELAXED_ORDERING;
	struct bb_mr *mr;
	struct fixture f;
	const struct {
		uint32_t vendor_id;
		bool taken;
	} devs[] = {{0, true}, {0xffffff, false}, {0x626d74, false}}; /* rxe, siw */

	for (size_t i = 0; i < RTE_DIM(devs); i++) {
		setup(state);
		null_dev.vendor_id = devs[i].vendor_id;
		make(&f, BB_QPT_RC, false, 0);
		assert_int_equal(bb_mr_reg(f.pd, mem, LEN, access, &mr), 0);
		assert_int_equal(mr->access == access, devs[i].taken);
		assert_int_equal(null_dev.reg_access, mr->access);
		assert_int_equal(bb_mr_dereg(mr), 0);
		fixture_free(&f);
		assert_int_equal(teardown(state), 0);
	}
}

/* An old kernel's refusal of the right is no error of the caller, by either call. */
T_F(test_refused_relaxed_ordering_is_left_out)
{
	const uint32_t access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_RELAXED_ORDERING;
	struct bb_mr *mr[3];
	struct bb_dm *dm;
	bool old;

	for (old = false;; old = true) {
		const unsigned int want = old ? BB_ACCESS_LOCAL_WRITE : access;

		make(f, BB_QPT_RC, false, 0);
		null_dev.no_optional = old;
		assert_int_equal(bb_mr_reg(f->pd, mem, LEN, access, &mr[0]), 0);
		assert_int_equal(null_dev.reg_access, want);
		assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), 0);
		assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 64, access, &mr[1]), 0);
		/* Every kernel refuses the right for device memory. */
		assert_int_equal(null_dev.reg_access, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_ZERO_BASED);
		assert_int_equal(bb_mr_reg_dmabuf(f->pd, 0, 4096, 0, 1, access, &mr[2]), 0);
		assert_int_equal(null_dev.reg_access, want);
		assert_logged(bb_mr_rereg(mr[0], BB_MR_REREG_ACCESS, NULL, NULL, 0, access), 0,
			      NULL);
		assert_int_equal(null_dev.reg_access, want);
		/* Other errors are returned. */
		null_dev.fail_errno = EINVAL;
		null_dev.fail_at = 1;
		if (!old)
			assert_int_equal(bb_mr_rereg(mr[0], BB_MR_REREG_ACCESS, NULL, NULL, 0, 0),
					 -EINVAL);
		null_dev.fail_at = 0;
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(bb_mr_dereg(mr[i]), 0);
		assert_int_equal(bb_dm_free(dm), 0);
		fixture_free(f);
		if (old)
			break;
	}
}

static void
to_rts_again(struct fixture *f)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
}

/*
 * libibverbs chooses the key of a type 1 window. The library has it also after a refused bind,
 * and after one that a reset discarded.
 */
T_F(test_window_key_follows_refused_and_discarded_binds)
{
	struct bb_mw *mw = NULL;
	struct bb_wc wc;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
		null_dev.bad_wr = 1;
		assert_int_equal(bb_mw_bind(f->qp, 1, mw, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE,
					    BB_SEND_SIGNALED),
				 0);
		bb_qp_ring(f->qp);
		take(f, &wc, 1);
		assert_int_equal(wc.status, BB_WC_MW_BIND_ERR);
		to_rts_again(f);
		assert_int_equal(bb_mw_bind(f->qp, 2, mw, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE,
					    BB_SEND_SIGNALED),
				 0);
		to_rts_again(f);
		one(f,
		    bb_mw_bind(f->qp, 3, mw, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE,
			       BB_SEND_SIGNALED),
		    3, BB_WC_BIND_MW);
		assert_int_equal(null_dev.bind_rkey, mw->rkey);
		assert_int_equal(bb_mw_free(mw), 0);
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

/* The provider cannot allocate another window; it refuses the region of a bind. */
T_F(test_refused_window_or_bind_is_returned)
{
	struct bb_mw *mw = NULL;
	struct bb_wc wc[2];

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		null_dev.fail_errno = ENOMEM;
		null_dev.fail_at = 1;
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &mw), -ENOMEM);
		assert_null(mw);
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &mw), 0);
		null_dev.bad_wr = 1;
		assert_int_equal(bb_post_bind_mw(f->qp, 7, mw, bb_inc_rkey(mw->rkey), f->mr, FROM,
						 64, BB_ACCESS_REMOTE_WRITE, BB_SEND_SIGNALED),
				 0);
		assert_int_equal(bb_mr_dereg(f->mr), -EBUSY);
		bb_qp_ring(f->qp);
		take(f, wc, 1);
		assert_fields(wc[0], wr_id, 7, status, BB_WC_MW_BIND_ERR);
		/* The bind failed, so the region can be deregistered. */
		assert_int_equal(bb_mr_dereg(f->mr), 0);
		f->mr = NULL;
		assert_int_equal(bb_mw_free(mw), 0);
		mw = NULL;
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
