/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the files of core share among themselves.
 */
#ifndef BB_CORE_H
#define BB_CORE_H

#include "bb_driver.h"

/* 0 when this process may open devices, else a negative errno (logged). */
int bb_process_check(void);

/* "1 QP", "2 QPs" */
#define BB_PLURAL(n) ((n) == 1 ? "" : "s")

/*
 * CQ credits, dev->lock held. A CQ takes a queue only if a completion for every WQE
 * of all its queues fits: on an error each of them yields one, unsignalled or not.
 */
int bb_cq_attach(struct bb_cq *cq, uint32_t depth, const char *queue);
void bb_cq_detach(struct bb_cq *cq, uint32_t depth);

/* Drop what the CQ holds of a QP whose device object writes no more. */
void bb_cq_purge(struct bb_cq *cq, const struct bb_qp *qp);

/* enum bb_wc_status of a CQE's error syndrome. */
enum bb_wc_status bb_wc_status_of(uint8_t syndrome);

/* bb_qp_modify() with dev->lock held. */
int bb_qp_modify_locked(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);

/* What bb_qp_modify() would say of a transition and its attributes; logs the reason. */
int bb_qp_modify_check(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		       enum bb_qp_state to);

/* Fold the rings' numbers into ctrl->past; the rings are about to be reset. */
void bb_qp_stats_fold(struct bb_qp *qp);

#endif
