/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "bb_nvmf_priv.h"

#define BURST 32u

const struct bb_nvmf_shape *
bb_nvmf_shape(const struct bb_nvmf *n)
{
	return &n->e->shape;
}

uint32_t
bb_nvmf_pending(const struct bb_nvmf *n)
{
	return n->e->used;
}

uint32_t
bb_nvmf_reconnects(const struct bb_nvmf *n)
{
	return n->e->reconnects;
}

const char *
bb_nvmf_broken(const struct bb_nvmf *n)
{
	return n->e->step == INI_OVER ? n->e->why : NULL;
}

/* ---- Open and close a connection */

static int
create_memory(struct bb_nvmf *n)
{
	size_t shared = INI_PAGE + (size_t)n->depth * INI_RANGE, recv;
	int rc;

	/*
	 * The target may access only this part of the memory, so the part consists of whole pages.
	 */
	shared = (shared + INI_PAGE - 1) & ~(size_t)(INI_PAGE - 1);
	recv = (NVMF_ADMIN_DEPTH + n->depth + 1) * (size_t)RECV;
	n->mem = rte_zmalloc("nvmf", shared + recv, INI_PAGE);
	if (n->mem == NULL)
		return -ENOMEM;
	n->queue[0].recv = n->mem + shared;
	n->queue[1].recv = n->queue[0].recv + (size_t)NVMF_ADMIN_DEPTH * RECV;
	rc = bb_mr_reg(n->pd, n->mem, shared,
		       BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ,
		       &n->shared);
	return rc != 0 ? rc
		       : bb_mr_reg(n->pd, n->mem + shared, recv, BB_ACCESS_LOCAL_WRITE, &n->recv);
}

static int
create_objects(struct bb_nvmf *n)
{
	struct bb_cq_attr cq;
	struct bb_cm_attr cm;
	int rc;

	if (n->windows) {
		n->window = calloc(n->depth, sizeof(struct bb_mw *));
		if (n->window == NULL)
			return -ENOMEM;
	}
	rc = bb_pd_alloc(n->dev, &n->pd);
	if (rc == 0)
		rc = create_memory(n);
	bb_cq_attr_init(&cq);
	cq.depth = 16 * (n->depth + NVMF_ADMIN_DEPTH) + 64;
	if (rc == 0)
		rc = bb_cq_create(n->dev, &cq, &n->cq);
	bb_cm_attr_init(&cm);
	cm.transport = BB_CM_RDMA;
	if (rc == 0)
		rc = bb_cm_create(n->dev, &cm, &n->cm);
	return rc;
}

static int
create_engine(struct bb_nvmf *n, const struct bb_nvmf_attr *attr)
{
	struct nvmf_ini_attr ini = {.nvmf = *attr, .ops = &bb_nvmf_conn_ops, .user = n};

	/* nvmf_ini_attr_check() has checked the lengths. */
	strcpy(n->subnqn, attr->subnqn);
	ini.nvmf.subnqn = n->subnqn;
	if (attr->hostnqn != NULL) {
		strcpy(n->hostnqn, attr->hostnqn);
		ini.nvmf.hostnqn = n->hostnqn;
	}
	ini.shared = n->mem;
	ini.shared_addr = n->shared->iova;
	ini.shared_key = n->shared->rkey;
	return nvmf_ini_create(&ini, &n->e);
}

static void
release(struct bb_nvmf *n)
{
	if (n->e != NULL)
		bb_nvmf_conn_disconnect(n);
	if (n->cm != NULL)
		(void)bb_cm_destroy(n->cm);
	if (n->cq != NULL)
		(void)bb_cq_destroy(n->cq);
	if (n->recv != NULL)
		(void)bb_mr_dereg(n->recv);
	if (n->shared != NULL)
		(void)bb_mr_dereg(n->shared);
	if (n->pd != NULL)
		(void)bb_pd_free(n->pd);
	if (n->e != NULL)
		nvmf_ini_destroy(n->e);
	rte_free(n->mem);
	free(n->window);
	free(n);
}

/*
 * Waits until the connection works or has failed for good. This ends, because each step of the
 * engine has a time limit.
 */
static int
wait_live(struct bb_nvmf *n, char *why, size_t len)
{
	while (!n->e->was_live && n->e->step != INI_OVER) {
		if (n->stop != NULL && *n->stop != 0) {
			snprintf(why, len, "interrupted");
			return -EINTR;
		}
		(void)bb_nvmf_poll(n, NULL, 0);
	}
	if (n->e->step != INI_OVER)
		return 0;
	snprintf(why, len, "%s", n->e->why);
	return n->e->error;
}

