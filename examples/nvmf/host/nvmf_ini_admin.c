/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of the steps that connect and identify the controller, and checks of their results. */
#include <errno.h>
#include <string.h>

#include "nvmf_ini.h"

#define CAP_CSS_NVM (1ull << 37) /* the controller has the NVM command set */
#define AUTH        0xffff0000u  /* result of Connect: the target requires authentication */
#define CNTLID_MAX  0xffefu
#define POLL_MS     10u /* ms between two reads of CSTS */
#define MAX_IO      (1u << 20)

/*
 * Byte offsets and bits in the data of Identify Controller: Linux include/linux/nvme.h, struct
 * nvme_id_ctrl.
 */
#define AT_MDTS      77
#define AT_CNTLID    78
#define AT_MAXCMD    514
#define AT_NN        516
#define AT_ONCS      520
#define AT_SGLS      536
#define AT_IOCCSZ    1792
#define AT_IORCSZ    1796
#define SGLS_ANY     0x3u
#define SGLS_KEYED   0x4u
#define ONCS_COMPARE 0x1u
#define ONCS_DSM     0x4u
#define ONCS_ZEROES  0x8u

/* Byte offsets in the data of Identify Namespace: struct nvme_id_ns. */
#define AT_NSZE   0
#define AT_NLBAF  25
#define AT_FLBAS  26
#define AT_DPS    29
#define AT_NSATTR 99
#define AT_IDS    104 /* NGUID and EUI-64 */
#define AT_LBAF   128 /* formats of 4 bytes each: bytes of metadata (2), log2 of the block size */

/* ---- Commands */

static void
command(struct nvmf_ini *e, uint8_t *cmd, uint8_t op, uint32_t len)
{
	memset(cmd, 0, NVMF_SQE);
	cmd[AT_OPCODE] = op;
	cmd[AT_FLAGS] = PSDT_SGL;
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_KEYED;
	if (len == 0)
		return;
	put64(cmd + AT_SGL + AT_SGL_ADDR, e->attr.shared_addr);
	put32(cmd + AT_SGL + AT_SGL_LEN, len);
	put32(cmd + AT_SGL + AT_SGL_KEY, e->attr.shared_key);
	/* If the target writes no data, the data of an earlier command must not be read. */
	memset(e->attr.shared, 0, len);
}

static void
fabrics(struct nvmf_ini *e, uint8_t *cmd, enum nvmf_fctype type, uint32_t len)
{
	command(e, cmd, OPC_FABRICS, len);
	cmd[AT_FCTYPE] = (uint8_t)type;
}

static void
connect_command(struct nvmf_ini *e, uint8_t *cmd, uint16_t qid)
{
	uint8_t *data = e->attr.shared;

	fabrics(e, cmd, FC_CONNECT, NVMF_CONNECT_DATA);
	put16(cmd + AT_CON_QID, qid);
	put16(cmd + AT_CON_SQSIZE, (qid == 0 ? NVMF_ADMIN_DEPTH : e->io_size) - 1);
	put32(cmd + AT_CON_KATO, qid == 0 ? e->attr.nvmf.keep_alive_ms : 0);
	memcpy(data + AT_COND_HOSTID, e->hostid, sizeof(e->hostid));
	put16(data + AT_COND_CNTLID, qid == 0 ? NVMF_CNTLID_ANY : e->cntlid);
	/* nvmf_ini_attr_check() has checked the lengths. */
	strcpy((char *)data + AT_COND_SUBNQN, e->attr.nvmf.subnqn);
	strcpy((char *)data + AT_COND_HOSTNQN, e->attr.nvmf.hostnqn);
}

static void
property(struct nvmf_ini *e, uint8_t *cmd, uint32_t offset)
{
	fabrics(e, cmd, FC_PROPERTY_GET, 0);
	cmd[AT_PROP_ATTRIB] = offset == PROP_CAP; /* 1: the property has 8 bytes; 0: 4 bytes */
	put32(cmd + AT_PROP_OFFSET, offset);
}

static void
identify(struct nvmf_ini *e, uint8_t *cmd, uint8_t cns, uint32_t nsid)
{
	command(e, cmd, ADM_IDENTIFY, NVMF_PAGE);
	cmd[AT_CDW10] = cns;
	put32(cmd + AT_NSID, nsid);
}

static void
send(struct nvmf_ini *e, uint16_t qid, uint8_t *cmd, uint16_t cid)
{
	int rc;

	put16(cmd + AT_CID, cid);
	rc = e->attr.ops->send(e, qid, cmd);
	if (rc != 0)
		nvmf_ini_lose(e, INI_BROKEN, rc, "a command cannot be sent: %s", strerror(-rc));
}

