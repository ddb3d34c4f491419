/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Clients of a worker: accepts, refuses and releases them. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "target.h"

/* Sends per slot: an RDMA WRITE and a SEND, or an RDMA READ before the SEND. */
#define SQ_PER_SLOT 2u
/*
 * A client that sends no first command within this many seconds may be disconnected to make room
 * for another one.
 */
#define FIRST_S 2u

int
clients_open(struct worker *w)
{
	const struct options *o = w->o;
	struct sockaddr_storage addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct bb_cq_attr cq;
	struct bb_cm_attr cm;
	uint32_t i;
	int rc;

	w->slice = (size_t)o->depth * (o->max_io + CAPSULE);
	w->slice = (w->slice + 4095) & ~(size_t)4095;
	w->clients = calloc(o->clients, sizeof(*w->clients));
	w->mem = rte_zmalloc("clients", w->slice * o->clients, 4096);
	if (w->clients == NULL || w->mem == NULL) {
		say("no memory for %u clients of %zu bytes: give EAL more, -m MB, or smaller --depth, "
		    "--max-io or --clients",
		    o->clients, w->slice);
		return -ENOMEM;
	}
	for (i = 0; i < o->clients; i++) {
		w->clients[i].w = w;
		w->clients[i].index = i;
		w->clients[i].mem = w->mem + i * w->slice;
		w->clients[i].slots = calloc(o->depth, sizeof(struct slot));
		if (w->clients[i].slots == NULL)
			return -ENOMEM;
	}
	rc = io_queue_create(w->b, o->uring, o->clients * o->depth, w->mem, w->slice * o->clients,
			     &w->io);
	if (rc != 0)
		return rc;
	bb_cq_attr_init(&cq);
	cq.depth = o->clients * (o->depth * (SQ_PER_SLOT + 1) + 4);
	rc = bb_cq_create(w->dev, &cq, &w->cq);
	bb_cm_attr_init(&cm);
	if (rc == 0)
		rc = bb_cm_create(w->dev, &cm, &w->cm);
	if (rc != 0) {
		say("%s: queues cannot be made: %s; the lines above say why", bb_dev_name(w->dev),
		    strerror(-rc));
		return rc;
	}
	bb_cm_addr(o->listen, &addr);
	/* The port has the same offset in the addresses of IPv4 and IPv6. */
	if (in->sin_port != 0)
		in->sin_port = htons((uint16_t)(ntohs(in->sin_port) + w->index));
	rc = bb_listener_create(w->cm, (struct sockaddr *)&addr, &w->listener);
	if (rc != 0)
		say("cannot listen at %s, port number plus %u: %s", o->listen, w->index,
		    strerror(-rc));
	return rc;
}

/*
 * Registers the memory of a client in a PD of its own, so that no other client can use its keys.
 * Returns 0 or a negative errno.
 */
static int
client_memory(struct client *c)
{
	const struct options *o = c->w->o;
	size_t data = (size_t)o->depth * o->max_io;
	int rc = bb_pd_alloc(c->w->dev, &c->pd);

	c->capsules = c->mem + data;
	if (rc == 0)
		rc = bb_mr_reg(c->pd, c->mem, data, BB_ACCESS_LOCAL_WRITE, &c->mr);
	if (rc == 0)
		rc = bb_mr_reg(c->pd, c->capsules, (size_t)o->depth * CAPSULE,
			       BB_ACCESS_LOCAL_WRITE, &c->capsule_mr);
	return rc;
}

static int
client_queues(struct client *c)
{
	struct bb_qp_init_attr init;

	bb_qp_init_attr_init(&init);
	init.send_cq = c->w->cq;
	init.recv_cq = c->w->cq;
	init.sq_depth = c->depth * SQ_PER_SLOT + 2;
	init.rq_depth = c->depth;
	return bb_qp_create(c->pd, &init, &c->qp);
}

