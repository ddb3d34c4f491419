/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Text reports of errors on a queue pair.
 */
#ifndef BB_ERROR_H
#define BB_ERROR_H

#include "bb_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Size in bytes of a buffer that is large enough for any text of bb_qp_error_text(). */
#define BB_ERROR_TEXT_MAX 4096

/**
 * Describes the first error completion since the QP's last reset that is not a flush error. The
 * text has the completion's status, syndromes and likely cause, and the WQE as it was at the time
 * of the completion. For each key of the WQE the text says what the key's registration allows now,
 * and which limit the WQE violates. The library knows a peer's key only if the key is registered on
 * the same device. Each line ends with a newline.
 *
 * Control path. Any thread may call this function, also while the owner posts and polls. Source:
 * the CQE's syndromes (PRM, error CQE), man ibv_poll_cq.
 * @param buf receives at most @p size bytes, including the final zero; may be NULL with @p size 0
 * @return the length of the whole text, as snprintf(); -ENOENT if there was no such error; -EINVAL
 * if a parameter is invalid.
 */
int bb_qp_error_text(struct bb_qp *qp, char *buf, size_t size);

/**
 * Describes the oldest posted request without a completion, and what its keys allow, as
 * bb_qp_error_text() does. Read this text first if completions do not arrive. An unsignalled
 * request completes only with a later signalled request. So it is normal that the text describes
 * such a request if no signalled request follows.
 *
 * Control path. Only the QP's owner may call this function, because it reads memory that posts and
 * polls write.
 * @param buf receives at most @p size bytes, including the final zero; may be NULL with @p size 0
 * @return the length of the whole text, as snprintf(); -ENOENT if all requests are complete;
 * -EINVAL if a parameter is invalid; -ENOMEM.
 */
int bb_qp_pending_text(struct bb_qp *qp, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
