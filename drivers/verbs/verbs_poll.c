/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completions: the driver gets them from the provider's CQ. It passes them to the application
 * directly, or as CQEs in the ring that the application polls.
 *
 * While the ring is empty, the completion of a successful request is written directly to the
 * application's struct bb_wc. All other completions become CQEs in the ring: receives, errors,
 * requests that complete through a later request, and completions for which the application's array
 * has no room. To keep the order, completions that follow a CQE become CQEs too.
 *
 * A request without BB_SEND_SIGNALED may have been posted to the provider as signalled
 * (verbs_sq.c). Its completion advances verbs_qp.done and writes no CQE. Requests that the provider
 * does not complete, mainly NOPs, are in verbs_qp.own. These complete when all earlier requests
 * have completed.
 */
#include <errno.h>
#include <string.h>

#include "bb_post.h"
#include "verbs_drv.h"

#define BURST 32u /* maximum completions per poll of the provider */

/* Returns the error syndrome that bb_wc_status_of() converts back to @status. */
static uint8_t
syndrome_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return BB_SYN_LOCAL_LENGTH;
	case IBV_WC_LOC_QP_OP_ERR:
		return BB_SYN_LOCAL_QP_OP;
	case IBV_WC_LOC_PROT_ERR:
		return BB_SYN_LOCAL_PROT;
	case IBV_WC_WR_FLUSH_ERR:
		return BB_SYN_WR_FLUSH;
	case IBV_WC_MW_BIND_ERR:
		return BB_SYN_MW_BIND;
	case IBV_WC_BAD_RESP_ERR:
		return BB_SYN_BAD_RESP;
	case IBV_WC_LOC_ACCESS_ERR:
		return BB_SYN_LOCAL_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
		return BB_SYN_REMOTE_INVAL_REQ;
	case IBV_WC_REM_ACCESS_ERR:
		return BB_SYN_REMOTE_ACCESS;
	case IBV_WC_REM_OP_ERR:
		return BB_SYN_REMOTE_OP;
	case IBV_WC_RETRY_EXC_ERR:
		return BB_SYN_RETRY_EXC;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return BB_SYN_RNR_RETRY_EXC;
	case IBV_WC_REM_ABORT_ERR:
		return BB_SYN_REMOTE_ABORTED;
	default:
		return 0;
	}
}

/* Results of one poll that are returned to the application. */
struct polled {
	struct bb_wc *wc;
	unsigned int n, done;
	uint32_t cqes; /* number of CQEs that the completions in wc[] would have used in the ring */
};

/*
 * Returns the slot of the ring for the next CQE. The slot is free, because each posted request has
 * reserved one.
 */
static inline struct bb_cqe *
cqe_next(const struct verbs_cq *c)
{
	return (struct bb_cqe *)(void *)c->bb->ring.buf + (c->pi & c->bb->ring.mask);
}

/* Writes the last byte of the CQE, which makes the CQE valid for the application. */
static inline void
cqe_publish(struct verbs_cq *c, struct bb_cqe *cqe, uint8_t opcode)
{
	bb_cqe_own_store(&cqe->op_own,
			 (uint8_t)(opcode << 4 | ((c->pi & bb_cqring_size(&c->bb->ring)) != 0)));
	c->pi++;
}

static inline void
cqe_send(struct verbs_cq *c, uint32_t uidx, uint16_t idx, uint32_t byte_len, uint64_t time)
{
	struct bb_cqe *cqe = cqe_next(c);

	cqe->srqn_uidx = bb_be32(uidx);
	cqe->byte_cnt = bb_be32(byte_len);
	cqe->timestamp = bb_be64(time);
	cqe->wqe_counter = bb_be16(idx);
	cqe_publish(c, cqe, BB_CQE_REQ);
}

