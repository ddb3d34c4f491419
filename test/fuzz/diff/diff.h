/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The differential fuzzer. It runs one sequence of calls on a device, through the public API, and
 * on a model. The model follows the man pages and the IBTA specification (vol. 1, chapters 9 and
 * 10). After each step the two must agree.
 *
 * Objects have numbered slots, so that a step is a line of small numbers with the same meaning in
 * every run. A step on an empty slot does nothing, and so does a step that creates an object in a
 * full one. So any subset of a sequence is a sequence.
 */
#ifndef DIFF_H
#define DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bb_dm.h"
#include "bb_mem.h"
#include "bb_post.h"

#define DIFF_DEVS 2
#define PDS       4 /* slot i belongs to device i % devices; CQs likewise */
#define MRS       8
#define CQS       4
#define QPS       4
#define AHS       4
#define SRQS      2
#define GIDS      4   /* of each device */
#define NO_KEY    MRS /* a key that never existed */
#define MWS       4
#define MW_BINDS  16
#define KEY_MW    (NO_KEY + 1) /* keys of windows */
#define MKEYS     2
#define KEY_MKEY  (KEY_MW + MWS) /* indirect keys */
#define KEYS      (KEY_MKEY + MKEYS)
#define DMS       2
#define DM_LEN    256u

/* Memory: buffers, each surrounded by as much memory that must not change. */
#define BUFS     4
#define BUF_LEN  4096u
#define ARENA    ((2 * BUFS + 1) * BUF_LEN)
#define RECV_BUF 3    /* the only buffer for receives; no send reads it */
#define ZERO_BUF BUFS /* addresses from 0 on, of zero-based keys */
/* Memory of the model: the buffers, then device memory. */
#define DM_ROOM   (DM_LEN + 64) /* with gaps */
#define MEM       (ARENA + DMS * DM_ROOM)
#define DM_AT(dm) (ARENA + (dm)*DM_ROOM)

#define MTU        1024u
#define PSN_START  0xfffffau /* so that the 24 bits wrap soon */
#define MAX_ARGS   19
#define MAX_SGE    3
#define MAX_INLINE 256
#define MAX_STEPS  2000
#define MAX_QUEUE  16 /* WQEs of a queue */
#define FIFO       64 /* power of two: pending completions per queue */

enum op {
	OP_PD_ALLOC,
	OP_PD_FREE,
	OP_MR_REG,
	OP_MR_REREG,
	OP_MR_DEREG,
	OP_CQ_CREATE,
	OP_CQ_DESTROY,
	OP_QP_CREATE,
	OP_QP_DESTROY,
	OP_MODIFY,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_SEND,
	OP_SEND_IMM,
	OP_WRITE_INLINE,
	OP_WRITE_IMM_INLINE,
	OP_SEND_INLINE,
	OP_SEND_IMM_INLINE,
	OP_CMP_SWAP,
	OP_FETCH_ADD,
	OP_NOP,
	OP_RECV,
	OP_RING,
	OP_RING_RECV,
	OP_FILL,
	OP_AH_CREATE,
	OP_AH_DESTROY,
	OP_SEND_UD,
	OP_SEND_UD_IMM,
	OP_SEND_UD_INLINE,
	OP_SEND_UD_IMM_INLINE,
	OP_POST_LIST,
	OP_RECV_LIST,
	OP_MASKED_CMP_SWAP,
	OP_MASKED_FETCH_ADD,
	OP_MW_ALLOC,
	OP_MW_FREE,
	OP_BIND,
	OP_LOCAL_INV,
	OP_SEND_INV,
	OP_SEND_INV_INLINE,
	OP_DM_ALLOC,
	OP_DM_FREE,
	OP_DM_WRITE,
	OP_MR_REG_DM,
	OP_SRQ_CREATE,
	OP_SRQ_DESTROY,
	OP_SRQ_MODIFY,
	OP_SRQ_RECV,
	OP_SRQ_RING,
	OP_MKEY_CREATE,
	OP_MKEY_DESTROY,
	OP_MKEY_LIST,
	OP_MKEY_INTERLEAVED,
	OPS,
};

struct step {
	uint32_t op;
	uint32_t a[MAX_ARGS]; /* with the names in ops.c */
};

