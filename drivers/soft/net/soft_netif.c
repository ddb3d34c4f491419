/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "soft_netif.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_ether.h>

#include "soft_ctl.h"

/*
 * Timeout as in Linux: three requests, one second apart. It also limits the wait for a link to come
 * up.
 */
#define RESOLVE_NS ((SOFT_NEIGH_TRIES + 1) * SOFT_NEIGH_RETRY_NS)
#define RESOLVE_US 20 /* Pause between two checks whether the MAC is known, us. */

/*
 * Protects the list of ports. A thread that holds this lock may take a port's lock, but no other
 * lock.
 */
static pthread_mutex_t netifs_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_netif) netifs = LIST_HEAD_INITIALIZER(netifs);

/* ---- The port's lock */

/*
 * Takes the port's lock from the engine that retains it between turns. Returns false if that engine
 * is in a turn.
 */
static bool
take_from_retainer(struct soft_netif *nif)
{
	struct soft_engine *k = __atomic_load_n(&nif->lock_retainer, __ATOMIC_ACQUIRE);
	bool took;

	if (k == NULL || !rte_ticketlock_trylock(&k->lock))
		return false;
	took = __atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) == k;
	if (took)
		__atomic_store_n(&nif->lock_retainer, NULL, __ATOMIC_RELAXED);
	rte_ticketlock_unlock(&k->lock);
	return took;
}

bool
soft_netif_trylock(struct soft_netif *nif)
{
	bool took;

	if (rte_spinlock_trylock(&nif->lock))
		return true;
	if (__atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) == NULL ||
	    !rte_spinlock_trylock(&nif->retainer_lock))
		return false;
	took = take_from_retainer(nif);
	rte_spinlock_unlock(&nif->retainer_lock);
	return took;
}

void
soft_netif_lock(struct soft_netif *nif)
{
	while (!soft_netif_trylock(nif))
		rte_pause();
}

void
soft_netif_pass(struct soft_netif *nif)
{
	__atomic_store_n(&nif->lock_retainer, NULL, __ATOMIC_RELAXED);
	if ((__atomic_load_n(&nif->requests, __ATOMIC_RELAXED) & SOFT_NETIF_WANTED) != 0 &&
	    (__atomic_fetch_and(&nif->requests, ~SOFT_NETIF_WANTED, __ATOMIC_RELAXED) &
	     SOFT_NETIF_WANTED) != 0)
		__atomic_store_n(&nif->passed_on, true, __ATOMIC_RELEASE);
	else
		soft_netif_unlock(nif);
}

void
soft_netif_leave(struct soft_engine *e)
{
	struct soft_netif *nif = e->dev->netif;

	if (nif == NULL)
		return;
	rte_ticketlock_lock(&e->lock);
	if (__atomic_load_n(&nif->lock_retainer, __ATOMIC_RELAXED) == e) {
		__atomic_store_n(&nif->lock_retainer, NULL, __ATOMIC_RELAXED);
		soft_netif_unlock(nif);
	}
	rte_ticketlock_unlock(&e->lock);
	/*
	 * Only one engine may be left, which may retain the lock. If several are left, the next one
	 * that finds the lock retained sets the flag again.
	 */
	__atomic_fetch_and(&nif->requests, ~SOFT_NETIF_SHARED, __ATOMIC_RELAXED);
	rte_spinlock_lock(&nif->retainer_lock);
	rte_spinlock_unlock(&nif->retainer_lock);
}

/* ---- Opening and closing a port */

/*
 * Takes and releases the port's lock once, so that all work that held the lock before has ended.
 * Used as soft_reader.pass.
 */
static void
pass(struct soft_reader *r)
{
	struct soft_netif *nif = container_of(r, struct soft_netif, reader);

	soft_netif_lock(nif);
	soft_netif_unlock(nif);
}

