/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "modes.h"

const struct engine *const engines[] = {
	&engine_write, &engine_read,          &engine_fetch_add, &engine_cmp_swap,
	&engine_send,  &engine_write_imm,     &engine_send_imm,  &engine_pingpong,
	&engine_mixed, &engine_bidirectional,
};
const unsigned int nengines = sizeof(engines) / sizeof(engines[0]);

const struct engine *
engine_find(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < nengines; i++)
		if (strlen(engines[i]->name) == len && memcmp(engines[i]->name, name, len) == 0)
			return engines[i];
	return NULL;
}
