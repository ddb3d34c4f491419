/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* UMR WQEs: refused ones, each with one wrong field; key states, fences, depth. */
#include "soft_umr_env.h"

#define BIND   MLX5_CQE_SYNDROME_MW_BIND_ERR
#define QP_OP  MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define PROT   MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define ACCESS MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR

/* ---- One wrong field each: b's queue fails with @synd, and no key has changed. */

#define BAD(name_, base_, synd_, ...)                                                              \
	static void name_(struct keys *k, struct umr *w)                                           \
	{                                                                                          \
		*w = base_;                                                                        \
		__VA_ARGS__;                                                                       \
	}
#define REPEAT(w) ((struct mlx5_wqe_umr_repeat_block_seg *)(void *)(w)->x)
#define ENTRY(w)  ((struct mlx5_wqe_umr_repeat_ent_seg *)(void *)((w)->x + 16))
#define KLM(w)    ((struct mlx5_wqe_data_seg *)(void *)(w)->x)

BAD(short_wqe, bind_make(k, true), QP_OP, w->ds = 7)
BAD(no_room_for_xlt, bind_make(k, true), QP_OP, w->ds = 11)
BAD(more_segments, bind_make(k, true), QP_OP, w->ds = 13)
BAD(half_block, bind_make(k, true), QP_OP, (w->ds = 10, w->u.klm_octowords = htobe16(2)))
BAD(not_inline, bind_make(k, true), QP_OP, w->u.flags &= 0x7f)
BAD(both_checks, bind_make(k, true), QP_OP, w->u.flags |= 0x60)
BAD(unknown_flag, bind_make(k, true), QP_OP, w->u.flags |= 1)
BAD(reserved, bind_make(k, true), QP_OP, w->u.rsvd0[1] = 1)
BAD(reserved_tail, bind_make(k, true), QP_OP, w->u.rsvd1[31] = 1)
BAD(offset, bind_make(k, true), QP_OP, w->u.translation_offset = htobe16(1))
BAD(mask_pd, bind_make(k, true), BIND, w->u.mkey_mask |= htobe64(1 << 7))
BAD(mask_bsf, list_make(k), BIND, w->u.mkey_mask |= htobe64(1 << 12))
BAD(mask_high, list_make(k), BIND, w->u.mkey_mask |= htobe64(1ull << 63))
BAD(no_key, bind_make(k, true), BIND, w->key = 0xfff00)
BAD(key_past_table, bind_make(k, true), BIND, w->key = 0x1000000)
BAD(mr_key, bind_make(k, true), BIND, w->key = k->mem.mr->lkey)
BAD(used_wanted, bind_make(k, true), BIND, w->u.flags = 0x80 | 0x40)
BAD(other_qp, bind_make(k, true), BIND, w->m.qpn_mkey = htobe32(k->p.a.qpn << 8))
BAD(no_qp, bind_make(k, true), BIND, w->m.qpn_mkey = htobe32(0xffffff00))
BAD(two_as_one, bind_make(k, true), BIND,
    w->u.mkey_mask &= ~htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN))
BAD(one_as_two, bind_make(k, false), BIND,
    w->u.mkey_mask |= htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN))
BAD(inv_one, inv_make(k->one->rkey), BIND, (void)0)
BAD(no_length, bind_make(k, true), BIND,
    w->u.mkey_mask &= ~htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN))
BAD(lkey_none, bind_make(k, true), BIND, KLM(w)->lkey = htobe32(0x12300))
BAD(lkey_indirect, bind_make(k, true), BIND, KLM(w)->lkey = htobe32(k->key))
BAD(lkey_stale, bind_make(k, true), BIND, KLM(w)->lkey ^= htobe32(1))
BAD(no_mw_bind, bind_make(k, true), BIND,
    (KLM(w)->lkey = htobe32(k->p.mb.mr->lkey), KLM(w)->addr = htobe64((uintptr_t)k->p.mb.p),
     w->m.start_addr = KLM(w)->addr))
BAD(piece_shorter, bind_make(k, true), BIND, KLM(w)->byte_count = htobe32(255))
BAD(piece_empty, bind_make(k, true), BIND, (KLM(w)->byte_count = 0, w->m.len = 0))
BAD(before_mr, bind_make(k, true), BIND,
    (KLM(w)->addr = htobe64((uintptr_t)k->mem.p - 1), w->m.start_addr = KLM(w)->addr))
