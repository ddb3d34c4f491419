/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The second process: this program again, with another EAL on the peer CPU. The first process sends
 * commands to it through a socket. The second process sleeps until a command arrives, executes the
 * command and then sends a reply. There is at most one second process.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include "bb_qp.h"
#include "bench.h"

#define REMOTE_TEXT 400
/* Seconds without a reply or any progress after which a measurement fails. */
#define REMOTE_SECONDS 60

enum remote_op {
	REMOTE_HELLO, /* starts EAL in the second process; rc in the reply: result */
	REMOTE_VDEV,  /* creates the vdev that text describes ("name,arguments"); no command removes
			 it */
	REMOTE_NET_OPEN, /* opens a DPDK port; the field text has the name and arguments of its vdev
			  */
	REMOTE_NET_CLOSE,     /* closes the port that REMOTE_NET_OPEN opened */
	REMOTE_NET_ECHO,      /* sends back n packets of size bytes on that port */
	REMOTE_NET_SINK,      /* receives n packets of size bytes on that port; sends flow control
				 credits */
	REMOTE_MAPPED_ECHO,   /* sends back n messages of size bytes in mapped memory */
	REMOTE_TCP_ECHO,      /* sends back n messages of size bytes; value: TCP port */
	REMOTE_TCP_SINK,      /* receives n messages of size bytes, then sends one byte */
	REMOTE_RTE_RING_ECHO, /* sends back n messages through an rte_ring */
	REMOTE_RTE_RING_SINK, /* receives n messages, size at a time, then sends one back */
	REMOTE_SOFT_OPEN,     /* opens a device: text is its specification, n its QP depth, size the
				 bytes of its buffers, value the bytes of inline data */
	REMOTE_SOFT_CONNECT,  /* connects the QP to the first process's QP, whose address is addr */
	REMOTE_SOFT_ECHO,     /* sends back n WRITEs of 8 bytes */
	REMOTE_SOFT_RUN,      /* polls until stop is set, and consumes n receives meanwhile */
	REMOTE_SOFT_CHECK,    /* compares size bytes with link_fill(): value is the seed */
	/*
	 * The same with rdma_rings: OPEN initializes both rings of the second process, ECHO sends
	 * back n messages, SINK receives n messages and then sends one back.
	 */
	REMOTE_RDMA_RING_OPEN,
	REMOTE_RDMA_RING_ECHO,
	REMOTE_RDMA_RING_SINK,
	REMOTE_SOFT_CLOSE,
};

/* A command, or the reply to it. Each command uses the fields that enum remote_op names. */
struct remote_msg {
	enum remote_op op;
	int rc; /* result, in a reply: 0 or -errno */
	uint32_t net;
	uint64_t n, size, window, value;
	/* REMOTE_SOFT_*: the sender's QP, and its memory that the receiver may write. */
	struct bb_qp_addr addr;
	uint64_t raddr;
	uint32_t rkey;
	char text[REMOTE_TEXT];
};

/*
 * Memory that both processes map. ping and pong are one cell (message) in each direction, of at
 * most REMOTE_CELL bytes. ring has an rte_ring in each direction.
 */
#define REMOTE_CELL 4096
#define REMOTE_RING 16384
struct remote_shared {
	/* 1 ends the current command of the second process; accessed with __atomic */
	uint32_t stop __attribute__((aligned(4096)));
	uint8_t ping[REMOTE_CELL] __attribute__((aligned(4096)));
	uint8_t pong[REMOTE_CELL] __attribute__((aligned(4096)));
	uint8_t ring[2][REMOTE_RING] __attribute__((aligned(4096)));
};
extern struct remote_shared *remote_shared;

/* ---- remote.c */

/*
 * Starts the second process unless it runs. EAL must run in this process. Returns 0, or -errno
 * after printing the error on stderr.
 */
int remote_start(void);
/* Sends a command. The caller gets the reply from remote_wait(). Returns 0 or -errno. */
int remote_send(const struct remote_msg *msg);
/*
 * Waits for the reply to the last command and returns its rc. If no reply arrives in
 * REMOTE_SECONDS, kills the second process and returns -ETIMEDOUT. Returns -EPIPE if the second
 * process has ended.
 */
int remote_wait(struct remote_msg *msg);
/*
 * Returns true if remote_wait() would not block: the reply has arrived, or the second process has
 * ended. Callers with other work poll it.
 */
bool remote_has_reply(void);
/* Sends a command and waits for the reply: remote_send(), then remote_wait(). */
int remote_call(struct remote_msg *msg);
/* Sets stop, which ends commands such as REMOTE_SOFT_RUN, and waits for the reply. */
int remote_stop(struct remote_msg *msg);
/*
 * Returns true if the second process has ended or was never started. A caller that waits for
 * packets or data of the second process calls it from time to time.
 */
bool remote_gone(void);
/* Makes the second process exit, waits for its end and frees what it used. */
void remote_end(void);

/*
 * Decides whether a polling loop gives up. The loop calls it after each poll without a result, and
 * sets *@idle to 0 after a poll with a result. Returns true if nothing arrived for REMOTE_SECONDS,
 * or the other process has ended. *@idle: number of calls since the last result; *@since: TSC at
 * the first of these calls.
 */
bool remote_give_up(uint64_t *idle, uint64_t *since);

/* ---- serve.c */

/*
 * Main function of the second process. @fds: the numbers of its socket and of the shared memory, as
 * passed by remote_start(). Returns the exit status.
 */
int serve(const char *fds);

#endif
