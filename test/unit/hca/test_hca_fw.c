/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of the function itself, in the order of Linux's driver and out of order. */
#include <errno.h>

#include "hca_rig.h"

#define LIVE(name_) TEST_AS(rig_setup, rig_teardown, NULL, struct rig, r, name_)

LIVE(test_life_of_a_driver_gives_back_every_page)
{
	enum {
		PAGES = FW_BOOT_PAGES + FW_INIT_PAGES
	};
	uint8_t in[16] = {0}, out[16 + 8 * PAGES], seen[PAGES] = {0};
	uint32_t i, page;

	rig_init_hca(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_DISABLE_HCA, 0, 0, 0, NULL),
			 BB_PRM_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_short(r, BB_PRM_OP_TEARDOWN_HCA, 0, 0, 0, NULL), 0);
	assert_int_equal(fake_front.resets, 1);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 2);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, PAGES);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(bb_prm_get(out, BB_PRM_MANAGE_PAGES_OUT_OUTPUT_NUM_ENTRIES), PAGES);
	for (i = 0; i < PAGES; i++) {
		page = (bb_prm_dword(out, (uint16_t)(20 + 8 * i)) - (uint32_t)FREE_ADDR) / 4096;
		assert_true(page < PAGES && !seen[page]);
		seen[page] = 1;
	}
	assert_int_equal(rig_short(r, BB_PRM_OP_DISABLE_HCA, 0, 0, 0, NULL), 0);
	rig_init_hca(r);
}

/* A kernel for the dump of a crashed kernel starts without TEARDOWN_HCA, and without a reset. */
LIVE(test_next_kernel_starts_the_function_anew)
{
	uint8_t in[BB_PRM_SZ_SET_HCA_CAP_IN] = {0}, out[16];
	unsigned int resets = fake_front.resets;

	rig_init_hca(r);
	(void)rig_eq(r, 3, 0, 4, EQ_ADDR);
	rig_init_hca(r);
	assert_int_equal(fake_front.resets, resets + 1);
	assert_int_equal(hca_event_eq(&r->h, 2), 0);
	assert_int_equal(r->h.fw.n_pages, FW_BOOT_PAGES + FW_INIT_PAGES);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_SET_HCA_CAP);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), 0);
}

LIVE(test_commands_outside_their_phase_are_refused)
{
	static const uint16_t need_enable[] = {BB_PRM_OP_QUERY_PAGES, BB_PRM_OP_QUERY_HCA_CAP,
					       BB_PRM_OP_INIT_HCA, BB_PRM_OP_ACCESS_REG};
	static const uint16_t need_init[] = {BB_PRM_OP_CREATE_EQ, BB_PRM_OP_QUERY_HCA_VPORT_CONTEXT,
					     BB_PRM_OP_MAD_IFC, 0x500, 0x9999};
	size_t i;

	rig_start(r);
	for (i = 0; i < sizeof(need_enable) / sizeof(need_enable[0]); i++)
		assert_int_equal(rig_short(r, need_enable[i], 0, 0, 0, NULL),
				 BB_PRM_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	for (i = 0; i < sizeof(need_init) / sizeof(need_init[0]); i++)
		assert_int_equal(rig_short(r, need_init[i], 0, 0, 0, NULL),
				 BB_PRM_STAT_BAD_SYS_STATE);
	assert_int_equal(rig_short(r, BB_PRM_OP_INIT_HCA, 0, 0, 0, NULL),
			 BB_PRM_STAT_BAD_SYS_STATE); /* without pages */
	assert_int_equal(rig_short(r, BB_PRM_OP_SET_ISSI, 0, 2, 0, NULL), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(rig_short(r, BB_PRM_OP_SET_ISSI, 0, 40, 0, NULL), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(fake_front.commands, 0);
}

LIVE(test_teardown_destroys_the_event_queues)
{
	rig_init_hca(r);
	(void)rig_eq(r, 3, 0, 4, EQ_ADDR);
	assert_int_equal(rig_short(r, BB_PRM_OP_TEARDOWN_HCA, 0, 1, 0, NULL),
			 BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(rig_short(r, BB_PRM_OP_TEARDOWN_HCA, 0, 0, 0, NULL), 0);
	assert_int_equal(hca_event_eq(&r->h, 2), 0);
}

LIVE(test_pages_must_be_ram_and_fit_the_mailbox)
{
	uint8_t in[32] = {0}, out[16];
	static const uint64_t bad[] = {0, RAM_ADDR + 1, RAM_ADDR + RAM_SIZE, UINT64_MAX - 4095};
	size_t i;

	rig_start(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 1);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, 2);
	bb_prm_set64(in, BB_PRM_F(16, 0, 64), FREE_ADDR);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bb_prm_set64(in, BB_PRM_F(24, 0, 64), bad[i]);
		assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)),
				 BB_PRM_STAT_BAD_PARAM);
	}
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, 3);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_INP_LEN);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, UINT32_MAX);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_INP_LEN);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 2);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_OUTP_LEN);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 3);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(r->h.fw.n_pages, 0);
}

