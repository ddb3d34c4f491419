/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Capabilities of a device. They come from ibv_query_device_ex(), or from a probe if no call
 * reports them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include <rte_bitops.h>

#include "verbs_drv.h"

#define LOG_MAX_CQE 22u
/*
 * Limit of the alignment of device memory. No call reports the limit of the device, which itself
 * rejects larger alignments than it supports.
 */
#define LOG_MAX_DM_ALIGN 12u

/*
 * Vendor ID of the kernel's rxe (drivers/infiniband/sw/rxe/rxe_param.h). Its provider in rdma-core
 * 44 has two faults. They are fixed in later versions, but no call reports the version.
 *
 * - When ibv_next_poll() finds no further completion, it has advanced the consumer index, and
 *   ibv_end_poll() advances the index again. So one completion is skipped, and all later polls read
 *   empty entries. As a workaround, the driver creates no extended CQs and calls ibv_poll_cq().
 * - ibv_wr_set_sge_list() gives all SGEs the length of the first. As a workaround, requests of
 *   several SGEs are posted by ibv_post_send().
 */
#define RXE_VENDOR_ID 0xffffffu

/*
 * Vendor ID of siw. Its provider maps queues at offsets that the kernel assigns, and it takes one
 * of the valid offsets to mean that there is no queue (rdma/siw-abi.h: SIW_INVAL_UOBJ_KEY). So the
 * creation of a queue at that offset always fails; one process failed with its 25th CQ. The kernel
 * assigns the lowest free range. As a workaround, one large CQ is created before all others. It
 * covers the range from offset 0 to beyond that offset. It has SIW_LOW_CQES entries of at least 32
 * bytes, which is 1 MB of kernel memory.
 */
#define SIW_VENDOR_ID 0x626d74u
#define SIW_LOW_CQES  (1 << 15)

/*
 * Vendor ID of devices of libhns. Like libmlx5 (verbs_qp.c), libhns gets the data of short receives
 * from the CQE or the WQE and copies it to the address in the request (rdma-core
 * providers/hns/hns_roce_u_hw_v2.c, handle_recv_inl_data()). No call of libhns turns this off.
 */
#define HNS_VENDOR_ID 0x19e5u /* PCI vendor ID of Huawei; assumed to be that of libhns devices */

/*
 * PCI vendor ID of Broadcom. If the kernel refuses to resize a CQ, libbnxt_re of rdma-core 53 to 64
 * frees the memory that the CQ still uses (bnxt_re_resize_cq()). So CQs are not resized.
 */
#define BNXT_VENDOR_ID 0x14e4u
/*
 * PCI vendor ID of AMD Pensando. ibv_wr_start() of libionic holds a lock of the CQ until
 * ibv_wr_complete() (ionic_wr_start()), so a poll between them would wait for ever.
 */
#define IONIC_VENDOR_ID 0x1dd8u

static uint32_t
at_most(int value, uint32_t limit)
{
	return value <= 0 ? 0 : RTE_MIN((uint32_t)value, limit);
}

/*
 * Probes how many bytes of inline data QPs support, from large to small, because no call reports
 * the maximum. The probe does not rely on the provider rounding up. Also probes whether CQs can be
 * resized. Returns 0, or a negative errno if no QP can be created even without inline data.
 */
static int
probe_queues(struct verbs_dev *d, struct bb_dev_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = NULL;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint32_t len;
	int ret = -EIO;

	errno = 0;
	pd = ibv_alloc_pd(d->ctx);
	if (pd == NULL)
		return bb_ibv_errno();
	cq = ibv_create_cq(d->ctx, 2, NULL, NULL, 0);
	if (cq == NULL) {
		ret = bb_ibv_errno();
		goto free_pd;
	}
	attr->cq_resize =
		d->attr.orig_attr.vendor_id != BNXT_VENDOR_ID && ibv_resize_cq(cq, 4) == 0;
	init.send_cq = cq;
	init.recv_cq = cq;
	for (len = VERBS_MAX_INLINE; qp == NULL; len = len > 16 ? len / 2 : 0) {
		struct ibv_qp_init_attr a = init;

		a.cap.max_inline_data = len;
		errno = 0;
		qp = ibv_create_qp(pd, &a);
		if (qp != NULL) {
			attr->max_inline = RTE_MIN(len, a.cap.max_inline_data);
			break;
		}
		ret = bb_ibv_errno();
		if (len == 0)
			break;
	}
	if (qp != NULL)
		ret = -ibv_destroy_qp(qp);
	(void)ibv_destroy_cq(cq);
free_pd:
	(void)ibv_dealloc_pd(pd);
	return ret;
}

