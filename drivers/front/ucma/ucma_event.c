/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Events that the program reads with GET_EVENT. Each file has a queue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucma_priv.h"

static struct ucma_event *
add(struct ucma_file *f, struct ucma_id *id, struct ucma_id *made, enum ucma_event_type type,
    int status)
{
	struct ucma_event *ev = calloc(1, sizeof(*ev));
	const bool first = TAILQ_EMPTY(&f->events);

	if (ev == NULL)
		return NULL;
	ev->id = id;
	ev->made = made;
	ev->resp.uid = id->uid;
	ev->resp.id = made != NULL ? made->number : id->number;
	ev->resp.event = type;
	ev->resp.status = (uint32_t)status;
	TAILQ_INSERT_TAIL(&f->events, ev, next);
	if (first)
		ucma_events_report(f);
	return ev;
}

/*
 * Queues no event for the ID of a connection request before the program has accepted it and set its
 * uid, as in Linux (ucma_event_handler()). If the connection ends earlier, the accept fails.
 */
struct ucma_event *
ucma_event_add(struct ucma_id *id, enum ucma_event_type type, int status)
{
	return id->uid == 0 || id->file == NULL ? NULL : add(id->file, id, NULL, type, status);
}

struct ucma_event *
ucma_event_request(struct ucma_id *listener, struct ucma_id *made)
{
	return add(listener->file, listener, made, UCMA_EV_CONNECT_REQUEST, 0);
}

void
ucma_events_move(struct ucma_id *id, struct ucma_file *to)
{
	struct ucma_file *f = id->file;
	const bool was_empty = TAILQ_EMPTY(&f->events), first = TAILQ_EMPTY(&to->events);
	struct ucma_event *ev, *next;

	for (ev = TAILQ_FIRST(&f->events); ev != NULL; ev = next) {
		next = TAILQ_NEXT(ev, next);
		if (ev->id != id)
			continue;
		TAILQ_REMOVE(&f->events, ev, next);
		TAILQ_INSERT_TAIL(&to->events, ev, next);
	}
	if (!was_empty && TAILQ_EMPTY(&f->events))
		ucma_events_report(f);
	if (first && !TAILQ_EMPTY(&to->events))
		ucma_events_report(to);
}

void
ucma_ah_attr(const struct ucma_id *id, struct ib_uverbs_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.sgid_index = (uint8_t)id->sgid_index;
	ah->grh.hop_limit = UCMA_HOPS;
	ah->grh.traffic_class = id->tos;
	memcpy(ah->grh.dgid, id->dgid, sizeof(ah->grh.dgid));
}

int
ucma_get_event(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct ucma_event *ev = TAILQ_FIRST(&f->events);
	int ret;

	if (ev == NULL)
		return -EAGAIN;
	ret = ucma_reply(f->u, c->get_event.response, &ev->resp,
			 out < sizeof(ev->resp) ? out : sizeof(ev->resp));
	if (ret != 0)
		return ret;
	TAILQ_REMOVE(&f->events, ev, next);
	ev->id->events_reported++;
	if (ev->mc != NULL)
		ev->mc->events_reported++;
	if (ev->made != NULL) {
		ev->made->file = f;
		ev->id->backlog++;
	}
	free(ev);
	if (TAILQ_EMPTY(&f->events))
		ucma_events_report(f);
	return 0;
}
