/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The verbs driver on the null provider: transitions of QPs, their attributes, and paths. */
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

static void
wide(struct ibv_device_attr_ex *a, struct ibv_port_attr *port)
{
	(void)a;
	if (port != NULL)
		*port = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
					       .active_mtu = IBV_MTU_4096,
					       .gid_tbl_len = 3,
					       .pkey_tbl_len = 0x5000,
					       .link_layer = null_dev.infiniband
								     ? IBV_LINK_LAYER_INFINIBAND
								     : IBV_LINK_LAYER_ETHERNET};
}

/* Every byte of it differs. */
static const struct bb_path path = {
	.dgid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	.sgid_index = 2,
	.hop_limit = 17,
	.traffic_class = 18,
	.sl = 5,
	.flow_label = 0x54321,
	.dlid = 0x2021,
	.is_global = 1,
	.port = 1,
	.src_path_bits = 22,
	.static_rate = 3,
};

static void
check_path(const struct ibv_ah_attr *a, const struct bb_path *p, bool ib)
{
	assert_fields(*a, sl, 5, port_num, 1, static_rate, 3, dlid, ib ? 0x2021 : 0);
	assert_fields(*a, src_path_bits, ib ? 22 : 0, is_global, !ib || p->is_global);
	if (a->is_global == 0)
		return;
	assert_memory_equal(a->grh.dgid.raw, p->dgid, 16);
	assert_fields(a->grh, flow_label, 0x54321, sgid_index, 2, traffic_class, 18);
	assert_int_equal(a->grh.hop_limit, p->hop_limit != 0 ? p->hop_limit : 64);
}

/* Ethernet uses GIDs only, InfiniBand LIDs and, on request, GIDs. */
T(test_path_uses_gids_or_lids_by_link)
{
	struct bb_path p;
	struct bb_pd *pd;
	struct bb_dev *dev;
	struct bb_ah *ah;

	null_dev.attr = wide;
	for (int ib = 0; ib < 2; ib++) {
		null_dev.infiniband = ib != 0;
		assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
		assert_int_equal(bb_pd_alloc(dev, &pd), 0);
		for (int n = 0; n < 4; n++) {
			p = path;
			if (ib == 0)
				p.src_path_bits = 0;
			p.is_global = n & 1;
			p.hop_limit = (n & 2) != 0 ? 17 : 0;
			assert_int_equal(bb_ah_create(pd, &p, &ah), 0);
			check_path(&null_dev.ah, &p, ib != 0);
			assert_int_equal(bb_ah_destroy(ah), 0);
		}
		ah = NULL;
		null_dev.fail_errno = ETIMEDOUT;
		null_dev.fail_at = 3; /* after the queries of port and GID */
		assert_logged(bb_ah_create(pd, &p, &ah), -ETIMEDOUT,
			      "check that the peer is in the neighbour table");
		assert_null(ah);
		assert_int_equal(bb_pd_free(pd), 0);
		assert_int_equal(bb_dev_close(dev), 0);
	}
}

/* ---- Attributes: each reaches its field and its bit of the mask */

static void
fill(struct bb_qp_attr *attr)
{
	bb_qp_attr_init(attr);
	attr->access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	attr->pkey_index = 0x4321;
	attr->path_mtu = 2048;
	attr->dest_qpn = 0x123456;
	attr->rq_psn = 0x234567;
	attr->sq_psn = 0x345678;
	attr->max_rd_atomic = 3;
	attr->max_dest_rd_atomic = 4;
	attr->min_rnr_timer = 25;
	attr->timeout = 26;
	attr->retry_cnt = 6;
	attr->rnr_retry = 5;
	attr->qkey = 0x11223344;
	attr->path = path;
}

