/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The rdma_cm node by the commands of its ABI (rdma/rdma_user_cm.h) alone: addresses and ports, IDs
 * of several files, and programs that write wrong commands.
 */
#include "ucma_program.h"

/* ---- Addresses */

TEST(test_binds_conflict_as_ports_of_a_host_do)
{
	struct up *up = up_new(32);
	struct up_host *h = &up->host[0];
	const int on = 1;
	uint32_t id = create(h, 0, 1, RDMA_PS_TCP), other;

	OK(bind_rc(h, 0, id, HOST(1), PORT));
	assert_int_equal(bind_rc(h, 0, id, HOST(1), PORT + 1), -EINVAL);
	other = create(h, 0, 1, RDMA_PS_TCP);
	assert_int_equal(bind_rc(h, 0, other, HOST(1), PORT), -EADDRINUSE);
	/* Linux has another error if one of both is at all addresses. */
	assert_int_equal(bind_rc(h, 0, other, INADDR_ANY, PORT), -EADDRNOTAVAIL);
	assert_int_equal(bind_rc(h, 0, other, HOST(7), PORT), -EADDRNOTAVAIL);
	/* Another port, another port space. */
	OK(bind_rc(h, 0, other, HOST(1), PORT + 1));
	OK(bind_rc(h, 0, create(h, 0, 1, RDMA_PS_UDP), HOST(1), PORT));
	/* 127.0.0.1 is the host's address. */
	assert_int_equal(bind_rc(h, 0, create(h, 0, 1, RDMA_PS_TCP), INADDR_LOOPBACK, PORT),
			 -EADDRINUSE);
	destroy(h, 0, id);
	OK(bind_rc(h, 0, create(h, 0, 1, RDMA_PS_TCP), INADDR_ANY, PORT));
	/* Two IDs may share a port if both allow it, but only one may listen. */
	id = create(h, 0, 1, RDMA_PS_TCP);
	other = create(h, 0, 1, RDMA_PS_TCP);
	OK(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	OK(option_rc(h, other, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	OK(bind_rc(h, 0, id, HOST(1), PORT + 2));
	OK(bind_rc(h, 0, other, HOST(1), PORT + 2));
	/* A listener must have its port alone. */
	assert_int_equal(listen_rc(h, 0, id, 0), -EADDRINUSE);
	destroy(h, 0, other);
	OK(listen_rc(h, 0, id, 0));
	other = create(h, 0, 1, RDMA_PS_TCP);
	OK(option_rc(h, other, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	assert_int_equal(bind_rc(h, 0, other, HOST(1), PORT + 2), -EADDRINUSE);
	up_free(up);
}

/* As rdma_set_reuseaddr() of Linux 5.10 and later. */
/* The ports are those of a host that other processes share. */
TEST(test_port_is_taken_from_the_other_processes_of_the_host)
{
	struct up *up = up_new(32);
	struct up_host *h = &up->host[0];
	const int on = 1;
	uint32_t id = create(h, 0, 1, RDMA_PS_TCP), calls;

	OK(bind_rc(h, 0, id, HOST(1), PORT));
	assert_int_equal(h->service_id, RDMA_PS_TCP << 16 | PORT);
	assert_int_equal(h->addresses, 1);
	assert_false(h->any);
	OK(listen_rc(h, 0, id, 0));
	assert_int_equal(h->ports, 1);
	destroy(h, 0, id);
	assert_int_equal(h->ports, 0);
	/* All addresses of the family. */
	id = create(h, 0, 1, RDMA_PS_UDP);
	OK(bind_rc(h, 0, id, INADDR_ANY, PORT));
	assert_int_equal(h->service_id, RDMA_PS_UDP << 16 | PORT);
	assert_true(h->any && h->addresses != 0 && h->addresses < 4);
	destroy(h, 0, id);
	/* An ID that shares its port takes the port when it listens. */
	id = create(h, 0, 1, RDMA_PS_TCP);
	OK(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	OK(bind_rc(h, 0, id, HOST(1), PORT));
	assert_int_equal(h->ports, 0);
	h->take = -EADDRINUSE;
	assert_int_equal(listen_rc(h, 0, id, 0), -EADDRINUSE);
	h->take = 0;
	OK(listen_rc(h, 0, id, 0));
	assert_int_equal(h->ports, 1);
	destroy(h, 0, id);
	/* Another process has the port. The ID may have another one. */
	id = create(h, 0, 1, RDMA_PS_TCP);
	h->take = -EADDRNOTAVAIL;
	assert_int_equal(bind_rc(h, 0, id, HOST(1), PORT), -EADDRNOTAVAIL);
	calls = h->ntake;
	h->take = -EMFILE;
	assert_int_equal(bind_rc(h, 0, id, HOST(1), 0), -EMFILE);
	assert_int_equal(h->ntake, calls + 1);
	h->take = 0;
	OK(bind_rc(h, 0, id, HOST(1), 0));
	assert_int_equal(h->ports, 1);
	/* The source port of a connection stays free for others. */
	calls = h->ntake;
	(void)routed(up, 1, RDMA_PS_TCP, PORT);
	assert_int_equal(h->ntake, calls);
	destroy(h, 0, id);
	assert_int_equal(h->ports, 0);
	up_free(up);
}

static uint16_t
source_port(struct up_host *h)
{
	const uint32_t id = create(h, 0, 1, RDMA_PS_TCP);
	struct rdma_ucm_query_route_resp r;

	OK(resolve_rc(h, id, HOST(1), PORT, 100));
	r = query_route(h, id);
	return ntohs(((struct sockaddr_in *)(void *)&r.src_addr)->sin_port);
}

/* Two processes of a host, which differ in their prefixes of communication IDs. */
TEST(test_processes_of_a_host_choose_different_source_ports)
{
	struct up *up = up_new_prefix(400, 7);
	uint8_t *owner = calloc(65536, 1);
	uint32_t i, host, distinct = 0;

	assert_non_null(owner);
	for (i = 0; i < 60; i++) {
		for (host = 0; host < 2; host++) {
			const uint16_t port = source_port(&up->host[host]);

			assert_in_range(port, 32768, 60999);
			assert_int_equal(owner[port], 0);
			owner[port] = 1;
		}
	}
	/* With more connections than ports of its own, a process takes others. */
	for (i = 0; i < 200; i++) {
		const uint16_t port = source_port(&up->host[0]);

		distinct += (owner[port] & 2) == 0;
		owner[port] |= 2;
	}
	assert_int_equal(distinct, 200);
	free(owner);
	up_free(up);
}

TEST(test_reuseaddr_is_set_before_listen_and_cleared_before_bind)
{
	struct up *up = up_new(32);
	struct up_host *h = &up->host[0];
	const int on = 1, off = 0;
	uint32_t id = create(h, 0, 1, RDMA_PS_TCP);

	OK(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	OK(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)));
	OK(bind_rc(h, 0, id, HOST(1), PORT));
	assert_int_equal(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)), -EINVAL);
	OK(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	OK(listen_rc(h, 0, id, 0));
	assert_int_equal(option_rc(h, id, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), -EINVAL);
	up_free(up);
}

static int
bind6_rc(struct up_host *h, uint32_t id, uint16_t port)
{
	const struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct rdma_ucm_bind_ip c = {.id = id};

	memcpy(&c.addr, &a, sizeof(a));
	return up_command(h, 0, RDMA_USER_CM_CMD_BIND_IP, &c, sizeof(c), 0);
}

/* A bind to IPv4 is for that family only, one to IPv6 for both, unless the program says else. */
TEST(test_listeners_at_all_addresses_of_each_family_share_a_port)
{
	struct up *up = up_new(32);
	struct up_host *h = &up->host[1];
	const int on = 1;
	const struct rdma_ucm_conn_param p = param(QPN, "");
	uint32_t v4_id = create(h, 0, 4, RDMA_PS_TCP), v6_id = create(h, 0, 6, RDMA_PS_TCP);

	OK(bind_rc(h, 0, v4_id, INADDR_ANY, PORT));
	assert_int_equal(bind6_rc(h, v6_id, PORT), -EADDRNOTAVAIL);
	OK(option_rc(h, v6_id, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	OK(bind6_rc(h, v6_id, PORT));
	OK(listen_rc(h, 0, v6_id, 0));
	OK(listen_rc(h, 0, v4_id, 0));
	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	assert_int_equal(event(h, CONNECT_REQUEST).uid, 4);
	no_event(h, 0);
	/* Without the listener of IPv4, a request of that family is rejected. */
	destroy(h, 0, v4_id);
	up_run(up);
	while (h->files[0].readable)
		(void)event_rc(h, 0, &(struct rdma_ucm_event_resp){0});
	OK(connect_rc(&up->host[0], routed(up, 2, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	no_event(h, 0);
	event(&up->host[0], REJECTED);
	up_free(up);
}

TEST(test_bind_of_other_families_is_rejected)
{
	struct up *up = up_new(16);
	struct rdma_ucm_bind c = {.id = create(&up->host[0], 0, 1, RDMA_PS_TCP)};
	struct rdma_ucm_bind_ip ip = {.id = c.id};

	c.addr.ss_family = 27; /* AF_IB, by which librdmacm asks for it */
	c.addr_size = 48;
	assert_int_equal(up_command(&up->host[0], 0, RDMA_USER_CM_CMD_BIND, &c, sizeof(c), 0),
			 -EINVAL);
	ip.addr.sin6_family = 27;
	assert_int_equal(up_command(&up->host[0], 0, RDMA_USER_CM_CMD_BIND_IP, &ip, sizeof(ip), 0),
			 -EAFNOSUPPORT);
	up_free(up);
}

/* The longer forms of the commands, with IPv6. */
TEST(test_commands_with_address_lengths)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	struct rdma_ucm_resolve_addr r = {.dst_size = sizeof(a), .timeout_ms = 100};
	struct rdma_ucm_query_addr_resp q;
	struct rdma_ucm_query c = {.response = (uintptr_t)&q, .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_bind b = {.addr_size = sizeof(a) - 1};

	r.id = c.id = b.id = create(h, 0, 1, RDMA_PS_TCP);
	memcpy(&b.addr, &a, sizeof(a));
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_BIND, &b, sizeof(b), 0), -EINVAL);
	b.addr_size = sizeof(a);
	OK(up_command(h, 0, RDMA_USER_CM_CMD_BIND, &b, sizeof(b), 0));
	a.sin6_addr.s6_addr[0] = 0xfd;
	a.sin6_addr.s6_addr[13] = 0x02;
	memcpy(&r.dst_addr, &a, sizeof(a));
	r.dst_size = 16;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_RESOLVE_ADDR, &r, sizeof(r), 0),
			 -EINVAL);
	r.dst_size = sizeof(a);
	OK(up_command(h, 0, RDMA_USER_CM_CMD_RESOLVE_ADDR, &r, sizeof(r), 0));
	event(h, ADDR_RESOLVED);
	OK(up_command(h, 0, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), sizeof(q)));
	assert_int_equal(q.src_size, sizeof(a));
	assert_int_equal(((struct sockaddr_in6 *)(void *)&q.src_addr)->sin6_addr.s6_addr[15], 1);
	assert_int_equal(((struct sockaddr_in6 *)(void *)&q.src_addr)->sin6_port, htons(PORT));
	assert_memory_equal(&q.dst_addr, &a, sizeof(a));
	assert_int_equal(q.port_num, 1);
	c.option = RDMA_USER_CM_QUERY_GID;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), sizeof(q)),
			 -ENOSYS);
	up_free(up);
}

TEST(test_address_is_resolved_later_or_never)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = create(h, 0, 1, RDMA_PS_TCP);

	h->reach = -EAGAIN;
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	assert_int_equal(resolve_rc(h, id, HOST(2), PORT, 1000), -EINVAL);
	up_time(up, UP_SEC / 2);
	no_event(h, 0);
	h->reach = 0;
	up_time(up, UP_SEC / 2);
	event(h, ADDR_RESOLVED);
	h->reach = -EAGAIN;
	id = create(h, 0, 2, RDMA_PS_TCP);
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	up_time(up, 2 * UP_SEC);
	assert_int_equal((int)event(h, ADDR_ERROR).status, -ETIMEDOUT);
	h->reach = -EHOSTUNREACH;
	/* A program may try again. */
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	assert_int_equal((int)event(h, ADDR_ERROR).status, -EHOSTUNREACH);
	assert_int_equal(route_rc(h, id), -EINVAL);
	up_free(up);
}

