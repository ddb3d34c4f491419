/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Selection of a GID: the address, RoCE version and VLAN that a queue pair uses.
 *
 * The index of a GID is not stable. The index changes when an address is added, a link comes up or
 * a bond changes. The functions of this header select a GID by its properties, so equal
 * requirements find the same address again. The functions belong to the control path and may be
 * called from any thread.
 */
#ifndef BB_GID_H
#define BB_GID_H

#include "bb_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Address family of a GID. */
enum bb_gid_family {
	BB_GID_ANY_FAMILY,
	BB_GID_IPV4, /**< IPv4 address, mapped into IPv6 (RFC 4291, 2.5.5.2) */
	BB_GID_IPV6,
};

/** Value of bb_gid_want::vlan that accepts any VLAN and also accepts no VLAN tag. */
#define BB_GID_ANY_VLAN (-1)

/**
 * Requirements on a GID, which must hold, and preferences, which choose between the GIDs that fit.
 */
struct bb_gid_want {
	uint32_t size; /**< set by bb_gid_want_init() */
	enum bb_gid_family family;
	/** VLAN ID 1 to 4094; 0: untagged only; BB_GID_ANY_VLAN: any, untagged preferred */
	int vlan;
	bool only_roce_v2; /**< never choose a RoCE v1 GID */
	bool exact;        /**< accept only a GID equal to the field raw */
	/** prefer a GID equal to the field raw; if the port has no such GID, raw has no effect */
	bool prefer;
	uint8_t raw[16]; /**< address for the fields exact and prefer */
	char netdev[16]; /**< name of the required network interface; "" for any */
	/**
	 * True if the field peer holds the address of the peer. bb_gid_choose() then prefers an
	 * address of the same scope as peer. If peer is a unique local address, bb_gid_choose()
	 * prefers a unique local address (RFC 6724, 5, rules 2 and 6). peer does not select the
	 * address family.
	 */
	bool peer_given;
	uint8_t peer[16];
};

/** Initialises @p want: no requirements and no preferences. */
void bb_gid_want_init(struct bb_gid_want *want);

/** A GID of a port, with its network interface. */
struct bb_gid_entry {
	uint32_t size; /**< bytes of the caller's struct; set by bb_gid_list() */
	uint8_t raw[16];
	enum bb_gid_type type;
	uint8_t index;
	/** network interface; "" if unknown, because the device has no kernel device */
	char netdev[16];
	uint16_t vlan; /**< VLAN ID; 0 if untagged or unknown */
	/** true if the interface is a slave of a bond; the bond's own GIDs are preferred */
	bool bond_slave;
	/** true if the address is valid on one link only: fe80::/10, 169.254/16, loopback */
	bool link_local;
};

/** Maximum entries of a GID table that bb_gid_list() examines. */
#define BB_GID_MAX 256

/** Implementation of bb_gid_list(), which applications call instead. */
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
 * Chooses a GID of a port. The GID must meet the requirements of @p want. Of several such GIDs the
 * function chooses by these criteria, the most important one first:
 *
 * 1. RoCE v2 before v1
 * 2. an interface that is not a slave of a bond
 * 3. not a link-local address of IPv4 or IPv6, unless the peer's address is link-local
 * 4. untagged
 * 5. IPv4
 * 6. not a unique local address (fc00::/7), unless the peer's address is one
 *
 * Never chooses a multicast, broadcast or unspecified address. If several addresses are equal by
 * all criteria, the choice is ambiguous and fails. The order of the GID table does not matter. If
 * one address has several indexes, the function chooses the lowest index.
 * @param want NULL for no requirements.
 * @param index written on success only.
 * @return 0; -ENOENT if no GID meets the requirements; -ENOTUNIQ if the choice is ambiguous: the
 * log then lists the addresses and says what to specify; -EINVAL for a bad port or @p want; other
 * errors of bb_port_query().
 */
int bb_gid_choose(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
		  uint8_t *index);

/**
 * Writes a GID as text for logs, for example "192.0.2.1 RoCE v2, index 1, eth0.7, VLAN 7".
 * @return @p buf
 */
const char *bb_gid_text(const struct bb_gid_entry *e, char *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif
