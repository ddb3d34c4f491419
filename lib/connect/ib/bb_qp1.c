/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QP1 of a device and its communication manager: creation, receives, sends. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include "bb_gid_priv.h"
#include "bb_post.h"
#include "bb_qp1.h"

#define PORT      1u
#define RECVS     256u
#define SENDS     128u
#define SLOT      512u /* bytes of a receive buffer, and of a send buffer */
#define BATCH     32u  /* completions that a poll handles at most */
#define HELD      64u  /* MADs that may wait; see tx() */
#define HELD_PEER 4u   /* MADs of one destination that may wait for its MAC */
#define HELD_NS   UINT64_C(2000000000)
/* Slots of the engine. Each takes about 500 bytes. */
#define MAX_CONNS 16384u
/* Maximum time, in ns, that the last user waits until its posted sends are complete. */
#define LAST_NS UINT64_C(20000000)

struct held {
	struct bb_ibcm_net net;
	uint64_t deadline;
	/*
	 * In the first held MAD of a destination: true if it waits for the MAC, false if for a send
	 * buffer or the device's lock. The others wait for the first.
	 */
	bool no_mac;
	uint8_t mad[BB_IBCM_MAD];
};

struct bb_qp1 {
	LIST_ENTRY(bb_qp1) link;
	struct bb_dev *dev;
	uint32_t refs; /* number of users; protected by services_lock */
	pthread_mutex_t lock;
	struct bb_pd *pd;
	struct bb_cq *cq, *send_cq; /* cq: completions of receives */
	struct bb_qp *qp;
	struct bb_mr *mr;
	uint8_t *buf;
	struct bb_ibcm *engine;
	uint32_t sent, completed; /* numbers of sends posted and completed; the send buffers are
				     used in turn */
	uint8_t sgid_index;       /* index of the GID that was last used as source */
	uint32_t nheld, next_held;
	struct held held[HELD]; /* in the order of their creation */
	struct bb_qp1_stats stats;
	bool failed; /* a completion with an error was logged */
};

static LIST_HEAD(, bb_qp1) services = LIST_HEAD_INITIALIZER(services);
static pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t
bb_qp1_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct bb_ibcm *
bb_qp1_lock(struct bb_qp1 *q)
{
	pthread_mutex_lock(&q->lock);
	return q->engine;
}

void
bb_qp1_unlock(struct bb_qp1 *q)
{
	pthread_mutex_unlock(&q->lock);
}

const struct bb_qp1_stats *
bb_qp1_stats(const struct bb_qp1 *q)
{
	return &q->stats;
}

/* ---- Sending */

static bool
has_gid(struct bb_dev *dev, uint32_t index, const uint8_t gid[16])
{
	struct bb_gid g = {0};

	return dev->drv->gid_query(dev, PORT, index, &g) == 0 && g.type == BB_GID_ROCE_V2 &&
	       memcmp(g.raw, gid, sizeof(g.raw)) == 0;
}

/* Finds the index of a local GID. Call with dev->lock held. Returns 0 or -ENOENT. */
static int
find_sgid(struct bb_qp1 *q, const uint8_t gid[16])
{
	struct bb_port_attr port = {0};
	uint32_t i;

	if (has_gid(q->dev, q->sgid_index, gid))
		return 0;
	if (q->dev->drv->port_query(q->dev, PORT, &port) != 0)
		return -ENOENT;
	for (i = 0; i < port.gids && i <= UINT8_MAX; i++) {
		if (!has_gid(q->dev, i, gid))
			continue;
		q->sgid_index = (uint8_t)i;
		return 0;
	}
	return -ENOENT;
}

/*
 * Resolves a path without waiting: neither for the MAC of the peer (-EAGAIN) nor for another thread
 * that holds the lock of the device (-EBUSY). Returns 0, one of these, or the reason why the peer
 * is unreachable. No ah_release() follows, because the address vectors of a device whose QP1
 * belongs to the library hold no reference.
 */
static int
resolve(struct bb_qp1 *q, const struct bb_ibcm_net *net, struct bb_ah *ah)
{
	struct bb_path path = {
		.port = PORT,
		.hop_limit = net->hop_limit,
		.traffic_class = net->tclass,
		.flow_label = net->flow_label,
		.sl = net->sl & 7, /* Ethernet has 8 priorities */
	};
	int ret;

	/* The GID comes from a received packet, so it may not be the address of a host. */
	if (bb_gid_scope(net->dst) == BB_GID_SCOPE_NONE)
		return -EHOSTUNREACH;
	if (pthread_mutex_trylock(&q->dev->lock) != 0)
		return -EBUSY;
	memcpy(path.dgid, net->dst, sizeof(path.dgid));
	ret = find_sgid(q, net->src);
	path.sgid_index = q->sgid_index;
	if (ret == 0)
		ret = q->dev->drv->path_ready(q->dev, &path);
	ah->pd = q->pd;
	if (ret == 0)
		ret = q->dev->drv->ah_resolve(q->pd, &path, &ah->av);
	pthread_mutex_unlock(&q->dev->lock);
	return ret;
}

