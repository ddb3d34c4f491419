/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands: finds the user and the object that a mailbox names, then passes the mailbox on to the
 * device.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "front_priv.h"

/*
 * Base of the syndromes of this file. The low bits are the line of the code that refused the
 * command.
 */
#define FRONT_SYNDROME 0xbbf00000u

/* Field that most commands use for the number of their object. */
#define NUMBER BB_PRM_F(0x008, 8, 24)

#define PAGE 4096u /* bytes of a page of the BAR */

/* ---- Users of the device: DEVX contexts, each with a uid */

static void
create_uctx(struct front_cmd *cmd)
{
	struct front *f = cmd->f;
	uint16_t uid = 1;
	int ret;

	if (cmd->user != &f->users[0]) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return;
	}
	while (uid < FRONT_MAX_UIDS && f->users[uid].ctx != NULL)
		uid++;
	if (uid == FRONT_MAX_UIDS) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	ret = front_user_open(f, &f->users[uid], uid);
	if (ret != 0)
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
	else
		bb_prm_set(cmd->out, BB_PRM_CREATE_UCTX_OUT_UID, uid);
}

static void
destroy_uctx(struct front_cmd *cmd)
{
	uint16_t uid = (uint16_t)bb_prm_get(cmd->in, BB_PRM_DESTROY_UCTX_UID);
	struct front_user *u = front_user_of(cmd->f, uid);
	int ret;

	if (cmd->user != &cmd->f->users[0] || u == NULL || u == cmd->user || u == &cmd->f->shared) {
		FRONT_REFUSE(cmd, BAD_RES);
		return;
	}
	ret = front_user_close(cmd->f, u);
	if (ret != 0)
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
}

/* ---- Objects without a mailbox: PDs, UARs, and objects that are only a number */

