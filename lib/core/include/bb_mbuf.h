/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Mbuf chains as the data of sends and writes, and as the buffers of receives.
 *
 * A chain becomes a list of pieces, one per non-empty segment; nothing is copied. Keys come from a
 * @ref bb_lkey_cache of the calling thread. So the mempool must be registered
 * (bb_mem_add_mempool()), or the heap must be followed. The device owns a chain from the post to
 * its completion; after that the application owns it again. The address of the first segment can
 * serve as wr_id.
 *
 * Return values are those of bb_post.h. If a call fails, the caller still owns the mbufs. -EINVAL:
 * more segments than the queue's max_sge or max_recv_sge; -EFAULT: no registration contains a
 * segment. Each reason is logged once.
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

/** Returns the bytes of a segment after its headroom. */
static inline uint32_t
bb_mbuf_room(const struct rte_mbuf *seg)
{
	return seg->data_off < seg->buf_len ? (uint32_t)(seg->buf_len - seg->data_off) : 0;
}

/** Appends a segment to a list of pieces. @return the list's new length, or a negative errno. */
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
 * Lists the data of a chain as at most @p max pieces.
 * @return the number of pieces, 0 for an empty chain; -EINVAL more than @p max; -EFAULT a segment
 * is not registered.
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

/** Lists the room of a chain, after the headroom of each segment; as bb_mbuf_data_sge(). */
static inline int
bb_mbuf_room_sge(struct bb_lkey_cache *cache, const struct rte_mbuf *m, struct bb_sge *sge,
		 uint32_t max)
{
	int n = 0;

	for (; m != NULL && n >= 0; m = m->next)
		n = bb_mbuf_add(cache, m, bb_mbuf_room(m), sge, (uint32_t)n, max);
	return n;
}

/** Returns the reason that is counted and logged for error @p err of a list. */
static inline enum bb_refusal
bb_mbuf_refusal(int err)
{
	return err == -EINVAL ? BB_REFUSED_MAX_SGE : BB_REFUSED_LKEY;
}

/** Posts a SEND of the data of a chain. */
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

/** Posts a SEND_WITH_IMM of the data of a chain. @p imm in network order. */
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

/** Posts an RDMA_WRITE of the data of a chain to @p raddr. */
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

/** Posts the room of a chain as a receive. Call bb_mbuf_set_len() when it has completed. */
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

/** Posts the room of a chain to a shared receive queue; as bb_post_recv_mbuf(). */
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
 * @param err 0 if all were posted, the queue is full or the pool is empty; otherwise why a receive
 * can never be posted, as bb_post_recv_mbuf().
 * @return the number of receives posted.
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

/** Fills a shared receive queue; as bb_fill_recv_mbuf(). */
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
 * Sets pkt_len, and data_len along a chain that was posted as a receive, for @p len received bytes
 * (byte_len of its completion). Segments after the data become empty; they stay in the chain.
 * @return 0, or -EMSGSIZE if the chain has less room; it is then unchanged.
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
