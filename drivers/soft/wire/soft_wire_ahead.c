/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies of packets that wait for one that was lost: the link's own memory, a PMD's or a
 * peer's, is not held for them. There are none where nothing is lost.
 *
 * There is room for so many of an engine. One that is lost comes again soon, unless the peer has
 * died, or means harm. So when there is no more room, who has waited for long gives back what it
 * has; not others, each of which would take from the next one what is needed in a moment.
 */
#include <stdlib.h>

#include "soft_wire.h"

#define LONG_NS UINT64_C(100000000)

/* It keeps one more. */
static void
soft_wire_keeps(struct soft_engine *e, struct soft_wire *w)
{
	const uint32_t epsn = w->roce.resp.epsn;

	e->kept_packets++;
	if (w->kept++ != 0) {
		if (w->kept_epsn == epsn)
			return;
		TAILQ_REMOVE(&e->keepers, w, keeper);
	}
	TAILQ_INSERT_TAIL(&e->keepers, w, keeper);
	w->kept_epsn = epsn;
	w->kept_since = soft_engine_ns(e);
}

static bool
soft_wire_ahead_room(struct soft_engine *e)
{
	struct soft_wire *w = TAILQ_FIRST(&e->keepers);

	if (likely(e->kept_packets < SOFT_WIRE_QUEUE))
		return true;
	if (w == NULL || soft_engine_ns(e) - w->kept_since < LONG_NS)
		return false;
	bb_roce_ahead_drop(&w->roce);
	return e->kept_packets < SOFT_WIRE_QUEUE;
}

struct bb_roce_pkt *
soft_wire_ahead_keep(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	struct bb_roce_pkt *copy;

	(void)ctx;
	/* Of all its queue pairs: a peer that sends nothing but what is ahead fills no memory. */
	if (!soft_wire_ahead_room(e))
		return NULL;
	copy = malloc(sizeof(*copy) + pkt->len);
	if (copy == NULL)
		return NULL;
	*copy = *pkt;
	copy->payload = (const uint8_t *)(copy + 1);
	if (pkt->len != 0)
		memcpy(copy + 1, pkt->payload, pkt->len);
	soft_wire_keeps(e, w);
	return copy;
}

void
soft_wire_ahead_drop(void *ctx, struct bb_roce_qp *roce, struct bb_roce_pkt *pkt)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;

	(void)ctx;
	e->kept_packets--;
	if (--w->kept == 0)
		TAILQ_REMOVE(&e->keepers, w, keeper);
	free(pkt);
}
