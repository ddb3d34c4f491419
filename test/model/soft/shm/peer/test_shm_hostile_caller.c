/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A caller that violates the handshake of the shared-memory port. Whatever it sends, the
 * connection ends, its shared memory is released, and the next correct caller is accepted.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "../../../../fakes/log_catch.h"
#include "shm_hand.h"

/* Checks that @sock was closed, whatever was sent before, and that the slot is free. */
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

#define T(name) TEST_WITH(open_port, close_port, name)

T(test_memory_shared_twice_closes_the_caller)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock, before, round;

	before = descriptors();
	for (round = 0; round < 3; round++) {
		sock = welcome(0);
		share(fds);
		say(sock, &m, fds, 2);
		over(sock);
		assert_int_equal(descriptors(), before);
	}
}

/* The caller connects and sends nothing: it is closed after the time limit. */
T(test_silent_caller_is_closed)
{
	struct soft_shm_msg m;
	uint64_t begin = rte_rdtsc();
	int sock = call();

	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_HANDSHAKE);
	chores_before(shm->rx[0]->give_up, begin, rte_rdtsc());
	assert_int_equal(heard(sock, true, &m), 0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_HANDSHAKE);
	soft_shm_chores(shm, shm->rx[0]->give_up);
	over(sock);
	close(welcome(0));
	chores(0);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_IDLE);
}

/*
 * The process of the device has no free descriptor. The caller stays in the queue of the listening
 * socket, which must not end the sleeps of the device's thread.
 */
T(test_caller_waits_until_a_descriptor_is_free)
{
	const struct soft_shm_msg m = hello();
	struct pollfd port = {.fd = shm->epoll, .events = POLLIN};
	struct soft_shm_msg answer;
	int fds[2], sock = call(), round;

	share(fds);
	assert_int_equal(soft_shm_send(sock, &m, fds, 2), 0);
	log_begin();
	descriptors_leave(0);
	assert_int_equal(poll(&port, 1, 0), 1);
	for (round = 0; round < 3; round++) {
		chores((uint64_t)round);
		assert_int_equal(poll(&port, 1, 0), 0);
	}
	descriptors_restore();
	assert_int_equal(log_count("accept4() failed: Too many open files"), 1);
	assert_int_equal(shm->n_rx, 0);
	chores(3);
	assert_int_equal(heard(sock, true, &answer), 1);
	assert_int_equal(answer.type, SOFT_SHM_WELCOME);
	assert_int_equal(shm->rx[0]->state, SOFT_SHM_UP);
	close(fds[0]);
	close(fds[1]);
	close(sock);
	chores(3);
}

/* The message is not HELLO. A caller of another version is refused with a reason. */
T(test_message_other_than_hello_closes_the_caller)
{
	struct soft_shm_msg m;
	int fds[2], sock, what, before = descriptors();

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

/* The shared descriptors are wrong: no memory, too small, or memory that the caller can shrink. */
T(test_wrong_shared_descriptors_close_the_caller)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock, what, other, before = descriptors();

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

/* ---- A caller that reads slowly */

/* Reads the messages that wait on @sock. Returns the number of segments. */
static uint32_t
read_segments(int sock)
{
	struct soft_shm_msg m;
	uint32_t n = 0;

	while (heard(sock, true, &m) == 1)
		n += m.type == SOFT_SHM_SEGMENT;
	return n;
}

/* The second connection uses the entry of the first one, which has got all segments. */
T(test_caller_gets_all_segments_if_its_socket_was_full)
{
	const int fd = memfd_create("t-segment", MFD_CLOEXEC), small = 1;
	struct soft_shm_msg m;
	struct stat st;
	uint32_t i, n;
	int fds[2], sock, round;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	for (i = 0; i < SOFT_SHM_SEGS; i++)
		shm->seg[i] = (struct soft_shm_seg){.fd = fd,
						    .dev = st.st_dev,
						    .ino = st.st_ino,
						    .end = 4096,
						    .gen = 1,
						    .rev = 1,
						    .refs = 1};
	shm->seg_changes++;
	for (round = 0; round < 2; round++) {
		m = hello();
		sock = call();
		chores(0);
		assert_int_equal(
			setsockopt(shm->rx[0]->sock, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)),
			0);
		share(fds);
		say(sock, &m, fds, 2);
		n = read_segments(sock);
		assert_true(n < SOFT_SHM_SEGS);
		for (i = 0; i < SOFT_SHM_SEGS; i++) {
			chores(0);
			n += read_segments(sock);
		}
		assert_int_equal(n, SOFT_SHM_SEGS);
		close(sock);
		chores(0);
	}
	for (i = 0; i < SOFT_SHM_SEGS; i++)
		shm->seg[i].refs = 0;
	close(fd);
}

TEST_MAIN(env_eal_init("shm_hostile_caller"))
