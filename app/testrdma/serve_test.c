/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target's part of a test, in the listening process.
 *
 * The target posts and checks receives, and posts the operations of the reverse direction. It uses
 * the same types of flows as the initiator (run.c), seen from the remote end. The parameters of a
 * test come from the peer, so all of them are checked.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "remote.h"

struct worksite {
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
	uint64_t tag;           /* tag of the current test; 0 if none */
	struct remote_ctl said; /* counts last written to the initiator */
	bool refused;           /* the target has refused the current test */
	uint64_t recvs, errors; /* sums of earlier tests */
};

static void
close_queues(struct worksite *site)
{
	if (site->qp != NULL)
		bb_qp_destroy(site->qp);
	if (site->t.scq != NULL)
		bb_cq_destroy(site->t.scq);
	if (site->t.rcq != NULL)
		bb_cq_destroy(site->t.rcq);
}

static int
open_queues(struct worksite *site, uint32_t depth, uint32_t sgl, uint32_t max_inline)
{
	struct tester *t = &site->t;
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
	return bb_qp_create(t->pd, &init, &site->qp);
}

int
worksite_create(struct tester *server, const struct remote_hello *hello, uint8_t *mem,
		struct bb_mr *mr, struct worksite **out)
{
	uint32_t depth = rte_be_to_cpu_32(hello->depth), sgl = rte_be_to_cpu_32(hello->sgl);
	uint32_t max_inline = rte_be_to_cpu_32(hello->max_inline);
	struct worksite *site;
	struct tester *t;
	int rc;

	if (depth == 0 || depth > server->attr.max_qp_wr - ORDERS_MAX || sgl == 0 ||
	    sgl > RTE_MIN(RTE_MIN(server->attr.max_sge, server->attr.max_recv_sge),
			  (uint32_t)MAX_SGL) ||
	    max_inline > server->attr.max_inline)
		return -EINVAL;
	site = calloc(1, sizeof(*site));
	if (site == NULL)
		return -ENOMEM;
	t = &site->t;
	t->dev = server->dev;
	t->attr = server->attr;
	t->pd = server->pd;
	t->tsc_hz = server->tsc_hz;
	t->o.depth = depth;
	t->o.sgl = sgl;
	site->index = rte_be_to_cpu_32(hello->index);
	site->conns = rte_be_to_cpu_32(hello->conns);
	t->remote.name = "the target's";
	t->remote.mem = mem;
	t->remote.len = rte_be_to_cpu_64(hello->bytes);
	t->remote.mr = mr;
	site->ctl = ctl_at(mem, t->remote.len, site->index);
	site->peer_addr = rte_be_to_cpu_64(hello->addr);
	site->peer_rkey = rte_be_to_cpu_32(hello->rkey);
	site->peer_ctl = site->peer_addr + t->remote.len + (uint64_t)site->index * REMOTE_CTL;
	rc = open_queues(site, depth, sgl, max_inline);
	if (rc != 0) {
		worksite_destroy(site);
		return rc;
	}
	site->qp->user = &site->reverse;
	*out = site;
	return 0;
}

struct bb_qp *
worksite_qp(struct worksite *site)
{
	return site->qp;
}

const struct tester *
worksite_tester(const struct worksite *site)
{
	return &site->t;
}

uint64_t
worksite_receives(const struct worksite *site)
{
	return site->recvs + site->test.res.recvs;
}

/*
 * Returns the number of errors of the current test, except failed completions. The target does not
 * count these as errors, because they also occur when the peer exits. A peer that still runs
 * reports them itself.
 */
static uint64_t
test_errors(const struct worksite *site)
{
	return site->test.res.errors - site->test.res.broken;
}

uint64_t
worksite_errors(const struct worksite *site)
{
	return site->errors + test_errors(site);
}

void
worksite_destroy(struct worksite *site)
{
	close_queues(site);
	free(site);
}

/* Returns true if the parameters of a test are consistent and the test fits into the memory. */
static bool
test_fits(const struct worksite *site, const struct test *test, uint32_t offset)
{
	const struct tester *t = &site->t;
	uint64_t room = t->remote.len - 2 * EDGE, slots;
	uint32_t flows = test->e->two_way ? 2 : 1;

	slots = room / RTE_MAX(t->local.lay.stride, t->remote.lay.stride) / site->conns / flows;
	return (test->e->recv || test->e->two_way) && offset < 64 && test->slots > 0 &&
	       test->slots <= slots && test->window > 0 && test->window <= t->o.depth &&
	       test->window <= test->slots && test->burst > 0 && test->burst <= test->window &&
	       test->signal_every > 0 && test->signal_every <= test->window;
}

static bool
test_unpack(struct worksite *site)
{
	struct tester *t = &site->t;
	struct test *test = &site->test;
	struct remote_test from;
	uint32_t offset;

	memcpy(&from, &site->ctl->test, sizeof(from));
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
	return test_fits(site, test, offset);
}

static void
flow_init(struct worksite *site, struct pair *p, bool reverse)
{
	struct tester *t = &site->t;
	uint32_t flows = site->test.e->two_way ? 2 : 1;
	uint64_t slots = ((uint64_t)site->index * flows + reverse) * site->test.slots;
	uint8_t *ours = t->remote.mem + EDGE + slots * t->remote.lay.stride;
	uint64_t theirs = site->peer_addr + EDGE + slots * t->local.lay.stride;
	uint32_t orders = p->orders;

	memset(p, 0, sizeof(*p));
	p->orders = orders;
	p->t = t;
	p->index = site->index + (reverse ? site->conns : 0);
	p->wr_base = WR_ID(t->test_no, p->index);
	p->reverse = reverse;
	p->twin = reverse ? &site->forward : &site->reverse;
	p->in = p->twin;
	p->near = reverse ? &t->remote : &t->local;
	p->far = reverse ? &t->local : &t->remote;
	p->target_rkey = site->peer_rkey;
	if (reverse) {
		p->qp = site->qp;
		p->local = ours;
		/*
		 * No local pointer to the initiator's memory, which this process does not map.
		 * Requests get their address from target_delta.
		 */
		p->remote = NULL;
		p->target_delta = theirs;
	} else {
		p->peer = site->qp;
		p->remote = ours;
	}
	flow_open(p, 0);
}

