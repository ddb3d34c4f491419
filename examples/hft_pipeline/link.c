/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Creates, connects and disconnects the rings between lcores. */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "hft.h"

#define SQ_DEPTH 64
#define RIGHTS   (BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE)

/* Private data of a connection: the values that both processes must agree on. */
struct hello {
	char magic[8];
	uint32_t link;
	uint32_t pad;
	struct params params;
};

uint16_t link_port[LINKS];
int some_failed;

int
worker_fail(struct worker *p, int rc, const char *fmt, ...)
{
	va_list ap;

	if (p->rc == 0) {
		p->rc = rc;
		va_start(ap, fmt);
		vsnprintf(p->why, sizeof(p->why), fmt, ap);
		va_end(ap);
	}
	__atomic_store_n(&some_failed, 1, __ATOMIC_RELAXED);
	return rc;
}

static struct hello
hello_of(const struct worker *p, uint32_t link)
{
	struct hello h = {.magic = "hftpipe1", .link = link, .params = p->o->params};

	return h;
}

static int
end_memory(struct worker *p, struct end *e)
{
	size_t len = e->producer ? 64 : rdma_ring_bytes(p->o->slots);
	int rc;

	e->mem = rte_zmalloc("ring", len, 4096);
	if (e->mem == NULL)
		return worker_fail(p, -ENOMEM, "no memory for a ring: give EAL more, -m MB");
	if (!e->producer)
		rdma_ring_format(e->mem, p->o->slots);
	rc = bb_mr_reg(p->pd, e->mem, len, RIGHTS, &e->mr);
	if (rc == 0)
		rc = bb_region_of(e->mr, "ring", 0, e->producer ? 8 : len, &e->region[0]);
	if (rc != 0)
		return worker_fail(p, rc, "a ring cannot be registered: %s", strerror(-rc));
	e->nregions = 1;
	/*
	 * Sends the key of the kill switch on the link from risk to the gateway, because the
	 * gateway sets the switch.
	 */
	if (e->link == STAGE_RISK && e->producer) {
		rc = bb_region_of(p->kill_mr, "kill", 0, 8, &e->region[1]);
		if (rc != 0)
			return worker_fail(p, rc, "the kill switch cannot be registered: %s",
					   strerror(-rc));
		if (p->o->defect == DEFECT_KILL)
			e->region[1].addr += p->o->defect_at;
		e->nregions = 2;
	}
	return 0;
}

static int
end_open(struct worker *p, struct end *e)
{
	struct bb_qp_init_attr init;
	struct sockaddr_storage addr;
	int rc;

	bb_qp_init_attr_init(&init);
	init.send_cq = p->cq;
	init.recv_cq = p->cq;
	init.sq_depth = SQ_DEPTH;
	init.rq_depth = 0;
	init.max_inline = p->max_inline;
	rc = bb_qp_create(p->pd, &init, &e->qp);
	if (rc != 0)
		return worker_fail(p, rc, "a queue pair cannot be created: %s", strerror(-rc));
	e->qp->user = e;
	rc = end_memory(p, e);
	if (rc != 0 || !e->listens)
		return rc;
	bb_cm_addr(p->o->listen != NULL ? p->o->listen : "127.0.0.1:0", &addr);
	if (p->o->listen != NULL) {
		struct sockaddr_in *in = (struct sockaddr_in *)&addr;

		/*
		 * sin_port is correct for IPv6 too, because the port has the same offset in both
		 * address structures.
		 */
		in->sin_port = htons((uint16_t)(ntohs(in->sin_port) + e->link));
	}
	rc = bb_listener_create(p->cm, (struct sockaddr *)&addr, &e->listener);
	if (rc != 0)
		return worker_fail(p, rc,
				   "cannot listen for the link from %s to %s: %s; give --listen "
				   "another port: it and the next ports are needed, %u in total",
				   stage_name[e->link], stage_name[e->link + 1], strerror(-rc),
				   LINKS);
	__atomic_store_n(&link_port[e->link], bb_listener_port(e->listener), __ATOMIC_RELEASE);
	return 0;
}

static int
alloc_word(struct worker *p, uint32_t access, uint64_t **word, struct bb_mr **mr)
{
	*word = rte_zmalloc("word", 64, 64);
	if (*word == NULL)
		return worker_fail(p, -ENOMEM,
				   "no memory for a word of 64 bytes: give EAL more, "
				   "-m MB");
	return bb_mr_reg(p->pd, *word, 8, access, mr);
}

