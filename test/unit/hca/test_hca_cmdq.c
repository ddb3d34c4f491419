/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Registers of BAR 0, command queue, event queues, doorbells. */
#include <unistd.h>

#include <sys/socket.h>

#include "hca_rig.h"
#include "hca_time.h"

#define LIVE(name_) TEST_AS(rig_setup, rig_teardown, NULL, struct rig, r, name_)

#define QP_OP 0x50b /* an opcode of the front */

LIVE(test_initialization_segment_has_the_version_and_a_moving_health_counter)
{
	uint32_t counter = rig_reg(r, 0x1010), high = rig_reg(r, 0x1000);

	assert_int_equal(rig_reg(r, 0), FW_MINOR << 16 | FW_MAJOR);
	assert_int_equal(rig_reg(r, 4) >> 16, 5);
	assert_int_equal(rig_reg(r, 0x14), 5 << 4 | 6);
	assert_int_equal(rig_reg(r, 0x1fc), 0);
	assert_int_equal(counter >> 24, 0);
	usleep(11000);
	assert_true(rig_reg(r, 0x1010) != counter);
	assert_true(rig_reg(r, 0x1000) - high <= 1);
	rig_start(r);
	assert_int_equal(rig_reg(r, 0x14), (uint32_t)CMDQ_ADDR | 0x56);
}

LIVE(test_narrow_and_wide_reads_give_the_same_bytes)
{
	struct {
		uint64_t off;
		uint32_t region, count;
	} a = {4, VFU_BAR0, 1};
	uint8_t bytes[8], i;

	for (i = 0; i < 8; i++) {
		a.off = i;
		assert_int_equal(rig_call(r, 9, &a, sizeof(a), NULL, 0), 0);
		bytes[i] = r->reply[16];
	}
	a.off = 0;
	a.count = 8;
	assert_int_equal(rig_call(r, 9, &a, sizeof(a), NULL, 0), 0);
	assert_memory_equal(r->reply + 16, bytes, 8);
}

LIVE(test_command_of_three_blocks_reaches_the_front_whole)
{
	uint8_t in[16 + 1200], out[16 + 1100];
	unsigned int i;

	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7);
	rig_init_hca(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, QP_OP);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(fake_front.commands, 1);
	assert_int_equal(fake_front.inlen, sizeof(in));
	assert_memory_equal(fake_front.in, in, 64);
	fake_front.status = BB_PRM_STAT_BAD_RES;
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_RES);
	fake_front.unknown = true;
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), BB_PRM_STAT_BAD_OP);
	assert_int_equal(out[4], 0xbb); /* a syndrome */
}

