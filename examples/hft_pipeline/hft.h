/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A worker (struct worker) is an lcore that runs one or several stages. Stages of the same lcore
 * call each other. A link joins stages on two lcores: a ring of RDMA WRITEs over a separate queue
 * pair. Each lcore has its own PD, CQ and connection manager, and its thread owns all of them.
 *
 * link 0: feed → book, 1: book → strategy, 2: strategy → risk, 3: risk → gateway
 */
#ifndef HFT_H
#define HFT_H

#include <inttypes.h>
#include <pthread.h>
#include <sys/socket.h>

#include "histogram.h"
#include "pauses.h"
#include "program.h"
#include "rdma_ring.h"
#include "replay.h"

_Static_assert(sizeof(union hft_msg) == RDMA_RING_DATA, "a message fills a slot");

#define LINKS       (STAGES - 1)
#define EXIT_FAILED 1
#define EXIT_USAGE  2
#define ALL_WORKERS UINT32_MAX

/* Defects that --defect makes, to show that the checks detect them. */
enum defect {
	DEFECT_NONE,
	DEFECT_DROP,  /* the feed does not send a tick */
	DEFECT_TWICE, /* the feed sends a tick twice */
	DEFECT_SWAP,  /* the feed swaps a tick with the next one */
	DEFECT_BOOK,  /* the book applies a tick wrongly */
	DEFECT_ORDER, /* the gateway loses an order before it records the order */
	/* Defects of one end of a link that the other end must detect: */
	DEFECT_SEQ,    /* the producer sends a message with a wrong message number */
	DEFECT_CREDIT, /* the consumer sends credit for messages that do not exist */
	DEFECT_KILL,   /* risk sends the kill switch with a wrong address */
};

struct options {
	const char *file, *generate, *json, *hgrm;
	const char *device, *peer_device;
	const char *listen, *connect; /* arguments of --listen and --connect, or NULL */
	uint32_t messages, symbols;
	uint64_t seed;
	uint32_t rate; /* ticks per second; 0 for no limit */
	uint32_t slots;
	uint32_t kill_after; /* number of orders after which the gateway sets the kill switch; 0 for
				never */
	uint32_t wait_s;
	struct params params;
	uint8_t worker_of[STAGES]; /* index of the worker that runs a stage */
	uint32_t workers;
	/*
	 * Index of the only worker that this process runs, or ALL_WORKERS. With ALL_WORKERS this
	 * process runs only the feed's worker if @connect is set, all other workers if @listen is
	 * set, and all workers if neither is set.
	 */
	uint32_t worker;
	enum defect defect;
	/*
	 * Number of the message or tick with the defect, counted from 1. With DEFECT_KILL: bytes to
	 * add to the address.
	 */
	uint32_t defect_at;
};

/* Values for the members of struct program. */
extern const struct option hft_options[];
int options_parse(void *o, int argc, char **argv);
void options_help(FILE *out);

struct worker;

/* One end of a connection between two stages of the pipeline. */
struct end {
	bool used, producer, listens;
	bool up;              /* the link is connected, so the ring can be used */
	bool ended;           /* this end has called bb_conn_disconnect() */
	bool report_received; /* the previous stage's report has arrived, and no message follows it
			       */
	bool disconnected;    /* the connection manager has reported the end of the connection */
	uint32_t link;
	uint64_t next_try; /* TSC before which the connecting end must not try to connect */
	int last_error;    /* -errno of the last attempt to connect, 0 if none has failed */
	struct bb_qp *qp;
	struct bb_conn *conn;
	struct bb_listener *listener;
	void *mem; /* memory of this end of the ring: the slots of a consumer, or the credit of a
		      producer */
	struct bb_mr *mr;
	struct bb_region region[2];
	uint32_t nregions;
	struct rdma_ring_tx tx;
	struct rdma_ring_rx rx;
	struct end *next; /* end through which the messages of this end leave the lcore; NULL if
			     they stay */
	/* Messages that are not in the ring yet. One tick produces at most STAGES messages. */
	union hft_msg backlog[STAGES];
	uint32_t nbacklog;
};

