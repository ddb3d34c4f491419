/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The whole path of a packet into the software device. Frames of an arbitrary peer go through a
 * port's stack, a queue pair, its receives and keys, to memory and CQEs.
 *
 * Byte 0: enum option. Then steps, by the low three bits of a byte: enum step.
 *
 * Invariants: writes go only to memory that a key or a receive opens to the peer. A READ is
 * answered only from readable memory. A queue pair without rights writes nothing. CQEs are
 * written only for posted requests, and have data only if it fits. All objects can be destroyed at
 * the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_log.h>

#include <rte_mbuf.h>

#include "../../fakes/roce_frame.h"
#include "../../model/soft/exec/soft_umr_env.h"
#include "bb_roce_op.h"
#include "fuzz.h"
#include "fuzz_wire_group.h"
#include "fuzz_wire_shm.h"
#include "soft_ctl.h"
#include "soft_port_stack.h"
#include "soft_wire.h"

#define MAX_STEPS 64
/* The memory: GAP, a range with all rights, GAP, a read-only range, an inaccessible range. */
#define GAP       4096u
#define KEYED     8192u
#define SECRET    2048u
#define SECRET_AT (2 * GAP + KEYED)
#define ALL_MEM   (SECRET_AT + 2 * SECRET + GAP)
#define GUARD     0x5a
#define FRAMES    8u
#define ETH       14u
#define PEER_QPN  0x321u
#define PSN       0xfffffcu /* of both ends; it wraps soon */

enum option {
	OPT_UC = 1,
	OPT_UD = 2, /* takes precedence over OPT_UC */
	OPT_IN_CQE = 4,
	OPT_NO_RQ = 8,
	OPT_DETOUR = 16, /* memory is registered RELAXED */
	OPT_MTU = 32,    /* MTU 1024 instead of 256 */
	OPT_RIGHTS = 64, /* the queue pair gives the peer no rights */
	OPT_KEYS = 128,  /* with a memory window */
};

enum step {
	STEP_PACKET,
	STEP_PACKET_TOO,
	STEP_ANSWER, /* a packet with a PSN of the requester */
	STEP_RECV,
	STEP_POST,
	STEP_RUN,
	STEP_REVIVE,
	STEP_ROOM, /* packets that the link accepts */
};

static struct world {
	struct fuzz_in in;
	bool open;
	uint8_t options;
	struct rig_dev d, peer;
	struct rig_uar u;
	struct rig_cq cq;
	struct rig_qp qp;
	struct mlx5_pd *pd;                /* another PD */
	struct mlx5_obj *group;            /* attachment of a UD queue pair, NULL if none */
	struct rig_mem mem;                /* with all rights */
	struct mlx5_mr *ro, *none, *other; /* other: of pd */
	struct keys keys;                  /* with OPT_KEYS */
	uint8_t *all;
	struct soft_port_stack stack;
	struct {
		uint8_t *p;
		uint32_t len;
		bool shm, pass; /* the packet comes in a shared ring; it is rebuilt as bytes */
	} frame[FRAMES];
	uint32_t frames, room, posted, cqes;
	bool asked; /* a posted request may write memory */
} world;

static struct soft_wire *
wire_of(const struct world *w)
{
	return soft_qp_find(soft_ctx(w->d.ctx)->dev, w->qp.qpn)->wire;
}

/* ---- The link */

static bool
inside(const struct bb_roce_iov *iov, const uint8_t *p, uint32_t len)
{
	uintptr_t off = (uintptr_t)iov->p - (uintptr_t)p;

	return iov->len <= len && off <= len - iov->len;
}

static enum soft_link_sent
link_send(struct soft_engine *e, const struct soft_link_pkt *p)
{
	struct world *w = &world;

	(void)e;
	if (w->room == 0)
		return SOFT_LINK_FULL;
	w->room--;
	if ((bb_roce_ops[p->pkt->opcode].flags & BB_ROCE_F_READ_RESP) != 0)
		for (uint32_t i = 0; i < p->n; i++)
			check(inside(&p->iov[i], w->mem.p, KEYED) ||
				      inside(&p->iov[i], w->all + SECRET_AT, SECRET),
			      "a READ is answered from where there is no right to read");
	return SOFT_LINK_SENT;
}