static void
failed(struct bb_qp1 *q, const struct bb_wc *wc)
{
	if (!q->failed)
		BB_LOG(ERR,
		       "%s: QP1 reported \"%s\": connections by BB_CM_IB get no more messages; "
		       "destroy the CMs of the device and create them again",
		       q->dev->name, bb_wc_status_name(wc->status));
	q->failed = true;
}

/*
 * Frees the buffers of completed sends. Sends have their own CQ, so this may run inside a callback
 * of the receive path.
 */
static void
reap_sends(struct bb_qp1 *q)
{
	struct bb_wc wc[BATCH];
	uint32_t i, n;

	do {
		n = bb_cq_poll(q->send_cq, wc, BATCH);
		for (i = 0; i < n; i++)
			if (wc[i].status != BB_WC_SUCCESS)
				failed(q, &wc[i]);
		q->completed += n;
	} while (n == BATCH);
}

/*
 * Posts a MAD. Returns -EAGAIN if it must wait for the MAC of its destination, -EBUSY if it must
 * wait for the device's lock or a send buffer. Else the MAD is sent or dropped.
 */
static int
post_send(struct bb_qp1 *q, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	uint8_t *at = q->buf + (RECVS + q->sent % SENDS) * SLOT;
	const struct bb_sge sge = {(uintptr_t)at, BB_IBCM_MAD, q->mr->lkey};
	struct bb_ah ah;
	int ret;

	if (q->sent - q->completed == SENDS)
		reap_sends(q);
	if (q->sent - q->completed == SENDS)
		return -EBUSY;
	ret = resolve(q, net, &ah);
	if (ret == -EAGAIN || ret == -EBUSY)
		return ret;
	if (ret != 0) {
		q->stats.no_address++;
		return 0;
	}
	memcpy(at, mad, BB_IBCM_MAD);
	ret = bb_post_send_ud(q->qp, 0, &sge, 1, &ah, BB_IBCM_QPN, BB_IBCM_QKEY, BB_SEND_SIGNALED);
	if (ret != 0) {
		q->stats.no_room++;
		return 0;
	}
	q->sent++;
	q->stats.sent++;
	bb_qp_ring(q->qp);
	return 0;
}

static bool
same_peer(const struct held *h, const struct bb_ibcm_net *net)
{
	return memcmp(h->net.dst, net->dst, sizeof(net->dst)) == 0;
}

/*
 * Sends a MAD, or holds it until it can be sent. MADs of one destination keep their order, so that
 * an RTU arrives before the DREQ.
 */
static void
tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	const struct held *first = NULL;
	struct bb_qp1 *q = ctx;
	uint32_t i, n = 0;
	struct held *h;
	int ret;

	for (i = 0; i < q->nheld; i++) {
		if (!same_peer(&q->held[i], net))
			continue;
		if (first == NULL)
			first = &q->held[i];
		n++;
	}
	ret = first == NULL ? post_send(q, net, mad) : first->no_mac ? -EAGAIN : -EBUSY;
	if (ret == 0)
		return;
	if (q->nheld == HELD || (ret == -EAGAIN && n >= HELD_PEER)) {
		q->stats.no_room++;
		return;
	}
	h = &q->held[q->nheld++];
	h->net = *net;
	h->no_mac = ret == -EAGAIN;
	h->deadline = bb_qp1_now() + HELD_NS;
	memcpy(h->mad, mad, BB_IBCM_MAD);
	q->stats.held++;
}

/*
 * Tries to send the held MAD @at. Returns false if it must still wait, for example because another
 * MAD of its destination is before it.
 */
static bool
send_one_held(struct bb_qp1 *q, uint32_t at, uint64_t now)
{
	struct held *h = &q->held[at];
	uint32_t i;
	int ret;

	for (i = 0; i < at; i++)
		if (same_peer(&q->held[i], &h->net))
			return false;
	ret = post_send(q, &h->net, h->mad);
	if (ret != 0 && now < h->deadline) {
		h->no_mac = ret == -EAGAIN;
		return false;
	}
	if (ret != 0)
		q->stats.no_address++;
	q->nheld--;
	memmove(h, h + 1, (q->nheld - at) * sizeof(*h));
	return true;
}