/* State of the gateway. */
struct gateway {
	struct order_check in, warm;
	struct order_out *orders;
	uint32_t norders, max_orders;
	struct hist latency; /* latencies of all trading orders, in TSC cycles */
	struct hist
		quiet; /* latencies of the trading orders that no pause of an lcore has delayed */
	union hft_msg report[STAGES];
	bool kill_due; /* the kill switch must be set */
	bool killed;   /* the atomic that sets the kill switch has completed */
	/* number of trading orders received before the atomic was posted; 0 if it was not posted */
	uint32_t orders_at_post;
	uint32_t orders_at_kill; /* number of trading orders received before the atomic completed */
	uint64_t kill_found;     /* value of the kill switch before the atomic */
	uint64_t *old;           /* result buffer of the atomic */
	struct bb_mr *old_mr;
};

struct feed {
	const struct itch_file *file;
	uint32_t next;           /* number of the next tick to send, from 0 */
	uint64_t start, gap_q16; /* TSC of the first tick; interval in 1/65536 cycles */
	uint64_t due;            /* TSC at which the next tick is due */
	uint64_t end_tsc;
	struct end *out; /* end through which the ticks leave the lcore; NULL if they stay */
	bool done;
};

struct worker {
	const struct options *o;
	uint32_t index;
	unsigned int lcore;
	struct bb_dev *dev;
	uint32_t max_inline;  /* inline data of the queue pairs, in bytes */
	bool target_progress; /* value of target_progress in bb_dev_attr */
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct end end[LINKS];
	/*
	 * Ends of the links that this lcore uses. The loop visits only these ends, because each
	 * visit without a message delays the next message.
	 */
	struct end *in[LINKS], *out[LINKS];
	uint32_t nin, nout;
	uint32_t n_backlog; /* number of messages in the backlogs of all ends */
	/* number of messages and ticks received in this turn, which is one pass of the loop */
	uint32_t n_received;
	bool urgent;      /* a ring has a trading order whose doorbell was not rung yet */
	uint32_t unended; /* number of inputs, including the feed, whose last message has not come
			     yet */
	struct feed feed;
	struct pauses pauses;
	struct book_stage book;
	struct strategy_stage strategy;
	struct risk_stage risk;
	struct gateway gateway;
	uint64_t *kill; /* the kill switch, in memory registered for the gateway's atomic */
	struct bb_mr *kill_mr;
	bool finished; /* the loop has ended, so disconnects are expected */
	int rc;        /* 0 or -errno */
	char why[256]; /* reason for a negative rc */
};

/* Set if an lcore has failed. The other lcores of the process then end too. */
extern int some_failed;
/*
 * Ports of the listening ends in this process, in network byte order. 0 if an end does not listen
 * yet.
 */
extern uint16_t link_port[LINKS];

static inline bool
runs(const struct worker *p, enum stage s)
{
	return p->o->worker_of[s] == p->index;
}

/* Records @rc and its reason, unless a failure is recorded already. @return @rc */
int worker_fail(struct worker *p, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Create and connect the rings of an lcore (link.c). Call them in the thread of the lcore. They
 * return 0, or -errno after worker_fail().
 */
int links_open(struct worker *p);
int links_connect(struct worker *p);
/* Handles events of the connections while the lcore runs. */
int links_watch(struct worker *p);
/* Handles an unexpected completion of a link. */
int links_error(struct worker *p, const struct bb_wc *wc);
void links_disconnect(struct worker *p);
void links_close(struct worker *p);

/* Runs the data path (run.c). Ends when all reports have arrived, on an error, or on a signal. */
int worker_run(struct worker *p);

/*
 * Prints the result of the process with feed and gateway. If @rc, the status so far, is 0, checks
 * the result against a replay. Returns the exit status.
 */
int report(const struct options *o, const struct worker *workers, int rc);

#endif
