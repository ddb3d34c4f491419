/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Two sides, their memory and pairs of queue pairs, and the deferred destruction. */
#include <stdarg.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "conform.h"

void
fail(struct fx *fx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fx->why, sizeof(fx->why), fmt, ap);
	va_end(ap);
	longjmp(fx->jmp, 1);
}

void
check_ret(struct fx *fx, const char *call, int got, int want)
{
	CHECK(fx, got == want, "%s: returned %d (%s), expected %d", call, got,
	      got < 0 ? strerror(-got) : "", want);
}

void
fx_defer(struct fx *fx, void (*fn)(void *arg), void *arg)
{
	if (fx->n_defer == RTE_DIM(fx->defer)) {
		fn(arg);
		fail(fx, "a row made more than %zu objects", RTE_DIM(fx->defer));
	}
	fx->defer[fx->n_defer++] = (struct deferred){fn, arg};
}

void
fx_forget(struct fx *fx, const void *arg)
{
	for (unsigned int i = 0; i < fx->n_defer; i++)
		if (fx->defer[i].arg == arg)
			fx->defer[i].fn = NULL;
}

void
fx_undo(struct fx *fx)
{
	/* Connections end before their QPs. */
	link_end(fx, false);
	while (fx->n_defer != 0) {
		struct deferred *d = &fx->defer[--fx->n_defer];

		if (d->fn != NULL)
			d->fn(d->arg);
	}
}

/* An object that cannot be destroyed here keeps the device from closing, which is reported. */
static void
undo_pd(void *pd)
{
	(void)bb_pd_free(pd);
}

static void
undo_mr(void *mr)
{
	(void)bb_mr_dereg(mr);
}

static void
undo_cq(void *cq)
{
	(void)bb_cq_destroy(cq);
}

static void
undo_qp(void *qp)
{
	(void)bb_qp_destroy(qp);
}

struct bb_pd *
fx_pd(struct fx *fx, struct side *s)
{
	struct bb_pd *pd;

	OK(fx, bb_pd_alloc(s->dev, &pd));
	fx_defer(fx, undo_pd, pd);
	return pd;
}

struct bb_mr *
fx_mr(struct fx *fx, struct bb_pd *pd, void *addr, size_t len, uint32_t access)
{
	struct bb_mr *mr;

	OK(fx, bb_mr_reg(pd, addr, len, access, &mr));
	fx_defer(fx, undo_mr, mr);
	return mr;
}

struct bb_cq *
fx_cq(struct fx *fx, struct side *s, uint32_t depth)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	attr.depth = depth;
	OK(fx, bb_cq_create(s->dev, &attr, &cq));
	fx_defer(fx, undo_cq, cq);
	return cq;
}

struct bb_qp *
fx_qp(struct fx *fx, struct bb_pd *pd, const struct bb_qp_init_attr *init)
{
	struct bb_qp *qp;

	OK(fx, bb_qp_create(pd, init, &qp));
	fx_defer(fx, undo_qp, qp);
	return qp;
}

void *
fx_alloc(struct fx *fx, size_t len, size_t align)
{
	void *p = rte_zmalloc("conform", len, (unsigned int)align);

	CHECK(fx, p != NULL, "no memory for %zu bytes: give EAL more, with -m", len);
	fx_defer(fx, rte_free, p);
	return p;
}

struct pair_opts
fx_opts(const struct fx *fx)
{
	struct pair_opts o = {
		.init = DEFAULTS(qp_init_attr),
		.a = DEFAULTS(qp_attr),
		.pd_a = fx->a.pd,
		.pd_b = fx->b.pd,
		.rq_depth_a = 32,
		.rq_depth_b = 32,
	};

	o.init.sq_depth = 32;
	o.init.max_sge = fx->max_sge;
	o.init.max_recv_sge = fx->max_rsge;
	o.init.max_inline = fx->max_inline;
	o.a.access = fx->access;
	o.a.timeout = 18; /* 1 s: longer than any operation of a working pair */
	o.a.max_rd_atomic = (uint8_t)RTE_MIN(fx->a.attr.max_rd_atomic, 16u);
	o.a.max_dest_rd_atomic = (uint8_t)RTE_MIN(fx->a.attr.max_dest_rd_atomic, 16u);
	o.a.path.sgid_index = fx->a.gid;
	o.b = o.a;
	o.b.path.sgid_index = fx->b.gid;
	return o;
}

