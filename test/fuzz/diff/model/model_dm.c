/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory (man ibv_alloc_dm): its own bytes after the buffers, and zero-based keys. */
#include <errno.h>
#include <string.h>

#include "diff.h"

#define RIGHTS                                                                                     \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_ZERO_BASED)

static bool
inside(const struct m_dm *dm, uint32_t off, uint32_t len)
{
	return len <= dm->len && off <= dm->len - len;
}

/* mr pd dm off len access */
static int
reg_ret(const struct model *m, const uint32_t *a)
{
	bool writes = (a[5] & (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)) != 0;

	if (a[1] % m->devs != a[2] % m->devs || a[4] == 0 || !inside(&m->dm[a[2]], a[3], a[4]) ||
	    (a[5] & ~(uint32_t)RIGHTS) != 0 || (writes && !(a[5] & BB_ACCESS_LOCAL_WRITE)))
		return -EINVAL;
	return 0;
}

void
model_judge_dm(const struct model *m, const struct step *s, struct verdict *v)
{
	const uint32_t *a = s->a;
	const struct m_dm *dm = &m->dm[(s->op == OP_MR_REG_DM ? a[2] : a[0]) % DMS];

	v->n = 1;
	v->ret[0] = 0;
	switch (s->op) {
	case OP_DM_ALLOC:
		v->skip = a[0] >= DMS || dm->live || a[1] > DM_LEN || a[2] > 6 || !m->world->dm;
		if (a[1] == 0)
			v->ret[0] = -EINVAL;
		return;
	case OP_DM_FREE:
		v->skip = a[0] >= DMS || !dm->live;
		if (dm->refs != 0)
			v->ret[0] = -EBUSY;
		return;
	case OP_DM_WRITE:
		v->skip = a[0] >= DMS || !dm->live || a[2] > DM_LEN;
		if (!inside(dm, a[1], a[2]))
			v->ret[0] = -EFAULT;
		else if (a[1] % BB_DM_COPY_ALIGN != 0 || a[2] % BB_DM_COPY_ALIGN != 0)
			v->ret[0] = -EINVAL;
		/* Both errors apply. */
		if (v->ret[0] == -EFAULT)
			v->ret[v->n++] = -EINVAL;
		return;
	default:
		v->skip = a[0] >= MRS || m->mr[a[0]].live || a[1] >= PDS || !m->pd[a[1]].live ||
			  a[2] >= DMS || !dm->live;
		if (!v->skip)
			v->ret[0] = reg_ret(m, a);
		return;
	}
}

void
model_dm_step(struct model *m, const struct step *s)
{
	const uint32_t *a = s->a;
	struct m_mr *mr;

	switch (s->op) {
	case OP_DM_ALLOC:
		m->dm[a[0]] = (struct m_dm){.live = true, .len = a[1]};
		/* Its content is undefined: exec.c writes zeroes. */
		memset(&m->mem[DM_AT(a[0])], 0, DM_LEN);
		return;
	case OP_DM_FREE:
		m->dm[a[0]].live = false;
		return;
	case OP_DM_WRITE:
		for (uint32_t i = 0; i < a[2]; i++)
			m->mem[DM_AT(a[0]) + a[1] + i] = model_pattern(a[3], i);
		return;
	default:
		mr = &m->mr[a[0]];
		*mr = (struct m_mr){.live = true,
				    .gen = mr->gen + 1,
				    .pd = a[1],
				    .buf = ZERO_BUF,
				    .len = a[4],
				    .access = a[5],
				    .base = DM_AT(a[2]) + a[3],
				    .dm = a[2] + 1};
		m->pd[a[1]].refs++;
		m->dm[a[2]].refs++;
		return;
	}
}
