/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command line after "--". */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <bb_op.h>

/* Exit statuses. An interrupted run exits with 128 + signal, as in shells. */
enum {
	EXIT_FAILED = 1, /* the peer, the device or the payload had an error */
	EXIT_USAGE = 2,
};

enum verb {
	VERB_PINGPONG,
	VERB_WRITE,
	VERB_READ,
	VERB_SEND,
	VERB_ATOMIC,
};

/* A program whose protocol bb_perf speaks. */
struct protocol {
	const char *name;
	const char *peer; /* name of the peer program */
	enum verb verb;
	bool bandwidth;
	uint8_t types; /* supported QP types: 1 << enum bb_qp_type */
	uint32_t size, iters;
};

#define GID_ANY UINT32_MAX

/* Sizes of --all: these powers of two, as in perftest. */
#define SIZE_MIN     2u
#define SIZE_MAX_ALL (1u << 23)
#define SIZE_COUNT   23
#define QPS_MAX      1024u

struct options {
	const struct protocol *proto;
	const char *device; /* device specification for bb_dev_open() */
	const char *host;   /* host name of the server; NULL if this process is the server */
	const char *json;
	enum bb_qp_type type;
	uint32_t size;
	bool size_given;
	uint64_t iters; /* messages of each QP and size; UINT64_MAX with --duration */
	bool iters_given;
	bool all;     /* true: tests all sizes from SIZE_MIN to SIZE_MAX_ALL, one after the other */
	bool rdma_cm; /* connects by rdma_cm, and sends the handshake messages over an rdma_cm
			 connection */
	bool bidirectional; /* both ends send at the same time */
	uint32_t duration;  /* seconds of the test; 0: the test ends after iters messages */
	uint32_t qps;       /* number of queue pairs */
	uint32_t mtu;       /* path MTU; 0 for the port's MTU, or 1024 with pingpong */
	uint32_t ib_port;   /* port number of the device, from 1; 0 for the first active port */
	uint32_t gid_index; /* index of the local GID, or GID_ANY */
	uint32_t tcp_port;
	uint32_t tx_depth, rx_depth, cq_mod;
	uint32_t max_inline;
	uint32_t out_reads;
	uint32_t qp_timeout; /* ack timeout: 4.096 us << qp_timeout */
	uint32_t seconds;    /* seconds of silence after which the peer counts as lost */
	bool cmp_swap;
	bool cq_mod_given;
	bool gbits; /* bandwidths in tables, and in reports to and from the peer, are in Gb/s */
	bool check;
};

/* protocol.c */
/* Returns the protocol @name, or NULL if there is no such protocol. */
const struct protocol *protocol_find(const char *name);
/* Lists the protocols, one a line. */
void protocol_list(FILE *out);
/* Returns the QP type that the protocol uses without --connection. */
enum bb_qp_type protocol_first_type(const struct protocol *proto);

/* help.c */
void options_help(FILE *out);

/* options.c */
/* options_sizes() returns the number of message sizes, options_size() returns size number @i. */
uint32_t options_sizes(const struct options *o);
uint32_t options_size(const struct options *o, uint32_t i);

#endif
