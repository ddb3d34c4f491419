/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The rdma_cm node by the commands of its ABI (rdma/rdma_user_cm.h) alone: connections of two hosts
 * whose programs do what librdmacm does.
 */
#include "ucma_program.h"

TEST(test_connection_passes_parameters_and_private_data)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	struct rdma_ucm_conn_param p = param(QPN, "ping"), back = param(QPN + 1, "pong"),
				   none = {0};
	struct rdma_ucm_event_resp ev;
	uint32_t l = listener(b, RDMA_PS_TCP, PORT, 0), id, made;

	id = routed(up, 1, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, id, &p));
	up_run(up);
	ev = event(b, CONNECT_REQUEST);
	/* The value is that of the listener, the ID is new. */
	assert_int_equal(ev.uid, UID);
	made = ev.id;
	assert_int_not_equal(made, l);
	assert_int_equal(ev.status, 0);
	assert_int_equal(ev.param.conn.qp_num, QPN);
	assert_int_equal(ev.param.conn.private_data_len, 92 - 36);
	assert_memory_equal(ev.param.conn.private_data, "ping\0", 5);
	/* This side responds to the READs that the peer initiates. */
	assert_int_equal(ev.param.conn.responder_resources, 5);
	assert_int_equal(ev.param.conn.initiator_depth, 3);
	assert_int_equal(ev.param.conn.retry_count, 7);
	assert_int_equal(ev.param.conn.rnr_retry_count, 6);
	OK(accept_rc(b, 0, made, 2, &back));
	no_event(b, 0);
	up_run(up);
	ev = event(a, CONNECT_RESPONSE);
	assert_int_equal(ev.uid, 1);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.param.conn.qp_num, QPN + 1);
	assert_int_equal(ev.param.conn.private_data_len, 196);
	assert_memory_equal(ev.param.conn.private_data, "pong\0", 5);
	OK(accept_rc(a, 0, id, 0, &none));
	no_event(a, 0);
	up_run(up);
	ev = event(b, ESTABLISHED);
	assert_int_equal(ev.uid, 2);
	assert_int_equal(ev.id, made);
	no_event(b, 0);
	up_free(up);
}

TEST(test_both_sides_learn_the_addresses)
{
	struct up *up = up_new(16);
	const struct conn c = connected(up);
	struct rdma_ucm_query_route_resp r = query_route(&up->host[0], c.active);
	const struct sockaddr_in *src = (const void *)&r.src_addr, *dst = (const void *)&r.dst_addr;
	const uint16_t port = src->sin_port;

	assert_int_equal(src->sin_addr.s_addr, htonl(HOST(1)));
	assert_int_equal(dst->sin_addr.s_addr, htonl(HOST(2)));
	assert_int_equal(dst->sin_port, htons(PORT));
	assert_true(ntohs(port) >= 32768);
	assert_int_equal(r.num_paths, 1);
	assert_int_equal(r.port_num, 1);
	assert_int_equal(r.ibdev_index, UINT32_MAX);
	assert_int_equal(be64toh(r.node_guid), UINT64_C(0x0123456789abcd00));
	assert_memory_equal(r.ib_route[0].sgid, up->host[0].gid, 16);
	assert_memory_equal(r.ib_route[0].dgid, up->host[1].gid, 16);
	assert_int_equal(r.ib_route[0].pkey, 0xffff);
	assert_int_equal(r.ib_route[0].mtu, 3);
	assert_int_equal(r.ib_route[0].hop_limit, 64);
	r = query_route(&up->host[1], c.passive);
	assert_int_equal(src->sin_addr.s_addr, htonl(HOST(2)));
	assert_int_equal(src->sin_port, htons(PORT));
	assert_int_equal(dst->sin_addr.s_addr, htonl(HOST(1)));
	assert_int_equal(dst->sin_port, port);
	up_free(up);
}

