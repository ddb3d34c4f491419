/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the files of testrdma.
 *
 * A pair is an initiator QP and a target QP, connected to each other through the device. Each side
 * has slots with room for one message each, and guard bytes between them. Operation n of a pair
 * uses slot n modulo the number of slots. A mode that works in both directions has a second pair on
 * the same two QPs, the twin. The twin's initiator is the target of the first pair. The flows of a
 * test are its pairs and twins.
 *
 * One test of the table is a struct row: one engine (kind of operation, modes/) and one size. It
 * runs in rounds: prepare the slots, a timed span of operations, verify. Without --verify a single
 * span uses all of the test's time. struct test is the state of one lcore, which runs its part of
 * each test.
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

#define GUARD      64   /* bytes before and after each piece of a message */
#define EDGE       4096 /* guard bytes before the first slot, and as many after the last one */
#define RECV_SLACK 32   /* extra bytes of a receive beyond its message */
#define POLL_BURST 32

struct test;
struct pair;

/* One kind of operation, like a forwarding engine of testpmd. */
struct engine {
	const char *name;
	const char *help;
	bool atomic;         /* 8 bytes, aligned; one shared word at the target */
	bool recv;           /* consumes a receive of the target */
	bool recv_data;      /* the payload goes to the buffer of that receive */
	bool to_target;      /* payload goes to the target */
	bool imm;            /* carries immediate data */
	bool has_byte_len;   /* its completion has a byte count */
	bool two_way;        /* the targets initiate too: each pair has a twin */
	bool ping_pong;      /* a message is sent after the previous one has arrived */
	bool mode;           /* combines other operations; not run by default */
	uint8_t wc_opcode;   /* opcode of its completion */
	uint8_t recv_opcode; /* opcode of the target's completion */
	/* Returns the kind of operation @op if kinds differ; otherwise NULL. */
	const struct engine *(*pick)(const struct pair *p, uint64_t op);
	/* Posts the next @n operations of @p. @return number posted, or a negative errno. */
	int (*post)(struct pair *p, uint32_t n);
	/* Posts the receives of the next @n operations; NULL for one-sided ones. */
	int (*post_recv)(struct pair *p, uint32_t n);
	/* Initializes state of a test that lasts over its rounds. May be NULL. */
	void (*start)(struct pair *p);
	/* Called before and after operations [first, first + n): fill memory, check memory. */
	void (*prepare)(struct pair *p, uint64_t first, uint64_t n);
	void (*verify)(struct pair *p, uint64_t first, uint64_t n);
	/*
	 * Returns true if the result of @op has arrived. Called when its completion is seen; with
	 * recv_data, when the receive's completion is seen.
	 */
	bool (*arrived)(struct pair *p, uint64_t op);
};

extern const struct engine *const engines[];
extern const unsigned int nengines;
const struct engine *engine_find(const char *name, size_t len);

/* Pieces of a message in a slot. */
struct layout {
	uint32_t n;
	uint32_t stride; /* bytes from one slot to the next */
	uint32_t off[MAX_SGL], len[MAX_SGL];
};

/* Memory of one side: EDGE, slots of pair 0, slots of pair 1, ..., EDGE. */
struct side {
	const char *name;
	uint8_t *mem;
	size_t len;
	struct bb_mr *mr;
	struct layout lay; /* layout of the current test */
	uint8_t *image;    /* contents of an untouched slot */
};

