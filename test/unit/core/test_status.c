/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion statuses: the map from syndromes, their names and causes. */
#include <string.h>

#include "bb_core.h"
#include "bb_test.h"

/* libmlx5's map, syndrome by syndrome; all others are general errors. */
TEST(test_every_syndrome_maps_as_in_libmlx5)
{
	static const uint8_t map[256] = {
		[0x01] = BB_WC_LOC_LEN_ERR,    [0x02] = BB_WC_LOC_QP_OP_ERR,
		[0x04] = BB_WC_LOC_PROT_ERR,   [0x05] = BB_WC_WR_FLUSH_ERR,
		[0x06] = BB_WC_MW_BIND_ERR,    [0x10] = BB_WC_BAD_RESP_ERR,
		[0x11] = BB_WC_LOC_ACCESS_ERR, [0x12] = BB_WC_REM_INV_REQ_ERR,
		[0x13] = BB_WC_REM_ACCESS_ERR, [0x14] = BB_WC_REM_OP_ERR,
		[0x15] = BB_WC_RETRY_EXC_ERR,  [0x16] = BB_WC_RNR_RETRY_EXC_ERR,
		[0x22] = BB_WC_REM_ABORT_ERR,
	};

	for (unsigned int i = 0; i < 256; i++)
		assert_int_equal(bb_wc_status_of((uint8_t)i),
				 map[i] != 0 ? map[i] : BB_WC_GENERAL_ERR);
}

TEST(test_status_names_differ)
{
	for (int i = BB_WC_SUCCESS; i <= BB_WC_GENERAL_ERR; i++) {
		const char *name = bb_wc_status_name((enum bb_wc_status)i);

		assert_true(strlen(name) > 3);
		for (int j = BB_WC_SUCCESS; j < i; j++)
			assert_string_not_equal(name, bb_wc_status_name((enum bb_wc_status)j));
	}
	assert_string_equal(bb_wc_status_name((enum bb_wc_status)99), "?");
}

static bool
cause_has(enum bb_wc_status status, uint8_t vendor, const char *word)
{
	return strstr(bb_wc_status_cause(status, vendor), word) != NULL;
}

/* Each status has a cause text of its own that says more than its name. */
TEST(test_every_status_has_a_cause_of_its_own)
{
	for (int i = BB_WC_SUCCESS; i <= BB_WC_GENERAL_ERR + 1; i++) {
		const char *cause = bb_wc_status_cause((enum bb_wc_status)i, 0);

		assert_true(strlen(cause) > 10);
		assert_string_not_equal(cause, bb_wc_status_name((enum bb_wc_status)i));
		for (int j = BB_WC_SUCCESS; j < i; j++)
			assert_string_not_equal(cause, bb_wc_status_cause((enum bb_wc_status)j, 0));
	}
}

TEST(test_every_status_and_vendor_code_has_a_text)
{
	for (int status = BB_WC_SUCCESS; status <= BB_WC_GENERAL_ERR + 1; status++)
		for (int vendor = 0; vendor < 256; vendor++)
			assert_true(strlen(bb_wc_status_cause((enum bb_wc_status)status,
							      (uint8_t)vendor)) > 10);
}

TEST(test_known_vendor_codes_name_their_cause)
{
	/* Codes reported from real cards: protection, access, invalid, retries, RNR. */
	assert_true(cause_has(BB_WC_LOC_PROT_ERR, 0x51, "PCIe"));
	assert_true(cause_has(BB_WC_LOC_PROT_ERR, 0x52, "PD"));
	assert_true(cause_has(BB_WC_LOC_PROT_ERR, 0x53, "LOCAL_WRITE"));
	assert_true(cause_has(BB_WC_LOC_PROT_ERR, 0x54, "outside its MR"));
	assert_true(cause_has(BB_WC_LOC_PROT_ERR, 0x32, "PD"));
	assert_true(cause_has(BB_WC_LOC_QP_OP_ERR, 0x68, "format"));
	assert_true(cause_has(BB_WC_REM_ACCESS_ERR, 0x88, "rkey"));
	assert_true(cause_has(BB_WC_REM_OP_ERR, 0x89, "peer"));
	assert_true(cause_has(BB_WC_REM_INV_REQ_ERR, 0x8a, "max_dest_rd_atomic"));
	assert_true(cause_has(BB_WC_RETRY_EXC_ERR, 0x81, "did not answer"));
	assert_true(cause_has(BB_WC_RNR_RETRY_EXC_ERR, 0x87, "rnr_retry"));
	/* Texts without a vendor code: what a bind needs, and a path MTU that does not fit. */
	assert_true(cause_has(BB_WC_MW_BIND_ERR, 0, "MW_BIND"));
	assert_true(cause_has(BB_WC_MW_BIND_ERR, 0, "LOCAL_WRITE"));
	assert_true(cause_has(BB_WC_MW_BIND_ERR, 0, "already bound"));
	assert_true(cause_has(BB_WC_BAD_RESP_ERR, 0, "MTU"));
	assert_true(cause_has(BB_WC_REM_INV_REQ_ERR, 0, "MTU"));
	assert_true(cause_has(BB_WC_RETRY_EXC_ERR, 0, "MTU"));
	/* A flushed request has no cause of its own, whatever its vendor byte. */
	assert_true(cause_has(BB_WC_WR_FLUSH_ERR, 0xf5, "first error"));
	assert_true(cause_has(BB_WC_WR_FLUSH_ERR, 0xf9, "first error"));
	assert_true(cause_has(BB_WC_WR_FLUSH_ERR, 0x88, "first error"));
	/* An unpublished vendor code gives the text of the status. */
	assert_string_equal(bb_wc_status_cause(BB_WC_REM_ACCESS_ERR, 0xee),
			    bb_wc_status_cause(BB_WC_REM_ACCESS_ERR, 0));
	assert_string_equal(bb_wc_status_cause(BB_WC_LOC_PROT_ERR, 0x57),
			    bb_wc_status_cause(BB_WC_LOC_PROT_ERR, 0));
}

TEST_MAIN(0)
