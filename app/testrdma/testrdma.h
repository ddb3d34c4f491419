/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the files of testrdma.
 *
 * A pair is an initiator QP and a target QP, connected to each other through the device. The
 * initiator's memory and the target's memory have slots. A slot has room for one message, and guard
 * bytes separate the slots. Operation n of a pair uses slot n modulo the number of slots. Some
 * modes work in both directions. For them a second pair, the twin, uses the same two QPs in the
 * reverse direction: the twin's initiator is the first pair's target. The flows of a test are its
 * pairs and twins.
 *
 * A struct test is one test: one engine (type of operation, see modes/) and one message size. The
 * test runs in rounds. A round prepares the slots, times a span of operations, and verifies the
 * memory. Without --verify a single span uses all of the test's time. struct tester is the state of
 * one lcore, which runs its share of every test.
 */
#ifndef TESTRDMA_H
#define TESTRDMA_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "histogram.h"
#include "options.h"
#include "program.h"
#include "rate.h"

#define GUARD      64   /* guard bytes before and after each SGE of a message */
#define EDGE       4096 /* guard bytes before the first slot, and as many after the last one */
#define RECV_SLACK 32   /* bytes by which a receive's buffer is longer than its message */
#define POLL_BURST 32

struct tester;
struct pair;

/*
 * One type of operation. As testpmd has a forwarding engine per mode, testrdma has one engine per
 * type.
 */
struct engine {
	const char *name;
	const char *help;
	bool atomic;    /* operates on 8 aligned bytes; each pair has one such word at the target */
	bool recv;      /* each operation consumes a receive of the target */
	bool recv_data; /* the payload goes to the buffer of the consumed receive */
	bool to_target; /* the payload goes from the initiator to the target */
	bool imm;       /* the operation has immediate data */
	bool has_byte_len; /* the initiator's completion has a byte count */
	/* the targets initiate operations, too, so each pair of QPs works in both directions */
	bool two_way;
	/* each message is sent only after the peer's previous message has arrived */
	bool ping_pong;
	bool mode;           /* combines other operations; not run by default */
	uint8_t wc_opcode;   /* opcode of the initiator's completion */
	uint8_t recv_opcode; /* opcode of the target's completion */
	/*
	 * Returns the engine (type) of operation @op. The pointer is NULL if all operations are of
	 * one type.
	 */
	const struct engine *(*pick)(const struct pair *p, uint64_t op);
	/*
	 * Posts the next @n operations of @p. @return number of operations posted, or a negative
	 * errno.
	 */
	int (*post)(struct pair *p, uint32_t n);
	/*
	 * Posts the receives for the next @n operations. @return as post. The pointer is NULL if
	 * the operation consumes no receive.
	 */
	int (*post_recv)(struct pair *p, uint32_t n);
	/* Initializes the state that all rounds of a test use. May be NULL. */
	void (*start)(struct pair *p);
	/*
	 * prepare() fills the memory before operations [first, first + n); verify() checks it after
	 * them.
	 */
	void (*prepare)(struct pair *p, uint64_t first, uint64_t n);
	void (*verify)(struct pair *p, uint64_t first, uint64_t n);
	/*
	 * Returns true if the result of operation @op is in memory. It is called as soon as the
	 * initiator's completion was polled or, with recv_data, the completion of the receive.
	 */
	bool (*arrived)(struct pair *p, uint64_t op);
};

extern const struct engine *const engines[];
extern const unsigned int nengines;
const struct engine *engine_find(const char *name, size_t len);

/*
 * Layout of a message in its slot: offset and length of each of its @n parts. In local memory each
 * part is an SGE.
 */
struct layout {
	uint32_t n;
	uint32_t stride; /* bytes from one slot to the next */
	uint32_t off[MAX_SGL], len[MAX_SGL];
};

/*
 * Memory of all initiators or of all targets: EDGE guard bytes, slots of pair 0, slots of pair 1,
 * ..., EDGE guard bytes.
 */
