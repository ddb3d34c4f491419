/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_SYSFS_H
#define PEER_SYSFS_H

/*
 * Gives libibverbs a /sys/class with one device, mlx5_0, in a folder of TMPDIR or /tmp. The folder
 * is removed when the process ends, even by a kill. Returns 0 or -errno.
 */
int peer_sysfs_start(void);
/*
 * Creates a file with @text at @path in this folder, and the file's parent folders. Returns 0 or
 * -errno.
 */
int peer_sysfs_put(const char *path, const char *text);
/* Removes the folder now. Does nothing in processes other than the one that created the folder. */
void peer_sysfs_end(void);

#endif
