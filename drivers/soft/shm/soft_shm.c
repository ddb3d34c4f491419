/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Membership of a device in a fabric (devices of several processes that share memory): joining,
 * leaving, and handling of the sockets.
 */
#define _GNU_SOURCE /* EPOLLRDHUP */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_own.h"
#include "soft_shm.h"

#define EVENTS 32
/* Interval of attempts to accept a connection while no file descriptor is free, ns. */
#define ACCEPT_RETRY_NS 100000000u

/* ---- GIDs and MACs */

bool
soft_shm_source(const struct soft_dev *dev, const uint8_t src[16], uint8_t *index)
{
	uint32_t i;

	for (i = 0; i < SOFT_SHM_GIDS; i++) {
		if (memcmp(dev->gids[i].raw, src, 16) == 0) {
			*index = (uint8_t)i;
			return true;
		}
	}
	return false;
}

void
soft_shm_mac(const uint8_t gid[16], uint8_t mac[6])
{
	uint32_t hash = 2166136261u, i;

	if (soft_ip_is_link_local(gid)) {
		memcpy(mac,
		       (const uint8_t[]){gid[8] ^ 2, gid[9], gid[10], gid[13], gid[14], gid[15]},
		       6);
		return;
	}
	/* FNV-1a hash of the GID */
	for (i = 0; i < 16; i++)
		hash = (hash ^ gid[i]) * 16777619u;
	mac[0] = 0x02;
	mac[1] = 0xbb;
	if (soft_ip_is_v4(gid))
		memcpy(mac + 2, gid + 12, 4);
	else
		memcpy(mac + 2, &hash, 4);
}

bool
soft_shm_gid(const struct soft_port_opts *o, uint32_t index, uint8_t gid[16])
{
	uint8_t mac[6];

	if (index > o->n_ip)
		return false;
	if (index == 0) {
		soft_shm_mac(o->ip[0].addr, mac);
		soft_port_link_local(mac, gid);
	} else {
		memcpy(gid, o->ip[index - 1].addr, 16);
	}
	return true;
}

/* ---- Log lines about disconnections */

const char soft_shm_died[] = "died";
const char soft_shm_closed[] = "closed its device";

static bool
connected(const struct soft_shm *shm, pid_t pid)
{
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++)
		if (shm->tx[i]->state != SOFT_SHM_IDLE && shm->tx[i]->pid == pid)
			return true;
	for (i = 0; i < shm->n_rx; i++)
		if (shm->rx[i]->state != SOFT_SHM_IDLE && shm->rx[i]->pid == pid)
			return true;
	return false;
}

void
soft_shm_log_end(const struct soft_shm *shm, pid_t pid, const char *why)
{
	if (why == NULL)
		return;
	if (why != soft_shm_died && why != soft_shm_closed)
		SOFT_LOG(NOTICE, "%s: closed the connection to process %d: %s", shm->dev->name,
			 (int)pid, why);
	else if (connected(shm, pid))
		return;
	else if (why == soft_shm_died)
		SOFT_LOG(ERR, "%s: process %d died", shm->dev->name, (int)pid);
	else
		SOFT_LOG(INFO, "%s: process %d closed its device", shm->dev->name, (int)pid);
}

void
soft_shm_send_bye(int sock)
{
	struct soft_shm_msg m;

	/* If the peer's socket is full, BYE is lost. The peer then logs that this process died. */
	soft_shm_msg_init(&m, SOFT_SHM_BYE);
	(void)soft_shm_send(sock, &m, NULL, 0);
}

/* ---- Joining and leaving */

void
soft_shm_watch(struct soft_shm *shm, int sock, uint32_t what)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = what};

	if (epoll_ctl(shm->epoll, EPOLL_CTL_ADD, sock, &ev) != 0)
		SOFT_LOG(ERR, "%s: cannot watch a shared-memory socket: epoll_ctl() failed: %s",
			 shm->dev->name, strerror(errno));
}

static int
listen_all(struct soft_shm *shm)
{
	const struct soft_port_opts *o = &shm->dev->opts.port;
	const char *name = shm->dev->name;
	uint8_t gid[16];
	pid_t pid;
	int ret;

	for (; soft_shm_gid(o, shm->n_listeners, gid); shm->n_listeners++) {
		int *sock = &shm->listener[shm->n_listeners];

		ret = soft_shm_listen(o->shm, gid, shm->slot, sock, &pid);
		if (ret == -EADDRINUSE) {
			SOFT_LOG(ERR,
				 "%s: shm=%s: process %d already uses the address of this device's "
				 "GID index %u: give every device of a fabric its own ip=",
				 name, o->shm, (int)pid, shm->n_listeners);
			return ret;
		}
		if (ret != 0) {
			SOFT_LOG(ERR, "%s: shm=%s: cannot create the socket of GID %u: %s", name,
				 o->shm, shm->n_listeners, strerror(-ret));
			return ret;
		}
		soft_shm_watch(shm, *sock, SOFT_SHM_EV_LISTENER | shm->n_listeners);
	}
	return 0;
}

