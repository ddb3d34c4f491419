/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Fabrics commands: Connect, Property Get, Property Set. */
#include <stdlib.h>
#include <string.h>

#include "nvmf_priv.h"

#define CAP_CQR 0x10000ull    /* CQR: queues must be contiguous, as over all fabrics */
#define CAP_TO  (30ull << 24) /* TO: CSTS.RDY follows CC.EN within 15 s */
#define CAP_CSS (1ull << 37)  /* CSS: NVM command set */

static uint64_t
cap(const struct nvmf_target *t)
{
	return CAP_CQR | CAP_TO | CAP_CSS | (t->attr.io_depth - 1);
}

/* ---- The Connect command */

/*
 * Ends a Connect command whose field at byte @at is invalid. CONNECT_IN_DATA in @at means a field
 * of the data, not of the command.
 */
static void
invalid(struct nvmf_req *r, uint32_t at)
{
	nvmf_end(r, SC_CONNECT_PARAM | SC_DNR, at);
}

/* Returns the qualified name at @at of the Connect data, or NULL if it is invalid. */
static const char *
nqn(const struct nvmf_req *r, uint32_t at)
{
	const char *name = (const char *)r->data + at;

	return memchr(name, '\0', NVMF_NQN) != NULL && nvmf_nqn_valid(name) ? name : NULL;
}

static struct nvmf_subsys *
find_subsys(struct nvmf_target *t, const char *name)
{
	uint32_t i;

	if (strcmp(name, NVMF_DISCOVERY) == 0)
		return &t->discovery;
	for (i = 0; i < t->attr.nsubsys; i++)
		if (!t->attr.subsys[i].inactive && strcmp(name, t->attr.subsys[i].nqn) == 0)
			return &t->attr.subsys[i];
	return NULL;
}

static void
install(struct nvmf_req *r, struct nvmf_ctrl *c)
{
	struct nvmf_queue *q = r->q;

	q->ctrl = c;
	c->queue[q->qid] = q;
	if (q->qid != 0 && !c->proxy)
		nvmf_ctrl_hold(q, c);
	q->size = (uint32_t)get16(r->cmd + AT_CON_SQSIZE) + 1;
	q->sqhd = 1; /* Connect itself was entry 0 */
	q->no_flow = (r->cmd[AT_CON_CATTR] & CATTR_NO_FLOW) != 0;
	nvmf_ctrl_alive(c);
	nvmf_end(r, SC_OK, c->cntlid);
}

static void
connect_admin(struct nvmf_req *r, struct nvmf_subsys *s, const char *host)
{
	struct nvmf_ctrl *c;

	if (get16(r->data + AT_COND_CNTLID) != NVMF_CNTLID_ANY) {
		invalid(r, AT_COND_CNTLID | CONNECT_IN_DATA);
		return;
	}
	if (!nvmf_kato_valid(r->q->t, s, get32(r->cmd + AT_CON_KATO))) {
		invalid(r, AT_CON_KATO);
		return;
	}
	/* The status has no SC_DNR, so Linux tries again (drivers/nvme/host/fabrics.c). */
	c = nvmf_host_busy(r->q->t, s, r->data) ? NULL : nvmf_ctrl_create(r->q->t, s);
	if (c == NULL) {
		nvmf_end(r, SC_CONNECT_BUSY, 0);
		return;
	}
	strcpy(c->hostnqn, host); /* nvmf_nqn_valid() has checked its length */
	memcpy(c->hostid, r->data + AT_COND_HOSTID, sizeof(c->hostid));
	nvmf_ctrl_kato(c, get32(r->cmd + AT_CON_KATO));
	install(r, c);
}

/*
 * Finds the controller for I/O queue @qid. Returns the status of Connect, and sets *@result to the
 * position of the invalid field, or to 0.
 */
static uint32_t
find_ctrl(struct nvmf_target *t, const struct nvmf_subsys *s, uint16_t qid, const uint8_t *data,
	  struct nvmf_ctrl **out, uint64_t *result)
{
	uint32_t id = get16(data + AT_COND_CNTLID);
	struct nvmf_ctrl *c = id == 0 || id > t->attr.ctrls ? NULL : t->ctrl[id - 1];

