/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A ring of entries in posting order. An entry has the copy of a request, from its post to its
 * completion. The wr_id passed to the queue is BB_REPLAY_TAG and the number of the entry. So a
 * completion identifies the entry, whatever the application's wr_id is. Sends complete in order, so
 * a completion means that all earlier sends are complete. An entry that is posted again has the
 * same number. That is safe, because bb_qp_recover() has removed all CQEs of earlier posts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_log.h>

#include "bb_cm_priv.h"
#include "bb_replay.h"

struct entry {
	struct bb_send_wr wr; /* copy of the request; wr_id is the application's */
	struct bb_sge sge[BB_REPLAY_MAX_SGE];
	uint8_t data[BB_REPLAY_MAX_INLINE];
	char region[BB_REGION_NAME]; /* peer's region that the request accesses, "" if unnamed */
	uint64_t off;                /* offset of raddr in the region */
	uint64_t bytes;              /* bytes that the request accesses from off on */
	enum bb_wr_fate fate;
	enum bb_wc_status status;
	bool maybe;  /* an earlier post may have executed the request */
	bool ended;  /* fate is known */
	bool polled; /* true if a flush or retry error of the request was polled;
		      * bb_replay_lost() then posts the request again or reports it */
};

struct bb_replay {
	struct bb_replay_link link;
	enum bb_replay_policy policy;
	uint32_t size; /* number of entries, a power of two */
	uint32_t head; /* number of the oldest entry */
	uint32_t next; /* next entry to post; entries from next to tail are not posted yet */
	uint32_t tail;
	struct entry *ring;
};

static struct entry *
at(const struct bb_replay *r, uint32_t n)
{
	return &r->ring[n & (r->size - 1)];
}

int
bb_replay_create(struct bb_conn *conn, uint32_t depth, enum bb_replay_policy policy,
		 struct bb_replay **replay)
{
	struct bb_replay *r;

	if (conn == NULL || replay == NULL || depth == 0 || depth > 1u << 20 ||
	    policy > BB_REPLAY_UNKNOWN)
		return -EINVAL;
	if (conn->replay != NULL)
		return -EBUSY;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->link.conn = conn;
	r->policy = policy;
	/* Completions of an earlier replay may still come. */
	r->head = r->next = r->tail = conn->replay_next;
	r->size = rte_align32pow2(depth);
	r->ring = calloc(r->size, sizeof(*r->ring));
	if (r->ring == NULL) {
		free(r);
		return -ENOMEM;
	}
	conn->replay = &r->link;
	*replay = r;
	return 0;
}

void
bb_replay_destroy(struct bb_replay *r)
{
	if (r == NULL)
		return;
	if (r->link.conn != NULL) {
		r->link.conn->replay = NULL;
		r->link.conn->replay_next = r->tail;
	}
	free(r->ring);
	free(r);
}

uint32_t
bb_replay_pending(const struct bb_replay *r)
{
	uint32_t i, n = 0;

	/* A request that was reported may come after one that was posted again. */
	for (i = r->head; i != r->tail; i++)
		n += !at(r, i)->ended;
	return n;
}

/* ---- Copies of requests */

static bool
is_rdma(enum bb_wr_opcode op)
{
	return op == BB_WR_RDMA_WRITE || op == BB_WR_RDMA_WRITE_WITH_IMM || op == BB_WR_RDMA_READ;
}

static bool
is_atomic(enum bb_wr_opcode op)
{
	return op == BB_WR_ATOMIC_CMP_AND_SWP || op == BB_WR_ATOMIC_FETCH_AND_ADD ||
	       op == BB_WR_MASKED_CMP_AND_SWP || op == BB_WR_MASKED_FETCH_AND_ADD;
}

/* Looks up the peer's region that a request accesses, by the rkey and address of the request. */
static void
find_region(const struct bb_conn *c, struct entry *e)
{
	const bool atomic = is_atomic(e->wr.opcode);
	uint64_t raddr = atomic ? e->wr.atomic.raddr : e->wr.rdma.raddr;
	uint32_t i, rkey = atomic ? e->wr.atomic.rkey : e->wr.rdma.rkey;

	e->region[0] = '\0';
	if (!atomic && !is_rdma(e->wr.opcode))
		return;
	for (i = 0; i < c->npeer_regions; i++) {
		const struct bb_region *g = &c->peer_regions[i];

		if (g->rkey != rkey || raddr < g->addr || raddr - g->addr > g->len ||
		    e->bytes > g->len - (raddr - g->addr))
			continue;
		memcpy(e->region, g->name, sizeof(e->region));
		e->off = raddr - g->addr;
		return;
	}
}

