/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Handles SIGSEGV and SIGBUS of the device. A program may unmap private memory, or truncate a file
 * that it has mapped, before it deregisters the memory: a card accesses the pages, which the kernel
 * has pinned. Here the device's access faults, and the handler lets the access go on (soft_fill()).
 * The program's own actions for the two signals apply to all other faults: calls of sigaction() and
 * signal() set and return them as if this handler did not exist. See also base/mask.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "libc.h"
#include "preload.h"

/* Flags of the program's action that this handler needs, too. */
#define SAME_FLAGS (SA_ONSTACK | SA_NODEFER | SA_RESTART)

/* The program's action for a signal. */
struct fault {
	int sig;
	/*
	 * The action is actions[changes & 1]. So a change does not touch the action that a handler
	 * reads, and a handler that two changes overtake reads again.
	 */
	struct sigaction actions[2];
	unsigned int changes; /* accessed with __atomic */
};

static struct fault faults[] = {{.sig = SIGSEGV}, {.sig = SIGBUS}};
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static bool (*fill_memory)(int sig, const void *at);
static pid_t owner; /* process whose actions are in faults, 0 if none; accessed with __atomic */
static bool locked; /* a thread changes an action; accessed with __atomic */

static void on_fault(int sig, siginfo_t *info, void *context);

static struct sigaction
action(struct fault *f)
{
	struct sigaction copy;
	unsigned int n;

	do {
		n = __atomic_load_n(&f->changes, __ATOMIC_ACQUIRE);
		copy = f->actions[n & 1];
		/* Release order: the copy ends before this. */
	} while (__atomic_fetch_add(&f->changes, 0, __ATOMIC_RELEASE) != n);
	return copy;
}

/* Takes the lock. Blocks signals, because a handler may call sigaction(). */
static void
lock_action(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
	while (__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE))
		;
}

static void
unlock_action(const sigset_t *before)
{
	__atomic_store_n(&locked, false, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Sets the program's action, and lets the kernel treat the handler of this file as it asks for. */
static void
set_action(struct fault *f, const struct sigaction *to)
{
	const unsigned int next = __atomic_load_n(&f->changes, __ATOMIC_RELAXED) + 1;
	struct sigaction own = {
		.sa_sigaction = on_fault,
		.sa_mask = to->sa_mask,
		.sa_flags = (to->sa_flags & SAME_FLAGS) | SA_SIGINFO,
	};

	f->actions[next & 1] = *to;
	__atomic_store_n(&f->changes, next, __ATOMIC_RELEASE);
	(void)real_sigaction(f->sig, &own, NULL);
}

/*
 * Returns true if the kernel raises the signal again when the handler returns. It does not for a
 * signal of kill(), nor for an early report of broken memory.
 */
static bool
comes_again(const siginfo_t *info)
{
	return info->si_code > 0 && (info->si_signo != SIGBUS || info->si_code != BUS_MCEERR_AO);
}

/* Lets the signal have its default action. */
static void
die(const siginfo_t *info)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};

	(void)real_sigaction(info->si_signo, &by_default, NULL);
	if (!comes_again(info))
		(void)raise(info->si_signo);
}

/* Applies the program's action. */
static void
pass_on(struct fault *f, siginfo_t *info, void *context)
{
	const struct sigaction to = action(f);
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t before;

	/* The kernel does not ignore a fault. */
	if (to.sa_handler == SIG_DFL || (to.sa_handler == SIG_IGN && comes_again(info))) {
		die(info);
		return;
	}
	if (to.sa_handler == SIG_IGN)
		return;
	if ((to.sa_flags & (int)SA_RESETHAND) != 0) {
		lock_action(&before);
		set_action(f, &by_default);
		unlock_action(&before);
	}
	if ((to.sa_flags & SA_SIGINFO) != 0)
		to.sa_sigaction(f->sig, info, context);
	else
		to.sa_handler(f->sig);
}

