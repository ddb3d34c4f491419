/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command mailboxes of an open mlx5 device, as they go to it and come back. */
#ifndef RECORD_H
#define RECORD_H

#include <jansson.h>

#include "bb_dev.h"

/*
 * Record the commands of @dev from now on: an array of objects with "call", "in", "out" (hex),
 * "ret", and for registrations what was asked for. What opening has asked is asked again, so
 * that it is in the record, too. One device at a time, one thread.
 * @return NULL: not a device of the mlx5 driver
 */
json_t *record_start(struct bb_dev *dev);

/* The device is as before. The array stays the caller's. */
void record_stop(void);

/* @len bytes as a JSON string of hex digits. */
json_t *record_hex(const void *data, size_t len);

#endif
