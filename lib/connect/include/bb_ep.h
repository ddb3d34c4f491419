/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Endpoints: one object with a connection, its queue pair, CQs and PD, and functions that wait. The
 * functions are modelled on librdmacm's rdma_verbs.h (man rdma_create_ep), so that programs written
 * for it port line by line. doc/guides/api/connect.rst has the table.
 *
 * Endpoints suit small programs, and the start of larger ones. Make all calls from one thread.
 * While a function waits, it polls and runs the device. An endpoint's fields can be passed to every
 * function of bb_post.h and bb_connect.h, except those that connect. The connection of an endpoint
 * does not recover: see bb_connect.h for connections that do.
 *
 * Functions return 0 or -errno. librdmacm returns -1 and sets errno, or returns a number of
 * completions. A connection that fails or is rejected is logged. Flags are the last argument, as in
 * bb_post.h, whereas rdma_post_read() and rdma_post_write() have the flags before the remote
 * address.
 */
#ifndef BB_EP_H
#define BB_EP_H

#include "bb_connect.h"
#include "bb_post.h"
#include "bb_wr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Private data of an endpoint; opaque to the application. */
struct bb_ep_ctrl;

/** An endpoint (man rdma_create_ep: struct rdma_cm_id). The application only reads its fields. */
struct bb_ep {
	struct bb_dev *dev;
	struct bb_cm *cm;
	struct bb_pd *pd;
	struct bb_qp *qp; /**< NULL for a listening endpoint */
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq;
	/** NULL until bb_ep_connect(), and always NULL for a listening endpoint */
	struct bb_conn *conn;
	struct bb_ep_ctrl *ctrl;
	void *context; /**< pointer for the application's use */
	/** last event; the private data in it is valid until the next call with this endpoint */
	struct bb_cm_event event;
};

/** Attributes of an endpoint for bb_ep_create(). */
struct bb_ep_attr {
	uint32_t size; /**< size of this struct in bytes; set by bb_ep_attr_init() */
	enum bb_cm_transport transport;
	struct bb_pd *pd; /**< NULL if the endpoint creates a PD */
	/** attributes of the QP; the endpoint creates each CQ that is NULL */
	struct bb_qp_init_attr qp;
	uint32_t timeout_ms; /**< time limit of every call that waits */
};

/**
 * Sets the defaults: transport TCP, a PD of the endpoint, QP attributes of bb_qp_init_attr_init(),
 * time limit 10 s.
 */
void bb_ep_attr_init(struct bb_ep_attr *attr);

/**
 * Creates an endpoint (man rdma_create_ep).
 * @param addr for example "192.0.2.1:18515": the address of the peer, or with @p passive the
 * address to listen on.
 * @param attr attributes of the endpoint; with @p passive those of the endpoints of incoming
 * connections.
 * @return 0; -EINVAL; errors of bb_cm_create(), bb_cq_create(), bb_qp_create(),
 * bb_listener_create().
 */
int bb_ep_create(struct bb_dev *dev, const char *addr, bool passive, const struct bb_ep_attr *attr,
		 struct bb_ep **ep);

/**
 * Destroys an endpoint (man rdma_destroy_ep) with its QP, and with the CQs and the PD that the
 * endpoint created. Destroy a listening endpoint after the endpoints that bb_ep_get_request()
 * returned for it.
 * @return 0; -EBUSY if other objects use its PD (see bb_pd_free()) or other QPs complete into its
 * CQs. If other QPs use the CQs, only the QP has been destroyed: destroy those QPs and call again.
 */
int bb_ep_destroy(struct bb_ep *ep);

/** Returns the TCP port on which a listening endpoint listens. */
uint16_t bb_ep_port(const struct bb_ep *ep);

/**
 * Waits for a connection request (man rdma_get_request). The new endpoint's event has the private
 * data of the request.
 * @return 0; -ETIMEDOUT; errors of bb_ep_create().
 */
int bb_ep_get_request(struct bb_ep *listener, struct bb_ep **ep);

/**
 * Accepts the connection request of @p ep and waits until the connection is established (man
 * rdma_accept).
 * @param param NULL for the defaults.
 * @return 0; -ENOTSUP if recover_ms is set; -ETIMEDOUT; errors of bb_conn_accept().
 */
int bb_ep_accept(struct bb_ep *ep, const struct bb_conn_param *param);

/** Rejects the connection request of @p ep (man rdma_reject). Then destroy the endpoint. */
int bb_ep_reject(struct bb_ep *ep, const void *private_data, uint32_t private_len);

/**
 * Connects and waits until the connection is established (man rdma_connect).
 * @param param NULL for the defaults.
 * @return 0; -ECONNREFUSED if the peer rejected: ep->event has the reason; -ENOTSUP if recover_ms
 * is set; -ETIMEDOUT; errors of bb_conn_connect().
 */
int bb_ep_connect(struct bb_ep *ep, const struct bb_conn_param *param);

