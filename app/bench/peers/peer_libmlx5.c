/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Compares Bluebell with ibv_post_send() and ibv_poll_cq() of the installed libmlx5, over the same
 * null device in the same thread. The case post_poll of the bench runs this program, which prints a
 * line per point. A line has the point's name, ns per WRITE of libmlx5, ns per WRITE of Bluebell,
 * and the median of the pairs' ratios. Then follow the number of pairs and the fraction of the time
 * that other work used the CPU.
 *
 * The device that libmlx5 opens does not exist: see peer_uverbs.c. libmlx5 writes the same data to
 * its rings as for a card.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "peer_sysfs.h"
#include "peer_uverbs.h"
#include "post_poll.h"

#define MAX_BATCH 16

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct baseline_dev dev;
	struct rig_data data;
	uint32_t batch;
	enum baseline_signal sig;
	uint64_t n;
};

static double
libmlx5(void *arg)
{
	struct side *s = arg;
	const uint32_t cqes = s->sig == BASELINE_SIGNAL_ALL ? s->batch : 1;
	struct ibv_send_wr wr[MAX_BATCH], *bad;
	struct ibv_sge sge[MAX_BATCH];
	uint64_t i, t = tsc();
	struct ibv_wc wc[32];

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < s->n; i += s->batch) {
		uint32_t k, got = 0;

		for (k = 0; k < s->batch; k++) {
			const uint64_t offset = ((i + k) & BASELINE_SPREAD) * 8;
			const bool last = k + 1 == s->batch;

			sge[k] = (struct ibv_sge){(uintptr_t)(s->data.src + offset), 8, 0};
			wr[k].wr_id = i + k;
			wr[k].next = last ? NULL : &wr[k + 1];
			wr[k].sg_list = &sge[k];
			wr[k].num_sge = 1;
			wr[k].opcode = IBV_WR_RDMA_WRITE;
			wr[k].send_flags = IBV_SEND_INLINE;
			if (last || s->sig == BASELINE_SIGNAL_ALL)
				wr[k].send_flags |= IBV_SEND_SIGNALED;
			wr[k].wr.rdma.remote_addr = s->data.dst + offset;
			wr[k].wr.rdma.rkey = 0x2200;
		}
		if (ibv_post_send(s->qp, wr, &bad) != 0)
			return -1;
		baseline_null_run(&s->dev);
		while (got < cqes) {
			int done = ibv_poll_cq(s->cq, 32, wc);

			if (done < 0)
				return -1;
			got += (uint32_t)done;
		}
		if (wc[0].status != IBV_WC_SUCCESS || wc[0].wr_id != i + s->batch - cqes)
			return -1;
	}
	return ns_since(t) / (double)s->n;
}

static int
to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
	    0)
		return -errno;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0x123,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .grh = {.hop_limit = 1}, .port_num = 1},
	};
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) != 0)
		return -errno;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		return -errno;
	return 0;
}

/* Makes the null device use libmlx5's rings, which are as long as Bluebell's. */
static int
device_on(struct side *s)
{
	struct mlx5dv_qp q = {0};
	struct mlx5dv_cq c = {0};
	struct mlx5dv_obj obj = {
		.qp = {.in = s->qp, .out = &q},
		.cq = {.in = s->cq, .out = &c},
	};

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) != 0)
		return -EIO;
	if (c.cqe_size != 64 || q.sq.stride != 64 || c.cqe_cnt != 1 << RIG_LOG_CQES ||
	    q.sq.wqe_cnt != 1 << RIG_LOG_BLOCKS) {
		fprintf(stderr,
			"libmlx5: unexpected rings: a CQ of %u CQEs of %u bytes, a send "
			"queue of %u blocks of %u bytes\n",
			c.cqe_cnt, c.cqe_size, q.sq.wqe_cnt, q.sq.stride);
		return -ERANGE;
	}
	s->dev = (struct baseline_dev){
		.sq = q.sq.buf,
		.cq = c.buf,
		.sq_mask = q.sq.wqe_cnt - 1,
		.cq_mask = c.cqe_cnt - 1,
		.cq_log = RIG_LOG_CQES,
		.sq_rec = (uint32_t *)q.dbrec + 1,
		.user_index = uverbs_created()->uidx,
	};
	return 0;
}

static const char *
side_open(struct side *s)
{
	struct ibv_qp_init_attr init = {
		/*
		 * Requests a quarter of the blocks as WRs, because libmlx5 reserves additional
		 * blocks for WQEs that change a key.
		 */
		.cap = {.max_send_wr = 1 << RIG_LOG_BLOCKS >> 2,
			.max_send_sge = 1,
			.max_inline_data = 12},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	if (list == NULL || list[0] == NULL)
		return "libibverbs finds no mlx5 device: is libmlx5 installed?";
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (ctx == NULL)
		return "ibv_open_device()";
	pd = ibv_alloc_pd(ctx);
	if (pd == NULL)
		return "ibv_alloc_pd()";
	s->cq = ibv_create_cq(ctx, (1 << RIG_LOG_CQES) - 1, NULL, NULL, 0);
	if (s->cq == NULL)
		return "ibv_create_cq()";
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = ibv_create_qp(pd, &init);
	if (s->qp == NULL)
		return "ibv_create_qp()";
	if (to_rts(s->qp) != 0)
		return "ibv_modify_qp()";
	return device_on(s) == 0 ? NULL : "libmlx5 created rings of another size than requested";
}

static int
run(void)
{
	struct rig *r = rig_new(true);
	struct side s = {0};
	const char *failed;
	unsigned int i;

	if (r == NULL)
		return -ENOMEM;
	failed = side_open(&s);
	if (failed != NULL) {
		fprintf(stderr, "libmlx5: %s: %s\n", failed, strerror(errno));
		return -EIO;
	}
	s.data = rig_data(r);
	for (i = 0; i < POST_POLL_POINTS; i++) {
		const struct post_poll_point *at = &post_poll_points[i];
		const uint64_t n = opts.quick ? 16 * 200 : 16 * 1500;
		struct post_poll bluebell = {r, at->batch, at->sig, n};
		struct pair p;

		s.batch = at->batch;
		s.sig = at->sig;
		s.n = n;
		measure_pair(libmlx5, &s, post_poll_bluebell, &bluebell, &p);
		if (!p.valid)
			return -EIO;
		printf("%s %.3f %.3f %.4f %u %.4f\n", at->name, p.baseline, p.bluebell, p.ratio,
		       p.pairs, p.shared);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	int rc;

	opts.repeat = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 0) : 5;
	opts.quick = argc > 2 && strcmp(argv[2], "quick") == 0;
	if (opts.repeat < 1 || opts.repeat > BENCH_MAX_REPEAT) {
		fprintf(stderr, "usage: %s [pairs, 1 to %u] [quick]\n", argv[0], BENCH_MAX_REPEAT);
		return 2;
	}
	cpus_choose();
	if (pin(cpu_self) != 0)
		fprintf(stderr, "libmlx5: cannot run on CPU %u\n", cpu_self);
	/*
	 * Disables BlueFlame copies in libmlx5. Each doorbell is then one 8-byte store, as in
	 * Bluebell here.
	 */
	setenv("MLX5_SHUT_UP_BF", "1", 1);
	rc = uverbs_start(NULL);
	if (rc == 0)
		rc = run();
	peer_sysfs_end();
	return rc == 0 ? 0 : 1;
}
