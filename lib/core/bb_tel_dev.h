/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Endpoints of an open device. */
#ifndef BB_TEL_DEV_H
#define BB_TEL_DEV_H

#include "bb_core.h"
#include "bb_tel.h"

/*
 * The device that the first parameter names. It stays, and so do its objects: the lock of
 * the open devices and its own are held until bb_tel_end(). NULL: refused, in @d.
 */
struct bb_dev *bb_tel_begin(struct bb_tel_args *a, const char *params, struct rte_tel_data *d);
void bb_tel_end(struct bb_dev *dev);

/*
 * The number that is the last parameter. False: refused, in @d.
 */
bool bb_tel_last_uint(struct bb_tel_args *a, uint64_t *v, struct rte_tel_data *d);

#endif