void
nvmf_ini_admin_send(struct nvmf_ini *e)
{
	uint8_t cmd[NVMF_SQE];

	switch (e->step) {
	case INI_CONNECT_ADMIN:
		connect_command(e, cmd, 0);
		break;
	case INI_CAP:
		property(e, cmd, PROP_CAP);
		break;
	case INI_ENABLE:
		fabrics(e, cmd, FC_PROPERTY_SET, 0);
		put32(cmd + AT_PROP_OFFSET, PROP_CC);
		put32(cmd + AT_PROP_VALUE, CC_ENTRIES_NVM | CC_EN);
		break;
	case INI_READY:
		property(e, cmd, PROP_CSTS);
		break;
	case INI_CONTROLLER:
		identify(e, cmd, CNS_CONTROLLER, 0);
		break;
	case INI_QUEUES:
		command(e, cmd, ADM_SET_FEATURES, 0);
		cmd[AT_CDW10] = FEAT_QUEUES; /* CDW11 stays 0: one I/O queue */
		break;
	case INI_NAMESPACE:
		identify(e, cmd, CNS_NAMESPACE, e->attr.nvmf.nsid);
		break;
	case INI_CONNECT_IO:
		connect_command(e, cmd, 1);
		break;
	default:
		return;
	}
	/* The highest bit of an id marks a Keep Alive command. */
	e->admin_cid = (e->admin_cid + 1) & 0x7fff;
	e->admin_sent = true;
	send(e, e->step == INI_CONNECT_IO, cmd, e->admin_cid);
}

void
nvmf_ini_admin_keep_alive(struct nvmf_ini *e)
{
	uint8_t cmd[NVMF_SQE];

	command(e, cmd, ADM_KEEP_ALIVE, 0);
	e->keep_alive_cid = (uint16_t)(e->keep_alive_cid + 1) | 0x8000;
	e->keep_alive_sent = true;
	e->alive_by = e->now + e->attr.nvmf.timeout_ms;
	send(e, 0, cmd, e->keep_alive_cid);
}

/* ---- Results. Each function returns NULL, or an error that continues "the target ...". */

static const char *
take_connect(struct nvmf_ini *e, uint64_t result)
{
	if ((result & AUTH) != 0)
		return "requires authentication, which this initiator does not have";
	if ((result & 0xffff) > CNTLID_MAX)
		return "has given an invalid controller id";
	e->cntlid = (uint16_t)result;
	e->alive = e->clock + e->attr.nvmf.keep_alive_ms / 2;
	return NULL;
}

static const char *
take_cap(struct nvmf_ini *e, uint64_t cap)
{
	uint32_t to = (uint32_t)(cap >> 24) & 0xff;

	if ((cap & 0xffff) == 0)
		return "permits only queues of one entry";
	if ((cap >> 48 & 0xf) != 0 || (cap & CAP_CSS_NVM) == 0)
		return "has no pages of 4096 bytes, or no NVM command set";
	e->max_size = (uint32_t)(cap & 0xffff) + 1;
	e->ready_by = e->now + (to == 0 ? 1 : to) * 500ull;
	return NULL;
}

static const char *
take_controller(struct nvmf_ini *e)
{
	const uint8_t *d = e->attr.shared;
	uint32_t mdts = d[AT_MDTS], sgls = get32(d + AT_SGLS), max = get16(d + AT_MAXCMD);
	uint32_t oncs = get16(d + AT_ONCS);

	if (get16(d + AT_CNTLID) != e->cntlid)
		return "identifies another controller than it has connected";
	if ((sgls & SGLS_ANY) == 0 || (sgls & SGLS_KEYED) == 0)
		return "does not support keyed SGLs";
	if (get32(d + AT_IOCCSZ) < NVMF_SQE / 16 || get32(d + AT_IORCSZ) != NVMF_CQE / 16)
		return "has capsules of another size than 64 and 16 bytes";
	if (e->attr.nvmf.nsid > get32(d + AT_NN))
		return "has no namespace of this number";
	e->next.max_io = mdts == 0 || mdts > 8 ? MAX_IO : NVMF_PAGE << mdts;
	e->next.compare = (oncs & ONCS_COMPARE) != 0;
	e->next.discard = (oncs & ONCS_DSM) != 0;
	e->next.zeroes = (oncs & ONCS_ZEROES) != 0;
	e->window = e->depth;
	if (max != 0 && max < e->window)
		e->window = max;
	if (e->max_size - 1 < e->window)
		e->window = e->max_size - 1;
	e->io_size = e->window + 1;
	return NULL;
}