struct seq {
	uint32_t n;
	struct step s[MAX_STEPS];
};

/* Indexes of arguments. Posts of lists: qp flags n, 4 per piece, remote key, buffer, offset. */
enum {
	A_QP = 0,
	A_FLAGS = 1,
	A_N = 2,
	A_SGE = 3,
	A_RKEY = A_SGE + 4 * MAX_SGE,
	A_RBUF,
	A_ROFF,
	A_IMM,
};
/* Datagrams have address handle, QP and Q_Key instead of remote key, buffer and offset. */
/* Inline posts: qp flags len seed. Atomics have one piece and two operands. */
enum {
	I_LEN = 2,
	I_SEED,
	I_RKEY,
	I_RBUF,
	I_ROFF,
	I_IMM,
	AT_SGE = 2,
	AT_RKEY = 6,
	AT_RBUF,
	AT_ROFF,
	AT_X,
	AT_Y,
	AT_X_MASK, /* of masked atomics */
	AT_Y_MASK,
};

/* In the flags of a request: it is saved for post_list or recv_list. */
#define LISTED   (1u << 16)
#define MAX_LIST 8

/* ---- ops.c */
const char *op_name(uint32_t op);
uint32_t op_args(uint32_t op);
void step_print(FILE *f, const struct step *s);
int seq_save(const char *path, const struct seq *seq, const char *spec, const char *why);
/* Returns 0, or -errno after printing the cause. */
int seq_load(const char *path, struct seq *seq);

/* ---- model */
struct m_sge {
	uint32_t key, gen; /* slot and generation */
	uint32_t buf, off, len;
};

struct m_ah {
	bool live;
	uint32_t pd, dev, gid, tclass, flow, hops;
};

#define MAX_BLOCKS 2
/* Consecutive pieces, or rounds of blocks. */
struct m_layout {
	uint32_t n, repeat;
	struct m_sge piece[MAX_SGE];
	uint32_t skip[MAX_SGE];
};

struct m_wqe {
	uint32_t op, flags, n;
	uint64_t wr_id;
	struct m_sge sge[MAX_SGE];
	bool is_inline;
	uint8_t data[MAX_INLINE];
	uint32_t len;
	uint32_t rkey, rgen, rbuf, roff;
	uint32_t imm;
	uint64_t x, y, x_mask, y_mask;
	/* Datagrams: path and destination. */
	struct m_ah ah;
	uint32_t dest, dest_gen, qkey;
	/* Binds: rkey and rgen are those of the window before. */
	uint32_t mw, access, tag;
	struct m_sge bind;
	bool wrong_call; /* the call for the other type */
	struct m_layout layout;
};

struct m_wc {
	uint64_t wr_id;
	uint8_t status, opcode, flags;
	bool has_len;
	uint32_t len, imm; /* imm with WITH_INV: slot of the key */
	uint32_t from;     /* of datagrams: QP + 1 */
};

struct m_fifo {
	uint32_t head, tail;
	struct m_wc wc[FIFO];
};

struct m_queue {
	uint32_t done, rung, posted; /* counts; done <= rung <= posted */
	struct m_wqe wqe[MAX_QUEUE];
};

struct m_list {
	uint32_t n;
	struct step s[MAX_LIST];
};

struct m_pd {
	bool live;
	uint32_t refs;
};

struct m_mr {
	bool live, writable;
	uint32_t gen, pd, buf, off, len, access;
	uint32_t base; /* in model.mem */
	uint32_t dm;   /* device memory + 1 */
};

struct m_mw {
	bool live;
	uint32_t gen, pd, type; /* enum bb_mw_type */
	uint32_t tag;           /* low byte of the key: of the last bind that has not failed */
	uint32_t n_binds;       /* those that have not failed, or the last of them */
	struct {
		uint64_t wr_id; /* 0: the key of the new window */
		uint32_t tag;
	} bind[MW_BINDS];
	uint32_t touched;  /* regions to which requests bound it, a bit each */
	uint32_t requests; /* since it was created, or a peer invalidated it */
	/* State at the device. */
	bool bound;
	uint32_t dev_gen, access, qp, qp_gen;
	struct m_sge to;
};

