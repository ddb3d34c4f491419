/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Mailboxes of a hostile guest: lists that are too short, or name no memory, and odd fields. Also
 * messages that take long.
 */
#include "bb_barrier.h"
#include "front_guest.h"
#include "front_priv.h"

#define CQC 0x10
#define QPC 0x18
#define MKC 0x10

struct edit {
	struct bb_prm_field f;
	uint16_t base;
	uint64_t v;
};

struct bad {
	const char *what;
	uint32_t status;
	struct edit edit[2];
	int32_t grow; /* bytes by which the mailbox gets longer */
};

static void
apply(struct g_guest *g, const struct bad *b)
{
	size_t i;

	for (i = 0; i < 2 && b->edit[i].f.width != 0; i++) {
		if (b->edit[i].f.width > 32)
			bb_prm_set64(g->in + b->edit[i].base, b->edit[i].f, b->edit[i].v);
		else
			bb_prm_set(g->in + b->edit[i].base, b->edit[i].f, (uint32_t)b->edit[i].v);
	}
	g->in_len += (uint32_t)b->grow;
}

#define LIST(i) BB_PRM_F(0x110 + 8 * (i), 0, 64)
#define OUTSIDE ((uint64_t)RAM_PAGES * PAGE)

static const struct bad bad_cq[] = {
	{"no list", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -16},
	{"list one short", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -8},
	{"half an entry", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -4},
	{"short mailbox", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -24},
	{"page outside", BB_PRM_STAT_BAD_PARAM, {{LIST(1), 0, OUTSIDE}}, 0},
	{"page near 2^64", BB_PRM_STAT_BAD_PARAM, {{LIST(0), 0, UINT64_MAX}}, 0},
	{"record outside", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_CQC_DBR_ADDR, CQC, OUTSIDE}}, 0},
	{"record off 8", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_CQC_DBR_ADDR, CQC, 0x1004}}, 0},
	{"record near 2^64",
	 BB_PRM_STAT_BAD_PARAM,
	 {{BB_PRM_CQC_DBR_ADDR, CQC, UINT64_MAX - 7}},
	 0},
	{"ring of 256 MiB", BB_PRM_STAT_BAD_INP_LEN, {{BB_PRM_CQC_LOG_CQ_SIZE, CQC, 22}}, 0},
	{"pages of 2^43", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_CQC_LOG_PAGE_SIZE, CQC, 31}}, 0},
	{"pages of 2^40", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_CQC_LOG_PAGE_SIZE, CQC, 28}}, 0},
	{"offset at the end",
	 BB_PRM_STAT_BAD_INP_LEN,
	 {{BB_PRM_CQC_PAGE_OFFSET, CQC, 63}, {BB_PRM_CQC_LOG_CQ_SIZE, CQC, 7}},
	 0},
	{"umem that does not exist", BB_PRM_STAT_BAD_RES, {{BB_PRM_CREATE_CQ_UMEM_VALID, 0, 1}}, 0},
};

static const struct bad bad_qp[] = {
	{"no list", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -16},
	{"page outside", BB_PRM_STAT_BAD_PARAM, {{LIST(1), 0, OUTSIDE}}, 0},
	{"record outside", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_QPC_DBR_ADDR, QPC, OUTSIDE}}, 0},
	{"ring longer than the list",
	 BB_PRM_STAT_BAD_INP_LEN,
	 {{BB_PRM_QPC_LOG_SQ_SIZE, QPC, 15}},
	 0},
	{"pages of 2^43", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_QPC_LOG_PAGE_SIZE, QPC, 31}}, 0},
	{"QP1 of a user", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_QPC_ST, QPC, BB_PRM_QP_ST_QP1}}, 0},
	{"UMR queue of a user",
	 BB_PRM_STAT_BAD_PARAM,
	 {{BB_PRM_QPC_ST, QPC, BB_PRM_QP_ST_REG_UMR}},
	 0},
	{"unknown type", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_QPC_ST, QPC, 255}}, 0},
	{"a real SRQ", BB_PRM_STAT_BAD_RES, {{BB_PRM_QPC_RQ_TYPE, QPC, 1}}, 0},
	{"reserved bit", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_F(0x0c0, 0, 1), QPC, 1}}, 0},
	{"placeholder with a umem",
	 BB_PRM_STAT_BAD_PARAM,
	 {{BB_PRM_CREATE_QP_WQ_UMEM_VALID, 0, 1}},
	 0},
};

