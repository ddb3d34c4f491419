/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * All of Bluebell's public API.
 */
#ifndef BLUEBELL_H
#define BLUEBELL_H

#include "bb_cq.h"
#include "bb_dev.h"
#include "bb_loop.h"
#include "bb_mem.h"
#include "bb_post.h"
#include "bb_qp.h"

#endif
