/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Indirect keys on a stub of the command interface: the CREATE_MKEY mailbox, and rejected calls.
 */
#include "../../fakes/log_catch.h"
#include "mlx5_fixture.h"

static void
open_with(struct fixture *f, bool ksm)
{
	stub_reset();
	bb_prm_set(stub.general, BB_PRM_HCA_MAX_INDIRECTION, 1);
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, 6);
	bb_prm_set(stub.general, BB_PRM_HCA_FIXED_BUFFER_SIZE, ksm);
	bb_prm_set(stub.atomic, BB_PRM_ATOMIC_CAP_SIZE_QP, 0x18);
	open_dev(f);
}

#define IOVA UINT64_C(0xabcd00000000)

/* Creates a key over pieces of these lengths and returns its mailbox. */
static const uint8_t *
make(struct fixture *f, uint64_t iova, const uint32_t *len, uint32_t n, uint32_t *lkey)
{
	struct bb_mkey_attr attr = DEFAULTS(mkey_attr);
	struct bb_sge sge[8];
	struct bb_mkey *k;

	for (uint32_t i = 0; i < n; i++)
		sge[i] = (struct bb_sge){UINT64_C(0x7000123400000) + i, len[i], 0x4500 + i};
	attr.pieces = sge;
	attr.n = n;
	attr.iova = iova;
	attr.access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ;
	assert_int_equal(bb_mkey_create(f->pd, &attr, &k), 0);
	*lkey = k->lkey;
	assert_int_equal(bb_mkey_destroy(k), 0);
	return stub_box(BB_PRM_OP_CREATE_MKEY);
}

/* Pieces of one power of two make a KSM; the last piece may be shorter. All others make a KLM. */
T_F(test_pieces_of_one_power_of_two_make_a_ksm)
{
	static const struct {
		uint32_t log; /* log2 of the piece size, 0: KLM */
		uint32_t n, len[4];
	} cases[] = {
		{12, 1, {1}},
		{12, 1, {4096}},
		{13, 1, {4097}},
		{31, 1, {0x80000000}},
		{12, 2, {4096, 4096}},
		{12, 2, {4096, 1}},
		{12, 3, {4096, 4096, 4095}},
		{0, 2, {4096, 4097}},
		{0, 2, {2048, 2048}},
		{0, 2, {12288, 12288}},
		{0, 2, {4097, 4096}},
		{0, 2, {0x7fffffff, 1}},
		{0, 3, {4096, 4095, 4096}},
		{0, 3, {4096, 4095, 4095}},
		{31, 2, {0x80000000, 0x80000000}},
	};
	uint32_t last, ksm, i, k;

	for (ksm = 0; ksm < 2; ksm++) {
		open_with(f, ksm);
		/* The first key of a device may have any low byte. */
		last = UINT32_MAX;
		for (i = 0; i < RTE_DIM(cases); i++) {
			uint32_t log = ksm ? cases[i].log : 0, n = cases[i].n, key;
			const uint8_t *in = make(f, IOVA, cases[i].len, n, &key);
			const uint8_t *m = in + BB_PRM_CREATE_MKEY_MKC.byte;
			const uint8_t *x = in + BB_PRM_SZ_CREATE_MKEY_IN;
			uint64_t sum = 0;

			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_ACCESS_MODE),
					 log != 0 ? BB_PRM_MKC_MODE_KSM : BB_PRM_MKC_MODE_KLMS);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_LOG_PAGE_SIZE), log);
			assert_int_equal(bb_prm_get(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL), n);
			/* KLM: room for 4 entries, with zeros after the list. */
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_XLT_OCTWORD_SIZE),
					 log != 0 ? n : 4);
			assert_int_equal(stub_box_len(BB_PRM_OP_CREATE_MKEY),
					 BB_PRM_SZ_CREATE_MKEY_IN + (log != 0 ? n : 4) * 16);
			for (k = 0; k < n; k++, x += 16) {
				assert_int_equal(bb_prm_dword(x, 0),
						 log != 0 ? 0 : cases[i].len[k]);
				assert_int_equal(bb_prm_dword(x, 4), 0x4500 + k);
				assert_int_equal(bb_prm_dword(x, 8), 0x70001);
				assert_int_equal(bb_prm_dword(x, 12), 0x23400000 + k);
				sum += cases[i].len[k];
			}
			assert_int_equal(bb_prm_get64(m, BB_PRM_MKC_LEN), sum);
			assert_int_equal(bb_prm_get64(m, BB_PRM_MKC_START_ADDR), IOVA);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_PD), STUB_PDN);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_QPN), 0xffffff);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_FREE), 0);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_UMR_EN), 0);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_LR), 1);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_LW), 1);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_RR), 1);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_RW), 0);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_A), 0);
			/* A new key of the same index differs from the old one. */
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_MKEY_7_0), key & 0xff);
			assert_int_not_equal(key & 0xff, last);
			last = key & 0xff;
		}
		close_dev(f);
	}
}

