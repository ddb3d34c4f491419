/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software ConnectX, data path only. Start reading with soft_engine.c (one poll),
 * soft_doorbell.c (start of a WQE), soft_req.c (requester) and soft_resp.c (responder).
 *
 * A device without the options wire, port and shm has a loop port, which is synchronous: one call
 * decodes, checks, executes and completes a request. It counts PSNs, but builds no packet. Where a
 * wire would carry an ACK, a NAK, an RNR NAK or nothing, it returns a struct soft_response.
 */
#ifndef SOFT_DATA_H
#define SOFT_DATA_H

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "bb_barrier.h"
#include "bb_bytes.h"
#include "soft.h"
#include "soft_hooks.h"
#include "soft_time.h"
#include "soft_vendor.h"
#include "soft_watch.h"

#define SOFT_PSN_MASK   0xffffffu
#define SOFT_MAX_FRAGS  (BB_WQE_MAX_DS - 1) /* largest number of SGEs in a send WQE */
#define SOFT_MAX_RX     128                 /* largest number of scatter entries in a receive WQE */
#define SOFT_MAX_STRIDE 512                 /* largest receive WQE of an RMP, bytes */
#define SOFT_RUN_WQES   64                  /* WQEs of one QP that run before the next QP runs */
/*
 * Packets that the messages executed in one turn of an engine would take, at most. 8 MiB at an MTU
 * of 4096. The last message of the turn may exceed the limit.
 */
#define SOFT_TURN_PACKETS 2048
#define SOFT_NO_DEADLINE  UINT64_MAX
#define SOFT_IDLE_POLLS   16 /* idle polls before an engine adds its counts to the counter sets */
/*
 * Interval in ns at which a requester checks that its target on another engine still exists. Also
 * the smallest ack timeout of a request to another engine, because that engine's thread may be off
 * its CPU for a while. Cards also round ack timeouts up.
 */
#define SOFT_PEER_CHECK_NS 100000000
/* UC: time in ns after which a message to an engine that does not run is lost. */
#define SOFT_PEER_UC_NS 1000000000

/* Bits of soft_engine.failures. */
enum {
	SOFT_CQ_FAILED = 1,   /* a CQ failed, so the engine must find the QPs of that CQ */
	SOFT_QP_FAILED = 2,   /* QPs on the list "failed" must move to ERR */
	SOFT_LISTS_LARGE = 4, /* soft_xlt_shrink() must free the memory of long lists */
};

/* Values of soft_qp.queued. */
enum {
	SOFT_Q_NONE,
	SOFT_Q_RUN,
	SOFT_Q_TIMER,
	SOFT_Q_LATE, /* RoCEv2 only: the next turn sends the requests, then a delayed ACK */
};

/*
 * A contiguous part of a payload, already checked: memory of the process, or inline data in the
 * WQE.
 */
struct soft_frag {
	uint8_t *p;
	uint64_t len;
};

/* Fields of a WQE that its completion needs after the WQE itself is gone. */
struct soft_done {
	uint16_t idx;
	uint16_t blocks;
	uint8_t opcode;
	uint8_t fm_ce_se;
	uint64_t len;
	uint32_t psn; /* PSN of the request's first packet */
	uint32_t packets;
	uint32_t reads; /* number of outstanding READs and atomics, including this request */
};

/* A list of fragments that can grow. It begins in an array that its owner provides. */
struct soft_frags {
	struct soft_frag *p;
	uint32_t n;
	uint32_t steps; /* steps of the translation so far: SOFT_MAX_STEPS */
	uint32_t cap;
	bool grown; /* the list has outgrown the owner's array: p was allocated by malloc() */
};
/* Maximum number of fragments of one message through indirect keys (assumption [A]). */
#define SOFT_MAX_PARTS (1u << 20)
/*
 * Maximum number of steps of the translation of one message through indirect keys. A step visits
 * one entry or page of a key. A message of 2 GiB in pages of 4 KiB takes 2^20 steps. A card has no
 * such limit.
 */
#define SOFT_MAX_STEPS (4 * SOFT_MAX_PARTS)
/* Steps that count as one packet of SOFT_TURN_PACKETS. */
#define SOFT_PACKET_STEPS 64

