/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "link.h"

#define BATCH  32
#define WINDOW 256
#define SLOTS  4096u /* bytes of the buffer that soft_post8() writes in units of 8 bytes */

void
link_fill(uint8_t *p, size_t len, uint64_t seed)
{
	uint64_t x, i;

	for (i = 0; i < len / 8; i++) {
		x = (seed << 32 | i) * 0x9e3779b97f4a7c15;
		memcpy(p + 8 * i, &x, 8);
	}
}

bool
link_check(const uint8_t *p, size_t len, uint64_t seed)
{
	uint64_t x, y, i;

	for (i = 0; i < len / 8; i++) {
		x = (seed << 32 | i) * 0x9e3779b97f4a7c15;
		memcpy(&y, p + 8 * i, 8);
		if (x != y)
			return false;
	}
	return true;
}

/*
 * Connects the queue pairs of both processes, one after the other. To connect, a device resolves
 * the MAC of the peer. The peer's device replies only while its process polls. So one process polls
 * while the other one connects.
 */
static int
connect_both(struct soft *s, const struct bb_qp_addr *peer, struct remote_msg *msg)
{
	uint64_t idle = 0, since = 0;
	struct bb_qp_addr own;
	struct bb_wc wc;
	int rc, ended;

	rc = soft_addr(s, s->qps[0], &own);
	if (rc != 0)
		return rc;
	msg->op = REMOTE_SOFT_CONNECT;
	msg->addr = own;
	msg->raddr = (uintptr_t)s->to;
	msg->rkey = s->dst->rkey;
	rc = remote_send(msg);
	if (rc != 0)
		return rc;
	while (!remote_has_reply() && !remote_give_up(&idle, &since))
		bb_cq_poll(s->cq, &wc, 1);
	rc = remote_wait(msg);
	if (rc != 0)
		return rc;
	*msg = (struct remote_msg){.op = REMOTE_SOFT_RUN};
	rc = remote_send(msg);
	if (rc != 0)
		return rc;
	rc = soft_wait_link(s);
	if (rc == 0)
		rc = soft_connect(s, s->qps[0], &own, peer);
	ended = remote_stop(msg);
	return rc != 0 ? rc : ended;
}

int
link_open(struct soft *s, const char *here, const char *there)
{
	return link_open_with(s, here, there, NULL, NULL);
}

int
link_open_with(struct soft *s, const char *here, const char *there, int (*then)(const void *arg),
	       const void *arg)
{
	struct remote_msg msg = {
		.op = REMOTE_SOFT_OPEN,
		.n = LINK_DEPTH,
		.size = LINK_BYTES,
		.value = soft_inline,
	};
	struct bb_qp_addr peer;
	int rc;

	rc = remote_start();
	if (rc != 0)
		return rc;
	snprintf(msg.text, sizeof(msg.text), "%s", there);
	rc = soft_open_one(s, here, LINK_DEPTH, LINK_BYTES);
	if (rc != 0)
		return rc;
	rc = then != NULL ? then(arg) : 0;
	if (rc == 0)
		rc = remote_call(&msg);
	if (rc != 0)
		goto close_here;
	peer = msg.addr;
	s->raddr = msg.raddr;
	s->rkey = msg.rkey;
	rc = connect_both(s, &peer, &msg);
	if (rc == 0)
		return 0;
	fprintf(stderr, "bench: %s and %s cannot be connected: %s\n", here, there, strerror(-rc));
	msg.op = REMOTE_SOFT_CLOSE;
	remote_call(&msg);
close_here:
	soft_close(s);
	return rc;
}

void
link_close(struct soft *s)
{
	struct remote_msg msg = {.op = REMOTE_SOFT_CLOSE};

	remote_call(&msg);
	soft_close(s);
}

/*
 * Polls completions. Adds the number of completed sends to *@sent, and of completed receives to
 * *@got. Returns false if a completion has an error.
 */
static inline bool
poll_cq(struct soft *s, uint64_t *sent, uint64_t *got)
{
	struct bb_wc wc[BATCH];
	unsigned int i, n = bb_cq_poll(s->cq, wc, BATCH);

	for (i = 0; i < n; i++) {
		if (wc[i].status != BB_WC_SUCCESS) {
			fprintf(stderr, "bench: a request completed with an error: %s\n",
				bb_wc_status_name(wc[i].status));
			return false;
		}
		if (wc[i].opcode == BB_WC_RECV)
			(*got)++;
		else
			(*sent)++;
	}
	return true;
}

