/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <string.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "uverbs_cmd.h"

void
uverbs_cmd_split(struct uverbs_cmd *c, size_t body)
{
	if (body > c->in_len)
		body = c->in_len;
	c->drv_in = c->in + body;
	c->drv_len = c->in_len - body;
}

/*
 * Checks that the lengths in the header agree, as verify_hdr() of Linux
 * drivers/infiniband/core/uverbs_main.c does.
 */
int
uverbs_cmd_parse(struct uverbs_cmd *c, const uint8_t *buf, size_t len)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	struct ib_uverbs_cmd_hdr hdr;
	uint64_t to;

	memset(c, 0, sizeof(*c));
	if (buf == NULL || len < sizeof(hdr))
		return EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	c->command = hdr.command;
	c->in = buf + sizeof(hdr);
	c->in_len = len - sizeof(hdr);
	if ((hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0) {
		if (c->in_len < sizeof(ex))
			return EINVAL;
		memcpy(&ex, c->in, sizeof(ex));
		c->in += sizeof(ex);
		c->in_len -= sizeof(ex);
		if ((hdr.in_words + (size_t)ex.provider_in_words) * 8 != c->in_len)
			return EINVAL;
		c->out = (uint8_t *)(uintptr_t)ex.response;
		c->out_len = (hdr.out_words + (size_t)ex.provider_out_words) * 8;
		if ((c->out == NULL) != (c->out_len == 0))
			return EINVAL;
		uverbs_cmd_split(c, hdr.in_words * (size_t)8);
		c->in_len -= c->drv_len;
		return 0;
	}
	if (hdr.in_words * (size_t)4 != len)
		return EINVAL;
	uverbs_cmd_split(c, c->in_len);
	/* A command with a response begins with the address of the response buffer. */
	if (hdr.out_words != 0 && c->in_len >= sizeof(to)) {
		memcpy(&to, c->in, sizeof(to));
		c->out = (uint8_t *)(uintptr_t)to;
		c->out_len = hdr.out_words * (size_t)4;
	}
	return 0;
}

int
uverbs_reply(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
	     size_t drv_len)
{
	if (c->out == NULL || c->out_len < core_len)
		return EINVAL;
	memset(c->out, 0, c->out_len);
	memcpy(c->out, core, core_len);
	if (drv_len > c->out_len - core_len)
		drv_len = c->out_len - core_len;
	if (drv_len != 0)
		memcpy(c->out + core_len, drv, drv_len);
	return 0;
}

void
uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp)
{
	*resp = (struct mlx5_ib_alloc_ucontext_resp){
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1008,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = 32768,
		.max_recv_wr = 32768,
		.max_srq_recv_wr = 32767,
		.num_ports = 1,
		.response_length = sizeof(*resp),
		.cqe_version = 1,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
	};
}
