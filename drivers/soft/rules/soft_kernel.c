/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>

#include <rte_common.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_kernel.h"

/* Opcodes that bb_prm.h does not define, because the software device does not execute them. */
#define OP_GENERAL_FIRST 0xb00
#define OP_GENERAL_END   0xd00
#define MKC_END          0x50 /* end of the key's context: create_mkey_in.reserved_at_280 */

/* Commands that the kernel's devx_is_general_cmd() accepts. */
static const uint16_t general_ops[] = {
	0x100, /* QUERY_HCA_CAP */
	0x101, /* QUERY_ADAPTER */
	0x10a, /* QUERY_ISSI */
	0x750, /* QUERY_VPORT_STATE */
	0x752, /* QUERY_ESW_VPORT_CONTEXT */
	0x754, /* QUERY_NIC_VPORT_CONTEXT */
	0x760, /* QUERY_ROCE_ADDRESS */
	0x762, /* QUERY_HCA_VPORT_CONTEXT */
	0x76f, /* QUERY_VNIC_ENV */
	0x770, /* QUERY_VPORT_COUNTER */
	0x80a, /* GET_DROPPED_PACKET_LOG */
	0x80d, /* NOP */
	0x822, /* QUERY_CONG_STATUS */
	0x824, /* QUERY_CONG_PARAMS */
	0x826, /* QUERY_CONG_STATISTICS */
	0x842, /* QUERY_LAG */
};

/*
 * Commands that create an object: those of devx_is_obj_create_cmd(), without flow steering and
 * without SRQs other than RMPs.
 */
static const uint16_t create_ops[] = {
	BB_PRM_OP_CREATE_MKEY,
	BB_PRM_OP_CREATE_CQ,
	BB_PRM_OP_CREATE_QP,
	BB_PRM_OP_ALLOC_Q_COUNTER,
	0x800, /* ALLOC_PD */
	0x816, /* ALLOC_TRANSPORT_DOMAIN */
	BB_PRM_OP_CREATE_RMP,
	BB_PRM_OP_ATTACH_TO_MCG,
};

/* Commands that the kernel's devx_is_obj_modify_cmd() accepts. */
static const uint16_t modify_ops[] = {
	BB_PRM_OP_MODIFY_CQ,
	BB_PRM_OP_RST2INIT_QP,
	BB_PRM_OP_INIT2INIT_QP,
	BB_PRM_OP_INIT2RTR_QP,
	BB_PRM_OP_RTR2RTS_QP,
	BB_PRM_OP_RTS2RTS_QP,
	0x506, /* SQERR2RTS_QP */
	BB_PRM_OP_2ERR_QP,
	BB_PRM_OP_2RST_QP,
	BB_PRM_OP_MODIFY_RMP,
};

/* Commands that the kernel's devx_is_obj_query_cmd() accepts. */
static const uint16_t query_ops[] = {
	0x201, /* QUERY_MKEY */
	0x402, /* QUERY_CQ */
	BB_PRM_OP_QUERY_QP,
	BB_PRM_OP_QUERY_Q_COUNTER,
	BB_PRM_OP_QUERY_RMP,
};

static bool
among(uint16_t op, const uint16_t *ops, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ops[i] == op)
			return true;
	return false;
}

static bool
allowed(enum soft_kernel_method method, uint16_t op)
{
	switch (method) {
	case SOFT_KERNEL_GENERAL:
		return (op >= OP_GENERAL_FIRST && op < OP_GENERAL_END) ||
		       among(op, general_ops, RTE_DIM(general_ops));
	case SOFT_KERNEL_CREATE:
		return among(op, create_ops, RTE_DIM(create_ops));
	case SOFT_KERNEL_MODIFY:
		return among(op, modify_ops, RTE_DIM(modify_ops));
	case SOFT_KERNEL_QUERY:
		return among(op, query_ops, RTE_DIM(query_ops));
	}
	return false;
}

/*
 * Checks that the event queue of a CQ exists. mlx5_create_cq() looks up the event queue
 * (mlx5_eqn2comp_eq()), so the kernel fails the command before the firmware sees it.
 */
