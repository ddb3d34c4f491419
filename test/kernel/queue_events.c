/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Posts WRITEs on each device until its CQ and both QPs of the CQ have failed. Prints the events,
 * a line each: the device, the event and its object. Then destroys all objects. usage:
 * queue_events [EAL options --] DEVICE...
 */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "bluebell.h"

#define BATCH 16
#define BYTES 4096

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != 0) {                                                                    \
			fprintf(stderr, "%s: %s\n", #call, strerror(-rc_));                        \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

struct side {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_mr *mr;
	struct bb_cq *cq;
	struct bb_qp *qp[2]; /* connected to each other */
	char *mem;
};

static int
open_side(struct side *s, const char *device)
{
	struct bb_qp_addr addr[2];
	struct bb_qp_init_attr init;
	struct bb_cq_attr cq_attr;
	struct bb_qp_attr attr;
	uint8_t gid;

	s->mem = rte_zmalloc("mem", BYTES, BYTES);
	TRY(s->mem == NULL ? -ENOMEM : bb_dev_open(device, &s->dev));
	TRY(bb_pd_alloc(s->dev, &s->pd));
	TRY(bb_mr_reg(s->pd, s->mem, BYTES, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE,
		      &s->mr));
	bb_cq_attr_init(&cq_attr);
	TRY(bb_cq_create(s->dev, &cq_attr, &s->cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = s->cq;
	init.sq_depth = BATCH;
	init.rq_depth = 0;
	TRY(bb_qp_create(s->pd, &init, &s->qp[0]));
	TRY(bb_qp_create(s->pd, &init, &s->qp[1]));
	bb_qp_attr_init(&attr);
	TRY(bb_gid_choose(s->dev, attr.path.port, NULL, &gid));
	attr.path.sgid_index = gid;
	attr.access = BB_ACCESS_REMOTE_WRITE;
	TRY(bb_qp_addr(s->qp[0], attr.path.port, gid, &addr[0]));
	TRY(bb_qp_addr(s->qp[1], attr.path.port, gid, &addr[1]));
	TRY(bb_qp_connect(s->qp[0], &addr[0], &addr[1], &attr));
	TRY(bb_qp_connect(s->qp[1], &addr[1], &addr[0], &attr));
	return 0;
}

/* Posts WRITEs, the last with a completion. Failures show as events. */
static void
post(struct side *s)
{
	struct bb_sge sge = {(uintptr_t)s->mem, 8, s->mr->lkey};
	unsigned int i;

	for (i = 1; i <= BATCH; i++)
		(void)bb_post_write(s->qp[0], i, &sge, 1, (uintptr_t)s->mem + 64, s->mr->rkey,
				    i == BATCH ? BB_SEND_SIGNALED : 0);
	bb_qp_ring(s->qp[0]);
}

static const char *
object(const struct side *s, const struct bb_event *e)
{
	if (e->type == BB_EVENT_CQ_ERROR)
		return e->cq == s->cq ? "CQ" : "unknown CQ";
	if (e->type != BB_EVENT_QP_FATAL)
		return "unknown";
	return e->qp == s->qp[0] ? "QP 0" : e->qp == s->qp[1] ? "QP 1" : "unknown QP";
}

static int
run(const char *device)
{
	struct side s = {0};
	struct bb_event e;
	bool idle = true;
	struct bb_wc wc;
	int n = 0;

	if (open_side(&s, device) != 0)
		return 1;
	while (n < 3) {
		if (idle)
			post(&s);
		idle = bb_cq_poll(s.cq, &wc, 1) > 0;
		for (; bb_event_get(s.dev, &e) == 0; n++)
			printf("%s: %s: %s\n", device, bb_event_name(e.type), object(&s, &e));
	}
	TRY(bb_qp_destroy(s.qp[0]));
	TRY(bb_qp_destroy(s.qp[1]));
	TRY(bb_cq_destroy(s.cq));
	TRY(bb_mr_dereg(s.mr));
	TRY(bb_pd_free(s.pd));
	TRY(bb_dev_close(s.dev));
	return 0;
}

int
main(int argc, char **argv)
{
	int i = rte_eal_init(argc, argv);

	if (i < 0)
		return 2;
	for (i++; i < argc; i++)
		if (run(argv[i]) != 0)
			return 1;
	return 0;
}
