/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BAR 0 has the initialization segment (big-endian dwords), the MSI-X table, pages of doorbell
 * registers, and device memory. QEMU emulates the MSI-X table, so accesses to the table do not
 * arrive here.
 */
#include <inttypes.h>
#include <string.h>

#include "bb_prm_hca.h"
#include "fw.h"
#include "hca_log.h"
#include "hca_pci.h"
#include "hca_time.h"
#include "mlx5_cmd.h"

/*
 * Offsets of the fields internal_timer_h and internal_timer_l of the initialization segment (Linux
 * device.h, struct mlx5_init_seg).
 */
#define ISEG_TIMER_HIGH 0x1000u
#define ISEG_TIMER_LOW  0x1004u
#define ISEG_END        0x1014u

#define CMDIF_REVISION 5u /* Linux cmd.c: CMD_IF_REV */
#define LOG_CMDQ_SIZE  5u /* cmdq.c: LOG_ENTRIES */
#define LOG_STRIDE     6u
#define LOW_ADDRESS    0xfffff000u

/*
 * Registers of a doorbell page (Linux driver.h, device.h: MLX5_EQ_DOORBEL_OFFSET, MLX5_BF_OFFSET).
 */
#define EQ_ARM   0x40u
#define EQ_CI    0x48u
#define BF_FIRST 0x800u
/* Bytes of a BlueFlame register. The two registers that a queue uses in turn are 0x100 apart. */
#define BF_LENGTH 256u
#define BLOCK     64u

#define SEVERITY_ERROR 3u        /* a level of the kernel's log: KERN_ERR */
#define HEALTH_TICK    10000000u /* ns per step of the health counter */

static uint32_t
health_dword(const struct hca *h, uint32_t off)
{
	uint8_t b[64] = {0};

	bb_prm_set(b, BB_PRM_HEALTH_FW_VERSION, FW_VERSION_DWORD);
	bb_prm_set(b, BB_PRM_HEALTH_SYND, h->health);
	bb_prm_set(b, BB_PRM_HEALTH_VALID, h->health != HCA_HEALTH_OK);
	bb_prm_set(b, BB_PRM_HEALTH_SEVERITY, SEVERITY_ERROR);
	return bb_prm_dword(b, (uint16_t)off);
}

/* Returns the free-running clock, in ticks of the frequency in the capabilities. */
static uint64_t
device_clock(struct hca *h)
{
	struct mlx5_ctx *ctx = front_ctx(h->front);
	uint64_t ticks;

	return ctx != NULL && ctx->cmd->clock(ctx, &ticks) == 0 ? ticks : hca_now();
}

static uint32_t
iseg_read(struct hca *h, uint32_t off)
{
	if (off >= BB_PRM_ISEG_HEALTH_BUFFER.byte && off < BB_PRM_ISEG_HEALTH_BUFFER.byte + 64u)
		return health_dword(h, off - BB_PRM_ISEG_HEALTH_BUFFER.byte);
	switch (off) {
	case 0x0: /* fw_rev */
		return FW_MINOR << 16 | FW_MAJOR;
	case 0x4: /* cmd_interface_rev, fw_rev_subminor */
		return CMDIF_REVISION << 16 | FW_SUBMINOR;
	case 0x10: /* cmdq_phy_addr_63_32 */
		return h->cmdq.high;
	case 0x14:
		return ((uint32_t)h->cmdq.addr & LOW_ADDRESS) | h->nic_state << 8 |
		       LOG_CMDQ_SIZE << 4 | LOG_STRIDE;
	case ISEG_TIMER_HIGH:
		return (uint32_t)(device_clock(h) >> 32);
	case ISEG_TIMER_LOW:
		return (uint32_t)device_clock(h);
	case 0x1010:
		/*
		 * health_syndrome and health_counter. The driver's recovery waits until
		 * health_counter changes. So the counter changes in the fatal state, too.
		 */
		return (uint32_t)h->health << 24 | ((uint32_t)(hca_now() / HEALTH_TICK) & 0xffffff);
	default:
		return 0;
	}
}

/*
 * Handles a write of the lower half of the command queue's address, which also contains the
 * interface state that the driver requests.
 */
static void
write_cmdq_low(struct hca *h, uint32_t v)
{
	uint32_t state = v >> 8 & 7, high = h->cmdq.high;

	if (state == HCA_NIC_RESET) {
		HCA_LOG(NOTICE, "the driver has reset the device");
		hca_reset(h);
		h->nic_state = HCA_NIC_DISABLED;
		return;
	}
	if (state != HCA_NIC_FULL && state != HCA_NIC_DISABLED) {
		HCA_LOG(WARNING, "ignored interface state %u, which is not supported", state);
		return;
	}
	if (state == HCA_NIC_FULL && h->health != HCA_HEALTH_OK) {
		HCA_LOG(NOTICE, "device reset: the driver has reloaded after a fatal state");
		hca_reset(h);
		h->cmdq.high = high;
	}
	h->nic_state = state;
	h->cmdq.addr = (uint64_t)high << 32 | (v & LOW_ADDRESS);
	HCA_LOG(INFO, "command queue at 0x%" PRIx64 ", interface state %u", h->cmdq.addr, state);
}