/*
 * The room and the mailbox of a KLM key are those of create_indirect_key() in Linux's
 * drivers/vdpa/mlx5/core/mr.c, whose klm_byte_size() is 16 * ALIGN(nklms, 4).
 */
T_F(test_klm_list_of_five_is_padded_to_eight)
{
	static const uint32_t len[] = {100, 200, 300, 400, 500};
	static const uint8_t zeros[2 * 16];
	const uint8_t *in;
	uint32_t key;

	open_with(f, true);
	in = make(f, IOVA, len, 5, &key);
	assert_int_equal(bb_prm_dword(in, 0x10 + 0x34), 8); /* mkc.translations_octword_size */
	assert_int_equal(bb_prm_dword(in, 0x60), 5);        /* translations_octword_actual_size */
	assert_int_equal(stub_box_len(BB_PRM_OP_CREATE_MKEY), 0x110 + 8 * 16);
	assert_int_equal(bb_prm_dword(in, 0x110 + 4 * 16), 500);
	assert_memory_equal(in + 0x110 + 5 * 16, zeros, sizeof(zeros));
}

/*
 * Devices that accept only keys with relaxed ordering. Positions: DPDK's mlx5_prm.h,
 * cmd_hca_cap.mkc_order_write_after_write_ro_only (bit 0x3a9), mkc.relaxed_ordering_write (bit
 * 0xd).
 */
T(test_relaxed_only_device_gets_only_relaxed_keys)
{
	static const uint32_t len[] = {100};
	static uint8_t mem[4096];
	const uint32_t write = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE;
	struct fixture f;
	struct bb_mr *mr;
	uint32_t key;

	for (uint32_t only = 0; only < 2; only++) {
		const uint32_t relaxed = only ? BB_ACCESS_RELAXED_ORDERING : 0;

		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_MAX_INDIRECTION, 1);
		bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, 6);
		stub.general[0x3a8 / 8] |= only ? 0x40 : 0;
		log_begin();
		open_dev(&f);
		log_expect(only ? "accepts only keys with relaxed ordering" : NULL);
		assert_int_equal(make(&f, IOVA, len, 1, &key)[0x10 + 0xd / 8] & 0x04,
				 only ? 0x04 : 0);
		/* A key by which no peer writes. */
		assert_int_equal(bb_mr_reg(f.pd, mem, sizeof(mem),
					   BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ, &mr),
				 0);
		assert_int_equal(stub.mr_access,
				 BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ | relaxed);
		assert_int_equal(
			bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, BB_ACCESS_REMOTE_READ),
			0);
		assert_int_equal(stub.mr_access, BB_ACCESS_REMOTE_READ | relaxed);
		assert_int_equal(bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, write),
				 only ? -ENOTSUP : 0);
		assert_int_equal(bb_mr_dereg(mr), 0);
		/* A key by which peers write needs the right of the caller. */
		log_begin();
		assert_int_equal(bb_mr_reg(f.pd, mem, sizeof(mem), write, &mr),
				 only ? -ENOTSUP : 0);
		log_expect(only ? "add BB_ACCESS_RELAXED_ORDERING" : NULL);
		if (!only)
			assert_int_equal(bb_mr_dereg(mr), 0);
		assert_int_equal(
			bb_mr_reg(f.pd, mem, sizeof(mem), write | BB_ACCESS_RELAXED_ORDERING, &mr),
			0);
		assert_int_equal(stub.mr_access, write | relaxed);
		assert_int_equal(bb_mr_dereg(mr), 0);
		close_dev(&f);
	}
}

