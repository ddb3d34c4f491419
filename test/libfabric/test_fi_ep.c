/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections, and the life of objects: what may be closed when, and what is reported. */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "pair.h"

static const struct want plain;

TEST(test_connect_accept_and_data_in_both_directions)
{
	struct sockaddr_storage any;
	const size_t size = pair_addr(&any, 0);
	struct pair p;
	char addr[64], to[64];
	size_t len = sizeof(addr), to_len = sizeof(to);

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	assert_int_equal(p.data_len, 5);
	assert_memory_equal(p.data, "hello", 5);
	OK(fi_getpeer(p.b.ep, addr, &len));
	assert_int_equal(len, size);
	/* The peer of the connecting side is the address of fi_connect(). */
	OK(fi_getname(&p.pep->fid, to, &to_len));
	OK(fi_getpeer(p.a.ep, addr, &len));
	assert_int_equal(len, size);
	assert_memory_equal(addr, to, size);
	len = 2;
	assert_int_equal(fi_getname(&p.pep->fid, addr, &len), -FI_ETOOSMALL);
	assert_int_equal(len, size);
	pair_close(&p);
}

TEST(test_a_rejection_brings_its_data)
{
	const struct want w = {.reject = 13};
	struct fi_eq_err_entry err;
	struct pair p;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	err = event_error(&p);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_ptr_equal(err.fid, &p.a.ep->fid);
	assert_ptr_equal(err.context, &p.a);
	assert_int_equal(err.err_data_size, 13);
	assert_memory_equal(err.err_data, "no, thank you", 13);
	pair_close(&p);
}

TEST(test_nobody_listens)
{
	struct sockaddr_storage to;
	struct fi_eq_err_entry err;
	size_t max, len = sizeof(max);
	struct pair p;

	pair_addr(&to, 1);
	pair_open(&p, &plain);
	OK(fi_endpoint(p.domain, p.info, &p.a.ep, NULL));
	OK(fi_ep_bind(p.a.ep, &p.a.cq->fid, FI_TRANSMIT | FI_RECV));
	assert_int_equal(fi_connect(p.a.ep, &to, NULL, 0), -FI_ENOEQ);
	OK(fi_ep_bind(p.a.ep, &p.eq->fid, 0));
	OK(fi_getopt(&p.a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max, &len));
	assert_int_equal(max, getenv("PAIR_IP") != NULL ? 55 : 256);
	assert_int_equal(fi_connect(p.a.ep, &to, NULL, max + 1), -FI_EINVAL);
	OK(fi_connect(p.a.ep, &to, NULL, 0));
	assert_int_equal(fi_connect(p.a.ep, &to, NULL, 0), -FI_EISCONN);
	err = event_error(&p);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_string_equal(fi_eq_strerror(p.eq, err.prov_errno, err.err_data, NULL, 0),
			    fi_strerror(FI_ECONNREFUSED));
	pair_close(&p);
}

/* Both sides get one event, as with libfabric's providers tcp and verbs. */
static void
both_shut_down(struct pair *p)
{
	struct fi_eq_cm_entry e;
	fid_t first;

	event_wait(p, FI_SHUTDOWN, &e, sizeof(e));
	first = e.fid;
	event_wait(p, FI_SHUTDOWN, &e, sizeof(e));
	assert_true((first == &p->a.ep->fid && e.fid == &p->b.ep->fid) ||
		    (first == &p->b.ep->fid && e.fid == &p->a.ep->fid));
}

TEST(test_shutdown_is_an_event_of_both_sides_and_cancels_what_is_posted)
{
	struct fi_cq_err_entry err;
	struct pair p;
	int context;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, &context));
	OK(fi_shutdown(p.a.ep, 0));
	both_shut_down(&p);
	err = failed(&p.b);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &context);
	assert_int_equal(err.flags & (FI_RECV | FI_SEND), FI_RECV);
	pair_close(&p);
}

/* fi_cm_data of fabtests: each side calls fi_shutdown(), and waits for its event. */
TEST(test_shutdown_of_both_sides_is_one_event_each)
{
	struct pair p;
	int ret;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	OK(fi_shutdown(p.a.ep, 0));
	ret = fi_shutdown(p.b.ep, 0);
	assert_true(ret == 0 || ret == -FI_ENOTCONN);
	both_shut_down(&p);
	none(&p);
	assert_int_equal(fi_shutdown(p.a.ep, 0), -FI_ENOTCONN);
	assert_int_equal(fi_shutdown(p.b.ep, 0), -FI_ENOTCONN);
	none(&p);
	pair_close(&p);
}

