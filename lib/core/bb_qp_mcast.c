/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of UD queue pairs.
 *
 * The rules are those of Linux's drivers/infiniband/core: ib_attach_mcast() and
 * is_valid_mcast_lid() in verbs.c, ib_uverbs_attach_mcast() in uverbs_cmd.c. A QP of a device with
 * an Ethernet port may name any LID. A second attach succeeds without a call of the driver. A QP
 * that is attached cannot be destroyed (uverbs_free_qp()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_core.h"

/* LIDs of multicast groups (IBTA vol. 1, 4.1.3); 0xffff is the permissive LID. */
#define MLID_FIRST 0xc000u
#define MLID_LAST  0xfffeu

/* Linux: rdma_is_multicast_addr() in include/rdma/ib_addr.h. */
static bool
is_multicast(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return gid[0] == 0xff ||
	       (memcmp(gid, mapped, sizeof(mapped)) == 0 && (gid[12] & 0xf0) == 0xe0);
}

static int
refuse(const struct bb_qp *qp, const char *why)
{
	BB_LOG(ERR, "%s QP 0x%x: multicast group rejected: %s", qp->ctrl->pd->dev->name, qp->qpn,
	       why);
	return -EINVAL;
}

static int
check(const struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	const struct bb_dev *dev = qp->ctrl->pd->dev;

	if (dev->attr.max_mcast_grp == 0) {
		BB_LOG(ERR, "%s QP 0x%x: the device has no multicast groups", dev->name, qp->qpn);
		return -ENOTSUP;
	}
	if (qp->ctrl->init.type != BB_QPT_UD)
		return refuse(qp, "the QP is not of type UD");
	if (!is_multicast(gid))
		return refuse(qp, "the GID is not one of a group: give one that begins with 0xff, "
				  "or an IPv4 multicast address");
	if (!dev->ethernet && (lid < MLID_FIRST || lid > MLID_LAST)) {
		BB_LOG(ERR, "%s QP 0x%x: multicast group rejected: LID 0x%x (0xc000 to 0xfffe)",
		       dev->name, qp->qpn, lid);
		return -EINVAL;
	}
	return 0;
}

/*
 * Returns the QP's attachment to the group with @gid and @lid, NULL if it has none. Call with
 * dev->lock held.
 */
static struct bb_mcast *
find(const struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	struct bb_mcast *m;

	LIST_FOREACH(m, &qp->ctrl->mcasts, link)
		if (m->lid == lid && memcmp(m->gid, gid, sizeof(m->gid)) == 0)
			return m;
	return NULL;
}

/* Call with dev->lock held. */
static int
attach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	struct bb_mcast *m;
	int ret;

	if (find(qp, gid, lid) != NULL)
		return 0;
	m = bb_alloc(dev, "a multicast group", sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	memcpy(m->gid, gid, sizeof(m->gid));
	m->lid = lid;
	ret = dev->drv->mcast_attach(qp, m);
	if (ret != 0) {
		free(m);
		return ret;
	}
	LIST_INSERT_HEAD(&qp->ctrl->mcasts, m, link);
	return 0;
}

/* Call with dev->lock held. */
static int
detach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	struct bb_mcast *m = find(qp, gid, lid);
	int ret;

	if (m == NULL)
		return refuse(qp, "the QP is not attached to this GID and LID");
	ret = qp->ctrl->pd->dev->drv->mcast_detach(qp, m);
	if (ret != 0)
		return ret;
	LIST_REMOVE(m, link);
	free(m);
	return 0;
}

static int
call(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid,
     int (*fn)(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid))
{
	struct bb_dev *dev;
	int ret;

	if (qp == NULL || gid == NULL)
		return -EINVAL;
	dev = qp->ctrl->pd->dev;
	ret = bb_process_owns(dev);
	if (ret == 0)
		ret = check(qp, gid, lid);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = fn(qp, gid, dev->ethernet ? 0 : lid);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

int
bb_qp_mcast_attach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	return call(qp, gid, lid, attach);
}

int
bb_qp_mcast_detach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid)
{
	return call(qp, gid, lid, detach);
}

int
bb_qp_mcast_none(const struct bb_qp *qp)
{
	if (LIST_EMPTY(&qp->ctrl->mcasts))
		return 0;
	BB_LOG(ERR,
	       "%s QP 0x%x: cannot be destroyed while it is attached to a multicast group: call "
	       "bb_qp_mcast_detach() first",
	       qp->ctrl->pd->dev->name, qp->qpn);
	return -EBUSY;
}
