/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Creates memory and queues. */
#include <stdlib.h>

#include <rte_common.h>
#include <rte_malloc.h>

#include "perf.h"

#define RECV_BYTES (8u << 20) /* bytes of memory for receives, unless two messages need more */

static int
create_memory(struct perf *p)
{
	uint32_t access = BB_ACCESS_LOCAL_WRITE;
	enum verb verb = p->o.proto->verb;
	uint64_t bytes, n = p->o.qps;
	uint32_t i, step;
	int rc;

	if (verb == VERB_WRITE)
		access |= BB_ACCESS_REMOTE_WRITE;
	else if (verb == VERB_READ)
		access |= BB_ACCESS_REMOTE_READ;
	else if (verb == VERB_ATOMIC)
		access |= BB_ACCESS_REMOTE_ATOMIC;
	/*
	 * Limits the outstanding atomics to the number of result slots, because each result must be
	 * checked before it is overwritten.
	 */
	if (p->o.proto->bandwidth)
		msg_cycle_of(&p->layout, options_size(&p->o, 0), p->cycle, p->line);
	if (p->o.check && verb == VERB_ATOMIC) {
		p->o.tx_depth = RTE_MIN(p->o.tx_depth, p->layout.slots);
		p->o.cq_mod = RTE_MIN(p->o.cq_mod, p->o.tx_depth);
	}
	p->half_size = RTE_ALIGN_CEIL((size_t)RTE_MAX(p->o.size, p->cycle), PAGE);
	p->in_size = p->half_size;
	if (verb == VERB_SEND || verb == VERB_PINGPONG) {
		step = (uint32_t)RTE_ALIGN_CEIL(p->o.size + UD_GRH, 64u);
		p->in_size = RTE_MAX((size_t)RECV_BYTES / n, (size_t)2 * step);
		step = (uint32_t)RTE_ALIGN_CEIL(options_size(&p->o, 0) + UD_GRH, 64u);
		p->rq_depth = (uint32_t)RTE_MIN(p->o.rx_depth, p->in_size / step);
		if (!p->o.all)
			p->in_size = (size_t)p->rq_depth * step;
		p->in_size = RTE_ALIGN_CEIL(p->in_size, (size_t)64);
	}
	bytes = n * (p->half_size + p->in_size);
	p->mem = rte_zmalloc("bb_perf", bytes, PAGE);
	if (p->mem == NULL) {
		say("no memory for messages of %u bytes on %u queue pairs: %" PRIu64 " MiB are "
		    "needed; give EAL more (-m MB, hugepages), or less --size, --qp or --rx-depth",
		    p->o.size, p->o.qps, (bytes >> 20) + 1);
		return -1;
	}
	for (i = 0; i < n; i++) {
		p->qps[i].out = p->mem + i * p->half_size;
		p->qps[i].in = p->mem + n * p->half_size + i * p->in_size;
		p->qps[i].src = p->qps[i].out;
	}
	rc = bb_mr_reg(p->pd, p->mem, bytes, access, &p->mr);
	if (rc != 0) {
		perf_error("registering memory", rc);
		return -1;
	}
	return check_start(p);
}

static int
create_queues(struct perf *p)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	uint32_t i;
	int rc;

	bb_cq_attr_init(&attr);
	attr.depth = p->o.qps * (p->o.tx_depth + p->rq_depth);
	rc = bb_cq_create(p->dev, &attr, &p->cq);
	if (rc != 0) {
		perf_error("creating the CQ", rc);
		return -1;
	}
	bb_qp_init_attr_init(&init);
	init.type = p->o.type;
	init.send_cq = p->cq;
	init.recv_cq = p->cq;
	init.sq_depth = p->o.tx_depth;
	init.rq_depth = p->rq_depth;
	init.max_inline = p->o.max_inline;
	init.signal_every = p->o.cq_mod;
	for (i = 0; i < p->o.qps; i++) {
		rc = bb_qp_create(p->pd, &init, &p->qps[i].qp);
		if (rc != 0) {
			perf_error("creating the queue pair", rc);
			return -1;
		}
	}
	return 0;
}

