/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_pf.h"

/*
 * Largest number of page faults that the kernel has not fetched, and of those that it has not
 * answered. Linux's event queue for page faults has 4096 entries (MLX5_IB_NUM_PF_EQE), so it never
 * overflows. Requests with further page faults wait until the kernel has answered some.
 */
#define QUEUE       256u
#define MAX_PENDING 1024u

/*
 * A token has 24 bits, which the kernel repeats without a look at them: the QP's number, and after
 * it the QP's epoch. So an answer that comes after the QP has lost its requests does not apply to
 * the page fault of a later request.
 */
#define EPOCHS (1u << (24 - SOFT_LOG_MAX_QP))

struct soft_pf_queue {
	rte_ticketlock_t lock;
	uint32_t head, n;
	uint32_t pending; /* QPs' page faults in state SOFT_PF_PENDING */
	struct soft_page_fault at[QUEUE];
	/* Per QP number: how often a QP has lost page faults, modulo EPOCHS. */
	uint8_t epoch[1u << SOFT_LOG_MAX_QP];
};

struct soft_pf_queue *
soft_pf_queue_make(void)
{
	return calloc(1, sizeof(struct soft_pf_queue));
}

static struct soft_pf *
fault_of(struct soft_qp *qp, uint8_t type)
{
	return &qp->fault[(type & SOFT_PF_REQUESTER) != 0 ? 0 : 1];
}

bool
soft_pf_wait(struct soft_qp *qp, struct soft_page_fault *fault)
{
	struct soft_pf_queue *q = qp->dev->faults;
	struct soft_pf *pf = fault_of(qp, fault->type);
	uint8_t state;

	rte_ticketlock_lock(&q->lock);
	state = pf->state;
	if (state == SOFT_PF_FAILED)
		pf->state = SOFT_PF_NONE;
	if (state == SOFT_PF_NONE && q->n < QUEUE && q->pending < MAX_PENDING) {
		pf->state = SOFT_PF_PENDING;
		pf->type = fault->type;
		q->pending++;
		fault->token = (uint32_t)q->epoch[qp->qpn] << SOFT_LOG_MAX_QP | qp->qpn;
		q->at[(q->head + q->n++) % QUEUE] = *fault;
	}
	rte_ticketlock_unlock(&q->lock);
	return state != SOFT_PF_FAILED;
}

static void
set(struct soft_pf_queue *q, struct soft_pf *pf, enum soft_pf_state state)
{
	if (pf->state == SOFT_PF_PENDING)
		q->pending--;
	pf->state = (uint8_t)state;
}

void
soft_pf_forget(struct soft_qp *qp)
{
	struct soft_pf_queue *q = qp->dev->faults;
	uint32_t i, left = 0;

	rte_ticketlock_lock(&q->lock);
	for (i = 0; i < q->n; i++) {
		const struct soft_page_fault *fault = &q->at[(q->head + i) % QUEUE];

		if (soft_pf_qpn(fault->token) != qp->qpn)
			q->at[(q->head + left++) % QUEUE] = *fault;
	}
	q->n = left;
	if (qp->fault[0].state != SOFT_PF_NONE || qp->fault[1].state != SOFT_PF_NONE)
		q->epoch[qp->qpn] = (uint8_t)((q->epoch[qp->qpn] + 1) % EPOCHS);
	set(q, &qp->fault[0], SOFT_PF_NONE);
	set(q, &qp->fault[1], SOFT_PF_NONE);
	rte_ticketlock_unlock(&q->lock);
}

uint32_t
soft_pf_qpn(uint32_t token)
{
	return token & ((1u << SOFT_LOG_MAX_QP) - 1);
}

bool
soft_pf_resume(struct soft_qp *qp, uint32_t token, uint8_t type, bool error)
{
	struct soft_pf_queue *q = qp->dev->faults;
	struct soft_pf *pf = fault_of(qp, type);
	uint32_t late; /* number of times that the QP has lost page faults since this one */
	bool found;

	rte_ticketlock_lock(&q->lock);
	late = (q->epoch[qp->qpn] - (token >> SOFT_LOG_MAX_QP)) % EPOCHS;
	found = late == 0 && pf->state == SOFT_PF_PENDING && pf->type == type;
	if (found)
		set(q, pf, error ? SOFT_PF_FAILED : SOFT_PF_NONE);
	rte_ticketlock_unlock(&q->lock);
	return found || (late > 0 && late < EPOCHS / 2);
}

bool
soft_page_fault_get(struct mlx5_ctx *ctx, struct soft_page_fault *fault)
{
	struct soft_pf_queue *q = soft_ctx(ctx)->dev->faults;
	bool found;

	rte_ticketlock_lock(&q->lock);
	found = q->n != 0;
	if (found) {
		*fault = q->at[q->head];
		q->head = (q->head + 1) % QUEUE;
		q->n--;
	}
	rte_ticketlock_unlock(&q->lock);
	return found;
}
