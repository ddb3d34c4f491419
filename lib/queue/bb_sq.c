/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_bf_copy.h"
#include "bb_queue_log.h"
#include "bb_rung.h"
#include "bb_sq_atomic.h"
#include "bb_sq_ud.h"

/* Half of the range of a 16-bit WQE index, so that a full ring differs from an empty one. */
#define SQ_MAX_BLOCKS 32768u

static bool
is_pow2(uint32_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

/*
 * Returns the number of segments of the largest WQE, or 0 if that number does not fit into the 6
 * bits of ds.
 */
static uint32_t
largest_wqe(const struct bb_sq_conf *conf)
{
	/* Segments before the data: control segment, and remote address or address vector. */
	const uint32_t head = conf->type == BB_QPT_UD ? 4 : 2;
	/* Segments of an atomic: control segment, remote address, operands and one SGE. */
	const uint32_t atomic = 4;
	uint32_t sgl, inl;

	if (conf->max_sge > BB_WQE_MAX_DS - head ||
	    conf->max_inline > (BB_WQE_MAX_DS - head) * BB_WQE_SEG - 4)
		return 0;
	sgl = head + conf->max_sge;
	inl = head + bb_wqe_inline_ds(conf->max_inline);
	if (inl > sgl)
		sgl = inl;
	return sgl > atomic ? sgl : atomic;
}

static int
check_memory(const struct bb_sq_conf *conf)
{
	const bool called = conf->ring != NULL;

	if (conf->wqes == NULL || (conf->buf == NULL) != (conf->ops != NULL) ||
	    (conf->ops != NULL && !called) || (conf->dbrec == NULL) != called ||
	    (conf->reg == NULL) != called || ((uintptr_t)conf->buf & (BB_WQE_BB - 1)) != 0 ||
	    ((uintptr_t)conf->dbrec & 3) != 0 || ((uintptr_t)conf->reg & 7) != 0) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: ring %p, WQE table %p, doorbell record %p "
			     "and register %p must be aligned to 64, 8, 4 and 8 bytes and must not "
			     "be NULL; with conf.ring, doorbell record and register must be NULL; "
			     "with conf.ops, the ring must be NULL as well",
			     conf->qpn, conf->buf, (void *)conf->wqes, (void *)conf->dbrec,
			     conf->reg);
		return -EINVAL;
	}
	return 0;
}

static int
check_sizes(const struct bb_sq_conf *conf, uint32_t max_ds)
{
	if (!is_pow2(conf->blocks) || conf->blocks > SQ_MAX_BLOCKS) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: invalid number of blocks %u (a power of "
			     "two, at most %u)",
			     conf->qpn, conf->blocks, SQ_MAX_BLOCKS);
		return -EINVAL;
	}
	if (max_ds == 0) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: a WQE of %u SGEs or %u inline bytes needs "
			     "more than the maximum of %u segments",
			     conf->qpn, conf->max_sge, conf->max_inline, BB_WQE_MAX_DS);
		return -EINVAL;
	}
	/*
	 * The room of a ring is counted in slots of the largest WQE, so there must be blocks for
	 * depth slots. Without a ring each request takes one block.
	 */
	if (conf->depth == 0 ||
	    conf->depth > conf->blocks / (conf->ops != NULL ? 1 : bb_wqe_blocks(max_ds))) {
		BB_QUEUE_LOG(
			ERR,
			"send queue of QP 0x%06x: invalid depth %u: it must be at least 1, and a "
			"ring of %u blocks must hold this number of WQEs, each of %u blocks",
			conf->qpn, conf->depth, conf->blocks, bb_wqe_blocks(max_ds));
		return -EINVAL;
	}
	/*
	 * sig_every must not exceed depth. Otherwise a full queue could have no WQE that requests a
	 * CQE.
	 */
	if (conf->sig_every == 0 || conf->sig_every > conf->depth) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: invalid signalling period: a CQE must "
			     "come every 1 to %u WQEs, not every %u",
			     conf->qpn, conf->depth, conf->sig_every);
		return -EINVAL;
	}
	return 0;
}

