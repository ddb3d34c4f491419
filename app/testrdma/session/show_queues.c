/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command "show" for the queues, memory and errors of a run's lcores. It also works during a
 * run, because any thread may read these numbers and only the main thread frees the queues.
 */
#include "session.h"

/*
 * Shows the queues of the listener's connections, or prints that there are none. @return true if
 * the command has nothing else to show.
 */
static bool
served(const struct session *s, const char *head,
       void (*look)(uint32_t conn, struct bb_qp *qp, const struct tester *t))
{
	if (s->run.server == NULL && runner_tester(&s->run, 0) != NULL)
		return false;
	if (s->run.server == NULL) {
		printf("there are no queues; start creates them\n");
	} else if (serve_counted(s->run.server).present == 0) {
		printf("there are no queues; a connection creates them\n");
	} else {
		fputs(head, stdout);
		serve_each(s->run.server, look);
	}
	return true;
}

/* Size of the text that names the owner of a queue, a worker or a connection. */
#define WHOSE 24

static const char *
worker_name(const struct runner *r, uint32_t i, char name[WHOSE])
{
	snprintf(name, WHOSE, "lcore %u", runner_lcore(r, i));
	return name;
}

static const char *
conn_name(uint32_t conn, char name[WHOSE])
{
	snprintf(name, WHOSE, "connection %u", conn);
	return name;
}

static const char qp_head[] =
	"QP       of            pair side      state     posted  db/op   out     full   receives"
	"   out       CQEs   errors\n";

static void
qp_line(const char *whose, uint32_t index, struct bb_qp *qp, const char *role)
{
	struct bb_qp_stats stats;
	struct bb_qp_attr attr;
	char ratio[16] = "-";

	if (qp == NULL || bb_qp_stats(qp, &stats) != 0)
		return;
	bb_qp_attr_init(&attr);
	if (stats.posted > 0)
		snprintf(ratio, sizeof(ratio), "%.3f",
			 (double)stats.doorbells / (double)stats.posted);
	printf("0x%06x %-13s %4u %-9s %-5s %10" PRIu64 " %6s %5u %8" PRIu64 " %10" PRIu64
	       " %5u %10" PRIu64 " %8" PRIu64 "\n",
	       qp->qpn, whose, index, role,
	       bb_qp_query(qp, &attr) == 0 ? bb_qp_state_name(attr.state) : "?", stats.posted,
	       ratio, stats.outstanding, stats.full, stats.recv_posted, stats.recv_outstanding,
	       stats.send_cqes, stats.errors);
}

static void
qp_served(uint32_t conn, struct bb_qp *qp, const struct tester *t)
{
	char whose[WHOSE];

	(void)t;
	qp_line(conn_name(conn, whose), 0, qp, "target");
}

void
show_qp(struct session *s)
{
	const struct tester *t;
	char whose[WHOSE];
	uint32_t i, k;

	if (served(s, qp_head, qp_served))
		return;
	fputs(qp_head, stdout);
	for (i = 0; (t = runner_tester(&s->run, i)) != NULL; i++) {
		worker_name(&s->run, i, whose);
		for (k = 0; k < t->npairs; k++) {
			qp_line(whose, t->pairs[k].index, t->pairs[k].qp, "initiator");
			qp_line(whose, t->pairs[k].index, t->pairs[k].peer, "target");
		}
	}
}

static const char cq_head[] =
	"CQ       of            takes        depth       CQEs   errors   purged\n";

static void
cq_line(const char *whose, const struct bb_cq *cq, const char *takes)
{
	struct bb_cq_stats stats;

	if (cq == NULL || bb_cq_stats(cq, &stats) != 0)
		return;
	printf("0x%06x %-13s %-8s %9u %10" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", cq->cqn, whose,
	       takes, bb_cq_depth(cq), stats.cqes, stats.errors, stats.purged);
}

static void
cq_served(uint32_t conn, struct bb_qp *qp, const struct tester *t)
{
	char whose[WHOSE];

	(void)qp;
	conn_name(conn, whose);
	cq_line(whose, t->scq, "sends");
	cq_line(whose, t->rcq, "receives");
}

void
show_cq(struct session *s)
{
	const struct tester *t;
	char whose[WHOSE];
	uint32_t i;

	if (served(s, cq_head, cq_served))
		return;
	fputs(cq_head, stdout);
	for (i = 0; (t = runner_tester(&s->run, i)) != NULL; i++) {
		worker_name(&s->run, i, whose);
		cq_line(whose, t->scq, "sends");
		cq_line(whose, t->rcq, "receives");
	}
}

