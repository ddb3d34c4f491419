/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_UVERBS_H
#define PEER_UVERBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A uverbs command: its body, the part that the provider adds, and the buffer for the response. */
struct uverbs_cmd {
	const uint8_t *in, *drv_in;
	size_t in_len, drv_len;
	uint8_t *out; /* buffer for the response; NULL if the command has none */
	size_t out_len;
};

/*
 * Functions that replace the default responses. The default ones suffice to create a QP and post to
 * it.
 */
struct uverbs_kernel {
	/* Executes a command. Returns 0 or an errno; ENOSYS selects the default response. */
	int (*write)(uint32_t command, const struct uverbs_cmd *c);
	/*
	 * Returns the memory to map at @offset, or NULL for anonymous memory. The function pointer
	 * may be NULL.
	 */
	void *(*map)(off_t offset);
};

/*
 * Makes libibverbs see one device, mlx5_0, through peer_sysfs_start(). @kernel may be NULL;
 * otherwise it must exist until the process ends. Returns 0 or -errno.
 */
int uverbs_start(const struct uverbs_kernel *kernel);
/* Returns the descriptor by which libibverbs has opened the device, -1 if it has not. */
int uverbs_fd(void);
/*
 * Writes a response. Truncates it to the length of the library's buffer, because a newer kernel ABI
 * has longer responses. Returns 0 or an errno.
 */
int uverbs_reply(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
		 size_t drv_len);

/*
 * Fills in the properties that all emulated devices have: CQEs of version 1, and no registers yet.
 */
struct mlx5_ib_alloc_ucontext_resp;
void uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp);

/* Data that the provider has passed with its last command to create a QP. */
struct uverbs_created {
	uint32_t uidx; /* user index in the CQEs of the QP */
};
const struct uverbs_created *uverbs_created(void);

#endif
