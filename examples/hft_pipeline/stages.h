/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The stages between feed and gateway, and the messages between stages. The output of a stage
 * depends only on its state and its input message. So a replay of the file without transport must
 * produce the same orders and books.
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

/*
 * Type of a message, in byte 12. An ITCH message has its ITCH type there, which differs from these
 * values.
 */
enum msg_kind {
	MSG_QUOTE = 'q',
	MSG_ORDER = 'o',
	MSG_WARM = 'w', /* warm-up order: see params.warm */
	MSG_REPORT = 'r',
};

/*
 * Bit of a message's stamp. It is set if a pause of an lcore has delayed the message (struct
 * pauses). TSC values never use this bit.
 */
#define STAMP_HELD_UP (UINT64_C(1) << 63)

/*
 * A message in the ring, of RDMA_RING_DATA bytes. Integers are little endian, so both hosts must be
 * little endian too.
 */
union hft_msg {
	/* Fields of all messages. They are copied from the tick that caused the message. */
	struct {
		uint64_t stamp;  /* TSC at which the feed should send the tick, and STAMP_HELD_UP */
		uint32_t number; /* number of the tick, from 0 */
		uint8_t kind;
	};
	/* Message from feed to book. */
	struct {
		uint8_t head[12];
		uint8_t itch[ITCH_MAX];
	} tick;
	/* Message from book to strategy: the best prices of a symbol have changed. */
	struct {
		uint8_t head[13];
		uint8_t pad;
		uint16_t locate;
		/*
		 * sequence number of this quote, from 0; a quote is a message from book to strategy
		 */
		uint32_t seq;
		struct book_top top;
		uint32_t pad2;
		uint64_t ns;
	} quote;
	/* Message from strategy to risk, and from risk to gateway. */
	struct {
		uint8_t head[13];
		char side; /* 'B' or 'S' */
		uint16_t locate;
		uint32_t seq;
		uint32_t shares;
		uint32_t price;
		uint32_t bid, ask; /* best prices at the decision to order */
		uint32_t pad;
		uint64_t ns;
	} order;
	/*
	 * Last message of a stage: its report. The field named number contains how many market
	 * data messages the run had.
	 */
	struct {
		/*
		 * Total duration of all pauses, and longest pause, of the stage's lcore, in us: see
		 * struct pauses.
		 */
		uint32_t pauses_us, longest_us;
		uint8_t head[5];
		uint8_t stage; /* stage that reports */
		uint16_t pauses;
		uint32_t lost;  /* number of messages that the stage did not receive */
		uint32_t twice; /* number of messages that came again, or out of order */
		uint32_t wrong; /* number of messages that contradict the stage's state */
		uint32_t value[5];
	} report;
	uint8_t bytes[48];
};

_Static_assert(sizeof(union hft_msg) == 48, "a slot of the ring");

/* Parameters that both processes of the pipeline must agree on. */
struct params {
	uint32_t symbols;
	uint32_t max_orders; /* maximum number of open orders */
	/*
	 * an order is sent if at least this many times more shares are wanted than offered, or the
	 * reverse
	 */
	uint32_t imbalance;
	uint32_t shares;       /* shares per order */
	uint32_t max_shares;   /* risk limit: maximum shares per order */
	uint32_t max_position; /* risk limit: maximum position per symbol, long or short, in shares
				*/
	uint32_t max_rate;     /* risk limit: maximum orders per second of the exchange's time */
	uint32_t collar;       /* risk limit: maximum distance of a price from the middle price, in
				  1/10000 */
	/*
	 * True: send warm-up orders. Only one tick in ninety becomes an order, so the path from
	 * strategy to gateway would drop out of the caches. With this option a quote that causes no
	 * order causes a warm-up order. It takes the same path, and the gateway drops it. Trading
	 * programs do this up to the last step before the wire.
	 */
	uint32_t warm;
};

/* Checks that messages arrive once, and in the order of their numbers. */
struct order_check {
	uint32_t next;
	uint32_t lost, twice;
};

/* Records the arrival of message @n. */
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

/* Maximum number of messages that a stage sends for one message that it receives. */
#define STAGE_OUT 2

struct book_stage {
	struct order_check in;
	struct book *book;
	struct book_top *top; /* best prices in the last quote, per symbol */
	uint32_t seq;
	uint32_t wrong;
	const char *why; /* reason and number of the first message that contradicts the books */
	uint32_t which;
	uint32_t
		spoil; /* DEFECT_BOOK: number of the message to apply wrongly, from 1; 0 for none */
};

struct strategy_stage {
	struct order_check in;
	struct params p;
	int64_t *signal; /* price of the last order, per symbol; negative for a sale */
	uint32_t seq;
	uint32_t warm; /* number of warm-up orders */
};

/* Reasons for which the risk stage stops an order. */
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
	const uint64_t *kill; /* kill switch: if it is not 0, risk stops all orders; a remote atomic
				 writes it */
	int64_t *position;
	uint64_t second; /* the second of the exchange's time in which in_second counts orders */
	uint32_t in_second;
	uint32_t seq; /* number of orders passed to the gateway */
	uint32_t stopped[RISK_REASONS];
};

/* Create the stages. Return 0 or -ENOMEM. */
int book_stage_open(struct book_stage *s, const struct params *p);
int strategy_stage_open(struct strategy_stage *s, const struct params *p);
int risk_stage_open(struct risk_stage *s, const struct params *p, const uint64_t *kill);
void book_stage_close(struct book_stage *s);
void strategy_stage_close(struct strategy_stage *s);
void risk_stage_close(struct risk_stage *s);

/* Process the message @in. Return the number of messages written to @out. */
unsigned int book_stage(struct book_stage *s, const union hft_msg *in, union hft_msg *out);
unsigned int strategy_stage(struct strategy_stage *s, const union hft_msg *in, union hft_msg *out);
unsigned int risk_stage(struct risk_stage *s, const union hft_msg *in, union hft_msg *out);

/* Returns the digest in a report of the book stage. */
static inline uint64_t
report_digest(const union hft_msg *m)
{
	return (uint64_t)m->report.value[1] << 32 | m->report.value[0];
}

/*
 * Processes the report of an earlier stage. Forwards the report, and after the report of the
 * previous stage also adds the report of @self. Returns the number of messages in @out.
 */
unsigned int stage_report(enum stage self, const struct order_check *c, const union hft_msg *in,
			  const uint32_t value[5], uint32_t wrong, union hft_msg *out);

#endif
