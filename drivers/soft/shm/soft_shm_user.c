/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Users whose processes a device of a fabric trusts: the device's own user, and the user of option
 * shm_uid.
 *
 * SO_PEERCRED gives a peer's uid as this process's user namespace maps it. For an unmapped user it
 * gives the uid in /proc/sys/kernel/overflowuid (user_namespaces(7)). Unless the namespace maps all
 * users, that uid stands for many users of the host, so it proves no identity.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "soft_shm.h"

/* The kernel's default for the uid that it shows for unmapped users. */
#define OVERFLOW_UID 65534u
#define ALL_USERS    UINT32_MAX /* Number of uids that exist: 0 to 2^32 - 2. */

static bool
names_all_users(FILE *map)
{
	uint64_t inside, outside, count, sum = 0;

	/*
	 * The sum counts no user twice, because the kernel rejects overlapping ranges
	 * (user_namespaces(7)).
	 */
	while (fscanf(map, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3)
		sum += count;
	return sum == ALL_USERS;
}

uid_t
soft_shm_unnamed(const char *map_path, const char *overflow_path)
{
	FILE *f = fopen(map_path, "re");
	uint32_t uid = OVERFLOW_UID;
	bool all = false;

	if (f != NULL) {
		all = names_all_users(f);
		fclose(f);
	}
	if (all)
		return SOFT_SHM_NO_USER;
	f = fopen(overflow_path, "re");
	if (f != NULL) {
		if (fscanf(f, "%" SCNu32, &uid) != 1)
			uid = OVERFLOW_UID;
		fclose(f);
	}
	return uid;
}

int
soft_shm_user_start(struct soft_shm *shm)
{
	const struct soft_port_opts *o = &shm->dev->opts.port;

	shm->unnamed = soft_shm_unnamed("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
	if (shm->unnamed == SOFT_SHM_NO_USER)
		return 0;
	if (geteuid() == shm->unnamed) {
		SOFT_LOG(ERR,
			 "%s: shm=%s: cannot run as user %u: the kernel shows every user that is "
			 "missing from /proc/self/uid_map by this number, so peers cannot check "
			 "the identity: run as another user",
			 shm->dev->name, o->shm, (unsigned int)shm->unnamed);
		return -EPERM;
	}
	if (o->shm_uid_given && o->shm_uid == shm->unnamed) {
		SOFT_LOG(ERR,
			 "%s: invalid shm_uid=%u: the kernel shows every user that is missing from "
			 "/proc/self/uid_map by this number: map the peer's user, and give its "
			 "number",
			 shm->dev->name, o->shm_uid);
		return -EPERM;
	}
	return 0;
}

int
soft_shm_user(const struct soft_shm *shm, int sock, pid_t *pid, uid_t *uid)
{
	const struct soft_port_opts *o = &shm->dev->opts.port;
	int ret = soft_shm_peer(sock, pid, uid);

	if (ret != 0)
		return ret;
	if (*uid == shm->unnamed)
		return -EACCES;
	return *uid == geteuid() || (o->shm_uid_given && *uid == o->shm_uid) ? 0 : -EACCES;
}

const char *
soft_shm_user_hint(const struct soft_shm *shm, uid_t uid, char hint[SOFT_SHM_HINT])
{
	if (uid == shm->unnamed)
		return "the user is missing from /proc/self/uid_map: map the user";
	snprintf(hint, SOFT_SHM_HINT, "to trust the user, set shm_uid=%u on both sides",
		 (unsigned int)uid);
	return hint;
}
