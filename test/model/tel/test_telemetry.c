/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Each endpoint of rte_telemetry through its socket: counters after known work, bad parameters,
 * and objects that are created and destroyed, and queues that work, during requests.
 */
#define ENV_TELEMETRY
#include "../mlx5/mlx5_env.h"
#include "telemetry_client.h"

#include <pthread.h>

#include "../../fakes/ring_port.h"

static struct tel client;
static struct ring_port port;

TEST(test_open_devices_are_listed)
{
	struct bb_dev *again;
	json_t *a;
	struct env e;

	a = tel_ask(&client, "/bluebell/device/list");
	assert_int_equal(json_array_size(a), 0);
	json_decref(a);
	env_start(&e);
	a = tel_ask(&client, "/bluebell/device/list");
	assert_int_equal(json_array_size(a), 1);
	assert_string_equal(json_string_value(json_array_get(a, 0)), "soft0");
	json_decref(a);
	a = tel_ask(&client, "/bluebell/device/info,soft0");
	assert_string_equal(tel_text(a, "name"), "soft0");
	assert_string_equal(tel_text(a, "port1_state"), "ACTIVE");
	assert_int_equal(tel_uint(a, "software"), 1);
	assert_int_equal(tel_uint(a, "pds"), 1);
	assert_int_equal(tel_uint(a, "cqs"), 2);
	assert_int_equal(tel_uint(a, "qps"), 2);
	assert_int_equal(tel_uint(a, "mrs"), 2);
	json_decref(a);

	/* A second open is a second device, with its own objects. */
	OK(bb_dev_open("soft0", &again));
	a = tel_ask(&client, "/bluebell/device/info,soft0#2");
	assert_string_equal(tel_text(a, "name"), "soft0#2");
	assert_int_equal(tel_uint(a, "qps"), 0);
	json_decref(a);
	OK(bb_dev_close(again));
	a = tel_ask(&client, "/bluebell/device/info,soft0#2");
	assert_non_null(strstr(tel_text(a, "error"), "/bluebell/device/list"));
	json_decref(a);
	env_stop(&e);
	a = tel_ask(&client, "/bluebell/device/info,soft0");
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
}

/* Posts eight WRITEs with one doorbell, the last of them signalled. */
static void
write_eight(struct env *e, unsigned int wait)
{
	struct bb_sge sge = sge_of(&e->a, 0, 64);
	unsigned int i;

	for (i = 0; i < 8; i++)
		OK(bb_post_write(e->a.qp, i, &sge, 1, raddr_of(&e->b, 4096), e->b.mr->rkey,
				 i == 7 ? BB_SEND_SIGNALED : 0));
	bb_qp_ring(e->a.qp);
	if (wait == 0)
		return;
	env_expect(e, &e->a, 7, BB_WC_SUCCESS);
}