static const struct bad bad_mkey[] = {
	{"no list", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -16},
	{"list longer than said",
	 BB_PRM_STAT_BAD_INP_LEN,
	 {{BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 0}},
	 0},
	{"length beyond the list", BB_PRM_STAT_BAD_INP_LEN, {{BB_PRM_MKC_LEN, MKC, 8193}}, 0},
	{"no length", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_LEN, MKC, 0}}, 0},
	{"length of 2^64 - 1", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_LEN, MKC, UINT64_MAX}}, 0},
	{"end past 2^64",
	 BB_PRM_STAT_BAD_PARAM,
	 {{BB_PRM_MKC_START_ADDR, MKC, UINT64_MAX - 64}},
	 0},
	{"pages of 2^11", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_LOG_PAGE_SIZE, MKC, 11}}, 0},
	{"pages of 2 GiB", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_LOG_PAGE_SIZE, MKC, 31}}, 0},
	{"page outside", BB_PRM_STAT_BAD_PARAM, {{LIST(0), 0, OUTSIDE}}, 0},
	{"PD that does not exist", BB_PRM_STAT_BAD_RES, {{BB_PRM_MKC_PD, MKC, 0xffffff}}, 0},
	{"remote write without local write", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_LW, MKC, 0}}, 0},
	{"key of one QP", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_QPN, MKC, 7}}, 0},
	{"mode 4", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_MKC_ACCESS_MODE_4_2, MKC, 1}}, 0},
};

static const struct bad bad_umem[] = {
	{"no pages", BB_PRM_STAT_BAD_INP_LEN, {{BB_PRM_UMEM_NUM_OF_MTT, 0x10, 0}}, 0},
	{"2^61 pages",
	 BB_PRM_STAT_BAD_INP_LEN,
	 {{BB_PRM_UMEM_NUM_OF_MTT, 0x10, UINT64_C(1) << 61}},
	 0},
	{"more pages than listed", BB_PRM_STAT_BAD_INP_LEN, {{BB_PRM_UMEM_NUM_OF_MTT, 0x10, 3}}, 0},
	{"offset after the pages",
	 BB_PRM_STAT_BAD_PARAM,
	 {{BB_PRM_UMEM_PAGE_OFFSET, 0x10, 8192}},
	 0},
	{"pages of 2^43", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_UMEM_LOG_PAGE_SIZE, 0x10, 31}}, 0},
	{"page outside", BB_PRM_STAT_BAD_PARAM, {{BB_PRM_F(0x30, 0, 64), 0, OUTSIDE}}, 0},
	{"short mailbox", BB_PRM_STAT_BAD_INP_LEN, {{{0}, 0, 0}}, -20},
};

struct made {
	struct g_guest g;
	uint16_t uid;
	uint32_t uar, pd;
	struct g_cq cq, new_cq;
	struct g_qp qp;
	struct pages p;
};

static void
made_open(struct made *m)
{
	memset(m, 0, sizeof(*m));
	g_open(&m->g, "soft0,link=ib");
	m->uid = g_user(&m->g);
	m->uar = g_alloc(&m->g, BB_PRM_OP_ALLOC_UAR, m->uid);
	m->pd = g_alloc(&m->g, BB_PRM_OP_ALLOC_PD, m->uid);
	g_cq(&m->g, &m->cq, m->uid, m->uar);
	m->new_cq = m->cq;
	m->qp = (struct g_qp){.log_sq = 6, .offset = 2048, .ring = g_pages(&m->g, 2)};
	m->qp.dbr = g_pages(&m->g, 1).pa[0];
	m->p = g_pages(&m->g, 2);
}

