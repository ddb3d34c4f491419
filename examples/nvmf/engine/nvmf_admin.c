/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of the admin queue, except for Identify and Get Log Page. */
#include <string.h>

#include "nvmf_priv.h"

/* Features whose value the target stores, and which have no effect. */
static const uint8_t stored[NVMF_FEATURES] = {
	FEAT_ARBITRATION, FEAT_POWER, FEAT_TEMPERATURE, FEAT_ERRORS, FEAT_CACHE, FEAT_ATOMICITY,
};

/* Returns the stored value of feature @id, or NULL. A discovery controller has none. */
static uint32_t *
stored_value(struct nvmf_ctrl *c, uint8_t id)
{
	uint32_t i;

	for (i = 0; i < NVMF_FEATURES && !c->subsys->discovery; i++)
		if (stored[i] == id)
			return &c->feature[i];
	return NULL;
}

/*
 * Returns the result of the feature Number of Queues: the number of I/O queues, 0's based, in both
 * halves.
 */
static uint32_t
queues_result(const struct nvmf_ctrl *c)
{
	return (c->target->attr.io_queues - 1) * 0x10001u;
}

static bool
has_io_queues(const struct nvmf_ctrl *c)
{
	uint32_t i;

	for (i = 1; i <= NVMF_MAX_QUEUES; i++)
		if (c->queue[i] != NULL)
			return true;
	return false;
}

static void
set_queues(struct nvmf_req *r, uint32_t value)
{
	const struct nvmf_ctrl *c = r->q->ctrl;

	if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff)
		nvmf_refuse(r, SC_INVALID_FIELD);
	else if (has_io_queues(c))
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else
		nvmf_end(r, SC_OK, queues_result(c));
}

static uint32_t
events_of(const struct nvmf_ctrl *c)
{
	return c->subsys->discovery ? ASYNC_DISCOVERY : ASYNC_NS_ATTR;
}

