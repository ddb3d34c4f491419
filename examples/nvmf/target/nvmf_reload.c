/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Changes of the configuration. First subsystems and namespaces are checked, then new files are
 * opened, sizes of files are checked, and files that grow are extended. None of that affects hosts.
 * If it succeeds, the change is committed, which cannot fail.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nvmf_program.h"

#define SMALLER "a namespace cannot become smaller while the target runs"

/* ---- Check of the new configuration */

static struct entry *
find(struct storage *s, const char *nqn)
{
	uint32_t i;

	for (i = 0; i < MAX_SUBSYSTEMS; i++)
		if (s->entry[i].state != SLOT_FREE && strcmp(s->entry[i].nqn, nqn) == 0)
			return &s->entry[i];
	return NULL;
}

static struct entry *
unused(struct storage *s)
{
	uint32_t i;

	for (i = 0; i < MAX_SUBSYSTEMS; i++)
		if (s->entry[i].state == SLOT_FREE)
			return &s->entry[i];
	return NULL;
}

/* Prints that the namespace or subsystem at @line cannot change that way. Returns -EINVAL. */
static int
refuse(struct config *c, uint32_t line, const char *nqn, uint32_t nsid, const char *why)
{
	char name[NVMF_NQN_MAX + 32];

	c->line = line;
	if (nsid != 0)
		snprintf(name, sizeof(name), "%s, nsid %u", nqn, nsid);
	else
		snprintf(name, sizeof(name), "%s", nqn);
	(void)config_wrong(c, nsid != 0 ? "namespace" : "subsystem", name, "%s", why);
	c->line = 0;
	return -EINVAL;
}

/*
 * Checks the size of a namespace that exists. check_files() then checks files by their real sizes.
 */
static int
check_size(struct config *c, const struct entry *e, struct slot *slot, const struct space *space)
{
	const uint64_t blocks = space->size >> slot->ns[0].shift; /* 0: as large as the file */

	slot->new_blocks = blocks != 0 ? blocks : slot->ns[0].blocks;
	if (slot->new_blocks < slot->ns[0].blocks)
		return refuse(c, space->line, e->nqn, space->nsid, SMALLER);
	if (space->kind == SPACE_MEMORY && slot->new_blocks != slot->ns[0].blocks)
		return refuse(c, space->line, e->nqn, space->nsid,
			      "the size of malloc cannot change while the target runs");
	return 0;
}

static int
check_space(struct config *c, struct entry *e, const struct space *space)
{
	struct slot *slot = &e->slot[space->nsid - 1];
	const struct space *old = &slot->space;

	if (slot->state == SLOT_FREE)
		return 0;
	if (slot->state == SLOT_REMOVED)
		return refuse(c, space->line, e->nqn, space->nsid,
			      "commands still use the removed namespace of this number; try again");
	if (old->kind != space->kind || old->read_only != space->read_only ||
	    old->buffered != space->buffered ||
	    (old->path != NULL && strcmp(old->path, space->path) != 0))
		return refuse(
			c, space->line, e->nqn, space->nsid,
			"other storage needs another number (nsid=N), or hosts would take it for "
			"the same; only the size can change");
	return check_size(c, e, slot, space);
}

/* Checks all subsystems of the new configuration, and sets entry.wanted for those that exist. */
static int
check(struct storage *s, struct config *c)
{
	uint32_t i, j, want = 0, have = 0;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		s->entry[i].wanted = NULL;
		have += s->entry[i].state == SLOT_FREE;
	}
	for (i = 0; i < c->subsystems; i++) {
		const struct subsystem *from = &c->subsystem[i];
		struct entry *e = find(s, from->nqn);

		if (e == NULL) {
			want++;
			continue;
		}
		if (e->state == SLOT_REMOVED)
			return refuse(c, from->line, e->nqn, 0,
				      "hosts still use the removed subsystem; try again");
		if (strcmp(e->serial, from->serial) != 0)
			return refuse(c, from->line, e->nqn, 0,
				      "the serial number cannot change while the target runs");
		e->wanted = from;
		for (j = 0; j < from->spaces; j++)
			if (check_space(c, e, &from->space[j]) != 0)
				return -EINVAL;
	}
	if (want <= have)
		return 0;
	say("at most %u subsystems can exist, and hosts still use removed ones; try again",
	    MAX_SUBSYSTEMS);
	return -EBUSY;
}

/* ---- Preparation: opens and extends files */

