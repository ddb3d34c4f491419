/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../fakes/process.h"
#include "bb_test.h"
#include "soft_shm_mem.h"
#include "soft_shm_msg.h"

static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};

/* Returns a fabric name that only this process uses. */
static const char *
fabric(void)
{
	static char name[SOFT_SHM_NAME];

	snprintf(name, sizeof(name), "test%d", (int)getpid());
	return name;
}

static struct soft_shm_msg m;

static void
good(enum soft_shm_type type)
{
	soft_shm_msg_init(&m, type);
	if (type == SOFT_SHM_HELLO)
		m.u.hello.n_gids = 1;
	if (type == SOFT_SHM_SEGMENT)
		m.u.segment.len = 4096;
}

TEST(test_malformed_message_is_refused)
{
	good(SOFT_SHM_HELLO);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 2, false));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 2, true));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, false));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m) - 1, 2, false));
	m.u.hello.n_gids = 0;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 2, false));
	m.u.hello.n_gids = SOFT_SHM_GIDS;
	assert_null(soft_shm_msg_check(&m, sizeof(m), 2, false));
	m.u.hello.n_gids = SOFT_SHM_GIDS + 1;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 2, false));

	good(SOFT_SHM_WELCOME);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 1, true));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, false));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 2, true));
	m.version++;
	assert_non_null(strstr(soft_shm_msg_check(&m, sizeof(m), 1, true), "version"));
	m.version--;
	m.magic ^= 1;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, true));

	good(SOFT_SHM_WAKE);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 0, false));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 0, true));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, false));

	good(SOFT_SHM_SEGMENT);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 1, true));
	m.u.segment.slot = SOFT_SHM_SEGS;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, true));
	m.u.segment.slot = 0;
	m.u.segment.off = INT64_MAX;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, true));
	m.u.segment.off = INT64_MAX - 4096;
	assert_null(soft_shm_msg_check(&m, sizeof(m), 1, true));
	m.u.segment.len = 0;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, true));

	good(SOFT_SHM_REFUSED);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 0, true));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, true));

	good(SOFT_SHM_BYE);
	assert_null(soft_shm_msg_check(&m, sizeof(m), 0, true));
	assert_null(soft_shm_msg_check(&m, sizeof(m), 0, false));
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 1, false));
	m.type = 0;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 0, true));
	m.type = SOFT_SHM_TYPES;
	assert_non_null(soft_shm_msg_check(&m, sizeof(m), 0, true));
}

TEST(test_address_names_fabric_and_gid)
{
	struct sockaddr_un a, b;
	uint8_t other[16];
	socklen_t len, len_b;

	len = soft_shm_address("x", gid, "", &a);
	assert_int_equal(a.sun_path[0], 0);
	assert_string_equal(a.sun_path + 1, "bluebell/x/00000000000000000000ffffc0000201");
	assert_int_equal(len, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1));
	memcpy(other, gid, 16);
	other[15]++;
	len_b = soft_shm_address("x", other, "", &b);
	assert_int_equal(len, len_b);
	assert_memory_not_equal(&a, &b, sizeof(a));
	/* The longest name fits. */
	assert_in_range(soft_shm_address("0123456789012345678901234567890", gid, "", &b), len + 30,
			sizeof(b));
}

static void
pair(int *listener, int *out, int *in)
{
	pid_t pid;

	assert_int_equal(soft_shm_listen(fabric(), gid, 0, listener, &pid), 0);
	assert_int_equal(soft_shm_accept(*listener, in), -EAGAIN);
	assert_int_equal(soft_shm_connect(fabric(), gid, 0, out), 0);
	assert_int_equal(soft_shm_accept(*listener, in), 0);
}