/* The lists of pages begin at byte 16 of both mailboxes. */
LIVE(test_mailboxes_that_end_before_their_list_are_refused)
{
	enum {
		PAGES = 2048
	};
	static uint8_t in[16 + 8 * PAGES], out[16 + 8 * PAGES];
	uint32_t i, len;

	rig_start(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 1);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, PAGES);
	for (i = 0; i < PAGES; i++)
		bb_prm_set64(in + 16 + 8 * i, BB_PRM_F(0, 0, 64), FREE_ADDR);
	for (len = 8; len < 16; len++)
		assert_int_equal(rig_exec(r, in, len, out, 16), BB_PRM_STAT_BAD_INP_LEN);
	assert_int_equal(r->h.fw.n_pages, 0);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), 0);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 2);
	for (len = 8; len < 16; len++)
		assert_int_equal(rig_exec(r, in, 16, out, len), BB_PRM_STAT_BAD_OUTP_LEN);
	assert_int_equal(r->h.fw.n_pages, PAGES);
	assert_int_equal(rig_exec(r, in, 16, out, sizeof(out)), 0);
	assert_int_equal(r->h.fw.n_pages, 0);
}

#define START (FW_BOOT_PAGES + FW_INIT_PAGES)

/*
 * Lets the guest's objects need @pages, by a command of the front. Returns the number of the page
 * request that follows, 0 if none does. @events: number of requests before.
 */
static int32_t
need_pages(struct rig *r, uint32_t *events, uint32_t pages)
{
	const uint8_t *e = rig_ram(r, EQ_ADDR + 64 * *events);

	fake_front.context_pages = pages;
	assert_int_equal(rig_short(r, BB_PRM_OP_ALLOC_UAR, 0, 0, 0, NULL), 0);
	assert_int_equal(r->h.stats.pages, r->h.fw.n_pages);
	if (e[63] & 1)
		return 0;
	assert_int_equal(r->h.stats.page_requests, ++*events);
	assert_int_equal(bb_prm_get(e, BB_PRM_EQE_EVENT_TYPE), 0xb);
	e = bb_prm_csub(e, BB_PRM_EQE_EVENT_DATA);
	assert_int_equal(bb_prm_dword(e, 0), 0); /* function 0; no flags */
	return (int32_t)bb_prm_get(e, BB_PRM_PAGE_EVENT_NUM_PAGES);
}

/* Executes MANAGE_PAGES. Returns the number of pages that the device gave back. */
static uint32_t
manage_pages(struct rig *r, unsigned int op_mod, uint32_t n, int status)
{
	static uint8_t in[16 + 8 * 256], out[16 + 8 * 256];
	uint32_t i;

	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, op_mod);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, n);
	for (i = 0; i < 256; i++)
		bb_prm_set64(in + 16 + 8 * i, BB_PRM_F(0, 0, 64), FREE_ADDR + i * 4096);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), status);
	return op_mod == 2 ? bb_prm_get(out, BB_PRM_MANAGE_PAGES_OUT_OUTPUT_NUM_ENTRIES) : 0;
}

