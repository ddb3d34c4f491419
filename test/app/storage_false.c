/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A target that lies to its clients: one connection for each of its arguments, in order. Its disk
 * contains zeros.
 *
 *   storage_false EAL_OPTIONS -- DEVICE LIE...
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
#define MSG     64u
#define RECVS   8u
#define MEM     (64u * 1024)
#define ANSWER  (32u * 1024) /* offset of completions; the data follow */
#define DATA    (48u * 1024)
#define WAIT_MS 120000u
#define DEAF_MS 4000u

static const char *const lies[] = {
	"none",  "welcome-damaged", "welcome-cut", "version", "depth",  "block", "length", "id",
	"twice", "damaged",         "cut",         "long",    "digest", "place", "silent", "gone",
	"deaf",
};

struct conn {
	struct bb_ep *ep;
	struct bb_mr *mr;
	uint8_t *mem;
	const char *lie;
};

static bool
is(const struct conn *c, const char *lie)
{
	return strcmp(c->lie, lie) == 0;
}

static int
welcome(struct conn *c)
{
	struct bb_blk_shape s = {
		.capacity = 1u << 20, .block = BS, .max_io = BS, .queues = 1, .depth = DEPTH};
	struct bb_conn_param param;
	uint8_t msg[BLK_WELCOME];
	uint32_t crc;

	s.depth = is(c, "depth") ? DEPTH + 1 : DEPTH;
	s.block = is(c, "block") ? BS - 1 : BS;
	blk_welcome_encode(msg, &s);
	if (is(c, "version")) {
		msg[4] ^= 0x40;
		crc = blk_crc(msg, BLK_WELCOME - 4);
		memcpy(msg + BLK_WELCOME - 4, &crc, 4);
	}
	msg[9] ^= is(c, "welcome-damaged");
	bb_conn_param_init(&param);
	param.private_data = msg;
	param.private_len = is(c, "welcome-cut") ? BLK_WELCOME - 1 : BLK_WELCOME;
	param.timeout_ms = WAIT_MS;
	return bb_ep_accept(c->ep, &param);
}

/* Answers the command in receive @slot. The answer's bytes stay until they are sent. */
static int
answer(struct conn *c, const struct blk_command *cmd, uint64_t slot)
{
	struct blk_completion a = {.id = cmd->id, .length = cmd->length};
	uint8_t *msg = c->mem + ANSWER + slot * MSG, *data = c->mem + DATA;
	uint32_t i, times = is(c, "twice") ? 2 : 1, len = BLK_COMPLETION;
	int rc;

	rc = bb_ep_post_write(c->ep, NULL, data, cmd->length, c->mr,
			      cmd->addr + (is(c, "place") ? UINT64_C(1) << 32 : 0), cmd->rkey,
			      BB_SEND_SIGNALED);
	a.digest = blk_crc(data, cmd->length) ^ is(c, "digest");
	a.length ^= is(c, "length");
	a.id = is(c, "id") ? DEPTH : a.id;
	blk_completion_encode(msg, &a);
	msg[8] ^= is(c, "damaged") || is(c, "deaf");
	len = is(c, "cut") ? len - 1 : is(c, "long") ? 1024 : len;
	for (i = 0; i < times && rc == 0; i++)
		rc = bb_ep_post_send(c->ep, NULL, msg, len, c->mr, 0);
	return rc;
}

/* Stops polling for a while after its answer was sent. */
static void
deaf(struct conn *c)
{
	const uint64_t end = rte_get_tsc_cycles() + rte_get_tsc_hz() / 10;
	struct bb_wc wc;

	while (rte_get_tsc_cycles() < end)
		(void)bb_cq_poll(c->ep->send_cq, &wc, 1);
	rte_delay_us_sleep(DEAF_MS * 1000);
}

static int
serve(struct conn *c)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_MS / 1000 * rte_get_tsc_hz();
	struct blk_command cmd;
	struct bb_wc wc;
	int rc = 0;

	while (rc == 0 && rte_get_tsc_cycles() < end) {
		if (!bb_ep_connected(c->ep))
			return 0;
		(void)bb_cq_poll(c->ep->send_cq, &wc, 1);
		if (bb_cq_poll(c->ep->recv_cq, &wc, 1) != 1 || wc.status != BB_WC_SUCCESS ||
		    is(c, "silent"))
			continue;
		if (is(c, "gone"))
			return bb_ep_disconnect(c->ep);
		if (blk_command_decode(c->mem + wc.wr_id * MSG, wc.byte_len, &cmd) != NULL ||
		    cmd.op != BB_BLK_READ || cmd.length != BS)
			return -EPROTO;
		rc = answer(c, &cmd, wc.wr_id);
		if (rc == 0 && is(c, "deaf"))
			deaf(c);
		if (rc == 0)
			rc = bb_ep_post_recv(c->ep, (void *)(uintptr_t)wc.wr_id,
					     c->mem + wc.wr_id * MSG, MSG, c->mr);
	}
	return rc != 0 ? rc : -ETIMEDOUT;
}

static int
lie_once(struct bb_ep *listener, const char *lie)
{
	struct conn c = {.lie = lie};
	uintptr_t i;
	int rc;

	c.mem = rte_zmalloc("mem", MEM, 4096);
	rc = c.mem == NULL ? -ENOMEM : bb_ep_get_request(listener, &c.ep);
	if (rc == 0)
		rc = bb_mr_reg(c.ep->pd, c.mem, MEM, BB_ACCESS_LOCAL_WRITE, &c.mr);
	for (i = 0; i < RECVS && rc == 0; i++)
		rc = bb_ep_post_recv(c.ep, (void *)i, c.mem + i * MSG, MSG, c.mr);
	if (rc == 0)
		rc = welcome(&c);
	/* A client that rejects the welcome may be gone before the accept finishes. */
	if (rc == 0)
		rc = serve(&c);
	else if (c.mr != NULL && !is(&c, "none"))
		rc = 0;
	if (c.ep != NULL && c.ep->conn != NULL && bb_ep_connected(c.ep))
		(void)bb_ep_disconnect(c.ep);
	if (c.mr != NULL)
		bb_mr_dereg(c.mr);
	if (c.ep != NULL)
		bb_ep_destroy(c.ep);
	rte_free(c.mem);
	return rc;
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), rc, i;
	struct bb_ep *listener = NULL;
	struct bb_ep_attr attr;
	struct bb_dev *dev;
	size_t j;

	if (used < 0 || argc - used < 3)
		return 2;
	argv += used;
	rc = bb_dev_open(argv[1], &dev);
	if (rc != 0)
		return 1;
	bb_ep_attr_init(&attr);
	attr.timeout_ms = WAIT_MS;
	rc = bb_ep_create(dev, "127.0.0.1:0", true, &attr, &listener);
	if (rc == 0) {
		printf("queue 0 at port %u, false\n", bb_ep_port(listener));
		fflush(stdout);
	}
	for (i = 2; i < argc - used && rc == 0; i++) {
		for (j = 0; j < sizeof(lies) / sizeof(lies[0]); j++)
			if (strcmp(lies[j], argv[i]) == 0)
				break;
		rc = j == sizeof(lies) / sizeof(lies[0]) ? -EINVAL : lie_once(listener, argv[i]);
		if (rc != 0)
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-rc));
	}
	if (listener != NULL)
		bb_ep_destroy(listener);
	bb_dev_close(dev);
	rte_eal_cleanup();
	return rc == 0 ? 0 : 1;
}
