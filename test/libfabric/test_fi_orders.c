/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Calls in unusual orders: requests that are answered twice, ends of connections that are being
 * established, and queues with more entries than their size.
 */
#include <netinet/in.h>
#include <string.h>

#include "pair.h"

#define MANY 40

static const struct want plain;

/* Opens an endpoint that connects to the passive endpoint of @p. */
static struct fid_ep *
client(struct pair *p)
{
	struct fid_ep *ep;
	char addr[64];
	size_t len = sizeof(addr);

	OK(fi_getname(&p->pep->fid, addr, &len));
	OK(fi_endpoint(p->domain, p->info, &ep, NULL));
	OK(fi_ep_bind(ep, &p->eq->fid, 0));
	OK(fi_ep_bind(ep, &p->a.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_connect(ep, addr, NULL, 0));
	return ep;
}

/* Waits for the request of a client. The caller frees the result. */
static struct fi_info *
request(struct pair *p)
{
	struct fi_eq_cm_entry e;

	event_wait(p, FI_CONNREQ, &e, sizeof(e));
	return e.info;
}

/* Opens and accepts an endpoint of the request @info, and waits for both events. */
static void
accept_both(struct pair *p, struct fi_info *info)
{
	struct fi_eq_cm_entry e;

	pair_endpoint(p, &p->b, info, &plain);
	OK(fi_accept(p->b.ep, NULL, 0));
	event_wait(p, FI_CONNECTED, &e, sizeof(e));
	event_wait(p, FI_CONNECTED, &e, sizeof(e));
}

TEST(test_a_request_has_one_endpoint)
{
	struct fi_info *info;
	struct fid_ep *second;
	struct pair p;
	fid_t handle;

	pair_open(&p, &plain);
	p.a.ep = client(&p);
	info = request(&p);
	pair_endpoint(&p, &p.b, info, &plain);
	assert_int_equal(fi_endpoint(p.domain, info, &second, NULL), -FI_EINVAL);
	OK(fi_close(&p.b.ep->fid));
	/* The request ended with its endpoint. */
	assert_int_equal(event_error(&p).fid == &p.a.ep->fid, true);
	assert_int_equal(fi_endpoint(p.domain, info, &second, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(p.pep, info->handle, NULL, 0), -FI_EINVAL);
	handle = info->handle;
	info->handle = &p.eq->fid;
	assert_int_equal(fi_endpoint(p.domain, info, &second, NULL), -FI_EINVAL);
	info->handle = handle;
	fi_freeinfo(info);
	p.b.ep = NULL;
	pair_close(&p);
}

/* fabtests do this if an endpoint of the request cannot be set up. */
TEST(test_a_request_with_an_endpoint_can_be_rejected)
{
	struct fi_eq_err_entry err;
	struct fi_info *info;
	struct pair p;

	pair_open(&p, &plain);
	p.a.ep = client(&p);
	info = request(&p);
	pair_endpoint(&p, &p.b, info, &plain);
	OK(fi_reject(p.pep, info->handle, "no", 2));
	assert_int_equal(fi_reject(p.pep, info->handle, "no", 2), -FI_EINVAL);
	err = event_error(&p);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_ptr_equal(err.fid, &p.a.ep->fid);
	assert_int_equal(err.err_data_size, 2);
	assert_int_equal(fi_accept(p.b.ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_shutdown(p.b.ep, 0), -FI_ENOTCONN);
	fi_freeinfo(info);
	pair_close(&p);
}

TEST(test_an_accepted_request_cannot_be_answered_again)
{
	struct fi_info *info;
	struct fid_ep *second;
	struct pair p;

	pair_open(&p, &plain);
	p.a.ep = client(&p);
	info = request(&p);
	accept_both(&p, info);
	assert_int_not_equal(fi_accept(p.b.ep, NULL, 0), 0);
	assert_int_equal(fi_reject(p.pep, info->handle, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_endpoint(p.domain, info, &second, NULL), -FI_EINVAL);
	assert_int_not_equal(fi_accept(p.a.ep, NULL, 0), 0);
	/* The connection works all the same. */
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
	done(&p.a);
	done(&p.b);
	fi_freeinfo(info);
	pair_close(&p);
}

/* The listening side learns that the client has gone when it accepts, or by an event. */
TEST(test_a_client_that_closes_while_it_connects)
{
	struct fi_eq_err_entry err;
	struct fi_eq_cm_entry e;
	struct fi_info *info;
	struct fid_ep *ep;
	struct pair p;
	uint32_t type;
	ssize_t n;
	int i, ret;

	pair_open(&p, &plain);
	for (i = 0; i < MANY; i++) {
		ep = client(&p);
		if (i % 2 == 0)
			OK(fi_close(&ep->fid));
		/* A request may have been sent, or not. */
		for (n = 0; n != 1000; n++)
			if (fi_eq_read(p.eq, &type, &e, sizeof(e), 0) == sizeof(e))
				break;
		if (i % 2 != 0)
			OK(fi_close(&ep->fid));
		if (n == 1000)
			continue;
		assert_int_equal(type, FI_CONNREQ);
		info = e.info;
		pair_endpoint(&p, &p.b, info, &plain);
		ret = fi_accept(p.b.ep, NULL, 0);
		fi_freeinfo(info);
		if (ret == 0)
			while (fi_eq_read(p.eq, &type, &e, sizeof(e), 0) == -FI_EAGAIN)
				;
		OK(fi_close(&p.b.ep->fid));
		while (fi_eq_readerr(p.eq, &err, 0) > 0 ||
		       fi_eq_read(p.eq, &type, &e, sizeof(e), 0) > 0)
			;
	}
	p.b.ep = NULL;
	/* The listener serves the next client. */
	while (fi_eq_read(p.eq, &type, &e, sizeof(e), 0) > 0)
		if (type == FI_CONNREQ) {
			fi_reject(p.pep, e.info->handle, NULL, 0);
			fi_freeinfo(e.info);
		}
	p.a.ep = client(&p);
	info = request(&p);
	accept_both(&p, info);
	fi_freeinfo(info);
	pair_close(&p);
}

TEST(test_shutdown_before_the_connection_is_established)
{
	struct fi_info *info;
	struct fid_ep *ep;
	struct pair p;

	pair_open(&p, &plain);
	OK(fi_endpoint(p.domain, p.info, &ep, NULL));
	assert_int_equal(fi_shutdown(ep, 0), -FI_ENOTCONN);
	assert_int_equal(fi_shutdown(ep, 1), -FI_EBADFLAGS);
	OK(fi_close(&ep->fid));
	p.a.ep = client(&p);
	info = request(&p);
	pair_endpoint(&p, &p.b, info, &plain);
	/* A request is rejected and not shut down. */
	assert_int_equal(fi_shutdown(p.b.ep, 0), -FI_EINVAL);
	OK(fi_shutdown(p.a.ep, 0));
	assert_int_equal(fi_shutdown(p.a.ep, 0), -FI_ENOTCONN);
	assert_ptr_equal(event_error(&p).fid, &p.a.ep->fid);
	fi_freeinfo(info);
	pair_close(&p);
}

/* Requests that the application has not read do not outlive the passive endpoint. */
TEST(test_a_passive_endpoint_that_closes_ends_all_requests)
{
	struct fid_ep *eps[MANY];
	struct fi_eq_err_entry err;
	struct fid_pep *pep;
	struct pair p;
	char addr[64];
	size_t len = sizeof(addr);
	unsigned int i, k, seen = 0;

	pair_open(&p, &plain);
	OK(fi_passive_ep(p.fabric, p.info, &pep, NULL));
	OK(fi_pep_bind(pep, &p.eq->fid, 0));
	OK(fi_listen(pep));
	OK(fi_getname(&pep->fid, addr, &len));
	for (i = 0; i < MANY; i++) {
		OK(fi_endpoint(p.domain, p.info, &eps[i], NULL));
		OK(fi_ep_bind(eps[i], &p.eq->fid, 0));
		OK(fi_ep_bind(eps[i], &p.a.cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_connect(eps[i], addr, NULL, 0));
	}
	/* Runs the device: some requests arrive, and their events stay unread. */
	for (i = 0; i < 1000; i++)
		(void)fi_trywait(p.fabric, NULL, 0);
	OK(fi_close(&pep->fid));
	for (i = 0; i < MANY; i++) {
		err = event_error(&p);
		for (k = 0; k < MANY && err.fid != &eps[k]->fid; k++)
			;
		assert_true(k < MANY);
		seen++;
		assert_int_not_equal(err.err, 0);
	}
	assert_int_equal(seen, MANY);
	for (i = 0; i < MANY; i++)
		OK(fi_close(&eps[i]->fid));
	pair_close(&p);
}

TEST(test_a_passive_endpoint_listens_only_at_an_address_that_it_has)
{
	struct sockaddr_storage own;
	struct sockaddr_in other = {.sin_family = AF_INET};
	const size_t size = pair_addr(&own, 0);
	struct fi_info *info;
	struct pair p;

	other.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documentation */
	pair_open(&p, &plain);
	OK(fi_close(&p.pep->fid));
	OK(fi_passive_ep(p.fabric, p.info, &p.pep, NULL));
	OK(fi_pep_bind(p.pep, &p.eq->fid, 0));
	assert_int_not_equal(fi_setname(&p.pep->fid, &other, sizeof(other)), 0);
	assert_int_not_equal(fi_listen(p.pep), 0);
	assert_int_equal(fi_setname(&p.pep->fid, &own, 2), -FI_EINVAL);
	OK(fi_setname(&p.pep->fid, &own, size));
	OK(fi_listen(p.pep));
	assert_int_equal(fi_setname(&p.pep->fid, &own, size), -FI_EBUSY);
	p.a.ep = client(&p);
	info = request(&p);
	accept_both(&p, info);
	fi_freeinfo(info);
	pair_close(&p);
}

/* An event queue grows: its size is only a hint. */
TEST(test_more_events_than_the_size_of_the_queue)
{
	struct fi_eq_attr attr = {.size = 1};
	struct fi_eq_entry entry = {0}, got;
	struct fi_eq_cm_entry e;
	struct pair p;
	uint32_t type;
	uint64_t i;

	pair_open(&p, &plain);
	OK(fi_close(&p.pep->fid));
	OK(fi_close(&p.eq->fid));
	OK(fi_eq_open(p.fabric, &attr, &p.eq, NULL));
	OK(fi_passive_ep(p.fabric, p.info, &p.pep, NULL));
	OK(fi_pep_bind(p.pep, &p.eq->fid, 0));
	OK(fi_listen(p.pep));
	pair_connect(&p, &plain);
	for (i = 0; i < 1000; i++) {
		entry.data = i;
		assert_int_equal(fi_eq_write(p.eq, FI_NOTIFY, &entry, sizeof(entry), 0),
				 sizeof(entry));
	}
	OK(fi_shutdown(p.a.ep, 0));
	for (i = 0; i < 1000; i++) {
		assert_int_equal(fi_eq_read(p.eq, &type, &got, sizeof(got), 0), sizeof(got));
		assert_int_equal(type, FI_NOTIFY);
		assert_int_equal(got.data, i);
	}
	event_wait(&p, FI_SHUTDOWN, &e, sizeof(e));
	pair_close(&p);
}

TEST_MAIN(0)
