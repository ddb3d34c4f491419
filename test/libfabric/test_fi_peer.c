/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two processes: this program is also the peer, with the argument "peer", "late" or "once". The
 * peer accepts one connection, and prints its address and key before that.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LONG 50000u

static const struct want plain;

/* The start of the peer's line: its address, key and memory, and its process. */
struct peer {
	char addr[64];
	uint64_t key, mem;
	pid_t pid;
	int out; /* its standard output */
};

/* ---- The peer */

/*
 * "late" posts a short receive, and reads no events before it has failed. The connection is then
 * broken before its first event. "once" ends right after the first message.
 */
static int
serve(const char *role)
{
	const bool late = strcmp(role, "late") == 0, once = strcmp(role, "once") == 0;
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
	if (late)
		OK(fi_recv(p.b.ep, p.b.mem, 8, p.b.desc, 0, NULL));
	if (once)
		OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	OK(fi_accept(p.b.ep, NULL, 0));
	if (once) {
		done(&p.b);
		OK(fi_shutdown(p.b.ep, 0));
		pair_close(&p);
		return 0;
	}
	if (late)
		assert_int_equal(failed(&p.b).err, FI_ETRUNC);
	event_wait(&p, FI_CONNECTED, &e, sizeof(e));
	event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
	/* Says so, and runs until it is killed: the other process may not have its answer yet. */
	if (write(STDOUT_FILENO, "s", 1) != 1)
		return 1;
	while (true)
		none(&p);
}

/* Starts the peer, and connects the endpoint a of this process to it. @role: its argument. */
static void
start(struct pair *p, struct peer *peer, const char *role)
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
		execl("/proc/self/exe", "fi_peer", role, (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], peer, sizeof(*peer)), sizeof(*peer));
	peer->out = fds[0];
	pair_endpoint(p, &p->a, p->info, &plain);
	OK(fi_connect(p->a.ep, peer->addr, NULL, 0));
	event_wait(p, FI_CONNECTED, &e, sizeof(e));
}

static void
end(const struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
	close(peer->out);
}

TEST(test_a_killed_peer_is_an_event_and_ends_receives)
{
	struct fi_eq_cm_entry e;
	struct fi_cq_err_entry err;
	struct peer peer;
	struct pair p;
	int context;

	start(&p, &peer, "peer");
	OK(fi_recv(p.a.ep, p.a.mem, 64, p.a.desc, 0, &context));
	kill(peer.pid, SIGKILL);
	event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
	assert_ptr_equal(e.fid, &p.a.ep->fid);
	err = failed(&p.a);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &context);
	none(&p); /* one event only */
	end(&peer);
	pair_close(&p);
}

/* The kernel copies between the memory of both processes, which is from malloc(). */
TEST(test_long_requests_need_no_running_peer)
{
	struct peer peer;
	struct pair p;
	uint32_t i;

	start(&p, &peer, "peer");
	for (i = 0; i < LONG; i++)
		p.a.mem[i] = (unsigned char)(i * 7 + i / 256);
	/* The first request may be packets. */
	OK(fi_write(p.a.ep, p.a.mem, LONG, p.a.desc, 0, peer.mem, peer.key, NULL));
	done(&p.a);
	kill(peer.pid, SIGSTOP);
	assert_int_equal(waitpid(peer.pid, NULL, WUNTRACED), peer.pid);
	OK(fi_write(p.a.ep, p.a.mem, LONG, p.a.desc, 0, peer.mem + 3, peer.key, NULL));
	done(&p.a);
	OK(fi_read(p.a.ep, p.a.mem + MEM / 2, LONG, p.a.desc, 0, peer.mem + 3, peer.key, NULL));
	done(&p.a);
	assert_memory_equal(p.a.mem, p.a.mem + MEM / 2, LONG);
	kill(peer.pid, SIGCONT);
	OK(fi_shutdown(p.a.ep, 0));
	pair_close(&p);
	end(&peer);
}

TEST(test_a_connection_that_breaks_before_its_first_event_is_shut_down)
{
	struct peer peer;
	struct pair p;
	char said;

	start(&p, &peer, "late");
	OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
	assert_int_equal(failed(&p.a).err, FI_EINVAL);
	/* This side does not disconnect: the peer learns it from its receive only. */
	assert_int_equal(read(peer.out, &said, 1), 1);
	end(&peer);
	pair_close(&p);
}

TEST(test_a_message_completes_if_its_receiver_ends_at_once)
{
	struct fi_eq_cm_entry e;
	struct peer peer;
	struct pair p;
	int i, status;

	for (i = 0; i < 8; i++) {
		start(&p, &peer, "once");
		OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
		done(&p.a);
		event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
		assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
		assert_int_equal(status, 0);
		close(peer.out);
		pair_close(&p);
	}
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

/*
 * Reads as a child may that does not know of the fork: nothing of it may be taken from the parent.
 * The child has no events and no completions of its own.
 */
static void
read_all(struct pair *p)
{
	struct fi_cntr_attr cntr_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_data_entry c;
	struct fi_eq_cm_entry e;
	uint32_t type;
	int i;

	for (i = 0; i < 1000; i++)
		if (fi_cq_read(p->b.cq, &c, 1) != -FI_EAGAIN ||
		    fi_cq_sread(p->a.cq, &c, 1, NULL, 0) != -FI_EAGAIN ||
		    fi_eq_read(p->eq, &type, &e, sizeof(e), 0) != -FI_EAGAIN)
			_exit(4);
	if (fi_recv(p->b.ep, p->b.mem, 64, p->b.desc, 0, NULL) != -FI_EOPBADSTATE ||
	    fi_mr_reg(p->domain, p->a.mem, 64, 0, 0, 0, 0, &p->a.mr, NULL) != -FI_EOPNOTSUPP ||
	    fi_eq_open(p->fabric, &eq_attr, &p->eq, NULL) != -FI_EOPNOTSUPP ||
	    fi_cntr_open(p->domain, &cntr_attr, &p->a.sent, NULL) != -FI_EOPNOTSUPP ||
	    fi_listen(p->pep) != 0)
		_exit(5);
	pair_close(p);
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

TEST(test_reads_and_closes_of_a_child_leave_the_parent_its_completions)
{
	const struct want w = {.wait = FI_WAIT_FD};
	struct pair p;
	int i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	for (i = 0; i < 20; i++) {
		OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
		OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
		done(&p.a);
		/* The receive is complete, and the child reads before the parent. */
		in_child(read_all, &p);
		done(&p.b);
	}
	pair_close(&p);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return serve(argv[1]);
	return bb_test_run(__FILE__, NULL, NULL);
}
