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
	EXIT_FAILED = 1, /* an error of the peer, the device or the payload */
	EXIT_USAGE = 2,
};

enum verb {
	VERB_PINGPONG,
	VERB_WRITE,
	VERB_READ,
	VERB_SEND,
	VERB_ATOMIC,
};

/* A program whose protocol bb_perf implements. */
struct protocol {
	const char *name;
	const char *peer; /* name of the program */
	enum verb verb;
	bool bandwidth;
	uint8_t types; /* supported QP types: 1 << enum bb_qp_type */
	uint32_t size, iters;
};

#define GID_ANY UINT32_MAX

struct options {
	const struct protocol *proto;
	const char *device; /* device specification for bb_dev_open() */
	const char *host;   /* NULL: server */
	const char *json;
	enum bb_qp_type type;
	uint32_t size;
	bool size_given;
	uint64_t iters;
	uint32_t mtu;       /* 0: the port's MTU, or 1024 with pingpong */
	uint32_t ib_port;   /* port of the device, from 1; 0: the first that is up */
	uint32_t gid_index; /* or GID_ANY */
	uint32_t tcp_port;
	uint32_t tx_depth, rx_depth, cq_mod;
	uint32_t max_inline;
	uint32_t out_reads;
	uint32_t qp_timeout; /* ack timeout: 4.096 us << qp_timeout */
	uint32_t seconds;    /* silence after which a peer counts as lost */
	bool cmp_swap;
	bool check;
};

/* protocol.c */
/* Returns NULL if there is no such protocol. */
const struct protocol *protocol_find(const char *name);
/* Lists the protocols, one a line. */
void protocol_list(FILE *out);
/* Returns the type of queue pair that is used without --connection. */
enum bb_qp_type protocol_first_type(const struct protocol *proto);

/* help.c */
void options_help(FILE *out);

#endif
