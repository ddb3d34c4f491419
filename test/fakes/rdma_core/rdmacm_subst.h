/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef RDMACM_SUBST_H
#define RDMACM_SUBST_H

#include <stdbool.h>
#include <stdint.h>

/* What the substitute of librdmacm is to do, and what it counts. */
struct rdmacm_subst {
	char device[64];    /* the kernel device that all addresses lead to */
	uint8_t gid[16];    /* its GID, and */
	uint8_t sgid_index; /* where that stands */
	bool no_kernel;     /* there is no rdma_ucm */
	bool iwarp;         /* what the device's transport is */
	/* The peer can send from here on: rdma_connect(), rdma_accept() with this QP went well. */
	void (*open)(uint32_t qpn);
	/* The next calls fail so: errno. connect_error and accept_error are of the calls
	 * themselves.
	 */
	int addr_error, route_error, unreachable, connect_error, accept_error;
	int ids, events, channels; /* alive; events given and not acknowledged */
};
extern struct rdmacm_subst rdmacm_subst;

/* The device is removed: every id hears of it. */
void rdmacm_subst_remove(void);

#endif
