/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The commands for multicast groups of the rdma_cm node, by its ABI (rdma/rdma_user_cm.h) alone. */
#include "ucma_program.h"

#define GROUP           0xefc80102u /* 239.200.1.2 */
#define MC_UID          UINT64_C(0xcafe)
#define MULTICAST_JOIN  12
#define LINUX_ENOTSUPP  524
#define RDMA_UDP_QKEY   0x01234567u
#define FILE_OF_ANOTHER 1

static int
join_rc(struct up_host *h, unsigned int file, uint32_t id, uint32_t addr, uint32_t *mc)
{
	const struct sockaddr_in a = v4(addr, 0);
	struct rdma_ucm_create_id_resp r = {0};
	struct rdma_ucm_join_ip_mcast c = {.response = (uintptr_t)&r, .uid = MC_UID, .id = id};
	int ret;

	memcpy(&c.addr, &a, sizeof(a));
	ret = up_command(h, file, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r));
	*mc = r.id;
	return ret;
}

static int
leave_rc(struct up_host *h, unsigned int file, uint32_t mc, uint32_t *events)
{
	struct rdma_ucm_destroy_id_resp r = {.events_reported = 77};
	const struct rdma_ucm_destroy_id c = {.response = (uintptr_t)&r, .id = mc};
	int ret = up_command(h, file, RDMA_USER_CM_CMD_LEAVE_MCAST, &c, sizeof(c), sizeof(r));

	*events = r.events_reported;
	return ret;
}

static uint32_t
leave(struct up_host *h, uint32_t mc)
{
	uint32_t events;

	OK(leave_rc(h, 0, mc, &events));
	return events;
}

/* Makes a datagram ID that is bound to the host's address. */
static uint32_t
bound(struct up_host *h, uint16_t port)
{
	const uint32_t id = create(h, 0, UID, RDMA_PS_UDP);

	OK(bind_rc(h, 0, id, HOST(1), port));
	return id;
}

TEST(test_join_reports_the_gid_and_qkey_of_the_group)
{
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 239, 200, 1, 2};
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct rdma_ucm_event_resp ev;
	uint8_t tos = 32;
	uint32_t id = bound(h, PORT), mc;

	OK(option_rc(h, id, RDMA_OPTION_ID_TOS, &tos, 1));
	OK(join_rc(h, 0, id, GROUP, &mc));
	ev = event(h, MULTICAST_JOIN);
	assert_int_equal(ev.uid, MC_UID);
	assert_int_equal(ev.id, mc);
	assert_int_equal(ev.status, 0);
	assert_int_equal(ev.param.ud.qp_num, 0xffffff);
	assert_int_equal(ev.param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(ev.param.ud.private_data_len, 0);
	assert_int_equal(ev.param.ud.ah_attr.is_global, 1);
	assert_int_equal(ev.param.ud.ah_attr.port_num, 1);
	assert_int_equal(ev.param.ud.ah_attr.dlid, 0);
	assert_memory_equal(ev.param.ud.ah_attr.grh.dgid, gid, sizeof(gid));
	assert_int_equal(ev.param.ud.ah_attr.grh.sgid_index, 1);
	assert_int_equal(ev.param.ud.ah_attr.grh.hop_limit, 64);
	assert_int_equal(ev.param.ud.ah_attr.grh.traffic_class, 0);
	no_event(h, 0);
	assert_int_equal(leave(h, mc), 1);
	assert_int_equal(destroy(h, 0, id), 1);
	up_free(up);
}

/* As mckey does: resolve the group's address, create a QP, join. */
TEST(test_address_of_a_group_is_resolved_without_a_host)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct ib_uverbs_qp_attr attr;
	uint32_t id = create(h, 0, UID, RDMA_PS_UDP), mc, calls;

	h->reach = -EHOSTUNREACH;
	calls = h->nreach;
	OK(resolve_rc(h, id, GROUP, 0, 1000));
	assert_int_equal(event(h, ADDR_RESOLVED).uid, UID);
	assert_int_equal(h->nreach, calls);
	attr.qp_state = IBV_QPS_RTR;
	OK(qp_attr(h, id, IBV_QPS_INIT, &attr));
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
	OK(join_rc(h, 0, id, GROUP, &mc));
	assert_int_equal(event(h, MULTICAST_JOIN).id, mc);
	up_free(up);
}

