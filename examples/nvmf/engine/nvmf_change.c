/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Changes of subsystems and namespaces while hosts are connected. */
#include <string.h>

#include "nvmf_priv.h"

/*
 * Adds namespace @nsid to the controller's list of changed namespaces, in ascending order, unless
 * the list has it.
 */
static void
note_changed(struct nvmf_ctrl *c, uint32_t nsid)
{
	uint32_t i, n = c->nchanged;

	if (n > NVMF_CHANGED)
		return;
	for (i = 0; i < n && c->changed[i] < nsid; i++)
		;
	if (i < n && c->changed[i] == nsid)
		return;
	c->nchanged = n + 1;
	if (n == NVMF_CHANGED)
		return;
	memmove(&c->changed[i + 1], &c->changed[i], (n - i) * sizeof(c->changed[0]));
	c->changed[i] = nsid;
}

void
nvmf_ns_changed(struct nvmf_target *t, struct nvmf_subsys *s, uint32_t nsid)
{
	uint32_t i;

	for (i = 0; i < t->attr.ctrls; i++) {
		if (t->ctrl[i] == NULL || t->ctrl[i]->subsys != s)
			continue;
		note_changed(t->ctrl[i], nsid);
		nvmf_ctrl_event(t->ctrl[i], ASYNC_NS_ATTR);
	}
}

/* Reports to the hosts of the discovery subsystem that the discovery log has changed. */
static void
discovery_changed(struct nvmf_target *t)
{
	uint32_t i;

	t->genctr++;
	for (i = 0; i < t->attr.ctrls; i++)
		if (t->ctrl[i] != NULL && t->ctrl[i]->subsys->discovery)
			nvmf_ctrl_event(t->ctrl[i], ASYNC_DISCOVERY);
}

void
nvmf_ns_remove(struct nvmf_target *t, struct nvmf_subsys *s, struct nvmf_ns *ns)
{
	s->ns[ns->nsid - 1] = NULL;
	ns->removed = true;
	nvmf_ns_changed(t, s, ns->nsid);
}

void
nvmf_access_changed(struct nvmf_target *t, struct nvmf_subsys *s)
{
	uint32_t i;

	for (i = 0; i < t->attr.ctrls; i++) {
		struct nvmf_ctrl *c = t->ctrl[i];

		if (c != NULL && c->subsys == s && !nvmf_host_allowed(s, c->hostnqn))
			nvmf_ctrl_fail(c, "the host may not use the subsystem any more");
	}
	discovery_changed(t);
}

bool
nvmf_subsys_idle(const struct nvmf_target *t, const struct nvmf_subsys *s)
{
	uint32_t i;

	for (i = 0; i < t->attr.ctrls; i++)
		if (t->ctrl[i] != NULL && t->ctrl[i]->subsys == s)
			return false;
	return true;
}
