/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "self.h"

static int
make_qp(struct self *s, uint8_t gid)
{
	struct bb_qp_init_attr init;
	struct bb_qp_attr attr;
	struct bb_qp_addr addr;
	int rc;

	bb_qp_init_attr_init(&init);
	init.sq_depth = 64;
	init.rq_depth = 1;
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE;
	attr.path.sgid_index = gid;
	attr.timeout = 18; /* a guest is slow */
	rc = bb_qp_create(s->pd, &init, &s->qp);
	if (rc == 0)
		rc = bb_qp_addr(s->qp, 1, gid, &addr);
	return rc == 0 ? bb_qp_connect(s->qp, &addr, &addr, &attr) : rc;
}

int
self_open(struct self *s, const char *device, void *mem, size_t len, uint8_t *gid)
{
	struct bb_gid_want want;
	struct bb_cq_attr cattr;
	int rc = bb_dev_open(device, &s->dev);

	bb_gid_want_init(&want);
	if (rc == 0)
		rc = bb_gid_choose(s->dev, 1, &want, gid);
	if (rc == 0)
		rc = bb_pd_alloc(s->dev, &s->pd);
	if (rc == 0)
		rc = bb_mr_reg(s->pd, mem, len, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE,
			       &s->mr);
	if (rc == 0)
		rc = bb_channel_create(s->dev, &s->ch);
	bb_cq_attr_init(&cattr);
	cattr.channel = s->ch;
	if (rc == 0)
		rc = bb_cq_create(s->dev, &cattr, &s->cq);
	return rc == 0 ? make_qp(s, *gid) : rc;
}

int
self_close(struct self *s)
{
	int rc = bb_qp_destroy(s->qp);

	if (rc == 0)
		rc = bb_cq_destroy(s->cq);
	if (rc == 0)
		rc = bb_channel_destroy(s->ch);
	if (rc == 0)
		rc = bb_mr_dereg(s->mr);
	if (rc == 0)
		rc = bb_pd_free(s->pd);
	return rc == 0 ? bb_dev_close(s->dev) : rc;
}