static int
check_doorbell(const struct bb_sq_conf *conf)
{
	if (conf->qpn > 0xffffff) {
		BB_QUEUE_LOG(ERR, "send queue: invalid QP number 0x%x (at most 24 bits)",
			     conf->qpn);
		return -EINVAL;
	}
	if (conf->bf_size != 0 &&
	    (!is_pow2(conf->bf_size) || conf->bf_size < BB_WQE_BB || conf->bf_size > 32768)) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: invalid size %u of the BlueFlame register "
			     "(a power of two, 64 to 32768 bytes)",
			     conf->qpn, conf->bf_size);
		return -EINVAL;
	}
	if ((unsigned int)conf->type > BB_QPT_UD || (conf->signal_all && conf->sig_every != 1)) {
		BB_QUEUE_LOG(
			ERR,
			"send queue of QP 0x%06x: invalid type %d, or signal_all together with "
			"sig_every %u (must be 1)",
			conf->qpn, (int)conf->type, conf->sig_every);
		return -EINVAL;
	}
	if (conf->db_mode != BB_DB_DOORBELL && conf->db_mode != BB_DB_BLUEFLAME) {
		BB_QUEUE_LOG(ERR, "send queue of QP 0x%06x: invalid doorbell mode %d", conf->qpn,
			     (int)conf->db_mode);
		return -EINVAL;
	}
	if (conf->db_mode != BB_DB_BLUEFLAME || conf->bf_size == 0)
		return 0;
	if (bb_bf_ring(conf->bf_copy) == NULL || !bb_bf_copy_has(conf->bf_copy)) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: this CPU or build has no BlueFlame copy of "
			     "kind %d",
			     conf->qpn, (int)conf->bf_copy);
		return -EINVAL;
	}
	if (((uintptr_t)conf->reg & (BB_WQE_BB - 1)) != 0) {
		BB_QUEUE_LOG(ERR,
			     "send queue of QP 0x%06x: BlueFlame register %p is not aligned to "
			     "%u bytes",
			     conf->qpn, conf->reg, BB_WQE_BB);
		return -EINVAL;
	}
	return 0;
}

/* The function bb_sq.ring of a queue that adds itself to a list when its doorbell is rung. */
static void
ring_listed(struct bb_sq *sq)
{
	bb_rung_add(sq->rung, (uint32_t)(sq->qpn_be >> 32));
	if (sq->listed_ring != NULL)
		sq->listed_ring(sq);
	else
		bb_sq_doorbell(sq);
}

int
bb_sq_init(struct bb_sq *sq, const struct bb_sq_conf *conf)
{
	uint32_t max_ds = largest_wqe(conf);

	if (check_memory(conf) != 0 || check_doorbell(conf) != 0 || check_sizes(conf, max_ds) != 0)
		return -EINVAL;
	memset(sq, 0, sizeof(*sq));
	sq->buf = conf->buf;
	sq->wqes = conf->wqes;
	sq->mask = conf->blocks - 1;
	sq->type = (uint8_t)conf->type;
	sq->sig_flags = conf->signal_all ? BB_SEND_SIGNALED : 0;
	sq->qpn_be = (uint64_t)bb_be32(conf->qpn << 8) << 32;
	sq->depth = conf->depth;
	sq->sig_every = (uint16_t)conf->sig_every;
	sq->dbrec = conf->dbrec;
	sq->reg = conf->reg;
	sq->ops = conf->ops != NULL ? conf->ops : &bb_sq_ring_ops;
	sq->driver = conf->driver;
	sq->piece = conf->piece;
	sq->ring = conf->ring;
	if (conf->db_mode == BB_DB_BLUEFLAME && conf->bf_size != 0)
		sq->ring = bb_bf_ring(conf->bf_copy);
	else if (conf->bf_offset != NULL && conf->bf_size != 0)
		sq->ring = bb_bf_ring_head;
	sq->rung = conf->rung;
	if (conf->rung != NULL) {
		sq->listed_ring = sq->ring;
		sq->ring = ring_listed;
	}
	sq->bf_size = (uint16_t)conf->bf_size;
	sq->bf_offset = conf->bf_offset != NULL ? conf->bf_offset : &sq->own_offset;
	/*
	 * At least 1, because an atomic has one SGE. bb_sq_post_sgl() therefore does not check
	 * max_sge for a list of one SGE.
	 */
	sq->max_sge = (uint16_t)(conf->max_sge == 0 && conf->type != BB_QPT_UD ? 1 : conf->max_sge);
	sq->max_inline = (uint16_t)conf->max_inline;
	/* Without a ring each request takes one slot. */
	sq->slot_blocks = (uint8_t)bb_wqe_blocks(conf->ops != NULL ? BB_WQE_MAX_DS : max_ds);
	sq->umr_no_atomic = conf->umr_no_atomic;
	sq->owner = conf->owner;
	bb_sq_reset(sq);
	return 0;
}

