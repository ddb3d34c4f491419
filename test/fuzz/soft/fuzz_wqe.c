/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Queues that the software device reads: send WQEs, receive WQEs, doorbell records, registers.
 * Each input has two connected QPs, a and b, with keys for the middle of their memory. First come
 * options, of the device and of the connection. Then come steps, enum step below; bit 7 of a
 * step's byte selects b as the poster.
 *
 * Invariants: no byte outside the keys is written. The device writes at most as many CQEs as
 * there were blocks. All objects can be destroyed at the end.
 */
#include <stdio.h>

#include <rte_log.h>

#include "fuzz_wqe.h"

#define MAX_STEPS 64

enum step {
	STEP_WQE,
	STEP_RECORD,
	STEP_STORE,
	STEP_BLUEFLAME,
	STEP_RECV,
	STEP_RUN,
	STEP_RAW_RECORD, /* both records with values of the input */
	STEP_RAW_STORE,
	STEP_MODIFY,
	STEP_REVIVE,
	STEP_POLL,
	STEP_MEMORY,
	STEPS,
	STEP_UMR = 127, /* with OPT_KEYS */
};

static uint64_t
some_address(struct world *w, const struct side *s)
{
	uint8_t kind = fuzz_u8(&w->in);

	if (kind < 128)
		return (uintptr_t)s->mem.p + (kind & 1 ? 1 : 8) * (uint64_t)fuzz_u8(&w->in);
	if (kind < 176)
		return (uintptr_t)s->mem.p + KEYED - fuzz_u8(&w->in);
	if (kind < 208)
		return (uintptr_t)s->mem.p - fuzz_u8(&w->in);
	return kind < 240 ? UINT64_MAX - fuzz_u8(&w->in) : fuzz_u64(&w->in);
}

/* Returns a key that UMRs change, in its state after the WQEs of soft_umr_env.h. */
static uint32_t
changed_key(const struct world *w, uint8_t kind)
{
	switch (kind % 3) {
	case 0:
		return (w->keys.one->rkey & ~0xffu) | 0x77;
	case 1:
		return (w->keys.two->rkey & ~0xffu) | 0x77;
	default:
		return w->keys.key;
	}
}

static uint32_t
some_key(struct world *w, const struct side *mine, const struct side *its)
{
	uint8_t kind = fuzz_u8(&w->in);

	if (kind < 160)
		return mine->mem.mr->lkey;
	if (kind < 184)
		return its->mem.mr->lkey;
	if (kind < 208)
		return mine->ro->lkey;
	if (kind < 224)
		return mine->other->lkey;
	if (kind >= 252 && w->options & OPT_KEYS)
		return changed_key(w, kind);
	return kind < 240 ? mine->mem.mr->lkey ^ 1u << (kind & 15) : fuzz_u32(&w->in);
}

static void
data_seg(struct world *w, void *seg, const struct side *mine, const struct side *its)
{
	uint8_t kind = fuzz_u8(&w->in);
	uint32_t len = kind < 192 ? kind : kind < 240 ? fuzz_u16(&w->in) : fuzz_u32(&w->in);
	uint32_t lkey = some_key(w, mine, its);

	mlx5dv_set_data_seg(seg, len, lkey, some_address(w, mine));
}

/* Writes the address of the other QP, with an error per bit. */
static void
address_vector(struct world *w, struct rig_qp *q, const struct side *its, uint32_t ds)
{
	uint8_t wrong = fuzz_u8(&w->in), gid = fuzz_u8(&w->in), seg[48], i;
	uint64_t qkey = wrong & 1 ? 0x22222222u : wrong & 2 ? 0x80000000u : RIG_QKEY;

	/* The setter writes 64 bits; the first half is the Q_Key. */
	mlx5dv_set_dgram_seg((void *)seg, qkey << 32, wrong & 4 ? 0xffffff : its->qp.qpn,
			     wrong & 8 ? 0 : 1, 0, 0, w->d.lid != 0 ? w->d.lid : 0xc001, w->d.mac,
			     0, wrong & 16 ? 0 : 64, (gid & 15u) << 20 | (gid & 16u) << 26,
			     w->d.gid.raw);
	if (wrong & 32)
		seg[20] ^= 1; /* an error in the MAC */
	if (wrong & 64)
		seg[40] ^= 1; /* an error in the GID */
	for (i = 0; i < 3; i++)
		memcpy(rig_seg(q, q->pi, ds + i), seg + (size_t)16 * i, 16);
}

