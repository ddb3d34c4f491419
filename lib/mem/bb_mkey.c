/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Indirect keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_mem_priv.h"
#include "bb_mem_table.h"
#include "bb_mkey.h"

#define ACCESS_REMOTE_WRITES (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC)
#define ACCESS_ALL           (BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITES)

struct bb_mkey_priv {
	struct bb_mkey pub;
	struct bb_drv_mr *drv;
	uint32_t n;
	struct bb_mr_priv *mr[]; /* MR to whose lkey each piece refers, NULL if the piece's lkey is
				  * not that of an MR */
};

static const char *
access_bad(const struct bb_dev *dev, uint32_t access)
{
	if ((access & ~(uint32_t)ACCESS_ALL) != 0)
		return "an indirect key allows only LOCAL_WRITE and REMOTE_* rights";
	if ((access & ACCESS_REMOTE_WRITES) != 0 && (access & BB_ACCESS_LOCAL_WRITE) == 0)
		return "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE too";
	if ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && !dev->attr.atomics)
		return "the device has no atomics";
	if ((access & BB_ACCESS_REMOTE_ATOMIC) != 0 && dev->attr.mkey_atomic_align == 0)
		return "the device has no atomics on indirect keys: leave REMOTE_ATOMIC out, or "
		       "give peers the MR's own key";
	return NULL;
}

static const char *
pieces_bad(const struct bb_dev *dev, const struct bb_mkey_attr *attr)
{
	uint64_t len = 0;
	uint32_t i;

	if (attr->pieces == NULL)
		return "pieces is NULL";
	for (i = 0; i < attr->n; i++) {
		if (attr->pieces[i].len == 0 || attr->pieces[i].len > BB_WQE_MAX_SGE_LEN)
			return "the length of a piece is not 1 to 2^31 bytes";
		len += attr->pieces[i].len;
	}
	if (len > UINT64_MAX - attr->iova)
		return "iova and length overflow";
	if ((attr->access & BB_ACCESS_REMOTE_ATOMIC) != 0 &&
	    ((attr->iova | len) & (dev->attr.mkey_atomic_align - 1)) != 0)
		return "REMOTE_ATOMIC needs an iova and a length that are multiples of "
		       "mkey_atomic_align (bb_dev_query()): shift the iova, lengthen the last "
		       "piece, or leave the right out";
	return NULL;
}

static int
attr_check(const struct bb_dev *dev, const struct bb_mkey_attr *attr)
{
	uint32_t max = dev->attr.max_mkey_pieces;
	const char *why;
	int ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_mkey_attr_init");

	if (ret != 0)
		return ret;
	if (max == 0 || (attr->max_pieces != 0 && !dev->attr.mkey_layout)) {
		BB_LOG(ERR, "%s: indirect key not created: the device has no indirect keys%s",
		       dev->name,
		       max == 0 ? ""
				: " whose layout can change; give the pieces now, not "
				  "max_pieces");
		return -ENOTSUP;
	}
	why = access_bad(dev, attr->access);
	if (why == NULL && (attr->n != 0) == (attr->max_pieces != 0))
		why = "set either n or max_pieces, and leave the other 0";
	if (why == NULL && (attr->n > max || attr->max_pieces > max))
		why = "more pieces than the device's max_mkey_pieces";
	if (why == NULL && attr->n != 0)
		why = pieces_bad(dev, attr);
	if (why == NULL)
		return 0;
	BB_LOG(ERR, "%s: indirect key not created (%u pieces, max_pieces %u, access 0x%x): %s",
	       dev->name, attr->n, attr->max_pieces, attr->access, why);
	return -EINVAL;
}

/*
 * Holds the MRs to whose lkeys the pieces refer, so that these MRs cannot be deregistered before
 * this key is destroyed.
 */
static void
hold_mrs(struct bb_mkey_priv *k, const struct bb_sge *pieces)
{
	struct bb_mr_priv *mr;
	uint32_t i;

	for (i = 0; i < k->n; i++) {
		LIST_FOREACH(mr, &k->pub.pd->mr_list, link)
			if (mr->reg->drv_mr->lkey == pieces[i].lkey)
				break;
		k->mr[i] = mr;
		if (mr != NULL)
			mr->mkeys++;
	}
}

