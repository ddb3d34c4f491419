/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The link of option shm=FABRIC. Rings in shared memory carry packets to other processes, from BTH
 * to padding. There is no ICRC, because shared memory cannot damage a packet. The ring's record
 * holds the needed fields of the lower headers. The source of a packet is one of the addresses in
 * the sender's HELLO.
 *
 * Any engine of a device receives packets for all engines of the device. It puts a packet for
 * another engine's QP into that engine's inbox. Packets stay in order, because the receiving engine
 * holds the ring's lock meanwhile.
 */
#include <assert.h>
#include <stdlib.h>

#include "soft_access.h"
#include "soft_ctl.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define BURST    32u
#define UDP_LEN  8u
#define DETH_LEN 8u
/* If an engine is polled without a pause, one of this number of polls reads the clock. */
#define CLOCK_POLLS 16u
#define CLOCK_NS    (SOFT_SHM_CHORES_NS / 4)

static_assert(SOFT_RING_MAX >= SOFT_PORT_MAX_MTU + BB_ROCE_MAX_HDR + 3, "packets fit");

/* ---- Sending packets */

/*
 * Connects to a slot (range of QPNs) of an address for the first time, or again after the
 * connection has ended, because another process may own the address now. soft_shm_tx_retry() limits
 * the rate of the attempts.
 */
static __rte_noinline enum soft_link_sent
link_shm_reconnect(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	const struct soft_shm_tx *tx;

	if (slot == SOFT_SHM_NO_SLOT || pthread_mutex_trylock(&shm->lock) != 0)
		return SOFT_LINK_LOST;
	soft_shm_tx_retry(shm, gid, slot);
	pthread_mutex_unlock(&shm->lock);
	tx = soft_shm_find(shm, gid, slot);
	return tx == NULL || tx->state == SOFT_SHM_IDLE ? SOFT_LINK_LOST : SOFT_LINK_FULL;
}

/*
 * Returns true if a packet must wait for the end of the handshake. RC requests wait, so that the
 * handshake does not use up their retries. Responses, and packets of UC and UD, enter the ring,
 * because their sender may close before the packets arrive.
 */
static inline bool
link_shm_waits(uint8_t opcode)
{
	return BB_ROCE_TYPE(opcode) == BB_ROCE_RC &&
	       (opcode < (BB_ROCE_RC | BB_ROCE_READ_RESP_FIRST) ||
		opcode > (BB_ROCE_RC | BB_ROCE_ATOMIC_ACK));
}

/*
 * Finds the connection to a slot (range of QPNs) of an address. Returns SOFT_LINK_SENT if its ring
 * takes a packet with this opcode, SOFT_LINK_FULL if the packet must wait.
 */
static enum soft_link_sent
link_shm_to(struct soft_engine *e, const struct bb_roce_net *net, uint32_t slot,
	    const uint8_t mac[6], uint8_t opcode, struct soft_shm_tx **out)
{
	struct soft_shm *shm = e->dev->shm;
	struct soft_shm_tx *tx = soft_shm_find(shm, net->dst, slot);
	const struct soft_shm_tx *known = tx;

	/* An address that was resolved has at least one connection. */
	if (unlikely(tx == NULL))
		known = soft_shm_find(shm, net->dst, SOFT_SHM_ANY);
	if (unlikely(known == NULL || net->hop_limit == 0 ||
		     __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED) ||
		     memcmp(mac, known->mac, sizeof(known->mac)) != 0))
		return SOFT_LINK_LOST;
	*out = tx;
	if (unlikely(tx == NULL))
		return link_shm_reconnect(shm, net->dst, slot);
	switch (__atomic_load_n(&tx->state, __ATOMIC_ACQUIRE)) {
	case SOFT_SHM_UP:
		return SOFT_LINK_SENT;
	case SOFT_SHM_HANDSHAKE:
		return link_shm_waits(opcode) ? SOFT_LINK_FULL : SOFT_LINK_SENT;
	default:
		return link_shm_reconnect(shm, net->dst, slot);
	}
}

