/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * IP addresses of IDs: reserves ports, finds the GID table entry of an address, and resolves
 * destinations. The link decides which addresses exist, not the host's routing table, because the
 * address of a GID need not be an address of an interface.
 */
#include <errno.h>
#include <string.h>

#include "ucma_priv.h"

/* Ports for binds to port 0 (Linux: default of net.ipv4.ip_local_port_range). */
#define FIRST_PORT 32768u
#define PORTS      (60999u - FIRST_PORT + 1)
/*
 * The processes of a host share its ports, and choose source ports without asking each other. Each
 * process first tries OWN_TRIES of the ports that are its own: one of SHARES, which are as many as
 * the values of ucma_attr.id_prefix.
 */
#define SHARES    256u
#define OWN_PORTS (PORTS / SHARES)
#define OWN_TRIES 16u
/* Maximum number of GIDs of a host at which an ID may have a port. */
#define MAX_GIDS 16u

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

uint32_t
ucma_addr_len(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* The port has the same offset in sockaddr_in and sockaddr_in6. */
uint16_t
ucma_addr_port(const union ucma_addr *a)
{
	return ntohs(a->in.sin_port);
}

static void
set_port(union ucma_addr *a, uint16_t port)
{
	a->in.sin_port = htons(port);
}

uint64_t
ucma_service_id(const struct ucma_id *id, const union ucma_addr *a)
{
	return (uint64_t)id->ps << 16 | ucma_addr_port(a);
}

void
ucma_addr_gid(const union ucma_addr *a, uint8_t gid[16])
{
	if (a->sa.sa_family == AF_INET) {
		memcpy(gid, mapped, sizeof(mapped));
		memcpy(gid + 12, &a->in.sin_addr, 4);
	} else {
		memcpy(gid, &a->in6.sin6_addr, 16);
	}
}

void
ucma_addr_from_gid(union ucma_addr *a, const uint8_t gid[16], uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
		a->in.sin_family = AF_INET;
		memcpy(&a->in.sin_addr, gid + 12, 4);
	} else {
		a->in6.sin6_family = AF_INET6;
		memcpy(&a->in6.sin6_addr, gid, 16);
	}
	set_port(a, port);
}

