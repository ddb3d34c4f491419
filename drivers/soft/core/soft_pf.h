/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Page faults: a request finds that a page of a guest's key is missing. The guest's kernel gets an
 * event, makes the page present by a UMR, and answers with the command PAGE_FAULT_RESUME. Until
 * then the QP repeats the request.
 *
 * A QP has at most one page fault as a requester, for its own SGEs. It has at most one as a
 * responder, for the memory that its peer's request names, or for its receive.
 */
#ifndef SOFT_PF_H
#define SOFT_PF_H

#include <stdbool.h>
#include <stdint.h>

struct soft_cmd;
struct soft_dev;
struct soft_engine;
struct soft_page_fault;
struct soft_qp;

/* Time between two attempts of a request that waits for a page. */
#define SOFT_PF_NS 100000u

/* State of a page fault, in soft_qp.fault. */
enum soft_pf_state {
	SOFT_PF_NONE,
	SOFT_PF_PENDING, /* reported to the guest's kernel, which has not answered */
	SOFT_PF_FAILED,  /* the kernel could not make the page present */
};

/* Page fault of a QP as a requester or as a responder. The lock of the queue protects it. */
struct soft_pf {
	uint8_t state; /* enum soft_pf_state */
	uint8_t type;  /* bits SOFT_PF_*, which the answer repeats; valid if not SOFT_PF_NONE */
};

/* Page faults of a device that its guest's kernel has not fetched. */
struct soft_pf_queue;

/* ---- soft_pf.c */
struct soft_pf_queue *soft_pf_queue_make(void);
/*
 * Handles a missing page. Reports @fault, whose token then names @qp, unless the QP has already
 * reported one that is pending. Returns true if the request must wait: the caller repeats
 * it after SOFT_PF_NS. Returns false if the kernel has answered that the page cannot be made
 * present: the request then fails.
 */
bool soft_pf_wait(struct soft_qp *qp, struct soft_page_fault *fault);
/*
 * Forgets the page faults of a QP that loses its requests. Those that the kernel has not fetched
 * are not reported, and an answer to the others has no effect.
 */
void soft_pf_forget(struct soft_qp *qp);
/* Returns the number of the QP that a token names. */
uint32_t soft_pf_qpn(uint32_t token);
/*
 * Applies the kernel's answer to the page fault of @token and @type. Does nothing if the QP has
 * lost the request meanwhile. Returns false if the QP never had such a page fault.
 */
bool soft_pf_resume(struct soft_qp *qp, uint32_t token, uint8_t type, bool error);

/* ---- soft_cmd_odp.c */
int soft_cmd_page_fault_resume(struct soft_cmd *cmd);
int soft_cmd_query_mkey(struct soft_cmd *cmd);
int soft_cmd_query_special_contexts(struct soft_cmd *cmd);
void soft_cmd_odp_caps(const struct soft_cmd *cmd, void *caps);

#endif