struct pair {
	struct test *t;
	struct bb_qp *qp;        /* initiator */
	struct bb_qp *peer;      /* target; NULL if it is in another process */
	struct bb_conn *conn;    /* connection to the target's process, or NULL */
	struct side *near, *far; /* memory of the initiator and of the target */
	uint8_t *local, *remote; /* slot 0 of each side */
	uint64_t target_delta;   /* difference between addresses in far and those in requests */
	uint32_t target_rkey;
	bool reverse;      /* a twin, which works in the reverse direction */
	struct pair *twin; /* NULL if this run has no two-way mode */
	struct pair *in;   /* pair whose receives complete on the QP that has this pair as user */
	/* Used only if the target is in another process (remote.h): */
	uint32_t orders;   /* outstanding WRITEs to the peer's control block */
	bool rolling;      /* end advances until the deadline */
	uint64_t told_end; /* value of end that the other process was last sent */
	/* Used with --rate: */
	uint64_t first;        /* first operation of the span */
	uint64_t due;          /* do not post operations from this number on yet */
	uint32_t turn;         /* index of the flow: its operations of the schedule are turn, turn +
				* nflows, ... */
	uint32_t turn_of_kind; /* mix: position of the next operation in the order of kinds */
	uint64_t wr_base;      /* wr_id of operation 0 */
	uint64_t posted, done; /* number of operations */
	uint64_t end;          /* do not post operations from this number on */
	uint64_t sig_at;       /* the operation that makes posted reach it is signalled */
	uint64_t last_sig;     /* value of posted at the last signalled one */
	uint64_t recv_posted, recv_done;
	uint32_t slot, recv_slot; /* index for the next operation, and for the next receive */
	uint64_t word_start;      /* value of an atomic's word before operation 0 */
	uint32_t index;
};

struct result {
	uint64_t ops, cycles, doorbells; /* totals of the timed spans */
	uint64_t bytes;                  /* verified */
	uint64_t guards;                 /* guard bytes verified */
	uint64_t recvs;                  /* checked receive completions */
	uint64_t rounds;
	uint64_t kinds[MIX_KINDS]; /* operations of --op mixed, in both phases */
	uint64_t late;       /* completions polled before their data had arrived, in this round */
	uint64_t first_late; /* operation of the first late completion */
	uint64_t errors;
	uint64_t broken;   /* those of errors that are failed completions */
	uint64_t unposted; /* with --rate: operations that were due and could not be posted */
};

struct row {
	const struct engine *e;
	uint32_t size;
	uint32_t slots;                       /* slots per pair */
	uint32_t window, burst, signal_every; /* after fitting to the slots */
	uint64_t rate;                        /* operations per second and lcore; 0 if unlimited */
	bool use_inline;
	bool complete;   /* ran to its end */
	uint32_t lcores; /* number of lcores in these results */
	struct result res;
	struct hist lat; /* TSC cycles */
};

/*
 * Data that a running test shares with another thread: __atomic, updated every few milliseconds.
 * The asking thread owns the histogram while ask is LIVE_NOTHING.
 */
enum live_ask {
	LIVE_NOTHING,
	LIVE_LATENCY, /* copy the latencies */
	LIVE_CLEAR,   /* clear the latencies */
};

struct live {
	uint64_t ops; /* operations that the test has completed in all its phases */
	uint64_t bytes, errors;
	uint32_t ask; /* enum live_ask; set to LIVE_NOTHING when done */
	uint32_t stop;
	struct hist lat;
};

/* State of one lcore, with its own queues and memory. Each lcore runs its part of a test. */
struct test {
	struct options o;
	struct bb_dev *dev;
	struct bb_dev_attr attr;
	struct bb_pd *pd;
	struct bb_cq *scq, *rcq;
	struct side local, remote; /* with a target in another process, remote is a copy of its
				    * memory */
	struct bb_cm *cm;          /* NULL if the target is in this process */
	bool orders;               /* the target, in another process, takes part in the test */
	struct schedule schedule;  /* with --rate: schedule of the span */
	struct pair *pairs;
	struct pair *twins;  /* same number as pairs, or NULL */
	uint32_t npairs;     /* number of pairs created */
	struct pair **flows; /* flows of the test: pairs, each followed by its twin */
	uint32_t nflows;
	uint8_t kinds[MIX_MAX]; /* mixed operations, in order: enum mix_kind */
	uint32_t nkinds;
	uint8_t *scratch;   /* buffer for the expected pattern of one message */
	uint8_t edge[EDGE]; /* expected contents of the EDGE guard bytes at each end of a memory */
	struct row *row;    /* current test */
	uint32_t row_no, nrows;
	uint64_t started; /* TSC */
	uint64_t tsc_hz;
	uint64_t errors, verified; /* sums over all tests */
	uint32_t passed, failed;
	bool fatal;                      /* the queues are unusable */
	uint64_t stop_seen;              /* TSC at which a stop was first seen; 0 if none */
	uint32_t dead_devices, dead_cqs; /* stall.c: number of events before the queues were
					  * created */
	uint32_t lcore;                  /* owner of the queues, or BB_LCORE_SELF */
	struct live *live;               /* for tests in the background, else NULL */
	uint64_t live_at;                /* TSC of its last update */
};

