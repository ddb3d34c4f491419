/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connection requests: floods, whose number is limited by address, and requests of processes that
 * have the QPNs of killed ones.
 */
#include "ucma_program.h"

#define IDS      8192u
#define PER_GID  1024u
#define PER_NODE 4096u

/* Sends a REQ of address 10.0.0.@host to host 1, with an ID and a QPN that follow from @n. */
static void
send_req(struct up *up, uint32_t host, uint32_t n)
{
	struct up_host *to = &up->host[1];
	uint8_t priv[BB_IBCM_IP_LEN], mad[BB_IBCM_MAD];
	struct bb_ibcm_gmp gmp = {.sqpn = BB_IBCM_QPN, .qkey = BB_IBCM_QKEY};
	struct bb_ibcm_msg msg = {
		.type = BB_IBCM_REQ,
		.tid = n,
		.local_id = 1 + n,
		.req = {.service_id = bb_ibcm_service_id(BB_IBCM_PS_TCP, PORT),
			.ca_guid = UINT64_C(0x0123456789abcd00) + host - 1,
			.qpn = 2 + n,
			.remote_timeout = 20,
			.local_timeout = 20,
			.cm_retries = 15,
			.pkey = 0xffff,
			.mtu = 3},
		.priv = priv,
		.priv_len = sizeof(priv),
	};
	struct bb_ibcm_ip ip = {.version = 4, .sport = 1000};

	memcpy(gmp.net.dst, to->gid, 16);
	memcpy(gmp.net.src, to->gid, 16);
	gmp.net.src[15] = (uint8_t)host;
	memcpy(msg.req.primary.local_gid, gmp.net.src, 16);
	memcpy(msg.req.primary.remote_gid, gmp.net.dst, 16);
	memcpy(ip.src, gmp.net.src, 16);
	memcpy(ip.dst, gmp.net.dst, 16);
	bb_ibcm_ip_build(priv, &ip);
	assert_true(bb_ibcm_build(mad, &msg));
	ucma_rx(to->u, &gmp, mad, sizeof(mad), up->now);
}

/* Reads all events of host 1, which must be connection requests. Returns their number. */
static uint32_t
read_requests(struct up *up)
{
	uint32_t n = 0;

	for (; up->host[1].files[0].readable; n++)
		event(&up->host[1], CONNECT_REQUEST);
	return n;
}

/* Sends @n REQs of an address. The program reads each at once. Returns the number that it got. */
static uint32_t
flood(struct up *up, uint32_t host, uint32_t n)
{
	uint32_t got = 0;

	for (uint32_t i = 0; i < n; i++) {
		send_req(up, host, i);
		got += read_requests(up);
	}
	return got;
}

TEST(test_flood_of_one_address_leaves_room_for_others)
{
	const struct rdma_ucm_conn_param p = param(QPN, ""), none = {0};
	struct up *up = up_new(IDS);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	uint32_t id;

	listener(b, RDMA_PS_TCP, PORT, 0);
	assert_int_equal(flood(up, 9, 3 * PER_GID), PER_GID);
	/* Repeated requests do not count twice, and are no new requests. */
	assert_int_equal(flood(up, 9, 3 * PER_GID), 0);
	assert_int_equal(ucma_connections(b->u), PER_GID);
	assert_int_equal(ucma_stats(b->u)->drop[BB_IBCM_DROP_PER_GID], 4 * PER_GID);
	up->nmads = 0;

	id = routed(up, 1, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, id, &p));
	up_run(up);
	OK(accept_rc(b, 0, event(b, CONNECT_REQUEST).id, 2, &p));
	up_run(up);
	event(a, CONNECT_RESPONSE);
	OK(accept_rc(a, 0, id, 0, &none));
	up_run(up);
	event(b, ESTABLISHED);
	up_free(up);
}

/* The processes of a host connect at once: they have one address. */
TEST(test_one_address_may_fill_the_largest_backlog)
{
	struct up *up = up_new(IDS);

	listener(&up->host[1], RDMA_PS_TCP, PORT, PER_GID);
	for (uint32_t i = 0; i < PER_GID; i++)
		send_req(up, 9, i);
	assert_int_equal(read_requests(up), PER_GID);
	up_free(up);
}

TEST(test_floods_of_many_addresses_leave_half_of_the_ids)
{
	struct up *up = up_new(IDS);
	struct up_host *b = &up->host[1];
	uint32_t host, got = 0;

	listener(b, RDMA_PS_TCP, PORT, 0);
	for (host = 9; host < 19; host++)
		got += flood(up, host, PER_GID);
	assert_int_equal(got, PER_NODE);
	assert_int_equal(ucma_ids(b->u), PER_NODE + 1);
	for (uint32_t i = 0; i < IDS - PER_NODE - 1; i++)
		create(b, 1, UID, RDMA_PS_TCP);

	/* The requests of a flood end. Then other requests of the same addresses get room. */
	up_time(up, 1000 * UP_SEC);
	assert_int_equal(ucma_connections(b->u), 0);
	up_close(b, 1);
	assert_int_equal(flood(up, 9, 2 * PER_GID), PER_GID);
	up_free(up);
}

