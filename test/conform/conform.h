/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * conform: defines "works" once and tests it on any device.
 *
 * A row is one statement about the API: a verb, a QP type, a size, flags, and the required
 * outcome. rows_*.c generate rows from small tables, one file per area. Each row runs alone on a
 * fixture (fixture.c) of two sides, on one device or on two: A posts, B is the target. Like an
 * application, it uses public headers only.
 *
 * A row ends by returning (pass) or by fail(), which does not return. Objects that a row makes by
 * fx_*() or passes to fx_defer() are destroyed after it, so rows need no cleanup of their own.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "../include/bb_defaults.h"
#include "bluebell.h"

struct fx;
struct op;
struct row;

/* ---- rows.c: the list of rows */

/* Capabilities that a row needs of the devices; names and tests are in needs.c. */
enum need {
	NEED_ATOMICS = UINT64_C(1) << 0,
	NEED_NO_ATOMICS = UINT64_C(1) << 1,
	NEED_COUNTERS = UINT64_C(1) << 2,
	NEED_NO_COUNTERS = UINT64_C(1) << 3,
	NEED_TWO_DEVICES = UINT64_C(1) << 4,
	NEED_INFINIBAND = UINT64_C(1) << 5,
	NEED_ETHERNET = UINT64_C(1) << 6,
	NEED_SOFTWARE = UINT64_C(1) << 7,
	NEED_DM = UINT64_C(1) << 8,
	NEED_NO_DM = UINT64_C(1) << 9,
	NEED_DMABUF = UINT64_C(1) << 10,
	NEED_NO_DMABUF = UINT64_C(1) << 11,
	NEED_SRQ = UINT64_C(1) << 12,
	NEED_NO_SRQ = UINT64_C(1) << 13,
	NEED_ODP = UINT64_C(1) << 14,
	NEED_NO_ODP = UINT64_C(1) << 15,
	NEED_RELAXED = UINT64_C(1) << 16,
	NEED_NO_RELAXED = UINT64_C(1) << 17,
	NEED_CQ_RESIZE = UINT64_C(1) << 18,
	NEED_NO_CQ_RESIZE = UINT64_C(1) << 19,
	NEED_CQ_MODERATION = UINT64_C(1) << 20,
	NEED_NO_CQ_MODERATION = UINT64_C(1) << 21,
	NEED_CLOCK = UINT64_C(1) << 22,
	NEED_NO_CLOCK = UINT64_C(1) << 23,
	NEED_COMPRESSION = UINT64_C(1) << 24,
	NEED_NO_COMPRESSION = UINT64_C(1) << 25,
	NEED_ODP_IMPLICIT = UINT64_C(1) << 26,
	NEED_UDMABUF = UINT64_C(1) << 27,
	NEED_MW = UINT64_C(1) << 28,
	NEED_NO_MW = UINT64_C(1) << 29,
	NEED_MKEY = UINT64_C(1) << 30,
	NEED_NO_MKEY = UINT64_C(1) << 31,
	NEED_MKEY_LAYOUT = UINT64_C(1) << 32,
	NEED_NO_MKEY_LAYOUT = UINT64_C(1) << 33,
	NEED_MKEY_INTERLEAVED = UINT64_C(1) << 34,
	NEED_NO_MKEY_INTERLEAVED = UINT64_C(1) << 35,
	NEED_MASKED_4 = UINT64_C(1) << 36,
	NEED_MASKED_8 = UINT64_C(1) << 37,
	NEED_NO_MASKED = UINT64_C(1) << 38,
	NEED_LONG = UINT64_C(1) << 39,
	NEED_MEMORY = UINT64_C(1) << 40,
	NEED_PROCESS_VM = UINT64_C(1) << 41,
	NEED_PASSIVE = UINT64_C(1) << 42,
	NEED_PSNS = UINT64_C(1) << 43,
	NEED_REREG = UINT64_C(1) << 44,
	NEED_UMEM = UINT64_C(1) << 45,
	NEED_IMM = UINT64_C(1) << 46,
	NEED_UNRELIABLE = UINT64_C(1) << 47,
	NEED_READ_LIST = UINT64_C(1) << 48,
	NEED_RNR = UINT64_C(1) << 49,
	NEED_QP_CONNECT = UINT64_C(1) << 50,
	NEED_MW_ATOMICS = UINT64_C(1) << 51,
	NEED_NO_MW_ATOMICS = UINT64_C(1) << 52,
	NEED_GLOBAL_ATOMICS = UINT64_C(1) << 53,
	NEED_MCAST = UINT64_C(1) << 54,
	NEED_NO_MCAST = UINT64_C(1) << 55,
	NEED_MCAST_COPIES = UINT64_C(1) << 56,
	/*
	 * Needs that depend on the machine, not on the device, and that many machines lack. The
	 * guide shows no device's result for their rows.
	 */
	NEEDS_OF_MACHINE = NEED_UDMABUF | NEED_MEMORY,
};

