/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Page faults: a request finds that a page is missing, and waits for the kernel. These tests run on
 * a device without packets, and on one that sends packets (ODP_DEVICE).
 */
#include "bb_cqe.h"
#include "odp_guest.h"

#define SEND 0x0a
#define READ 0x10

#define T(name) TEST_ON(NULL, NULL, struct odp, odp_open(f, ODP_DEVICE), odp_close(f), name)

T(test_write_to_missing_pages_waits_until_they_are_loaded)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events;

	odp_write(f, key, VA + 2 * PAGE + 3, G_BYTES);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_RDMA);
	assert_int_equal(bb_get32(f->g.event + 4), key);
	assert_int_equal(bb_get32(f->g.event + 12), G_BYTES);
	assert_int_equal(bb_get64(f->g.event + 16), VA + 2 * PAGE + 3);
	assert_int_equal(bb_get32(f->g.event + 24), 6u << 24 | f->u.qp.qpn);
	odp_assert_waits(f);
	odp_update(f, key, 0, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 6, f->u.qp.qpn, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA + 2 * PAGE + 3, G_BYTES);
	/* The kernel takes the pages away, then loads them without write access. */
	for (int read_only = 0; read_only < 2; read_only++) {
		odp_update(f, key, 0, read_only ? READ_PAGE : 0);
		seen = f->g.events;
		odp_write(f, key, VA + PAGE, 16);
		odp_wait_fault(f, seen);
		odp_update(f, key, 0, WRITE_PAGE);
		assert_int_equal(odp_resume(f, 0, 6, f->u.qp.qpn, f->u.qp.qpn, false),
				 BB_PRM_STAT_OK);
		assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
		odp_assert_arrived(f, VA + PAGE, 16);
	}
}

/* An answer without the page causes another page fault. An answer with an error fails the QP. */
T(test_answer_without_the_page_and_with_an_error)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events;

	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen);
	assert_int_equal(odp_resume(f, 0, 6, 0, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	odp_wait_fault(f, seen + 1);
	assert_int_equal(odp_resume(f, 0, 6, 0, f->u.qp.qpn, true), BB_PRM_STAT_OK);
	/* The QP is its own peer. Packets reach it after it has failed as the responder. */
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55],
			 strstr(ODP_DEVICE, "wire") != NULL ? BB_SYN_WR_FLUSH : BB_SYN_REMOTE_OP);
}

T(test_missing_page_of_a_local_buffer_is_a_fault_of_the_wqe)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events, index = f->u.qp.pi;

	odp_post(f, G_WRITE, f->u.to_key, G_VA_TO, key, VA + 4 * PAGE, 64);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_WQE);
	assert_int_equal(bb_get32(f->g.event + 4), index);
	assert_int_equal(bb_get32(f->g.event + 12), f->u.qp.qpn);
	assert_int_equal(bb_get32(f->g.event + 24), 1u << 24 | f->u.qp.qpn);
	odp_assert_waits(f);
	memset(g_at(&f->g, &f->mem, 4 * PAGE), 0x3c, 64);
	odp_update(f, key, 0, READ_PAGE); /* the buffer is only read */
	assert_int_equal(odp_resume(f, 0, 1, f->u.qp.qpn, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	assert_int_equal(*g_at(&f->g, &f->u.to, G_VA_TO % PAGE + 63), 0x3c);
	odp_update(f, key, 0, 0);
	seen = f->g.events;
	odp_post(f, G_WRITE, f->u.to_key, G_VA_TO, key, VA + 4 * PAGE, 64);
	odp_wait_fault(f, seen);
	assert_int_equal(odp_resume(f, 0, 1, f->u.qp.qpn, f->u.qp.qpn, true), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55], BB_SYN_LOCAL_PROT);
}

