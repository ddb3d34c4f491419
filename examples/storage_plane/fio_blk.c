/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bluebell.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "bb_blk.h"
#include "fio_blk.h"

#define MAX_ARGS 32
#define BURST    32u
#define WAIT_MS  30000u

struct fio_blk {
	struct bb_dev *dev;
	struct bb_blk *blk;
	struct bb_mr *mr;
	void *mem;
	bool threads;
};

static pthread_mutex_t eal_lock = PTHREAD_MUTEX_INITIALIZER;
static bool eal_runs, eal_stays;

/*
 * Starts EAL with one lcore on the first CPU of the thread's affinity mask. Restores the mask
 * afterwards, because fio decides on which CPUs a job runs.
 */
static int
start_eal(const char *args)
{
	static char text[512], lcore[16];
	char *argv[MAX_ARGS + 4] = {(char *)(uintptr_t) "fio"}, *save = NULL, *word;
	cpu_set_t before;
	int argc = 1, cpu = 0;

	CPU_ZERO(&before);
	(void)pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &before))
		cpu++;
	snprintf(lcore, sizeof(lcore), "0@%d", cpu);
	argv[argc++] = (char *)(uintptr_t) "--lcores";
	argv[argc++] = lcore;
	snprintf(text, sizeof(text), "%s", args);
	for (word = strtok_r(text, " ", &save); word != NULL && argc < MAX_ARGS;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	if (rte_eal_init(argc, argv) < 0)
		return rte_errno != 0 ? -rte_errno : -EINVAL;
	(void)pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return 0;
}

/*
 * Makes the calling thread an EAL thread. The first job of a process starts EAL and is its main
 * thread; other jobs register their threads.
 */
static int
join_eal(const char *args)
{
	int rc = 0;

	pthread_mutex_lock(&eal_lock);
	if (!eal_runs) {
		rc = start_eal(args);
		eal_runs = rc == 0;
		eal_stays = strstr(args, "net_memif") != NULL; /* see program_end() */
	} else if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0) {
		rc = -rte_errno;
	}
	pthread_mutex_unlock(&eal_lock);
	return rc;
}

/*
 * Unregisters a thread that join_eal() registered, because there are few lcore ids. EAL's main
 * thread stays.
 */
static void
leave_eal(void)
{
	if (rte_eal_lcore_role(rte_lcore_id()) == ROLE_NON_EAL)
		rte_thread_unregister();
}

int
fio_blk_open(const struct fio_blk_attr *attr, struct fio_blk **out, uint64_t *capacity,
	     uint32_t *depth, char *why, size_t len)
{
	struct bb_blk_attr blk = {.addr = attr->addr, .depth = attr->depth, .timeout_ms = WAIT_MS};
	struct fio_blk *f = calloc(1, sizeof(*f));
	int rc = f == NULL ? -ENOMEM : join_eal(attr->eal);

	if (rc != 0) {
		snprintf(why, len, "EAL did not start: %s", strerror(-rc));
		free(f);
		return rc;
	}
	f->threads = attr->threads;
	/* Only one thread at a time may create objects of devices. */
	pthread_mutex_lock(&eal_lock);
	rc = bb_dev_open(attr->device, &f->dev);
	if (rc != 0)
		snprintf(why, len, "device %s: %s; the lines above say why", attr->device,
			 strerror(-rc));
	else
		rc = bb_blk_open(f->dev, &blk, &f->blk, why, len);
	if (rc != 0 && f->dev != NULL)
		bb_dev_close(f->dev);
	pthread_mutex_unlock(&eal_lock);
	if (rc != 0) {
		leave_eal();
		free(f);
		return rc;
	}
	*capacity = bb_blk_shape(f->blk)->capacity;
	*depth = bb_blk_shape(f->blk)->depth;
	*out = f;
	return 0;
}

void
fio_blk_close(struct fio_blk *f)
{
	bool threads = f->threads;

	pthread_mutex_lock(&eal_lock);
	bb_blk_close(f->blk);
	bb_dev_close(f->dev);
	/* If jobs are threads, a later one may need EAL, which can start only once in a process. */
	if (!threads && !eal_stays)
		rte_eal_cleanup();
	else
		leave_eal();
	pthread_mutex_unlock(&eal_lock);
	free(f);
}

void *
fio_blk_alloc(struct fio_blk *f, size_t len)
{
	f->mem = rte_zmalloc("fio", len, 4096);
	if (f->mem != NULL && bb_blk_reg(f->blk, f->mem, len, &f->mr) != 0)
		fio_blk_free(f);
	return f->mem;
}

void
fio_blk_free(struct fio_blk *f)
{
	if (f->mr != NULL)
		(void)bb_blk_dereg(f->blk, f->mr);
	rte_free(f->mem);
	f->mr = NULL;
	f->mem = NULL;
}

int
fio_blk_submit(struct fio_blk *f, enum fio_blk_op op, void *mem, uint32_t len, uint64_t offset,
	       void *user)
{
	struct bb_blk_request req = {.op = BB_BLK_FLUSH, .user = user};

	if (op != FIO_BLK_FLUSH) {
		req.op = op == FIO_BLK_READ ? BB_BLK_READ : BB_BLK_WRITE;
		req.flags = op == FIO_BLK_WRITE_FUA ? BB_BLK_FUA : 0;
		req.mem = mem;
		req.mr = f->mr;
		req.length = len;
		req.offset = offset;
	}
	return bb_blk_submit(f->blk, &req);
}

void
fio_blk_ring(struct fio_blk *f)
{
	bb_blk_ring(f->blk);
}

uint32_t
fio_blk_poll(struct fio_blk *f, struct fio_blk_done *done, uint32_t n)
{
	struct bb_blk_done got[BURST];
	uint32_t i, m = bb_blk_poll(f->blk, got, n < BURST ? n : BURST);

	for (i = 0; i < m; i++)
		done[i] = (struct fio_blk_done){got[i].user, got[i].error};
	return m;
}

const char *
fio_blk_broken(const struct fio_blk *f)
{
	return bb_blk_broken(f->blk);
}
