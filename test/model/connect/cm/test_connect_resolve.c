/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A peer names a GID whose address is not known yet, or that no device has. The test answers for
 * the device. Until a GID is resolved its connection waits without blocking, and all other users
 * of the poll loop continue.
 */
#include "soft_ctl.h"

#include "connect_raw.h"

#define TURNS 300

/* A GID of the test, and the device's answer for it. */
static struct rule {
	uint8_t gid[16];
	int ret;  /* result of av_ready */
	int sgid; /* only from this GID index; -1: from any */
	unsigned int asked, resolved;
} rules[64];
static unsigned int nrules;

int __real_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);
int __wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);
int __real_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			   uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);
int __wrap_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			   uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);

static struct rule *
rule_of(const uint8_t gid[16], uint32_t sgid)
{
	unsigned int i;

	for (i = 0; i < nrules; i++)
		if (memcmp(rules[i].gid, gid, 16) == 0 &&
		    (rules[i].sgid < 0 || rules[i].sgid == (int)sgid))
			return &rules[i];
	return NULL;
}

int
__wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
		     const uint8_t dgid[16])
{
	struct rule *r = rule_of(dgid, sgid_index);

	if (r == NULL)
		return __real_soft_av_ready(ctx, port, sgid_index, dgid);
	r->asked++;
	return r->ret;
}

int
__wrap_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		       const uint8_t dgid[16], struct mlx5_av *av)
{
	struct rule *r = rule_of(dgid, sgid_index);

	if (r == NULL)
		return __real_soft_av_resolve(ctx, pd, port, sgid_index, dgid, av);
	r->resolved++;
	if (r->ret == -EAGAIN)
		fail_msg("the thread that polls waits for the address of a GID");
	if (r->ret == 0)
		memset(av->dmac, 2, sizeof(av->dmac));
	return r->ret;
}

static struct rule *
gid_rule(uint8_t last, int ret)
{
	struct rule *r = &rules[nrules++];

	*r = (struct rule){
		.gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, last}, .ret = ret, .sgid = -1};
	return r;
}

static void
open_pair(uint32_t half_open_ms)
{
	struct bb_cm_attr attr;

	nrules = 0;
	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	attr.half_open_ms = half_open_ms;
	pair_open_with(&p, "soft0", NULL, &attr);
}

static size_t
encode(uint8_t *buf, uint8_t type, const struct rule *r, uint64_t session)
{
	struct bb_cm_msg msg = {
		.type = type,
		.end = {.addr = {.qpn = 5, .lid = 1, .mtu = 1024},
			.sq_depth = 16,
			.session = session},
	};

	memcpy(msg.end.addr.gid, r->gid, 16);
	return bb_cm_msg_encode(buf, &msg);
}

/* Connects a peer that sends a request with the GID of @r. */
static int
requests(const struct rule *r)
{
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n = encode(buf, BB_CM_REQ, r, 0);
	int fd = raw_connect();

	assert_int_equal(send(fd, buf, n, MSG_NOSIGNAL), n);
	return fd;
}

static void
turns(void)
{
	int i;

	for (i = 0; i < TURNS; i++)
		turn(&p);
}

static struct rule *wanted;

static bool
is_asked(void)
{
	return wanted->asked != 0;
}

static void
until_asked(struct rule *r)
{
	wanted = r;
	until(is_asked);
}

/* Checks that another connection transfers data. */
static void
link_lives(struct link *l, uint8_t byte)
{
	writes(&p, l, byte);
}

PAIR_TEST(open_pair(WAIT_S * 1000), test_request_is_reported_when_its_gid_is_known)
{
	struct bb_region region;
	struct bb_conn *conn;
	struct bb_cm_msg msg;
	struct bb_qp *qp;
	struct rule *r;
	struct link l;
	int fd;

	name_buffer(&p, &region);
	link_up(&p, &l);
	r = gid_rule(100, -EAGAIN);
	fd = requests(r);
	until_asked(r);
	turns();
	assert_int_equal(p.b.nev, 0);
	link_lives(&l, 1);
	r->ret = 0;
	conn = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	qp = end_qp(&p.b);
	OK(bb_conn_accept(conn, qp, &p.b.param));
	assert_int_equal(qp->state, BB_QP_RTS);
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REP);
	bb_conn_destroy(conn);
	OK(bb_qp_destroy(qp));
	close(fd);
	link_down(&p, &l);
}

PAIR_TEST(open_pair(WAIT_S * 1000), test_request_by_an_unreachable_gid_is_refused_in_words)
{
	struct bb_cm_msg msg;
	struct rule *r;
	int fd;

	r = gid_rule(100, -EAGAIN);
	fd = requests(r);
	until_asked(r);
	r->ret = -EHOSTUNREACH;
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REJ);
	assert_int_equal(msg.reason, BB_REJECT_GID);
	assert_memory_equal(msg.private, "your GID", 8);
	assert_int_equal(stats().rejected, 1);
	assert_int_equal(stats().bad_messages, 1);
	assert_int_equal(r->resolved, 0);
	assert_int_equal(p.b.nev, 0);
	close(fd);
}

