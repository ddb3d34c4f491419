/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* List of the open devices of this process. */
#include <stdio.h>
#include <string.h>

#include "bb_dev_priv.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, bb_dev) open_devs = LIST_HEAD_INITIALIZER(open_devs);

void
bb_open_devs_lock(void)
{
	pthread_mutex_lock(&open_lock);
}

void
bb_open_devs_unlock(void)
{
	pthread_mutex_unlock(&open_lock);
}

struct bb_dev *
bb_open_devs_next(const struct bb_dev *dev)
{
	return dev == NULL ? LIST_FIRST(&open_devs) : LIST_NEXT(dev, open);
}

/* Returns the smallest instance number that no open device of this name has. */
static uint32_t
instance_of(const char *name)
{
	const struct bb_dev *dev = NULL;
	uint32_t n = 1;

	while ((dev = bb_open_devs_next(dev)) != NULL) {
		if (strcmp(dev->name, name) == 0 && dev->instance == n) {
			n++;
			dev = NULL;
		}
	}
	return n;
}

void
bb_open_devs_add(struct bb_dev *dev)
{
	struct bb_dev *last = NULL, *next;

	bb_open_devs_lock();
	dev->instance = instance_of(dev->name);
	while ((next = bb_open_devs_next(last)) != NULL)
		last = next;
	if (last == NULL)
		LIST_INSERT_HEAD(&open_devs, dev, open);
	else
		LIST_INSERT_AFTER(last, dev, open);
	bb_open_devs_unlock();
}

void
bb_open_name(const struct bb_dev *dev, char *buf)
{
	if (dev->instance == 1)
		snprintf(buf, BB_OPEN_NAME_MAX, "%s", dev->name);
	else
		snprintf(buf, BB_OPEN_NAME_MAX, "%s#%u", dev->name, dev->instance);
}

struct bb_dev *
bb_open_devs_find(const char *name)
{
	char buf[BB_OPEN_NAME_MAX];
	struct bb_dev *dev = NULL;

	while ((dev = bb_open_devs_next(dev)) != NULL) {
		bb_open_name(dev, buf);
		if (strcmp(buf, name) == 0)
			return dev;
	}
	return NULL;
}
