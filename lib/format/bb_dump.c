/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Formats WQEs and CQEs as text. They may come from a corrupted queue, or from a peer of the
 * software device, so every length is checked before it is used.
 */
#include <stdbool.h>
#include <string.h>

#include "bb_cqe.h"
#include "bb_text.h"
#include "bb_wqe_priv.h"
#include "bb_wqe_shape.h"

#define DUMP_DATA_MAX 32u /* maximum bytes of inline data to print */

const char *
bb_wqe_opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case BB_WQE_NOP:
		return "NOP";
	case BB_WQE_SEND_INV:
		return "SEND_INV";
	case BB_WQE_RDMA_WRITE:
		return "RDMA_WRITE";
	case BB_WQE_RDMA_WRITE_IMM:
		return "RDMA_WRITE_IMM";
	case BB_WQE_SEND:
		return "SEND";
	case BB_WQE_SEND_IMM:
		return "SEND_IMM";
	case BB_WQE_RDMA_READ:
		return "RDMA_READ";
	case BB_WQE_ATOMIC_CS:
		return "CMP_SWAP";
	case BB_WQE_ATOMIC_FA:
		return "FETCH_ADD";
	case BB_WQE_UMR:
		return "UMR";
	case BB_WQE_ATOMIC_MASKED_CS:
		return "MASKED_CMP_SWAP";
	case BB_WQE_ATOMIC_MASKED_FA:
		return "MASKED_FETCH_ADD";
	default:
		return "?";
	}
}

const char *
bb_cqe_opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case BB_CQE_REQ:
		return "requester";
	case BB_CQE_RESP_WR_IMM:
		return "responder RDMA_WRITE_IMM";
	case BB_CQE_RESP_SEND:
		return "responder SEND";
	case BB_CQE_RESP_SEND_IMM:
		return "responder SEND_IMM";
	case BB_CQE_RESP_SEND_INV:
		return "responder SEND_INV";
	case BB_CQE_REQ_ERR:
		return "requester error";
	case BB_CQE_RESP_ERR:
		return "responder error";
	case BB_CQE_INVALID:
		return "invalid";
	default:
		return "?";
	}
}

static const char *
syndrome_name(uint8_t syndrome)
{
	switch (syndrome) {
	case BB_SYN_LOCAL_LENGTH:
		return "local length error";
	case BB_SYN_LOCAL_QP_OP:
		return "local QP operation error";
	case BB_SYN_LOCAL_PROT:
		return "local protection error";
	case BB_SYN_WR_FLUSH:
		return "flushed";
	case BB_SYN_MW_BIND:
		return "memory window bind error";
	case BB_SYN_BAD_RESP:
		return "bad response";
	case BB_SYN_LOCAL_ACCESS:
		return "local access error";
	case BB_SYN_REMOTE_INVAL_REQ:
		return "remote invalid request";
	case BB_SYN_REMOTE_ACCESS:
		return "remote access error";
	case BB_SYN_REMOTE_OP:
		return "remote operation error";
	case BB_SYN_RETRY_EXC:
		return "transport retries exceeded";
	case BB_SYN_RNR_RETRY_EXC:
		return "RNR retries exceeded";
	case BB_SYN_REMOTE_ABORTED:
		return "remote aborted";
	default:
		return "unknown syndrome";
	}
}

/* The bytes of one WQE, from offset start on, in a ring that wraps. */
struct view {
	const uint8_t *ring;
	size_t size; /* bytes of the ring, a multiple of the segment size */
	size_t start;
	size_t len; /* bytes of the WQE, at most size */
};

static void
view_copy(const struct view *v, size_t pos, void *dst, size_t len)
{
	size_t at = (v->start + pos) % v->size, first = v->size - at;

	if (first > len)
		first = len;
	memcpy(dst, v->ring + at, first);
	memcpy((uint8_t *)dst + first, v->ring, len - first);
}