static void
cqe_error(struct verbs_cq *c, uint32_t uidx, uint16_t idx, uint8_t opcode, uint8_t syndrome,
	  uint8_t vendor)
{
	struct bb_cqe *cqe = cqe_next(c);

	memset(cqe, 0, offsetof(struct bb_cqe, op_own));
	cqe->srqn_uidx = bb_be32(uidx);
	cqe->wqe_counter = bb_be16(idx);
	((uint8_t *)cqe)[BB_CQE_VENDOR_SYNDROME_BYTE] = vendor;
	((uint8_t *)cqe)[BB_CQE_SYNDROME_BYTE] = syndrome;
	cqe_publish(c, cqe, opcode);
}

void
verbs_ring_end(struct verbs_cq *c)
{
	struct bb_cqe *cqe = cqe_next(c);

	memset(cqe, 0, offsetof(struct bb_cqe, op_own));
	cqe_publish(c, cqe, BB_CQE_RESIZE);
}

/*
 * Completes requests in own[], which the driver itself completes. Such a request completes when all
 * requests before it have completed. @upto: number of the newest request that has completed. @time:
 * time of its completion.
 */
static void
own_done(struct verbs_qp *q, uint32_t upto, uint64_t time)
{
	while (q->own_head != q->own_tail) {
		const struct verbs_own *o = &q->own[q->own_head & q->own_mask];
		uint8_t syndrome = o->syndrome;

		if ((int32_t)(upto - o->after_seq) < 0)
			return;
		q->own_head++;
		if (syndrome == 0 && q->failed)
			syndrome = BB_SYN_WR_FLUSH;
		if (syndrome != 0)
			cqe_error(q->scq, q->bb->user_index, o->idx, BB_CQE_REQ_ERR, syndrome, 0);
		else if (o->report)
			cqe_send(q->scq, q->bb->user_index, o->idx, 0, time);
	}
}

void
verbs_own_done(struct verbs_qp *q)
{
	const uint64_t before = q->scq->pi;
	uint64_t now = 0;

	/* No earlier completion has provided a timestamp, so read the clock. */
	if (bb_unlikely(q->scq->timestamps))
		(void)verbs_clock(q->scq->d->dev, &now);
	own_done(q, q->done, now);
	if (q->scq->pi != before)
		verbs_raise(q->scq, q->failed);
}

/*
 * Returns the bytes of a READ or an atomic. For other requests the length is not read, because
 * struct bb_wc does not report it.
 */
static inline uint32_t
send_len(struct verbs_cq *c, const struct bb_sq_wqe *w, const struct ibv_wc *wc)
{
	if (bb_likely(w->opcode != BB_WQE_RDMA_READ && w->opcode != BB_WQE_ATOMIC_CS &&
		      w->opcode != BB_WQE_ATOMIC_FA))
		return 0;
	return wc != NULL ? wc->byte_len : ibv_wc_read_byte_len(c->ex);
}

/*
 * Completes a successful request and all earlier ones. If @wc is NULL, the completion is the
 * current one of c->ex.
 */
static inline void
send_done(struct verbs_cq *c, uint64_t wr_id, const struct ibv_wc *wc, uint64_t time)
{
	const uint32_t uidx = VERBS_WR_USER(wr_id);
	struct bb_qp *qp = c->bb->qps[uidx & BB_MAX_USER_INDEX];
	const struct bb_sq_wqe *w;
	struct verbs_qp *q;
	uint32_t seq;

	if (bb_unlikely(qp == NULL))
		return;
	q = verbs_qp_of_sq(&qp->sq);
	w = verbs_slot_at(&qp->sq, q, wr_id);
	seq = w->seq;
	if (bb_unlikely(q->own_head != q->own_tail))
		own_done(q, seq - 1, time);
	if ((wr_id & VERBS_WR_REPORT) != 0)
		cqe_send(c, uidx, (uint16_t)(w - qp->sq.wqes), send_len(c, w, wc), time);
	__atomic_store_n(&q->done, seq, __ATOMIC_RELAXED);
	if (bb_unlikely(q->own_head != q->own_tail))
		own_done(q, seq, time);
}

/*
 * Writes the completion of a successful request directly to the array that the application gave to
 * the poll, without a CQE. Returns false if the request needs a CQE.
 */