TEST(test_address_in_use_is_refused)
{
	int listener, other, ready[2];
	pid_t pid = -1, child;
	char c = 0;

	assert_int_equal(soft_shm_connect(fabric(), gid, 0, &other), -ECONNREFUSED);
	assert_int_equal(soft_shm_listen(fabric(), gid, 0, &listener, &pid), 0);
	assert_int_equal(soft_shm_listen(fabric(), gid, 0, &other, &pid), -EADDRINUSE);
	assert_int_equal(pid, getpid());
	close(listener);
	/* Another process owns the name until it exits. */
	assert_int_equal(pipe(ready), 0);
	fabric();
	child = fork();
	if (child == 0) {
		char name[SOFT_SHM_NAME];

		snprintf(name, sizeof(name), "test%d", (int)getppid());
		c = soft_shm_listen(name, gid, 0, &other, &pid) == 0;
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 1);
	assert_int_equal(soft_shm_listen(fabric(), gid, 0, &listener, &pid), -EADDRINUSE);
	assert_int_equal(pid, child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(soft_shm_listen(fabric(), gid, 0, &listener, &pid), 0);
	close(listener);
	close(ready[0]);
	close(ready[1]);
}

TEST(test_message_carries_its_descriptors)
{
	int listener, out, in, fds[SOFT_SHM_MAX_FDS], send[4];
	const char *why;
	void *mem[2];
	struct soft_shm_msg got;
	pid_t pid;
	uid_t uid;
	int before = descriptors();

	pair(&listener, &out, &in);
	assert_int_equal(soft_shm_peer(out, &pid, &uid), 0);
	assert_int_equal(pid, getpid());
	assert_int_equal(uid, getuid());
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), 0);
	assert_int_equal(soft_shm_create(NULL, "a", 4096, &send[0], &mem[0]), 0);
	assert_int_equal(soft_shm_create(NULL, "b", 4096, &send[1], &mem[1]), 0);
	good(SOFT_SHM_HELLO);
	memcpy(m.u.hello.gids[0], gid, 16);
	assert_int_equal(soft_shm_send(out, &m, send, 2), 0);
	/* Too few descriptors, too many bytes, no message: rejected, and no descriptor leaks. */
	assert_int_equal(soft_shm_send(out, &m, send, 1), 0);
	assert_int_equal(soft_shm_send(out, &m, NULL, 0), 0);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), 1);
	assert_memory_equal(&got, &m, sizeof(m));
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_not_equal(fcntl(fds[0], F_GETFD) & FD_CLOEXEC, 0);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -EPROTO);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -EPROTO);
	assert_int_equal(write(out, &m, 16), 16);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -EPROTO);
	assert_int_equal(write(out, (uint8_t[512]){0}, 512), 512);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -EPROTO);
	munmap(mem[0], 4096);
	munmap(mem[1], 4096);
	close(send[0]);
	close(send[1]);
	close(out);
	assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -ECONNRESET);
	assert_true(soft_shm_send(in, &m, NULL, 0) < 0);
	close(in);
	close(listener);
	assert_int_equal(descriptors(), before);
}

/* The process that receives has no free descriptor, or one where the message has two. */
TEST(test_message_whose_descriptors_cannot_arrive_is_refused_with_the_cause)
{
	int listener, out, in, fds[SOFT_SHM_MAX_FDS], send[2], before = descriptors();
	struct soft_shm_msg got;
	const char *why;
	void *mem[2];

	pair(&listener, &out, &in);
	assert_int_equal(soft_shm_create(NULL, "a", 4096, &send[0], &mem[0]), 0);
	assert_int_equal(soft_shm_create(NULL, "b", 4096, &send[1], &mem[1]), 0);
	good(SOFT_SHM_HELLO);
	for (unsigned int left = 0; left < 2; left++) {
		assert_int_equal(soft_shm_send(out, &m, send, 2), 0);
		descriptors_leave(left);
		assert_int_equal(soft_shm_recv(in, false, &got, fds, &why), -EPROTO);
		descriptors_restore();
		assert_non_null(strstr(why, "no file descriptor is free"));
	}
	for (int i = 0; i < 2; i++) {
		munmap(mem[i], 4096);
		close(send[i]);
	}
	close(out);
	close(in);
	close(listener);
	assert_int_equal(descriptors(), before);
}

TEST(test_empty_message_ends_the_connection)
{
	int listener, out, in, fds[SOFT_SHM_MAX_FDS], mem[2], before, n;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(mem))];
	} control = {.room = {0}};
	/* QEMU's emulation sends nothing if there is no iovec at all. */
	struct iovec iov = {.iov_base = &control, .iov_len = 0};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	const char *why = NULL;
	struct soft_shm_msg got;

	pair(&listener, &out, &in);
	assert_int_equal(pipe(mem), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(mem));
	memcpy(CMSG_DATA(c), mem, sizeof(mem));
	before = descriptors();
	for (n = 0; n < 16; n++) {
		assert_int_equal(sendmsg(out, &msg, 0), 0);
		assert_int_equal(soft_shm_recv(in, n % 2 == 0, &got, fds, &why), -ECONNRESET);
		assert_int_equal(descriptors(), before);
	}
	close(mem[0]);
	close(mem[1]);
	close(out);
	close(in);
	close(listener);
}

