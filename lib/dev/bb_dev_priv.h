/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Private functions of lib/dev: checks, the list of open devices, allocation from the C library. */
#ifndef BB_DEV_PRIV_H
#define BB_DEV_PRIV_H

#include "bb_driver.h"

/* Returns 0 if this process may open devices, else a negative errno (logged). */
int bb_process_check(void);
uint32_t bb_process_generation(void);

/* Returns 0, or -ENOTSUP (logged) if this process is a child of the process that opened @dev. */
int bb_process_owns(const struct bb_dev *dev);

/* Functions of bb_check.c. Each check returns 0 or a negative errno (logged). */
int bb_layout_check(uint32_t layout);
/*
 * Checks the size field of an attribute struct. @init is the name of the function that sets the
 * field, for the log line.
 */
int bb_attr_size_check(uint32_t size, size_t expected, const char *init);
/*
 * Copies @full, an output struct of @size bytes, to the caller's struct @out. The first field of
 * @out is its size in bytes. A shorter @out gets only the fields that it has; the tail of a longer
 * one is zeroed. Returns 0, or -EINVAL (logged) if the value of the size field is too small or too
 * large.
 */
int bb_out(void *out, const void *full, size_t size);
/*
 * Writes entry @i of the caller's array @out. The size field of the first entry gives the size of
 * each entry.
 */
int bb_out_at(void *out, unsigned int i, const void *full, size_t size);
int bb_limit_check(const struct bb_dev *dev, const char *name, uint32_t value, uint32_t min,
		   uint32_t max);

/*
 * Functions of bb_open.c: the list of open devices, for threads that know only a device's name.
 * Lock order: bb_open_devs_lock(), then dev->lock; no lock is taken before bb_open_devs_lock().
 * Control path only.
 */
void bb_open_devs_lock(void);
void bb_open_devs_unlock(void);
void bb_open_devs_add(struct bb_dev *dev);
/*
 * Returns the first device (@dev NULL) or the one after @dev, in the order of opening; NULL at the
 * end. Call under bb_open_devs_lock().
 */
struct bb_dev *bb_open_devs_next(const struct bb_dev *dev);
/*
 * Writes the unique name of an open device, "soft0" or "soft0#2", to @buf of BB_OPEN_NAME_MAX
 * bytes.
 */
#define BB_OPEN_NAME_MAX (BB_DEV_NAME_MAX + 12)
void bb_open_name(const struct bb_dev *dev, char *buf);
/* Returns the open device with that unique name, NULL if none. Call under bb_open_devs_lock(). */
struct bb_dev *bb_open_devs_find(const char *name);

/* Plural ending: "1 QP", "2 QPs". */
#define BB_PLURAL(n) ((n) == 1 ? "" : "s")

/*
 * Allocates zeroed memory for @what ("a PD") from the C library. The caller frees it. Returns NULL
 * after a log line.
 */
void *bb_alloc(const struct bb_dev *dev, const char *what, size_t size);
/* Logs that there is no memory for @what and returns -ENOMEM. */
int bb_no_memory(const struct bb_dev *dev, const char *what);

/*
 * Records that the device has moved the QP to ERR. Later posts are accepted and flushed, even if
 * the QP was only in RTR. Atomic, because an error CQE and bb_event_get() may report the failure in
 * two threads at once.
 */
static inline void
bb_qp_failed(struct bb_qp *qp)
{
	/*
	 * The event of an earlier error may arrive after the QP was reset, so a QP in RESET is not
	 * changed.
	 */
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) == BB_QP_RESET)
		return;
	bb_sq_error(&qp->sq);
	__atomic_store_n(&qp->state, BB_QP_ERR, __ATOMIC_RELAXED);
}

#endif