/*
 * Posts WRITE number @k, which writes the 8 bytes of @v to the start of the peer's buffer. One
 * WRITE in BATCH is signalled.
 */
static inline bool
post_cell(struct soft *s, uint64_t v, uint64_t k)
{
	const uint32_t flags = k % BATCH == 0 ? BB_SEND_SIGNALED : 0;

	if (bb_post_write_inline(s->qps[0], k, &v, 8, s->raddr, s->rkey, flags) != 0)
		return false;
	bb_qp_ring(s->qps[0]);
	return true;
}

/*
 * Waits until the peer has written @v to the start of this process's buffer. Adds the number of
 * completed sends to *@sent. Returns false on an error, or if the peer does not write @v.
 */
static inline bool
await_cell(struct soft *s, uint64_t v, uint64_t *sent)
{
	uint64_t idle = 0, since = 0, got = 0;

	while (__atomic_load_n((uint64_t *)(void *)s->to, __ATOMIC_ACQUIRE) != v) {
		if (!poll_cq(s, sent, &got))
			return false;
		if (remote_give_up(&idle, &since)) {
			fprintf(stderr, "bench: a write of the peer did not arrive in time\n");
			return false;
		}
	}
	return true;
}

double
link_latency(void *run)
{
	const struct link_run *r = run;
	const uint64_t n = RTE_ALIGN_CEIL(r->n, BATCH);
	struct round_trips t = {.half = n / 2, .ns = -1};
	struct remote_msg msg = {.op = REMOTE_SOFT_ECHO, .n = n};
	uint64_t k, sent = 0, got = 0, idle = 0, since = 0;
	struct soft *s = r->s;

	__atomic_store_n((uint64_t *)(void *)s->to, 0, __ATOMIC_RELAXED);
	if (remote_send(&msg) != 0)
		return -1;
	/*
	 * The first WRITE is not timed, because it also resolves the neighbour and wakes the peer.
	 */
	if (!post_cell(s, 1, 1) || !await_cell(s, 1, &sent))
		goto fail;
	round_trip_done(&t, 1);
	for (k = 2; k <= n; k++) {
		if (!post_cell(s, k, k) || !await_cell(s, k, &sent))
			goto fail;
		round_trip_done(&t, k);
	}
	while (sent < n / BATCH)
		if (!poll_cq(s, &sent, &got) || remote_give_up(&idle, &since))
			goto fail;
	return remote_stop(&msg) == 0 ? t.ns : -1;
fail:
	remote_stop(&msg);
	return -1;
}

int
link_echo_peer(struct soft *s, uint64_t n)
{
	uint64_t k, sent = 0, got = 0;

	/*
	 * Does not clear the buffer first, because the first WRITE may have arrived already. An old
	 * value of an earlier run does no harm, as await_cell() waits for the exact value.
	 */
	for (k = 1; k <= n; k++)
		if (!await_cell(s, k, &sent) || !post_cell(s, k, k))
			return -EIO;
	/* Polls on, because the device may still have to send or repeat the last WRITE. */
	while (__atomic_load_n(&remote_shared->stop, __ATOMIC_ACQUIRE) == 0)
		if (!poll_cq(s, &sent, &got))
			return -EIO;
	return 0;
}

/*
 * Fills @len bytes of the source buffer, and makes the second process poll and post @recvs
 * receives. Returns the seed of the data, or 0 on an error.
 */
static uint64_t
begin(struct soft *s, size_t len, uint64_t recvs)
{
	struct remote_msg msg = {.op = REMOTE_SOFT_RUN, .n = recvs};
	static uint64_t seed;

	link_fill(s->from, len, ++seed);
	return remote_send(&msg) == 0 ? seed : 0;
}

/*
 * Ends a measurement that begin() started: stops the polling of the second process. Returns true if
 * @recvs receives completed and the peer has the data of @seed.
 */
static bool
finish(uint64_t seed, size_t len, uint64_t recvs)
{
	struct remote_msg msg = {.op = REMOTE_SOFT_RUN};

	if (remote_stop(&msg) != 0)
		return false;
	if (msg.n != recvs) {
		fprintf(stderr, "bench: the peer received %lu of %lu SENDs\n", (unsigned long)msg.n,
			(unsigned long)recvs);
		return false;
	}
	msg = (struct remote_msg){.op = REMOTE_SOFT_CHECK, .size = len, .value = seed};
	if (remote_call(&msg) == 0)
		return true;
	fprintf(stderr, "bench: the data in the peer's memory is wrong\n");
	return false;
}

