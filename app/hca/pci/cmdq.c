/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command queue. An entry has 16 bytes of input and of output inline; the rest is in chains of
 * mailbox blocks (Linux cmd.c). Entry and input are copied before they are read, as the guest may
 * change them at any time. The output's chain is followed before the command is executed: a
 * command with a broken chain has no effect.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_prm_hca.h"
#include "fw.h"
#include "hca_log.h"
#include "hca_pci.h"

#define LOG_ENTRIES 5
#define ENTRIES     (1u << LOG_ENTRIES)
#define TURN_BYTES  (256u << 10) /* input and output of a turn; its last command may exceed it */
#define TYPE_PCI    7u           /* Linux cmd.c: MLX5_PCI_CMD_XPORT */
#define INLINE      16u /* bytes of inline input, and bytes of inline output, of an entry */
#define BLOCK_DATA  512u
#define SIG_BYTE    61
#define STATUS_BYTE 63

/* Delivery statuses (Linux cmd.c: MLX5_CMD_DELIVERY_STAT_*). */
enum {
	DELIVERED = 0,
	BAD_SIGNATURE = 1,
	BAD_TOKEN = 2,
	BAD_BLOCK_NUMBER = 3,
	BAD_OUT_POINTER = 4,
	BAD_IN_POINTER = 5,
	FIRMWARE_ERROR = 6,
	BAD_IN_LENGTH = 7,
	BAD_OUT_LENGTH = 8,
	BAD_DESCRIPTOR = 0x10,
};

static uint8_t
xor_of(const uint8_t *p, uint32_t n)
{
	uint8_t x = 0;

	while (n-- > 0)
		x ^= *p++;
	return x;
}

/* Makes room for @len bytes and sets them to 0. Returns false if there is no memory. */
static bool
box_room(struct hca_box *b, uint32_t len)
{
	uint32_t size = len < HCA_PAGE ? HCA_PAGE : len;
	uint8_t *data;

	if (size > b->size) {
		data = realloc(b->data, size);
		if (data == NULL)
			return false;
		b->data = data;
		b->size = size;
	}
	memset(b->data, 0, size);
	return true;
}

/*
 * Returns the guest address of a mailbox block. @high: field with its upper 32 bits. @low: field
 * with the top bits of the lower half; the bits below are 0.
 */
static uint64_t
address(const void *base, struct bb_prm_field high, struct bb_prm_field low)
{
	return (uint64_t)bb_prm_get(base, high) << 32 | (uint64_t)bb_prm_get(base, low)
								<< (32 - low.width);
}

/*
 * Reads the mailbox block at guest address @addr, which must have block number @number. Returns a
 * delivery status.
 */
static int
read_block(struct hca *h, uint64_t addr, uint8_t token, uint32_t number, int no_memory,
	   uint8_t block[BB_PRM_SZ_BOX])
{
	const void *at = addr % 1024 != 0 ? NULL : guest_at(&h->guest, addr, BB_PRM_SZ_BOX, true);

	if (at == NULL)
		return no_memory;
	memcpy(block, at, BB_PRM_SZ_BOX);
	if (bb_prm_get(block, BB_PRM_BOX_TOKEN) != token)
		return BAD_TOKEN;
	return bb_prm_get(block, BB_PRM_BOX_BLOCK_NUMBER) == number ? DELIVERED : BAD_BLOCK_NUMBER;
}

/* Copies the part of a command's input that follows the inline part, from its mailbox blocks. */
static int
read_input(struct hca *h, const uint8_t *e, uint32_t len)
{
	uint64_t addr = address(e, BB_PRM_CMDQ_IN_PTR_HIGH, BB_PRM_CMDQ_IN_PTR_LOW);
	uint8_t block[BB_PRM_SZ_BOX], token = (uint8_t)bb_prm_get(e, BB_PRM_CMDQ_TOKEN);
	uint32_t done, n, number = 0;
	int st;

	for (done = INLINE; done < len; done += n) {
		st = read_block(h, addr, token, number++, BAD_IN_POINTER, block);
		if (st != DELIVERED)
			return st;
		n = len - done < BLOCK_DATA ? len - done : BLOCK_DATA;
		memcpy(h->cmdq.in.data + done, block, n);
		addr = address(block, BB_PRM_BOX_NEXT_HIGH, BB_PRM_BOX_NEXT_LOW);
	}
	return DELIVERED;
}

