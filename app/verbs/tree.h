/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef TREE_H
#define TREE_H

#include "mlx5_cmd.h"

/*
 * Makes the files that stand for /sys and /dev, with the port and GIDs of the device. They are in a
 * new folder of TMPDIR or /tmp, whose name is written to @root. Returns 0 or -errno.
 */
int tree_make(struct mlx5_ctx *ctx, char *root, size_t size);
/*
 * Starts a process that removes the files when this process ends, even if this process has executed
 * another program or is killed. Close the device before the call, because the new process inherits
 * all descriptors. Returns 0 or -errno.
 */
int tree_watch(const char *root);
/* Removes the tree of files at once. For a launcher that, after an error, starts no program. */
void tree_remove(const char *root);

#endif
