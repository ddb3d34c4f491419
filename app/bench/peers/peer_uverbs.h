/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_UVERBS_H
#define PEER_UVERBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A command: its body, what the provider adds to it, and where the answer goes. */
struct uverbs_cmd {
	const uint8_t *in, *drv_in;
	size_t in_len, drv_len;
	uint8_t *out; /* NULL: none */
	size_t out_len;
};

/* Answers in place of the usual ones, which are enough to have a QP and post to it. */
struct uverbs_kernel {
	/* 0 or an errno; ENOSYS: the usual answer. */
	int (*write)(uint32_t command, const struct uverbs_cmd *c);
	/* What is mapped there; NULL: memory. NULL itself: all is. */
	void *(*map)(off_t offset);
};

/*
 * From here on libibverbs sees one device, mlx5_0, by peer_sysfs_start(). @kernel: NULL or what
 * outlives it. 0 or -errno.
 */
int uverbs_start(const struct uverbs_kernel *kernel);
/* The descriptor by which libibverbs has it open; -1: none. */
int uverbs_fd(void);
/* Answers are as long as the library has room for: newer ones know longer ones. 0 or an errno. */
int uverbs_answer(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
		  size_t drv_len);

/* What each device of ours says of itself: CQEs of version 1, no registers yet. */
struct mlx5_ib_alloc_ucontext_resp;
void uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp);

/* What the provider has said of the last QP. */
struct uverbs_seen {
	uint32_t uidx; /* in its CQEs */
};
const struct uverbs_seen *uverbs_seen(void);

#endif
