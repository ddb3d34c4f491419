/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A driver for tests of core, without a device. It counts live objects, fails on demand, and lets
 * a test write CQEs by hand.
 */
#ifndef CORE_FAKE_H
#define CORE_FAKE_H

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "bb_core.h"
#include "bb_mem_table.h"
#include "bb_post.h"
#include "bb_test.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FAKE_PORTS 2
#define FAKE_GIDS  4
#define FAKE_PKEYS 3
#define FAKE_DM    4096

/* Operations that a test can make fail. */
enum fake_op {
	FAKE_NONE,
	FAKE_OPEN,
	FAKE_CLOSE,
	FAKE_PD_ALLOC,
	FAKE_PD_FREE,
	FAKE_MR_REG,
	FAKE_MR_DEREG,
	FAKE_MR_REREG,
	FAKE_CQ_CREATE,
	FAKE_CQ_DESTROY,
	FAKE_QP_CREATE,
	FAKE_QP_MODIFY,
	FAKE_QP_QUERY,
	FAKE_QP_DESTROY,
	FAKE_PORT_QUERY,
	FAKE_DM_ALLOC,
	FAKE_DM_FREE,
	FAKE_DM_COPY,
	FAKE_UMEM_REG,
	FAKE_UMEM_DEREG,
};

struct fake_mr {
	struct bb_drv_mr pub;
	uint64_t start, end, iova;
	uint32_t access;
	struct bb_drv_mr_attr attr;
	struct fake_mr *next;
};

/* Device half of a CQ. */
struct fake_cq {
	uint32_t pi;
};

static struct {
	int devs, pds, mrs, cqs, qps; /* live objects */
	int dms, umems;               /* live objects */
	int regs, deregs, modifies;   /* successful calls */
	enum fake_op fail;
	int fail_err;
	int fail_after; /* calls of the failing operation that still succeed */
	char args[128]; /* arguments of the last open */
	enum bb_link_layer link;
	bool grh_required;
	uint32_t gid_shift; /* GIDs move down by this number of indexes */
	uint32_t gid_v1;    /* bit i: GID i is of RoCE v1 */
	bool port_down;
	struct bb_dev_attr attr;
	struct bb_event event;
	bool has_event;
	enum bb_qp_state query_state;
	bool has_query_state;
	enum bb_qp_state last_to;
	uint32_t last_mask;
	struct bb_qp_attr last_attr;
	uint32_t next_key;
	bool rereg_new_key; /* re-registration returns another key */
	bool key_is_page;   /* an lkey is the number of the registration's first page */
	uint32_t next_qpn;
	struct fake_mr *mr_list;
	int progressed;
	uint8_t dm[FAKE_DM]; /* content of all device memory */
	int copies;
	struct bb_umem_attr umem; /* attributes of the last registered umem */
} fake;

/* Resets the fake to a fresh device's capabilities. */
static inline void
fake_reset(void)
{
	struct fake_mr *list = fake.mr_list;

	assert_null(list);
	memset(&fake, 0, sizeof(fake));
	snprintf(fake.attr.driver, sizeof(fake.attr.driver), "fake");
	fake.attr.ports = FAKE_PORTS;
	fake.attr.max_qp = 1000;
	fake.attr.max_cq = 1000;
	fake.attr.max_cqe = 65536;
	fake.attr.comp_vectors = 4;
	fake.attr.max_qp_wr = 8192;
	fake.attr.max_sge = 8;
	fake.attr.max_recv_sge = 4;
	fake.attr.max_inline = 256;
	fake.attr.max_mr_size = UINT64_MAX;
	fake.attr.max_msg_size = 1u << 30;
	fake.attr.max_rd_atomic = 16;
	fake.attr.max_dest_rd_atomic = 16;
	fake.attr.bf_size = 256;
	fake.attr.max_dm_size = FAKE_DM;
	fake.attr.max_dm_log_align = 12;
	fake.attr.max_umem = 1000;
	fake.attr.dmabuf = true;
	fake.attr.atomics = true;
	fake.attr.software = true;
	fake.link = BB_LINK_ETHERNET;
	fake.next_key = 0x100;
	fake.next_qpn = 0x40;
}

static inline int
fake_fails(enum fake_op op)
{
	if (fake.fail != op)
		return 0;
	if (fake.fail_after > 0) {
		fake.fail_after--;
		return 0;
	}
	return fake.fail_err;
}

