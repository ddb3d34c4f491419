/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The seeded defects, "defect=NAME": each does what its name says, and only that, at the first of
 * 16 opportunities. Other tests rely on them to show that they can fail.
 */
#include "../soft_rig.h"

static struct rig_pair p;

static void
open_with(const char *args, const struct rig_link *l)
{
	rig_pair_open(&p, args, false, l);
}

static void
write_at_1000(uint8_t opcode_flags)
{
	rig_write(&p.a, &p.ma, 0, 64, &p.mb, 1000, opcode_flags);
	rig_ring(&p.a);
	rig_polls(p.u[0], 3);
}

static uint32_t
wrong_bytes(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < 64; i++)
		n += p.mb.p[1000 + i] != p.ma.p[i];
	return n;
}

/* The defect applies at opportunities 0 and 16, not between. */
TEST(test_payload_defects_come_every_16th_time)
{
	static const struct {
		const char *args;
		uint32_t wrong;
	} cases[] = {
		{"defect=flip_bit,seed=0", 1},
		{"defect=misplace,seed=0", 64},
		{"defect=lose_write,seed=0", 64},
		{"defect=none,seed=0", 0},
	};
	uint32_t c, i;

	for (c = 0; c < 4; c++) {
		open_with(cases[c].args, NULL);
		for (i = 0; i < 18; i++) {
			memset(p.mb.p, 0xee, 2048);
			write_at_1000(RIG_CQE);
			rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)i);
			if (c == 1 && i % 16 == 0)
				assert_memory_equal(p.mb.p + 1008, p.ma.p, 64);
			else if (wrong_bytes() != (i % 16 == 0 ? cases[c].wrong : 0))
				fail_msg("%s, write %u: %u bytes are wrong", cases[c].args, i,
					 wrong_bytes());
		}
		rig_pair_close(&p);
	}
}

TEST(test_seed_chooses_the_first_defect)
{
	uint32_t i;

	open_with("defect=lose_write,seed=13", NULL);
	for (i = 0; i < 8; i++) {
		memset(p.mb.p, 0xee, 2048);
		write_at_1000(RIG_CQE);
		rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)i);
		assert_int_equal(wrong_bytes(), i == 3 ? 64 : 0);
	}
	rig_pair_close(&p);
}

TEST(test_cqe_defects_change_the_completion)
{
	uint32_t i;

	open_with("defect=skip_cqe,seed=0", NULL);
	write_at_1000(RIG_CQE);
	write_at_1000(RIG_CQE);
	rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_WRITE, 1);
	rig_expect_none(&p.ca, p.u[0]);
	rig_pair_close(&p);

	open_with("defect=wqe_counter,seed=0", NULL);
	write_at_1000(RIG_CQE);
	rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_WRITE, 1);
	write_at_1000(RIG_CQE);
	rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_WRITE, 1);
	rig_pair_close(&p);

	/*
	 * The second lap of 256 begins with the owner bit of the first lap: the CQE is never
	 * seen.
	 */
	open_with("defect=owner_bit,seed=0", NULL);
	for (i = 0; i < 256; i++) {
		rig_nop(&p.a, RIG_CQE);
		rig_done(&p.a, MLX5_OPCODE_NOP, (uint16_t)i);
	}
	rig_nop(&p.a, RIG_CQE);
	rig_ring(&p.a);
	rig_expect_none(&p.ca, p.u[0]);
	rig_pair_close(&p);
}

TEST(test_early_cqe_comes_before_the_data)
{
	struct rig_cqe e;

	open_with("defect=early_cqe,seed=0", NULL);
	memset(p.mb.p, 0xee, 2048);
	rig_write(&p.a, &p.ma, 0, 64, &p.mb, 1000, RIG_CQE);
	rig_ring(&p.a);
	rig_poll(p.u[0]);
	assert_true(rig_cqe(&p.ca, &e));
	assert_int_equal(wrong_bytes(), 64);
	rig_polls(p.u[0], 3);
	assert_int_equal(wrong_bytes(), 0);
	assert_false(rig_cqe(&p.ca, &e));
	rig_pair_close(&p);
}

