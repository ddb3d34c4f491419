/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections that a device makes to peers, to send packets to them. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_shm.h"

/* Pause between attempts to connect while the peer's listen queue is full, us. */
#define RETRY_US 1000

/* Head of a ring whose peer does not read it yet. */
static const uint64_t unread;

struct soft_shm_tx *
soft_shm_find(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	uint32_t i, n = __atomic_load_n(&shm->n_tx, __ATOMIC_ACQUIRE);
	struct soft_shm_tx *idle = NULL;

	for (i = 0; i < n; i++) {
		struct soft_shm_tx *tx = shm->tx[i];

		if (memcmp(tx->dst, gid, 16) != 0 ||
		    (tx->slot != SOFT_SHM_ALL && tx->slot != slot && slot != SOFT_SHM_ANY))
			continue;
		if (__atomic_load_n(&tx->state, __ATOMIC_RELAXED) != SOFT_SHM_IDLE)
			return tx;
		if (idle == NULL)
			idle = tx;
	}
	return idle;
}

struct soft_shm_tx *
soft_shm_tx_create(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot, bool to_group)
{
	struct soft_shm_tx *tx;

	if (!to_group && shm->n_tx - shm->casts.n_tx == SOFT_SHM_PEERS) {
		SOFT_LOG(ERR,
			 "%s: cannot connect to a new peer: the device has connected to %d "
			 "addresses since it was opened, which is its limit: close and open the "
			 "device",
			 shm->dev->name, SOFT_SHM_PEERS);
		return NULL;
	}
	tx = calloc(1, sizeof(*tx));
	if (tx == NULL)
		return NULL;
	tx->dir = soft_shm_reserve(shm->dev, sizeof(*tx->dir));
	if (tx->dir == NULL) {
		free(tx);
		return NULL;
	}
	rte_ticketlock_init(&tx->lock);
	memcpy(to_group ? tx->group : tx->dst, gid, 16);
	tx->to_group = to_group;
	tx->pidfd = -1;
	tx->slot = slot;
	soft_shm_mac(gid, tx->mac);
	tx->fenced = soft_shm_fenced();
	shm->tx[shm->n_tx] = tx;
	return tx;
}

/* Frees the newest connection, which the caller has not published yet. */
static void
tx_free(struct soft_shm_tx *tx)
{
	munmap((void *)(uintptr_t)tx->dir, sizeof(*tx->dir));
	free(tx);
}

static void
close_process(struct soft_shm_tx *tx)
{
	if (tx->pidfd >= 0)
		close(tx->pidfd);
	tx->pidfd = -1;
}

void
soft_shm_tx_close(struct soft_shm *shm, struct soft_shm_tx *tx, const char *why)
{
	uint8_t *data;
	bool was_up = tx->state == SOFT_SHM_UP;

	rte_ticketlock_lock(&tx->lock);
	__atomic_store_n(&tx->state, SOFT_SHM_IDLE, __ATOMIC_RELEASE);
	tx->leaving = NULL;
	data = tx->ring.data;
	tx->ring.data = NULL;
	rte_ticketlock_unlock(&tx->lock);
	munmap(data, SOFT_RING_SIZE);
	soft_shm_win_drop(shm, tx);
	soft_shm_unmap(sizeof(*tx->dir), tx->dir);
	close(tx->sock);
	close_process(tx);
	soft_shm_log_end(shm, tx->pid, why);
	__atomic_store_n(&tx->next_attempt, rte_rdtsc() + soft_time_cycles(SOFT_SHM_RETRY_NS),
			 __ATOMIC_RELAXED);
	if (!was_up || tx->to_group)
		return;
	__atomic_fetch_add(&tx->deaths, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&shm->changes, 1, __ATOMIC_RELEASE);
}

static int
send_hello(struct soft_shm *shm, int sock, int ring_fd)
{
	const struct soft_port_opts *o = &shm->dev->opts.port;
	const int fds[] = {shm->dir_fd, ring_fd};
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_HELLO);
	while (soft_shm_gid(o, m.u.hello.n_gids, m.u.hello.gids[m.u.hello.n_gids]))
		m.u.hello.n_gids++;
	return soft_shm_send(sock, &m, fds, RTE_DIM(fds));
}

