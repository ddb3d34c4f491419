/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The two halves of the choice of a GID: what sysfs says, and what follows from it. */
#ifndef BB_GID_PRIV_H
#define BB_GID_PRIV_H

#include "bb_gid.h"

/*
 * Fill netdev, vlan and bond_slave of an entry from the kernel's files; @root stands in front
 * of /sys and /proc. What is not there stays empty.
 */
void bb_gid_sysfs(const char *root, const char *dev, uint32_t port, struct bb_gid_entry *e);

/* A device's name without that of its driver in front of it: "rxe0" of "verbs:rxe0". */
const char *bb_kernel_name(const char *dev, const char *driver);

/* Pure: index into @list of what bb_gid_choose() would take, -ENOENT or -ENOTUNIQ (then *rank
 * is that of the best). */
int bb_gid_pick(const struct bb_gid_entry *list, unsigned int n, const struct bb_gid_want *want,
		uint32_t *rank);
/* A refusal of bb_gid_choose_said(), which has logged it. */
struct bb_gid_said {
	uint64_t what;  /* stands for the result and the list; 0: no refusal */
	uint32_t again; /* the same since then, which were not logged */
};

/*
 * bb_gid_choose() for who tries again and again: a refusal is logged when it is another than the
 * last one, which @said remembers, with how often that was met.
 */
int bb_gid_choose_said(struct bb_dev *dev, uint32_t port, const struct bb_gid_want *want,
		       uint8_t *index, struct bb_gid_said *said);
/* 0: does not fit; else the larger the better. */
uint32_t bb_gid_rank(const struct bb_gid_entry *e, const struct bb_gid_want *want);

/* How far an address is valid. */
enum bb_gid_scope {
	BB_GID_SCOPE_NONE, /* no host has it: unspecified, multicast, broadcast */
	BB_GID_SCOPE_LINK,
	BB_GID_SCOPE_GLOBAL,
};
/* IPv4 by the address that is mapped. */
enum bb_gid_scope bb_gid_scope(const uint8_t raw[16]);

bool bb_gid_is_ipv4(const uint8_t raw[16]);

#endif
