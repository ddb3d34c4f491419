/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections that peers make to a device, to send packets to the device. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_shm.h"

/*
 * Limits for one event of a listening socket. At most LOOKS connections are taken from the queue to
 * check their users. At most ACCEPTS connections of trusted users are accepted. Both limits protect
 * against a process that connects without end. LOOKS is higher, because a check is cheaper, and
 * because untrusted connections in the queue keep peers out.
 */
#define ACCEPTS 16
#define LOOKS   64
/* Interval of log lines about untrusted users, ns. */
#define UNTRUSTED_NS UINT64_C(1000000000)

/*
 * Returns the index of an unused entry for a connection from a peer. If there is none, adds one.
 * Returns -1 if the table or the memory is full, or if multicast groups have their share of the
 * table.
 */
static int
free_slot(struct soft_shm *shm, bool group)
{
	uint32_t i, unused = UINT32_MAX, groups = 0;
	struct soft_shm_rx *rx;

	for (i = 0; i < shm->n_rx; i++) {
		if (shm->rx[i]->state == SOFT_SHM_IDLE)
			unused = RTE_MIN(unused, i);
		else
			groups += shm->rx[i]->n_group_gids != 0;
	}
	if (group && groups >= SOFT_SHM_GROUP_PEERS)
		return -1;
	if (unused != UINT32_MAX)
		return (int)unused;
	if (shm->n_rx == SOFT_SHM_PEERS)
		return -1;
	rx = calloc(1, sizeof(*rx));
	if (rx == NULL)
		return -1;
	rx->dir = soft_shm_reserve(shm->dev, sizeof(*rx->dir));
	rx->ring.data = soft_shm_reserve(shm->dev, SOFT_RING_SIZE);
	if (rx->dir == NULL || rx->ring.data == NULL) {
		if (rx->dir != NULL)
			munmap((void *)(uintptr_t)rx->dir, sizeof(*rx->dir));
		if (rx->ring.data != NULL)
			munmap((void *)(uintptr_t)rx->ring.data, SOFT_RING_SIZE);
		free(rx);
		return -1;
	}
	rte_ticketlock_init(&rx->lock);
	shm->rx[shm->n_rx] = rx;
	__atomic_store_n(&shm->n_rx, shm->n_rx + 1, __ATOMIC_RELEASE);
	return (int)shm->n_rx - 1;
}

void
soft_shm_rx_close(struct soft_shm *shm, struct soft_shm_rx *rx, const char *why)
{
	/*
	 * Counts the last requests that the peer executed in this device's memory, because the
	 * directory with their counts is unmapped below. A connection to a group has no such
	 * requests.
	 */
	if (rx->state == SOFT_SHM_UP && rx->n_gids != 0)
		soft_shm_collect_all(shm);
	rte_ticketlock_lock(&rx->lock);
	__atomic_store_n(&rx->state, SOFT_SHM_IDLE, __ATOMIC_RELEASE);
	rx->leaving = NULL;
	soft_shm_unmap(SOFT_RING_SIZE, rx->ring.data);
	rte_ticketlock_unlock(&rx->lock);
	soft_shm_unmap(sizeof(*rx->dir), rx->dir);
	close(rx->sock);
	/* A process that sends no more to a group does not close its device. */
	soft_shm_log_end(shm, rx->pid,
			 rx->n_group_gids != 0 && why == soft_shm_closed ? NULL : why);
}

/*
 * Sends a refusal, before or after the peer's HELLO. The peer's soft_shm_recv() finds the refusal
 * in both cases.
 */
static void
refuse(int sock, enum soft_shm_refusal why)
{
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_REFUSED);
	m.u.refused.why = why;
	(void)soft_shm_send(sock, &m, NULL, 0);
	close(sock);
}

/*
 * Logs a refused user. The rate of lines is limited, because any user of the host can connect
 * without end.
 */
