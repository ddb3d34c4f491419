/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Helpers of the tests of the software device's control path: a device with memory, and valid
 * mailboxes that a test spoils one field at a time.
 */
#ifndef SOFT_CTL_ENV_H
#define SOFT_CTL_ENV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fopencookie() */
#endif

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_mem.h"
#include "bb_test_on.h"
#include "soft_ctl.h"

#define ENV_BYTES  (64 * 1024) /* bytes of the umem */
#define ENV_CQ_AT  0
#define ENV_CQ_LOG 4 /* CQEs */
#define ENV_QP_AT  8192
#define ENV_RQ_LOG 3 /* WQEs of 64 bytes */
#define ENV_SQ_LOG 4 /* blocks */
#define ENV_CQ_DB  16384
#define ENV_QP_DB  (16384 + 64)
#define ENV_QPC    SOFT_QPC_AT
#define ENV_ADS    SOFT_ADS_AT
#define ENV_CQC    0x10

struct env {
	struct mlx5_ctx *ctx;
	struct soft_dev *dev;
	struct mlx5_pd *pd;
	struct mlx5_uar *uar;
	struct mlx5_umem *umem, *ro_umem;
	uint8_t *mem;
	struct mlx5_obj *cq;
	uint32_t cqn;
	struct mlx5_obj *qp;
	uint32_t qpn;
	FILE *log;
	size_t log_len;
	char log_text[8192];
};

/* One field of a mailbox: field, base of its structure, value. */
struct edit {
	struct bb_prm_field f;
	uint16_t base;
	uint64_t value;
};

static inline void
env_set(uint8_t *in, struct edit e)
{
	if (e.f.width == 64)
		bb_prm_set64(in + e.base, e.f, e.value);
	else
		bb_prm_set(in + e.base, e.f, (uint32_t)e.value);
}

static inline void
env_op(uint8_t *in, uint16_t op)
{
	bb_prm_set(in, BB_PRM_CMD_OPCODE, op);
}

static inline ssize_t
env_log_write(void *cookie, const char *text, size_t len)
{
	struct env *env = cookie;
	size_t n = RTE_MIN(len, sizeof(env->log_text) - 1 - env->log_len);

	memcpy(env->log_text + env->log_len, text, n);
	env->log_len += n;
	env->log_text[env->log_len] = '\0';
	return (ssize_t)len;
}

static inline void
env_log_open(struct env *env)
{
	env->log = fopencookie(env, "w", (cookie_io_functions_t){.write = env_log_write});
	assert_non_null(env->log);
	setvbuf(env->log, NULL, _IONBF, 0);
	rte_openlog_stream(env->log);
}

/* Returns the log since the last call. The text is valid until the log grows. */
static inline const char *
env_log(struct env *env)
{
	if (env->log_len == 0)
		env->log_text[0] = '\0';
	env->log_len = 0;
	return env->log_text;
}

static inline void
env_log_close(struct env *env)
{
	rte_openlog_stream(NULL);
	fclose(env->log);
}

/* Fills a CREATE_CQ that the device accepts. */
static inline void
env_cq_in(const struct env *env, uint8_t in[BB_PRM_SZ_CREATE_CQ_IN])
{
	uint8_t *cqc = in + ENV_CQC;
	uint32_t eqn;

	memset(in, 0, BB_PRM_SZ_CREATE_CQ_IN);
	env_op(in, BB_PRM_OP_CREATE_CQ);
	OK(soft_cmd_if.query_eqn(env->ctx, 0, &eqn));
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, ENV_CQ_LOG);
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, env->uar->page_id);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, env->umem->id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, ENV_CQ_DB);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ENV_CQ_AT);
}

/* Fills a CREATE_QP that the device accepts. */
static inline void
env_qp_in(const struct env *env, uint8_t in[BB_PRM_SZ_CREATE_QP_IN])
{
	uint8_t *qpc = in + ENV_QPC;

	memset(in, 0, BB_PRM_SZ_CREATE_QP_IN);
	env_op(in, BB_PRM_OP_CREATE_QP);
	bb_prm_set(qpc, BB_PRM_QPC_ST, BB_PRM_QP_ST_RC);
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, env->pd->pdn);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, ENV_RQ_LOG);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_STRIDE, 2);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, ENV_SQ_LOG);
	bb_prm_set(qpc, BB_PRM_QPC_UAR_PAGE, env->uar->page_id);
	bb_prm_set(qpc, BB_PRM_QPC_USER_INDEX, 0xabcdef);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, env->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, env->cqn);
	bb_prm_set(qpc, BB_PRM_QPC_DBR_UMEM_ID, env->umem->id);
	bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, ENV_QP_DB);
	bb_prm_set(in, BB_PRM_CREATE_QP_WQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET, ENV_QP_AT);
}

