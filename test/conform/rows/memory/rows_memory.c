/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory regions: valid and rejected registrations, and the keys' effect. */
#include <sys/mman.h>
#include <unistd.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include "conform.h"

#define MAN  "ibv_reg_mr(3)"
#define SIZE 65536u

/* ---- Refusals */

struct refusal {
	const char *name;
	uintptr_t addr; /* 0: the arena */
	size_t len;
	uint32_t access;
	int err;
	const char *word;
};

#define LW BB_ACCESS_LOCAL_WRITE
#define RW BB_ACCESS_REMOTE_WRITE
#define RR BB_ACCESS_REMOTE_READ
#define RA BB_ACCESS_REMOTE_ATOMIC

static const struct refusal refusals[] = {
	{"empty", 0, 0, LW, -EINVAL, "length is 0"},
	{"past-2^64", 0, SIZE_MAX - 4095, LW, -EINVAL, "address space"},
	{"wraps", UINTPTR_MAX - 100, 4096, LW, -EINVAL, "address space"},
	{"unknown-right", 0, 4096, LW | 1u << 12, -EINVAL, "right"},
	{"write-without-local-write", 0, 4096, RW, -EINVAL, "LOCAL_WRITE"},
	{"write-read-without-local-write", 0, 4096, RW | RR, -EINVAL, "LOCAL_WRITE"},
	{"atomic-without-local-write", 0, 4096, RA, -EINVAL, "LOCAL_WRITE"},
	{"all-remote-without-local-write", 0, 4096, RW | RR | RA, -EINVAL, "LOCAL_WRITE"},
};

static void
check_same_mrs(struct fx *fx, struct bb_pd *pd, const struct bb_mem_stats *before)
{
	struct bb_mem_stats now;

	OK(fx, bb_mem_stats(pd, &now));
	CHECK(fx, now.mrs == before->mrs && now.bytes == before->bytes,
	      "a refused registration is counted: %u MRs, before %u", now.mrs, before->mrs);
}

ROW(run_refused)
{
	const struct refusal *r = row->arg;
	struct bb_mem_stats before;
	struct bb_mr *mr = NULL;
	void *addr = r->addr != 0 ? (void *)r->addr : fx->a.mem;

	OK(fx, bb_mem_stats(fx->a.pd, &before));
	REFUSED(fx, bb_mr_reg(fx->a.pd, addr, r->len, r->access, &mr), r->err, r->word);
	CHECK(fx, mr == NULL, "a refused bb_mr_reg() wrote its out-pointer");
	check_same_mrs(fx, fx->a.pd, &before);
}

static void
undo_map(void *arg)
{
	munmap(arg, SIZE);
}

static uint8_t *
map(struct fx *fx, int prot, int flags, int fd)
{
	uint8_t *p = mmap(NULL, SIZE, prot, flags, fd, 0);

	CHECK(fx, p != MAP_FAILED, "mmap(): %s", strerror(errno));
	fx_defer(fx, undo_map, p);
	return p;
}

enum hole {
	NOT_MAPPED,
	HALF_MAPPED,
	NO_ACCESS,
	READ_ONLY_TO_WRITE,
};

