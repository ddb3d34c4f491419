/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Finds, adds and destroys objects. An object is identified by its kind and number. */
#include <errno.h>
#include <stdlib.h>

#include "front_priv.h"

#define PAGE 4096u /* bytes of a page of context memory */

/*
 * Bytes of context memory of an object, by its kind; objects of other kinds need none. No public
 * source has these figures [A].
 */
static const uint16_t context_bytes[FRONT_KINDS] = {
	[FRONT_QP] = 1024, [FRONT_RMP] = 256, [FRONT_XRC_SRQ] = 256, [FRONT_SQ] = 512,
	[FRONT_RQ] = 512,  [FRONT_CQ] = 256,  [FRONT_MKEY] = 64,
};

static struct front_objs *
bucket(struct front *f, enum front_kind kind, uint32_t id)
{
	return &f->objs[(id * FRONT_KINDS + kind) % FRONT_BUCKETS];
}

struct front_obj *
front_obj_find(struct front *f, enum front_kind kind, uint32_t id)
{
	struct front_obj *o;

	LIST_FOREACH(o, bucket(f, kind, id), bucket)
		if (o->kind == kind && o->id == id)
			return o;
	return NULL;
}

struct front_obj *
front_obj_new(struct front *f, enum front_kind kind, struct front_user *user)
{
	struct front_obj *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->kind = kind;
	o->user = user;
	user->objs++;
	f->n_of_kind[kind]++;
	LIST_INSERT_HEAD(&f->kinds[kind], o, of_kind);
	return o;
}

void
front_obj_publish(struct front *f, struct front_obj *o, uint32_t id)
{
	o->id = id;
	LIST_INSERT_HEAD(bucket(f, o->kind, id), o, bucket);
}

void
front_obj_free(struct front *f, struct front_obj *o)
{
	if (o->bucket.le_prev != NULL)
		LIST_REMOVE(o, bucket);
	LIST_REMOVE(o, of_kind);
	o->user->objs--;
	f->n_of_kind[o->kind]--;
	free(o);
}

uint32_t
front_context_pages(const struct front *f)
{
	uint32_t kind, pages = 0;

	for (kind = 0; kind < FRONT_KINDS; kind++)
		pages += (f->n_of_kind[kind] * context_bytes[kind] + PAGE - 1) / PAGE;
	return pages;
}

bool
front_obj_hold_uar(struct front *f, struct front_obj *o, uint32_t number)
{
	o->page = front_obj_find(f, FRONT_UAR, number);
	if (o->page == NULL)
		return false;
	if (o->page->refs++ == 0)
		LIST_INSERT_HEAD(&f->used_uars, o->page, used);
	return true;
}

static void
release_uar(struct front *f, struct front_obj *uar)
{
	if (--uar->refs != 0)
		return;
	LIST_REMOVE(uar, used);
	if (uar->orphan)
		(void)front_obj_destroy(f, uar);
}

int
front_obj_free_uar(struct front *f, struct front_obj *uar)
{
	if (uar->refs == 0)
		return front_obj_destroy(f, uar);
	LIST_REMOVE(uar, bucket);
	uar->bucket.le_prev = NULL;
	uar->orphan = true;
	return 0;
}

int
front_obj_destroy(struct front *f, struct front_obj *o)
{
	struct mlx5_ctx *ctx = o->user->ctx;
	struct front_obj *page = o->page;
	int ret = 0;

	if (o->refs != 0)
		return -EBUSY;
	if (o->fini != NULL)
		o->fini(o);
	else if (o->obj != NULL)
		ret = f->cmd->obj_destroy(o->obj);
	else if (o->pd != NULL)
		ret = f->cmd->pd_free(ctx, o->pd);
	else if (o->uar != NULL)
		ret = f->cmd->uar_free(ctx, o->uar);
	if (ret != 0)
		return ret;
	front_obj_free(f, o);
	if (page != NULL)
		release_uar(f, page);
	return 0;
}
