/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Puts a frame into our ring as another process of the host would: for fuzz_wire.c. */
#ifndef FUZZ_WIRE_SHM_H
#define FUZZ_WIRE_SHM_H

#include <stdlib.h>
#include <string.h>

#include "../../fakes/roce_frame.h"
#include "soft_shm.h"

/*
 * Puts the transport part of an IP packet from @src to @dst into a ring. Returns false if there
 * is none. @sgid: index of the peer's address, of which it has one, that it claims to send from.
 * @ack_len: length of the packet's last bytes that the record declares as a second packet.
 * @pass: the packet is rebuilt as bytes, as for a capture, faults and other engines.
 */
static inline bool
take_shm(struct soft_engine *e, const uint8_t *ip, uint32_t len, const uint8_t src[16],
	 const uint8_t dst[16], uint8_t sgid, uint8_t ack_len, bool pass)
{
	struct soft_shm_rx rx = {.n_gids = 1};
	struct soft_ring_rec rec = {
		.sport = 0xc123, .hop_limit = 64, .sgid = sgid, .ack_len = ack_len};
	struct soft_wire *w;
	struct roce_frame f;
	uint8_t *p;

	if (!roce_frame_split(&f, ip, len))
		return false;
	memcpy(rx.gids[0], src, 16);
	memcpy(rx.dst, dst, 16);
	rec.len = (uint32_t)f.bth_len;
	rec.tclass = ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	/* Allocated with the exact size, for AddressSanitizer; at least one byte. */
	p = malloc(rec.len + (rec.len == 0));
	fuzz_check(p != NULL);
	memcpy(p, f.bth, rec.len);
	/* A fault that is never applied: only packets that a switch could mark can be marked. */
	e->dev->opts.rx_fault.ecn = pass;
	w = soft_shm_input(e, &rx, &rec, p);
	if (w != NULL)
		soft_wire_received(e, w, true);
	e->dev->opts.rx_fault.ecn = 0;
	free(p);
	return true;
}

#endif