static int
check_eqn(const void *in, size_t inlen)
{
	uint32_t eqn;

	if (inlen < BB_PRM_SZ_CREATE_CQ_IN)
		return 0;
	eqn = bb_prm_get(bb_prm_csub(in, BB_PRM_CREATE_CQ_CQC), BB_PRM_CQC_C_EQN);
	if (eqn >= SOFT_FIRST_EQN && eqn - SOFT_FIRST_EQN < SOFT_EQS)
		return 0;
	SOFT_LOG(
		ERR,
		"CREATE_CQ: c_eqn 0x%x names no event queue: use the number that query_eqn returns",
		eqn);
	return -ENOENT;
}

/*
 * Returns the identity of the object that a modify or query mailbox names, or 0 if it names no
 * object (devx_get_obj_id()).
 */
static uint64_t
named_obj(const void *in)
{
	uint16_t op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE);

	switch (op) {
	case 0x402:
	case BB_PRM_OP_MODIFY_CQ:
		return (uint64_t)BB_PRM_OP_CREATE_CQ << 32 | bb_prm_get(in, BB_PRM_DESTROY_CQ_CQN);
	case BB_PRM_OP_QUERY_Q_COUNTER:
		return (uint64_t)BB_PRM_OP_ALLOC_Q_COUNTER << 32 |
		       bb_prm_get(in, BB_PRM_QUERY_Q_COUNTER_ID);
	case BB_PRM_OP_MODIFY_RMP:
	case BB_PRM_OP_QUERY_RMP:
		return (uint64_t)BB_PRM_OP_CREATE_RMP << 32 |
		       bb_prm_get(in, BB_PRM_MODIFY_RMP_RMPN);
	case BB_PRM_OP_QUERY_QP:
	case BB_PRM_OP_RST2INIT_QP:
	case BB_PRM_OP_INIT2INIT_QP:
	case BB_PRM_OP_INIT2RTR_QP:
	case BB_PRM_OP_RTR2RTS_QP:
	case BB_PRM_OP_RTS2RTS_QP:
	case BB_PRM_OP_2ERR_QP:
	case BB_PRM_OP_2RST_QP:
		return (uint64_t)BB_PRM_OP_CREATE_QP << 32 | bb_prm_get(in, BB_PRM_MODIFY_QP_QPN);
	default:
		return 0;
	}
}

int
soft_kernel_check(enum soft_kernel_method method, uint64_t obj_id, const void *in, size_t inlen,
		  size_t outlen)
{
	static const char *const names[] = {"general_cmd", "obj_create", "obj_modify", "obj_query"};
	/* Long enough for the fields that named_obj() reads. */
	uint8_t head[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0};
	uint64_t named;
	uint16_t op;

	/*
	 * The input and the output attribute of the ioctl have a minimum size
	 * (UVERBS_ATTR_MIN_SIZE), which is the size of the header of a mailbox.
	 */
	if (in == NULL || inlen < SOFT_KERNEL_MIN_BOX || outlen < SOFT_KERNEL_MIN_BOX) {
		SOFT_LOG(ERR,
			 "DEVX %s: the input or output mailbox is shorter than %d bytes, the size "
			 "of its header",
			 names[method], SOFT_KERNEL_MIN_BOX);
		return -EINVAL;
	}
	op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE);
	if (!allowed(method, op)) {
		SOFT_LOG(ERR, "DEVX %s: the kernel does not allow opcode 0x%x in this method",
			 names[method], op);
		return -EINVAL;
	}
	/*
	 * The kernel replaces the uid in the mailbox by the uid of the context. A caller that sets
	 * the field expects its own value to count, so the software device rejects the command.
	 */
	if (op != BB_PRM_OP_QUERY_QP && op != BB_PRM_OP_QUERY_Q_COUNTER &&
	    op != BB_PRM_OP_QUERY_RMP && bb_prm_get(in, BB_PRM_CMD_UID) != 0) {
		SOFT_LOG(ERR, "DEVX %s: opcode 0x%x: uid must be 0, because the kernel fills it in",
			 names[method], op);
		return -EINVAL;
	}
	/* The kernel's devx_is_valid_obj_id() makes this check, too. */
	memcpy(head, in, RTE_MIN(inlen, sizeof(head)));
	named = named_obj(head);
	if ((method == SOFT_KERNEL_MODIFY || method == SOFT_KERNEL_QUERY) &&
	    (named == 0 || named != obj_id)) {
		SOFT_LOG(ERR,
			 "DEVX %s: opcode 0x%x names object 0x%x, but the handle belongs to object "
			 "0x%x",
			 names[method], op, (uint32_t)named, (uint32_t)obj_id);
		return -EINVAL;
	}
	/*
	 * devx_handle_mkey_create() reads the whole key context, so a shorter mailbox is rejected.
	 */
	if (op == BB_PRM_OP_CREATE_MKEY && inlen < MKC_END) {
		SOFT_LOG(ERR,
			 "DEVX %s: a CREATE_MKEY mailbox of %zu bytes is too short for the key's "
			 "context (%d bytes or more)",
			 names[method], inlen, (int)MKC_END);
		return -EINVAL;
	}
	return op == BB_PRM_OP_CREATE_CQ ? check_eqn(in, inlen) : 0;
}