/* Tries to send a few of the MADs that wait. */
static void
send_held(struct bb_qp1 *q)
{
	uint32_t i, n = q->nheld < 8 ? q->nheld : 8;
	const uint64_t now = n != 0 ? bb_qp1_now() : 0;

	for (i = 0; i < n && q->nheld != 0; i++) {
		if (q->next_held >= q->nheld)
			q->next_held = 0;
		q->next_held += !send_one_held(q, q->next_held, now);
	}
}

/* ---- Receiving */

static int
post_recv(struct bb_qp1 *q, uint32_t slot)
{
	const struct bb_sge sge = {(uintptr_t)q->buf + slot * SLOT, BB_IBCM_GRH + BB_IBCM_MAD,
				   q->mr->lkey};

	return bb_post_recv(q->qp, slot, &sge, 1);
}

static void
received(struct bb_qp1 *q, const struct bb_wc *wc, uint64_t now)
{
	const uint8_t *at = q->buf + wc->wr_id * SLOT;
	/* The device has checked the Q_Key. */
	struct bb_ibcm_gmp gmp = {.sqpn = wc->src_qp, .qkey = BB_IBCM_QKEY};

	if (wc->byte_len < BB_IBCM_GRH || !bb_ibcm_net_parse(&gmp.net, at)) {
		q->stats.malformed++;
		return;
	}
	q->stats.received++;
	bb_ibcm_rx(q->engine, &gmp, at + BB_IBCM_GRH, wc->byte_len - BB_IBCM_GRH, now);
}

static void
poll_cq(struct bb_qp1 *q, uint64_t now)
{
	struct bb_wc wc[BATCH];
	uint32_t i, n = bb_cq_poll(q->cq, wc, BATCH), reposted = 0;

	for (i = 0; i < n; i++) {
		if (wc[i].status != BB_WC_SUCCESS) {
			failed(q, &wc[i]);
		} else {
			received(q, &wc[i], now);
			reposted += post_recv(q, (uint32_t)wc[i].wr_id) == 0;
		}
	}
	if (reposted != 0)
		bb_qp_ring_recv(q->qp);
}

void
bb_qp1_poll(struct bb_qp1 *q)
{
	uint64_t now;

	if (pthread_mutex_trylock(&q->lock) != 0)
		return;
	now = bb_qp1_now();
	reap_sends(q);
	poll_cq(q, now);
	bb_ibcm_tick(q->engine, now);
	send_held(q);
	pthread_mutex_unlock(&q->lock);
}

/* ---- Creation */

static void
event(void *ctx, const struct bb_ibcm_event *ev)
{
	struct bb_qp1_user *user = (struct bb_qp1_user *)(uintptr_t)ev->cookie;

	(void)ctx;
	user->event(user, ev);
}

/* Makes a GUID from the EUI-64 of the link-local GID, as cards do; without one, from @random. */
static uint64_t
make_guid(struct bb_dev *dev, uint64_t random)
{
	static const uint8_t link_local[8] = {0xfe, 0x80};
	struct bb_gid gid;
	uint64_t guid;

	if (bb_gid_query(dev, PORT, 0, &gid) != 0 || memcmp(gid.raw, link_local, 8) != 0)
		return random;
	memcpy(&guid, gid.raw + 8, sizeof(guid));
	return bb_be64(guid);
}

static int
make_engine(struct bb_qp1 *q)
{
	static const struct bb_ibcm_ops ops = {.tx = tx, .event = event};
	struct bb_ibcm_attr attr;
	uint64_t random[2];
	int ret = bb_random(q->dev, random, sizeof(random));

	if (ret != 0)
		return ret;
	bb_ibcm_attr_init(&attr);
	attr.max_conns = MAX_CONNS;
	attr.seed = random[0];
	attr.ca_guid = make_guid(q->dev, random[1]);
	attr.ops = &ops;
	attr.ctx = q;
	return bb_ibcm_create(&attr, &q->engine);
}

/* Creates QP1 in RESET. */
static int
make_qp(struct bb_qp1 *q)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	int ret = bb_pd_alloc(q->dev, &q->pd);

	bb_cq_attr_init(&attr);
	/* The lock of the service protects the queues, so any owner will do. */
	if (rte_lcore_id() == LCORE_ID_ANY)
		attr.lcore = rte_get_main_lcore();
	attr.depth = RECVS;
	if (ret == 0)
		ret = bb_cq_create(q->dev, &attr, &q->cq);
	attr.depth = SENDS;
	if (ret == 0)
		ret = bb_cq_create(q->dev, &attr, &q->send_cq);
	bb_qp_init_attr_init(&init);
	init.type = BB_QPT_UD;
	init.send_cq = q->send_cq;
	init.recv_cq = q->cq;
	init.sq_depth = SENDS;
	init.rq_depth = RECVS;
	if (ret == 0)
		ret = bb_qp_create(q->pd, &init, &q->qp);
	return ret == 0 ? bb_qp1_claim(q->qp) : ret;
}

