/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A program that calls the device node without libibverbs. */
#ifndef UVERBS_PROGRAM_H
#define UVERBS_PROGRAM_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rte_log.h>

#include "bb_test.h"
#include "uverbs.h"

#define EX(c_) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (c_))

#define MAX_EVENTS 2048

/* An opening of the node, and its descriptors of events, the last one first. */
struct node {
	struct uverbs_file *file;
	int fd, events_fd;
	struct uverbs_events *events;
	struct uverbs_events *async;
	struct uverbs_events *all[MAX_EVENTS];
	int fds[MAX_EVENTS];
	unsigned int n;
	int rejects; /* a negative errno that install() returns, 0 if it accepts descriptors */
};

static inline int
install(void *arg, int fd, struct uverbs_events *events)
{
	struct node *n = arg;

	if (n->rejects != 0)
		return n->rejects;
	n->events_fd = fd;
	n->events = events;
	assert_true(n->n < MAX_EVENTS);
	n->fds[n->n] = fd;
	n->all[n->n++] = events;
	return 0;
}

static inline void
node_open(struct node *n, const char *args)
{
	const struct uverbs_attr attr = {
		.dev = "soft5", .args = args, .install = install, .arg = n};

	memset(n, 0, sizeof(*n));
	assert_int_equal(uverbs_open(&attr, &n->file, &n->fd), 0);
}

static inline void
events_close(struct node *n, unsigned int i)
{
	uverbs_events_close(n->all[i]);
	close(n->fds[i]);
	n->all[i] = NULL;
}

/* Closes the descriptors of events after the node, as libibverbs does not. */
static inline void
events_end(struct node *n)
{
	unsigned int i;

	for (i = 0; i < n->n; i++)
		if (n->all[i] != NULL)
			events_close(n, i);
}

static inline void
node_close_only(struct node *n)
{
	uverbs_close(n->file);
	close(n->fd);
}

static inline void
node_close(struct node *n)
{
	node_close_only(n);
	events_end(n);
}

/* Writes a command that is not extended. @out may be NULL. Returns 0 or an errno. */
static inline int
command(struct node *n, uint32_t number, const void *body, size_t len, void *out, size_t out_len)
{
	uint8_t buf[512] = {0};
	struct ib_uverbs_cmd_hdr hdr = {.command = number};
	const uint64_t to = (uintptr_t)out;

	len = (len + 3) & ~(size_t)3;
	hdr.in_words = (uint16_t)((sizeof(hdr) + len) / 4);
	hdr.out_words = (uint16_t)(out_len / 4);
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), body, len);
	/* The address of the response comes first. */
	if (out != NULL)
		memcpy(buf + sizeof(hdr), &to, sizeof(to));
	return uverbs_write(n->file, buf, sizeof(hdr) + len);
}

static inline void
get_context(struct node *n)
{
	struct ib_uverbs_get_context q = {0};
	union {
		struct ib_uverbs_get_context_resp core;
		uint8_t all[256];
	} r;

	assert_int_equal(command(n, IB_USER_VERBS_CMD_GET_CONTEXT, &q, sizeof(q), &r, sizeof(r)),
			 0);
	assert_int_equal(r.core.async_fd, n->events_fd);
	n->async = n->events;
}

static inline uint32_t
alloc_pd(struct node *n)
{
	struct ib_uverbs_alloc_pd q = {0};
	union {
		struct ib_uverbs_alloc_pd_resp core;
		uint8_t all[16];
	} r;

	assert_int_equal(command(n, IB_USER_VERBS_CMD_ALLOC_PD, &q, sizeof(q), &r, sizeof(r)), 0);
	return r.core.pd_handle;
}

static inline int
dealloc_pd(struct node *n, uint32_t handle)
{
	struct ib_uverbs_dealloc_pd q = {.pd_handle = handle};

	return command(n, IB_USER_VERBS_CMD_DEALLOC_PD, &q, sizeof(q), NULL, 0);
}

