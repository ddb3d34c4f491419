/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Sends by ibv_post_send(). A post fills the struct ibv_send_wr of its slot and appends it to a
 * list, the chain. The doorbell passes the chain to the provider. A QP posts in this way if its
 * provider has no ibv_wr_*() or no thread domains, on iWARP, and on rxe, whose ibv_wr_*() is
 * faulty.
 *
 * A QP with ibv_wr_*() uses the chain for what ibv_wr_*() cannot post (verbs_post.c), and for the
 * requests after it, until the doorbell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "verbs_sq.h"

/* The request of one slot. The inline data follow the SGEs; there is at least one SGE. */
struct slot {
	struct ibv_send_wr wr; /* must be first */
	/* window that a bind request binds; holds a reference to it */
	struct verbs_mr *window;
	struct ibv_sge sge[];
};

static inline struct slot *
slot_at(const struct verbs_qp *q, const struct bb_sq *sq, uint32_t idx)
{
	return (struct slot *)(void *)(q->slots + (size_t)(idx & sq->mask) * q->slot_bytes);
}

/* Returns the memory in which a slot stores its inline data. */
static inline uint8_t *
data_of(const struct bb_sq *sq, struct slot *s)
{
	return (uint8_t *)&s->sge[RTE_MAX(sq->max_sge, 1)];
}

/*
 * Returns the error text if iWARP does not support the request, otherwise NULL. The driver must
 * check, because some providers would accept the request.
 */
static const char *
iwarp_lacks(const struct bb_dev *dev, uint8_t opcode, uint32_t nsge)
{
	switch (opcode) {
	case BB_WQE_RDMA_WRITE_IMM:
	case BB_WQE_SEND_IMM:
		return "iWARP does not support immediate data";
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		return dev->attr.atomics ? NULL : "iWARP does not support atomics";
	case BB_WQE_RDMA_READ:
		return nsge > dev->attr.max_read_sge
			       ? "iWARP does not support READs with more SGEs than max_read_sge "
				 "of bb_dev_query()"
			       : NULL;
	default:
		return NULL;
	}
}

/*
 * Takes a slot and appends its request to the list for the next ibv_post_send(). Returns the same
 * values as verbs_take().
 */
static int
take(struct bb_sq *sq, enum bb_sq_class c, uint8_t opcode, enum ibv_wr_opcode wr_opcode,
     uint64_t wr_id, uint32_t flags, struct slot **out)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct slot *s = slot_at(q, sq, sq->pi);
	struct verbs_wr wr;
	int ret = verbs_take(sq, c, opcode, wr_id, flags, 0, &wr);

	if (bb_unlikely(ret != 0))
		return ret;
	s->wr.wr_id = wr.wr_id;
	s->wr.next = NULL;
	s->wr.sg_list = s->sge;
	s->wr.num_sge = 0;
	s->wr.opcode = wr_opcode;
	s->wr.send_flags = wr.flags;
	if (q->first == NULL)
		q->first = &s->wr;
	else
		q->last->next = &s->wr;
	q->last = &s->wr;
	*out = s;
	return 0;
}

static void
fill(const struct bb_sq *sq, struct slot *s, uint32_t what, const struct bb_sge *sge, uint32_t nsge)
{
	uint32_t len;

	if ((what & BB_SQ_INLINE) == 0) {
		s->wr.num_sge = (int)verbs_sges(s->sge, sge, nsge);
		return;
	}
	len = verbs_gather(data_of(sq, s), sge, nsge);
	if (len == 0)
		return;
	s->sge[0] = (struct ibv_sge){(uintptr_t)data_of(sq, s), len, 0};
	s->wr.num_sge = 1;
	s->wr.send_flags |= IBV_SEND_INLINE;
}

static enum ibv_wr_opcode
opcode_of(uint8_t opcode)
{
	switch (opcode) {
	case BB_WQE_RDMA_WRITE:
		return IBV_WR_RDMA_WRITE;
	case BB_WQE_RDMA_WRITE_IMM:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case BB_WQE_RDMA_READ:
		return IBV_WR_RDMA_READ;
	case BB_WQE_SEND:
		return IBV_WR_SEND;
	case BB_WQE_SEND_IMM:
		return IBV_WR_SEND_WITH_IMM;
	default:
		return IBV_WR_SEND_WITH_INV;
	}
}

