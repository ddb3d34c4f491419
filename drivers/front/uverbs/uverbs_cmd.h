/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Form of the commands that libibverbs writes to a device node; <rdma/ib_user_verbs.h>. */
#ifndef UVERBS_CMD_H
#define UVERBS_CMD_H

#include <stddef.h>
#include <stdint.h>

struct mlx5_ib_alloc_ucontext_resp;

/* A uverbs command: its body, the part that the provider adds, and the buffer for the response. */
struct uverbs_cmd {
	uint32_t command; /* number, with IB_USER_VERBS_CMD_FLAG_EXTENDED */
	const uint8_t *in, *drv_in;
	size_t in_len, drv_len;
	uint8_t *out; /* buffer for the response; NULL if the command has none */
	size_t out_len;
};

/*
 * Splits a command into its parts. An extended command says where the provider's part starts; for
 * others drv_in is the end of the command. Returns 0 or an errno.
 */
int uverbs_cmd_parse(struct uverbs_cmd *c, const uint8_t *buf, size_t len);
/* Moves the start of the provider's part to @body bytes after the start of the command. */
void uverbs_cmd_split(struct uverbs_cmd *c, size_t body);
/*
 * Writes a response. Truncates it to the length of the library's buffer, because a newer kernel ABI
 * has longer responses. Returns 0 or an errno.
 */
int uverbs_reply(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
		 size_t drv_len);

/*
 * Fills in the properties that all emulated devices have: CQEs of version 1, and no UAR pages yet.
 */
void uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp);

#endif
