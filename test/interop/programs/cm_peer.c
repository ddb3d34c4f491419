/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * One end of a connection by librdmacm or BB_CM_IB, for test_rdmacm.py and test_cm_ib.py. The peer
 * is this program, too, or a program of Debian's rdmacm-utils.
 *
 *   cm_peer EAL-OPTIONS -- DEVICE ADDRESS:PORT SIDE [N]
 *
 *   listens            connects
 *   rping-server       rping-client    N rounds of rping's protocol, with its text checked
 *   cycle-server       cycle-client    N times: connect, three SENDs, disconnect
 *   many-server        many-client     N connections at a time
 *   no-server          no-client       rejected, with all the private data that fits
 *   mute-server        mute-client     the client gives up after N ms, then the server answers
 *   hold-server        hold-client     an established connection whose peer is killed
 *                      nobody          to a port without a listener
 *
 * Prints "listening" and its results. Exit status 0: the results are right.
 */
#include <stdlib.h>

#include <bluebell.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "cm_peer.h"

#define MANY_MAX 256
/* Private data that the service of RDMA_PS_TCP leaves in each message. */
#define PRIVATE_REQ 56
#define PRIVATE_REP 196
#define PRIVATE_REJ 148

static struct bb_dev *dev;
static const char *where;
uint32_t count;
char *buf;

int
new_ep(bool passive, uint32_t timeout_ms, struct bb_ep **ep)
{
	struct bb_ep_attr attr;

	bb_ep_attr_init(&attr);
	attr.transport = BB_CM_RDMA;
	attr.timeout_ms = timeout_ms;
	return bb_ep_create(dev, where, passive, &attr, ep);
}

int
listen_at(struct bb_ep **listener)
{
	int rc = new_ep(true, WAIT_MS, listener);

	if (rc == 0)
		printf("listening at port %u\n", bb_ep_port(*listener));
	return rc;
}

void
param_init(struct bb_conn_param *param)
{
	bb_conn_param_init(param);
	param->timeout_ms = WAIT_MS;
	/* A guest is slow. */
	param->ack_timeout = 18;
	param->access = BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_WRITE;
}

/* Fills memory with bytes that identify the message. */
static void
pattern(uint8_t *p, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 31 + i % 251);
}

static bool
is_pattern(const void *data, uint32_t len, uint32_t seed)
{
	const uint8_t *p = data;

	for (uint32_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(seed * 31 + i % 251))
			return false;
	return true;
}

int
wait_end(struct bb_ep *ep)
{
	const uint64_t end = rte_get_tsc_cycles() + rte_get_tsc_hz() * (WAIT_MS / 1000);

	while (bb_ep_connected(ep))
		if (rte_get_tsc_cycles() > end)
			return -ETIMEDOUT;
	return ep->event.type == BB_CM_DISCONNECTED && ep->event.status == 0 ? 0 : -EPROTO;
}

int
wait_wc(struct bb_ep *ep, bool sent)
{
	struct bb_wc wc;
	int rc = sent ? bb_ep_get_send_comp(ep, &wc) : bb_ep_get_recv_comp(ep, &wc);

	if (rc < 0)
		return rc;
	if (wc.status != BB_WC_SUCCESS) {
		printf("completion: %s\n", bb_wc_status_name(wc.status));
		return -EIO;
	}
	return (int)wc.byte_len;
}

void
drop(struct bb_ep *ep, struct bb_mr *mr)
{
	if (mr != NULL)
		bb_mr_dereg(mr);
	if (ep != NULL)
		bb_ep_destroy(ep);
}

/* Opens a listening endpoint and takes its first request. */
static int
first_request(struct bb_ep **listener, struct bb_ep **ep)
{
	int rc = listen_at(listener);

	return rc == 0 ? bb_ep_get_request(*listener, ep) : rc;
}

static bool
is_iwarp(const struct bb_ep *ep)
{
	struct bb_dev_attr attr;

	return bb_dev_query(ep->dev, &attr) == 0 && attr.iwarp;
}

void
let_accept(const struct bb_ep *ep)
{
	if (is_iwarp(ep))
		rte_delay_us_sleep(SIW_ACCEPT_US);
}

/* Connects a new endpoint, with this time limit. */
static int
call(uint32_t timeout_ms, struct bb_ep **ep)
{
	struct bb_conn_param param;
	int rc = new_ep(false, WAIT_MS, ep);

	param_init(&param);
	param.timeout_ms = timeout_ms;
	return rc == 0 ? bb_ep_connect(*ep, &param) : rc;
}

