/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the files of testrdma share.
 *
 * A pair is an initiator QP and a target QP, connected to each other through
 * the device. Each side has slots: places for one message, with guard bytes
 * between them. Operation n of a pair uses slot n modulo the number of slots.
 * A mode that works in both directions has a second pair on the same two QPs,
 * the first one's twin, whose initiator is the first one's target. What a row
 * works with, twins included, are its flows.
 *
 * A row of the table is one engine (kind of operation, modes/) and one size. It
 * runs in rounds: prepare the slots, a timed span of operations, verify. Without
 * --verify a single span takes all of the row's time.
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

#define GUARD      64   /* bytes before and behind each piece of a message */
#define EDGE       4096 /* bytes before the first and behind the last slot */
#define RECV_SLACK 32   /* a receive is this much longer than its message */
#define POLL_BURST 32

struct test;
struct pair;

/* One kind of operation, as testpmd has forwarding engines. */
struct engine {
	const char *name;
	const char *help;
	bool atomic;         /* 8 bytes, aligned; one shared word at the target */
	bool recv;           /* takes a receive of the target */
	bool recv_data;      /* and the payload goes where that receive says */
	bool to_target;      /* payload flows to the target */
	bool imm;            /* carries immediate data */
	bool has_byte_len;   /* its completion says how many bytes */
	bool two_way;        /* the targets initiate, too: each pair has a twin */
	bool ping_pong;      /* a message goes out behind the arrival of the one before it */
	bool mode;           /* of operations that others are, too: not one of the default */
	uint8_t wc_opcode;   /* of its completion */
	uint8_t recv_opcode; /* of the target's completion */
	/* What operation @op is, where they are not all alike; else NULL. */
	const struct engine *(*pick)(const struct pair *p, uint64_t op);
	/* Post @n operations, the next of @p. @return how many, or a negative errno. */
	int (*post)(struct pair *p, uint32_t n);
	/* Post the receives of the next @n operations; NULL for one-sided ones. */
	int (*post_recv)(struct pair *p, uint32_t n);
	/* Start of a row: what lasts over rounds. May be NULL. */
	void (*start)(struct pair *p);
	/* Before and behind operations [first, first + n): fill, check. */
	void (*prepare)(struct pair *p, uint64_t first, uint64_t n);
	void (*verify)(struct pair *p, uint64_t first, uint64_t n);
	/*
	 * Returns whether the result of @op is there. Called when its completion is seen; with
	 * recv_data when that of the receive is.
	 */
	bool (*arrived)(struct pair *p, uint64_t op);
};

extern const struct engine *const engines[];
extern const unsigned int nengines;
const struct engine *engine_find(const char *name, size_t len);

/* Where the pieces of a message are in a slot. */
struct layout {
	uint32_t n;
	uint32_t stride; /* bytes from slot to slot */
	uint32_t off[MAX_SGL], len[MAX_SGL];
};

/* Memory of one side: EDGE, slots of pair 0, slots of pair 1, ..., EDGE. */
struct side {
	const char *name;
	uint8_t *mem;
	size_t len;
	struct bb_mr *mr;
	struct layout lay; /* of the row */
	uint8_t *image;    /* what is in a slot that nothing has touched */
};

struct pair {
	struct test *t;
	struct bb_qp *qp;        /* initiator */
	struct bb_qp *peer;      /* target; NULL: in another process */
	struct bb_conn *conn;    /* to that */
	struct side *near, *far; /* the initiator's memory, and the target's */
	uint8_t *local, *remote; /* slot 0 of each side */
	uint64_t target_delta;   /* from addresses in far to those of requests */
	uint32_t target_rkey;
	bool reverse;      /* a twin of one that goes forward */
	struct pair *twin; /* NULL: this run has no mode of both directions */
	struct pair *in;   /* whose receives are those of the QP that has us as user */
	/* With the target in another process, see remote.h. */
	uint32_t orders;   /* requests with orders or answers under way */
	bool rolling;      /* end moves on as long as the deadline is not there */
	uint64_t told_end; /* last told to the other process */
	/* With --rate. */
	uint64_t first; /* operation of the span */
	uint64_t due;   /* post no further yet */
	uint32_t turn;  /* of the flows: which of so many operations of the schedule is ours */
	uint32_t turn_of_kind; /* of a mix: place of the next operation in the order of kinds */
	uint64_t wr_base;      /* wr_id of operation 0 */
	uint64_t posted, done; /* operations */
	uint64_t end;          /* post no further */
	uint64_t sig_at;       /* the operation that makes this many is signalled */
	uint64_t last_sig;     /* posted at the last signalled one */
	uint64_t recv_posted, recv_done;
	uint32_t slot, recv_slot; /* of the next operation, of the next receive */
	uint64_t word_start;      /* value of an atomic's word before operation 0 */
	uint32_t index;
};