static inline __attribute__((always_inline)) bool
send_direct(struct verbs_cq *c, uint64_t wr_id, const struct ibv_wc *from, struct polled *p)
{
	struct bb_qp *qp = c->bb->qps[VERBS_WR_USER(wr_id) & BB_MAX_USER_INDEX];
	const struct bb_sq_wqe *w;
	struct verbs_qp *q;
	struct bb_wc *wc;

	if (p->done == p->n || c->pi != c->bb->ring.ci || bb_unlikely(qp == NULL))
		return false;
	q = verbs_qp_of_sq(&qp->sq);
	if (bb_unlikely(q->own_head != q->own_tail))
		return false;
	w = verbs_slot_at(&qp->sq, q, wr_id);
	__atomic_store_n(&q->done, w->seq, __ATOMIC_RELAXED);
	if (bb_unlikely((wr_id & VERBS_WR_REPORT) == 0))
		return true;
	bb_sq_completed(&qp->sq, w);
	p->cqes++;
	if ((w->flags & BB_SEND_SIGNALED) == 0)
		return true;
	wc = &p->wc[p->done++];
	wc->wr_id = w->wr_id;
	wc->qp = qp;
	wc->byte_len = send_len(c, w, from);
	wc->status = BB_WC_SUCCESS;
	wc->opcode = w->wc_opcode;
	wc->flags = 0;
	return true;
}

static void
send_failed(struct verbs_cq *c, const struct ibv_wc *wc)
{
	const uint32_t uidx = VERBS_WR_USER(wc->wr_id);
	struct bb_qp *qp = c->bb->qps[uidx & BB_MAX_USER_INDEX];
	const struct bb_sq_wqe *w;
	bool first;
	struct verbs_qp *q;
	uint32_t seq;

	if (qp == NULL)
		return;
	q = verbs_qp_of(qp);
	if ((wc->wr_id & VERBS_WR_MARK) != 0) {
		__atomic_store_n(&q->done, q->marked, __ATOMIC_RELAXED);
		own_done(q, q->marked, 0);
		return;
	}
	w = verbs_slot_at(&qp->sq, q, wc->wr_id);
	seq = w->seq;
	own_done(q, seq - 1, 0);
	first = !q->failed;
	q->failed = true;
	cqe_error(c, uidx, (uint16_t)(w - qp->sq.wqes), BB_CQE_REQ_ERR, syndrome_of(wc->status),
		  (uint8_t)wc->vendor_err);
	__atomic_store_n(&q->done, seq, __ATOMIC_RELAXED);
	/*
	 * libibverbs moves the QP to SQE, a state that Bluebell does not have. So move the QP to
	 * ERR, where every request gets a CQE.
	 */
	if (first && qp->sq.type != BB_QPT_RC)
		verbs_qp_stop(qp, NULL, 0);
	own_done(q, seq, 0);
}

/* Returns the user index of the QP with number @qpn, which consumed a receive of an SRQ. */
static uint32_t
user_of_qpn(const struct verbs_dev *d, uint32_t qpn)
{
	const uint16_t *page =
		__atomic_load_n(&d->qpns.page[qpn >> VERBS_QPN_BITS & 0xfff], __ATOMIC_ACQUIRE);

	if (page == NULL)
		return 0;
	return __atomic_load_n(&page[qpn & ((1u << VERBS_QPN_BITS) - 1)], __ATOMIC_RELAXED);
}

static uint8_t
recv_opcode(const struct ibv_wc *wc)
{
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return BB_CQE_RESP_WR_IMM;
	if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
		return BB_CQE_RESP_SEND_IMM;
	return (wc->wc_flags & IBV_WC_WITH_INV) != 0 ? BB_CQE_RESP_SEND_INV : BB_CQE_RESP_SEND;
}

