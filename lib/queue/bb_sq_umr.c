/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Builds UMR WQEs. A UMR WQE is built in a buffer and then copied into the ring, because the end of
 * the ring may lie after any of its segments. The copy costs little, as UMR WQEs are not on the
 * data path.
 */
#include "bb_sq_umr.h"

/* Maximum number of translation entries in a UMR WQE: a multiple of 4, so no padding follows. */
#define XLT_MAX BB_UMR_MAX_PIECES

struct umr {
	struct bb_wqe_umr umr;
	struct bb_wqe_mkey mkey;
	uint8_t xlt[XLT_MAX * BB_WQE_SEG];
};
BB_STATIC_ASSERT(offsetof(struct umr, xlt) == (BB_WQE_UMR_DS - 1) * BB_WQE_SEG, "no padding");
BB_STATIC_ASSERT(BB_WQE_UMR_DS + XLT_MAX <= BB_WQE_MAX_DS && XLT_MAX % BB_WQE_XLT_ALIGN == 0,
		 "the largest WQE");

/* Converts IBV_ACCESS_* to the bits of an mkey segment. */
static uint8_t
access_bits(uint32_t access)
{
	return (uint8_t)(((access & 1) != 0 ? BB_MKEY_LW : 0) |
			 ((access & 2) != 0 ? BB_MKEY_RW : 0) |
			 ((access & 4) != 0 ? BB_MKEY_RR : 0) |
			 ((access & 8) != 0 ? BB_MKEY_A : 0));
}

/*
 * Returns the mask of the rights that a UMR sets. Leaves out the atomic right on a device where a
 * UMR may not change it. On such a device no key has that right.
 */
static uint64_t
access_mask(const struct bb_sq *sq)
{
	return BB_MKEY_MASK_ACCESS & ~(uint64_t)(sq->umr_no_atomic ? BB_MKEY_MASK_A : 0);
}

/*
 * Copies a UMR WQE without its control segment into the ring, and continues at the start of the
 * ring if necessary.
 */
static void
fill(const struct bb_sq *sq, void *seg, const void *src, size_t len)
{
	size_t room = (size_t)(sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB - (uint8_t *)seg);

	if (room > len)
		room = len;
	memcpy(seg, src, room);
	memcpy(sq->buf, (const uint8_t *)src + room, len - room);
}

/* Posts a UMR WQE. @xlt: size of its translation entries, in units of 16 bytes. */
static int
post(struct bb_sq *sq, uint64_t wr_id, enum bb_sq_umr_kind kind, uint32_t key, struct umr *u,
     uint32_t xlt, uint32_t flags)
{
	uint32_t ds = BB_WQE_UMR_DS + xlt;
	uint32_t slots = bb_sq_slots(sq, ds);
	struct bb_wqe_ctrl *ctrl;
	struct bb_sq_wqe *w;
	int ret;

	if (slots > sq->depth)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_PIECES);
	ret = bb_sq_room(sq, BB_SQ_MSG, slots, &flags);
	if (ret != 0)
		return ret;
	if ((flags & BB_SQ_ASK_CQE) != 0)
		bb_sq_ask_cqe(sq);
	u->umr.xlt_octowords = bb_be16((uint16_t)xlt);
	w = &sq->wqes[sq->pi & sq->mask];
	ctrl = bb_sq_commit_slots(sq, BB_WQE_UMR, ds, slots, wr_id, flags, bb_be32(key));
	w->opcode = (uint8_t)kind;
	w->wc_opcode = bb_wc_opcode_of(w->opcode);
	fill(sq, ctrl + 1, u, (size_t)(ds - 1) * BB_WQE_SEG);
	/* Forces the next post onto the slow path, which adds the fence. */
	bb_sq_fence_next(sq);
	return 0;
}

static void
start(struct umr *u, uint8_t flags, uint64_t mask, uint32_t qpn, uint32_t key)
{
	memset(&u->umr, 0, sizeof(u->umr));
	memset(&u->mkey, 0, sizeof(u->mkey));
	u->umr.flags = flags;
	u->umr.mkey_mask = bb_be64(mask);
	u->mkey.qpn_key = bb_be32(qpn << 8 | (key & 0xff));
}

static uint32_t
sq_qpn(const struct bb_sq *sq)
{
	return bb_be32((uint32_t)(sq->qpn_be >> 32)) >> 8;
}

static void
set_piece(uint8_t *at, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct bb_wqe_data d = {bb_be32(len), bb_be32(lkey), bb_be64(addr)};

	memcpy(at, &d, sizeof(d));
}

static uint32_t
padded(uint32_t octowords)
{
	return (octowords + BB_WQE_XLT_ALIGN - 1) / BB_WQE_XLT_ALIGN * BB_WQE_XLT_ALIGN;
}

int
bb_sq_post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags)
{
	struct umr u;

	if (sq->buf == NULL)
		return sq->ops->local_inv(sq, wr_id, rkey, flags);
	start(&u, BB_UMR_INLINE | BB_UMR_XLT_OFFSET | BB_UMR_CHECK_QPN,
	      BB_MKEY_MASK_FREE | BB_MKEY_MASK_KEY | BB_MKEY_MASK_QPN, BB_MKEY_ANY_QP, 0);
	u.mkey.free = BB_MKEY_FREE;
	return post(sq, wr_id, BB_SQ_LOCAL_INV, rkey, &u, 0, flags);
}

