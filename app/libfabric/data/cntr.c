/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Counters. Completions are counted when a CQ is polled, so fi_cntr_read() first polls the CQs of
 * the domain's endpoints.
 */
#include <stdlib.h>
#include <time.h>

#include "fab.h"

static struct fab_cntr *
cntr_of(struct fid_cntr *fid)
{
	return container_of(fid, struct fab_cntr, fid);
}

/* Polls the CQs of all endpoints that are bound to the counter @c. */
static void
run(struct fab_cntr *c)
{
	struct fab_ep *ep;

	LIST_FOREACH(ep, &c->domain->dev->eps, next) {
		unsigned int i;

		for (i = 0; i < FAB_COUNTS; i++)
			if (ep->cntr[i] == c && ep->qp != NULL)
				fab_cq_fill(i == FAB_COUNT_RECV ? ep->rx_cq : ep->tx_cq);
	}
}

static uint64_t
get(struct fid_cntr *fid, bool errors)
{
	struct fab_cntr *c = cntr_of(fid);
	uint64_t n;

	fab_lock(c->domain->dev);
	run(c);
	n = errors ? c->errors : c->value;
	fab_unlock(c->domain->dev);
	return n;
}

static uint64_t
cntr_read(struct fid_cntr *fid)
{
	return get(fid, false);
}

static uint64_t
cntr_readerr(struct fid_cntr *fid)
{
	return get(fid, true);
}

/* Sets the count *@to to @value, or adds @value to it if @add is true. */
static int
change(struct fid_cntr *fid, uint64_t *to, uint64_t value, bool add)
{
	struct fab_dev *dev = cntr_of(fid)->domain->dev;

	fab_lock(dev);
	*to = add ? *to + value : value;
	fab_unlock(dev);
	return 0;
}

static int
cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->value, value, true);
}

static int
cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->value, value, false);
}

static int
cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->errors, value, true);
}

static int
cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->errors, value, false);
}

static int
cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	const int64_t end = fab_deadline(timeout);
	const struct timespec nap = {.tv_nsec = 50000};
	/*
	 * Read the count of errors without a poll, so that a failure found by the polls below
	 * counts as a new one.
	 */
	const uint64_t errors = __atomic_load_n(&cntr_of(fid)->errors, __ATOMIC_RELAXED);

	for (;;) {
		if (cntr_read(fid) >= threshold)
			return 0;
		if (cntr_readerr(fid) != errors)
			return -FI_EAVAIL;
		if (fab_now_ms() >= end)
			return -FI_ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
}

static int
cntr_close(struct fid *fid)
{
	struct fab_cntr *c = container_of(fid, struct fab_cntr, fid.fid);
	struct fab_dev *dev = c->domain->dev;

	fab_lock(dev);
	if (c->refs != 0) {
		fab_unlock(dev);
		return -FI_EBUSY;
	}
	c->domain->refs--;
	fab_unlock(dev);
	free(c);
	return 0;
}

static struct fi_ops cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = fab_no_bind,
	.control = fab_no_control,
	.ops_open = fab_no_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int
fab_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **fid,
	      void *context)
{
	struct fab_domain *d = container_of(domain, struct fab_domain, fid);
	struct fab_cntr *c;
	const int ret = fab_dev_check(d->dev);

	if (ret != 0)
		return ret;
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -FI_ENOMEM;
	c->domain = d;
	c->fid.fid = (struct fid){FI_CLASS_CNTR, context, &cntr_fi_ops};
	c->fid.ops = &cntr_ops;
	fab_lock(d->dev);
	d->refs++;
	fab_unlock(d->dev);
	*fid = &c->fid;
	return 0;
}
