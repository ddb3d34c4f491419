/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: every operation by either posting API, completions and
 * their order, events, and missing features.
 */
#include <poll.h>

#include "verbs_fixture.h"

T_F(test_every_one_sided_request_moves_its_data)
{
	const uint32_t sig = BB_SEND_SIGNALED;
	struct bb_sge sge[3];
	uint64_t *word = (uint64_t *)(void *)(mem + LEN);

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		/* Pieces of different lengths, one of them empty. */
		sge[0] = piece(f, FROM, 100);
		sge[1] = piece(f, FROM, 0);
		sge[2] = piece(f, FROM + 200, 33);
		one(f, bb_post_write(f->qp, 1, sge, 3, TO, 9, sig), 1, BB_WC_RDMA_WRITE);
		assert_memory_equal(mem + LEN, mem, 100);
		assert_memory_equal(mem + LEN + 100, mem + 200, 33);
		assert_int_equal(mem[LEN + 133], 0);
		one(f, bb_post_write_inline(f->qp, 2, mem + 300, 60, TO + 500, 9, sig), 2,
		    BB_WC_RDMA_WRITE);
		assert_memory_equal(mem + LEN + 500, mem + 300, 60);
		sge[0] = piece(f, TO + 1000, 50);
		one(f, bb_post_read(f->qp, 3, sge, 1, FROM + 400, 9, sig), 3, BB_WC_RDMA_READ);
		assert_memory_equal(mem + LEN + 1000, mem + 400, 50);
		*word = 40;
		sge[0] = piece(f, TO + 64, 8);
		one(f, bb_post_fetch_add(f->qp, 4, sge, TO, 9, 2, sig), 4, BB_WC_FETCH_ADD);
		assert_int_equal(*word, 42);
		assert_int_equal(word[8], 40);
		one(f, bb_post_cmp_swap(f->qp, 5, sge, TO, 9, 42, 7, sig), 5, BB_WC_CMP_SWAP);
		assert_int_equal(*word, 7);
		assert_int_equal(word[8], 42);
		assert_int_equal(null_dev.wr_plain, extended(k) ? 0 : 5);
		assert_int_equal(null_dev.wr_ex + null_dev.wr_plain, 5);
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

T_KINDS(BB_QPT_RC, false, test_inline_data_wraps_at_the_ring_end)
{
	struct bb_wc wc;

	for (uint32_t i = 0; i < 200; i++) {
		/* Two blocks at the last one of the ring, repeatedly. */
		const uint32_t len = 1 + i * 23 % 63;

		memset(mem + LEN, 0, 80);
		assert_int_equal(
			bb_post_write_inline(f->qp, i, mem + i, len, TO, 1, BB_SEND_SIGNALED), 0);
		bb_qp_ring(f->qp);
		take(f, &wc, 1);
		assert_int_equal(wc.wr_id, i);
		assert_memory_equal(mem + LEN, mem + i, len);
		assert_int_equal(mem[LEN + len], 0);
	}
}

static void
recv_check(struct fixture *f, struct bb_wc *wc, enum bb_wc_opcode opcode, uint32_t len)
{
	/* The receive completes first: the provider executes requests when they are posted. */
	take(f, wc, 2);
	assert_fields(wc[0], status, BB_WC_SUCCESS, opcode, opcode, wr_id, 77, byte_len, len);
	assert_ptr_equal(wc[0].qp, f->qp);
	assert_fields(wc[1], wr_id, 1, status, BB_WC_SUCCESS);
}

static void
messages(struct fixture *f)
{
	const struct bb_sge sge = piece(f, FROM, 30);
	struct bb_wc wc[2];

	post_recv(f, 77);
	assert_int_equal(bb_post_send(f->qp, 1, &sge, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	recv_check(f, wc, BB_WC_RECV, 30);
	assert_memory_equal(mem + LEN, mem, 10);
	assert_memory_equal(mem + LEN + 100, mem + 10, 20);
	post_recv(f, 77);
	assert_int_equal(
		bb_post_write_imm(f->qp, 1, &sge, 1, TO + 500, 1, 0x1234, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	recv_check(f, wc, BB_WC_RECV_RDMA_IMM, 30);
	assert_fields(wc[0], imm, 0x1234, flags, BB_WC_WITH_IMM);
	assert_memory_equal(mem + LEN + 500, mem, 30);
	post_recv(f, 77);
	assert_int_equal(bb_post_send_inv(f->qp, 1, &sge, 1, 0xabcd, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	recv_check(f, wc, BB_WC_RECV, 30);
	assert_fields(wc[0], imm, 0xabcd, flags, BB_WC_WITH_INV);
}

T_F(test_messages_of_every_kind_arrive)
{
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (int srq = 0; srq < 2; srq++) {
			make(f, BB_QPT_RC, srq, k);
			messages(f);
			messages(f);
			fixture_free(f);
			assert_int_equal(null_dev.objects, 0);
			null_reset();
		}
	}
}

/* A destroyed handle remains while outstanding requests may use it. */
T_F(test_datagram_keeps_its_handle_until_done)
{
	const struct bb_path path = {.port = 1, .dgid = {[15] = 1}};
	struct bb_sge sge;
	struct bb_wc wc[2];
	struct bb_ah *ah, *other;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_UD, false, k);
		sge = piece(f, FROM, 30);
		assert_int_equal(bb_ah_create(f->pd, &path, &ah), 0);
		post_recv(f, 77);
		null_dev.hold = true;
		assert_int_equal(bb_post_send_ud_imm(f->qp, 1, &sge, 1, ah, f->qp->qpn, 0x11, 5,
						     BB_SEND_SIGNALED),
				 0);
		assert_int_equal(bb_ah_destroy(ah), 0);
		assert_int_equal(null_dev.ah_destroyed, 0);
		bb_qp_ring(f->qp);
		null_dev.hold = false;
		null_release();
		recv_check(f, wc, BB_WC_RECV, 30);
		assert_int_equal(wc[0].src_qp, f->qp->qpn);
		assert_int_equal(bb_ah_create(f->pd, &path, &other), 0);
		assert_int_equal(null_dev.ah_destroyed, 1);
		assert_int_equal(bb_ah_destroy(other), 0);
		assert_int_equal(null_dev.ah_destroyed, 2);
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

T_F(test_windows_of_both_types_are_bound_and_invalidated)
{
	struct bb_mw *one_mw, *two;
	uint32_t key;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &one_mw), 0);
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &two), 0);
		one(f,
		    bb_mw_bind(f->qp, 1, one_mw, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE,
			       BB_SEND_SIGNALED),
		    1, BB_WC_BIND_MW);
		one(f, bb_mw_bind(f->qp, 2, one_mw, NULL, 0, 0, 0, BB_SEND_SIGNALED), 2,
		    BB_WC_BIND_MW);
		key = bb_inc_rkey(two->rkey);
		one(f,
		    bb_post_bind_mw(f->qp, 3, two, key, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE,
				    BB_SEND_SIGNALED),
		    3, BB_WC_BIND_MW);
		one(f, bb_post_local_inv(f->qp, 4, key, BB_SEND_SIGNALED), 4, BB_WC_LOCAL_INV);
		assert_int_equal(bb_mw_free(two), 0);
		assert_int_equal(bb_mw_free(one_mw), 0);
		fixture_free(f);
		assert_int_equal(null_dev.objects, 0);
		null_reset();
	}
}

/* A NOP waits for earlier requests, signalled or not, and later ones do not pass it. */
T_KINDS(BB_QPT_RC, false, test_nop_waits_for_earlier_requests_only)
{
	struct bb_wc wc[4];
	struct bb_sge sge = piece(f, FROM, 8);

	one(f, bb_post_nop(f->qp, 1, BB_SEND_SIGNALED), 1, BB_WC_NOP);
	null_dev.hold = true;
	/* A doorbell without a NOP first, so that its end is unknown. */
	assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_post_nop(f->qp, 3, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_nop(f->qp, 4, 0), 0);
	assert_int_equal(bb_post_write(f->qp, 5, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_nop(f->qp, 6, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
	null_dev.hold = false;
	null_release();
	take(f, wc, 3);
	assert_int_equal(wc[0].wr_id, 3);
	assert_int_equal(wc[1].wr_id, 5);
	assert_int_equal(wc[2].wr_id, 6);
	assert_int_equal(wc[0].opcode, BB_WC_NOP);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(wc[i].status, BB_WC_SUCCESS);
}

/* Unsignalled requests in one doorbell, as WQEs: one of them is signalled, none is reported. */
T_F(test_one_of_the_unsignalled_is_signalled)
{
	struct bb_sge sge;
	struct bb_wc wc;

	make(f, BB_QPT_RC, false, 3);
	sge = piece(f, FROM, 8);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.signaled, 1);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
	/* A ring of 16 that the application never polls is never found full. */
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, 0), 0);
		bb_qp_ring(f->qp);
		assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
	}
}