struct side {
	const char *name;
	uint8_t *mem;
	size_t len;
	struct bb_mr *mr;
	struct layout lay; /* layout of the current test */
	uint8_t *image;    /* expected contents of a slot that no operation of the test has used */
};

struct pair {
	struct tester *t;
	struct bb_qp *qp;     /* QP of the initiator */
	struct bb_qp *peer;   /* QP of the target; NULL if the target is in another process */
	struct bb_conn *conn; /* connection to the target's process, or NULL */
	struct side *initiator, *target; /* memory of the initiator and of the target */
	uint8_t *local, *remote;         /* slot 0 of local memory, and of the target's memory */
	uint64_t target_delta; /* address in a request minus the address computed from remote */
	uint32_t target_rkey;
	bool reverse;      /* true if this pair is the reverse direction of another pair */
	struct pair *twin; /* pair with the same QPs in the other direction; NULL if none */
	struct pair *in;   /* pair whose receives complete on this pair's initiator QP: the pair of
			      the other direction, or this pair if there is none */
	/* The following fields are used only if the target is in another process (remote.h). */
	uint32_t orders; /* number of outstanding WRITEs to the peer's control block */
	/* true if no number of operations is given; end then grows until the deadline */
	bool rolling;
	uint64_t sent_end; /* value of end last sent to the target's process */
	/* The following fields are used only with --rate. */
	uint64_t first; /* number of the first operation that is timed in this round of the test */
	uint64_t due;   /* number of the first operation that is not due yet */
	uint64_t overdue; /* value of due at the end of the schedule; 0 if all will be posted */
	/*
	 * index of this flow (one direction of a pair). With n flows, flow i executes the
	 * operations i, i + n, i + 2n and so on of the schedule
	 */
	uint32_t turn;
	uint32_t turn_of_kind; /* --op mixed: position of the next operation in test.kinds */
	uint64_t wr_base;      /* wr_id of operation 0 of this test */
	uint64_t posted, done; /* number of operations posted, and completed */
	uint64_t end;          /* number of the first operation that must not be posted */
	uint64_t sig_at;       /* value that posted has after the next signalled operation */
	uint64_t last_sig;     /* value of posted after the last signalled operation */
	uint64_t recv_posted, recv_done;
	uint32_t slot, recv_slot; /* slot of the next operation; slot of the next receive */
	uint64_t word_start;      /* value of the word that atomics change, before operation 0 */
	uint32_t index;
};

struct result {
	uint64_t ops, cycles, doorbells; /* totals of all timed operations of the test */
	uint64_t bytes;                  /* payload bytes that were verified */
	uint64_t guards;                 /* guard bytes that were verified */
	uint64_t recvs;                  /* receive completions that were checked */
	uint64_t rounds;
	uint64_t kinds[MIX_KINDS]; /* operations per type with --op mixed, in the rate and the
				      latency phase */
	/* operations of this round of the test whose data arrived after their completion */
	uint64_t late;
	uint64_t first_late; /* number of the first operation that is counted in late */
	uint64_t errors;
	uint64_t broken; /* failed completions; included in errors */
	/* with --rate: operations that were due but never posted, for lack of room */
	uint64_t unposted;
};

struct test {
	const struct engine *e;
	uint32_t size;
	uint32_t slots;                       /* slots per pair */
	uint32_t window, burst, signal_every; /* each is at most slots */
	uint64_t rate;                        /* operations per second and lcore; 0 if unlimited */
	bool use_inline;
	bool complete;   /* true if the test was neither stopped nor abandoned */
	uint32_t lcores; /* number of lcores in these results */
	struct result res;
	struct hist lat; /* latencies in TSC cycles */
};

/*
 * Data that a running test shares with the main thread. Its fields are accessed with __atomic, and
 * the test updates them every few milliseconds. The main thread owns the histogram while request is
 * LIVE_NONE.
 */
enum live_request {
	LIVE_NONE,
	LIVE_LATENCY, /* copy the latencies */
	LIVE_CLEAR,   /* clear the latencies */
};

