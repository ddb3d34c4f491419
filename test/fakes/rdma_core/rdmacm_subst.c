/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * librdmacm in one process, for tests: the functions that a program calls, and a "kernel" that
 * connects its ids. It follows man rdma_connect and the like for ids without a QP:
 * CONNECT_RESPONSE at the connecting end, ESTABLISHED at the other end after rdma_establish(). On
 * iWARP both ends get ESTABLISHED after rdma_accept(), and rdma_connect() itself fails if there
 * is no listener. rdma_destroy_id() with an unacknowledged event would wait forever and ends the
 * program.
 */
#include "rdmacm_subst.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

struct rdmacm_subst rdmacm_subst;

#define FIRST_PSN 0x123400u

enum state {
	IDLE,
	BOUND,
	LISTENS,
	ADDR,
	ROUTE,
	CALLS,
	CALLED,
	ANSWERED, /* accepted, or received the answer */
	UP,
	DOWN,
};

struct id {
	struct rdma_cm_id pub; /* must be first */
	LIST_ENTRY(id) link;
	enum state state;
	struct id *peer;
	struct rdma_conn_param own;
	uint16_t port;
	int unacked;
	uint32_t psn;
};

struct event {
	struct rdma_cm_event pub; /* must be first */
	TAILQ_ENTRY(event) link;
	uint8_t priv[256];
};

struct chan {
	struct rdma_event_channel pub; /* must be first */
	TAILQ_HEAD(, event) events;
};

static LIST_HEAD(, id) ids = LIST_HEAD_INITIALIZER(ids);
static struct ibv_device device;
static struct ibv_context context;
static uint16_t next_port = 40000;

static int
fails(int err)
{
	errno = err;
	return -1;
}

static struct event *
raise_event(struct id *id, enum rdma_cm_event_type type, int status,
	    const struct rdma_conn_param *p)
{
	struct chan *ch = (struct chan *)id->pub.channel;
	struct event *e = calloc(1, sizeof(*e));
	uint64_t one = 1;

	if (e == NULL)
		abort();
	e->pub.id = &id->pub;
	e->pub.event = type;
	e->pub.status = status;
	if (p != NULL) {
		e->pub.param.conn = *p;
		/* Parameters that the receiver of the event gets. */
		e->pub.param.conn.private_data = NULL;
		if (p->private_data != NULL) {
			memcpy(e->priv, p->private_data, p->private_data_len);
			e->pub.param.conn.private_data = e->priv;
		}
		e->pub.param.conn.responder_resources = p->initiator_depth;
		e->pub.param.conn.initiator_depth = p->responder_resources;
	}
	TAILQ_INSERT_TAIL(&ch->events, e, link);
	if (write(ch->pub.fd, &one, 8) != 8)
		abort();
	return e;
}

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct chan *ch;

	if (rdmacm_subst.no_kernel) {
		errno = ENODEV;
		return NULL;
	}
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		abort();
	ch->pub.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	TAILQ_INIT(&ch->events);
	rdmacm_subst.channels++;
	return &ch->pub;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct chan *ch = (struct chan *)channel;

	if (!TAILQ_EMPTY(&ch->events))
		abort();
	close(ch->pub.fd);
	free(ch);
	rdmacm_subst.channels--;
}

int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct chan *ch = (struct chan *)channel;
	struct event *e;
	uint64_t n;

	if (read(ch->pub.fd, &n, 8) != 8)
		return -1;
	e = TAILQ_FIRST(&ch->events);
	TAILQ_REMOVE(&ch->events, e, link);
	((struct id *)e->pub.id)->unacked++;
	rdmacm_subst.events++;
	*event = &e->pub;
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	((struct id *)event->id)->unacked--;
	rdmacm_subst.events--;
	free(event);
	return 0;
}

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *ctx,
	       enum rdma_port_space ps)
{
	struct id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		abort();
	if (ps != RDMA_PS_TCP)
		return fails(EINVAL);
	id->pub.channel = channel;
	id->pub.context = ctx;
	id->psn = FIRST_PSN + (uint32_t)rdmacm_subst.ids;
	LIST_INSERT_HEAD(&ids, id, link);
	rdmacm_subst.ids++;
	*out = &id->pub;
	return 0;
}