LIVE(test_device_asks_for_pages_and_offers_them_back)
{
	uint32_t events = 0;
	uint8_t out[16];

	rig_init_hca(r);
	fake_front.context_pages = 1; /* nothing is asked before the EQ exists */
	assert_int_equal(rig_eq(r, 6, 0, UINT64_C(1) << 0xb, EQ_ADDR), 1);
	assert_int_equal(r->h.stats.page_requests, 1);
	assert_int_equal(need_pages(r, &events, 1), 16);
	/* One request is outstanding at a time, whatever happens meanwhile. */
	assert_int_equal(need_pages(r, &events, 40), 0);
	assert_int_equal(rig_short(r, BB_PRM_OP_QUERY_PAGES, 3, 0, 0, out), 0);
	assert_int_equal(bb_prm_get(out, BB_PRM_QUERY_PAGES_OUT_NUM_PAGES), 48);
	manage_pages(r, 1, 16, 0);
	assert_int_equal(need_pages(r, &events, 40), 32);
	manage_pages(r, 1, 32, 0);
	assert_int_equal(r->h.fw.n_pages, START + 48);
	/* A spare block stays. Two go, though the driver asks for more, and those in use stay. */
	assert_int_equal(need_pages(r, &events, 32), 0);
	assert_int_equal(need_pages(r, &events, 16), -32);
	assert_int_equal(rig_short(r, BB_PRM_OP_QUERY_PAGES, 3, 0, 0, out), 0);
	assert_int_equal(bb_prm_get(out, BB_PRM_QUERY_PAGES_OUT_NUM_PAGES), (uint32_t)-32);
	assert_int_equal(manage_pages(r, 2, 200, 0), 32);
	assert_int_equal(manage_pages(r, 2, 200, 0), 0);
	assert_int_equal(need_pages(r, &events, 16), 0);
	/* Teardown with an unanswered request: the driver gets all pages, and can start again. */
	assert_int_equal(need_pages(r, &events, 17), 16);
	assert_int_equal(rig_short(r, BB_PRM_OP_TEARDOWN_HCA, 0, 0, 0, NULL), 0);
	assert_int_equal(manage_pages(r, 2, 256, 0), START + 16);
	assert_int_equal(rig_short(r, BB_PRM_OP_DISABLE_HCA, 0, 0, 0, NULL), 0);
	rig_init_hca(r);
	assert_int_equal(rig_eq(r, 6, 0, UINT64_C(1) << 0xb, EQ_ADDR), 1);
	assert_int_equal(rig_ram(r, EQ_ADDR)[63] & 1, 0);
}

LIVE(test_driver_without_pages_is_asked_again_when_the_need_changes)
{
	static const uint32_t refused[] = {0, 3, 9}; /* values of op_mod; 0: cannot give */
	uint32_t events = 0, i;

	rig_init_hca(r);
	assert_int_equal(rig_eq(r, 6, 0, UINT64_C(1) << 0xb, EQ_ADDR), 1);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(need_pages(r, &events, i * 16 + 1), (i + 1) * 16);
		manage_pages(r, refused[i], 0, refused[i] == 0 ? 0 : BB_PRM_STAT_BAD_PARAM);
		assert_int_equal(need_pages(r, &events, i * 16 + 2), 0);
	}
	/* No more than the limit, even if the objects need more. */
	assert_int_equal(need_pages(r, &events, UINT32_MAX / 2), HCA_MAX_PAGES - START);
}

