/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A QP that sends packets: creation, states, turns and timers. */
#include "soft_wire.h"

#include "bb_roce_short.h"
#include "soft_access.h"
#include <stddef.h>
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_ud.h"

/*
 * Number of attempts to take the port's lock. All attempts together take a few milliseconds. EAL's
 * interrupt thread holds the lock of some ports for 20 us.
 */
#define LAST_ACK_TRIES 10000u

/* Returns the log text for a failure that only the RoCEv2 engine detects. */
static const char *
soft_wire_cause(uint8_t synd)
{
	switch (synd) {
	case BB_SYN_REMOTE_INVAL_REQ:
		return "the QP does not allow the operation, an atomic is not aligned to 8 bytes, "
		       "more READs and atomics are in flight than max_dest_rd_atomic, or the "
		       "packets form no valid request";
	case BB_SYN_REMOTE_ACCESS:
		return "the key does not allow the operation, or the key was invalidated";
	default:
		return "the receive queue or its CQ failed, or memory is not mapped";
	}
}

static void
soft_wire_failed(void *ctx, struct bb_roce_qp *roce, bool responder, uint8_t synd)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;
	uint16_t event = 0;

	(void)ctx;
	/* If the receive failed, its CQE already reports the error. */
	if (responder && !w->recv_failed) {
		if (synd == BB_SYN_REMOTE_ACCESS)
			event = BB_PRM_EVENT_WQ_ACCESS_ERROR;
		else if (synd == BB_SYN_REMOTE_INVAL_REQ)
			event = BB_PRM_EVENT_WQ_INVAL_REQ_ERROR;
		else
			event = BB_PRM_EVENT_WQ_CATAS_ERROR;
		SOFT_LOG(ERR,
			 "%s QP 0x%x goes to ERR because of a request of its peer, syndrome "
			 "0x%02x: %s",
			 qp->dev->name, qp->qpn, synd, soft_wire_cause(synd));
	}
	soft_qp_fail(qp, event);
}

static void
soft_wire_established(void *ctx, struct bb_roce_qp *roce)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;

	(void)ctx;
	soft_event_raise(qp->dev, qp->obj, BB_PRM_EVENT_COMM_EST);
	if (qp->dev->link->established != NULL)
		qp->dev->link->established(w);
}

static const struct bb_roce_ops soft_wire_ops = {
	.tx = soft_wire_tx,
	.gather = soft_wire_gather,
	.place = soft_wire_place,
	.atomic_result = soft_wire_atomic_result,
	.complete = soft_wire_complete,
	.complete_run = soft_wire_complete_run,
	.recv_take = soft_wire_recv_take,
	.recv_place = soft_wire_recv_place,
	.recv_done = soft_wire_recv_done,
	.invalidate = soft_wire_invalidate,
	.remote_check = soft_wire_remote_check,
	.remote_write = soft_wire_remote_write,
	.remote_read = soft_wire_remote_read,
	.remote_atomic = soft_wire_remote_atomic,
	.failed = soft_wire_failed,
	.established = soft_wire_established,
	.store_pkt = soft_wire_ooo_store,
	.release_pkt = soft_wire_ooo_release,
};

/* ---- Creation and states of a QP */

static void
soft_wire_reset(struct soft_wire *w)
{
	const bool rc = w->qp->st == BB_PRM_QP_ST_RC;
	const struct bb_roce_mem mem = {
		.ring = w->ring,
		.slots = SOFT_WIRE_SLOTS,
		.replay = w->replay,
		.replays = rc ? SOFT_WIRE_REPLAYS : 0,
		.out_of_order = w->out_of_order,
		.max_out_of_order = rc && !w->qp->dev->opts.no_keep ? SOFT_WIRE_MAX_OOO : 0,
	};

	soft_wire_count(w);
	bb_roce_qp_err(&w->roce);
	bb_roce_qp_init(&w->roce, &soft_wire_ops, NULL, &mem);
	memset(&w->counted_stats, 0, sizeof(w->counted_stats));
	w->sq_next = 0;
	w->recv_failed = false;
	w->parked = false;
	w->waits = false;
	w->full.since = 0;
	soft_wire_expect_clear(w);
}

struct soft_wire *
soft_wire_create(struct soft_qp *qp)
{
	const size_t size = qp->dev->link->qp_size;
	struct soft_wire *w = calloc(1, size != 0 ? size : sizeof(*w));

	if (w == NULL)
		return NULL;
	w->qp = qp;
	if (qp->st == BB_PRM_QP_ST_UD) {
		w->dest = calloc(SOFT_WIRE_SLOTS, sizeof(*w->dest));
		if (w->dest == NULL) {
			free(w);
			return NULL;
		}
	}
	soft_wire_reset(w);
	return w;
}

