/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The messages of lib/connect over TCP: field positions and every rejected value. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "bb_bytes.h"
#include "bb_cm_msg.h"
#include "bb_test.h"

static struct bb_region regions[2] = {
	{"ring", 0x1122334455667788, 4096, 0xaabbccdd, BB_ACCESS_REMOTE_WRITE},
	{"data", 0x1000, 0x100000000, 7, BB_ACCESS_REMOTE_READ},
};

static struct bb_cm_msg
request(void)
{
	struct bb_cm_msg msg = {
		.type = BB_CM_REQ,
		.end = {.session = 0x0102030405060708,
			.addr = {.qpn = 0x123456,
				 .psn = 0xabcdef,
				 .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
				 .lid = 0x1234,
				 .mtu = 4096},
			.qp_type = 1,
			.flags = BB_CM_RECOVERABLE | BB_CM_GRH,
			.initiator_depth = 3,
			.responder_resources = 4,
			.retry_count = 5,
			.rnr_retry_count = 6,
			.sq_depth = 128,
			.rq_depth = 64},
		.regions = regions,
		.nregions = 2,
		.private = "hello",
		.private_len = 5,
	};

	return msg;
}

/* Decodes a whole message. Returns NULL, or the reason for the rejection. */
static const char *
decode(const uint8_t *buf, size_t len, struct bb_cm_msg *msg, struct bb_region *out)
{
	struct bb_cm_header h;
	const char *why;

	if (len < BB_CM_HEADER)
		return "short";
	why = bb_cm_header_decode(buf, &h);
	if (why == NULL && h.len != len - BB_CM_HEADER)
		return "short";
	return why != NULL ? why : bb_cm_body_decode(h.type, buf + BB_CM_HEADER, h.len, msg, out);
}

/* Byte by byte, as the guide's table says, independent of the encoder. */
TEST(test_fields_are_at_the_documented_positions)
{
	static const uint8_t want[] = {
		'B', 'B', 'C', 'M', 1, 1, 0, 16, 0, 0, 0, 64 + 80 + 5, 0, 0, 0, 0,
		/* 0: session, version of the address and QPN, PSN */
		1, 2, 3, 4, 5, 6, 7, 8, 1, 0x12, 0x34, 0x56, 0, 0xab, 0xcd, 0xef,
		/* 16: GID */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1,
		/* 32: LID, MTU, type, flags, depths, retries, reserved */
		0x12, 0x34, 0x10, 0, 1, 5, 3, 4, 5, 6, 0, 0,
		/* 44: queue depths, counts, reserved */
		0, 0, 0, 128, 0, 0, 0, 64, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0,
		/* a region: name, address, length, rkey, rights */
		'r', 'i', 'n', 'g', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44,
		0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0, 0, 0, 0x10, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0,
		2};
	struct bb_cm_msg msg = request();
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n = bb_cm_msg_encode(buf, &msg);

	assert_int_equal(n, BB_CM_HEADER + 64 + 80 + 5);
	assert_memory_equal(buf, want, sizeof(want));
	assert_memory_equal(buf + n - 5, "hello", 5);
}

TEST(test_every_message_round_trips)
{
	static const uint8_t types[] = {BB_CM_REQ, BB_CM_REP,  BB_CM_RTU,
					BB_CM_REJ, BB_CM_DREQ, BB_CM_DREP};
	struct bb_region out[BB_REGION_MAX];
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n;

	for (size_t i = 0; i < sizeof(types); i++) {
		struct bb_cm_msg msg = request(), got;

		msg.type = types[i];
		msg.reason = 28;
		n = bb_cm_msg_encode(buf, &msg);
		assert_null(decode(buf, n, &got, out));
		assert_int_equal(got.type, types[i]);
		if (i < 2) {
			assert_memory_equal(&got.end, &msg.end, sizeof(msg.end));
			assert_int_equal(got.nregions, 2);
			assert_memory_equal(out, regions, sizeof(regions));
		}
		if (types[i] == BB_CM_REJ)
			assert_int_equal(got.reason, 28);
		if (types[i] != BB_CM_RTU && types[i] != BB_CM_DREP) {
			assert_int_equal(got.private_len, 5);
			assert_memory_equal(got.private, "hello", 5);
		}
	}
}

