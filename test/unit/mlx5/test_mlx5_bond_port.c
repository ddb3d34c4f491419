/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Choice of the bonded port for each QP. */
#include "mlx5_fixture.h"

#include <rte_random.h>

/* Returns the port that the QP gets in the step to INIT. */
static uint32_t
port_of(struct fixture *f)
{
	const uint8_t *in;
	struct bb_qp_attr a = DEFAULTS(qp_attr);

	a.state = BB_QP_INIT;
	assert_int_equal(
		bb_qp_modify(f->qp, &a, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS),
		0);
	in = stub_box(BB_PRM_OP_RST2INIT_QP);
	assert_non_null(in);
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_QP_QPN), f->qp->qpn);
	return bb_prm_get(in + BB_PRM_MODIFY_QP_QPC.byte, BB_PRM_QPC_LAG_TX_PORT_AFFINITY);
}

/*
 * QPs are spread over bonded ports in turn, except where the kernel would not do so: ports that
 * are not bonded, and a hash that the port of a QP would bypass. A function without the right to
 * query goes by its capabilities (kernel: mlx5_ib_lag_should_assign_affinity()).
 */
TEST_WITH(stub_setup, stub_teardown, test_qps_take_bonded_ports_in_turn)
{
	enum {
		NO_CAP,
		NO_BYPASS,
		BYPASS
	};
	static const struct {
		uint32_t ports, state, mode;
		int selection; /* port_selection_cap and the value of the bypass bit */
		bool refused, affinity;
		uint32_t want; /* number of ports that QPs are spread over, 0: none */
	} cases[] = {
		{2, 1, 0, NO_CAP, false, false, 2},
		{3, 1, 0, NO_CAP, false, false, 3},
		{1, 1, 0, NO_CAP, false, true, 0},
		{2, 0, 0, NO_CAP, false, true, 0},
		{2, 1, 0, NO_CAP, true, false, 0},
		{2, 0, 0, NO_CAP, true, true, 2},
		{1, 0, 0, NO_CAP, true, true, 0},
		/* Queue affinity, whatever the bypass capability is. */
		{2, 1, 0, BYPASS, false, true, 2},
		/* Hash mode, and multi-port E-switch. */
		{2, 1, 1, NO_CAP, false, true, 2},
		{2, 1, 1, NO_BYPASS, false, false, 2},
		{2, 1, 1, BYPASS, false, true, 0},
		{2, 0, 1, NO_BYPASS, false, true, 0},
		{2, 1, 2, BYPASS, false, true, 2},
	};
	struct bb_qp_attr a;
	uint32_t port, before;
	struct fixture f;
	unsigned int k;

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		void *lagc = bb_prm_sub(stub.lag, BB_PRM_QUERY_LAG_OUT_CTX);

		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_NUM_LAG_PORTS, cases[i].ports);
		bb_prm_set(stub.general, BB_PRM_HCA_LAG_AFFINITY, cases[i].affinity);
		bb_prm_set(stub.general, BB_PRM_HCA_PORT_SELECTION, cases[i].selection != NO_CAP);
		bb_prm_set(stub.port_selection, BB_PRM_PORT_SELECTION_CAP_BYPASS,
			   cases[i].selection == BYPASS);
		bb_prm_set(lagc, BB_PRM_LAGC_LAG_STATE, cases[i].state);
		bb_prm_set(lagc, BB_PRM_LAGC_PORT_SELECT_MODE, cases[i].mode);
		if (cases[i].refused) {
			stub.fail_op = BB_PRM_OP_QUERY_LAG;
			stub.fail_status = BB_PRM_STAT_BAD_OP;
		}
		open_qp(&f);
		assert_int_equal(stub_count(BB_PRM_OP_QUERY_LAG), cases[i].ports > 1);
		for (k = 0, before = 0; k < 4; k++, before = port) {
			port = port_of(&f);
			if (cases[i].want == 0)
				assert_int_equal(port, 0);
			else
				assert_in_range(port, 1, cases[i].want);
			if (cases[i].want != 0 && k != 0)
				assert_int_equal(port, before % cases[i].want + 1);
			bb_qp_attr_init(&a);
			a.state = BB_QP_RESET;
			assert_int_equal(bb_qp_modify(f.qp, &a, BB_QP_STATE), 0);
		}
		close_dev(&f);
	}
}

/* Processes with one QP each do not all start with the first port. */
TEST_WITH(stub_setup, stub_teardown, test_first_bonded_port_differs_by_process)
{
	void *lagc = bb_prm_sub(stub.lag, BB_PRM_QUERY_LAG_OUT_CTX);
	uint32_t first[3] = {0};
	struct fixture f;

	rte_srand(1);
	bb_prm_set(stub.general, BB_PRM_HCA_NUM_LAG_PORTS, 2);
	bb_prm_set(lagc, BB_PRM_LAGC_LAG_STATE, 1);
	for (unsigned int i = 0; i < 32; i++) {
		open_qp(&f);
		first[port_of(&f)]++;
		close_dev(&f);
		stub.n_boxes = 0;
	}
	assert_int_equal(first[0], 0);
	assert_int_not_equal(first[1], 0);
	assert_int_not_equal(first[2], 0);
}

TEST_MAIN(stub_eal_init("mlx5_bond"))
