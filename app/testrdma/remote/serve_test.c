/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target's part of a test, in the listening process.
 *
 * The target posts and checks receives, and posts the operations of the reverse direction. It
 * describes both directions by struct pair, as the initiator does in run.c. The parameters of a
 * test come from the peer, so all of them are checked.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "remote.h"

struct responder {
	struct tester
		t; /* test with one pair; its flows are forward and, in two-way tests, reverse */
	struct test test;
	struct pair forward, reverse, *flows[2];
	struct bb_qp *qp;
	struct remote_ctl *ctl;
	uint64_t peer_ctl; /* address of the initiator's control block */
	uint64_t peer_addr;
	uint32_t peer_rkey;
	uint32_t index, conns;
	uint64_t tag;                /* tag of the current test; 0 if none */
	struct remote_ctl last_sent; /* counts last written to the initiator */
	bool refused;                /* the target has refused the current test */
	uint64_t recvs, errors;      /* sums of earlier tests */
};

static void
close_queues(struct responder *responder)
{
	if (responder->qp != NULL)
		bb_qp_destroy(responder->qp);
	if (responder->t.scq != NULL)
		bb_cq_destroy(responder->t.scq);
	if (responder->t.rcq != NULL)
		bb_cq_destroy(responder->t.rcq);
}

static int
open_queues(struct responder *responder, uint32_t depth, uint32_t sgl, uint32_t max_inline)
{
	struct tester *t = &responder->t;
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	int rc;

	bb_cq_attr_init(&attr);
	attr.depth = depth + ORDERS_MAX;
	rc = bb_cq_create(t->dev, &attr, &t->scq);
	if (rc == 0)
		rc = bb_cq_create(t->dev, &attr, &t->rcq);
	if (rc != 0)
		return rc;
	bb_qp_init_attr_init(&init);
	init.send_cq = t->scq;
	init.recv_cq = t->rcq;
	init.sq_depth = depth + ORDERS_MAX;
	init.rq_depth = depth;
	init.max_sge = sgl;
	init.max_recv_sge = sgl;
	init.max_inline = max_inline;
	return bb_qp_create(t->pd, &init, &responder->qp);
}

int
responder_create(struct tester *server, const struct remote_hello *hello, uint8_t *mem,
		 struct bb_mr *mr, struct responder **out)
{
	uint32_t depth = rte_be_to_cpu_32(hello->depth), sgl = rte_be_to_cpu_32(hello->sgl);
	uint32_t max_inline = rte_be_to_cpu_32(hello->max_inline);
	struct responder *responder;
	struct tester *t;
	int rc;

	if (depth == 0 || depth > server->attr.max_qp_wr - ORDERS_MAX || sgl == 0 ||
	    sgl > RTE_MIN(RTE_MIN(server->attr.max_sge, server->attr.max_recv_sge),
			  (uint32_t)MAX_SGL) ||
	    max_inline > server->attr.max_inline)
		return -EINVAL;
	responder = calloc(1, sizeof(*responder));
	if (responder == NULL)
		return -ENOMEM;
	t = &responder->t;
	t->dev = server->dev;
	t->attr = server->attr;
	t->pd = server->pd;
	t->tsc_hz = server->tsc_hz;
	t->o.depth = depth;
	t->o.sgl = sgl;
	responder->index = rte_be_to_cpu_32(hello->index);
	responder->conns = rte_be_to_cpu_32(hello->conns);
	t->remote.name = "the target's";
	t->remote.mem = mem;
	t->remote.len = rte_be_to_cpu_64(hello->bytes);
	t->remote.mr = mr;
	responder->ctl = ctl_at(mem, t->remote.len, responder->index);
	responder->peer_addr = rte_be_to_cpu_64(hello->addr);
	responder->peer_rkey = rte_be_to_cpu_32(hello->rkey);
	responder->peer_ctl =
		responder->peer_addr + t->remote.len + (uint64_t)responder->index * REMOTE_CTL;
	rc = open_queues(responder, depth, sgl, max_inline);
	if (rc != 0) {
		responder_destroy(responder);
		return rc;
	}
	responder->qp->user = &responder->reverse;
	*out = responder;
	return 0;
}

struct bb_qp *
responder_qp(struct responder *responder)
{
	return responder->qp;
}

const struct tester *
responder_tester(const struct responder *responder)
{
	return &responder->t;
}

uint64_t
responder_receives(const struct responder *responder)
{
	return responder->recvs + responder->test.res.recvs;
}

/*
 * Returns the number of errors of the current test, without failed completions. The target does not
 * count failed completions as errors, because they also occur when the peer exits. If the peer
 * still runs, it reports the failure itself.
 */
