/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software ConnectX: objects of the device, and the rules for their access.
 *
 * A program uses the device through the command interface (mlx5_cmd.h); the device knows none of
 * Bluebell's objects. The device's only inputs are mailboxes, umems, UAR pages and MRs. The device
 * rejects what a card rejects, with the same status or error CQE, and logs the reason. The mark [A]
 * in a comment means that the statement is an assumption about cards.
 *
 * Control path (folders dev and cmd, and the registration of memory in folder mem): any thread,
 * serialised by soft_dev.lock.
 *
 * Data path (folders engine, exec and cqe, and the access to memory in folder mem): an engine runs
 * the QPs of its UARs, under the engine's lock. Each such run is a turn. With inline progress each
 * UAR has an engine, which the UAR's owner runs. Otherwise one engine runs the whole device on its
 * own lcore or thread. With the options wire, port and shm a QP sends RoCEv2 packets; otherwise
 * it uses the loop port, which copies memory.
 *
 * Lookup tables (mkeys, QPs, CQs) are arrays of pointers that engines read without a lock. To free
 * an object, the control path first unpublishes it (stores NULL with release). It then calls
 * soft_quiesce(), which waits until every engine has been outside its lock once, and frees the
 * object. So the engine's lock is the read side of an RCU.
 *
 * Lock order: soft_dev.lock, then an engine's lock. An engine never takes soft_dev.lock and never a
 * second engine's lock. Work on another engine's QP or CQ goes through that engine's inbox.
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
#include "bb_rung.h"
#include "bb_wqe.h"
#include "mlx5_cmd.h"
#include "soft_counters.h"
#include "soft_key.h"
#include "soft_opts.h"
#include "soft_pf.h"

#define SOFT_LOG_MAX_QP     17
#define SOFT_FIRST_QPN      0x100 /* lower QPNs are reserved, as QP0 and QP1 */
#define SOFT_LOG_MAX_CQ     16
#define SOFT_LOG_MAX_MKEY   20
#define SOFT_LOG_MAX_CQ_SZ  22
#define SOFT_LOG_MAX_QP_SZ  15
#define SOFT_LOG_MAX_RMP    15
#define SOFT_LOG_MAX_SRQ_SZ 15
#define SOFT_ZIP_MAX        64 /* maximum number of CQEs in a compressed block */
#define SOFT_MAX_GIDS       16
#define SOFT_PKEY           0xffff /* the default partition, full member (IBTA vol. 1, 10.9.1.2) */
#define SOFT_UAR_PAGE       4096
#define SOFT_ARM_OFFSET     0x20  /* arm register of CQs (libmlx5: MLX5_CQ_DOORBELL) */
#define SOFT_BF_OFFSET      0x800 /* first doorbell register of a UAR page; the second is at 0xa00 */
#define SOFT_BF_HALF        256   /* bytes of one half of a register */
#define SOFT_LOG_MAX_KLM    7     /* log2 of the largest number of entries of an indirect key */
#define SOFT_INDIRECTION    4     /* largest depth of nested keys (assumption [A]) */

#define SOFT_MAX_DEVS   16   /* largest number of devices: soft0 to soft15 */
#define SOFT_QPC_BYTES  0xe8 /* bytes of the QP context: qpc in mlx5_ifc.h */
#define SOFT_RMPC_BYTES 0xf0 /* bytes of the RMP context: rmpc in mlx5_ifc.h */

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
/*
 * Returns in *out the PSN of the next packet to send, and in *in the PSN of the next packet
 * expected. For QUERY_QP. Call with the engine's lock held.
 */
void soft_wire_psns(const struct soft_wire *w, uint32_t *out, uint32_t *in);

/*
 * A umem: memory of the process that the device may read and write, for rings and doorbell records.
 * The pages that a mailbox lists for one queue are a umem with number 0, which no command can name.
 */
struct soft_umem {
	struct mlx5_umem pub;
	uint8_t *base;
	uint64_t len;
	uint64_t pgsz; /* page size in bytes, chosen from the caller's bitmap */
	bool writable;
	uint32_t refs; /* number of objects that use the umem */
	struct soft_ctx *ctx;
	struct soft_map map;       /* mapping of the dma-buf, if the umem is one */
	struct soft_window window; /* pages of a guest, if the umem is made of these */
};

