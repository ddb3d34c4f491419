/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * One request from A to B. Both arenas get their own pattern in the window that the row checks. A
 * copy of each is changed as the request should change it. At the end every byte is compared.
 */
#include "conform.h"

void
pattern(void *mem, size_t len, uint64_t seed)
{
	uint8_t *p = mem;
	uint64_t x = seed * 0x9e3779b97f4a7c15u, z;

	while (len != 0) {
		size_t n = RTE_MIN(len, sizeof(z));

		x += 0x9e3779b97f4a7c15u;
		z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
		z ^= z >> 27;
		memcpy(p, &z, n);
		p += n;
		len -= n;
	}
}

uint64_t
addr_of(const struct side *s, uint32_t off)
{
	return (uintptr_t)s->mem + off;
}

struct bb_sge
sge_of(const struct side *s, uint32_t off, uint32_t len)
{
	return (struct bb_sge){addr_of(s, off), len, s->mr->lkey};
}

uint64_t
sge_total(const struct bb_sge *sge, uint32_t n)
{
	uint64_t sum = 0;

	while (n-- > 0)
		sum += sge[n].len;
	return sum;
}

void
xfer_init(struct xfer *x, const struct op *op, struct pair p)
{
	memset(x, 0, sizeof(*x));
	x->op = op;
	x->p = p;
	x->len = op->atomic ? 8 : 64;
	x->nsge = 1;
	x->nrecv = 1;
	x->flags = BB_SEND_SIGNALED;
}

/* Places pieces of unequal length, the first one last in memory, with gaps. Returns their end. */
static uint32_t
place(const struct side *s, struct bb_sge *sge, uint32_t n, uint32_t off, uint32_t len)
{
	uint32_t i, at = off;

	for (i = n; i-- > 0;) {
		uint64_t from = (uint64_t)len * i / n, to = (uint64_t)len * (i + 1) / n;

		sge[i] = sge_of(s, at, (uint32_t)(to - from));
		at += sge[i].len + (n > 1 ? 24 + i % 7 : 0);
	}
	return at;
}

/* Moves the bytes in @dst's expected copy. */
static void
image_move(struct side *dst, const struct bb_sge *to, const struct bb_sge *from, uint32_t n_from)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < n_from; i++) {
		const uint8_t *src = (const uint8_t *)(uintptr_t)from[i].addr;
		uint64_t left = from[i].len;

		while (left != 0) {
			uint64_t n = RTE_MIN(left, to->len - used);

			memcpy(dst->want + (to->addr - (uintptr_t)dst->mem) + used, src, n);
			src += n;
			left -= n;
			used += n;
			if (used == to->len) {
				to++;
				used = 0;
			}
		}
	}
}

static void
expect_atomic(struct fx *fx, struct xfer *x)
{
	uint8_t *at = fx->b.want + (x->t.raddr - (uintptr_t)fx->b.mem);
	uint64_t old, new;

	memcpy(&old, at, 8);
	if (x->op->wc == BB_WC_FETCH_ADD)
		new = old + x->t.swap_add;
	else
		new = old == x->t.compare ? x->t.swap_add : old;
	memcpy(at, &new, 8);
	memcpy(fx->a.want + (x->sge[0].addr - (uintptr_t)fx->a.mem), &old, 8);
}

static void
post_receive(struct fx *fx, struct xfer *x)
{
	uint32_t n = x->op->recv_data ? x->nrecv : 0;
	int ret;

	x->recv_id = fx->wr_id++;
	ret = bb_post_recv(x->p.b, x->recv_id, x->rsge, n);
	CHECK(fx, ret == 0, "posting the receive: returned %d", ret);
	bb_qp_ring_recv(x->p.b);
}

