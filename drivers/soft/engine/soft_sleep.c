/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The sleep of an idle device's thread. While the thread sleeps, nothing polls the doorbells and
 * the rings of peers. So each cause of work must wake it:
 *
 * - A doorbell: the program's mappings of UAR pages are write-protected (struct soft_doorbell_ops).
 * - A peer's packet: the peer finds in the directory that this device is asleep, and sends WAKE.
 * - A message of a connection: the thread waits for the sockets, too.
 * - A command: it unlocks the engine, see soft_engine_unlock().
 *
 * A port (option port=) wakes no thread, so the thread of a device with a port naps instead.
 *
 * The thread first publishes that it is asleep, and then looks for work a last time. Work that
 * arrives after this last look finds the thread marked as asleep, and so wakes it.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_shm.h"
#include "soft_sleep.h"

/* Longest sleep, ms: limits the delay of periodic work, such as the timeout of a handshake. */
#define SLEEP_MS  100
#define MAX_PAGES 512u /* UAR pages of a device whose thread can sleep */
/* Limit of soft_engine.sleep_cost, ns. The time includes that of other threads on the CPU. */
#define MAX_COST_NS UINT64_C(50000000)

void
soft_sleep_by(struct mlx5_ctx *ctx, const struct soft_doorbell_ops *ops)
{
	__atomic_store_n(&((struct soft_ctx *)(void *)ctx)->dev->doorbells, ops, __ATOMIC_RELEASE);
}

void
soft_sleep_counts(const struct mlx5_ctx *ctx, uint64_t n[SOFT_WAKES])
{
	const struct soft_engine *e = ((const struct soft_ctx *)(const void *)ctx)->dev->engine;
	uint32_t i;

	for (i = 0; i < SOFT_WAKES; i++)
		n[i] = __atomic_load_n(&e->wakes[i], __ATOMIC_RELAXED);
}

/* Addresses of the device's own mappings of UAR pages. */
struct own_pages {
	uint32_t n;
	const void *at[MAX_PAGES];
};

/*
 * Gets the pages of an engine. Never waits for the lock: its holder may be preempted, and this
 * thread has nothing urgent to do. Returns false if the lock is taken, or there are too many pages.
 */
static bool
own_pages(struct soft_engine *e, struct own_pages *own)
{
	uint32_t i;

	if (!rte_ticketlock_trylock(&e->lock))
		return false;
	own->n = e->n_watch;
	for (i = 0; i < RTE_MIN(own->n, MAX_PAGES); i++)
		own->at[i] = e->watch[i]->uar->base;
	rte_ticketlock_unlock(&e->lock);
	return own->n <= MAX_PAGES;
}

static bool
same_pages(const struct own_pages *a, const struct own_pages *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof(a->at[0])) == 0;
}

static bool
is_own(void *arg, const void *at)
{
	const struct own_pages *own = arg;
	uint32_t i;

	for (i = 0; i < own->n; i++)
		if (own->at[i] == at)
			return true;
	return false;
}

/* Returns the ms until the next timer expires, at most SLEEP_MS. */
static int
until_timer(const struct soft_engine *e)
{
	const uint64_t at = __atomic_load_n(&e->next_deadline, __ATOMIC_RELAXED);
	const uint64_t now = soft_ticks(e->dev);

	if (at == SOFT_NO_DEADLINE || at - now > soft_time_cycles(SLEEP_MS * UINT64_C(1000000)))
		return at <= now ? 0 : SLEEP_MS;
	return (int)((at - now) / RTE_MAX(soft_time_cycles(1000000), UINT64_C(1)));
}

/* Sleeps until there is a reason to wake the thread. Returns at once if a last check finds work. */
static enum soft_wake
wait_for_work(struct soft_engine *e, int doorbells)
{
	struct pollfd fds[] = {
		{.fd = doorbells, .events = POLLIN},
		{.fd = e->wake_fd, .events = POLLIN},
		{.fd = e->dev->shm != NULL ? e->dev->shm->epoll : -1, .events = POLLIN},
	};
	const uint64_t work = e->work;
	int ms;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		ms = soft_engine_look(e) ? until_timer(e) : 0;
		if (e->work != work || __atomic_load_n(&e->pending, __ATOMIC_RELAXED) != 0 ||
		    ms == 0)
			return SOFT_WAKE_TIME;
		if (poll(fds, RTE_DIM(fds), ms) > 0)
			break;
	}
	return fds[0].revents != 0   ? SOFT_WAKE_DOORBELL
	       : fds[2].revents != 0 ? SOFT_WAKE_PEER
				     : SOFT_WAKE_COMMAND;
}

bool
soft_engine_sleep(struct soft_engine *e)
{
	const struct soft_doorbell_ops *ops = __atomic_load_n(&e->dev->doorbells, __ATOMIC_ACQUIRE);
	struct own_pages own, now;
	enum soft_wake cause;
	uint64_t unused, start, asleep = 0;
	bool slept;
	int fd;

	if (ops == NULL || e->wake_fd < 0 || e->dev->netif != NULL || until_timer(e) == 0 ||
	    __atomic_load_n(&e->pending, __ATOMIC_RELAXED) != 0)
		return false;
	start = rte_rdtsc();
	/* From here on, a thread that adds a page wakes this thread. */
	__atomic_store_n(&e->asleep, true, __ATOMIC_SEQ_CST);
	fd = own_pages(e, &own) ? ops->arm(is_own, &own) : -1;
	/*
	 * If a page was added during arm(), arm() may have protected the device's own mapping of
	 * that page, too. So sleep only if the pages are still the same.
	 */
	slept = fd >= 0 && own_pages(e, &now) && same_pages(&own, &now) &&
		soft_shm_sleep(e->dev, true);
	if (slept) {
		asleep = rte_rdtsc();
		cause = wait_for_work(e, fd);
		asleep = rte_rdtsc() - asleep;
		(void)soft_shm_sleep(e->dev, false);
		__atomic_fetch_add(&e->wakes[cause], 1, __ATOMIC_RELAXED);
	}
	if (fd >= 0)
		ops->disarm(fd);
	__atomic_store_n(&e->asleep, false, __ATOMIC_RELAXED);
	while (read(e->wake_fd, &unused, sizeof(unused)) > 0)
		;
	if (slept)
		e->sleep_cost =
			RTE_MIN(rte_rdtsc() - start - asleep, soft_time_cycles(MAX_COST_NS));
	return slept;
}

bool
soft_engine_scans(const struct soft_engine *e)
{
	uint32_t i;

	for (i = 0; i < e->n_watch; i++)
		if ((e->watch[i]->left | e->watch[i]->cq_left) != 0)
			return true;
	return false;
}
