/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Makes memory of the program accessible to other processes. Registered private memory is replaced
 * by a shared mapping of a file in memory with the same content, at the same address.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft_hooks.h"

/*
 * Finds the file behind [addr, addr + len), or makes one. Returns false if the memory stays private
 * to the process; peers then reach it by packets. Has the type of soft_memory_fn.
 */
bool share_memory(const uint8_t *addr, uint64_t len, struct soft_memory *m);
/* Makes all shared memory private again. Other threads may access it meanwhile. */
void share_end(void);
/* Holds a lock from before fork() until after it, so that no thread shares memory meanwhile. */
void share_lock(void);
void share_unlock(void);

/* ---- share_maps.c */

/* Why memory is not shared; the texts are those of share_why(). */
enum share_kind {
	SHARE_PRIVATE, /* can be replaced by a shared mapping */
	SHARE_OURS,    /* is a mapping of one file of share.c */
	SHARE_UNKNOWN,
	SHARE_HOLE,
	SHARE_FILE,
	SHARE_RIGHTS,
	SHARE_STACK,
	SHARE_ARENA,
	SHARE_MIXED,
};

/* A file that share.c has made. */
struct share_file {
	int fd;
	uint64_t dev, ino;
	bool mapped; /* set by share_scan() if the process still maps the file */
};

struct share_found {
	enum share_kind kind;
	const struct share_file *file; /* file of the mapping; valid if kind is SHARE_OURS */
	uint64_t off;                  /* offset in the file of the first byte of the range */
};

/*
 * Looks up the mappings of [from, end), whole pages, and sets the field mapped of each of the @n
 * files at @files.
 */
struct share_found share_scan(uintptr_t from, uintptr_t end, struct share_file *files,
			      unsigned int n);
/*
 * Returns true if [from, end) overlaps the stack of this thread. Allocates memory, so an allocator
 * may call madvise() meanwhile.
 */
bool share_on_stack(uintptr_t from, uintptr_t end);
/*
 * Calls @fn for each part of [from, end) that maps one of @files, until @fn returns false. Returns
 * false if the mappings cannot be read.
 */
typedef bool share_each_fn(void *arg, const struct share_file *file, uintptr_t at, size_t len,
			   uint64_t off);
bool share_each(uintptr_t from, uintptr_t end, struct share_file *files, unsigned int n,
		share_each_fn *fn, void *arg);
/* Returns text for a person: the reason why peers reach memory by packets. */
const char *share_why(enum share_kind kind);

/* ---- share_swap.c */

/* How the writes of other threads are handled while memory is replaced. */
enum share_guard {
	SHARE_NO_GUARD,   /* the kernel offers no write protection */
	SHARE_USER_GUARD, /* threads wait; system calls that write fail with EFAULT */
	SHARE_FULL_GUARD, /* threads and system calls wait */
};

enum share_guard share_guard(void);
/*
 * Opens a userfaultfd that can protect private and shared pages from writes, or returns -1. Sets
 * *guard, unless it is NULL, to how system calls that write are handled.
 */
int share_uffd(enum share_guard *guard);
/* Protects pages from writes by @uffd. Returns 0 or an errno. */
int share_protect(int uffd, void *at, size_t len);
/* Ends the protection, also if another process has the descriptor, and lets the writers go on. */
void share_unprotect(int uffd, void *at, size_t len);
/* Sets the device, whose registered memory the new pages of share_swap() avoid. */
void share_device(struct mlx5_ctx *ctx);
/*
 * Replaces the pages [at, at + len) by pages with the same content: of the file @fd from @off on,
 * or private pages if @fd is -1. Returns 0 or an errno; a part of the pages may then be replaced.
 */
int share_swap(uint8_t *at, size_t len, int fd, uint64_t off);

/*
 * Call it in a handler of SIGSEGV. If this thread copies pages in share_swap(), ends the copy and
 * does not return: another thread has unmapped the pages. Async-signal-safe.
 */
void share_escape(void);

/* ---- doorbell.c */
extern const struct soft_doorbell_ops doorbell_ops;
/*
 * Sets the file that has the device's register pages. The protected pages are mappings of this
 * file.
 */
void doorbell_file(int node_fd);

#endif
