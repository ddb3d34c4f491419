/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <rte_malloc.h>

#include "step.h"

struct step_counts *volatile step_to;

static void
count(size_t field)
{
	struct step_counts *c = step_to;

	if (c != NULL)
		(*(uint64_t *)(void *)((char *)c + field))++;
}

#define COUNT(field) count(offsetof(struct step_counts, field))

/* Classifies the instruction at @p, as far as it is counted (SDM volume 2, chapter 2). */
static void
look(const uint8_t *p, struct step_counts *c)
{
	bool lock = false, prefix = true;
	unsigned int i;

	for (i = 0; prefix && i < 14; i += prefix) {
		switch (p[i]) {
		case 0xf0:
			lock = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x66:
		case 0x67:
		case 0xf2:
		case 0xf3:
			break;
		default:
			prefix = false;
		}
	}
	if ((p[i] & 0xf0) == 0x40) /* REX */
		i++;
	c->instructions++;
	if (lock || ((p[i] & 0xfe) == 0x86 && p[i + 1] >> 6 != 3))
		c->locks++;
	if ((p[i] == 0x0f && (p[i + 1] == 0x05 || p[i + 1] == 0x34)) ||
	    (p[i] == 0xcd && p[i + 1] == 0x80))
		c->syscalls++;
	if (((p[i] & 0xfe) == 0xf6 && (p[i + 1] >> 3 & 7) >= 6) ||
	    (p[i] == 0x0f && p[i + 1] == 0x5e))
		c->divisions++;
}

static void
on_trap(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	struct step_counts *c = step_to;

	(void)sig;
	(void)info;
	if (c != NULL)
		look((const uint8_t *)uc->uc_mcontext.gregs[REG_RIP], c);
}

/* Skips the red zone of the function that this one is inlined into. */
static inline void
trap_flag(bool on)
{
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp"
				 :
				 :
				 : "memory", "cc");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-0x101, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp"
				 :
				 :
				 : "memory", "cc");
}

void
step_run(void (*fn)(void *arg), void *arg, struct step_counts *c)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, old;

	sigemptyset(&sa.sa_mask);
	sigaction(SIGTRAP, &sa, &old);
	step_to = c;
	trap_flag(true);
	fn(arg);
	trap_flag(false);
	step_to = NULL;
	sigaction(SIGTRAP, &old, NULL);
}

/* ---- Replacements of library functions */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

void *
malloc(size_t size)
{
	COUNT(allocs);
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	COUNT(allocs);
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	COUNT(allocs);
	return __libc_realloc(p, size);
}

void
free(void *p)
{
	COUNT(allocs);
	__libc_free(p);
}

void *
aligned_alloc(size_t align, size_t size)
{
	COUNT(allocs);
	return __libc_memalign(align, size);
}

int
posix_memalign(void **p, size_t align, size_t size)
{
	COUNT(allocs);
	*p = __libc_memalign(align, size);
	return *p == NULL ? ENOMEM : 0;
}

/* The next definition of a name, for library functions without a second name. */
#define NEXT(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) next;                                                     \
		if (next == NULL) {                                                                \
			void *found = dlsym(RTLD_NEXT, #name);                                     \
			memcpy(&next, &found, sizeof(next));                                       \
		}                                                                                  \
		next;                                                                              \
	})

int
pthread_mutex_lock(pthread_mutex_t *m)
{
	COUNT(mutexes);
	return NEXT(pthread_mutex_lock)(m);
}

int
pthread_spin_lock(pthread_spinlock_t *l)
{
	COUNT(mutexes);
	return NEXT(pthread_spin_lock)(l);
}

int
pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	COUNT(mutexes);
	return NEXT(pthread_rwlock_rdlock)(l);
}

void *
rte_malloc(const char *type, size_t size, unsigned int align)
{
	COUNT(allocs);
	return NEXT(rte_malloc)(type, size, align);
}

void *
rte_zmalloc(const char *type, size_t size, unsigned int align)
{
	COUNT(allocs);
	return NEXT(rte_zmalloc)(type, size, align);
}

void *
rte_zmalloc_socket(const char *type, size_t size, unsigned int align, int socket)
{
	COUNT(allocs);
	return NEXT(rte_zmalloc_socket)(type, size, align, socket);
}

void
rte_free(void *p)
{
	COUNT(allocs);
	NEXT(rte_free)(p);
}
