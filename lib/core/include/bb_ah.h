/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Address handles: destinations of the datagrams of UD queue pairs.
 *
 * The control-path rules of bb_dev.h apply.
 */
#ifndef BB_AH_H
#define BB_AH_H

#include "bb_mem.h"
#include "bb_path.h"
#include "bb_wqe.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An address handle; read-only for the application. Any number of QPs of the handle's PD may use
 * the handle.
 */
struct bb_ah {
	struct bb_wqe_av av; /**< address vector that a post copies into the WQE */
	struct bb_pd *pd;
};

/**
 * Creates an address handle for @p path (man ibv_create_ah). On RoCE the call may wait until the
 * destination's MAC is resolved, as bb_qp_connect() does. If the peer is down, the call waits up to
 * 4 s on a software device with port=, and about 1 s in the kernel. So create the handle on a
 * thread that can wait, not on one that polls for other peers.
 * @return 0. -EINVAL if the port, the GID index or another field is out of range. -ENOMEM if there
 * is no memory. -EHOSTUNREACH or another errno if the MAC cannot be resolved. -ENOTSUP if the
 * device has no UD queue pairs.
 */
int bb_ah_create(struct bb_pd *pd, const struct bb_path *path, struct bb_ah **ah);

/**
 * Destroys the handle. Call it when no further post uses the handle. Requests that were posted
 * before are still sent, because a post copies the address. man ibv_post_send requires a wait for
 * the completions of these requests first; with Bluebell this wait is not necessary.
 */
int bb_ah_destroy(struct bb_ah *ah);

#ifdef __cplusplus
}
#endif

#endif