/* A send WQE, copied out of the ring and decoded. */
struct soft_req {
	struct soft_done d;
	uint32_t imm; /* immediate data, in network order */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	uint64_t swap_mask, compare_mask; /* valid only for masked CMP_SWAP */
	uint32_t atomic_len;
	uint32_t n;             /* number of fragments */
	struct soft_frag *frag; /* SGEs, or the fragments found through indirect keys */
	struct soft_frag own[SOFT_MAX_FRAGS];
	/* soft_req_decode() resolves keys that are not plain for these bytes of the message only */
	uint64_t from, to;
	const char *why; /* reason of a rejection, for the log */
	uint8_t wqe[BB_WQE_BB * 16] __rte_cache_aligned;
};

/* Responses to a request. */
enum soft_response_kind {
	SOFT_ACK,
	SOFT_NAK,
	SOFT_NAK_RNR, /* receiver not ready, so retry later */
	SOFT_NAK_SEQ,
	SOFT_SILENCE, /* no response */
	SOFT_OWNER,   /* this engine cannot execute the request; the target's engine must */
	SOFT_BUSY,    /* the key to invalidate is in use, so retry at once */
	SOFT_FAULTED, /* a page is missing, so retry after SOFT_PF_NS */
};

/* Response to a request. 8 bytes, so that it fits into a register. */
struct soft_response {
	uint32_t kind;
	uint32_t code; /* NAK: the requester's syndrome; RNR NAK: the timer code */
};

/*
 * State of a request in flight to the target's engine, or of its response. The message names QPs by
 * number and generation, because a QP may be destroyed before the message arrives. The thread that
 * changes the state from PENDING owns the message. TAKEN: the target's engine owns it. CANCELLED:
 * the requester gave up, so the target's engine only frees the message.
 */
enum {
	SOFT_MSG_PENDING,
	SOFT_MSG_TAKEN,
	SOFT_MSG_CANCELLED,
	SOFT_MSG_RESPONSE,
	SOFT_MSG_DGRAM,  /* the message is part of a struct soft_dgram_msg */
	SOFT_MSG_PACKET, /* the message is part of a struct soft_packet_msg */
	SOFT_MSG_STATES,
};
/* Handles a message from an inbox. Takes ownership of the message. */
typedef void soft_msg_handler(struct soft_engine *e, struct soft_msg *m);
struct soft_msg {
	struct soft_msg *next;
	uint32_t state;
	uint32_t delayed; /* 1 if the target's last turn left the request for the next; __atomic */
	uint32_t qpn, gen;
	uint32_t peer_qpn, peer_gen;
	struct soft_dev *dev, *peer_dev;
	struct soft_done d;
	struct soft_response response;
};

/* The receive WQE that a message consumes. */
struct soft_recv {
	uint16_t idx; /* index of the WQE, for the CQE */
	uint32_t max; /* number of entries in the scatter list */
	/* PD of the keys in the scatter list: of the RMP, else of the QP (assumption [A]) */
	uint32_t pdn;
	const uint8_t *list; /* scatter list, in the receive queue or in a copy of an RMP's WQE */
};

/* Returns the address of half @half (0 to 3) of the two registers of a page. */
static inline uint64_t *
soft_page_half(uint8_t *page, uint32_t half)
{
	return (uint64_t *)(void *)(page + SOFT_BF_OFFSET + half * SOFT_BF_HALF);
}

TAILQ_HEAD(soft_qp_list, soft_qp);

struct soft_engine {
	/* Fields that soft_engine_progress() reads before it takes soft_engine.lock. */
	uint8_t *page;          /* page of the only UAR; NULL makes each poll take the lock */
	struct soft_msg *inbox; /* stack of messages from other engines */
	uint32_t dgrams;        /* number of datagrams in the inbox; __atomic */
	uint32_t packets;       /* number of packets in the inbox; __atomic */
	uint32_t pending;       /* nonzero while the engine has work left; __atomic */
	uint64_t next_deadline; /* TSC of the earliest timer */
	uint32_t shm_polls;     /* polls left until link_shm_due() checks the clock; __atomic */
	/* If the clock is next read before this time (TSC), polls count as frequent. __atomic */
	uint64_t shm_often;