/* Each changes a good command of three input and three output blocks. */
static void
bad_signature(struct rig *r, uint8_t *e)
{
	(void)r;
	e[61] ^= 0x10;
}
static void
bad_type(struct rig *r, uint8_t *e)
{
	(void)r;
	e[0] = 6;
	rig_sign(e);
}
static void
short_input(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_INLEN, 7);
	rig_sign(e);
}
static void
huge_input(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_INLEN, UINT32_MAX);
	rig_sign(e);
}
static void
short_output(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_OUTLEN, 0);
	rig_sign(e);
}
static void
huge_output(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_OUTLEN, HCA_MAX_BOX + 1);
	rig_sign(e);
}
static void
input_outside(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_IN_PTR_HIGH, 0x7fffffff);
	rig_sign(e);
}
static void
input_at_the_end(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_IN_PTR_LOW, (uint32_t)(RAM_ADDR + RAM_SIZE - 512) >> 9);
	rig_sign(e);
}
static void
output_misaligned(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_OUT_PTR_LOW, (uint32_t)(OUT_ADDR + 512) >> 9);
	rig_sign(e);
}
static void
output_outside(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_OUT_PTR_LOW, 0);
	rig_sign(e);
}
static void
input_token(struct rig *r, uint8_t *e)
{
	(void)e;
	rig_ram(r, IN_ADDR + BOX_STEP)[0x23d]++;
}
static void
output_token(struct rig *r, uint8_t *e)
{
	(void)e;
	rig_ram(r, OUT_ADDR + 2 * BOX_STEP)[0x23d]++;
}
static void
input_loop(struct rig *r, uint8_t *e)
{
	uint8_t *b = rig_ram(r, IN_ADDR);

	(void)e;
	bb_prm_set(b, BB_PRM_BOX_NEXT_LOW, (uint32_t)IN_ADDR >> 10);
}
static void
output_loop(struct rig *r, uint8_t *e)
{
	uint8_t *b = rig_ram(r, OUT_ADDR + BOX_STEP);

	(void)e;
	bb_prm_set(b, BB_PRM_BOX_NEXT_LOW, (uint32_t)OUT_ADDR >> 10);
}
static void
output_chain_short(struct rig *r, uint8_t *e)
{
	uint8_t *b = rig_ram(r, OUT_ADDR + BOX_STEP);

	(void)e;
	bb_prm_set(b, BB_PRM_BOX_NEXT_LOW, 0);
}
static void
longer_than_the_chain(struct rig *r, uint8_t *e)
{
	(void)r;
	bb_prm_set(e, BB_PRM_CMDQ_INLEN, 16 + 4 * 512);
	rig_sign(e);
}

LIVE(test_broken_entries_get_their_delivery_status_and_execute_nothing)
{
	static const struct {
		void (*change)(struct rig *r, uint8_t *e);
		int status;
	} cases[] = {
		{bad_signature, 1},      {bad_type, 0x10},
		{short_input, 7},        {huge_input, 7},
		{short_output, 8},       {huge_output, 8},
		{input_outside, 5},      {input_at_the_end, 5},
		{output_misaligned, 4},  {output_outside, 4},
		{input_token, 2},        {output_token, 2},
		{input_loop, 3},         {output_loop, 3},
		{output_chain_short, 4}, {longer_than_the_chain, 5},
	};
	uint8_t in[16 + 1200] = {0}, *e;
	size_t i;

	rig_init_hca(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, QP_OP);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = rig_command(r, in, sizeof(in), 16 + 1200);
		cases[i].change(r, e);
		assert_int_equal(rig_ring(r), cases[i].status);
		assert_int_equal(fake_front.commands, 0);
	}
	(void)rig_command(r, in, sizeof(in), 16 + 1200);
	assert_int_equal(rig_ring(r), 0);
	assert_int_equal(fake_front.commands, 1);
}

LIVE(test_entry_of_the_driver_is_left_alone)
{
	uint8_t in[16] = {0}, *e, before[64];

	rig_init_hca(r);
	e = rig_command(r, in, sizeof(in), 16);
	bb_prm_set(e, BB_PRM_CMDQ_OWNERSHIP, 0);
	memcpy(before, e, 64);
	rig_set_reg(r, 0x18, 1);
	assert_memory_equal(e, before, 64);
}

LIVE(test_doorbell_without_a_queue_is_ignored)
{
	rig_set_reg(r, 0x18, UINT32_MAX);
	assert_int_equal(r->h.health, HCA_HEALTH_OK);
}

LIVE(test_queue_outside_ram_is_fatal_until_a_reset)
{
	uint32_t counter;

	rig_master(r);
	rig_set_reg(r, 0x10, 0x12345678);
	rig_set_reg(r, 0x14, 0);
	rig_set_reg(r, 0x18, 4);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, HCA_HEALTH_FETCH_PCI);
	assert_int_equal(rig_reg(r, 0x23c) >> 16 & 0xff, HCA_HEALTH_FETCH_PCI);
	counter = rig_reg(r, 0x1010);
	usleep(11000);
	/* The driver's recovery needs both: a counter that moves and a function that is off. */
	assert_int_not_equal(rig_reg(r, 0x1010), counter);
	assert_int_equal(rig_reg(r, 0x14) >> 8 & 7, HCA_NIC_DISABLED);
	rig_write32(r, VFU_CONFIG, 0x68, 0xa810);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, 0);
	rig_init_hca(r);
}

