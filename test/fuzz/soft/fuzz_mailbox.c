/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software device's command decoder: a sequence of calls of its command interface. Each input
 * starts with a device that has memory and a CQ. A call starts with a byte, enum call below. A
 * mailbox starts as one that the device accepts, and the input corrupts bytes of it. Between
 * calls the device runs on the memory. The input also writes parts of that memory, with its
 * records and rings.
 *
 * Invariants: a refusal is in the output mailbox and gives no object. A destroyed object is gone.
 * At the end the device can be closed: no object is counted twice.
 */
#include "../../model/soft/cmd/soft_ctl_env.h"
#include "bb_barrier.h"
#include "fuzz.h"
#include "soft_kernel.h"

#define RMP_AT      32768
#define MAX_CALLS   48
#define MAX_OBJS    12
#define MAX_HANDLES 6
#define OUT_MAX     (BB_PRM_SZ_QUERY_HCA_CAP_OUT + 64)
#define BOX_MAX     (SOFT_KERNEL_MAX_IN + 64)
#define SPOIL_AT    0x140 /* after the longest mailbox of a command */

enum call {
	CALL_CREATE,
	CALL_MODIFY,
	CALL_QUERY,
	CALL_GENERAL,
	CALL_DESTROY,
	CALL_UMEM,
	CALL_MR,
	CALL_UAR,
	CALL_PD,
	CALL_DM,
	CALL_EVENT,
	CALL_MEMORY, /* writes bytes to the memory */
	CALL_RUN,
	CALL_PORT,
	CALLS,
};

struct obj {
	struct mlx5_obj *obj;
	uint16_t op; /* opcode of the command that created it */
	uint32_t num;
};

struct world {
	struct env env;
	struct fuzz_in in;
	struct obj objs[MAX_OBJS];
	struct mlx5_umem *umems[MAX_HANDLES];
	struct mlx5_mr *mrs[MAX_HANDLES];
	struct mlx5_uar *uars[MAX_HANDLES];
	struct mlx5_pd *pds[MAX_HANDLES];
	struct mlx5_dm *dms[MAX_HANDLES];
	uint8_t box[BOX_MAX], out[OUT_MAX];
};

/* Corrupts the mailbox: a count, then offset and value of each byte. Returns its length. */
static size_t
spoil(struct world *w, size_t right)
{
	uint32_t n = fuzz_u8(&w->in) % 24, at;
	int8_t longer;

	while (n-- != 0) {
		at = fuzz_u16(&w->in) % SPOIL_AT;
		w->box[at] = fuzz_u8(&w->in);
	}
	longer = (int8_t)fuzz_u8(&w->in);
	if (longer == -128)
		return sizeof(w->box);
	if (longer < 0 && (size_t)-longer > right)
		return 0;
	return RTE_MIN(right + (size_t)longer, sizeof(w->box));
}

static size_t
out_len(struct world *w, size_t right)
{
	int8_t longer = (int8_t)fuzz_u8(&w->in);

	memset(w->out, 0xee, sizeof(w->out));
	if (longer < 0 && (size_t)-longer > right)
		return 0;
	return RTE_MIN(right + (size_t)longer, sizeof(w->out));
}

/* A refusal of the kernel leaves the output alone, one of the device fills it. */
static void
check_answer(const struct world *w, int ret, size_t outlen)
{
	for (size_t i = outlen; i < sizeof(w->out); i++)
		check(w->out[i] == 0xee, "the answer is longer than its mailbox");
	if (ret != 0 && ret != -EREMOTEIO)
		return;
	check((bb_prm_get(w->out, BB_PRM_CMD_STATUS) == 0) == (ret == 0), "status and errno");
	check((bb_prm_get(w->out, BB_PRM_CMD_SYNDROME) == 0) == (ret == 0), "syndrome and errno");
}

static struct obj *
some_obj(struct world *w)
{
	return &w->objs[fuzz_u8(&w->in) % MAX_OBJS];
}

#define RMP_LOG 3