/* ---- Set up and tear down */

static int
send_pattern(struct bb_ep *ep, struct bb_mr *mr, uint32_t seed)
{
	pattern((uint8_t *)buf + OUT, 64, seed);
	return bb_ep_post_send(ep, NULL, buf + OUT, 64, mr, BB_SEND_SIGNALED);
}

static int
hear_pattern(struct bb_ep *ep, uint32_t seed)
{
	int rc = wait_wc(ep, false);

	return rc < 0 ? rc : rc == 64 && is_pattern(buf + IN, 64, seed) ? 0 : -EPROTO;
}

/* On iWARP the connecting end must send first; used when the other end starts the exchange. */
static int
call_out(struct bb_ep *ep, struct bb_mr *mr, bool calls, uint32_t seed)
{
	int rc;

	if (!is_iwarp(ep))
		return 0;
	if (calls) {
		TRY(send_pattern(ep, mr, seed));
		TRY(wait_wc(ep, true));
	} else {
		TRY(hear_pattern(ep, seed));
		TRY(bb_ep_post_recv(ep, NULL, buf + IN, 64, mr));
	}
out:
	return rc;
}

/*
 * Three SENDs, then one end disconnects. The peer's last SEND may be flushed, as the disconnect
 * may overtake the ACK; the two before it have arrived.
 */
static int
talk_and_end(struct bb_ep *ep, struct bb_mr *mr, bool calls, bool disconnects, uint32_t seed)
{
	int rc;

	if (calls == disconnects)
		TRY(call_out(ep, mr, calls, seed + 3));
	if (disconnects) {
		TRY(hear_pattern(ep, seed));
		TRY(bb_ep_post_recv(ep, NULL, buf + IN, 64, mr));
		TRY(send_pattern(ep, mr, seed + 1));
		TRY(wait_wc(ep, true));
		TRY(hear_pattern(ep, seed + 2));
		TRY(bb_ep_disconnect(ep));
	} else {
		TRY(send_pattern(ep, mr, seed));
		TRY(wait_wc(ep, true));
		TRY(hear_pattern(ep, seed + 1));
		TRY(send_pattern(ep, mr, seed + 2));
		TRY(wait_end(ep));
	}
	CHECK(ep->event.type == BB_CM_DISCONNECTED && ep->event.status == 0);
	CHECK(ep->qp->state == BB_QP_ERR);
out:
	return rc;
}

static int
cycle_accept(struct bb_ep *listener, uint32_t i)
{
	uint8_t private[PRIVATE_REP];
	struct bb_conn_param param;
	struct bb_ep *ep = NULL;
	struct bb_mr *mr = NULL;
	int rc;

	TRY(bb_ep_get_request(listener, &ep));
	CHECK(ep->event.private_len == PRIVATE_REQ);
	CHECK(is_pattern(ep->event.private_data, PRIVATE_REQ, i));
	TRY(bb_ep_reg_msgs(ep, buf, BUF_SIZE, &mr));
	TRY(bb_ep_post_recv(ep, NULL, buf + IN, 64, mr));
	param_init(&param);
	pattern(private, sizeof(private), i + 1);
	param.private_data = private;
	param.private_len = sizeof(private);
	TRY(bb_ep_accept(ep, &param));
	TRY(talk_and_end(ep, mr, false, i % 2 != 0, i + 2));
out:
	drop(ep, mr);
	return rc;
}

static int
cycle_server(void)
{
	struct bb_ep *listener = NULL;
	struct bb_cm_stats stats;
	int rc;

	TRY(listen_at(&listener));
	for (uint32_t i = 0; i < count; i++)
		TRY(cycle_accept(listener, i));
	bb_cm_stats(listener->cm, &stats);
	CHECK(stats.conns == 0 && stats.half_open == 0 && stats.established == count);
	CHECK(stats.bad_messages == 0 && stats.timeouts == 0);
	printf("%u connections made and ended\n", count);
out:
	drop(listener, NULL);
	return rc;
}