void
soft_wire_destroy(struct soft_wire *w)
{
	if (w == NULL)
		return;
	soft_wire_count(w);
	free(w->dest);
	free(w);
}

static enum bb_roce_type
soft_wire_type(uint32_t st)
{
	switch (st) {
	case BB_PRM_QP_ST_RC:
		return BB_ROCE_RC;
	case BB_PRM_QP_ST_UC:
		return BB_ROCE_UC;
	default:
		return BB_ROCE_UD;
	}
}

/* Decodes the primary path of the QP context to w->path. */
static void
soft_wire_path(struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	const uint8_t *ads = bb_prm_csub(qp->qpc, BB_PRM_QPC_ADS);
	uint32_t sgid = bb_prm_get(ads, BB_PRM_ADS_SRC_ADDR_INDEX) % SOFT_MAX_GIDS;
	uint32_t sport = bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), ecn;
	struct bb_roce_net *net = &w->path.net;

	memcpy(net->src, qp->dev->gids[sgid].raw, 16);
	memcpy(net->dst, bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), 16);
	/* Linux sets only the DSCP, so the ECN bits come from the traffic class (assumption [A]).
	 */
	ecn = bb_prm_get(ads, BB_PRM_ADS_ECN);
	if (ecn == 0)
		ecn = bb_prm_get(ads, BB_PRM_ADS_TCLASS) & 3;
	net->tclass = (uint8_t)(bb_prm_get(ads, BB_PRM_ADS_DSCP) << 2 | ecn);
	net->hop_limit = (uint8_t)bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT);
	net->flow_label = bb_prm_get(ads, BB_PRM_ADS_FLOW_LABEL);
	/*
	 * With UDP source port 0 the device chooses a port from the QP numbers, so that queue pairs
	 * have different ports (annex A17.3.2).
	 */
	net->sport = (uint16_t)(sport != 0 ? sport
					   : 0xc000 | ((qp->qpn ^ qp->remote_qpn * 31) & 0x3fff));
	memset(&w->path.path, 0, sizeof(w->path.path));
	memset(w->begin, 0, sizeof(w->begin));
	memset(&w->shape, 0, sizeof(w->shape));
	w->path.own = soft_dev_has_gid(qp->dev, net->dst);
	memcpy(w->path.mac, ads + BB_PRM_ADS_RMAC_47_32.byte + 2, 6);
}

static void
soft_wire_bad_attr(const struct soft_qp *qp, int err)
{
	SOFT_LOG(ERR,
		 "%s QP 0x%x: the RoCE engine rejected QP attributes that the control path had "
		 "accepted: %s: please report this bug",
		 qp->dev->name, qp->qpn, strerror(-err));
}

/* The access rights are not copied, because each request reads them from the QP. */
void
soft_wire_changed(struct soft_wire *w)
{
	int ret = bb_roce_qp_change(&w->roce, w->qp->q_key, w->qp->min_rnr_nak);

	if (ret != 0)
		soft_wire_bad_attr(w->qp, ret);
}

void
soft_wire_enter_state(struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	bool rc = qp->st == BB_PRM_QP_ST_RC;
	struct bb_roce_attr attr = {
		.type = soft_wire_type(qp->st),
		.mtu = qp->mtu,
		.pkey = SOFT_PKEY,
		.qpn = qp->sqpn,
		.dqpn = qp->remote_qpn,
		.qkey = qp->q_key,
		.rq_psn = qp->epsn,
		.max_dest_rd_atomic = rc ? RTE_MIN(1u << qp->log_rra_max, SOFT_WIRE_REPLAYS) : 0,
		.min_rnr_timer = qp->min_rnr_nak,
		.sq_psn = qp->sq_psn,
		.max_rd_atomic = 1u << qp->log_sra_max,
		.ack_timeout = qp->ack_timeout,
		.retry_cnt = qp->retry_count,
		.rnr_retry = qp->rnr_retry,
		.window = qp->dev->opts.window,
		.selective = !qp->dev->opts.no_keep,
		/*
		 * Without an ack timeout no timer may cause a retransmission (IBTA vol. 1,
		 * 9.7.6.1.3).
		 */
		.adaptive = qp->ack_timeout != 0 ? SOFT_WIRE_ADAPTIVE_NS : 0,
	};
	int ret = 0;

	switch (qp->state) {
	case BB_PRM_QP_RST:
		soft_wire_reset(w);
		break;
	case BB_PRM_QP_RTR:
		if (qp->st != BB_PRM_QP_ST_UD)
			soft_wire_path(w);
		if (qp->dev->link->connected != NULL)
			qp->dev->link->connected(w);
		soft_wire_expect_clear(w);
		w->epsn_at_send = qp->epsn;
		w->n_answered = 0;
		attr.path = w->path.net;
		ret = bb_roce_qp_rtr(&w->roce, &attr);
		break;
	case BB_PRM_QP_RTS:
		ret = bb_roce_qp_rts(&w->roce, &attr);
		break;
	case BB_PRM_QP_ERR:
		bb_roce_qp_err(&w->roce);
		break;
	default:
		break;
	}
	if (ret != 0)
		soft_wire_bad_attr(qp, ret);
}

