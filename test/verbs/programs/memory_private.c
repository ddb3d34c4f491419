/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Cases of memory.c: private memory that the program unmaps before it deregisters it, files that it
 * truncates, and faults of the program itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define LONG  2000u /* bytes of a message of several packets */
#define STACK (64 * PAGE)

static struct ibv_mr *
reg_local(void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, IBV_ACCESS_LOCAL_WRITE);

	CHECK(mr != NULL && !is_shared(addr));
	return mr;
}

static void
receive(struct ibv_mr *mr, uint8_t *p)
{
	uint64_t v = 7;

	post_receive(mr, p, LONG);
	CHECK(order(OP_SEND, false, NULL, (void *)(uintptr_t)LONG, &v) == IBV_WC_SUCCESS);
	CHECK(wait_message() == LONG);
}

/* A message arrives in memory that the program has unmapped. */
static void
receive_gone(struct ibv_mr *mr, uint8_t *p)
{
	CHECK(is_gone(p));
	receive(mr, p);
}

/* A message, and a request of the target that reads @p: neither crashes the program. */
static void
check_lost(struct ibv_mr *mr, uint8_t *p)
{
	receive_gone(mr, p);
	CHECK(post_from(mr, p + LONG, PAGE) == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_dereg_mr(mr) == 0);
}

void
local_unmapped(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg_local(p, 2 * PAGE);

	CHECK(munmap(p, 2 * PAGE) == 0);
	check_lost(mr, p);
}

/* The pages move: the device does not follow them, but does not disturb them either. */
void
local_moved(void)
{
	uint8_t *p = pages(2, 1), *to = pages(2, 3);
	struct ibv_mr *mr = reg_local(p, 2 * PAGE);

	CHECK(mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	check_lost(mr, p);
	CHECK(to[0] == 1 && to[LONG] == 1 && to[2 * PAGE - 1] == 1);
}

void
local_freed(void)
{
	struct ibv_mr *mr = reg_block(reg_local);

	check_lost(mr, free_block(mr));
}

/* Exchanges packets, so that the device has allocated what it needs for the peer. */
static void
connect_peer(void)
{
	uint8_t *p = pages(1, 0);
	struct ibv_mr *mr = reg_local(p, PAGE);

	receive(mr, p);
	CHECK(p[LONG - 1] == 7 && ibv_dereg_mr(mr) == 0);
}

/* The heap shrinks, and grows again after the device has accessed the memory. */
void
local_shrunk(void)
{
	const size_t len = 64 * PAGE;
	struct ibv_mr *mr;
	unsigned int i;
	uint8_t *p, *q;

	/* malloc() also serves the device, and may enlarge the heap again at once. */
	connect_peer();
	/* malloc() may have enlarged the heap during the registration. */
	do {
		p = sbrk((intptr_t)len);
		CHECK(p != (void *)-1);
		memset(p, 1, len);
		mr = reg_local(p, len);
	} while (sbrk(0) != p + len);
	CHECK(sbrk(-(intptr_t)len) == p + len);
	check_lost(mr, p + PAGE);
	for (i = 0; i < 64; i++) {
		q = malloc(100000);
		CHECK(q != NULL);
		memset(q, 9, 100000);
	}
}

/* Registers memory of its stack. */
static void *
register_stack(void *arg)
{
	uint8_t on_stack[4 * PAGE];

	memset(on_stack, 1, sizeof(on_stack));
	*(struct ibv_mr **)arg = reg(on_stack, sizeof(on_stack));
	CHECK(!is_shared(on_stack));
	return NULL;
}

/* The stack of a thread that has ended. A peer WRITEs and READs it. */
void
stack_unmapped(void)
{
	uint8_t *stack = pages(STACK / PAGE, 0), *p;
	pthread_attr_t attr;
	struct ibv_mr *mr;
	pthread_t thread;
	uint64_t v = 7;

	CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, stack, STACK) == 0);
	CHECK(pthread_create(&thread, &attr, register_stack, &mr) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && munmap(stack, STACK) == 0);
	p = (uint8_t *)mr->addr + (-(uintptr_t)mr->addr & 7);
	CHECK(is_gone(p));
	CHECK(order(OP_WRITE, false, mr, p, &v) == IBV_WC_SUCCESS);
	v = 0;
	CHECK(order(OP_READ, false, mr, p, &v) == IBV_WC_SUCCESS && v == 7);
	CHECK(order(OP_READ, false, mr, p + PAGE, &v) == IBV_WC_SUCCESS && v == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/*
 * The device connects to the peer, and shares another region, after the program has unmapped a
 * region, which leaves a hole large enough for each of its mappings. None of them lies there.
 */
void
own_mappings(void)
{
	const size_t len = (size_t)1 << 30;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		*q = pages(2, 1), *hole;
	struct ibv_mr *mr, *other;
	unsigned int i;
	pid_t pid;

	CHECK(p != MAP_FAILED);
	mr = reg_local(p, len);
	CHECK(munmap(p, len) == 0);
	/* Fills other holes, until the kernel would map in this one. */
	do
		hole = pages(1, 0);
	while (hole < p || hole >= p + len);
	CHECK(munmap(hole, PAGE) == 0);
	other = reg(q, 2 * PAGE);
	check_direct(other, q, 7);
	CHECK(!has_file(p, len));
	pid = fork();
	if (pid == 0)
		_exit(0);
	wait_for(pid, 0);
	check_direct(other, q, 9);
	CHECK(!has_file(p, len));
	for (i = 1; i <= 64; i++)
		receive(mr, p + len - i * PAGE);
	check_direct(other, q, 11);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(other) == 0);
}

