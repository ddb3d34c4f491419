/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests that the requester's CPU executes in the memory of another process: RDMA WRITE, READ and
 * atomics of RC. The payload is copied once, as between devices of one process. Direct execution
 * starts only when no packet of the QP is in flight, so that all requests execute in the order of
 * posting.
 *
 * The requester makes all checks of the target, from the entries that the target publishes. The
 * first request that fails a check goes as packets. Then the target itself executes or rejects the
 * request.
 *
 * An engine's epoch in the directory is odd from direct_enter() to direct_leave(). In this time the
 * engine is inside: it may access the memory of peers. An engine that enters stores its epoch,
 * fences, and then reads a peer's entry. A peer that retires an entry stores it, fences, and then
 * reads the epoch. So either the peer waits for this engine, or this engine finds the entry
 * invalid. If the peer's fence also covers this CPU (soft_shm_fence()), the engine that enters
 * needs only a compiler barrier.
 *
 * The peer waits at most SOFT_SHM_HOLD_NS, and then disconnects. So an engine that stays inside
 * copies a limited number of bytes: less than 2 * PIECE_LEN + SOFT_RUN_WQES * SHORT_LEN. It leaves
 * before each piece of a longer request.
 *
 * The requests count against the packets of the engine's turn (SOFT_TURN_PACKETS), about as if they
 * were sent as packets.
 */
#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_fast.h"
#include "soft_resp.h"
#include "soft_shm.h"
#include "soft_wire.h"

/*
 * Greatest length of a WRITE that direct_writes() executes, bytes, and the packets that each of
 * these WRITEs counts for. A sum of the lengths would cost instructions for each WRITE.
 */
#define FAST_LEN     (UINT64_C(64) << 10)
#define FAST_PACKETS (FAST_LEN / 4096)
#define SHORT_LEN    (UINT64_C(256) << 10) /* A longer request is executed in pieces. Bytes. */
#define PIECE_LEN    (UINT64_C(2) << 20)   /* Length of a piece but the last one. Bytes. */

static inline void
direct_enter(struct soft_engine *e, struct soft_wire *w)
{
	__atomic_store_n(e->shm_epoch, *e->shm_epoch + 1, __ATOMIC_RELAXED);
	if (likely(soft_shm_wire(w)->direct.fenced))
		rte_compiler_barrier();
	else
		bb_smp_mb();
}

static inline void
direct_leave(struct soft_engine *e)
{
	/*
	 * Release: all accesses to peers' memory that this engine made while its epoch was odd come
	 * before this store, which makes the epoch even.
	 */
	__atomic_store_n(e->shm_epoch, *e->shm_epoch + 1, __ATOMIC_RELEASE);
}

/* ---- Entries that the peer publishes. The peer may write any content. */

/* Looks up the peer's QP again. Returns true if it is connected to this QP. */
static __rte_noinline bool
direct_find_qp(struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	struct soft_shm_direct *d = &soft_shm_wire(w)->direct;
	struct soft_shm_qp p;

	d->qp_seq = 0;
	/* The cached keys were checked against the old access rights. */
	memset(d->cached_keys, 0, sizeof(d->cached_keys));
	if (qp->remote_qpn >= 1u << SOFT_LOG_MAX_QP ||
	    !soft_shm_read(&p, &w->shm_tx->dir->qps[qp->remote_qpn], sizeof(p)))
		return false;
	if (p.remote_qpn != qp->qpn || p.mtu != qp->mtu ||
	    memcmp(p.dgid, w->path.net.src, sizeof(p.dgid)) != 0)
		return false;
	d->qp_seq = p.seq;
	d->seq = &w->shm_tx->dir->qps[qp->remote_qpn].seq;
	d->epsn = &w->shm_tx->dir->epsn[qp->remote_qpn];
	d->pdn = p.pdn;
	d->rights = p.rights;
	/* The target rejects READs and atomics beyond its limit, so they must go as packets. */
	if (1u << qp->log_sra_max > p.max_rd_atomic)
		d->rights &= SOFT_SHM_WRITE;
	return true;
}

/*
 * Returns true if the peer is connected and its QP accepts the next request. Looks up the peer's QP
 * again after a change. Call it between direct_enter() and direct_leave().
 */
