/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A substitute for libibverbs and a provider, for programs that test drivers/verbs: one device,
 * "null0". A queue pair is its own peer: requests are carried out in this process when they are
 * posted, SENDs into receives of the same QP, and complete at once. Keys are not looked at.
 */
#ifndef VERBS_NULL_H
#define VERBS_NULL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define NULL_VECTORS  5 /* completion vectors */
#define NULL_NAME     "null0"
#define NULL_PKEYS    0x5000u  /* entries of its P_Key table */
#define NULL_MODERATE 100u     /* completions at most */
#define NULL_HZ       1000000u /* of its clock, which goes on by one with each completion */

struct null_dev {
	/* Call number @fail_at from now on fails with @fail_errno; 0: none does. */
	uint32_t fail_at;
	int fail_errno;
	bool failed; /* one did */
	const char *failed_call;

	bool no_cq_ex, no_qp_ex, no_td, no_keys, no_resize; /* the provider lacks these */
	bool no_cq_flags;                                   /* and IBV_CREATE_CQ_ATTR_* */
	bool no_devices;
	bool gone;  /* taken away: what asks the kernel fails with EIO */
	bool iwarp; /* what its transport is */
	bool no_atomics;
	bool no_optional; /* of all but ibv_reg_mr_iova2() optional rights are refused */
	bool no_state;    /* a query of a QP tells none, as siw's, but the next field */
	enum ibv_qp_state said_state;
	bool silent;          /* requests are only completed: no data moves, for counting */
	bool hold;            /* requests do not complete before null_release() */
	int event_errno;      /* why no event can be read; 0: they can be */
	uint32_t bad_wr;      /* post of WR number @bad_wr from now on is refused; 0: none */
	bool infiniband;      /* the port's link layer; else Ethernet */
	bool cleans;          /* takes completions of a QP that is reset or goes out of its CQs */
	bool no_reset_to_err; /* a QP does not go from RESET to ERR, as rxe's */
	/* What rdma-core 44's provider of rxe does wrong (drivers/verbs/verbs_caps.c). */
	bool rxe;
	bool mlx5;           /* libmlx5 is the provider */
	uint32_t max_inline; /* bytes; 0: 256 */
	uint32_t vendor_id;
	/* Changes what is told of the device and its port; NULL: nothing. */
	void (*attr)(struct ibv_device_attr_ex *attr, struct ibv_port_attr *port);
	void (*on_ah)(void); /* called before an address handle is made; NULL: nothing is */
	/* How the next request ends that is not carried out; 0: each is. */
	enum ibv_wc_status status;
	/* Of receives: status, vendor_err; sl, slid, pkey_index, wc_flags (GRH alone). */
	struct ibv_wc recv;
	int max_sge_rd; /* pieces of a READ; 0: not told */
	uint64_t clock; /* ticks; 0: there is none */

	uint32_t objects;                     /* alive */
	uint32_t objects_before_cq, cq_depth; /* when the first CQ was asked for, and its depth */
	uint32_t wr_ex, wr_plain;             /* requests posted each way */
	uint32_t recvs;                       /* posted */
	uint32_t wr_opcodes;                  /* of them: bit IBV_WR_RDMA_READ, ... */
	uint32_t send_flags;                  /* of the last one */
	uint32_t signaled;
	uint32_t ah_destroyed;
	uint32_t overruns; /* completions beyond the depth of their CQ: lost */
	uint32_t resized;  /* the last depth */
	uint32_t misuse;   /* ibv_wr_*() out of their order */
	uint32_t cq_count, cq_period;
	bool solicited_only; /* as a CQ was armed last */
	uint64_t dm_len;     /* as asked for */
	uint32_t dm_log_align;
	struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t len;
		int access;
		int code;        /* to return when it is done */
	} rereg;                 /* as asked for */
	unsigned int reg_access; /* of the last region */
	uint64_t reg_iova;       /* of the last one by ibv_reg_mr_iova2() */
	/* As asked for last. */
	struct ibv_ah_attr ah;
	struct ibv_qp_attr qp_attr;
	int qp_mask;
	struct ibv_qp_init_attr_ex qp_init;
	uint32_t qp_dv_flags; /* MLX5DV_QP_CREATE_*; 0: it was not mlx5dv_create_qp() */
	struct ibv_cq_init_attr_ex cq_init;
	int cq_vector; /* of the last ibv_create_cq() */
	struct ibv_mw_bind_info bind;
	struct ibv_srq_init_attr srq_init;
	struct ibv_td *td; /* of a parent domain */
	struct {
		struct ibv_ah *ah;
		uint32_t qpn, qkey;
	} ud; /* whereto the last datagram */
};

extern struct null_dev null_dev;

void null_reset(void);
/* Complete what was held. */
void null_release(void);
/* An asynchronous event for the next ibv_get_async_event(). */
void null_async(enum ibv_event_type type, void *element);

#endif