static uint64_t
test_errors(const struct responder *responder)
{
	return responder->test.res.errors - responder->test.res.broken;
}

uint64_t
responder_errors(const struct responder *responder)
{
	return responder->errors + test_errors(responder);
}

void
responder_destroy(struct responder *responder)
{
	close_queues(responder);
	free(responder);
}

/* Returns true if the parameters of a test are consistent and the test fits into the memory. */
static bool
test_fits(const struct responder *responder, const struct test *test, uint32_t offset)
{
	const struct tester *t = &responder->t;
	uint64_t room = t->remote.len - 2 * EDGE, slots;
	uint32_t flows = test->e->two_way ? 2 : 1;

	slots = room / RTE_MAX(t->local.lay.stride, t->remote.lay.stride) / responder->conns /
		flows;
	return (test->e->recv || test->e->two_way) && offset < 64 && test->slots > 0 &&
	       test->slots <= slots && test->window > 0 && test->window <= t->o.depth &&
	       test->window <= test->slots && test->burst > 0 && test->burst <= test->window &&
	       test->signal_every > 0 && test->signal_every <= test->window;
}

static bool
test_unpack(struct responder *responder)
{
	struct tester *t = &responder->t;
	struct test *test = &responder->test;
	struct remote_test from;
	uint32_t offset;

	memcpy(&from, &responder->ctl->test, sizeof(from));
	memset(test, 0, offsetof(struct test, lat));
	test->e = engine_find(from.op, strnlen(from.op, sizeof(from.op)));
	test->size = rte_be_to_cpu_32(from.size);
	offset = rte_be_to_cpu_32(from.offset);
	if (test->e == NULL || test->size == 0 || test->size > MAX_SIZE || offset >= 64)
		return false;
	test->slots = rte_be_to_cpu_32(from.slots);
	test->window = rte_be_to_cpu_32(from.window);
	test->burst = rte_be_to_cpu_32(from.burst);
	test->signal_every = rte_be_to_cpu_32(from.signal_every);
	test->use_inline = from.use_inline != 0 && test->e->to_target;
	t->o.seed = rte_be_to_cpu_64(from.seed);
	t->o.offset = offset;
	t->test_no = rte_be_to_cpu_32(from.test_no);
	test_layouts(t, test->e, test->size);
	return test_fits(responder, test, offset);
}

static void
flow_init(struct responder *responder, struct pair *p, bool reverse)
{
	struct tester *t = &responder->t;
	uint32_t flows = responder->test.e->two_way ? 2 : 1;
	uint64_t slots = ((uint64_t)responder->index * flows + reverse) * responder->test.slots;
	uint8_t *ours = t->remote.mem + EDGE + slots * t->remote.lay.stride;
	uint64_t theirs = responder->peer_addr + EDGE + slots * t->local.lay.stride;
	uint32_t orders = p->orders;

	memset(p, 0, sizeof(*p));
	p->orders = orders;
	p->t = t;
	p->index = responder->index + (reverse ? responder->conns : 0);
	p->wr_base = WR_ID(t->test_no, p->index);
	p->reverse = reverse;
	p->twin = reverse ? &responder->forward : &responder->reverse;
	p->in = p->twin;
	p->initiator = reverse ? &t->remote : &t->local;
	p->target = reverse ? &t->local : &t->remote;
	p->target_rkey = responder->peer_rkey;
	if (reverse) {
		p->qp = responder->qp;
		p->local = ours;
		/*
		 * No local pointer to the initiator's memory, which this process does not map.
		 * Requests get their address from target_delta.
		 */
		p->remote = NULL;
		p->target_delta = theirs;
	} else {
		p->peer = responder->qp;
		p->remote = ours;
	}
	flow_open(p, 0);
}

/* Starts the test @tag, which the peer has requested. */
static void
test_begin(struct responder *responder, uint64_t tag)
{
	struct tester *t = &responder->t;

	responder->recvs += responder->test.res.recvs;
	responder->errors += test_errors(responder);
	memset(&responder->test.res, 0, sizeof(responder->test.res));
	/*
	 * Refuses the test if receives are still posted. They belong to a test that was stopped
	 * early, and a message of the new test would consume one of them.
	 */
	responder->refused =
		t->fatal || (responder->tag != 0 &&
			     responder->forward.recv_posted != responder->forward.recv_done);
	if (!responder->refused && !test_unpack(responder)) {
		say("a test of connection %u was rejected: its operation does not involve the "
		    "target, or does not fit the target's memory",
		    responder->index);
		responder->refused = true;
	}
	responder->tag = tag;
	memset(&responder->last_sent, 0, sizeof(responder->last_sent));
	if (responder->refused)
		return;
	t->test = &responder->test;
	t->flows = responder->flows;
	t->nflows = responder->test.e->two_way ? 2 : 1;
	responder->flows[0] = &responder->forward;
	responder->flows[1] = &responder->reverse;
	flow_init(responder, &responder->forward, false);
	flow_init(responder, &responder->reverse, true);
}