/*
 * Opens the peer's process, to access its memory that has no file. The process must run as this
 * process's user: another user could make the kernel wait for a page of its memory, and this
 * device's engine with it (userfaultfd(2)). A process of another PID namespace has no pid here.
 */
static void
open_process(struct soft_shm_tx *tx, int sock, uid_t uid)
{
	if (tx->pid != 0 && uid == geteuid())
		tx->pidfd = soft_shm_peer_fd(sock, tx->pid);
	__atomic_store_n(&tx->vm_refused, tx->pidfd < 0, __ATOMIC_RELAXED);
}

/* Connects to the peer and checks its user. Returns 0 or a negative errno. */
static int
connect_peer(struct soft_shm *shm, struct soft_shm_tx *tx, int *sock)
{
	char hint[SOFT_SHM_HINT];
	uid_t uid = 0;
	int ret = soft_shm_connect(shm->dev->opts.port.shm, tx->to_group ? tx->group : tx->dst,
				   tx->slot, sock);

	if (ret != 0)
		return ret;
	ret = soft_shm_user(shm, *sock, &tx->pid, &uid);
	if (ret == 0) {
		open_process(tx, *sock, uid);
		return 0;
	}
	close(*sock);
	SOFT_LOG(ERR, "%s: process %d belongs to user %u, which is not trusted: %s", shm->dev->name,
		 (int)tx->pid, (unsigned int)uid, soft_shm_user_hint(shm, uid, hint));
	return ret;
}

int
soft_shm_tx_connect(struct soft_shm *shm, uint32_t index, uint64_t now)
{
	struct soft_shm_tx *tx = shm->tx[index];
	int sock, ring_fd, ret;
	void *ring;

	if (tx->state != SOFT_SHM_IDLE)
		return 0;
	__atomic_store_n(&tx->next_attempt, now + soft_time_cycles(SOFT_SHM_RETRY_NS),
			 __ATOMIC_RELAXED);
	ret = connect_peer(shm, tx, &sock);
	/*
	 * The peer's queue of connections is full. Untrusted users may fill the queue, but it
	 * empties soon.
	 */
	if (ret == -EAGAIN)
		__atomic_store_n(&tx->next_attempt, now + soft_time_cycles(SOFT_SHM_FULL_NS),
				 __ATOMIC_RELAXED);
	if (ret != 0)
		return ret;
	ret = soft_shm_create(shm->dev, "bluebell-ring", SOFT_RING_SIZE, &ring_fd, &ring);
	if (ret != 0)
		goto close_sock;
	ret = send_hello(shm, sock, ring_fd);
	/* The mappings of both processes retain the memory after the descriptor is closed. */
	close(ring_fd);
	/*
	 * EPIPE: the peer refused the connection before HELLO. Its REFUSED message, read later,
	 * gives the reason.
	 */
	if (ret != 0 && ret != -EPIPE)
		goto unmap_ring;
	tx->sock = sock;
	__atomic_store_n(&tx->next_attempt,
			 now + soft_time_cycles(SOFT_SHM_PATIENCE_S * UINT64_C(1000000000)),
			 __ATOMIC_RELAXED);
	rte_ticketlock_lock(&tx->lock);
	soft_ring_tx_init(&tx->ring, ring, &unread);
	tx->woken = 0;
	__atomic_store_n(&tx->state, SOFT_SHM_HANDSHAKE, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&tx->lock);
	soft_shm_watch(shm, sock, SOFT_SHM_EV_TX | index);
	return 0;

unmap_ring:
	munmap(ring, SOFT_RING_SIZE);
close_sock:
	close(sock);
	close_process(tx);
	return ret;
}

/* Returns the index of the connection to a slot (range of QPNs) of an address, else n_tx. */
static uint32_t
tx_index(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	uint32_t i = 0;

	while (i < shm->n_tx && (shm->tx[i]->slot != slot || memcmp(shm->tx[i]->dst, gid, 16) != 0))
		i++;
	return i;
}

