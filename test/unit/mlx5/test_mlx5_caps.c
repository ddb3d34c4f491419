/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Capabilities: how each is used, and which values make a device unusable. */
#include "../../fakes/log_catch.h"
#include "mlx5_fixture.h"

T_DEV(test_limits_come_from_the_device)
{
	struct bb_dev_attr attr;

	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_string_equal(attr.driver, "mlx5");
	assert_fields(attr, ports, 1, max_qp, 0xffff, max_cq, 1 << 16, max_cqe, 1 << 22);
	assert_int_equal(attr.max_qp_wr, 1 << 15);
	/* 63 segments, two of them control and remote address. */
	assert_int_equal(attr.max_sge, 61);
	/* A READ has at most 32 segments. */
	assert_fields(attr, max_read_sge, 30, max_inline, 61 * 16 - 4, max_recv_sge, 32);
	assert_fields(attr, max_mr_size, 1ull << 40, max_mr, 1 << 20);
	assert_false(attr.relaxed_ordering);
	assert_fields(attr, max_msg_size, 1 << 30, max_rd_atomic, 16, max_dest_rd_atomic, 32);
	assert_int_equal(attr.bf_size, 256);
	assert_true(attr.atomics);
	assert_true(attr.counters);
	/* The current values were queried, not the maxima. */
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_QUERY_HCA_CAP), BB_PRM_CMD_OP_MOD) & 1, 1);
}

T_F(test_smaller_limits_are_honoured)
{
	struct bb_dev_attr attr;

	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_QP, 3);
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_QP_SZ, 7);
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_CQ_SZ, 9);
	bb_prm_set(stub.general, BB_PRM_HCA_MAX_WQE_SZ_SQ, 256);
	bb_prm_set(stub.general, BB_PRM_HCA_MAX_WQE_SZ_RQ, 64);
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_MSG, 20);
	bb_prm_set(stub.general, BB_PRM_HCA_BF, 0);
	open_dev(f);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_fields(attr, max_qp, 8, max_qp_wr, 128, max_cqe, 512, max_sge, 14, max_read_sge, 14);
	assert_fields(attr, max_inline, 14 * 16 - 4, max_recv_sge, 4, max_msg_size, 1 << 20);
	assert_int_equal(attr.bf_size, 0);
}