struct m_mkey {
	bool live, free;
	uint32_t gen, pd, access, max_pieces; /* 0: fixed */
	struct m_layout layout;
};

struct m_dm {
	bool live;
	uint32_t len, refs;
};

struct m_place {
	uint32_t at, len; /* in model.mem */
};

#define MAX_PLACES 64
struct m_places {
	uint32_t n;
	struct m_place p[MAX_PLACES];
};

struct m_cq {
	bool live;
	uint32_t depth, promised, refs;
};

struct m_qp {
	bool live;
	uint32_t type; /* enum bb_qp_type */
	uint32_t gen, pd, scq, rcq;
	uint32_t sq_depth, rq_depth, max_sge, max_recv_sge, max_inline, sig_every;
	uint32_t state, access, qkey;
	bool signal_all;
	uint32_t peer, peer_gen;
	uint32_t sq_psn, epsn;
	uint32_t rnr_retry;
	struct m_queue sq, rq;
	struct m_list send_list, recv_list;
	uint32_t srq; /* slot + 1; 0: none */
	bool holds;   /* the QP has taken a receive of the SRQ, in held */
	struct m_wqe held;
	bool comm_est;              /* the first message in RTR arrived */
	struct m_fifo sends, recvs; /* pending completions */
	uint32_t quiet;             /* executed after the last completion */
	uint64_t posted, recv_posted, errors;
};

struct m_srq {
	bool live;
	uint32_t pd, depth, max_sge, limit, refs;
	uint32_t outstanding; /* posted and not polled */
	struct m_queue q;
};

/* The slot of a QP or an SRQ, by type. */
struct m_event {
	uint32_t type, slot;
};
#define MAX_EVENTS 32

/* Properties of the devices. */
struct world {
	uint32_t devs;
	bool own_pace, ib;
	bool mkeys;
	bool dm;                    /* has enough device memory */
	uint32_t ud_mtu;            /* largest datagram in bytes */
	uint32_t masked, masked_be; /* sizes of masked atomics */
	struct {
		uint8_t raw[16];
		uint32_t type; /* enum bb_gid_type */
		bool there;
	} gid[DIFF_DEVS][GIDS];
};

struct model {
	uint32_t devs;
	/*
	 * Devices work between polls: then every send must be signalled, as its end would be
	 * unknown otherwise.
	 */
	bool own_pace;
	uint64_t next_wr;
	const struct world *world;
	struct m_ah ah[AHS];
	struct m_pd pd[PDS];
	struct m_mr mr[MRS];
	struct m_mw mw[MWS];
	struct m_dm dm[DMS];
	struct m_mkey mkey[MKEYS];
	struct m_cq cq[CQS];
	struct m_qp qp[QPS];
	struct m_srq srq[SRQS];
	uint32_t n_events; /* of this step */
	struct m_event event[MAX_EVENTS];
	/* Memory is undefined after this step: the device's content is taken over. */
	bool blur;
	uint32_t receivers; /* of datagrams in this step, a bit each */
	uint8_t mem[MEM];
};

/* Rights that need writable memory: ib_access_writable(). */
#define WRITES                                                                                     \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC |                \
	 BB_ACCESS_MW_BIND)

/* Return values that a call may have. */
struct verdict {
	uint32_t n;
	int ret[8];
	bool list; /* model_list_post() decides */
	bool skip; /* no operation, or the result is undefined */
};

#define ARENA_OF(buf, off) ((2 * (size_t)(buf) + 1) * BUF_LEN + (off))

/* Sets the initial content of memory. */
void memory_init(uint8_t mem[ARENA]);
void model_init(struct model *m, const struct world *world);
/* Computes what the step may return; changes nothing. */
void model_judge(const struct model *m, const struct step *s, struct verdict *v);
/* Executes the step, which returned @ret, one of the verdict's values. */
void model_step(struct model *m, const struct step *s, int ret);
/* Queues the request of a post that returned 0. */
void model_post(struct model *m, const struct step *s);
/* Judges a post by itself, or one of a list. */
void model_judge_post(const struct model *m, const struct step *s, bool list, struct verdict *v);
/* Runs until no request can move and all timers have expired. */
void model_run(struct model *m);
void model_fail_qp(struct model *m, struct m_qp *qp);
void model_due(struct m_fifo *f, const struct m_wc *wc);
bool model_is_post(uint32_t op);
bool model_is_inline(uint32_t op);
/* Translates a post to its request. Returns false if the model does not cover it. */
bool model_wqe_of(const struct model *m, const struct step *s, struct m_wqe *w);
uint32_t model_seq_sges(const struct step *s, struct m_sge *sge);
uint8_t model_pattern(uint32_t seed, uint32_t i);

