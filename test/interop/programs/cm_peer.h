/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the sides of cm_peer. */
#ifndef CM_PEER_H
#define CM_PEER_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bluebell.h>

#define WAIT_MS  120000
#define BUF_SIZE 16384
/* Offsets in buf: memory that the peer may access, sent data, received data. */
#define TEXT 0
#define OUT  8192
#define IN   12288
#define TRY(call)                                                                                  \
	do {                                                                                       \
		rc = (call);                                                                       \
		if (rc < 0) {                                                                      \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(-rc));       \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                  \
			rc = -EPROTO;                                                              \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

extern uint32_t count;
extern char *buf; /* BUF_SIZE bytes */

int new_ep(bool passive, uint32_t timeout_ms, struct bb_ep **ep);
/* Opens a listening endpoint and prints "listening". */
int listen_at(struct bb_ep **listener);
void param_init(struct bb_conn_param *param);
/* Waits until the peer has ended the connection. */
int wait_end(struct bb_ep *ep);
/* Returns the bytes of the next completion, which must be successful, or a negative errno. */
int wait_wc(struct bb_ep *ep, bool sent);
/*
 * Waits before the connecting end's first message on iWARP. siw_accept() of Linux 6.1 answers
 * before it installs the callback for messages. A message that arrives in between is not read
 * until another one arrives.
 */
#define SIW_ACCEPT_US 100000
void let_accept(const struct bb_ep *ep);
void drop(struct bb_ep *ep, struct bb_mr *mr);

int rping_server(void);
int rping_client(void);

#endif