uint32_t
bb_sq_rung_over(struct bb_sq *sq)
{
	const uint32_t built = sq->seq - (uint32_t)sq->rung_seq;

	if (built == 0)
		return 0;
	/*
	 * bb_sq_rung() calls this function only if seq is not above the low half of rung_seq, or if
	 * the calling thread is not the owner. If seq is above that low half, the calling thread is
	 * not the owner.
	 */
	if (sq->seq > (uint32_t)sq->rung_seq || !bb_queue_check_owner(sq->owner)) {
		bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		return 0;
	}
	/*
	 * WQEs were built although seq is not above the low half of rung_seq, so seq has wrapped.
	 * It wraps at most once between two doorbells.
	 */
	sq->carry = 0;
	bb_count_add(&sq->rung_seq, built);
	bb_count_add(&sq->doorbells, 1);
	return built;
}

void
bb_sq_reset(struct bb_sq *sq)
{
	/*
	 * Clear the entries of earlier WQEs. A late CQE of one of these WQEs must not find its
	 * entry.
	 */
	memset(sq->wqes, 0, ((size_t)sq->mask + 1) * sizeof(*sq->wqes));
	sq->last = sq->buf;
	sq->pi = 0;
	sq->seq = 0;
	sq->carry = 0;
	sq->done = 0;
	bb_sq_enable(sq, false);
	__atomic_store_n(&sq->error, 0, __ATOMIC_RELAXED);
	sq->sig_seq = 0;
	sq->rung_seq = 0;
	sq->refused = 0;
	sq->doorbells = 0;
	sq->cqes = 0;
	sq->full = 0;
	sq->extra = 0;
	if (sq->dbrec != NULL)
		bb_dbrec_store(sq->dbrec, 0);
}

/*
 * Returns the limit of class @c while posts are enabled. Returns 0 if the queue's type does not
 * support the class.
 */
static uint32_t
class_limit(const struct bb_sq *sq, enum bb_sq_class c)
{
	enum bb_qp_type type = (enum bb_qp_type)sq->type;
	bool does;

	switch (c) {
	case BB_SQ_MSG:
		does = bb_wr_check(type, BB_WR_RDMA_WRITE, 0) == 0;
		break;
	case BB_SQ_RD:
		does = bb_wr_check(type, BB_WR_RDMA_READ, 0) == 0;
		break;
	case BB_SQ_UD:
		does = type == BB_QPT_UD;
		break;
	default:
		does = true;
		break;
	}
	return does ? sq->depth : 0;
}

static void
set_limits(struct bb_sq *sq)
{
	/* A post within its limit builds a WQE, so a queue without a ring has limits of 0. */
	const bool open = sq->enabled && !sq->fence && sq->buf != NULL;

	sq->ud_limit = (uint16_t)(open ? class_limit(sq, BB_SQ_UD) : 0);
	sq->limit = open ? class_limit(sq, BB_SQ_MSG) : 0;
	sq->rd_limit = (uint16_t)(open ? class_limit(sq, BB_SQ_RD) : 0);
}

void
bb_sq_enable(struct bb_sq *sq, bool on)
{
	sq->enabled = on;
	sq->fence = on ? sq->fence : 0;
	set_limits(sq);
}

