/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A user of the software device that is not Bluebell: mailboxes written by hand for the command
 * interface, WQEs built with rdma-core's setters, CQEs as rdma-core describes them, doorbells by
 * plain stores. The data path tests use it.
 */
#ifndef SOFT_RIG_H
#define SOFT_RIG_H

#include <stdbool.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "bb_mem.h"
#include "bb_prm.h"
#include "bb_test_on.h"
#include "mlx5_cmd.h"

extern const struct mlx5_cmd_if soft_cmd_if;

/* All access rights of the rig; each remote right here comes with LOCAL_WRITE. */
#define RIG_ALL                                                                                    \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

#define RIG_CQE 0x08 /* fm_ce_se: MLX5_WQE_CTRL_CQ_UPDATE */

struct rig_dev {
	struct mlx5_ctx *ctx;
	struct mlx5_pd *pd;
	struct bb_gid gid;
	uint32_t gid_index;
	uint8_t mac[6]; /* RoCE only */
	uint16_t lid;   /* InfiniBand only, else 0 */
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
	uint32_t cqe; /* bytes of a CQE: 64 or 128 */
	bool keep_ci; /* does not report the consumer index to the device */
};

/* A CQE in host byte order. */
struct rig_cqe {
	uint8_t opcode, syndrome, vendor, sop;
	bool solicited;
	uint16_t counter;
	uint32_t qpn, uidx, imm, bytes;
	uint64_t time;
};

struct rig_qp_attr {
	uint32_t log_sq, log_rq, log_stride; /* log2 of blocks, WQEs, bytes */
	bool no_rq;
	uint32_t uidx;
	uint32_t counter_set;
	struct mlx5_pd *pd; /* NULL for the device's PD */
	uint32_t rmpn;      /* an RMP, with no_rq */
	uint32_t cs_req, cs_res;
	uint32_t st; /* MLX5_QP_ST_* */
};

#define RIG_QKEY 0x11111111u /* for UD */

/*
 * How two QPs are connected: both ends alike, except that each end's send PSN is the other's
 * receive PSN.
 */
struct rig_link {
	uint32_t access; /* of BB_ACCESS_REMOTE_* */
	uint32_t atomic_mode;
	uint32_t mtu; /* as qpc.mtu: 1 is 256, 5 is 4096 */
	uint32_t log_msg_max, log_sra, log_rra;
	uint32_t retry, rnr_retry, min_rnr, timeout;
	uint32_t sq_psn, rq_psn;
	uint32_t tclass;            /* DSCP and, in its low bits, ECN */
	uint32_t flow_label, sport; /* sport 0 stands for 0xc001 */
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
	uint8_t head[8]; /* head of the last WQE */
	uint16_t last;   /* index of the last WQE */
};

void rig_dev_open(struct rig_dev *d, const char *name, const char *args);
void rig_dev_close(struct rig_dev *d);
void rig_uar_open(struct rig_uar *u, struct rig_dev *d, enum mlx5_uar_type type);
void rig_uar_close(struct rig_uar *u);
void rig_mem_open(struct rig_mem *m, struct rig_dev *d, struct mlx5_pd *pd, size_t len,
		  uint32_t access);
void rig_mem_close(struct rig_mem *m);
/* The same with an overrun that the device ignores. */
void rig_cq_open_oi(struct rig_cq *c, struct rig_uar *u, uint32_t log);
void rig_cq_open(struct rig_cq *c, struct rig_uar *u, uint32_t log);
/* Creates a CQ whose CQEs have @cqe bytes, 64 or 128. */
void rig_cq_open_size(struct rig_cq *c, struct rig_uar *u, uint32_t log, uint32_t cqe);
void rig_cq_close(struct rig_cq *c);
/* Return the device's object. */
struct soft_cq *rig_soft_cq(const struct rig_cq *c);
struct soft_qp *rig_soft_qp(const struct rig_qp *q);
void rig_qp_open(struct rig_qp *q, struct rig_uar *u, struct rig_cq *scq, struct rig_cq *rcq,
		 const struct rig_qp_attr *attr);
void rig_qp_close(struct rig_qp *q);

struct rig_link rig_link_default(void);
/* Builds the mailbox of a transition as rig_qp_modify() sends it; returns its length. */
size_t rig_qp_mailbox(const struct rig_qp *q, uint16_t op, const struct rig_dev *pd,
		      uint32_t remote_qpn, const struct rig_link *l, uint8_t *in);
/* Executes one transition of @q, with the QP @remote_qpn of device @pd as peer. */
int rig_qp_modify(struct rig_qp *q, uint16_t op, const struct rig_dev *pd, uint32_t remote_qpn,
		  const struct rig_link *l);
/* Moves @q to RTS, connected to a QP number of a device. */
void rig_qp_up(struct rig_qp *q, const struct rig_dev *pd, uint32_t remote_qpn,
	       const struct rig_link *l);
