/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_SYSFS_H
#define PEER_SYSFS_H

/*
 * Gives libibverbs a /sys/class with one device, mlx5_0, in a folder of TMPDIR or /tmp. It is
 * removed when the process ends, however it ends. Returns 0 or -errno.
 */
int peer_sysfs_start(void);
/* Creates a file at @path below the folder, with parent folders. Returns 0 or -errno. */
int peer_sysfs_put(const char *path, const char *text);
/* Removes it now. Has an effect only in the process that created it. */
void peer_sysfs_end(void);

#endif
