/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands: a DEVX call passes the kernel's checks, then the firmware executes it. Also has
 * functions that several commands share.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_kernel.h"
#include "soft_pf.h"

/*
 * Base of the syndromes of this device. A syndrome also has the number of the source file in bits
 * 16 to 23, and the line in the bits below. Syndromes of a card differ.
 */
#define SOFT_SYNDROME 0xbb000000u

/*
 * Length of QUERY_QP's output without an extended context and without a page list, bytes. There is
 * no page list because the QP's queues lie in umems.
 */
#define SOFT_SZ_QUERY_QP_OUT 0x110

/*
 * Executes QUERY_LAG as a card whose ports are not bonded: all fields of the output are 0. UCX
 * sends this command to every card, and from version 1.15 on logs an error if it fails
 * (uct_ib_mlx5_devx_query_lag()), so cards without bonding execute it, too (assumption [A]).
 */
static int
query_lag(struct soft_cmd *cmd)
{
	return soft_cmd_only(cmd, NULL, 0);
}

/* Entry of the table of commands. flags_: bits SOFT_CMD_*, or 0. */
#define CMD(op_, inlen_, outlen_, exec_, flags_)                                                   \
	{                                                                                          \
		BB_PRM_OP_##op_, inlen_, outlen_, #op_, exec_, flags_                              \
	}