static int
create(struct bb_dev *dev, const struct bb_nvmf_attr *attr, struct bb_nvmf *n)
{
	int rc = bb_cm_addr(attr->addr, &n->addr);

	n->dev = dev;
	n->queue[0].n = n->queue[1].n = n;
	n->depth = attr->depth < BB_NVMF_MAX_DEPTH ? attr->depth : BB_NVMF_MAX_DEPTH;
	n->timeout_ms = attr->timeout_ms;
	n->windows = attr->windows;
	n->stop = attr->stop;
	n->ms = rte_get_tsc_hz() / 1000;
	if (rc == 0)
		rc = create_objects(n);
	if (rc == 0)
		rc = create_engine(n, attr);
	return rc;
}

int
bb_nvmf_open(struct bb_dev *dev, const struct bb_nvmf_attr *attr, struct bb_nvmf **out, char *why,
	     size_t len)
{
	const char *text = NULL;
	struct bb_nvmf *n;
	int rc = nvmf_ini_attr_check(attr, &text);

	if (rc != 0) {
		snprintf(why, len, "%s", text);
		return rc;
	}
	n = calloc(1, sizeof(*n));
	rc = n == NULL ? -ENOMEM : create(dev, attr, n);
	if (rc != 0)
		snprintf(why, len, "the connection's objects cannot be created: %s", strerror(-rc));
	else
		rc = wait_live(n, why, len);
	if (rc == 0)
		*out = n;
	else if (n != NULL)
		release(n);
	return rc;
}

int
bb_nvmf_close(struct bb_nvmf *n)
{
	bb_nvmf_conn_finish(n);
	nvmf_ini_close(n->e);
	if (n->regs != 0)
		return -EBUSY;
	release(n);
	return 0;
}

/* ---- Registration of memory */

int
bb_nvmf_reg(struct bb_nvmf *n, void *mem, size_t len, struct bb_mr **mr)
{
	uint32_t peer =
		n->windows ? BB_ACCESS_MW_BIND : BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	int rc = bb_mr_reg(n->pd, mem, len, BB_ACCESS_LOCAL_WRITE | peer, mr);

	n->regs += rc == 0;
	return rc;
}

int
bb_nvmf_dereg(struct bb_nvmf *n, struct bb_mr *mr)
{
	int rc = bb_mr_dereg(mr);

	n->regs -= rc == 0;
	return rc;
}

/* ---- Submit, ring and poll requests */

int
bb_nvmf_submit(struct bb_nvmf *n, const struct bb_nvmf_request *req)
{
	const struct bb_mr *mr = req->mr;
	uintptr_t at;

	if (req->op != BB_NVMF_READ && req->op != BB_NVMF_WRITE && req->op != BB_NVMF_COMPARE)
		return nvmf_ini_submit(n->e, req, 0, 0);
	if (mr == NULL)
		return -EINVAL;
	at = (uintptr_t)req->mem - (uintptr_t)mr->addr;
	if ((uintptr_t)req->mem < (uintptr_t)mr->addr || req->length > mr->len ||
	    at > mr->len - req->length)
		return -EINVAL;
	return nvmf_ini_submit(n->e, req, mr->iova + at, mr->rkey);
}

void
bb_nvmf_ring(struct bb_nvmf *n)
{
	if (n->queue[1].ring_send)
		bb_qp_ring(n->queue[1].qp);
	n->queue[1].ring_send = false;
}

/* Passes events of the CM to the engine, and with @tick lets the engine check its time limits. */
static void
look(struct bb_nvmf *n, bool tick)
{
	if (n->e->step != INI_LIVE)
		bb_dev_progress(n->dev);
	bb_nvmf_conn_poll(n);
	if (tick)
		nvmf_ini_run(n->e);
}

uint32_t
bb_nvmf_poll(struct bb_nvmf *n, struct bb_nvmf_done *done, uint32_t max)
{
	uint32_t connection = n->connection, i, got;
	const uint64_t now = rte_get_tsc_cycles();
	const bool tick = now >= n->tick;
	struct bb_wc wc[BURST];

	/*
	 * Set the time before events are handled: the engine then records a loss that it finds
	 * after a pause of the caller with the time after the pause.
	 */
	if (tick) {
		nvmf_ini_time(n->e, now / n->ms);
		n->tick = now + n->ms;
	}
	got = bb_cq_poll(n->cq, wc, BURST);
	/*
	 * If a completion ends the connection, drop the rest of the burst: it belongs to that
	 * connection.
	 */
	for (i = 0; i < got && n->connection == connection; i++)
		bb_nvmf_conn_wc(n, &wc[i]);
	if (tick || n->e->step != INI_LIVE)
		look(n, tick);
	for (i = 0; i < 2; i++) {
		struct nvmf_ini_queue *q = &n->queue[i];

		if (q->ring_recv)
			bb_qp_ring_recv(q->qp);
		if (q->ring_send)
			bb_qp_ring(q->qp);
		q->ring_send = q->ring_recv = false;
	}
	return nvmf_ini_take(n->e, done, max);
}
