/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the rdma_cm device node. */
#ifndef UCMA_PRIV_H
#define UCMA_PRIV_H

#include <netinet/in.h>
#include <sys/queue.h>

#include <rdma/rdma_user_cm.h>

#include "bb_dev.h"
#include "ucma.h"

#define UCMA_PKEY 0xffffu
/* Q_Key of the port space UDP (Linux: RDMA_UDP_QKEY, include/rdma/rdma_cm.h). */
#define UCMA_UDP_QKEY 0x01234567u
#define UCMA_HOPS     64u
/* Largest backlog (Linux: max_backlog of drivers/infiniband/core/ucma.c). */
#define UCMA_MAX_BACKLOG 1024
/*
 * Interval, in ns, at which the node asks again for the destination of an ID in state ADDR_QUERY.
 */
#define UCMA_QUERY_NS UINT64_C(10000000)
/* Interval, in ns, of ucma_peers_check(). */
#define UCMA_CHECK_NS UINT64_C(500000000)

/* Events of struct rdma_ucm_event_resp (librdmacm: enum rdma_cm_event_type, rdma/rdma_cma.h). */
enum ucma_event_type {
	UCMA_EV_ADDR_RESOLVED,
	UCMA_EV_ADDR_ERROR,
	UCMA_EV_ROUTE_RESOLVED,
	UCMA_EV_ROUTE_ERROR,
	UCMA_EV_CONNECT_REQUEST,
	UCMA_EV_CONNECT_RESPONSE,
	UCMA_EV_CONNECT_ERROR,
	UCMA_EV_UNREACHABLE,
	UCMA_EV_REJECTED,
	UCMA_EV_ESTABLISHED,
	UCMA_EV_DISCONNECTED,
	UCMA_EV_MULTICAST_JOIN = 12, /* 11 is DEVICE_REMOVAL */
};

/* States of an ID (Linux: enum rdma_cm_state of drivers/infiniband/core/cma_priv.h). */
enum ucma_state {
	UCMA_IDLE,
	UCMA_BOUND,
	UCMA_ADDR_QUERY, /* waits until the link knows the destination */
	UCMA_ADDR,
	UCMA_ROUTE,
	UCMA_LISTEN,
	UCMA_CONNECT,    /* a request was sent or received, up to the end of the connection */
	UCMA_DISCONNECT, /* the connection has ended */
};

/* An IPv4 or IPv6 address with its port. All zero: none. */
union ucma_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Attributes for the QP of a connection, which INIT_QP_ATTR returns. */
struct ucma_qp {
	uint32_t rq_psn, sq_psn, remote_qpn;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry, timeout, mtu;
};

/* Membership of an ID in a multicast group. */
struct ucma_mc {
	LIST_ENTRY(ucma_mc) link;
	struct ucma_id *id;
	uint32_t number; /* the program's handle; other numbers than those of IDs */
	uint32_t events_reported;
	uint64_t uid; /* value of the program in events of the membership */
};

struct ucma_id {
	TAILQ_ENTRY(ucma_id) link;
	struct ucma *u;
	uint32_t number;
	enum ucma_state state;
	/* NULL until the program has read the event of the connection request */
	struct ucma_file *file;
	uint64_t uid; /* value that the program gets in events; 0: the ID gets no events yet */
	uint16_t ps;  /* enum rdma_ucm_port_space */
	uint8_t qp_type;
	bool active;              /* true if the program has connected the ID, false if a request
				     made it */
	bool reuseaddr;           /* option RDMA_OPTION_ID_REUSEADDR */
	bool afonly, afonly_set;  /* afonly_set: the program has set afonly */
	uint8_t tos, ack_timeout; /* ack_timeout 0: not set by the program */
	union ucma_addr src, dst;
	uint8_t sgid[16], dgid[16];
	uint32_t sgid_index;
	void *port;   /* port that the process has taken for the ID, NULL if none */
	bool has_dev; /* sgid and sgid_index are valid: the ID has a device */
	uint32_t events_reported;
	int backlog;                    /* requests that a listener may still queue */
	struct bb_ibcm_service service; /* valid in state LISTEN */
	/* Connection of the CM engine. Valid if has_cm is true. */
	uint32_t cm;
	bool has_cm;
	bool had_cm; /* there was a connection or request, which may have ended */
	bool established;
	struct ucma_qp qp;
	uint64_t deadline; /* valid in state ADDR_QUERY */
	/* number from ucma_ops.reach() that identifies the peer of the connection; 0: not known */
	uint64_t opening;
	LIST_HEAD(, ucma_mc) mcs;
};

