/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Headers of RoCEv2 packets: each opcode, each field, and each reason for a drop. */
#include "../queue/queue_test.h"
#include "bb_roce_pkt.h"

/* Extended headers of an opcode as in table 38, one letter each. */
enum {
	DETH = 'D',
	RETH = 'R',
	ATOMICETH = 'A',
	AETH = 'a',
	ATOMICACK = 'o',
	IMM = 'I',
	IETH = 'K',
	CNP_PAD = 'c',
};

static const struct opcode {
	uint8_t byte;
	const char *name, *headers;
	/* q: to the responder, f: first, l: last, p: payload, s: SEND, w: WRITE, t: atomic, r: READ
	 * response */
	const char *is;
} opcodes[] = {
	{0x00, "RC SEND_FIRST", "", "qfps"},        {0x01, "RC SEND_MIDDLE", "", "qps"},
	{0x02, "RC SEND_LAST", "", "qlps"},         {0x03, "RC SEND_LAST_IMM", "I", "qlps"},
	{0x04, "RC SEND_ONLY", "", "qflps"},        {0x05, "RC SEND_ONLY_IMM", "I", "qflps"},
	{0x06, "RC WRITE_FIRST", "R", "qfpw"},      {0x07, "RC WRITE_MIDDLE", "", "qpw"},
	{0x08, "RC WRITE_LAST", "", "qlpw"},        {0x09, "RC WRITE_LAST_IMM", "I", "qlpw"},
	{0x0a, "RC WRITE_ONLY", "R", "qflpw"},      {0x0b, "RC WRITE_ONLY_IMM", "RI", "qflpw"},
	{0x0c, "RC READ_REQUEST", "R", "qfl"},      {0x0d, "RC READ_RESP_FIRST", "a", "fpr"},
	{0x0e, "RC READ_RESP_MIDDLE", "", "pr"},    {0x0f, "RC READ_RESP_LAST", "a", "lpr"},
	{0x10, "RC READ_RESP_ONLY", "a", "flpr"},   {0x11, "RC ACK", "a", ""},
	{0x12, "RC ATOMIC_ACK", "ao", ""},          {0x13, "RC CMP_SWAP", "A", "qflt"},
	{0x14, "RC FETCH_ADD", "A", "qflt"},        {0x16, "RC SEND_LAST_INV", "K", "qlps"},
	{0x17, "RC SEND_ONLY_INV", "K", "qflps"},   {0x20, "UC SEND_FIRST", "", "qfps"},
	{0x21, "UC SEND_MIDDLE", "", "qps"},        {0x22, "UC SEND_LAST", "", "qlps"},
	{0x23, "UC SEND_LAST_IMM", "I", "qlps"},    {0x24, "UC SEND_ONLY", "", "qflps"},
	{0x25, "UC SEND_ONLY_IMM", "I", "qflps"},   {0x26, "UC WRITE_FIRST", "R", "qfpw"},
	{0x27, "UC WRITE_MIDDLE", "", "qpw"},       {0x28, "UC WRITE_LAST", "", "qlpw"},
	{0x29, "UC WRITE_LAST_IMM", "I", "qlpw"},   {0x2a, "UC WRITE_ONLY", "R", "qflpw"},
	{0x2b, "UC WRITE_ONLY_IMM", "RI", "qflpw"}, {0x64, "UD SEND_ONLY", "D", "qflps"},
	{0x65, "UD SEND_ONLY_IMM", "DI", "qflps"},  {0x81, "CNP", "c", ""},
};
#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

static const struct opcode *
row_of(uint32_t byte)
{
	for (size_t i = 0; i < OPCODES; i++)
		if (opcodes[i].byte == byte)
			return &opcodes[i];
	return NULL;
}

static bool
has(const struct opcode *op, char what)
{
	return strchr(op->headers, what) != NULL;
}

