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

/* @wc from a CQE of any kind. 1: it was written; 0: there is nothing to report. */
int bb_cq_translate(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc);

/*
 * CQ credits, dev->lock held. A CQ takes a queue only if a completion for every WQE
 * of all its queues fits: on an error each of them yields one, unsignalled or not.
 */
int bb_cq_attach(struct bb_cq *cq, uint32_t depth, const char *queue);
void bb_cq_detach(struct bb_cq *cq, uint32_t depth);

/*
 * The same for the SRQ of a QP, dev->lock held: a CQ promises its depth once. -ENOSPC,
 * -ENOMEM.
 */
int bb_srq_attach(struct bb_srq *srq, struct bb_cq *cq);
void bb_srq_detach(struct bb_srq *srq, struct bb_cq *cq);

/*
 * Drop what the CQ holds of a QP whose device object writes no more; receives of its SRQ
 * go back there.
 */
void bb_cq_purge(struct bb_cq *cq, const struct bb_qp *qp);

/* Give the slots of CQEs back that bb_cqring_purge() or its like has marked. */
void bb_cq_compact(struct bb_cq *cq);

/* enum bb_wc_status of a CQE's error syndrome. */
enum bb_wc_status bb_wc_status_of(uint8_t syndrome);

/* The send with number @seq, and all behind it, is not carried out; the owner. */
void bb_qp_send_failed(struct bb_qp *qp, uint32_t seq);
/* bb_qp_modify() with dev->lock held. */
int bb_qp_modify_locked(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);
/* iWARP: what is in INIT here is in RTS, as librdmacm has connected it. -EINVAL if it is not so. */
int bb_qp_adopt(struct bb_qp *qp);

/* Returns 0, or -EBUSY and logs it if a connection owns the QP. @call: the refused function. */
int bb_qp_unowned(const struct bb_qp *qp, const char *call);
/* bb_qp_connect() and bb_qp_recover(), called by the connection that owns the QP. */
int bb_qp_connect_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr);
int bb_qp_recover_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
			struct bb_qp_recovery *recovery);

/* What bb_qp_modify() would say of a transition and its attributes; logs the reason. */
int bb_qp_modify_check(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		       enum bb_qp_state to);

/*
 * Limits of a path through a port, the GID's existence among them. 0 or -EINVAL, logged as
 * of @what ("QP 0x12").
 */
int bb_path_check(struct bb_dev *dev, const char *what, const struct bb_path *path,
		  const struct bb_port_attr *port);

/* How many requests have no completion, and the first block of the oldest of them. */
uint32_t bb_sq_pending(const struct bb_sq *sq, uint16_t *counter);
/*
 * Keep and log the WQE at @counter, for bb_qp_error_text(): the owner, once from reset to
 * reset.
 */
void bb_qp_error_note(struct bb_qp *qp, const struct bb_wc *wc, bool send, uint16_t counter);
/* dev->lock held. */
void bb_qp_error_forget(struct bb_qp *qp);

/* Fold the rings' numbers into ctrl->past; the rings are about to be reset. */
void bb_qp_stats_fold(struct bb_qp *qp);

#endif