void
fx_connect(struct fx *fx, struct pair p, const struct pair_opts *o)
{
	struct bb_qp_addr a, b;

	if (fx->link != NULL) {
		link_connect(fx, p, o, false);
		return;
	}
	OK(fx, bb_qp_addr(p.a, o->a.path.port, o->a.path.sgid_index, &a));
	OK(fx, bb_qp_addr(p.b, o->b.path.port, o->b.path.sgid_index, &b));
	OK(fx, bb_qp_connect(p.a, &a, &b, &o->a));
	OK(fx, bb_qp_connect(p.b, &b, &a, &o->b));
}

static void
pair_make(struct fx *fx, const struct pair_opts *o, struct pair *p)
{
	struct bb_qp_init_attr init = o->init;

	init.send_cq = o->init.send_cq != NULL ? o->init.send_cq : fx->a.cq;
	init.recv_cq = o->init.recv_cq != NULL ? o->init.recv_cq : fx->a.cq;
	init.rq_depth = o->rq_depth_a;
	OK(fx, bb_qp_create(o->pd_a, &init, &p->a));
	init.send_cq = fx->b.cq;
	init.recv_cq = fx->b.cq;
	init.rq_depth = o->rq_depth_b;
	OK(fx, bb_qp_create(o->pd_b, &init, &p->b));
	if (fx->link != NULL)
		link_connect(fx, *p, o, true);
	else
		fx_connect(fx, *p, o);
}

struct pair
fx_pair(struct fx *fx, const struct pair_opts *o)
{
	struct bb_qp_init_attr init = o->init;
	struct pair p;

	init.send_cq = o->init.send_cq != NULL ? o->init.send_cq : fx->a.cq;
	init.recv_cq = o->init.recv_cq != NULL ? o->init.recv_cq : fx->a.cq;
	init.rq_depth = o->rq_depth_a;
	p.a = fx_qp(fx, o->pd_a, &init);
	init.send_cq = fx->b.cq;
	init.recv_cq = fx->b.cq;
	init.rq_depth = o->rq_depth_b;
	p.b = fx_qp(fx, o->pd_b, &init);
	fx_connect(fx, p, o);
	return p;
}

struct pair
fx_shared_of(struct fx *fx, enum shared which)
{
	struct pair_opts o;

	if (fx->shared[which].b == NULL) {
		o = fx_opts(fx);
		o.init.signal_all = which == SHARED_RC_ALL;
		o.init.type = which == SHARED_UC ? BB_QPT_UC : BB_QPT_RC;
		pair_make(fx, &o, &fx->shared[which]);
	}
	return fx->shared[which];
}

struct pair
fx_own_pair(struct fx *fx)
{
	struct pair_opts o = fx_opts(fx);

	return fx_pair(fx, &o);
}

struct pair
fx_shared(struct fx *fx)
{
	return fx_shared_of(fx, SHARED_RC);
}

enum bb_qp_state
qp_state(struct fx *fx, struct bb_qp *qp)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	OK(fx, bb_qp_query(qp, &attr));
	return attr.state;
}

void
check_state(struct fx *fx, struct bb_qp *qp, enum bb_qp_state want, const char *whose)
{
	enum bb_qp_state got = qp_state(fx, qp);

	CHECK(fx, got == want, "%s QP is in %s, expected %s", whose, bb_qp_state_name(got),
	      bb_qp_state_name(want));
}

/* Opens a device. %p in its name becomes the process id, so that parallel runs do not collide. */
static int
open_here(const char *spec, struct bb_dev **dev)
{
	const char *at;
	char name[512];
	size_t n = 0;

	for (at = spec; *at != '\0' && n < sizeof(name) - 16; at++) {
		if (at[0] == '%' && at[1] == 'p') {
			n += (size_t)snprintf(name + n, sizeof(name) - n, "%d", (int)getpid());
			at++;
		} else {
			name[n++] = *at;
		}
	}
	name[n] = '\0';
	return bb_dev_open(name, dev);
}