	rte_ticketlock_t lock __rte_cache_aligned;
	struct soft_dev *dev;
	/*
	 * Packets of SOFT_TURN_PACKETS that are left in this turn. If not positive, QPs wait in the
	 * list "run", and requests of other engines in the inbox.
	 */
	int64_t packets_left;
	uint8_t failures; /* SOFT_CQ_FAILED and other bits: handled at the end of the turn */
	bool alone;       /* the engine serves one UAR page, and the page has one owner; __atomic */
	bool stamps;      /* soft_engine_stamp() reads the clock after a doorbell; __atomic */
	uint32_t always;  /* 1 with SOFT_DEFECT_NO_DOORBELL, so that each poll runs a turn */
	bool chores;      /* true if soft_engine_chores() may have work to do */
	bool cancels;     /* turns disable the cancellation of their thread */
	bool plain;       /* no option changes how WQEs execute: neither defect, fault nor wire */
	uint32_t turns;   /* 1 if every poll runs a turn (soft_engine.c), with or without work */
	uint32_t n_watch;
	struct soft_watch **watch;
	uint32_t n_run;
	/*
	 * RoCEv2 only: the QP that found the link full last, and the number of QPs in "run" that
	 * did so since the last pass over "run" began.
	 */
	const struct soft_wire *full;
	uint32_t n_full;
	struct soft_qp_list run, timers, late, errs;
	struct soft_qp_list failed;      /* QPs that must move to ERR, linked by "err" */
	struct soft_qp_list qps;         /* all QPs, linked by "all" */
	TAILQ_HEAD(, soft_cq) zips;      /* CQs with an unwritten block of compressed CQEs */
	uint64_t now;                    /* TSC when the current work began: time stamp of CQEs */
	TAILQ_HEAD(, soft_cq) moderated; /* armed CQs whose events may be delayed */
	uint64_t work; /* grows with doorbells, messages and turns, not while the thread is idle */
	uint64_t counted, tried; /* "work" after a poll; after soft_engine_try() (__atomic) */
	uint32_t idle;           /* polls in a row without work, up to SOFT_IDLE_POLLS; __atomic */
	uint32_t assisted; /* turns run by soft_assist(), which makes the thread nap; __atomic */
	uint32_t posted, late_posts;      /* see soft_count_late(); __atomic */
	LIST_HEAD(, soft_wire) uncounted; /* RoCEv2 only: QPs that soft_wire_count() must visit */
	TAILQ_HEAD(, soft_wire) storing;  /* QPs with out-of-order packets; longest wait first */
	/* Counts of served requests, not yet added to the counter set. */
	struct soft_counters *served;
	uint32_t served_write, served_read, served_atomic;
	uint64_t shuffle; /* state of the random order in which cache lines are written */
	uint32_t defect_chances;
	uint8_t key_fault;       /* enum soft_key_fault of the last rejection */
	uint8_t qp_op_fault;     /* vendor syndrome of the last LOCAL_QP_OP */
	enum soft_detour detour; /* special access that the last looked-up key needs */
	/* if detour is not NONE: address of the key's memory in this process */
	uint8_t *detour_at;
	/* doorbell records scanned per poll; a page with at most this many QPs needs one poll */
	uint32_t scan, few;

	struct soft_req req;
	struct soft_recv recv;
	uint8_t rmp_wqe[SOFT_MAX_STRIDE] __rte_cache_aligned;
	struct soft_frags local;  /* fragments of the request's payload, if a key is indirect */
	struct soft_frags remote; /* fragments of the target's memory, or of its receive WQE */
	struct soft_frag local_own[SOFT_MAX_FRAGS], remote_own[SOFT_MAX_RX];
	/* Indirect keys that the request uses. They cannot change before the request is done. */
	struct soft_indirect **held;
	uint32_t n_held, cap_held;
	struct soft_packets held_packets; /* port only: delayed packets, sorted by due time */
	uint32_t n_held_packets, n_stored_packets;
	uint64_t *shm_epoch;  /* epoch: odd while the engine may access peers' memory; NULL if it
			       * never does */
	uint32_t shm_changes; /* value of soft_shm.changes already handled; __atomic */
	struct soft_net_state net;
	/* RoCEv2 only: QP whose WQE is in req, NULL if none; bytes that the fragments cover */
	const struct soft_qp *decoded;
	uint64_t decoded_from, decoded_to;
	/* Port only: QP of the last frame that was as predicted (soft_wire_expect.c), or NULL */
	struct soft_wire *predicted;
	uint32_t predicted_kind; /* enum soft_wire_kind of that frame */
	uint64_t turn; /* RoCEv2 only: turn number; addresses of earlier turns are stale */
	/* RoCEv2 only: time of the turn in each unit, if "timed" is true: soft_engine_ticks() */
	uint64_t ticks, ns;
	uint64_t tick_ns; /* duration of a tick, in 2^-20 ns */
	bool real_time;   /* false with the options no_clock and virtual_time */
	bool timed;
	bool stamped; /* "now" was read in this turn, so all posts that the turn finds are older */
	bool early;   /* RoCEv2 only: no packet was received yet in this turn */
	uint8_t bounce[4096]; /* RoCEv2 only: payload of a packet that has too many fragments */

