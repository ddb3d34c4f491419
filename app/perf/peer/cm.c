/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections by rdma_cm: perftest's option -R. The client connects a first time. Each message of
 * the handshake is one SEND on that connection. After the exchange of the MTU, the client connects
 * once for each queue pair of the test. At the end the server disconnects these connections.
 *
 * Source: perftest 4.5-0.17, src/perftest_communication.c (rdma_client_connect(),
 * create_rdma_cm_connection(), ctx_xchg_data_rdma(), rdma_cm_disconnect_nodes()).
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "perf.h"

#define RECVS     4u   /* posted receives; a peer has one message in flight */
#define SLOT      128u /* bytes of a receive, and of the message to send */
#define EVENTS    8u
#define AGAIN_MS  100u  /* time before the client tries to connect again */
#define SLEEP_US  100u  /* sleep between two polls before the first connection is up */
#define RUNS      64u   /* polls of the device between two polls of the connection manager */
#define FINISH_MS 5000u /* limit for the peer's reply to the last disconnect */

/* State of a connection of rdma_cm. */
enum cm_state {
	CM_NONE, /* no connection; one may be established, also after a failed attempt */
	CM_PENDING,
	CM_UP,
	CM_CLOSED,
};

struct cm_link {
	struct bb_conn *conn;
	enum cm_state state;
	bool absent; /* the last attempt has found no server that listens or answers */
};

struct perf_cm {
	struct bb_cm *cm;
	struct bb_listener *listener;
	struct cm_link control;
	struct cm_link *links; /* connections of the test's QPs; NULL before the QPs exist */
	uint32_t n_links;      /* number of connections that were started or accepted */
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp; /* QP that carries the handshake messages */
	struct bb_mr *mr;
	uint8_t *mem; /* buffers of RECVS receives, then the buffer of the message to send */
	uint32_t lens[RECVS];  /* bytes of received messages */
	uint32_t first, count; /* unread messages: index of the first one, number */
	bool sending, failed;
	bool said_absent;   /* the client has printed that no server listens */
	uint64_t next_line; /* TSC from which the next rejection may be printed */
};

/* ---- Queue pair of the handshake messages */

static int
post_recv(struct perf_cm *c, uint32_t slot)
{
	struct bb_sge sge = {(uint64_t)(uintptr_t)(c->mem + (size_t)slot * SLOT), SLOT,
			     c->mr->lkey};
	int rc = bb_post_recv(c->qp, slot, &sge, 1);

	if (rc == 0)
		bb_qp_ring_recv(c->qp);
	return rc;
}

/* Creates the queue pair of the handshake messages, and posts its receives. Returns 0 or -errno. */
static int
create_queue(struct perf *p, struct perf_cm *c)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	uint32_t i;
	int rc;

	c->mem = rte_zmalloc("bb_perf messages", (size_t)(RECVS + 1) * SLOT, 64);
	if (c->mem == NULL)
		return -ENOMEM;
	rc = bb_pd_alloc(p->dev, &c->pd);
	if (rc == 0)
		rc = bb_mr_reg(c->pd, c->mem, (size_t)(RECVS + 1) * SLOT, BB_ACCESS_LOCAL_WRITE,
			       &c->mr);
	bb_cq_attr_init(&attr);
	attr.depth = 2 * (RECVS + 1);
	if (rc == 0)
		rc = bb_cq_create(p->dev, &attr, &c->cq);
	if (rc != 0)
		return rc;
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = c->cq;
	init.sq_depth = 1;
	init.rq_depth = RECVS;
	rc = bb_qp_create(c->pd, &init, &c->qp);
	for (i = 0; i < RECVS && rc == 0; i++)
		rc = post_recv(c, i);
	return rc;
}

