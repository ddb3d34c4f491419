/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: limits that it derives from libibverbs's device and port
 * attributes, and what it requests when it creates queues.
 */
#include <infiniband/mlx5dv.h>

#include "../../fakes/log_catch.h"
#include "verbs_fixture.h"

/* ---- Limits of a device */

/* A number of libibverbs and the limit derived from it. Numbers are in native byte order. */
struct limit {
	size_t theirs, their_size;
	uint64_t told;
	size_t ours, our_size;
	uint64_t want;
};
#define THEIRS(m_)                                                                                 \
	offsetof(struct ibv_device_attr_ex, m_), sizeof(((struct ibv_device_attr_ex *)0)->m_)
#define OURS(m_) offsetof(struct bb_dev_attr, m_), sizeof(((struct bb_dev_attr *)0)->m_)
#define LESS     (uint64_t)(int64_t) - 1 /* a negative 32-bit number */

static const struct limit limits[] = {
	{THEIRS(orig_attr.phys_port_cnt), 3, OURS(ports), 3},
	{THEIRS(orig_attr.max_qp), 77, OURS(max_qp), 77},
	{THEIRS(orig_attr.max_qp), 1 << 20, OURS(max_qp), 0xffff},
	{THEIRS(orig_attr.max_cq), 78, OURS(max_cq), 78},
	/* The depth of a CQ is a power of two. */
	{THEIRS(orig_attr.max_cqe), 1024, OURS(max_cqe), 1024},
	{THEIRS(orig_attr.max_cqe), 1023, OURS(max_cqe), 512},
	{THEIRS(orig_attr.max_cqe), INT32_MAX, OURS(max_cqe), 1 << 22},
	{THEIRS(orig_attr.max_qp_wr), 333, OURS(max_qp_wr), 333},
	{THEIRS(orig_attr.max_qp_wr), 32769, OURS(max_qp_wr), 32768},
	{THEIRS(orig_attr.max_sge), 5, OURS(max_sge), 5},
	{THEIRS(orig_attr.max_sge), 5, OURS(max_recv_sge), 5},
	{THEIRS(orig_attr.max_sge), 5, OURS(max_read_sge), 5},
	{THEIRS(orig_attr.max_sge), 33, OURS(max_sge), 32},
	{THEIRS(orig_attr.max_sge_rd), 7, OURS(max_read_sge), 7},
	{THEIRS(orig_attr.max_mr_size), UINT64_C(1) << 40, OURS(max_mr_size), UINT64_C(1) << 40},
	{THEIRS(orig_attr.max_mr), 79, OURS(max_mr), 79},
	{THEIRS(orig_attr.max_qp_init_rd_atom), 9, OURS(max_rd_atomic), 9},
	{THEIRS(orig_attr.max_qp_init_rd_atom), 256, OURS(max_rd_atomic), 255},
	{THEIRS(orig_attr.max_qp_rd_atom), 11, OURS(max_dest_rd_atomic), 11},
	{THEIRS(orig_attr.max_qp_rd_atom), 256, OURS(max_dest_rd_atomic), 255},
	{THEIRS(max_dm_size), 8192, OURS(max_dm_size), 8192},
	{THEIRS(max_dm_size), 0, OURS(max_dm_log_align), 0},
	{THEIRS(orig_attr.max_srq), 6, OURS(max_srq), 6},
	{THEIRS(orig_attr.max_srq), LESS, OURS(max_srq), 0},
	/* One WQE of an SRQ's ring stays free. */
	{THEIRS(orig_attr.max_srq_wr), 99, OURS(max_srq_wr), 99},
	{THEIRS(orig_attr.max_srq_wr), 1 << 20, OURS(max_srq_wr), 32767},
	{THEIRS(orig_attr.max_srq_wr), 0, OURS(max_srq), 0},
	{THEIRS(orig_attr.max_srq_sge), 3, OURS(max_srq_sge), 3},
	{THEIRS(orig_attr.max_srq_sge), 32, OURS(max_srq_sge), 31},
	{THEIRS(orig_attr.max_srq_sge), 0, OURS(max_srq), 0},
	/* Groups count only if a QP can be attached; the null provider reports neither number. */
	{THEIRS(orig_attr.max_mcast_grp), 8192, OURS(max_mcast_grp), 0},
	{THEIRS(orig_attr.max_mcast_qp_attach), 56, OURS(max_mcast_qp), 56},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_NONE, OURS(atomics), 0},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_HCA, OURS(atomics), 1},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_GLOB, OURS(atomics), 1},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_NONE, OURS(atomics_global), 0},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_HCA, OURS(atomics_global), 0},
	{THEIRS(orig_attr.atomic_cap), IBV_ATOMIC_GLOB, OURS(atomics_global), 1},
	/* Windows of both types, or none. */
	{THEIRS(orig_attr.max_mw), 1, OURS(memory_windows), 1},
	{THEIRS(orig_attr.max_mw), 0, OURS(memory_windows), 0},
	{THEIRS(orig_attr.device_cap_flags), IBV_DEVICE_MEM_WINDOW, OURS(memory_windows), 0},
	{THEIRS(orig_attr.device_cap_flags), IBV_DEVICE_MEM_WINDOW_TYPE_2A, OURS(memory_windows),
	 0},
	{THEIRS(orig_attr.device_cap_flags), IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A,
	 OURS(memory_windows), 1},
	{THEIRS(cq_mod_caps.max_cq_count), 1, OURS(cq_moderation), 1},
	{THEIRS(cq_mod_caps.max_cq_count), 0, OURS(cq_moderation), 0},
	/* kHz; without timestamps there is no clock. */
	{THEIRS(completion_timestamp_mask), UINT64_MAX, OURS(clock_hz), NULL_HZ},
	{THEIRS(completion_timestamp_mask), 0, OURS(clock_hz), 0},
	{THEIRS(orig_attr.vendor_id), 0, OURS(relaxed_ordering), 1},
	{THEIRS(orig_attr.vendor_id), 0xffffff, OURS(relaxed_ordering), 0}, /* rxe */
	{THEIRS(orig_attr.vendor_id), 0x626d74, OURS(relaxed_ordering), 0}, /* siw */
	{THEIRS(orig_attr.vendor_id), 0, OURS(refusal_events), 1},
	{THEIRS(orig_attr.vendor_id), 0xffffff, OURS(refusal_events), 0},
	{THEIRS(orig_attr.vendor_id), 0x626d74, OURS(refusal_events), 1},
};

