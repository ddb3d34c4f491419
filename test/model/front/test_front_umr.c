/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Keys whose translations UMRs of the kernel load. */
#include "bb_cqe.h"
#include "odp_guest.h"

#define T(name) TEST_ON(NULL, NULL, struct odp, odp_open(f, ODP_DEVICE), odp_close(f), name)

T(test_key_is_loaded_in_parts_and_moves_data)
{
	uint32_t key = odp_free_key(f, BB_PRM_MKC_MODE_MTT, PAGES / 2);
	struct odp_umr a = odp_enable(f, key, 4);

	/* The key is free until the last part. */
	odp_list(f, 0, 8, WRITE_PAGE);
	assert_int_equal(odp_umr(f, (struct odp_umr){.key = key,
						     .flags = CHECK_FREE | OFFSET,
						     .n = 4,
						     .variant = 0x21}),
			 0);
	odp_list(f, 8, 8, WRITE_PAGE);
	a.offset = 4;
	assert_int_equal(odp_umr(f, a), 0);
	odp_write(f, key, VA + 7 * PAGE + 5, G_BYTES);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA + 7 * PAGE + 5, G_BYTES);
	assert_int_equal(*(g_at(&f->g, &f->mem, 7 * PAGE + 5) - 1), 0);
	/* A start inside a page. */
	a = odp_enable(f, odp_free_key(f, BB_PRM_MKC_MODE_MTT, PAGES / 2), PAGES / 2);
	a.start = VA + 100;
	a.len = 50;
	odp_list(f, 0, PAGES, WRITE_PAGE);
	assert_int_equal(odp_umr(f, a), 0);
	odp_write(f, a.key, VA + 140, 10);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA + 140, 10);
	odp_write(f, a.key, VA + 141, 10);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55], BB_SYN_REMOTE_ACCESS);
}

T(test_revoked_key_fails_and_is_loaded_again_under_another_number)
{
	uint32_t key = odp_key(f, WRITE_PAGE);
	struct odp_umr a = {.key = key, .flags = 0x80, .mask = MASK_FREE | MASK_PD, .free = true};

	a.pd = f->pd;
	a.variant = 0x21;
	assert_int_equal(odp_umr(f, a), 0);
	/* Its PD is that of the kernel. */
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DEALLOC_PD, 0, f->pd), BB_PRM_STAT_RES_BUSY);
	odp_write(f, key, VA, 8);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55], BB_SYN_REMOTE_ACCESS);
	a = odp_enable(f, key, PAGES / 2);
	a.variant = 0x22;
	odp_list(f, 0, PAGES, WRITE_PAGE);
	assert_int_equal(odp_umr(f, a), 0);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_2RST_QP, f->u.uid, f->u.qp.qpn), BB_PRM_STAT_OK);
	f->u.qp.pi = 0;
	bb_put32(g_ram(&f->g, f->u.qp.dbr) + 4, 0);
	g_qp_up(&f->g, &f->u.qp, f->u.uid, f->u.pd, f->u.cq.cqn, f->u.qp.qpn);
	odp_write(f, key + 1, VA, 100);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA, 100);
	assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_MKEY, 0, key >> 8), BB_PRM_STAT_OK);
}

/* Keys of 64 KiB pieces, as implicit ODP has them of 1 GiB. */
T(test_key_of_equal_pieces_reaches_the_keys_that_a_umr_lists)
{
	uint32_t child = odp_key(f, WRITE_PAGE), seen = f->g.events;
	uint32_t key = odp_free_key(f, BB_PRM_MKC_MODE_KSM, 8);
	uint8_t *list = g_ram(&f->g, f->list.pa[0]);
	struct odp_umr a = odp_enable(f, key, 8);

	memset(list, 0, 128);
	bb_put32(list + 3 * 16, 1u << 16); /* the kernel writes the size, which a KSM ignores */
	bb_put32(list + 3 * 16 + 4, child);
	bb_put64(list + 3 * 16 + 8, VA);
	bb_put32(list + 4 * 16 + 4, 0xff); /* the null key */
	a.start = 0;
	a.len = 0;
	a.len64 = true;
	a.log_page = 16;
	assert_int_equal(odp_umr(f, a), 0);
	odp_write(f, key, (3 << 16) + 4000, G_BYTES);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA + 4000, G_BYTES);
	/* The end of the message is in the next piece, which is missing. */
	odp_write(f, key, (4 << 16) - 4, 8);
	odp_wait_fault(f, seen);
	assert_int_equal(bb_get32(f->g.event + 4), key);
	assert_int_equal(odp_resume(f, 0, 6, f->u.qp.qpn, f->u.qp.qpn, true), BB_PRM_STAT_OK);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[55], BB_SYN_REMOTE_OP);
}

