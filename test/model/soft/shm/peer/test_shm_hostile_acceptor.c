/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An acceptor that violates the handshake of the shared-memory port, does not trust the caller,
 * or dies. The connection ends, and one log line names the process and the reason.
 */
#define _GNU_SOURCE /* memfd_create(), mincore() */
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "shm_hand.h"

/* Redirects the log, notices included, to *text, which the caller frees. */
static FILE *
log_begin(char **text, size_t *len)
{
	FILE *log = open_memstream(text, len);

	assert_non_null(log);
	assert_int_equal(rte_openlog_stream(log), 0);
	rte_log_set_global_level(RTE_LOG_NOTICE);
	return log;
}

static void
log_end(FILE *log)
{
	rte_log_set_global_level(RTE_LOG_WARNING);
	rte_openlog_stream(NULL);
	fclose(log);
}

static int listener;

/* Waits until the device has connected and sent HELLO. */
static struct soft_shm_tx *
called(int *sock)
{
	struct soft_shm_msg m;
	struct soft_shm_tx *tx;

	assert_int_equal(soft_shm_reach(soft_dev_peek_gid(own_gid), peer_gid, SOFT_SHM_ANY, false),
			 0);
	assert_int_equal(soft_shm_accept(listener, sock), 0);
	assert_int_equal(heard(*sock, false, &m), 1);
	assert_int_equal(m.type, SOFT_SHM_HELLO);
	assert_int_equal(m.u.hello.n_gids, 2); /* the link-local GID and this device's address */
	assert_memory_equal(m.u.hello.gids[1], own_gid, 16);
	tx = soft_shm_find(shm, peer_gid, SOFT_SHM_ANY);
	assert_non_null(tx);
	assert_int_equal(tx->state, SOFT_SHM_HANDSHAKE);
	return tx;
}

/* When the acceptor refuses: before the device sends HELLO, or without reading HELLO. */
static enum {
	HEARS,
	BEFORE,
	UNREAD
} hangs_up;

int __real_soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n);
int __wrap_soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n);

int
__wrap_soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n)
{
	struct soft_shm_msg no;
	int ret = 0, callee;

	if (hangs_up == HEARS)
		return __real_soft_shm_send(sock, m, fds, n);
	assert_int_equal(soft_shm_accept(listener, &callee), 0);
	if (hangs_up == UNREAD)
		ret = __real_soft_shm_send(sock, m, fds, n);
	soft_shm_msg_init(&no, SOFT_SHM_REFUSED);
	no.u.refused.why = SOFT_SHM_REFUSED_USER;
	assert_int_equal(__real_soft_shm_send(callee, &no, NULL, 0), 0);
	close(callee);
	return hangs_up == UNREAD ? ret : __real_soft_shm_send(sock, m, fds, n);
}

#define T(name) TEST_WITH(open_port, close_port, name)

/* The refused device learns the reason in both cases. */
T(test_refused_device_learns_the_reason)
{
	int before = descriptors();
	char *text;
	size_t len;
	FILE *log;
	pid_t pid;

	for (hangs_up = BEFORE; hangs_up <= UNREAD; hangs_up++) {
		assert_int_equal(soft_shm_listen(fabric, peer_gid, 0, &listener, &pid), 0);
		log = log_begin(&text, &len);
		assert_int_equal(
			soft_shm_reach(soft_dev_peek_gid(own_gid), peer_gid, SOFT_SHM_ANY, true),
			0);
		chores(0);
		log_end(log);
		assert_non_null(strstr(text, "it does not trust the user of this process"));
		assert_int_equal(soft_shm_find(shm, peer_gid, SOFT_SHM_ANY)->state, SOFT_SHM_IDLE);
		free(text);
		close(listener);
	}
	hangs_up = HEARS;
	assert_int_equal(descriptors(), before);
}

static void
answer(int sock, uint32_t slot)
{
	struct soft_shm_msg m;
	int fds[2];

	share(fds);
	soft_shm_msg_init(&m, SOFT_SHM_WELCOME);
	m.u.welcome.slot = slot;
	say(sock, &m, fds, 1);
}