ENV_TEST_OPEN(test_qp_is_listed_with_its_state_and_counters)
{
	struct bb_sge sge;
	json_t *a;

	e->init.sq_depth = 16;
	e->init.signal_every = 16;
	env_up(e);
	a = tel_ask(&client, "/bluebell/qp/list,soft0");
	assert_int_equal(tel_uint(a, "total"), 2);
	assert_true(tel_listed(a, "qps", e->a.qp->qpn));
	assert_true(tel_listed(a, "qps", e->b.qp->qpn));
	assert_null(json_object_get(a, "next"));
	json_decref(a);

	write_eight(e, 1);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e->a.qp->qpn);
	assert_string_equal(tel_text(a, "type"), "RC");
	assert_string_equal(tel_text(a, "state"), "RTS");
	assert_int_equal(tel_uint(a, "dest_qpn"), e->b.qp->qpn);
	assert_int_equal(tel_uint(a, "sq_depth"), 16);
	assert_int_equal(tel_uint(a, "sq_outstanding"), 0);
	assert_int_equal(tel_uint(a, "posted"), 8);
	assert_int_equal(tel_uint(a, "doorbells"), 1);
	assert_int_equal(tel_uint(a, "doorbells_per_1000_ops"), 125);
	assert_int_equal(tel_uint(a, "send_cqes"), 1);
	assert_int_equal(tel_uint(a, "signalled_per_1000_ops"), 125);
	assert_int_equal(tel_uint(a, "queue_full"), 0);
	assert_int_equal(tel_uint(a, "errors"), 0);
	json_decref(a);

	/* Unpolled requests count as outstanding; further posts until there is no room. */
	write_eight(e, 0);
	sge = sge_of(&e->a, 0, 64);
	while (bb_post_write(e->a.qp, 0, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, 0) == 0)
		;
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e->a.qp->qpn);
	assert_int_equal(tel_uint(a, "sq_outstanding"), 16);
	assert_int_equal(tel_uint(a, "sq_occupancy_permille"), 1000);
	assert_int_equal(tel_uint(a, "posted"), 24);
	assert_int_equal(tel_uint(a, "queue_full"), 1);
	json_decref(a);
	OK(bb_post_recv(e->b.qp, 1, &sge, 1));
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e->b.qp->qpn);
	assert_int_equal(tel_uint(a, "rq_outstanding"), 1);
	assert_int_equal(tel_uint(a, "recv_posted"), 1);
	json_decref(a);
}

ENV_TEST(test_cq_is_listed_with_its_counters)
{
	json_t *a;

	a = tel_ask(&client, "/bluebell/cq/list,soft0");
	assert_int_equal(tel_uint(a, "total"), 2);
	assert_true(tel_listed(a, "cqs", e->a.cq->cqn));
	json_decref(a);
	write_eight(e, 1);
	a = tel_ask_number(&client, "/bluebell/cq/info", "soft0", e->a.cq->cqn);
	assert_int_equal(tel_uint(a, "cqn"), e->a.cq->cqn);
	assert_int_equal(tel_uint(a, "depth"), 1024);
	assert_int_equal(tel_uint(a, "reserved"), e->init.sq_depth + e->init.rq_depth);
	assert_int_equal(tel_uint(a, "queues"), 2);
	assert_int_equal(tel_uint(a, "cqes"), 1);
	assert_int_equal(tel_uint(a, "errors"), 0);
	json_decref(a);
}

ENV_TEST_OPEN(test_regions_are_listed_with_their_range)
{
	struct bb_mr *mr;
	json_t *a;

	OK(bb_mr_reg(e->a.pd, e->a.buf + 4096, 8192, BB_ACCESS_REMOTE_READ, &mr));
	a = tel_ask(&client, "/bluebell/mr/list,soft0");
	assert_int_equal(tel_uint(a, "total"), 3);
	assert_true(tel_listed(a, "mrs", mr->lkey));
	json_decref(a);
	a = tel_ask_number(&client, "/bluebell/mr/info", "soft0", mr->rkey);
	assert_string_equal(tel_text(a, "kind"), "memory");
	assert_string_equal(tel_text(a, "access"), "remote_read");
	assert_int_equal(strtoull(tel_text(a, "addr"), NULL, 16), (uintptr_t)e->a.buf + 4096);
	assert_string_equal(tel_text(a, "iova"), tel_text(a, "addr"));
	assert_int_equal(tel_uint(a, "length"), 8192);
	assert_int_equal(tel_uint(a, "lkey"), mr->lkey);
	json_decref(a);
	a = tel_ask(&client, "/bluebell/mr/stats,soft0");
	assert_int_equal(tel_uint(a, "mrs"), 3);
	assert_int_equal(tel_uint(a, "bytes"), 2 * ENV_BUF + 8192);
	json_decref(a);
	OK(bb_mr_dereg(mr));
}

static unsigned int
one(void *arg)
{
	unsigned int *left = arg;

	return *left != 0 ? (*left)--, 1 : 0;
}