static void
link_plain(struct soft_engine *e, struct soft_wire *w)
{
	(void)e;
	(void)w;
}

static uint8_t *
no_room(void *arg, uint32_t len)
{
	(void)arg;
	(void)len;
	return NULL;
}

/* Receives a frame as soft_port.c and soft_netif.c do. */
static void
take(struct world *w, struct soft_engine *e, const uint8_t *p, uint32_t len)
{
	/* Static, because gcc's AddressSanitizer does not align it to 64 bytes on the stack. */
	static struct rte_mbuf mbuf;
	static const struct soft_port_hw hw;
	struct rte_mbuf *m = &mbuf;
	struct soft_port_rx rx;
	struct soft_packet packet;

	mbuf.buf_addr = (void *)(uintptr_t)p;
	mbuf.nb_segs = 1;
	mbuf.data_len = (uint16_t)len;
	mbuf.pkt_len = len;
	if (soft_wire_expected(e->dev, e, &m, 1) != 0 ||
	    soft_port_input(&w->stack, p, len, &hw, &rx, 0) != SOFT_PORT_IN_ROCE)
		return;
	packet = (struct soft_packet){
		.ip = p + rx.l3_off,
		.ip_len = (uint32_t)rx.l4_off - rx.l3_off,
		.len = (uint32_t)rx.l4_off - rx.l3_off + rx.l4_len,
		.net = &rx.net,
		.l2_len = rx.l3_off,
	};
	soft_wire_deliver(e->dev, e, &packet);
}

static bool
link_receive(struct soft_engine *e)
{
	struct world *w = &world;
	uint32_t i, n = w->frames;

	w->frames = 0;
	for (i = 0; i < n; i++) {
		const uint8_t *p = w->frame[i].p;

		if (!w->frame[i].shm ||
		    !take_shm(e, p + ETH, w->frame[i].len - ETH, w->peer.gid.raw, w->d.gid.raw,
			      p[11] ^ w->peer.mac[5], p[10] ^ w->peer.mac[4], w->frame[i].pass))
			take(w, e, p, w->frame[i].len);
		free(w->frame[i].p);
	}
	return true;
}

static const struct soft_link_ops link_ops = {
	.send = link_send,
	.plain = link_plain,
	.receive = link_receive,
	.polled = true,
	.qp_size = sizeof(struct soft_shm_wire),
};

/* ---- The world */

static struct mlx5_mr *
key(struct world *w, struct mlx5_pd *pd, uint32_t at, uint32_t len, uint32_t access)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(w->all + at, len, access);
	struct mlx5_mr *mr;

	check(soft_cmd_if.mr_reg(w->d.ctx, pd, &attr, &mr) == 0, "mr_reg");
	return mr;
}

static uint32_t
type_of(const struct world *w)
{
	if ((w->options & OPT_UD) != 0)
		return BB_PRM_QP_ST_UD;
	return (w->options & OPT_UC) != 0 ? BB_PRM_QP_ST_UC : BB_PRM_QP_ST_RC;
}

static void
world_connect(struct world *w)
{
	struct rig_link l = rig_link_default();

	/* No timers: the result depends on the input only. */
	l.timeout = 0;
	l.mtu = (w->options & OPT_MTU) != 0 ? 3 : 1;
	l.access = (w->options & OPT_RIGHTS) != 0 ? 0 : RIG_ALL;
	l.sq_psn = PSN;
	l.rq_psn = PSN;
	rig_qp_up(&w->qp, &w->peer, PEER_QPN, &l);
	soft_shm_wire(wire_of(w))->plain = true;
}