/*
 * Returns true if the kernel's driver supports dma-bufs. In that case the error for an invalid
 * dma-buf differs from the error for an unsupported call.
 */
static bool
probe_dmabuf(struct ibv_pd *pd)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
	if (mr != NULL)
		(void)ibv_dereg_mr(mr);
	return mr == NULL && errno == EBADF;
}

static bool
probe_rereg(struct ibv_pd *pd)
{
	uint64_t word = 0;
	struct ibv_mr *mr = ibv_reg_mr(pd, &word, sizeof(word), IBV_ACCESS_LOCAL_WRITE);
	bool known;

	if (mr == NULL)
		return false;
	/*
	 * Probe by removing access rights, because memory that was pinned for reading cannot be
	 * made writable in place.
	 */
	known = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0;
	(void)ibv_dereg_mr(mr);
	return known;
}

/* Returns true if a window can be allocated: bnxt_re reports windows, but libbnxt_re has none. */
static bool
probe_windows(struct ibv_pd *pd)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

	return mw != NULL && ibv_dealloc_mw(mw) == 0;
}

static void
probe_mrs(struct verbs_dev *d, struct bb_dev_attr *attr)
{
	struct ibv_pd *pd = ibv_alloc_pd(d->ctx);

	if (pd == NULL)
		return;
	attr->dmabuf = probe_dmabuf(pd);
	attr->mr_rereg = probe_rereg(pd);
	attr->memory_windows = attr->memory_windows && probe_windows(pd);
	attr->memory_window_atomics = attr->memory_windows && attr->atomics;
	(void)ibv_dealloc_pd(pd);
}

static void
odp(const struct ibv_odp_caps *caps, struct bb_dev_attr *a)
{
	uint32_t rc = caps->per_transport_caps.rc_odp_caps;

	if ((caps->general_caps & IBV_ODP_SUPPORT) == 0)
		return;
	a->odp_write = (rc & IBV_ODP_SUPPORT_WRITE) != 0;
	a->odp_read = (rc & IBV_ODP_SUPPORT_READ) != 0;
	a->odp_atomic = (rc & IBV_ODP_SUPPORT_ATOMIC) != 0;
	a->odp = a->odp_write || a->odp_read;
	a->odp_implicit = (caps->general_caps & IBV_ODP_SUPPORT_IMPLICIT) != 0;
}

