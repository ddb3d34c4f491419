/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of a fabric (soft_shm_group.c). Devices of this process are the members, which
 * share an address; the test sends by the link, and reads the members' rings.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shm_host.h"

#define DEVS 3u

static const uint8_t group[16] = {[10] = 0xff, [11] = 0xff, 239, 200, 1, 2};
static struct mlx5_ctx *ctx[DEVS];

/* ---- System calls of the device */

static uint32_t calls;
static bool no_descriptors; /* socket() fails. */

int
socket(int domain, int type, int protocol)
{
	calls++;
	if (no_descriptors) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	calls++;
	return (int)syscall(SYS_connect, fd, addr, len);
}

/* ---- Devices */

static struct soft_shm *
shm_of(unsigned int i)
{
	return dev_of(ctx[i])->shm;
}

static int
begin(void **st)
{
	(void)st;
	for (unsigned int i = 0; i < DEVS; i++)
		ctx[i] = opened(i, ",host=h");
	return 0;
}

static int
end(void **st)
{
	(void)st;
	for (unsigned int i = 0; i < DEVS; i++)
		shut(ctx[i]);
	return 0;
}

#define T(name) TEST_WITH(begin, end, name)

static enum soft_link_sent
cast(unsigned int from, const uint8_t gid[16], uint32_t len)
{
	static const uint8_t data[4096];
	static struct soft_engine e;
	struct soft_wire_dest to = {.net = {.sport = 0xc000, .hop_limit = 64}};
	const struct bb_roce_pkt pkt = {.opcode = BB_ROCE_UD | BB_ROCE_SEND_ONLY,
					.pkey = 0xffff,
					.dqpn = BB_ROCE_MCAST_QPN,
					.len = len};
	const struct bb_roce_iov iov = {.p = data, .len = len};
	const struct soft_link_pkt p = {.to = &to, .pkt = &pkt, .iov = &iov, .n = 1};

	e.dev = dev_of(ctx[from]);
	memcpy(to.net.src, address, 16);
	memcpy(to.net.dst, gid, 16);
	soft_mcast_mac(gid, to.mac);
	return soft_link_shm.send(&e, &p);
}

static void
join(unsigned int i, const uint8_t gid[16])
{
	assert_int_equal(soft_shm_group_join(shm_of(i), gid), 0);
}

static void
leave(unsigned int i, const uint8_t gid[16])
{
	pthread_mutex_lock(&dev_of(ctx[i])->lock);
	soft_shm_group_leave(shm_of(i), gid);
	pthread_mutex_unlock(&dev_of(ctx[i])->lock);
}

/* As a command waits at the end of a join. */
static void
wait_for_senders(void)
{
	usleep(SOFT_SHM_CAST_NS / 1000);
}

/* Ends the handshakes that are in progress. */
static void
settle(void)
{
	for (unsigned int n = 0; n < 4; n++)
		for (unsigned int i = 0; i < DEVS; i++)
			soft_shm_chores(shm_of(i), rte_rdtsc());
}

/* Reads all packets to a group that have reached a device. Returns their number. */
static unsigned int
copies(unsigned int i, const uint8_t gid[16])
{
	struct soft_ring_rec rec;
	unsigned int n = 0;

	settle();
	for (uint32_t k = 0; k < shm_of(i)->n_rx; k++) {
		struct soft_shm_rx *rx = shm_of(i)->rx[k];

		if (rx->state != SOFT_SHM_UP || memcmp(rx->dst, gid, 16) != 0)
			continue;
		while (soft_ring_peek(&rx->ring, &rec) != NULL) {
			soft_ring_pop(&rx->ring);
			n++;
		}
		soft_ring_release(&rx->ring);
	}
	return n;
}

T(test_datagram_reaches_each_member_once)
{
	join(1, group);
	join(2, group);
	assert_int_equal(cast(0, group, 100), SOFT_LINK_SENT);
	assert_int_equal(copies(0, group), 0);
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(copies(2, group), 1);
	/* The sender's own device is a member like the others. */
	join(0, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 4096), SOFT_LINK_SENT);
	assert_int_equal(cast(0, group, 1), SOFT_LINK_SENT);
	for (unsigned int i = 0; i < DEVS; i++)
		assert_int_equal(copies(i, group), 2);
}

