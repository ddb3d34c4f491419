/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The null provider's events: pointers through pipes. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs_null_priv.h"

int null_async_pipe[2];

struct channel {
	struct ibv_comp_channel ch;
	int in;
};

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct channel *c;
	int fd[2], err;

	if (pipe(fd) != 0)
		return NULL;
	err = null_turn(__func__);
	c = err == 0 ? null_object(sizeof(*c)) : null_fail(err);
	if (c == NULL) {
		close(fd[0]);
		close(fd[1]);
		return NULL;
	}
	c->ch.context = ctx;
	c->ch.fd = fd[0];
	c->in = fd[1];
	return &c->ch;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	struct channel *c = outer_of(ch, struct channel, ch);
	int err;

	/*
	 * After removal the kernel is not called; libibverbs still counts CQs that could not be
	 * destroyed.
	 */
	if (null_dev.gone) {
		close(c->in);
		(void)null_destroy(__func__, c);
		return EBUSY;
	}
	err = null_turn(__func__);
	if (err != 0)
		return err;
	close(c->ch.fd);
	close(c->in);
	null_gone(c);
	return 0;
}

void
null_notify(struct null_cq *c)
{
	struct ibv_cq *cq = &c->cq;

	if (!c->armed || cq->channel == NULL)
		return;
	c->armed = false;
	if (write(outer_of(cq->channel, struct channel, ch)->in, &cq, sizeof(cq)) < 0)
		abort();
}

static bool
no_event(void)
{
	errno = null_dev.event_errno;
	return errno != 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **user)
{
	if (no_event() || read(ch->fd, cq, sizeof(*cq)) != sizeof(*cq))
		return -1;
	*user = (*cq)->cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

void
null_async(enum ibv_event_type type, void *element)
{
	struct ibv_async_event e = {.event_type = type};

	e.element.qp = element;
	if (write(null_async_pipe[1], &e, sizeof(e)) < 0)
		abort();
}

int
ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *e)
{
	return !no_event() && read(ctx->async_fd, e, sizeof(*e)) == sizeof(*e) ? 0 : -1;
}

void
ibv_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}