/* A listener at no address has no device. */
TEST(test_query_of_an_unbound_id_has_no_device)
{
	struct up *up = up_new(16);
	const uint32_t id = listener(&up->host[0], RDMA_PS_TCP, PORT, 0);
	const struct rdma_ucm_query_route_resp r = query_route(&up->host[0], id);
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(r.node_guid, 0);
	assert_int_equal(r.num_paths, 0);
	assert_int_equal(qp_attr(&up->host[0], id, IBV_QPS_INIT, &attr), -EINVAL);
	up_free(up);
}

/* ---- QP attributes */

/* The PSN that a side receives is the one it has sent in its message: the peer sends with it. */
TEST(test_qp_attributes_of_a_connection)
{
	struct up *up = up_new(16);
	const struct conn c = connected(up);
	struct ib_uverbs_qp_attr a, b;

	OK(qp_attr(&up->host[0], c.active, IBV_QPS_INIT, &a));
	assert_int_equal(a.qp_attr_mask,
			 IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(a.port_num, 1);
	OK(qp_attr(&up->host[0], c.active, IBV_QPS_RTR, &a));
	OK(qp_attr(&up->host[1], c.passive, IBV_QPS_RTS, &b));
	assert_int_equal(a.qp_attr_mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(b.qp_attr_mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT |
						 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
						 IBV_QP_TIMEOUT);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(a.dest_qp_num, QPN + 1);
	assert_int_equal(a.path_mtu, 3);
	assert_memory_equal(a.ah_attr.grh.dgid, up->host[1].gid, 16);
	assert_int_equal(a.ah_attr.grh.sgid_index, 1);
	assert_int_equal(a.ah_attr.is_global, 1);
	/* The accept said 3 and 5, and the active side does the reverse. */
	assert_int_equal(a.max_dest_rd_atomic, 5);
	assert_int_equal(b.max_rd_atomic, 5);
	assert_int_equal(b.retry_cnt, 7);
	assert_int_equal(b.rnr_retry, 6);
	/* cm_ack_timeout(16, 16) */
	assert_int_equal(b.timeout, 18);
	OK(qp_attr(&up->host[0], c.active, IBV_QPS_RTS, &a));
	OK(qp_attr(&up->host[1], c.passive, IBV_QPS_RTR, &b));
	assert_int_equal(a.sq_psn, b.rq_psn);
	assert_int_not_equal(a.sq_psn, 0);
	assert_int_equal(a.timeout, 18);
	assert_int_equal(b.dest_qp_num, QPN);
	assert_int_equal(qp_attr(&up->host[0], c.active, IBV_QPS_SQD, &a), -EINVAL);
	assert_int_equal(qp_attr(&up->host[0], c.active, IBV_QPS_ERR + 1, &a), -EINVAL);
	up_free(up);
}

TEST(test_qp_attributes_before_a_connection)
{
	struct up *up = up_new(16);
	struct ib_uverbs_qp_attr a;
	uint32_t id = routed(up, 1, RDMA_PS_TCP, PORT);

	OK(qp_attr(&up->host[0], id, IBV_QPS_INIT, &a));
	assert_int_equal(a.qp_attr_mask,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(a.qp_access_flags, 0);
	id = routed(up, 1, RDMA_PS_UDP, PORT);
	OK(qp_attr(&up->host[0], id, IBV_QPS_INIT, &a));
	assert_int_equal(a.qp_attr_mask,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(a.qkey, 0x01234567);
	up_free(up);
}

TEST(test_options_change_path_and_attributes)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0];
	struct rdma_ucm_conn_param p = param(QPN, ""), back = param(QPN + 1, "");
	const uint8_t tos = 0x40, timeout = 10, big = 32;
	const int on = 1;
	struct ib_uverbs_qp_attr attr;
	uint32_t id, made;

	listener(&up->host[1], RDMA_PS_TCP, PORT, 0);
	id = create(a, 0, 1, RDMA_PS_TCP);
	OK(option_rc(a, id, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	OK(option_rc(a, id, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)));
	assert_int_equal(option_rc(a, id, RDMA_OPTION_ID_ACK_TIMEOUT, &big, 1), -EINVAL);
	assert_int_equal(option_rc(a, id, RDMA_OPTION_ID_TOS, &on, sizeof(on)), -EINVAL);
	assert_int_equal(option_rc(a, id, RDMA_OPTION_ID_REUSEADDR, &on, 1), -EINVAL);
	assert_int_equal(option_rc(a, id, RDMA_OPTION_ID_REUSEADDR, NULL, sizeof(on)), -EFAULT);
	assert_int_equal(option_rc(a, id, 9, &on, sizeof(on)), -ENOSYS);
	OK(resolve_rc(a, id, HOST(2), PORT, 1000));
	event(a, ADDR_RESOLVED);
	OK(route_rc(a, id));
	event(a, ROUTE_RESOLVED);
	assert_int_equal(query_route(a, id).ib_route[0].traffic_class, tos);
	assert_int_equal(query_route(a, id).ib_route[0].packet_life_time, timeout - 1);
	OK(connect_rc(a, id, &p));
	up_run(up);
	made = event(&up->host[1], CONNECT_REQUEST).id;
	OK(accept_rc(&up->host[1], 0, made, 2, &back));
	up_run(up);
	event(a, CONNECT_RESPONSE);
	OK(qp_attr(a, id, IBV_QPS_RTS, &attr));
	assert_int_equal(attr.timeout, timeout);
	OK(qp_attr(a, id, IBV_QPS_RTR, &attr));
	assert_int_equal(attr.ah_attr.grh.traffic_class, tos);
	up_free(up);
}

/* ---- Datagrams */

TEST(test_datagram_service_is_resolved)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(0, "ask"), back = param(QPN, "answer");
	struct rdma_ucm_event_resp ev;
	uint32_t id;

	listener(b, RDMA_PS_UDP, PORT, 0);
	id = routed(up, 1, RDMA_PS_UDP, PORT);
	OK(connect_rc(a, id, &p));
	up_run(up);
	ev = event(b, CONNECT_REQUEST);
	assert_int_equal(ev.param.ud.private_data_len, 216 - 36);
	assert_memory_equal(ev.param.ud.private_data, "ask\0", 4);
	OK(accept_rc(b, 0, ev.id, 2, &back));
	/* There is no connection, so the passive side has no event. */
	no_event(b, 0);
	up_run(up);
	ev = event(a, ESTABLISHED);
	assert_int_equal(ev.status, 0);
	assert_int_equal(ev.param.ud.qp_num, QPN);
	assert_int_equal(ev.param.ud.qkey, 0x01234567);
	assert_int_equal(ev.param.ud.private_data_len, 136);
	assert_memory_equal(ev.param.ud.private_data, "answer\0", 7);
	assert_memory_equal(ev.param.ud.ah_attr.grh.dgid, b->gid, 16);
	assert_int_equal(ev.param.ud.ah_attr.grh.sgid_index, 1);
	no_event(b, 0);
	up_free(up);
}

TEST(test_datagram_request_is_rejected)
{
	struct up *up = up_new(16);
	const struct rdma_ucm_conn_param p = param(0, "");
	struct rdma_ucm_event_resp ev;

	listener(&up->host[1], RDMA_PS_UDP, PORT, 0);
	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_UDP, PORT), &p));
	up_run(up);
	OK(reject_rc(&up->host[1], event(&up->host[1], CONNECT_REQUEST).id, 0, "no"));
	up_run(up);
	ev = event(&up->host[0], UNREACHABLE);
	assert_int_equal(ev.status, BB_IBCM_SIDR_REJECT);
	assert_memory_equal(ev.param.ud.private_data, "no\0", 3);
	/* Nothing listens in the other port space. */
	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_UDP, PORT + 1), &p));
	up_run(up);
	assert_int_equal(event(&up->host[0], UNREACHABLE).status, BB_IBCM_SIDR_UNSUPPORTED);
	up_free(up);
}

