/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Both sides of rping's protocol (rdma-core: librdmacm/examples/rping.c). */
#include <endian.h>
#include <stdlib.h>

#include "cm_peer.h"

/* Message between the two sides; big endian. */
struct rping_info {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
};

static int
rping_tell(struct bb_ep *ep, struct bb_mr *mr, uint32_t size)
{
	struct rping_info *info = (void *)(buf + OUT);
	int rc;

	info->addr = htobe64((uintptr_t)buf + TEXT);
	info->rkey = htobe32(mr->rkey);
	info->size = htobe32(size);
	rc = bb_ep_post_send(ep, NULL, info, sizeof(*info), mr, BB_SEND_SIGNALED);
	return rc < 0 ? rc : wait_wc(ep, true);
}

/* Waits for the next message and posts a receive for the one after it. */
static int
rping_hear(struct bb_ep *ep, struct bb_mr *mr, struct rping_info *info)
{
	int rc = wait_wc(ep, false);

	if (rc < 0)
		return rc;
	if (rc != sizeof(*info))
		return -EPROTO;
	memcpy(info, buf + IN, sizeof(*info));
	info->addr = be64toh(info->addr);
	info->rkey = be32toh(info->rkey);
	info->size = be32toh(info->size);
	return bb_ep_post_recv(ep, NULL, buf + IN, sizeof(*info), mr);
}

int
rping_server(void)
{
	struct bb_ep *listener = NULL, *ep = NULL;
	struct bb_conn_param param;
	struct rping_info info;
	struct bb_mr *mr = NULL;
	char start[32];
	int rc;

	TRY(listen_at(&listener));
	TRY(bb_ep_get_request(listener, &ep));
	TRY(bb_ep_reg_write(ep, buf, BUF_SIZE, &mr));
	TRY(bb_ep_post_recv(ep, NULL, buf + IN, sizeof(info), mr));
	param_init(&param);
	TRY(bb_ep_accept(ep, &param));
	for (uint32_t i = 0; i < count; i++) {
		TRY(rping_hear(ep, mr, &info));
		CHECK(info.size > 16 && info.size <= OUT);
		memset(buf + TEXT, 0, info.size);
		TRY(bb_ep_post_read(ep, NULL, buf + TEXT, info.size, mr, info.addr, info.rkey,
				    BB_SEND_SIGNALED));
		TRY(wait_wc(ep, true));
		snprintf(start, sizeof(start), "rdma-ping-%u: ", i);
		CHECK(strncmp(buf + TEXT, start, strlen(start)) == 0);
		CHECK(strnlen(buf + TEXT, info.size) == info.size - 1);
		/* The client names the buffer to write the text to. */
		TRY(rping_tell(ep, mr, info.size));
		TRY(rping_hear(ep, mr, &info));
		TRY(bb_ep_post_write(ep, NULL, buf + TEXT, info.size, mr, info.addr, info.rkey,
				     BB_SEND_SIGNALED));
		TRY(wait_wc(ep, true));
		rc = rping_tell(ep, mr, info.size);
		/* The sender of the last message may disconnect before its ACK arrives. */
		if (i < count - 1)
			TRY(rc);
	}
	TRY(wait_end(ep));
	printf("%u rounds, disconnected by the peer\n", count);
out:
	drop(ep, mr);
	drop(listener, NULL);
	return rc;
}

int
rping_client(void)
{
	const uint32_t size = 4000;
	struct bb_conn_param param;
	struct rping_info info;
	struct bb_ep *ep = NULL;
	struct bb_mr *mr = NULL;
	char *text = buf + TEXT;
	uint32_t j;
	int rc;

	TRY(new_ep(false, WAIT_MS, &ep));
	TRY(bb_mr_reg(ep->pd, buf, BUF_SIZE,
		      BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ, &mr));
	TRY(bb_ep_post_recv(ep, NULL, buf + IN, sizeof(info), mr));
	param_init(&param);
	TRY(bb_ep_connect(ep, &param));
	let_accept(ep);
	for (uint32_t i = 0; i < count; i++) {
		j = (uint32_t)snprintf(text, size, "rdma-ping-%u: ", i);
		for (; j < size - 1; j++)
			text[j] = (char)('A' + (i + j) % 58);
		text[j] = '\0';
		TRY(rping_tell(ep, mr, size));
		TRY(rping_hear(ep, mr, &info)); /* the peer has read the text */
		memset(text, '?', size);
		TRY(rping_tell(ep, mr, size));
		TRY(rping_hear(ep, mr, &info)); /* the peer has written the text back */
		j = (uint32_t)strlen("rdma-ping-");
		CHECK(memcmp(text, "rdma-ping-", j) == 0 && strtoul(text + j, NULL, 10) == i);
		for (j = (uint32_t)(strchr(text, ':') - text) + 2; j < size - 1; j++)
			CHECK(text[j] == (char)('A' + (i + j) % 58));
		CHECK(text[j] == '\0');
	}
	TRY(bb_ep_disconnect(ep));
	CHECK(ep->event.type == BB_CM_DISCONNECTED && ep->event.status == 0);
	printf("%u rounds, disconnected\n", count);
out:
	drop(ep, mr);
	return rc;
}
