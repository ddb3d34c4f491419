/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the kernel checks before a DEVX call reaches the firmware.
 *
 * Source: Linux drivers/infiniband/hw/mlx5/devx.c (functions named at each rule).
 * The kernel knows many more commands; those of the software device and those a
 * user could mistake for them are listed.
 */
#ifndef SOFT_KERNEL_H
#define SOFT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The DEVX ioctl methods. */
enum soft_kernel_method {
	SOFT_KERNEL_GENERAL,
	SOFT_KERNEL_CREATE,
	SOFT_KERNEL_MODIFY,
	SOFT_KERNEL_QUERY,
};

/* Smallest mailbox, and the largest input of a command that the software device knows. */
#define SOFT_KERNEL_MIN_BOX 16
#define SOFT_KERNEL_MAX_IN  4096

/*
 * May this mailbox go to the firmware by this method? @obj_id is the handle's, for
 * modify and query. 0; -EINVAL or, for a CQ's event queue, -ENOENT with a line in the log.
 */
int soft_kernel_check(enum soft_kernel_method method, uint64_t obj_id, const void *in, size_t inlen,
		      size_t outlen);

/* Set the bits that the kernel sets in the copy it sends on. @in holds @inlen bytes. */
void soft_kernel_fill(void *in, size_t inlen);

/* Identity of the object that a command created: its opcode and its number. */
uint64_t soft_kernel_obj_id(const void *in, const void *out);

/* The command that destroys it: SOFT_KERNEL_MIN_BOX bytes. */
void soft_kernel_destroy_cmd(uint64_t obj_id, void *in);

/* What a destroy call returns when the firmware refused: a negative errno, or 0. */
int soft_kernel_status_errno(uint8_t status);

/* Rules of umem and MR access flags (IBV_ACCESS_*). 0 or -EINVAL, logged. */
int soft_kernel_umem_access(uint32_t access);
int soft_kernel_mr_access(uint32_t access);

/* Which events may be subscribed to, of an object or of the device. 0 or -EINVAL, logged. */
int soft_kernel_events(const uint16_t *types, unsigned int n, bool has_obj);

/*
 * The page size of a umem: the largest of @pgsz_bitmap that address and length allow.
 * 0: none. Whether the memory lies in one piece physically, as the kernel also asks
 * for pages above the CPU's, cannot be seen here.
 */
uint64_t soft_kernel_umem_pgsz(uint64_t addr, uint64_t len, uint64_t pgsz_bitmap);

#endif
