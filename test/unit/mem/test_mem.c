/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* PDs, explicit registrations, mempools, and a heap that is walked once (--no-huge). */
#define ALLOW_EXPERIMENTAL_API /* rte_pktmbuf_pool_create_extbuf() */
#include <sys/mman.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "../core/core_fixture.h"

static uint32_t
lookup(struct bb_pd *pd, const void *p, size_t len)
{
	struct bb_lkey_cache cache;

	bb_lkey_cache_init(&cache, pd);
	return bb_mem_lkey(&cache, p, len);
}

static struct bb_mem_stats
stats_of(struct bb_pd *pd)
{
	struct bb_mem_stats s;

	assert_int_equal(bb_mem_stats(pd, &s), 0);
	return s;
}

T(test_pd_is_counted_until_it_is_freed)
{
	struct bb_pd *pd = (void *)1;

	assert_int_equal(bb_pd_alloc(NULL, &pd), -EINVAL);
	assert_int_equal(bb_pd_alloc(f->dev, NULL), -EINVAL);
	fake_fail(FAKE_PD_ALLOC, -ENOMEM);
	assert_int_equal(bb_pd_alloc(f->dev, &pd), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(pd, (void *)1);
	assert_int_equal(f->dev->pds, 1);
	assert_int_equal(bb_pd_alloc(f->dev, &pd), 0);
	assert_int_equal(f->dev->pds, 2);
	fake_fail(FAKE_PD_FREE, -EIO);
	assert_int_equal(bb_pd_free(pd), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_pd_free(pd), 0);
	assert_int_equal(bb_pd_free(NULL), -EINVAL);
	assert_int_equal(f->dev->pds, 1);
}

T(test_mr_has_keys_and_is_counted)
{
	static char buf[4096];
	struct bb_mr *a, *b;

	assert_int_equal(bb_mr_reg(f->pd, buf, sizeof(buf), BB_ACCESS_LOCAL_WRITE, &a), 0);
	assert_ptr_equal(a->pd, f->pd);
	assert_ptr_equal(a->addr, buf);
	assert_fields(*a, len, sizeof(buf), rkey, 0);
	assert_int_equal(fake_mr_of(a->lkey)->access, BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(
		bb_mr_reg(f->pd, buf, 16, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, &b), 0);
	assert_int_not_equal(b->rkey, 0);
	assert_int_equal(b->rkey, fake_mr_of(b->lkey)->pub.rkey);
	assert_int_equal(stats_of(f->pd).mrs, 2);
	assert_int_equal(stats_of(f->pd).bytes, 4096 + 16);
	assert_logged(bb_pd_free(f->pd), -EBUSY, "2 MRs, 0 QPs and 0 SRQs live");
	assert_int_equal(lookup(f->pd, buf + 100, 50), a->lkey);
	assert_int_equal(bb_mr_dereg(a), 0);
	assert_int_equal(lookup(f->pd, buf + 100, 50), BB_LKEY_NONE);
	assert_int_equal(lookup(f->pd, buf, 16), b->lkey);
	assert_int_equal(bb_mr_dereg(b), 0);
	assert_int_equal(bb_mr_dereg(NULL), -EINVAL);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(stats_of(f->pd).bytes, 0);
}

T(test_mr_reg_refuses_bad_ranges_and_rights)
{
	const uint32_t lw = BB_ACCESS_LOCAL_WRITE;
	struct bb_mr *mr = (void *)1;
	static char buf[64];

#define REFUSE(addr, len, access, text)                                                            \
	do {                                                                                       \
		log_begin();                                                                       \
		assert_int_equal(bb_mr_reg(f->pd, addr, len, access, &mr), -EINVAL);               \
		log_expect(text);                                                                  \
	} while (0)
	REFUSE(buf, 0, lw, "length is 0");
	REFUSE(buf, SIZE_MAX, lw, "exceeds the address space");
	REFUSE(buf, SIZE_MAX - (uintptr_t)buf + 1, lw, "exceeds the address space");
	REFUSE((void *)(UINTPTR_MAX - 9), 11, lw, "exceeds the address space");
	REFUSE(buf, 64, 1 << 8, "unknown access right");
	REFUSE(buf, 64, lw | 1u << 31, "unknown access right");
	REFUSE(buf, 64, BB_ACCESS_REMOTE_WRITE, "LOCAL_WRITE");
	REFUSE(buf, 64, BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_REMOTE_READ, "LOCAL_WRITE");
	f->dev->attr.atomics = false;
	REFUSE(buf, 64, lw | BB_ACCESS_REMOTE_ATOMIC, "no atomics");
	f->dev->attr.atomics = true;
	f->dev->attr.max_mr_size = 63;
	REFUSE(buf, 64, lw, "max_mr_size");
	f->dev->attr.max_mr_size = UINT64_MAX;
#undef REFUSE
	assert_int_equal(bb_mr_reg(NULL, buf, 64, lw, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg(f->pd, buf, 64, lw, NULL), -EINVAL);
	fake_fail(FAKE_MR_REG, -EFAULT);
	assert_int_equal(bb_mr_reg(f->pd, buf, 64, lw, &mr), -EFAULT);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(mr, (void *)1);
	assert_int_equal(f->pd->mrs, 0);
	assert_int_equal(stats_of(f->pd).mrs, 0);

	/* A key that could not be destroyed keeps its entry in the table. */
	assert_int_equal(bb_mr_reg(f->pd, buf, 64, BB_ACCESS_REMOTE_READ, &mr), 0);
	fake_fail(FAKE_MR_DEREG, -EBUSY);
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(lookup(f->pd, buf, 64), mr->lkey);
	assert_int_equal(stats_of(f->pd).mrs, 1);
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(bb_mem_stats(f->pd, NULL), -EINVAL);
	assert_int_equal(bb_mem_reap(NULL), -EINVAL);
}

/* One walk finds the whole heap; memory of rte_extmem_register() does not belong to it. */
T(test_follow_heap_registers_the_whole_heap_only)
{
	void *ext, *a, *b;
	struct bb_mem_stats s;
	struct bb_mr *mr;

	ext = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(ext != MAP_FAILED);
	assert_int_equal(rte_extmem_register(ext, 1 << 20, NULL, 0, 4096), 0);
	a = rte_malloc(NULL, 100, 0);
	assert_int_equal(lookup(f->pd, a, 100), BB_LKEY_NONE);
	assert_int_equal(bb_mem_follow_heap(NULL), -EINVAL);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	b = rte_malloc(NULL, 10 << 20, 0);
	assert_non_null(b);
	assert_int_not_equal(lookup(f->pd, a, 100), BB_LKEY_NONE);
	assert_int_not_equal(lookup(f->pd, b, 10 << 20), BB_LKEY_NONE);
	assert_int_equal(lookup(f->pd, ext, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mr_reg(f->pd, ext, 1 << 20, BB_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(lookup(f->pd, ext, 64), mr->lkey);
	assert_int_equal(bb_mr_dereg(mr), 0);

	s = stats_of(f->pd);
	assert_true(s.heap >= 1);
	assert_int_equal(s.bytes, 256 << 20);
	assert_int_equal(fake_mr_of(lookup(f->pd, a, 1))->access, BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bb_mem_follow_heap(f->pd), -EALREADY);
	assert_int_equal(stats_of(f->pd).heap, s.heap);
	rte_free(a);
	rte_free(b);
	assert_int_equal(rte_extmem_unregister(ext, 1 << 20), 0);
	munmap(ext, 1 << 20);
}

/* A failed call leaves nothing behind and can be repeated. */
T(test_failed_follow_heap_can_be_repeated)
{
	fake_fail(FAKE_MR_REG, -ENOMEM);
	assert_logged(bb_mem_follow_heap(f->pd), -ENOMEM, "are not registered");
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(stats_of(f->pd).heap, 0);
	assert_int_equal(stats_of(f->pd).retired, 0);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_true(fake.mrs > 0);
}

/* Heap memory that EAL maps and unmaps without an event, for test_external_heap_*. */
struct external {
	char *one, *two;
};

#define EXT_LEN ((size_t)1 << 20)

static void
external_open(struct external *x)
{
	const int prot = PROT_READ | PROT_WRITE;

	x->one = mmap(NULL, EXT_LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	x->two = mmap(NULL, EXT_LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(x->one != MAP_FAILED && x->two != MAP_FAILED);
	assert_int_equal(rte_malloc_heap_create("bbext"), 0);
	assert_int_equal(rte_malloc_heap_memory_add("bbext", x->one, EXT_LEN, NULL, 0, 4096), 0);
}

static void
external_remove(char *area)
{
	assert_int_equal(rte_malloc_heap_memory_remove("bbext", area, EXT_LEN), 0);
	assert_int_equal(munmap(area, EXT_LEN), 0);
}

/*
 * The key would outlive the mapping, so nothing is registered until the application names the
 * memory.
 */
T(test_follow_heap_refuses_external_memory_without_events)
{
	struct external x;

	external_open(&x);
	assert_logged(bb_mem_follow_heap(f->pd), -ENOTSUP, "bb_mem_add_heap()");
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(lookup(f->pd, x.one, 64), BB_LKEY_NONE);
	/* Half of the memory is not enough. */
	assert_int_equal(bb_mem_add_heap(f->pd, x.one, EXT_LEN / 2), 0);
	assert_int_equal(bb_mem_follow_heap(f->pd), -ENOTSUP);
	assert_int_not_equal(lookup(f->pd, x.one, 64), BB_LKEY_NONE);
	assert_int_equal(fake.mrs, 1);
	assert_int_equal(bb_mem_add_heap(f->pd, x.one, EXT_LEN), 0);
	assert_int_equal(fake.mrs, 2);
	/* A follow that fails for another reason keeps the named memory, too. */
	fake_fail(FAKE_MR_REG, -ENOMEM);
	assert_int_equal(bb_mem_follow_heap(f->pd), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(fake.mrs, 2);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_int_not_equal(lookup(f->pd, x.one + EXT_LEN - 64, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mem_del_heap(f->pd, x.one, EXT_LEN), 0);
	external_remove(x.one);
	munmap(x.two, EXT_LEN);
	assert_int_equal(rte_malloc_heap_destroy("bbext"), 0);
}

T(test_external_memory_has_a_key_from_add_to_del)
{
	struct bb_lkey_cache cache;
	struct external x;
	uint32_t regs;

	external_open(&x);
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(bb_mem_add_heap(f->pd, x.one, EXT_LEN), 0);
	assert_int_equal(bb_mem_follow_heap(f->pd), 0);
	assert_int_not_equal(bb_mem_lkey(&cache, x.one, EXT_LEN), BB_LKEY_NONE);
	regs = fake.mrs;
	assert_int_equal(rte_malloc_heap_memory_add("bbext", x.two, EXT_LEN, NULL, 0, 4096), 0);
	assert_int_equal(bb_mem_lkey(&cache, x.two, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mem_add_heap(f->pd, x.two, EXT_LEN), 0);
	assert_int_equal(bb_mem_add_heap(f->pd, x.two, EXT_LEN), 0);
	assert_int_equal(fake.mrs, regs + 1);
	assert_int_not_equal(bb_mem_lkey(&cache, x.two, EXT_LEN), BB_LKEY_NONE);
	/* The key is dead when the call returns, not only gone from the lookup. */
	assert_int_equal(bb_mem_del_heap(f->pd, x.one, EXT_LEN), 0);
	assert_int_equal(fake.mrs, regs);
	assert_int_equal(bb_mem_lkey(&cache, x.one, 64), BB_LKEY_NONE);
	assert_int_not_equal(bb_mem_lkey(&cache, x.two, EXT_LEN), BB_LKEY_NONE);
	assert_int_equal(bb_mem_del_heap(f->pd, x.one, EXT_LEN), -ENOENT);
	external_remove(x.one);
	/* A device that cannot destroy the key makes the call fail. */
	fake_fail(FAKE_MR_DEREG, -EBUSY);
	assert_int_equal(bb_mem_del_heap(f->pd, x.two, EXT_LEN), -EBUSY);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_mem_lkey(&cache, x.two, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mem_reap(f->pd), 1);
	external_remove(x.two);
	assert_int_equal(rte_malloc_heap_destroy("bbext"), 0);
}

T(test_heap_calls_refuse_bad_ranges)
{
	static char buf[64];

	assert_int_equal(bb_mem_add_heap(NULL, buf, 64), -EINVAL);
	assert_int_equal(bb_mem_del_heap(NULL, buf, 64), -EINVAL);
	assert_int_equal(bb_mem_add_heap(f->pd, NULL, 64), -EINVAL);
	assert_int_equal(bb_mem_add_heap(f->pd, buf, 0), -EINVAL);
	assert_int_equal(bb_mem_del_heap(f->pd, buf, 0), -EINVAL);
	assert_logged(bb_mem_add_heap(f->pd, buf, SIZE_MAX), -EINVAL, "past the end");
	assert_int_equal(bb_mem_del_heap(f->pd, buf, 64), -ENOENT);
	assert_int_equal(fake.mrs, 0);
}

/* A PD with a registration that cannot be destroyed is not freed; a later free succeeds. */
T(test_pd_with_an_undestroyable_mr_is_not_freed)
{
	struct bb_pd *pd;

	assert_int_equal(bb_pd_alloc(f->dev, &pd), 0);
	assert_int_equal(bb_mem_follow_heap(pd), 0);
	fake_fail(FAKE_MR_DEREG, -EBUSY);
	assert_int_equal(bb_pd_free(pd), -EBUSY);
	fake_fail(FAKE_NONE, 0);
	assert_true(stats_of(pd).retired > 0);
	assert_int_equal(bb_pd_free(pd), 0);
	assert_int_equal(fake.mrs, 0);
}

/*
 * Control calls on the PD reap registrations that the heap retired; the statistics count the
 * pending ones.
 */
T(test_control_calls_reap_what_the_heap_retired)
{
	static char heap[4 * 4096], buf[64];
	struct bb_mr *mr;

	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_ALLOC, heap, sizeof(heap));
	assert_int_equal(stats_of(f->pd).heap, 1);
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_FREE, heap, sizeof(heap));
	assert_int_equal(stats_of(f->pd).heap, 0);
	assert_int_equal(stats_of(f->pd).retired, 1);
	assert_int_equal(stats_of(f->pd).bytes, 0);
	assert_int_equal(fake.deregs, 0);
	fake_fail(FAKE_MR_DEREG, -EIO);
	assert_int_equal(bb_mem_reap(f->pd), -EIO);
	assert_int_equal(stats_of(f->pd).retired, 1);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_mem_reap(f->pd), 1);
	assert_int_equal(bb_mem_reap(f->pd), 0);
	assert_int_equal(stats_of(f->pd).retired, 0);

	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_ALLOC, heap, sizeof(heap));
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_FREE, heap, sizeof(heap));
	assert_int_equal(bb_mr_reg(f->pd, buf, sizeof(buf), 0, &mr), 0);
	assert_int_equal(stats_of(f->pd).retired, 0);
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_ALLOC, heap, sizeof(heap));
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_FREE, heap, sizeof(heap));
	assert_int_equal(bb_mr_dereg(mr), 0);
	assert_int_equal(fake.mrs, 0);

	/* An event that cannot register memory logs it; lookups find nothing. */
	fake_fail(FAKE_MR_REG, -ENOMEM);
	log_begin();
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_ALLOC, heap, sizeof(heap));
	log_expect("find no lkey");
	assert_int_equal(lookup(f->pd, heap, 1), BB_LKEY_NONE);
	bb_mem_heap_event(f->pd->mem, RTE_MEM_EVENT_FREE, heap, sizeof(heap));
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(stats_of(f->pd).retired, 0);
}

static void
obj_cb(struct rte_mempool *mp, void *arg, void *obj, unsigned int i)
{
	struct bb_lkey_cache *cache = arg;

	assert_int_not_equal(bb_mem_lkey(cache, obj, mp->elt_size), BB_LKEY_NONE);
}

T(test_mempool_has_keys_from_add_to_del)
{
	struct rte_mempool *mp, *mp2;
	struct bb_lkey_cache cache;
	uint32_t regs;

	mp = rte_mempool_create("bbtest", 5000, 512, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY,
				0);
	mp2 = rte_mempool_create("bbtest2", 10, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	assert_non_null(mp);
	assert_non_null(mp2);
	assert_int_equal(bb_mem_add_mempool(NULL, mp), -EINVAL);
	assert_int_equal(bb_mem_add_mempool(f->pd, NULL), -EINVAL);
	assert_int_equal(bb_mem_del_mempool(f->pd, NULL), -EINVAL);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), -ENOENT);
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), 0);
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), -EEXIST);
	regs = stats_of(f->pd).mempool;
	assert_in_range(regs, 1, mp->nb_mem_chunks);
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(rte_mempool_obj_iter(mp, obj_cb, &cache), 5000);
	assert_int_equal(bb_mem_add_mempool(f->pd, mp2), 0);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), 0);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), -ENOENT);
	assert_int_equal(rte_mempool_obj_iter(mp2, obj_cb, &cache), 10);
	/* fixture_teardown() frees the PD with the remaining registrations. */
	assert_int_equal(stats_of(f->pd).mempool, fake.mrs);
	rte_mempool_free(mp);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp2), 0);
	rte_mempool_free(mp2);
}