/* Fills one segment or, for inline data, several. Returns their number. */
static uint32_t
segment(struct world *w, struct side *mine, const struct side *its, uint32_t ds)
{
	struct rig_qp *q = &mine->qp;
	uint8_t data[128], kind = fuzz_u8(&w->in);
	uint8_t *seg = rig_seg(q, q->pi, ds);
	uint64_t raddr;
	uint32_t n;

	if (kind >= 250) {
		address_vector(w, q, its, ds);
		return 3;
	}
	switch (kind % 6) {
	case 0:
		raddr = htobe64(some_address(w, its));
		memcpy(seg, &raddr, sizeof(raddr));
		n = htobe32(some_key(w, its, mine));
		memcpy(seg + 8, &n, sizeof(n));
		return 1;
	case 1:
	case 2:
		data_seg(w, seg, mine, its);
		return 1;
	case 3:
		n = fuzz_u8(&w->in) % sizeof(data);
		for (uint32_t i = 0; i < n; i++)
			data[i] = (uint8_t)(i + kind);
		return rig_inline(q, ds, data, n);
	case 4: /* swap, compare: small numbers, so that they sometimes match */
		memset(seg, 0, 16);
		seg[7] = fuzz_u8(&w->in);
		seg[15] = fuzz_u8(&w->in);
		return 1;
	default:
		for (uint32_t i = 0; i < 16; i++)
			seg[i] = fuzz_u8(&w->in);
		return 1;
	}
}

/* Posts a WQE of soft_umr_env.h on keys of the poster; the input then changes bytes of it. */
static void
step_umr(struct world *w, struct side *mine)
{
	uint8_t kind = fuzz_u8(&w->in), fm = fuzz_u8(&w->in), n = fuzz_u8(&w->in) % 8, more;
	struct keys *k = &w->keys;
	struct umr umr;
	size_t at;

	k->mem = mine->mem;
	k->p.b.qpn = mine->qp.qpn;
	switch (kind % 5) {
	case 0:
	case 1:
		umr = bind_make(k, kind % 5 == 1);
		break;
	case 2:
		umr = inv_make(changed_key(w, kind / 5));
		break;
	case 3:
		umr = list_make(k);
		break;
	default:
		umr = pattern_make(k);
		break;
	}
	while (n-- != 0) {
		at = offsetof(struct umr, u) + fuzz_u8(&w->in) % 176;
		((uint8_t *)&umr)[at] ^= fuzz_u8(&w->in);
	}
	more = fuzz_u8(&w->in);
	if (more >= 240)
		umr.ds ^= more & 15;
	more = fuzz_u8(&w->in);
	if (more >= 224)
		umr.key ^= 1u << (more & 31);
	else if (more >= 192)
		umr.key = some_key(w, mine, mine);
	umr_put(&mine->qp, &umr, fm);
}

static void
step_wqe(struct world *w, struct side *mine, struct side *its)
{
	uint8_t opcode = fuzz_u8(&w->in), fm = fuzz_u8(&w->in), n = fuzz_u8(&w->in) % 12, edits;
	uint32_t ds = 1, more;
	uint32_t imm = 0x12345678;
	uint8_t *ctrl = rig_seg(&mine->qp, mine->qp.pi, 0);

	while (n-- != 0)
		ds += segment(w, mine, its, ds);
	if (opcode == MLX5_OPCODE_SEND_INVAL && w->options & OPT_KEYS)
		imm = htobe32(some_key(w, its, mine));
	more = fuzz_u8(&w->in);
	if (more >= 200)
		ds = more & 63; /* announces another size than was filled */
	if (ds > 63)
		ds = 63;
	rig_wqe(&mine->qp, opcode, fm, ds, imm);
	edits = fuzz_u8(&w->in);
	if (edits >= 240)
		ctrl[edits & 15] ^= fuzz_u8(&w->in);
}

/* Posts the next WQE of the RMP, linked in a ring unless the input says otherwise. */
static void
step_recv_shared(struct world *w, struct side *mine, struct side *its, uint32_t n)
{
	struct rmp *r = &w->rmp;
	uint32_t idx = r->posted & ((1u << r->log) - 1), i;
	uint8_t *wqe = r->mem + ((size_t)idx << r->log_stride), *segs = wqe + r->head, more;
	uint32_t room = ((1u << r->log_stride) - r->head) / 16;

	rmp_wqe(r, idx, (uint16_t)((idx + 1) & ((1u << r->log) - 1)), NULL, 0, 0);
	for (i = 0; i < n && i < room; i++)
		data_seg(w, segs + (size_t)i * 16, mine, its);
	if (i < room)
		mlx5dv_set_data_seg((void *)(segs + (size_t)i * 16), 0, MLX5_INVALID_LKEY, 0);
	more = fuzz_u8(&w->in);
	if (more >= 240 && r->head != 0)
		wqe[2] ^= more; /* an error in the link */
	rmp_record(r, more >= 224 && more < 240 ? more & 15 : 1);
}

