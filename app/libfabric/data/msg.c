/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Messages: fi_msg(3). */
#include "post.h"

static inline __attribute__((always_inline)) ssize_t
post_send(struct fid_ep *fid, const struct fab_req *r)
{
	const uint32_t imm = bb_be32((uint32_t)r->data);
	struct fab_ep *ep = fab_ep_of(fid);
	struct fab_ready m;
	const ssize_t bad = fab_prepare(ep, r, &m);
	int ret;

	if (bad != 0)
		return bad;
	if (m.inlined)
		ret = r->imm ? bb_post_send_imm_inline(ep->qp, m.wr_id, m.data, m.len, imm, m.flags)
			     : bb_post_send_inline(ep->qp, m.wr_id, m.data, m.len, m.flags);
	else
		ret = r->imm ? bb_post_send_imm(ep->qp, m.wr_id, m.sge, (uint32_t)r->n, imm,
						m.flags)
			     : bb_post_send(ep->qp, m.wr_id, m.sge, (uint32_t)r->n, m.flags);
	return fab_rung(ep, r, ret);
}

static ssize_t FAB_HOT
msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest, void *context)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge;
	int ret;

	(void)dest;
	if (len <= FAB_INJECT) {
		if (!fab_begin(ep))
			return -FI_EOPBADSTATE;
		return fab_end(ep, bb_post_send_inline(ep->qp, fab_id(&ep->tx, context), buf,
						       (uint32_t)len, ep->tx.flags));
	}
	ret = fab_sge(buf, len, desc, false, &sge);
	if (ret != 0)
		return ret;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	if (bb_unlikely(len > ep->tx.max)) {
		fab_unlock(ep->dev);
		return -FI_EMSGSIZE;
	}
	return fab_end(ep, bb_post_send(ep->qp, fab_id(&ep->tx, context), &sge, 1, ep->tx.flags));
}

static ssize_t
msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
	  void *context)
{
	(void)dest;
	return post_send(fid, &(struct fab_req){.iov = iov,
						.desc = desc,
						.n = count,
						.flags = fab_ep_of(fid)->tx_op_flags,
						.context = context});
}

static ssize_t
msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return post_send(fid, &(struct fab_req){.iov = msg->msg_iov,
						.desc = msg->desc,
						.n = msg->iov_count,
						.flags = flags,
						.context = msg->context,
						.imm = (flags & FI_REMOTE_CQ_DATA) != 0,
						.data = msg->data});
}

static ssize_t FAB_HOT
msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	struct fab_ep *ep = fab_ep_of(fid);

	(void)dest;
	if (len > FAB_INJECT)
		return -FI_EMSGSIZE;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	return fab_end(
		ep, bb_post_send_inline(ep->qp, FAB_INJECTED(ep), buf, (uint32_t)len, ep->quiet));
}

static ssize_t
msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t dest, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)dest;
	return post_send(fid, &(struct fab_req){.iov = &iov,
						.desc = &desc,
						.n = 1,
						.flags = fab_ep_of(fid)->tx_op_flags,
						.context = context,
						.imm = true,
						.data = data});
}

static ssize_t
msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t dest)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)dest;
	return post_send(
		fid,
		&(struct fab_req){.iov = &iov, .n = 1, .silent = true, .imm = true, .data = data});
}

static inline __attribute__((always_inline)) ssize_t
post_recv(struct fid_ep *fid, const struct fab_req *r)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge[FAB_IOV];
	const ssize_t len = fab_sges(r, true, sge);
	uint64_t wr_id = (uintptr_t)r->context;
	int ret;

	if (len < 0)
		return len;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	if (ep->rx_selective && (r->flags & FI_COMPLETION) == 0)
		wr_id = FAB_SILENT(ep);
	ret = bb_post_recv(ep->qp, wr_id, sge, (uint32_t)r->n);
	if ((r->flags & FI_MORE) == 0 || ret != 0)
		bb_qp_ring_recv(ep->qp);
	fab_unlock(ep->dev);
	return ret;
}

static ssize_t FAB_HOT
msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge;
	int ret = fab_sge(buf, len, desc, true, &sge);

	(void)src;
	if (ret != 0)
		return ret;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	ret = bb_post_recv(ep->qp, fab_id(&ep->rx, context), &sge, 1);
	bb_qp_ring_recv(ep->qp);
	fab_unlock(ep->dev);
	return ret;
}

static ssize_t
msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
	  void *context)
{
	(void)src;
	return post_recv(fid, &(struct fab_req){.iov = iov,
						.desc = desc,
						.n = count,
						.flags = fab_ep_of(fid)->rx_op_flags,
						.context = context});
}

static ssize_t
msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return post_recv(fid, &(struct fab_req){.iov = msg->msg_iov,
						.desc = msg->desc,
						.n = msg->iov_count,
						.flags = flags,
						.context = msg->context});
}

struct fi_ops_msg fab_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

static ssize_t
post_shared(struct fid_ep *fid, const struct fab_req *r)
{
	struct fab_srx *s = container_of(fid, struct fab_srx, fid);
	struct bb_sge sge[FAB_IOV];
	const ssize_t len = fab_sges(r, true, sge);
	int ret;

	if (len < 0)
		return len;
	if (bb_unlikely(s->domain->dev->child))
		return -FI_EOPBADSTATE;
	fab_lock(s->domain->dev);
	ret = bb_post_srq_recv(s->srq, (uintptr_t)r->context, sge, (uint32_t)r->n);
	if ((r->flags & FI_MORE) == 0 || ret != 0)
		bb_srq_ring(s->srq);
	fab_unlock(s->domain->dev);
	return ret;
}

static ssize_t
srx_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	const struct iovec iov = {buf, len};

	(void)src;
	return post_shared(
		fid, &(struct fab_req){.iov = &iov, .desc = &desc, .n = 1, .context = context});
}

static ssize_t
srx_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
	  void *context)
{
	(void)src;
	return post_shared(
		fid, &(struct fab_req){.iov = iov, .desc = desc, .n = count, .context = context});
}

static ssize_t
srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return post_shared(fid, &(struct fab_req){.iov = msg->msg_iov,
						  .desc = msg->desc,
						  .n = msg->iov_count,
						  .flags = flags,
						  .context = msg->context});
}

struct fi_ops_msg fab_srx_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = srx_recv,
	.recvv = srx_recvv,
	.recvmsg = srx_recvmsg,
};
