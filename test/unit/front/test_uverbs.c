/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device node by its calls alone, without libibverbs: malformed commands, separate openings,
 * and the end of descriptors.
 */
#include "uverbs_program.h"

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

TEST(test_reregistration_for_a_pd_that_does_not_exist_fails)
{
	static _Alignas(4096) uint8_t mem[4096];
	struct ib_uverbs_rereg_mr_resp r;
	struct ib_uverbs_rereg_mr q = {.flags = IBV_REREG_MR_CHANGE_PD};
	static struct node n;
	uint32_t pd;

	node_open(&n, "");
	pd = alloc_pd(&n);
	assert_int_equal(reg_mr(&n, pd, mem, sizeof(mem)), 0);
	q.mr_handle = pd + 1;
	q.pd_handle = UINT32_MAX;
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_REREG_MR, &q, sizeof(q), &r, sizeof(r)),
			 EINVAL);
	/* The handle of an object of another kind. */
	q.pd_handle = q.mr_handle;
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_REREG_MR, &q, sizeof(q), &r, sizeof(r)),
			 EINVAL);
	q.pd_handle = pd;
	assert_int_equal(command(&n, IB_USER_VERBS_CMD_REREG_MR, &q, sizeof(q), &r, sizeof(r)), 0);
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

static int
create_channel(struct node *n)
{
	struct ib_uverbs_create_comp_channel q = {0};
	struct ib_uverbs_create_comp_channel_resp r;

	return command(n, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &q, sizeof(q), &r, sizeof(r));
}

/* The table of the caller's descriptors is full: the command fails and leaves no descriptor. */
TEST(test_channel_whose_descriptor_the_caller_rejects_is_not_made)
{
	static struct node n;
	int fd, next;

	node_open(&n, "");
	get_context(&n);
	fd = dup(n.fd);
	close(fd);
	n.rejects = -EMFILE;
	assert_int_equal(create_channel(&n), EMFILE);
	next = dup(n.fd);
	close(next);
	assert_int_equal(next, fd);
	n.rejects = 0;
	assert_int_equal(create_channel(&n), 0);
	node_close(&n);
}

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
	struct ib_uverbs_async_event_desc event;
	uint32_t last = 0;
	struct pollfd p = {.events = POLLIN};
	static struct node n;
	int i;

	node_open(&n, "wire=1,flap=20:20");
	get_context(&n);
	p.fd = n.events_fd;
	for (i = 0; i < 4; i++) {
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(uverbs_events_read(n.async, &event, sizeof(event)), sizeof(event));
		assert_true(event.event_type == IBV_EVENT_PORT_ERR ||
			    event.event_type == IBV_EVENT_PORT_ACTIVE);
		/* The port may have gone down before the context existed. */
		assert_int_not_equal(event.event_type, last);
		last = event.event_type;
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
	pthread_t thread[2];
	int i;
	void *ret;
	static struct node n;

	node_open(&n, "");
	for (i = 0; i < 2; i++) {
		assert_int_equal(create_channel(&n), 0);
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
