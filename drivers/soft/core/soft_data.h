/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software ConnectX, data path only. Where to start reading: soft_engine.c
 * (what one poll does), soft_doorbell.c (what makes a WQE run), soft_req.c (the
 * requester), soft_resp.c (the responder).
 *
 * The loop port is synchronous: a request is decoded, checked by the rules of both
 * sides, carried out and completed in one go, so that the requester's packets, the
 * responder's answers and their PSNs exist as rules, not as bytes. What a message
 * would meet on the wire (a peer that does not answer, a NAK, a receiver not ready)
 * it meets here as struct soft_answer.
 */
#ifndef SOFT_DATA_H
#define SOFT_DATA_H

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "bb_barrier.h"
#include "soft.h"
#include "soft_time.h"

#define SOFT_PSN_MASK    0xffffffu
#define SOFT_MAX_PIECES  (BB_WQE_MAX_DS - 1) /* of a send WQE */
#define SOFT_MAX_RX      128                 /* of a receive WQE: 2048 bytes */
#define SOFT_MAX_STRIDE  512                 /* of a receive WQE of an RMP, bytes */
#define SOFT_RUN_WQES    64                  /* of one QP before the next one's turn */
#define SOFT_NO_DEADLINE UINT64_MAX
#define SOFT_IDLE_POLLS  16 /* behind which counters are added up */
/*
 * How often a request at another engine looks whether its target still exists; and the least ack
 * timeout there, as that engine's owner may be off its CPU for a while. Cards round up, too.
 */
#define SOFT_PEER_CHECK_NS 100000000
/* UC: behind it, a message to an engine that does not run is lost. */
#define SOFT_PEER_UC_NS 1000000000

/* soft_engine.failures */
enum {
	SOFT_CQ_FAILED = 1, /* a CQ died: its QPs are to be found */
	SOFT_QP_FAILED = 2, /* QPs are on the list "failed" */
};

/* soft_qp.queued */
enum {
	SOFT_Q_NONE,
	SOFT_Q_RUN,
	SOFT_Q_TIMER,
	SOFT_Q_LATE, /* on a port: has an ACK to send, behind what it sends in the next turn */
};

/*
 * Vendor syndromes, as NVIDIA's libdpcp names them (BSD-3-Clause). Those of a key are a
 * group, by what the access was for, and in the low three bits what was wrong with it.
 * Which of them a card gives in a case that several fit is [A].
 */
enum soft_vendor {
	SOFT_VEND_KEY_RECV = 0x28,   /* receive buffer */
	SOFT_VEND_KEY_DATA = 0x30,   /* data of a READ or atomic comes in */
	SOFT_VEND_KEY_GATHER = 0x50, /* data goes out */
	SOFT_VEND_LOCAL_QP_OP = 0x68,
	SOFT_VEND_SEND_LENGTH = 0x69,
	SOFT_VEND_QP_TYPE = 0x6d,
	SOFT_VEND_OPCODE = 0x71,
	SOFT_VEND_UMR = 0x78, /* kernel logs show it with syndrome 6 of a UMR */
	SOFT_VEND_RETRY = 0x81,
	SOFT_VEND_RNR = 0x87,
	SOFT_VEND_REMOTE_ACCESS = 0x88,
	SOFT_VEND_REMOTE_OP = 0x89,
	SOFT_VEND_REMOTE_INVAL = 0x8a,
	SOFT_VEND_RECV_LENGTH = 0xd4,
	SOFT_VEND_FLUSH = 0xf9,
};
enum soft_key_fault {
	SOFT_KEY_FREE = 1, /* [A] */
	SOFT_KEY_PD = 2,   /* another PD's, or no such key */
	SOFT_KEY_RIGHT = 3,
	SOFT_KEY_RANGE = 4,
};
uint8_t soft_vendor_of(const struct soft_engine *e, bool responder, uint8_t wqe_opcode,
		       uint8_t synd);

/* A contiguous part of a payload, checked: memory of the process, or inside the WQE. */
struct soft_piece {
	uint8_t *p;
	uint64_t len;
};

