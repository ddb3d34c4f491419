/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The programs of rdma-core and perftest that bb_perf can replace. */
#include <string.h>

#include "options.h"

#define RC (1u << BB_QPT_RC)
#define UC (1u << BB_QPT_UC)
#define UD (1u << BB_QPT_UD)

/* The sizes and counts are the defaults of these programs. */
static const struct protocol protocols[] = {
	{"rc_pingpong", "ibv_rc_pingpong", VERB_PINGPONG, false, RC, 4096, 1000},
	{"uc_pingpong", "ibv_uc_pingpong", VERB_PINGPONG, false, UC, 4096, 1000},
	{"ud_pingpong", "ibv_ud_pingpong", VERB_PINGPONG, false, UD, 1024, 1000},
	{"write_lat", "ib_write_lat", VERB_WRITE, false, RC | UC, 2, 1000},
	{"write_bw", "ib_write_bw", VERB_WRITE, true, RC | UC, 65536, 5000},
	{"read_lat", "ib_read_lat", VERB_READ, false, RC, 2, 1000},
	{"read_bw", "ib_read_bw", VERB_READ, true, RC, 65536, 1000},
	{"send_lat", "ib_send_lat", VERB_SEND, false, RC | UC | UD, 2, 1000},
	{"send_bw", "ib_send_bw", VERB_SEND, true, RC | UC | UD, 65536, 1000},
	{"atomic_lat", "ib_atomic_lat", VERB_ATOMIC, false, RC, 8, 1000},
	{"atomic_bw", "ib_atomic_bw", VERB_ATOMIC, true, RC, 8, 1000},
};
#define N_PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

const struct protocol *
protocol_find(const char *name)
{
	size_t i;

	for (i = 0; i < N_PROTOCOLS; i++)
		if (strcmp(protocols[i].name, name) == 0)
			return &protocols[i];
	return NULL;
}

void
protocol_list(FILE *out)
{
	size_t i;

	for (i = 0; i < N_PROTOCOLS; i++)
		fprintf(out, "                          %-12s %-16s %s%s%s\n", protocols[i].name,
			protocols[i].peer, protocols[i].types & RC ? "RC" : "",
			protocols[i].types & UC ? protocols[i].types & RC ? " UC" : "UC" : "",
			protocols[i].types & UD ? protocols[i].types & RC ? " UD" : "UD" : "");
}

enum bb_qp_type
protocol_first_type(const struct protocol *proto)
{
	return proto->types & RC ? BB_QPT_RC : proto->types & UC ? BB_QPT_UC : BB_QPT_UD;
}
