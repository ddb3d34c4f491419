/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The engine: its creation, events of the transport, time limits, responses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvmf_ini.h"

#define HOST_NQN "nqn.2026-01.org.example:bluebell"

/* ---- Creation of the engine */

void
bb_nvmf_attr_init(struct bb_nvmf_attr *attr)
{
	*attr = (struct bb_nvmf_attr){
		.hostnqn = HOST_NQN,
		.nsid = 1,
		.depth = 32,
		.timeout_ms = 30000,
		.keep_alive_ms = 15000,
	};
}

static bool
nqn_valid(const char *nqn)
{
	size_t len = strnlen(nqn, NVMF_NQN);

	return len >= 5 && len <= NVMF_NQN_MAX && memcmp(nqn, "nqn.", 4) == 0;
}

int
nvmf_ini_attr_check(const struct bb_nvmf_attr *attr, const char **why)
{
	*why = "the name of the subsystem or of the host is no qualified name";
	if (attr->subnqn == NULL || !nqn_valid(attr->subnqn) ||
	    (attr->hostnqn != NULL && !nqn_valid(attr->hostnqn)))
		return -EINVAL;
	*why = "the address is missing, or a number is out of its range";
	if (attr->addr == NULL || attr->nsid == 0 || attr->nsid == NVMF_NSID_ALL ||
	    attr->depth == 0 || attr->timeout_ms == 0 || attr->timeout_ms > 3600000)
		return -EINVAL;
	return 0;
}

/* Computes the host identifier (16 bytes) from the name of the host, by 64-bit FNV-1a hashes. */
static void
choose_hostid(struct nvmf_ini *e, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;
	uint32_t i;

	for (i = 0; name[i] != '\0'; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3ull;
	put64(e->hostid, h);
	put64(e->hostid + 8, (h ^ 0xff) * 0x100000001b3ull);
}

int
nvmf_ini_create(const struct nvmf_ini_attr *attr, struct nvmf_ini **out)
{
	struct nvmf_ini *e = calloc(1, sizeof(*e));
	uint16_t i;

	if (e == NULL)
		return -ENOMEM;
	e->attr = *attr;
	if (attr->nvmf.hostnqn == NULL)
		e->attr.nvmf.hostnqn = HOST_NQN;
	e->depth = attr->nvmf.depth < BB_NVMF_MAX_DEPTH ? attr->nvmf.depth : BB_NVMF_MAX_DEPTH;
	e->slot = calloc(e->depth, sizeof(*e->slot));
	if (e->slot == NULL) {
		free(e);
		return -ENOMEM;
	}
	choose_hostid(e, e->attr.nvmf.hostnqn);
	for (i = 0; i < e->depth; i++)
		e->slot[i].next = (uint16_t)(i + 1);
	e->free.last = (uint16_t)(e->depth - 1);
	e->queued.first = e->done.first = (uint16_t)e->depth;
	*out = e;
	return 0;
}

void
nvmf_ini_destroy(struct nvmf_ini *e)
{
	free(e->slot);
	free(e);
}

/* ---- Events of the transport */

void
nvmf_ini_lost(struct nvmf_ini *e, int error, const char *why)
{
	nvmf_ini_lose(e, INI_BROKEN, error, "%s", why);
}

void
nvmf_ini_connected(struct nvmf_ini *e, uint16_t qid, const void *rep, uint32_t len)
{
	uint32_t size;

	if (e->step != (qid == 0 ? INI_CM_ADMIN : INI_CM_IO))
		return;
	size = len < 4 ? 0 : get16((const uint8_t *)rep + 2);
	if (len < 4 || get16(rep) != 0 || size == 0) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "the peer is no NVMe target: its private data is invalid");
		return;
	}
	if (qid != 0 && size < e->window)
		e->window = size;
	nvmf_ini_step_set(e, qid == 0 ? INI_CONNECT_ADMIN : INI_CONNECT_IO);
	nvmf_ini_admin_send(e);
}

void
nvmf_ini_rejected(struct nvmf_ini *e, uint16_t qid, const void *rej, uint32_t len, const char *why)
{
	static const char *const texts[] = {
		[NVMF_CM_LENGTH] = "invalid length of the private data",
		[NVMF_CM_FORMAT] = "unknown record format",
		[NVMF_CM_QID] = "invalid number of the queue",
		[NVMF_CM_HSQSIZE] = "invalid size of the send queue",
		[NVMF_CM_HRQSIZE] = "invalid size of the receive queue",
		[NVMF_CM_RESOURCES] = "it has no queue left",
		[NVMF_CM_IRD] = "invalid number of RDMA READs",
	};
	uint32_t status = len < 4 ? 0 : get16((const uint8_t *)rej + 2);

	if (e->step != (qid == 0 ? INI_CM_ADMIN : INI_CM_IO))
		return;
	if (status == 0 || status >= sizeof(texts) / sizeof(texts[0]))
		nvmf_ini_lose(e, INI_BROKEN, -ECONNREFUSED, "%s", why);
	else
		nvmf_ini_lose(e, status == NVMF_CM_RESOURCES ? INI_BUSY : INI_FATAL, -ECONNREFUSED,
			      "the target refuses queue %u: %s", qid, texts[status]);
}

