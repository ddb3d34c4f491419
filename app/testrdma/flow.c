/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Sets how many operations each flow of a test may post, and counts the completed operations. */
#include "testrdma.h"

uint64_t
flows_done(const struct tester *t)
{
	uint64_t ops = 0;
	uint32_t i;

	for (i = 0; i < t->nflows; i++)
		if (!t->test->e->ping_pong || !t->flows[i]->reverse)
			ops += t->flows[i]->done;
	return ops;
}

void
flow_open(struct pair *p, uint64_t end)
{
	p->end = end;
	p->last_sig = p->posted;
	p->sig_at = RTE_MIN(p->posted + p->t->test->signal_every, p->end);
}

void
flow_extend(struct pair *p, uint64_t end)
{
	if (p->posted == p->end)
		flow_open(p, end);
	else
		p->end = end;
}
