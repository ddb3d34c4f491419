/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on a null provider that is iWARP. Features that iWARP lacks are refused with a
 * log line and do not reach the provider. Also the workarounds for the kernel's siw.
 */
#include "../../fakes/log_catch.h"
#include "bb_core.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED
/* drivers/infiniband/sw/siw/siw.h: SIW_VENDOR_ID; rdma-abi/siw-abi.h: SIW_INVAL_UOBJ_KEY */
#define SIW_VENDOR_ID 0x626d74u
#define SIW_NO_OFFSET 0x90000u
#define SIW_CQE       32u /* the least size of a CQE */

static void
state_to(struct bb_qp *qp, enum bb_qp_state state)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	attr.state = state;
	attr.access = BB_ACCESS_REMOTE_WRITE;
	assert_int_equal(bb_qp_modify(qp, &attr,
				      state != BB_QP_INIT ? BB_QP_STATE
							  : BB_QP_STATE | BB_QP_PKEY_INDEX |
								    BB_QP_PORT | BB_QP_ACCESS),
			 0);
}

/* Connects as librdmacm does. */
static void
up(struct bb_qp *qp)
{
	state_to(qp, BB_QP_INIT);
	assert_int_equal(bb_qp_adopt(qp), 0);
}

static void
make_iwarp(struct fixture *f, size_t kind)
{
	null_dev.iwarp = true;
	null_dev.no_cq_ex = kinds[kind].no_cq_ex;
	null_dev.no_qp_ex = kinds[kind].no_qp_ex;
	null_dev.no_td = kinds[kind].no_td;
	assert_int_equal(fixture_make(f, BB_QPT_RC, false), -ENOTSUP);
	assert_non_null(f->qp);
	up(f->qp);
}

static void
check_attr(int max_sge_rd, uint32_t want)
{
	struct bb_dev_attr attr;
	struct bb_dev *dev;

	null_dev.max_sge_rd = max_sge_rd;
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	assert_int_equal(bb_dev_query(dev, &attr), 0);
	assert_fields(attr, iwarp, null_dev.iwarp, max_read_sge, want != 0 ? want : attr.max_sge);
	assert_int_equal(bb_dev_close(dev), 0);
}

/* A READ limit that is not reported, or above the general one, is no limit. */
T(test_unreported_read_limit_is_no_limit)
{
	for (int i = 0; i < 2; i++) {
		null_dev.iwarp = i != 0;
		check_attr(0, 0);
		check_attr(1, 1);
		check_attr(3, 3);
		check_attr(1000, 0);
		check_attr(-1, 0);
	}
}

T_F(test_iwarp_has_rc_only)
{
	static const struct {
		enum bb_qp_type type;
		const char *text;
	} types[] = {
		{BB_QPT_UC, "QP of type UC: an iWARP device has RC QPs only"},
		{BB_QPT_UD, "QP of type UD: an iWARP device has RC QPs only"},
	};
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;
	uint32_t objects;

	make_iwarp(f, 0);
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	init.sq_depth = 4;
	init.rq_depth = 4;
	objects = null_dev.objects;
	for (uint32_t i = 0; i < RTE_DIM(types); i++) {
		init.type = types[i].type;
		assert_logged(bb_qp_create(f->pd, &init, &qp), -ENOTSUP, types[i].text);
		assert_null(qp);
		assert_int_equal(null_dev.objects, objects);
	}
}

/* ---- Requests that iWARP lacks */

static const struct {
	enum bb_wr_opcode opcode;
	enum ibv_wr_opcode never; /* must not reach the provider */
	uint32_t flags, nsge;
	const char *text;
} lacking[] = {
	{BB_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM, 0, 1, "iWARP does not support immediate data"},
	{BB_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM, BB_SEND_INLINE, 1,
	 "iWARP does not support immediate data"},
	{BB_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1,
	 "iWARP does not support immediate data"},
	{BB_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, BB_SEND_INLINE, 1,
	 "iWARP does not support immediate data"},
	{BB_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1,
	 "iWARP does not support atomics"},
	{BB_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1,
	 "iWARP does not support atomics"},
	{BB_WR_RDMA_READ, IBV_WR_RDMA_READ, 0, 2,
	 "iWARP does not support READs with more SGEs than max_read_sge of bb_dev_query()"},
};

