/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device node by its calls alone, without libibverbs: malformed commands, separate openings,
 * and the end of descriptors.
 */
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
};

static void
install(void *arg, int fd, struct uverbs_events *events)
{
	struct node *n = arg;

	n->events_fd = fd;
	n->events = events;
	assert_true(n->n < MAX_EVENTS);
	n->fds[n->n] = fd;
	n->all[n->n++] = events;
}

static void
node_open(struct node *n, const char *args)
{
	const struct uverbs_attr attr = {
		.dev = "soft5", .args = args, .install = install, .arg = n};

	memset(n, 0, sizeof(*n));
	assert_int_equal(uverbs_open(&attr, &n->file, &n->fd), 0);
}

static void
events_close(struct node *n, unsigned int i)
{
	uverbs_events_close(n->all[i]);
	close(n->fds[i]);
	n->all[i] = NULL;
}

/* Closes the descriptors of events after the node, as libibverbs does not. */
static void
events_end(struct node *n)
{
	unsigned int i;

	for (i = 0; i < n->n; i++)
		if (n->all[i] != NULL)
			events_close(n, i);
}

static void
node_close_only(struct node *n)
{
	uverbs_close(n->file);
	close(n->fd);
}

static void
node_close(struct node *n)
{
	node_close_only(n);
	events_end(n);
}

/* Writes a command that is not extended. @out may be NULL. Returns 0 or an errno. */
static int
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

static void
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

static uint32_t
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

static int
dealloc_pd(struct node *n, uint32_t handle)
{
	struct ib_uverbs_dealloc_pd q = {.pd_handle = handle};

	return command(n, IB_USER_VERBS_CMD_DEALLOC_PD, &q, sizeof(q), NULL, 0);
}

static int
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

static struct ib_uverbs_ioctl_hdr *
method(union method *m, uint16_t object, uint16_t number, unsigned int attrs)
{
	m->h.object_id = object;
	m->h.method_id = number;
	m->h.num_attrs = (uint16_t)attrs;
	m->h.length = (uint16_t)(sizeof(m->h) + attrs * sizeof(m->h.attrs[0]));
	return &m->h;
}

static int
free_uar(struct node *n, uint64_t handle)
{
	union method m = {.room = {0}};

	method(&m, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, 1);
	m.h.attrs[0] = (struct ib_uverbs_attr){.attr_id = MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE,
					       .data = handle};
	return uverbs_ioctl(n->file, &m.h);
}

/* Makes a CQ of 4 entries that is armed through a UAR page. Returns its handle. */
static uint32_t
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

static int
destroy_cq(struct node *n, uint32_t handle)
{
	struct ib_uverbs_destroy_cq q = {.cq_handle = handle};
	struct ib_uverbs_destroy_cq_resp r;

	return command(n, IB_USER_VERBS_CMD_DESTROY_CQ, &q, sizeof(q), &r, sizeof(r));
}

/* Handle of the UAR that alloc_uar() made last. */
static uint64_t uar_handle;

/* Makes a UAR and returns the offset at which it is mapped. */
static uint64_t
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

/* ---- Malformed calls */

TEST(test_commands_of_wrong_length_fail)
{
	struct ib_uverbs_cmd_hdr hdr;
	uint8_t buf[256], out[1024];
	const uint64_t to = (uintptr_t)out;
	unsigned int number, ex;
	size_t len;
	static struct node n;

	node_open(&n, "");
	get_context(&n);
	for (ex = 0; ex <= 1; ex++) {
		for (number = 0; number < 64; number++) {
			for (len = 0; len < sizeof(buf); len++) {
				memset(buf, 0, sizeof(buf));
				hdr.command = ex != 0 ? EX(number) : number;
				/* The length in the header is of another command. */
				hdr.in_words = (uint16_t)(len / 4 + 1);
				hdr.out_words = 256;
				memcpy(buf, &hdr, len < sizeof(hdr) ? len : sizeof(hdr));
				memcpy(buf + sizeof(hdr), &to, sizeof(to));
				assert_int_not_equal(uverbs_write(n.file, buf, len), 0);
			}
		}
	}
	assert_int_equal(uverbs_write(n.file, NULL, 64), EINVAL);
	node_close(&n);
}

