/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes received frames to the WQEs of cyclic RQs (Linux mlx5/core/en_rx.c). */
#include <string.h>

#include <rte_common.h>

#include "bb_cqe.h"
#include "eth.h"

#define SEG         16u
#define INVALID_KEY 0x100u /* Linux include/linux/mlx5/qp.h: ends the list of segments */
/*
 * Mask of a segment's byte count. mlx5e sets the upper bit (Linux en.h: MLX5_HW_START_PADDING),
 * which has no effect.
 */
#define BYTES      0x7fffffffu
#define MAX_STRIDE (1u << ETH_LOG_MAX_STRIDE)

/* Fields of a receive CQE that struct bb_cqe does not have (Linux device.h, struct mlx5_cqe64). */
#define CQE_CHECK_SUM  20u
#define CQE_HDS_IP_EXT 28u
#define CQE_L2_OK      1u

static void
complete(struct eth_queue *q, const uint8_t *frame, uint32_t len, uint32_t tag)
{
	uint8_t cqe[64] = {0};
	struct bb_cqe *c = (struct bb_cqe *)(void *)cqe;

	/*
	 * The sum of all bytes after the Ethernet header. Linux verifies the frame's checksums with
	 * it.
	 */
	bb_prm_set(cqe, BB_PRM_F(CQE_CHECK_SUM, 0, 16),
		   eth_sum(frame + ETH_HEADER, len - ETH_HEADER));
	cqe[CQE_HDS_IP_EXT] = CQE_L2_OK;
	bb_prm_set(cqe, BB_PRM_F(32, 8, 24), q->user_index);
	bb_prm_set(cqe, BB_PRM_F(44, 0, 32), len);
	bb_prm_set(cqe, BB_PRM_F(56, 8, 24), tag);
	bb_prm_set(cqe, BB_PRM_F(60, 0, 16), q->ci);
	c->op_own = BB_CQE_RESP_SEND << 4;
	(void)eth_cqe(q, cqe);
}

/* Memory of a WQE. */
struct scatter {
	uint32_t n;
	struct {
		uint8_t *p;
		uint32_t len;
	} part[MAX_STRIDE / SEG];
};

/*
 * Finds the memory for a frame of @len bytes in a WQE. Returns false if the WQE is too small or
 * names memory that the queue may not write.
 */
static bool
find_memory(struct eth_queue *q, const uint8_t *wqe, uint32_t len, struct scatter *s)
{
	uint32_t at;

	s->n = 0;
	for (at = 0; at + SEG <= 1u << q->log_stride && len > 0; at += SEG) {
		uint32_t bytes = RTE_MIN(bb_prm_dword(wqe + at, 0) & BYTES, len);
		uint32_t key = bb_prm_dword(wqe + at, 4);
		uint64_t addr = bb_prm_get64(wqe + at, BB_PRM_F(8, 0, 64));

		if (key == INVALID_KEY)
			return false;
		if (bytes == 0)
			continue;
		s->part[s->n].p = eth_memory(q->eth, q->pdn, key, addr, bytes, true);
		if (s->part[s->n].p == NULL)
			return false;
		s->part[s->n++].len = bytes;
		len -= bytes;
	}
	return len == 0;
}

void
eth_rq_put(struct eth_queue *q, const uint8_t *frame, uint32_t len, uint32_t tag)
{
	uint32_t off = (q->ci & ((1u << q->log_size) - 1)) << q->log_stride, i, done = 0;
	struct front_frames *stats = &q->eth->stats;
	uint8_t wqe[MAX_STRIDE];
	struct scatter s;
	uint16_t pi;

	if (q->state != ETH_RDY) {
		stats->dropped_error++;
		return;
	}
	if (!eth_record(q, 0, &pi) ||
	    !eth_read(q->eth, q->pages[off >> q->log_page] + (off & ((1u << q->log_page) - 1)), wqe,
		      1u << q->log_stride)) {
		FRONT_LOG(ERR, "RQ 0x%x moved to ERR: its ring or its doorbell record is not RAM\n",
			  q->number);
		q->state = ETH_ERR;
		stats->dropped_error++;
		return;
	}
	if (pi == q->ci) {
		stats->dropped_no_wqe++;
		return;
	}
	if (!find_memory(q, wqe, len, &s)) {
		stats->dropped_too_long++;
		return;
	}
	for (i = 0; i < s.n; i++) {
		memcpy(s.part[i].p, frame + done, s.part[i].len);
		done += s.part[i].len;
	}
	stats->rx_frames++;
	stats->rx_bytes += len;
	complete(q, frame, len, tag);
	q->ci++;
}