static void
log_untrusted(struct soft_shm *shm, pid_t pid, uid_t uid, uint64_t now)
{
	char hint[SOFT_SHM_HINT];

	if (shm->last_untrusted_log != 0 &&
	    now - shm->last_untrusted_log < soft_time_cycles(UNTRUSTED_NS)) {
		shm->unlogged_untrusted++;
		return;
	}
	if (shm->unlogged_untrusted != 0)
		SOFT_LOG(WARNING, "%s: rejected %u more connections of users that are not trusted",
			 shm->dev->name, shm->unlogged_untrusted);
	SOFT_LOG(WARNING, "%s: rejected process %d of user %u, which is not trusted: %s",
		 shm->dev->name, (int)pid, (unsigned int)uid, soft_shm_user_hint(shm, uid, hint));
	shm->last_untrusted_log = now;
	shm->unlogged_untrusted = 0;
}

/* Accepts a connection on @sock. Returns false if the connecting user is not trusted. */
static bool
accept_caller(struct soft_shm *shm, int sock, const uint8_t gid[16], bool group, uint64_t now)
{
	struct soft_shm_rx *rx;
	pid_t pid = 0;
	uid_t uid = 0;
	int slot;

	if (soft_shm_user(shm, sock, &pid, &uid) != 0) {
		log_untrusted(shm, pid, uid, now);
		refuse(sock, SOFT_SHM_REFUSED_USER);
		return false;
	}
	slot = free_slot(shm, group);
	if (slot < 0) {
		if (!group || soft_shm_group_log_due(shm, now))
			SOFT_LOG(
				ERR,
				"%s: rejected the connection of process %d: the device already has "
				"%u %s",
				shm->dev->name, (int)pid,
				group ? SOFT_SHM_GROUP_PEERS : (unsigned int)SOFT_SHM_PEERS,
				group ? "senders to its multicast groups" : "peers");
		refuse(sock, SOFT_SHM_REFUSED_FULL);
		return true;
	}
	rx = shm->rx[slot];
	rx->sock = sock;
	rx->pid = pid;
	rx->give_up = now + soft_time_cycles(SOFT_SHM_PATIENCE_S * UINT64_C(1000000000));
	memcpy(rx->dst, gid, sizeof(rx->dst));
	rx->n_group_gids = group;
	__atomic_store_n(&rx->state, SOFT_SHM_HANDSHAKE, __ATOMIC_RELEASE);
	soft_shm_watch(shm, sock, SOFT_SHM_EV_RX | (uint32_t)slot);
	/* HELLO usually arrives with the connection, so this call reads it at once. */
	soft_shm_rx_event(shm, (uint32_t)slot);
	return true;
}

int
soft_shm_rx_accept(struct soft_shm *shm, int listener, const uint8_t gid[16], bool group,
		   uint64_t now)
{
	int sock, i, ret, taken = 0;

	for (i = 0; i < LOOKS && taken < ACCEPTS; i++) {
		ret = soft_shm_accept(listener, &sock);
		if (ret != 0)
			return ret == -EAGAIN ? 0 : ret;
		taken += accept_caller(shm, sock, gid, group, now);
	}
	return 0;
}

static const char *
process_hello(struct soft_shm *shm, uint32_t slot, const struct soft_shm_msg *m, const int *fds)
{
	struct soft_shm_rx *rx = shm->rx[slot];
	uint64_t *head = &shm->dir->head[slot].v;
	struct soft_shm_msg answer;
	int ret;

	if (rx->state != SOFT_SHM_HANDSHAKE)
		return "it sent HELLO twice";
	if (soft_shm_map(fds[0], sizeof(*rx->dir), rx->dir) != 0 ||
	    soft_shm_map(fds[1], SOFT_RING_SIZE, rx->ring.data) != 0)
		return "its shared memory cannot be mapped with the expected size";
	rx->n_gids = rx->n_group_gids != 0 ? 0 : m->u.hello.n_gids;
	rx->n_group_gids = m->u.hello.n_gids - rx->n_gids;
	memcpy(rx->gids, m->u.hello.gids, sizeof(rx->gids));
	__atomic_store_n(head, 0, __ATOMIC_RELAXED);
	soft_shm_msg_init(&answer, SOFT_SHM_WELCOME);
	answer.u.welcome.slot = slot;
	ret = soft_shm_send(rx->sock, &answer, &shm->dir_fd, 1);
	/* The packets of a peer that has closed meanwhile must still arrive. */
	if (ret != 0 && ret != -EPIPE && ret != -ECONNRESET)
		return "this process cannot send WELCOME to it";
	rte_ticketlock_lock(&rx->lock);
	soft_ring_rx_init(&rx->ring, rx->ring.data, head);
	__atomic_store_n(&rx->state, SOFT_SHM_UP, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&rx->lock);
	memset(rx->seg_rev, 0, sizeof(rx->seg_rev));
	rx->seg_changes = shm->seg_changes - 1;
	soft_shm_segs_send(shm, rx);
	return NULL;
}