bool
ucma_addr_is_any(const union ucma_addr *a)
{
	return a->sa.sa_family == AF_INET ? a->in.sin_addr.s_addr == INADDR_ANY
					  : IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

static bool
is_loopback(const union ucma_addr *a)
{
	return a->sa.sa_family == AF_INET ? ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
					  : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

bool
ucma_gid_find(struct ucma *u, const uint8_t gid[16], uint32_t *index)
{
	struct bb_gid g;
	uint32_t i;

	for (i = 0; i < u->attr.gids; i++)
		if (u->attr.ops->gid(u->attr.ctx, i, &g) == 0 && g.type == BB_GID_ROCE_V2 &&
		    memcmp(g.raw, gid, 16) == 0) {
			*index = i;
			return true;
		}
	return false;
}

/* Finds the first RoCE v2 GID for an address family, except a link-local one. */
static bool
own_gid(struct ucma *u, sa_family_t family, uint8_t gid[16], uint32_t *index)
{
	union ucma_addr a;
	struct bb_gid g;
	uint32_t i;

	for (i = 0; i < u->attr.gids; i++) {
		if (u->attr.ops->gid(u->attr.ctx, i, &g) != 0 || g.type != BB_GID_ROCE_V2)
			continue;
		ucma_addr_from_gid(&a, g.raw, 0);
		if (a.sa.sa_family != family ||
		    (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr)))
			continue;
		memcpy(gid, g.raw, 16);
		*index = i;
		return true;
	}
	return false;
}

/* Replaces a loopback address by the device's address: both are this host. */
static int
no_loopback(struct ucma *u, union ucma_addr *a)
{
	uint8_t gid[16];
	uint32_t index;

	if (!is_loopback(a))
		return 0;
	if (!own_gid(u, a->sa.sa_family, gid, &index))
		return -EADDRNOTAVAIL;
	ucma_addr_from_gid(a, gid, ucma_addr_port(a));
	return 0;
}

/* ---- Ports */

/*
 * Returns 0 if @id may have address and port @a although ID @o exists, otherwise a negative errno
 * (Linux: cma_check_port() of drivers/infiniband/core/cma.c).
 */
static int
conflict(const struct ucma_id *id, const union ucma_addr *a, bool reuse, const struct ucma_id *o)
{
	uint8_t x[16], y[16];

	/*
	 * An ID that a connection request has made shares the listener's port, so it is no
	 * conflict.
	 */
	if (o == id || o->ps != id->ps || o->state == UCMA_IDLE || (!o->active && o->had_cm) ||
	    ucma_addr_port(&o->src) != ucma_addr_port(a))
		return 0;
	if (reuse && o->reuseaddr)
		return 0;
	if (a->sa.sa_family != o->src.sa.sa_family && id->afonly && o->afonly)
		return 0;
	if (ucma_addr_is_any(a) || ucma_addr_is_any(&o->src))
		return -EADDRNOTAVAIL;
	ucma_addr_gid(a, x);
	ucma_addr_gid(&o->src, y);
	return memcmp(x, y, 16) == 0 ? -EADDRINUSE : 0;
}

static int
port_check(const struct ucma_id *id, const union ucma_addr *a, bool reuse)
{
	const struct ucma_id *other;
	int ret;

	TAILQ_FOREACH(other, &id->u->live, link) {
		ret = conflict(id, a, reuse, other);
		if (ret != 0)
			return ret;
	}
	return 0;
}

/* Returns true if an ID that is bound to all addresses of a family has the GID. */
static bool
any_has(const struct ucma_id *id, const union ucma_addr *a, const uint8_t gid[16])
{
	const bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;

	return a->sa.sa_family == AF_INET ? v4 : !v4 || !id->afonly;
}

/* Reserves the port of @a for this process, at each GID of the address. */
static int
take_port(struct ucma_id *id, const union ucma_addr *a)
{
	const struct ucma_attr *attr = &id->u->attr;
	const bool any = ucma_addr_is_any(a);
	uint8_t gids[MAX_GIDS][16];
	struct bb_gid g;
	uint32_t i, n = 0;

	if (attr->ops->port_take == NULL || id->port != NULL)
		return 0;
	if (!any)
		ucma_addr_gid(a, gids[n++]);
	for (i = 0; any && i < attr->gids && n < MAX_GIDS; i++)
		if (attr->ops->gid(attr->ctx, i, &g) == 0 && g.type == BB_GID_ROCE_V2 &&
		    any_has(id, a, g.raw))
			memcpy(gids[n++], g.raw, 16);
	return attr->ops->port_take(attr->ctx, gids, n, any, (uint32_t)ucma_service_id(id, a),
				    &id->port);
}

static void
give_port(struct ucma_id *id)
{
	if (id->port != NULL)
		id->u->attr.ops->port_give(id->u->attr.ctx, id->port);
	id->port = NULL;
}

int
ucma_listen_port(struct ucma_id *id)
{
	/* A listener shares its port with no other ID (Linux: rdma_listen() of core/cma.c). */
	int ret = id->reuseaddr ? port_check(id, &id->src, false) : 0;

	return ret != 0 ? ret : take_port(id, &id->src);
}

/*
 * Checks that an ID may have a port. Takes the port if @take is true. An ID with the option
 * REUSEADDR does not take the port before it listens, so that other processes can share the port.
 */
static int
get_port(struct ucma_id *id, const union ucma_addr *a, bool take)
{
	int ret = port_check(id, a, id->reuseaddr);

	if (ret == 0 && take)
		ret = take_port(id, a);
	if (ret == 0 && id->reuseaddr)
		give_port(id);
	return ret;
}

static int
choose_port(struct ucma_id *id, union ucma_addr *a, bool take)
{
	const uint32_t start = (uint32_t)(ucma_random(id->u) % PORTS);
	const uint32_t prefix = id->u->attr.id_prefix, own = prefix != 0 ? OWN_TRIES : 0;
	int ret = -EADDRNOTAVAIL;
	uint32_t i, port;

	for (i = 0; i < own + PORTS && (ret == -EADDRNOTAVAIL || ret == -EADDRINUSE); i++) {
		port = i < own ? (start + i) % OWN_PORTS * SHARES + prefix : (start + i) % PORTS;
		set_port(a, (uint16_t)(FIRST_PORT + port));
		ret = get_port(id, a, take);
	}
	return ret == -EADDRINUSE ? -EADDRNOTAVAIL : ret;
}

/* ---- Bind */

int
ucma_bind_to(struct ucma_id *id, const union ucma_addr *asked, bool take)
{
	union ucma_addr a = *asked;
	bool has_dev = false;
	uint32_t index = 0;
	uint8_t gid[16];
	int ret;

	if (ucma_addr_len(&a.sa) == 0)
		return -EAFNOSUPPORT;
	if (id->state != UCMA_IDLE)
		return -EINVAL;
	ret = no_loopback(id->u, &a);
	if (ret != 0)
		return ret;
	if (!ucma_addr_is_any(&a)) {
		ucma_addr_gid(&a, gid);
		has_dev = ucma_gid_find(id->u, gid, &index);
		if (!has_dev)
			return -EADDRNOTAVAIL;
	}
	/*
	 * Unless the program has set AFONLY, Linux's rdma_bind_addr() sets it according to the
	 * family.
	 */
	if (!id->afonly_set)
		id->afonly = a.sa.sa_family == AF_INET;
	ret = ucma_addr_port(&a) == 0 ? choose_port(id, &a, take) : get_port(id, &a, take);
	if (ret != 0)
		return ret;
	id->src = a;
	id->has_dev = has_dev;
	if (has_dev) {
		memcpy(id->sgid, gid, 16);
		id->sgid_index = index;
	}
	id->state = UCMA_BOUND;
	return 0;
}

int
ucma_bind_ip(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	union ucma_addr a = {.in6 = c->bind_ip.addr};
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->bind_ip.id, &id);

	(void)out;
	return ret != 0 ? ret : ucma_bind_to(id, &a, true);
}

