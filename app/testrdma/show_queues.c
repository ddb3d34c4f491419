/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * show of what the runs' lcores have: queues, memory, what failed. While they run, too: the library
 * gives these numbers to any thread, and the main one frees the queues.
 */
#include "session.h"

static bool
none(const struct session *s)
{
	if (runner_test(&s->run, 0) != NULL)
		return false;
	printf("there are no queues; start makes them\n");
	return true;
}

static void
qp_line(uint32_t lcore, const struct pair *p, struct bb_qp *qp, const char *role)
{
	struct bb_qp_stats stats;
	struct bb_qp_attr attr;

	if (qp == NULL || bb_qp_stats(qp, &stats) != 0)
		return;
	bb_qp_attr_init(&attr);
	printf("QP 0x%06x lcore %u pair %u %s: %s, posted %" PRIu64 ", doorbells %" PRIu64
	       ", outstanding %u, full %" PRIu64 ", receives %" PRIu64 " of them waiting %u, "
	       "completions %" PRIu64 ", errors %" PRIu64 "\n",
	       qp->qpn, lcore, p->index, role,
	       bb_qp_query(qp, &attr) == 0 ? bb_qp_state_name(attr.state) : "?", stats.posted,
	       stats.doorbells, stats.outstanding, stats.full, stats.recv_posted,
	       stats.recv_outstanding, stats.send_cqes, stats.errors);
}

void
show_qp(struct session *s)
{
	const struct test *t;
	uint32_t i, k;

	if (none(s))
		return;
	for (i = 0; (t = runner_test(&s->run, i)) != NULL; i++) {
		for (k = 0; k < t->npairs; k++) {
			qp_line(i, &t->pairs[k], t->pairs[k].qp, "initiator");
			qp_line(i, &t->pairs[k], t->pairs[k].peer, "target");
		}
	}
}

static void
cq_line(uint32_t lcore, const struct bb_cq *cq, const char *role)
{
	struct bb_cq_stats stats;

	if (cq == NULL || bb_cq_stats(cq, &stats) != 0)
		return;
	printf("CQ of %s, lcore %u: depth %u, CQEs %" PRIu64 ", errors %" PRIu64 ", purged %" PRIu64
	       "\n",
	       role, lcore, bb_cq_depth(cq), stats.cqes, stats.errors, stats.purged);
}

void
show_cq(struct session *s)
{
	const struct test *t;
	uint32_t i;

	if (none(s))
		return;
	for (i = 0; (t = runner_test(&s->run, i)) != NULL; i++) {
		cq_line(i, t->scq, "sends");
		cq_line(i, t->rcq, "receives");
	}
}

static void
mr_line(uint32_t lcore, const struct side *side)
{
	const struct bb_mr *mr = side->mr;

	printf("MR of %s memory, lcore %u: %zu bytes at %p, lkey 0x%08x, rkey 0x%08x, %s\n",
	       side->name, lcore, mr->len, mr->addr, mr->lkey, mr->rkey,
	       mr->rkey != 0 ? "remote rights" : "local only");
}

void
show_mr(struct session *s)
{
	const struct test *t;
	uint32_t i;

	if (none(s))
		return;
	for (i = 0; (t = runner_test(&s->run, i)) != NULL; i++) {
		mr_line(i, &t->local);
		mr_line(i, &t->remote);
	}
}

/* The first failed WQE of each queue pair, with the keys it named. */
void
show_wqe(struct session *s)
{
	char text[BB_ERROR_TEXT_MAX];
	const struct test *t;
	uint32_t i, k, n = 0;

	for (i = 0; (t = runner_test(&s->run, i)) != NULL; i++) {
		for (k = 0; k < 2 * t->npairs; k++) {
			const struct pair *p = &t->pairs[k / 2];
			struct bb_qp *qp = k % 2 == 0 ? p->qp : p->peer;

			if (qp == NULL || bb_qp_error_text(qp, text, sizeof(text)) <= 0)
				continue;
			printf("lcore %u, pair %u:\n%s", i, p->index, text);
			n++;
		}
	}
	if (n == 0)
		printf("no WQE has failed\n");
}

void
show_errors(struct session *s)
{
	struct totals totals;
	struct bb_dev_stats d;

	runner_totals(&s->run, &totals);
	printf("errors found %" PRIu64 "\n", totals.errors);
	if (!s->t.attr.counters || bb_dev_stats(s->t.dev, &d) != 0) {
		printf("this device has no counters\n");
		return;
	}
	printf("as target: out of buffer %" PRIu64 ", out of sequence %" PRIu64
	       ", duplicate %" PRIu64 "\n",
	       d.out_of_buffer, d.out_of_sequence, d.duplicate);
	printf("as initiator: RNR NAK retries %" PRIu64 ", ack timeouts %" PRIu64
	       ", retries exceeded %" PRIu64 ", RNR retries exceeded %" PRIu64 "\n",
	       d.rnr_nak_retry, d.ack_timeout, d.retry_exceeded, d.rnr_retry_exceeded);
	printf("refused by peers: access %" PRIu64 ", operation %" PRIu64 ", request %" PRIu64 "\n",
	       d.remote_access_err, d.remote_op_err, d.remote_invalid_req);
	printf("here: protection %" PRIu64 ", length %" PRIu64 ", CQ overflow %" PRIu64
	       ", flushed %" PRIu64 "\n",
	       d.local_protection_err, d.local_length_err, d.cq_overflow, d.flushed);
}