/* Starts the test @tag, which the peer has requested. */
static void
test_begin(struct worksite *site, uint64_t tag)
{
	struct tester *t = &site->t;

	site->recvs += site->test.res.recvs;
	site->errors += test_errors(site);
	memset(&site->test.res, 0, sizeof(site->test.res));
	/*
	 * Refuses the test if receives are still posted. They belong to a test that was stopped
	 * early, and a message of the new test would consume one of them.
	 */
	site->refused = t->fatal ||
			(site->tag != 0 && site->forward.recv_posted != site->forward.recv_done);
	if (!site->refused && !test_unpack(site)) {
		say("a test of connection %u is refused: the operation does not involve the target, or "
		    "does not fit the memory",
		    site->index);
		site->refused = true;
	}
	site->tag = tag;
	memset(&site->said, 0, sizeof(site->said));
	if (site->refused)
		return;
	t->test = &site->test;
	t->flows = site->flows;
	t->nflows = site->test.e->two_way ? 2 : 1;
	site->flows[0] = &site->forward;
	site->flows[1] = &site->reverse;
	flow_init(site, &site->forward, false);
	flow_init(site, &site->reverse, true);
}

/* Reads, for each direction, the number of the first operation that the peer does not allow yet. */
static void
ends_take(struct worksite *site)
{
	struct pair *in = &site->forward, *back = &site->reverse;
	uint64_t end;

	if (word_read(&site->ctl->forward_end, site->tag, &end) && end > in->end)
		in->end = end;
	if (!site->test.e->two_way || !word_read(&site->ctl->reverse_end, site->tag, &end) ||
	    end <= back->end)
		return;
	/*
	 * flow_extend() requires that the last operation of the previous span is signalled. If that
	 * span is not complete, it is a rolling one, whose length is a multiple of signal_every. So
	 * its last operation is signalled.
	 */
	flow_extend(back, end);
	/*
	 * Counts the peer's receives as posted, because the peer posts a receive before it sends
	 * the message that this process sends back.
	 */
	back->recv_posted = end;
}

/*
 * Returns true if the counts in @now must be written to the peer. That is the case if they differ
 * from the counts last written, and the peer waits for them or the difference is large. Small
 * differences are collected, because each WRITE takes a slot of the send queue.
 */
static bool
worth_saying(const struct worksite *site, const struct remote_ctl *now)
{
	const struct remote_ctl *said = &site->said;
	uint64_t some = RTE_MAX(site->t.o.depth / 4, 1u);

	if (memcmp(now, said, sizeof(*now)) == 0)
		return false;
	return said->test.test_no == 0 || now->errors != said->errors ||
	       now->recv_done == said->recv_posted ||
	       now->recv_posted - said->recv_posted >= some ||
	       now->recv_done == site->forward.end || now->done == site->reverse.end ||
	       now->done - said->done >= some;
}

/*
 * Writes the counts of this process to the peer if worth_saying() returns true and the send queue
 * has room.
 */
static void
answer(struct worksite *site)
{
	const size_t first = offsetof(struct remote_ctl, recv_posted);
	const struct test *test = &site->test;
	struct remote_ctl now = {.test.test_no = 1}, *ctl = site->ctl;
	struct bb_sge sge = {.addr = (uint64_t)(uintptr_t)ctl + first,
			     .len = sizeof(*ctl) - first,
			     .lkey = site->t.remote.mr->lkey};

	now.errors = site->refused ? WORD_REFUSED : test->res.errors;
	if (!site->refused) {
		now.recv_posted = site->forward.recv_posted;
		now.recv_done = site->forward.recv_done;
		now.done = site->reverse.done;
	}
	if (site->reverse.orders >= ORDERS_MAX || !worth_saying(site, &now))
		return;
	ctl->recv_posted = word_make(site->tag, now.recv_posted);
	ctl->recv_done = word_make(site->tag, now.recv_done);
	ctl->done = word_make(site->tag, now.done);
	ctl->errors = word_make(site->tag, now.errors);
	if (bb_post_write(site->qp, WR_ORDER, &sge, 1, site->peer_ctl + first, site->peer_rkey,
			  BB_SEND_SIGNALED) != 0)
		return;
	bb_qp_ring(site->qp);
	site->reverse.orders++;
	site->said = now;
}

bool
worksite_poll(struct worksite *site)
{
	uint64_t word =
		rte_be_to_cpu_64(__atomic_load_n(&site->ctl->forward_end, __ATOMIC_ACQUIRE));
	struct tester *t = &site->t;
	unsigned int n = 0;

	if (word >> WORD_BITS != site->tag)
		test_begin(site, word >> WORD_BITS);
	if (site->tag == 0)
		return false;
	if (!site->refused && !t->fatal) {
		ends_take(site);
		n = flows_poll(t);
		if (site->forward.recv_posted < site->forward.end && !t->fatal)
			flow_post(t, &site->forward);
		/*
		 * Counts the messages of this process as received, because the peer sends its next
		 * message only after it has received the previous one back.
		 */
		site->reverse.recv_done = site->reverse.done;
		if (t->nflows == 2 && !t->fatal && !flow_finished(&site->reverse))
			flow_post(t, &site->reverse);
	}
	answer(site);
	return n > 0;
}