/* options.c */
extern const struct program testrdma_program;

/* setup.c */
int test_open_device(struct test *t);
int test_check(const struct test *t);
int test_open_queues(struct test *t);
void row_layouts(struct test *t, const struct engine *e, uint32_t size);
void row_layout(struct test *t, struct row *row, const struct engine *e, uint32_t size);
void test_close_queues(struct test *t);
void test_close_device(struct test *t);

/* check.c */
/* Polls completions. @return their number. */
unsigned int flows_poll(struct test *t);
/* Check a completion of the initiator's send queue, and of the target's receive queue. */
void send_completed(struct test *t, const struct bb_wc *wc);
void recv_completed(struct test *t, const struct bb_wc *wc);

/* modes/mixed.c: adds the operations of each kind in the test to @count. */
void mixed_count(const struct test *t, uint64_t *count);

/* rate.c: starts the schedule of a span, updates the due operations, ends the schedule. */
void pace_begin(struct test *t, uint64_t now);
void pace_roll(struct test *t, uint64_t now);
void pace_end(struct test *t, uint64_t now);

/* run.c */
void row_run(struct test *t, struct row *row);
/* Posts receives and operations for which there is room. */
void flow_post(struct test *t, struct pair *p);
void live_update(struct test *t);

/* flow.c */
/* Returns the operations of the test that are done, in both phases; a round trip counts as one. */
uint64_t flows_done(const struct test *t);
/* Allows operations up to @end. */
void flow_open(struct pair *p, uint64_t end);
/*
 * Allows operations up to @end while earlier ones are outstanding, the last of which was to be
 * signalled.
 */
void flow_extend(struct pair *p, uint64_t end);

/* verify.c */
void layout_make(struct layout *lay, uint32_t size, uint32_t pieces, uint32_t offset);
void row_fill(struct test *t);
uint64_t op_key(const struct pair *p, uint64_t op);
/* Returns the first 8 bytes of an operation's pattern. */
uint64_t op_word(const struct pair *p, uint64_t op);
void data_prepare(struct pair *p, uint64_t first, uint64_t n);
void data_verify(struct pair *p, uint64_t first, uint64_t n);
/*
 * Verifies memory prepared as for a READ: only the first 8 bytes may have changed, on both sides.
 */
void data_verify_behind_word(struct pair *p, uint64_t op);
bool data_arrived(struct pair *p, uint64_t op);
void guards_verify(struct test *t, uint32_t nflows);
void round_verify(struct test *t, uint32_t nflows, uint64_t n);
void word_check(struct pair *p, const uint8_t *at, uint64_t want, uint64_t op, const char *what);
void slots_verify_untouched(struct pair *p, const struct side *s, const uint8_t *base,
			    uint32_t from);

/* report.c */
void report_start(struct test *t);
void report_row(struct test *t, const struct row *row);
/* Ends a test: prints it in all formats and updates the counts of @t. */
void row_over(struct test *t, const struct row *row);
/* Prints the progress of a test in the foreground, and with --interval the statistics. */
void report_progress(struct test *t, const char *phase);
/* Returns the output for lines of --interval: not mixed with CSV output. */
static inline FILE *
interval_out(const struct options *o)
{
	return o->csv ? stderr : stdout;
}
/* Prints a line of --interval: work done since the last one. */
void interval_line(FILE *out, uint64_t ops, double seconds, uint64_t errors);
void report_summary(struct test *t);

