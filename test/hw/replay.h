/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the mlx5 driver makes of the bytes that a device gave when it was recorded. */
#ifndef REPLAY_H
#define REPLAY_H

#include <jansson.h>

#include "bluebell.h"

/*
 * The attributes that the driver reads out of the recorded answers to QUERY_HCA_CAP; @dev lends
 * the driver, and is as before afterwards. Negative errno: the driver refuses them, or asks for
 * what was not recorded (-ENODATA).
 */
int replay_attr(struct bb_dev *dev, const json_t *recorded, struct bb_dev_attr *attr);

/* Of each operation: the status that each recorded CQE means. */
json_t *replay_cqes(const json_t *recorded);

#endif
