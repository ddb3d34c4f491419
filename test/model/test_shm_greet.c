/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Handshakes of the shared-memory port with somebody who does not keep to them: the test is the
 * other side, on the socket, and says what it likes. Whatever it says, the connection ends, what it
 * has handed over is let go, and the next one that greets as it should is taken.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fakes/descriptors.h"
#include "mlx5_env.h"
#include "soft_ctl.h"
#include "soft_shm.h"

#define SECOND (rte_get_tsc_hz())

static const uint8_t ours[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
static const uint8_t theirs[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};

static char fabric[32];
static struct bb_dev *dev;
static struct soft_shm *shm;

/* The port's chores as they are @s seconds from now. */
static void
chores(uint64_t s)
{
	soft_shm_chores(shm, rte_rdtsc() + s * SECOND);
}

/* What a sender shares: its directory and its ring. */
static void
share(int fds[2])
{
	void *map;

	assert_int_equal(soft_shm_create("t-dir", sizeof(struct soft_shm_dir), &fds[0], &map), 0);
	munmap(map, sizeof(struct soft_shm_dir));
	assert_int_equal(soft_shm_create("t-ring", SOFT_RING_SIZE, &fds[1], &map), 0);
	munmap(map, SOFT_RING_SIZE);
}

/* Say it, with the first @n of @fds, which are closed; and the device has a look. */
static void
say(int sock, const struct soft_shm_msg *m, const int fds[2], uint32_t n)
{
	assert_int_equal(soft_shm_send(sock, m, fds, n), 0);
	close(fds[0]);
	close(fds[1]);
	chores(0);
}

static struct soft_shm_msg
hello(void)
{
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_HELLO);
	m.u.hello.n_gids = 1;
	memcpy(m.u.hello.gids[0], theirs, 16);
	return m;
}

/* The next message on @sock; 0: it has not said anything; -ECONNRESET: it has hung up. */
static int
heard(int sock, bool from_listener, struct soft_shm_msg *m)
{
	int fds[SOFT_SHM_MAX_FDS], ret, i;
	const char *why = NULL;

	ret = soft_shm_recv(sock, from_listener, m, fds, &why);
	for (i = 0; ret == 1 && i < SOFT_SHM_MAX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}

static int
call(void)
{
	int sock;

	assert_int_equal(soft_shm_connect(fabric, ours, &sock), 0);
	return sock;
}

/* One that greets as it should is taken, in the slot that is free. */
static int
welcome(uint32_t slot)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock = call();

	share(fds);
	say(sock, &m, fds, 2);
	assert_int_equal(heard(sock, true, &m), 1);
	assert_int_equal(m.type, SOFT_SHM_WELCOME);
	assert_int_equal(m.u.welcome.slot, slot);
	assert_int_equal(shm->rx[slot]->state, SOFT_SHM_UP);
	assert_int_equal(shm->rx[slot]->n_gids, 1);
	return sock;
}

/* @sock has been hung up, whatever was said before, and the slot is free. */
static void
over(int sock)
{
	struct soft_shm_msg m;
	int ret;

	while ((ret = heard(sock, true, &m)) == 1)
		;
	assert_int_equal(ret, -ECONNRESET);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
	close(sock);
}

static void
test_twice(void **st)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock, before, round;

	(void)st;
	before = descriptors();
	for (round = 0; round < 3; round++) {
		sock = welcome(0);
		share(fds);
		say(sock, &m, fds, 2);
		over(sock);
		assert_int_equal(descriptors(), before);
	}
}

/* It connects and says nothing: it has its time, and no more. */
static void
test_silent(void **st)
{
	struct soft_shm_msg m;
	int sock = call();

	(void)st;
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_GREETING);
	chores(SOFT_SHM_PATIENCE_S - 1);
	assert_int_equal(heard(sock, true, &m), 0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_GREETING);
	chores(SOFT_SHM_PATIENCE_S + 1);
	over(sock);
	close(welcome(0));
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
}