/* ---- Ends */

TEST(test_disconnect_is_reported_on_both_sides)
{
	struct up *up = up_new(16);
	const struct conn c = connected(up);
	struct up_host *a = &up->host[0], *b = &up->host[1];

	OK(disconnect_rc(a, c.active));
	no_event(a, 0);
	up_run(up);
	assert_int_equal(event(b, DISCONNECTED).uid, 2);
	assert_int_equal(event(a, DISCONNECTED).status, 0);
	/* The end is no error for a side that disconnects, too. */
	OK(disconnect_rc(b, c.passive));
	OK(disconnect_rc(a, c.active));
	up_run(up);
	no_event(a, 0);
	no_event(b, 0);
	/* ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED */
	assert_int_equal(destroy(a, 0, c.active), 4);
	assert_int_equal(destroy(b, 0, c.passive), 2);
	assert_int_equal(destroy(b, 0, c.listener), 1);
	assert_int_equal(ucma_ids(a->u) + ucma_ids(b->u), 0);
	up_time(up, 30 * UP_SEC);
	assert_int_equal(ucma_connections(a->u) + ucma_connections(b->u), 0);
	up_free(up);
}

TEST(test_reject_reports_reason_and_private_data)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	struct rdma_ucm_event_resp ev;
	uint32_t id;

	listener(b, RDMA_PS_TCP, PORT, 0);
	id = routed(up, 1, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, id, &p));
	up_run(up);
	ev = event(b, CONNECT_REQUEST);
	assert_int_equal(reject_rc(b, ev.id, 1, ""), -EINVAL);
	OK(reject_rc(b, ev.id, 0, "no room"));
	up_run(up);
	ev = event(a, REJECTED);
	assert_int_equal(ev.status, BB_IBCM_REJ_CONSUMER);
	assert_int_equal(ev.param.conn.private_data_len, 148);
	assert_memory_equal(ev.param.conn.private_data, "no room\0", 8);
	/* Nothing listens at the next port. */
	OK(connect_rc(a, routed(up, 1, RDMA_PS_TCP, PORT + 1), &p));
	up_run(up);
	assert_int_equal(event(a, REJECTED).status, BB_IBCM_REJ_SERVICE_ID);
	up_free(up);
}

