/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_UVERBS_H
#define PEER_UVERBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A command: its body, the part that the provider adds, and the buffer for the answer. */
struct uverbs_cmd {
	const uint8_t *in, *drv_in;
	size_t in_len, drv_len;
	uint8_t *out; /* NULL if there is no answer */
	size_t out_len;
};

/* Answers in place of the default ones, which suffice to create a QP and post to it. */
struct uverbs_kernel {
	/* Returns 0 or an errno; ENOSYS selects the default answer. */
	int (*write)(uint32_t command, const struct uverbs_cmd *c);
	/* Returns the memory to map at @offset; NULL: anonymous memory. The pointer may be NULL. */
	void *(*map)(off_t offset);
};

/*
 * From now on libibverbs sees one device, mlx5_0, through peer_sysfs_start(). @kernel is NULL, or
 * must live until the end. Returns 0 or -errno.
 */
int uverbs_start(const struct uverbs_kernel *kernel);
/* Returns the descriptor by which libibverbs has opened the device, -1 if none. */
int uverbs_fd(void);
/*
 * Writes an answer, cut to the room that the library provides: newer versions expect longer ones.
 * Returns 0 or an errno.
 */
int uverbs_answer(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
		  size_t drv_len);

/* Fills in properties common to all emulated devices: CQEs of version 1, no registers yet. */
struct mlx5_ib_alloc_ucontext_resp;
void uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp);

/* Data that the provider has passed for the last QP. */
struct uverbs_seen {
	uint32_t uidx; /* user index in its CQEs */
};
const struct uverbs_seen *uverbs_seen(void);

#endif