TEST(test_loop_is_listed_with_its_counters)
{
	struct bb_loop_attr attr;
	unsigned int left = 3;
	struct bb_loop *loop;
	uint64_t number;
	json_t *a;
	int i;

	bb_loop_attr_init(&attr);
	OK(bb_loop_create(&attr, &loop));
	assert_int_equal(bb_loop_attach_poller(loop, one, &left), 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(bb_loop_run_once(loop), i < 3);
	a = tel_ask(&client, "/bluebell/loop/list");
	assert_int_equal(tel_uint(a, "total"), 1);
	number = (uint64_t)json_integer_value(json_array_get(json_object_get(a, "loops"), 0));
	json_decref(a);
	a = tel_ask_number(&client, "/bluebell/loop/info", "", number);
	assert_int_equal(tel_uint(a, "lcore"), 0);
	assert_int_equal(tel_uint(a, "running"), 0);
	assert_int_equal(tel_uint(a, "iterations"), 10);
	assert_int_equal(tel_uint(a, "idle_iterations"), 7);
	assert_int_equal(tel_uint(a, "work"), 3);
	assert_true(tel_uint(a, "busy_cycles") > 0);
	assert_true(tel_uint(a, "idle_cycles") > 0);
	assert_in_range(tel_uint(a, "busy_permille"), 0, 1000);
	json_decref(a);
	OK(bb_loop_destroy(loop));
	a = tel_ask_number(&client, "/bluebell/loop/info", "", number);
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
}

/* The peer drops requests for a QP in ERR, and the requester retransmits them. */
TEST(test_drops_and_retransmissions_are_counted)
{
	struct bb_qp_attr attr;
	struct bb_sge sge;
	struct env e;
	json_t *a;

	env_open_spec(&e, "soft0,wire");
	env_qps(&e);
	/* 17 ms: a thread that does not run for that long only retransmits once more. */
	e.attr.timeout = 12;
	e.attr.retry_cnt = 2;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	write_eight(&e, 1);
	a = tel_ask(&client, "/bluebell/roce/drops,soft0");
	assert_int_equal(tel_uint(a, "drop_state"), 0);
	assert_int_equal(tel_uint(a, "drop_icrc"), 0);
	json_decref(a);
	a = tel_ask(&client, "/bluebell/roce/counters,soft0");
	assert_int_equal(tel_uint(a, "rx_write"), 8);
	assert_int_equal(tel_uint(a, "retry_exceeded"), 0);
	json_decref(a);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e.b.qp, &attr, BB_QP_STATE));
	sge = sge_of(&e.a, 0, 64);
	OK(bb_post_write(e.a.qp, 9, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey, BB_SEND_SIGNALED));
	env_done(&e, &e.a, 9, BB_WC_RETRY_EXC_ERR);
	a = tel_ask(&client, "/bluebell/roce/drops,soft0");
	assert_true(tel_uint(a, "drop_state") >= 3);
	json_decref(a);
	a = tel_ask(&client, "/bluebell/roce/counters,soft0");
	assert_true(tel_uint(a, "ack_timeout") >= 2);
	assert_int_equal(tel_uint(a, "retry_exceeded"), 1);
	json_decref(a);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e.a.qp->qpn);
	assert_string_equal(tel_text(a, "state"), "ERR");
	assert_int_equal(tel_uint(a, "errors"), 1);
	/* Includes early retransmissions, which use up none of retry_cnt. */
	assert_true(tel_uint(a, "retries") >= 2);
	json_decref(a);
	a = tel_ask_number(&client, "/bluebell/qp/info", "soft0", e.b.qp->qpn);
	assert_int_equal(tel_uint(a, "retries"), 0);
	json_decref(a);
	env_stop(&e);
}