LIVE(test_driver_that_loads_after_the_fatal_state_finds_a_reset_device)
{
	unsigned int resets;

	rig_init_hca(r);
	hca_fatal(&r->h, HCA_HEALTH_HW);
	resets = fake_front.resets;
	rig_set_reg(r, 0x18, 1);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, HCA_HEALTH_HW);
	rig_init_hca(r);
	assert_true(fake_front.resets > resets);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, 0);
	assert_int_equal(rig_reg(r, 0x14) >> 8 & 7, HCA_NIC_FULL);
}

LIVE(test_reset_by_the_interface_state_disables_the_function)
{
	rig_init_hca(r);
	rig_set_reg(r, 0x14, (uint32_t)CMDQ_ADDR | HCA_NIC_RESET << 8);
	assert_int_equal(rig_reg(r, 0x14) >> 8 & 7, HCA_NIC_DISABLED);
	assert_false(r->h.fw.initialized);
	rig_init_hca(r);
	assert_int_equal(rig_reg(r, 0x14) >> 8 & 7, HCA_NIC_FULL);
}

LIVE(test_ram_unmapped_under_the_queues_is_fatal_and_nothing_else)
{
	uint32_t eqn;

	rig_init_hca(r);
	eqn = rig_eq(r, 3, 0, 1u << 2, EQ_ADDR);
	assert_int_equal(rig_unmap(r, RAM_ADDR, RAM_SIZE), 0);
	rig_set_reg(r, 0x18, 1);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, HCA_HEALTH_FETCH_PCI);
	fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, "", 0);
}

LIVE(test_eq_raises_its_vector_once_per_arm)
{
	uint8_t data[28] = {1, 2, 3}, *e;
	uint32_t eqn;

	rig_irqs(r);
	rig_init_hca(r);
	eqn = rig_eq(r, 3, 2, 1u << 2, EQ_ADDR);
	fake_front.host->event(fake_front.host->arg, 3, 0, data,
			       sizeof(data)); /* not in the mask */
	fake_front.host->event(fake_front.host->arg, 2, 9, data, sizeof(data));
	e = rig_ram(r, EQ_ADDR);
	assert_int_equal(e[1], 2);
	assert_int_equal(e[3], 9);
	assert_memory_equal(e + 32, data, sizeof(data));
	assert_int_equal(e[63], 0);
	assert_int_equal(e[64 + 63], 1);
	assert_int_equal(rig_raised(r, 2), 0);
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, eqn << 24); /* arms with an entry to consume */
	assert_int_equal(rig_raised(r, 2), 1);
	fake_front.host->event(fake_front.host->arg, 2, 0, data, sizeof(data));
	assert_int_equal(rig_raised(r, 2), 0);
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, eqn << 24 | 2);
	assert_int_equal(rig_raised(r, 2), 0);
	fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, data, sizeof(data));
	assert_int_equal(rig_raised(r, 2), 1);
	rig_set_reg(r, RIG_UAR * 4096 + 0x48, eqn << 24 | 3); /* without a request */
	fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, data, sizeof(data));
	assert_int_equal(rig_raised(r, 2), 0);
}

LIVE(test_eq_wraps_with_the_owner_bit_of_the_lap)
{
	uint32_t eqn, i;

	rig_init_hca(r);
	eqn = rig_eq(r, 2, 0, 0, EQ_ADDR);
	for (i = 0; i < 4 * 5; i++) {
		fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, &i, sizeof(i));
		assert_int_equal(rig_ram(r, EQ_ADDR + i % 4 * 64)[63], i / 4 & 1);
		assert_memory_equal(rig_ram(r, EQ_ADDR + i % 4 * 64) + 32, &i, sizeof(i));
		rig_set_reg(r, RIG_UAR * 4096 + 0x48, eqn << 24 | (i + 1));
	}
	assert_int_equal(r->h.health, HCA_HEALTH_OK);
}