static void
set_async(struct nvmf_req *r, uint32_t value)
{
	struct nvmf_ctrl *c = r->q->ctrl;

	/*
	 * Bits 7:0 enable SMART events. Every controller must accept them; this one never sends
	 * one.
	 */
	if ((value & ~(events_of(c) | 0xff)) != 0) {
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	c->async_enabled = value;
	nvmf_end(r, SC_OK, 0);
	nvmf_ctrl_events_send(c);
}

static void
set_features(struct nvmf_req *r)
{
	struct nvmf_ctrl *c = r->q->ctrl;
	uint32_t cdw10 = get32(r->cmd + AT_CDW10), value = get32(r->cmd + AT_CDW11);
	uint32_t *store = stored_value(c, (uint8_t)cdw10);

	if ((cdw10 & FEAT_SAVE) != 0) {
		nvmf_refuse(r, SC_NOT_SAVEABLE);
	} else if ((uint8_t)cdw10 == FEAT_HOST_ID && !c->subsys->discovery) {
		/* Connect has set the host identifier. */
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	} else if (!nvmf_exact(r, 0)) {
		return;
	} else if ((uint8_t)cdw10 == FEAT_KATO && !nvmf_kato_valid(c->target, c->subsys, value)) {
		nvmf_refuse(r, SC_KATO_INVALID);
	} else if ((uint8_t)cdw10 == FEAT_KATO) {
		nvmf_ctrl_kato(c, value);
		nvmf_end(r, SC_OK, 0);
	} else if ((uint8_t)cdw10 == FEAT_ASYNC) {
		set_async(r, value);
	} else if ((uint8_t)cdw10 == FEAT_QUEUES && !c->subsys->discovery) {
		set_queues(r, value);
	} else if (store != NULL && (uint8_t)cdw10 == FEAT_CACHE && (value & 1) == 0) {
		/*
		 * The volatile write cache cannot be disabled: writes may always wait in the page
		 * cache or in the device's cache.
		 */
		nvmf_refuse(r, SC_NOT_CHANGEABLE);
	} else if (store != NULL) {
		*store = value;
		nvmf_end(r, SC_OK, 0);
	} else {
		nvmf_refuse(r, SC_INVALID_FIELD);
	}
}

static void
get_host_id(struct nvmf_req *r)
{
	const struct nvmf_ctrl *c = r->q->ctrl;

	/* EXHID must be set: over Fabrics the host identifier has 16 bytes. */
	if ((get32(r->cmd + AT_CDW11) & 1) == 0) {
		nvmf_refuse(r, SC_INVALID_FIELD);
	} else if (nvmf_exact(r, sizeof(c->hostid))) {
		memcpy(r->mem, c->hostid, sizeof(c->hostid));
		r->push = sizeof(c->hostid);
		nvmf_end(r, SC_OK, 0);
	}
}

static void
get_features(struct nvmf_req *r)
{
	struct nvmf_ctrl *c = r->q->ctrl;
	uint32_t cdw10 = get32(r->cmd + AT_CDW10);
	const uint32_t *store = stored_value(c, (uint8_t)cdw10);

	if ((cdw10 & FEAT_SELECT) != 0)
		nvmf_refuse(r, SC_INVALID_FIELD);
	else if ((uint8_t)cdw10 == FEAT_HOST_ID && !c->subsys->discovery)
		get_host_id(r);
	else if (!nvmf_exact(r, 0))
		return;
	else if ((uint8_t)cdw10 == FEAT_KATO)
		nvmf_end(r, SC_OK, c->kato.ms);
	else if ((uint8_t)cdw10 == FEAT_ASYNC)
		nvmf_end(r, SC_OK, c->async_enabled);
	else if ((uint8_t)cdw10 == FEAT_QUEUES && !c->subsys->discovery)
		nvmf_end(r, SC_OK, queues_result(c));
	else if (store != NULL && (uint8_t)cdw10 == FEAT_CACHE)
		nvmf_end(r, SC_OK, 1);
	else if (store != NULL)
		nvmf_end(r, SC_OK, *store);
	else
		nvmf_refuse(r, SC_INVALID_FIELD);
}

static void
async_event(struct nvmf_req *r)
{
	struct nvmf_ctrl *c = r->q->ctrl;

	if (c->nasync == NVMF_ASYNC) {
		nvmf_refuse(r, SC_ASYNC_LIMIT);
		return;
	}
	r->state = REQ_WAITING;
	c->async[c->nasync++] = r;
	nvmf_ctrl_events_send(c);
}

/*
 * Abort: ends an Asynchronous Event Request. Other commands are not aborted: bit 0 of the result
 * says so.
 */
static void
abort_cmd(struct nvmf_req *r)
{
	struct nvmf_ctrl *c = r->q->ctrl;
	uint32_t cdw10 = get32(r->cmd + AT_CDW10), i;
	struct nvmf_req *found;

	for (i = 0; i < c->nasync; i++) {
		found = c->async[i];
		if ((cdw10 & 0xffff) != 0 || found->cid != cdw10 >> 16)
			continue;
		c->async[i] = c->async[--c->nasync];
		nvmf_end(found, SC_ABORT_REQUESTED, 0);
		nvmf_end(r, SC_OK, 0);
		return;
	}
	nvmf_end(r, SC_OK, 1);
}

void
nvmf_admin(struct nvmf_req *r)
{
	bool discovery = r->q->ctrl->subsys->discovery;
	uint8_t op = r->cmd[AT_OPCODE];

	if (op == ADM_IDENTIFY)
		nvmf_identify(r);
	else if (op == ADM_GET_LOG_PAGE)
		nvmf_log_page(r);
	else if (op == ADM_SET_FEATURES)
		set_features(r);
	else if (op == ADM_GET_FEATURES)
		get_features(r);
	else if (op != ADM_ASYNC_EVENT && op != ADM_KEEP_ALIVE && (op != ADM_ABORT || discovery))
		nvmf_refuse(r, SC_INVALID_OPCODE);
	else if (!nvmf_exact(r, 0))
		return;
	else if (op == ADM_ASYNC_EVENT)
		async_event(r);
	else if (op == ADM_KEEP_ALIVE)
		nvmf_end(r, SC_OK, 0);
	else
		abort_cmd(r);
}
