/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of the communication manager (IBTA vol. 1, chapter 12). Converts the 256 bytes of a
 * management datagram (MAD) of class CM to struct bb_ibcm_msg and back. bb_ibcm_msg.c has the
 * position of each field. Received bytes are untrusted.
 */
#ifndef BB_IBCM_MSG_H
#define BB_IBCM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BB_IBCM_MAD      256u /* bytes of a MAD (13.4.2; Linux: sizeof(struct ib_mad)) */
#define BB_IBCM_MAD_HEAD 24u  /* bytes of a MAD's header (Linux: struct ib_mad_hdr) */
#define BB_IBCM_GRH      40u  /* bytes in front of a received MAD (Linux: struct ib_grh) */
/*
 * Q_Key of QP1 (Linux: IB_QP1_QKEY). QP1 is the only QP that sends and receives CM messages here.
 */
#define BB_IBCM_QKEY 0x80010000u
#define BB_IBCM_QPN  1u

/* Attribute IDs (Linux: CM_REQ_ATTR_ID and following, rdma/ib_cm.h). */
enum bb_ibcm_type {
	BB_IBCM_REQ = 0x10, /* connection request */
	BB_IBCM_MRA,        /* message received; the answer takes a while */
	BB_IBCM_REJ,        /* reject */
	BB_IBCM_REP,        /* connection reply */
	BB_IBCM_RTU,        /* ready to use */
	BB_IBCM_DREQ,       /* disconnect request */
	BB_IBCM_DREP,       /* disconnect reply */
	BB_IBCM_SIDR_REQ,   /* service ID resolution request */
	BB_IBCM_SIDR_REP,   /* service ID resolution reply */
	BB_IBCM_LAP,        /* load alternate path */
	BB_IBCM_APR,        /* alternate path response */
	BB_IBCM_TYPES_END,
};
#define BB_IBCM_TYPES (BB_IBCM_TYPES_END - BB_IBCM_REQ)

/* Bytes of private data in each message (Linux: enum ib_cm_data_size, rdma/ib_cm.h). */
#define BB_IBCM_PRIV_REQ      92u
#define BB_IBCM_PRIV_MRA      222u
#define BB_IBCM_PRIV_REJ      148u
#define BB_IBCM_PRIV_REP      196u
#define BB_IBCM_PRIV_RTU      224u
#define BB_IBCM_PRIV_DREQ     220u
#define BB_IBCM_PRIV_DREP     224u
#define BB_IBCM_PRIV_SIDR_REQ 216u
#define BB_IBCM_PRIV_SIDR_REP 136u
#define BB_IBCM_ARI           72u /* bytes of additional reject information */

/* Reasons of a REJ (Linux: enum ib_cm_rej_reason). */
enum bb_ibcm_reason {
	BB_IBCM_REJ_NO_RESOURCES = 3,
	BB_IBCM_REJ_TIMEOUT = 4,
	BB_IBCM_REJ_UNSUPPORTED = 5,
	BB_IBCM_REJ_COMM_ID = 6,
	BB_IBCM_REJ_SERVICE_ID = 8,
	BB_IBCM_REJ_TRANSPORT = 9,
	BB_IBCM_REJ_STALE = 10,
	BB_IBCM_REJ_GID = 12,
	BB_IBCM_REJ_MTU = 26,
	BB_IBCM_REJ_CONSUMER = 28,
	BB_IBCM_REJ_REASONS = 36, /* all assigned reasons are below this value */
};

/* Status of a SIDR_REP (Linux: enum ib_cm_sidr_status). */
enum bb_ibcm_sidr_status {
	BB_IBCM_SIDR_OK,
	BB_IBCM_SIDR_UNSUPPORTED, /* no such service ID */
	BB_IBCM_SIDR_REJECT,
	BB_IBCM_SIDR_NO_QP,
};

/* Status of an APR (Linux: enum ib_cm_apr_status). */
enum bb_ibcm_apr_status {
	BB_IBCM_APR_COMM_ID = 1,
	BB_IBCM_APR_UNSUPPORTED = 2,
};

/* Message that a MRA or REJ answers (Linux: enum cm_msg_response). */
enum bb_ibcm_answered {
	BB_IBCM_ANSWERS_REQ,
	BB_IBCM_ANSWERS_REP,
	BB_IBCM_ANSWERS_OTHER,
};

/* Transport service of a REQ (Linux: cm_req_get_qp_type()). */
enum bb_ibcm_transport {
	BB_IBCM_RC,
	BB_IBCM_UC,
};

/* Path of a REQ or LAP. ack_timeout is a timeout code, rate a value of Linux's enum ib_rate. */
struct bb_ibcm_path {
	uint8_t local_gid[16], remote_gid[16]; /* local_gid: GID of the sender of the message */
	uint32_t local_lid, remote_lid;
	uint32_t flow_label, rate, tclass, hop_limit, sl, subnet_local, ack_timeout;
};

