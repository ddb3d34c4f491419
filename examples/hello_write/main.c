/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The shortest complete program: one RDMA WRITE from one buffer to another, through two connected
 * queue pairs of the same device. The comment beside a step names the call of libibverbs.
 */
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#define USAGE                                                                                      \
	"usage: hello_write [EAL_OPTIONS] [-- DEVICE]\n"                                           \
	"DEVICE is soft0 (default), the software ConnectX, or a card as mlx5_0"
#define GREETING "hello from the other queue pair"
#define BUF_SIZE 4096

/* Library calls return 0 or a negative errno. On an error the log has a line with advice. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		rc = (call);                                                                       \
		if (rc != 0) {                                                                     \
			fprintf(stderr, "%s: %s\n", #call, strerror(-rc));                         \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

/* Waits up to two seconds for one completion. Polling also runs the software device. */
static int
wait_completion(struct bb_cq *cq, struct bb_wc *wc)
{
	uint64_t end = rte_get_timer_cycles() + 2 * rte_get_timer_hz();

	while (bb_cq_poll(cq, wc, 1) == 0) /*                              ibv_poll_cq */
		if (rte_get_timer_cycles() > end)
			return -ETIMEDOUT;
	if (wc->status == BB_WC_SUCCESS)
		return 0;
	fprintf(stderr, "the write failed: %s: %s\n", bb_wc_status_name(wc->status),
		bb_wc_status_cause(wc->status, wc->vendor_err));
	return -EIO;
}

static int
hello(const char *device)
{
	/* Memory of EAL, which the device reads and writes without a copy. */
	char *from = rte_zmalloc("from", BUF_SIZE, 4096);
	char *to = rte_zmalloc("to", BUF_SIZE, 4096);
	struct bb_qp_addr addr_a, addr_b;
	struct bb_qp_init_attr init;
	struct bb_qp *a = NULL, *b = NULL;
	struct bb_mr *src = NULL, *dst = NULL;
	struct bb_cq *cq = NULL;
	struct bb_dev *dev = NULL;
	struct bb_pd *pd = NULL;
	struct bb_cq_attr cq_attr;
	struct bb_qp_attr attr;
	struct bb_sge sge;
	struct bb_wc wc;
	uint8_t gid;
	int rc = -ENOMEM;

	if (from == NULL || to == NULL) {
		fprintf(stderr, "no memory: give EAL more, -m MB\n");
		goto out;
	}
	strcpy(from, GREETING);

	TRY(bb_dev_open(device, &dev)); /*                                 ibv_open_device */
	TRY(bb_pd_alloc(dev, &pd));     /*                                 ibv_alloc_pd */
	/* Memory for the peer needs an access right and gets an rkey.     ibv_reg_mr */
	TRY(bb_mr_reg(pd, from, BUF_SIZE, 0, &src));
	TRY(bb_mr_reg(pd, to, BUF_SIZE, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, &dst));

	bb_cq_attr_init(&cq_attr);             /* default: 256 completions */
	TRY(bb_cq_create(dev, &cq_attr, &cq)); /*                          ibv_create_cq */

	/* The CQ needs room for the completion of every request.          ibv_create_qp */
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = cq;
	init.sq_depth = 16;
	init.rq_depth = 0;
	TRY(bb_qp_create(pd, &init, &a));
	TRY(bb_qp_create(pd, &init, &b));

	/*
	 * The QPs exchange their addresses; two programs would send them over TCP. Then one
	 * call goes through RESET, INIT, RTR and RTS.                     ibv_modify_qp
	 */
	bb_qp_attr_init(&attr);                              /* default: port 1 */
	TRY(bb_gid_choose(dev, attr.path.port, NULL, &gid)); /*            ibv_query_gid_table */
	attr.path.sgid_index = gid;
	TRY(bb_qp_addr(a, attr.path.port, gid, &addr_a));
	TRY(bb_qp_addr(b, attr.path.port, gid, &addr_b));
	attr.access = BB_ACCESS_REMOTE_WRITE; /* the peer's rights */
	TRY(bb_qp_connect(a, &addr_a, &addr_b, &attr));
	TRY(bb_qp_connect(b, &addr_b, &addr_a, &attr));

	/* Build the request in the send queue, then ring the doorbell.    ibv_post_send */
	sge = (struct bb_sge){(uintptr_t)from, sizeof(GREETING), src->lkey};
	TRY(bb_post_write(a, 1, &sge, 1, (uintptr_t)to, dst->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(a);
	TRY(wait_completion(cq, &wc));
	printf("%s: write %lu completed; the target's memory says: %s\n", device, wc.wr_id, to);
	rc = strcmp(to, GREETING) == 0 ? 0 : -EIO;

out: /* Destroy children before parents. Skip what was not created.        ibv_destroy_qp, ... */
	if (b != NULL)
		bb_qp_destroy(b);
	if (a != NULL)
		bb_qp_destroy(a);
	if (cq != NULL)
		bb_cq_destroy(cq);
	if (dst != NULL)
		bb_mr_dereg(dst);
	if (src != NULL)
		bb_mr_dereg(src);
	if (pd != NULL)
		bb_pd_free(pd);
	if (dev != NULL)
		bb_dev_close(dev);
	rte_free(to);
	rte_free(from);
	return rc;
}

int
main(int argc, char **argv)
{
	/* Plain pages, which every machine has. Hugepages are faster. */
	char plain[][16] = {"--no-huge", "-m64", "--no-shconf", "--no-pci"};
	char *args[] = {argv[0], plain[0], plain[1], plain[2], plain[3], NULL};
	int at = 1, rc; /* argv[at] is "--" */

	if (argc > 1 && strcmp(argv[argc - 1], "--help") == 0)
		return puts(USAGE) < 0;
	if (argc == 1 || strcmp(argv[1], "--") == 0)
		rc = rte_eal_init(5, args);
	else
		rc = at = rte_eal_init(argc, argv);
	if (rc < 0)
		return fprintf(stderr, "EAL did not start: give no EAL options, or --no-huge\n"), 2;
	/* rte_eal_cleanup() may crash with net_memif: see doc/guides/start/troubleshooting.rst. */
	return hello(at + 1 < argc ? argv[at + 1] : "soft0") == 0 ? 0 : 1;
}
