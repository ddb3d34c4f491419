/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CREATE_MKEY for keys that a kernel's driver makes: over a page list (ibv_reg_mr()), and over all
 * physical addresses (the kernel's own queues). Sources: reg_create() and mlx5_ib_get_dma_mr() of
 * mlx5_ib, Linux 6.1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb090000u

#define MKC_AT       0x10
#define ENTRY        8u
#define LOG_PAGE     12u
#define LOG_MAX_PAGE 31u /* the field log_page_size has five bits */

static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_MKEY_PG_ACCESS, 0},
	{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0},
	{BB_PRM_MKC_ACCESS_MODE, MKC_AT},
	{BB_PRM_MKC_RELAXED_ORDERING_WRITE, MKC_AT},
	{BB_PRM_MKC_RELAXED_ORDERING_READ, MKC_AT},
	{BB_PRM_MKC_UMR_EN, MKC_AT},
	{BB_PRM_MKC_A, MKC_AT},
	{BB_PRM_MKC_RW, MKC_AT},
	{BB_PRM_MKC_RR, MKC_AT},
	{BB_PRM_MKC_LW, MKC_AT},
	{BB_PRM_MKC_LR, MKC_AT},
	{BB_PRM_MKC_QPN, MKC_AT},
	{BB_PRM_MKC_MKEY_7_0, MKC_AT},
	{BB_PRM_MKC_LENGTH64, MKC_AT},
	{BB_PRM_MKC_PD, MKC_AT},
	{BB_PRM_MKC_START_ADDR, MKC_AT},
	{BB_PRM_MKC_LEN, MKC_AT},
	{BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC_AT},
	{BB_PRM_MKC_LOG_PAGE_SIZE, MKC_AT},
};

static bool
bit(const struct soft_cmd *cmd, struct bb_prm_field f)
{
	return bb_prm_get(cmd->in + MKC_AT, f) != 0;
}

/*
 * Makes the pages of a key accessible. The key begins in the first page, at the offset that
 * start_addr has in its own page. Returns 0, or rejects the command.
 */
static int
open_pages(struct soft_cmd *cmd, struct soft_mkey *m, uint64_t len)
{
	unsigned int log_sz = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_LOG_PAGE_SIZE);
	uint64_t page = UINT64_C(1) << log_sz, off = m->start & (page - 1), n;
	uint64_t listed = 2 * (uint64_t)bb_prm_get(cmd->in, BB_PRM_CREATE_MKEY_XLT_ACTUAL);
	int ret;

	if (log_sz < LOG_PAGE || log_sz > LOG_MAX_PAGE)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_page_size %u of a key (%u to %u)",
				   log_sz, LOG_PAGE, LOG_MAX_PAGE);
	if (len == 0 || len > UINT64_MAX - m->start || len > UINT64_MAX - 2 * page)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid len %" PRIu64 " of a key at 0x%" PRIx64
				   " (1 or more, the end at most 2^64)",
				   len, m->start);
	n = (off + len + page - 1) >> log_sz;
	if (n > listed || n > (cmd->inlen - BB_PRM_CREATE_MKEY_KLM_PAS) / ENTRY)
		return SOFT_REFUSE(cmd, BAD_INP_LEN,
				   "the key takes %" PRIu64 " pages, but the mailbox of %zu bytes "
				   "lists fewer",
				   n, cmd->inlen);
	ret = soft_window_open(cmd->ctx, cmd->in + BB_PRM_CREATE_MKEY_KLM_PAS, (uint32_t)n, log_sz,
			       &m->window);
	if (ret == -ENOMEM)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	if (ret != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the pages of the key are not all memory of the guest");
	m->base = (uint8_t *)m->window.at + off;
	return 0;
}