struct bb_ibcm_req {
	uint64_t service_id, ca_guid;
	uint32_t qkey, qpn;
	uint32_t psn; /* first PSN that the sender of the message expects from the peer */
	uint32_t responder_resources, initiator_depth;
	uint32_t eecn, remote_eecn;
	uint32_t remote_timeout; /* timeout code: time that the sender gives the peer to answer */
	uint32_t local_timeout;  /* timeout code: time in which the sender answers */
	uint32_t transport, ext_transport;
	uint32_t flow_control, retry_count, rnr_retry, pkey, mtu, rdc, cm_retries, srq;
	uint32_t failover; /* the sender supports an alternate path of its own (SAP) */
	struct bb_ibcm_path primary, alternate;
};

struct bb_ibcm_rep {
	uint64_t ca_guid;
	/* psn: first PSN that the sender of the message expects from the peer */
	uint32_t qkey, qpn, eecn, psn;
	uint32_t responder_resources, initiator_depth;
	uint32_t ack_delay, failover, flow_control, rnr_retry, srq;
};

/*
 * After bb_ibcm_parse() ari_len and info_len have the peer's values, which are not checked: they
 * may exceed BB_IBCM_ARI. The engine limits them before it reports the message.
 */
struct bb_ibcm_rej {
	uint32_t answers; /* enum bb_ibcm_answered */
	uint32_t reason, ari_len;
	uint8_t ari[BB_IBCM_ARI];
};

struct bb_ibcm_sidr_rep {
	uint64_t service_id;
	uint32_t status, qpn, qkey, info_len;
	uint8_t info[BB_IBCM_ARI];
};

struct bb_ibcm_apr {
	uint32_t status, info_len;
	uint8_t info[BB_IBCM_ARI];
};

/* A message. Numbers are in host order, GIDs in network order. */
struct bb_ibcm_msg {
	uint8_t type;       /* enum bb_ibcm_type */
	uint64_t tid;       /* transaction ID; an answer has the ID of its request */
	uint32_t local_id;  /* communication ID of the sender; the request ID of SIDR messages */
	uint32_t remote_id; /* communication ID of the receiver; absent from REQ and SIDR */
	union {
		struct bb_ibcm_req req;
		struct bb_ibcm_rep rep;
		struct bb_ibcm_rej rej;
		struct {
			uint32_t answers; /* enum bb_ibcm_answered */
			uint32_t timeout; /* timeout code: time until the sender answers */
		} mra;
		struct {
			uint32_t remote_qpn; /* QPN of the receiver of the message */
		} dreq;
		struct {
			uint64_t service_id;
			uint32_t pkey;
		} sidr_req;
		struct bb_ibcm_sidr_rep sidr_rep;
		struct {
			uint32_t remote_qpn, remote_timeout;
			struct bb_ibcm_path alternate;
		} lap;
		struct bb_ibcm_apr apr;
	};
	/*
	 * Private data. After bb_ibcm_parse() it points into the MAD, and priv_len is the maximum
	 * for the message type, because no field contains the length that the sender used. For
	 * bb_ibcm_build() priv_len may be smaller; the rest is filled with zeros.
	 */
	const uint8_t *priv;
	uint32_t priv_len;
};

/* Results of bb_ibcm_parse(). */
enum bb_ibcm_parsed {
	BB_IBCM_PARSED,
	BB_IBCM_BAD_LENGTH,  /* not 256 bytes */
	BB_IBCM_BAD_VERSION, /* version of MADs or of class CM that this engine does not know */
	BB_IBCM_BAD_CLASS,   /* a MAD of a class other than CM */
	BB_IBCM_BAD_METHOD,  /* not Send(), the only method of class CM (16.7.1) */
	BB_IBCM_BAD_TYPE,    /* attribute ID that is not a message of class CM */
};

/*
 * Parses a MAD of @len bytes. Sets *msg only if it returns BB_IBCM_PARSED. The status and the
 * attribute modifier of the header have no meaning in class CM. Linux uses the modifier for options
 * of vendors, so both are ignored, as reserved fields are.
 */
enum bb_ibcm_parsed bb_ibcm_parse(struct bb_ibcm_msg *msg, const uint8_t *mad, size_t len);

/*
 * Builds the MAD of *msg. Each value must fit in the width of its field. If the type is unknown or
 * the private data is too long, returns false and does not change @mad.
 */
bool bb_ibcm_build(uint8_t mad[BB_IBCM_MAD], const struct bb_ibcm_msg *msg);

/* Returns the length of the private data of a message type; 0 for an unknown type. */
uint32_t bb_ibcm_priv_max(uint8_t type);

/* Returns the name of a message type, such as "REQ"; "?" for an unknown type. */
const char *bb_ibcm_type_str(uint8_t type);

#endif
