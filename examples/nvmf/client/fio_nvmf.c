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

#include "fio_nvmf.h"

#define MAX_ARGS 32

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
		eal_stays = strstr(args, "net_memif") != NULL; /* program_end() says why */
	} else if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0) {
		rc = -rte_errno;
	}
	pthread_mutex_unlock(&eal_lock);
	return rc;
}

/*
 * Unregisters a thread that join_eal() registered, so that another thread can get its lcore id.
 * EAL's main thread stays registered.
 */
static void
leave_eal(void)
{
	if (rte_eal_lcore_role(rte_lcore_id()) == ROLE_NON_EAL)
		rte_thread_unregister();
}

int
fio_nvmf_open(struct fio_nvmf *f, const struct fio_nvmf_attr *attr, char *why, size_t len)
{
	int rc = join_eal(attr->eal);

	if (rc != 0) {
		snprintf(why, len, "EAL did not start: %s", strerror(-rc));
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
		rc = bb_nvmf_open(f->dev, &attr->nvmf, &f->nvmf, why, len);
	if (rc != 0 && f->dev != NULL)
		bb_dev_close(f->dev);
	pthread_mutex_unlock(&eal_lock);
	if (rc != 0)
		leave_eal();
	return rc;
}

void
fio_nvmf_close(struct fio_nvmf *f)
{
	pthread_mutex_lock(&eal_lock);
	bb_nvmf_close(f->nvmf);
	bb_dev_close(f->dev);
	/* If jobs are threads, a later one may need EAL, which can start only once in a process. */
	if (!f->threads && !eal_stays)
		rte_eal_cleanup();
	else
		leave_eal();
	pthread_mutex_unlock(&eal_lock);
}

void *
fio_nvmf_alloc(struct fio_nvmf *f, size_t len)
{
	f->mem = rte_zmalloc("fio", len, 4096);
	if (f->mem != NULL && bb_nvmf_reg(f->nvmf, f->mem, len, &f->mr) != 0)
		fio_nvmf_free(f);
	return f->mem;
}

void
fio_nvmf_free(struct fio_nvmf *f)
{
	if (f->mr != NULL)
		(void)bb_nvmf_dereg(f->nvmf, f->mr);
	rte_free(f->mem);
	f->mr = NULL;
	f->mem = NULL;
}