struct live {
	uint64_t ops; /* operations that the test has completed in all its phases */
	uint64_t bytes, errors;
	uint32_t request; /* enum live_request; set to LIVE_NONE when the request is executed */
	uint32_t stop;
	struct hist lat;
};

/* State of one lcore, with its own queues and memory. Each lcore runs its part of a test. */
struct tester {
	struct options o;
	struct bb_dev *dev;
	struct bb_dev_attr attr;
	struct bb_pd *pd;
	struct bb_cq *scq, *rcq;
	struct side local, remote; /* remote: a copy if the target is in another process */
	struct bb_cm *cm;          /* connection manager; NULL if the target is in this process */
	bool orders; /* the target is in another process and executes a part of the test */
	struct schedule schedule; /* with --rate: schedule of this round of the test */
	struct pair *pairs;
	struct pair *twins;  /* reverse direction of each pair; NULL if no mode needs it */
	uint32_t npairs;     /* number of pairs created */
	struct pair **flows; /* each pair, followed by its reverse direction if the test uses it */
	uint32_t nflows;
	uint8_t kinds[MIX_MAX]; /* types of consecutive operations with --op mixed: enum mix_kind */
	uint32_t nkinds;
	uint8_t *scratch;   /* buffer for the expected pattern of one message */
	uint8_t edge[EDGE]; /* expected contents of the EDGE guard bytes before or after all slots
			     */
	struct test *test;  /* current test */
	uint32_t test_no, ntests;
	uint64_t started; /* TSC at the start of the run */
	uint64_t tsc_hz;
	uint64_t errors, verified; /* sums over all tests */
	uint32_t passed, failed;
	bool fatal;         /* the queues are unusable */
	uint64_t stop_seen; /* TSC at which a stop was first seen; 0 if none */
	/*
	 * number of fatal device events, and number of CQ errors, that this process had read
	 * before it created the queues; see stall.c
	 */
	uint32_t dead_devices, dead_cqs;
	uint32_t lcore;    /* lcore that owns the queues, or BB_LCORE_SELF */
	struct live *live; /* data shared with the main thread; NULL in the foreground */
	uint64_t live_at;  /* TSC of the last update of *live by live_update() */
};

/* options.c */
extern const struct program testrdma_program;

/* setup.c */
int tester_open_device(struct tester *t);
int tester_check(const struct tester *t);
int tester_open_queues(struct tester *t);
void test_layouts(struct tester *t, const struct engine *e, uint32_t size);
void test_layout(struct tester *t, struct test *test, const struct engine *e, uint32_t size);
void tester_close_queues(struct tester *t);
void tester_close_device(struct tester *t);

/* check.c */
/* Polls the CQs of all pairs and checks the completions. @return number of completions. */
unsigned int flows_poll(struct tester *t);
/*
 * send_completed() checks a completion of an initiator's send queue; recv_completed() checks one of
 * a target's receive queue.
 */
void send_completed(struct tester *t, const struct bb_wc *wc);
void recv_completed(struct tester *t, const struct bb_wc *wc);

/* modes/mixed.c: adds the number of operations of each type in the current test to @count. */
void mixed_count(const struct tester *t, uint64_t *count);

/*
 * rate.c, for --rate: starts the schedule, updates the number of due operations, ends the schedule,
 * and counts, after the end, the operations that were never posted.
 */
void pace_begin(struct tester *t, uint64_t now);
void pace_roll(struct tester *t, uint64_t now);
void pace_end(struct tester *t, uint64_t now);
void pace_unposted(struct tester *t);

/* run.c */
void test_run(struct tester *t, struct test *test);
/* Posts receives and operations of @p, as many as the queues and the limit of @p allow. */
void flow_post(struct tester *t, struct pair *p);
void live_update(struct tester *t);

/* flow.c */
/*
 * Returns the number of completed operations of the test, in both phases. A round trip counts as
 * one.
 */
