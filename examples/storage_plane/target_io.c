/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Executes commands, from the receive to the completion. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

#include "target.h"

/*
 * wr_id of a send: the number of its slot and one of these values. The wr_id of a receive is the
 * number of its buffer.
 */
#define WR_PULL 0x10000u /* RDMA READ */
#define WR_PUSH 0x20000u /* RDMA WRITE */
#define WR_DONE 0x30000u /* SEND */
#define WR_SLOT 0xffffu

static uint8_t *
slot_mem(const struct client *c, uint32_t i)
{
	return c->mem + (size_t)i * c->w->o->max_io;
}

static void
posted(struct client *c, int rc)
{
	c->ring_send = c->w->ring = true;
	/* The send queue has room for the requests of all slots, so the post does not fail. */
	if (rc != 0)
		client_drop(c, "the send queue for the client accepts no request (%d)", rc);
}

static void
complete(struct client *c, uint32_t i, enum blk_status status, uint32_t digest)
{
	struct slot *s = &c->slots[i];
	struct blk_completion done = {.id = (uint16_t)i, .status = (uint8_t)status};
	uint8_t msg[BLK_COMPLETION];

	if (status == BLK_OK) {
		done.length = s->cmd.length;
		done.digest = digest;
	} else {
		c->refused++;
	}
	blk_completion_encode(msg, &done);
	s->state = SLOT_SENDING;
	posted(c, bb_post_send_inline(c->qp, WR_DONE | i, msg, sizeof(msg), BB_SEND_SIGNALED));
}

static void
start_io(struct client *c, uint32_t i, enum io_op op)
{
	struct slot *s = &c->slots[i];

	s->state = SLOT_IO;
	c->under_way++;
	io_start(c->w->io, op, (uint64_t)c->index << 32 | i, slot_mem(c, i), s->cmd.length,
		 s->cmd.offset);
}

static void
start(struct client *c, uint32_t i)
{
	struct slot *s = &c->slots[i];
	enum blk_status status = blk_command_check(&s->cmd, &c->w->shape);

	if (status != BLK_OK) {
		complete(c, i, status, 0);
	} else if (s->cmd.op == BB_BLK_READ) {
		start_io(c, i, IO_READ);
	} else if (s->cmd.op == BB_BLK_FLUSH) {
		start_io(c, i, IO_SYNC);
	} else {
		struct bb_sge sge = {(uintptr_t)slot_mem(c, i), s->cmd.length, c->mr->lkey};

		s->state = SLOT_PULLING;
		posted(c, bb_post_read(c->qp, WR_PULL | i, &sge, 1, s->cmd.addr, s->cmd.rkey,
				       BB_SEND_SIGNALED));
	}
}

static void
received(struct client *c, const struct bb_wc *wc)
{
	const uint8_t *capsule = c->capsules + wc->wr_id * CAPSULE;
	struct blk_command cmd;
	const char *wrong = blk_command_decode(capsule, wc->byte_len, &cmd);
	struct slot *s;

	if (wrong != NULL) {
		client_drop(c, "a command of the client %s", wrong);
		return;
	}
	if (cmd.id >= c->depth) {
		client_drop(c, "a command has id %u, but the depth of the client is %u", cmd.id,
			    c->depth);
		return;
	}
	/* @cmd is a copy, so the receive buffer can be posted again. */
	(void)client_post_receive(c, (uint32_t)wc->wr_id);
	c->active = true;
	c->last = rte_get_tsc_cycles();
	s = &c->slots[cmd.id];
	if (s->state == SLOT_FREE) {
		s->cmd = cmd;
		start(c, cmd.id);
	} else if (s->state == SLOT_SENDING && !s->has_next) {
		/*
		 * The client has received the completion, but the CQE of its SEND has not arrived,
		 * because ACKs and data of a queue pair are not ordered. Start the command when the
		 * CQE arrives: until then the device may read the slot's memory.
		 */
		s->next = cmd;
		s->has_next = true;
	} else {
		client_drop(c, "the client used id %u again before the first command was completed",
			    cmd.id);
	}
}

static void
pulled(struct client *c, uint32_t i)
{
	struct slot *s = &c->slots[i];
	uint8_t *mem = slot_mem(c, i);

	if (blk_crc(mem, s->cmd.length) != s->cmd.digest) {
		complete(c, i, BLK_DIGEST, 0);
		return;
	}
	if (c->w->o->defect == DEFECT_FLIP_WRITE)
		mem[s->cmd.length / 2] ^= 1;
	if (c->w->o->defect == DEFECT_ACK_ONLY) {
		complete(c, i, BLK_OK, 0);
		return;
	}
	start_io(c, i, (s->cmd.flags & BB_BLK_FUA) != 0 ? IO_WRITE_SYNC : IO_WRITE);
}

static void
sent(struct client *c, uint32_t i)
{
	struct slot *s = &c->slots[i];

	s->state = SLOT_FREE;
	if (s->has_next) {
		s->has_next = false;
		s->cmd = s->next;
		start(c, i);
	}
}

void
worker_wc(struct worker *w, const struct bb_wc *wc)
{
	struct client *c = wc->qp->user;
	uint32_t i = (uint32_t)wc->wr_id & WR_SLOT;

	(void)w;
	if (c->ending)
		return;
	if (wc->status != BB_WC_SUCCESS) {
		/* An invalid key or address in a command causes an error, but no flush error. */
		if (wc->status != BB_WC_WR_FLUSH_ERR)
			client_drop(c, "a request of the target to the client failed: %s",
				    bb_wc_status_name(wc->status));
		return;
	}
	if (wc->opcode == BB_WC_RECV)
		received(c, wc);
	else if (wc->opcode == BB_WC_RDMA_READ)
		pulled(c, i);
	else if (wc->opcode == BB_WC_SEND)
		sent(c, i);
}

static enum blk_status
status_of(int res)
{
	switch (res) {
	case 0:
		return BLK_OK;
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return BLK_NOSPACE;
	default:
		return BLK_IO;
	}
}

void
worker_done(struct worker *w, const struct io_done *done)
{
	struct client *c = &w->clients[done->tag >> 32];
	uint32_t i = (uint32_t)done->tag, digest = 0;
	struct slot *s = &c->slots[i];
	enum blk_status status = status_of(done->res);

	c->under_way--;
	if (c->conn == NULL || c->ending) {
		if (c->conn == NULL)
			client_release(c);
		return;
	}
	if (status == BLK_IO)
		say("%s of %u bytes at %" PRIu64 ": %s",
		    s->cmd.op == BB_BLK_READ    ? "read"
		    : s->cmd.op == BB_BLK_WRITE ? "write"
						: "flush",
		    s->cmd.length, s->cmd.offset, strerror(-done->res));
	if (status == BLK_OK && s->cmd.op == BB_BLK_READ) {
		uint8_t *mem = slot_mem(c, i);
		struct bb_sge sge = {(uintptr_t)mem, s->cmd.length, c->mr->lkey};

		digest = blk_crc(mem, s->cmd.length);
		if (w->o->defect == DEFECT_FLIP_READ)
			mem[s->cmd.length / 2] ^= 1;
		posted(c, bb_post_write(c->qp, WR_PUSH | i, &sge, 1, s->cmd.addr, s->cmd.rkey, 0));
	}
	if (c->ending)
		return;
	c->reads += s->cmd.op == BB_BLK_READ;
	c->writes += s->cmd.op == BB_BLK_WRITE;
	c->fuas += s->cmd.op == BB_BLK_WRITE && s->cmd.flags != 0;
	c->flushes += s->cmd.op == BB_BLK_FLUSH;
	complete(c, i, status, digest);
}
