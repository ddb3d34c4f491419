/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* DEVX objects of the application: argument checks, and the count that bb_dev_close() checks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_dev_priv.h"

struct bb_devx_obj {
	struct bb_dev *dev;
	void *priv; /* the driver's data */
};

/*
 * Returns 0 if the arguments are not NULL, this process opened the device, and the device has DEVX;
 * otherwise a negative errno.
 */
static int
devx_check(const struct bb_dev *dev, bool args)
{
	int ret;

	if (dev == NULL || !args)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	if (dev->drv->devx != NULL)
		return 0;
	BB_LOG(ERR, "%s: DEVX is not available: the driver %s has no command mailboxes", dev->name,
	       dev->drv->name);
	return -ENOTSUP;
}

/*
 * Checks both mailboxes. The minimum is the size of general_obj_in_cmd_hdr in
 * include/linux/mlx5/mlx5_ifc.h. The maximum is the largest value of the 16-bit length of an ioctl
 * attribute (struct ib_uverbs_attr).
 */
static int
mailboxes_check(const struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen)
{
	if (in != NULL && out != NULL && inlen >= BB_DEVX_MAILBOX_MIN &&
	    inlen <= BB_DEVX_MAILBOX_MAX && outlen >= BB_DEVX_MAILBOX_MIN &&
	    outlen <= BB_DEVX_MAILBOX_MAX)
		return 0;
	BB_LOG(ERR,
	       "%s: invalid DEVX mailboxes: in %zu bytes at %p, out %zu bytes at %p; give both, "
	       "each of %u to %u bytes",
	       dev->name, inlen, in, outlen, out, BB_DEVX_MAILBOX_MIN, BB_DEVX_MAILBOX_MAX);
	return -EINVAL;
}

int
bb_devx_general_cmd(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen)
{
	int ret = devx_check(dev, true);

	if (ret == 0)
		ret = mailboxes_check(dev, in, inlen, out, outlen);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->devx->general(dev, in, inlen, out, outlen);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_devx_obj_create(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen,
		   struct bb_devx_obj **obj)
{
	struct bb_devx_obj *o;
	int ret = devx_check(dev, obj != NULL);

	if (ret == 0)
		ret = mailboxes_check(dev, in, inlen, out, outlen);
	if (ret != 0)
		return ret;
	o = bb_alloc(dev, "a DEVX object", sizeof(*o));
	if (o == NULL)
		return -ENOMEM;
	o->dev = dev;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->devx->obj_create(dev, in, inlen, out, outlen, &o->priv);
	if (ret == 0)
		dev->devx_objs++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(o);
		return ret;
	}
	*obj = o;
	return 0;
}

static int
obj_cmd(struct bb_devx_obj *obj, bool modify, const void *in, size_t inlen, void *out,
	size_t outlen)
{
	struct bb_dev *dev = obj == NULL ? NULL : obj->dev;
	int ret = devx_check(dev, true);

	if (ret == 0)
		ret = mailboxes_check(dev, in, inlen, out, outlen);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->devx->obj_cmd(dev, obj->priv, modify, in, inlen, out, outlen);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_devx_obj_modify(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return obj_cmd(obj, true, in, inlen, out, outlen);
}

int
bb_devx_obj_query(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return obj_cmd(obj, false, in, inlen, out, outlen);
}

int
bb_devx_obj_destroy(struct bb_devx_obj *obj)
{
	struct bb_dev *dev = obj == NULL ? NULL : obj->dev;
	int ret = devx_check(dev, true);

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->devx->obj_destroy(dev, obj->priv);
	if (ret == 0)
		dev->devx_objs--;
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(obj);
	return ret;
}

int
bb_devx_query_eqn(struct bb_dev *dev, uint32_t vector, uint32_t *eqn)
{
	int ret = devx_check(dev, eqn != NULL);

	return ret != 0 ? ret : dev->drv->devx->query_eqn(dev, vector, eqn);
}

int
bb_devx_pd_number(struct bb_pd *pd, uint32_t *pdn)
{
	struct bb_dev *dev = pd == NULL ? NULL : pd->dev;
	int ret = devx_check(dev, pdn != NULL);

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	pd->devx_number_read = true;
	*pdn = dev->drv->devx->pd_number(pd);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int
bb_devx_uar_alloc(struct bb_dev *dev, uint32_t lcore, struct bb_devx_uar **out)
{
	struct bb_devx_uar *uar;
	int ret = devx_check(dev, out != NULL);

	if (ret != 0)
		return ret;
	uar = bb_alloc(dev, "a UAR", sizeof(*uar));
	if (uar == NULL)
		return -ENOMEM;
	uar->dev = dev;
	ret = bb_lcore_resolve(lcore, &uar->lcore);
	if (ret != 0)
		goto free_uar;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->devx->uar_alloc(uar);
	if (ret == 0)
		dev->devx_uars++;
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0)
		goto free_uar;
	*out = uar;
	return 0;

free_uar:
	free(uar);
	return ret;
}

int
bb_devx_uar_free(struct bb_devx_uar *uar)
{
	struct bb_dev *dev = uar == NULL ? NULL : uar->dev;
	int ret = devx_check(dev, true);

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	if (dev->devx_objs != 0) {
		BB_LOG(ERR,
		       "%s: UAR page 0x%x is not freed: %u DEVX object%s may use it; destroy the "
		       "objects first",
		       dev->name, uar->page_id, dev->devx_objs, BB_PLURAL(dev->devx_objs));
		ret = -EBUSY;
	} else {
		dev->drv->devx->uar_free(uar);
		dev->devx_uars--;
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret == 0)
		free(uar);
	return ret;
}
