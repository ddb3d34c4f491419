/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two rdma_cm nodes, hosts 10.0.0.1 and 10.0.0.2, with a network between them that delivers only on
 * request. The programs' memory is that of the test, or a part of it; other addresses fault.
 */
#ifndef UCMA_PAIR_H
#define UCMA_PAIR_H

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "bb_dev.h"
#include "ucma.h"

#define UP_FILES 6u /* of a host; the number of a descriptor is that of its file */
#ifndef UP_MADS
#define UP_MADS 1024u
#endif
#define UP_SEC UINT64_C(1000000000)

struct up;

struct up_file {
	struct ucma_file *f;
	bool readable;
};

struct up_host {
	struct up *up;
	struct ucma *u;
	uint8_t gid[16];
	struct up_file files[UP_FILES];
	int reach;        /* result of ucma_ops.reach() */
	uint32_t nreach;  /* calls of ucma_ops.reach() */
	uint64_t opening; /* of the peer, as ucma_ops.reach() reports it */
	bool shared;      /* several processes have the peer's GID: only a QPN identifies one */
	int take;         /* result of ucma_ops.port_take() */
	uint32_t ports;   /* ports that the node has taken */
	/* arguments of the last call of ucma_ops.port_take(), and the number of calls */
	uint32_t service_id, addresses, ntake;
	bool any;
};

struct up_mad {
	struct bb_ibcm_net net;
	uint8_t mad[BB_IBCM_MAD];
};

struct up {
	struct up_host host[2];
	struct up_mad mads[UP_MADS];
	uint32_t nmads, next;
	uint64_t now;
	const uint8_t *mem; /* memory of the programs; NULL: all but the first 4096 bytes */
	size_t mem_len;
};

static void
up_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	struct up *up = ((struct up_host *)ctx)->up;

	if (up->nmads == UP_MADS)
		return;
	up->mads[up->nmads].net = *net;
	memcpy(up->mads[up->nmads++].mad, mad, BB_IBCM_MAD);
}

/* Entry 0 is the address as RoCE v1, entry 1 as RoCE v2, entry 2 an IPv6 address. */
static int
up_gid(void *ctx, uint32_t index, struct bb_gid *gid)
{
	const struct up_host *h = ctx;

	if (index > 2)
		return -ENOENT;
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, h->gid, 16);
	gid->type = index == 0 ? BB_GID_ROCE_V1 : BB_GID_ROCE_V2;
	if (index == 2) {
		memset(gid->raw, 0, 12);
		gid->raw[0] = 0xfd;
		gid->raw[12] = 0;
	}
	return 0;
}

static int
up_reach(void *ctx, uint32_t sgid_index, const uint8_t dgid[16], uint32_t qpn, uint64_t *opening)
{
	struct up_host *h = ctx;

	(void)sgid_index;
	(void)dgid;
	h->nreach++;
	if (h->reach == 0)
		*opening = h->shared && qpn == 0 ? 0 : h->opening;
	return h->reach;
}

static void
up_readable(void *ctx, void *file_arg, bool readable)
{
	(void)ctx;
	((struct up_file *)file_arg)->readable = readable;
}

static inline bool
up_faults(const struct up *up, uint64_t addr, size_t len)
{
	const uint64_t off = addr - (uintptr_t)up->mem;

	return up->mem == NULL ? addr < 4096 : len > up->mem_len || off > up->mem_len - len;
}

static int
up_copy_in(void *ctx, void *to, uint64_t from, size_t len)
{
	if (up_faults(((struct up_host *)ctx)->up, from, len))
		return -EFAULT;
	memcpy(to, (const void *)(uintptr_t)from, len);
	return 0;
}

static int
up_copy_out(void *ctx, uint64_t to, const void *from, size_t len)
{
	if (up_faults(((struct up_host *)ctx)->up, to, len))
		return -EFAULT;
	memcpy((void *)(uintptr_t)to, from, len);
	return 0;
}

/* Descriptor UP_FILES is open, but not a file of the node. */
static int
up_find(void *ctx, uint32_t fd, struct ucma_file **f)
{
	*f = fd < UP_FILES ? ((struct up_host *)ctx)->files[fd].f : NULL;
	return *f != NULL ? 0 : fd == UP_FILES ? -EINVAL : -ENOENT;
}