/* What completing a WQE needs, without the WQE. */
struct soft_done {
	uint16_t idx;
	uint16_t blocks;
	uint8_t opcode;
	uint8_t fm_ce_se;
	uint64_t len;
	uint32_t psn; /* of its first packet */
	uint32_t packets;
	uint32_t reads; /* READs and atomics under way, with this one */
};

/* A list of them that grows; starts on an array of its owner's. */
struct soft_pieces {
	struct soft_piece *p;
	uint32_t n, cap;
	bool grown; /* p is from malloc() */
};
#define SOFT_MAX_PARTS (1u << 20) /* of one message, through indirect keys [A] */

/* A send WQE, copied out of the ring and decoded. */
struct soft_req {
	struct soft_done d;
	uint32_t imm; /* as it travels */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	uint64_t swap_mask, compare_mask; /* of masked CMP_SWAP */
	uint32_t atomic_len;
	uint32_t n;               /* pieces */
	struct soft_piece *piece; /* own, or the parts that indirect keys made of them */
	struct soft_piece own[SOFT_MAX_PIECES];
	const char *why; /* of a refusal, for the log */
	uint8_t wqe[BB_WQE_BB * 16] __rte_cache_aligned;
};

/* What comes back for a request. */
enum soft_answer_kind {
	SOFT_ACK,
	SOFT_NAK,
	SOFT_NAK_RNR, /* try again later */
	SOFT_NAK_SEQ,
	SOFT_SILENCE, /* nobody answers */
	SOFT_OWNER,   /* only the target's engine can tell: send it there */
	SOFT_BUSY,    /* a key to invalidate is in use this moment: ask again */
};

/* 8 bytes, so that it travels in a register. */
struct soft_answer {
	uint32_t kind;
	uint32_t code; /* NAK: the requester's syndrome; RNR: the timer code */
};

/*
 * A request on its way to the engine of the target, and back with the answer. It names
 * QPs by number and generation: any of them may be gone when it arrives. Who changes the
 * state from PENDING owns it next: the target's engine (TAKEN) or, when the requester
 * gave up (CANCELLED), the target's engine too, to free it.
 */
enum {
	SOFT_MSG_PENDING,
	SOFT_MSG_TAKEN,
	SOFT_MSG_CANCELLED,
	SOFT_MSG_ANSWER,
	SOFT_MSG_DGRAM,  /* not a struct soft_msg alone: struct soft_dgram_msg */
	SOFT_MSG_PACKET, /* likewise: struct soft_packet_msg */
	SOFT_MSG_STATES,
};
/* Takes a message out of an inbox; it is the taker's then. */
typedef void soft_msg_taker(struct soft_engine *e, struct soft_msg *m);
struct soft_msg {
	struct soft_msg *next;
	uint32_t state;
	uint32_t qpn, gen;
	uint32_t peer_qpn, peer_gen;
	struct soft_dev *dev, *peer_dev;
	struct soft_done d;
	struct soft_answer ans;
};

/* The receive that a message goes into. */
struct soft_recv {
	uint16_t idx;        /* what its CQE names */
	uint32_t max;        /* entries of the scatter list */
	uint32_t pdn;        /* of its keys: the QP's; the RMP's, if it has one [A] */
	const uint8_t *list; /* in the ring of an own RQ, in the engine's copy of an RMP's WQE */
};

/* Half @half, 0 to 3, of the two registers of a page. */
static inline uint64_t *
soft_page_half(uint8_t *page, uint32_t half)
{
	return (uint64_t *)(void *)(page + SOFT_BF_OFFSET + half * SOFT_BF_HALF);
}

