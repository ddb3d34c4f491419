/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The second process: executes commands until the first process closes the socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "baseline_net.h"
#include "baseline_proc.h"
#include "link.h"
#include "ring.h"

#define NETS 2

static struct baseline_net nets[NETS];
static struct soft soft;
static struct bb_qp_addr soft_own;
static bool soft_is_open;

static int
net_order(struct remote_msg *m)
{
	struct baseline_net *net = &nets[m->net % NETS];

	if (m->op == REMOTE_NET_OPEN)
		return net->open ? -EBUSY : baseline_net_open(net, m->text);
	if (!net->open)
		return -ENODEV;
	switch (m->op) {
	case REMOTE_NET_CLOSE:
		baseline_net_close(net);
		return 0;
	case REMOTE_NET_ECHO:
		return baseline_net_echo(net, m->n, (uint32_t)m->size);
	case REMOTE_NET_SINK:
		return baseline_net_sink(net, m->n, (uint32_t)m->size, m->window);
	default:
		return -ENOTSUP;
	}
}

static int
soft_order_open(struct remote_msg *m)
{
	int rc;

	if (soft_is_open)
		return -EBUSY;
	soft_inline = (uint32_t)m->value;
	rc = soft_open_one(&soft, m->text, (uint32_t)m->n, m->size);
	if (rc == 0)
		rc = soft_addr(&soft, soft.qps[0], &soft_own);
	if (rc != 0) {
		soft_close(&soft);
		return rc;
	}
	m->addr = soft_own;
	m->raddr = (uintptr_t)soft.to;
	m->rkey = soft.dst->rkey;
	soft_is_open = true;
	return 0;
}

static int
soft_order(struct remote_msg *m)
{
	int rc;

	if (m->op == REMOTE_SOFT_OPEN)
		return soft_order_open(m);
	if (!soft_is_open)
		return -ENODEV;
	switch (m->op) {
	case REMOTE_SOFT_CONNECT:
		soft.raddr = m->raddr;
		soft.rkey = m->rkey;
		rc = soft_wait_link(&soft);
		return rc != 0 ? rc : soft_connect(&soft, soft.qps[0], &soft_own, &m->addr);
	case REMOTE_SOFT_ECHO:
		return link_echo_peer(&soft, m->n);
	case REMOTE_SOFT_RUN:
		return link_run_peer(&soft, &m->n);
	case REMOTE_SOFT_CHECK:
		return m->size <= soft.bytes && link_check(soft.to, m->size, m->value) ? 0
										       : -EBADMSG;
	case REMOTE_RDMA_RING_OPEN:
		return ring_open_peer(&soft);
	case REMOTE_RDMA_RING_ECHO:
		return ring_echo_peer(&soft, m->n);
	case REMOTE_RDMA_RING_SINK:
		return ring_sink_peer(&soft, m->n, (uint32_t)m->size);
	case REMOTE_SOFT_CLOSE:
		soft_close(&soft);
		soft_is_open = false;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int
order(struct remote_msg *m)
{
	m->text[sizeof(m->text) - 1] = '\0';
	switch (m->op) {
	case REMOTE_HELLO:
		return eal_start();
	case REMOTE_VDEV:
		return vdev_make(m->text);
	case REMOTE_MAPPED_ECHO:
		return baseline_mapped_echo(m->n, (uint32_t)m->size);
	case REMOTE_RTE_RING_ECHO:
		return baseline_ring_echo_peer(m->n);
	case REMOTE_RTE_RING_SINK:
		return baseline_ring_sink_peer(m->n, (uint32_t)m->size);
	case REMOTE_TCP_ECHO:
	case REMOTE_TCP_SINK:
		return baseline_tcp_peer(m);
	case REMOTE_NET_OPEN:
	case REMOTE_NET_CLOSE:
	case REMOTE_NET_ECHO:
	case REMOTE_NET_SINK:
		return net_order(m);
	default:
		return soft_order(m);
	}
}

static void
close_all(void)
{
	unsigned int i;

	if (soft_is_open)
		soft_close(&soft);
	for (i = 0; i < NETS; i++)
		if (nets[i].open)
			baseline_net_close(&nets[i]);
}

int
serve(const char *fds)
{
	struct remote_msg m;
	int sock, mem;

	if (sscanf(fds, "%d,%d", &sock, &mem) != 2) {
		fprintf(stderr, "bench: --serve is internal: bench starts its second process "
				"with this option\n");
		return 2;
	}
	remote_shared =
		mmap(NULL, sizeof(*remote_shared), PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	if (remote_shared == MAP_FAILED) {
		fprintf(stderr, "bench: no shared memory: %s\n", strerror(errno));
		return 1;
	}
	while (recv(sock, &m, sizeof(m), 0) == (ssize_t)sizeof(m)) {
		m.rc = order(&m);
		if (send(sock, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m))
			break;
	}
	close_all();
	return 0;
}
