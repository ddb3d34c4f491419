/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The link between the Ethernet ports of this process: a learning bridge (IEEE 802.1D). A frame to
 * a group, or to an address that sent nothing yet, goes to all other ports. A new address may
 * replace an older one in the table. Frames to an address that is not in the table are only copied
 * to more ports.
 */
#include <string.h>

#include "eth.h"

#define LEARNED 256u /* power of two */

struct learned {
	uint8_t mac[ETH_MAC];
	struct front_eth *port; /* NULL: the slot is empty */
};

static LIST_HEAD(, front_eth) ports;
static struct learned table[LEARNED];

void
eth_link_add(struct front_eth *e)
{
	LIST_INSERT_HEAD(&ports, e, link);
}

void
eth_link_remove(struct front_eth *e)
{
	uint32_t i;

	LIST_REMOVE(e, link);
	for (i = 0; i < LEARNED; i++)
		if (table[i].port == e)
			table[i].port = NULL;
}

static struct learned *
slot(const uint8_t mac[ETH_MAC])
{
	uint32_t h = mac[0], i;

	for (i = 1; i < ETH_MAC; i++)
		h = h * 31 + mac[i];
	return &table[h & (LEARNED - 1)];
}

void
eth_link_send(struct front_eth *from, const uint8_t *frame, uint32_t len)
{
	const uint8_t *to = frame, *source = frame + ETH_MAC;
	struct front_eth *e;
	struct learned *l;

	if (from->on_port) {
		eth_port_send(from, frame, len);
		return;
	}
	if ((source[0] & 1) == 0) {
		l = slot(source);
		memcpy(l->mac, source, ETH_MAC);
		l->port = from;
	}
	l = slot(to);
	if ((to[0] & 1) == 0 && l->port != NULL && memcmp(l->mac, to, ETH_MAC) == 0) {
		if (l->port != from)
			eth_receive(l->port, frame, len);
		return;
	}
	LIST_FOREACH(e, &ports, link)
		if (e != from)
			eth_receive(e, frame, len);
}
