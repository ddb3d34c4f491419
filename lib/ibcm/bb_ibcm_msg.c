/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Positions of the fields of CM messages, and the two functions that read and write fields. A
 * position has three parts: the field's first byte, counted from the end of the MAD's header; the
 * field's first bit in that byte, where 0 is the highest bit; and the width in bits. The positions
 * are those of tables 106 to 120 of IBTA vol. 1, as in Linux include/rdma/ibta_vol1_c12.h (macros
 * CM_REQ_*, CM_MRA_* and so on) and, before Linux 5.7, in drivers/infiniband/core/cm_msgs.h.
 */
#include <string.h>

#include "bb_bytes.h"
#include "bb_ibcm_msg.h"

/*
 * Byte offsets of the fields of a MAD's header (struct ib_mad_hdr of Linux include/rdma/ib_mad.h).
 * A comment gives the field's only valid value and the name of that value in Linux.
 */
#define MAD_BASE_VERSION  0 /* IB_MGMT_BASE_VERSION: 1 */
#define MAD_CLASS         1 /* IB_MGMT_CLASS_CM: 7 */
#define MAD_CLASS_VERSION 2 /* IB_CM_CLASS_VERSION: 2 */
#define MAD_METHOD        3 /* IB_MGMT_METHOD_SEND: 3 */
#define MAD_TID           8
#define MAD_ATTR_ID       16

static const uint8_t head[4] = {1, 7, 2, 3};

/* A field: its position, and the member of struct bb_ibcm_msg. */
struct field {
	uint8_t byte, bit;
	uint16_t width; /* width in bits; the member is a uint32_t up to 32 bits, a uint64_t for
			   64 bits, otherwise an array */
	uint16_t member;
};

#define F(byte_, bit_, width_, member_)                                                            \
	{                                                                                          \
		byte_, bit_, width_, offsetof(struct bb_ibcm_msg, member_)                         \
	}

/*
 * Fields of a path in a REQ: 44 bytes from byte @b_ on. In a LAP message the fields of a path have
 * another order.
 */
#define REQ_PATH(b_, path_)                                                                        \
	F(b_, 0, 16, req.path_.local_lid), F((b_) + 2, 0, 16, req.path_.remote_lid),               \
		F((b_) + 4, 0, 128, req.path_.local_gid),                                          \
		F((b_) + 20, 0, 128, req.path_.remote_gid),                                        \
		F((b_) + 36, 0, 20, req.path_.flow_label), F((b_) + 39, 2, 6, req.path_.rate),     \
		F((b_) + 40, 0, 8, req.path_.tclass), F((b_) + 41, 0, 8, req.path_.hop_limit),     \
		F((b_) + 42, 0, 4, req.path_.sl), F((b_) + 42, 4, 1, req.path_.subnet_local),      \
		F((b_) + 43, 0, 5, req.path_.ack_timeout)

#define LOCAL_ID  F(0, 0, 32, local_id)
#define REMOTE_ID F(4, 0, 32, remote_id)

/*
 * IBTA vol. 1, table 106, CM_REQ_*. The vendor ID of Linux (byte 5) is reserved in the
 * specification.
 */
static const struct field req[] = {
	LOCAL_ID,
	F(8, 0, 64, req.service_id),
	F(16, 0, 64, req.ca_guid),
	F(28, 0, 32, req.qkey),
	F(32, 0, 24, req.qpn),
	F(35, 0, 8, req.responder_resources),
	F(36, 0, 24, req.eecn),
	F(39, 0, 8, req.initiator_depth),
	F(40, 0, 24, req.remote_eecn),
	F(43, 0, 5, req.remote_timeout),
	F(43, 5, 2, req.transport),
	F(43, 7, 1, req.flow_control),
	F(44, 0, 24, req.psn),
	F(47, 0, 5, req.local_timeout),
	F(47, 5, 3, req.retry_count),
	F(48, 0, 16, req.pkey),
	F(50, 0, 4, req.mtu),
	F(50, 4, 1, req.rdc),
	F(50, 5, 3, req.rnr_retry),
	F(51, 0, 4, req.cm_retries),
	F(51, 4, 1, req.srq),
	F(51, 5, 3, req.ext_transport),
	REQ_PATH(52, primary),
	REQ_PATH(96, alternate),
	F(139, 5, 1, req.failover),
};

/* IBTA vol. 1, table 107, CM_MRA_*. */
static const struct field mra[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(8, 0, 2, mra.answers),
	F(9, 0, 5, mra.timeout),
};

/* IBTA vol. 1, table 108, CM_REJ_*. */
static const struct field rej[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(8, 0, 2, rej.answers),
	F(9, 0, 7, rej.ari_len),
	F(10, 0, 16, rej.reason),
	F(12, 0, 8 * BB_IBCM_ARI, rej.ari),
};

