/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages over TCP; doc/guides/api/connect.rst has their layout. A message is a header of 16 bytes
 * and a body whose length is in the header. Integers are big endian. The functions have no side
 * effects: they convert bytes to values and values to bytes.
 *
 * Decoders return NULL if the bytes are valid. Otherwise they return the reason as the end of the
 * sentence "the peer's message ...", and leave the caller's values unchanged.
 */
#ifndef BB_CM_MSG_H
#define BB_CM_MSG_H

#include <stdint.h>

#include "bb_qp.h"
#include "bb_region.h"

#define BB_CM_MAGIC       0x4242434du /* "BBCM" */
#define BB_CM_VERSION     1u
#define BB_CM_HEADER      16u
#define BB_CM_END         64u   /* bytes of REQ and REP before regions and private data */
#define BB_CM_PRIVATE_MAX 1024u /* maximum bytes of private data in any message */
#define BB_CM_BODY_MAX    (BB_CM_END + BB_REGION_MAX * BB_REGION_PACKED + BB_CM_PRIVATE_MAX)
#define BB_CM_MSG_MAX     (BB_CM_HEADER + BB_CM_BODY_MAX)

enum bb_cm_msg_type {
	BB_CM_REQ = 1, /* connection request; contains the parameters of the connecting side */
	/* connection reply: accepted; contains the parameters of the accepting side */
	BB_CM_REP,
	BB_CM_RTU, /* ready to use: the connecting side's QP is in RTS */
	BB_CM_REJ,
	BB_CM_DREQ, /* disconnect request */
	BB_CM_DREP,
};

/* Bits of bb_cm_end.flags. */
enum {
	BB_CM_RECOVERABLE = 1 << 0, /* this side wants the connection recovered after a loss */
	BB_CM_SRQ = 1 << 1,         /* the QP's receives come from an SRQ */
	BB_CM_GRH = 1 << 2,         /* this side's port needs a GRH: bb_port_attr.grh_required */
};

/* Parameters of one side of a connection. */
struct bb_cm_end {
	/* in a REQ the session to resume, 0 if none; in a REP the session of the connection */
	uint64_t session;
	struct bb_qp_addr addr;
	uint8_t qp_type; /* enum bb_qp_type: RC or UC */
	uint8_t initiator_depth, responder_resources;
	uint8_t retry_count, rnr_retry_count;
	uint8_t flags;
	/*
	 * code of the ack timeout that the peer requests for this side's QP, 0 if none; BB_CM_IB
	 * only
	 */
	uint8_t ack_timeout;
	uint32_t sq_depth, rq_depth;
};

struct bb_cm_msg {
	uint8_t type;
	struct bb_cm_end end;            /* valid only for REQ and REP */
	const struct bb_region *regions; /* valid only for REQ and REP */
	uint32_t nregions;
	uint32_t reason;     /* valid only for REJ: enum bb_reject_reason */
	const void *private; /* valid only for REQ, REP, REJ and DREQ; points into the body */
	uint32_t private_len;
};

struct bb_cm_header {
	uint8_t version;
	uint8_t type;
	uint32_t len; /* bytes of the body */
};

/*
 * Encodes @msg, which must be valid for the decoder, into @buf of BB_CM_MSG_MAX bytes. Returns the
 * number of bytes written.
 */
size_t bb_cm_msg_encode(uint8_t *buf, const struct bb_cm_msg *msg);

/*
 * Decodes the first 16 bytes of a message, whose layout is the same in every version. Writes *h
 * also if it refuses the header because of an unknown version, so that the caller can reply to the
 * sender.
 */
const char *bb_cm_header_decode(const uint8_t *buf, struct bb_cm_header *h);

/* Decodes a body. @regions has room for BB_REGION_MAX entries; msg->regions points to it. */
const char *bb_cm_body_decode(uint8_t type, const uint8_t *body, size_t len, struct bb_cm_msg *msg,
			      struct bb_region *regions);

/* Returns the name of a message type, such as "REQ". */
const char *bb_cm_msg_name(uint8_t type);

/* Checks regions; in bb_region.c. Returns NULL, or a text that says which field is invalid. */
const char *bb_region_check(const struct bb_region *regions, uint32_t n);
void bb_region_put(uint8_t *p, const struct bb_region *r);
void bb_region_get(const uint8_t *p, struct bb_region *r);

#endif