int
links_open(struct worker *p)
{
	struct bb_dev_attr dev;
	struct bb_cq_attr cq;
	struct bb_cm_attr cm;
	const uint32_t feed = p->o->worker_of[STAGE_FEED];
	uint32_t i;
	int rc;

	rc = bb_dev_query(p->dev, &dev);
	if (rc == 0)
		rc = bb_pd_alloc(p->dev, &p->pd);
	p->target_progress = rc == 0 && dev.target_progress;
	/* Some devices of the verbs driver allow less inline data, down to one message. */
	p->max_inline = rc == 0 ? RTE_MIN(dev.max_inline, RDMA_RING_INLINE) : 0;
	bb_cq_attr_init(&cq);
	cq.depth = LINKS * SQ_DEPTH;
	if (rc == 0)
		rc = bb_cq_create(p->dev, &cq, &p->cq);
	bb_cm_attr_init(&cm);
	if (rc == 0)
		rc = bb_cm_create(p->dev, &cm, &p->cm);
	if (rc == 0 && runs(p, STAGE_RISK))
		rc = alloc_word(p, RIGHTS | BB_ACCESS_REMOTE_ATOMIC, &p->kill, &p->kill_mr);
	if (rc == 0 && runs(p, STAGE_GATEWAY))
		rc = alloc_word(p, BB_ACCESS_LOCAL_WRITE, &p->gateway.old, &p->gateway.old_mr);
	if (rc != 0)
		return worker_fail(p, rc,
				   "%s: queues cannot be created: %s; the lines above say why",
				   bb_dev_name(p->dev), strerror(-rc));
	if (p->max_inline < RDMA_RING_SLOT)
		return worker_fail(
			p, -ENOTSUP,
			"%s: supports %u bytes of inline data, and a ring needs %u; give "
			"another --device",
			bb_dev_name(p->dev), p->max_inline, RDMA_RING_SLOT);
	for (i = 0; i < LINKS && rc == 0; i++) {
		struct end *e = &p->end[i];

		e->link = i;
		e->producer = runs(p, (enum stage)i);
		e->used = e->producer != runs(p, (enum stage)(i + 1));
		/*
		 * The feed's worker connects all its links, because only its process has --connect.
		 * The consumer of any other link listens.
		 */
		e->listens = p->index != feed && (!e->producer || p->o->worker_of[i + 1] == feed);
		if (e->used)
			rc = end_open(p, e);
	}
	return rc;
}

static void
fill_param(struct worker *p, struct end *e, struct bb_conn_param *param, struct hello *h)
{
	bb_conn_param_init(param);
	*h = hello_of(p, e->link);
	param->private_data = h;
	param->private_len = sizeof(*h);
	param->regions = e->region;
	param->nregions = e->nregions;
	param->access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC;
	param->timeout_ms = p->o->wait_s * 1000;
	/*
	 * Ack timeout of 1 s, which the QP retries. An lcore that does not run for a while must not
	 * count as a dead peer.
	 */
	param->ack_timeout = 18;
}

/*
 * Handles a failed attempt to connect. Returns true if the end must try again until --wait is over,
 * because the peer, its host or its network may not be up yet.
 */
static bool
try_later(struct end *e, int error)
{
	if (error != -ECONNREFUSED && error != -ECONNRESET && error != -EHOSTUNREACH &&
	    error != -ENETUNREACH && error != -ETIMEDOUT)
		return false;
	e->last_error = error;
	e->next_try = rte_get_tsc_cycles() + rte_get_tsc_hz() / 10;
	return true;
}

static int
end_connect(struct worker *p, struct end *e)
{
	struct sockaddr_storage addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct bb_conn_param param;
	struct hello h;
	int rc;

	bb_cm_addr(p->o->connect != NULL  ? p->o->connect
		   : p->o->listen != NULL ? p->o->listen
					  : "127.0.0.1:0",
		   &addr);
	/*
	 * If another process listens for this link, its port is computed: the port of --connect or
	 * --listen plus the number of the link. A thread of this process stores its port instead.
	 */
	if (p->o->connect != NULL || p->o->worker != ALL_WORKERS)
		in->sin_port = htons((uint16_t)(ntohs(in->sin_port) + e->link));
	else
		in->sin_port = htons(__atomic_load_n(&link_port[e->link], __ATOMIC_ACQUIRE));
	if (in->sin_port == 0)
		return 0; /* the other lcore does not listen yet; tries again later */
	fill_param(p, e, &param, &h);
	rc = bb_conn_connect(p->cm, (struct sockaddr *)&addr, e->qp, &param, &e->conn);
	if (rc != 0 && try_later(e, rc))
		return 0;
	if (rc != 0)
		return worker_fail(p, rc, "the link from %s to %s cannot be connected: %s",
				   stage_name[e->link], stage_name[e->link + 1], strerror(-rc));
	bb_conn_user_set(e->conn, e);
	return 0;
}

