/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Encodes and decodes the TCP messages of lib/connect. Layout: doc/guides/api/connect.rst. */
#include <string.h>

#include "bb_bytes.h"
#include "bb_cm_msg.h"

#define REJ_FIXED  8u
#define DREQ_FIXED 4u
#define END_ADDR   8u

const char *
bb_cm_msg_name(uint8_t type)
{
	static const char *const names[] = {
		[BB_CM_REQ] = "REQ", [BB_CM_REP] = "REP",   [BB_CM_RTU] = "RTU",
		[BB_CM_REJ] = "REJ", [BB_CM_DREQ] = "DREQ", [BB_CM_DREP] = "DREP",
	};

	return type >= BB_CM_REQ && type <= BB_CM_DREP ? names[type] : "?";
}

static void
put_end(uint8_t *p, const struct bb_cm_msg *msg)
{
	const struct bb_cm_end *e = &msg->end;

	bb_put64(p, e->session);
	/* A QP without a valid address is encoded as zeros, which the peer refuses. */
	memset(p + END_ADDR, 0, BB_QP_ADDR_PACKED);
	(void)bb_qp_addr_pack(&e->addr, p + END_ADDR, BB_QP_ADDR_PACKED);
	p[36] = e->qp_type;
	p[37] = e->flags;
	p[38] = e->initiator_depth;
	p[39] = e->responder_resources;
	p[40] = e->retry_count;
	p[41] = e->rnr_retry_count;
	bb_put16(p + 42, 0);
	bb_put32(p + 44, e->sq_depth);
	bb_put32(p + 48, e->rq_depth);
	bb_put16(p + 52, (uint16_t)msg->nregions);
	bb_put16(p + 54, (uint16_t)msg->private_len);
	bb_put64(p + 56, 0);
}

static void
get_end(const uint8_t *p, struct bb_cm_end *e)
{
	e->session = bb_get64(p);
	e->qp_type = p[36];
	e->flags = p[37];
	e->initiator_depth = p[38];
	e->responder_resources = p[39];
	e->retry_count = p[40];
	e->rnr_retry_count = p[41];
	e->sq_depth = bb_get32(p + 44);
	e->rq_depth = bb_get32(p + 48);
}

/* Returns the length of the fixed part of a body; 0 for message types without a body. */
static size_t
fixed_len(uint8_t type)
{
	switch (type) {
	case BB_CM_REQ:
	case BB_CM_REP:
		return BB_CM_END;
	case BB_CM_REJ:
		return REJ_FIXED;
	case BB_CM_DREQ:
		return DREQ_FIXED;
	default:
		return 0;
	}
}

size_t
bb_cm_msg_encode(uint8_t *buf, const struct bb_cm_msg *msg)
{
	uint8_t *p = buf + BB_CM_HEADER;
	uint32_t i;

	switch (msg->type) {
	case BB_CM_REQ:
	case BB_CM_REP:
		put_end(p, msg);
		break;
	case BB_CM_REJ:
		bb_put32(p, msg->reason);
		bb_put16(p + 4, (uint16_t)msg->private_len);
		bb_put16(p + 6, 0);
		break;
	case BB_CM_DREQ:
		bb_put16(p, (uint16_t)msg->private_len);
		bb_put16(p + 2, 0);
		break;
	default:
		break;
	}
	p += fixed_len(msg->type);
	if (fixed_len(msg->type) == BB_CM_END) {
		for (i = 0; i < msg->nregions; i++, p += BB_REGION_PACKED)
			bb_region_put(p, &msg->regions[i]);
	}
	if (fixed_len(msg->type) != 0 && msg->private_len != 0) {
		memcpy(p, msg->private, msg->private_len);
		p += msg->private_len;
	}
	bb_put32(buf, BB_CM_MAGIC);
	buf[4] = BB_CM_VERSION;
	buf[5] = msg->type;
	bb_put16(buf + 6, BB_CM_HEADER);
	bb_put32(buf + 8, (uint32_t)(p - buf - BB_CM_HEADER));
	bb_put32(buf + 12, 0);
	return (size_t)(p - buf);
}

