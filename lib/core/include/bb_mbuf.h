/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Mbuf chains as the data of sends and writes, and as the buffers of receives.
 *
 * A chain becomes a list of SGEs, one per non-empty segment; no data is copied. The lkeys come from
 * a @ref bb_lkey_cache of the calling thread, which finds only registered memory. So the mempool
 * must be registered (bb_mem_add_mempool()), or DPDK's heap must be (bb_mem_follow_heap()). The
 * device owns a chain from the post to its completion; after that the application owns it again.
 * The address of the first segment can serve as wr_id.
 *
 * Return values are those of bb_post.h. If a call fails, the caller still owns the mbufs. -EINVAL:
 * the chain has more non-empty segments than the queue's max_sge or max_recv_sge; -EFAULT: no
 * registration contains a segment of the chain. Each reason is logged once per queue.
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

/** Returns the length of a segment's buffer after the headroom, in bytes. */
static inline uint32_t
bb_mbuf_room(const struct rte_mbuf *seg)
{
	return seg->data_off < seg->buf_len ? (uint32_t)(seg->buf_len - seg->data_off) : 0;
}

/** Appends an SGE for a segment to a list. @return the list's new length, or a negative errno. */
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
 * Lists the data of a chain as at most @p max SGEs.
 * @return the number of SGEs, 0 for an empty chain; -EINVAL if the chain needs more than @p max;
 * -EFAULT if a segment is not registered.
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

/**
 * Lists the room of a chain (the buffer of each segment after its headroom) as SGEs. Returns as
 * bb_mbuf_data_sge().
 */
static inline int
bb_mbuf_room_sge(struct bb_lkey_cache *cache, const struct rte_mbuf *m, struct bb_sge *sge,
		 uint32_t max)
{
	int n = 0;

	for (; m != NULL && n >= 0; m = m->next)
		n = bb_mbuf_add(cache, m, bb_mbuf_room(m), sge, (uint32_t)n, max);
	return n;
}

/**
 * Returns the reason that a post counts and logs if bb_mbuf_data_sge() or bb_mbuf_room_sge()
 * returned @p err.
 */
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

/** Posts a SEND_WITH_IMM of the data of a chain. @p imm is in network byte order. */
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

/**
 * Posts the room of a chain as a receive. Call bb_mbuf_set_len() when the receive has completed.
 */
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

/** Posts the room of a chain to a shared receive queue, as bb_post_recv_mbuf() does for a QP. */
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
 * Posts up to @p n receives of one mbuf each from @p mp, with the mbuf's address as wr_id. The
 * caller then calls bb_qp_ring_recv().
 * @param err 0 if all were posted, the queue is full or the pool is empty; otherwise the error of
 * bb_post_recv_mbuf() that says why a receive can never be posted.
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

/**
 * Posts receives to a shared receive queue, as bb_fill_recv_mbuf() does for a QP. The caller then
 * calls bb_srq_ring().
 */
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
 * (byte_len of its completion). Segments after the data become empty and stay in the chain.
 * @return 0, or -EMSGSIZE, with the chain unchanged, if the chain has less room than @p len.
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
