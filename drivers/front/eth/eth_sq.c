/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Executes send WQEs: SEND, LSO and NOP (Linux include/linux/mlx5/qp.h, mlx5/core/en_tx.c). A WQE
 * has a control segment, an Ethernet segment with the inline header, and data segments.
 */
#include <string.h>

#include <rte_common.h>

#include "bb_bytes.h"
#include "bb_cqe.h"
#include "eth.h"

#define SEG 16u

#define OP_NOP  0x00u
#define OP_SEND 0x0au
#define OP_LSO  0x0eu

/*
 * Maximum number of frames of one message. Linux's smallest TCP segment has 48 bytes
 * (net.ipv4.tcp_min_snd_mss).
 */
#define MAX_SEGMENTS ((1u << ETH_LOG_LSO) / 48u + 1u)

#define CE_ALWAYS 0x08u /* byte 11 of the control segment: write a CQE */

/* Ethernet segment, at byte 16 of the WQE. */
#define ETH_CS_FLAGS    20u
#define ETH_MSS         22u
#define ETH_INLINE_SIZE 28u
#define ETH_INLINE      30u
#define ETH_VLAN_TCI    30u
#define CS_L3           0x40u
#define CS_L4           0x80u
#define CS_INNER        0x30u
#define INSERT_VLAN     0x8000u
#define INSERT_TRAILER  0x4000u

/* Syndromes of error CQEs (Linux device.h: MLX5_CQE_SYNDROME_*). */
#define SYN_LENGTH 0x01u
#define SYN_QP_OP  0x02u
#define SYN_PROT   0x04u
#define SYN_FLUSH  0x05u

/* The store of a doorbell. */
struct bell {
	const uint8_t *data;
	uint32_t len;
};

struct wqe {
	uint8_t data[ETH_MAX_WQE];
	uint32_t bytes, blocks;
	uint8_t opcode;
	bool signaled;
};

/* Copies block @index of the ring. */
static bool
read_block(struct eth_queue *q, uint16_t index, uint8_t *to)
{
	uint32_t off = (index & ((1u << q->log_size) - 1)) * ETH_WQEBB;

	return eth_read(q->eth, q->pages[off >> q->log_page] + (off & ((1u << q->log_page) - 1)),
			to, ETH_WQEBB);
}

/*
 * Copies the next WQE, of at most @posted blocks. A BlueFlame copy of that WQE takes the place of
 * its first block: mlx5_core's test of write combining sets a flag in the copy only (Linux 7.2,
 * wc.c). Returns 0 or a syndrome.
 */
static unsigned int
read_wqe(struct eth_queue *q, uint16_t posted, const struct bell *b, struct wqe *w)
{
	uint32_t i;

	w->blocks = 1;
	/* For the error CQE of a WQE that cannot be read. */
	w->opcode = 0;
	w->signaled = false;
	if (b->len >= ETH_WQEBB && bb_get16(b->data + 1) == q->ci)
		memcpy(w->data, b->data, ETH_WQEBB);
	else if (!read_block(q, q->ci, w->data))
		return SYN_PROT;
	w->opcode = w->data[3];
	w->signaled = (w->data[11] & 0x0c) == CE_ALWAYS;
	w->bytes = (w->data[7] & 0x3fu) * SEG;
	w->blocks = RTE_MAX(1u, (w->bytes + ETH_WQEBB - 1) / ETH_WQEBB);
	if (w->blocks > posted) {
		w->blocks = 1;
		return SYN_QP_OP;
	}
	if (bb_prm_dword(w->data, 4) >> 8 != q->number || bb_get16(w->data + 1) != q->ci)
		return SYN_QP_OP;
	for (i = 1; i < w->blocks; i++)
		if (!read_block(q, (uint16_t)(q->ci + i), w->data + i * ETH_WQEBB))
			return SYN_PROT;
	return 0;
}

/* Appends the data segments from byte @at of the WQE on to the message. Returns 0 or a syndrome. */
static unsigned int
gather(struct eth_queue *q, const struct wqe *w, uint32_t at, uint32_t *len)
{
	uint8_t *message = q->eth->message;

	for (; at + SEG <= w->bytes; at += SEG) {
		uint32_t bytes = bb_prm_dword(w->data + at, 0);
		uint32_t key = bb_prm_dword(w->data + at, 4);
		uint64_t addr = bb_prm_get64(w->data + at, BB_PRM_F(8, 0, 64));
		const uint8_t *p;

		if (bytes > ETH_MAX_SEND - *len)
			return SYN_LENGTH;
		if (bytes == 0)
			continue;
		p = eth_memory(q->eth, q->pdn, key, addr, bytes, false);
		if (p == NULL)
			return SYN_PROT;
		memcpy(message + *len, p, bytes);
		*len += bytes;
	}
	return 0;
}

