/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A program's commands to a rdma_cm node, as librdmacm writes them. */
#ifndef UCMA_PROGRAM_H
#define UCMA_PROGRAM_H

#include <infiniband/verbs.h>

#include "bb_test.h"
#include "ucma_pair.h"

#define PORT 7471
#define QPN  0x11
#define UID  UINT64_C(0xfeed0001)

enum {
	ADDR_RESOLVED,
	ADDR_ERROR,
	ROUTE_RESOLVED,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE,
	UNREACHABLE = 7,
	REJECTED,
	ESTABLISHED,
	DISCONNECTED,
};

/* ---- Commands */

static inline int
create_rc(struct up_host *h, unsigned int file, uint64_t uid, uint16_t ps, uint32_t *id)
{
	struct rdma_ucm_create_id_resp r = {0};
	const struct rdma_ucm_create_id c = {.uid = uid, .response = (uintptr_t)&r, .ps = ps};
	int ret = up_command(h, file, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r));

	*id = r.id;
	return ret;
}

static inline uint32_t
create(struct up_host *h, unsigned int file, uint64_t uid, uint16_t ps)
{
	uint32_t id;

	OK(create_rc(h, file, uid, ps, &id));
	return id;
}

static inline int
destroy_rc(struct up_host *h, unsigned int file, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id_resp r = {0};
	const struct rdma_ucm_destroy_id c = {.response = (uintptr_t)&r, .id = id};
	int ret = up_command(h, file, RDMA_USER_CM_CMD_DESTROY_ID, &c, sizeof(c), sizeof(r));

	*events = r.events_reported;
	return ret;
}

/* Destroys an ID. Returns the number of its events that the program has read. */
static inline uint32_t
destroy(struct up_host *h, unsigned int file, uint32_t id)
{
	uint32_t events;

	OK(destroy_rc(h, file, id, &events));
	return events;
}

static inline struct sockaddr_in
v4(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)};
}

#define HOST(n_) (0x0a000000u + (n_))

static inline int
bind_rc(struct up_host *h, unsigned int file, uint32_t id, uint32_t addr, uint16_t port)
{
	const struct sockaddr_in a = v4(addr, port);
	struct rdma_ucm_bind_ip c = {.id = id};

	memcpy(&c.addr, &a, sizeof(a));
	return up_command(h, file, RDMA_USER_CM_CMD_BIND_IP, &c, sizeof(c), 0);
}

static inline int
listen_rc(struct up_host *h, unsigned int file, uint32_t id, int backlog)
{
	const struct rdma_ucm_listen c = {.id = id, .backlog = (uint32_t)backlog};

	return up_command(h, file, RDMA_USER_CM_CMD_LISTEN, &c, sizeof(c), 0);
}

static inline uint32_t
listener(struct up_host *h, uint16_t ps, uint16_t port, int backlog)
{
	const uint32_t id = create(h, 0, UID, ps);

	OK(bind_rc(h, 0, id, INADDR_ANY, port));
	OK(listen_rc(h, 0, id, backlog));
	return id;
}

static inline int
resolve_rc(struct up_host *h, uint32_t id, uint32_t dst, uint16_t port, uint32_t ms)
{
	const struct sockaddr_in a = v4(dst, port);
	struct rdma_ucm_resolve_ip c = {.id = id, .timeout_ms = ms};

	memcpy(&c.dst_addr, &a, sizeof(a));
	return up_command(h, 0, RDMA_USER_CM_CMD_RESOLVE_IP, &c, sizeof(c), 0);
}

static inline int
route_rc(struct up_host *h, uint32_t id)
{
	const struct rdma_ucm_resolve_route c = {.id = id, .timeout_ms = 2000};

	return up_command(h, 0, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &c, sizeof(c), 0);
}

static inline struct rdma_ucm_conn_param
param(uint32_t qpn, const char *data)
{
	struct rdma_ucm_conn_param p = {
		.qp_num = qpn,
		.private_data_len = (uint8_t)strlen(data),
		.responder_resources = 3,
		.initiator_depth = 5,
		.retry_count = 9,
		.rnr_retry_count = 6,
		.valid = 1,
	};

	memcpy(p.private_data, data, strlen(data));
	return p;
}

static inline int
connect_rc(struct up_host *h, uint32_t id, const struct rdma_ucm_conn_param *p)
{
	const struct rdma_ucm_connect c = {.conn_param = *p, .id = id};

	return up_command(h, 0, RDMA_USER_CM_CMD_CONNECT, &c, sizeof(c), 0);
}

static inline int
accept_rc(struct up_host *h, unsigned int file, uint32_t id, uint64_t uid,
	  const struct rdma_ucm_conn_param *p)
{
	const struct rdma_ucm_accept c = {.uid = uid, .conn_param = *p, .id = id};

	return up_command(h, file, RDMA_USER_CM_CMD_ACCEPT, &c, sizeof(c), 0);
}