/* The effect of each capability bit and size alone, and of values beyond Bluebell's limits. */
T(test_each_capability_has_only_its_own_effect)
{
	enum {
		ATOMIC = 1
	};
#define ATTR(name_) offsetof(struct bb_dev_attr, name_), sizeof(((struct bb_dev_attr *)0)->name_)
#define KEYS                                                                                       \
	{BB_PRM_HCA_MAX_INDIRECTION, 1},                                                           \
	{                                                                                          \
		BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, 5                                                \
	}
#define NO_ATOMIC_BY_UMR                                                                           \
	{                                                                                          \
		BB_PRM_HCA_UMR_MODIFY_ATOMIC_DISABLED, 1                                           \
	}
#define NO_UMR                                                                                     \
	{                                                                                          \
		BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED, 1                                           \
	}
	static const struct {
		size_t at, size;
		uint64_t want;
		struct {
			struct bb_prm_field f;
			uint32_t v;
		} set[3];
		int page;
	} rows[] = {
		{ATTR(relaxed_ordering), 1, {{BB_PRM_HCA_RELAXED_ORDERING_WRITE, 1}}, 0},
		{ATTR(cq_resize), 1, {{BB_PRM_HCA_CQ_RESIZE, 1}}, 0},
		{ATTR(cq_moderation), 1, {{BB_PRM_HCA_CQ_MODERATION, 1}}, 0},
		{ATTR(cqe_compression), 1, {{BB_PRM_HCA_CQE_COMPRESSION, 1}}, 0},
		{ATTR(max_mkey_pieces), 0, {{BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, 5}}, 0},
		{ATTR(max_mkey_pieces), 32, {KEYS}, 0},
		{ATTR(max_mkey_pieces), 128, {KEYS, {BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, 8}}, 0},
		{ATTR(mkey_layout), 1, {KEYS}, 0},
		{ATTR(mkey_layout), 0, {KEYS, NO_UMR}, 0},
		{ATTR(mkey_layout), 1, {KEYS, NO_ATOMIC_BY_UMR}, 0},
		{ATTR(mkey_layout), 0, {{BB_PRM_HCA_MAX_INDIRECTION, 0}}, 0},
		{ATTR(mkey_interleaved), 1, {KEYS}, 0},
		{ATTR(mkey_interleaved), 1, {KEYS, NO_ATOMIC_BY_UMR}, 0},
		{ATTR(mkey_interleaved), 0, {KEYS, NO_UMR}, 0},
		{ATTR(mkey_interleaved), 0, {KEYS, {BB_PRM_HCA_REPEATED_BLOCK_DISABLED, 1}}, 0},
		{ATTR(memory_windows), 0, {{BB_PRM_HCA_IMAICL, 0}}, 0},
		{ATTR(memory_windows), 1, {{BB_PRM_HCA_IMAICL, 1}}, 0},
		{ATTR(memory_windows), 0, {{BB_PRM_HCA_IMAICL, 1}, NO_UMR}, 0},
		{ATTR(memory_windows), 1, {{BB_PRM_HCA_IMAICL, 1}, NO_ATOMIC_BY_UMR}, 0},
		{ATTR(memory_window_atomics), 1, {{BB_PRM_HCA_IMAICL, 1}}, 0},
		{ATTR(memory_window_atomics), 0, {{BB_PRM_HCA_IMAICL, 0}}, 0},
		{ATTR(memory_window_atomics), 0, {{BB_PRM_HCA_IMAICL, 1}, NO_ATOMIC_BY_UMR}, 0},
		{ATTR(memory_window_atomics),
		 0,
		 {{BB_PRM_HCA_IMAICL, 1}, {BB_PRM_HCA_ATOMIC, 0}},
		 0},
		{ATTR(mkey_atomic_align), 0, {{BB_PRM_HCA_MAX_INDIRECTION, 0}}, 0},
		{ATTR(mkey_atomic_align), 8, {KEYS}, 0},
		{ATTR(mkey_atomic_align), 0, {KEYS, NO_ATOMIC_BY_UMR}, 0},
		{ATTR(mkey_atomic_align), 0, {KEYS, {BB_PRM_HCA_ATOMIC, 0}}, 0},
		{ATTR(masked_atomics), 0, {{BB_PRM_ATOMIC_CAP_MODE, 0x7}}, ATOMIC},
		{ATTR(masked_atomics), 8, {{BB_PRM_ATOMIC_CAP_MODE, 0xf}}, ATOMIC},
		{ATTR(masked_atomics),
		 0xc,
		 {{BB_PRM_ATOMIC_CAP_MODE, 0xf}, {BB_PRM_ATOMIC_CAP_SIZE_QP, 0x1e}},
		 ATOMIC},
		{ATTR(masked_atomics_be),
		 4,
		 {{BB_PRM_ATOMIC_CAP_MODE, 0xf}, {BB_PRM_ATOMIC_CAP_SIZE_QP, 0x1e}},
		 ATOMIC},
		{ATTR(max_qp_wr), 1 << 15, {{BB_PRM_HCA_LOG_MAX_QP_SZ, 16}}, 0},
		{ATTR(max_cqe), 1 << 22, {{BB_PRM_HCA_LOG_MAX_CQ_SZ, 23}}, 0},
		{ATTR(max_rd_atomic), 128, {{BB_PRM_HCA_LOG_MAX_RA_REQ_QP, 8}}, 0},
		{ATTR(max_dest_rd_atomic), 128, {{BB_PRM_HCA_LOG_MAX_RA_RES_QP, 8}}, 0},
		{ATTR(max_sge), 61, {{BB_PRM_HCA_MAX_WQE_SZ_SQ, 2048}}, 0},
		{ATTR(max_sge), 2, {{BB_PRM_HCA_MAX_WQE_SZ_SQ, 64}}, 0},
		{ATTR(max_read_sge), 30, {{BB_PRM_HCA_MAX_WQE_SZ_SQ, 512}}, 0},
		{ATTR(max_read_sge), 29, {{BB_PRM_HCA_MAX_WQE_SZ_SQ, 496}}, 0},
		{ATTR(max_read_sge), 2, {{BB_PRM_HCA_MAX_WQE_SZ_SQ, 64}}, 0},
		{ATTR(max_recv_sge), 32, {{BB_PRM_HCA_MAX_WQE_SZ_RQ, 1024}}, 0},
		{ATTR(max_recv_sge), 1, {{BB_PRM_HCA_MAX_WQE_SZ_RQ, 16}}, 0},
		{ATTR(max_srq_sge), 1, {{BB_PRM_HCA_MAX_WQE_SZ_RQ, 32}}, 0},
		{ATTR(max_mr_size), UINT64_MAX, {{BB_PRM_HCA_LOG_MAX_MRW_SZ, 0}}, 0},
		{ATTR(max_mr_size), UINT64_MAX, {{BB_PRM_HCA_LOG_MAX_MRW_SZ, 64}}, 0},
		{ATTR(max_mr_size), UINT64_C(1) << 63, {{BB_PRM_HCA_LOG_MAX_MRW_SZ, 63}}, 0},
		{ATTR(max_msg_size), UINT64_C(1) << 31, {{BB_PRM_HCA_LOG_MAX_MSG, 31}}, 0},
		/* Halves of a BlueFlame register: a half too small for a WQE counts as none. */
		{ATTR(bf_size), 64, {{BB_PRM_HCA_LOG_BF_REG_SIZE, 7}}, 0},
		{ATTR(bf_size), 0, {{BB_PRM_HCA_LOG_BF_REG_SIZE, 6}}, 0},
		{ATTR(ports), 8, {{BB_PRM_HCA_NUM_PORTS, 8}}, 0},
	};
	struct bb_dev_attr attr;
	struct fixture f;

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		uint64_t got = 0;

		stub_reset();
		for (size_t k = 0; k < 3 && rows[i].set[k].f.width != 0; k++)
			bb_prm_set(rows[i].page == ATOMIC ? stub.atomic : stub.general,
				   rows[i].set[k].f, rows[i].set[k].v);
		open_dev(&f);
		assert_int_equal(bb_dev_query(f.dev, &attr), 0);
		close_dev(&f);
		memcpy(&got, (const uint8_t *)&attr + rows[i].at, rows[i].size);
		if (got != rows[i].want)
			print_error("row %zu\n", i);
		assert_int_equal(got, rows[i].want);
	}
}

