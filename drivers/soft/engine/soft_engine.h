/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Selects the function that runs an engine with inline progress: soft_engine.c. */
#ifndef SOFT_ENGINE_H
#define SOFT_ENGINE_H

struct soft_dev;

/* Runs an engine once; called by the owner's poll. */
typedef void soft_engine_poll(void *engine);

/* Returns the function for the engines of a device: soft_engine_progress() or a variant of it. */
soft_engine_poll *soft_engine_poll_of(const struct soft_dev *dev);

#endif