static inline int
reject_rc(struct up_host *h, uint32_t id, uint8_t reason, const char *data)
{
	struct rdma_ucm_reject c = {
		.id = id, .private_data_len = (uint8_t)strlen(data), .reason = reason};

	memcpy(c.private_data, data, strlen(data));
	return up_command(h, 0, RDMA_USER_CM_CMD_REJECT, &c, sizeof(c), 0);
}

static inline int
disconnect_rc(struct up_host *h, uint32_t id)
{
	const struct rdma_ucm_disconnect c = {.id = id};

	return up_command(h, 0, RDMA_USER_CM_CMD_DISCONNECT, &c, sizeof(c), 0);
}

static inline int
option_rc(struct up_host *h, uint32_t id, uint32_t name, const void *value, uint32_t len)
{
	const struct rdma_ucm_set_option c = {.optval = (uintptr_t)value,
					      .id = id,
					      .level = RDMA_OPTION_ID,
					      .optname = name,
					      .optlen = len};

	return up_command(h, 0, RDMA_USER_CM_CMD_SET_OPTION, &c, sizeof(c), 0);
}

static inline int
event_rc(struct up_host *h, unsigned int file, struct rdma_ucm_event_resp *ev)
{
	const struct rdma_ucm_get_event c = {.response = (uintptr_t)ev};

	memset(ev, 0x5a, sizeof(*ev));
	return up_command(h, file, RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), sizeof(*ev));
}

/* Reads the next event of file 0, which must be of @type. */
static inline struct rdma_ucm_event_resp
event(struct up_host *h, uint32_t type)
{
	struct rdma_ucm_event_resp ev;

	assert_true(h->files[0].readable);
	OK(event_rc(h, 0, &ev));
	assert_int_equal(ev.event, type);
	return ev;
}

static inline void
no_event(struct up_host *h, unsigned int file)
{
	struct rdma_ucm_event_resp ev;

	assert_int_equal(event_rc(h, file, &ev), -EAGAIN);
	assert_false(h->files[file].readable);
}

static inline int
qp_attr(struct up_host *h, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *a)
{
	const struct rdma_ucm_init_qp_attr c = {
		.response = (uintptr_t)a, .id = id, .qp_state = state};

	memset(a, 0x5a, sizeof(*a));
	return up_command(h, 0, RDMA_USER_CM_CMD_INIT_QP_ATTR, &c, sizeof(c), sizeof(*a));
}

static inline struct rdma_ucm_query_route_resp
query_route(struct up_host *h, uint32_t id)
{
	struct rdma_ucm_query_route_resp r;
	const struct rdma_ucm_query c = {.response = (uintptr_t)&r, .id = id};

	OK(up_command(h, 0, RDMA_USER_CM_CMD_QUERY_ROUTE, &c, sizeof(c), sizeof(r)));
	return r;
}

/* ---- Two programs */

/* Makes an ID of host 0 that is ready to connect to host 1. */
static inline uint32_t
routed(struct up *up, uint64_t uid, uint16_t ps, uint16_t port)
{
	const uint32_t id = create(&up->host[0], 0, uid, ps);

	OK(resolve_rc(&up->host[0], id, HOST(2), port, 1000));
	assert_int_equal(event(&up->host[0], ADDR_RESOLVED).uid, uid);
	OK(route_rc(&up->host[0], id));
	event(&up->host[0], ROUTE_RESOLVED);
	return id;
}

struct conn {
	uint32_t listener, active, passive;
};

/*
 * Connects host 0 to host 1, up to the passive side's event ESTABLISHED. The two QPNs are @qpn and
 * the next one.
 */
static inline struct conn
connected_by(struct up *up, uint32_t qpn)
{
	struct rdma_ucm_conn_param none = {0}, p = param(qpn, "to"), back = param(qpn + 1, "fro");
	struct up_host *a = &up->host[0], *b = &up->host[1];
	struct conn c;

	c.listener = listener(b, RDMA_PS_TCP, PORT, 0);
	c.active = routed(up, 1, RDMA_PS_TCP, PORT);
	OK(connect_rc(a, c.active, &p));
	up_run(up);
	c.passive = event(b, CONNECT_REQUEST).id;
	OK(accept_rc(b, 0, c.passive, 2, &back));
	up_run(up);
	event(a, CONNECT_RESPONSE);
	OK(accept_rc(a, 0, c.active, 0, &none));
	up_run(up);
	assert_int_equal(event(b, ESTABLISHED).uid, 2);
	return c;
}

static inline struct conn
connected(struct up *up)
{
	return connected_by(up, QPN);
}

#endif