/* A register page, mapped by one or two struct mlx5_uar. */
struct soft_uar_page {
	uint32_t id;
	uint8_t *base;   /* address of the page, SOFT_UAR_PAGE bytes */
	uint32_t allocs; /* number of mlx5_uar handles of this page */
	uint32_t refs;   /* number of QPs and CQs that use the page */
	bool bf;
	bool copies; /* the device executes BlueFlame copies; never with packets (soft_bf.h) */
	bool shared; /* in soft_host.uar_pages: a guest may store to it at any time */
	bool of_qp1; /* QP1 rings here, in any thread: see soft_engine_qp1() */
	struct soft_engine *engine;
	struct soft_ctx *ctx;
	uint8_t regs;             /* bit 0: register 0x800 is allocated, bit 1: 0xa00 */
	struct soft_watch *watch; /* entry in the engine's list of pages */
	LIST_ENTRY(soft_uar_page) link;
	struct bb_rung rung[2]; /* lists of the QPs that rang the registers 0x800 and 0xa00 */
};

#define SOFT_CS_MAX 64 /* maximum number of bytes of payload in a CQE */

/* Flags of soft_cq.flags. If any is set, writing a CQE takes the slow path. */
enum {
	SOFT_CQ_SHARED = 1 << 0, /* several engines write CQEs, so each takes the CQ's lock */
	SOFT_CQ_ARMED = 1 << 1,  /* the application has requested an event */
	SOFT_CQ_ZIP = 1 << 2,    /* similar CQEs are compressed */
	SOFT_CQ_DEFECT = 1 << 3, /* the device has a seeded defect: soft_defect.h */
	SOFT_CQ_BIG = 1 << 4,    /* CQEs of 128 bytes */
};

/*
 * A CQ. The fields from pi on belong to the data path and are zeroed at creation. A CQ is armed
 * through its UAR page, and the engine of that page writes its CQEs without a lock. When a QP of
 * another engine is attached, SOFT_CQ_SHARED is set for good. Every engine then takes the CQ's lock
 * to write a CQE.
 */
struct soft_cq {
	uint32_t cqn;
	struct soft_uar_page *uar;
	struct soft_umem *umem, *db_umem;
	uint8_t *buf;
	uint32_t *dbrec; /* word 0: consumer index; word 1: arm request */
	uint32_t log_size;
	uint32_t refs; /* number of QPs that use the CQ */
	struct mlx5_obj *obj;
	LIST_HEAD(, soft_comp_sub) subs; /* subscriptions of channels (soft_channel.c), under
					  * soft_ctl.event_lock */
	/*
	 * Moderation of completion events: number of CQEs, and period in us. Written under the
	 * engine's lock and the CQ's lock.
	 */
	uint16_t mod_count, mod_period;
	/* Fields of the data path, from here on. */
	uint32_t pi;         /* CQEs written since creation */
	uint32_t last_ci;    /* consumer index when the doorbell record was last read */
	uint32_t flags;      /* SOFT_CQ_*; __atomic */
	uint32_t sol_pi;     /* value of pi after the last CQE that is solicited or an error */
	bool ignore_overrun; /* CQEs may overwrite CQEs that are not yet consumed */
	bool error;          /* the CQ has overrun: the device writes no further CQE */
	bool arm_solicited;  /* the pending arm request is for solicited completions only */
	bool fired;          /* an event was raised for the arm request with number fired_sn */
	uint8_t fired_sn;    /* sequence number of the request that fired; valid if fired */
	uint8_t arm_sn;      /* sequence number of the pending arm request */
	uint32_t arm_ci;     /* consumer index of the arm request, extended to 32 bits */
	uint32_t last_arm;   /* arm request last handled, big endian */
	uint32_t scan_slot;  /* index among the CQs of the UAR page */
	bool moderated;      /* on the engine's list of moderated CQs */
	uint64_t due;        /* TSC at which a delayed event is due, 0 if none is pending */
	TAILQ_ENTRY(soft_cq) mod;
	struct soft_zip *zip; /* compression state; SOFT_CQ_ZIP only */
	TAILQ_ENTRY(soft_cq) zips;
	rte_ticketlock_t lock;
};

/*
 * A receive queue that QPs share (RMP). Engines reach it only through its QPs, which are destroyed
 * first. The fields after "lock" are protected by that lock.
 */
