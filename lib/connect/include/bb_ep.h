/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Endpoints: a connection with its queue pair, CQs and PD in one object, and calls that wait.
 * Modelled on librdmacm's rdma_verbs.h (man rdma_create_ep), so that programs written for it port
 * line by line: doc/guides/connect.rst has the table.
 *
 * For small programs and for the start of larger ones. Make all calls from one thread. Calls that
 * wait poll and run the device meanwhile. An endpoint's fields can be used with every call of
 * bb_post.h and bb_connect.h.
 *
 * Calls return 0 or -errno, where librdmacm returns -1 and sets errno, or a number of completions.
 * Flags are the last argument, as in bb_post.h; rdma_post_read() and rdma_post_write() have them
 * before the remote address.
 */
#ifndef BB_EP_H
#define BB_EP_H

#include "bb_connect.h"
#include "bb_post.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Internals of an endpoint, opaque. */
struct bb_ep_ctrl;

/** An endpoint (man rdma_create_ep: struct rdma_cm_id); read-only to the application. */
struct bb_ep {
	struct bb_dev *dev;
	struct bb_cm *cm;
	struct bb_pd *pd;
	struct bb_qp *qp; /**< NULL if it listens */
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq;
	struct bb_conn *conn; /**< NULL before bb_ep_connect() */
	struct bb_ep_ctrl *ctrl;
	void *context;            /**< application's pointer */
	struct bb_cm_event event; /**< last event; its private data is valid until the next call */
};

/** Attributes of an endpoint. */
struct bb_ep_attr {
	uint32_t size; /**< set by bb_ep_attr_init() */
	enum bb_cm_transport transport;
	struct bb_pd *pd;          /**< NULL: the endpoint creates one */
	struct bb_qp_init_attr qp; /**< where its CQs are NULL the endpoint creates them */
	uint32_t timeout_ms;       /**< time limit of every call that waits */
};

/** Sets the defaults: TCP, own PD, bb_qp_init_attr_init(), 10 s. */
void bb_ep_attr_init(struct bb_ep_attr *attr);

/**
 * Creates an endpoint (man rdma_create_ep).
 * @param addr the peer to connect to, or with @p passive the address to listen on:
 * "192.0.2.1:18515". Incoming connections get these attributes.
 * @return 0; -EINVAL; errors of bb_cm_create(), bb_cq_create(), bb_qp_create(),
 * bb_listener_create().
 */
int bb_ep_create(struct bb_dev *dev, const char *addr, bool passive, const struct bb_ep_attr *attr,
		 struct bb_ep **ep);

/**
 * Destroys an endpoint (man rdma_destroy_ep) with its QP and its own CQs and PD. Destroy a listener
 * after the endpoints that came from it.
 * @return 0; -EBUSY if other objects are on its PD (see bb_pd_free()) or other QPs complete into
 * its CQs. In the second case the QP is gone and the endpoint is not: call it again later.
 */
int bb_ep_destroy(struct bb_ep *ep);

/** Returns the port of a listening endpoint. */
uint16_t bb_ep_port(const struct bb_ep *ep);

/**
 * Waits for a connection request (man rdma_get_request); its private data is in event.
 * @return 0; -ETIMEDOUT; errors of bb_ep_create().
 */
int bb_ep_get_request(struct bb_ep *listener, struct bb_ep **ep);

/**
 * Accepts the request and waits until it is established (man rdma_accept). @p param may be NULL.
 */
int bb_ep_accept(struct bb_ep *ep, const struct bb_conn_param *param);

/** Rejects the request (man rdma_reject). Then destroy the endpoint. */
int bb_ep_reject(struct bb_ep *ep, const void *private_data, uint32_t private_len);

/**
 * Connects and waits until the connection is established (man rdma_connect). @p param may be NULL.
 * @return 0; -ECONNREFUSED if rejected: event has the reason; -ETIMEDOUT; errors of
 * bb_conn_connect().
 */
int bb_ep_connect(struct bb_ep *ep, const struct bb_conn_param *param);

/** Ends the connection and waits for the end (man rdma_disconnect); requests are flushed. */
int bb_ep_disconnect(struct bb_ep *ep);

/** Polls for events and returns true if the connection is established. */
bool bb_ep_connected(struct bb_ep *ep);

/** Registers memory for SENDs and receives (man rdma_reg_msgs). bb_mr_dereg() undoes it. */
static inline int
bb_ep_reg_msgs(struct bb_ep *ep, void *addr, size_t len, struct bb_mr **mr)
{
	return bb_mr_reg(ep->pd, addr, len, BB_ACCESS_LOCAL_WRITE, mr);
}