T(test_missing_page_of_a_receive_is_a_fault_of_its_wqe)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events;
	uint8_t w[64] = {0}, *recv = g_at(&f->g, &f->u.qp.ring, f->u.qp.offset);

	bb_put32(recv, 32);
	bb_put32(recv + 4, key);
	bb_put64(recv + 8, VA + 3 * PAGE);
	bb_put32(g_ram(&f->g, f->u.qp.dbr), 1);
	wqe_head(&f->u.qp, w, SEND, 2, G_CQE_UPDATE);
	bb_put32(w + 16, 32);
	bb_put32(w + 20, f->u.from_key);
	bb_put64(w + 24, G_VA_FROM);
	*g_at(&f->g, &f->u.from, G_VA_FROM % PAGE + 31) = 0x77;
	g_post(&f->g, &f->u.qp, w, sizeof(w));
	g_ring(&f->g, &f->u.qp, w, 8);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_WQE);
	assert_int_equal(bb_get32(f->g.event + 4), 0);
	assert_int_equal(bb_get32(f->g.event + 24), 2u << 24 | f->u.qp.qpn);
	odp_update(f, key, 0, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 2, f->u.qp.qpn, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, BB_CQE_RESP_SEND);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, BB_CQE_REQ);
	assert_int_equal(*g_at(&f->g, &f->mem, 3 * PAGE + 31), 0x77);
}

/* A message of several packets. The pages of its first packets are present. */
T(test_long_write_to_a_missing_page_waits_and_arrives_whole)
{
	const uint64_t va = VA + 7 * PAGE - 2000;
	uint32_t key = odp_key(f, 0), seen;

	odp_update(f, key, 0, WRITE_PAGE);
	seen = f->g.events;
	odp_write(f, key, va, G_BYTES);
	odp_wait_fault(f, seen);
	assert_int_equal(bb_get32(f->g.event + 12), G_BYTES);
	assert_int_equal(bb_get64(f->g.event + 16), va);
	odp_assert_waits(f);
	odp_update(f, key, 8, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 6, f->u.qp.qpn, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, va, G_BYTES);
}

/* The memory that a READ names is missing, then the memory of the requester. */
T(test_read_waits_for_missing_pages_at_both_ends)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events, qpn = f->u.qp.qpn;

	memset(g_at(&f->g, &f->mem, PAGE), 0x4d, 300);
	odp_post(f, READ, key, VA + PAGE, f->u.to_key, G_VA_TO, 300);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_RDMA);
	assert_int_equal(bb_get32(f->g.event + 24), 4u << 24 | qpn);
	odp_assert_waits(f);
	odp_update(f, key, 0, READ_PAGE);
	assert_int_equal(odp_resume(f, 0, 4, qpn, qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	assert_int_equal(*g_at(&f->g, &f->u.to, G_VA_TO % PAGE + 299), 0x4d);
	/* The page does not allow writes. */
	seen = f->g.events;
	odp_post(f, READ, f->u.to_key, G_VA_TO, key, VA + 3 * PAGE + 1, 300);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_WQE);
	assert_int_equal(bb_get32(f->g.event + 24), 3u << 24 | qpn);
	odp_assert_waits(f);
	odp_update(f, key, 0, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 3, qpn, qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	assert_int_equal(*g_at(&f->g, &f->mem, 3 * PAGE + 300), 0x4d);
}

/* Sends 64 bytes of the key at @va from a UD QP to itself, which has no receive. */
static void
ud_send(struct odp *o, struct g_qp *ud, uint32_t key, uint64_t va)
{
	uint8_t w[128] = {0}, *av = w + 16;

	wqe_head(ud, w, SEND, 5, G_CQE_UPDATE);
	bb_put32(av, 0x80000000);             /* the QP's own Q_Key */
	bb_put32(av + 8, 1u << 31 | ud->qpn); /* an extended address vector */
	if (o->g.path == NULL) {
		bb_put16(av + 14, 1);
	} else {
		memcpy(av + 20, o->path.mac, sizeof(o->path.mac));
		av[27] = 64;
		memcpy(av + 32, o->path.gid, sizeof(o->path.gid));
	}
	bb_put32(w + 64, 64);
	bb_put32(w + 68, key);
	bb_put64(w + 72, va);
	g_post(&o->g, ud, w, sizeof(w));
	g_ring(&o->g, ud, w, 8);
}

T(test_send_of_a_datagram_waits_for_its_page)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events;
	struct g_qp ud;

	g_qp(&f->g, &ud, f->u.uid, BB_PRM_QP_ST_UD, f->u.pd, f->u.uar, f->u.cq.cqn);
	g_qp_up(&f->g, &ud, f->u.uid, f->u.pd, f->u.cq.cqn, 0);
	ud_send(f, &ud, key, VA + PAGE + 5);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_WQE);
	assert_int_equal(bb_get32(f->g.event + 24), 1u << 24 | ud.qpn);
	odp_assert_waits(f);
	odp_update(f, key, 0, READ_PAGE);
	assert_int_equal(odp_resume(f, 0, 1, ud.qpn, ud.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	seen = f->g.events;
	ud_send(f, &ud, key, VA + 9 * PAGE);
	odp_wait_fault(f, seen);
	assert_int_equal(odp_resume(f, 0, 1, ud.qpn, ud.qpn, true), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55], BB_SYN_LOCAL_PROT);
}