static void
world_open(struct world *w, uint8_t options)
{
	const uint32_t detour = (options & OPT_DETOUR) != 0 ? BB_ACCESS_RELAXED_ORDERING : 0;
	struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 3, .log_stride = 6, .uidx = 0xa11ce};
	struct soft_port_opts o = {.n_ip = 1};
	struct soft_dev *dev;

	w->open = true;
	w->options = options;
	rig_dev_open(&w->d, "soft0", "wire=1,seed=0");
	dev = soft_ctx(w->d.ctx)->dev;
	dev->link = &link_ops;
	w->peer = w->d;
	w->peer.gid.raw[15] ^= 0x40;
	w->peer.mac[5] ^= 0x40;
	memcpy(o.ip[0].addr, w->d.gid.raw, 16);
	o.ip[0].prefix = 120;
	soft_port_stack_init(&w->stack, &o, dev->mac, no_room, w);
	check(soft_cmd_if.pd_alloc(w->d.ctx, &w->pd) == 0, "pd_alloc");
	rig_uar_open(&w->u, &w->d, MLX5_UAR_BF);
	rig_cq_open(&w->cq, &w->u, 8);
	attr.st = type_of(w);
	attr.no_rq = (options & OPT_NO_RQ) != 0;
	if (attr.no_rq)
		attr.log_rq = 0;
	if ((options & OPT_IN_CQE) != 0) {
		attr.cs_req = attr.st == BB_PRM_QP_ST_RC ? 0x11 : 0;
		attr.cs_res = attr.no_rq || attr.st == BB_PRM_QP_ST_UD ? 0 : 1;
	}
	rig_qp_open(&w->qp, &w->u, &w->cq, &w->cq, &attr);
	w->group = group_attach(&w->d, w->qp.qpn);
	w->all = aligned_alloc(4096, ALL_MEM);
	check(w->all != NULL, "no memory");
	memset(w->all, GUARD, ALL_MEM);
	w->mem = (struct rig_mem){.d = &w->d, .p = w->all + GAP, .len = KEYED};
	w->mem.mr = key(w, w->d.pd, GAP, KEYED,
			RIG_ALL | detour | ((options & OPT_KEYS) != 0 ? BB_ACCESS_MW_BIND : 0u));
	w->ro = key(w, w->d.pd, SECRET_AT, SECRET, BB_ACCESS_REMOTE_READ);
	w->none = key(w, w->d.pd, SECRET_AT + SECRET, SECRET, 0);
	w->other = key(w, w->pd, SECRET_AT + SECRET, SECRET, RIG_ALL);
	if ((options & OPT_KEYS) != 0)
		keys_make(&w->keys, &w->d);
}

static void
world_close(struct world *w)
{
	check(w->group == NULL || soft_cmd_if.obj_destroy(w->group) == 0, "DETACH_FROM_MCG");
	rig_qp_close(&w->qp);
	rig_cq_close(&w->cq);
	if ((w->options & OPT_KEYS) != 0)
		keys_free(&w->keys, &w->d);
	check(soft_cmd_if.mr_dereg(w->d.ctx, w->mem.mr) == 0, "mr_dereg");
	check(soft_cmd_if.mr_dereg(w->d.ctx, w->ro) == 0, "mr_dereg");
	check(soft_cmd_if.mr_dereg(w->d.ctx, w->none) == 0, "mr_dereg");
	check(soft_cmd_if.mr_dereg(w->d.ctx, w->other) == 0, "mr_dereg");
	free(w->all);
	rig_uar_close(&w->u);
	check(soft_cmd_if.pd_free(w->d.ctx, w->pd) == 0, "pd_free");
	soft_ctx(w->d.ctx)->dev->link = &soft_link_memory;
	rig_dev_close(&w->d);
	w->open = false;
}