/* Copies a request into an entry of the replay. Returns -EINVAL if the request is too large. */
static int
copy(struct bb_replay *r, struct entry *e, const struct bb_send_wr *wr)
{
	uint32_t i, len = 0;

	if (wr->opcode == BB_WR_BIND_MW || wr->opcode == BB_WR_LOCAL_INV ||
	    wr->nsge > BB_REPLAY_MAX_SGE || (wr->nsge != 0 && wr->sge == NULL))
		return -EINVAL;
	memset(e, 0, offsetof(struct entry, data));
	e->wr = *wr;
	e->bytes = 0;
	e->maybe = e->ended = e->polled = false;
	e->status = BB_WC_SUCCESS;
	if (wr->nsge != 0)
		memcpy(e->sge, wr->sge, wr->nsge * sizeof(*wr->sge));
	e->wr.sge = e->sge;
	for (i = 0; i < wr->nsge; i++)
		e->bytes += wr->sge[i].len;
	if ((wr->flags & BB_SEND_INLINE) != 0) {
		if (e->bytes > BB_REPLAY_MAX_INLINE)
			return -EINVAL;
		for (i = 0; i < wr->nsge; i++) {
			if (wr->sge[i].len != 0)
				memcpy(e->data + len, (const void *)(uintptr_t)wr->sge[i].addr,
				       wr->sge[i].len);
			len += wr->sge[i].len;
		}
		e->sge[0] = (struct bb_sge){(uintptr_t)e->data, len, 0};
		e->wr.nsge = 1;
	}
	find_region(r->link.conn, e);
	return 0;
}

static bool
is_established(const struct bb_replay *r)
{
	return r->link.conn != NULL && r->link.conn->state == BB_CONN_ESTABLISHED;
}

/* Posts entry @n. Returns 0 or a negative errno. */
static int
post(struct bb_replay *r, uint32_t n)
{
	struct bb_send_wr wr = at(r, n)->wr;
	int err;

	wr.wr_id = (uint64_t)BB_REPLAY_TAG << 32 | n;
	return bb_qp_post_list(r->link.conn->qp, &wr, 1, &err) == 1 ? 0 : err != 0 ? err : -EAGAIN;
}

uint32_t
bb_replay_post(struct bb_replay *r, const struct bb_send_wr *wr, uint32_t n, int *err)
{
	uint32_t i;
	int ret = 0;

	*err = 0;
	/* Posts nothing while older entries still have to be posted again. */
	if (!is_established(r) || r->next != r->tail)
		return 0;
	for (i = 0; i < n; i++) {
		if (r->tail - r->head == r->size)
			break;
		ret = copy(r, at(r, r->tail), &wr[i]);
		if (ret == 0)
			ret = post(r, r->tail);
		if (ret != 0)
			break;
		r->tail++;
		r->next = r->tail;
	}
	bb_qp_ring(r->link.conn->qp);
	*err = ret != -EAGAIN ? ret : 0;
	return i;
}

/* ---- Fates of requests */

static void
drop_ended(struct bb_replay *r)
{
	while (r->head != r->tail && at(r, r->head)->ended)
		r->head++;
	if ((int32_t)(r->next - r->head) < 0)
		r->next = r->head;
}

static void
end(struct entry *e, enum bb_wr_fate fate, enum bb_wc_status status)
{
	e->ended = true;
	e->fate = fate;
	e->status = status;
}

/* Returns true if the peer did not answer a request, or had no receive for it. */
static bool
is_connection_error(uint32_t status)
{
	return status == BB_WC_RETRY_EXC_ERR || status == BB_WC_RNR_RETRY_EXC_ERR;
}