static void
add_hex(struct bb_text *t, const struct view *v, size_t pos, size_t len)
{
	uint8_t bytes[DUMP_DATA_MAX];
	size_t i, n = len < sizeof(bytes) ? len : sizeof(bytes);

	view_copy(v, pos, bytes, n);
	for (i = 0; i < n; i++)
		bb_text_add(t, "%s%02x", i % 4 == 0 ? " " : "", bytes[i]);
	if (n < len)
		bb_text_add(t, " ...");
}

/*
 * Adds the data segment at @pos to the text. Returns the length of the segment in bytes, at least
 * 16.
 */
static size_t
add_data(struct bb_text *t, const struct view *v, size_t pos, bool inline_ok)
{
	struct bb_wqe_data d;
	size_t room = v->len - pos - 4, len;
	uint32_t count;

	view_copy(v, pos, &d, sizeof(d));
	count = bb_be32(d.byte_count);
	if (!inline_ok || (count & BB_WQE_INLINE) == 0) {
		bb_text_add(t, " | %u bytes at 0x%llx lkey 0x%x",
			    count == 0 ? BB_WQE_MAX_SGE_LEN : count,
			    (unsigned long long)bb_be64(d.addr), bb_be32(d.lkey));
		return BB_WQE_SEG;
	}
	len = count & ~BB_WQE_INLINE;
	bb_text_add(t, " | inline %zu bytes", len);
	if (len > room) {
		bb_text_add(t, " (bad: the WQE ends after %zu)", room);
		len = room;
	}
	bb_text_add(t, ":");
	add_hex(t, v, pos + 4, len);
	return (len + 4 + BB_WQE_SEG - 1) / BB_WQE_SEG * BB_WQE_SEG;
}

/*
 * Adds the operands of the atomic at @pos to the text. Operands have 8 bytes each, or 4 bytes each
 * in a single segment.
 */
static void
add_operands(struct bb_text *t, const struct view *v, size_t pos, uint8_t opcode, uint32_t opmod,
	     uint32_t segs)
{
	bool masked = opcode == BB_WQE_ATOMIC_MASKED_CS || opcode == BB_WQE_ATOMIC_MASKED_FA;
	bool cs = opcode == BB_WQE_ATOMIC_MASKED_CS || opcode == BB_WQE_ATOMIC_CS;
	struct bb_wqe_atomic a[2] = {{0}};
	uint64_t swap_add, compare, swap_mask, compare_mask;

	view_copy(v, pos, a, segs * sizeof(a[0]));
	if (masked && opmod != bb_wqe_atomic_opmod(8)) {
		struct bb_wqe_atomic4 four;

		memcpy(&four, a, sizeof(four));
		swap_add = bb_be32(four.swap_add);
		compare = bb_be32(four.compare);
		swap_mask = bb_be32(four.swap_mask);
		compare_mask = bb_be32(four.compare_mask);
	} else {
		swap_add = bb_be64(a[0].swap_add);
		compare = bb_be64(a[0].compare);
		swap_mask = bb_be64(a[1].swap_add);
		compare_mask = bb_be64(a[1].compare);
	}
	if (cs)
		bb_text_add(t, " | compare 0x%llx swap 0x%llx", (unsigned long long)compare,
			    (unsigned long long)swap_add);
	else
		bb_text_add(t, " | add 0x%llx", (unsigned long long)swap_add);
	if (masked && cs)
		bb_text_add(t, " masks 0x%llx 0x%llx", (unsigned long long)compare_mask,
			    (unsigned long long)swap_mask);
	else if (masked)
		bb_text_add(t, " boundaries 0x%llx", (unsigned long long)compare);
}

/* Adds the destination of a datagram to the text. */
static void
add_av(struct bb_text *t, const struct view *v, size_t pos)
{
	struct bb_wqe_av av;
	size_t i;

	view_copy(v, pos, &av, sizeof(av));
	bb_text_add(t, " | to QP 0x%06x Q_Key 0x%x rlid 0x%x MAC ", bb_be32(av.dest_qpn) & 0xffffff,
		    bb_be32(av.qkey), bb_be16(av.rlid));
	for (i = 0; i < sizeof(av.rmac); i++)
		bb_text_add(t, "%02x", av.rmac[i]);
	bb_text_add(t, " GID ");
	for (i = 0; i < sizeof(av.rgid); i++)
		bb_text_add(t, "%02x", av.rgid[i]);
}