/* Both ends are IDs of one host. */
TEST(test_host_connects_to_itself)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct rdma_ucm_conn_param p = param(QPN, ""), back = param(QPN + 1, ""), none = {0};
	uint32_t id, made;

	listener(h, RDMA_PS_TCP, PORT, 0);
	id = create(h, 0, 1, RDMA_PS_TCP);
	OK(resolve_rc(h, id, INADDR_LOOPBACK, PORT, 1000));
	event(h, ADDR_RESOLVED);
	OK(route_rc(h, id));
	event(h, ROUTE_RESOLVED);
	OK(connect_rc(h, id, &p));
	up_run(up);
	made = event(h, CONNECT_REQUEST).id;
	OK(accept_rc(h, 0, made, 2, &back));
	up_run(up);
	event(h, CONNECT_RESPONSE);
	OK(accept_rc(h, 0, id, 0, &none));
	up_run(up);
	assert_int_equal(event(h, ESTABLISHED).id, made);
	OK(disconnect_rc(h, made));
	up_run(up);
	event(h, DISCONNECTED);
	event(h, DISCONNECTED);
	up_free(up);
}

/* ---- Files */

TEST(test_migrated_id_takes_its_events_along)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct rdma_ucm_migrate_resp r;
	struct rdma_ucm_migrate_id c = {.response = (uintptr_t)&r, .fd = 0};
	struct rdma_ucm_event_resp ev;
	uint32_t id = routed(up, 1, RDMA_PS_TCP, PORT), other = create(h, 0, 2, RDMA_PS_TCP), n;

	destroy(h, 0, id);
	id = create(h, 0, 1, RDMA_PS_TCP);
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	OK(resolve_rc(h, other, HOST(2), PORT, 1000));
	c.id = id;
	OK(up_command(h, 1, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)));
	assert_int_equal(r.events_reported, 0);
	assert_int_equal(event(h, ADDR_RESOLVED).id, other);
	no_event(h, 0);
	assert_true(h->files[1].readable);
	OK(event_rc(h, 1, &ev));
	assert_int_equal(ev.id, id);
	no_event(h, 1);
	/* The ID now belongs to the other file. */
	assert_int_equal(destroy_rc(h, 0, id, &n), -EINVAL);
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.fd = UP_FILES;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.fd = UP_FILES + 1;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)),
			 -ENOENT);
	c.fd = 1;
	OK(up_command(h, 0, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)));
	assert_int_equal(r.events_reported, 1);
	assert_int_equal(destroy(h, 0, id), 1);
	up_free(up);
}

