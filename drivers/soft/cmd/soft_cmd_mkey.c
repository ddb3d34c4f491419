/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CREATE_MKEY for keys that consist of ranges of other keys (KLM and KSM), and DESTROY_MKEY. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb070000u

#define MKC_AT 0x10
#define KLM    16u

/*
 * Fields that CREATE_MKEY accepts. Not accepted: keys over pages of umems (mode 1), which
 * ibv_reg_mr() makes; relaxed ordering; signatures; keys of another function.
 */
static const struct soft_field create_fields[] = {
	{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0},
	{BB_PRM_MKC_FREE, MKC_AT},
	{BB_PRM_MKC_ACCESS_MODE_4_2, MKC_AT},
	{BB_PRM_MKC_UMR_EN, MKC_AT},
	{BB_PRM_MKC_A, MKC_AT},
	{BB_PRM_MKC_RW, MKC_AT},
	{BB_PRM_MKC_RR, MKC_AT},
	{BB_PRM_MKC_LW, MKC_AT},
	{BB_PRM_MKC_LR, MKC_AT},
	{BB_PRM_MKC_ACCESS_MODE, MKC_AT},
	{BB_PRM_MKC_QPN, MKC_AT},
	{BB_PRM_MKC_MKEY_7_0, MKC_AT},
	{BB_PRM_MKC_EN_RINVAL, MKC_AT},
	{BB_PRM_MKC_PD, MKC_AT},
	{BB_PRM_MKC_START_ADDR, MKC_AT},
	{BB_PRM_MKC_LEN, MKC_AT},
	{BB_PRM_MKC_XLT_OCTWORD_SIZE, MKC_AT},
	{BB_PRM_MKC_LOG_PAGE_SIZE, MKC_AT},
};

static uint32_t
mkc(const struct soft_cmd *cmd, struct bb_prm_field f)
{
	return bb_prm_get(cmd->in + MKC_AT, f);
}

static uint32_t
mode_of(const struct soft_cmd *cmd)
{
	return mkc(cmd, BB_PRM_MKC_ACCESS_MODE_4_2) << 2 | mkc(cmd, BB_PRM_MKC_ACCESS_MODE);
}

static int
check_kind(struct soft_cmd *cmd)
{
	const struct soft_opts *o = &cmd->dev->opts;
	uint32_t mode = mode_of(cmd);
	bool ksm = mode == BB_PRM_MKC_MODE_KSM, free_ = mkc(cmd, BB_PRM_MKC_FREE) != 0;
	uint32_t log_page = mkc(cmd, BB_PRM_MKC_LOG_PAGE_SIZE);

	if (mode != BB_PRM_MKC_MODE_KLMS && !ksm)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid access mode %u of an indirect key (2 KLM, 3 KSM)",
				   mode);
	if (o->no_mkey || (ksm && o->no_ksm))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the device does not support access mode %u (2 KLM, 3 KSM)",
				   mode);
	if (mkc(cmd, BB_PRM_MKC_UMR_EN) && (o->no_umr || ksm))
		return SOFT_REFUSE(cmd, BAD_PARAM, "umr_en is set, but %s",
				   ksm ? "a UMR cannot change a KSM key"
				       : "the device has no UMR of indirect keys");
	if (free_ && !mkc(cmd, BB_PRM_MKC_UMR_EN))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"free is set without umr_en, so no UMR could ever make the key usable");
	if (mkc(cmd, BB_PRM_MKC_EN_RINVAL) && !mkc(cmd, BB_PRM_MKC_UMR_EN))
		return SOFT_REFUSE(cmd, BAD_PARAM, "en_rinval is set without umr_en");
	if (ksm ? log_page < 12 : log_page != 0)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"invalid log_page_size %u (KSM: log2 of the entries' size, 12 or more; "
			"KLM: 0)",
			log_page);
	return 0;
}

int
soft_cmd_mkey_index(struct soft_cmd *cmd, uint32_t *id)
{
	struct soft_ctl *ctl = cmd->dev->ctl;

	switch (soft_draw_take(&ctl->mkey_draw, &ctl->random, id)) {
	case 0:
		return 0;
	case -EIO:
		return SOFT_REFUSE(cmd, NO_RES, "no random number for the key");
	default:
		return SOFT_REFUSE(cmd, NO_RES, "all mkeys are in use: destroy some keys or MRs");
	}
}

