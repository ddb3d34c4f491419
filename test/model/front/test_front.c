/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The front with mailboxes of Linux's driver: objects by page lists, users, data, events. */
#include <sys/stat.h>
#include <unistd.h>

#include "front_guest.h"
#include "front_priv.h"
#include "soft_hooks.h"
#include "soft_mcg.h"
#include "soft_shm.h"

#define T(name) TEST_ON(NULL, NULL, struct g_guest, open_ib(f), g_close(f), name)

#define SEND 0x0a
#define UMR  0x25

static void
open_ib(struct g_guest *g)
{
	g_open(g, "soft0,link=ib");
}

static uint8_t
pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

T(test_write_moves_data_between_page_lists)
{
	struct g_owner u;
	const uint8_t *e;
	uint32_t i;

	g_owner_open(f, &u);
	for (i = 0; i < G_BYTES; i++)
		*g_at(f, &u.from, G_VA_FROM % PAGE + i) = pattern(i);
	g_post_write(f, &u);
	e = g_cqe(f, &u.cq);
	assert_int_equal(e[63] >> 4, 0);
	assert_int_equal(bb_prm_dword(e, 56) & 0xffffff, u.qp.qpn);
	for (i = 0; i < G_BYTES; i++)
		assert_int_equal(*g_at(f, &u.to, G_VA_TO % PAGE + i), pattern(i));
	assert_int_equal(*(g_at(f, &u.to, G_VA_TO % PAGE) - 1), 0);
	assert_int_equal(*g_at(f, &u.to, G_VA_TO % PAGE + G_BYTES), 0);
	g_owner_close(f, &u);
	assert_int_equal(f->windows, 0);
}

/* The arm request is in the doorbell record; the register only makes the device read it. */
static void
arm(struct g_guest *g, const struct g_cq *cq, uint32_t uar)
{
	uint32_t request = (g->comps & 3) << 28 | (cq->ci & 0xffffff);
	uint8_t bell[8];

	bb_put32(g_ram(g, cq->dbr) + 4, request);
	bb_put32(bell, request);
	bb_put32(bell + 4, cq->cqn);
	front_doorbell(g->f, uar, 0x20, bell, sizeof(bell));
}

T(test_armed_cq_writes_one_entry_to_its_event_queue)
{
	struct g_owner u;

	g_owner_open(f, &u);
	g_post_write(f, &u);
	(void)g_cqe(f, &u.cq);
	(void)front_poll(f->f);
	assert_int_equal(f->comps, 0);
	arm(f, &u.cq, u.uar);
	g_post_write(f, &u);
	(void)g_cqe(f, &u.cq);
	(void)front_poll(f->f);
	assert_int_equal(f->comps, 1);
	assert_int_equal(f->comp_eqn, EQN);
	assert_int_equal(f->comp_cqn, u.cq.cqn);
	g_owner_close(f, &u);
}

T(test_failed_qp_raises_an_event_with_its_number)
{
	struct g_owner u;
	uint8_t w[64];

	g_owner_open(f, &u);
	/* A peer's G_WRITE to a key that does not exist. */
	wqe_head(&u.qp, w, G_WRITE, 3, G_CQE_UPDATE);
	bb_put64(w + 16, G_VA_TO);
	bb_put32(w + 24, u.to_key ^ 0xff);
	bb_put32(w + 32, 8);
	bb_put32(w + 36, u.from_key);
	bb_put64(w + 40, G_VA_FROM);
	g_post(f, &u.qp, w, sizeof(w));
	g_ring(f, &u.qp, w, 8);
	assert_int_equal(g_cqe(f, &u.cq)[63] >> 4, 0xd);
	(void)front_poll(f->f);
	assert_true(f->events != 0);
	assert_int_equal(f->event_type, BB_PRM_EVENT_WQ_ACCESS_ERROR);
	assert_int_equal(bb_prm_dword(f->event, 24), u.qp.qpn);
	g_owner_close(f, &u);
}

