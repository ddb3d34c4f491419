/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "remote.h"
#include "stall.h"

/*
 * If the number of operations is not known, the initiator allows some operations in advance:
 * ROLL_WINDOWS times the maximum that may be outstanding, and at least ROLL_LEAST.
 */
#define ROLL_WINDOWS 8
#define ROLL_LEAST   64

static struct remote_ctl *
block_of(const struct tester *t, const struct pair *p)
{
	return ctl_at(t->local.mem, t->local.len, p->index);
}

/*
 * Posts a WRITE that copies @len bytes at offset @off of the local control block to the same offset
 * of the target's control block.
 */
static void
order_post(struct tester *t, struct pair *p, size_t off, size_t len)
{
	uint8_t *from = (uint8_t *)block_of(t, p) + off;
	uint64_t raddr = (uint64_t)(uintptr_t)ctl_at(t->remote.mem, t->remote.len, p->index) + off +
			 p->target_delta;
	struct bb_sge sge = {
		.addr = (uint64_t)(uintptr_t)from, .len = (uint32_t)len, .lkey = t->local.mr->lkey};
	int rc = bb_post_write(p->qp, WR_ORDER, &sge, 1, raddr, p->target_rkey, BB_SEND_SIGNALED);

	if (unlikely(rc != 0)) {
		report_fail(t, "pair %u: a control message to the target was not posted: %s",
			    p->index,
			    rc == -EAGAIN ? "the send queue is full before its depth is reached"
					  : strerror(-rc));
		t->fatal = true;
		return;
	}
	p->orders++;
	bb_qp_ring(p->qp);
}

/*
 * Writes the limits of both directions to the target, unless the target has them. A limit, here
 * called end, is the number of the first operation that may not start yet.
 */
static void
send_ends(struct tester *t, struct pair *p)
{
	struct pair *back = t->test->e->two_way ? p->twin : NULL;
	struct remote_ctl *ctl = block_of(t, p);
	uint64_t tag = test_tag(t->test_no);

	if (p->sent_end == p->end && (back == NULL || back->sent_end == back->end))
		return;
	if (p->orders >= ORDERS_MAX)
		return;
	__atomic_store_n(&ctl->forward_end, word_make(tag, p->end), __ATOMIC_RELEASE);
	p->sent_end = p->end;
	if (back != NULL) {
		__atomic_store_n(&ctl->reverse_end, word_make(tag, back->end), __ATOMIC_RELEASE);
		back->sent_end = back->end;
	}
	order_post(t, p, offsetof(struct remote_ctl, forward_end), 2 * sizeof(uint64_t));
}

static uint64_t
roll_by(const struct test *test)
{
	uint64_t ops = RTE_MAX(ROLL_WINDOWS * test->window, (uint32_t)ROLL_LEAST);

	/*
	 * If --rate is given, allows at most the operations of 10 ms in advance, because allowed
	 * operations are executed even after the schedule has ended.
	 */
	if (test->rate != 0)
		ops = RTE_MIN(ops, RTE_MAX(test->rate / 100, 1u));
	/*
	 * Rounds up to a multiple of signal_every. The last allowed operation is then signalled, so
	 * the timed operations may end with it.
	 */
	return RTE_ALIGN_MUL_CEIL(ops, (uint64_t)test->signal_every);
}

void
remote_open(struct pair *p, uint64_t ops)
{
	struct tester *t = p->t;

	p->rolling = ops == 0;
	flow_open(p, p->posted + (ops == 0 ? roll_by(t->test) : ops));
	/*
	 * One WRITE reports to the peer how many operations each direction may execute. So it is
	 * posted only after both numbers are known.
	 */
	if (p->reverse || !t->test->e->two_way)
		send_ends(t, p->reverse ? p->twin : p);
}

void
remote_roll(struct tester *t, bool over)
{
	uint64_t by = roll_by(t->test);
	uint32_t i;

	for (i = 0; i < t->nflows; i++) {
		struct pair *p = t->flows[i];

		if (over) {
			p->rolling = false;
		} else if (p->rolling && t->test->e->ping_pong && p->reverse) {
			flow_extend(p, p->twin->end);
		} else if (p->rolling && p->end - p->posted < by / 2) {
			flow_extend(p, p->end + by);
		}
	}
}