	soft_msg_handler *const *msg_handlers; /* indexed by the message's state */

	/* Fields of the control path and of the thread that runs the engine. */
	struct soft_reader reader;
	bool started, stop, ended, asleep; /* asleep: no thread wakes the sleeper yet; __atomic */
	pthread_t thread;
	int wake_fd;                /* eventfd that wakes the thread, -1 if none */
	uint64_t sleep_cost;        /* TSC cycles to fall asleep and to wake up, the last time */
	uint64_t wakes[SOFT_WAKES]; /* sleeps, by cause of their end (soft_wake); __atomic */
};

/* Returns the WQE in block @idx of the send queue. */
static inline const uint8_t *
soft_wqe_at(const struct soft_qp *qp, uint16_t idx)
{
	return qp->sq + ((size_t)(idx & ((1u << qp->log_sq) - 1)) << 6);
}

static inline bool
soft_is_atomic(uint8_t wqe_opcode)
{
	return wqe_opcode == BB_WQE_ATOMIC_CS || wqe_opcode == BB_WQE_ATOMIC_FA ||
	       wqe_opcode == BB_WQE_ATOMIC_MASKED_CS || wqe_opcode == BB_WQE_ATOMIC_MASKED_FA;
}

/*
 * Returns true if the engine has one page with one owner. No other thread then rings its doorbells.
 */
static inline bool
soft_engine_alone(const struct soft_engine *e)
{
	return __atomic_load_n(&e->alone, __ATOMIC_RELAXED);
}

/*
 * Reads the clock into the engine. The next CQEs get this time stamp. A request that the engine
 * finds later completes at the earliest with this time, even if it was posted after the call.
 */