/* ---- The program's own handlers of SIGSEGV and SIGBUS */

static sigjmp_buf jump;
static void *volatile fault_at;
static volatile int faults;
static volatile int expected = SIGSEGV;

void
handler_before_device(int sig)
{
	(void)sig;
	_exit(3);
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	CHECK(sig == expected && sig == info->si_signo && context != NULL);
	fault_at = info->si_addr;
	faults++;
	siglongjmp(jump, 1);
}

/* Reads a byte. Returns false if that faults. */
static bool
can_read(const volatile uint8_t *p)
{
	if (sigsetjmp(jump, 1) != 0)
		return false;
	(void)*p;
	return true;
}

/* A child dies of its own fault, by the default action or by a handler. */
static void
check_child(const volatile uint8_t *p)
{
	const pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		(void)*p;
		_exit(0);
	}
	wait_for(pid, SIGSEGV);
}

/* The program's handler gets the program's faults, and none of the device's. */
void
handled(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
	stack_t stack = {.ss_sp = pages(16, 0), .ss_size = (size_t)16 * PAGE};
	uint8_t *p = pages(64, 1);
	struct ibv_mr *mr = reg_local(p, 64 * PAGE);
	pid_t pid;

	CHECK(sigaltstack(&stack, NULL) == 0);
	CHECK(signal(SIGSEGV, SIG_DFL) == handler_before_device);
	CHECK(sigaction(SIGSEGV, &sa, &old) == 0 && old.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_sigaction == on_fault);
	CHECK(old.sa_flags == sa.sa_flags);
	/* The child has actions of its own, but the memory of its parent. */
	pid = vfork();
	if (pid == 0) {
		bool own = signal(SIGSEGV, SIG_IGN) == (sighandler_t)(void *)on_fault &&
			   signal(SIGSEGV, SIG_DFL) == SIG_IGN;

		_exit(!own);
	}
	wait_for(pid, 0);
	CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_sigaction == on_fault);
	CHECK(munmap(p, 64 * PAGE) == 0);
	receive_gone(mr, p);
	CHECK(faults == 0);
	/* The device has not accessed these pages, so the program's access is an error. */
	CHECK(!can_read(p + 40 * PAGE) && faults == 1 && fault_at == p + 40 * PAGE);
	CHECK(!can_read(NULL) && faults == 2 && fault_at == NULL);
	if (sigsetjmp(jump, 1) == 0)
		CHECK(raise(SIGSEGV) != 0); /* does not return */
	CHECK(faults == 3);
	check_child(p + 40 * PAGE);
	sa.sa_flags |= (int)SA_RESETHAND;
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	CHECK(!can_read(NULL) && faults == 4);
	CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
	CHECK(raise(SIGSEGV) == 0);
	CHECK(post_from(mr, p + 20 * PAGE, LONG) == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_dereg_mr(mr) == 0 && faults == 4);
}