/* Changes of a valid CREATE_EQ of 2^7 entries on two pages. */
LIVE(test_event_queues_that_make_no_sense_are_refused)
{
	static const struct {
		struct bb_prm_field f; /* of the EQ context */
		uint32_t value;
	} cases[] = {
		{BB_PRM_EQC_LOG_EQ_SIZE, 8}, /* the list is too short */
		{BB_PRM_EQC_LOG_EQ_SIZE, 31},
		{BB_PRM_EQC_LOG_PAGE_SIZE, 31},
		{BB_PRM_EQC_LOG_PAGE_SIZE, 19}, /* 2 GiB */
		{BB_PRM_EQC_PAGE_OFFSET, 1},
		{BB_PRM_EQC_INTR, HCA_N_MSIX},
		{BB_PRM_EQC_UAR_PAGE, 2},
		{BB_PRM_EQC_UAR_PAGE, 0x2000},
		{BB_PRM_EQC_UAR_PAGE, FRONT_UAR_SHARED}, /* doorbells there are no messages */
		{{0x104, 0, 32}, (uint32_t)(RAM_ADDR + RAM_SIZE)},
		{{0x10c, 0, 32}, 0},
	};
	uint8_t in[0x110 + 16], out[16];
	uint32_t i;

	rig_init_hca(r);
	r->h.o.shared = true;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *eqc = bb_prm_sub(in, BB_PRM_CREATE_EQ_EQC);

		memset(in, 0, sizeof(in));
		bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_EQ);
		bb_prm_set(eqc, BB_PRM_EQC_LOG_EQ_SIZE, 7);
		bb_prm_set(eqc, BB_PRM_EQC_UAR_PAGE, RIG_UAR);
		bb_prm_set64(in, BB_PRM_F(0x110, 0, 64), EQ_ADDR);
		bb_prm_set64(in, BB_PRM_F(0x118, 0, 64), EQ_ADDR + 4096);
		bb_prm_set(eqc, cases[i].f, cases[i].value);
		assert_int_not_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), 0);
		assert_int_equal(rig_exec(r, in, 0x100, out, sizeof(out)), BB_PRM_STAT_BAD_INP_LEN);
	}
	for (i = 1; i < HCA_EQS; i++)
		assert_int_equal(rig_eq(r, 0, 0, 0, EQ_ADDR), i);
	bb_prm_set(in, BB_PRM_F(0x11c, 0, 32), (uint32_t)EQ_ADDR + 4096);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_NO_RES);
	assert_int_equal(rig_short(r, BB_PRM_OP_DESTROY_EQ, 0, 3, 0, NULL), 0);
	assert_int_equal(rig_short(r, BB_PRM_OP_DESTROY_EQ, 0, 3, 0, NULL), BB_PRM_STAT_BAD_RES);
	assert_int_equal(rig_short(r, BB_PRM_OP_DESTROY_EQ, 0, 0, 0, NULL), BB_PRM_STAT_BAD_RES);
	assert_int_equal(rig_short(r, BB_PRM_OP_DESTROY_EQ, 0, 255, 0, NULL), BB_PRM_STAT_BAD_RES);
}

static void
query_caps(struct rig *r, unsigned int op_mod, int status, uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT])
{
	uint8_t in[16] = {0};

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, op_mod);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, BB_PRM_SZ_QUERY_HCA_CAP_OUT), status);
}

LIVE(test_capabilities_are_the_fronts_and_the_functions)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT], in[BB_PRM_SZ_SET_HCA_CAP_IN] = {0},
						  *caps = out + 16;

	rig_start(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	query_caps(r, 0, 0, out);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_LOG_MAX_QP), 9); /* the front's */
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_PORT_TYPE), 0);  /* the function's */
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_DEVICE_MEMORY), 1);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_PG), 1);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_IB_VIRT), 1);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_LOCAL_CA_ACK_DELAY), 16);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_MAX_NUM_EQS), HCA_EQS - 1);
	query_caps(r, BB_PRM_CAP_ATOMIC << 1, 0, out);
	query_caps(r, 0x7e << 1, BB_PRM_STAT_BAD_PARAM, out);
	/* An InfiniBand port has no flow tables, but answers. */
	query_caps(r, BB_PRM_CAP_FLOW_TABLE << 1, 0, out);
	query_caps(r, 0xffff, BB_PRM_STAT_BAD_PARAM, out);
	/* The driver sets a value below the maximum, then one above. */
	query_caps(r, 1, 0, out);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_SET_HCA_CAP);
	memcpy(in + 16, caps, 256);
	bb_prm_set(in + 16, BB_PRM_HCA_LOG_MAX_QP, 8);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), 0);
	query_caps(r, 1, 0, out);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_LOG_MAX_QP), 8);
	query_caps(r, 0, 0, out);
	assert_int_equal(bb_prm_get(caps, BB_PRM_HCA_LOG_MAX_QP), 9);
	/* PAGE_SHIFT - 12 of a kernel with pages of 64 KiB. */
	bb_prm_set(in + 16, BB_PRM_HCA_LOG_UAR_PAGE_SZ, 4);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), BB_PRM_STAT_BAD_PARAM);
	bb_prm_set(in + 16, BB_PRM_HCA_LOG_UAR_PAGE_SZ, 0);
	bb_prm_set(in + 16, BB_PRM_HCA_LOG_MAX_QP, 10);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(rig_exec(r, in, 64, out, 16), BB_PRM_STAT_BAD_INP_LEN);
}

