/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A frame as a process of the same host would put it into our ring: for fuzz_wire.c. */
#ifndef FUZZ_WIRE_SHM_H
#define FUZZ_WIRE_SHM_H

#include <stdlib.h>
#include <string.h>

#include "../fakes/roce_frame.h"
#include "soft_shm.h"

/*
 * The transport part of an IP packet, from @src to @dst, the short way of soft_shm_send.c. False:
 * it is not taken. @sgid: which of its addresses, of one, the peer says it has sent it from.
 */
static inline bool
take_shm(struct soft_engine *e, const uint8_t *ip, uint32_t len, const uint8_t src[16],
	 const uint8_t dst[16], uint8_t sgid)
{
	struct soft_shm_rx rx = {.n_gids = 1};
	struct soft_ring_rec rec = {.sport = 0xc123, .hop_limit = 64, .sgid = sgid};
	struct roce_frame f;
	uint8_t *p;
	bool taken;

	if (!roce_frame_split(&f, ip, len))
		return false;
	memcpy(rx.gids[0], src, 16);
	memcpy(rx.dst, dst, 16);
	rec.len = (uint32_t)f.bth_len;
	rec.tclass = ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	/* As large as it is, for AddressSanitizer; a NULL is none. */
	p = malloc(rec.len + (rec.len == 0));
	if (p == NULL)
		abort();
	memcpy(p, f.bth, rec.len);
	taken = soft_shm_send_in(e, &rx, &rec, p);
	free(p);
	return taken;
}

#endif
