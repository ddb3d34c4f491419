/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The shared-memory port between real processes: a killed peer, a restarted peer, memory that is
 * deregistered while a peer writes to it, addresses and users.
 */
#define _GNU_SOURCE /* setresuid() */
#include "soft_shm.h"

#include <rte_cycles.h>
#include <rte_log.h>

#include "../../../fakes/process.h"
#include "shm_env.h"

/*
 * After a key is deregistered no write arrives through it, whatever the peer does. The peer
 * writes without end, and the bytes that this process writes after bb_mr_dereg() stay.
 */
static void
dereg_under_fire(const char *more, uint32_t rounds)
{
	struct actor_msg fire;
	uint32_t i;

	memset(&a, 0, sizeof(a));
	assert_int_equal(open_dev(&a, 1, more), 0);
	for (i = 0; i < rounds; i++) {
		actor_spawn(&b, EAL);
		assert_int_equal(open_dev(&b, 2, more), 0);
		reg(&a, &mr_a.raddr, &mr_a.rkey);
		reg(&b, &mr_b.raddr, &mr_b.rkey);
		connect_two(&a, &b, BB_QPT_RC);
		post(&b, ACTOR_WRITE, 0, 64, mr_a.raddr, mr_a.rkey);
		completes(&b, BB_WC_SUCCESS);
		blank(&a);
		m.x = 0;
		m.y = ACTOR_BUF;
		m.a = 0x77;
		do_ok(&b, ACTOR_SET);
		memset(&fire, 0, sizeof(fire));
		fire.op = ACTOR_STORM;
		fire.raddr = mr_a.raddr;
		fire.rkey = mr_a.rkey;
		fire.y = i % 4 == 3 ? 64 : ACTOR_BUF;
		actor_tell(&b, &fire);
		/* The peer has started to write. */
		while (__atomic_load_n(a.buf + 63, __ATOMIC_RELAXED) != 0x77) {
			actor_run(&a);
			sched_yield();
		}
		do_ok(&a, ACTOR_DEREG);
		/* The last bytes of the peer's WRITE arrive last. */
		m.x = fire.y - 64;
		m.y = 64;
		do_ok(&a, ACTOR_QUIET);
		if (m.a != 0)
			fail_msg("round %u: a write behind bb_mr_dereg()", i);
		do_ok(&a, ACTOR_QP_DESTROY);
		actor_kill(&b);
	}
	do_ok(&a, ACTOR_CLOSE);
}

TEST(test_deregistered_memory_is_not_accessed)
{
	dereg_under_fire("", 16);
	dereg_under_fire(",shm_packets", 2);
}

/* ---- Peers that exit and return */

static struct actor c;
static uint64_t c_raddr;
static uint32_t c_rkey;

/*
 * A peer is killed repeatedly while both sides write to each other. This side's QP fails with its
 * oldest request, the others are flushed, and an event reports it. A third process is not
 * disturbed, and no state of the dead process remains.
 */
