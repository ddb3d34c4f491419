/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The clock, the network, the hosts and their traffic. */
#include "roce_sim.h"
#include "roce_frame.h"

#define LINK_DELAY (2 * SIM_US)
#define RUN_PERIOD SIM_US /* a queue pair sends BUDGET packets in this time */
#define BUDGET     16u
#define MAX_EVENTS 20000000u /* limit of events in one call of sim_run() */

enum event {
	EV_PACKET,
	EV_RUN,
	EV_TIMER,
	EV_RECV,
};

struct sim_event {
	uint64_t at, order;
	enum event what;
	struct sim_qp *q;
	struct sim_host *host;
	uint8_t *frame;
	size_t len;
};

uint64_t
sim_rnd(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void
sim_fail(const struct sim *s, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_error("seed %ju, %ju ns, %ju packets: %s\n", (uintmax_t)s->seed, (uintmax_t)s->now,
		    (uintmax_t)s->stats.packets, text);
	fail();
	abort(); /* not reached: fail() does not return */
}

/* ---- Events: a heap ordered by time, then by creation */

static bool
before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
push(struct sim *s, struct sim_event e)
{
	size_t i = s->heap_n++;

	if (s->heap_n > s->heap_room) {
		s->heap_room = s->heap_room * 2 + 64;
		s->heap = realloc(s->heap, s->heap_room * sizeof(*s->heap));
		assert_non_null(s->heap);
	}
	e.order = s->order++;
	for (; i != 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct sim_event
pop(struct sim *s)
{
	struct sim_event first = s->heap[0], last = s->heap[--s->heap_n];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < s->heap_n; i = child) {
		if (child + 1 < s->heap_n && before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!before(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return first;
}

/* ---- Packets */

static bool
hits(struct sim *s, uint32_t ppm)
{
	return ppm != 0 && sim_below(&s->rng, 1000000) < ppm;
}

static struct sim_host *
host_of(struct sim *s, const uint8_t gid[16])
{
	uint32_t i = (uint32_t)gid[14] << 8 | gid[15];

	if (i >= s->host_n || memcmp(s->hosts[i].gid, gid, 16) != 0)
		return NULL;
	return &s->hosts[i];
}

static void
deliver_copy(struct sim *s, struct sim_host *to, const uint8_t *frame, size_t len, uint64_t at)
{
	struct sim_event e = {.at = at, .what = EV_PACKET, .host = to, .len = len};

	e.frame = malloc(len);
	assert_non_null(e.frame);
	memcpy(e.frame, frame, len);
	push(s, e);
}

/* Flips bits of a frame, so that it may become any other frame. */
static void
corrupt(struct sim *s, uint8_t *frame, size_t len)
{
	uint32_t n = 1 + sim_below(&s->rng, 8);

	s->stats.corrupted++;
	while (n-- != 0)
		frame[sim_below(&s->rng, (uint32_t)len)] ^= (uint8_t)(1u << sim_below(&s->rng, 8));
}

/* Returns true if only a timer could detect the loss of @pkt. */
static bool
only_by_time(const struct sim_qp *q, const struct bb_roce_pkt *pkt)
{
	const struct bb_roce_resp *r = &q->peer->qp.resp;

	return q->posted == q->load.messages || (r->nak_sent && pkt->psn == r->epsn);
}

bool
sim_transmit(struct sim_qp *q, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
	     const struct bb_roce_iov *iov, uint32_t n)
{
	struct sim *s = q->host->sim;
	const struct sim_faults *f = &q->host->out;
	struct sim_host *to = host_of(s, net->dst);
	uint8_t frame[ROCE_FRAME_MAX];
	uint64_t at = s->now + LINK_DELAY + f->delay;
	size_t len, i;

	if (s->now < f->stalled || hits(s, f->tx_full)) {
		s->stats.full++;
		return false;
	}
	len = roce_frame_build(frame, net, pkt, iov, n);
	s->stats.packets++;
	for (i = 0; i < len; i++)
		s->digest = (s->digest ^ frame[i]) * 0x100000001b3u;
	if (to == NULL || (hits(s, f->loss) && !(f->untimed && only_by_time(q, pkt)))) {
		s->stats.lost++;
		return true;
	}
	if (hits(s, f->dup)) {
		s->stats.doubled++;
		deliver_copy(s, to, frame, len, at + sim_below(&s->rng, 100000));
	}
	if (hits(s, f->reorder)) {
		s->stats.reordered++;
		at += sim_below(&s->rng, 50000);
	}
	if (hits(s, f->corrupt))
		corrupt(s, frame, len);
	deliver_copy(s, to, frame, len, at);
	return true;
}

static void
receive(struct sim *s, struct sim_host *host, const uint8_t *frame, size_t len)
{
	struct bb_roce_pkt pkt;
	struct roce_frame f;

	if (!roce_frame_split(&f, frame, len) || !roce_frame_icrc_ok(&f, frame) ||
	    memcmp(f.net.dst, host->gid, 16) != 0) {
		s->stats.bad++;
		return;
	}
	if (bb_roce_parse(&pkt, f.bth, f.bth_len) != BB_ROCE_OK)
		sim_fail(s, "a packet with the right ICRC cannot be parsed");
	if (pkt.dqpn == 0 || pkt.dqpn > host->qp_n)
		sim_fail(s, "a packet for QP %u", pkt.dqpn);
	bb_roce_rx(&host->qps[pkt.dqpn - 1]->qp, &pkt, &f.net, s->now);
	sim_wake(host->qps[pkt.dqpn - 1]);
}

/* ---- Messages of a queue pair */

/*
 * Reserves a range of the peer's memory that no outstanding message uses; returns false if there
 * is none.
 */
static bool
take_range(struct sim_qp *q, struct sim_msg *m)
{
	uint64_t room = q->peer->size - q->peer->write_from, start = q->area, i;

	if (start % room + m->len > room)
		start += room - start % room;
	for (i = q->done; i < q->posted; i++)
		if (start + m->len - q->msgs[i].area > room)
			return false;
	/* The arrival time of a UC packet is unbounded, so each range is used once. */
	if (q->qp.attr.type == BB_ROCE_UC && start + m->len > room)
		sim_fail(q->host->sim, "no memory for %ju bytes of UC", (uintmax_t)room);
	m->off = q->peer->write_from + start % room;
	m->area = start;
	q->area = start + m->len;
	return true;
}

/* Makes a READ of the bytes that the newest outstanding WRITE has written, or of constant bytes. */
static void
make_read(struct sim_qp *q, struct sim_msg *m)
{
	const struct sim_qp *p = q->peer;
	uint64_t room = p->write_from - p->read_from;
	const struct sim_msg *w = q->posted > q->done ? &q->msgs[q->posted - 1] : NULL;

	if (w != NULL && w->kind == BB_ROCE_MSG_WRITE && m->len <= w->len) {
		m->off = w->off;
		m->area = w->area;
		m->key = w->key;
		m->key_off = 0;
		return;
	}
	if (m->len > room)
		m->len = (uint32_t)room;
	m->key = p->rkey;
	m->key_off = sim_below(&q->rng, (uint32_t)(room - m->len) + 1);
	m->off = p->read_from + m->key_off;
}

void
sim_make(struct sim_qp *q, struct sim_msg *m, uint8_t kind, uint32_t len)
{
	*m = (struct sim_msg){.kind = kind, .len = len, .area = q->area};
	m->key = sim_rnd(&q->rng);
	m->imm = (uint32_t)sim_rnd(&q->rng);
	if (kind == BB_ROCE_MSG_READ)
		make_read(q, m);
	if (kind > BB_ROCE_MSG_READ) {
		m->len = 8;
		m->off = 8 * (uint64_t)sim_below(&q->rng, SIM_WORDS);
		m->swap_add = sim_rnd(&q->rng);
		m->compare = sim_below(&q->rng, 2) ? 0 : sim_rnd(&q->rng);
	}
	if (kind <= BB_ROCE_MSG_WRITE_IMM && kind != BB_ROCE_MSG_WRITE &&
	    sim_below(&q->rng, 4) == 0)
		m->flags |= BB_ROCE_SOLICITED;
	if (hits(q->host->sim, q->load.fences))
		m->flags |= BB_ROCE_FENCE;
}

bool
sim_post(struct sim_qp *q, const struct sim_msg *want)
{
	bool writes = want->kind == BB_ROCE_MSG_WRITE || want->kind == BB_ROCE_MSG_WRITE_IMM;
	struct bb_roce_msg msg;
	struct sim_msg *m;

	if (q->posted - q->done >= SIM_SLOTS)
		return false;
	if (q->posted == q->room) {
		q->room = q->room * 2 + 64;
		q->msgs = realloc(q->msgs, q->room * sizeof(*q->msgs));
		assert_non_null(q->msgs);
	}
	m = &q->msgs[q->posted];
	*m = *want;
	if (writes && !take_range(q, m))
		return false;
	memset(&msg, 0, sizeof(msg));
	msg.cookie = q->posted++;
	msg.kind = m->kind;
	msg.flags = m->flags;
	msg.len = m->len;
	msg.imm = m->imm;
	msg.rkey = q->peer->rkey;
	msg.raddr = q->peer->va + m->off;
	msg.swap_add = m->swap_add;
	msg.compare = m->compare;
	if (q->qp.attr.type == BB_ROCE_UD) {
		const struct sim_qp *to = q->host->sim->qps[m->dest];

		msg.dqpn = to->qp.attr.qpn;
		msg.qkey = to->qp.attr.qkey;
		msg.net = &q->nets[to->host - q->host->sim->hosts];
	}
	OK(bb_roce_post(&q->qp, &msg));
	sim_wake(q);
	return true;
}

static uint32_t
random_len(struct sim_qp *q)
{
	uint32_t mtu = q->qp.attr.mtu, max = q->load.max_len, len;

	switch (sim_below(&q->rng, 8)) {
	case 0:
		len = sim_below(&q->rng, 3);
		break;
	case 1:
		len = mtu - 1 + sim_below(&q->rng, 3);
		break;
	case 2:
		len = sim_below(&q->rng, max + 1);
		break;
	case 3:
		len = mtu * sim_below(&q->rng, 5);
		break;
	default:
		len = sim_below(&q->rng, 200);
	}
	return len < max ? len : max;
}

static void
post_load(struct sim_qp *q)
{
	struct sim *s = q->host->sim;

	while (q->posted < q->load.messages && q->posted - q->done < q->load.depth &&
	       s->now >= q->next_post && !q->failed) {
		uint8_t kind = (uint8_t)sim_below(&q->rng, 8);
		struct sim_msg m;

		if ((q->load.kinds >> kind & 1) == 0)
			continue;
		sim_make(q, &m, kind, random_len(q));
		if (q->qp.attr.type == BB_ROCE_UD)
			m.dest = sim_below(&q->rng, (uint32_t)s->qp_n);
		if (!sim_post(q, &m))
			return;
		if (q->load.think != 0)
			q->next_post = s->now + q->load.think;
	}
}

/* ---- Time */

void
sim_wake(struct sim_qp *q)
{
	struct sim *s = q->host->sim;

	if (q->run_at != UINT64_MAX)
		return;
	q->run_at = s->now + RUN_PERIOD;
	push(s, (struct sim_event){.at = q->run_at, .what = EV_RUN, .q = q});
}

static void
watch_deadline(struct sim_qp *q)
{
	uint64_t at = bb_roce_deadline(&q->qp);

	if (at == UINT64_MAX || at >= q->timer_at)
		return;
	q->timer_at = at;
	push(q->host->sim, (struct sim_event){.at = at, .what = EV_TIMER, .q = q});
}

static void
run_qp(struct sim_qp *q)
{
	struct sim *s = q->host->sim;

	q->run_at = UINT64_MAX;
	if (q->failed && !q->flushed) {
		q->flushed = true;
		bb_roce_qp_flush(&q->qp, BB_SYN_WR_FLUSH);
	}
	post_load(q);
	(void)bb_roce_run(&q->qp, BUDGET, s->now);
	watch_deadline(q);
	if (bb_roce_busy(&q->qp))
		sim_wake(q);
	if (q->posted < q->load.messages && !q->failed && q->next_post > s->now &&
	    q->run_at == UINT64_MAX) {
		q->run_at = q->next_post;
		push(s, (struct sim_event){.at = q->run_at, .what = EV_RUN, .q = q});
	}
}

void
sim_recv_later(struct sim_qp *q)
{
	struct sim *s = q->host->sim;

	if (q->recv_delay == 0)
		q->recvs++;
	else
		push(s, (struct sim_event){.at = s->now + q->recv_delay, .what = EV_RECV, .q = q});
}

void
sim_recvs(struct sim_qp *q, uint64_t n)
{
	q->recvs += n;
}

/*
 * Returns true if the event's host is stalled. The event is then delayed, or dropped if too many
 * packets wait.
 */
static bool
put_off(struct sim *s, struct sim_event *e)
{
	struct sim_host *h = e->what == EV_PACKET ? e->host : e->q->host;

	if (h->stall_max == 0)
		return false;
	if (e->at >= h->stalled && e->at >= h->stall_next) {
		h->stalled = e->at + sim_below(&s->rng, (uint32_t)h->stall_max);
		h->stall_next = h->stalled + sim_below(&s->rng, (uint32_t)h->stall_every);
		h->waiting = 0;
		s->stats.stalls++;
	}
	if (e->at >= h->stalled)
		return false;
	if (e->what == EV_PACKET && h->waiting++ >= SIM_RX_RING) {
		s->stats.lost++;
		free(e->frame);
		return true;
	}
	if (e->what == EV_TIMER && e->at == e->q->timer_at)
		e->q->timer_at = h->stalled;
	if (e->what == EV_RUN)
		e->q->run_at = h->stalled;
	e->at = h->stalled;
	push(s, *e);
	return true;
}

void
sim_run(struct sim *s, uint64_t until)
{
	uint64_t end = s->stats.events + MAX_EVENTS;

	while (s->heap_n != 0 && s->heap[0].at <= until) {
		struct sim_event e = pop(s);

		if (s->stats.events == end)
			sim_fail(s, "it does not come to an end");
		s->now = e.at;
		s->stats.events++;
		if (put_off(s, &e))
			continue;
		switch (e.what) {
		case EV_PACKET:
			receive(s, e.host, e.frame, e.len);
			free(e.frame);
			break;
		case EV_RUN:
			run_qp(e.q);
			break;
		case EV_TIMER:
			/*
			 * Stale: the timer was delayed meanwhile, and a newer event watches it.
			 */
			if (e.at != e.q->timer_at)
				break;
			e.q->timer_at = UINT64_MAX;
			bb_roce_tick(&e.q->qp, s->now);
			watch_deadline(e.q);
			sim_wake(e.q);
			break;
		default:
			e.q->recvs++;
			break;
		}
	}
	if (s->now < until && until != UINT64_MAX)
		s->now = until;
}

bool
sim_key_busy(struct sim_qp *q)
{
	const uint32_t mtu = q->qp.attr.mtu;

	if (q->busy == 0)
		return false;
	q->busy--;
	if (q->exec_off != 0)
		q->exec_off = (q->exec_off - 1) / mtu * mtu;
	return true;
}

bool
sim_missing(struct sim_qp *q)
{
	struct sim *s = q->host->sim;

	if (s->missing == 0 || q->qp.attr.type != BB_ROCE_RC ||
	    sim_below(&q->rng, 1000000) >= s->missing)
		return false;
	s->missed++;
	return true;
}

void
sim_drop_events(struct sim *s)
{
	while (s->heap_n != 0)
		free(pop(s).frame);
	free(s->heap);
}

void
sim_finish(struct sim *s)
{
	uint64_t i;

	sim_run(s, UINT64_MAX);
	for (i = 0; i < s->qp_n; i++) {
		const struct sim_qp *q = s->qps[i];

		if (!q->failed && (q->posted < q->load.messages || q->done < q->posted))
			sim_fail(s, "QP %u of host %u is stuck: %ju posted, %ju done, %ju to do",
				 q->qp.attr.qpn, (unsigned int)(q->host - s->hosts),
				 (uintmax_t)q->posted, (uintmax_t)q->done,
				 (uintmax_t)q->load.messages);
	}
}
