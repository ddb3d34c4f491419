/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Access of the queues to the guest's memory and CQs. */
#include <string.h>

#include "eth.h"

bool
eth_read(struct front_eth *e, uint64_t pa, void *to, uint32_t len)
{
	const void *p = e->f->host.at(e->f->host.arg, pa, len, false);

	if (p != NULL)
		memcpy(to, p, len);
	return p != NULL;
}

uint8_t *
eth_memory(struct front_eth *e, uint32_t pdn, uint32_t key, uint64_t addr, uint32_t len, bool write)
{
	const struct front_obj *o = front_obj_find(e->f, FRONT_MKEY, key >> 8);

	if (o == NULL || o->key.value != key || !o->key.physical || o->key.pdn != pdn ||
	    (write && !o->key.writable))
		return NULL;
	return e->f->host.at(e->f->host.arg, addr, len, write);
}

bool
eth_record(struct eth_queue *q, unsigned int word, uint16_t *counter)
{
	const struct front_host *host = &q->eth->f->host;
	const uint32_t *p = host->at(host->arg, q->dbr + 4 * word, 4, false);
	uint32_t v;

	if (p == NULL)
		return false;
	v = __atomic_load_n(p, __ATOMIC_ACQUIRE);
	*counter = (uint16_t)bb_prm_dword(&v, 0);
	return true;
}

bool
eth_cqe(struct eth_queue *q, uint8_t cqe[64])
{
	if (soft_cqe_host(q->cq->user->ctx, q->cq->id, cqe) == 0)
		return true;
	FRONT_LOG(ERR, "queue 0x%x: CQ 0x%x has overrun: the queue is in ERR\n", q->number,
		  q->cq->id);
	q->state = ETH_ERR;
	return false;
}
