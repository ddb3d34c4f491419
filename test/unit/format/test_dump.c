/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Dumps: their texts, truncation, and bytes made to lead the dumper outside the ring. */
#include "../queue/sq_fixture.h"
#include "bb_cqe.h"
#include "bb_sq_ud.h"
#include "bb_wqe_priv.h"

/* Puts a WQE's bytes at block @at of a ring of @blocks blocks, wrapped at its end. */
static void
place(uint8_t *ring, uint32_t blocks, uint32_t at, const struct bytes *e)
{
	for (size_t i = 0; i < e->len; i++)
		ring[((size_t)at * 64 + i) % ((size_t)blocks * 64)] = e->b[i];
}

static void
ctrl(struct bytes *e, uint8_t opcode, uint16_t idx, uint32_t ds, uint8_t fm_ce_se, uint32_t imm)
{
	put32(e, (uint32_t)idx << 8 | opcode);
	put32(e, 0x123456u << 8 | ds);
	put32(e, fm_ce_se);
	put32(e, imm);
}

static void
expect_text(const uint8_t *ring, uint32_t blocks, uint16_t idx, bool ud, const char *want)
{
	char text[1024];
	int n = bb_wqe_dump(text, sizeof(text), ring, blocks, idx, ud);

	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
}

static void
expect_wqe(const uint8_t *ring, uint32_t blocks, uint16_t idx, const char *want)
{
	expect_text(ring, blocks, idx, false, want);
}

TEST(test_dump_of_send_wqes)
{
	uint8_t ring[4 * 64] = {0};
	struct bytes e = {.len = 0};

	ctrl(&e, 0x09, 3, 4, 0x8a, 0x11223344);
	put64(&e, 0xaabbccdd00112233ull);
	put32(&e, 0x1234);
	put32(&e, 0);
	put32(&e, 100);
	put32(&e, 0x77);
	put64(&e, 0x7f0000001000ull);
	put32(&e, 0x80000005);
	put_mem(&e, "\x01\x02\x03\x04\x05", 5);
	put_pad16(&e, 0);
	place(ring, 4, 3, &e);
	expect_wqe(ring, 4, 3,
		   "WQE 3: RDMA_WRITE_IMM (opcode 0x09) index 3 QP 0x123456 ds 4 ce 2 fm 4 "
		   "solicited imm 0x11223344 | raddr 0xaabbccdd00112233 rkey 0x1234 | 100 bytes at "
		   "0x7f0000001000 lkey 0x77 | inline 5 bytes: 01020304 05");

	/* The same slot one lap later: the index in the WQE is stale. */
	expect_wqe(ring, 4, 7,
		   "WQE 7: RDMA_WRITE_IMM (opcode 0x09) index 3 QP 0x123456 ds 4 ce 2 fm 4 "
		   "solicited imm 0x11223344 (bad: index is not the WQE's position) | raddr "
		   "0xaabbccdd00112233 rkey 0x1234 | 100 bytes at 0x7f0000001000 lkey 0x77 | "
		   "inline 5 bytes: 01020304 05");

	e.len = 0;
	ctrl(&e, 0x11, 0, 4, 0, 0);
	put64(&e, 0x100);
	put32(&e, 0x9);
	put32(&e, 0);
	put64(&e, 0x51);
	put64(&e, 0xc0);
	put32(&e, 0);
	put32(&e, 0x8);
	put64(&e, 0x200);
	place(ring, 4, 0, &e);
	expect_wqe(ring, 4, 0,
		   "WQE 0: CMP_SWAP (opcode 0x11) index 0 QP 0x123456 ds 4 ce 0 fm 0 | raddr 0x100 "
		   "rkey 0x9 | compare 0xc0 swap 0x51 | 2147483648 bytes at 0x200 lkey 0x8");
	ring[3] = 0x12;
	expect_wqe(
		ring, 4, 0,
		"WQE 0: FETCH_ADD (opcode 0x12) index 0 QP 0x123456 ds 4 ce 0 fm 0 | raddr 0x100 "
		"rkey 0x9 | add 0x51 | 2147483648 bytes at 0x200 lkey 0x8");

	e.len = 0;
	ctrl(&e, 0x00, 1, 1, 0x08, 0);
	place(ring, 4, 1, &e);
	expect_wqe(ring, 4, 1, "WQE 1: NOP (opcode 0x00) index 1 QP 0x123456 ds 1 ce 2 fm 0");

	e.len = 0;
	ctrl(&e, 0x26, 1, 2, 0, 0);
	put_mem(&e, "0123456789abcdef", 16);
	place(ring, 4, 1, &e);
	expect_wqe(ring, 4, 1,
		   "WQE 1: ? (opcode 0x26) index 1 QP 0x123456 ds 2 ce 0 fm 0 | 30313233 34353637 "
		   "38396162 63646566");
}