static uint32_t
pieces_of(const struct bb_sge *sge, uint32_t nsge)
{
	uint32_t i, n = 0;

	for (i = 0; i < nsge; i++)
		n += sge[i].len != 0;
	return n;
}

static int
post_list(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge, uint32_t nsge,
	  uint64_t raddr, uint64_t keys)
{
	const uint8_t opcode = (uint8_t)what;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const struct bb_dev *dev = q->scq->d->dev;
	uint32_t flags = what >> 16;
	struct slot *s;
	int ret;

	if (bb_unlikely(dev->iwarp)) {
		const char *lacks = iwarp_lacks(dev, opcode, pieces_of(sge, nsge));

		if (lacks != NULL)
			return verbs_lacks(sq, bb_sq_class_of(opcode), opcode, wr_id, flags, lacks);
		/*
		 * siw rejects a fence on a READ ("A READ cannot be fenced", siw_activate_tx()).
		 * iWARP executes READs in order in any case, so remove the flag.
		 */
		if (opcode == BB_WQE_RDMA_READ && q->scq->d->siw)
			flags &= ~(uint32_t)BB_SEND_FENCE;
	}
	ret = take(sq, bb_sq_class_of(opcode), opcode, opcode_of(opcode), wr_id, flags, &s);
	if (bb_unlikely(ret != 0))
		return verbs_posted(ret);
	s->wr.imm_data = (uint32_t)(keys >> 32);
	if (opcode == BB_WQE_SEND_INV)
		s->wr.invalidate_rkey = bb_be32((uint32_t)(keys >> 32));
	s->wr.wr.rdma.remote_addr = raddr;
	s->wr.wr.rdma.rkey = (uint32_t)keys;
	fill(sq, s, what, sge, nsge);
	return 0;
}

static int
post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece, uint64_t raddr,
     uint64_t keys)
{
	return post_list(sq, what, wr_id, piece, 1, raddr, keys);
}

static int
post_atomic(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *sge,
	    uint64_t raddr, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	const bool swap = (uint8_t)what == BB_WQE_ATOMIC_CS;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const struct bb_dev *dev = q->scq->d->dev;
	const char *lacks = dev->iwarp ? iwarp_lacks(dev, (uint8_t)what, 1) : NULL;
	struct slot *s;
	int ret;

	if (lacks != NULL)
		return verbs_lacks(sq, BB_SQ_RD, (uint8_t)what, wr_id, what >> 16, lacks);
	ret = take(sq, BB_SQ_RD, (uint8_t)what,
		   swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id,
		   what >> 16, &s);
	if (ret != 0)
		return verbs_posted(ret);
	s->wr.wr.atomic.remote_addr = raddr;
	s->wr.wr.atomic.rkey = rkey;
	s->wr.wr.atomic.compare_add = swap ? compare : swap_add;
	s->wr.wr.atomic.swap = swap_add;
	fill(sq, s, 0, sge, 1);
	return 0;
}

static int
post_datagram(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_wqe_av *av,
	      uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
	      uint32_t imm)
{
	struct slot *s;
	int ret =
		take(sq, BB_SQ_UD, (uint8_t)what, opcode_of((uint8_t)what), wr_id, what >> 16, &s);

	if (ret != 0)
		return verbs_posted(ret);
	s->wr.imm_data = imm;
	s->wr.wr.ud.ah = verbs_ah_of(av);
	s->wr.wr.ud.remote_qpn = dest_qpn;
	s->wr.wr.ud.remote_qkey = qkey;
	fill(sq, s, what, sge, nsge);
	return 0;
}

static int
post_local_inv(struct bb_sq *sq, uint64_t wr_id, uint32_t rkey, uint32_t flags)
{
	struct slot *s;
	int ret = take(sq, BB_SQ_MSG, BB_SQ_LOCAL_INV, IBV_WR_LOCAL_INV, wr_id, flags, &s);

	if (ret == 0)
		s->wr.invalidate_rkey = rkey;
	return verbs_posted(ret);
}

