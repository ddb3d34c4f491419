/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A place is an lcore that runs one stage or several of them. Stages of a place call each other;
 * between places there is a link: a ring by RDMA writes over a queue pair of its own. Each place
 * has its own PD, CQ and connection manager, and one thread that owns all of it.
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

/* What is done wrong on purpose, to see that it is found. */
enum defect {
	DEFECT_NONE,
	DEFECT_DROP,  /* a tick is not sent */
	DEFECT_TWICE, /* is sent twice */
	DEFECT_SWAP,  /* changes places with the next one */
	DEFECT_BOOK,  /* is applied wrongly */
	DEFECT_ORDER, /* an order is lost in front of the gateway */
	/* Of either side, to the other one: */
	DEFECT_SEQ,    /* a message says that it is another one */
	DEFECT_CREDIT, /* credit is given for messages that there never were */
};

struct options {
	const char *file, *generate, *json;
	const char *device, *peer_device;
	const char *listen, *connect;
	uint32_t messages, symbols;
	uint64_t seed;
	uint32_t rate; /* ticks in a second; 0: as fast as it goes */
	uint32_t slots;
	uint32_t kill_after; /* orders; 0: the switch is not pulled */
	uint32_t wait_s;
	struct params params;
	uint8_t place_of[STAGES]; /* which place runs a stage */
	uint32_t places;
	uint32_t place; /* the only one of this process; ALL_PLACES: see listen, connect */
	enum defect defect;
	uint32_t defect_at; /* counted from 1 */
};

/* As struct program wants them. */
extern const struct option hft_options[];
int options_parse(void *o, int argc, char **argv);
void options_help(FILE *out);

struct place;

/* One end of a link. */
struct end {
	bool used, producer, listens;
	bool up;    /* connected: the ring can be used */
	bool ended; /* we have */
	bool last;  /* the report of the stage in front has come: nothing follows */
	bool over;  /* disconnected */
	uint32_t link;
	uint64_t call; /* TSC: who connects does not before */
	struct bb_qp *qp;
	struct bb_conn *conn;
	struct bb_listener *listener;
	void *mem; /* the consumer's slots, or the producer's credit */
	struct bb_mr *mr;
	struct bb_region region[2];
	uint32_t nregions;
	struct rdma_ring_tx tx;
	struct rdma_ring_rx rx;
	struct end *next; /* where what comes in leaves the place again; NULL: it stays */
	/* Made by a stage and not in the ring yet: as much as one tick can turn into. */
	union hft_msg backlog[STAGES];
	uint32_t nbacklog;
};

/* What the gateway has got. */
struct gateway {
	struct order_check in, warm;
	struct order_out *orders;
	uint32_t norders, max_orders;
	struct hist latency; /* ticks of the TSC */
	struct hist quiet;   /* of them, what no pause of a place held up */
	union hft_msg report[STAGES];
	uint32_t reports;         /* bit for each stage that has reported */
	bool kill_posted, killed; /* the atomic is done */
	uint32_t orders_at_kill;  /* that had come when it was */
	uint64_t kill_found;      /* what the switch was before */
	uint64_t *old;            /* what the atomic found */
	struct bb_mr *old_mr;
};

struct feed {
	const struct itch_file *file;
	uint32_t next;           /* to be sent, from 0 */
	uint64_t start, gap_q16; /* TSC of the first; between two, in 1/65536 ticks */
	uint64_t due;            /* of the next */
	uint64_t end_tsc;
	struct end *out; /* where ticks leave the place */
	bool done;
};

struct place {
	const struct options *o;
	uint32_t index;
	unsigned int lcore;
	struct bb_dev *dev;
	bool target_progress; /* see bb_dev_attr */
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct end end[LINKS];
	/* Of those, what the loop goes through: each turn without a message is a delay of the next.
	 */
	struct end *in[LINKS], *out[LINKS];
	uint32_t nin, nout;
	uint32_t held;    /* messages in backlogs */
	uint32_t taken;   /* messages and ticks in this turn */
	bool urgent;      /* an order is in a ring, and its doorbell is due */
	uint32_t unended; /* links that have not had their last message, and the feed */
	struct feed feed;
	struct pauses pauses;
	struct book_stage book;
	struct strategy_stage strategy;
	struct risk_stage risk;
	struct gateway gateway;
	uint64_t *kill; /* the switch, in memory that the gateway's side can reach */
	struct bb_mr *kill_mr;
	bool finished; /* the last report has gone through */
	int rc;        /* 0 or -errno */
	char why[256]; /* of rc */
};

/* A place has failed: the others of the process end. */
extern int some_failed;
/* Where the ends that listen do, in network order; 0: not yet. Of one process. */
extern uint16_t link_port[LINKS];

static inline bool
runs(const struct place *p, enum stage s)
{
	return p->o->place_of[s] == p->index;
}

/* Say why, once. @return @rc */
int place_fail(struct place *p, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Rings and connections of a place (link.c), made by its own thread. 0 or -errno after
 * place_fail().
 */
int links_open(struct place *p);
int links_connect(struct place *p);
/* Look after connections while it runs. */
int links_watch(struct place *p);
/* Take a completion that is none of the expected ones. */
int links_error(struct place *p, const struct bb_wc *wc);
void links_disconnect(struct place *p);
void links_close(struct place *p);

/* The data path (run.c): until the reports have come, something breaks, or a signal. */
int place_run(struct place *p);

/*
 * Result of the side with feed and gateway: all is checked against a replay, if @rc, the status so
 * far, is 0. Exit status.
 */
int report(const struct options *o, const struct place *places, int rc);

#endif