int
ucma_addr_get(union ucma_addr *a, const struct __kernel_sockaddr_storage *from, uint32_t len)
{
	memset(a, 0, sizeof(*a));
	memcpy(a, from, sizeof(*a));
	return len != 0 && len == ucma_addr_len(&a->sa) ? 0 : -EINVAL;
}

int
ucma_bind(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	union ucma_addr a;
	struct ucma_id *id;
	int ret = c->bind.reserved != 0 ? -EINVAL
					: ucma_addr_get(&a, &c->bind.addr, c->bind.addr_size);

	(void)out;
	if (ret == 0)
		ret = ucma_id_find(f, c->bind.id, &id);
	return ret != 0 ? ret : ucma_bind_to(id, &a, true);
}

/* ---- Resolution of a destination */

static bool
is_multicast(const union ucma_addr *a)
{
	return a->sa.sa_family == AF_INET ? IN_MULTICAST(ntohl(a->in.sin_addr.s_addr))
					  : IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}

/*
 * Asks the link whether the destination can be reached. Queues the resulting event. If the answer
 * is not known yet, queues none, and the node asks again later. A multicast group has no host that
 * could answer.
 */
static void
query(struct ucma_id *id)
{
	struct ucma *u = id->u;
	uint64_t opening;
	int ret = 0;

	if (!is_multicast(&id->dst))
		ret = u->attr.ops->reach(u->attr.ctx, id->sgid_index, id->dgid, 0, &opening);

	if (ret == -EAGAIN) {
		if (u->now < id->deadline)
			return;
		ret = -ETIMEDOUT;
	}
	u->queries--;
	id->state = ret == 0 ? UCMA_ADDR : UCMA_BOUND;
	(void)ucma_event_add(id, ret == 0 ? UCMA_EV_ADDR_RESOLVED : UCMA_EV_ADDR_ERROR, ret);
}

