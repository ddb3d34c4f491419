/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens and closes the transport of an lcore. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "nvmf_rdma.h"
#include "program.h"

#define CAPSULE_AT (NVMF_PAGE - NVMF_SQE)
/* Interval between looks at the CM, a system call: a host waits for this long to be connected. */
#define CM_POLL_US 1000
/* nvmf_rdma.push_max for a software device */
#define PUSH_MAX (256u << 10)

static uint32_t
stride_of(const struct nvmf_target_attr *t)
{
	return (CAPSULE_AT + NVMF_SQE + t->in_capsule + NVMF_PAGE - 1) & ~(NVMF_PAGE - 1);
}

static uint32_t
depth_of(const struct nvmf_target_attr *t)
{
	return t->io_depth > NVMF_ADMIN_DEPTH ? t->io_depth : NVMF_ADMIN_DEPTH;
}

/* Returns the bytes of memory of a connection. */
static size_t
slice_of(const struct nvmf_target_attr *t)
{
	return (size_t)depth_of(t) * (t->max_io + stride_of(t));
}

size_t
nvmf_rdma_memory(const struct nvmf_target_attr *t, uint32_t conns)
{
	return slice_of(t) * conns + t->max_io;
}

/*
 * A CQ for sends and one for receives, because a sleeping lcore need not wake up for the end of a
 * response.
 */
static int
create_cqs(struct nvmf_rdma *r)
{
	const uint32_t requests = r->attr.conns * r->depth;
	struct bb_cq_attr cq;
	int rc;

	bb_cq_attr_init(&cq);
	cq.lcore = r->attr.lcore;
	cq.channel = r->channel;
	cq.depth = requests * NVMF_SQ_PER_REQ + 2;
	rc = bb_cq_create(r->attr.dev, &cq, &r->send_cq);
	cq.depth = requests + 2;
	if (rc == 0)
		rc = bb_cq_create(r->attr.dev, &cq, &r->recv_cq);
	return rc;
}

static int
create_queues(struct nvmf_rdma *r)
{
	struct bb_cm_attr cm;
	int rc;

	rc = bb_pd_alloc(r->attr.dev, &r->pd);
	if (rc == 0)
		rc = bb_mr_reg(r->pd, r->mem, nvmf_rdma_memory(&r->target->attr, r->attr.conns),
			       BB_ACCESS_LOCAL_WRITE, &r->mr);
	if (rc == 0 && r->attr.sleep_us != 0)
		rc = bb_channel_create(r->attr.dev, &r->channel);
	if (rc == 0)
		rc = create_cqs(r);
	bb_cm_attr_init(&cm);
	cm.transport = BB_CM_RDMA;
	cm.poll_us = CM_POLL_US;
	if (rc == 0)
		rc = bb_cm_create(r->attr.dev, &cm, &r->cm);
	return rc;
}

static int
attach(struct nvmf_rdma *r)
{
	struct bb_loop_attr attr;
	int rc;

	bb_loop_attr_init(&attr);
	attr.lcore = r->attr.lcore;
	rc = bb_loop_create(&attr, &r->loop);
	if (rc == 0)
		rc = bb_loop_attach_cq(r->loop, r->send_cq, nvmf_rdma_wc, r);
	if (rc == 0)
		rc = bb_loop_attach_cq(r->loop, r->recv_cq, nvmf_rdma_wc, r);
	if (rc == 0)
		rc = bb_cm_attach(r->cm, r->loop, nvmf_rdma_event, r);
	if (rc == 0)
		rc = bb_loop_attach_poller(r->loop, nvmf_rdma_turn, r);
	r->looped = rc == 0;
	return rc;
}

static int
listen_all(struct nvmf_rdma *r)
{
	struct sockaddr_storage addr;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < r->attr.listeners && rc == 0; i++) {
		rc = bb_cm_addr(r->attr.listen[i], &addr);
		if (rc == 0)
			rc = bb_listener_create(r->cm, (struct sockaddr *)&addr, &r->listener[i]);
		if (rc != 0)
			say("cannot listen at %s: %s", r->attr.listen[i], strerror(-rc));
	}
	return rc;
}