/*
 * Connects to a slot (range of QPNs) of an address. Retains a new connection that fails only if
 * @keep is true.
 */
static int
reach_slot(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot, bool keep)
{
	const uint32_t i = tx_index(shm, gid, slot);
	struct soft_shm_tx *tx;
	int ret;

	if (i < shm->n_tx) {
		/*
		 * First reads pending events of the connection, because the process that owned the
		 * address may be gone. Another process may own the address now. A new QP must not
		 * use the old connection, even if the last packets of its peer are unread.
		 */
		soft_shm_tx_event(shm, i);
		tx = shm->tx[i];
		if (tx->leaving != NULL)
			soft_shm_tx_close(shm, tx, tx->leaving);
		return soft_shm_tx_connect(shm, i, rte_rdtsc());
	}
	tx = soft_shm_tx_create(shm, gid, slot, false);
	if (tx == NULL)
		return -ENOMEM;
	ret = soft_shm_tx_connect(shm, shm->n_tx, rte_rdtsc());
	if (ret != 0 && !keep) {
		shm->tx[shm->n_tx] = NULL;
		tx_free(tx);
		return ret;
	}
	/* Release: a thread that reads the new number also sees the connection. */
	__atomic_store_n(&shm->n_tx, shm->n_tx + 1, __ATOMIC_RELEASE);
	return ret;
}

/* Connects to the first process that shares an address. */
static int
reach_any(struct soft_shm *shm, const uint8_t gid[16])
{
	int ret = -ECONNREFUSED;
	uint32_t slot;

	for (slot = 1; slot < SOFT_SHM_SLOTS && ret == -ECONNREFUSED; slot++)
		if (soft_shm_slot_used(shm, gid, slot))
			ret = reach_slot(shm, gid, slot, false);
	return ret;
}

/* Does the work of soft_shm_reach(). Under soft_shm.lock. */
static int
reach(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot, bool keep)
{
	const struct soft_shm_tx *tx = soft_shm_find(shm, gid, slot);
	int ret = -ECONNREFUSED;

	if (tx != NULL && tx->slot != SOFT_SHM_ALL)
		ret = reach_slot(shm, gid, tx->slot, true);
	if (ret == -ECONNREFUSED)
		ret = reach_slot(shm, gid, SOFT_SHM_ALL, false);
	if (ret == -ECONNREFUSED)
		ret = slot == SOFT_SHM_ANY ? reach_any(shm, gid)
					   : reach_slot(shm, gid, slot, false);
	if (ret != 0 && keep && soft_shm_find(shm, gid, slot) == NULL)
		ret = reach_slot(shm, gid, SOFT_SHM_ALL, true);
	return ret;
}

void
soft_shm_tx_retry(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	const uint32_t own = tx_index(shm, gid, slot);
	const uint64_t now = rte_rdtsc();
	uint64_t *next;
	uint32_t i = 0;

	while (i < shm->n_tx && memcmp(shm->tx[i]->dst, gid, 16) != 0)
		i++;
	if (i == shm->n_tx)
		return;
	/* QPNs that belong to no slot use entry 0. */
	next = &shm->tx[i]->next_retry[slot < SOFT_SHM_SLOTS ? slot : 0];
	if (now < *next || (own < shm->n_tx &&
			    now < __atomic_load_n(&shm->tx[own]->next_attempt, __ATOMIC_RELAXED)))
		return;
	*next = now + soft_time_cycles(reach(shm, gid, slot, true) == -EAGAIN ? SOFT_SHM_FULL_NS
									      : SOFT_SHM_RETRY_NS);
}

int
soft_shm_reach(struct soft_dev *dev, const uint8_t gid[16], uint32_t slot, bool keep)
{
	int ret;

	pthread_mutex_lock(&dev->shm->lock);
	ret = reach(dev->shm, gid, slot, keep);
	pthread_mutex_unlock(&dev->shm->lock);
	return ret == -ECONNREFUSED ? -EHOSTUNREACH : ret;
}