/* Appends the headers of *k as the specification draws them. */
static void
expect_headers(struct bytes *e, const struct opcode *op, const struct bb_roce_pkt *k)
{
	const char *h;

	put8(e, op->byte);
	put8(e, (uint8_t)((k->flags & BB_ROCE_SE ? 0x80 : 0) |
			  (k->flags & BB_ROCE_MIGREQ ? 0x40 : 0) | (4 - k->len % 4) % 4 * 0x10));
	put8(e, (uint8_t)(k->pkey >> 8));
	put8(e, (uint8_t)k->pkey);
	put32(e, (k->flags & BB_ROCE_FECN ? 0x80000000u : 0) |
			 (k->flags & BB_ROCE_BECN ? 0x40000000u : 0) | k->dqpn);
	put32(e, (k->flags & BB_ROCE_ACKREQ ? 0x80000000u : 0) | k->psn);
	for (h = op->headers; *h != '\0'; h++) {
		switch (*h) {
		case DETH:
			put32(e, k->qkey);
			put32(e, k->sqpn);
			break;
		case RETH:
			put64(e, k->va);
			put32(e, k->rkey);
			put32(e, k->dmalen);
			break;
		case ATOMICETH:
			put64(e, k->va);
			put32(e, k->rkey);
			put64(e, k->swap_add);
			put64(e, k->compare);
			break;
		case AETH:
			put32(e, (uint32_t)k->syndrome << 24 | k->msn);
			break;
		case ATOMICACK:
			put64(e, k->orig);
			break;
		case IMM:
			put_mem(e, &k->imm, 4);
			break;
		case IETH:
			put32(e, k->imm);
			break;
		default:
			put64(e, 0);
			put64(e, 0);
			break;
		}
	}
}

/* Sets random fields: those of the opcode or, with @all, all fields. */
static void
random_pkt(struct bb_roce_pkt *k, const struct opcode *op, uint64_t *seed, bool all)
{
	memset(k, 0, sizeof(*k));
	k->opcode = op->byte;
	k->flags = (uint8_t)(rnd(seed) & 0x1f);
	k->pkey = (uint16_t)rnd(seed);
	k->dqpn = (uint32_t)rnd(seed) & 0xffffff;
	k->psn = (uint32_t)rnd(seed) & 0xffffff;
	if (all || has(op, DETH)) {
		k->qkey = (uint32_t)rnd(seed);
		k->sqpn = (uint32_t)rnd(seed) & 0xffffff;
	}
	if (all || has(op, RETH) || has(op, ATOMICETH)) {
		k->va = rnd(seed);
		k->rkey = (uint32_t)rnd(seed);
	}
	if (all || has(op, RETH))
		k->dmalen = (uint32_t)rnd(seed);
	if (all || has(op, ATOMICETH)) {
		k->swap_add = rnd(seed);
		k->compare = rnd(seed);
	}
	if (all || has(op, AETH)) {
		k->syndrome = (uint8_t)rnd(seed);
		k->msn = (uint32_t)rnd(seed) & 0xffffff;
	}
	if (all || has(op, ATOMICACK))
		k->orig = rnd(seed);
	if (all || has(op, IMM) || has(op, IETH))
		k->imm = (uint32_t)rnd(seed);
	if (strchr(op->is, 'p') != NULL)
		k->len = rnd_below(seed, 4) == 0 ? rnd_below(seed, 5) : rnd_below(seed, 1025);
}

static void
assert_same(const struct bb_roce_pkt *a, const struct bb_roce_pkt *b)
{
	assert_fields(*a, opcode, b->opcode, flags, b->flags, pkey, b->pkey, dqpn, b->dqpn);
	assert_int_equal(a->psn, b->psn);
	assert_true(a->va == b->va);
	assert_fields(*a, rkey, b->rkey, dmalen, b->dmalen);
	assert_true(a->swap_add == b->swap_add);
	assert_true(a->compare == b->compare);
	assert_fields(*a, syndrome, b->syndrome, msn, b->msn);
	assert_true(a->orig == b->orig);
	assert_fields(*a, imm, b->imm, qkey, b->qkey, sqpn, b->sqpn, len, b->len);
}

