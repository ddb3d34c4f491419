/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The null provider: device and objects. verbs_null_post.c has the queues. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "verbs_null_priv.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct null_dev null_dev;

/* Larger than what libmlx5 reads to see that the device is not its own. */
static union {
	struct ibv_device dev;
	uint8_t room[4096];
} device;

static struct verbs_context *vctx;
static uint32_t next_handle = 1;

void
null_reset(void)
{
	memset(&null_dev, 0, sizeof(null_dev));
	snprintf(device.dev.name, sizeof(device.dev.name), NULL_NAME);
}

int
null_turn(const char *call)
{
	if (null_dev.gone)
		return EIO;
	if (null_dev.fail_at == 0 || --null_dev.fail_at != 0)
		return 0;
	null_dev.failed = true;
	null_dev.failed_call = call;
	return null_dev.fail_errno;
}

void *
null_object(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		return null_fail(ENOMEM);
	null_dev.objects++;
	return p;
}

void
null_gone(void *p)
{
	null_dev.objects--;
	free(p);
}

void *
null_fail(int err)
{
	errno = err;
	return NULL;
}

int
null_destroy(const char *call, void *p)
{
	/*
	 * An object that could not be destroyed stays the provider's and is no leak of the
	 * driver.
	 */
	static void *kept[1024];
	static unsigned int n_kept;
	int err = null_turn(call);

	if (err == 0)
		null_gone(p);
	else
		kept[n_kept++ % (sizeof(kept) / sizeof(kept[0]))] = p;
	return err;
}

struct ibv_device **
ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	int err = null_turn(__func__);

	if (err != 0 || null_dev.no_devices)
		return null_fail(err != 0 ? err : ENOSYS);
	list = calloc(2, sizeof(*list));
	if (list == NULL)
		return null_fail(ENOMEM);
	list[0] = &device.dev;
	*num = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

static int
query_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	     struct ibv_device_attr_ex *a, size_t size)
{
	int err = null_turn(__func__);

	memset(a, 0, size);
	a->orig_attr.vendor_id = null_dev.rxe ? NULL_RXE : null_dev.vendor_id;
	a->orig_attr.phys_port_cnt = 1;
	a->orig_attr.max_qp = 1000;
	a->orig_attr.max_qp_wr = 1024;
	a->orig_attr.max_sge = NULL_SGE;
	a->orig_attr.max_cq = 1000;
	a->orig_attr.max_cqe = NULL_RING - 1;
	a->orig_attr.max_mr = 1000;
	a->orig_attr.max_mr_size = UINT64_MAX;
	a->orig_attr.max_mw = 100;
	a->orig_attr.max_srq = 10;
	a->orig_attr.max_srq_wr = 1024;
	a->orig_attr.max_srq_sge = NULL_SGE;
	a->orig_attr.max_qp_rd_atom = 16;
	a->orig_attr.max_qp_init_rd_atom = 16;
	a->orig_attr.max_sge_rd = null_dev.max_sge_rd;
	a->orig_attr.atomic_cap = null_dev.no_atomics ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	a->orig_attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	a->cq_mod_caps.max_cq_count = NULL_MODERATE;
	a->max_dm_size = NULL_DM;
	a->completion_timestamp_mask = null_dev.clock != 0 ? UINT64_MAX : 0;
	a->hca_core_clock = NULL_HZ / 1000;
	if (null_dev.attr != NULL)
		null_dev.attr(a, NULL);
	return err;
}

static int
query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *v)
{
	int err = null_turn(__func__);

	if (v->comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	v->raw_clock.tv_sec = (long)(null_dev.clock / 1000000000);
	v->raw_clock.tv_nsec = (long)(null_dev.clock % 1000000000);
	return err;
}

static struct ibv_td *
alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;

	if (null_dev.no_td || null_turn(__func__) != 0)
		return null_fail(EOPNOTSUPP);
	td = null_object(sizeof(*td));
	if (td != NULL)
		td->context = ctx;
	return td;
}

static int
dealloc_td(struct ibv_td *td)
{
	null_gone(td);
	return 0;
}

static struct ibv_pd *
alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
	MAKE(struct ibv_pd, pd);
	null_dev.td = attr->td;
	pd->context = ctx;
	return pd;
}