static void
no_free(struct rte_mempool_memhdr *hdr, void *arg)
{
}

/* Chunks in three places, two of them adjacent: two registrations, or none. */
T(test_adjacent_chunks_of_a_mempool_share_a_registration)
{
	struct rte_mempool *mp;
	struct bb_lkey_cache cache;
	char *mem = mmap(NULL, 5 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	mp = rte_mempool_create_empty("bbchunks", 600, 256, 0, 0, SOCKET_ID_ANY, 0);
	assert_non_null(mp);
	assert_logged(bb_mem_add_mempool(f->pd, mp), -EINVAL, "populate");
	assert_int_equal(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL), 0);
	assert_true(rte_mempool_populate_iova(mp, mem + (4 << 16), RTE_BAD_IOVA, 1 << 16, no_free,
					      NULL) > 0);
	assert_true(rte_mempool_populate_iova(mp, mem + (1 << 16), RTE_BAD_IOVA, 1 << 16, no_free,
					      NULL) > 0);
	assert_true(rte_mempool_populate_iova(mp, mem, RTE_BAD_IOVA, 1 << 16, no_free, NULL) > 0);
	assert_int_equal(mp->nb_mem_chunks, 3);

	fake_fail(FAKE_MR_REG, -ENOMEM);
	fake.fail_after = 1;
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(fake.mrs, 0);
	assert_int_equal(stats_of(f->pd).mempool, 0);

	assert_int_equal(bb_mem_add_mempool(f->pd, mp), 0);
	assert_int_equal(stats_of(f->pd).mempool, 2);
	assert_int_equal(stats_of(f->pd).bytes, 3 << 16);
	assert_int_not_equal(lookup(f->pd, mem + (1 << 16) - 8, 16), BB_LKEY_NONE);
	assert_int_equal(lookup(f->pd, mem + (2 << 16), 1), BB_LKEY_NONE);
	bb_lkey_cache_init(&cache, f->pd);
	rte_mempool_obj_iter(mp, obj_cb, &cache);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), 0);
	rte_mempool_free(mp);
	munmap(mem, 5 << 16);
}

