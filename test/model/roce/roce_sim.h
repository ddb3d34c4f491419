/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A network of hosts with queue pairs of the RoCEv2 engine, in virtual time; equal seeds give
 * equal runs. Each packet is serialized with its ICRC, may be lost, duplicated, delayed or
 * corrupted, and is parsed again. roce_sim_ops.c knows the effect that every message must have.
 * It fails the test at the first wrong access, completion or packet:
 * - RC: each message is executed once and in the order of posting, each byte once and in order.
 *   Completions are in order, one per message, and not before the peer has executed the message.
 * - UC, UD: a message that completes a receive was sent, and is whole and unchanged. A WRITE
 *   leaves only its own bytes in its range.
 * - No access is outside of what bb_roce_ops.remote_check() allowed, and no packet is beyond the
 *   window.
 */
#ifndef ROCE_SIM_H
#define ROCE_SIM_H

#include <string.h>

#include "bb_cqe.h"
#include "bb_roce_qp.h"
#include "bb_test.h"

#define SIM_US     UINT64_C(1000)
#define SIM_MS     UINT64_C(1000000)
#define SIM_SEC    UINT64_C(1000000000)
#define SIM_HOUR   (3600 * SIM_SEC)
#define SIM_CANARY 64u
#define SIM_SLOTS  64u /* maximum number of messages of a queue pair */

/* Divisor of the long runs: 10 in the short form of a test (BB_TEST_SHORT), else 1. */
static inline unsigned int
sim_share(void)
{
	return getenv("BB_TEST_SHORT") != NULL ? 10 : 1;
}
#define SIM_REPLAYS 16u
#define SIM_RX_RING 512u
#define SIM_AHEADS  256u /* maximum number of out-of-order packets held */
#define SIM_WORDS   8u   /* words for atomics, at the start of a region */

/* Faults of packets that a host sends, each in millionths. */
struct sim_faults {
	uint32_t loss, dup, reorder, corrupt;
	uint32_t tx_full; /* the host has no room for the packet */
	uint64_t delay;   /* of each packet, in ns */
	/* Time until which the host's link accepts no packet; UINT64_MAX: for ever. */
	uint64_t stalled;
	/*
	 * Loses no packet whose loss only a timer would detect: a packet that the peer's NAK
	 * asked for, because a NAK is sent once, and a packet that no other packet follows.
	 */
	bool untimed;
};

/* Traffic that a queue pair generates: random messages of these kinds and lengths. */
struct sim_load {
	uint64_t messages;
	uint32_t kinds; /* bits 1 << enum bb_roce_kind */
	uint32_t max_len;
	uint32_t depth;  /* maximum number posted at a time */
	uint64_t think;  /* ns between messages, 0 for none */
	uint32_t fences; /* millionths of messages with BB_ROCE_FENCE */
};

struct sim_msg {
	uint8_t kind, flags;
	uint32_t len, imm;
	uint64_t off; /* offset in the peer's region */
	uint64_t swap_add, compare, orig;
	/* Pattern of the message's bytes; READ: of the bytes that it reads, from key_off on. */
	uint64_t key;
	uint64_t key_off;
	uint64_t area;   /* position in the ring of ranges to write to */
	uint32_t placed; /* READ: bytes received; UC WRITE: bytes written */
	bool executed;
	uint64_t dest; /* UD: index of the queue pair */
};

struct sim_host {
	struct sim *sim;
	uint8_t gid[16];
	struct sim_faults out;
	/*
	 * The host loses its CPU after up to stall_every ns, for up to stall_max ns; 0 for never.
	 * Meanwhile up to SIM_RX_RING received packets wait. Afterwards due timers may be
	 * processed before the packets.
	 */
	uint64_t stall_max, stall_every, stall_next, stalled; /* stalled: end of the stall */
	uint32_t waiting;                                     /* number of received packets */
	struct sim_qp **qps;                                  /* indexed by QP number - 1 */
	uint32_t qp_n;
};

struct sim_qp {
	struct bb_roce_qp qp;
	struct sim_host *host;
	struct sim_qp *peer;
	struct bb_roce_msg *ring;
	struct bb_roce_replay *replay;
	uint64_t rng;

	/*
	 * Memory that the peer may access: SIM_WORDS words, constant bytes to read, ranges to
	 * write.
	 */
	uint8_t *mem; /* with canaries before and after */
	uint64_t size, read_from, write_from, va;
	uint32_t rkey;
	uint64_t grant_va, grant_len; /* range of the last successful check */