static void
made_close(struct made *m)
{
	g_close(&m->g);
}

static void
legal_cq(struct made *m)
{
	g_cq_box(&m->g, &m->new_cq, m->uid, m->uar);
}

static void
legal_qp(struct made *m)
{
	g_qp_box(&m->g, &m->qp, m->uid, m->pd, m->uar, m->cq.cqn);
}

static void
legal_mkey(struct made *m)
{
	g_mkey_box(&m->g, 0, m->pd, 0x10000, 8192, &m->p);
}

static void
legal_umem(struct made *m)
{
	uint8_t *u = box(&m->g, BB_PRM_OP_CREATE_UMEM, m->uid, BB_PRM_SZ_CREATE_UMEM_IN) + 0x10;

	bb_prm_set64(u, BB_PRM_UMEM_NUM_OF_MTT, m->p.n);
	box_list(&m->g, &m->p, 3);
}

/* Each case is refused with its status and leaves nothing; the unchanged mailbox is then taken. */
static void
table(struct made *m, const struct bad *bad, size_t n, void (*legal)(struct made *m))
{
	uint32_t windows = m->g.windows, status;
	size_t i;

	for (i = 0; i < n; i++) {
		legal(m);
		apply(&m->g, &bad[i]);
		status = run(&m->g);
		if (status != bad[i].status)
			fail_msg("%s: status 0x%x, not 0x%x", bad[i].what, status, bad[i].status);
		if (m->g.windows != windows)
			fail_msg("%s: a window is left", bad[i].what);
	}
	legal(m);
	assert_int_equal(run(&m->g), BB_PRM_STAT_OK);
}

#define T(name) TEST_ON(NULL, NULL, struct made, made_open(f), made_close(f), name)

T(test_bad_create_cq_is_refused)
{
	table(f, bad_cq, sizeof(bad_cq) / sizeof(bad_cq[0]), legal_cq);
}

T(test_bad_create_qp_is_refused)
{
	table(f, bad_qp, sizeof(bad_qp) / sizeof(bad_qp[0]), legal_qp);
}

T(test_bad_create_mkey_is_refused)
{
	table(f, bad_mkey, sizeof(bad_mkey) / sizeof(bad_mkey[0]), legal_mkey);
}

T(test_bad_create_umem_is_refused)
{
	table(f, bad_umem, sizeof(bad_umem) / sizeof(bad_umem[0]), legal_umem);
}

T(test_doorbells_outside_the_registers_are_ignored)
{
	static const struct {
		uint32_t uar, off, len;
	} bells[] = {{0, 0x800, 8},      {0xffffff, 0x800, 8}, {1, 0xffc, 8},   {1, 0x1000, 8},
		     {1, UINT32_MAX, 8}, {1, 0x804, 8},        {1, 0x20, 16},   {1, 0, 8},
		     {1, 0x8f8, 16},     {1, 0x800, 0},        {1, 0x800, 512}, {1, 0x800, 4}};
	uint8_t data[512] = {0};
	size_t i;

	for (i = 0; i < sizeof(bells) / sizeof(bells[0]); i++)
		front_doorbell(f->g.f, bells[i].uar == 1 ? f->uar : bells[i].uar, bells[i].off,
			       data, bells[i].len);
	(void)front_poll(f->g.f);
	assert_int_equal(f->g.comps + f->g.events, 0);
}

T(test_short_mailboxes_and_unknown_opcodes_are_not_the_fronts)
{
	struct g_guest *g = &f->g;
	uint32_t op, len;

	for (len = 0; len < 16; len++)
		assert_false(front_command(g->f, g->in, len, g->out, sizeof(g->out)));
	assert_false(front_command(g->f, g->in, 16, g->out, 8));
	/* Each opcode with a mailbox of zeros of each length: a status, or not known. */
	for (op = 0; op < 0x1000; op++)
		for (len = 16; len <= 0x120; len += 16) {
			box(g, (uint16_t)op, f->uid, len);
			(void)front_command(g->f, g->in, len, g->out, sizeof(g->out));
		}
}