/* Memory that is unmapped or read-only: -EFAULT (mm/gup.c by ib_umem_get()). */
ROW(run_fault)
{
	struct bb_mem_stats before;
	struct bb_mr *mr = NULL;
	uint8_t *p;

	p = map(fx,
		row->n >= NO_ACCESS ? PROT_READ * (row->n == READ_ONLY_TO_WRITE)
				    : PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (row->n <= HALF_MAPPED)
		munmap(p + SIZE / 2, SIZE / 2);
	OK(fx, bb_mem_stats(fx->a.pd, &before));
	if (row->n == NOT_MAPPED)
		REFUSED(fx, bb_mr_reg(fx->a.pd, p + SIZE / 2, 4096, LW, &mr), -EFAULT, "mapped");
	else
		REFUSED(fx, bb_mr_reg(fx->a.pd, p, SIZE, LW, &mr), -EFAULT, "mapped");
	CHECK(fx, mr == NULL, "a refused bb_mr_reg() wrote its out-pointer");
	check_same_mrs(fx, fx->a.pd, &before);
}

/* ---- Kinds of memory */

enum kind {
	HEAP,
	ANONYMOUS,
	SHARED,
	A_FILE,
	MALLOC,
	EXTMEM,
	READ_ONLY,
	KINDS,
};

static const char *const kind_name[KINDS] = {
	"eal-heap", "anonymous", "shared", "file", "malloc", "extmem", "read-only",
};

static void
undo_extmem(void *arg)
{
	rte_extmem_unregister(arg, SIZE);
}

static uint8_t *
memory_of(struct fx *fx, enum kind kind)
{
	char path[] = "/tmp/conform-XXXXXX";
	uint8_t *p;
	int fd;

	switch (kind) {
	case HEAP:
		return fx_alloc(fx, SIZE, 4096);
	case MALLOC:
		p = aligned_alloc(4096, SIZE);
		CHECK(fx, p != NULL, "no memory");
		fx_defer(fx, free, p);
		return p;
	case SHARED:
		return map(fx, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	case A_FILE:
		fd = mkstemp(path);
		CHECK(fx, fd >= 0 && ftruncate(fd, SIZE) == 0, "%s: %s", path, strerror(errno));
		unlink(path);
		p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		CHECK(fx, p != MAP_FAILED, "mmap(): %s", strerror(errno));
		fx_defer(fx, undo_map, p);
		return p;
	case EXTMEM:
		p = map(fx, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		CHECK(fx, rte_extmem_register(p, SIZE, NULL, 0, 4096) == 0,
		      "rte_extmem_register() failed");
		fx_defer(fx, undo_extmem, p);
		return p;
	case READ_ONLY:
		p = map(fx, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		pattern(p, SIZE, 99);
		mprotect(p, SIZE, PROT_READ);
		return p;
	default:
		return map(fx, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	}
}

static void
one_wc(struct fx *fx, struct pair p, int posted, uint64_t id, const char *what)
{
	complete(fx, fx->a.cq, p.a, posted, id, BB_WC_SUCCESS, what);
}

/*
 * The memory is source at A, and target and source at B; neither start nor end is at a page
 * boundary.
 */
ROW(run_kind)
{
	uint8_t *m = memory_of(fx, row->n) + 13;
	uint32_t len = SIZE - 100, access = row->n == READ_ONLY ? RR : LW | RW | RR;
	struct pair p = fx_shared(fx);
	struct bb_mr *a = fx_mr(fx, fx->a.pd, m, len, access),
		     *b = fx_mr(fx, fx->b.pd, m, len, access);
	struct bb_sge from_arena = sge_of(&fx->a, GUARD, len);
	struct bb_sge here = {(uintptr_t)m, len, a->lkey};

	CHECK(fx, b->addr == m && b->len == len && b->pd == fx->b.pd && b->access == access,
	      "struct bb_mr does not say what was registered");
	pattern(fx->a.mem + GUARD, len, fx->seed++);
	if (row->n != READ_ONLY) {
		one_wc(fx, p,
		       bb_post_write(p.a, 1, &from_arena, 1, (uintptr_t)m, b->rkey,
				     BB_SEND_SIGNALED),
		       1, "WRITE to it");
		CHECK(fx, memcmp(m, fx->a.mem + GUARD, len) == 0, "WRITE to it left other bytes");
	}
	one_wc(fx, p,
	       bb_post_write(p.a, 2, &here, 1, addr_of(&fx->b, GUARD), fx->b.mr->rkey,
			     BB_SEND_SIGNALED),
	       2, "WRITE from it");
	CHECK(fx, memcmp(m, fx->b.mem + GUARD, len) == 0, "WRITE from it brought other bytes");
	memset(fx->a.mem + GUARD, 0, len);
	one_wc(fx, p, bb_post_read(p.a, 3, &from_arena, 1, (uintptr_t)m, b->rkey, BB_SEND_SIGNALED),
	       3, "READ of it");
	CHECK(fx, memcmp(m, fx->a.mem + GUARD, len) == 0, "READ of it brought other bytes");
}

/* More than 4 GiB in one region: both ends, and the offsets where 32 bits would wrap. */
static void
undo_huge(void *arg)
{
	munmap(arg, 5ull << 30);
}

ROW(run_huge)
{
	static const uint64_t at[] = {0, (1ull << 31) - 32, (1ull << 32) - 32, (5ull << 30) - 64};
	struct pair p = fx_shared(fx);
	struct bb_sge sge;
	struct bb_mr *mr;
	uint8_t *m;

	m = mmap(NULL, 5ull << 30, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(fx, m != MAP_FAILED, "mmap() of 5 GiB: %s", strerror(errno));
	fx_defer(fx, undo_huge, m);
	mr = fx_mr(fx, fx->b.pd, m, 5ull << 30, LW | RW | RR);
	for (unsigned int i = 0; i < RTE_DIM(at); i++) {
		pattern(fx->a.mem + GUARD, 64, fx->seed++);
		sge = sge_of(&fx->a, GUARD, 64);
		one_wc(fx, p,
		       bb_post_write(p.a, i, &sge, 1, (uintptr_t)m + at[i], mr->rkey,
				     BB_SEND_SIGNALED),
		       i, "WRITE into 5 GiB");
		CHECK(fx, memcmp(m + at[i], fx->a.mem + GUARD, 64) == 0,
		      "WRITE at offset %" PRIu64 " left other bytes", at[i]);
	}
}

/* Many regions at once, each with keys of its own. */
ROW(run_many)
{
	struct bb_mr *mr[48];

	for (unsigned int i = 0; i < RTE_DIM(mr); i++) {
		mr[i] = fx_mr(fx, fx->b.pd, fx->b.mem + i * 64, 64, LW | RW);
		for (unsigned int k = 0; k < i; k++)
			CHECK(fx, mr[k]->lkey != mr[i]->lkey && mr[k]->rkey != mr[i]->rkey,
			      "two regions have one key");
	}
}

/* Only a REMOTE right gives an rkey. */
ROW(run_rkey)
{
	CHECK(fx, fx_mr(fx, fx->a.pd, fx->a.mem, 4096, 0)->rkey == 0,
	      "a region without rights has an rkey");
	CHECK(fx, fx_mr(fx, fx->a.pd, fx->a.mem, 4096, LW)->rkey == 0,
	      "a region for local use has an rkey");
	CHECK(fx, fx_mr(fx, fx->a.pd, fx->a.mem, 4096, RR)->rkey != 0, "a region to READ has none");
}

/* ---- Mempools, the heap, and lookup of a key by address */

static void
undo_pool(void *mp)
{
	rte_mempool_free(mp);
}

ROW(run_mempool)
{
	struct pair p = fx_shared(fx);
	struct bb_lkey_cache cache;
	struct rte_mbuf *m;
	struct bb_pd *pd = fx->a.pd;
	struct bb_sge sge;
	struct rte_mempool *mp = rte_pktmbuf_pool_create("conform", 255, 0, 0, 2048, SOCKET_ID_ANY);

	CHECK(fx, mp != NULL, "no mempool");
	fx_defer(fx, undo_pool, mp);
	bb_lkey_cache_init(&cache, pd);
	m = rte_pktmbuf_alloc(mp);
	CHECK(fx, m != NULL, "no mbuf");
	CHECK(fx, bb_mem_lkey(&cache, rte_pktmbuf_mtod(m, void *), 64) == BB_LKEY_NONE,
	      "a pool that is not registered has a key");
	OK(fx, bb_mem_add_mempool(pd, mp));
	CHECK(fx, bb_mem_add_mempool(pd, mp) == -EEXIST, "the same pool twice");
	sge.addr = rte_pktmbuf_mtod(m, uintptr_t);
	sge.len = 1500;
	sge.lkey = bb_mem_lkey(&cache, rte_pktmbuf_mtod(m, void *), 1500);
	pattern(rte_pktmbuf_mtod(m, void *), 1500, fx->seed++);
	if (sge.lkey != BB_LKEY_NONE)
		one_wc(fx, p,
		       bb_post_write(p.a, 1, &sge, 1, addr_of(&fx->b, GUARD), fx->b.mr->rkey,
				     BB_SEND_SIGNALED),
		       1, "WRITE from a mbuf");
	OK(fx, bb_mem_del_mempool(pd, mp));
	CHECK(fx, sge.lkey != BB_LKEY_NONE, "a mbuf has no key");
	CHECK(fx, memcmp(fx->b.mem + GUARD, rte_pktmbuf_mtod(m, void *), 1500) == 0,
	      "WRITE from a mbuf brought other bytes");
	CHECK(fx, bb_mem_lkey(&cache, rte_pktmbuf_mtod(m, void *), 64) == BB_LKEY_NONE,
	      "a pool that was taken out still has a key");
	CHECK(fx, bb_mem_del_mempool(pd, mp) == -ENOENT, "taken out twice");
	rte_pktmbuf_free(m);
}

ROW(run_heap)
{
	struct bb_pd *pd = fx_pd(fx, &fx->a);
	struct bb_lkey_cache cache;
	struct pair_opts o = fx_opts(fx);
	struct bb_sge sge;
	struct pair p;
	uint8_t *m = fx_alloc(fx, 4096, 64);

	OK(fx, bb_mem_follow_heap(pd));
	CHECK(fx, bb_mem_follow_heap(pd) == -EALREADY, "the heap twice");
	bb_lkey_cache_init(&cache, pd);
	o.pd_a = pd;
	p = fx_pair(fx, &o);
	pattern(m, 4096, fx->seed++);
	sge = (struct bb_sge){(uintptr_t)m, 4096, bb_mem_lkey(&cache, m, 4096)};
	CHECK(fx, sge.lkey != BB_LKEY_NONE, "EAL memory has no key");
	one_wc(fx, p,
	       bb_post_write(p.a, 1, &sge, 1, addr_of(&fx->b, GUARD), fx->b.mr->rkey,
			     BB_SEND_SIGNALED),
	       1, "WRITE from the heap");
	CHECK(fx, memcmp(m, fx->b.mem + GUARD, 4096) == 0,
	      "WRITE from the heap brought other bytes");
}

ROW(run_lookup)
{
	struct bb_pd *pd = fx_pd(fx, &fx->a);
	struct bb_lkey_cache cache;
	struct bb_mr *low, *high;
	uint8_t *m = fx->a.mem;

	low = fx_mr(fx, pd, m, 4096, LW);
	high = fx_mr(fx, pd, m + 4096, 4096, LW);
	bb_lkey_cache_init(&cache, pd);
	CHECK(fx, bb_mem_lkey(&cache, m, 4096) == low->lkey, "the lower region is not found");
	CHECK(fx, bb_mem_lkey(&cache, m + 8191, 1) == high->lkey, "the last byte is not found");
	CHECK(fx, bb_mem_lkey(&cache, m + 4000, 200) == BB_LKEY_NONE,
	      "a range over two regions has one key");
	CHECK(fx, bb_mem_lkey(&cache, m + 8192, 1) == BB_LKEY_NONE, "a byte behind has a key");
	CHECK(fx, bb_mem_lkey(&cache, m + 8000, UINT64_MAX) == BB_LKEY_NONE,
	      "a range that wraps has a key");
}

void
rows_memory(struct rows *rows)
{
	static const char *const hole[] = {"not-mapped", "half-mapped", "no-access",
					   "read-only-to-write"};
	struct row *row;

	for (unsigned int i = 0; i < RTE_DIM(refusals); i++) {
		row = row_add(rows, MAN, run_refused, "memory/mr/refused", "%s", refusals[i].name);
		row->arg = &refusals[i];
	}
	for (unsigned int i = 0; i < RTE_DIM(hole); i++)
		row_add(rows, "linux drivers/infiniband/core/umem.c", run_fault,
			"memory/mr/not-accessible", "%s", hole[i])
			->n = i;
	for (unsigned int i = 0; i < KINDS; i++)
		row_add(rows, MAN, run_kind, "memory/mr/kinds", "%s", kind_name[i])->n = i;
	row_add(rows, MAN, run_huge, "memory/mr/over-4GiB", "5GiB")->needs = NEED_MEMORY;
	row_add(rows, MAN, run_many, "memory/mr/keys", "differ");
	row_add(rows, MAN, run_rkey, "memory/mr/keys", "rkey-for-remote-only");
	row_add(rows, "rte_mempool_mem_iter", run_mempool, "memory/automatic/mempool", "mbufs");
	row_add(rows, "rte_mem_event_callback_register", run_heap, "memory/automatic/heap",
		"follow");
	row_add(rows, MAN, run_lookup, "memory/automatic/lookup", "ranges");
}