/* A listener with an event channel of its own gets requests there, and so does the new ID. */
TEST(test_request_belongs_to_the_file_that_reads_it)
{
	struct up *up = up_new(16);
	struct up_host *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	struct rdma_ucm_migrate_resp r;
	struct rdma_ucm_migrate_id c = {.response = (uintptr_t)&r,
					.id = listener(b, RDMA_PS_TCP, PORT, 0)};
	struct rdma_ucm_event_resp ev;
	uint32_t n;

	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	OK(up_command(b, 2, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r)));
	no_event(b, 0);
	OK(event_rc(b, 2, &ev));
	assert_int_equal(ev.event, CONNECT_REQUEST);
	assert_int_equal(destroy_rc(b, 0, ev.id, &n), -EINVAL);
	OK(accept_rc(b, 2, ev.id, 2, &p));
	up_free(up);
}

/* ---- Programs that are wrong */

TEST(test_commands_of_wrong_length_are_rejected)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint8_t buf[600] = {0};
	struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_CREATE_ID, .in = 24, .out = 4};

	assert_int_equal(ucma_write(h->files[0].f, NULL, 8, 1), -EFAULT);
	assert_int_equal(ucma_write(h->files[0].f, buf, 0, 1), -EINVAL);
	assert_int_equal(ucma_write(h->files[0].f, buf, sizeof(hdr) - 1, 1), -EINVAL);
	memcpy(buf, &hdr, sizeof(hdr));
	assert_int_equal(ucma_write(h->files[0].f, buf, sizeof(hdr) + 23, 1), -EINVAL);
	hdr.in = UINT16_MAX;
	memcpy(buf, &hdr, sizeof(hdr));
	assert_int_equal(ucma_write(h->files[0].f, buf, sizeof(buf), 1), -EINVAL);
	/* A command without its body, and one without room for the response. */
	for (uint32_t cmd = 0; cmd < 64; cmd++) {
		const int ret = up_command(h, 0, cmd, buf, 0, 0);

		assert_true(ret == -EINVAL || ret == -ENOSPC || ret == -ENOSYS);
	}
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_CREATE_ID, buf, 24, 3), -ENOSPC);
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_CREATE_ID, buf, 23, 4), -EINVAL);
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_GET_OPTION, buf, 300, 300), -ENOSYS);
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST + 1, buf, 300, 300), -EINVAL);
	assert_int_equal(ucma_ids(h->u), 0);
	up_free(up);
}