BAD(past_mr, bind_make(k, true), BIND,
    (KLM(w)->addr = htobe64((uintptr_t)k->mem.p + RIG_MEM - 255), w->m.start_addr = KLM(w)->addr))
BAD(start_elsewhere, bind_make(k, true), BIND, w->m.start_addr = htobe64((uintptr_t)k->mem.p + 1))
BAD(one_zero_based, bind_make(k, false), BIND, w->m.start_addr = 0)
BAD(two_pieces, bind_make(k, true), BIND, KLM(w)[1].byte_count = htobe32(1))
BAD(free_with_xlt, bind_make(k, true), BIND, w->m.free = MLX5_WQE_MKEY_CONTEXT_FREE)
BAD(list_too_long, list_make(k), BIND, (w->u.klm_octowords = htobe16(12), w->ds = 20))
BAD(list_rights, list_make(k), BIND, w->m.access_flags = 0x20)
BAD(list_rights_a, list_make(k), BIND, w->m.access_flags = 0x40)
BAD(pattern_empty, pattern_make(k), BIND, REPEAT(w)->num_ent = 0)
BAD(pattern_long, pattern_make(k), BIND, REPEAT(w)->num_ent = htobe16(4))
BAD(pattern_reserved, pattern_make(k), BIND, REPEAT(w)->reserved = 1)
BAD(pattern_never, pattern_make(k), BIND, REPEAT(w)->repeat_count = 0)
BAD(pattern_sum, pattern_make(k), BIND, REPEAT(w)->byte_count = htobe32(13))
BAD(pattern_hollow, pattern_make(k), BIND,
    (ENTRY(w)[1].byte_count = 0, REPEAT(w)->byte_count = htobe32(8)))
BAD(pattern_overlap, pattern_make(k), BIND, ENTRY(w)[0].stride = htobe16(7))

TEST(test_invalid_umr_is_refused)
{
#define ROW(name_, synd_)                                                                          \
	{                                                                                          \
#name_, name_, synd_                                                               \
	}
	static const struct {
		const char *name;
		void (*make)(struct keys *k, struct umr *w);
		uint8_t synd;
	} rows[] = {
		ROW(short_wqe, QP_OP),    ROW(no_room_for_xlt, QP_OP), ROW(more_segments, QP_OP),
		ROW(half_block, QP_OP),   ROW(not_inline, QP_OP),      ROW(both_checks, QP_OP),
		ROW(unknown_flag, QP_OP), ROW(reserved, QP_OP),        ROW(reserved_tail, QP_OP),
		ROW(offset, QP_OP),       ROW(mask_pd, BIND),          ROW(mask_bsf, BIND),
		ROW(mask_high, BIND),     ROW(no_key, BIND),           ROW(key_past_table, BIND),
		ROW(mr_key, BIND),        ROW(used_wanted, BIND),      ROW(other_qp, BIND),
		ROW(no_qp, BIND),         ROW(two_as_one, BIND),       ROW(one_as_two, BIND),
		ROW(inv_one, BIND),       ROW(no_length, BIND),        ROW(lkey_none, BIND),
		ROW(lkey_indirect, BIND), ROW(lkey_stale, BIND),       ROW(no_mw_bind, BIND),
		ROW(piece_shorter, BIND), ROW(piece_empty, BIND),      ROW(before_mr, BIND),
		ROW(past_mr, BIND),       ROW(start_elsewhere, BIND),  ROW(one_zero_based, BIND),
		ROW(two_pieces, BIND),    ROW(free_with_xlt, BIND),    ROW(list_too_long, BIND),
		ROW(list_rights, BIND),   ROW(list_rights_a, BIND),    ROW(pattern_empty, BIND),
		ROW(pattern_long, BIND),  ROW(pattern_reserved, BIND), ROW(pattern_never, BIND),
		ROW(pattern_sum, BIND),   ROW(pattern_hollow, BIND),   ROW(pattern_overlap, BIND),
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct keys *k = keys_open(false);
		struct umr w;
		uint16_t at = k->p.b.pi;

		rows[i].make(k, &w);
		print_message("%s\n", rows[i].name);
		umr_put(&k->p.b, &w, RIG_CQE);
		rig_ring(&k->p.b);
		assert_int_equal(rig_expect_error(&k->p.b, at, rows[i].synd),
				 rows[i].synd == BIND ? 0x78 : 0x68);
		/* No window is bound, so the memory can be deregistered. */
		keys_close(k);
	}
}