int
soft_shm_opening(struct soft_dev *dev, const uint8_t gid[16], uint32_t slot, uint64_t *opening)
{
	const struct soft_shm_tx *tx;
	int ret;

	pthread_mutex_lock(&dev->shm->lock);
	ret = reach(dev->shm, gid, slot, false);
	if (ret == 0) {
		tx = soft_shm_find(dev->shm, gid, slot);
		if (tx->state != SOFT_SHM_UP)
			ret = -EAGAIN;
		else if (slot == SOFT_SHM_ANY && tx->slot != SOFT_SHM_ALL)
			*opening = 0;
		else
			*opening = tx->opening;
	}
	pthread_mutex_unlock(&dev->shm->lock);
	return ret == -ECONNREFUSED ? -EHOSTUNREACH : ret;
}

const char *
soft_shm_reach_error(int ret)
{
	return ret == -EHOSTUNREACH
		       ? "no process has this GID on this fabric: open the peer's device first, "
			 "with the same shm="
		       : strerror(-ret);
}

int
soft_shm_resolve(struct soft_dev *dev, const uint8_t gid[16], uint8_t mac[6])
{
	const uint64_t end =
		rte_rdtsc() + soft_time_cycles(SOFT_SHM_PATIENCE_S * UINT64_C(1000000000));
	char text[INET6_ADDRSTRLEN];
	int ret;

	while ((ret = soft_shm_reach(dev, gid, SOFT_SHM_ANY, false)) == -EAGAIN &&
	       rte_rdtsc() < end)
		usleep(RETRY_US);
	if (ret == 0)
		soft_shm_mac(gid, mac);
	else if (ret == -EAGAIN)
		SOFT_LOG(ERR,
			 "%s: cannot connect to a peer: its queue of connections has been full for "
			 "%u s: check that the peer polls its device, and that no other user "
			 "floods the peer with connections",
			 dev->name, SOFT_SHM_PATIENCE_S);
	/* For a verbs program this device stands for a kernel, which returns the error only. */
	else if (ret != -EHOSTUNREACH || !dev->opts.mmap)
		SOFT_LOG(ERR, "%s: cannot reach GID %s: %s", dev->name,
			 inet_ntop(AF_INET6, gid, text, sizeof(text)), soft_shm_reach_error(ret));
	return ret;
}

void
soft_shm_send_wake(struct soft_shm_tx *tx, uint32_t asleep)
{
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_WAKE);
	/* If the socket is full, the peer has messages to read, and is awake. */
	(void)soft_shm_send(tx->sock, &m, NULL, 0);
	tx->woken = asleep;
}

/* ---- Messages of the peer */

static const char *
process_welcome(struct soft_shm *shm, struct soft_shm_tx *tx, const struct soft_shm_msg *m, int fd)
{
	if (tx->state != SOFT_SHM_HANDSHAKE || m->u.welcome.slot >= SOFT_SHM_PEERS)
		return "it sent a malformed WELCOME";
	if (soft_shm_map(fd, sizeof(*tx->dir), tx->dir) != 0)
		return "its shared memory cannot be mapped with the expected size";
	tx->opening = __atomic_load_n(&tx->dir->opening, __ATOMIC_RELAXED);
	rte_ticketlock_lock(&tx->lock);
	tx->ring.head = &tx->dir->head[m->u.welcome.slot].v;
	__atomic_store_n(&tx->state, SOFT_SHM_UP, __ATOMIC_RELEASE);
	/* The peer may have gone to sleep before the packets of the handshake were written. */
	if (tx->ring.tail != 0)
		soft_shm_rouse(tx);
	rte_ticketlock_unlock(&tx->lock);
	/* Release: an engine that reads the new number also sees the state. */
	if (!tx->to_group)
		__atomic_fetch_add(&shm->changes, 1, __ATOMIC_RELEASE);
	return NULL;
}

