/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software ConnectX: objects of the device and who may touch them.
 *
 * It stands behind the command interface (mlx5_cmd.h) and knows nothing of
 * Bluebell's objects: mailboxes, umems, UAR pages and MRs are all it is given.
 * What a card refuses it refuses, with the same status or error CQE and a line
 * in the log.
 *
 * Control path (soft_dev.c, soft_cmd.c, soft_cmd_*.c, soft_mem.c, soft_mr.c, soft_umem.c,
 * soft_dm.c, soft_uar.c):
 * any thread, serialised by soft_dev.lock.
 *
 * Data path (soft_engine.c, soft_doorbell.c, soft_req.c, soft_resp.c,
 * soft_cqe.c): an engine runs the QPs of its UARs, under its own lock. With
 * inline progress an engine is one UAR, run by the UAR's owner; else one engine
 * runs the whole device on an lcore or thread of its own.
 *
 * Lookup tables (mkeys, QPs, CQs) are arrays of pointers that engines read
 * without a lock. An object is unpublished first (pointer to NULL, release),
 * then soft_quiesce() waits until every engine has once been outside its lock,
 * then it is freed: the engine's lock is the read side of an RCU.
 * Lock order: soft_dev.lock, then an engine's lock. An engine never takes
 * soft_dev.lock and never a second engine's lock: what concerns another
 * engine's QP or CQ goes through that engine's inbox.
 */
#ifndef SOFT_H
#define SOFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_log.h>
#include <rte_ticketlock.h>

#include "bb_cqe.h"
#include "bb_prm.h"
#include "bb_wqe.h"
#include "mlx5_cmd.h"
#include "soft_counters.h"
#include "soft_opts.h"

#define SOFT_LOG_MAX_QP     17
#define SOFT_LOG_MAX_CQ     16
#define SOFT_LOG_MAX_MKEY   16
#define SOFT_LOG_MAX_CQ_SZ  22
#define SOFT_LOG_MAX_QP_SZ  15
#define SOFT_LOG_MAX_RMP    15
#define SOFT_LOG_MAX_SRQ_SZ 15
#define SOFT_ZIP_MAX        64 /* CQEs in a compressed block */
#define SOFT_MAX_GIDS       16
#define SOFT_PKEY           0xffff /* the default partition, full member (IBTA vol. 1, 10.9.1.2) */
#define SOFT_UAR_PAGE       4096
#define SOFT_ARM_OFFSET     0x20  /* where CQs are armed (libmlx5: MLX5_CQ_DOORBELL) */
#define SOFT_BF_OFFSET      0x800 /* first register in the page; the second is at 0xa00 */
#define SOFT_BF_HALF        256   /* a register is two halves of this size */
#define SOFT_LOG_MAX_KLM    7     /* entries of an indirect key */
#define SOFT_INDIRECTION    4     /* keys over keys over keys over memory [A] */

#define SOFT_MAX_DEVS   16   /* soft0 to soft15 */
#define SOFT_QPC_BYTES  0xe8 /* qpc in mlx5_ifc.h */
#define SOFT_RMPC_BYTES 0xf0 /* rmpc in mlx5_ifc.h */

struct soft_dev;
struct soft_engine;
struct soft_ctx; /* an open handle of a device: soft_ctl.h */
struct soft_pd;
struct soft_watch;
struct soft_msg;
struct soft_wire;
struct bb_roce_qp;
struct soft_shm;
struct soft_link_ops;
struct soft_netif;
void soft_wire_destroy(struct soft_wire *w);
/* PSNs of the next packet out and in, as QUERY_QP tells them. With the engine's lock. */
void soft_wire_psns(const struct soft_wire *w, uint32_t *out, uint32_t *in);

/* How an indirect key finds the memory that other keys name. */
enum soft_xlt_kind {
	SOFT_XLT_LIST,    /* pieces one behind the other (KLM) */
	SOFT_XLT_FIXED,   /* pieces of 2^log_entity bytes (KSM) */
	SOFT_XLT_STRIDED, /* blocks in turn, repeated */
};

/* One entry of an indirect key. */
struct soft_xlt {
	uint64_t addr;
	uint64_t len; /* LIST, STRIDED: bytes of a piece */
	uint32_t key;
	uint32_t stride;
};

