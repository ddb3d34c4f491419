/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Namespaces and their files: opened, polled, and closed once no command uses them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "nvmf_program.h"

void
storage_init(struct storage *s, const struct config *c)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->config = c;
	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		s->subsys[i].inactive = true;
		s->entry[i].s = &s->subsys[i];
	}
}

/* ---- Slots */

static int
open_memory(struct slot *to, uint8_t shift)
{
	const uint64_t size = to->space.size;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		say("namespace malloc: no memory of %" PRIu64 " bytes: %s", size, strerror(errno));
		return -ENOMEM;
	}
	nvmf_ns_memory(&to->ns, mem, size, shift);
	return 0;
}

static int
open_file(struct storage *s, struct slot *to, uint32_t wait_s)
{
	const struct config *c = s->config;
	const struct backing_attr attr = {.path = to->space.path,
					  .size = to->space.size,
					  .block = c->block,
					  .wait_s = wait_s,
					  .buffered = to->space.buffered,
					  .read_only = to->space.read_only};
	const uint32_t depth = c->depth < NVMF_ADMIN_DEPTH ? NVMF_ADMIN_DEPTH : c->depth;
	int rc = nvmf_file_open(&to->file, &attr, &to->ns);

	if (rc == 0)
		rc = nvmf_file_start(&to->file, c->uring, c->queues * depth, s->mem, s->len);
	return rc;
}

int
slot_open(struct storage *s, struct slot *to, const struct space *from, uint32_t wait_s)
{
	const uint8_t shift = (uint8_t)__builtin_ctz(s->config->block);
	int rc = 0;

	memset(to, 0, sizeof(*to));
	to->state = SLOT_OPENED;
	to->space = *from;
	to->space.path = NULL;
	if (from->path != NULL) {
		to->space.path = strdup(from->path);
		rc = to->space.path == NULL ? -ENOMEM : 0;
	}
	if (rc == 0 && from->kind == SPACE_NULL)
		nvmf_ns_null(&to->ns, from->size, shift);
	else if (rc == 0 && from->kind == SPACE_MEMORY)
		rc = open_memory(to, shift);
	else if (rc == 0)
		rc = open_file(s, to, wait_s);
	to->ns.read_only = from->read_only;
	if (rc != 0)
		slot_close(s, to);
	return rc;
}

void
slot_close(struct storage *s, struct slot *slot)
{
	uint32_t i;

	for (i = 0; i < s->npolled && s->polled[i] != slot; i++)
		;
	if (i < s->npolled)
		s->polled[i] = s->polled[--s->npolled];
	if (slot->space.kind == SPACE_FILE)
		nvmf_file_close(&slot->file);
	else if (slot->space.kind == SPACE_MEMORY && slot->ns.ctx != NULL)
		munmap(slot->ns.ctx, slot->space.size);
	free(slot->space.path);
	memset(slot, 0, sizeof(*slot));
}

/* ---- Loop */

/* Closes what was removed, and what no command and no controller uses any more. */
static void
reap(struct storage *s)
{
	uint32_t i, j, left;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		struct entry *e = &s->entry[i];

		for (j = 0, left = 0; j < MAX_NAMESPACES; j++) {
			struct slot *slot = &e->slot[j];

			if (slot->state == SLOT_REMOVED && slot->ns.refs == 0) {
				slot_close(s, slot);
				s->removed--;
			}
			left += slot->state != SLOT_FREE;
		}
		if (e->state == SLOT_REMOVED && left == 0 && nvmf_subsys_idle(s->t, e->s)) {
			e->state = SLOT_FREE;
			s->removed--;
		}
	}
}

unsigned int
storage_poll(struct storage *s, int *rc)
{
	unsigned int work = 0;
	uint32_t i;
	int one;

	*rc = 0;
	for (i = 0; i < s->npolled; i++) {
		work += nvmf_file_poll(&s->polled[i]->file, &one);
		if (one == 0 || *rc != 0)
			continue;
		say("%s: io_uring accepts no more requests: %s", s->polled[i]->space.path,
		    strerror(-one));
		*rc = one;
	}
	if (s->removed != 0)
		reap(s);
	return work;
}

void
storage_close(struct storage *s)
{
	uint32_t i, j;

	for (i = 0; i < MAX_SUBSYSTEMS; i++)
		for (j = 0; j < MAX_NAMESPACES; j++)
			if (s->entry[i].slot[j].state != SLOT_FREE)
				slot_close(s, &s->entry[i].slot[j]);
}
