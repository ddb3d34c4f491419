/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Protection domains, their thread domains, and address handles.
 *
 * A QP belongs to one thread, its owner. So the QP is created in a parent domain with a thread
 * domain of that owner. For QPs in a thread domain the provider takes no locks when it posts. If
 * the provider does not support thread domains, the QP is created in the plain PD.
 *
 * libibverbs requires that an address handle exists until the requests that use it have completed
 * (man ibv_destroy_ah). Bluebell does not require this (bb_ah.h). So if UD QPs have outstanding
 * requests when a handle is destroyed, the driver frees the handle after these requests have
 * completed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_drv.h"

static void
ah_free(const struct bb_dev *dev, struct ibv_ah *ah)
{
	int err = verbs_gone(verbs_dev_of(dev), ibv_destroy_ah(ah));

	if (err != 0)
		BB_LOG(ERR, "%s: cannot destroy an address handle: %s", dev->name, strerror(err));
}

int
verbs_pd_alloc(struct bb_pd *pd)
{
	struct verbs_dev *d = verbs_dev_of(pd->dev);
	struct verbs_pd *p = calloc(1, sizeof(*p));
	int ret;

	if (p == NULL) {
		BB_LOG(ERR, "%s: out of memory for a PD", pd->dev->name);
		return -ENOMEM;
	}
	LIST_INIT(&p->domains);
	LIST_INIT(&p->ud);
	LIST_INIT(&p->destroyed_ahs);
	errno = 0;
	p->pd = ibv_alloc_pd(d->ctx);
	if (p->pd == NULL) {
		ret = bb_ibv_errno();
		BB_LOG(ERR, "%s: cannot allocate a PD: %s", pd->dev->name, strerror(-ret));
		free(p);
		return ret;
	}
	pd->priv = p;
	return 0;
}

/* Frees the destroyed address handles whose requests have completed. */
static void
ah_reap(const struct bb_dev *dev, struct verbs_pd *p)
{
	struct verbs_ah *a = LIST_FIRST(&p->destroyed_ahs), *next;

	for (; a != NULL; a = next) {
		uint32_t i = 0;

		next = LIST_NEXT(a, link);
		while (i < a->n) {
			uint32_t done = __atomic_load_n(&a->wait[i].q->done, __ATOMIC_RELAXED);

			if ((int32_t)(done - a->wait[i].seq) >= 0)
				a->wait[i] = a->wait[--a->n];
			else
				i++;
		}
		if (a->n != 0)
			continue;
		LIST_REMOVE(a, link);
		ah_free(dev, a->ah);
		free(a);
	}
}

void
verbs_ah_drop_waits(struct verbs_pd *p, const struct verbs_qp *q)
{
	struct verbs_ah *a;
	uint32_t i;

	LIST_FOREACH(a, &p->destroyed_ahs, link) {
		for (i = 0; i < a->n;) {
			if (a->wait[i].q == q)
				a->wait[i] = a->wait[--a->n];
			else
				i++;
		}
	}
}

int
verbs_pd_free(struct bb_pd *pd)
{
	struct verbs_pd *p = pd->priv;
	int err;

	/*
	 * All QPs of the PD are destroyed, so no handle has outstanding requests and all are freed
	 * here.
	 */
	ah_reap(pd->dev, p);
	err = verbs_gone(verbs_dev_of(pd->dev), ibv_dealloc_pd(p->pd));
	if (err != 0) {
		BB_LOG(ERR, "%s: cannot free a PD: %s", pd->dev->name, strerror(err));
		return -err;
	}
	free(p);
	return 0;
}