/* ---- model_run.c and the files of its areas */
enum answer {
	DONE,
	NOT_NOW, /* no receive */
	INVALID,
	ACCESS,
	OPERATION,
};
bool model_has_imm(uint32_t op);
bool model_takes_receive(uint32_t op);
bool model_is_ud(uint32_t op);
/* Checks of a request by itself; and copies with undefined results. */
bool model_request_ok(const struct m_wqe *w);
bool model_entangled(const struct m_wqe *w);

/* ---- model_key.c */
uint32_t model_key_gen(const struct model *m, uint32_t key);
/*
 * Appends the memory that a piece names. Returns false if its key does not permit @right there.
 */
bool model_map(const struct model *m, uint32_t pd, const struct m_qp *qp, const struct m_sge *g,
	       uint32_t right, struct m_places *to);
bool model_map_mr(const struct model *m, uint32_t pd, const struct m_sge *g, uint32_t right,
		  struct m_places *to);
/* Maps the first @len bytes of a list. */
bool model_map_list(const struct model *m, uint32_t pd, const struct m_qp *qp,
		    const struct m_sge *sge, uint32_t n, uint32_t len, uint32_t right,
		    struct m_places *to);
/* Maps a receive. Returns its status. */
uint8_t model_recv_map(const struct model *m, const struct m_qp *p, const struct m_wqe *r,
		       uint32_t len, struct m_places *to);
void model_get(const struct model *m, const struct m_places *from, uint8_t *to);
void model_put(struct model *m, const struct m_places *to, const uint8_t *from);
void model_clash(struct model *m, const struct m_places *a, const struct m_places *b);

/* ---- model_mw.c */
uint32_t model_mw_gen(const struct m_mw *w);
bool model_bind_of(const struct model *m, const struct step *s, struct m_wqe *w);
bool model_bind_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w, bool list);
void model_mw_posted(struct model *m, const struct m_wqe *w);
/* Handles a request that completes in error: if it is a bind, the window keeps its earlier key. */
void model_mw_failed(struct model *m, const struct m_wqe *w);
/* Whether a window keeps a region from being deregistered. */
enum m_hold {
	NOT_HELD,
	MAYBE_HELD,
	HELD,
};
enum m_hold model_mr_hold(const struct model *m, uint32_t mr);
bool model_mw_full(const struct model *m, const struct m_wqe *w);
bool model_mw_in_use(const struct model *m, uint32_t mw);
/* Executes a bind or an invalidation. Returns its status. */
uint8_t model_mw_run(struct model *m, const struct m_qp *qp, const struct m_wqe *w);
bool model_remote_inv(struct model *m, const struct m_qp *p, const struct m_wqe *w);
bool model_map_mw(const struct model *m, const struct m_qp *qp, const struct m_sge *g,
		  uint32_t right, struct m_places *to);
void model_judge_mw(const struct model *m, const struct step *s, struct verdict *v);
void model_mw_step(struct model *m, const struct step *s);

/* ---- model_mkey.c */
bool model_is_layout(uint32_t op);
bool model_mkey_of(const struct model *m, const struct step *s, struct m_mkey *k);
bool model_layout_of(const struct model *m, const struct step *s, struct m_wqe *w);
bool model_layout_ok(const struct model *m, const struct m_qp *qp, const struct m_wqe *w);
uint8_t model_layout_run(struct model *m, const struct m_qp *qp, const struct m_wqe *w);
bool model_map_mkey(const struct model *m, uint32_t pd, const struct m_sge *g, uint32_t right,
		    struct m_places *to);
bool model_mkey_holds(const struct model *m, uint32_t mr);
bool model_mkey_names(const struct model *m, uint32_t mr);
void model_judge_mkey(const struct model *m, const struct step *s, struct verdict *v);
void model_mkey_step(struct model *m, const struct step *s);

