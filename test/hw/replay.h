/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Runs the mlx5 driver on the recorded bytes of a device. */
#ifndef REPLAY_H
#define REPLAY_H

#include <jansson.h>

#include "bluebell.h"

/*
 * Reads the attributes that the driver derives from the recorded answers to QUERY_HCA_CAP. @dev
 * provides the driver and is unchanged afterwards. Returns a negative errno if the driver rejects
 * them; -ENODATA if it queries something that was not recorded.
 */
int replay_attr(struct bb_dev *dev, const json_t *recorded, struct bb_dev_attr *attr);

/* Returns for each operation the status of each recorded CQE. */
json_t *replay_cqes(const json_t *recorded);

#endif
