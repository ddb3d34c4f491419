/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The target and its controllers: creation, keep-alive timers, events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvmf_priv.h"

#define KATO_UNIT 1000u /* ms; granularity of keep-alive timers that Identify reports */
/*
 * ms; timer of a discovery controller whose host has asked for none, and its longest one. Otherwise
 * hosts that vanish during a discovery would occupy all queues, and any host may discover. NVMe
 * over Fabrics 1.0a: "a fixed Discovery controller activity timeout value (e.g., 2 minutes)". nvmet
 * and SPDK use this value.
 */
#define DISCOVERY_KATO 120000u

/* ---- Target: creation, keep-alive timers, destruction */

bool
nvmf_nqn_valid(const char *nqn)
{
	size_t len = strlen(nqn);

	return len >= 5 && len <= NVMF_NQN_MAX && memcmp(nqn, "nqn.", 4) == 0;
}

static bool
subsys_valid(const struct nvmf_target_attr *attr, uint32_t i)
{
	const struct nvmf_subsys *s = &attr->subsys[i];
	uint32_t j;

	if (s->inactive)
		return true;
	if (s->nqn == NULL || !nvmf_nqn_valid(s->nqn) || strcmp(s->nqn, NVMF_DISCOVERY) == 0)
		return false;
	if (s->serial == NULL || strlen(s->serial) > 20 || s->max_ns > 1024)
		return false;
	for (j = 0; j < s->nhosts; j++)
		if (!nvmf_nqn_valid(s->hosts[j]))
			return false;
	for (j = 0; j < i; j++)
		if (!attr->subsys[j].inactive && strcmp(attr->subsys[j].nqn, s->nqn) == 0)
			return false;
	return true;
}

static bool
ports_valid(const struct nvmf_target_attr *attr)
{
	uint32_t i;

	for (i = 0; i < attr->nports; i++)
		if (strlen(attr->ports[i].traddr) >= 256 || strlen(attr->ports[i].trsvcid) >= 32)
			return false;
	return true;
}

int
nvmf_target_create(const struct nvmf_target_attr *attr, struct nvmf_target **out)
{
	struct nvmf_target *t;
	uint32_t i;

	if ((attr->max_io & (attr->max_io - 1)) != 0 || attr->max_io < 2 * NVMF_PAGE ||
	    attr->max_io > 1 << 20 || attr->in_capsule % 16 != 0 ||
	    attr->in_capsule > attr->max_io || attr->io_queues == 0 ||
	    attr->io_queues > NVMF_MAX_QUEUES || attr->io_depth < 2 ||
	    attr->io_depth > NVMF_MAX_DEPTH || attr->ctrls == 0 || attr->ctrls > 65519 ||
	    !ports_valid(attr))
		return -EINVAL;
	for (i = 0; i < attr->nsubsys; i++)
		if (!subsys_valid(attr, i))
			return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->ctrl = calloc(attr->ctrls, sizeof(struct nvmf_ctrl *));
	if (t->ctrl == NULL) {
		free(t);
		return -ENOMEM;
	}
	t->attr = *attr;
	t->discovery = (struct nvmf_subsys){
		.nqn = NVMF_DISCOVERY, .serial = "discovery", .any_host = true, .discovery = true};
	*out = t;
	return 0;
}

void
nvmf_target_destroy(struct nvmf_target *t)
{
	free(t->ctrl);
	free(t);
}

void
nvmf_ctrl_end_io(struct nvmf_ctrl *c, const char *why)
{
	uint32_t i;

	for (i = 1; i <= NVMF_MAX_QUEUES; i++) {
		struct nvmf_queue *q = c->queue[i];

		if (q == NULL)
			continue;
		c->target->attr.ops->close(q, why);
		c->queue[i] = NULL;
		q->ctrl = NULL;
		q->ended = true;
		nvmf_ctrl_unhold_idle(q);
	}
}

void
nvmf_ctrl_fail(struct nvmf_ctrl *c, const char *why)
{
	c->csts |= CSTS_CFS;
	nvmf_ctrl_end_io(c, why);
	c->target->attr.ops->close(c->queue[0], why);
}

void
nvmf_target_time(struct nvmf_target *t, uint64_t now)
{
	uint32_t i;

	if (now - t->now > NVMF_PAUSE_MS)
		t->paused += now - t->now;
	t->now = now;
	for (i = 0; i < t->attr.ctrls; i++) {
		struct nvmf_ctrl *c = t->ctrl[i];

		if (c == NULL || !nvmf_timer_expired(t, &c->kato))
			continue;
		nvmf_ctrl_fail(c, "the host's keep-alive timer has expired");
	}
}

void
nvmf_timer_start(const struct nvmf_target *t, struct nvmf_timer *timer)
{
	timer->deadline = t->now + timer->ms;
	timer->paused = t->paused;
	timer->extended = false;
}

bool
nvmf_timer_expired(const struct nvmf_target *t, struct nvmf_timer *timer)
{
	uint64_t lost = t->paused - timer->paused;

	if (timer->ms == 0 || t->now < timer->deadline)
		return false;
	if (timer->extended || lost == 0)
		return true;
	timer->extended = true;
	timer->deadline = t->now + (lost < timer->ms ? lost : timer->ms);
	return false;
}

/* ---- Controllers */

