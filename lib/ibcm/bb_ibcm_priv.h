/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Types and functions shared by the files of the CM engine. */
#ifndef BB_IBCM_PRIV_H
#define BB_IBCM_PRIV_H

#include <string.h>

#include "bb_ibcm.h"

#define BB_IBCM_NONE UINT32_MAX /* no slot */
#define BB_IBCM_HOPS 64u        /* hop limit of MADs that answer a peer */

/*
 * States of a slot (12.9.7). Where the specification has a separate state for a wait that an MRA
 * extended, this engine sets the flag mra.
 */
enum bb_ibcm_state {
	BB_IBCM_FREE,
	BB_IBCM_REQ_SENT,
	BB_IBCM_REQ_RCVD,
	BB_IBCM_REP_SENT,
	BB_IBCM_REP_RCVD,
	BB_IBCM_ESTABLISHED,
	BB_IBCM_DREQ_SENT,
	BB_IBCM_TIMEWAIT, /* the connection has ended; answers repeated messages */
	BB_IBCM_SIDR_SENT,
	BB_IBCM_SIDR_RCVD,
};

/* Hash tables of slots (bb_ibcm_table.c). */
enum bb_ibcm_table {
	BB_IBCM_BY_ID,  /* key: GID and communication ID of the peer */
	BB_IBCM_BY_QPN, /* key: GID and QPN of the peer */
	BB_IBCM_BY_GID, /* key: GID of the peer; has only the slots of requests that are not
			   established yet, and whose ID the caller has */
	BB_IBCM_ENDED,  /* key: GID of the peer; see max_ended_per_gid and bb_ibcm_limit_ended() */
	BB_IBCM_TABLES
};

struct bb_ibcm_conn {
	uint32_t index;      /* index of this slot */
	uint32_t generation; /* upper bits of the ID, changes with each use of the slot */
	uint32_t id;
	uint8_t state;
	bool owned;    /* the caller has the ID and gets events */
	bool active;   /* this side has sent the REQ or SIDR_REQ */
	bool mra;      /* the current wait was extended by a MRA of either side */
	uint8_t tries; /* number of times that the message in tx may be sent again */
	uint8_t cm_retries;
	uint8_t in_tables; /* one bit for each table that has the slot: 1 << enum bb_ibcm_table */
	uint32_t next[BB_IBCM_TABLES]; /* next slot of the same bucket, for each table. Free slots
					  are linked by next[0] */
	uint32_t heap_at;            /* position in the heap of deadlines; BB_IBCM_NONE if absent */
	uint64_t deadline, interval; /* interval: ns to wait for the answer to the message in tx */
	uint64_t hold; /* ns for which the slot stays in use after its connection has ended */
	uint32_t remote_id;
	uint32_t qpn, remote_qpn;
	uint64_t remote_guid, tid, cookie;
	uint64_t service_id;    /* service ID of a SIDR request; unused by connections */
	struct bb_ibcm_net net; /* path to the peer; src is the local GID */
	/* last message sent, which may be sent again; last member, because look-ups do not read it
	 */
	uint8_t tx[BB_IBCM_MAD];
};

struct bb_ibcm {
	struct bb_ibcm_attr attr;
	struct bb_ibcm_stats stats;
	struct bb_ibcm_conn *conns;
	uint32_t *heap, heap_len;
	uint32_t *buckets[BB_IBCM_TABLES], bucket_mask;
	/*
	 * for each bucket of the table BY_GID: a slot whose GID has reached max_pending_per_gid,
	 * NONE if unknown
	 */
	uint32_t *full;
	uint32_t id_bits; /* the lowest id_bits bits of id ^ id_xor are the index of the slot */
	uint32_t id_xor;
	uint32_t free_first, free_last, in_use;
	uint32_t used;          /* number of slots that were ever used: the first ones of conns */
	uint32_t pending;       /* number of slots in the table BB_IBCM_BY_GID */
	uint32_t n_dreq;        /* number of slots in DREQ_SENT */
	uint64_t dreq_interval; /* ns after which DREQs are repeated at the latest; 0: no limit */
	struct bb_ibcm_service *services; /* sorted by the number of bits in mask, most first */
	uint32_t nservices;
};

