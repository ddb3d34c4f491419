/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../../fakes/process.h"
#include "front_guest.h"

#define MKC 0x10
#define CQC 0x10
#define QPC 0x18
#define ADS (QPC + 0x18)

static void *
window(void *arg, const uint64_t *pa, uint32_t n, unsigned int log_sz)
{
	struct g_guest *g = arg;
	size_t size = (size_t)1 << log_sz;
	uint8_t *at;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (size > RAM_PAGES * PAGE || pa[i] > RAM_PAGES * PAGE - size)
			return NULL;
	at = mmap(NULL, n * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	for (i = 0; i < n; i++)
		assert_ptr_not_equal(mmap(at + i * size, size, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, g->fd, (off_t)pa[i]),
				     MAP_FAILED);
	g->windows++;
	return at;
}

static void
unwindow(void *arg, void *at, uint32_t n, unsigned int log_sz)
{
	struct g_guest *g = arg;

	OK(munmap(at, (size_t)n << log_sz));
	g->windows--;
}

static void *
at(void *arg, uint64_t pa, uint64_t len, bool write)
{
	struct g_guest *g = arg;

	(void)write;
	return len <= RAM_PAGES * PAGE && pa <= RAM_PAGES * PAGE - len ? g->ram + pa : NULL;
}

static void
eqe(void *arg, uint32_t eqn, uint8_t type, uint8_t sub, const void *data, unsigned int len)
{
	struct g_guest *g = arg;

	assert_int_equal(type, BB_PRM_EVENT_COMP);
	assert_int_equal(sub, 0);
	assert_int_equal(len, 28);
	g->comp_eqn = eqn;
	g->comp_cqn = bb_prm_dword(data, 24);
	/* Another thread may wait for the event. */
	__atomic_store_n(&g->comps, g->comps + 1, __ATOMIC_RELEASE);
}

static void
event(void *arg, uint8_t type, uint8_t sub, const void *data, unsigned int len)
{
	struct g_guest *g = arg;

	assert_int_equal(len, 28);
	g->events++;
	g->event_type = type;
	g->event_sub = sub;
	memcpy(g->event, data, sizeof(g->event));
}

static bool
room(void *arg, uint8_t type)
{
	const struct g_guest *g = arg;

	(void)type;
	return g->events < g->max_events;
}

static void
fatal(void *arg)
{
	((struct g_guest *)arg)->fatals++;
}

void
g_open(struct g_guest *g, const char *device)
{
	memset(g, 0, sizeof(*g));
	g->bell = 0x800;
	g->eqn = EQN;
	g->max_events = UINT32_MAX;
	g->fd = memfd_create("guest", 0);
	assert_true(g->fd >= 0);
	OK(ftruncate(g->fd, RAM_PAGES * PAGE));
	g->ram = mmap(NULL, RAM_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
	assert_ptr_not_equal(g->ram, MAP_FAILED);
	g->host = (struct front_host){.arg = g,
				      .window = window,
				      .unwindow = unwindow,
				      .at = at,
				      .eqe = eqe,
				      .event = event,
				      .room = room,
				      .fatal = fatal};
	OK(front_open(device, &g->host, &g->f));
}

void
g_close(struct g_guest *g)
{
	front_close(g->f);
	assert_int_equal(g->windows, 0);
	OK(munmap(g->ram, RAM_PAGES * PAGE));
	close(g->fd);
}

struct pages
g_pages(struct g_guest *g, uint32_t n)
{
	struct pages p = {.n = n};
	uint32_t i;

	/* Downwards, every second page: no two are neighbours. */
	for (i = 0; i < n; i++) {
		g->next += 2;
		assert_true(g->next < RAM_PAGES);
		p.pa[i] = (uint64_t)(RAM_PAGES - g->next) * PAGE;
	}
	return p;
}

uint8_t *
g_ram(struct g_guest *g, uint64_t pa)
{
	return g->ram + pa;
}

uint8_t *
g_at(struct g_guest *g, const struct pages *p, uint64_t off)
{
	return g->ram + p->pa[off / PAGE] + off % PAGE;
}

uint8_t *
box(struct g_guest *g, uint16_t op, uint16_t uid, uint32_t len)
{
	memset(g->in, 0, sizeof(g->in));
	bb_prm_set(g->in, BB_PRM_CMD_OPCODE, op);
	bb_prm_set(g->in, BB_PRM_CMD_UID, uid);
	g->in_len = len;
	return g->in;
}

void
box_list(struct g_guest *g, const struct pages *p, uint64_t flags)
{
	uint32_t i;

	for (i = 0; i < p->n; i++, g->in_len += 8)
		bb_put64(g->in + g->in_len, p->pa[i] | flags);
}

uint32_t
run(struct g_guest *g)
{
	if (g->via != NULL)
		g->via->command(g->via_arg, g->in, g->in_len, g->out, sizeof(g->out));
	else
		assert_true(front_command(g->f, g->in, g->in_len, g->out, sizeof(g->out)));
	return bb_prm_get(g->out, BB_PRM_CMD_STATUS);
}

uint32_t
run_on(struct g_guest *g, uint16_t op, uint16_t uid, uint32_t number)
{
	bb_prm_set(box(g, op, uid, 16), BB_PRM_F(8, 8, 24), number);
	return run(g);
}

uint32_t
g_alloc(struct g_guest *g, uint16_t op, uint16_t uid)
{
	box(g, op, uid, op == BB_PRM_OP_CREATE_UCTX ? BB_PRM_SZ_CREATE_UCTX_IN : 16);
	assert_status(g, OK);
	return bb_prm_get(g->out, BB_PRM_F(8, 8, 24));
}

uint16_t
g_user(struct g_guest *g)
{
	return (uint16_t)g_alloc(g, BB_PRM_OP_CREATE_UCTX, 0);
}

uint32_t
g_mkey_box(struct g_guest *g, uint16_t uid, uint32_t pd, uint64_t va, uint64_t len,
	   const struct pages *p)
{
	uint8_t *mkc = box(g, BB_PRM_OP_CREATE_MKEY, uid, 0x110) + MKC;

	bb_prm_set(g->in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, (p->n + 1) / 2);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, (p->n + 1) / 2);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_MTT);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, 0x5a);
	bb_prm_set(mkc, BB_PRM_MKC_PD, pd);
	bb_prm_set64(mkc, BB_PRM_MKC_START_ADDR, va);
	bb_prm_set64(mkc, BB_PRM_MKC_LEN, len);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, 12);
	box_list(g, p, 3);
	g->in_len = (g->in_len + 15) & ~15u; /* mlx5_ib pads the list to 16 bytes */
	return 0;
}