/*
 * IBTA vol. 1, table 110, CM_REP_*. Linux has a vendor ID in the reserved bytes 15, 19 and 23.
 */
static const struct field rep[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(8, 0, 32, rep.qkey),
	F(12, 0, 24, rep.qpn),
	F(16, 0, 24, rep.eecn),
	F(20, 0, 24, rep.psn),
	F(24, 0, 8, rep.responder_resources),
	F(25, 0, 8, rep.initiator_depth),
	F(26, 0, 5, rep.ack_delay),
	F(26, 5, 2, rep.failover),
	F(26, 7, 1, rep.flow_control),
	F(27, 0, 3, rep.rnr_retry),
	F(27, 3, 1, rep.srq),
	F(28, 0, 64, rep.ca_guid),
};

/* IBTA vol. 1, tables 111 and 113, CM_RTU_*, CM_DREP_*. */
static const struct field ids[] = {LOCAL_ID, REMOTE_ID};

/* IBTA vol. 1, table 112, CM_DREQ_*. */
static const struct field dreq[] = {LOCAL_ID, REMOTE_ID, F(8, 0, 24, dreq.remote_qpn)};

/* IBTA vol. 1, table 119, CM_SIDR_REQ_*. */
static const struct field sidr_req[] = {
	LOCAL_ID,
	F(4, 0, 16, sidr_req.pkey),
	F(8, 0, 64, sidr_req.service_id),
};

/* IBTA vol. 1, table 120, CM_SIDR_REP_*. */
static const struct field sidr_rep[] = {
	LOCAL_ID,
	F(4, 0, 8, sidr_rep.status),
	F(5, 0, 8, sidr_rep.info_len),
	F(8, 0, 24, sidr_rep.qpn),
	F(12, 0, 64, sidr_rep.service_id),
	F(20, 0, 32, sidr_rep.qkey),
	F(24, 0, 8 * BB_IBCM_ARI, sidr_rep.info),
};

/* IBTA vol. 1, table 115, CM_LAP_*. */
static const struct field lap[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(12, 0, 24, lap.remote_qpn),
	F(15, 0, 5, lap.remote_timeout),
	F(20, 0, 16, lap.alternate.local_lid),
	F(22, 0, 16, lap.alternate.remote_lid),
	F(24, 0, 128, lap.alternate.local_gid),
	F(40, 0, 128, lap.alternate.remote_gid),
	F(56, 0, 20, lap.alternate.flow_label),
	F(59, 0, 8, lap.alternate.tclass),
	F(60, 0, 8, lap.alternate.hop_limit),
	F(61, 2, 6, lap.alternate.rate),
	F(62, 0, 4, lap.alternate.sl),
	F(62, 4, 1, lap.alternate.subnet_local),
	F(63, 0, 5, lap.alternate.ack_timeout),
};

/* IBTA vol. 1, table 116, CM_APR_*. */
static const struct field apr[] = {
	LOCAL_ID,
	REMOTE_ID,
	F(8, 0, 8, apr.info_len),
	F(9, 0, 8, apr.status),
	F(12, 0, 8 * BB_IBCM_ARI, apr.info),
};

#define LAYOUT(name_, fields_, priv_)                                                              \
	{                                                                                          \
		name_, fields_, sizeof(fields_) / sizeof(fields_[0]), priv_                        \
	}

/*
 * A message type. Its private data starts at byte priv_at after the MAD's header and fills the MAD.
 */
static const struct layout {
	const char *name;
	const struct field *fields;
	uint8_t count, priv_at;
} layouts[BB_IBCM_TYPES] = {
	[BB_IBCM_REQ - BB_IBCM_REQ] = LAYOUT("REQ", req, 140),
	[BB_IBCM_MRA - BB_IBCM_REQ] = LAYOUT("MRA", mra, 10),
	[BB_IBCM_REJ - BB_IBCM_REQ] = LAYOUT("REJ", rej, 84),
	[BB_IBCM_REP - BB_IBCM_REQ] = LAYOUT("REP", rep, 36),
	[BB_IBCM_RTU - BB_IBCM_REQ] = LAYOUT("RTU", ids, 8),
	[BB_IBCM_DREQ - BB_IBCM_REQ] = LAYOUT("DREQ", dreq, 12),
	[BB_IBCM_DREP - BB_IBCM_REQ] = LAYOUT("DREP", ids, 8),
	[BB_IBCM_SIDR_REQ - BB_IBCM_REQ] = LAYOUT("SIDR_REQ", sidr_req, 16),
	[BB_IBCM_SIDR_REP - BB_IBCM_REQ] = LAYOUT("SIDR_REP", sidr_rep, 96),
	[BB_IBCM_LAP - BB_IBCM_REQ] = LAYOUT("LAP", lap, 64),
	[BB_IBCM_APR - BB_IBCM_REQ] = LAYOUT("APR", apr, 84),
};

