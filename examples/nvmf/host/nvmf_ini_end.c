/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The end of requests: when a connection is lost, and when the caller takes them. */
#include <errno.h>

#include "nvmf_ini_list.h"

uint32_t
nvmf_ini_take(struct nvmf_ini *e, struct bb_nvmf_done *done, uint32_t max)
{
	uint32_t n = 0;
	uint16_t i;

	while (n < max && !empty(e, &e->done)) {
		i = pop(e, &e->done);
		done[n++] = (struct bb_nvmf_done){e->slot[i].req.user, e->slot[i].error};
		push(e, &e->free, i, INI_FREE);
		e->used--;
	}
	return n;
}

void
nvmf_ini_io_lost(struct nvmf_ini *e, bool again)
{
	uint16_t i;

	for (i = 0; i < e->depth && e->sent != 0; i++) {
		struct nvmf_ini_slot *s = &e->slot[i];

		if (s->state != INI_SENT && s->state != INI_REVOKING)
			continue;
		e->sent--;
		/* The target has replied to a request whose key is being invalidated. */
		if (s->state == INI_REVOKING)
			finish(e, i, s->error);
		else if (again && (s->req.flags & BB_NVMF_NO_RETRY) == 0)
			push(e, &e->queued, i, INI_QUEUED);
		else
			finish(e, i, -ECONNRESET);
	}
}

void
nvmf_ini_io_end(struct nvmf_ini *e)
{
	while (!empty(e, &e->queued))
		finish(e, pop(e, &e->queued), -ECONNRESET);
}