static void
alloc(struct front_cmd *cmd, enum front_kind kind)
{
	bool is_number = kind != FRONT_PD && kind != FRONT_UAR;
	struct front_obj *o;
	uint32_t id = 0;
	int ret = 0;

	/* The kernel's probe needs an XRC SRQ as a placeholder; the device has no XRC for users. */
	if (kind == FRONT_XRC_SRQ && cmd->user != &cmd->f->users[0]) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	/* The device limits its own objects. */
	if (is_number && cmd->f->n_of_kind[kind] >= 1u << FRONT_LOG_MAX_NUMBERS) {
		FRONT_REFUSE(cmd, LIM_ERR);
		return;
	}
	o = front_obj_new(cmd->f, kind, cmd->user);
	if (o == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	if (kind == FRONT_PD) {
		ret = cmd->f->cmd->pd_alloc(cmd->user->ctx, &o->pd);
		if (ret == 0)
			id = o->pd->pdn;
	} else if (kind == FRONT_UAR) {
		ret = cmd->f->cmd->uar_alloc(cmd->user->ctx, MLX5_UAR_BF, &o->uar);
		if (ret == 0) {
			id = o->uar->page_id;
			cmd->f->cmd->progress_of(cmd->user->ctx, o->uar, &o->progress,
						 &o->progress_arg);
		}
	} else {
		do {
			id = cmd->f->next_number++ & 0xffffff;
		} while (id == 0 || front_obj_find(cmd->f, kind, id) != NULL);
	}
	if (ret != 0) {
		front_obj_free(cmd->f, o);
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
		return;
	}
	front_obj_publish(cmd->f, o, id);
	bb_prm_set(cmd->out, NUMBER, id);
}

/* ---- Objects that the device creates from a mailbox */

static struct front_key
key_of(const struct front_cmd *cmd)
{
	const void *mkc = bb_prm_csub(cmd->in, BB_PRM_CREATE_MKEY_MKC);

	return (struct front_key){
		.value = bb_prm_get(cmd->out, NUMBER) << 8 | bb_prm_get(mkc, BB_PRM_MKC_MKEY_7_0),
		.pdn = bb_prm_get(mkc, BB_PRM_MKC_PD),
		.physical = bb_prm_get(mkc, BB_PRM_MKC_ACCESS_MODE) == BB_PRM_MKC_MODE_PA &&
			    bb_prm_get(mkc, BB_PRM_MKC_ACCESS_MODE_4_2) == 0 &&
			    bb_prm_get(mkc, BB_PRM_MKC_LENGTH64) &&
			    !bb_prm_get(mkc, BB_PRM_MKC_FREE) && bb_prm_get(mkc, BB_PRM_MKC_LR),
		.writable = bb_prm_get(mkc, BB_PRM_MKC_LW),
	};
}

static void
create(struct front_cmd *cmd, enum front_kind kind)
{
	struct front_obj *o = front_obj_new(cmd->f, kind, cmd->user);
	const void *cqc = bb_prm_csub(cmd->in, BB_PRM_CREATE_CQ_CQC);
	const void *qpc = bb_prm_csub(cmd->in, BB_PRM_CREATE_QP_QPC);
	int ret;

	if (o == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	ret = cmd->f->cmd->obj_create(cmd->user->ctx, cmd->in, cmd->inlen, cmd->out, cmd->outlen,
				      &o->obj);
	if (ret != 0) {
		front_obj_free(cmd->f, o);
		if (ret != -EREMOTEIO)
			front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
		return;
	}
	/* The device still has an orphan UAR, which is no UAR for a new queue. */
	if ((kind == FRONT_CQ &&
	     !front_obj_hold_uar(cmd->f, o, bb_prm_get(cqc, BB_PRM_CQC_UAR_PAGE))) ||
	    (kind == FRONT_QP &&
	     !front_obj_hold_uar(cmd->f, o, bb_prm_get(qpc, BB_PRM_QPC_UAR_PAGE)))) {
		(void)front_obj_destroy(cmd->f, o);
		FRONT_REFUSE(cmd, BAD_RES);
		return;
	}
	if (kind == FRONT_MKEY)
		o->key = key_of(cmd);
	if (kind == FRONT_CQ)
		o->eqn = bb_prm_get(cqc, BB_PRM_CQC_C_EQN);
	if (kind == FRONT_DM)
		o->dm_size = bb_prm_get(cmd->in, BB_PRM_ALLOC_MEMIC_SIZE);
	if (kind == FRONT_MCG)
		memcpy(o->gid, bb_prm_csub(cmd->in, BB_PRM_ATTACH_TO_MCG_GID), sizeof(o->gid));
	front_obj_publish(
		cmd->f, o,
		kind == FRONT_COUNTER ? bb_prm_get(cmd->out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID)
		: kind == FRONT_MCG   ? bb_prm_get(cmd->in, BB_PRM_ATTACH_TO_MCG_QPN)
		: kind == FRONT_DM
			? (uint32_t)(bb_prm_get64(cmd->out, BB_PRM_ALLOC_MEMIC_OUT_START) / PAGE)
			: bb_prm_get(cmd->out, NUMBER));
	ret = front_event_watch(o);
	if (ret != 0) {
		(void)front_obj_destroy(cmd->f, o);
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
	}
}

/* Finds the object of a command, or refuses the command and returns NULL. */
static struct front_obj *
named(struct front_cmd *cmd, enum front_kind kind, struct bb_prm_field number)
{
	struct front_obj *o;

	if (number.byte + 4u > cmd->inlen) {
		FRONT_REFUSE(cmd, BAD_INP_LEN);
		return NULL;
	}
	o = front_obj_find(cmd->f, kind, bb_prm_get(cmd->in, number));
	if (o == NULL || !front_user_may(cmd->f, cmd->user, o->user)) {
		FRONT_REFUSE(cmd, BAD_RES);
		return NULL;
	}
	return o;
}

static void
destroy(struct front_cmd *cmd, struct front_obj *o)
{
	int ret;

	if (o == NULL)
		return;
	/* A user may destroy only its own objects, the kernel (users[0]) all. */
	if (cmd->user != o->user && cmd->user != &cmd->f->users[0]) {
		FRONT_REFUSE(cmd, BAD_RES);
		return;
	}
	/*
	 * A card frees a UAR that CQs and QPs use. When a program closes a device, libmlx5 frees
	 * the UAR of its CQs. After that the kernel destroys the CQs that the program has left. The
	 * kernel ignores the status of DEALLOC_UAR (mlx5_ib_mmap_free()), so a refused one would
	 * lose the page.
	 */
	ret = o->kind == FRONT_UAR ? front_obj_free_uar(cmd->f, o) : front_obj_destroy(cmd->f, o);
	if (ret != 0)
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
}

/*
 * Frees device memory, which DEALLOC_MEMIC names by its address in the BAR and its size.
 */
static void
free_dm(struct front_cmd *cmd)
{
	uint64_t start = bb_prm_get64(cmd->in, BB_PRM_DEALLOC_MEMIC_START);
	struct front_obj *o = front_obj_find(cmd->f, FRONT_DM, (uint32_t)(start / PAGE));

	if (start % PAGE != 0 || o == NULL || o->user != cmd->user ||
	    bb_prm_get(cmd->in, BB_PRM_DEALLOC_MEMIC_SIZE) != o->dm_size)
		FRONT_REFUSE(cmd, BAD_RES);
	else
		destroy(cmd, o);
}

static void
detach(struct front_cmd *cmd)
{
	struct front_obj *o;

	if (cmd->inlen < BB_PRM_SZ_MCG) {
		FRONT_REFUSE(cmd, BAD_INP_LEN);
		return;
	}
	LIST_FOREACH(o, &cmd->f->kinds[FRONT_MCG], of_kind)
		if (o->id == bb_prm_get(cmd->in, BB_PRM_DETACH_FROM_MCG_QPN) &&
		    memcmp(o->gid, bb_prm_csub(cmd->in, BB_PRM_DETACH_FROM_MCG_GID), 16) == 0)
			break;
	if (o == NULL || !front_user_may(cmd->f, cmd->user, o->user))
		FRONT_REFUSE(cmd, BAD_RES);
	else
		destroy(cmd, o);
}

typedef int (*access_fn)(struct mlx5_obj *obj, const void *in, size_t inlen, void *out,
			 size_t outlen);

static void
pass(struct front_cmd *cmd, access_fn access, struct front_obj *o)
{
	int ret;

	if (o == NULL)
		return;
	ret = access(o->obj, cmd->in, cmd->inlen, cmd->out, cmd->outlen);
	if (ret != 0 && ret != -EREMOTEIO)
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
}

static void
general(struct front_cmd *cmd)
{
	int ret = cmd->f->cmd->general(cmd->user->ctx, cmd->in, cmd->inlen, cmd->out, cmd->outlen);

	if (ret != 0 && ret != -EREMOTEIO)
		front_refuse_errno(cmd, ret, FRONT_SYNDROME | __LINE__);
}

/* Effect of a command on an object. */
enum action {
	ALLOC,
	CREATE,
	MODIFY,
	QUERY,
	DESTROY,
	DETACH,
	FREE_DM,
	CREATE_USER,
	DESTROY_USER,
	GENERAL, /* a command without an object */
};

static const struct entry {
	uint16_t op;
	uint16_t inlen; /* shortest input that drivers/front itself reads, bytes */
	enum action action;
	enum front_kind kind;
} entries[] = {
	{BB_PRM_OP_CREATE_UCTX, BB_PRM_SZ_CREATE_UCTX_IN, CREATE_USER, 0},
	{BB_PRM_OP_DESTROY_UCTX, FRONT_BOX, DESTROY_USER, 0},
	{BB_PRM_OP_ALLOC_PD, FRONT_BOX, ALLOC, FRONT_PD},
	{BB_PRM_OP_DEALLOC_PD, FRONT_BOX, DESTROY, FRONT_PD},
	{BB_PRM_OP_ALLOC_UAR, FRONT_BOX, ALLOC, FRONT_UAR},
	{BB_PRM_OP_DEALLOC_UAR, FRONT_BOX, DESTROY, FRONT_UAR},
	{BB_PRM_OP_ALLOC_TRANSPORT_DOMAIN, FRONT_BOX, ALLOC, FRONT_TD},
	{BB_PRM_OP_DEALLOC_TRANSPORT_DOMAIN, FRONT_BOX, DESTROY, FRONT_TD},
	{BB_PRM_OP_ALLOC_XRCD, FRONT_BOX, ALLOC, FRONT_XRCD},
	{BB_PRM_OP_DEALLOC_XRCD, FRONT_BOX, DESTROY, FRONT_XRCD},
	{BB_PRM_OP_CREATE_XRC_SRQ, BB_PRM_SZ_CREATE_XRC_SRQ_IN, ALLOC, FRONT_XRC_SRQ},
	{BB_PRM_OP_DESTROY_XRC_SRQ, FRONT_BOX, DESTROY, FRONT_XRC_SRQ},
	{BB_PRM_OP_CREATE_UMEM, BB_PRM_SZ_CREATE_UMEM_IN, CREATE, FRONT_UMEM},
	{BB_PRM_OP_DESTROY_UMEM, FRONT_BOX, DESTROY, FRONT_UMEM},
	{BB_PRM_OP_CREATE_MKEY, BB_PRM_SZ_CREATE_MKEY_IN, CREATE, FRONT_MKEY},
	{BB_PRM_OP_QUERY_MKEY, FRONT_BOX, QUERY, FRONT_MKEY},
	{BB_PRM_OP_DESTROY_MKEY, FRONT_BOX, DESTROY, FRONT_MKEY},
	{BB_PRM_OP_CREATE_CQ, BB_PRM_SZ_CREATE_CQ_IN, CREATE, FRONT_CQ},
	{BB_PRM_OP_MODIFY_CQ, FRONT_BOX, MODIFY, FRONT_CQ},
	{BB_PRM_OP_DESTROY_CQ, FRONT_BOX, DESTROY, FRONT_CQ},
	{BB_PRM_OP_CREATE_QP, BB_PRM_SZ_CREATE_QP_IN, CREATE, FRONT_QP},
	{BB_PRM_OP_RST2INIT_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_INIT2INIT_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_INIT2RTR_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_RTR2RTS_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_RTS2RTS_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_2ERR_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_2RST_QP, FRONT_BOX, MODIFY, FRONT_QP},
	{BB_PRM_OP_QUERY_QP, FRONT_BOX, QUERY, FRONT_QP},
	{BB_PRM_OP_DESTROY_QP, FRONT_BOX, DESTROY, FRONT_QP},
	{BB_PRM_OP_CREATE_RMP, BB_PRM_SZ_RMP, CREATE, FRONT_RMP},
	{BB_PRM_OP_MODIFY_RMP, FRONT_BOX, MODIFY, FRONT_RMP},
	{BB_PRM_OP_QUERY_RMP, FRONT_BOX, QUERY, FRONT_RMP},
	{BB_PRM_OP_DESTROY_RMP, FRONT_BOX, DESTROY, FRONT_RMP},
	{BB_PRM_OP_QUERY_CONG_STATISTICS, BB_PRM_SZ_QUERY_CONG_STATISTICS_IN, GENERAL, 0},
	{BB_PRM_OP_QUERY_SPECIAL_CONTEXTS, FRONT_BOX, GENERAL, 0},
	{BB_PRM_OP_PAGE_FAULT_RESUME, FRONT_BOX, GENERAL, 0},
	{BB_PRM_OP_ALLOC_Q_COUNTER, FRONT_BOX, CREATE, FRONT_COUNTER},
	{BB_PRM_OP_QUERY_Q_COUNTER, FRONT_BOX, QUERY, FRONT_COUNTER},
	{BB_PRM_OP_DEALLOC_Q_COUNTER, FRONT_BOX, DESTROY, FRONT_COUNTER},
	{BB_PRM_OP_ATTACH_TO_MCG, BB_PRM_SZ_MCG, CREATE, FRONT_MCG},
	{BB_PRM_OP_DETACH_FROM_MCG, FRONT_BOX, DETACH, FRONT_MCG},
	{BB_PRM_OP_ALLOC_MEMIC, BB_PRM_SZ_MEMIC_IN, CREATE, FRONT_DM},
	{BB_PRM_OP_DEALLOC_MEMIC, BB_PRM_SZ_MEMIC_IN, FREE_DM, FRONT_DM},
};

/* Returns the field with the number of the object that a command modifies, queries or destroys. */
static struct bb_prm_field
number_field(uint16_t op)
{
	return op == BB_PRM_OP_DEALLOC_Q_COUNTER ? BB_PRM_DEALLOC_Q_COUNTER_ID
	       : op == BB_PRM_OP_QUERY_Q_COUNTER ? BB_PRM_QUERY_Q_COUNTER_ID
						 : NUMBER;
}

static void
run(struct front_cmd *cmd, const struct entry *e)
{
	switch (e->action) {
	case ALLOC:
		alloc(cmd, e->kind);
		break;
	case CREATE:
		create(cmd, e->kind);
		break;
	case MODIFY:
		pass(cmd, cmd->f->cmd->obj_modify, named(cmd, e->kind, number_field(e->op)));
		break;
	case QUERY:
		pass(cmd, cmd->f->cmd->obj_query, named(cmd, e->kind, number_field(e->op)));
		break;
	case DESTROY:
		destroy(cmd, named(cmd, e->kind, number_field(e->op)));
		break;
	case DETACH:
		detach(cmd);
		break;
	case FREE_DM:
		free_dm(cmd);
		break;
	case CREATE_USER:
		create_uctx(cmd);
		break;
	case GENERAL:
		general(cmd);
		break;
	case DESTROY_USER:
		destroy_uctx(cmd);
		break;
	}
}

bool
front_command(struct front *f, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	struct front_cmd cmd = {.f = f, .in = in, .inlen = inlen, .out = out, .outlen = outlen};
	const struct entry *e = entries;

	if (inlen < FRONT_BOX || outlen < FRONT_BOX)
		return false;
	cmd.op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE);
	while (e != entries + RTE_DIM(entries) && e->op != cmd.op)
		e++;
	if (e == entries + RTE_DIM(entries) && f->eth == NULL)
		return false;
	memset(out, 0, outlen);
	cmd.user = front_user_of(f, (uint16_t)bb_prm_get(in, BB_PRM_CMD_UID));
	if (e == entries + RTE_DIM(entries))
		return f->eth_command(&cmd);
	if (cmd.user == NULL)
		FRONT_REFUSE(&cmd, BAD_RES);
	else if (inlen < e->inlen)
		FRONT_REFUSE(&cmd, BAD_INP_LEN);
	else
		run(&cmd, e);
	return true;
}
