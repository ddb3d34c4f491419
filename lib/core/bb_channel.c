/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion channels: create, destroy, consume an event, wait for an event. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <rte_pause.h>

#include "bb_channel.h"
#include "bb_core.h"

/*
 * Limits for a wait that runs a software device with progress=inline: rounds without an event
 * before the thread yields its core, and nanoseconds of each sleep. A peer that runs on the same
 * core is delayed by the thread's polling at most until the next sleep.
 */
#define IDLE_ROUNDS 4096
#define IDLE_NS     50000

int
bb_channel_create(struct bb_dev *dev, struct bb_channel **out)
{
	struct bb_channel *ch;
	int ret;

	if (dev == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	ch = bb_alloc(dev, "a completion channel", sizeof(*ch));
	if (ch == NULL)
		return -ENOMEM;
	ch->dev = dev;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->channel_create(ch);
	if (ret == 0)
		dev->channels++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(ch);
		return ret;
	}
	*out = ch;
	return 0;
}

int
bb_channel_destroy(struct bb_channel *ch)
{
	struct bb_dev *dev;
	int ret;

	if (ch == NULL)
		return -EINVAL;
	dev = ch->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	if (ch->cqs != 0) {
		BB_LOG(ERR,
		       "%s: the channel is not destroyed: %u CQ%s attached to it; destroy them "
		       "first",
		       dev->name, ch->cqs, ch->cqs == 1 ? " is" : "s are");
		ret = -EBUSY;
	} else {
		ret = dev->drv->channel_destroy(ch);
		if (ret == 0)
			dev->channels--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(ch);
	return ret;
}

int
bb_channel_fd(const struct bb_channel *ch)
{
	return ch != NULL ? ch->fd : -EINVAL;
}

int
bb_channel_get(struct bb_channel *ch, struct bb_cq **out)
{
	struct bb_cq *cq;
	int ret;

	if (ch == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(ch->dev);
	if (ret == 0)
		ret = ch->dev->drv->channel_get(ch, &cq);
	if (ret != 0)
		return ret;
	/*
	 * bb_cqring_arm() writes arm_sn to the device. A new value shows the device that the next
	 * arming is not a repetition.
	 */
	__atomic_fetch_add(&cq->arm_sn, 1, __ATOMIC_RELAXED);
	*out = cq;
	return 0;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns the milliseconds left until @end, rounded up; -1 if the wait has no time limit. */
static int
ms_left(uint64_t end)
{
	uint64_t now;

	if (end == UINT64_MAX)
		return -1;
	now = now_ns();
	return now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/* Sleeps for IDLE_NS. Returns -EINTR if a signal arrived. */
static int
nap(void)
{
	const struct timespec ts = {0, IDLE_NS};

	return nanosleep(&ts, NULL) != 0 ? -errno : 0;
}

/*
 * Waits for an event of a device that runs only inside calls of the queues' owner. So the function
 * must run the device again and again, and never sleeps longer than nap().
 */
static int
wait_inline(struct bb_channel *ch, uint64_t end, struct bb_cq **cq)
{
	uint32_t rounds;
	int ret;

	for (rounds = 1;; rounds++) {
		ch->dev->drv->progress(ch->dev);
		ret = bb_channel_get(ch, cq);
		if (ret != -EAGAIN)
			return ret;
		if (ms_left(end) == 0)
			return -EAGAIN;
		if (rounds < IDLE_ROUNDS) {
			rte_pause();
			continue;
		}
		ret = nap();
		if (ret != 0)
			return ret;
	}
}

static int
wait_fd(struct bb_channel *ch, uint64_t end, struct bb_cq **cq)
{
	struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};
	int ret;

	for (;;) {
		int left = ms_left(end);

		ret = poll(&pfd, 1, left);
		if (ret < 0)
			return -errno;
		/*
		 * The descriptor is also readable if the event belonged to a CQ that was destroyed.
		 * The call then returns -EAGAIN.
		 */
		ret = bb_channel_get(ch, cq);
		if (ret != -EAGAIN || left == 0)
			return ret;
	}
}

int
bb_channel_wait(struct bb_channel *ch, int timeout_ms, struct bb_cq **cq)
{
	uint64_t end = UINT64_MAX;
	int ret;

	if (ch == NULL || cq == NULL)
		return -EINVAL;
	ret = bb_process_owns(ch->dev);
	if (ret != 0)
		return ret;
	if (timeout_ms >= 0)
		end = now_ns() + (uint64_t)timeout_ms * 1000000u;
	return ch->run ? wait_inline(ch, end, cq) : wait_fd(ch, end, cq);
}
