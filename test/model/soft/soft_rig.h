/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A user of the software device that is not Bluebell: mailboxes by hand through the
 * command interface, WQEs by rdma-core's setters, CQEs as rdma-core describes them,
 * doorbells by plain stores. Tests of the data path stand on it.
 */
#ifndef SOFT_RIG_H
#define SOFT_RIG_H

#include <stdbool.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "bb_mem.h"
#include "bb_prm.h"
#include "bb_test.h"
#include "mlx5_cmd.h"

extern const struct mlx5_cmd_if soft_cmd_if;

/* "remote" bits are enum bb_access; LOCAL_WRITE goes with all of them here. */
#define RIG_ALL                                                                                    \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

#define RIG_CQE 0x08 /* fm_ce_se: MLX5_WQE_CTRL_CQ_UPDATE */

struct rig_dev {
	struct mlx5_ctx *ctx;
	struct mlx5_pd *pd;
	struct bb_gid gid;
	uint32_t gid_index;
	uint8_t mac[6]; /* RoCE */
	uint16_t lid;   /* InfiniBand, else 0 */
};

struct rig_uar {
	struct rig_dev *d;
	struct mlx5_uar *uar;
	void (*progress)(void *arg);
	void *arg;
};

struct rig_mem {
	struct rig_dev *d;
	struct mlx5_mr *mr;
	uint8_t *p;
	size_t len;
};

struct rig_cq {
	struct rig_dev *d;
	struct mlx5_obj *obj;
	struct mlx5_umem *umem;
	uint8_t *mem; /* CQEs, then the doorbell record */
	uint32_t *dbrec;
	uint32_t cqn, log, ci;
	bool keep_ci; /* do not tell the device what was consumed */
};

/* A CQE, in host order. */
struct rig_cqe {
	uint8_t opcode, syndrome, vendor, sop;
	bool solicited;
	uint16_t counter;
	uint32_t qpn, uidx, imm, bytes;
	uint64_t time;
};

struct rig_qp_attr {
	uint32_t log_sq, log_rq, log_stride; /* blocks, WQEs, bytes */
	bool no_rq;
	uint32_t uidx;
	uint32_t counter_set;
	struct mlx5_pd *pd; /* NULL: the device's */
	uint32_t rmpn;      /* of an RMP, with no_rq */
	uint32_t cs_req, cs_res;
	uint32_t st; /* MLX5_QP_ST_* */
};

#define RIG_QKEY 0x11111111u /* of UD */

/* How two QPs are connected; both ends alike, but PSNs cross. */
struct rig_link {
	uint32_t access; /* of BB_ACCESS_REMOTE_* */
	uint32_t atomic_mode;
	uint32_t mtu; /* as qpc.mtu: 1 is 256, 5 is 4096 */
	uint32_t log_msg_max, log_sra, log_rra;
	uint32_t retry, rnr_retry, min_rnr, timeout;
	uint32_t sq_psn, rq_psn;
	uint32_t tclass;            /* DSCP and, in its low bits, ECN */
	uint32_t flow_label, sport; /* sport 0: 0xc001 */
};

struct rig_qp {
	struct rig_dev *d;
	struct rig_uar *u;
	struct rig_cq *scq, *rcq;
	struct mlx5_obj *obj;
	struct mlx5_umem *umem;
	uint8_t *mem, *sq, *rq;
	uint32_t *dbrec;
	uint32_t qpn, st, log_sq, log_rq, log_stride;
	uint16_t pi, rq_pi; /* blocks, WQEs */
	uint32_t bf_offset;
	uint8_t head[8]; /* of the last WQE */
	uint16_t last;   /* its index */
};

void rig_dev_open(struct rig_dev *d, const char *name, const char *args);
void rig_dev_close(struct rig_dev *d);
void rig_uar_open(struct rig_uar *u, struct rig_dev *d, enum mlx5_uar_type type);
void rig_uar_close(struct rig_uar *u);
void rig_mem_open(struct rig_mem *m, struct rig_dev *d, struct mlx5_pd *pd, size_t len,
		  uint32_t access);
void rig_mem_close(struct rig_mem *m);
void rig_cq_open(struct rig_cq *c, struct rig_uar *u, uint32_t log);
void rig_cq_close(struct rig_cq *c);
void rig_qp_open(struct rig_qp *q, struct rig_uar *u, struct rig_cq *scq, struct rig_cq *rcq,
		 const struct rig_qp_attr *attr);
void rig_qp_close(struct rig_qp *q);

void rig_link_default(struct rig_link *l);
/* The mailbox of a transition, as rig_qp_modify() sends it; returns its length. */
size_t rig_qp_mailbox(const struct rig_qp *q, uint16_t op, const struct rig_dev *pd,
		      uint32_t remote_qpn, const struct rig_link *l, uint8_t *in);
/* One transition of @q, peer @p of device @pd. */
int rig_qp_modify(struct rig_qp *q, uint16_t op, const struct rig_dev *pd, uint32_t remote_qpn,
		  const struct rig_link *l);
/* To RTS, towards a QP number of a device. */
void rig_qp_up(struct rig_qp *q, const struct rig_dev *pd, uint32_t remote_qpn,
	       const struct rig_link *l);
/* Both to RTS. */
void rig_connect(struct rig_qp *a, struct rig_qp *b, const struct rig_link *l);
void rig_qp_reset(struct rig_qp *q);
void rig_qp_error(struct rig_qp *q);
/* A field of the context that QUERY_QP gives. */
uint32_t rig_qp_query(struct rig_qp *q, struct bb_prm_field f);
static inline uint32_t
rig_qp_state(struct rig_qp *q)
{
	return rig_qp_query(q, BB_PRM_QPC_STATE);
}