/* The header agrees with the length, but the command needs more, or has no handle that exists. */
TEST(test_commands_that_are_too_short_fail)
{
	uint8_t body[512] = {0}, out[1024];
	unsigned int number;
	size_t len;
	static struct node n;

	node_open(&n, "");
	get_context(&n);
	for (number = 0; number < 64; number++) {
		/* These succeed with zeros. */
		if (number == IB_USER_VERBS_CMD_QUERY_DEVICE ||
		    number == IB_USER_VERBS_CMD_ALLOC_PD ||
		    number == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
			continue;
		for (len = 8; len <= 128; len += 8) {
			assert_int_not_equal(command(&n, number, body, len, out, 8), 0);
			assert_int_not_equal(command(&n, number, body, len, out, sizeof(out)), 0);
			assert_int_not_equal(command(&n, number, body, len, NULL, sizeof(out)), 0);
		}
	}
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_ALLOC_PD, body, 8, out, 0), ENOSPC);
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_ALLOC_PD, body, 8, NULL, 64), EFAULT);
	node_close(&n);
}

TEST(test_ioctls_of_wrong_form_fail)
{
	static const uint16_t objects[] = {UVERBS_OBJECT_DEVICE,
					   UVERBS_OBJECT_DM,
					   UVERBS_OBJECT_MR,
					   MLX5_IB_OBJECT_DEVX,
					   MLX5_IB_OBJECT_DEVX_OBJ,
					   MLX5_IB_OBJECT_DEVX_UMEM,
					   MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
					   MLX5_IB_OBJECT_UAR};
	unsigned int o, k, a, len, id;
	union method m;
	static struct node n;

	node_open(&n, "");
	get_context(&n);
	assert_int_equal(uverbs_ioctl(n.file, NULL), EFAULT);
	memset(&m, 0, sizeof(m));
	method(&m, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 4);
	m.h.length--;
	assert_int_equal(uverbs_ioctl(n.file, &m.h), EINVAL);
	m.h.num_attrs = UINT16_MAX;
	m.h.length = UINT16_MAX;
	assert_int_equal(uverbs_ioctl(n.file, &m.h), EINVAL);
	method(&m, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 1);
	m.h.reserved1 = 1;
	assert_int_equal(uverbs_ioctl(n.file, &m.h), EPROTONOSUPPORT);
	/* Attributes that are missing, have no data, or are longer than their data. */
	for (o = 0; o < sizeof(objects) / sizeof(objects[0]); o++)
		for (k = 0; k < 16; k++)
			for (id = 0; id < 16; id++)
				for (len = 0; len <= 64; len += 4) {
					memset(&m, 0, sizeof(m));
					for (a = 0; a < 4; a++) {
						m.h.attrs[a].attr_id =
							(uint16_t)(id + a + (k & 1) * 0x1000);
						m.h.attrs[a].len = (uint16_t)len;
					}
					(void)uverbs_ioctl(
						n.file, method(&m, objects[o],
							       (uint16_t)(k / 2 + (k & 1) * 0x1000),
							       (id & 3) + 1));
				}
	assert_int_equal(uverbs_ioctl(n.file, method(&m, 0x7777, 1, 0)), EPROTONOSUPPORT);
	node_close(&n);
}

/* ---- Openings */

TEST(test_handles_belong_to_one_opening)
{
	static struct node a, b;
	uint32_t pd;

	node_open(&a, "");
	node_open(&b, "");
	pd = alloc_pd(&a);
	assert_int_equal(dealloc_pd(&b, pd), EINVAL);
	assert_int_equal(dealloc_pd(&a, 0), EINVAL);
	assert_int_equal(dealloc_pd(&a, UINT32_MAX), EINVAL);
	assert_int_equal(dealloc_pd(&a, pd), 0);
	assert_int_equal(dealloc_pd(&a, pd), EINVAL);
	node_close(&a);
	assert_int_not_equal(alloc_pd(&b), 0);
	node_close(&b);
}

TEST(test_many_handles_are_kept)
{
	static uint32_t pds[1000];
	static struct node n;
	unsigned int i;

	node_open(&n, "");
	for (i = 0; i < 1000; i++)
		pds[i] = alloc_pd(&n);
	for (i = 0; i < 1000; i++)
		assert_int_equal(dealloc_pd(&n, pds[i]), 0);
	node_close(&n);
}

/* Objects that refer to one another end with the descriptor, so that the device closes. */
TEST(test_close_destroys_all_objects)
{
	static uint8_t mem[8192];
	uint64_t page;
	uint32_t pd;
	static struct node n;

	node_open(&n, "dm=8192");
	pd = alloc_pd(&n);
	assert_int_equal(reg_mr(&n, pd, mem, sizeof(mem)), 0);
	assert_int_equal(dealloc_pd(&n, pd), EBUSY);
	(void)alloc_uar(&n, &page);
	node_close(&n);
	/* A device that is still open refuses other options. */
	node_open(&n, "dm=4096");
	node_close(&n);
}

