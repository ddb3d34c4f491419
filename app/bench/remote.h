/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A second process: this program again, with an EAL of its own on the peer CPU. It
 * waits for orders on a socket, without using its CPU, and answers each when it has
 * done it. One at a time is there.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include <sys/types.h>

#include "bb_qp.h"
#include "bench.h"

#define REMOTE_TEXT 400
/* Nothing that is measured here takes longer without a result. */
#define REMOTE_SECONDS 60

enum remote_op {
	REMOTE_HELLO,        /* the answer comes when EAL runs */
	REMOTE_VDEV,         /* text: name and arguments of a vdev, which stays */
	REMOTE_NET_OPEN,     /* text: name and arguments of a vdev; net */
	REMOTE_NET_CLOSE,    /* net */
	REMOTE_NET_ECHO,     /* n packets of size bytes back; net */
	REMOTE_NET_SINK,     /* n packets of size bytes, window; net */
	REMOTE_MAPPED_ECHO,  /* n cells of size bytes */
	REMOTE_TCP_ECHO,     /* n messages of size bytes; port in value */
	REMOTE_TCP_SINK,     /* the same, one byte back behind the last */
	REMOTE_SOFT_OPEN,    /* text: device; n: QP depth, size: bytes of its buffers */
	REMOTE_SOFT_CONNECT, /* addr */
	REMOTE_SOFT_ECHO,    /* n writes of 8 bytes back */
	REMOTE_SOFT_RUN,     /* poll until stop; n receives */
	REMOTE_SOFT_CHECK,   /* size bytes of pattern value are there */
	REMOTE_SOFT_CLOSE,
};

/* An order and its answer. */
struct remote_msg {
	enum remote_op op;
	int rc; /* answer: 0 or -errno */
	uint32_t net;
	uint64_t n, size, window, value;
	/* Of soft: its QP, and where it may be written. */
	struct bb_qp_addr addr;
	uint64_t raddr;
	uint32_t rkey;
	char text[REMOTE_TEXT];
};

/* Memory that both processes have mapped. */
#define REMOTE_CELL 4096
struct remote_shared {
	uint32_t stop __attribute__((aligned(4096))); /* __atomic */
	uint8_t there[REMOTE_CELL] __attribute__((aligned(4096)));
	uint8_t back[REMOTE_CELL] __attribute__((aligned(4096)));
};
extern struct remote_shared *remote_shared;

/* ---- remote.c */

/* Start it unless it runs; EAL must run here. 0, or -errno, said to stderr. */
int remote_start(void);
/* Send an order; remote_wait() takes its answer. 0 or -errno. */
int remote_send(const struct remote_msg *msg);
/* Wait for the answer to the last order; the process is ended if it does not come. */
int remote_wait(struct remote_msg *msg);
/* Is the answer there, or never to come? For who has to do something meanwhile. */
bool remote_answered(void);
/* Both; returns what the answer says. */
int remote_call(struct remote_msg *msg);
/* End REMOTE_SOFT_RUN and the like, and take the answer. */
int remote_stop(struct remote_msg *msg);
/* Has it ended by itself? To be asked now and then by who waits for its work. */
bool remote_gone(void);
void remote_end(void);
/* 0: it does not run. */
pid_t remote_pid(void);

/*
 * To be asked when there is nothing to do: nothing came for REMOTE_SECONDS, or the
 * other process is gone. @idle counts how often, from 0.
 */
bool remote_give_up(uint64_t *idle, uint64_t *since);

/* ---- serve.c */

/* The other side, on the two descriptors that remote_start() gave. The exit status. */
int serve(const char *fds);

#endif