static void
world_poll(struct world *w)
{
	struct rig_cqe e;

	rig_poll(&w->u);
	while (rig_cqe(&w->cq, &e)) {
		w->cqes++;
		check((rig_cqe_bytes(&w->cq)[63] & 0xc) == 0 ||
			      (e.bytes <= 32 && e.opcode != MLX5_CQE_RESP_WR_IMM),
		      "a CQE has data that is not its own");
	}
	check(w->cqes <= w->posted, "a CQE of what was not posted");
}

/* Binds the window over the first 256 bytes, unless it is bound. */
static void
bind_window(struct world *w)
{
	struct umr umr;

	if ((w->options & OPT_KEYS) == 0 || type_of(w) != BB_PRM_QP_ST_RC)
		return;
	w->keys.p.b = w->qp;
	w->keys.mem = w->mem;
	umr = bind_make(&w->keys, true);
	umr_put(&w->qp, &umr, RIG_CQE);
	w->posted++;
	rig_ring(&w->qp);
	world_poll(w);
}

/* Reuses the previous input's objects if they fit: creating them is slower than most inputs. */
static void
world_begin(struct world *w, uint8_t options)
{
	/* The state of a window must not leak into the next input. */
	if (w->open && (w->options != options || (options & OPT_KEYS) != 0))
		world_close(w);
	if (!w->open)
		world_open(w, options);
	memset(w->all, GUARD, ALL_MEM);
	w->posted = 0;
	w->cqes = 0;
	w->asked = false;
	w->room = UINT32_MAX;
	world_connect(w);
	bind_window(w);
}

static void
world_end(struct world *w)
{
	w->room = UINT32_MAX;
	for (uint32_t i = 0; i < 4; i++)
		world_poll(w);
	for (uint32_t i = 0; i < ALL_MEM; i++) {
		if (i - GAP < KEYED)
			check(w->all[i] == GUARD || w->asked || (w->options & OPT_RIGHTS) == 0,
			      "a byte was written though the queue pair lets nobody");
		else
			check(w->all[i] == GUARD, "a byte was written where no key lets anybody");
	}
	rig_qp_reset(&w->qp);
	world_poll(w);
	memset(w->qp.sq, 0, (size_t)64 << w->qp.log_sq);
}

/* ---- Packets */

static uint32_t
some_key(struct world *w, uint8_t kind)
{
	switch (kind & 7) {
	case 0:
	case 1:
	case 2:
		return w->mem.mr->rkey;
	case 3:
		return w->ro->rkey;
	case 4:
		return w->none->rkey;
	case 5:
		return w->other->rkey;
	case 6:
		return (w->options & OPT_KEYS) != 0 ? (w->keys.two->rkey & ~0xffu) | 0x77
						    : w->mem.mr->rkey;
	default:
		return fuzz_u32(&w->in);
	}
}

/* Returns an address in the memory of some_key(), relative to its start or its end. */
static uint64_t
some_address(struct world *w, uint8_t kind, bool end)
{
	int16_t off = (int16_t)fuzz_u16(&w->in);
	uint32_t from = GAP, to = GAP + KEYED;

	if ((kind & 7) >= 3 && (kind & 7) <= 5) {
		from = SECRET_AT + ((kind & 7) == 3 ? 0 : SECRET);
		to = from + SECRET;
	}
	return (uintptr_t)w->all + (end ? to : from) + (uint64_t)(int64_t)off;
}

/* Corrects the checksums after bytes were changed, so that the rest is parsed. */
static void
mend(uint8_t *ip, uint32_t len)
{
	struct roce_frame f;
	uint16_t sum;

	if (ip[0] == 0x45) {
		ip[10] = 0;
		ip[11] = 0;
		sum = soft_port_csum(NULL, NULL, 0, 0, ip, 20);
		memcpy(ip + 10, &sum, 2);
	}
	if (roce_frame_split(&f, ip, len))
		bb_roce_icrc_end(bb_roce_icrc_begin(ip, (uint32_t)f.ip_len, f.udp, f.bth,
						    (uint32_t)f.bth_len),
				 (uint8_t *)(uintptr_t)f.icrc);
}