/* Returns the nanoseconds that a timeout code stands for. */
static inline uint64_t
bb_ibcm_ns(uint32_t code)
{
	return (uint64_t)4096 << code;
}

/*
 * Returns the nanoseconds of a timeout code that a peer has sent. A code outside the engine's
 * limits counts as the nearest limit.
 */
static inline uint64_t
bb_ibcm_peer_ns(const struct bb_ibcm *cm, uint32_t code)
{
	if (code < cm->attr.min_timeout)
		code = cm->attr.min_timeout;
	return bb_ibcm_ns(code > cm->attr.max_timeout ? cm->attr.max_timeout : code);
}

static inline bool
bb_ibcm_same_gid(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

/* Returns the type of the message in c->tx. */
static inline uint8_t
bb_ibcm_tx_type(const struct bb_ibcm_conn *c)
{
	return c->tx[17];
}

static inline void
bb_ibcm_dropped(struct bb_ibcm *cm, enum bb_ibcm_drop why)
{
	cm->stats.drop[why]++;
}

/* ---- bb_ibcm_table.c: slots, IDs and the hash tables */
int bb_ibcm_tables_init(struct bb_ibcm *cm);
void bb_ibcm_tables_free(struct bb_ibcm *cm);
/* Takes a free slot and gives it an ID. Returns NULL if all slots are in use. */
struct bb_ibcm_conn *bb_ibcm_slot_take(struct bb_ibcm *cm);
/* Removes the slot from all tables and from the heap, and frees it. */
void bb_ibcm_slot_free(struct bb_ibcm *cm, struct bb_ibcm_conn *c);
/* Returns the slot in use that has this ID, or NULL. */
struct bb_ibcm_conn *bb_ibcm_find(struct bb_ibcm *cm, uint32_t id);
/*
 * Inserts the slot into @table. The key is c->net.dst with c->remote_id or c->remote_qpn, as the
 * table requires. Does nothing if the slot is in the table already.
 */
void bb_ibcm_insert(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_table table);
void bb_ibcm_remove(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_table table);
/*
 * Returns the slot whose peer has this GID and this ID or QPN. @guid: GUID of the peer's device, 0
 * for any. @sidr: looks for a SIDR request, else for a connection.
 */
struct bb_ibcm_conn *bb_ibcm_find_peer(struct bb_ibcm *cm, enum bb_ibcm_table table,
				       const uint8_t gid[16], uint32_t value, uint64_t guid,
				       bool sidr);
/*
 * Puts a slot in DREQ_SENT or TIMEWAIT, whose ID the caller has released, into the table ENDED. If
 * the table then has more than max_ended_per_gid slots of the peer's GID, frees the oldest of them
 * that is in TIMEWAIT, or the oldest in DREQ_SENT if none is: a peer that gets no DREQ does not
 * learn that its connection has ended.
 * If more than half of all slots are in use, frees a slot in TIMEWAIT at once: the peer loses no
 * more than the repeat of an answer. A slot in DREQ_SENT then gets 1.1 s, in which the DREQ is sent
 * up to four times. Otherwise its peer chooses the time, up to 275 s.
 */
void bb_ibcm_limit_ended(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t now);
/*
 * Returns true if the GID has @limit pending requests. A flood of one GID costs one look-up for
 * each request: the bucket remembers that the GID has reached the limit.
 */
bool bb_ibcm_gid_is_full(struct bb_ibcm *cm, const uint8_t gid[16], uint32_t limit);

/* ---- bb_ibcm_clock.c: deadlines */
void bb_ibcm_clock_set(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t deadline);
void bb_ibcm_clock_stop(struct bb_ibcm *cm, struct bb_ibcm_conn *c);
/* Returns the slot with the earliest deadline, or NULL. */
struct bb_ibcm_conn *bb_ibcm_clock_first(const struct bb_ibcm *cm);

/* ---- bb_ibcm.c: messages, events and ends */
/* Starts a message of the connection: type, IDs and TID; the other fields are 0. */
void bb_ibcm_msg_begin(const struct bb_ibcm_conn *c, struct bb_ibcm_msg *msg, uint8_t type);
/* Starts an answer to a message that belongs to no connection. */
void bb_ibcm_answer_begin(struct bb_ibcm_msg *msg, uint8_t type, const struct bb_ibcm_msg *to);
/* Sends a message on a path without storing it. */
void bb_ibcm_send(struct bb_ibcm *cm, const struct bb_ibcm_net *net, const struct bb_ibcm_msg *msg);
/* Stores the message in c->tx and sends it. Returns -EINVAL if the private data is too long. */
int bb_ibcm_post(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const struct bb_ibcm_msg *msg);
/* Sends c->tx again. */
void bb_ibcm_post_again(struct bb_ibcm *cm, struct bb_ibcm_conn *c);
/* Sends an answer to a message that belongs to no connection. */
void bb_ibcm_answer(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
		    const struct bb_ibcm_msg *msg);
/* Sets *net to the path back to the sender of a MAD. */
void bb_ibcm_back(struct bb_ibcm_net *net, const struct bb_ibcm_gmp *gmp);
/* Starts the wait for the answer to c->tx. */
void bb_ibcm_wait(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t interval, uint8_t tries,
		  uint64_t now);
/* Posts a REJ; see bb_ibcm_post(). */
int bb_ibcm_post_rej(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint16_t reason, const void *priv,
		     uint32_t priv_len);
/*
 * Ends the connection: the slot stays in TIMEWAIT for @hold ns, and until the caller has released
 * the ID.
 */
void bb_ibcm_end(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t hold, uint64_t now);
/*
 * Reports an event, unless the caller has released the ID. The callback may free the slot, so this
 * must be the last use of @c. @ends: the ID ends with the event, and the slot is freed before the
 * callback.
 */
void bb_ibcm_report(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_event_type type,
		    int status, const struct bb_ibcm_msg *msg, const struct bb_ibcm_ip *ip,
		    bool ends);
/* Returns the service that a request names, NULL if there is none. */
const struct bb_ibcm_service *bb_ibcm_service_find(const struct bb_ibcm *cm, uint64_t service_id,
						   bool datagram, const struct bb_ibcm_msg *msg,
						   struct bb_ibcm_ip *ip, bool *bad_header);
/*
 * Returns true if one more request of a peer may take a slot. Otherwise counts the drop.
 */
bool bb_ibcm_may_pend(struct bb_ibcm *cm, const uint8_t gid[16]);

/*
 * Returns the connection whose peer has this QPN, NULL if there is none, or if the caller has
 * abandoned the connection because its peer is gone.
 */
struct bb_ibcm_conn *bb_ibcm_find_qpn(struct bb_ibcm *cm, const uint8_t gid[16], uint32_t qpn,
				      uint64_t guid);

/* ---- bb_ibcm_call.c */
/*
 * Sends a DREQ for an established connection, at the caller's request or because the peer has lost
 * the connection.
 */
int bb_ibcm_send_dreq(struct bb_ibcm *cm, struct bb_ibcm_conn *c, const void *priv,
		      uint32_t priv_len, uint64_t now);

/* ---- bb_ibcm_req.c, bb_ibcm_sidr.c: requests of peers */
void bb_ibcm_rx_req(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
		    const struct bb_ibcm_msg *msg, uint64_t now);
void bb_ibcm_rx_sidr_req(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
			 const struct bb_ibcm_msg *msg, uint64_t now);
void bb_ibcm_rx_sidr_rep(struct bb_ibcm *cm, const struct bb_ibcm_gmp *gmp,
			 const struct bb_ibcm_msg *msg);
/* Sends a MRA for a repeated message, and extends the time that the caller has to answer. */
void bb_ibcm_send_mra(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_answered answers,
		      uint64_t now);

#endif