struct ucma_event {
	TAILQ_ENTRY(ucma_event) next;
	struct ucma_id *id;   /* ID whose events_reported counts the event */
	struct ucma_id *made; /* CONNECT_REQUEST: the new ID, else NULL */
	struct ucma_mc *mc;   /* MULTICAST_JOIN: the membership, else NULL */
	struct rdma_ucm_event_resp resp;
};

struct ucma_file {
	struct ucma *u;
	void *arg;
	TAILQ_HEAD(, ucma_event) events;
};

struct ucma {
	struct ucma_attr attr;
	struct bb_ibcm *cm;
	struct ucma_id **ids;       /* max_ids + 1 entries, by number; entry 0 is unused */
	TAILQ_HEAD(, ucma_id) live; /* all IDs */
	uint32_t nids, last;
	struct ucma_mc **mcs; /* as ids, for memberships */
	uint32_t nmcs, last_mc;
	uint32_t queries;  /* IDs in state ADDR_QUERY */
	uint64_t query_at; /* time at which the link is asked again for these IDs; valid if
			      queries is not 0 */
	uint32_t peers;    /* IDs with a connection of the engine, except listeners */
	uint64_t check_at; /* time of the next ucma_peers_check(); valid if peers is not 0 */
	uint64_t random;
	uint64_t now; /* time of the current call, ns */
};

/* A command that a program has written. The response's address has no common position. */
union ucma_cmd {
	struct rdma_ucm_create_id create_id;
	struct rdma_ucm_destroy_id destroy_id;
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_bind bind;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_resolve_addr resolve_addr;
	struct rdma_ucm_resolve_route resolve_route;
	struct rdma_ucm_query query;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_listen listen;
	struct rdma_ucm_accept accept;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_disconnect disconnect;
	struct rdma_ucm_init_qp_attr init_qp_attr;
	struct rdma_ucm_get_event get_event;
	struct rdma_ucm_set_option set_option;
	struct rdma_ucm_notify notify;
	struct rdma_ucm_migrate_id migrate_id;
	struct rdma_ucm_join_ip_mcast join_ip_mcast;
	struct rdma_ucm_join_mcast join_mcast;
};

/*
 * Functions of commands. Each gets a command of full length, and the length of the program's
 * response, which is large enough. Return 0 or a negative errno.
 */
typedef int ucma_fn(struct ucma_file *f, const union ucma_cmd *c, uint32_t out);

/* ---- ucma_id.c */
uint64_t ucma_random(struct ucma *u);
/* Makes an ID. Returns NULL if there is no memory or no number left. */
struct ucma_id *ucma_id_new(struct ucma *u, uint16_t ps, uint8_t qp_type);
/* Returns the ID with this number, NULL if there is none. */
struct ucma_id *ucma_id_at(const struct ucma *u, uint64_t number);
/*
 * Finds the ID @number of a file. Returns 0; -ENOENT if there is no such ID; -EINVAL if the ID
 * belongs to another file.
 */
int ucma_id_find(const struct ucma_file *f, uint32_t number, struct ucma_id **id);
/* Destroys an ID with its connection and its events. Returns the number of events reported. */
uint32_t ucma_id_free(struct ucma_id *id);
/* Sets the connection of an ID. */
void ucma_cm_set(struct ucma_id *id, uint32_t cm);
/*
 * Sets id->opening, which identifies the peer of the connection, unless it is already set. Returns
 * false if the peer is gone.
 */
bool ucma_find_opening(struct ucma_id *id);
/* Ends the connection of an ID, without a message if the peer is gone. */
void ucma_cm_release(struct ucma_id *id, bool peer_gone);
/* Returns true if the ID is for datagrams: it uses SIDR. */
bool ucma_is_ud(const struct ucma_id *id);
/* Tells the program's file whether it has events. */
void ucma_events_report(struct ucma_file *f);
/* Removes the events of a membership. */
void ucma_events_drop_mc(struct ucma_mc *mc);
/* Frees a membership. Its events must be gone. */
void ucma_mc_free(struct ucma_mc *mc);
/* Writes a response to the program. */
int ucma_reply(struct ucma *u, uint64_t to, const void *from, size_t len);