static void
recv_done(struct verbs_cq *c, const struct ibv_wc *wc, uint64_t time)
{
	uint32_t uidx = VERBS_WR_USER(wc->wr_id);
	struct bb_cqe *cqe;

	if ((wc->wr_id & VERBS_WR_SRQ) != 0)
		uidx = user_of_qpn(c->d, wc->qp_num);
	if (wc->status != IBV_WC_SUCCESS) {
		cqe_error(c, uidx, (uint16_t)wc->wr_id, BB_CQE_RESP_ERR, syndrome_of(wc->status),
			  (uint8_t)wc->vendor_err);
		return;
	}
	cqe = cqe_next(c);
	memset(cqe, 0, offsetof(struct bb_cqe, op_own));
	cqe->srqn_uidx = bb_be32(uidx);
	cqe->byte_cnt = bb_be32(wc->byte_len);
	cqe->timestamp = bb_be64(time);
	cqe->wqe_counter = bb_be16((uint16_t)wc->wr_id);
	if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
		cqe->imm = wc->imm_data;
	else if ((wc->wc_flags & IBV_WC_WITH_INV) != 0)
		cqe->imm = bb_be32(wc->invalidated_rkey);
	else
		cqe->imm = bb_be32(wc->pkey_index);
	cqe->slid = bb_be16(wc->slid);
	cqe->flags_rqpn = bb_be32((wc->src_qp & BB_CQE_RQPN_QPN) |
				  (uint32_t)(wc->sl & 0xf) << BB_CQE_RQPN_SL_SHIFT |
				  ((wc->wc_flags & IBV_WC_GRH) != 0 ? 1u << 28 : 0));
	cqe_publish(c, cqe, recv_opcode(wc));
}

void
verbs_recv_refused(struct bb_qp *qp, uint16_t idx)
{
	cqe_error(qp->ctrl->recv_cq->ctrl->priv, qp->user_index, idx, BB_CQE_RESP_ERR,
		  BB_SYN_LOCAL_QP_OP, 0);
	verbs_raise(qp->ctrl->recv_cq->ctrl->priv, true);
}

static void
take(struct verbs_cq *c, const struct ibv_wc *wc, uint64_t time, struct polled *p)
{
	if ((wc->wr_id & VERBS_WR_RECV) != 0)
		recv_done(c, wc, time);
	else if (wc->status != IBV_WC_SUCCESS)
		send_failed(c, wc);
	else if (!send_direct(c, wc->wr_id, wc, p))
		send_done(c, wc->wr_id, wc, time);
}

/* Processes the current completion of an extended CQ and reads all its fields. */
static __attribute__((noinline)) void
take_ex(struct verbs_cq *c, struct polled *p)
{
	struct ibv_cq_ex *ex = c->ex;
	const uint64_t time = c->timestamps ? ibv_wc_read_completion_ts(ex) : 0;
	struct ibv_wc wc = {.wr_id = ex->wr_id, .status = ex->status};

	wc.qp_num = ibv_wc_read_qp_num(ex);
	if (wc.status != IBV_WC_SUCCESS) {
		wc.vendor_err = ibv_wc_read_vendor_err(ex);
	} else if ((wc.wr_id & VERBS_WR_RECV) != 0) {
		wc.opcode = ibv_wc_read_opcode(ex);
		wc.wc_flags = ibv_wc_read_wc_flags(ex);
		wc.byte_len = ibv_wc_read_byte_len(ex);
		if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0)
			wc.imm_data = ibv_wc_read_imm_data(ex);
		else if ((wc.wc_flags & IBV_WC_WITH_INV) != 0)
			wc.invalidated_rkey = ibv_wc_read_invalidated_rkey(ex);
		wc.src_qp = ibv_wc_read_src_qp(ex);
		wc.slid = (uint16_t)ibv_wc_read_slid(ex);
		wc.sl = ibv_wc_read_sl(ex);
	}
	take(c, &wc, time, p);
}

/*
 * Logs a failed poll of the provider. A CQ has no error state, so to the application the CQ appears
 * empty. The completions in the CQ may be lost. mlx5's provider returns negative codes that are not
 * errno values.
 */
static __attribute__((noinline, cold)) void
poll_failed(struct verbs_cq *c, const char *call, int err)
{
	if (c->poll_error_logged)
		return;
	c->poll_error_logged = true;
	BB_LOG(ERR,
	       "%s: CQ 0x%x: %s() failed: %s (%d): completions may be lost, and the queue slots "
	       "of their requests are not freed: recover or destroy the QPs of this CQ (logged "
	       "once per CQ)",
	       c->d->dev->name, c->bb->cqn, call, err > 0 ? strerror(err) : "provider error", err);
}