static const char *
refused(const struct soft_shm_msg *m)
{
	switch (m->u.refused.why) {
	case SOFT_SHM_REFUSED_USER:
		return "it does not trust the user of this process: set its option shm_uid to "
		       "this user";
	case SOFT_SHM_REFUSED_FULL:
		return "it has too many peers";
	default:
		return "it rejected the connection: run the same version of this library in both";
	}
}

/* Processes one message of the peer. Returns NULL, or the reason to close the connection. */
static const char *
process_msg(struct soft_shm *shm, struct soft_shm_tx *tx, const struct soft_shm_msg *m,
	    const int *fds)
{
	switch (m->type) {
	case SOFT_SHM_WELCOME:
		return process_welcome(shm, tx, m, fds[0]);
	case SOFT_SHM_REFUSED:
		return refused(m);
	case SOFT_SHM_BYE:
		return soft_shm_closed;
	default:
		return soft_shm_win_take(shm, tx, m, fds[0]);
	}
}

void
soft_shm_tx_event(struct soft_shm *shm, uint32_t index)
{
	struct soft_shm_tx *tx = shm->tx[index];
	int fds[SOFT_SHM_MAX_FDS], ret, i;
	struct soft_shm_msg m;
	const char *why = NULL;

	/* The number of messages per event is limited, because a peer might send without end. */
	for (i = 0;
	     i < SOFT_SHM_SEGS && tx->state != SOFT_SHM_IDLE && tx->leaving == NULL && why == NULL;
	     i++) {
		ret = soft_shm_recv(tx->sock, true, &m, fds, &why);
		if (ret == 0)
			return;
		if (ret == 1) {
			why = process_msg(shm, tx, &m, fds);
			if (fds[0] >= 0)
				close(fds[0]);
		} else if (ret != -EPROTO) {
			why = soft_shm_died;
		}
	}
	/*
	 * The peer has closed or died. Its last packets may answer requests of this device, so this
	 * device reads them before it closes the connection.
	 */
	if ((why == soft_shm_closed || why == soft_shm_died) && tx->state == SOFT_SHM_UP &&
	    !tx->to_group && soft_shm_rx_pending(shm, tx->pid)) {
		tx->leaving = why;
		tx->leave_by = 0;
		return;
	}
	if (why == NULL)
		return;
	/* The peer has closed its listener before it accepted the connection, and may live. */
	if (why == soft_shm_died && tx->state == SOFT_SHM_HANDSHAKE)
		why = soft_shm_closed;
	if (why != soft_shm_closed && why != soft_shm_died)
		tx->group_retry = rte_rdtsc() + soft_time_cycles(SOFT_SHM_GROUP_RETRY_NS);
	/* A member that leaves its group does not close its device. */
	soft_shm_tx_close(shm, tx, tx->to_group && why == soft_shm_closed ? NULL : why);
}

/*
 * Closes the connection to a peer that has closed, once its packets are read or SOFT_SHM_LAST_NS is
 * over.
 */
static void
finish_leaving(struct soft_shm *shm, struct soft_shm_tx *tx)
{
	if (tx->leave_by == 0)
		tx->leave_by = shm->running + soft_time_cycles(SOFT_SHM_LAST_NS);
	if (!soft_shm_rx_pending(shm, tx->pid) || shm->running >= tx->leave_by)
		soft_shm_tx_close(shm, tx, tx->leaving);
}

void
soft_shm_tx_chores(struct soft_shm *shm, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++) {
		struct soft_shm_tx *tx = shm->tx[i];

		if (tx->state == SOFT_SHM_UP && tx->leaving != NULL)
			finish_leaving(shm, tx);
		else if (tx->state == SOFT_SHM_HANDSHAKE && now >= tx->next_attempt)
			soft_shm_tx_close(shm, tx, "it did not respond in time");
		else if (tx->state == SOFT_SHM_UP &&
			 __atomic_load_n(&tx->ring.broken, __ATOMIC_RELAXED))
			soft_shm_tx_close(shm, tx,
					  "its indexes of the shared-memory ring are invalid");
	}
}