enum result {
	NOT_RUN,
	PASS,
	SKIP,
	FAIL,
	DIFFERS, /* an assumption does not hold on this device */
	RESULTS,
};

/*
 * @man of row_add() for behaviour of the software device that no public source states for a card.
 *   Such a row is no statement about the API: a different result on a card is reported and fails
 *   no run.
 */
#define ASSUMED "assumption, no public source"

struct row {
	char *name;      /* group/cell */
	char *group;     /* area/qp type/verb or condition: one line of the table */
	const char *man; /* source of the rule */
	uint64_t needs;
	void (*run)(struct fx *fx, const struct row *row);
	/* Parameters for the row's function. */
	const struct op *op;
	enum bb_qp_type type;
	uint32_t size, flags, pieces, n;
	const void *arg;
	/* Result of the run. */
	enum result result;
	const char *missing; /* name of the need that is not met, NULL if none */
	char why[640];
};

struct rows {
	struct row *row;
	unsigned int n, cap;
};

/* Starts the function of a row: its parameters are @fx and @row. */
#define ROW(name)                                                                                  \
	static void name(struct fx *fx __attribute__((unused)),                                    \
			 const struct row *row __attribute__((unused)))

/* Appends a row. The pointer is valid until the next call. */
struct row *row_add(struct rows *rows, const char *man,
		    void (*run)(struct fx *fx, const struct row *row), const char *group,
		    const char *cell, ...) __attribute__((format(printf, 5, 6)));
void rows_generate(struct rows *rows);
/*
 * Returns whether the row runs on each kind of GID, not only on the first: packets of each verb
 * and type.
 */
bool row_each_gid(const struct row *row);
/* Returns whether no public source states the rule: see ASSUMED. */
bool row_assumed(const struct row *row);
/* Returns the row's own needs and those of its verb and type. */
uint64_t row_needs(const struct row *row);
void rows_free(struct rows *rows);

/* The areas. */
void rows_data(struct rows *rows);
void rows_atomic(struct rows *rows);
void rows_error(struct rows *rows);
void rows_recv_error(struct rows *rows);
void rows_post(struct rows *rows);
void rows_device(struct rows *rows);
void rows_recover(struct rows *rows);
void rows_mkey(struct rows *rows);
void rows_mw(struct rows *rows);
void rows_unreliable(struct rows *rows);
void rows_mcast(struct rows *rows);
void rows_mr(struct rows *rows);
void rows_cq(struct rows *rows);
void rows_dm(struct rows *rows);
void rows_umem(struct rows *rows);
void rows_devx(struct rows *rows);
void rows_list(struct rows *rows);
void rows_srq(struct rows *rows);
void rows_event(struct rows *rows);
void rows_async(struct rows *rows);
void rows_long(struct rows *rows);
void rows_completion(struct rows *rows);
void rows_qp(struct rows *rows);
void rows_life(struct rows *rows);
void rows_memory(struct rows *rows);
void rows_memory_rights(struct rows *rows);
void rows_order(struct rows *rows);

/* ---- needs.c */

/*
 * Returns why the devices do not meet the first missing need, and its name. Returns NULL if all
 * are met.
 */
const char *need_missing(const struct fx *fx, uint64_t needs, const char **name);
/*
 * Returns the text for a machine without what a row needs, NULL if the row needs nothing of it.
 */
const char *need_of_machine(uint64_t needs);

#define LONG_MESSAGE (UINT64_C(2) << 30)

/* ---- fixture.c */

#define ARENA   (2u << 20) /* bytes of memory of each side */
#define GUARD   4096u      /* bytes around a payload that must not change */
#define CQ_SIZE 512u
#define PIECES  64u /* more than any max_sge */

#define ACCESS_ALL                                                                                 \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

