/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Users whose processes may connect to a device with option shm: soft_shm_user.c. */
#ifndef SOFT_SHM_USER_H
#define SOFT_SHM_USER_H

#include <sys/types.h>

struct soft_shm;

#define SOFT_SHM_NO_USER ((uid_t)-1)
#define SOFT_SHM_HINT    64

/*
 * Returns the uid that a user namespace shows for all unmapped users, or SOFT_SHM_NO_USER if it
 * maps every user. @map_path and @overflow_path name files in the format of /proc/self/uid_map and
 * /proc/sys/kernel/overflowuid. If the map cannot be read, some users count as unmapped. If the
 * overflow file cannot be read, the kernel's default applies.
 */
uid_t soft_shm_unnamed(const char *map_path, const char *overflow_path);
/*
 * Checks that the uid of the device's user and the uid of option shm_uid each identify exactly one
 * user. Returns 0 or -EPERM, logged.
 */
int soft_shm_user_start(struct soft_shm *shm);
/*
 * Checks that the process connected to @sock belongs to a trusted user. Sets *pid and *uid to those
 * of the process. Returns 0, -EACCES or another negative errno.
 */
int soft_shm_user(const struct soft_shm *shm, int sock, pid_t *pid, uid_t *uid);
/* Returns advice for the log: how to make the refused user @uid trusted. */
const char *soft_shm_user_hint(const struct soft_shm *shm, uid_t uid, char hint[SOFT_SHM_HINT]);

#endif