/* More QPs of one CQ than a context of the device keeps events for. */
T(test_overrun_of_a_cq_is_reported_for_each_of_its_qps)
{
	const uint32_t qps = 300;
	struct g_qp qp = {0};
	struct g_owner u;
	uint8_t w[64];
	uint32_t i;

	g_owner_open(f, &u);
	/* The QPs share a ring and a doorbell record, which stays 0. */
	g_qp(f, &qp, u.uid, BB_PRM_QP_ST_UD, u.pd, u.uar, u.cq.cqn);
	g_qp_up(f, &qp, u.uid, u.pd, u.cq.cqn, 0);
	for (i = 1; i < qps; i++) {
		g_qp_box(f, &qp, u.uid, u.pd, u.uar, u.cq.cqn);
		assert_status(f, OK);
		qp.qpn = bb_prm_get(f->out, BB_PRM_CREATE_QP_OUT_QPN);
		g_qp_up(f, &qp, u.uid, u.pd, u.cq.cqn, 0);
	}
	for (i = 0; i <= 1u << u.cq.log; i++) {
		wqe_head(&u.qp, w, 0, 1, G_CQE_UPDATE);
		g_post(f, &u.qp, w, sizeof(w));
		g_ring(f, &u.qp, w, 8);
	}
	/* The events that the guest's queue has no room for wait. */
	f->max_events = 100;
	(void)front_poll(f->f);
	assert_int_equal(f->events, 100);
	f->max_events = UINT32_MAX;
	(void)front_poll(f->f);
	/* The CQ, the QPs, and the QP that has overrun the CQ. */
	assert_int_equal(f->events, 1 + qps + 1);
}

/* The guest reads one event at a time, so that some events always wait for room. */
T(test_list_of_events_does_not_grow_with_reported_events)
{
	struct mlx5_cmd_event ev = {.type = BB_PRM_EVENT_PORT_CHANGE};
	struct front_user *kernel = &f->f->users[0];
	const uint32_t pending = 5;
	uint32_t i;

	f->max_events = 0;
	for (i = 0; i < 10000 + pending; i++) {
		ev.port = i % 16;
		front_event_add(kernel, &ev);
		if (i < pending)
			continue;
		f->max_events++;
		(void)front_poll(f->f);
		assert_int_equal(f->events, f->max_events);
		assert_int_equal(bb_prm_get(f->event, BB_PRM_EQE_PORT) >> 4, (i - pending) % 16);
		assert_int_equal(kernel->n_events, pending);
	}
}

/* Events beyond the limit are reported without room, so that the queue of the guest overruns. */
T(test_limit_of_pending_events_is_that_of_all_users)
{
	const struct mlx5_cmd_event ev = {.type = BB_PRM_EVENT_PORT_CHANGE};
	const uint32_t limit = 1u << 19, each = limit / 2;
	struct front_user *users[] = {&f->f->users[0], &f->f->users[g_user(f)], &f->f->shared};
	uint32_t i;

	f->max_events = 0;
	for (i = 0; i < 3 * each; i++)
		front_event_add(users[i / each], &ev);
	(void)front_poll(f->f);
	assert_int_equal(f->events, 3 * each - limit);
}

/* Each command of another user, by the object's number; the owner and the kernel succeed later. */
T(test_user_cannot_use_objects_of_another_user)
{
	struct g_owner u;
	struct g_cq cq = {0};
	struct g_qp qp = {0};
	uint16_t other;
	uint32_t uar, pd, windows;

	g_owner_open(f, &u);
	other = g_user(f);
	uar = g_alloc(f, BB_PRM_OP_ALLOC_UAR, other);
	pd = g_alloc(f, BB_PRM_OP_ALLOC_PD, other);
	g_cq(f, &cq, other, uar);
	windows = f->windows;
	const struct {
		uint16_t op;
		uint32_t number;
	} named[] = {
		{BB_PRM_OP_QUERY_QP, u.qp.qpn},      {BB_PRM_OP_2RST_QP, u.qp.qpn},
		{BB_PRM_OP_2ERR_QP, u.qp.qpn},       {BB_PRM_OP_DESTROY_QP, u.qp.qpn},
		{BB_PRM_OP_DESTROY_CQ, u.cq.cqn},    {BB_PRM_OP_DESTROY_MKEY, u.to_key >> 8},
		{BB_PRM_OP_DEALLOC_PD, u.pd},        {BB_PRM_OP_DEALLOC_UAR, u.uar},
		{BB_PRM_OP_DESTROY_UMEM, 0x1000},    {BB_PRM_OP_DESTROY_UCTX, u.uid},
		{BB_PRM_OP_DESTROY_RMP, 0x80},       {BB_PRM_OP_DEALLOC_TRANSPORT_DOMAIN, 1},
		{BB_PRM_OP_DEALLOC_XRCD, 0xffffff},  {BB_PRM_OP_DESTROY_XRC_SRQ, 0},
		{BB_PRM_OP_DEALLOC_Q_COUNTER, 0xff},
	};
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		assert_int_equal(run_on(f, named[i].op, other, named[i].number),
				 BB_PRM_STAT_BAD_RES);
	/* Parts of new objects. */
	qp = u.qp;
	g_qp_box(f, &qp, other, u.pd, uar, cq.cqn);
	assert_status(f, BAD_RES);
	g_qp_box(f, &qp, other, pd, u.uar, cq.cqn);
	assert_status(f, BAD_RES);
	g_qp_box(f, &qp, other, pd, uar, u.cq.cqn);
	assert_status(f, BAD_RES);
	g_mkey_box(f, other, u.pd, G_VA_TO, G_BYTES, &u.to);
	assert_status(f, BAD_RES);
	g_cq_box(f, &cq, other, u.uar);
	assert_status(f, BAD_RES);
	/* A user that does not exist. */
	g_cq_box(f, &cq, 200, uar);
	assert_status(f, BAD_RES);
	assert_int_equal(f->windows, windows);
	g_qp_box(f, &qp, other, pd, uar, cq.cqn);
	assert_status(f, OK);
	/* The kernel resets a user's QP. */
	assert_int_equal(run_on(f, BB_PRM_OP_2RST_QP, 0, u.qp.qpn), BB_PRM_STAT_OK);
	g_owner_close(f, &u);
}