/* An SQ during its run. */
struct run {
	struct eth_queue *q;
	uint64_t until;
};

/*
 * Sends a frame. Returns false if the SQ must then stop: its time until the next eth_poll() is
 * over, or the port has no room for another frame.
 */
static bool
transmit(void *arg, uint8_t *frame, uint32_t len)
{
	const struct run *r = arg;
	struct front_eth *e = r->q->eth;
	uint8_t padded[ETH_MIN_FRAME];

	if (len < ETH_MIN_FRAME) {
		memcpy(padded, frame, len);
		memset(padded + len, 0, ETH_MIN_FRAME - len);
		frame = padded;
		len = ETH_MIN_FRAME;
	}
	e->stats.tx_frames++;
	e->stats.tx_bytes += len;
	eth_link_send(e, frame, len);
	return front_now() <= r->until && eth_port_ready(e);
}

/* Builds the message of a WQE. Returns 0 or a syndrome. @header: bytes of the inline header. */
static unsigned int
build(struct eth_queue *q, const struct wqe *w, uint32_t *header, uint32_t *len)
{
	uint32_t size = bb_get16(w->data + ETH_INLINE_SIZE);
	uint8_t *message = q->eth->message;
	bool vlan = (size & INSERT_VLAN) != 0;
	unsigned int ret;

	if (w->bytes < 2 * SEG || (w->data[ETH_CS_FLAGS] & CS_INNER) != 0 ||
	    (size & INSERT_TRAILER) != 0)
		return SYN_QP_OP;
	*header = vlan ? 0 : size;
	if (*header > w->bytes - ETH_INLINE && *header != 0)
		return SYN_LENGTH;
	memcpy(message, w->data + ETH_INLINE, *header);
	*len = *header;
	ret = gather(q, w, RTE_MAX(2 * SEG, RTE_ALIGN_CEIL(ETH_INLINE + *header, SEG)), len);
	if (ret != 0)
		return ret;
	if (*len < ETH_HEADER)
		return SYN_LENGTH;
	if (vlan) {
		if (*len > ETH_MAX_SEND - 4)
			return SYN_LENGTH;
		memmove(message + 16, message + 12, *len - 12);
		message[12] = ETH_TYPE_CVLAN >> 8;
		message[13] = ETH_TYPE_CVLAN & 0xff;
		memcpy(message + 14, w->data + ETH_VLAN_TCI, 2);
		*len += 4;
	}
	return 0;
}

/*
 * Sends the frames of a WQE's message from frame q->segment on. If the SQ must stop before the last
 * frame, sets q->segment to the number of the next frame, otherwise to 0. Returns 0 or a syndrome.
 */
static unsigned int
send_message(struct run *r, const struct wqe *w)
{
	struct eth_queue *q = r->q;
	struct front_eth *e = q->eth;
	uint32_t header, len, mss = bb_get16(w->data + ETH_MSS);
	uint8_t flags = w->data[ETH_CS_FLAGS];
	struct eth_headers h;
	unsigned int ret = build(q, w, &header, &len);

	if (ret != 0)
		return ret;
	if (w->opcode == OP_LSO) {
		if (header > ETH_MAX_FRAME || mss > ETH_MAX_FRAME - header ||
		    (len - header) / MAX_SEGMENTS >= mss)
			return SYN_LENGTH;
		return eth_segment(e->message, len, header, mss, e->segment, &q->segment, transmit,
				   r)
			       ? 0
			       : SYN_QP_OP;
	}
	if (len > ETH_MAX_FRAME)
		return SYN_LENGTH;
	if ((flags & (CS_L3 | CS_L4)) != 0) {
		eth_parse(e->message, len, &h);
		if ((flags & CS_L3) != 0)
			eth_fill_l3_checksum(e->message, &h);
		if ((flags & CS_L4) != 0)
			eth_fill_l4_checksum(e->message, &h);
	}
	(void)transmit(r, e->message, len);
	return 0;
}