T(test_member_that_joined_after_a_send_gets_the_next_one)
{
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	join(1, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	/* Again, with a connection that is up. */
	join(2, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(copies(2, group), 1);
}

/* The sender has not noticed the end of the connection when the member has its number again. */
T(test_member_that_leaves_and_joins_again_gets_datagrams)
{
	join(1, group);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	leave(1, group);
	join(1, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	/* Without a member the datagram is dropped. */
	leave(1, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 0);
}

T(test_groups_are_separate)
{
	uint8_t other[16];

	memcpy(other, group, sizeof(other));
	other[13] ^= 1;
	other[14] ^= 1;
	assert_int_equal(soft_mcg_bucket(group), soft_mcg_bucket(other));
	join(1, group);
	join(2, other);
	for (unsigned int n = 0; n < 3; n++) {
		assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
		assert_int_equal(cast(0, other, 8), SOFT_LINK_SENT);
	}
	assert_int_equal(copies(1, group), 3);
	assert_int_equal(copies(2, other), 3);
	assert_int_equal(copies(1, other) + copies(2, group), 0);
}

/* A join does not connect to the members, and a connection to a group concerns no QP. */
T(test_join_and_group_connections_disturb_no_member)
{
	const uint32_t changes = shm_of(0)->changes;

	join(1, group);
	join(2, group);
	settle();
	assert_int_equal(shm_of(1)->n_rx, 0);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	settle();
	assert_int_equal(shm_of(0)->tx[0]->state, SOFT_SHM_UP);
	leave(1, group);
	settle();
	assert_int_equal(shm_of(0)->tx[0]->state, SOFT_SHM_IDLE);
	assert_int_equal(shm_of(0)->changes, changes);
}

/* The sender's connection to number 2 has ended when member 1 joins. */
T(test_member_with_the_number_of_another_one_gets_one_copy)
{
	join(1, group);
	join(2, group);
	leave(1, group);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(2, group), 1);
	leave(2, group);
	settle();
	join(1, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(copies(2, group), 0);
}

/* Another group gets the connections of a group without members, which then has members again. */
T(test_group_whose_connections_another_group_has_reaches_its_members)
{
	uint8_t other[16];

	memcpy(other, group, sizeof(other));
	other[15] ^= 0x10;
	join(1, group);
	join(2, group);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group) + copies(2, group), 2);
	leave(1, group);
	leave(2, group);
	settle();
	join(1, other);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(cast(0, other, 8), SOFT_LINK_SENT);
	join(1, group);
	join(2, group);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(copies(2, group), 1);
	assert_int_equal(copies(1, other), 1);
}

T(test_datagrams_to_groups_of_one_bucket_do_not_call_the_kernel)
{
	const uint64_t began = rte_rdtsc();
	uint8_t other[16];
	uint64_t searches;

	memcpy(other, group, sizeof(other));
	other[15] ^= 0x40;
	assert_int_equal(soft_mcg_bucket(group), soft_mcg_bucket(other));
	calls = 0;
	for (unsigned int n = 0; n < 1000; n++) {
		assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
		assert_int_equal(cast(0, other, 8), SOFT_LINK_SENT);
	}
	searches = 1 + (rte_rdtsc() - began) / soft_time_cycles(SOFT_SHM_CAST_NS);
	assert_true(calls <= 2 * searches * (1 + SOFT_SHM_MEMBERS));
}

/* A search that fails is repeated soon, and its datagrams are counted. */
T(test_search_without_descriptors_is_counted_and_repeated)
{
	const uint64_t *lost = dev_of(ctx[0])->lost;

	join(1, group);
	no_descriptors = true;
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	no_descriptors = false;
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], 1);
	usleep(SOFT_SHM_FULL_NS / 1000);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], 1);
	assert_int_equal(copies(1, group), 1);
	/* Known members get datagrams while a search fails. */
	wait_for_senders();
	no_descriptors = true;
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	no_descriptors = false;
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], 2);
}

/* The test is a member that refuses. Another group may have the entry of its connection then. */
T(test_member_that_refuses_is_asked_again_after_a_pause)
{
	const uint64_t pause = soft_time_cycles(SOFT_SHM_GROUP_RETRY_NS);
	const uint64_t began = rte_rdtsc();
	const struct soft_shm_cast *c = shm_of(0)->casts.cast;
	int listener, mark, sock, again;
	struct soft_shm_msg m;
	uint8_t other[16];
	char fabric[32];

	snprintf(fabric, sizeof(fabric), "slot%d", (int)getpid());
	assert_int_equal(soft_shm_listen(fabric, group, 1, &listener, NULL), 0);
	mark = soft_shm_slot_mark(shm_of(0), group, 1);
	assert_true(mark >= 0);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(soft_shm_accept(listener, &sock), 0);
	soft_shm_msg_init(&m, SOFT_SHM_REFUSED);
	m.u.refused.why = SOFT_SHM_REFUSED_FULL;
	assert_int_equal(soft_shm_send(sock, &m, NULL, 0), 0);
	close(sock);
	settle();
	memcpy(other, group, sizeof(other));
	other[15] ^= 0x10;
	join(1, other);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(cast(0, other, 8), SOFT_LINK_SENT);
	wait_for_senders();
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	while (memcmp(c->gid, group, 16) != 0)
		c++;
	assert_true(c->retry[0] >= began + pause);
	again = soft_shm_accept(listener, &sock);
	if (again == 0)
		close(sock);
	assert_true(again != 0 || rte_rdtsc() >= began + pause);
	assert_int_equal(copies(1, other), 1);
	close(mark);
	close(listener);
}