	*out = c;
	*result = 0;
	if (c == NULL || c->subsys != s)
		*result = AT_COND_CNTLID | CONNECT_IN_DATA;
	else if (strcmp(c->hostnqn, (const char *)data + AT_COND_HOSTNQN) != 0)
		*result = AT_COND_HOSTNQN | CONNECT_IN_DATA;
	else if (memcmp(c->hostid, data + AT_COND_HOSTID, sizeof(c->hostid)) != 0)
		*result = AT_COND_HOSTID | CONNECT_IN_DATA;
	else if (s->discovery || (c->csts & (CSTS_RDY | CSTS_CFS | CSTS_SHST_DONE)) != CSTS_RDY)
		*result = AT_CON_QID;
	else if (c->queue[qid] != NULL)
		return SC_COMMAND_SEQUENCE | SC_DNR;
	else
		return nvmf_ctrl_lingers(c) ? SC_CONNECT_BUSY : SC_OK;
	return SC_CONNECT_PARAM | SC_DNR;
}

static void
connect_io(struct nvmf_req *r, const struct nvmf_subsys *s)
{
	struct nvmf_ctrl *c;
	uint64_t result;
	uint32_t status;

	if (r->q->t->attr.remote) {
		r->state = REQ_ATTACHING;
		r->q->t->attr.ops->attach(r->q, r);
		return;
	}
	status = find_ctrl(r->q->t, s, r->q->qid, r->data, &c, &result);
	if (status == SC_OK)
		install(r, c);
	else
		nvmf_end(r, status, result);
}

/* Continues Connect when its data has arrived. */
static void
connect_data(struct nvmf_req *r)
{
	const char *sub = nqn(r, AT_COND_SUBNQN), *host = nqn(r, AT_COND_HOSTNQN);
	struct nvmf_subsys *s = sub == NULL ? NULL : find_subsys(r->q->t, sub);

	/* A second Connect may have arrived before the data of the first one. */
	if (r->q->ctrl != NULL)
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else if (s == NULL)
		invalid(r, AT_COND_SUBNQN | CONNECT_IN_DATA);
	else if (host == NULL)
		invalid(r, AT_COND_HOSTNQN | CONNECT_IN_DATA);
	else if (!nvmf_host_allowed(s, host))
		nvmf_refuse(r, SC_CONNECT_HOST);
	else if (r->q->qid == 0 && r->q->t->attr.remote)
		invalid(r, AT_CON_QID);
	else if (r->q->qid == 0)
		connect_admin(r, s, host);
	else
		connect_io(r, s);
}

static void
connect(struct nvmf_req *r)
{
	uint32_t sqsize = get16(r->cmd + AT_CON_SQSIZE);

	if (r->q->ctrl != NULL || r->q->ended)
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else if (get16(r->cmd + AT_CON_RECFMT) != 0)
		nvmf_refuse(r, SC_CONNECT_FORMAT);
	else if (get16(r->cmd + AT_CON_QID) != r->q->qid)
		invalid(r, AT_CON_QID);
	else if (sqsize == 0 || sqsize >= r->q->depth)
		invalid(r, AT_CON_SQSIZE);
	else if (nvmf_exact(r, NVMF_CONNECT_DATA))
		nvmf_pull(r, NVMF_CONNECT_DATA, connect_data);
}

/* ---- Controllers of another target */

uint32_t
nvmf_attach(struct nvmf_queue *q, const uint8_t *data, uint64_t *result)
{
	const char *sub = (const char *)data + AT_COND_SUBNQN;
	struct nvmf_subsys *s = find_subsys(q->t, sub);
	struct nvmf_ctrl *c;
	uint32_t status;

	*result = AT_COND_SUBNQN | CONNECT_IN_DATA;
	if (s == NULL)
		return SC_CONNECT_PARAM | SC_DNR;
	*result = 0;
	if (!nvmf_host_allowed(s, (const char *)data + AT_COND_HOSTNQN))
		return SC_CONNECT_HOST | SC_DNR;
	status = find_ctrl(q->t, s, q->qid, data, &c, result);
	if (status != SC_OK)
		return status;
	q->ctrl = c;
	c->queue[q->qid] = q;
	nvmf_ctrl_hold(q, c);
	nvmf_ctrl_alive(c);
	*result = c->cntlid;
	return SC_OK;
}