TEST(test_faulting_responses_leave_nothing_behind)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	const struct rdma_ucm_create_id c = {.uid = 1, .ps = RDMA_PS_TCP};
	const struct rdma_ucm_get_event g = {0};
	struct rdma_ucm_event_resp ev;
	uint32_t id = create(h, 0, 1, RDMA_PS_TCP);

	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 4), -EFAULT);
	assert_int_equal(ucma_ids(h->u), 1);
	/* An event that could not be written is read again. */
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_GET_EVENT, &g, sizeof(g), sizeof(ev)),
			 -EFAULT);
	event(h, ADDR_RESOLVED);
	assert_int_equal(destroy(h, 0, id), 1);
	up_free(up);
}

/* Each command before and after the state that it needs. */
TEST(test_commands_in_the_wrong_state_are_rejected)
{
	struct up *up = up_new(16);
	struct up_host *a = &up->host[0], *b = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	struct rdma_ucm_conn_param invalid = p, bad_qpn = param(1, ""), long_data = p;
	struct conn c = connected(up);
	uint32_t id = create(a, 0, 9, RDMA_PS_TCP), n;

	assert_int_equal(connect_rc(a, id, &p), -EINVAL);
	assert_int_equal(accept_rc(a, 0, id, 1, &p), -EINVAL);
	assert_int_equal(reject_rc(a, id, 0, ""), -EINVAL);
	assert_int_equal(disconnect_rc(a, id), -EINVAL);
	assert_int_equal(route_rc(a, id), -EINVAL);
	assert_int_equal(connect_rc(a, c.active, &p), -EINVAL);
	assert_int_equal(listen_rc(a, 0, c.active, 1), -EINVAL);
	assert_int_equal(bind_rc(b, 0, c.passive, HOST(2), 1), -EINVAL);
	assert_int_equal(resolve_rc(b, c.listener, HOST(1), 1, 1), -EINVAL);
	assert_int_equal(listen_rc(b, 0, c.listener, 1), -EINVAL);
	/* Neither 0 nor a number beyond the last one is an ID. */
	assert_int_equal(destroy_rc(a, 0, 0, &n), -ENOENT);
	assert_int_equal(destroy_rc(a, 0, 17, &n), -ENOENT);
	assert_int_equal(destroy_rc(a, 0, UINT32_MAX, &n), -ENOENT);
	assert_int_equal(destroy_rc(a, 1, id, &n), -EINVAL);
	/* Parameters that a REQ has no room for. The ID can still connect. */
	id = routed(up, 9, RDMA_PS_TCP, PORT);
	invalid.valid = 0;
	long_data.private_data_len = 57;
	assert_int_equal(connect_rc(a, id, &invalid), -EINVAL);
	assert_int_equal(connect_rc(a, id, &bad_qpn), -EINVAL);
	assert_int_equal(connect_rc(a, id, &long_data), -EINVAL);
	long_data.private_data_len = 56;
	long_data.qp_num = QPN + 9;
	OK(connect_rc(a, id, &long_data));
	up_free(up);
}