/* Posts by the function of bb_post.h. */
static int
post_one(struct bb_qp *qp, uint64_t id, const struct bb_sge *s, size_t k)
{
	const bool in = (lacking[k].flags & BB_SEND_INLINE) != 0;
	const void *data = (const void *)(uintptr_t)s->addr;

	switch (lacking[k].opcode) {
	case BB_WR_SEND_WITH_IMM:
		return in ? bb_post_send_imm_inline(qp, id, data, s->len, 7, SIG)
			  : bb_post_send_imm(qp, id, s, 1, 7, SIG);
	case BB_WR_RDMA_WRITE_WITH_IMM:
		return in ? bb_post_write_imm_inline(qp, id, data, s->len, TO, 1, 7, SIG)
			  : bb_post_write_imm(qp, id, s, 1, TO, 1, 7, SIG);
	case BB_WR_ATOMIC_CMP_AND_SWP:
		return bb_post_cmp_swap(qp, id, s, TO, 1, 0, 1, SIG);
	case BB_WR_ATOMIC_FETCH_AND_ADD:
		return bb_post_fetch_add(qp, id, s, TO, 1, 1, SIG);
	default:
		return bb_post_read(qp, id, s, lacking[k].nsge, TO, 1, SIG);
	}
}

static struct bb_send_wr
write_wr(uint64_t id, const struct bb_sge *s)
{
	struct bb_send_wr wr = {
		.wr_id = id, .opcode = BB_WR_RDMA_WRITE, .flags = SIG, .sge = s, .nsge = 1};

	wr.rdma.raddr = TO + 1024;
	wr.rdma.rkey = 1;
	return wr;
}

/* In a list, between two valid requests: rejected at once, and the queue continues. */
static void
check_list(struct fixture *f, const struct bb_sge *s, size_t k)
{
	struct bb_send_wr wr[3] = {write_wr(1, s), write_wr(2, s), write_wr(3, s)};
	int err = 0;

	wr[1].opcode = lacking[k].opcode;
	wr[1].flags |= lacking[k].flags;
	wr[1].nsge = lacking[k].nsge;
	if (lacking[k].opcode == BB_WR_ATOMIC_CMP_AND_SWP ||
	    lacking[k].opcode == BB_WR_ATOMIC_FETCH_AND_ADD) {
		wr[1].atomic.raddr = TO;
		wr[1].atomic.rkey = 1;
		wr[1].atomic.compare_add = 1;
	}
	assert_logged(bb_qp_post_list(f->qp, wr, 3, &err), 1,
		      "the device does not support this operation");
	assert_int_equal(err, -ENOTSUP);
	one(f, 0, 1, BB_WC_RDMA_WRITE);
	assert_int_equal(null_dev.wr_opcodes, 1u << IBV_WR_RDMA_WRITE);
	one(f, bb_qp_post_list(f->qp, wr + 2, 1, &err) == 1 ? 0 : -EAGAIN, 3, BB_WC_RDMA_WRITE);
	assert_int_equal(err, 0);
}

