/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Seeded defects: deliberate faults of the device. They prove that a test detects such a fault.
 * Active only with the option "defect". A defect that needs a single line is implemented where it
 * takes effect, not in this file.
 */
#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_resp.h"
#include "soft_seeded.h"

/* Returns true if the payload @p is inline data, which lies inside the WQE. */
static bool
soft_frag_is_inline(const struct soft_req *r, const struct soft_frag *p)
{
	return p->p >= r->wqe && p->p < r->wqe + sizeof(r->wqe);
}

void
soft_defect_request(struct soft_engine *e, const struct soft_qp *qp, struct soft_req *r)
{
	struct soft_frag *last;

	if (r->n == 0 || soft_is_atomic(r->d.opcode))
		return;
	last = &r->frag[r->n - 1];
	if (r->n > 1 && soft_defect(e, SOFT_DEFECT_SGE_LOST)) {
		r->d.len -= last->len;
		r->n--;
	} else if (r->d.len > qp->mtu && r->d.len % qp->mtu == 1 &&
		   soft_defect(e, SOFT_DEFECT_TAIL_LOST)) {
		r->d.len--;
		last->len--;
	} else if (soft_frag_is_inline(r, last) && (last->len + 4) % BB_WQE_SEG != 0 &&
		   soft_defect(e, SOFT_DEFECT_INLINE_PAD)) {
		uint64_t pad = BB_WQE_SEG - (last->len + 4) % BB_WQE_SEG;

		r->d.len += pad;
		last->len += pad;
	}
}

static bool
soft_defect_empty_write(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r)
{
	const char *why;
	uint8_t *at;

	if (!soft_defect(e, SOFT_DEFECT_EMPTY_WRITE))
		return false;
	at = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, 1, SOFT_RIGHT_REMOTE_WRITE, &why);
	if (at != NULL)
		*at = 0;
	return true;
}

/*
 * Writes the payload byte by byte, with a pause in the first 8-byte unit, so that other threads can
 * see this unit half written.
 */
static void
soft_defect_tear(uint8_t *dst, const struct soft_req *r)
{
	uint64_t k;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		for (k = 0; k < r->frag[i].len; k++, dst++) {
			__atomic_store_n(dst, r->frag[i].p[k], __ATOMIC_RELAXED);
			if (((uintptr_t)dst & 7) == 3 && k < 8)
				rte_delay_us_sleep(2000);
		}
	}
}

bool
soft_defect_write(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		  uint8_t *dst)
{
	const char *why;

	if (dst == NULL)
		return soft_defect_empty_write(e, p, r);
	if (soft_defect(e, SOFT_DEFECT_LOSE_WRITE))
		return true;
	if (r->d.len >= 16 && soft_defect(e, SOFT_DEFECT_TEAR)) {
		soft_defect_tear(dst, r);
		return true;
	}
	if (soft_defect(e, SOFT_DEFECT_FLIP_BIT)) {
		soft_mem_gather(e, dst, r->frag, r->n);
		dst[r->d.len / 2] ^= 0x10;
		return true;
	}
	if (soft_defect(e, SOFT_DEFECT_MISPLACE)) {
		/*
		 * Moves the write within the region: 8 bytes up, or 8 bytes down if it would not
		 * fit.
		 */
		if (soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr + 8, r->d.len,
				  SOFT_RIGHT_REMOTE_WRITE, &why) != NULL)
			soft_mem_gather(e, dst + 8, r->frag, r->n);
		else if (soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr - 8, r->d.len,
				       SOFT_RIGHT_REMOTE_WRITE, &why) != NULL)
			soft_mem_gather(e, dst - 8, r->frag, r->n);
		return true;
	}
	return false;
}

void
soft_defect_recv(struct soft_engine *e, uint8_t opcode, bool *solicited, uint32_t *imm,
		 uint32_t *len)
{
	if (*solicited && soft_defect(e, SOFT_DEFECT_NO_SOLICITED))
		*solicited = false;
	if (opcode != BB_CQE_RESP_SEND && soft_defect(e, SOFT_DEFECT_IMM_SWAP))
		*imm = __builtin_bswap32(*imm);
	if (soft_defect(e, SOFT_DEFECT_RECV_LEN))
		*len += 1;
}

bool
soft_defect_overfill(struct soft_engine *e, struct soft_req *r, uint64_t left)
{
	if (!soft_defect(e, SOFT_DEFECT_OVERFILL))
		return false;
	r->d.len -= left;
	while (left != 0) {
		struct soft_frag *last = &r->frag[r->n - 1];
		uint64_t n = RTE_MIN(left, last->len);

		last->len -= n;
		left -= n;
		if (last->len == 0)
			r->n--;
	}
	return true;
}