static inline void
soft_now(struct soft_engine *e)
{
	if (likely(e->stamped) || unlikely(e->dev->opts.no_clock))
		return;
	/* Completes the loads that found the posts of another core before it reads the TSC. */
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

/* Returns true if the device has the seeded defect @which and the defect applies to this call. */
static inline bool
soft_defect(struct soft_engine *e, enum soft_defect which)
{
	if (likely(soft_opts_defect(&e->dev->opts) != (uint32_t)which))
		return false;
	return ((e->defect_chances++ + e->dev->opts.seed) & 15) == 0;
}

/*
 * Returns true if loss is the only fault of outgoing packets and no capture records them. Then a
 * lost packet is never built, and the others are sent as if there were no faults.
 */
static inline bool
soft_net_loses_only(const struct soft_dev *dev)
{
	const struct soft_net_fault *f = &dev->opts.tx_fault;

	return (f->dup | f->reorder | f->corrupt | f->ecn | f->delay | f->stall | f->full_after) ==
		       0 &&
	       dev->opts.capture[0] == '\0';
}

/* Adds to one counter in the counter set of a QP. */
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

/* soft_wire_count.c: adds up the counts of all QPs that send packets. */
void soft_wire_count_all(struct soft_engine *e);

/* Selects the counter set of @qp for the engine's counts of served requests. */
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
/* Queues a QP for the next turn. The QP then runs after doorbells and before received packets. */
void soft_qp_later(struct soft_engine *e, struct soft_qp *qp);
/* Starts the QP's timer, to expire in @ns nanoseconds. */
void soft_qp_timer(struct soft_engine *e, struct soft_qp *qp, uint64_t ns);
/*
 * Fails a QP, under its engine's lock. The QP is in ERR at once, so it neither starts nor receives
 * requests. The flush and the other actions of the state ERR follow at the end of the turn, after
 * the failed request's CQE. @event 0: no event is raised, because CQEs report the failure.
 */
void soft_qp_fail(struct soft_qp *qp, uint16_t event);
/* Fails a CQ that has overrun, and fails all QPs of that CQ. */
void soft_cq_fail(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq);

/* ---- soft_engine_ctl.c */
/* Moves QPs to ERR and flushes them, if they or their CQ have failed. */
void soft_failures_run(struct soft_engine *e);

/* ---- soft_cqe_zip.c */
/* Writes the engine's open blocks of compressed CQEs, before it releases its lock. */
void soft_zip_run(struct soft_engine *e);

/* ---- soft_cq_event.c */
/* Handles a store to @reg, the CQ arm register of UAR page @w. */
void soft_arm_take(struct soft_engine *e, struct soft_watch *w, uint64_t *reg);
/* Arms CQs of UAR page @w if cq->dbrec[1] has changed. Checks at most e->scan CQs per call. */
void soft_arm_scan(struct soft_engine *e, struct soft_watch *w);
/* Raises the event for CQEs written to an armed CQ. The caller holds the lock of a shared CQ. */
void soft_cq_notify(struct soft_engine *e, struct soft_cq *cq);
void soft_cq_moderated_run(struct soft_engine *e);

/* ---- soft_engine.c */
/* Runs @n turns under the lock, even without work. */
void soft_engine_turns(struct soft_engine *e, uint32_t n);

/* ---- soft_doorbell.c */
/* Removes a QP from the list of QPs whose doorbells are often overwritten. */
void soft_hidden_del(struct soft_watch *w, struct soft_qp *qp);
void soft_watch_poll(struct soft_engine *e, struct soft_watch *w);
void soft_watch_warm(const struct soft_watch *w);
/* Reads a QP's send doorbell record and runs the new WQEs. */
void soft_qp_look(struct soft_engine *e, struct soft_qp *qp);
/* Flushes the WQEs that the doorbell records show as newly posted to a QP in ERR. */
void soft_qp_flush(struct soft_engine *e, struct soft_qp *qp);
void soft_flush_rq(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_req_decode.c */
/*
 * Decodes the WQE of @qp at block @idx; @avail blocks are known to be posted. Returns 0 or a
 * syndrome.
 */
uint8_t soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
			uint16_t idx, uint32_t avail);
/* ---- soft_req.c */
/* Executes up to SOFT_RUN_WQES WQEs of a QP. */
void soft_req_run(struct soft_engine *e, struct soft_qp *qp);
/* Handles a response that arrived through the inbox. */
void soft_req_response(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		       struct soft_response ans);
/* Complete a WQE with success, or with an error that moves the QP to ERR. */
void soft_req_done(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d);
/*
 * Returns true if the request waits for a missing page of its own SGEs. @synd: the error of
 * soft_req_decode().
 */
bool soft_req_faulted(const struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		      uint8_t synd);
void soft_req_fail(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d,
		   uint8_t synd, const char *why);
/* Returns the meaning of a NAK with syndrome @synd, for the log. */
const char *soft_nak_text(uint32_t synd);
void soft_req_timeout(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_resp.c */
/* Executes the request @r of @qp on its target QP @p, in the engine @e. */
struct soft_response soft_resp_execute(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
				       struct soft_req *r);

/* ---- soft_rmp.c */
enum soft_take {
	SOFT_TAKE_OK,
	SOFT_TAKE_EMPTY,
	SOFT_TAKE_FAILED, /* the RMP is in ERR */
};
/*
 * Copies the next receive of the QP's RMP into e->recv. If the QP still holds a receive, because
 * the peer must send a message again, copies that receive.
 */
enum soft_take soft_rmp_take(struct soft_engine *e, struct soft_qp *qp);

/* ---- soft_inbox.c */
/* Passes the request of @qp to the engine of @p. Returns 0 or -ENOMEM. */
int soft_msg_send(struct soft_qp *qp, const struct soft_qp *p, const struct soft_done *d);
/* Cancels the request in flight. Returns false if the target's engine already owns it. */
bool soft_msg_cancel(struct soft_qp *qp);
/* Drops the message of a QP that is being destroyed or reset. */
void soft_msg_drop(struct soft_qp *qp);
/* Returns true if the target of the request in flight still exists. */
bool soft_msg_target_lives(const struct soft_qp *qp);
/* Pushes a message to an inbox. Any thread. */
void soft_msg_push(struct soft_engine *to, struct soft_msg *m);
/* Returns the QP that a message names, or NULL if the number now has another generation. */
struct soft_qp *soft_msg_qp(const struct soft_dev *dev, uint32_t qpn, uint32_t gen);
/* Passes each message in the inbox to the handler e->msg_handlers[state of the message]. */
void soft_inbox_drain(struct soft_engine *e);

/* ---- soft_msg.c: handlers of messages */
void soft_msg_serve(struct soft_engine *e, struct soft_msg *m);
void soft_msg_response(struct soft_engine *e, struct soft_msg *m);
void soft_dgram_take(struct soft_engine *e, struct soft_msg *m);

/* ---- soft_cqe.c: each function returns false if the CQ overran, so that no CQE was written */
bool soft_cqe_req(struct soft_engine *e, struct soft_qp *qp, const struct soft_done *d);
/*
 * Writes the CQE of the receive e->recv. @data: up to 32 bytes that go into the CQE, NULL if none.
 */
bool soft_cqe_resp(struct soft_engine *e, struct soft_qp *qp, uint8_t opcode, bool solicited,
		   uint32_t imm, uint32_t len, const uint8_t *data);
bool soft_cqe_error(struct soft_engine *e, struct soft_qp *qp, bool responder, uint16_t idx,
		    uint8_t wqe_opcode, uint8_t synd);

/* ---- soft_fault.c */
/*
 * Called before each attempt to execute a request, only with option fault. Returns true if the
 * caller must not execute the request.
 */
bool soft_fault(struct soft_engine *e, struct soft_qp *qp);

/* Returns the mask of expected PSNs: 24 bits, or all 32 bits with the defect psn_wrap. */
static inline uint32_t
soft_defect_psn_mask(const struct soft_engine *e)
{
	return unlikely(soft_opts_defect(&e->dev->opts) == SOFT_DEFECT_PSN_WRAP) ? UINT32_MAX
										 : SOFT_PSN_MASK;
}

/* ---- soft_umr.c */
#define SOFT_SYN_AGAIN 0xff /* not a syndrome: the key is in use, so retry */
/* Executes the UMR WQE in @r. Returns 0, a syndrome with r->why, or SOFT_SYN_AGAIN. */
uint8_t soft_umr_execute(struct soft_qp *qp, struct soft_req *r);
/*
 * Executes the UMR WQE of a QP of type REG_UMR, which changes MRs (soft_umr_kernel.c). Returns the
 * same values as soft_umr_execute().
 */
uint8_t soft_umr_kernel(struct soft_qp *qp, struct soft_req *r);
/*
 * Returns true if a card waits for the end of the QP's last UMR before it executes this WQE. A card
 * may execute other WQEs while that UMR still runs (assumption [A]).
 */
static inline bool
soft_umr_waited(const struct soft_qp *qp, const struct soft_done *d)
{
	/* The WQE has a fence, or was posted after the UMR was executed. */
	return d->fm_ce_se >> 5 != 0 || (int16_t)(d->idx - qp->umr_end) >= 0;
}

/*
 * Called for each WQE, in order. After the first WQE that waits for the last UMR, that UMR has
 * ended on a card. So the function sets umr_index to 0, and later WQEs need no check by
 * soft_umr_waited().
 */
static inline void
soft_umr_pass(struct soft_qp *qp, const struct soft_done *d)
{
	if (unlikely(qp->umr_index != 0) && soft_umr_waited(qp, d))
		qp->umr_index = 0;
}
/*
 * Invalidates @rkey for a peer's SEND with invalidate. Returns 0; -EAGAIN if the key is in use;
 * -EACCES if it must not be invalidated, with the reason in *why.
 */
int soft_key_invalidate(const struct soft_engine *e, const struct soft_qp *p, uint32_t rkey,
			const char **why);

#endif