TEST(test_killed_peer_fails_the_qp_and_leaves_nothing)
{
	struct actor second = {0};
	struct bb_qp *other;
	int before = 0, round, n;

	memset(&a, 0, sizeof(a));
	actor_spawn(&c, EAL);
	assert_int_equal(open_dev(&a, 1, ""), 0);
	assert_int_equal(open_dev(&c, 3, ""), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&c, &c_raddr, &c_rkey);
	connect_two(&a, &c, BB_QPT_RC);
	other = a.qp;
	for (round = 0; round < 12; round++) {
		actor_spawn(&b, EAL);
		assert_int_equal(open_dev(&b, 2, ""), 0);
		reg(&b, &mr_b.raddr, &mr_b.rkey);
		connect_two(&a, &b, BB_QPT_RC);
		post(&a, ACTOR_WRITE, 0, 64, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
		memset(&m, 0, sizeof(m));
		m.op = ACTOR_STORM;
		m.raddr = mr_a.raddr + 4096;
		m.rkey = mr_a.rkey;
		m.y = round % 3 == 0 ? 8 : 20000;
		actor_tell(&b, &m);
		for (n = 0; n < 200 * round; n++)
			actor_run(&a);
		for (n = 0; n < 3; n++)
			post(&a, ACTOR_WRITE_IMM, 0, 30000, mr_b.raddr, mr_b.rkey);
		for (n = 0; n < round; n++)
			actor_run(&a);
		actor_kill(&b);
		completes(&a, BB_WC_RETRY_EXC_ERR);
		completes(&a, BB_WC_WR_FLUSH_ERR);
		completes(&a, BB_WC_WR_FLUSH_ERR);
		assert_int_equal(state_of(&a), BB_QP_ERR);
		do_ok(&a, ACTOR_EVENT);
		assert_int_equal(m.a, BB_EVENT_QP_FATAL);
		do_ok(&a, ACTOR_QP_DESTROY);

		second = a;
		second.qp = other;
		fill(&c, 0, 100, (uint32_t)round);
		post(&second, ACTOR_READ_VERB, 0, 100, c_raddr, c_rkey);
		completes(&second, BB_WC_SUCCESS);
		assert_int_equal(state_of(&second), BB_QP_RTS);
		for (n = 0; n < 100; n++)
			actor_run(&a);
		if (round == 0)
			before = descriptors();
		assert_int_equal(descriptors(), before);
	}
	a.qp = other;
	do_ok(&a, ACTOR_CLOSE);
	do_ok(&c, ACTOR_CLOSE);
	actor_kill(&c);
}

/* A QP without outstanding requests gets the event, too, and so does a QP that only receives. */
TEST(test_idle_qp_learns_of_a_killed_peer)
{
	start(BB_QPT_RC, "");
	post(&a, ACTOR_WRITE, 0, 64, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	m.b = 11;
	m.x = 0;
	m.y = 64;
	do_ok(&a, ACTOR_RECV);
	actor_kill(&b);
	do_ok(&a, ACTOR_EVENT);
	assert_int_equal(m.a, BB_EVENT_QP_FATAL);
	completes(&a, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&a), BB_QP_ERR);
	do_ok(&a, ACTOR_CLOSE);
}

/*
 * A datagram completes when it has left. It arrives even if its sender closes before the peer has
 * accepted the connection, as over a cable.
 */
TEST(test_datagram_arrives_from_a_device_that_closes_at_once)
{
	struct bb_qp_addr addr_a, addr_b;

	open_two(BB_QPT_UD, "", 2, &addr_a, &addr_b);
	m.addr = addr_a;
	do_ok(&b, ACTOR_CONNECT);
	m.x = 0;
	m.y = 100;
	do_ok(&b, ACTOR_RECV);
	fill(&a, 0, 60, 9);
	actor_stop(&b);
	m.addr = addr_b;
	do_ok(&a, ACTOR_CONNECT);
	post(&a, ACTOR_SEND, 0, 60, 0, 0);
	completes(&a, BB_WC_SUCCESS);
	do_ok(&a, ACTOR_CLOSE);
	OK(kill(b.pid, SIGCONT));
	completes(&b, BB_WC_SUCCESS);
	assert_int_equal(m.x, 100);
	m.x = 40;
	m.y = 60;
	do_ok(&b, ACTOR_READ);
	for (int i = 0; i < 60; i++)
		assert_int_equal(m.data[i], actor_byte(9, (uint64_t)i));
	do_ok(&b, ACTOR_CLOSE);
	actor_kill(&b);
}

/* ---- ACKs of a device that closes at once */

static const uint8_t our_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};

static const struct soft_shm *
our_port(void)
{
	return soft_dev_peek_gid(our_gid)->shm;
}

/*
 * A message completes at its sender if its receiver has it, even if the receiver ends its QP
 * before the sender has accepted the receiver's connection. @end: how the receiver ends.
 */
static void
acknowledged(enum actor_op end, const char *more, unsigned int ip_b)
{
	struct bb_qp_addr addr_a, addr_b;
	const struct soft_shm_rx *rx;

	open_two(BB_QPT_RC, more, ip_b, &addr_a, &addr_b);
	m.y = 100;
	do_ok(&a, ACTOR_RECV);
	memset(&m, 0, sizeof(m));
	m.addr = addr_a;
	do_ok(&b, ACTOR_CONNECT);
	while (our_port()->n_rx == 0 || our_port()->rx[0]->state != SOFT_SHM_UP)
		actor_run(&a);
	/* From here this device is not polled, until the message waits in its ring. */
	rx = our_port()->rx[0];
	memset(&m, 0, sizeof(m));
	m.op = ACTOR_POST;
	m.a = ACTOR_SEND;
	m.y = 60;
	actor_ask(NULL, &b, &m);
	assert_int_equal(m.ret, 0);
	while (!soft_ring_waiting(&rx->ring))
		usleep(100);
	actor_stop(&b);
	memset(&m, 0, sizeof(m));
	m.addr = addr_b;
	do_ok(&a, ACTOR_CONNECT);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(m.x, 60);
	do_ok(&a, end);
	if (end != ACTOR_CLOSE)
		do_ok(&a, ACTOR_CLOSE);
	OK(kill(b.pid, SIGCONT));
	completes(&b, BB_WC_SUCCESS);
	do_ok(&b, ACTOR_CLOSE);
	actor_kill(&b);
}

