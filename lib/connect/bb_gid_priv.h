/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by the two parts of GID selection: the data from sysfs, and the choice. */
#ifndef BB_GID_PRIV_H
#define BB_GID_PRIV_H

#include "bb_gid.h"

/*
 * Fills in netdev, vlan and bond_slave of an entry from the kernel's files. @root is prepended to
 * /sys and /proc. Missing data stays empty.
 */
void bb_gid_sysfs(const char *root, const char *dev, uint32_t port, struct bb_gid_entry *e);

/* Returns a device's name without its driver's prefix: "rxe0" of "verbs:rxe0". */
const char *bb_kernel_name(const char *dev, const char *driver);

/*
 * Returns the index into @list that bb_gid_choose() would use, -ENOENT, or -ENOTUNIQ. *rank is then
 * that of the best entries. Pure.
 */
int bb_gid_pick(const struct bb_gid_entry *list, unsigned int n, const struct bb_gid_want *want,
		uint32_t *rank);
/* State of the last refusal that bb_gid_choose_logged() logged. */
struct bb_gid_last_log {
	uint64_t what;    /* hash of the result and the list; 0 if there was no refusal */
	uint32_t repeats; /* repetitions since then, which were not logged */
};

/*
 * bb_gid_choose() for callers that retry often. It logs a refusal only if it differs from the last
 * one in @last, and adds the number of its repetitions.
 */
int bb_gid_choose_logged(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
			 uint8_t *index, struct bb_gid_last_log *last);
/* Returns 0 if the entry does not fit; otherwise larger is better. */
uint32_t bb_gid_rank(const struct bb_gid_entry *e, const struct bb_gid_want *want);

/* Scope of an address. */
enum bb_gid_scope {
	BB_GID_SCOPE_NONE, /* not a host's address: unspecified, multicast, broadcast */
	BB_GID_SCOPE_LINK,
	BB_GID_SCOPE_GLOBAL,
};
/* Returns the scope; for a mapped IPv4 address, that of the IPv4 address. */
enum bb_gid_scope bb_gid_scope(const uint8_t raw[16]);

bool bb_gid_is_ipv4(const uint8_t raw[16]);

#endif
