/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client of storage_target that lies, with a connection for each of its arguments. It prints
 * the outcome: "LIE: status N ..." for a completion, "LIE: over: ..." for the end of the
 * connection, "LIE: refused: ...".
 *
 *   storage_liar EAL_OPTIONS -- DEVICE ADDRESS:PORT LIE...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bluebell.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "blk_proto.h"

#define DEPTH   4u
#define BS      4096u
#define MEM     (64u * 1024)
#define CAPS    (32u * 1024) /* offset of received completions */
#define WAIT_MS 120000u

struct liar {
	struct bb_dev *dev;
	struct bb_ep *ep;
	struct bb_pd *other_pd; /* the PD of another client */
	struct bb_mr *mr, *other_mr;
	uint8_t *mem, *other_mem;
	struct bb_blk_shape shape;
};

struct lie {
	const char *name;
	struct blk_command cmd; /* the command; addr and rkey are filled in if 0 */
	bool damaged, other_key, closed_key, bad_digest;
	uint32_t bytes;   /* length of the SEND; 0: the correct one */
	uint32_t times;   /* number of copies sent at once */
	uint32_t answers; /* completions to wait for; 0: wait for the end of the connection */
};

static const struct lie lies[] = {
	{.name = "none", .cmd = {.op = BB_BLK_WRITE, .length = BS}, .answers = 1},
	{.name = "rkey", .cmd = {.op = BB_BLK_READ, .length = BS, .rkey = 0xdead00}},
	{.name = "rkey-write", .cmd = {.op = BB_BLK_WRITE, .length = BS, .rkey = 0xdead00}},
	{.name = "addr", .cmd = {.op = BB_BLK_READ, .length = BS, .addr = 0x1000}},
	{.name = "short-memory", .cmd = {.op = BB_BLK_READ, .length = 2 * MEM}},
	{.name = "other-key", .cmd = {.op = BB_BLK_READ, .length = BS}, .other_key = true},
	{.name = "other-key-write", .cmd = {.op = BB_BLK_WRITE, .length = BS}, .other_key = true},
	{.name = "closed-key", .cmd = {.op = BB_BLK_READ, .length = BS}, .closed_key = true},
	{.name = "length", .cmd = {.op = BB_BLK_READ, .length = 0xfffff000}, .answers = 1},
	{.name = "unaligned", .cmd = {.op = BB_BLK_WRITE, .length = BS - 1}, .answers = 1},
	{.name = "range",
	 .cmd = {.op = BB_BLK_WRITE, .length = BS, .offset = 0xfffffffffffff000},
	 .answers = 1},
	{.name = "digest",
	 .cmd = {.op = BB_BLK_WRITE, .length = BS},
	 .bad_digest = true,
	 .answers = 1},
	{.name = "id", .cmd = {.op = BB_BLK_READ, .length = BS, .id = DEPTH}},
	{.name = "twice", .cmd = {.op = BB_BLK_READ, .length = BS, .id = 1}, .times = 4},
	{.name = "flood", .cmd = {.op = BB_BLK_READ, .length = BS, .id = 1}, .times = 32},
	{.name = "damaged", .cmd = {.op = BB_BLK_READ, .length = BS}, .damaged = true},
	{.name = "operation", .cmd = {.op = 77, .length = BS}},
	{.name = "flags", .cmd = {.op = BB_BLK_READ, .length = BS, .flags = 0x8000}},
	{.name = "cut", .cmd = {.op = BB_BLK_READ, .length = BS}, .bytes = BLK_COMMAND - 1},
	{.name = "empty", .cmd = {.op = BB_BLK_READ, .length = BS}, .bytes = 1},
	{.name = "longer", .cmd = {.op = BB_BLK_READ, .length = BS}, .bytes = BLK_COMMAND + 1},
	{.name = "too-long", .cmd = {.op = BB_BLK_READ, .length = BS}, .bytes = 1024},
};

