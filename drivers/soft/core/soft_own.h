/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Mappings of the device's own in the process of a program. */
#ifndef SOFT_OWN_H
#define SOFT_OWN_H

#include <stddef.h>
#include <stdint.h>

#include "soft.h"

/*
 * Maps memory as mmap() does, at an address that the device chooses: outside of all registered
 * memory of the device. A program may unmap memory that is still registered, and the kernel may
 * choose this place for the next mapping. Requests to the registered memory would then access the
 * new mapping. Only a device that has soft_share_by() expects such programs; for another device,
 * and if @dev is NULL, this function is mmap().
 *
 * Call it with soft_dev.lock held, or in a turn of an engine. Returns MAP_FAILED with errno.
 */
void *soft_own_map(const struct soft_dev *dev, size_t len, int prot, int flags, int fd,
		   uint64_t off);

/*
 * Maps [at, at + len) as pages of zeros, unless a part of it is mapped. Returns 0 or an errno,
 * which is EEXIST then. Async-signal-safe.
 */
int soft_own_zeros(uintptr_t at, size_t len);

/*
 * Creates a file in memory of @len bytes. @flags: those of memfd_create(), to which MFD_CLOEXEC is
 * added. Returns its descriptor or a negative errno: -EFBIG if the process may not have files of
 * this size; the kernel would end it by SIGXFSZ.
 */
int soft_own_file(const char *name, uint64_t len, unsigned int flags);
/* Returns what to do about an error of soft_own_file(), for the end of a log line; may be "". */
const char *soft_own_file_hint(int ret);

/* Returns the length in bytes of the memory of a direct key. */
static inline uint64_t
soft_mkey_length(const struct soft_mkey *m)
{
	return m->detour != SOFT_DETOUR_NONE ? m->detour_len : m->len;
}

/* Returns a number that is larger than the indices of all keys in soft_dev.mkeys. */
uint32_t soft_mkey_end(const struct soft_dev *dev);

#endif