static const struct soft_cmd_desc commands[] = {
	CMD(QUERY_HCA_CAP, BB_PRM_SZ_QUERY_HCA_CAP_IN, BB_PRM_SZ_QUERY_HCA_CAP_OUT,
	    soft_cmd_query_hca_cap, 0),
	CMD(QUERY_LAG, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, query_lag, 0),
	CMD(CREATE_MKEY, BB_PRM_SZ_CREATE_MKEY_IN, BB_PRM_SZ_SHORT, soft_cmd_create_mkey,
	    SOFT_CMD_ENTRIES | SOFT_CMD_PAGES),
	CMD(DESTROY_MKEY, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_destroy_mkey, 0),
	CMD(CREATE_CQ, BB_PRM_SZ_CREATE_CQ_IN, BB_PRM_SZ_SHORT, soft_cmd_create_cq, SOFT_CMD_PAGES),
	CMD(DESTROY_CQ, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_destroy_cq, 0),
	CMD(MODIFY_CQ, BB_PRM_SZ_MODIFY_CQ_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_cq, SOFT_CMD_PAGES),
	CMD(CREATE_QP, BB_PRM_SZ_CREATE_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_create_qp, SOFT_CMD_PAGES),
	CMD(DESTROY_QP, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_destroy_qp, 0),
	CMD(RST2INIT_QP, BB_PRM_SZ_MODIFY_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(INIT2INIT_QP, BB_PRM_SZ_MODIFY_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(INIT2RTR_QP, BB_PRM_SZ_MODIFY_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(RTR2RTS_QP, BB_PRM_SZ_MODIFY_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(RTS2RTS_QP, BB_PRM_SZ_MODIFY_QP_IN, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(2ERR_QP, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(2RST_QP, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_modify_qp, 0),
	CMD(QUERY_QP, BB_PRM_SZ_SHORT, SOFT_SZ_QUERY_QP_OUT, soft_cmd_query_qp, 0),
	CMD(ALLOC_Q_COUNTER, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_alloc_q_counter, 0),
	CMD(DEALLOC_Q_COUNTER, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_dealloc_q_counter, 0),
	CMD(QUERY_Q_COUNTER, BB_PRM_SZ_QUERY_Q_COUNTER_IN, BB_PRM_SZ_QUERY_Q_COUNTER_OUT,
	    soft_cmd_query_q_counter, 0),
	CMD(QUERY_CONG_STATISTICS, BB_PRM_SZ_QUERY_CONG_STATISTICS_IN,
	    BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT, soft_cmd_query_cong_statistics, 0),
	CMD(ATTACH_TO_MCG, BB_PRM_SZ_MCG, BB_PRM_SZ_SHORT, soft_cmd_attach_to_mcg, 0),
	CMD(DETACH_FROM_MCG, BB_PRM_SZ_MCG, BB_PRM_SZ_SHORT, soft_cmd_detach_from_mcg, 0),
	CMD(CREATE_RMP, BB_PRM_SZ_RMP, BB_PRM_SZ_SHORT, soft_cmd_create_rmp, SOFT_CMD_PAGES),
	CMD(MODIFY_RMP, BB_PRM_SZ_RMP, BB_PRM_SZ_SHORT, soft_cmd_modify_rmp, 0),
	CMD(DESTROY_RMP, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_destroy_rmp, 0),
	CMD(CREATE_UMEM, BB_PRM_SZ_CREATE_UMEM_IN, BB_PRM_SZ_SHORT, soft_cmd_create_umem,
	    SOFT_CMD_HOST | SOFT_CMD_PAGES),
	CMD(DESTROY_UMEM, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_destroy_umem, SOFT_CMD_HOST),
	CMD(ALLOC_MEMIC, BB_PRM_SZ_MEMIC_IN, BB_PRM_SZ_SHORT, soft_cmd_alloc_memic, SOFT_CMD_HOST),
	CMD(DEALLOC_MEMIC, BB_PRM_SZ_MEMIC_IN, BB_PRM_SZ_SHORT, soft_cmd_dealloc_memic,
	    SOFT_CMD_HOST),
	CMD(QUERY_RMP, BB_PRM_SZ_SHORT, BB_PRM_SZ_RMP, soft_cmd_query_rmp, 0),
	CMD(QUERY_MKEY, BB_PRM_SZ_SHORT, BB_PRM_QUERY_MKEY_OUT_KLM, soft_cmd_query_mkey,
	    SOFT_CMD_HOST),
	CMD(QUERY_SPECIAL_CONTEXTS, BB_PRM_SZ_SHORT, BB_PRM_SZ_QUERY_SPECIAL_CONTEXTS_OUT,
	    soft_cmd_query_special_contexts, SOFT_CMD_HOST),
	CMD(PAGE_FAULT_RESUME, BB_PRM_SZ_SHORT, BB_PRM_SZ_SHORT, soft_cmd_page_fault_resume,
	    SOFT_CMD_HOST),
};

static const char *
status_name(enum bb_prm_status status)
{
	switch (status) {
	case BB_PRM_STAT_BAD_OP:
		return "BAD_OP";
	case BB_PRM_STAT_BAD_PARAM:
		return "BAD_PARAM";
	case BB_PRM_STAT_BAD_RES:
		return "BAD_RES";
	case BB_PRM_STAT_RES_BUSY:
		return "RES_BUSY";
	case BB_PRM_STAT_BAD_RES_STATE:
		return "BAD_RES_STATE";
	case BB_PRM_STAT_NO_RES:
		return "NO_RES";
	case BB_PRM_STAT_BAD_QP_STATE:
		return "BAD_QP_STATE";
	case BB_PRM_STAT_BAD_INP_LEN:
		return "BAD_INP_LEN";
	case BB_PRM_STAT_BAD_OUTP_LEN:
		return "BAD_OUTP_LEN";
	default:
		return "unknown status";
	}
}

int
soft_cmd_refuse(struct soft_cmd *cmd, enum bb_prm_status status, uint32_t syndrome, const char *fmt,
		...)
{
	char why[320], text[448];
	va_list ap;

	memset(cmd->out, 0, cmd->outlen);
	bb_prm_set(cmd->out, BB_PRM_CMD_STATUS, status);
	bb_prm_set(cmd->out, BB_PRM_CMD_SYNDROME, syndrome);
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(text, sizeof(text), "%s: %s rejected: %s (0x%02x), syndrome 0x%08x: %s",
		 cmd->dev->name, cmd->desc == NULL ? "command" : cmd->desc->name,
		 status_name(status), status, syndrome, why);
	soft_log_text(RTE_LOG_ERR, fmt, text);
	return -EREMOTEIO;
}

/*
 * Sets the bits of a field in @mask. A field has up to 64 bits; width 0 means the 128 bits of a
 * GID.
 */
static void
mark_field(uint8_t *mask, const struct soft_field *f)
{
	uint8_t *at = mask + f->base;
	uint16_t byte;

	if (f->f.width != 0 && f->f.width <= 32) {
		bb_prm_set(at, f->f, UINT32_MAX);
		return;
	}
	for (byte = 0; byte < (f->f.width == 0 ? 16 : 8); byte++)
		at[f->f.byte + byte] = 0xff;
}

int
soft_cmd_only(struct soft_cmd *cmd, const struct soft_field *fields, unsigned int n)
{
	uint8_t mask[BB_PRM_SZ_CREATE_QP_IN] = {0};
	unsigned int i;
	uint8_t odd;

	RTE_BUILD_BUG_ON(BB_PRM_SZ_CREATE_CQ_IN > BB_PRM_SZ_CREATE_QP_IN);
	RTE_BUILD_BUG_ON(BB_PRM_SZ_MODIFY_QP_IN > BB_PRM_SZ_CREATE_QP_IN);
	RTE_BUILD_BUG_ON(BB_PRM_SZ_RMP > BB_PRM_SZ_CREATE_QP_IN);
	bb_prm_set(mask, BB_PRM_CMD_OPCODE, UINT32_MAX);
	if (cmd->ctx->host != NULL)
		bb_prm_set(mask, BB_PRM_CMD_UID, UINT32_MAX);
	for (i = 0; i < n; i++)
		mark_field(mask, &fields[i]);
	for (i = 0; i < cmd->desc->inlen; i++) {
		odd = cmd->in[i] & (uint8_t)~mask[i];
		if (odd != 0)
			return SOFT_REFUSE(
				cmd, BAD_PARAM,
				"input byte 0x%x: bits 0x%02x must be 0: they are reserved, do "
				"not belong to this command, or belong to a feature that the "
				"device lacks",
				i, odd);
	}
	return 0;
}

struct soft_cq *
soft_cmd_cq(const struct soft_cmd *cmd, uint32_t cqn)
{
	struct soft_cq *cq = cqn < 1u << SOFT_LOG_MAX_CQ ? cmd->dev->cqs[cqn] : NULL;

	return cq != NULL && soft_ctx_may_use(cmd->ctx, soft_ctx(cq->obj->ctx)) ? cq : NULL;
}

struct soft_qp *
soft_cmd_qp(const struct soft_cmd *cmd, uint32_t qpn)
{
	struct soft_qp *qp = qpn < 1u << SOFT_LOG_MAX_QP ? cmd->dev->qps[qpn] : NULL;

	return qp != NULL && soft_ctx_may_use(cmd->ctx, soft_ctx(qp->obj->ctx)) ? qp : NULL;
}

struct soft_pd *
soft_cmd_pd(const struct soft_cmd *cmd, uint32_t pdn)
{
	struct soft_pd *pd = pdn < 1u << SOFT_LOG_MAX_PD ? cmd->dev->ctl->pds[pdn] : NULL;

	return pd != NULL && soft_ctx_may_use(cmd->ctx, pd->ctx) ? pd : NULL;
}

struct soft_umem *
soft_cmd_umem(const struct soft_cmd *cmd, uint32_t id)
{
	struct soft_umem *umem = id < 1u << SOFT_LOG_MAX_UMEM ? cmd->dev->ctl->umems[id] : NULL;

	return umem != NULL && soft_ctx_may_use(cmd->ctx, umem->ctx) ? umem : NULL;
}

struct soft_uar_page *
soft_cmd_uar(const struct soft_cmd *cmd, uint32_t id)
{
	struct soft_uar_page *page;

	LIST_FOREACH(page, &cmd->dev->uars, link)
		if (page->id == id)
			return soft_ctx_may_use(cmd->ctx, page->ctx) ? page : NULL;
	return NULL;
}

int
soft_cmd_umem_range(struct soft_cmd *cmd, const char *what, const struct soft_umem *umem,
		    uint64_t offset, uint64_t len, uint64_t align)
{
	if ((uintptr_t)umem->base % align != 0 || offset % align != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the address of the %s (offset 0x%" PRIx64
				   " of umem 0x%x) is not a multiple of %" PRIu64 " bytes",
				   what, offset, umem->pub.id, align);
	if (len > umem->len || offset > umem->len - len)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the %s of %" PRIu64 " bytes at offset 0x%" PRIx64
				   " ends after the %" PRIu64 " bytes of umem 0x%x",
				   what, len, offset, umem->len, umem->pub.id);
	return 0;
}

int
soft_cmd_page_size(struct soft_cmd *cmd, const struct soft_umem *umem, uint32_t log_page_size,
		   uint64_t offset, struct bb_prm_field page_offset)
{
	uint64_t page = UINT64_C(4096) << log_page_size;
	uint64_t unit = umem->pgsz / 64, max = (1u << page_offset.width) - 1;

	if (page > umem->pgsz)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "log_page_size %u (%" PRIu64
				   " bytes) exceeds the page size of umem 0x%x (%" PRIu64
				   " bytes); 0 always fits",
				   log_page_size, page, umem->pub.id, umem->pgsz);
	/*
	 * The unit of page_offset is a 64th of the umem's page size, whatever page size the object
	 * names. UCX limits pages to 64 times the alignment of its offsets
	 * (UCT_GDAKI_CQ_PAGE_OFFSET_SHIFT), because CQs at 64-byte offsets had failed in 64 KiB
	 * pages.
	 */
	if (offset % unit != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "offset 0x%" PRIx64 " is not a multiple of %" PRIu64
				   " bytes, 1/64 of the page size (%" PRIu64
				   " bytes) of umem 0x%x: register the umem with smaller pages",
				   offset, unit, umem->pgsz, umem->pub.id);
	/*
	 * page_offset has 6 bits in the contexts of CQs and QPs, but 5 in a wq. For a page list the
	 * kernel chooses smaller pages until the offset fits:
	 * mlx5_umem_find_best_quantized_pgoff().
	 */
	if (offset % umem->pgsz / unit > max)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "offset 0x%" PRIx64 " is %" PRIu64 "/64 of a page of %" PRIu64
				   " bytes, but page_offset has %u bits (0 to %" PRIu64
				   "): place the queue at the start of a page of umem 0x%x",
				   offset, offset % umem->pgsz / unit, umem->pgsz,
				   page_offset.width, max, umem->pub.id);
	return 0;
}

/*
 * Executes a command as the firmware does: checks the lengths first. Call it with dev->lock held.
 */
static int
execute(struct soft_cmd *cmd, size_t inlen)
{
	uint32_t op = bb_prm_get(cmd->in, BB_PRM_CMD_OPCODE);
	bool hosted = cmd->ctx->host != NULL, longer;
	unsigned int i;

	memset(cmd->out, 0, cmd->outlen);
	for (i = 0; i < RTE_DIM(commands) && commands[i].op != op; i++)
		;
	if (i == RTE_DIM(commands) || ((commands[i].flags & SOFT_CMD_HOST) != 0 && !hosted))
		return SOFT_REFUSE(cmd, BAD_OP, "unknown opcode 0x%x", op);
	cmd->desc = &commands[i];
	cmd->inlen = inlen;
	longer = hosted ? (cmd->desc->flags & SOFT_CMD_PAGES) != 0
			: (cmd->desc->flags & SOFT_CMD_ENTRIES) != 0 && inlen <= SOFT_KERNEL_MAX_IN;
	if (inlen < cmd->desc->inlen || (inlen > cmd->desc->inlen && !longer))
		return SOFT_REFUSE(cmd, BAD_INP_LEN, "input mailbox of %zu bytes (%u expected)",
				   inlen, cmd->desc->inlen);
	if (cmd->outlen < cmd->desc->outlen)
		return SOFT_REFUSE(cmd, BAD_OUTP_LEN,
				   "output mailbox of %zu bytes (%u or more expected)", cmd->outlen,
				   cmd->desc->outlen);
	return cmd->desc->exec(cmd);
}

static bool
takes_down(const void *in)
{
	uint32_t op = bb_prm_get(in, BB_PRM_CMD_OPCODE);

	return op == BB_PRM_OP_2ERR_QP || op == BB_PRM_OP_2RST_QP ||
	       op == BB_PRM_OP_DEALLOC_Q_COUNTER;
}

/*
 * Makes one DEVX call: checks the mailbox as the kernel does, copies it, sets the bits that the
 * kernel sets, then runs the firmware. If the context has a host (soft_host.h), only runs the
 * firmware, because a real kernel has done the other steps.
 */
static int
devx_call(enum soft_kernel_method method, struct mlx5_ctx *ctx, uint64_t obj_id,
	  struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	uint8_t copy[SOFT_KERNEL_MAX_IN];
	struct soft_cmd cmd = {
		.ctx = soft_ctx(ctx),
		.dev = soft_ctx(ctx)->dev,
		.in = copy,
		.out = out,
		.outlen = outlen,
		.obj = obj,
	};
	bool hosted = cmd.ctx->host != NULL;
	int ret;

	ret = hosted ? 0 : soft_kernel_check(method, obj_id, in, inlen, outlen);
	if (ret != 0)
		return ret;
	if (unlikely(soft_fault_dead(cmd.dev))) {
		memset(out, 0, outlen);
		/*
		 * On a failed device the kernel returns success for commands that tear down, and an
		 * error for all others: mlx5_internal_err_ret_value().
		 */
		return takes_down(in) ? 0 : soft_fault_check(cmd.dev, "command");
	}
	/*
	 * Copies the input, because the caller may change it meanwhile. An input that is longer
	 * than any command is copied only in part; the command is then rejected for its length. An
	 * input that the program of a virtual machine passes cannot change, so it is not copied.
	 */
	if (hosted) {
		cmd.in = in;
	} else {
		memcpy(copy, in, RTE_MIN(inlen, sizeof(copy)));
		soft_kernel_fill(copy, inlen);
	}
	pthread_mutex_lock(&cmd.dev->lock);
	ret = execute(&cmd, inlen);
	if (ret == 0 && obj != NULL) {
		struct soft_obj *o = (struct soft_obj *)obj;

		RTE_BUILD_BUG_ON(sizeof(o->destroy) < SOFT_KERNEL_MAX_DESTROY);
		o->id = soft_kernel_obj_id(cmd.in, out);
		o->destroy_len = soft_kernel_destroy_cmd(cmd.in, o->id, o->destroy);
		cmd.ctx->objs++;
	}
	pthread_mutex_unlock(&cmd.dev->lock);
	if (unlikely(cmd.wait_us != 0))
		usleep(cmd.wait_us);
	return ret;
}

int
soft_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	return devx_call(SOFT_KERNEL_GENERAL, ctx, 0, NULL, in, inlen, out, outlen);
}

int
soft_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
		struct mlx5_obj **obj)
{
	struct soft_obj *o = calloc(1, sizeof(*o));
	int ret;

	if (o == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a device object", ctx->name);
		return -ENOMEM;
	}
	o->pub.ctx = ctx;
	ret = devx_call(SOFT_KERNEL_CREATE, ctx, 0, &o->pub, in, inlen, out, outlen);
	if (ret != 0) {
		free(o);
		return ret;
	}
	*obj = &o->pub;
	return 0;
}

int
soft_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return devx_call(SOFT_KERNEL_MODIFY, obj->ctx, ((struct soft_obj *)obj)->id, NULL, in,
			 inlen, out, outlen);
}

int
soft_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return devx_call(SOFT_KERNEL_QUERY, obj->ctx, ((struct soft_obj *)obj)->id, NULL, in, inlen,
			 out, outlen);
}

int
soft_obj_destroy(struct mlx5_obj *obj)
{
	const struct soft_obj *o = (const struct soft_obj *)obj;
	struct soft_ctx *ctx = soft_ctx(obj->ctx);
	uint8_t out[SOFT_KERNEL_MIN_BOX];
	struct soft_cmd cmd = {
		.ctx = ctx, .dev = ctx->dev, .in = o->destroy, .out = out, .outlen = sizeof(out)};
	int ret;

	pthread_mutex_lock(&ctx->dev->lock);
	ret = execute(&cmd, o->destroy_len);
	if (ret == 0)
		ctx->objs--;
	pthread_mutex_unlock(&ctx->dev->lock);
	if (ret != 0)
		return soft_kernel_status_errno((uint8_t)bb_prm_get(out, BB_PRM_CMD_STATUS));
	soft_event_remove(ctx, obj);
	free(obj);
	return 0;
}
