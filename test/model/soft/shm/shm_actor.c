/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include "shm_actor.h"
#include "../../../fakes/bare_eal.h"
#include "../../../fakes/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#define CHANNEL  3
#define MAX_ARGS 32

int
actor_eal(const char *name, const char *const *more, unsigned int n)
{
	const char *args[MAX_ARGS + 1] = {"--no-telemetry", "--log-level=5"};
	unsigned int i;
	char prefix[48];

	for (i = 0; i < n && i + 2 < MAX_ARGS; i++)
		args[i + 2] = more[i];
	snprintf(prefix, sizeof(prefix), "bb_%s_%d", name, (int)getpid());
	return eal_start_or_skip(prefix, "0,1", args);
}

/* ---- Commands */

static int
do_open(struct actor *s, const char *spec)
{
	struct bb_cq_attr cq;
	int ret = bb_dev_open(spec, &s->dev);

	if (ret != 0)
		return ret;
	ret = bb_pd_alloc(s->dev, &s->pd);
	bb_cq_attr_init(&cq);
	cq.depth = 1024;
	if (ret == 0)
		ret = bb_cq_create(s->dev, &cq, &s->cq);
	if (ret == 0 && s->buf == NULL) {
		/* For tests without EAL memory that has a file descriptor. */
		s->heap = getenv("ACTOR_MALLOC") == NULL;
		s->buf = s->heap ? rte_zmalloc(NULL, ACTOR_BUF, 4096)
				 : aligned_alloc(4096, ACTOR_BUF);
	}
	return ret == 0 && s->buf == NULL ? -ENOMEM : ret;
}

static int
do_qp(struct actor *s, enum bb_qp_type type)
{
	struct bb_qp_init_attr init;
	int ret;

	bb_qp_init_attr_init(&init);
	init.type = type;
	init.max_sge = 2;
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->type = type;
	ret = bb_qp_create(s->pd, &init, &s->qp);
	return ret != 0 ? ret : bb_qp_addr(s->qp, 1, 1, &s->addr);
}

static int
do_connect(struct actor *s, const struct actor_msg *m)
{
	const struct bb_qp_addr *to = &m->addr;
	struct bb_qp_attr attr;
	struct bb_path path = {.sgid_index = 1, .port = 1};
	int ret;

	bb_qp_attr_init(&attr);
	attr.path.sgid_index = 1;
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	if (s->timeout != 0) {
		attr.timeout = s->timeout;
		attr.retry_cnt = s->retry_cnt;
		attr.rnr_retry = s->retry_cnt;
	}
	if (s->type == BB_QPT_UC)
		attr.access = BB_ACCESS_REMOTE_WRITE;
	attr.access &= ~m->b;
	if (m->y != 0)
		attr.max_dest_rd_atomic = (uint8_t)m->y;
	if (s->type != BB_QPT_UD)
		return bb_qp_connect(s->qp, &s->addr, to, &attr);
	ret = bb_qp_ud_up(s->qp, 1, 0, ACTOR_QKEY, s->addr.psn);
	memcpy(path.dgid, to->gid, 16);
	s->dest_qpn = to->qpn;
	return ret != 0 ? ret : bb_ah_create(s->pd, &path, &s->ah);
}

static int
do_mr_more(struct actor *s, struct actor_msg *m)
{
	struct bb_mr *mr;
	int ret = 0;

	if (s->n_more == ACTOR_MRS)
		return -ENOSPC;
	if (m->b != 0 && s->other == NULL)
		ret = bb_pd_alloc(s->dev, &s->other);
	if (ret == 0)
		ret = bb_mr_reg(m->b != 0 ? s->other : s->pd, s->buf + m->x, m->y, m->a, &mr);
	if (ret != 0)
		return ret;
	m->raddr = (uintptr_t)s->buf + m->x;
	m->rkey = mr->rkey;
	s->more[s->n_more++] = mr;
	return 0;
}

