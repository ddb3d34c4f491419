/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A network of hosts with queue pairs of the RoCEv2 engine, in virtual time: the same seed is the
 * same run. Each packet is built to bytes with its ICRC, may be lost, doubled, delayed or
 * corrupted on the way, and is parsed again. roce_sim_ops.c knows what every message must do and
 * fails the test at the first access, completion or packet that is not right:
 *
 * - RC: each message acts once and in the order of posting, each byte of it once and in order;
 *   completions come in order, one each, and not before the peer has acted.
 * - UC, UD: a message that completes a receive is one that was sent, whole and unchanged; a WRITE
 *   leaves in its range only its own bytes.
 * - No access outside of what bb_roce_ops.remote_check() allowed, no packet beyond the window.
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
#define SIM_SLOTS  64u /* messages of a queue pair, at most */

/* Divisor of the long runs: 10 in the short form of a test (BB_TEST_SHORT), else 1. */
static inline unsigned int
sim_share(void)
{
	return getenv("BB_TEST_SHORT") != NULL ? 10 : 1;
}
#define SIM_REPLAYS 16u
#define SIM_RX_RING 512u
#define SIM_AHEADS  256u /* packets that are kept ahead of a lost one, at most */
#define SIM_WORDS   8u   /* that atomics work on, at the start of a region */

/* What happens to packets that a host sends, each in millionths. */
struct sim_faults {
	uint32_t loss, dup, reorder, corrupt;
	uint32_t tx_full; /* the host has no room for it now */
	uint64_t delay;   /* ns, of each packet */
	/* A stalled link: until then it accepts no packet of the host. UINT64_MAX: for ever. */
	uint64_t stalled;
	/* Nothing is lost that only a timer would find: what the peer has sent its NAK for, which
	 * it does once, and what nothing comes behind. */
	bool untimed;
};

/* What a queue pair sends by itself: random messages of these kinds and lengths. */
struct sim_load {
	uint64_t messages;
	uint32_t kinds; /* 1 << enum bb_roce_kind */
	uint32_t max_len;
	uint32_t depth;  /* posted at a time, at most */
	uint64_t think;  /* ns between messages; 0: none */
	uint32_t fences; /* millionths of messages with BB_ROCE_FENCE */
};

struct sim_msg {
	uint8_t kind, flags;
	uint32_t len, imm;
	uint64_t off; /* in the peer's region */
	uint64_t swap_add, compare, orig;
	uint64_t key; /* of the bytes it carries; READ: of those it finds, from key_off on */
	uint64_t key_off;
	uint64_t area;   /* place in the ring of ranges to write to */
	uint32_t placed; /* READ: bytes that came; UC WRITE: bytes written */
	bool executed;
	uint64_t dest; /* UD: index of the queue pair */
};

struct sim_host {
	struct sim *sim;
	uint8_t gid[16];
	struct sim_faults out;
	/*
	 * Now and then it gets no CPU: for up to stall_max ns, 0: never, after up to stall_every.
	 * What comes meanwhile waits, up to SIM_RX_RING packets; of timers and packets that are
	 * due when it goes on, timers may be first.
	 */
	uint64_t stall_max, stall_every, stall_next, stalled; /* stalled: until then */
	uint32_t waiting;                                     /* packets */
	struct sim_qp **qps;                                  /* by QP number - 1 */
	uint32_t qp_n;
};

struct sim_qp {
	struct bb_roce_qp qp;
	struct sim_host *host;
	struct sim_qp *peer;
	struct bb_roce_msg *ring;
	struct bb_roce_replay *replay;
	uint64_t rng;

	/* What its peer may use: SIM_WORDS words, constant bytes to be read, ranges to be written.
	 */
	uint8_t *mem; /* canaries before and behind */
	uint64_t size, read_from, write_from, va;
	uint32_t rkey;
	uint64_t grant_va, grant_len; /* of the last check that was passed */

	/* As requester */
	struct sim_load load;
	struct sim_msg *msgs;
	uint64_t posted, room, done, area; /* area: bytes of ranges handed out */
	uint64_t next_post;                /* time */
	struct bb_roce_net *nets;          /* UD: to each host */
	uint8_t error;                     /* first status that was not 0 */
	uint64_t ok;                       /* completions with status 0 */
	bool may_fail, failed, failed_responder, flushed;
	uint8_t failed_synd;
	/* As responder: the peer's message that is to act next, and how far it is. */
	uint64_t exec, exec_off;
	bool in_response; /* to a READ, its next packet is response_psn */
	uint32_t response_psn;
	/* Receives */
	uint64_t recvs, taken, received;
	uint64_t recv_delay; /* ns until one that was used is posted again; 0: at once */
	uint32_t recv_size;
	bool in_hand;
	struct bb_roce_pkt *ahead[SIM_AHEADS];
	uint32_t kept; /* packets that are not given back */
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
	uint32_t aheads; /* of queue pairs to come: up to SIM_AHEADS */
	bool keep_all;   /* else now and then there is no room for one of them */
	uint64_t keeps;  /* of each queue pair are kept, and then no more; 0: any number */
	struct sim_qp **qps;
	uint64_t qp_n, qp_room;
	struct sim_stats stats;
};

/* ---- roce_sim_setup.c */
struct sim *sim_open(uint64_t seed, uint32_t hosts, bool ip6);
/* Checks all memory once more. */
void sim_close(struct sim *s);
/* Faults of all that is sent by all hosts. */
void sim_faults(struct sim *s, const struct sim_faults *f);
/* Defaults of a queue pair: RC, MTU 1024, default retries, adaptive, window 64, random PSN. */
void sim_attr(struct sim *s, struct bb_roce_attr *a);
/* @size bytes of memory for the peer; 0: 64 KiB. */
struct sim_qp *sim_qp(struct sim *s, uint32_t host, const struct bb_roce_attr *a, uint64_t size);
/* Connect both ways; of UD only bring both up. */
void sim_connect(struct sim_qp *a, struct sim_qp *b);
/* Two queue pairs on hosts 0 and 1. */
void sim_pair(struct sim *s, const struct bb_roce_attr *a, uint64_t size, struct sim_qp *q[2]);

/* ---- roce_sim.c */
void sim_recvs(struct sim_qp *q, uint64_t n);
/* Post one message. False: no room for it now. */
bool sim_post(struct sim_qp *q, const struct sim_msg *m);
/* A message of @kind and length, elsewhere random. */
void sim_make(struct sim_qp *q, struct sim_msg *m, uint8_t kind, uint32_t len);
/* Until no event is left or @until. */
void sim_run(struct sim *s, uint64_t until);
/* Until nothing more happens; then all loads are done, or the test fails. */
void sim_finish(struct sim *s);
void sim_fail(const struct sim *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
uint64_t sim_rnd(uint64_t *state);
static inline uint32_t
sim_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((sim_rnd(state) >> 32) * n >> 32);
}
/* For the other files */
void sim_drop_events(struct sim *s);
bool sim_transmit(struct sim_qp *q, const struct bb_roce_net *net, const struct bb_roce_pkt *pkt,
		  const struct bb_roce_iov *iov, uint32_t n);
void sim_wake(struct sim_qp *q);
void sim_recv_later(struct sim_qp *q);

/* ---- roce_sim_ops.c */
extern const struct bb_roce_ops sim_ops;
/* Bytes that belong to @key from @off on. */
void sim_pattern(uint8_t *p, uint64_t key, uint64_t off, uint64_t len);
/* At the end: canaries, constant bytes, ranges of UC. */
void sim_check_memory(struct sim_qp *q);

#endif
