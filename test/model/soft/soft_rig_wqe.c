/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* WQEs built with rdma-core's setters, doorbells, and CQEs read from the ring. */
#include "soft_rig.h"

#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "bb_uar_wide.h"

static void
block_plain(volatile uint64_t *reg, const uint8_t *block)
{
	uint32_t i;

	for (i = 0; i < 8; i++) {
		uint64_t v;

		memcpy(&v, block + i * 8, sizeof(v));
		__atomic_store_n(&reg[i], v, __ATOMIC_RELEASE);
	}
}

static void (*rig_block)(volatile uint64_t *reg, const uint8_t *block) = block_plain;

#ifdef BB_UAR_WIDE_X86
static bool
has_movdir64b(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & 1u << 28) != 0;
}

static bool
wide_block(const char *kind)
{
	if (strcmp(kind, "avx2") == 0 && __builtin_cpu_supports("avx2"))
		rig_block = bb_uar_block_avx2;
	else if (strcmp(kind, "avx512") == 0 && __builtin_cpu_supports("avx512f"))
		rig_block = bb_uar_block_avx512;
	else if (strcmp(kind, "movdir64b") == 0 && has_movdir64b())
		rig_block = bb_uar_block_movdir64b;
	return rig_block != block_plain;
}
#else
static bool
wide_block(const char *kind)
{
#ifdef BB_UAR_WIDE_ARM
	if (strcmp(kind, "neon") == 0)
		rig_block = bb_uar_block_neon;
#else
	(void)kind;
#endif
	return rig_block != block_plain;
}
#endif

int
rig_copies_by(int argc, char **argv)
{
	if (argc < 2 || wide_block(argv[1]))
		return 0;
	printf("SKIP: no BlueFlame copies by %s on this CPU or in this build\n", argv[1]);
	return 77;
}

void
rig_wqe(struct rig_qp *q, uint8_t opcode, uint8_t fm_ce_se, uint32_t ds, uint32_t imm)
{
	struct mlx5_wqe_ctrl_seg *ctrl = rig_seg(q, q->pi, 0);

	mlx5dv_set_ctrl_seg(ctrl, q->pi, opcode, 0, q->qpn, fm_ce_se, (uint8_t)ds, 0, imm);
	memcpy(q->head, ctrl, sizeof(q->head));
	q->last = q->pi;
	q->pi = (uint16_t)(q->pi + (ds + 3) / 4);
}

void
rig_raddr(struct rig_qp *q, uint64_t raddr, uint32_t rkey)
{
	struct mlx5_wqe_raddr_seg *s = rig_seg(q, q->pi, 1);

	s->raddr = htobe64(raddr);
	s->rkey = htobe32(rkey);
	s->reserved = 0;
}

uint32_t
rig_inline(struct rig_qp *q, uint32_t ds, const void *data, uint32_t len)
{
	struct mlx5_wqe_inl_data_seg *s = rig_seg(q, q->pi, ds);
	uint32_t i;

	s->byte_count = htobe32(MLX5_INLINE_SEG | len);
	for (i = 0; i < len; i++)
		((uint8_t *)rig_seg(q, q->pi, ds + (4 + i) / 16))[(4 + i) % 16] =
			((const uint8_t *)data)[i];
	return (len + 4 + 15) / 16;
}

void
rig_write(struct rig_qp *q, const struct rig_mem *from, size_t off, uint32_t len,
	  const struct rig_mem *to, size_t at, uint8_t fm_ce_se)
{
	rig_raddr(q, (uintptr_t)to->p + at, to->mr->rkey);
	rig_data(q, 2, from, off, len);
	rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, fm_ce_se, len == 0 ? 2 : 3, 0);
}

void
rig_read(struct rig_qp *q, const struct rig_mem *into, size_t off, uint32_t len,
	 const struct rig_mem *from, size_t at, uint8_t fm_ce_se)
{
	rig_raddr(q, (uintptr_t)from->p + at, from->mr->rkey);
	rig_data(q, 2, into, off, len);
	rig_wqe(q, MLX5_OPCODE_RDMA_READ, fm_ce_se, len == 0 ? 2 : 3, 0);
}

void
rig_send(struct rig_qp *q, const struct rig_mem *from, size_t off, uint32_t len, uint8_t fm_ce_se)
{
	rig_data(q, 1, from, off, len);
	rig_wqe(q, MLX5_OPCODE_SEND, fm_ce_se, len == 0 ? 1 : 2, 0);
}

void
rig_atomic(struct rig_qp *q, uint8_t opcode, const struct rig_mem *into, size_t off,
	   const struct rig_mem *at, size_t at_off, uint64_t swap_add, uint64_t compare,
	   uint8_t fm_ce_se)
{
	struct mlx5_wqe_atomic_seg *s = rig_seg(q, q->pi, 2);

	rig_raddr(q, (uintptr_t)at->p + at_off, at->mr->rkey);
	s->swap_add = htobe64(swap_add);
	s->compare = htobe64(compare);
	rig_data(q, 3, into, off, 8);
	rig_wqe(q, opcode, fm_ce_se, 4, 0);
}

void
rig_nop(struct rig_qp *q, uint8_t fm_ce_se)
{
	rig_wqe(q, MLX5_OPCODE_NOP, fm_ce_se, 1, 0);
}

void
rig_record(struct rig_qp *q)
{
	__atomic_store_n(&q->dbrec[1], htobe32(q->pi), __ATOMIC_RELEASE);
}