/* A key that begins inside an entry has less room in its entries by that offset, or is a KLM. */
T_F(test_key_that_begins_inside_an_entry_has_less_room)
{
	static const struct {
		uint32_t off, log, n, len[3];
	} cases[] = {
		{1, 0, 1, {4096}},
		{4095, 12, 1, {1}},
		{4095, 0, 1, {2}},
		{4096, 12, 2, {4096, 4096}},
		{8, 0, 2, {4096, 4096}},
		{4095, 12, 2, {4096, 1}},
		{4095, 0, 2, {4096, 2}},
		{4096, 0, 2, {8192, 8192}},
		{8192 - 100, 13, 3, {8192, 8192, 100}},
		{8192 - 99, 0, 3, {8192, 8192, 100}},
		{0x80000000, 31, 2, {0x80000000, 0x80000000}},
		{0x40000000, 0, 2, {0x80000000, 0x80000000}},
	};
	uint32_t key;

	open_with(f, true);
	for (uint32_t i = 0; i < RTE_DIM(cases); i++) {
		const uint8_t *in = make(f, IOVA + cases[i].off, cases[i].len, cases[i].n, &key);
		const uint8_t *m = in + BB_PRM_CREATE_MKEY_MKC.byte;

		assert_int_equal(bb_prm_get(m, BB_PRM_MKC_ACCESS_MODE),
				 cases[i].log != 0 ? BB_PRM_MKC_MODE_KSM : BB_PRM_MKC_MODE_KLMS);
		assert_int_equal(bb_prm_get(m, BB_PRM_MKC_LOG_PAGE_SIZE), cases[i].log);
		assert_int_equal(bb_prm_get64(m, BB_PRM_MKC_START_ADDR), IOVA + cases[i].off);
	}
}

/* A key without layout, as mlx5dv_create_mkey() makes it: free, in blocks of four. */
T_F(test_key_without_layout_is_free_in_blocks_of_four)
{
	static const uint32_t pieces[] = {1, 4, 5, 64}, octowords[] = {4, 4, 8, 64};
	struct bb_mkey_attr attr;
	struct bb_mkey *k;

	for (uint32_t ksm = 0; ksm < 2; ksm++) {
		open_with(f, ksm);
		for (uint32_t i = 0; i < RTE_DIM(pieces); i++) {
			const uint8_t *in, *m;

			bb_mkey_attr_init(&attr);
			attr.max_pieces = pieces[i];
			assert_int_equal(bb_mkey_create(f->pd, &attr, &k), 0);
			in = stub_box(BB_PRM_OP_CREATE_MKEY);
			m = in + BB_PRM_CREATE_MKEY_MKC.byte;
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_XLT_OCTWORD_SIZE), octowords[i]);
			assert_int_equal(bb_prm_get(in, BB_PRM_CREATE_MKEY_XLT_ACTUAL), 0);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_ACCESS_MODE),
					 BB_PRM_MKC_MODE_KLMS);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_LOG_PAGE_SIZE), 0);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_FREE), 1);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_UMR_EN), 1);
			assert_int_equal(bb_prm_get(m, BB_PRM_MKC_MKEY_7_0), 0);
			assert_int_equal(k->lkey & 0xff, 0);
			assert_int_equal(bb_mkey_destroy(k), 0);
		}
		close_dev(f);
	}
}

/*
 * Arguments that lib/core rejects although the device would accept them. The limits themselves
 * are accepted.
 */
