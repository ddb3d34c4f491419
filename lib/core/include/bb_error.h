/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * What went wrong on a queue pair, for people.
 */
#ifndef BB_ERROR_H
#define BB_ERROR_H

#include "bb_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Enough for every text of bb_qp_error_text(). */
#define BB_ERROR_TEXT_MAX 4096

/**
 * The first completion since the QP's last reset that failed by itself, not flushed behind
 * another: its status, syndromes and likely cause, the WQE as it was then, and for every
 * key that it names what the key allows now, of the device's registrations, and what of it
 * does not go with the WQE. A key of the peer's is known only if the device has it, too. In
 * lines that end with a newline.
 *
 * Control path, any thread, also while the owner posts and polls. Source: the CQE's syndromes
 * (PRM, error CQE), man ibv_poll_cq.
 * @param buf gets at most @p size bytes, its zero included; may be NULL with @p size 0
 * @return the length of the whole text, as snprintf(); -ENOENT nothing failed; -EINVAL.
 */
int bb_qp_error_text(struct bb_qp *qp, char *buf, size_t size);

/**
 * The oldest request that was posted and of which no completion tells yet, with what its keys
 * allow, as bb_qp_error_text() has it: what to look at where nothing comes back. Without a
 * signalled request behind it there is nothing wrong with that.
 *
 * Control path, only the QP's owner: it reads what posts and polls write.
 * @param buf gets at most @p size bytes, its zero included; may be NULL with @p size 0
 * @return the length of the whole text, as snprintf(); -ENOENT all are complete; -EINVAL; -ENOMEM.
 */
int bb_qp_pending_text(struct bb_qp *qp, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
