/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Page faults of keys over keys on demand: memory windows, and keys of DEVX. The kernel gets the
 * entries of such a key by QUERY_MKEY.
 */
#include "bb_cqe.h"
#include "front_priv.h"
#include "odp_guest.h"

#define T(name) TEST_ON(NULL, NULL, struct odp, odp_open(f, ODP_DEVICE), odp_close(f), name)

#define KLM_BYTES 16u
#define START     UINT64_C(0x400000000) /* of keys of DEVX */

/* An entry of a list of keys. */
struct klm {
	uint32_t len, key;
	uint64_t addr;
};

/* Makes a key of DEVX over a list of other keys, at address START. @log: of the entries of KSM. */
static uint32_t
list_key(struct odp *o, uint32_t mode, uint32_t log, const struct klm *klm, uint32_t n,
	 uint64_t len)
{
	/* A list of KLM is padded to a multiple of four entries. */
	const uint32_t room = mode == BB_PRM_MKC_MODE_KLMS ? (n + 3) & ~3u : n;
	uint8_t *in = box(&o->g, BB_PRM_OP_CREATE_MKEY, o->u.uid, 0x110 + room * KLM_BYTES);
	uint8_t *mkc = in + 0x10, *x = in + 0x110;
	uint32_t i;

	bb_prm_set(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL, n);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, mode);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, 0x33);
	bb_prm_set(mkc, BB_PRM_MKC_PD, o->u.pd);
	bb_prm_set64(mkc, BB_PRM_MKC_START_ADDR, START);
	bb_prm_set64(mkc, BB_PRM_MKC_LEN, len);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, room);
	bb_prm_set(mkc, BB_PRM_MKC_LOG_PAGE_SIZE, log);
	for (i = 0; i < n; i++, x += KLM_BYTES) {
		bb_put32(x, klm[i].len);
		bb_put32(x + 4, klm[i].key);
		bb_put64(x + 8, klm[i].addr);
	}
	assert_status(&o->g, OK);
	return bb_prm_get(o->g.out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8 | 0x33;
}

/* Makes a memory window of type 1 as mlx5_ib_alloc_mw() does. */
static uint32_t
window(struct odp *o)
{
	uint8_t *mkc = box(&o->g, BB_PRM_OP_CREATE_MKEY, 0, 0x110) + 0x10;

	bb_prm_set(mkc, BB_PRM_MKC_FREE, 1);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, o->u.pd);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, 4);
	assert_status(&o->g, OK);
	return bb_prm_get(o->g.out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
}

/* Binds the window by a UMR of the owner's QP, as libmlx5 does. Returns the new key. */
static uint32_t
bind(struct odp *o, uint32_t mw, uint32_t lkey, uint64_t addr, uint32_t len)
{
	uint8_t w[192] = {0}, *klm = w + 128;

	wqe_head(&o->u.qp, w, UMR, 12, G_CQE_UPDATE);
	bb_put32(w + 12, mw);
	w[16] = BB_UMR_INLINE;
	bb_put16(w + 20, 4);
	bb_put64(w + 24, BB_MKEY_MASK_FREE | BB_MKEY_MASK_LEN | BB_MKEY_MASK_START_ADDR |
				 BB_MKEY_MASK_KEY | BB_MKEY_MASK_ACCESS);
	w[64 + 2] = BB_MKEY_LR | BB_MKEY_RR | BB_MKEY_RW;
	bb_put32(w + 64 + 4, 0xffffff00 | ((mw + 1) & 0xff));
	bb_put64(w + 64 + 16, addr);
	bb_put64(w + 64 + 24, len);
	bb_put32(klm, len);
	bb_put32(klm + 4, lkey);
	bb_put64(klm + 8, addr);
	g_post(&o->g, &o->u.qp, w, sizeof(w));
	g_ring(&o->g, &o->u.qp, w, 8);
	assert_int_equal(g_cqe(&o->g, &o->u.cq)[63] >> 4, 0);
	return mw + 1;
}

/* Builds QUERY_MKEY. */
static void
query_box(struct odp *o, uint16_t uid, uint32_t key)
{
	bb_prm_set(box(&o->g, BB_PRM_OP_QUERY_MKEY, uid, 16), BB_PRM_QUERY_MKEY_INDEX, key >> 8);
}

/* Asks for a key as the kernel does. Returns its context in o->g.out. */
static const void *
query(struct odp *o, uint32_t key)
{
	query_box(o, 0, key);
	assert_status(&o->g, OK);
	return bb_prm_csub(o->g.out, BB_PRM_QUERY_MKEY_OUT_MKC);
}

