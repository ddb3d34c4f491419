/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The options of a device. */
#ifndef SOFT_OPTS_H
#define SOFT_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mlx5_cmd.h"
#include "soft_defect.h"
#include "soft_net_fault.h"
#include "soft_port_opts.h"

#define SOFT_CAPTURE_PATH 256 /* bytes of the name of a capture file, its zero included */

enum soft_progress {
	SOFT_PROGRESS_INLINE,
	SOFT_PROGRESS_LCORE,
	SOFT_PROGRESS_THREAD,
};

/* Device options, "soft0,key=value,...". */
struct soft_opts {
	enum soft_progress progress;
	uint32_t lcore; /* of progress=lcore */
	bool shuffle;   /* write payload in shuffled order */
	uint32_t scan;  /* doorbell records looked at per poll, merged stores */
	uint64_t seed;
	bool seeded;  /* the option is given: QP numbers and keys come from it, too */
	bool link_ib; /* an InfiniBand port instead of RoCE */
	uint32_t log_max_msg;
	/* BlueFlame registers of a context are handed out two per page, as libmlx5 does. */
	bool uar_share;
	/* Capabilities that can be switched off, to test their refusal. */
	bool no_atomic, no_ext_atomic, no_bf, no_counters, no_devx, no_dm, no_dmabuf, no_srq;
	bool no_mkey, no_ksm, no_umr, no_umr_atomic, no_interleaved, no_mw;
	bool no_odp, no_relaxed;
	bool no_clock, no_compress, no_cq_moderation, no_cq_resize;
	char bf_copy[MLX5_BF_COPY_MAX]; /* for the driver, see mlx5_bf_copy_choose() */
	bool grh_required;              /* InfiniBand: paths without a GRH are refused */
	uint32_t dm;                    /* bytes of device memory, a multiple of 4096 */
	/* RoCEv2 packets instead of the loop port's rules. */
	bool wire;
	bool no_keep;                /* packets behind a lost one are dropped */
	bool virtual_time;           /* of packets and timers: a microsecond a poll */
	uint32_t flap_up, flap_down; /* ms that the port is so, in turn; 0: it is up */
	uint32_t window;             /* packets of a QP that are not acknowledged, at most */
	struct soft_net_fault tx_fault, rx_fault;
	char capture[SOFT_CAPTURE_PATH]; /* a file for its packets; "": none */
	uint32_t capture_mib;            /* of it at most */
	bool dmabuf_memfd; /* a sealed memfd passes for a dma-buf, for machines without udmabuf */
	uint32_t log_max_mkey;
#ifdef SOFT_SEEDED
	uint32_t defect; /* enum soft_defect, for tests that must fail on it */
#endif
	/* A fault that strikes at the request with this number, from 1; retries count. */
	uint32_t fault; /* enum soft_fault_kind */
	uint32_t fault_at;
	struct soft_port_opts port;
};

/* Returns the seeded defect, SOFT_DEFECT_NONE in a build without any. */
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