static struct ibv_qp *
qp_make(struct ibv_context *ctx, const struct ibv_qp_init_attr *attr)
{
	MAKE(struct null_qp, q);
	q->qp.context = ctx;
	q->qp.qp_context = attr->qp_context;
	q->qp.send_cq = attr->send_cq;
	q->qp.recv_cq = attr->recv_cq;
	q->qp.srq = attr->srq;
	q->qp.qp_type = attr->qp_type;
	q->qp.qp_num = 0x1000 + next_handle++;
	return &q->qp;
}

static struct ibv_qp *
create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_init_attr plain = {.qp_context = attr->qp_context,
					       .send_cq = attr->send_cq,
					       .recv_cq = attr->recv_cq,
					       .srq = attr->srq,
					       .qp_type = attr->qp_type};
	struct ibv_qp *qp;

	null_dev.qp_init = *attr;
	null_dev.qp_dv_flags = 0;
	if (null_dev.no_qp_ex ||
	    (null_dev.no_keys && (attr->send_ops_flags & IBV_QP_EX_WITH_BIND_MW) != 0))
		return null_fail(EOPNOTSUPP);
	qp = qp_make(ctx, &plain);
	if (qp != NULL) {
		outer_of(qp, struct null_qp, qp)->has_ex = true;
		null_qp_ops(outer_of(qp, struct null_qp, qp), attr->send_ops_flags);
	}
	return qp;
}

struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	int err = null_turn(__func__);

	if (err != 0 || pipe(null_async_pipe) != 0)
		return null_fail(err);
	vctx = null_object(sizeof(*vctx));
	if (vctx == NULL) {
		close(null_async_pipe[0]);
		close(null_async_pipe[1]);
		return NULL;
	}
	vctx->sz = sizeof(*vctx);
	vctx->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	dev->transport_type = null_dev.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	dev->node_type = null_dev.iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	vctx->context.device = dev;
	vctx->context.async_fd = null_async_pipe[0];
	vctx->context.num_comp_vectors = NULL_VECTORS;
	vctx->query_device_ex = query_device;
	vctx->query_rt_values = query_rt_values;
	vctx->alloc_td = alloc_td;
	vctx->dealloc_td = dealloc_td;
	vctx->alloc_parent_domain = alloc_parent_domain;
	vctx->create_qp_ex = create_qp_ex;
	null_mem_ops(vctx);
	null_cq_ops(vctx);
	null_post_ops(vctx);
	return &vctx->context;
}

int
ibv_close_device(struct ibv_context *ctx)
{
	int err = null_dev.gone ? 0 : null_turn(__func__);

	if (err != 0) {
		errno = err;
		return -1;
	}
	close(null_async_pipe[0]);
	close(null_async_pipe[1]);
	null_gone(outer_of(ctx, struct verbs_context, context));
	return 0;
}

#undef ibv_query_port
int
ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)compat;
	int err = null_turn(__func__);

	if (err != 0 || port != 1)
		return err != 0 ? err : EINVAL;
	a->state = IBV_PORT_ACTIVE;
	a->max_mtu = IBV_MTU_4096;
	a->active_mtu = IBV_MTU_1024;
	a->gid_tbl_len = 2;
	a->pkey_tbl_len = NULL_PKEYS;
	a->max_msg_sz = 1u << 31;
	a->link_layer = null_dev.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	a->lid = null_dev.infiniband ? 7 : 0;
	if (null_dev.attr != NULL)
		null_dev.attr(NULL, a);
	return 0;
}

int
ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (null_turn(__func__) != 0 || port != 1)
		return -1;
	*pkey = htobe16((uint16_t)(0x8000 | index));
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *e,
		  uint32_t flags, size_t size)
{
	int err = null_turn(__func__);

	if (err != 0 || port != 1 || index > 2)
		return err != 0 ? err : EINVAL;
	if (index == 1)
		return ENODATA;
	memset(e, 0, size);
	e->gid.raw[15] = (uint8_t)(index + 1);
	e->gid_type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
	MAKE(struct ibv_pd, pd);
	pd->context = ctx;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return null_destroy(__func__, pd);
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const uint32_t max_inline = null_dev.max_inline != 0 ? null_dev.max_inline : 256;

	null_dev.qp_init = (struct ibv_qp_init_attr_ex){.qp_context = attr->qp_context,
							.send_cq = attr->send_cq,
							.recv_cq = attr->recv_cq,
							.srq = attr->srq,
							.cap = attr->cap,
							.qp_type = attr->qp_type};
	null_dev.qp_dv_flags = 0;
	return attr->cap.max_inline_data > max_inline ? null_fail(EINVAL)
						      : qp_make(pd->context, attr);
}