static bool
complete(struct eth_queue *q, const struct wqe *w, unsigned int syndrome)
{
	uint8_t cqe[64] = {0};
	struct bb_cqe *c = (struct bb_cqe *)(void *)cqe;

	bb_prm_set(cqe, BB_PRM_F(32, 0, 32), q->user_index);
	bb_prm_set(cqe, BB_PRM_F(56, 0, 32), (uint32_t)w->opcode << 24 | q->number);
	bb_prm_set(cqe, BB_PRM_F(60, 0, 16), q->ci);
	c->op_own = (uint8_t)((syndrome != 0 ? BB_CQE_REQ_ERR : BB_CQE_REQ) << 4);
	cqe[BB_CQE_SYNDROME_BYTE] = (uint8_t)syndrome;
	return eth_cqe(q, cqe);
}

static void
enqueue(struct eth_queue *q)
{
	if (!q->pending)
		TAILQ_INSERT_TAIL(&q->eth->pending, q, wait);
	q->pending = true;
}

void
eth_sq_dequeue(struct eth_queue *q)
{
	if (q->pending)
		TAILQ_REMOVE(&q->eth->pending, q, wait);
	q->pending = false;
}

/* Reads and executes the next WQE, of at most @posted blocks. Returns 0 or a syndrome. */
static unsigned int
execute_wqe(struct run *r, uint16_t posted, const struct bell *bell, struct wqe *w)
{
	struct eth_queue *q = r->q;
	unsigned int syndrome = read_wqe(q, posted, bell, w);

	if (w->opcode != OP_LSO || q->state == ETH_ERR)
		q->segment = 0; /* the guest may have changed the WQE since an earlier eth_poll() */
	if (q->state == ETH_ERR)
		return SYN_FLUSH;
	if (syndrome == 0 && (w->opcode == OP_SEND || w->opcode == OP_LSO))
		syndrome = send_message(r, w);
	else if (syndrome == 0 && w->opcode != OP_NOP)
		syndrome = SYN_QP_OP;
	if (syndrome == 0)
		return 0;
	FRONT_LOG(ERR,
		  "SQ 0x%x: WQE %u, opcode 0x%x, failed with syndrome 0x%x: the SQ is in ERR\n",
		  q->number, q->ci, w->opcode, syndrome);
	q->state = ETH_ERR;
	q->segment = 0;
	return syndrome;
}

/*
 * Executes the new WQEs until @r->until. In ERR, flushes them: each WQE gets a CQE, unsignaled
 * WQEs, too. The recovery of Linux's driver waits until the CQEs cover all WQEs (en/reporter_tx.c,
 * mlx5e_wait_for_sq_flush()).
 */
static void
execute(struct run *r, const struct bell *bell)
{
	struct eth_queue *q = r->q;
	unsigned int syndrome;
	uint16_t pi, posted;
	struct wqe w;

	if (q->state == ETH_RST)
		return;
	if (!eth_record(q, 1, &pi) || (uint16_t)(pi - q->ci) > 1u << q->log_size) {
		FRONT_LOG(ERR,
			  "SQ 0x%x: the doorbell record is not RAM, or announces more than the %u "
			  "blocks of the queue: the SQ is in ERR\n",
			  q->number, 1u << q->log_size);
		q->state = ETH_ERR;
		return;
	}
	while ((posted = (uint16_t)(pi - q->ci)) != 0 && !q->eth->f->stopped) {
		memset(w.data, 0, ETH_WQEBB);
		syndrome = execute_wqe(r, posted, bell, &w);
		if (q->segment != 0) {
			enqueue(q);
			return;
		}
		if ((w.signaled || syndrome != 0) && !complete(q, &w, syndrome))
			return;
		q->ci = (uint16_t)(q->ci + w.blocks);
		if (q->ci != pi && (front_now() > r->until || !eth_port_ready(q->eth))) {
			enqueue(q);
			return;
		}
	}
}

void
eth_sq_run(struct eth_queue *q, const uint8_t *store, uint32_t len)
{
	const struct bell bell = {store, len};
	struct front_eth *e = q->eth;
	uint64_t start = front_now();
	struct run r = {q, start + ETH_TURN_NS - e->spent};

	if (e->f->stopped || e->spent >= ETH_TURN_NS || !eth_port_ready(e)) {
		enqueue(q);
		return;
	}
	eth_sq_dequeue(q);
	execute(&r, &bell);
	eth_port_flush(e);
	e->spent += front_now() - start;
}
