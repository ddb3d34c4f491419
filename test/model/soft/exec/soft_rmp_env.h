/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A receive queue that QPs share (RMP), made by mailboxes and written by hand. */
#ifndef SOFT_RMP_ENV_H
#define SOFT_RMP_ENV_H

#include <stdlib.h>

#include "../soft_rig.h"

#define RMPC 0x20
#define WQ   (RMPC + 0x30)

struct rmp {
	struct rig_dev *d;
	struct mlx5_obj *obj;
	struct mlx5_umem *umem;
	uint8_t *mem;
	uint32_t *dbrec;
	uint32_t rmpn, log, log_stride, head;
	uint16_t posted;
};

static inline void
rmp_open(struct rmp *r, struct rig_dev *d, uint32_t type, bool basic, uint32_t log,
	 uint32_t log_stride)
{
	uint8_t in[BB_PRM_SZ_RMP] = {0}, out[BB_PRM_SZ_SHORT];
	size_t bytes = (size_t)1 << (log + log_stride);
	size_t size = (bytes + 64 + 4095) & ~(size_t)4095;

	memset(r, 0, sizeof(*r));
	r->d = d;
	r->log = log;
	r->log_stride = log_stride;
	r->head = basic ? 0 : 16;
	r->mem = aligned_alloc(4096, size);
	assert_non_null(r->mem);
	memset(r->mem, 0, size);
	r->dbrec = (uint32_t *)(void *)(r->mem + bytes);
	OK(soft_cmd_if.umem_reg(d->ctx, r->mem, size, 0, 4096, &r->umem));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in + RMPC, BB_PRM_RMPC_BASIC_CYCLIC, basic);
	bb_prm_set(in + WQ, BB_PRM_WQ_TYPE, type);
	bb_prm_set(in + WQ, BB_PRM_WQ_PD, d->pd->pdn);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_STRIDE, log_stride);
	bb_prm_set(in + WQ, BB_PRM_WQ_LOG_SZ, log);
	bb_prm_set(in + WQ, BB_PRM_WQ_DBR_UMEM_ID, r->umem->id);
	bb_prm_set64(in + WQ, BB_PRM_WQ_DBR_ADDR, bytes);
	bb_prm_set(in + WQ, BB_PRM_WQ_UMEM_ID, r->umem->id);
	OK(soft_cmd_if.obj_create(d->ctx, in, sizeof(in), out, sizeof(out), &r->obj));
	r->rmpn = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
}

static inline void
rmp_close(struct rmp *r)
{
	OK(soft_cmd_if.obj_destroy(r->obj));
	OK(soft_cmd_if.umem_dereg(r->d->ctx, r->umem));
	free(r->mem);
}

/* Writes WQE @idx with a link to @next and one piece. */
static inline void
rmp_wqe(struct rmp *r, uint32_t idx, uint16_t next, const struct rig_mem *m, size_t off,
	uint32_t len)
{
	uint8_t *wqe = r->mem + ((size_t)idx << r->log_stride);
	struct mlx5_wqe_data_seg *s = (void *)(wqe + r->head);

	if (r->head != 0)
		((struct mlx5_wqe_srq_next_seg *)(void *)wqe)->next_wqe_index = htobe16(next);
	if (len != 0)
		mlx5dv_set_data_seg(s++, len, m->mr->lkey, (uintptr_t)m->p + off);
	if ((uint8_t *)s != wqe + ((size_t)1 << r->log_stride))
		mlx5dv_set_data_seg(s, 0, MLX5_INVALID_LKEY, 0);
}

static inline void
rmp_record(struct rmp *r, uint16_t n)
{
	r->posted = (uint16_t)(r->posted + n);
	__atomic_store_n(r->dbrec, htobe32(r->posted), __ATOMIC_RELEASE);
}

#endif
