/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* On-demand paging: its capabilities, and the commands of a guest's kernel for it. */
#include "bb_bytes.h"
#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_pf.h"

#define SOFT_SYNDROME 0xbb0d0000u

#define KLM 16u /* bytes of an entry */

/*
 * Sets the ODP capabilities of RC. Without a guest these are WRITEs and READs of peers, but no
 * atomics (soft_paged.c). A guest has sends of UD, too. The device reports page faults to a guest
 * by the transport scheme only: mem_page_fault is 0.
 */
void
soft_cmd_odp_caps(const struct soft_cmd *cmd, void *caps)
{
	void *scheme = bb_prm_sub(caps, BB_PRM_ODP_CAP_TRANSPORT);
	void *rc = bb_prm_sub(scheme, BB_PRM_ODP_SCHEME_RC);

	bb_prm_set(rc, BB_PRM_ODP_SERVICE_WRITE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_READ, 1);
	if (cmd->ctx->host == NULL)
		return;
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_SEND, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_RECEIVE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_SRQ_RECEIVE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_ATOMIC, !cmd->dev->opts.no_atomic);
	bb_prm_set(bb_prm_sub(scheme, BB_PRM_ODP_SCHEME_UD), BB_PRM_ODP_SERVICE_SEND, 1);
}

/*
 * The token names the QP with the page fault. The kernel repeats the token and the type. The number
 * of the work queue is not needed.
 */
int
soft_cmd_page_fault_resume(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_TRANS_PAGE_FAULT_ERROR, 8},
						   {BB_PRM_TRANS_PAGE_FAULT_TYPE, 8},
						   {BB_PRM_TRANS_PAGE_FAULT_WQ, 8},
						   {BB_PRM_TRANS_PAGE_FAULT_TOKEN, 8}};
	const void *info = bb_prm_csub(cmd->in, BB_PRM_PAGE_FAULT_RESUME_INFO);
	uint32_t token = bb_prm_get(info, BB_PRM_TRANS_PAGE_FAULT_TOKEN);
	uint8_t type = (uint8_t)bb_prm_get(info, BB_PRM_TRANS_PAGE_FAULT_TYPE);
	struct soft_qp *qp = cmd->dev->qps[soft_pf_qpn(token)];
	int ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));

	if (ret != 0)
		return ret;
	if (cmd->ctx->role != SOFT_ROLE_KERNEL)
		return SOFT_REFUSE(cmd, BAD_RES, "only the kernel answers page faults");
	if (qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "token 0x%x is not that of a page fault", token);
	if (soft_pf_resume(qp, token, type, bb_prm_get(info, BB_PRM_TRANS_PAGE_FAULT_ERROR) != 0))
		return 0;
	/* A kernel may answer just after it has reset the QP. */
	if (qp->state == BB_PRM_QP_RST)
		return 0;
	return SOFT_REFUSE(cmd, BAD_RES_STATE,
			   "QP 0x%x has no page fault of type %u and token 0x%x", qp->qpn, type,
			   token);
}

int
soft_cmd_query_special_contexts(struct soft_cmd *cmd)
{
	int ret = soft_cmd_only(cmd, NULL, 0);

	if (ret == 0)
		bb_prm_set(cmd->out, BB_PRM_QUERY_SPECIAL_CONTEXTS_OUT_NULL_MKEY, SOFT_NULL_KEY);
	return ret;
}

