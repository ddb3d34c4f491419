/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Entries that a device publishes, so that peers can access its memory without packets: keys over
 * memory with remote rights, and connected QPs. The files of that memory: soft_shm_segs.c. Requests
 * to other keys or QPs come as packets, and this device executes or rejects them.
 */
#include <sched.h>

#include <rte_pause.h>

#include "soft_shm.h"
#include "soft_wire.h"

#define SPINS   64
#define STOP_NS 10000000 /* a turn of a wait that takes longer is a stop of the process */

/*
 * Returns true if an option requires packets: seeded defects, fault injection, capture, flaps, or
 * shm_packets.
 */
static bool
by_packets(const struct soft_dev *dev)
{
	const struct soft_opts *o = &dev->opts;

	return soft_opts_defect(o) != SOFT_DEFECT_NONE || soft_net_faulty(&o->tx_fault) ||
	       soft_net_faulty(&o->rx_fault) || dev->capture != NULL || o->flap_up != 0 ||
	       o->port.shm_packets;
}

/* ---- Published keys */

static void
key_add(struct soft_dev *dev, const struct soft_mkey *m)
{
	struct soft_shm *shm = dev->shm;
	struct soft_shm_key *k;
	struct soft_shm_part p;
	int slot = -1;
	bool found;
	uint32_t i;

	/*
	 * Does not publish keys that a UMR can change. An engine executes the UMR, and must not
	 * wait for peers that still use the key's old rights.
	 */
	if (shm == NULL || by_packets(dev) || m->ind != NULL || m->umr_en ||
	    m->detour != SOFT_DETOUR_NONE || m->len == 0 || !(m->rr || m->rw || m->atomic))
		return;
	found = soft_shm_part_find(dev, m, &p);
	/*
	 * The program of a guest (soft_host.h) may block the guest's memory at any time. So peers
	 * access guest memory, and device memory of guests, only by packets.
	 */
	if (!found && (m->window.at != NULL || m->dm != NULL))
		return;
	pthread_mutex_lock(&shm->lock);
	if (found)
		slot = soft_shm_seg_take(shm, &p);
	k = &shm->dir->keys[m->key >> 8];
	k->key = m->key;
	k->pdn = m->pdn;
	k->rights = (m->rr ? SOFT_SHM_READ : 0) | (m->rw ? SOFT_SHM_WRITE : 0) |
		    (m->atomic ? SOFT_SHM_ATOMIC : 0);
	if (slot >= 0) {
		k->start = p.start;
		k->len = p.len;
		k->seg = (uint32_t)slot;
		k->gen = shm->seg[slot].gen;
		k->off = p.off;
	} else {
		k->start = m->start;
		k->len = m->len;
		k->seg = SOFT_SHM_NO_FILE;
		k->off = (uintptr_t)m->base;
	}
	soft_shm_publish(&k->seq);
	for (i = 0; i < shm->n_rx; i++)
		if (shm->rx[i]->state == SOFT_SHM_UP)
			soft_shm_segs_send(shm, shm->rx[i]);
	pthread_mutex_unlock(&shm->lock);
}

static bool
key_del(struct soft_dev *dev, uint32_t id)
{
	struct soft_shm *shm = dev->shm;
	struct soft_shm_key *k;

	if (shm == NULL)
		return false;
	k = &shm->dir->keys[id];
	if ((k->seq & 1) == 0)
		return false;
	soft_shm_retire(&k->seq);
	pthread_mutex_lock(&shm->lock);
	if (k->seg != SOFT_SHM_NO_FILE)
		soft_shm_seg_put(shm, k->seg);
	pthread_mutex_unlock(&shm->lock);
	return true;
}

/* ---- Published QPs */

/* Returns true if peers may access memory through the QP: see soft_shm_wire.established. */
static bool
is_connected(const struct soft_qp *qp, uint32_t state)
{
	return state == BB_PRM_QP_RTS ||
	       (state == BB_PRM_QP_RTR && qp->wire != NULL &&
		__atomic_load_n(&soft_shm_wire(qp->wire)->established, __ATOMIC_ACQUIRE));
}

