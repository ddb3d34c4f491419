/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of a fabric. Each device that is a member listens at the group's GID, with the
 * first free number as its slot (soft_shm_slot.h). A sender connects to each member and puts a copy
 * of each datagram into each of the rings, as a switch that knows the members. The sender's own
 * device gets its copies in the same way.
 *
 * A sender looks for members at most once in SOFT_SHM_CAST_NS. Between two searches it calls no
 * kernel. A device waits for that time at the end of a join, so that no later datagram misses it.
 */
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

/* Returns the index of an entry for a connection to a member, n_tx if the table is full. */
static uint32_t
new_entry(struct soft_shm *shm, const uint8_t gid[16], uint32_t number)
{
	struct soft_shm_tx *tx;
	uint32_t i;

	for (i = 0; i < shm->n_tx; i++) {
		tx = shm->tx[i];
		if (!tx->to_group || tx->state != SOFT_SHM_IDLE)
			continue;
		memcpy(tx->group, gid, sizeof(tx->group));
		tx->slot = number;
		tx->group_retry = 0;
		return i;
	}
	if (shm->n_tx == SOFT_SHM_PEERS || soft_shm_tx_create(shm, gid, number, true) == NULL)
		return shm->n_tx;
	__atomic_store_n(&shm->n_tx, shm->n_tx + 1, __ATOMIC_RELEASE);
	return i;
}

/*
 * Connects to member @number of a group, at entry *i, or at a new entry if *i is no entry. Returns
 * true if the connection takes packets.
 */
static bool
reach_member(struct soft_shm *shm, const uint8_t gid[16], uint32_t number, uint64_t now,
	     uint32_t *i)
{
	int ret;

	if (*i >= shm->n_tx) {
		*i = new_entry(shm, gid, number);
		if (*i == shm->n_tx) {
			soft_wire_lost(shm->dev, SOFT_LOST_NO_ROOM);
			return false;
		}
	}
	if (now < shm->tx[*i]->group_retry)
		return false;
	ret = soft_shm_tx_connect(shm, *i, now);
	/* A user that is not trusted has the number; the log says so. */
	if (ret == -EACCES)
		shm->tx[*i]->group_retry = now + soft_time_cycles(SOFT_SHM_GROUP_RETRY_NS);
	return ret == 0;
}

/* Finds the members of a group, and connects to those that are new. */
static void
find_members(struct soft_shm *shm, struct soft_shm_cast *c, uint64_t now)
{
	uint32_t entry[SOFT_SHM_MEMBERS + 1], i, k;
	const int probe = soft_shm_probe();

	c->n = 0;
	for (k = 1; k <= SOFT_SHM_MEMBERS; k++)
		entry[k] = UINT32_MAX;
	for (i = 0; i < shm->n_tx; i++)
		if (shm->tx[i]->to_group && memcmp(shm->tx[i]->group, c->gid, 16) == 0)
			entry[shm->tx[i]->slot] = i;
	for (k = 1; probe >= 0 && k <= SOFT_SHM_MEMBERS; k++) {
		i = entry[k];
		/* The member may have left, and another one may have its number. */
		if (i != UINT32_MAX)
			soft_shm_tx_event(shm, i);
		if ((i != UINT32_MAX && shm->tx[i]->state != SOFT_SHM_IDLE) ||
		    (soft_shm_slot_marked(shm, probe, c->gid, k) &&
		     reach_member(shm, c->gid, k, now, &i)))
			c->tx[c->n++] = (uint8_t)i;
	}
	if (probe >= 0)
		close(probe);
}

/* Returns the members of a group. Under soft_shm.lock. */
static const struct soft_shm_cast *
members(struct soft_shm *shm, const uint8_t gid[16])
{
	struct soft_shm_cast *c = &shm->casts[soft_mcg_bucket(gid) % SOFT_SHM_CASTS];
	const uint64_t now = rte_rdtsc();

	if (now < c->expires && memcmp(c->gid, gid, sizeof(c->gid)) == 0)
		return c;
	memcpy(c->gid, gid, sizeof(c->gid));
	c->expires = now + soft_time_cycles(SOFT_SHM_CAST_NS);
	find_members(shm, c, now);
	return c;
}

static bool
put(struct soft_shm_tx *tx, const struct bb_roce_net *net, uint8_t sgid, const uint8_t *bytes,
    uint32_t len)
{
	struct soft_ring_rec *rec = NULL;

	rte_ticketlock_lock(&tx->lock);
	if (tx->ring.data != NULL)
		rec = soft_ring_reserve(&tx->ring, len);
	if (rec != NULL) {
		rec->flow_label = net->flow_label;
		rec->sport = net->sport;
		rec->tclass = net->tclass;
		rec->hop_limit = net->hop_limit;
		rec->sgid = sgid;
		memcpy(rec + 1, bytes, len);
		soft_ring_publish(&tx->ring, rec, len);
		soft_shm_rouse(tx);
	}
	rte_ticketlock_unlock(&tx->lock);
	return rec != NULL;
}

enum soft_link_sent
soft_shm_cast_bytes(struct soft_engine *e, const struct bb_roce_net *net, const uint8_t mac[6],
		    const uint8_t *bytes, uint32_t len)
{
	struct soft_shm *shm = e->dev->shm;
	const struct soft_shm_cast *c;
	uint8_t group_mac[6], sgid;
	struct soft_shm_tx *tx;
	uint32_t i;

	soft_mcast_mac(net->dst, group_mac);
	if (len > SOFT_RING_MAX || net->hop_limit == 0 || memcmp(mac, group_mac, 6) != 0 ||
	    __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED) ||
	    !soft_shm_source(e->dev, net->src, &sgid))
		return SOFT_LINK_LOST;
	/* The lock protects the connections from their reuse for other groups. */
	if (pthread_mutex_trylock(&shm->lock) != 0)
		return SOFT_LINK_FULL;
	c = members(shm, net->dst);
	for (i = 0; i < c->n; i++) {
		tx = shm->tx[c->tx[i]];
		if (memcmp(tx->group, net->dst, sizeof(tx->group)) == 0 &&
		    !put(tx, net, sgid, bytes, len))
			soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
	}
	pthread_mutex_unlock(&shm->lock);
	return SOFT_LINK_SENT;
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
