/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Regions with addresses other than their virtual ones (ZERO_BASED, an iova), re-registration,
 * and pages that come and go (ON_DEMAND).
 */
#include <sys/mman.h>

#include "conform.h"

#define LW  BB_ACCESS_LOCAL_WRITE
#define RW  BB_ACCESS_REMOTE_WRITE
#define RR  BB_ACCESS_REMOTE_READ
#define RA  BB_ACCESS_REMOTE_ATOMIC
#define ODP BB_ACCESS_ON_DEMAND
#define LEN 8192u

static void
undo_mr(void *mr)
{
	(void)bb_mr_dereg(mr);
}

static struct bb_mr *
mr_iova(struct fx *fx, struct bb_pd *pd, void *addr, size_t len, uint64_t iova, uint32_t access)
{
	struct bb_mr *mr;

	OK(fx, bb_mr_reg_iova(pd, addr, len, iova, access, &mr));
	fx_defer(fx, undo_mr, mr);
	return mr;
}

/*
 * WRITEs 100 bytes of A's arena to @raddr of @rkey. They arrive at @at, or the status is @want.
 */
static void
write_to(struct fx *fx, struct pair p, uint64_t raddr, uint32_t rkey, const uint8_t *at,
	 enum bb_wc_status want)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 100);
	uint64_t id = fx->wr_id++;

	pattern(fx->a.mem + GUARD, 100, fx->seed++);
	complete(fx, fx->a.cq, p.a, bb_post_write(p.a, id, &sge, 1, raddr, rkey, BB_SEND_SIGNALED),
		 id, want, "a WRITE");
	if (want == BB_WC_SUCCESS)
		CHECK(fx, memcmp(at, fx->a.mem + GUARD, 100) == 0,
		      "a WRITE is not where it belongs");
	else
		wait_refusal(fx, "a WRITE");
}

/* Makes a pair that the row may break. */
static struct pair
own_pair(struct fx *fx, struct bb_pd *pd_b)
{
	struct pair_opts o = fx_opts(fx);

	if (pd_b != NULL)
		o.pd_b = pd_b;
	return fx_pair(fx, &o);
}

/* ---- Other addresses of the memory */