uint32_t
g_mkey(struct g_guest *g, uint32_t pd, uint64_t va, uint64_t len, const struct pages *p)
{
	g_mkey_box(g, 0, pd, va, len, p);
	assert_status(g, OK);
	return bb_prm_get(g->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | 0x5a;
}

void
g_cq_box(struct g_guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar)
{
	uint8_t *cqc = box(g, BB_PRM_OP_CREATE_CQ, uid, 0x110) + CQC;

	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, cq->log);
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, uar);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, g->eqn);
	bb_prm_set(cqc, BB_PRM_CQC_PAGE_OFFSET, cq->offset / 64);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, cq->dbr);
	box_list(g, &cq->ring, 0);
}

void
g_cq(struct g_guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar)
{
	uint32_t i;

	cq->log = 6;
	cq->offset = 1024;
	cq->ring = g_pages(g, 2);
	cq->dbr = g_pages(g, 1).pa[0] + 0x40;
	for (i = 0; i < 1u << cq->log; i++)
		g_at(g, &cq->ring, cq->offset + i * 64)[63] = 0xf1; /* invalid, of the device */
	g_cq_box(g, cq, uid, uar);
	assert_status(g, OK);
	cq->cqn = bb_prm_get(g->out, BB_PRM_CREATE_CQ_OUT_CQN);
}

void
g_qp_box(struct g_guest *g, struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t uar, uint32_t cqn)
{
	uint8_t *qpc = box(g, BB_PRM_OP_CREATE_QP, uid, 0x110) + QPC;

	bb_prm_set(qpc, BB_PRM_QPC_ST, qp->st);
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, pd);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_RQ_SIZE, 2); /* 4 WQEs of 16 bytes: one block */
	bb_prm_set(qpc, BB_PRM_QPC_LOG_SQ_SIZE, qp->log_sq);
	bb_prm_set(qpc, BB_PRM_QPC_UAR_PAGE, uar);
	bb_prm_set(qpc, BB_PRM_QPC_USER_INDEX, 0xffffff);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, cqn);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, cqn);
	bb_prm_set(qpc, BB_PRM_QPC_PAGE_OFFSET, qp->offset / 64);
	bb_prm_set(qpc, BB_PRM_QPC_XRCD, 0x12);           /* placeholders of mlx5_ib */
	bb_prm_set(qpc, BB_PRM_QPC_SRQN_RMPN_XRQN, 0x34); /* with rq_type 0 */
	bb_prm_set(qpc, BB_PRM_QPC_RLKY, uid == 0);
	bb_prm_set(qpc, BB_PRM_QPC_FRE, uid == 0);
	bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, qp->dbr);
	box_list(g, &qp->ring, 0);
}