/* Fills a transition of @qpn that the device accepts; the peer is the device itself. */
static inline void
env_modify_in(const struct env *env, uint16_t op, uint32_t qpn, uint8_t in[BB_PRM_SZ_MODIFY_QP_IN])
{
	uint8_t *qpc = in + ENV_QPC, *ads = in + ENV_ADS;
	const uint8_t *mac = env->dev->mac;

	memset(in, 0, BB_PRM_SZ_MODIFY_QP_IN);
	env_op(in, op);
	bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, qpn);
	if (op == BB_PRM_OP_RST2INIT_QP) {
		bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
		bb_prm_set(qpc, BB_PRM_QPC_RWE, 1);
		bb_prm_set(ads, BB_PRM_ADS_VHCA_PORT_NUM, 1);
	} else if (op == BB_PRM_OP_INIT2RTR_QP) {
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 3);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 30);
		bb_prm_set(qpc, BB_PRM_QPC_REMOTE_QPN, qpn);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_RRA_MAX, 4);
		bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, 13);
		bb_prm_set(qpc, BB_PRM_QPC_NEXT_RCV_PSN, 0x123456);
		if (env->dev->opts.link_ib) {
			bb_prm_set(ads, BB_PRM_ADS_RLID, env->dev->lid);
			bb_prm_set(ads, BB_PRM_ADS_GRH, env->dev->opts.grh_required);
			if (env->dev->opts.grh_required)
				memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), env->dev->gids[0].raw,
				       16);
			return;
		}
		bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, 3);
		bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, 64);
		bb_prm_set(ads, BB_PRM_ADS_UDP_SPORT, 0xc001);
		bb_prm_set(ads, BB_PRM_ADS_RMAC_47_32, (uint32_t)mac[0] << 8 | mac[1]);
		bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0, bb_prm_dword(mac, 2));
		memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), env->dev->gids[3].raw, 16);
	} else if (op == BB_PRM_OP_RTR2RTS_QP) {
		bb_prm_set(qpc, BB_PRM_QPC_LOG_SRA_MAX, 4);
		bb_prm_set(qpc, BB_PRM_QPC_RETRY_COUNT, 7);
		bb_prm_set(qpc, BB_PRM_QPC_RNR_RETRY, 6);
		bb_prm_set(qpc, BB_PRM_QPC_NEXT_SEND_PSN, 0x123456);
		bb_prm_set(ads, BB_PRM_ADS_ACK_TIMEOUT, 14);
	}
}

static inline size_t
env_modify_len(uint16_t op)
{
	return op == BB_PRM_OP_2ERR_QP || op == BB_PRM_OP_2RST_QP ? BB_PRM_SZ_SHORT
								  : BB_PRM_SZ_MODIFY_QP_IN;
}

/* Executes one legal transition. */
static inline int
env_modify(const struct env *env, struct mlx5_obj *qp, uint32_t qpn, uint16_t op)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_SHORT];

	env_modify_in(env, op, qpn, in);
	return soft_cmd_if.obj_modify(qp, in, env_modify_len(op), out, sizeof(out));
}

/* Moves a new QP to @state by legal transitions. */
static inline void
env_qp_to(struct env *env, uint32_t state)
{
	static const uint16_t ops[] = {BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,
				       BB_PRM_OP_RTR2RTS_QP};
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	uint32_t i;

	env_qp_in(env, in);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &env->qp));
	env->qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	for (i = 0; i < 3 && i < state; i++)
		assert_int_equal(env_modify(env, env->qp, env->qpn, ops[i]), 0);
	if (state == BB_PRM_QP_ERR)
		assert_int_equal(env_modify(env, env->qp, env->qpn, BB_PRM_OP_2ERR_QP), 0);
}