/*
 * What an indirect key has beyond a direct one. Without UMR it is immutable. With UMR an
 * engine changes it in place: under soft_dev.umr_lock, and only when the gate is closed and
 * nobody is inside, so that an access that began under the old meaning has ended when the
 * UMR or the invalidation completes. A change that finds somebody inside leaves the gate open, and
 * is tried again: it has been made, or nothing of it.
 */
struct soft_indirect {
	uint32_t gate; /* users | SOFT_GATE_CLOSED; __atomic */
	bool umr, en_rinval;
	bool free;       /* nobody may use it until a UMR says so */
	uint8_t mw_type; /* 1, 2: made by ibv_alloc_mw(); 0: no window */
	bool lw, rr, rw, atomic;
	enum soft_xlt_kind kind;
	uint32_t qpn; /* only this QP's; BB_MKEY_ANY_QP: everybody's */
	uint64_t start, len;
	uint64_t round;  /* STRIDED: bytes of all blocks once */
	uint32_t repeat; /* STRIDED */
	uint32_t log_entity;
	struct soft_mkey *bound; /* a window's MR */
	uint32_t n, cap;         /* entries; a pattern's head takes one of cap */
	struct soft_xlt x[];
};
#define SOFT_GATE_CLOSED 0x80000000u

/*
 * What is special about access through a direct key. Such keys have len 0, so that the
 * check which plain keys pass fails for them at no cost, and soft_mem_refuse() finds out.
 */
enum soft_detour {
	SOFT_DETOUR_NONE,
	SOFT_DETOUR_PAGED,   /* ON_DEMAND: peers only, and any page may be missing */
	SOFT_DETOUR_RELAXED, /* RELAXED_ORDERING: what peers write comes in any order */
};

/*
 * Registered memory, or a key over other keys. Immutable once published in soft_dev.mkeys,
 * but for the low byte of the key of one that UMR may change, and the count of windows. An
 * indirect key has len 0 here, so that the check of direct keys never passes it.
 */
struct soft_mkey {
	uint32_t key; /* index << 8 | variant */
	uint32_t pdn;
	uint64_t start; /* address that names the first byte (the iova) */
	uint64_t len;
	uint8_t *base; /* where that byte is */
	bool lw, rr, rw, atomic;
	bool mw_bind;               /* windows may be bound to it */
	uint32_t windows;           /* that are; under soft_dev.umr_lock */
	struct soft_indirect *ind;  /* NULL: direct */
	const struct mlx5_obj *obj; /* of CREATE_MKEY */
	enum soft_detour detour;
	uint64_t detour_len; /* len of a key on a detour */
};

/* Where a dma-buf is mapped; start NULL: it is not. */
struct soft_map {
	uint8_t *start;
	size_t len;
	uint8_t *base; /* of what was asked for */
};

/* A umem: memory the device may read and write for rings and records. */
struct soft_umem {
	struct mlx5_umem pub;
	uint8_t *base;
	uint64_t len;
	uint64_t pgsz; /* page size chosen of the bitmap */
	bool writable;
	uint32_t refs; /* objects that use it */
	struct soft_ctx *ctx;
	struct soft_map map; /* of a dma-buf */
};

/* A register page, mapped by one or two struct mlx5_uar. */
struct soft_uar_page {
	uint32_t id;
	uint8_t *base;   /* SOFT_UAR_PAGE bytes */
	uint32_t allocs; /* mlx5_uar handles of this page */
	uint32_t refs;   /* QPs and CQs that name it */
	bool bf;
	struct soft_engine *engine;
	struct soft_ctx *ctx;
	uint8_t regs;             /* bit 0: register 0x800 is handed out, bit 1: 0xa00 */
	struct soft_watch *watch; /* the engine's */
	LIST_ENTRY(soft_uar_page) link;
};

/* soft_cq.flags: what makes a CQE take the long way. */
enum {
	SOFT_CQ_SHARED = 1 << 0, /* several engines write it, under its lock */
	SOFT_CQ_ARMED = 1 << 1,  /* an event is asked for */
	SOFT_CQ_ZIP = 1 << 2,    /* like CQEs are compressed */
	SOFT_CQ_DEFECT = 1 << 3, /* the device has a seeded defect */
};

/*
 * A CQ. Fields behind "engine" are the data path's, zeroed at creation. The engine of its
 * UAR page, through which it is armed, writes it without a lock; once QPs of another
 * engine are attached, SOFT_CQ_SHARED is set for good and writers take the CQ's lock.
 */
struct soft_cq {
	uint32_t cqn;
	struct soft_uar_page *uar;
	struct soft_umem *umem, *db_umem;
	uint8_t *buf;
	uint32_t *dbrec; /* word 0 consumer index, word 1 arm */
	uint32_t log_size;
	uint32_t eqn;
	uint32_t refs; /* QPs */
	struct mlx5_obj *obj;
	LIST_HEAD(, soft_comp_sub) subs; /* soft_channel.c; under soft_ctl.event_lock */
	uint16_t mod_count, mod_period;  /* CQEs, us; written under engine's and CQ's lock */
	/* engine */
	uint32_t pi;
	uint32_t ci_seen; /* consumer index as last read */
	uint32_t flags;   /* __atomic */
	uint32_t sol_pi;  /* pi behind the last solicited CQE or error */
	bool error;       /* overrun: nothing is written any more */
	bool arm_solicited;
	bool fired;         /* an arming was answered: that with number ... */
	uint8_t fired_sn;   /* ... */
	uint8_t arm_sn;     /* of the arming that waits */
	uint32_t arm_ci;    /* its consumer index, as pi counts */
	uint32_t arm_seen;  /* arm record as last taken, big endian */
	uint32_t scan_slot; /* place among the CQs of the UAR page */
	bool moderated;     /* on the engine's list */
	uint64_t due;       /* TSC at which a held back event goes out; 0: nothing to tell */
	TAILQ_ENTRY(soft_cq) mod;
	struct soft_zip *zip; /* of SOFT_CQ_ZIP */
	TAILQ_ENTRY(soft_cq) zips;
	rte_ticketlock_t lock;
};

/*
 * A receive queue that QPs share (RMP). It lives longer than its QPs, through which alone
 * engines reach it. Fields behind "lock" are under it.
 */
struct soft_rmp {
	uint32_t rmpn;
	uint32_t pdn;
	struct soft_dev *dev;
	struct soft_pd *pd;
	struct soft_umem *umem, *db_umem;
	uint8_t *buf;
	uint32_t *dbrec;               /* one word: WQEs posted */
	uint32_t log_size, log_stride; /* WQEs; bytes of a WQE */
	uint32_t head_bytes;           /* in front of a WQE's scatter list: 16 or 0 */
	bool list;                     /* linked by next_wqe_index; else cyclic */
	uint32_t refs;                 /* QPs */
	struct mlx5_obj *obj;
	uint8_t ctx[SOFT_RMPC_BYTES]; /* as created, for QUERY_RMP */
	rte_ticketlock_t lock;
	uint16_t head;  /* WQE to take next */
	uint16_t taken; /* WQEs taken since creation */
	uint32_t lwm;   /* 0: not armed */
	bool error;
};

enum soft_qp_wait {
	SOFT_WAIT_NONE,
	SOFT_WAIT_RNR,  /* until deadline, then try the WQE again */
	SOFT_WAIT_ACK,  /* no answer will come: until deadline, then retry */
	SOFT_WAIT_PEER, /* another engine is working on the request */
};

/* What is remembered of an atomic, for a duplicate of it. */
struct soft_replay {
	uint64_t old;
	uint32_t psn;
	bool valid;
};
#define SOFT_REPLAYS 4

/*
 * A QP. Attributes are written by the control path under the engine's lock, the state
 * last and with release. Engines of peers read qpn, dev, st, engine, state, peer_dev,
 * remote_qpn, mtu, pdn, the rights, log_rra_max, min_rnr_nak, gen and counter_set
 * without that lock: what can change while the QP is in RTR or RTS (rre, rwe, rae,
 * atomic_mode, min_rnr_nak) is stored with __atomic, and between a transition to RST and the next
 * one the control path calls soft_quiesce(), not holding an engine's lock.
 * A struct soft_dev that a QP may name as peer_dev is never freed.
 */