/* What it says is no greeting. One of another version learns that it is refused, and why. */
static void
test_nonsense(void **st)
{
	struct soft_shm_msg m;
	int fds[2], sock, what, before = descriptors();

	(void)st;
	for (what = 0; what < 5; what++) {
		m = hello();
		share(fds);
		sock = call();
		switch (what) {
		case 0:
			m.version++;
			break;
		case 1:
			m.magic++;
			break;
		case 2:
			m.u.hello.n_gids = SOFT_SHM_GIDS + 1;
			break;
		case 3:
			soft_shm_msg_init(&m, SOFT_SHM_WELCOME);
			break;
		case 4:
			m.u.hello.n_gids = 0;
			break;
		}
		say(sock, &m, fds, 2);
		assert_int_equal(heard(sock, true, &m), 1);
		assert_int_equal(m.type, SOFT_SHM_REFUSED);
		assert_int_equal(m.u.refused.why, SOFT_SHM_REFUSED_VERSION);
		over(sock);
		assert_int_equal(descriptors(), before);
	}
}

/* What it shares is not what it should be: no memory, too little of it, some that it can shrink. */
static void
test_shares(void **st)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock, what, other, before = descriptors();

	(void)st;
	for (what = 0; what < 6; what++) {
		share(fds);
		switch (what / 2) {
		case 0:
			other = open("/dev/null", O_RDWR | O_CLOEXEC);
			break;
		case 1:
			other = memfd_create("t-small", MFD_CLOEXEC);
			assert_int_equal(ftruncate(other, 4096), 0);
			break;
		default:
			other = memfd_create("t-unsealed", MFD_CLOEXEC);
			assert_int_equal(ftruncate(other, 1 << 24), 0);
		}
		assert_true(other >= 0);
		close(fds[what % 2]);
		fds[what % 2] = other;
		sock = call();
		say(sock, &m, fds, 2);
		over(sock);
		assert_int_equal(descriptors(), before);
	}
	sock = welcome(0);
	close(sock);
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
}

/* ---- The other direction: whom the device calls */

static int listener;