void
bb_sq_fence_next(struct bb_sq *sq)
{
	sq->fence = 1;
	set_limits(sq);
}

int
bb_sq_refuse_arg(struct bb_sq *sq, enum bb_refusal why)
{
	return bb_queue_refuse("send queue of QP", bb_be32((uint32_t)(sq->qpn_be >> 32)) >> 8,
			       sq->owner, &sq->refused, why);
}

int
bb_sq_room(struct bb_sq *sq, enum bb_sq_class c, uint32_t slots, uint32_t *flags)
{
	uint32_t limit = class_limit(sq, c);

	if (!sq->enabled && __atomic_load_n(&sq->error, __ATOMIC_RELAXED) != 0)
		bb_sq_enable(sq, true);
	if (!sq->enabled)
		return bb_sq_refuse_arg(sq, BB_REFUSED_STATE);
	if (limit == 0)
		return bb_sq_refuse_arg(sq, BB_REFUSED_OPCODE);
	if (!bb_queue_check_owner(sq->owner))
		return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
	if (bb_sq_outstanding(sq) + slots > limit) {
		bb_count_add(&sq->full, 1);
		bb_sq_make_room(sq, slots);
		return -EAGAIN;
	}
	if (sq->fence) {
		sq->fence = 0;
		set_limits(sq);
		if ((*flags & BB_SEND_FENCE) == 0)
			*flags |= BB_SEND_SMALL_FENCE;
	}
	return 0;
}

int
bb_sq_post_inline_full(struct bb_sq *sq, uint64_t what, uint64_t wr_id, const void *data,
		       uint64_t raddr, uint64_t len_imm)
{
	const struct bb_sge piece = {(uintptr_t)data, (uint32_t)len_imm, 0};

	if (!bb_queue_check_owner(sq->owner))
		return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
	return sq->ops->post(sq, (uint32_t)what, wr_id, &piece, raddr,
			     what >> 32 | len_imm >> 32 << 32);
}

int
bb_sq_post_own_nop(struct bb_sq *sq)
{
	const bool fence = sq->fence;
	struct bb_sq_wqe *w;
	uint32_t flags = 0;
	int ret;

	w = &sq->wqes[sq->pi & sq->mask];
	if (sq->buf == NULL) {
		ret = sq->ops->nop(sq, 0, BB_SEND_SIGNALED);
		if (ret != 0)
			return ret;
	} else {
		ret = bb_sq_room(sq, BB_SQ_NOP, 1, &flags);
		if (ret != 0)
			return ret;
		bb_sq_ask_cqe(sq);
		bb_sq_commit(sq, BB_WQE_NOP, 1, 0, flags, 0);
	}
	bb_count_add(&sq->extra, 1);
	/* The completion of this NOP is not reported, even if the queue reports every request. */
	w->flags = 0;
	w->wc_opcode = BB_SQ_OWN;
	/* The pending fence applies to the application's next request, not to this NOP. */
	if (fence)
		bb_sq_fence_next(sq);
	return 0;
}

void
bb_sq_make_room(struct bb_sq *sq, uint32_t slots)
{
	const bool all_rung = sq->seq == (uint32_t)sq->rung_seq;
	const uint32_t outstanding = bb_sq_outstanding(sq);

	/*
	 * Returns if a NOP would not help: the WQE can never fit, or it fits now, or the queue is
	 * full, or an outstanding WQE requests a CQE. A full queue always has such a WQE, although
	 * bb_sq_ops.write may leave sig_seq unchanged.
	 */
	if (slots > sq->depth || outstanding <= sq->depth - slots || outstanding == sq->depth ||
	    sq->seq - sq->sig_seq < outstanding)
		return;
	if (bb_sq_post_own_nop(sq) == 0 && all_rung)
		bb_sq_ring(sq);
}

