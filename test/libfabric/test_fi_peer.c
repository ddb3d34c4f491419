/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two processes: this program is also the peer, with the argument "peer". The peer accepts one
 * connection, and prints its address and key before that.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define LONG 50000u

static const struct want plain;

/* The start of the peer's line: its address, key and memory, and its process. */
struct peer {
	char addr[64];
	uint64_t key, mem;
	pid_t pid;
};

/* ---- The peer */

static int
serve(void)
{
	struct fi_eq_cm_entry e;
	struct peer line = {.pid = getpid()};
	size_t len = sizeof(line.addr);
	struct pair p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pair_open(&p, &plain);
	OK(fi_getname(&p.pep->fid, line.addr, &len));
	line.key = p.b.key;
	line.mem = (uintptr_t)p.b.mem;
	if (write(STDOUT_FILENO, &line, sizeof(line)) != sizeof(line))
		return 1;
	event_wait(&p, FI_CONNREQ, &e, sizeof(e));
	pair_endpoint(&p, &p.b, e.info, &plain);
	OK(fi_accept(p.b.ep, NULL, 0));
	event_wait(&p, FI_CONNECTED, &e, sizeof(e));
	/* Runs until it is killed or the connection ends. */
	event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
	return 0;
}

/* Starts the peer, and connects the endpoint a of this process to it. */
static void
start(struct pair *p, struct peer *peer)
{
	struct fi_eq_cm_entry e;
	char ip[64];
	int fds[2];

	pair_open(p, &plain);
	assert_int_equal(pipe(fds), 0);
	peer->pid = fork();
	if (peer->pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		snprintf(ip, sizeof(ip), "%s", pair_ip());
		ip[strlen(ip) - 1]++; /* the next address */
		if (getenv("PAIR_IP") != NULL)
			setenv("PAIR_IP", ip, 1);
		execl("/proc/self/exe", "fi_peer", "peer", (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], peer, sizeof(*peer)), sizeof(*peer));
	close(fds[0]);
	pair_endpoint(p, &p->a, p->info, &plain);
	OK(fi_connect(p->a.ep, peer->addr, NULL, 0));
	event_wait(p, FI_CONNECTED, &e, sizeof(e));
}

TEST(test_a_killed_peer_is_an_event_and_ends_receives)
{
	struct fi_eq_cm_entry e;
	struct fi_cq_err_entry err;
	struct peer peer;
	struct pair p;
	int context;

	start(&p, &peer);
	OK(fi_recv(p.a.ep, p.a.mem, 64, p.a.desc, 0, &context));
	kill(peer.pid, SIGKILL);
	event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
	assert_ptr_equal(e.fid, &p.a.ep->fid);
	err = failed(&p.a);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &context);
	none(&p); /* one event only */
	assert_int_equal(waitpid(peer.pid, NULL, 0), peer.pid);
	pair_close(&p);
}

/* The kernel copies between the memory of both processes, which is from malloc(). */
TEST(test_long_requests_need_no_running_peer)
{
	struct peer peer;
	struct pair p;
	uint32_t i;

	start(&p, &peer);
	for (i = 0; i < LONG; i++)
		p.a.mem[i] = (unsigned char)(i * 7 + i / 256);
	/* The first request may be packets. */
	OK(fi_write(p.a.ep, p.a.mem, LONG, p.a.desc, 0, peer.mem, peer.key, NULL));
	done(&p.a);
	kill(peer.pid, SIGSTOP);
	OK(fi_write(p.a.ep, p.a.mem, LONG, p.a.desc, 0, peer.mem + 3, peer.key, NULL));
	done(&p.a);
	OK(fi_read(p.a.ep, p.a.mem + MEM / 2, LONG, p.a.desc, 0, peer.mem + 3, peer.key, NULL));
	done(&p.a);
	assert_memory_equal(p.a.mem, p.a.mem + MEM / 2, LONG);
	kill(peer.pid, SIGCONT);
	OK(fi_shutdown(p.a.ep, 0));
	pair_close(&p);
	kill(peer.pid, SIGKILL);
	assert_int_equal(waitpid(peer.pid, NULL, 0), peer.pid);
}

/* ---- fork() */

/* Runs @child in a child process, and checks that it ends with status 0. */
static void
in_child(void (*child)(struct pair *), struct pair *p)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(60);
		child(p);
		exit(0); /* runs the destructors of libfabric, too */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
only_exit(struct pair *p)
{
	(void)p;
}

static void
open_and_close(struct pair *p)
{
	struct fid_fabric *fabric;

	if (fi_fabric(p->info->fabric_attr, &fabric, NULL) != -FI_EOPNOTSUPP)
		_exit(2);
	if (fi_close(&p->a.ep->fid) != 0 || fi_close(&p->b.ep->fid) != 0)
		_exit(3);
}

TEST(test_a_child_ends_and_the_parent_continues)
{
	struct pair p;
	int i;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	/* Often, because the thread of the provider may hold the lock at a fork. */
	for (i = 0; i < 20; i++) {
		in_child(i % 2 == 0 ? only_exit : open_and_close, &p);
		OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
		OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
		done(&p.a);
		done(&p.b);
	}
	pair_close(&p);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "peer") == 0)
		return serve();
	return bb_test_run(__FILE__, NULL, NULL);
}
