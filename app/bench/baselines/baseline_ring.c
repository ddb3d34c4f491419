/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An rte_ring of messages in mapped memory, one producer and one consumer. Both access the messages
 * in the ring (zero copy).
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ring.h>
#include <rte_ring_peek_zc.h>

#include "ring.h"

#define TO_PEER   0
#define FROM_PEER 1

static struct rte_ring *
ring_at(unsigned int i)
{
	return (struct rte_ring *)(void *)remote_shared->ring[i];
}

static int
make_rings(void)
{
	unsigned int i;
	int rc = 0;

	RTE_BUILD_BUG_ON(sizeof(struct ring_msg) % 4 != 0);
	if (remote_shared == NULL ||
	    rte_ring_get_memsize_elem(sizeof(struct ring_msg), RING_SLOTS) > REMOTE_RING)
		return -ENOMEM;
	for (i = 0; i < 2 && rc == 0; i++)
		rc = rte_ring_init(ring_at(i), "bench", RING_SLOTS, RING_F_SP_ENQ | RING_F_SC_DEQ);
	return rc;
}

static inline struct ring_msg *
element(const struct rte_ring_zc_data *z, unsigned int i)
{
	return i < z->n1 ? (struct ring_msg *)z->ptr1 + i
			 : (struct ring_msg *)z->ptr2 + (i - z->n1);
}

/* Adds up to @batch messages, the first of which is @n. Returns their number. */
static inline unsigned int
put(struct rte_ring *r, uint64_t n, unsigned int batch)
{
	struct rte_ring_zc_data z;
	unsigned int i, k = rte_ring_enqueue_zc_burst_elem_start(r, sizeof(struct ring_msg), batch,
								 &z, NULL);

	for (i = 0; i < k; i++)
		ring_fill(element(&z, i), n + i);
	if (k != 0)
		rte_ring_enqueue_zc_elem_finish(r, k);
	return k;
}

/* Takes up to @batch messages, the first of which must be @n. Returns their number, or -EBADMSG. */
static inline int
take(struct rte_ring *r, uint64_t n, unsigned int batch)
{
	struct rte_ring_zc_data z;
	unsigned int i, k = rte_ring_dequeue_zc_burst_elem_start(r, sizeof(struct ring_msg), batch,
								 &z, NULL);
	bool good = true;

	for (i = 0; i < k; i++)
		good &= ring_check(element(&z, i), n + i);
	if (k != 0)
		rte_ring_dequeue_zc_elem_finish(r, k);
	return good ? (int)k : -EBADMSG;
}

static int
put_all(struct rte_ring *r, uint64_t from, uint64_t n, unsigned int batch)
{
	uint64_t done = 0, idle = 0, since = 0;

	while (done < n) {
		unsigned int k = put(r, from + done, (unsigned int)RTE_MIN(n - done, batch));

		done += k;
		if (k != 0)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -ETIMEDOUT;
	}
	return 0;
}

static int
take_all(struct rte_ring *r, uint64_t from, uint64_t n, unsigned int batch)
{
	uint64_t done = 0, idle = 0, since = 0;

	while (done < n) {
		int k = take(r, from + done, batch);

		if (k < 0)
			return k;
		done += (unsigned int)k;
		if (k != 0)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -ETIMEDOUT;
	}
	return 0;
}

double
baseline_ring_latency(void *run)
{
	const struct ring_run *r = run;
	struct remote_msg msg = {.op = REMOTE_RTE_RING_ECHO, .n = r->n};
	struct round_trips t = {.half = r->n / 2, .ns = -1};
	uint64_t k;

	if (make_rings() != 0 || remote_send(&msg) != 0)
		return -1;
	for (k = 1; k <= r->n; k++) {
		if (put_all(ring_at(TO_PEER), k, 1, 1) != 0 ||
		    take_all(ring_at(FROM_PEER), k, 1, 1) != 0) {
			remote_stop(&msg);
			return -1;
		}
		round_trip_done(&t, k);
	}
	return remote_wait(&msg) == 0 ? t.ns : -1;
}

double
baseline_ring_rate(void *run)
{
	const struct ring_run *r = run;
	struct remote_msg msg = {.op = REMOTE_RTE_RING_SINK, .n = r->n, .size = r->batch};
	uint64_t t;
	double ns;
	int rc;

	if (make_rings() != 0 || remote_send(&msg) != 0)
		return -1;
	/*
	 * Exchanges one message before the timed part, so that the second process runs when the
	 * time starts.
	 */
	rc = put_all(ring_at(TO_PEER), 0, 1, 1);
	if (rc == 0)
		rc = take_all(ring_at(FROM_PEER), 0, 1, 1);
	t = tsc();
	if (rc == 0)
		rc = put_all(ring_at(TO_PEER), 1, r->n, r->batch);
	if (rc == 0)
		rc = take_all(ring_at(FROM_PEER), 1, 1, 1);
	ns = ns_since(t);
	if (rc != 0) {
		remote_stop(&msg);
		return -1;
	}
	return remote_wait(&msg) == 0 ? 1000 * (double)r->n / ns : -1;
}

int
baseline_ring_echo_peer(uint64_t n)
{
	uint64_t k;
	int rc = 0;

	for (k = 1; k <= n && rc == 0; k++) {
		rc = take_all(ring_at(TO_PEER), k, 1, 1);
		if (rc == 0)
			rc = put_all(ring_at(FROM_PEER), k, 1, 1);
	}
	return rc;
}

int
baseline_ring_sink_peer(uint64_t n, uint32_t batch)
{
	int rc = take_all(ring_at(TO_PEER), 0, 1, 1);

	if (rc == 0)
		rc = put_all(ring_at(FROM_PEER), 0, 1, 1);
	if (rc == 0)
		rc = take_all(ring_at(TO_PEER), 1, n, batch);
	return rc == 0 ? put_all(ring_at(FROM_PEER), 1, 1, 1) : rc;
}