static int
start_qp(struct bb_qp1 *q)
{
	uint32_t i;
	int ret;

	q->buf = rte_zmalloc("bb_qp1", (RECVS + SENDS) * SLOT, SLOT);
	if (q->buf == NULL)
		return bb_no_memory(q->dev, "the buffers of QP1");
	ret = bb_mr_reg(q->pd, q->buf, (RECVS + SENDS) * SLOT, BB_ACCESS_LOCAL_WRITE, &q->mr);
	if (ret == 0)
		ret = bb_qp_ud_up(q->qp, PORT, 0, BB_IBCM_QKEY, 0);
	/* From now on the lock of the service takes the place of the owner. */
	q->qp->sq.owner = q->qp->rq.owner = LCORE_ID_ANY;
	for (i = 0; i < RECVS && ret == 0; i++)
		ret = post_recv(q, i);
	if (ret == 0)
		bb_qp_ring_recv(q->qp);
	return ret;
}

static void
destroy(struct bb_qp1 *q)
{
	if (q->qp != NULL)
		(void)bb_qp_destroy(q->qp);
	if (q->send_cq != NULL)
		(void)bb_cq_destroy(q->send_cq);
	if (q->cq != NULL)
		(void)bb_cq_destroy(q->cq);
	if (q->mr != NULL)
		(void)bb_mr_dereg(q->mr);
	if (q->pd != NULL)
		(void)bb_pd_free(q->pd);
	rte_free(q->buf);
	if (q->engine != NULL)
		bb_ibcm_destroy(q->engine);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static int
create(struct bb_dev *dev, struct bb_qp1 **out)
{
	struct bb_qp1 *q;
	int ret;

	if (!dev->ethernet || dev->iwarp)
		return -ENOTSUP;
	q = bb_alloc(dev, "QP1", sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->dev = dev;
	pthread_mutex_init(&q->lock, NULL);
	ret = make_qp(q);
	if (ret == 0)
		ret = start_qp(q);
	if (ret == 0)
		ret = make_engine(q);
	if (ret != 0) {
		destroy(q);
		return ret;
	}
	*out = q;
	return 0;
}

/* Returns the service of a device, NULL if it has none. Under services_lock. */
static struct bb_qp1 *
find(const struct bb_dev *dev)
{
	struct bb_qp1 *q;

	LIST_FOREACH(q, &services, link)
		if (q->dev == dev)
			break;
	return q;
}

bool
bb_qp1_counters(const struct bb_dev *dev, struct bb_qp1_stats *stats, struct bb_ibcm_stats *cm)
{
	struct bb_qp1 *q;

	pthread_mutex_lock(&services_lock);
	q = find(dev);
	if (q != NULL) {
		*cm = *bb_ibcm_stats(bb_qp1_lock(q));
		*stats = q->stats;
		bb_qp1_unlock(q);
	}
	pthread_mutex_unlock(&services_lock);
	return q != NULL;
}

int
bb_qp1_get(struct bb_dev *dev, struct bb_qp1 **out)
{
	struct bb_qp1 *q;
	int ret = 0;

	pthread_mutex_lock(&services_lock);
	q = find(dev);
	if (q == NULL) {
		ret = create(dev, &q);
		if (ret == 0)
			LIST_INSERT_HEAD(&services, q, link);
	}
	if (ret == 0) {
		q->refs++;
		*out = q;
	}
	pthread_mutex_unlock(&services_lock);
	return ret;
}

/*
 * Polls until the messages that the last user has posted are sent, such as DREQ, but at most for
 * LAST_NS.
 */
static void
send_last(struct bb_qp1 *q)
{
	const uint64_t end = bb_qp1_now() + LAST_NS;

	while ((q->sent != q->completed || q->nheld != 0) && bb_qp1_now() < end)
		bb_qp1_poll(q);
}

void
bb_qp1_put(struct bb_qp1 *q)
{
	pthread_mutex_lock(&services_lock);
	if (--q->refs == 0) {
		send_last(q);
		LIST_REMOVE(q, link);
		destroy(q);
	}
	pthread_mutex_unlock(&services_lock);
}