T(test_shared_counter_set_serves_each_user)
{
	struct g_owner u;
	uint32_t set;
	uint8_t *qpc;

	g_owner_open(f, &u);
	box(f, BB_PRM_OP_ALLOC_Q_COUNTER, 0xffff, 16);
	assert_status(f, OK);
	set = bb_prm_get(f->out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	assert_int_equal(run_on(f, BB_PRM_OP_2RST_QP, u.uid, u.qp.qpn), BB_PRM_STAT_OK);
	qpc = g_qp_modify_box(f, &u.qp, u.uid, BB_PRM_OP_RST2INIT_QP, u.pd, u.cq.cqn);
	bb_prm_set(qpc, BB_PRM_QPC_COUNTER_SET_ID, set);
	assert_status(f, OK);
	/* Only its owner and the kernel destroy it, and only after its last QP. */
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_Q_COUNTER, u.uid, set), BB_PRM_STAT_BAD_RES);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_Q_COUNTER, 0, set), BB_PRM_STAT_RES_BUSY);
	g_owner_close(f, &u);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_Q_COUNTER, 0, set), BB_PRM_STAT_OK);
}

/* Builds CREATE_UMEM of DEVX; the kernel knows no length. */
static uint32_t
umem(struct g_guest *g, uint16_t uid, uint32_t offset, const struct pages *p, uint64_t flags)
{
	uint8_t *u = box(g, BB_PRM_OP_CREATE_UMEM, uid, BB_PRM_SZ_CREATE_UMEM_IN) + 0x10;

	bb_prm_set(u, BB_PRM_UMEM_PAGE_OFFSET, offset);
	bb_prm_set64(u, BB_PRM_UMEM_NUM_OF_MTT, p->n);
	box_list(g, p, flags);
	return run(g);
}

T(test_umem_of_pages_holds_a_cq)
{
	uint16_t uid = g_user(f);
	uint32_t uar = g_alloc(f, BB_PRM_OP_ALLOC_UAR, uid), id, ro, cqn;
	struct pages p = g_pages(f, 3);
	uint8_t *cqc;

	assert_int_equal(umem(f, uid, 0x80, &p, 1), BB_PRM_STAT_OK);
	ro = bb_prm_get(f->out, BB_PRM_CREATE_UMEM_OUT_ID);
	assert_int_equal(umem(f, uid, 0x80, &p, 3), BB_PRM_STAT_OK);
	id = bb_prm_get(f->out, BB_PRM_CREATE_UMEM_OUT_ID);
	for (int writable = 0; writable < 2; writable++) {
		cqc = box(f, BB_PRM_OP_CREATE_CQ, uid, 0x110) + 0x10;
		bb_prm_set(f->in, BB_PRM_CREATE_CQ_UMEM_VALID, 1);
		bb_prm_set(f->in, BB_PRM_CREATE_CQ_UMEM_ID, writable ? id : ro);
		bb_prm_set64(f->in, BB_PRM_CREATE_CQ_UMEM_OFFSET, 64);
		bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, 7);
		bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, uar);
		bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_VALID, 1);
		bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, id);
		bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, 0x2800);
		assert_int_equal(run(f), writable ? BB_PRM_STAT_OK : BB_PRM_STAT_BAD_PARAM);
	}
	cqn = bb_prm_get(f->out, BB_PRM_CREATE_CQ_OUT_CQN);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UMEM, uid, id), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_CQ, uid, cqn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UMEM, uid, id), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UMEM, uid, ro), BB_PRM_STAT_OK);
	assert_int_equal(f->windows, 0);
}

