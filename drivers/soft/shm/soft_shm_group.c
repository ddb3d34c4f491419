/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of a fabric. Each device that is a member listens at the group's GID, with the
 * first free number as its slot (soft_shm_slot.h). A sender connects to each member and puts a copy
 * of each datagram into each of the rings, as a switch that knows the members. The sender's own
 * device gets its copies in the same way.
 *
 * A sender has a record for each group to which it sends. It looks for members at most once in
 * SOFT_SHM_CAST_NS. Between two searches it calls no kernel. A device waits for that time at the
 * end of a join, so that no later datagram misses it. A group to which nothing was sent for
 * SOFT_SHM_CAST_IDLE_NS loses its record and its connections.
 */
#include <stdlib.h>
#include <unistd.h>

#include "soft_shm.h"
#include "soft_wire.h"

/* ---- Members */

/* Listens with the first free number of a group. */
static int
take_number(struct soft_shm *shm, struct soft_shm_group *g)
{
	uint32_t k;
	int ret = -EADDRINUSE;

	for (k = 1; k <= SOFT_SHM_MEMBERS && ret == -EADDRINUSE; k++) {
		ret = soft_shm_listen(shm->dev->opts.port.shm, g->gid, k, &g->listener, NULL);
		if (ret != 0)
			continue;
		/* The mark comes last: a sender that finds it can connect. */
		g->mark = soft_shm_slot_mark(shm, g->gid, k);
		if (g->mark >= 0)
			return 0;
		ret = g->mark;
		close(g->listener);
	}
	return ret == -EADDRINUSE ? -ENOSPC : ret;
}

int
soft_shm_group_join(struct soft_shm *shm, const uint8_t gid[16])
{
	struct soft_shm_group *g;
	uint32_t i = 0;
	int ret;

	pthread_mutex_lock(&shm->lock);
	/* The device has no more groups than this table has entries. */
	while (shm->groups[i].used)
		i++;
	g = &shm->groups[i];
	memcpy(g->gid, gid, sizeof(g->gid));
	ret = take_number(shm, g);
	if (ret == 0) {
		g->used = true;
		soft_shm_watch(shm, g->listener, SOFT_SHM_EV_GROUP | i);
	}
	pthread_mutex_unlock(&shm->lock);
	return ret;
}

static void
group_close(struct soft_shm_group *g)
{
	close(g->mark);
	close(g->listener);
	g->used = false;
}

void
soft_shm_group_leave(struct soft_shm *shm, const uint8_t gid[16])
{
	uint32_t i;

	pthread_mutex_lock(&shm->lock);
	for (i = 0; i < RTE_DIM(shm->groups); i++)
		if (shm->groups[i].used && memcmp(shm->groups[i].gid, gid, 16) == 0)
			group_close(&shm->groups[i]);
	for (i = 0; i < shm->n_rx; i++) {
		struct soft_shm_rx *rx = shm->rx[i];

		if (rx->state == SOFT_SHM_IDLE || memcmp(rx->dst, gid, 16) != 0)
			continue;
		soft_shm_send_bye(rx->sock);
		soft_shm_rx_close(shm, rx, NULL);
	}
	pthread_mutex_unlock(&shm->lock);
}

void
soft_shm_groups_close(struct soft_shm *shm)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(shm->groups); i++)
		if (shm->groups[i].used)
			group_close(&shm->groups[i]);
}

/* ---- Senders */

bool
soft_shm_group_log_due(struct soft_shm *shm, uint64_t now)
{
	if (now < shm->casts.next_log)
		return false;
	shm->casts.next_log = now + soft_time_cycles(UINT64_C(1000000000));
	return true;
}

/* Returns the index of a free entry for a connection to a member, or -ENOSPC. */
static int
free_entry(struct soft_shm *shm, const uint8_t gid[16], uint64_t now)
{
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++)
		if (shm->tx[i]->to_group && shm->tx[i]->slot == 0)
			return (int)i;
	if (shm->casts.n_tx == SOFT_SHM_GROUP_PEERS) {
		if (soft_shm_group_log_due(shm, now))
			SOFT_LOG(WARNING,
				 "%s: drops datagrams to a member of a multicast group: the device "
				 "already has %u connections to members, which is its limit: send "
				 "to fewer groups",
				 shm->dev->name, SOFT_SHM_GROUP_PEERS);
		return -ENOSPC;
	}
	if (soft_shm_tx_create(shm, gid, 0, true) == NULL)
		return -ENOMEM;
	shm->casts.n_tx++;
	__atomic_store_n(&shm->n_tx, shm->n_tx + 1, __ATOMIC_RELEASE);
	return (int)i;
}

/*
 * Connects to member @number of a group. Returns 0 or a negative errno. Sets *entry to the index of
 * the connection plus 1.
 */
