/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Resolves the MAC of a peer's GID, which the QP needs for the transition to RTR. An
 * unauthenticated peer chooses the GID, so the peer controls how long the resolution takes. So the
 * poll loop starts to resolve the MAC, continues, and checks for the result in later polls. Limits
 * the half-open connections, which wait for the MAC or, over TCP, for the request.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>

#include "bb_cm_priv.h"
#include "bb_gid_priv.h"

/*
 * Maximum GIDs that are being resolved at a time, in total and per TCP address. A peer may name a
 * GID that no host has, and resolving it then takes seconds. Further connections wait.
 */
#define RESOLVING_MAX  16u
#define RESOLVING_PEER 4u
/* A half-open connection of at least this age, in ms, may be closed to make room for a new one. */
#define EVICT_MS 250

/*
 * Returns true if both addresses belong to one host. An IPv6 host may use all addresses of its /64
 * network (RFC 4291, 2.5.1).
 */
static bool
same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct in6_addr *a6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
	const struct in6_addr *b6 = &((const struct sockaddr_in6 *)b)->sin6_addr;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return memcmp(a6, b6, IN6_IS_ADDR_V4MAPPED(a6) ? sizeof(*a6) : 8) == 0;
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

void
bb_cm_gid_of(const struct sockaddr_storage *addr, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr->ss_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return;
	}
	memcpy(gid, mapped, sizeof(mapped));
	memcpy(gid + sizeof(mapped), &((const struct sockaddr_in *)addr)->sin_addr, 4);
}

bool
bb_cm_evict(struct bb_cm *cm)
{
	struct bb_conn *c = TAILQ_FIRST(&cm->half_open_conns);

	if (c == NULL || bb_cm_now() - c->created_at < cm->hz / 1000 * EVICT_MS)
		return false;
	cm->stats.evicted++;
	cm->ops->disconnect(c, true);
	bb_cm_conn_free(c);
	return true;
}

bool
bb_cm_make_room(struct bb_cm *cm)
{
	return cm->stats.half_open < cm->attr.max_half_open || bb_cm_evict(cm);
}

bool
bb_cm_may_resolve(struct bb_conn *c)
{
	const struct bb_conn *other;
	uint32_t n = 0;

	if (c->counted_as_resolving)
		return true;
	if (c->cm->n_resolving_half_open >= RESOLVING_MAX)
		return false;
	TAILQ_FOREACH(other, &c->cm->half_open_conns, half_link) {
		n += other->counted_as_resolving && same_host(&other->addr, &c->addr);
		if (n == RESOLVING_PEER)
			return false;
	}
	c->counted_as_resolving = true;
	c->cm->n_resolving_half_open++;
	return true;
}

void
bb_cm_resolve_begin(struct bb_conn *c)
{
	if (c->resolving)
		return;
	c->resolving = true;
	c->cm->resolving++;
	bb_cm_wake(c->cm);
}

void
bb_cm_resolve_end(struct bb_conn *c)
{
	c->cm->resolving -= c->resolving;
	c->cm->n_resolving_half_open -= c->counted_as_resolving;
	c->resolving = c->counted_as_resolving = false;
}

int
bb_cm_peer_ready(const struct bb_conn *c, const struct bb_cm_end *peer)
{
	struct bb_dev *dev = c->cm->dev;
	struct bb_path path = c->param.path;

	/*
	 * With librdmacm the kernel has already resolved the MAC: in rdma_resolve_addr(), or to
	 * reply to the REQ (Linux, ib_init_ah_attr_from_wc()). iWARP has no GIDs to resolve.
	 */
	if (!c->cm->ops->addresses || !dev->ethernet)
		return 0;
	if (bb_gid_scope(peer->addr.gid) == BB_GID_SCOPE_NONE)
		return -EHOSTUNREACH;
	memcpy(path.dgid, peer->addr.gid, sizeof(path.dgid));
	return dev->drv->path_ready(dev, &path);
}

int
bb_cm_connect_qp(struct bb_conn *c, const struct bb_qp_addr *local, const struct bb_qp_addr *remote)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.access = c->param.access;
	attr.path = c->param.path;
	if ((c->peer.flags & BB_CM_GRH) != 0)
		attr.path.is_global = 1;
	attr.max_rd_atomic = c->rd_init;
	attr.max_dest_rd_atomic = c->rd_resp;
	attr.min_rnr_timer = c->param.min_rnr_timer;
	attr.timeout = c->peer.ack_timeout != 0 ? c->peer.ack_timeout : c->param.ack_timeout;
	attr.retry_cnt = c->active ? c->own.retry_count : c->peer.retry_count;
	attr.rnr_retry = c->peer.rnr_retry_count;
	return bb_qp_connect_owned(c->qp, local, remote, &attr);
}

int
bb_cm_qp_up(struct bb_conn *c)
{
	int ret = bb_cm_peer_ready(c, &c->peer);

	return ret != 0 ? ret : c->cm->ops->qp_up(c);
}

void
bb_cm_accepted_path(const struct bb_conn *c)
{
	const struct bb_gid_want *want = &c->param.gid;
	struct bb_listener *l = c->listener;

	if (l == NULL)
		return;
	l->accepted = true;
	l->path = c->param.path;
	l->path_sure = !c->param.sgid_index_given && !want->exact && !want->prefer &&
		       want->netdev[0] == '\0' && want->vlan == BB_GID_ANY_VLAN;
	memcpy(l->peer, c->peer.addr.gid, sizeof(l->peer));
}

bool
bb_cm_request_path(struct bb_conn *c)
{
	const bool ipv4 = bb_gid_is_ipv4(c->peer.addr.gid);
	const struct bb_listener *l = c->listener;
	struct bb_gid_entry list[BB_GID_MAX];
	struct bb_gid_want want;
	uint32_t rank, best = 0;
	int i, n;

	if (!c->cm->ops->addresses || !c->cm->dev->ethernet)
		return false;
	c->param.path.port = 1;
	if (c->sgid_fixed) {
		c->path_sure = true;
		return bb_cm_choose_gid(c) == 0;
	}
	if (l != NULL && l->accepted && bb_gid_is_ipv4(l->peer) == ipv4 &&
	    bb_gid_scope(l->peer) == bb_gid_scope(c->peer.addr.gid)) {
		c->param.path = l->path;
		c->path_sure = l->path_sure;
		return true;
	}
	bb_gid_want_init(&want);
	want.family = ipv4 ? BB_GID_IPV4 : BB_GID_IPV6;
	want.peer_given = true;
	memcpy(want.peer, c->peer.addr.gid, sizeof(want.peer));
	n = bb_gid_list(c->cm->dev, 1, list, RTE_DIM(list));
	c->path_sure = n > 0 && bb_gid_pick(list, (unsigned int)n, &want, &rank) >= 0;
	for (i = 0; i < n; i++) {
		rank = bb_gid_rank(&list[i], &want);
		if (rank <= best)
			continue;
		best = rank;
		c->param.path.sgid_index = list[i].index;
	}
	return best != 0;
}
