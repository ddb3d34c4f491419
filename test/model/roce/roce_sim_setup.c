/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Creates and destroys hosts and queue pairs. */
#include "roce_sim.h"

#define CONST_LEN(size) ((size) / 4)

struct sim *
sim_open(uint64_t seed, uint32_t hosts, bool ip6)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	static const uint32_t aheads[] = {SIM_AHEADS, 0, 8};
	struct sim *s = calloc(1, sizeof(*s));
	uint32_t i;

	assert_non_null(s);
	s->seed = s->rng = seed;
	s->now = sim_rnd(&s->rng) >> 20;
	s->digest = 0xcbf29ce484222325u;
	s->host_n = hosts;
	s->aheads = aheads[seed % (sizeof(aheads) / sizeof(aheads[0]))];
	s->hosts = calloc(hosts, sizeof(*s->hosts));
	assert_non_null(s->hosts);
	for (i = 0; i < hosts; i++) {
		uint8_t *gid = s->hosts[i].gid;

		s->hosts[i].sim = s;
		if (ip6) {
			gid[0] = 0xfd;
			gid[7] = 0xb;
		} else {
			memcpy(gid, mapped, sizeof(mapped));
			gid[12] = 10;
		}
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
	}
	return s;
}

static void
qp_free(struct sim_qp *q)
{
	bb_roce_qp_err(&q->qp);
	assert_int_equal(q->kept, 0);
	free(q->mem - SIM_CANARY);
	free(q->ring);
	free(q->replay);
	free(q->msgs);
	free(q->nets);
	free(q->rbuf);
	free(q);
}

void
sim_close(struct sim *s)
{
	uint64_t i;

	for (i = 0; i < s->qp_n; i++)
		sim_check_memory(s->qps[i]);
	for (i = 0; i < s->qp_n; i++)
		qp_free(s->qps[i]);
	for (i = 0; i < s->host_n; i++)
		free(s->hosts[i].qps);
	sim_drop_events(s);
	free(s->qps);
	free(s->hosts);
	free(s);
}

void
sim_faults(struct sim *s, const struct sim_faults *f)
{
	uint32_t i;

	for (i = 0; i < s->host_n; i++)
		s->hosts[i].out = *f;
}

void
sim_attr(struct sim *s, struct bb_roce_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->type = BB_ROCE_RC;
	a->mtu = 1024;
	a->pkey = 0xffff;
	a->rq_psn = (uint32_t)sim_rnd(&s->rng) & BB_ROCE_PSN_MASK;
	a->sq_psn = (uint32_t)sim_rnd(&s->rng) & BB_ROCE_PSN_MASK;
	a->max_dest_rd_atomic = SIM_REPLAYS;
	a->max_rd_atomic = SIM_REPLAYS;
	a->min_rnr_timer = 12;
	a->ack_timeout = 14;
	a->retry_cnt = 7;
	a->rnr_retry = 7;
	a->window = 64;
	a->adaptive = BB_ROCE_ADAPTIVE;
	a->selective = true;
}

static void
qp_memory(struct sim *s, struct sim_qp *q, uint64_t size)
{
	uint8_t *mem = malloc(size + 2 * SIM_CANARY);

	assert_non_null(mem);
	memset(mem, 0xca, size + 2 * SIM_CANARY);
	q->mem = mem + SIM_CANARY;
	memset(q->mem, 0, size);
	q->size = size;
	q->read_from = SIM_WORDS * 8;
	q->write_from = q->read_from + CONST_LEN(size);
	q->rkey = (uint32_t)sim_rnd(&s->rng);
	/* Some regions end at the end of the address space. */
	q->va = sim_rnd(&s->rng) % 8 == 0 ? 0 - size : sim_rnd(&s->rng) >> 8 << 3;
	sim_pattern(q->mem + q->read_from, q->rkey, 0, q->write_from - q->read_from);
}

struct sim_qp *
sim_qp(struct sim *s, uint32_t host, const struct bb_roce_attr *a, uint64_t size)
{
	struct sim_qp *q = calloc(1, sizeof(*q));
	struct sim_host *h = &s->hosts[host];
	struct bb_roce_mem mem;
	uint32_t i;

	assert_non_null(q);
	q->host = h;
	q->rng = sim_rnd(&s->rng);
	q->run_at = q->timer_at = UINT64_MAX;
	qp_memory(s, q, size == 0 ? 1u << 16 : size);
	q->recv_size = 1u << 20;
	q->rbuf = malloc(q->recv_size);
	q->ring = calloc(SIM_SLOTS, sizeof(*q->ring));
	q->replay = calloc(SIM_REPLAYS, sizeof(*q->replay));
	q->nets = calloc(s->host_n, sizeof(*q->nets));
	h->qps = realloc(h->qps, (h->qp_n + 1) * sizeof(struct sim_qp *));
	s->qps = realloc(s->qps, (s->qp_n + 1) * sizeof(struct sim_qp *));
	assert_true(q->rbuf != NULL && q->ring != NULL && q->replay != NULL && q->nets != NULL &&
		    h->qps != NULL && s->qps != NULL);
	h->qps[h->qp_n++] = q;
	s->qps[s->qp_n++] = q;
	for (i = 0; i < s->host_n; i++) {
		memcpy(q->nets[i].src, h->gid, 16);
		memcpy(q->nets[i].dst, s->hosts[i].gid, 16);
		q->nets[i].sport = (uint16_t)(0xc000 | sim_rnd(&s->rng));
		q->nets[i].hop_limit = 64;
	}
	mem.ring = q->ring;
	mem.slots = SIM_SLOTS;
	mem.replay = a->type == BB_ROCE_RC ? q->replay : NULL;
	mem.replays = a->type == BB_ROCE_RC ? SIM_REPLAYS : 0;
	mem.out_of_order = q->ahead;
	mem.max_out_of_order = a->type == BB_ROCE_RC ? s->aheads : 0;
	bb_roce_qp_init(&q->qp, &sim_ops, q, &mem);
	q->qp.attr = *a;
	q->qp.attr.qpn = h->qp_n;
	if (a->type != BB_ROCE_RC)
		q->qp.attr.max_dest_rd_atomic = 0;
	return q;
}

static void
bring_up(struct sim_qp *q, const struct sim_qp *to, uint32_t to_qpn, uint32_t to_psn)
{
	struct bb_roce_attr a = q->qp.attr;

	a.dqpn = a.type == BB_ROCE_UD ? 0 : to_qpn;
	a.rq_psn = to_psn;
	a.path = q->nets[to->host - q->host->sim->hosts];
	OK(bb_roce_qp_rtr(&q->qp, &a));
	OK(bb_roce_qp_rts(&q->qp, &a));
	sim_wake(q);
}

void
sim_connect(struct sim_qp *a, struct sim_qp *b)
{
	uint32_t a_qpn = a->qp.attr.qpn, b_qpn = b->qp.attr.qpn;
	uint32_t a_psn = a->qp.attr.sq_psn, b_psn = b->qp.attr.sq_psn;

	a->peer = b;
	b->peer = a;
	bring_up(a, b, b_qpn, b_psn);
	if (a != b)
		bring_up(b, a, a_qpn, a_psn);
}

void
sim_pair(struct sim *s, const struct bb_roce_attr *a, uint64_t size, struct sim_qp *q[2])
{
	q[0] = sim_qp(s, 0, a, size);
	q[1] = sim_qp(s, 1, a, size);
	sim_connect(q[0], q[1]);
}