void
soft_shm_qp_update(struct soft_qp *qp)
{
	const uint8_t *ads = bb_prm_csub(qp->qpc, BB_PRM_QPC_ADS);
	struct soft_shm *shm = qp->dev->shm;
	struct soft_shm_qp *e;

	if (shm == NULL)
		return;
	e = &shm->dir->qps[qp->qpn];
	soft_shm_retire(&e->seq);
	if (!is_connected(qp, qp->state) || qp->st != BB_PRM_QP_ST_RC || by_packets(qp->dev))
		return;
	e->remote_qpn = qp->remote_qpn;
	e->pdn = qp->pdn;
	e->rights = (qp->rre ? SOFT_SHM_READ : 0) | (qp->rwe ? SOFT_SHM_WRITE : 0) |
		    (qp->rae && qp->atomic_mode != 0 ? SOFT_SHM_ATOMIC : 0);
	e->mtu = qp->mtu;
	e->max_rd_atomic = RTE_MIN(1u << qp->log_rra_max, SOFT_WIRE_REPLAYS);
	memcpy(e->dgid, bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), 16);
	__atomic_store_n(&shm->dir->epsn[qp->qpn], qp->wire->roce.resp.epsn, __ATOMIC_RELAXED);
	soft_shm_publish(&e->seq);
}

void
soft_shm_qp_gone(struct soft_dev *dev, uint32_t qpn)
{
	if (dev->shm == NULL)
		return;
	soft_shm_retire(&dev->shm->dir->qps[qpn].seq);
	soft_shm_wait(dev);
}

/*
 * Returns true if the peer's entry names this QP as its remote QP. The QPN alone is not enough,
 * because another QP could have had that number.
 */
static bool
is_twin(const struct soft_shm_qp *p, const struct soft_qp *qp)
{
	return __atomic_load_n(&p->remote_qpn, __ATOMIC_RELAXED) == qp->qpn &&
	       memcmp(p->dgid, qp->wire->path.net.src, sizeof(p->dgid)) == 0;
}

/*
 * Returns the connection that the process of a QP's peer made, or NULL if there is none. Several
 * processes may have the peer's address.
 */
static const struct soft_shm_rx *
rx_of(const struct soft_shm *shm, const struct soft_qp *qp)
{
	uint32_t i, k;

	for (i = 0; i < shm->n_rx; i++) {
		const struct soft_shm_rx *rx = shm->rx[i];

		for (k = 0; rx->state == SOFT_SHM_UP && k < rx->n_gids; k++)
			if (memcmp(rx->gids[k], qp->wire->path.net.dst, 16) == 0 &&
			    is_twin(&rx->dir->qps[qp->remote_qpn], qp))
				return rx;
	}
	return NULL;
}

/*
 * Reads a peer's counts, which may hold any value. Returns false if a new connection restarts the
 * counts during the read.
 */
static bool
read_count(const struct soft_shm_count *from, struct soft_shm_count *n)
{
	n->since = __atomic_load_n(&from->since, __ATOMIC_ACQUIRE);
	n->writes = __atomic_load_n(&from->writes, __ATOMIC_RELAXED);
	n->reads = __atomic_load_n(&from->reads, __ATOMIC_RELAXED);
	n->atomics = __atomic_load_n(&from->atomics, __ATOMIC_RELAXED);
	bb_smp_rmb();
	return __atomic_load_n(&from->since, __ATOMIC_RELAXED) == n->since;
}

/*
 * Returns the increment of a count since the last report. A count that has decreased was restarted
 * at 0.
 */
static uint64_t
count_increment(uint64_t reported, uint64_t now)
{
	return now < reported ? now : now - reported;
}

/*
 * Returns in *more the numbers of requests that a QP's peer has executed in this device's memory
 * since the last call. Returns false if the numbers are unknown.
 */
