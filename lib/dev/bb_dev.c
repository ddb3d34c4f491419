/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Drivers and devices: register, list, open, close. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_eal.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include "bb_dev_priv.h"

#define BB_MAX_DRIVERS 8

/* Registered drivers. Constructors fill the array before main(); after that it is read-only. */
static struct bb_driver drivers[BB_MAX_DRIVERS];
static unsigned int n_drivers;

/*
 * True if the notice about missing hugepages was logged, so that it is logged only once per
 * process.
 */
static bool no_huge_logged;
/*
 * Separate log type for the notice, so that a program that reports missing hugepages itself can
 * turn off the notice.
 */
RTE_LOG_REGISTER(no_huge_logtype, bluebell.hugepages, NOTICE)

/*
 * Default operations. The library uses each in place of an operation that a driver does not have.
 */
static int
no_list(struct bb_dev_info *info, unsigned int n)
{
	(void)info;
	(void)n;
	return 0;
}

static int
no_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	(void)dev;
	(void)port;
	(void)attr;
	return -ENOTSUP;
}

static int
no_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	(void)dev;
	(void)port;
	(void)index;
	(void)gid;
	return -ENOTSUP;
}

static int
no_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey)
{
	(void)dev;
	(void)port;
	(void)index;
	(void)pkey;
	return -ENOTSUP;
}

static int
no_event_get(struct bb_dev *dev, struct bb_event *event)
{
	(void)dev;
	(void)event;
	return -EAGAIN;
}

static int
no_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	(void)dev;
	(void)stats;
	return -ENOTSUP;
}

static int
no_drops(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n)
{
	(void)dev;
	(void)drops;
	(void)n;
	return -ENOTSUP;
}

static void
no_progress(struct bb_dev *dev)
{
	(void)dev;
}

static int
no_clock(struct bb_dev *dev, uint64_t *now)
{
	(void)dev;
	(void)now;
	return -ENOTSUP;
}

static int
no_channel_create(struct bb_channel *ch)
{
	BB_LOG(ERR, "%s: the driver has no completion channels: poll the CQs", ch->dev->name);
	return -ENOTSUP;
}

/* This default is never called, because a driver without channel operations has no channels. */
static int
no_channel_destroy(struct bb_channel *ch)
{
	(void)ch;
	return -ENOTSUP;
}

static int
no_channel_get(struct bb_channel *ch, struct bb_cq **cq)
{
	(void)ch;
	(void)cq;
	return -EAGAIN;
}

static int
no_cq_resize(struct bb_cq *cq, uint32_t depth)
{
	(void)depth;
	BB_LOG(ERR, "%s: the driver cannot resize CQs: create a deeper CQ", cq->ctrl->dev->name);
	return -ENOTSUP;
}

static int
no_cq_moderate(struct bb_cq *cq, uint16_t count, uint16_t period_us)
{
	(void)count;
	(void)period_us;
	BB_LOG(ERR, "%s: the driver has no event moderation for CQs", cq->ctrl->dev->name);
	return -ENOTSUP;
}

static int
no_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	(void)qp;
	(void)attr;
	return 0;
}

static int
no_qp1_claim(struct bb_qp *qp)
{
	(void)qp;
	return -ENOTSUP;
}

static int
no_qp_retries(const struct bb_qp *qp, uint64_t *retries, uint64_t *rnr_retries)
{
	(void)qp;
	(void)retries;
	(void)rnr_retries;
	return -ENOTSUP;
}

static int
no_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
	    void *addr, uint64_t len, uint32_t access)
{
	(void)mr;
	(void)flags;
	(void)new_pd;
	(void)addr;
	(void)len;
	(void)access;
	BB_LOG(ERR,
	       "%s: the device cannot re-register memory: deregister the MR, then register "
	       "it again",
	       pd->dev->name);
	return -ENOTSUP;
}

static int
no_path_ready(struct bb_dev *dev, const struct bb_path *path)
{
	(void)dev;
	(void)path;
	return 0;
}