static void
check_lacking(size_t kind, size_t k, bool list)
{
	struct bb_wc wc[3];
	struct bb_sge s[2];
	struct fixture f;

	null_dev.no_atomics = true;
	null_dev.max_sge_rd = 1;
	make_iwarp(&f, kind);
	memset(mem, 0x11, LEN);
	memset(mem + LEN, 0, LEN);
	s[0] = piece(&f, FROM, 8);
	s[1] = piece(&f, FROM + 64, 8);
	if (list) {
		check_list(&f, s, k);
		fixture_free(&f);
		return;
	}
	one(&f, bb_post_write(f.qp, 0, s, 1, TO + 1024, 1, SIG), 0, BB_WC_RDMA_WRITE);
	assert_int_equal(bb_post_write(f.qp, 1, s, 1, TO + 1024, 1, SIG), 0);
	log_begin();
	assert_int_equal(post_one(f.qp, 2, s, k), 0);
	assert_int_equal(bb_post_write(f.qp, 3, s, 1, TO + 2048, 1, SIG), 0);
	bb_qp_ring(f.qp);
	/* One line, which does not blame the provider. */
	fflush(log_file);
	assert_null(strstr(log_text, "provider"));
	log_expect(lacking[k].text);
	/* The request before it executes; those after it are flushed. */
	take(&f, wc, 3);
	assert_fields(wc[0], wr_id, 1, status, BB_WC_SUCCESS);
	assert_fields(wc[1], wr_id, 2, status, BB_WC_LOC_QP_OP_ERR);
	assert_fields(wc[2], wr_id, 3, status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(null_dev.wr_opcodes & 1u << lacking[k].never, 0);
	assert_int_equal(mem[LEN], 0);
	assert_int_equal(mem[LEN + 1024], 0x11);
	assert_int_equal(mem[LEN + 2048], 0);
	assert_int_equal(mem[0], 0x11);
	/* After a reset the queue is as new, and accepts a READ of one piece. */
	state_to(f.qp, BB_QP_RESET);
	up(f.qp);
	one(&f, bb_post_write(f.qp, 4, s, 1, TO, 1, SIG), 4, BB_WC_RDMA_WRITE);
	one(&f, bb_post_read(f.qp, 5, s, 1, TO + 2048, 1, SIG), 5, BB_WC_RDMA_READ);
	assert_int_equal(mem[LEN], 0x11);
	assert_int_equal(mem[0], 0);
	fixture_free(&f);
}

/* Whatever the provider offers, also with ibv_wr_*(). */
T(test_iwarp_refuses_what_it_lacks)
{
	for (size_t kind = 0; kind < RTE_DIM(kinds); kind++)
		for (size_t k = 0; k < RTE_DIM(lacking); k++)
			for (int list = 0; list < 2; list++) {
				setup(state);
				check_lacking(kind, k, list != 0);
				assert_int_equal(teardown(state), 0);
			}
}

/* Features that an iWARP device reports are not refused: atomics, READs of three pieces. */
T_F(test_reported_features_are_not_refused)
{
	struct bb_sge s[4] = {0};
	struct bb_send_wr wr = write_wr(5, s);
	struct bb_wc wc;
	int err;

	null_dev.max_sge_rd = 3;
	make_iwarp(f, 0);
	memset(mem, 0, sizeof(mem));
	for (uint32_t i = 0; i < RTE_DIM(s); i++)
		s[i] = piece(f, FROM + 64 * i, 8);
	one(f, bb_post_fetch_add(f->qp, 1, s, TO, 1, 5, SIG), 1, BB_WC_FETCH_ADD);
	one(f, bb_post_cmp_swap(f->qp, 2, s, TO, 1, 5, 9, SIG), 2, BB_WC_CMP_SWAP);
	assert_int_equal(mem[LEN], 9);
	memset(mem + LEN, 0x33, 64);
	one(f, bb_post_read(f->qp, 3, s, 3, TO, 1, SIG), 3, BB_WC_RDMA_READ);
	assert_int_equal(mem[128 + 7], 0x33);
	/* WRITEs and SENDs have no such limit. */
	one(f, bb_post_write(f->qp, 4, s, 4, TO, 1, SIG), 4, BB_WC_RDMA_WRITE);
	/* Empty pieces of a READ do not count, also in a list; this READ has four others. */
	wr.rdma.raddr = TO;
	wr.opcode = BB_WR_RDMA_READ;
	wr.nsge = 4;
	s[1].len = 0;
	one(f, bb_qp_post_list(f->qp, &wr, 1, &err) == 1 ? 0 : -EAGAIN, 5, BB_WC_RDMA_READ);
	s[1].len = 8;
	assert_int_equal(bb_qp_post_list(f->qp, &wr, 1, &err), 0);
	assert_int_equal(err, -ENOTSUP);
	/* More than the queue's limit is rejected without reading the list. */
	wr.nsge = 5;
	wr.sge = NULL;
	assert_int_equal(bb_qp_post_list(f->qp, &wr, 1, &err), 0);
	assert_int_equal(err, -EINVAL);
	assert_int_equal(bb_post_read(f->qp, 6, s, 4, TO, 1, SIG), 0);
	bb_qp_ring(f->qp);
	take(f, &wc, 1);
	assert_int_equal(wc.status, BB_WC_LOC_QP_OP_ERR);
}

/* ---- siw */

/* A peer's WRITE to a region with another address would not arrive. */
T(test_region_with_another_iova_is_refused)
{
	const uint64_t elsewhere = UINT64_C(0x100000) + (TO & 0xfff);
	struct fixture f;
	struct bb_mr *mr = NULL;
	struct bb_dm *dm;
	uint32_t objects;

	for (int siw = 0; siw < 2; siw++) {
		setup(state);
		null_dev.vendor_id = siw ? SIW_VENDOR_ID : 0;
		make_iwarp(&f, 0);
		objects = null_dev.objects;
		assert_logged(
			bb_mr_reg_iova(f.pd, mem + LEN, 64, elsewhere, BB_ACCESS_LOCAL_WRITE, &mr),
			siw ? -ENOTSUP : 0,
			siw ? "the iova must be the address of the memory in this process, "
			      "because siw ignores the iova"
			    : NULL);
		assert_int_equal(null_dev.objects, siw ? objects : objects + 1);
		assert_true(siw != 0 ? mr == NULL : mr != NULL);
		if (mr != NULL)
			assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(
			bb_mr_reg_iova(f.pd, mem + LEN, 64, TO, BB_ACCESS_LOCAL_WRITE, &mr), 0);
		assert_int_equal(bb_mr_dereg(mr), 0);
		/* A dma-buf or device memory has addresses of its own. */
		assert_int_equal(bb_mr_reg_dmabuf(f.pd, 0, LEN, 0, 1, BB_ACCESS_LOCAL_WRITE, &mr),
				 0);
		assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(bb_dm_alloc(f.dev, 64, 0, &dm), 0);
		assert_int_equal(bb_mr_reg_dm(f.pd, dm, 0, 64, BB_ACCESS_LOCAL_WRITE, &mr), 0);
		assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(bb_dm_free(dm), 0);
		mr = NULL;
		fixture_free(&f);
		assert_int_equal(teardown(state), 0);
	}
}

/* siw refuses a fenced READ, and accepts other fenced requests. */
T(test_siw_refuses_only_a_fenced_read)
{
	struct fixture f;
	struct bb_sge s;

	for (int siw = 0; siw < 2; siw++) {
		setup(state);
		null_dev.vendor_id = siw ? SIW_VENDOR_ID : 0;
		make_iwarp(&f, 0);
		s = piece(&f, FROM, 8);
		one(&f, bb_post_read(f.qp, 1, &s, 1, TO, 1, SIG | BB_SEND_FENCE), 1,
		    BB_WC_RDMA_READ);
		assert_int_equal(null_dev.send_flags,
				 siw ? IBV_SEND_SIGNALED : IBV_SEND_SIGNALED | IBV_SEND_FENCE);
		one(&f, bb_post_write(f.qp, 2, &s, 1, TO, 1, SIG | BB_SEND_FENCE), 2,
		    BB_WC_RDMA_WRITE);
		assert_int_equal(null_dev.send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
		fixture_free(&f);
		assert_int_equal(teardown(state), 0);
	}
}

/* siw and rxe raise no event for flushed receives, so all completions are requested. */
T(test_all_completions_are_requested)
{
	enum {
		OTHER,
		SIW,
		RXE
	};
	struct fixture f;

	for (int kind = OTHER; kind <= RXE; kind++) {
		setup(state);
		null_dev.vendor_id = kind == SIW ? SIW_VENDOR_ID : 0;
		if (kind == SIW)
			make_iwarp(&f, 0);
		else
			make(&f, BB_QPT_RC, false, kind == RXE ? RTE_DIM(kinds) - 1 : 0);
		assert_int_equal(null_dev.rxe, kind == RXE);
		assert_int_equal(bb_cq_arm(f.cq, true), 0);
		assert_int_equal(null_dev.solicited_only, kind == OTHER);
		assert_int_equal(bb_cq_arm(f.cq, false), 0);
		assert_false(null_dev.solicited_only);
		fixture_free(&f);
		assert_int_equal(teardown(state), 0);
	}
}

static enum bb_qp_state
asked(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	assert_int_equal(bb_qp_query(qp, &attr), 0);
	return attr.state;
}

/*
 * A provider that reports no state, but RESET or INIT. Then the library's state is used, on iWARP
 * only.
 */
static void
check_query(void **state, enum ibv_qp_state said)
{
	struct ibv_qp_attr theirs = {.qp_state = IBV_QPS_ERR};
	struct fixture f;

	setup(state);
	null_dev.no_state = true;
	null_dev.said_state = said;
	make_iwarp(&f, 0);
	assert_int_equal(asked(f.qp), BB_QP_RTS);
	state_to(f.qp, BB_QP_ERR);
	assert_int_equal(asked(f.qp), BB_QP_ERR);
	state_to(f.qp, BB_QP_RESET);
	assert_int_equal(asked(f.qp), BB_QP_RESET);
	state_to(f.qp, BB_QP_INIT);
	assert_int_equal(asked(f.qp), BB_QP_INIT);
	/* A provider that reports a state is believed. */
	null_dev.no_state = false;
	up(f.qp);
	assert_int_equal(ibv_modify_qp(verbs_qp_of(f.qp)->ib, &theirs, IBV_QP_STATE), 0);
	assert_int_equal(asked(f.qp), BB_QP_ERR);
	fixture_free(&f);
	assert_int_equal(teardown(state), 0);
	setup(state);
	make(&f, BB_QPT_RC, false, 0);
	null_dev.no_state = true;
	null_dev.said_state = said;
	assert_int_equal(asked(f.qp), said == IBV_QPS_RESET ? BB_QP_RESET : BB_QP_INIT);
	fixture_free(&f);
}

T(test_query_falls_back_to_the_state_of_the_library)
{
	check_query(state, IBV_QPS_RESET);
	check_query(state, IBV_QPS_INIT);
}

/*
 * Created before all other queues, deep enough for the offset, and kept until the device closes.
 */
T(test_siw_device_opens_with_a_low_cq)
{
	struct bb_dev *dev;
	uint32_t n;
	int ret;

	for (int siw = 0; siw < 2; siw++) {
		setup(state);
		null_dev.iwarp = true;
		null_dev.vendor_id = siw ? SIW_VENDOR_ID : 0;
		assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
		/* The context and this CQ. */
		assert_int_equal(null_dev.objects, siw ? 2 : 1);
		if (siw != 0) {
			assert_int_equal(null_dev.objects_before_cq, 1);
			assert_true(null_dev.cq_depth * SIW_CQE > SIW_NO_OFFSET);
			assert_true(null_dev.cq_depth * SIW_CQE <= 1 << 20);
		} else {
			assert_true(null_dev.cq_depth * SIW_CQE < 4096);
		}
		assert_int_equal(bb_dev_close(dev), 0);
		assert_int_equal(null_dev.objects, 0);
	}
	/*
	 * If it cannot be created, as without memory, the device still opens. A failed open
	 * leaves none.
	 */
	for (n = 1;; n++) {
		setup(state);
		null_dev.iwarp = true;
		null_dev.vendor_id = SIW_VENDOR_ID;
		null_dev.fail_at = n;
		null_dev.fail_errno = ENOMEM;
		ret = bb_dev_open(NULL_NAME, &dev);
		null_dev.fail_at = 0;
		if (ret == 0)
			assert_int_equal(bb_dev_close(dev), 0);
		if (!null_dev.failed)
			break;
		if (strncmp(null_dev.failed_call, "ibv_de", 6) != 0)
			assert_int_equal(null_dev.objects, 0);
	}
	assert_int_equal(ret, 0);
	assert_true(n > 5);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
