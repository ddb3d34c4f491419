/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The objects of an input of fuzz_wqe.c. */
#ifndef FUZZ_WQE_H
#define FUZZ_WQE_H

#include "../../model/soft/exec/soft_rmp_env.h"
#include "../../model/soft/exec/soft_umr_env.h"
#include "fuzz.h"

#define KEYED_AT 4096 /* offset of the range with keys in each memory */
#define KEYED    8192

enum option {
	OPT_IN_CQE = 1, /* short data comes in the CQE; masked atomics are allowed */
	OPT_UC = 2,
	OPT_UD = 4,      /* with OPT_UC: on InfiniBand */
	OPT_SRQ = 8,     /* b's receives come from an RMP */
	OPT_LIST = 16,   /* post a list; without OPT_SRQ: b completes into a's CQ */
	OPT_KEYS = 32,   /* windows and an indirect key */
	OPT_DETOUR = 64, /* a's memory is ON_DEMAND, b's RELAXED */
};

struct side {
	struct rig_uar *u;
	struct rig_cq cq;
	struct rig_qp qp;
	struct rig_mem mem;         /* the range with keys */
	struct mlx5_mr *ro, *other; /* read-only; of another PD */
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
	struct rmp rmp;   /* SRQ of b, with OPT_SRQ */
	struct keys keys; /* with OPT_KEYS, except for its pair */
	struct rig_link link;
	int8_t psn_off;  /* PSN that b expects minus the PSN that a sends */
	uint32_t rights; /* rights that keys may have on this device */
	uint32_t cqes;
};

/* Aborts unless @ok, which a fuzzer reports. */
void world_check(bool ok, const char *what);
/*
 * Reads the connection's parameters from the input; then connects both QPs and moves them to RTS.
 */
void world_link(struct world *w);
void world_connect(struct world *w);
/* Consumes all CQEs. */
void world_poll(struct world *w, struct side *s);
/* Runs the device as the input says. */
void world_run(struct world *w);
void world_begin(struct world *w);
void world_end(struct world *w);

#endif