struct soft_rmp {
	uint32_t rmpn;
	uint32_t pdn;
	struct soft_dev *dev;
	struct soft_pd *pd;
	struct soft_umem *umem, *db_umem;
	uint8_t *buf;
	uint32_t *dbrec;               /* doorbell record, one word: number of WQEs posted */
	uint32_t log_size, log_stride; /* log2 of the number of WQEs; log2 of the bytes of a WQE */
	uint32_t head_bytes;           /* bytes before a WQE's scatter list: 16 or 0 */
	bool list;     /* true if WQEs are linked by next_wqe_index; false if the queue is cyclic */
	uint32_t refs; /* number of QPs that use the RMP */
	struct mlx5_obj *obj;
	uint8_t ctx[SOFT_RMPC_BYTES]; /* context at creation, for QUERY_RMP */
	rte_ticketlock_t lock;
	uint16_t head;  /* index of the next WQE to consume */
	uint16_t taken; /* number of WQEs consumed since creation */
	uint32_t lwm;   /* low watermark that raises an event, 0 if not armed */
	bool error;
};

enum soft_qp_wait {
	SOFT_WAIT_NONE,
	SOFT_WAIT_RNR,  /* waits for the RNR timer until deadline, then retries the WQE */
	SOFT_WAIT_ACK,  /* no response will arrive: waits until deadline, then retries the WQE */
	SOFT_WAIT_PEER, /* another engine is executing the request */
};

/* Stored result of an atomic. A repeated atomic gets this result and is not executed again. */
struct soft_replay {
	uint64_t old;
	uint32_t psn;
	bool valid;
};
#define SOFT_REPLAYS 4

/*
 * A QP. The control path writes attributes under the engine's lock, and the state last, with
 * release. Engines of peers read some fields without that lock: qpn, dev, st, engine, state,
 * peer_dev, remote_qpn, mtu, pdn, the rights, log_rra_max, min_rnr_nak, gen and counter_set. Fields
 * that can change while the QP is in RTR or RTS (rre, rwe, rae, atomic_mode, min_rnr_nak) are
 * stored with __atomic. After a transition to RST the control path calls soft_quiesce(), without an
 * engine's lock, before the next transition. A struct soft_dev that a QP may name as peer_dev is
 * never freed.
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
	uint32_t log_sq; /* log2 of the size of the send queue, in blocks of 64 bytes */
	uint8_t *rq;
	uint32_t log_rq, log_rq_stride; /* log2 of the number of WQEs, and of the bytes of a WQE
					 * (the mailbox counts units of 16 bytes) */
	bool has_sq, has_rq;
	struct soft_rmp *rmp; /* supplies the receives; NULL if the QP has a receive queue */
	/* 0, or the type of a QP of the kernel: 7 QP0, 8 QP1, 12 UMR; st then says UD */
	uint8_t special;
	uint32_t sqpn; /* source QPN of datagrams: 1 for a kernel's QP1, else qpn */
	/*
	 * largest payload that goes into the CQE of a request, and of a receive: 0, 32 or 64 bytes
	 */
	uint8_t cs_req, cs_res;
	uint32_t *dbrec; /* word 0: receive queue; word 1: send queue */
	uint32_t counter_set;
	struct mlx5_obj *obj;

	/* Fields that state transitions set. */
	struct soft_dev *peer_dev; /* the device that owns the destination GID or LID */
	uint32_t remote_qpn;
	uint32_t q_key; /* UD only */
	uint32_t mtu;   /* path MTU in bytes */
	uint32_t log_msg_max;
	bool rre, rwe, rae;
	uint32_t atomic_mode;
	uint32_t log_sra_max, log_rra_max;
	uint32_t retry_count, rnr_retry, min_rnr_nak, ack_timeout;

	/* Fields of the requester. They belong to the engine, but RTR2RTS sets sq_psn. */
	uint16_t sq_pi; /* producer index from the doorbell record */
	uint16_t sq_ci; /* index of the next WQE to execute */
	uint32_t sq_psn;
	uint32_t retries_left, rnr_left;
	uint32_t reads_in_burst;
	enum soft_qp_wait wait;
	uint64_t deadline; /* TSC at which the wait ends */
	/*
	 * umr_index: index of the key that the last UMR changed; 0 if no WQE has to wait for a UMR.
	 * umr_end: sq_pi when that UMR was executed.
	 */
	uint32_t umr_index;
	uint16_t umr_end;
	uint8_t comm_est; /* COMM_EST was raised in the current RTR state */
	uint8_t queued;   /* SOFT_Q_*: list of the engine that the QP is on, linked by "run" */
	bool in_err;      /* on the engine's list of QPs in ERR, linked by "err" */
	bool has_failed;  /* on the list of QPs that failed in this turn, linked by "err" */
	bool bf_differs;  /* WQE bf_idx is in bf_copy and differs from the ring: soft_bf.h */
	bool early_cqe;   /* state of the defect SOFT_DEFECT_EARLY_CQE */
	uint8_t cs_len;   /* bytes of cs_data for the next CQE; set by the engine that executes the
			   * request */
	uint16_t bf_idx;
	/* generation: changes at attach and at 2RST, to identify each use of the QP number */
	uint32_t gen;
	struct soft_msg *msg; /* request to another engine; in flight while SOFT_WAIT_PEER */
	TAILQ_ENTRY(soft_qp) run;
	TAILQ_ENTRY(soft_qp) err;
	TAILQ_ENTRY(soft_qp) all;
	uint64_t peer_until; /* TSC at which SOFT_WAIT_PEER times out, or SOFT_NO_DEADLINE */
	uint32_t scan_slot;  /* index among the doorbell records scanned for the UAR page */
	uint32_t hidden;     /* 1 + index in soft_watch.hidden, 0 if the QP is not in that array */

	/*
	 * Fields of the responder. The QP's own engine writes rq_ci. The engine of the connected
	 * requester writes epsn and replay; INIT2RTR also sets epsn.
	 */
	uint16_t rq_ci;
	/* valid if rmp_holds: index of the RMP's WQE that is consumed and has no CQE yet */
	uint16_t rmp_idx;
	bool rmp_holds;
	uint32_t epsn;
	struct soft_replay replay[SOFT_REPLAYS];
	uint32_t replay_next;
	struct soft_pf fault[2]; /* page faults as requester, as responder; soft_pf.c */

	struct soft_wire *wire;  /* state of the QP's packets; NULL if it sends none */
	struct bb_roce_qp *roce; /* QP of the RoCEv2 engine */

	/* Context that commands have set so far, for QUERY_QP; belongs to the control path. */
	uint8_t qpc[SOFT_QPC_BYTES];
	uint8_t cs_data[SOFT_CS_MAX]; /* data for the next CQE, cs_len bytes */

	/*
	 * Numbers of retransmitted requests since creation, for soft_telemetry.c; belong to the
	 * engine.
	 */
	uint64_t retries, rnr_retries;

	/*
	 * Copy of a WQE, valid if bf_differs; belongs to the engine. Not written while "wait" is
	 * set.
	 */
	uint8_t bf_copy[SOFT_BF_HALF];
};

