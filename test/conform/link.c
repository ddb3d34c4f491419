/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Pairs connected by BB_CM_RDMA: A connects, B listens at an address of its device. */
#include <sys/socket.h>

#include "conform.h"

#define CONNS 256

struct link {
	struct bb_cm *a, *b; /* equal if A and B are one device */
	struct bb_listener *listener;
	struct sockaddr_storage addr;
	struct bb_conn *conn[CONNS];
	bool kept[CONNS];
	unsigned int n;
};

static int
cm_open(struct bb_dev *dev, struct bb_cm **cm)
{
	struct bb_cm_attr attr = DEFAULTS(cm_attr);

	attr.transport = BB_CM_RDMA;
	return bb_cm_create(dev, &attr, cm);
}

int
link_open(struct fx *fx, const char *address)
{
	struct link *l = calloc(1, sizeof(*l));
	char text[128];
	int ret;

	if (l == NULL)
		return -ENOMEM;
	fx->link = l;
	ret = cm_open(fx->a.dev, &l->a);
	l->b = l->a;
	if (ret == 0 && fx->two)
		ret = cm_open(fx->b.dev, &l->b);
	snprintf(text, sizeof(text), "%s:0", address);
	if (ret == 0)
		ret = bb_cm_addr(text, &l->addr);
	if (ret == 0)
		ret = bb_listener_create(l->b, (struct sockaddr *)&l->addr, &l->listener);
	if (ret != 0)
		return ret;
	snprintf(text, sizeof(text), "%s:%u", address, bb_listener_port(l->listener));
	return bb_cm_addr(text, &l->addr);
}

void
link_end(struct fx *fx, bool all)
{
	struct link *l = fx->link;
	unsigned int i, left = 0;

	if (l == NULL)
		return;
	for (i = 0; i < l->n; i++) {
		if (l->kept[i] && !all) {
			l->conn[left] = l->conn[i];
			l->kept[left++] = true;
		} else {
			bb_conn_destroy(l->conn[i]);
		}
	}
	l->n = left;
}

void
link_close(struct fx *fx)
{
	struct link *l = fx->link;

	if (l == NULL)
		return;
	link_end(fx, true);
	if (l->listener != NULL)
		(void)bb_listener_destroy(l->listener);
	if (l->b != NULL && l->b != l->a)
		(void)bb_cm_destroy(l->b);
	if (l->a != NULL)
		(void)bb_cm_destroy(l->a);
	free(l);
	fx->link = NULL;
}

static void
keep(struct fx *fx, struct bb_conn *conn, bool kept)
{
	struct link *l = fx->link;

	if (l->n == CONNS) {
		bb_conn_destroy(conn);
		fail(fx, "a row made more than %d connections", CONNS / 2);
	}
	l->conn[l->n] = conn;
	l->kept[l->n++] = kept;
}

static void
param_of(const struct bb_qp_attr *attr, struct bb_conn_param *param)
{
	bb_conn_param_init(param);
	param->access = attr->access;
	param->initiator_depth = attr->max_rd_atomic;
	param->responder_resources = attr->max_dest_rd_atomic;
	param->retry_count = attr->retry_cnt;
	param->rnr_retry_count = attr->rnr_retry;
	param->min_rnr_timer = attr->min_rnr_timer;
	param->ack_timeout = attr->timeout;
	param->path.port = attr->path.port;
	param->timeout_ms = 30000;
}

/* Handles events of @p's connection; connections of earlier rows may still end. */
static unsigned int
hear(struct fx *fx, struct bb_cm *cm, struct pair p, const struct pair_opts *o,
     const struct bb_conn *calling, bool kept)
{
	struct bb_conn_param param;
	struct bb_conn_info info;
	struct bb_cm_event ev;

	if (bb_cm_poll(cm, &ev, 1) == 0)
		return 0;
	if (ev.type == BB_CM_CONNECT_REQUEST) {
		keep(fx, ev.conn, kept);
		param_of(&o->b, &param);
		OK(fx, bb_conn_accept(ev.conn, p.b, &param));
		return 0;
	}
	bb_conn_query(ev.conn, &info);
	if (ev.conn != calling && info.qp != p.b)
		return 0;
	CHECK(fx, ev.type == BB_CM_ESTABLISHED, "connecting the pair: %s: %s",
	      bb_cm_event_name(ev.type), ev.why);
	return 1;
}

void
link_connect(struct fx *fx, struct pair p, const struct pair_opts *o, bool kept)
{
	const double end = now_s() + RTE_MAX(fx->timeout, 30.0);
	struct link *l = fx->link;
	struct bb_conn_param param;
	struct bb_conn *calling;
	unsigned int up = 0;

	param_of(&o->a, &param);
	OK(fx, bb_conn_connect(l->a, (struct sockaddr *)&l->addr, p.a, &param, &calling));
	keep(fx, calling, kept);
	while (up < 2) {
		up += hear(fx, l->a, p, o, calling, kept);
		if (l->b != l->a)
			up += hear(fx, l->b, p, o, calling, kept);
		CHECK(fx, now_s() < end, "the pair is not connected in time");
	}
}