static int
cycle_connect(uint32_t i)
{
	uint8_t private[PRIVATE_REQ];
	struct bb_conn_param param;
	struct bb_conn_info info;
	struct bb_ep *ep = NULL;
	struct bb_mr *mr = NULL;
	int rc;

	TRY(new_ep(false, WAIT_MS, &ep));
	TRY(bb_ep_reg_msgs(ep, buf, BUF_SIZE, &mr));
	TRY(bb_ep_post_recv(ep, NULL, buf + IN, 64, mr));
	param_init(&param);
	param.initiator_depth = 2;
	param.responder_resources = 3;
	pattern(private, sizeof(private), i);
	param.private_data = private;
	param.private_len = sizeof(private);
	TRY(bb_ep_connect(ep, &param));
	let_accept(ep);
	/* The kernel may send more than was given, padded with zeros. */
	CHECK(ep->event.private_len >= PRIVATE_REP);
	CHECK(is_pattern(ep->event.private_data, PRIVATE_REP, i + 1));
	bb_conn_query(ep->conn, &info);
	CHECK(info.initiator_depth == 2 && info.responder_resources == 3);
	TRY(talk_and_end(ep, mr, true, i % 2 == 0, i + 2));
out:
	drop(ep, mr);
	return rc;
}

static int
cycle_client(void)
{
	int rc = 0;

	for (uint32_t i = 0; i < count; i++)
		TRY(cycle_connect(i));
	printf("%u connections made and ended\n", count);
out:
	return rc;
}

/* ---- Many connections at a time */

/* As ucmatose: when all are connected the server disconnects. */
static int
many_server(void)
{
	struct bb_ep *listener = NULL, *ep[MANY_MAX] = {NULL};
	struct bb_mr *mr[MANY_MAX] = {NULL};
	struct bb_conn_param param;
	int rc;

	TRY(listen_at(&listener));
	param_init(&param);
	for (uint32_t i = 0; i < count; i++) {
		TRY(bb_ep_get_request(listener, &ep[i]));
		TRY(bb_ep_reg_msgs(ep[i], buf, BUF_SIZE, &mr[i]));
		TRY(bb_ep_post_recv(ep[i], NULL, buf + IN, 64, mr[i]));
		TRY(bb_ep_accept(ep[i], &param));
	}
	printf("%u connections\n", count);
	for (uint32_t i = 0; i < count; i++)
		TRY(call_out(ep[i], mr[i], false, 7));
	for (uint32_t i = 0; i < count; i++)
		TRY(bb_ep_disconnect(ep[i]));
out:
	for (uint32_t i = 0; i < count; i++)
		drop(ep[i], mr[i]);
	drop(listener, NULL);
	return rc;
}

static int
many_client(void)
{
	struct bb_ep *ep[MANY_MAX] = {NULL};
	struct bb_mr *mr[MANY_MAX] = {NULL};
	struct bb_conn_param param;
	int rc = 0;

	param_init(&param);
	for (uint32_t i = 0; i < count; i++) {
		TRY(new_ep(false, WAIT_MS, &ep[i]));
		TRY(bb_ep_reg_msgs(ep[i], buf, BUF_SIZE, &mr[i]));
		rc = bb_ep_connect(ep[i], &param);
		/* The last one may already be disconnected when this process runs again. */
		if (rc == -ENOTCONN && ep[i]->event.type == BB_CM_DISCONNECTED)
			rc = ep[i]->event.status;
		TRY(rc);
	}
	let_accept(ep[0]);
	for (uint32_t i = 0; i < count; i++)
		TRY(call_out(ep[i], mr[i], true, 7));
	for (uint32_t i = 0; i < count; i++)
		TRY(wait_end(ep[i]));
	printf("%u connections, all disconnected by the peer\n", count);
out:
	for (uint32_t i = 0; i < count; i++)
		drop(ep[i], mr[i]);
	return rc;
}

/* ---- Connections that fail */

static int
no_server(void)
{
	struct bb_ep *listener = NULL, *ep = NULL;
	uint8_t private[PRIVATE_REJ];
	int rc;

	TRY(first_request(&listener, &ep));
	pattern(private, sizeof(private), 5);
	TRY(bb_ep_reject(ep, private, sizeof(private)));
	printf("rejected\n");
out:
	drop(ep, NULL);
	drop(listener, NULL);
	return rc;
}

