/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Makes each allocation of each call that creates an object fail once, both of the C library and
 * of EAL. The call returns -ENOMEM, logs the cause, leaks nothing and leaves its output pointer
 * alone. The same call succeeds afterwards. For programs linked with --wrap of the allocators.
 */
#ifndef NOMEM_H
#define NOMEM_H

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_test.h"

/* ---- Allocations of our objects: counted, and one of them fails */

static uint32_t fail_in; /* calls until one fails; 0: none fails */
static int64_t live;     /* allocations in use */

static bool
fails(void)
{
	return fail_in != 0 && --fail_in == 0;
}

static void *
counted(void *p)
{
	live += p != NULL;
	return p;
}

/* Wraps allocator @name with the arguments @call of the types @proto. */
#define WRAP(name, proto, call)                                                                    \
	void *__real_##name proto;                                                                 \
	void *__wrap_##name proto;                                                                 \
	void *__wrap_##name proto                                                                  \
	{                                                                                          \
		return fails() ? NULL : counted(__real_##name call);                               \
	}
WRAP(malloc, (size_t size), (size))
WRAP(calloc, (size_t n, size_t size), (n, size))
WRAP(aligned_alloc, (size_t align, size_t size), (align, size))
WRAP(strdup, (const char *s), (s))
WRAP(rte_malloc, (const char *type, size_t size, unsigned int align), (type, size, align))
WRAP(rte_zmalloc, (const char *type, size_t size, unsigned int align), (type, size, align))
WRAP(rte_malloc_socket, (const char *type, size_t size, unsigned int align, int socket),
     (type, size, align, socket))
WRAP(rte_zmalloc_socket, (const char *type, size_t size, unsigned int align, int socket),
     (type, size, align, socket))
WRAP(rte_calloc_socket, (const char *type, size_t n, size_t size, unsigned int align, int socket),
     (type, n, size, align, socket))

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *
__wrap_realloc(void *p, size_t size)
{
	bool first = p == NULL;

	if (fails())
		return NULL;
	p = __real_realloc(p, size);
	live += first && p != NULL;
	return p;
}

int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
int
__wrap_posix_memalign(void **p, size_t align, size_t size)
{
	int ret = fails() ? ENOMEM : __real_posix_memalign(p, align, size);

	live += ret == 0;
	return ret;
}

void __real_free(void *p);
void __wrap_free(void *p);
void
__wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

void __real_rte_free(void *p);
void __wrap_rte_free(void *p);
void
__wrap_rte_free(void *p)
{
	live -= p != NULL;
	__real_rte_free(p);
}

/* ---- The log, which allocates no memory */

static char log_text[8192];
static size_t log_len;

static ssize_t
log_write(void *cookie, const char *text, size_t len)
{
	size_t n = RTE_MIN(len, sizeof(log_text) - 1 - log_len);

	(void)cookie;
	memcpy(log_text + log_len, text, n);
	log_len += n;
	log_text[log_len] = '\0';
	return (ssize_t)len;
}

/* Redirects the log to here. */
static inline int
nomem_log(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = log_write});

	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	return rte_openlog_stream(f);
}

/* ---- Calls that create an object, and the calls that destroy it. They store it in @made. */

static void *made;

/* Defines the function that makes @name with @expr, which stores the object at *out. */
#define MAKE(name, type, expr)                                                                     \
	static int make_##name(void)                                                               \
	{                                                                                          \
		struct type **out = (struct type **)(void *)&made;                                 \
                                                                                                   \
		return expr;                                                                       \
	}

#define UNDO(name, type, destroy)                                                                  \
	static int undo_##name(void)                                                               \
	{                                                                                          \
		struct type *p = made;                                                             \
                                                                                                   \
		return destroy(p);                                                                 \
	}

struct maker {
	const char *what;
	int (*make)(void);
	int (*undo)(void);
	uint32_t least; /* lower bound of the allocations that must succeed */
	bool keeps;     /* objects of the first use stay */
};

/* Shows all failures, not only the first. */
static unsigned int complaints;

#define COMPLAIN(m, k, ...)                                                                        \
	do {                                                                                       \
		complaints++;                                                                      \
		print_error("%s, allocation %u fails: ", (m)->what, k);                            \
		print_error(__VA_ARGS__);                                                          \
		print_error("; the log has \"%s\"\n", log_text);                                   \
	} while (0)

/* Returns whether the call succeeded because it had fewer than @k allocations. */
static inline bool
fail_one(const struct maker *m, uint32_t k, bool first, uint32_t *without)
{
	const int64_t before = live;
	bool left;
	int ret;

	log_len = 0;
	log_text[0] = '\0';
	made = NULL;
	fail_in = k;
	ret = m->make();
	left = fail_in != 0;
	fail_in = 0;
	if (ret == 0) {
		assert_non_null(made);
		assert_int_equal(m->undo(), 0);
		*without += !left;
	} else {
		if (ret != -ENOMEM)
			COMPLAIN(m, k, "%d, not -ENOMEM", ret);
		if (made != NULL)
			COMPLAIN(m, k, "its pointer is set");
		if (strstr(log_text, "memory") == NULL)
			COMPLAIN(m, k, "in silence");
	}
	if (live != before && !(first && m->keeps))
		COMPLAIN(m, k, "%" PRId64 " pieces are left", live - before);
	return left;
}

/* Tests each allocation of each maker. */
static inline void
nomem_each(const struct maker *makers, uint32_t n)
{
	uint32_t k, without;

	for (uint32_t i = 0; i < n; i++) {
		const struct maker *m = &makers[i];

		/* Twice: what stays after the first use must not grow. */
		for (int first = 1; first >= 0; first--) {
			without = 0;
			for (k = 1; !fail_one(m, k, first, &without); k++)
				;
			print_message("%-10s %2u allocations, %u of them could be done without\n",
				      m->what, k - 1, without);
			if (first && k - 1 - without < m->least)
				fail_msg("%s: %u allocations were needed, not %u", m->what,
					 k - 1 - without, m->least);
		}
	}
	assert_int_equal(complaints, 0);
}

#endif
