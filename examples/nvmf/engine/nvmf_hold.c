/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory of controllers that have ended, until the requests of their queues have ended, too. */
#include <stdlib.h>

#include "nvmf_priv.h"

void
nvmf_ctrl_hold(struct nvmf_queue *q, struct nvmf_ctrl *c)
{
	q->held = c;
	c->held++;
}

void
nvmf_ctrl_unhold(struct nvmf_queue *q)
{
	struct nvmf_ctrl *c = q->held, **at;

	q->held = NULL;
	if (c == NULL || --c->held != 0 || !c->ended)
		return;
	for (at = &c->target->ended; *at != c; at = &(*at)->next_ended)
		;
	*at = c->next_ended;
	free(c);
}

void
nvmf_ctrl_unhold_idle(struct nvmf_queue *q)
{
	/*
	 * A queue without requests (depth 0) stands for one whose requests another thread executes.
	 */
	if (q->depth != 0 && q->in_ns == 0 && (q->closed || q->ended))
		nvmf_ctrl_unhold(q);
}