/** Registers memory that the peer may read (man rdma_reg_read). */
static inline int
bb_ep_reg_read(struct bb_ep *ep, void *addr, size_t len, struct bb_mr **mr)
{
	return bb_mr_reg(ep->pd, addr, len, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ, mr);
}

/** Registers memory that the peer may write (man rdma_reg_write). */
static inline int
bb_ep_reg_write(struct bb_ep *ep, void *addr, size_t len, struct bb_mr **mr)
{
	return bb_mr_reg(ep->pd, addr, len, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, mr);
}

/**
 * Posts a receive of several pieces and rings the doorbell (man rdma_post_recvv). Before the
 * connection is established the receive is stored and posted as soon as the QP can take it; while
 * the connection is LOST, once it is recovered.
 * @param context is returned as wr_id.
 * @return 0; -EAGAIN if the queue is full; -EINVAL; -ENOMEM.
 */
int bb_ep_post_recvv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge);

/** Posts a receive of one piece (man rdma_post_recv). @p mr must cover it. */
static inline int
bb_ep_post_recv(struct bb_ep *ep, void *context, void *addr, uint32_t len, const struct bb_mr *mr)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr->lkey};

	return bb_ep_post_recvv(ep, context, &sge, 1);
}

/** Rings the doorbell if a post of bb_post.h returned 0. Returns @p posted. */
static inline int
bb_ep_rung(struct bb_ep *ep, int posted)
{
	if (posted == 0)
		bb_qp_ring(ep->qp);
	return posted;
}

/** Posts a SEND of several pieces (man rdma_post_sendv). @p flags: enum bb_send_flags. */
static inline int
bb_ep_post_sendv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t flags)
{
	return bb_ep_rung(ep, bb_post_send(ep->qp, (uintptr_t)context, sge, nsge, flags));
}

/** Posts a READ into several pieces (man rdma_post_readv). */
static inline int
bb_ep_post_readv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		 uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_ep_rung(ep,
			  bb_post_read(ep->qp, (uintptr_t)context, sge, nsge, raddr, rkey, flags));
}

/** Posts a WRITE of several pieces (man rdma_post_writev). */
static inline int
bb_ep_post_writev(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		  uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_ep_rung(ep,
			  bb_post_write(ep->qp, (uintptr_t)context, sge, nsge, raddr, rkey, flags));
}

/** Posts a SEND (man rdma_post_send). @p mr covers the data; may be NULL with BB_SEND_INLINE. */
static inline int
bb_ep_post_send(struct bb_ep *ep, void *context, const void *addr, uint32_t len,
		const struct bb_mr *mr, uint32_t flags)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr != NULL ? mr->lkey : 0};

	if ((flags & BB_SEND_INLINE) != 0)
		return bb_ep_rung(
			ep, bb_post_send_inline(ep->qp, (uintptr_t)context, addr, len, flags));
	return bb_ep_post_sendv(ep, context, &sge, 1, flags);
}

/** Posts a READ (man rdma_post_read). */
static inline int
bb_ep_post_read(struct bb_ep *ep, void *context, void *addr, uint32_t len, const struct bb_mr *mr,
		uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr->lkey};

	return bb_ep_post_readv(ep, context, &sge, 1, raddr, rkey, flags);
}

/** Posts a WRITE (man rdma_post_write). @p mr covers the data; may be NULL with BB_SEND_INLINE. */
static inline int
bb_ep_post_write(struct bb_ep *ep, void *context, const void *addr, uint32_t len,
		 const struct bb_mr *mr, uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr != NULL ? mr->lkey : 0};

	if ((flags & BB_SEND_INLINE) != 0)
		return bb_ep_rung(ep, bb_post_write_inline(ep->qp, (uintptr_t)context, addr, len,
							   raddr, rkey, flags));
	return bb_ep_post_writev(ep, context, &sge, 1, raddr, rkey, flags);
}

/**
 * Waits for a completion of the send queue (man rdma_get_send_comp).
 * @return 0; -ETIMEDOUT; -ENOTCONN if the connection is over and no completion is left.
 */
int bb_ep_get_send_comp(struct bb_ep *ep, struct bb_wc *wc);

/** Waits for a completion of the receive queue (man rdma_get_recv_comp). */
int bb_ep_get_recv_comp(struct bb_ep *ep, struct bb_wc *wc);

#ifdef __cplusplus
}
#endif

#endif