static void
disconnected(struct id *id)
{
	if (id->state == UP || id->state == ANSWERED)
		raise_event(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	else if (id->state == CALLS)
		raise_event(id, RDMA_CM_EVENT_REJECTED, 28, NULL);
	id->state = DOWN;
}

int
rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct id *id = (struct id *)pub;
	struct chan *ch = (struct chan *)pub->channel;
	struct event *e, *next;
	uint64_t n;

	if (id->unacked != 0) {
		fprintf(stderr, "rdma_destroy_id: an event of it was not acknowledged\n");
		abort();
	}
	/* The kernel drops events that were not fetched. */
	for (e = TAILQ_FIRST(&ch->events); e != NULL; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->pub.id != pub && e->pub.listen_id != pub)
			continue;
		TAILQ_REMOVE(&ch->events, e, link);
		if (read(ch->pub.fd, &n, 8) != 8)
			abort();
		free(e);
	}
	if (id->peer != NULL) {
		id->peer->peer = NULL;
		disconnected(id->peer);
	}
	LIST_REMOVE(id, link);
	free(id);
	rdmacm_subst.ids--;
	return 0;
}

int
rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct id *id = (struct id *)pub, *other;
	uint16_t port = ntohs(((struct sockaddr_in *)addr)->sin_port);

	LIST_FOREACH(other, &ids, link)
		if (port != 0 && other->state == LISTENS && other->port == port)
			return fails(EADDRINUSE);
	id->port = port != 0 ? port : next_port++;
	id->state = BOUND;
	return 0;
}

int
rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	(void)backlog;
	((struct id *)pub)->state = LISTENS;
	return 0;
}

__be16
rdma_get_src_port(struct rdma_cm_id *pub)
{
	return htons(((struct id *)pub)->port);
}

static void
set_device(struct id *id)
{
	snprintf(device.name, sizeof(device.name), "%s", rdmacm_subst.device);
	device.transport_type = rdmacm_subst.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	context.device = &device;
	id->pub.verbs = &context;
	id->pub.port_num = 1;
}

int
rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
		  int timeout_ms)
{
	struct id *id = (struct id *)pub;

	(void)src;
	(void)timeout_ms;
	id->port = ntohs(((struct sockaddr_in *)dst)->sin_port);
	if (rdmacm_subst.addr_error != 0) {
		raise_event(id, RDMA_CM_EVENT_ADDR_ERROR, -rdmacm_subst.addr_error, NULL);
		rdmacm_subst.addr_error = 0;
		return 0;
	}
	set_device(id);
	id->state = ADDR;
	raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	return 0;
}

int
rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct id *id = (struct id *)pub;

	(void)timeout_ms;
	if (id->state != ADDR)
		return fails(EINVAL);
	if (rdmacm_subst.route_error != 0) {
		raise_event(id, RDMA_CM_EVENT_ROUTE_ERROR, -rdmacm_subst.route_error, NULL);
		rdmacm_subst.route_error = 0;
		return 0;
	}
	id->state = ROUTE;
	raise_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	return 0;
}

int
rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
	struct id *id = (struct id *)pub, *l, *in;
	struct rdma_cm_id *new;
	struct event *e;

	if (id->state != ROUTE || p->private_data_len > 56 || p->qp_num == 0)
		return fails(EINVAL);
	id->state = CALLS;
	id->own = *p;
	if (rdmacm_subst.connect_error != 0) {
		int err = rdmacm_subst.connect_error;

		rdmacm_subst.connect_error = 0;
		return fails(err);
	}
	if (rdmacm_subst.unreachable != 0) {
		raise_event(id, RDMA_CM_EVENT_UNREACHABLE, -rdmacm_subst.unreachable, NULL);
		rdmacm_subst.unreachable = 0;
		return 0;
	}
	LIST_FOREACH(l, &ids, link)
		if (l->state == LISTENS && l->port == id->port)
			break;
	if (l == NULL && rdmacm_subst.iwarp)
		return fails(ECONNREFUSED);
	if (l == NULL) {
		/* 8: invalid service ID */
		raise_event(id, RDMA_CM_EVENT_REJECTED, 8, NULL);
		return 0;
	}
	if (rdma_create_id(l->pub.channel, &new, l->pub.context, RDMA_PS_TCP) != 0)
		return -1;
	in = (struct id *)new;
	in->state = CALLED;
	in->peer = id;
	id->peer = in;
	set_device(in);
	e = raise_event(in, RDMA_CM_EVENT_CONNECT_REQUEST, 0, p);
	e->pub.listen_id = &l->pub;
	if (rdmacm_subst.open != NULL)
		rdmacm_subst.open(p->qp_num);
	return 0;
}