uint64_t flows_done(const struct tester *t);
/*
 * Sets the limit of @p: its operations with numbers below @end may be posted. All earlier ones
 * must be complete.
 */
void flow_open(struct pair *p, uint64_t end);
/*
 * Raises the limit of @p (flow_open()) to @end while operations are outstanding. The last operation
 * below the old limit must be a signalled one.
 */
void flow_extend(struct pair *p, uint64_t end);

/* verify.c */
void layout_make(struct layout *lay, uint32_t size, uint32_t pieces, uint32_t offset);
void test_fill(struct tester *t);
uint64_t op_key(const struct pair *p, uint64_t op);
/* Returns the first 8 bytes of an operation's pattern. */
uint64_t op_word(const struct pair *p, uint64_t op);
void data_prepare(struct pair *p, uint64_t first, uint64_t n);
void data_verify(struct pair *p, uint64_t first, uint64_t n);
/*
 * Verifies memory that was prepared as for a READ. On both sides only the first 8 bytes may have
 * changed.
 */
void data_verify_after_word(struct pair *p, uint64_t op);
bool data_arrived(struct pair *p, uint64_t op);
void guards_verify(struct tester *t, uint32_t nflows);
void round_verify(struct tester *t, uint32_t nflows, uint64_t n);
void word_check(struct pair *p, const uint8_t *at, uint64_t want, uint64_t op, const char *what);
void slots_verify_untouched(struct pair *p, const struct side *s, const uint8_t *base,
			    uint32_t from);

/* report.c */
void report_start(struct tester *t);
void report_test(struct tester *t, const struct test *test);
/* Ends a test: prints it in all formats and updates the counts of @t. */
void test_finish(struct tester *t, const struct test *test);
/* Prints the progress of a test in the foreground, and with --interval the statistics. */
void report_progress(struct tester *t, const char *phase);
/*
 * Returns the output for the lines of --interval. With CSV it is stderr, so that the CSV on stdout
 * has no other lines.
 */
static inline FILE *
interval_out(const struct options *o)
{
	return o->csv ? stderr : stdout;
}
void report_summary(struct tester *t);

/*
 * interval.c. Call all these functions from one thread: in the foreground from the test's thread,
 * otherwise from the main thread.
 */
void interval_start(const struct tester *t);
/* Counts the latencies of the current test. @now: all latencies of the test so far. */
void interval_latencies(const struct hist *now);
/* Counts the operations and the remaining latencies of a test that has ended. */
void interval_test_end(const struct tester *t, const struct test *test);
/*
 * Clears the latencies that the next line of --interval would print. Call it when the latencies of
 * the current test were cleared.
 */
void interval_clear(void);
/*
 * Prints a line of --interval: the operations since the previous line, and the latencies counted
 * since then.
 */
void interval_line(FILE *out, uint64_t ops, double seconds, uint64_t errors, uint64_t tsc_hz);
/* In the foreground, prints a line of --interval if it is due. @now: TSC. */
void interval_update(const struct tester *t, uint64_t now);

/* fail.c */
#define FAILS_SHOWN 5 /* errors of a test that are printed; further ones are only counted */
/*
 * Counts an error of the current test. Prints the first FAILS_SHOWN errors of a test, each after
 * the program's name and the test.
 */