static struct klm
entry(const struct odp *o, uint32_t i)
{
	const uint8_t *x = o->g.out + BB_PRM_QUERY_MKEY_OUT_KLM + i * KLM_BYTES;

	return (struct klm){bb_get32(x), bb_get32(x + 4), bb_get64(x + 8)};
}

static void
assert_entry(const struct odp *o, uint32_t i, struct klm want)
{
	struct klm got = entry(o, i);

	assert_int_equal(got.len, want.len);
	assert_int_equal(got.key, want.key);
	assert_int_equal(got.addr, want.addr);
}

/*
 * Finds the first @n entries' address for @va of @key, as the kernel does. Sets *key to the key of
 * that entry.
 */
static uint64_t
resolve(struct odp *o, uint32_t *key, uint64_t va, uint32_t n)
{
	uint64_t off = va - bb_prm_get64(query(o, *key), BB_PRM_MKC_START_ADDR);
	uint32_t i;

	for (i = 0; i < n && off >= entry(o, i).len; i++)
		off -= entry(o, i).len;
	assert_true(i < n);
	*key = entry(o, i).key;
	return entry(o, i).addr + off;
}

/* Waits for a page fault of a WRITE to @key, finds its page, loads it, and answers. */
static void
serve(struct odp *o, uint32_t seen, uint32_t key, uint64_t va, uint32_t n, uint32_t odp)
{
	uint32_t below = key;
	uint64_t at;

	odp_wait_fault(o, seen);
	assert_int_equal(o->g.event_sub, PF_RDMA);
	assert_int_equal(bb_prm_get(o->g.event, BB_PRM_EQE_PF_RDMA_KEY), key);
	assert_int_equal(bb_prm_get64(o->g.event, BB_PRM_EQE_PF_RDMA_VA), va);
	at = resolve(o, &below, va, n);
	assert_int_equal(below, odp);
	odp_update(o, odp, (uint32_t)((at - VA) / PAGE) & ~7u, WRITE_PAGE);
	assert_int_equal(odp_resume(o, 0, 6, o->u.qp.qpn, o->u.qp.qpn, false), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&o->g, &o->u.cq)[63] >> 4, 0);
}

T(test_write_through_a_list_of_keys_waits_for_the_page)
{
	uint32_t odp = odp_key(f, 0), seen = f->g.events;
	const struct klm klm[] = {{100, odp, VA + 12 * PAGE + 50}, {200, odp, VA + 2 * PAGE + 7}};
	uint32_t key = list_key(f, BB_PRM_MKC_MODE_KLMS, 0, klm, 2, 300);

	odp_write(f, key, START + 110, 64);
	serve(f, seen, key, START + 110, 2, odp);
	odp_assert_arrived(f, VA + 2 * PAGE + 7 + 10, 64);
	/* The first entry has its page among the other half of the pages. */
	seen = f->g.events;
	odp_write(f, key, START + 20, 64);
	serve(f, seen, key, START + 20, 2, odp);
	odp_assert_arrived(f, VA + 12 * PAGE + 50 + 20, 64);
}

T(test_write_through_entries_of_equal_size_waits_for_the_page)
{
	uint32_t odp = odp_key(f, 0), seen = f->g.events;
	const struct klm klm[] = {{0, odp, VA + 8 * PAGE}, {0, odp, VA + 3 * PAGE}};
	uint32_t key = list_key(f, BB_PRM_MKC_MODE_KSM, 12, klm, 2, 2 * PAGE);

	odp_write(f, key, START + PAGE + 5, 64);
	serve(f, seen, key, START + PAGE + 5, 2, odp);
	odp_assert_arrived(f, VA + 3 * PAGE + 5, 64);
}

T(test_write_through_a_window_waits_for_the_page)
{
	uint32_t odp = odp_key(f, 0), seen;
	uint32_t key = bind(f, window(f), odp, VA + PAGE + 16, 3 * PAGE);

	seen = f->g.events;
	odp_write(f, key, VA + 2 * PAGE, 64);
	serve(f, seen, key, VA + 2 * PAGE, 4, odp);
	odp_assert_arrived(f, VA + 2 * PAGE, 64);
}

