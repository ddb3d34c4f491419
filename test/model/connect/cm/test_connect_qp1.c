/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The service of lib/connect that joins QP1 of a device with an engine of the communication
 * manager: bb_qp1.h.
 */
#include "soft_ctl.h"

#include "connect_env.h"
#include "ib/bb_qp1.h"

#define SERVICE 0x1061c06ull
/* More than the send queue holds, and fewer than the receive queue of the peer. */
#define BURST 200u

/* A user of the service of one device. */
struct side {
	struct bb_qp1_user user; /* must be the first member */
	struct bb_dev *dev;
	struct bb_qp1 *q;
	struct bb_ibcm *engine;
	struct bb_gid gid;
	uint32_t id, events;
	uint32_t of_type[BB_IBCM_EV_SIDR_REP + 1]; /* events */
	uint32_t qpn;                              /* in the last REQ */
	bool in_order; /* each REQ had a higher QPN than the one before */
	enum bb_ibcm_event_type last;
	bool answers; /* accepts each REQ, and answers each REP with RTU */
};

static struct side a, b;

/* True while no MAC of a peer is known: the program replaces these functions of the device. */
static bool unresolved;

int __real_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);
int __wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			 const uint8_t dgid[16]);
int __real_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			   uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);
int __wrap_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			   uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);

int
__wrap_soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
		     const uint8_t dgid[16])
{
	return unresolved ? -EAGAIN : __real_soft_av_ready(ctx, port, sgid_index, dgid);
}

int
__wrap_soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		       const uint8_t dgid[16], struct mlx5_av *av)
{
	if (unresolved)
		fail_msg("the thread that polls waits for a MAC");
	return __real_soft_av_resolve(ctx, pd, port, sgid_index, dgid, av);
}

static void
on_event(struct bb_qp1_user *user, const struct bb_ibcm_event *ev)
{
	const struct bb_ibcm_rep rep = {.qpn = 6 + ((struct side *)user)->events};
	struct side *s = (struct side *)user;

	s->id = ev->id;
	s->last = ev->type;
	s->events++;
	s->of_type[ev->type]++;
	if (ev->type == BB_IBCM_EV_REQ) {
		s->in_order &= ev->msg->req.qpn > s->qpn;
		s->qpn = ev->msg->req.qpn;
	}
	if (s->answers && ev->type == BB_IBCM_EV_REQ)
		OK(bb_ibcm_accept(s->engine, ev->id, &rep, NULL, 0, bb_qp1_cookie(user),
				  bb_qp1_now()));
	if (s->answers && ev->type == BB_IBCM_EV_REP)
		OK(bb_ibcm_ready(s->engine, ev->id, NULL, 0));
}

static void
side_open(struct side *s, const char *spec)
{
	struct bb_gid_want want;
	uint8_t index;

	memset(s, 0, sizeof(*s));
	s->user.event = on_event;
	s->in_order = true;
	OK(bb_dev_open(spec, &s->dev));
	OK(bb_qp1_get(s->dev, &s->q));
	s->engine = bb_qp1_lock(s->q);
	bb_qp1_unlock(s->q);
	bb_gid_want_init(&want);
	want.family = BB_GID_IPV4;
	OK(bb_gid_choose(s->dev, 1, &want, &index));
	OK(bb_gid_query(s->dev, 1, index, &s->gid));
}

static void
side_close(struct side *s)
{
	bb_qp1_put(s->q);
	OK(bb_dev_close(s->dev));
}

