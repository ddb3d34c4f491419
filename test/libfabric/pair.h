/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Two connected endpoints of one process, for tests of the provider through libfabric's own calls.
 */
#ifndef PAIR_H
#define PAIR_H

#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "bb_test.h"

#define VERSION FI_VERSION(1, 17)
#define MEM     (1u << 20)

/* How a test wants its endpoints. */
struct want {
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	uint64_t selective; /* 0 or FI_SELECTIVE_COMPLETION */
	bool shared;        /* both endpoints take receives from one shared receive context */
	bool counters;
	size_t depth;  /* of the send and receive queues; 0 means the default */
	size_t reject; /* bytes of private data with which the listening side rejects */
};

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_cntr *sent, *received, *read, *written;
	struct fid_mr *mr;
	unsigned char *mem;
	void *desc;
	uint64_t key;
};

struct pair {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *srx;
	struct side a, b; /* a connects to b */
	char data[64];    /* private data that the listening side got */
	size_t data_len;
};

/*
 * Returns the address at which passive endpoints listen: 127.0.0.1, or the value of PAIR_IP. With
 * PAIR_IP the device has that address, and messages of librdmacm establish connections.
 */
const char *pair_ip(void);
/* Writes the address of pair_ip() and a port. Returns its bytes. */
size_t pair_addr(struct sockaddr_storage *addr, uint16_t port);
/* Returns hints for the provider with @caps. The caller frees them. */
struct fi_info *hints_of(uint64_t caps);
/* Opens fabric, domain and event queue, and both sides with their memory. Connects nothing. */
void pair_open(struct pair *p, const struct want *want);
/* Opens the endpoint of a side, binds everything that it has, and enables it. */
void pair_endpoint(struct pair *p, struct side *s, struct fi_info *info, const struct want *want);
/* Connects both sides. */
void pair_connect(struct pair *p, const struct want *want);
void pair_close(struct pair *p);
/*
 * Between both calls stderr goes to a file. log_end() returns its text, which is valid until the
 * next call. log_reasons() must run before the first call of libfabric.
 */
void log_reasons(void);
void log_begin(void);
const char *log_end(void);
/* Waits for an event, of at most @len bytes; fails the test if it is another one. */
ssize_t event_wait(struct pair *p, uint32_t type, void *buf, size_t len);
/* Waits for an error event, and returns it. */
struct fi_eq_err_entry event_error(struct pair *p);
/* Waits for one completion; fails the test if it is an error. */
struct fi_cq_data_entry done(struct side *s);
/* Waits for one failed completion, and returns it. */
struct fi_cq_err_entry failed(struct side *s);
/* Reads CQs and the event queue for some rounds, in which no completion may arrive. */
void none(struct pair *p);

#endif
