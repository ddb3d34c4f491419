/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A second process: this program again, with its own EAL on the peer CPU. It waits for orders on a
 * socket, without using its CPU, and answers each order when it is executed. There is at most one.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include "bb_qp.h"
#include "bench.h"

#define REMOTE_TEXT 400
/* Maximum seconds of any measurement without a result. */
#define REMOTE_SECONDS 60

enum remote_op {
	REMOTE_HELLO,        /* answered when EAL runs */
	REMOTE_VDEV,         /* text: name and arguments of a vdev, which stays */
	REMOTE_NET_OPEN,     /* text: name and arguments of a vdev; net */
	REMOTE_NET_CLOSE,    /* net */
	REMOTE_NET_ECHO,     /* returns n packets of size bytes; net */
	REMOTE_NET_SINK,     /* receives n packets of size bytes, window; net */
	REMOTE_MAPPED_ECHO,  /* returns n cells of size bytes */
	REMOTE_TCP_ECHO,     /* returns n messages of size bytes; port in value */
	REMOTE_TCP_SINK,     /* receives n messages of size bytes and returns one byte after the
			      * last */
	REMOTE_SOFT_OPEN,    /* text: device; n: QP depth, size: bytes of its buffers */
	REMOTE_SOFT_CONNECT, /* addr */
	REMOTE_SOFT_ECHO,    /* returns n writes of 8 bytes */
	REMOTE_SOFT_RUN,     /* polls until stop; n receives */
	REMOTE_SOFT_CHECK,   /* checks size bytes of pattern value */
	REMOTE_SOFT_CLOSE,
};

/* An order and its answer. */
struct remote_msg {
	enum remote_op op;
	int rc; /* of the answer: 0 or -errno */
	uint32_t net;
	uint64_t n, size, window, value;
	/* For soft: its QP, and the memory that may be written. */
	struct bb_qp_addr addr;
	uint64_t raddr;
	uint32_t rkey;
	char text[REMOTE_TEXT];
};

/* Memory mapped by both processes. */
#define REMOTE_CELL 4096
struct remote_shared {
	uint32_t stop __attribute__((aligned(4096))); /* __atomic */
	uint8_t there[REMOTE_CELL] __attribute__((aligned(4096)));
	uint8_t back[REMOTE_CELL] __attribute__((aligned(4096)));
};
extern struct remote_shared *remote_shared;

/* ---- remote.c */

/*
 * Starts the process unless it runs; EAL must run here. Returns 0, or -errno with a message on
 * stderr.
 */
int remote_start(void);
/* Sends an order; remote_wait() gets its answer. Returns 0 or -errno. */
int remote_send(const struct remote_msg *msg);
/* Waits for the answer to the last order; ends the process if there is none. */
int remote_wait(struct remote_msg *msg);
/* Returns true if the answer has arrived, or never will. For callers that work meanwhile. */
bool remote_answered(void);
/* Sends an order and waits. Returns the rc of the answer. */
int remote_call(struct remote_msg *msg);
/* Ends REMOTE_SOFT_RUN and similar orders, and gets the answer. */
int remote_stop(struct remote_msg *msg);
/*
 * Returns true if the process has ended by itself. Call it periodically while waiting for its work.
 */
bool remote_gone(void);
void remote_end(void);

/*
 * Call it when there is nothing to do. Returns true if nothing arrived for REMOTE_SECONDS, or the
 * other process is gone. @idle counts the calls, from 0.
 */
bool remote_give_up(uint64_t *idle, uint64_t *since);

/* ---- serve.c */

/* Runs the second process on the two descriptors from remote_start(). Returns the exit status. */
int serve(const char *fds);

#endif