static inline int
reg_mr(struct node *n, uint32_t pd, void *at, size_t len)
{
	struct ib_uverbs_reg_mr_resp r;
	struct ib_uverbs_reg_mr q = {.start = (uintptr_t)at,
				     .length = len,
				     .hca_va = (uintptr_t)at,
				     .pd_handle = pd,
				     .access_flags = IBV_ACCESS_LOCAL_WRITE};

	return command(n, IB_USER_VERBS_CMD_REG_MR, &q, sizeof(q), &r, sizeof(r));
}

/* Room for an ioctl() with up to 5 attributes, whose header ends with a flexible array. */
union method {
	struct ib_uverbs_ioctl_hdr h;
	uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + 5 * sizeof(struct ib_uverbs_attr)];
};

static inline struct ib_uverbs_ioctl_hdr *
method(union method *m, uint16_t object, uint16_t number, unsigned int attrs)
{
	m->h.object_id = object;
	m->h.method_id = number;
	m->h.num_attrs = (uint16_t)attrs;
	m->h.length = (uint16_t)(sizeof(m->h) + attrs * sizeof(m->h.attrs[0]));
	return &m->h;
}

static inline int
free_uar(struct node *n, uint64_t handle)
{
	union method m = {.room = {0}};

	method(&m, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, 1);
	m.h.attrs[0] = (struct ib_uverbs_attr){.attr_id = MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE,
					       .data = handle};
	return uverbs_ioctl(n->file, &m.h);
}

/* Makes a CQ of 4 entries that is armed through a UAR page. Returns its handle. */
static inline uint32_t
create_cq(struct node *n, uint64_t page)
{
	static _Alignas(4096) uint8_t mem[4096];
	const struct ib_uverbs_create_cq core = {.cqe = 3, .comp_channel = -1};
	const struct mlx5_ib_create_cq drv = {.buf_addr = (uintptr_t)mem,
					      .db_addr = (uintptr_t)mem + 2048,
					      .cqe_size = 64,
					      .flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
					      .uar_page_index = (uint16_t)page};
	uint8_t q[sizeof(core) + sizeof(drv)];
	union {
		struct ib_uverbs_create_cq_resp core;
		uint8_t all[16];
	} r;

	memcpy(q, &core, sizeof(core));
	memcpy(q + sizeof(core), &drv, sizeof(drv));
	assert_int_equal(command(n, IB_USER_VERBS_CMD_CREATE_CQ, q, sizeof(q), &r, sizeof(r)), 0);
	return r.core.cq_handle;
}

static inline int
destroy_cq(struct node *n, uint32_t handle)
{
	struct ib_uverbs_destroy_cq q = {.cq_handle = handle};
	struct ib_uverbs_destroy_cq_resp r;

	return command(n, IB_USER_VERBS_CMD_DESTROY_CQ, &q, sizeof(q), &r, sizeof(r));
}

/* Handle of the UAR that alloc_uar() made last. */
static uint64_t uar_handle;

/* Makes a UAR and returns the offset at which it is mapped. */
static inline uint64_t
alloc_uar(struct node *n, uint64_t *page)
{
	uint64_t offset = 0, len = 0;
	const struct ib_uverbs_attr attrs[5] = {
		{.attr_id = MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE},
		{.attr_id = MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE,
		 .len = 8,
		 .data = MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC},
		{.attr_id = MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET,
		 .len = 8,
		 .data = (uintptr_t)&offset},
		{.attr_id = MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH,
		 .len = 8,
		 .data = (uintptr_t)&len},
		{.attr_id = MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, .len = 4, .data = (uintptr_t)page}};
	union method m = {.room = {0}};

	method(&m, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, 5);
	memcpy(m.h.attrs, attrs, sizeof(attrs));
	*page = 0;
	assert_int_equal(uverbs_ioctl(n->file, &m.h), 0);
	assert_int_equal(len, 4096);
	uar_handle = m.h.attrs[0].data;
	return offset;
}

#endif