/* A QP with an SRQ and no send queue: mlx5_ib lists no pages. Here it has no receives either. */
T(test_qp_without_a_ring_needs_no_pages)
{
	struct g_owner u;
	struct g_qp qp;
	uint8_t *qpc;

	g_owner_open(f, &u);
	qp = u.qp;
	qp.ring.n = 0;
	g_qp_box(f, &qp, u.uid, u.pd, u.uar, u.cq.cqn);
	qpc = bb_prm_sub(f->in, BB_PRM_CREATE_QP_QPC);
	bb_prm_set(qpc, BB_PRM_QPC_NO_SQ, 1);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, 0);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, 0);
	bb_prm_set(qpc, BB_PRM_QPC_PAGE_OFFSET, 0);
	bb_prm_set(qpc, BB_PRM_QPC_RQ_TYPE, BB_PRM_RQ_TYPE_ZERO);
	assert_status(f, OK);
	qp.qpn = bb_prm_get(f->out, BB_PRM_CREATE_QP_OUT_QPN);
	g_qp_up(f, &qp, u.uid, u.pd, u.cq.cqn, u.qp.qpn);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_QP, u.uid, qp.qpn), BB_PRM_STAT_OK);
	g_owner_close(f, &u);
	assert_int_equal(f->windows, 0);
}

/*
 * libmlx5 frees a UAR while a CQ that the program has left uses it (perftest's ib_send_bw). The
 * kernel then destroys the CQ and the user.
 */
T(test_uar_freed_before_its_cq_and_qp_goes_with_the_last_of_them)
{
	struct g_owner u;
	struct g_cq cq;
	struct g_qp qp;
	uint8_t w[64];

	g_owner_open(f, &u);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_UAR, u.uid, u.uar), BB_PRM_STAT_OK);
	/* The UAR is gone: for another free, for a new queue, and for a doorbell. */
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_UAR, u.uid, u.uar), BB_PRM_STAT_BAD_RES);
	cq = u.cq;
	g_cq_box(f, &cq, u.uid, u.uar);
	assert_status(f, BAD_RES);
	qp = u.qp;
	g_qp_box(f, &qp, u.uid, u.pd, u.uar, u.cq.cqn);
	assert_status(f, BAD_RES);
	wqe_head(&u.qp, w, 0, 1, G_CQE_UPDATE);
	g_post(f, &u.qp, w, sizeof(w));
	front_doorbell(f->f, u.uar, 0x800, w, 8);
	(void)front_poll(f->f);
	assert_int_equal(g_at(f, &u.cq.ring, u.cq.offset)[63] >> 4, 0xf);
	/* Its number is not given again while queues use the page. */
	assert_int_not_equal(g_alloc(f, BB_PRM_OP_ALLOC_UAR, 0), u.uar);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_QP, u.uid, u.qp.qpn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_MKEY, 0, u.from_key >> 8), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_MKEY, 0, u.to_key >> 8), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_PD, u.uid, u.pd), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UCTX, 0, u.uid), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_CQ, u.uid, u.cq.cqn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UCTX, 0, u.uid), BB_PRM_STAT_OK);
	assert_int_equal(f->windows, 0);
}

T(test_reset_destroys_all_objects_and_users)
{
	struct g_owner u, v;

	g_owner_open(f, &u);
	g_owner_open(f, &v);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_UAR, v.uid, v.uar), BB_PRM_STAT_OK);
	front_reset(f->f);
	assert_int_equal(f->windows, 0);
	assert_int_equal(run_on(f, BB_PRM_OP_QUERY_QP, 0, u.qp.qpn), BB_PRM_STAT_BAD_RES);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_UCTX, 0, u.uid), BB_PRM_STAT_BAD_RES);
	f->next = 0;
	g_owner_open(f, &u);
	g_post_write(f, &u);
	assert_int_equal(g_cqe(f, &u.cq)[63] >> 4, 0);
	g_owner_close(f, &u);
}

/* ---- Queues of the kernel itself: uid 0 */

struct kernel {
	uint32_t uar, pd;
	struct g_cq cq;
	struct g_qp qp;
};