static inline bool
direct_ready(struct soft_wire *w)
{
	const struct soft_shm_tx *tx = w->shm_tx;
	struct soft_shm_direct *d = &soft_shm_wire(w)->direct;
	uint32_t rev = __atomic_load_n(&tx->rev, __ATOMIC_ACQUIRE);

	if (unlikely(__atomic_load_n(&tx->state, __ATOMIC_ACQUIRE) != SOFT_SHM_UP ||
		     __atomic_load_n(&tx->deaths, __ATOMIC_RELAXED) != soft_shm_wire(w)->deaths ||
		     __atomic_load_n(&w->qp->dev->port_down, __ATOMIC_RELAXED)))
		return false;
	if (unlikely(rev != d->rev)) {
		d->qp_seq = 0;
		d->rev = rev;
		/*
		 * The peer may be a new process, which may not have joined membarrier(2). The
		 * engine's own full fence below makes the lookup safe in both cases.
		 */
		d->fenced = soft_shm_fenced() &&
			    __atomic_load_n(&tx->dir->fences, __ATOMIC_RELAXED) == 1;
		bb_smp_mb();
	}
	if (unlikely(d->qp_seq == 0 || __atomic_load_n(d->seq, __ATOMIC_RELAXED) != d->qp_seq) &&
	    !direct_find_qp(w))
		return false;
	/*
	 * A target that expects another PSN would treat the request as a duplicate or as out of
	 * order. After all requests are acknowledged, the PSNs of both peers agree, unless the QPs
	 * were set up with different PSNs.
	 */
	return __atomic_load_n(d->epsn, __ATOMIC_RELAXED) == w->roce.req.psn;
}

/*
 * Returns the address of the peer's memory [addr, addr + len) in this process, or NULL if the
 * request must go as packets.
 */
static inline uint8_t *
direct_find(struct soft_wire *w, uint32_t key, uint64_t addr, uint64_t len, uint32_t right)
{
	struct soft_shm_cached_key *n =
		&soft_shm_wire(w)->direct.cached_keys[key >> 8 & (SOFT_SHM_CACHED_KEYS - 1)];

	if (unlikely(n->now == NULL || n->key != key ||
		     __atomic_load_n(n->now, __ATOMIC_RELAXED) != n->seq) &&
	    !soft_shm_key_find(w->shm_tx, soft_shm_wire(w)->direct.pdn,
			       soft_shm_wire(w)->direct.rights, key, n))
		return NULL;
	if (unlikely(addr < n->start || len > n->len || addr - n->start > n->len - len ||
		     (n->rights & right) == 0))
		return NULL;
	return n->base + (addr - n->start);
}

/* ---- Execution of requests */

static inline struct soft_shm_count *
direct_counts(const struct soft_qp *qp)
{
	return &qp->dev->shm->dir->count[qp->qpn];
}

static inline void
direct_count(uint64_t *n, uint64_t more)
{
	__atomic_store_n(n, *n + more, __ATOMIC_RELAXED);
}

/*
 * Executes WRITEs of at most FAST_LEN bytes that the fast path supports (soft_fast.h), at most
 * @budget. Returns their number.
 */
static uint32_t
direct_writes(struct soft_engine *e, struct soft_wire *w, uint32_t budget)
{
	struct soft_qp *qp = w->qp;
	const uint32_t mask = (1u << qp->log_sq) - 1;
	uint32_t left = (uint16_t)(qp->sq_pi - qp->sq_ci), done = 0;
	uint16_t ci = qp->sq_ci;
	bool alive = true, stamped = false;

	while (left != 0 && done != budget && likely(alive)) {
		const uint8_t *b = qp->sq + ((size_t)(ci & mask) << 6);
		struct soft_write r;
		uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED), *dst;

		if (unlikely(!soft_fast_decode(e, qp, b, ci, left, &r) || r.len > FAST_LEN))
			break;
		dst = direct_find(w, r.rkey, r.raddr, r.len, SOFT_SHM_WRITE);
		if (unlikely(dst == NULL))
			break;
		soft_mem_copy(e, dst, r.src, r.len);
		/* The peer must not see the next message's payload before this payload. */
		bb_dma_wmb();
		if (fm_ce_se & BB_WQE_CE_CQE) {
			/*
			 * The clock is read after the first payload is written, so that the payload
			 * is not delayed.
			 */
			if (!stamped)
				soft_now(e);
			stamped = true;
			alive = soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), 0, 0,
					       BB_WQE_RDMA_WRITE, ci, BB_CQE_REQ << 4);
		}
		ci = (uint16_t)(ci + r.blocks);
		left -= r.blocks;
		done++;
	}
	e->packets_left -= done * FAST_PACKETS;
	qp->sq_ci = ci;
	w->sq_next = ci;
	direct_count(&direct_counts(qp)->writes, done);
	if (unlikely(!alive))
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return done;
}