static void
unlisten_all(struct nvmf_rdma *r)
{
	uint32_t i;

	for (i = 0; i < NVMF_LISTENERS; i++) {
		if (r->listener[i] != NULL)
			bb_listener_destroy(r->listener[i]);
		r->listener[i] = NULL;
	}
}

int
nvmf_rdma_open(struct nvmf_rdma *r, const struct nvmf_rdma_attr *attr, struct nvmf_target *t,
	       void *mem)
{
	struct bb_dev_attr dev;
	uint32_t i;
	int rc;

	memset(r, 0, sizeof(*r));
	r->attr = *attr;
	r->target = t;
	r->mem = mem;
	r->depth = depth_of(&t->attr);
	r->stride = stride_of(&t->attr);
	r->slice = slice_of(&t->attr);
	if (bb_dev_query(attr->dev, &dev) == 0 && dev.software)
		r->push_max = PUSH_MAX;
	r->tick = rte_get_tsc_cycles();
	t->now = r->tick / (rte_get_tsc_hz() / 1000);
	r->conn = calloc(attr->conns, sizeof(*r->conn));
	if (r->conn == NULL || nvmf_rdma_rings(r) != 0) {
		free(r->conn);
		return -ENOMEM;
	}
	for (i = 0; i < attr->conns; i++) {
		struct nvmf_conn *c = &r->conn[i];

		c->rdma = r;
		c->mem = r->mem + i * r->slice;
		c->capsules = c->mem + (size_t)r->depth * t->attr.max_io + CAPSULE_AT;
	}
	/* The zeros follow the memory of the connections. */
	t->zeros = memset(r->mem + r->slice * attr->conns, 0, t->attr.max_io);
	rc = create_queues(r);
	if (rc == 0)
		rc = attach(r);
	if (rc != 0) {
		say("%s: cannot create the queues: %s; the lines above say why",
		    bb_dev_name(attr->dev), strerror(-rc));
		nvmf_rdma_close(r);
		return rc;
	}
	rc = listen_all(r);
	if (rc != 0)
		nvmf_rdma_close(r);
	return rc;
}

void
nvmf_rdma_end(struct nvmf_rdma *r)
{
	uint32_t i;

	unlisten_all(r);
	for (i = 0; i < r->attr.conns; i++) {
		struct nvmf_conn *c = &r->conn[i];

		if (c->conn == NULL)
			continue;
		(void)bb_conn_disconnect(c->conn, NULL, 0);
		nvmf_rdma_end_conn(c);
	}
}

bool
nvmf_rdma_idle(struct nvmf_rdma *r)
{
	uint32_t i;

	for (i = 0; i < r->attr.conns; i++)
		if (r->conn[i].queue != NULL || r->conn[i].detaching)
			return false;
	/*
	 * A queue that stands for a worker's queue exists until the worker's last message was read.
	 */
	return !nvmf_rdma_has_stub(r);
}

static void
destroy_cq(struct nvmf_rdma *r, struct bb_cq *cq)
{
	if (cq == NULL)
		return;
	if (r->loop != NULL)
		(void)bb_loop_detach_cq(r->loop, cq);
	bb_cq_destroy(cq);
}

void
nvmf_rdma_close(struct nvmf_rdma *r)
{
	if (r->looped)
		(void)bb_loop_detach_poller(r->loop, nvmf_rdma_turn, r);
	unlisten_all(r);
	if (r->cm != NULL) {
		(void)bb_cm_detach(r->cm);
		bb_cm_destroy(r->cm);
	}
	destroy_cq(r, r->recv_cq);
	destroy_cq(r, r->send_cq);
	if (r->channel != NULL)
		bb_channel_destroy(r->channel);
	if (r->loop != NULL)
		bb_loop_destroy(r->loop);
	if (r->mr != NULL)
		bb_mr_dereg(r->mr);
	if (r->pd != NULL)
		bb_pd_free(r->pd);
	free(r->conn);
	free(r->to_worker.slot);
	free(r->to_first.slot);
}
