/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Which keys a UMR may change and in which state, and the limits of windows and patterns. Each
 * refusal is provoked so that no other rule would refuse, too.
 */
#include "../../../fakes/process.h"
#include "soft.h"
#include "soft_umr_env.h"

#define BIND MLX5_CQE_SYNDROME_MW_BIND_ERR

/* Expects that the UMR is refused, on a queue that the test closes afterwards. */
static void
refused(struct rig_qp *q, const struct umr *w)
{
	uint16_t at = q->pi;

	umr_put(q, w, RIG_CQE);
	rig_ring(q);
	assert_int_equal(rig_expect_error(q, at, BIND), 0x78);
}

/* Returns a UMR that changes only the rights of @key. */
static struct umr
rights_make(uint32_t key)
{
	return umr_make(key, 0, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ, 0);
}

TEST(test_key_belongs_to_its_pd_and_qp)
{
	struct keys *k = keys_open(false);
	struct mlx5_obj *obj;
	struct mlx5_pd *pd;
	struct umr w;
	uint32_t key;

	/* A key of another PD is refused; the same kind of key of the QP's own PD is accepted. */
	obj = used_key(k, k->p.d.pd, true, true, &key);
	w = rights_make(key);
	umr_ok(&k->p.b, &w);
	OK(soft_cmd_if.obj_destroy(obj));
	OK(soft_cmd_if.pd_alloc(k->p.d.ctx, &pd));
	obj = used_key(k, pd, true, true, &key);
	w = rights_make(key);
	refused(&k->p.b, &w);
	OK(soft_cmd_if.obj_destroy(obj));
	OK(soft_cmd_if.pd_free(k->p.d.ctx, pd));
	keys_close(k);
	/* A key without umr_en. */
	k = keys_open(false);
	obj = used_key(k, k->p.d.pd, false, false, &key);
	w = rights_make(key);
	refused(&k->p.b, &w);
	OK(soft_cmd_if.obj_destroy(obj));
	keys_close(k);
	/* A key that is not free, if the UMR asks for the check. */
	k = keys_open(false);
	w = list_make(k);
	w.u.flags |= MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE;
	umr_ok(&k->p.b, &w);
	refused(&k->p.b, &w);
	keys_close(k);
	/* A window that another QP has bound cannot be invalidated by this QP. */
	k = keys_open(false);
	w = bind_make(k, true);
	umr_ok(&k->p.b, &w);
	w = inv_make((k->two->rkey & ~0xffu) | 0x77);
	refused(&k->p.a, &w);
	umr_ok(&k->p.b, &w);
	keys_close(k);
	/*
	 * The QP of an indirect key may be set to the posting QP, or to none, but not to another
	 * QP.
	 */
	k = keys_open(false);
	w = list_make(k);
	w.u.mkey_mask |= htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN);
	w.m.qpn_mkey = htobe32(k->p.b.qpn << 8);
	umr_ok(&k->p.b, &w);
	w.m.qpn_mkey = htobe32(0xffffff00);
	umr_ok(&k->p.b, &w);
	w.m.qpn_mkey = htobe32(k->p.a.qpn << 8);
	refused(&k->p.b, &w);
	keys_close(k);
}

static struct umr
window(struct keys *k, const struct rig_mem *m, size_t off, uint32_t len)
{
	struct umr w = bind_make(k, true);

	put_klm(&w, 0, len, m->mr->lkey, (uintptr_t)m->p + off);
	w.m.start_addr = htobe64((uintptr_t)m->p + off);
	w.m.len = htobe64(len);
	return w;
}

/* A window covers at most its region, up to the last byte, and one block of translations. */
TEST(test_window_covers_at_most_its_region)
{
	static const struct {
		size_t off;
		uint32_t len;
		bool ok;
	} cases[] = {
		{0, RIG_MEM, true},
		{RIG_MEM - 1, 1, true},
		{RIG_MEM - 4096, 4096, true},
		{0, RIG_MEM + 1, false},
		{RIG_MEM - 4096, 4097, false},
		{RIG_MEM, 1, false},
	};
	struct rig_mem mem;
	struct keys *k;
	struct umr w;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		k = keys_open(false);
		w = window(k, &k->mem, cases[i].off, cases[i].len);
		if (cases[i].ok)
			umr_ok(&k->p.b, &w);
		else
			refused(&k->p.b, &w);
		keys_close(k);
	}
	k = keys_open(false);
	w = bind_make(k, true);
	w.ds = 16;
	w.u.klm_octowords = htobe16(8);
	refused(&k->p.b, &w);
	keys_close(k);
	/*
	 * Windows for WRITEs or atomics need a region with LOCAL_WRITE; windows for READs do not.
	 */
	for (i = 0; i < 3; i++) {
		k = keys_open(false);
		rig_mem_open(&mem, &k->p.d, NULL, 4096, BB_ACCESS_MW_BIND);
		w = window(k, &mem, 0, 64);
		w.m.access_flags = i == 0   ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ
				   : i == 1 ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE
					    : MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
		if (i == 0) {
			umr_ok(&k->p.b, &w);
			w = inv_make((k->two->rkey & ~0xffu) | 0x77);
			umr_ok(&k->p.b, &w);
		} else {
			refused(&k->p.b, &w);
		}
		rig_mem_close(&mem);
		keys_close(k);
	}
}