void
soft_kernel_fill(void *in, size_t inlen)
{
	/* Sets the same bits as the kernel's devx_set_umem_valid(). */
	switch (bb_prm_get(in, BB_PRM_CMD_OPCODE)) {
	case BB_PRM_OP_CREATE_CQ:
		if (inlen < BB_PRM_SZ_CREATE_CQ_IN)
			return;
		bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
		bb_prm_set(bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC), BB_PRM_CQC_DBR_UMEM_VALID, 1);
		return;
	case BB_PRM_OP_MODIFY_CQ:
		if (inlen >= BB_PRM_SZ_MODIFY_CQ_IN)
			bb_prm_set(in, BB_PRM_MODIFY_CQ_UMEM_VALID, 1);
		return;
	case BB_PRM_OP_CREATE_QP:
		if (inlen < BB_PRM_SZ_CREATE_QP_IN)
			return;
		bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_VALID, 1);
		bb_prm_set(bb_prm_sub(in, BB_PRM_CREATE_QP_QPC), BB_PRM_QPC_DBR_UMEM_VALID, 1);
		return;
	case BB_PRM_OP_CREATE_RMP: {
		void *wq;

		if (inlen < BB_PRM_SZ_RMP)
			return;
		wq = bb_prm_sub(bb_prm_sub(in, BB_PRM_CREATE_RMP_CTX), BB_PRM_RMPC_WQ);
		bb_prm_set(wq, BB_PRM_WQ_UMEM_VALID, 1);
		bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_VALID, 1);
		return;
	}
	default:
		return;
	}
}

uint64_t
soft_kernel_obj_id(const void *in, const void *out)
{
	uint16_t op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE);
	uint32_t num = 0;

	/* Returns the same identity as the kernel's devx_get_created_obj_id(). */
	switch (op) {
	case BB_PRM_OP_CREATE_MKEY:
		num = bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX);
		break;
	case BB_PRM_OP_CREATE_CQ:
		num = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
		break;
	case BB_PRM_OP_CREATE_QP:
		num = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
		break;
	case BB_PRM_OP_ALLOC_Q_COUNTER:
		num = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
		break;
	case BB_PRM_OP_CREATE_RMP:
		num = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
		break;
	case BB_PRM_OP_CREATE_UMEM:
		num = bb_prm_get(out, BB_PRM_CREATE_UMEM_OUT_ID);
		break;
	case BB_PRM_OP_ALLOC_MEMIC:
		/*
		 * ALLOC_MEMIC creates no DEVX object. The memory starts at a page boundary, so the
		 * number of its first page identifies it.
		 */
		num = (uint32_t)(bb_prm_get64(out, BB_PRM_ALLOC_MEMIC_OUT_START) /
				 SOFT_KERNEL_PAGE);
		break;
	case BB_PRM_OP_ATTACH_TO_MCG:
		num = bb_prm_get(in, BB_PRM_ATTACH_TO_MCG_QPN);
		break;
	}
	return (uint64_t)op << 32 | num;
}