static int
do_post(struct actor *s, const struct actor_msg *m)
{
	struct bb_sge sge = {(uintptr_t)s->buf + m->x, (uint32_t)m->y,
			     s->mr != NULL ? s->mr->lkey : 0};
	struct bb_sge two[] = {sge, sge};
	uint32_t pieces = m->y != 0;
	uint32_t flags = BB_SEND_SIGNALED;
	int n;

	switch (m->a) {
	case ACTOR_WRITE:
		n = bb_post_write(s->qp, m->b, &sge, pieces, m->raddr, m->rkey, flags);
		break;
	case ACTOR_WRITE_TWO:
		two[0].len = sge.len / 2;
		two[1].addr += two[0].len;
		two[1].len -= two[0].len;
		n = bb_post_write(s->qp, m->b, two, 2, m->raddr, m->rkey, flags);
		break;
	case ACTOR_WRITE_IMM:
		n = bb_post_write_imm(s->qp, m->b, &sge, 1, m->raddr, m->rkey, m->imm, flags);
		break;
	case ACTOR_READ_VERB:
		n = bb_post_read(s->qp, m->b, &sge, pieces, m->raddr, m->rkey, flags);
		break;
	case ACTOR_SEND:
		n = s->type == BB_QPT_UD ? bb_post_send_ud(s->qp, m->b, &sge, 1, s->ah, s->dest_qpn,
							   ACTOR_QKEY, flags)
					 : bb_post_send(s->qp, m->b, &sge, 1, flags);
		break;
	case ACTOR_SEND_IMM:
		n = bb_post_send_imm(s->qp, m->b, &sge, 1, m->imm, flags);
		break;
	case ACTOR_CMP_SWAP:
		n = bb_post_cmp_swap(s->qp, m->b, &sge, m->raddr, m->rkey, m->z, m->w, flags);
		break;
	default:
		n = bb_post_fetch_add(s->qp, m->b, &sge, m->raddr, m->rkey, m->z, flags);
		break;
	}
	bb_qp_ring(s->qp);
	return n;
}

static int
do_recv(struct actor *s, const struct actor_msg *m)
{
	struct bb_sge sge = {(uintptr_t)s->buf + m->x, (uint32_t)m->y, s->mr->lkey};
	int n = bb_post_recv(s->qp, m->b, &sge, 1);

	bb_qp_ring_recv(s->qp);
	return n;
}

static bool
in_time(uint64_t end)
{
	return rte_get_timer_cycles() < end;
}

static uint64_t
the_end(void)
{
	return rte_get_timer_cycles() + ACTOR_WAIT_S * rte_get_timer_hz();
}

static int
do_poll(struct actor *s, struct actor_msg *m)
{
	uint64_t end = the_end();
	struct bb_wc wc;

	while (bb_cq_poll(s->cq, &wc, 1) == 0) {
		actor_run(s);
		if (!in_time(end))
			return -ETIMEDOUT;
	}
	m->a = wc.status;
	m->b = wc.opcode;
	m->x = wc.byte_len;
	m->y = wc.wr_id;
	m->imm = wc.imm;
	return 0;
}

static int
do_event(struct actor *s, struct actor_msg *m)
{
	uint64_t end = the_end();
	struct bb_event ev;
	int ret;

	while ((ret = bb_event_get(s->dev, &ev)) == -EAGAIN && in_time(end))
		actor_run(s);
	m->a = (uint32_t)ev.type;
	return ret;
}

/* Posts WRITEs, and runs the device, without end, until the process is killed. */
static void
storm(struct actor *s, const struct actor_msg *m)
{
	struct bb_sge sge = {(uintptr_t)s->buf + m->x, (uint32_t)m->y, s->mr->lkey};
	struct bb_wc wc[32];
	uint64_t i;

	for (i = 0;; i++) {
		/* SENDs, and WRITEs with immediate now and then: some of them go as packets. */
		if (i % 64 == 63)
			(void)bb_post_write_imm(s->qp, i, &sge, 1, m->raddr, m->rkey, 1, 0);
		else if (i % 16 == 15)
			(void)bb_post_read(s->qp, i, &sge, 1, m->raddr, m->rkey, 0);
		else
			(void)bb_post_write(s->qp, i, &sge, 1, m->raddr, m->rkey, 0);
		bb_qp_ring(s->qp);
		bb_cq_poll(s->cq, wc, 32);
	}
}

