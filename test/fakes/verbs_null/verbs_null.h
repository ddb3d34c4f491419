/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A substitute for libibverbs and a provider, for programs that test drivers/verbs, with one
 * device "null0". A queue pair is its own peer. Requests execute in this process when they are
 * posted and complete at once; a SEND goes into a receive of its own QP. Keys are not checked.
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
#define NULL_HZ       1000000u /* of its clock, which advances by one per completion */

struct null_dev {
	/* Call number @fail_at from now on fails with @fail_errno; 0: no call fails. */
	uint32_t fail_at;
	int fail_errno;
	bool failed; /* a call failed */
	const char *failed_call;

	bool no_cq_ex, no_qp_ex, no_td, no_keys, no_resize, no_mw; /* the provider lacks these */
	bool no_cq_flags;                                          /* and IBV_CREATE_CQ_ATTR_* */
	bool no_devices;
	bool gone;  /* removed: calls into the kernel fail with EIO */
	bool iwarp; /* its transport is iWARP */
	bool no_atomics;
	bool no_optional; /* refuses optional rights, except in ibv_reg_mr_iova2() */
	/* a query of a QP reports no state, as siw's, but the following field */
	bool no_state;
	enum ibv_qp_state said_state;
	bool silent;     /* requests complete without moving data, for counting */
	bool hold;       /* requests do not complete before null_release() */
	int event_errno; /* errno of reading an event; 0: success */
	uint32_t bad_wr; /* number of the posted WR, from now on, that is refused; 0: none */
	bool infiniband; /* link layer of the port; else Ethernet */
	/* removes the completions of a QP that is reset or destroyed from its CQs */
	bool cleans;
	/* a message comes just before a QP that can receive is reset or destroyed */
	bool late;
	bool no_reset_to_err; /* a QP cannot go from RESET to ERR, as with rxe */
	/* Defects of rdma-core 44's provider of rxe (drivers/verbs/verbs_caps.c). */
	bool rxe;
	bool mlx5;           /* libmlx5 is the provider */
	uint32_t max_inline; /* bytes; 0: 256 */
	uint32_t vendor_id;
	/* Changes the reported attributes of device and port; NULL: no change. */
	void (*attr)(struct ibv_device_attr_ex *attr, struct ibv_port_attr *port);
	void (*on_ah)(void); /* called before an address handle is made; NULL: no call */
	/* Status with which the next request ends without executing; 0: requests execute. */
	enum ibv_wc_status status;
	/* For receives: status, vendor_err, sl, slid, pkey_index, wc_flags (GRH only). */
	struct ibv_wc recv;
	int max_sge_rd; /* pieces of a READ; 0: not reported */
	uint64_t clock; /* ticks; 0: no clock */

	uint32_t objects;                     /* live objects */
	uint32_t objects_before_cq, cq_depth; /* when the first CQ was created, and its depth */
	uint32_t wr_ex, wr_plain;             /* requests posted by each API */
	uint32_t recvs;                       /* receives posted */
	uint32_t wr_opcodes;                  /* opcodes among them: bit IBV_WR_RDMA_READ, ... */
	uint32_t send_flags;                  /* of the last request */
	uint32_t signaled;
	uint32_t ah_destroyed;
	uint32_t mcasts;       /* multicast groups that QPs are attached to */
	uint8_t mcast_gid[16]; /* of the last attach */
	uint16_t mcast_lid;
	uint32_t cleaned;  /* completions that were removed, see above */
	uint32_t overruns; /* completions beyond the depth of their CQ, which are lost */
	uint32_t resized;  /* depth of the last resize */
	uint32_t misuse;   /* ibv_wr_*() calls out of order */
	uint32_t cq_count, cq_period;
	bool solicited_only; /* how a CQ was last armed */
	uint64_t dm_len;     /* requested length */
	uint32_t dm_log_align;
	struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t len;
		int access;
		int code;        /* result after success */
	} rereg;                 /* last arguments */
	unsigned int reg_access; /* of the last region */
	uint64_t reg_iova;       /* of the last one by ibv_reg_mr_iova2() */
	/* Arguments of the last calls. */
	struct ibv_ah_attr ah;
	struct ibv_qp_attr qp_attr;
	int qp_mask;
	struct ibv_qp_init_attr_ex qp_init;
	uint32_t qp_dv_flags; /* MLX5DV_QP_CREATE_*; 0: not made by mlx5dv_create_qp() */
	struct ibv_cq_init_attr_ex cq_init;
	int cq_vector; /* of the last ibv_create_cq() */
	struct ibv_mw_bind_info bind;
	uint32_t bind_rkey; /* key of the window after the last bind */
	struct ibv_srq_init_attr srq_init;
	struct ibv_td *td; /* of a parent domain */
	struct {
		struct ibv_ah *ah;
		uint32_t qpn, qkey;
	} ud; /* destination of the last datagram */
};

extern struct null_dev null_dev;

void null_reset(void);
/* Completes the held requests. */
void null_release(void);
/* Adds an asynchronous event for the next ibv_get_async_event(). */
void null_async(enum ibv_event_type type, void *element);

#endif