TEST(test_closed_file_ends_its_connections)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	struct conn c = connected(up);
	const struct rdma_ucm_conn_param p = param(QPN + 5, "");
	uint32_t id = routed(up, 3, RDMA_PS_TCP, PORT);

	OK(connect_rc(a, id, &p));
	up_run(up); /* the event of the request stays unread */
	up_close(b, 0);
	up_run(up);
	/* The listener is first, with its unread request. */
	assert_int_equal(event(a, REJECTED).id, id);
	assert_int_equal(event(a, DISCONNECTED).id, c.active);
	assert_int_equal(ucma_ids(b->u), 0);
	up_free(up);
}

/* The link says that the host is gone: no message of it will come. */
TEST(test_connections_to_a_host_that_is_gone_end)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0];
	struct conn c = connected(up);
	const struct rdma_ucm_conn_param p = param(QPN + 5, "");
	uint32_t id = routed(up, 3, RDMA_PS_TCP, PORT), in_use;

	OK(connect_rc(a, id, &p));
	/* One question for both, twice a second. */
	a->nreach = 0;
	up_time(up, UP_SEC);
	assert_int_equal(a->nreach, 2);
	/* An error of this host says nothing about the other one. */
	a->reach = -EMFILE;
	up_time(up, UP_SEC);
	no_event(a, 0);
	a->reach = -EHOSTUNREACH;
	in_use = up->nmads;
	up_time(up, UP_SEC);
	assert_int_equal(event(a, DISCONNECTED).id, c.active);
	assert_int_equal((int)event(a, UNREACHABLE).status, -ETIMEDOUT);
	/* No message is sent to it any more. */
	up_time(up, 90 * UP_SEC);
	assert_int_equal(up->nmads, in_use);
	assert_int_equal(ucma_connections(a->u), 0);
	OK(disconnect_rc(a, c.active));
	up_free(up);
}

/*
 * Another host takes the address between two checks. Connections with the old one end, those with
 * the new one stay. The new host gets a DREQ, which it answers though it knows no connection.
 */