static int
no_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av)
{
	(void)path;
	(void)av;
	BB_LOG(ERR, "%s: address handle not created: the driver has no UD queue pairs",
	       pd->dev->name);
	return -ENOTSUP;
}

static void
no_ah_release(struct bb_pd *pd, const struct bb_wqe_av *av)
{
	(void)pd;
	(void)av;
}

static int
no_cq_arm(struct bb_cq *cq, bool solicited_only)
{
	(void)solicited_only;
	BB_LOG(ERR,
	       "%s: CQ 0x%x cannot be armed: the driver has no completion events; poll the "
	       "CQ",
	       cq->ctrl->dev->name, cq->cqn);
	return -ENOTSUP;
}

void
bb_driver_register(const struct bb_driver *drv)
{
	struct bb_driver *d;

	if (n_drivers == BB_MAX_DRIVERS || drv->name == NULL || drv->open == NULL ||
	    drv->close == NULL || drv->pd_alloc == NULL || drv->pd_free == NULL ||
	    drv->mr_reg == NULL || drv->mr_dereg == NULL || drv->cq_create == NULL ||
	    drv->cq_destroy == NULL || drv->qp_create == NULL || drv->qp_modify == NULL ||
	    drv->qp_destroy == NULL) {
		BB_LOG(ERR, "driver %s is not registered: %s",
		       drv->name != NULL ? drv->name : "without a name",
		       n_drivers == BB_MAX_DRIVERS ? "too many drivers"
						   : "an operation is missing");
		return;
	}
	d = &drivers[n_drivers++];
	*d = *drv;
	d->list = d->list != NULL ? d->list : no_list;
	d->port_query = d->port_query != NULL ? d->port_query : no_port_query;
	d->gid_query = d->gid_query != NULL ? d->gid_query : no_gid_query;
	d->pkey_query = d->pkey_query != NULL ? d->pkey_query : no_pkey_query;
	d->event_get = d->event_get != NULL ? d->event_get : no_event_get;
	d->stats = d->stats != NULL ? d->stats : no_stats;
	d->drops = d->drops != NULL ? d->drops : no_drops;
	d->progress = d->progress != NULL ? d->progress : no_progress;
	d->clock = d->clock != NULL ? d->clock : no_clock;
	d->channel_create = d->channel_create != NULL ? d->channel_create : no_channel_create;
	d->channel_destroy = d->channel_destroy != NULL ? d->channel_destroy : no_channel_destroy;
	d->channel_get = d->channel_get != NULL ? d->channel_get : no_channel_get;
	d->cq_resize = d->cq_resize != NULL ? d->cq_resize : no_cq_resize;
	d->cq_moderate = d->cq_moderate != NULL ? d->cq_moderate : no_cq_moderate;
	d->mr_rereg = d->mr_rereg != NULL ? d->mr_rereg : no_mr_rereg;
	d->path_ready = d->path_ready != NULL ? d->path_ready : no_path_ready;
	d->ah_resolve = d->ah_resolve != NULL ? d->ah_resolve : no_ah_resolve;
	d->ah_release = d->ah_release != NULL ? d->ah_release : no_ah_release;
	d->cq_arm = d->cq_arm != NULL ? d->cq_arm : no_cq_arm;
	d->qp_query = d->qp_query != NULL ? d->qp_query : no_qp_query;
	d->qp_retries = d->qp_retries != NULL ? d->qp_retries : no_qp_retries;
	d->qp1_claim = d->qp1_claim != NULL ? d->qp1_claim : no_qp1_claim;
}