T(test_answers_without_a_page_fault_are_refused)
{
	uint32_t key = odp_key(f, 0), qpn = f->u.qp.qpn, seen = f->g.events;

	assert_int_equal(odp_resume(f, 0, 6, qpn, qpn, false), BB_PRM_STAT_BAD_RES_STATE);
	assert_int_equal(odp_resume(f, 0, 6, 0xffffff, 0xffffff, false), BB_PRM_STAT_BAD_RES);
	assert_int_equal(odp_resume(f, 0, 6, 0, 0, false), BB_PRM_STAT_BAD_RES);
	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen);
	assert_int_equal(odp_resume(f, f->u.uid, 6, qpn, qpn, false), BB_PRM_STAT_BAD_RES);
	for (uint32_t type = 0; type < 8; type++)
		if (type != 6)
			assert_int_equal(odp_resume(f, 0, type, qpn, qpn, true),
					 BB_PRM_STAT_BAD_RES_STATE);
	assert_int_equal(odp_resume(f, 0, 6, qpn, qpn ^ 1, true), BB_PRM_STAT_BAD_RES);
	odp_assert_waits(f);
	odp_update(f, key, 0, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 6, qpn, qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	assert_int_equal(odp_resume(f, 0, 6, qpn, qpn, false), BB_PRM_STAT_BAD_RES_STATE);
}

/* Resets the owner's QP, which waits for a page. */
static void
reset_qp(struct odp *o)
{
	assert_int_equal(run_on(&o->g, BB_PRM_OP_2RST_QP, 0, o->u.qp.qpn), BB_PRM_STAT_OK);
	o->u.qp.pi = 0;
	bb_put32(g_ram(&o->g, o->u.qp.dbr) + 4, 0);
}

static void
arm_qp(struct odp *o)
{
	g_qp_up(&o->g, &o->u.qp, o->u.uid, o->u.pd, o->u.cq.cqn, o->u.qp.qpn);
}

/* Returns the token of the last page fault, which is one of memory that a peer names. */
static uint32_t
token_of(const struct odp *o)
{
	return bb_get32(o->g.event + 24) & 0xffffff;
}

/* A QP of the owner with its own UAR page, and so with its own engine. */
struct other {
	uint32_t uar;
	struct g_cq cq;
	struct g_qp qp;
};