static void
kernel_open(struct g_guest *g, struct kernel *k, uint32_t st)
{
	memset(k, 0, sizeof(*k));
	k->uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, 0);
	k->pd = g_alloc(g, BB_PRM_OP_ALLOC_PD, 0);
	g_cq(g, &k->cq, 0, k->uar);
	g_qp(g, &k->qp, 0, st, st == BB_PRM_QP_ST_REG_UMR ? 0 : k->pd, k->uar, k->cq.cqn);
	g_qp_up(g, &k->qp, 0, k->pd, k->cq.cqn, 0);
}

T(test_blueflame_copy_and_not_the_ring_is_executed)
{
	struct kernel k;
	uint8_t w[64];

	/* As in mlx5_ib_test_wc(): only the copy asks for a G_CQE_UPDATE. */
	kernel_open(f, &k, BB_PRM_QP_ST_UD);
	wqe_head(&k.qp, w, 0, 1, 0);
	g_post(f, &k.qp, w, sizeof(w));
	w[11] = G_CQE_UPDATE;
	g_ring(f, &k.qp, w, sizeof(w));
	assert_int_equal(g_cqe(f, &k.cq)[63] >> 4, 0);
}

T(test_management_datagram_to_nobody_completes)
{
	struct pages mad = g_pages(f, 1);
	struct kernel k;
	uint8_t w[128], *mkc;
	uint32_t key;

	kernel_open(f, &k, BB_PRM_QP_ST_QP1);
	mkc = box(f, BB_PRM_OP_CREATE_MKEY, 0, 0x110) + 0x10;
	bb_prm_set(mkc, BB_PRM_MKC_LENGTH64, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, k.pd);
	assert_status(f, OK);
	key = bb_prm_get(f->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
	/* First from a page of RAM, then from an address after it. */
	for (int bad = 0; bad < 2; bad++) {
		wqe_head(&k.qp, w, SEND, 5, G_CQE_UPDATE);
		bb_put32(w + 16, 0x80010000);
		bb_put32(w + 24, 1u << 31 | 1);
		bb_put32(w + 28, 9);
		bb_put32(w + 64, 256);
		bb_put32(w + 68, key);
		bb_put64(w + 72, bad ? (uint64_t)RAM_PAGES * PAGE : mad.pa[0]);
		memset(w + 80, 0, sizeof(w) - 80);
		g_post(f, &k.qp, w, sizeof(w));
		g_ring(f, &k.qp, w, 8);
		assert_int_equal(g_cqe(f, &k.cq)[63] >> 4, bad ? 0xd : 0);
	}
}

/* Posts a UMR of the key. @mask: fields to change, @access: byte of the rights. */
static uint8_t
umr(struct g_guest *g, struct kernel *k, uint32_t key, uint64_t mask, uint8_t access, uint32_t pd)
{
	uint8_t w[128];

	wqe_head(&k->qp, w, UMR, 8, G_CQE_UPDATE);
	bb_put32(w + 12, key);
	w[16] = 0x80 | 2 << 5; /* inline, fail if free */
	bb_put64(w + 24, mask);
	w[64 + 2] = access;
	bb_put32(w + 64 + 4, 0xffffff00 | (key & 0xff));
	bb_put32(w + 64 + 12, pd);
	g_post(g, &k->qp, w, sizeof(w));
	g_ring(g, &k->qp, w, 8);
	return g_cqe(g, &k->cq)[63] >> 4;
}

T(test_umr_of_the_kernel_changes_rights_and_pd_of_an_mr)
{
	const uint64_t rights = 1u << 17 | 1u << 18 | 1u << 19 | 1u << 20, pd_mask = 1u << 7;
	struct kernel k;
	struct g_owner u;
	uint32_t other;

	kernel_open(f, &k, BB_PRM_QP_ST_REG_UMR);
	g_owner_open(f, &u);
	other = g_alloc(f, BB_PRM_OP_ALLOC_PD, u.uid);
	assert_int_equal(umr(f, &k, u.to_key, rights, 1 << 2 | 1 << 3, 0), 0);
	g_post_write(f, &u);
	assert_int_equal(g_cqe(f, &u.cq)[63] >> 4, 0xd);
	/* To another PD, which the key then keeps in use. */
	assert_int_equal(umr(f, &k, u.to_key, pd_mask, 0, other), 0);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_PD, u.uid, other), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(umr(f, &k, u.to_key, pd_mask, 0, u.pd), 0);
	assert_int_equal(run_on(f, BB_PRM_OP_DEALLOC_PD, u.uid, other), BB_PRM_STAT_OK);
	/* A PD that does not exist; the queue fails, the key stays. */
	assert_int_equal(umr(f, &k, u.to_key, pd_mask, 0, 0xffffff), 0xd);
	g_owner_close(f, &u);
}

