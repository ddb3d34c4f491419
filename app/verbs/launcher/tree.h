/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef TREE_H
#define TREE_H

#include "mlx5_cmd.h"

#define TREE_GIDS 16

/* The port of the device, as the files show it. */
struct tree_port {
	bool ib; /* the link layer is InfiniBand, not Ethernet */
	uint16_t lid;
	struct bb_gid gid[TREE_GIDS];
	bool valid[TREE_GIDS]; /* false: the entry of the GID table is empty */
};

/*
 * Makes the files that stand for /sys and /dev. They are in a new folder of TMPDIR, else /dev/shm
 * or /tmp, whose name is written to @root. Returns 0 or -errno.
 */
int tree_make(const struct tree_port *port, char *root, size_t size);
/*
 * Starts a process that removes the files when this process ends, even if this process has executed
 * another program or is killed. Returns 0 or -errno. Close the device before the call, because the
 * new process inherits all descriptors.
 */
int tree_watch(const char *root);
/* Removes the files at once. For a launcher that, after an error, starts no program. */
void tree_remove(const char *root);

#endif