struct soft_qp {
	uint32_t qpn;
	uint32_t pdn;
	struct soft_pd *pd;
	uint32_t st; /* BB_PRM_QP_ST_* */
	uint32_t user_index;
	uint32_t state; /* enum bb_prm_qp_state; read by other engines: __atomic */
	struct soft_dev *dev;
	struct soft_uar_page *uar;
	struct soft_engine *engine;
	struct soft_cq *scq, *rcq;
	struct soft_umem *wq_umem, *db_umem;
	uint8_t *sq;
	uint32_t log_sq; /* blocks */
	uint8_t *rq;
	uint32_t log_rq, log_rq_stride; /* WQEs; bytes of a WQE (not less 4, as in the mailbox) */
	bool has_sq, has_rq;
	struct soft_rmp *rmp; /* receives come from it; no own RQ then */
	bool cs_req, cs_res;  /* data of up to 32 bytes goes into the CQE */
	uint32_t *dbrec;      /* word 0 receive, word 1 send */
	uint32_t counter_set;
	struct mlx5_obj *obj;

	/* From the transitions. */
	struct soft_dev *peer_dev; /* the device that owns the destination GID or LID */
	uint32_t remote_qpn;
	uint32_t q_key; /* of UD */
	uint32_t mtu;   /* bytes */
	uint32_t log_msg_max;
	bool rre, rwe, rae;
	uint32_t atomic_mode;
	uint32_t log_sra_max, log_rra_max;
	uint32_t retry_count, rnr_retry, min_rnr_nak, ack_timeout;

	/* Requester; the engine's, but sq_psn is given at RTR2RTS. */
	uint16_t sq_pi; /* from the doorbell record */
	uint16_t sq_ci; /* next WQE to execute */
	uint32_t sq_psn;
	uint32_t retries_left, rnr_left;
	uint32_t reads_in_burst;
	enum soft_qp_wait wait;
	uint64_t deadline; /* TSC */
	/* The key that the last UMR changed, 0 none: WQEs up to umr_end were there by then. */
	uint32_t umr_index;
	uint16_t umr_end;
	uint8_t comm_est; /* in RTR: COMM_EST was raised */
	uint8_t queued;   /* which of the engine's lists "run" is on */
	bool in_err;      /* on the engine's list of QPs in ERR, by "err" */
	bool has_failed;  /* on the list of those that failed in this turn, by "err" */
	bool bf_differs;  /* WQE bf_idx is in bf_copy, and not as the ring has it: soft_bf.h */
	bool early_cqe;   /* SOFT_DEFECT_EARLY_CQE */
	uint8_t cs_len;   /* bytes of cs_data that the next CQE carries; by who answers */
	uint16_t bf_idx;
	uint32_t gen;         /* new at attach and at 2RST: names this life of the number */
	struct soft_msg *msg; /* to another engine; in flight while SOFT_WAIT_PEER */
	TAILQ_ENTRY(soft_qp) run;
	TAILQ_ENTRY(soft_qp) err;
	TAILQ_ENTRY(soft_qp) all;
	uint64_t peer_until; /* of SOFT_WAIT_PEER: ack timeout, TSC; SOFT_NO_DEADLINE: none */
	uint32_t scan_slot;  /* place in the scan table of the UAR page */

	/* Responder: rq by the owning engine; epsn and replays by the one connected
	 * requester, epsn is given at INIT2RTR. */
	uint16_t rq_ci;
	uint16_t rmp_idx; /* WQE of the RMP that is taken and has no CQE yet, if rmp_holds */
	bool rmp_holds;
	uint32_t epsn;
	struct soft_replay replay[SOFT_REPLAYS];
	uint32_t replay_next;

	struct soft_wire *wire;  /* on a port: the RoCEv2 engine works for it */
	struct bb_roce_qp *roce; /* that engine's */

	/* The control path's: the context as accepted so far, for QUERY_QP. */
	uint8_t qpc[SOFT_QPC_BYTES];
	uint8_t cs_data[32]; /* see cs_len */

	/* Requests sent again since it was created, for soft_telemetry.c; the engine's. */
	uint64_t retries, rnr_retries;

	/* Copy of a WQE, see bf_differs; of the engine. Not written while wait is set. */
	uint8_t bf_copy[SOFT_BF_HALF];
};

#define SOFT_MAX_COUNTER_SETS 256