TEST(test_closing_an_endpoint_gives_its_buffers_back)
{
	struct fi_cq_err_entry err;
	struct pair p;
	int context[3], i;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	for (i = 0; i < 3; i++)
		OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, &context[i]));
	OK(fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
	for (i = 0; i < 3; i++) {
		err = failed(&p.b);
		assert_int_equal(err.err, FI_ECANCELED);
		assert_ptr_equal(err.op_context, &context[i]);
	}
	pair_close(&p);
}

TEST(test_closing_an_endpoint_keeps_messages_in_buffers_of_a_shared_receive_context)
{
	const struct want w = {.shared = true};
	struct fi_cq_data_entry e;
	struct pair p;
	int i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	for (i = 0; i < 100; i++)
		OK(fi_recv(p.srx, p.b.mem, 64, p.b.desc, 0, NULL));
	for (i = 0; i < 100; i++) {
		OK(fi_send(p.a.ep, p.a.mem, 8, p.a.desc, 0, NULL));
		done(&p.a);
	}
	OK(fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
	for (i = 0; fi_cq_read(p.b.cq, &e, 1) == 1; i++)
		assert_int_equal(e.len, 8);
	assert_int_equal(i, 100);
	pair_close(&p);
}

/* ofi_rxm uses the context of each entry, and an injected message has none. */
TEST(test_closing_an_endpoint_reports_nothing_of_injected_messages)
{
	struct fi_cq_data_entry e;
	struct pair p;
	int i;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	/* The peer has no receive, so the messages stay outstanding. */
	for (i = 0; i < 3; i++)
		OK(fi_inject(p.a.ep, "injected", 8, 0));
	OK(fi_close(&p.a.ep->fid));
	p.a.ep = NULL;
	assert_int_equal(fi_cq_read(p.a.cq, &e, 1), -FI_EAGAIN);
	pair_close(&p);
}

TEST(test_objects_in_use_cannot_be_closed)
{
	const struct want w = {.shared = true, .counters = true};
	struct pair p;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	assert_int_equal(fi_close(&p.a.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&p.eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&p.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&p.fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&p.srx->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&p.a.sent->fid), -FI_EBUSY);
	pair_close(&p);
}

TEST(test_an_endpoint_needs_its_queues)
{
	struct fid_ep *ep;
	struct pair p;

	pair_open(&p, &plain);
	OK(fi_endpoint(p.domain, p.info, &ep, NULL));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_send(ep, p.a.mem, 8, p.a.desc, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(ep, p.a.mem, 8, p.a.desc, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_ep_bind(ep, &p.a.cq->fid, FI_TRANSMIT));
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &p.a.cq->fid, FI_TRANSMIT), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &p.a.cq->fid, FI_RECV | FI_REMOTE_WRITE), -FI_EBADFLAGS);
	OK(fi_ep_bind(ep, &p.b.cq->fid, FI_RECV));
	OK(fi_enable(ep));
	assert_int_equal(fi_ep_bind(ep, &p.eq->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_accept(ep, NULL, 0), -FI_ENOEQ);
	OK(fi_close(&ep->fid));
	pair_close(&p);
}

TEST(test_a_passive_endpoint_refuses_while_it_does_not_listen)
{
	struct fi_eq_err_entry err;
	struct fid_pep *quiet;
	struct pair p;
	char addr[64];
	size_t len = sizeof(addr);

	pair_open(&p, &plain);
	OK(fi_passive_ep(p.fabric, p.info, &quiet, NULL));
	assert_int_equal(fi_listen(quiet), -FI_ENOEQ);
	OK(fi_getname(&quiet->fid, addr, &len));
	OK(fi_endpoint(p.domain, p.info, &p.a.ep, NULL));
	OK(fi_ep_bind(p.a.ep, &p.eq->fid, 0));
	OK(fi_ep_bind(p.a.ep, &p.a.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_connect(p.a.ep, addr, NULL, 0));
	err = event_error(&p);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	OK(fi_close(&quiet->fid));
	pair_close(&p);
}

TEST(test_a_request_that_is_not_accepted_ends_with_the_passive_endpoint)
{
	struct fi_eq_cm_entry e;
	struct pair p;
	char addr[64];
	size_t len = sizeof(addr);

	pair_open(&p, &plain);
	OK(fi_getname(&p.pep->fid, addr, &len));
	OK(fi_endpoint(p.domain, p.info, &p.a.ep, NULL));
	OK(fi_ep_bind(p.a.ep, &p.eq->fid, 0));
	OK(fi_ep_bind(p.a.ep, &p.a.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_connect(p.a.ep, addr, NULL, 0));
	event_wait(&p, FI_CONNREQ, &e, sizeof(e));
	fi_freeinfo(e.info);
	pair_close(&p);
}

TEST(test_event_queue_reads)
{
	struct fi_eq_entry entry = {.data = 42}, got = {0};
	struct fi_eq_err_entry err;
	struct pair p;
	uint32_t type;

	pair_open(&p, &plain);
	assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_readerr(p.eq, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_write(p.eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got) - 1, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got), FI_PEEK), sizeof(got));
	assert_int_equal(got.data, 42);
	assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(type, FI_NOTIFY);
	assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got), 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(p.eq, &type, &got, sizeof(got), 1, 0), -FI_ENOSYS);
	pair_close(&p);
}

