/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Routes to a peer, of connected queue pairs and of address handles.
 */
#ifndef BB_PATH_H
#define BB_PATH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Route to a peer (man ibv_create_ah: struct ibv_ah_attr). RoCE needs the GID. InfiniBand needs the
 * LID, and the GID if is_global is set. A required GID must be non-zero.
 */
struct bb_path {
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint8_t hop_limit;     /**< 0 means 64 */
	uint8_t traffic_class; /**< upper 6 bits: DSCP; lower 2 bits: ECN, where 1 or 2 lets
				* switches mark packets */
	uint8_t sl;            /**< service level; RoCE: priority */
	uint32_t flow_label;   /**< 20 bits; RoCE: selects the UDP source port, 0: any */
	uint16_t dlid;         /**< the peer's LID; InfiniBand */
	uint8_t is_global;     /**< InfiniBand: send a GRH; see bb_port_attr.grh_required */
	uint8_t port;          /**< local port, from 1 */
	uint8_t src_path_bits; /**< InfiniBand: low bits of the local LID, at most 127 */
	uint8_t static_rate;   /**< value of enum ibv_rate, or the next lower one; 0: the port's
				* rate */
	uint8_t pad[2];
};

#ifdef __cplusplus
}
#endif

#endif