/* What a link does so that other processes may use the device's keys. Under soft_dev.lock. */
struct soft_share_ops {
	/* A key is in the table: publish it, if peers may use it. */
	void (*key_add)(struct soft_dev *dev, const struct soft_mkey *m);
	/* It is out of it. True: it was published; wait() then. */
	bool (*key_del)(struct soft_dev *dev, uint32_t id);
	/* Returns when no peer does anything any more by a key that is not published now. */
	void (*wait)(struct soft_dev *dev);
};

/*
 * A device: soft0, soft1, ...; opened more than once it is shared. The struct and
 * its tables live as long as the process, so that a QP may keep a pointer to its
 * peer's device: when that is closed, the tables are empty and messages are lost.
 */
struct soft_dev {
	char name[BB_DEV_NAME_MAX];
	uint32_t index;
	struct soft_opts opts;
	pthread_mutex_t lock;
	uint32_t contexts;
	struct soft_mkey **mkeys;  /* by index; published with release */
	rte_ticketlock_t umr_lock; /* keys that UMR changes; taken last, for a moment */
	struct soft_qp **qps;      /* by QP number */
	struct soft_cq **cqs;      /* by CQ number */
	struct soft_counters *counters[SOFT_MAX_COUNTER_SETS];
	struct bb_gid gids[SOFT_MAX_GIDS];
	bool gid_valid[SOFT_MAX_GIDS];
	uint8_t mac[6];
	uint32_t active_mtu; /* as in qpc.mtu: 128 << it bytes */
	uint16_t lid;
	bool port_down;
	bool dead;               /* __atomic; see soft_fault.c */
	uint64_t fault_requests; /* __atomic; counted only with the option fault */
	bool odp;                /* memory can be paged on demand */
	LIST_HEAD(, soft_uar_page) uars;
	struct soft_congestion cong;
	uint64_t lost[SOFT_LOSTS]; /* packets, by enum soft_lost; __atomic */
	struct soft_flap flap;
	uint64_t virtual_tsc;             /* the time, of virtual_time; __atomic */
	struct soft_capture *capture;     /* NULL: none */
	struct soft_engine *engine;       /* of progress=lcore or thread; inline: NULL */
	const struct soft_link_ops *link; /* where packets go; NULL: there are none */
	struct soft_shm *shm; /* of the option shm, as long as there is an engine; else NULL */
	const struct soft_share_ops *share; /* NULL: no other process uses its keys */
	struct soft_netif *netif;           /* of option port */
	struct soft_ctl *ctl;               /* control path's own: id allocators and the like */
};

/* ---- soft_log.c: one line per refusal, never per packet without limit */
extern int soft_logtype;
#define SOFT_LOG(level, ...) soft_log(RTE_LOG_##level, __VA_ARGS__)
void soft_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- Control path, called by the data path */

/*
 * Who has an address, of the devices there have been; NULL: nobody. Takes no lock. Whether it
 * is open, and with that kind of port, a QP of it tells.
 */
struct soft_dev *soft_dev_peek_gid(const uint8_t gid[16]);
struct soft_dev *soft_dev_peek_lid(uint16_t lid);

/* All zeros: nobody's, and what stands where there is none. */
static inline bool
soft_gid_empty(const uint8_t gid[16])
{
	static const uint8_t none[16];

	return memcmp(gid, none, sizeof(none)) == 0;
}

/* Find a key. NULL: no such key. The result is valid while the engine holds its lock. */
static inline const struct soft_mkey *
soft_mkey_find(const struct soft_dev *dev, uint32_t key)
{
	uint32_t idx = key >> 8;
	const struct soft_mkey *m;

	if (unlikely(idx >= 1u << SOFT_LOG_MAX_MKEY))
		return NULL;
	m = __atomic_load_n(&dev->mkeys[idx], __ATOMIC_ACQUIRE);
	return m != NULL && __atomic_load_n(&m->key, __ATOMIC_RELAXED) == key ? m : NULL;
}

static inline struct soft_qp *
soft_qp_find(const struct soft_dev *dev, uint32_t qpn)
{
	return unlikely(qpn >= 1u << SOFT_LOG_MAX_QP)
		       ? NULL
		       : __atomic_load_n(&dev->qps[qpn], __ATOMIC_ACQUIRE);
}

/*
 * Raise an event of @type for everyone subscribed to @obj (NULL: device-wide). Any
 * thread, an engine's too, also under its lock.
 */