/* As the client of "no": rejected with that reason, and at least that much of pattern 5. */
static int
expect_no(uint32_t reason, uint32_t len)
{
	struct bb_ep *ep = NULL;
	int rc = call(WAIT_MS, &ep);

	CHECK(rc == -ECONNREFUSED);
	CHECK(ep->event.type == BB_CM_REJECTED);
	printf("rejected: %u, %s: %s, %u bytes\n", ep->event.reason,
	       bb_reject_name(ep->event.reason), ep->event.why, ep->event.private_len);
	CHECK(ep->event.reason == reason);
	CHECK(ep->event.private_len >= len && is_pattern(ep->event.private_data, len, 5));
	rc = 0;
out:
	drop(ep, NULL);
	return rc;
}

static int
no_client(void)
{
	return expect_no(BB_REJECT_CONSUMER, PRIVATE_REJ);
}

static int
nobody(void)
{
	return expect_no(BB_REJECT_NO_LISTENER, 0);
}

static int
mute_server(void)
{
	struct bb_ep *listener = NULL, *ep = NULL;
	struct bb_conn_param param;
	int rc;

	TRY(first_request(&listener, &ep));
	printf("asked\n");
	/* The test says when the peer has given up. */
	(void)getchar();
	param_init(&param);
	rc = bb_ep_accept(ep, &param);
	printf("accept: %s\n", strerror(-rc));
	/* The kernel has the end of the connection, or reports it as the answer. */
	CHECK(rc == -ENOTCONN || rc == -ECONNREFUSED);
	rc = 0;
out:
	drop(ep, NULL);
	drop(listener, NULL);
	return rc;
}

static int
mute_client(void)
{
	struct bb_ep *ep = NULL;
	int rc = call(count, &ep);

	CHECK(ep != NULL);
	printf("%s: status %d, %s\n", bb_cm_event_name(ep->event.type), ep->event.status,
	       ep->event.why);
	CHECK(ep->event.type == BB_CM_FAILED && rc == ep->event.status);
	CHECK(rc == -ETIMEDOUT || rc == -EHOSTUNREACH);
	rc = 0;
out:
	drop(ep, NULL);
	return rc;
}

/* Stays established until the peer is gone. */
static int
held(struct bb_ep *ep)
{
	int rc;

	printf("established\n");
	TRY(wait_end(ep));
	CHECK(ep->qp->state == BB_QP_ERR);
	printf("disconnected by the peer\n");
out:
	return rc;
}

static int
hold_server(void)
{
	struct bb_ep *listener = NULL, *ep = NULL;
	struct bb_conn_param param;
	int rc;

	TRY(first_request(&listener, &ep));
	param_init(&param);
	TRY(bb_ep_accept(ep, &param));
	TRY(held(ep));
out:
	drop(ep, NULL);
	drop(listener, NULL);
	return rc;
}

static int
hold_client(void)
{
	struct bb_ep *ep = NULL;
	int rc;

	TRY(call(WAIT_MS, &ep));
	TRY(held(ep));
out:
	drop(ep, NULL);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(void);
} roles[] = {
	{"rping-server", rping_server},
	{"rping-client", rping_client},
	{"cycle-server", cycle_server},
	{"cycle-client", cycle_client},
	{"many-server", many_server},
	{"many-client", many_client},
	{"no-server", no_server},
	{"no-client", no_client},
	{"mute-server", mute_server},
	{"mute-client", mute_client},
	{"hold-server", hold_server},
	{"hold-client", hold_client},
	{"nobody", nobody},
};

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), rc;
	unsigned int i;

	if (used < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	argv += used;
	argc -= used;
	for (i = 0; argc >= 4 && i < RTE_DIM(roles); i++)
		if (strcmp(argv[3], roles[i].name) == 0)
			break;
	if (argc < 4 || argc > 5 || i == RTE_DIM(roles)) {
		fprintf(stderr, "usage: cm_peer EAL-OPTIONS -- DEVICE ADDRESS:PORT SIDE [N]\n");
		return 2;
	}
	where = argv[2];
	count = argc == 5 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1;
	if (count == 0 || (strncmp(argv[3], "many", 4) == 0 && count > MANY_MAX)) {
		fprintf(stderr, "cm_peer: %s: 1 to %d\n", argv[4], MANY_MAX);
		return 2;
	}
	buf = rte_zmalloc("buf", BUF_SIZE, 4096);
	rc = buf == NULL ? -ENOMEM : bb_dev_open(argv[1], &dev);
	if (rc == 0) {
		rc = roles[i].run();
		if (bb_dev_close(dev) != 0)
			rc = -EBUSY;
	}
	rte_free(buf);
	rte_eal_cleanup();
	return rc < 0 ? 1 : 0;
}
