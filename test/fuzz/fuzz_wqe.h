/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The objects that an input of fuzz_wqe.c works on. */
#ifndef FUZZ_WQE_H
#define FUZZ_WQE_H

#include "../model/soft/exec/soft_rmp_env.h"
#include "../model/soft/exec/soft_umr_env.h"
#include "fuzz.h"

#define KEYED_AT 4096 /* the keyed part of each memory */
#define KEYED    8192

enum option {
	OPT_IN_CQE = 1, /* short data comes in the CQE; and masked atomics are allowed */
	OPT_UC = 2,
	OPT_UD = 4,      /* with OPT_UC: on InfiniBand */
	OPT_SRQ = 8,     /* b's receives come from an RMP */
	OPT_LIST = 16,   /* of a list; without OPT_SRQ: b completes into a's CQ */
	OPT_KEYS = 32,   /* windows and an indirect key */
	OPT_DETOUR = 64, /* a's memory is ON_DEMAND, b's RELAXED */
};

struct side {
	struct rig_uar *u;
	struct rig_cq cq;
	struct rig_qp qp;
	struct rig_mem mem;         /* the keyed part */
	struct mlx5_mr *ro, *other; /* read only; of another PD */
	uint8_t *all;
};

struct world {
	struct fuzz_in in;
	bool open;
	uint8_t defect, how; /* options of the device and of the objects */
	uint8_t options;     /* enum option */
	struct rig_dev d;
	struct rig_uar uar[2];
	struct mlx5_pd *pd;
	struct side side[2];
	struct rmp rmp;   /* of b, with OPT_SRQ */
	struct keys keys; /* with OPT_KEYS, but for its pair */
	struct rig_link link;
	int8_t psn_off;  /* what b expects is as much in front of what a sends */
	uint32_t rights; /* that keys may give on this device */
	uint32_t cqes;
};

/* Abort unless @ok: that is how a fuzzer is told. */
void world_check(bool ok, const char *what);
/* How the QPs are to be connected, from the input; then do it, both to RTS. */
void world_link(struct world *w);
void world_connect(struct world *w);
/* Consume what CQEs there are. */
void world_poll(struct world *w, struct side *s);
/* Run the device as the input says. */
void world_run(struct world *w);
void world_begin(struct world *w);
void world_end(struct world *w);

#endif