int
soft_cmd_mkey_rights(struct soft_cmd *cmd)
{
	if (!mkc(cmd, BB_PRM_MKC_LR))
		return SOFT_REFUSE(cmd, BAD_PARAM, "lr is 0 (1: a key always allows local reads)");
	if ((mkc(cmd, BB_PRM_MKC_RW) || mkc(cmd, BB_PRM_MKC_A)) && !mkc(cmd, BB_PRM_MKC_LW))
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"rw (remote write) or a (atomic) is set without lw (local write)");
	if (mkc(cmd, BB_PRM_MKC_A) && cmd->dev->opts.no_atomic)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "a (atomic) is set, but the device has no atomics");
	if (mkc(cmd, BB_PRM_MKC_QPN) != BB_MKEY_ANY_QP)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid qpn 0x%x (0xffffff: the key belongs to no QP)",
				   mkc(cmd, BB_PRM_MKC_QPN));
	return 0;
}

static int
check_rights(struct soft_cmd *cmd)
{
	int ret = soft_cmd_mkey_rights(cmd);

	if (ret != 0)
		return ret;
	/*
	 * UCX creates no such key if the capability umr_modify_atomic_disabled is set
	 * (UCT_IB_MLX5_MD_FLAG_INDIRECT_ATOMICS).
	 */
	if (mkc(cmd, BB_PRM_MKC_A) && cmd->dev->opts.no_umr_atomic)
		return SOFT_REFUSE(
			cmd, BAD_PARAM,
			"a (atomic) is set, but the device has no atomics on indirect keys");
	return 0;
}

/* Reads the entries after the mailbox. Checks that they cover the whole length of the key. */
static int
take_entries(struct soft_cmd *cmd, struct soft_indirect *ind)
{
	const uint8_t *x = cmd->in + BB_PRM_SZ_CREATE_MKEY_IN;
	uint64_t sum = 0, skipped;
	uint32_t i;

	for (i = 0; i < ind->n; i++, x += KLM) {
		uint32_t len = bb_prm_dword(x, 0);

		if (ind->kind == SOFT_XLT_FIXED ? len != 0 : len == 0 || len > BB_WQE_MAX_SGE_LEN)
			return SOFT_REFUSE(
				cmd, BAD_PARAM,
				"entry %u has an invalid byte count 0x%x (KLM: 1 to 0x80000000, "
				"KSM: 0)",
				i, len);
		ind->x[i].key = bb_prm_dword(x, 4);
		ind->x[i].addr = (uint64_t)bb_prm_dword(x, 8) << 32 | bb_prm_dword(x, 12);
		sum += ind->kind == SOFT_XLT_FIXED ? UINT64_C(1) << ind->log_entity : len;
		ind->x[i].end = sum;
	}
	if (!ind->free && (ind->len == 0 || ind->len > sum))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid len %" PRIu64 " of the key (1 to %" PRIu64
				   ", the bytes of its entries)",
				   ind->len, sum);
	/*
	 * Firmware rounds start_addr down to a multiple of the entry size, and adds the difference
	 * to the length. If that length exceeds the entries, it reports "window size exceed
	 * translations_octword_size". So UCX (uct_ib_mlx5_devx_reg_ksm_data_contig()) adds an entry
	 * to such a key.
	 */
	skipped = ind->kind == SOFT_XLT_FIXED ? ind->start & ((UINT64_C(1) << ind->log_entity) - 1)
					      : 0;
	if (!ind->free && skipped > sum - ind->len)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "start_addr is not a multiple of the entries' size: the %" PRIu64
				   " bytes before it and len %" PRIu64 " exceed the %" PRIu64
				   " bytes of the entries",
				   skipped, ind->len, sum);
	/*
	 * UCX says in uct_ib_mlx5_devx_reg_ksm_data_contig(): "FW requires indirect atomic MR
	 * address and length to be aligned".
	 */
	if (ind->atomic && ((ind->start | ind->len) & (SOFT_ATOMIC_SIZE - 1)) != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "a (atomic) is set, but start_addr 0x%" PRIx64 " or len %" PRIu64
				   " is not a multiple of %u, the bytes of the largest atomic",
				   ind->start, ind->len, SOFT_ATOMIC_SIZE);
	if (ind->len > UINT64_MAX - ind->start)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "start_addr 0x%" PRIx64 " + len %" PRIu64 " exceeds 2^64",
				   ind->start, ind->len);
	return 0;
}