static int
side_open(struct side *s, const char *spec, struct bb_dev *dev)
{
	struct bb_cq_attr cq = DEFAULTS(cq_attr);
	uint32_t access = ACCESS_ALL;
	int ret = 0;

	s->dev = dev;
	if (dev == NULL)
		ret = open_here(spec, &s->dev);
	if (ret == 0)
		ret = bb_dev_query(s->dev, &s->attr);
	if (ret == 0)
		ret = bb_port_query(s->dev, 1, &s->port);
	if (ret == 0)
		ret = bb_pd_alloc(s->dev, &s->pd);
	cq.depth = CQ_SIZE;
	if (ret == 0)
		ret = bb_cq_create(s->dev, &cq, &s->cq);
	s->mem = rte_zmalloc("arena", ARENA, 4096);
	s->want = malloc(ARENA);
	if (ret == 0 && (s->mem == NULL || s->want == NULL))
		ret = -ENOMEM;
	if (ret != 0)
		return ret;
	memset(s->mem, 0xa5, ARENA);
	if (!s->attr.atomics)
		access &= ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC;
	return bb_mr_reg(s->pd, s->mem, ARENA, access, &s->mr);
}

/* The two ends of a wire connect when both exist. */
static bool
link_up(struct fx *fx, struct side *s)
{
	double end = now_s() + fx->timeout;
	struct bb_event event;

	while (s->port.state != BB_PORT_ACTIVE && now_s() < end) {
		fx_progress(fx);
		if (bb_port_query(s->dev, 1, &s->port) != 0)
			return false;
	}
	while (bb_event_get(s->dev, &event) == 0)
		;
	return s->port.state == BB_PORT_ACTIVE;
}

int
fx_open(struct fx *fx, const char *spec, double timeout, const char *address, unsigned int nth)
{
	const char *plus = strchr(spec, '+');
	char first[256];
	int ret;

	memset(fx, 0, sizeof(*fx));
	fx->spec = spec;
	fx->two = plus != NULL;
	fx->timeout = timeout;
	fx->wr_id = 1;
	fx->seed = 1;
	snprintf(first, sizeof(first), "%.*s", plus != NULL ? (int)(plus - spec) : 255, spec);
	ret = side_open(&fx->a, first, NULL);
	if (ret == 0)
		ret = side_open(&fx->b, fx->two ? plus + 1 : first, fx->two ? NULL : fx->a.dev);
	if (ret != 0) {
		fx_close(fx);
		return ret;
	}
	if (!link_up(fx, &fx->a) || !link_up(fx, &fx->b)) {
		fx_close(fx);
		return -ENETDOWN;
	}
	fx->access = fx->a.mr->access & fx->b.mr->access;
	fx->mtu = RTE_MIN(fx->a.port.active_mtu, fx->b.port.active_mtu);
	fx->max_sge = RTE_MIN(RTE_MIN(fx->a.attr.max_sge, fx->b.attr.max_sge), PIECES);
	fx->max_rsge = RTE_MIN(RTE_MIN(fx->a.attr.max_recv_sge, fx->b.attr.max_recv_sge), PIECES);
	fx->max_inline = RTE_MIN(fx->a.attr.max_inline, fx->b.attr.max_inline);
	ret = gids_choose(fx, nth);
	if (ret == 0 && address != NULL)
		ret = link_open(fx, address);
	if (ret != 0)
		fx_close(fx);
	return ret;
}

static int
side_close(struct side *s, bool dev_too)
{
	int rc = 0;

	if (s->mr != NULL)
		rc |= bb_mr_dereg(s->mr);
	if (s->cq != NULL)
		rc |= bb_cq_destroy(s->cq);
	if (s->pd != NULL)
		rc |= bb_pd_free(s->pd);
	if (s->dev != NULL && dev_too)
		rc |= bb_dev_close(s->dev);
	rte_free(s->mem);
	free(s->want);
	memset(s, 0, sizeof(*s));
	return rc;
}

bool
fx_close(struct fx *fx)
{
	int rc = 0;

	fx_undo(fx);
	link_close(fx);
	for (unsigned int i = 0; i < SHARED_PAIRS; i++) {
		if (fx->shared[i].b != NULL)
			rc |= bb_qp_destroy(fx->shared[i].b);
		if (fx->shared[i].a != NULL)
			rc |= bb_qp_destroy(fx->shared[i].a);
		fx->shared[i] = (struct pair){0};
	}
	rc |= side_close(&fx->b, fx->two);
	rc |= side_close(&fx->a, true);
	return rc == 0;
}
