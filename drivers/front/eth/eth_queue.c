/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of SQs and RQs: CREATE, MODIFY, QUERY. */
#include <stdlib.h>
#include <string.h>

#include "eth.h"

#define FRONT_SYNDROME 0xbbe10000u

#define NUMBER       BB_PRM_F(0x008, 8, 24)
#define LOG_PAGE     12u
#define MAX_LOG_PAGE 24u
#define RECORD       8u /* bytes of a doorbell record */

/*
 * Checks the ring that a mailbox describes, and makes the queue. Returns NULL after refusing the
 * command.
 */
static struct eth_queue *
make(struct front_cmd *cmd, const uint8_t *wq, bool sq)
{
	uint32_t log_size = bb_prm_get(wq, BB_PRM_WQ_LOG_SZ);
	uint32_t log_stride = bb_prm_get(wq, BB_PRM_WQ_LOG_STRIDE), n, i;
	uint32_t log_page = LOG_PAGE + bb_prm_get(wq, BB_PRM_WQ_LOG_PG_SZ);
	const uint8_t *list = wq + BB_PRM_WQ_PAS;
	uint64_t dbr = bb_prm_get64(wq, BB_PRM_WQ_DBR_ADDR), bytes;
	struct eth_queue *q;

	/* Striding RQs, umems, and rings that do not begin at a page are not supported. */
	if (bb_prm_get(wq, BB_PRM_WQ_TYPE) != BB_PRM_WQ_TYPE_CYCLIC ||
	    bb_prm_get(wq, BB_PRM_WQ_UMEM_VALID) || bb_prm_get(wq, BB_PRM_WQ_DBR_UMEM_VALID) ||
	    bb_prm_get(wq, BB_PRM_WQ_PAGE_OFFSET) != 0) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return NULL;
	}
	if (log_size > ETH_LOG_MAX_WQ || log_page > MAX_LOG_PAGE || dbr % RECORD != 0 ||
	    (sq ? log_stride != 6 : log_stride < 4 || log_stride > ETH_LOG_MAX_STRIDE)) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return NULL;
	}
	bytes = UINT64_C(1) << (log_size + log_stride);
	n = (uint32_t)((bytes + (UINT64_C(1) << log_page) - 1) >> log_page);
	if (n > (cmd->inlen - (uint32_t)(list - cmd->in)) / 8) {
		FRONT_REFUSE(cmd, BAD_INP_LEN);
		return NULL;
	}
	if (n > ETH_MAX_PAGES - cmd->f->eth->n_pages) {
		FRONT_REFUSE(cmd, LIM_ERR);
		return NULL;
	}
	q = calloc(1, sizeof(*q) + n * sizeof(q->pages[0]));
	if (q == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return NULL;
	}
	q->eth = cmd->f->eth;
	q->log_size = log_size;
	q->log_stride = log_stride;
	q->log_page = log_page;
	q->dbr = dbr;
	q->pdn = bb_prm_get(wq, BB_PRM_WQ_PD);
	q->uar = bb_prm_get(wq, BB_PRM_WQ_UAR_PAGE);
	q->n_pages = n;
	for (i = 0; i < n; i++)
		q->pages[i] = bb_prm_get64(list + i * 8, BB_PRM_F(0, 0, 64)) &
			      ~((UINT64_C(1) << LOG_PAGE) - 1);
	return q;
}

static void
fini(struct front_obj *o)
{
	struct eth_queue *q = o->eth;

	eth_sq_dequeue(q);
	eth_release(q->cq);
	eth_release(q->tis);
	q->eth->n_pages -= q->n_pages;
	free(q);
}

/*
 * Finds the CQ of an SQ or RQ, and the TIS and the register page of an SQ. Returns false after
 * refusing the command.
 */
static bool
find_others(struct front_cmd *cmd, const uint8_t *ctx, struct eth_queue *q, bool sq)
{
	struct front_obj *tis = NULL;

	/* The CQ number has the same position in the contexts of SQ and RQ. */
	q->cq = eth_named(cmd, FRONT_CQ, bb_prm_get(ctx, BB_PRM_SQC_CQN));
	if (q->cq == NULL)
		return false;
	/*
	 * mlx5e's drop RQ, which has no WQEs, names PD 0. So the PD of an RQ is not checked here,
	 * only at its use.
	 */
	if (sq) {
		if (eth_named(cmd, FRONT_PD, q->pdn) == NULL)
			return false;
		if (bb_prm_get(ctx, BB_PRM_SQC_TIS_LST_SZ) > 1) {
			FRONT_REFUSE(cmd, BAD_PARAM);
			return false;
		}
		if (eth_named(cmd, FRONT_UAR, q->uar) == NULL)
			return false;
		if (bb_prm_get(ctx, BB_PRM_SQC_TIS_LST_SZ) == 1) {
			tis = eth_named(cmd, FRONT_TIS, bb_prm_get(ctx, BB_PRM_SQC_TIS_NUM_0));
			if (tis == NULL)
				return false;
		}
	} else if (bb_prm_get(ctx, BB_PRM_RQC_MEM_RQ_TYPE) != 0) {
		FRONT_REFUSE(cmd, BAD_PARAM); /* an RQ with an RMP is not supported */
		return false;
	}
	/* Hairpin and state have the same positions in the contexts of SQ and RQ. */
	if (bb_prm_get(ctx, BB_PRM_SQC_HAIRPIN) || bb_prm_get(ctx, BB_PRM_SQC_STATE) != ETH_RST) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return false;
	}
	(void)eth_hold(q->cq);
	q->tis = tis != NULL ? eth_hold(tis) : NULL;
	return true;
}