void
soft_wire_psns(const struct soft_wire *w, uint32_t *out, uint32_t *in)
{
	switch (w->qp->state) {
	case BB_PRM_QP_RTS:
	case BB_PRM_QP_ERR:
		*out = w->roce.req.psn;
		/* fallthrough */
	case BB_PRM_QP_RTR:
		*in = w->roce.resp.epsn;
		break;
	default:
		break;
	}
}

/* ---- Scheduling of a QP */

/* Returns true if a timer of the QP has expired. Reads the clock only if a timer runs. */
static inline bool
soft_wire_expired(struct soft_engine *e, const struct soft_wire *w)
{
	const uint64_t deadline = bb_roce_deadline(&w->roce);

	return deadline != UINT64_MAX && soft_engine_ns(e) >= deadline;
}

/*
 * Suspends the QP. If the QP has a deadline, its timer runs it again. Each packet moves the
 * deadline, but most timers are stopped before they expire. So a running timer is not moved. If it
 * expires before the deadline, it is set again.
 */
static inline void
soft_wire_sleep(struct soft_engine *e, struct soft_wire *w)
{
	const uint64_t deadline = bb_roce_deadline(&w->roce);

	if (unlikely(e->early && soft_wire_expired(e, w))) {
		/* The awaited packet may be in the port, so the QP runs again after the receive. */
		soft_qp_queue(e, w->qp);
	} else if (w->qp->queued == SOFT_Q_TIMER && w->timer <= deadline) {
		return;
	} else if (deadline != UINT64_MAX) {
		const uint64_t now = soft_engine_ns(e);

		w->timer = deadline;
		soft_qp_timer(e, w->qp, deadline > now ? deadline - now : 0);
	} else if (w->qp->queued != SOFT_Q_NONE) {
		soft_qp_unqueue(e, w->qp);
	}
}

/* Returns true if all posted WQEs are sent and no ACK or response is pending. */
static inline bool
soft_wire_idle(const struct soft_wire *w)
{
	return w->sq_next == w->qp->sq_pi && bb_roce_idle(&w->roce);
}

/*
 * Puts the QP on the list of QPs with work if it can go on now. Otherwise suspends it until its
 * timer expires.
 */
static inline void
soft_wire_schedule(struct soft_engine *e, struct soft_wire *w)
{
	if (unlikely(w->parked)) {
		w->parked = false;
		w->timer = soft_engine_ns(e) + SOFT_PF_NS;
		soft_qp_timer(e, w->qp, SOFT_PF_NS);
	} else if (bb_roce_busy(&w->roce) ||
		   (w->qp->state == BB_PRM_QP_RTS && w->sq_next != w->qp->sq_pi &&
		    (w->sq_next == w->qp->sq_ci || unlikely(e->packets_left <= 0)))) {
		soft_qp_queue(e, w->qp);
		e->n_full += e->full == w;
	} else {
		soft_wire_sleep(e, w);
	}
}

/*
 * Counts the peer's messages that the application answered with one request each. After some of
 * them the traffic is a conversation, in which ACKs are delayed (SOFT_WIRE_CONVERSATION). Called at
 * a doorbell, before packets are received.
 */
static inline void
soft_wire_count_answered(struct soft_wire *w)
{
	uint32_t received = (w->roce.resp.epsn - w->epsn_at_send) & BB_ROCE_PSN_MASK;

	w->epsn_at_send = w->roce.resp.epsn;
	if (received > 1)
		w->n_answered = 0;
	else if (w->n_answered != SOFT_WIRE_CONVERSATION)
		w->n_answered += received;
}

/*
 * Runs a turn of the QP without the fast path. With @post passes new WQEs to the RoCEv2 engine, up
 * to the limit for a turn.
 */