struct bb_wqe_ctrl *
bb_sq_commit_slots(struct bb_sq *sq, uint8_t opcode, uint32_t ds, uint32_t slots, uint64_t wr_id,
		   uint32_t flags, uint32_t imm)
{
	struct bb_sq_wqe *w = &sq->wqes[sq->pi & sq->mask];
	const uint32_t seq = sq->seq + 1;
	struct bb_wqe_ctrl *ctrl;

	/*
	 * This WQE adds @slots to seq. If sig_every is reached within that range, this WQE must
	 * request a CQE.
	 */
	if (seq + slots - 1 - sq->sig_seq >= sq->sig_every)
		sq->sig_seq = seq - sq->sig_every;
	ctrl = bb_sq_commit(sq, opcode, ds, wr_id, flags, imm);
	bb_count_add32(&sq->seq, slots - 1);
	bb_count_add(&sq->extra, slots - 1);
	if (sq->sig_seq == seq)
		sq->sig_seq = sq->seq;
	w->seq = sq->seq;
	return ctrl;
}

/*
 * Functions of bb_sq.ops for a queue with a ring. A post calls them if the queue is full, if the
 * queue refuses posts, or if the previous WQE changed a key. In the last case the WQE gets a fence.
 * So the fast path need not check whether a fence is needed.
 */
static int
ring_post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	  uint64_t raddr, uint64_t keys)
{
	const uint32_t rkey = (uint32_t)keys, imm = (uint32_t)(keys >> 32);
	const bool has_raddr = (what & BB_SQ_RADDR) != 0;
	const uint8_t opcode = (uint8_t)what;
	uint32_t flags = what >> 16;
	int ret = bb_sq_room(sq, bb_sq_class_of(opcode), 1, &flags);

	if (ret != 0)
		return ret;
	if ((what & BB_SQ_INLINE) != 0)
		bb_sq_build_inline(sq, opcode, has_raddr, wr_id,
				   (const void *)(uintptr_t)piece->addr, piece->len, raddr, rkey,
				   imm, flags);
	else
		bb_sq_build(sq, opcode, has_raddr, wr_id, piece, raddr, rkey, imm, flags);
	return 0;
}

static int
ring_list(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	  uint64_t raddr, uint64_t keys)
{
	const uint8_t opcode = (uint8_t)what;
	uint32_t flags = what >> 16;
	int ret = bb_sq_room(sq, bb_sq_class_of(opcode), 1, &flags);

	if (ret != 0)
		return ret;
	bb_sq_build_list(sq, opcode, (what & BB_SQ_RADDR) != 0, wr_id, sge, nsge,
			 (uint32_t)bb_sq_count_sge(sge, nsge), raddr, (uint32_t)keys,
			 (uint32_t)(keys >> 32), flags);
	return 0;
}

static int
ring_atomic(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge,
	    uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	uint32_t flags = what >> 16;
	int ret = bb_sq_room(sq, BB_SQ_RD, 1, &flags);

	if (ret != 0)
		return ret;
	bb_sq_build_atomic(sq, (uint8_t)what, wr_id, sge, raddr, rkey, swap_add, compare, flags);
	return 0;
}

static int
ring_datagram(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_wqe_av *av,
	      uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
	      uint32_t imm)
{
	const uint8_t opcode = (uint8_t)what;
	uint32_t flags = what >> 16;
	int ret = bb_sq_room(sq, BB_SQ_UD, 1, &flags);

	if (ret != 0)
		return ret;
	if ((what & BB_SQ_INLINE) != 0)
		bb_sq_build_ud_inline(sq, opcode, wr_id, av, dest_qpn, qkey,
				      (const void *)(uintptr_t)sge->addr, sge->len, imm, flags);
	else
		bb_sq_build_ud(sq, opcode, wr_id, av, dest_qpn, qkey, sge, nsge,
			       (uint32_t)bb_sq_count_sge(sge, nsge), imm, flags);
	return 0;
}

static int
ring_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	int ret = bb_sq_room(sq, BB_SQ_NOP, 1, &flags);

	if (ret != 0)
		return ret;
	bb_sq_commit(sq, BB_WQE_NOP, 1, wr_id, flags, 0);
	return 0;
}

const struct bb_sq_ops bb_sq_ring_ops = {
	.post = ring_post,
	.list = ring_list,
	.atomic = ring_atomic,
	.datagram = ring_datagram,
	.nop = ring_nop,
};