/* Reads, for each direction, the number of the first operation that the peer does not allow yet. */
static void
read_ends(struct responder *responder)
{
	struct pair *in = &responder->forward, *back = &responder->reverse;
	uint64_t end;

	if (word_read(&responder->ctl->forward_end, responder->tag, &end) && end > in->end)
		in->end = end;
	if (!responder->test.e->two_way ||
	    !word_read(&responder->ctl->reverse_end, responder->tag, &end) || end <= back->end)
		return;
	/*
	 * flow_extend() requires that the last operation below the old limit is signalled. If
	 * operations are still outstanding, the limit was raised while they ran (pair.rolling),
	 * each time by a multiple of signal_every. So the last operation below it is signalled.
	 */
	flow_extend(back, end);
	/*
	 * The peer posts the receive for a returned message before it sends the message. This
	 * process returns the message only after it has arrived. So all receives for returned
	 * messages count as posted.
	 */
	back->recv_posted = end;
}

/*
 * Returns true if the counts of operations and receives in @now must be written to the peer. That
 * is the case if they differ from the counts last written, and the peer waits for them or the
 * difference is large. Small differences are collected, because each WRITE takes a slot of the send
 * queue.
 */
static bool
must_send(const struct responder *responder, const struct remote_ctl *now)
{
	const struct remote_ctl *sent = &responder->last_sent;
	uint64_t some = RTE_MAX(responder->t.o.depth / 4, 1u);

	if (memcmp(now, sent, sizeof(*now)) == 0)
		return false;
	return sent->test.test_no == 0 || now->errors != sent->errors ||
	       now->recv_done == sent->recv_posted ||
	       now->recv_posted - sent->recv_posted >= some ||
	       now->recv_done == responder->forward.end || now->done == responder->reverse.end ||
	       now->done - sent->done >= some;
}

/*
 * Writes this process's counts of operations and receives to the peer if must_send() returns true
 * and the send queue has room.
 */
static void
send_counts(struct responder *responder)
{
	const size_t first = offsetof(struct remote_ctl, recv_posted);
	const struct test *test = &responder->test;
	struct remote_ctl now = {.test.test_no = 1}, *ctl = responder->ctl;
	struct bb_sge sge = {.addr = (uint64_t)(uintptr_t)ctl + first,
			     .len = sizeof(*ctl) - first,
			     .lkey = responder->t.remote.mr->lkey};

	now.errors = responder->refused ? WORD_REFUSED : test->res.errors;
	if (!responder->refused) {
		now.recv_posted = responder->forward.recv_posted;
		now.recv_done = responder->forward.recv_done;
		now.done = responder->reverse.done;
	}
	if (responder->reverse.orders >= ORDERS_MAX || !must_send(responder, &now))
		return;
	ctl->recv_posted = word_make(responder->tag, now.recv_posted);
	ctl->recv_done = word_make(responder->tag, now.recv_done);
	ctl->done = word_make(responder->tag, now.done);
	ctl->errors = word_make(responder->tag, now.errors);
	if (bb_post_write(responder->qp, WR_ORDER, &sge, 1, responder->peer_ctl + first,
			  responder->peer_rkey, BB_SEND_SIGNALED) != 0)
		return;
	bb_qp_ring(responder->qp);
	responder->reverse.orders++;
	responder->last_sent = now;
}

bool
responder_poll(struct responder *responder)
{
	uint64_t word =
		rte_be_to_cpu_64(__atomic_load_n(&responder->ctl->forward_end, __ATOMIC_ACQUIRE));
	struct tester *t = &responder->t;
	unsigned int n = 0;

	if (word >> WORD_BITS != responder->tag)
		test_begin(responder, word >> WORD_BITS);
	if (responder->tag == 0)
		return false;
	if (!responder->refused && !t->fatal) {
		read_ends(responder);
		n = flows_poll(t);
		if (responder->forward.recv_posted < responder->forward.end && !t->fatal)
			flow_post(t, &responder->forward);
		/*
		 * The peer has received all messages that this process has sent back, because it
		 * sends its next message only after that. So counts them as received.
		 */
		responder->reverse.recv_done = responder->reverse.done;
		if (t->nflows == 2 && !t->fatal && !flow_finished(&responder->reverse))
			flow_post(t, &responder->reverse);
	}
	send_counts(responder);
	return n > 0;
}
