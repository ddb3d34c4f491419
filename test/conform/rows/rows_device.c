/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Devices and ports: their attributes, and rejected calls. */
#include "conform.h"

ROW(run_attr)
{
	const struct bb_dev_attr *a = &fx->a.attr;

	CHECK(fx, a->ports >= 1, "no port");
	CHECK(fx, a->max_qp >= 2 && a->max_cq >= 1, "max_qp %u, max_cq %u", a->max_qp, a->max_cq);
	CHECK(fx, a->max_sge >= 1 && a->max_recv_sge >= 1, "max_sge %u, max_recv_sge %u",
	      a->max_sge, a->max_recv_sge);
	CHECK(fx, a->max_msg_size >= 1u << 20, "max_msg_size %" PRIu64, a->max_msg_size);
	CHECK(fx, a->max_mr_size >= ARENA, "max_mr_size %" PRIu64, a->max_mr_size);
	CHECK(fx, a->max_qp_wr >= 32 && a->max_cqe >= CQ_SIZE, "max_qp_wr %u, max_cqe %u",
	      a->max_qp_wr, a->max_cqe);
}

ROW(run_port)
{
	const struct bb_port_attr *p = &fx->a.port;

	CHECK(fx, p->state == BB_PORT_ACTIVE, "port 1 is down");
	CHECK(fx, p->active_mtu >= 256 && p->active_mtu <= p->max_mtu && p->max_mtu <= 4096,
	      "active_mtu %u, max_mtu %u", p->active_mtu, p->max_mtu);
	CHECK(fx, p->link_layer == BB_LINK_ETHERNET || p->lid != 0,
	      "an InfiniBand port without LID");
}

ROW(run_no_port)
{
	struct bb_port_attr port;

	memset(&port, 0x7f, sizeof(port));
	REFUSED(fx, bb_port_query(fx->a.dev, row->n == 0 ? 0 : fx->a.attr.ports + 1, &port),
		-EINVAL, "port");
	CHECK(fx, port.lid == 0x7f7f, "a refused query wrote its answer");
}

ROW(run_gids)
{
	struct bb_gid gid;
	uint32_t i, found = 0;
	int ret;

	for (i = 0; i < fx->a.port.gids; i++) {
		ret = bb_gid_query(fx->a.dev, 1, i, &gid);
		CHECK(fx, ret == 0 || ret == -ENOENT, "bb_gid_query(%u) returned %d", i, ret);
		found += ret == 0;
	}
	CHECK(fx, found != 0 || fx->a.port.link_layer == BB_LINK_INFINIBAND, "RoCE without a GID");
	ret = bb_gid_query(fx->a.dev, 1, fx->a.port.gids, &gid);
	CHECK(fx, ret == -EINVAL, "a GID index past the table returned %d", ret);
}

/*
 * The default partition exists, but on iWARP, which has no partitions. A queue pair accepts only an
 * index in the table.
 */
ROW(run_pkeys)
{
	const uint32_t n = fx->a.port.pkeys;
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	uint16_t pkey = 0;
	struct bb_qp *qp;

	CHECK(fx, n >= 1 || fx->a.attr.iwarp, "an empty P_Key table");
	if (n != 0) {
		OK(fx, bb_pkey_query(fx->a.dev, 1, 0, &pkey));
		CHECK(fx, pkey != 0, "P_Key 0 at index 0");
	}
	REFUSED(fx, bb_pkey_query(fx->a.dev, 1, n, &pkey), -EINVAL, "P_Key");
	if (n == 0 || n > UINT16_MAX)
		return;
	init.send_cq = init.recv_cq = fx->a.cq;
	init.sq_depth = init.rq_depth = 4;
	qp = fx_qp(fx, fx->a.pd, &init);
	attr.state = BB_QP_INIT;
	attr.pkey_index = (uint16_t)n;
	REFUSED(fx,
		bb_qp_modify(qp, &attr, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS),
		-EINVAL, "pkey_index");
	check_state(fx, qp, BB_QP_RESET, "the refused");
}

/* A parent of a live object cannot be destroyed, and the error names the object. */
ROW(run_busy)
{
	struct pair p = fx_own_pair(fx);

	REFUSED(fx, bb_dev_close(fx->a.dev), -EBUSY, "live");
	REFUSED(fx, bb_pd_free(fx->a.pd), -EBUSY, "live");
	REFUSED(fx, bb_cq_destroy(fx->a.cq), -EBUSY, "queue");
	check_alive(fx, p);
}

/* One MR holds a PD, one PD holds a device. */
ROW(run_busy_one)
{
	struct bb_pd *pd = fx_pd(fx, &fx->b);

	fx_mr(fx, pd, fx->b.mem, 4096, 0);
	REFUSED(fx, bb_pd_free(pd), -EBUSY, "MR");
}

ROW(run_stats)
{
	struct bb_dev_stats before, after;
	struct pair p = fx_shared(fx);
	struct xfer x;

	OK(fx, bb_dev_stats(fx->b.dev, &before));
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].has_imm && fx->a.attr.iwarp)
			continue;
		xfer_init(&x, &ops[i], p);
		if ((ops[i].needs & NEED_ATOMICS) == 0 || fx->a.attr.atomics)
			xfer_run(fx, &x);
	}
	OK(fx, bb_dev_stats(fx->b.dev, &after));
	if (row->n == 0) {
		CHECK(fx, after.rx_write == 0 && after.rx_read == 0,
		      "a device without counters counts");
		return;
	}
	CHECK(fx, after.rx_write == before.rx_write + 2, "2 WRITEs, rx_write went up by %" PRIu64,
	      after.rx_write - before.rx_write);
	CHECK(fx, after.rx_read == before.rx_read + 1, "1 READ, rx_read went up by %" PRIu64,
	      after.rx_read - before.rx_read);
	if (fx->a.attr.atomics)
		CHECK(fx, after.rx_atomic == before.rx_atomic + 2,
		      "2 atomics, rx_atomic went up by %" PRIu64,
		      after.rx_atomic - before.rx_atomic);
}

void
rows_device(struct rows *rows)
{
	struct row *row;

	row_add(rows, "ibv_query_device(3)", run_attr, "device/query", "attributes");
	row_add(rows, "ibv_query_port(3)", run_port, "device/query", "port");
	row_add(rows, "ibv_query_gid(3)", run_gids, "device/query", "gids");
	row_add(rows, "ibv_query_pkey(3)", run_pkeys, "device/query", "pkeys");
	row_add(rows, "ibv_query_port(3)", run_no_port, "device/no-such-port", "0")->n = 0;
	row_add(rows, "ibv_query_port(3)", run_no_port, "device/no-such-port", "past-the-last")->n =
		1;
	row_add(rows, "ibv_dealloc_pd(3)", run_busy, "device/children-live", "qp");
	row_add(rows, "ibv_dealloc_pd(3)", run_busy_one, "device/children-live", "mr");
	row = row_add(rows, "rdma statistic(8)", run_stats, "device/counters", "counted");
	row->needs = NEED_COUNTERS;
	row->n = 1;
	row_add(rows, "rdma statistic(8)", run_stats, "device/no-counters", "zero")->needs =
		NEED_NO_COUNTERS;
}
