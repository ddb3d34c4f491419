/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CREATE_MKEY for keys that a kernel's driver makes: over a page list (ibv_reg_mr()), over all
 * physical addresses (the kernel's own queues), over device memory (ibv_reg_dm_mr()), and free
 * keys, whose translations UMRs load (soft_umr_load.c). Sources: reg_create(), create_cache_mkey(),
 * mlx5_ib_get_dma_mr() and mlx5_ib_get_dm_mr() of mlx5_ib, Linux 6.1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "bb_prm_kernel.h"
#include "soft_dm.h"
#include "soft_host.h"

#define SOFT_SYNDROME 0xbb090000u

#define MKC_AT       0x10
#define ENTRY        8u
#define LOG_PAGE     12u
#define LOG_MAX_PAGE 31u /* the field log_page_size has five bits */
/* Largest list of a key whose translations UMRs load, in units of 16 bytes: 256 MiB. */
#define MAX_LIST (1u << 24)

static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_MKEY_PG_ACCESS, 0},
	{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0},
	{BB_PRM_MKC_ACCESS_MODE, MKC_AT},
	{BB_PRM_MKC_ACCESS_MODE_4_2, MKC_AT},
	{BB_PRM_MKC_RELAXED_ORDERING_WRITE, MKC_AT},
	{BB_PRM_MKC_RELAXED_ORDERING_READ, MKC_AT},
	{BB_PRM_MKC_FREE, MKC_AT},
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
 * Makes the pages of a key accessible. The key begins in the first page, at the offset of
 * start_addr within its page. Returns 0, or rejects the command.
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

/* Makes a key that finds its memory by physical addresses. Returns NULL if out of memory. */
static struct soft_mkey *
make_indirect(const struct soft_cmd *cmd, enum soft_xlt_kind kind)
{
	struct soft_mkey *m = soft_indirect_make(0);

	if (m == NULL)
		return NULL;
	m->ind->kind = kind;
	m->ind->phys = soft_phys_hold(cmd->ctx);
	if (m->ind->phys == NULL) {
		soft_indirect_free(m);
		return NULL;
	}
	m->ind->lw = bit(cmd, BB_PRM_MKC_LW);
	m->ind->rr = bit(cmd, BB_PRM_MKC_RR);
	m->ind->rw = bit(cmd, BB_PRM_MKC_RW);
	m->ind->atomic = bit(cmd, BB_PRM_MKC_A);
	return m;
}

/* Makes a key over all physical addresses of the guest. */
static int
make_physical(struct soft_cmd *cmd, struct soft_mkey **out)
{
	*out = make_indirect(cmd, SOFT_XLT_PHYS);
	if (*out == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	(*out)->ind->len = UINT64_MAX;
	return 0;
}

/* Makes a free key, whose translations UMRs of the kernel load. Returns 0, or rejects the command.
 */
static int
make_free(struct soft_cmd *cmd, struct soft_mkey **out)
{
	uint32_t size = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_XLT_OCTWORD_SIZE);
	bool ksm = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_ACCESS_MODE) == BB_PRM_MKC_MODE_KSM;
	struct soft_indirect *ind;

	if (cmd->ctx->role != SOFT_ROLE_KERNEL || !cmd->dev->odp || cmd->dev->opts.no_umr)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "free is set, but no UMR can load the translations of the key");
	if (!bit(cmd, BB_PRM_MKC_UMR_EN))
		return SOFT_REFUSE(cmd, BAD_PARAM, "free is set without umr_en");
	if (bb_prm_get(cmd->in, BB_PRM_CREATE_MKEY_XLT_ACTUAL) != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM, "a free key takes no translations");
	if (size > MAX_LIST)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid translations_octword_size %u (at most %u)", size,
				   MAX_LIST);
	*out = make_indirect(cmd, ksm ? SOFT_XLT_FIXED : SOFT_XLT_PAGES);
	if (*out == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	ind = (*out)->ind;
	ind->umr = true;
	ind->free = true;
	ind->gate = SOFT_GATE_CLOSED;
	/*
	 * A UMR writes whole blocks of 64 bytes, and the kernel pads its lists to them. So a card
	 * must round the size up, too (assumption [A]).
	 */
	ind->list_cap = size == 0 ? BB_WQE_XLT_ALIGN : RTE_ALIGN(size, BB_WQE_XLT_ALIGN);
	ind->log_entity = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_LOG_PAGE_SIZE);
	ind->start = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_START_ADDR);
	ind->len = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_LEN);
	/* The host of the key's PD, for UMRs that move the key to another PD. */
	(*out)->window.host = cmd->ctx->host;
	(*out)->mw_bind = true;
	return 0;
}

