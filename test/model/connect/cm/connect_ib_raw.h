/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections by BB_CM_IB, and a raw peer that uses the CM engine of its device directly. */
#ifndef CONNECT_IB_RAW_H
#define CONNECT_IB_RAW_H

#include "connect_env.h"
#include "ib/bb_qp1.h"

static struct pair p;

static inline void
open_devs(const char *a, const char *b)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_IB;
	attr.poll_us = 0;
	pair_open_with(&p, a, b, &attr);
}

/* ---- Raw peer */

/* A user of the CM engine of a device. */
struct raw {
	struct bb_qp1_user user; /* must be the first member */
	struct bb_dev *dev;
	struct bb_qp1 *q;
	struct bb_ibcm *engine;
	uint8_t gid[16];
	uint32_t id, events[BB_IBCM_EV_SIDR_REP + 1];
	struct bb_ibcm_msg msg; /* of the last event; its private data is in priv */
	uint8_t priv[BB_IBCM_PRIV_RTU];
	struct bb_ibcm_ip ip; /* of the last REQ */
	bool forgets;         /* gives back the IDs of connections that have ended */
};

static inline void
raw_event(struct bb_qp1_user *user, const struct bb_ibcm_event *ev)
{
	struct raw *r = (struct raw *)user;

	r->id = ev->id;
	r->events[ev->type]++;
	if (r->forgets && ev->type != BB_IBCM_EV_REP)
		OK(bb_ibcm_release(r->engine, ev->id, bb_qp1_now()));
	if (ev->ip != NULL)
		r->ip = *ev->ip;
	if (ev->msg == NULL)
		return;
	r->msg = *ev->msg;
	memcpy(r->priv, ev->msg->priv, ev->msg->priv_len);
}

static inline void
raw_open(struct raw *r, const char *spec)
{
	struct sockaddr_storage addr;

	memset(r, 0, sizeof(*r));
	r->user.event = raw_event;
	OK(bb_dev_open(spec, &r->dev));
	OK(bb_qp1_get(r->dev, &r->q));
	r->engine = bb_qp1_lock(r->q);
	bb_qp1_unlock(r->q);
	dev_address(r->dev, BB_CM_IB, &addr);
	r->gid[10] = r->gid[11] = 0xff;
	memcpy(r->gid + 12, &((struct sockaddr_in *)&addr)->sin_addr, 4);
}

static inline void
raw_close(struct raw *r)
{
	bb_qp1_put(r->q);
	OK(bb_dev_close(r->dev));
}

/* Polls the raw peer and the pair until @r has had an event of type @type. */
static inline void
raw_expect(struct raw *r, enum bb_ibcm_event_type type)
{
	const uint64_t end = wait_end();

	while (r->events[type] == 0) {
		bb_qp1_poll(r->q);
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	r->events[type] = 0;
}

/* Address of the listener of the pair as a GID. */
static inline void
listener_gid(uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &((struct sockaddr_in *)&p.addr)->sin_addr, 4);
}

/* Second address of the listener's device, for the header OTHER_TARGET. */
static const uint8_t second_gid[16] = {[10] = 0xff, [11] = 0xff, 169, 254, 0, 2};

enum header {
	VALID,
	NONE,
	OTHER_ADDRESS, /* the source address is not that of the sender */
	OTHER_TARGET,  /* the destination address is not that of the packet */
};

/* Sends a REQ with this kind of IP CM header to the listener of the pair. */
static inline uint32_t
raw_connect(struct raw *r, uint32_t qpn, enum header header)
{
	const struct bb_ibcm_req req = {
		.service_id = bb_ibcm_service_id(BB_IBCM_PS_TCP, bb_listener_port(p.listener)),
		.qpn = qpn,
		.psn = 0x123456,
		.responder_resources = 4,
		.initiator_depth = 2,
		.remote_timeout = 14,
		.local_timeout = 14,
		.retry_count = 5,
		.rnr_retry = 4,
		.pkey = 0xffff,
		.mtu = 2,
		.cm_retries = 3,
		.primary = {.ack_timeout = 31},
	};
	struct bb_ibcm_ip ip = {.version = 4, .sport = 4711};
	struct bb_ibcm_net net = {.hop_limit = 64};
	uint8_t priv[BB_IBCM_IP_LEN + 4] = {0xff};
	uint32_t id = 0;

	memcpy(net.src, r->gid, 16);
	listener_gid(net.dst);
	memcpy(ip.src, net.src, 16);
	memcpy(ip.dst, net.dst, 16);
	if (header == OTHER_ADDRESS)
		ip.src[15] ^= 1;
	if (header == OTHER_TARGET)
		memcpy(net.dst, second_gid, 16);
	if (header != NONE)
		bb_ibcm_ip_build(priv, &ip);
	memcpy(priv + BB_IBCM_IP_LEN, "evil", 4);
	OK(bb_ibcm_connect(bb_qp1_lock(r->q), &net, &req, priv, sizeof(priv),
			   bb_qp1_cookie(&r->user), bb_qp1_now(), &id));
	bb_qp1_unlock(r->q);
	return id;
}

static inline void
raw_release(struct raw *r, uint32_t id)
{
	OK(bb_ibcm_release(bb_qp1_lock(r->q), id, bb_qp1_now()));
	bb_qp1_unlock(r->q);
}

#define CONNECT_IB_MAIN                                                                            \
	int main(void)                                                                             \
	{                                                                                          \
		if (bare_eal_init() < 0 || setenv("BB_TEST_CM", "ib", 1) != 0)                     \
			return 77;                                                                 \
		rte_log_set_global_level(RTE_LOG_CRIT);                                            \
		return bb_test_run(__FILE__, NULL, NULL);                                          \
	}

#endif