static unsigned int
errors_take(struct tester *t, struct pair *p, uint64_t errors)
{
	if (errors == 0 || t->fatal)
		return 0;
	report_fail(t, "pair %u: the target %s; see the output of the target", p->index,
		    errors == WORD_REFUSED ? "rejected the test" : "found errors");
	t->fatal = true;
	return 1;
}

/*
 * If the count in the target's word @word is larger than *@to, copies it to *@to and returns 1.
 * Otherwise returns 0.
 */
static unsigned int
count_take(const uint64_t *word, uint64_t tag, uint64_t *to)
{
	uint64_t value;

	if (!word_read(word, tag, &value) || value <= *to)
		return 0;
	*to = value;
	return 1;
}

unsigned int
remote_read_counts(struct tester *t)
{
	uint64_t tag = test_tag(t->test_no), errors;
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < t->npairs; i++) {
		struct pair *p = &t->pairs[i], *back = p->twin;
		struct remote_ctl *ctl = block_of(t, p);

		if (t->test->e->recv) {
			n += count_take(&ctl->recv_posted, tag, &p->recv_posted);
			n += count_take(&ctl->recv_done, tag, &p->recv_done);
		}
		if (t->test->e->two_way) {
			n += count_take(&ctl->done, tag, &back->done);
			back->posted = back->done;
		}
		if (word_read(&ctl->errors, tag, &errors))
			n += errors_take(t, p, errors);
		send_ends(t, p);
	}
	return n;
}

static void
test_pack(const struct tester *t, struct remote_test *to)
{
	const struct test *test = t->test;

	memset(to, 0, sizeof(*to));
	to->seed = rte_cpu_to_be_64(t->o.seed);
	to->size = rte_cpu_to_be_32(test->size);
	to->slots = rte_cpu_to_be_32(test->slots);
	to->window = rte_cpu_to_be_32(test->window);
	to->burst = rte_cpu_to_be_32(test->burst);
	to->signal_every = rte_cpu_to_be_32(test->signal_every);
	to->use_inline = rte_cpu_to_be_32(test->use_inline);
	to->offset = rte_cpu_to_be_32(t->o.offset);
	to->test_no = rte_cpu_to_be_32(t->test_no);
	snprintf(to->op, sizeof(to->op), "%s", test->e->name);
}

/* Returns true if the target has acknowledged the test on every connection. */
static bool
all_ready(const struct tester *t)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < t->npairs; i++)
		if (!word_read(&block_of(t, &t->pairs[i])->errors, test_tag(t->test_no), &value))
			return false;
	return true;
}

void
remote_test(struct tester *t)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(t->o.patience * (double)t->tsc_hz);
	uint64_t tag = test_tag(t->test_no);
	uint32_t i;

	t->orders = t->cm != NULL && (t->test->e->recv || t->test->e->two_way) && !t->fatal;
	for (i = 0; i < t->npairs && t->orders && !t->fatal; i++) {
		struct pair *p = &t->pairs[i];
		struct remote_ctl *ctl = block_of(t, p);

		test_pack(t, &ctl->test);
		ctl->forward_end = ctl->reverse_end = word_make(tag, 0);
		/*
		 * Both WRITEs use one QP, so the parameters of the test arrive before the numbers
		 * of the allowed operations.
		 */
		order_post(t, p, offsetof(struct remote_ctl, test), sizeof(ctl->test));
		order_post(t, p, offsetof(struct remote_ctl, forward_end), 2 * sizeof(uint64_t));
	}
	while (t->orders && !t->fatal && !all_ready(t)) {
		flows_poll(t);
		if (stall_abandoned(t, rte_rdtsc()) || rte_rdtsc() < end)
			continue;
		report_fail(t,
			    "no answer from the target in %g s (--patience); see the output "
			    "of the target",
			    t->o.patience);
		t->fatal = true;
	}
	if (t->orders)
		remote_read_counts(t);
}