static void
check_attr(bool ib)
{
	const struct ibv_qp_attr *a = &null_dev.qp_attr;
	const int mask = null_dev.qp_mask;

	if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
		assert_int_equal(a->qp_access_flags,
				 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if ((mask & IBV_QP_PKEY_INDEX) != 0)
		assert_int_equal(a->pkey_index, 0x4321);
	if ((mask & IBV_QP_PORT) != 0)
		assert_int_equal(a->port_num, 1);
	if ((mask & IBV_QP_PATH_MTU) != 0)
		assert_int_equal(a->path_mtu, IBV_MTU_2048);
	if ((mask & IBV_QP_DEST_QPN) != 0)
		assert_int_equal(a->dest_qp_num, 0x123456);
	if ((mask & IBV_QP_RQ_PSN) != 0)
		assert_int_equal(a->rq_psn, 0x234567);
	if ((mask & IBV_QP_SQ_PSN) != 0)
		assert_int_equal(a->sq_psn, 0x345678);
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		assert_int_equal(a->max_rd_atomic, 3);
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0)
		assert_int_equal(a->max_dest_rd_atomic, 4);
	if ((mask & IBV_QP_MIN_RNR_TIMER) != 0)
		assert_int_equal(a->min_rnr_timer, 25);
	if ((mask & IBV_QP_TIMEOUT) != 0)
		assert_int_equal(a->timeout, 26);
	if ((mask & IBV_QP_RETRY_CNT) != 0)
		assert_int_equal(a->retry_cnt, 6);
	if ((mask & IBV_QP_RNR_RETRY) != 0)
		assert_int_equal(a->rnr_retry, 5);
	if ((mask & IBV_QP_QKEY) != 0)
		assert_int_equal(a->qkey, 0x11223344);
	if ((mask & IBV_QP_AV) != 0)
		check_path(&a->ah_attr, &path, ib);
}

struct step {
	enum bb_qp_state to;
	uint32_t mask;
	enum ibv_qp_state state;
	int want; /* besides IBV_QP_STATE */
};

#define INIT_ATTRS (BB_QP_PKEY_INDEX | BB_QP_PORT)
#define INIT_WANT  (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PEER_ATTRS (BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN)
#define PEER_WANT  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

static const struct step rc[] = {
	{BB_QP_INIT, INIT_ATTRS | BB_QP_ACCESS, IBV_QPS_INIT, INIT_WANT | IBV_QP_ACCESS_FLAGS},
	{BB_QP_RTR, PEER_ATTRS | BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER, IBV_QPS_RTR,
	 PEER_WANT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
	{BB_QP_RTS,
	 BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN | BB_QP_MAX_RD_ATOMIC,
	 IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC},
	{BB_QP_RTS, BB_QP_ACCESS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS},
	{BB_QP_RTS, BB_QP_MIN_RNR_TIMER, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER},
	{BB_QP_ERR, 0, IBV_QPS_ERR, 0},
	{BB_QP_RESET, 0, IBV_QPS_RESET, 0},
};
static const struct step uc[] = {
	{BB_QP_INIT, INIT_ATTRS | BB_QP_ACCESS, IBV_QPS_INIT, INIT_WANT | IBV_QP_ACCESS_FLAGS},
	{BB_QP_RTR, PEER_ATTRS, IBV_QPS_RTR, PEER_WANT},
	{BB_QP_RTS, BB_QP_SQ_PSN, IBV_QPS_RTS, IBV_QP_SQ_PSN},
	{BB_QP_RESET, 0, IBV_QPS_RESET, 0},
};
static const struct step ud[] = {
	{BB_QP_INIT, INIT_ATTRS | BB_QP_QKEY, IBV_QPS_INIT, INIT_WANT | IBV_QP_QKEY},
	{BB_QP_RTR, 0, IBV_QPS_RTR, 0},
	{BB_QP_RTS, BB_QP_SQ_PSN, IBV_QPS_RTS, IBV_QP_SQ_PSN},
	{BB_QP_RTS, BB_QP_QKEY, IBV_QPS_RTS, IBV_QP_QKEY},
	{BB_QP_ERR, 0, IBV_QPS_ERR, 0},
};

/* Makes a QP in RESET. */
static void
fresh(struct fixture *f, enum bb_qp_type type)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	make(f, type, false, 0);
	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
}

static void
steps(enum bb_qp_type type, const struct step *s, size_t n, bool ib)
{
	struct bb_qp_attr attr;
	struct fixture f;

	null_dev.attr = wide;
	fresh(&f, type);
	fill(&attr);
	/* The fixture's address is of an Ethernet port; an InfiniBand port has none. */
	f.dev->ethernet = !ib;
	if (!ib)
		attr.path.src_path_bits = 0;
	for (size_t i = 0; i < n; i++) {
		null_dev.infiniband = ib;
		attr.state = s[i].to;
		assert_int_equal(bb_qp_modify(f.qp, &attr, BB_QP_STATE | s[i].mask), 0);
		assert_int_equal(null_dev.qp_attr.qp_state, s[i].state);
		assert_int_equal(null_dev.qp_mask, IBV_QP_STATE | s[i].want);
		check_attr(ib);
		assert_int_equal(f.qp->state, s[i].to);
	}
	fixture_free(&f);
	null_reset();
}