static inline void
env_qp_gone(struct env *env)
{
	OK(soft_cmd_if.obj_destroy(env->qp));
	env->qp = NULL;
}

static inline void
env_open(struct env *env, const char *args)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];

	memset(env, 0, sizeof(*env));
	env_log_open(env);
	OK(soft_cmd_if.open("soft0", args, &env->ctx));
	env->dev = soft_ctx(env->ctx)->dev;
	OK(soft_cmd_if.pd_alloc(env->ctx, &env->pd));
	OK(soft_cmd_if.uar_alloc(env->ctx, MLX5_UAR_NC, &env->uar));
	env->mem = aligned_alloc(ENV_BYTES, ENV_BYTES);
	assert_non_null(env->mem);
	memset(env->mem, 0, ENV_BYTES);
	OK(soft_cmd_if.umem_reg(env->ctx, env->mem, ENV_BYTES, BB_ACCESS_LOCAL_WRITE, 4096,
				&env->umem));
	OK(soft_cmd_if.umem_reg(env->ctx, env->mem, ENV_BYTES, 0, 4096, &env->ro_umem));
	env_cq_in(env, in);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &env->cq));
	env->cqn = bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN);
	/* Discards the log of the open, which names features that the kernel lacks. */
	(void)env_log(env);
}

static inline void
env_close(struct env *env)
{
	if (env->qp != NULL)
		env_qp_gone(env);
	OK(soft_cmd_if.obj_destroy(env->cq));
	OK(soft_cmd_if.umem_dereg(env->ctx, env->umem));
	OK(soft_cmd_if.umem_dereg(env->ctx, env->ro_umem));
	OK(soft_cmd_if.uar_free(env->ctx, env->uar));
	OK(soft_cmd_if.pd_free(env->ctx, env->pd));
	OK(soft_cmd_if.close(env->ctx));
	free(env->mem);
	env_log_close(env);
}

static inline int
env_setup(void **state)
{
	struct env *env = malloc(sizeof(*env));

	assert_non_null(env);
	env_open(env, NULL);
	*state = env;
	return 0;
}

static inline int
env_teardown(void **state)
{
	env_close(*state);
	free(*state);
	return 0;
}

/* A test of a device without options; env is the struct env. */
#define T(name) TEST_AS(env_setup, env_teardown, NULL, struct env, env, name)

/* Counts of objects and references that a refused command must not change. */
struct census {
	uint32_t objs, umems, uars, pds, mrs;
	uint32_t umem_refs, uar_refs, pd_qps, cq_refs;
};

static inline struct census
env_census(const struct env *env)
{
	const struct soft_ctx *ctx = soft_ctx(env->ctx);

	return (struct census){
		.objs = ctx->objs,
		.umems = ctx->umems,
		.uars = ctx->uars,
		.pds = ctx->pds,
		.mrs = ctx->mrs,
		.umem_refs = ((struct soft_umem *)env->umem)->refs,
		.uar_refs = ((struct soft_uar *)env->uar)->page->refs,
		.pd_qps = ((struct soft_pd *)env->pd)->qps,
		.cq_refs = env->dev->cqs[env->cqn]->refs,
	};
}

/* Checks a refusal: errno, status, a syndrome, and one log line that names the command. */
static inline void
env_refused(struct env *env, const char *what, int ret, const uint8_t *out, uint32_t status,
	    const char *command)
{
	const char *log = env_log(env), *first = strstr(log, "soft: ");

	if (ret != -EREMOTEIO || bb_prm_get(out, BB_PRM_CMD_STATUS) != status ||
	    bb_prm_get(out, BB_PRM_CMD_SYNDROME) == 0)
		fail_msg("%s: ret %d, status 0x%02x, not 0x%02x; log: %s", what, ret,
			 bb_prm_get(out, BB_PRM_CMD_STATUS), status, log);
	if (first == NULL || strstr(first + 1, "soft: ") != NULL || strstr(log, command) == NULL)
		fail_msg("%s: not one line about %s in the log: %s", what, command, log);
}

static inline void
env_same(const char *what, struct census a, struct census b)
{
	if (memcmp(&a, &b, sizeof(a)) != 0)
		fail_msg("%s: something was left behind or taken", what);
}

#endif