static void
take_completions(struct perf_cm *c)
{
	struct bb_wc wc;

	while (bb_cq_poll(c->cq, &wc, 1) == 1) {
		if (wc.status != BB_WC_SUCCESS)
			c->failed = true;
		else if (wc.opcode != BB_WC_RECV)
			c->sending = false;
		else if (c->count < RECVS) {
			c->lens[wc.wr_id % RECVS] = wc.byte_len;
			c->count++;
		}
	}
}

/*
 * Moves a queue pair back to RESET after a failed attempt to connect. RESET discards the posted
 * receives, even if the CM has caused it. So this function posts the receives for handshake
 * messages again.
 */
static int
reset(struct perf_cm *c, struct bb_qp *qp)
{
	struct bb_qp_stats stats;
	struct bb_qp_attr attr;
	uint32_t i;
	int rc = 0;

	if (qp->state != BB_QP_RESET) {
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		rc = bb_qp_modify(qp, &attr, BB_QP_STATE);
	}
	if (rc != 0 || qp != c->qp)
		return rc;
	take_completions(c);
	c->failed = false;
	rc = bb_qp_stats(qp, &stats);
	for (i = 0; i < RECVS && rc == 0 && stats.recv_outstanding == 0; i++)
		rc = post_recv(c, i);
	return rc;
}

/* ---- Events of connections */

static void
param_of(const struct perf *p, struct bb_conn_param *param)
{
	enum verb verb = p->o.proto->verb;
	bool reads = verb == VERB_READ || verb == VERB_ATOMIC;
	uint32_t depth = p->o.out_reads != 0 ? p->o.out_reads : MAX_READS;

	bb_conn_param_init(param);
	param->path = p->path;
	param->ack_timeout = (uint8_t)p->o.qp_timeout;
	param->min_rnr_timer = 12; /* 0.64 ms, as without -R */
	param->path_mtu = p->mtu;
	param->initiator_depth = (uint8_t)RTE_MIN(reads ? depth : 1, p->attr.max_rd_atomic);
	param->responder_resources =
		(uint8_t)RTE_MIN(reads ? depth : 1, p->attr.max_dest_rd_atomic);
	param->access = verb == VERB_WRITE    ? BB_ACCESS_REMOTE_WRITE
			: verb == VERB_READ   ? BB_ACCESS_REMOTE_READ
			: verb == VERB_ATOMIC ? BB_ACCESS_REMOTE_ATOMIC
					      : 0;
	if (p->o.gid_index != GID_ANY) {
		param->sgid_index_given = true;
		param->path.sgid_index = (uint8_t)p->o.gid_index;
	}
}

/*
 * Rejects a connection. Prints the reason at most once a second, because the peers decide how often
 * they connect.
 */
static void
reject(struct perf *p, struct bb_conn *conn, const char *why)
{
	struct perf_cm *c = p->cm;
	uint64_t now = rte_rdtsc();

	if (now >= c->next_line) {
		say("a connection of rdma_cm is rejected: %s", why);
		c->next_line = now + p->tsc_hz;
	}
	(void)bb_conn_reject(conn, NULL, 0);
	bb_conn_destroy(conn);
}

/* Accepts the first connection for the handshake messages, and the later ones for the test. */
static void
accept_one(struct perf *p, const struct bb_cm_event *ev)
{
	struct perf_cm *c = p->cm;
	struct cm_link *link = &c->control;
	struct bb_qp *qp = c->qp;
	struct bb_conn_param param;
	int rc = -ENOSPC;

	if (link->state != CM_NONE) {
		link = c->links != NULL && c->n_links < p->o.qps ? &c->links[c->n_links] : NULL;
		qp = link != NULL ? p->qps[c->n_links].qp : NULL;
	}
	if (link != NULL) {
		param_of(p, &param);
		rc = bb_conn_accept(ev->conn, qp, &param);
	}
	if (rc != 0) {
		reject(p, ev->conn,
		       link != NULL ? strerror(-rc) : "the test has all its queue pairs (--qp)");
		rc = link != NULL ? reset(c, qp) : 0;
		if (rc != 0) {
			perf_error("preparing the next connection of rdma_cm", rc);
			link->state = CM_CLOSED;
		}
		return;
	}
	link->conn = ev->conn;
	link->state = CM_PENDING;
	c->n_links += link != &c->control;
	bb_conn_user_set(ev->conn, link);
}