struct result {
	uint64_t ops, cycles, doorbells; /* of the timed spans */
	uint64_t bytes;                  /* verified */
	uint64_t guards;                 /* guard bytes verified */
	uint64_t recvs;                  /* receive completions checked */
	uint64_t rounds;
	uint64_t kinds[MIX_KINDS]; /* operations of --op mixed, of both phases */
	uint64_t late;             /* completions seen before their results, this round */
	uint64_t first_late;       /* operation of the first of them */
	uint64_t errors;
	uint64_t broken;   /* of them, completions that say that a request or receive has failed */
	uint64_t unposted; /* operations that were due, with --rate, and could not be posted */
};

struct row {
	const struct engine *e;
	uint32_t size;
	uint32_t slots;                       /* of each pair */
	uint32_t window, burst, signal_every; /* after fitting to the slots */
	uint64_t rate;                        /* of each lcore, 0: as fast as it goes */
	bool use_inline;
	bool complete;   /* ran to its end */
	uint32_t lcores; /* whose results these are */
	struct result res;
	struct hist lat; /* TSC cycles */
};

/*
 * What a running test tells another thread, and is told by it: __atomic, and updated every few
 * milliseconds. The histogram is the asking thread's while ask is LIVE_NOTHING.
 */
enum live_ask {
	LIVE_NOTHING,
	LIVE_LATENCY, /* copy the latencies */
	LIVE_CLEAR,   /* forget them */
};

struct live {
	uint64_t ops; /* of the row, each phase */
	uint64_t bytes, errors;
	uint32_t ask; /* enum live_ask; back to NOTHING when it is done */
	uint32_t stop;
	struct hist lat;
};

/* A row is run by one test on each lcore, with queues and memory of its own. */
struct test {
	struct options o;
	struct bb_dev *dev;
	struct bb_dev_attr attr;
	struct bb_pd *pd;
	struct bb_cq *scq, *rcq;
	struct side local, remote; /* of a target in another process: our copy */
	struct bb_cm *cm;          /* NULL: the target is in this process */
	bool orders;               /* the row needs work of the target in another process */
	struct schedule schedule;  /* of the span, with --rate */
	struct pair *pairs;
	struct pair *twins;  /* as many, or NULL */
	uint32_t npairs;     /* created */
	struct pair **flows; /* of the row: pairs, each with its twin behind it */
	uint32_t nflows;
	uint8_t kinds[MIX_MAX]; /* of mixed operations, in turn: enum mix_kind */
	uint32_t nkinds;
	uint8_t *scratch;   /* a message's pattern */
	uint8_t edge[EDGE]; /* what is in the edges */
	struct row *row;    /* being run */
	uint32_t row_no, nrows;
	uint64_t started; /* TSC */
	uint64_t tsc_hz;
	uint64_t errors, verified; /* of all rows */
	uint32_t passed, failed;
	bool fatal;                      /* the queues are of no use any more */
	uint64_t stop_seen;              /* TSC of the first look that found a stop; 0: none */
	uint32_t dead_devices, dead_cqs; /* stall.c: events that are older than the queues */
	uint32_t lcore;                  /* that owns the queues, or BB_LCORE_SELF */
	struct live *live;               /* of tests in the background, else NULL */
	uint64_t live_at;                /* TSC of its last update */
};

/* setup.c */
int test_open_device(struct test *t);
int test_check(const struct test *t);
int test_open_queues(struct test *t);
void row_layouts(struct test *t, const struct engine *e, uint32_t size);
void row_layout(struct test *t, struct row *row, const struct engine *e, uint32_t size);
void test_close_queues(struct test *t);
void test_close_device(struct test *t);

/* check.c: a completion, of an initiator or of a target */
void send_completed(struct test *t, const struct bb_wc *wc);
void recv_completed(struct test *t, const struct bb_wc *wc);

/* modes/mixed.c: add what was done of each kind in the row to @count. */
void mixed_count(const struct test *t, uint64_t *count);

/* rate.c: of the flows' span the schedule, what is due, and its end. */
void pace_begin(struct test *t, uint64_t now);
void pace_roll(struct test *t, uint64_t now);
void pace_end(struct test *t, uint64_t now);