/* One register page and the records of its QPs, packed for the scan. */
struct soft_watch {
	struct soft_uar_page *uar;
	uint32_t n, cap;
	uint32_t pos;  /* next record to look at */
	uint32_t left; /* records to go until a whole round since the last store */
	uint32_t hot;  /* slot of the QP that was rung last; may be past the end */
	uint32_t bf;   /* what is known of the registers' halves: soft_bf.h */
	const uint32_t **rec;
	uint32_t *last; /* as last seen, big endian */
	struct soft_qp **qp;
	/* The CQs that are armed through the page. */
	uint32_t n_cq, cap_cq, cq_pos, cq_left;
	struct soft_cq **cq;
};

TAILQ_HEAD(soft_qp_list, soft_qp);

struct soft_engine {
	/* Read without the lock by soft_engine_progress(). */
	uint8_t *page;          /* the only register page; NULL: always take the lock */
	struct soft_msg *inbox; /* stack, pushed by other engines */
	uint32_t dgrams;        /* in it; __atomic */
	uint32_t packets;       /* likewise */
	uint32_t pending;       /* something is left to do */
	uint64_t next_deadline; /* TSC */
	uint32_t shm_polls;     /* to the next look at the clock, link_shm_due(); __atomic */
	uint64_t shm_often;     /* TSC: polls are frequent if that look is before; __atomic */

	rte_ticketlock_t lock __rte_cache_aligned;
	struct soft_dev *dev;
	uint8_t failures; /* SOFT_CQ_FAILED, SOFT_QP_FAILED: for the end of the turn */
	bool alone;       /* it has one page, and that one owner; __atomic */
	uint32_t always;  /* 1: SOFT_DEFECT_NO_DOORBELL */
	uint32_t turns;   /* 1: it takes its turn in every poll */
	uint32_t n_watch;
	struct soft_watch **watch;
	uint32_t n_run;
	struct soft_qp_list run, timers, late, errs;
	struct soft_qp_list failed;       /* their move to ERR is due; by "err" */
	struct soft_qp_list qps;          /* all, by "all" */
	TAILQ_HEAD(, soft_cq) zips;       /* with a block of compressed CQEs not yet written */
	uint64_t now;                     /* TSC of the work in hand: the stamp of CQEs */
	TAILQ_HEAD(, soft_cq) moderated;  /* armed CQs whose events may be held back */
	uint64_t work;                    /* doorbells and turns, for the idle thread */
	uint64_t counted;                 /* work when the poll before ended */
	uint32_t idle;                    /* polls since, with something to be counted */
	LIST_HEAD(, soft_wire) uncounted; /* on a port: soft_wire_count() is due */
	TAILQ_HEAD(, soft_wire) keepers;  /* of packets, by progress: soft_wire_ahead.c */
	/* Requests served, not yet added to the counter set. */
	struct soft_counters *served;
	uint32_t served_write, served_read, served_atomic;
	uint64_t shuffle; /* state of the order of lines */
	uint32_t defect_chances;
	uint8_t key_fault;           /* enum soft_key_fault of the last refusal */
	uint8_t qp_op_fault;         /* vendor syndrome of a LOCAL_QP_OP */
	enum soft_detour detour;     /* of the last refusal: it was none */
	uint8_t *detour_at;          /* the memory that was asked for */
	uint32_t scan;               /* records per poll */
	uint32_t wrong_uar, bad_qpn; /* doorbells ignored or refused */

	struct soft_req req;
	struct soft_recv recv;
	uint8_t rmp_wqe[SOFT_MAX_STRIDE] __rte_cache_aligned;
	struct soft_pieces local;  /* of req, where a key is indirect */
	struct soft_pieces remote; /* of the target's memory, or of its receive */
	struct soft_piece local_own[SOFT_MAX_PIECES], remote_own[SOFT_MAX_RX];
	/* Indirect keys that the request uses: they do not change before it is done. */
	struct soft_indirect **held;
	uint32_t n_held, cap_held;
	struct soft_packets held_packets; /* on a port: by due; soft_wire_fault.c */
	uint32_t n_held_packets, kept_packets;
	uint64_t *shm_word;  /* odd while it is inside peers' memory; NULL: never */
	uint32_t shm_deaths; /* of soft_shm.deaths: those it has seen to; __atomic */
	struct soft_net_state net;
	const struct soft_qp *decoded; /* on a port: whose WQE is in req; NULL: look again */
	uint64_t turn;                 /* on a port: turns of QPs, while no key changes */
	uint64_t ticks, ns;            /* on a port, if timed: soft_engine_ticks(), _ns() */
	bool timed;
	bool stamped;         /* now is of this turn, which began behind all posts it will find */
	bool early;           /* on a port: nothing has been received in this turn yet */
	uint8_t bounce[4096]; /* on a port: payload of a packet in too many pieces */