TEST(test_window_of_memory_on_demand_is_refused)
{
	struct rig_mem mem;
	struct keys *k;
	struct umr w;

	NEED_KERNEL_COPIES();
	k = keys_open(false);
	rig_mem_open(&mem, &k->p.d, NULL, 4096, ALL_MW | BB_ACCESS_ON_DEMAND);
	w = window(k, &mem, 0, 64);
	refused(&k->p.b, &w);
	rig_mem_close(&mem);
	keys_close(k);
}

/* A pattern fills its WQE to the last entry, and uses no entry past its end. */
TEST(test_pattern_fills_its_wqe_exactly)
{
	struct mlx5_wqe_umr_repeat_block_seg *rb;
	struct mlx5_wqe_umr_repeat_ent_seg *e;
	uint32_t n, i;

	for (n = 0; n < 5; n++) {
		struct keys *k = keys_open(false);
		struct umr w = pattern_make(k);

		rb = (void *)w.x;
		e = (void *)(w.x + 16);
		for (i = 1; i < 4; i++)
			e[i] = e[0];
		rb->num_ent = htobe16((uint16_t)n);
		rb->byte_count = htobe32(8 * n);
		w.m.len = htobe64(40 * n);
		/* An entry that would be valid is placed after the WQE. */
		memcpy(rig_seg(&k->p.b, k->p.b.pi, w.ds), &e[0], sizeof(e[0]));
		if (n >= 1 && n <= 3)
			umr_ok(&k->p.b, &w);
		else
			refused(&k->p.b, &w);
		keys_close(k);
	}
}