/* Reports the depths in force at each end for that end, not swapped. */
static void
established(struct id *id, const struct rdma_conn_param *p)
{
	struct event *e;

	id->state = UP;
	id->peer->state = UP;
	e = raise_event(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, p);
	e->pub.param.conn.initiator_depth = p->initiator_depth;
	e->pub.param.conn.responder_resources = p->responder_resources;
	raise_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

int
rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
	struct id *id = (struct id *)pub;

	if (id->peer == NULL && rdmacm_subst.iwarp)
		return fails(ECONNRESET);
	if (rdmacm_subst.accept_error != 0) {
		int err = rdmacm_subst.accept_error;

		rdmacm_subst.accept_error = 0;
		return fails(err);
	}
	if (id->state != CALLED || id->peer == NULL || p->qp_num == 0 ||
	    p->initiator_depth > id->peer->own.responder_resources ||
	    p->responder_resources > id->peer->own.initiator_depth)
		return fails(EINVAL);
	id->own = *p;
	if (rdmacm_subst.iwarp) {
		established(id, p);
	} else {
		id->state = ANSWERED;
		id->peer->state = ANSWERED;
		raise_event(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, p);
	}
	if (rdmacm_subst.open != NULL)
		rdmacm_subst.open(p->qp_num);
	return 0;
}

int
rdma_establish(struct rdma_cm_id *pub)
{
	struct id *id = (struct id *)pub;

	if (id->state != ANSWERED || id->peer == NULL)
		return fails(EINVAL);
	id->state = UP;
	id->peer->state = UP;
	raise_event(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	return 0;
}

int
rdma_reject(struct rdma_cm_id *pub, const void *data, uint8_t len)
{
	struct id *id = (struct id *)pub;
	struct rdma_conn_param p = {.private_data = data, .private_data_len = len};

	if (id->state != CALLED || id->peer == NULL)
		return fails(EINVAL);
	id->peer->state = DOWN;
	raise_event(id->peer, RDMA_CM_EVENT_REJECTED, 28, &p);
	id->peer->peer = NULL;
	id->peer = NULL;
	id->state = DOWN;
	return 0;
}

int
rdma_disconnect(struct rdma_cm_id *pub)
{
	struct id *id = (struct id *)pub;

	if (id->state == DOWN)
		return 0;
	if (id->state != UP)
		return fails(EINVAL);
	disconnected(id);
	if (id->peer != NULL)
		disconnected(id->peer);
	return 0;
}

int
rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *a, int *mask)
{
	struct id *id = (struct id *)pub;

	if (id->peer == NULL || (id->state != CALLED && id->state != ANSWERED))
		return fails(EINVAL);
	*mask = IBV_QP_STATE;
	switch (a->qp_state) {
	case IBV_QPS_INIT:
		a->port_num = 1;
		return 0;
	case IBV_QPS_RTR:
		a->path_mtu = IBV_MTU_1024;
		a->dest_qp_num = id->peer->own.qp_num;
		a->rq_psn = id->peer->psn;
		a->ah_attr.port_num = 1;
		a->ah_attr.is_global = 1;
		a->ah_attr.grh.sgid_index = rdmacm_subst.sgid_index;
		a->ah_attr.grh.hop_limit = 64;
		memcpy(a->ah_attr.grh.dgid.raw, rdmacm_subst.gid, 16);
		return 0;
	case IBV_QPS_RTS:
		a->timeout = 14;
		a->retry_cnt = 7;
		a->rnr_retry = id->peer->own.rnr_retry_count;
		a->sq_psn = id->psn;
		return 0;
	default:
		return fails(EINVAL);
	}
}

void
rdmacm_subst_remove(void)
{
	struct id *id;

	LIST_FOREACH(id, &ids, link)
		if (id->state == LISTENS || id->state == UP || id->state == ANSWERED ||
		    id->state == CALLS)
			raise_event(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
}
