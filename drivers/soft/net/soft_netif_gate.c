/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Keeps EAL's interrupt thread from changing a PMD during a burst. Some PMDs work on that thread
 * without a lock. Example: when the peer of a net_memif disconnects, memif_disconnect() of DPDK
 * 22.11 unmaps the rings on that thread. A thread in the middle of memif_tx() then gets SIGSEGV.
 *
 * EAL offers no hook around such work, so this file occupies the interrupt thread. An alarm of this
 * file makes the thread wait most of the time. The thread does all other work while it holds the
 * locks of the ports with such PMDs. It works for about 20 us, then the alarm fires again. No
 * engine waits for those locks.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_alarm.h>

#include "soft_ctl.h"
#include "soft_netif.h"

#define MOMENT_US 20
/*
 * Time that the interrupt thread waits in one call of the alarm. While a port is down the wait is
 * short, because the PMD needs a dozen calls to set up a connection. While all ports are up the
 * wait may be long, because a disconnection need not be noticed at once.
 */
#define WAIT_DOWN_US 500
#define WAIT_UP_US   20000
/*
 * Pauses between attempts to take all locks: FIRST_US, doubled after each of TRIES attempts, us. An
 * engine's turn takes some microseconds, or longer if the engine's thread waits for a CPU.
 */
#define FIRST_US    10
#define TRIES       6
#define BACK_OFF_US 20

/*
 * Protects the list "gated" and the flag "turning". Taken with no other lock held. The interrupt
 * thread takes it before the ports' locks.
 */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_netif) gated = LIST_HEAD_INITIALIZER(gated);
static bool turning;

/*
 * Nice value of the interrupt thread. If the thread waits for a CPU while it holds the locks, it
 * blocks the ports for all threads, up to a second on a busy machine. A requester's retries do not
 * last a second. So the thread has a higher priority while it holds the locks, if the process has
 * the right. The priority is not a real-time one, because the PMD's work spins on locks of EAL,
 * such as that of the heap. A thread that holds such a lock may wait for the same CPU, and must be
 * able to get it.
 */
#define HIGH_NICE (-10)

static struct {
	int nice;
	bool raised;
} normal_priority;

static void
raise_priority(void)
{
	errno = 0;
	/*
	 * On Linux each thread has its own nice value. This call reads that of the calling thread.
	 */
	normal_priority.nice = getpriority(PRIO_PROCESS, 0);
	normal_priority.raised = errno == 0 && normal_priority.nice > HIGH_NICE &&
				 setpriority(PRIO_PROCESS, 0, HIGH_NICE) == 0;
}

static void
restore_priority(void)
{
	if (normal_priority.raised && setpriority(PRIO_PROCESS, 0, normal_priority.nice) != 0)
		SOFT_LOG(ERR,
			 "cannot set EAL's interrupt thread back from nice value %d to its own %d: "
			 "%s",
			 HIGH_NICE, normal_priority.nice, strerror(errno));
	normal_priority.raised = false;
}

static void
set_gate(struct soft_netif *nif, enum soft_netif_gate to)
{
	__atomic_store_n(&nif->gate, to, __ATOMIC_RELEASE);
}

static enum soft_netif_gate
gate_of(const struct soft_netif *nif)
{
	return __atomic_load_n(&nif->gate, __ATOMIC_ACQUIRE);
}

/*
 * Takes a port's lock, or requests it. Returns true if the interrupt thread holds the lock.
 *
 * An engine that polls without a pause leaves almost no time between turns. Repeated trylock would
 * fail for milliseconds and burn a CPU that both threads may share. So the engine gets a request,
 * and passes the lock, still locked, at the end of its turn. If no engine holds the lock, trylock
 * succeeds.
 */
static bool
take(struct soft_netif *nif)
{
	if (nif->gate_holds)
		return true;
	if (!nif->gate_requested)
		__atomic_fetch_or(&nif->requests, SOFT_NETIF_WANTED, __ATOMIC_RELAXED);
	nif->gate_requested = true;
	if (__atomic_load_n(&nif->passed_on, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&nif->passed_on, false, __ATOMIC_RELAXED);
		nif->gate_holds = true;
	} else if (soft_netif_trylock(nif)) {
		__atomic_fetch_and(&nif->requests, ~SOFT_NETIF_WANTED, __ATOMIC_RELAXED);
		nif->gate_holds = true;
	}
	nif->gate_requested = !nif->gate_holds;
	return nif->gate_holds;
}

static void
give(struct soft_netif *nif)
{
	soft_netif_unlock(nif);
	nif->gate_holds = false;
}

/*
 * Withdraws the request for the lock. If an engine is already passing the lock, waits for that
 * engine.
 */