int
bb_sq_post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t rkey, uint32_t new_rkey,
		const struct bb_bind *bind, uint32_t flags)
{
	uint8_t check = BB_UMR_INLINE | BB_UMR_XLT_OFFSET;
	uint64_t mask = BB_MKEY_MASK_FREE | BB_MKEY_MASK_KEY | (type2 ? BB_MKEY_MASK_QPN : 0);
	struct umr u;

	if (bind->len > BB_WQE_MAX_SGE_LEN)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_BLOCK);
	if (sq->buf == NULL)
		return sq->ops->bind(sq, wr_id, type2, new_rkey, bind, flags);
	if (bind->len == 0) {
		start(&u, check | (type2 ? BB_UMR_CHECK_QPN : 0), mask, BB_MKEY_ANY_QP, new_rkey);
		u.mkey.free = BB_MKEY_FREE;
		return post(sq, wr_id, BB_SQ_BIND_MW, rkey, &u, 0, flags);
	}
	start(&u, check | (type2 ? BB_UMR_CHECK_FREE : 0),
	      mask | BB_MKEY_MASK_LEN | BB_MKEY_MASK_START_ADDR | access_mask(sq),
	      type2 ? sq_qpn(sq) : BB_MKEY_ANY_QP, new_rkey);
	u.mkey.access = access_bits(bind->access);
	u.mkey.start_addr = bind->zero_based ? 0 : bb_be64(bind->addr);
	u.mkey.len = bb_be64(bind->len);
	memset(u.xlt, 0, BB_WQE_XLT_ALIGN * BB_WQE_SEG);
	set_piece(u.xlt, bind->addr, (uint32_t)bind->len, bind->lkey);
	return post(sq, wr_id, BB_SQ_BIND_MW, rkey, &u, BB_WQE_XLT_ALIGN, flags);
}

/*
 * Posts a layout of @key. @xlt: size of the translation entries in @u, in units of 16 bytes. @len:
 * bytes that the key covers.
 */
static int
post_layout(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access, struct umr *u,
	    uint32_t xlt, uint64_t len, uint32_t flags)
{
	start(u, BB_UMR_INLINE,
	      BB_MKEY_MASK_FREE | BB_MKEY_MASK_KEY | BB_MKEY_MASK_LEN | access_mask(sq),
	      BB_MKEY_ANY_QP, key);
	u->mkey.access = access_bits(access);
	u->mkey.len = bb_be64(len);
	memset(u->xlt + (size_t)xlt * BB_WQE_SEG, 0, (size_t)(padded(xlt) - xlt) * BB_WQE_SEG);
	return post(sq, wr_id, BB_SQ_MKEY, key, u, padded(xlt), flags);
}

int
bb_sq_post_mkey_list(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
		     const struct bb_sge *sge, uint32_t n, uint32_t flags)
{
	uint64_t len = 0;
	struct umr u;
	uint32_t i;

	if (n > BB_UMR_MAX_PIECES)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_PIECES);
	for (i = 0; i < n; i++) {
		if (sge[i].len == 0 || sge[i].len > BB_WQE_MAX_SGE_LEN)
			return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_BLOCK);
		set_piece(u.xlt + (size_t)i * BB_WQE_SEG, sge[i].addr, sge[i].len, sge[i].lkey);
		len += sge[i].len;
	}
	if (n == 0)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_BLOCK);
	return post_layout(sq, wr_id, key, access, &u, n, len, flags);
}

int
bb_sq_post_mkey_interleaved(struct bb_sq *sq, uint64_t wr_id, uint32_t key, uint32_t access,
			    uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
			    uint32_t flags)
{
	struct bb_wqe_repeat head = {0};
	uint64_t len = 0;
	struct umr u;
	uint32_t i;

	if (n > BB_UMR_MAX_BLOCKS)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_PIECES);
	for (i = 0; i < n; i++) {
		struct bb_wqe_repeat_entry e;

		if (block[i].bytes == 0 || block[i].bytes > UINT16_MAX ||
		    block[i].skip > UINT16_MAX - block[i].bytes)
			return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_BLOCK);
		e.stride = bb_be16((uint16_t)(block[i].bytes + block[i].skip));
		e.byte_count = bb_be16((uint16_t)block[i].bytes);
		e.lkey = bb_be32(block[i].lkey);
		e.addr = bb_be64(block[i].addr);
		memcpy(u.xlt + (size_t)(i + 1) * BB_WQE_SEG, &e, sizeof(e));
		len += block[i].bytes;
	}
	if (n == 0 || repeat == 0)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MKEY_BLOCK);
	head.byte_count = bb_be32((uint32_t)len);
	head.op = bb_be32(BB_WQE_REPEAT_OP);
	head.repeat_count = bb_be32(repeat);
	head.num_entries = bb_be16((uint16_t)n);
	memcpy(u.xlt, &head, sizeof(head));
	return post_layout(sq, wr_id, key, access, &u, n + 1, len * repeat, flags);
}