static void
destroy(struct soft_shm *shm)
{
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++) {
		if (shm->tx[i]->state != SOFT_SHM_IDLE) {
			soft_shm_send_bye(shm->tx[i]->sock);
			soft_shm_tx_close(shm, shm->tx[i], NULL);
		}
		munmap((void *)(uintptr_t)shm->tx[i]->dir, sizeof(struct soft_shm_dir));
		free(shm->tx[i]);
	}
	for (i = 0; i < shm->n_rx; i++) {
		if (shm->rx[i]->state != SOFT_SHM_IDLE) {
			soft_shm_send_bye(shm->rx[i]->sock);
			soft_shm_rx_close(shm, shm->rx[i], NULL);
		}
		munmap((void *)(uintptr_t)shm->rx[i]->dir, sizeof(struct soft_shm_dir));
		munmap((void *)(uintptr_t)shm->rx[i]->ring.data, SOFT_RING_SIZE);
		free(shm->rx[i]);
	}
	for (i = 0; i < shm->n_listeners; i++)
		close(shm->listener[i]);
	soft_shm_groups_close(shm);
	soft_shm_slot_give(shm);
	soft_shm_segs_close(shm);
	if (shm->dir != NULL) {
		soft_shm_win_chores(shm, true);
		munmap(shm->dir, sizeof(*shm->dir));
		close(shm->dir_fd);
	}
	if (shm->epoll >= 0)
		close(shm->epoll);
	pthread_mutex_destroy(&shm->lock);
	free(shm);
}

int
soft_shm_start(struct soft_dev *dev)
{
	const char *fabric = dev->opts.port.shm;
	struct soft_shm *shm = calloc(1, sizeof(*shm));
	void *mem;
	int ret;

	if (shm == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for the shared-memory port", dev->name);
		return -ENOMEM;
	}
	soft_time_init();
	shm->dev = dev;
	pthread_mutex_init(&shm->lock, NULL);
	rte_ticketlock_init(&shm->casts.lock);
	shm->epoll = -1;
	ret = soft_shm_user_start(shm);
	if (ret != 0)
		goto fail;
	shm->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (shm->epoll < 0) {
		ret = -errno;
		SOFT_LOG(ERR, "%s: shm=%s: epoll_create1() failed: %s", dev->name, fabric,
			 strerror(-ret));
		goto fail;
	}
	ret = soft_shm_create(dev, "bluebell-dir", sizeof(*shm->dir), &shm->dir_fd, &mem);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: shm=%s: cannot create shared memory: %s%s", dev->name, fabric,
			 strerror(-ret),
			 ret == -EFBIG ? soft_own_file_hint(ret)
				       : ": memfd_create() with F_SEAL_FUTURE_WRITE needs Linux "
					 "5.1 or later");
		goto fail;
	}
	shm->dir = mem;
	shm->dir->fences = soft_shm_fenced();
	shm->dir->opening = rte_rdtsc();
	/*
	 * A device that does not share its addresses listens first, so that the log names the
	 * process that has an address.
	 */
	ret = dev->opts.port.host[0] != '\0' ? soft_shm_slot_take(shm) : 0;
	if (ret == 0)
		ret = listen_all(shm);
	if (ret == 0 && dev->opts.port.host[0] == '\0')
		ret = soft_shm_slot_take(shm);
	if (ret != 0)
		goto fail;
	dev->shm = shm;
	dev->share = &soft_shm_share;
	return 0;

fail:
	destroy(shm);
	return ret;
}

void
soft_shm_stop(struct soft_dev *dev)
{
	if (dev->shm != NULL)
		destroy(dev->shm);
	dev->shm = NULL;
	dev->share = NULL;
}

void
soft_shm_forget(struct soft_shm *shm)
{
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++)
		if (shm->tx[i]->state != SOFT_SHM_IDLE) {
			close(shm->tx[i]->sock);
			if (shm->tx[i]->pidfd >= 0)
				close(shm->tx[i]->pidfd);
		}
	for (i = 0; i < shm->n_rx; i++)
		if (shm->rx[i]->state != SOFT_SHM_IDLE)
			close(shm->rx[i]->sock);
	for (i = 0; i < shm->n_listeners; i++)
		close(shm->listener[i]);
	soft_shm_groups_close(shm);
	soft_shm_slot_give(shm);
	soft_shm_services_forget();
	close(shm->epoll);
	pthread_mutex_init(&shm->lock, NULL);
}

