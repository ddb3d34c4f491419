/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Identify: controller, namespace, list of namespaces, descriptors of a namespace. */
#include <errno.h>
#include <string.h>

#include "nvmf_priv.h"

#define MODEL    "Bluebell NVMe-oF"
#define FIRMWARE "1"

/* SGLS: SGLs without alignment; keyed data blocks; offsets into the capsule. */
#define SGLS_SUPPORTED  0x1u
#define SGLS_KEYED      0x4u
#define SGLS_IN_CAPSULE 0x100000u
/* ONCS: Compare, Dataset Management, Write Zeroes */
#define ONCS 0xdu
/* CTRATT: host identifiers of 16 bytes; any command restarts the keep-alive timer */
#define CTRATT 0x41u

#define ID_UUID  3u /* types of namespace identification descriptors */
#define ID_NGUID 2u

static void
pad(uint8_t *at, size_t size, const char *text)
{
	size_t len = strlen(text);

	memset(at, ' ', size);
	memcpy(at, text, len < size ? len : size);
}

static uint8_t
log2_of(uint32_t v)
{
	uint8_t n = 0;

	while (v > 1) {
		v >>= 1;
		n++;
	}
	return n;
}

/* Positions of fields: Linux include/linux/nvme.h, struct nvme_id_ctrl. */
static void
controller(uint8_t *d, const struct nvmf_ctrl *c)
{
	const struct nvmf_target_attr *attr = &c->target->attr;
	bool io = !c->subsys->discovery;

	pad(d + 4, 20, c->subsys->serial);
	pad(d + 24, 40, MODEL);
	pad(d + 64, 8, FIRMWARE);
	d[77] = log2_of(attr->max_io / NVMF_PAGE); /* MDTS */
	put16(d + 78, c->cntlid);
	put32(d + 80, NVMF_VERSION);
	put32(d + 92, io ? ASYNC_NS_ATTR : ASYNC_DISCOVERY); /* OAES */
	put32(d + 96, CTRATT);
	d[111] = io ? 1 : 2;         /* CNTRLTYPE */
	d[259] = NVMF_ASYNC - 1;     /* AERL */
	d[261] = 0x4 | (io ? 3 : 0); /* LPA: pages read by parts; SMART per namespace, effects */
	d[262] = NVMF_ERRORS - 1;    /* ELPE */
	put16(d + 320, 10);          /* KAS, units of 100 ms */
	put16(d + 514, attr->io_depth);
	put32(d + 536,
	      SGLS_SUPPORTED | SGLS_KEYED | (io && attr->in_capsule != 0 ? SGLS_IN_CAPSULE : 0));
	strcpy((char *)d + 768, c->subsys->nqn);
	if (!io)
		return;
	d[76] = 3;     /* CMIC: several ports and controllers */
	d[258] = 3;    /* ACL: Abort commands at a time, 0's based */
	d[260] = 3;    /* FRMW: one firmware slot, read-only */
	d[512] = 0x66; /* SQES */
	d[513] = 0x44; /* CQES */
	put32(d + 516, c->subsys->max_ns);
	put16(d + 520, ONCS);
	d[525] = 1; /* VWC */
	put32(d + 540, c->subsys->max_ns);
	put32(d + 1792, (NVMF_SQE + attr->in_capsule) / 16); /* IOCCSZ */
	put32(d + 1796, NVMF_CQE / 16);                      /* IORCSZ */
	d[1803] = 1;                                         /* MSDBD */
}

/* Positions of fields: Linux include/linux/nvme.h, struct nvme_id_ns. */
static void namespace(uint8_t *d, const struct nvmf_ns *ns)
{
	put64(d, ns->blocks);
	put64(d + 8, ns->blocks);
	put64(d + 16, ns->blocks);
	d[30] = 1;             /* NMIC: several controllers share it */
	d[99] = ns->read_only; /* NSATTR: write protected */
	memcpy(d + 104, ns->id, 16);
	d[130] = ns->shift; /* LBADS of format 0 */
}