/*
 * Completions use the clock whose format the device requires of QPs; real time has no tick rate.
 */
T_F(test_timestamps_use_the_format_that_the_device_requires)
{
	/* qp_ts_format: free running, real time, both; qpc.ts_format: 0 free running, 1 default */
	static const struct {
		uint32_t cap, format;
		uint64_t hz;
	} cases[] = {{0, 0, 156250000}, {1, 1, 0}, {2, 0, 156250000}};
	struct bb_dev_attr attr;

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_DEVICE_FREQUENCY_KHZ, 156250);
		bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_QP_TS_FORMAT, cases[i].cap);
		open_qp(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_int_equal(attr.clock_hz, cases[i].hz);
		assert_int_equal(
			bb_prm_get(stub_box(BB_PRM_OP_CREATE_QP) + BB_PRM_CREATE_QP_QPC.byte,
				   BB_PRM_QPC_TS_FORMAT),
			cases[i].format);
		close_dev(f);
	}
}

/* Device memory: none unless both pages have their bit; limits come from the page of its own. */
T_F(test_device_memory_needs_both_capability_pages)
{
	struct bb_dev_attr attr;
	struct bb_dm *dm = NULL;
	unsigned int i, pages[2];

	for (i = 0; i < 3; i++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_DEVICE_MEMORY, i > 0);
		bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_UMEM, i * 5);
		bb_prm_set(stub.dev_mem, BB_PRM_DEV_MEM_CAP_MEMIC, i > 1);
		bb_prm_set(stub.dev_mem, BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE, 0x123440);
		bb_prm_set(stub.dev_mem, BB_PRM_DEV_MEM_CAP_LOG_MAX_MEMIC_ADDR_ALIGNMENT, 3);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_int_equal(attr.max_dm_size, i > 1 ? 0x123440 : 0);
		assert_int_equal(attr.max_dm_log_align, i > 1 ? 9 : 0);
		assert_int_equal(attr.max_umem, i == 0 ? 0 : 1 << i * 5);
		assert_false(attr.dmabuf);
		if (i < 2)
			assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), -ENOTSUP);
		close_dev(f);
	}
	/* The page is queried only if its bit is set. */
	for (i = 0; i < 2; i++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_DEVICE_MEMORY, i);
		open_dev(f);
		pages[i] = stub_count(BB_PRM_OP_QUERY_HCA_CAP);
		close_dev(f);
	}
	assert_int_equal(pages[1], pages[0] + 1);
	assert_null(dm);
}

