/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies a packet and its payload as bb_roce_ops.keep() does. The caller releases it by free().
 */
#ifndef ROCE_KEEP_H
#define ROCE_KEEP_H

#include <stdlib.h>
#include <string.h>

#include "bb_roce_pkt.h"

static inline struct bb_roce_pkt *
roce_keep(const struct bb_roce_pkt *pkt)
{
	struct bb_roce_pkt *copy = malloc(sizeof(*copy) + pkt->len);

	if (copy == NULL)
		abort();
	*copy = *pkt;
	copy->payload = (const uint8_t *)(copy + 1);
	if (pkt->len != 0)
		memcpy(copy + 1, pkt->payload, pkt->len);
	return copy;
}

#endif