/* ---- Limits */

static void
nth_group(uint8_t gid[16], unsigned int n)
{
	memcpy(gid, group, 16);
	gid[14] = (uint8_t)(n >> 8);
	gid[15] = (uint8_t)n;
}

/* A device sends to a bounded number of groups at a time. */
T(test_group_beyond_the_limit_waits_until_another_one_is_idle)
{
	const uint64_t *lost = dev_of(ctx[0])->lost;
	uint8_t gid[16];

	for (unsigned int n = 0; n <= SOFT_SHM_CASTS; n++) {
		nth_group(gid, n);
		join(1, gid);
		assert_int_equal(lost[SOFT_LOST_NO_ROOM], 0);
		assert_int_equal(cast(0, gid, 8), SOFT_LINK_SENT);
	}
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], 1);
	assert_int_equal(copies(1, gid), 0);
	for (unsigned int n = 0; n < SOFT_SHM_CASTS; n++) {
		nth_group(gid, n);
		assert_int_equal(copies(1, gid), 1);
	}
	for (unsigned int n = 0; n < SOFT_SHM_CASTS; n++)
		soft_shm_chores(shm_of(0), rte_rdtsc() + soft_time_cycles(SOFT_SHM_CAST_IDLE_NS));
	settle();
	for (uint32_t i = 0; i < shm_of(0)->n_tx; i++)
		assert_int_equal(shm_of(0)->tx[i]->state, SOFT_SHM_IDLE);
	for (uint32_t i = 0; i < shm_of(1)->n_rx; i++)
		assert_int_equal(shm_of(1)->rx[i]->state, SOFT_SHM_IDLE);
	nth_group(gid, SOFT_SHM_CASTS);
	assert_int_equal(cast(0, gid, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, gid), 1);
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], 1);
}

/* Connections to groups leave room for those to addresses, at both ends. */
T(test_connections_of_groups_are_bounded)
{
	const uint32_t groups = SOFT_SHM_GROUP_PEERS / DEVS + 1;
	const uint64_t *lost = dev_of(ctx[0])->lost;
	uint8_t gid[16];

	for (unsigned int n = 0; n < groups; n++) {
		nth_group(gid, n);
		for (unsigned int i = 0; i < DEVS; i++)
			join(i, gid);
		assert_int_equal(cast(0, gid, 8), SOFT_LINK_SENT);
	}
	assert_int_equal(lost[SOFT_LOST_NO_ROOM], DEVS * groups - SOFT_SHM_GROUP_PEERS);
	assert_int_equal(shm_of(0)->casts.n_tx, SOFT_SHM_GROUP_PEERS);
	assert_int_equal(shm_of(0)->n_tx, SOFT_SHM_GROUP_PEERS);
	settle();
	for (unsigned int from = 1; from < DEVS; from++)
		for (unsigned int n = 0; n < SOFT_SHM_CASTS; n++) {
			nth_group(gid, 100 * from + n);
			join(0, gid);
			assert_int_equal(cast(from, gid, 8), SOFT_LINK_SENT);
			settle();
		}
	assert_int_equal(shm_of(0)->n_rx, SOFT_SHM_GROUP_PEERS);
	assert_int_equal(soft_shm_reach(dev_of(ctx[1]), address, 1, false), 0);
	settle();
	assert_int_equal(soft_shm_find(shm_of(1), address, 1)->state, SOFT_SHM_UP);
}

/* A sender has a bounded table of connections. Those of groups without members are used again. */
T(test_sender_uses_the_connections_of_old_groups_again)
{
	uint8_t gid[16];

	for (unsigned int n = 0; n < SOFT_SHM_PEERS + 20; n++) {
		nth_group(gid, n);
		join(1, gid);
		assert_int_equal(cast(0, gid, 8), SOFT_LINK_SENT);
		assert_int_equal(copies(1, gid), 1);
		leave(1, gid);
		settle();
		soft_shm_chores(shm_of(0), rte_rdtsc() + soft_time_cycles(SOFT_SHM_CAST_IDLE_NS));
	}
	assert_true(shm_of(0)->n_tx < 4);
}

/* The other numbers are taken by sockets that are no devices. */
T(test_number_of_members_is_bounded)
{
	char fabric[32];
	int sock[SOFT_SHM_MEMBERS + 1];
	pid_t pid;
	uint32_t k;

	snprintf(fabric, sizeof(fabric), "slot%d", (int)getpid());
	for (k = 1; k <= SOFT_SHM_MEMBERS; k++)
		assert_int_equal(soft_shm_listen(fabric, group, k, &sock[k], &pid), 0);
	assert_int_equal(soft_shm_group_join(shm_of(1), group), -ENOSPC);
	close(sock[7]);
	join(1, group);
	assert_true(soft_shm_slot_used(shm_of(0), group, 7));
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	for (k = 1; k <= SOFT_SHM_MEMBERS; k++)
		if (k != 7)
			close(sock[k]);
}

