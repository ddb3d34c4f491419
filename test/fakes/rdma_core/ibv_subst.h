/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A substitute for libibverbs and libmlx5: every symbol that mlx5_cmd_dv.c uses,
 * for a test program that links neither library. There is one device, "mlx5_9" at
 * 0000:3b:00.0, and its firmware and kernel are the software device soft9, which
 * checks what the kernel checks (drivers/soft/rules/soft_kernel.c).
 */
#ifndef IBV_SUBST_H
#define IBV_SUBST_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define SUBST_NAME "mlx5_9"
#define SUBST_BUS  "0000:3b:00.0"
#define SUBST_SOFT "soft9"

struct subst {
	/* Call number @fail_at from now on fails with @fail_errno; 0: none does. */
	uint32_t fail_at;
	int fail_errno;
	bool failed; /* one did */
	const char *failed_call;
	uint32_t calls;

	bool no_devices;   /* no kernel support for verbs */
	bool foreign;      /* the device is not an mlx5 */
	bool old_kernel;   /* refused commands give an errno and no mailbox */
	bool no_bitmap;    /* page size bitmaps are not known: EOPNOTSUPP */
	bool no_dmabuf;    /* dma-bufs are not known: EOPNOTSUPP */
	bool no_channel;   /* no DEVX events: EOPNOTSUPP */
	uint32_t gid_type; /* of every GID; 0: as the software device says */
	bool bad_async_fd, bad_channel_fd;
	int open_errno; /* mlx5dv_open_device() fails with it; -1: errno is left at 0 */
	bool gone;      /* the kernel has let go: calls give EIO; see subst_remove() */
	char args[64];  /* options of the software device */
	int rereg_code; /* what ibv_rereg_mr() returns when it has succeeded */

	/* What was asked last. */
	uint32_t umem_reg_ex, umem_reg;
	uint64_t pgsz_bitmap;
	uint32_t dm_log_align;
	uint64_t cookie; /* of a subscription */

	uint32_t subscriptions; /* what the kernel keeps of them */
	uint32_t handles;       /* given out and not taken back */
};

extern struct subst subst;

void subst_reset(void);
/* The kernel lets go of the device: calls give EIO, DEVX channels are readable and have nothing. */
void subst_remove(void);
/* Run the software device. */
void subst_progress(void);
/* Have ibv_get_async_event() and mlx5dv_devx_get_event() give something. */
void subst_async(enum ibv_event_type type, int port);
void subst_devx_overflow(void);
/* An event of @bytes behind its header. */
void subst_devx_event(uint64_t cookie, uint8_t type, uint32_t bytes);

#endif