/* Returns a number that neither an SQ nor an RQ has. Numbers are reused as late as possible. */
static uint32_t
free_number(struct front *f)
{
	uint32_t *next = &f->eth->next_queue, id;

	do {
		id = ETH_FIRST_QUEUE + (*next)++ % (ETH_MAX_QUEUE - ETH_FIRST_QUEUE);
	} while (front_obj_find(f, FRONT_SQ, id) != NULL ||
		 front_obj_find(f, FRONT_RQ, id) != NULL);
	return id;
}

void
eth_create_queue(struct front_cmd *cmd)
{
	bool sq = cmd->op == BB_PRM_OP_CREATE_SQ;
	const uint8_t *ctx = bb_prm_csub(cmd->in, BB_PRM_CREATE_SQ_CTX);
	struct eth_queue *q = make(cmd, bb_prm_csub(ctx, BB_PRM_SQC_WQ), sq);
	struct front_obj *o;

	if (q == NULL)
		return;
	if (!find_others(cmd, ctx, q, sq)) {
		free(q);
		return;
	}
	o = eth_new(cmd, sq ? FRONT_SQ : FRONT_RQ);
	if (o == NULL) {
		eth_release(q->cq);
		eth_release(q->tis);
		free(q);
		return;
	}
	q->eth->n_pages += q->n_pages;
	q->number = free_number(cmd->f);
	q->user_index = bb_prm_get(ctx, BB_PRM_SQC_USER_INDEX);
	memcpy(q->ctx, ctx, sizeof(q->ctx));
	o->eth = q;
	o->fini = fini;
	front_obj_publish(cmd->f, o, q->number);
	bb_prm_set(cmd->out, NUMBER, q->number);
}

/* Returns the queue of a command, or refuses the command and returns NULL. */
static struct eth_queue *
queue_of(struct front_cmd *cmd)
{
	bool sq = cmd->op == BB_PRM_OP_MODIFY_SQ || cmd->op == BB_PRM_OP_QUERY_SQ;
	struct front_obj *o = eth_named(cmd, sq ? FRONT_SQ : FRONT_RQ, bb_prm_get(cmd->in, NUMBER));

	return o != NULL ? o->eth : NULL;
}

/*
 * Executes MODIFY_SQ and MODIFY_RQ, which change the state of a queue. Rejects a wrong current
 * state, an unknown new state, and the change from ERR to RDY. Accepts every other change. Linux
 * moves a queue from ERR to RST before RDY (en/reporter_tx.c). An SQ that goes from RDY to ERR
 * flushes its WQEs, as a QP does [A].
 */
void
eth_modify_queue(struct front_cmd *cmd)
{
	struct eth_queue *q = queue_of(cmd);
	const uint8_t *ctx = bb_prm_csub(cmd->in, BB_PRM_MODIFY_SQ_CTX);
	uint32_t from = bb_prm_get(cmd->in, BB_PRM_MODIFY_SQ_STATE);
	uint32_t to = bb_prm_get(ctx, BB_PRM_SQC_STATE);

	if (q == NULL)
		return;
	if (from != q->state || (to != ETH_RST && to != ETH_RDY && to != ETH_ERR) ||
	    (from == ETH_ERR && to == ETH_RDY)) {
		FRONT_REFUSE(cmd, BAD_RES_STATE);
		return;
	}
	if (to == ETH_RST) {
		q->ci = 0;
		q->segment = 0;
		eth_sq_dequeue(
			q); /* the doorbell record has its old value until the next doorbell */
	}
	q->state = to;
	if (from == ETH_RDY && to == ETH_ERR && cmd->op == BB_PRM_OP_MODIFY_SQ)
		eth_sq_run(q, NULL, 0);
}

void
eth_query_queue(struct front_cmd *cmd)
{
	struct eth_queue *q = queue_of(cmd);
	uint8_t *ctx = bb_prm_sub(cmd->out, BB_PRM_QUERY_SQ_CTX);

	if (q == NULL)
		return;
	memcpy(ctx, q->ctx, sizeof(q->ctx));
	bb_prm_set(ctx, BB_PRM_SQC_STATE, q->state);
	bb_prm_set(bb_prm_sub(ctx, BB_PRM_SQC_WQ), BB_PRM_WQ_HW_COUNTER, q->ci);
}
