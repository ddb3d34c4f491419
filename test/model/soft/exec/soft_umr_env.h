/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* UMR WQEs built with rdma-core's segments, and a pair of QPs with keys to change. */
#ifndef SOFT_UMR_ENV_H
#define SOFT_UMR_ENV_H

#include <string.h>

#include "../soft_rig.h"

#define ALL_MW (RIG_ALL | BB_ACCESS_MW_BIND)

#define MASK_BIND                                                                                  \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |                \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |                     \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |                                          \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |                                          \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE |                                         \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

/* A UMR WQE before it is written to the ring. */
struct umr {
	uint8_t opcode;
	uint32_t ds, key;
	struct mlx5_wqe_umr_ctrl_seg u;
	struct mlx5_wqe_mkey_context_seg m;
	uint8_t x[16 * 55];
};

struct keys {
	struct rig_pair p;
	struct rig_mem mem;        /* b's memory: registered in b's PD, with MW_BIND. */
	struct mlx5_mw *one, *two; /* b's windows */
	struct mlx5_obj *obj;      /* an indirect key of 8 entries */
	uint32_t key;
};

/* Creates the windows and the indirect key. */
static inline void
keys_make(struct keys *k, struct rig_dev *d)
{
	uint8_t in[BB_PRM_SZ_CREATE_MKEY_IN] = {0}, out[BB_PRM_SZ_SHORT];
	uint8_t *mkc = in + 0x10;

	OK(soft_cmd_if.mw_alloc(d->ctx, d->pd, 1, &k->one));
	OK(soft_cmd_if.mw_alloc(d->ctx, d->pd, 2, &k->two));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(mkc, BB_PRM_MKC_FREE, 1);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(mkc, BB_PRM_MKC_EN_RINVAL, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, d->pd->pdn);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, 8);
	OK(soft_cmd_if.obj_create(d->ctx, in, sizeof(in), out, sizeof(out), &k->obj));
	k->key = bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
}

static inline void
keys_free(struct keys *k, struct rig_dev *d)
{
	OK(soft_cmd_if.obj_destroy(k->obj));
	OK(soft_cmd_if.mw_free(d->ctx, k->one));
	OK(soft_cmd_if.mw_free(d->ctx, k->two));
}

static inline struct keys *
keys_open_args(const char *args, bool two_uars)
{
	static struct keys k;

	memset(&k, 0, sizeof(k));
	rig_pair_open(&k.p, args, two_uars, NULL);
	rig_mem_open(&k.mem, &k.p.d, NULL, RIG_MEM, ALL_MW);
	keys_make(&k, &k.p.d);
	return &k;
}

static inline struct keys *
keys_open(bool two_uars)
{
	return keys_open_args(NULL, two_uars);
}

static inline void
keys_close(struct keys *k)
{
	keys_free(k, &k->p.d);
	rig_mem_close(&k->mem);
	rig_pair_close(&k->p);
}

static inline void
put_klm(struct umr *w, uint32_t i, uint32_t len, uint32_t lkey, uint64_t addr)
{
	mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)w->x + i, len, lkey, addr);
}

static inline struct umr
umr_make(uint32_t key, uint8_t flags, uint64_t mask, uint16_t xlt)
{
	struct umr w = {.opcode = MLX5_OPCODE_UMR, .ds = 8u + xlt, .key = key};

	w.u.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE | flags;
	w.u.klm_octowords = htobe16(xlt);
	w.u.mkey_mask = htobe64(mask);
	return w;
}

/* Returns a bind of b's window to the first 256 bytes of the memory. */
static inline struct umr
bind_make(struct keys *k, bool type2)
{
	struct umr w = umr_make(type2 ? k->two->rkey : k->one->rkey,
				MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET |
					(type2 ? MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE : 0),
				MASK_BIND | (type2 ? MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN : 0), 4);

	w.m.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE |
			   MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
	w.m.qpn_mkey = htobe32((type2 ? k->p.b.qpn : 0xffffff) << 8 | 0x77);
	w.m.start_addr = htobe64((uintptr_t)k->mem.p);
	w.m.len = htobe64(256);
	put_klm(&w, 0, 256, k->mem.mr->lkey, (uintptr_t)k->mem.p);
	return w;
}

