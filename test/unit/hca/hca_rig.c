/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca_rig.h"

enum {
	VERSION = 1,
	DMA_MAP,
	DMA_UNMAP,
	SET_IRQS = 8,
	REGION_READ,
	REGION_WRITE
};

#define SIG_BYTE    61
#define STATUS_BYTE 63

/* Connects a client to the device. Returns 0 or -1. */
static int
attach(struct rig *r)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return -1;
	r->fd = pair[0];
	return hca_attach(&r->h, pair[1]) == 0 ? 0 : -1;
}

int
rig_open(struct rig *r, const char *device)
{
	const struct hca_opts o = {
		.device = device,
		.eth = strstr(device, ",link=eth") != NULL,
		.shared = strstr(device, ",shared") != NULL,
		.guid = 0x1122334455667788,
	};
	unsigned int i;

	memset(r, 0, sizeof(*r));
	if (hca_open(&r->h, &o) != 0)
		return -1;
	r->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	if (r->ram_fd < 0 || ftruncate(r->ram_fd, RAM_SIZE) != 0)
		return -1;
	r->ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, r->ram_fd, 0);
	for (i = 0; i < 4; i++)
		r->event_fd[i] = -1;
	return r->ram == MAP_FAILED ? -1 : attach(r);
}

void
rig_next_client(struct rig *r)
{
	close(r->fd);
	assert_int_equal(vfu_receive(&r->h.vfu), -EPIPE);
	vfu_detach(&r->h.vfu);
	assert_int_equal(attach(r), 0);
}

int
rig_setup_bare(void **state)
{
	static struct rig rig;

	*state = &rig;
	return rig_open(&rig, "soft0");
}

int
rig_setup(void **state)
{
	struct rig *r;

	if (rig_setup_bare(state) != 0)
		return -1;
	r = *state;
	return rig_version(r) == 0 && rig_map(r, RAM_ADDR, RAM_SIZE, 0) == 0 ? 0 : -1;
}

int
rig_teardown(void **state)
{
	rig_close(*state);
	return 0;
}

void
rig_close(struct rig *r)
{
	unsigned int i;

	hca_close(&r->h);
	close(r->fd);
	close(r->ram_fd);
	munmap(r->ram, RAM_SIZE);
	for (i = 0; i < 4; i++)
		if (r->event_fd[i] >= 0)
			close(r->event_fd[i]);
}

/* Receives a reply without waiting. */
static int
take_reply(struct rig *r, uint16_t id)
{
	struct vfu_hdr h;

	if (recv(r->fd, &h, sizeof(h), MSG_DONTWAIT) != (ssize_t)sizeof(h))
		return -1;
	assert_int_equal(h.id, id);
	assert_int_equal(h.flags & VFU_TYPE, VFU_REPLY);
	r->reply_len = h.size - (uint32_t)sizeof(h);
	if (r->reply_len > 0)
		assert_int_equal(recv(r->fd, r->reply, r->reply_len, MSG_DONTWAIT), r->reply_len);
	return h.flags & VFU_ERROR ? (int)h.error : 0;
}

int
rig_call(struct rig *r, uint16_t cmd, const void *body, uint32_t len, const int *fds,
	 unsigned int n_fds)
{
	struct vfu_hdr h = {.id = ++r->next_id, .cmd = cmd, .size = (uint32_t)sizeof(h) + len};
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)body, len}};
	union {
		char buf[CMSG_SPACE(32 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	struct cmsghdr *c;
	int rc;

	if (n_fds > 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(r->fd, &mh, 0), h.size);
	rc = vfu_receive(&r->h.vfu);
	return rc != 0 ? -2 : take_reply(r, h.id);
}

int
rig_raw(struct rig *r, const void *bytes, uint32_t len)
{
	int rc;

	assert_int_equal(send(r->fd, bytes, len, 0), len);
	do
		rc = vfu_receive(&r->h.vfu);
	while (rc == 0 && vfu_has_input(&r->h.vfu));
	return rc;
}

int
rig_version(struct rig *r)
{
	/* As QEMU 11.1 sends it. */
	static const char caps[] =
		"{\"capabilities\": {\"pgsizes\": 4096, \"max_msg_fds\": 16, \"max_dma_maps\": 65535, "
		"\"max_data_xfer_size\": 1048576, \"migration\": {\"pgsize\": 4096, "
		"\"max_bitmap_size\": 268435456}, \"write_multiple\": true}}";
	uint8_t body[4 + sizeof(caps)] = {0};

	memcpy(body + 4, caps, sizeof(caps));
	return rig_call(r, VERSION, body, sizeof(body), NULL, 0);
}

int
rig_map(struct rig *r, uint64_t addr, uint64_t size, uint64_t offset)
{
	struct {
		uint32_t argsz, flags;
		uint64_t offset, addr, size;
	} m = {sizeof(m), 3, offset, addr, size};

	return rig_call(r, DMA_MAP, &m, sizeof(m), &r->ram_fd, 1);
}

int
rig_unmap(struct rig *r, uint64_t addr, uint64_t size)
{
	struct {
		uint32_t argsz, flags;
		uint64_t addr, size;
	} m = {sizeof(m), 0, addr, size};

	return rig_call(r, DMA_UNMAP, &m, sizeof(m), NULL, 0);
}

void
rig_irqs(struct rig *r)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		uint32_t set[5] = {sizeof(set), 1 << 2 | 1 << 5, VFU_MSIX, i, 1};

		r->event_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), &r->event_fd[i], 1), 0);
	}
}