TEST(test_bad_requests_get_an_error)
{
	static const char *const of_dev[] = {
		"/bluebell/device/info", "/bluebell/qp/list",    "/bluebell/cq/list",
		"/bluebell/mr/list",     "/bluebell/mr/stats",   "/bluebell/roce/counters",
		"/bluebell/roce/drops",  "/bluebell/port/drops", "/bluebell/cm/drops"};
	static const char *const of_number[] = {"/bluebell/qp/info", "/bluebell/cq/info",
						"/bluebell/mr/info"};
	static const char *const bad_devs[] = {
		"",        ",",        ",soft", ",soft00", ",soft0 ",   ",SOFT0", ",%s%n",
		",soft0#", ",soft0#1", ",\"",   ",\\",     ",\x01\xff", ",mlx5_0"};
	static const char *const bad_numbers[] = {
		"",           ",",   ",-1",  ",+1", ", 1", ",x",          ",0x",
		",1x",        ",1,", ",1,2", ",1.", ",0",  ",4294967296", ",99999999999999999999",
		",0xfffffff", ",\"", ",1 "};
	char request[700], filler[600];
	struct env e;
	json_t *a;
	size_t i, j;

	memset(filler, 'a', sizeof(filler));
	filler[sizeof(filler) - 1] = '\0';
	env_start(&e);
	for (i = 0; i < RTE_DIM(of_dev); i++) {
		for (j = 0; j < RTE_DIM(bad_devs); j++) {
			snprintf(request, sizeof(request), "%s%s", of_dev[i], bad_devs[j]);
			a = tel_ask(&client, request);
			assert_true(strlen(tel_text(a, "error")) > 10);
			json_decref(a);
		}
		snprintf(request, sizeof(request), "%s,%s", of_dev[i], filler);
		a = tel_ask(&client, request);
		assert_true(strlen(tel_text(a, "error")) > 10);
		json_decref(a);
	}
	for (i = 0; i < RTE_DIM(of_number); i++) {
		for (j = 0; j < RTE_DIM(bad_numbers); j++) {
			snprintf(request, sizeof(request), "%s,soft0%s", of_number[i],
				 bad_numbers[j]);
			a = tel_ask(&client, request);
			assert_true(strlen(tel_text(a, "error")) > 10);
			json_decref(a);
		}
	}
	for (j = 0; j < RTE_DIM(bad_numbers); j++) {
		snprintf(request, sizeof(request), "/bluebell/loop/info%s", bad_numbers[j]);
		a = tel_ask(&client, request);
		assert_non_null(json_object_get(a, "error"));
		json_decref(a);
	}
	a = tel_ask(&client, "/bluebell/qp/list,soft0,x");
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
	/* A page past the end is empty, and not an error. */
	a = tel_ask(&client, "/bluebell/qp/list,soft0,4000000000");
	assert_int_equal(json_array_size(json_object_get(a, "qps")), 0);
	assert_int_equal(tel_uint(a, "total"), 2);
	json_decref(a);
	env_stop(&e);
}