bool
mlx5dv_is_supported(struct ibv_device *dev)
{
	return null_dev.mlx5 && dev == &device.dev;
}

struct ibv_qp *
mlx5dv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		 struct mlx5dv_qp_init_attr *dv)
{
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, attr);

	null_dev.qp_dv_flags =
		dv->comp_mask == MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS ? dv->create_flags : 0;
	return qp;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct null_qp *q = outer_of(qp, struct null_qp, qp);

	return q->has_ex ? &q->ex : NULL;
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	struct null_qp *q = outer_of(qp, struct null_qp, qp);
	struct ibv_cq *send_cq = qp->send_cq, *recv_cq = qp->recv_cq;
	const uint32_t qpn = qp->qp_num;
	int err;

	null_late(q);
	err = null_destroy(__func__, q);
	if (err == 0 && null_dev.cleans) {
		null_clean(send_cq, qpn);
		null_clean(recv_cq, qpn);
	}
	return err;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct null_qp *q = outer_of(qp, struct null_qp, qp);
	int err = null_turn(__func__);

	if (err == 0 && attr->qp_state == IBV_QPS_INIT && qp->state == IBV_QPS_RESET &&
	    mask != (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		err = EINVAL;
	if (err == 0 && null_dev.no_reset_to_err && qp->state == IBV_QPS_RESET &&
	    attr->qp_state == IBV_QPS_ERR)
		err = EINVAL;
	if (err != 0 || (mask & IBV_QP_STATE) == 0)
		return err;
	null_dev.qp_attr = *attr;
	null_dev.qp_mask = mask;
	if (attr->qp_state == IBV_QPS_RESET)
		null_late(q);
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_ERR)
		null_flush(q);
	if (qp->state == IBV_QPS_RESET)
		q->rq.head = q->rq.tail = 0;
	if (qp->state == IBV_QPS_RESET && null_dev.cleans) {
		null_clean(qp->send_cq, qp->qp_num);
		null_clean(qp->recv_cq, qp->qp_num);
	}
	return 0;
}

int
ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	attr->qp_state = null_dev.no_state ? null_dev.said_state : qp->state;
	return null_turn(__func__);
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	MAKE(struct null_srq, s);
	null_dev.srq_init = *attr;
	s->srq.context = pd->context;
	s->srq.srq_context = attr->srq_context;
	s->srq.handle = next_handle++;
	return &s->srq;
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	int err = null_turn(__func__);

	if (err == 0 && (mask & IBV_SRQ_LIMIT) != 0)
		outer_of(srq, struct null_srq, srq)->limit = attr->srq_limit;
	return err;
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	attr->srq_limit = outer_of(srq, struct null_srq, srq)->limit;
	return null_turn(__func__);
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	return null_destroy(__func__, outer_of(srq, struct null_srq, srq));
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	MAKE(struct ibv_ah, ah);
	if (null_dev.on_ah != NULL)
		null_dev.on_ah();
	null_dev.ah = *attr;
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	null_dev.ah_destroyed++;
	return null_destroy(__func__, ah);
}

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = null_turn(__func__);

	if (err != 0)
		return err;
	memcpy(null_dev.mcast_gid, gid->raw, sizeof(null_dev.mcast_gid));
	null_dev.mcast_lid = lid;
	null_dev.mcasts++;
	return 0;
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int err = null_turn(__func__);

	if (err != 0)
		return err;
	if (null_dev.mcasts == 0 || null_dev.mcast_lid != lid ||
	    memcmp(null_dev.mcast_gid, gid->raw, sizeof(null_dev.mcast_gid)) != 0)
		return EINVAL;
	null_dev.mcasts--;
	return 0;
}