static void
step_recv(struct world *w, struct side *mine, struct side *its)
{
	struct rig_qp *q = &mine->qp;
	uint32_t n = fuzz_u8(&w->in) % 5, room, i;
	uint8_t *wqe;

	if (mine == &w->side[1] && w->options & OPT_SRQ) {
		step_recv_shared(w, mine, its, n);
		return;
	}
	if (q->rq == q->sq)
		return;
	room = (1u << q->log_stride) / 16;
	wqe = q->rq + ((size_t)(q->rq_pi & ((1u << q->log_rq) - 1)) << q->log_stride);
	for (i = 0; i < n && i < room; i++)
		data_seg(w, wqe + (size_t)i * 16, mine, its);
	if (i < room)
		mlx5dv_set_data_seg((void *)(wqe + (size_t)i * 16), 0, MLX5_INVALID_LKEY, 0);
	q->rq_pi++;
	if (fuzz_u8(&w->in) < 224)
		__atomic_store_n(&q->dbrec[0], htobe32(q->rq_pi), __ATOMIC_RELEASE);
}

static void
step_raw_store(struct world *w, struct side *s)
{
	uint32_t half = fuzz_u8(&w->in), i;
	uint8_t *reg = w->uar[half & 1].uar->reg_addr + (half & 2 ? 256 : 0);
	uint64_t v;

	for (i = 0; i <= (half >> 2) % 9; i++) {
		v = fuzz_u64(&w->in);
		if (i == 0 && half & 128)
			memcpy(&v, s->qp.head, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)reg + i, v, __ATOMIC_RELEASE);
	}
}

/* Executes one transition, towards the peer or not; a refusal changes nothing. */
static void
step_modify(struct world *w, struct side *mine, const struct side *its)
{
	static const uint16_t ops[] = {
		BB_PRM_OP_2ERR_QP,     BB_PRM_OP_2RST_QP,    BB_PRM_OP_RST2INIT_QP,
		BB_PRM_OP_INIT2RTR_QP, BB_PRM_OP_RTR2RTS_QP, BB_PRM_OP_RTS2RTS_QP,
	};
	uint8_t how = fuzz_u8(&w->in);
	uint16_t op = ops[how % 6];

	if (how & 128)
		world_link(w);
	(void)rig_qp_modify(&mine->qp, op, &w->d, how & 64 ? mine->qp.qpn : its->qp.qpn, &w->link);
}

static void
step_revive(struct world *w)
{
	for (uint32_t i = 0; i < 2; i++) {
		rig_qp_reset(&w->side[i].qp);
		world_poll(w, &w->side[i]);
	}
	world_link(w);
	world_connect(w);
}

static void
step(struct world *w)
{
	uint8_t what = fuzz_u8(&w->in);
	struct side *mine = &w->side[what >> 7], *its = &w->side[1 - (what >> 7)];
	uint32_t n;

	switch ((what & 127) == STEP_UMR ? STEP_UMR : (what & 127) % STEPS) {
	case STEP_UMR:
		if (w->options & OPT_KEYS)
			step_umr(w, mine);
		break;
	case STEP_WQE:
		step_wqe(w, mine, its);
		break;
	case STEP_RECORD:
		rig_record(&mine->qp);
		break;
	case STEP_STORE:
		rig_store(&mine->qp, what & 64 ? its->u : mine->u);
		break;
	case STEP_BLUEFLAME:
		/* The register holds four blocks. */
		if ((uint16_t)(mine->qp.pi - mine->qp.last) <= 4)
			rig_ring_bf(&mine->qp);
		else
			rig_ring(&mine->qp);
		break;
	case STEP_RECV:
		step_recv(w, mine, its);
		break;
	case STEP_RUN:
		world_run(w);
		break;
	case STEP_RAW_RECORD:
		n = fuzz_u8(&w->in) & 1;
		__atomic_store_n(&mine->qp.dbrec[n], fuzz_u32(&w->in), __ATOMIC_RELEASE);
		break;
	case STEP_RAW_STORE:
		step_raw_store(w, mine);
		break;
	case STEP_MODIFY:
		step_modify(w, mine, its);
		break;
	case STEP_REVIVE:
		step_revive(w);
		break;
	case STEP_POLL:
		world_poll(w, mine);
		break;
	default:
		n = fuzz_u16(&w->in) % KEYED;
		mine->mem.p[n] = fuzz_u8(&w->in);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct world w;
	static FILE *quiet;

	/* The device's log lines are formatted, but not shown. */
	if (quiet == NULL) {
		quiet = fopen("/dev/null", "w");
		rte_openlog_stream(quiet);
	}
	w.in = (struct fuzz_in){data, len};
	world_begin(&w);
	for (uint32_t n = 0; n < MAX_STEPS && w.in.left != 0; n++)
		step(&w);
	world_end(&w);
	return 0;
}