/* Linux counts memberships of a group, and does not compare them. */
TEST(test_second_join_of_a_group_is_another_membership)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = bound(h, PORT), first, second, events;

	OK(join_rc(h, 0, id, GROUP, &first));
	OK(join_rc(h, 0, id, GROUP, &second));
	assert_int_not_equal(first, second);
	assert_int_equal(event(h, MULTICAST_JOIN).id, first);
	assert_int_equal(leave(h, first), 1);
	assert_int_equal(leave_rc(h, 0, first, &events), -ENOENT);
	assert_int_equal(event(h, MULTICAST_JOIN).id, second);
	assert_int_equal(leave(h, second), 1);
	assert_int_equal(destroy(h, 0, id), 2);
	up_free(up);
}

TEST(test_leave_removes_an_event_that_was_not_read)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = bound(h, PORT), first, second;

	OK(join_rc(h, 0, id, GROUP, &first));
	OK(join_rc(h, 0, id, GROUP + 1, &second));
	assert_int_equal(leave(h, first), 0);
	assert_int_equal(event(h, MULTICAST_JOIN).id, second);
	no_event(h, 0);
	OK(join_rc(h, 0, id, GROUP, &first));
	assert_true(h->files[0].readable);
	assert_int_equal(leave(h, first), 0);
	no_event(h, 0);
	up_free(up);
}

TEST(test_destroyed_id_ends_its_memberships)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = bound(h, PORT), other = bound(h, PORT + 1), mc, kept, events;

	OK(join_rc(h, 0, id, GROUP, &mc));
	OK(join_rc(h, 0, other, GROUP, &kept));
	/* The event of the join waits. */
	assert_int_equal(destroy(h, 0, id), 0);
	assert_int_equal(leave_rc(h, 0, mc, &events), -ENOENT);
	assert_int_equal(event(h, MULTICAST_JOIN).id, kept);
	assert_int_equal(leave(h, kept), 1);
	/* So does a file that is closed. */
	OK(join_rc(h, 0, other, GROUP, &mc));
	up_close(h, 0);
	assert_int_equal(ucma_ids(h->u), 0);
	up_free(up);
}

TEST(test_id_without_a_device_cannot_join)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = create(h, 0, UID, RDMA_PS_UDP), mc;

	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	OK(bind_rc(h, 0, id, INADDR_ANY, PORT));
	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	/* Linux allows a join before and after the address is resolved, not meanwhile. */
	h->reach = -EAGAIN;
	OK(resolve_rc(h, id, HOST(2), PORT, 1000));
	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	h->reach = 0;
	up_time(up, UP_SEC);
	event(h, ADDR_RESOLVED);
	OK(join_rc(h, 0, id, GROUP, &mc));
	event(h, MULTICAST_JOIN);
	OK(route_rc(h, id));
	event(h, ROUTE_RESOLVED);
	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	up_free(up);
}

TEST(test_ids_for_connections_and_listeners_cannot_join)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	uint32_t id = create(h, 0, UID, RDMA_PS_TCP), mc;

	OK(bind_rc(h, 0, id, HOST(1), PORT));
	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	id = bound(h, PORT);
	OK(listen_rc(h, 0, id, 0));
	assert_int_equal(join_rc(h, 0, id, GROUP, &mc), -EINVAL);
	no_event(h, 0);
	up_free(up);
}

TEST(test_addresses_that_are_no_groups)
{
	static const uint8_t zero[16];
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_join_ip_mcast c = {.response = (uintptr_t)&r, .uid = MC_UID};
	uint32_t mc;

	c.id = bound(h, PORT);
	assert_int_equal(join_rc(h, 0, c.id, 0, &mc), -EINVAL);
	assert_int_equal(join_rc(h, 0, c.id, 0x00010203, &mc), -EINVAL);
	/* The attach of the QP rejects these. */
	OK(join_rc(h, 0, c.id, INADDR_LOOPBACK, &mc));
	assert_memory_equal(event(h, MULTICAST_JOIN).param.ud.ah_attr.grh.dgid, zero, 16);
	OK(join_rc(h, 0, c.id, HOST(2), &mc));
	event(h, MULTICAST_JOIN);
	/* A family other than IPv4 and IPv6. */
	c.addr.sin6_family = 27;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.addr.sin6_family = 0;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.addr.sin6_family = AF_INET6;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.addr.sin6_addr.s6_addr[0] = 0xff;
	c.addr.sin6_addr.s6_addr[1] = 0x0e;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)),
			 -LINUX_ENOTSUPP);
	no_event(h, 0);
	up_free(up);
}

