/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Selection of a GID of a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_core.h"
#include "bb_gid_priv.h"

/*
 * Bits of a rank; a higher bit is more important. Bit 0 means that the entry meets the
 * requirements.
 */
enum {
	RANK_FITS = 1 << 0,
	/*
	 * set if the address and the peer's address are both unique local addresses, or neither is.
	 * If no peer is given, set if the address is not a unique local address
	 */
	RANK_LABEL = 1 << 1,
	RANK_IPV4 = 1 << 2,
	RANK_UNTAGGED = 1 << 3,
	/*
	 * set if the address has the scope of the peer's address; without a peer, set if the
	 * address has global scope
	 */
	RANK_SCOPE = 1 << 4,
	RANK_NO_SLAVE = 1 << 5,
	RANK_ROCE_V2 = 1 << 6,
	RANK_PREFERRED = 1 << 7,
};

void
bb_gid_want_init(struct bb_gid_want *want)
{
	memset(want, 0, sizeof(*want));
	want->size = sizeof(*want);
	want->vlan = BB_GID_ANY_VLAN;
}

bool
bb_gid_is_ipv4(const uint8_t raw[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(raw, mapped, sizeof(mapped)) == 0;
}

/*
 * Returns the scope of an address by RFC 6724, 3.1 and 3.2. IPv6 unicast addresses have the scope
 * of their prefix; the loopback address is link-local (RFC 4291, 2.5.3). In IPv4, 169.254/16 (RFC
 * 3927) and 127/8 are link-local; all other unicast addresses, including private ones, are global.
 * Site-local addresses are deprecated and treated as global (RFC 3879, 4).
 */
enum bb_gid_scope
bb_gid_scope(const uint8_t raw[16])
{
	static const uint8_t unspecified[16], loopback[16] = {[15] = 1};
	static const uint8_t broadcast[4] = {255, 255, 255, 255};
	const uint8_t *v4 = raw + 12;

	if (bb_gid_is_ipv4(raw)) {
		/*
		 * Not the address of a host: "this network" (RFC 1122, 3.2.1.3), multicast,
		 * broadcast.
		 */
		if (v4[0] == 0 || (v4[0] & 0xf0) == 224 || memcmp(v4, broadcast, 4) == 0)
			return BB_GID_SCOPE_NONE;
		return v4[0] == 127 || (v4[0] == 169 && v4[1] == 254) ? BB_GID_SCOPE_LINK
								      : BB_GID_SCOPE_GLOBAL;
	}
	if (raw[0] == 0xff || memcmp(raw, unspecified, 16) == 0)
		return BB_GID_SCOPE_NONE;
	return (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80) || memcmp(raw, loopback, 16) == 0
		       ? BB_GID_SCOPE_LINK
		       : BB_GID_SCOPE_GLOBAL;
}

/*
 * Returns true for the prefixes that the default policy table of RFC 6724, 2.1, ranks last in IPv6:
 * unique local addresses (RFC 4193), and the deprecated site-local and IPv4-compatible addresses.
 */
static bool
is_local_prefix(const uint8_t raw[16])
{
	static const uint8_t compatible[12];

	if (bb_gid_is_ipv4(raw))
		return false;
	return (raw[0] & 0xfe) == 0xfc || (raw[0] == 0xfe && (raw[1] & 0xc0) == 0xc0) ||
	       memcmp(raw, compatible, sizeof(compatible)) == 0;
}

/*
 * Ranks an address by RFC 6724, 5, rules 2 and 6: its scope and prefix are compared with those of
 * the peer's address.
 */
static uint32_t
rank_of_address(const uint8_t raw[16], const struct bb_gid_want *want)
{
	enum bb_gid_scope scope = BB_GID_SCOPE_GLOBAL;
	bool local = false;

	if (want->peer_given) {
		scope = bb_gid_scope(want->peer);
		local = is_local_prefix(want->peer);
	}
	return (bb_gid_scope(raw) == scope ? RANK_SCOPE : 0) |
	       (is_local_prefix(raw) == local ? RANK_LABEL : 0);
}

uint32_t
bb_gid_rank(const struct bb_gid_entry *e, const struct bb_gid_want *want)
{
	const bool ipv4 = bb_gid_is_ipv4(e->raw);
	const bool same = memcmp(e->raw, want->raw, sizeof(want->raw)) == 0;
	uint32_t rank = RANK_FITS;

	if ((want->family == BB_GID_IPV4 && !ipv4) || (want->family == BB_GID_IPV6 && ipv4) ||
	    (want->vlan != BB_GID_ANY_VLAN && want->vlan != (int)e->vlan) ||
	    (want->only_roce_v2 && e->type != BB_GID_ROCE_V2) || (want->exact && !same) ||
	    (want->netdev[0] != '\0' && strcmp(want->netdev, e->netdev) != 0) ||
	    (e->type != BB_GID_IB && bb_gid_scope(e->raw) == BB_GID_SCOPE_NONE))
		return 0;
	rank |= ipv4 ? RANK_IPV4 : 0;
	rank |= e->vlan == 0 ? RANK_UNTAGGED : 0;
	rank |= rank_of_address(e->raw, want);
	rank |= !e->bond_slave ? RANK_NO_SLAVE : 0;
	rank |= e->type == BB_GID_ROCE_V2 ? RANK_ROCE_V2 : 0;
	rank |= want->prefer && same ? RANK_PREFERRED : 0;
	return rank;
}

/*
 * Returns true if both entries have the same address, interface and VLAN. Their indexes may differ.
 * The kernel lists an address once per RoCE version, and the ranks of these entries differ.
 */
static bool
same_gid(const struct bb_gid_entry *a, const struct bb_gid_entry *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0 && a->type == b->type &&
	       a->vlan == b->vlan && strcmp(a->netdev, b->netdev) == 0;
}

int
bb_gid_pick(const struct bb_gid_entry *list, unsigned int n, const struct bb_gid_want *want,
	    uint32_t *rank)
{
	unsigned int i, found = 0;

	*rank = 0;
	for (i = 0; i < n; i++) {
		const uint32_t r = bb_gid_rank(&list[i], want);

		if (r > *rank || (r != 0 && r == *rank && same_gid(&list[i], &list[found]) &&
				  list[i].index < list[found].index)) {
			*rank = r;
			found = i;
		}
	}
	if (*rank == 0)
		return -ENOENT;
	for (i = 0; i < n; i++)
		if (bb_gid_rank(&list[i], want) == *rank && !same_gid(&list[i], &list[found]))
			return -ENOTUNIQ;
	return (int)found;
}

const char *
bb_gid_text(const struct bb_gid_entry *e, char *buf, size_t len)
{
	static const char *const types[] = {"IB", "RoCE v1", "RoCE v2"};
	static const char *const scopes[] = {
		[BB_GID_SCOPE_NONE] = ", not the address of a host",
		[BB_GID_SCOPE_LINK] = ", link-local",
		[BB_GID_SCOPE_GLOBAL] = "",
	};
	char addr[INET6_ADDRSTRLEN], vlan[16] = "";

	if (bb_gid_is_ipv4(e->raw))
		inet_ntop(AF_INET, e->raw + 12, addr, sizeof(addr));
	else
		inet_ntop(AF_INET6, e->raw, addr, sizeof(addr));
	if (e->vlan != 0)
		snprintf(vlan, sizeof(vlan), ", VLAN %u", e->vlan);
	snprintf(buf, len, "%s %s, index %u%s%s%s%s%s", addr,
		 e->type <= BB_GID_ROCE_V2 ? types[e->type] : "?", e->index,
		 e->netdev[0] != '\0' ? ", " : "", e->netdev, vlan,
		 e->bond_slave ? ", slave of a bond" : "", scopes[bb_gid_scope(e->raw)]);
	return buf;
}

int
bb_gid_list_v(struct bb_dev *dev, uint32_t port, struct bb_gid_entry *list, unsigned int n)
{
	struct bb_port_attr attr;
	unsigned int i, found = 0;
	int ret;

	if (dev == NULL || (list == NULL && n != 0))
		return -EINVAL;
	ret = bb_port_query(dev, port, &attr);
	if (ret != 0)
		return ret;
	for (i = 0; i < RTE_MIN(attr.gids, (uint32_t)BB_GID_MAX) && found < n; i++) {
		struct bb_gid_entry e = {.index = (uint8_t)i};
		struct bb_gid gid;

		if (bb_gid_query(dev, port, i, &gid) != 0)
			continue;
		memcpy(e.raw, gid.raw, sizeof(e.raw));
		e.type = gid.type;
		e.link_local = bb_gid_scope(e.raw) == BB_GID_SCOPE_LINK;
		bb_gid_sysfs("", bb_kernel_name(dev->name, dev->drv->name), port, &e);
		ret = bb_out_at(list, found, &e, sizeof(e));
		if (ret != 0)
			return ret;
		found++;
	}
	return (int)found;
}

static void
log_equals(const char *dev, uint32_t port, const struct bb_gid_entry *list, unsigned int n,
	   const struct bb_gid_want *want, uint32_t rank)
{
	char text[128];
	unsigned int i;

	BB_LOG(ERR,
	       "%s: several GIDs of port %u match equally: select one by address, netdev or "
	       "VLAN. They are:",
	       dev, port);
	for (i = 0; i < n; i++)
		if (bb_gid_rank(&list[i], want) == rank)
			BB_LOG(ERR, "%s:   GID %s", dev, bb_gid_text(&list[i], text, sizeof(text)));
}

/* Returns a hash (FNV-1a, RFC 9923) of a refusal and the GIDs of the port, never 0. */
static uint64_t
refusal_hash(int ret, const struct bb_gid_want *want, const struct bb_gid_entry *list,
	     unsigned int n)
{
	const uint32_t head[2] = {(uint32_t)ret, (uint32_t)want->family};
	const uint8_t *parts[2] = {(const uint8_t *)head, (const uint8_t *)list};
	const size_t lens[2] = {sizeof(head), n * sizeof(*list)};
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i, k;

	for (i = 0; i < RTE_DIM(parts); i++)
		for (k = 0; k < lens[i]; k++)
			h = (h ^ parts[i][k]) * UINT64_C(0x100000001b3);
	return h != 0 ? h : 1;
}

/*
 * Returns true if the outcome of choosing a GID differs from that of the last choice, and so must
 * be logged. @what: hash of the failure, or 0 after success. @last: outcome of the last choice,
 * which is updated.
 */
static bool
outcome_changed(struct bb_dev *dev, uint32_t port, struct bb_gid_last_log *last, uint64_t what)
{
	if (last->what == what) {
		last->repeats += what != 0;
		return false;
	}
	if (last->repeats != 0)
		BB_LOG(NOTICE, "%s: choosing a GID of port %u failed %u more times", dev->name,
		       port, last->repeats);
	last->what = what;
	last->repeats = 0;
	return true;
}

int
bb_gid_choose_logged(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
		     uint8_t *index, struct bb_gid_last_log *last)
{
	struct bb_gid_entry list[BB_GID_MAX];
	struct bb_gid_want any;
	char text[128];
	uint32_t rank;
	int i, n, ret;

	if (want == NULL) {
		bb_gid_want_init(&any);
		want = &any;
	}
	if (dev == NULL || index == NULL || want->vlan < BB_GID_ANY_VLAN || want->vlan > 4094)
		return -EINVAL;
	ret = bb_attr_size_check(want->size, sizeof(*want), "bb_gid_want_init");
	if (ret != 0)
		return ret;
	n = bb_gid_list(dev, port, list, RTE_DIM(list));
	if (n < 0)
		return n;
	ret = bb_gid_pick(list, (unsigned int)n, want, &rank);
	if (ret >= 0) {
		(void)outcome_changed(dev, port, last, 0);
		*index = list[ret].index;
		return 0;
	}
	if (!outcome_changed(dev, port, last, refusal_hash(ret, want, list, (unsigned int)n)))
		return ret;
	if (ret == -ENOTUNIQ) {
		log_equals(dev->name, port, list, (unsigned int)n, want, rank);
		return ret;
	}
	BB_LOG(ERR, "%s: no GID of port %u matches the request. The port has %d GIDs:", dev->name,
	       port, n);
	for (i = 0; i < n; i++)
		BB_LOG(ERR, "%s:   GID %s", dev->name, bb_gid_text(&list[i], text, sizeof(text)));
	return ret;
}

int
bb_gid_choose(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want, uint8_t *index)
{
	struct bb_gid_last_log last = {0};

	return bb_gid_choose_logged(dev, port, want, index, &last);
}
