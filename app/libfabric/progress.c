/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Runs the device, and passes the events of connections to the objects above.
 *
 * A thread does so for applications that do not read their queues for a while. A software device
 * executes the requests of its peers, and acknowledges them, only while a thread runs it. An
 * application runs the device when it reads a queue. If it has read none for a millisecond, this
 * thread runs the device. A read of a CQ does not run the CM, so the thread runs both after
 * CM_TICKS milliseconds of reads, too.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "eal_foreign.h"
#include "fab.h"

#define IDLE_MS  50 /* how long the thread sleeps while there is no endpoint */
#define CM_TICKS 10 /* sleeps of FAB_NAP_MS, after which the thread runs the CM in any case */

/* Reports connections whose QP has failed. Over TCP the CM itself detects the end of the peer. */
static void
read_async(struct fab_dev *d)
{
	struct bb_event ev;
	unsigned int i;

	for (i = 0; i < FAB_EVENTS && bb_event_get(d->dev, &ev) == 0; i++)
		if ((ev.type == BB_EVENT_QP_FATAL || ev.type == BB_EVENT_QP_ACCESS ||
		     ev.type == BB_EVENT_QP_REQUEST) &&
		    ev.qp != NULL && ev.qp->user != NULL)
			d->on->broken(ev.qp->user);
}

void
fab_dev_run(struct fab_dev *d)
{
	struct bb_cm_event event;
	struct fid *fid;
	unsigned int i;

	if (d->child)
		return;
	bb_cq_poll(d->idle, NULL, 0);
	if (d->rdma)
		read_async(d);
	for (i = 0; i < FAB_EVENTS && bb_cm_poll(d->cm, &event, 1) == 1; i++) {
		if (event.type == BB_CM_CONNECT_REQUEST) {
			d->on->request(d, &event);
			continue;
		}
		fid = bb_conn_user(event.conn);
		/*
		 * Ignore events of requests that are not accepted: their passive endpoint destroys
		 * them.
		 */
		if (fid != NULL && fid->fclass == FI_CLASS_EP)
			d->on->event(container_of(fid, struct fab_ep, fid.fid), &event);
	}
}

static void *
run(void *arg)
{
	struct fab_dev *d = arg;
	struct pollfd p = {.fd = d->stop, .events = POLLIN};
	uint64_t seen = 0, polls;
	unsigned int ticks = 0; /* sleeps since this thread last ran the device */
	bool active = false;

	while (poll(&p, 1, active ? FAB_NAP_MS : IDLE_MS) <= 0) {
		active = __atomic_load_n(&d->active, __ATOMIC_RELAXED) != 0;
		polls = __atomic_load_n(&d->polls, __ATOMIC_RELAXED);
		ticks++;
		if (active && (polls == seen || ticks >= CM_TICKS) && fab_trylock(d)) {
			fab_dev_run(d);
			fab_unlock(d);
			ticks = 0;
		}
		seen = polls;
	}
	return NULL;
}

int
fab_progress_start(struct fab_dev *d)
{
	int ret;

	if (!d->attr.software)
		return 0;
	d->stop = eventfd(0, EFD_CLOEXEC);
	if (d->stop < 0)
		return -errno;
	ret = eal_foreign_thread(&d->thread, run, d);
	if (ret != 0) {
		close(d->stop);
		return ret;
	}
	d->has_thread = true;
	return 0;
}

void
fab_progress_stop(struct fab_dev *d)
{
	const uint64_t one = 1;

	if (!d->has_thread)
		return;
	(void)!write(d->stop, &one, sizeof(one));
	pthread_join(d->thread, NULL);
	close(d->stop);
	d->has_thread = false;
}