/* No answer, not even a refusal: the connection ends after half_open_ms. */
PAIR_TEST(open_pair(100), test_request_whose_gid_never_answers_times_out)
{
	struct bb_cm_msg msg;
	struct rule *r;
	int fd;

	r = gid_rule(100, -EAGAIN);
	fd = requests(r);
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_REJ);
	assert_int_equal(msg.reason, BB_REJECT_TIMEOUT);
	assert_memory_equal(msg.private, "your GID", 8);
	assert_int_equal(p.b.nev, 0);
	close(fd);
}

static unsigned int
asked_of(unsigned int from, unsigned int n)
{
	unsigned int i, asked = 0;

	for (i = from; i < from + n; i++)
		asked += rules[i].asked != 0;
	return asked;
}

static bool
all_taken(void)
{
	return stats().half_open == nrules;
}

/*
 * One host resolves a few addresses at a time; the next request is processed when one is
 * resolved.
 */
PAIR_TEST(open_pair(WAIT_S * 1000), test_requests_of_one_host_wait_for_their_turn)
{
	enum {
		N = 40
	};
	unsigned int i, at_once;
	struct bb_cm_msg msg;
	int fd[N];

	for (i = 0; i < N; i++)
		(void)gid_rule((uint8_t)(100 + i), -EAGAIN);
	for (i = 0; i < N; i++)
		fd[i] = requests(&rules[i]);
	until(all_taken);
	turns();
	at_once = asked_of(0, N);
	assert_in_range(at_once, 1, 8);
	for (i = 0; i < N; i++) {
		until_asked(&rules[i]);
		assert_true(asked_of(0, N) <= i + at_once);
		rules[i].ret = -EHOSTUNREACH;
		assert_true(hear(fd[i], &msg));
		assert_int_equal(msg.reason, BB_REJECT_GID);
		close(fd[i]);
	}
	assert_int_equal(p.b.nev, 0);
	until(none_half_open);
}

PAIR_TEST(open_pair(WAIT_S * 1000), test_listener_and_peer_may_go_meanwhile)
{
	struct sockaddr_storage addr;
	struct rule *r;
	int fd;

	r = gid_rule(100, -EAGAIN);
	fd = requests(r);
	until_asked(r);
	OK(bb_listener_destroy(p.listener));
	assert_int_equal(stats().conns, 0);
	close(fd);
	addr = p.addr;
	((struct sockaddr_in *)&addr)->sin_port = 0;
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&addr, &p.listener));
	((struct sockaddr_in *)&p.addr)->sin_port = htons(bb_listener_port(p.listener));
	r = gid_rule(101, -EAGAIN);
	fd = requests(r);
	until_asked(r);
	close(fd);
	turns();
	r->ret = -EHOSTUNREACH;
	until(none_half_open);
}

/*
 * The accept names another local GID than the request was resolved by: the call asks again and
 * does not wait.
 */
PAIR_TEST(open_pair(WAIT_S * 1000), test_accept_by_another_gid_asks_first)
{
	struct bb_gid_want want;
	struct bb_conn *conn;
	struct bb_qp *qp;
	struct rule *r;
	uint8_t chosen;
	int fd;

	bb_gid_want_init(&want);
	want.family = BB_GID_IPV4;
	OK(bb_gid_choose(p.b.dev, 1, &want, &chosen));
	r = gid_rule(100, 0);
	r->sgid = chosen;
	r = gid_rule(100, -EAGAIN);
	fd = requests(r);
	conn = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	qp = end_qp(&p.b);
	p.b.param.sgid_index_given = true;
	p.b.param.path.sgid_index = chosen == 1 ? 2 : 1;
	assert_int_equal(bb_conn_accept(conn, qp, &p.b.param), -EAGAIN);
	assert_int_equal(qp->state, BB_QP_RESET);
	turns();
	assert_int_equal(bb_conn_accept(conn, qp, &p.b.param), -EAGAIN);
	r->ret = 0;
	OK(bb_conn_accept(conn, qp, &p.b.param));
	bb_conn_destroy(conn);
	OK(bb_qp_destroy(qp));
	close(fd);
}

/*
 * A program that names its own GIDs may know one that reaches the peer, so the program decides
 * about the request.
 */
PAIR_TEST(open_pair(WAIT_S * 1000), test_request_is_reported_where_accept_may_name_another_gid)
{
	struct bb_gid_want want;
	struct bb_conn *conn;
	struct bb_qp *qp;
	struct rule *r;
	struct link l;
	uint8_t chosen;
	int fd;

	bb_gid_want_init(&want);
	want.family = BB_GID_IPV4;
	OK(bb_gid_choose(p.b.dev, 1, &want, &chosen));
	p.b.param.sgid_index_given = true;
	p.b.param.path.sgid_index = chosen;
	link_up(&p, &l);
	r = gid_rule(100, -EHOSTUNREACH);
	fd = requests(r);
	conn = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	qp = end_qp(&p.b);
	assert_int_equal(bb_conn_accept(conn, qp, &p.b.param), -EHOSTUNREACH);
	r->ret = 0;
	OK(bb_conn_accept(conn, qp, &p.b.param));
	bb_conn_destroy(conn);
	OK(bb_qp_destroy(qp));
	close(fd);
	link_down(&p, &l);
}

