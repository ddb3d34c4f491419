/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Several lcores: messages between workers and the first lcore, which has the controllers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_pause.h>

#include "nvmf_rdma.h"

/*
 * Kinds of messages. A message is the address of a connection; its two lowest bits hold the kind.
 */
enum {
	MSG_ATTACH,       /* to the first lcore: decide on Connect */
	MSG_DETACH,       /* to the first lcore: the queue has ended */
	MSG_LINGER,       /* to the first lcore: the queue is closed, but has requests */
	MSG_ATTACHED = 0, /* to the worker: the result of Connect */
	MSG_CLOSE,        /* to the worker: the controller has closed the queue */
	MSG_FREE,         /* to the worker: the answer to MSG_DETACH */
	MSG_KIND = 3,
};

/* ---- Rings of messages */

int
nvmf_rdma_rings(struct nvmf_rdma *r)
{
	uint32_t size = 4;

	if (r->attr.first == NULL)
		return 0;
	/* A ring has at most one message of each kind from each connection. */
	while (size < 4 * r->attr.conns)
		size *= 2;
	r->to_worker.slot = calloc(size, sizeof(uintptr_t));
	r->to_first.slot = calloc(size, sizeof(uintptr_t));
	r->to_worker.mask = r->to_first.mask = size - 1;
	if (r->to_worker.slot != NULL && r->to_first.slot != NULL)
		return 0;
	free(r->to_worker.slot);
	free(r->to_first.slot);
	return -ENOMEM;
}

static void
put(struct nvmf_ring *ring, struct nvmf_conn *c, uintptr_t kind)
{
	ring->slot[ring->tail & ring->mask] = (uintptr_t)c | kind;
	__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
}

/* Returns the connection of the next message, or NULL. */
static struct nvmf_conn *
get(struct nvmf_ring *ring, uintptr_t *kind)
{
	uintptr_t word;

	if (ring->head == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE))
		return NULL;
	word = ring->slot[ring->head++ & ring->mask];
	*kind = word & MSG_KIND;
	return (struct nvmf_conn *)(word & ~(uintptr_t)MSG_KIND);
}

/* ---- Functions for the thread of a worker */

void
nvmf_rdma_attach(struct nvmf_queue *q, struct nvmf_req *r)
{
	struct nvmf_conn *c = q->user;

	/* A second Connect came before the answer to the first one. */
	if (c->attach_sent) {
		nvmf_attached(r, SC_COMMAND_SEQUENCE | SC_DNR, 0);
		return;
	}
	memcpy(c->data, r->data, sizeof(c->data));
	c->attaching = r;
	c->attach_sent = true;
	put(&c->rdma->to_first, c, MSG_ATTACH);
}

void
nvmf_rdma_detach(struct nvmf_conn *c)
{
	c->attaching = NULL;
	if (!c->attach_sent)
		return;
	c->attach_sent = false;
	c->detaching = true;
	put(&c->rdma->to_first, c, MSG_DETACH);
}

void
nvmf_rdma_linger(struct nvmf_conn *c)
{
	if (c->attach_sent)
		put(&c->rdma->to_first, c, MSG_LINGER);
}

static void
worker_message(struct nvmf_conn *c, uintptr_t kind, void (*end)(struct nvmf_conn *c))
{
	struct nvmf_req *r = c->attaching;

	if (kind == MSG_FREE) {
		c->detaching = false;
	} else if (kind == MSG_ATTACHED && r != NULL) {
		c->attaching = NULL;
		/* After a refusal the host may try again. */
		c->attach_sent = c->status == SC_OK;
		nvmf_attached(r, c->status, c->result);
	} else if (kind == MSG_CLOSE && c->queue != NULL) {
		/* Do not wait for the host: it gets no new controller before MSG_DETACH. */
		end(c);
	}
}

/* ---- Functions for the thread of the first lcore */

/*
 * Returns the number of connections of a worker, including connection requests that were moved to
 * it and that it has not handled yet.
 */
static uint32_t
load_of(const struct nvmf_rdma *worker)
{
	uint32_t handled = __atomic_load_n(&worker->handled, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&worker->used, __ATOMIC_RELAXED) + worker->moved - handled;
}