T(test_device_that_does_not_open_is_an_error)
{
	static const char *const bad[] = {"",
					  ",link=ib",
					  "soft99",
					  "mlx5_0",
					  "soft1,no_such_option=1",
					  "soft1,progress=thread",
					  "soft0,link=eth"};
	struct front *other = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(front_open(bad[i], &f->g.host, &other) < 0);
	assert_null(other);
}

/* Objects of the front itself: they take memory of the host, and their numbers are searched for. */
T(test_objects_that_are_only_numbers_run_out)
{
	static const uint16_t ops[][2] = {
		{BB_PRM_OP_ALLOC_XRCD, BB_PRM_OP_DEALLOC_XRCD},
		{BB_PRM_OP_ALLOC_TRANSPORT_DOMAIN, BB_PRM_OP_DEALLOC_TRANSPORT_DOMAIN},
	};
	uint32_t n, last = 0;
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (n = 0; n <= 2000 && run_on(&f->g, ops[i][0], f->uid, 0) == BB_PRM_STAT_OK; n++)
			last = bb_prm_get(f->g.out, BB_PRM_F(8, 8, 24));
		assert_int_equal(bb_prm_get(f->g.out, BB_PRM_CMD_STATUS), BB_PRM_STAT_LIM_ERR);
		assert_int_equal(n, 1024);
		assert_int_equal(run_on(&f->g, ops[i][1], f->uid, last), BB_PRM_STAT_OK);
		(void)g_alloc(&f->g, ops[i][0], f->uid);
	}
}

T(test_users_run_out)
{
	uint32_t n = 0;

	do {
		box(&f->g, BB_PRM_OP_CREATE_UCTX, 0, BB_PRM_SZ_CREATE_UCTX_IN);
	} while (run(&f->g) == BB_PRM_STAT_OK && ++n < 1000);
	assert_int_equal(bb_prm_get(f->g.out, BB_PRM_CMD_STATUS), BB_PRM_STAT_NO_RES);
	assert_int_equal(n, 254);
}

static void
count(void *arg)
{
	++*(uint32_t *)arg;
}

/* Returns the number of register pages that a round of polls runs. */
static uint32_t
pages_run(struct made *m)
{
	const uint64_t round = m->g.f->round;
	struct front_obj *o;
	uint32_t n = 0;

	LIST_FOREACH(o, &m->g.f->kinds[FRONT_UAR], of_kind) {
		o->progress = count;
		o->progress_arg = &n;
	}
	do {
		(void)front_poll(m->g.f);
	} while (m->g.f->round == round);
	return n;
}

T(test_poll_runs_only_register_pages_that_queues_use)
{
	struct g_cq cq = {0}, second = {0};
	uint32_t uar = 0, n;

	for (n = 0; n < 500; n++)
		uar = g_alloc(&f->g, BB_PRM_OP_ALLOC_UAR, f->uid);
	/* The page of the CQ of made_open(). */
	assert_int_equal(pages_run(f), 1);
	g_cq(&f->g, &cq, f->uid, uar);
	g_cq(&f->g, &second, f->uid, uar);
	assert_int_equal(pages_run(f), 2);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_CQ, f->uid, second.cqn), BB_PRM_STAT_OK);
	/* The page runs until its last CQ is destroyed, even if the guest has freed the page. */
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DEALLOC_UAR, f->uid, uar), BB_PRM_STAT_OK);
	assert_int_equal(pages_run(f), 2);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_CQ, f->uid, cq.cqn), BB_PRM_STAT_OK);
	assert_int_equal(pages_run(f), 1);
}

/* ---- Long messages */