/* The device has closed the connection. Only an established peer counts as dead. */
static void
dropped(const struct soft_shm_tx *tx, int sock, uint32_t deaths)
{
	struct pollfd p = {.fd = sock};

	assert_int_equal(tx->state, SOFT_SHM_IDLE);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true((p.revents & POLLHUP) != 0);
	close(sock);
	assert_int_equal(tx->deaths, deaths);
	/* Each peer that was lost had been connected. */
	assert_int_equal(shm->changes, 2 * deaths);
}

T(test_answer_with_a_bad_slot_is_dropped)
{
	struct soft_shm_tx *tx;
	struct soft_shm_msg m;
	uint64_t begin;
	int sock, before;
	pid_t pid;

	assert_int_equal(soft_shm_listen(fabric, peer_gid, 0, &listener, &pid), 0);
	before = descriptors();
	/* The epoch's slot is past the end of the directory. */
	tx = called(&sock);
	answer(sock, SOFT_SHM_PEERS);
	dropped(tx, sock, 0);
	tx = called(&sock);
	answer(sock, UINT32_MAX);
	dropped(tx, sock, 0);
	/* The last valid slot; and the same slot again. */
	tx = called(&sock);
	answer(sock, SOFT_SHM_PEERS - 1);
	assert_int_equal(tx->state, SOFT_SHM_UP);
	assert_ptr_equal(tx->ring.head, &tx->dir->head[SOFT_SHM_PEERS - 1].v);
	answer(sock, 0);
	dropped(tx, sock, 1);
	/* The acceptor sends HELLO instead of an answer. */
	tx = called(&sock);
	m = hello();
	assert_int_equal(soft_shm_send(sock, &m, (int[]){0, 0}, 2), 0);
	chores(0);
	dropped(tx, sock, 1);
	/* The acceptor refuses; does not answer; closes before it answers. */
	tx = called(&sock);
	soft_shm_msg_init(&m, SOFT_SHM_REFUSED);
	m.u.refused.why = SOFT_SHM_REFUSED_FULL;
	assert_int_equal(soft_shm_send(sock, &m, NULL, 0), 0);
	chores(0);
	dropped(tx, sock, 1);
	begin = rte_rdtsc();
	tx = called(&sock);
	chores_before(tx->next_attempt, begin, rte_rdtsc());
	assert_int_equal(tx->state, SOFT_SHM_HANDSHAKE);
	soft_shm_chores(shm, tx->next_attempt);
	dropped(tx, sock, 1);
	tx = called(&sock);
	close(sock);
	chores(0);
	assert_int_equal(tx->state, SOFT_SHM_IDLE);
	assert_int_equal(tx->deaths, 1);
	assert_int_equal(descriptors(), before);
	close(listener);
}

/*
 * Memory that a process shared is dropped with the process: the next process at its address has
 * other memory.
 */
T(test_shared_memory_is_dropped_with_its_process)
{
	struct soft_shm_tx *tx;
	struct soft_shm_msg m;
	unsigned char there;
	int sock, fd, round;
	pid_t pid;
	void *base;

	assert_int_equal(soft_shm_listen(fabric, peer_gid, 0, &listener, &pid), 0);
	for (round = 0; round < 2; round++) {
		tx = called(&sock);
		answer(sock, 0);
		assert_null(tx->win[1]);
		fd = memfd_create("t-memory", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, 8192), 0);
		soft_shm_msg_init(&m, SOFT_SHM_SEGMENT);
		m.u.segment.slot = 1;
		m.u.segment.gen = 7;
		m.u.segment.off = 4096;
		m.u.segment.len = 4096;
		assert_int_equal(soft_shm_send(sock, &m, &fd, 1), 0);
		close(fd);
		chores(0);
		assert_non_null(tx->win[1]);
		assert_int_equal(tx->win[1]->gen, 7);
		base = tx->win[1]->base;
		assert_int_equal(mincore(base, 4096, &there), 0);
		close(sock);
		chores(0);
		assert_int_equal(tx->state, SOFT_SHM_IDLE);
		assert_null(tx->win[1]);
		assert_int_equal(mincore(base, 4096, &there), -1);
	}
	close(listener);
}