static void
fill(const struct ibv_device_attr_ex *x, struct bb_dev_attr *a)
{
	const struct ibv_device_attr *o = &x->orig_attr;
	const unsigned int flags = o->device_cap_flags;

	snprintf(a->driver, sizeof(a->driver), "verbs");
	a->ports = o->phys_port_cnt;
	a->max_qp = at_most(o->max_qp, BB_MAX_USER_INDEX);
	a->max_cq = at_most(o->max_cq, INT32_MAX);
	/* CQ depths are powers of two, so round the limit down. */
	a->max_cqe = rte_align32prevpow2(at_most(o->max_cqe, 1u << LOG_MAX_CQE));
	a->max_qp_wr = at_most(o->max_qp_wr, VERBS_MAX_WR);
	a->max_sge = at_most(o->max_sge, VERBS_MAX_SGE);
	a->max_read_sge = RTE_MIN(at_most(o->max_sge_rd, VERBS_MAX_SGE), a->max_sge);
	/* A device that has no separate limit for READs reports 0. */
	if (a->max_read_sge == 0)
		a->max_read_sge = a->max_sge;
	a->max_recv_sge = a->max_sge;
	a->max_mr_size = o->max_mr_size;
	a->max_mr = at_most(o->max_mr, INT32_MAX);
	a->max_rd_atomic = at_most(o->max_qp_init_rd_atom, UINT8_MAX);
	a->max_dest_rd_atomic = at_most(o->max_qp_rd_atom, UINT8_MAX);
	a->max_dm_size = x->max_dm_size;
	a->max_dm_log_align = a->max_dm_size != 0 ? LOG_MAX_DM_ALIGN : 0;
	/* Subtract one, because one WQE of the ring cannot be posted: see bb_srqring.h. */
	a->max_srq = at_most(o->max_srq, INT32_MAX);
	a->max_srq_wr = at_most(o->max_srq_wr, VERBS_MAX_WR - 1);
	a->max_srq_sge = at_most(o->max_srq_sge, VERBS_MAX_SGE - 1);
	if (a->max_srq_wr == 0 || a->max_srq_sge == 0)
		a->max_srq = 0;
	a->max_mcast_qp = at_most(o->max_mcast_qp_attach, INT32_MAX);
	if (a->max_mcast_qp != 0)
		a->max_mcast_grp = at_most(o->max_mcast_grp, INT32_MAX);
	a->atomics = o->atomic_cap != IBV_ATOMIC_NONE;
	a->atomics_global = o->atomic_cap == IBV_ATOMIC_GLOB;
	a->memory_windows =
		o->max_mw != 0 && (flags & IBV_DEVICE_MEM_WINDOW) != 0 &&
		(flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
	a->cq_moderation = x->cq_mod_caps.max_cq_count != 0;
	a->clock_hz = x->completion_timestamp_mask != 0 ? x->hca_core_clock * UINT64_C(1000) : 0;
	odp(&x->odp_caps, a);
}

int
verbs_caps(struct verbs_dev *d, struct bb_dev_attr *attr)
{
	struct ibv_port_attr port;
	int err, ret;

	err = ibv_query_device_ex(d->ctx, NULL, &d->attr);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot query the device: %s", d->ibname, strerror(err));
		return -err;
	}
	d->rxe = d->attr.orig_attr.vendor_id == RXE_VENDOR_ID;
	d->siw = d->attr.orig_attr.vendor_id == SIW_VENDOR_ID;
	d->mlx5 = mlx5dv_is_supported(d->ctx->device);
	d->hns = d->attr.orig_attr.vendor_id == HNS_VENDOR_ID;
	if (d->siw)
		d->siw_low = ibv_create_cq(d->ctx, SIW_LOW_CQES, NULL, NULL, 0);
	err = ibv_query_port(d->ctx, 1, &port);
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot query port 1: %s", d->ibname, strerror(err));
		return -err;
	}
	fill(&d->attr, attr);
	attr->comp_vectors = bb_ibv_comp_vectors(d->ctx);
	attr->max_msg_size = port.max_msg_sz;
	attr->iwarp = d->ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	d->dev->iwarp = attr->iwarp;
	/*
	 * Use ibv_post_send() with iWARP, because only that path checks for the operations that
	 * iWARP lacks.
	 */
	d->no_qp_ex = attr->iwarp || d->attr.orig_attr.vendor_id == IONIC_VENDOR_ID;
	d->no_cq_ex = d->rxe;
	d->dev->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	ret = probe_queues(d, attr);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot create a QP of type RC to measure the device's limits: %s%s",
		       d->ibname, strerror(-ret),
		       ret == -ENOMEM       ? ": raise the locked memory limit (ulimit -l)"
		       : ret == -EOPNOTSUPP ? ": Bluebell needs a device with reliable connections"
					    : "");
		return ret;
	}
	probe_mrs(d, attr);
	/*
	 * rxe and siw ignore the flag for relaxed ordering. For other devices no call reports
	 * whether they support it; a device without support may ignore the flag.
	 */
	attr->relaxed_ordering = !d->rxe && !d->siw;
	/*
	 * rxe raises no event when it refuses a request of a peer. For other devices no call
	 * reports whether they raise such events, so assume that they do.
	 */
	attr->refusal_events = !d->rxe;
	if (attr->ports == 0 || attr->max_cqe == 0 || attr->max_qp_wr == 0 || attr->max_sge == 0) {
		BB_LOG(ERR,
		       "%s: the device reports a limit of 0 (ports %u, max_cqe %u, max_qp_wr %u, "
		       "max_sge %u): update its driver or firmware",
		       d->ibname, attr->ports, attr->max_cqe, attr->max_qp_wr, attr->max_sge);
		return -EIO;
	}
	return 0;
}
