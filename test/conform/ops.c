/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The verbs of man ibv_post_send: effect, legal types, and how each is posted. */
#include "conform.h"

#define RC (1u << BB_QPT_RC)
#define UC (1u << BB_QPT_UC)

const struct op ops[] = {
	{
		.name = "write",
		.wr = BB_WR_RDMA_WRITE,
		.wc = BB_WC_RDMA_WRITE,
		.to_target = true,
		.has_raddr = true,
		.can_inline = true,
		.types = RC | UC,
		.right = BB_ACCESS_REMOTE_WRITE,
	},
	{
		.name = "write_imm",
		.wr = BB_WR_RDMA_WRITE_WITH_IMM,
		.wc = BB_WC_RDMA_WRITE,
		.recv_wc = BB_WC_RECV_RDMA_IMM,
		.to_target = true,
		.takes_recv = true,
		.has_raddr = true,
		.has_imm = true,
		.can_inline = true,
		.types = RC | UC,
		.right = BB_ACCESS_REMOTE_WRITE,
	},
	{
		.name = "send",
		.wr = BB_WR_SEND,
		.wc = BB_WC_SEND,
		.recv_wc = BB_WC_RECV,
		.to_target = true,
		.takes_recv = true,
		.recv_data = true,
		.can_inline = true,
		.types = RC | UC,
	},
	{
		.name = "send_imm",
		.wr = BB_WR_SEND_WITH_IMM,
		.wc = BB_WC_SEND,
		.recv_wc = BB_WC_RECV,
		.to_target = true,
		.takes_recv = true,
		.recv_data = true,
		.has_imm = true,
		.can_inline = true,
		.types = RC | UC,
	},
	{
		.name = "read",
		.wr = BB_WR_RDMA_READ,
		.wc = BB_WC_RDMA_READ,
		.has_raddr = true,
		.types = RC,
		.right = BB_ACCESS_REMOTE_READ,
	},
	{
		.name = "cmp_swap",
		.wr = BB_WR_ATOMIC_CMP_AND_SWP,
		.wc = BB_WC_CMP_SWAP,
		.has_raddr = true,
		.atomic = true,
		.types = RC,
		.right = BB_ACCESS_REMOTE_ATOMIC,
		.needs = NEED_ATOMICS,
	},
	{
		.name = "fetch_add",
		.wr = BB_WR_ATOMIC_FETCH_AND_ADD,
		.wc = BB_WC_FETCH_ADD,
		.has_raddr = true,
		.atomic = true,
		.types = RC,
		.right = BB_ACCESS_REMOTE_ATOMIC,
		.needs = NEED_ATOMICS,
	},
};
const unsigned int n_ops = RTE_DIM(ops);

const struct op *
op_find(const char *name)
{
	for (unsigned int i = 0; i < n_ops; i++)
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	abort();
}

int
op_post(const struct op *op, struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge,
	uint32_t nsge, const struct target *t, uint32_t flags)
{
	switch (op->wc) {
	case BB_WC_RDMA_WRITE:
		if (op->has_imm)
			return bb_post_write_imm(qp, wr_id, sge, nsge, t->raddr, t->rkey, t->imm,
						 flags);
		return bb_post_write(qp, wr_id, sge, nsge, t->raddr, t->rkey, flags);
	case BB_WC_RDMA_READ:
		return bb_post_read(qp, wr_id, sge, nsge, t->raddr, t->rkey, flags);
	case BB_WC_CMP_SWAP:
		return bb_post_cmp_swap(qp, wr_id, sge, t->raddr, t->rkey, t->compare, t->swap_add,
					flags);
	case BB_WC_FETCH_ADD:
		return bb_post_fetch_add(qp, wr_id, sge, t->raddr, t->rkey, t->swap_add, flags);
	default:
		if (op->has_imm)
			return bb_post_send_imm(qp, wr_id, sge, nsge, t->imm, flags);
		return bb_post_send(qp, wr_id, sge, nsge, flags);
	}
}

int
op_post_inline(const struct op *op, struct bb_qp *qp, uint64_t wr_id, const void *data,
	       uint32_t len, const struct target *t, uint32_t flags)
{
	if (op->wc == BB_WC_RDMA_WRITE) {
		if (op->has_imm)
			return bb_post_write_imm_inline(qp, wr_id, data, len, t->raddr, t->rkey,
							t->imm, flags);
		return bb_post_write_inline(qp, wr_id, data, len, t->raddr, t->rkey, flags);
	}
	if (op->has_imm)
		return bb_post_send_imm_inline(qp, wr_id, data, len, t->imm, flags);
	return bb_post_send_inline(qp, wr_id, data, len, flags);
}

uint32_t
op_post_list(const struct op *op, struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge,
	     uint32_t nsge, const struct target *t, uint32_t flags, int *err)
{
	struct bb_send_wr wr = {
		.wr_id = wr_id,
		.opcode = op->wr,
		.flags = flags,
		.sge = sge,
		.nsge = nsge,
		.imm_or_inv = op->has_imm ? t->imm : 0,
	};

	if (op->atomic) {
		wr.atomic.raddr = t->raddr;
		wr.atomic.rkey = t->rkey;
		wr.atomic.compare_add = op->wc == BB_WC_FETCH_ADD ? t->swap_add : t->compare;
		wr.atomic.swap = t->swap_add;
	} else if (op->has_raddr) {
		wr.rdma.raddr = t->raddr;
		wr.rdma.rkey = t->rkey;
	}
	return bb_qp_post_list(qp, &wr, 1, err);
}