/* Returns the slot (range of QPNs) to which a packet's destination QP belongs. */
static inline uint32_t
link_shm_slot(const struct soft_shm *shm, const struct soft_link_pkt *p)
{
	uint8_t mad[SOFT_SHM_MAD_HEAD];
	uint32_t i, n, len = 0;

	if (likely(p->pkt->dqpn != 1))
		return soft_shm_slot_of(p->pkt->dqpn);
	for (i = 0; i < p->n; i++) {
		n = RTE_MIN((uint32_t)p->iov[i].len, (uint32_t)sizeof(mad) - len);
		memcpy(mad + len, p->iov[i].p, n);
		len += n;
	}
	return soft_shm_mad_slot(shm, p->to->net.dst, mad, len);
}

/*
 * Reserves a record for a packet of @len bytes. On success the caller holds the connection's lock.
 * On failure returns NULL, and *sent is the packet's result.
 */
static struct soft_ring_rec *
link_shm_begin(struct soft_engine *e, const struct bb_roce_net *net, uint32_t slot,
	       const uint8_t mac[6], uint8_t opcode, uint32_t len, struct soft_shm_tx **out,
	       enum soft_link_sent *sent)
{
	struct soft_ring_rec *rec = NULL;
	struct soft_shm_tx *tx = NULL;
	uint8_t sgid = 0;

	*sent = link_shm_to(e, net, slot, mac, opcode, &tx);
	if (unlikely(*sent != SOFT_LINK_SENT))
		return NULL;
	if (unlikely(!soft_shm_source(e->dev, net->src, &sgid) || len > SOFT_RING_MAX)) {
		*sent = SOFT_LINK_LOST;
		return NULL;
	}
	rte_ticketlock_lock(&tx->lock);
	*sent = SOFT_LINK_LOST;
	if (likely(tx->ring.data != NULL)) {
		rec = soft_ring_reserve(&tx->ring, len);
		*sent = tx->ring.broken ? SOFT_LINK_LOST : SOFT_LINK_FULL;
	}
	if (unlikely(rec == NULL)) {
		rte_ticketlock_unlock(&tx->lock);
		return NULL;
	}
	rec->flow_label = net->flow_label;
	rec->sport = net->sport;
	rec->tclass = net->tclass;
	rec->hop_limit = net->hop_limit;
	rec->sgid = sgid;
	rec->ack_len = 0;
	*out = tx;
	return rec;
}

static void
link_shm_end(struct soft_shm_tx *tx, struct soft_ring_rec *rec, uint32_t len)
{
	soft_ring_publish(&tx->ring, rec, len);
	soft_shm_rouse(tx);
	rte_ticketlock_unlock(&tx->lock);
}

static enum soft_link_sent
link_shm_send(struct soft_engine *e, const struct soft_link_pkt *p)
{
	uint32_t pad = bb_roce_pad(p->pkt->len), len, hdr_len, i;
	uint8_t hdr[BB_ROCE_MAX_HDR], *at;
	struct soft_ring_rec *rec;
	enum soft_link_sent sent;
	struct soft_shm_tx *tx;

	hdr_len = bb_roce_build(hdr, p->pkt);
	len = hdr_len + p->pkt->len + pad;
	rec = link_shm_begin(e, &p->to->net, link_shm_slot(e->dev->shm, p), p->to->mac,
			     p->pkt->opcode, len, &tx, &sent);
	if (unlikely(rec == NULL))
		return sent == SOFT_LINK_LOST && bb_roce_is_mcast(p->to->net.dst)
			       ? soft_shm_cast(e, p)
			       : sent;
	at = (uint8_t *)(rec + 1);
	memcpy(at, hdr, hdr_len);
	at += hdr_len;
	for (i = 0; i < p->n; i++) {
		memcpy(at, p->iov[i].p, p->iov[i].len);
		at += p->iov[i].len;
	}
	memset(at, 0, pad);
	link_shm_end(tx, rec, len);
	return SOFT_LINK_SENT;
}