	/* By state of a message in the inbox. */
	soft_msg_taker *const *takers;

	/* The control path's, and the thread's. */
	struct soft_reader reader;
	bool started, stop, ended;
	pthread_t thread;
};

static inline uint32_t
soft_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be32(v);
}

static inline void
soft_put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static inline uint64_t
soft_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be64(v);
}

static inline bool
soft_is_atomic(uint8_t wqe_opcode)
{
	return wqe_opcode == BB_WQE_ATOMIC_CS || wqe_opcode == BB_WQE_ATOMIC_FA ||
	       wqe_opcode == BB_WQE_ATOMIC_MASKED_CS || wqe_opcode == BB_WQE_ATOMIC_MASKED_FA;
}

/* Does all that it runs belong to the thread that runs it? */
static inline bool
soft_engine_alone(const struct soft_engine *e)
{
	return __atomic_load_n(&e->alone, __ATOMIC_RELAXED);
}

/* The time of CQEs from now on: what is found behind this was posted before it. */
static inline void
soft_now(struct soft_engine *e)
{
	if (unlikely(e->dev->opts.no_clock))
		return;
	if (e->stamped)
		return;
	/* Of another core's posts: not before the loads that showed them. */
	if (e->page == NULL)
		bb_tsc_rmb();
	e->now = rte_rdtsc();
}

static inline uint64_t
soft_engine_ticks(struct soft_engine *e)
{
	if (unlikely(!e->timed))
		soft_engine_clock(e);
	return e->ticks;
}

static inline uint64_t
soft_engine_ns(struct soft_engine *e)
{
	if (unlikely(!e->timed))
		soft_engine_clock(e);
	return e->ns;
}