static bool
new_accesses(const struct soft_shm *shm, const struct soft_qp *qp, struct soft_shm_count *more)
{
	struct soft_shm_wire *w = soft_shm_wire(qp->wire);
	struct soft_shm_count now;
	const struct soft_shm_rx *rx;

	if (qp->wire == NULL || qp->st != BB_PRM_QP_ST_RC ||
	    qp->remote_qpn >= 1u << SOFT_LOG_MAX_QP)
		return false;
	rx = rx_of(shm, qp);
	if (rx == NULL || !read_count(&rx->dir->count[qp->remote_qpn], &now))
		return false;
	if (now.since != w->served.since)
		memset(&w->served, 0, sizeof(w->served));
	more->writes = count_increment(w->served.writes, now.writes);
	more->reads = count_increment(w->served.reads, now.reads);
	more->atomics = count_increment(w->served.atomics, now.atomics);
	w->served = now;
	return true;
}

static void
collect(const struct soft_shm *shm, const struct soft_qp *qp)
{
	uint32_t state = soft_qp_state(qp);
	struct soft_shm_count more;
	struct soft_counters *c;

	/*
	 * Collects counters only from connected QPs and from QPs in ERR. In other states the
	 * control path may be changing the fields of the QP.
	 */
	if (!is_connected(qp, state) && state != BB_PRM_QP_ERR)
		return;
	c = soft_counters_of(qp);
	if (c == NULL || !new_accesses(shm, qp, &more))
		return;
	__atomic_fetch_add(&c->rx_write, more.writes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->rx_read, more.reads, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->rx_atomic, more.atomics, __ATOMIC_RELAXED);
}

void
soft_shm_skip(struct soft_dev *dev, const struct soft_qp *qp)
{
	struct soft_shm_count more;

	if (dev->shm == NULL)
		return;
	pthread_mutex_lock(&dev->shm->lock);
	(void)new_accesses(dev->shm, qp, &more);
	pthread_mutex_unlock(&dev->shm->lock);
}

void
soft_shm_collect_all(const struct soft_shm *shm)
{
	const struct soft_dev *dev = shm->dev;
	const struct soft_qp *qp;
	uint32_t i;

	for (i = 0; i < 1u << SOFT_LOG_MAX_QP; i++) {
		qp = soft_qp_find(dev, i);
		if (qp != NULL)
			collect(shm, qp);
	}
}

void
soft_shm_collect(struct soft_dev *dev, const struct soft_qp *qp)
{
	if (dev->shm == NULL)
		return;
	pthread_mutex_lock(&dev->shm->lock);
	if (qp == NULL)
		soft_shm_collect_all(dev->shm);
	else
		collect(dev->shm, qp);
	pthread_mutex_unlock(&dev->shm->lock);
}

/* ---- Waiting until no peer uses withdrawn memory */