int
bb_mkey_create(struct bb_pd *pd, const struct bb_mkey_attr *attr, struct bb_mkey **out)
{
	struct bb_drv_mr_attr drv = {.kind = BB_DRV_MR_INDIRECT};
	struct bb_mkey_priv *k;
	uint32_t i;
	int ret;

	if (pd == NULL || attr == NULL || out == NULL)
		return -EINVAL;
	ret = bb_process_owns(pd->dev);
	if (ret == 0)
		ret = attr_check(pd->dev, attr);
	if (ret != 0)
		return ret;
	k = bb_alloc(pd->dev, "an mkey", sizeof(*k) + attr->n * sizeof(k->mr[0]));
	if (k == NULL)
		return -ENOMEM;
	for (i = 0; i < attr->n; i++)
		drv.len += attr->pieces[i].len;
	drv.iova = attr->iova;
	drv.access = attr->access;
	drv.pieces = attr->pieces;
	drv.n = attr->n;
	drv.max_pieces = attr->max_pieces;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = pd->dev->drv->mr_reg(pd, &drv, &k->drv);
	if (ret == 0) {
		k->n = attr->n;
		k->pub.pd = pd;
		k->pub.lkey = k->drv->lkey;
		k->pub.rkey = k->drv->rkey;
		k->pub.iova = attr->iova;
		k->pub.len = drv.len;
		k->pub.access = attr->access;
		k->pub.max_pieces = attr->max_pieces;
		hold_mrs(k, attr->pieces);
		pd->mkeys++;
	}
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret != 0) {
		free(k);
		return ret;
	}
	*out = &k->pub;
	return 0;
}

int
bb_mkey_destroy(struct bb_mkey *pub)
{
	struct bb_mkey_priv *k = (struct bb_mkey_priv *)pub;
	struct bb_pd *pd;
	uint32_t i;
	int ret;

	if (pub == NULL)
		return -EINVAL;
	pd = pub->pd;
	ret = bb_process_owns(pd->dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pd->dev->lock);
	(void)bb_mem_reap_locked(pd);
	ret = pd->dev->drv->mr_dereg(pd, k->drv);
	if (ret == 0) {
		for (i = 0; i < k->n; i++)
			if (k->mr[i] != NULL)
				k->mr[i]->mkeys--;
		pd->mkeys--;
	}
	pthread_mutex_unlock(&pd->dev->lock);
	if (ret == 0)
		free(k);
	return ret;
}

static int
layout_check(const struct bb_qp *qp, const struct bb_mkey *mkey, uint32_t access, uint32_t n)
{
	const struct bb_dev *dev = qp->ctrl->pd->dev;
	const char *why = access_bad(dev, access);

	if (mkey->max_pieces == 0)
		why = "the key was created with fixed pieces";
	else if (mkey->pd != qp->ctrl->pd)
		why = "the key and the QP have different PDs";
	else if (n > mkey->max_pieces)
		why = "more pieces than the key's max_pieces";
	if (why == NULL)
		return 0;
	BB_LOG(ERR, "QP 0x%x: the layout of key 0x%x is not posted: %s", qp->qpn, mkey->lkey, why);
	return -EINVAL;
}

int
bb_post_mkey_list(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey, uint32_t access,
		  const struct bb_sge *sge, uint32_t n, uint32_t flags)
{
	int ret = layout_check(qp, mkey, access, n);

	if (ret != 0)
		return ret;
	return bb_sq_post_mkey_list(&qp->sq, wr_id, mkey->lkey, access, sge, n, flags);
}

int
bb_post_mkey_interleaved(struct bb_qp *qp, uint64_t wr_id, struct bb_mkey *mkey, uint32_t access,
			 uint32_t repeat, const struct bb_interleaved *block, uint32_t n,
			 uint32_t flags)
{
	int ret;

	if (!qp->ctrl->pd->dev->attr.mkey_interleaved) {
		BB_LOG(ERR,
		       "QP 0x%x: the layout of key 0x%x is not posted: the device has no "
		       "interleaved layouts; use bb_post_mkey_list()",
		       qp->qpn, mkey->lkey);
		return -ENOTSUP;
	}
	/* The header of a pattern occupies one entry of the layout. */
	ret = layout_check(qp, mkey, access, n == UINT32_MAX ? n : n + 1);
	if (ret != 0)
		return ret;
	return bb_sq_post_mkey_interleaved(&qp->sq, wr_id, mkey->lkey, access, repeat, block, n,
					   flags);
}
