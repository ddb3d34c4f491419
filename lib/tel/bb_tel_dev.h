/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry endpoints of an open device. */
#ifndef BB_TEL_DEV_H
#define BB_TEL_DEV_H

#include "bb_core.h"
#include "bb_tel.h"

/*
 * Returns the device that the first parameter names. Returns NULL if the parameters are wrong, and
 * writes the error to @d. Holds bb_open_devs_lock() and the device's lock until bb_tel_end(), so
 * that the device and its objects are not destroyed meanwhile.
 */
struct bb_dev *bb_tel_begin(struct bb_tel_args *a, const char *params, struct rte_tel_data *d);
void bb_tel_end(struct bb_dev *dev);

/*
 * A type of numbered objects of a device, such as its CQs. It has one endpoint that lists the
 * objects and one that describes an object.
 */
struct bb_tel_kind {
	/* name of the reply's field that has the list of object numbers, such as "cqs" */
	const char *list;
	const char *none; /* error text if no object has the requested number */
	/* Calls bb_tel_page_add() for each object. */
	void (*each)(const struct bb_dev *dev, struct bb_tel_page *page);
	/* Returns the object with @number, NULL if there is none. */
	const void *(*find)(struct bb_dev *dev, uint32_t number);
	/* Writes the fields of @object to @d. */
	void (*add)(struct rte_tel_data *d, const void *object);
};

/*
 * Handle an endpoint that lists the numbers of all objects, and one that describes a single object.
 * Both read @params and write the reply to @d.
 */
int bb_tel_list(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);
int bb_tel_info(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);

#endif