static void
expect_piece(const struct bb_wqe_piece *p, uint64_t addr, uint32_t len, uint32_t key, bool remote,
	     bool written)
{
	assert_fields(*p, addr, addr, len, len, key, key, remote, remote, written, written);
}

/* Datagrams as the library builds them: the address vector, then the data. */
TEST(test_dump_of_datagrams)
{
	const struct bb_sge sge[] = {{0x7000, 30, 0x88}, {0x9000, 2, 0x89}};
	struct bb_wqe_av av = {.rlid = bb_be16(0xc001),
			       .rmac = {2, 3, 4, 5, 6, 0xaa},
			       .rgid = {0xfe, 0x80, [14] = 0x12, 0x34}};
	struct bb_wqe_piece p[4];
	struct sq_fixture f;

	sq_fixture_conf(&f, 4);
	f.conf.type = BB_QPT_UD;
	f.conf.depth = 1;
	sq_fixture_start(&f);
	sq_fixture_seek(&f, 3);
	assert_int_equal(bb_sq_post_ud(&f.sq, BB_WQE_SEND, 1, &av, 0x123, 0x11223344, sge, 2, 0, 0),
			 0);
	expect_text(f.ring.p, 4, 3, true,
		    "WQE 3: SEND (opcode 0x0a) index 3 QP 0xabcdef ds 6 ce 2 fm 0 | to QP 0x000123 "
		    "Q_Key 0x11223344 rlid 0xc001 MAC 0203040506aa GID "
		    "fe800000000000000000000000001234 | 30 bytes at 0x7000 lkey 0x88 | 2 bytes at "
		    "0x9000 lkey 0x89");
	assert_int_equal(bb_wqe_pieces(p, 4, f.ring.p, 4, 3, true), 2);
	expect_piece(&p[0], 0x7000, 30, 0x88, false, false);
	expect_piece(&p[1], 0x9000, 2, 0x89, false, false);
	/* Cut off in the address vector. */
	f.ring.p[3 * 64 + 7] = 3;
	expect_text(f.ring.p, 4, 3, true,
		    "WQE 3: SEND (opcode 0x0a) index 3 QP 0xabcdef ds 3 ce 2 fm 0 | bad: no "
		    "address vector");
	assert_int_equal(bb_wqe_pieces(p, 4, f.ring.p, 4, 3, true), 0);
	sq_fixture_end(&f);
}

/*
 * Masked atomics as the library builds them: operands of 4 and of 8 bytes, with masks after them.
 */