/*
 * Checks the room of a key for entries, and the number of entries in the mailbox. Room for KLM
 * entries is a multiple of 4 entries, which the list in the mailbox fills: all open drivers do so
 * (mlx5_mkey.c names them). Linux's vdpa does not count its padding as entries; DPDK does. UCX does
 * not pad lists of KSM entries.
 */
static int
check_room(struct soft_cmd *cmd, uint32_t size, uint32_t n)
{
	const bool ksm = mode_of(cmd) == BB_PRM_MKC_MODE_KSM, free_ = mkc(cmd, BB_PRM_MKC_FREE);
	const uint32_t unit = ksm ? 1 : BB_WQE_XLT_ALIGN;

	if (size == 0 || size > 1u << SOFT_LOG_MAX_KLM || size % unit != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid translations_octword_size %u (1 to %u entries of 16 "
				   "bytes; KLM: a multiple of %u)",
				   size, 1u << SOFT_LOG_MAX_KLM, BB_WQE_XLT_ALIGN);
	if (free_ ? n != 0 : n > size || size - n >= unit)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "%u entries in the mailbox of a key with room for %u: a free "
				   "key takes no entries, any other key fills its room (KLM: up "
				   "to 3 entries less)",
				   n, size);
	if (cmd->inlen != BB_PRM_SZ_CREATE_MKEY_IN + (free_ ? 0 : (size_t)size * KLM))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "%zu bytes of mailbox for a key with room for %u entries of 16 "
				   "bytes: a free key takes no entries, any other key fills its "
				   "room",
				   cmd->inlen, size);
	return 0;
}

/* Returns the number of entries of a KLM list without the zero entries that only fill the room. */
static uint32_t
without_padding(const struct soft_cmd *cmd, uint32_t size, uint32_t n)
{
	static const uint8_t zero[KLM];
	const uint8_t *x = cmd->in + BB_PRM_SZ_CREATE_MKEY_IN;

	while (n > size - (BB_WQE_XLT_ALIGN - 1) && memcmp(x + (n - 1) * KLM, zero, KLM) == 0)
		n--;
	return n;
}

/*
 * Returns the type of a memory window, 0 if the key is not a window. The kernel makes free keys for
 * windows only, and lets peers invalidate windows of type 2 (mlx5_ib_alloc_mw(), Linux 6.1).
 */
static uint8_t
window_type(const struct soft_cmd *cmd)
{
	if (cmd->ctx->host == NULL || cmd->ctx->role != SOFT_ROLE_KERNEL ||
	    !mkc(cmd, BB_PRM_MKC_FREE) || cmd->dev->opts.no_mw)
		return 0;
	return mkc(cmd, BB_PRM_MKC_EN_RINVAL) ? 2 : 1;
}