bool
soft_shm_sleep(struct soft_dev *dev, bool asleep)
{
	if (dev->shm == NULL)
		return true;
	if (!soft_shm_fenced())
		return false;
	__atomic_store_n(&dev->shm->dir->asleep, dev->shm->dir->asleep + 1, __ATOMIC_RELEASE);
	/*
	 * A peer stores a packet, and then loads "asleep". This device stores "asleep", and then
	 * looks for packets. The fence orders the two accesses on each side, so at least one
	 * side sees the store of the other.
	 */
	if (asleep)
		soft_shm_fence();
	return true;
}

/* ---- Periodic work */

/* Sets the epoll events of all listening sockets. */
static void
watch_listeners(struct soft_shm *shm, uint32_t events)
{
	struct epoll_event ev = {.events = events};
	uint32_t i;

	for (i = 0; i < shm->n_listeners; i++) {
		ev.data.u32 = SOFT_SHM_EV_LISTENER | i;
		(void)epoll_ctl(shm->epoll, EPOLL_CTL_MOD, shm->listener[i], &ev);
	}
	for (i = 0; i < RTE_DIM(shm->groups); i++) {
		ev.data.u32 = SOFT_SHM_EV_GROUP | i;
		if (shm->groups[i].used)
			(void)epoll_ctl(shm->epoll, EPOLL_CTL_MOD, shm->groups[i].listener, &ev);
	}
}

/*
 * Handles the result of soft_shm_rx_accept(). After an error the connection stays in the queue of
 * its socket, and would end each sleep of the device's thread. So the device then does not watch
 * the sockets for a while.
 */
static void
accepted(struct soft_shm *shm, int ret, uint64_t now)
{
	if (ret != 0 && ret != shm->accept_error)
		SOFT_LOG(ERR,
			 "%s: a process waits for its connection: accept4() failed: %s; retried "
			 "every %u ms; raise the limit of open files (ulimit -n)",
			 shm->dev->name, strerror(-ret), ACCEPT_RETRY_NS / 1000000);
	shm->accept_error = ret;
	if (ret == 0)
		return;
	shm->accept_at = now + soft_time_cycles(ACCEPT_RETRY_NS);
	watch_listeners(shm, 0);
}

void
soft_shm_chores(struct soft_shm *shm, uint64_t now)
{
	struct epoll_event ev[EVENTS];
	uint8_t gid[16];
	int i, n;

	/* If the lock is taken, another engine runs this function at the moment. */
	if (pthread_mutex_trylock(&shm->lock) != 0)
		return;
	__atomic_store_n(&shm->chores_at, now + soft_time_cycles(SOFT_SHM_CHORES_NS),
			 __ATOMIC_RELAXED);
	shm->running += RTE_MIN(now - shm->last_chores, soft_time_cycles(SOFT_SHM_GAP_NS));
	shm->last_chores = now;
	if (shm->accept_at != 0 && now >= shm->accept_at) {
		shm->accept_at = 0;
		watch_listeners(shm, EPOLLIN);
	}
	n = epoll_wait(shm->epoll, ev, EVENTS, 0);
	for (i = 0; i < n; i++) {
		uint32_t index = ev[i].data.u32 & 0xffff;

		switch (ev[i].data.u32 & 0xffff0000u) {
		case SOFT_SHM_EV_LISTENER:
			soft_shm_gid(&shm->dev->opts.port, index, gid);
			accepted(shm,
				 soft_shm_rx_accept(shm, shm->listener[index], gid, false, now),
				 now);
			break;
		case SOFT_SHM_EV_GROUP:
			accepted(shm,
				 soft_shm_rx_accept(shm, shm->groups[index].listener,
						    shm->groups[index].gid, true, now),
				 now);
			break;
		case SOFT_SHM_EV_RX:
			soft_shm_rx_event(shm, index);
			break;
		}
	}
	/*
	 * A peer may connect, send its last packets and close. The packets are known before the
	 * end of the connection to that peer is handled, because they may answer requests.
	 */
	for (i = 0; i < n; i++)
		if ((ev[i].data.u32 & 0xffff0000u) == SOFT_SHM_EV_TX)
			soft_shm_tx_event(shm, ev[i].data.u32 & 0xffff);
	soft_shm_tx_chores(shm, now);
	soft_shm_rx_chores(shm, now);
	soft_shm_casts_chores(shm, now);
	if (shm->old != NULL)
		soft_shm_win_chores(shm, false);
	pthread_mutex_unlock(&shm->lock);
}