/* Builds a valid CREATE_RMP on the memory of the send queue. */
static size_t
rmp_in(const struct env *env, uint8_t *in)
{
	uint8_t *ctx = bb_prm_sub(in, BB_PRM_CREATE_RMP_CTX), *wq = bb_prm_sub(ctx, BB_PRM_RMPC_WQ);

	env_op(in, BB_PRM_OP_CREATE_RMP);
	bb_prm_set(ctx, BB_PRM_RMPC_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(wq, BB_PRM_WQ_PD, env->pd->pdn);
	bb_prm_set(wq, BB_PRM_WQ_LOG_STRIDE, 5);
	bb_prm_set(wq, BB_PRM_WQ_LOG_SZ, RMP_LOG);
	bb_prm_set(wq, BB_PRM_WQ_DBR_UMEM_ID, env->umem->id);
	bb_prm_set64(wq, BB_PRM_WQ_DBR_ADDR, ENV_QP_DB + 64);
	bb_prm_set(wq, BB_PRM_WQ_UMEM_ID, env->umem->id);
	bb_prm_set64(wq, BB_PRM_WQ_UMEM_OFFSET, RMP_AT);
	return BB_PRM_SZ_RMP;
}

/* Sets a new low watermark. */
static size_t
rmp_modify_in(uint8_t *in, uint32_t rmpn)
{
	env_op(in, BB_PRM_OP_MODIFY_RMP);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_STATE, BB_PRM_RMPC_RDY);
	bb_prm_set(in, BB_PRM_MODIFY_RMP_RMPN, rmpn);
	bb_prm_set(bb_prm_sub(in, BB_PRM_MODIFY_RMP_BITMASK), BB_PRM_RMP_BITMASK_LWM, 1);
	return BB_PRM_SZ_RMP;
}

/* Sets a new ring, or moderation. */
static size_t
cq_modify_in(const struct env *env, uint8_t *in, uint32_t cqn, bool resize)
{
	env_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, cqn);
	if (!resize) {
		bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
			   BB_PRM_CQ_MODIFY_PERIOD | BB_PRM_CQ_MODIFY_COUNT);
		return BB_PRM_SZ_MODIFY_CQ_IN;
	}
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT,
		   BB_PRM_CQ_RESIZE_LOG_SIZE | BB_PRM_CQ_RESIZE_PG_OFFSET |
			   BB_PRM_CQ_RESIZE_PG_SIZE);
	bb_prm_set(bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC), BB_PRM_CQC_LOG_CQ_SIZE, ENV_CQ_LOG + 1);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, RMP_AT + 4096);
	return BB_PRM_SZ_MODIFY_CQ_IN;
}

static uint32_t
created(uint16_t op, const uint8_t *out)
{
	switch (op) {
	case BB_PRM_OP_CREATE_CQ:
		return bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	case BB_PRM_OP_CREATE_QP:
		return bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	case BB_PRM_OP_CREATE_RMP:
		return bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
	case BB_PRM_OP_ALLOC_Q_COUNTER:
		return bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	default:
		return 0;
	}
}

static void
call_create(struct world *w)
{
	struct obj *o = some_obj(w);
	struct mlx5_obj *obj = NULL;
	size_t right, inlen, outlen;
	int ret;

	switch (fuzz_u8(&w->in) % 6) {
	case 0:
		env_cq_in(&w->env, w->box);
		right = BB_PRM_SZ_CREATE_CQ_IN;
		break;
	case 1:
		env_qp_in(&w->env, w->box);
		right = BB_PRM_SZ_CREATE_QP_IN;
		break;
	case 2:
		env_op(w->box, BB_PRM_OP_ALLOC_Q_COUNTER);
		right = BB_PRM_SZ_SHORT;
		break;
	case 4:
		right = rmp_in(&w->env, w->box);
		break;
	case 5:
		env_op(w->box, BB_PRM_OP_ATTACH_TO_MCG);
		bb_prm_set(w->box, BB_PRM_ATTACH_TO_MCG_QPN, some_obj(w)->num);
		w->box[BB_PRM_ATTACH_TO_MCG_GID.byte] = 0xff;
		right = BB_PRM_SZ_MCG;
		break;
	default:
		env_op(w->box, fuzz_u16(&w->in));
		right = fuzz_u16(&w->in) % sizeof(w->box);
		break;
	}
	inlen = spoil(w, right);
	outlen = out_len(w, BB_PRM_SZ_SHORT);
	if (o->obj != NULL)
		return;
	ret = soft_cmd_if.obj_create(w->env.ctx, w->box, inlen, w->out, outlen, &obj);
	check_answer(w, ret, outlen);
	check((ret == 0) == (obj != NULL), "an object without success, or none with it");
	if (obj == NULL)
		return;
	o->obj = obj;
	o->op = (uint16_t)bb_prm_get(w->box, BB_PRM_CMD_OPCODE);
	o->num = created(o->op, w->out);
}

