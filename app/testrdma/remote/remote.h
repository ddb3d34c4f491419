/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Tests with the target in another process.
 *
 * The connecting process has the initiators and runs the tests. The listening process is the
 * target. It provides memory, and a QP for each connection. In tests of one-sided operations it
 * does nothing else. The initiator has a copy of the target's memory. It writes the copy to the
 * target before the operations. Afterwards it reads the target's memory back and checks it.
 *
 * In other tests the target posts receives, or sends messages itself. These tests use control
 * blocks. Each process has a control block for each connection, in its memory after all slots. The
 * initiator writes the parameters of the test into the target's control block. While the test runs,
 * the initiator also writes there, per direction, the number of the first operation that is not
 * allowed yet. The target posts receives for the allowed operations as soon as its queue has room,
 * and sends the allowed messages of the reverse direction. The target writes its counts into the
 * initiator's control block. The initiator sends a message only after the target has reported a
 * receive for that message, so no message causes an RNR NAK.
 *
 * A word of a control block has 8 aligned bytes. It contains the tag of its test and a number that
 * only grows.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include <rte_byteorder.h>

#include "testrdma.h"

#define REMOTE_MAGIC     UINT32_C(0x74726d61)
#define REMOTE_VERSION   2
#define REMOTE_REGION    "target"
#define REMOTE_MAX_BYTES (UINT64_C(1) << 32)
/* Ack timeout of 0.5 s, with 7 retries, because a user may suspend a peer for a few seconds. */
#define REMOTE_ACK_TIMEOUT 17
#define ORDERS_MAX         4 /* maximum outstanding WRITEs of a QP to the peer's control block */

/* Private data of a CM REQ. Big endian. */
struct remote_hello {
	uint32_t magic, version;
	uint64_t token; /* token of an initiator; all connections with this token share the target's
			   memory */
	uint64_t bytes; /* bytes of the target's memory before the control blocks: guard bytes and
			   slots */
	uint64_t addr;  /* address of the initiator's memory, which is as large as the target's
			   memory */
	uint32_t rkey;  /* rkey of the initiator's memory */
	uint32_t index, conns; /* index of this connection, and number of connections */
	uint32_t depth, sgl, max_inline;
};

/* Parameters of a test. Big endian. */
struct remote_test {
	uint64_t seed;
	uint32_t size, slots, window, burst, signal_every;
	uint32_t use_inline, offset, test_no;
	char op[16];
};

/* A control block. Words are big endian. The bits from WORD_BITS on contain the tag of the test. */
struct remote_ctl {
	/* The initiator writes the following fields in the target's memory. */
	struct remote_test test;
	/*
	 * number of the first operation that is not allowed; written after the parameters in test
	 */
	uint64_t forward_end, reverse_end;
	/* The target writes the following fields in the initiator's memory. */
	uint64_t recv_posted, recv_done; /* forward direction: receives posted, and completed */
	uint64_t done;                   /* reverse direction: number of completed operations */
	uint64_t errors; /* number of errors that the target has found; all ones if it refuses the
			    test */
};

#define WORD_BITS    48
#define WORD_MAX     ((UINT64_C(1) << WORD_BITS) - 1)
#define REMOTE_CTL   128u /* bytes of a control block with padding */
#define WORD_REFUSED WORD_MAX
_Static_assert(sizeof(struct remote_ctl) <= REMOTE_CTL, "control block");

static inline uint64_t
word_make(uint64_t tag, uint64_t value)
{
	return rte_cpu_to_be_64(tag << WORD_BITS | (value & WORD_MAX));
}

/*
 * Reads the number in a word that the peer writes. @return false if the word belongs to another
 * test.
 */
static inline bool
word_read(const uint64_t *word, uint64_t tag, uint64_t *value)
{
	uint64_t w = rte_be_to_cpu_64(__atomic_load_n(word, __ATOMIC_ACQUIRE));

	if (w >> WORD_BITS != tag)
		return false;
	*value = w & WORD_MAX;
	return true;
}

/* Returns the tag of a test. The tag is never 0, so a zeroed word belongs to no test. */
static inline uint64_t
test_tag(uint32_t test_no)
{
	return test_no % 0xffff + 1;
}

/*
 * Returns the control block of connection @index. @bytes: size of the memory before the control
 * blocks.
 */