static int
accept_peer(struct worker *p, const struct bb_cm_event *ev)
{
	const char *no = NULL;
	struct bb_conn_param param;
	struct hello h, mine;
	struct end *e = NULL;
	uint32_t i;
	int rc;

	for (i = 0; i < LINKS; i++)
		if (p->end[i].listener != NULL && p->end[i].listener == ev->listener)
			e = &p->end[i];
	mine = hello_of(p, e == NULL ? 0 : e->link);
	if (e != NULL && e->conn != NULL)
		no = "the link already has a peer";
	else if (e == NULL || ev->private_len != sizeof(h) ||
		 memcmp(ev->private_data, &mine, sizeof(h)) != 0)
		no = "different parameters: give both ends the same options";
	if (no != NULL) {
		say("a connection request was rejected: %s", no);
		bb_conn_reject(ev->conn, no, (uint32_t)strlen(no));
		bb_conn_destroy(ev->conn);
		return 0;
	}
	e->conn = ev->conn;
	bb_conn_user_set(e->conn, e);
	fill_param(p, e, &param, &h);
	rc = bb_conn_accept(e->conn, e->qp, &param);
	if (rc != 0)
		return worker_fail(p, rc, "the link from %s to %s cannot be connected: %s",
				   stage_name[e->link], stage_name[e->link + 1], strerror(-rc));
	return 0;
}

static int
established(struct worker *p, struct end *e)
{
	struct bb_region r;
	int rc = bb_conn_region(e->conn, "ring", &r);

	if (rc == 0)
		rc = e->producer ? rdma_ring_tx_init(&e->tx, e->qp, p->max_inline, e->mem, &r)
				 : rdma_ring_rx_init(&e->rx, e->qp, e->mem, p->o->slots, &r);
	if (rc != 0)
		return worker_fail(p, rc,
				   "the peer sent an invalid ring for the link from %s to %s",
				   stage_name[e->link], stage_name[e->link + 1]);
	if (e->link == STAGE_RISK && !e->producer) {
		rc = bb_conn_region(e->conn, "kill", &r);
		if (rc != 0 || r.len < 8 || r.addr % 8 != 0)
			return worker_fail(p, -EPROTO, "the peer sent an invalid kill switch");
		e->region[1] = r;
	}
	e->up = true;
	return 0;
}

static int
handle(struct worker *p, const struct bb_cm_event *ev)
{
	struct end *e;

	if (ev->type == BB_CM_CONNECT_REQUEST)
		return accept_peer(p, ev);
	e = bb_conn_user(ev->conn);
	switch (ev->type) {
	case BB_CM_ESTABLISHED:
		return established(p, e);
	case BB_CM_DISCONNECTED:
		e->disconnected = true;
		if (e->producer && e->up)
			rdma_ring_tx_fail(&e->tx, -EPIPE);
		else if (e->up)
			rdma_ring_rx_fail(&e->rx, -EPIPE);
		/*
		 * Accepts a disconnect after all messages have arrived. Without an error only the
		 * consumer of a link disconnects.
		 */
		if (p->finished && (!e->producer || ev->status == 0))
			return 0;
		return worker_fail(p, -EPIPE, "the peer of the link from %s to %s has exited: %s",
				   stage_name[e->link], stage_name[e->link + 1], ev->why);
	case BB_CM_REJECTED:
		return worker_fail(p, -ECONNREFUSED, "the peer rejected the connection: %.*s",
				   (int)ev->private_len, (const char *)ev->private_data);
	case BB_CM_FAILED:
		if (!e->up && !e->listens && try_later(e, ev->status)) {
			bb_conn_destroy(e->conn);
			e->conn = NULL;
			return 0;
		}
		return worker_fail(
			p, ev->status,
			"the link from %s to %s was not connected: %s; start the peer with "
			"--listen",
			stage_name[e->link], stage_name[e->link + 1], ev->why);
	default:
		return 0;
	}
}

int
links_watch(struct worker *p)
{
	struct bb_cm_event ev;
	int rc = 0;

	while (rc == 0 && bb_cm_poll(p->cm, &ev, 1) == 1)
		rc = handle(p, &ev);
	return rc;
}

