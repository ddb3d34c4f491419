/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Opens the software device for bb_verbs and for its library, and chooses a free address for the
 * device.
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx5_cmd.h"

/*
 * The network of --address auto. The search for a free address starts at a host number that depends
 * on the process number.
 */
#define ADDRESS_NET   "10.88"
#define ADDRESS_BITS  16
#define ADDRESS_HOSTS 65534u /* number of host addresses in ADDRESS_NET */

/*
 * Opens the device @spec, NAME[,OPTIONS], with the options @more. If @choose is true, this function
 * chooses the address. It first tries the address at the end of @spec, then addresses of
 * ADDRESS_NET that no process of the fabric has. Sets @name (BB_DEV_NAME_MAX bytes), and sets @args
 * to the options of the device without @more. Returns 0 or a negative errno: -EADDRINUSE if the
 * address is taken.
 */
int address_open(const char *spec, bool choose, const char *more, char *name, char *args,
		 size_t size, struct mlx5_ctx **ctx);

#endif
