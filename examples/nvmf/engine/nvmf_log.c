/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Get Log Page. A host may read any part of a page, so struct window selects that part. */
#include <string.h>

#include "nvmf_priv.h"

#define ENTRY 1024u /* size of the header and of each entry of the discovery log, in bytes */

/* The part of a page that the host wants: @len bytes at @offset. */
struct window {
	uint8_t *to;
	uint64_t offset;
	uint32_t len;
};

/* Writes @n bytes at offset @at of the page, as far as they are in the window. */
static void
show(const struct window *w, uint64_t at, const void *bytes, uint32_t n)
{
	const uint8_t *from = bytes;
	uint64_t skip = at < w->offset ? w->offset - at : 0;

	if (skip >= n)
		return;
	at = at + skip - w->offset;
	if (at >= w->len)
		return;
	n -= (uint32_t)skip;
	if (n > w->len - at)
		n = w->len - (uint32_t)at;
	memcpy(w->to + at, from + skip, n);
}

static void
errors(const struct window *w, const struct nvmf_ctrl *c)
{
	uint64_t n = c->errors < NVMF_ERRORS ? c->errors : NVMF_ERRORS, i;

	for (i = 0; i < n; i++) {
		const struct nvmf_error *e = &c->error[(c->errors - 1 - i) % NVMF_ERRORS];
		uint8_t b[64] = {0};

		put64(b, e->count);
		put16(b + 8, e->sqid);
		put16(b + 10, e->cid);
		put16(b + 12, e->status);
		put16(b + 14, 0xffff); /* the position of the wrong field is not reported */
		put64(b + 16, e->lba);
		put32(b + 24, e->nsid);
		show(w, i * sizeof(b), b, sizeof(b));
	}
}

/* Converts bytes to the unit of the SMART page, 512,000 bytes. Rounds up. */
static uint64_t
data_units(uint64_t bytes)
{
	return bytes / 512000 + (bytes % 512000 != 0);
}

static void
smart(const struct window *w, const struct nvmf_ctrl *c, uint32_t nsid)
{
	uint64_t reads = 0, writes = 0, in = 0, out = 0;
	uint8_t b[512] = {0};
	uint32_t i;

	for (i = 0; i < c->subsys->max_ns; i++) {
		const struct nvmf_ns *ns = c->subsys->ns[i];

		if (ns == NULL || (nsid != NVMF_NSID_ALL && nsid != i + 1))
			continue;
		for (; ns != NULL; ns = ns->next) {
			reads += __atomic_load_n(&ns->reads, __ATOMIC_RELAXED);
			writes += __atomic_load_n(&ns->writes, __ATOMIC_RELAXED);
			out += __atomic_load_n(&ns->bytes_read, __ATOMIC_RELAXED);
			in += __atomic_load_n(&ns->bytes_written, __ATOMIC_RELAXED);
		}
	}
	b[3] = 100; /* available spare, percent */
	b[4] = 10;  /* threshold of the available spare, percent */
	put64(b + 32, data_units(out));
	put64(b + 48, data_units(in));
	put64(b + 64, reads);
	put64(b + 80, writes);
	put64(b + 176, c->errors);
	show(w, 0, b, sizeof(b));
}

static void
firmware(const struct window *w)
{
	uint8_t b[512] = {0};

	b[0] = 1; /* firmware slot 1 is active */
	memcpy(b + 8, "1       ", 8);
	show(w, 0, b, sizeof(b));
}

static void
changed(const struct window *w, const struct nvmf_ctrl *c)
{
	uint32_t i, n = c->nchanged > NVMF_CHANGED ? 1 : c->nchanged;
	uint8_t b[4];

	for (i = 0; i < n; i++) {
		put32(b, c->nchanged > NVMF_CHANGED ? NVMF_NSID_ALL : c->changed[i]);
		show(w, 4ull * i, b, sizeof(b));
	}
}

static void
effects(const struct window *w)
{
	static const uint8_t admin[] = {ADM_GET_LOG_PAGE, ADM_IDENTIFY,     ADM_ABORT,
					ADM_SET_FEATURES, ADM_GET_FEATURES, ADM_ASYNC_EVENT,
					ADM_KEEP_ALIVE};
	/* The second number of a pair says that the command changes data (LBCC). */
	static const uint8_t nvm[][2] = {{NVM_FLUSH, 0},        {NVM_WRITE, 1}, {NVM_READ, 0},
					 {NVM_WRITE_ZEROES, 1}, {NVM_DSM, 1},   {NVM_COMPARE, 0}};
	uint8_t b[4] = {1};
	uint32_t i;

	for (i = 0; i < sizeof(admin); i++)
		show(w, 4ull * admin[i], b, sizeof(b));
	for (i = 0; i < sizeof(nvm) / sizeof(nvm[0]); i++) {
		b[0] = nvm[i][1] != 0 ? 3 : 1;
		show(w, 1024 + 4ull * nvm[i][0], b, sizeof(b));
	}
}