TEST(test_connections_to_a_host_that_is_replaced_end)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN + 5, "");
	struct conn c, d;
	uint32_t id;

	a->opening = 7;
	c = connected(up);
	up_time(up, UP_SEC);
	no_event(a, 0);
	up_close(b, 0);
	/* Its messages are lost, and it forgets the connection. */
	up_time(up, 90 * UP_SEC);
	up->nmads = up->next = 0;
	no_event(a, 0);
	OK(ucma_open(b->u, &b->files[0], &b->files[0].f));
	a->opening = 8;
	d = connected_by(up, QPN + 2);
	id = routed(up, 3, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, id, &p));
	up_time(up, UP_SEC / 2);
	assert_int_equal(event(a, DISCONNECTED).id, c.active);
	no_event(a, 0);
	destroy(a, 0, id);
	up_run(up);
	up_time(up, 90 * UP_SEC);
	no_event(a, 0);
	assert_int_equal(ucma_connections(a->u), 1);
	destroy(a, 0, d.active);
	up_free(up);
}

TEST(test_lost_request_times_out)
{
	struct up *up = up_new(16);
	const struct rdma_ucm_conn_param p = param(QPN, "");

	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_time(up, 60 * UP_SEC);
	no_event(&up->host[0], 0);
	up_time(up, 10 * UP_SEC);
	assert_int_equal((int)event(&up->host[0], UNREACHABLE).status, -ETIMEDOUT);
	/* 1 + CMA_MAX_CM_RETRIES requests, and the reject that ends them */
	assert_int_equal(up->nmads, 17);
	up_free(up);
}

/* ---- Requests */

/* The third request is dropped. The peer repeats it, after the program has read an event. */
TEST(test_backlog_limits_unread_requests)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	uint32_t l = listener(b, RDMA_PS_TCP, PORT, 2);

	for (uint32_t i = 0; i < 3; i++) {
		const struct rdma_ucm_conn_param p = param(QPN + i, "");

		OK(connect_rc(a, routed(up, 1 + i, RDMA_PS_TCP, PORT), &p));
		up_run(up);
	}
	no_event(a, 0);
	assert_int_equal(ucma_ids(b->u), 3);
	assert_int_equal(ucma_stats(b->u)->drop[BB_IBCM_DROP_ABANDONED], 1);
	assert_int_equal(event(b, CONNECT_REQUEST).param.conn.qp_num, QPN);
	up_time(up, 5 * UP_SEC);
	up_run(up);
	no_event(a, 0);
	assert_int_equal(event(b, CONNECT_REQUEST).param.conn.qp_num, QPN + 1);
	assert_int_equal(event(b, CONNECT_REQUEST).param.conn.qp_num, QPN + 2);
	no_event(b, 0);
	for (uint32_t i = 3; i < 5; i++) {
		const struct rdma_ucm_conn_param p = param(QPN + i, "");

		OK(connect_rc(a, routed(up, 1 + i, RDMA_PS_TCP, PORT), &p));
		up_run(up);
	}
	/* The two requests that the program has not read end with the listener. */
	assert_int_equal(destroy(b, 0, l), 3);
	up_run(up);
	assert_int_equal(event(a, REJECTED).uid, 4);
	assert_int_equal(event(a, REJECTED).uid, 5);
	no_event(b, 0);
	assert_int_equal(ucma_ids(b->u), 3);
	up_free(up);
}

/* A SIDR request above the backlog, or of an ID that is destroyed, is answered at once. */
TEST(test_datagram_request_without_an_answer_is_rejected)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(0, "");
	struct rdma_ucm_event_resp ev;

	listener(b, RDMA_PS_UDP, PORT, 1);
	OK(connect_rc(a, routed(up, 1, RDMA_PS_UDP, PORT), &p));
	OK(connect_rc(a, routed(up, 2, RDMA_PS_UDP, PORT), &p));
	up_run(up);
	ev = event(a, UNREACHABLE);
	assert_fields(ev, uid, 2, status, BB_IBCM_SIDR_REJECT);
	destroy(b, 0, event(b, CONNECT_REQUEST).id);
	up_run(up);
	ev = event(a, UNREACHABLE);
	assert_fields(ev, uid, 1, status, BB_IBCM_SIDR_REJECT);
	up_free(up);
}