/* The member's process does not run: its copies are dropped, those of others are not. */
T(test_member_that_does_not_read_does_not_stop_the_others)
{
	char fabric[32];
	int sock, mark;
	pid_t pid;

	snprintf(fabric, sizeof(fabric), "slot%d", (int)getpid());
	assert_int_equal(soft_shm_listen(fabric, group, 1, &sock, &pid), 0);
	mark = soft_shm_slot_mark(shm_of(0), group, 1);
	assert_true(mark >= 0);
	join(1, group);
	for (unsigned int n = 0; n < 2 * SOFT_RING_SIZE / 4096; n++) {
		assert_int_equal(cast(0, group, 4096), SOFT_LINK_SENT);
		assert_int_equal(copies(1, group), 1);
	}
	assert_true(dev_of(ctx[0])->lost[SOFT_LOST_NO_ROOM] > 0);
	close(mark);
	close(sock);
}

T(test_datagram_with_a_wrong_mac_or_without_hops_is_lost)
{
	static struct soft_engine e;
	struct bb_roce_net net = {.hop_limit = 64};
	static const uint8_t bytes[64];
	uint8_t mac[6];

	e.dev = dev_of(ctx[0]);
	join(1, group);
	memcpy(net.src, address, 16);
	memcpy(net.dst, group, 16);
	soft_mcast_mac(group, mac);
	mac[5] ^= 1;
	assert_int_equal(soft_shm_cast_bytes(&e, &net, mac, bytes, 64), SOFT_LINK_LOST);
	mac[5] ^= 1;
	net.hop_limit = 0;
	assert_int_equal(soft_shm_cast_bytes(&e, &net, mac, bytes, 64), SOFT_LINK_LOST);
	net.hop_limit = 1;
	assert_int_equal(soft_shm_cast_bytes(&e, &net, mac, bytes, SOFT_RING_MAX + 1),
			 SOFT_LINK_LOST);
	net.src[15] ^= 1;
	assert_int_equal(soft_shm_cast_bytes(&e, &net, mac, bytes, 64), SOFT_LINK_LOST);
	net.src[15] ^= 1;
	assert_int_equal(soft_shm_cast_bytes(&e, &net, mac, bytes, 64), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
}

/*
 * Another thread holds the lock when a search is due: the engine sends the datagram again, and does
 * not wait. If that lasts, the datagram goes to the members that are known.
 */
T(test_send_does_not_wait_for_the_lock)
{
	join(1, group);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
	wait_for_senders();
	pthread_mutex_lock(&shm_of(0)->lock);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_FULL);
	for (unsigned int n = 0; n < 60000 && cast(0, group, 8) == SOFT_LINK_FULL; n++)
		usleep(1000);
	pthread_mutex_unlock(&shm_of(0)->lock);
	assert_int_equal(copies(1, group), 1);
	assert_int_equal(cast(0, group, 8), SOFT_LINK_SENT);
	assert_int_equal(copies(1, group), 1);
}

/* The test stands for a process that writes any packets into a connection to a group. */
T(test_packets_of_hostile_senders_reach_no_queue_pair_by_number)
{
	static struct soft_engine e;
	static struct soft_shm_rx rx = {.n_group_gids = 1};
	struct soft_ring_rec rec = {.len = BB_ROCE_BTH_LEN + 8, .hop_limit = 64};
	uint8_t packet[64] = {BB_ROCE_UD | BB_ROCE_SEND_ONLY, 0, 0xff, 0xff};
	uint64_t *lost = dev_of(ctx[0])->lost;

	e.dev = dev_of(ctx[0]);
	memcpy(rx.dst, group, 16);
	packet[7] = 0x42;
	soft_shm_input(&e, &rx, &rec, packet);
	assert_int_equal(lost[SOFT_LOST_NO_QP], 1);
	/* A group without a member on the device. */
	memset(packet + 5, 0xff, 3);
	soft_shm_input(&e, &rx, &rec, packet);
	assert_int_equal(lost[SOFT_LOST_NO_QP], 2);
	rec.sgid = 1;
	soft_shm_input(&e, &rx, &rec, packet);
	assert_int_equal(lost[SOFT_LOST_PORT_DOWN], 1);
	rec.sgid = 0;
	rec.len = 5;
	soft_shm_input(&e, &rx, &rec, packet);
	assert_int_equal(lost[BB_ROCE_DROP_SHORT], 1);
}

TEST_MAIN(0)