/* Posts a SEND of @a that invalidates @key; returns true if it did. */
static bool
invalidate(struct keys *k, uint32_t key)
{
	struct rig_qp *a = &k->p.a;
	struct rig_cqe e;

	rig_data(a, 1, &k->p.ma, 0, 5);
	rig_wqe(a, MLX5_OPCODE_SEND_INVAL, RIG_CQE, 2, htobe32(key));
	rig_ring(a);
	rig_poll(k->p.u[0]);
	rig_wait(&k->p.cb, k->p.u[1], &e);
	if (e.opcode == MLX5_CQE_RESP_ERR) {
		assert_int_equal(e.syndrome, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
		rig_expect_error(a, (uint16_t)(a->pi - 1), MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
		return false;
	}
	assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_INV);
	rig_expect_ok(a, MLX5_OPCODE_SEND_INVAL, (uint16_t)(a->pi - 1));
	return true;
}

TEST(test_peer_may_invalidate_only_its_window)
{
	struct keys *k = keys_open(false);
	struct mlx5_obj *obj;
	struct mlx5_pd *pd;
	struct rig_mem named;
	struct mlx5_mr mr;
	struct umr w;
	uint32_t key;

	/* A key of another PD. */
	OK(soft_cmd_if.pd_alloc(k->p.d.ctx, &pd));
	obj = used_key(k, pd, true, true, &key);
	rig_recv(&k->p.b, &k->p.mb, 0, 64);
	assert_false(invalidate(k, key));
	OK(soft_cmd_if.obj_destroy(obj));
	OK(soft_cmd_if.pd_free(k->p.d.ctx, pd));
	keys_close(k);
	/* The previous rkey of the window. */
	k = keys_open(false);
	w = bind_make(k, true);
	umr_ok(&k->p.b, &w);
	rig_recv(&k->p.b, &k->p.mb, 0, 64);
	assert_false(invalidate(k, (k->two->rkey & ~0xffu) | 0x76));
	keys_close(k);
	/*
	 * The key through which the receive itself addresses its memory: the data is already
	 * written.
	 */
	k = keys_open(false);
	w = list_make(k);
	umr_ok(&k->p.b, &w);
	mr = *k->mem.mr;
	mr.lkey = k->key;
	named = k->mem;
	named.p = NULL;
	named.mr = &mr;
	rig_recv(&k->p.b, &named, 0, 64);
	assert_true(invalidate(k, k->key));
	assert_memory_equal(k->mem.p + 1000, k->p.ma.p, 5);
	keys_close(k);
	/* A key that a peer has invalidated belongs to no QP any more. */
	k = keys_open(false);
	w = bind_make(k, true);
	umr_ok(&k->p.b, &w);
	rig_recv(&k->p.b, &k->p.mb, 0, 64);
	assert_true(invalidate(k, (k->two->rkey & ~0xffu) | 0x77));
	w = inv_make((k->two->rkey & ~0xffu) | 0x77);
	umr_ok(&k->p.a, &w);
	keys_close(k);
}

/* ---- While another engine uses the key */

static uint32_t *
gate_of(struct keys *k)
{
	return &soft_dev_peek_gid(k->p.d.gid.raw)->mkeys[k->key >> 8]->ind->gate;
}

static void
up_again(struct keys *k)
{
	struct rig_link link = rig_link_default();
	struct rig_cqe e;

	rig_qp_reset(&k->p.a);
	rig_qp_reset(&k->p.b);
	rig_connect(&k->p.a, &k->p.b, &link);
	while (rig_cqe(&k->p.ca, &e) || rig_cqe(&k->p.cb, &e))
		;
}

/* Checks that a can write through b's key. */
static void
usable(struct keys *k)
{
	struct rig_qp *a = &k->p.a;
	uint16_t at = a->pi;

	memset(k->mem.p + 1000, 0, 128);
	rig_raddr(a, 0, k->key);
	rig_data(a, 2, &k->p.ma, 0, 128);
	rig_wqe(a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
	rig_ring(a);
	rig_poll(k->p.u[0]);
	rig_poll(k->p.u[1]);
	rig_expect_ok(a, MLX5_OPCODE_RDMA_WRITE, at);
	assert_memory_equal(k->mem.p + 1000, k->p.ma.p, 128);
}

static const char *const ports[] = {NULL, "wire=1"};

/*
 * A change waits for engines that use the key. If the change is cancelled meanwhile, the key
 * stays as it is.
 */
TEST(test_cancelled_change_leaves_the_key)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct keys *k = keys_open_args(ports[i % 2], true);
		struct rig_qp *a = &k->p.a, *b = &k->p.b;
		struct umr w = list_make(k);
		struct rig_cqe e;

		umr_ok(b, &w);
		memcpy(k->p.ma.p, "somebody is inside", 18);
		__atomic_add_fetch(gate_of(k), 1, __ATOMIC_ACQ_REL);
		if (i < 2) {
			w = inv_make(k->key);
			umr_put(b, &w, RIG_CQE);
			rig_ring(b);
		} else {
			rig_recv(b, &k->p.mb, 0, 64);
			rig_data(a, 1, &k->p.ma, 0, 5);
			rig_wqe(a, MLX5_OPCODE_SEND_INVAL, RIG_CQE, 2, htobe32(k->key));
			rig_ring(a);
		}
		rig_poll(k->p.u[0]);
		rig_expect_none(&k->p.cb, k->p.u[1]);
		rig_expect_none(&k->p.ca, k->p.u[0]);
		rig_qp_error(i < 2 ? b : a);
		rig_wait(i < 2 ? &k->p.cb : &k->p.ca, k->p.u[i < 2], &e);
		assert_int_equal(e.syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		__atomic_sub_fetch(gate_of(k), 1, __ATOMIC_ACQ_REL);
		up_again(k);
		usable(k);
		keys_close(k);
	}
}

/*
 * The change is applied after the last user has left; the repeated receive uses the changed key,
 * too.
 */
TEST(test_change_waits_for_the_last_user)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct keys *k = keys_open_args(ports[i], true);
		struct rig_qp *a = &k->p.a, *b = &k->p.b;
		struct umr w = list_make(k);
		struct rig_mem named = k->mem;
		struct mlx5_mr mr = *k->mem.mr;
		uint16_t at = a->pi;
		struct rig_cqe e;
		uint64_t end;

		umr_ok(b, &w);
		mr.lkey = k->key;
		named.p = NULL;
		named.mr = &mr;
		rig_recv(b, &named, 0, 64);
		__atomic_add_fetch(gate_of(k), 1, __ATOMIC_ACQ_REL);
		rig_data(a, 1, &k->p.ma, 0, 5);
		rig_wqe(a, MLX5_OPCODE_SEND_INVAL, RIG_CQE, 2, htobe32(k->key));
		rig_ring(a);
		rig_poll(k->p.u[0]);
		rig_expect_none(&k->p.cb, k->p.u[1]);
		__atomic_sub_fetch(gate_of(k), 1, __ATOMIC_ACQ_REL);
		/* The sender repeats its request. */
		for (end = rig_now_us() + RIG_WAIT_US; !rig_cqe(&k->p.cb, &e);) {
			assert_true(rig_now_us() < end);
			rig_poll(k->p.u[0]);
			rig_poll(k->p.u[1]);
		}
		assert_int_equal(e.opcode, MLX5_CQE_RESP_SEND_INV);
		assert_memory_equal(k->mem.p + 1000, k->p.ma.p, 5);
		rig_expect_ok(a, MLX5_OPCODE_SEND_INVAL, at);
		keys_close(k);
	}
}

/*
 * A device whose UMRs cannot change atomic rights: a UMR that names the right fails, another
 * succeeds.
 */
TEST(test_device_without_atomic_umrs_refuses_the_right)
{
	const uint64_t a = MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
	unsigned int row;

	for (row = 0; row < 4; row++) {
		struct keys *k = keys_open_args("no_umr_atomic", false);
		struct umr w = row < 2 ? bind_make(k, row == 1) : list_make(k);

		if (row == 3) {
			w.u.mkey_mask &= ~htobe64(a);
			umr_ok(&k->p.b, &w);
			w = inv_make(k->key);
			umr_ok(&k->p.b, &w);
		} else {
			refused(&k->p.b, &w);
		}
		keys_close(k);
	}
}

TEST_MAIN(0)
