/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A substitute for libibverbs and libmlx5: every symbol that mlx5_cmd_dv.c uses, for a test
 * program linked with neither library. It has one device, "mlx5_9" at 0000:3b:00.0. The software
 * device soft9 is its firmware and kernel and checks what the kernel checks
 * (drivers/soft/rules/soft_kernel.c).
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
	/* Call number @fail_at from now on fails with @fail_errno; 0: no call fails. */
	uint32_t fail_at;
	int fail_errno;
	bool failed; /* a call failed */
	const char *failed_call;
	uint32_t calls;

	bool no_devices;   /* no kernel support for verbs */
	bool foreign;      /* the device is not an mlx5 */
	bool old_kernel;   /* failed commands return an errno and no mailbox */
	bool no_bitmap;    /* page size bitmaps are unknown: EOPNOTSUPP */
	bool no_dmabuf;    /* dma-bufs are unknown: EOPNOTSUPP */
	bool no_channel;   /* no DEVX events: EOPNOTSUPP */
	bool no_nc_uar;    /* no uncached UARs: EOPNOTSUPP */
	uint32_t gid_type; /* of every GID; 0: as the software device reports */
	bool bad_async_fd, bad_channel_fd;
	int open_errno; /* errno of mlx5dv_open_device(); -1: it fails with errno 0 */
	bool gone;      /* the kernel removed the device: calls return EIO; see subst_remove() */
	char args[64];  /* options of the software device */
	int rereg_code; /* result of a successful ibv_rereg_mr() */

	/* Arguments of the last calls. */
	uint32_t umem_reg_ex, umem_reg;
	uint64_t pgsz_bitmap;
	uint32_t dm_log_align;
	uint64_t cookie; /* of a subscription */

	uint32_t subscriptions; /* subscriptions that the kernel holds */
	uint32_t handles;       /* live handles */
};

extern struct subst subst;

void subst_reset(void);
/*
 * Removes the device as the kernel does: calls return EIO; DEVX channels are readable without
 * data.
 */
void subst_remove(void);
/* Runs the software device. */
void subst_progress(void);
/* Adds an event for ibv_get_async_event(), or an overflow for mlx5dv_devx_get_event(). */
void subst_async(enum ibv_event_type type, int port);
void subst_devx_overflow(void);
/* Adds an event of @bytes after its header. */
void subst_devx_event(uint64_t cookie, uint8_t type, uint32_t bytes);

#endif
