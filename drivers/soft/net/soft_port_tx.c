/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Building of packets to send: headers, payload by reference or copied, ICRC. Also the queue of
 * packets before the PMD.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_ethdev.h>

#include "soft_mcg.h"
#include "soft_port_priv.h"

/* Largest number of mbufs in flight per message, because the reference count has 16 bits. */
#define HOLD_MAX 60000

/* Never called: the message itself holds a reference, so the count cannot reach 0. */
static void
hold_lost(void *addr, void *hold)
{
	(void)addr;
	(void)hold;
	RTE_ASSERT(false);
}

void
soft_port_hold_init(struct soft_port_hold *h)
{
	h->shinfo.free_cb = hold_lost;
	h->shinfo.fcb_opaque = h;
	rte_mbuf_ext_refcnt_set(&h->shinfo, 1);
}

/* ---- Queue of packets for the PMD */

void
soft_port_flush(struct soft_port *p)
{
	p->txq_bytes = 0;
	while (p->txq_n != 0)
		if (!soft_port_pass(p, RTE_MIN(p->txq_n, SOFT_PORT_TXQ - p->txq_first)))
			return;
}

/*
 * Copies each queued packet whose payload is still in the memory of a message. If no mbuf is free
 * for the copy, drops the packet.
 */
static __rte_noinline void
copy_references(struct soft_port *p)
{
	uint32_t n, i, kept = 0;

	for (i = 0, n = p->txq_n; i < n; i++) {
		struct rte_mbuf *m = p->txq[(p->txq_first + i) % SOFT_PORT_TXQ], *copy = m;

		if (m->nb_segs > 1) {
			copy = rte_pktmbuf_copy(m, p->eth.pool, 0, UINT32_MAX);
			rte_pktmbuf_free(m);
			p->stats.tx_unsettled++;
		}
		if (copy != NULL)
			p->txq[(p->txq_first + kept++) % SOFT_PORT_TXQ] = copy;
	}
	p->txq_n = kept;
}

void
soft_port_settle(struct soft_port *p)
{
	soft_port_flush(p);
	if (unlikely(p->txq_n != 0))
		copy_references(p);
}

struct rte_mbuf *
soft_port_refill(struct soft_port *p)
{
	if (unlikely(rte_mempool_get_bulk(p->eth.pool, (void **)p->spare, SOFT_PORT_REFILL) != 0))
		return rte_mbuf_raw_alloc(p->eth.pool);
	p->spares = SOFT_PORT_REFILL - 1;
	return p->spare[p->spares];
}