static uint8_t *
descriptor(uint8_t *at, uint8_t type, const uint8_t id[16])
{
	at[0] = type;
	at[1] = 16;
	memcpy(at + 4, id, 16);
	return at + 20;
}

static void
active_list(uint8_t *d, const struct nvmf_subsys *s, uint32_t after)
{
	uint32_t i, n = 0;

	for (i = after; i < s->max_ns && n < NVMF_PAGE / 4; i++)
		if (s->ns[i] != NULL)
			put32(d + 4 * n++, i + 1);
}

void
nvmf_identify(struct nvmf_req *r)
{
	const struct nvmf_ctrl *c = r->q->ctrl;
	const struct nvmf_subsys *s = c->subsys;
	uint32_t cns = r->cmd[AT_CDW10], nsid = get32(r->cmd + AT_NSID);
	const struct nvmf_ns *ns = nvmf_ctrl_ns(c, nsid);

	if (cns > CNS_DESCRIPTORS || (s->discovery && cns != CNS_CONTROLLER)) {
		nvmf_refuse(r, SC_INVALID_FIELD);
		return;
	}
	if ((cns == CNS_NAMESPACE && (nsid == 0 || nsid > s->max_ns)) ||
	    (cns == CNS_ACTIVE_LIST && nsid >= NVMF_NSID_ALL - 1) ||
	    (cns == CNS_DESCRIPTORS && ns == NULL)) {
		nvmf_refuse(r, SC_INVALID_NAMESPACE);
		return;
	}
	if (!nvmf_exact(r, NVMF_PAGE))
		return;
	memset(r->mem, 0, NVMF_PAGE);
	if (cns == CNS_CONTROLLER)
		controller(r->mem, c);
	else if (cns == CNS_ACTIVE_LIST)
		active_list(r->mem, s, nsid);
	else if (cns == CNS_DESCRIPTORS)
		descriptor(descriptor(r->mem, ID_NGUID, ns->id), ID_UUID, ns->id);
	else if (ns != NULL) /* an inactive namespace is all zeros */
	namespace(r->mem, ns);
	r->push = NVMF_PAGE;
	nvmf_end(r, SC_OK, 0);
}

/* Continues the 64-bit FNV-1a hash @h over @len bytes. */
static uint64_t
hash(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	while (len-- > 0)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

/*
 * Chooses the identifier from the subsystem's name and serial number and the NSID, so that it is
 * the same after a restart of the target: a host discards a namespace whose identifier has changed.
 * The bits of version and variant mark a UUID in a vendor's format (RFC 9562, version 8).
 */
static void
choose_id(struct nvmf_ns *ns, const struct nvmf_subsys *s)
{
	uint8_t nsid[4];
	uint64_t h;

	put32(nsid, ns->nsid);
	h = hash(hash(hash(0xcbf29ce484222325ull, s->nqn, strlen(s->nqn)), s->serial,
		      strlen(s->serial)),
		 nsid, sizeof(nsid));
	put64(ns->id, h);
	put64(ns->id + 8, hash(h, "id", 2));
	ns->id[6] = (uint8_t)((ns->id[6] & 0x0f) | 0x80);
	ns->id[8] = (uint8_t)((ns->id[8] & 0x3f) | 0x80);
}

int
nvmf_ns_add(struct nvmf_subsys *s, uint32_t nsid, struct nvmf_ns *ns)
{
	static const uint8_t none[16];

	if (nsid == 0 || nsid > s->max_ns || ns->shift < 9 || ns->shift > 12 || ns->blocks == 0 ||
	    ns->blocks > (uint64_t)INT64_MAX >> ns->shift)
		return -EINVAL;
	if (s->ns[nsid - 1] != NULL)
		return -EBUSY;
	ns->nsid = nsid;
	if (memcmp(ns->id, none, sizeof(none)) == 0)
		choose_id(ns, s);
	s->ns[nsid - 1] = ns;
	return 0;
}
