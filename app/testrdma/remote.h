/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target in another process.
 *
 * Who connects has the initiators, and runs the rows. Who listens gives memory, and a QP for each
 * connection. For one-sided operations it does nothing else. What is checked of the target's memory
 * is checked in a copy that the initiator writes there before, and reads back behind.
 *
 * Rows that need work of the target, receives or operations of its own: behind the slots of both
 * sides each connection has a control block in the memory of both processes. The initiator writes
 * into the target's what the row is, and then, as the row goes on, up to which operation each
 * direction is to go. The target posts receives up to there, as its queue has room, sends what goes
 * back, and writes its counts into the initiator's block: receives posted are the initiator's
 * credits, so that no message finds no receive, and no RNR NAK is needed. Each word is 8 bytes,
 * aligned, and only grows; that of another row has another tag.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include <rte_byteorder.h>

#include "testrdma.h"

#define REMOTE_MAGIC     UINT32_C(0x74726d61)
#define REMOTE_VERSION   2
#define REMOTE_REGION    "target"
#define REMOTE_MAX_BYTES (UINT64_C(1) << 32)
/* 0.5 s, with 7 retries: a process that is not run for a while is not gone. */
#define REMOTE_ACK_TIMEOUT 17
#define ORDERS_MAX         4 /* requests of a QP with orders or answers under way */

/* What comes with a request to connect. Big endian. */
struct remote_hello {
	uint32_t magic, version;
	uint64_t token;        /* connections with the same one share the memory */
	uint64_t bytes;        /* of it: edges and slots; control blocks follow */
	uint64_t addr;         /* of the initiator's memory, as long */
	uint32_t rkey;         /* of that */
	uint32_t index, conns; /* this connection of so many */
	uint32_t depth, sgl, max_inline;
};

/* What a row is. Big endian. */
struct remote_row {
	uint64_t seed;
	uint32_t size, slots, window, burst, signal_every;
	uint32_t use_inline, offset, row_no;
	char op[16];
};

/* A control block. Words are big endian, with the row's tag above WORD_BITS. */
struct remote_ctl {
	/* Written by the initiator, into the target's memory. */
	struct remote_row row;
	uint64_t forward_end, reverse_end; /* operations to go up to; the row is there before */
	/* Written by the target, into the initiator's memory. */
	uint64_t recv_posted, recv_done; /* of the forward direction */
	uint64_t done;                   /* of the other one */
	uint64_t errors; /* that the target has found; all ones: it refuses the row */
};

#define WORD_BITS    48
#define WORD_MAX     ((UINT64_C(1) << WORD_BITS) - 1)
#define REMOTE_CTL   128u /* bytes of a block with what follows */
#define WORD_REFUSED WORD_MAX
_Static_assert(sizeof(struct remote_ctl) <= REMOTE_CTL, "control block");

static inline uint64_t
word_make(uint64_t tag, uint64_t value)
{
	return rte_cpu_to_be_64(tag << WORD_BITS | (value & WORD_MAX));
}

/* Read what a peer writes. @return false: it is of another row. */
static inline bool
word_read(const uint64_t *word, uint64_t tag, uint64_t *value)
{
	uint64_t w = rte_be_to_cpu_64(__atomic_load_n(word, __ATOMIC_ACQUIRE));

	if (w >> WORD_BITS != tag)
		return false;
	*value = w & WORD_MAX;
	return true;
}

/* Rows count from 1, so that memory which is zero is of none. */
static inline uint64_t
row_tag(uint32_t row_no)
{
	return row_no % 0xffff + 1;
}

/* Block of connection @index behind @bytes of a side's memory at @mem. */
static inline struct remote_ctl *
ctl_at(uint8_t *mem, uint64_t bytes, uint32_t index)
{
	return (struct remote_ctl *)(void *)(mem + bytes + (uint64_t)index * REMOTE_CTL);
}

/* ---- remote.c: who connects */

/* Connect the QPs of all pairs, and learn where the target's memory is. @return 0, or said, -errno.
 */
int remote_connect(struct test *t);

/* Disconnect and free; QPs stay. */
void remote_close(struct test *t);

/* The copy of the target's memory to the target, or from it. Nothing in the same process. */
void remote_push(struct test *t);
void remote_pull(struct test *t);

/* ---- remote_row.c: rows that need work of the target */

/* Have the target do its part of the row of @t; t->orders if it has one. */
void remote_row(struct test *t);

/* flow_open() for @ops more operations, or (0) for as long as it is rolled on; told to the target.
 */
void remote_open(struct pair *p, uint64_t ops);
void remote_roll(struct test *t, bool over);

/* Take what the target has answered into the flows. @return how much is new. */
unsigned int remote_answers(struct test *t);

/* ---- serve_row.c: the target's part of rows */

struct worksite;

/*
 * For a connection whose memory is at @mem, @bytes and control blocks, with @mr; from a hello that
 * was checked. @return 0, or a negative errno.
 */
int worksite_create(struct test *server, const struct remote_hello *hello, uint8_t *mem,
		    struct bb_mr *mr, struct worksite **out);
/* Its queue pair, that the caller connects. */
struct bb_qp *worksite_qp(struct worksite *site);
/* Its completion queues and memory. */
const struct test *worksite_test(const struct worksite *site);
/* Do what there is to do. @return whether there was something. */
bool worksite_poll(struct worksite *site);
/* Receives that have completed and were checked. */
uint64_t worksite_receives(const struct worksite *site);
/* Of them and of what is sent, what was wrong. */
uint64_t worksite_errors(const struct worksite *site);
void worksite_destroy(struct worksite *site);

/* ---- serve.c: who listens */

struct server;

struct serve_counts {
	uint32_t served;  /* connections that were made */
	uint32_t present; /* that there are */
	uint32_t visits;  /* how often the last one has gone */
	uint16_t port;    /* that it listens at */
	/* Some milliseconds ago: receives checked, and what was found wrong. */
	uint64_t recvs, errors;
};

/*
 * Listen at t->o.listen, and say at which port. All calls but those of another thread
 * below are made by one thread.
 * @return 0, or said, an exit status.
 */
int serve_open(struct test *t, struct server **out);

/* Serve until it is stopped or, with @until_gone, everybody who came has gone; with the summary. */
void serve_run(struct server *s, bool until_gone);
/* What was found wrong, up to now. */
uint64_t serve_errors(const struct server *s);
/* Whoever is there sees it break. @s may be NULL. */
void serve_close(struct server *s);

/* Look at one that another thread runs. */
struct serve_counts serve_counted(struct server *s);
/* Print what peers asked the device for since it listens; false if the device does not count. */
bool serve_requests(const struct server *s);
/*
 * The line of --interval: what was served in the @seconds since the one before. By one thread,
 * the server's own or another.
 */
void serve_interval(struct server *s, FILE *out, double seconds);
void serve_each(struct server *s,
		void (*look)(uint32_t conn, struct bb_qp *qp, const struct test *t));

#endif