T(test_old_cqe_version_is_refused)
{
	struct bb_dev *dev = NULL;

	bb_prm_set(stub.general, BB_PRM_HCA_CQE_VERSION, 0);
	assert_int_equal(bb_dev_open("stub0", &dev), -EOPNOTSUPP);
	assert_null(dev);
}

T(test_impossible_capability_is_refused)
{
	static const struct {
		struct bb_prm_field f;
		uint32_t v;
	} bad[] = {
		{BB_PRM_HCA_NUM_PORTS, 0},      {BB_PRM_HCA_NUM_PORTS, 200},
		{BB_PRM_HCA_MAX_WQE_SZ_SQ, 32}, {BB_PRM_HCA_MAX_WQE_SZ_RQ, 8},
		{BB_PRM_HCA_LOG_MAX_QP, 0},     {BB_PRM_HCA_LOG_MAX_CQ, 0},
	};
	struct bb_dev *dev;

	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		stub_reset();
		bb_prm_set(stub.general, bad[i].f, bad[i].v);
		assert_int_equal(bb_dev_open("stub0", &dev), -EIO);
	}
}

T(test_atomics_need_all_three_capabilities)
{
	static const struct {
		struct bb_prm_field f;
		uint32_t v;
	} lack[] = {
		{BB_PRM_ATOMIC_CAP_MODE, 1},
		{BB_PRM_ATOMIC_CAP_SIZE_QP, 1 << 2},
		{BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE, 0},
	};
	struct bb_dev_attr attr;
	struct fixture f;

	for (size_t i = 0; i < RTE_DIM(lack); i++) {
		stub_reset();
		bb_prm_set(stub.atomic, lack[i].f, lack[i].v);
		open_dev(&f);
		assert_int_equal(bb_dev_query(f.dev, &attr), 0);
		assert_false(attr.atomics);
		close_dev(&f);
	}
	stub_reset();
	bb_prm_set(stub.general, BB_PRM_HCA_ATOMIC, 0);
	open_dev(&f);
	assert_int_equal(bb_dev_query(f.dev, &attr), 0);
	assert_false(attr.atomics);
	/* The details of a missing capability are not queried. */
	assert_int_equal(stub_count(BB_PRM_OP_QUERY_HCA_CAP), 2);
	close_dev(&f);
}

/* On-demand paging: the limits are those of the scheme that the device has. */
T_F(test_paging_limits_are_those_of_the_devices_scheme)
{
	struct bb_dev_attr attr;
	uint8_t *rc;

	for (int mem = 0; mem < 2; mem++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_PG, 1);
		bb_prm_set(stub.odp, BB_PRM_ODP_CAP_MEM_PAGE_FAULT, (uint32_t)mem);
		rc = bb_prm_sub(bb_prm_sub(stub.odp,
					   mem ? BB_PRM_ODP_CAP_MEMORY : BB_PRM_ODP_CAP_TRANSPORT),
				BB_PRM_ODP_SCHEME_RC);
		bb_prm_set(rc, BB_PRM_ODP_SERVICE_READ, 1);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_true(attr.odp && attr.odp_read);
		assert_false(attr.odp_write || attr.odp_atomic || attr.odp_implicit);
		close_dev(f);
		/* The bits of the other scheme are ignored. */
		bb_prm_set(stub.odp, BB_PRM_ODP_CAP_MEM_PAGE_FAULT, (uint32_t)!mem);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_false(attr.odp || attr.odp_read);
		close_dev(f);
		bb_prm_set(stub.odp, BB_PRM_ODP_CAP_MEM_PAGE_FAULT, (uint32_t)mem);
		bb_prm_set(rc, BB_PRM_ODP_SERVICE_WRITE, 1);
		bb_prm_set(rc, BB_PRM_ODP_SERVICE_ATOMIC, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_FIXED_BUFFER_SIZE, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_NULL_MKEY, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET, 1);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_true(attr.odp_write && attr.odp_atomic && attr.odp_implicit);
		close_dev(f);
		/* A device without atomics has no atomics on demand. */
		bb_prm_set(stub.general, BB_PRM_HCA_ATOMIC, 0);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_true(attr.odp_write && !attr.odp_atomic);
		close_dev(f);
		bb_prm_set(stub.general, BB_PRM_HCA_ATOMIC, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET, 0);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_false(attr.odp_implicit);
		close_dev(f);
		bb_prm_set(stub.general, BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED, 1);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_false(attr.odp_implicit);
		close_dev(f);
		bb_prm_set(stub.general, BB_PRM_HCA_PG, 0);
		open_dev(f);
		assert_int_equal(bb_dev_query(f->dev, &attr), 0);
		assert_false(attr.odp || attr.odp_implicit || attr.odp_atomic);
		close_dev(f);
	}
}