struct nvmf_ctrl *
nvmf_ctrl_create(struct nvmf_target *t, struct nvmf_subsys *s)
{
	uint32_t i, at = t->next_ctrl;
	struct nvmf_ctrl *c;

	/*
	 * Ids are reused as late as possible, so that a host with a stale id does not soon find
	 * another controller under that id.
	 */
	for (i = 0; i < t->attr.ctrls && t->ctrl[at] != NULL; i++)
		at = at + 1 < t->attr.ctrls ? at + 1 : 0;
	if (i == t->attr.ctrls)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->target = t;
	c->subsys = s;
	c->cntlid = (uint16_t)(at + 1);
	t->ctrl[at] = c;
	t->next_ctrl = at + 1 < t->attr.ctrls ? at + 1 : 0;
	return c;
}

/* Ends a controller whose admin queue is gone. */
void
nvmf_ctrl_end(struct nvmf_ctrl *c)
{
	nvmf_ctrl_end_io(c, "the admin queue of its controller is gone");
	c->target->ctrl[c->cntlid - 1] = NULL;
	if (c->held == 0) {
		free(c);
		return;
	}
	c->ended = true;
	c->next_ended = c->target->ended;
	c->target->ended = c;
}

/* ---- Requests that outlive their controller */

bool
nvmf_ctrl_lingers(const struct nvmf_ctrl *c)
{
	uint32_t i, queues = 0;

	for (i = 1; i <= NVMF_MAX_QUEUES; i++)
		queues += c->queue[i] != NULL;
	return c->held > queues;
}

/*
 * Returns whether @c belongs to subsystem @s and to the host in Connect's @data, and
 * nvmf_ctrl_lingers().
 */
static bool
blocks_host(const struct nvmf_ctrl *c, const struct nvmf_subsys *s, const uint8_t *data)
{
	return c != NULL && c->subsys == s &&
	       strcmp(c->hostnqn, (const char *)data + AT_COND_HOSTNQN) == 0 &&
	       memcmp(c->hostid, data + AT_COND_HOSTID, sizeof(c->hostid)) == 0 &&
	       nvmf_ctrl_lingers(c);
}

bool
nvmf_host_busy(const struct nvmf_target *t, const struct nvmf_subsys *s, const uint8_t *data)
{
	const struct nvmf_ctrl *c;
	bool busy = false;
	uint32_t i;

	for (i = 0; i < t->attr.ctrls && !busy; i++)
		busy = blocks_host(t->ctrl[i], s, data);
	for (c = t->ended; c != NULL && !busy; c = c->next_ended)
		busy = blocks_host(c, s, data);
	return busy;
}

void
nvmf_ctrl_disable(struct nvmf_ctrl *c)
{
	while (c->nasync > 0)
		nvmf_req_discard(c->async[--c->nasync]);
	c->async_enabled = c->async_pending = c->async_masked = 0;
	c->nchanged = 0;
	nvmf_ctrl_end_io(c, NULL);
}

void
nvmf_ctrl_alive(struct nvmf_ctrl *c)
{
	nvmf_timer_start(c->target, &c->kato);
}

void
nvmf_ctrl_kato(struct nvmf_ctrl *c, uint32_t ms)
{
	uint32_t units = ms / KATO_UNIT + (ms % KATO_UNIT != 0);

	if (ms == 0 && c->subsys->discovery)
		units = DISCOVERY_KATO / KATO_UNIT;
	c->kato.ms = units > UINT32_MAX / KATO_UNIT ? ms : units * KATO_UNIT;
	nvmf_ctrl_alive(c);
}

bool
nvmf_kato_valid(const struct nvmf_target *t, const struct nvmf_subsys *s, uint32_t ms)
{
	if (s->discovery)
		return ms <= DISCOVERY_KATO;
	return t->attr.keep_alive == 0 || (ms != 0 && ms <= t->attr.keep_alive);
}

struct nvmf_ns *
nvmf_ctrl_ns(const struct nvmf_ctrl *c, uint32_t nsid)
{
	return nsid == 0 || nsid > c->subsys->max_ns ? NULL : c->subsys->ns[nsid - 1];
}

bool
nvmf_host_allowed(const struct nvmf_subsys *s, const char *hostnqn)
{
	uint32_t i;

	if (s->inactive || s->any_host)
		return !s->inactive;
	for (i = 0; i < s->nhosts; i++)
		if (strcmp(s->hosts[i], hostnqn) == 0)
			return true;
	return false;
}

/* ---- Asynchronous events */

/*
 * Sends the pending events for which an Asynchronous Event Request waits. An event that was sent is
 * masked until the host has read its log page.
 */
void
nvmf_ctrl_events_send(struct nvmf_ctrl *c)
{
	static const struct {
		uint32_t bit, result;
	} events[] = {{ASYNC_NS_ATTR, EVENT_NS_ATTR}, {ASYNC_DISCOVERY, EVENT_DISCOVERY}};
	uint32_t i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]) && c->nasync > 0; i++) {
		uint32_t ready = c->async_pending & c->async_enabled & ~c->async_masked;

		if ((ready & events[i].bit) == 0)
			continue;
		c->async_pending &= ~events[i].bit;
		c->async_masked |= events[i].bit;
		nvmf_end(c->async[--c->nasync], SC_OK, events[i].result);
	}
}

void
nvmf_ctrl_event(struct nvmf_ctrl *c, uint32_t bit)
{
	c->async_pending |= bit;
	nvmf_ctrl_events_send(c);
}