static int shared_fd;

/* Pretends that a file backs the first page of each region. */
static bool
shared(const uint8_t *addr, uint64_t len, struct soft_memory *m)
{
	struct stat st;

	(void)addr;
	assert_int_equal(fstat(shared_fd, &st), 0);
	*m = (struct soft_memory){.fd = shared_fd,
				  .dev = st.st_dev,
				  .ino = st.st_ino,
				  .len = len < PAGE ? len : PAGE};
	return true;
}

/* Peers in shared memory that use a published key look at its entry only. */
TEST(test_published_key_grants_no_right_that_a_umr_has_taken)
{
	const struct soft_shm_key *entry;
	struct g_guest g;
	struct kernel k;
	struct pages p;
	char spec[64];
	uint32_t key;

	snprintf(spec, sizeof(spec), "soft0,shm=umr%d,ip=192.0.2.1/24", (int)getpid());
	g_open(&g, spec);
	shared_fd = g.fd;
	soft_dev_peek(0)->memory = shared;
	kernel_open(&g, &k, BB_PRM_QP_ST_REG_UMR);
	p = g_pages(&g, 1);
	key = g_mkey(&g, k.pd, G_VA_FROM, 100, &p);
	entry = &soft_dev_peek(0)->shm->dir->keys[key >> 8];
	assert_int_equal(umr(&g, &k, key, 1u << 17 | 1u << 18 | 1u << 19 | 1u << 20, 1 << 2, 0), 0);
	assert_true((entry->seq & 1) == 0 || entry->rights == 0);
	g_close(&g);
}

/* bb_hca blocks guest memory while the function may not use DMA, and could not stop such peers. */
TEST(test_key_over_guest_memory_is_not_published)
{
	const struct soft_shm_dir *dir;
	struct g_guest g;
	struct pages p;
	char spec[64];
	uint32_t pd;

	snprintf(spec, sizeof(spec), "soft0,shm=guest%d,ip=192.0.2.1/24", (int)getpid());
	g_open(&g, spec);
	dir = soft_dev_peek(0)->shm->dir;
	pd = g_alloc(&g, BB_PRM_OP_ALLOC_PD, 0);
	p = g_pages(&g, 4);
	g_mkey_box(&g, 0, pd, G_VA_FROM, G_BYTES, &p);
	bb_prm_set(g.in + BB_PRM_CREATE_MKEY_MKC.byte, BB_PRM_MKC_UMR_EN, 0);
	assert_status(&g, OK);
	assert_int_equal(dir->keys[bb_prm_get(g.out, BB_PRM_CREATE_MKEY_OUT_INDEX)].seq & 1, 0);
	g_close(&g);
}

/* The kernel's CQs are on a UAR page of their own: mlx5_core_dev.priv.uar. */
T(test_each_register_rings_and_a_cq_on_another_page_raises_its_event)
{
	struct kernel k;
	struct g_owner u;
	uint32_t page = g_alloc(f, BB_PRM_OP_ALLOC_UAR, 0);

	memset(&k, 0, sizeof(k));
	g_owner_open(f, &u);
	k.uar = g_alloc(f, BB_PRM_OP_ALLOC_UAR, 0);
	k.pd = g_alloc(f, BB_PRM_OP_ALLOC_PD, 0);
	g_cq(f, &k.cq, 0, page);
	g_qp(f, &k.qp, 0, BB_PRM_QP_ST_REG_UMR, 0, k.uar, k.cq.cqn);
	arm(f, &k.cq, page);
	g_qp_up(f, &k.qp, 0, k.pd, k.cq.cqn, 0);
	for (uint32_t i = 1; i <= 8; i++) {
		f->bell = 0x800 + (i - 1) * 0x100; /* each half of the four registers */
		assert_int_equal(umr(f, &k, u.to_key, 1u << 7, 0, u.pd), 0);
		(void)front_poll(f->f);
		assert_int_equal(f->comps, i);
		assert_int_equal(f->comp_cqn, k.cq.cqn);
		arm(f, &k.cq, page);
	}
	g_owner_close(f, &u);
}

TEST_MAIN(0)