/* Returns the maximum number of entries of the discovery log. */
static uint64_t
discovery_entries(const struct nvmf_target_attr *attr)
{
	return (uint64_t)attr->nsubsys * attr->nports;
}

/* Positions of fields: SPDK include/spdk/nvmf_spec.h, struct spdk_nvmf_discovery_log_page. */
static void
discovery(const struct window *w, const struct nvmf_ctrl *c)
{
	const struct nvmf_target_attr *attr = &c->target->attr;
	uint8_t b[ENTRY];
	uint32_t i;
	uint64_t n = 0;

	for (i = 0; i < discovery_entries(attr); i++) {
		const struct nvmf_subsys *s = &attr->subsys[i / attr->nports];
		const struct nvmf_port *port = &attr->ports[i % attr->nports];

		if (!nvmf_host_allowed(s, c->hostnqn))
			continue;
		memset(b, 0, sizeof(b));
		b[0] = 1; /* transport type: RDMA */
		b[1] = port->adrfam;
		b[2] = 2;    /* subsystem type: NVM subsystem */
		b[3] = 0x04; /* flow control of submission queues may be disabled */
		put16(b + 4, i % attr->nports + 1);
		put16(b + 6, NVMF_CNTLID_ANY);
		put16(b + 8, NVMF_ADMIN_DEPTH);
		strcpy((char *)b + 32, port->trsvcid);
		strcpy((char *)b + 256, s->nqn);
		strcpy((char *)b + 512, port->traddr);
		b[768] = 1; /* queue pair type: reliable connected */
		b[769] = 4; /* provider type: RoCE v2 */
		b[770] = 1; /* connection management: RDMA CM */
		show(w, ENTRY * (1 + n++), b, sizeof(b));
	}
	memset(b, 0, sizeof(b));
	put64(b, c->target->genctr);
	put64(b + 8, n);
	show(w, 0, b, sizeof(b));
}

/* Returns the size in bytes of log page @id, or 0 if the controller does not have the page. */
static uint64_t
page_size(const struct nvmf_ctrl *c, uint8_t id)
{
	if (c->subsys->discovery)
		return id == LOG_DISCOVERY ? ENTRY * (1 + discovery_entries(&c->target->attr)) : 0;
	switch (id) {
	case LOG_ERROR:
		return 64 * NVMF_ERRORS;
	case LOG_SMART:
	case LOG_FIRMWARE:
		return 512;
	case LOG_CHANGED_NS:
	case LOG_EFFECTS:
		return NVMF_PAGE;
	default:
		return 0;
	}
}

/* Clears and unmasks the event that announced log page @id, unless the host has set the bit RAE. */
static void
unmask(struct nvmf_ctrl *c, uint8_t id, uint32_t cdw10)
{
	if ((cdw10 & LOG_RETAIN) != 0 || (id != LOG_CHANGED_NS && id != LOG_DISCOVERY))
		return;
	if (id == LOG_CHANGED_NS)
		c->nchanged = 0;
	c->async_masked &= id == LOG_CHANGED_NS ? ~ASYNC_NS_ATTR : ~ASYNC_DISCOVERY;
	c->async_pending &= id == LOG_CHANGED_NS ? ~ASYNC_NS_ATTR : ~ASYNC_DISCOVERY;
}

void
nvmf_log_page(struct nvmf_req *r)
{
	struct nvmf_ctrl *c = r->q->ctrl;
	uint32_t cdw10 = get32(r->cmd + AT_CDW10), nsid = get32(r->cmd + AT_NSID);
	uint64_t dwords = (cdw10 >> 16 | (uint64_t)get16(r->cmd + AT_CDW11) << 16) + 1;
	struct window w = {r->mem, get64(r->cmd + AT_CDW12), 0};
	uint8_t id = (uint8_t)cdw10;
	uint64_t size = page_size(c, id);

	if (size == 0) {
		nvmf_refuse(r, SC_INVALID_LOG_PAGE);
		return;
	}
	if (dwords > c->target->attr.max_io / 4 || w.offset % 4 != 0 || w.offset > size) {
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	if (id == LOG_SMART && nsid != 0 && nsid != NVMF_NSID_ALL &&
	    nvmf_ctrl_ns(c, nsid) == NULL) {
		nvmf_refuse(r, SC_INVALID_NAMESPACE);
		return;
	}
	w.len = (uint32_t)dwords * 4;
	if (!nvmf_exact(r, w.len))
		return;
	memset(r->mem, 0, w.len);
	if (id == LOG_ERROR)
		errors(&w, c);
	else if (id == LOG_SMART)
		smart(&w, c, nsid == 0 ? NVMF_NSID_ALL : nsid);
	else if (id == LOG_FIRMWARE)
		firmware(&w);
	else if (id == LOG_CHANGED_NS)
		changed(&w, c);
	else if (id == LOG_EFFECTS)
		effects(&w);
	else
		discovery(&w, c);
	unmask(c, id, cdw10);
	r->push = w.len;
	nvmf_end(r, SC_OK, 0);
}
