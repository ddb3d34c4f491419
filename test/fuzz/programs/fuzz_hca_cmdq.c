/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A hostile guest: commands by entry and mailbox blocks, doorbells, RAM that goes. The commands of
 * the function are bb_hca's; those of objects go to a front that makes windows of the addresses in
 * them. An input is a list of steps.
 *
 * No answer may be written outside RAM, or be longer than its mailbox, and each answer has a
 * status. The device has at most the queues and pages that its limits allow.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <rte_log.h>

#include "fuzz_hca.h"

/* Offsets in RAM. */
#define QUEUE      0x0u
#define BLOCKS     0x1000u /* input blocks of entry 0 */
#define OUT_BLOCKS 0x8000u
#define N_BLOCKS   28u
#define MAX_IN     2048u

enum step {
	COMMAND,
	PATCH,
	RING,
	REGISTER,
	STORE,
	EVENT,
	UNMAP,
	MAP,
	POLL,
	UP,
	RESET,
	STEPS
};

static const struct front_host *host;
static void *windows[8];

int
front_open(const char *device_and_opts, const struct front_host *front_host, struct front **f)
{
	static uint8_t front;

	(void)device_and_opts;
	host = front_host;
	*f = (struct front *)(void *)&front;
	return 0;
}

void
front_reset(struct front *f)
{
	(void)f;
	for (unsigned int i = 0; i < 8; i++) {
		if (windows[i] != NULL)
			host->unwindow(host->arg, windows[i], 0, 0);
		windows[i] = NULL;
	}
}

void
front_close(struct front *f)
{
	front_reset(f);
}

/* Makes a window of the mailbox's list of pages, and writes to all of it. */
bool
front_command(struct front *f, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	uint32_t slot = bb_prm_get(in, BB_PRM_CMD_OPCODE) % 8, i, n;
	unsigned int log_sz = 12 + bb_prm_get(in, BB_PRM_CMD_OP_MOD) % 4;
	uint64_t pa[16];

	(void)f;
	(void)outlen;
	if (windows[slot] != NULL) {
		host->unwindow(host->arg, windows[slot], 0, 0);
		windows[slot] = NULL;
		return true;
	}
	n = inlen < 16 ? 0 : (inlen - 16) / 8;
	n = n < 16 ? n : 16;
	for (i = 0; i < n; i++)
		pa[i] = bb_prm_get64((const uint8_t *)in + 16 + 8 * i, BB_PRM_F(0, 0, 64));
	windows[slot] = host->window(host->arg, pa, n, log_sz);
	if (windows[slot] == NULL)
		bb_prm_set(out, BB_PRM_CMD_STATUS, BB_PRM_STAT_BAD_PARAM);
	else
		memset(windows[slot], 0x33, (size_t)n << log_sz);
	return true;
}

uint32_t
front_context_pages(const struct front *f)
{
	uint32_t i, n = 0;

	(void)f;
	for (i = 0; i < 8; i++)
		n += windows[i] != NULL ? FW_BLOCK_PAGES : 0;
	return n;
}

static void
write_bar(struct fuzz_hca *f, uint64_t off, const void *data, uint32_t len)
{
	f->h.vfu.dev.write(&f->h, VFU_BAR0, off, data, len);
}

static void
write_reg(struct fuzz_hca *f, uint32_t off, uint32_t v)
{
	uint8_t be[4];

	bb_prm_set(be, BB_PRM_F(0, 0, 32), v);
	write_bar(f, off, be, sizeof(be));
}

static void
make_blocks(struct fuzz_hca *f, uint32_t at, const uint8_t *from, uint32_t len)
{
	uint32_t i, part;

	for (i = 0; i < N_BLOCKS; i++, at += 1024) {
		uint8_t *b = f->ram + at;

		memset(b, 0, BB_PRM_SZ_BOX);
		part = len > i * 512 ? len - i * 512 : 0;
		memcpy(b, from + i * 512, part < 512 ? part : 512);
		bb_prm_set(b, BB_PRM_BOX_NEXT_LOW, ((uint32_t)FUZZ_ADDR + at + 1024) >> 10);
		bb_prm_set(b, BB_PRM_BOX_BLOCK_NUMBER, i);
		bb_prm_set(b, BB_PRM_BOX_TOKEN, 1);
	}
}

static void
sign(uint8_t *e)
{
	uint8_t x = 0;
	unsigned int i;

	e[61] = 0;
	for (i = 0; i < 64; i++)
		x ^= e[i];
	e[61] = (uint8_t)~x;
}

/* Makes a well-formed entry 0 with its blocks. */
static void
make_command(struct fuzz_hca *f, const uint8_t *in, uint32_t inlen, uint32_t outlen)
{
	static const uint8_t none[MAX_IN];
	uint8_t *e = f->ram + QUEUE;

	memset(e, 0, 64);
	bb_prm_set(e, BB_PRM_CMDQ_TYPE, 7);
	bb_prm_set(e, BB_PRM_CMDQ_INLEN, inlen);
	bb_prm_set(e, BB_PRM_CMDQ_OUTLEN, outlen);
	bb_prm_set(e, BB_PRM_CMDQ_TOKEN, 1);
	bb_prm_set(e, BB_PRM_CMDQ_OWNERSHIP, 1);
	bb_prm_set(e, BB_PRM_CMDQ_IN_PTR_LOW, ((uint32_t)FUZZ_ADDR + BLOCKS) >> 9);
	bb_prm_set(e, BB_PRM_CMDQ_OUT_PTR_LOW, ((uint32_t)FUZZ_ADDR + OUT_BLOCKS) >> 9);
	memcpy(bb_prm_sub(e, BB_PRM_CMDQ_IN), in, inlen < 16 ? inlen : 16);
	make_blocks(f, BLOCKS, in + 16, inlen > 16 ? inlen - 16 : 0);
	make_blocks(f, OUT_BLOCKS, none, 0);
	sign(e);
}