/*
 * Returns true if another attempt to connect may succeed: no server listens yet, or the host does
 * not reply.
 */
static bool
is_absence(const struct bb_cm_event *ev)
{
	if (ev->type == BB_CM_REJECTED)
		return ev->reason == BB_REJECT_NO_LISTENER;
	return ev->type == BB_CM_FAILED &&
	       (ev->status == -ETIMEDOUT || ev->status == -EHOSTUNREACH);
}

/* Prints why a connection has failed or ended. Prints only once that no server listens. */
static void
say_why(struct perf *p, const struct cm_link *link, const struct bb_cm_event *ev)
{
	if (!link->absent) {
		say("the connection of rdma_cm failed: %s", ev->why);
		return;
	}
	if (p->cm->said_absent || link != &p->cm->control)
		return;
	p->cm->said_absent = true;
	say("%s port %u: no server listens yet (%s); start %s -R on that host, without HOST; "
	    "trying for %u s",
	    p->o.host, p->o.tcp_port, ev->why, p->o.proto->peer, p->o.seconds);
}

static void
take_event(struct perf *p, const struct bb_cm_event *ev)
{
	struct perf_cm *c = p->cm;
	struct cm_link *link;
	bool early;

	if (ev->type == BB_CM_CONNECT_REQUEST) {
		accept_one(p, ev);
		return;
	}
	link = bb_conn_user(ev->conn);
	if (ev->type == BB_CM_ESTABLISHED) {
		link->state = CM_UP;
		return;
	}
	early = link->state != CM_UP;
	link->absent = is_client(p) && is_absence(ev);
	if (early)
		say_why(p, link, ev);
	link->state = link->absent ? CM_NONE : CM_CLOSED;
	link->conn = NULL;
	bb_conn_destroy(ev->conn);
	/*
	 * If the client gives up before the connection is established, the server waits for another
	 * client.
	 */
	if (early && p->server && link == &c->control && reset(c, c->qp) == 0)
		link->state = CM_NONE;
}

static void
take_events(struct perf *p)
{
	struct bb_cm_event events[EVENTS];
	unsigned int i, n;

	n = bb_cm_poll(p->cm->cm, events, EVENTS);
	for (i = 0; i < n; i++)
		take_event(p, &events[i]);
}

/* Polls the device, the CM and the handshake's CQ. Returns 0, or -1 if the wait has to end. */
static int
run(struct perf *p, const char *what)
{
	struct perf_cm *c = p->cm;
	uint32_t i;

	if (stop_signal != 0) {
		say("stopped while waiting for the peer");
		return -1;
	}
	if (perf_overdue(p)) {
		say("no %s in %u s (--silence); does the peer run %s with -R?", what, p->o.seconds,
		    p->o.proto->peer);
		return -1;
	}
	if (c->control.state == CM_UP)
		for (i = 0; i < RUNS; i++)
			bb_dev_progress(p->dev);
	else
		rte_delay_us_sleep(SLEEP_US);
	take_events(p);
	take_completions(c);
	return 0;
}

/* ---- Connecting */

static int
resolve(const struct perf *p, struct sockaddr_storage *addr)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", p->o.tcp_port);
	rc = getaddrinfo(p->o.host, service, &hints, &all);
	if (rc != 0) {
		say("%s: %s; give the name or the IP address of the server's RDMA device",
		    p->o.host, gai_strerror(rc));
		return -1;
	}
	memcpy(addr, all->ai_addr, all->ai_addrlen);
	freeaddrinfo(all);
	return 0;
}

/*
 * Connects @qp, and waits until the connection is established. If no server listens, tries again,
 * because a perftest server listens anew for the connections of the test, a moment after its last
 * reply.
 */