static const struct limit *told;

static void
tell(struct ibv_device_attr_ex *a, struct ibv_port_attr *port)
{
	(void)port;
	if (a != NULL)
		memcpy((char *)a + told->theirs, &told->told, told->their_size);
}

T(test_limits_come_from_the_provider)
{
	struct bb_dev_attr attr;
	struct bb_dev *dev;
	uint64_t is;

	null_dev.attr = tell;
	for (size_t i = 0; i < RTE_DIM(limits); i++) {
		told = &limits[i];
		assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
		memset(&attr, 0xff, sizeof(attr));
		assert_int_equal(bb_dev_query(dev, &attr), 0);
		is = 0;
		memcpy(&is, (char *)&attr + told->ours, told->our_size);
		if (is != told->want)
			print_error("limit %zu\n", i);
		assert_int_equal(is, told->want);
		assert_string_equal(attr.driver, "verbs");
		assert_int_equal(bb_dev_close(dev), 0);
	}
}

T(test_device_without_a_basic_resource_does_not_open)
{
	static const struct limit none[] = {
		{THEIRS(orig_attr.phys_port_cnt), 0, 0, 0, 0},
		{THEIRS(orig_attr.max_cqe), 0, 0, 0, 0},
		{THEIRS(orig_attr.max_qp_wr), 0, 0, 0, 0},
		{THEIRS(orig_attr.max_sge), LESS, 0, 0, 0},
	};
	struct bb_dev *dev = NULL;

	null_dev.attr = tell;
	for (size_t i = 0; i < RTE_DIM(none); i++) {
		told = &none[i];
		assert_logged(bb_dev_open(NULL_NAME, &dev), -EIO, "reports a limit of 0");
		assert_null(dev);
		assert_int_equal(null_dev.objects, 0);
	}
}

