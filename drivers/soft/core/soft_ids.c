/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>

#include "soft_ctl.h"

int
soft_ids_init(struct soft_ids *ids, uint32_t first, uint32_t size)
{
	ids->used = calloc((size + 63) / 64, sizeof(uint64_t));
	ids->first = first;
	ids->size = size;
	ids->next = first;
	return ids->used == NULL ? -ENOMEM : 0;
}

int
soft_ids_alloc(struct soft_ids *ids, uint32_t *id)
{
	uint32_t n, i = ids->next;

	for (n = ids->first; n < ids->size; n++) {
		if ((ids->used[i / 64] & UINT64_C(1) << i % 64) == 0) {
			ids->used[i / 64] |= UINT64_C(1) << i % 64;
			ids->next = i + 1 < ids->size ? i + 1 : ids->first;
			*id = i;
			return 0;
		}
		i = i + 1 < ids->size ? i + 1 : ids->first;
	}
	return -ENOSPC;
}

void
soft_ids_free(struct soft_ids *ids, uint32_t id)
{
	ids->used[id / 64] &= ~(UINT64_C(1) << id % 64);
}