/*
 * Adds the segments between the control segment and the data to the text. Returns the position of
 * the data in the WQE.
 */
static size_t
add_head(struct bb_text *t, const struct view *v, uint8_t opcode, uint32_t opmod,
	 const struct bb_wqe_shape *shape)
{
	size_t pos = BB_WQE_SEG;
	struct bb_wqe_raddr r;

	if (shape->av) {
		if (v->len - pos < sizeof(struct bb_wqe_av)) {
			bb_text_add(t, " | bad: no address vector");
			return v->len;
		}
		add_av(t, v, pos);
		pos += sizeof(struct bb_wqe_av);
	}
	if (!shape->raddr)
		return pos;
	if (v->len - pos < sizeof(r)) {
		bb_text_add(t, " | bad: no remote address segment");
		return v->len;
	}
	view_copy(v, pos, &r, sizeof(r));
	pos += sizeof(r);
	bb_text_add(t, " | raddr 0x%llx rkey 0x%x", (unsigned long long)bb_be64(r.raddr),
		    bb_be32(r.rkey));
	if (shape->operands == 0)
		return pos;
	if (v->len - pos < shape->operands * sizeof(struct bb_wqe_atomic)) {
		bb_text_add(t, " | bad: no atomic segment");
		return v->len;
	}
	add_operands(t, v, pos, opcode, opmod, shape->operands);
	return pos + shape->operands * sizeof(struct bb_wqe_atomic);
}

static void
add_rights(struct bb_text *t, uint8_t access)
{
	bb_text_add(t, " rights%s%s%s%s%s", (access & BB_MKEY_LW) != 0 ? " lw" : "",
		    (access & BB_MKEY_RR) != 0 ? " rr" : "",
		    (access & BB_MKEY_RW) != 0 ? " rw" : "",
		    (access & BB_MKEY_A) != 0 ? " atomic" : "",
		    (access & ~(BB_MKEY_LR | BB_MKEY_LW | BB_MKEY_RR | BB_MKEY_RW | BB_MKEY_A)) != 0
			    ? " bad"
			    : "");
}

/* Adds the interleaved layout at @pos to the text. */
static void
add_repeat(struct bb_text *t, const struct view *v, size_t pos, const struct bb_wqe_repeat *r)
{
	uint32_t n = bb_be16(r->num_entries), i;

	bb_text_add(t, " | %u times %u bytes in %u blocks", bb_be32(r->repeat_count),
		    bb_be32(r->byte_count), n);
	for (i = 0; i < n; i++) {
		struct bb_wqe_repeat_entry e;

		pos += sizeof(e);
		if (v->len - pos < sizeof(e)) {
			bb_text_add(t, " | bad: the WQE ends after %u blocks", i);
			return;
		}
		view_copy(v, pos, &e, sizeof(e));
		bb_text_add(t, " | %u bytes each %u at 0x%llx lkey 0x%x", bb_be16(e.byte_count),
			    bb_be16(e.stride), (unsigned long long)bb_be64(e.addr),
			    bb_be32(e.lkey));
	}
}

