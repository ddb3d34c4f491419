/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QPs whose peers connect, disconnect or die. */
#include "soft_access.h"
#include "soft_resp.h"
#include "soft_shm.h"
#include "soft_wire.h"

/*
 * Restarts the counts of requests that are executed in the peer's memory at 0. Release: a peer that
 * reads the new value of "since" also reads the zeros.
 */
static void
restart_counts(struct soft_shm_count *n)
{
	__atomic_store_n(&n->writes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&n->reads, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&n->atomics, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&n->since, rte_rdtsc(), __ATOMIC_RELEASE);
}

void
soft_shm_connected(struct soft_wire *w)
{
	const struct soft_shm *shm = w->qp->dev->shm;
	const struct bb_roce_net *net = &w->path.net;
	struct soft_shm_wire *sw = soft_shm_wire(w);

	w->shm_tx = NULL;
	w->epsn_out = NULL;
	sw->plain = false;
	sw->head = (struct soft_ring_rec){
		.flow_label = net->flow_label,
		.sport = net->sport,
		.tclass = net->tclass,
		.hop_limit = net->hop_limit,
	};
	memset(&sw->direct, 0, sizeof(sw->direct));
	memset(&sw->served, 0, sizeof(sw->served));
	__atomic_store_n(&sw->established, false, __ATOMIC_RELAXED);
	if (w->qp->st == BB_PRM_QP_ST_UD)
		return;
	w->shm_tx = soft_shm_find(shm, net->dst, soft_shm_slot_of(w->qp->remote_qpn));
	if (w->shm_tx != NULL) {
		sw->deaths = __atomic_load_n(&w->shm_tx->deaths, __ATOMIC_RELAXED);
		/* All connections to an address have the same MAC. */
		sw->plain = soft_shm_direct_allowed(w->qp->dev) && w->qp->st == BB_PRM_QP_ST_RC &&
			    w->qp->engine->shm_epoch != NULL && net->hop_limit != 0 &&
			    memcmp(w->path.mac, w->shm_tx->mac, sizeof(w->path.mac)) == 0;
	}
	w->epsn_out = &shm->dir->epsn[w->qp->qpn];
	restart_counts(&shm->dir->count[w->qp->qpn]);
}

void
soft_shm_established(struct soft_wire *w)
{
	__atomic_store_n(&soft_shm_wire(w)->established, true, __ATOMIC_RELEASE);
	soft_shm_qp_update(w->qp);
}

/* Fails a QP whose peer has disconnected or died, with the error of exhausted retries. */
static void
fail_qp(struct soft_engine *e, struct soft_qp *qp)
{
	static const char why[] = "the process of the peer died or closed its device";
	uint16_t left = 0;

	if (qp->state != BB_PRM_QP_RTR && qp->state != BB_PRM_QP_RTS)
		return;
	/*
	 * The oldest posted WQE gets the error. All WQEs posted after it are flushed, even if the
	 * device has not read them yet.
	 */
	if (qp->has_sq)
		left = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[1])) - qp->sq_ci);
	if (left > 1u << qp->log_sq)
		left = 0;
	SOFT_LOG(NOTICE, "%s QP 0x%x goes to ERR: %s", e->dev->name, qp->qpn, why);
	e->decoded = NULL;
	if (qp->state == BB_PRM_QP_RTS && left != 0) {
		soft_req_decode(e, &e->req, qp, qp->sq_ci, left);
		soft_keys_done(e);
		soft_event_raise(qp->dev, qp->obj, BB_PRM_EVENT_WQ_CATAS_ERROR);
		soft_req_fail(e, qp, &e->req.d, BB_SYN_RETRY_EXC, why);
	} else {
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	}
}

/*
 * Looks up the connection of a QP again, if the peer's process had no connection when the QP
 * entered RTR. Such a QP uses an idle connection to another process that has the address.
 */
static void
find_again(struct soft_shm *shm, struct soft_wire *w)
{
	const uint32_t slot = soft_shm_slot_of(w->qp->remote_qpn);
	struct soft_shm_wire *sw = soft_shm_wire(w);
	struct soft_shm_tx *tx = w->shm_tx;

	if (tx->slot == slot || __atomic_load_n(&tx->state, __ATOMIC_RELAXED) != SOFT_SHM_IDLE)
		return;
	tx = soft_shm_find(shm, w->path.net.dst, slot);
	if (tx == w->shm_tx)
		return;
	w->shm_tx = tx;
	sw->deaths = __atomic_load_n(&tx->deaths, __ATOMIC_RELAXED);
	/* The peer's QP is looked up before its next use, because the revisions differ. */
	sw->direct.qp_seq = 0;
	sw->direct.rev = __atomic_load_n(&tx->rev, __ATOMIC_RELAXED) - 1;
}

void
soft_shm_check_qps(struct soft_engine *e, struct soft_shm *shm)
{
	struct soft_qp *qp;

	__atomic_store_n(&e->shm_changes, __atomic_load_n(&shm->changes, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELAXED);
	TAILQ_FOREACH(qp, &e->qps, all) {
		struct soft_wire *w = qp->wire;

		if (w == NULL || w->shm_tx == NULL)
			continue;
		/*
		 * With the option mmap a verbs program uses the device. The program must see what a
		 * card shows, so the QPs do not fail here: their requests exhaust their retries.
		 */
		if (soft_shm_wire(w)->deaths !=
		    __atomic_load_n(&w->shm_tx->deaths, __ATOMIC_RELAXED)) {
			if (!e->dev->opts.mmap)
				fail_qp(e, qp);
		} else {
			find_again(shm, w);
		}
	}
}