TEST(test_waits)
{
	const struct want w = {.wait = FI_WAIT_FD};
	struct fi_cq_data_entry e;
	struct fi_eq_entry entry = {0};
	struct fid *fids[2];
	struct pollfd fd = {.events = POLLIN};
	enum fi_wait_obj obj[2] = {FI_WAIT_NONE, FI_WAIT_NONE};
	struct pair p;
	uint32_t type;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	/* ofi_rxm asks for them. */
	OK(fi_control(&p.a.cq->fid, FI_GETWAITOBJ, &obj[0]));
	OK(fi_control(&p.eq->fid, FI_GETWAITOBJ, &obj[1]));
	assert_true(obj[0] == FI_WAIT_FD && obj[1] == FI_WAIT_FD);
	assert_int_equal(fi_eq_sread(p.eq, &type, &entry, sizeof(entry), 1, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(p.a.cq, &e, 1, NULL, 1), -FI_EAGAIN);
	OK(fi_cq_signal(p.a.cq));
	assert_int_equal(fi_cq_sread(p.a.cq, &e, 1, NULL, -1), -FI_ECANCELED);
	/* A signal ends one wait of fi_trywait(), too. */
	fids[0] = &p.a.cq->fid;
	OK(fi_cq_signal(p.a.cq));
	assert_int_equal(fi_trywait(p.fabric, fids, 1), -FI_EAGAIN);
	OK(fi_trywait(p.fabric, fids, 1));
	assert_int_equal(fi_cq_sread(p.a.cq, &e, 1, NULL, 1), -FI_EAGAIN);
	/* The descriptor wakes a sleeper, whose read runs the device. */
	OK(fi_control(&p.b.cq->fid, FI_GETWAIT, &fd.fd));
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	OK(fi_inject(p.a.ep, "wake up", 7, 0));
	fids[0] = &p.b.cq->fid;
	fids[1] = &p.eq->fid;
	while (fi_trywait(p.fabric, fids, 2) == 0)
		assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(fi_cq_sread(p.b.cq, &e, 1, NULL, -1), 1);
	assert_int_equal(e.len, 7);
	/* An event makes the descriptor of its queue readable. */
	OK(fi_control(&p.eq->fid, FI_GETWAIT, &fd.fd));
	assert_int_equal(fi_eq_write(p.eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(fi_trywait(p.fabric, &fids[1], 1), -FI_EAGAIN);
	pair_close(&p);
}

static void
ignore(int signal)
{
	(void)signal;
}

TEST(test_a_signal_ends_a_wait_as_a_timeout_does)
{
	const struct want w = {.wait = FI_WAIT_FD};
	const struct itimerval every = {{.tv_usec = 300}, {.tv_usec = 300}}, never = {0};
	const struct sigaction interrupt = {.sa_handler = ignore};
	struct fi_cq_data_entry c;
	struct fi_eq_cm_entry e;
	struct pair p;
	uint32_t type;

	pair_open(&p, &w);
	assert_int_equal(sigaction(SIGALRM, &interrupt, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(fi_cq_sread(p.a.cq, &c, 1, NULL, -1), -FI_EAGAIN);
		assert_int_equal(fi_eq_sread(p.eq, &type, &e, sizeof(e), -1, 0), -FI_EAGAIN);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	pair_close(&p);
}

TEST_MAIN(0)
