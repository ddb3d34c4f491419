/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef RDMACM_SUBST_H
#define RDMACM_SUBST_H

#include <stdbool.h>
#include <stdint.h>

/* Behaviour of the librdmacm substitute, and its counters. */
struct rdmacm_subst {
	char device[64];    /* kernel device that all addresses lead to */
	uint8_t gid[16];    /* a GID of this device, and */
	uint8_t sgid_index; /* its index */
	bool no_kernel;     /* rdma_ucm is missing */
	bool iwarp;         /* the device is iWARP */
	/*
	 * Called when the peer may send: after a successful rdma_connect() or rdma_accept() with
	 * this QP.
	 */
	void (*open)(uint32_t qpn);
	/*
	 * The next calls fail with these errnos. connect_error and accept_error are those of the
	 * calls themselves.
	 */
	int addr_error, route_error, unreachable, connect_error, accept_error;
	int ids, events, channels; /* live objects; events fetched and not acknowledged */
};
extern struct rdmacm_subst rdmacm_subst;

/* Removes the device: every id gets an event. */
void rdmacm_subst_remove(void);

#endif