/* Rings, and checks that a device that can answer has answered each entry that it owned. */
static void
ring(struct fuzz_hca *f, uint32_t vector)
{
	struct hca *h = &f->h;
	bool can = h->cmdq.addr == FUZZ_ADDR && h->nic_state == HCA_NIC_FULL &&
		   h->health == HCA_HEALTH_OK &&
		   guest_at(&h->guest, FUZZ_ADDR, HCA_PAGE, true) == f->h.guest.maps[0].mem;

	write_reg(f, 0x18, vector);
	if (can && h->health == HCA_HEALTH_OK && vector == 1)
		fuzz_check((f->ram[QUEUE + 63] & 1) == 0);
}

static void
step_command(struct fuzz_hca *f, struct fuzz_in *in)
{
	const struct hca_box *out = &f->h.cmdq.out;
	uint8_t box[MAX_IN] = {0};
	uint32_t i, n, len, outlen;

	bb_prm_set(box, BB_PRM_CMD_OPCODE, fuzz_u16(in));
	bb_prm_set(box, BB_PRM_CMD_OP_MOD, fuzz_u8(in));
	len = 8 + fuzz_u16(in) % (MAX_IN - 7);
	outlen = 8 + fuzz_u16(in) % 0x1100;
	/* Pairs of an offset and a byte. */
	n = fuzz_u8(in) % 64;
	for (i = 0; i < n; i++) {
		uint32_t at = 8 + fuzz_u16(in) % (MAX_IN - 8);

		box[at] = fuzz_u8(in);
	}
	make_command(f, box, len, outlen);
	if (out->size != 0)
		memset(out->data, 0, out->size);
	ring(f, 1);
	/* The first 16 bytes are part of the entry. */
	for (i = outlen < 16 ? 16 : outlen; i < out->size; i++)
		fuzz_check(out->data[i] == 0);
}

/* ENABLE_HCA, pages, INIT_HCA. */
static void
step_up(struct fuzz_hca *f)
{
	enum {
		PAGES = FW_BOOT_PAGES + FW_INIT_PAGES
	};
	uint8_t in[MAX_IN] = {0};
	uint32_t i;

	write_reg(f, 0x10, 0);
	write_reg(f, 0x14, (uint32_t)FUZZ_ADDR + QUEUE);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ENABLE_HCA);
	make_command(f, in, 16, 16);
	ring(f, 1);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 1);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, PAGES);
	for (i = 0; i < PAGES; i++)
		bb_prm_set64(in + 16 + 8 * i, BB_PRM_F(0, 0, 64), FUZZ_ADDR + i % 16 * 4096);
	make_command(f, in, 16 + 8 * PAGES, 16);
	ring(f, 1);
	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_INIT_HCA);
	make_command(f, in, 16, 16);
	ring(f, 1);
}

static void
step_store(struct fuzz_hca *f, struct fuzz_in *in)
{
	uint64_t off = HCA_UAR_FIRST + fuzz_u8(in) * HCA_PAGE + fuzz_u16(in) % HCA_PAGE;
	uint32_t i, len = 1 + fuzz_u8(in) % 16;
	uint8_t data[16];

	for (i = 0; i < len; i++)
		data[i] = fuzz_u8(in);
	write_bar(f, off, data, len);
}

static void
step(struct fuzz_hca *f, struct fuzz_in *in)
{
	uint32_t at, vector;

	switch (fuzz_u8(in) % STEPS) {
	case COMMAND:
		step_command(f, in);
		break;
	case PATCH:
		at = fuzz_u16(in) * 4u;
		bb_prm_set(f->ram + at, BB_PRM_F(0, 0, 32), fuzz_u32(in));
		break;
	case RING:
		vector = fuzz_u8(in);
		if (vector & 0x80)
			sign(f->ram + QUEUE);
		ring(f, vector & 0x7f);
		break;
	case REGISTER:
		at = fuzz_u16(in) % 0x1020;
		write_reg(f, at, fuzz_u32(in));
		f->h.vfu.dev.read(&f->h, VFU_BAR0, at, (uint8_t[8]){0}, 8);
		break;
	case STORE:
		step_store(f, in);
		break;
	case EVENT:
		at = fuzz_u8(in);
		host->eqe(host->arg, at % (HCA_EQS + 1), (uint8_t)at, 0, "0123456789", 10);
		host->event(host->arg, (uint8_t)at, 0, "0123456789", 10);
		break;
	case UNMAP:
		(void)guest_unmap(&f->h.guest, FUZZ_ADDR, FUZZ_RAM);
		break;
	case MAP:
		(void)guest_map(&f->h.guest, FUZZ_ADDR, FUZZ_RAM, f->ram_fd, 0, true);
		break;
	case POLL:
		(void)hca_poll(&f->h);
		break;
	case UP:
		step_up(f);
		break;
	default:
		hca_reset(&f->h);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	static struct fuzz_hca f;

	fuzz_hca_open(&f, false);
	rte_log_set_global_level(RTE_LOG_CRIT);
	while (in.left > 0)
		step(&f, &in);
	fuzz_check(!f.h.fw.initialized || f.h.fw.n_pages >= FW_BOOT_PAGES + FW_INIT_PAGES);
	fuzz_check(f.h.fw.n_pages <= HCA_MAX_PAGES && f.h.guest.runs <= f.h.guest.max_runs);
	fuzz_hca_close(&f);
	return 0;
}
