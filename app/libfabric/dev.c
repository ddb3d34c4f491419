/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Starts EAL in a process that knows nothing of DPDK, and opens the device of the provider. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_log.h>

#include "eal_foreign.h"
#include "fab.h"

#define TRIES    4096u
#define HOSTS    65534u
#define MAX_SPEC 1024

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_dev *the_dev;

static void
add_args(struct eal_argv *a, const char *given)
{
	char *words = strdup(given != NULL ? given : "--no-huge -m 256 --no-shconf --no-pci");
	char *word, *save = NULL;

	eal_argv_add(a, "--log-level=lib.eal:warning");
	eal_argv_add(a, "--no-telemetry");
	if (words == NULL)
		a->error = -ENOMEM;
	else
		for (word = strtok_r(words, " ", &save); word != NULL;
		     word = strtok_r(NULL, " ", &save))
			eal_argv_add(a, word);
	free(words);
}

static void *
start_eal(void *ret)
{
	*(int *)ret = eal_foreign_start(add_args, fab_param("eal"));
	return NULL;
}

static int
eal(void)
{
	pthread_t thread;
	int started, ret = eal_foreign_thread(&thread, start_eal, &started);

	if (ret == 0) {
		pthread_join(thread, NULL);
		ret = started;
	}
	if (ret != 0)
		FAB_WARN(FABRIC,
			 "EAL cannot start: %s; FI_BLUEBELL_EAL sets EAL's arguments, for example "
			 "\"--no-huge -m 256 --no-shconf\"\n",
			 strerror(-ret));
	return ret;
}

/*
 * Opens the software device at a free address of 10.88.0.0/16, the network that bb_verbs uses. The
 * search starts at a number that depends on the process.
 */
static int
open_at_free_address(const char *spec, struct bb_dev **dev)
{
	const uint32_t level = rte_log_get_global_level();
	char all[MAX_SPEC + 32];
	int ret = -EADDRINUSE;
	unsigned int i, host;

	for (i = 0; i < TRIES && ret == -EADDRINUSE; i++) {
		host = ((unsigned int)getpid() + i) % HOSTS + 1;
		snprintf(all, sizeof(all), "%s,ip=10.88.%u.%u/16", spec, host >> 8, host & 255);
		/* An address in use is no error here, so Bluebell must not log it. */
		rte_log_set_global_level(RTE_LOG_EMERG);
		ret = bb_dev_open(all, dev);
		rte_log_set_global_level(level);
	}
	/*
	 * If the open failed for another reason than an address in use, opens the device once more
	 * with the normal log level, so that the error is logged.
	 */
	return ret == 0 || ret == -EADDRINUSE ? ret : bb_dev_open(all, dev);
}

static int
open_device(struct bb_dev **dev)
{
	const char *given = fab_param("device");
	char spec[MAX_SPEC];
	int ret;

	if (given == NULL)
		snprintf(spec, sizeof(spec), "soft0,shm=libfabric-%u", (unsigned int)getuid());
	else if (snprintf(spec, sizeof(spec), "%s", given) >= MAX_SPEC)
		return -ENAMETOOLONG;
	ret = strstr(spec, ",shm=") != NULL && strstr(spec, ",ip=") == NULL
		      ? open_at_free_address(spec, dev)
		      : bb_dev_open(spec, dev);
	if (ret != 0)
		FAB_WARN(FABRIC,
			 "device \"%s\" cannot be opened: %s; FI_BLUEBELL_DEVICE names the device, "
			 "for example mlx5_0 or \"soft0,shm=NAME\"\n",
			 spec, strerror(-ret));
	return ret;
}

/* Creates the CM: for messages of librdmacm if d->rdma is true and the device supports them. */
static int
open_cm(struct fab_dev *d)
{
	struct bb_cm_attr cm;
	int ret;

	bb_cm_attr_init(&cm);
	cm.poll_us = 0;
	cm.transport = d->rdma ? BB_CM_RDMA : BB_CM_TCP;
	ret = bb_cm_create(d->dev, &cm, &d->cm);
	if (ret != -ENOTSUP || !d->rdma || fab_param("cm") != NULL)
		return ret;
	FAB_WARN(FABRIC, "the device has no messages of librdmacm, so connections use TCP\n");
	d->rdma = false;
	cm.transport = BB_CM_TCP;
	return bb_cm_create(d->dev, &cm, &d->cm);
}