static enum soft_link_sent
link_shm_send_bytes(struct soft_engine *e, struct soft_packet_msg *m)
{
	const uint8_t *udp = m->data + m->ip_len, *bth = udp + UDP_LEN;
	uint32_t len = m->len - m->ip_len - UDP_LEN - BB_ROCE_ICRC_LEN;
	const uint32_t dqpn = bb_get32(bth + 4) & BB_ROCE_QPN_MASK;
	const uint32_t head = BB_ROCE_BTH_LEN + DETH_LEN;
	uint32_t slot = soft_shm_slot_of(dqpn);
	struct soft_ring_rec *rec;
	enum soft_link_sent sent;
	uint8_t icrc[BB_ROCE_ICRC_LEN];
	struct soft_shm_tx *tx;

	/*
	 * The ICRC is wrong if fault injection damaged the packet. The sender drops such a packet,
	 * because the ring carries no ICRC with which the peer could detect the damage.
	 */
	bb_roce_icrc_end(bb_roce_icrc_begin(m->data, m->ip_len, udp, bth, len), icrc);
	if (memcmp(icrc, bth + len, sizeof(icrc)) != 0) {
		free(m);
		return SOFT_LINK_LOST;
	}
	if (dqpn == 1 && len > head)
		slot = soft_shm_mad_slot(e->dev->shm, m->net.dst, bth + head, len - head);
	rec = link_shm_begin(e, &m->net, slot, m->mac, bth[0], len, &tx, &sent);
	if (rec != NULL) {
		memcpy(rec + 1, bth, len);
		link_shm_end(tx, rec, len);
		sent = SOFT_LINK_SENT;
	} else if (sent == SOFT_LINK_LOST && bb_roce_is_mcast(m->net.dst)) {
		sent = soft_shm_cast_bytes(e, &m->net, m->mac, bth, len);
	}
	if (sent != SOFT_LINK_FULL)
		free(m);
	return sent;
}

/* ---- Receiving packets */

/*
 * Passes on a packet as bytes, as a wire would carry it. Needed if the packet is for another
 * engine's QP, is subject to fault injection, or is captured.
 */
static void
link_shm_pass(struct soft_engine *e, const struct soft_qp *qp, struct soft_wire_dest *to,
	      const struct bb_roce_pkt *pkt)
{
	const struct bb_roce_iov iov = {.p = pkt->payload, .len = pkt->len};
	const struct soft_link_pkt p = {.to = to, .pkt = pkt, .iov = &iov, .n = 1};
	struct soft_packet_msg *m;

	/* If the QP's engine does not run, packets beyond the limit of its inbox are dropped. */
	m = qp->engine == e || soft_packet_room(qp->engine) ? soft_packet_build(&p) : NULL;
	if (m == NULL) {
		soft_wire_lost(e->dev, SOFT_LOST_NO_ROOM);
		return;
	}
	if (qp->engine == e)
		soft_wire_arrive(e, m);
	else
		soft_packet_post(qp, m);
}

static inline uint32_t
link_shm_parse(const struct soft_engine *e, const struct soft_shm_rx *rx, uint32_t n_gids,
	       const struct soft_ring_rec *rec, const uint8_t *p, struct soft_shm_pkt *in)
{
	enum bb_roce_drop drop;

	if (unlikely(rec->sgid >= n_gids || __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED)))
		return SOFT_LOST_PORT_DOWN;
	in->from = (struct soft_wire_dest){
		.net = {.sport = rec->sport,
			.tclass = rec->tclass,
			.hop_limit = rec->hop_limit,
			.flow_label = rec->flow_label & 0xfffff},
	};
	memcpy(in->from.net.src, rx->gids[rec->sgid], 16);
	memcpy(in->from.net.dst, rx->dst, 16);
	/* The payload is not parsed, only copied. */
	memcpy(in->hdr, p, RTE_MIN(rec->len, (uint32_t)sizeof(in->hdr)));
	drop = bb_roce_parse(&in->pkt, in->hdr, rec->len);
	if (likely(drop == BB_ROCE_OK))
		in->pkt.payload = p + (in->pkt.payload - in->hdr);
	return drop;
}

uint32_t
soft_shm_parse(const struct soft_engine *e, const struct soft_shm_rx *rx, uint32_t n_gids,
	       const struct soft_ring_rec *rec, const uint8_t *p, struct soft_shm_pkt *in)
{
	return link_shm_parse(e, rx, n_gids, rec, p, in);
}

static __rte_noinline void
link_shm_input(struct soft_engine *e, const struct soft_shm_rx *rx, const struct soft_ring_rec *rec,
	       const uint8_t *p)
{
	struct soft_shm_pkt in;
	struct soft_qp *qp;
	uint32_t drop = link_shm_parse(e, rx, rx->n_gids, rec, p, &in);

	if (unlikely(drop != BB_ROCE_OK)) {
		if (rx->n_group_gids != 0)
			soft_shm_cast_in(e, rx, rec, p);
		else
			soft_wire_lost(e->dev, drop);
		return;
	}
	qp = soft_qp_dest(e->dev, in.pkt.dqpn);
	if (unlikely(qp == NULL || qp->wire == NULL)) {
		soft_wire_lost(e->dev, SOFT_LOST_NO_QP);
		return;
	}
	if (unlikely(qp->engine != e || soft_net_faulty(&e->dev->opts.rx_fault) ||
		     e->dev->capture != NULL))
		link_shm_pass(e, qp, &in.from, &in.pkt);
	else
		soft_wire_rx(e, qp->wire, &in.pkt, &in.from.net);
}

