/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory: regions, device memory, windows. */
#include <string.h>

#include "exec.h"

static void
keys_of(struct exec *x, uint32_t slot)
{
	x->lkey[slot] = x->mr[slot]->lkey;
	x->rkey[slot] = x->mr[slot]->rkey;
}

static int
mr_step(struct exec *x, const struct step *s)
{
	const uint32_t *a = s->a;
	int ret;

	if (s->op == OP_MR_DEREG) {
		ret = bb_mr_dereg(x->mr[a[0]]);
		if (ret == 0)
			x->mr[a[0]] = NULL;
		return ret;
	}
	if (s->op == OP_MR_REG_DM)
		ret = bb_mr_reg_dm(x->pd[a[1]], x->dm[a[2]], a[3], a[4], a[5], &x->mr[a[0]]);
	else if (s->op == OP_MR_REG)
		ret = bb_mr_reg(x->pd[a[1]], (void *)exec_addr(x, a[2], a[3]), a[4], a[5],
				&x->mr[a[0]]);
	else
		ret = bb_mr_rereg(x->mr[a[0]], a[1], x->pd[a[2]], (void *)exec_addr(x, a[3], a[4]),
				  a[5], a[6]);
	if (ret != 0)
		return ret;
	keys_of(x, a[0]);
	if (s->op != OP_MR_REREG)
		x->key_dev[a[0]] = a[1] % x->world.devs;
	else if ((a[1] & BB_MR_REREG_PD) != 0)
		x->key_dev[a[0]] = a[2] % x->world.devs;
	return 0;
}

static int
dm_step(struct exec *x, const struct step *s)
{
	const uint32_t *a = s->a;
	uint8_t data[DM_LEN];
	int ret;

	switch (s->op) {
	case OP_DM_ALLOC:
		ret = bb_dm_alloc(x->dev[a[0] % x->world.devs], a[1], a[2], &x->dm[a[0]]);
		memset(data, 0, sizeof(data));
		return ret != 0 ? ret
				: bb_dm_write(x->dm[a[0]], 0, data,
					      a[1] / BB_DM_COPY_ALIGN * BB_DM_COPY_ALIGN);
	case OP_DM_FREE:
		ret = bb_dm_free(x->dm[a[0]]);
		if (ret == 0)
			x->dm[a[0]] = NULL;
		return ret;
	default:
		for (uint32_t i = 0; i < a[2]; i++)
			data[i] = model_pattern(a[3], i);
		return bb_dm_write(x->dm[a[0]], a[1], data, a[2]);
	}
}

static int
mw_step(struct exec *x, const struct step *s)
{
	const uint32_t *a = s->a, i = a[0];
	int ret;

	if (s->op == OP_MW_FREE) {
		ret = bb_mw_free(x->mw[i]);
		if (ret == 0)
			x->mw[i] = NULL;
		return ret;
	}
	ret = bb_mw_alloc(x->pd[a[1]], (enum bb_mw_type)a[2], &x->mw[i]);
	if (ret != 0)
		return ret;
	x->mw_first[i] = x->mw[i]->rkey;
	x->rkey[KEY_MW + i] = x->lkey[KEY_MW + i] = x->mw[i]->rkey;
	x->key_dev[KEY_MW + i] = a[1] % x->world.devs;
	return 0;
}

static int
mkey_step(struct exec *x, const struct model *m, const struct step *s)
{
	struct bb_sge sge[MAX_SGE] = {{0}};
	const uint32_t *a = s->a, i = a[0];
	struct bb_mkey_attr attr;
	struct m_mkey k;
	int ret;

	if (s->op == OP_MKEY_DESTROY) {
		ret = bb_mkey_destroy(x->mkey[i]);
		if (ret == 0)
			x->mkey[i] = NULL;
		return ret;
	}
	(void)model_mkey_of(m, s, &k);
	for (uint32_t j = 0; j < k.layout.n; j++) {
		const struct m_sge *g = &k.layout.piece[j];

		sge[j] = (struct bb_sge){exec_addr(x, g->buf, g->off), g->len,
					 exec_key_on(x, x->lkey, g->key, k.pd % m->devs)};
	}
	bb_mkey_attr_init(&attr);
	attr.pieces = sge;
	attr.n = k.layout.n;
	attr.access = k.access;
	attr.max_pieces = k.max_pieces;
	ret = bb_mkey_create(x->pd[a[1]], &attr, &x->mkey[i]);
	if (ret != 0)
		return ret;
	x->lkey[KEY_MKEY + i] = x->mkey[i]->lkey;
	x->rkey[KEY_MKEY + i] = x->mkey[i]->rkey;
	x->key_dev[KEY_MKEY + i] = a[1] % m->devs;
	return 0;
}

int
exec_mem(struct exec *x, const struct model *m, const struct step *s)
{
	switch (s->op) {
	case OP_MKEY_CREATE:
	case OP_MKEY_DESTROY:
		return mkey_step(x, m, s);
	case OP_MW_ALLOC:
	case OP_MW_FREE:
		return mw_step(x, s);
	case OP_DM_ALLOC:
	case OP_DM_FREE:
	case OP_DM_WRITE:
		return dm_step(x, s);
	default:
		return mr_step(x, s);
	}
}

int
exec_mem_clear(struct exec *x)
{
	int ret = 0;

	for (uint32_t i = 0; i < MWS; i++) {
		if (x->mw[i] != NULL)
			ret |= bb_mw_free(x->mw[i]);
		x->mw[i] = NULL;
	}
	for (uint32_t i = 0; i < MKEYS; i++) {
		if (x->mkey[i] != NULL)
			ret |= bb_mkey_destroy(x->mkey[i]);
		x->mkey[i] = NULL;
	}
	for (uint32_t i = 0; i < MRS; i++) {
		if (x->mr[i] != NULL)
			ret |= bb_mr_dereg(x->mr[i]);
		x->mr[i] = NULL;
	}
	for (uint32_t i = 0; i < DMS; i++) {
		if (x->dm[i] != NULL)
			ret |= bb_dm_free(x->dm[i]);
		x->dm[i] = NULL;
	}
	for (uint32_t i = 0; i < KEYS; i++)
		x->lkey[i] = x->rkey[i] = x->lkey[NO_KEY];
	return ret;
}
