/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Deliberate faults of a device: options defect and fault. */
#ifndef SOFT_DEFECT_H
#define SOFT_DEFECT_H

/* The options defect and fault in the help text's list of options. */
#ifdef SOFT_SEEDED
#define SOFT_DEFECT_KNOWN "defect=NAME|N, "
#else
#define SOFT_DEFECT_KNOWN
#endif

/*
 * Seeded defects: errors that a device makes on purpose, so that tests can show that a checker
 * detects them. These are the values of soft_opts_defect(). A device has at most one. In a build
 * without -Ddefects=true the value is always SOFT_DEFECT_NONE, so the compiler drops the code of
 * the defects. A defect applies once in every 16 opportunities (the seed selects which) and costs
 * one branch per WQE.
 */
enum soft_defect {
	SOFT_DEFECT_NONE,
	SOFT_DEFECT_FLIP_BIT,     /* one bit of a written payload is wrong */
	SOFT_DEFECT_MISPLACE,     /* payload of a write is stored 8 bytes after its address */
	SOFT_DEFECT_LOSE_WRITE,   /* a write completes without being executed */
	SOFT_DEFECT_SKIP_CQE,     /* a CQE is not written */
	SOFT_DEFECT_EARLY_CQE,    /* the CQE is written one poll before the payload */
	SOFT_DEFECT_WQE_COUNTER,  /* a CQE has the WQE counter of the next block */
	SOFT_DEFECT_OWNER_BIT,    /* the owner bit does not change with each pass over the ring */
	SOFT_DEFECT_NO_BOUNDS,    /* the address range of keys is not checked */
	SOFT_DEFECT_NO_PD,        /* the protection domain of keys is not checked */
	SOFT_DEFECT_NO_ACCESS,    /* the rights of keys are not checked */
	SOFT_DEFECT_ATOMIC_SPLIT, /* an atomic is a separate load and store */
	SOFT_DEFECT_ATOMIC_OLD,   /* an atomic returns the new value */
	SOFT_DEFECT_NO_FENCE,     /* the fence bit is ignored */
	SOFT_DEFECT_NO_DOORBELL,  /* WQEs start without a store to the doorbell register */
	SOFT_DEFECT_RNR_LOST,     /* a request that got an RNR NAK completes without a retry */
	SOFT_DEFECT_IMM_SWAP,     /* immediate data arrives in the other byte order */
	SOFT_DEFECT_RECV_LEN,     /* a receive's byte count is one too large */
	SOFT_DEFECT_READ_LEN,     /* a READ's byte count is 0 */
	SOFT_DEFECT_SGE_LOST,     /* the last SGE of a list is ignored */
	SOFT_DEFECT_TAIL_LOST,    /* a last packet with one byte of payload is ignored */
	SOFT_DEFECT_INLINE_PAD,   /* inline data includes its padding */
	SOFT_DEFECT_EMPTY_WRITE,  /* a WRITE without payload writes a byte */
	SOFT_DEFECT_TEAR,         /* a payload is written byte by byte */
	SOFT_DEFECT_READ_PD,      /* READs do not check the protection domain of the rkey */
	SOFT_DEFECT_QP_RIGHT,     /* the rights of the target's QP are not checked */
	SOFT_DEFECT_NO_SOLICITED, /* the solicited bit does not reach the CQE */
	SOFT_DEFECT_RETRY_FREE,   /* retries are not counted; applies at every opportunity */
	SOFT_DEFECT_QUIET_ERROR,  /* an unsignalled request that fails has no CQE */
	SOFT_DEFECT_FLUSH_LOST,   /* a flushed unsignalled request has no CQE */
	SOFT_DEFECT_OVERFILL,     /* a receive that is too small is filled and completes with
				   * success */
	SOFT_DEFECT_REPLAY_TWICE, /* a repeated atomic is executed again */
	SOFT_DEFECT_EVENT_LOST,   /* a rejected request raises no event */
	/* the expected PSN does not wrap at 2^24; applies at every opportunity */
	SOFT_DEFECT_PSN_WRAP,
	SOFT_DEFECTS,
};

/* Hardware faults that can be injected: soft_fault.c. */
enum soft_fault_kind {
	SOFT_FAULT_NONE,
	SOFT_FAULT_PORT_DOWN, /* the port goes down, and comes up after three lost requests */
	SOFT_FAULT_DEV_FATAL, /* the device dies */
	SOFT_FAULT_CQ_ERROR,  /* the request's CQ fails */
	SOFT_FAULT_QP_FATAL,  /* the request's QP fails */
	SOFT_FAULTS,
};

#endif
