/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of 2 GiB, the longest possible (IBTA vol. 1, 9.7.1). The buffers are mappings of a
 * file of a few MiB: different MiBs at both ends, the same MiB repeated in between. So they need
 * address space and time, but little memory.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "conform.h"

#define LONG LONG_MESSAGE
#define PART (UINT64_C(1) << 20)

/*
 * Returns a side's buffer, which stays for other rows. Page faults can take longer than a copy, so
 * the mappings fill the page table at once. The file has three parts: first, middle, last.
 */
static uint8_t *
buffer(struct fx *fx, unsigned int side)
{
	static uint8_t *made[2];
	uint8_t *base;
	void *p;
	int fd;

	if (made[side] != NULL)
		return made[side];
	p = mmap(NULL, LONG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(fx, p != MAP_FAILED, "no address space: %s", strerror(errno));
	base = p;
	fd = memfd_create("conform", 0);
	if (fd < 0 || ftruncate(fd, (off_t)(3 * PART)) != 0)
		p = MAP_FAILED;
	for (uint64_t at = 0; at < LONG && p != MAP_FAILED; at += PART) {
		uint64_t from = at == 0 ? 0 : at + PART < LONG ? PART : 2 * PART;

		p = mmap(base + at, PART, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)from);
	}
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED) {
		munmap(base, LONG);
		fail(fx, "no mapping of a memfd: %s", strerror(errno));
	}
	made[side] = base;
	return base;
}

/* Fills the three MiBs of the file. */
static void
fill(uint8_t *p, uint64_t seed)
{
	pattern(p, PART, seed);
	pattern(p + PART, PART, seed + 1);
	pattern(p + LONG - PART, PART, seed + 2);
}

static bool
same(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, 2 * PART) == 0 && memcmp(a + LONG - PART, b + LONG - PART, PART) == 0;
}

ROW(run_long)
{
	struct bb_sge sge[3], rsge;
	struct target t = {.imm = 0x01020304};
	uint8_t *a = buffer(fx, 0), *b = buffer(fx, 1);
	struct pair_opts o = fx_opts(fx);
	struct bb_mr *ma, *mb;
	struct pair p;
	struct bb_wc wc;
	double end;

	o.init.type = row->type;
	o.a.timeout = 0; /* no time limit */
	ma = fx_mr(fx, fx->a.pd, a, LONG, BB_ACCESS_LOCAL_WRITE);
	mb = fx_mr(fx, fx->b.pd, b, LONG,
		   BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ);
	p = fx_pair(fx, &o);
	fill(a, fx->seed);
	fill(b, fx->seed + 3);
	fx->seed += 6;
	sge[0] = (struct bb_sge){(uintptr_t)a, (uint32_t)LONG, ma->lkey};
	if (row->pieces == 3) {
		sge[0].len = 1;
		sge[1] = (struct bb_sge){(uintptr_t)a + 1, (uint32_t)LONG - 4096, ma->lkey};
		sge[2] = (struct bb_sge){(uintptr_t)a + 1 + LONG - 4096, 4095, ma->lkey};
	}
	rsge = (struct bb_sge){(uintptr_t)b, (uint32_t)LONG, mb->lkey};
	t.raddr = (uintptr_t)b;
	t.rkey = mb->rkey;
	if (row->op->takes_recv) {
		CHECK(fx, bb_post_recv(p.b, 7, &rsge, row->op->recv_data) == 0,
		      "the receive is not taken");
		bb_qp_ring_recv(p.b);
	}
	wc = complete(fx, fx->a.cq, p.a,
		      op_post(row->op, p.a, 8, sge, row->pieces, &t, BB_SEND_SIGNALED), 8,
		      BB_WC_SUCCESS, row->op->name);
	if (!row->op->to_target)
		CHECK(fx, wc.byte_len == LONG, "byte_len %u", wc.byte_len);
	if (row->op->takes_recv) {
		wc = expect_wc(fx, fx->b.cq, p.b, 7, BB_WC_SUCCESS, "the receive");
		CHECK(fx, wc.byte_len == LONG, "the receive: byte_len %u", wc.byte_len);
	}
	/* A completion on an unreliable QP proves nothing about the target. */
	for (end = now_s() + fx->timeout; row->type == BB_QPT_UC && !same(a, b) && now_s() < end;)
		fx_progress(fx);
	CHECK(fx, same(a, b), "the data differ");
	/* The packets were counted: the next request has the PSN that the target expects. */
	for (uint32_t i = 0; i < 2; i++) {
		complete(fx, fx->a.cq, p.a,
			 bb_post_write_inline(p.a, 9, "behind", 6, t.raddr + i * 8, t.rkey,
					      BB_SEND_SIGNALED),
			 9, BB_WC_SUCCESS, "a WRITE behind it");
	}
}

/* One byte more: a post of one piece rejects it, one of two pieces fails and moves no data. */
ROW(run_too_long)
{
	uint8_t *a = buffer(fx, 0), *b = buffer(fx, 1);
	struct bb_sge sge[2];
	struct bb_mr *ma, *mb;
	struct pair p;

	ma = fx_mr(fx, fx->a.pd, a, LONG, BB_ACCESS_LOCAL_WRITE);
	mb = fx_mr(fx, fx->b.pd, b, LONG, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE);
	p = fx_own_pair(fx);
	fill(a, fx->seed);
	fill(b, fx->seed);
	fx->seed += 3;
	b[0] ^= 0xff;
	sge[0] = (struct bb_sge){(uintptr_t)a, (uint32_t)LONG + 1, ma->lkey};
	CHECK(fx,
	      bb_post_write(p.a, 1, sge, 1, (uintptr_t)b, mb->rkey, BB_SEND_SIGNALED) == -EINVAL,
	      "a piece of 2^31 + 1 bytes is taken");
	sge[0].len = (uint32_t)LONG;
	sge[1] = (struct bb_sge){(uintptr_t)a, 1, ma->lkey};
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, 2, sge, 2, (uintptr_t)b, mb->rkey, BB_SEND_SIGNALED), 2,
		 BB_WC_LOC_LEN_ERR, "a message of 2^31 + 1 bytes");
	check_state(fx, p.a, BB_QP_ERR, "the requester's");
	CHECK(fx, b[0] != a[0], "something was written");
}

void
rows_long(struct rows *rows)
{
	static const struct {
		enum bb_qp_type type;
		const char *op;
		uint32_t pieces;
	} cells[] = {
		{BB_QPT_RC, "write", 1}, {BB_QPT_RC, "write", 3}, {BB_QPT_RC, "write_imm", 1},
		{BB_QPT_RC, "send", 1},  {BB_QPT_RC, "read", 1},  {BB_QPT_UC, "write", 1},
		{BB_QPT_UC, "send", 1},
	};
	const char *type;
	struct row *row;

	for (unsigned int i = 0; i < RTE_DIM(cells); i++) {
		type = cells[i].type == BB_QPT_RC ? "rc" : "uc";
		row = row_add(rows, "ibv_post_send(3)", run_long, "long/2-gib", "%s/%s/%u-piece",
			      type, cells[i].op, cells[i].pieces);
		row->type = cells[i].type;
		row->op = op_find(cells[i].op);
		row->pieces = cells[i].pieces;
		row->needs = NEED_LONG | NEED_MEMORY;
	}
	row_add(rows, "ibv_post_send(3)", run_too_long, "long/over-2-gib", "refused")->needs =
		NEED_LONG | NEED_MEMORY;
}
