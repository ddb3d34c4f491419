/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Formats against rdma-core's own header: constants, random requests built by mlx5dv_set_*() and
 * its structs, and random CQEs filled through its structs.
 */
#include <endian.h>

#include <infiniband/mlx5dv.h>

#include "golden.h"

#include "bb_cqe.h"
#include "bb_rq.h"
#include "bb_sq_atomic.h"

#define ROUNDS 20000u
#define BLOCKS 16u
#define FILL   0xee

#define SAME(a, b) BB_STATIC_ASSERT((uint32_t)(a) == (uint32_t)(b), #a)
SAME(BB_WQE_NOP, MLX5_OPCODE_NOP);
SAME(BB_WQE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE);
SAME(BB_WQE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
SAME(BB_WQE_SEND, MLX5_OPCODE_SEND);
SAME(BB_WQE_SEND_IMM, MLX5_OPCODE_SEND_IMM);
SAME(BB_WQE_RDMA_READ, MLX5_OPCODE_RDMA_READ);
SAME(BB_WQE_ATOMIC_CS, MLX5_OPCODE_ATOMIC_CS);
SAME(BB_WQE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_FA);
SAME(BB_WQE_SE, MLX5_WQE_CTRL_SOLICITED);
SAME(BB_WQE_CE_CQE, MLX5_WQE_CTRL_CQ_UPDATE);
SAME(BB_WQE_FM_SMALL, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
SAME(BB_WQE_FM_FENCE, MLX5_WQE_CTRL_FENCE);
SAME(BB_WQE_BB, MLX5_SEND_WQE_BB);
SAME(BB_WQE_INLINE, MLX5_INLINE_SEG);
SAME(BB_WQE_INVALID_LKEY, MLX5_INVALID_LKEY);
SAME(BB_CQE_REQ, MLX5_CQE_REQ);
SAME(BB_CQE_RESP_WR_IMM, MLX5_CQE_RESP_WR_IMM);
SAME(BB_CQE_RESP_SEND, MLX5_CQE_RESP_SEND);
SAME(BB_CQE_RESP_SEND_IMM, MLX5_CQE_RESP_SEND_IMM);
SAME(BB_CQE_RESP_SEND_INV, MLX5_CQE_RESP_SEND_INV);
SAME(BB_CQE_REQ_ERR, MLX5_CQE_REQ_ERR);
SAME(BB_CQE_RESP_ERR, MLX5_CQE_RESP_ERR);
SAME(BB_CQE_INVALID, MLX5_CQE_INVALID);
SAME(BB_SYN_LOCAL_LENGTH, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
SAME(BB_SYN_LOCAL_QP_OP, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
SAME(BB_SYN_LOCAL_PROT, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
SAME(BB_SYN_WR_FLUSH, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
SAME(BB_SYN_MW_BIND, MLX5_CQE_SYNDROME_MW_BIND_ERR);
SAME(BB_SYN_BAD_RESP, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
SAME(BB_SYN_LOCAL_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
SAME(BB_SYN_REMOTE_INVAL_REQ, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
SAME(BB_SYN_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
SAME(BB_SYN_REMOTE_OP, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
SAME(BB_SYN_RETRY_EXC, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
SAME(BB_SYN_RNR_RETRY_EXC, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
SAME(BB_SYN_REMOTE_ABORTED, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
SAME(sizeof(struct bb_wqe_ctrl), sizeof(struct mlx5_wqe_ctrl_seg));
SAME(sizeof(struct bb_wqe_raddr), sizeof(struct mlx5_wqe_raddr_seg));
SAME(sizeof(struct bb_wqe_atomic), sizeof(struct mlx5_wqe_atomic_seg));
SAME(sizeof(struct bb_wqe_data), sizeof(struct mlx5_wqe_data_seg));
SAME(sizeof(struct bb_cqe), sizeof(struct mlx5_cqe64));
SAME(BB_CQE_VENDOR_SYNDROME_BYTE, offsetof(struct mlx5_err_cqe, vendor_err_synd));
SAME(BB_CQE_SYNDROME_BYTE, offsetof(struct mlx5_err_cqe, syndrome));

static uint64_t seed = 1;

static uint64_t
rnd(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

static uint32_t
below(uint32_t n)
{
	return (uint32_t)(rnd() >> 32) % n;
}

/* A ring filled by rdma-core's setters, one segment at a time. */
struct peer {
	uint8_t ring[BLOCKS * MLX5_SEND_WQE_BB] __attribute__((aligned(64)));
	uint32_t seg; /* next segment, counted from the ring's start */
};

static void *
peer_seg(struct peer *p)
{
	void *seg = p->ring + p->seg * 16;

	p->seg = (p->seg + 1) % (BLOCKS * 4);
	return seg;
}

static void
peer_raddr(struct peer *p, uint64_t raddr, uint32_t rkey)
{
	struct mlx5_wqe_raddr_seg *r = peer_seg(p);

	r->raddr = htobe64(raddr);
	r->rkey = htobe32(rkey);
	r->reserved = 0;
}

static void
peer_inline(struct peer *p, const uint8_t *data, uint32_t len)
{
	struct mlx5_wqe_inl_data_seg *head = peer_seg(p);
	uint32_t at = (p->seg + BLOCKS * 4 - 1) % (BLOCKS * 4) * 16 + sizeof(*head), i;

	head->byte_count = htobe32(len | MLX5_INLINE_SEG);
	for (i = 0; i < len; i++)
		p->ring[(at + i) % sizeof(p->ring)] = data[i];
}

TEST(test_send_wqes_equal_those_of_mlx5dv_setters)
{
	static const uint8_t sgl_ops[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_SEND_IMM,
					  MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM,
					  MLX5_OPCODE_RDMA_READ};
	static uint8_t ring[BLOCKS * BB_WQE_BB] __attribute__((aligned(64)));
	struct bb_sq_wqe wqes[BLOCKS];
	uint64_t reg[64];
	uint32_t dbrec;
	struct bb_sq_conf conf = {
		.buf = ring,
		.wqes = wqes,
		.blocks = BLOCKS,
		.qpn = below(1u << 24),
		.depth = 1,
		.max_sge = 20,
		.max_inline = 300,
		.sig_every = 1,
		.dbrec = &dbrec,
		.reg = reg,
		.owner = UINT32_MAX,
	};
	struct bb_sq sq;

	assert_int_equal(bb_sq_init(&sq, &conf), 0);
	bb_sq_enable(&sq, true);
	sq.sig_seq = UINT32_MAX;
	sq.sig_every = UINT16_MAX;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t shape = below(4), flags = 0, imm = (uint32_t)rnd(), n, i, ds = 1, rkey;
		uint64_t raddr = rnd(), add = rnd(), compare = rnd();
		struct mlx5_wqe_ctrl_seg *ctrl;
		uint16_t pi = sq.pi;
		struct bb_sge sge[20];
		uint8_t data[300], op;
		static struct peer p; /* static: ASan's stack would not align it */
		bool remote;
		int rc;

		memset(ring, FILL, sizeof(ring));
		memset(&p, FILL, sizeof(p));
		p.seg = pi % BLOCKS * 4;
		ctrl = peer_seg(&p);
		flags |= below(2) ? BB_SEND_SIGNALED : 0;
		flags |= below(2) ? BB_SEND_SOLICITED : 0;
		flags |= below(2) ? BB_SEND_FENCE : 0;
		rkey = (uint32_t)rnd();
		op = shape == 3 ? (below(2) ? MLX5_OPCODE_ATOMIC_CS : MLX5_OPCODE_ATOMIC_FA)
				: sgl_ops[below(shape == 2 ? 4 : 5)];
		remote = op != MLX5_OPCODE_SEND && op != MLX5_OPCODE_SEND_IMM;
		switch (shape) {
		case 3:
			raddr &= ~7ull;
			sge[0] = (struct bb_sge){rnd(), 8, (uint32_t)rnd()};
			peer_raddr(&p, raddr, rkey);
			{
				struct mlx5_wqe_atomic_seg *a = peer_seg(&p);

				a->swap_add = htobe64(add);
				a->compare = htobe64(compare);
			}
			mlx5dv_set_data_seg(peer_seg(&p), 8, sge[0].lkey, sge[0].addr);
			ds = 4;
			imm = 0;
			rc = bb_sq_post_atomic(&sq, op, round, &sge[0], raddr, rkey, add, compare,
					       flags);
			break;
		case 2:
			n = below(301);
			for (i = 0; i < n; i++)
				data[i] = (uint8_t)rnd();
			if (remote) {
				peer_raddr(&p, raddr, rkey);
				ds++;
			}
			if (n != 0)
				peer_inline(&p, data, n);
			ds += n == 0 ? 0 : (n + 4 + 15) / 16;
			rc = bb_sq_post_inline(&sq, op, remote, round, data, n, raddr, rkey, imm,
					       flags);
			break;
		default:
			n = shape == 0 ? 1 : below(21);
			if (remote) {
				peer_raddr(&p, raddr, rkey);
				ds++;
			}
			for (i = 0; i < n; i++) {
				sge[i] = (struct bb_sge){rnd(), below(5) * below(1u << 20),
							 (uint32_t)rnd()};
				if (sge[i].len == 0)
					continue;
				mlx5dv_set_data_seg(peer_seg(&p), sge[i].len, sge[i].lkey,
						    sge[i].addr);
				ds++;
			}
			rc = bb_sq_post_sgl(&sq, op, remote, round, sge, n, raddr, rkey, imm,
					    flags);
		}
		mlx5dv_set_ctrl_seg(ctrl, pi, op, 0, conf.qpn, (uint8_t)flags, (uint8_t)ds, 0, imm);
		/* The setter does not write these two bytes. */
		memset(&ctrl->dci_stream_channel_id, 0, 2);
		assert_int_equal(rc, 0);
		assert_memory_equal(ring, p.ring, sizeof(ring));
		bb_sq_complete(&sq, pi);
	}
}

TEST(test_receive_wqes_equal_those_of_mlx5dv_setters)
{
	static uint8_t ring[4 * 128] __attribute__((aligned(64)));
	uint64_t wr_ids[4];
	uint32_t dbrec;
	const struct bb_rq_conf conf = {
		.buf = ring,
		.wr_ids = wr_ids,
		.wqes = 4,
		.depth = 4,
		.log_stride = 7,
		.max_sge = 8,
		.dbrec = &dbrec,
		.owner = UINT32_MAX,
	};
	struct bb_rq rq;

	assert_int_equal(bb_rq_init(&rq, &conf), 0);
	bb_rq_enable(&rq);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct mlx5_wqe_data_seg want[32], *seg = &want[round % 4 * 8];
		uint32_t n = below(9);
		struct bb_sge sge[8];

		memset(ring, FILL, sizeof(ring));
		memset(want, FILL, sizeof(want));
		for (uint32_t i = 0; i < n; i++) {
			sge[i] =
				(struct bb_sge){rnd(), below(4) * below(1u << 20), (uint32_t)rnd()};
			if (sge[i].len != 0)
				mlx5dv_set_data_seg(seg++, sge[i].len, sge[i].lkey, sge[i].addr);
		}
		if (seg < &want[round % 4 * 8 + 8])
			mlx5dv_set_data_seg(seg, 0, MLX5_INVALID_LKEY, 0);
		assert_int_equal(bb_rq_post(&rq, round, sge, n), 0);
		assert_memory_equal(ring, want, sizeof(ring));
		assert_int_equal(bb_rq_complete(&rq, (uint16_t)round), round);
	}
}

TEST(test_cqe_fields_are_where_mlx5dv_has_them)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct mlx5_cqe64 c;
		struct mlx5_err_cqe e;
		struct bb_cqe cqe;

		for (uint32_t i = 0; i < sizeof(c); i++)
			((uint8_t *)&c)[i] = (uint8_t)rnd();
		memcpy(&cqe, &c, sizeof(cqe));
		memcpy(&e, &c, sizeof(e));
		assert_int_equal(bb_be32(cqe.srqn_uidx), be32toh(c.srqn_uidx));
		assert_int_equal(cqe.imm, c.imm_inval_pkey);
		assert_int_equal(bb_be32(cqe.byte_cnt), be32toh(c.byte_cnt));
		assert_true(bb_be64(cqe.timestamp) == be64toh(c.timestamp));
		assert_int_equal(bb_be32(cqe.sop_qpn), be32toh(c.sop_drop_qpn));
		assert_int_equal(bb_be16(cqe.wqe_counter), be16toh(c.wqe_counter));
		assert_int_equal(cqe.signature, c.signature);
		assert_int_equal(cqe.op_own >> 4, mlx5dv_get_cqe_opcode(&c));
		assert_int_equal(cqe.op_own & 1, mlx5dv_get_cqe_owner(&c));
		assert_int_equal(cqe.op_own >> 1 & 1, mlx5dv_get_cqe_se(&c));
		assert_int_equal(cqe.op_own >> 2 & 3, mlx5dv_get_cqe_format(&c));
		assert_int_equal(bb_cqe_syndrome(&cqe), e.syndrome);
		assert_int_equal(bb_cqe_vendor_syndrome(&cqe), e.vendor_err_synd);
		assert_fields(cqe, wqe_counter, e.wqe_counter, sop_qpn, e.s_wqe_opcode_qpn);
		assert_int_equal(cqe.srqn_uidx, e.srqn);
	}
}

TEST_MAIN(0)