/* ---- Time limits */

/* Sends Keep Alive, or ends the connection if the target has not answered the last one. */
static void
keep_alive(struct nvmf_ini *e)
{
	if (e->attr.nvmf.keep_alive_ms == 0 || e->step < INI_CONTROLLER ||
	    (e->keep_alive_sent ? e->now < e->alive_by : e->clock < e->alive))
		return;
	if (e->keep_alive_sent)
		nvmf_ini_lose(e, INI_BROKEN, -ETIMEDOUT,
			      "the target has not answered Keep Alive for %u ms",
			      e->attr.nvmf.timeout_ms);
	else
		nvmf_ini_admin_keep_alive(e);
}

void
nvmf_ini_time(struct nvmf_ini *e, uint64_t now)
{
	uint64_t step = now - e->clock;

	e->clock = now;
	e->now += step < INI_STEP_MAX ? step : INI_STEP_MAX;
}

void
nvmf_ini_run(struct nvmf_ini *e)
{
	bool restoring = e->was_live && e->step != INI_LIVE;
	uint64_t now = e->now;

	if (e->step == INI_OVER)
		return;
	if (restoring && now - e->lost >= e->attr.nvmf.reconnect_ms) {
		if (e->step != INI_PAUSE)
			e->attr.ops->disconnect(e);
		nvmf_ini_over(e);
		return;
	}
	if (e->step == INI_PAUSE) {
		if (!e->losing) { /* the first attempt to connect */
			e->losing = true;
			e->lost = now;
			e->pause = INI_PAUSE_MIN;
		}
		if (now >= e->deadline)
			nvmf_ini_connect_queue(e, 0);
		return;
	}
	keep_alive(e);
	if (e->step == INI_PAUSE || e->step == INI_OVER)
		return;
	if (e->step == INI_LIVE)
		nvmf_ini_io_time(e);
	else if (now >= e->deadline)
		nvmf_ini_lose(e, INI_BROKEN, -ETIMEDOUT, "the target has not answered %s for %u ms",
			      nvmf_ini_step_name(e->step), e->attr.nvmf.timeout_ms);
	else if (e->step == INI_READY && !e->admin_sent && now >= e->poll_at)
		nvmf_ini_admin_send(e);
}

/* ---- Responses of the target */

void
nvmf_ini_response(struct nvmf_ini *e, uint16_t qid, const struct nvmf_ini_response *r)
{
	uint32_t size = qid == 0 ? NVMF_ADMIN_DEPTH : e->io_size, status;
	uint8_t cqe[NVMF_CQE];
	uint16_t cid;
	bool step;

	if (e->step == INI_PAUSE || e->step == INI_OVER)
		return;
	if (r->len != NVMF_CQE) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO, "a response of the target has %u bytes",
			      r->len);
		return;
	}
	memcpy(cqe, r->bytes, sizeof(cqe));
	cid = get16(cqe + AT_CQE_CID);
	status = (uint32_t)get16(cqe + AT_CQE_STATUS) >> 1 & (SC_CODE | SC_DNR);
	/* SPDK sets the queue number (SQID) of a response to 0 (lib/nvmf/ctrlr.c). */
	if (get16(cqe + AT_CQE_SQID) != 0 && get16(cqe + AT_CQE_SQID) != qid) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "a response of the target is for another queue");
		return;
	}
	if (get16(cqe + AT_CQE_SQHD) >= size) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "a response of the target has a head of %u in a queue of %u entries",
			      get16(cqe + AT_CQE_SQHD), size);
		return;
	}
	if (qid != 0 && e->step == INI_LIVE) {
		nvmf_ini_io_response(e, cid, status, r);
		return;
	}
	step = e->admin_sent && cid == e->admin_cid && (qid != 0) == (e->step == INI_CONNECT_IO);
	if (r->invalidated) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "the target has invalidated a key without request");
	} else if (step) {
		e->admin_sent = false;
		nvmf_ini_admin_response(e, status, get64(cqe + AT_CQE_RESULT));
	} else if (qid == 0 && e->keep_alive_sent && cid == e->keep_alive_cid) {
		e->keep_alive_sent = false;
		e->alive = e->clock + e->attr.nvmf.keep_alive_ms / 2;
		if ((status & SC_CODE) != SC_OK)
			nvmf_ini_lose(e, INI_BROKEN, -EIO, "Keep Alive failed: status 0x%x",
				      status);
	} else {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "a response of the target is for no outstanding command");
	}
}