static void
call_modify(struct world *w)
{
	static const uint16_t ops[] = {
		BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,  BB_PRM_OP_RTR2RTS_QP,
		BB_PRM_OP_RTS2RTS_QP,  BB_PRM_OP_INIT2INIT_QP, BB_PRM_OP_2ERR_QP,
		BB_PRM_OP_2RST_QP,
	};
	const struct obj *o = some_obj(w);
	uint32_t pick = fuzz_u8(&w->in) % (RTE_DIM(ops) + 3);
	size_t right, inlen, outlen;
	int ret;

	if (pick < RTE_DIM(ops)) {
		env_modify_in(&w->env, ops[pick], o->num, w->box);
		right = env_modify_len(ops[pick]);
	} else if (pick == RTE_DIM(ops)) {
		right = rmp_modify_in(w->box, o->num);
	} else {
		right = cq_modify_in(&w->env, w->box, o->num, pick == RTE_DIM(ops) + 1);
	}
	inlen = spoil(w, right);
	outlen = out_len(w, BB_PRM_SZ_SHORT);
	if (o->obj == NULL)
		return;
	ret = soft_cmd_if.obj_modify(o->obj, w->box, inlen, w->out, outlen);
	check_answer(w, ret, outlen);
}

static void
call_query(struct world *w)
{
	const struct obj *o = some_obj(w);
	size_t right = BB_PRM_SZ_SHORT, outright = BB_PRM_SZ_QUERY_QP_OUT, inlen, outlen;
	int ret;

	if (o->op == BB_PRM_OP_ALLOC_Q_COUNTER) {
		env_op(w->box, BB_PRM_OP_QUERY_Q_COUNTER);
		bb_prm_set(w->box, BB_PRM_QUERY_Q_COUNTER_ID, o->num);
		right = BB_PRM_SZ_QUERY_Q_COUNTER_IN;
		outright = BB_PRM_SZ_QUERY_Q_COUNTER_OUT;
	} else if (o->op == BB_PRM_OP_CREATE_RMP) {
		env_op(w->box, BB_PRM_OP_QUERY_RMP);
		bb_prm_set(w->box, BB_PRM_QUERY_RMP_RMPN, o->num);
		outright = BB_PRM_SZ_RMP;
	} else {
		env_op(w->box, BB_PRM_OP_QUERY_QP);
		bb_prm_set(w->box, BB_PRM_QUERY_QP_QPN, o->num);
	}
	inlen = spoil(w, right);
	outlen = out_len(w, outright);
	if (o->obj == NULL)
		return;
	ret = soft_cmd_if.obj_query(o->obj, w->box, inlen, w->out, outlen);
	check_answer(w, ret, outlen);
}

