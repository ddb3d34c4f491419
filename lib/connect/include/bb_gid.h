/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Selection of a GID: the address, RoCE version and VLAN that a queue pair uses.
 *
 * The index of a GID is not stable. It changes when an address is added, a link comes up or a bond
 * changes. These calls select a GID by its properties, so that equal requirements find the same
 * address again. They belong to the control path and may be called from any thread.
 */
#ifndef BB_GID_H
#define BB_GID_H

#include "bb_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Family of an address. */
enum bb_gid_family {
	BB_GID_ANY_FAMILY,
	BB_GID_IPV4, /**< mapped into IPv6 */
	BB_GID_IPV6,
};

/** Value of bb_gid_want::vlan: any VLAN, or no VLAN tag. */
#define BB_GID_ANY_VLAN (-1)

/** Required and preferred properties of a GID. */
struct bb_gid_want {
	uint32_t size; /**< set by bb_gid_want_init() */
	enum bb_gid_family family;
	int vlan; /**< VLAN ID 1 to 4094; 0 if untagged; BB_GID_ANY_VLAN prefers untagged */
	bool only_roce_v2; /**< never choose a RoCE v1 GID */
	bool exact;        /**< use only the address in raw */
	bool prefer;       /**< use the address in raw if it exists, otherwise choose */
	uint8_t raw[16];
	char netdev[16]; /**< name of the network interface; "" for any */
	/**
	 * True if peer is set, to the address of the peer. The choice then prefers an address of
	 * the same scope, and a unique local address if peer is one (RFC 6724, 5, rules 2 and 6).
	 * peer does not select the family.
	 */
	bool peer_given;
	uint8_t peer[16];
};

/** Sets no requirements and no preferences. */
void bb_gid_want_init(struct bb_gid_want *want);

/** A GID and data of its network interface. */
struct bb_gid_entry {
	uint32_t size; /**< bytes of the caller's struct; set by bb_gid_list() */
	uint8_t raw[16];
	enum bb_gid_type type;
	uint8_t index;
	char netdev[16]; /**< "" if unknown: there is no kernel device */
	uint16_t vlan;   /**< 0 if untagged or unknown */
	bool bond_slave; /**< the interface is a slave of a bond; the bond's GIDs are preferred */
	bool link_local; /**< valid on one link: fe80::/10, 169.254/16, and loopback addresses */
};

/** Maximum entries that bb_gid_list() examines. */
#define BB_GID_MAX 256

/** Use bb_gid_list(). */
int bb_gid_list_v(struct bb_dev *dev, uint32_t port, struct bb_gid_entry *list, unsigned int n);

/**
 * Lists the GIDs of a port. Leaves out empty entries of the GID table.
 * @param list array of @p n entries to write.
 * @return number of entries written, or a negative errno of bb_port_query().
 */
static inline int
bb_gid_list(struct bb_dev *dev, uint32_t port, struct bb_gid_entry *list, unsigned int n)
{
	if (n != 0 && list != NULL)
		list->size = sizeof(*list);
	return bb_gid_list_v(dev, port, list, n);
}

/**
 * Chooses a GID of a port. The requirements of @p want must hold. Then, in this order of
 * importance, it prefers:
 *
 * 1. RoCE v2 to v1
 * 2. no interface that is a slave of a bond
 * 3. no link-local address, of IPv4 or IPv6, unless the peer's is
 * 4. untagged
 * 5. IPv4
 * 6. no unique local address (fc00::/7), unless the peer's is
 *
 * Multicast, broadcast and unspecified addresses are never chosen. If several addresses are equal
 * in all of this, the choice is ambiguous and fails. The order of the table does not matter. One
 * address at several indexes is not ambiguous; the lowest index is used.
 * @param want NULL: no requirements.
 * @param index written on success only.
 * @return 0; -ENOENT if none fits; -ENOTUNIQ if several fit equally well: the log lists them, and
 * what to specify; -EINVAL for a bad port or @p want; other errors of bb_port_query().
 */
int bb_gid_choose(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
		  uint8_t *index);

/** Writes a GID as text for logs: "192.0.2.1 RoCE v2, index 1, eth0.7, VLAN 7". @return @p buf */
const char *bb_gid_text(const struct bb_gid_entry *e, char *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif
