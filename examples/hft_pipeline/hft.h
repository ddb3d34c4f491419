/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A place (struct place) is an lcore that runs one or several stages. Stages of one lcore call each
 * other. Two lcores are joined by a link: a ring of RDMA writes over its own queue pair. Each lcore
 * has its own PD, CQ and connection manager, and its thread owns all of them.
 *
 *   link 0: feed → book, 1: book → strategy, 2: strategy → risk, 3: risk → gateway
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
#define ALL_PLACES  UINT32_MAX

/* Seeded defects, to show that the checks detect them. */
enum defect {
	DEFECT_NONE,
	DEFECT_DROP,  /* a tick is not sent */
	DEFECT_TWICE, /* a tick is sent twice */
	DEFECT_SWAP,  /* a tick is swapped with the next one */
	DEFECT_BOOK,  /* a tick is applied wrongly */
	DEFECT_ORDER, /* an order is lost before the gateway */
	/* Defects of one side that the peer must detect: */
	DEFECT_SEQ,    /* a message has the number of another one */
	DEFECT_CREDIT, /* credit is granted for messages that do not exist */
};

struct options {
	const char *file, *generate, *json;
	const char *device, *peer_device;
	const char *listen, *connect;
	uint32_t messages, symbols;
	uint64_t seed;
	uint32_t rate; /* ticks per second; 0 means no limit */
	uint32_t slots;
	uint32_t kill_after; /* orders; 0: the kill switch is not used */
	uint32_t wait_s;
	struct params params;
	uint8_t place_of[STAGES]; /* index of the lcore that runs a stage */
	uint32_t places;
	uint32_t place; /* the only one in this process; ALL_PLACES: see listen and connect */
	enum defect defect;
	uint32_t defect_at; /* number of the message, counted from 1 */
};

/* Members of struct program. */
extern const struct option hft_options[];
int options_parse(void *o, int argc, char **argv);
void options_help(FILE *out);

struct place;

/* One end of a link. */
struct end {
	bool used, producer, listens;
	bool up;    /* connected: the ring can be used */
	bool ended; /* this side has ended it */
	bool last;  /* the previous stage's report has arrived: nothing follows */
	bool over;  /* disconnected */
	uint32_t link;
	uint64_t call; /* TSC before which the connecting side does not connect */
	struct bb_qp *qp;
	struct bb_conn *conn;
	struct bb_listener *listener;
	void *mem; /* the consumer's slots, or the producer's credit */
	struct bb_mr *mr;
	struct bb_region region[2];
	uint32_t nregions;
	struct rdma_ring_tx tx;
	struct rdma_ring_rx rx;
	struct end *next; /* end through which incoming messages leave the lcore again; NULL if
			   * they stay */
	/* Messages of a stage that are not in the ring yet: one tick produces at most STAGES. */
	union hft_msg backlog[STAGES];
	uint32_t nbacklog;
};

/* State of the gateway. */
struct gateway {
	struct order_check in, warm;
	struct order_out *orders;
	uint32_t norders, max_orders;
	struct hist latency; /* in TSC ticks */
	struct hist quiet;   /* those not delayed by a pause of an lcore */
	union hft_msg report[STAGES];
	uint32_t reports;         /* one bit for each stage that has reported */
	bool kill_posted, killed; /* the atomic is complete */
	uint32_t orders_at_kill;  /* orders received before it was */
	uint64_t kill_found;      /* value of the switch before */
	uint64_t *old;            /* result buffer of the atomic */
	struct bb_mr *old_mr;
};

struct feed {
	const struct itch_file *file;
	uint32_t next;           /* next tick to send, from 0 */
	uint64_t start, gap_q16; /* TSC of the first tick; interval in 1/65536 TSC ticks */
	uint64_t due;            /* TSC at which the next tick is due */
	uint64_t end_tsc;
	struct end *out; /* end through which ticks leave the lcore */
	bool done;
};

struct place {
	const struct options *o;
	uint32_t index;
	unsigned int lcore;
	struct bb_dev *dev;
	bool target_progress; /* as in bb_dev_attr */
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct end end[LINKS];
	/* The ends that the loop visits: each turn without a message delays the next one. */
	struct end *in[LINKS], *out[LINKS];
	uint32_t nin, nout;
	uint32_t held;    /* messages in backlogs */
	uint32_t taken;   /* messages and ticks in this turn */
	bool urgent;      /* an order is in a ring and its doorbell is pending */
	uint32_t unended; /* number of links, and the feed, whose last message is still to come */
	struct feed feed;
	struct pauses pauses;
	struct book_stage book;
	struct strategy_stage strategy;
	struct risk_stage risk;
	struct gateway gateway;
	uint64_t *kill; /* the kill switch, in memory that the gateway can access */
	struct bb_mr *kill_mr;
	bool finished; /* the last report has been processed */
	int rc;        /* 0 or -errno */
	char why[256]; /* reason for rc */
};

/* Set if an lcore has failed: the others in the process end. */
extern int some_failed;
/* Ports of the listening ends, in network order; 0 if not listening yet. Within one process. */
extern uint16_t link_port[LINKS];

static inline bool
runs(const struct place *p, enum stage s)
{
	return p->o->place_of[s] == p->index;
}

/* Records the reason of a failure, once. @return @rc */
int place_fail(struct place *p, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Create and connect the rings of an lcore (link.c), in its own thread. Return 0, or -errno after
 * place_fail().
 */
int links_open(struct place *p);
int links_connect(struct place *p);
/* Handles events of the connections while the lcore runs. */
int links_watch(struct place *p);
/* Handles an unexpected completion. */
int links_error(struct place *p, const struct bb_wc *wc);
void links_disconnect(struct place *p);
void links_close(struct place *p);

/* Runs the data path (run.c) until all reports have arrived, an error, or a signal. */
int place_run(struct place *p);

/*
 * Prints the result of the side with feed and gateway. If @rc, the status so far, is 0, everything
 * is checked against a replay. Returns the exit status.
 */
int report(const struct options *o, const struct place *places, int rc);

#endif