/* After the deregistration only this process writes to the memory, so its bytes must stay. */
static uint32_t
do_quiet(struct actor *s, const struct actor_msg *m)
{
	uint32_t round;
	uint64_t i;

	for (round = 0; round < 8; round++) {
		volatile uint8_t *p = s->buf + m->x;

		memset(s->buf + m->x, 0x5a + (int)round, m->y);
		for (i = 0; i < 100; i++)
			actor_run(s);
		/* The other process may have to wait for a CPU. */
		usleep(5000);
		for (i = 0; i < m->y; i++)
			if (p[i] != 0x5a + round)
				return 1;
	}
	return 0;
}

static int
do_close(struct actor *s)
{
	int ret = 0;

	if (s->ah != NULL)
		bb_ah_destroy(s->ah);
	if (s->qp != NULL)
		ret |= bb_qp_destroy(s->qp);
	if (s->mr != NULL)
		ret |= bb_mr_dereg(s->mr);
	while (s->n_more != 0)
		ret |= bb_mr_dereg(s->more[--s->n_more]);
	if (s->other != NULL)
		ret |= bb_pd_free(s->other);
	if (s->cq != NULL)
		ret |= bb_cq_destroy(s->cq);
	if (s->pd != NULL)
		ret |= bb_pd_free(s->pd);
	ret |= bb_dev_close(s->dev);
	if (s->heap)
		rte_free(s->buf);
	else
		free(s->buf);
	s->buf = NULL;
	s->ah = NULL;
	s->qp = NULL;
	s->mr = NULL;
	s->other = NULL;
	s->cq = NULL;
	s->pd = NULL;
	s->dev = NULL;
	return ret;
}

/* The bare system call runs no handlers of pthread_atfork(), which would close the descriptors. */
static void
do_clone(struct actor_msg *m)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid > 0)
		_exit(0);
	m->ret = pid == 0 ? 0 : -errno;
	m->x = (uint64_t)syscall(SYS_getpid);
}

void
actor_do(struct actor *s, struct actor_msg *m)
{
	struct bb_qp_attr attr;
	uint64_t i;

	m->ret = 0;
	switch (m->op) {
	case ACTOR_OPEN:
		s->timeout = (uint8_t)m->a;
		s->retry_cnt = (uint8_t)m->b;
		m->ret = do_open(s, m->text);
		break;
	case ACTOR_QP:
		m->ret = do_qp(s, (enum bb_qp_type)m->a);
		m->addr = s->addr;
		break;
	case ACTOR_CONNECT:
		m->ret = do_connect(s, m);
		break;
	case ACTOR_RESET:
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		m->ret = bb_qp_modify(s->qp, &attr, BB_QP_STATE);
		break;
	case ACTOR_MR:
		m->ret = bb_mr_reg(s->pd, s->buf + m->x, m->y, m->a, &s->mr);
		m->raddr = (uintptr_t)s->buf + m->x;
		m->rkey = m->ret == 0 ? s->mr->rkey : 0;
		break;
	case ACTOR_MR_MORE:
		m->ret = do_mr_more(s, m);
		break;
	case ACTOR_DEREG:
		m->ret = bb_mr_dereg(s->mr);
		s->mr = NULL;
		break;
	case ACTOR_FILL:
		for (i = 0; i < m->y; i++)
			s->buf[m->x + i] = actor_byte(m->a, i);
		break;
	case ACTOR_SET:
		memset(s->buf + m->x, (int)m->a, m->y);
		break;
	case ACTOR_READ:
		memcpy(m->data, s->buf + m->x, m->y);
		break;
	case ACTOR_POST:
		m->ret = do_post(s, m);
		break;
	case ACTOR_RECV:
		m->ret = do_recv(s, m);
		break;
	case ACTOR_POLL:
		m->ret = do_poll(s, m);
		break;
	case ACTOR_STATE:
		bb_qp_attr_init(&attr);
		m->ret = bb_qp_query(s->qp, &attr);
		m->a = (uint32_t)attr.state;
		break;
	case ACTOR_EVENT:
		m->ret = do_event(s, m);
		break;
	case ACTOR_STORM:
		storm(s, m);
		break;
	case ACTOR_RUN:
		for (i = 0; i < m->a; i++)
			actor_run(s);
		break;
	case ACTOR_QUIET:
		m->a = do_quiet(s, m);
		break;
	case ACTOR_QP_DESTROY:
		if (s->ah != NULL)
			bb_ah_destroy(s->ah);
		s->ah = NULL;
		m->ret = bb_qp_destroy(s->qp);
		s->qp = NULL;
		break;
	case ACTOR_CLOSE:
		m->ret = do_close(s);
		break;
	case ACTOR_CLONE:
		do_clone(m);
		break;
	default:
		break;
	}
}