/* More QPs than a DPDK array can hold. */
ENV_TEST_OPEN(test_long_lists_come_in_pages)
{
	enum {
		MANY = 1100
	};
	static struct bb_qp *qps[MANY];
	struct bb_cq_attr cq_attr;
	struct bb_qp_init_attr init;
	uint64_t next = 0, seen = 0;
	struct bb_cq *cq;
	unsigned int i;
	json_t *a;

	bb_cq_attr_init(&cq_attr);
	cq_attr.depth = 2048;
	OK(bb_cq_create(e->a.dev, &cq_attr, &cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = cq;
	init.sq_depth = 1;
	init.rq_depth = 0;
	for (i = 0; i < MANY; i++)
		OK(bb_qp_create(e->a.pd, &init, &qps[i]));
	do {
		const json_t *list, *more;

		a = tel_ask_number(&client, "/bluebell/qp/list", "soft0", next);
		list = json_object_get(a, "qps");
		assert_int_equal(tel_uint(a, "total"), MANY);
		for (i = 0; i < json_array_size(list); i++)
			assert_int_equal(json_integer_value(json_array_get(list, i)),
					 qps[seen++]->qpn);
		more = json_object_get(a, "next");
		next = (uint64_t)json_integer_value(more);
		assert_true(more == NULL || next == seen);
		json_decref(a);
	} while (next != 0);
	assert_int_equal(seen, MANY);
	for (i = 0; i < MANY; i++)
		OK(bb_qp_destroy(qps[i]));
	OK(bb_cq_destroy(cq));
}

struct asker {
	pthread_t thread;
	uint64_t answers; /* accessed with __atomic */
	int stop;         /* accessed with __atomic */
};

/*
 * Requests lists, then each object of the list; a destroyed object must give an error, not
 * another object.
 */
static void *
ask_on(void *arg)
{
	static const char *const kinds[][3] = {{"/bluebell/qp/list", "/bluebell/qp/info", "qps"},
					       {"/bluebell/cq/list", "/bluebell/cq/info", "cqs"},
					       {"/bluebell/mr/list", "/bluebell/mr/info", "mrs"}};
	struct asker *self = arg;
	static struct tel t;
	size_t i, k;

	tel_connect(&t);
	while (!__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE)) {
		for (k = 0; k < RTE_DIM(kinds); k++) {
			char request[64];
			json_t *a, *of;

			snprintf(request, sizeof(request), "%s,soft0", kinds[k][0]);
			a = tel_ask(&t, request);
			__atomic_fetch_add(&self->answers, 1, __ATOMIC_RELAXED);
			for (i = 0; i < json_array_size(json_object_get(a, kinds[k][2])); i++) {
				json_t *n = json_array_get(json_object_get(a, kinds[k][2]), i);

				of = tel_ask_number(&t, kinds[k][1], "soft0",
						    (uint64_t)json_integer_value(n));
				assert_true(json_is_object(of));
				if (k == 0 && json_object_get(of, "error") == NULL) {
					assert_in_range(tel_uint(of, "sq_outstanding"), 0,
							tel_uint(of, "sq_depth"));
					assert_true(tel_uint(of, "posted") < 1000000);
				}
				json_decref(of);
				__atomic_fetch_add(&self->answers, 1, __ATOMIC_RELAXED);
			}
			json_decref(a);
		}
		json_decref(tel_ask(&t, "/bluebell/device/info,soft0"));
		json_decref(tel_ask(&t, "/bluebell/roce/counters,soft0"));
		json_decref(tel_ask(&t, "/bluebell/roce/drops,soft0"));
		json_decref(tel_ask(&t, "/bluebell/port/drops,soft0"));
	}
	tel_close(&t);
	return NULL;
}

TEST(test_requests_during_open_and_close_are_answered)
{
	struct asker asker = {0};
	char spec[128];
	struct env e;
	uint64_t end;
	unsigned int i, j;

	snprintf(spec, sizeof(spec), "soft0,port=%s,ip=192.0.2.1/24", port.name);
	assert_int_equal(pthread_create(&asker.thread, NULL, ask_on, &asker), 0);
	/* Repeats until the other thread has got enough answers. */
	end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	for (i = 0; i < 10 || (__atomic_load_n(&asker.answers, __ATOMIC_RELAXED) < 200 &&
			       rte_get_timer_cycles() < end);
	     i++) {
		/* Every second device has a port. */
		env_open_spec(&e, i % 2 == 0 ? "soft0" : spec);
		env_up(&e);
		for (j = 0; j < 20; j++) {
			struct bb_qp *spare = e.b.qp;
			struct bb_mr *mr;

			write_eight(&e, 1);
			side_qp(&e, &e.b);
			OK(bb_qp_destroy(e.b.qp));
			e.b.qp = spare;
			OK(bb_mr_reg(e.a.pd, e.a.buf, 4096, 0, &mr));
			OK(bb_mr_dereg(mr));
		}
		env_stop(&e);
	}
	__atomic_store_n(&asker.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(asker.thread, NULL), 0);
	assert_true(asker.answers >= 200);
}

int
main(void)
{
	return tel_main("telemetry", __FILE__, &client, &port);
}