/*
 * A failed call that is required makes open fail; one that reports an optional feature does not.
 */
T(test_failed_required_call_fails_the_open)
{
	static const char *const needed[] = {"ibv_get_device_list", "ibv_open_device",
					     "query_device", "ibv_query_port", "cq_make"};
	struct bb_dev *dev = NULL;
	unsigned int n, i, must, failed = 0;
	int ret;

	for (n = 2;; n++) {
		null_reset();
		null_dev.fail_errno = EPERM;
		null_dev.fail_at = n;
		ret = bb_dev_open("verbs:" NULL_NAME, &dev);
		null_dev.fail_at = 0;
		if (ret == 0)
			assert_int_equal(bb_dev_close(dev), 0);
		if (!null_dev.failed)
			break;
		must = 0;
		for (i = 0; i < RTE_DIM(needed); i++)
			must += strcmp(null_dev.failed_call, needed[i]) == 0;
		failed += must;
		if (must != 0)
			assert_int_equal(ret, -EPERM);
	}
	assert_int_equal(failed, RTE_DIM(needed));
}

static struct ibv_odp_caps odp_told;

static void
tell_odp(struct ibv_device_attr_ex *a, struct ibv_port_attr *port)
{
	(void)port;
	if (a != NULL)
		a->odp_caps = odp_told;
}

T(test_on_demand_paging_needs_rc_write_or_read)
{
	static const struct {
		uint64_t general;
		uint32_t rc;
		bool odp, write, read, atomic, implicit;
	} cases[] = {
		{0, UINT32_MAX, false, false, false, false, false},
		{IBV_ODP_SUPPORT_IMPLICIT, UINT32_MAX, false, false, false, false, false},
		{IBV_ODP_SUPPORT, 0, false, false, false, false, false},
		{IBV_ODP_SUPPORT, IBV_ODP_SUPPORT_SEND, false, false, false, false, false},
		{IBV_ODP_SUPPORT, IBV_ODP_SUPPORT_WRITE, true, true, false, false, false},
		{IBV_ODP_SUPPORT, IBV_ODP_SUPPORT_READ, true, false, true, false, false},
		{IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
		 IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC, true, true,
		 true, true, true},
	};
	struct bb_dev_attr attr;
	struct bb_dev *dev;

	null_dev.attr = tell_odp;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		odp_told.general_caps = cases[i].general;
		odp_told.per_transport_caps.rc_odp_caps = cases[i].rc;
		assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
		assert_int_equal(bb_dev_query(dev, &attr), 0);
		assert_fields(attr, odp, cases[i].odp, odp_write, cases[i].write);
		assert_fields(attr, odp_read, cases[i].read, odp_atomic, cases[i].atomic);
		assert_int_equal(attr.odp_implicit, cases[i].implicit);
		assert_int_equal(bb_dev_close(dev), 0);
	}
}