uint64_t
rig_raised(struct rig *r, unsigned int vector)
{
	uint64_t n = 0;

	return read(r->event_fd[vector], &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0;
}

uint32_t
rig_read32(struct rig *r, uint32_t region, uint64_t off)
{
	struct {
		uint64_t off;
		uint32_t region, count;
	} a = {off, region, 4};
	uint32_t v;

	assert_int_equal(rig_call(r, REGION_READ, &a, sizeof(a), NULL, 0), 0);
	assert_int_equal(r->reply_len, sizeof(a) + 4);
	memcpy(&v, r->reply + sizeof(a), 4);
	return v;
}

void
rig_write32(struct rig *r, uint32_t region, uint64_t off, uint32_t v)
{
	struct {
		uint64_t off;
		uint32_t region, count, v;
	} a = {off, region, 4, v};

	assert_int_equal(rig_call(r, REGION_WRITE, &a, 20, NULL, 0), 0);
}

void
rig_store(struct rig *r, uint64_t off, const void *data, uint32_t len)
{
	uint8_t body[16 + 256] = {0};
	uint32_t region = VFU_BAR0;

	memcpy(body, &off, 8);
	memcpy(body + 8, &region, 4);
	memcpy(body + 12, &len, 4);
	memcpy(body + 16, data, len);
	assert_int_equal(rig_call(r, REGION_WRITE, body, 16 + len, NULL, 0), 0);
}

uint32_t
rig_reg(struct rig *r, uint32_t off)
{
	return __builtin_bswap32(rig_read32(r, VFU_BAR0, off));
}

void
rig_set_reg(struct rig *r, uint32_t off, uint32_t v)
{
	rig_write32(r, VFU_BAR0, off, __builtin_bswap32(v));
}

uint8_t *
rig_ram(struct rig *r, uint64_t addr)
{
	assert_true(addr >= RAM_ADDR && addr < RAM_ADDR + RAM_SIZE);
	return r->ram + (addr - RAM_ADDR);
}

void
rig_master(struct rig *r)
{
	rig_write32(r, VFU_CONFIG, 4, 6); /* memory accesses, bus master */
}

void
rig_start(struct rig *r)
{
	rig_master(r);
	rig_set_reg(r, 0x10, (uint32_t)(CMDQ_ADDR >> 32));
	rig_set_reg(r, 0x14, (uint32_t)CMDQ_ADDR);
}

/* Makes the blocks of a mailbox of @len bytes at @addr, with the data of @from if not NULL. */
static void
make_boxes(struct rig *r, uint64_t addr, const uint8_t *from, uint32_t len)
{
	uint32_t i, n = (len + 511) / 512, part;

	for (i = 0; i < n; i++) {
		uint64_t next = i + 1 < n ? addr + (i + 1) * BOX_STEP : 0;
		uint8_t *b = rig_ram(r, addr + i * BOX_STEP);

		memset(b, 0, BB_PRM_SZ_BOX);
		part = len - i * 512 < 512 ? len - i * 512 : 512;
		if (from != NULL)
			memcpy(b, from + i * 512, part);
		bb_prm_set(b, BB_PRM_BOX_NEXT_HIGH, (uint32_t)(next >> 32));
		bb_prm_set(b, BB_PRM_BOX_NEXT_LOW, (uint32_t)next >> 10);
		bb_prm_set(b, BB_PRM_BOX_BLOCK_NUMBER, i);
		bb_prm_set(b, BB_PRM_BOX_TOKEN, r->token);
	}
}

void
rig_sign(uint8_t *entry)
{
	uint8_t x = 0;
	int i;

	entry[SIG_BYTE] = 0;
	for (i = 0; i < 64; i++)
		x ^= entry[i];
	entry[SIG_BYTE] = (uint8_t)~x;
}

uint8_t *
rig_command(struct rig *r, const void *in, uint32_t inlen, uint32_t outlen)
{
	uint8_t *e = rig_ram(r, CMDQ_ADDR);

	r->token++;
	memset(e, 0, 64);
	bb_prm_set(e, BB_PRM_CMDQ_TYPE, 7);
	bb_prm_set(e, BB_PRM_CMDQ_INLEN, inlen);
	bb_prm_set(e, BB_PRM_CMDQ_OUTLEN, outlen);
	bb_prm_set(e, BB_PRM_CMDQ_TOKEN, r->token);
	bb_prm_set(e, BB_PRM_CMDQ_OWNERSHIP, 1);
	memcpy(bb_prm_sub(e, BB_PRM_CMDQ_IN), in, inlen < 16 ? inlen : 16);
	if (inlen > 16) {
		make_boxes(r, IN_ADDR, (const uint8_t *)in + 16, inlen - 16);
		bb_prm_set(e, BB_PRM_CMDQ_IN_PTR_LOW, (uint32_t)IN_ADDR >> 9);
	}
	if (outlen > 16) {
		make_boxes(r, OUT_ADDR, NULL, outlen - 16);
		bb_prm_set(e, BB_PRM_CMDQ_OUT_PTR_LOW, (uint32_t)OUT_ADDR >> 9);
	}
	rig_sign(e);
	return e;
}

int
rig_ring(struct rig *r)
{
	const uint8_t *e = rig_ram(r, CMDQ_ADDR);
	uint8_t x = 0;
	int i;

	rig_set_reg(r, 0x18, 1);
	if (e[STATUS_BYTE] & 1)
		return -1;
	for (i = 0; i < 64; i++)
		x ^= e[i];
	assert_int_equal(x, 0xff); /* the answer is signed, too */
	return e[STATUS_BYTE] >> 1;
}

void
rig_output(struct rig *r, void *out, uint32_t outlen)
{
	const uint8_t *e = rig_ram(r, CMDQ_ADDR);
	uint32_t done, n;

	memcpy(out, bb_prm_csub(e, BB_PRM_CMDQ_OUT), outlen < 16 ? outlen : 16);
	for (done = 16; done < outlen; done += n) {
		n = outlen - done < 512 ? outlen - done : 512;
		memcpy((uint8_t *)out + done, rig_ram(r, OUT_ADDR + (done - 16) / 512 * BOX_STEP),
		       n);
	}
}

int
rig_exec(struct rig *r, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	(void)rig_command(r, in, inlen, outlen);
	assert_int_equal(rig_ring(r), 0);
	rig_output(r, out, outlen);
	return *(uint8_t *)out;
}

int
rig_short(struct rig *r, uint16_t op, uint16_t op_mod, uint32_t dw8, uint32_t dw12, uint8_t out[16])
{
	uint8_t in[16] = {0}, own[16];

	bb_prm_set(in, BB_PRM_CMD_OPCODE, op);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, op_mod);
	bb_prm_set(in, BB_PRM_F(8, 0, 32), dw8);
	bb_prm_set(in, BB_PRM_F(12, 0, 32), dw12);
	return rig_exec(r, in, sizeof(in), out != NULL ? out : own, 16);
}

