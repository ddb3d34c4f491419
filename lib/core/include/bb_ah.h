/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Address handles: where datagrams of UD queue pairs go.
 *
 * Control-path rules are those of bb_dev.h.
 */
#ifndef BB_AH_H
#define BB_AH_H

#include "bb_mem.h"
#include "bb_path.h"
#include "bb_wqe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An address handle; read-only for the application. Any number of QPs of its PD use it. */
struct bb_ah {
	struct bb_wqe_av av; /**< what a post copies into the WQE */
	struct bb_pd *pd;
};

/**
 * Create an address handle for the way that @p path describes (man ibv_create_ah).
 * On RoCE it may wait for the destination to tell its MAC, as bb_qp_connect(): up to 3 s on the
 * software device, about 1 s in the kernel. Create handles of peers that may be gone on a thread
 * that serves no others.
 * @return 0; -EINVAL the port, the GID index or another field is out of range;
 *   -ENOMEM; what resolving the MAC gave, as -EHOSTUNREACH; -ENOTSUP no such thing on
 *   the device.
 */
int bb_ah_create(struct bb_pd *pd, const struct bb_path *path, struct bb_ah **ah);

/**
 * Destroy it. A post copies the address, so this may be done as soon as no post uses
 * the handle any more: requests posted before go out all the same (man ibv_post_send
 * asks to wait for their completions; here there is no need to).
 */
int bb_ah_destroy(struct bb_ah *ah);

#ifdef __cplusplus
}
#endif

#endif