static inline struct soft_wire *
link_shm_packet(struct soft_engine *e, const struct soft_shm_rx *rx,
		const struct soft_ring_rec *rec, const uint8_t *p)
{
	struct soft_wire *w = soft_shm_send_in(e, rx, rec, p);

	if (unlikely(w == NULL))
		link_shm_input(e, rx, rec, p);
	return w;
}

/* Processes a record of two packets. Changes *rec. */
static __rte_noinline struct soft_wire *
link_shm_two_packets(struct soft_engine *e, const struct soft_shm_rx *rx, struct soft_ring_rec *rec,
		     const uint8_t *p)
{
	const uint32_t ack_len = rec->ack_len, len = rec->len - ack_len;
	struct soft_wire *first, *second;

	if (unlikely(ack_len >= rec->len)) {
		soft_wire_lost(e->dev, BB_ROCE_DROP_SHORT);
		return NULL;
	}
	rec->len = len;
	first = link_shm_packet(e, rx, rec, p);
	rec->len = ack_len;
	second = link_shm_packet(e, rx, rec, p + len);
	if (unlikely(first != NULL && first != second))
		soft_wire_received(e, first, false);
	return second;
}

static inline struct soft_wire *
link_shm_record(struct soft_engine *e, const struct soft_shm_rx *rx, struct soft_ring_rec *rec,
		const uint8_t *p)
{
	return rec->ack_len == 0 ? link_shm_packet(e, rx, rec, p)
				 : link_shm_two_packets(e, rx, rec, p);
}

struct soft_wire *
soft_shm_input(struct soft_engine *e, const struct soft_shm_rx *rx, const struct soft_ring_rec *rec,
	       const uint8_t *p)
{
	struct soft_ring_rec copy = *rec;

	return link_shm_record(e, rx, &copy, p);
}

/*
 * Processes a burst of packets. Returns the QP of the last packet, for which the caller must call
 * soft_wire_received(), or NULL. Without @all the burst ends after a message of a conversation. Its
 * peer waits for an answer, so the next record is most likely empty. To look at it costs time,
 * because its cache line is still on its way from the peer's CPU.
 */
static inline struct soft_wire *
link_shm_burst(struct soft_engine *e, struct soft_shm_rx *rx, bool all)
{
	struct soft_wire *last = NULL, *w;
	struct soft_ring_rec rec;
	const uint8_t *p;
	uint32_t n;

	for (n = 0; n < BURST && (p = soft_ring_peek(&rx->ring, &rec)) != NULL; n++) {
		w = link_shm_record(e, rx, &rec, p);
		if (last != NULL && last != w)
			soft_wire_received(e, last, false);
		last = w;
		soft_ring_pop(&rx->ring);
		if (w != NULL && soft_wire_delays_ack(e, w) && !all)
			break;
	}
	soft_ring_release(&rx->ring);
	return last;
}

static __rte_noinline void
link_shm_receive(struct soft_engine *e, struct soft_shm_rx *rx, bool all)
{
	struct soft_wire *last = NULL;

	/* If another thread holds the lock, that thread receives the packets. */
	if (!rte_ticketlock_trylock(&rx->lock))
		return;
	if (rx->state == SOFT_SHM_UP) {
		/*
		 * Packets in the inbox came from the same ring earlier, so they must be processed
		 * first.
		 */
		if (__atomic_load_n(&e->inbox, __ATOMIC_ACQUIRE) != NULL)
			soft_inbox_drain(e);
		/* Sets the time of the turn, too, so that the turn reads the clock only once. */
		(void)soft_engine_ns(e);
		soft_now(e);
		last = link_shm_burst(e, rx, all);
		e->work++;
	}
	rte_ticketlock_unlock(&rx->lock);
	if (last != NULL)
		soft_wire_received(e, last, true);
}

/* ---- Turns of an engine */