T_F(test_no_counters_is_no_error)
{
	struct bb_dev_stats stats;
	struct bb_dev_attr attr;

	stub.fail_op = BB_PRM_OP_ALLOC_Q_COUNTER;
	stub.fail_status = BB_PRM_STAT_BAD_OP;
	open_dev(f);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_false(attr.counters);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
	assert_fields(stats, rx_write, 0, flushed, 0);
}

T_DEV(test_counters_do_not_wrap)
{
	struct bb_dev_stats stats;

	bb_prm_set(stub.counters, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS, 0xfffffff0);
	bb_prm_set(stub.counters, BB_PRM_Q_COUNTER_RESP_CQE_FLUSH_ERROR, 3);
	bb_prm_set(stub.counters, BB_PRM_Q_COUNTER_REQ_CQE_FLUSH_ERROR, 4);
	assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
	assert_fields(stats, rx_write, 0xfffffff0, flushed, 7);
	bb_prm_set(stub.counters, BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS, 0x10);
	assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
	assert_int_equal(stats.rx_write, 0x100000010ull);
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_QUERY_Q_COUNTER), BB_PRM_QUERY_Q_COUNTER_ID),
			 STUB_FIRST_ID & 0xff);
}

/* Each counter of the set goes into its own statistic only. */
T_DEV(test_each_counter_goes_into_its_own_statistic)
{
#define ROW(counter_, stat_)                                                                       \
	{                                                                                          \
		BB_PRM_Q_COUNTER_##counter_, offsetof(struct bb_dev_stats, stat_)                  \
	}
	static const struct {
		struct bb_prm_field f;
		size_t stat;
	} rows[] = {
		ROW(RX_WRITE_REQUESTS, rx_write),
		ROW(RX_READ_REQUESTS, rx_read),
		ROW(RX_ATOMIC_REQUESTS, rx_atomic),
		ROW(OUT_OF_BUFFER, out_of_buffer),
		ROW(OUT_OF_SEQUENCE, out_of_sequence),
		ROW(DUPLICATE_REQUEST, duplicate),
		ROW(RNR_NAK_RETRY_ERR, rnr_nak_retry),
		ROW(LOCAL_ACK_TIMEOUT_ERR, ack_timeout),
		ROW(REQ_REMOTE_ACCESS_ERRORS, remote_access_err),
		ROW(REQ_REMOTE_OPERATION_ERRORS, remote_op_err),
		ROW(REQ_REMOTE_INVALID_REQUEST, remote_invalid_req),
		ROW(REQ_TRANSPORT_RETRIES_EXCEEDED, retry_exceeded),
		ROW(REQ_RNR_RETRIES_EXCEEDED, rnr_retry_exceeded),
		ROW(REQ_LOCAL_PROTECTION, local_protection_err),
		ROW(REQ_LOCAL_LENGTH_ERROR, local_length_err),
		ROW(CQ_OVERFLOW, cq_overflow),
		ROW(RESP_CQE_FLUSH_ERROR, flushed),
		ROW(REQ_CQE_FLUSH_ERROR, flushed),
	};
	struct bb_dev_stats stats, want;

	memset(&want, 0, sizeof(want));
	want.size = sizeof(want);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		const uint32_t n = 1u << i;

		bb_prm_set(stub.counters, rows[i].f, n);
		*(uint64_t *)(void *)((uint8_t *)&want + rows[i].stat) += n;
		memset(&stats, 0xff, sizeof(stats));
		assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
		assert_memory_equal(&stats, &want, sizeof(want));
	}
}

