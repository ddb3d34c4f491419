/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Process events on a kernel device: children forked during traffic, and signals that interrupt
 * waits.
 *
 *   verbs_life EAL-OPTIONS -- DEVICE [init]
 *
 * With "init" it calls ibv_fork_init() before it registers memory. The registered memory is like
 * malloc()'s and not shared with a child. Some children write to all of it and exit, some live
 * on, some execute other programs.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "self.h"

#define SIZE   65536u /* of each half of the memory */
#define ROUNDS 24
#define WAIT_S 60

static uint8_t *mem;
static struct self self;

/* Waits by events: no signal makes it lose one. */
static int
completion(void)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	struct bb_cq *cq;
	struct bb_wc wc;
	int rc;

	while (bb_cq_poll(self.cq, &wc, 1) == 0) {
		if (rte_get_tsc_cycles() > end)
			return -ETIMEDOUT;
		rc = bb_cq_arm(self.cq, false);
		if (rc == 0)
			rc = bb_channel_wait(self.ch, WAIT_S * 1000, &cq);
		if (rc != 0 && rc != -EINTR)
			return rc;
	}
	return wc.status == BB_WC_SUCCESS ? 0 : -EIO;
}

static int
write_half(uint8_t byte)
{
	const struct bb_sge sge = {(uintptr_t)mem, SIZE, self.mr->lkey};

	memset(mem, byte, SIZE);
	if (bb_post_write(self.qp, byte, &sge, 1, (uintptr_t)mem + SIZE, self.mr->rkey,
			  BB_SEND_SIGNALED) != 0)
		return -EAGAIN;
	bb_qp_ring(self.qp);
	return 0;
}

static void
child(int kind)
{
	memset(mem, 0xee, 2 * SIZE);
	if (kind == 1)
		sleep(600);
	if (kind == 2)
		execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
	_exit(0);
}

static int
forks(void)
{
	pid_t pids[ROUNDS];
	int i, rc = 0;

	for (i = 0; i < ROUNDS && rc == 0; i++) {
		/* Forks before or after a post. */
		if (i % 2 == 0)
			rc = write_half((uint8_t)(i + 1));
		pids[i] = fork();
		if (pids[i] == 0)
			child(i % 3);
		if (i % 2 != 0)
			rc = write_half((uint8_t)(i + 1));
		if (rc == 0)
			rc = completion();
		for (uint32_t k = 0; rc == 0 && k < 2 * SIZE; k++)
			if (mem[k] != i + 1)
				rc = -EILSEQ;
	}
	printf("%d children: %s\n", i, strerror(-rc));
	while (i-- > 0) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return rc;
}

static volatile sig_atomic_t got;

static void
on_signal(int sig)
{
	got = sig;
}

/* A wait without an event, which SIGINT interrupts repeatedly; then one with an event. */
static int
signals(void)
{
	const struct sigaction act = {.sa_handler = on_signal};
	const pid_t parent = getpid();
	struct bb_cq *cq;
	pid_t pid;
	int rc;

	sigaction(SIGINT, &act, NULL);
	pid = fork();
	if (pid == 0)
		for (;;) {
			const struct timespec ts = {0, 5000000};

			nanosleep(&ts, NULL);
			if (kill(parent, SIGINT) != 0)
				_exit(0);
		}
	rc = bb_cq_arm(self.cq, false);
	if (rc == 0)
		rc = bb_channel_wait(self.ch, -1, &cq);
	printf("a wait: %s\n", strerror(-rc));
	rc = rc == -EINTR && got == SIGINT ? 0 : -EPROTO;
	if (rc == 0)
		rc = write_half(0x55);
	if (rc == 0)
		rc = completion();
	/* Still under signals. */
	if (rc == 0)
		rc = self_close(&self);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

int
main(int argc, char **argv)
{
	int args = rte_eal_init(argc, argv), rc;
	uint8_t gid;

	if (args < 0 || argc - args < 2)
		return 2;
	if (argc - args > 2 && ibv_fork_init() != 0)
		return 2;
	mem = mmap(NULL, (size_t)2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (mem == MAP_FAILED)
		return 2;
	rc = self_open(&self, argv[args + 1], mem, (size_t)2 * SIZE, &gid);
	if (rc == 0)
		rc = forks();
	if (rc == 0)
		rc = signals();
	printf("%s\n", strerror(-rc));
	return rc != 0;
}
