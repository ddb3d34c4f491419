/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the null provider. */
#ifndef VERBS_NULL_PRIV_H
#define VERBS_NULL_PRIV_H

#include <errno.h>
#include <stddef.h>

#include "verbs_null.h"

#define NULL_SGE  32
#define NULL_RING 4096u
#define NULL_DATA 1024u
#define NULL_DM   4096u
#define NULL_RXE  0xffffffu /* vendor_id */

#define outer_of(ptr_, type_, member_) ((type_ *)(void *)((char *)(ptr_)-offsetof(type_, member_)))

struct null_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct ibv_wc wc[NULL_RING];
	uint64_t time[NULL_RING];
	uint32_t head, tail; /* of wc, and the part visible to the application */
	uint32_t shown;
	uint32_t depth;
	bool armed;
	struct null_cq *next;
};

struct null_recv {
	uint64_t wr_id;
	struct ibv_sge sge[NULL_SGE];
	int n;
};

struct null_rq {
	struct null_recv wr[NULL_RING];
	uint32_t head, tail;
};

struct null_srq {
	struct ibv_srq srq;
	struct null_rq rq;
	uint32_t limit;
};

struct null_req {
	struct ibv_send_wr wr;
	struct ibv_sge sge[NULL_SGE];
	uint8_t data[NULL_DATA];
};

struct null_qp {
	struct ibv_qp qp;
	struct ibv_qp_ex ex;
	bool has_ex;
	bool open; /* between wr_start() and wr_complete() */
	struct null_rq rq;
	struct null_req batch[64]; /* between wr_start and wr_complete */
	uint32_t n;
	int err;
};

/* Returns the errno if this call must fail, else 0. */
int null_turn(const char *call);
void *null_object(size_t size);
void null_gone(void *p);
void *null_fail(int err);
int null_destroy(const char *call, void *p);
/* Returns the memory that a key and an address name. */
void *null_at(uint32_t key, uint64_t addr);

/* Makes an object of a type, or fails if this call must fail or memory is short. */
#define MAKE(type_, var_)                                                                          \
	type_ *var_;                                                                               \
	int err_ = null_turn(__func__);                                                            \
	if (err_ != 0)                                                                             \
		return null_fail(err_);                                                            \
	var_ = null_object(sizeof(*var_));                                                         \
	if (var_ == NULL)                                                                          \
	return NULL

/* Pipe of asynchronous events; the reader uses the first end. */
extern int null_async_pipe[2];

/* Set the calls that libibverbs makes through the context, and those of a QP. */
void null_post_ops(struct verbs_context *v);
void null_cq_ops(struct verbs_context *v);
void null_mem_ops(struct verbs_context *v);
/* Sets only the calls of the operations @ops (IBV_QP_EX_WITH_*), as a provider does. */
void null_qp_ops(struct null_qp *q, uint64_t ops);
/* Flushes the receives of a QP that goes to ERR. */
void null_flush(struct null_qp *q);
/* If null_dev.late is set, delivers an empty message to a QP that can receive. */
void null_late(struct null_qp *q);
/* Removes a QP's completions from a CQ. */
void null_clean(struct ibv_cq *cq, uint32_t qpn);
void null_notify(struct null_cq *c);

#endif