T_ON(BB_QPT_RC, false, test_completion_event_is_delivered)
{
	struct pollfd pfd = {.events = POLLIN};
	struct bb_event event;
	struct bb_cq *cq;
	struct bb_wc wc[2];
	struct bb_sge sge = piece(f, FROM, 8);

	pfd.fd = bb_channel_fd(f->ch);
	assert_int_equal(bb_cq_arm(f->cq, false), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(bb_channel_wait(f->ch, -1, &cq), 0);
	assert_ptr_equal(cq, f->cq);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);
	/* An unsignalled request has no completion, even when a later NOP reveals its end. */
	take(f, wc, 1);
	assert_int_equal(bb_post_nop(f->qp, 9, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);
	/* An unpolled completion raises the event at once, and only once. */
	assert_int_equal(bb_cq_arm(f->cq, false), 0);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(bb_channel_get(f->ch, &cq), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	take(f, wc, 1);
	one(f, bb_post_write(f->qp, 2, &sge, 1, TO, 1, BB_SEND_SIGNALED), 2, BB_WC_RDMA_WRITE);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);

	/*
	 * So does a completion made by the driver itself. A resize raises none and disarms
	 * nothing.
	 */
	assert_int_equal(bb_cq_arm(f->cq, false), 0);
	assert_int_equal(bb_cq_resize(f->cq, 2048), 0);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);
	assert_int_equal(bb_post_nop(f->qp, 3, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_channel_wait(f->ch, 30000, &cq), 0);
	take(f, wc, 1);

	assert_int_equal(bb_event_get(f->dev, &event), -EAGAIN);
	null_async(IBV_EVENT_PORT_ERR, (void *)(uintptr_t)1);
	assert_int_equal(bb_event_get(f->dev, &event), 0);
	assert_fields(event, type, BB_EVENT_PORT_DOWN, port, 1);
	/* An event that Bluebell does not know is skipped. */
	null_async(IBV_EVENT_SM_CHANGE, (void *)(uintptr_t)1);
	assert_int_equal(bb_event_get(f->dev, &event), -EAGAIN);
}

T_ON(BB_QPT_RC, true, test_each_event_names_its_object)
{
	enum of {
		QP,
		CQ,
		SRQ,
		PORT,
		DEV
	};
	static const struct {
		enum ibv_event_type theirs;
		enum bb_event_type ours;
		enum of of;
	} types[] = {
		{IBV_EVENT_QP_FATAL, BB_EVENT_QP_FATAL, QP},
		{IBV_EVENT_QP_REQ_ERR, BB_EVENT_QP_REQUEST, QP},
		{IBV_EVENT_QP_ACCESS_ERR, BB_EVENT_QP_ACCESS, QP},
		{IBV_EVENT_COMM_EST, BB_EVENT_QP_COMM_EST, QP},
		{IBV_EVENT_PATH_MIG, BB_EVENT_QP_PATH_MIG, QP},
		{IBV_EVENT_PATH_MIG_ERR, BB_EVENT_QP_PATH_MIG_ERR, QP},
		{IBV_EVENT_QP_LAST_WQE_REACHED, BB_EVENT_SRQ_LAST_WQE, QP},
		{IBV_EVENT_CQ_ERR, BB_EVENT_CQ_ERROR, CQ},
		{IBV_EVENT_SRQ_ERR, BB_EVENT_SRQ_ERROR, SRQ},
		{IBV_EVENT_SRQ_LIMIT_REACHED, BB_EVENT_SRQ_LIMIT, SRQ},
		{IBV_EVENT_PORT_ACTIVE, BB_EVENT_PORT_ACTIVE, PORT},
		{IBV_EVENT_PORT_ERR, BB_EVENT_PORT_DOWN, PORT},
		{IBV_EVENT_LID_CHANGE, BB_EVENT_PORT_CHANGE, PORT},
		{IBV_EVENT_PKEY_CHANGE, BB_EVENT_PORT_CHANGE, PORT},
		{IBV_EVENT_GID_CHANGE, BB_EVENT_PORT_CHANGE, PORT},
		{IBV_EVENT_DEVICE_FATAL, BB_EVENT_DEV_FATAL, DEV},
	};
	struct bb_event event;

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		struct ibv_qp qp = {.qp_context = f->qp};
		struct ibv_cq cq = {.cq_context = f->cq};
		struct ibv_srq srq = {.srq_context = f->srq};
		void *const of[] = {&qp, &cq, &srq, (void *)(uintptr_t)1, NULL};

		null_async(types[i].theirs, of[types[i].of]);
		assert_int_equal(bb_event_get(f->dev, &event), 0);
		assert_int_equal(event.type, types[i].ours);
		assert_ptr_equal(event.qp, types[i].of == QP ? f->qp : NULL);
		assert_ptr_equal(event.cq, types[i].of == CQ ? f->cq : NULL);
		/* The event of the last receive names the QP's SRQ. */
		assert_ptr_equal(event.srq, types[i].of == SRQ || i == 6 ? f->srq : NULL);
		assert_int_equal(event.port, types[i].of == PORT);
	}
	assert_int_equal(bb_event_get(f->dev, &event), -EAGAIN);
}