TEST(test_ack_arrives_from_a_device_that_closes_at_once)
{
	acknowledged(ACTOR_CLOSE, "", 2);
	acknowledged(ACTOR_RESET, "", 2);
	acknowledged(ACTOR_CLOSE, ",host=h", 1);
	acknowledged(ACTOR_CLOSE, ",shm_packets", 2);
}

/*
 * A message completes before its QP moves to ERR, if its receiver has it: the ACK may wait in the
 * ring of a connection that this device has not yet accepted.
 */
TEST(test_move_to_err_first_receives_the_acks)
{
	const struct bb_qp_attr attr = {.size = sizeof(attr), .state = BB_QP_ERR};
	struct bb_qp_addr addr_a, addr_b;
	struct soft_shm *shm;

	open_two(BB_QPT_RC, "", 2, &addr_a, &addr_b);
	m.y = 100;
	do_ok(&b, ACTOR_RECV);
	memset(&m, 0, sizeof(m));
	m.addr = addr_b;
	do_ok(&a, ACTOR_CONNECT);
	shm = soft_dev_peek_gid(our_gid)->shm;
	while (shm->tx[0]->state != SOFT_SHM_UP)
		actor_run(&a);
	/* From here the polls of this device do not accept connections. */
	__atomic_store_n(&shm->chores_at, UINT64_MAX, __ATOMIC_RELAXED);
	memset(&m, 0, sizeof(m));
	m.addr = addr_a;
	do_ok(&b, ACTOR_CONNECT);
	post(&a, ACTOR_SEND, 0, 60, 0, 0);
	completes(&b, BB_WC_SUCCESS);
	do_ok(&b, ACTOR_CLOSE);
	assert_int_equal(shm->n_rx, 0);
	OK(bb_qp_modify(a.qp, &attr, BB_QP_STATE));
	completes(&a, BB_WC_SUCCESS);
	do_ok(&a, ACTOR_CLOSE);
	actor_kill(&b);
}

/* ---- Counters of direct accesses by peers that are gone */

enum end {
	BY_KILL,
	BY_CLOSE,
	BY_OUR_ERROR,
};

/* Every request that completed at a peer is counted here, however the connection ends. */
static void
counted(enum end how)
{
	static const struct {
		enum actor_verb verb;
		uint32_t n;
	} all[] = {{ACTOR_WRITE, 40}, {ACTOR_READ_VERB, 20}, {ACTOR_FETCH_ADD, 10}};
	struct bb_dev_stats before, after;
	const struct soft_shm_rx *rx;
	uint32_t i, n;

	start(BB_QPT_RC, "");
	OK(bb_dev_stats(a.dev, &before));
	for (i = 0; i < 3; i++) {
		for (n = 0; n < all[i].n; n++) {
			m.z = 1;
			post(&b, all[i].verb, 0, 8, mr_a.raddr, mr_a.rkey);
			completes(&b, BB_WC_SUCCESS);
		}
	}
	rx = our_port()->rx[0];
	for (i = 0, n = 0; i < 1u << SOFT_LOG_MAX_QP; i++)
		n += rx->dir->count[i].writes != 0 && rx->dir->count[i].atomics != 0;
	assert_int_equal(n, 1);
	switch (how) {
	case BY_KILL:
		actor_kill(&b);
		break;
	case BY_CLOSE:
		do_ok(&b, ACTOR_CLOSE);
		break;
	case BY_OUR_ERROR:
		post(&a, ACTOR_WRITE, 0, 8, mr_b.raddr, mr_b.rkey ^ 1);
		completes(&a, BB_WC_REM_ACCESS_ERR);
		assert_int_equal(state_of(&a), BB_QP_ERR);
		break;
	}
	while (how != BY_OUR_ERROR && rx->state != SOFT_SHM_IDLE)
		actor_run(&a);
	OK(bb_dev_stats(a.dev, &after));
	assert_int_equal(after.rx_write - before.rx_write, all[0].n);
	assert_int_equal(after.rx_read - before.rx_read, all[1].n);
	assert_int_equal(after.rx_atomic - before.rx_atomic, all[2].n);
	/* Counted once. */
	do_ok(&a, ACTOR_QP_DESTROY);
	OK(bb_dev_stats(a.dev, &after));
	assert_int_equal(after.rx_write - before.rx_write, all[0].n);
	do_ok(&a, ACTOR_CLOSE);
	if (how != BY_KILL)
		actor_kill(&b);
}

