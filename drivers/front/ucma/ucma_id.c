/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* IDs, and what ends with them: connections, events that no program has read, memberships. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

/* splitmix64, which has its full period for any seed. */
uint64_t
ucma_random(struct ucma *u)
{
	uint64_t z = u->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int
ucma_reply(struct ucma *u, uint64_t to, const void *from, size_t len)
{
	return u->attr.ops->copy_out(u->attr.ctx, to, from, len);
}

/* ---- IDs */

struct ucma_id *
ucma_id_new(struct ucma *u, uint16_t ps, uint8_t qp_type)
{
	struct ucma_id *id;

	if (u->nids == u->attr.max_ids)
		return NULL;
	id = calloc(1, sizeof(*id));
	if (id == NULL)
		return NULL;
	do
		u->last = u->last % u->attr.max_ids + 1;
	while (u->ids[u->last] != NULL);
	u->ids[u->last] = id;
	TAILQ_INSERT_TAIL(&u->live, id, link);
	u->nids++;
	id->u = u;
	id->number = u->last;
	id->ps = ps;
	id->qp_type = qp_type;
	id->qp.rq_psn = (uint32_t)ucma_random(u) & 0xffffff;
	return id;
}

struct ucma_id *
ucma_id_at(const struct ucma *u, uint64_t number)
{
	return number <= u->attr.max_ids ? u->ids[number] : NULL;
}

int
ucma_id_find(const struct ucma_file *f, uint32_t number, struct ucma_id **id)
{
	*id = ucma_id_at(f->u, number);
	/* The program does not know the ID of a request before it has read the event. */
	if (*id == NULL || (*id)->file == NULL)
		return -ENOENT;
	return (*id)->file == f ? 0 : -EINVAL;
}

void
ucma_cm_set(struct ucma_id *id, uint32_t cm)
{
	struct ucma *u = id->u;

	if (u->peers++ == 0)
		u->check_at = u->now + UCMA_CHECK_NS;
	id->cm = cm;
	id->has_cm = id->had_cm = true;
	id->opening = 0;
	(void)ucma_find_opening(id);
}

bool
ucma_find_opening(struct ucma_id *id)
{
	const struct ucma_attr *attr = &id->u->attr;
	uint64_t opening;
	int ret = 0;

	if (id->opening == 0)
		ret = attr->ops->reach(attr->ctx, id->sgid_index, id->dgid, id->qp.remote_qpn,
				       &opening);
	if (id->opening == 0 && ret == 0)
		id->opening = opening;
	return ret != -EHOSTUNREACH;
}

bool
ucma_is_ud(const struct ucma_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

/* ---- What ends with an ID: its connection, events and memberships */

void
ucma_cm_release(struct ucma_id *id, bool peer_gone)
{
	struct ucma *u = id->u;

	if (!id->has_cm)
		return;
	id->has_cm = false;
	u->peers--;
	/*
	 * Fails with -ENOENT if the event that the caller handles has already ended the connection.
	 */
	(void)(peer_gone ? bb_ibcm_abandon : bb_ibcm_release)(u->cm, id->cm, u->now);
}

void
ucma_events_report(struct ucma_file *f)
{
	f->u->attr.ops->readable(f->u->attr.ctx, f->arg, !TAILQ_EMPTY(&f->events));
}

/* Removes the events of an ID. Destroys the new IDs of those that are requests. */
static void
drop_events(struct ucma_id *id)
{
	struct ucma_file *f = id->file;
	struct ucma_event *ev, *next;

	if (f == NULL || TAILQ_EMPTY(&f->events))
		return;
	for (ev = TAILQ_FIRST(&f->events); ev != NULL; ev = next) {
		next = TAILQ_NEXT(ev, next);
		if (ev->id != id)
			continue;
		TAILQ_REMOVE(&f->events, ev, next);
		/* The new ID has no events, because the program has not read its number. */
		if (ev->made != NULL)
			(void)ucma_id_free(ev->made);
		free(ev);
	}
	if (TAILQ_EMPTY(&f->events))
		ucma_events_report(f);
}

void
ucma_events_drop_mc(struct ucma_mc *mc)
{
	struct ucma_file *f = mc->id->file;
	const bool was_empty = TAILQ_EMPTY(&f->events);
	struct ucma_event *ev, *next;

	for (ev = TAILQ_FIRST(&f->events); ev != NULL; ev = next) {
		next = TAILQ_NEXT(ev, next);
		if (ev->mc != mc)
			continue;
		TAILQ_REMOVE(&f->events, ev, next);
		free(ev);
	}
	if (!was_empty && TAILQ_EMPTY(&f->events))
		ucma_events_report(f);
}

void
ucma_mc_free(struct ucma_mc *mc)
{
	struct ucma *u = mc->id->u;

	LIST_REMOVE(mc, link);
	u->mcs[mc->number] = NULL;
	u->nmcs--;
	free(mc);
}

/* Ends the memberships of an ID whose events were removed. */
static void
free_mcs(struct ucma_id *id)
{
	while (!LIST_EMPTY(&id->mcs))
		ucma_mc_free(LIST_FIRST(&id->mcs));
}

uint32_t
ucma_id_free(struct ucma_id *id)
{
	const uint32_t reported = id->events_reported;
	struct ucma *u = id->u;

	if (id->state == UCMA_LISTEN)
		(void)bb_ibcm_unlisten(u->cm, &id->service);
	if (id->state == UCMA_ADDR_QUERY)
		u->queries--;
	ucma_cm_release(id, false);
	drop_events(id);
	free_mcs(id);
	if (id->port != NULL)
		u->attr.ops->port_give(u->attr.ctx, id->port);
	u->ids[id->number] = NULL;
	TAILQ_REMOVE(&u->live, id, link);
	u->nids--;
	free(id);
	return reported;
}