struct side {
	struct bb_dev *dev;
	struct bb_dev_attr attr;
	struct bb_port_attr port;
	struct bb_pd *pd;
	struct bb_cq *cq;
	uint8_t gid;   /* index of the GID that pairs use */
	uint8_t *mem;  /* ARENA bytes, registered as mr */
	uint8_t *want; /* expected content of mem at the end of a row, as far as used */
	struct bb_mr *mr;
};

/* A pair of connected QPs: a posts, b is the target. */
struct pair {
	struct bb_qp *a, *b;
};

/* Pairs shared by rows. */
enum shared {
	SHARED_RC,
	SHARED_RC_ALL, /* reports every request */
	SHARED_UC,
	SHARED_PAIRS,
};

/* Attributes of a pair. */
struct pair_opts {
	struct bb_qp_init_attr init;
	struct bb_qp_attr a, b;
	struct bb_pd *pd_a, *pd_b;
	uint32_t rq_depth_a, rq_depth_b;
};

struct deferred {
	void (*fn)(void *arg);
	void *arg;
};

struct fx {
	const char *spec;  /* as on the command line: "soft0", "soft0+soft1" */
	struct link *link; /* connects pairs; NULL: bb_qp_connect() does */
	struct side a, b;
	bool two;             /* A and B are different devices */
	const char *gid_kind; /* of the GIDs of A and B */
	uint32_t access;      /* all rights that the devices support */
	uint32_t mtu;         /* of the path */
	uint32_t max_sge;     /* of pairs made by fx_pair() */
	uint32_t max_rsge;    /* pieces of a receive */
	uint32_t max_inline;
	double timeout; /* seconds until a completion counts as lost */
	struct pair
		shared[SHARED_PAIRS]; /* made once, used by all rows that leave them unchanged */
	uint64_t wr_id;               /* next wr_id */
	uint64_t seed;                /* of the next pattern */
	struct deferred defer[64];
	unsigned int n_defer;
	jmp_buf jmp;
	char why[512];
};

/*
 * Opens the devices of "A" or "A+B". Returns 0 or a negative errno, with the reason in the log.
 * @address: an address of B at which rdma_cm connects pairs; NULL: bb_qp_connect() does. Pairs
 * use GIDs of the @nth kind that both ports have; -ENOENT: there is no such kind.
 */
int fx_open(struct fx *fx, const char *spec, double timeout, const char *address, unsigned int nth);
/* gids.c: chooses the GIDs. Returns 0 or -ENOENT. */
int gids_choose(struct fx *fx, unsigned int nth);
/* Returns false if an object could not be destroyed. */
bool fx_close(struct fx *fx);
/* Runs the deferred calls, last first. */
void fx_undo(struct fx *fx);
void fx_defer(struct fx *fx, void (*fn)(void *arg), void *arg);
/* Removes a deferred call: the row itself destroyed @arg. */
void fx_forget(struct fx *fx, const void *arg);

/* Ends the row as failed. */
void fail(struct fx *fx, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
#define CHECK(fx, cond, ...)                                                                       \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail(fx, __VA_ARGS__);                                                     \
	} while (0)
/* Fails the row unless a control call succeeds. */
#define OK(fx, call) check_ret(fx, #call, (call), 0)
void check_ret(struct fx *fx, const char *call, int got, int want);

/* Make objects that live as long as the row. */
struct bb_pd *fx_pd(struct fx *fx, struct side *s);
struct bb_mr *fx_mr(struct fx *fx, struct bb_pd *pd, void *addr, size_t len, uint32_t access);
struct bb_cq *fx_cq(struct fx *fx, struct side *s, uint32_t depth);
struct bb_qp *fx_qp(struct fx *fx, struct bb_pd *pd, const struct bb_qp_init_attr *init);
void *fx_alloc(struct fx *fx, size_t len, size_t align);

struct pair_opts fx_opts(const struct fx *fx);
/* Makes a pair for this row, in RTS. */
struct pair fx_pair(struct fx *fx, const struct pair_opts *o);
/* Makes a pair with the default attributes for this row. */
struct pair fx_own_pair(struct fx *fx);
/* Returns the pair that rows share. A row that breaks it fails or must use fx_pair(). */
struct pair fx_shared(struct fx *fx);
/* Returns a shared pair of another kind. */
struct pair fx_shared_of(struct fx *fx, enum shared which);
/* Moves both QPs from RESET to RTS, connected to each other. */
void fx_connect(struct fx *fx, struct pair p, const struct pair_opts *o);