static void
give(struct world *w, const uint8_t *frame, uint32_t len, bool shm, bool pass)
{
	if (w->frames == FRAMES)
		world_poll(w);
	/* Allocated with the exact size, for AddressSanitizer. */
	w->frame[w->frames].p = malloc(len);
	check(w->frame[w->frames].p != NULL, "malloc");
	memcpy(w->frame[w->frames].p, frame, len);
	w->frame[w->frames].shm = shm;
	w->frame[w->frames].pass = pass;
	w->frame[w->frames++].len = len;
}

/*
 * Flags: bit 0 requests an ACK, bit 1 is solicited, bits 2 to 4 select some_key(), bit 5 the end
 * of its memory. Bits 6 and 7 are the number of edits of three bytes: offset and change. The
 * third bit of the last edit's offset leaves all checksums as they were.
 */
static void
step_packet(struct world *w, bool answer, uint8_t what)
{
	const bool shm = (what & 8) != 0, pass = (what & 16) != 0;
	static uint8_t frame[ETH + ROCE_FRAME_MAX + 64], data[4096];
	const struct soft_wire *wire = wire_of(w);
	uint8_t flags = fuzz_u8(&w->in), opcode = fuzz_u8(&w->in);
	struct bb_roce_iov iov = {.p = data};
	struct bb_roce_net net = {.sport = 0xc123, .hop_limit = 64};
	struct bb_roce_pkt pkt = {.opcode = opcode, .pkey = 0xffff, .dqpn = w->qp.qpn};
	uint32_t len, from;
	bool mended = true;

	memcpy(net.src, w->peer.gid.raw, 16);
	memcpy(net.dst, w->d.gid.raw, 16);
	from = answer ? wire->roce.req.una : wire->roce.resp.epsn;
	pkt.psn = (from + (uint32_t)(int8_t)fuzz_u8(&w->in)) & BB_ROCE_PSN_MASK;
	pkt.flags = (uint8_t)(BB_ROCE_MIGREQ | (flags & 1 ? BB_ROCE_ACKREQ : 0) |
			      (flags & 2 ? BB_ROCE_SE : 0));
	pkt.rkey = some_key(w, flags >> 2);
	pkt.imm = (bb_roce_ops[opcode].flags & BB_ROCE_F_IETH) != 0 ? pkt.rkey : flags;
	pkt.va = some_address(w, flags >> 2, (flags >> 5 & 1) != 0);
	pkt.len = fuzz_u16(&w->in) % 1040;
	pkt.dmalen = pkt.len;
	/* Opcodes without payload have none; packets before the last one are full. */
	if ((bb_roce_ops[opcode].flags & BB_ROCE_F_PAYLOAD) == 0)
		pkt.len = 0;
	else if ((bb_roce_ops[opcode].flags & BB_ROCE_F_LAST) == 0)
		pkt.len = wire->roce.attr.mtu;
	pkt.swap_add = pkt.dmalen;
	pkt.syndrome = answer ? fuzz_u8(&w->in) : 0;
	pkt.qkey = RIG_QKEY;
	pkt.sqpn = PEER_QPN;
	iov.len = pkt.len;
	memset(data, opcode, pkt.len);
	if (bb_roce_ops[opcode].flags == 0 && BB_ROCE_TYPE(opcode) != BB_ROCE_RC)
		return;
	memcpy(frame, w->d.mac, 6);
	if ((what & 32) != 0)
		group_packet(&w->d, &net, &pkt, frame);
	memcpy(frame + 6, w->peer.mac, 6);
	frame[12] = soft_ip_is_v4(net.dst) ? 0x08 : 0x86;
	frame[13] = soft_ip_is_v4(net.dst) ? 0x00 : 0xdd;
	len = (uint32_t)roce_frame_build(frame + ETH, &net, &pkt, &iov, 1);
	for (uint32_t i = flags >> 6; i != 0; i--) {
		uint16_t at = fuzz_u16(&w->in);

		frame[(at & 0x7fff) % (ETH + len)] ^= fuzz_u8(&w->in);
		mended = at < 0x8000;
	}
	if (flags >> 6 != 0 && mended)
		mend(frame + ETH, len);
	give(w, frame, ETH + len - (flags >> 6 == 3 && !mended ? len / 2 : 0), shm, pass);
}