/* Returns true if the peer has disconnected. */
static bool
gone(const struct soft_shm_rx *rx)
{
	char c;

	return recv(rx->sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/*
 * Waits until the access of a peer's engine to this process's memory has ended: until the engine's
 * epoch is no longer @old, or the peer has disconnected. Returns false if neither happens within
 * @left TSC cycles, which it reduces. A stop counts as at most STOP_NS.
 */
static bool
wait_epoch(const struct soft_shm_rx *rx, const uint64_t *epoch, uint64_t old, uint64_t *left)
{
	uint64_t last = rte_rdtsc(), turn;
	uint32_t spins = 0;

	while (__atomic_load_n(epoch, __ATOMIC_ACQUIRE) == old) {
		if (++spins % SPINS != 0) {
			rte_pause();
			continue;
		}
		if (gone(rx))
			return true;
		turn = RTE_MIN(rte_rdtsc() - last, soft_time_cycles(STOP_NS));
		last = rte_rdtsc();
		if (turn >= *left)
			return false;
		*left -= turn;
		sched_yield();
	}
	return true;
}

/*
 * Records the epochs of a peer's engines. An odd epoch means that the engine may be accessing the
 * memory of this process at the moment (struct soft_shm_padded).
 */
static void
read_epochs(struct soft_shm_rx *rx)
{
	const struct soft_shm_dir *dir = rx->dir;
	uint32_t i, n = __atomic_load_n(&dir->engines, __ATOMIC_ACQUIRE);

	rx->n_epochs = RTE_MIN(n, (uint32_t)SOFT_SHM_ENGINES);
	for (i = 0; i < rx->n_epochs; i++)
		rx->epochs[i] = __atomic_load_n(&dir->engine[i].v, __ATOMIC_ACQUIRE);
}

/*
 * Waits for the engines of the peer @rx that were accessing memory of this process when
 * read_epochs() ran. Such an engine had an odd epoch, and changes its epoch when the access ends.
 * Disconnects the peer if an epoch has not changed within @left TSC cycles: see wait_epoch().
 */
static void
wait_peer(struct soft_shm *shm, struct soft_shm_rx *rx, uint64_t *left)
{
	uint32_t i;

	for (i = 0; i < rx->n_epochs; i++) {
		if ((rx->epochs[i] & 1) == 0 ||
		    wait_epoch(rx, &rx->dir->engine[i].v, rx->epochs[i], left))
			continue;
		/* This process cannot revoke the peer's mapping, but ignores its requests. */
		soft_shm_rx_close(
			shm, rx,
			"it did not release deregistered memory in time and may still write to "
			"that memory");
		return;
	}
}

void
soft_shm_wait(struct soft_dev *dev)
{
	struct soft_shm *shm = dev->shm;
	uint64_t left = soft_time_cycles(SOFT_SHM_HOLD_NS); /* of all peers together */
	uint32_t i;

	if (shm == NULL)
		return;
	pthread_mutex_lock(&shm->lock);
	/*
	 * First reads the epochs of all peers, and only then waits for them. An epoch is odd while
	 * a peer's engine may access this memory. An engine that starts an access later finds the
	 * entry withdrawn, so this thread need not wait for it.
	 */
	for (i = 0; i < shm->n_rx; i++)
		if (shm->rx[i]->state == SOFT_SHM_UP)
			read_epochs(shm->rx[i]);
	for (i = 0; i < shm->n_rx; i++)
		if (shm->rx[i]->state == SOFT_SHM_UP)
			wait_peer(shm, shm->rx[i], &left);
	pthread_mutex_unlock(&shm->lock);
}

/* ---- Engines that access peers' memory */

void
soft_shm_engine_add(struct soft_engine *e)
{
	struct soft_shm *shm = e->dev->shm;
	uint32_t i;

	e->shm_epoch = NULL;
	if (shm == NULL)
		return;
	pthread_mutex_lock(&shm->lock);
	for (i = 0; i < SOFT_SHM_ENGINES && shm->slot_used[i]; i++)
		;
	if (i < SOFT_SHM_ENGINES) {
		shm->slot_used[i] = true;
		e->shm_epoch = &shm->dir->engine[i].v;
		if (i >= shm->dir->engines)
			__atomic_store_n(&shm->dir->engines, i + 1, __ATOMIC_SEQ_CST);
	}
	e->shm_changes = shm->changes;
	pthread_mutex_unlock(&shm->lock);
}

void
soft_shm_engine_del(struct soft_engine *e)
{
	struct soft_shm *shm = e->dev->shm;

	if (shm == NULL || e->shm_epoch == NULL)
		return;
	pthread_mutex_lock(&shm->lock);
	shm->slot_used[container_of(e->shm_epoch, struct soft_shm_padded, v) - shm->dir->engine] =
		false;
	pthread_mutex_unlock(&shm->lock);
}

bool
soft_shm_direct_allowed(const struct soft_dev *dev)
{
	return !by_packets(dev);
}

const struct soft_share_ops soft_shm_share = {
	.key_add = key_add,
	.key_del = key_del,
	.wait = soft_shm_wait,
};
