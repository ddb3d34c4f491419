/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The vdev of a device with the option port=, as the launcher sees it before it exists. */
#ifndef VDEV_H
#define VDEV_H

#include <stddef.h>

#include "soft_hooks.h"
#include "tree.h"

/*
 * Sets @port to the GID table that the device will have on the vdev @given, NAME[,OPTIONS], without
 * opening either: a peer of net_memif would connect to the launcher. The MAC is that of the vdev's
 * interface or the vdev's option mac. If the PMD would choose a MAC at random, derives one from the
 * device's first address, and adds it to @vdev, a copy of @given. Returns 0, or -EINVAL after a
 * message on stderr.
 */
int vdev_port(const char *given, const struct soft_plan *plan, char *vdev, size_t size,
	      struct tree_port *port);

#endif