struct soft_doorbell_ops;
#define SOFT_MAX_COUNTER_SETS 256

/* Functions of the shared-memory link, which publishes keys. Called under soft_dev.lock. */
struct soft_share_ops {
	/* Called when a key was added to the table: publishes it if peers may use it. */
	void (*key_add)(struct soft_dev *dev, const struct soft_mkey *m);
	/*
	 * Called when a key was removed from the table. Returns true if the key was published. The
	 * caller must then call wait().
	 */
	bool (*key_del)(struct soft_dev *dev, uint32_t id);
	/* Waits until no peer uses a key that was removed before the call. */
	void (*wait)(struct soft_dev *dev);
};

/*
 * A device: soft0, soft1, ... Contexts that open the same device share it. The struct and its
 * tables exist until the process ends. So a QP may hold a pointer to its peer's device. When the
 * peer's device is closed, its tables are empty and messages to it are lost.
 */
struct soft_dev {
	char name[BB_DEV_NAME_MAX];
	uint32_t index;
	struct soft_opts opts;
	pthread_mutex_t lock;
	uint32_t contexts;
	struct soft_mkey **mkeys;  /* keys by index; published with release */
	rte_ticketlock_t umr_lock; /* protects keys that UMR changes; last in the lock order,
				    * held briefly */
	struct soft_pf_queue *faults;
	struct soft_qp **qps; /* QPs by number */
	struct soft_qp *qp1;  /* receives packets for QPN 1; NULL if none; __atomic */
	struct soft_cq **cqs; /* CQs by number */
	struct soft_counters *counters[SOFT_MAX_COUNTER_SETS];
	struct bb_gid gids[SOFT_MAX_GIDS];
	bool gid_valid[SOFT_MAX_GIDS];
	uint8_t mac[6];
	uint32_t active_mtu; /* as in qpc.mtu: 128 << active_mtu bytes */
	uint16_t lid;
	bool port_down;
	bool dead;               /* the device has died, so commands fail: soft_fault.c; __atomic */
	uint64_t fault_requests; /* requests executed, counted only with option fault; __atomic */
	bool odp;                /* the kernel supports on-demand paging */
	LIST_HEAD(, soft_uar_page) uars;
	struct soft_congestion cong;
	uint64_t lost[SOFT_LOSTS]; /* dropped packets, by enum soft_lost; __atomic */
	struct soft_flap flap;
	uint64_t virtual_us;              /* current time with option virtual_time; __atomic */
	struct soft_capture *capture;     /* capture of packets, NULL if off */
	struct soft_engine *engine;       /* engine of progress=lcore or thread; NULL with inline */
	const struct soft_link_ops *link; /* link that sends packets, NULL if none */
	struct soft_shm *shm; /* set with option shm while there is an engine, else NULL */
	const struct soft_share_ops *share; /* publishes keys to processes, NULL if not shared */
	/*
	 * function given to soft_share_by(): finds the file that holds a range of memory; NULL if
	 * none; __atomic
	 */
	bool (*memory)(const uint8_t *addr, uint64_t len, struct soft_memory *m);
	/*
	 * functions given to soft_sleep_by(), which let the device's thread sleep until a doorbell;
	 * NULL if none; __atomic
	 */
	const struct soft_doorbell_ops *doorbells;
	struct soft_netif *netif; /* the ethdev of option port=, else NULL */
	struct soft_mcgs *mcgs;   /* multicast groups: soft_mcg.h; __atomic */
	struct soft_ctl *ctl;     /* state of the control path: id allocators and
				   * others */
};

