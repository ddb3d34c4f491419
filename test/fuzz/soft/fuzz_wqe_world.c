/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Setup of fuzz_wqe.c: a device and its objects, reused from input to input. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_wqe.h"
#include "soft.h"

#define ALL_MEM   (2 * KEYED_AT + KEYED)
#define GUARD     0x5a
#define DEFECTS   16 /* enum soft_defect */
#define NO_BOUNDS 8

void
world_check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static struct mlx5_mr *
key(struct world *w, struct mlx5_pd *pd, const struct side *s, uint32_t access)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(s->all + KEYED_AT, KEYED, access);
	struct mlx5_mr *mr;

	world_check(soft_cmd_if.mr_reg(w->d.ctx, pd, &attr, &mr) == 0, "mr_reg");
	return mr;
}

void
world_link(struct world *w)
{
	struct fuzz_in *in = &w->in;
	struct rig_link *l = &w->link;
	uint8_t how = fuzz_u8(in);

	*l = rig_link_default();
	l->access = w->rights;
	l->atomic_mode = w->options & OPT_IN_CQE ? 3 : 1;
	/* Times short enough for a test. */
	l->timeout = 1;
	l->retry = how & 1;
	l->rnr_retry = how >> 1 & 1 ? 7 : how >> 2 & 1;
	if (how & 8)
		l->access = fuzz_u8(in) & w->rights;
	if (how & 16) {
		l->mtu = 1 + fuzz_u8(in) % 5;
		l->log_msg_max = fuzz_u8(in) % 31;
	}
	if (how & 32) {
		l->log_sra = fuzz_u8(in) % 5;
		l->log_rra = fuzz_u8(in) % 5;
	}
	w->psn_off = how & 64 ? (int8_t)fuzz_u8(in) : 0;
	if (how & 128)
		l->timeout = 0;
}

/* Moves both to RTS; b with the default MTU. */
void
world_connect(struct world *w)
{
	struct rig_link other = w->link;

	other.sq_psn = w->link.rq_psn;
	other.rq_psn = (w->link.sq_psn + (uint32_t)w->psn_off) & 0xffffff;
	other.mtu = 3;
	rig_qp_up(&w->side[0].qp, &w->d, w->side[1].qp.qpn, &w->link);
	rig_qp_up(&w->side[1].qp, &w->d, w->side[0].qp.qpn, &other);
}

static void
side_open(struct world *w, struct side *s, struct rig_uar *u, uint8_t log_cq, bool no_rq,
	  uint8_t log_stride, uint32_t rmpn)
{
	uint32_t access = w->rights;
	const bool in_cqe = w->options & OPT_IN_CQE;
	const uint32_t st = w->options & OPT_UD   ? BB_PRM_QP_ST_UD
			    : w->options & OPT_UC ? BB_PRM_QP_ST_UC
						  : BB_PRM_QP_ST_RC;
	const struct rig_qp_attr attr = {
		.log_sq = 5,
		.log_rq = no_rq ? 0 : 3,
		.log_stride = no_rq ? 4 : log_stride,
		.no_rq = no_rq,
		.rmpn = rmpn,
		.st = st,
		.cs_req = in_cqe && st == BB_PRM_QP_ST_RC ? 0x11 : 0,
		.cs_res = in_cqe && st != BB_PRM_QP_ST_UD && (!no_rq || rmpn != 0) ? 1 : 0,
		.uidx = 0xa11ce};
	struct rig_cq *cq;

	if (w->options & OPT_KEYS)
		access |= BB_ACCESS_MW_BIND;
	if ((w->options & OPT_DETOUR) && soft_paged_works())
		access |= s == &w->side[0] ? BB_ACCESS_ON_DEMAND : BB_ACCESS_RELAXED_ORDERING;
	s->u = u;
	rig_cq_open(&s->cq, u, log_cq);
	cq = (w->options & (OPT_LIST | OPT_SRQ)) == OPT_LIST ? &w->side[0].cq : &s->cq;
	rig_qp_open(&s->qp, u, cq, cq, &attr);
	s->all = aligned_alloc(4096, ALL_MEM);
	world_check(s->all != NULL, "no memory");
	memset(s->all, GUARD, ALL_MEM);
	s->mem.d = &w->d;
	s->mem.p = s->all + KEYED_AT;
	s->mem.len = KEYED;
	s->mem.mr = key(w, w->d.pd, s, access);
	s->ro = key(w, w->d.pd, s, 0);
	s->other = key(w, w->pd, s, w->rights);
}

static void
check_guards(const struct side *s)
{
	for (uint32_t i = 0; i < KEYED_AT; i++)
		world_check(s->all[i] == GUARD && s->all[KEYED_AT + KEYED + i] == GUARD,
			    "a byte outside the keys was written");
}

static void
side_close(struct world *w, struct side *s)
{
	rig_qp_close(&s->qp);
	rig_cq_close(&s->cq);
	world_check(soft_cmd_if.mr_dereg(w->d.ctx, s->mem.mr) == 0, "mr_dereg");
	world_check(soft_cmd_if.mr_dereg(w->d.ctx, s->ro) == 0, "mr_dereg");
	world_check(soft_cmd_if.mr_dereg(w->d.ctx, s->other) == 0, "mr_dereg");
	free(s->all);
}