static inline void
fake_fail(enum fake_op op, int err)
{
	fake.fail = op;
	fake.fail_err = err;
	fake.fail_after = 0;
}

static int
fake_list(struct bb_dev_info *info, unsigned int n)
{
	for (unsigned int i = 0; i < n && i < 2; i++) {
		snprintf(info[i].name, sizeof(info[i].name), "fake%u", i);
		snprintf(info[i].driver, sizeof(info[i].driver), "fake");
		snprintf(info[i].bus, sizeof(info[i].bus), "%s", i == 0 ? "0000:3b:00.0" : "");
	}
	return 2;
}

static int
fake_open(const char *name, const char *args, struct bb_dev *dev)
{
	if (strcmp(name, "fake0") != 0 && strcmp(name, "fake1") != 0 &&
	    strcmp(name, "0000:3b:00.0") != 0)
		return -ENODEV;
	if (fake_fails(FAKE_OPEN))
		return fake.fail_err;
	snprintf(fake.args, sizeof(fake.args), "%s", args);
	dev->attr = fake.attr;
	dev->priv = &fake;
	fake.devs++;
	return 0;
}

static int
fake_close(struct bb_dev *dev)
{
	if (fake_fails(FAKE_CLOSE))
		return fake.fail_err;
	fake.devs--;
	return 0;
}

static int
fake_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	if (fake_fails(FAKE_PORT_QUERY))
		return fake.fail_err;
	attr->state = fake.port_down ? BB_PORT_DOWN : BB_PORT_ACTIVE;
	attr->link_layer = fake.link;
	attr->max_mtu = 4096;
	attr->active_mtu = 2048;
	attr->lid = fake.link == BB_LINK_INFINIBAND ? 7 : 0;
	attr->gids = FAKE_GIDS;
	attr->pkeys = FAKE_PKEYS;
	attr->grh_required = fake.grh_required;
	return 0;
}

static int
fake_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey)
{
	*pkey = (uint16_t)(0x8000 | port << 8 | index);
	return 0;
}

/* Entry 2 of the table is empty. */
static int
fake_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	if (index >= FAKE_GIDS)
		return -EINVAL;
	if (index == 2)
		return -ENOENT;
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[14] = (uint8_t)port;
	gid->raw[15] = (uint8_t)(index + fake.gid_shift);
	gid->type = (fake.gid_v1 & 1u << index) != 0 ? BB_GID_ROCE_V1 : BB_GID_ROCE_V2;
	return 0;
}

static int
fake_event_get(struct bb_dev *dev, struct bb_event *event)
{
	if (!fake.has_event)
		return -EAGAIN;
	*event = fake.event;
	fake.has_event = false;
	return 0;
}

static int
fake_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	stats->flushed = 17;
	return 0;
}

static void
fake_progress(struct bb_dev *dev)
{
	fake.progressed++;
}

static int
fake_pd_alloc(struct bb_pd *pd)
{
	if (fake_fails(FAKE_PD_ALLOC))
		return fake.fail_err;
	fake.pds++;
	return 0;
}

static int
fake_pd_free(struct bb_pd *pd)
{
	if (fake_fails(FAKE_PD_FREE))
		return fake.fail_err;
	fake.pds--;
	return 0;
}

static int
fake_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **out)
{
	struct fake_mr *mr;

	if (fake_fails(FAKE_MR_REG))
		return fake.fail_err;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	mr->pub.lkey = fake.key_is_page ? (uint32_t)((uintptr_t)attr->addr >> 12) : fake.next_key;
	mr->pub.rkey = mr->pub.lkey + 0x80000000u;
	fake.next_key += 0x100;
	mr->start = (uintptr_t)attr->addr;
	mr->end = mr->start + attr->len;
	mr->iova = attr->iova;
	mr->access = attr->access;
	mr->attr = *attr;
	mr->next = fake.mr_list;
	fake.mr_list = mr;
	fake.mrs++;
	fake.regs++;
	*out = &mr->pub;
	return 0;
}

static int
fake_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *pub)
{
	struct fake_mr **p = &fake.mr_list;

	if (fake_fails(FAKE_MR_DEREG))
		return fake.fail_err;
	while (*p != NULL && &(*p)->pub != pub)
		p = &(*p)->next;
	assert_non_null(*p);
	*p = (*p)->next;
	free(pub);
	fake.mrs--;
	fake.deregs++;
	return 0;
}

