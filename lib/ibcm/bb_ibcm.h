/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The communication manager (CM) of InfiniBand and RoCE as an engine: the protocol by which
 * librdmacm and Linux's rdma_cm connect queue pairs (IBTA vol. 1, chapter 12). The caller passes it
 * the MADs that QP1 received, its own calls and the time. The engine sends MADs and reports events
 * through struct bb_ibcm_ops. It has no clock, lock or QP of its own, and allocates memory in
 * bb_ibcm_create() only.
 *
 * A connection is named by its communication ID. An ID is used again only after its slot has had
 * 2^32 / slots other IDs, or 2^24 / slots with attr.id_prefix. The number of slots is max_conns,
 * rounded up to a power of two. Until then a call with the ID of an old connection fails with
 * -ENOENT.
 *
 * - Active side: bb_ibcm_connect() sends REQ. Passive side: event REQ.
 * - Passive side: bb_ibcm_accept() sends REP. Active side: event REP.
 * - Active side: bb_ibcm_ready() sends RTU. Passive side: event ESTABLISHED.
 *
 * Every connection ends with one of the events REJECTED, FAILED and DISCONNECTED, or by
 * bb_ibcm_release(). Until bb_ibcm_release() the ID belongs to the caller. After a disconnection
 * or rejection the slot stays in use for the time in which packets of the connection may still
 * arrive, see max_ended_per_gid.
 *
 * Peers are untrusted. A message must come from the GID of the connection's peer and have both IDs
 * of the connection. Each message that the engine drops is counted by reason. A peer cannot use
 * more than its share of the slots. The engine never waits for a peer. For a received message, or
 * an expired timeout, it sends at most two messages.
 *
 * One thread at a time may use an engine. Times are in ns from any origin and never go back. Each
 * duration of the protocol is a code: 4.096 us << code.
 */
#ifndef BB_IBCM_H
#define BB_IBCM_H

#include "bb_ibcm_ip.h"
#include "bb_ibcm_msg.h"

#define BB_IBCM_NEVER UINT64_MAX

struct bb_ibcm;

/* Addresses of a MAD: fields of the GRH, or of the IP header. */
struct bb_ibcm_net {
	uint8_t src[16], dst[16]; /* GIDs; an IPv4 address is ::ffff:a.b.c.d */
	uint32_t flow_label;
	uint8_t tclass, hop_limit, sl;
};

/* Fields of the packet that carried a received MAD. */
struct bb_ibcm_gmp {
	struct bb_ibcm_net net;
	uint32_t sqpn, qkey;
};

enum bb_ibcm_event_type {
	BB_IBCM_EV_REQ, /* a peer requests a connection: accept or reject it */
	BB_IBCM_EV_REP, /* the peer has accepted: call bb_ibcm_ready() or bb_ibcm_reject() */
	BB_IBCM_EV_ESTABLISHED, /* passive side: the peer is ready */
	BB_IBCM_EV_REJECTED,    /* the peer has rejected, msg is its REJ */
	BB_IBCM_EV_FAILED,      /* the connection was not established; status has the cause */
	/*
	 * An established connection has ended. Status 0: by DREQ and DREP. -ETIMEDOUT: the peer has
	 * not answered the DREQ. -ECONNRESET: the peer has sent a REJ.
	 */
	BB_IBCM_EV_DISCONNECTED,
	BB_IBCM_EV_SIDR_REQ, /* a peer resolves a service ID: call bb_ibcm_sidr_reply() */
	BB_IBCM_EV_SIDR_REP, /* the peer's SIDR_REP, which may be a refusal; the ID is now
				invalid */
};

struct bb_ibcm_event {
	enum bb_ibcm_event_type type;
	uint32_t id;
	/*
	 * cookie of the connection: argument of bb_ibcm_connect(), or cookie of the service that a
	 * REQ names
	 */
	uint64_t cookie;
	int status;
	/*
	 * Message of the peer; NULL if a timeout is the cause. Lengths of additional information
	 * are at most BB_IBCM_ARI.
	 */
	const struct bb_ibcm_msg *msg;
	/* IP CM header of a REQ or SIDR_REQ of an IP service; NULL in all other events */
	const struct bb_ibcm_ip *ip;
	const struct bb_ibcm_net *net; /* path to the peer; src is the local GID */
};

