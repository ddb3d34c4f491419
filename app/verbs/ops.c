/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Makes the calls by which a program posts and polls run the device, too. libibverbs calls its
 * provider by pointers in the context, in a CQ and in a QP. This file replaces each pointer by a
 * function that calls the provider's function and runs the device. Each function of the provider
 * has a replacement of its own, so a replacement knows which function to call. For a program that
 * reads CQEs itself, only the device's thread runs the device.
 *
 * A call that posts does not run the device itself: the next poll does, before it looks for
 * completions. So requests that a program posts one by one run together, and a poll after a post
 * finds the completion at once. A program that posts and does not poll is served by the device's
 * thread; if that was late some times, posts run the device from then on (node_posted()).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "clock.h"
#include "libc.h"
#include "preload.h"

/*
 * Maximum number of functions of libmlx5 to which one pointer, such as that of ibv_post_send(), can
 * refer: libmlx5 has one for each combination of features.
 */
#define SLOTS 32
#define EACH8(x_, a_)                                                                              \
	x_(a_##0) x_(a_##1) x_(a_##2) x_(a_##3) x_(a_##4) x_(a_##5) x_(a_##6) x_(a_##7)
#define EACH(x_) EACH8(x_, 0) EACH8(x_, 1) EACH8(x_, 2) EACH8(x_, 3)
/* Converts the name of a slot, two octal digits, to the slot's number. */
#define NUMBER(i_) (0##i_)

typedef void (*any_fn)(void);

/*
 * Returns the replacement for the function @of. Returns @of if it is a replacement itself or no
 * slot is free. Takes no lock, because a child of fork() could not release the lock of a thread of
 * its parent.
 */
static any_fn
replacement(any_fn of, any_fn *real, const any_fn *mine)
{
	unsigned int i;
	any_fn old;

	for (i = 0; i < SLOTS && of != NULL && mine[i] != of; i++) {
		old = NULL;
		if (__atomic_compare_exchange_n(&real[i], &old, of, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    old == of)
			return mine[i];
	}
	return of;
}

#define REPLACE(pointer_, place_)                                                                  \
	do {                                                                                       \
		any_fn of_, to_;                                                                   \
                                                                                                   \
		of_ = (any_fn)(pointer_);                                                          \
		to_ = replacement(of_, place_##_real, place_##_mine);                              \
		(pointer_) = (__typeof__(pointer_))to_;                                            \
	} while (0)

static any_fn poll_cq_real[SLOTS], post_send_real[SLOTS], notify_real[SLOTS];
static any_fn start_poll_real[SLOTS], wr_complete_real[SLOTS];

#define POLL_CQ(i_)                                                                                \
	static int poll_cq_##i_(struct ibv_cq *cq, int n, struct ibv_wc *wc)                       \
	{                                                                                          \
		int (*real)(struct ibv_cq *, int, struct ibv_wc *) =                               \
			(__typeof__(real))poll_cq_real[NUMBER(i_)];                                \
		const bool ran = node_assist_posted();                                             \
		int got = real(cq, n, wc);                                                         \
                                                                                                   \
		if (got != 0 || ran || !node_assist())                                             \
			return got;                                                                \
		return real(cq, n, wc);                                                            \
	}
#define POST_SEND(i_)                                                                              \
	static int post_send_##i_(struct ibv_qp *qp, struct ibv_send_wr *wr,                       \
				  struct ibv_send_wr **bad)                                        \
	{                                                                                          \
		int (*real)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **) =        \
			(__typeof__(real))post_send_real[NUMBER(i_)];                              \
		int rc = real(qp, wr, bad);                                                        \
                                                                                                   \
		node_posted();                                                                     \
		return rc;                                                                         \
	}
#define NOTIFY(i_)                                                                                 \
	static int notify_##i_(struct ibv_cq *cq, int solicited)                                   \
	{                                                                                          \
		int (*real)(struct ibv_cq *, int) = (__typeof__(real))notify_real[NUMBER(i_)];     \
		int rc = real(cq, solicited);                                                      \
                                                                                                   \
		(void)node_assist();                                                               \
		return rc;                                                                         \
	}
#define START_POLL(i_)                                                                             \
	static int start_poll_##i_(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)            \
	{                                                                                          \
		int (*real)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *) =                       \
			(__typeof__(real))start_poll_real[NUMBER(i_)];                             \
		const bool ran = node_assist_posted();                                             \
		int rc = real(cq, attr);                                                           \
                                                                                                   \
		if (rc != ENOENT || ran || !node_assist())                                         \
			return rc;                                                                 \
		return real(cq, attr);                                                             \
	}
#define WR_COMPLETE(i_)                                                                            \
	static int wr_complete_##i_(struct ibv_qp_ex *qp)                                          \
	{                                                                                          \
		int (*real)(struct ibv_qp_ex *) = (__typeof__(real))wr_complete_real[NUMBER(i_)];  \
		int rc = real(qp);                                                                 \
                                                                                                   \
		node_posted();                                                                     \
		return rc;                                                                         \
	}
EACH(POLL_CQ)
EACH(POST_SEND)
EACH(NOTIFY)
EACH(START_POLL)
EACH(WR_COMPLETE)