/*
 * Returns true if soft_shm_chores() is due. Reading the clock is expensive, so an engine that is
 * polled without a pause reads it in one of CLOCK_POLLS polls. If several threads poll at once,
 * their polls may count as one.
 */
static inline bool
link_shm_due(struct soft_engine *e)
{
	uint32_t polls = __atomic_load_n(&e->shm_polls, __ATOMIC_RELAXED);
	uint64_t now;

	if (likely(polls != 0)) {
		__atomic_store_n(&e->shm_polls, polls - 1, __ATOMIC_RELAXED);
		return false;
	}
	now = rte_rdtsc();
	if (now >= __atomic_load_n(&e->dev->shm->chores_at, __ATOMIC_RELAXED))
		return true;
	if (now < __atomic_load_n(&e->shm_often, __ATOMIC_RELAXED))
		__atomic_store_n(&e->shm_polls, CLOCK_POLLS, __ATOMIC_RELAXED);
	__atomic_store_n(&e->shm_often, now + soft_time_cycles(CLOCK_NS), __ATOMIC_RELAXED);
	return false;
}

static inline bool
link_shm_packets_wait(const struct soft_shm *shm)
{
	uint32_t i, n = __atomic_load_n(&shm->n_rx, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++)
		if (soft_ring_waiting(&shm->rx[i]->ring))
			return true;
	return false;
}

static bool
link_shm_waiting(struct soft_engine *e)
{
	const struct soft_shm *shm = e->dev->shm;

	return link_shm_packets_wait(shm) ||
	       __atomic_load_n(&shm->changes, __ATOMIC_RELAXED) !=
		       __atomic_load_n(&e->shm_changes, __ATOMIC_RELAXED) ||
	       link_shm_due(e);
}

static inline void
link_shm_look(struct soft_engine *e, struct soft_shm *shm)
{
	if (unlikely(link_shm_due(e)))
		soft_shm_chores(shm, rte_rdtsc());
	if (unlikely(__atomic_load_n(&shm->changes, __ATOMIC_RELAXED) != e->shm_changes))
		soft_shm_check_qps(e, shm);
}

static inline void
link_shm_take(struct soft_engine *e, struct soft_shm *shm, bool all)
{
	uint32_t i, n = __atomic_load_n(&shm->n_rx, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++)
		if (soft_ring_waiting(&shm->rx[i]->ring))
			link_shm_receive(e, shm->rx[i], all);
}

static bool
link_shm_turn(struct soft_engine *e)
{
	struct soft_shm *shm = e->dev->shm;

	link_shm_look(e, shm);
	link_shm_take(e, shm, false);
	return false;
}

/* Option rx_full: while the link is full, received packets stay in the ring. */
static bool
link_shm_turn_unless_full(struct soft_engine *e)
{
	struct soft_shm *shm = e->dev->shm;

	link_shm_look(e, shm);
	if (!soft_net_full(e, true))
		link_shm_take(e, shm, false);
	return false;
}

void
soft_shm_last_packets(struct soft_engine *e)
{
	struct soft_shm *shm = e->dev->shm;
	uint32_t i;

	if (shm == NULL)
		return;
	e->timed = false;
	e->stamped = false;
	/* The number of bursts is limited, because a peer might send without end. */
	for (i = 0; i < SOFT_RING_SIZE / (SOFT_RING_ALIGN * BURST) && link_shm_packets_wait(shm);
	     i++)
		link_shm_take(e, shm, true);
	if (__atomic_load_n(&e->inbox, __ATOMIC_ACQUIRE) != NULL)
		soft_inbox_drain(e);
	/* The next poll runs the QPs that the packets have queued. */
	__atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
}

#define LINK_SHM_OPS(receive_)                                                                     \
	{                                                                                          \
		.send = link_shm_send, .send_bytes = link_shm_send_bytes, .receive = receive_,     \
		.waiting = link_shm_waiting, .qp_size = sizeof(struct soft_shm_wire),              \
		.connected = soft_shm_connected, .direct = soft_shm_direct,                        \
		.plain = soft_shm_send_out, .holds = soft_shm_holds,                               \
		.established = soft_shm_established                                                \
	}

const struct soft_link_ops soft_link_shm = LINK_SHM_OPS(link_shm_turn);
const struct soft_link_ops soft_link_shm_fills = LINK_SHM_OPS(link_shm_turn_unless_full);