T(test_attributes_reach_the_provider)
{
	for (int ib = 0; ib < 2; ib++) {
		steps(BB_QPT_RC, rc, RTE_DIM(rc), ib != 0);
		steps(BB_QPT_UC, uc, RTE_DIM(uc), ib != 0);
		steps(BB_QPT_UD, ud, RTE_DIM(ud), ib != 0);
	}
}

T_F(test_mtu_is_translated)
{
	static const enum ibv_mtu mtus[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
					    IBV_MTU_4096};
	struct bb_qp_attr attr;

	null_dev.attr = wide;
	for (size_t i = 0; i < RTE_DIM(mtus); i++) {
		fresh(f, BB_QPT_UC);
		fill(&attr);
		attr.path.src_path_bits = 0;
		attr.path_mtu = 256u << i;
		attr.state = BB_QP_INIT;
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE | uc[0].mask), 0);
		attr.state = BB_QP_RTR;
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE | uc[1].mask), 0);
		assert_int_equal(null_dev.qp_attr.path_mtu, mtus[i]);
		fixture_free(f);
	}
}

/* ---- To ERR, and the state that a query returns */

/* rxe cannot go from RESET to ERR: the driver goes through INIT, and later posts are flushed. */
T_F(test_reset_to_err_goes_through_init)
{
	static const enum bb_qp_type types[] = {BB_QPT_RC, BB_QPT_UC, BB_QPT_UD};
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_wc wc;

	attr.state = BB_QP_ERR;
	for (size_t i = 0; i < RTE_DIM(types); i++) {
		null_dev.no_reset_to_err = true;
		fresh(f, types[i]);
		/* The first step is refused, then the second, which leaves the QP in INIT. */
		null_dev.fail_errno = EPERM;
		null_dev.fail_at = 2;
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), -EPERM);
		assert_int_equal(f->qp->state, BB_QP_RESET);
		null_dev.fail_at = 3;
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), -EPERM);
		assert_fields(null_dev.qp_attr, qp_state, IBV_QPS_INIT, port_num, 1);
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
		assert_fields(null_dev, qp_attr.qp_state, IBV_QPS_ERR, qp_mask, IBV_QP_STATE);
		assert_int_equal(bb_post_nop(f->qp, 1, 0), 0);
		bb_qp_ring(f->qp);
		take(f, &wc, 1);
		assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
		fixture_free(f);
		null_reset();
	}
	/* Any other refusal is returned. */
	make(f, BB_QPT_RC, false, 0);
	null_dev.fail_errno = EINVAL;
	null_dev.fail_at = 1;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), -EINVAL);
	assert_int_equal(f->qp->state, BB_QP_RTS);
	assert_int_equal(null_dev.qp_attr.qp_state, IBV_QPS_RTS);
	fixture_free(f);
	fresh(f, BB_QPT_RC);
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 1;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), -EIO);
	assert_int_equal(null_dev.qp_attr.qp_state, IBV_QPS_RESET);
}

/* An unreachable peer is a network problem, and the log says so. */
T_F(test_unreachable_peer_is_logged_as_such)
{
	static const int errs[] = {ENETUNREACH, EHOSTUNREACH, ETIMEDOUT};
	struct bb_qp_attr attr;

	for (size_t i = 0; i < RTE_DIM(errs) + 1; i++) {
		const int err = i < RTE_DIM(errs) ? errs[i] : EINVAL;

		fresh(f, BB_QPT_RC);
		fill(&attr);
		attr.state = BB_QP_INIT;
		null_dev.fail_errno = err;
		null_dev.fail_at = 2; /* beyond the port's P_Key table */
		log_begin();
		assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE | rc[0].mask), -err);
		fflush(log_file);
		assert_int_equal(
			strstr(log_text, "check that the peer is in the neighbour table") != NULL,
			i < RTE_DIM(errs));
		log_expect("RESET to INIT");
		assert_int_equal(f->qp->state, BB_QP_RESET);
		fixture_free(f);
	}
}