/* libmlx5 frees the UAR of its CQs when a program closes a device with CQs. */
TEST(test_uar_that_a_cq_uses_is_freed_with_the_file)
{
	uint64_t page, other, handle;
	static struct node n;
	uint32_t cq;

	node_open(&n, "dm=8192");
	(void)alloc_uar(&n, &page);
	handle = uar_handle;
	cq = create_cq(&n, page);
	(void)alloc_uar(&n, &other);
	assert_int_not_equal(page, other);
	assert_int_equal(free_uar(&n, uar_handle), 0);
	assert_int_equal(free_uar(&n, uar_handle), EINVAL);
	assert_int_equal(free_uar(&n, handle), 0);
	assert_int_equal(free_uar(&n, handle), EINVAL);
	/* The CQ still has its page. */
	(void)alloc_uar(&n, &other);
	assert_int_not_equal(page, other);
	assert_int_equal(destroy_cq(&n, cq), 0);
	node_close(&n);
	/* The device is closed: one that is open refuses other options. */
	node_open(&n, "dm=4096");
	node_close(&n);
}

TEST(test_register_pages_are_mapped_by_the_descriptor)
{
	uint64_t page[2], at[2];
	uint8_t *map[2];
	static struct node n;
	int i;

	node_open(&n, "");
	for (i = 0; i < 2; i++) {
		at[i] = alloc_uar(&n, &page[i]);
		map[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, n.fd, (off_t)at[i]);
		assert_ptr_not_equal(map[i], MAP_FAILED);
		assert_int_equal(map[i][0x800], 0);
		map[i][0] = (uint8_t)(i + 1);
	}
	assert_int_not_equal(page[0], page[1]);
	assert_int_equal(map[0][0], 1);
	for (i = 0; i < 2; i++)
		munmap(map[i], 4096);
	node_close(&n);
}

/* ---- Events */

TEST(test_read_does_not_wait_with_nonblock)
{
	struct ib_uverbs_async_event_desc event;
	static struct node n;

	node_open(&n, "");
	get_context(&n);
	assert_int_equal(fcntl(n.events_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(uverbs_events_read(n.async, &event, sizeof(event)), -EAGAIN);
	assert_int_equal(uverbs_events_read(n.async, &event, 1), -EINVAL);
	/* A second context of an opening is an error, as of the kernel. */
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_GET_CONTEXT,
				 &(struct ib_uverbs_get_context){0},
				 sizeof(struct ib_uverbs_get_context), &(uint8_t[256]){0}, 256),
			 EINVAL);
	node_close(&n);
}

TEST(test_read_waits_for_port_events)
{
	const uint32_t up_or_down[] = {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE};
	struct ib_uverbs_async_event_desc event;
	struct pollfd p = {.events = POLLIN};
	static struct node n;
	int i;

	node_open(&n, "wire=1,flap=20:20");
	get_context(&n);
	p.fd = n.events_fd;
	for (i = 0; i < 4; i++) {
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(uverbs_events_read(n.async, &event, sizeof(event)), sizeof(event));
		assert_int_equal(event.event_type, up_or_down[i % 2]);
		assert_int_equal(event.element, 1);
	}
	node_close_only(&n);
	/* The descriptor of events outlives the node. */
	assert_int_equal(uverbs_events_read(n.async, &event, sizeof(event)), -EIO);
	events_end(&n);
}

static void *
reader(void *arg)
{
	struct uverbs_events *events = arg;
	struct ib_uverbs_comp_event_desc event;
	ssize_t ret = uverbs_events_read(events, &event, sizeof(event));

	uverbs_events_put(events);
	return (void *)(intptr_t)ret;
}

/* Reads that wait in other threads end with the node, and with their descriptor. */
TEST(test_close_ends_waiting_reads)
{
	struct ib_uverbs_create_comp_channel q = {0};
	struct ib_uverbs_create_comp_channel_resp r;
	pthread_t thread[2];
	int i;
	void *ret;
	static struct node n;

	node_open(&n, "");
	for (i = 0; i < 2; i++) {
		assert_int_equal(command(&n, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &q, sizeof(q),
					 &r, sizeof(r)),
				 0);
		assert_int_equal(r.fd, n.events_fd);
		uverbs_events_get(n.events);
		assert_int_equal(pthread_create(&thread[i], NULL, reader, n.events), 0);
	}
	usleep(20000); /* mostly enough for both to wait */
	events_close(&n, 0);
	pthread_join(thread[0], &ret);
	assert_int_equal((intptr_t)ret, -EIO);
	node_close_only(&n);
	pthread_join(thread[1], &ret);
	assert_int_equal((intptr_t)ret, -EIO);
	events_end(&n);
}

/* The device reports each refused call. */
static int
quiet(void)
{
	rte_log_set_global_level(RTE_LOG_CRIT);
	return 0;
}

TEST_MAIN(quiet())