int
soft_cmd_create_mkey(struct soft_cmd *cmd)
{
	uint32_t size = mkc(cmd, BB_PRM_MKC_XLT_OCTWORD_SIZE), id;
	uint32_t n = bb_prm_get(cmd->in, BB_PRM_CREATE_MKEY_XLT_ACTUAL);
	uint32_t pdn = mkc(cmd, BB_PRM_MKC_PD);
	struct soft_pd *pd = soft_cmd_pd(cmd, pdn);
	struct soft_indirect *ind;
	struct soft_mkey *m;
	int ret;

	if (cmd->ctx->host != NULL &&
	    (mode_of(cmd) <= BB_PRM_MKC_MODE_MTT || mode_of(cmd) == BB_PRM_MKC_MODE_MEMIC ||
	     (mode_of(cmd) == BB_PRM_MKC_MODE_KSM && mkc(cmd, BB_PRM_MKC_FREE))))
		return soft_cmd_create_mtt(cmd);
	ret = soft_cmd_only(cmd, create_fields, RTE_DIM(create_fields));
	if (ret == 0)
		ret = check_kind(cmd);
	if (ret == 0)
		ret = check_rights(cmd);
	if (ret != 0)
		return ret;
	if (pd == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "PD 0x%x does not exist", pdn);
	ret = check_room(cmd, size, n);
	if (ret != 0)
		return ret;
	m = soft_indirect_make(size);
	if (m == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a key");
	ind = m->ind;
	m->pdn = pdn;
	ind->kind = mkc(cmd, BB_PRM_MKC_ACCESS_MODE) == BB_PRM_MKC_MODE_KSM ? SOFT_XLT_FIXED
									    : SOFT_XLT_LIST;
	ind->umr = mkc(cmd, BB_PRM_MKC_UMR_EN) != 0;
	ind->en_rinval = mkc(cmd, BB_PRM_MKC_EN_RINVAL) != 0;
	ind->mw_type = window_type(cmd);
	ind->free = mkc(cmd, BB_PRM_MKC_FREE) != 0;
	ind->gate = ind->free ? SOFT_GATE_CLOSED : 0;
	ind->lw = mkc(cmd, BB_PRM_MKC_LW) != 0;
	ind->rr = mkc(cmd, BB_PRM_MKC_RR) != 0;
	ind->rw = mkc(cmd, BB_PRM_MKC_RW) != 0;
	ind->atomic = mkc(cmd, BB_PRM_MKC_A) != 0;
	ind->start = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_START_ADDR);
	ind->len = bb_prm_get64(cmd->in + MKC_AT, BB_PRM_MKC_LEN);
	ind->log_entity = mkc(cmd, BB_PRM_MKC_LOG_PAGE_SIZE);
	ind->n = ind->kind == SOFT_XLT_LIST ? without_padding(cmd, size, n) : n;
	ret = take_entries(cmd, ind);
	if (ret == 0)
		ret = soft_cmd_mkey_index(cmd, &id);
	if (ret != 0) {
		soft_indirect_free(m);
		return ret;
	}
	m->key = id << 8 | mkc(cmd, BB_PRM_MKC_MKEY_7_0);
	cmd->dev->ctl->mkey_variant[id] = (uint8_t)m->key;
	m->obj = cmd->obj;
	__atomic_store_n(&cmd->dev->mkeys[id], m, __ATOMIC_RELEASE);
	soft_pd_count_mr(pd, 1);
	bb_prm_set(cmd->out, BB_PRM_CREATE_MKEY_OUT_INDEX, id);
	return 0;
}

/* Drops the reference of a memory window to its MR. */
static void
unbind(struct soft_dev *dev, struct soft_mkey *m)
{
	rte_ticketlock_lock(&dev->umr_lock);
	if (m->ind->bound != NULL)
		m->ind->bound->windows--;
	rte_ticketlock_unlock(&dev->umr_lock);
}

int
soft_cmd_destroy_mkey(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DESTROY_MKEY_INDEX, 0}};
	uint32_t id = bb_prm_get(cmd->in, BB_PRM_DESTROY_MKEY_INDEX);
	struct soft_mkey *m = id < 1u << SOFT_LOG_MAX_MKEY ? cmd->dev->mkeys[id] : NULL;
	struct soft_dm *dm;
	uint32_t pdn;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (m == NULL || m->obj == NULL || m->obj->ctx != &cmd->ctx->pub)
		return SOFT_REFUSE(cmd, BAD_RES, "mkey 0x%x does not exist", id);
	pdn = m->pdn;
	dm = m->dm;
	if (m->ind == NULL || m->ind->kind == SOFT_XLT_PAGES) {
		if (soft_mkey_retire(cmd->dev, m, NULL) != 0)
			return SOFT_REFUSE(cmd, RES_BUSY,
					   "memory windows are bound to mkey 0x%x: invalidate them "
					   "first",
					   id);
	} else {
		__atomic_store_n(&cmd->dev->mkeys[id], NULL, __ATOMIC_RELEASE);
		soft_quiesce();
		unbind(cmd->dev, m);
		soft_indirect_free(m);
	}
	if (dm != NULL)
		dm->mrs--;
	soft_draw_give(&cmd->dev->ctl->mkey_draw, id);
	soft_pd_count_mr(cmd->dev->ctl->pds[pdn], -1);
	return 0;
}
