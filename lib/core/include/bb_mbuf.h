/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Mbuf chains as the data of sends and writes, and as the buffers of receives.
 *
 * A chain becomes a list of pieces, one per segment that is not empty; nothing is
 * copied. Keys come from a @ref bb_lkey_cache of the calling thread, so the mempool must be
 * registered (bb_mem_add_mempool()) or the heap followed. A chain belongs to the device
 * from the post to the completion: then it is the application's again, to free or to use.
 * A natural wr_id is the address of the first segment.
 *
 * Returns are those of bb_post.h. The mbufs are the caller's unless it is 0. -EINVAL: more
 * segments than the queue's max_sge or max_recv_sge; -EFAULT: no registration holds a segment.
 * The log says it once.
 */
#ifndef BB_MBUF_H
#define BB_MBUF_H

#include <rte_mbuf.h>

#include "bb_mem.h"
#include "bb_post.h"
#include "bb_srq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that a segment can take behind its headroom. */
static inline uint32_t
bb_mbuf_room(const struct rte_mbuf *seg)
{
	return seg->data_off < seg->buf_len ? (uint32_t)(seg->buf_len - seg->data_off) : 0;
}

/** One piece of a list. @return the list's new length, or a negative errno. */
static inline int
bb_mbuf_add(struct bb_lkey_cache *cache, const struct rte_mbuf *seg, uint32_t len,
	    struct bb_sge *sge, uint32_t n, uint32_t max)
{
	const void *at = rte_pktmbuf_mtod(seg, const void *);

	if (len == 0)
		return (int)n;
	if (bb_unlikely(n == max))
		return -EINVAL;
	sge[n].addr = (uint64_t)(uintptr_t)at;
	sge[n].len = len;
	sge[n].lkey = bb_mem_lkey(cache, at, len);
	if (bb_unlikely(sge[n].lkey == BB_LKEY_NONE))
		return -EFAULT;
	return (int)n + 1;
}

/**
 * The data of a chain as a list of at most @p max pieces.
 * @return how many there are, 0 for an empty chain; -EINVAL more than @p max; -EFAULT a
 *   segment is not registered.
 */
static inline int
bb_mbuf_data_sge(struct bb_lkey_cache *cache, const struct rte_mbuf *m, struct bb_sge *sge,
		 uint32_t max)
{
	int n = 0;

	for (; m != NULL && n >= 0; m = m->next)
		n = bb_mbuf_add(cache, m, m->data_len, sge, (uint32_t)n, max);
	return n;
}

/** The room of a chain, behind the headroom of each segment; as bb_mbuf_data_sge(). */
static inline int
bb_mbuf_room_sge(struct bb_lkey_cache *cache, const struct rte_mbuf *m, struct bb_sge *sge,
		 uint32_t max)
{
	int n = 0;

	for (; m != NULL && n >= 0; m = m->next)
		n = bb_mbuf_add(cache, m, bb_mbuf_room(m), sge, (uint32_t)n, max);
	return n;
}

/** What a list that was refused counts as. */
static inline enum bb_refusal
bb_mbuf_refusal(int err)
{
	return err == -EINVAL ? BB_REFUSED_MAX_SGE : BB_REFUSED_LKEY;
}

/** SEND the data of a chain. */
static inline int
bb_post_send_mbuf(struct bb_qp *qp, struct bb_lkey_cache *cache, uint64_t wr_id,
		  const struct rte_mbuf *m, uint32_t flags)
{
	struct bb_sge sge[BB_WQE_MAX_DS];
	int n = bb_mbuf_data_sge(cache, m, sge, qp->sq.max_sge);

	if (bb_unlikely(n < 0))
		return bb_sq_refuse_arg(&qp->sq, bb_mbuf_refusal(n));
	return bb_post_send(qp, wr_id, sge, (uint32_t)n, flags);
}

/** SEND_WITH_IMM the data of a chain. @p imm in network order. */
static inline int
bb_post_send_imm_mbuf(struct bb_qp *qp, struct bb_lkey_cache *cache, uint64_t wr_id,
		      const struct rte_mbuf *m, uint32_t imm, uint32_t flags)
{
	struct bb_sge sge[BB_WQE_MAX_DS];
	int n = bb_mbuf_data_sge(cache, m, sge, qp->sq.max_sge);

	if (bb_unlikely(n < 0))
		return bb_sq_refuse_arg(&qp->sq, bb_mbuf_refusal(n));
	return bb_post_send_imm(qp, wr_id, sge, (uint32_t)n, imm, flags);
}

