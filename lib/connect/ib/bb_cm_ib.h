/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections by the CM engine of a device, as librdmacm makes them: types of the transport
 * BB_CM_IB. The engine reports events in the thread that polls QP1, which may serve another CM. So
 * each CM has an inbox. The CM's own thread takes events from the inbox and passes them to
 * bb_cm_fsm.c.
 */
#ifndef BB_CM_IB_H
#define BB_CM_IB_H

#include "bb_cm_priv.h"
#include "bb_qp1.h"

/*
 * Maximum events of a connection in the inbox. The engine reports at most one more event before the
 * CM has handled the last one, because the next step needs a call of the CM.
 */
#define IB_EVENTS 2u

/* Private data of a REQ that belongs to the application. */
#define IB_PRIV_REQ (BB_IBCM_PRIV_REQ - BB_IBCM_IP_LEN)

struct ib_event {
	enum bb_ibcm_event_type type;
	int status;
	uint32_t reason;      /* valid only for REJECTED */
	struct bb_cm_end end; /* valid only for REQ and REP */
	uint32_t priv_len;
	uint8_t priv[BB_IBCM_PRIV_RTU]; /* has room for the private data of every message */
};

/* A connection of the engine. All fields but c are protected by the lock of QP1. */
struct ib_conn {
	struct bb_qp1_user user; /* must be the first member */
	struct ib_cm *ib;
	struct bb_listener *listener; /* listener of a request in the inbox; NULL if the request
					 has migrated */
	bool request;                 /* true while the CM has not received this request;
					 ib_cm.requests counts it */
	struct bb_conn *c;            /* NULL while the request waits in the inbox */
	uint32_t id;                  /* ID in the engine */
	bool has_id;                  /* the engine has the ID */
	bool queued;                  /* true while in the inbox */
	TAILQ_ENTRY(ib_conn) link;
	uint8_t local_gid[16];        /* valid only for requests of peers */
	struct sockaddr_storage from; /* address and port of the requester */
	uint32_t nev;
	struct ib_event ev[IB_EVENTS];
};

struct ib_listener {
	struct bb_qp1_user user; /* must be the first member */
	struct bb_listener *l;
	struct bb_ibcm_service service;
};

struct ib_cm {
	struct bb_cm *cm;
	struct bb_qp1 *q;
	struct bb_ibcm *engine; /* use it under the lock of QP1 */
	TAILQ_HEAD(, ib_conn) inbox;
	uint32_t n_inbox;  /* number of connections in the inbox; read without the lock */
	uint32_t requests; /* number of requests in the inbox that the CM has not received yet */
};

static inline struct ib_cm *
ib_of(const struct bb_cm *cm)
{
	return cm->transport_ctx;
}

/* ---- bb_cm_ib_event.c */
/* Creates the engine's side of a connection. Returns NULL if there is no memory. */
struct ib_conn *ib_conn_new(struct ib_cm *ib);
/* Ends the connection in the engine, and frees @ic. Call under the lock of QP1. */
void ib_conn_free(struct ib_conn *ic);
/*
 * Ends the connection in the engine, and frees @ic. Sends a message only for a request that the
 * peer has repeated already: see bb_ibcm_abandon(). Call under the lock of QP1.
 */
void ib_conn_abandon(struct ib_conn *ic);
/* Event callback of a listener: puts the request of a peer into the inbox. */
void ib_listener_event(struct bb_qp1_user *user, const struct bb_ibcm_event *ev);
/* Implements bb_cm_ops.migrate. */
int ib_migrate(struct bb_conn *c, struct bb_cm *cm);
/* Handles the events in the inbox. Implements bb_cm_ops.poll. */
void ib_poll(struct bb_cm *cm);

#endif