int
soft_netif_open(struct soft_dev *dev, const struct soft_port_ops *ops)
{
	struct soft_netif *nif = calloc(1, sizeof(*nif));
	struct soft_port_info info;
	int ret;

	if (nif == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for the port", dev->name);
		return -ENOMEM;
	}
	nif->dev = dev;
	rte_spinlock_init(&nif->lock);
	rte_spinlock_init(&nif->retainer_lock);
	soft_time_init();
	ret = soft_port_open(dev->name, &dev->opts.port, ops, nif, &nif->port);
	if (ret != 0) {
		free(nif);
		return ret;
	}
	soft_port_info(nif->port, &info);
	memcpy(dev->mac, info.mac, sizeof(dev->mac));
	dev->active_mtu = (uint32_t)__builtin_ctz(info.mtu) - 7;
	__atomic_store_n(&dev->port_down, !info.up, __ATOMIC_RELEASE);
	if (dev->flap.up != 0)
		soft_port_flap(nif->port, &dev->flap);
	ret = info.on_interrupts ? soft_netif_gate_join(nif) : 0;
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: out of memory for an EAL alarm of the port", dev->name);
		soft_port_close(nif->port);
		free(nif);
		return ret;
	}
	nif->refer = info.zero_copy && !info.retains_mbufs;
	nif->plain = soft_net_loses_only(dev);
	soft_port_hold_init(&nif->hold);
	dev->netif = nif;
	pthread_mutex_lock(&netifs_lock);
	LIST_INSERT_HEAD(&netifs, nif, link);
	pthread_mutex_unlock(&netifs_lock);
	nif->reader.pass = pass;
	soft_reader_add(&nif->reader);
	return 0;
}

/* Logs the numbers of frames received and sent, and of frames dropped by reason, one line each. */
static void
log_counts(const struct soft_netif *nif)
{
	const char *name = nif->dev->name;
	struct soft_port_stack_stats stack;
	struct soft_neigh_stats neigh;
	struct soft_port_stats port;
	char text[1024];
	size_t at = 0;
	uint32_t i;

	soft_port_stats(nif->port, &port, &stack, &neigh);
	SOFT_LOG(INFO,
		 "%s: port=%s: received %" PRIu64 " frames (%" PRIu64 " of RoCE); sent %" PRIu64
		 " frames (%" PRIu64 " without a copy, %" PRIu64
		 " copied because the PMD did not accept them at once); dropped %" PRIu64
		 " frames while the link was down and %" PRIu64
		 " to neighbours that did not respond; neighbour requests: %" PRIu64
		 " sent, %" PRIu64 " failed",
		 name, nif->dev->opts.port.name, port.rx_frames, stack.roce, port.tx_frames,
		 port.tx_zero_copy, port.tx_unsettled, port.tx_down, port.tx_unreachable,
		 neigh.asked, neigh.failed);
	for (i = 0; i < SOFT_DROPS && at < sizeof(text); i++)
		if (stack.drop[i] != 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %" PRIu64 " %s",
					       at != 0 ? "," : "", stack.drop[i],
					       soft_port_drop_str(i));
	if (at != 0)
		SOFT_LOG(INFO, "%s: port=%s: frames dropped:%s", name, nif->dev->opts.port.name,
			 text);
}

/*
 * Gives the peer time to read the last frames. Between two flushes the lock is free, so that EAL's
 * interrupt thread can take it.
 */
static void
linger(struct soft_netif *nif)
{
	bool again = true;
	uint32_t i;

	for (i = 0; i < SOFT_PORT_LINGER_NAPS && again; i++) {
		soft_netif_lock(nif);
		again = soft_port_lingers(nif->port);
		soft_netif_unlock(nif);
		if (again)
			usleep(SOFT_PORT_LINGER_US);
	}
}

void
soft_netif_close(struct soft_dev *dev)
{
	struct soft_netif *nif = dev->netif;

	if (nif == NULL)
		return;
	dev->netif = NULL;
	soft_reader_del(&nif->reader);
	pthread_mutex_lock(&netifs_lock);
	LIST_REMOVE(nif, link);
	pthread_mutex_unlock(&netifs_lock);
	/* A failed device is opened again by a poll loop, which must not wait for a peer. */
	if (!soft_fault_dead(dev))
		linger(nif);
	soft_netif_gate_leave(nif);
	log_counts(nif);
	soft_frames_close(nif);
	soft_port_close(nif->port);
	free(nif);
}