void report_fail(struct tester *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records whether the progress line is on the screen without a newline. */
void progress_open(bool open);
/* Clears the progress line. Call it before anything else is printed. */
void progress_clear(void);

/* json.c. All functions with a result return 0, or -1 if the file cannot be written. */
int json_open(const char *path);
void json_start(const struct tester *t);
void json_test(const struct tester *t, const struct test *test);
int json_close(const struct tester *t, int status);

/* Figures of a test, which the table, CSV and JSON show. */
struct figures {
	double seconds, mops, gbytes_per_s, cycles_per_op, doorbells_per_op;
	double p50, p99, p999, max, min, mean; /* ns */
};
/*
 * Returns the name of the time that the latencies measure: "operation", "round trip", or "intended
 * start".
 */
const char *test_latency_of(const struct test *test);
void test_figures(const struct tester *t, const struct test *test, struct figures *f);

/*
 * Returns true if the test must stop. Only the main thread gets signals; it stops the other threads
 * through live->stop.
 */
static inline bool
tester_stopping(const struct tester *t)
{
	return t->live == NULL ? stop_signal != 0
			       : __atomic_load_n(&t->live->stop, __ATOMIC_RELAXED) != 0;
}

/* ---- Inline functions for the engines */

/*
 * A wr_id contains the test, the pair and the operation, so that a completion of another operation
 * is detected.
 */
#define WR_RECV           (UINT64_C(1) << 63)
#define WR_ORDER          UINT64_MAX       /* wr_id of a WRITE to a control block (remote.h) */
#define WR_COPY           (UINT64_MAX - 1) /* wr_id of a copy of the target's memory */
#define WR_ID(test, pair) ((uint64_t)((test)&0xff) << 55 | (uint64_t)(pair) << 40)

/*
 * Returns how many of the next @n operations can be posted together. They must use consecutive
 * slots, and only the last of them may be a signalled operation. @n is greater than 0.
 */
static inline uint32_t
pair_run(const struct pair *p, uint32_t n)
{
	const uint64_t left = p->sig_at - p->posted;

	if (n > left && left != 0)
		n = (uint32_t)left;
	return RTE_MIN(n, p->t->test->slots - p->slot);
}

/*
 * Updates the pair after @n operations were posted; @n is at most pair_run(). One operation in
 * signal_every is signalled, and also the last operation.
 */
static inline void
pair_advance(struct pair *p, uint32_t n)
{
	const struct test *test = p->t->test;

	p->posted += n;
	if (p->posted == p->sig_at) {
		p->last_sig = p->sig_at;
		p->sig_at += test->signal_every;
		if (p->sig_at > p->end)
			p->sig_at = p->end;
	}
	p->slot += n;
	if (p->slot == test->slots)
		p->slot = 0;
}

/* Builds the SGEs of a slot. @pieces is the number of SGEs in the side's layout. */
static inline void
slot_sges(const struct side *s, const uint8_t *base, uint32_t slot, struct bb_sge *sge,
	  uint32_t pieces)
{
	const struct layout *lay = &s->lay;
	uint64_t addr = (uint64_t)(uintptr_t)base + (uint64_t)slot * lay->stride;
	uint32_t i;

	for (i = 0; i < pieces; i++) {
		sge[i].addr = addr + lay->off[i];
		sge[i].len = lay->len[i];
		sge[i].lkey = s->mr->lkey;
	}
}

/* Returns true if all operations of @p, and their receives, are done. */
static inline bool
flow_finished(const struct pair *p)
{
	return !p->rolling && p->done == p->end && (!p->t->test->e->recv || p->recv_done == p->end);
}

/* Returns the address of the first byte of the message in a slot. */
static inline uint64_t
slot_addr(const struct side *s, const uint8_t *base, uint32_t slot)
{
	return (uint64_t)(uintptr_t)base + (uint64_t)slot * s->lay.stride + s->lay.off[0];
}

/* Returns the address that a request uses for a target's slot. */
static inline uint64_t
target_addr(const struct pair *p, uint32_t slot)
{
	return slot_addr(p->target, p->remote, slot) + p->target_delta;
}

/* Returns the engine (type) of operation @op of a pair. */
static inline const struct engine *
op_engine(const struct pair *p, uint64_t op)
{
	const struct engine *e = p->t->test->e;

	return e->pick != NULL ? e->pick(p, op) : e;
}

/* Returns the immediate data that operation @op sends, in network byte order. */
static inline uint32_t
op_imm(const struct pair *p, uint64_t op)
{
	return (uint32_t)(op * 0x9e3779b1u) ^ (uint32_t)p->t->o.seed ^ p->index << 20;
}

#endif