/* A peer writes through a key; expects a's CQE with @synd. */
static void
write_through(struct keys *k, uint32_t rkey, uint64_t addr, uint32_t len, uint8_t synd)
{
	uint16_t at = k->p.a.pi;

	rig_raddr(&k->p.a, addr, rkey);
	rig_data(&k->p.a, 2, &k->p.ma, 0, len);
	rig_wqe(&k->p.a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
	rig_ring(&k->p.a);
	if (synd == 0)
		rig_expect_ok(&k->p.a, MLX5_OPCODE_RDMA_WRITE, at);
	else
		rig_expect_error(&k->p.a, at, synd);
}

TEST(test_umr_changes_only_the_named_fields)
{
	struct keys *k = keys_open(false);
	uint64_t base = (uintptr_t)k->mem.p;
	struct umr w;
	uint32_t i;

	/* Fields that the mask does not name may have any value. */
	w = inv_make(k->two->rkey);
	w.m.access_flags = 0xff;
	w.m.start_addr = UINT64_MAX;
	w.m.flags_pd = UINT32_MAX;
	umr_ok(&k->p.b, &w);
	w = bind_make(k, true);
	w.m.reserved2 = UINT32_MAX;
	w.m.flags_pd = UINT32_MAX;
	umr_ok(&k->p.b, &w);
	/* The key's low byte is the one of the WQE. */
	write_through(k, (k->two->rkey & ~0xffu) | 0x77, base + 8, 248, 0);
	assert_memory_equal(k->mem.p + 8, k->p.ma.p, 248);
	/* The low byte of a free key is ignored; that of a bound key is checked. */
	w = inv_make((k->two->rkey & ~0xffu) | 0x77);
	umr_ok(&k->p.b, &w);
	w = bind_make(k, true);
	w.key ^= 0x55;
	umr_ok(&k->p.b, &w);
	assert_int_equal(soft_cmd_if.mr_dereg(k->p.d.ctx, k->mem.mr), -EBUSY);
	w = inv_make((k->two->rkey & ~0xffu) | 0x77);
	umr_ok(&k->p.b, &w);

	w = pattern_make(k);
	umr_ok(&k->p.b, &w);
	memset(k->mem.p, 0, 8192);
	write_through(k, k->key, 0, 60, 0);
	for (i = 0; i < 5; i++) {
		assert_memory_equal(k->mem.p + i * 32, k->p.ma.p + i * 12, 8);
		assert_memory_equal(k->mem.p + 4096 + i * 100, k->p.ma.p + i * 12 + 8, 4);
		assert_int_equal(k->mem.p[i * 32 + 8], 0);
		assert_int_equal(k->mem.p[4096 + i * 100 + 4], 0);
	}
	/* A change of rights alone keeps the layout. */
	w = umr_make(k->key, 0x40, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE, 0);
	umr_ok(&k->p.b, &w);
	write_through(k, k->key, 0, 60, ACCESS);
	keys_close(k);
}

/* A stale key, and a key in use, in the second UMR. */
TEST(test_umr_of_a_stale_or_used_key_fails)
{
	static const uint8_t flags[] = {MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE, 0};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct keys *k = keys_open(false);
		struct umr w = bind_make(k, true);
		uint16_t at;

		umr_ok(&k->p.b, &w);
		w = bind_make(k, true);
		w.key = (w.key & ~0xffu) | 0x77;
		if (i < 2) /* a window of type 2 cannot be bound again */
			w.u.flags = (uint8_t)(0x90 | flags[i]);
		else /* a stale low byte */
			w = inv_make(k->two->rkey ^ 0x80);
		at = k->p.b.pi;
		umr_put(&k->p.b, &w, RIG_CQE);
		rig_ring(&k->p.b);
		rig_expect_error(&k->p.b, at, BIND);
		keys_close(k);
	}
}

