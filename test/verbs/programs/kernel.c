/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Calls of libibverbs whose outcome the kernel decides on a machine with a card. Each case ends
 * with "right" and exit status 0.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "memory.h"

/* More than the node's first ring of events, or its first table of handles, holds. */
#define MANY 300u

static struct ibv_context *dev;
static struct ibv_pd *domain;
static uint8_t data[64];
static struct ibv_mr *mr;

static void
open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL);
	dev = ibv_open_device(list[0]);
	CHECK(dev != NULL);
	ibv_free_device_list(list);
	domain = ibv_alloc_pd(dev);
	CHECK(domain != NULL);
	mr = ibv_reg_mr(domain, data, sizeof(data),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr != NULL);
}

/* ---- QPs */

static struct ibv_qp *
make_qp(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
	};
	struct ibv_qp *qp = ibv_create_qp(domain, &attr);

	CHECK(qp != NULL);
	return qp;
}

static void
to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};

	CHECK(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	      0);
}

/* Connects a QP in INIT to another, or to itself. Returns the result of ibv_modify_qp(). */
static int
to_rtr(struct ibv_qp *qp, const struct ibv_qp *to, uint8_t resources, unsigned int mtu)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = (enum ibv_mtu)mtu,
				   .dest_qp_num = to->qp_num,
				   .max_dest_rd_atomic = resources,
				   .ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};

	CHECK(ibv_query_gid(dev, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int
to_rts(struct ibv_qp *qp, uint8_t depth)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .max_rd_atomic = depth, .timeout = 14, .retry_cnt = 7};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *
connected_qp(struct ibv_cq *cq)
{
	struct ibv_qp *qp = make_qp(cq, NULL);

	to_init(qp);
	CHECK(to_rtr(qp, qp, 1, IBV_MTU_1024) == 0 && to_rts(qp, 1) == 0);
	return qp;
}

/* Posts a SEND of a QP to itself with its receive, or a READ. */
static void
post(struct ibv_qp *qp, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)data, 8, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = opcode,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)data + 8, mr->rkey}},
			   *bad_send;

	CHECK(opcode != IBV_WR_SEND || ibv_post_recv(qp, &recv, &bad_recv) == 0);
	CHECK(ibv_post_send(qp, &send, &bad_send) == 0);
}

static enum ibv_wc_status
poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0);
	CHECK(n == 1);
	return wc.status;
}

/* Returns the status of a READ from a QP that serves @resources READs and has the access right. */
static enum ibv_wc_status
status_of_read(uint8_t resources)
{
	struct ibv_cq *cq = ibv_create_cq(dev, 4, NULL, NULL, 0);
	struct ibv_qp *requester = make_qp(cq, NULL), *responder = make_qp(cq, NULL);
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_init_attr init;

	to_init(requester);
	to_init(responder);
	CHECK(to_rtr(requester, responder, 1, IBV_MTU_1024) == 0 && to_rts(requester, 1) == 0);
	CHECK(to_rtr(responder, requester, resources, IBV_MTU_1024) == 0);
	CHECK(to_rts(responder, 1) == 0);
	/* A later change of the rights does not permit more. */
	CHECK(ibv_modify_qp(responder, &attr, IBV_QP_ACCESS_FLAGS) == 0);
	CHECK(ibv_query_qp(responder, &attr, IBV_QP_ACCESS_FLAGS, &init) == 0);
	CHECK(attr.qp_access_flags == (resources != 0 ? IBV_ACCESS_REMOTE_READ : 0));
	post(requester, IBV_WR_RDMA_READ);
	return poll_one(cq);
}

static void
no_reads(void)
{
	CHECK(status_of_read(1) == IBV_WC_SUCCESS);
	CHECK(status_of_read(0) == IBV_WC_REM_INV_REQ_ERR);
}

/* Numbers of READs are rounded up, and attributes that the device does not have are rejected. */
static void
depths(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev, 4, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, NULL);
	struct ibv_qp_init_attr init;
	struct ibv_device_attr caps;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_device(dev, &caps) == 0 && caps.max_qp_rd_atom == 16);
	to_init(qp);
	CHECK(to_rtr(qp, qp, 17, IBV_MTU_1024) == EINVAL);
	CHECK(to_rtr(qp, qp, 255, IBV_MTU_1024) == EINVAL);
	CHECK(to_rtr(qp, qp, 5, 0) == EINVAL);
	CHECK(to_rtr(qp, qp, 5, IBV_MTU_4096 + 1) == EINVAL);
	CHECK(to_rtr(qp, qp, 5, 8 + IBV_MTU_256) == EINVAL);
	CHECK(to_rtr(qp, qp, 5, IBV_MTU_1024) == 0);
	CHECK(to_rts(qp, 17) == EINVAL);
	CHECK(to_rts(qp, 3) == 0);
	CHECK(ibv_query_qp(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MAX_QP_RD_ATOMIC, &init) ==
	      0);
	CHECK(attr.max_dest_rd_atomic == 8 && attr.max_rd_atomic == 4);
	qp = make_qp(cq, NULL);
	to_init(qp);
	CHECK(to_rtr(qp, qp, 16, IBV_MTU_1024) == 0 && to_rts(qp, 16) == 0);
}

/* ---- SRQs, PDs */

static struct ibv_srq *
make_srq(uint32_t limit)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = limit}};
	struct ibv_srq *srq = ibv_create_srq(domain, &attr);

	CHECK(srq != NULL);
	return srq;
}

/* The limit does not matter when an SRQ is created. */
static void
srq_limit(void)
{
	const uint32_t limits[] = {4, 1000};
	struct ibv_srq_attr attr;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		attr.srq_limit = 1;
		CHECK(ibv_query_srq(make_srq(limits[i]), &attr) == 0 && attr.srq_limit == 0);
	}
}

/* A PD cannot be freed while it has an address handle that the kernel knows: one of RoCE. */
static void
pd_of_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};
	struct ibv_pd *other = ibv_alloc_pd(dev);
	struct ibv_ah *ah;

	CHECK(ibv_query_gid(dev, 1, 0, &attr.grh.dgid) == 0);
	ah = ibv_create_ah(other, &attr);
	CHECK(ah != NULL && ibv_dealloc_pd(other) == EBUSY);
	CHECK(ibv_dealloc_pd(domain) == EBUSY);
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_dealloc_pd(other) == 0);
}

/* ---- Events */

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* Raises IBV_EVENT_QP_LAST_WQE_REACHED on a QP of an SRQ. */
static void
raise_event(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	to_init(qp);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

/* The destruction of a QP removes its unread events, but no others. */
static void
stale_async(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev, 4, NULL, NULL, 0);
	struct ibv_srq *srq = make_srq(0);
	struct ibv_async_event event;
	struct ibv_qp *qp[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		qp[i] = make_qp(cq, srq);
		raise_event(qp[i]);
	}
	CHECK(readable(dev->async_fd));
	CHECK(ibv_destroy_qp(qp[1]) == 0);
	for (i = 0; i < 3; i += 2) {
		CHECK(readable(dev->async_fd) && ibv_get_async_event(dev, &event) == 0);
		CHECK(event.element.qp == qp[i]);
		ibv_ack_async_event(&event);
	}
	CHECK(!readable(dev->async_fd));
	raise_event(qp[1] = make_qp(cq, srq));
	CHECK(readable(dev->async_fd) && ibv_destroy_qp(qp[1]) == 0);
	CHECK(!readable(dev->async_fd));
	/* Later events make the descriptor readable again. */
	raise_event(qp[1] = make_qp(cq, srq));
	CHECK(readable(dev->async_fd) && ibv_get_async_event(dev, &event) == 0);
	CHECK(event.element.qp == qp[1]);
}

/* A QP that gets the handle of a destroyed QP does not get the events of the destroyed QP. */
static void
reused(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev, 4, NULL, NULL, 0);
	struct ibv_srq *srq = make_srq(0);
	struct ibv_async_event event;
	struct ibv_qp *qp;
	unsigned int i;

	CHECK(fcntl(dev->async_fd, F_SETFL, O_NONBLOCK) == 0);
	for (i = 0; i < MANY; i++) {
		qp = make_qp(cq, srq);
		raise_event(qp);
		CHECK(ibv_destroy_qp(qp) == 0);
	}
	for (i = 0; i < MANY; i++)
		(void)make_qp(cq, srq);
	CHECK(ibv_get_async_event(dev, &event) == -1 && errno == EAGAIN);
}

/* Events that the program does not read are not lost. */
static void
many_events(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev, 4, NULL, NULL, 0);
	struct ibv_srq *srq = make_srq(0);
	struct ibv_async_event event;
	struct ibv_qp *qp[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++)
		raise_event(qp[i] = make_qp(cq, srq));
	for (i = 0; i < MANY; i++) {
		CHECK(readable(dev->async_fd) && ibv_get_async_event(dev, &event) == 0);
		CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED &&
		      event.element.qp == qp[i]);
	}
	CHECK(!readable(dev->async_fd));
}

/* The destruction of a CQ removes its unread completion event, but not those of other CQs. */
static void
stale_comp(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev);
	struct ibv_cq *cq[2], *got;
	struct ibv_qp *qp[2];
	void *arg;
	int i;

	CHECK(ch != NULL);
	for (i = 0; i < 2; i++) {
		cq[i] = ibv_create_cq(dev, 4, NULL, ch, 0);
		qp[i] = connected_qp(cq[i]);
		CHECK(ibv_req_notify_cq(cq[i], 0) == 0);
		post(qp[i], IBV_WR_SEND);
		CHECK(poll_one(cq[i]) == IBV_WC_SUCCESS && poll_one(cq[i]) == IBV_WC_SUCCESS);
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	}
	CHECK(readable(ch->fd) && ibv_destroy_cq(cq[0]) == 0 && readable(ch->fd));
	CHECK(ibv_get_cq_event(ch, &got, &arg) == 0 && got == cq[1] && !readable(ch->fd));
	ibv_ack_cq_events(cq[1], 1);
	CHECK(ibv_req_notify_cq(cq[1], 0) == 0);
	qp[1] = connected_qp(cq[1]);
	post(qp[1], IBV_WR_SEND);
	CHECK(poll_one(cq[1]) == IBV_WC_SUCCESS && ibv_destroy_qp(qp[1]) == 0);
	CHECK(readable(ch->fd) && ibv_destroy_cq(cq[1]) == 0 && !readable(ch->fd));
}

/* ---- Cancelled threads */

static struct ibv_qp *cancelled_qp;
static volatile bool returned;

/* The poll executes the SEND and raises a completion event. */
static void *
cancelled_thread(void *arg)
{
	struct ibv_cq *cq = cancelled_qp->send_cq;
	struct ibv_wc wc;

	(void)arg;
	CHECK(pthread_cancel(pthread_self()) == 0);
	CHECK(ibv_req_notify_cq(cq, 0) == 0);
	post(cancelled_qp, IBV_WR_SEND);
	CHECK(ibv_poll_cq(cq, 1, &wc) >= 0);
	returned = true;
	pthread_testcancel();
	return NULL;
}

static void *
cancelled_command(void *arg)
{
	(void)arg;
	CHECK(pthread_cancel(pthread_self()) == 0);
	CHECK(ibv_destroy_qp(cancelled_qp) == 0);
	returned = true;
	pthread_testcancel();
	return NULL;
}

/* Runs @fn in a thread that is cancelled. Its verbs return, as they are no cancellation points. */
static void
run_cancelled(void *(*fn)(void *arg))
{
	pthread_t thread;
	void *ret;

	returned = false;
	CHECK(pthread_create(&thread, NULL, fn, NULL) == 0 && pthread_join(thread, &ret) == 0);
	CHECK(ret == PTHREAD_CANCELED && returned);
}

/* A thread that is cancelled leaves no lock of the device taken. */
static void
cancelled(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev);
	struct ibv_cq *cq = ibv_create_cq(dev, 64, NULL, ch, 0);
	unsigned int i;

	for (i = 0; i < 20; i++) {
		cancelled_qp = connected_qp(cq);
		run_cancelled(cancelled_thread);
		while (ibv_poll_cq(cq, 1, &(struct ibv_wc){0}) > 0)
			;
		CHECK(ibv_destroy_qp(cancelled_qp) == 0);
	}
	cancelled_qp = make_qp(cq, NULL);
	run_cancelled(cancelled_command);
	CHECK(make_qp(cq, NULL) != NULL);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} cases[] = {{"no_reads", no_reads},       {"depths", depths},
		     {"srq_limit", srq_limit},     {"pd_of_ah", pd_of_ah},
		     {"stale_async", stale_async}, {"reused", reused},
		     {"many_events", many_events}, {"stale_comp", stale_comp},
		     {"cancelled", cancelled}};
	unsigned int i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		alarm(60);
		open_device();
		cases[i].fn();
		printf("%s: right\n", cases[i].name);
		return 0;
	}
	fprintf(stderr, "usage: %s CASE\n", argv[0]);
	return 2;
}
