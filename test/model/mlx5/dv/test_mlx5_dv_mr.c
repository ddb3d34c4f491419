/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions through mlx5_cmd_dv.c: without faults, and with each call failing in turn. */
#include "mlx5_dv_env.h"

#define LW        BB_ACCESS_LOCAL_WRITE
#define ALL       (LW | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ)
#define MAX_CALLS 100

struct mrs {
	struct bb_dev *dev;
	struct bb_pd *pd, *pd2;
	struct bb_mr *plain, *iova, *odp;
	bool odp_there;
	int rereg; /* First error of a re-registration, else 0. */
};

static void
rereg(struct mrs *m, struct bb_mr *mr, uint32_t flags, void *addr, size_t len, uint32_t access)
{
	struct bb_mr was = *mr;
	int ret = bb_mr_rereg(mr, flags, m->pd2, addr, len, access);

	if (ret == 0)
		return;
	assert_memory_equal(mr, &was, sizeof(was));
	if (m->rereg == 0)
		m->rereg = ret;
}

static int
open_all(struct mrs *m)
{
	struct bb_dev_attr attr;
	int ret;

	memset(m, 0, sizeof(*m));
	ret = bb_dev_open(SUBST_NAME, &m->dev);
	if (ret == 0)
		ret = bb_dev_query(m->dev, &attr);
	if (ret == 0)
		ret = bb_pd_alloc(m->dev, &m->pd);
	if (ret == 0)
		ret = bb_pd_alloc(m->dev, &m->pd2);
	if (ret == 0)
		ret = bb_mr_reg(m->pd, buf, BUF, ALL, &m->plain);
	if (ret == 0)
		ret = bb_mr_reg_iova(m->pd, buf, BUF, 0x10000, ALL, &m->iova);
	if (ret != 0)
		return ret;
	m->odp_there = attr.odp;
	if (attr.odp)
		ret = bb_mr_reg(m->pd, buf, BUF, ALL | BB_ACCESS_ON_DEMAND, &m->odp);
	if (ret != 0)
		return ret;
	rereg(m, m->plain, BB_MR_REREG_ACCESS, NULL, 0, LW);
	rereg(m, m->iova, BB_MR_REREG_TRANSLATION | BB_MR_REREG_PD, buf, 64, 0);
	return m->rereg;
}

static int
close_all(struct mrs *m)
{
	int first = 0;

	if (m->plain != NULL)
		DESTROY(bb_mr_dereg(m->plain));
	if (m->iova != NULL)
		DESTROY(bb_mr_dereg(m->iova));
	if (m->odp != NULL)
		DESTROY(bb_mr_dereg(m->odp));
	if (m->pd != NULL)
		DESTROY(bb_pd_free(m->pd));
	if (m->pd2 != NULL)
		DESTROY(bb_pd_free(m->pd2));
	if (m->dev != NULL)
		DESTROY(bb_dev_close(m->dev));
	return first;
}

T(test_each_kind_of_region_is_registered)
{
	struct bb_dev_attr attr;
	struct mrs m;

	assert_int_equal(open_all(&m), 0);
	OK(bb_dev_query(m.dev, &attr));
	assert_int_equal(attr.max_mr, 1 << 20);
	assert_true(attr.relaxed_ordering);
	assert_int_equal(m.plain->access, LW);
	assert_int_equal(m.plain->rkey, 0);
	assert_int_equal(m.iova->iova, (uintptr_t)buf);
	assert_int_equal(m.iova->len, 64);
	assert_ptr_equal(m.iova->pd, m.pd2);
	if (m.odp_there)
		assert_int_equal(m.odp->lkey, BB_LKEY_NONE);
	assert_int_equal(close_all(&m), 0);
}

T(test_each_failing_call_leaves_nothing)
{
	static const int errs[] = {ENOMEM, EINVAL, EPERM, EFAULT};
	unsigned int reregs = 0;
	size_t i;
	uint32_t k;

	for (i = 0; i < RTE_DIM(errs); i++) {
		for (k = 1; k < MAX_CALLS; k++) {
			struct mrs m;
			int ret, late;

			subst_reset();
			forget_log();
			subst.fail_at = k;
			subst.fail_errno = errs[i];
			ret = open_all(&m);
			fflush(log_file);
			late = close_all(&m);
			if (subst.handles != 0)
				fail_msg("call %u (%s): %u handles are left", k, subst.failed_call,
					 subst.handles);
			if (!subst.failed)
				break;
			ret = ret == 0 ? late : ret;
			if (ret != 0 && !said(SUBST_NAME))
				fail_msg("call %u (%s) gives %d and no line in the log", k,
					 subst.failed_call, ret);
			if (strcmp(subst.failed_call, "ibv_rereg_mr") == 0) {
				assert_int_equal(ret, -errs[i]);
				reregs++;
			}
			if (strcmp(subst.failed_call, "ibv_reg_mr_iova2") == 0) {
				assert_int_equal(ret, -errs[i]);
				/*
				 * The log names both limits, because ENOMEM does not say which
				 * one was reached.
				 */
				if (errs[i] == ENOMEM)
					assert_true(said("max_mr of 1048576") && said("ulimit -l"));
			}
		}
		assert_in_range(k, 10, MAX_CALLS - 1);
	}
	assert_int_equal(reregs, 2 * RTE_DIM(errs));
}

/* ibv_rereg_mr(): "New MR is valid, failed via do fork on old address range". */
T(test_failed_fork_mark_keeps_the_new_region)
{
	struct bb_mr *mr;
	struct mrs m;

	assert_int_equal(open_all(&m), 0);
	mr = m.plain;
	subst.rereg_code = IBV_REREG_MR_ERR_DO_FORK_OLD;
	OK(bb_mr_rereg(mr, BB_MR_REREG_TRANSLATION, NULL, buf, 128, 0));
	assert_int_equal(mr->len, 128);
	assert_true(said("fork()"));
	subst.rereg_code = 0;
	assert_int_equal(close_all(&m), 0);
}

/*
 * A device without paging: the library refuses it by the capability. The kernel's own error
 * differs: EINVAL before 6.2, EOPNOTSUPP later.
 */
T(test_device_without_paging_refuses_it)
{
	struct bb_mr *mr = NULL;
	struct mrs m;

	snprintf(subst.args, sizeof(subst.args), "no_odp,no_relaxed");
	assert_int_equal(open_all(&m), 0);
	assert_false(m.odp_there);
	assert_int_equal(bb_mr_reg(m.pd, buf, BUF, LW | BB_ACCESS_ON_DEMAND, &mr), -ENOTSUP);
	assert_null(mr);
	OK(bb_mr_reg(m.pd, buf, BUF, LW | BB_ACCESS_RELAXED_ORDERING, &mr));
	assert_int_equal(mr->access, LW);
	OK(bb_mr_dereg(mr));
	assert_int_equal(close_all(&m), 0);
}

int
main(void)
{
	return run_group("mlx5_dv_mr");
}