LIVE(test_eq_overrun_is_fatal)
{
	uint32_t eqn, i;

	rig_init_hca(r);
	eqn = rig_eq(r, 2, 0, 0, EQ_ADDR);
	for (i = 0; i < 4; i++)
		fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, "", 0);
	assert_int_equal(r->h.health, HCA_HEALTH_OK);
	assert_non_null(guest_at(&r->h.guest, EQ_ADDR, 1, false));
	fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, "", 0);
	assert_int_equal(rig_reg(r, 0x1010) >> 24, HCA_HEALTH_EQ_OVERRUN);
	/* The guest's memory is blocked until the driver resets the device. */
	assert_null(guest_at(&r->h.guest, EQ_ADDR, 1, false));
	rig_init_hca(r);
	assert_non_null(guest_at(&r->h.guest, EQ_ADDR, 1, false));
}

LIVE(test_eq_doorbells_that_make_no_sense_are_ignored)
{
	uint32_t eqn;

	rig_irqs(r);
	rig_init_hca(r);
	eqn = rig_eq(r, 2, 0, 0, EQ_ADDR);
	fake_front.host->eqe(fake_front.host->arg, eqn, 0, 0, "", 0);
	/* A CQ may name an EQ that does not exist. */
	fake_front.host->eqe(fake_front.host->arg, 255, 0, 0, "", 0);
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, eqn << 24 | 2);        /* beyond the producer */
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, eqn << 24 | 0xffffff); /* back */
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, (eqn + 1) << 24);      /* no such EQ */
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, 0xffu << 24);
	rig_set_reg(r, (RIG_UAR + 1) * 4096 + 0x40, eqn << 24); /* another register page */
	assert_int_equal(r->h.eqs[eqn].ci, 0);
	assert_int_equal(rig_raised(r, 0), 0);
	assert_int_equal(fake_front.bells, 0);
}

LIVE(test_commands_report_to_the_eq_once_it_exists)
{
	uint32_t eqn;

	rig_irqs(r);
	rig_init_hca(r);
	eqn = rig_eq(r, 4, 1, UINT64_C(1) << 0xa, EQ_ADDR);
	assert_int_equal(r->h.eqs[eqn].pi, 0); /* not of the command that made it */
	rig_set_reg(r, RIG_UAR * 4096 + 0x40, eqn << 24);
	assert_int_equal(rig_short(r, BB_PRM_OP_QUERY_ISSI, 0, 0, 0, NULL),
			 BB_PRM_STAT_BAD_OUTP_LEN);
	assert_int_equal(rig_raised(r, 1), 1);
	assert_int_equal(rig_ram(r, EQ_ADDR)[1], 0xa);
	assert_int_equal(bb_prm_get(rig_ram(r, EQ_ADDR) + 32, BB_PRM_CMD_EVENT_VECTOR), 1);
	assert_int_equal(rig_short(r, BB_PRM_OP_DESTROY_EQ, 0, eqn, 0, NULL), 0);
	assert_int_equal(rig_raised(r, 1), 0);
}

/* A WQE of @ds units of 16 bytes as it is copied to a BlueFlame register. */
static void
make_wqe(uint8_t *w, uint32_t len, unsigned int ds)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		w[i] = (uint8_t)(i + 1);
	w[7] = (uint8_t)ds;
}

LIVE(test_doorbell_of_8_bytes_waits_for_the_rest_of_a_copy_and_then_counts)
{
	bool waits = false;
	uint8_t w[64];
	uint64_t t;

	make_wqe(w, sizeof(w), 3);
	/* The doorbell counts at once only if this process was stopped for the 500 us. */
	while (!waits) {
		fake_front.bells = 0;
		t = hca_now();
		rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
		waits = hca_poll(&r->h) == 1;
		assert_true(waits || hca_now() - t >= 500000);
		assert_int_equal(fake_front.bells, !waits);
	}
	usleep(600);
	(void)hca_poll(&r->h);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].len, 8);
	assert_int_equal(fake_front.bell[0].uar, RIG_UAR);
	assert_int_equal(fake_front.bell[0].off, 0x800);
	assert_int_equal(hca_poll(&r->h), -1);
}

