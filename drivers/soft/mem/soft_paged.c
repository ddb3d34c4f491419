/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Access to memory that is paged on demand (ODP).
 *
 * A peer's access: the memory may be unmapped at any moment, so the device never touches it
 * directly. Instead the kernel copies, by process_vm_writev() and process_vm_readv() on this
 * process, and reports ranges that it could not access. To check /proc/self/maps or populate the
 * pages first would not be enough, because the memory may be unmapped before the access.
 *
 * Each copy costs one system call. The kernel's copy may write an aligned 8-byte unit in several
 * stores, so a reader may see the unit half written. Atomics are not supported (rc_odp_caps.atomic
 * is 0), because they need CPU instructions on the memory.
 */
#define _GNU_SOURCE /* process_vm_writev() */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft_access.h"

/* Bytes of one copy, below the kernel's limit of 2 GiB less one page. */
#define COPY_MAX (UINT64_C(1) << 30)

static bool
copy(uint8_t *own, uint8_t *paged, uint64_t len, bool write)
{
	pid_t pid = getpid();

	while (len != 0) {
		uint64_t n = RTE_MIN(len, COPY_MAX);
		struct iovec here = {own, n}, there = {paged, n};
		ssize_t done = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
				     : process_vm_readv(pid, &here, 1, &there, 1, 0);

		/*
		 * On an unmapped hole the copy fails, but bytes before the hole stay written, as on
		 * a card.
		 */
		if (done < 0 || (uint64_t)done != n)
			return false;
		own += n;
		paged = (uint8_t *)((uintptr_t)paged + n);
		len -= n;
	}
	return true;
}

bool
soft_paged_works(void)
{
	uint8_t from = 0x5a, to = 0;

	return copy(&to, &from, 1, false) && to == 0x5a && copy(&to, &from, 1, true);
}

bool
soft_paged_backed(uint64_t addr)
{
	uint8_t byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)addr, 1};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/*
 * Calls syscall() instead of madvise(), because a library of the program may replace madvise().
 */
static bool
populate(uintptr_t from, size_t len, bool write)
{
	return syscall(SYS_madvise, from, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
	       0;
}

/*
 * Returns true if the kernel reports memory that it cannot populate. QEMU's emulation of a process
 * ignores what it does not know, and returns 0. Page 0 is never mapped.
 */
static bool
populate_reports(void)
{
	static int reports; /* 1 true, -1 false, 0 unknown; atomic */
	int found = __atomic_load_n(&reports, __ATOMIC_RELAXED);

	if (found == 0) {
		found = populate(0, (size_t)sysconf(_SC_PAGESIZE), false) ? -1 : 1;
		__atomic_store_n(&reports, found, __ATOMIC_RELAXED);
	}
	return found > 0;
}

bool
soft_paged_populate(uint8_t *at, uint64_t len, bool write)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at & ~(page - 1);

	return populate_reports() && populate(from, (uintptr_t)at + len - from, write);
}

bool
soft_paged_write(uint8_t *dst, const struct soft_frag *src, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!copy(src[i].p, dst, src[i].len, true))
			return false;
		dst = (uint8_t *)((uintptr_t)dst + src[i].len);
	}
	return true;
}

bool
soft_paged_read(uint8_t *dst, uint8_t *src, uint64_t len)
{
	return copy(dst, src, len, false);
}

bool
soft_paged_respond(struct soft_qp *qp, const struct soft_req *r, bool in_cqe, uint8_t *src)
{
	uint32_t i;

	if (in_cqe) {
		if (!copy(qp->cs_data, src, r->d.len, false))
			return false;
		qp->cs_len = (uint8_t)r->d.len;
		return true;
	}
	for (i = 0; i < r->n; i++) {
		if (!copy(r->frag[i].p, src, r->frag[i].len, false))
			return false;
		src = (uint8_t *)((uintptr_t)src + r->frag[i].len);
	}
	return true;
}