const char *
bb_cm_header_decode(const uint8_t *buf, struct bb_cm_header *h)
{
	struct bb_cm_header got = {.version = buf[4], .type = buf[5], .len = bb_get32(buf + 8)};

	if (bb_get32(buf) != BB_CM_MAGIC)
		return "has no Bluebell magic number";
	if (got.version != BB_CM_VERSION) {
		*h = got;
		return "has a version other than 1";
	}
	if (bb_get16(buf + 6) != BB_CM_HEADER || bb_get32(buf + 12) != 0)
		return "has an invalid header";
	if (got.type < BB_CM_REQ || got.type > BB_CM_DREP)
		return "has an unknown type";
	if (got.len > BB_CM_BODY_MAX)
		return "is longer than the longest valid message";
	if (got.len < fixed_len(got.type) || (fixed_len(got.type) == 0 && got.len != 0))
		return "has a wrong length for its type";
	*h = got;
	return NULL;
}

static const char *
check_end(const uint8_t *p, const struct bb_cm_end *e, uint8_t type)
{
	if (e->qp_type != BB_QPT_RC && e->qp_type != BB_QPT_UC)
		return "names a QP type other than RC or UC";
	if (e->retry_count > 7 || e->rnr_retry_count > 7)
		return "has a retry count over 7";
	if (e->sq_depth == 0 || e->sq_depth > 1u << 24 || e->rq_depth > 1u << 24)
		return "has a queue depth out of range";
	if ((e->flags & ~(BB_CM_RECOVERABLE | BB_CM_SRQ | BB_CM_GRH)) != 0 ||
	    bb_get16(p + 42) != 0 || bb_get64(p + 56) != 0)
		return "sets reserved fields";
	if (type == BB_CM_REP && e->session == 0)
		return "has no session number";
	return NULL;
}

/* Decodes the rest of a body after its fixed part: @n regions and the private data. */
static const char *
get_tail(const uint8_t *p, size_t len, uint32_t n, uint32_t private_len, struct bb_cm_msg *msg,
	 struct bb_region *regions)
{
	struct bb_region all[BB_REGION_MAX] = {0};
	const char *why;
	uint32_t i;

	if (private_len > BB_CM_PRIVATE_MAX)
		return "has too much private data";
	if (n > BB_REGION_MAX)
		return "has too many regions";
	if (len != (size_t)n * BB_REGION_PACKED + private_len)
		return "has a length that does not match its regions and private data";
	for (i = 0; i < n; i++)
		bb_region_get(p + (size_t)i * BB_REGION_PACKED, &all[i]);
	why = bb_region_check(all, n);
	if (why != NULL)
		return why;
	if (n != 0)
		memcpy(regions, all, n * sizeof(all[0]));
	msg->regions = n != 0 ? regions : NULL;
	msg->nregions = n;
	msg->private = private_len != 0 ? p + (size_t)n * BB_REGION_PACKED : NULL;
	msg->private_len = private_len;
	return NULL;
}

const char *
bb_cm_body_decode(uint8_t type, const uint8_t *body, size_t len, struct bb_cm_msg *msg,
		  struct bb_region *regions)
{
	const size_t fixed = fixed_len(type);
	struct bb_cm_msg m = {.type = type};
	const char *why = NULL;

	if (len < fixed || (fixed == 0 && len != 0))
		return "has a wrong length for its type";
	switch (type) {
	case BB_CM_REQ:
	case BB_CM_REP:
		get_end(body, &m.end);
		why = bb_qp_addr_unpack(body + END_ADDR, BB_QP_ADDR_PACKED, &m.end.addr) != 0
			      ? "has an invalid QP address"
			      : check_end(body, &m.end, type);
		if (why == NULL)
			why = get_tail(body + fixed, len - fixed, bb_get16(body + 52),
				       bb_get16(body + 54), &m, regions);
		break;
	case BB_CM_REJ:
		m.reason = bb_get32(body);
		if (bb_get16(body + 6) != 0)
			why = "sets reserved fields";
		else
			why = get_tail(body + fixed, len - fixed, 0, bb_get16(body + 4), &m,
				       regions);
		break;
	case BB_CM_DREQ:
		if (bb_get16(body + 2) != 0)
			why = "sets reserved fields";
		else
			why = get_tail(body + fixed, len - fixed, 0, bb_get16(body), &m, regions);
		break;
	case BB_CM_RTU:
	case BB_CM_DREP:
		break;
	default:
		why = "has an unknown type";
	}
	if (why == NULL)
		*msg = m;
	return why;
}