/* However long the machine takes, the rest of a copy is expected after more than 8 bytes. */
LIVE(test_copy_waits_for_its_stores_without_a_limit)
{
	uint8_t w[64];

	make_wqe(w, sizeof(w), 3);
	rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
	rig_store(r, RIG_UAR * 4096 + 0x808, w + 8, 8);
	usleep(2000);
	assert_int_equal(hca_poll(&r->h), -1);
	assert_int_equal(fake_front.bells, 0);
	rig_store(r, RIG_UAR * 4096 + 0x810, w + 16, 48);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].len, 64);
	assert_memory_equal(fake_front.bell[0].data, w, 64);
}

/* This process was stopped between two stores. The next store has arrived meanwhile. */
LIVE(test_store_in_the_socket_counts_before_the_time_does)
{
	uint8_t w[64], next[16 + 16 + 56] = {0};
	struct vfu_hdr h = {.id = 77, .cmd = 10, .size = sizeof(next)};
	uint64_t off = RIG_UAR * 4096 + 0x808;
	uint32_t region = VFU_BAR0, len = 56;

	make_wqe(w, sizeof(w), 3);
	rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
	memcpy(next, &h, sizeof(h));
	memcpy(next + 16, &off, 8);
	memcpy(next + 24, &region, 4);
	memcpy(next + 28, &len, 4);
	memcpy(next + 32, w + 8, 56);
	assert_int_equal(send(r->fd, next, sizeof(next), 0), sizeof(next));
	usleep(2000);
	assert_int_equal(hca_poll(&r->h), 1);
	assert_int_equal(fake_front.bells, 0);
	assert_int_equal(vfu_receive(&r->h.vfu), 0);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].len, 64);
}

LIVE(test_command_waits_until_the_function_is_a_bus_master)
{
	uint8_t in[16] = {0}, out[16];

	rig_start(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ENABLE_HCA);
	(void)rig_command(r, in, sizeof(in), sizeof(out));
	rig_write32(r, VFU_CONFIG, 4, 2);
	assert_true(fake_front.stopped);
	rig_set_reg(r, 0x18, 1);
	assert_int_equal(r->h.stats.commands, 0);
	assert_false(r->h.fw.enabled);
	assert_null(guest_at(&r->h.guest, RAM_ADDR, 16, false));
	rig_write32(r, VFU_CONFIG, 4, 6);
	assert_false(fake_front.stopped);
	assert_int_equal(r->h.stats.commands, 1);
	assert_true(r->h.fw.enabled);
	rig_output(r, out, sizeof(out));
	assert_int_equal(out[0], BB_PRM_STAT_OK);
	/* A reset forgets a command that waits, and the function is no bus master after it. */
	rig_write32(r, VFU_CONFIG, 4, 2);
	rig_set_reg(r, 0x18, 1);
	rig_write32(r, VFU_CONFIG, 0x68, 0xa810);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 4) & 0xffff, 0);
	rig_write32(r, VFU_CONFIG, 4, 6);
	assert_int_equal(r->h.stats.commands, 1);
}

