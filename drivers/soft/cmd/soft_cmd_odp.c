/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * On-demand paging: its capabilities, and the commands of a guest's kernel for it. The layout of
 * PAGE_FAULT_RESUME is that of Linux's mlx5_ifc.h: page_fault_resume_in of Linux 6.1, and
 * trans_page_fault_info of later versions, which is the same.
 */
#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_pf.h"

#define SOFT_SYNDROME 0xbb0b0000u

static const struct bb_prm_field resume_error = BB_PRM_F(0x008, 0, 1);
static const struct bb_prm_field resume_type = BB_PRM_F(0x008, 5, 3);
static const struct bb_prm_field resume_wq = BB_PRM_F(0x008, 8, 24);
static const struct bb_prm_field resume_token = BB_PRM_F(0x00c, 8, 24);

/*
 * Sets the ODP capabilities of RC. Without a guest these are WRITEs and READs of peers, but no
 * atomics (soft_paged.c). The device reports page faults to a guest by the transport scheme only:
 * mem_page_fault is 0.
 */
void
soft_cmd_odp_caps(const struct soft_cmd *cmd, void *caps)
{
	void *rc = bb_prm_sub(bb_prm_sub(caps, BB_PRM_ODP_CAP_TRANSPORT), BB_PRM_ODP_SCHEME_RC);

	bb_prm_set(rc, BB_PRM_ODP_SERVICE_WRITE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_READ, 1);
	if (cmd->ctx->host == NULL)
		return;
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_SEND, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_RECEIVE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_SRQ_RECEIVE, 1);
	bb_prm_set(rc, BB_PRM_ODP_SERVICE_ATOMIC, !cmd->dev->opts.no_atomic);
}

/*
 * The token is the number of the QP with the page fault. The kernel repeats the token and the type.
 * The number of the work queue is not needed.
 */
int
soft_cmd_page_fault_resume(struct soft_cmd *cmd)
{
	const struct soft_field fields[] = {
		{resume_error, 0}, {resume_type, 0}, {resume_wq, 0}, {resume_token, 0}};
	uint32_t token = bb_prm_get(cmd->in, resume_token);
	uint8_t type = (uint8_t)bb_prm_get(cmd->in, resume_type);
	struct soft_qp *qp = token < 1u << SOFT_LOG_MAX_QP ? cmd->dev->qps[token] : NULL;
	int ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));

	if (ret != 0)
		return ret;
	if (cmd->ctx->role != SOFT_ROLE_KERNEL)
		return SOFT_REFUSE(cmd, BAD_RES, "only the kernel answers page faults");
	if (qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "token 0x%x is not that of a page fault", token);
	if (soft_pf_resume(qp, type, bb_prm_get(cmd->in, resume_error) != 0))
		return 0;
	/* A kernel may answer just after it has reset the QP. */
	if (qp->state == BB_PRM_QP_RST)
		return 0;
	return SOFT_REFUSE(cmd, BAD_RES_STATE, "QP 0x%x has no page fault of type %u", token, type);
}

int
soft_cmd_query_special_contexts(struct soft_cmd *cmd)
{
	int ret = soft_cmd_only(cmd, NULL, 0);

	if (ret == 0)
		bb_prm_set(cmd->out, BB_PRM_QUERY_SPECIAL_CONTEXTS_OUT_NULL_MKEY, SOFT_NULL_KEY);
	return ret;
}