struct bb_ibcm_ops {
	/*
	 * Sends a MAD to QP1 of @net->dst. A MAD that cannot be sent may be dropped, as on a
	 * network. The callback must not call the engine.
	 */
	void (*tx)(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD]);
	/*
	 * Reports an event. The pointers are valid during the call. The callback may call all
	 * functions of the engine, except bb_ibcm_rx(), bb_ibcm_tick() and bb_ibcm_destroy().
	 */
	void (*event)(void *ctx, const struct bb_ibcm_event *ev);
	/*
	 * A message gives the QPN of the peer of connection @id to a new connection. If the caller
	 * knows that the old peer is gone, it calls bb_ibcm_abandon(), and the engine accepts the
	 * message. Otherwise the message is rejected as stale. NULL: the caller never knows.
	 */
	void (*reused)(void *ctx, uint32_t id, uint64_t cookie);
};

struct bb_ibcm_attr {
	uint32_t max_conns; /* slots, 1 to 1 << 20. Each connection and SIDR request has one, also
			       in TIMEWAIT */
	uint32_t max_services;
	/*
	 * Maximum number of requests of peers, REQ and SIDR_REQ, that are not established yet and
	 * whose ID the caller still has: of all peers, and of one GID. The engine drops further
	 * requests, which the peers repeat.
	 */
	uint32_t max_pending, max_pending_per_gid;
	/*
	 * Maximum number of slots of one GID in DREQ_SENT and TIMEWAIT. Slots whose ID the caller
	 * still has do not count. Above the maximum the engine frees the oldest slot in TIMEWAIT,
	 * or the oldest in DREQ_SENT if none is in TIMEWAIT. If more than half of all slots are in
	 * use, TIMEWAIT ends at once, and DREQ_SENT after 1.1 s.
	 */
	uint32_t max_ended_per_gid;
	uint64_t ca_guid; /* GUID of the device that messages contain */
	/*
	 * Highest 8 bits of all communication IDs, for a process that shares its GIDs with other
	 * processes; 0: they may have any value.
	 */
	uint8_t id_prefix;
	uint64_t seed; /* secret random number, on which the values of IDs and the hashes of the
			  tables depend */
	/*
	 * Timeout code that an MRA of the engine contains. The engine sends this MRA if a peer
	 * repeats a message that the caller has not answered yet.
	 */
	uint8_t mra_timeout;
	/* Limits of the timeout codes that peers request. */
	uint8_t min_timeout, max_timeout, max_mra_timeout;
	uint16_t pkey; /* P_Key of the port; a REQ must have the same lower 15 bits */
	const struct bb_ibcm_ops *ops;
	void *ctx;
};

/*
 * Sets the defaults: 65536 slots, 1024 services, 4096 pending requests, 256 pending requests of one
 * GID, 256 ended connections of one GID, 69 s as the time in an MRA, timeouts of 17 ms to 17 s,
 * P_Key 0xffff.
 */
void bb_ibcm_attr_init(struct bb_ibcm_attr *attr);

/*
 * Creates an engine with all memory that it ever uses. Returns 0, -EINVAL for an attribute out of
 * range, or -ENOMEM.
 */
int bb_ibcm_create(const struct bb_ibcm_attr *attr, struct bb_ibcm **cm);
/* Frees the engine. No message is sent. */
void bb_ibcm_destroy(struct bb_ibcm *cm);

/*
 * Sets the addresses of a MAD that a UD queue pair has received from the 40 bytes in front of it
 * (IBTA vol. 1, annex A17): a GRH or IPv6 header, or an IPv4 header in the last 20 bytes. Returns
 * false, and leaves *net alone, if there is neither.
 */
bool bb_ibcm_net_parse(struct bb_ibcm_net *net, const uint8_t head[BB_IBCM_GRH]);
/* Handles a MAD that QP1 received. */
void bb_ibcm_rx(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp, const uint8_t *mad, size_t len,
		uint64_t now);