static inline uint32_t
soft_qp_state(const struct soft_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

/* Does the device's seeded defect @which strike this time? */
static inline bool
soft_defect(struct soft_engine *e, enum soft_defect which)
{
	if (likely(soft_opts_defect(&e->dev->opts) != (uint32_t)which))
		return false;
	return ((e->defect_chances++ + e->dev->opts.seed) & 15) == 0;
}

/*
 * Are packets that leave only lost, and nobody looks at those? Then none is built to be lost, and
 * the others leave as without faults: a lossy network costs its hosts nothing else.
 */
static inline bool
soft_net_loses_only(const struct soft_dev *dev)
{
	const struct soft_net_fault *f = &dev->opts.tx_fault;

	return (f->dup | f->reorder | f->corrupt | f->ecn | f->delay | f->stall | f->full_after) ==
		       0 &&
	       dev->opts.capture[0] == '\0';
}

/* Add to a counter of a QP's set. */
#define SOFT_COUNT(qp, name)                                                                       \
	do {                                                                                       \
		struct soft_counters *c_ = soft_counters_of(qp);                                   \
		if (c_ != NULL)                                                                    \
			__atomic_fetch_add(&c_->name, 1, __ATOMIC_RELAXED);                        \
	} while (0)

static inline struct soft_counters *
soft_counters_of(const struct soft_qp *qp)
{
	return __atomic_load_n(&qp->dev->counters[qp->counter_set], __ATOMIC_ACQUIRE);
}

static inline void
soft_served_flush(struct soft_engine *e)
{
	struct soft_counters *c = e->served;

	if (c != NULL && e->served_write != 0)
		__atomic_fetch_add(&c->rx_write, e->served_write, __ATOMIC_RELAXED);
	if (c != NULL && e->served_read != 0)
		__atomic_fetch_add(&c->rx_read, e->served_read, __ATOMIC_RELAXED);
	if (c != NULL && e->served_atomic != 0)
		__atomic_fetch_add(&c->rx_atomic, e->served_atomic, __ATOMIC_RELAXED);
	e->served = NULL;
	e->served_write = 0;
	e->served_read = 0;
	e->served_atomic = 0;
}

/* soft_wire_count.c: the same of the QPs on a port. */
void soft_wire_count_all(struct soft_engine *e);

/* Served requests are counted in the engine, for the set of @qp. */
static inline void
soft_served_for(struct soft_engine *e, const struct soft_qp *qp)
{
	struct soft_counters *c = soft_counters_of(qp);

	if (unlikely(c != e->served)) {
		soft_served_flush(e);
		e->served = c;
	}
}

/* ---- soft_sched.c */
void soft_qp_queue(struct soft_engine *e, struct soft_qp *qp);
void soft_qp_unqueue(struct soft_engine *e, struct soft_qp *qp);
/* For the next turn, behind doorbells and before what comes in. */
void soft_qp_later(struct soft_engine *e, struct soft_qp *qp);
/* Wait until @ns nanoseconds from now. */
void soft_qp_timer(struct soft_engine *e, struct soft_qp *qp, uint64_t ns);
/*
 * The QP fails, under its engine's lock: it is in ERR at once, and neither starts nor takes
 * anything any more. Its flush and what else the state brings come at the end of the engine's turn,
 * behind the CQE of the request that failed. @event 0: its CQEs tell enough.
 */
void soft_qp_fail(struct soft_qp *qp, uint16_t event);
/* The CQ overran: its QPs are to fail. */
void soft_cq_fail(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq);

/* ---- soft_engine_ctl.c */
/* Move QPs that have failed, or whose CQ has, to ERR and flush them. */
void soft_failures_run(struct soft_engine *e);

/* ---- soft_cqe_zip.c */
/* The engine's blocks are written: before it lets go of its lock. */
void soft_zip_run(struct soft_engine *e);

/* ---- soft_cq_event.c */
/* Something came through the arm register of the page. */
void soft_arm_take(struct soft_engine *e, struct soft_watch *w, uint64_t *reg);
/* Look at the arm records of some of the page's CQs. */
void soft_arm_scan(struct soft_engine *e, struct soft_watch *w);
/* CQEs were written to an armed CQ, under its lock if it is shared. */
void soft_cq_notify(struct soft_engine *e, struct soft_cq *cq);
void soft_cq_moderated_run(struct soft_engine *e);

/* ---- soft_engine.c */
/* Take @n turns under the lock, whether there is anything to do or not. */
void soft_engine_turns(struct soft_engine *e, uint32_t n);

/* ---- soft_doorbell.c */
void soft_watch_poll(struct soft_engine *e, struct soft_watch *w);
/* Look at a QP's send record and run what is new. */
void soft_qp_look(struct soft_engine *e, struct soft_qp *qp);
/* Look at the records of a QP in ERR and flush what is new. */
void soft_qp_flush(struct soft_engine *e, struct soft_qp *qp);
void soft_flush_rq(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_req_decode.c */
/* Decode the WQE of @qp at block @idx, @avail blocks known posted. 0, or a syndrome. */
uint8_t soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
			uint16_t idx, uint32_t avail);
/* ---- soft_req.c */
/* Execute up to SOFT_RUN_WQES WQEs. */
void soft_req_run(struct soft_engine *e, struct soft_qp *qp);
/* An answer that came through the inbox. */
void soft_req_answer(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		     struct soft_answer ans);
/* Complete a WQE with success; with an error, then the QP goes to ERR. */
void soft_req_done(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d);
void soft_req_fail(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		   uint8_t synd, const char *why);
/* What a peer's NAK means, for the log. */
const char *soft_nak_text(uint32_t synd);
void soft_req_timeout(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_resp.c */
/* Carry out a request on its target @p, on the engine @e. */
struct soft_answer soft_resp_execute(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
				     struct soft_req *r);

/* ---- soft_rmp.c */
enum soft_take {
	SOFT_TAKE_OK,
	SOFT_TAKE_EMPTY,
	SOFT_TAKE_FAILED, /* the RMP is in ERR */
};
/*
 * Take the next receive of a QP's RMP into e->recv. One that got no CQE, because its message
 * has to be tried again, is given to the QP's next message.
 */
enum soft_take soft_rmp_take(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_inbox.c */
/* Hand the request of @qp to the engine of @p. -ENOMEM. */
int soft_msg_send(struct soft_qp *qp, const struct soft_qp *p, const struct soft_done *d);
/* Give up the request in flight. False: the target's engine has it already. */
bool soft_msg_cancel(struct soft_qp *qp);
/* The QP goes, or begins a new life. */
void soft_msg_drop(struct soft_qp *qp);
/* Is the target of the request in flight still there? */
bool soft_msg_target_lives(const struct soft_qp *qp);
/* Push to an inbox: any thread. */
void soft_msg_push(struct soft_engine *to, struct soft_msg *m);
/* The QP that a message names, if it is still the one. */
struct soft_qp *soft_msg_qp(const struct soft_dev *dev, uint32_t qpn, uint32_t gen);
/* Take in all that is there: each message goes to e->takers[its state]. */
void soft_inbox_drain(struct soft_engine *e);

/* ---- soft_msg.c: takers of messages */
void soft_msg_serve(struct soft_engine *e, struct soft_msg *m);
void soft_msg_answer(struct soft_engine *e, struct soft_msg *m);
void soft_dgram_take(struct soft_engine *e, struct soft_msg *m);

/* ---- soft_cqe.c: each false if the CQE could not be written, as the CQ overran */
bool soft_cqe_req(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d);
/* For the receive e->recv; @data (NULL: none): up to 32 bytes that are not in the buffer. */
bool soft_cqe_resp(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
		   uint32_t imm, uint32_t len, const uint8_t *data);
bool soft_cqe_error(struct soft_engine *e, struct soft_qp *qp, bool responder, uint16_t idx,
		    uint8_t wqe_opcode, uint8_t synd);

/* ---- soft_fault.c */
/* The device has the option fault and is about to execute a request. True: it does not. */
bool soft_fault(struct soft_engine *e, struct soft_qp *qp);

/* Mask of expected PSNs: all bits with the defect psn_wrap. */
static inline uint32_t
soft_defect_psn_mask(const struct soft_engine *e)
{
	return unlikely(soft_opts_defect(&e->dev->opts) == SOFT_DEFECT_PSN_WRAP) ? UINT32_MAX
										 : SOFT_PSN_MASK;
}

/* ---- soft_umr.c */
#define SOFT_SYN_AGAIN 0xff /* no syndrome: the key is in use this moment */
/* Execute the UMR WQE in @r. 0, a syndrome with r->why, or SOFT_SYN_AGAIN. */
uint8_t soft_umr_execute(struct soft_qp *qp, struct soft_req *r);
/* Has a card waited with this WQE for the QP's last UMR? With others it may have begun [A]. */
static inline bool
soft_umr_waited(const struct soft_qp *qp, const struct soft_done *d)
{
	/* At a fence, or as the WQE was posted when the UMR had been executed. */
	return d->fm_ce_se >> 5 != 0 || (int16_t)(d->idx - qp->umr_end) >= 0;
}

/* A WQE that is in order has been decoded. One that waited has had all behind it wait. */
static inline void
soft_umr_pass(struct soft_qp *qp, const struct soft_done *d)
{
	if (unlikely(qp->umr_index != 0) && soft_umr_waited(qp, d))
		qp->umr_index = 0;
}
/* A peer's SEND with invalidate. 0; -EAGAIN; -EACCES, *why says why. */
int soft_key_invalidate(const struct soft_engine *e, const struct soft_qp *p, uint32_t rkey,
			const char **why);

#endif