TEST(test_send_does_not_block)
{
	int listener, out, in, ret, n = 0;

	pair(&listener, &out, &in);
	good(SOFT_SHM_REFUSED);
	do {
		ret = soft_shm_send(in, &m, NULL, 0);
		n++;
	} while (ret == 0);
	assert_int_equal(ret, -EAGAIN);
	assert_true(n > 1);
	close(in);
	close(out);
	/* Connecting does not block when the listener does not accept. */
	for (n = 0; n < 8192; n++) {
		ret = soft_shm_connect(fabric(), gid, 0, &out);
		if (ret != 0)
			break;
		close(out);
	}
	assert_int_equal(ret, -EAGAIN);
	close(listener);
}

/* The creator can write, the receiver can read, and neither can truncate the file. */
TEST(test_only_the_creator_can_write_and_none_can_truncate)
{
	const void *copy;
	void *own, *other;
	int fd, plain;

	assert_int_equal(soft_shm_create(NULL, "dir", 8192, &fd, &own), 0);
	copy = soft_shm_reserve(NULL, 8192);
	assert_non_null(copy);
	assert_int_equal(*(const uint64_t *)copy, 0);
	assert_int_equal(soft_shm_map(fd, 8192, copy), 0);
	memset(own, 0x5a, 8192);
	assert_memory_equal(own, copy, 8192);
	assert_int_equal(mprotect((void *)(uintptr_t)copy, 8192, PROT_READ | PROT_WRITE), -1);
	assert_ptr_equal(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(soft_shm_map_segment(NULL, fd, 0, 8192, &other), -EPERM);
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(soft_shm_unmap(8192, copy), 0);
	assert_int_equal(*(const uint64_t *)copy, 0);
	assert_int_equal(soft_shm_map(fd, 4096, copy), -EINVAL);
	assert_int_equal(soft_shm_map(fd, 16384, copy), -EINVAL);
	munmap(own, 8192);
	close(fd);
	/* A file without seals, and no file. */
	plain = memfd_create("plain", MFD_CLOEXEC);
	assert_int_equal(ftruncate(plain, 8192), 0);
	assert_int_equal(soft_shm_map(plain, 8192, copy), -EPERM);
	assert_true(soft_shm_map(0, 8192, copy) < 0);
	/* Application memory: any part of the file, and nothing past its end. */
	assert_int_equal(soft_shm_map_segment(NULL, plain, 4096, 4096, &other), 0);
	memset(other, 1, 4096);
	munmap(other, 4096);
	assert_int_equal(soft_shm_map_segment(NULL, plain, 4096, 8192, &other), -EINVAL);
	assert_int_equal(soft_shm_map_segment(NULL, plain, UINT64_MAX - 4095, 8192, &other),
			 -EINVAL);
	assert_int_equal(soft_shm_map_segment(NULL, plain, 0, 0, &other), -EINVAL);
	assert_true(soft_shm_map_segment(NULL, plain, 1, 4096, &other) < 0);
	close(plain);
	munmap((void *)(uintptr_t)copy, 8192);
}

TEST(test_entry_is_read_whole_or_not_at_all)
{
	struct soft_shm_key e = {0}, got;

	assert_false(soft_shm_read(&got, &e, sizeof(e)));
	e.key = 7;
	soft_shm_publish(&e.seq);
	assert_true(soft_shm_read(&got, &e, sizeof(e)));
	assert_fields(got, key, 7, seq, e.seq);
	soft_shm_retire(&e.seq);
	assert_false(soft_shm_read(&got, &e, sizeof(e)));
	soft_shm_retire(&e.seq);
	assert_false(soft_shm_read(&got, &e, sizeof(e)));
	soft_shm_publish(&e.seq);
	assert_true(soft_shm_read(&got, &e, sizeof(e)));
	assert_int_equal(got.seq, 3);
}

TEST_MAIN(0)
