/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Unblocks SIGSEGV and SIGBUS in threads that run the device. The kernel ends a process whose
 * thread blocks the signal of its fault, and daemons block all signals in their threads. The two
 * signals stay unblocked until the thread's next call of pthread_sigmask() or sigprocmask(), which
 * finds them blocked. A mask that libc sets in siglongjmp() or swapcontext(), or for a handler, is
 * not noticed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "libc.h"
#include "preload.h"

static const int sigs[] = {SIGSEGV, SIGBUS};
#define N_SIGS (sizeof(sigs) / sizeof(sigs[0]))

#define FAST_TLS __thread __attribute__((tls_model("initial-exec")))

FAST_TLS bool mask_unblocked;
/* Bit mask of the entries of sigs[] that this file has unblocked in this thread, and the process
 * that has this thread. */
static FAST_TLS unsigned int unblocked;
static FAST_TLS pid_t owner;

static int (*real_mask)(int, const sigset_t *, sigset_t *);

/* Returns the set of the signals whose bits are in @bits. */
static sigset_t
set_of(unsigned int bits)
{
	sigset_t set;
	unsigned int i;

	sigemptyset(&set);
	for (i = 0; i < N_SIGS; i++)
		if ((bits >> i & 1) != 0)
			sigaddset(&set, sigs[i]);
	return set;
}

/* Returns the bits of the signals that are in @set. */
static unsigned int
bits_of(const sigset_t *set)
{
	unsigned int i, bits = 0;

	for (i = 0; i < N_SIGS; i++)
		bits |= (unsigned int)(sigismember(set, sigs[i]) == 1) << i;
	return bits;
}

void
mask_unblock(void)
{
	sigset_t set;

	if (real_mask == NULL)
		*(void **)&real_mask = libc_find("pthread_sigmask");
	if (real_mask(SIG_BLOCK, NULL, &set) != 0)
		return;
	mask_unblocked = true;
	/* Set before the signals are unblocked, because one may be pending. */
	owner = getpid();
	unblocked = bits_of(&set);
	if (unblocked == 0)
		return;
	set = set_of(unblocked);
	(void)real_mask(SIG_UNBLOCK, &set, NULL);
}

bool
mask_blocks(int sig)
{
	return unblocked != 0 && (unblocked & 1u << (sig == SIGBUS)) != 0;
}

void
mask_keep(int sig, ucontext_t *context)
{
	const sigset_t one = set_of(1u << (sig == SIGBUS));
	const int saved = errno;

	unblocked &= ~bits_of(&one);
	(void)real_mask(SIG_BLOCK, &one, NULL);
	sigaddset(&context->uc_sigmask, sig);
	(void)raise(sig);
	errno = saved;
}

void
mask_forked(void)
{
	owner = getpid();
}

/*
 * Ends what mask_unblock() has done in this thread, before the program reads its mask or sets it to
 * @set.
 */
static void
block_again(int how, const sigset_t *set)
{
	sigset_t own;

	if (!mask_unblocked)
		return;
	if (unblocked == 0) {
		mask_unblocked = set == NULL || how == SIG_UNBLOCK || bits_of(set) == 0;
		return;
	}
	/* A child of vfork() has its own mask, but the memory of its parent. */
	if (getpid() != owner)
		return;
	own = set_of(unblocked);
	(void)real_mask(SIG_BLOCK, &own, NULL);
	mask_unblocked = false;
	unblocked = 0;
}

PUBLIC int
pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	REAL(int, pthread_sigmask, int, const sigset_t *, sigset_t *);
	block_again(how, set);
	return real(how, set, before);
}

PUBLIC int
sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
	REAL(int, sigprocmask, int, const sigset_t *, sigset_t *);
	block_again(how, set);
	return real(how, set, before);
}
