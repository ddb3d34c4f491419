/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Remote memory access: fi_rma(3). */
#include "post.h"

static inline __attribute__((always_inline)) ssize_t
post_write(struct fid_ep *fid, const struct fab_req *r)
{
	const uint32_t imm = bb_be32((uint32_t)r->data), rkey = (uint32_t)r->key;
	struct fab_ep *ep = fab_ep_of(fid);
	struct fab_ready m;
	const ssize_t bad = fab_prepare(ep, r, &m);
	int ret;

	if (bad != 0)
		return bad;
	if (m.inlined)
		ret = r->imm ? bb_post_write_imm_inline(ep->qp, m.wr_id, m.data, m.len, r->addr,
							rkey, imm, m.flags)
			     : bb_post_write_inline(ep->qp, m.wr_id, m.data, m.len, r->addr, rkey,
						    m.flags);
	else
		ret = r->imm ? bb_post_write_imm(ep->qp, m.wr_id, m.sge, (uint32_t)r->n, r->addr,
						 rkey, imm, m.flags)
			     : bb_post_write(ep->qp, m.wr_id, m.sge, (uint32_t)r->n, r->addr, rkey,
					     m.flags);
	return fab_rung(ep, r, ret);
}

static inline __attribute__((always_inline)) ssize_t
post_read(struct fid_ep *fid, const struct fab_req *r)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge[FAB_IOV];
	const ssize_t len = fab_sges(r, false, sge);
	uint64_t wr_id;
	uint32_t flags;

	if (len < 0)
		return len;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	flags = fab_want(ep, r, &wr_id);
	return fab_rung(
		ep, r,
		bb_post_read(ep->qp, wr_id, sge, (uint32_t)r->n, r->addr, (uint32_t)r->key, flags));
}

static ssize_t FAB_HOT
rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t addr,
	 uint64_t key, void *context)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge;
	const int ret = fab_sge(buf, len, desc, false, &sge);

	(void)src;
	if (ret != 0)
		return ret;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	return fab_end(ep, bb_post_read(ep->qp, fab_id(&ep->tx, context), &sge, 1, addr,
					(uint32_t)key, ep->tx.flags));
}

static ssize_t
rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
	  uint64_t addr, uint64_t key, void *context)
{
	(void)src;
	return post_read(fid, &(struct fab_req){.iov = iov,
						.desc = desc,
						.n = count,
						.flags = fab_ep_of(fid)->tx_op_flags,
						.context = context,
						.addr = addr,
						.key = key});
}

/* Returns true if the remote side of a request is one range of the same length. */
static bool
one_range(const struct fi_msg_rma *msg)
{
	size_t i, len = 0;

	for (i = 0; i < msg->iov_count; i++)
		len += msg->msg_iov[i].iov_len;
	return msg->rma_iov_count == 1 && msg->rma_iov->len == len;
}

static ssize_t
rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (!one_range(msg))
		return -FI_EINVAL;
	return post_read(fid, &(struct fab_req){.iov = msg->msg_iov,
						.desc = msg->desc,
						.n = msg->iov_count,
						.flags = flags,
						.context = msg->context,
						.addr = msg->rma_iov->addr,
						.key = msg->rma_iov->key});
}

static ssize_t FAB_HOT
rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
	  uint64_t addr, uint64_t key, void *context)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge;
	int ret;

	(void)dest;
	if (len <= FAB_INJECT) {
		if (!fab_begin(ep))
			return -FI_EOPBADSTATE;
		return fab_end(ep, bb_post_write_inline(ep->qp, fab_id(&ep->tx, context), buf,
							(uint32_t)len, addr, (uint32_t)key,
							ep->tx.flags));
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
	return fab_end(ep, bb_post_write(ep->qp, fab_id(&ep->tx, context), &sge, 1, addr,
					 (uint32_t)key, ep->tx.flags));
}

static ssize_t
rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
	   uint64_t addr, uint64_t key, void *context)
{
	(void)dest;
	return post_write(fid, &(struct fab_req){.iov = iov,
						 .desc = desc,
						 .n = count,
						 .flags = fab_ep_of(fid)->tx_op_flags,
						 .context = context,
						 .addr = addr,
						 .key = key});
}

static ssize_t
rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (!one_range(msg))
		return -FI_EINVAL;
	return post_write(fid, &(struct fab_req){.iov = msg->msg_iov,
						 .desc = msg->desc,
						 .n = msg->iov_count,
						 .flags = flags,
						 .context = msg->context,
						 .imm = (flags & FI_REMOTE_CQ_DATA) != 0,
						 .data = msg->data,
						 .addr = msg->rma_iov->addr,
						 .key = msg->rma_iov->key});
}

static ssize_t FAB_HOT
rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest, uint64_t addr,
	   uint64_t key)
{
	struct fab_ep *ep = fab_ep_of(fid);

	(void)dest;
	if (len > FAB_INJECT)
		return -FI_EMSGSIZE;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	return fab_end(ep, bb_post_write_inline(ep->qp, FAB_INJECTED(ep), buf, (uint32_t)len, addr,
						(uint32_t)key, ep->quiet));
}

static ssize_t
rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
	      fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)dest;
	return post_write(fid, &(struct fab_req){.iov = &iov,
						 .desc = &desc,
						 .n = 1,
						 .flags = fab_ep_of(fid)->tx_op_flags,
						 .context = context,
						 .imm = true,
						 .data = data,
						 .addr = addr,
						 .key = key});
}

static ssize_t
rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
	       uint64_t addr, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)dest;
	return post_write(fid, &(struct fab_req){.iov = &iov,
						 .n = 1,
						 .silent = true,
						 .imm = true,
						 .data = data,
						 .addr = addr,
						 .key = key});
}

struct fi_ops_rma fab_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