/* @return the connection whose peer, a plain socket, has answered with the GID of @r. */
static struct bb_conn *
answered_by(struct rule *r, struct bb_qp *qp, int *fd)
{
	struct sockaddr_storage addr;
	uint8_t buf[BB_CM_MSG_MAX];
	int listener = raw_listen(&addr);
	struct bb_conn *c = NULL;
	struct bb_cm_msg msg;
	size_t n;

	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&addr, qp, &p.a.param, &c));
	*fd = raw_called(listener);
	close(listener);
	assert_true(hear(*fd, &msg));
	assert_int_equal(msg.type, BB_CM_REQ);
	n = encode(buf, BB_CM_REP, r, 9);
	assert_int_equal(send(*fd, buf, n, MSG_NOSIGNAL), n);
	until_asked(r);
	/* A short timeout may have expired already. */
	if (p.a.param.timeout_ms < WAIT_S * 1000)
		return c;
	turns();
	assert_int_equal(conn_state(c), BB_CONN_CONNECTING);
	assert_int_equal(qp->state, BB_QP_RESET);
	assert_int_equal(p.a.nev, 0);
	return c;
}

PAIR_TEST(open_pair(WAIT_S * 1000), test_answer_by_a_gid_that_is_not_known_waits)
{
	struct bb_region region;
	struct bb_cm_msg msg;
	struct bb_conn *c;
	struct bb_qp *qp;
	struct rule *r;
	struct link l;
	int fd;

	name_buffer(&p, &region);
	link_up(&p, &l);
	qp = end_qp(&p.a);
	r = gid_rule(100, -EAGAIN);
	c = answered_by(r, qp, &fd);
	link_lives(&l, 1);
	/* A message that arrives meanwhile is read later. */
	say(fd, BB_CM_DREQ);
	turns();
	assert_int_equal(p.a.nev, 0);
	r->ret = 0;
	expect(&p, &p.a, BB_CM_ESTABLISHED);
	assert_true(hear(fd, &msg));
	assert_int_equal(msg.type, BB_CM_RTU);
	expect(&p, &p.a, BB_CM_DISCONNECTED);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(qp));
	close(fd);

	/* The GID cannot be reached. */
	qp = end_qp(&p.a);
	r = gid_rule(101, -EAGAIN);
	c = answered_by(r, qp, &fd);
	r->ret = -EHOSTUNREACH;
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -EHOSTUNREACH);
	assert_int_equal(qp->state, BB_QP_RESET);
	bb_conn_destroy(c);
	close(fd);

	/* The connection is destroyed meanwhile. */
	r = gid_rule(102, -EAGAIN);
	c = answered_by(r, qp, &fd);
	OK(bb_conn_disconnect(c, NULL, 0));
	expect(&p, &p.a, BB_CM_FAILED);
	bb_conn_destroy(c);
	close(fd);
	r = gid_rule(103, -EAGAIN);
	c = answered_by(r, qp, &fd);
	bb_conn_destroy(c);
	close(fd);

	/* The GID is never resolved. */
	p.a.param.timeout_ms = 200;
	r = gid_rule(104, -EAGAIN);
	c = answered_by(r, qp, &fd);
	assert_int_equal(expect(&p, &p.a, BB_CM_FAILED).status, -ETIMEDOUT);
	bb_conn_destroy(c);
	close(fd);
	OK(bb_qp_destroy(qp));
	link_down(&p, &l);
}

PAIR_TEST(open_pair(WAIT_S * 1000), test_recovery_waits_for_the_gid_of_the_peer)
{
	struct bb_conn_info info;
	struct bb_region region;
	struct rule *r;
	struct link l;

	name_buffer(&p, &region);
	p.a.param.recover_ms = p.b.param.recover_ms = 4 * WAIT_S * 1000;
	p.a.param.backoff_min_ms = p.b.param.backoff_min_ms = 1;
	link_up(&p, &l);
	bb_conn_query(l.a, &info);
	r = gid_rule(0, -EAGAIN);
	memcpy(r->gid, info.remote.gid, 16);
	OK(bb_conn_recover(l.a));
	expect(&p, &p.a, BB_CM_LOST);
	until_asked(r);
	turns();
	assert_int_equal(conn_state(l.a), BB_CONN_LOST);
	assert_int_equal(l.qa->state, BB_QP_RESET);
	assert_int_equal(p.a.nev, 0);
	r->ret = 0;
	/* The address of soft0 itself is known from here on. */
	nrules = 0;
	expect(&p, &p.b, BB_CM_LOST);
	expect(&p, &p.a, BB_CM_RECOVERED);
	expect(&p, &p.b, BB_CM_RECOVERED);
	writes(&p, &l, 0x44);
	link_down(&p, &l);
}

CONNECT_MAIN(RTE_LOG_CRIT)