/* A use of a key after its UMR in one doorbell works only with a fence on the use or in between. */
TEST(test_use_after_a_umr_needs_a_fence)
{
	/* A WRITE that does not use the key, and one that does. */
	static const struct {
		bool two;
		uint8_t first, use;
		bool ok;
	} rows[] = {
		{false, 0, 0, false},  {false, 0, 0x20, true}, {true, 0, 0, false},
		{true, 0, 0x20, true}, {true, 0x20, 0, true},  {true, 0x80, 0, true},
	};
	static const char *const ports[] = {NULL, "wire=1"};
	unsigned int i, row;

	for (i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct keys *k = keys_open_args(ports[i % 2], false);
		struct rig_qp *q = &k->p.b;
		struct umr w = list_make(k);
		uint16_t at;

		row = i / 2;
		umr_put(q, &w, 0);
		if (rows[row].two)
			rig_write(q, &k->p.mb, 0, 64, &k->p.ma, 4096, rows[row].first);
		at = q->pi;
		rig_raddr(q, (uintptr_t)k->p.ma.p, k->p.ma.mr->rkey);
		mlx5dv_set_data_seg(rig_seg(q, q->pi, 2), 256, k->key, 0);
		rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE | rows[row].use, 3, 0);
		rig_ring(q);
		if (rows[row].ok)
			rig_expect_ok(q, MLX5_OPCODE_RDMA_WRITE, at);
		else
			rig_expect_error(q, at, PROT);
		keys_close(k);
	}
}

/* Keys over keys: up to the device's depth, no deeper, and not in a cycle. */
TEST(test_key_over_keys_has_a_largest_depth)
{
	struct keys *k = keys_open(false);
	struct mlx5_obj *obj[5];
	uint32_t key[6], i;

	key[0] = k->mem.mr->lkey;
	for (i = 0; i < 5; i++)
		obj[i] = key_over(k, k->p.d.pd, false, false, key[i],
				  i == 0 ? (uintptr_t)k->mem.p : 0, &key[i + 1]);
	write_through(k, key[4], 10, 100, 0);
	assert_memory_equal(k->mem.p + 10, k->p.ma.p, 100);
	write_through(k, key[5], 10, 100, ACCESS);
	for (i = 5; i > 0; i--)
		OK(soft_cmd_if.obj_destroy(obj[i - 1]));
	keys_close(k);

	/* A key whose piece is the key itself. */
	k = keys_open(false);
	{
		struct umr w = list_make(k);

		put_klm(&w, 0, 256, k->key, 0);
		umr_ok(&k->p.b, &w);
		write_through(k, k->key, 0, 256, ACCESS);
	}
	keys_close(k);
}

TEST(test_each_key_of_a_chain_is_of_the_qps_pd)
{
	struct keys *k = keys_open(false);
	struct mlx5_obj *obj;
	struct mlx5_pd *pd;
	struct rig_mem mem;
	struct umr w;
	uint32_t key;

	OK(soft_cmd_if.pd_alloc(k->p.d.ctx, &pd));
	obj = used_key(k, pd, false, false, &key);
	write_through(k, key, 0, 8, ACCESS);
	OK(soft_cmd_if.obj_destroy(obj));
	OK(soft_cmd_if.pd_free(k->p.d.ctx, pd));
	keys_close(k);
	/* The key is of the QP's PD, its second piece is not: no byte is written. */
	k = keys_open(false);
	OK(soft_cmd_if.pd_alloc(k->p.d.ctx, &pd));
	rig_mem_open(&mem, &k->p.d, pd, 4096, ALL_MW);
	w = list_make(k);
	put_klm(&w, 1, 128, mem.mr->lkey, (uintptr_t)mem.p);
	umr_ok(&k->p.b, &w);
	write_through(k, k->key, 0, 256, ACCESS);
	assert_int_equal(k->mem.p[1000], 0);
	assert_int_equal(mem.p[0], 0);
	rig_mem_close(&mem);
	OK(soft_cmd_if.pd_free(k->p.d.ctx, pd));
	keys_close(k);
	/* A region of another PD cannot be bound to a window. */
	k = keys_open(false);
	OK(soft_cmd_if.pd_alloc(k->p.d.ctx, &pd));
	rig_mem_open(&mem, &k->p.d, pd, 4096, ALL_MW);
	w = bind_make(k, true);
	put_klm(&w, 0, 256, mem.mr->lkey, (uintptr_t)mem.p);
	w.m.start_addr = htobe64((uintptr_t)mem.p);
	umr_put(&k->p.b, &w, RIG_CQE);
	rig_ring(&k->p.b);
	rig_expect_error(&k->p.b, 0, BIND);
	rig_mem_close(&mem);
	OK(soft_cmd_if.pd_free(k->p.d.ctx, pd));
	keys_close(k);
}

