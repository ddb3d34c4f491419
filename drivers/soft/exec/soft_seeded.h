/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Effects of seeded defects (soft_defect.h) on a request, implemented in soft_defect.c. A build
 * without -Ddefects=true has empty functions instead.
 */
#ifndef SOFT_SEEDED_H
#define SOFT_SEEDED_H

#include "soft_data.h"

#ifdef SOFT_SEEDED
/*
 * Applies the seeded defects that change a decoded request. Call it before the request is executed.
 */
void soft_defect_request(struct soft_engine *e, const struct soft_qp *qp, struct soft_req *r);
/*
 * Writes the payload of a WRITE with a seeded defect to @dst (NULL if there is no payload). Returns
 * false if no defect applies to this request; the caller then writes the payload correctly.
 */
bool soft_defect_write(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		       uint8_t *dst);
/* Applies the seeded defects that change the fields of a receive's CQE. */
void soft_defect_recv(struct soft_engine *e, uint8_t opcode, bool *solicited, uint32_t *imm,
		      uint32_t *len);
/*
 * Applies the defect "overfill": drops the @left bytes for which a receive has no room. Returns
 * false if the device does not have this defect, or if it does not apply to the request.
 */
bool soft_defect_overfill(struct soft_engine *e, struct soft_req *r, uint64_t left);
#else
static inline void
soft_defect_request(struct soft_engine *e, const struct soft_qp *qp, struct soft_req *r)
{
	(void)e;
	(void)qp;
	(void)r;
}

static inline bool
soft_defect_write(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		  uint8_t *dst)
{
	(void)e;
	(void)p;
	(void)r;
	(void)dst;
	return false;
}

static inline void
soft_defect_recv(struct soft_engine *e, uint8_t opcode, bool *solicited, uint32_t *imm,
		 uint32_t *len)
{
	(void)e;
	(void)opcode;
	(void)solicited;
	(void)imm;
	(void)len;
}

static inline bool
soft_defect_overfill(struct soft_engine *e, struct soft_req *r, uint64_t left)
{
	(void)e;
	(void)r;
	(void)left;
	return false;
}
#endif

#endif