static void
buffer_cb(struct rte_mempool *mp, void *arg, void *obj, unsigned int i)
{
	const struct rte_mbuf *m = obj;

	if (bb_mem_lkey(arg, m->buf_addr, m->buf_len) == BB_LKEY_NONE)
		fail_msg("no lkey for the %u bytes at %p", m->buf_len, m->buf_addr);
}

/* Areas of a pool of pinned external buffers, with unmapped memory between them. */
static void
pinned_pool(struct fixture *f, uint32_t areas, uint16_t stride, uint16_t room, bool known,
	    uint32_t regs)
{
	const size_t len = 1 << 18;
	struct rte_pktmbuf_extmem ext[4];
	struct bb_lkey_cache cache;
	struct rte_mempool *mp;
	uint32_t i, n = areas * (uint32_t)(len / stride);
	char *mem = mmap(NULL, 8 * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	for (i = 0; i < 4; i++) {
		/* From the top down, so that the order of areas is not that of addresses. */
		ext[i] = (struct rte_pktmbuf_extmem){mem + (6 - 2 * i) * len, RTE_BAD_IOVA, len,
						     stride};
		assert_int_equal(munmap(mem + (7 - 2 * i) * len, len), 0);
		if (known)
			assert_int_equal(rte_extmem_register(ext[i].buf_ptr, len, NULL, 0, 4096),
					 0);
	}
	mp = rte_pktmbuf_pool_create_extbuf("bbpinned", n, 0, 64, room, SOCKET_ID_ANY, ext, areas);
	assert_non_null(mp);

	fake_fail(FAKE_MR_REG, -ENOMEM);
	fake.fail_after = areas - 1;
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(fake.mrs, 0);

	assert_int_equal(bb_mem_add_mempool(f->pd, mp), 0);
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), -EEXIST);
	assert_int_equal(stats_of(f->pd).mempool, regs);
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(rte_mempool_obj_iter(mp, buffer_cb, &cache), n);
	for (i = 0; i < areas; i++)
		assert_int_equal(lookup(f->pd, (char *)ext[i].buf_ptr + len, 1), BB_LKEY_NONE);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), 0);
	assert_int_equal(fake.mrs, 0);
	rte_mempool_free(mp);
	for (i = 0; i < 4; i++) {
		if (known)
			assert_int_equal(rte_extmem_unregister(ext[i].buf_ptr, len), 0);
		assert_int_equal(munmap(ext[i].buf_ptr, len), 0);
	}
}