void
verbs_bind_info(struct verbs_dev *d, const struct ibv_mw *mw, const struct bb_bind *bind,
		struct ibv_mw_bind_info *info)
{
	memset(info, 0, sizeof(*info));
	if (bind->mr_obj == NULL) {
		/*
		 * A bind without memory removes the window's access to its MR. Providers other than
		 * libmlx5 read the MR in this case too, so pass the placeholder.
		 */
		d->no_mr.mr.pd = mw->pd;
		info->mr = d->mlx5 ? NULL : &d->no_mr.mr;
		return;
	}
	info->mr = container_of(bind->mr_obj, struct verbs_mr, base)->mr;
	info->addr = bind->addr;
	info->length = bind->len;
	info->mw_access_flags = bind->access;
	if (bind->zero_based)
		info->mw_access_flags |= IBV_ACCESS_ZERO_BASED;
}

static int
post_bind(struct bb_sq *sq, uint64_t wr_id, bool type2, uint32_t new_rkey,
	  const struct bb_bind *bind, uint32_t flags)
{
	struct verbs_mr *window = container_of(bind->mw_obj, struct verbs_mr, base);
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	struct slot *s;
	int ret;

	(void)type2; /* not used, because the window itself has its type */
	ret = take(sq, BB_SQ_MSG, BB_SQ_BIND_MW, IBV_WR_BIND_MW, wr_id, flags, &s);
	if (ret != 0)
		return verbs_posted(ret);
	verbs_bind_info(q->scq->d, window->mw, bind, &s->wr.bind_mw.bind_info);
	s->wr.bind_mw.rkey = new_rkey;
	s->window = window;
	__atomic_add_fetch(&window->refs, 1, __ATOMIC_RELAXED);
	q->binds++;
	return 0;
}

static int
post_nop(struct bb_sq *sq, uint64_t wr_id, uint32_t flags)
{
	struct verbs_qp *q = verbs_qp_of_sq(sq);
	int ret = verbs_begin(sq, BB_SQ_NOP, BB_WQE_NOP, wr_id, flags);

	if (ret != 0)
		return verbs_posted(ret);
	/* The driver must know when the request before the NOP has completed. */
	if (q->first != NULL)
		q->last->send_flags |= IBV_SEND_SIGNALED;
	verbs_own(sq, BB_WQE_NOP, wr_id, flags, 0);
	return 0;
}

/* Returns true if the request writes to its SGEs. */
static bool
is_read(uint8_t opcode)
{
	return opcode == BB_WQE_RDMA_READ || opcode == BB_WQE_ATOMIC_CS ||
	       opcode == BB_WQE_ATOMIC_FA;
}

/* Implements bb_sq_ops.request. */
static uint32_t
request(const struct bb_sq *sq, uint16_t idx, struct bb_wqe_piece *pieces, uint32_t max)
{
	const uint8_t opcode = sq->wqes[idx & sq->mask].opcode;
	const struct verbs_qp *q = verbs_qp_of_sq(sq);
	const struct slot *s = slot_at(q, sq, idx);
	const bool atomic = opcode == BB_WQE_ATOMIC_CS || opcode == BB_WQE_ATOMIC_FA;
	const bool write = opcode == BB_WQE_RDMA_WRITE || opcode == BB_WQE_RDMA_WRITE_IMM;
	uint32_t n = 0;
	int i;

	/*
	 * If the QP posts by ibv_wr_*(), the slots of most requests do not contain their SGEs.
	 */
	if (q->ex != NULL || sq->wqes[idx & sq->mask].mark == VERBS_OWN)
		return 0;
	if (n < max && (write || is_read(opcode)))
		pieces[n++] = (struct bb_wqe_piece){
			.addr = atomic ? s->wr.wr.atomic.remote_addr : s->wr.wr.rdma.remote_addr,
			.key = atomic ? s->wr.wr.atomic.rkey : s->wr.wr.rdma.rkey,
			.remote = true,
			.written = write || atomic,
		};
	if ((s->wr.send_flags & IBV_SEND_INLINE) != 0)
		return n;
	for (i = 0; i < s->wr.num_sge && n < max; i++)
		pieces[n++] = (struct bb_wqe_piece){
			.addr = s->sge[i].addr,
			.len = s->sge[i].length,
			.key = s->sge[i].lkey,
			.written = is_read(opcode),
		};
	return n;
}

/*
 * Posts a bind. ibv_bind_mw(), the call for a window of type 1, computes the new key with
 * ibv_inc_rkey() from the key in the window's struct, but Bluebell has already chosen the new key.
 * So the function first sets the key in the struct to the predecessor of the new key. If all
 * earlier binds succeeded, the struct already has that key. The man page permits the change: "fix
 * the mw structure" (man ibv_bind_mw).
 */