void
actor_run(struct actor *s)
{
	if (s->dev != NULL)
		bb_dev_progress(s->dev);
}

/* ---- The other process */

int
actor_main(int argc, char **argv)
{
	static struct actor_msg m;
	static struct actor s;
	int ret;

	/* The process ends with the test, however the test ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ret = actor_eal("peer", (const char *const *)argv + 2, (unsigned int)argc - 2);
	m.ret = ret;
	if (send(CHANNEL, &m, sizeof(m), 0) < 0 || ret != 0)
		return ret;
	for (;;) {
		ssize_t len = recv(CHANNEL, &m, sizeof(m), MSG_DONTWAIT);

		if (len == 0)
			return 0;
		if (len < 0) {
			actor_run(&s);
			sched_yield();
			continue;
		}
		if (m.op == ACTOR_EXIT)
			return 0;
		actor_do(&s, &m);
		if (send(CHANNEL, &m, sizeof(m), 0) < 0)
			return 1;
	}
}

static void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	abort();
}

static void
answer(struct actor *us, struct actor *s, struct actor_msg *m)
{
	uint64_t end = the_end();
	ssize_t len;

	for (;;) {
		len = recv(s->sock, m, sizeof(*m), MSG_DONTWAIT);
		if (len == (ssize_t)sizeof(*m))
			return;
		if (len >= 0 || errno != EAGAIN)
			die("the other process is gone");
		if (!in_time(end))
			die("the other process does not answer");
		if (us != NULL)
			actor_run(us);
		sched_yield();
	}
}

void
actor_spawn(struct actor *s, const char *const *more, unsigned int n)
{
	char *argv[MAX_ARGS];
	struct actor_msg m;
	unsigned int i, argc = 0;
	int sv[2];

	memset(s, 0, sizeof(*s));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		die("socketpair");
	argv[argc++] = strdup("peer");
	argv[argc++] = strdup("peer");
	for (i = 0; i < n; i++)
		argv[argc++] = strdup(more[i]);
	argv[argc] = NULL;
	s->pid = fork();
	if (s->pid == 0) {
		if (dup2(sv[1], CHANNEL) == CHANNEL && fcntl(CHANNEL, F_SETFD, 0) == 0)
			exec_again(argv);
		_exit(126);
	}
	close(sv[1]);
	for (i = 0; i < argc; i++)
		free(argv[i]);
	s->sock = sv[0];
	answer(NULL, s, &m);
	if (m.ret != 0)
		exit(m.ret);
}

void
actor_tell(struct actor *s, const struct actor_msg *m)
{
	if (send(s->sock, m, sizeof(*m), 0) != (ssize_t)sizeof(*m))
		die("send");
}

void
actor_ask(struct actor *us, struct actor *s, struct actor_msg *m)
{
	if (s->pid == 0) {
		actor_do(s, m);
		return;
	}
	actor_tell(s, m);
	answer(us, s, m);
}

void
actor_kill(struct actor *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->sock);
	s->pid = 0;
}