static int
reach_member(struct soft_shm *shm, const uint8_t gid[16], uint32_t number, uint64_t now,
	     uint16_t *entry)
{
	const int i = free_entry(shm, gid, now);
	struct soft_shm_tx *tx;
	int ret;

	if (i < 0)
		return i;
	tx = shm->tx[i];
	memcpy(tx->group, gid, sizeof(tx->group));
	tx->slot = number;
	tx->group_retry = 0;
	ret = soft_shm_tx_connect(shm, (uint32_t)i, now);
	if (ret != 0)
		tx->slot = 0;
	else
		*entry = (uint16_t)(i + 1);
	return ret;
}

/*
 * Finds the members of a group, and connects to those that are new. Other engines may send to the
 * members of the last search meanwhile.
 */
static void
find_members(struct soft_shm *shm, struct soft_shm_cast *c, uint64_t now)
{
	const int probe = soft_shm_probe();
	uint32_t missed = probe < 0, k;
	uint16_t entry[SOFT_SHM_MEMBERS];
	struct soft_shm_tx *tx;
	int ret;

	for (k = 0; k < SOFT_SHM_MEMBERS; k++) {
		entry[k] = c->entry[k];
		if (entry[k] != 0) {
			/* The member may have left, and another one may have its number. */
			soft_shm_tx_event(shm, entry[k] - 1u);
			tx = shm->tx[entry[k] - 1];
			if (tx->state != SOFT_SHM_IDLE)
				continue;
			c->retry[k] = tx->group_retry;
			tx->slot = 0;
			entry[k] = 0;
		}
		if (probe < 0 || now < c->retry[k] ||
		    !soft_shm_slot_marked(shm, probe, c->gid, k + 1))
			continue;
		ret = reach_member(shm, c->gid, k + 1, now, &entry[k]);
		/* A user that is not trusted has the number; the log says so. */
		if (ret == -EACCES)
			c->retry[k] = now + soft_time_cycles(SOFT_SHM_GROUP_RETRY_NS);
		else if (ret != 0 && ret != -ECONNREFUSED)
			missed++;
	}
	if (probe >= 0)
		close(probe);
	rte_ticketlock_lock(&shm->casts.lock);
	memcpy(c->entry, entry, sizeof(c->entry));
	c->missed = missed;
	c->expires = now + soft_time_cycles(missed != 0 ? SOFT_SHM_FULL_NS : SOFT_SHM_CAST_NS);
	rte_ticketlock_unlock(&shm->casts.lock);
}

/* Returns the record of a group, a new one if needed; NULL if all are in use. */
static struct soft_shm_cast *
record_of(struct soft_shm_casts *casts, const uint8_t gid[16], uint64_t now)
{
	struct soft_shm_cast *c, *unused = NULL;

	for (c = casts->cast; c < casts->cast + SOFT_SHM_CASTS; c++) {
		if (c->used == 0)
			unused = c;
		else if (memcmp(c->gid, gid, sizeof(c->gid)) == 0)
			break;
	}
	if (c == casts->cast + SOFT_SHM_CASTS) {
		c = unused;
		if (c == NULL)
			return NULL;
		memset(c, 0, sizeof(*c));
		memcpy(c->gid, gid, sizeof(c->gid));
	}
	c->used = now;
	return c;
}

/*
 * Searches for the members of a group, if the last search is too old. Returns false if the datagram
 * must wait, because another thread holds soft_shm.lock. After SOFT_SHM_CAST_NS of waiting,
 * datagrams go to the members that are known, for as long. Under soft_shm_casts.lock, which this
 * function releases during the search. Then soft_shm.lock retains the record.
 */
static bool
refresh(struct soft_shm *shm, struct soft_shm_cast *c, uint64_t now)
{
	uint64_t wait;

	if (now < c->expires)
		return true;
	if (pthread_mutex_trylock(&shm->lock) == 0) {
		rte_ticketlock_unlock(&shm->casts.lock);
		find_members(shm, c, now);
		rte_ticketlock_lock(&shm->casts.lock);
		pthread_mutex_unlock(&shm->lock);
		return true;
	}
	wait = soft_time_cycles(SOFT_SHM_CAST_NS);
	/* An old time belongs to an earlier wait. */
	if (now >= c->wait_until + wait)
		c->wait_until = now + wait;
	return now >= c->wait_until;
}

void
soft_shm_casts_chores(struct soft_shm *shm, uint64_t now)
{
	const uint64_t idle = soft_time_cycles(SOFT_SHM_CAST_IDLE_NS);
	uint16_t entry[SOFT_SHM_MEMBERS] = {0};
	struct soft_shm_cast *c;
	struct soft_shm_tx *tx;
	uint32_t k;

	if (__atomic_exchange_n(&shm->casts.full, false, __ATOMIC_RELAXED) &&
	    soft_shm_group_log_due(shm, now))
		SOFT_LOG(WARNING,
			 "%s: drops datagrams to a multicast group: the device already sends to %u "
			 "groups, which is its limit: send to fewer groups",
			 shm->dev->name, SOFT_SHM_CASTS);
	rte_ticketlock_lock(&shm->casts.lock);
	for (c = shm->casts.cast; c < shm->casts.cast + SOFT_SHM_CASTS; c++) {
		if (c->used == 0 || now < c->used + idle)
			continue;
		memcpy(entry, c->entry, sizeof(entry));
		c->used = 0;
		break;
	}
	rte_ticketlock_unlock(&shm->casts.lock);
	for (k = 0; k < SOFT_SHM_MEMBERS; k++) {
		if (entry[k] == 0)
			continue;
		tx = shm->tx[entry[k] - 1];
		if (tx->state != SOFT_SHM_IDLE) {
			soft_shm_send_bye(tx->sock);
			soft_shm_tx_close(shm, tx, NULL);
		}
		tx->slot = 0;
	}
}