uint32_t
soft_kernel_destroy_cmd(const void *create, uint64_t obj_id, void *in)
{
	uint32_t num = (uint32_t)obj_id;

	/* Builds the same command as the kernel's devx_obj_build_destroy_cmd(). */
	memset(in, 0, SOFT_KERNEL_MAX_DESTROY);
	switch (obj_id >> 32) {
	case BB_PRM_OP_CREATE_MKEY:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DESTROY_MKEY);
		bb_prm_set(in, BB_PRM_DESTROY_MKEY_INDEX, num);
		break;
	case BB_PRM_OP_CREATE_CQ:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DESTROY_CQ);
		bb_prm_set(in, BB_PRM_DESTROY_CQ_CQN, num);
		break;
	case BB_PRM_OP_CREATE_QP:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DESTROY_QP);
		bb_prm_set(in, BB_PRM_DESTROY_QP_QPN, num);
		break;
	case BB_PRM_OP_ALLOC_Q_COUNTER:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DEALLOC_Q_COUNTER);
		bb_prm_set(in, BB_PRM_DEALLOC_Q_COUNTER_ID, num);
		break;
	case BB_PRM_OP_CREATE_RMP:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DESTROY_RMP);
		bb_prm_set(in, BB_PRM_DESTROY_RMP_RMPN, num);
		break;
	case BB_PRM_OP_CREATE_UMEM:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DESTROY_UMEM);
		bb_prm_set(in, BB_PRM_DESTROY_UMEM_ID, num);
		break;
	case BB_PRM_OP_ALLOC_MEMIC:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DEALLOC_MEMIC);
		bb_prm_set64(in, BB_PRM_DEALLOC_MEMIC_START, (uint64_t)num * SOFT_KERNEL_PAGE);
		bb_prm_set(in, BB_PRM_DEALLOC_MEMIC_SIZE,
			   bb_prm_get(create, BB_PRM_ALLOC_MEMIC_SIZE));
		return BB_PRM_SZ_MEMIC_IN;
	case BB_PRM_OP_ATTACH_TO_MCG:
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_DETACH_FROM_MCG);
		bb_prm_set(in, BB_PRM_DETACH_FROM_MCG_QPN, num);
		memcpy(bb_prm_sub(in, BB_PRM_DETACH_FROM_MCG_GID),
		       bb_prm_csub(create, BB_PRM_ATTACH_TO_MCG_GID), 16);
		return BB_PRM_SZ_MCG;
	}
	return SOFT_KERNEL_MIN_BOX;
}

int
soft_kernel_status_errno(uint8_t status)
{
	/*
	 * Returns the same errnos as cmd_status_to_err() in
	 * drivers/net/ethernet/mellanox/mlx5/core/cmd.c.
	 */
	switch (status) {
	case BB_PRM_STAT_OK:
		return 0;
	case BB_PRM_STAT_RES_BUSY:
		return -EBUSY;
	case BB_PRM_STAT_LIM_ERR:
		return -ENOMEM;
	case BB_PRM_STAT_IX_ERR:
		return -EINVAL;
	case BB_PRM_STAT_NO_RES:
		return -EAGAIN;
	case BB_PRM_STAT_BAD_OP:
	case BB_PRM_STAT_BAD_PARAM:
	case BB_PRM_STAT_BAD_RES:
	case BB_PRM_STAT_BAD_RES_STATE:
	case BB_PRM_STAT_BAD_QP_STATE:
	case BB_PRM_STAT_BAD_SIZE_OUTS_CQES:
		return -EINVAL;
	default:
		return -EIO;
	}
}

int
soft_kernel_events(const uint16_t *types, unsigned int n, bool has_obj)
{
	const uint64_t mask = has_obj ? SOFT_EVENTS_OBJ | 1u << BB_PRM_EVENT_COMP : SOFT_EVENTS_DEV;
	unsigned int i;

	/*
	 * The limit is MAX_NUM_EVENTS. is_valid_events() allows the types in the device's
	 * event_cap, and always allows CQE events.
	 */
	if (types == NULL || n == 0 || n > 16) {
		SOFT_LOG(ERR, "event subscription: invalid number of event types %u (1 to 16)", n);
		return -EINVAL;
	}
	for (i = 0; i < n; i++) {
		if (types[i] > 63 || (mask >> types[i] & 1) == 0) {
			SOFT_LOG(ERR,
				 "event subscription: the device does not raise events of type "
				 "0x%x (capability user_%s_events)",
				 types[i], has_obj ? "affiliated" : "unaffiliated");
			return -EINVAL;
		}
	}
	return 0;
}