static int
connect_one(struct perf *p, struct cm_link *link, struct bb_qp *qp)
{
	struct perf_cm *c = p->cm;
	struct sockaddr_storage addr;
	struct bb_conn_param param;
	uint64_t next = 0;
	int rc;

	if (resolve(p, &addr) != 0)
		return -1;
	perf_progress(p);
	while (link->state != CM_UP) {
		if (link->state == CM_CLOSED)
			return -1;
		if (link->state == CM_NONE && rte_rdtsc() >= next) {
			param_of(p, &param);
			rc = reset(c, qp);
			if (rc == 0)
				rc = bb_conn_connect(c->cm, (const struct sockaddr *)&addr, qp,
						     &param, &link->conn);
			if (rc != 0) {
				perf_error("connecting by rdma_cm", rc);
				return -1;
			}
			bb_conn_user_set(link->conn, link);
			link->state = CM_PENDING;
			link->absent = false;
			next = rte_rdtsc() + p->tsc_hz / 1000 * AGAIN_MS;
		}
		if (run(p, "connection") != 0)
			return -1;
	}
	return 0;
}

static int
serve(struct perf *p)
{
	struct perf_cm *c = p->cm;
	struct sockaddr_storage addr;
	char any[16];
	int rc;

	snprintf(any, sizeof(any), ":%u", p->o.tcp_port);
	rc = bb_cm_addr(any, &addr);
	if (rc == 0)
		rc = bb_listener_create(c->cm, (const struct sockaddr *)&addr, &c->listener);
	if (rc != 0) {
		say("--port %u: cannot listen at this port of rdma_cm: %s; give both ends another "
		    "-p",
		    p->o.tcp_port, strerror(-rc));
		return -1;
	}
	printf("waiting for %s -R on port %u of rdma_cm\n", p->o.proto->peer, p->o.tcp_port);
	fflush(stdout);
	perf_progress(p);
	while (c->control.state != CM_UP) {
		if (c->control.state == CM_CLOSED || run(p, "client") != 0)
			return -1;
	}
	return 0;
}

int
cm_open(struct perf *p)
{
	struct bb_cm_attr attr;
	struct perf_cm *c;
	int rc;

	c = p->cm = calloc(1, sizeof(*c));
	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_RDMA;
	rc = c == NULL ? -ENOMEM : bb_cm_create(p->dev, &attr, &c->cm);
	if (rc == 0)
		rc = create_queue(p, c);
	if (rc != 0) {
		perf_error("--rdma-cm: preparing the connection", rc);
		return -1;
	}
	return p->server ? serve(p) : connect_one(p, &c->control, c->qp);
}

int
cm_expect(struct perf *p)
{
	p->cm->links = calloc(p->o.qps, sizeof(*p->cm->links));
	if (p->cm->links != NULL)
		return 0;
	perf_error("--rdma-cm: preparing the connections", -ENOMEM);
	return -1;
}

int
cm_connect(struct perf *p)
{
	struct perf_cm *c = p->cm;
	uint32_t i, up = 0;

	for (i = 0; is_client(p) && i < p->o.qps; i++) {
		c->n_links = i + 1;
		if (connect_one(p, &c->links[i], p->qps[i].qp) != 0)
			return -1;
	}
	perf_progress(p);
	while (up < p->o.qps) {
		if (c->links[up].state == CM_CLOSED || c->control.state == CM_CLOSED)
			return -1;
		if (c->links[up].state == CM_UP)
			up++;
		else if (run(p, "connection for each queue pair (--qp)") != 0)
			return -1;
	}
	return 0;
}

/* ---- Messages */