static int
open_all(struct fab_dev *d)
{
	struct bb_cq_attr cq;
	int ret;

	ret = fab_transport(&d->rdma);
	if (ret != 0)
		return ret;
	ret = eal();
	if (ret != 0)
		return ret;
	ret = open_device(&d->dev);
	if (ret != 0)
		return ret;
	ret = bb_dev_query(d->dev, &d->attr);
	if (ret != 0)
		goto close;
	d->lcore = rte_get_main_lcore();
	ret = open_cm(d);
	if (ret != 0)
		goto close;
	bb_cq_attr_init(&cq);
	cq.lcore = d->lcore;
	ret = bb_cq_create(d->dev, &cq, &d->idle);
	if (ret != 0)
		goto destroy_cm;
	ret = fab_progress_start(d);
	if (ret != 0)
		goto destroy_cq;
	return 0;

destroy_cq:
	bb_cq_destroy(d->idle);
destroy_cm:
	bb_cm_destroy(d->cm);
close:
	bb_dev_close(d->dev);
	return ret;
}

static void
before_fork(void)
{
	pthread_mutex_lock(&open_lock);
}

static void
in_parent(void)
{
	pthread_mutex_unlock(&open_lock);
}

/*
 * Runs in a child after fork(). The child shares the device's memory and descriptors with its
 * parent, so it must not use them, not even to read. From now on posts fail, reads return no new
 * entries, and a close frees only the child's own memory. Releases the device's lock, which may
 * have been held by a thread that does not exist in the child.
 */
static void
in_child(void)
{
	struct fab_dev *d = the_dev;
	struct fab_pep *p;
	struct fab_ep *ep;

	pthread_mutex_unlock(&open_lock);
	if (d == NULL)
		return;
	fab_unlock(d);
	d->child = true;
	LIST_FOREACH(ep, &d->eps, next) {
		ep->qp = NULL;
		ep->conn = NULL;
		ep->request = NULL;
	}
	LIST_FOREACH(p, &d->peps, next)
		p->listener = NULL;
	LIST_INIT(&d->requests);
}

static void
watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

/* Checks that process @pid, which has opened the device or had it open, is the caller. */
static int
check_process(pid_t pid)
{
	if (pid == getpid())
		return 0;
	FAB_WARN(
		FABRIC,
		"process %d has opened the device before fork(): only that process can use it; open "
		"the fabric after fork(), or let the child call exec()\n",
		(int)pid);
	return -FI_EOPNOTSUPP;
}

int
fab_dev_check(const struct fab_dev *d)
{
	return check_process(d->pid);
}

int
fab_dev_get(const struct fab_on *on, struct fab_dev **dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static pid_t opened_by; /* a child has EAL's memory, but none of its threads */

	struct fab_dev *d;
	int ret = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&open_lock);
	if (opened_by != 0)
		ret = check_process(opened_by);
	if (ret != 0)
		goto unlock;
	if (the_dev != NULL) {
		the_dev->refs++;
		*dev = the_dev;
		goto unlock;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		ret = -ENOMEM;
		goto unlock;
	}
	d->on = on;
	LIST_INIT(&d->eps);
	LIST_INIT(&d->peps);
	LIST_INIT(&d->requests);
	ret = open_all(d);
	if (ret != 0) {
		free(d);
		goto unlock;
	}
	d->refs = 1;
	d->pid = opened_by = getpid();
	the_dev = *dev = d;
unlock:
	pthread_mutex_unlock(&open_lock);
	return ret;
}

void
fab_dev_put(struct fab_dev *d)
{
	pthread_mutex_lock(&open_lock);
	if (--d->refs == 0 && d->pid == getpid()) {
		the_dev = NULL;
		fab_progress_stop(d);
		while (!LIST_EMPTY(&d->requests))
			d->on->drop(LIST_FIRST(&d->requests));
		bb_cq_destroy(d->idle);
		bb_cm_destroy(d->cm);
		bb_dev_close(d->dev);
		free(d);
	}
	pthread_mutex_unlock(&open_lock);
}

void
fab_dev_exit(void)
{
	pthread_mutex_lock(&open_lock);
	/* A child has a copy of the device's state, but not its thread. */
	if (the_dev != NULL && the_dev->pid == getpid())
		fab_progress_stop(the_dev);
	pthread_mutex_unlock(&open_lock);
}