static void
world_open(struct world *w, uint8_t defect, uint8_t how, uint8_t options)
{
	char args[96];

	memset(w, 0, sizeof(*w));
	w->open = true;
	w->defect = defect;
	w->how = how;
	w->options = options;
	w->rights = how & 2 ? RIG_ALL & ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC : RIG_ALL;
	snprintf(args, sizeof(args), "seed=0,scan=4,defect=%u%s%s%s%s", defect,
		 how & 1 ? ",shuffle=1" : "", how & 2 ? ",no_atomic" : "", how & 4 ? ",no_bf" : "",
		 (options & (OPT_UC | OPT_UD)) == (OPT_UC | OPT_UD) ? ",link=ib" : "");
	rig_dev_open(&w->d, "soft0", args);
	world_check(soft_cmd_if.pd_alloc(w->d.ctx, &w->pd) == 0, "pd_alloc");
	for (uint32_t i = 0; i < 2; i++)
		rig_uar_open(&w->uar[i], &w->d, how & 4 ? MLX5_UAR_NC : MLX5_UAR_BF);
	/*
	 * One shared register page, or one each: then two engines communicate by their inboxes.
	 */
	side_open(w, &w->side[0], &w->uar[0], how & 64 ? 2 : 7, false, 6, 0);
	if (options & OPT_SRQ)
		rmp_open(&w->rmp, &w->d,
			 options & OPT_LIST ? BB_PRM_WQ_TYPE_LIST : BB_PRM_WQ_TYPE_CYCLIC,
			 (options & OPT_LIST) == 0, 3, 6);
	side_open(w, &w->side[1], &w->uar[how >> 3 & 1], how & 128 ? 2 : 7,
		  how & 16 || options & OPT_SRQ, how & 32 ? 4 : 6, w->rmp.rmpn);
	if (options & OPT_KEYS)
		keys_make(&w->keys, &w->d);
}

static void
world_close(struct world *w)
{
	if (w->options & OPT_KEYS)
		keys_free(&w->keys, &w->d);
	/* Side 1 may use the CQ of side 0. */
	side_close(w, &w->side[1]);
	side_close(w, &w->side[0]);
	if (w->options & OPT_SRQ)
		rmp_close(&w->rmp);
	for (uint32_t i = 0; i < 2; i++)
		rig_uar_close(&w->uar[i]);
	world_check(soft_cmd_if.pd_free(w->d.ctx, w->pd) == 0, "pd_free");
	rig_dev_close(&w->d);
	w->open = false;
}

void
world_poll(struct world *w, struct side *s)
{
	struct rig_cqe e;

	while (rig_cqe(&s->cq, &e))
		w->cqes++;
	world_check(w->cqes <= 65536, "CQEs without end");
}

/* Bit 7: runs until the timeouts of world_link() are over. */
void
world_run(struct world *w)
{
	uint8_t how = fuzz_u8(&w->in);
	uint64_t end = rig_now_us() + (how & 128 ? 12 : 0);

	for (uint32_t i = 0; i <= how % 16 || rig_now_us() < end; i++) {
		rig_poll(&w->uar[0]);
		rig_poll(&w->uar[1]);
	}
}

/*
 * Reuses the previous input's objects if they fit: creating them takes longer than most inputs.
 * QPs always start afresh.
 */
void
world_begin(struct world *w)
{
	uint8_t defect = fuzz_u8(&w->in), how = fuzz_u8(&w->in);
	const struct fuzz_in in = w->in;
	const uint8_t options = defect < 128 ? defect : 0;

	/* A build without seeded defects has none. */
#ifndef SOFT_SEEDED
	defect = 0;
#endif
	/* Without bounds checks the device would leave the memory of this process. */
	defect = defect < 128 || defect % DEFECTS == NO_BOUNDS ? 0 : defect % DEFECTS;
	if (w->open && (w->defect != defect || w->how != how || w->options != options))
		world_close(w);
	if (!w->open)
		world_open(w, defect, how, options);
	w->in = in;
	w->cqes = 0;
	for (uint32_t i = 0; i < 2; i++)
		memset(w->side[i].all, GUARD, ALL_MEM);
	world_link(w);
	world_connect(w);
}

void
world_end(struct world *w)
{
	w->in.left = 0;
	for (uint32_t i = 0; i < 4; i++)
		world_run(w);
	for (uint32_t i = 0; i < 2; i++) {
		struct side *s = &w->side[i];

		/* Writes of a defective device elsewhere are no finding. */
		if (w->defect != 0)
			memset(s->all, GUARD, ALL_MEM);
		check_guards(s);
		world_poll(w, s);
		rig_qp_reset(&s->qp);
		memset(s->qp.sq, 0, (size_t)64 << s->qp.log_sq);
	}
	/*
	 * Small CQs may have overrun and are then dead. The state of an RMP and of keys must not
	 * leak into the next input.
	 */
	if (w->how & 0xc0 || w->options & (OPT_SRQ | OPT_KEYS))
		world_close(w);
}
