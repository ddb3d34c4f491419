/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands ATTACH_TO_MCG and DETACH_FROM_MCG. No public source says what firmware refuses, or with
 * which status; all refusals of this file are assumptions [A].
 */
#include <stdlib.h>
#include <string.h>

#include "soft_ctl.h"
#include "soft_mcg.h"
#include "soft_shm.h"

#define SOFT_SYNDROME 0xbb080000u

/*
 * Returns the address of the pointer to the multicast group @gid; the pointer is NULL if there is
 * no such group.
 */
static struct soft_mcg **
link_of(struct soft_mcgs *t, const uint8_t gid[16])
{
	struct soft_mcg **at = &t->bucket[soft_mcg_bucket(gid)];

	while (*at != NULL && memcmp((*at)->gid, gid, sizeof((*at)->gid)) != 0)
		at = &(*at)->next;
	return at;
}

/*
 * Returns the device's table of multicast groups, or NULL if out of memory. The table exists as
 * long as the device.
 */
static struct soft_mcgs *
table_of(struct soft_dev *dev)
{
	struct soft_mcgs *t = dev->mcgs;

	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t));
	__atomic_store_n(&dev->mcgs, t, __ATOMIC_RELEASE);
	return t;
}

/* Returns an unpublished copy of @g with room for @n members; NULL if out of memory. */
static struct soft_mcg *
copy_of(const struct soft_mcg *g, const uint8_t gid[16], uint32_t n)
{
	struct soft_mcg *c = calloc(1, sizeof(*c) + n * sizeof(c->qp[0]));

	if (c == NULL)
		return NULL;
	memcpy(c->gid, gid, sizeof(c->gid));
	if (g != NULL) {
		c->next = g->next;
		c->known_at = g->known_at;
	}
	return c;
}

/*
 * Publishes the multicast group @to instead of *at, and frees the old version of the group when no
 * engine reads it any more.
 */
static void
replace(struct soft_mcg **at, struct soft_mcg *to)
{
	struct soft_mcg *old = *at;

	__atomic_store_n(at, to, __ATOMIC_RELEASE);
	if (old == NULL)
		return;
	soft_quiesce();
	free(old);
}

static int
check(struct soft_cmd *cmd, struct bb_prm_field qpn_at, struct bb_prm_field gid_at,
      struct soft_qp **qp)
{
	const struct soft_field fields[] = {{qpn_at, 0}, {gid_at, 0}};
	uint32_t qpn = bb_prm_get(cmd->in, qpn_at);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	*qp = soft_cmd_qp(cmd, qpn);
	if (*qp == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "QP 0x%x does not exist", qpn);
	return 0;
}

/*
 * Makes the device a member of a multicast group to which none of its QPs was attached. The link of
 * option shm makes it known to other processes.
 */
static bool
join(struct soft_cmd *cmd, struct soft_mcg *g)
{
	struct soft_dev *dev = cmd->dev;
	int ret;

	if (dev->shm == NULL)
		return true;
	ret = soft_shm_group_join(dev->shm, g->gid);
	if (ret == 0)
		g->known_at = rte_rdtsc() + soft_time_cycles(SOFT_SHM_CAST_NS);
	else if (ret == -ENOSPC)
		SOFT_LOG(ERR, "%s: shm=%s: the multicast group already has members in %u devices",
			 dev->name, dev->opts.port.shm, SOFT_SHM_MEMBERS);
	else
		SOFT_LOG(ERR, "%s: shm=%s: cannot create the socket of a multicast group: %s",
			 dev->name, dev->opts.port.shm, strerror(-ret));
	return ret == 0;
}