/* fail.c */
#define FAILS_SHOWN 5 /* errors of a row that are printed; the others are counted */
/* Counts an error of the row and prints it, after the program's name and the row. */
void report_fail(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records whether the line of progress is on the screen. */
void progress_open(bool open);
/* Clears that line, before anything else is printed. */
void progress_clear(void);

/* json.c: returns 0, or -1 if the file cannot be written. */
int json_open(const char *path);
void json_start(const struct test *t);
void json_row(const struct test *t, const struct row *row);
int json_close(const struct test *t, int status);

/* Figures of a test for table, CSV and JSON. */
struct figures {
	double seconds, mops, gbytes_per_s, cycles_per_op, doorbells_per_op;
	double p50, p99, p999, max, min, mean; /* ns */
};
/* Returns what the latencies measure: "operation", "round trip", "intended start". */
const char *row_latency_of(const struct row *row);
void row_figures(const struct test *t, const struct row *row, struct figures *f);

/* Returns true if the test must stop. The main thread gets signals and informs the others. */
static inline bool
test_stopping(const struct test *t)
{
	return t->live == NULL ? stop_signal != 0
			       : __atomic_load_n(&t->live->stop, __ATOMIC_RELAXED) != 0;
}

/* ---- inlines for the engines */

/* wr_id: test, pair and operation, so that a wrong completion is detected. */
#define WR_RECV          (UINT64_C(1) << 63)
#define WR_ORDER         UINT64_MAX       /* remote.h */
#define WR_COPY          (UINT64_MAX - 1) /* copy of the target's memory */
#define WR_ID(row, pair) ((uint64_t)((row)&0xff) << 55 | (uint64_t)(pair) << 40)

/*
 * Returns how many of the next @n > 0 operations may be posted up to the next signalled one, or to
 * the last slot.
 */
static inline uint32_t
pair_run(const struct pair *p, uint32_t n)
{
	const uint64_t left = p->sig_at - p->posted;

	if (n > left && left != 0)
		n = (uint32_t)left;
	return RTE_MIN(n, p->t->row->slots - p->slot);
}

/*
 * Advances after @n <= pair_run() operations were posted. One in signal_every is signalled, and the
 * last one.
 */
static inline void
pair_advance(struct pair *p, uint32_t n)
{
	const struct row *row = p->t->row;

	p->posted += n;
	if (p->posted == p->sig_at) {
		p->last_sig = p->sig_at;
		p->sig_at += row->signal_every;
		if (p->sig_at > p->end)
			p->sig_at = p->end;
	}
	p->slot += n;
	if (p->slot == row->slots)
		p->slot = 0;
}

/* Builds the gather list of a slot; @pieces is that of the side's layout. */
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

/* Returns true if all operations of the flow, and their receives, are done. */
static inline bool
flow_finished(const struct pair *p)
{
	return !p->rolling && p->done == p->end && (!p->t->row->e->recv || p->recv_done == p->end);
}

/* Returns the address of the first piece of a slot. */
static inline uint64_t
slot_addr(const struct side *s, const uint8_t *base, uint32_t slot)
{
	return (uint64_t)(uintptr_t)base + (uint64_t)slot * s->lay.stride + s->lay.off[0];
}

/* Returns the address of a target's slot for a request. */
static inline uint64_t
target_addr(const struct pair *p, uint32_t slot)
{
	return slot_addr(p->far, p->remote, slot) + p->target_delta;
}

/* Returns the kind of operation @op of a pair. */
static inline const struct engine *
op_engine(const struct pair *p, uint64_t op)
{
	const struct engine *e = p->t->row->e;

	return e->pick != NULL ? e->pick(p, op) : e;
}

/* Returns the immediate data of an operation, in network order. */
static inline uint32_t
op_imm(const struct pair *p, uint64_t op)
{
	return (uint32_t)(op * 0x9e3779b1u) ^ (uint32_t)p->t->o.seed ^ p->index << 20;
}

#endif