int
links_connect(struct worker *p)
{
	const uint64_t end = rte_get_tsc_cycles() + p->o->wait_s * rte_get_tsc_hz();
	const struct end *down;
	struct bb_wc wc;
	uint32_t i;
	int rc = 0;

	do {
		for (i = 0, down = NULL; i < LINKS && rc == 0; i++) {
			struct end *e = &p->end[i];

			if (e->used && !e->listens && e->conn == NULL &&
			    rte_get_tsc_cycles() >= e->next_try)
				rc = end_connect(p, e);
			if (e->used && !e->up)
				down = e;
		}
		if (rc == 0)
			rc = links_watch(p);
		if (bb_cq_poll(p->cq, &wc, 1) == 1)
			rc = links_error(p, &wc);
		if (rc == 0 &&
		    (stop_signal != 0 || __atomic_load_n(&some_failed, __ATOMIC_RELAXED)))
			return -EINTR;
		if (rc == 0 && down != NULL && rte_get_tsc_cycles() > end)
			rc = worker_fail(p, -ETIMEDOUT,
					 "the peer did not connect within %u s%s%s; start the "
					 "peer, or give a longer --wait",
					 p->o->wait_s, down->last_error == 0 ? "" : ": ",
					 down->last_error == 0 ? "" : strerror(-down->last_error));
	} while (rc == 0 && down != NULL);
	return rc;
}

int
links_error(struct worker *p, const struct bb_wc *wc)
{
	struct end *e = wc->qp->user;

	if (wc->status == BB_WC_SUCCESS || p->finished)
		return 0;
	if (e->producer)
		rdma_ring_tx_fail(&e->tx, -EPIPE);
	else
		rdma_ring_rx_fail(&e->rx, -EPIPE);
	return worker_fail(p, -EPIPE, "the link from %s to %s failed: %s: %s", stage_name[e->link],
			   stage_name[e->link + 1], bb_wc_status_name(wc->status),
			   bb_wc_status_cause(wc->status, wc->vendor_err));
}

/*
 * Returns true if this end may disconnect its link. Only the consumer of a link disconnects, and
 * the gateway is the first to disconnect. An earlier stage waits until the link after it is
 * disconnected. So nothing is in flight on a link, and its producer knows that all messages have
 * arrived.
 */
static bool
may_end(const struct worker *p, const struct end *e)
{
	uint32_t k;

	if (p->rc != 0)
		return true;
	for (k = e->link + 1; k < LINKS && !p->end[k].used; k++)
		;
	return !e->producer && (k == LINKS || p->end[k].disconnected);
}

void
links_disconnect(struct worker *p)
{
	uint64_t end = rte_get_tsc_cycles() + p->o->wait_s * rte_get_tsc_hz();
	uint32_t i, open;
	struct bb_wc wc;

	/* After a failure waits only 0.1 s for the disconnects. */
	if (p->rc != 0)
		end = rte_get_tsc_cycles() + rte_get_tsc_hz() / 10;
	p->finished = true;
	do {
		for (i = 0, open = 0; i < LINKS; i++) {
			struct end *e = &p->end[i];

			open += e->up && !e->disconnected;
			if (e->up && !e->disconnected && !e->ended && may_end(p, e)) {
				bb_conn_disconnect(e->conn, NULL, 0);
				e->ended = true;
			}
		}
		bb_cq_poll(p->cq, &wc, 1);
		links_watch(p);
	} while (open > 0 && rte_get_tsc_cycles() < end);
	for (i = 0; i < LINKS; i++) {
		const struct end *e = &p->end[i];

		if (e->producer && e->up && !e->disconnected)
			worker_fail(
				p, -ETIMEDOUT,
				"the consumer of the link from %s to %s did not confirm the last "
				"messages within %u s (--wait)",
				stage_name[i], stage_name[i + 1], p->o->wait_s);
	}
}

void
links_close(struct worker *p)
{
	uint32_t i;

	for (i = 0; i < LINKS; i++) {
		struct end *e = &p->end[i];

		if (e->conn != NULL)
			bb_conn_destroy(e->conn);
		if (e->listener != NULL)
			bb_listener_destroy(e->listener);
		if (e->qp != NULL)
			bb_qp_destroy(e->qp);
		if (e->mr != NULL)
			bb_mr_dereg(e->mr);
		rte_free(e->mem);
		memset(e, 0, sizeof(*e));
	}
	if (p->kill_mr != NULL)
		bb_mr_dereg(p->kill_mr);
	if (p->gateway.old_mr != NULL)
		bb_mr_dereg(p->gateway.old_mr);
	rte_free(p->kill);
	rte_free(p->gateway.old);
	p->gateway.old = NULL;
	if (p->cm != NULL)
		bb_cm_destroy(p->cm);
	if (p->cq != NULL)
		bb_cq_destroy(p->cq);
	if (p->pd != NULL)
		bb_pd_free(p->pd);
}