/* Adds the segments after the control segment of a UMR WQE to the text. */
static void
add_umr(struct bb_text *t, const struct view *v, uint32_t key)
{
	struct bb_wqe_repeat r;
	struct bb_wqe_umr u;
	struct bb_wqe_mkey m;
	uint64_t mask;
	size_t pos;

	bb_text_add(t, " | key 0x%x", key);
	if (v->len < BB_WQE_UMR_DS * BB_WQE_SEG) {
		bb_text_add(t, " | bad: no UMR and mkey segments");
		return;
	}
	view_copy(v, BB_WQE_SEG, &u, sizeof(u));
	view_copy(v, BB_WQE_SEG + sizeof(u), &m, sizeof(m));
	mask = bb_be64(u.mkey_mask);
	bb_text_add(t, "%s%s%s mask 0x%llx", (u.flags & BB_UMR_CHECK_FREE) != 0 ? " if free" : "",
		    (u.flags & BB_UMR_CHECK_USED) != 0 ? " if in use" : "",
		    (u.flags & BB_UMR_CHECK_QPN) != 0 ? " if this QP's" : "",
		    (unsigned long long)mask);
	if ((mask & BB_MKEY_MASK_FREE) != 0)
		bb_text_add(t, (m.free & BB_MKEY_FREE) != 0 ? " free it" : " use it");
	if ((mask & BB_MKEY_MASK_KEY) != 0)
		bb_text_add(t, " variant 0x%02x", bb_be32(m.qpn_key) & 0xff);
	if ((mask & BB_MKEY_MASK_QPN) != 0)
		bb_text_add(t, " QP 0x%06x", bb_be32(m.qpn_key) >> 8);
	if ((mask & BB_MKEY_MASK_START_ADDR) != 0)
		bb_text_add(t, " start 0x%llx", (unsigned long long)bb_be64(m.start_addr));
	if ((mask & BB_MKEY_MASK_LEN) != 0)
		bb_text_add(t, " length %llu", (unsigned long long)bb_be64(m.len));
	if ((mask & BB_MKEY_MASK_ACCESS) != 0)
		add_rights(t, m.access);
	for (pos = BB_WQE_UMR_DS * BB_WQE_SEG; v->len - pos >= sizeof(r); pos += sizeof(r)) {
		view_copy(v, pos, &r, sizeof(r));
		if (bb_be32(r.op) == BB_WQE_REPEAT_OP) {
			add_repeat(t, v, pos, &r);
			return;
		}
		/* A data segment of zeros is only padding. */
		if (r.byte_count == 0 && r.op == 0)
			continue;
		add_data(t, v, pos, false);
	}
}

int
bb_wqe_dump(char *buf, size_t size, const void *ring, uint32_t blocks, uint16_t idx, bool ud)
{
	struct bb_text t = bb_text_start(buf, size);
	struct view v = {ring, (size_t)blocks * BB_WQE_BB, 0, 0};
	struct bb_wqe_shape shape;
	struct bb_wqe_ctrl ctrl;
	uint32_t head, ds;
	uint8_t opcode;
	size_t pos;

	if (ring == NULL || blocks == 0) {
		bb_text_add(&t, "WQE %u: no ring", idx);
		return (int)t.len;
	}
	v.start = (size_t)(idx % blocks) * BB_WQE_BB;
	view_copy(&v, 0, &ctrl, sizeof(ctrl));
	head = bb_be32(ctrl.opmod_idx_opcode);
	opcode = (uint8_t)head;
	ds = bb_be32(ctrl.qpn_ds) & BB_WQE_MAX_DS;
	v.len = (size_t)ds * BB_WQE_SEG;

	bb_text_add(&t, "WQE %u: %s", idx, bb_wqe_opcode_name(opcode));
	bb_text_add(&t, " (opcode 0x%02x) index %u QP 0x%06x ds %u ce %u fm %u%s", opcode,
		    head >> 8 & 0xffff, bb_be32(ctrl.qpn_ds) >> 8, ds, ctrl.fm_ce_se >> 2 & 3,
		    ctrl.fm_ce_se >> 5, (ctrl.fm_ce_se & BB_WQE_SE) != 0 ? " solicited" : "");
	if (head >> 24 != 0)
		bb_text_add(&t, " opmod 0x%02x", head >> 24);
	if (opcode == BB_WQE_SEND_IMM || opcode == BB_WQE_RDMA_WRITE_IMM)
		bb_text_add(&t, " imm 0x%08x", bb_be32(ctrl.imm));
	if (opcode == BB_WQE_SEND_INV)
		bb_text_add(&t, " invalidates rkey 0x%x", bb_be32(ctrl.imm));
	if ((uint16_t)(head >> 8) != idx)
		bb_text_add(&t, " (bad: index is not the WQE's position)");
	if (ds == 0) {
		bb_text_add(&t, " (bad: ds must count the control segment)");
		return (int)t.len;
	}
	if (v.len > v.size) {
		bb_text_add(&t, " (bad: longer than the ring of %u blocks)", blocks);
		v.len = v.size;
	}
	if (opcode == BB_WQE_UMR) {
		add_umr(&t, &v, bb_be32(ctrl.imm));
		return (int)t.len;
	}
	shape = bb_wqe_shape(opcode, head >> 24, ud);
	pos = add_head(&t, &v, opcode, head >> 24, &shape);
	if (strcmp(bb_wqe_opcode_name(opcode), "?") == 0) {
		if (pos < v.len) {
			bb_text_add(&t, " |");
			add_hex(&t, &v, pos, v.len - pos);
		}
		return (int)t.len;
	}
	while (pos < v.len)
		pos += add_data(&t, &v, pos, true);
	return (int)t.len;
}

