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

/* A kind of objects of a device, which have numbers. */
struct bb_tel_kind {
	const char *list; /* name of the list of numbers */
	const char *none; /* the refusal when there is none of a number */
	/* Calls bb_tel_page_add() for each object. */
	void (*each)(const struct bb_dev *dev, struct bb_tel_page *page);
	/* Returns the object with that 32-bit number, or NULL. */
	const void *(*find)(struct bb_dev *dev, uint32_t number);
	void (*add)(struct rte_tel_data *d, const void *object); /* adds the fields of an object */
};

/* Endpoints for a list and for a single object: read the parameters, write the answer to @d. */
int bb_tel_list(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);
int bb_tel_info(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d);

#endif
