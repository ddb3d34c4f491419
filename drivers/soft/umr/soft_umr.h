/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that the files of UMR share. */
#ifndef SOFT_UMR_H
#define SOFT_UMR_H

#include "soft_access.h"

#define UMR_SEG  16
#define MKEY_SEG 64
#define XLT      128

/*
 * ---- soft_umr.c: closes the gate of a key (the flag in struct soft_indirect that rejects new
 * accesses). Returns false and leaves the gate open if accesses other than the caller's @own
 * accesses use the key. The caller must not leave the gate closed while its WQE waits: when the WQE
 * is retried, it may use the key for its own buffers, or it may never be retried. Called under
 * umr_lock.
 */
bool soft_gate_close(struct soft_indirect *ind, uint32_t own);

/*
 * ---- soft_umr_load.c: executes a UMR of a kernel's queue for a key whose translations UMRs load.
 * @mask: fields of the key that the UMR selects. Called under umr_lock. Returns the same values as
 * soft_umr_kernel().
 */
uint8_t soft_umr_load(struct soft_qp *qp, struct soft_req *r, struct soft_mkey *m, uint64_t mask);

#endif