static void
iseg_write(struct hca *h, uint32_t off, uint32_t v)
{
	switch (off) {
	case 0x10:
		h->cmdq.high = v;
		break;
	case 0x14:
		write_cmdq_low(h, v);
		break;
	case 0x18:
		hca_cmdq_doorbell(h, v);
		break;
	default:
		HCA_LOG(DEBUG, "write of 0x%x to 0x%x of the initialization segment is ignored", v,
			off);
	}
}

/*
 * Returns the device memory at an offset of BAR 0. Logs an error and returns NULL if there is none
 * at this offset.
 */
static uint8_t *
dm_at(struct hca *h, uint64_t off, uint32_t len, const char *what)
{
	uint8_t *dm = front_dm(h->front, off, len);

	if (dm == NULL)
		HCA_LOG(WARNING,
			"%s of %u bytes at 0x%" PRIx64
			" of BAR 0: not inside one allocation of device memory",
			what, len, off);
	return dm;
}

void
hca_bar_read(struct hca *h, uint64_t off, uint8_t *buf, uint32_t len)
{
	uint32_t i, v = 0;
	uint8_t *dm;

	if (off >= HCA_DM_FIRST) {
		dm = dm_at(h, off, len, "load");
		if (dm != NULL)
			memcpy(buf, dm, len);
		else
			memset(buf, 0, len);
		return;
	}
	memset(buf, 0, len);
	for (i = 0; i < len && off + i < ISEG_END; i++) {
		if (i == 0 || (off + i) % 4 == 0)
			v = iseg_read(h, (uint32_t)(off + i) & ~3u);
		buf[i] = (uint8_t)(v >> (24 - 8 * ((off + i) & 3)));
	}
}

void
hca_bf_flush(struct hca *h)
{
	struct hca_bf *bf = &h->bf;
	uint32_t len = bf->len;

	if (len == 0)
		return;
	bf->len = 0;
	/*
	 * If a part of the WQE's copy is missing, use only its first 8 bytes, as a doorbell. The
	 * device then reads the WQE from the queue in memory.
	 */
	if (len % BLOCK != 0 || len < (bf->data[7] & 0x3fu) * 16u)
		len = 8;
	HCA_LOG(DEBUG, "doorbell: page 0x%x + 0x%x, %u bytes: %08x %08x", bf->uar, bf->reg, len,
		bb_prm_dword(bf->data, 0), bb_prm_dword(bf->data, 4));
	hca_count(&h->stats.doorbells);
	front_doorbell(h->front, bf->uar, bf->reg, bf->data, len);
}

/*
 * Collects the stores of a copy of a WQE to a BlueFlame register. The copy starts with the control
 * segment, whose byte 7 has the length of the WQE in units of 16 bytes. The length of the copy is a
 * multiple of 64 bytes.
 */
static void
bf_store(struct hca *h, uint32_t uar, uint32_t off, const uint8_t *buf, uint32_t len)
{
	struct hca_bf *bf = &h->bf;
	uint32_t reg = off & ~(BF_LENGTH - 1);

	if (bf->len != 0 && (uar != bf->uar || reg != bf->reg || off - reg != bf->len))
		hca_bf_flush(h);
	if (bf->len == 0) {
		if (off != reg)
			return; /* these bytes belong to a copy whose first stores were already
				   handled as a doorbell */
		bf->uar = uar;
		bf->reg = reg;
		bf->since = hca_now();
	}
	if (len > BF_LENGTH - bf->len)
		return;
	memcpy(bf->data + bf->len, buf, len);
	bf->len += len;
	if (bf->len % BLOCK == 0 && bf->len >= (bf->data[7] & 0x3fu) * 16u)
		hca_bf_flush(h);
}

static void
uar_write(struct hca *h, uint32_t uar, uint32_t off, const uint8_t *buf, uint32_t len)
{
	if ((off == EQ_ARM || off == EQ_CI) && len == 4) {
		hca_eq_doorbell(h, uar, bb_prm_dword(buf, 0), off == EQ_ARM);
		return;
	}
	if (off >= BF_FIRST && len % 4 == 0) {
		bf_store(h, uar, off, buf, len);
		return;
	}
	hca_bf_flush(h);
	hca_count(&h->stats.doorbells);
	front_doorbell(h->front, uar, off, buf, len);
}

void
hca_bar_write(struct hca *h, uint64_t off, const uint8_t *buf, uint32_t len)
{
	uint32_t i, in_page = (uint32_t)off % HCA_PAGE;
	uint8_t *dm;

	if (off >= HCA_DM_FIRST) {
		hca_bf_flush(h);
		dm = dm_at(h, off, len, "store");
		if (dm != NULL)
			memcpy(dm, buf, len);
		return;
	}
	if (off >= HCA_UAR_FIRST) {
		if (len <= HCA_PAGE - in_page && h->health == HCA_HEALTH_OK)
			uar_write(h, (uint32_t)(off / HCA_PAGE), in_page, buf, len);
		return;
	}
	if (off % 4 != 0 || off >= ISEG_END)
		return;
	hca_bf_flush(h);
	for (i = 0; len - i >= 4 && off + i < ISEG_END; i += 4)
		iseg_write(h, (uint32_t)off + i, bb_prm_dword(buf + i, 0));
}