TEST(test_dump_of_masked_atomics)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
		const char *text;
	} rows[] = {
		{BB_WQE_ATOMIC_MASKED_CS, 4,
		 "WQE 3: MASKED_CMP_SWAP (opcode 0x14) index 3 QP 0xabcdef ds 4 ce 2 fm 0 opmod "
		 "0x08 | raddr 0x1000 rkey 0x99 | compare 0x2 swap 0x1 masks 0x4 0x3 | 4 bytes at "
		 "0x7000 lkey 0x88"},
		{BB_WQE_ATOMIC_MASKED_CS, 8,
		 "WQE 3: MASKED_CMP_SWAP (opcode 0x14) index 3 QP 0xabcdef ds 5 ce 2 fm 0 opmod "
		 "0x09 | raddr 0x1000 rkey 0x99 | compare 0x2 swap 0x1 masks 0x4 0x3 | 8 bytes at "
		 "0x7000 lkey 0x88"},
		{BB_WQE_ATOMIC_MASKED_FA, 4,
		 "WQE 3: MASKED_FETCH_ADD (opcode 0x15) index 3 QP 0xabcdef ds 4 ce 2 fm 0 opmod "
		 "0x08 | raddr 0x1000 rkey 0x99 | add 0x1 boundaries 0x2 | 4 bytes at 0x7000 lkey "
		 "0x88"},
		{BB_WQE_ATOMIC_MASKED_FA, 8,
		 "WQE 3: MASKED_FETCH_ADD (opcode 0x15) index 3 QP 0xabcdef ds 4 ce 2 fm 0 opmod "
		 "0x09 | raddr 0x1000 rkey 0x99 | add 0x1 boundaries 0x2 | 8 bytes at 0x7000 lkey "
		 "0x88"},
	};
	struct bb_wqe_piece p[4];
	struct sq_fixture f;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bb_sge sge = {0x7000, rows[i].len, 0x88};
		char text[256];

		sq_fixture_conf(&f, 4);
		f.conf.depth = 2;
		sq_fixture_start(&f);
		sq_fixture_seek(&f, 3);
		assert_int_equal(bb_sq_post_masked(&f.sq, rows[i].opcode, 1, &sge, 0x1000, 0x99, 1,
						   2, 3, 4, 0),
				 0);
		expect_wqe(f.ring.p, 4, 3, rows[i].text);
		assert_int_equal(bb_wqe_pieces(p, 4, f.ring.p, 4, 3, false), 2);
		expect_piece(&p[0], 0x1000, 0, 0x99, true, false);
		expect_piece(&p[1], 0x7000, rows[i].len, 0x88, false, true);
		/* Cut off in the operands, the first or the second. */
		f.ring.p[3 * 64 + 7] = f.ring.p[3 * 64 + 7] == 5 ? 3 : 2;
		bb_wqe_dump(text, sizeof(text), f.ring.p, 4, 3, false);
		assert_non_null(strstr(text, "rkey 0x99 | bad: no atomic segment"));
		assert_int_equal(bb_wqe_pieces(p, 4, f.ring.p, 4, 3, false), 1);
		sq_fixture_end(&f);
	}
}