/* The device calls, and has said HELLO. */
static struct soft_shm_tx *
called(int *sock)
{
	struct soft_shm_msg m;
	struct soft_shm_tx *tx;

	assert_int_equal(soft_shm_reach(soft_dev_peek_gid(ours), theirs, false), 0);
	assert_int_equal(soft_shm_accept(listener, sock), 0);
	assert_int_equal(heard(*sock, false, &m), 1);
	assert_int_equal(m.type, SOFT_SHM_HELLO);
	assert_int_equal(m.u.hello.n_gids, 2); /* link-local, and ours */
	assert_memory_equal(m.u.hello.gids[1], ours, 16);
	tx = soft_shm_find(shm, theirs);
	assert_non_null(tx);
	assert_int_equal(tx->state, SOFT_SHM_GREETING);
	return tx;
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

/* The device has hung up. Only who was up counts as dead. */
static void
dropped(const struct soft_shm_tx *tx, int sock, uint32_t deaths)
{
	struct pollfd p = {.fd = sock};

	assert_int_equal(tx->state, SOFT_SHM_IDLE);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true((p.revents & POLLHUP) != 0);
	close(sock);
	assert_int_equal(tx->deaths, deaths);
	assert_int_equal(shm->deaths, deaths);
}

static void
test_listeners(void **st)
{
	struct soft_shm_tx *tx;
	struct soft_shm_msg m;
	int sock, before;
	pid_t pid;

	(void)st;
	assert_int_equal(soft_shm_listen(fabric, theirs, &listener, &pid), 0);
	before = descriptors();
	/* Its word would be past the end of the directory. */
	tx = called(&sock);
	answer(sock, SOFT_SHM_PEERS);
	dropped(tx, sock, 0);
	tx = called(&sock);
	answer(sock, UINT32_MAX);
	dropped(tx, sock, 0);
	/* The last there is; and once more. */
	tx = called(&sock);
	answer(sock, SOFT_SHM_PEERS - 1);
	assert_int_equal(tx->state, SOFT_SHM_UP);
	assert_ptr_equal(tx->ring.head, &tx->dir->head[SOFT_SHM_PEERS - 1].v);
	answer(sock, 0);
	dropped(tx, sock, 1);
	/* It greets where it should answer. */
	tx = called(&sock);
	m = hello();
	assert_int_equal(soft_shm_send(sock, &m, (int[]){0, 0}, 2), 0);
	chores(0);
	dropped(tx, sock, 1);
	/* It says no; it does not answer; it is gone before it has. */
	tx = called(&sock);
	soft_shm_msg_init(&m, SOFT_SHM_REFUSED);
	m.u.refused.why = SOFT_SHM_REFUSED_FULL;
	assert_int_equal(soft_shm_send(sock, &m, NULL, 0), 0);
	chores(0);
	dropped(tx, sock, 1);
	tx = called(&sock);
	chores(SOFT_SHM_PATIENCE_S - 1);
	assert_int_equal(tx->state, SOFT_SHM_GREETING);
	chores(SOFT_SHM_PATIENCE_S + 1);
	dropped(tx, sock, 1);
	tx = called(&sock);
	close(sock);
	chores(0);
	assert_int_equal(tx->state, SOFT_SHM_IDLE);
	assert_int_equal(tx->deaths, 1);
	assert_int_equal(descriptors(), before);
	close(listener);
}

/* ---- Both directions: a process, which dies in two steps */

/*
 * The process: calls, answers to a call, hangs up on one of the two at the first byte on @step, and
 * is gone at the next.
 */
static void __rte_noreturn
visitor(int step, bool hang_up_first)
{
	struct soft_shm_msg m = hello();
	int fds[2], caller, callee = -1;
	pid_t pid;
	char c = 0;

	share(fds);
	if (soft_shm_listen(fabric, theirs, &listener, &pid) != 0 ||
	    soft_shm_connect(fabric, ours, &caller) != 0 ||
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

/* One line of its death, also if somebody else has its slot before its other half is missed. */
static void
test_gone_once(void **st)
{
	char *text = NULL, line[64], *at, c = 0;
	int step[2], sock, first, status;
	const struct soft_shm_tx *tx;
	size_t len;
	FILE *log;
	pid_t pid;

	(void)st;
	rte_log_set_global_level(RTE_LOG_NOTICE);
	for (first = 0; first < 2; first++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, step), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			visitor(step[1], first != 0);
		close(step[1]);
		log = open_memstream(&text, &len);
		assert_int_equal(rte_openlog_stream(log), 0);
		assert_int_equal(read(step[0], &c, 1), 1);
		assert_int_equal(soft_shm_reach(soft_dev_peek_gid(ours), theirs, false), 0);
		assert_int_equal(read(step[0], &c, 1), 1);
		chores(0);
		tx = soft_shm_find(shm, theirs);
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
		rte_openlog_stream(NULL);
		fclose(log);
		snprintf(line, sizeof(line), "process %d: it is gone", (int)pid);
		at = strstr(text, line);
		assert_non_null(at);
		assert_null(strstr(at + 1, line));
		free(text);
		close(sock);
		close(step[0]);
		chores(0);
	}
	rte_log_set_global_level(RTE_LOG_WARNING);
}

static int
open_port(void **st)
{
	char spec[96];

	(void)st;
	snprintf(fabric, sizeof(fabric), "greet%d", (int)getpid());
	snprintf(spec, sizeof(spec), "soft0,shm=%s,ip=192.0.2.1/24", fabric);
	assert_int_equal(bb_dev_open(spec, &dev), 0);
	shm = soft_dev_peek_gid(ours)->shm;
	return 0;
}

static int
close_port(void **st)
{
	(void)st;
	return bb_dev_close(dev);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_twice, open_port, close_port),
		cmocka_unit_test_setup_teardown(test_silent, open_port, close_port),
		cmocka_unit_test_setup_teardown(test_nonsense, open_port, close_port),
		cmocka_unit_test_setup_teardown(test_shares, open_port, close_port),
		cmocka_unit_test_setup_teardown(test_listeners, open_port, close_port),
		cmocka_unit_test_setup_teardown(test_gone_once, open_port, close_port),
	};
	int ret = env_eal_init("shm_greet");

	return ret != 0 ? ret : cmocka_run_group_tests(tests, NULL, NULL);
}