/**
 * Disconnects (man rdma_disconnect): flushes all posted requests and waits until the connection is
 * closed.
 */
int bb_ep_disconnect(struct bb_ep *ep);

/** Polls for events of the connection. Returns true if the connection is established. */
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
 * Posts a receive of several SGEs and rings the doorbell (man rdma_post_recvv). Before the
 * connection is established, the endpoint stores the receive and posts it as soon as the QP accepts
 * receives.
 * @param context returned as wr_id.
 * @return 0; -EAGAIN if the queue is full; -EINVAL; -ENOMEM.
 */
int bb_ep_post_recvv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge);

/** Posts a receive of one SGE (man rdma_post_recv). @p mr must cover the SGE. */
static inline int
bb_ep_post_recv(struct bb_ep *ep, void *context, void *addr, uint32_t len, const struct bb_mr *mr)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr->lkey};

	return bb_ep_post_recvv(ep, context, &sge, 1);
}

/**
 * Rings the doorbell if @p posted, the result of a post function of bb_post.h, is 0. Returns @p
 * posted.
 */
static inline int
bb_ep_rung(struct bb_ep *ep, int posted)
{
	if (posted == 0)
		bb_qp_ring(ep->qp);
	return posted;
}

/**
 * Posts a request with inline data that is gathered from several SGEs, and rings the doorbell.
 * Implements the flag BB_SEND_INLINE of bb_ep_post_sendv() and bb_ep_post_writev().
 */
static inline int
bb_ep_post_inline(struct bb_ep *ep, enum bb_wr_opcode opcode, void *context,
		  const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
		  uint32_t flags)
{
	struct bb_send_wr wr;
	int err;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.opcode = opcode;
	wr.flags = flags;
	wr.sge = sge;
	wr.nsge = nsge;
	wr.rdma.raddr = raddr;
	wr.rdma.rkey = rkey;
	if (bb_qp_post_list(ep->qp, &wr, 1, &err) != 1)
		return err != 0 ? err : -EAGAIN;
	return bb_ep_rung(ep, 0);
}

/**
 * Posts a SEND of several SGEs (man rdma_post_sendv). @p flags: enum bb_send_flags. With
 * BB_SEND_INLINE the keys of the SGEs are ignored.
 */
static inline int
bb_ep_post_sendv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		 uint32_t flags)
{
	if ((flags & BB_SEND_INLINE) != 0)
		return bb_ep_post_inline(ep, BB_WR_SEND, context, sge, nsge, 0, 0, flags);
	return bb_ep_rung(ep, bb_post_send(ep->qp, (uintptr_t)context, sge, nsge, flags));
}

/** Posts a READ into several SGEs (man rdma_post_readv). */
static inline int
bb_ep_post_readv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		 uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	return bb_ep_rung(ep,
			  bb_post_read(ep->qp, (uintptr_t)context, sge, nsge, raddr, rkey, flags));
}

/** Posts a WRITE of several SGEs (man rdma_post_writev). BB_SEND_INLINE: see bb_ep_post_sendv(). */
static inline int
bb_ep_post_writev(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge,
		  uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	if ((flags & BB_SEND_INLINE) != 0)
		return bb_ep_post_inline(ep, BB_WR_RDMA_WRITE, context, sge, nsge, raddr, rkey,
					 flags);
	return bb_ep_rung(ep,
			  bb_post_write(ep->qp, (uintptr_t)context, sge, nsge, raddr, rkey, flags));
}

/**
 * Posts a SEND of one SGE (man rdma_post_send). @p mr must cover the data; may be NULL with
 * BB_SEND_INLINE.
 */
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

/** Posts a READ into one SGE (man rdma_post_read). @p mr must cover the SGE. */
static inline int
bb_ep_post_read(struct bb_ep *ep, void *context, void *addr, uint32_t len, const struct bb_mr *mr,
		uint64_t raddr, uint32_t rkey, uint32_t flags)
{
	struct bb_sge sge = {(uintptr_t)addr, len, mr->lkey};

	return bb_ep_post_readv(ep, context, &sge, 1, raddr, rkey, flags);
}

/**
 * Posts a WRITE of one SGE (man rdma_post_write). @p mr must cover the data; may be NULL with
 * BB_SEND_INLINE.
 */
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
 * @return 0; -ETIMEDOUT; -ENOTCONN if the connection is closed and all completions were returned.
 * For a device that flushes its queues late the call waits up to a second after the end of the
 * connection, but not for receives of an SRQ.
 */
int bb_ep_get_send_comp(struct bb_ep *ep, struct bb_wc *wc);

/**
 * Waits for a completion of the receive queue (man rdma_get_recv_comp). Returns as
 * bb_ep_get_send_comp().
 */
int bb_ep_get_recv_comp(struct bb_ep *ep, struct bb_wc *wc);

#ifdef __cplusplus
}
#endif

#endif
