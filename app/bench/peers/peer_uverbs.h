/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_UVERBS_H
#define PEER_UVERBS_H

#include "uverbs_cmd.h"

/*
 * Plays the kernel: replaces responses to uverbs commands. The default responses suffice to create
 * a QP and post to it.
 */
struct uverbs_kernel {
	/* Executes a command. Returns 0 or an errno; ENOSYS selects the default response. */
	int (*write)(const struct uverbs_cmd *c);
};

/*
 * Makes libibverbs see one device, mlx5_0, through peer_sysfs_start(). @kernel may be NULL;
 * otherwise it must exist until the process ends. Returns 0 or -errno.
 */
int uverbs_start(const struct uverbs_kernel *kernel);

/* Data that the provider has passed with its last command to create a QP. */
struct uverbs_created {
	uint32_t uidx; /* user index in the CQEs of the QP */
};
const struct uverbs_created *uverbs_created(void);

#endif