static int
fake_dm_alloc(struct bb_dm_ctrl *dm)
{
	if (fake_fails(FAKE_DM_ALLOC))
		return fake.fail_err;
	dm->priv = &fake;
	fake.dms++;
	return 0;
}

static int
fake_dm_free(struct bb_dm_ctrl *dm)
{
	if (fake_fails(FAKE_DM_FREE))
		return fake.fail_err;
	fake.dms--;
	return 0;
}

static int
fake_dm_write(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len)
{
	if (fake_fails(FAKE_DM_COPY))
		return fake.fail_err;
	memcpy(fake.dm + off, src, len);
	fake.copies++;
	return 0;
}

static int
fake_dm_read(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len)
{
	if (fake_fails(FAKE_DM_COPY))
		return fake.fail_err;
	memcpy(dst, fake.dm + off, len);
	fake.copies++;
	return 0;
}

static int
fake_umem_reg(struct bb_umem_ctrl *umem, const struct bb_umem_attr *attr)
{
	if (fake_fails(FAKE_UMEM_REG))
		return fake.fail_err;
	umem->pub.id = 0x1234;
	fake.umem = *attr;
	fake.umems++;
	return 0;
}

static int
fake_umem_dereg(struct bb_umem_ctrl *umem)
{
	if (fake_fails(FAKE_UMEM_DEREG))
		return fake.fail_err;
	fake.umems--;
	return 0;
}

static int
fake_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *pub, uint32_t flags, struct bb_pd *new_pd,
	      void *addr, uint64_t len, uint32_t access)
{
	struct fake_mr *mr = (struct fake_mr *)pub;

	assert_int_equal(new_pd != NULL, (flags & BB_MR_REREG_PD) != 0);
	if (fake_fails(FAKE_MR_REREG))
		return fake.fail_err;
	if ((flags & BB_MR_REREG_TRANSLATION) != 0) {
		mr->start = (uintptr_t)addr;
		mr->end = mr->start + len;
		mr->iova = mr->start;
	} else {
		assert_true(addr == NULL && len == 0);
	}
	if ((flags & BB_MR_REREG_ACCESS) != 0)
		mr->access = access;
	else
		assert_int_equal(access, 0);
	if (fake.rereg_new_key) {
		pub->lkey = fake.next_key;
		pub->rkey = pub->lkey + 0x80000000u;
		fake.next_key += 0x100;
	}
	return 0;
}

/* Returns the registration of a key, NULL if the key is dead. */
static inline const struct fake_mr *
fake_mr_of(uint32_t lkey)
{
	const struct fake_mr *mr;

	for (mr = fake.mr_list; mr != NULL; mr = mr->next)
		if (mr->pub.lkey == lkey)
			return mr;
	return NULL;
}

static int
fake_cq_create(struct bb_cq *cq, const struct bb_cq_attr *attr)
{
	uint32_t log = 0;
	uint8_t *mem;

	if (fake_fails(FAKE_CQ_CREATE))
		return fake.fail_err;
	while (1u << log < attr->depth)
		log++;
	mem = aligned_alloc(64, ((size_t)64 << log) + 64);
	assert_non_null(mem);
	assert_int_equal(bb_cqring_init(&cq->ring, mem, log,
					(uint32_t *)(void *)(mem + ((size_t)64 << log))),
			 0);
	cq->ctrl->depth = 1u << log;
	cq->ctrl->priv = calloc(1, sizeof(struct fake_cq));
	assert_non_null(cq->ctrl->priv);
	fake.cqs++;
	return 0;
}

static int
fake_cq_destroy(struct bb_cq *cq)
{
	if (fake_fails(FAKE_CQ_DESTROY))
		return fake.fail_err;
	free(cq->ring.buf);
	free(cq->ctrl->priv);
	fake.cqs--;
	return 0;
}

