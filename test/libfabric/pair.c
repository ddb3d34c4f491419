/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define LIMIT_S 60 /* a busy machine may take long */

static time_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Gives the device the address in PAIR_IP. Its fabric has the name of the first process, which
 * other processes of the test find in PAIR_FABRIC.
 */
static void __attribute__((constructor)) set_device(void)
{
	const char *ip = getenv("PAIR_IP");
	char spec[128], fabric[32];

	if (ip == NULL)
		return;
	snprintf(fabric, sizeof(fabric), "pair-%d", (int)getpid());
	setenv("PAIR_FABRIC", fabric, 0);
	snprintf(spec, sizeof(spec), "soft0,shm=%s,ip=%s/%d", getenv("PAIR_FABRIC"), ip,
		 strchr(ip, ':') != NULL ? 64 : 24);
	setenv("FI_BLUEBELL_DEVICE", spec, 1);
}

const char *
pair_ip(void)
{
	const char *ip = getenv("PAIR_IP");

	return ip != NULL ? ip : "127.0.0.1";
}

size_t
pair_addr(struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr_in *in = (void *)addr;
	struct sockaddr_in6 *in6 = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	in->sin_port = htons(port); /* sin6_port has the same offset */
	if (inet_pton(AF_INET, pair_ip(), &in->sin_addr) == 1) {
		addr->ss_family = AF_INET;
		return sizeof(*in);
	}
	assert_int_equal(inet_pton(AF_INET6, pair_ip(), &in6->sin6_addr), 1);
	addr->ss_family = AF_INET6;
	return sizeof(*in6);
}

struct fi_info *
hints_of(uint64_t caps)
{
	struct fi_info *h = fi_allocinfo();

	assert_non_null(h);
	h->caps = caps;
	h->mode = FI_RX_CQ_DATA;
	h->ep_attr->type = FI_EP_MSG;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->fabric_attr->prov_name = strdup("bluebell");
	return h;
}

ssize_t
event_wait(struct pair *p, uint32_t type, void *buf, size_t len)
{
	const time_t end = now() + LIMIT_S;
	uint32_t got = UINT32_MAX;
	ssize_t n;

	do
		n = fi_eq_read(p->eq, &got, buf, len, 0);
	while (n == -FI_EAGAIN && now() < end);
	if (n < 0)
		fail_msg("event %u expected, fi_eq_read() gave %zd", type, n);
	assert_int_equal(got, type);
	return n;
}

struct fi_eq_err_entry
event_error(struct pair *p)
{
	const time_t end = now() + LIMIT_S;
	struct fi_eq_err_entry err = {0};
	struct fi_eq_cm_entry entry;
	uint32_t type;
	ssize_t n;

	do
		n = fi_eq_read(p->eq, &type, &entry, sizeof(entry), 0);
	while (n == -FI_EAGAIN && now() < end);
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(p->eq, &err, 0), sizeof(err));
	return err;
}

struct fi_cq_data_entry
done(struct side *s)
{
	const time_t end = now() + LIMIT_S;
	struct fi_cq_data_entry e = {0};
	struct fi_cq_err_entry err = {0};
	ssize_t n;

	do
		n = fi_cq_read(s->cq, &e, 1);
	while (n == -FI_EAGAIN && now() < end);
	if (n == -FI_EAVAIL) {
		fi_cq_readerr(s->cq, &err, 0);
		fail_msg("completion failed: %s", fi_strerror(err.err));
	}
	assert_int_equal(n, 1);
	return e;
}

struct fi_cq_err_entry
failed(struct side *s)
{
	const time_t end = now() + LIMIT_S;
	struct fi_cq_err_entry err = {0};
	struct fi_cq_data_entry e;
	ssize_t n;

	do
		n = fi_cq_read(s->cq, &e, 1);
	while (n == -FI_EAGAIN && now() < end);
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(s->cq, &err, 0), 1);
	return err;
}

void
none(struct pair *p)
{
	struct fi_cq_data_entry e;
	struct fi_eq_cm_entry c;
	uint32_t type;
	int i;

	for (i = 0; i < 100; i++) {
		assert_int_equal(fi_cq_read(p->a.cq, &e, 1), -FI_EAGAIN);
		assert_int_equal(fi_cq_read(p->b.cq, &e, 1), -FI_EAGAIN);
		assert_int_equal(fi_eq_read(p->eq, &type, &c, sizeof(c), 0), -FI_EAGAIN);
	}
}

static void
side_open(struct pair *p, struct side *s, const struct want *w)
{
	struct fi_cq_attr cq = {
		.format = w->format != FI_CQ_FORMAT_UNSPEC ? w->format : FI_CQ_FORMAT_DATA,
		.wait_obj = w->wait,
	};
	struct fi_cntr_attr cntr = {.wait_obj = FI_WAIT_UNSPEC};
	const uint64_t access =
		FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct fid_cntr **all[] = {&s->sent, &s->received, &s->read, &s->written};
	unsigned int i;

	OK(fi_cq_open(p->domain, &cq, &s->cq, NULL));
	s->mem = calloc(1, MEM);
	assert_non_null(s->mem);
	OK(fi_mr_reg(p->domain, s->mem, MEM, access, 0, 0, 0, &s->mr, NULL));
	s->desc = fi_mr_desc(s->mr);
	s->key = fi_mr_key(s->mr);
	if (w->counters)
		for (i = 0; i < 4; i++)
			OK(fi_cntr_open(p->domain, &cntr, all[i], NULL));
}