/* Handles the timeouts that have expired. */
void bb_ibcm_tick(struct bb_ibcm *cm, uint64_t now);
/* Returns the time of the next timeout, BB_IBCM_NEVER if there is none. */
uint64_t bb_ibcm_deadline(const struct bb_ibcm *cm);
/*
 * For a caller that is about to end: from now on repeats each DREQ without an answer after
 * @interval ns instead of the peer's timeout. Returns the number of connections that wait for the
 * answer to a DREQ. A further call with the same interval only returns the number.
 */
uint32_t bb_ibcm_finish(struct bb_ibcm *cm, uint64_t interval, uint64_t now);
/* Returns the number of slots in use. */
uint32_t bb_ibcm_in_use(const struct bb_ibcm *cm);

/* A service that peers may connect to. */
struct bb_ibcm_service {
	/* a requested ID matches if it equals service_id in all bits of mask */
	uint64_t service_id, mask;
	/*
	 * The private data must start with an IP CM header. Its destination must be @addr, unless
	 * @addr is zero.
	 */
	bool ip;
	uint8_t addr[16];   /* IP address in the form of a GID */
	uint8_t ip_version; /* IP version that the header must have, 4 or 6; 0: both */
	bool datagram;      /* true: answers SIDR_REQ; false: answers REQ */
	uint64_t cookie;
};
/*
 * Adds a service. If a request matches several services, the most specific of them gets it. Returns
 * 0; -EADDRINUSE if a service with the same ID, mask, address, IP version and kind exists; -ENOSPC
 * if max_services are in use.
 */
int bb_ibcm_listen(struct bb_ibcm *cm, const struct bb_ibcm_service *s);
/* Removes a service. Returns -ENOENT if there is none with these values. */
int bb_ibcm_unlisten(struct bb_ibcm *cm, const struct bb_ibcm_service *s);

/*
 * Sends a REQ and sets *id. The engine sets the GUID, the GIDs, traffic class, hop limit, flow
 * label and SL of the primary path. While no answer arrives, the engine repeats the REQ up to
 * req->cm_retries times, each time after req->remote_timeout. Returns 0; -EINVAL if @priv_len or a
 * field is too large, -ENOSPC if no slot is free.
 */
int bb_ibcm_connect(struct bb_ibcm *cm, const struct bb_ibcm_net *net,
		    const struct bb_ibcm_req *req, const void *priv, uint32_t priv_len,
		    uint64_t cookie, uint64_t now, uint32_t *id);
/*
 * The calls below return -ENOENT if the caller has no connection @id, and -EINVAL if its state does
 * not allow the call or @priv_len is too large.
 *
 * Accepts a REQ. The REP is repeated as the peer's REQ has requested.
 */
int bb_ibcm_accept(struct bb_ibcm *cm, uint32_t id, const struct bb_ibcm_rep *rep, const void *priv,
		   uint32_t priv_len, uint64_t cookie, uint64_t now);
/* Sets the cookie that later events of a connection report. */
int bb_ibcm_cookie_set(struct bb_ibcm *cm, uint32_t id, uint64_t cookie);
/* Active side, after REP: sends RTU. */
int bb_ibcm_ready(struct bb_ibcm *cm, uint32_t id, const void *priv, uint32_t priv_len);
/*
 * Passive side, after bb_ibcm_accept(): data of the peer has arrived, so the RTU is lost or late.
 * No event follows.
 */
int bb_ibcm_established(struct bb_ibcm *cm, uint32_t id);
/* Rejects a REQ (passive side) or a REP (active side). No event follows. */
int bb_ibcm_reject(struct bb_ibcm *cm, uint32_t id, uint16_t reason, const void *priv,
		   uint32_t priv_len, uint64_t now);
/* Sends DREQ; DISCONNECTED follows. */
int bb_ibcm_disconnect(struct bb_ibcm *cm, uint32_t id, const void *priv, uint32_t priv_len,
		       uint64_t now);