TEST(test_join_with_an_address_length_and_flags)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	const struct sockaddr_in a = v4(GROUP, 0);
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_join_mcast c = {.response = (uintptr_t)&r, .uid = MC_UID};
	static const uint16_t lengths[] = {0, 1, 15, 17, sizeof(struct sockaddr_in6), 128, 65535};

	c.id = bound(h, PORT);
	memcpy(&c.addr, &a, sizeof(a));
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		c.addr_size = lengths[i];
		assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST, &c, sizeof(c), 4),
				 -EINVAL);
	}
	c.addr_size = sizeof(a);
	for (c.join_flags = 2; c.join_flags != 0; c.join_flags *= 2)
		assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST, &c, sizeof(c), 4),
				 -EINVAL);
	no_event(h, 0);
	for (c.join_flags = 0; c.join_flags < 2; c.join_flags++) {
		OK(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST, &c, sizeof(c), 4));
		assert_int_equal(event(h, MULTICAST_JOIN).id, r.id);
	}
	c.join_flags = 0;
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST, &c, sizeof(c) - 1, 4),
			 -EINVAL);
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_MCAST, &c, sizeof(c), 3), -ENOSPC);
	up_free(up);
}

TEST(test_memberships_belong_to_the_file_of_their_id)
{
	struct up *up = up_new(16);
	struct up_host *h = &up->host[0];
	struct rdma_ucm_migrate_resp moved;
	struct rdma_ucm_migrate_id m = {.response = (uintptr_t)&moved};
	struct rdma_ucm_event_resp ev;
	uint32_t mc, events;

	m.id = bound(h, PORT);
	assert_int_equal(join_rc(h, FILE_OF_ANOTHER, m.id, GROUP, &mc), -EINVAL);
	OK(join_rc(h, 0, m.id, GROUP, &mc));
	assert_int_equal(leave_rc(h, FILE_OF_ANOTHER, mc, &events), -EINVAL);
	/* The event and the membership move with the ID. */
	OK(up_command(h, FILE_OF_ANOTHER, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m),
		      sizeof(moved)));
	no_event(h, 0);
	assert_int_equal(leave_rc(h, 0, mc, &events), -EINVAL);
	OK(event_rc(h, FILE_OF_ANOTHER, &ev));
	assert_int_equal(ev.id, mc);
	OK(leave_rc(h, FILE_OF_ANOTHER, mc, &events));
	assert_int_equal(events, 1);
	up_free(up);
}

TEST(test_handles_and_responses_of_wrong_programs)
{
	struct up *up = up_new(4);
	struct up_host *h = &up->host[0];
	const struct sockaddr_in a = v4(GROUP, 0);
	struct rdma_ucm_join_ip_mcast c = {.uid = MC_UID};
	const uint32_t id = bound(h, PORT);
	const struct rdma_ucm_destroy_id d = {.id = 1};
	uint32_t mc, events, i;

	assert_int_equal(leave_rc(h, 0, 0, &events), -ENOENT);
	assert_int_equal(leave_rc(h, 0, id, &events), -ENOENT);
	assert_int_equal(leave_rc(h, 0, 5, &events), -ENOENT);
	assert_int_equal(leave_rc(h, 0, UINT32_MAX, &events), -ENOENT);
	assert_int_equal(join_rc(h, 0, id + 1, GROUP, &mc), -ENOENT);
	assert_int_equal(join_rc(h, 0, UINT32_MAX, GROUP, &mc), -ENOENT);
	/* A response that faults: no membership, no event. */
	c.id = id;
	memcpy(&c.addr, &a, sizeof(a));
	for (i = 0; i < 9; i++)
		assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), 4),
				 -EFAULT);
	no_event(h, 0);
	/* The number of memberships is bounded. */
	for (i = 0; i < 4; i++)
		OK(join_rc(h, 0, id, GROUP + i, &mc));
	assert_int_equal(join_rc(h, 0, id, GROUP + i, &mc), -ENOMEM);
	/* The program has left, although the response faults (Linux: ucma_leave_multicast()). */
	assert_int_equal(up_command(h, 0, RDMA_USER_CM_CMD_LEAVE_MCAST, &d, sizeof(d), 4), -EFAULT);
	assert_int_equal(leave_rc(h, 0, 1, &events), -ENOENT);
	OK(join_rc(h, 0, id, GROUP, &mc));
	up_free(up);
}

TEST_MAIN(0)
