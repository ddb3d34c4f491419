/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CREATE_MKEY for indirect keys. The translation is a list of KLM entries, or of KSM entries if all
 * SGEs have one size. A key without entries is created in the state "free", so that a later UMR can
 * fill it, and with low byte 0. libmlx5's mlx5dv_create_mkey() does the same.
 *
 * Every open driver gives a KLM key room for a multiple of 4 entries, and pads the list in the
 * mailbox to that room: create_indirect_key() of Linux (drivers/vdpa/mlx5/core/mr.c), and DPDK's
 * mlx5_devx_cmd_mkey_create(). UCX does not pad its lists of KSM entries.
 */
#include <stdlib.h>

#include <rte_bitops.h>

#include "mlx5.h"

#define KLM         16u
#define MIN_LOG_KSM 12u
#define MAX_MAILBOX (BB_PRM_SZ_CREATE_MKEY_IN + (KLM << MLX5_LOG_MAX_KLM))

/*
 * Returns log2 of the common size of all SGEs, up to 31; the last SGE may be shorter. Returns 0 if
 * the sizes differ.
 *
 * Also returns 0 if the SGEs are too short for a check of the firmware. Firmware rounds iova down
 * to a multiple of the size, adds the difference to the length, and rejects the key if the SGEs are
 * shorter. UCX reports the error as "create mkey: window size exceed translations_octword_size",
 * and gives such keys one more entry.
 */
static uint32_t
fixed_size(const struct bb_drv_mr_attr *attr)
{
	uint64_t size = attr->pieces[0].len;
	uint32_t log, i;

	if (attr->n == 1)
		size = rte_align64pow2(RTE_MAX(size, UINT64_C(1) << MIN_LOG_KSM));
	log = (uint32_t)__builtin_ctzll(size);
	if (size != UINT64_C(1) << log || log < MIN_LOG_KSM)
		return 0;
	if ((attr->iova & (size - 1)) + attr->len > attr->n * size)
		return 0;
	for (i = 1; i < attr->n; i++)
		if (attr->pieces[i].len > size || (attr->pieces[i].len != size && i + 1 < attr->n))
			return 0;
	return log;
}

static void
put_entries(const struct bb_drv_mr_attr *attr, bool ksm, uint8_t *x)
{
	const struct bb_prm_field count = {0, 0, 32}, key = {4, 0, 32}, addr = {8, 0, 64};
	uint32_t i;

	for (i = 0; i < attr->n; i++, x += KLM) {
		bb_prm_set(x, count, ksm ? 0 : attr->pieces[i].len);
		bb_prm_set(x, key, attr->pieces[i].lkey);
		bb_prm_set64(x, addr, attr->pieces[i].addr);
	}
}

/*
 * Returns a low byte for a new key, which peers cannot predict. It differs from the low bytes of
 * the last 255 keys, so an old key with the same index is invalid.
 */
static int
next_variant(struct mlx5_dev *d, uint32_t *variant)
{
	uint32_t random[256], i, j;
	int ret;

	if (!d->mkey_shuffled) {
		ret = bb_random(d->dev, random, sizeof(random));
		if (ret != 0)
			return ret;
		for (i = 0; i < 256; i++) {
			j = random[i] % (i + 1);
			d->mkey_variants[i] = d->mkey_variants[j];
			d->mkey_variants[j] = (uint8_t)i;
		}
		d->mkey_shuffled = true;
	}
	*variant = d->mkey_variants[d->mkey_next++];
	return 0;
}

int
mlx5_mkey_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct mlx5_obj **obj,
		 uint32_t *key)
{
	struct mlx5_dev *d = mlx5_dev_of(pd->dev);
	uint8_t in[MAX_MAILBOX] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	uint32_t log = d->caps.ksm && attr->n != 0 ? fixed_size(attr) : 0;
	void *mkc = bb_prm_sub(in, BB_PRM_CREATE_MKEY_MKC);
	uint32_t room = log != 0 ? attr->n : RTE_ALIGN_CEIL(attr->n, BB_WQE_XLT_ALIGN);
	bool empty = attr->n == 0;
	uint32_t variant = 0;
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE,
		   log != 0 ? BB_PRM_MKC_MODE_KSM : BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, log);
	bb_prm_set(mkc, BB_PRM_MKC_PD, ((const struct mlx5_pd *)pd->priv)->pdn);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, BB_MKEY_ANY_QP);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RELAXED_ORDERING_WRITE, d->caps.relaxed_only);
	bb_prm_set64(mkc, BB_PRM_MKC_START_ADDR, attr->iova);
	if (empty) {
		bb_prm_set(mkc, BB_PRM_MKC_FREE, 1);
		bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
		/*
		 * Reserve a multiple of 64 bytes, because UMR changes translations in blocks of 64
		 * bytes.
		 */
		bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE,
			   RTE_ALIGN_CEIL(attr->max_pieces, BB_WQE_XLT_ALIGN));
	} else {
		ret = next_variant(d, &variant);
		if (ret != 0)
			return ret;
		bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, variant);
		bb_prm_set(mkc, BB_PRM_MKC_LW, (attr->access & BB_ACCESS_LOCAL_WRITE) != 0);
		bb_prm_set(mkc, BB_PRM_MKC_RR, (attr->access & BB_ACCESS_REMOTE_READ) != 0);
		bb_prm_set(mkc, BB_PRM_MKC_RW, (attr->access & BB_ACCESS_REMOTE_WRITE) != 0);
		bb_prm_set(mkc, BB_PRM_MKC_A, (attr->access & BB_ACCESS_REMOTE_ATOMIC) != 0);
		bb_prm_set64(mkc, BB_PRM_MKC_LEN, attr->len);
		bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, room);
		bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, attr->n);
		put_entries(attr, log != 0, in + BB_PRM_SZ_CREATE_MKEY_IN);
	}
	ret = mlx5_obj_create(d, "CREATE_MKEY", in, BB_PRM_SZ_CREATE_MKEY_IN + (size_t)room * KLM,
			      out, sizeof(out), obj);
	if (ret == 0)
		*key = bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | variant;
	return ret;
}
