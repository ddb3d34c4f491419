/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Handles SIGSEGV of the device. A program may unmap private memory before it deregisters it: a
 * card accesses the pages, which the kernel has pinned. Here the device's access faults, and the
 * handler lets the access go on (soft_fill()). The program's own action for SIGSEGV applies to all
 * other faults: calls of sigaction() and signal() set and return it as if this handler did not
 * exist.
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

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static bool (*fill_memory)(const void *at);
static bool caught; /* the handler of this file is installed; accessed with __atomic */
/*
 * The program's action is actions[changes & 1]. So a change does not touch the action that a
 * handler reads, and a handler that two changes overtake reads again.
 */
static struct sigaction actions[2];
static unsigned int changes; /* accessed with __atomic */
static bool locked;          /* a thread changes the action; accessed with __atomic */

static void on_fault(int sig, siginfo_t *info, void *context);

static struct sigaction
action(void)
{
	struct sigaction copy;
	unsigned int n;

	do {
		n = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
		copy = actions[n & 1];
		/* Release order: the copy ends before this. */
	} while (__atomic_fetch_add(&changes, 0, __ATOMIC_RELEASE) != n);
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
set_action(const struct sigaction *to)
{
	const unsigned int next = __atomic_load_n(&changes, __ATOMIC_RELAXED) + 1;
	struct sigaction own = {
		.sa_sigaction = on_fault,
		.sa_mask = to->sa_mask,
		.sa_flags = (to->sa_flags & SAME_FLAGS) | SA_SIGINFO,
	};

	actions[next & 1] = *to;
	__atomic_store_n(&changes, next, __ATOMIC_RELEASE);
	(void)real_sigaction(SIGSEGV, &own, NULL);
}

/* Lets the signal have its default action. */
static void
die(const siginfo_t *info)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};

	(void)real_sigaction(SIGSEGV, &by_default, NULL);
	/* An access faults again after the return; a signal of kill() must be sent again. */
	if (info->si_code <= 0)
		(void)raise(SIGSEGV);
}

/* Applies the program's action. */
static void
pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction to = action();
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t before;

	/* The kernel does not ignore a fault. */
	if (to.sa_handler == SIG_DFL || (to.sa_handler == SIG_IGN && info->si_code > 0)) {
		die(info);
		return;
	}
	if (to.sa_handler == SIG_IGN)
		return;
	if ((to.sa_flags & (int)SA_RESETHAND) != 0) {
		lock_action(&before);
		set_action(&by_default);
		unlock_action(&before);
	}
	if ((to.sa_flags & SA_SIGINFO) != 0)
		to.sa_sigaction(sig, info, context);
	else
		to.sa_handler(sig);
}

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	const int saved = errno;
	const bool filled = info->si_code == SEGV_MAPERR && fill_memory(info->si_addr);

	errno = saved;
	if (!filled)
		pass_on(sig, info, context);
}

void
fault_catch(bool (*fill)(const void *at))
{
	struct sigaction now;
	sigset_t before;

	if (real_sigaction == NULL)
		*(void **)&real_sigaction = libc_find("sigaction");
	fill_memory = fill;
	lock_action(&before);
	/* The program may have replaced the handler by a system call. */
	if (real_sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction != on_fault) {
		set_action(&now);
		__atomic_store_n(&caught, true, __ATOMIC_RELEASE);
	}
	unlock_action(&before);
}

/* ---- The program's calls */

PUBLIC int
sigaction(int sig, const struct sigaction *to, struct sigaction *from)
{
	struct sigaction old, new;
	sigset_t before;

	REAL(int, sigaction, int, const struct sigaction *, struct sigaction *);
	if (sig != SIGSEGV || !__atomic_load_n(&caught, __ATOMIC_ACQUIRE))
		return real(sig, to, from);
	if (to != NULL)
		new = *to;
	lock_action(&before);
	old = action();
	if (to != NULL)
		set_action(&new);
	unlock_action(&before);
	if (from != NULL)
		*from = old;
	return 0;
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
	return sig == SIGSEGV && handler != SIG_ERR ? set_handler(sig, handler, SA_RESTART)
						    : real(sig, handler);
}

PUBLIC sighandler_t
sysv_signal(int sig, sighandler_t handler)
{
	REAL(sighandler_t, sysv_signal, int, sighandler_t);
	return sig == SIGSEGV && handler != SIG_ERR
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