T(test_query_returns_the_context_and_entries_of_each_kind_of_key)
{
	uint32_t odp = odp_key(f, WRITE_PAGE), mw = window(f), key;
	const struct klm klm[] = {{100, f->u.to_key, G_VA_TO + 1}, {PAGE, odp, VA}};
	const void *mkc;

	key = list_key(f, BB_PRM_MKC_MODE_KLMS, 0, klm, 2, 100 + PAGE);
	mkc = query(f, key);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_ACCESS_MODE), BB_PRM_MKC_MODE_KLMS);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_MKEY_7_0), 0x33);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_PD), f->u.pd);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_QPN), 0xffffff);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE), 4);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_START_ADDR), START);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_LEN), 100 + PAGE);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_RW) | bb_prm_get(mkc, BB_PRM_MKC_RR) |
				 bb_prm_get(mkc, BB_PRM_MKC_LW) | bb_prm_get(mkc, BB_PRM_MKC_LR),
			 1);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_A) | bb_prm_get(mkc, BB_PRM_MKC_FREE), 0);
	assert_entry(f, 0, klm[0]);
	assert_entry(f, 1, klm[1]);
	assert_entry(f, 2, (struct klm){0});
	/* A window: free, then bound. */
	assert_int_equal(bb_prm_get(query(f, mw), BB_PRM_MKC_FREE), 1);
	assert_entry(f, 0, (struct klm){0});
	mkc = query(f, bind(f, mw, odp, VA + 16, 77));
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_FREE), 0);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_MKEY_7_0), 1);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_LEN), 77);
	assert_entry(f, 0, (struct klm){77, odp, VA + 16});
	/* A key over pages has no entries, whether it is on demand or not. */
	mkc = query(f, odp);
	assert_int_equal(bb_prm_get(mkc, BB_PRM_MKC_ACCESS_MODE), BB_PRM_MKC_MODE_MTT);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_LEN), PAGES * PAGE);
	assert_entry(f, 0, (struct klm){0});
	mkc = query(f, f->u.to_key);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_START_ADDR), G_VA_TO);
	assert_int_equal(bb_prm_get64(mkc, BB_PRM_MKC_LEN), G_BYTES);
	assert_entry(f, 0, (struct klm){0});
}

T(test_query_of_a_key_of_nobody_or_of_another_user_and_with_short_outputs)
{
	const struct klm klm[] = {{100, f->u.to_key, G_VA_TO}, {64, f->u.to_key, G_VA_TO + 200}};
	uint32_t key = list_key(f, BB_PRM_MKC_MODE_KLMS, 0, klm, 2, 164), len;
	uint16_t other = g_user(&f->g);

	query_box(f, other, key);
	assert_status(&f->g, BAD_RES);
	query_box(f, f->u.uid, key);
	assert_status(&f->g, OK);
	query_box(f, 0, 0xffffff00);
	assert_status(&f->g, BAD_RES);
	/* As many entries as there is room for. */
	for (len = BB_PRM_QUERY_MKEY_OUT_KLM - 8; len < BB_PRM_QUERY_MKEY_OUT_KLM + 40; len += 8) {
		uint32_t n = (len - BB_PRM_QUERY_MKEY_OUT_KLM) / KLM_BYTES;

		query_box(f, 0, key);
		memset(f->g.out, 0xee, sizeof(f->g.out));
		assert_true(front_command(f->g.f, f->g.in, f->g.in_len, f->g.out, len));
		assert_int_equal(f->g.out[len], 0xee);
		if (len < BB_PRM_QUERY_MKEY_OUT_KLM) {
			assert_int_equal(bb_prm_get(f->g.out, BB_PRM_CMD_STATUS),
					 BB_PRM_STAT_BAD_OUTP_LEN);
			continue;
		}
		assert_int_equal(bb_prm_get(f->g.out, BB_PRM_CMD_STATUS), BB_PRM_STAT_OK);
		if (n > 0)
			assert_entry(f, n - 1, klm[n - 1]);
	}
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_MKEY, f->u.uid, key >> 8), BB_PRM_STAT_OK);
	query_box(f, 0, key);
	assert_status(&f->g, BAD_RES);
}

/* The region of a bound window is busy. Objects are destroyed newest first. */
T(test_reset_destroys_a_region_that_is_newer_than_its_window)
{
	uint32_t mw = window(f);
	struct pages p = g_pages(&f->g, 1);
	uint32_t key = g_mkey(&f->g, f->u.pd, VA, PAGE, &p);

	(void)bind(f, mw, key, VA, 64);
	assert_int_not_equal(f->g.windows, 0);
	front_reset(f->g.f);
	assert_int_equal(f->g.windows, 0);
	/* Numbers of users are free again. */
	assert_int_equal(g_user(&f->g), f->u.uid);
}

/* A device that failed is opened again once all its contexts are closed. */
T(test_reset_of_a_failed_device_fails_while_a_context_is_open)
{
	struct front *front = f->g.f;
	struct mlx5_ctx *ctx;

	front->users[0].objs++;
	front->dead = true;
	front_reset(front);
	assert_true(front->dead);
	ctx = front->users[0].ctx;
	front_reset(front);
	assert_true(front->dead);
	assert_ptr_equal(front->users[0].ctx, ctx);
	front->users[0].objs--;
	front_reset(front);
	assert_false(front->dead);
	assert_int_equal(g_user(&f->g), f->u.uid);
}

TEST_MAIN(g_needs_paging())