/* Returns whether this thread blocks SIGSEGV. */
static bool
blocks(void)
{
	sigset_t set;

	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0 && sigismember(&set, SIGBUS) == 1);
	return sigismember(&set, SIGSEGV) == 1;
}

/* A message arrives in a part of the region that the device has not accessed before. */
static void
receive_next(struct ibv_mr *mr)
{
	static size_t at;

	receive_gone(mr, (uint8_t *)mr->addr + at);
	at += 16 * PAGE;
}

/*
 * The thread blocks all signals. So it does for the program, whose own faults and signals are those
 * of a thread that blocks them, but not for the device.
 */
void
masked(void)
{
	const struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	const size_t len = 256 * PAGE;
	uint8_t *p = pages(len / PAGE, 1);
	struct ibv_mr *mr = reg_local(p, len);
	sigset_t all, segv;
	unsigned int i;
	pid_t pid;

	sigfillset(&all);
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	CHECK(munmap(p, len) == 0);
	for (i = 0; i < 8; i++) {
		receive_next(mr);
		CHECK(blocks());
	}
	receive_next(mr);
	pid = fork();
	if (pid == 0) {
		(void)*(volatile uint8_t *)(p + len - PAGE);
		_exit(0);
	}
	wait_for(pid, SIGSEGV);
	receive_next(mr);
	/* A signal waits until the program unblocks it. Handlers get no fault of the device. */
	for (i = 0; i < 2; i++) {
		CHECK(raise(SIGSEGV) == 0);
		(void)post_empty();
		CHECK(sigpending(&segv) == 0 && sigismember(&segv, SIGSEGV) == 1 &&
		      faults == (int)i);
		CHECK(blocks());
		sigemptyset(&segv);
		sigaddset(&segv, SIGSEGV);
		if (sigsetjmp(jump, 0) == 0)
			CHECK(pthread_sigmask(SIG_UNBLOCK, &segv, NULL) != 0); /* jumps */
		CHECK(faults == (int)i + 1 && pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
		receive_next(mr);
	}
	CHECK(post_from(mr, p + len - 2 * PAGE, LONG) == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_dereg_mr(mr) == 0 && faults == 2);
}

/* Maps two pages of a file, truncates it to nothing, and closes it. Registers the pages before. */
static uint8_t *
cut(int flags, struct ibv_mr **mr)
{
	const int fd = memfd_create("cut", 0);
	uint8_t *p;

	CHECK(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	memset(p, 1, 2 * PAGE);
	*mr = reg_local(p, 2 * PAGE);
	CHECK(ftruncate(fd, 0) == 0 && close(fd) == 0);
	return p;
}

/*
 * A message arrives in a page after the end of its file, and a request reads such a page. The
 * program's handler gets the program's faults, and none of the device's.
 */
void
truncated(void)
{
	static const int flags[] = {MAP_SHARED, MAP_PRIVATE};
	const struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct ibv_mr *mr;
	unsigned int i;
	uint8_t *p;

	expected = SIGBUS;
	CHECK(sigaction(SIGBUS, &sa, NULL) == 0);
	for (i = 0; i < 2; i++) {
		faults = 0;
		p = cut(flags[i], &mr);
		receive(mr, p);
		CHECK(faults == 0 && p[LONG - 1] == 7);
		CHECK(!can_read(p + PAGE) && faults == 1 && fault_at == p + PAGE);
	}
	CHECK(post_from(mr, p + PAGE, LONG) == IBV_WC_REM_ACCESS_ERR && faults == 1);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Dies: the program itself accesses the page. */
void
crashes_truncated(void)
{
	struct ibv_mr *mr;

	(void)*(volatile uint8_t *)cut(MAP_SHARED, &mr);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Dies: the program itself accesses the memory that it has unmapped. */
void
crashes(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg_local(p, 2 * PAGE);

	CHECK(munmap(p, 2 * PAGE) == 0);
	(void)*(volatile uint8_t *)p;
	CHECK(ibv_dereg_mr(mr) == 0);
}