static int
bind_post(struct verbs_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_mw *mw =
		__atomic_load_n(&((struct slot *)(void *)wr)->window->mw, __ATOMIC_RELAXED);
	struct ibv_mw_bind b = {.wr_id = wr->wr_id,
				.send_flags = wr->send_flags,
				.bind_info = wr->bind_mw.bind_info};
	const uint32_t rkey = wr->bind_mw.rkey;
	struct ibv_send_wr *bad;

	if (mw == NULL) {
		BB_LOG(ERR,
		       "QP 0x%x: cannot bind memory window 0x%x: the window was destroyed; the QP "
		       "goes to ERR",
		       q->ib->qp_num, rkey);
		return VERBS_LOGGED;
	}
	if (mw->type == IBV_MW_TYPE_1) {
		mw->rkey = (rkey & ~UINT32_C(0xff)) | ((rkey - 1) & 0xff);
		return ibv_bind_mw(q->ib, mw, &b);
	}
	wr->bind_mw.mw = mw;
	return ibv_post_send(q->ib, wr, &bad);
}

/*
 * Posts a list of requests that contains binds, one request per call. Returns the same values as
 * ibv_post_send().
 */
static int
post_each(struct verbs_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *next;
	int err = 0;

	for (; wr != NULL && err == 0; wr = next) {
		*bad = wr;
		next = wr->next;
		wr->next = NULL;
		err = wr->opcode == IBV_WR_BIND_MW ? bind_post(q, wr)
						   : ibv_post_send(q->ib, wr, bad);
		wr->next = next;
	}
	return err;
}

int
verbs_chain_post(struct bb_sq *sq, struct verbs_qp *q, uint32_t *from)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	q->last->send_flags |= IBV_SEND_SIGNALED;
	/* siw's provider returns a negative errno, so use the absolute value. */
	err = abs(bb_likely(q->binds == 0) ? ibv_post_send(q->ib, q->first, &bad)
					   : post_each(q, q->first, &bad));
	if (bb_unlikely(err != 0))
		*from = verbs_slot_at(sq, q, (bad != NULL ? bad : q->first)->wr_id)->seq;
	verbs_chain_drop(q);
	return err;
}

void
verbs_chain_drop(struct verbs_qp *q)
{
	struct ibv_send_wr *wr;

	for (wr = q->first; wr != NULL && q->binds != 0; wr = wr->next) {
		if (wr->opcode == IBV_WR_BIND_MW) {
			verbs_mr_put(((struct slot *)(void *)wr)->window);
			q->binds--;
		}
	}
	q->first = NULL;
}

const struct bb_sq_ops verbs_chain_ops = {
	.post = post,
	.list = post_list,
	.atomic = post_atomic,
	.datagram = post_datagram,
	.nop = post_nop,
	.bind = post_bind,
	.local_inv = post_local_inv,
	.lacked = verbs_lacked,
	.request = request,
};

int
verbs_chain_init(struct verbs_qp *q, const struct bb_qp_init_attr *attr, uint32_t slots)
{
	const size_t bytes = sizeof(struct slot) +
			     RTE_MAX(attr->max_sge, 1u) * sizeof(struct ibv_sge) + attr->max_inline;

	q->slot_bytes = RTE_ALIGN_CEIL(bytes, sizeof(uint64_t));
	q->slots = rte_zmalloc("bb_qp", slots * q->slot_bytes, BB_CACHE_LINE);
	return q->slots != NULL ? 0 : -ENOMEM;
}

uint32_t
verbs_gather(uint8_t *to, const struct bb_sge *sge, uint32_t nsge)
{
	uint32_t i, len = 0;

	for (i = 0; i < nsge; i++) {
		if (sge[i].len != 0)
			memcpy(to + len, (const void *)(uintptr_t)sge[i].addr, sge[i].len);
		len += sge[i].len;
	}
	return len;
}

uint32_t
verbs_sges(struct ibv_sge *to, const struct bb_sge *sge, uint32_t nsge)
{
	uint32_t i, n = 0;

	for (i = 0; i < nsge; i++) {
		if (sge[i].len == 0)
			continue;
		to[n].addr = sge[i].addr;
		to[n].length = sge[i].len;
		to[n++].lkey = sge[i].lkey;
	}
	return n;
}
