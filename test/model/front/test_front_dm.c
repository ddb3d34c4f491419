/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory of a guest: mailboxes as mlx5_ib writes them (dm.c, mr.c of Linux 6.1). */
#include "front_guest.h"

#define T(name) TEST_ON(NULL, NULL, struct g_guest, open_ib(f), g_close(f), name)

static void
open_ib(struct g_guest *g)
{
	g_open(g, "soft0,link=ib");
}

static void
post_write_to(struct g_guest *g, struct g_owner *u, uint32_t key, uint64_t addr, uint32_t bytes)
{
	uint8_t w[64];

	wqe_head(&u->qp, w, G_WRITE, 3, G_CQE_UPDATE);
	bb_put64(w + 16, addr);
	bb_put32(w + 24, key);
	bb_put32(w + 32, bytes);
	bb_put32(w + 36, u->from_key);
	bb_put64(w + 40, G_VA_FROM);
	g_post(g, &u->qp, w, sizeof(w));
	g_ring(g, &u->qp, w, 8);
}

/* Begins ALLOC_MEMIC, or DEALLOC_MEMIC of memory at @start. */
static void
memic_box(struct g_guest *g, uint16_t op, uint64_t start, uint32_t range, uint32_t size)
{
	(void)box(g, op, 0, BB_PRM_SZ_MEMIC_IN);
	bb_prm_set64(g->in, BB_PRM_ALLOC_MEMIC_RANGE_START, start);
	if (op == BB_PRM_OP_ALLOC_MEMIC) {
		bb_prm_set(g->in, BB_PRM_ALLOC_MEMIC_RANGE_SIZE, range);
		bb_prm_set(g->in, BB_PRM_ALLOC_MEMIC_SIZE, size);
	} else {
		bb_prm_set(g->in, BB_PRM_DEALLOC_MEMIC_SIZE, size);
	}
}

/* Begins CREATE_MKEY as mlx5_ib_get_dm_mr() does: no pages, address in BAR 0. */
static void
memic_key_box(struct g_guest *g, uint32_t pd, uint64_t at, uint64_t len)
{
	const struct pages none = {.n = 0};
	uint8_t *mkc = g->in + 0x10;

	(void)g_mkey_box(g, 0, pd, at, len, &none);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_MEMIC & 3);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE_4_2, BB_PRM_MKC_MODE_MEMIC >> 2);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, 0);
}

T(test_device_memory_is_allocated_in_ranges_and_keys_reach_it)
{
	const uint64_t bar = (uint64_t)FRONT_DM_FIRST * 4096;
	uint8_t caps[256], *dm;
	const uint8_t *e;
	struct g_owner u;
	uint32_t key, bytes;

	g_owner_open(f, &u);
	assert_int_equal(front_caps(f->f, BB_PRM_CAP_DEV_MEM, true, caps), 0);
	assert_int_equal(bb_prm_get64(caps, BB_PRM_DEV_MEM_CAP_MEMIC_BAR_START_ADDR), bar);
	bytes = bb_prm_get(caps, BB_PRM_DEV_MEM_CAP_MEMIC_BAR_SIZE);
	assert_null(front_dm(f->f, bar, 4));
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + 4096, 4096 * 3, 4096 * 2 + 64);
	assert_status(f, OK);
	assert_int_equal(bb_prm_get64(f->out, BB_PRM_ALLOC_MEMIC_OUT_START), bar + 4096);
	/* The kernel tries the next range after NO_RES only, and gives up after any other status.
	 */
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar, 4096 * 2, 4096 * 2);
	assert_status(f, NO_RES);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + 4096 * 3, 4096, 64);
	assert_status(f, NO_RES);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar, 4096, 64);
	assert_status(f, OK);
	/* Ranges outside device memory. */
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + bytes, 4096, 64);
	assert_status(f, BAD_PARAM);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + bytes - 4096, 8192, 64);
	assert_status(f, BAD_PARAM);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, 0, 4096, 64);
	assert_status(f, BAD_PARAM);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + 64, 4096, 64);
	assert_status(f, BAD_PARAM);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, bar + 4096 * 8, 4096, 4097);
	assert_status(f, BAD_PARAM);
	memic_box(f, BB_PRM_OP_ALLOC_MEMIC, UINT64_MAX - 4095, 8192, 64);
	assert_status(f, BAD_PARAM);
	/* Only bytes of one allocation are reachable, through the BAR and through a key. */
	dm = front_dm(f->f, bar + 4096 + 8, 4);
	assert_non_null(dm);
	assert_non_null(front_dm(f->f, bar + 4096 * 3 + 60, 4));
	assert_null(front_dm(f->f, bar + 4096 * 3 + 62, 4));
	assert_null(front_dm(f->f, bar + 62, 4));
	assert_null(front_dm(f->f, UINT64_MAX - 1, 4));
	memic_key_box(f, u.pd, bar + 4096, 4096 * 2 + 65);
	assert_status(f, BAD_PARAM);
	memic_key_box(f, u.pd, bar + 4096 * 4, 4);
	assert_status(f, BAD_PARAM);
	/* rdma-core's own tests register an empty range. */
	memic_key_box(f, u.pd, bar + 4096, 0);
	assert_status(f, OK);
	key = bb_prm_get(f->out, BB_PRM_CREATE_MKEY_OUT_INDEX);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_MKEY, 0, key), BB_PRM_STAT_OK);
	memic_key_box(f, u.pd, bar + 4096 + 8, 64);
	assert_status(f, OK);
	key = bb_prm_get(f->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | 0x5a;
	/* Requests begin at address 0, wherever the memory is in the BAR. */
	*g_at(f, &u.from, G_VA_FROM % PAGE) = 0x77;
	post_write_to(f, &u, key, 63, 1);
	assert_int_equal(g_cqe(f, &u.cq)[63] >> 4, 0);
	assert_int_equal(dm[63], 0x77);
	memic_box(f, BB_PRM_OP_DEALLOC_MEMIC, bar + 4096, 0, 4096 * 2 + 64);
	assert_status(f, RES_BUSY);
	assert_int_equal(run_on(f, BB_PRM_OP_DESTROY_MKEY, 0, key >> 8), BB_PRM_STAT_OK);
	/* Another size, another place: no allocation. */
	memic_box(f, BB_PRM_OP_DEALLOC_MEMIC, bar + 4096, 0, 4096);
	assert_status(f, BAD_RES);
	memic_box(f, BB_PRM_OP_DEALLOC_MEMIC, bar + 4096 * 2, 0, 4096 + 64);
	assert_status(f, BAD_RES);
	memic_box(f, BB_PRM_OP_DEALLOC_MEMIC, bar + 4096, 0, 4096 * 2 + 64);
	assert_status(f, OK);
	assert_null(front_dm(f->f, bar + 4096 + 8, 4));
	post_write_to(f, &u, key, 0, 1);
	e = g_cqe(f, &u.cq);
	assert_int_equal(e[63] >> 4, 0xd);
	g_owner_close(f, &u);
	/* The page that is left goes with the reset. */
	front_reset(f->f);
	assert_null(front_dm(f->f, bar, 4));
}

TEST_MAIN(0)