TEST(test_direct_accesses_are_counted_when_the_peer_ends)
{
	counted(BY_KILL);
	counted(BY_CLOSE);
	counted(BY_OUR_ERROR);
}

/* Returns the number of segments shared with peers, plus 1 if peers may use @key directly. */
static uint32_t
handed_over(uint32_t key)
{
	const struct soft_shm *shm = our_port();
	uint32_t i, n = shm->dir->keys[key >> 8].seq & 1;

	for (i = 0; i < SOFT_SHM_SEGS; i++)
		n += shm->seg[i].refs;
	return n;
}

TEST(test_memory_without_remote_rights_is_not_shared)
{
	static const struct {
		uint32_t access, n;
	} mrs[] = {
		{0, 0},
		{BB_ACCESS_LOCAL_WRITE, 0},
		{BB_ACCESS_REMOTE_READ, 2},
		{BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, 2},
		{BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_ATOMIC, 2},
	};
	uint32_t i;

	memset(&a, 0, sizeof(a));
	assert_int_equal(open_dev(&a, 1, ""), 0);
	for (i = 0; i < sizeof(mrs) / sizeof(mrs[0]); i++) {
		memset(&m, 0, sizeof(m));
		m.y = ACTOR_BUF;
		m.a = mrs[i].access;
		do_ok(&a, ACTOR_MR);
		assert_int_equal(handed_over(a.mr->lkey), mrs[i].n);
		mr_a.rkey = a.mr->lkey;
		do_ok(&a, ACTOR_DEREG);
		assert_int_equal(handed_over(mr_a.rkey), 0);
	}
	do_ok(&a, ACTOR_CLOSE);
}

/* Another user is refused in both directions, unless the options name it. */
TEST(test_other_user_is_refused_unless_named)
{
	static const uint8_t own_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
	char fabric[SOFT_SHM_NAME];
	pid_t child;
	int status, n;

	if (geteuid() != 0)
		skip();
	snprintf(fabric, sizeof(fabric), "test%d", (int)getpid());
	for (n = 0; n < 2; n++) {
		memset(&a, 0, sizeof(a));
		assert_int_equal(open_dev(&a, 1, n == 0 ? "" : ",shm_uid=65534"), 0);
		child = fork();
		if (child == 0) {
			int fds[SOFT_SHM_MAX_FDS], sock, i, ret = 0, mem[2];
			struct soft_shm_msg msg;
			const char *why;
			void *map;

			if (setresuid(65534, 65534, 65534) != 0 ||
			    soft_shm_connect(fabric, own_gid, 0, &sock) != 0 ||
			    soft_shm_create(NULL, "d", sizeof(struct soft_shm_dir), &mem[0],
					    &map) != 0 ||
			    soft_shm_create(NULL, "r", SOFT_RING_SIZE, &mem[1], &map) != 0)
				_exit(1);
			soft_shm_msg_init(&msg, SOFT_SHM_HELLO);
			msg.u.hello.n_gids = 1;
			/* The device may answer before the caller sends anything. */
			ret = soft_shm_send(sock, &msg, mem, 2);
			if (ret != 0 && ret != -EPIPE)
				_exit(2);
			ret = 0;
			for (i = 0; i < ACTOR_WAIT_S * 100 && ret == 0; i++) {
				ret = soft_shm_recv(sock, true, &msg, fds, &why);
				usleep(10000);
			}
			_exit(ret == 1 ? 10 + msg.type : 3);
		}
		while (waitpid(child, &status, WNOHANG) == 0)
			actor_run(&a);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status),
				 10 + (n == 0 ? SOFT_SHM_REFUSED : SOFT_SHM_WELCOME));
		do_ok(&a, ACTOR_CLOSE);
	}
}