/*
 * Gives the ID back in any state. A connection that is not established, or a SIDR request, is
 * rejected or cancelled, and an established connection is disconnected. No event follows.
 */
int bb_ibcm_release(struct bb_ibcm *cm, uint32_t id, uint64_t now);
/*
 * Gives the ID back as bb_ibcm_release() does, but sends no message: for a peer that the caller
 * knows to be gone, or a REQ for which the caller has no room, which the peer repeats. If the
 * engine has sent an MRA for the REQ, the peer waits for an answer and does not repeat it: then the
 * engine rejects it with reason 3. The slot of an established connection stays in use as after a
 * disconnection.
 */
int bb_ibcm_abandon(struct bb_ibcm *cm, uint32_t id, uint64_t now);

/*
 * Sends a SIDR_REQ and sets *id. While no answer arrives, the engine repeats the SIDR_REQ up to
 * @retries times, each time after the timeout code @timeout. The ID is invalid after the event
 * SIDR_REP or FAILED.
 */
int bb_ibcm_sidr(struct bb_ibcm *cm, const struct bb_ibcm_net *net, uint64_t service_id,
		 uint8_t timeout, uint8_t retries, const void *priv, uint32_t priv_len,
		 uint64_t cookie, uint64_t now, uint32_t *id);
/*
 * Answers a SIDR_REQ. The ID is then invalid. If the answer is lost, the peer repeats its request,
 * which then gets a new ID.
 */
int bb_ibcm_sidr_reply(struct bb_ibcm *cm, uint32_t id, enum bb_ibcm_sidr_status status,
		       uint32_t qpn, uint32_t qkey, const void *priv, uint32_t priv_len);

/* Reasons for which the engine drops a message without an event. */
enum bb_ibcm_drop {
	BB_IBCM_DROP_LENGTH, /* bb_ibcm_parse() reports this reason and the next four */
	BB_IBCM_DROP_VERSION,
	BB_IBCM_DROP_CLASS,
	BB_IBCM_DROP_METHOD,
	BB_IBCM_DROP_TYPE,
	BB_IBCM_DROP_QKEY,      /* Q_Key other than that of QP1 */
	BB_IBCM_DROP_SQPN,      /* sent by another QP than QP1 */
	BB_IBCM_DROP_ID,        /* no connection has this ID */
	BB_IBCM_DROP_PEER,      /* the connection with this ID has another peer */
	BB_IBCM_DROP_PEER_ID,   /* the peer's ID is not that of the connection */
	BB_IBCM_DROP_QPN,       /* DREQ for another QP */
	BB_IBCM_DROP_FIELD,     /* a field has an invalid value */
	BB_IBCM_DROP_STATE,     /* the state of the connection does not allow the message */
	BB_IBCM_DROP_DUPLICATE, /* repeated message that was handled before */
	BB_IBCM_DROP_PENDING,   /* max_pending or max_conns reached */
	BB_IBCM_DROP_PER_GID,   /* max_pending_per_gid reached */
	BB_IBCM_DROP_ABANDONED, /* REQ that the caller abandoned without an answer */
	BB_IBCM_DROPS
};
/* Returns the name of a reason in telemetry, such as "per_gid". */
const char *bb_ibcm_drop_name(enum bb_ibcm_drop why);

struct bb_ibcm_stats {
	/* messages received and sent; the index is type - BB_IBCM_REQ */
	uint64_t rx[BB_IBCM_TYPES], tx[BB_IBCM_TYPES];
	uint64_t drop[BB_IBCM_DROPS];
	uint64_t rejects[BB_IBCM_REJ_REASONS]; /* REJs that the engine or bb_ibcm_reject() sent, by
						  reason */
	uint64_t sidr_refused;                 /* SIDR_REQs that the engine has refused */
	uint64_t repeats, timeouts; /* repeats: messages sent again; timeouts: connections and
				       requests that a timeout ended */
	uint64_t answered_again;    /* repeated messages of peers that were answered again */
};
const struct bb_ibcm_stats *bb_ibcm_stats(const struct bb_ibcm *cm);

#endif