bool
nvmf_rdma_delegate(struct nvmf_rdma *first, struct bb_conn *conn)
{
	struct nvmf_rdma *to = NULL, *worker;
	uint32_t i, load, least = UINT32_MAX;

	for (i = 0; i < first->workers; i++) {
		worker = first->worker[i];
		load = load_of(worker);
		if (load > least)
			continue;
		least = load;
		to = worker;
	}
	if (to == NULL || (first->used < least && first->used < first->attr.conns))
		return false;
	/*
	 * If all lcores are full, move the request: the worker may disconnect a host that has sent
	 * no Connect command.
	 */
	if (least >= to->attr.conns && first->used < first->attr.conns)
		return false;
	/* Some transports of the CM cannot move a request. Then the first lcore serves all hosts.
	 */
	if (bb_conn_migrate(conn, to->cm) != 0)
		return false;
	to->moved++;
	return true;
}

void
nvmf_rdma_close_stub(struct nvmf_conn *c, bool by_host)
{
	if (c->close_sent)
		return;
	c->close_sent = true;
	c->closed_by_host = by_host;
	put(&c->rdma->to_worker, c, MSG_CLOSE);
}

static void
drop_stub(struct nvmf_conn *c)
{
	if (c->stub == NULL)
		return;
	nvmf_queue_close(c->stub);
	nvmf_queue_destroy(c->stub);
	c->stub = NULL;
}

bool
nvmf_rdma_has_stub(const struct nvmf_rdma *first)
{
	uint32_t i, j;

	for (i = 0; i < first->workers; i++)
		for (j = 0; j < first->worker[i]->attr.conns; j++)
			if (first->worker[i]->conn[j].stub != NULL)
				return true;
	return false;
}

static void
attach(struct nvmf_rdma *first, struct nvmf_conn *c)
{
	c->close_sent = false;
	c->result = 0;
	c->status = SC_CONNECT_BUSY;
	if (nvmf_stub_create(first->target, c->qid, c, &c->stub) == 0) {
		c->status = nvmf_attach(c->stub, c->data, &c->result);
		if (c->status != SC_OK)
			drop_stub(c);
	}
	put(&c->rdma->to_worker, c, MSG_ATTACHED);
}

static void
first_message(struct nvmf_rdma *first, struct nvmf_conn *c, uintptr_t kind)
{
	if (kind == MSG_ATTACH) {
		attach(first, c);
	} else if (kind == MSG_LINGER) {
		if (c->stub != NULL)
			nvmf_queue_close(c->stub);
	} else {
		drop_stub(c);
		put(&c->rdma->to_worker, c, MSG_FREE);
	}
}

void
nvmf_rdma_activity(struct nvmf_rdma *first)
{
	uint32_t i, j;

	for (i = 0; i < first->workers; i++) {
		for (j = 0; j < first->worker[i]->attr.conns; j++) {
			struct nvmf_conn *c = &first->worker[i]->conn[j];
			uint64_t active = __atomic_load_n(&c->active, __ATOMIC_RELAXED);

			if (c->stub == NULL || active == c->seen)
				continue;
			c->seen = active;
			nvmf_queue_alive(c->stub);
		}
	}
}

unsigned int
nvmf_rdma_messages(struct nvmf_rdma *r, void (*end)(struct nvmf_conn *c))
{
	const struct nvmf_call *call;
	unsigned int n = 0;
	struct nvmf_conn *c;
	uintptr_t kind;
	uint32_t i;

	for (i = 0; i < r->workers; i++)
		for (; (c = get(&r->worker[i]->to_first, &kind)) != NULL; n++)
			first_message(r, c, kind);
	if (r->attr.first == NULL)
		return n;
	for (; (c = get(&r->to_worker, &kind)) != NULL; n++)
		worker_message(c, kind, end);
	call = __atomic_load_n(&r->call, __ATOMIC_ACQUIRE);
	if (call != NULL) {
		call->fn(r, call->arg);
		__atomic_store_n(&r->call, NULL, __ATOMIC_RELEASE);
	}
	return n;
}

void
nvmf_rdma_run(struct nvmf_rdma *first, void (*fn)(struct nvmf_rdma *worker, void *arg), void *arg)
{
	const struct nvmf_call call = {fn, arg};
	uint32_t i;

	for (i = 0; i < first->workers; i++) {
		__atomic_store_n(&first->worker[i]->call, &call, __ATOMIC_RELEASE);
		while (__atomic_load_n(&first->worker[i]->call, __ATOMIC_ACQUIRE) != NULL)
			rte_pause();
	}
}