/* Connects the owner's QP to the QP of another engine. */
static void
connect_other(struct odp *o, struct other *b)
{
	struct g_owner *u = &o->u;

	memset(b, 0, sizeof(*b));
	b->uar = g_alloc(&o->g, BB_PRM_OP_ALLOC_UAR, u->uid);
	g_cq(&o->g, &b->cq, u->uid, b->uar);
	g_qp(&o->g, &b->qp, u->uid, BB_PRM_QP_ST_RC, u->pd, b->uar, b->cq.cqn);
	g_qp_up(&o->g, &b->qp, u->uid, u->pd, b->cq.cqn, u->qp.qpn);
	reset_qp(o);
	g_qp_up(&o->g, &u->qp, u->uid, u->pd, u->cq.cqn, b->qp.qpn);
}

/*
 * The requester's engine finds the page and passes the SEND to the engine of the target. The kernel
 * takes the page away before that engine reads the data.
 */
TEST_ON(NULL, NULL, struct odp, odp_open(f, "soft0,link=ib"), odp_close(f),
	test_send_waits_if_its_page_goes_before_the_target_reads_it)
{
	uint32_t key = odp_key(f, READ_PAGE), seen;
	uint8_t w[64] = {0}, *recv;
	struct other b;

	connect_other(f, &b);
	recv = g_at(&f->g, &b.qp.ring, b.qp.offset);
	bb_put32(recv, 32);
	bb_put32(recv + 4, f->u.to_key);
	bb_put64(recv + 8, G_VA_TO);
	bb_put32(g_ram(&f->g, b.qp.dbr), 1);
	*g_at(&f->g, &f->mem, PAGE + 31) = 0x5e;
	wqe_head(&f->u.qp, w, SEND, 2, G_CQE_UPDATE);
	bb_put32(w + 16, 32);
	bb_put32(w + 20, key);
	bb_put64(w + 24, VA + PAGE);
	g_post(&f->g, &f->u.qp, w, sizeof(w));
	seen = f->g.events;
	g_ring(&f->g, &f->u.qp, w, 8);
	odp_update(f, key, 0, 0);
	odp_wait_fault(f, seen);
	assert_int_equal(f->g.event_sub, PF_WQE);
	assert_int_equal(bb_get32(f->g.event + 24), 1u << 24 | f->u.qp.qpn);
	odp_assert_waits(f);
	odp_update(f, key, 0, READ_PAGE);
	assert_int_equal(odp_resume(f, 0, 1, f->u.qp.qpn, f->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, BB_CQE_REQ);
	assert_int_equal(g_cqe(&f->g, &b.cq)[63] >> 4, BB_CQE_RESP_SEND);
	assert_int_equal(*g_at(&f->g, &f->u.to, G_VA_TO % PAGE + 31), 0x5e);
}

/* QPs that are reset while they wait for a page, more than may have pending page faults. */
T(test_queues_reset_while_they_wait_give_their_page_faults_back)
{
	uint32_t key = odp_key(f, 0), qpn = f->u.qp.qpn, seen, i;

	for (i = 0; i < 1100; i++) {
		seen = f->g.events;
		odp_write(f, key, VA, 8);
		odp_wait_fault(f, seen);
		reset_qp(f);
		/* The kernel answers late. */
		assert_int_equal(odp_resume(f, 0, 6, 0, token_of(f), false), BB_PRM_STAT_OK);
		arm_qp(f);
	}
	seen = f->g.events;
	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_QP, f->u.uid, qpn), BB_PRM_STAT_OK);
	assert_int_equal(odp_resume(f, 0, 6, 0, token_of(f), false), BB_PRM_STAT_BAD_RES);
}

/* The kernel answers a page fault of a request that the QP has lost with an error. */
T(test_late_answer_does_not_apply_to_the_page_fault_of_a_later_request)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events, late, token;

	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen);
	late = token_of(f);
	reset_qp(f);
	arm_qp(f);
	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen + 1);
	token = token_of(f);
	assert_int_not_equal(token, late);
	assert_int_equal(odp_resume(f, 0, 6, 0, late, true), BB_PRM_STAT_OK);
	odp_assert_waits(f);
	/* The answer to a page fault that has not been yet is refused. */
	assert_int_equal(odp_resume(f, 0, 6, 0, token + (token - late), true),
			 BB_PRM_STAT_BAD_RES_STATE);
	odp_update(f, key, 0, WRITE_PAGE);
	assert_int_equal(odp_resume(f, 0, 6, 0, token, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA, 8);
}