void
ucma_addr_tick(struct ucma *u)
{
	struct ucma_id *id;

	TAILQ_FOREACH(id, &u->live, link)
		if (id->state == UCMA_ADDR_QUERY)
			query(id);
}

/* Sets the source of an ID that has no device yet to an address of this device, of @family. */
static int
choose_source(struct ucma_id *id, sa_family_t family)
{
	if (id->has_dev)
		return 0;
	if (!own_gid(id->u, family, id->sgid, &id->sgid_index))
		return -ENODEV;
	id->has_dev = true;
	ucma_addr_from_gid(&id->src, id->sgid, ucma_addr_port(&id->src));
	return 0;
}

/* A destination of 0.0.0.0 is this host (Linux: cma_resolve_loopback()). */
static int
resolve(struct ucma_id *id, const union ucma_addr *src, const union ucma_addr *to,
	uint32_t timeout_ms)
{
	struct ucma *u = id->u;
	union ucma_addr from = {.sa.sa_family = to->sa.sa_family}, dst = *to;
	int ret = no_loopback(u, &dst);

	if (ret == 0 && id->state == UCMA_IDLE)
		ret = ucma_bind_to(id, ucma_addr_len(&src->sa) != 0 ? src : &from,
				   ucma_addr_len(&src->sa) != 0 && ucma_addr_port(src) != 0);
	if (ret != 0)
		return ret;
	if (id->state != UCMA_BOUND || id->src.sa.sa_family != dst.sa.sa_family)
		return -EINVAL;
	ret = choose_source(id, dst.sa.sa_family);
	if (ret != 0)
		return ret;
	if (ucma_addr_is_any(&dst))
		ucma_addr_from_gid(&dst, id->sgid, ucma_addr_port(&dst));
	id->dst = dst;
	id->active = true;
	ucma_addr_gid(&dst, id->dgid);
	id->state = UCMA_ADDR_QUERY;
	id->deadline = u->now + timeout_ms * UINT64_C(1000000);
	if (u->queries++ == 0)
		u->query_at = u->now + UCMA_QUERY_NS;
	query(id);
	return 0;
}

int
ucma_resolve_ip(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	union ucma_addr src = {.in6 = c->resolve_ip.src_addr},
			dst = {.in6 = c->resolve_ip.dst_addr};
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->resolve_ip.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (ucma_addr_len(&dst.sa) == 0 ||
	    (src.sa.sa_family != 0 && src.sa.sa_family != dst.sa.sa_family))
		return -EINVAL;
	return resolve(id, &src, &dst, c->resolve_ip.timeout_ms);
}

int
ucma_resolve_addr(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_resolve_addr *r = &c->resolve_addr;
	union ucma_addr src = {.sa.sa_family = 0}, dst;
	struct ucma_id *id;
	int ret = r->reserved != 0 ? -EINVAL : ucma_addr_get(&dst, &r->dst_addr, r->dst_size);

	(void)out;
	if (ret == 0 && r->src_size != 0)
		ret = ucma_addr_get(&src, &r->src_addr, r->src_size);
	if (ret == 0)
		ret = ucma_id_find(f, r->id, &id);
	if (ret != 0)
		return ret;
	if (src.sa.sa_family != 0 && src.sa.sa_family != dst.sa.sa_family)
		return -EINVAL;
	return resolve(id, &src, &dst, r->timeout_ms);
}

/* The path of a RoCE port needs no SA, so it is known at once. */
int
ucma_resolve_route(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->resolve_route.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (id->state != UCMA_ADDR)
		return -EINVAL;
	id->state = UCMA_ROUTE;
	(void)ucma_event_add(id, UCMA_EV_ROUTE_RESOLVED, 0);
	return 0;
}
