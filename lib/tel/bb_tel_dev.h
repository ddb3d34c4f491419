/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry endpoints of an open device. */
#ifndef BB_TEL_DEV_H
#define BB_TEL_DEV_H

#include "bb_core.h"
#include "bb_tel.h"

/*
 * Returns the device that the first parameter names, NULL if the parameters were rejected (@d has
 * the error). Holds bb_open_devs_lock() and the device's lock until bb_tel_end(), so that neither
 * the device nor its objects are destroyed.
 */
struct bb_dev *bb_tel_begin(struct bb_tel_args *a, const char *params, struct rte_tel_data *d);
void bb_tel_end(struct bb_dev *dev);

/* A kind of device objects that have numbers. */
struct bb_tel_kind {
	const char *list; /* name of the list of numbers */
	const char *none; /* error text if no object has the number */
	/* Calls bb_tel_page_add() for each object. */
	void (*each)(const struct bb_dev *dev, struct bb_tel_page *page);
	/* Returns the object with that 32-bit number, or NULL. */
	const void *(*find)(struct bb_dev *dev, uint32_t number);
	void (*add)(struct rte_tel_data *d, const void *object); /* Adds the fields of an object. */
};

/*
 * Handlers of endpoints for a list and for a single object: read the parameters and write the
 * answer to @d.
 */
int bb_tel_list(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);
int bb_tel_info(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);

#endif