TEST(test_key_defects_execute_refused_requests)
{
	struct rig_mem half, other, ro;
	struct mlx5_mr_attr attr;
	struct mlx5_mr *mr;
	struct mlx5_pd *pd;

	open_with("defect=no_bounds,seed=0", NULL);
	half = p.mb;
	attr = mlx5_mr_mem(p.mb.p, 1024, RIG_ALL);
	OK(soft_cmd_if.mr_reg(p.d.ctx, p.d.pd, &attr, &mr));
	half.mr = mr;
	rig_write(&p.a, &p.ma, 0, 64, &half, 1000, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, 0);
	assert_int_equal(wrong_bytes(), 0);
	OK(soft_cmd_if.mr_dereg(p.d.ctx, mr));
	rig_pair_close(&p);

	open_with("defect=no_pd,seed=0", NULL);
	OK(soft_cmd_if.pd_alloc(p.d.ctx, &pd));
	rig_mem_open(&other, &p.d, pd, 4096, RIG_ALL);
	rig_write(&p.a, &p.ma, 0, 64, &other, 0, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_mem_close(&other);
	OK(soft_cmd_if.pd_free(p.d.ctx, pd));
	rig_pair_close(&p);

	open_with("defect=no_access,seed=0", NULL);
	rig_mem_open(&ro, &p.d, NULL, 4096, BB_ACCESS_REMOTE_READ);
	rig_write(&p.a, &p.ma, 0, 64, &ro, 0, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_RDMA_WRITE, 0);
	rig_mem_close(&ro);
	rig_pair_close(&p);
}

TEST(test_atomic_defects_return_wrong_values)
{
	uint64_t *target, old;

	open_with("defect=atomic_old,seed=0", NULL);
	target = (uint64_t *)(void *)p.mb.p;
	*target = 5;
	rig_atomic(&p.a, MLX5_OPCODE_ATOMIC_FA, &p.ma, 0, &p.mb, 0, 2, 0, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_ATOMIC_FA, 0);
	memcpy(&old, p.ma.p, 8);
	assert_true(old == 7 && *target == 7);
	rig_pair_close(&p);

	/* Correct unless another writer uses the word. */
	open_with("defect=atomic_split,seed=0", NULL);
	target = (uint64_t *)(void *)p.mb.p;
	*target = 5;
	rig_atomic(&p.a, MLX5_OPCODE_ATOMIC_FA, &p.ma, 0, &p.mb, 0, 2, 0, RIG_CQE);
	rig_atomic(&p.a, MLX5_OPCODE_ATOMIC_CS, &p.ma, 8, &p.mb, 0, 9, 7, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_ATOMIC_FA, 0);
	rig_expect_ok(&p.a, MLX5_OPCODE_ATOMIC_CS, 1);
	assert_true(*target == 9);
	rig_pair_close(&p);
}

TEST(test_no_fence_defect_ignores_the_fence)
{
	struct rig_link l = rig_link_default();
	uint32_t i;

	l.log_sra = 3;
	l.log_rra = 2;
	open_with("defect=no_fence,seed=0", &l);
	for (i = 0; i < 5; i++)
		rig_read(&p.a, &p.ma, 0, 8, &p.mb, 0, i == 4 ? MLX5_WQE_CTRL_FENCE : 0);
	rig_ring(&p.a);
	rig_expect_error(&p.a, 4, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
	rig_pair_close(&p);
}

TEST(test_no_doorbell_defect_executes_without_a_doorbell)
{
	open_with("defect=no_doorbell", NULL);
	rig_nop(&p.a, RIG_CQE);
	rig_record(&p.a);
	rig_expect_ok(&p.a, MLX5_OPCODE_NOP, 0);
	rig_pair_close(&p);
}

TEST(test_rnr_lost_defect_drops_the_message)
{
	open_with("defect=rnr_lost,seed=0", NULL);
	rig_send(&p.a, &p.ma, 0, 8, RIG_CQE);
	rig_done(&p.a, MLX5_OPCODE_SEND, 0);
	rig_expect_none(&p.cb, p.u[1]);
	rig_pair_close(&p);
}

TEST_MAIN(0)