/* Run the device on behalf of a UAR's owner; nothing when it runs by itself. */
static inline void
rig_poll(struct rig_uar *u)
{
	if (u->progress != NULL)
		u->progress(u->arg);
}

static inline void
rig_polls(struct rig_uar *u, unsigned int n)
{
	while (n-- != 0)
		rig_poll(u);
}

/* ---- WQEs. A segment of the WQE that is being built; ds counts from its control one. */

/* Segment @ds of the WQE at index @idx, over the end of the ring. */
static inline void *
rig_seg(struct rig_qp *q, uint16_t idx, uint32_t ds)
{
	size_t at = ((size_t)idx * 64 + (size_t)ds * 16) & (((size_t)64 << q->log_sq) - 1);

	return q->sq + at;
}

/* Finish the WQE of @ds segments at pi; nothing is told to the device. */
void rig_wqe(struct rig_qp *q, uint8_t opcode, uint8_t fm_ce_se, uint32_t ds, uint32_t imm);
void rig_raddr(struct rig_qp *q, uint64_t raddr, uint32_t rkey);
static inline void
rig_data(struct rig_qp *q, uint32_t ds, const struct rig_mem *m, size_t off, uint32_t len)
{
	mlx5dv_set_data_seg(rig_seg(q, q->pi, ds), len, m->mr->lkey, (uintptr_t)m->p + off);
}
/* Inline data at segment @ds; returns the segments it takes. */
uint32_t rig_inline(struct rig_qp *q, uint32_t ds, const void *data, uint32_t len);

void rig_write(struct rig_qp *q, const struct rig_mem *from, size_t off, uint32_t len,
	       const struct rig_mem *to, size_t at, uint8_t fm_ce_se);
void rig_read(struct rig_qp *q, const struct rig_mem *into, size_t off, uint32_t len,
	      const struct rig_mem *from, size_t at, uint8_t fm_ce_se);
void rig_send(struct rig_qp *q, const struct rig_mem *from, size_t off, uint32_t len,
	      uint8_t fm_ce_se);
void rig_atomic(struct rig_qp *q, uint8_t opcode, const struct rig_mem *into, size_t off,
		const struct rig_mem *at, size_t at_off, uint64_t swap_add, uint64_t compare,
		uint8_t fm_ce_se);
void rig_nop(struct rig_qp *q, uint8_t fm_ce_se);

/* Write the record; store the last WQE's head to a register; both. */
void rig_record(struct rig_qp *q);
void rig_store(struct rig_qp *q, struct rig_uar *u);
void rig_ring(struct rig_qp *q);
/*
 * Lets rig_ring_bf() copy by the stores of bb_uar_wide.h that the program's argument names; none: 8
 * bytes each. Returns main()'s exit status if the CPU or the build does not have them, else 0.
 */
int rig_copies_by(int argc, char **argv);
/* BlueFlame: the whole WQE to the register. */
void rig_ring_bf(struct rig_qp *q);

/* Post a receive and write its record. */
void rig_recv(struct rig_qp *q, const struct rig_mem *m, size_t off, uint32_t len);

/* ---- CQEs */

bool rig_cqe(struct rig_cq *c, struct rig_cqe *e);
/* The next CQE, running the device of @u; fails when none comes in 5 seconds. */
void rig_wait(struct rig_cq *c, struct rig_uar *u, struct rig_cqe *e);
/* As it should be: a requester's success, or an error. Polled once first. */
void rig_expect_ok(struct rig_qp *q, uint8_t sop, uint16_t counter);
/* Returns the vendor syndrome. */
uint8_t rig_expect_error(struct rig_qp *q, uint16_t counter, uint8_t syndrome);
void rig_expect_none(struct rig_cq *c, struct rig_uar *u);

void rig_subscribe(struct rig_dev *d, struct mlx5_obj *obj, uint16_t type, uint64_t cookie);
/* The next event is this one. */
void rig_expect_event(struct rig_dev *d, uint16_t type, uint64_t cookie);
void rig_expect_no_event(struct rig_dev *d);

uint64_t rig_now_us(void);

/* What comes at all has come by then, however busy the machine: microseconds. */
#define RIG_WAIT_US 30000000u

/* Two connected QPs a and b on one device, each with CQs and memory: what most need. */
struct rig_pair {
	struct rig_dev d;
	struct rig_uar ua, ub;
	struct rig_uar *u[2]; /* of a and b; the same one unless two were asked for */
	struct rig_cq ca, cb; /* send and receive of a, of b */
	struct rig_qp a, b;
	struct rig_mem ma, mb;
};
#define RIG_MEM (256 * 1024)
void rig_pair_open(struct rig_pair *p, const char *args, bool two_uars, const struct rig_link *l);
void rig_pair_close(struct rig_pair *p);
/* A test whose state is a pair, opened with @args. TWO: each end has a UAR of its own. */
#define RIG_TEST(name, args) TEST_STATE(rig_setup, rig_teardown, (void *)(uintptr_t)(args), name)
#define RIG_TEST_TWO(name, args)                                                                   \
	TEST_STATE(rig_setup_two, rig_teardown, (void *)(uintptr_t)(args), name)
int rig_setup(void **state);
int rig_setup_two(void **state);
int rig_teardown(void **state);

#endif