/* Makes a key over all physical addresses of the guest. */
static struct soft_mkey *
make_physical(const struct soft_cmd *cmd)
{
	struct soft_mkey *m = soft_indirect_make(0);

	if (m == NULL)
		return NULL;
	m->ind->kind = SOFT_XLT_PHYS;
	m->ind->phys = soft_phys_make(cmd->ctx->host);
	if (m->ind->phys == NULL) {
		soft_indirect_free(m);
		return NULL;
	}
	m->ind->len = UINT64_MAX;
	m->ind->lw = bit(cmd, BB_PRM_MKC_LW);
	m->ind->rr = bit(cmd, BB_PRM_MKC_RR);
	m->ind->rw = bit(cmd, BB_PRM_MKC_RW);
	m->ind->atomic = bit(cmd, BB_PRM_MKC_A);
	return m;
}

/* Makes a key over a page list. Returns 0, or rejects the command. */
static int
make_paged(struct soft_cmd *cmd, struct soft_mkey **out)
{
	struct soft_mkey *m = calloc(1, sizeof(*m));
	uint64_t len = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_LEN);
	int ret;

	if (m == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	m->start = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_START_ADDR);
	m->lw = bit(cmd, BB_PRM_MKC_LW);
	m->rr = bit(cmd, BB_PRM_MKC_RR);
	m->rw = bit(cmd, BB_PRM_MKC_RW);
	m->atomic = bit(cmd, BB_PRM_MKC_A);
	m->umr_en = bit(cmd, BB_PRM_MKC_UMR_EN);
	/* The context has no field for the right MW_BIND: the kernel gives it to each key. */
	m->mw_bind = true;
	ret = open_pages(cmd, m, len);
	if (ret != 0) {
		free(m);
		return ret;
	}
	if (bit(cmd, BB_PRM_MKC_RELAXED_ORDERING_WRITE) && !cmd->dev->opts.no_relaxed) {
		m->detour = SOFT_DETOUR_RELAXED;
		m->detour_len = len;
	} else {
		m->len = len;
	}
	*out = m;
	return 0;
}

static int
check(struct soft_cmd *cmd)
{
	int ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));

	if (ret != 0)
		return ret;
	if (!bit(cmd, BB_PRM_MKC_LR))
		return SOFT_REFUSE(cmd, BAD_PARAM, "lr is 0 (1: a key always allows local reads)");
	if ((bit(cmd, BB_PRM_MKC_RW) || bit(cmd, BB_PRM_MKC_A)) && !bit(cmd, BB_PRM_MKC_LW))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"rw (remote write) or a (atomic) is set without lw (local write)");
	if (bit(cmd, BB_PRM_MKC_A) && cmd->dev->opts.no_atomic)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "a (atomic) is set, but the device has no atomics");
	if (bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_QPN) != BB_MKEY_ANY_QP)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid qpn (0xffffff: the key belongs to no QP)");
	return 0;
}

int
soft_cmd_create_mtt(struct soft_cmd *cmd)
{
	uint32_t pdn = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_PD), id;
	struct soft_pd *pd = soft_cmd_pd(cmd, pdn);
	struct soft_mkey *m = NULL;
	int ret;

	ret = check(cmd);
	if (ret != 0)
		return ret;
	if (pd == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "PD 0x%x does not exist", pdn);
	if (bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_ACCESS_MODE) == BB_PRM_MKC_MODE_PA) {
		m = make_physical(cmd);
		if (m == NULL)
			ret = SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	} else {
		ret = make_paged(cmd, &m);
	}
	if (ret != 0)
		return ret;
	if (soft_draw_take(&cmd->dev->ctl->mkey_draw, &cmd->dev->ctl->random, &id) != 0) {
		soft_mkey_free(m);
		return SOFT_REFUSE(cmd, NO_RES, "all mkeys are in use: destroy some keys or MRs");
	}
	m->key = id << 8 | bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_MKEY_7_0);
	m->pdn = pdn;
	m->obj = cmd->obj;
	cmd->dev->ctl->mkey_variant[id] = (uint8_t)m->key;
	__atomic_store_n(&cmd->dev->mkeys[id], m, __ATOMIC_RELEASE);
	soft_mkey_share(cmd->dev, m);
	soft_pd_count_mr(pd, 1);
	bb_prm_set(cmd->out, BB_PRM_CREATE_MKEY_OUT_INDEX, id);
	return 0;
}