/* ---- Both directions: a process that dies in two steps */

/*
 * A process that connects, accepts a connection, closes one of the two at the first byte on
 * @step, and exits at the next byte.
 */
static void __rte_noreturn
visitor(int step, bool hang_up_first)
{
	struct soft_shm_msg m = hello();
	int fds[2], caller, callee = -1;
	pid_t pid;
	char c = 0;

	share(fds);
	if (soft_shm_listen(fabric, peer_gid, 0, &listener, &pid) != 0 ||
	    soft_shm_connect(fabric, own_gid, 0, &caller) != 0 ||
	    soft_shm_send(caller, &m, fds, 2) != 0 || write(step, &c, 1) != 1)
		_exit(1);
	while (soft_shm_accept(listener, &callee) != 0)
		usleep(1000);
	soft_shm_msg_init(&m, SOFT_SHM_WELCOME);
	if (soft_shm_send(callee, &m, fds, 1) != 0 || write(step, &c, 1) != 1 ||
	    read(step, &c, 1) != 1)
		_exit(1);
	close(hang_up_first ? caller : callee);
	_exit(write(step, &c, 1) != 1 || read(step, &c, 1) != 1);
}

/*
 * The death is logged once, even if another process has its slot before the second connection's
 * end is noticed.
 */
T(test_death_of_a_peer_is_logged_once)
{
	char *text = NULL, line[64], *at, c = 0;
	int step[2], sock, first, status;
	const struct soft_shm_tx *tx;
	size_t len;
	FILE *log;
	pid_t pid;

	for (first = 0; first < 2; first++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, step), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			visitor(step[1], first != 0);
		close(step[1]);
		log = log_begin(&text, &len);
		assert_int_equal(read(step[0], &c, 1), 1);
		assert_int_equal(
			soft_shm_reach(soft_dev_peek_gid(own_gid), peer_gid, SOFT_SHM_ANY, false),
			0);
		assert_int_equal(read(step[0], &c, 1), 1);
		chores(0);
		tx = soft_shm_find(shm, peer_gid, SOFT_SHM_ANY);
		assert_int_equal(tx->state, SOFT_SHM_UP);
		assert_int_equal(shm->rx[0]->state, SOFT_SHM_UP);
		assert_int_equal(shm->rx[0]->pid, pid);
		assert_int_equal(write(step[0], &c, 1), 1);
		assert_int_equal(read(step[0], &c, 1), 1);
		chores(0);
		assert_int_equal(tx->state, first ? SOFT_SHM_UP : SOFT_SHM_IDLE);
		sock = welcome(first ? 0 : 1);
		assert_int_equal(write(step[0], &c, 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		chores(0);
		assert_int_equal(tx->state, SOFT_SHM_IDLE);
		log_end(log);
		snprintf(line, sizeof(line), "process %d died", (int)pid);
		at = strstr(text, line);
		assert_non_null(at);
		assert_null(strstr(at + 1, line));
		free(text);
		close(sock);
		close(step[0]);
		chores(0);
	}
}

/* A process that looks for the owner of an address connects, and ends before HELLO. */
T(test_process_that_only_connects_is_not_reported_dead)
{
	char *text = NULL;
	size_t len;
	FILE *log = log_begin(&text, &len);
	int sock;

	assert_int_equal(soft_shm_connect(fabric, own_gid, 0, &sock), 0);
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_HANDSHAKE);
	close(sock);
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
	log_end(log);
	assert_string_equal(text, "");
	free(text);
}

/* ---- A full queue of connections */

/*
 * Connects to a listener until its queue is full; closed connections stay in the queue. Returns
 * their number.
 */
static uint32_t
fill_queue(const uint8_t gid[16], uint32_t max)
{
	uint32_t n = 0;
	int sock;

	for (; n < max && soft_shm_connect(fabric, gid, 0, &sock) == 0; n++)
		close(sock);
	return n;
}