/* ---- soft_log.c: one line per rejection, limited per second */
extern int soft_logtype;
#define SOFT_LOG(level, ...) soft_log(RTE_LOG_##level, __VA_ARGS__)
void soft_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- Control path, called by the data path */

/*
 * Returns the device with address @gid, even if it is closed; NULL if no device ever had the
 * address. Takes no lock. The caller must first find a QP of the device, and then check that the
 * device is open and has the same type of port.
 */
struct soft_dev *soft_dev_peek_gid(const uint8_t gid[16]);
struct soft_dev *soft_dev_peek_lid(uint16_t lid);

/* Returns true if the GID is all zeros: an unused table entry, which names no device. */
static inline bool
soft_gid_empty(const uint8_t gid[16])
{
	static const uint8_t none[16];

	return memcmp(gid, none, sizeof(none)) == 0;
}

/* Returns the entry of @key, NULL if none. Valid while the engine holds its lock. */
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
 * Returns the QP that receives packets for QPN @qpn, NULL if there is none. For QPN 1 it is the
 * kernel's QP of type QP1, which has a QPN other than 1.
 */
static inline struct soft_qp *
soft_qp_dest(const struct soft_dev *dev, uint32_t qpn)
{
	struct soft_qp *qp = soft_qp_find(dev, qpn);

	return unlikely(qp == NULL && qpn == 1) ? __atomic_load_n(&dev->qp1, __ATOMIC_ACQUIRE) : qp;
}

/*
 * Raises an event of @type for each subscriber to @obj (NULL: device-wide). Any thread, including
 * an engine's under its lock.
 */
void soft_event_raise(struct soft_dev *dev, struct mlx5_obj *obj, uint16_t type);

/* Takes the port down or up and raises PORT_CHANGE. Same thread rule as soft_event_raise(). */
void soft_dev_port_set(struct soft_dev *dev, bool up);

/*
 * Raises the completion event of a CQ. Same thread rule as soft_event_raise(); the caller may also
 * hold the CQ's lock.
 */
void soft_channel_fire(struct soft_dev *dev, struct soft_cq *cq);

/*
 * ---- Data path, called by the control path with soft_dev.lock held. These functions must not
 * allocate from EAL's heap. They would lock the heap after soft_dev.lock, but EAL's memory
 * callbacks lock soft_dev.lock (in mr_reg) after the heap.
 */

/*
 * Creates the engine of a new UAR page (inline progress) or of a device. Returns NULL if out of
 * memory.
 */
