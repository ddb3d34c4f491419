/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Compressed CQEs in the basic layout (cqe_comp_layout 0).
 *
 * A block of n CQEs takes n slots of the ring. The first slot has the title, which is a CQE with
 * format 3 and n as its byte count. Slots 1, 8, 16 and so on of the block have eight mini CQEs of 8
 * bytes each. The other slots keep stale data. A mini CQE has a checksum, a stride index (both are
 * 0 here) and a byte count. CQE i of the block has the WQE counter of the title plus i.
 *
 * This device compresses the receive CQEs of plain SENDs, if the receives follow one another in one
 * receive queue. A SEND is plain if it is not solicited, has no immediate data and is no datagram,
 * and if the CQE does not contain its data. A block ends before any other CQE, at SOFT_ZIP_MAX
 * CQEs, and when the engine has no more work. A block of one CQE is written as an uncompressed CQE.
 * It is an assumption [A] that a card compresses the same CQEs and ends a block at the same points.
 *
 * Call the functions with the engine's lock held, and also with the CQ's lock if the CQ is shared.
 */
#include <stdlib.h>

#include "soft_cqe.h"

/*
 * Which software reads compressed CQEs:
 *
 * Linux's mlx5e reads layout 0 (en_rx.c, mlx5e_decompress_cqes_start() and mlx5e_decompress_cqe()).
 * DPDK's mlx5 Rx reads layout 0, too, unless rxq_cqe_comp_en has bit 0x80
 * (drivers/net/mlx5/mlx5_rx.c, mlx5_rx_poll_len(); it shows the count, the slots of the arrays, and
 * the counter of the title plus i for shared queues). Both read Ethernet receive queues only; no
 * open driver reads compressed CQEs of an RC queue pair. DPDK with bit 0x80 requests layout 1, and
 * UCX always does (ib_mlx5.c, uct_ib_mlx5_iface_cqe_unzip()). This device rejects layout 1. libmlx5
 * (providers/mlx5/cq.c) reads neither layout.
 */

#define MINIS 8u

struct soft_zip {
	/* number of CQEs that wait to be written as one block of compressed CQEs, 0 if none */
	uint32_t n;
	uint32_t qpn;
	struct soft_cqe_parts title;
	uint32_t len[SOFT_ZIP_MAX]; /* byte counts of the pending CQEs, big endian */
	/* true if this struct's CQ is on an engine's list of CQs with an unwritten block */
	bool queued;
};

int
soft_zip_init(struct soft_cq *cq)
{
	cq->zip = calloc(1, sizeof(*cq->zip));
	return cq->zip != NULL ? 0 : -ENOMEM;
}

void
soft_zip_fini(struct soft_cq *cq)
{
	free(cq->zip);
}

static uint8_t *
cqe_at(const struct soft_cq *cq, uint32_t index)
{
	return cq->buf + ((size_t)(index & ((1u << cq->log_size) - 1)) << 6);
}

static void
write_block(struct soft_engine *e, struct soft_cq *cq)
{
	struct soft_zip *z = cq->zip;
	uint32_t i, pi = cq->pi;
	struct bb_cqe title;
	struct bb_cqe *cqe;

	for (i = 0; i < z->n; i += MINIS) {
		uint32_t minis[MINIS][2] = {{0}}, k;

		for (k = 0; k < MINIS && i + k < z->n; k++)
			minis[k][1] = z->len[i + k];
		memcpy(cqe_at(cq, pi + (i == 0 ? 1 : i)), minis, sizeof(minis));
	}
	memset(&title, 0, sizeof(title));
	memcpy((uint8_t *)&title + 32, &z->title.w4, 8);
	title.byte_cnt = bb_be32(z->n);
	title.timestamp = bb_be64(e->now);
	title.sop_qpn = bb_be32(z->qpn);
	title.wqe_counter = bb_be16(z->title.counter);
	cqe = (struct bb_cqe *)(void *)cqe_at(cq, pi);
	memcpy(cqe, &title, offsetof(struct bb_cqe, op_own));
	bb_cqe_own_store(&cqe->op_own, (uint8_t)(z->title.op_flags | BB_CQE_COMPRESSED |
						 (pi >> cq->log_size & 1)));
	cq->pi += z->n;
}

void
soft_zip_end(struct soft_engine *e, struct soft_cq *cq)
{
	struct soft_zip *z = cq->zip;
	bool died = false;

	if (z == NULL || z->n == 0)
		return;
	if (z->n == 1)
		/*
		 * The write cannot overrun, because has_room() was true when the CQE was added to
		 * the block.
		 */
		(void)soft_cqe_put(e, z->qpn, cq, &z->title, false, &died);
	else
		write_block(e, cq);
	z->n = 0;
	if ((__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_ARMED) != 0)
		soft_cq_notify(e, cq);
}

/* Returns true if the ring has room for one more CQE after the pending CQEs. */
static bool
has_room(struct soft_cq *cq)
{
	uint32_t size = 1u << cq->log_size, end = cq->pi + cq->zip->n;

	if (cq->error)
		return false;
	if (((end - cq->last_ci) & 0xffffff) >= size)
		cq->last_ci = bb_be32(bb_dbrec_load(cq->dbrec)) & 0xffffff;
	return ((end - cq->last_ci) & 0xffffff) < size || cq->ignore_overrun;
}

bool
soft_zip_take(struct soft_engine *e, uint32_t qpn, struct soft_cq *cq,
	      const struct soft_cqe_parts *c)
{
	struct soft_zip *z = cq->zip;

	if (c->op_flags != BB_CQE_RESP_SEND << 4 || c->data != NULL ||
	    soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_NONE)
		return false;
	if (z->n == SOFT_ZIP_MAX ||
	    (z->n != 0 && (z->qpn != qpn || z->title.w4 != c->w4 ||
			   (uint16_t)(z->title.counter + z->n) != c->counter)))
		soft_zip_end(e, cq);
	if (!has_room(cq))
		return false;
	if (z->n == 0) {
		z->title = *c;
		z->qpn = qpn;
	}
	z->len[z->n++] = (uint32_t)(c->w5 >> 32);
	if (!z->queued) {
		z->queued = true;
		TAILQ_INSERT_TAIL(&e->zips, cq, zips);
		e->chores = true;
	}
	return true;
}

void
soft_zip_run(struct soft_engine *e)
{
	struct soft_cq *cq;

	while ((cq = TAILQ_FIRST(&e->zips)) != NULL) {
		bool locked = (__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) & SOFT_CQ_SHARED) != 0;

		TAILQ_REMOVE(&e->zips, cq, zips);
		if (locked)
			rte_ticketlock_lock(&cq->lock);
		soft_zip_end(e, cq);
		cq->zip->queued = false;
		if (locked)
			rte_ticketlock_unlock(&cq->lock);
	}
}