bool
soft_netif_drops(const struct soft_dev *dev, uint64_t drop[SOFT_DROPS])
{
	struct soft_port_stack_stats stack;
	struct soft_neigh_stats neigh;
	struct soft_port_stats port;
	struct soft_netif *nif;

	/*
	 * The lock of the list keeps @nif allocated; the port's lock stops changes of its counters.
	 */
	pthread_mutex_lock(&netifs_lock);
	LIST_FOREACH(nif, &netifs, link)
		if (nif->dev == dev)
			break;
	if (nif != NULL) {
		soft_netif_lock(nif);
		soft_port_stats(nif->port, &port, &stack, &neigh);
		soft_netif_unlock(nif);
		memcpy(drop, stack.drop, sizeof(stack.drop));
	}
	pthread_mutex_unlock(&netifs_lock);
	return nif != NULL;
}

void
soft_netif_poll_all(void)
{
	struct soft_netif *nif;

	pthread_mutex_lock(&netifs_lock);
	LIST_FOREACH(nif, &netifs, link) {
		if (!soft_netif_trylock(nif))
			continue;
		soft_port_poll(nif->port, soft_dev_ns(nif->dev));
		soft_netif_unlock(nif);
	}
	pthread_mutex_unlock(&netifs_lock);
}

static int
refuse(const struct soft_dev *dev, const uint8_t ip[16], enum soft_port_sent why)
{
	char text[INET6_ADDRSTRLEN];

	if (soft_ip_is_v4(ip))
		inet_ntop(AF_INET, ip + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip, text, sizeof(text));
	if (why == SOFT_PORT_DOWN) {
		SOFT_LOG(ERR, "%s: cannot resolve %s: the link of port=%s is down", dev->name, text,
			 dev->opts.port.name);
		return -ENETDOWN;
	}
	SOFT_LOG(ERR,
		 "%s: no answer from %s on port=%s: check that the peer is up, polls its device, "
		 "and is in the network of an ip=. Give neigh=%s@MAC if the peer is in another "
		 "network or answers no ARP or neighbour solicitation",
		 dev->name, text, dev->opts.port.name, text);
	return -EHOSTUNREACH;
}

static enum soft_port_sent
look(struct soft_dev *dev, const uint8_t ip[16], uint8_t mac[6])
{
	struct soft_netif *nif = dev->netif;
	struct soft_port_info info;
	enum soft_port_sent why;

	soft_netif_lock(nif);
	soft_port_info(nif->port, &info);
	why = info.up ? soft_port_reach(nif->port, ip, soft_dev_ns(dev), mac) : SOFT_PORT_DOWN;
	soft_port_flush(nif->port);
	soft_netif_unlock(nif);
	return why;
}

int
soft_netif_ready(struct soft_dev *dev, const uint8_t ip[16])
{
	enum soft_port_sent why;
	uint8_t mac[6];

	why = look(dev, ip, mac);
	if (why == SOFT_PORT_SENT)
		return 0;
	if (why == SOFT_PORT_UNREACHABLE)
		return refuse(dev, ip, why);
	/*
	 * Polling may bring up a link, such as that of a memif peer that has just started. All
	 * ports are polled, because the replying device may be another device of this thread.
	 */
	soft_netif_poll_all();
	return -EAGAIN;
}

int
soft_netif_resolve(struct soft_dev *dev, const uint8_t ip[16], uint8_t mac[6])
{
	uint64_t end = soft_dev_ns(dev) + RESOLVE_NS;
	enum soft_port_sent why;

	for (;;) {
		why = look(dev, ip, mac);
		if (why == SOFT_PORT_SENT)
			return 0;
		if (why == SOFT_PORT_UNREACHABLE || soft_dev_ns(dev) > end)
			return refuse(dev, ip, why);
		/*
		 * All ports are polled, because the replying device may be another device of this
		 * thread.
		 */
		soft_netif_poll_all();
		usleep(RESOLVE_US);
	}
}
