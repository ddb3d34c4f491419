/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory regions between two peers: pages on demand, relaxed ordering, and what the rows memory/mr
 * and rights/rc of the conformance suite do not cover.
 */
#include <signal.h>
#include <sys/mman.h>

#include "../../../fakes/process.h"
#include "mem_env.h"

ENV_TEST(test_mr_reaches_the_last_byte_of_the_address_space)
{
	struct bb_mr *mr;

	OK(bb_mr_reg_iova(e->b.pd, e->b.buf, PAGE - 1, UINT64_MAX - 4095, LW | RW | RR, &mr));
	reaches(e, UINT64_MAX - 64, mr->rkey, e->b.buf + PAGE - 65, 4);
	OK(bb_mr_dereg(mr));
}

static void
need_odp(struct env *e)
{
	struct bb_dev_attr attr;

	NEED_KERNEL_COPIES();
	OK(bb_dev_query(e->b.dev, &attr));
	assert_true(attr.odp && attr.odp_write && attr.odp_read);
}

#define OD (BB_ACCESS_ON_DEMAND | LW | RW | RR)

/* On-demand pages that are untouched, not yet mapped, unmapped, or read-only. */
ENV_TEST(test_pages_on_demand_fault_as_they_are_mapped)
{
	struct bb_event ev;
	struct bb_mr *mr;
	uint64_t at;
	uint8_t *p;

	need_odp(e);
	p = map(8 * PAGE, PROT_NONE);
	at = (uintptr_t)p;
	assert_int_equal(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
	OK(bb_mr_reg(e->b.pd, p, 8 * PAGE, OD, &mr));
	assert_int_equal(mr->lkey, BB_LKEY_NONE);
	/* Short READ data comes in the CQE if the QP asks for it. */
	e->init.scatter_to_cqe = true;
	again(e);
	fill(p, 64, 9);
	assert_int_equal(run(e, OP_READ, sge_of(&e->a, 0, 16), at, mr->rkey), BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, p, 16);
	assert_int_equal(run(e, OP_READ, sge_of(&e->a, 0, 16), at + PAGE, mr->rkey),
			 BB_WC_REM_OP_ERR);
	e->init.scatter_to_cqe = false;
	again(e);
	reaches(e, at + 100, mr->rkey, p + 100, 1);
	/*
	 * Nothing is mapped there. No access right is missing, so the responder reports an
	 * operation error.
	 */
	check(e, OP_READ, at + PAGE, mr->rkey, BB_WC_REM_OP_ERR);
	fill(e->a.buf, 64, 2);
	OK(bb_post_write(e->a.qp, 3, &(struct bb_sge){(uintptr_t)e->a.buf, 64, e->a.mr->lkey}, 1,
			 at + PAGE - 32, mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 3, BB_WC_REM_OP_ERR);
	env_event(e, e->b.dev, &ev);
	assert_int_equal(ev.type, BB_EVENT_QP_FATAL);
	assert_ptr_equal(ev.qp, e->b.qp);
	again(e);
	/* Pages that are mapped after the registration. */
	assert_int_equal(mprotect(p + PAGE, 3 * PAGE, PROT_READ | PROT_WRITE), 0);
	reaches(e, at + PAGE - 32, mr->rkey, p + PAGE - 32, 3);
	reaches(e, at + 3 * PAGE, mr->rkey, p + 3 * PAGE, 4);
	/* Unmapped and mapped again: the MR uses the new pages. */
	assert_int_equal(munmap(p + 2 * PAGE, PAGE), 0);
	check(e, OP_WRITE, at + 2 * PAGE, mr->rkey, BB_WC_REM_OP_ERR);
	check(e, OP_READ, at + 2 * PAGE, mr->rkey, BB_WC_REM_OP_ERR);
	assert_ptr_equal(mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 p + 2 * PAGE);
	reaches(e, at + 2 * PAGE, mr->rkey, p + 2 * PAGE, 5);
	/* A read-only mapping: the key grants the right, the mapping does not. */
	assert_int_equal(mprotect(p + 3 * PAGE, PAGE, PROT_READ), 0);
	check(e, OP_READ, at + 3 * PAGE, mr->rkey, BB_WC_SUCCESS);
	check(e, OP_WRITE, at + 3 * PAGE, mr->rkey, BB_WC_REM_OP_ERR);
	/* The key's range and rights are checked first. */
	check(e, OP_WRITE, at + 8 * PAGE, mr->rkey, BB_WC_REM_ACCESS_ERR);
	check(e, OP_ATOMIC, at, mr->rkey, BB_WC_REM_ACCESS_ERR);
	/* No local queue may use the key, as an rkey or as an lkey. */
	assert_int_equal(run(e, OP_WRITE, (struct bb_sge){at, 64, mr->rkey}, raddr_of(&e->b, 0),
			     e->b.mr->rkey),
			 BB_WC_LOC_PROT_ERR);
	OK(bb_mr_dereg(mr));
	munmap(p, 8 * PAGE);
}

ENV_TEST(test_every_message_reaches_the_whole_address_space)
{
	struct bb_sge sge[2] = {sge_of(&e->a, 0, 3000), sge_of(&e->a, 8192, 5001)};
	uint8_t *p = map(4 * PAGE, PROT_READ | PROT_WRITE);
	uint64_t at = (uintptr_t)p;
	struct bb_mr *mr;
	struct bb_wc wc;

	need_odp(e);
	OK(bb_mr_reg(e->b.pd, NULL, SIZE_MAX, OD, &mr));
	fill(e->a.buf, 16384, 1);
	OK(bb_post_write(e->a.qp, 1, sge, 2, at + 1, mr->rkey, 0));
	OK(bb_post_write_inline(e->a.qp, 2, "bluebell", 8, at + 3 * PAGE, mr->rkey,
				BB_SEND_SIGNALED));
	env_done(e, &e->a, 2, BB_WC_SUCCESS);
	assert_int_equal(p[0], 0);
	assert_memory_equal(p + 1, e->a.buf, 3000);
	assert_memory_equal(p + 3001, e->a.buf + 8192, 5001);
	assert_int_equal(p[8002], 0);
	assert_memory_equal(p + 3 * PAGE, "bluebell", 8);

	OK(bb_post_recv(e->b.qp, 9, NULL, 0));
	bb_qp_ring_recv(e->b.qp);
	OK(bb_post_write_imm(e->a.qp, 3, sge, 1, at, mr->rkey, 0x11223344, 0));
	bb_qp_ring(e->a.qp);
	env_poll(e, &e->b, &wc, 1);
	expect(&wc, e->b.qp, 9, BB_WC_SUCCESS);
	assert_int_equal(wc.imm, 0x11223344);
	assert_memory_equal(p, e->a.buf, 3000);

	memset(e->a.buf, 0, 16384);
	OK(bb_post_read(e->a.qp, 4, sge, 2, at, mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 4, BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, p, 3000);
	assert_memory_equal(e->a.buf + 8192, p + 3000, 5001);
	/* Unmapped addresses: the first page, and beyond the user's address space. */
	check(e, OP_READ, 0, mr->rkey, BB_WC_REM_OP_ERR);
	check(e, OP_WRITE, UINT64_C(1) << 63, mr->rkey, BB_WC_REM_OP_ERR);
	OK(bb_mr_dereg(mr));
	munmap(p, 4 * PAGE);
}

/* Records in which order the device touches pages: each page faults once. */
#define WATCHED 64
static uint8_t *watch_base;
static unsigned int watch_n, watch_page[WATCHED];

static void
watch_fault(int sig, siginfo_t *info, void *ctx)
{
	uintptr_t off = (uintptr_t)info->si_addr - (uintptr_t)watch_base;

	(void)ctx;
	if (off >= WATCHED * PAGE || watch_n == WATCHED) {
		signal(sig, SIG_DFL);
		return;
	}
	watch_page[watch_n++] = (unsigned int)(off / PAGE);
	mprotect(watch_base + off / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

/* Starts to record which pages are written; watch_end() stops it. */
static void
watch_begin(struct sigaction *old)
{
	struct sigaction act = {.sa_sigaction = watch_fault, .sa_flags = SA_SIGINFO};

	assert_int_equal(mprotect(watch_base, WATCHED * PAGE, PROT_NONE), 0);
	watch_n = 0;
	assert_int_equal(sigaction(SIGSEGV, &act, old), 0);
}

/* Stops the recording. Returns the number of pages that were touched before a lower page. */
static unsigned int
watch_end(const struct env *e, const struct sigaction *old)
{
	unsigned int i, n = 0;

	assert_int_equal(sigaction(SIGSEGV, old, NULL), 0);
	assert_int_equal(watch_n, WATCHED);
	assert_memory_equal(watch_base, e->a.buf, WATCHED * PAGE);
	for (i = 1; i < WATCHED; i++)
		n += watch_page[i] < watch_page[i - 1];
	return n;
}

static unsigned int
descents(struct env *e, uint32_t access)
{
	struct sigaction old;
	struct bb_mr *mr;

	OK(bb_mr_reg(e->b.pd, watch_base, WATCHED * PAGE, access, &mr));
	fill(e->a.buf, WATCHED * PAGE, access);
	watch_begin(&old);
	assert_int_equal(
		run(e, OP_WRITE, sge_of(&e->a, 0, WATCHED * PAGE), (uintptr_t)watch_base, mr->rkey),
		BB_WC_SUCCESS);
	OK(bb_mr_dereg(mr));
	return watch_end(e, &old);
}

/* A completion says that all data is there; before it, no byte is guaranteed. */
ENV_TEST(test_relaxed_ordering_writes_pages_out_of_order)
{
	struct sigaction old;
	unsigned int libc, strict;

	watch_base = map(WATCHED * PAGE, PROT_READ | PROT_WRITE);
	/* memcpy() of the C library may begin at the end, or copy backwards. */
	fill(e->a.buf, WATCHED * PAGE, 1);
	watch_begin(&old);
	memcpy(watch_base, e->a.buf, WATCHED * PAGE);
	libc = watch_end(e, &old);
	strict = descents(e, LW | RW);
	assert_in_range(strict, libc - RTE_MIN(libc, 2u), libc + 2);
	assert_in_range(descents(e, LW | RW | BB_ACCESS_RELAXED_ORDERING), WATCHED / 8,
			WATCHED * 7 / 8);
	munmap(watch_base, WATCHED * PAGE);
}

ENV_TEST(test_transfers_beyond_4_gib_reach_their_offset)
{
	const size_t len = (size_t)6 << 30, edge = (size_t)4 << 30;
	uint8_t *from = map(len, PROT_READ | PROT_WRITE), *to = map(len, PROT_READ | PROT_WRITE);
	struct bb_mr *src, *dst;
	size_t off[] = {0, edge - 3000, edge, len - 65536};
	size_t i;

	OK(bb_mr_reg(e->a.pd, from, len, LW, &src));
	OK(bb_mr_reg(e->b.pd, to, len, LW | RW | RR, &dst));
	for (i = 0; i < RTE_DIM(off); i++) {
		struct bb_sge sge = {(uintptr_t)from + off[i], 65536, src->lkey};

		fill(from + off[i], 65536, (uint32_t)i);
		assert_int_equal(run(e, OP_WRITE, sge, (uintptr_t)to + off[i], dst->rkey),
				 BB_WC_SUCCESS);
		assert_memory_equal(to + off[i], from + off[i], 65536);
		memset(from + off[i], 0, 65536);
		assert_int_equal(run(e, OP_READ, sge, (uintptr_t)to + off[i], dst->rkey),
				 BB_WC_SUCCESS);
		assert_memory_equal(from + off[i], to + off[i], 65536);
	}
	/* No byte was written 4 GiB lower. */
	assert_int_equal(to[65536], 0);
	check(e, OP_WRITE, (uintptr_t)to + len - 63, dst->rkey, BB_WC_REM_ACCESS_ERR);
	OK(bb_mr_dereg(src));
	OK(bb_mr_dereg(dst));
	munmap(from, len);
	munmap(to, len);
}

/* ib_umem_get() asks for writable pages when the access writes (ib_access_writable()). */
ENV_TEST(test_rights_that_write_need_writable_memory)
{
	static const uint32_t writes[] = {LW, LW | RW, RR | BB_ACCESS_MW_BIND};
	uint8_t *ro = map(4 * PAGE, PROT_READ);
	struct bb_mr *mr = NULL;
	size_t i;

	for (i = 0; i < RTE_DIM(writes); i++)
		assert_int_equal(bb_mr_reg(e->b.pd, ro, 4 * PAGE, writes[i], &mr), -EFAULT);
	assert_null(mr);
	munmap(ro, 4 * PAGE);
}

TEST_MAIN(env_eal_init("mlx5_mem"))