static void
direct_response(struct soft_engine *e, struct soft_qp *qp, struct soft_req *r, const uint8_t *src,
		uint64_t len)
{
	if (soft_resp_to_cqe(qp, r)) {
		soft_mem_copy(e, qp->cs_data, src, len);
		qp->cs_len = (uint8_t)len;
	} else {
		soft_mem_scatter(e, r->frag, r->n, src);
	}
}

/*
 * Executes the decoded request in the peer's memory. Returns false if it must go as packets. The
 * fragments of a WRITE or READ may end before the request: see direct_long().
 */
static bool
direct_request(struct soft_engine *e, struct soft_wire *w, struct soft_req *r)
{
	struct soft_qp *qp = w->qp;
	uint64_t old;
	uint8_t *at;

	switch (r->d.opcode) {
	case BB_WQE_RDMA_WRITE:
		/* For a message without payload the key is not checked (IBTA 9.7.4.1.4). */
		if (r->d.len == 0)
			return (soft_shm_wire(w)->direct.rights & SOFT_SHM_WRITE) != 0;
		at = direct_find(w, r->rkey, r->raddr, r->d.len, SOFT_SHM_WRITE);
		if (unlikely(at == NULL))
			return soft_shm_vm(e, w, r);
		soft_mem_gather(e, at, r->frag, r->n);
		return true;
	case BB_WQE_RDMA_READ:
		if (r->d.len == 0)
			return (soft_shm_wire(w)->direct.rights & SOFT_SHM_READ) != 0;
		/* A READ does not pass an earlier WRITE, SEND or atomic of the QP. */
		bb_smp_mb();
		at = direct_find(w, r->rkey, r->raddr, r->d.len, SOFT_SHM_READ);
		if (unlikely(at == NULL))
			return soft_shm_vm(e, w, r);
		direct_response(e, qp, r, at, r->d.len);
		return true;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		at = direct_find(w, r->rkey, r->raddr, 8, SOFT_SHM_ATOMIC);
		if (at == NULL || ((uintptr_t)at & 7) != 0)
			return false;
		old = soft_atomic(e, r->d.opcode == BB_WQE_ATOMIC_FA, (uint64_t *)(void *)at,
				  r->swap_add, r->compare);
		direct_response(e, qp, r, (const uint8_t *)&old, sizeof(old));
		return true;
	default:
		return false;
	}
}

/*
 * Executes a decoded WRITE or READ in pieces, with a new epoch for each. Before each piece it looks
 * for changes of the peer's QP and key. Returns false if the whole request must go as packets.
 */
static __rte_noinline bool
direct_long(struct soft_engine *e, struct soft_wire *w, struct soft_req *r)
{
	const uint64_t len = r->d.len;
	uint64_t piece, bytes, at;
	struct soft_frag *last;
	bool done = true;

	/* The key must cover all remaining bytes, or not even the first piece is executed. */
	for (; r->d.len != 0 && done; r->d.len -= piece) {
		/* A piece ends between aligned 8-byte units of memory: see soft_mem_access.c. */
		at = r->d.opcode == BB_WQE_RDMA_READ ? (uintptr_t)r->frag->p : r->raddr;
		piece = r->d.len < 2 * PIECE_LEN ? r->d.len : PIECE_LEN - (at & 7);
		for (r->n = 0, bytes = 0; bytes < piece; r->n++)
			bytes += r->frag[r->n].len;
		/* The last fragment may end after this piece. */
		bytes -= piece;
		last = &r->frag[r->n - 1];
		last->len -= bytes;
		direct_leave(e);
		direct_enter(e, w);
		done = direct_ready(w) && direct_request(e, w, r);
		r->raddr += piece;
		last->p += last->len;
		last->len = bytes;
		r->frag = last;
	}
	r->d.len = len;
	return done;
}

/* Executes one request. Returns false if the first request of the queue must go as packets. */
static __rte_noinline bool
direct_one(struct soft_engine *e, struct soft_wire *w)
{
	struct soft_qp *qp = w->qp;
	struct soft_req *r = &e->req;
	bool done;

	e->decoded = NULL;
	done = soft_req_decode(e, r, qp, qp->sq_ci, (uint16_t)(qp->sq_pi - qp->sq_ci)) == 0;
	if (likely(done)) {
		soft_umr_pass(qp, &r->d);
		done = r->d.len > SHORT_LEN ? direct_long(e, w, r) : direct_request(e, w, r);
	}
	soft_keys_done(e);
	if (!done)
		return false;
	direct_count(r->d.opcode == BB_WQE_RDMA_WRITE  ? &direct_counts(qp)->writes
		     : r->d.opcode == BB_WQE_RDMA_READ ? &direct_counts(qp)->reads
						       : &direct_counts(qp)->atomics,
		     1);
	e->packets_left -= r->d.packets;
	soft_now(e);
	soft_req_done(e, qp, &r->d);
	w->sq_next = qp->sq_ci;
	return true;
}

