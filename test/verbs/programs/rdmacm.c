/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Many connections by librdmacm, with a queue pair each. Prints the number of connections, the most
 * that were open at a time, and the rate. Arguments:
 *
 * - serve COUNT: accept COUNT connections and wait for their ends;
 * - open ADDRESS COUNT: open COUNT connections, then end all;
 * - cycle ADDRESS COUNT WINDOW: open and end COUNT, at most WINDOW at a time;
 * - idle ADDRESS COUNT: open COUNT connections, print "open", and wait for their ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>

#define PORT    7471
#define BACKLOG 1024
#define MS      5000

static struct rdma_event_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct rdma_cm_id **ids;
static unsigned long total, started, opened, ended, open_now, most;

static void
fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All queue pairs share a CQ, which no completion uses. */
static void
make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	if (pd == NULL)
		pd = ibv_alloc_pd(id->verbs);
	if (cq == NULL)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	if (pd == NULL || cq == NULL || rdma_create_qp(id, pd, &attr) != 0)
		fail("rdma_create_qp");
}

/* The context of an open connection is not NULL. */
static void
established(struct rdma_cm_id *id)
{
	id->context = id;
	opened++;
	if (++open_now > most)
		most = open_now;
}

/* Acknowledges the event first: rdma_destroy_id() waits for that. */
static void
end(struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;

	/* A server may learn of the end before it learns that the connection was established. */
	ended += ev->event == RDMA_CM_EVENT_DISCONNECTED;
	open_now -= id->context != NULL;
	rdma_ack_cm_event(ev);
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id) != 0)
		fail("rdma_destroy_id");
}

static struct rdma_conn_param
param(void)
{
	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

static void
unexpected(const struct rdma_cm_event *ev)
{
	fprintf(stderr, "%s, status %d, after %lu connections\n", rdma_event_str(ev->event),
		ev->status, opened);
	exit(1);
}

/* ---- The two sides */

static void
serve_event(struct rdma_cm_event *ev)
{
	struct rdma_conn_param p = param();

	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(ev->id);
		if (rdma_accept(ev->id, &p) == 0)
			break;
		end(ev); /* the client has ended meanwhile */
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(ev->id);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		end(ev);
		return;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		unexpected(ev);
	}
	rdma_ack_cm_event(ev);
}

static void
serve(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(id, (struct sockaddr *)&a) != 0 || rdma_listen(id, BACKLOG) != 0)
		fail("rdma_listen");
	while (ended < total) {
		if (rdma_get_cm_event(channel, &ev) != 0)
			fail("rdma_get_cm_event");
		serve_event(ev);
	}
	rdma_destroy_id(id);
}

static void
begin(const struct sockaddr_in *to)
{
	struct sockaddr_in a = *to;
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, MS) != 0)
		fail("rdma_resolve_addr");
	started++;
}

/* Use that a client makes of its connections once they are established. */
enum use {
	CYCLE, /* ends each */
	OPEN,  /* ends all when all are established */
	IDLE,
};

static void
client_established(struct rdma_cm_id *id, enum use use)
{
	unsigned long i;

	ids[opened] = id;
	established(id);
	if (use == CYCLE)
		rdma_disconnect(id);
	if (opened < total)
		return;
	for (i = 0; use == OPEN && i < total; i++)
		rdma_disconnect(ids[i]);
	if (use == IDLE) {
		puts("open");
		fflush(stdout);
	}
}

static void
client_event(struct rdma_cm_event *ev, enum use use)
{
	struct rdma_conn_param p = param();

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(ev->id, MS) != 0)
			fail("rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(ev->id);
		if (rdma_connect(ev->id, &p) != 0)
			fail("rdma_connect");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		client_established(ev->id, use);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		end(ev);
		return;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		unexpected(ev);
	}
	rdma_ack_cm_event(ev);
}

/* Returns the time at which the last connection was established. */
static double
client(const char *address, unsigned long window, enum use use)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_event *ev;
	double last = 0;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		fail("inet_pton");
	ids = calloc(total, sizeof(*ids));
	if (ids == NULL)
		fail("calloc");
	while (ended < total) {
		while (started < total && started - ended < window)
			begin(&to);
		if (rdma_get_cm_event(channel, &ev) != 0)
			fail("rdma_get_cm_event");
		client_event(ev, use);
		if (opened == total && last == 0)
			last = seconds();
	}
	return last;
}

int
main(int argc, char **argv)
{
	const double start = seconds();
	double last;

	channel = rdma_create_event_channel();
	if (channel == NULL)
		fail("rdma_create_event_channel");
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		total = strtoul(argv[2], NULL, 10);
		serve();
		last = seconds();
	} else if (argc >= 4) {
		total = strtoul(argv[3], NULL, 10);
		last = client(argv[2], argc > 4 ? strtoul(argv[4], NULL, 10) : total,
			      argc > 4                       ? CYCLE
			      : strcmp(argv[1], "idle") == 0 ? IDLE
							     : OPEN);
	} else {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	printf("%lu connections, at most %lu open at a time, %.0f a second\n", opened, most,
	       (double)opened / (last - start));
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	rdma_destroy_event_channel(channel);
	return ended == total ? 0 : 1;
}