/* The kernel gets no report of a page fault whose QP has lost the request meanwhile. */
T(test_page_fault_that_is_not_fetched_ends_with_its_queue)
{
	uint32_t key = odp_key(f, 0), qpn = f->u.qp.qpn, seen = f->g.events;
	int i;

	odp_write(f, key, VA, 8);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_2RST_QP, 0, qpn), BB_PRM_STAT_OK);
	g_poll(&f->g);
	f->u.qp.pi = 0;
	bb_put32(g_ram(&f->g, f->u.qp.dbr) + 4, 0);
	g_qp_up(&f->g, &f->u.qp, f->u.uid, f->u.pd, f->u.cq.cqn, qpn);
	odp_write(f, key, VA, 8);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_QP, f->u.uid, qpn), BB_PRM_STAT_OK);
	for (i = 0; i < 20; i++)
		g_poll(&f->g);
	assert_int_equal(f->g.events, seen);
}

T(test_reset_forgets_page_faults)
{
	uint32_t key = odp_key(f, 0), seen = f->g.events, token = f->u.qp.qpn;

	odp_write(f, key, VA, 8);
	odp_wait_fault(f, seen);
	front_reset(f->g.f);
	assert_int_equal(f->g.windows, 0);
	assert_int_equal(odp_resume(f, 0, 6, token, token, false), BB_PRM_STAT_BAD_RES);
	(void)front_poll(f->g.f);
	assert_int_equal(f->g.events, seen + 1);
}

/* Linux registers memory on demand only if it may load translations by UMR. */
TEST(test_capabilities_allow_umrs_and_memory_on_demand_together)
{
	static const struct {
		const char *device;
		bool odp;
	} kinds[] = {{"soft1,link=ib", true}, {"soft1,link=ib,no_odp", false}};
	const uint8_t *rc;
	uint8_t caps[256];
	struct g_guest g;
	size_t i;

	for (i = 0; i < 2; i++) {
		g_open(&g, kinds[i].device);
		assert_int_equal(front_caps(g.f, BB_PRM_CAP_GENERAL, true, caps), 0);
		assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_PG), kinds[i].odp);
		assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_NULL_MKEY), kinds[i].odp);
		assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_UMR_MODIFY_ENTITY_SIZE_DISABLED),
				 !kinds[i].odp);
		assert_int_equal(front_caps(g.f, BB_PRM_CAP_ODP, true, caps) == 0, kinds[i].odp);
		assert_int_equal(bb_prm_get(caps, BB_PRM_ODP_CAP_MEM_PAGE_FAULT), 0);
		rc = bb_prm_csub(bb_prm_csub(caps, BB_PRM_ODP_CAP_TRANSPORT), BB_PRM_ODP_SCHEME_RC);
		/* send, receive, write, read, atomic and srq_receive */
		assert_int_equal(bb_prm_dword(rc, 0) >> 26, kinds[i].odp ? 0x3f : 0);
		/* UD: send */
		assert_int_equal(bb_prm_dword(rc, 8) >> 26, kinds[i].odp ? 0x20 : 0);
		g_close(&g);
	}
}

T(test_kernel_asks_for_the_null_key)
{
	box(&f->g, BB_PRM_OP_QUERY_SPECIAL_CONTEXTS, 0, 16);
	assert_int_equal(run(&f->g), BB_PRM_STAT_OK);
	assert_int_equal(bb_prm_get(f->g.out, BB_PRM_QUERY_SPECIAL_CONTEXTS_OUT_NULL_MKEY), 0xff);
}

TEST_MAIN(g_needs_paging())