/* Returns true if the queue has WQEs to execute. */
static inline bool
direct_left(const struct soft_qp *qp)
{
	return qp->sq_ci != qp->sq_pi && qp->state == BB_PRM_QP_RTS;
}

/* Returns true if the QP must not execute more requests in this turn. */
static inline bool
direct_ends(const struct soft_engine *e, uint32_t done, uint32_t budget)
{
	return done == budget || e->packets_left <= 0;
}

static __rte_noinline uint32_t
direct_run(struct soft_engine *e, struct soft_wire *w, uint32_t budget)
{
	struct soft_qp *qp = w->qp;
	uint32_t done = 0;

	direct_enter(e, w);
	while (direct_ready(w)) {
		/* If WQEs may have to wait for a UMR, soft_req_decode() handles them one by one. */
		if (likely(qp->umr_index == 0))
			done += direct_writes(e, w, budget - done);
		if (direct_ends(e, done, budget) || !direct_left(qp) || !soft_shm_direct_next(qp) ||
		    !direct_one(e, w))
			break;
		if (direct_ends(e, ++done, budget) || !direct_left(qp))
			break;
	}
	direct_leave(e);
	return likely(e->packets_left > 0) ? done : budget;
}

uint32_t
soft_shm_direct(struct soft_engine *e, struct soft_wire *w, uint32_t budget)
{
	const struct soft_qp *qp = w->qp;

	if (w->sq_next != qp->sq_ci || !direct_left(qp) || w->roce.req.head != w->roce.req.tail ||
	    !soft_shm_wire(w)->plain || !soft_shm_direct_next(qp))
		return 0;
	return likely(e->packets_left > 0) ? direct_run(e, w, budget) : budget;
}

/* Returns true if the WQE after the next one is posted and can be executed directly. */
static bool
second_is_direct(const struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	const uint8_t *b = soft_wqe_at(qp, w->sq_next);
	uint32_t blocks = bb_wqe_blocks(__atomic_load_n(&b[7], __ATOMIC_RELAXED) & BB_WQE_MAX_DS);

	b = soft_wqe_at(qp, (uint16_t)(w->sq_next + blocks));
	return blocks < (uint16_t)(qp->sq_pi - w->sq_next) &&
	       soft_shm_direct_kind(__atomic_load_n(&b[3], __ATOMIC_RELAXED));
}

bool
soft_shm_holds(struct soft_engine *e, struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	const uint8_t *b = soft_wqe_at(qp, w->sq_next);
	uint64_t addr = bb_be64(soft_ring64(b + 16));
	uint32_t key = bb_be32(soft_ring32(b + 24));
	bool can;

	if (w->roce.req.head == w->roce.req.tail || w->sq_next == qp->sq_pi ||
	    !soft_shm_wire(w)->plain || qp->state != BB_PRM_QP_RTS || qp->umr_index != 0)
		return false;
	/*
	 * If the last operation in flight is of another kind, waiting for it costs a round trip. A
	 * second WQE would wait for the first one, so both wait for that operation.
	 */
	if (!soft_shm_direct_kind(__atomic_load_n(&b[3], __ATOMIC_RELAXED)) ||
	    (!soft_shm_direct_kind(w->done[(w->roce.req.head - 1) % SOFT_WIRE_SLOTS].opcode) &&
	     !second_is_direct(w)))
		return false;
	direct_enter(e, w);
	/*
	 * Looks up the peer's QP. The result does not matter: it is false while packets are in
	 * flight, because the PSNs of the two QPs then differ.
	 */
	(void)direct_ready(w);
	can = soft_shm_wire(w)->direct.qp_seq != 0 &&
	      __atomic_load_n(&w->shm_tx->state, __ATOMIC_ACQUIRE) == SOFT_SHM_UP &&
	      (direct_find(w, key, addr, 1, SOFT_SHM_READ | SOFT_SHM_WRITE | SOFT_SHM_ATOMIC) !=
		       NULL ||
	       soft_shm_vm_has(w, b, key, addr));
	direct_leave(e);
	return can;
}