TEST(test_largest_counts_fit_and_one_more_is_refused)
{
	struct bb_region many[BB_REGION_MAX], out[BB_REGION_MAX];
	static uint8_t private[BB_CM_PRIVATE_MAX];
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_msg msg = request(), got;
	uint32_t i;

	for (i = 0; i < BB_REGION_MAX; i++) {
		many[i] = regions[0];
		snprintf(many[i].name, sizeof(many[i].name), "%u", i);
		memset(many[i].name + strlen(many[i].name), 0,
		       sizeof(many[i].name) - strlen(many[i].name));
	}
	msg.regions = many;
	msg.nregions = BB_REGION_MAX;
	msg.private = private;
	msg.private_len = sizeof(private);
	assert_int_equal(bb_cm_msg_encode(buf, &msg), BB_CM_MSG_MAX);
	assert_null(decode(buf, BB_CM_MSG_MAX, &got, out));
	bb_put16(buf + BB_CM_HEADER + 52, BB_REGION_MAX + 1);
	assert_non_null(decode(buf, BB_CM_MSG_MAX, &got, out));
	bb_put16(buf + BB_CM_HEADER + 52, BB_REGION_MAX);
	bb_put16(buf + BB_CM_HEADER + 54, BB_CM_PRIVATE_MAX + 1);
	assert_non_null(decode(buf, BB_CM_MSG_MAX, &got, out));
	bb_put32(buf + 8, BB_CM_BODY_MAX + 1);
	assert_non_null(decode(buf, BB_CM_MSG_MAX, &got, out));

	/* One byte more than allowed, with a matching length. */
	msg.nregions = 0;
	i = (uint32_t)bb_cm_msg_encode(buf, &msg) + 1;
	bb_put16(buf + BB_CM_HEADER + 54, BB_CM_PRIVATE_MAX + 1);
	bb_put32(buf + 8, i - BB_CM_HEADER);
	assert_string_equal(decode(buf, i, &got, out), "has too much private data");
	msg.nregions = BB_REGION_MAX;
	msg.private_len = 0;
	i = (uint32_t)bb_cm_msg_encode(buf, &msg) + BB_REGION_PACKED;
	bb_put16(buf + BB_CM_HEADER + 52, BB_REGION_MAX + 1);
	bb_put32(buf + 8, i - BB_CM_HEADER);
	assert_string_equal(decode(buf, i, &got, out), "has too many regions");
}

/* Reserved fields of the other message kinds. Each half of the decoder rejects them by itself. */
TEST(test_reserved_fields_of_other_kinds_are_refused)
{
	static const struct {
		uint8_t type;
		size_t at;
	} reserved[] = {{BB_CM_REJ, 6}, {BB_CM_REJ, 7}, {BB_CM_DREQ, 2}, {BB_CM_DREQ, 3}};
	struct bb_region out[BB_REGION_MAX];
	uint8_t buf[BB_CM_MSG_MAX] = {0};
	struct bb_cm_msg got;
	struct bb_cm_header h;
	size_t n;

	for (size_t i = 0; i < RTE_DIM(reserved); i++) {
		const struct bb_cm_msg msg = {.type = reserved[i].type, .private_len = 0};

		n = bb_cm_msg_encode(buf, &msg);
		assert_null(decode(buf, n, &got, out));
		buf[BB_CM_HEADER + reserved[i].at] = 1;
		assert_string_equal(decode(buf, n, &got, out), "sets reserved fields");
	}
	assert_non_null(bb_cm_body_decode(BB_CM_RTU, buf, 1, &got, out));
	assert_null(bb_cm_body_decode(BB_CM_RTU, buf, 0, &got, out));
	assert_non_null(bb_cm_body_decode(0, buf, 0, &got, out));
	assert_non_null(bb_cm_body_decode(BB_CM_DREP + 1, buf, 0, &got, out));
	n = bb_cm_msg_encode(buf, &(struct bb_cm_msg){.type = BB_CM_DREP});
	assert_null(bb_cm_header_decode(buf, &h));
	buf[5] = BB_CM_DREP + 1;
	assert_non_null(bb_cm_header_decode(buf, &h));
}

/* A message cut anywhere, or with a wrong length, is rejected and writes nothing. */
TEST(test_cut_message_is_refused_and_writes_nothing)
{
	struct bb_cm_msg msg = request(), got, was;
	struct bb_region out[BB_REGION_MAX], out_was[BB_REGION_MAX];
	uint8_t buf[BB_CM_MSG_MAX], *tight;
	size_t i, n = bb_cm_msg_encode(buf, &msg);

	memset(&was, 0x5a, sizeof(was));
	memset(out_was, 0x5a, sizeof(out_was));
	for (i = 0; i < n; i++) {
		got = was;
		memcpy(out, out_was, sizeof(out));
		/* Allocated with the exact size, for a sanitizer. */
		tight = malloc(i + 1);
		assert_non_null(tight);
		memcpy(tight, buf, i);
		if (i >= BB_CM_HEADER) {
			bb_put32(tight + 8, (uint32_t)(i - BB_CM_HEADER));
			assert_non_null(decode(tight, i, &got, out));
		}
		free(tight);
		assert_memory_equal(&got, &was, sizeof(was));
		assert_memory_equal(out, out_was, sizeof(out));
	}
}