LIVE(test_port_is_active_with_the_guid)
{
	uint8_t in[16] = {0}, out[BB_PRM_SZ_HCA_VPORT_OUT], *ctx = out + 16;

	rig_init_hca(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_VPORT_CONTEXT);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(bb_prm_get(ctx, BB_PRM_HVC_PORT_STATE), 4);
	assert_true(bb_prm_get64(ctx, BB_PRM_HVC_NODE_GUID) == 0x1122334455667788);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 0x100), BB_PRM_STAT_BAD_OUTP_LEN);
	bb_prm_set(in, BB_PRM_HCA_VPORT_OTHER_VPORT, 1);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_PARAM);
	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_VPORT_GID);
	bb_prm_set(in, BB_PRM_HCA_VPORT_GID_GID_INDEX, 0xffff);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 32), 0);
	assert_int_equal(bb_prm_get(out, BB_PRM_HCA_VPORT_GID_OUT_GIDS_NUM), 1);
	assert_int_equal(bb_prm_dword(out, 16), 0xfe800000);
	assert_int_equal(bb_prm_dword(out, 28), 0x55667788);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), BB_PRM_STAT_BAD_OUTP_LEN);
}

LIVE(test_driver_changes_the_bits_of_the_port_that_it_owns)
{
	uint8_t in[BB_PRM_SZ_HCA_VPORT_OUT] = {0}, out[BB_PRM_SZ_HCA_VPORT_OUT];
	uint8_t *set = in + 16, *get = out + 16;
	uint32_t before, cm = 1u << 16;

	rig_init_hca(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_VPORT_CONTEXT);
	assert_int_equal(rig_exec(r, in, 16, out, sizeof(out)), 0);
	before = bb_prm_get(get, BB_PRM_HVC_CAP_MASK1);
	assert_true((bb_prm_get(get, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT) & cm) != 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_HCA_VPORT_CONTEXT);
	bb_prm_set(set, BB_PRM_HVC_CAP_MASK1, before ^ UINT32_MAX);
	bb_prm_set(set, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT, cm);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), 0);
	assert_int_equal(rig_exec(r, in, sizeof(in) - 1, out, 16), BB_PRM_STAT_BAD_INP_LEN);
	/* A bit of the device, and another field. */
	bb_prm_set(set, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT, 1u << 11);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), BB_PRM_STAT_BAD_PARAM);
	bb_prm_set(set, BB_PRM_HVC_CAP_MASK1_FIELD_SELECT, cm);
	bb_prm_set(set, BB_PRM_HVC_FIELD_SELECT, 1);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, 16), BB_PRM_STAT_BAD_PARAM);
	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_VPORT_CONTEXT);
	assert_int_equal(rig_exec(r, in, 16, out, sizeof(out)), 0);
	assert_int_equal(bb_prm_get(get, BB_PRM_HVC_CAP_MASK1), before ^ cm);
}

LIVE(test_registers_answer_in_their_length_only)
{
	static const struct {
		uint16_t id;
		uint32_t len;
	} regs[] = {{0x5003, 16}, {0x5004, 64}, {0x5006, 16},
		    {0x500f, 16}, {0x6001, 64}, {0x7004, 4}};
	uint8_t in[80] = {0}, out[80];
	size_t i;

	rig_start(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ACCESS_REG);
	for (i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		bb_prm_set(in, BB_PRM_ACCESS_REG_REGISTER_ID, regs[i].id);
		assert_int_equal(rig_exec(r, in, 16 + regs[i].len, out, 16 + regs[i].len), 0);
		assert_int_equal(rig_exec(r, in, 15 + regs[i].len, out, sizeof(out)),
				 BB_PRM_STAT_BAD_INP_LEN);
	}
	bb_prm_set(in, BB_PRM_ACCESS_REG_REGISTER_ID, 0x9001);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_PARAM);
}