void
nvmf_attached(struct nvmf_req *r, uint32_t status, uint64_t result)
{
	struct nvmf_subsys *s = find_subsys(r->q->t, (const char *)r->data + AT_COND_SUBNQN);
	struct nvmf_ctrl *c = NULL;

	if (r->q->closed)
		return;
	if (status == SC_OK && s != NULL)
		c = calloc(1, sizeof(*c));
	if (c == NULL && status == SC_OK) {
		/*
		 * The other target has attached the queue. It releases the queue when the
		 * connection ends.
		 */
		r->q->t->attr.ops->close(r->q, "its subsystem was removed, or no memory is left");
		return;
	}
	if (c == NULL) {
		nvmf_end(r, status, result);
		return;
	}
	c->proxy = true;
	c->target = r->q->t;
	c->subsys = s;
	c->cntlid = (uint16_t)result;
	c->csts = CSTS_RDY;
	install(r, c);
}

/* ---- Property Get and Property Set */

/*
 * Returns the property CSTS. A reset or shutdown is in progress until the requests of the closed
 * I/O queues have ended. Linux waits for its end before it connects again, and then finds the
 * controller free.
 */
static uint32_t
csts_of(const struct nvmf_ctrl *c)
{
	uint32_t csts = c->csts;

	if (!nvmf_ctrl_lingers(c))
		return csts;
	if ((c->cc & CC_EN) == 0)
		csts |= CSTS_RDY;
	if ((csts & CSTS_SHST_DONE) != 0)
		csts ^= CSTS_SHST_DONE | CSTS_SHST_BUSY;
	return csts;
}

static void
property_get(struct nvmf_req *r)
{
	const struct nvmf_ctrl *c = r->q->ctrl;
	bool wide = (r->cmd[AT_PROP_ATTRIB] & 7) == 1;
	uint64_t value;

	if ((r->cmd[AT_PROP_ATTRIB] & 7) > 1) {
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	switch (get32(r->cmd + AT_PROP_OFFSET)) {
	case PROP_CAP:
		value = cap(c->target);
		break;
	case PROP_VS:
		value = NVMF_VERSION;
		break;
	case PROP_CC:
		value = c->cc;
		break;
	case PROP_CSTS:
		value = csts_of(c);
		break;
	default:
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	/* The size must be that of the property: only CAP has 8 bytes. */
	if (wide != (get32(r->cmd + AT_PROP_OFFSET) == PROP_CAP))
		nvmf_refuse(r, SC_INVALID_FIELD);
	else
		nvmf_end(r, SC_OK, value);
}

/* Executes a write of the controller configuration: enable, disable, shutdown. */
static void
configure(struct nvmf_ctrl *c, uint32_t cc)
{
	bool enable = (cc & ~c->cc & CC_EN) != 0, disable = (~cc & c->cc & CC_EN) != 0;
	bool valid = (cc & CC_FORMAT) == 0 &&
		     (c->subsys->discovery || (cc & CC_ENTRIES) == CC_ENTRIES_NVM);

	c->cc = cc;
	if (enable)
		c->csts = valid ? CSTS_RDY : CSTS_CFS;
	if (disable) {
		c->csts = 0;
		nvmf_ctrl_disable(c);
	}
	if ((cc & CC_SHN) != 0) {
		c->csts |= CSTS_SHST_DONE;
		nvmf_ctrl_end_io(c, NULL);
	} else if (enable) {
		c->csts &= ~CSTS_SHST_DONE;
	}
}

static void
property_set(struct nvmf_req *r)
{
	if ((r->cmd[AT_PROP_ATTRIB] & 7) != 0 || get32(r->cmd + AT_PROP_OFFSET) != PROP_CC) {
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	configure(r->q->ctrl, get32(r->cmd + AT_PROP_VALUE));
	nvmf_end(r, SC_OK, 0);
}

void
nvmf_fabrics(struct nvmf_req *r)
{
	uint8_t type = r->cmd[AT_FCTYPE];

	if (type == FC_CONNECT)
		connect(r);
	else if (r->q->ctrl == NULL)
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else if (r->q->qid != 0 || (type != FC_PROPERTY_GET && type != FC_PROPERTY_SET))
		nvmf_refuse(r, SC_INVALID_OPCODE);
	else if (!nvmf_exact(r, 0))
		return;
	else if (type == FC_PROPERTY_GET)
		property_get(r);
	else
		property_set(r);
}