int
cm_write(struct perf *p, const void *buf, size_t len)
{
	struct perf_cm *c = p->cm;
	uint8_t *out = c->mem + (size_t)RECVS * SLOT;
	struct bb_sge sge = {(uint64_t)(uintptr_t)out, (uint32_t)len, c->mr->lkey};
	int rc;

	memcpy(out, buf, RTE_MIN(len, (size_t)SLOT));
	rc = bb_post_send(c->qp, RECVS, &sge, 1, BB_SEND_SIGNALED);
	if (rc == 0)
		bb_qp_ring(c->qp);
	c->sending = true;
	perf_progress(p);
	while (rc == 0 && c->sending) {
		if (c->failed || c->control.state != CM_UP)
			rc = -EPIPE;
		else if (run(p, "acknowledgement of a message") != 0)
			return -1;
	}
	if (rc != 0)
		say("a message over the connection of rdma_cm cannot be sent: %s; see the peer's "
		    "output",
		    strerror(-rc));
	return rc == 0 ? 0 : -1;
}

int
cm_read(struct perf *p, void *buf, size_t len, const char *what)
{
	struct perf_cm *c = p->cm;
	uint32_t slot = c->first;

	perf_progress(p);
	while (c->count == 0) {
		if (c->failed || c->control.state != CM_UP) {
			say("the peer has disconnected before its message \"%s\"; does the peer "
			    "run %s with -R? See its output",
			    what, p->o.proto->peer);
			return -1;
		}
		if (run(p, what) != 0)
			return -1;
	}
	if (c->lens[slot] != len) {
		say("the peer's message \"%s\" has %u bytes instead of %zu; does the peer run %s?",
		    what, c->lens[slot], len, p->o.proto->peer);
		return -1;
	}
	memcpy(buf, c->mem + (size_t)slot * SLOT, len);
	c->first = (slot + 1) % RECVS;
	c->count--;
	return post_recv(c, slot) == 0 ? 0 : -1;
}

/* ---- End */

bool
cm_peer_gone(struct perf *p)
{
	take_events(p);
	take_completions(p->cm);
	return p->cm->control.state != CM_UP;
}

/* Polls until the connection has ended, but not after TSC @end. */
static void
wait_closed(struct perf *p, const struct cm_link *link, uint64_t end)
{
	while (link->conn != NULL && rte_rdtsc() < end && stop_signal == 0) {
		bb_dev_progress(p->dev);
		take_events(p);
		take_completions(p->cm);
	}
}

void
cm_finish(struct perf *p)
{
	struct perf_cm *c = p->cm;
	uint64_t limit = p->tsc_hz / 1000 * FINISH_MS, end = rte_rdtsc() + limit;
	uint32_t i;

	for (i = 0; p->server && i < c->n_links; i++)
		if (c->links[i].conn != NULL)
			(void)bb_conn_disconnect(c->links[i].conn, NULL, 0);
	for (i = 0; i < c->n_links; i++)
		wait_closed(p, &c->links[i], end);
	if (c->control.conn != NULL && is_client(p))
		(void)bb_conn_disconnect(c->control.conn, NULL, 0);
	wait_closed(p, &c->control, rte_rdtsc() + limit);
}

void
cm_close(struct perf *p)
{
	struct perf_cm *c = p->cm;
	uint32_t i;
	int rc = 0;

	if (c == NULL)
		return;
	for (i = 0; i < c->n_links; i++)
		if (c->links[i].conn != NULL)
			bb_conn_destroy(c->links[i].conn);
	if (c->control.conn != NULL)
		bb_conn_destroy(c->control.conn);
	if (c->listener != NULL)
		rc |= bb_listener_destroy(c->listener);
	if (c->qp != NULL)
		rc |= bb_qp_destroy(c->qp);
	if (c->cm != NULL)
		rc |= bb_cm_destroy(c->cm);
	if (c->cq != NULL)
		rc |= bb_cq_destroy(c->cq);
	if (c->mr != NULL)
		rc |= bb_mr_dereg(c->mr);
	if (c->pd != NULL)
		rc |= bb_pd_free(c->pd);
	rte_free(c->mem);
	free(c->links);
	free(c);
	p->cm = NULL;
	if (rc != 0)
		say("an object of --rdma-cm could not be destroyed; the lines above say why");
}