uint8_t *
soft_port_room(void *port, uint32_t len)
{
	struct soft_port *p = port;
	struct rte_mbuf *m;
	char *at;

	if (p->txq_n == SOFT_PORT_TXQ)
		soft_port_flush(p);
	if (p->txq_n == SOFT_PORT_TXQ || len > p->eth.frame)
		return NULL;
	m = soft_port_mbuf(p);
	if (m == NULL)
		return NULL;
	at = rte_pktmbuf_append(m, (uint16_t)len);
	if (at == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	soft_port_enqueue(p, m);
	return (uint8_t *)at;
}

/* ---- Building a packet */

/* Returns true if the payload can be sent without a copy. */
static bool
can_refer(const struct soft_port *p, const struct soft_port_tx *tx, uint32_t len)
{
	return p->eth.zero_copy && tx->hold != NULL && len > SOFT_PORT_COPY &&
	       tx->n <= SOFT_PORT_MAX_SEGS &&
	       rte_mbuf_ext_refcnt_read(&tx->hold->shinfo) < HOLD_MAX;
}

/*
 * Appends to @head the payload by reference, and a segment with padding and ICRC. Returns false if
 * no mbuf is free.
 */
static bool
refer(struct soft_port *p, const struct soft_port_tx *tx, struct rte_mbuf *head,
      const uint8_t *trailer, uint32_t trailer_len)
{
	struct rte_mbuf *seg[SOFT_PORT_MAX_SEGS], *tail, *last = head;
	struct rte_mbuf_ext_shared_info *shinfo = &tx->hold->shinfo;
	uint32_t i;

	tail = soft_port_mbuf(p);
	if (tail == NULL)
		return false;
	if (rte_pktmbuf_alloc_bulk(p->eth.ext, seg, tx->n) != 0) {
		rte_pktmbuf_free(tail);
		return false;
	}
	for (i = 0; i < tx->n; i++) {
		const struct bb_roce_iov *iov = &tx->iov[i];

		rte_mbuf_ext_refcnt_update(shinfo, 1);
		/* The IOVA is not used, because PMDs with zero_copy read by virtual address. */
		rte_pktmbuf_attach_extbuf(seg[i], (void *)(uintptr_t)iov->p, (uintptr_t)iov->p,
					  (uint16_t)iov->len, shinfo);
		seg[i]->data_len = (uint16_t)iov->len;
		seg[i]->pkt_len = iov->len;
		last->next = seg[i];
		last = seg[i];
		head->pkt_len += iov->len;
	}
	memcpy(rte_pktmbuf_append(tail, (uint16_t)trailer_len), trailer, trailer_len);
	last->next = tail;
	head->pkt_len += trailer_len;
	head->nb_segs = (uint16_t)(2 + tx->n);
	return true;
}

/*
 * Copies the transport headers. Nearly all headers have one of the lengths below, for which the
 * copy compiles to moves instead of a call.
 */
static inline void
copy_hdr(uint8_t *to, const uint8_t *from, uint32_t len)
{
	switch (len) {
	case BB_ROCE_BTH_LEN:
		memcpy(to, from, BB_ROCE_BTH_LEN);
		return;
	case BB_ROCE_BTH_LEN + 4: /* AETH, ImmDt */
		memcpy(to, from, BB_ROCE_BTH_LEN + 4);
		return;
	case BB_ROCE_BTH_LEN + 16: /* RETH */
		memcpy(to, from, BB_ROCE_BTH_LEN + 16);
		return;
	default:
		memcpy(to, from, len);
	}
}

static inline void
copy_payload(uint8_t *at, const struct soft_port_tx *tx)
{
	uint32_t i;

	for (i = 0; i < tx->n; i++) {
		if (tx->iov[i].len == 8) /* memcpy() costs relatively most at this length. */
			memcpy(at, tx->iov[i].p, 8);
		else if (tx->iov[i].len != 0)
			memcpy(at, tx->iov[i].p, tx->iov[i].len);
		at += tx->iov[i].len;
	}
}

/*
 * Checks the lengths that the engine passed, and returns the payload's length in *len. Returns
 * false if a length is out of range.
 */
static bool
measure(const struct soft_port *p, const struct soft_port_tx *tx, uint32_t l3, uint32_t *len)
{
	uint32_t room, i;

	if (tx->n > BB_ROCE_MAX_IOV || tx->hdr_len < BB_ROCE_BTH_LEN ||
	    tx->hdr_len > BB_ROCE_MAX_HDR)
		return false;
	/* eth.frame always includes room for a VLAN tag. */
	room = p->eth.frame - SOFT_PORT_L2_OVERHEAD - l3 - SOFT_UDP_HDR - tx->hdr_len -
	       BB_ROCE_ICRC_LEN;
	*len = 0;
	for (i = 0; i < tx->n; i++) {
		if (tx->iov[i].len > room - *len)
			return false;
		*len += tx->iov[i].len;
	}
	return bb_roce_pad(*len) <= room - *len;
}

/* Builds a packet with @len bytes of payload. Returns NULL if no mbuf is free. */
static struct rte_mbuf *
build(struct soft_port *p, const struct soft_port_tx *tx, const struct soft_port_path *path,
      uint32_t len)
{
	bool refers = can_refer(p, tx, len);
	uint32_t pad = bb_roce_pad(len), crc, i;
	uint32_t copied = refers ? 0 : len + pad + BB_ROCE_ICRC_LEN;
	uint8_t trailer[3 + BB_ROCE_ICRC_LEN] = {0}, *at, *ip, *bth;
	struct rte_mbuf *m = soft_port_mbuf(p);

	if (m == NULL)
		return NULL;
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(path->len + tx->hdr_len + copied));
	memcpy(at, path->head, SOFT_PORT_HEAD); /* Every mbuf has SOFT_PORT_HEAD bytes of room. */
	soft_port_put_lengths(p, path, m, at,
			      SOFT_UDP_HDR + tx->hdr_len + len + pad + BB_ROCE_ICRC_LEN);
	ip = at + path->l2_len;
	bth = at + path->len;
	copy_hdr(bth, tx->hdr, tx->hdr_len);
	if (!refers) {
		at = bth + tx->hdr_len;
		copy_payload(at, tx);
		memset(at + len, 0, pad);
		crc = bb_roce_icrc_begin(ip, path->l3_len, ip + path->l3_len, bth,
					 tx->hdr_len + len + pad);
		bb_roce_icrc_end(crc, at + len + pad);
		p->stats.tx_copied += len != 0;
		return m;
	}
	crc = bb_roce_icrc_begin(ip, path->l3_len, ip + path->l3_len, bth, tx->hdr_len);
	for (i = 0; i < tx->n; i++)
		crc = bb_roce_icrc_more(crc, tx->iov[i].p, tx->iov[i].len);
	bb_roce_icrc_end(bb_roce_icrc_more(crc, trailer, pad), trailer + pad);
	if (!refer(p, tx, m, trailer, pad + BB_ROCE_ICRC_LEN)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	p->stats.tx_zero_copy++;
	return m;
}

/*
 * Finds the MAC for packets to @ip. A guest's kernel that uses the port has already resolved it:
 * @to. In this case sets *hint to 0, because the neighbour table is not used.
 */
static enum soft_port_sent
reach(struct soft_port *p, const uint8_t ip[16], const uint8_t *to, uint64_t now, uint16_t *hint,
      uint8_t mac[6])
{
	if (p->stack.hosted) {
		if (to == NULL)
			return SOFT_PORT_UNREACHABLE;
		memcpy(mac, to, 6);
		if (hint != NULL)
			*hint = 0;
		return SOFT_PORT_SENT;
	}
	switch (soft_port_resolve(&p->stack, ip, now, hint, mac)) {
	case SOFT_NEIGH_FOUND:
		return SOFT_PORT_SENT;
	case SOFT_NEIGH_UNREACHABLE:
		p->stats.tx_unreachable++;
		return SOFT_PORT_UNREACHABLE;
	default:
		p->stats.tx_pending++;
		return SOFT_PORT_PENDING;
	}
}

enum soft_port_sent
soft_port_reach(struct soft_port *p, const uint8_t ip[16], uint64_t now, uint8_t mac[6])
{
	return reach(p, ip, NULL, now, NULL, mac);
}

/*
 * Finds the path to a destination and builds the packet headers that all packets on the path share.
 * Returns the reason if there is no path now.
 */
static __rte_noinline enum soft_port_sent
find_path(struct soft_port *p, const struct bb_roce_net *net, const uint8_t *to, uint64_t now,
	  struct soft_port_path *path)
{
	bool v4 = soft_ip_is_v4(net->dst);
	enum soft_port_sent sent;
	const uint8_t *own = soft_port_own_mac(&p->stack, net->src);
	uint8_t mac[6], *ip, *udp;

	path->len = 0;
	if (own == NULL || soft_ip_is_v4(net->src) != v4)
		return SOFT_PORT_NO_SOURCE;
	sent = reach(p, net->dst, to, now, &path->hint, mac);
	if (sent != SOFT_PORT_SENT)
		return sent;
	/*
	 * A path (cached headers) to a multicast group has no neighbour entry to mark as used. So
	 * its generation is set to a stale value, and the next packet does not use the path again.
	 */
	path->gen = p->stack.neigh.gen - bb_roce_is_mcast(net->dst);
	path->l2_len = (uint8_t)soft_port_put_eth(&p->stack, path->head, mac, own,
						  v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	ip = path->head + path->l2_len;
	path->l3_len = (uint8_t)soft_port_put_ip(ip, net, IPPROTO_UDP, 0);
	if (v4) {
		memset(ip + 2, 0, 2);
		memset(ip + 10, 0, 2);
		path->sum = (uint16_t)~soft_port_csum(NULL, NULL, 0, 0, ip, 20);
	}
	udp = ip + path->l3_len;
	soft_port_put16(udp, net->sport);
	soft_port_put16(udp + 2, BB_ROCE_UDP_PORT);
	soft_port_put16(udp + 6, 0); /* no UDP checksum, because the ICRC covers more (annex A17) */
	path->len = (uint8_t)(path->l2_len + path->l3_len + SOFT_UDP_HDR);
	return SOFT_PORT_SENT;
}

enum soft_port_sent
soft_port_send(struct soft_port *p, const struct soft_port_tx *tx, uint64_t now)
{
	struct soft_port_path own, *path = tx->path;
	enum soft_port_sent sent;
	struct rte_mbuf *m;
	uint32_t len;

	if (unlikely(!p->up)) {
		p->stats.tx_down++;
		return SOFT_PORT_DOWN;
	}
	if (likely(path != NULL && path->len != 0 && path->gen == p->stack.neigh.gen)) {
		/*
		 * Marks the neighbour as used, because eviction takes the least recently used
		 * entry.
		 */
		p->stack.neigh.entry[path->hint].used = now;
		if (unlikely(!measure(p, tx, path->l3_len, &len)))
			return SOFT_PORT_REFUSED;
	} else {
		if (!measure(p, tx, soft_ip_is_v4(tx->net->dst) ? 20 : 40, &len))
			return SOFT_PORT_REFUSED;
		if (path == NULL) {
			own.hint = SOFT_NEIGH_NONE;
			path = &own;
		}
		sent = find_path(p, tx->net, tx->mac, now, path);
		if (sent != SOFT_PORT_SENT)
			return sent;
	}
	if (p->txq_n == SOFT_PORT_TXQ)
		soft_port_flush(p);
	m = p->txq_n < SOFT_PORT_TXQ ? build(p, tx, path, len) : NULL;
	if (m == NULL) {
		p->stats.tx_full++;
		return SOFT_PORT_FULL;
	}
	soft_port_push(p, m);
	return SOFT_PORT_SENT;
}

enum soft_port_sent
soft_port_send_ip(struct soft_port *p, const uint8_t *ip, uint32_t len,
		  const struct bb_roce_net *net, const uint8_t to[6], uint64_t now)
{
	const uint8_t *own = soft_port_own_mac(&p->stack, net->src);
	uint32_t l2 = soft_port_eth_len(&p->stack);
	enum soft_port_sent sent;
	uint8_t mac[6], *at;

	if (!p->up) {
		p->stats.tx_down++;
		return SOFT_PORT_DOWN;
	}
	if (len > p->eth.frame - l2)
		return SOFT_PORT_REFUSED;
	if (own == NULL)
		return SOFT_PORT_NO_SOURCE;
	sent = reach(p, net->dst, to, now, NULL, mac);
	if (sent != SOFT_PORT_SENT)
		return sent;
	at = soft_port_room(p, l2 + len);
	if (at == NULL) {
		p->stats.tx_full++;
		return SOFT_PORT_FULL;
	}
	soft_port_put_eth(&p->stack, at, mac, own,
			  soft_ip_is_v4(net->dst) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	memcpy(at + l2, ip, len);
	return SOFT_PORT_SENT;
}

enum soft_port_sent
soft_port_send_frame(struct soft_port *p, const uint8_t *frame, uint32_t len)
{
	uint8_t *at;

	if (!p->up) {
		p->stats.tx_down++;
		return SOFT_PORT_DOWN;
	}
	if (len > p->eth.frame)
		return SOFT_PORT_REFUSED;
	at = soft_port_room(p, len);
	if (at == NULL) {
		p->stats.tx_full++;
		return SOFT_PORT_FULL;
	}
	memcpy(at, frame, len);
	return SOFT_PORT_SENT;
}

bool
soft_port_is_full(struct soft_port *p)
{
	if (p->txq_n == SOFT_PORT_TXQ)
		soft_port_flush(p);
	return p->txq_n == SOFT_PORT_TXQ;
}