/* ---- QPNs of killed processes */

/* Answers of the link about a peer whose process was killed, or lives. */
static const struct {
	int reach;
	uint64_t opening;
	bool gone;
} known[] = {
	{0, 7, false}, {0, 0, false},      {-EMFILE, 0, false},
	{0, 8, true},  {-EAGAIN, 0, true}, {-EHOSTUNREACH, 0, true},
};

TEST(test_request_with_the_qpn_of_a_killed_process_is_not_stale)
{
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct up *up = up_new(16);
		struct up_host *b = &up->host[1];

		b->opening = 7;
		(void)connected(up);
		b->reach = known[i].reach;
		b->opening = known[i].opening;
		send_req(up, 1, QPN - 2);
		if (known[i].gone) {
			assert_int_equal(event(b, DISCONNECTED).uid, 2);
			assert_int_equal(event(b, CONNECT_REQUEST).param.conn.qp_num, QPN);
		}
		no_event(b, 0);
		/* REJ and DREQ, or nothing. */
		assert_int_equal(up->nmads, known[i].gone ? 0 : 2);
		up_free(up);
	}
}

TEST(test_request_with_the_qpn_of_a_released_connection_is_not_stale)
{
	struct up *up = up_new(16);
	struct up_host *b = &up->host[1];

	/* The peer never answers the DREQ. */
	destroy(b, 0, connected(up).passive);
	assert_int_equal(up->nmads, 1);
	send_req(up, 1, QPN - 2);
	event(b, CONNECT_REQUEST);
	assert_int_equal(up->nmads, 1);
	up_free(up);
}

TEST(test_peer_that_is_killed_after_its_rtu_is_noticed)
{
	struct up *up = up_new(16);
	struct up_host *b = &up->host[1];

	b->reach = -EHOSTUNREACH;
	(void)connected(up);
	assert_int_equal(event(b, DISCONNECTED).uid, 2);
	no_event(b, 0);
	assert_int_equal(up->nmads, 0);
	up_free(up);
}

TEST(test_reply_with_the_qpn_of_a_killed_process_is_not_stale)
{
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct rdma_ucm_conn_param p = param(QPN + 2, ""), q = param(QPN + 1, "");
		struct up *up = up_new(16);
		struct up_host *a = &up->host[0], *b = &up->host[1];
		uint32_t id;

		a->opening = 7;
		(void)connected(up);
		id = routed(up, 3, RDMA_PS_TCP, PORT);
		a->reach = known[i].reach;
		a->opening = known[i].opening;
		OK(connect_rc(a, id, &p));
		up_run(up);
		OK(accept_rc(b, 0, event(b, CONNECT_REQUEST).id, 4, &q));
		up_run(up);
		if (known[i].gone) {
			assert_int_equal(event(a, DISCONNECTED).uid, 1);
			assert_int_equal(event(a, CONNECT_RESPONSE).uid, 3);
			/* The process that has replied is gone, too. */
			if (known[i].reach == -EHOSTUNREACH)
				assert_int_equal(event(a, UNREACHABLE).uid, 3);
		} else {
			/* As in Linux, the reply ends the connection of the QPN. */
			assert_int_equal(event(a, REJECTED).status, BB_IBCM_REJ_STALE);
			assert_int_equal(event(a, DISCONNECTED).uid, 1);
		}
		no_event(a, 0);
		up_free(up);
	}
}

/* The reply names the process, which is killed and replaced before the next check. */
TEST(test_opening_of_an_acceptor_is_found_by_the_reply)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0];
	struct conn c;

	a->shared = true;
	a->opening = 1;
	c = connected(up);
	a->opening = 2;
	up_time(up, UP_SEC / 2);
	assert_int_equal(event(a, DISCONNECTED).id, c.active);
	up_free(up);
}

/* At the request the way back was not known yet. */
TEST(test_opening_of_a_requester_is_found_when_the_connection_is_established)
{
	struct up *up = up_new(16);
	struct up_host *b = &up->host[1];
	struct conn c;

	b->reach = -EAGAIN;
	c = connected(up);
	assert_int_equal(b->nreach, 2);
	b->reach = 0;
	b->opening = 1;
	up_time(up, UP_SEC / 2);
	no_event(b, 0);
	b->opening = 2;
	up_time(up, UP_SEC / 2);
	assert_int_equal(event(b, DISCONNECTED).id, c.passive);
	up_free(up);
}

TEST_MAIN(0)