/*
 * Gets up to BURST completions of an extended CQ. Stops when the application's array is full. Only
 * a copy of *@p is passed to other functions, so that compilers keep *@p in registers.
 */
static inline __attribute__((always_inline)) uint32_t
poll_ex(struct verbs_cq *c, struct polled *p)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *ex = c->ex;
	uint32_t n = 0;
	int err;

	err = ibv_start_poll(ex, &attr);
	if (err != 0) {
		if (bb_unlikely(err != ENOENT))
			poll_failed(c, "ibv_start_poll", err);
		return 0;
	}
	for (;;) {
		const uint64_t wr_id = ex->wr_id;

		if (bb_unlikely(ex->status != IBV_WC_SUCCESS || (wr_id & VERBS_WR_RECV) != 0)) {
			struct polled copy = *p;

			take_ex(c, &copy);
			*p = copy;
		} else if (bb_unlikely(!send_direct(c, wr_id, NULL, p))) {
			send_done(c, wr_id, NULL,
				  c->timestamps ? ibv_wc_read_completion_ts(ex) : 0);
		}
		if (++n >= BURST || (p->n != 0 && p->done >= p->n))
			break;
		err = ibv_next_poll(ex);
		if (err != 0) {
			if (bb_unlikely(err != ENOENT))
				poll_failed(c, "ibv_next_poll", err);
			break;
		}
	}
	ibv_end_poll(ex);
	return n;
}

static uint32_t
poll_plain(struct verbs_cq *c, struct polled *p)
{
	struct ibv_wc wc[BURST];
	int i, n = ibv_poll_cq(c->cq, (int)BURST, wc);

	if (bb_unlikely(n < 0)) {
		poll_failed(c, "ibv_poll_cq", n);
		return 0;
	}
	for (i = 0; i < n; i++)
		take(c, &wc[i], 0, p);
	return (uint32_t)n;
}

/*
 * Gets up to BURST completions from the provider's CQ and processes them. Returns their number. A
 * completion may also complete earlier requests, and each of them may write a CQE to the ring. The
 * ring has a free slot for every such CQE: see cqe_next().
 */
static uint32_t
poll_some(struct verbs_cq *c, struct polled *p)
{
	return c->ex == NULL ? poll_plain(c, p) : poll_ex(c, p);
}

void
verbs_poll(void *arg)
{
	struct polled none = {0};

	(void)poll_some(arg, &none);
}

static __attribute__((noinline)) unsigned int
ring_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	return bb_cq_poll_ring(cq, wc, n);
}

/*
 * Returns the number of completions for the application: those written directly, then those from
 * the ring.
 */
static inline unsigned int
polled_end(struct bb_cq *cq, const struct verbs_cq *c, const struct polled *p)
{
	if (p->cqes != 0)
		bb_count_add(&cq->more, p->cqes);
	if (bb_likely(c->pi == cq->ring.ci))
		return p->done;
	return p->done + ring_poll(cq, p->wc + p->done, p->n - p->done);
}

static __attribute__((noinline)) unsigned int
poll_other(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	struct polled p = {.wc = wc, .n = n};

	(void)poll_some(cq->progress_arg, &p);
	return polled_end(cq, cq->progress_arg, &p);
}

unsigned int
verbs_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n)
{
	struct verbs_cq *c = cq->progress_arg;
	struct polled p = {.wc = wc, .n = n};

	if (bb_unlikely(c->ex == NULL))
		return poll_other(cq, wc, n);
	(void)poll_ex(c, &p);
	return polled_end(cq, c, &p);
}

void
verbs_drain(struct verbs_cq *c)
{
	struct polled none = {0};

	while (poll_some(c, &none) != 0)
		;
}

void
verbs_drain_qp(const struct bb_qp *qp)
{
	verbs_drain(qp->ctrl->send_cq->ctrl->priv);
	verbs_drain(qp->ctrl->recv_cq->ctrl->priv);
}