static void
umr(struct bytes *e, uint8_t flags, uint16_t xlt, uint64_t mask, uint8_t free, uint8_t access)
{
	put32(e, (uint32_t)flags << 24);
	put32(e, (uint32_t)xlt << 16);
	put64(e, mask);
	put_mem(e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
	put32(e, (uint32_t)free << 24 | (uint32_t)access << 8);
	put32(e, 0x123456aa);
	put64(e, 0);
	put64(e, 0x1000);
	put64(e, 300);
	put_mem(e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32);
}

TEST(test_dump_of_umr_wqes)
{
	uint8_t ring[4 * 64] = {0};
	struct bytes e = {.len = 0};

	ctrl(&e, 0x25, 3, 8, 0x28, 0x1234);
	umr(&e, 0x98, 0, 0x20006000, 0x40, 0xff);
	place(ring, 4, 3, &e);
	expect_wqe(ring, 4, 3,
		   "WQE 3: UMR (opcode 0x25) index 3 QP 0x123456 ds 8 ce 2 fm 1 | key 0x1234 if "
		   "this QP's mask 0x20006000 free it variant 0xaa QP 0x123456");

	e.len = 0;
	ctrl(&e, 0x25, 2, 9, 0, 0x1234);
	umr(&e, 0xb0, 4, 0x203c6041, 0, 0x68);
	put32(&e, 300);
	put32(&e, 0x77);
	put64(&e, 0x1000);
	place(ring, 4, 2, &e);
	expect_wqe(ring, 4, 2,
		   "WQE 2: UMR (opcode 0x25) index 2 QP 0x123456 ds 9 ce 0 fm 0 | key 0x1234 if "
		   "free mask 0x203c6041 use it variant 0xaa QP 0x123456 start 0x1000 length 300 "
		   "rights lw rw atomic | 300 bytes at 0x1000 lkey 0x77");

	/* A pattern of two blocks; the WQE holds one. */
	e.len = 0;
	ctrl(&e, 0x25, 1, 10, 0, 0x1200);
	umr(&e, 0x80, 4, 0x20002001, 0, 0x28);
	put32(&e, 24);
	put32(&e, 0x400);
	put32(&e, 7);
	put32(&e, 2);
	put32(&e, 64u << 16 | 16);
	put32(&e, 0x77);
	put64(&e, 0x2000);
	place(ring, 4, 1, &e);
	expect_wqe(ring, 4, 1,
		   "WQE 1: UMR (opcode 0x25) index 1 QP 0x123456 ds 10 ce 0 fm 0 | key 0x1200 mask "
		   "0x20002001 use it variant 0xaa length 300 | 7 times 24 bytes in 2 blocks | 16 "
		   "bytes each 64 at 0x2000 lkey 0x77 | bad: the WQE ends after 1 blocks");

	e.len = 0;
	ctrl(&e, 0x25, 0, 7, 0, 0x1200);
	place(ring, 4, 0, &e);
	expect_wqe(ring, 4, 0,
		   "WQE 0: UMR (opcode 0x25) index 0 QP 0x123456 ds 7 ce 0 fm 0 | key 0x1200 | "
		   "bad: no UMR and mkey segments");
	e.len = 0;
	ctrl(&e, 0x01, 0, 1, 0, 0x1200);
	place(ring, 4, 0, &e);
	expect_wqe(ring, 4, 0,
		   "WQE 0: SEND_INV (opcode 0x01) index 0 QP 0x123456 ds 1 ce 0 fm 0 invalidates "
		   "rkey 0x1200");
}

/* Inline data across the ring's end, longer than the dump shows. */
TEST(test_dump_of_inline_data_across_the_ring_end)
{
	uint8_t ring[2 * 64] = {0};
	struct bytes e = {.len = 0};

	ctrl(&e, 0x0a, 1, 5, 0, 0);
	put32(&e, 0x80000000u | 58);
	for (int i = 0; i < 58; i++)
		put8(&e, (uint8_t)(0x40 + i));
	place(ring, 2, 1, &e);
	expect_wqe(ring, 2, 1,
		   "WQE 1: SEND (opcode 0x0a) index 1 QP 0x123456 ds 5 ce 0 fm 0 | inline 58 "
		   "bytes: 40414243 44454647 48494a4b 4c4d4e4f 50515253 54555657 58595a5b "
		   "5c5d5e5f ...");
}

TEST(test_dump_of_bad_wqes_says_what_is_bad)
{
	uint8_t ring[64] = {0};
	struct bytes e = {.len = 0};
	char text[512];

	expect_wqe(NULL, 4, 1, "WQE 1: no ring");
	expect_wqe(ring, 0, 1, "WQE 1: no ring");

	ctrl(&e, 0x0a, 0, 0, 0, 0);
	place(ring, 1, 0, &e);
	expect_wqe(ring, 1, 0,
		   "WQE 0: SEND (opcode 0x0a) index 0 QP 0x123456 ds 0 ce 0 fm 0 (bad: ds must "
		   "count the control segment)");

	e.len = 0;
	ctrl(&e, 0x08, 0, 1, 0, 0);
	place(ring, 1, 0, &e);
	expect_wqe(ring, 1, 0,
		   "WQE 0: RDMA_WRITE (opcode 0x08) index 0 QP 0x123456 ds 1 ce 0 fm 0 | bad: no "
		   "remote address segment");

	e.len = 0;
	ctrl(&e, 0x11, 0, 2, 0, 0);
	place(ring, 1, 0, &e);
	expect_wqe(ring, 1, 0,
		   "WQE 0: CMP_SWAP (opcode 0x11) index 0 QP 0x123456 ds 2 ce 0 fm 0 | raddr 0x0 "
		   "rkey 0x0 | bad: no atomic segment");

	e.len = 0;
	ctrl(&e, 0x0a, 0, 3, 0, 0);
	put32(&e, 0xffffffffu);
	put_mem(&e, "abcd", 4);
	place(ring, 1, 0, &e);
	expect_wqe(ring, 1, 0,
		   "WQE 0: SEND (opcode 0x0a) index 0 QP 0x123456 ds 3 ce 0 fm 0 | inline "
		   "2147483647 bytes (bad: the WQE ends after 28): 61626364 00000000 00000000 "
		   "00000000 00000000 00000000 00000000");

	/* One byte more than fits, and exactly as much as fits. */
	ring[16] = 0x80;
	ring[17] = ring[18] = 0;
	ring[19] = 29;
	bb_wqe_dump(text, sizeof(text), ring, 1, 0, false);
	assert_non_null(strstr(text, "inline 29 bytes (bad: the WQE ends after 28): 61626364"));
	ring[19] = 28;
	bb_wqe_dump(text, sizeof(text), ring, 1, 0, false);
	assert_non_null(strstr(text, "inline 28 bytes: 61626364"));

	e.len = 0;
	ctrl(&e, 0x0a, 0, 63, 0, 0);
	put32(&e, 0x80000000u | 400);
	place(ring, 1, 0, &e);
	memset(ring + 20, 0x11, 44);
	expect_wqe(
		ring, 1, 0,
		"WQE 0: SEND (opcode 0x0a) index 0 QP 0x123456 ds 63 ce 0 fm 0 (bad: longer than "
		"the ring of 1 blocks) | inline 400 bytes (bad: the WQE ends after 44): 11111111 "
		"11111111 11111111 11111111 11111111 11111111 11111111 11111111 ...");
}

TEST(test_dump_of_receive_wqes)
{
	struct bytes e = {.len = 0};
	char text[256];

	put32(&e, 64);
	put32(&e, 0x5);
	put64(&e, 0x1000);
	put32(&e, 0);
	put32(&e, 0x100);
	put64(&e, 0);
	put32(&e, 0xdead);
	put_pad16(&e, 0);
	bb_recv_wqe_dump(text, sizeof(text), e.b, 48);
	assert_string_equal(text, "receive WQE of 48 bytes | 64 bytes at 0x1000 lkey 0x5 | end");
	bb_recv_wqe_dump(text, sizeof(text), e.b, 16);
	assert_string_equal(text, "receive WQE of 16 bytes | 64 bytes at 0x1000 lkey 0x5");
	bb_recv_wqe_dump(text, sizeof(text), e.b, 0);
	assert_string_equal(text, "receive WQE of 0 bytes");
	bb_recv_wqe_dump(text, sizeof(text), e.b, 15);
	assert_string_equal(text, "receive WQE of 15 bytes");
	bb_recv_wqe_dump(text, sizeof(text), NULL, 16);
	assert_string_equal(text, "receive WQE of 16 bytes");
}

static void
expect_cqe(const uint8_t *cqe, const char *want)
{
	struct bb_cqe c;
	char text[512];
	int n;

	memcpy(&c, cqe, sizeof(c));
	n = bb_cqe_dump(text, sizeof(text), &c);
	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
}

TEST(test_dump_of_cqes)
{
	uint8_t c[64] = {0};

	c[35] = 7;
	c[36] = 0xaa;
	c[47] = 8;
	c[56] = 0x10;
	c[58] = 0x12;
	c[61] = 9;
	expect_cqe(c, "CQE: requester (opcode 0) owner 0 user index 0x7 QP 0x001200 wqe counter 9 "
		      "of RDMA_READ (opcode 0x10) bytes 8");
	c[63] = 0x3b;
	expect_cqe(c, "CQE: responder SEND_IMM (opcode 3) owner 1 user index 0x7 QP 0x001200 wqe "
		      "counter 9 bytes 8 imm 0xaa000000 solicited data in the CQE (format 2)");
	c[63] = 0x40;
	expect_cqe(c, "CQE: responder SEND_INV (opcode 4) owner 0 user index 0x7 QP 0x001200 wqe "
		      "counter 9 bytes 8 invalidated rkey 0xaa000000");
	c[54] = 0x88;
	c[55] = 0x13;
	c[63] = 0xd1;
	expect_cqe(c, "CQE: requester error (opcode 13) owner 1 user index 0x7 QP 0x001200 wqe "
		      "counter 9 syndrome 0x13 (remote access error) vendor 0x88");
	c[55] = 0x99;
	c[63] = 0xe0;
	expect_cqe(c, "CQE: responder error (opcode 14) owner 0 user index 0x7 QP 0x001200 wqe "
		      "counter 9 syndrome 0x99 (unknown syndrome) vendor 0x88");
	c[63] = 0xf1;
	expect_cqe(c, "CQE: invalid (opcode 15) owner 1");
	c[63] = 0x70;
	expect_cqe(c, "CQE: ? (opcode 7) owner 0 user index 0x7 QP 0x001200 wqe counter 9 bytes 8");
}

/* Names are distinct, and unknown values have none. */
TEST(test_names_are_distinct)
{
	static const uint8_t wqe[] = {0, 1, 8, 9, 0xa, 0xb, 0x10, 0x11, 0x12, 0x14, 0x15, 0x25};
	static const uint8_t cqe[] = {0, 1, 2, 3, 4, 13, 14, 15};
	unsigned int i, known;

	for (i = 0; i < sizeof(wqe); i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(bb_wqe_opcode_name(wqe[i]),
						bb_wqe_opcode_name(wqe[j]));
	for (i = 0; i < sizeof(cqe); i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(bb_cqe_opcode_name(cqe[i]),
						bb_cqe_opcode_name(cqe[j]));
	for (i = 0, known = 0; i < 256; i++)
		known += strcmp(bb_wqe_opcode_name((uint8_t)i), "?") != 0;
	assert_int_equal(known, sizeof(wqe));
	for (i = 0, known = 0; i < 256; i++)
		known += strcmp(bb_cqe_opcode_name((uint8_t)i), "?") != 0;
	assert_int_equal(known, 8);
}

/*
 * Every buffer size gives the terminated start of the whole text. The returned length is that of
 * the whole text.
 */
TEST(test_short_buffer_gets_the_start_of_the_text)
{
	uint8_t ring[64] = {0, 0, 0, 0x08, 0, 0, 1, 3, [32] = 0, 0, 0, 8};
	char whole[512], part[512];
	struct bb_cqe cqe;
	int n;

	memset(&cqe, 0, sizeof(cqe));
	for (int which = 0; which < 3; which++) {
#define DUMP(buf_, size_)                                                                          \
	(which == 0   ? bb_wqe_dump(buf_, size_, ring, 1, 0, false)                                \
	 : which == 1 ? bb_recv_wqe_dump(buf_, size_, ring, 64)                                    \
		      : bb_cqe_dump(buf_, size_, &cqe))
		n = DUMP(whole, sizeof(whole));
		assert_int_equal(n, strlen(whole));
		for (size_t size = 0; size <= (size_t)n + 2; size++) {
			memset(part, 'x', sizeof(part));
			assert_int_equal(DUMP(part, size), n);
			if (size > 0) {
				size_t len = size <= (size_t)n ? size - 1 : (size_t)n;

				assert_memory_equal(part, whole, len);
				assert_int_equal(part[len], 0);
			}
			assert_int_equal(part[size], 'x');
		}
		assert_int_equal(DUMP(NULL, 0), n);
#undef DUMP
	}
}

/*
 * Random and half-random bytes in rings that end, or start, at a page that faults. A read outside
 * crashes.
 */
TEST(test_dump_of_random_bytes_reads_only_the_ring)
{
	static const uint8_t opcodes[] = {0,    1,    8,    9,    0xa,  0xb, 0x10,
					  0x11, 0x12, 0x14, 0x15, 0x25, 0xff};
	uint64_t seed = 99;
	char text[4096];

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t blocks = 1u << rnd_below(&seed, 5);
		struct guarded g = guarded_alloc((size_t)blocks * 64, round & 1);
		uint32_t at = rnd_below(&seed, blocks);
		uint8_t *w = g.p + (size_t)at * 64;
		int n;

		for (uint32_t i = 0; i < blocks * 64; i++)
			g.p[i] = (uint8_t)rnd(&seed);
		w[3] = opcodes[rnd_below(&seed, sizeof(opcodes))];
		/* Inline lengths around the end of the WQE and of the ring. */
		for (uint32_t i = 16; i < 64; i += 16) {
			uint32_t len = rnd_below(&seed, blocks * 64 + 40);

			if (rnd_below(&seed, 2) == 0)
				continue;
			w[i] = rnd_below(&seed, 4) == 0 ? 0xff : 0x80;
			w[i + 1] = 0;
			w[i + 2] = (uint8_t)(len >> 8);
			w[i + 3] = (uint8_t)len;
		}
		n = bb_wqe_dump(text, sizeof(text), g.p, blocks, (uint16_t)at, round % 3 == 0);
		assert_true(n > 0 && (size_t)n < sizeof(text));
		assert_int_equal(strlen(text), n);
		n = bb_recv_wqe_dump(text, sizeof(text), g.p, blocks * 64);
		assert_true(n > 0 && (size_t)n < sizeof(text));
		n = bb_cqe_dump(text, sizeof(text), (struct bb_cqe *)(void *)g.p);
		assert_true(n > 0 && (size_t)n < sizeof(text));
		guarded_free(&g);
	}
}

TEST_MAIN(0)