/* ---- Posted requests */

static void
step_recv(struct world *w)
{
	struct rig_qp *q = &w->qp;
	uint8_t kind = fuzz_u8(&w->in), *wqe;
	uint32_t i, n = kind % 3, room;

	if (q->rq == q->sq || (w->options & OPT_NO_RQ) != 0)
		return;
	room = (1u << q->log_stride) / 16;
	wqe = q->rq + ((size_t)(q->rq_pi & ((1u << q->log_rq) - 1)) << q->log_stride);
	for (i = 0; i < n; i++) {
		uint32_t len = 8u * fuzz_u8(&w->in), lkey = some_key(w, kind >> 2);

		mlx5dv_set_data_seg((void *)(wqe + (size_t)i * 16), len, lkey,
				    some_address(w, kind >> 2, (kind >> 5 & 1) != 0));
	}
	if (i < room)
		mlx5dv_set_data_seg((void *)(wqe + (size_t)i * 16), 0, MLX5_INVALID_LKEY, 0);
	w->posted++;
	w->asked = true;
	q->rq_pi++;
	__atomic_store_n(&q->dbrec[0], htobe32(q->rq_pi), __ATOMIC_RELEASE);
}

/* Posts a request for the peer to answer. */
static void
step_post(struct world *w)
{
	uint8_t kind = fuzz_u8(&w->in);
	uint32_t len = kind % 5 == 4 ? 8 : 8u * fuzz_u8(&w->in), at = 8u * (kind >> 3);

	/* Its ring has room for all pending requests. */
	if (type_of(w) == BB_PRM_QP_ST_UD || w->posted - w->cqes > 32)
		return;
	switch (kind % 5) {
	case 0:
		rig_write(&w->qp, &w->mem, at, len, &w->mem, at, RIG_CQE);
		break;
	case 1:
		rig_send(&w->qp, &w->mem, at, len, RIG_CQE);
		break;
	case 2:
	case 3:
		rig_read(&w->qp, &w->mem, at, len, &w->mem, at, RIG_CQE);
		break;
	default:
		rig_atomic(&w->qp, MLX5_OPCODE_ATOMIC_FA, &w->mem, at, &w->mem, at, 1, 0, RIG_CQE);
	}
	w->posted++;
	w->asked = true;
	rig_ring(&w->qp);
}

static void
step(struct world *w)
{
	uint8_t what = fuzz_u8(&w->in);

	switch (what & 7) {
	case STEP_PACKET:
	case STEP_PACKET_TOO:
	case STEP_ANSWER:
		step_packet(w, (what & 7) == STEP_ANSWER, what);
		break;
	case STEP_RECV:
		step_recv(w);
		break;
	case STEP_POST:
		step_post(w);
		break;
	case STEP_RUN:
		world_poll(w);
		break;
	case STEP_REVIVE:
		world_poll(w);
		rig_qp_reset(&w->qp);
		world_poll(w);
		world_connect(w);
		break;
	default:
		w->room = fuzz_u8(&w->in);
		w->room = w->room == 255 ? UINT32_MAX : w->room;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static FILE *quiet;

	/* The device's log lines are formatted, but not shown. */
	if (quiet == NULL) {
		quiet = fopen("/dev/null", "w");
		rte_openlog_stream(quiet);
	}
	world.in = (struct fuzz_in){data, len};
	world_begin(&world, fuzz_u8(&world.in));
	for (uint32_t n = 0; n < MAX_STEPS && world.in.left != 0; n++)
		step(&world);
	world_end(&world);
	return 0;
}