/* Follows the chain of mailbox blocks for the output and stores the blocks' guest addresses. */
static int
find_output(struct hca *h, const uint8_t *e, uint32_t len)
{
	uint64_t addr = address(e, BB_PRM_CMDQ_OUT_PTR_HIGH, BB_PRM_CMDQ_OUT_PTR_LOW), *blocks;
	uint8_t block[BB_PRM_SZ_BOX], token = (uint8_t)bb_prm_get(e, BB_PRM_CMDQ_TOKEN);
	uint32_t i, n = len > INLINE ? (len - INLINE + BLOCK_DATA - 1) / BLOCK_DATA : 0;
	int st;

	if (n > h->cmdq.max_blocks) {
		blocks = realloc(h->cmdq.blocks, n * sizeof(*blocks));
		if (blocks == NULL)
			return FIRMWARE_ERROR;
		h->cmdq.blocks = blocks;
		h->cmdq.max_blocks = n;
	}
	for (i = 0; i < n; i++) {
		st = read_block(h, addr, token, i, BAD_OUT_POINTER, block);
		if (st != DELIVERED)
			return st;
		h->cmdq.blocks[i] = addr;
		addr = address(block, BB_PRM_BOX_NEXT_HIGH, BB_PRM_BOX_NEXT_LOW);
	}
	return DELIVERED;
}

static int
write_output(struct hca *h, uint32_t len)
{
	uint32_t done, n, i = 0;
	void *at;

	for (done = INLINE; done < len; done += n) {
		n = len - done < BLOCK_DATA ? len - done : BLOCK_DATA;
		at = guest_at(&h->guest, h->cmdq.blocks[i++], n, true);
		if (at == NULL)
			return BAD_OUT_POINTER;
		memcpy(at, h->cmdq.out.data + done, n);
	}
	return DELIVERED;
}

/* Executes a command queue entry, of which @e is a copy. Writes the inline output to @e. */
static int
deliver(struct hca *h, uint8_t *e)
{
	uint32_t inlen = bb_prm_get(e, BB_PRM_CMDQ_INLEN), outlen;
	struct hca_cmdq *q = &h->cmdq;
	int st;

	outlen = bb_prm_get(e, BB_PRM_CMDQ_OUTLEN);
	if (bb_prm_get(e, BB_PRM_CMDQ_TYPE) != TYPE_PCI)
		return BAD_DESCRIPTOR;
	if (xor_of(e, BB_PRM_SZ_CMDQ_ENTRY) != 0xff)
		return BAD_SIGNATURE;
	if (inlen < 8 || inlen > HCA_MAX_BOX)
		return BAD_IN_LENGTH;
	if (outlen < 8 || outlen > HCA_MAX_BOX)
		return BAD_OUT_LENGTH;
	q->spent += inlen + outlen;
	if (!box_room(&q->in, inlen) || !box_room(&q->out, outlen))
		return FIRMWARE_ERROR;
	memcpy(q->in.data, bb_prm_csub(e, BB_PRM_CMDQ_IN), inlen < INLINE ? inlen : INLINE);
	st = read_input(h, e, inlen);
	if (st == DELIVERED)
		st = find_output(h, e, outlen);
	if (st != DELIVERED)
		return st;
	fw_command(h, q->in.data, inlen, q->out.data, outlen);
	hca_count(&h->stats.commands);
	if (bb_prm_get(q->out.data, BB_PRM_CMD_STATUS) != BB_PRM_STAT_OK)
		hca_count(&h->stats.command_errors);
	memcpy(bb_prm_sub(e, BB_PRM_CMDQ_OUT), q->out.data, INLINE);
	return write_output(h, outlen);
}

