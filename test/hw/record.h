/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command mailboxes of an open mlx5 device, with their answers. */
#ifndef RECORD_H
#define RECORD_H

#include <jansson.h>

#include "bb_dev.h"

/*
 * Records the commands of @dev from now on, as an array of objects with "call", "in", "out"
 * (hex), "ret", and the arguments of registrations. Repeats the queries of open, so that the
 * record has them, too. One device at a time, one thread.
 * @return NULL: not a device of the mlx5 driver
 */
json_t *record_start(struct bb_dev *dev);

/* Stops recording. The caller still owns the array. */
void record_stop(void);

/* Returns @len bytes as a JSON string of hex digits. */
json_t *record_hex(const void *data, size_t len);

#endif