static int
up_port_take(void *ctx, const uint8_t (*gid)[16], uint32_t n, bool any, uint32_t service_id,
	     void **port)
{
	struct up_host *h = ctx;

	(void)gid;
	h->service_id = service_id;
	h->addresses = n;
	h->any = any;
	h->ntake++;
	*port = h->take == 0 ? h : NULL;
	h->ports += h->take == 0;
	return h->take;
}

static void
up_port_give(void *ctx, void *port)
{
	struct up_host *h = ctx;

	if (port != h || h->ports == 0)
		abort();
	h->ports--;
}

/* @id_prefix: of the first host. The second one has the next value. 0: both have none. */
static inline struct up *
up_new_prefix(uint32_t max_ids, uint8_t id_prefix)
{
	static const struct ucma_ops ops = {
		.tx = up_tx,
		.gid = up_gid,
		.reach = up_reach,
		.readable = up_readable,
		.copy_in = up_copy_in,
		.copy_out = up_copy_out,
		.file = up_find,
		.port_take = up_port_take,
		.port_give = up_port_give,
	};
	struct up *up = calloc(1, sizeof(*up));

	if (up == NULL)
		abort();
	up->now = 1000;
	for (unsigned int i = 0; i < 2; i++) {
		struct up_host *h = &up->host[i];
		const struct ucma_attr attr = {
			.ops = &ops,
			.ctx = h,
			.node_guid = UINT64_C(0x0123456789abcd00) + i,
			.gids = 4,
			.log_qpns = 24,
			.mtu = 3,
			.ack_delay = 16,
			.seed = 5 + i,
			.id_prefix = id_prefix != 0 ? (uint8_t)(id_prefix + i) : 0,
			.max_ids = max_ids,
		};

		h->up = up;
		h->gid[10] = h->gid[11] = 0xff;
		h->gid[12] = 10;
		h->gid[15] = (uint8_t)(1 + i);
		if (ucma_create(&attr, &h->u) != 0)
			abort();
		for (unsigned int j = 0; j < UP_FILES - 1; j++)
			if (ucma_open(h->u, &h->files[j], &h->files[j].f) != 0)
				abort();
	}
	return up;
}

static inline struct up *
up_new(uint32_t max_ids)
{
	return up_new_prefix(max_ids, 0);
}

static inline void
up_close(struct up_host *h, unsigned int file)
{
	if (h->files[file].f != NULL)
		ucma_close(h->files[file].f, h->up->now);
	h->files[file].f = NULL;
}

static inline void
up_free(struct up *up)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int j = 0; j < UP_FILES; j++)
			up_close(&up->host[i], j);
		ucma_destroy(up->host[i].u);
	}
	free(up);
}

static inline void
up_deliver(struct up *up, const struct up_mad *m)
{
	const struct bb_ibcm_gmp gmp = {.net = m->net, .sqpn = BB_IBCM_QPN, .qkey = BB_IBCM_QKEY};

	for (unsigned int i = 0; i < 2; i++)
		if (m->net.dst[15] == 1 + i)
			ucma_rx(up->host[i].u, &gmp, m->mad, BB_IBCM_MAD, up->now);
}

/* Delivers all MADs that were not delivered or lost yet. */
static inline void
up_run(struct up *up)
{
	while (up->next < up->nmads)
		up_deliver(up, &up->mads[up->next++]);
	up->next = up->nmads = 0;
}

/* Moves the time on, with all timeouts on the way. */
static inline void
up_time(struct up *up, uint64_t ns)
{
	const uint64_t end = up->now + ns;

	for (;;) {
		const uint64_t a = ucma_deadline(up->host[0].u), b = ucma_deadline(up->host[1].u);
		const uint64_t next = a < b ? a : b;

		if (next > end)
			break;
		if (next > up->now)
			up->now = next;
		ucma_tick(up->host[0].u, up->now);
		ucma_tick(up->host[1].u, up->now);
	}
	up->now = end;
}

/* Writes a command to a file of a host. */
static inline int
up_command(struct up_host *h, unsigned int file, uint32_t cmd, const void *body, size_t len,
	   size_t out)
{
	uint8_t buf[1024] = {0};
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out};

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), body, len);
	return ucma_write(h->files[file].f, buf, sizeof(hdr) + len, h->up->now);
}

#endif