/* Returns the device's state of a QP. */
enum bb_qp_state qp_state(struct fx *fx, struct bb_qp *qp);
void check_state(struct fx *fx, struct bb_qp *qp, enum bb_qp_state want, const char *whose);

/* ---- link.c: pairs connected by rdma_cm */

/* Returns 0 or a negative errno. */
int link_open(struct fx *fx, const char *address);
void link_close(struct fx *fx);
/* Connects @p; @kept: for longer than the row. */
void link_connect(struct fx *fx, struct pair p, const struct pair_opts *o, bool kept);
/* Ends the connections of the row, or all of them. */
void link_end(struct fx *fx, bool all);

/* ---- wait.c: completions and events */

/* Runs what needs progress calls, then polls. */
unsigned int fx_poll(struct fx *fx, struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
void fx_progress(struct fx *fx);
/* Waits for exactly @n completions; @what is for the message. */
void wait_wc(struct fx *fx, struct bb_cq *cq, struct bb_wc *wc, unsigned int n, const char *what);
/* Fails if another completion arrives. */
void check_quiet(struct fx *fx, struct bb_cq *cq, const char *what);
void check_wc(struct fx *fx, const struct bb_wc *wc, const struct bb_qp *qp, uint64_t wr_id,
	      enum bb_wc_status status, const char *what);
/* Waits for exactly one completion, checks it as check_wc() does, and returns it. */
struct bb_wc expect_wc(struct fx *fx, struct bb_cq *cq, const struct bb_qp *qp, uint64_t wr_id,
		       enum bb_wc_status status, const char *what);
/* As expect_wc(), of a request of which @posted is the post's result and that is not rung yet. */
struct bb_wc complete(struct fx *fx, struct bb_cq *cq, struct bb_qp *qp, int posted, uint64_t wr_id,
		      enum bb_wc_status status, const char *what);
/* Waits until @qp is idle: a signalled NOP completes and no other request does. */
void settle(struct fx *fx, struct bb_qp *qp, struct bb_cq *cq);
/* Waits for one asynchronous event of @s and fails on any other. */
struct bb_event wait_event(struct fx *fx, struct side *s, const char *what);
/* Waits for the target's event about a rejected request, if it has such events. */
void wait_refusal(struct fx *fx, const char *what);
void check_no_event(struct fx *fx, struct side *s, const char *what);
double now_s(void);

/* ---- log.c: the library's log */

int log_start(void);
void log_stop(void);
/* Discards the lines so far. */
void log_clear(void);
/* Return the number of lines since log_clear(), and of those that contain @word in any case. */
unsigned int log_lines(void);
unsigned int log_having(const char *word);
/* Copies the last line. */
void log_last(char *buf, size_t size);
/* Writes all lines since log_clear(). */
void log_dump(FILE *out);

/*
 * Asserts that a call fails with @want and logs one line with @word; the rule is in the row's man
 * page. The software device may add a line of its own, and either may contain the word. Checks
 * errno and log; the caller checks the objects.
 */
#define REFUSED(fx, call, want, word)                                                              \
	do {                                                                                       \
		log_clear();                                                                       \
		check_refused(fx, #call, (call), want, word);                                      \
	} while (0)
void check_refused(struct fx *fx, const char *call, int got, int want, const char *word);

/* ---- xfer.c: one request, its data, its completions */

struct op {
	const char *name;
	enum bb_wr_opcode wr;
	uint8_t wc;      /* enum bb_wc_opcode at the requester */
	uint8_t recv_wc; /* and at the receiver, if a receive is consumed */
	bool to_target;  /* data goes to the target, else comes from it */
	bool takes_recv; /* a receive of the target is consumed */
	bool recv_data;  /* the data go into the receive's buffers */
	bool has_raddr;  /* addresses remote memory */
	bool has_imm;
	bool can_inline;
	bool atomic;
	uint32_t types; /* 1 << enum bb_qp_type of the types on which it is legal */
	uint32_t right; /* BB_ACCESS_REMOTE_* that the target must grant */
	uint32_t needs;
};
extern const struct op ops[];
extern const unsigned int n_ops;
const struct op *op_find(const char *name);

/* Remote fields of a request. */
struct target {
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm; /* network order */
	uint64_t compare, swap_add;
};
int op_post(const struct op *op, struct bb_qp *qp, uint64_t wr_id, const struct bb_sge *sge,
	    uint32_t nsge, const struct target *t, uint32_t flags);
int op_post_inline(const struct op *op, struct bb_qp *qp, uint64_t wr_id, const void *data,
		   uint32_t len, const struct target *t, uint32_t flags);

/* Posts the request as a list of one; honours BB_SEND_INLINE in the flags. */
uint32_t op_post_list(const struct op *op, struct bb_qp *qp, uint64_t wr_id,
		      const struct bb_sge *sge, uint32_t nsge, const struct target *t,
		      uint32_t flags, int *err);

struct xfer {
	const struct op *op;
	struct pair p;
	uint32_t len;
	uint32_t nsge;  /* pieces at A */
	uint32_t nrecv; /* pieces of B's receive; B's memory has one piece */
	uint32_t flags; /* enum bb_send_flags */
	bool use_inline;
	bool use_list;    /* post by bb_qp_post_list() */
	bool signal_all;  /* the QP reports every request */
	bool unreliable;  /* a completion proves nothing about the target */
	uint32_t shift;   /* offset of the payload in its page, bytes */
	uint64_t operand; /* of an atomic: value to add or swap in; 0: any */
	uint64_t miss;    /* bits of CMP_SWAP's compare value that differ from memory */
	/* Filled by xfer_prepare(). */
	uint64_t wr_id, recv_id;
	struct bb_sge sge[PIECES], rsge[PIECES];
	struct target t;
	uint32_t window; /* bytes of the arenas that the row checks */
	bool received;   /* the receive has completed, or nothing should arrive */
};

/* Sets the defaults: one piece each way, signalled, 64 bytes. */
void xfer_init(struct xfer *x, const struct op *op, struct pair p);
/* Writes patterns to both arenas, posts the receive, and computes the expected contents. */
void xfer_prepare(struct fx *fx, struct xfer *x);
/* Posts and rings. */
void xfer_post(struct fx *fx, struct xfer *x);
/*
 * Checks every byte of both windows. Only the receive's completion proves the data of a SEND (man
 * ibv_post_recv), so it must be polled first.
 */
void xfer_check_data(struct fx *fx, const struct xfer *x);
/* Expects that no data moves: both windows stay as prepared. */
void xfer_expect_nothing(struct fx *fx, struct xfer *x);
/* Checks the completion of the target's receive. */
void xfer_check_recv(struct fx *fx, struct xfer *x);
/*
 * Waits for the request's completion if it has one, for no other, and for the target's receive.
 */
void settle_one(struct fx *fx, struct xfer *x);
/* Runs the whole request on a working pair. */
void xfer_run(struct fx *fx, struct xfer *x);
/* Checks that the pair still works by one WRITE and its completion. */
void check_alive(struct fx *fx, struct pair p);

uint64_t sge_total(const struct bb_sge *sge, uint32_t n);
/* Fills memory with a unique pattern. */
void pattern(void *mem, size_t len, uint64_t seed);
struct bb_sge sge_of(const struct side *s, uint32_t off, uint32_t len);
uint64_t addr_of(const struct side *s, uint32_t off);

/* ---- report.c */

/* Results of one device. */
struct column {
	const char *spec;
	struct rows rows;
};

void report_list(const struct rows *rows, const char *filter);
int report_json(const char *path, const struct column *col, unsigned int n);
bool row_matches(const struct row *row, const char *filter);

/* ---- wires.c */
#define WIRE_ARGS 2
/* Builds EAL's options for the vdevs named in the specs. Returns their number. */
unsigned int wires_eal(const char *const *spec, unsigned int n, char *argv[WIRE_ARGS]);
bool wires_in_eal(void);
/* Makes the vdevs for which EAL has no options. Returns 0, or -1 after printing the reason. */
int wires_make(const char *const *spec, unsigned int n);

/* ---- skips.c: needs that may be missing on a device, with the reason */
int skips_load(const char *path);
/*
 * Returns the reason for the permitted skip, NULL if it is not permitted. Without a list every
 * skip is.
 */
const char *skip_allowed(const char *spec, const char *need);
/* Prints the lines that no skip used. Returns their number. */
unsigned int skips_unused(void);

#endif