/* Puts a datagram into the ring of a member. Returns false if the ring has no room. */
static bool
put(struct soft_shm_tx *tx, const struct bb_roce_net *net, uint8_t sgid, const uint8_t *bytes,
    uint32_t len)
{
	struct soft_ring_rec *rec = NULL;
	bool left;

	rte_ticketlock_lock(&tx->lock);
	left = tx->ring.data == NULL;
	if (!left)
		rec = soft_ring_reserve(&tx->ring, len);
	if (rec != NULL) {
		rec->flow_label = net->flow_label;
		rec->sport = net->sport;
		rec->tclass = net->tclass;
		rec->hop_limit = net->hop_limit;
		rec->sgid = sgid;
		rec->ack_len = 0;
		memcpy(rec + 1, bytes, len);
		soft_ring_publish(&tx->ring, rec, len);
		soft_shm_rouse(tx);
	}
	rte_ticketlock_unlock(&tx->lock);
	return left || rec != NULL;
}

enum soft_link_sent
soft_shm_cast_bytes(struct soft_engine *e, const struct bb_roce_net *net, const uint8_t mac[6],
		    const uint8_t *bytes, uint32_t len)
{
	const uint64_t now = rte_rdtsc();
	struct soft_shm *shm = e->dev->shm;
	enum soft_link_sent sent = SOFT_LINK_FULL;
	uint8_t group_mac[6], sgid;
	struct soft_shm_cast *c;
	uint32_t lost, k;

	soft_mcast_mac(net->dst, group_mac);
	if (len > SOFT_RING_MAX || net->hop_limit == 0 || memcmp(mac, group_mac, 6) != 0 ||
	    __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED) ||
	    !soft_shm_source(e->dev, net->src, &sgid))
		return SOFT_LINK_LOST;
	rte_ticketlock_lock(&shm->casts.lock);
	c = record_of(&shm->casts, net->dst, now);
	if (c == NULL) {
		__atomic_store_n(&shm->casts.full, true, __ATOMIC_RELAXED);
		soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
		sent = SOFT_LINK_SENT;
	} else if (refresh(shm, c, now)) {
		lost = c->missed;
		for (k = 0; k < SOFT_SHM_MEMBERS; k++)
			if (c->entry[k] != 0)
				lost += !put(shm->tx[c->entry[k] - 1], net, sgid, bytes, len);
		for (; lost != 0; lost--)
			soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
		sent = SOFT_LINK_SENT;
	}
	rte_ticketlock_unlock(&shm->casts.lock);
	return sent;
}

enum soft_link_sent
soft_shm_cast(struct soft_engine *e, const struct soft_link_pkt *p)
{
	const uint32_t pad = bb_roce_pad(p->pkt->len);
	uint8_t bytes[SOFT_RING_MAX];
	uint32_t at, i;

	if (p->pkt->len > sizeof(bytes) - BB_ROCE_MAX_HDR - 3)
		return SOFT_LINK_LOST;
	at = bb_roce_build(bytes, p->pkt);
	for (i = 0; i < p->n; i++) {
		memcpy(bytes + at, p->iov[i].p, p->iov[i].len);
		at += (uint32_t)p->iov[i].len;
	}
	memset(bytes + at, 0, pad);
	return soft_shm_cast_bytes(e, &p->to->net, p->to->mac, bytes, at + pad);
}

/* ---- Receiving */

void
soft_shm_cast_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		 const struct soft_ring_rec *rec, const uint8_t *p)
{
	struct soft_shm_pkt in;
	const struct bb_roce_iov *iov;
	struct soft_packet_msg *m;
	uint32_t drop = soft_shm_parse(e, rx, rx->n_group_gids, rec, p, &in);

	if (drop == BB_ROCE_OK &&
	    (in.pkt.dqpn != BB_ROCE_MCAST_QPN || soft_mcg_find(e->dev, rx->dst) == NULL))
		drop = SOFT_LOST_NO_QP;
	if (drop != BB_ROCE_OK) {
		soft_wire_lost(e->dev, drop);
		return;
	}
	iov = &(struct bb_roce_iov){.p = in.pkt.payload, .len = in.pkt.len};
	m = soft_packet_build(
		&(struct soft_link_pkt){.to = &in.from, .pkt = &in.pkt, .iov = iov, .n = 1});
	if (m == NULL) {
		soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
		return;
	}
	soft_wire_cast_own(e->dev, m);
	free(m);
}
