/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The engines of this folder; modes.c lists them. */
#ifndef MODES_H
#define MODES_H

#include <rte_branch_prediction.h>

#include "testrdma.h"

extern const struct engine engine_write, engine_write_imm;
extern const struct engine engine_read;
extern const struct engine engine_fetch_add, engine_cmp_swap;
extern const struct engine engine_send, engine_send_imm;

#endif
