/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of TIS (transport interface send), TIR (receive) and RQT (receive queue table). */
#include <stdlib.h>
#include <string.h>

#include "eth.h"

#define FRONT_SYNDROME 0xbbe20000u

#define NUMBER        BB_PRM_F(0x008, 8, 24)
#define DISP_DIRECT   0u /* Linux mlx5_ifc.h: MLX5_TIRC_DISP_TYPE_DIRECT, _INDIRECT */
#define DISP_INDIRECT 1u
#define RQ_NUMBER     BB_PRM_F(0, 8, 24)

/* Makes an object with @eth, which @fini frees. Frees @eth if it fails. */
static void
add(struct front_cmd *cmd, enum front_kind kind, void *eth, void (*fini)(struct front_obj *o))
{
	struct front_obj *o = eth_new(cmd, kind);
	struct front_obj gone = {.eth = eth};

	if (o == NULL) {
		if (fini != NULL)
			fini(&gone);
		return;
	}
	o->eth = eth;
	o->fini = fini;
	eth_publish(cmd, o);
}

void
eth_create_tis(struct front_cmd *cmd)
{
	add(cmd, FRONT_TIS, NULL, NULL);
}

static void
tir_fini(struct front_obj *o)
{
	struct eth_tir *t = o->eth;

	eth_release(t->to);
	free(t);
}

void
eth_create_tir(struct front_cmd *cmd)
{
	const uint8_t *ctx = bb_prm_csub(cmd->in, BB_PRM_CREATE_TIR_CTX);
	uint32_t type = bb_prm_get(ctx, BB_PRM_TIRC_DISP_TYPE);
	struct front_obj *to;
	struct eth_tir *t;

	if (type > DISP_INDIRECT || bb_prm_get(ctx, BB_PRM_TIRC_PACKET_MERGE) != 0) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return;
	}
	to = type == DISP_DIRECT
		     ? eth_named(cmd, FRONT_RQ, bb_prm_get(ctx, BB_PRM_TIRC_INLINE_RQN))
		     : eth_named(cmd, FRONT_RQT, bb_prm_get(ctx, BB_PRM_TIRC_INDIRECT_TABLE));
	if (to == NULL)
		return;
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	t->to = eth_hold(to);
	add(cmd, FRONT_TIR, t, tir_fini);
}

static void
rqt_clear(struct eth_rqt *r)
{
	while (r->n > 0)
		eth_release(r->rqs[--r->n]);
}

static void
rqt_fini(struct front_obj *o)
{
	rqt_clear(o->eth);
	free(o->eth);
}

/* Reads the RQs of an RQT's context. Returns false after refusing the command. */
static bool
read_rqs(struct front_cmd *cmd, struct bb_prm_field at, struct eth_rqt *r)
{
	const uint8_t *ctx = bb_prm_csub(cmd->in, at);
	uint32_t n = bb_prm_get(ctx, BB_PRM_RQTC_RQT_ACTUAL_SIZE);
	const uint8_t *list = ctx + BB_PRM_RQTC_RQ_NUM;

	r->n = 0;
	if (n == 0 || n > 1u << ETH_LOG_MAX_RQT) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return false;
	}
	if (n > (cmd->inlen - (uint32_t)(list - cmd->in)) / 4) {
		FRONT_REFUSE(cmd, BAD_INP_LEN);
		return false;
	}
	while (r->n < n) {
		struct front_obj *rq =
			eth_named(cmd, FRONT_RQ, bb_prm_get(list + r->n * 4, RQ_NUMBER));

		if (rq == NULL) {
			rqt_clear(r);
			return false;
		}
		r->rqs[r->n++] = eth_hold(rq);
	}
	return true;
}

void
eth_create_rqt(struct front_cmd *cmd)
{
	struct eth_rqt *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	if (read_rqs(cmd, BB_PRM_CREATE_RQT_CTX, r))
		add(cmd, FRONT_RQT, r, rqt_fini);
	else
		free(r);
}

void
eth_modify_rqt(struct front_cmd *cmd)
{
	struct front_obj *o = eth_named(cmd, FRONT_RQT, bb_prm_get(cmd->in, NUMBER));
	struct eth_rqt next;

	if (o == NULL || !read_rqs(cmd, BB_PRM_MODIFY_RQT_CTX, &next))
		return;
	rqt_clear(o->eth);
	memcpy(o->eth, &next, sizeof(next));
}