/* ---- ucma_addr.c */
/* Returns the length of an address of the family, 0 for a family other than IPv4 and IPv6. */
uint32_t ucma_addr_len(const struct sockaddr *sa);
/* Returns the port in host order. */
uint16_t ucma_addr_port(const union ucma_addr *a);
/* Returns the service ID of an address in the port space of @id. */
uint64_t ucma_service_id(const struct ucma_id *id, const union ucma_addr *a);
void ucma_addr_gid(const union ucma_addr *a, uint8_t gid[16]);
/* Sets @a to the address of a GID: IPv4 if it is ::ffff:a.b.c.d. */
void ucma_addr_from_gid(union ucma_addr *a, const uint8_t gid[16], uint16_t port);
bool ucma_addr_is_any(const union ucma_addr *a);
/* Copies an address from a command that also gives the address's length. Returns 0, or -EINVAL if
 * the length is wrong. */
int ucma_addr_get(union ucma_addr *a, const struct __kernel_sockaddr_storage *from, uint32_t len);
/* Finds a RoCE v2 entry of the GID table. Returns false if there is none. */
bool ucma_gid_find(struct ucma *u, const uint8_t gid[16], uint32_t *index);
/*
 * Binds an ID in state IDLE. @take: also reserves the port, so that no other process of the host
 * can have it; false for the source port of a connection. Returns 0 or a negative errno.
 */
int ucma_bind_to(struct ucma_id *id, const union ucma_addr *a, bool take);
/*
 * Takes the port of an ID that begins to listen. Returns -EADDRINUSE or -EADDRNOTAVAIL if another
 * ID, or another process of the host, has the port.
 */
int ucma_listen_port(struct ucma_id *id);
/* Asks the link again for the destinations of all IDs in state ADDR_QUERY. */
void ucma_addr_tick(struct ucma *u);
ucma_fn ucma_bind_ip, ucma_bind, ucma_resolve_ip, ucma_resolve_addr, ucma_resolve_route;

/* ---- ucma_event.c */
/*
 * Queues an event. Returns NULL without queuing it if the ID gets no events yet (id->uid is 0) or
 * there is no memory.
 */
struct ucma_event *ucma_event_add(struct ucma_id *id, enum ucma_event_type type, int status);
/* Queues the event of a request for a listener. Returns NULL if there is no memory. */
struct ucma_event *ucma_event_request(struct ucma_id *listener, struct ucma_id *made);
/* Moves the events of an ID to the end of the queue of another file. */
void ucma_events_move(struct ucma_id *id, struct ucma_file *to);
/* Fills in the address vector of the path of an ID. */
void ucma_ah_attr(const struct ucma_id *id, struct ib_uverbs_ah_attr *ah);
ucma_fn ucma_get_event;

/* ---- ucma_conn.c */
/* Returns the code of the ACK timeout of a path (Linux: cm_ack_timeout() of core/cm.c). */
uint8_t ucma_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time);
uint8_t ucma_packet_life_time(const struct ucma_id *id);
ucma_fn ucma_listen, ucma_connect, ucma_accept, ucma_reject, ucma_disconnect, ucma_notify;

/* ---- ucma_cm.c */
/* Handles an event of the CM engine. */
void ucma_cm_event(void *ctx, const struct bb_ibcm_event *ev);
/* Ends a connection if the link knows that its peer is gone: another process has the peer's QPN. */
void ucma_cm_reused(void *ctx, uint32_t cm, uint64_t cookie);
/* Ends the connections whose peers no longer exist and have sent no DREQ. */
void ucma_peers_check(struct ucma *u);

/* ---- ucma_mcast.c */
ucma_fn ucma_join_ip_mcast, ucma_join_mcast, ucma_leave_mcast;

/* ---- ucma_query.c */
ucma_fn ucma_query_route, ucma_query, ucma_init_qp_attr;

/* ---- ucma.c */
ucma_fn ucma_create_id, ucma_destroy_id, ucma_migrate_id, ucma_set_option;

#endif
