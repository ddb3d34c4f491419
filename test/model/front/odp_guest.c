/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "odp_guest.h"

#include "bb_dev.h"

void
odp_queue_up(struct odp *o)
{
	g_qp_up(&o->g, &o->qp, 0, 0, o->cq.cqn, 0);
}

void
odp_queue_reset(struct odp *o)
{
	assert_int_equal(run_on(&o->g, BB_PRM_OP_2RST_QP, 0, o->qp.qpn), BB_PRM_STAT_OK);
	o->qp.pi = 0;
	bb_put32(g_ram(&o->g, o->qp.dbr) + 4, 0);
	odp_queue_up(o);
}

/* Gives an Ethernet port an address. The owner's QP is connected to itself. */
static void
set_address(struct odp *o)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct bb_gid gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}, .type = BB_GID_ROCE_V2};

	OK(front_set_address(o->g.f, 0, &gid, mac));
	memcpy(o->path.gid, gid.raw, sizeof(o->path.gid));
	memcpy(o->path.mac, mac, sizeof(mac));
	o->g.path = &o->path;
}

void
odp_open(struct odp *o, const char *device)
{
	struct g_guest *g = &o->g;
	uint8_t *mkc;

	memset(o, 0, sizeof(*o));
	g_open(g, device);
	if (strstr(device, "link=eth") != NULL)
		set_address(o);
	o->uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, 0);
	o->pd = g_alloc(g, BB_PRM_OP_ALLOC_PD, 0);
	g_cq(g, &o->cq, 0, o->uar);
	g_qp(g, &o->qp, 0, BB_PRM_QP_ST_REG_UMR, 0, o->uar, o->cq.cqn);
	odp_queue_up(o);
	mkc = box(g, BB_PRM_OP_CREATE_MKEY, 0, 0x110) + 0x10;
	bb_prm_set(mkc, BB_PRM_MKC_LENGTH64, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, o->pd);
	assert_status(g, OK);
	o->phys = bb_prm_get(g->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
	o->list = g_pages(g, 1);
	g_owner_open(g, &o->u);
	o->mem = g_pages(g, PAGES);
}

void
odp_close(struct odp *o)
{
	g_close(&o->g);
}

void
odp_free_key_box(struct odp *o, uint32_t mode, uint32_t size)
{
	uint8_t *mkc = box(&o->g, BB_PRM_OP_CREATE_MKEY, 0, 0x110) + 0x10;

	bb_prm_set(mkc, BB_PRM_MKC_FREE, 1);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, mode);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, 0x21);
	bb_prm_set(mkc, BB_PRM_MKC_PD, o->pd);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, size);
}

uint32_t
odp_free_key(struct odp *o, uint32_t mode, uint32_t size)
{
	odp_free_key_box(o, mode, size);
	assert_int_equal(run(&o->g), BB_PRM_STAT_OK);
	return bb_prm_get(o->g.out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | 0x21;
}

uint8_t
odp_umr(struct odp *o, struct odp_umr a)
{
	uint32_t ds = a.ds != 0 ? a.ds : a.n != 0 ? 9 : 8;
	uint8_t w[192] = {0};

	wqe_head(&o->qp, w, UMR, ds, G_CQE_UPDATE);
	bb_put32(w + 12, a.key);
	w[16] = a.flags;
	bb_put16(w + 20, (uint16_t)a.n);
	bb_put16(w + 22, (uint16_t)a.offset);
	bb_put64(w + 24, a.mask);
	bb_put32(w + 32, (uint32_t)(a.offset >> 16));
	w[64] = a.free ? 0x40 : 0;
	w[64 + 2] = a.access;
	bb_put32(w + 64 + 4, 0xffffff00 | a.variant);
	bb_put32(w + 64 + 12, a.pd | (a.len64 ? 1u << 31 : 0));
	bb_put64(w + 64 + 16, a.start);
	bb_put64(w + 64 + 24, a.len);
	w[64 + 59] = (uint8_t)a.log_page;
	bb_put32(w + 128, a.bytes != 0 ? a.bytes : a.n * 16);
	bb_put32(w + 132, a.lkey != 0 ? a.lkey : o->phys);
	bb_put64(w + 136, a.addr != 0 ? a.addr : o->list.pa[0]);
	g_post(&o->g, &o->qp, w, (ds + 3) / 4 * 64);
	g_ring(&o->g, &o->qp, w, 8);
	return g_cqe(&o->g, &o->cq)[63] >> 4;
}

/* Writes page @i of the program to entry @at of the kernel's list; @bits 0: the page is missing. */
static void
entry(struct odp *o, uint32_t at, uint32_t i, uint64_t bits)
{
	bb_put64(g_ram(&o->g, o->list.pa[0]) + (size_t)at * 8, bits == 0 ? 0 : o->mem.pa[i] | bits);
}

void
odp_list(struct odp *o, uint32_t first, uint32_t n, uint64_t bits)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		entry(o, i, first + i, bits);
}