void soft_event_raise(struct soft_dev *dev, struct mlx5_obj *obj, uint16_t type);

/* Pull or plug the cable: raises PORT_CHANGE. As soft_event_raise(). */
void soft_dev_port_set(struct soft_dev *dev, bool up);

/* Raise the completion event of a CQ. As soft_event_raise(), also under the CQ's lock. */
void soft_channel_fire(struct soft_dev *dev, struct soft_cq *cq);

/*
 * ---- Data path, called by the control path (soft_dev.lock held). None of it takes
 * memory from EAL's heap: mr_reg takes soft_dev.lock inside EAL's memory callbacks,
 * where the heap is locked.
 */

/* Make the engine of a new UAR page (inline), or of a device. NULL: no memory. */
struct soft_engine *soft_engine_create(struct soft_dev *dev);
/* No UAR, QP or CQ of it is left. */
void soft_engine_destroy(struct soft_engine *e);
/* Start the thread or lcore that runs @e; -EBUSY lcore in use, -EINVAL not an lcore. */
int soft_engine_start(struct soft_engine *e);
void soft_engine_stop(struct soft_engine *e);

/* A register page joins or leaves the pages an engine watches. */
int soft_engine_add_uar(struct soft_engine *e, struct soft_uar_page *uar);
void soft_engine_del_uar(struct soft_engine *e, struct soft_uar_page *uar);
/* The page of an engine that has one has @n owners now. */
void soft_engine_owners(struct soft_engine *e, uint32_t n);

/* Run @e once: what the owner's poll calls with inline progress. */
void soft_engine_progress(void *engine);

void soft_engine_lock(struct soft_engine *e);
void soft_engine_unlock(struct soft_engine *e);

/* ---- soft_fault.c: the device has died; a call that makes @what cannot go on: -EIO. */
bool soft_fault_dead(const struct soft_dev *dev);
int soft_fault_check(const struct soft_dev *dev, const char *what);

/* ---- soft_paged.c: is the kernel willing to copy from and to this process? */
bool soft_paged_works(void);

/*
 * Every reader has once been outside its lock, and engines have added what they served to the
 * counter sets. No engine's lock may be held.
 */
void soft_quiesce(void);
/* Who reads the tables under a lock of his own: an engine, a port. */
struct soft_reader {
	/* Returns when the reader has once been outside its lock. */
	void (*pass)(struct soft_reader *r);
	LIST_ENTRY(soft_reader) link;
};
void soft_reader_add(struct soft_reader *r);
void soft_reader_del(struct soft_reader *r);

/* Ticks of the device's clock per millisecond. */
uint32_t soft_clock_khz(void);

/* What a CQ needs that compresses. -ENOMEM. */
int soft_zip_init(struct soft_cq *cq);
void soft_zip_fini(struct soft_cq *cq);

/* Give a CQ the ring @buf, ended in the old one by a RESIZE CQE. Takes the engine's lock
 * itself. -ENOSPC: no place for that CQE; -EINVAL: too small for what is unread; -EIO: the CQ
 * is in error. */
int soft_cq_move(struct soft_cq *cq, uint8_t *buf, uint32_t log_size);

/* The CQ is complete and published: its arm record is watched from now on. -ENOMEM. */
int soft_cq_attach(struct soft_cq *cq);
/* It is unpublished and no QP is left: forget it. Before soft_quiesce(). Takes the engine's
 * lock itself. */
void soft_cq_detach(struct soft_cq *cq);
/* Hold its events back. Takes the engine's lock itself. */
void soft_cq_moderate(struct soft_cq *cq, uint16_t count, uint16_t period_us);

/* The QP is complete and published, in RST: its records are watched from now on. -ENOMEM. */
int soft_qp_attach(struct soft_qp *qp);
/* It is unpublished: forget it, timers and inboxes included. Before soft_quiesce(). Takes
 * the engine's lock itself. */
void soft_qp_detach(struct soft_qp *qp);
/* After RST2INIT, ..., 2RST, 2ERR changed qp->state, under the engine's lock: reset the
 * counters (2RST), let WQEs run (RTS), flush what is posted (ERR). */
void soft_qp_state_changed(struct soft_qp *qp, uint32_t old_state);

#endif