void
g_qp(struct g_guest *g, struct g_qp *qp, uint16_t uid, uint32_t st, uint32_t pd, uint32_t uar,
     uint32_t cqn)
{
	qp->st = st;
	qp->log_sq = 6;
	qp->offset = 2048;
	qp->uar = uar;
	qp->ring = g_pages(g, 2);
	qp->dbr = g_pages(g, 1).pa[0] + 0x80;
	g_qp_box(g, qp, uid, pd, uar, cqn);
	assert_status(g, OK);
	qp->qpn = bb_prm_get(g->out, BB_PRM_CREATE_QP_OUT_QPN);
}

uint8_t *
g_qp_modify_box(struct g_guest *g, const struct g_qp *qp, uint16_t uid, uint16_t op, uint32_t pd,
		uint32_t cqn)
{
	uint8_t *qpc = box(g, op, uid, 0x110) + QPC;

	bb_prm_set(g->in, BB_PRM_MODIFY_QP_QPN, qp->qpn);
	bb_prm_set(qpc, BB_PRM_QPC_ST, qp->st);
	bb_prm_set(qpc, BB_PRM_QPC_PM_STATE, BB_PRM_QP_PM_MIGRATED);
	bb_prm_set(qpc, BB_PRM_QPC_PD, pd);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_SND, cqn);
	bb_prm_set(qpc, BB_PRM_QPC_CQN_RCV, cqn);
	bb_prm_set(qpc, BB_PRM_QPC_LOG_ACK_REQ_FREQ, 8);
	if (op == BB_PRM_OP_RST2INIT_QP) {
		bb_prm_set64(qpc, BB_PRM_QPC_DBR_ADDR, qp->dbr);
		bb_prm_set(g->in + ADS, BB_PRM_ADS_VHCA_PORT_NUM, 1);
	}
	if (qp->st != BB_PRM_QP_ST_RC) {
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 5);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 12);
	}
	return qpc;
}

/* Writes the path to the peer into the address of a transition. */
static void
path_box(const struct g_guest *g, uint8_t *ads)
{
	const struct g_path *p = g->path;

	if (p == NULL || p->lid != 0) {
		bb_prm_set(ads, BB_PRM_ADS_RLID, p == NULL ? 1 : p->lid);
		return;
	}
	bb_prm_set(ads, BB_PRM_ADS_SRC_ADDR_INDEX, p->index);
	bb_prm_set(ads, BB_PRM_ADS_HOP_LIMIT, 64);
	bb_prm_set(ads, BB_PRM_ADS_UDP_SPORT, 0xc123);
	memcpy(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), p->gid, sizeof(p->gid));
	memcpy(ads + BB_PRM_ADS_RMAC_47_32.byte + 2, p->mac, sizeof(p->mac));
}

void
g_qp_up(struct g_guest *g, const struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t cqn,
	uint32_t remote)
{
	bool rc = qp->st == BB_PRM_QP_ST_RC;
	uint8_t *qpc;

	qpc = g_qp_modify_box(g, qp, uid, BB_PRM_OP_RST2INIT_QP, pd, cqn);
	if (rc) {
		bb_prm_set(qpc, BB_PRM_QPC_RWE, 1);
		bb_prm_set(qpc, BB_PRM_QPC_RRE, 1);
	}
	assert_status(g, OK);
	qpc = g_qp_modify_box(g, qp, uid, BB_PRM_OP_INIT2RTR_QP, pd, cqn);
	if (rc) {
		bb_prm_set(qpc, BB_PRM_QPC_MTU, 5);
		bb_prm_set(qpc, BB_PRM_QPC_LOG_MSG_MAX, 30);
		bb_prm_set(qpc, BB_PRM_QPC_REMOTE_QPN, remote);
		bb_prm_set(qpc, BB_PRM_QPC_MIN_RNR_NAK, 1);
		path_box(g, g->in + ADS);
	}
	assert_status(g, OK);
	qpc = g_qp_modify_box(g, qp, uid, BB_PRM_OP_RTR2RTS_QP, pd, cqn);
	if (rc) {
		bb_prm_set(qpc, BB_PRM_QPC_RETRY_COUNT, 7);
		bb_prm_set(qpc, BB_PRM_QPC_RNR_RETRY, 7);
		bb_prm_set(g->in + ADS, BB_PRM_ADS_ACK_TIMEOUT, 14);
	}
	assert_status(g, OK);
}