static inline struct remote_ctl *
ctl_at(uint8_t *mem, uint64_t bytes, uint32_t index)
{
	return (struct remote_ctl *)(void *)(mem + bytes + (uint64_t)index * REMOTE_CTL);
}

/* ---- remote.c: the connecting process */

/*
 * Connects the QPs of all pairs and gets the address of the target's memory. @return 0, or -errno
 * after printing the error.
 */
int remote_connect(struct tester *t);

/* Disconnects and frees all connections. Does not destroy the QPs. */
void remote_close(struct tester *t);

/*
 * remote_push() writes the local copy of the target's memory to the target. remote_pull() reads the
 * target's memory into the copy. Both do nothing if the target is in this process.
 */
void remote_push(struct tester *t);
void remote_pull(struct tester *t);

/* ---- remote_test.c: tests that need work of the target */

/*
 * Starts the current test at a target in another process, if the target posts receives or sends
 * messages in this test: sends the parameters to the target, waits until the target is ready, and
 * sets t->orders to true. Otherwise only sets t->orders to false.
 */
void remote_test(struct tester *t);

/*
 * Allows @ops more operations of @p, in this process and at the target. @ops 0 means that the
 * number is not known yet. Then each call of remote_roll() allows more operations, until a call
 * with @over.
 */
void remote_open(struct pair *p, uint64_t ops);
void remote_roll(struct tester *t, bool over);

/*
 * Copies the target's counts of operations and receives, which the target writes to this process by
 * WRITE, to the pairs of queue pairs.
 * @return number of counts that have changed.
 */
unsigned int remote_read_counts(struct tester *t);

/* ---- serve_test.c: the target's part of tests */

struct responder;

/*
 * Creates the target's state of a connection. @hello is checked already. @mem, registered as @mr,
 * has the slots with their guard bytes, then the control blocks. @return 0, or a negative errno.
 */
int responder_create(struct tester *server, const struct remote_hello *hello, uint8_t *mem,
		     struct bb_mr *mr, struct responder **out);
/* Returns the responder's queue pair, which the caller connects. */
struct bb_qp *responder_qp(struct responder *responder);
/* Returns the tester (state of a test) that has the responder's completion queues and memory. */
const struct tester *responder_tester(const struct responder *responder);
/* Executes pending work of the responder's test. @return true if there was any. */
bool responder_poll(struct responder *responder);
/* Returns the number of receives of the responder that were completed and checked. */
uint64_t responder_receives(const struct responder *responder);
/* Returns the number of errors that the responder has found in receives and sends. */
uint64_t responder_errors(const struct responder *responder);
void responder_destroy(struct responder *responder);

/* ---- serve.c: the listening process */

struct server;

struct serve_counts {
	uint32_t served;      /* connections accepted so far */
	uint32_t present;     /* current connections */
	uint32_t times_empty; /* number of times that the number of connections has become 0 */
	uint16_t port;        /* port number of the listener */
	/* Receives checked, and errors found; both are some milliseconds old. */
	uint64_t recvs, errors;
};

/*
 * Listens at t->o.listen and prints the port. Make all calls for a server from one thread, except
 * those marked below. @return 0, or an exit status after printing the error.
 */
int serve_open(struct tester *t, struct server **out);

/*
 * Serves peers until the program is stopped. With @until_gone it also returns when all clients have
 * disconnected. Prints the summary.
 */
void serve_run(struct server *s, bool until_gone);
/* Returns the number of errors that the server has found so far. */
uint64_t serve_errors(const struct server *s);
/* Closes the server. Connected peers see their connection break. @s may be NULL. */
void serve_close(struct server *s);

/* Returns the server's counts. Any thread may call it. */
struct serve_counts serve_counted(struct server *s);
/*
 * Prints how many requests of peers the device has executed since the server was opened. Returns
 * false if the device does not count them.
 */
bool serve_requests(const struct server *s);
/*
 * Prints the line of --interval: the requests executed for peers in the last @seconds. Either the
 * server's thread or one other thread may call it.
 */
void serve_interval(struct server *s, FILE *out, double seconds);
void serve_each(struct server *s,
		void (*look)(uint32_t conn, struct bb_qp *qp, const struct tester *t));

#endif