struct odp_umr
odp_enable(const struct odp *o, uint32_t key, uint32_t n)
{
	return (struct odp_umr){.key = key,
				.flags = CHECK_FREE | OFFSET,
				.mask = MASK_ENABLE,
				.n = n,
				.access = RIGHTS,
				.variant = 0x21,
				.pd = o->u.pd,
				.log_page = 12,
				.start = VA,
				.len = PAGES * PAGE};
}

uint32_t
odp_key(struct odp *o, uint64_t bits)
{
	uint32_t key = odp_free_key(o, BB_PRM_MKC_MODE_MTT, PAGES / 2);

	odp_list(o, 0, PAGES, bits);
	assert_int_equal(odp_umr(o, odp_enable(o, key, PAGES / 2)), 0);
	return key;
}

void
odp_update(struct odp *o, uint32_t key, uint32_t first, uint64_t bits)
{
	odp_list(o, first, 8, bits);
	assert_int_equal(odp_umr(o, (struct odp_umr){.key = key,
						     .flags = CHECK_USED | OFFSET,
						     .n = 4,
						     .offset = first / 2,
						     .variant = 0x21}),
			 0);
}

void
odp_post(struct odp *o, uint8_t opcode, uint32_t rkey, uint64_t raddr, uint32_t lkey, uint64_t addr,
	 uint32_t len)
{
	uint8_t w[64] = {0};

	wqe_head(&o->u.qp, w, opcode, 3, G_CQE_UPDATE);
	bb_put64(w + 16, raddr);
	bb_put32(w + 24, rkey);
	bb_put32(w + 32, len);
	bb_put32(w + 36, lkey);
	bb_put64(w + 40, addr);
	g_post(&o->g, &o->u.qp, w, sizeof(w));
	g_ring(&o->g, &o->u.qp, w, 8);
}

void
odp_write(struct odp *o, uint32_t key, uint64_t va, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		*g_at(&o->g, &o->u.from, G_VA_FROM % PAGE + i) = (uint8_t)(i * 7 + 1);
	odp_post(o, G_WRITE, key, va, o->u.from_key, G_VA_FROM, len);
}

void
odp_assert_arrived(struct odp *o, uint64_t va, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(*g_at(&o->g, &o->mem, va - VA + i), (uint8_t)(i * 7 + 1));
}

void
odp_wait_fault(struct odp *o, uint32_t seen)
{
	const uint64_t end = g_now() + G_WAIT_S;

	while (o->g.events == seen && g_now() < end)
		g_poll(&o->g);
	assert_int_equal(o->g.events, seen + 1);
	assert_int_equal(o->g.event_type, PF_TYPE);
}

void
odp_assert_waits(struct odp *o)
{
	const uint32_t slot = o->u.cq.ci & ((1u << o->u.cq.log) - 1);
	const uint32_t seen = o->g.events, owner = o->u.cq.ci >> o->u.cq.log & 1;
	const uint8_t *e = g_at(&o->g, &o->u.cq.ring, o->u.cq.offset + slot * 64);
	struct timespec pause = {.tv_nsec = 300000};
	int i;

	for (i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		g_poll(&o->g);
	}
	assert_true(e[63] >> 4 == 0xf || (e[63] & 1u) != owner);
	assert_int_equal(o->g.events, seen);
}

uint32_t
odp_resume(struct odp *o, uint16_t uid, uint32_t type, uint32_t wq, uint32_t token, bool error)
{
	uint8_t *in = box(&o->g, BB_PRM_OP_PAGE_FAULT_RESUME, uid, 16);

	bb_put32(in + 8, (error ? 1u << 31 : 0) | type << 24 | wq);
	bb_put32(in + 12, token);
	return run(&o->g);
}
