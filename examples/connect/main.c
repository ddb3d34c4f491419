/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connects two processes. One process listens and offers a buffer that its peer may write to. The
 * other process connects, writes to the buffer and announces that with a SEND.
 *
 * The comment on the right of a step names the corresponding call of rdma_verbs.h. The
 * functions of bb_ep.h wait too. A program that must not wait uses bb_connect.h, on which bb_ep.h
 * is built.
 */
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_malloc.h>

#include "eal_args.h"

#define USAGE                                                                                      \
	"usage: connect [EAL_OPTIONS] -- DEVICE listen|connect ADDRESS:PORT\n"                     \
	"Two software devices of one host, by shared memory:\n"                                    \
	"  connect -l 0 -- soft0,shm=demo,ip=192.0.2.1/24 listen 127.0.0.1:18515\n"                \
	"  connect -l 0 -- soft0,shm=demo,ip=192.0.2.2/24 connect 127.0.0.1:18515\n"               \
	"Two cards:\n"                                                                             \
	"  connect -l 0 -- mlx5_0 listen :18515\n"                                                 \
	"  connect -l 0 -- mlx5_0 connect 192.0.2.1:18515"
#define GREETING "hello from the other process"
#define BUF_SIZE 4096

/* Library calls return 0 or a negative errno. On an error the log has a line with advice. */
#define TRY(connect_and_send)                                                                      \
	do {                                                                                       \
		rc = (connect_and_send);                                                           \
		if (rc < 0) {                                                                      \
			fprintf(stderr, "%s: %s\n", #connect_and_send, strerror(-rc));             \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

static int
serve(struct bb_dev *dev, const char *where, char *buf)
{
	struct bb_ep *listener = NULL, *ep = NULL;
	struct bb_mr *mr = NULL;
	struct bb_conn_param param;
	struct bb_region region;
	struct bb_ep_attr attr;
	struct bb_wc wc;
	int rc;

	bb_ep_attr_init(&attr);
	attr.timeout_ms = 60000;
	TRY(bb_ep_create(dev, where, true, &attr, &listener)); /*  rdma_create_ep, rdma_listen */
	printf("listening at port %u\n", bb_ep_port(listener));
	fflush(stdout);
	TRY(bb_ep_get_request(listener, &ep));             /*       rdma_get_request */
	TRY(bb_ep_reg_write(ep, buf, BUF_SIZE, &mr));      /*       rdma_reg_write */
	TRY(bb_ep_post_recv(ep, NULL, buf + 2048, 8, mr)); /*      rdma_post_recv */
	TRY(bb_ep_post_recv(ep, NULL, buf + 2056, 8, mr));
	bb_conn_param_init(&param);
	param.access = BB_ACCESS_REMOTE_WRITE;
	TRY(bb_region_of(mr, "greeting", 0, 2048, &region));
	param.regions = &region; /* key for the peer, sent with the CM REP */
	param.nregions = 1;
	TRY(bb_ep_accept(ep, &param));     /*                  rdma_accept */
	TRY(bb_ep_get_recv_comp(ep, &wc)); /*                  rdma_get_recv_comp */
	rc = wc.status == BB_WC_SUCCESS ? 0 : -EIO;
	printf("%s, then %s\n", buf, buf + 2048);
	/*
	 * Waits for the client's disconnect. If this process disconnected first, it would flush
	 * requests that the peer still waits for.
	 */
	(void)bb_ep_get_recv_comp(ep, &wc);
	(void)bb_ep_disconnect(ep); /*                             rdma_disconnect */
out:
	if (mr != NULL)
		bb_mr_dereg(mr); /*                                rdma_dereg_mr */
	if (ep != NULL)
		bb_ep_destroy(ep); /*                              rdma_destroy_ep */
	if (listener != NULL)
		bb_ep_destroy(listener);
	return rc;
}

static int
connect_and_send(struct bb_dev *dev, const char *where, char *buf)
{
	struct bb_ep *ep = NULL;
	struct bb_mr *mr = NULL;
	struct bb_region region;
	struct bb_ep_attr attr;
	struct bb_wc wc;
	int rc;

	strcpy(buf, GREETING);
	bb_ep_attr_init(&attr);
	TRY(bb_ep_create(dev, where, false, &attr, &ep)); /*       rdma_create_ep */
	TRY(bb_ep_reg_msgs(ep, buf, BUF_SIZE, &mr));      /*       rdma_reg_msgs */
	TRY(bb_ep_connect(ep, NULL));                     /*       rdma_connect */
	TRY(bb_conn_region(ep->conn, "greeting", &region));
	if (region.len < sizeof(GREETING)) {
		fprintf(stderr, "the peer's region is too small for %zu bytes\n", sizeof(GREETING));
		rc = -ENOSPC;
		goto out;
	}
	/*                                                         rdma_post_write, rdma_post_send
	 */
	TRY(bb_ep_post_write(ep, NULL, buf, sizeof(GREETING), mr, region.addr, region.rkey, 0));
	TRY(bb_ep_post_send(ep, NULL, "written", 8, NULL, BB_SEND_INLINE | BB_SEND_SIGNALED));
	TRY(bb_ep_get_send_comp(ep, &wc)); /*                      rdma_get_send_comp */
	rc = wc.status == BB_WC_SUCCESS ? 0 : -EIO;
	printf("sent: %s\n", bb_wc_status_name(wc.status));
	(void)bb_ep_disconnect(ep);
out:
	if (mr != NULL)
		bb_mr_dereg(mr);
	if (ep != NULL)
		bb_ep_destroy(ep);
	return rc;
}

int
main(int argc, char **argv)
{
	struct bb_dev *dev;
	int eal, rc;
	char *buf;

	if (argc > 1 && strcmp(argv[argc - 1], "--help") == 0)
		return puts(USAGE) < 0;
	for (eal = 1; eal < argc; eal++) /* EAL's arguments end at "--" */
		if (strcmp(argv[eal], "--") == 0)
			break;
	if (argc - eal != 4 ||
	    (strcmp(argv[eal + 2], "listen") != 0 && strcmp(argv[eal + 2], "connect") != 0)) {
		fprintf(stderr, USAGE "\n");
		return 2;
	}
	/*
	 * Calls rte_eal_init(). If the user gave no option for memory, EAL gets hugepages if enough
	 * are free, otherwise plain pages.
	 */
	if (eal_start_completed("connect", eal, argv, 256, eal_spec_no_pci(argv[eal + 1])) < 0)
		return 2;
	argv += eal;
	buf = rte_zmalloc("buf", BUF_SIZE, 4096);
	rc = buf == NULL ? -ENOMEM : bb_dev_open(argv[1], &dev);
	if (rc == 0) {
		rc = strcmp(argv[2], "listen") == 0 ? serve(dev, argv[3], buf)
						    : connect_and_send(dev, argv[3], buf);
		bb_dev_close(dev);
	}
	rte_free(buf);
	/*
	 * Does not call rte_eal_cleanup(). In DPDK 22.11 that function unmaps memory that EAL's
	 * interrupt thread may still access, for example for the listening socket of net_memif. The
	 * process would then crash. This program has closed its own objects, and the end of the
	 * process releases the rest.
	 */
	return rc == 0 ? 0 : 1;
}