/* More bytes than a turn of the device's engine executes. */
#define TURN (16u << 20)
/*
 * Bytes that no CPU copies in FRONT_TURN_NS. With ThreadSanitizer a copy is slow, and takes memory
 * for its shadow.
 */
#ifdef BB_TSAN
#define LONG TURN
#else
#define LONG (256u << 20)
#endif
#define LOG_LONG_PAGE 21u
#define LONG_PAGES    (LONG >> LOG_LONG_PAGE)

/* Registers LONG bytes that take little RAM: the list names one page again and again. */
static uint32_t
long_key(struct g_guest *g, uint32_t pd)
{
	const struct pages p = {.n = 8};
	uint8_t *mkc = g->in + MKC;
	uint32_t i;

	g_mkey_box(g, 0, pd, 0, LONG, &p);
	for (i = p.n; i < LONG_PAGES; i += p.n)
		box_list(g, &p, 3);
	bb_prm_set(g->in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, LONG_PAGES / 2);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, LONG_PAGES / 2);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, LOG_LONG_PAGE);
	assert_status(g, OK);
	return bb_prm_get(g->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | 0x5a;
}

/* Posts @n WRITEs, the first one of @len bytes, and rings the doorbell once. */
static void
post_long(struct g_guest *g, struct g_owner *u, uint32_t n, uint32_t len)
{
	const uint32_t from = long_key(g, u->pd), to = long_key(g, u->pd);
	uint8_t w[64];

	for (; n-- != 0; len = TURN) {
		wqe_head(&u->qp, w, G_WRITE, 3, G_CQE_UPDATE);
		bb_put32(w + 24, to);
		bb_put32(w + 32, len);
		bb_put32(w + 36, from);
		g_post(g, &u->qp, w, sizeof(w));
	}
	g_ring(g, &u->qp, w, 8);
}

/* Returns the number of CQEs in the CQ's first round. */
static uint32_t
cqes(struct g_guest *g, const struct g_cq *cq)
{
	uint32_t n = 0;

	while (n < 1u << cq->log && *g_at(g, &cq->ring, cq->offset + n * 64 + 63) == 0)
		n++;
	return n;
}

T(test_doorbell_and_poll_execute_a_limited_number_of_bytes)
{
	const struct timespec busy = {.tv_nsec = 20000000};
	const uint32_t n = 8;
	struct g_guest *g = &f->g;
	struct g_owner u;
	uint32_t before, done;
	int ms;

	g_owner_open(g, &u);
	post_long(g, &u, n, TURN);
	done = cqes(g, &u.cq);
	assert_int_equal(done, 1);
	/* A guest that rings no more must not make the program sleep before its work is done. */
	nanosleep(&busy, NULL);
	while (done < n) {
		before = done;
		ms = front_poll(g->f);
		done = cqes(g, &u.cq);
		assert_in_range(done - before, 0, 1);
		if (done < n)
			assert_int_equal(ms, 0);
	}
}

T(test_poll_ends_between_register_pages_and_serves_all_of_them)
{
	const uint32_t n = 2;
	struct g_guest *g = &f->g;
	struct g_owner u[2];
	uint32_t i, done[2] = {0}, before;

	for (i = 0; i < 2; i++)
		g_owner_open(g, &u[i]);
	front_stop(g->f, true);
	for (i = 0; i < 2; i++)
		post_long(g, &u[i], n, LONG);
	front_stop(g->f, false);
	/* A page runs again only after the other one. */
	while (done[0] + done[1] < 2) {
		before = done[0] + done[1];
		(void)front_poll(g->f);
		for (i = 0; i < 2; i++) {
			done[i] = cqes(g, &u[i].cq);
			assert_in_range(done[i], 0, 1);
		}
		assert_in_range(done[0] + done[1] - before, 0, 1);
	}
	for (i = 0; i < 2; i++)
		while (cqes(g, &u[i].cq) < n)
			(void)front_poll(g->f);
}

TEST_MAIN(0)