void
rig_store(struct rig_qp *q, struct rig_uar *u)
{
	uint64_t v;

	memcpy(&v, q->head, sizeof(v));
	__atomic_store_n((uint64_t *)(void *)(u->uar->reg_addr + q->bf_offset), v,
			 __ATOMIC_RELEASE);
	q->bf_offset ^= 256;
}

void
rig_ring(struct rig_qp *q)
{
	rig_record(q);
	rig_store(q, q->u);
}

void
rig_ring_bf(struct rig_qp *q)
{
	uint64_t *reg = (uint64_t *)(void *)(q->u->uar->reg_addr + q->bf_offset);
	uint32_t blocks = (uint16_t)(q->pi - q->last), i;

	rig_record(q);
	bb_db_wmb();
	for (i = 0; i < blocks; i++)
		rig_block(reg + i * 8, rig_seg(q, q->last, i * 4));
	bb_wc_flush();
	q->bf_offset ^= 256;
}

void
rig_recv(struct rig_qp *q, const struct rig_mem *m, size_t off, uint32_t len)
{
	uint32_t idx = q->rq_pi & ((1u << q->log_rq) - 1);
	struct mlx5_wqe_data_seg *s = (void *)(q->rq + ((size_t)idx << q->log_stride));

	if (len != 0)
		mlx5dv_set_data_seg(s++, len, m->mr->lkey, (uintptr_t)m->p + off);
	if ((uint8_t *)s != q->rq + ((size_t)(idx + 1) << q->log_stride))
		mlx5dv_set_data_seg(s, 0, MLX5_INVALID_LKEY, 0);
	q->rq_pi++;
	__atomic_store_n(&q->dbrec[0], htobe32(q->rq_pi), __ATOMIC_RELEASE);
}

/* ---- CQEs */

bool
rig_cqe(struct rig_cq *c, struct rig_cqe *e)
{
	/* The fields of a CQE are in its last 64 bytes. */
	uint8_t *p = c->mem + (size_t)((c->ci & ((1u << c->log) - 1)) + 1) * c->cqe - 64;
	const struct mlx5_cqe64 *cqe = (void *)p;
	const struct mlx5_err_cqe *err = (void *)p;
	uint8_t own = __atomic_load_n(&p[63], __ATOMIC_ACQUIRE);

	if ((own & 1) != (c->ci >> c->log & 1) || own >> 4 == MLX5_CQE_INVALID)
		return false;
	memset(e, 0, sizeof(*e));
	e->opcode = own >> 4;
	e->solicited = own >> 1 & 1;
	e->uidx = be32toh(cqe->srqn_uidx) & 0xffffff;
	e->sop = (uint8_t)(be32toh(cqe->sop_drop_qpn) >> 24);
	e->qpn = be32toh(cqe->sop_drop_qpn) & 0xffffff;
	e->counter = be16toh(cqe->wqe_counter);
	if (e->opcode == MLX5_CQE_REQ_ERR || e->opcode == MLX5_CQE_RESP_ERR) {
		e->syndrome = err->syndrome;
		e->vendor = err->vendor_err_synd;
	} else {
		e->time = be64toh(cqe->timestamp);
		e->bytes = be32toh(cqe->byte_cnt);
		e->imm = cqe->imm_inval_pkey;
	}
	c->ci++;
	if (!c->keep_ci)
		__atomic_store_n(&c->dbrec[0], htobe32(c->ci & 0xffffff), __ATOMIC_RELEASE);
	return true;
}

uint32_t
rig_completed(struct rig_cq *c)
{
	struct rig_cqe e;
	uint32_t n;

	for (n = 0; rig_cqe(c, &e); n++)
		assert_int_equal(e.syndrome, 0);
	return n;
}

uint64_t
rig_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void
rig_wait(struct rig_cq *c, struct rig_uar *u, struct rig_cqe *e)
{
	uint64_t end = rig_now_us() + RIG_WAIT_US;

	do {
		rig_poll(u);
		if (rig_cqe(c, e))
			return;
	} while (rig_now_us() < end);
	fail_msg("no CQE came in %u seconds", RIG_WAIT_US / 1000000);
}

void
rig_expect_ok(struct rig_qp *q, uint8_t sop, uint16_t counter)
{
	struct rig_cqe e;

	rig_wait(q->scq, q->u, &e);
	if (e.opcode != MLX5_CQE_REQ || e.sop != sop || e.counter != counter || e.qpn != q->qpn)
		fail_msg("CQE opcode %u sop 0x%x counter %u QP 0x%x syndrome 0x%02x, not a success "
			 "of 0x%x counter %u QP 0x%x",
			 e.opcode, e.sop, e.counter, e.qpn, e.syndrome, sop, counter, q->qpn);
}

uint8_t
rig_expect_error(struct rig_qp *q, uint16_t counter, uint8_t syndrome)
{
	struct rig_cqe e;

	rig_wait(q->scq, q->u, &e);
	if (e.opcode != MLX5_CQE_REQ_ERR || e.counter != counter || e.qpn != q->qpn ||
	    e.syndrome != syndrome || e.vendor == 0)
		fail_msg("CQE opcode %u counter %u QP 0x%x syndrome 0x%02x vendor 0x%02x, not an "
			 "error 0x%02x counter %u QP 0x%x",
			 e.opcode, e.counter, e.qpn, e.syndrome, e.vendor, syndrome, counter,
			 q->qpn);
	return e.vendor;
}

void
rig_expect_none(struct rig_cq *c, struct rig_uar *u)
{
	struct rig_cqe e;

	rig_polls(u, 100);
	if (rig_cqe(c, &e))
		fail_msg("a CQE: opcode %u counter %u QP 0x%x syndrome 0x%02x", e.opcode, e.counter,
			 e.qpn, e.syndrome);
}