static struct verbs_domain *
domain_make(struct verbs_dev *d, struct verbs_pd *p, uint32_t owner)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = p->pd};
	struct verbs_domain *domain = calloc(1, sizeof(*domain));

	if (domain == NULL)
		return NULL;
	errno = 0;
	domain->td = ibv_alloc_td(d->ctx, &td);
	if (domain->td == NULL)
		goto none;
	parent.td = domain->td;
	domain->pd = ibv_alloc_parent_domain(d->ctx, &parent);
	if (domain->pd == NULL) {
		(void)ibv_dealloc_td(domain->td);
		goto none;
	}
	domain->owner = owner;
	LIST_INSERT_HEAD(&p->domains, domain, link);
	return domain;

none:
	if (errno == EOPNOTSUPP || errno == ENOSYS)
		BB_LOG(INFO,
		       "%s: the provider has no thread domains: posts and polls take the "
		       "provider's locks",
		       d->ibname);
	else
		BB_LOG(NOTICE,
		       "%s: cannot allocate a thread domain: %s; posts and polls take the "
		       "provider's locks",
		       d->ibname, strerror(errno));
	d->no_td = true;
	free(domain);
	return NULL;
}

struct ibv_pd *
verbs_domain_get(struct bb_pd *pd, uint32_t owner, struct verbs_domain **out)
{
	struct verbs_dev *d = verbs_dev_of(pd->dev);
	struct verbs_pd *p = pd->priv;
	struct verbs_domain *domain = NULL;

	*out = NULL;
	if (d->no_td)
		return p->pd;
	LIST_FOREACH(domain, &p->domains, link) {
		if (domain->owner == owner)
			break;
	}
	if (domain == NULL)
		domain = domain_make(d, p, owner);
	if (domain == NULL)
		return p->pd;
	domain->refs++;
	*out = domain;
	return domain->pd;
}

void
verbs_domain_put(struct verbs_domain *domain)
{
	if (domain == NULL || --domain->refs != 0)
		return;
	LIST_REMOVE(domain, link);
	(void)ibv_dealloc_pd(domain->pd);
	(void)ibv_dealloc_td(domain->td);
	free(domain);
}

int
verbs_path_ready(struct bb_dev *dev, const struct bb_path *path)
{
	struct ibv_ah_attr attr;

	if (!dev->ethernet || dev->iwarp)
		return 0;
	verbs_path(dev, path, &attr);
	return bb_ibv_ready(verbs_dev_of(dev)->ctx, &attr);
}

int
verbs_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av)
{
	struct verbs_pd *p = pd->priv;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	ah_reap(pd->dev, p);
	verbs_path(pd->dev, path, &attr);
	errno = 0;
	ah = ibv_create_ah(p->pd, &attr);
	if (ah == NULL) {
		int ret = bb_ibv_errno();

		BB_LOG(ERR,
		       "%s: cannot create an address handle: %s; check that the peer is in the "
		       "neighbour table and routed through this port",
		       pd->dev->name, strerror(-ret));
		return ret;
	}
	memset(av, 0, sizeof(*av));
	memcpy(av->rgid, &ah, sizeof(ah));
	return 0;
}

void
verbs_ah_release(struct bb_pd *pd, const struct bb_wqe_av *av)
{
	struct verbs_pd *p = pd->priv;
	struct verbs_ah *a;
	struct verbs_qp *q;
	uint32_t n = 0;

	LIST_FOREACH(q, &p->ud, link)
		n++;
	a = malloc(sizeof(*a) + n * sizeof(a->wait[0]));
	if (a == NULL) {
		BB_LOG(WARNING,
		       "%s: cannot release an address handle: out of memory; closing the device "
		       "releases it",
		       pd->dev->name);
		return;
	}
	a->ah = verbs_ah_of(av);
	a->n = 0;
	LIST_FOREACH(q, &p->ud, link) {
		a->wait[a->n].q = q;
		/* Wait for all posted requests, even for those whose doorbell has not rung yet. */
		a->wait[a->n++].seq = __atomic_load_n(&q->bb->sq.seq, __ATOMIC_RELAXED);
	}
	LIST_INSERT_HEAD(&p->destroyed_ahs, a, link);
	ah_reap(pd->dev, p);
}