/* Polls both services until @s has had one more event, of type @type. */
static void
expect_event(struct side *s, enum bb_ibcm_event_type type)
{
	const uint64_t end = wait_end();
	const uint32_t before = s->events;

	while (s->events == before) {
		bb_qp1_poll(a.q);
		bb_qp1_poll(b.q);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(s->last, type);
}

static uint32_t
connect_to(const uint8_t dst[16])
{
	static uint32_t qpn = 5; /* one for each connection */
	const struct bb_ibcm_req req = {.service_id = SERVICE,
					.qpn = qpn++,
					.remote_timeout = 24,
					.local_timeout = 24,
					.cm_retries = 15,
					.pkey = 0xffff,
					.mtu = 3};
	struct bb_ibcm_net net = {.hop_limit = 64};
	uint32_t id = 0;

	memcpy(net.src, a.gid.raw, 16);
	memcpy(net.dst, dst, 16);
	OK(bb_ibcm_connect(bb_qp1_lock(a.q), &net, &req, "hi", 2, bb_qp1_cookie(&a.user),
			   bb_qp1_now(), &id));
	bb_qp1_unlock(a.q);
	return id;
}

/* One connection from a to b, ended by b. */
static void
connect_once(void)
{
	const struct bb_ibcm_service service = {
		.service_id = SERVICE, .mask = UINT64_MAX, .cookie = bb_qp1_cookie(&b.user)};
	const struct bb_ibcm_rep rep = {.qpn = 6};
	struct bb_ibcm *engine;

	OK(bb_ibcm_listen(bb_qp1_lock(b.q), &service));
	bb_qp1_unlock(b.q);
	(void)connect_to(b.gid.raw);
	expect_event(&b, BB_IBCM_EV_REQ);
	OK(bb_ibcm_accept(bb_qp1_lock(b.q), b.id, &rep, NULL, 0, bb_qp1_cookie(&b.user),
			  bb_qp1_now()));
	bb_qp1_unlock(b.q);
	expect_event(&a, BB_IBCM_EV_REP);
	OK(bb_ibcm_ready(bb_qp1_lock(a.q), a.id, NULL, 0));
	bb_qp1_unlock(a.q);
	expect_event(&b, BB_IBCM_EV_ESTABLISHED);
	OK(bb_ibcm_disconnect(bb_qp1_lock(b.q), b.id, NULL, 0, bb_qp1_now()));
	bb_qp1_unlock(b.q);
	expect_event(&a, BB_IBCM_EV_DISCONNECTED);
	OK(bb_ibcm_release(bb_qp1_lock(a.q), a.id, bb_qp1_now()));
	bb_qp1_unlock(a.q);
	expect_event(&b, BB_IBCM_EV_DISCONNECTED);
	engine = bb_qp1_lock(b.q);
	OK(bb_ibcm_release(engine, b.id, bb_qp1_now()));
	OK(bb_ibcm_unlisten(engine, &service));
	bb_qp1_unlock(b.q);
}

TEST(test_services_of_two_devices_exchange_mads)
{
	static const char *const specs[][2] = {{"soft0", "soft1"},
					       {"soft0,wire=1", "soft1,wire=1"}};

	for (unsigned int i = 0; i < RTE_DIM(specs); i++) {
		side_open(&a, specs[i][0]);
		side_open(&b, specs[i][1]);
		connect_once();
		side_close(&a);
		side_close(&b);
	}
}

TEST(test_users_of_a_device_share_one_service)
{
	struct bb_qp1 *second = NULL;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	OK(bb_qp1_get(a.dev, &second));
	assert_ptr_equal(second, a.q);
	bb_qp1_put(second);
	connect_once();
	side_close(&a);
	side_close(&b);
}

/*
 * More MADs than the send queue holds: none is lost, because polls of the service free its buffers.
 * A destination that no device has costs the MAD only.
 */
TEST(test_mad_without_a_route_is_dropped_and_counted)
{
	static const uint8_t nowhere[16] = {[10] = 0xff, 0xff, 203, 0, 113, 9};
	static const uint8_t group[16] = {[10] = 0xff, 0xff, 224, 0, 0, 1};
	const uint8_t *const dst[] = {nowhere, group};
	const struct bb_qp1_stats *stats;
	unsigned int i, k;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	stats = bb_qp1_stats(a.q);
	for (i = 0; i < RTE_DIM(dst); i++) {
		for (k = 0; k < 100; k++) {
			uint32_t id = connect_to(dst[i]);

			OK(bb_ibcm_release(bb_qp1_lock(a.q), id, bb_qp1_now()));
			bb_qp1_unlock(a.q);
			bb_qp1_poll(a.q);
		}
	}
	assert_int_equal(stats->sent + stats->no_address, 400);
	assert_true(stats->no_address >= 200);
	assert_int_equal(stats->no_room, 0);
	connect_once();
	side_close(&a);
	side_close(&b);
}

/* Polls both services until @s has had @n events of type @type. */
static void
expect_events(struct side *s, enum bb_ibcm_event_type type, uint32_t n)
{
	const uint64_t end = wait_end();

	while (s->of_type[type] < n) {
		bb_qp1_poll(a.q);
		bb_qp1_poll(b.q);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_int_equal(s->of_type[type], n);
}

/* All are sent between two polls. */
TEST(test_burst_to_one_host_loses_no_mad)
{
	const struct bb_qp1_stats *stats;
	uint32_t i;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	stats = bb_qp1_stats(a.q);
	for (i = 0; i < BURST; i++)
		(void)connect_to(b.gid.raw);
	assert_int_equal(stats->no_room, 0);
	expect_events(&a, BB_IBCM_EV_REJECTED, BURST);
	assert_fields(*stats, no_room, 0, sent, BURST);
	side_close(&a);
	side_close(&b);
}

/* The service is given back directly after the connections. */
TEST(test_connections_released_at_once_all_disconnect)
{
	const struct bb_ibcm_service service = {
		.service_id = SERVICE, .mask = UINT64_MAX, .cookie = bb_qp1_cookie(&b.user)};
	const uint64_t end = wait_end();
	uint32_t ids[BURST], i;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	a.answers = b.answers = true;
	OK(bb_ibcm_listen(bb_qp1_lock(b.q), &service));
	bb_qp1_unlock(b.q);
	for (i = 0; i < BURST; i++)
		ids[i] = connect_to(b.gid.raw);
	expect_events(&b, BB_IBCM_EV_ESTABLISHED, BURST);
	for (i = 0; i < BURST; i++) {
		OK(bb_ibcm_release(bb_qp1_lock(a.q), ids[i], bb_qp1_now()));
		bb_qp1_unlock(a.q);
	}
	side_close(&a);
	while (b.of_type[BB_IBCM_EV_DISCONNECTED] < BURST) {
		bb_qp1_poll(b.q);
		assert_true(rte_get_tsc_cycles() < end);
	}
	side_close(&b);
}

/* MADs wait for the MAC of their destination, up to 4 for one; polls go on meanwhile. */
TEST(test_mad_waits_for_a_mac_without_blocking)
{
	const struct bb_qp1_stats *stats;
	uint32_t ids[6], i;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	stats = bb_qp1_stats(a.q);
	unresolved = true;
	for (i = 0; i < RTE_DIM(ids); i++)
		ids[i] = connect_to(b.gid.raw);
	for (i = 0; i < 100; i++)
		bb_qp1_poll(a.q);
	assert_fields(*stats, held, 4, no_room, 2, sent, 0);
	unresolved = false;
	while (a.events < 4)
		expect_event(&a, BB_IBCM_EV_REJECTED);
	assert_int_equal(stats->sent, 4);
	for (i = 0; i < RTE_DIM(ids); i++) {
		OK(bb_ibcm_release(bb_qp1_lock(a.q), ids[i], bb_qp1_now()));
		bb_qp1_unlock(a.q);
	}
	side_close(&a);
	side_close(&b);
}

/* The first MADs wait for the device's lock, and then for the MAC. */
TEST(test_host_without_mac_leaves_room_after_the_device_was_locked)
{
	const struct bb_qp1_stats *stats;
	uint32_t i;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	stats = bb_qp1_stats(a.q);
	unresolved = true;
	pthread_mutex_lock(&a.dev->lock);
	for (i = 0; i < 2; i++)
		(void)connect_to(b.gid.raw);
	pthread_mutex_unlock(&a.dev->lock);
	assert_fields(*stats, held, 2, no_room, 0, sent, 0);
	bb_qp1_poll(a.q);
	for (i = 0; i < 6; i++)
		(void)connect_to(b.gid.raw);
	assert_fields(*stats, held, 4, no_room, 4, sent, 0);
	unresolved = false;
	expect_events(&a, BB_IBCM_EV_REJECTED, 4);
	side_close(&a);
	side_close(&b);
}

/* A MAD does not overtake one that waits, even if the MAC is known meanwhile. */
TEST(test_mads_of_a_host_keep_their_order)
{
	const struct bb_ibcm_service service = {
		.service_id = SERVICE, .mask = UINT64_MAX, .cookie = bb_qp1_cookie(&b.user)};
	const struct bb_qp1_stats *stats;
	uint32_t i;

	side_open(&a, "soft0");
	side_open(&b, "soft1");
	OK(bb_ibcm_listen(bb_qp1_lock(b.q), &service));
	bb_qp1_unlock(b.q);
	stats = bb_qp1_stats(a.q);
	unresolved = true;
	(void)connect_to(b.gid.raw);
	unresolved = false;
	for (i = 1; i < 4; i++)
		(void)connect_to(b.gid.raw);
	assert_fields(*stats, held, 4, no_room, 0, sent, 0);
	expect_events(&b, BB_IBCM_EV_REQ, 4);
	assert_true(b.in_order);
	side_close(&a);
	side_close(&b);
}

TEST(test_device_without_roce_has_no_service)
{
	struct bb_qp1 *q = NULL;
	struct bb_dev *dev;

	OK(bb_dev_open("soft0,link=ib", &dev));
	assert_int_equal(bb_qp1_get(dev, &q), -ENOTSUP);
	assert_null(q);
	OK(bb_dev_close(dev));
}

CONNECT_MAIN(RTE_LOG_ERR)
