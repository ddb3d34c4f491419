/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Converts a QP's address to bytes and back. The functions have no side effects. */
#include <errno.h>
#include <string.h>

#include "bb_qp.h"

/*
 * Layout of a packed address, with the bytes of each field: version (1), QP number (3), reserved
 * (1), PSN (3), GID (16), LID (2), MTU (2 bytes); big endian.
 */
#define VERSION 1u
#define GID     8u
#define LID     24u
#define MTU     26u

/*
 * QP numbers 0 and 1 are management QPs, 0xffffff names a multicast group (IBTA vol. 1, 10.2.4,
 * 11.4.3).
 */
#define FIRST_QPN 2u
#define LAST_QPN  0xfffffeu

static bool
valid(const struct bb_qp_addr *a)
{
	static const uint8_t none[16];

	return a->qpn >= FIRST_QPN && a->qpn <= LAST_QPN && a->psn <= 0xffffff && a->mtu >= 256 &&
	       a->mtu <= 4096 && (a->mtu & (a->mtu - 1)) == 0 &&
	       (a->lid != 0 || memcmp(a->gid, none, sizeof(none)) != 0);
}

int
bb_qp_addr_pack(const struct bb_qp_addr *addr, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint32_t word;
	uint16_t half;

	if (addr == NULL || buf == NULL || !valid(addr))
		return -EINVAL;
	if (len < BB_QP_ADDR_PACKED)
		return -ENOSPC;
	word = bb_be32(VERSION << 24 | addr->qpn);
	memcpy(p, &word, sizeof(word));
	word = bb_be32(addr->psn);
	memcpy(p + 4, &word, sizeof(word));
	memcpy(p + GID, addr->gid, sizeof(addr->gid));
	half = bb_be16(addr->lid);
	memcpy(p + LID, &half, sizeof(half));
	half = bb_be16(addr->mtu);
	memcpy(p + MTU, &half, sizeof(half));
	return BB_QP_ADDR_PACKED;
}

int
bb_qp_addr_unpack(const void *buf, size_t len, struct bb_qp_addr *addr)
{
	struct bb_qp_addr a = {0};
	const uint8_t *p = buf;
	uint32_t word;

	if (buf == NULL || addr == NULL || len < 1)
		return -EINVAL;
	if (p[0] != VERSION)
		return -ENOTSUP;
	if (len != BB_QP_ADDR_PACKED)
		return -EINVAL;
	memcpy(&word, p, sizeof(word));
	a.qpn = bb_be32(word) & 0xffffff;
	memcpy(&word, p + 4, sizeof(word));
	a.psn = bb_be32(word); /* includes the reserved byte before the PSN: if that byte is not 0,
				* the PSN is out of range and rejected */
	memcpy(a.gid, p + GID, sizeof(a.gid));
	memcpy(&a.lid, p + LID, sizeof(a.lid));
	memcpy(&a.mtu, p + MTU, sizeof(a.mtu));
	a.lid = bb_be16(a.lid);
	a.mtu = bb_be16(a.mtu);
	if (!valid(&a))
		return -EINVAL;
	*addr = a;
	return 0;
}