int
client_post_receive(struct client *c, uint32_t i)
{
	struct bb_sge sge = {(uintptr_t)(c->capsules + i * CAPSULE), CAPSULE, c->capsule_mr->lkey};

	c->ring_recv = c->w->ring = true;
	return bb_post_recv(c->qp, i, &sge, 1);
}

static void
refuse(struct bb_conn *conn, const char *why)
{
	struct bb_conn_info info;

	bb_conn_query(conn, &info);
	say("a client at %s was refused: %s", info.peer, why);
	(void)bb_conn_reject(conn, why, (uint32_t)strlen(why));
	bb_conn_destroy(conn);
}

/* Returns true if two clients, which are named ADDRESS:PORT, have the same address. */
static bool
same_address(const char *a, const char *b)
{
	const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');

	return end_a != NULL && end_b != NULL && end_a - a == end_b - b &&
	       memcmp(a, b, (size_t)(end_a - a)) == 0;
}

/* Disconnects a client that has been idle too long, and frees its entry. */
static void
evict(struct client *c)
{
	client_drop(c, "the client %s, and another client needs the connection",
		    c->active ? "has been idle for longer than --idle"
			      : "has sent no command since it connected");
	bb_conn_destroy(c->conn);
	c->conn = NULL;
	client_release(c);
}

/* Returns a free entry for the client @name. If there is none, returns NULL and sets *@why. */
static struct client *
place(struct worker *w, const char *name, const char **why)
{
	const uint64_t now = rte_get_tsc_cycles(), hz = rte_get_tsc_hz();
	struct client *c, *idlest = NULL, *vacant = NULL;
	uint32_t i, same = 0;

	for (i = 0; i < w->o->clients; i++) {
		c = &w->clients[i];
		if (c->conn == NULL) {
			vacant = vacant == NULL && c->under_way == 0 ? c : vacant;
			continue;
		}
		same += same_address(c->name, name);
		if (c->under_way == 0 &&
		    now - c->last > (c->active ? w->o->idle_s : FIRST_S) * hz &&
		    (idlest == NULL || c->last < idlest->last))
			idlest = c;
	}
	if (w->o->per_address != 0 && same >= w->o->per_address) {
		*why = "this target has as many clients of your address as --per-address allows";
		return NULL;
	}
	if (vacant != NULL)
		return vacant;
	*why = BLK_FULL;
	if (idlest != NULL)
		evict(idlest);
	return idlest;
}

static void
accept_client(struct worker *w, const struct bb_cm_event *ev)
{
	const char *wrong;
	struct bb_conn_param param;
	struct client *c;
	uint8_t welcome[BLK_WELCOME];
	struct bb_conn_info info;
	struct bb_blk_shape shape = w->shape;
	const char *full = NULL;
	uint32_t i, wanted;
	char why[96];
	int rc;

	wrong = blk_hello_decode(ev->private_data, ev->private_len, &wanted);
	if (wrong != NULL) {
		snprintf(why, sizeof(why), "its hello %s", wrong);
		refuse(ev->conn, why);
		return;
	}
	bb_conn_query(ev->conn, &info);
	c = place(w, info.peer, &full);
	if (c == NULL) {
		refuse(ev->conn, full);
		return;
	}
	memcpy(c->name, info.peer, sizeof(c->name));
	c->depth = wanted < w->o->depth ? wanted : w->o->depth;
	shape.depth = (uint16_t)c->depth;
	blk_welcome_encode(welcome, &shape);
	bb_conn_param_init(&param);
	param.private_data = welcome;
	param.private_len = sizeof(welcome);
	/*
	 * 1 s. So a short pause of the client does not break the connection, but the end of the
	 * client does.
	 */
	param.ack_timeout = 18;
	rc = client_memory(c);
	if (rc == 0)
		rc = client_queues(c);
	if (rc == 0)
		rc = bb_conn_accept(ev->conn, c->qp, &param);
	if (rc != 0) {
		client_release(c);
		refuse(ev->conn, "the target has no queues or memory left for this client");
		return;
	}
	c->conn = ev->conn;
	c->active = false;
	c->last = rte_get_tsc_cycles();
	c->qp->user = c;
	bb_conn_user_set(c->conn, c);
	for (i = 0; i < c->depth; i++)
		(void)client_post_receive(c, i);
	bb_qp_ring_recv(c->qp);
	c->ring_recv = false;
}