	/* Requester */
	struct sim_load load;
	struct sim_msg *msgs;
	uint64_t posted, room, done, area; /* area: bytes of ranges handed out */
	uint64_t next_post;                /* time */
	struct bb_roce_net *nets;          /* UD: paths to each host */
	uint8_t error;                     /* first status other than 0 */
	uint64_t ok;                       /* completions with status 0 */
	bool may_fail, failed, failed_responder, flushed;
	uint8_t failed_synd;
	/* Responder: the peer's message to execute next, and the bytes of it that were executed. */
	uint64_t exec, exec_off;
	bool in_response; /* in the response to a READ; its next packet is response_psn */
	uint32_t response_psn;
	/* Receives */
	uint64_t recvs, taken, received;
	uint64_t recv_delay; /* ns until a used receive is posted again, 0 for at once */
	uint32_t recv_size;
	bool in_hand;
	struct bb_roce_pkt *ahead[SIM_AHEADS];
	uint32_t kept; /* packets that were not returned */
	uint32_t busy; /* times that the next key to invalidate is in use */
	uint8_t *rbuf;
	uint8_t gbuf[4096];

	uint64_t run_at, timer_at;
};

struct sim_stats {
	uint64_t stalls, packets, lost, doubled, reordered, corrupted, bad, full, events;
};

struct sim {
	uint64_t seed, rng, now, digest;
	uint64_t done_at; /* time of the last completion of a message */
	struct sim_event *heap;
	size_t heap_n, heap_room;
	uint64_t order;
	struct sim_host *hosts;
	uint32_t host_n;
	uint32_t aheads;  /* value for new queue pairs: up to SIM_AHEADS */
	bool keep_all;    /* never lacks room for a held packet; otherwise it does now and then */
	uint64_t keeps;   /* packets that each queue pair may hold in total, 0 for any number */
	uint32_t missing; /* millionths of the accesses to memory that find a page missing; RC */
	uint64_t missed;  /* number of these accesses */
	struct sim_qp **qps;
	uint64_t qp_n;
	struct sim_stats stats;
};

/* ---- roce_sim_setup.c */
struct sim *sim_open(uint64_t seed, uint32_t hosts, bool ip6);
/* Checks all memory once more, and frees everything. */
void sim_close(struct sim *s);
/* Sets the faults of all hosts. */
void sim_faults(struct sim *s, const struct sim_faults *f);
/*
 * Fills the defaults of a queue pair: RC, MTU 1024, default retries, adaptive, window 64, random
 * PSN.
 */
void sim_attr(struct sim *s, struct bb_roce_attr *a);
/* Creates a queue pair with @size bytes of memory for the peer, 64 KiB if @size is 0. */
struct sim_qp *sim_qp(struct sim *s, uint32_t host, const struct bb_roce_attr *a, uint64_t size);
/* Connects two queue pairs to each other; UD queue pairs are only made ready. */
void sim_connect(struct sim_qp *a, struct sim_qp *b);
/* Creates and connects two queue pairs on hosts 0 and 1. */
void sim_pair(struct sim *s, const struct bb_roce_attr *a, uint64_t size, struct sim_qp *q[2]);

/* ---- roce_sim.c */
void sim_recvs(struct sim_qp *q, uint64_t n);
/* Posts one message. Returns false if there is no room. */
bool sim_post(struct sim_qp *q, const struct sim_msg *m);
/* Makes a random message of @kind and length. */
void sim_make(struct sim_qp *q, struct sim_msg *m, uint8_t kind, uint32_t len);
/* Runs until no event is left, or until the time @until. */
void sim_run(struct sim *s, uint64_t until);
/* Runs until no event is left; fails the test if a load is not complete. */
void sim_finish(struct sim *s);
/* Returns true if an access of RC finds a page missing. Call it before the access has an effect. */
bool sim_missing(struct sim_qp *q);
/*
 * Returns true if the key of a SEND with invalidate is in use. The SEND's last packet, which was
 * placed, then comes again.
 */
bool sim_key_busy(struct sim_qp *q);
void sim_fail(const struct sim *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
uint64_t sim_rnd(uint64_t *state);
static inline uint32_t
sim_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((sim_rnd(state) >> 32) * n >> 32);
}
/* Used by the other files of the simulation */
void sim_drop_events(struct sim *s);
bool sim_transmit(struct sim_qp *q, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n);
void sim_wake(struct sim_qp *q);
void sim_recv_later(struct sim_qp *q);

/* ---- roce_sim_ops.c */
extern const struct bb_roce_ops sim_ops;
/* Fills @p with the bytes of pattern @key from @off on. */
void sim_pattern(uint8_t *p, uint64_t key, uint64_t off, uint64_t len);
/* Checks canaries, constant bytes and ranges of UC at the end. */
void sim_check_memory(struct sim_qp *q);

#endif