T(test_bad_umrs_fail_and_leave_the_key)
{
	uint32_t key = odp_key(f, WRITE_PAGE), other = odp_free_key(f, BB_PRM_MKC_MODE_MTT, 4);
	const struct odp_umr good = {
		.key = key, .flags = CHECK_USED | OFFSET, .n = 4, .offset = 4, .variant = 0x21};
	struct odp_umr bad[24];
	size_t n = 0, i;

#define BAD(field, value)                                                                          \
	do {                                                                                       \
		bad[n] = good;                                                                     \
		bad[n++].field = value;                                                            \
	} while (0)
	BAD(n, 2);
	BAD(n, 8);
	BAD(n, 0xfffc);
	BAD(offset, 2);
	BAD(offset, 8);
	BAD(offset, UINT64_C(0xfffffffffffc));
	BAD(flags, CHECK_USED); /* an offset without its flag */
	BAD(flags, CHECK_FREE | OFFSET);
	BAD(flags, CHECK_FREE | CHECK_USED | OFFSET);
	BAD(flags, CHECK_USED | OFFSET | 1);
	BAD(ds, 8);
	BAD(ds, 10);
	BAD(bytes, 48);
	BAD(bytes, 0x80000040);
	BAD(lkey, f->u.from_key);
	BAD(lkey, key);
	BAD(lkey, 0x12345678);
	BAD(addr, (uint64_t)RAM_PAGES * PAGE - 32);
	BAD(addr, UINT64_MAX - 31);
	BAD(key, key + 1);
	BAD(key, other);
	BAD(mask, UINT64_C(1) << 9);
	BAD(mask, UINT64_C(1) << 20 | MASK_FREE); /* remote write without local write */
	bad[n - 1].access = 0x20;
	BAD(mask, MASK_PD);
	bad[n - 1].pd = 0xffffff;
#undef BAD
	assert_int_equal(n, sizeof(bad) / sizeof(bad[0]));
	odp_list(f, 8, 8, WRITE_PAGE);
	for (i = 0; i < n; i++) {
		if (odp_umr(f, bad[i]) != 0xd)
			fail_msg("case %zu: the UMR succeeded", i);
		odp_queue_reset(f);
	}
	odp_write(f, key, VA + 6 * PAGE, G_BYTES);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0);
	odp_assert_arrived(f, VA + 6 * PAGE, G_BYTES);
	assert_int_equal(odp_umr(f, good), 0);
}

T(test_free_keys_are_refused_unless_a_umr_can_load_them)
{
	static const struct {
		struct bb_prm_field f;
		uint32_t base, v;
	} edits[] = {{BB_PRM_MKC_UMR_EN, 0x10, 0},
		     {BB_PRM_CREATE_MKEY_XLT_ACTUAL, 0, 8},
		     {BB_PRM_MKC_XLT_OCTWORD_SIZE, 0x10, UINT32_MAX},
		     {BB_PRM_CMD_UID, 0, 1}};
	size_t i;

	for (i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		odp_free_key_box(f, BB_PRM_MKC_MODE_MTT, 8);
		bb_prm_set(f->g.in + edits[i].base, edits[i].f, edits[i].v);
		assert_int_not_equal(run(&f->g), BB_PRM_STAT_OK);
	}
}

/* The lists of all keys have a limit, which frees of keys give back. */
T(test_translations_of_a_guest_run_out)
{
	uint32_t key[4], i;
	struct odp_umr a;

	for (int again = 0; again < 2; again++) {
		for (i = 0; i < 4; i++) {
			key[i] = odp_free_key(f, BB_PRM_MKC_MODE_MTT, 1u << 24);
			odp_list(f, 0, 8, WRITE_PAGE);
			a = odp_enable(f, key[i], 4);
			assert_int_equal(odp_umr(f, a), i < 2 ? 0 : 0xd);
			if (i < 2)
				continue;
			odp_queue_reset(f);
		}
		for (i = 0; i < 4; i++)
			assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_MKEY, 0, key[i] >> 8),
					 BB_PRM_STAT_OK);
	}
}

/* A user's own UMRs cannot change such a key, and a user cannot answer page faults. */
T(test_user_cannot_change_a_key_of_the_kernel)
{
	uint32_t key = odp_key(f, WRITE_PAGE);
	uint8_t w[128];

	wqe_head(&f->u.qp, w, UMR, 8, G_CQE_UPDATE);
	bb_put32(w + 12, key);
	w[16] = 0x80 | CHECK_USED;
	bb_put64(w + 24, UINT64_C(1) << 19);
	bb_put32(w + 64 + 4, 0xffffff21);
	g_post(&f->g, &f->u.qp, w, sizeof(w));
	g_ring(&f->g, &f->u.qp, w, 8);
	assert_int_equal(g_cqe(&f->g, &f->u.cq)[63] >> 4, 0xd);
}

TEST_MAIN(g_needs_paging())
