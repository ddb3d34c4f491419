/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Address handles. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "bb_core.h"
#include "bb_mem_table.h"

/* Resolves the path to an address vector. Call with dev->lock held. */
static int
resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av)
{
	struct bb_dev *dev = pd->dev;
	struct bb_port_attr port = {0};
	char what[BB_DEV_NAME_MAX + 32];
	int ret;

	if (path->port < 1 || path->port > dev->attr.ports) {
		BB_LOG(ERR, "%s: address handle not created: invalid path.port %u (1 to %u)",
		       dev->name, path->port, dev->attr.ports);
		return -EINVAL;
	}
	ret = dev->drv->port_query(dev, path->port, &port);
	if (ret != 0)
		return ret;
	snprintf(what, sizeof(what), "%s: address handle", dev->name);
	ret = bb_path_check(dev, what, path, &port);
	return ret != 0 ? ret : dev->drv->ah_resolve(pd, path, av);
}

int
bb_ah_create(struct bb_pd *pd, const struct bb_path *path, struct bb_ah **out)
{
	struct bb_ah *ah;
	int ret;

	if (pd == NULL || path == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	ah = rte_zmalloc("bb_ah", sizeof(*ah), BB_CACHE_LINE);
	if (ah == NULL) {
		BB_LOG(ERR,
		       "%s: no EAL memory for an address handle: give EAL more, with -m or "
		       "hugepages",
		       pd->dev->name);
		return -ENOMEM;
	}
	ah->pd = pd;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = resolve(pd, path, &ah->av);
	if (ret == 0)
		pd->ahs++;
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret != 0) {
		rte_free(ah);
		return ret;
	}
	*out = ah;
	return 0;
}

int
bb_ah_destroy(struct bb_ah *ah)
{
	struct bb_dev *dev;
	int ret;

	if (ah == NULL)
		return -EINVAL;
	dev = ah->pd->dev;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	(void)bb_mem_reap_locked(ah->pd);
	dev->drv->ah_release(ah->pd, &ah->av);
	ah->pd->ahs--;
	pthread_mutex_unlock(&dev->lock);
	rte_free(ah);
	return 0;
}