int
bb_recv_wqe_dump(char *buf, size_t size, const void *wqe, uint32_t stride)
{
	struct bb_text t = bb_text_start(buf, size);
	struct view v = {wqe, stride, 0, stride};
	size_t pos;

	bb_text_add(&t, "receive WQE of %u bytes", stride);
	if (wqe == NULL)
		return (int)t.len;
	for (pos = 0; v.len - pos >= BB_WQE_SEG; pos += BB_WQE_SEG) {
		struct bb_wqe_data d;

		view_copy(&v, pos, &d, sizeof(d));
		if (d.byte_count == 0 && bb_be32(d.lkey) == BB_WQE_INVALID_LKEY) {
			bb_text_add(&t, " | end");
			break;
		}
		add_data(&t, &v, pos, false);
	}
	return (int)t.len;
}

int
bb_cqe_dump(char *buf, size_t size, const struct bb_cqe *cqe)
{
	struct bb_text t = bb_text_start(buf, size);
	uint8_t opcode = cqe->op_own >> 4;
	uint32_t sop_qpn = bb_be32(cqe->sop_qpn);

	bb_text_add(&t, "CQE: %s (opcode %u) owner %u", bb_cqe_opcode_name(opcode), opcode,
		    cqe->op_own & 1);
	if (opcode == BB_CQE_INVALID)
		return (int)t.len;
	bb_text_add(&t, " user index 0x%x QP 0x%06x wqe counter %u",
		    bb_be32(cqe->srqn_uidx) & 0xffffff, sop_qpn & 0xffffff,
		    bb_be16(cqe->wqe_counter));
	if (opcode == BB_CQE_REQ_ERR || opcode == BB_CQE_RESP_ERR) {
		uint8_t syndrome = bb_cqe_syndrome(cqe);

		bb_text_add(&t, " syndrome 0x%02x (%s) vendor 0x%02x", syndrome,
			    syndrome_name(syndrome), bb_cqe_vendor_syndrome(cqe));
		return (int)t.len;
	}
	if (opcode == BB_CQE_REQ)
		bb_text_add(&t, " of %s (opcode 0x%02x)",
			    bb_wqe_opcode_name((uint8_t)(sop_qpn >> 24)), sop_qpn >> 24);
	bb_text_add(&t, " bytes %u", bb_be32(cqe->byte_cnt));
	if (opcode == BB_CQE_RESP_WR_IMM || opcode == BB_CQE_RESP_SEND_IMM)
		bb_text_add(&t, " imm 0x%08x", bb_be32(cqe->imm));
	if (opcode == BB_CQE_RESP_SEND_INV)
		bb_text_add(&t, " invalidated rkey 0x%x", bb_be32(cqe->imm));
	if ((cqe->op_own & BB_CQE_SE) != 0)
		bb_text_add(&t, " solicited");
	if ((cqe->op_own >> 2 & 3) != 0)
		bb_text_add(&t, " data in the CQE (format %u)", cqe->op_own >> 2 & 3);
	return (int)t.len;
}