static uint8_t
set_address_mac(struct rig *r, uint32_t index, uint32_t port, const uint8_t gid[16],
		uint32_t version, uint32_t vlan, uint16_t mac_47_32)
{
	uint8_t in[BB_PRM_SZ_SET_ROCE_ADDRESS_IN] = {0}, out[16];
	uint8_t *a = bb_prm_sub(in, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS);

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_SET_ROCE_ADDRESS);
	bb_prm_set(in, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS_INDEX, index);
	bb_prm_set(in, BB_PRM_SET_ROCE_ADDRESS_VHCA_PORT_NUM, port);
	memcpy(bb_prm_sub(a, BB_PRM_ROCE_ADDR_SOURCE_L3_ADDRESS), gid, 16);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_SOURCE_MAC_47_32, mac_47_32);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_SOURCE_MAC_31_0, 0x22334455);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_ROCE_VERSION, version);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_VLAN_VALID, vlan != 0);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_VLAN_ID, vlan);
	return (uint8_t)rig_exec(r, in, sizeof(in), out, sizeof(out));
}

static uint8_t
set_address(struct rig *r, uint32_t index, uint32_t port, const uint8_t gid[16], uint32_t version,
	    uint32_t vlan)
{
	return set_address_mac(r, index, port, gid, version, vlan, 0x0211);
}

static uint32_t
query_address(struct rig *r, uint32_t index, uint8_t gid[16])
{
	uint8_t in[16] = {0}, out[BB_PRM_SZ_QUERY_ROCE_ADDRESS_OUT];
	int status;

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_ROCE_ADDRESS);
	bb_prm_set(in, BB_PRM_QUERY_ROCE_ADDRESS_ROCE_ADDRESS_INDEX, index);
	status = rig_exec(r, in, sizeof(in), out, sizeof(out));
	memcpy(gid, bb_prm_csub(out, BB_PRM_QUERY_ROCE_ADDRESS_OUT_ROCE_ADDRESS), 16);
	return (uint32_t)status;
}

LIVE(test_roce_addresses_reach_the_port_until_they_are_removed)
{
	static const uint8_t mac[6] = {2, 0x11, 0x22, 0x33, 0x44, 0x55}, zero[16];
	uint8_t gid[16] = {0xfe, 0x80, [15] = 7}, found[16];

	r->h.o.eth = true;
	rig_init_hca(r);
	assert_int_equal(set_address(r, 3, 0, gid, 2, 0), 0);
	assert_int_equal(fake_front.address_index, 3);
	assert_true(fake_front.address_set);
	assert_int_equal(fake_front.address.type, BB_GID_ROCE_V2);
	assert_memory_equal(fake_front.address.raw, gid, 16);
	assert_memory_equal(fake_front.mac, mac, 6);
	assert_int_equal(query_address(r, 3, found), 0);
	assert_memory_equal(found, gid, 16);
	assert_int_equal(set_address(r, 15, 1, gid, 0, 0), 0);
	assert_int_equal(fake_front.address.type, BB_GID_ROCE_V1);
	assert_int_equal(set_address(r, 3, 0, zero, 0, 0), 0);
	assert_int_equal(fake_front.address_index, 3);
	assert_false(fake_front.address_set);
	assert_int_equal(query_address(r, 3, found), 0);
	assert_memory_equal(found, zero, 16);
	/* An address in a VLAN: the driver may set it, but the port has none. */
	assert_int_equal(set_address(r, 4, 0, gid, 2, 5), 0);
	assert_int_equal(fake_front.address_index, 4);
	assert_false(fake_front.address_set);
	assert_int_equal(query_address(r, 4, found), 0);
	assert_memory_equal(found, gid, 16);
}

LIVE(test_invalid_roce_addresses_are_refused_and_change_nothing)
{
	uint8_t gid[16] = {0xfe, 0x80, [15] = 7}, found[16];
	unsigned int before;

	rig_init_hca(r);
	fake_front.unknown = true;
	assert_int_equal(set_address(r, 0, 0, gid, 2, 0), BB_PRM_STAT_BAD_OP);
	r->h.o.eth = true;
	before = fake_front.addresses;
	assert_int_equal(set_address(r, 16, 0, gid, 2, 0), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(set_address(r, 0, 2, gid, 2, 0), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(set_address(r, 0, 0, gid, 1, 0), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(set_address_mac(r, 0, 0, gid, 2, 0, 0x0311), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(query_address(r, 16, found), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(fake_front.addresses, before);
	fake_front.address_ret = -EOPNOTSUPP;
	assert_int_equal(set_address(r, 0, 0, gid, 2, 0), BB_PRM_STAT_BAD_PARAM);
	assert_int_equal(query_address(r, 0, found), 0);
	assert_int_equal(found[0], 0);
}

TEST_MAIN(0)