void
xfer_prepare(struct fx *fx, struct xfer *x)
{
	const struct op *op = x->op;
	uint32_t off = GUARD + x->shift, end_a, end_b;

	if (op->atomic)
		off &= ~7u;
	x->wr_id = fx->wr_id++;
	x->received = false;
	end_a = place(&fx->a, x->sge, x->nsge, off, x->len);
	end_b = place(&fx->b, x->rsge, op->recv_data ? x->nrecv : 1, off, x->len);
	x->window = RTE_MAX(end_a, end_b) + GUARD;
	CHECK(fx, x->window <= ARENA, "the row wants %u bytes of memory", x->window);
	pattern(fx->a.mem, x->window, fx->seed++);
	pattern(fx->b.mem, x->window, fx->seed++);
	memcpy(fx->a.want, fx->a.mem, x->window);
	memcpy(fx->b.want, fx->b.mem, x->window);
	x->t.raddr = addr_of(&fx->b, off);
	x->t.rkey = fx->b.mr->rkey;
	/* All bytes differ, so that a wrong order shows. */
	x->t.imm = 0x01020304u * (uint32_t)(x->wr_id % 63 + 1);
	if (op->atomic) {
		memcpy(&x->t.compare, fx->b.mem + off, 8);
		x->t.swap_add = x->operand != 0 ? x->operand : x->t.compare ^ 0x123456789abcdefu;
		x->t.compare ^= x->miss;
		expect_atomic(fx, x);
	} else if (op->to_target) {
		image_move(&fx->b, x->rsge, x->sge, x->nsge);
	} else if (op->has_raddr) {
		image_move(&fx->a, x->sge, x->rsge, 1);
	}
	if (op->takes_recv)
		post_receive(fx, x);
}

void
xfer_expect_nothing(struct fx *fx, struct xfer *x)
{
	memcpy(fx->a.want, fx->a.mem, x->window);
	memcpy(fx->b.want, fx->b.mem, x->window);
	x->received = true;
}

void
xfer_post(struct fx *fx, struct xfer *x)
{
	static uint8_t data[65536];
	uint64_t at = 0;
	int ret;

	if (x->use_list) {
		uint32_t flags = x->flags | (x->use_inline ? BB_SEND_INLINE : 0);
		int err = -1;

		ret = op_post_list(x->op, x->p.a, x->wr_id, x->sge, x->nsge, &x->t, flags, &err) ==
				      1
			      ? 0
			      : -EAGAIN;
		CHECK(fx, err == 0, "posting a list: error %d", err);
		/* Inline data are copied: the pieces may change before the doorbell. */
		for (uint32_t i = 0; x->use_inline && i < x->nsge; i++) {
			memset((void *)(uintptr_t)x->sge[i].addr, 0xee, x->sge[i].len);
			memset(fx->a.want + (x->sge[i].addr - (uintptr_t)fx->a.mem), 0xee,
			       x->sge[i].len);
		}
	} else if (x->use_inline) {
		for (uint32_t i = 0; i < x->nsge; i++) {
			memcpy(data + at, (const void *)(uintptr_t)x->sge[i].addr, x->sge[i].len);
			at += x->sge[i].len;
		}
		ret = op_post_inline(x->op, x->p.a, x->wr_id, data, (uint32_t)at, &x->t, x->flags);
		/* The buffer may be reused on return, before the doorbell. */
		memset(data, 0xee, at);
	} else {
		ret = op_post(x->op, x->p.a, x->wr_id, x->sge, x->nsge, &x->t, x->flags);
	}
	CHECK(fx, ret == 0, "posting %s: returned %d", x->op->name, ret);
	bb_qp_ring(x->p.a);
}

static void
compare(struct fx *fx, const struct side *s, uint32_t window, const char *whose)
{
	uint32_t i, bad = 0, first = 0;

	if (memcmp(s->mem, s->want, window) == 0)
		return;
	for (i = window; i-- > 0;) {
		if (s->mem[i] != s->want[i]) {
			bad++;
			first = i;
		}
	}
	fail(fx,
	     "%s memory: %u bytes differ, the first at %d from the guard: 0x%02x, expected 0x%02x",
	     whose, bad, (int)first - (int)GUARD, s->mem[first], s->want[first]);
}

