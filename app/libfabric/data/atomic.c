/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Atomics: fi_atomic(3). A device has two atomics, FETCH_ADD and CMP_SWAP, on 8 bytes. The provider
 * executes FI_ATOMIC_WRITE and FI_ATOMIC_READ by an aligned WRITE and READ of 8 bytes. Other
 * operations return -FI_EOPNOTSUPP.
 */
#include "post.h"

static bool
is_64bit(enum fi_datatype type)
{
	return type == FI_INT64 || type == FI_UINT64;
}

/*
 * Returns -FI_EOPNOTSUPP unless @possible is true. Sets *@count to 1, because a request has one
 * operand.
 */
static int
valid(bool possible, size_t *count)
{
	if (!possible)
		return -FI_EOPNOTSUPP;
	*count = 1;
	return 0;
}

static int
writevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)fid;
	return valid(is_64bit(type) && op == FI_ATOMIC_WRITE, count);
}

static int
readwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)fid;
	return valid(is_64bit(type) && (op == FI_SUM || op == FI_ATOMIC_READ), count);
}

static int
compwritevalid(struct fid_ep *fid, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)fid;
	return valid(is_64bit(type) && op == FI_CSWAP, count);
}

/* Executes FI_ATOMIC_WRITE of 8 bytes. The caller sets the flags and the context of @r. */
static ssize_t
do_write(struct fid_ep *fid, const void *buf, size_t count, uint64_t addr, uint64_t key,
	 enum fi_datatype type, enum fi_op op, struct fab_req *r)
{
	struct fab_ep *ep = fab_ep_of(fid);
	size_t one;
	uint64_t wr_id;
	uint32_t flags;
	int ret = writevalid(fid, type, op, &one);

	if (ret != 0 || count != one || addr % sizeof(uint64_t) != 0)
		return ret != 0 ? ret : -FI_EINVAL;
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	flags = fab_want(ep, r, &wr_id);
	ret = bb_post_write_inline(ep->qp, wr_id, buf, sizeof(uint64_t), addr, (uint32_t)key,
				   flags);
	return fab_rung(ep, r, ret);
}

static ssize_t
do_fetch(struct fid_ep *fid, const void *buf, void *result, const void *desc, size_t count,
	 uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, struct fab_req *r)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge = {.addr = (uintptr_t)result, .len = sizeof(uint64_t)};
	uint64_t wr_id, add = 0;
	uint32_t flags;
	size_t one;
	int ret = readwritevalid(fid, type, op, &one);

	if (ret != 0 || count != one || addr % sizeof(uint64_t) != 0 || desc == NULL)
		return ret != 0 ? ret : -FI_EINVAL;
	sge.lkey = FAB_LKEY(desc);
	if (op == FI_SUM)
		memcpy(&add, buf, sizeof(add));
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	flags = fab_want(ep, r, &wr_id);
	ret = op == FI_SUM ? bb_post_fetch_add(ep->qp, wr_id, &sge, addr, (uint32_t)key, add, flags)
			   : bb_post_read(ep->qp, wr_id, &sge, 1, addr, (uint32_t)key, flags);
	return fab_rung(ep, r, ret);
}

static ssize_t
do_compare(struct fid_ep *fid, const void *buf, const void *compare, void *result, const void *desc,
	   size_t count, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
	   struct fab_req *r)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct bb_sge sge = {.addr = (uintptr_t)result, .len = sizeof(uint64_t)};
	uint64_t wr_id, swap, with;
	uint32_t flags;
	size_t one;
	int ret = compwritevalid(fid, type, op, &one);

	if (ret != 0 || count != one || addr % sizeof(uint64_t) != 0 || desc == NULL)
		return ret != 0 ? ret : -FI_EINVAL;
	sge.lkey = FAB_LKEY(desc);
	memcpy(&swap, buf, sizeof(swap));
	memcpy(&with, compare, sizeof(with));
	if (!fab_begin(ep))
		return -FI_EOPBADSTATE;
	flags = fab_want(ep, r, &wr_id);
	ret = bb_post_cmp_swap(ep->qp, wr_id, &sge, addr, (uint32_t)key, with, swap, flags);
	return fab_rung(ep, r, ret);
}