TEST(test_port_spaces_and_types)
{
	struct up *up = up_new(16);
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_create_id c = {.response = (uintptr_t)&r, .ps = RDMA_PS_IB};
	uint32_t id;

	assert_int_equal(create_rc(&up->host[0], 0, 1, 0x1234, &id), -EINVAL);
	OK(create_rc(&up->host[0], 0, 1, RDMA_PS_IPOIB, &id));
	c.qp_type = IBV_QPT_UC;
	OK(up_command(&up->host[0], 0, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)));
	c.qp_type = IBV_QPT_RAW_PACKET;
	assert_int_equal(
		up_command(&up->host[0], 0, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)),
		-EINVAL);
	up_free(up);
}

TEST(test_number_of_ids_is_bounded)
{
	struct up *up = up_new(3);
	struct up_host *h = &up->host[1];
	const struct rdma_ucm_conn_param p = param(QPN, "");
	uint32_t first = listener(h, RDMA_PS_TCP, PORT, 0), id, other;

	OK(create_rc(h, 0, 1, RDMA_PS_TCP, &other));
	OK(create_rc(h, 0, 1, RDMA_PS_TCP, &id));
	assert_int_equal(create_rc(h, 0, 1, RDMA_PS_TCP, &id), -ENOMEM);
	/* A request that would need an ID is dropped. The peer repeats it. */
	OK(connect_rc(&up->host[0], routed(up, 1, RDMA_PS_TCP, PORT), &p));
	up_run(up);
	no_event(h, 0);
	no_event(&up->host[0], 0);
	destroy(h, 0, other);
	up_time(up, 5 * UP_SEC);
	up_run(up);
	/* The number is used again only after all others. */
	assert_int_not_equal(event(h, CONNECT_REQUEST).id, first);
	up_free(up);
}

TEST_MAIN(0)