int
bb_dev_list_v(struct bb_dev_info *out, unsigned int n)
{
	struct bb_dev_info *info = NULL;
	unsigned int i, total = 0;
	int first_err = 0, ret;

	if (out == NULL && n != 0)
		return -EINVAL;
	if (n != 0) {
		info = calloc(n, sizeof(*info));
		if (info == NULL)
			return -ENOMEM;
	}
	for (i = 0; i < n_drivers; i++) {
		unsigned int room = total < n ? n - total : 0;

		ret = drivers[i].list(room != 0 ? info + total : NULL, room);
		/*
		 * If a driver cannot list its devices, the devices of other drivers are listed
		 * nevertheless.
		 */
		if (ret < 0 && first_err == 0)
			first_err = ret;
		if (ret > 0)
			total += (unsigned int)ret;
	}
	ret = total == 0 && first_err != 0 ? first_err : (int)total;
	for (i = 0; i < RTE_MIN(n, total); i++) {
		const int err = bb_out_at(out, i, &info[i], sizeof(info[i]));

		ret = err != 0 ? err : ret;
	}
	free(info);
	return ret;
}

/*
 * Writes a list of the available devices as text, for example "soft0 (soft), mlx5_0 (mlx5
 * 0000:3b:00.0)".
 */
static void
devices_text(char *buf, size_t size)
{
	struct bb_dev_info info[16];
	size_t len = 0;
	int i, n;

	n = bb_dev_list(info, RTE_DIM(info));
	snprintf(buf, size, "none");
	for (i = 0; i < n && i < (int)RTE_DIM(info); i++) {
		int w = snprintf(buf + len, size - len, "%s%s (%s%s%s)", i > 0 ? ", " : "",
				 info[i].name, info[i].driver, info[i].bus[0] != '\0' ? " " : "",
				 info[i].bus);

		if (w < 0 || (size_t)w >= size - len)
			return;
		len += (size_t)w;
	}
}

/* Splits "name,key=value,..." at the first comma. */
static int
spec_split(const char *spec, char name[BB_DEV_NAME_MAX], const char **args)
{
	const char *comma;
	size_t len;

	if (spec == NULL)
		return -EINVAL;
	comma = strchr(spec, ',');
	len = comma != NULL ? (size_t)(comma - spec) : strlen(spec);
	if (len == 0 || len >= BB_DEV_NAME_MAX) {
		BB_LOG(ERR, "device spec \"%.80s\": %s; write name[,key=value,...]", spec,
		       len == 0 ? "the name is empty" : "the name is too long");
		return -EINVAL;
	}
	memcpy(name, spec, len);
	name[len] = '\0';
	*args = comma != NULL ? comma + 1 : "";
	return 0;
}

/*
 * Opens the device through the first driver that knows the name, among the drivers whose flag
 * `last` equals @last. Returns -ENODEV if no driver knows the name.
 */
static int
open_by(struct bb_dev *dev, const char *name, const char *args, bool last)
{
	unsigned int i;
	int ret = -ENODEV;

	for (i = 0; i < n_drivers && ret == -ENODEV; i++) {
		if (drivers[i].last != last)
			continue;
		dev->drv = &drivers[i];
		ret = drivers[i].open(name, args, dev);
	}
	return ret;
}

static int
no_memory(const char *name, const char *what)
{
	BB_LOG(ERR, "%s: no memory for %s: the process is at a limit (ulimit -v, its cgroup)", name,
	       what);
	return -ENOMEM;
}

int
bb_no_memory(const struct bb_dev *dev, const char *what)
{
	return no_memory(dev->name, what);
}

void *
bb_alloc(const struct bb_dev *dev, const char *what, size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		(void)bb_no_memory(dev, what);
	return p;
}

int
bb_random(const struct bb_dev *dev, void *buf, size_t len)
{
	uint8_t *p = buf;
	ssize_t got;

	while (len > 0) {
		got = getrandom(p, len, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			BB_LOG(ERR,
			       "%s: no random number from the kernel: getrandom() failed (errno "
			       "%d): does a seccomp filter block the call?",
			       dev->name, errno);
			return -EIO;
		}
		p += got;
		len -= (size_t)got;
	}
	return 0;
}