T(test_pinned_buffers_have_lkeys_in_every_area)
{
	pinned_pool(f, 1, 2048, 2048, true, 1);
	pinned_pool(f, 4, 2048, 2048, true, 4);
	pinned_pool(f, 4, 2048, 2048, false, 4);
	/* A stride that skips pages and does not divide the area. */
	pinned_pool(f, 3, 20000, 300, true, 3);
	/* EAL does not know this memory: only the buffers are known to be mapped. */
	pinned_pool(f, 2, 20000, 300, false, 2 * ((1 << 18) / 20000));
}

/*
 * The mbufs of such a pool point to another pool's memory, so registering this pool would have no
 * effect.
 */
T(test_pool_without_data_room_is_refused)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create("bbroom0", 63, 0, 64, 0, SOCKET_ID_ANY);

	assert_non_null(mp);
	assert_logged(bb_mem_add_mempool(f->pd, mp), -EINVAL, "no data room of their own");
	assert_int_equal(fake.mrs, 0);
	rte_mempool_free(mp);
}

/* Objects that are no mbufs, with private data that looks like that of an mbuf pool. */
T(test_pool_of_other_objects_registers_its_chunks)
{
	const struct rte_pktmbuf_pool_private looks = {.flags = RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF};
	struct bb_lkey_cache cache;
	struct rte_mempool *mp;

	mp = rte_mempool_create("bbother", 100, 512, 0, 256, NULL, NULL, NULL, NULL, SOCKET_ID_ANY,
				0);
	assert_non_null(mp);
	memcpy(rte_mempool_get_priv(mp), &looks, sizeof(looks));
	assert_int_equal(bb_mem_add_mempool(f->pd, mp), 0);
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(rte_mempool_obj_iter(mp, obj_cb, &cache), 100);
	assert_int_equal(bb_mem_del_mempool(f->pd, mp), 0);
	rte_mempool_free(mp);
}

TEST_MAIN(fake_eal_init())
