/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Flow tables: groups of entries with the same mask; an entry has a value and destinations. */
#ifndef ETH_FLOW_H
#define ETH_FLOW_H

#include "eth.h"

#define ETH_MATCH_BYTES 64u /* outer headers of fte_match_param */

/* Actions of an entry (Linux mlx5_ifc.h: MLX5_FLOW_CONTEXT_ACTION_*). */
#define ETH_ACTION_ALLOW 0x1u
#define ETH_ACTION_DROP  0x2u
#define ETH_ACTION_FWD   0x4u

struct eth_group {
	LIST_ENTRY(eth_group) next;
	uint32_t id, start, end; /* indices of the entries */
	uint32_t entries;
	uint8_t mask[ETH_MATCH_BYTES];
};

struct eth_dest {
	uint32_t table;        /* number of a flow table, 0 if the destination is a TIR */
	struct front_obj *tir; /* NULL if the destination is a flow table */
};

struct eth_entry {
	LIST_ENTRY(eth_entry) next; /* in ascending order of the index */
	uint32_t index, tag, action, n_dests;
	struct eth_group *group;
	struct eth_dest dests[ETH_MAX_DESTS];
	uint8_t value[ETH_MATCH_BYTES]; /* bits outside the group's mask are 0 */
};

struct eth_table {
	struct front_eth *eth;
	uint32_t log_size;
	uint32_t miss; /* table for frames that match no entry; 0: they are dropped */
	uint32_t next_group;
	LIST_HEAD(, eth_group) groups;
	LIST_HEAD(, eth_entry) entries;
};

/* ---- eth_flow.c: fills the fields of a match, the outer headers of a frame. */
void eth_match_of(const uint8_t *frame, uint32_t len, uint8_t match[ETH_MATCH_BYTES]);

#endif