/* run.c */
void row_run(struct test *t, struct row *row);
/* Take what completed; @return how much it was. */
unsigned int flows_poll(struct test *t);
/* Hand over what there is room for, receives and operations. */
void flow_post(struct test *t, struct pair *p);
bool flow_finished(const struct pair *p);
/* Operations of the row that are done, of both phases; a round trip is one. */
uint64_t flows_done(const struct test *t);
/* Operations up to @end follow. */
void flow_open(struct pair *p, uint64_t end);
/* They do, behind those under way: a signalled one was to be the last of these. */
void flow_extend(struct pair *p, uint64_t end);
void live_update(struct test *t);

/* verify.c */
void layout_make(struct layout *lay, uint32_t size, uint32_t pieces, uint32_t offset);
void row_fill(struct test *t);
uint64_t op_key(const struct pair *p, uint64_t op);
/* The first 8 bytes of its pattern. */
uint64_t op_word(const struct pair *p, uint64_t op);
void data_prepare(struct pair *p, uint64_t first, uint64_t n);
void data_verify(struct pair *p, uint64_t first, uint64_t n);
/* Only the first 8 bytes of what was prepared as for a READ were to change, on both sides. */
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
/* Rows in all formats, and the counts of @t: a row is over. */
void row_over(struct test *t, const struct row *row);
/* While a row runs in the foreground: how far it is, and with --interval the statistics. */
void report_progress(struct test *t, const char *phase);
/* Where lines of --interval go: not among the rows that a program reads. */
static inline FILE *
interval_out(const struct options *o)
{
	return o->csv ? stderr : stdout;
}
/* Such a line: what was done since the one before. */
void interval_line(FILE *out, uint64_t ops, double seconds, uint64_t errors);
void report_summary(struct test *t);
void report_fail(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* json.c: 0, or -1 when the file cannot be written. */
int json_open(const char *path);
void json_start(const struct test *t);
void json_row(const struct test *t, const struct row *row);
int json_close(const struct test *t, int status);

/* Figures of a row that table, CSV and JSON share. */
struct figures {
	double seconds, mops, gbps, cycles_per_op, doorbells_per_op;
	double p50, p99, p999, max, min, mean; /* ns */
};
/* What its latencies are of: "operation", "round trip", "intended start". */
const char *row_latency_of(const struct row *row);
void row_figures(const struct test *t, const struct row *row, struct figures *f);

/* Somebody wants an end of this. Signals are the main thread's, that tells the others. */
static inline bool
test_stopping(const struct test *t)
{
	return t->live == NULL ? stop_signal != 0
			       : __atomic_load_n(&t->live->stop, __ATOMIC_RELAXED) != 0;
}

/* ---- inlines for the engines */

/* wr_id: row, pair and operation, so that a completion of anything else shows. */
#define WR_RECV          (UINT64_C(1) << 63)
#define WR_ORDER         UINT64_MAX       /* remote.h */
#define WR_COPY          (UINT64_MAX - 1) /* of the target's memory */
#define WR_ID(row, pair) ((uint64_t)((row)&0xff) << 55 | (uint64_t)(pair) << 40)

/* Of the next @n > 0 operations: how many to the next signalled one, or the last slot. */
static inline uint32_t
pair_run(const struct pair *p, uint32_t n)
{
	const uint64_t left = p->sig_at - p->posted;

	if (n > left && left != 0)
		n = (uint32_t)left;
	return RTE_MIN(n, p->t->row->slots - p->slot);
}

/* @n <= pair_run() operations were posted. One is signalled every so often, and at the end. */
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

/* Gather list of a slot: @pieces, those of the side's layout. */
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

/* Address of the first piece of a slot. */
static inline uint64_t
slot_addr(const struct side *s, const uint8_t *base, uint32_t slot)
{
	return (uint64_t)(uintptr_t)base + (uint64_t)slot * s->lay.stride + s->lay.off[0];
}

/* The same of a target's slot, for a request. */
static inline uint64_t
target_addr(const struct pair *p, uint32_t slot)
{
	return slot_addr(p->far, p->remote, slot) + p->target_delta;
}

/* What operation @op of a pair is. */
static inline const struct engine *
op_engine(const struct pair *p, uint64_t op)
{
	const struct engine *e = p->t->row->e;

	return e->pick != NULL ? e->pick(p, op) : e;
}

/* Immediate data of an operation, as it travels. */
static inline uint32_t
op_imm(const struct pair *p, uint64_t op)
{
	return (uint32_t)(op * 0x9e3779b1u) ^ (uint32_t)p->t->o.seed ^ p->index << 20;
}

#endif