static void
execute(struct hca *h, uint32_t index)
{
	uint64_t addr = h->cmdq.addr + index * BB_PRM_SZ_CMDQ_ENTRY;
	uint32_t eqn = hca_event_eq(h, BB_PRM_EVENT_CMD);
	uint8_t e[BB_PRM_SZ_CMDQ_ENTRY], vector[4], *at;
	int st;

	at = guest_at(&h->guest, addr, sizeof(e), true);
	if (at == NULL) {
		HCA_LOG(ERR, "command queue: the guest address of the queue, 0x%llx, is not RAM",
			(unsigned long long)h->cmdq.addr);
		hca_fatal(h, HCA_HEALTH_FETCH_PCI);
		return;
	}
	memcpy(e, at, sizeof(e));
	if (!bb_prm_get(e, BB_PRM_CMDQ_OWNERSHIP)) {
		HCA_LOG(WARNING,
			"command queue: ignored the doorbell of entry %u: the driver still owns the "
			"entry",
			index);
		return;
	}
	st = deliver(h, e);
	if (st != DELIVERED) {
		hca_count(&h->stats.command_errors);
		HCA_LOG(ERR, "command queue: entry %u failed with delivery status 0x%x", index, st);
	}
	/*
	 * Look the entry up again: the command may have reset the device, which removes the queue,
	 * or the memory of the queue may be unmapped now.
	 */
	at = h->cmdq.addr == 0 ? NULL : guest_at(&h->guest, addr, sizeof(e), true);
	if (at == NULL)
		return;
	bb_prm_set(e, BB_PRM_CMDQ_STATUS, (uint32_t)st);
	bb_prm_set(e, BB_PRM_CMDQ_OWNERSHIP, 0);
	e[SIG_BYTE] = 0;
	e[SIG_BYTE] = (uint8_t)~xor_of(e, sizeof(e));
	memcpy(at, e, STATUS_BYTE);
	__atomic_store_n(&at[STATUS_BYTE], e[STATUS_BYTE], __ATOMIC_RELEASE);
	/*
	 * Raises an event only if the EQ existed before the command and still exists. So the
	 * commands that create or destroy the EQ raise none. For these the driver polls the
	 * ownership bit of the command's entry.
	 */
	if (eqn != 0 && eqn == hca_event_eq(h, BB_PRM_EVENT_CMD)) {
		bb_prm_set(vector, BB_PRM_CMD_EVENT_VECTOR, 1u << index);
		hca_eq_post(h, eqn, BB_PRM_EVENT_CMD, 0, vector, sizeof(vector));
	}
}

void
hca_cmdq_doorbell(struct hca *h, uint32_t vector)
{
	uint32_t i;

	if (h->health != HCA_HEALTH_OK || h->nic_state != HCA_NIC_FULL || h->cmdq.addr == 0) {
		HCA_LOG(WARNING, "ignored command doorbell 0x%x: %s", vector,
			h->health != HCA_HEALTH_OK ? "the device is in the fatal state: reset it"
						   : "the driver has set up no command queue");
		return;
	}
	if (!hca_is_master(h)) {
		HCA_LOG(WARNING,
			"command doorbell 0x%x waits: the function is not a bus master (bit 2 of the "
			"PCI command register)",
			vector);
		h->cmdq.waiting |= vector;
		return;
	}
	h->cmdq.spent = 0;
	for (i = 0; i < ENTRIES && h->health == HCA_HEALTH_OK && h->cmdq.addr != 0; i++)
		if (vector >> i & 1) {
			if (h->cmdq.spent >= TURN_BYTES) {
				h->cmdq.waiting |= vector & UINT32_MAX << i;
				return;
			}
			execute(h, i);
		}
}

bool
hca_cmdq_resume(struct hca *h)
{
	uint32_t waiting = h->cmdq.waiting;

	if (waiting == 0 || h->health != HCA_HEALTH_OK || !hca_is_master(h))
		return false;
	h->cmdq.waiting = 0;
	hca_cmdq_doorbell(h, waiting);
	return true;
}

void
hca_cmdq_fini(struct hca *h)
{
	free(h->cmdq.in.data);
	free(h->cmdq.out.data);
	free(h->cmdq.blocks);
	memset(&h->cmdq, 0, sizeof(h->cmdq));
}
