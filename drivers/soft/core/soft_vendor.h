/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Vendor syndromes of CQEs with an error. */
#ifndef SOFT_VENDOR_H
#define SOFT_VENDOR_H

#include <stdbool.h>
#include <stdint.h>

struct soft_engine;

/*
 * Vendor syndromes, with the names of NVIDIA's libdpcp (BSD-3-Clause). The syndromes of keys form
 * groups by the purpose of the access; the low three bits name the fault. If several faults apply,
 * the choice of the reported fault is an assumption [A].
 */
enum soft_vendor {
	SOFT_VEND_KEY_RECV = 0x28,   /* key fault in a write to a receive buffer */
	SOFT_VEND_KEY_DATA = 0x30,   /* key fault in a write of a READ's or atomic's result */
	SOFT_VEND_KEY_GATHER = 0x50, /* key fault in a read of the payload to send */
	SOFT_VEND_LOCAL_QP_OP = 0x68,
	SOFT_VEND_SEND_LENGTH = 0x69,
	SOFT_VEND_QP_TYPE = 0x6d,
	SOFT_VEND_OPCODE = 0x71,
	SOFT_VEND_UMR = 0x78, /* UMR failed; kernel logs show this value with syndrome 6 */
	SOFT_VEND_RETRY = 0x81,
	SOFT_VEND_RNR = 0x87,
	SOFT_VEND_REMOTE_ACCESS = 0x88,
	SOFT_VEND_REMOTE_OP = 0x89,
	SOFT_VEND_REMOTE_INVAL = 0x8a,
	SOFT_VEND_RECV_LENGTH = 0xd4,
	SOFT_VEND_FLUSH = 0xf9,
};

/* Faults of keys, in the low three bits of a vendor syndrome. */
enum soft_key_fault {
	SOFT_KEY_FREE = 1, /* the key is in state free (assumption [A]) */
	SOFT_KEY_PD = 2,   /* the key belongs to another PD, or does not exist */
	SOFT_KEY_RIGHT = 3,
	SOFT_KEY_RANGE = 4,
	SOFT_KEY_PAGE = 5, /* a page is missing, and could not be made present (assumption [A]) */
};

/* Returns the vendor syndrome of an error; defined in soft_cqe.c. */
uint8_t soft_vendor_of(const struct soft_engine *e, bool responder, uint8_t wqe_opcode,
		       uint8_t synd);

#endif
