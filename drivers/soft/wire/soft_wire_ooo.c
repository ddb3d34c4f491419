/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies of out-of-order packets that wait for a lost packet. The engine copies such packets, so
 * that it does not hold memory of the link, a PMD or a peer for a long time. Without loss there are
 * no copies.
 *
 * The number of copies per engine is limited. A lost packet is normally sent again soon, unless the
 * peer has died or is hostile. So at the limit, the queue pair that has waited longest drops its
 * copies if it has waited for LONG_NS. Other queue pairs keep their copies, because they will
 * probably need them soon.
 */
#include <stdlib.h>

#include "soft_wire.h"

#define LONG_NS UINT64_C(100000000)

/*
 * Counts one more packet of a queue pair that arrived out of order and is stored. If the responder
 * has made progress since the last stored packet, moves the queue pair to the end of the list
 * soft_engine.storing.
 */
static void
soft_wire_count_stored(struct soft_engine *e, struct soft_wire *w)
{
	const uint32_t epsn = w->roce.resp.epsn;

	e->n_stored_packets++;
	if (w->n_stored++ != 0) {
		if (w->missing_psn == epsn)
			return;
		TAILQ_REMOVE(&e->storing, w, storing_link);
	}
	TAILQ_INSERT_TAIL(&e->storing, w, storing_link);
	w->missing_psn = epsn;
	w->wait_start = soft_engine_ns(e);
}

static bool
soft_wire_ooo_room(struct soft_engine *e)
{
	struct soft_wire *w = TAILQ_FIRST(&e->storing);

	if (likely(e->n_stored_packets < SOFT_WIRE_QUEUE))
		return true;
	if (w == NULL || soft_engine_ns(e) - w->wait_start < LONG_NS)
		return false;
	bb_roce_ooo_drop(&w->roce);
	return e->n_stored_packets < SOFT_WIRE_QUEUE;
}

struct bb_roce_pkt *
soft_wire_ooo_store(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_pkt *pkt)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	struct bb_roce_pkt *copy;

	(void)ctx;
	/*
	 * The limit applies to all queue pairs of the engine together. So a peer that sends only
	 * out-of-order packets cannot fill the memory.
	 */
	if (!soft_wire_ooo_room(e))
		return NULL;
	copy = malloc(sizeof(*copy) + pkt->len);
	if (copy == NULL)
		return NULL;
	*copy = *pkt;
	copy->payload = (const uint8_t *)(copy + 1);
	if (pkt->len != 0)
		memcpy(copy + 1, pkt->payload, pkt->len);
	soft_wire_count_stored(e, w);
	return copy;
}

void
soft_wire_ooo_release(void *ctx, struct bb_roce_qp *roce, struct bb_roce_pkt *pkt)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;

	(void)ctx;
	e->n_stored_packets--;
	if (--w->n_stored == 0)
		TAILQ_REMOVE(&e->storing, w, storing_link);
	free(pkt);
}