/* Windows are for remote access only, even if the bind names LOCAL_WRITE. */
TEST(test_window_is_no_lkey)
{
	struct keys *k = keys_open(false);
	struct rig_qp *q = &k->p.b;
	struct umr w = bind_make(k, false);
	uint16_t at;

	w.m.access_flags |= 8; /* LOCAL_WRITE */
	umr_ok(q, &w);
	at = q->pi;
	rig_raddr(q, (uintptr_t)k->p.ma.p, k->p.ma.mr->rkey);
	mlx5dv_set_data_seg(rig_seg(q, q->pi, 2), 8, (k->one->rkey & ~0xffu) | 0x77,
			    (uintptr_t)k->mem.p);
	rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE | 0x20, 3, 0);
	rig_ring(q);
	rig_expect_error(q, at, PROT);
	keys_close(k);
}

/* SEND with invalidate of keys that a peer may not invalidate, and of keys that it may. */
TEST(test_send_with_invalidate_needs_a_valid_key)
{
	unsigned int row;

	for (row = 0; row < 8; row++) {
		struct keys *k = keys_open(row == 7);
		struct rig_qp *a = &k->p.a, *b = &k->p.b;
		struct mlx5_obj *obj = NULL;
		uint32_t key = 0x123400;
		struct rig_cqe e;
		struct umr w;

		switch (row) {
		case 0: /* no such key */
			break;
		case 1: /* key of a region */
			key = k->mem.mr->rkey;
			break;
		case 2: /* key of a window of type 1 */
			w = bind_make(k, false);
			umr_ok(b, &w);
			key = (k->one->rkey & ~0xffu) | 0x77;
			break;
		case 3: /* key of a window of type 2 that is not bound */
			key = k->two->rkey;
			break;
		case 4: /* a window that another QP, here the sender, has bound */
			w = bind_make(k, true);
			w.m.qpn_mkey = htobe32(a->qpn << 8 | 0x77);
			umr_ok(a, &w);
			key = (k->two->rkey & ~0xffu) | 0x77;
			break;
		case 5: /* key without en_rinval */
			obj = used_key(k, k->p.d.pd, true, false, &key);
			break;
		default:
			w = bind_make(k, true);
			umr_ok(b, &w);
			key = (k->two->rkey & ~0xffu) | 0x77;
			break;
		}
		rig_recv(b, &k->p.mb, 0, 64);
		rig_data(a, 1, &k->p.ma, 0, 5);
		rig_wqe(a, MLX5_OPCODE_SEND_INVAL, RIG_CQE, 2, htobe32(key));
		rig_ring(a);
		rig_poll(k->p.u[0]);
		rig_wait(&k->p.cb, k->p.u[1], &e);
		if (row < 6) {
			assert_int_equal(e.opcode, MLX5_CQE_RESP_ERR);
			assert_int_equal(e.syndrome, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
			rig_expect_error(a, (uint16_t)(a->pi - 1), MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
		} else {
			assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_INV);
			assert_int_equal(be32toh(e.imm), key);
			assert_int_equal(e.bytes, 5);
			rig_expect_ok(a, MLX5_OPCODE_SEND_INVAL, (uint16_t)(a->pi - 1));
			/* The window does not hold the region any more. */
			OK(soft_cmd_if.mr_dereg(k->p.d.ctx, k->mem.mr));
			{
				struct mlx5_mr_attr attr =
					mlx5_mr_mem(k->mem.p, RIG_MEM, BB_ACCESS_LOCAL_WRITE);

				OK(soft_cmd_if.mr_reg(k->p.d.ctx, k->p.d.pd, &attr, &k->mem.mr));
			}
		}
		if (obj != NULL)
			OK(soft_cmd_if.obj_destroy(obj));
		keys_close(k);
	}
}

TEST_MAIN(0)