static void
undo(struct storage *s)
{
	uint32_t i, j;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		struct entry *e = &s->entry[i];

		for (j = 0; j < MAX_NAMESPACES; j++)
			if (e->slot[j].state == SLOT_OPENED)
				slot_close(s, &e->slot[j]);
		if (e->state == SLOT_OPENED)
			e->state = SLOT_FREE;
	}
}

/* Opens the namespaces that are new. On an error the caller calls undo(). */
static int
prepare(struct storage *s, const struct config *c, uint32_t wait_s)
{
	uint32_t i, j;
	int rc;

	for (i = 0; i < c->subsystems; i++) {
		const struct subsystem *from = &c->subsystem[i];
		struct entry *e = find(s, from->nqn);

		if (e == NULL) {
			e = unused(s); /* not NULL: check() has counted the free entries */
			e->state = SLOT_OPENED;
			e->wanted = from;
			snprintf(e->nqn, sizeof(e->nqn), "%s", from->nqn);
			snprintf(e->serial, sizeof(e->serial), "%s", from->serial);
		}
		for (j = 0; j < from->spaces; j++) {
			struct slot *slot = &e->slot[from->space[j].nsid - 1];

			if (slot->state != SLOT_FREE)
				continue;
			rc = slot_open(s, slot, &from->space[j], wait_s);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

/* A namespace that exists and has a file. */
struct sized {
	struct entry *e;
	struct slot *slot;
	const struct space *space;
	struct backing_attr attr;
};

/* Finds namespace @j of subsystem @i. Returns false if it is new, or has no file. */
static bool
find_sized(struct storage *s, const struct config *c, uint32_t i, uint32_t j, struct sized *to)
{
	to->e = find(s, c->subsystem[i].nqn);
	to->space = &c->subsystem[i].space[j];
	to->slot = &to->e->slot[to->space->nsid - 1];
	to->attr = (struct backing_attr){.path = to->space->path,
					 .size = to->space->size,
					 .block = c->block,
					 .read_only = to->space->read_only};
	return to->slot->state == SLOT_ACTIVE && to->space->kind == SPACE_FILE;
}

/* Finds the sizes of files, which may have grown, and checks that no namespace becomes smaller. */
static int
check_files(struct storage *s, struct config *c)
{
	struct sized f;
	uint32_t i, j;

	for (i = 0; i < c->subsystems; i++) {
		for (j = 0; j < c->subsystem[i].spaces; j++) {
			if (!find_sized(s, c, i, j, &f))
				continue;
			if (backing_size(&f.slot->file[0].b, &f.attr, &f.slot->old_size) != 0)
				return -EINVAL;
			f.slot->new_blocks = (f.attr.size != 0 ? f.attr.size : f.slot->old_size) >>
					     f.slot->ns[0].shift;
			if (f.slot->new_blocks < f.slot->ns[0].blocks)
				return refuse(c, f.space->line, f.e->nqn, f.space->nsid, SMALLER);
		}
	}
	return 0;
}

/* Gives all files that extend_files() has extended their old sizes. */
static void
shrink_files(struct storage *s, const struct config *c)
{
	struct sized f;
	uint32_t i, j;

	for (i = 0; i < c->subsystems; i++)
		for (j = 0; j < c->subsystem[i].spaces; j++)
			if (find_sized(s, c, i, j, &f) && f.attr.size > f.slot->old_size)
				backing_shrink(&f.slot->file[0].b, &f.attr, f.slot->old_size);
}

static int
extend_files(struct storage *s, const struct config *c)
{
	struct sized f;
	uint32_t i, j;

	for (i = 0; i < c->subsystems; i++) {
		for (j = 0; j < c->subsystem[i].spaces; j++) {
			if (!find_sized(s, c, i, j, &f) ||
			    backing_resize(&f.slot->file[0].b, &f.attr) == 0)
				continue;
			shrink_files(s, c);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- Commit of the change */

static bool
wants(const struct subsystem *w, uint32_t nsid)
{
	uint32_t i;

	for (i = 0; w != NULL && i < w->spaces; i++)
		if (w->space[i].nsid == nsid)
			return true;
	return false;
}

static void
commit_slot(struct storage *s, struct entry *e, uint32_t nsid)
{
	struct slot *slot = &e->slot[nsid - 1];

	if (slot->state == SLOT_OPENED) {
		slot->state = SLOT_ACTIVE;
		/* The values were checked: the number is free, and the size is valid. */
		(void)nvmf_ns_add(e->s, nsid, &slot->ns[0]);
		if (slot->space.kind == SPACE_FILE)
			s->polled[0][s->npolled[0]++] = slot;
	} else if (slot->state == SLOT_ACTIVE && !wants(e->wanted, nsid)) {
		slot->state = SLOT_REMOVED;
		s->removed++;
		nvmf_ns_remove(s->t, e->s, &slot->ns[0]);
		return;
	} else if (slot->state == SLOT_ACTIVE && slot->new_blocks != slot->ns[0].blocks) {
		slot->ns[0].blocks = slot->new_blocks;
	} else {
		return;
	}
	nvmf_ns_changed(s->t, e->s, nsid);
}

/* Copies the names of the hosts, because the strings of the configuration are freed. */
static bool
commit_hosts(struct entry *e)
{
	const struct subsystem *w = e->wanted;
	bool changed = e->s->nhosts != w->hosts;
	uint32_t i;

	for (i = 0; i < w->hosts; i++) {
		changed |= strcmp(e->host[i], w->host[i]) != 0;
		snprintf(e->host[i], sizeof(e->host[i]), "%s", w->host[i]);
		e->hosts[i] = e->host[i];
	}
	e->s->hosts = e->hosts;
	e->s->nhosts = w->hosts;
	e->s->any_host = w->hosts == 0;
	return changed;
}

static void
commit_entry(struct storage *s, struct entry *e)
{
	const enum slot_state old = e->state;
	uint32_t i;

	if (e->wanted == NULL) {
		e->state = SLOT_REMOVED;
		s->removed++;
		e->s->inactive = true;
	} else if (old == SLOT_OPENED) {
		e->state = SLOT_ACTIVE;
		*e->s = (struct nvmf_subsys){.nqn = e->nqn,
					     .serial = e->serial,
					     .ns = e->active[0],
					     .max_ns = MAX_NAMESPACES};
	}
	for (i = 1; i <= MAX_NAMESPACES; i++)
		commit_slot(s, e, i);
	if (e->wanted == NULL || commit_hosts(e) || old == SLOT_OPENED)
		nvmf_access_changed(s->t, e->s);
	e->wanted = NULL;
}

int
storage_apply(struct storage *s, const struct config *from, uint32_t wait_s)
{
	struct config c = *from; /* refuse() changes c.line */
	uint32_t i;
	int rc;

	rc = check(s, &c);
	if (rc == 0)
		rc = prepare(s, from, wait_s);
	if (rc == 0)
		rc = check_files(s, &c);
	if (rc == 0)
		rc = extend_files(s, &c);
	if (rc != 0) {
		undo(s);
		return rc;
	}
	for (i = 0; i < MAX_SUBSYSTEMS; i++)
		if (s->entry[i].state == SLOT_OPENED || s->entry[i].state == SLOT_ACTIVE)
			commit_entry(s, &s->entry[i]);
	storage_sync(s);
	return 0;
}

/* ---- Reload of the configuration file */

/* Returns the name of a setting that differs and that only a restart can change; NULL: none. */
static const char *
fixed_setting(const struct config *a, const struct config *b)
{
	uint32_t i;

	if (strcmp(a->device, b->device) != 0)
		return "device";
	if (a->listeners != b->listeners)
		return "listen";
	for (i = 0; i < a->listeners; i++)
		if (strcmp(a->listen[i], b->listen[i]) != 0)
			return "listen";
	return a->block != b->block             ? "block"
	       : a->depth != b->depth           ? "depth"
	       : a->max_io != b->max_io         ? "max-io"
	       : a->in_capsule != b->in_capsule ? "in-capsule"
	       : a->io_queues != b->io_queues   ? "io-queues"
	       : a->queues != b->queues         ? "queues"
	       : a->keep_alive != b->keep_alive ? "keep-alive"
	       : a->sleep_us != b->sleep_us     ? "sleep"
	       : a->uring != b->uring           ? "io"
						: NULL;
}

int
storage_reload(struct storage *s)
{
	struct config *c;
	const char *name;
	int rc = -EINVAL;

	if (s->config->file == NULL) {
		say("there is no configuration file to read again (--config)");
		return -EINVAL;
	}
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	if (config_parse_again(c) == 0) {
		name = fixed_setting(s->config, c);
		if (name != NULL)
			say("%s: a change of %s needs a restart", c->file, name);
		else
			rc = storage_apply(s, c, 0);
	}
	if (rc == 0)
		s->reloads++;
	else
		s->failed_reloads++;
	say(rc == 0 ? "%s: read again" : "%s: not applied; the configuration stays as it was",
	    s->config->file);
	config_free(c);
	free(c);
	return rc;
}