/* Writes the attributes of a key to @mkc. */
static void
put_context(const struct soft_mkey *m, void *mkc)
{
	const struct soft_indirect *ind = m->ind;
	bool ksm = ind != NULL && ind->kind == SOFT_XLT_FIXED;
	uint32_t mode = ind == NULL ? m->dm != NULL ? BB_PRM_MKC_MODE_MEMIC : BB_PRM_MKC_MODE_MTT
			: ind->kind == SOFT_XLT_PHYS  ? BB_PRM_MKC_MODE_PA
			: ind->kind == SOFT_XLT_PAGES ? BB_PRM_MKC_MODE_MTT
			: ksm                         ? BB_PRM_MKC_MODE_KSM
						      : BB_PRM_MKC_MODE_KLMS;

	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, mode & 3);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE_4_2, mode >> 2);
	bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, m->key & 0xff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, m->pdn);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, ind != NULL ? ind->lw : m->lw);
	bb_prm_set(mkc, BB_PRM_MKC_RR, ind != NULL ? ind->rr : m->rr);
	bb_prm_set(mkc, BB_PRM_MKC_RW, ind != NULL ? ind->rw : m->rw);
	bb_prm_set(mkc, BB_PRM_MKC_A, ind != NULL ? ind->atomic : m->atomic);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, ind != NULL ? ind->umr : m->umr_en);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, ind != NULL ? ind->qpn : BB_MKEY_ANY_QP);
	bb_prm_set64(mkc, BB_PRM_MKC_START_ADDR, ind != NULL ? ind->start : m->start);
	if (ind == NULL) {
		bb_prm_set64(mkc, BB_PRM_MKC_LEN,
			     m->detour != SOFT_DETOUR_NONE ? m->detour_len : m->len);
		return;
	}
	bb_prm_set(mkc, BB_PRM_MKC_FREE, ind->free);
	bb_prm_set(mkc, BB_PRM_MKC_EN_RINVAL, ind->en_rinval);
	if (ind->len == UINT64_MAX)
		bb_prm_set(mkc, BB_PRM_MKC_LENGTH64, 1);
	else
		bb_prm_set64(mkc, BB_PRM_MKC_LEN, ind->len);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, ind->list_cap != 0 ? ind->list_cap : ind->cap);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, ind->log_entity);
}

/*
 * Writes the entries of a list of other keys, as many as the output has room for. The device does
 * not return the pattern of an interleaved key, nor the pages of a key.
 */
static void
put_entries(struct soft_cmd *cmd, const struct soft_indirect *ind)
{
	uint32_t room = (uint32_t)((cmd->outlen - BB_PRM_QUERY_MKEY_OUT_KLM) / KLM), i;
	uint8_t *to = cmd->out + BB_PRM_QUERY_MKEY_OUT_KLM;

	if (ind->free || ind->list_cap != 0 ||
	    (ind->kind != SOFT_XLT_LIST && ind->kind != SOFT_XLT_FIXED))
		return;
	for (i = 0; i < ind->n && i < room; i++, to += KLM) {
		/*
		 * Linux finds the entry of an address by the byte counts, for KSM, too. So a card
		 * must return a byte count for KSM (assumption [A]).
		 */
		bb_put32(to, ind->kind == SOFT_XLT_FIXED
				     ? 1u << ind->log_entity
				     : (uint32_t)(ind->x[i].end - soft_xlt_begin(ind, i)));
		bb_put32(to + 4, ind->x[i].key);
		bb_put64(to + 8, ind->x[i].addr);
	}
}

/*
 * If a page fault names a memory window or a key of DEVX over other keys, Linux asks for the
 * entries of that key (pagefault_single_data_segment() of odp.c, Linux 6.1).
 */
int
soft_cmd_query_mkey(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_QUERY_MKEY_INDEX, 0}};
	uint32_t id = bb_prm_get(cmd->in, BB_PRM_QUERY_MKEY_INDEX);
	struct soft_mkey *m = id < 1u << SOFT_LOG_MAX_MKEY ? cmd->dev->mkeys[id] : NULL;
	int ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));

	if (ret != 0)
		return ret;
	if (m == NULL || m->obj == NULL || !soft_ctx_may_use(cmd->ctx, soft_ctx(m->obj->ctx)))
		return SOFT_REFUSE(cmd, BAD_RES, "mkey 0x%x does not exist", id);
	/* UMRs change keys under this lock. */
	rte_ticketlock_lock(&cmd->dev->umr_lock);
	put_context(m, bb_prm_sub(cmd->out, BB_PRM_QUERY_MKEY_OUT_MKC));
	if (m->ind != NULL)
		put_entries(cmd, m->ind);
	rte_ticketlock_unlock(&cmd->dev->umr_lock);
	return 0;
}
