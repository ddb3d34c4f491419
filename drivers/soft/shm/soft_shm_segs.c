/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_memory.h>

#include "soft_hooks.h"
#include "soft_shm.h"

#define PAGE 4096u /* bytes of a page of a program's memory */

/* Returns true if @fd is a descriptor of the file. */
static bool
is_file(int fd, dev_t dev, ino_t ino)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/*
 * Finds the EAL file that backs [addr, addr + len). Returns false if no single file backs the whole
 * range.
 */
static bool
find_in_eal(const uint8_t *addr, uint64_t len, struct soft_shm_part *p)
{
	const struct rte_memseg_list *list = rte_mem_virt2memseg_list(addr);
	struct rte_memseg *first, *last;
	size_t off, off_last;
	struct stat st;
	int fd_last;

	if (list == NULL || list->external || rte_mem_virt2memseg_list(addr + len - 1) != list)
		return false;
	first = rte_mem_virt2memseg(addr, list);
	last = rte_mem_virt2memseg(addr + len - 1, list);
	if (first == NULL || last == NULL)
		return false;
	p->fd = rte_memseg_get_fd(first);
	fd_last = rte_memseg_get_fd(last);
	if (p->fd < 0 || fd_last != p->fd || fstat(p->fd, &st) != 0 ||
	    rte_memseg_get_fd_offset(first, &off) != 0 ||
	    rte_memseg_get_fd_offset(last, &off_last) != 0)
		return false;
	/* Pages that are contiguous in memory must also be contiguous in the file. */
	if (off_last - off != (uintptr_t)last->addr - (uintptr_t)first->addr)
		return false;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	p->page = first->hugepage_sz;
	p->off = off + (uint64_t)(addr - (const uint8_t *)first->addr);
	return true;
}

bool
soft_shm_part_find(const struct soft_dev *dev, const struct soft_mkey *m, struct soft_shm_part *p)
{
	struct soft_memory found;

	p->start = m->start;
	p->len = m->len;
	if (dev->memory == NULL)
		return find_in_eal(m->base, m->len, p);
	found = m->pin.file;
	if (m->pin.asked ? !m->pin.found : !dev->memory(m->base, m->len, &found))
		return false;
	if (!is_file(found.fd, found.dev, found.ino))
		return false;
	*p = (struct soft_shm_part){.fd = found.fd,
				    .dev = found.dev,
				    .ino = found.ino,
				    .page = PAGE,
				    .off = found.off,
				    .start = m->start + found.skip,
				    .len = found.len};
	return true;
}

/* Returns the index of the segment that already has the file, else of a free segment, else -1. */
static int
seg_slot(const struct soft_shm *shm, const struct soft_shm_part *p)
{
	int i, free_slot = -1;

	for (i = 0; i < SOFT_SHM_SEGS; i++) {
		const struct soft_shm_seg *s = &shm->seg[i];

		if (s->refs != 0 && s->dev == p->dev && s->ino == p->ino)
			return i;
		if (s->refs == 0 && free_slot < 0)
			free_slot = i;
	}
	return free_slot;
}

int
soft_shm_seg_take(struct soft_shm *shm, const struct soft_shm_part *p)
{
	uint64_t from = p->off & ~(p->page - 1), to;
	struct soft_shm_seg *s;
	int slot = seg_slot(shm, p);

	to = (p->off + p->len + p->page - 1) & ~(p->page - 1);
	if (slot < 0)
		return -1;
	s = &shm->seg[slot];
	if (s->refs == 0) {
		int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			return -1;
		*s = (struct soft_shm_seg){
			.fd = fd,
			.dev = p->dev,
			.ino = p->ino,
			.off = from,
			.end = to,
			.gen = s->gen + 1,
			.rev = s->rev + 1,
		};
	} else if (from < s->off || to > s->end) {
		s->off = RTE_MIN(s->off, from);
		s->end = RTE_MAX(s->end, to);
		s->rev++;
	}
	s->refs++;
	shm->seg_changes++;
	return slot;
}

static void
seg_close(const struct soft_shm_seg *s)
{
	if (is_file(s->fd, s->dev, s->ino))
		close(s->fd);
}

void
soft_shm_seg_put(struct soft_shm *shm, uint32_t slot)
{
	/* A peer keeps its mapping of the file until this entry of seg[] gets another file. */
	if (--shm->seg[slot].refs == 0)
		seg_close(&shm->seg[slot]);
}

void
soft_shm_segs_close(struct soft_shm *shm)
{
	uint32_t i;

	for (i = 0; i < SOFT_SHM_SEGS; i++)
		if (shm->seg[i].refs != 0)
			seg_close(&shm->seg[i]);
}

void
soft_shm_segs_send(struct soft_shm *shm, struct soft_shm_rx *rx)
{
	struct soft_shm_msg m;
	uint32_t i;

	for (i = 0; rx->n_gids != 0 && i < SOFT_SHM_SEGS; i++) {
		const struct soft_shm_seg *s = &shm->seg[i];

		if (s->refs == 0 || rx->seg_rev[i] == s->rev || !is_file(s->fd, s->dev, s->ino))
			continue;
		soft_shm_msg_init(&m, SOFT_SHM_SEGMENT);
		m.u.segment.slot = i;
		m.u.segment.gen = s->gen;
		m.u.segment.off = s->off;
		m.u.segment.len = s->end - s->off;
		/* The socket is full; the next soft_shm_chores() sends the remaining segments. */
		if (soft_shm_send(rx->sock, &m, &s->fd, 1) != 0)
			return;
		rx->seg_rev[i] = s->rev;
	}
	rx->seg_changes = shm->seg_changes;
}
