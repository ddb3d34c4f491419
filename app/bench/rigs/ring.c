/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>

#include "ring.h"

/* Offset in the buffer of the credit, the number of messages that the consumer has taken. */
#define CREDIT_AT  (2 * RING_SLOTS * RDMA_RING_SLOT)
#define IDLE_POLLS 16 /* checks of an empty ring between two polls, as in hft_pipeline */

static struct rdma_ring_tx tx;
static struct rdma_ring_rx rx;

int
ring_init(struct soft *s, struct rdma_ring_tx *to, struct rdma_ring_rx *from)
{
	const struct bb_region slots = {
		.addr = s->raddr,
		.len = rdma_ring_bytes(RING_SLOTS),
		.rkey = s->rkey,
	};
	const struct bb_region credit = {.addr = s->raddr + CREDIT_AT, .len = 8, .rkey = s->rkey};
	uint64_t *own = (uint64_t *)(void *)(s->to + CREDIT_AT);
	int rc;

	*own = 0;
	rdma_ring_format(s->to, RING_SLOTS);
	rc = rdma_ring_tx_init(to, s->qps[0], RDMA_RING_INLINE, own, &slots);
	return rc == 0 ? rdma_ring_rx_init(from, s->qps[0], s->to, RING_SLOTS, &credit) : rc;
}

int
ring_open_peer(struct soft *s)
{
	return ring_init(s, &tx, &rx);
}

int
ring_open(struct soft *s)
{
	struct remote_msg msg = {.op = REMOTE_RDMA_RING_OPEN};
	int rc = ring_open_peer(s);

	return rc == 0 ? remote_call(&msg) : rc;
}

/* Polls the CQ. No request is signalled, so a completion is an error. */
static inline int
poll_once(struct soft *s)
{
	struct bb_wc wc;

	if (bb_likely(bb_cq_poll(s->cq, &wc, 1) == 0))
		return 0;
	fprintf(stderr, "bench: a request completed with an error: %s\n",
		bb_wc_status_name(wc.status));
	return -EIO;
}

/* Sends @n messages, the first of which is @from, with one doorbell and one poll per @batch. */
static int
push_all(struct soft *s, uint64_t from, uint64_t n, uint32_t batch)
{
	uint64_t idle = 0, since = 0, done = 0;
	struct ring_msg m;
	uint32_t k;
	int rc;

	/* The last flush may leave messages, if the send queue is full. */
	while (done < n || rdma_ring_tx_pending(&tx)) {
		for (k = 0, rc = 0; k < batch && done < n; k++, done++) {
			ring_fill(&m, from + done);
			rc = rdma_ring_push(&tx, &m);
			if (rc != 0)
				break;
		}
		if (rc != 0 && rc != -EAGAIN)
			return rc;
		rdma_ring_tx_flush(&tx);
		rc = poll_once(s);
		if (rc != 0)
			return rc;
		if (k != 0)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -ETIMEDOUT;
	}
	return tx.error;
}

/* Receives @n messages, the first of which must be @from. */
static int
pop_all(struct soft *s, uint64_t from, uint64_t n, uint32_t batch)
{
	uint64_t idle = 0, since = 0, done = 0, credits;
	struct ring_msg m;
	uint32_t k;
	int rc;

	while (done < n) {
		for (k = 0, rc = 1; k < batch && done < n; k++, done++) {
			rc = rdma_ring_pop(&rx, &m);
			if (rc != 1)
				break;
			if (bb_unlikely(!ring_check(&m, from + done)))
				return -EBADMSG;
		}
		if (rc < 0)
			return rc;
		credits = rx.credits;
		rdma_ring_rx_flush(&rx);
		if (k != 0)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -ETIMEDOUT;
		if (rx.credits == credits && (k != 0 || idle % IDLE_POLLS != 0))
			continue;
		rc = poll_once(s);
		if (rc != 0)
			return rc;
	}
	return 0;
}

double
ring_latency(void *run)
{
	const struct ring_run *r = run;
	struct remote_msg msg = {.op = REMOTE_RDMA_RING_ECHO, .n = r->n};
	struct round_trips t = {.half = r->n / 2, .ns = -1};
	uint64_t k;

	if (remote_send(&msg) != 0)
		return -1;
	for (k = 1; k <= r->n; k++) {
		if (push_all(r->s, k, 1, 1) != 0 || pop_all(r->s, k, 1, 1) != 0) {
			remote_stop(&msg);
			return -1;
		}
		round_trip_done(&t, k);
	}
	return remote_wait(&msg) == 0 ? t.ns : -1;
}

double
ring_rate(void *run)
{
	const struct ring_run *r = run;
	struct remote_msg msg = {.op = REMOTE_RDMA_RING_SINK, .n = r->n, .size = r->batch};
	uint64_t t;
	double ns;
	int rc;

	if (remote_send(&msg) != 0)
		return -1;
	rc = push_all(r->s, 0, 1, 1);
	if (rc == 0)
		rc = pop_all(r->s, 0, 1, 1);
	t = tsc();
	if (rc == 0)
		rc = push_all(r->s, 1, r->n, r->batch);
	if (rc == 0)
		rc = pop_all(r->s, 1, 1, 1);
	ns = ns_since(t);
	if (rc != 0) {
		remote_stop(&msg);
		return -1;
	}
	return remote_wait(&msg) == 0 ? 1000 * (double)r->n / ns : -1;
}

int
ring_echo_peer(struct soft *s, uint64_t n)
{
	uint64_t k;
	int rc = 0;

	for (k = 1; k <= n && rc == 0; k++) {
		rc = pop_all(s, k, 1, 1);
		if (rc == 0)
			rc = push_all(s, k, 1, 1);
	}
	return rc;
}

int
ring_sink_peer(struct soft *s, uint64_t n, uint32_t batch)
{
	int rc = pop_all(s, 0, 1, 1);

	if (rc == 0)
		rc = push_all(s, 0, 1, 1);
	if (rc == 0)
		rc = pop_all(s, 1, n, batch);
	return rc == 0 ? push_all(s, 1, 1, 1) : rc;
}