void
xfer_check_recv(struct fx *fx, struct xfer *x)
{
	uint8_t flags = 0;
	struct bb_wc wc;

	wait_wc(fx, fx->b.cq, &wc, 1, "the receive");
	x->received = true;
	check_wc(fx, &wc, x->p.b, x->recv_id, BB_WC_SUCCESS, "the receive");
	CHECK(fx, wc.opcode == x->op->recv_wc, "the receive: opcode %u, expected %u", wc.opcode,
	      x->op->recv_wc);
	CHECK(fx, wc.byte_len == x->len, "the receive: byte_len %u, expected %u", wc.byte_len,
	      x->len);
	if (x->op->has_imm)
		flags |= BB_WC_WITH_IMM;
	if ((x->flags & BB_SEND_SOLICITED) != 0 && fx->b.attr.wc_solicited)
		flags |= BB_WC_SOLICITED;
	CHECK(fx, wc.flags == flags, "the receive: flags 0x%x, expected 0x%x", wc.flags, flags);
	if (x->op->has_imm)
		CHECK(fx, wc.imm == x->t.imm, "the receive: immediate 0x%08x, expected 0x%08x",
		      wc.imm, x->t.imm);
}

/*
 * Compares memory that a device's thread may be writing. memcmp() may return 0 if a differing
 * byte changes before it is read again (glibc bug 29863).
 */
static bool
arrived(const uint8_t *mem, const uint8_t *want, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (__atomic_load_n(&mem[i], __ATOMIC_RELAXED) != want[i])
			return false;
	return true;
}

/* There is no notice when a message on an unreliable connection arrives. */
static void
wait_data(struct fx *fx, const struct xfer *x)
{
	double end = now_s() + fx->timeout;

	while (!arrived(fx->b.mem, fx->b.want, x->window) && now_s() < end)
		fx_progress(fx);
}

void
xfer_check_data(struct fx *fx, const struct xfer *x)
{
	CHECK(fx, !x->op->recv_data || x->received,
	      "the row looks at a SEND's data before its receive has completed");
	/* An iWARP completion means that TCP has the bytes, not that they arrived. */
	if (fx->b.attr.iwarp)
		wait_data(fx, x);
	compare(fx, &fx->b, x->window, "the target's");
	compare(fx, &fx->a, x->window, "the requester's");
}

void
settle_one(struct fx *fx, struct xfer *x)
{
	struct bb_wc wc;

	if ((x->flags & BB_SEND_SIGNALED) != 0 || x->signal_all) {
		wait_wc(fx, fx->a.cq, &wc, 1, x->op->name);
		if (x->unreliable && !x->op->recv_data)
			wait_data(fx, x);
		/* Checked at once, so that a completion before its data shows. */
		if (!x->op->recv_data)
			xfer_check_data(fx, x);
		check_wc(fx, &wc, x->p.a, x->wr_id, BB_WC_SUCCESS, x->op->name);
		CHECK(fx, wc.opcode == x->op->wc, "%s: opcode %u, expected %u", x->op->name,
		      wc.opcode, x->op->wc);
		if (!x->op->to_target && x->op->has_raddr)
			CHECK(fx, wc.byte_len == x->len, "%s: byte_len %u, expected %u",
			      x->op->name, wc.byte_len, x->len);
	}
	settle(fx, x->p.a, fx->a.cq);
	if (x->unreliable && !x->op->recv_data)
		wait_data(fx, x);
	if (x->op->takes_recv)
		xfer_check_recv(fx, x);
	check_quiet(fx, fx->b.cq, "at the target");
}

void
xfer_run(struct fx *fx, struct xfer *x)
{
	xfer_prepare(fx, x);
	xfer_post(fx, x);
	settle_one(fx, x);
	xfer_check_data(fx, x);
}

void
check_alive(struct fx *fx, struct pair p)
{
	struct xfer x;

	xfer_init(&x, op_find("write"), p);
	xfer_run(fx, &x);
}
