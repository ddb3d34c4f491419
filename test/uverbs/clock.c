/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The page of a card's registers from which libmlx5 reads the clock. Plain memory does not count,
 * so each read faults. The fault handler writes the time, opens the page, and single-steps the
 * instruction that reads it; then the page is closed again. For tests: another thread that reads
 * in between may get a slightly older time.
 */
#define _GNU_SOURCE /* REG_EFL */
#include <endian.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "clock.h"

#if defined(__x86_64__)

#define TRAP_FLAG 0x100

static uint32_t *seen, *own; /* the same page, mapped for libmlx5 and for this file */
static size_t page;
static struct sigaction before[2]; /* of SIGSEGV, SIGTRAP */

/* Passes a signal of another cause to the previous handler. */
static void
pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *old = &before[sig == SIGTRAP];

	if ((old->sa_flags & SA_SIGINFO) != 0) {
		old->sa_sigaction(sig, info, context);
	} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
	} else {
		/*
		 * The instruction runs again and ends the process; a signal sent by a process is
		 * raised again.
		 */
		(void)sigaction(sig, old, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void
caught(int sig, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	uint64_t now;

	if (sig == SIGTRAP && (*flags & TRAP_FLAG) != 0) {
		(void)mprotect(seen, page, PROT_NONE);
		*flags &= ~(greg_t)TRAP_FLAG;
		return;
	}
	if (sig == SIGTRAP || (uintptr_t)info->si_addr - (uintptr_t)seen >= page) {
		pass_on(sig, info, context);
		return;
	}
	now = rte_rdtsc(); /* as the software device */
	own[0] = htobe32((uint32_t)(now >> 32));
	own[1] = htobe32((uint32_t)now);
	(void)mprotect(seen, page, PROT_READ);
	*flags |= TRAP_FLAG;
}

void *
clock_page(void)
{
	struct sigaction to = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
	int fd;

	if (seen != NULL)
		return seen;
	page = (size_t)sysconf(_SC_PAGESIZE);
	fd = memfd_create("clock", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)page) != 0)
		return NULL;
	own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	seen = mmap(NULL, page, PROT_NONE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (own == MAP_FAILED || seen == MAP_FAILED || sigaction(SIGSEGV, &to, &before[0]) != 0 ||
	    sigaction(SIGTRAP, &to, &before[1]) != 0)
		seen = NULL;
	return seen;
}

void *
clock_page_mapped(void)
{
	return seen;
}

#else

void *
clock_page(void)
{
	return NULL;
}

void *
clock_page_mapped(void)
{
	return NULL;
}

#endif
