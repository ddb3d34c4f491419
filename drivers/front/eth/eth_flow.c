/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Passes a received frame through the flow tables: from the root table to TIRs, and to their RQs.
 */
#include <string.h>

#include "bb_bytes.h"
#include "eth_flow.h"

/* A frame on its way through the tables. */
struct walk {
	struct front_eth *eth;
	const uint8_t *frame;
	uint32_t len;
	uint32_t entries; /* entries that may still be compared */
	uint32_t tables; /* tables that may still be entered: a guest may link tables in a circle */
	uint32_t deliveries; /* RQs that may still get the frame */
	bool delivered;
	uint8_t match[ETH_MATCH_BYTES];
};

static void
match_ip(const uint8_t *frame, const struct eth_headers *h, uint8_t *m)
{
	const uint8_t *ip = frame + h->l3;
	bool v4 = h->ip_version == 4;
	uint32_t tos = v4 ? ip[1] : (bb_get16(ip) >> 4 & 0xff);

	bb_prm_set(m, BB_PRM_MATCH_IP_VERSION, h->ip_version);
	bb_prm_set(m, BB_PRM_MATCH_IP_PROTOCOL, h->protocol);
	bb_prm_set(m, BB_PRM_MATCH_IP_DSCP, tos >> 2);
	bb_prm_set(m, BB_PRM_MATCH_IP_ECN, tos & 3);
	bb_prm_set(m, BB_PRM_MATCH_FRAG, h->fragment);
	bb_prm_set(m, BB_PRM_MATCH_TTL, v4 ? ip[8] : ip[7]);
	/* An IPv4 address is in the last 4 of the 16 bytes. */
	memcpy(m + BB_PRM_MATCH_SRC_IP.byte + (v4 ? 12 : 0), ip + (v4 ? 12 : 8), v4 ? 4 : 16);
	memcpy(m + BB_PRM_MATCH_DST_IP.byte + (v4 ? 12 : 0), ip + (v4 ? 16 : 24), v4 ? 4 : 16);
}

void
eth_match_of(const uint8_t *frame, uint32_t len, uint8_t m[ETH_MATCH_BYTES])
{
	struct eth_headers h;
	const uint8_t *l4;

	memset(m, 0, ETH_MATCH_BYTES);
	eth_parse(frame, len, &h);
	bb_prm_set(m, BB_PRM_MATCH_DMAC_HIGH, bb_prm_dword(frame, 0));
	bb_prm_set(m, BB_PRM_MATCH_DMAC_LOW, bb_get16(frame + 4));
	bb_prm_set(m, BB_PRM_MATCH_SMAC_HIGH, bb_prm_dword(frame, 6));
	bb_prm_set(m, BB_PRM_MATCH_SMAC_LOW, bb_get16(frame + 10));
	bb_prm_set(m, BB_PRM_MATCH_ETHERTYPE, h.type);
	bb_prm_set(m, BB_PRM_MATCH_CVLAN_TAG, h.cvlan);
	bb_prm_set(m, BB_PRM_MATCH_SVLAN_TAG, h.svlan);
	bb_prm_set(m, BB_PRM_MATCH_FIRST_PRIO, h.vlan >> 13);
	bb_prm_set(m, BB_PRM_MATCH_FIRST_CFI, h.vlan >> 12);
	bb_prm_set(m, BB_PRM_MATCH_FIRST_VID, h.vlan);
	if (h.l3 != 0)
		match_ip(frame, &h, m);
	if (h.l4 == 0)
		return;
	l4 = frame + h.l4;
	if (h.protocol == ETH_PROTO_TCP) {
		bb_prm_set(m, BB_PRM_MATCH_TCP_SPORT, bb_get16(l4));
		bb_prm_set(m, BB_PRM_MATCH_TCP_DPORT, bb_get16(l4 + 2));
		bb_prm_set(m, BB_PRM_MATCH_TCP_FLAGS, bb_get16(l4 + 12));
	} else {
		bb_prm_set(m, BB_PRM_MATCH_UDP_SPORT, bb_get16(l4));
		bb_prm_set(m, BB_PRM_MATCH_UDP_DPORT, bb_get16(l4 + 2));
	}
}

static bool
matches(const struct eth_entry *entry, const uint8_t *match)
{
	const uint8_t *mask = entry->group->mask;
	unsigned int i;

	for (i = 0; i < ETH_MATCH_BYTES; i++)
		if ((match[i] & mask[i]) != entry->value[i])
			return false;
	return true;
}

/*
 * Writes the frame to an RQ of a TIR. There is no receive side scaling: an RQT passes all frames to
 * its first RQ.
 */
static void
deliver(struct walk *w, const struct front_obj *tir, uint32_t tag)
{
	const struct front_obj *to = ((const struct eth_tir *)tir->eth)->to;

	if (w->deliveries == 0)
		return;
	w->deliveries--;
	if (to->kind == FRONT_RQT)
		to = ((const struct eth_rqt *)to->eth)->rqs[0];
	eth_rq_put(to->eth, w->frame, w->len, tag);
	w->delivered = true;
}

static void
enter(struct walk *w, uint32_t number)
{
	const struct front_obj *o;
	const struct eth_table *t;
	const struct eth_entry *e;
	uint32_t i, next;

	for (; number != 0 && w->tables > 0; number = next) {
		w->tables--;
		o = front_obj_find(w->eth->f, FRONT_FLOW_TABLE, number);
		if (o == NULL)
			return;
		t = o->eth;
		LIST_FOREACH(e, &t->entries, next) {
			if (w->entries == 0)
				return;
			w->entries--;
			if (matches(e, w->match))
				break;
		}
		next = t->miss;
		if (e == NULL)
			continue;
		next = 0;
		if ((e->action & ETH_ACTION_FWD) == 0)
			return;
		for (i = 0; i < e->n_dests; i++) {
			if (e->dests[i].tir != NULL)
				deliver(w, e->dests[i].tir, e->tag);
			else if (i + 1 == e->n_dests)
				next = e->dests[i].table;
			else
				enter(w, e->dests[i].table);
		}
	}
}

void
eth_receive(struct front_eth *e, const uint8_t *frame, uint32_t len)
{
	struct walk w = {.eth = e,
			 .frame = frame,
			 .len = len,
			 .tables = ETH_MAX_LEVEL,
			 .deliveries = ETH_MAX_DELIVERIES,
			 .entries = ETH_MAX_ENTRIES};

	if (e->f->stopped) {
		e->stats.dropped_error++;
		return;
	}
	eth_match_of(frame, len, w.match);
	enter(&w, e->root);
	if (!w.delivered)
		e->stats.dropped_steering++;
}
