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
 * Route to a peer (man ibv_create_ah: struct ibv_ah_attr). RoCE: gid; InfiniBand: lid,
 * and gid when is_global. A GID that is needed and zero is refused: it is nobody's.
 */
struct bb_path {
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint8_t hop_limit;     /**< 0: 64 */
	uint8_t traffic_class; /**< upper 6 bits: DSCP; lower 2: ECN, 2 or 1: may be marked */
	uint8_t sl;            /**< service level; RoCE: priority */
	uint32_t flow_label;   /**< 20 bits; RoCE: picks the UDP source port, 0: any */
	uint16_t dlid;         /**< InfiniBand */
	uint8_t is_global;     /**< InfiniBand: send a GRH; see bb_port_attr.grh_required */
	uint8_t port;          /**< local port, from 1 */
	uint8_t src_path_bits; /**< InfiniBand: low bits of the own LID, at most 127 */
	uint8_t static_rate;   /**< value of enum ibv_rate, or the next lower one; 0: the port's */
	uint8_t pad[2];
};

#ifdef __cplusplus
}
#endif

#endif