struct soft_engine *soft_engine_create(struct soft_dev *dev);
/* Destroys an engine that has no UAR, QP or CQ. */
void soft_engine_destroy(struct soft_engine *e);
/*
 * Starts the thread or lcore that runs @e. Returns 0, -EBUSY if the lcore is in use, or -EINVAL if
 * its number is not an lcore's.
 */
int soft_engine_start(struct soft_engine *e);
void soft_engine_stop(struct soft_engine *e);

/* Add a page to the register pages that an engine watches, and remove a page. */
int soft_engine_add_uar(struct soft_engine *e, struct soft_uar_page *uar);
void soft_engine_del_uar(struct soft_engine *e, struct soft_uar_page *uar);
/*
 * Tells an engine that serves one UAR page how many allocations share this page. With only one
 * allocation, the engine needs no lock for the page.
 */
void soft_engine_owners(struct soft_engine *e, uint32_t n);
/* Tells an engine that QP1, which any thread may ring, uses page @uar until the page is freed. */
void soft_engine_qp1(struct soft_uar_page *uar);

/* Runs @e once; called by the owner's poll with inline progress. */
void soft_engine_progress(void *engine);

void soft_engine_lock(struct soft_engine *e);
void soft_engine_unlock(struct soft_engine *e);

/*
 * ---- soft_fault.c: soft_fault_dead() and soft_fault_check() test whether the device has died. If
 * so, soft_fault_check() logs @what and returns -EIO.
 */
bool soft_fault_dead(const struct soft_dev *dev);
int soft_fault_check(const struct soft_dev *dev, const char *what);

/*
 * ---- soft_paged.c: returns true if the kernel can copy from and to this process, as on-demand
 * paging needs
 */
bool soft_paged_works(void);

/*
 * Waits until every reader (engine or port) has been outside its lock once. After that, each engine
 * has added its counts of served requests to the counter sets. Call without an engine's lock.
 */
void soft_quiesce(void);
/* A thread of execution that reads the tables under its own lock: an engine or a port. */
struct soft_reader {
	/*
	 * Waits until the reader has released its lock at least once. The reader reads the tables
	 * only under this lock.
	 */
	void (*pass)(struct soft_reader *r);
	LIST_ENTRY(soft_reader) link;
};
void soft_reader_add(struct soft_reader *r);
void soft_reader_del(struct soft_reader *r);
/* Forgets all readers in a child of fork(), which has no threads of its parent. */
void soft_readers_forget(void);
/* Forgets a device in a child of fork(). soft_dev_get() then makes another one. */
void soft_dev_forget(uint32_t index);
/* Initializes the lock of the log again, in a child of fork(). */
void soft_log_forget(void);

/* Allocates the state of a CQ that compresses CQEs. Returns 0 or -ENOMEM. */
int soft_zip_init(struct soft_cq *cq);
void soft_zip_fini(struct soft_cq *cq);

/*
 * Moves a CQ to the ring @buf and writes a RESIZE CQE as the last CQE of the old ring. Takes the
 * engine's lock itself. Returns 0; -ENOSPC if the old ring has no room for that CQE; -EINVAL if the
 * new ring is too small for the unread CQEs; -EIO if the CQ is in error.
 */
int soft_cq_move(struct soft_cq *cq, uint8_t *buf, uint32_t log_size);

/* Starts to watch the arm record of a complete, published CQ. Returns 0 or -ENOMEM. */
int soft_cq_attach(struct soft_cq *cq);
/*
 * Removes a CQ from its engine, after it was unpublished and its last QP was destroyed. Call before
 * soft_quiesce(). Takes the engine's lock itself.
 */
void soft_cq_detach(struct soft_cq *cq);
/* Sets the moderation of the CQ's events. Takes the engine's lock itself. */
void soft_cq_moderate(struct soft_cq *cq, uint16_t count, uint16_t period_us);

/*
 * Gives a complete QP in RST, which is not published yet, its state of a port, and starts to watch
 * its doorbell records. Returns 0 or -ENOMEM.
 */
int soft_qp_attach(struct soft_qp *qp);
/*
 * Removes an unpublished QP from its engine: lists, timers and inboxes. Call before soft_quiesce().
 * Takes the engine's lock itself.
 */
void soft_qp_detach(struct soft_qp *qp);
/*
 * Adapts the engine to the new qp->state, under the engine's lock: resets the indexes in RST and
 * the retries in RTS, flushes posted WQEs in ERR.
 */
void soft_qp_state_changed(struct soft_qp *qp, uint32_t old_state);

#endif