TEST(test_opcode_table_has_the_headers_of_the_specification)
{
	static const struct {
		char letter;
		uint32_t flag;
	} bits[] = {{'q', BB_ROCE_F_REQUEST}, {'f', BB_ROCE_F_FIRST},    {'l', BB_ROCE_F_LAST},
		    {'p', BB_ROCE_F_PAYLOAD}, {'s', BB_ROCE_F_SEND},     {'w', BB_ROCE_F_WRITE},
		    {'t', BB_ROCE_F_ATOMIC},  {'r', BB_ROCE_F_READ_RESP}};
	static const struct {
		char letter;
		uint32_t flag, len;
	} headers[] = {{DETH, BB_ROCE_F_DETH, 8},
		       {RETH, BB_ROCE_F_RETH, 16},
		       {ATOMICETH, BB_ROCE_F_ATOMICETH, 28},
		       {AETH, BB_ROCE_F_AETH, 4},
		       {ATOMICACK, BB_ROCE_F_ATOMICACK, 8},
		       {IMM, BB_ROCE_F_IMM, 4},
		       {IETH, BB_ROCE_F_IETH, 4},
		       {CNP_PAD, 0, 16}};
	uint32_t flags, len;

	for (uint32_t byte = 0; byte < 256; byte++) {
		const struct opcode *op = row_of(byte);

		if (op == NULL) {
			assert_null(bb_roce_ops[byte].name);
			assert_fields(bb_roce_ops[byte], flags, 0, hdr_len, 0);
			continue;
		}
		flags = BB_ROCE_F_KNOWN;
		len = 12;
		for (uint32_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
			if (strchr(op->is, bits[i].letter) != NULL)
				flags |= bits[i].flag;
		for (uint32_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
			if (has(op, headers[i].letter)) {
				flags |= headers[i].flag;
				len += headers[i].len;
			}
		assert_string_equal(bb_roce_ops[byte].name, op->name);
		assert_fields(bb_roce_ops[byte], flags, flags, hdr_len, len);
		assert_true(len <= BB_ROCE_MAX_HDR);
	}
}

/* Each opcode many times: building gives the right bytes, parsing returns the fields. */
TEST(test_every_opcode_round_trips)
{
	uint64_t seed = 11;

	for (uint32_t i = 0; i < OPCODES; i++) {
		for (uint32_t n = 0; n < 500; n++) {
			uint8_t hdr[BB_ROCE_MAX_HDR + 1];
			struct bb_roce_pkt sent, got;
			struct bytes e = {.len = 0};
			uint32_t len;

			random_pkt(&sent, &opcodes[i], &seed, false);
			expect_headers(&e, &opcodes[i], &sent);
			memset(hdr, 0xa5, sizeof(hdr));
			len = bb_roce_build(hdr, &sent);
			assert_int_equal(len, e.len);
			assert_memory_equal(hdr, e.b, len);
			assert_int_equal(hdr[len], 0xa5);

			for (len = 0; len < sent.len; len++)
				put8(&e, (uint8_t)rnd(&seed));
			while (e.len % 4 != 0)
				put8(&e, 0);
			memset(&got, 0xff, sizeof(got));
			assert_int_equal(bb_roce_parse(&got, e.b, e.len), BB_ROCE_OK);
			assert_same(&got, &sent);
			assert_ptr_equal(got.payload, e.b + bb_roce_ops[sent.opcode].hdr_len);
		}
	}
}

/* Fields without a header in the opcode do not get into the packet. */
TEST(test_build_takes_only_its_fields)
{
	uint64_t seed = 12;

	for (uint32_t i = 0; i < OPCODES; i++) {
		uint8_t hdr[BB_ROCE_MAX_HDR];
		struct bb_roce_pkt sent;
		struct bytes e = {.len = 0};

		random_pkt(&sent, &opcodes[i], &seed, true);
		expect_headers(&e, &opcodes[i], &sent);
		assert_int_equal(bb_roce_build(hdr, &sent), e.len);
		assert_memory_equal(hdr, e.b, e.len);
	}
}

/* Numbers wider than their field do not overwrite neighbouring fields. */
TEST(test_build_cuts_to_24_bits)
{
	struct bb_roce_pkt sent = {.opcode = 0x64, .dqpn = ~0u, .psn = ~0u, .sqpn = ~0u}, got;
	uint8_t hdr[BB_ROCE_MAX_HDR];

	assert_int_equal(bb_roce_build(hdr, &sent), 20);
	assert_int_equal(hdr[4], 0);
	assert_int_equal(hdr[8], 0);
	assert_int_equal(hdr[16], 0);
	sent = (struct bb_roce_pkt){.opcode = 0x11, .syndrome = 0x1f, .msn = ~0u};
	assert_int_equal(bb_roce_build(hdr, &sent), 16);
	assert_int_equal(bb_roce_parse(&got, hdr, 16), BB_ROCE_OK);
	assert_fields(got, syndrome, 0x1f, msn, 0xffffff);
}

TEST(test_unknown_opcodes_are_dropped)
{
	struct bb_roce_pkt pkt, before;
	uint8_t raw[64], hdr[BB_ROCE_MAX_HDR];
	uint32_t byte, known = 0;
	size_t i;

	for (byte = 0; byte < 256; byte++) {
		memset(raw, 0, sizeof(raw));
		raw[0] = (uint8_t)byte;
		if (row_of(byte) != NULL) {
			known++;
			continue;
		}
		memset(&pkt, 0x3c, sizeof(pkt));
		before = pkt;
		if (byte < 0x20) {
			/* RC: the responder rejects it, whatever follows the BTH. */
			raw[11] = 0x77;
			assert_int_equal(bb_roce_parse(&pkt, raw, 13), BB_ROCE_OK);
			assert_fields(pkt, opcode, byte, psn, 0x77, len, 0);
			assert_ptr_equal(pkt.payload, raw + BB_ROCE_BTH_LEN);
		} else {
			assert_int_equal(bb_roce_parse(&pkt, raw, sizeof(raw)),
					 BB_ROCE_DROP_OPCODE);
			assert_memory_equal(&pkt, &before, sizeof(pkt));
		}
		pkt.opcode = (uint8_t)byte;
		memset(hdr, 0xa5, sizeof(hdr));
		i = byte < 0x20 ? BB_ROCE_BTH_LEN : 0;
		assert_int_equal(bb_roce_build(hdr, &pkt), i);
		if (i != 0)
			assert_memory_equal(hdr, raw, i);
		for (; i < sizeof(hdr); i++)
			assert_int_equal(hdr[i], 0xa5);
	}
	assert_int_equal(known, OPCODES);
}

/*
 * Every length from zero to a full packet, each in memory that ends with it. An incomplete packet
 * is dropped for the right reason and nothing past its end is read.
 */
TEST(test_truncated_packet_is_dropped_for_its_reason)
{
	struct guarded mem = guarded_alloc(128, false);
	uint64_t seed = 13;

	for (uint32_t i = 0; i < OPCODES; i++) {
		const struct opcode *op = &opcodes[i];
		uint32_t hdr_len = bb_roce_ops[op->byte].hdr_len;
		bool payload = strchr(op->is, 'p') != NULL;

		for (uint32_t pad = 0; pad < 4; pad++) {
			for (uint32_t len = 0; len <= hdr_len + 20; len++) {
				uint8_t *p = mem.p + 128 - len;
				struct bb_roce_pkt k, got, before;
				struct bytes e = {.len = 0};
				enum bb_roce_drop want = BB_ROCE_OK;

				random_pkt(&k, op, &seed, false);
				k.len = 4 - pad;
				expect_headers(&e, op, &k);
				while (e.len < len)
					put8(&e, (uint8_t)rnd(&seed));
				memcpy(p, e.b, len);
				if (len < hdr_len + pad || len % 4 != 0)
					want = BB_ROCE_DROP_SHORT;
				else if (!payload && (len > hdr_len || pad != 0))
					want = BB_ROCE_DROP_PAYLOAD;
				memset(&got, 0x3c, sizeof(got));
				before = got;
				assert_int_equal(bb_roce_parse(&got, p, len), want);
				if (want != BB_ROCE_OK) {
					assert_memory_equal(&got, &before, sizeof(got));
					continue;
				}
				k.len = len - hdr_len - pad;
				assert_same(&got, &k);
				assert_ptr_equal(got.payload, p + hdr_len);
			}
		}
	}
	guarded_free(&mem);
}

TEST(test_other_transport_version_is_dropped)
{
	uint8_t raw[12] = {0x04};
	struct bb_roce_pkt pkt;

	assert_int_equal(bb_roce_parse(&pkt, raw, sizeof(raw)), BB_ROCE_OK);
	for (uint32_t tver = 1; tver < 16; tver++) {
		raw[1] = (uint8_t)tver;
		assert_int_equal(bb_roce_parse(&pkt, raw, sizeof(raw)), BB_ROCE_DROP_VERSION);
	}
	/* The version is checked first: a later version might define this opcode. */
	raw[0] = 0xff;
	assert_int_equal(bb_roce_parse(&pkt, raw, sizeof(raw)), BB_ROCE_DROP_VERSION);
}

/* Reserved fields are sent as 0 and ignored when received (9.2.5, 9.2.8, 9.3.1). */
TEST(test_reserved_fields_are_sent_0_and_ignored)
{
	uint8_t raw[20] = {0x64, 0, 0xff, 0xff, 0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 7, 0, 8, 9, 10};
	struct bb_roce_pkt want, got;

	assert_int_equal(bb_roce_parse(&want, raw, sizeof(raw)), BB_ROCE_OK);
	assert_fields(want, dqpn, 0x010203, psn, 0x040506, sqpn, 0x08090a);
	raw[4] = 0x3f;
	raw[8] = 0x7f;
	raw[16] = 0xff;
	assert_int_equal(bb_roce_parse(&got, raw, sizeof(raw)), BB_ROCE_OK);
	assert_same(&got, &want);
}

/* Longer than any IP packet: the length must still be handled. */
TEST(test_huge_length_is_handled)
{
	uint8_t *raw = calloc(1, 1u << 17);
	struct bb_roce_pkt pkt;

	assert_non_null(raw);
	raw[0] = 0x04;
	assert_int_equal(bb_roce_parse(&pkt, raw, 65532), BB_ROCE_OK);
	assert_int_equal(pkt.len, 65520);
	assert_int_equal(bb_roce_parse(&pkt, raw, 65536), BB_ROCE_DROP_PAYLOAD);
	assert_int_equal(bb_roce_parse(&pkt, raw, 1u << 17), BB_ROCE_DROP_PAYLOAD);
	free(raw);
}

TEST(test_pad_completes_to_4_bytes)
{
	static const uint32_t want[] = {0, 3, 2, 1, 0, 3};

	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(bb_roce_pad(i), want[i]);
	assert_int_equal(bb_roce_pad(4096), 0);
	assert_int_equal(bb_roce_pad(0xffffffff), 1);
}

TEST(test_every_drop_reason_has_a_text_of_its_own)
{
	for (int i = 0; i < BB_ROCE_DROPS; i++) {
		assert_string_not_equal(bb_roce_drop_str((enum bb_roce_drop)i), "unknown reason");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(bb_roce_drop_str((enum bb_roce_drop)i),
						bb_roce_drop_str((enum bb_roce_drop)j));
	}
	assert_string_equal(bb_roce_drop_str(BB_ROCE_DROPS), "unknown reason");
	assert_string_equal(bb_roce_drop_str((enum bb_roce_drop)99), "unknown reason");
}

TEST_MAIN(0)