void
client_drop(struct client *c, const char *fmt, ...)
{
	char why[128];
	va_list ap;

	if (c->ending)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	say("client %s: %s; it is disconnected", c->name, why);
	c->ending = true;
	(void)bb_conn_disconnect(c->conn, why, (uint32_t)strlen(why));
}

void
client_release(struct client *c)
{
	struct worker *w = c->w;

	if (c->qp != NULL)
		bb_qp_destroy(c->qp);
	c->qp = NULL;
	/*
	 * The kernel still accesses the client's memory. worker_done() calls client_release()
	 * again.
	 */
	if (c->under_way > 0)
		return;
	if (c->mr != NULL)
		bb_mr_dereg(c->mr);
	if (c->capsule_mr != NULL)
		bb_mr_dereg(c->capsule_mr);
	if (c->pd != NULL)
		bb_pd_free(c->pd);
	c->mr = c->capsule_mr = NULL;
	c->pd = NULL;
	c->ending = c->ring_send = c->ring_recv = false;
	memset(c->slots, 0, w->o->depth * sizeof(*c->slots));
	w->reads += c->reads;
	w->writes += c->writes;
	w->flushes += c->flushes;
	w->fuas += c->fuas;
	w->refused += c->refused;
	c->reads = c->writes = c->flushes = c->fuas = c->refused = 0;
}

static void
client_over(struct client *c, const struct bb_cm_event *ev)
{
	say("client %s: gone%s%s; %" PRIu64 " reads, %" PRIu64 " writes (%" PRIu64 " FUA), %" PRIu64
	    " flushes, %" PRIu64 " refused",
	    c->name, ev->status != 0 ? ": " : "", ev->status != 0 ? ev->why : "", c->reads,
	    c->writes, c->fuas, c->flushes, c->refused);
	bb_conn_destroy(c->conn);
	c->conn = NULL;
	client_release(c);
}

void
clients_watch(struct worker *w)
{
	struct bb_cm_event ev;
	struct client *c;

	while (bb_cm_poll(w->cm, &ev, 1) == 1) {
		c = ev.type == BB_CM_CONNECT_REQUEST ? NULL : bb_conn_user(ev.conn);
		if (ev.type == BB_CM_CONNECT_REQUEST) {
			accept_client(w, &ev);
		} else if (c == NULL) {
			bb_conn_destroy(ev.conn);
		} else if (ev.type == BB_CM_ESTABLISHED) {
			w->served++;
			say("client %s: connected, depth %u", c->name, c->depth);
		} else {
			/* The connection ended or failed. */
			client_over(c, &ev);
		}
	}
}

void
clients_close(struct worker *w)
{
	uint32_t i;

	for (i = 0; w->clients != NULL && i < w->o->clients; i++) {
		struct client *c = &w->clients[i];

		/* clients_open() ran out of memory before this entry. */
		if (c->slots == NULL)
			break;
		if (c->conn != NULL) {
			if (!c->ending)
				(void)bb_conn_disconnect(c->conn, "the target ends", 15);
			bb_conn_destroy(c->conn);
			c->conn = NULL;
		}
		client_release(c);
		free(c->slots);
	}
	if (w->listener != NULL)
		bb_listener_destroy(w->listener);
	if (w->cm != NULL)
		bb_cm_destroy(w->cm);
	if (w->cq != NULL)
		bb_cq_destroy(w->cq);
	if (w->io != NULL)
		io_queue_destroy(w->io);
	rte_free(w->mem);
	free(w->clients);
}
