/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Lists of slots. */
#ifndef NVMF_INI_LIST_H
#define NVMF_INI_LIST_H

#include "nvmf_ini.h"

static inline bool
empty(const struct nvmf_ini *e, const struct nvmf_ini_list *l)
{
	return l->first == e->depth;
}

static inline uint16_t
pop(struct nvmf_ini *e, struct nvmf_ini_list *l)
{
	uint16_t i = l->first;

	l->first = e->slot[i].next;
	return i;
}

static inline void
push(struct nvmf_ini *e, struct nvmf_ini_list *l, uint16_t i, enum nvmf_ini_request_state state)
{
	e->slot[i].state = (uint8_t)state;
	e->slot[i].next = (uint16_t)e->depth;
	if (empty(e, l))
		l->first = i;
	else
		e->slot[l->last].next = i;
	l->last = i;
}

static inline void
finish(struct nvmf_ini *e, uint16_t i, int error)
{
	e->slot[i].error = error;
	push(e, &e->done, i, INI_DONE);
}

#endif