/* ON_DEMAND memory need not be mapped, so this is not why its registration failed. */
T(test_on_demand_registration_without_a_free_key_is_no_fault)
{
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_mr *mr;

	odp_told = (struct ibv_odp_caps){
		.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
		.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_WRITE,
	};
	null_dev.attr = tell_odp;
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	assert_int_equal(bb_pd_alloc(dev, &pd), 0);
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_int_equal(bb_mr_reg(pd, NULL, SIZE_MAX, BB_ACCESS_ON_DEMAND, &mr), -ENOMEM);
	assert_int_equal(bb_pd_free(pd), 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

/*
 * Inline sizes are tried from large to small: the reported one works and may be less than the
 * maximum.
 */
T(test_inline_size_is_tried_from_large_to_small)
{
	static const struct {
		uint32_t theirs, ours;
	} cases[] = {{4096, 512}, {512, 512}, {511, 256}, {64, 64}, {31, 16}, {16, 16}, {15, 0}};
	struct bb_dev_attr attr;
	struct bb_dev *dev;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		null_dev.max_inline = cases[i].theirs;
		assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
		assert_int_equal(bb_dev_query(dev, &attr), 0);
		assert_int_equal(attr.max_inline, cases[i].ours);
		assert_int_equal(bb_dev_close(dev), 0);
	}
}

/* ---- Ports */

static struct ibv_port_attr port_told;

static void
tell_port(struct ibv_device_attr_ex *a, struct ibv_port_attr *port)
{
	(void)a;
	if (port != NULL)
		*port = port_told;
}

T(test_port_attributes_are_translated)
{
	struct bb_dev_attr attr;
	struct bb_port_attr port;
	struct bb_gid gid;
	uint16_t pkey;
	struct bb_dev *dev;

	null_dev.attr = tell_port;
	port_told = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
					   .max_mtu = IBV_MTU_4096,
					   .active_mtu = IBV_MTU_512,
					   .gid_tbl_len = 3,
					   .pkey_tbl_len = 6,
					   .max_msg_sz = 1u << 30,
					   .lid = 0x123,
					   .link_layer = IBV_LINK_LAYER_INFINIBAND};
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	assert_int_equal(bb_dev_query(dev, &attr), 0);
	assert_int_equal(attr.max_msg_size, 1u << 30);
	assert_int_equal(bb_port_query(dev, 1, &port), 0);
	assert_fields(port, state, BB_PORT_ACTIVE, link_layer, BB_LINK_INFINIBAND, max_mtu, 4096);
	assert_fields(port, active_mtu, 512, lid, 0x123, gids, 3);
	assert_false(port.grh_required);
	port_told.flags = IBV_QPF_GRH_REQUIRED;
	assert_int_equal(bb_port_query(dev, 1, &port), 0);
	assert_true(port.grh_required);
	port_told.state = IBV_PORT_ARMED;
	port_told.link_layer = IBV_LINK_LAYER_ETHERNET;
	port_told.gid_tbl_len = -1;
	assert_logged(bb_port_query(dev, 1, &port), 0, NULL);
	assert_fields(port, state, BB_PORT_DOWN, link_layer, BB_LINK_ETHERNET, gids, 0);
	/* RoCE always has a GRH. */
	assert_false(port.grh_required);

	/* An empty entry is not logged, an error is. */
	log_begin();
	assert_int_equal(bb_gid_query(dev, 1, 0, &gid), 0);
	assert_int_equal(gid.type, BB_GID_ROCE_V2);
	assert_int_equal(bb_gid_query(dev, 1, 1, &gid), -ENOENT);
	log_expect(NULL);
	assert_logged(bb_gid_query(dev, 1, 3, &gid), -EINVAL, "cannot read GID 3 of port 1");
	assert_int_equal(bb_pkey_query(dev, 1, 5, &pkey), 0);
	assert_int_equal(pkey, 0x8005);
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 2; /* beyond the port's table */
	assert_logged(bb_pkey_query(dev, 1, 5, &pkey), -EIO, "cannot read P_Key 5 of port 1");
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 1;
	assert_logged(bb_port_query(dev, 1, &port), -EIO, "cannot query port 1");
	assert_int_equal(bb_dev_close(dev), 0);
}

/* ---- Attributes requested for queues */

static void
deep(struct ibv_device_attr_ex *a, struct ibv_port_attr *port)
{
	(void)port;
	if (a == NULL)
		return;
	a->orig_attr.max_qp_wr = 1 << 15;
	a->orig_attr.max_cqe = 1 << 17;
}