/** RDMA_WRITE the data of a chain to @p raddr. */
static inline int
bb_post_write_mbuf(struct bb_qp *qp, struct bb_lkey_cache *cache, uint64_t wr_id,
		   const struct rte_mbuf *m, uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	struct bb_sge sge[BB_WQE_MAX_DS];
	int n = bb_mbuf_data_sge(cache, m, sge, qp->sq.max_sge);

	if (bb_unlikely(n < 0))
		return bb_sq_refuse_arg(&qp->sq, bb_mbuf_refusal(n));
	return bb_post_write(qp, wr_id, sge, (uint32_t)n, raddr, rkey, flags);
}

/** Post the room of a chain as a receive; bb_mbuf_set_len() when it has completed. */
static inline int
bb_post_recv_mbuf(struct bb_qp *qp, struct bb_lkey_cache *cache, uint64_t wr_id,
		  const struct rte_mbuf *m)
{
	struct bb_sge sge[BB_WQE_MAX_DS];
	int n = bb_mbuf_room_sge(cache, m, sge, qp->rq.max_sge);

	if (bb_unlikely(n < 0))
		return bb_rq_refuse_arg(&qp->rq, bb_mbuf_refusal(n));
	return bb_post_recv(qp, wr_id, sge, (uint32_t)n);
}

/** The same for a shared receive queue. */
static inline int
bb_post_srq_recv_mbuf(struct bb_srq *srq, struct bb_lkey_cache *cache, uint64_t wr_id,
		      const struct rte_mbuf *m)
{
	struct bb_sge sge[BB_WQE_MAX_DS];
	int n = bb_mbuf_room_sge(cache, m, sge, srq->ring.max_sge);

	if (bb_unlikely(n < 0))
		return bb_srqring_refuse_arg(&srq->ring, bb_mbuf_refusal(n));
	return bb_post_srq_recv(srq, wr_id, sge, (uint32_t)n);
}

/**
 * Posts up to @p n receives of one mbuf each from @p mp, with the mbuf as wr_id. The caller rings.
 * @param err 0 when all were posted, or when the queue is full or the pool empty; else why a
 *   receive can never be posted, as bb_post_recv_mbuf().
 * @return how many were posted.
 */
static inline uint32_t
bb_fill_recv_mbuf(struct bb_qp *qp, struct bb_lkey_cache *cache, struct rte_mempool *mp, uint32_t n,
		  int *err)
{
	uint32_t done;

	*err = 0;
	for (done = 0; done < n; done++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(mp);
		int ret;

		if (m == NULL)
			break;
		ret = bb_post_recv_mbuf(qp, cache, (uint64_t)(uintptr_t)m, m);
		if (ret == 0)
			continue;
		rte_pktmbuf_free(m);
		*err = ret != -EAGAIN ? ret : 0;
		break;
	}
	return done;
}

/** The same for a shared receive queue. */
static inline uint32_t
bb_fill_srq_mbuf(struct bb_srq *srq, struct bb_lkey_cache *cache, struct rte_mempool *mp,
		 uint32_t n, int *err)
{
	uint32_t done;

	*err = 0;
	for (done = 0; done < n; done++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(mp);
		int ret;

		if (m == NULL)
			break;
		ret = bb_post_srq_recv_mbuf(srq, cache, (uint64_t)(uintptr_t)m, m);
		if (ret == 0)
			continue;
		rte_pktmbuf_free(m);
		*err = ret != -EAGAIN ? ret : 0;
		break;
	}
	return done;
}

/**
 * Set data_len along a chain that was posted as a receive, and pkt_len, to @p len bytes
 * received (byte_len of its completion). Segments behind the data become empty; they stay
 * in the chain.
 * @return 0, or -EMSGSIZE when the chain has no room for so many: it is left as it was.
 */
static inline int
bb_mbuf_set_len(struct rte_mbuf *m, uint32_t len)
{
	struct rte_mbuf *seg;
	uint64_t room = 0;
	uint32_t left = len;

	for (seg = m; seg != NULL; seg = seg->next)
		room += bb_mbuf_room(seg);
	if (bb_unlikely(len > room))
		return -EMSGSIZE;
	for (seg = m; seg != NULL; seg = seg->next) {
		uint32_t n = RTE_MIN(left, bb_mbuf_room(seg));

		seg->data_len = (uint16_t)n;
		left -= n;
	}
	m->pkt_len = len;
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif
