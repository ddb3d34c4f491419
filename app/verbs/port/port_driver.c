/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stddef.h>
#include <string.h>

#include "preload.h"

const char *
port_driver(const char *vdev)
{
	static const char *const drivers[] = {"net_memif", "net_af_packet", "net_af_xdp"};
	unsigned int i;

	/* The name of a vdev is that of its driver with any ending, such as a number. */
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strncmp(vdev, drivers[i], strlen(drivers[i])) == 0)
			return drivers[i];
	return NULL;
}
