/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A second process that accepts all connections until its stdin ends. Both processes are on a
 * shared-memory fabric.
 */
#ifndef CONNECT_SERVER_H
#define CONNECT_SERVER_H

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../fakes/process.h"
#include "connect_env.h"

/* Report of the server on stdout: once when it listens, and after each line on its stdin. */
struct server_says {
	uint32_t port;
	uint32_t conns, half_open;
	uint64_t established, disconnected, recovered;
};

struct server {
	pid_t pid;
	int in, out; /* Pipes to the child process. */
	uint32_t port;
};

static inline int
peers_eal(unsigned int mb)
{
	char prefix[32], size[16];

	snprintf(prefix, sizeof(prefix), "bbc%d", (int)getpid());
	snprintf(size, sizeof(size), "%u", mb);
	if (eal_start(prefix, "0", EAL_OPTIONS(EAL_BARE(size))) < 0)
		return -1;
	rte_log_set_global_level(RTE_LOG_CRIT);
	return 0;
}

static inline void
peers_attr(struct bb_cm_attr *attr)
{
	bb_cm_attr_init(attr);
	attr->max_half_open = 1024;
	attr->half_open_ms = WAIT_S * 1000;
	attr->poll_us = 10;
}

/* Opens a side with queues for @conns connections. */
static inline void
peers_end(struct end *e, const char *spec, uint32_t conns)
{
	struct bb_cm_attr attr;
	struct bb_cq_attr cq;
	struct bb_dev *dev;

	OK(bb_dev_open(spec, &dev));
	peers_attr(&attr);
	end_open(e, dev, &attr);
	OK(bb_cq_destroy(e->cq));
	bb_cq_attr_init(&cq);
	cq.depth = 1024 + 4 * conns;
	OK(bb_cq_create(dev, &cq, &e->cq));
	e->init.send_cq = e->cq;
	e->init.recv_cq = e->cq;
	e->init.sq_depth = 4;
	e->init.rq_depth = 0;
	e->init.max_inline = 8;
	e->param.recover_ms = 4 * WAIT_S * 1000;
	e->param.backoff_min_ms = 2;
	e->param.backoff_max_ms = 50;
}

static inline void
server_event(struct end *e, const struct bb_cm_event *ev, uint64_t *disconnected)
{
	struct bb_conn_info info;

	switch (ev->type) {
	case BB_CM_CONNECT_REQUEST:
		if (bb_conn_accept(ev->conn, end_qp(e), &e->param) != 0)
			exit(3);
		break;
	case BB_CM_DISCONNECTED:
		bb_conn_query(ev->conn, &info);
		bb_conn_destroy(ev->conn);
		if (info.qp != NULL && bb_qp_destroy(info.qp) != 0)
			exit(4);
		(*disconnected)++;
		break;
	default:
		break;
	}
}

/* Arguments: serve DEVICE PORT CONNS. */
static inline int
server_main(char **argv)
{
	struct end *e = calloc(1, sizeof(*e));
	struct bb_listener *listener;
	struct sockaddr_storage addr;
	struct server_says says = {0};
	struct bb_cm_event ev[16];
	struct bb_cm_stats stats;
	struct bb_region region;
	struct bb_wc wc[16];
	uint32_t conns = (uint32_t)strtoul(argv[2], NULL, 10);
	unsigned int i, n, turns;
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char text[64], line;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (e == NULL || peers_eal(conns > 1000 ? 2048 : 256) != 0 || !descriptors_raise(conns))
		return 77;
	peers_end(e, argv[0], conns);
	if (bb_region_of(e->mr, "buf", 0, 0, &region) != 0)
		return 2;
	e->param.regions = &region;
	e->param.nregions = 1;
	snprintf(text, sizeof(text), "127.0.0.1:%s", argv[1]);
	if (bb_cm_addr(text, &addr) != 0 ||
	    bb_listener_create(e->cm, (struct sockaddr *)&addr, &listener) != 0)
		return 2;
	says.port = bb_listener_port(listener);
	if (write(1, &says, sizeof(says)) != sizeof(says))
		return 2;
	for (turns = 0;; turns++) {
		n = bb_cm_poll(e->cm, ev, 16);
		for (i = 0; i < n; i++)
			server_event(e, &ev[i], &says.disconnected);
		(void)bb_cq_poll(e->cq, wc, 16);
		if (turns % 256 != 0 || poll(&in, 1, 0) == 0)
			continue;
		if (read(0, &line, 1) != 1)
			break;
		bb_cm_stats(e->cm, &stats);
		says.conns = stats.conns;
		says.half_open = stats.half_open;
		says.established = stats.established;
		says.recovered = stats.recovered;
		if (write(1, &says, sizeof(says)) != sizeof(says))
			return 2;
	}
	_exit(0);
}

static inline void
server_hear(struct server *s, struct server_says *says)
{
	struct pollfd out = {.fd = s->out, .events = POLLIN};

	if (poll(&out, 1, WAIT_S * 2000) != 1 ||
	    read(s->out, says, sizeof(*says)) != (ssize_t)sizeof(*says))
		fail_msg("the other process says nothing");
}

/* @return false if the server cannot be started on this machine. */
static inline bool
server_start(struct server *s, const char *spec, uint32_t port, uint32_t conns)
{
	char name[] = "server", role[] = "serve", port_text[16], conns_text[16];
	char spec_text[128];
	char *argv[] = {name, role, spec_text, port_text, conns_text, NULL};
	struct server_says says;
	struct pollfd out;
	int in[2], from[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	snprintf(spec_text, sizeof(spec_text), "%s", spec);
	snprintf(port_text, sizeof(port_text), "%u", port);
	snprintf(conns_text, sizeof(conns_text), "%u", conns);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		dup2(in[0], 0);
		dup2(from[1], 1);
		exec_again(argv);
		_exit(127);
	}
	close(in[0]);
	close(from[1]);
	s->in = in[1];
	s->out = from[0];
	out = (struct pollfd){.fd = s->out, .events = POLLIN};
	if (poll(&out, 1, WAIT_S * 2000) != 1 ||
	    read(s->out, &says, sizeof(says)) != (ssize_t)sizeof(says)) {
		int status = 0;

		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, 0);
		close(s->in);
		close(s->out);
		return false;
	}
	s->port = says.port;
	return true;
}

static inline void
server_kill(struct server *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->in);
	close(s->out);
}

static inline void
server_stop(struct server *s)
{
	int status;

	close(s->in);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	close(s->out);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