/* Acts as another user: connects without end, and sends empty messages with descriptors. */
static int
flood(const char *fabric, uint32_t times)
{
	static const uint8_t own_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
	int fds[2] = {0, 1}, sock, left;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = {.room = {0}};
	struct msghdr msg = {.msg_control = control.room, .msg_controllen = sizeof(control.room)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(head), fds, sizeof(fds));
	for (left = ACTOR_WAIT_S * 1000; times != 0 && left != 0; left--) {
		if (soft_shm_connect(fabric, own_gid, 0, &sock) != 0) {
			usleep(1000); /* the connections wait to be accepted */
			continue;
		}
		/*
		 * The device may have refused and closed the connection before the message is
		 * sent.
		 */
		if (sendmsg(sock, &msg, MSG_NOSIGNAL) != 0 && errno != EPIPE)
			return 2;
		close(sock);
		times--;
	}
	return times == 0 ? 0 : 3;
}

/*
 * Another user that connects repeatedly uses up no descriptors, and the log does not have a line
 * for each time.
 */
TEST(test_calls_of_another_user_use_up_no_descriptors)
{
	char fabric[SOFT_SHM_NAME], line[256];
	int before, status, lines = 0;
	uint64_t began;
	FILE *log;
	pid_t child;

	if (geteuid() != 0)
		skip();
	snprintf(fabric, sizeof(fabric), "test%d", (int)getpid());
	memset(&a, 0, sizeof(a));
	assert_int_equal(open_dev(&a, 1, ""), 0);
	log = tmpfile();
	assert_non_null(log);
	assert_int_equal(rte_openlog_stream(log), 0);
	before = descriptors();
	began = rte_get_timer_cycles();
	child = fork();
	if (child == 0)
		_exit(setresuid(65534, 65534, 65534) != 0 ? 1 : flood(fabric, 200));
	while (waitpid(child, &status, WNOHANG) == 0)
		actor_run(&a);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* Includes the last connections. */
	usleep(10000);
	for (status = 0; status < 1000; status++)
		actor_run(&a);
	assert_int_equal(descriptors(), before);
	rte_openlog_stream(NULL);
	rewind(log);
	while (fgets(line, sizeof(line), log) != NULL)
		lines += strstr(line, "not trusted") != NULL || strstr(line, "shm_uid") != NULL;
	assert_true(lines >= 1);
	/* Two lines a second. */
	assert_true((uint64_t)lines <=
		    2 + 2 * (rte_get_timer_cycles() - began) / rte_get_timer_hz());
	fclose(log);
	do_ok(&a, ACTOR_CLOSE);
}

/* An address belongs to one process until that exits; an unused address has no device. */
TEST(test_address_belongs_to_one_process)
{
	struct bb_qp_addr none = {
		.qpn = 1, .mtu = 4096, .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 77}};

	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&b, 2, ""), 0);
	assert_int_equal(open_dev(&a, 2, ""), -EADDRINUSE);
	assert_int_equal(open_dev(&a, 1, ",ip=192.0.2.2/24"), -EADDRINUSE);
	assert_int_equal(open_dev(&a, 1, ",ip=2001:db8::1/64"), 0);
	memset(&m, 0, sizeof(m));
	m.a = BB_QPT_RC;
	do_ok(&a, ACTOR_QP);
	m.addr = none;
	assert_int_equal(ask(&a, ACTOR_CONNECT), -EHOSTUNREACH);
	do_ok(&a, ACTOR_CLOSE);
	actor_kill(&b);
	assert_int_equal(open_dev(&a, 2, ""), 0);
	do_ok(&a, ACTOR_CLOSE);
}

TEST(test_unused_addresses_take_no_room)
{
	struct bb_path path = {.sgid_index = 1, .port = 1};
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 198, 51, 100, 0};
	FILE *log = tmpfile();
	struct bb_ah *ah;
	uint32_t i;

	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&a, 1, ""), 0);
	assert_int_equal(open_dev(&b, 2, ""), 0);
	/* The device logs a line for each, which is too much here. */
	assert_non_null(log);
	rte_openlog_stream(log);
	for (i = 0; i < SOFT_SHM_PEERS + 10; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		memcpy(path.dgid, gid, 16);
		assert_int_equal(bb_ah_create(a.pd, &path, &ah), -EHOSTUNREACH);
	}
	rte_openlog_stream(NULL);
	fclose(log);
	memcpy(path.dgid, gid, 12);
	memcpy(path.dgid + 12, (const uint8_t[]){192, 0, 2, 2}, 4);
	OK(bb_ah_create(a.pd, &path, &ah));
	bb_ah_destroy(ah);
	do_ok(&a, ACTOR_CLOSE);
	actor_kill(&b);
}

int
main(int argc, char **argv)
{
	return shm_main(argc, argv, __FILE__);
}