static const char *
take_namespace(struct nvmf_ini *e)
{
	const uint8_t *d = e->attr.shared;
	uint64_t nsze = get64(d + AT_NSZE);
	uint8_t flbas = d[AT_FLBAS], nlbaf = d[AT_NLBAF], id[sizeof(e->id)], shift;
	uint32_t format = (flbas & 0xf) | (nlbaf > 15 ? (uint32_t)(flbas & 0x60) >> 1 : 0);

	memcpy(id, d + AT_IDS, sizeof(id));
	if (nsze == 0)
		return "has no namespace of this number";
	if (format > nlbaf || format > 63)
		return "has an invalid format of the namespace";
	d += AT_LBAF + 4 * (size_t)format;
	shift = d[2];
	if (get16(d) != 0 || (e->attr.shared[AT_DPS] & 7) != 0)
		return "has metadata in the namespace, which this initiator does not support";
	if (shift < 9 || shift > 16 || 1u << shift > e->next.max_io)
		return "has blocks of a size outside of 512 to 65536 bytes, or above its largest transfer";
	if (nsze > (uint64_t)INT64_MAX >> shift)
		return "has an invalid size of the namespace";
	e->next.read_only = (e->attr.shared[AT_NSATTR] & 1) != 0;
	e->next.block = 1u << shift;
	e->next.capacity = nsze << shift;
	if (e->was_live && (e->next.capacity != e->shape.capacity || shift != e->shift ||
			    e->next.read_only != e->shape.read_only ||
			    e->next.max_io < e->shape.max_io || memcmp(id, e->id, sizeof(id)) != 0))
		return "has another namespace than before";
	e->shift = shift;
	memcpy(e->id, id, sizeof(id));
	return NULL;
}

/* The I/O queue is connected. After a reconnection, e->shape stays as the caller knows it. */
static const char *
take_queue(struct nvmf_ini *e)
{
	if (!e->was_live) {
		e->next.depth = e->window;
		e->shape = e->next;
	}
	return NULL;
}

static const char *
take_status(struct nvmf_ini *e, uint64_t csts)
{
	if ((csts & CSTS_CFS) != 0)
		return "reports a fatal status of the controller";
	if ((csts & CSTS_RDY) == 0) {
		if (e->now >= e->ready_by)
			return "has not enabled the controller in the time that it asks for";
		e->poll_at = e->now + POLL_MS;
	}
	return NULL;
}

static const char *
take(struct nvmf_ini *e, uint64_t result)
{
	switch (e->step) {
	case INI_CONNECT_ADMIN:
		return take_connect(e, result);
	case INI_CAP:
		return take_cap(e, result);
	case INI_READY:
		return take_status(e, result);
	case INI_CONTROLLER:
		return take_controller(e);
	case INI_NAMESPACE:
		return take_namespace(e);
	case INI_CONNECT_IO:
		return take_queue(e);
	default: /* Property Set and Set Features have no result that matters */
		return NULL;
	}
}

/* Ends the connection because the command of the step has failed. */
static void
failed(struct nvmf_ini *e, uint32_t status)
{
	enum nvmf_ini_cause cause = (status & SC_DNR) != 0 ? INI_FATAL : INI_BROKEN;

	/* The controller may have ended since the admin queue was connected, so try again. */
	if (e->step == INI_CONNECT_IO)
		cause = INI_BROKEN;
	if ((status & SC_CODE) == SC_CONNECT_BUSY)
		cause = INI_BUSY;
	nvmf_ini_lose(e, cause,
		      e->step == INI_CONNECT_ADMIN ? -ECONNREFUSED : nvmf_ini_status_errno(status),
		      "the target refuses %s: %s (status 0x%x)", nvmf_ini_step_name(e->step),
		      nvmf_ini_status_text(status), status & SC_CODE);
}

void
nvmf_ini_admin_response(struct nvmf_ini *e, uint32_t status, uint64_t result)
{
	const char *wrong;

	if ((status & SC_CODE) != SC_OK) {
		failed(e, status);
		return;
	}
	wrong = take(e, result);
	if (wrong != NULL) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO, "the target %s", wrong);
		return;
	}
	if (e->step == INI_READY && (result & CSTS_RDY) == 0)
		return; /* nvmf_ini_run() reads the status again */
	if (e->step == INI_NAMESPACE) {
		nvmf_ini_connect_queue(e, 1);
		return;
	}
	nvmf_ini_step_set(e, e->step + 1);
	if (e->step == INI_LIVE)
		nvmf_ini_io_start(e);
	else
		nvmf_ini_admin_send(e);
}