static void
withdraw_request(struct soft_netif *nif)
{
	if ((__atomic_fetch_and(&nif->requests, ~SOFT_NETIF_WANTED, __ATOMIC_RELAXED) &
	     SOFT_NETIF_WANTED) != 0)
		nif->gate_requested = false;
	else
		while (!take(nif))
			usleep(BACK_OFF_US);
}

static bool
take_each(void)
{
	struct soft_netif *nif;
	bool all = true;

	LIST_FOREACH(nif, &gated, gate_link)
		if (!take(nif))
			all = false;
	return all;
}

/* Tries to take all locks for a limited time, because the holder of one lock may want another. */
static bool
try_hard(void)
{
	struct soft_netif *nif;
	uint32_t i;

	raise_priority();
	for (i = 0; i < TRIES; i++) {
		if (take_each())
			return true;
		usleep(FIRST_US << i);
	}
	LIST_FOREACH(nif, &gated, gate_link) {
		if (nif->gate_requested)
			withdraw_request(nif);
		if (nif->gate_holds)
			give(nif);
	}
	restore_priority();
	return false;
}

static void
take_all(void)
{
	struct soft_netif *nif;

	while (!try_hard())
		usleep(WAIT_DOWN_US);
	LIST_FOREACH(nif, &gated, gate_link)
		if (gate_of(nif) == SOFT_NETIF_JOINS)
			set_gate(nif, SOFT_NETIF_GATED);
}

/*
 * Releases the locks of all ports whose PMD works on the interrupt thread. Skips ports in state
 * JOINS, because their lock is not held yet.
 */
static void
give_all(void)
{
	struct soft_netif *nif, *next;

	for (nif = LIST_FIRST(&gated); nif != NULL; nif = next) {
		next = LIST_NEXT(nif, gate_link);
		if (gate_of(nif) == SOFT_NETIF_JOINS)
			continue;
		give(nif);
		if (gate_of(nif) == SOFT_NETIF_GATED)
			continue;
		LIST_REMOVE(nif, gate_link);
		set_gate(nif, SOFT_NETIF_FREE);
	}
	restore_priority();
}

static uint32_t
wait_us(void)
{
	struct soft_netif *nif;

	if (LIST_EMPTY(&gated))
		return 0;
	LIST_FOREACH(nif, &gated, gate_link)
		if (gate_of(nif) != SOFT_NETIF_GATED ||
		    __atomic_load_n(&nif->dev->port_down, __ATOMIC_RELAXED))
			return WAIT_DOWN_US;
	return WAIT_UP_US;
}

/*
 * Alarm on the interrupt thread, which holds the locks of its ports while it works for their PMDs.
 * Releases the locks, waits, takes the locks again and sets the next alarm.
 */
static void
turn(void *arg)
{
	struct soft_netif *nif;
	uint32_t us;

	pthread_mutex_lock(&gate_lock);
	give_all();
	turning = !LIST_EMPTY(&gated);
	us = wait_us();
	pthread_mutex_unlock(&gate_lock);
	if (us == 0)
		return;
	usleep(us);
	pthread_mutex_lock(&gate_lock);
	take_all();
	if (rte_eal_alarm_set(MOMENT_US, turn, arg) != 0) {
		SOFT_LOG(ERR,
			 "out of memory for an EAL alarm: this process may crash if the process at "
			 "the other end of its port exits");
		LIST_FOREACH(nif, &gated, gate_link)
			set_gate(nif, SOFT_NETIF_LEAVES);
		give_all();
		turning = false;
	}
	pthread_mutex_unlock(&gate_lock);
}

int
soft_netif_gate_join(struct soft_netif *nif)
{
	int ret = 0;

	pthread_mutex_lock(&gate_lock);
	if (!turning)
		ret = rte_eal_alarm_set(1, turn, NULL);
	if (ret == 0) {
		turning = true;
		set_gate(nif, SOFT_NETIF_JOINS);
		LIST_INSERT_HEAD(&gated, nif, gate_link);
	}
	pthread_mutex_unlock(&gate_lock);
	while (ret == 0 && gate_of(nif) == SOFT_NETIF_JOINS)
		usleep(BACK_OFF_US);
	return ret;
}

void
soft_netif_gate_leave(struct soft_netif *nif)
{
	pthread_mutex_lock(&gate_lock);
	if (gate_of(nif) == SOFT_NETIF_GATED)
		set_gate(nif, SOFT_NETIF_LEAVES);
	pthread_mutex_unlock(&gate_lock);
	while (gate_of(nif) != SOFT_NETIF_FREE)
		usleep(BACK_OFF_US);
}