void
rig_init_hca(struct rig *r)
{
	enum {
		PAGES = FW_BOOT_PAGES + FW_INIT_PAGES
	};
	uint8_t in[16 + 8 * PAGES] = {0}, out[16];
	uint32_t i;

	rig_start(r);
	assert_int_equal(rig_short(r, BB_PRM_OP_ENABLE_HCA, 0, 0, 0, NULL), 0);
	assert_int_equal(rig_short(r, BB_PRM_OP_SET_ISSI, 0, 1, 0, NULL), 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, 1);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, PAGES);
	for (i = 0; i < PAGES; i++)
		bb_prm_set64(in + 16 + 8 * i, BB_PRM_F(0, 0, 64), FREE_ADDR + i * 4096);
	assert_int_equal(rig_exec(r, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(rig_short(r, BB_PRM_OP_INIT_HCA, 0, 0, 0, NULL), 0);
}

uint32_t
rig_eq(struct rig *r, unsigned int log_size, uint32_t vector, uint64_t mask, uint64_t addr)
{
	uint32_t i, pages = (64u << log_size) / 4096;
	uint8_t in[0x110 + 64] = {0}, out[16];
	uint8_t *eqc = bb_prm_sub(in, BB_PRM_CREATE_EQ_EQC);

	pages = pages == 0 ? 1 : pages;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_EQ);
	bb_prm_set(eqc, BB_PRM_EQC_LOG_EQ_SIZE, log_size);
	bb_prm_set(eqc, BB_PRM_EQC_UAR_PAGE, RIG_UAR);
	bb_prm_set(eqc, BB_PRM_EQC_INTR, vector);
	bb_prm_set64(in, BB_PRM_F(BB_PRM_CREATE_EQ_EVENT_BITMASK.byte, 0, 64), mask);
	for (i = 0; i < pages; i++)
		bb_prm_set64(in + 0x110 + 8 * i, BB_PRM_F(0, 0, 64), addr + i * 4096);
	/* The driver fills the ring with owner bits of the device's lap. */
	for (i = 0; i < 1u << log_size; i++)
		rig_ram(r, addr + i * 64)[63] = 1;
	assert_int_equal(rig_exec(r, in, 0x110 + 8 * pages, out, sizeof(out)), 0);
	return bb_prm_get(out, BB_PRM_CREATE_EQ_OUT_EQ_NUMBER);
}