T_F(test_depth_does_not_depend_on_the_size_of_requests)
{
	static const struct {
		enum bb_qp_type type;
		uint32_t max_sge, max_inline;
	} cases[] = {
		{BB_QPT_RC, 0, 0},  {BB_QPT_RC, 3, 0},   {BB_QPT_UD, 2, 0},
		{BB_QPT_RC, 32, 0}, {BB_QPT_RC, 1, 256},
	};
	struct bb_qp_init_attr init;
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_cq *cq;
	struct bb_qp *qp;

	null_dev.attr = deep;
	make(f, BB_QPT_RC, false, 0);
	cattr.depth = 1 << 16;
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), 0);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		bb_qp_init_attr_init(&init);
		init.type = cases[i].type;
		init.send_cq = init.recv_cq = cq;
		init.max_sge = cases[i].max_sge;
		init.max_inline = cases[i].max_inline;
		init.sq_depth = 32768;
		assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
		assert_int_equal(bb_qp_destroy(qp), 0);
		init.sq_depth++;
		qp = NULL;
		assert_logged(bb_qp_create(f->pd, &init, &qp), -EINVAL, "sq_depth");
		assert_null(qp);
	}
	assert_int_equal(bb_cq_destroy(cq), 0);
}

/* The provider gets the requested sizes, and at least one piece. */
T_F(test_provider_gets_the_requested_sizes)
{
	static const enum ibv_qp_type types[] = {
		[BB_QPT_RC] = IBV_QPT_RC, [BB_QPT_UC] = IBV_QPT_UC, [BB_QPT_UD] = IBV_QPT_UD};
	struct bb_qp_init_attr init;
	const struct ibv_qp_cap *cap = &null_dev.qp_init.cap;
	struct bb_qp *qp;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t type = 0; type < RTE_DIM(types); type++) {
			make(f, BB_QPT_RC, true, k);
			bb_qp_init_attr_init(&init);
			init.type = (enum bb_qp_type)type;
			init.send_cq = init.recv_cq = f->cq;
			init.sq_depth = 5;
			init.rq_depth = 3;
			init.max_sge = 2;
			init.max_recv_sge = 4;
			init.max_inline = 48;
			assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
			assert_int_equal(null_dev.qp_init.qp_type, types[type]);
			assert_ptr_equal(null_dev.qp_init.qp_context, qp);
			assert_null(null_dev.qp_init.srq);
			assert_fields(*cap, max_send_wr, 5, max_recv_wr, 3, max_send_sge, 2);
			assert_fields(*cap, max_recv_sge, 4, max_inline_data, 48);
			assert_int_equal(bb_qp_destroy(qp), 0);
			init.max_sge = init.max_recv_sge = 0;
			assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
			assert_fields(*cap, max_send_sge, 1, max_recv_sge, 1);
			assert_int_equal(bb_qp_destroy(qp), 0);
			init.rq_depth = 0;
			init.srq = f->srq;
			assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
			assert_non_null(null_dev.qp_init.srq);
			assert_fields(*cap, max_recv_wr, 0, max_recv_sge, 0);
			assert_int_equal(bb_qp_destroy(qp), 0);
			fixture_free(f);
			null_reset();
		}
	}
}

/* libmlx5 would copy short receives to addresses that are not pointers: see verbs_qp.c. */
T_F(test_qp_of_libmlx5_is_made_without_scatter_to_cqe)
{
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (int type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
			for (int srq = 0; srq < 2; srq++) {
				for (int mlx5 = 0; mlx5 < 2; mlx5++) {
					null_dev.mlx5 = mlx5 != 0;
					make(f, (enum bb_qp_type)type, srq != 0, k);
					assert_int_equal(
						null_dev.qp_dv_flags,
						mlx5 ? MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE : 0);
					assert_int_equal(null_dev.qp_init.srq != NULL, srq);
					fixture_free(f);
					null_reset();
				}
			}
		}
	}
}