static struct fab_req
req(struct fid_ep *fid, void *context)
{
	return (struct fab_req){.flags = fab_ep_of(fid)->tx_op_flags, .context = context};
}

static ssize_t
atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t dest,
	     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct fab_req r = req(fid, context);

	(void)desc, (void)dest;
	return do_write(fid, buf, count, addr, key, type, op, &r);
}

static ssize_t
atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
	      fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
	      void *context)
{
	(void)desc;
	if (count != 1)
		return -FI_EINVAL;
	return atomic_write(fid, iov->addr, iov->count, NULL, dest, addr, key, type, op, context);
}

static ssize_t
atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct fab_req r = {.flags = flags, .context = msg->context};

	if (msg->iov_count != 1 || msg->rma_iov_count != 1)
		return -FI_EINVAL;
	return do_write(fid, msg->msg_iov->addr, msg->msg_iov->count, msg->rma_iov->addr,
			msg->rma_iov->key, msg->datatype, msg->op, &r);
}

static ssize_t
atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
	      uint64_t key, enum fi_datatype type, enum fi_op op)
{
	struct fab_req r = {.silent = true};

	(void)dest;
	return do_write(fid, buf, count, addr, key, type, op, &r);
}

static ssize_t
atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
		 void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fab_req r = req(fid, context);

	(void)desc, (void)dest;
	return do_fetch(fid, buf, result, result_desc, count, addr, key, type, op, &r);
}

static ssize_t
atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
		  uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct fab_req r = req(fid, context);

	(void)desc, (void)dest;
	if (result_count != 1 || (count != 1 && op != FI_ATOMIC_READ) || result_desc == NULL)
		return -FI_EINVAL;
	return do_fetch(fid, count == 1 ? iov->addr : NULL, resultv->addr, result_desc[0],
			resultv->count, addr, key, type, op, &r);
}

static ssize_t
atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
		    void **result_desc, size_t result_count, uint64_t flags)
{
	struct fab_req r = {.flags = flags, .context = msg->context};

	if (msg->rma_iov_count != 1 || result_count != 1 || result_desc == NULL ||
	    (msg->iov_count != 1 && msg->op != FI_ATOMIC_READ))
		return -FI_EINVAL;
	return do_fetch(fid, msg->iov_count == 1 ? msg->msg_iov->addr : NULL, resultv->addr,
			result_desc[0], resultv->count, msg->rma_iov->addr, msg->rma_iov->key,
			msg->datatype, msg->op, &r);
}

static ssize_t
atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare,
		 void *compare_desc, void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
		 uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct fab_req r = req(fid, context);

	(void)desc, (void)compare_desc, (void)dest;
	return do_compare(fid, buf, compare, result, result_desc, count, addr, key, type, op, &r);
}

static ssize_t
atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
		  const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
		  uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	(void)desc, (void)compare_desc;
	if (count != 1 || compare_count != 1 || result_count != 1 || result_desc == NULL)
		return -FI_EINVAL;
	return atomic_compwrite(fid, iov->addr, iov->count, NULL, comparev->addr, NULL,
				resultv->addr, result_desc[0], dest, addr, key, type, op, context);
}

static ssize_t
atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
		    const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
		    struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
{
	struct fab_req r = {.flags = flags, .context = msg->context};

	(void)compare_desc;
	if (msg->iov_count != 1 || msg->rma_iov_count != 1 || compare_count != 1 ||
	    result_count != 1 || result_desc == NULL)
		return -FI_EINVAL;
	return do_compare(fid, msg->msg_iov->addr, comparev->addr, resultv->addr, result_desc[0],
			  msg->msg_iov->count, msg->rma_iov->addr, msg->rma_iov->key, msg->datatype,
			  msg->op, &r);
}

struct fi_ops_atomic fab_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = writevalid,
	.readwritevalid = readwritevalid,
	.compwritevalid = compwritevalid,
};