/* Makes a key without memory. Returns NULL if out of memory. */
static struct soft_mkey *
make_direct(const struct soft_cmd *cmd)
{
	struct soft_mkey *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->lw = bit(cmd, BB_PRM_MKC_LW);
	m->rr = bit(cmd, BB_PRM_MKC_RR);
	m->rw = bit(cmd, BB_PRM_MKC_RW);
	m->atomic = bit(cmd, BB_PRM_MKC_A);
	m->umr_en = bit(cmd, BB_PRM_MKC_UMR_EN);
	/*
	 * The key's context has no bit for MW_BIND, because the kernel lets windows bind to any
	 * key.
	 */
	m->mw_bind = true;
	return m;
}

/*
 * Makes a key over device memory. start_addr is the address of the memory in BAR 0, and requests
 * begin at address 0. Returns 0, or rejects the command.
 */
static int
make_memic(struct soft_cmd *cmd, struct soft_mkey **out)
{
	uint64_t start = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_START_ADDR);
	uint64_t len = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_LEN);
	struct soft_dm *d = soft_dm_find(cmd->dev, start, len);
	struct soft_mkey *m;

	if (d == NULL)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "%" PRIu64 " bytes at 0x%" PRIx64
				   " of BAR 0 are not device memory of one allocation",
				   len, start);
	m = make_direct(cmd);
	if (m == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	m->base = cmd->dev->ctl->memic.mem + (start - SOFT_DM_BAR);
	m->len = len;
	m->dm = d;
	*out = m;
	return 0;
}

/* Makes a key over a page list. Returns 0, or rejects the command. */
static int
make_paged(struct soft_cmd *cmd, struct soft_mkey **out)
{
	struct soft_mkey *m = make_direct(cmd);
	uint64_t len = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_LEN);
	int ret;

	if (m == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	m->start = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_START_ADDR);
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

int
soft_cmd_create_mtt(struct soft_cmd *cmd)
{
	uint32_t pdn = bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_PD), id;
	struct soft_pd *pd = soft_cmd_pd(cmd, pdn);
	struct soft_mkey *m = NULL;
	int ret;

	ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));
	if (ret == 0)
		ret = soft_cmd_mkey_rights(cmd);
	if (ret != 0)
		return ret;
	if (pd == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "PD 0x%x does not exist", pdn);
	if (bit(cmd, BB_PRM_MKC_ACCESS_MODE_4_2)) {
		ret = make_memic(cmd, &m);
	} else if (bit(cmd, BB_PRM_MKC_FREE)) {
		ret = make_free(cmd, &m);
	} else if (!bit(cmd, BB_PRM_MKC_ACCESS_MODE)) {
		ret = make_physical(cmd, &m);
	} else {
		ret = make_paged(cmd, &m);
	}
	if (ret != 0)
		return ret;
	ret = soft_cmd_mkey_index(cmd, &id);
	if (ret != 0) {
		soft_mkey_free(m);
		return ret;
	}
	m->key = id << 8 | bb_prm_get(cmd->in + MKC_AT, BB_PRM_MKC_MKEY_7_0);
	m->pdn = pdn;
	m->obj = cmd->obj;
	if (m->dm != NULL)
		m->dm->mrs++;
	cmd->dev->ctl->mkey_variant[id] = (uint8_t)m->key;
	__atomic_store_n(&cmd->dev->mkeys[id], m, __ATOMIC_RELEASE);
	soft_mkey_share(cmd->dev, m);
	soft_pd_count_mr(pd, 1);
	bb_prm_set(cmd->out, BB_PRM_CREATE_MKEY_OUT_INDEX, id);
	return 0;
}