void
wqe_head(const struct g_qp *qp, uint8_t *w, uint8_t opcode, uint32_t ds, uint8_t flags)
{
	memset(w, 0, ds * 16);
	bb_put32(w, (uint32_t)qp->pi << 8 | opcode);
	bb_put32(w + 4, qp->qpn << 8 | ds);
	w[11] = flags;
}

void
g_post(struct g_guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i += 64)
		memcpy(g_at(g, &qp->ring,
			    qp->offset + 64 + ((qp->pi + i / 64) % (1u << qp->log_sq)) * 64),
		       wqe + i, 64);
	qp->pi = (uint16_t)(qp->pi + len / 64);
	bb_put32(g_ram(g, qp->dbr) + 4, qp->pi);
}

void
g_ring(struct g_guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len)
{
	uint64_t head;

	if (g->shared != NULL) {
		assert_int_equal(len, sizeof(head));
		memcpy(&head, wqe, sizeof(head));
		__atomic_store_n((uint64_t *)(void *)(g->shared + (size_t)qp->uar * PAGE + g->bell),
				 head, __ATOMIC_RELEASE);
	} else if (g->via != NULL) {
		g->via->doorbell(g->via_arg, qp->uar, g->bell, wqe, len);
	} else {
		front_doorbell(g->f, qp->uar, g->bell, wqe, len);
	}
}

void
g_poll(struct g_guest *g)
{
	if (g->via != NULL)
		g->via->poll(g->via_arg);
	else
		(void)front_poll(g->f);
}

const uint8_t *
g_cqe(struct g_guest *g, struct g_cq *cq)
{
	uint32_t slot = cq->ci & ((1u << cq->log) - 1), owner = cq->ci >> cq->log & 1;
	const uint64_t end = g_now() + G_WAIT_S;
	const uint8_t *e = g_at(g, &cq->ring, cq->offset + slot * 64);

	while ((e[63] >> 4 == 0xf || (e[63] & 1u) != owner) && g_now() < end)
		g_poll(g);
	assert_true(e[63] >> 4 != 0xf && (e[63] & 1u) == owner);
	cq->ci++;
	bb_put32(g_ram(g, cq->dbr), cq->ci);
	return e;
}

void
g_owner_open(struct g_guest *g, struct g_owner *u)
{
	memset(u, 0, sizeof(*u));
	u->uid = g_user(g);
	u->uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, u->uid);
	u->pd = g_alloc(g, BB_PRM_OP_ALLOC_PD, u->uid);
	u->from = g_pages(g, 3);
	u->to = g_pages(g, 4);
	u->from_key = g_mkey(g, u->pd, G_VA_FROM, G_BYTES, &u->from);
	u->to_key = g_mkey(g, u->pd, G_VA_TO, G_BYTES, &u->to);
	g_cq(g, &u->cq, u->uid, u->uar);
	g_qp(g, &u->qp, u->uid, BB_PRM_QP_ST_RC, u->pd, u->uar, u->cq.cqn);
	g_qp_up(g, &u->qp, u->uid, u->pd, u->cq.cqn, u->qp.qpn);
}

void
g_owner_close(struct g_guest *g, struct g_owner *u)
{
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_QP, u->uid, u->qp.qpn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_CQ, u->uid, u->cq.cqn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_MKEY, 0, u->from_key >> 8), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_MKEY, 0, u->to_key >> 8), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DEALLOC_PD, u->uid, u->pd), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DEALLOC_UAR, u->uid, u->uar), BB_PRM_STAT_OK);
	assert_int_equal(run_on(g, BB_PRM_OP_DESTROY_UCTX, 0, u->uid), BB_PRM_STAT_OK);
}

void
g_post_write(struct g_guest *g, struct g_owner *u)
{
	uint8_t w[64];

	wqe_head(&u->qp, w, G_WRITE, 3, G_CQE_UPDATE);
	bb_put64(w + 16, G_VA_TO);
	bb_put32(w + 24, u->to_key);
	bb_put32(w + 32, G_BYTES);
	bb_put32(w + 36, u->from_key);
	bb_put64(w + 40, G_VA_FROM);
	g_post(g, &u->qp, w, sizeof(w));
	g_ring(g, &u->qp, w, 8);
}

int
g_needs_paging(void)
{
	if (kernel_copies_memory())
		return 0;
	printf("skipped: process_vm_readv(): %s\n", strerror(errno));
	return 77;
}