/* One doorbell may name all entries. Other functions must get their turns. */
LIVE(test_commands_with_long_output_wait_for_a_poll)
{
	uint8_t in[16] = {0}, *e;
	uint32_t i;

	rig_start(r);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_ISSI);
	e = rig_command(r, in, sizeof(in), 100 << 10);
	for (i = 1; i < 6; i++)
		memcpy(rig_ram(r, CMDQ_ADDR + i * 64), e, 64);
	rig_set_reg(r, 0x18, UINT32_MAX);
	assert_int_equal(r->h.stats.commands, 3);
	assert_int_equal(hca_poll(&r->h), 0);
	assert_int_equal(r->h.stats.commands, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(rig_ram(r, CMDQ_ADDR + i * 64)[63] & 1, 0);
	assert_int_equal(hca_poll(&r->h), 0);
	assert_int_not_equal(hca_poll(&r->h), 0);
	assert_int_equal(r->h.stats.commands, 6);
}

LIVE(test_copy_in_8_byte_stores_arrives_as_one)
{
	uint8_t w[192], i;

	make_wqe(w, sizeof(w), 9);
	for (i = 0; i < 192; i += 8)
		rig_store(r, RIG_UAR * 4096 + 0x900 + i, w + i, 8);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].len, 192);
	assert_int_equal(fake_front.bell[0].off, 0x900);
	assert_memory_equal(fake_front.bell[0].data, w, 192);
}

LIVE(test_next_doorbell_ends_a_copy_that_is_incomplete)
{
	uint8_t w[64];

	make_wqe(w, sizeof(w), 3);
	rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
	rig_store(r, RIG_UAR * 4096 + 0x808, w + 8, 8);
	rig_store(r, RIG_UAR * 4096 + 0x900, w, 8);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].len, 8);
	/* Stores of a copy whose start is over. */
	rig_store(r, RIG_UAR * 4096 + 0x818, w, 8);
	assert_int_equal(fake_front.bells, 2);
	/* A CQ's doorbell comes after the copy that was there first. */
	rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
	rig_store(r, RIG_UAR * 4096 + 0x20, w, 8);
	assert_int_equal(fake_front.bells, 4);
	assert_int_equal(fake_front.bell[2].off, 0x800);
	assert_int_equal(fake_front.bell[3].off, 0x20);
}

LIVE(test_odd_stores_to_register_pages_stay_inside)
{
	uint8_t w[64] = {0};
	unsigned int i;

	for (i = 0; i < 64; i++) {
		rig_store(r, RIG_UAR * 4096 + 0x7e0 + i, w, i + 1);
		rig_store(r, RIG_UAR * 4096 + 0x8ff - i, w, i + 1);
		rig_store(r, RIG_UAR * 4096 + 0xfff - i, w, i + 1);
		rig_store(r, HCA_BAR0_SIZE - 1 - i, w, i + 1);
		rig_store(r, 0xfff0 + i, w, i + 1);
		rig_store(r, i, w, i + 1);
	}
}

LIVE(test_loads_and_stores_of_device_memory_reach_allocated_bytes_only)
{
	const uint64_t at = HCA_DM_FIRST, end = HCA_DM_FIRST + sizeof(fake_front.dm);
	uint8_t w[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	memset(fake_front.dm, 0xd3, sizeof(fake_front.dm));
	rig_store(r, at + 4, w, 4);
	assert_memory_equal(fake_front.dm + 4, w, 4);
	assert_int_equal(fake_front.dm[3], 0xd3);
	assert_int_equal(fake_front.dm[8], 0xd3);
	assert_int_equal(rig_read32(r, VFU_BAR0, at + 4), 0x04030201);
	/* Bytes that are not all allocated. */
	rig_store(r, end - 4, w, 8);
	assert_int_equal(fake_front.dm[sizeof(fake_front.dm) - 4], 0xd3);
	rig_store(r, end, w, 8);
	assert_int_equal(rig_read32(r, VFU_BAR0, end), 0);
	assert_int_equal(fake_front.bells, 0);
	/* A pending copy of a WQE is executed before a later store to device memory. */
	rig_store(r, RIG_UAR * 4096 + 0x800, w, 8);
	assert_int_equal(fake_front.bells, 0);
	rig_store(r, at, w, 8);
	assert_int_equal(fake_front.bells, 1);
}

TEST_MAIN(0)
