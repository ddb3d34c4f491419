/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Users that a shared-memory fabric trusts, in user namespaces that do not map all users. */
#define _GNU_SOURCE /* unshare(), setresuid() */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bb_test.h"
#include "soft_shm.h"

#define SKIPPED 77

static char folder[] = "/tmp/bb_user.XXXXXX";
static char map_path[64], overflow_path[64];

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(map_path, sizeof(map_path), "%s/map", folder);
	snprintf(overflow_path, sizeof(overflow_path), "%s/overflow", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(map_path);
	unlink(overflow_path);
	return rmdir(folder);
}

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

TEST(test_only_a_complete_map_makes_every_number_an_identity)
{
	static const struct {
		const char *map;
		bool complete;
	} maps[] = {
		{"         0          0 4294967295\n", true},
		{"0 100000 65534\n65534 500000 4294901761\n", true},
		{"0 0 4294967294\n", false},
		{"0 100000 65536\n", false},
		{"65534 165534 1\n", false},
		{"", false},
		{"nonsense", false},
	};

	put(overflow_path, "4711\n");
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		put(map_path, maps[i].map);
		assert_int_equal(soft_shm_unnamed(map_path, overflow_path),
				 maps[i].complete ? SOFT_SHM_NO_USER : 4711);
	}
	unlink(map_path);
	assert_int_equal(soft_shm_unnamed(map_path, overflow_path), 4711);
	put(overflow_path, "none\n");
	assert_int_equal(soft_shm_unnamed(map_path, overflow_path), 65534);
	unlink(overflow_path);
	assert_int_equal(soft_shm_unnamed(map_path, overflow_path), 65534);
}

/* ---- In a namespace */

enum what {
	OPEN_DEV,     /* a device without shm_uid */
	OPEN_SHM_UID, /* a device with shm_uid=65534 */
	PEER,         /* a device without shm_uid, and a peer */
	PEER_SHM_UID, /* a device with shm_uid=7, and a peer */
};

struct trial {
	const char *map;
	uid_t uid;  /* of the device, as numbered in the namespace */
	uid_t peer; /* of the peer, as numbered on the host */
	enum what what;
	int err;
};

/* Returns -errno of soft_shm_start(), or of soft_shm_user() for the peer of @sock. */
static int
look(enum what what, int sock)
{
	struct soft_dev *dev = calloc(1, sizeof(*dev));
	struct soft_port_opts *o;
	pid_t pid;
	uid_t uid;
	int ret;

	if (dev == NULL)
		return -ENOMEM;
	o = &dev->opts.port;
	snprintf(dev->name, sizeof(dev->name), "soft0");
	snprintf(o->shm, sizeof(o->shm), "user%d", (int)getpid());
	o->n_ip = 1;
	memcpy(o->ip[0].addr, (uint8_t[16]){[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 16);
	o->shm_uid_given = what == OPEN_SHM_UID || what == PEER_SHM_UID;
	o->shm_uid = what == OPEN_SHM_UID ? 65534 : 7;
	ret = soft_shm_start(dev);
	if (ret == 0 && what >= PEER)
		ret = soft_shm_user(dev->shm, sock, &pid, &uid);
	soft_shm_stop(dev);
	free(dev);
	return ret;
}

static void
wait_byte(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(99);
}

/* Runs look() in a user namespace. Returns its positive errno, or SKIPPED. */
static int
in_namespace(const struct trial *t)
{
	int ready[2], go[2], pair[2], status, fd;
	size_t len = strlen(t->map);
	char path[64];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	/* The creator's user is that of both ends (unix(7), SO_PEERCRED). */
	assert_int_equal(seteuid(t->peer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(seteuid(0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		if (unshare(CLONE_NEWUSER) != 0 || write(ready[1], "x", 1) != 1)
			_exit(SKIPPED);
		wait_byte(go[0]);
		if (len != 0 && setresuid(t->uid, t->uid, t->uid) != 0)
			_exit(98);
		_exit(-look(t->what, pair[0]));
	}
	close(ready[1]);
	if (read(ready[0], path, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		if (len != 0)
			assert_int_equal(write(fd, t->map, len), len);
		close(fd);
		assert_int_equal(write(go[1], "x", 1), 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
	close(pair[0]);
	close(pair[1]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_a_number_of_unmapped_users_is_refused_in_a_user_namespace)
{
	static const struct trial trials[] = {
		/* The device's user is unmapped, or has the number of unmapped users. */
		{"", 0, 0, OPEN_DEV, EPERM},
		{"65534 165534 1\n", 65534, 0, OPEN_DEV, EPERM},
		{"0 100000 65536\n", 65534, 0, OPEN_DEV, EPERM},
		{"1000 7777 1\n", 1000, 0, OPEN_SHM_UID, EPERM},
		/* An identity in an incomplete map, and in a complete one. */
		{"1000 7777 1\n", 1000, 0, OPEN_DEV, 0},
		{"0 0 4294967295\n", 65534, 0, OPEN_DEV, 0},
		{"0 0 4294967295\n", 0, 0, OPEN_SHM_UID, 0},
		/* Peers: the same user, another user, an unmapped one, the one of shm_uid. */
		{"1000 7777 1\n", 1000, 7777, PEER, 0},
		{"1000 7777 2\n", 1000, 7778, PEER, EACCES},
		{"1000 7777 1\n", 1000, 4242, PEER, EACCES},
		{"1000 7777 1\n7 8888 1\n", 1000, 8888, PEER_SHM_UID, 0},
		{"1000 7777 1\n7 8888 1\n", 1000, 4242, PEER_SHM_UID, EACCES},
		{"0 0 4294967295\n", 65534, 65534, PEER, 0},
		{"0 0 4294967295\n", 65534, 4242, PEER, EACCES},
	};

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		int err = in_namespace(&trials[i]);

		if (err == SKIPPED)
			skip(); /* the kernel provides no user namespaces */
		if (err != trials[i].err)
			fail_msg("trial %zu: errno %d, not %d", i, err, trials[i].err);
	}
}

TEST_MAIN_WITH(setup, teardown, 0)