/* Sends the requests of host 0 with a changed byte of the addresses in their private data. */
static void
change_addresses(struct up *up, uint32_t at, uint32_t mask)
{
	for (uint32_t i = up->next; i < up->nmads; i++)
		up->mads[i].mad[at] ^= (uint8_t)mask;
	up_run(up);
}

/* The addresses of a request must be those of its sender and its receiver. */
TEST(test_request_with_addresses_of_another_host_is_rejected)
{
	/* Last bytes of the source and the destination in a REQ and a SIDR_REQ. */
	static const uint32_t req[] = {24 + 140 + 19, 24 + 140 + 35};
	static const uint32_t sidr[] = {24 + 16 + 19, 24 + 16 + 35};
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, ""), u = param(0, "");

	listener(b, RDMA_PS_TCP, PORT, 0);
	listener(b, RDMA_PS_UDP, PORT, 0);
	for (uint32_t i = 0; i < 2; i++) {
		OK(connect_rc(a, routed(up, 1, RDMA_PS_TCP, PORT), &p));
		change_addresses(up, req[i], 4);
		assert_int_equal(event(a, REJECTED).status, BB_IBCM_REJ_GID);
		OK(connect_rc(a, routed(up, 1, RDMA_PS_UDP, PORT), &u));
		change_addresses(up, sidr[i], 4);
		assert_int_equal(event(a, UNREACHABLE).status, BB_IBCM_SIDR_REJECT);
	}
	no_event(b, 0);
	assert_int_equal(ucma_ids(b->u), 2);
	/* Without a change the same requests reach the program. */
	OK(connect_rc(a, routed(up, 1, RDMA_PS_UDP, PORT), &u));
	change_addresses(up, sidr[0], 0);
	event(b, CONNECT_REQUEST);
	up_free(up);
}

/* The program cannot name the ID of a request that it has not read. */
TEST(test_unread_request_has_no_id_for_the_program)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	uint32_t l = listener(b, RDMA_PS_TCP, PORT, 0), events, made;

	OK(connect_rc(a, routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	assert_int_equal(ucma_ids(b->u), 2);
	for (uint32_t i = 0; i <= 16; i++)
		if (i != l)
			assert_int_equal(destroy_rc(b, 0, i, &events), -ENOENT);
	made = event(b, CONNECT_REQUEST).id;
	assert_int_equal(destroy(b, 0, made), 0);
	up_run(up);
	event(a, REJECTED);
	up_free(up);
}

/* The peer gives up before the program accepts: the program learns it by the accept. */
TEST(test_request_that_ended_cannot_be_accepted)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	uint32_t id, made;

	listener(b, RDMA_PS_TCP, PORT, 0);
	id = routed(up, 1, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, id, &p));
	up_run(up);
	made = event(b, CONNECT_REQUEST).id;
	destroy(a, 0, id);
	up_run(up);
	no_event(b, 0);
	assert_int_equal(accept_rc(b, 0, made, 2, &p), -EINVAL);
	assert_int_equal(destroy(b, 0, made), 0);
	up_free(up);
}

TEST(test_notify_of_received_data_establishes)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	struct rdma_ucm_notify n = {.event = IBV_EVENT_COMM_EST};

	listener(b, RDMA_PS_TCP, PORT, 0);
	OK(connect_rc(a, routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	n.id = event(b, CONNECT_REQUEST).id;
	assert_int_equal(up_command(b, 0, RDMA_USER_CM_CMD_NOTIFY, &n, sizeof(n), 0), -EINVAL);
	OK(accept_rc(b, 0, n.id, 2, &p));
	OK(up_command(b, 0, RDMA_USER_CM_CMD_NOTIFY, &n, sizeof(n), 0));
	assert_int_equal(event(b, ESTABLISHED).uid, 2);
	OK(up_command(b, 0, RDMA_USER_CM_CMD_NOTIFY, &n, sizeof(n), 0));
	no_event(b, 0);
	n.event = IBV_EVENT_QP_FATAL;
	assert_int_equal(up_command(b, 0, RDMA_USER_CM_CMD_NOTIFY, &n, sizeof(n), 0), -EINVAL);
	up_free(up);
}

TEST_MAIN(0)