/* ---- model_srq.c */
void model_event(struct model *m, uint32_t type, uint32_t slot);
/* Returns whether the QP can receive at all. */
bool model_has_recvs(const struct m_qp *p);
uint32_t model_recv_pd(const struct model *m, const struct m_qp *p);
/*
 * Returns the receive for a message, taken from an SRQ if there is one; NULL if none is posted.
 */
const struct m_wqe *model_recv_next(struct model *m, struct m_qp *p);
/* Completes the receive; fills in wr_id. */
void model_recv_due(struct model *m, struct m_qp *p, struct m_wc *wc);
/* Returns the CQ entries that another QP of an SRQ (slot + 1) needs for its receives. */
uint32_t model_srq_credits(const struct model *m, uint32_t srq, uint32_t cq);
void model_judge_srq(const struct model *m, const struct step *s, struct verdict *v);
void model_srq_step(struct model *m, const struct step *s, int ret);

/* ---- model_dm.c */
void model_judge_dm(const struct model *m, const struct step *s, struct verdict *v);
void model_dm_step(struct model *m, const struct step *s);

/* ---- model_list.c */
/*
 * Returns the requests that post_list would post now: saved ones with a defined outcome. @s has
 * MAX_LIST entries.
 */
uint32_t model_list_get(const struct model *m, uint32_t qp, bool recv, struct step *s);
void model_list_add(struct model *m, const struct step *s);
/*
 * Takes the result @ret: number posted << 8 | -error. Returns false with the reason if it is
 * wrong.
 */
bool model_list_post(struct model *m, const struct step *s, int ret, char *why, size_t size);

/* ---- model_atomic.c */
bool model_is_atomic(uint32_t op);
bool model_is_masked(uint32_t op);
bool model_is_cmp_swap(uint32_t op);
uint64_t model_wide(uint32_t v);
uint64_t model_wide_mask(uint32_t v);
/* Executes the atomic on the memory at @at. */
void model_atomic(const struct model *m, const struct m_wqe *w, uint8_t *at, uint8_t result[8]);

/* ---- model_ud.c */
void model_ud_send(struct model *m, struct m_qp *qp, const struct m_wqe *w,
		   const struct m_places *own);

static inline uint32_t
model_waiting(const struct m_queue *q)
{
	return q->posted - q->done;
}

/* ---- exec.c: the device */
struct exec;
struct exec *exec_open(const char *spec, char *why, size_t size);
const struct world *exec_world(const struct exec *x);
/* Executes the step's call. */
int exec_step(struct exec *x, const struct model *m, const struct step *s);
/*
 * Polls until the model's completions have arrived, then compares everything. Returns false with
 * the reason.
 */
bool exec_settle(struct exec *x, struct model *m, char *why, size_t size);
/*
 * Between sequences: destroys all objects and resets memory. Returns false if one cannot be
 * destroyed.
 */
bool exec_clear(struct exec *x, char *why, size_t size);
void exec_close(struct exec *x);
/* Shortens waits, for the hundreds of tries that make a sequence smaller. */
void exec_hurry(struct exec *x, bool on);
/* Completions polled: successes by enum bb_wc_opcode, errors by enum bb_wc_status. */
#define EXEC_OPCODES 32
struct exec_counts {
	uint64_t good[EXEC_OPCODES], bad[EXEC_OPCODES];
};
const struct exec_counts *exec_counts(const struct exec *x);

/* ---- gen.c */
struct rng {
	uint64_t s;
};
void gen_step(struct rng *r, const struct model *m, struct step *s);
uint32_t rng_below(struct rng *r, uint32_t n);

/* ---- run.c */
struct failure {
	uint32_t at; /* number of the step */
	char why[512];
};
/* Returns true if the sequence failed. */
bool run_seq(struct exec *x, const struct seq *seq, struct failure *f);
/* Generates a sequence while it runs. */
bool run_random(struct exec *x, uint64_t seed, uint32_t steps, struct seq *seq, struct failure *f);
/* Removes steps, then lowers numbers, while the sequence still fails. */
void minimise(struct exec *x, struct seq *seq, struct failure *f);

#endif