#define TRY(call)                                                                                  \
	do {                                                                                       \
		rc = (call);                                                                       \
		if (rc < 0) {                                                                      \
			fprintf(stderr, "%s: %s\n", #call, strerror(-rc));                         \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

static int
up(struct liar *l, const char *where, bool bad_hello)
{
	const uint32_t rights =
		BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_WRITE;
	struct bb_conn_param param;
	struct bb_ep_attr attr;
	uint8_t hello[BLK_HELLO];
	int rc;

	l->mem = rte_zmalloc("mem", MEM, 4096);
	l->other_mem = rte_zmalloc("mem", MEM, 4096);
	if (l->mem == NULL || l->other_mem == NULL)
		return -ENOMEM;
	bb_ep_attr_init(&attr);
	attr.timeout_ms = WAIT_MS;
	TRY(bb_ep_create(l->dev, where, false, &attr, &l->ep));
	TRY(bb_mr_reg(l->ep->pd, l->mem, MEM, rights, &l->mr));
	TRY(bb_pd_alloc(l->dev, &l->other_pd));
	TRY(bb_mr_reg(l->other_pd, l->other_mem, MEM, rights, &l->other_mr));
	for (uint32_t i = 0; i < 64; i++)
		TRY(bb_ep_post_recv(l->ep, (void *)(uintptr_t)i, l->mem + CAPS + i * 64, 64,
				    l->mr));
	blk_hello_encode(hello, DEPTH);
	if (bad_hello)
		hello[9] ^= 1;
	bb_conn_param_init(&param);
	param.private_data = hello;
	param.private_len = sizeof(hello);
	param.access = BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_WRITE;
	param.timeout_ms = WAIT_MS;
	rc = bb_ep_connect(l->ep, &param);
	if (rc != 0)
		printf("refused: %.*s\n", (int)l->ep->event.private_len,
		       (const char *)l->ep->event.private_data);
	else if (blk_welcome_decode(l->ep->event.private_data, l->ep->event.private_len,
				    &l->shape) != NULL)
		rc = -EPROTO;
out:
	return rc;
}

static int
tell(struct liar *l, const struct lie *lie)
{
	uint8_t *msg = l->mem + MEM / 4;
	struct blk_command c = lie->cmd;
	uint32_t i, times = lie->times == 0 ? 1 : lie->times;
	int rc = 0;

	if (c.addr == 0)
		c.addr = (uintptr_t)(lie->other_key ? l->other_mem : l->mem);
	if (c.rkey == 0)
		c.rkey = lie->other_key ? l->other_mr->rkey : l->mr->rkey;
	if (lie->closed_key) {
		c.addr = (uintptr_t)l->other_mem;
		c.rkey = l->other_mr->rkey;
		TRY(bb_mr_dereg(l->other_mr));
		l->other_mr = NULL;
	}
	if (c.op == BB_BLK_WRITE && c.length <= MEM)
		c.digest = blk_crc((const void *)(uintptr_t)l->mem, c.length) ^ lie->bad_digest;
	memset(msg, 0, 1024);
	blk_command_encode(msg, &c);
	if (lie->damaged)
		msg[20] ^= 0x40;
	for (i = 0; i < times; i++)
		TRY(bb_ep_post_send(l->ep, NULL, msg, lie->bytes == 0 ? BLK_COMMAND : lie->bytes,
				    l->mr, 0));
out:
	return rc;
}

/* The valid part: waits for the target's answer. */
static int
listen(struct liar *l, const struct lie *lie)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_MS / 1000 * rte_get_tsc_hz();
	struct blk_completion c;
	uint32_t answers = 0;
	const char *wrong;
	struct bb_wc wc;

	while (rte_get_tsc_cycles() < end) {
		if (bb_cq_poll(l->ep->recv_cq, &wc, 1) == 1 && wc.status == BB_WC_SUCCESS) {
			wrong = blk_completion_decode(l->mem + CAPS + wc.wr_id * 64, wc.byte_len,
						      &c);
			if (wrong != NULL) {
				printf("a completion that %s\n", wrong);
				return -EPROTO;
			}
			printf("status %u: %s\n", c.status, blk_status_name(c.status));
			if (++answers == lie->answers)
				return 0;
		}
		(void)bb_cq_poll(l->ep->send_cq, &wc, 1);
		if (!bb_ep_connected(l->ep)) {
			printf("over: %.*s\n", (int)l->ep->event.private_len,
			       (const char *)l->ep->event.private_data);
			return 0;
		}
	}
	printf("nothing came\n");
	return -ETIMEDOUT;
}

static void
down(struct liar *l)
{
	if (l->ep != NULL && l->ep->conn != NULL && bb_ep_connected(l->ep))
		(void)bb_ep_disconnect(l->ep);
	if (l->other_mr != NULL)
		bb_mr_dereg(l->other_mr);
	if (l->other_pd != NULL)
		bb_pd_free(l->other_pd);
	if (l->mr != NULL)
		bb_mr_dereg(l->mr);
	if (l->ep != NULL)
		bb_ep_destroy(l->ep);
	rte_free(l->mem);
	rte_free(l->other_mem);
}

static int
lie_once(struct bb_dev *dev, const char *where, const char *name)
{
	bool bad_hello = strcmp(name, "hello") == 0;
	struct liar l = {.dev = dev};
	const struct lie *lie = NULL;
	int rc;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (strcmp(lies[i].name, name) == 0)
			lie = &lies[i];
	if (lie == NULL && !bad_hello)
		return -EINVAL;
	printf("%s: ", name);
	rc = up(&l, where, bad_hello);
	if (bad_hello)
		rc = rc == -ECONNREFUSED ? 0 : -EPROTO;
	else if (rc == 0)
		rc = tell(&l, lie);
	if (rc == 0 && !bad_hello)
		rc = listen(&l, lie);
	down(&l);
	return rc;
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), rc, i;
	struct bb_dev *dev;

	if (used < 0 || argc - used < 4)
		return 2;
	argv += used;
	rc = bb_dev_open(argv[1], &dev);
	if (rc == 0) {
		for (i = 3; i < argc - used && rc == 0; i++)
			rc = lie_once(dev, argv[2], argv[i]);
		bb_dev_close(dev);
	}
	if (rc != 0)
		fprintf(stderr, "%s\n", strerror(-rc));
	rte_eal_cleanup();
	return rc == 0 ? 0 : 1;
}
