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
	uint32_t i, j;

	memset(s, 0, sizeof(*s));
	s->config = c;
	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		for (j = 0; j < MAX_LCORES; j++)
			s->subsys[j][i].inactive = true;
		s->entry[i].s = &s->subsys[0][i];
	}
}

uint32_t
storage_queues(const struct storage *s)
{
	return (s->config->queues + s->lcores - 1) / s->lcores;
}

/* ---- Slots of namespaces */

static int
open_memory(struct slot *to, uint8_t shift)
{
	const uint64_t size = to->space.size;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		say("namespace malloc: cannot allocate %" PRIu64 " bytes: %s", size,
		    strerror(errno));
		return -ENOMEM;
	}
	nvmf_ns_memory(&to->ns[0], mem, size, shift);
	return 0;
}

/* Creates the queue of an lcore to the slot's file. The calling thread becomes the owner. */
static int
start_queue(struct storage *s, uint32_t lcore, struct slot *slot)
{
	const struct config *c = s->config;
	const uint32_t depth = c->depth < NVMF_ADMIN_DEPTH ? NVMF_ADMIN_DEPTH : c->depth;

	return nvmf_file_start(&slot->file[lcore], &slot->file[0], c->uring,
			       storage_queues(s) * depth, s->mem, s->len);
}

struct start {
	struct slot *slot;
	int rc;
};

static void
start_worker(struct storage *s, uint32_t lcore, void *arg)
{
	struct start *start = arg;

	if (start->rc == 0)
		start->rc = start_queue(s, lcore, start->slot);
}

/*
 * Creates the queues of all lcores to the slot's file. At the start of the program no worker runs
 * yet: then sync_slot() creates the queues of the workers later.
 */
static int
start_queues(struct storage *s, struct slot *slot)
{
	struct start start = {slot, start_queue(s, 0, slot)};

	if (start.rc == 0)
		s->run(start_worker, &start);
	return start.rc;
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
	int rc = nvmf_file_open(&to->file[0], &attr, &to->ns[0]);

	return rc != 0 ? rc : start_queues(s, to);
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
		nvmf_ns_null(&to->ns[0], from->size, shift);
	else if (rc == 0 && from->kind == SPACE_MEMORY)
		rc = open_memory(to, shift);
	else if (rc == 0)
		rc = open_file(s, to, wait_s);
	to->ns[0].read_only = from->read_only;
	if (rc != 0)
		slot_close(s, to);
	return rc;
}

/* Ends the use of a slot by an lcore, which must have no requests to it. */
static void
slot_stop(struct storage *s, uint32_t lcore, struct slot *slot)
{
	struct slot **polled = s->polled[lcore];
	uint32_t i;

	for (i = 0; i < s->npolled[lcore] && polled[i] != slot; i++)
		;
	if (i < s->npolled[lcore])
		polled[i] = polled[--s->npolled[lcore]];
	if (lcore != 0)
		nvmf_file_close(&slot->file[lcore]);
}

static void
stop_worker(struct storage *s, uint32_t lcore, void *arg)
{
	slot_stop(s, lcore, arg);
}

uint64_t
slot_sum(const struct slot *slot, size_t at)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < MAX_LCORES; i++)
		sum += __atomic_load_n(
			(const uint64_t *)(const void *)((const char *)&slot->ns[i] + at),
			__ATOMIC_RELAXED);
	return sum;
}

void
slot_close(struct storage *s, struct slot *slot)
{
	if (slot->state == SLOT_REMOVED || slot->state == SLOT_OPENED)
		s->run(stop_worker, slot);
	slot_stop(s, 0, slot);
	if (slot->space.kind == SPACE_FILE)
		nvmf_file_close(&slot->file[0]);
	else if (slot->space.kind == SPACE_MEMORY && slot->ns[0].ctx != NULL)
		munmap(slot->ns[0].ctx, slot->space.size);
	free(slot->space.path);
	s->old_reads += slot_sum(slot, offsetof(struct nvmf_ns, reads));
	s->old_writes += slot_sum(slot, offsetof(struct nvmf_ns, writes));
	memset(slot, 0, sizeof(*slot));
}

static uint32_t
slot_refs(const struct slot *slot)
{
	uint32_t i, refs = 0;

	for (i = 0; i < MAX_LCORES; i++)
		refs += __atomic_load_n(&slot->ns[i].refs, __ATOMIC_ACQUIRE);
	return refs;
}

/* ---- Subsystems of the other lcores */