void
soft_shm_rx_event(struct soft_shm *shm, uint32_t index)
{
	struct soft_shm_rx *rx = shm->rx[index];
	int fds[SOFT_SHM_MAX_FDS], ret, i;
	struct soft_shm_msg m;
	const char *why = NULL;

	if (rx->state == SOFT_SHM_IDLE || rx->leaving != NULL)
		return;
	ret = soft_shm_recv(rx->sock, false, &m, fds, &why);
	if (ret == 0)
		return;
	if (ret == 1) {
		/*
		 * A WAKE needs no action here: the turn that calls this function reads the ring
		 * anyway.
		 */
		why = m.type == SOFT_SHM_BYE    ? soft_shm_closed
		      : m.type == SOFT_SHM_WAKE ? NULL
						: process_hello(shm, index, &m, fds);
		for (i = 0; i < SOFT_SHM_MAX_FDS && fds[i] >= 0; i++)
			close(fds[i]);
	} else if (ret == -EPROTO) {
		/*
		 * The HELLO of another version of the library may differ, but all versions
		 * understand REFUSED.
		 */
		soft_shm_msg_init(&m, SOFT_SHM_REFUSED);
		m.u.refused.why = SOFT_SHM_REFUSED_VERSION;
		(void)soft_shm_send(rx->sock, &m, NULL, 0);
	} else {
		why = soft_shm_died;
	}
	/* Packets that the peer sent before it closed or died must still arrive, as over a cable.
	 */
	if ((why == soft_shm_closed || why == soft_shm_died) && rx->state == SOFT_SHM_UP &&
	    soft_ring_waiting(&rx->ring)) {
		rx->leaving = why;
		rx->leave_by = 0;
		return;
	}
	if (why == NULL)
		return;
	/* A process that ends the connection before HELLO may have looked for the owner only. */
	soft_shm_rx_close(shm, rx,
			  rx->state == SOFT_SHM_HANDSHAKE && why == soft_shm_died ? NULL : why);
}

bool
soft_shm_rx_pending(const struct soft_shm *shm, pid_t pid)
{
	uint32_t i;

	for (i = 0; i < shm->n_rx; i++) {
		const struct soft_shm_rx *rx = shm->rx[i];

		if (rx->state == SOFT_SHM_UP && rx->pid == pid && soft_ring_waiting(&rx->ring))
			return true;
	}
	return false;
}

/* Closes the connection of a peer that has left, once its packets are read or SOFT_SHM_LAST_NS is
 * over. */
static void
finish_leaving(struct soft_shm *shm, struct soft_shm_rx *rx)
{
	if (rx->leave_by == 0)
		rx->leave_by = shm->running + soft_time_cycles(SOFT_SHM_LAST_NS);
	if (!soft_ring_waiting(&rx->ring) || shm->running >= rx->leave_by ||
	    __atomic_load_n(&rx->ring.broken, __ATOMIC_RELAXED))
		soft_shm_rx_close(shm, rx, rx->leaving);
}

void
soft_shm_rx_chores(struct soft_shm *shm, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < shm->n_rx; i++) {
		struct soft_shm_rx *rx = shm->rx[i];

		if (rx->state == SOFT_SHM_UP && rx->leaving != NULL)
			finish_leaving(shm, rx);
		else if (rx->state == SOFT_SHM_HANDSHAKE && now >= rx->give_up)
			soft_shm_rx_close(shm, rx, "it sent no HELLO in time");
		else if (rx->state == SOFT_SHM_UP &&
			 __atomic_load_n(&rx->ring.broken, __ATOMIC_RELAXED))
			soft_shm_rx_close(shm, rx, "its packets are malformed");
		else if (rx->state == SOFT_SHM_UP && rx->seg_changes != shm->seg_changes)
			soft_shm_segs_send(shm, rx);
	}
}