T(test_device_opens_by_its_listed_name)
{
	struct bb_dev_info info[4];
	struct bb_dev *dev;
	int i, n, found = 0;

	n = bb_dev_list(info, RTE_DIM(info));
	for (i = 0; i < n; i++)
		found += strcmp(info[i].name, "verbs:" NULL_NAME) == 0;
	assert_int_equal(found, 1);
	assert_int_equal(bb_dev_open("verbs:" NULL_NAME, &dev), 0);
	assert_int_equal(bb_dev_close(dev), 0);
	assert_int_equal(bb_dev_open("verbs:none", &dev), -ENODEV);
	assert_int_equal(bb_dev_open(NULL_NAME ",wire=1", &dev), -EINVAL);
	null_dev.no_devices = true;
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), -ENODEV);
	assert_int_equal(null_dev.objects, 0);
}

/* Features missing in libibverbs are refused with -ENOTSUP and a log line. */
T_ON(BB_QPT_RC, false, test_missing_features_are_unsupported)
{
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_dev_attr attr;
	struct bb_mkey_attr mattr = DEFAULTS(mkey_attr);
	struct bb_mkey *mkey;
	struct bb_umem *umem;
	struct bb_cq *cq;

	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_int_equal(attr.max_inline, 256);
	assert_int_equal(bb_umem_reg(f->dev, mem, LEN, 0, &umem), -ENOTSUP);
	assert_int_equal(bb_mkey_create(f->pd, &mattr, &mkey), -ENOTSUP);
	cattr.timestamps = true;
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), -ENOTSUP);
	assert_int_equal(bb_dev_clock(f->dev, NULL, NULL), -ENOTSUP);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