void
pair_endpoint(struct pair *p, struct side *s, struct fi_info *info, const struct want *w)
{
	struct fid_cntr *const all[] = {s->sent, s->received, s->read, s->written};
	const uint64_t kinds[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
	unsigned int i;

	OK(fi_endpoint(p->domain, info, &s->ep, s));
	OK(fi_ep_bind(s->ep, &p->eq->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV | w->selective));
	if (p->srx != NULL)
		OK(fi_ep_bind(s->ep, &p->srx->fid, 0));
	for (i = 0; i < 4; i++)
		if (all[i] != NULL)
			OK(fi_ep_bind(s->ep, &all[i]->fid, kinds[i]));
	OK(fi_enable(s->ep));
}

void
pair_open(struct pair *p, const struct want *w)
{
	struct fi_info *hints = hints_of(FI_MSG | FI_RMA | FI_ATOMIC);
	struct fi_eq_attr eq = {.wait_obj = w->wait};
	struct fi_rx_attr rx = {.size = 128};

	memset(p, 0, sizeof(*p));
	hints->tx_attr->size = hints->rx_attr->size = w->depth;
	OK(fi_getinfo(VERSION, pair_ip(), "0", FI_SOURCE, hints, &p->info));
	fi_freeinfo(hints);
	OK(fi_fabric(p->info->fabric_attr, &p->fabric, NULL));
	OK(fi_eq_open(p->fabric, &eq, &p->eq, NULL));
	OK(fi_domain(p->fabric, p->info, &p->domain, NULL));
	if (w->shared)
		OK(fi_srx_context(p->domain, &rx, &p->srx, NULL));
	side_open(p, &p->a, w);
	side_open(p, &p->b, w);
	OK(fi_passive_ep(p->fabric, p->info, &p->pep, NULL));
	OK(fi_pep_bind(p->pep, &p->eq->fid, 0));
	OK(fi_listen(p->pep));
}

void
pair_connect(struct pair *p, const struct want *w)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + 64];
	} e;
	char addr[64];
	size_t len = sizeof(addr);
	fid_t first;
	ssize_t n;

	OK(fi_getname(&p->pep->fid, addr, &len));
	pair_endpoint(p, &p->a, p->info, w);
	OK(fi_connect(p->a.ep, addr, "hello", 5));
	n = event_wait(p, FI_CONNREQ, &e, sizeof(e));
	assert_ptr_equal(e.cm.fid, &p->pep->fid);
	p->data_len = (size_t)n - sizeof(e.cm);
	memcpy(p->data, e.cm.data, p->data_len);
	if (w->reject != 0) {
		OK(fi_reject(p->pep, e.cm.info->handle, "no, thank you", w->reject));
		fi_freeinfo(e.cm.info);
		return;
	}
	pair_endpoint(p, &p->b, e.cm.info, w);
	OK(fi_accept(p->b.ep, "welcome", 7));
	fi_freeinfo(e.cm.info);
	/* The events of both sides come in any order; only the connecting side gets data. */
	n = event_wait(p, FI_CONNECTED, &e, sizeof(e));
	first = e.cm.fid;
	if (first == &p->a.ep->fid)
		assert_memory_equal(e.cm.data, "welcome", 7);
	assert_int_equal((size_t)n - sizeof(e.cm), first == &p->a.ep->fid ? 7 : 0);
	n = event_wait(p, FI_CONNECTED, &e, sizeof(e));
	assert_ptr_not_equal(e.cm.fid, first);
	assert_int_equal((size_t)n - sizeof(e.cm), e.cm.fid == &p->a.ep->fid ? 7 : 0);
}

static void
side_close(struct side *s)
{
	struct fid_cntr *const all[] = {s->sent, s->received, s->read, s->written};
	unsigned int i;

	if (s->ep != NULL)
		OK(fi_close(&s->ep->fid));
	for (i = 0; i < 4; i++)
		if (all[i] != NULL)
			OK(fi_close(&all[i]->fid));
	OK(fi_close(&s->mr->fid));
	OK(fi_close(&s->cq->fid));
	free(s->mem);
}

void
pair_close(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
	if (p->srx != NULL)
		OK(fi_close(&p->srx->fid));
	OK(fi_close(&p->pep->fid));
	OK(fi_close(&p->domain->fid));
	OK(fi_close(&p->eq->fid));
	OK(fi_close(&p->fabric->fid));
	fi_freeinfo(p->info);
}

/* ---- The log */

static FILE *log_file;
static int log_stderr;

void
log_reasons(void)
{
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "bluebell", 1);
}

void
log_begin(void)
{
	log_file = tmpfile();
	assert_non_null(log_file);
	fflush(stderr);
	log_stderr = dup(STDERR_FILENO);
	dup2(fileno(log_file), STDERR_FILENO);
}

const char *
log_end(void)
{
	static char text[16384];
	size_t n;

	fflush(stderr);
	dup2(log_stderr, STDERR_FILENO);
	close(log_stderr);
	rewind(log_file);
	n = fread(text, 1, sizeof(text) - 1, log_file);
	text[n] = '\0';
	fclose(log_file);
	return text;
}