static inline int
post8(struct soft *s, uint64_t i, uint32_t flags, bool send)
{
	if (!send)
		return soft_post8(s, s->qps[0], i, flags);
	return bb_post_send_inline(s->qps[0], i, s->from + (i & 511) * 8, 8, flags);
}

/* Sends @n messages of 8 bytes. Returns the time in ns, or a negative number on an error. */
static inline double
stream8(struct soft *s, uint64_t n, bool send)
{
	uint64_t posted = 0, done = 0, got = 0, idle = 0, since = 0, t = tsc();

	while (done * BATCH < n) {
		const uint64_t before = done;
		uint32_t k;

		while (posted < n && posted - done * BATCH + BATCH <= WINDOW) {
			for (k = 1; k <= BATCH; k++, posted++)
				if (post8(s, posted, k == BATCH ? BB_SEND_SIGNALED : 0, send) != 0)
					return -1;
			bb_qp_ring(s->qps[0]);
		}
		if (!poll_cq(s, &done, &got))
			return -1;
		if (done != before)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -1;
	}
	return ns_since(t);
}

static double
rate(const struct link_run *r, bool send)
{
	const uint64_t n = RTE_ALIGN_CEIL(r->n, 512), seed = begin(r->s, SLOTS, send ? n : 0);
	double ns;

	if (seed == 0)
		return -1;
	ns = stream8(r->s, n, send);
	if (!finish(seed, SLOTS, send ? n : 0) || ns < 0)
		return -1;
	return 1000 * (double)n / ns;
}

double
link_write_rate(void *run)
{
	return rate(run, false);
}

double
link_send_rate(void *run)
{
	return rate(run, true);
}

/* Posts the large WRITEs of @r. Returns the time in ns, or a negative number on an error. */
static double
stream(const struct link_run *r)
{
	const uint32_t size = r->size, every = r->signal_every != 0 ? r->signal_every : 1;
	struct soft *s = r->s;
	uint64_t posted = 0, done = 0, got = 0, idle = 0, since = 0, t = tsc();
	size_t at = 0;

	while (done * every < r->n) {
		const uint64_t before = done;

		while (posted < r->n && posted - done * every < r->window) {
			const struct bb_sge sge = {(uintptr_t)(s->from + at), size, s->src->lkey};

			if (bb_post_write(s->qps[0], posted, &sge, 1, s->raddr + at, s->rkey,
					  posted % every == every - 1 ? BB_SEND_SIGNALED : 0) != 0)
				return -1;
			posted++;
			at += size;
			if (at == r->set)
				at = 0;
		}
		bb_qp_ring(s->qps[0]);
		if (!poll_cq(s, &done, &got))
			return -1;
		if (done != before)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			return -1;
	}
	return ns_since(t);
}

double
link_messages(void *run)
{
	const struct link_run *r = run;
	const uint64_t seed = begin(r->s, r->set, 0);
	double ns;

	if (seed == 0)
		return -1;
	ns = stream(r);
	if (!finish(seed, r->set, 0) || ns < 0)
		return -1;
	return 1000 * (double)r->n / ns;
}

double
link_bandwidth(void *run)
{
	const struct link_run *r = run;
	double rate = link_messages(run);

	return rate > 0 ? rate * r->size / 1000 : -1;
}

/*
 * Posts @n receives of 8 bytes, numbered from @from. Receive k has the same offset in its buffer as
 * WRITE k of link_write_rate().
 */
static int
post_recvs(struct soft *s, uint64_t from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct bb_sge sge = {(uintptr_t)(s->to + ((from + i) & 511) * 8), 8,
					   s->dst->lkey};

		if (bb_post_recv(s->qps[0], from + i, &sge, 1) != 0)
			return -ENOSPC;
	}
	bb_qp_ring_recv(s->qps[0]);
	return 0;
}

int
link_run_peer(struct soft *s, uint64_t *n)
{
	const uint64_t recvs = *n;
	uint64_t posted = 0, got = 0, sent = 0;
	uint32_t k;
	int rc = 0;

	while (rc == 0) {
		k = (uint32_t)RTE_MIN(recvs - posted, LINK_DEPTH - (posted - got));
		if (k >= BATCH || (k != 0 && posted + k == recvs)) {
			rc = post_recvs(s, posted, k);
			posted += k;
		}
		if (rc == 0 && !poll_cq(s, &sent, &got))
			rc = -EIO;
		if (__atomic_load_n(&remote_shared->stop, __ATOMIC_ACQUIRE) != 0)
			break;
	}
	*n = got;
	return rc;
}