/* Treats a signal that the program has blocked as the kernel does. */
static void
stay_blocked(const siginfo_t *info, ucontext_t *context)
{
	if (comes_again(info))
		die(info);
	else
		mask_keep(info->si_signo, context);
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	struct fault *f = &faults[sig == SIGBUS];
	const int saved = errno;
	const int code = sig == SIGBUS ? BUS_ADRERR : SEGV_MAPERR;
	const bool filled = info->si_code == code && fill_memory(sig, info->si_addr);

	errno = saved;
	if (filled)
		return;
	if (mask_blocks(sig))
		stay_blocked(info, context);
	else
		pass_on(f, info, context);
}

void
fault_catch(bool (*fill)(int sig, const void *at))
{
	struct sigaction now;
	sigset_t before;
	unsigned int i;

	if (real_sigaction == NULL)
		*(void **)&real_sigaction = libc_find("sigaction");
	fill_memory = fill;
	lock_action(&before);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		/* The program may have replaced the handler by a system call. */
		if (real_sigaction(faults[i].sig, NULL, &now) == 0 && now.sa_sigaction != on_fault)
			set_action(&faults[i], &now);
	__atomic_store_n(&owner, getpid(), __ATOMIC_RELEASE);
	unlock_action(&before);
}

void
fault_forked(void)
{
	__atomic_store_n(&locked, false, __ATOMIC_RELAXED);
	__atomic_store_n(&owner, getpid(), __ATOMIC_RELAXED);
	mask_forked();
}

/* ---- The program's calls */

/* Returns the entry of a signal whose action is the handler of this file, or NULL. */
static struct fault *
fault_of(int sig)
{
	const pid_t pid = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);

	return pid == 0 || (sig != SIGSEGV && sig != SIGBUS) ? NULL : &faults[sig == SIGBUS];
}

PUBLIC int
sigaction(int sig, const struct sigaction *to, struct sigaction *from)
{
	struct fault *f = fault_of(sig);
	struct sigaction old, new;
	sigset_t before;
	int rc = 0;

	REAL(int, sigaction, int, const struct sigaction *, struct sigaction *);
	if (f == NULL)
		return real(sig, to, from);
	if (to != NULL)
		new = *to;
	/* A child of vfork() has its own action, but the memory of its parent. */
	if (getpid() != __atomic_load_n(&owner, __ATOMIC_RELAXED)) {
		rc = real(sig, to != NULL ? &new : NULL, &old);
		if (rc == 0 && old.sa_sigaction == on_fault)
			old = action(f);
	} else {
		lock_action(&before);
		old = action(f);
		if (to != NULL)
			set_action(f, &new);
		unlock_action(&before);
	}
	if (rc == 0 && from != NULL)
		*from = old;
	return rc;
}

/* Sets a handler with @flags. Returns the handler before, or SIG_ERR. */
static sighandler_t
set_handler(int sig, sighandler_t handler, int flags)
{
	const struct sigaction to = {.sa_handler = handler, .sa_flags = flags};
	struct sigaction from;

	return sigaction(sig, &to, &from) == 0 ? from.sa_handler : SIG_ERR;
}

PUBLIC sighandler_t
signal(int sig, sighandler_t handler)
{
	REAL(sighandler_t, signal, int, sighandler_t);
	return fault_of(sig) != NULL && handler != SIG_ERR ? set_handler(sig, handler, SA_RESTART)
							   : real(sig, handler);
}

PUBLIC sighandler_t
sysv_signal(int sig, sighandler_t handler)
{
	REAL(sighandler_t, sysv_signal, int, sighandler_t);
	return fault_of(sig) != NULL && handler != SIG_ERR
		       ? set_handler(sig, handler, (int)(SA_RESETHAND | SA_NODEFER))
		       : real(sig, handler);
}

/* Name of signal() in programs that are built for System V. */
sighandler_t __sysv_signal(int sig, sighandler_t handler);
PUBLIC sighandler_t
__sysv_signal(int sig, sighandler_t handler)
{
	return sysv_signal(sig, handler);
}