static void
call_general(struct world *w)
{
	size_t inlen, outlen;
	int ret;

	env_op(w->box, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(w->box, BB_PRM_CMD_OP_MOD, fuzz_u8(&w->in));
	inlen = spoil(w, BB_PRM_SZ_QUERY_HCA_CAP_IN);
	outlen = out_len(w, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
	ret = soft_cmd_if.general(w->env.ctx, w->box, inlen, w->out, outlen);
	check_answer(w, ret, outlen);
}

static void
call_destroy(struct world *w)
{
	struct obj *o = some_obj(w);

	if (o->obj != NULL && soft_cmd_if.obj_destroy(o->obj) == 0)
		memset(o, 0, sizeof(*o));
}

/* Returns mostly mapped memory: a part of the memory, an unmapped address, or NULL. */
static uint8_t *
some_memory(struct world *w, size_t *len)
{
	uint8_t kind = fuzz_u8(&w->in);
	size_t at = fuzz_u16(&w->in);

	*len = fuzz_u16(&w->in);
	if (kind < 200) {
		*len = RTE_MIN(*len, (size_t)ENV_BYTES - at);
		return w->env.mem + (kind & 1 ? at : at & ~(size_t)4095);
	}
	if (kind < 220)
		*len = SIZE_MAX - *len;
	return kind < 240 ? (uint8_t *)(uintptr_t)(at << 12) : w->env.mem + at;
}

static void
call_umem(struct world *w)
{
	struct mlx5_umem **u = &w->umems[fuzz_u8(&w->in) % MAX_HANDLES], *umem = NULL;
	uint32_t access;
	uint8_t *addr;
	uint64_t pages;
	size_t len;
	int ret;

	if (*u != NULL) {
		if (soft_cmd_if.umem_dereg(w->env.ctx, *u) == 0)
			*u = NULL;
		return;
	}
	addr = some_memory(w, &len);
	access = fuzz_u8(&w->in);
	pages = fuzz_u8(&w->in) < 128 ? 4096 : fuzz_u64(&w->in);
	ret = soft_cmd_if.umem_reg(w->env.ctx, addr, len, access, pages, &umem);
	check((ret == 0) == (umem != NULL), "umem_reg");
	*u = umem;
}

static void
call_mr(struct world *w)
{
	struct mlx5_mr **m = &w->mrs[fuzz_u8(&w->in) % MAX_HANDLES], *mr = NULL;
	struct mlx5_mr_attr attr;
	struct mlx5_pd *pd;
	uint8_t *addr;
	size_t len;
	int ret;

	if (*m != NULL) {
		check(soft_cmd_if.mr_dereg(w->env.ctx, *m) == 0, "mr_dereg");
		*m = NULL;
		return;
	}
	pd = w->pds[fuzz_u8(&w->in) % MAX_HANDLES];
	addr = some_memory(w, &len);
	attr = mlx5_mr_mem(addr, len, fuzz_u8(&w->in));
	if (fuzz_u8(&w->in) >= 192)
		attr.iova = fuzz_u64(&w->in);
	ret = soft_cmd_if.mr_reg(w->env.ctx, pd != NULL ? pd : w->env.pd, &attr, &mr);
	check((ret == 0) == (mr != NULL), "mr_reg");
	*m = mr;
}

static void
call_uar(struct world *w)
{
	struct mlx5_uar **u = &w->uars[fuzz_u8(&w->in) % MAX_HANDLES];
	enum mlx5_uar_type type = fuzz_u8(&w->in) & 1 ? MLX5_UAR_BF : MLX5_UAR_NC;

	if (*u == NULL)
		check(soft_cmd_if.uar_alloc(w->env.ctx, type, u) == 0, "uar_alloc");
	else if (soft_cmd_if.uar_free(w->env.ctx, *u) == 0)
		*u = NULL;
}

static void
call_pd(struct world *w)
{
	struct mlx5_pd **p = &w->pds[fuzz_u8(&w->in) % MAX_HANDLES];

	if (*p == NULL)
		check(soft_cmd_if.pd_alloc(w->env.ctx, p) == 0, "pd_alloc");
	else if (soft_cmd_if.pd_free(w->env.ctx, *p) == 0)
		*p = NULL;
}

static void
call_dm(struct world *w)
{
	struct mlx5_dm **d = &w->dms[fuzz_u8(&w->in) % MAX_HANDLES], *dm = NULL;
	uint8_t how = fuzz_u8(&w->in), buf[64] = {0};
	uint64_t off;
	size_t len;
	int ret;

	if (*d == NULL) {
		len = fuzz_u32(&w->in) >> (how & 15);
		ret = soft_cmd_if.dm_alloc(w->env.ctx, len, fuzz_u8(&w->in), &dm);
		check((ret == 0) == (dm != NULL), "dm_alloc");
		*d = dm;
		return;
	}
	if (how < 64) {
		if (soft_cmd_if.dm_free(w->env.ctx, *d) == 0)
			*d = NULL;
		return;
	}
	off = fuzz_u32(&w->in);
	len = fuzz_u8(&w->in) % (sizeof(buf) + 1);
	if (how & 1)
		(void)soft_cmd_if.dm_write(w->env.ctx, *d, off, buf, len);
	else
		(void)soft_cmd_if.dm_read(w->env.ctx, *d, buf, off, len);
}

static void
call_event(struct world *w)
{
	struct mlx5_obj *obj = some_obj(w)->obj;
	struct mlx5_cmd_event event;
	uint16_t types[20];
	uint32_t n, i;

	n = fuzz_u8(&w->in) % (RTE_DIM(types) + 1);
	for (i = 0; i < n; i++)
		types[i] = fuzz_u8(&w->in);
	(void)soft_cmd_if.event_subscribe(w->env.ctx, obj, types, n, i);
	(void)soft_cmd_if.event_get(w->env.ctx, &event);
}

static void
call_memory(struct world *w)
{
	size_t at = fuzz_u16(&w->in) % ENV_BYTES, n = fuzz_u8(&w->in);

	for (; n != 0 && at < ENV_BYTES && w->in.left != 0; n--)
		w->env.mem[at++] = fuzz_u8(&w->in);
}

/* Rings for a QP and runs the device. */
static void
call_run(struct world *w)
{
	const struct obj *o = some_obj(w);
	void (*fn)(void *arg) = NULL;
	uint32_t n = 1 + fuzz_u8(&w->in) % 8;
	void *arg = NULL;
	uint64_t head = bb_be64((uint64_t)fuzz_u32(&w->in) << 32 | o->num << 8 | fuzz_u8(&w->in));

	bb_uar_store64((volatile uint64_t *)(void *)w->env.uar->reg_addr, head);
	soft_cmd_if.progress_of(w->env.ctx, w->env.uar, &fn, &arg);
	while (n-- != 0)
		fn(arg);
}

static void
call_port(struct world *w)
{
	uint32_t port = fuzz_u8(&w->in), index = fuzz_u8(&w->in), eqn;
	struct mlx5_port attr;
	struct mlx5_av av;
	struct bb_gid gid = {0};

	(void)soft_cmd_if.port_query(w->env.ctx, port, &attr);
	(void)soft_cmd_if.gid_query(w->env.ctx, port, index, &gid);
	gid.raw[fuzz_u8(&w->in) % 16] ^= fuzz_u8(&w->in);
	(void)soft_cmd_if.av_resolve(w->env.ctx, w->env.pd, port, index, gid.raw, &av);
	(void)soft_cmd_if.query_eqn(w->env.ctx, fuzz_u8(&w->in), &eqn);
}

/* Destroys the remaining objects in some order and closes the device. */
static void
world_close(struct world *w)
{
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < MAX_OBJS; i++)
			if (w->objs[i].obj != NULL && soft_cmd_if.obj_destroy(w->objs[i].obj) == 0)
				w->objs[i].obj = NULL;
	for (uint32_t i = 0; i < MAX_HANDLES; i++) {
		if (w->mrs[i] != NULL)
			check(soft_cmd_if.mr_dereg(w->env.ctx, w->mrs[i]) == 0, "MR stays");
		if (w->umems[i] != NULL)
			check(soft_cmd_if.umem_dereg(w->env.ctx, w->umems[i]) == 0, "umem stays");
		if (w->uars[i] != NULL)
			check(soft_cmd_if.uar_free(w->env.ctx, w->uars[i]) == 0, "UAR stays");
		if (w->dms[i] != NULL)
			check(soft_cmd_if.dm_free(w->env.ctx, w->dms[i]) == 0, "DM stays");
	}
	for (uint32_t i = 0; i < MAX_HANDLES; i++)
		if (w->pds[i] != NULL)
			check(soft_cmd_if.pd_free(w->env.ctx, w->pds[i]) == 0, "PD stays");
	env_close(&w->env);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const calls[CALLS])(struct world * w) = {
		[CALL_CREATE] = call_create,   [CALL_MODIFY] = call_modify,
		[CALL_QUERY] = call_query,     [CALL_GENERAL] = call_general,
		[CALL_DESTROY] = call_destroy, [CALL_UMEM] = call_umem,
		[CALL_MR] = call_mr,           [CALL_UAR] = call_uar,
		[CALL_PD] = call_pd,           [CALL_DM] = call_dm,
		[CALL_EVENT] = call_event,     [CALL_MEMORY] = call_memory,
		[CALL_RUN] = call_run,         [CALL_PORT] = call_port,
	};
	static struct world w;

	memset(&w, 0, sizeof(w));
	w.in = (struct fuzz_in){data, len};
	env_open(&w.env, NULL);
	for (uint32_t n = 0; n < MAX_CALLS && w.in.left != 0; n++) {
		memset(w.box, 0, sizeof(w.box));
		calls[fuzz_u8(&w.in) % CALLS](&w);
	}
	world_close(&w);
	return 0;
}