/* Returns the fate of a request that failed with a connection error (IBTA vol. 1, 9.9.2.4). */
static enum bb_wr_fate
fate_of(const struct entry *e, enum bb_wc_status status)
{
	/*
	 * Without a receive the responder rejects the first packet of a SEND, so no part of the
	 * SEND is executed. A WRITE_WITH_IMM needs a receive only for its last packet. The
	 * responder has then executed the earlier packets.
	 */
	if (status == BB_WC_RNR_RETRY_EXC_ERR && e->wr.opcode != BB_WR_RDMA_WRITE_WITH_IMM)
		return BB_WR_NOT_DONE;
	return BB_WR_UNKNOWN;
}

/* Returns true if the replay has posted the request with this wr_id. */
static bool
is_tagged(uint64_t wr_id)
{
	return wr_id >> 32 == BB_REPLAY_TAG;
}

/* Returns the posted entry with this wr_id, NULL if there is none. */
static struct entry *
find(const struct bb_replay *r, uint64_t wr_id)
{
	const uint32_t n = (uint32_t)wr_id;

	return is_tagged(wr_id) && n - r->head < r->next - r->head ? at(r, n) : NULL;
}

bool
bb_replay_completion(struct bb_replay *r, struct bb_wc *wc)
{
	struct entry *e = find(r, wc->wr_id);
	const bool recoverable = r->link.conn != NULL && bb_cm_is_recoverable(r->link.conn);
	const uint32_t n = (uint32_t)wc->wr_id;
	uint32_t i;

	/* Either the application has posted the request, or bb_replay_lost() has reported it. */
	if (e == NULL)
		return !is_tagged(wc->wr_id);
	wc->wr_id = e->wr.wr_id;
	for (i = r->head; i != n; i++)
		if (!at(r, i)->ended && !at(r, i)->polled)
			end(at(r, i), BB_WR_DONE, BB_WC_SUCCESS);
	if (recoverable && wc->status == BB_WC_WR_FLUSH_ERR) {
		e->polled = true;
	} else if (recoverable && is_connection_error(wc->status)) {
		e->polled = true;
		e->status = (enum bb_wc_status)wc->status;
		e->fate = fate_of(e, e->status);
	} else {
		end(e, wc->status == BB_WC_SUCCESS ? BB_WR_DONE : BB_WR_FAILED,
		    (enum bb_wc_status)wc->status);
	}
	drop_ended(r);
	return !e->polled;
}

static void
report(const struct entry *e, enum bb_wr_fate fate, bb_replay_fn fn, void *arg)
{
	struct bb_wr_end out = {.fate = fate};

	out.wc.wr_id = e->wr.wr_id;
	out.wc.status = (uint8_t)e->status;
	if (fate == BB_WR_DONE)
		out.wc.status = BB_WC_SUCCESS;
	else if (e->status == BB_WC_SUCCESS)
		out.wc.status = BB_WC_WR_FLUSH_ERR;
	if (fn != NULL)
		fn(&out, arg);
}

static bool
is_reposted(const struct bb_replay *r, enum bb_wr_fate fate)
{
	return (fate == BB_WR_NOT_DONE && r->policy >= BB_REPLAY_NOT_DONE) ||
	       (fate == BB_WR_UNKNOWN && r->policy >= BB_REPLAY_UNKNOWN);
}

/* Copies the fates of requests (enum bb_wr_fate) from the event to the entries. */
static void
take_ends(struct bb_replay *r, const struct bb_cm_event *ev)
{
	uint32_t i;

	for (i = 0; i < ev->nends; i++) {
		const struct bb_wr_end *w = &ev->ends[i];
		struct entry *e = w->recv ? NULL : find(r, w->wc.wr_id);

		if (e == NULL)
			continue;
		e->polled = false;
		e->fate = w->fate;
		e->status = (enum bb_wc_status)w->wc.status;
		if (w->fate == BB_WR_FAILED && is_connection_error(e->status))
			e->fate = fate_of(e, e->status);
	}
}

/*
 * Sets the fate of each posted entry. If the CM has reset the queue pair (@reset), the event has
 * the fates. If neither a poll nor LOST has reported an entry, the entry was unsignalled and has
 * succeeded. At the end of a connection this conclusion is not safe: the reset may have failed.
 */
static void
set_fates(struct bb_replay *r, const struct bb_cm_event *ev, bool reset)
{
	uint32_t i;

	for (i = r->head; i != r->next; i++) {
		struct entry *e = at(r, i);

		if (!e->polled)
			e->fate = ev->type == BB_CM_LOST ? BB_WR_DONE : BB_WR_UNKNOWN;
		else if (e->status == BB_WC_SUCCESS)
			e->fate = reset ? ev->flushed : BB_WR_UNKNOWN;
	}
	if (reset)
		take_ends(r, ev);
}