/* One block of memory: SQ, RQ, shadow arrays, records, register. */
static int
fake_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr)
{
	uint32_t blocks = 1, wqes = 1;
	struct bb_sq_conf sq;
	struct bb_rq_conf rq;
	uint8_t *mem;
	size_t size;

	if (fake_fails(FAKE_QP_CREATE))
		return fake.fail_err;
	while (blocks < attr->sq_depth * 4)
		blocks *= 2;
	while (wqes < attr->rq_depth)
		wqes *= 2;
	size = (size_t)blocks * (64 + sizeof(struct bb_sq_wqe)) + (size_t)wqes * (64 + 8) + 128 +
	       1024;
	mem = aligned_alloc(64, RTE_ALIGN_CEIL(size, 64));
	assert_non_null(mem);
	memset(mem, 0, RTE_ALIGN_CEIL(size, 64));
	qp->ctrl->priv = mem;
	qp->qpn = fake.next_qpn++;
	memset(&sq, 0, sizeof(sq));
	memset(&rq, 0, sizeof(rq));
	sq.reg = mem;
	mem += 1024;
	sq.dbrec = (uint32_t *)(void *)(mem + 4);
	rq.dbrec = (uint32_t *)(void *)mem;
	mem += 64;
	sq.buf = mem;
	mem += (size_t)blocks * 64;
	rq.buf = mem;
	mem += (size_t)wqes * 64;
	sq.wqes = (struct bb_sq_wqe *)(void *)mem;
	mem += (size_t)blocks * sizeof(struct bb_sq_wqe);
	rq.wr_ids = (uint64_t *)(void *)mem;
	sq.blocks = blocks;
	sq.qpn = qp->qpn;
	sq.depth = attr->sq_depth;
	sq.type = attr->type;
	sq.signal_all = attr->signal_all;
	sq.max_sge = attr->max_sge;
	sq.max_inline = attr->max_inline;
	sq.sig_every = attr->signal_every;
	sq.bf_size = fake.attr.bf_size;
	sq.db_mode = attr->db_mode;
	sq.owner = attr->send_cq->owner;
	assert_int_equal(bb_sq_init(&qp->sq, &sq), 0);
	if (attr->rq_depth != 0) {
		rq.wqes = wqes;
		rq.depth = attr->rq_depth;
		rq.log_stride = 6;
		rq.max_sge = attr->max_recv_sge;
		rq.owner = attr->send_cq->owner;
		assert_int_equal(bb_rq_init(&qp->rq, &rq), 0);
	}
	fake.qps++;
	return 0;
}

static int
fake_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask, enum bb_qp_state to)
{
	if (fake_fails(FAKE_QP_MODIFY))
		return fake.fail_err;
	fake.modifies++;
	fake.last_to = to;
	fake.last_mask = mask;
	fake.last_attr = *attr;
	return 0;
}

static int
fake_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	if (fake_fails(FAKE_QP_QUERY))
		return fake.fail_err;
	if (fake.has_query_state)
		attr->state = fake.query_state;
	return 0;
}

static int
fake_qp_destroy(struct bb_qp *qp)
{
	if (fake_fails(FAKE_QP_DESTROY))
		return fake.fail_err;
	free(qp->ctrl->priv);
	fake.qps--;
	return 0;
}

#include "core_fake_srq.h"

static const struct bb_driver fake_driver = {
	.name = "fake",
	.list = fake_list,
	.open = fake_open,
	.close = fake_close,
	.port_query = fake_port_query,
	.gid_query = fake_gid_query,
	.pkey_query = fake_pkey_query,
	.event_get = fake_event_get,
	.stats = fake_stats,
	.progress = fake_progress,
	.pd_alloc = fake_pd_alloc,
	.pd_free = fake_pd_free,
	.mr_reg = fake_mr_reg,
	.mr_dereg = fake_mr_dereg,
	.mr_rereg = fake_mr_rereg,
	.dm_alloc = fake_dm_alloc,
	.dm_free = fake_dm_free,
	.dm_write = fake_dm_write,
	.dm_read = fake_dm_read,
	.umem_reg = fake_umem_reg,
	.umem_dereg = fake_umem_dereg,
	.cq_create = fake_cq_create,
	.cq_destroy = fake_cq_destroy,
	.qp_create = fake_qp_create,
	.qp_modify = fake_qp_modify,
	.qp_query = fake_qp_query,
	.qp_destroy = fake_qp_destroy,
	.srq_create = fake_srq_create,
	.srq_modify = fake_srq_modify,
	.srq_query = fake_srq_query,
	.srq_destroy = fake_srq_destroy,
};
BB_DRIVER_REGISTER(fake_driver)

#include "core_fake_cqe.h"

#endif
