/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Private functions of lib/core.
 */
#ifndef BB_CORE_H
#define BB_CORE_H

#include "bb_mem_priv.h"
#include "bb_recover.h"

/*
 * Milliseconds that the library waits until a device has flushed a queue. After that the device
 * counts as stuck. A card is assumed to need less time ([A]: not tested on a card).
 */
#define BB_FLUSH_MS 1000u

/*
 * Translates a CQE of any format into a completion. Returns 1 if @wc was written, 0 if the CQE
 * completes no request that is reported.
 */
int bb_cq_translate(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc);

/*
 * Reserves @depth CQEs of a CQ for a queue; call with dev->lock held. A CQ accepts a queue only if
 * the CQ can hold a completion for every WQE of all its queues. This is necessary because after an
 * error each WQE produces a completion, signalled or not.
 */
int bb_cq_attach(struct bb_cq *cq, uint32_t depth, const char *queue);
void bb_cq_detach(struct bb_cq *cq, uint32_t depth);

/*
 * Reserves CQEs of a CQ for a QP's SRQ; call with dev->lock held. The SRQ's depth is reserved only
 * once per CQ, however many QPs use the SRQ. Returns 0, -ENOSPC or -ENOMEM.
 */
int bb_srq_attach(struct bb_srq *srq, struct bb_cq *cq);
void bb_srq_detach(struct bb_srq *srq, struct bb_cq *cq);

/*
 * Drops the unpolled CQEs of a QP. The device must have stopped writing CQEs for the QP. If the QP
 * has an SRQ, the receives of the dropped CQEs are returned to the SRQ.
 */
void bb_cq_purge(struct bb_cq *cq, const struct bb_qp *qp);

/* Frees the slots of CQEs that bb_cqring_purge() or bb_qp_recover() has marked. */
void bb_cq_compact(struct bb_cq *cq);

/* Returns the status for the error syndrome of a CQE. */
enum bb_wc_status bb_wc_status_of(uint8_t syndrome);

/*
 * Records that the device executes neither send number @seq nor any later send. Called only by the
 * QP's owner.
 */
void bb_qp_send_failed(struct bb_qp *qp, uint32_t seq);
/* Does what bb_qp_modify() does, for callers that hold dev->lock. */
int bb_qp_modify_locked(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);
/*
 * Makes a UD QP in RESET the QP1 of its port, which sends and receives management datagrams: it
 * receives the packets for QPN 1, and sends from QPN 1. Its Q_Key must be that of QP1, 0x80010000.
 * The QP stays QP1 until it is destroyed. Returns 0; -ENOTSUP if QP1 belongs to the kernel, as on
 * every card; -EBUSY (logged) if the port has a QP1; -EINVAL (logged) for another type or state.
 */
int bb_qp1_claim(struct bb_qp *qp);
/*
 * iWARP: moves a QP from INIT to RTS in the library only, after librdmacm has connected it. Returns
 * 0, or -EINVAL if the device is not an iWARP device or the QP is not in INIT.
 */
int bb_qp_adopt(struct bb_qp *qp);

/*
 * Returns 0, or -EBUSY (logged) if a connection owns the QP. @call is the function that was
 * rejected.
 */
int bb_qp_unowned(const struct bb_qp *qp, const char *call);
/*
 * Returns 0, or -EBUSY (logged) if the QP is attached to a multicast group. Call with dev->lock
 * held.
 */
int bb_qp_mcast_none(const struct bb_qp *qp);
/* Do what bb_qp_connect() and bb_qp_recover() do, for the connection that owns the QP. */
int bb_qp_connect_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr);
int bb_qp_recover_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
			struct bb_qp_recovery *recovery);

/*
 * Checks a transition and its attributes without executing it. Returns what bb_qp_modify() would
 * return, and logs the reason of an error.
 */
int bb_qp_modify_check(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		       enum bb_qp_state to);

/*
 * Checks the fields of a path against a port's limits, and that the GID exists. Returns 0, or
 * -EINVAL after a log line about @what ("QP 0x12").
 */
int bb_path_check(struct bb_dev *dev, const char *what, const struct bb_path *path,
		  const struct bb_port_attr *port);

/*
 * Returns the number of sends that have no completion, and writes the WQEBB index at which the
 * oldest of these sends starts to @counter.
 */
uint32_t bb_sq_pending(const struct bb_sq *sq, uint16_t *counter);
/*
 * Records and logs the WQE at @counter, for bb_qp_error_text(). Only the owner may call this
 * function, and only once between two resets.
 */
void bb_qp_error_record(struct bb_qp *qp, const struct bb_wc *wc, bool send, uint16_t counter);
/* Deletes the recorded error. Call with dev->lock held. */
void bb_qp_error_clear(struct bb_qp *qp);

/*
 * Adds the rings' statistics to ctrl->past. Call this function before a reset of the rings, which
 * clears their statistics.
 */
void bb_qp_stats_fold(struct bb_qp *qp);

#endif