T(test_mkey_create_refuses_bad_arguments)
{
	struct bb_sge piece = {0x10000, 4096, 0x4500}, many[65];
	struct bb_mkey_attr good, a;
	struct bb_mkey *k = NULL;
	struct fixture f;

	open_with(&f, true);
	for (uint32_t i = 0; i < RTE_DIM(many); i++)
		many[i] = piece;
	bb_mkey_attr_init(&good);
	good.pieces = &piece;
	good.n = 1;
#define TRY(want_, text_, ...)                                                                     \
	do {                                                                                       \
		a = good;                                                                          \
		piece.len = 4096;                                                                  \
		__VA_ARGS__;                                                                       \
		log_begin();                                                                       \
		assert_int_equal(bb_mkey_create(f.pd, &a, &k), want_);                             \
		log_expect(text_);                                                                 \
		assert_int_equal(k != NULL, (want_) == 0);                                         \
		if (k != NULL) {                                                                   \
			assert_int_equal(k->iova, a.iova);                                         \
			assert_int_equal(k->access, a.access);                                     \
			assert_int_equal(bb_mkey_destroy(k), 0);                                   \
		}                                                                                  \
		k = NULL;                                                                          \
	} while (0)
	TRY(-EINVAL, "bb_mkey_attr_init", a.size--);
	TRY(-EINVAL, "pieces is NULL", a.pieces = NULL);
	TRY(-EINVAL, "1 to 2^31", piece.len = 0);
	TRY(-EINVAL, "1 to 2^31", piece.len = 0x80000001);
	TRY(0, NULL, piece.len = 0x80000000);
	TRY(-EINVAL, "overflow", a.iova = UINT64_MAX - 4095);
	TRY(0, NULL, a.iova = UINT64_MAX - 4096);
	TRY(-EINVAL, "either", a.n = 0);
	TRY(-EINVAL, "either", a.max_pieces = 1);
	TRY(-EINVAL, "max_mkey_pieces", (a.pieces = many, a.n = 65));
	TRY(0, NULL, (a.pieces = many, a.n = 64));
	TRY(-EINVAL, "max_mkey_pieces", (a.n = 0, a.max_pieces = 65));
	TRY(0, NULL, (a.n = 0, a.max_pieces = 64));
	TRY(-EINVAL, "allows only LOCAL_WRITE", a.access = BB_ACCESS_MW_BIND);
	TRY(-EINVAL, "need LOCAL_WRITE", a.access = BB_ACCESS_REMOTE_WRITE);
	TRY(-EINVAL, "need LOCAL_WRITE", a.access = BB_ACCESS_REMOTE_ATOMIC);
	TRY(0, NULL, a.access = BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_LOCAL_WRITE);
	/* A key with atomics needs an aligned start and length; others do not. */
	assert_int_equal(f.dev->attr.mkey_atomic_align, 16);
#define ATOMIC (a.access = BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_LOCAL_WRITE)
	TRY(0, NULL, (ATOMIC, a.iova = 0x1230, piece.len = 48));
	TRY(-EINVAL, "multiples of mkey_atomic_align", (ATOMIC, a.iova = 0x1238));
	TRY(-EINVAL, "multiples of mkey_atomic_align", (ATOMIC, piece.len = 4088));
	TRY(-EINVAL, "multiples of mkey_atomic_align", (ATOMIC, piece.len = 1));
	TRY(0, NULL, (a.access = BB_ACCESS_LOCAL_WRITE, a.iova = 1, piece.len = 1));
	/* An empty key gets its rights from the request that lays it out. */
	TRY(0, NULL, (ATOMIC, a.iova = 1, a.n = 0, a.max_pieces = 1));
	f.dev->attr.mkey_atomic_align = 0;
	TRY(-EINVAL, "no atomics on indirect keys", ATOMIC);
	f.dev->attr.atomics = false;
	TRY(-EINVAL, "no atomics", a.access = BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_LOCAL_WRITE);
	TRY(0, NULL, a.access = BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bb_mkey_create(NULL, &good, &k), -EINVAL);
	assert_int_equal(bb_mkey_create(f.pd, NULL, &k), -EINVAL);
	assert_int_equal(bb_mkey_create(f.pd, &good, NULL), -EINVAL);
	assert_int_equal(bb_mkey_destroy(NULL), -EINVAL);
	close_dev(&f);
}

/* Layouts that are rejected before a WQE is posted. */
T(test_bad_layout_is_refused_before_the_post)
{
	struct bb_interleaved block[4] = {{.addr = 0x10000, .bytes = 8, .lkey = 0x4500}};
	struct bb_sge piece[4] = {{0x10000, 64, 0x4500}};
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_mkey_attr a = DEFAULTS(mkey_attr);
	struct bb_mkey *k, *other;
	struct bb_pd *pd;
	struct fixture f;

	open_with(&f, true);
	make_qp(&f, &init);
	assert_int_equal(bb_pd_alloc(f.dev, &pd), 0);
	a.max_pieces = 3;
	assert_int_equal(bb_mkey_create(f.pd, &a, &k), 0);
	assert_int_equal(bb_mkey_create(pd, &a, &other), 0);
#define NOT(want_, text_, call_)                                                                   \
	do {                                                                                       \
		log_begin();                                                                       \
		assert_int_equal(call_, want_);                                                    \
		log_expect(text_);                                                                 \
	} while (0)
	NOT(-EINVAL, "different PDs", bb_post_mkey_list(f.qp, 0, other, 0, piece, 1, 0));
	NOT(-EINVAL, "the key's max_pieces", bb_post_mkey_list(f.qp, 0, k, 0, piece, 4, 0));
	/* The head of the pattern takes one entry. No number of blocks overflows the check. */
	NOT(-EINVAL, "the key's max_pieces",
	    bb_post_mkey_interleaved(f.qp, 0, k, 0, 1, block, 3, 0));
	NOT(-EINVAL, "the key's max_pieces",
	    bb_post_mkey_interleaved(f.qp, 0, k, 0, 1, block, UINT32_MAX, 0));
	f.dev->attr.mkey_interleaved = false;
	NOT(-ENOTSUP, "no interleaved layouts",
	    bb_post_mkey_interleaved(f.qp, 0, k, 0, 1, block, 1, 0));
	assert_int_equal(bb_mkey_destroy(other), 0);
	assert_int_equal(bb_mkey_destroy(k), 0);
	assert_int_equal(bb_pd_free(pd), 0);
	close_dev(&f);
}

TEST_MAIN(stub_eal_init("mlx5_mkey"))