static const struct layout *
find_layout(uint32_t type)
{
	return type >= BB_IBCM_REQ && type < BB_IBCM_TYPES_END ? &layouts[type - BB_IBCM_REQ]
							       : NULL;
}

/*
 * Returns the mask and the shift of a field of up to 32 bits. Both apply to the 32-bit word that
 * starts at the field's first byte.
 */
static uint32_t
field_mask(const struct field *f, uint32_t *shift)
{
	*shift = 32u - f->bit - f->width;
	return (f->width == 32 ? UINT32_MAX : (1u << f->width) - 1) << *shift;
}

/*
 * Reads a field of a MAD into *@msg. A field of up to 32 bits lies inside the 32-bit word that
 * starts at its first byte, and the whole word is inside the MAD.
 */
static void
get_field(struct bb_ibcm_msg *msg, const struct field *f, const uint8_t *data)
{
	uint8_t *to = (uint8_t *)msg + f->member;
	const uint8_t *from = data + f->byte;
	uint32_t w, mask, shift;
	uint64_t v;

	if (f->width > 64) {
		memcpy(to, from, f->width / 8u);
	} else if (f->width == 64) {
		v = bb_get64(from);
		memcpy(to, &v, sizeof(v));
	} else {
		mask = field_mask(f, &shift);
		w = (bb_get32(from) & mask) >> shift;
		memcpy(to, &w, sizeof(w));
	}
}

static void
put_field(uint8_t *data, const struct field *f, const struct bb_ibcm_msg *msg)
{
	const uint8_t *from = (const uint8_t *)msg + f->member;
	uint8_t *to = data + f->byte;
	uint32_t v, mask, shift;
	uint64_t wide;

	if (f->width > 64) {
		memcpy(to, from, f->width / 8u);
	} else if (f->width == 64) {
		memcpy(&wide, from, sizeof(wide));
		bb_put64(to, wide);
	} else {
		memcpy(&v, from, sizeof(v));
		mask = field_mask(f, &shift);
		bb_put32(to, (bb_get32(to) & ~mask) | (v << shift & mask));
	}
}

enum bb_ibcm_parsed
bb_ibcm_parse(struct bb_ibcm_msg *msg, const uint8_t *mad, size_t len)
{
	const struct layout *l;

	if (len != BB_IBCM_MAD)
		return BB_IBCM_BAD_LENGTH;
	if (mad[MAD_CLASS] != head[MAD_CLASS])
		return BB_IBCM_BAD_CLASS;
	if (mad[MAD_BASE_VERSION] != head[MAD_BASE_VERSION] ||
	    mad[MAD_CLASS_VERSION] != head[MAD_CLASS_VERSION])
		return BB_IBCM_BAD_VERSION;
	if (mad[MAD_METHOD] != head[MAD_METHOD])
		return BB_IBCM_BAD_METHOD;
	l = find_layout((uint32_t)mad[MAD_ATTR_ID] << 8 | mad[MAD_ATTR_ID + 1]);
	if (l == NULL)
		return BB_IBCM_BAD_TYPE;
	memset(msg, 0, sizeof(*msg));
	msg->type = mad[MAD_ATTR_ID + 1];
	msg->tid = bb_get64(mad + MAD_TID);
	mad += BB_IBCM_MAD_HEAD;
	for (uint32_t i = 0; i < l->count; i++)
		get_field(msg, &l->fields[i], mad);
	msg->priv = mad + l->priv_at;
	msg->priv_len = bb_ibcm_priv_max(msg->type);
	return BB_IBCM_PARSED;
}

bool
bb_ibcm_build(uint8_t mad[BB_IBCM_MAD], const struct bb_ibcm_msg *msg)
{
	const struct layout *l = find_layout(msg->type);
	uint8_t *data = mad + BB_IBCM_MAD_HEAD;

	if (l == NULL || msg->priv_len > bb_ibcm_priv_max(msg->type))
		return false;
	memset(mad, 0, BB_IBCM_MAD);
	memcpy(mad, head, sizeof(head));
	mad[MAD_ATTR_ID + 1] = msg->type;
	bb_put64(mad + MAD_TID, msg->tid);
	for (uint32_t i = 0; i < l->count; i++)
		put_field(data, &l->fields[i], msg);
	if (msg->priv_len != 0)
		memcpy(data + l->priv_at, msg->priv, msg->priv_len);
	return true;
}

uint32_t
bb_ibcm_priv_max(uint8_t type)
{
	const struct layout *l = find_layout(type);

	return l == NULL ? 0 : BB_IBCM_MAD - BB_IBCM_MAD_HEAD - l->priv_at;
}

const char *
bb_ibcm_type_str(uint8_t type)
{
	const struct layout *l = find_layout(type);

	return l == NULL ? "?" : l->name;
}