int
bb_dev_open(const char *spec, struct bb_dev **out)
{
	char name[BB_DEV_NAME_MAX], text[768];
	struct bb_dev *dev;
	const char *args;
	int ret;

	if (out == NULL)
		return -EINVAL;
	ret = spec_split(spec, name, &args);
	if (ret != 0)
		return ret;
	ret = bb_process_check();
	if (ret != 0)
		return ret;

	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return no_memory(name, "a device");
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	pthread_mutex_init(&dev->lock, NULL);
	dev->qps_next = 1;
	dev->generation = bb_process_generation();
	dev->qps =
		rte_zmalloc("bb_qps", (BB_MAX_USER_INDEX + 1) * sizeof(*dev->qps), BB_CACHE_LINE);
	if (dev->qps == NULL) {
		BB_LOG(ERR,
		       "%s: no %zu KiB of EAL memory for the table of QPs: give EAL more, "
		       "with -m or hugepages",
		       name, (BB_MAX_USER_INDEX + 1) * sizeof(*dev->qps) / 1024);
		ret = -ENOMEM;
		goto free_dev;
	}

	ret = open_by(dev, name, args, false);
	if (ret == -ENODEV)
		ret = open_by(dev, name, args, true);
	if (ret == -ENODEV) {
		devices_text(text, sizeof(text));
		BB_LOG(ERR, "no device is named \"%s\"; devices of this host: %s", name, text);
	}
	if (ret != 0)
		goto free_qps;

	bb_open_devs_add(dev);
	if (!rte_eal_has_hugepages() &&
	    !__atomic_exchange_n(&no_huge_logged, true, __ATOMIC_RELAXED))
		rte_log(RTE_LOG_NOTICE, (uint32_t)no_huge_logtype,
			"BLUEBELL: %s: EAL runs without hugepages, which costs TLB misses and, on "
			"a card, 512 times more translation entries\n",
			name);
	*out = dev;
	return 0;

free_qps:
	rte_free(dev->qps);
free_dev:
	pthread_mutex_destroy(&dev->lock);
	free(dev);
	return ret;
}

int
bb_dev_close(struct bb_dev *dev)
{
	int ret;

	if (dev == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	bb_open_devs_lock();
	pthread_mutex_lock(&dev->lock);
	if (dev->pds != 0 || dev->cqs != 0 || dev->qps_used != 0) {
		BB_LOG(ERR,
		       "%s is not closed: %u PD%s, %u CQ%s and %u QP%s live; destroy them first",
		       dev->name, dev->pds, BB_PLURAL(dev->pds), dev->cqs, BB_PLURAL(dev->cqs),
		       dev->qps_used, BB_PLURAL(dev->qps_used));
		ret = -EBUSY;
	} else if (dev->dms != 0 || dev->umems != 0) {
		BB_LOG(ERR,
		       "%s is not closed: %u allocation%s of device memory and %u umem%s live; "
		       "free the memory and deregister the umems first",
		       dev->name, dev->dms, BB_PLURAL(dev->dms), dev->umems, BB_PLURAL(dev->umems));
		ret = -EBUSY;
	} else if (dev->devx_objs != 0 || dev->devx_uars != 0) {
		BB_LOG(ERR,
		       "%s is not closed: %u DEVX object%s and %u reference%s to UARs live; "
		       "destroy the objects, then free the UARs",
		       dev->name, dev->devx_objs, BB_PLURAL(dev->devx_objs), dev->devx_uars,
		       BB_PLURAL(dev->devx_uars));
		ret = -EBUSY;
	} else if (dev->channels != 0) {
		BB_LOG(ERR, "%s is not closed: %u channel%s live%s; destroy them first", dev->name,
		       dev->channels, BB_PLURAL(dev->channels), dev->channels == 1 ? "s" : "");
		ret = -EBUSY;
	} else {
		ret = dev->drv->close(dev);
	}
	if (ret == 0)
		LIST_REMOVE(dev, open);
	pthread_mutex_unlock(&dev->lock);
	bb_open_devs_unlock();
	if (ret != 0)
		return ret;
	if (dev->mws != NULL)
		dev->mws_free(dev->mws);
	rte_free(dev->qps);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
	return 0;
}

const char *
bb_dev_name(const struct bb_dev *dev)
{
	return dev->name;
}
