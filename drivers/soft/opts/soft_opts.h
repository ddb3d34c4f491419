/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of a device, as parsed from its device string. */
#ifndef SOFT_OPTS_H
#define SOFT_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mlx5_cmd.h"
#include "soft_defect.h"
#include "soft_net_fault.h"
#include "soft_port_opts.h"

#define SOFT_CAPTURE_PATH 256 /* bytes of the name of a capture file, including the final zero */

#define SOFT_NAP_US 50 /* us; default of the option nap, and the first sleep of an idle thread */

enum soft_progress {
	SOFT_PROGRESS_INLINE,
	SOFT_PROGRESS_LCORE,
	SOFT_PROGRESS_THREAD,
};

/* Device options, "soft0,key=value,...". */
struct soft_opts {
	enum soft_progress progress;
	uint32_t lcore; /* lcore that runs the engine with progress=lcore */
	uint32_t nap;   /* longest sleep of the idle thread with progress=thread, us */
	bool mmap;      /* pages that programs map are in one file: soft_node.c */
	bool shuffle;   /* write the lines of a payload in shuffled order */
	/* doorbell records read per poll, to find doorbells that a later doorbell overwrote */
	uint32_t scan;
	uint64_t seed;
	bool seeded;  /* the option seed was given, so QP numbers and keys are repeatable */
	bool link_ib; /* the port's link layer is InfiniBand, not Ethernet */
	uint32_t log_max_msg;
	/* Two doorbell registers of a page serve two UARs of a context, as with libmlx5. */
	bool uar_share;
	/* Capabilities that the device does not have, to test how their use is rejected. */
	bool no_atomic, no_ext_atomic, no_bf, no_counters, no_devx, no_dm, no_dmabuf, no_srq;
	bool no_mkey, no_ksm, no_umr, no_umr_atomic, no_interleaved, no_mw;
	bool no_odp, no_relaxed;
	bool no_clock, no_compress, no_cq_moderation, no_cq_resize;
	char bf_copy[MLX5_BF_COPY_MAX]; /* method of BlueFlame copies, for the driver: see
					 * mlx5_bf_copy_choose() */
	bool grh_required;              /* InfiniBand only: paths without a GRH are rejected */
	uint32_t dm;                    /* bytes of device memory, a multiple of 4096 */
	bool wire;    /* requests are sent as RoCEv2 packets, not copied from memory to memory */
	bool no_keep; /* no selective repeat: packets that follow a lost packet are dropped */
	bool virtual_time;           /* packets and timers use virtual time: 1 us per poll */
	uint32_t flap_up, flap_down; /* ms that the port is up, then down; 0 if always up */
	uint32_t window;             /* maximum number of unacknowledged packets of a QP */
	struct soft_net_fault tx_fault, rx_fault;
	char capture[SOFT_CAPTURE_PATH]; /* file for a capture of the packets, "" for none */
	uint32_t capture_mib;            /* largest size of the capture file, in MiB */
	bool dmabuf_memfd; /* accept a sealed memfd as a dma-buf, for machines without udmabuf */
	uint32_t log_max_mkey;
#ifdef SOFT_SEEDED
	uint32_t defect; /* enum soft_defect: deliberate fault that tests must find */
#endif
	uint32_t fault; /* fault to inject: enum soft_fault_kind */
	/*
	 * the fault is injected at this attempt to execute a request; counts from 1, with retries
	 */
	uint32_t fault_at;
	struct soft_port_opts port;
};

/*
 * Returns the defect (enum soft_defect) that the device has on purpose, so that tests can prove
 * that they find it. Returns SOFT_DEFECT_NONE in builds without SOFT_SEEDED.
 */
static inline uint32_t
soft_opts_defect(const struct soft_opts *opts)
{
#ifdef SOFT_SEEDED
	return opts->defect;
#else
	(void)opts;
	return SOFT_DEFECT_NONE;
#endif
}

#endif
