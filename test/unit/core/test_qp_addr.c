/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The serialized address of a QP: field positions and every rejected value. */
#include <errno.h>
#include <string.h>

#include "bb_qp.h"
#include "bb_test.h"

static const struct bb_qp_addr addr = {
	.qpn = 0x123456,
	.psn = 0xabcdef,
	.gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
	.lid = 0x0708,
	.mtu = 4096,
};

static const uint8_t bytes[BB_QP_ADDR_PACKED] = {
	1, 0x12, 0x34, 0x56, 0,    0xab, 0xcd, 0xef, 0, 0, 0, 0, 0,    0,
	0, 0,    0,    0,    0xff, 0xff, 192,  0,    2, 1, 7, 8, 0x10, 0,
};

TEST(test_bytes_are_in_network_order_at_fixed_positions)
{
	uint8_t buf[BB_QP_ADDR_PACKED + 1];
	struct bb_qp_addr got = {0};

	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(bb_qp_addr_pack(&addr, buf, sizeof(buf)), BB_QP_ADDR_PACKED);
	assert_memory_equal(buf, bytes, sizeof(bytes));
	assert_int_equal(buf[BB_QP_ADDR_PACKED], 0x5a);
	assert_int_equal(bb_qp_addr_unpack(buf, BB_QP_ADDR_PACKED, &got), 0);
	assert_memory_equal(&got, &addr, sizeof(addr));
}

TEST(test_bytes_out_of_range_are_refused_and_nothing_is_written)
{
	static const struct {
		uint8_t at, len, value[3];
		int err;
	} bad[] = {
		{0, 1, {0}, -ENOTSUP},
		{0, 1, {2}, -ENOTSUP},
		{1, 3, {0, 0, 0}, -EINVAL},
		{1, 3, {0, 0, 1}, -EINVAL},
		{1, 3, {255, 255, 255}, -EINVAL},
		{4, 1, {1}, -EINVAL},
		{26, 2, {0, 0}, -EINVAL},
		{26, 2, {0, 128}, -EINVAL},
		{26, 2, {3, 0}, -EINVAL},
		{26, 2, {32, 0}, -EINVAL},
	};
	struct bb_qp_addr got, was;
	uint8_t buf[BB_QP_ADDR_PACKED];

	memset(&was, 0x5a, sizeof(was));
	got = was;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(buf, bytes, sizeof(buf));
		memcpy(buf + bad[i].at, bad[i].value, bad[i].len);
		assert_int_equal(bb_qp_addr_unpack(buf, sizeof(buf), &got), bad[i].err);
	}
	/* An address with neither GID nor LID. */
	memcpy(buf, bytes, sizeof(buf));
	memset(buf + 8, 0, 18);
	assert_int_equal(bb_qp_addr_unpack(buf, sizeof(buf), &got), -EINVAL);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bb_qp_addr_unpack(bytes, i, &got), -EINVAL);
	assert_int_equal(bb_qp_addr_unpack(bytes, sizeof(bytes) + 1, &got), -EINVAL);
	assert_int_equal(bb_qp_addr_unpack(NULL, sizeof(bytes), &got), -EINVAL);
	assert_int_equal(bb_qp_addr_unpack(bytes, sizeof(bytes), NULL), -EINVAL);
	assert_memory_equal(&got, &was, sizeof(was));
}

TEST(test_address_that_unpack_would_refuse_is_not_packed)
{
	uint8_t buf[BB_QP_ADDR_PACKED], was[BB_QP_ADDR_PACKED];
	struct bb_qp_addr a = addr;

	memset(buf, 0x5a, sizeof(buf));
	memcpy(was, buf, sizeof(was));
	assert_int_equal(bb_qp_addr_pack(&a, buf, sizeof(buf) - 1), -ENOSPC);
	a.psn = 0x1000000;
	assert_int_equal(bb_qp_addr_pack(&a, buf, sizeof(buf)), -EINVAL);
	a = addr;
	a.qpn = 0x1000002;
	assert_int_equal(bb_qp_addr_pack(&a, buf, sizeof(buf)), -EINVAL);
	a = addr;
	a.mtu = 1000;
	assert_int_equal(bb_qp_addr_pack(&a, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(bb_qp_addr_pack(NULL, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(bb_qp_addr_pack(&addr, NULL, sizeof(buf)), -EINVAL);
	assert_memory_equal(buf, was, sizeof(was));
}

TEST_MAIN(0)