static inline struct umr
inv_make(uint32_t key)
{
	struct umr w = umr_make(
		key, MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET | MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN,
		MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY |
			MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN,
		0);

	w.m.free = MLX5_WQE_MKEY_CONTEXT_FREE;
	w.m.qpn_mkey = htobe32(0xffffff00);
	return w;
}

static inline struct umr
list_make(struct keys *k)
{
	struct umr w = umr_make(k->key, 0, MASK_BIND & ~MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR, 4);

	w.m.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE |
			   MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
	w.m.qpn_mkey = htobe32(0xffffff00);
	w.m.len = htobe64(256);
	put_klm(&w, 0, 128, k->mem.mr->lkey, (uintptr_t)k->mem.p + 1000);
	put_klm(&w, 1, 128, k->mem.mr->lkey, (uintptr_t)k->mem.p);
	return w;
}

/* Returns a pattern: 8 bytes of every 32 and 4 bytes of every 100, 5 times. */
static inline struct umr
pattern_make(struct keys *k)
{
	struct umr w = list_make(k);
	struct mlx5_wqe_umr_repeat_block_seg *rb = (void *)w.x;
	struct mlx5_wqe_umr_repeat_ent_seg *e = (void *)(w.x + 16);

	memset(w.x, 0, sizeof(w.x));
	rb->byte_count = htobe32(12);
	rb->op = htobe32(0x400);
	rb->repeat_count = htobe32(5);
	rb->num_ent = htobe16(2);
	e[0].stride = htobe16(32);
	e[0].byte_count = htobe16(8);
	e[1].stride = htobe16(100);
	e[1].byte_count = htobe16(4);
	e[0].memkey = e[1].memkey = htobe32(k->mem.mr->lkey);
	e[0].va = htobe64((uintptr_t)k->mem.p);
	e[1].va = htobe64((uintptr_t)k->mem.p + 4096);
	w.m.len = htobe64(60);
	return w;
}

/* Writes the UMR into the ring of @q segment by segment, past the ring's end. */
static inline void
umr_put(struct rig_qp *q, const struct umr *w, uint8_t fm_ce_se)
{
	uint32_t ds;

	for (ds = 1; ds < w->ds; ds++) {
		const uint8_t *from = ds < 4   ? (const uint8_t *)&w->u + (ds - 1) * 16
				      : ds < 8 ? (const uint8_t *)&w->m + (ds - 4) * 16
					       : w->x + (ds - 8) * 16;

		memcpy(rig_seg(q, q->pi, ds), from, 16);
	}
	rig_wqe(q, w->opcode, fm_ce_se, w->ds, htobe32(w->key));
}

static inline void
umr_ok(struct rig_qp *q, const struct umr *w)
{
	uint16_t at = q->pi;

	umr_put(q, w, RIG_CQE);
	rig_done(q, MLX5_OPCODE_UMR, at);
}

/* Creates a key over 4 KiB of another key, usable without a UMR. */
static inline struct mlx5_obj *
key_over(struct keys *k, const struct mlx5_pd *pd, bool umr, bool rinval, uint32_t below,
	 uint64_t addr, uint32_t *key)
{
	uint8_t in[BB_PRM_SZ_CREATE_MKEY_IN + 4 * 16] = {0}, out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *obj;
	uint8_t *mkc = in + 0x10;

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, umr);
	bb_prm_set(mkc, BB_PRM_MKC_EN_RINVAL, rinval);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, pd->pdn);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, 4);
	bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, 1);
	bb_prm_set64(mkc, BB_PRM_MKC_LEN, 4096);
	mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)(in + 0x110), 4096, below, addr);
	OK(soft_cmd_if.obj_create(k->p.d.ctx, in, sizeof(in), out, sizeof(out), &obj));
	*key = bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
	return obj;
}

/* Creates a key over the first 4 KiB of the memory. */
static inline struct mlx5_obj *
used_key(struct keys *k, const struct mlx5_pd *pd, bool umr, bool rinval, uint32_t *key)
{
	return key_over(k, pd, umr, rinval, k->mem.mr->lkey, (uintptr_t)k->mem.p, key);
}

#endif