ROW(run_named)
{
	uint64_t base = row->n == 0 ? 0 : 0x7000000000 + row->n;
	uint8_t *mem = fx->b.mem + 4096 + (base & 4095);
	struct pair p = fx_shared(fx);
	struct bb_sge sge;
	struct bb_lkey_cache cache;
	struct bb_mr *mr;

	if (row->n == 0)
		mr = fx_mr(fx, fx->b.pd, mem, LEN, fx->access | BB_ACCESS_ZERO_BASED);
	else
		mr = mr_iova(fx, fx->b.pd, mem, LEN, base, fx->access);
	CHECK(fx, mr->iova == base && mr->addr == mem && mr->len == LEN,
	      "struct bb_mr does not say what was registered");
	write_to(fx, p, base, mr->rkey, mem, BB_WC_SUCCESS);
	write_to(fx, p, base + LEN - 100, mr->rkey, mem + LEN - 100, BB_WC_SUCCESS);
	/* As local memory of B, too. */
	sge = (struct bb_sge){base + 500, 100, mr->lkey};
	CHECK(fx, bb_post_recv(p.b, 8, &sge, 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(p.b);
	CHECK(fx, bb_post_send_inline(p.a, 9, "named", 5, 0) == 0, "the SEND is not taken");
	bb_qp_ring(p.a);
	expect_wc(fx, fx->b.cq, p.b, 8, BB_WC_SUCCESS, "the receive");
	CHECK(fx, memcmp(mem + 500, "named", 5) == 0, "the receive is not where it belongs");
	settle(fx, p.a, fx->a.cq);
	/* A lookup returns only a key that uses the virtual address. */
	bb_lkey_cache_init(&cache, fx->b.pd);
	CHECK(fx, bb_mem_lkey(&cache, mem, 100) != mr->lkey, "the lookup gives its key");
}

ROW(run_named_range)
{
	uint8_t *mem = fx->b.mem + 4096;
	struct bb_mr *mr = fx_mr(fx, fx->b.pd, mem, LEN, fx->access | BB_ACCESS_ZERO_BASED);
	uint64_t raddr = row->n == 0 ? LEN - 99 : row->n == 1 ? UINT64_MAX - 49 : (uintptr_t)mem;

	write_to(fx, own_pair(fx, NULL), raddr, mr->rkey, NULL, BB_WC_REM_ACCESS_ERR);
}

ROW(run_named_refused)
{
	struct bb_mr *mr = NULL;

	if (row->n == 0)
		REFUSED(fx, bb_mr_reg(fx->a.pd, fx->a.mem + 64, 64, LW | BB_ACCESS_ZERO_BASED, &mr),
			-EINVAL, "page");
	else if (row->n == 1)
		REFUSED(fx, bb_mr_reg_iova(fx->a.pd, fx->a.mem, 4096, 64, LW, &mr), -EINVAL,
			"page");
	else
		REFUSED(fx, bb_mr_reg_iova(fx->a.pd, fx->a.mem, 8192, UINT64_MAX - 4095, LW, &mr),
			-EINVAL, "2^64");
	CHECK(fx, mr == NULL, "a refused call wrote its out-pointer");
}

/* ---- Optional rights */

ROW(run_relaxed)
{
	struct bb_mr *mr =
		fx_mr(fx, fx->b.pd, fx->b.mem + 4096, LEN, fx->access | BB_ACCESS_RELAXED_ORDERING);
	uint32_t bit = mr->access & BB_ACCESS_RELAXED_ORDERING;

	CHECK(fx, (bit != 0) == (row->n != 0), "struct bb_mr says the right is %sin force",
	      bit != 0 ? "" : "not ");
	write_to(fx, fx_shared(fx), (uintptr_t)fx->b.mem + 5000, mr->rkey, fx->b.mem + 5000,
		 BB_WC_SUCCESS);
}

/* Unknown bits of the optional range are no error. */
ROW(run_optional)
{
	struct bb_mr *mr = fx_mr(fx, fx->b.pd, fx->b.mem, 4096, LW | 1u << 25);

	CHECK(fx, mr->access == LW, "access is 0x%x, an unknown option is in force", mr->access);
}

/* ---- Re-registration */

struct change {
	const char *name;
	uint32_t flags;
};

static const struct change changes[] = {
	{"translation", BB_MR_REREG_TRANSLATION},
	{"pd", BB_MR_REREG_PD},
	{"access", BB_MR_REREG_ACCESS},
	{"translation+pd", BB_MR_REREG_TRANSLATION | BB_MR_REREG_PD},
	{"translation+access", BB_MR_REREG_TRANSLATION | BB_MR_REREG_ACCESS},
	{"pd+access", BB_MR_REREG_PD | BB_MR_REREG_ACCESS},
	{"all", BB_MR_REREG_TRANSLATION | BB_MR_REREG_PD | BB_MR_REREG_ACCESS},
};

ROW(run_rereg)
{
	uint32_t flags = row->n, access = 0;
	uint8_t *old = fx->b.mem + 4096, *now = old;
	struct bb_pd *pd = fx_pd(fx, &fx->b);
	struct pair p;
	struct bb_mr *mr;
	uint32_t old_key;
	size_t len = LEN;

	OK(fx, bb_mr_reg(fx->b.pd, old, LEN, LW | RR, &mr));
	fx_defer(fx, undo_mr, mr);
	old_key = mr->rkey;
	if (flags & BB_MR_REREG_TRANSLATION) {
		now = fx->b.mem + 65536;
		len = 4096;
	}
	if (flags & BB_MR_REREG_ACCESS)
		access = LW | RW;
	OK(fx, bb_mr_rereg(mr, flags, (flags & BB_MR_REREG_PD) ? pd : NULL,
			   (flags & BB_MR_REREG_TRANSLATION) ? now : NULL,
			   (flags & BB_MR_REREG_TRANSLATION) ? len : 0, access));
	CHECK(fx, mr->addr == now && mr->len == len && mr->iova == (uintptr_t)now,
	      "struct bb_mr does not name the memory");
	CHECK(fx, mr->pd == ((flags & BB_MR_REREG_PD) ? pd : fx->b.pd), "nor the PD");
	CHECK(fx, mr->access == ((flags & BB_MR_REREG_ACCESS) ? LW | RW : LW | RR),
	      "nor the rights");
	p = own_pair(fx, mr->pd);
	write_to(fx, p, (uintptr_t)now, mr->rkey, now,
		 (flags & BB_MR_REREG_ACCESS) ? BB_WC_SUCCESS : BB_WC_REM_ACCESS_ERR);
	/* The old key is dead, or has the meaning of the new one. */
	if (flags & BB_MR_REREG_TRANSLATION)
		write_to(fx, own_pair(fx, mr->pd), (uintptr_t)old, old_key, NULL,
			 BB_WC_REM_ACCESS_ERR);
	if (flags & BB_MR_REREG_PD)
		write_to(fx, own_pair(fx, fx->b.pd), (uintptr_t)now, mr->rkey, NULL,
			 BB_WC_REM_ACCESS_ERR);
	/* The PD holds the MR again and cannot be freed. */
	if (flags & BB_MR_REREG_PD)
		REFUSED(fx, bb_pd_free(pd), -EBUSY, "MR");
	fx_forget(fx, mr);
	OK(fx, bb_mr_dereg(mr));
}

struct bad {
	const char *name;
	uint32_t flags;
	int pd; /* 0: none, 1: its own, 2: another device's */
	uintptr_t addr;
	size_t len;
	uint32_t access;
	int err;
};

static const struct bad bads[] = {
	{"no-flags", 0, 0, 0, 0, 0, -EINVAL},
	{"unknown-flag", 8, 0, 0, 0, 0, -EINVAL},
	{"no-memory", BB_MR_REREG_TRANSLATION, 0, 0, 0, 0, -EINVAL},
	{"empty-memory", BB_MR_REREG_TRANSLATION, 0, 4096, 0, 0, -EINVAL},
	{"memory-wraps", BB_MR_REREG_TRANSLATION, 0, 4096, SIZE_MAX - 4095, 0, -EINVAL},
	{"memory-not-mapped", BB_MR_REREG_TRANSLATION, 0, 4096, 4096, 0, -EFAULT},
	{"no-pd", BB_MR_REREG_PD, 0, 0, 0, 0, -EINVAL},
	{"access-without-flag", BB_MR_REREG_PD, 1, 0, 0, LW, -EINVAL},
	{"write-without-local-write", BB_MR_REREG_ACCESS, 0, 0, 0, RW, -EINVAL},
	{"unknown-right", BB_MR_REREG_ACCESS, 0, 0, 0, 1u << 15, -EINVAL},
	{"zero-based", BB_MR_REREG_ACCESS, 0, 0, 0, LW | BB_ACCESS_ZERO_BASED, -EINVAL},
};

ROW(run_rereg_refused)
{
	const struct bad *bad = row->arg;
	uint8_t *mem = fx->b.mem + 4096;
	struct bb_mr *mr, before;

	OK(fx, bb_mr_reg(fx->b.pd, mem, LEN, fx->access, &mr));
	fx_defer(fx, undo_mr, mr);
	before = *mr;
	REFUSED(fx,
		bb_mr_rereg(mr, bad->flags, bad->pd != 0 ? fx->b.pd : NULL, (void *)bad->addr,
			    bad->len, bad->access),
		bad->err, "regist");
	CHECK(fx, memcmp(mr, &before, sizeof(before)) == 0,
	      "a refused bb_mr_rereg() changed the MR");
	write_to(fx, fx_shared(fx), (uintptr_t)mem, mr->rkey, mem, BB_WC_SUCCESS);
}

/* ---- On demand */

static void
undo_map(void *mem)
{
	munmap(mem, 65536);
}

static uint8_t *
map(struct fx *fx)
{
	uint8_t *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fx, p != MAP_FAILED, "mmap(): %s", strerror(errno));
	fx_defer(fx, undo_map, p);
	return p;
}

/*
 * Removes the pages but keeps the addresses reserved: another thread or a sanitizer may map
 * memory.
 */
static void
unmap(struct fx *fx, uint8_t *mem)
{
	CHECK(fx,
	      mmap(mem, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		   -1, 0) == mem,
	      "mmap(): %s", strerror(errno));
}

/* A peer reaches pages that were never touched, or were mapped after the registration. */
ROW(run_paged)
{
	uint8_t *mem = map(fx);
	struct pair p = fx_shared(fx);
	struct bb_sge sge = sge_of(&fx->a, GUARD, 64);
	struct bb_mr *mr;

	if (row->n == 1)
		unmap(fx, mem);
	mr = fx_mr(fx, fx->b.pd, mem, 65536, LW | RW | RR | ODP);
	CHECK(fx, mr->lkey == BB_LKEY_NONE, "it has an lkey, and queues made by DEVX cannot fault");
	if (row->n == 1)
		CHECK(fx,
		      mmap(mem, 65536, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem,
		      "mmap(): %s", strerror(errno));
	write_to(fx, p, (uintptr_t)mem + 4000, mr->rkey, mem + 4000, BB_WC_SUCCESS);
	complete(fx, fx->a.cq, p.a,
		 bb_post_read(p.a, 1, &sge, 1, (uintptr_t)mem + 4000, mr->rkey, BB_SEND_SIGNALED),
		 1, BB_WC_SUCCESS, "a READ");
	CHECK(fx, memcmp(mem + 4000, fx->a.mem + GUARD, 64) == 0, "a READ brought other bytes");
}

/* Unmapped memory fails for the peer, without any other harm. */
ROW(run_unmapped)
{
	uint8_t *mem = map(fx);
	struct bb_mr *mr = fx_mr(fx, fx->b.pd, mem, 65536, LW | RW | ODP);

	write_to(fx, fx_shared(fx), (uintptr_t)mem, mr->rkey, mem, BB_WC_SUCCESS);
	unmap(fx, mem);
	write_to(fx, own_pair(fx, NULL), (uintptr_t)mem, mr->rkey, NULL, BB_WC_REM_OP_ERR);
}

ROW(run_implicit)
{
	struct bb_mr *mr = fx_mr(fx, fx->b.pd, NULL, SIZE_MAX, LW | RW | ODP);
	uint8_t *mem = map(fx);

	write_to(fx, fx_shared(fx), (uintptr_t)mem + 123, mr->rkey, mem + 123, BB_WC_SUCCESS);
}

ROW(run_no_odp)
{
	struct bb_mr *mr = NULL;

	REFUSED(fx, bb_mr_reg(fx->a.pd, fx->a.mem, 4096, LW | ODP, &mr), -ENOTSUP, "on-demand");
	CHECK(fx, mr == NULL, "a refused bb_mr_reg() wrote its out-pointer");
}

void
rows_mr(struct rows *rows)
{
	static const char *const zero_range[] = {"behind-end", "past-2^64", "by-its-address"};
	static const char *const refused[] = {"zero-based-off-page", "iova-off-page", "iova-wraps"};
	struct row *row;

	row_add(rows, "ibv_reg_mr(3)", run_named, "memory/mr/zero-based", "use")->n = 0;
	for (unsigned int i = 0; i < 3; i++)
		row_add(rows, "ibv_reg_mr(3)", run_named_range, "memory/mr/zero-based", "%s",
			zero_range[i])
			->n = i;
	row_add(rows, "ibv_reg_mr(3)", run_named, "memory/mr/iova", "on-a-page")->n = 4096;
	row_add(rows, "ibv_reg_mr(3)", run_named, "memory/mr/iova", "off-a-page")->n = 4096 + 33;
	for (unsigned int i = 0; i < 3; i++)
		row_add(rows, "ibv_reg_mr(3)", run_named_refused, "memory/mr/iova-refused", "%s",
			refused[i])
			->n = i;
	row = row_add(rows, "ibv_reg_mr(3)", run_relaxed, "memory/mr/relaxed-ordering", "write");
	row->n = 1;
	row->needs = NEED_RELAXED;
	row_add(rows, "ibv_reg_mr(3)", run_relaxed, "memory/mr/relaxed-ordering", "ignored")
		->needs = NEED_NO_RELAXED;
	row_add(rows, "ibv_reg_mr(3)", run_optional, "memory/mr/unknown-option", "ignored");
	for (unsigned int i = 0; i < RTE_DIM(changes); i++) {
		row = row_add(rows, "ibv_rereg_mr(3)", run_rereg, "memory/mr/re-register", "%s",
			      changes[i].name);
		row->n = changes[i].flags;
		row->needs = NEED_REREG;
	}
	for (unsigned int i = 0; i < RTE_DIM(bads); i++) {
		row = row_add(rows, "ibv_rereg_mr(3)", run_rereg_refused,
			      "memory/mr/re-register-refused", "%s", bads[i].name);
		row->arg = &bads[i];
		row->needs = NEED_REREG;
	}
	for (unsigned int i = 0; i < 2; i++) {
		row = row_add(rows, "ibv_reg_mr(3)", run_paged, "memory/mr/on-demand", "%s",
			      i == 0 ? "untouched" : "mapped-later");
		row->n = i;
		row->needs = NEED_ODP | NEED_PROCESS_VM;
	}
	/* Assumed: the status that a peer gets for a failed page fault. */
	row_add(rows, ASSUMED, run_unmapped, "memory/mr/on-demand", "unmapped")->needs =
		NEED_ODP | NEED_PROCESS_VM;
	row_add(rows, "ibv_reg_mr(3)", run_implicit, "memory/mr/on-demand", "whole-address-space")
		->needs = NEED_ODP_IMPLICIT | NEED_PROCESS_VM;
	row_add(rows, "ibv_reg_mr(3)", run_no_odp, "memory/mr/no-on-demand", "refused")->needs =
		NEED_NO_ODP;
}