/* Reports an entry, unless it is an unsignalled request that has succeeded. */
static void
report_end(struct entry *e, enum bb_wr_fate fate, bb_replay_fn fn, void *arg)
{
	if (fate != BB_WR_DONE || (e->wr.flags & BB_SEND_SIGNALED) != 0)
		report(e, fate, fn, arg);
	e->ended = true;
}

/* Reports the posted entries that the policy does not post again. The replay holds the others. */
static void
lost(struct bb_replay *r, bb_replay_fn fn, void *arg)
{
	uint32_t i;

	for (i = r->head; i != r->next; i++) {
		struct entry *e = at(r, i);

		if (e->ended)
			continue;
		if (is_reposted(r, e->fate)) {
			e->maybe = e->maybe || e->fate == BB_WR_UNKNOWN;
			e->polled = false;
			e->status = BB_WC_SUCCESS;
			continue;
		}
		report_end(e, e->fate, fn, arg);
	}
	r->next = r->head;
}

/*
 * Reports the entries of a connection that has ended. A posted entry that was not polled gets its
 * completion later, unless a reset of the queue pair has removed the completion. Until then the
 * device may use the memory of the request.
 */
static void
over(struct bb_replay *r, bool reset, bb_replay_fn fn, void *arg)
{
	const uint32_t posted = r->next - r->head;
	uint32_t i;

	for (i = r->head; i != r->tail; i++) {
		struct entry *e = at(r, i);

		if (e->ended)
			continue;
		if (i - r->head >= posted)
			report_end(e, e->maybe ? BB_WR_UNKNOWN : BB_WR_NOT_DONE, fn, arg);
		else if (reset || e->polled)
			report_end(e,
				   e->maybe && e->fate == BB_WR_NOT_DONE ? BB_WR_UNKNOWN : e->fate,
				   fn, arg);
	}
}

void
bb_replay_lost(struct bb_replay *r, const struct bb_cm_event *ev, bb_replay_fn fn, void *arg)
{
	const bool reset = ev->ends != NULL;

	switch (ev->type) {
	case BB_CM_LOST:
		set_fates(r, ev, reset);
		lost(r, fn, arg);
		break;
	case BB_CM_DISCONNECTED:
	case BB_CM_REJECTED:
	case BB_CM_FAILED:
		set_fates(r, ev, reset);
		over(r, reset, fn, arg);
		break;
	default:
		break;
	}
	drop_ended(r);
}

/*
 * Translates the request to the peer's current region. Returns 0, or -ENOENT if the peer no longer
 * has the region.
 */
static int
translate(const struct bb_conn *c, struct entry *e)
{
	struct bb_region g;

	if (e->region[0] == '\0')
		return 0;
	if (bb_conn_region(c, e->region, &g) != 0 || e->off > g.len || e->bytes > g.len - e->off)
		return -ENOENT;
	if (is_atomic(e->wr.opcode)) {
		e->wr.atomic.raddr = g.addr + e->off;
		e->wr.atomic.rkey = g.rkey;
	} else {
		e->wr.rdma.raddr = g.addr + e->off;
		e->wr.rdma.rkey = g.rkey;
	}
	return 0;
}

int
bb_replay_resume(struct bb_replay *r, bb_replay_fn fn, void *arg)
{
	struct entry *e;
	int n = 0, ret;

	if (!is_established(r))
		return -ENOTCONN;
	for (; r->next != r->tail; r->next++) {
		e = at(r, r->next);
		if (e->ended)
			continue;
		ret = translate(r->link.conn, e);
		if (ret == 0)
			ret = post(r, r->next);
		if (ret == 0) {
			n++;
			continue;
		}
		bb_qp_ring(r->link.conn->qp);
		if (ret == -EAGAIN)
			return ret;
		report(e, e->maybe ? BB_WR_UNKNOWN : BB_WR_NOT_DONE, fn, arg);
		e->ended = true;
		r->next++;
		drop_ended(r);
		return ret;
	}
	bb_qp_ring(r->link.conn->qp);
	drop_ended(r);
	return n;
}
