/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_SYSFS_H
#define PEER_SYSFS_H

/*
 * Give libibverbs a /sys/class of one device, mlx5_0, in a folder of TMPDIR or /tmp. It goes with
 * the process, however that ends. 0 or -errno.
 */
int peer_sysfs_start(void);
/* A file of it: @path below the folder, with folders as needed. 0 or -errno. */
int peer_sysfs_put(const char *path, const char *text);
/* Remove it now; of the process that made it alone. */
void peer_sysfs_end(void);

#endif
