/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Choice of a GID: which address, RoCE version and VLAN a queue pair speaks from.
 *
 * An index of a GID table names nothing for long: it moves when an address is added, when a
 * link comes up or a bond changes. These calls choose by what a GID is, so that the same
 * wish finds the same address again. Control path, any thread.
 */
#ifndef BB_GID_H
#define BB_GID_H

#include "bb_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of address. */
enum bb_gid_family {
	BB_GID_ANY_FAMILY,
	BB_GID_IPV4, /**< mapped into IPv6 */
	BB_GID_IPV6,
};

/** Any VLAN, or none. */
#define BB_GID_ANY_VLAN (-1)

/** What the GID is to be like. */
struct bb_gid_want {
	uint32_t size; /**< set by bb_gid_want_init() */
	enum bb_gid_family family;
	int vlan; /**< VLAN id 1 to 4094; 0: untagged; BB_GID_ANY_VLAN: untagged preferred */
	bool only_roce_v2; /**< take no RoCE v1 GID where there is no other */
	bool exact;        /**< take the address in raw and no other */
	bool prefer;       /**< take the one in raw if it is there, else choose */
	uint8_t raw[16];
	char netdev[16]; /**< name of the network interface; "": any */
	/**
	 * peer is the address that the GID speaks to: prefer the scope of the peer's address, and a
	 * unique local address for a unique local one (RFC 6724, 5, rules 2 and 6). The family is
	 * not taken from it.
	 */
	bool peer_given;
	uint8_t peer[16];
};

/** No wishes. */
void bb_gid_want_init(struct bb_gid_want *want);

/** A GID and what is known of its network interface. */
struct bb_gid_entry {
	struct bb_gid gid;
	uint8_t index;
	char netdev[16]; /**< "" where it is not known: no kernel device stands behind it */
	uint16_t vlan;   /**< 0: untagged, or not known */
	bool bond_slave; /**< interface is enslaved to a bond: the bond's own GID is better */
	bool link_local; /**< of one link: fe80::/10, 169.254/16; loopback addresses, too */
};

/** Most entries bb_gid_list() looks at. */
#define BB_GID_MAX 256

/**
 * The GIDs of a port, empty ones left out.
 * @param list @p n entries.
 * @return how many were written, or a negative errno of bb_port_query().
 */
int bb_gid_list(struct bb_dev *dev, uint32_t port, struct bb_gid_entry *list, unsigned int n);

/**
 * Choose among the GIDs of a port. In this order: what @p want asks for must hold; RoCE v2
 * before v1; not of an interface that is enslaved to a bond; not link-local, of IPv4 or IPv6,
 * unless the peer is; untagged; IPv4; not a unique local address (fc00::/7), unless the peer has
 * one. Multicast, broadcast and unspecified addresses are never taken. What is equal in all of that
 * and has different addresses is ambiguous: one is not taken by chance. Nothing depends on the
 * order of the table; one address at several indexes is no ambiguity, and the lowest index counts.
 * @param index written on success only.
 * @return 0; -ENOENT none fits; -ENOTUNIQ several fit equally well: the log lists them, and
 *   what to ask for; -EINVAL bad port or @p want; other errors of bb_port_query().
 */
int bb_gid_choose(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
		  uint8_t *index);

/** "192.0.2.1 RoCE v2, index 1, eth0.7, VLAN 7", for logs. @return @p buf */
const char *bb_gid_text(const struct bb_gid_entry *e, char *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif
