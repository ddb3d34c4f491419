/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Endpoints. Receives that are posted before there is a connection are stored, and posted to the
 * queue in order when there is one. Calls that would block return at once, and one thread runs
 * both sides in turn.
 */
#include "bb_cm_priv.h"
#include "connect_env.h"

#define MSG  64u
#define MANY 64u /* requests that a listener queues */

static struct bb_dev *dev;
static struct bb_ep *listener;
static struct bb_conn_param param;

struct side {
	struct bb_ep *ep;
	struct bb_mr *mr;
	uint8_t *buf;
};

static struct side a, b;

/* Runs both sides until the condition holds. */
#define UNTIL(what)                                                                                \
	for (uint64_t end_ = wait_end(); !(what);) {                                               \
		(void)bb_ep_connected(a.ep);                                                       \
		if (b.ep != NULL)                                                                  \
			(void)bb_ep_connected(b.ep);                                               \
		assert_true(rte_get_tsc_cycles() < end_);                                          \
	}

static void
side_memory(struct side *s)
{
	s->buf = rte_zmalloc("ep", 8 * MSG, 64);
	assert_non_null(s->buf);
	OK(bb_ep_reg_msgs(s->ep, s->buf, 8 * MSG, &s->mr));
}

static void
receive(struct side *s, uintptr_t n)
{
	OK(bb_ep_post_recv(s->ep, (void *)n, s->buf + n * MSG, MSG, s->mr));
}

/* Sends messages and checks which receives they consume. */
static void
sends(struct side *from, struct side *to, const uint64_t *contexts, unsigned int n)
{
	struct bb_wc wc;
	unsigned int i;

	for (i = 0; i < n; i++)
		OK(bb_ep_post_send(from->ep, NULL, from->buf, MSG, from->mr, BB_SEND_SIGNALED));
	for (i = 0; i < n; i++) {
		UNTIL(bb_cq_poll(to->ep->recv_cq, &wc, 1) == 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, contexts[i]);
		UNTIL(bb_cq_poll(from->ep->send_cq, &wc, 1) == 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
}

/* Opens and connects two endpoints; one receive was posted at each before the connection. */
static void
open_pair(void)
{
	struct bb_ep_attr attr;
	char where[32];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	OK(bb_dev_open("soft0", &dev));
	bb_ep_attr_init(&attr);
	attr.timeout_ms = 1;
	attr.qp.sq_depth = 4;
	attr.qp.rq_depth = 4;
	bb_conn_param_init(&param);
	param.timeout_ms = WAIT_S * 1000;
	OK(bb_ep_create(dev, "127.0.0.1:0", true, &attr, &listener));
	snprintf(where, sizeof(where), "127.0.0.1:%u", bb_ep_port(listener));
	OK(bb_ep_create(dev, where, false, &attr, &a.ep));
	side_memory(&a);
	receive(&a, 0);
	assert_int_equal(bb_ep_connect(a.ep, &param), -ETIMEDOUT);
	UNTIL(bb_ep_get_request(listener, &b.ep) == 0);
	side_memory(&b);
	receive(&b, 0);
	assert_int_equal(bb_ep_accept(b.ep, &param), -ETIMEDOUT);
	UNTIL(bb_ep_connected(a.ep) && bb_ep_connected(b.ep));
}

static void
close_pair(void)
{
	struct side *sides[] = {&a, &b};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		OK(bb_mr_dereg(sides[i]->mr));
		OK(bb_ep_destroy(sides[i]->ep));
		rte_free(sides[i]->buf);
	}
	OK(bb_ep_destroy(listener));
	OK(bb_dev_close(dev));
}

#define T(name) TEST_BETWEEN(open_pair(), close_pair(), name)

/* Receives posted before the connection, also after bb_ep_connect() has given up waiting. */
T(test_receives_before_the_connection_take_its_messages)
{
	static const uint64_t first[] = {0};
	struct bb_wc wc;

	sends(&a, &b, first, 1);
	sends(&b, &a, first, 1);
	/* The peer does not run meanwhile. After the disconnect, another one is not an error. */
	assert_int_equal(bb_ep_disconnect(a.ep), -ETIMEDOUT);
	UNTIL(bb_ep_disconnect(a.ep) == 0);
	assert_int_equal(a.ep->event.type, BB_CM_DISCONNECTED);
	assert_int_equal(bb_ep_get_recv_comp(a.ep, &wc), -ENOTCONN);
}

/* INLINE copies the data at the post: the memory needs no registration and may change at once. */
T(test_inline_list_is_copied)
{
	volatile uint32_t flags = BB_SEND_SIGNALED | BB_SEND_INLINE;
	char data[MSG] = "first";
	struct bb_sge sge = {(uintptr_t)data, sizeof(data), 0};
	struct bb_wc wc;

	OK(bb_ep_post_sendv(a.ep, NULL, &sge, 1, flags));
	memset(data, 'x', sizeof(data));
	UNTIL(bb_cq_poll(b.ep->recv_cq, &wc, 1) == 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_string_equal((char *)b.buf, "first");
	UNTIL(bb_cq_poll(a.ep->send_cq, &wc, 1) == 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
}

static void
idle(void *arg)
{
	(void)arg;
}

static void
idle_device(struct bb_dev *d)
{
	(void)d;
}

/* Lets the device stand still. Returns its driver, for dev->drv. */
static const struct bb_driver *
stop_device(void)
{
	static struct bb_driver still;
	const struct bb_driver *drv = dev->drv;

	still = *drv;
	still.progress = idle_device;
	dev->drv = &still;
	a.ep->send_cq->progress = a.ep->recv_cq->progress = idle;
	return drv;
}

/*
 * A card flushes its queues a moment after the connection has ended. Here the device stands still,
 * with requests that were posted then. The first receive was posted before the connection.
 */
T(test_completions_flushed_after_the_end_are_returned)
{
	void (*run)(void *) = a.ep->send_cq->progress;
	const struct bb_driver *drv;
	struct bb_wc wc;

	UNTIL(bb_ep_disconnect(a.ep) == 0);
	drv = stop_device();
	OK(bb_ep_get_recv_comp(a.ep, &wc));
	assert_int_equal(wc.wr_id, 0);
	receive(&a, 1);
	OK(bb_ep_post_send(a.ep, (void *)2, a.buf, MSG, a.mr, BB_SEND_SIGNALED));
	OK(bb_ep_post_send(a.ep, (void *)3, a.buf, MSG, a.mr, 0));
	assert_int_equal(bb_ep_get_send_comp(a.ep, &wc), -ETIMEDOUT);
	assert_int_equal(bb_ep_get_recv_comp(a.ep, &wc), -ETIMEDOUT);
	dev->drv = drv;
	a.ep->send_cq->progress = a.ep->recv_cq->progress = run;
	for (uint64_t i = 1; i < 4; i++) {
		UNTIL((i == 1 ? bb_ep_get_recv_comp(a.ep, &wc) : bb_ep_get_send_comp(a.ep, &wc)) ==
		      0);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
	}
	UNTIL(bb_ep_get_send_comp(a.ep, &wc) == -ENOTCONN);
	UNTIL(bb_ep_get_recv_comp(a.ep, &wc) == -ENOTCONN);
}

/* A device that flushes nothing is given up after a second. */
T(test_end_of_a_device_that_flushes_nothing_is_returned)
{
	const struct bb_driver *drv;
	struct bb_wc wc;

	UNTIL(bb_ep_disconnect(a.ep) == 0);
	OK(bb_ep_get_recv_comp(a.ep, &wc));
	drv = stop_device();
	receive(&a, 1);
	OK(bb_ep_post_send(a.ep, NULL, a.buf, MSG, a.mr, BB_SEND_SIGNALED));
	UNTIL(bb_ep_get_send_comp(a.ep, &wc) == -ENOTCONN);
	assert_int_equal(bb_ep_get_recv_comp(a.ep, &wc), -ENOTCONN);
	dev->drv = drv;
}

/* Connects to the listener with a plain socket and sends a request with the number @n. */
static int
raw_request(uint32_t n)
{
	struct bb_cm_msg msg = {
		.type = BB_CM_REQ,
		.end = {.addr = {.qpn = 5,
				 .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
				 .mtu = 1024},
			.sq_depth = 16},
		.private = &n,
		.private_len = sizeof(n),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage to;
	uint8_t buf[BB_CM_MSG_MAX];
	char where[32];
	size_t len;

	snprintf(where, sizeof(where), "127.0.0.1:%u", bb_ep_port(listener));
	OK(bb_cm_addr(where, &to));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), 0);
	len = bb_cm_msg_encode(buf, &msg);
	assert_int_equal(send(fd, buf, len, 0), len);
	return fd;
}

/* Returns the type of the listener's answer, or 0 if the listener has closed the connection. */
static uint8_t
answered(int fd)
{
	uint8_t head[BB_CM_HEADER];
	struct bb_cm_header h = {0};
	ssize_t n;

	do {
		(void)bb_ep_connected(listener);
		n = recv(fd, head, sizeof(head), MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	if (n != sizeof(head))
		return 0;
	assert_null(bb_cm_header_decode(head, &h));
	return h.type;
}

static void
listens(void)
{
	struct bb_ep_attr attr;

	OK(bb_dev_open("soft0", &dev));
	bb_ep_attr_init(&attr);
	attr.timeout_ms = 0;
	assert_int_equal(bb_ep_create(dev, "127.0.0.1:0", true, &attr, &listener), -EINVAL);
	attr.timeout_ms = 20;
	/* This endpoint has no receives. */
	attr.qp.rq_depth = 0;
	OK(bb_ep_create(dev, "127.0.0.1:0", true, &attr, &listener));
}

/*
 * Objects that use the PD or the CQs of an endpoint: the endpoint cannot be destroyed before
 * them.
 */
TEST(test_endpoint_in_use_is_not_destroyed)
{
	struct bb_ep_attr attr;
	struct bb_srq_attr srq_attr;
	struct bb_path path = {.port = 1};
	struct bb_qp_addr addr;
	struct bb_ep *ep, *other;
	struct bb_srq *srq;
	struct bb_mw *mw;
	struct bb_ah *ah;

	OK(bb_dev_open("soft0", &dev));
	bb_ep_attr_init(&attr);
	attr.qp.sq_depth = 4;
	attr.qp.rq_depth = 4;
	OK(bb_ep_create(dev, "127.0.0.1:9", false, &attr, &ep));
	OK(bb_qp_addr(ep->qp, 1, 0, &addr));
	memcpy(path.dgid, addr.gid, sizeof(path.dgid));
	OK(bb_ah_create(ep->pd, &path, &ah));
	assert_int_equal(bb_ep_destroy(ep), -EBUSY);
	OK(bb_ah_destroy(ah));
	OK(bb_mw_alloc(ep->pd, BB_MW_TYPE_2, &mw));
	assert_int_equal(bb_ep_destroy(ep), -EBUSY);
	OK(bb_mw_free(mw));
	bb_srq_attr_init(&srq_attr);
	OK(bb_srq_create(ep->pd, &srq_attr, &srq));
	assert_int_equal(bb_ep_destroy(ep), -EBUSY);
	OK(bb_srq_destroy(srq));
	/* The refused calls changed nothing. */
	assert_non_null(ep->qp);

	OK(bb_cq_resize(ep->recv_cq, 64));
	attr.qp.recv_cq = ep->recv_cq;
	OK(bb_ep_create(dev, "127.0.0.1:9", false, &attr, &other));
	assert_int_equal(bb_ep_destroy(ep), -EBUSY);
	assert_int_equal(bb_ep_destroy(ep), -EBUSY);
	OK(bb_ep_destroy(other));
	OK(bb_ep_destroy(ep));
	OK(bb_dev_close(dev));
}

/* Waits until @n requests are queued and no further request is being read. */
static void
until_waiting(uint32_t n)
{
	const uint64_t end = wait_end();
	struct bb_cm_stats stats;

	do {
		(void)bb_ep_connected(listener);
		bb_cm_stats(listener->cm, &stats);
		assert_true(rte_get_tsc_cycles() < end);
	} while (stats.conns != n || stats.half_open != 0);
}

static uint32_t
number_of(const struct bb_ep *ep)
{
	uint32_t n = 0;

	assert_true(ep->event.private_len >= sizeof(n));
	memcpy(&n, ep->event.private_data, sizeof(n));
	return n;
}

/* The first of the queued peers closes: the others are accepted in order. */
TEST(test_queued_requests_are_accepted_in_order)
{
	struct bb_ep *ep[2], *none;
	struct bb_conn_info info;
	uint32_t i;
	int fds[3];

	listens();
	for (i = 0; i < 3; i++) {
		fds[i] = raw_request(i);
		until_waiting(i + 1);
	}
	close(fds[0]);
	until_waiting(2);
	for (i = 0; i < 2; i++) {
		OK(bb_ep_get_request(listener, &ep[i]));
		bb_conn_query(ep[i]->conn, &info);
		assert_int_equal(info.state, BB_CONN_REQUESTED);
		assert_int_equal(number_of(ep[i]), i + 1);
	}
	assert_int_equal(bb_ep_get_request(listener, &none), -ETIMEDOUT);
	assert_int_equal(bb_ep_get_request(ep[0], &none), -EINVAL);
	assert_int_equal(bb_ep_destroy(listener), -EBUSY);
	OK(bb_ep_reject(ep[0], NULL, 0));
	OK(bb_ep_disconnect(ep[0]));
	assert_int_equal(answered(fds[1]), BB_CM_REJ);
	for (i = 0; i < 2; i++) {
		OK(bb_ep_destroy(ep[i]));
		assert_int_equal(answered(fds[1 + i]), 0);
		close(fds[1 + i]);
	}
	OK(bb_ep_destroy(listener));
	OK(bb_dev_close(dev));
}

/* An endpoint does not recover, so it refuses to promise that to the peer. */
TEST(test_recovery_is_refused)
{
	struct bb_conn_param recovers;
	struct bb_ep_attr attr;
	struct bb_ep *ep;
	int fd;

	listens();
	bb_conn_param_init(&recovers);
	recovers.recover_ms = 1000;
	fd = raw_request(0);
	until_waiting(1);
	OK(bb_ep_get_request(listener, &ep));
	assert_int_equal(bb_ep_accept(ep, &recovers), -ENOTSUP);
	OK(bb_ep_destroy(ep));
	close(fd);
	bb_ep_attr_init(&attr);
	OK(bb_ep_create(dev, "127.0.0.1:1", false, &attr, &ep));
	assert_int_equal(bb_ep_connect(ep, &recovers), -ENOTSUP);
	assert_null(ep->conn);
	OK(bb_ep_destroy(ep));
	OK(bb_ep_destroy(listener));
	OK(bb_dev_close(dev));
}

/*
 * MANY requests are queued, and the next one is refused. Destroying the listener closes the
 * queued requests.
 */
TEST(test_request_over_the_queue_is_refused)
{
	int fds[MANY + 1];
	uint32_t i;
	char byte;

	listens();
	for (i = 0; i < MANY; i++) {
		fds[i] = raw_request(i);
		until_waiting(i + 1);
	}
	fds[i] = raw_request(i);
	assert_int_equal(answered(fds[i]), BB_CM_REJ);
	until_waiting(MANY);
	OK(bb_ep_destroy(listener));
	for (i = 0; i <= MANY; i++) {
		if (i < MANY)
			assert_true(recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN);
		close(fds[i]);
	}
	OK(bb_dev_close(dev));
}

/* The log says why an endpoint has no connection: its caller gets only an errno. */
TEST(test_endpoint_without_a_connection_logs_the_reason)
{
	struct sockaddr_storage silent;
	socklen_t len = sizeof(silent);
	struct bb_ep_attr attr;
	char where[32], *text = NULL;
	struct bb_ep *ep;
	size_t size = 0;
	FILE *log;
	int fd;

	listens();
	fd = socket(AF_INET, SOCK_STREAM, 0);
	OK(bb_cm_addr("127.0.0.1:0", &silent));
	assert_int_equal(bind(fd, (struct sockaddr *)&silent, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&silent, &len), 0);
	snprintf(where, sizeof(where), "127.0.0.1:%u",
		 ntohs(((struct sockaddr_in *)&silent)->sin_port));
	log = open_memstream(&text, &size);
	assert_non_null(log);
	rte_openlog_stream(log);
	rte_log_set_global_level(RTE_LOG_ERR);
	bb_ep_attr_init(&attr);
	assert_int_equal(bb_ep_create(dev, "localhost:18515", false, &attr, &ep), -EINVAL);
	OK(bb_ep_create(dev, where, false, &attr, &ep));
	assert_int_equal(bb_ep_connect(ep, NULL), -ECONNREFUSED);
	rte_log_set_global_level(RTE_LOG_CRIT);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_non_null(strstr(text, "invalid address \"localhost:18515\": give ADDRESS:PORT"));
	assert_non_null(strstr(text, "endpoint: connection failed: no process answers"));
	free(text);
	close(fd);
	OK(bb_ep_destroy(ep));
	OK(bb_ep_destroy(listener));
	OK(bb_dev_close(dev));
}

/*
 * Without parameters of the application the endpoint uses everything that the type and the device
 * support. The second time with the endpoint alone.
 */
TEST(test_endpoint_without_parameters_uses_all_rights)
{
	const uint32_t all =
		BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	struct bb_ep_attr attr;
	struct bb_ep *ep, *none;
	struct bb_mr *mr;
	char where[32];
	int uc;

	listens();
	snprintf(where, sizeof(where), "127.0.0.1:%u", bb_ep_port(listener));
	for (uc = 0; uc < 2; uc++) {
		bb_ep_attr_init(&attr);
		attr.timeout_ms = 5;
		attr.qp.type = uc ? BB_QPT_UC : BB_QPT_RC;
		OK(bb_ep_create(dev, where, false, &attr, &ep));
		assert_int_equal(bb_ep_get_request(ep, &none), -EINVAL);
		assert_int_equal(bb_ep_accept(ep, NULL), -EINVAL);
		assert_int_equal(bb_ep_connect(ep, NULL), -ETIMEDOUT);
		assert_int_equal(ep->conn->param.timeout_ms, 5);
		assert_int_equal(ep->conn->param.access, uc ? BB_ACCESS_REMOTE_WRITE : all);
		assert_int_equal(bb_ep_connect(ep, NULL), -EINVAL);
		assert_int_equal(bb_ep_accept(ep, NULL), -EINVAL);
		OK(bb_ep_reg_msgs(ep, where, sizeof(where), &mr));
		assert_int_equal(bb_ep_destroy(ep), -EBUSY);
		OK(bb_mr_dereg(mr));
		OK(bb_ep_destroy(ep));
	}
	OK(bb_ep_destroy(listener));
	OK(bb_dev_close(dev));
}

CONNECT_MAIN(RTE_LOG_CRIT)