/* Fills in the keys that the peer gets. */
static int
make_keys(struct perf *p, struct perf_qp *q)
{
	enum verb verb = p->o.proto->verb;
	uint32_t reads;
	int rc;

	rc = bb_qp_addr(q->qp, p->path.port, p->path.sgid_index, &q->addr);
	if (rc != 0) {
		perf_error("reading the queue pair's address", rc);
		return -1;
	}
	q->own.addr.lid = q->addr.lid;
	q->own.addr.qpn = q->addr.qpn;
	q->own.addr.psn = q->addr.psn;
	if (p->port.link_layer == BB_LINK_ETHERNET || p->path.is_global)
		memcpy(q->own.addr.gid, q->addr.gid, sizeof(q->own.addr.gid));
	reads = p->o.out_reads != 0 ? p->o.out_reads : MAX_READS;
	q->own.out_reads = verb == VERB_READ || verb == VERB_ATOMIC
				   ? (uint16_t)RTE_MIN(reads, p->attr.max_dest_rd_atomic)
				   : 1;
	q->own.rkey = p->mr->rkey;
	q->own.vaddr = (uint64_t)(uintptr_t)q->in;
	return 0;
}

void
perf_begin_size(struct perf *p, uint32_t size)
{
	uint32_t i;

	p->size = size;
	/* A message above 8 KiB has a completion of its own, so that the rate is smooth. */
	p->cq_mod = p->o.all && !p->o.cq_mod_given && size > 8192 ? 1 : p->o.cq_mod;
	if (p->o.proto->bandwidth)
		msg_cycle_of(&p->layout, size, p->cycle, p->line);
	if (p->rq_depth > 0) {
		p->recv_step = (uint32_t)RTE_ALIGN_CEIL(size + UD_GRH, 64u);
		p->recv_slots = (uint32_t)RTE_MIN(p->rq_depth, p->in_size / p->recv_step);
	}
	p->total_sent += p->done;
	p->total_received += p->recv_done;
	p->posted = p->done = p->recv_done = 0;
	for (i = 0; i < p->o.qps; i++) {
		struct perf_qp *q = &p->qps[i];

		q->total_sent += q->done;
		q->total_received += q->recv_done;
		q->posted = q->done = q->signaled = q->recv_posted = q->recv_done = 0;
	}
	hist_reset(&p->res.lat);
	p->res.messages = p->res.peak_messages = p->res.peak_cycles = 0;
	p->res.peer_reported = false;
	p->window.state = WINDOW_IDLE;
	check_next_size(p);
}

int
perf_create(struct perf *p)
{
	uint32_t i;
	int rc;

	if (is_ud(p) && p->o.size > p->mtu) {
		if (p->o.size_given) {
			say("--size %u: a datagram has at most %u bytes (the smaller MTU of both "
			    "ends)",
			    p->o.size, p->mtu);
			return -1;
		}
		p->o.size = p->mtu;
	}
	p->target = p->o.duration > 0 ? UINT64_MAX : p->o.iters * p->o.qps;
	p->qps = calloc(p->o.qps, sizeof(*p->qps));
	if (p->qps == NULL) {
		say("--qp %u: no memory for the queue pairs", p->o.qps);
		return -1;
	}
	for (i = 0; i < p->o.qps; i++)
		p->qps[i].index = i;
	rc = bb_pd_alloc(p->dev, &p->pd);
	if (rc != 0) {
		perf_error("allocating the protection domain", rc);
		return -1;
	}
	if (create_memory(p) != 0 || create_queues(p) != 0)
		return -1;
	for (i = 0; i < p->o.qps; i++)
		if (make_keys(p, &p->qps[i]) != 0)
			return -1;
	perf_begin_size(p, options_size(&p->o, 0));
	return 0;
}
