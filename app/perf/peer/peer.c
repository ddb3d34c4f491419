/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Carries the handshake messages over TCP or, with --rdma-cm, over a connection of rdma_cm. */
#include "perf.h"

int
peer_open(struct perf *p)
{
	return p->o.rdma_cm ? cm_open(p) : tcp_open(p);
}

int
peer_write(struct perf *p, const void *buf, size_t len)
{
	return p->cm != NULL ? cm_write(p, buf, len) : tcp_write(p, buf, len);
}

int
peer_read(struct perf *p, void *buf, size_t len, const char *what)
{
	return p->cm != NULL ? cm_read(p, buf, len, what) : tcp_read(p, buf, len, what);
}

bool
peer_gone(struct perf *p)
{
	return p->cm != NULL ? cm_peer_gone(p) : tcp_peer_gone(p);
}

void
peer_finish(struct perf *p)
{
	if (p->cm != NULL)
		cm_finish(p);
	else
		tcp_finish(p);
}
