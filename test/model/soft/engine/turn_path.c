/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Runs RDMA WRITEs of RC between two queue pairs of a process, each in one turn of the engine.
 * test/check/layout/turn.py runs it under callgrind and checks which sources the turn enters. With
 * the argument "long" each WRITE has two pieces, which the fast path leaves to the decoder.
 */
#include <stdio.h>
#include <string.h>

#include "../soft_rig.h"

#define WRITES 8

static bool two_pieces;

RIG_TEST_TWO(test_write_takes_the_documented_path, NULL)
{
	int i;

	for (i = 0; i < WRITES; i++) {
		memset(p->mb.p, 0, 64);
		memset(p->ma.p, i + 1, 64);
		if (two_pieces) {
			rig_raddr(&p->a, (uintptr_t)p->mb.p, p->mb.mr->rkey);
			rig_data(&p->a, 2, &p->ma, 0, 24);
			rig_data(&p->a, 3, &p->ma, 24, 40);
			rig_wqe(&p->a, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 4, 0);
		} else {
			rig_write(&p->a, &p->ma, 0, 64, &p->mb, 0, RIG_CQE);
		}
		rig_done(&p->a, MLX5_OPCODE_RDMA_WRITE, p->a.last);
		assert_memory_equal(p->mb.p, p->ma.p, 64);
	}
}

int
main(int argc, char **argv)
{
	two_pieces = argc == 2 && strcmp(argv[1], "long") == 0;
	if (argc > 2 || (argc == 2 && !two_pieces)) {
		fprintf(stderr, "usage: turn_path [long]\n");
		return 2;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