int
soft_cmd_attach_to_mcg(struct soft_cmd *cmd)
{
	const uint8_t *gid = bb_prm_csub(cmd->in, BB_PRM_ATTACH_TO_MCG_GID);
	struct soft_mcg *g, *to, **at;
	struct soft_mcgs *t;
	struct soft_qp *qp;
	uint32_t n;
	int ret;

	ret = check(cmd, BB_PRM_ATTACH_TO_MCG_QPN, BB_PRM_ATTACH_TO_MCG_GID, &qp);
	if (ret != 0)
		return ret;
	if (qp->st != BB_PRM_QP_ST_UD)
		return SOFT_REFUSE(cmd, BAD_PARAM, "QP 0x%x is not of type UD", qp->qpn);
	if (!bb_roce_is_mcast(gid))
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "the GID %02x%02x:.. is not a multicast GID (ff00::/8, or "
				   "::ffff:224.0.0.0/100)",
				   gid[0], gid[1]);
	t = table_of(cmd->dev);
	if (t == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a multicast group");
	at = link_of(t, gid);
	g = *at;
	n = g != NULL ? g->n : 0;
	if (soft_mcg_has(g, qp))
		return SOFT_REFUSE(cmd, BAD_PARAM, "QP 0x%x is already a member of the group",
				   qp->qpn);
	if (g == NULL && t->groups == 1u << SOFT_LOG_MAX_MCG)
		return SOFT_REFUSE(cmd, NO_RES,
				   "all %u multicast groups are in use: detach some QPs",
				   t->groups);
	if (n == SOFT_MAX_QP_MCG)
		return SOFT_REFUSE(cmd, NO_RES, "the group already has %u QPs (max_qp_mcg)", n);
	to = copy_of(g, gid, n + 1);
	if (to == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a multicast group");
	if (g == NULL && !join(cmd, to)) {
		free(to);
		return SOFT_REFUSE(cmd, NO_RES, "the device cannot become a member of the group");
	}
	if (g != NULL)
		memcpy(to->qp, g->qp, n * sizeof(to->qp[0]));
	to->qp[n] = qp;
	to->n = n + 1;
	t->groups += g == NULL;
	replace(at, to);
	/* The command ends when each sender knows, also for a QP that attaches meanwhile. */
	if (rte_rdtsc() < to->known_at)
		cmd->wait_us = SOFT_SHM_CAST_NS / 1000;
	return 0;
}

int
soft_cmd_detach_from_mcg(struct soft_cmd *cmd)
{
	const uint8_t *gid = bb_prm_csub(cmd->in, BB_PRM_DETACH_FROM_MCG_GID);
	struct soft_mcg *g, *to, **at;
	struct soft_qp *qp;
	uint32_t i;
	int ret;

	ret = check(cmd, BB_PRM_DETACH_FROM_MCG_QPN, BB_PRM_DETACH_FROM_MCG_GID, &qp);
	if (ret != 0)
		return ret;
	at = cmd->dev->mcgs != NULL ? link_of(cmd->dev->mcgs, gid) : NULL;
	if (at == NULL || !soft_mcg_has(*at, qp))
		return SOFT_REFUSE(cmd, BAD_PARAM, "QP 0x%x is not a member of the group", qp->qpn);
	g = *at;
	if (g->n == 1) {
		cmd->dev->mcgs->groups--;
		replace(at, g->next);
		if (cmd->dev->shm != NULL)
			soft_shm_group_leave(cmd->dev->shm, gid);
		return 0;
	}
	to = copy_of(g, gid, g->n - 1);
	if (to == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a multicast group");
	for (i = 0; i < g->n; i++)
		if (g->qp[i] != qp)
			to->qp[to->n++] = g->qp[i];
	replace(at, to);
	return 0;
}

bool
soft_mcg_busy(const struct soft_dev *dev, const struct soft_qp *qp)
{
	const struct soft_mcg *g;
	uint32_t i;

	for (i = 0; dev->mcgs != NULL && i < SOFT_MCG_BUCKETS; i++)
		for (g = dev->mcgs->bucket[i]; g != NULL; g = g->next)
			if (soft_mcg_has(g, qp))
				return true;
	return false;
}