static void
bad(size_t at, uint8_t value, const char *want)
{
	struct bb_cm_msg msg = request(), got;
	struct bb_region out[BB_REGION_MAX];
	uint8_t buf[BB_CM_MSG_MAX];
	size_t n = bb_cm_msg_encode(buf, &msg);
	const char *why;

	buf[at] = value;
	why = decode(buf, n, &got, out);
	if (why == NULL || strstr(why, want) == NULL)
		fail_msg("byte %d = %d: \"%s\", not \"%s\"", (int)at, value,
			 why != NULL ? why : "taken", want);
}

TEST(test_bad_fields_are_refused_by_name)
{
	const size_t b = BB_CM_HEADER, r = BB_CM_HEADER + BB_CM_END;

	bad(0, 'X', "magic");
	bad(4, 2, "version");
	bad(5, 0, "unknown type");
	bad(5, 7, "unknown type");
	bad(5, BB_CM_RTU, "length");
	bad(7, 20, "header");
	bad(15, 1, "header");
	bad(8, 1, "longer");
	bad(b + 8, 2, "QP address");
	bad(b + 12, 1, "QP address");
	bad(b + 34, 0x18, "QP address");
	bad(b + 36, 2, "other than RC or UC");
	bad(b + 37, 8, "reserved");
	bad(b + 40, 8, "retry");
	bad(b + 41, 8, "retry");
	bad(b + 43, 1, "reserved");
	bad(b + 44, 1, "depth");
	bad(b + 48, 1, "depth");
	bad(b + 53, 1, "does not match");
	bad(b + 55, 4, "does not match");
	bad(b + 55, 6, "does not match");
	bad(b + 63, 1, "reserved");
	bad(r, 0, "name");
	bad(r + 15, 'x', "name");
	bad(r + 16 + 8, 0xff, "exceeds");
	bad(r + 36, 1, "rights");
	/* "ring" and "data" get the same name. */
	memcpy(regions[1].name, "rinX", 4);
	bad(r + 40 + 3, 'g', "same name");
	memcpy(regions[1].name, "data", 4);
}

TEST(test_other_version_decodes_only_what_a_reply_needs)
{
	struct bb_cm_msg msg = request();
	uint8_t buf[BB_CM_MSG_MAX];
	struct bb_cm_header h = {0};

	bb_cm_msg_encode(buf, &msg);
	buf[4] = 9;
	assert_non_null(bb_cm_header_decode(buf, &h));
	assert_int_equal(h.version, 9);
	memset(&h, 0, sizeof(h));
	buf[0] = 'X';
	assert_non_null(bb_cm_header_decode(buf, &h));
	assert_int_equal(h.version, 0);
}

TEST(test_region_outside_its_mr_is_refused)
{
	struct bb_mr mr = {.addr = (void *)0x1000,
			   .len = 4096,
			   .iova = 0x1000,
			   .rkey = 5,
			   .access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE};
	struct bb_region r, out[2];
	uint8_t buf[2 * BB_REGION_PACKED];

	assert_int_equal(bb_region_of(&mr, "x", 16, 0, &r), 0);
	assert_fields(r, addr, 0x1010, len, 4080, access, BB_ACCESS_REMOTE_WRITE);
	assert_int_equal(bb_region_of(&mr, "x", 4096, 0, &r), -EINVAL);
	assert_int_equal(bb_region_of(&mr, "x", 16, 4081, &r), -EINVAL);
	assert_int_equal(bb_region_of(&mr, "", 0, 0, &r), -EINVAL);
	assert_int_equal(bb_region_of(&mr, "sixteen_letters_", 0, 0, &r), -EINVAL);
	mr.rkey = 0;
	assert_int_equal(bb_region_of(&mr, "x", 0, 0, &r), -EINVAL);

	/* A region may end at the last byte of the address space, not beyond. */
	r = regions[0];
	r.addr = UINT64_MAX - 7;
	r.len = 8;
	assert_int_equal(bb_region_pack(&r, 1, buf, sizeof(buf)), BB_REGION_PACKED);
	r.len = 9;
	assert_int_equal(bb_region_pack(&r, 1, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(bb_region_pack(regions, 2, buf, sizeof(buf) - 1), -ENOSPC);
	assert_int_equal(bb_region_pack(regions, 2, buf, sizeof(buf)), sizeof(buf));
	assert_int_equal(bb_region_unpack(buf, sizeof(buf) - 1, out, 2), -EINVAL);
	assert_int_equal(bb_region_unpack(buf, sizeof(buf), out, 1), -ENOSPC);
	assert_int_equal(bb_region_unpack(buf, sizeof(buf), out, 2), 2);
	assert_memory_equal(out, regions, sizeof(regions));
	memcpy(buf + BB_REGION_PACKED, buf, 16);
	assert_int_equal(bb_region_unpack(buf, sizeof(buf), out, 2), -EINVAL);
}

TEST_MAIN(0)