#define MINE(place_)          static const any_fn place_##_mine[SLOTS]
#define POLL_CQ_ENTRY(i_)     (any_fn) poll_cq_##i_,
#define POST_SEND_ENTRY(i_)   (any_fn) post_send_##i_,
#define NOTIFY_ENTRY(i_)      (any_fn) notify_##i_,
#define START_POLL_ENTRY(i_)  (any_fn) start_poll_##i_,
#define WR_COMPLETE_ENTRY(i_) (any_fn) wr_complete_##i_,
MINE(poll_cq) = {EACH(POLL_CQ_ENTRY)};
MINE(post_send) = {EACH(POST_SEND_ENTRY)};
MINE(notify) = {EACH(NOTIFY_ENTRY)};
MINE(start_poll) = {EACH(START_POLL_ENTRY)};
MINE(wr_complete) = {EACH(WR_COMPLETE_ENTRY)};

/*
 * Returns function @name of library @lib. The program may have loaded the library with RTLD_LOCAL,
 * so that dlsym() does not find its functions.
 */
static void *
find(const char *lib, const char *name)
{
	void *at = dlsym(RTLD_NEXT, name);

	if (at != NULL)
		return at;
	at = dlopen(lib, RTLD_LAZY | RTLD_NOLOAD);
	return at != NULL ? dlsym(at, name) : NULL;
}

/* ---- Replaces the function pointers in a CQ and in a QP */

static struct ibv_cq_ex *(*real_create_cq)(struct ibv_context *, struct ibv_cq_init_attr_ex *);

/*
 * libmlx5 sets the pointers of a QP anew when the QP changes its state (mlx5_modify_qp() in
 * providers/mlx5/verbs.c of rdma-core).
 */
PUBLIC int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int);
	struct ibv_qp_ex *(*to_ex)(struct ibv_qp *);
	struct ibv_qp_ex *ex;
	int ret;

	*(void **)&real = find("libibverbs.so.1", "ibv_modify_qp");
	*(void **)&to_ex = find("libibverbs.so.1", "ibv_qp_to_qp_ex");
	if (real == NULL || to_ex == NULL)
		return ENOSYS;
	ret = real(qp, attr, mask);
	ex = fds_maybe(qp->context->cmd_fd) && getenv(VERBS_ENV_NO_POLL) == NULL ? to_ex(qp) : NULL;
	if (ex != NULL)
		REPLACE(ex->wr_complete, wr_complete);
	return ret;
}

static struct ibv_cq_ex *
create_cq(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = real_create_cq(ctx, attr);

	if (cq != NULL)
		REPLACE(cq->start_poll, start_poll);
	return cq;
}

/* ---- Contexts */

static void
take(struct ibv_context *ctx)
{
	struct verbs_context *v = verbs_get_ctx(ctx);

	if (v != NULL && v->query_rt_values != NULL)
		v->query_rt_values = clock_query_rt_values;
	if (getenv(VERBS_ENV_NO_POLL) != NULL)
		return;
	REPLACE(ctx->ops.poll_cq, poll_cq);
	REPLACE(ctx->ops.post_send, post_send);
	REPLACE(ctx->ops.req_notify_cq, notify);
	if (v != NULL && v->create_cq_ex != NULL && v->create_cq_ex != create_cq) {
		real_create_cq = v->create_cq_ex;
		v->create_cq_ex = create_cq;
	}
}

/* Replaces the function pointers of @ctx if it is a context of the software device. Returns @ctx.
 */
static struct ibv_context *
opened(struct ibv_context *ctx)
{
	/* Does not change a context of another provider, whose descriptor is not in the table. */
	if (ctx != NULL && fds_maybe(ctx->cmd_fd))
		take(ctx);
	return ctx;
}

PUBLIC struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *);

	*(void **)&real = find("libibverbs.so.1", "ibv_open_device");
	if (real == NULL) {
		errno = ENOSYS;
		return NULL;
	}
	return opened(real(device));
}

PUBLIC struct ibv_context *
mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	struct ibv_context *(*real)(struct ibv_device *, struct mlx5dv_context_attr *);

	*(void **)&real = find("libmlx5.so.1", "mlx5dv_open_device");
	if (real == NULL) {
		errno = ENOSYS;
		return NULL;
	}
	return opened(real(device, attr));
}

PUBLIC struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct ibv_context *(*real)(int);

	*(void **)&real = find("libibverbs.so.1", "ibv_import_device");
	if (real == NULL) {
		errno = ENOSYS;
		return NULL;
	}
	return opened(real(cmd_fd));
}

/* libmlx5 itself also calls this function, for CQs whose completions have times of day. */
PUBLIC int
mlx5dv_get_clock_info(struct ibv_context *ctx, struct mlx5dv_clock_info *info)
{
	int (*real)(struct ibv_context *, struct mlx5dv_clock_info *);

	if (fds_maybe(ctx->cmd_fd))
		return clock_info(info);
	*(void **)&real = find("libmlx5.so.1", "mlx5dv_get_clock_info");
	return real != NULL ? real(ctx, info) : ENOSYS;
}