/* Moves both QPs to RTS. */
void rig_connect(struct rig_qp *a, struct rig_qp *b, const struct rig_link *l);
void rig_qp_reset(struct rig_qp *q);
void rig_qp_error(struct rig_qp *q);
/* Returns a field of the context from QUERY_QP. */
uint32_t rig_qp_query(struct rig_qp *q, struct bb_prm_field f);
static inline uint32_t
rig_qp_state(struct rig_qp *q)
{
	return rig_qp_query(q, BB_PRM_QPC_STATE);
}

/* Polls the device on behalf of a UAR's owner; does nothing if the device runs by itself. */
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

/* ---- WQEs: ds counts a WQE's segments from its control segment */

/* Returns segment @ds of the WQE at index @idx, wrapping at the ring's end. */
static inline void *
rig_seg(struct rig_qp *q, uint16_t idx, uint32_t ds)
{
	size_t at = ((size_t)idx * 64 + (size_t)ds * 16) & (((size_t)64 << q->log_sq) - 1);

	return q->sq + at;
}

/* Finishes the WQE of @ds segments at pi, without a doorbell. */
void rig_wqe(struct rig_qp *q, uint8_t opcode, uint8_t fm_ce_se, uint32_t ds, uint32_t imm);
void rig_raddr(struct rig_qp *q, uint64_t raddr, uint32_t rkey);
static inline void
rig_data(struct rig_qp *q, uint32_t ds, const struct rig_mem *m, size_t off, uint32_t len)
{
	mlx5dv_set_data_seg(rig_seg(q, q->pi, ds), len, m->mr->lkey, (uintptr_t)m->p + off);
}
/* Writes inline data at segment @ds; returns the number of segments used. */
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

/* Writes the record; stores the last WQE's head to a register; does both. */
void rig_record(struct rig_qp *q);
void rig_store(struct rig_qp *q, struct rig_uar *u);
void rig_ring(struct rig_qp *q);
/*
 * Makes rig_ring_bf() copy by the stores of bb_uar_wide.h that the program's argument names, 8
 * bytes each without an argument. Returns 0, or main()'s exit status if the CPU or the build does
 * not have them.
 */
int rig_copies_by(int argc, char **argv);
/* BlueFlame: copies the whole WQE to the register. */
void rig_ring_bf(struct rig_qp *q);

/* Posts a receive and writes its record. */
void rig_recv(struct rig_qp *q, const struct rig_mem *m, size_t off, uint32_t len);

/* ---- CQEs */

bool rig_cqe(struct rig_cq *c, struct rig_cqe *e);
/* Consumes all CQEs, which must report success. Returns their number. */
uint32_t rig_completed(struct rig_cq *c);
/* Returns the last 64 bytes of the CQE that rig_cqe() consumed last. */
static inline const uint8_t *
rig_cqe_bytes(const struct rig_cq *c)
{
	return c->mem + (size_t)(((c->ci - 1) & ((1u << c->log) - 1)) + 1) * c->cqe - 64;
}
/* Waits for the next CQE while running the device of @u; fails after RIG_WAIT_US. */
void rig_wait(struct rig_cq *c, struct rig_uar *u, struct rig_cqe *e);
/* Expects a requester's success, or an error. Polls the device first. */
void rig_expect_ok(struct rig_qp *q, uint8_t sop, uint16_t counter);
/* The same after a doorbell. */
static inline void
rig_done(struct rig_qp *q, uint8_t sop, uint16_t counter)
{
	rig_ring(q);
	rig_expect_ok(q, sop, counter);
}
/* Returns the vendor syndrome. */
uint8_t rig_expect_error(struct rig_qp *q, uint16_t counter, uint8_t syndrome);
void rig_expect_none(struct rig_cq *c, struct rig_uar *u);

void rig_subscribe(struct rig_dev *d, struct mlx5_obj *obj, uint16_t type, uint64_t cookie);
/* Expects this event next. */
void rig_expect_event(struct rig_dev *d, uint16_t type, uint64_t cookie);
void rig_expect_no_event(struct rig_dev *d);

uint64_t rig_now_us(void);

/* Longest wait for anything that must arrive, on any machine: microseconds. */
#define RIG_WAIT_US 30000000u

/* Two connected QPs a and b on one device, each with CQs and memory, for most tests. */
struct rig_pair {
	struct rig_dev d;
	struct rig_uar ua, ub;
	struct rig_uar *u[2]; /* UARs of a and b; both the same unless two were asked for */
	struct rig_cq ca, cb; /* send and receive CQ of a, of b */
	struct rig_qp a, b;
	struct rig_mem ma, mb;
};
#define RIG_MEM (256 * 1024)
void rig_pair_open(struct rig_pair *p, const char *args, bool two_uars, const struct rig_link *l);
void rig_pair_close(struct rig_pair *p);
/* Defines a test of the pair p, opened with @args. TWO: each end has its own UAR. */
#define RIG_TEST(name, args)                                                                       \
	TEST_AS(rig_setup, rig_teardown, (void *)(uintptr_t)(args), struct rig_pair, p, name)
#define RIG_TEST_TWO(name, args)                                                                   \
	TEST_AS(rig_setup_two, rig_teardown, (void *)(uintptr_t)(args), struct rig_pair, p, name)
int rig_setup(void **state);
int rig_setup_two(void **state);
int rig_teardown(void **state);

#endif
