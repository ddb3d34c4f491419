/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Paths to a peer, as connected queue pairs and address handles use them.
 */
#ifndef BB_PATH_H
#define BB_PATH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Path to a peer (man ibv_create_ah: struct ibv_ah_attr). RoCE needs the GID. InfiniBand needs the
 * LID, and the GID if is_global is set. A required GID must be non-zero.
 */
struct bb_path {
	uint8_t dgid[16];
	uint8_t sgid_index;
	uint8_t hop_limit;     /**< 0 means 64 */
	uint8_t traffic_class; /**< upper 6 bits: DSCP; lower 2 bits: ECN, where 1 or 2 lets
				* switches mark packets */
	uint8_t sl;            /**< service level; on RoCE the Ethernet priority */
	uint32_t flow_label;   /**< flow label, 20 bits; on RoCE it selects the UDP source port, and
				* 0 means any port */
	uint16_t dlid;         /**< LID of the peer; InfiniBand only */
	uint8_t is_global;     /**< InfiniBand only: nonzero if packets have a GRH; see
				* bb_port_attr.grh_required */
	uint8_t port;          /**< local port; the first port is 1 */
	uint8_t src_path_bits; /**< InfiniBand only: low bits of the local LID, at most 127 */
	uint8_t static_rate;   /**< highest packet rate, a value of enum ibv_rate; a rate that the
				* device lacks becomes the next lower one. 0: the port's rate */
	uint8_t pad[2];
};

#ifdef __cplusplus
}
#endif

#endif
