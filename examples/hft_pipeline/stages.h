/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The stages between feed and gateway, and what goes between them. Pure: a stage is a function of
 * its state and a message, so that a replay of the file without any transport must give the same
 * orders and the same books.
 */
#ifndef STAGES_H
#define STAGES_H

#include <stdbool.h>

#include "book.h"

enum stage {
	STAGE_FEED,
	STAGE_BOOK,
	STAGE_STRATEGY,
	STAGE_RISK,
	STAGE_GATEWAY,
	STAGES,
};

extern const char *const stage_name[STAGES];

/* What a message is: byte 12 of it. ITCH types stand for themselves. */
enum msg_kind {
	MSG_QUOTE = 'q',
	MSG_ORDER = 'o',
	MSG_WARM = 'w', /* an order that is none: see params.warm */
	MSG_REPORT = 'r',
};

/* In the stamp: on its way a place did not run, see struct pauses. No TSC comes so far. */
#define STAMP_HELD_UP (UINT64_C(1) << 63)

/* A message of the ring, RDMA_RING_DATA bytes; little endian on both hosts. */
union hft_msg {
	/* All kinds. The tick that it is about: */
	struct {
		uint64_t
			stamp; /* when it was due at the feed, in ticks of its TSC; STAMP_HELD_UP */
		uint32_t number; /* counted from 0 */
		uint8_t kind;
	};
	/* Feed to book. */
	struct {
		uint8_t head[12];
		uint8_t itch[ITCH_MAX];
	} tick;
	/* Book to strategy: the best prices are others. */
	struct {
		uint8_t head[13];
		uint8_t pad;
		uint16_t locate;
		uint32_t seq; /* counted by who sends it, from 0 */
		struct book_top top;
		uint32_t pad2;
		uint64_t ns;
	} quote;
	/* Strategy to risk to gateway. */
	struct {
		uint8_t head[13];
		char side; /* 'B', 'S' */
		uint16_t locate;
		uint32_t seq;
		uint32_t shares;
		uint32_t price;
		uint32_t bid, ask; /* at that time */
		uint32_t pad;
		uint64_t ns;
	} order;
	/* Of each stage, behind its last message; number is the messages of the day. */
	struct {
		/* Of its place, see struct pauses. */
		uint32_t pauses_us, longest_us;
		uint8_t head[5];
		uint8_t stage; /* who reports */
		uint16_t pauses;
		uint32_t lost;  /* numbers that did not come */
		uint32_t twice; /* that came again or too late */
		uint32_t wrong; /* messages that did not fit */
		uint32_t value[5];
	} report;
	uint8_t bytes[48];
};

_Static_assert(sizeof(union hft_msg) == 48, "a slot of the ring");

/* What both sides of the pipeline must agree on. */
struct params {
	uint32_t symbols;
	uint32_t max_orders;   /* open at a time */
	uint32_t imbalance;    /* shares on one side to shares on the other that make an order */
	uint32_t shares;       /* of an order */
	uint32_t max_shares;   /* risk: of an order */
	uint32_t max_position; /* of a symbol, long or short, in shares */
	uint32_t max_rate;     /* orders in a second of the exchange's time */
	uint32_t collar;       /* furthest from the middle, in 1/10000 */
	/*
	 * One tick in ninety becomes an order: by then the way from strategy to gateway is out of
	 * the caches. With this, a quote that makes no order goes the same way, to be dropped at
	 * the gateway, as trading programs do up to the last thing in front of the wire.
	 */
	uint32_t warm;
};

/* Numbers that must come one after the other. */
struct order_check {
	uint32_t next;
	uint32_t lost, twice;
};

/* @n has come. */
static inline void
order_check(struct order_check *c, uint32_t n)
{
	if (n == c->next) {
		c->next++;
	} else if (n > c->next) {
		c->lost += n - c->next;
		c->next = n + 1;
	} else {
		c->twice++;
	}
}

/* Most messages that a stage makes out of one. */
#define STAGE_OUT 2

struct book_stage {
	struct order_check in;
	struct book *book;
	struct book_top *top; /* as told last */
	uint32_t seq;
	uint32_t wrong;
	const char *why; /* of the first that was wrong, and its number */
	uint32_t which;
	uint32_t spoil; /* a seeded defect: this message, from 1, is applied wrongly; 0: none */
};

struct strategy_stage {
	struct order_check in;
	struct params p;
	int64_t *signal; /* of each symbol: price of its last order, negative for a sale */
	uint32_t seq;
	uint32_t warm; /* messages of that kind */
};

/* Why risk stops an order. */
enum risk_reason {
	RISK_KILLED,
	RISK_SHARES,
	RISK_COLLAR,
	RISK_POSITION,
	RISK_RATE,
	RISK_REASONS,
};

extern const char *const risk_reason_name[RISK_REASONS];

struct risk_stage {
	struct order_check in, warm;
	struct params p;
	const uint64_t *kill; /* not 0: no order goes out any more; written by a remote atomic */
	int64_t *position;
	uint64_t second; /* the second that orders are counted in */
	uint32_t in_second;
	uint32_t seq; /* orders that passed */
	uint32_t stopped[RISK_REASONS];
};

/* 0 or -ENOMEM. */
int book_stage_open(struct book_stage *s, const struct params *p);
int strategy_stage_open(struct strategy_stage *s, const struct params *p);
int risk_stage_open(struct risk_stage *s, const struct params *p, const uint64_t *kill);
void book_stage_close(struct book_stage *s);
void strategy_stage_close(struct strategy_stage *s);
void risk_stage_close(struct risk_stage *s);

/* A message comes; messages go on in @out. How many. */
unsigned int book_stage(struct book_stage *s, const union hft_msg *in, union hft_msg *out);
unsigned int strategy_stage(struct strategy_stage *s, const union hft_msg *in, union hft_msg *out);
unsigned int risk_stage(struct risk_stage *s, const union hft_msg *in, union hft_msg *out);

/* The digest out of a report of the book. */
static inline uint64_t
report_digest(const union hft_msg *m)
{
	return (uint64_t)m->report.value[1] << 32 | m->report.value[0];
}

/*
 * A report comes, after which @self has to say its own: it goes on, and behind the report of the
 * stage in front, @own. How many.
 */
unsigned int stage_report(enum stage self, const struct order_check *c, const union hft_msg *in,
			  const uint32_t value[5], uint32_t wrong, union hft_msg *out);

#endif
