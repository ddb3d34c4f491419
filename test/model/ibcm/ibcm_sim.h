/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two CM engines on a network in virtual time. The network loses, duplicates, delays and so
 * reorders MADs, by a seed. Both ends open connections to each other, accept, reject, hesitate and
 * disconnect. The simulation fails a test at the first wrong event.
 */
#ifndef IBCM_SIM_H
#define IBCM_SIM_H

#include <stdint.h>

struct sim_attr {
	uint64_t seed;
	uint32_t conns;      /* connections to open, one after another */
	uint32_t at_a_time;  /* of these open at the same time */
	uint32_t loss;       /* of 1000 MADs */
	uint32_t dup;        /* of 1000 MADs */
	uint32_t max_delay;  /* us */
	uint32_t cm_retries; /* of a REQ */
	uint32_t hesitate;   /* of 1000 requests and replies are answered after up to 4 s */
	uint32_t reject;     /* of 1000 requests and replies are rejected */
};

struct sim_result {
	uint32_t established; /* on both sides, and disconnected later */
	uint32_t rejected;    /* by a decision of the simulation */
	uint32_t failed;      /* all others */
	uint32_t again;       /* requests that were reported again after their end */
	uint64_t longest;     /* longest time from a call to its result, ns */
	uint64_t lost, duplicated, repeats, answered_again, mras;
	uint64_t end; /* time at which both engines had no slot in use */
};

struct sim_result sim_run(const struct sim_attr *attr);

#endif