/* The peer's queue is full: the device connects again later, and is accepted. */
T(test_full_queue_is_asked_again)
{
	enum {
		MAX = 8192
	};
	struct soft_dev *dev_of = soft_dev_peek_gid(own_gid);
	const struct soft_shm_tx *tx;
	int callee, status;
	uint8_t mac[6];
	uint32_t i, n;
	pid_t pid;

	assert_int_equal(soft_shm_listen(fabric, peer_gid, 0, &listener, &pid), 0);
	n = fill_queue(peer_gid, MAX);
	/* The queue has room for a burst of processes that start together. */
	assert_in_range(n, 256, MAX - 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(soft_shm_reach(dev_of, peer_gid, SOFT_SHM_ANY, false), -EAGAIN);
	assert_null(soft_shm_find(shm, peer_gid, SOFT_SHM_ANY));
	/* A QP in RTR refers to the address, and connects again soon. */
	assert_int_equal(soft_shm_reach(dev_of, peer_gid, SOFT_SHM_ANY, true), -EAGAIN);
	tx = soft_shm_find(shm, peer_gid, SOFT_SHM_ANY);
	assert_int_equal(tx->state, SOFT_SHM_IDLE);
	assert_true(tx->next_attempt < rte_rdtsc() + SECOND / 200);
	/* The peer accepts one connection a while after the call has begun to wait. */
	pid = fork();
	if (pid == 0) {
		usleep(50000);
		_exit(soft_shm_accept(listener, &callee) != 0);
	}
	assert_int_equal(soft_shm_resolve(dev_of, peer_gid, mac), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(tx->state, SOFT_SHM_HANDSHAKE);
	close(listener);
	chores(0);
}

/* Untrusted users are rejected faster than peers are accepted. */
T(test_strangers_leave_the_queue_quickly)
{
	enum {
		STRANGERS = 200
	};
	int ready[2], status, sock;
	uint32_t looks;
	pid_t pid;
	char c = 0;

	if (geteuid() != 0) {
		print_message("skipped: only root can be another user\n");
		skip();
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setuid(65534) != 0 || fill_queue(own_gid, STRANGERS) != STRANGERS ||
		    write(ready[1], &c, 1) != 1)
			_exit(1);
		close(ready[0]);
		/* The children stay until the parent is done. */
		_exit(read(ready[1], &c, 1) != 1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	sock = call();
	for (looks = 0; shm->n_rx == 0 || shm->rx[0]->state != SOFT_SHM_HANDSHAKE; looks++) {
		assert_true(looks < STRANGERS / 16 / 2);
		chores(0);
	}
	assert_int_equal(write(ready[0], &c, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(sock);
	close(ready[0]);
	close(ready[1]);
	chores(0);
}

/* A peer that closes its device says so, on either connection: no error is logged. */
T(test_a_peer_that_closes_its_device_is_not_reported_dead)
{
	char *text, line[64];
	struct soft_shm_msg m;
	int sock, ret;
	size_t len;
	FILE *log;

	rte_log_set_level((uint32_t)soft_logtype, RTE_LOG_INFO);
	log = log_begin(&text, &len);
	rte_log_set_global_level(RTE_LOG_INFO);
	sock = welcome(0);
	soft_shm_msg_init(&m, SOFT_SHM_BYE);
	assert_int_equal(soft_shm_send(sock, &m, NULL, 0), 0);
	close(sock);
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
	log_end(log);
	snprintf(line, sizeof(line), "process %d closed its device", (int)getpid());
	assert_non_null(strstr(text, line));
	assert_null(strstr(text, "died"));
	free(text);
	/* This device says so to its peers, too. */
	sock = welcome(0);
	close_port(NULL);
	do {
		ret = heard(sock, true, &m);
	} while (ret == 1 && m.type != SOFT_SHM_BYE);
	assert_int_equal(ret, 1);
	close(sock);
	open_port(NULL);
	rte_log_set_level((uint32_t)soft_logtype, RTE_LOG_NOTICE);
}

TEST_MAIN(env_eal_init("shm_hostile_acceptor"))