static const char mr_head[] =
	"lkey       rkey       of            memory                bytes address\n";

static void
mr_line(const char *whose, const struct side *side)
{
	const struct bb_mr *mr = side->mr;
	char rkey[16] = "none";

	if (mr->rkey != 0)
		snprintf(rkey, sizeof(rkey), "0x%08x", mr->rkey);
	printf("0x%08x %-10s %-13s %-15s %11zu %p\n", mr->lkey, rkey, whose, side->name, mr->len,
	       mr->addr);
}

static void
mr_served(uint32_t conn, struct bb_qp *qp, const struct tester *t)
{
	char whose[WHOSE];

	(void)qp;
	mr_line(conn_name(conn, whose), &t->remote);
}

void
show_mr(struct session *s)
{
	const struct tester *t;
	char whose[WHOSE];
	uint32_t i;

	if (served(s, mr_head, mr_served))
		return;
	fputs(mr_head, stdout);
	for (i = 0; (t = runner_tester(&s->run, i)) != NULL; i++) {
		worker_name(&s->run, i, whose);
		mr_line(whose, &t->local);
		mr_line(whose, &t->remote);
	}
}

/* Prints the failed WQE of @qp, if there is one. @return number of printed WQEs, 0 or 1. */
static uint32_t
wqe_text(const char *whose, uint32_t index, struct bb_qp *qp)
{
	char text[BB_ERROR_TEXT_MAX];

	if (qp == NULL || bb_qp_error_text(qp, text, sizeof(text)) <= 0)
		return 0;
	printf("%s, pair %u:\n%s", whose, index, text);
	return 1;
}

static void
wqe_served(uint32_t conn, struct bb_qp *qp, const struct tester *t)
{
	char whose[WHOSE];

	(void)t;
	if (wqe_text(conn_name(conn, whose), 0, qp) == 0)
		printf("%s, pair 0: no WQE has failed\n", whose);
}

/* Prints the first failed WQE of each queue pair, with the keys in the WQE. */
void
show_wqe(struct session *s)
{
	const struct tester *t;
	char whose[WHOSE];
	uint32_t i, k, n = 0;

	if (s->run.server != NULL && served(s, "", wqe_served))
		return;
	for (i = 0; (t = runner_tester(&s->run, i)) != NULL; i++) {
		for (k = 0; k < 2 * t->npairs; k++) {
			const struct pair *p = &t->pairs[k / 2];

			n += wqe_text(worker_name(&s->run, i, whose), p->index,
				      k % 2 == 0 ? p->qp : p->peer);
		}
	}
	if (n == 0)
		printf("no WQE has failed\n");
}

#define MAX_DROPS 128 /* more than the number of drop reasons */

/* Prints those drop counters of @layer that are not 0. */
static void
drops_line(const char *what, const struct bb_dev_drop *drops, int n, enum bb_drop_layer layer)
{
	const char *before = ": ";
	int i;

	fputs(what, stdout);
	for (i = 0; i < n; i++) {
		if (drops[i].layer != layer || drops[i].count == 0)
			continue;
		printf("%s%s %" PRIu64, before, drops[i].reason, drops[i].count);
		before = ", ";
	}
	printf("%s\n", before[0] == ':' ? ": none" : "");
}

static void
show_drops(struct session *s)
{
	struct bb_dev_drop drops[MAX_DROPS];
	int n = bb_dev_drops(s->t.dev, drops, MAX_DROPS);

	if (n < 0) {
		printf("this device does not report packets that it drops\n");
		return;
	}
	n = RTE_MIN(n, MAX_DROPS);
	drops_line("packets dropped", drops, n, BB_DROP_ROCE);
	if (n > 0 && drops[0].layer == BB_DROP_PORT)
		drops_line("frames dropped at the port", drops, n, BB_DROP_PORT);
}

static void
show_counters(struct session *s)
{
	struct bb_dev_stats d;

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
	printf("local errors: protection %" PRIu64 ", length %" PRIu64 ", CQ overflow %" PRIu64 ""
	       ", flushed %" PRIu64 "\n",
	       d.local_protection_err, d.local_length_err, d.cq_overflow, d.flushed);
	printf("congestion: marked packets %" PRIu64 ", notifications sent %" PRIu64
	       ", received %" PRIu64 "\n",
	       d.ecn_marked, d.cnp_sent, d.cnp_handled);
}

void
show_errors(struct session *s)
{
	struct totals totals;

	runner_totals(&s->run, &totals);
	printf("errors found %" PRIu64 "\n", totals.errors);
	show_counters(s);
	show_drops(s);
}