static void
sync_slot(struct storage *s, uint32_t lcore, struct entry *e, uint32_t nsid)
{
	struct nvmf_subsys *to = &s->subsys[lcore][e - s->entry];
	struct slot *slot = &e->slot[nsid - 1];
	struct nvmf_ns *ns = &slot->ns[lcore];
	bool has = e->active[lcore][nsid - 1] != NULL;

	if (slot->state == SLOT_REMOVED && has)
		nvmf_ns_remove(s->targets[lcore], to, ns);
	if (slot->state != SLOT_ACTIVE)
		return;
	if (has) {
		ns->blocks = slot->ns[0].blocks;
		return;
	}
	*ns = (struct nvmf_ns){.ops = slot->ns[0].ops,
			       .ctx = slot->ns[0].ctx,
			       .blocks = slot->ns[0].blocks,
			       .shift = slot->ns[0].shift,
			       .read_only = slot->ns[0].read_only};
	if (slot->space.kind == SPACE_FILE) {
		ns->ctx = &slot->file[lcore];
		/*
		 * After a reload the queue exists already; at the start of the program it does not.
		 */
		if (slot->file[lcore].q == NULL && start_queue(s, lcore, slot) != 0) {
			__atomic_store_n(&s->rc, -EIO, __ATOMIC_RELAXED);
			return;
		}
		s->polled[lcore][s->npolled[lcore]++] = slot;
	}
	(void)nvmf_ns_add(to, nsid, ns);
}

static void
sync_worker(struct storage *s, uint32_t lcore, void *arg)
{
	uint32_t i, nsid;

	(void)arg;
	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		struct entry *e = &s->entry[i];

		/* any_host: only the first lcore checks which hosts may connect. */
		s->subsys[lcore][i] = (struct nvmf_subsys){.inactive = e->s->inactive,
							   .nqn = e->nqn,
							   .serial = e->serial,
							   .any_host = true,
							   .ns = e->active[lcore],
							   .max_ns = MAX_NAMESPACES};
		for (nsid = 1; nsid <= MAX_NAMESPACES; nsid++)
			sync_slot(s, lcore, e, nsid);
	}
}

/* Links the namespaces of all lcores, for the statistics of the first one. */
static void
link_slots(struct storage *s)
{
	uint32_t i, j, k;

	for (i = 0; i < MAX_SUBSYSTEMS; i++)
		for (j = 0; j < MAX_NAMESPACES; j++)
			for (k = 0; k + 1 < s->lcores; k++)
				s->entry[i].slot[j].ns[k].next = &s->entry[i].slot[j].ns[k + 1];
}

void
storage_sync(struct storage *s)
{
	s->run(sync_worker, NULL);
	link_slots(s);
}

/* ---- Work in each turn of the loop */

/* Closes removed namespaces and subsystems that no command and no controller uses any more. */
static void
reap(struct storage *s)
{
	uint32_t i, j, left;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		struct entry *e = &s->entry[i];

		for (j = 0, left = 0; j < MAX_NAMESPACES; j++) {
			struct slot *slot = &e->slot[j];

			if (slot->state == SLOT_REMOVED && slot_refs(slot) == 0) {
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
storage_poll(struct storage *s, uint32_t lcore, int *rc)
{
	unsigned int work = 0;
	uint32_t i;
	int one;

	*rc = 0;
	for (i = 0; i < s->npolled[lcore]; i++) {
		work += nvmf_file_poll(&s->polled[lcore][i]->file[lcore], &one);
		if (one == 0 || *rc != 0)
			continue;
		say("%s: io_uring accepts no more requests: %s", s->polled[lcore][i]->space.path,
		    strerror(-one));
		*rc = one;
	}
	if (lcore == 0 && s->removed != 0)
		reap(s);
	return work;
}

bool
storage_outstanding(const struct storage *s, uint32_t lcore)
{
	uint32_t i;

	for (i = 0; i < s->npolled[lcore]; i++)
		if (s->polled[lcore][i]->ns[lcore].refs != 0)
			return true;
	return false;
}

void
storage_close(struct storage *s)
{
	uint32_t i, j, k;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		for (j = 0; j < MAX_NAMESPACES; j++) {
			struct slot *slot = &s->entry[i].slot[j];

			if (slot->state == SLOT_FREE)
				continue;
			for (k = 1; k < MAX_LCORES; k++)
				nvmf_file_close(&slot->file[k]);
			/* slot_close() then does not use the workers, which have ended */
			slot->state = SLOT_ACTIVE;
			slot_close(s, slot);
		}
	}
}