T_F(test_query_translates_the_state)
{
	static const struct {
		enum ibv_qp_state theirs;
		enum bb_qp_state ours;
	} states[] = {
		{IBV_QPS_RESET, BB_QP_RESET}, {IBV_QPS_INIT, BB_QP_INIT}, {IBV_QPS_RTR, BB_QP_RTR},
		{IBV_QPS_RTS, BB_QP_RTS},     {IBV_QPS_SQD, BB_QP_SQD},   {IBV_QPS_SQE, BB_QP_ERR},
		{IBV_QPS_ERR, BB_QP_ERR},
	};
	struct bb_qp_attr attr;

	for (size_t i = 0; i < RTE_DIM(states); i++) {
		struct ibv_qp_attr a = {.qp_state = states[i].theirs};

		make(f, BB_QPT_RC, false, 0);
		assert_int_equal(ibv_modify_qp(verbs_qp_of(f->qp)->ib, &a, IBV_QP_STATE), 0);
		assert_int_equal(bb_qp_query(f->qp, &attr), 0);
		assert_int_equal(attr.state, states[i].ours);
		attr.state = BB_QP_SQD;
		null_dev.fail_errno = EIO;
		null_dev.fail_at = 1;
		assert_logged(bb_qp_query(f->qp, &attr), -EIO, "cannot query QP");
		assert_int_equal(attr.state, BB_QP_SQD);
		fixture_free(f);
	}
}

/* ---- The address of a GID, which a thread resolves so that the caller never waits */

static sem_t kernel_answers, kernel_asked;

static void
kernel_waits(void)
{
	sem_post(&kernel_asked);
	while (sem_wait(&kernel_answers) != 0)
		;
}

static int
ready_at_last(struct bb_dev *dev, const struct bb_path *to)
{
	time_t end = time(NULL) + 60;
	int ret;

	while ((ret = dev->drv->path_ready(dev, to)) == -EAGAIN) {
		assert_true(time(NULL) < end);
		sched_yield();
	}
	return ret;
}

TEST(test_path_is_asked_for_by_another_thread)
{
	struct bb_path to = path;
	struct bb_dev *dev;
	int asked;

	null_reset();
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	assert_int_equal(sem_init(&kernel_answers, 0, 0), 0);
	assert_int_equal(sem_init(&kernel_asked, 0, 0), 0);
	to.sgid_index = 0;
	null_dev.on_ah = kernel_waits;
	for (int i = 0; i < 100; i++)
		assert_int_equal(dev->drv->path_ready(dev, &to), -EAGAIN);
	while (sem_wait(&kernel_asked) != 0)
		;
	/* All calls share one query. */
	assert_int_equal(dev->drv->path_ready(dev, &to), -EAGAIN);
	sem_post(&kernel_answers);
	assert_int_equal(ready_at_last(dev, &to), 0);
	assert_int_equal(sem_getvalue(&kernel_asked, &asked), 0);
	assert_int_equal(asked, 0);
	/*
	 * The answer is valid for as long as the kernel retains a neighbour; accept queries
	 * again.
	 */
	for (int i = 0; i < 100; i++)
		assert_int_equal(dev->drv->path_ready(dev, &to), 0);
	assert_int_equal(sem_getvalue(&kernel_asked, &asked), 0);
	assert_int_equal(asked, 0);
	/*
	 * The second call of libibverbs creates the address handle. A refusal is reported once.
	 */
	to.dgid[15]++;
	null_dev.fail_at = 2;
	null_dev.fail_errno = EHOSTUNREACH;
	assert_int_equal(ready_at_last(dev, &to), -EHOSTUNREACH);
	null_dev.fail_at = 0;
	/* The device is closed after the answer. */
	assert_int_equal(dev->drv->path_ready(dev, &to), -EAGAIN);
	sem_post(&kernel_answers);
	assert_int_equal(bb_dev_close(dev), 0);
	assert_int_equal(null_dev.objects, 0);
	/* InfiniBand has no address to resolve. */
	null_reset();
	null_dev.infiniband = true;
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	assert_int_equal(dev->drv->path_ready(dev, &to), 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