/*
 * A limit that the provider refuses is returned as its error, not taken for a missing extended
 * API.
 */
T_ON(BB_QPT_RC, false, test_refused_limit_is_returned_as_its_error)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;
	uint32_t n;

	init.send_cq = init.recv_cq = f->cq;
	init.sq_depth = 5;
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_logged(bb_qp_create(f->pd, &init, &qp), -ENOMEM, "raise the locked memory limit");
	/* All three ways to create it. */
	null_dev.no_keys = null_dev.no_qp_ex = true;
	null_dev.fail_errno = EINVAL;
	null_dev.fail_at = 1;
	assert_int_equal(bb_qp_create(f->pd, &init, &qp), -EINVAL);
	assert_null(qp);
	null_dev.no_keys = null_dev.no_qp_ex = false;
	assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
	n = null_dev.wr_plain;
	assert_int_equal(connect_to_itself(qp), 0);
	assert_int_equal(bb_post_write_inline(qp, 1, mem, 8, TO, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(qp);
	assert_int_equal(null_dev.wr_plain, n);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* Defects of libbnxt_re and libionic: see verbs_caps.c. */
T(test_faulty_calls_of_providers_are_avoided)
{
	static const uint32_t vendor[] = {0, 0x14e4, 0x1dd8};
	struct fixture own;
	struct bb_dev_attr attr;

	for (uint32_t i = 0; i < RTE_DIM(vendor); i++) {
		null_dev.vendor_id = vendor[i];
		null_dev.no_mw = i == 1;
		make(&own, BB_QPT_RC, false, 0);
		assert_int_equal(bb_dev_query(own.dev, &attr), 0);
		assert_int_equal(attr.cq_resize, i != 1);
		assert_int_equal(null_dev.resized, i != 1 ? 4 : 0);
		assert_int_equal(attr.memory_windows, i != 1);
		assert_int_equal(attr.memory_window_atomics, i != 1);
		one(&own, bb_post_write_inline(own.qp, 1, mem, 8, TO, 1, BB_SEND_SIGNALED), 1,
		    BB_WC_RDMA_WRITE);
		assert_int_equal(null_dev.wr_plain != 0, i == 2);
		fixture_free(&own);
		null_reset();
	}
}

/* A CQ with a single owner is flagged so, if the provider knows the flag. */
T_ON(BB_QPT_RC, false, test_cq_of_one_owner_is_flagged)
{
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	cattr.depth = 100;
	cattr.comp_vector = NULL_VECTORS - 1;
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), 0);
	assert_fields(null_dev.cq_init, cqe, 128, comp_vector, NULL_VECTORS - 1);
	assert_int_equal(null_dev.cq_init.comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS);
	assert_int_equal(null_dev.cq_init.flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	assert_null(null_dev.cq_init.channel);
	assert_int_equal(bb_cq_destroy(cq), 0);
	null_dev.no_cq_flags = true;
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), 0);
	assert_int_equal(null_dev.cq_init.flags, 0);
	assert_int_equal(bb_cq_destroy(cq), 0);
	null_dev.no_cq_ex = true;
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), 0);
	assert_int_equal(null_dev.cq_vector, NULL_VECTORS - 1);
	assert_int_equal(bb_cq_destroy(cq), 0);
	null_dev.no_cq_ex = false;
	cattr.comp_vector = NULL_VECTORS;
	assert_logged(bb_cq_create(f->dev, &cattr, &cq), -EINVAL,
		      "completion vector 5 is out of range: give 0 to 4");
	cattr.comp_vector = 0;
	/* No fallback to ibv_create_cq(). */
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	cq = NULL;
	assert_logged(bb_cq_create(f->dev, &cattr, &cq), -ENOMEM, "raise the locked memory limit");
	assert_null(cq);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