static __rte_noinline void
soft_wire_run_slow(struct soft_engine *e, struct soft_wire *w, bool post)
{
	/* Reads the clock now, because WQEs without packets complete in soft_wire_post(). */
	const uint64_t now = soft_engine_ns(e);

	if (post && w->sq_next != w->qp->sq_pi)
		soft_wire_post(e, w);
	if (!bb_roce_idle(&w->roce))
		bb_roce_run(&w->roce, SOFT_RUN_WQES, now);
	/*
	 * Requests of UC and UD complete when they are sent, so there are free slots for more
	 * requests now.
	 */
	if (post && w->qp->st != BB_PRM_QP_ST_RC)
		soft_wire_post(e, w);
}

void
soft_wire_run(struct soft_engine *e, struct soft_wire *w)
{
	uint32_t done = 0;

	soft_wire_turn(e);
	/*
	 * Before packets are received, a timer must not expire, because the awaited packet may be
	 * in the port.
	 */
	if (e->early)
		soft_wire_count_answered(w);
	else if (unlikely(soft_wire_expired(e, w)))
		bb_roce_tick(&w->roce, soft_engine_ns(e));
	if (w->shm_tx != NULL)
		done = e->dev->link->direct(e, w, SOFT_RUN_WQES);
	if (unlikely(w->roce.req.run_left))
		bb_roce_short_repeat(&w->roce, SOFT_RUN_WQES, soft_engine_ns(e));
	if (likely(e->dev->link->plain != NULL) && likely(done < SOFT_RUN_WQES))
		e->dev->link->plain(e, w);
	soft_wire_count_later(e, w);
	if (likely(soft_wire_idle(w))) {
		soft_keys_done(e);
		soft_wire_sleep(e, w);
		return;
	}
	soft_wire_run_slow(
		e, w, done < SOFT_RUN_WQES && (w->shm_tx == NULL || !e->dev->link->holds(e, w)));
	soft_keys_done(e);
	soft_wire_schedule(e, w);
}

void
soft_wire_last_ack(struct soft_qp *qp)
{
	struct soft_wire *w = qp->wire;
	struct soft_engine *e = qp->engine;
	uint32_t i;

	if (w == NULL || (qp->queued != SOFT_Q_LATE && qp->queued != SOFT_Q_RUN) ||
	    !bb_roce_short_ack_due(&w->roce))
		return;
	soft_qp_unqueue(e, qp);
	/* The thread that holds the port's lock never waits for this engine, so this loop ends. */
	for (i = 0; i < LAST_ACK_TRIES && bb_roce_short_ack_due(&w->roce); i++) {
		e->timed = false;
		if (e->dev->link->begin != NULL)
			(void)e->dev->link->begin(e);
		soft_wire_turn(e);
		soft_wire_run_slow(e, w, false);
		soft_keys_done(e);
		if (e->dev->link->end != NULL)
			e->dev->link->end(e);
		rte_pause();
	}
	soft_wire_count_later(e, w);
	soft_wire_schedule(e, w);
}

void
soft_wire_rx(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_pkt *pkt,
	     const struct bb_roce_net *net)
{
	soft_wire_turn(e);
	bb_roce_rx(&w->roce, pkt, net, soft_engine_ns(e));
	soft_keys_done(e);
	soft_wire_received(e, w, false);
}

void
soft_wire_received(struct soft_engine *e, struct soft_wire *w, bool last)
{
	if (w->epsn_out != NULL && *w->epsn_out != w->roce.resp.epsn)
		__atomic_store_n(w->epsn_out, w->roce.resp.epsn, __ATOMIC_RELAXED);
	e->work++;
	soft_wire_count_later(e, w);
	if (w->qp->queued == SOFT_Q_RUN)
		return;
	/* New requests are sent after all received packets have been processed. */
	if (w->sq_next != w->qp->sq_pi) {
		soft_qp_queue(e, w->qp);
		return;
	}
	if (w->roce.resp.ack_due) {
		if (soft_wire_delays_ack(e, w) && bb_roce_short_ack_due(&w->roce)) {
			if (w->qp->queued != SOFT_Q_LATE)
				soft_qp_later(e, w->qp);
			return;
		}
		/* After the last packet of a burst the ACK leaves now, else in the next turn. */
		if (last)
			e->dev->link->plain(e, w);
	}
	if (unlikely(bb_roce_busy(&w->roce)))
		soft_qp_queue(e, w->qp);
	else
		soft_wire_sleep(e, w);
}
