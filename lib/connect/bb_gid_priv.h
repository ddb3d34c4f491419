/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the two steps of GID selection: reading data from sysfs, and the choice.
 */
#ifndef BB_GID_PRIV_H
#define BB_GID_PRIV_H

#include "bb_gid.h"

/*
 * Fills in netdev, vlan and bond_slave of an entry from the kernel's files. @root is prepended to
 * the paths /sys and /proc. Fields without data stay empty.
 */
void bb_gid_sysfs(const char *root, const char *dev, uint32_t port, struct bb_gid_entry *e);

/* Returns a device's name without its driver's prefix: "rxe0" of "verbs:rxe0". */
const char *bb_kernel_name(const char *dev, const char *driver);

/*
 * Returns the index into @list of the GID that bb_gid_choose() would use, -ENOENT, or -ENOTUNIQ.
 * With -ENOTUNIQ, *rank is the rank of the GIDs that are equally good. Has no side effects.
 */
int bb_gid_pick(const struct bb_gid_entry *list, unsigned int n, const struct bb_gid_want *want,
		uint32_t *rank);
/* The refusal that bb_gid_choose_logged() logged last. */
struct bb_gid_last_log {
	uint64_t what; /* hash of the errno and the GID list of the last failed choice; 0 after a
			  choice that succeeded */
	/* number of equal refusals that were not logged since the last log line */
	uint32_t repeats;
};

/*
 * Calls bb_gid_choose() for callers that retry often. Logs a refusal only if it differs from the
 * previous refusal, which @last records. The next log line says how often the previous refusal was
 * repeated.
 */
int bb_gid_choose_logged(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
			 uint8_t *index, struct bb_gid_last_log *last);
/*
 * Returns the rank of an entry: 0 if the entry does not meet the requirements; otherwise a larger
 * rank is better.
 */
uint32_t bb_gid_rank(const struct bb_gid_entry *e, const struct bb_gid_want *want);

/* Scope of an address, the smallest first. */
enum bb_gid_scope {
	BB_GID_SCOPE_NONE, /* not the address of a host: unspecified, multicast, broadcast */
	BB_GID_SCOPE_LINK,
	BB_GID_SCOPE_GLOBAL,
};
/*
 * Returns the scope of an address. For a mapped IPv4 address it is the scope of the IPv4 address.
 */
enum bb_gid_scope bb_gid_scope(const uint8_t raw[16]);

bool bb_gid_is_ipv4(const uint8_t raw[16]);

#endif