/* Congestion statistics are queried if the device allows it, until a query is refused. */
T_F(test_congestion_is_queried_until_it_is_refused)
{
	struct bb_dev_stats stats;

	for (unsigned int allowed = 0; allowed < 2; allowed++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_CC_QUERY_ALLOWED, allowed);
		stub.fail_op = BB_PRM_OP_QUERY_CONG_STATISTICS;
		stub.fail_status = BB_PRM_STAT_BAD_OP;
		open_dev(f);
		for (unsigned int i = 0; i < 2; i++) {
			memset(&stats, 0xff, sizeof(stats));
			assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
			assert_int_equal(stats.ecn_marked | stats.cnp_sent | stats.cnp_handled, 0);
			assert_int_equal(stub_count(BB_PRM_OP_QUERY_CONG_STATISTICS), allowed);
		}
		close_dev(f);
	}
}

/* Whichever step of open fails, nothing is left (see stub_teardown()). */
T(test_failed_open_leaves_nothing)
{
	struct bb_dev *dev;

	stub.port_errno = -EIO;
	assert_int_equal(bb_dev_open("stub0", &dev), -EIO);
	stub.port_errno = 0;
	stub.subscribe_errno = -ENOMEM;
	assert_int_equal(bb_dev_open("stub0", &dev), -ENOMEM);
	stub.subscribe_errno = 0;
	stub.fail_op = BB_PRM_OP_QUERY_HCA_CAP;
	stub.fail_errno = -EPERM;
	assert_int_equal(bb_dev_open("stub0", &dev), -EPERM);
	stub.fail_status = BB_PRM_STAT_BAD_OP;
	assert_int_equal(bb_dev_open("stub0", &dev), -EOPNOTSUPP);
}

/* The errno of each status of a refused command. */
T_DEV(test_statuses_of_commands_become_errnos)
{
	static const struct {
		uint8_t status;
		int err;
		const char *text;
	} map[] = {
		{BB_PRM_STAT_INT_ERR, -EIO, "internal error (status 0x1, syndrome 0x1234)"},
		{BB_PRM_STAT_BAD_OP, -EOPNOTSUPP, "command not supported"},
		{BB_PRM_STAT_BAD_PARAM, -EINVAL, "bad parameter"},
		{BB_PRM_STAT_BAD_SYS_STATE, -EIO, "bad system state"},
		{BB_PRM_STAT_BAD_RES, -EINVAL, "no such resource"},
		{BB_PRM_STAT_RES_BUSY, -EBUSY, "resource busy"},
		{BB_PRM_STAT_LIM_ERR, -ENOMEM, "limit exceeded"},
		{BB_PRM_STAT_BAD_RES_STATE, -EINVAL, "resource in the wrong state"},
		{BB_PRM_STAT_IX_ERR, -EINVAL, "bad index"},
		{BB_PRM_STAT_NO_RES, -ENOMEM, "no free resource"},
		{BB_PRM_STAT_BAD_QP_STATE, -EINVAL, "QP in the wrong state"},
		{BB_PRM_STAT_BAD_SIZE_OUTS_CQES, -EINVAL, "bad CQ size"},
		{BB_PRM_STAT_BAD_INP_LEN, -EIO, "bad input length"},
		{BB_PRM_STAT_BAD_OUTP_LEN, -EIO, "bad output length"},
		{0x77, -EIO, "the device rejected the command: status 0x77, syndrome 0x1234"},
	};
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	stub.fail_op = BB_PRM_OP_CREATE_CQ;
	for (size_t i = 0; i < RTE_DIM(map); i++) {
		stub.fail_status = map[i].status;
		assert_logged(bb_cq_create(f->dev, &attr, &cq), map[i].err, map[i].text);
	}
}

TEST_MAIN(stub_eal_init("mlx5_caps"))
