/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Private functions of lib/dev: checks, the list of open devices, memory of the C library.
 */
#ifndef BB_DEV_PRIV_H
#define BB_DEV_PRIV_H

#include "bb_driver.h"

/* 0 when this process may open devices, else a negative errno (logged). */
int bb_process_check(void);
uint32_t bb_process_generation(void);

/* 0, or -ENOTSUP with a line in the log: this is a child of the process that opened @dev. */
int bb_process_owns(const struct bb_dev *dev);

/* bb_check.c: each 0, or a negative errno (logged). */
int bb_layout_check(uint32_t layout);
/* @init: the function that would have set the size. */
int bb_attr_size_check(uint32_t size, size_t expected, const char *init);
/*
 * Copies @full, an output struct of @size bytes, to the caller's @out, whose first field is the
 * number of its bytes. A shorter one gets the fields that it has, the tail of a longer one is 0.
 * Returns 0, or -EINVAL (logged) if that number cannot be a struct's.
 */
int bb_out(void *out, const void *full, size_t size);
/* Entry @i of the caller's array @out, whose first entry has the number of bytes of each. */
int bb_out_at(void *out, unsigned int i, const void *full, size_t size);
int bb_limit_check(const struct bb_dev *dev, const char *name, uint32_t value, uint32_t min,
		   uint32_t max);

/*
 * bb_open.c: the devices that are open, for threads that were given a name only. Lock order:
 * this one, then dev->lock; no other is taken before it. Control path only.
 */
void bb_open_devs_lock(void);
void bb_open_devs_unlock(void);
void bb_open_devs_add(struct bb_dev *dev);
/* Locked: the first or the next one, in the order they were opened; NULL: no more. */
struct bb_dev *bb_open_devs_next(const struct bb_dev *dev);
/* What tells it apart: "soft0", "soft0#2". @buf of BB_OPEN_NAME_MAX bytes. */
#define BB_OPEN_NAME_MAX (BB_DEV_NAME_MAX + 12)
void bb_open_name(const struct bb_dev *dev, char *buf);
/* Locked: by that name; NULL: no such. */
struct bb_dev *bb_open_devs_find(const char *name);

/* "1 QP", "2 QPs" */
#define BB_PLURAL(n) ((n) == 1 ? "" : "s")

/* Zeroed memory of the C library for @what ("a PD"), to be freed; NULL and a line in the log. */
void *bb_alloc(const struct bb_dev *dev, const char *what, size_t size);
/* -ENOMEM, with that line. */
int bb_no_memory(const struct bb_dev *dev, const char *what);

/*
 * The device has moved the QP to ERR by itself. Posts go on, or begin in RTR: they are
 * flushed. Atomic, as an error CQE and bb_event_get() may say so in two threads at once.
 */
static inline void
bb_qp_failed(struct bb_qp *qp)
{
	/* An event may be as late as behind a reset. */
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) != BB_QP_RESET)
		bb_sq_error(&qp->sq);
	__atomic_store_n(&qp->state, BB_QP_ERR, __ATOMIC_RELAXED);
}

#endif
