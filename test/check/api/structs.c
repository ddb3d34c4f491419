/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lets the library fill every struct that begins with its size, in memory followed by guard
 * bytes. structs.py builds it against shorter and longer structs than the library's: DELTA is the
 * number of bytes that structs have more (> 0) or fewer (< 0). It prints the values that are the
 * same in every run. Exit status 1: the library changed guard bytes, left a part of the struct
 * unwritten, or filled the tail of a longer one.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include <bluebell.h>

#define GUARD 256u
#define FILL  0xa5

/* Structs that the library also reads have unchanged fields, only another size. */
#define IN_OUT(type) ((uint32_t)(sizeof(type) + (size_t)DELTA))

static bool failed;
static union {
	uint8_t bytes[65536];
	uint64_t align;
} room;

static void
wrong(const char *name, const char *what, size_t at)
{
	fprintf(stderr, "%s: %s at byte %zu\n", name, what, at);
	failed = true;
}

static void *
fresh(void)
{
	memset(room.bytes, FILL, sizeof(room.bytes));
	return room.bytes;
}

/*
 * Checks @n entries of @size bytes, @entries of them in the caller's memory; the last @tail bytes
 * of an entry are new.
 */
static void
check(const char *name, size_t size, size_t n, size_t entries, bool show)
{
	const size_t tail = DELTA > 0 ? (size_t)DELTA : 0;
	size_t i, k;

	for (i = entries * size; i < entries * size + GUARD; i++)
		if (room.bytes[i] != FILL)
			wrong(name, "a guard byte was overwritten", i);
	for (k = 0; k < n; k++) {
		const uint8_t *p = room.bytes + k * size;
		uint32_t told;

		memcpy(&told, p, sizeof(told));
		if (told != size)
			wrong(name, "the size has changed", k * size);
		for (i = size - tail; i < size; i++)
			if (p[i] != 0)
				wrong(name, "the unknown tail is not 0", k * size + i);
		printf("%s", show ? name : "");
		for (i = sizeof(told); show && i < size - tail; i++)
			printf(" %02x", p[i]);
		printf("%s", show ? "\n" : "");
	}
	if (n == 0)
		wrong(name, "the library filled no struct", 0);
	printf("%s filled\n", name);
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		int ret_ = (call);                                                                 \
		if (ret_ < 0) {                                                                    \
			fprintf(stderr, "%s: %s\n", #call, strerror(-ret_));                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define ONE(type, call, show)                                                                      \
	do {                                                                                       \
		struct type *p = fresh();                                                          \
		OK(call);                                                                          \
		check(#type, sizeof(*p), 1, 1, show);                                              \
	} while (0)
#define VOID(type, call)                                                                           \
	do {                                                                                       \
		struct type *p = fresh();                                                          \
		call;                                                                              \
		check(#type, sizeof(*p), 1, 1, false);                                             \
	} while (0)
#define MANY(type, room_, call, show)                                                              \
	do {                                                                                       \
		struct type *p = fresh();                                                          \
		int n_ = (call);                                                                   \
		OK(n_);                                                                            \
		check(#type, sizeof(*p), n_ < (room_) ? (size_t)n_ : (room_), (room_), show);      \
	} while (0)

static void
queries(struct bb_dev *dev)
{
	MANY(bb_dev_info, 4, bb_dev_list(p, 4), false);
	ONE(bb_dev_attr, bb_dev_query(dev, p), true);
	ONE(bb_port_attr, bb_port_query(dev, 1, p), true);
	ONE(bb_gid, bb_gid_query(dev, 1, 0, p), true);
	MANY(bb_gid_entry, 3, bb_gid_list(dev, 1, p, 3), true);
	ONE(bb_dev_stats, bb_dev_stats(dev, p), false);
	MANY(bb_dev_drop, 3, bb_dev_drops(dev, p, 3), false);
}

static void
events(struct bb_dev *dev, struct bb_qp *qp)
{
	struct bb_qp_attr attr;
	struct bb_event *p;
	int i, ret = -EAGAIN;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS));
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
	for (i = 0; ret == -EAGAIN && i < 1000000; i++) {
		bb_dev_progress(dev);
		p = fresh();
		ret = bb_event_get(dev, p);
	}
	OK(ret);
	check("bb_event", sizeof(*p), 1, 1, false);
	ONE(bb_qp_recovery, bb_qp_recover(qp, NULL, NULL, NULL, (p->ends = NULL, p->max = 0, p)),
	    false);
}

static void
queues(struct bb_dev *dev)
{
	struct bb_qp_init_attr init;
	struct bb_srq_attr srq_attr;
	struct bb_cq_attr cq_attr;
	struct bb_qp_attr *qp_out;
	struct bb_srq_attr *srq_out;
	struct bb_srq *srq;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;

	OK(bb_pd_alloc(dev, &pd));
	bb_cq_attr_init(&cq_attr);
	OK(bb_cq_create(dev, &cq_attr, &cq));
	bb_srq_attr_init(&srq_attr);
	OK(bb_srq_create(pd, &srq_attr, &srq));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	OK(bb_qp_create(pd, &init, &qp));
	ONE(bb_mem_stats, bb_mem_stats(pd, p), false);
	ONE(bb_cq_stats, bb_cq_stats(cq, p), true);
	ONE(bb_qp_stats, bb_qp_stats(qp, p), true);
	ONE(bb_srq_stats, bb_srq_stats(srq, p), true);
	qp_out = fresh();
	qp_out->size = IN_OUT(*qp_out);
	OK(bb_qp_query_v(qp, qp_out));
	check("bb_qp_attr", IN_OUT(*qp_out), 1, 1, false);
	srq_out = fresh();
	srq_out->size = IN_OUT(*srq_out);
	OK(bb_srq_query_v(srq, srq_out));
	check("bb_srq_attr", IN_OUT(*srq_out), 1, 1, false);
	events(dev, qp);
	OK(bb_qp_destroy(qp));
	OK(bb_srq_destroy(srq));
	OK(bb_cq_destroy(cq));
	OK(bb_pd_free(pd));
}

/* No process listens: the connection fails, which is an event. */
static void
connections(struct bb_dev *dev)
{
	struct sockaddr_in nobody = {.sin_family = AF_INET};
	struct bb_qp_init_attr init;
	struct bb_conn_param param;
	struct bb_cm_attr attr;
	struct bb_cq_attr cq_attr;
	struct bb_cm_event *p;
	struct bb_conn *conn;
	unsigned int i, n = 0;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_cm *cm;

	nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	nobody.sin_port = htons(1);
	OK(bb_pd_alloc(dev, &pd));
	bb_cq_attr_init(&cq_attr);
	OK(bb_cq_create(dev, &cq_attr, &cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = cq;
	OK(bb_qp_create(pd, &init, &qp));
	bb_cm_attr_init(&attr);
	OK(bb_cm_create(dev, &attr, &cm));
	bb_conn_param_init(&param);
	OK(bb_conn_connect(cm, (struct sockaddr *)&nobody, qp, &param, &conn));
	for (i = 0; n == 0 && i < 100000000; i++) {
		p = fresh();
		n = bb_cm_poll(cm, p, 2);
	}
	check("bb_cm_event", sizeof(*p), n, 2, false);
	VOID(bb_conn_info, bb_conn_query(conn, p));
	VOID(bb_cm_stats, bb_cm_stats(cm, p));
	bb_conn_destroy(conn);
	OK(bb_cm_destroy(cm));
	OK(bb_qp_destroy(qp));
	OK(bb_cq_destroy(cq));
	OK(bb_pd_free(pd));
}

int
main(int argc, char **argv)
{
	struct bb_loop_attr loop_attr;
	struct bb_loop *loop;
	struct bb_dev *dev;

	OK(rte_eal_init(argc, argv));
	OK(bb_dev_open("soft0", &dev));
	queries(dev);
	queues(dev);
	connections(dev);
	bb_loop_attr_init(&loop_attr);
	OK(bb_loop_create(&loop_attr, &loop));
	VOID(bb_loop_stats, bb_loop_stats(loop, p));
	OK(bb_loop_destroy(loop));
	OK(bb_dev_close(dev));
	rte_eal_cleanup();
	return failed;
}
