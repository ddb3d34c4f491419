/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Work of the transport in each turn of the loop, and the sleep of an lcore without work. */
#include <rte_cycles.h>

#include "nvmf_rdma.h"

/*
 * Interval between calls of tick(), and longest sleep. Only completions end a sleep early. Messages
 * of the CM and of other lcores, telemetry commands and signals wait for its end.
 */
#define TICK_MS 10

/* Passes the time to the engine, and disconnects hosts that have sent no Connect command. */
static void
tick(struct nvmf_rdma *r, uint64_t now)
{
	uint64_t ms = rte_get_tsc_hz() / 1000;
	uint32_t i;

	r->tick = now + ms * TICK_MS;
	nvmf_rdma_activity(r);
	nvmf_target_time(r->target, now / ms);
	for (i = 0; i < r->attr.conns; i++) {
		struct nvmf_conn *c = &r->conn[i];

		if (c->conn != NULL && c->queue->ctrl == NULL &&
		    nvmf_timer_expired(r->target, &c->connect))
			nvmf_rdma_drop(c, "no Connect command came in time");
	}
}

/* Disconnects a host whose controller has ended. */
static void
ended(struct nvmf_conn *c)
{
	nvmf_rdma_drop(c, c->closed_by_host ? NULL : "its controller has ended");
}

/*
 * Ends the connections that were dropped. Does not wait for the peer, which may be dead: the engine
 * must know at once that these queues are closed, because their host may connect again.
 */
static void
end_dropped(struct nvmf_rdma *r)
{
	uint32_t i;

	r->has_ending = false;
	for (i = 0; i < r->attr.conns; i++)
		if (r->conn[i].ending && r->conn[i].conn != NULL)
			nvmf_rdma_end_conn(&r->conn[i]);
}

static void
ring(struct nvmf_rdma *r)
{
	struct nvmf_conn *c, *next;

	for (c = r->to_ring; c != NULL; c = next) {
		next = c->next_to_ring;
		nvmf_rdma_post_responses(c);
		c->listed = false;
		if (c->ring_recv)
			bb_qp_ring_recv(c->qp);
		if (c->ring_send)
			bb_qp_ring(c->qp);
		c->ring_recv = c->ring_send = false;
	}
	r->to_ring = NULL;
}

/*
 * Returns true if work waits for the completion of a send: data of a write command, or a command
 * for which no request is free.
 */
static bool
needs_sends(struct nvmf_rdma *r)
{
	uint32_t i;

	if (!r->starved)
		return r->pulls != 0;
	r->starved = false;
	for (i = 0; i < r->attr.conns; i++)
		r->starved |= r->conn[i].queue != NULL && r->conn[i].queue->waiting != 0;
	return r->starved || r->pulls != 0;
}

/* Makes the CQ raise an event. Returns false if that failed. */
static bool
arm(struct bb_cq *cq, bool *armed)
{
	if (!*armed)
		*armed = bb_cq_arm(cq, false) == 0;
	return *armed;
}

/* Sleeps until a completion arrives, if there was no work for long enough. */
static void
doze(struct nvmf_rdma *r, uint64_t now, bool work)
{
	struct bb_cq *cq;
	int rc;

	if (work || r->busy) {
		r->busy = false;
		r->busy_at = now;
		return;
	}
	if (now - r->busy_at < r->attr.sleep_us * (rte_get_tsc_hz() / 1000000) ||
	    (r->outstanding != NULL && r->outstanding(r->turn_arg)))
		return;
	if (!arm(r->recv_cq, &r->recv_armed) ||
	    (needs_sends(r) && !arm(r->send_cq, &r->send_armed)))
		return;
	r->sleeps++;
	rc = bb_channel_wait(r->channel, TICK_MS, &cq);
	if (rc != 0)
		return;
	r->wakeups++;
	if (cq == r->recv_cq)
		r->recv_armed = false;
	else
		r->send_armed = false;
}

unsigned int
nvmf_rdma_turn(void *arg)
{
	struct nvmf_rdma *r = arg;
	unsigned int work;
	uint64_t now;
	uint32_t i;

	r->target->ticks = rte_get_tsc_cycles();
	work = r->turn == NULL ? 0 : r->turn(r->turn_arg);
	work += nvmf_target_turn(r->target) + nvmf_rdma_messages(r, ended);
	now = rte_get_tsc_cycles();
	ring(r);
	if (r->has_ending)
		end_dropped(r);
	for (i = 0; i < r->attr.conns && r->releasing != 0; i++)
		if (r->conn[i].releasing)
			nvmf_rdma_release(&r->conn[i]);
	if (now >= r->tick)
		tick(r, now);
	if (r->channel != NULL)
		doze(r, now, work != 0);
	return work;
}
