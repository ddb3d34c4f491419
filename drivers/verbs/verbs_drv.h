/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the files of the verbs driver, which runs on any libibverbs device.
 *
 * The application posts sends by functions of this driver (bb_sq_ops.h). They post to the provider
 * at once (verbs_post.c), or collect the requests for the doorbell (verbs_chain.c). The application
 * posts receives into rings of mlx5 WQEs and polls a ring of mlx5 CQEs, as on every device. With
 * this driver no device reads these rings. Instead the doorbell of a receive queue posts the new
 * WQEs to the provider as work requests (verbs_recv.c). A poll first gets completions from the
 * provider's CQ and writes CQEs for them (verbs_poll.c). The wr_id of a provider's request
 * identifies its slot or WQE.
 */
#ifndef VERBS_DRV_H
#define VERBS_DRV_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_driver.h"
#include "bb_ibv.h"

#define VERBS_MAX_SGE    32u  /* maximum SGEs of a request; a post puts them on the stack */
#define VERBS_MAX_INLINE 512u /* maximum bytes of inline data */
#define VERBS_MAX_WR     32768u

/*
 * Returned instead of an errno if this driver has rejected a request and logged the reason. The
 * provider has not seen the request.
 */
#define VERBS_LOGGED (1 << 30)

/* A memory region or window. */
struct verbs_mr {
	/* must be the first member, because lib/core holds a pointer to it */
	struct bb_drv_mr base;
	enum bb_drv_mr_kind kind;
	/*
	 * 1 until the object is released, plus 1 for each of its binds that waits for
	 * ibv_post_send(); __atomic
	 */
	uint32_t refs;
	union {
		struct ibv_mr *mr;
		/* valid only for kind MW; NULL after the release of the window; __atomic */
		struct ibv_mw *mw;
	};
};

/*
 * QPs of a device by QP number, to find the QP of a receive from an SRQ. The pages of the table are
 * freed only when the device is closed.
 */
#define VERBS_QPN_BITS 12
struct verbs_qpns {
	/*
	 * Tables of user indexes, by the upper bits of the QP number; an index is 0 if no QP has
	 * the number.
	 */
	uint16_t *page[1u << (24 - VERBS_QPN_BITS)];
};

struct verbs_dev {
	struct bb_dev *dev;
	struct ibv_context *ctx;
	char ibname[BB_DEV_NAME_MAX]; /* device name of libibverbs, without a prefix */
	struct ibv_device_attr_ex attr;
	/*
	 * features that the provider lacks, which is logged once, or that are faulty: see
	 * verbs_caps.c
	 */
	bool no_cq_ex, no_qp_ex, no_td;
	bool rxe;  /* driver is the kernel's rxe: see verbs_caps.c */
	bool gone; /* the device was removed: see verbs_gone(); __atomic */
	bool siw;  /* driver is the kernel's siw: see verbs_caps.c */
	bool mlx5; /* provider is libmlx5: see verbs_qp.c */
	bool hns;  /* provider is libhns: see verbs_caps.c */
	/* CQ that occupies the low mmap offsets of siw: see verbs_caps.c */
	struct ibv_cq *siw_low;
	/*
	 * Placeholder for an MR, without a key. Providers may read the fields of their own struct
	 * after those of struct ibv_mr.
	 */
	union {
		struct ibv_mr mr;
		uint8_t space[256];
	} no_mr;
	struct verbs_qpns qpns;
};

/* Thread domain of one owner. For QPs in a thread domain the provider takes no locks. */
struct verbs_domain {
	LIST_ENTRY(verbs_domain) link;
	uint32_t owner;
	uint32_t refs;
	struct ibv_td *td;
	struct ibv_pd *pd; /* parent domain that contains the thread domain td */
};

struct verbs_qp;

struct verbs_pd {
	struct ibv_pd *pd;
	LIST_HEAD(, verbs_domain) domains;
	LIST_HEAD(, verbs_qp) ud; /* list of the UD QPs of the PD */
	/* list of destroyed address handles that outstanding requests still use */
	LIST_HEAD(, verbs_ah) destroyed_ahs;
};

/*
 * A destroyed address handle. It is freed when the requests that were outstanding at its
 * destruction have completed.
 */
struct verbs_ah {
	LIST_ENTRY(verbs_ah) link;
	struct ibv_ah *ah;
	uint32_t n;
	struct {
		struct verbs_qp *q;
		uint32_t seq;
	} wait[];
};

struct verbs_cq {
	/* Accessed by every poll. */
	struct ibv_cq_ex *ex; /* NULL if the CQ is polled by ibv_poll_cq() */
	struct ibv_cq *cq;
	struct bb_cq *bb;
	struct verbs_dev *d;
	uint64_t pi; /* number of CQEs written to the ring; ring.ci is the number of CQEs read */
	bool timestamps;
	bool poll_error_logged; /* a failed poll of the provider has been logged: see poll_failed()
				 */
	/* State of the CQ on its completion channel. */
	/* an event must be raised for the next completion; protected by the channel's lock */
	bool armed;
	bool solicited_only;
	bool raised; /* this driver raised an event; the CQ is in the channel's list */
	TAILQ_ENTRY(verbs_cq) link;
	uint32_t dbrec[2];
};

/* A request that the driver itself completes: a NOP, or a request that the provider rejected. */
struct verbs_own {
	/* seq of the last request before this one that was posted to the provider */
	uint32_t after_seq;
	uint32_t seq; /* sequence number of this request (bb_sq.seq) */
	uint16_t idx;
	/* error syndrome of the CQE; 0: success, or flush error if the QP is in ERR */
	uint8_t syndrome;
	bool report;
};

/* A QP. Followed in memory by tables of its slots and receive WQEs; see verbs_qp.c. */
struct verbs_qp {
	/* Accessed by every post and completion. */
	uint64_t wr_base; /* wr_id bits that identify the QP: VERBS_WR_USER() */
	/* wr_base with VERBS_WR_REPORT, for requests whose completion is reported */
	uint64_t wr_reported;
	/* mask that reduces a byte offset to the start of an entry of bb_sq.wqes */
	uint64_t slot_mask;
	/*
	 * Maximum number of outstanding requests of each enum bb_sq_class. 0 makes the next post
	 * call verbs_begin().
	 */
	uint32_t limits[3];
	/* NULL if requests are posted by ibv_post_send() */
	struct ibv_qp_ex *ex;
	struct ibv_qp *ib;
	struct verbs_cq *scq;
	bool failed; /* the QP is in ERR, so requests are flushed */
	/* the provider has rejected a request, so nothing more is posted to it */
	bool refused;
	/* all further requests until the next doorbell are flushed: see verbs_lacks() */
	bool ends;
	bool open; /* a batch is open: ibv_wr_start() was called, see verbs_post.c */
	/* ex is not NULL, but posts collect requests for ibv_post_send(): see verbs_hold() */
	bool held;
	/* seq of the newest completed request, among those that were posted to the provider */
	uint32_t done;
	/*
	 * index of the oldest entry of own[], requests that the driver itself completes: a ring of
	 * own_mask + 1 entries
	 */
	uint32_t own_head;
	uint32_t own_tail; /* index after the last entry of own[] whose doorbell has rung */
	uint32_t own_next; /* index after the newest entry of own[] */
	uint32_t own_mask;
	struct verbs_own *own;
	/* Chain of requests for the next doorbell: see verbs_chain.c. */
	uint8_t *slots;
	size_t slot_bytes;
	/* list of requests for the next ibv_post_send(); first is NULL if it is empty */
	struct ibv_send_wr *first, *last;
	uint32_t binds; /* window binds in this list */
	/* Fields that the data path does not access. */
	/*
	 * seq of the last request before the marker. When the marker completes, all requests up to
	 * this one have completed (mark() in verbs_sq.c).
	 */
	uint32_t marked;
	uint64_t send_ops; /* bit mask of the operations IBV_QP_EX_WITH_* that ex supports */
	struct verbs_domain *domain;
	void *ring; /* memory of the receive queue's ring */
	LIST_ENTRY(verbs_qp) link;
	struct bb_qp *bb;
	struct bb_sq_wqe wqes[]; /* entries of the send queue: bb_sq.wqes */
};

struct verbs_srq {
	struct ibv_srq *ib;
	uint16_t head; /* first WQE not yet posted to the provider */
	void *ring;
};

struct verbs_channel {
	struct ibv_comp_channel *ib;
	int evfd; /* descriptor that is readable while the list "raised" is not empty */
	pthread_mutex_t lock;
	TAILQ_HEAD(, verbs_cq) raised;
};

/*
 * wr_id of a request at the provider. It contains the queue, the WQE, and whether the driver
 * reports the completion to the application. Some requests are posted as signalled only because the
 * driver must know when they have completed. The low bits are the index of the receive's WQE, or
 * the offset of the send's entry in bb_sq.wqes.
 */
#define VERBS_WR_RECV   (UINT64_C(1) << 63)
#define VERBS_WR_SRQ    (UINT64_C(1) << 62)
#define VERBS_WR_REPORT (UINT64_C(1) << 61)
/* A marker: its completion shows that all earlier requests have completed (verbs_sq.c, mark()). */
#define VERBS_WR_MARK         (UINT64_C(1) << 60)
#define VERBS_WR_USER_SHIFT   24
#define VERBS_WR_USER(wr_id_) ((uint32_t)((wr_id_) >> VERBS_WR_USER_SHIFT) & 0xffffffu)

static inline struct verbs_dev *
verbs_dev_of(const struct bb_dev *dev)
{
	return dev->priv;
}

static inline struct verbs_qp *
verbs_qp_of(const struct bb_qp *qp)
{
	return qp->ctrl->priv;
}

/* Returns the QP of a send queue. Used on the data path. */
static inline struct verbs_qp *
verbs_qp_of_sq(const struct bb_sq *sq)
{
	return (struct verbs_qp *)(void *)((uint8_t *)sq->wqes - offsetof(struct verbs_qp, wqes));
}

/* Returns the entry of bb_sq.wqes that a wr_id names. Bits above the offset are ignored. */
static inline struct bb_sq_wqe *
verbs_slot_at(const struct bb_sq *sq, const struct verbs_qp *q, uint64_t wr_id)
{
	return (struct bb_sq_wqe *)(void *)((uint8_t *)sq->wqes + (wr_id & q->slot_mask));
}

/* ---- verbs_dev.c */
/*
 * Returns @err, the result of a libibverbs call that destroys an object. Returns 0 instead if the
 * device was removed: the kernel has then already freed the object and returns EIO. libibverbs does
 * not drop its own references in that case, so later calls on other objects return EBUSY.
 */
int verbs_gone(struct verbs_dev *d, int err);

/* ---- verbs_caps.c */
int verbs_caps(struct verbs_dev *d, struct bb_dev_attr *attr);

/* ---- verbs_port.c */
int verbs_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);
int verbs_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);
int verbs_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);
enum ibv_mtu verbs_mtu(uint32_t bytes);
/* Converts a path to an address vector of libibverbs. */
void verbs_path(const struct bb_dev *dev, const struct bb_path *path, struct ibv_ah_attr *attr);

/* ---- verbs_pd.c */
int verbs_pd_alloc(struct bb_pd *pd);
int verbs_pd_free(struct bb_pd *pd);
/*
 * Returns the PD in which a QP of @owner is created. *domain is the thread domain of that PD; NULL
 * if the PD has none.
 */
struct ibv_pd *verbs_domain_get(struct bb_pd *pd, uint32_t owner, struct verbs_domain **domain);
void verbs_domain_put(struct verbs_domain *domain);
int verbs_path_ready(struct bb_dev *dev, const struct bb_path *path);
int verbs_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);
void verbs_ah_release(struct bb_pd *pd, const struct bb_wqe_av *av);
/*
 * Removes @q from all destroyed address handles that wait for its requests. Call if @q has no
 * outstanding request any more: it was reset or is about to be destroyed.
 */
void verbs_ah_drop_waits(struct verbs_pd *p, const struct verbs_qp *q);
/* Returns the address handle that @av refers to. */
static inline struct ibv_ah *
verbs_ah_of(const struct bb_wqe_av *av)
{
	struct ibv_ah *ah;

	memcpy(&ah, av->rgid, sizeof(ah));
	return ah;
}

/* ---- verbs_dev.c: reads the clock that stamps completions, as bb_dev_clock() does */
int verbs_clock(struct bb_dev *dev, uint64_t *now);

/* ---- verbs_mr.c */
int verbs_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **mr);
int verbs_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *mr);
int verbs_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
		   void *addr, uint64_t len, uint32_t access);

/* Drops a reference. The last one frees the struct. */
void verbs_mr_put(struct verbs_mr *m);

/* ---- verbs_dm.c */
int verbs_dm_alloc(struct bb_dm_ctrl *dm);
int verbs_dm_free(struct bb_dm_ctrl *dm);
int verbs_dm_write(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len);
int verbs_dm_read(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len);

/* ---- verbs_cq.c, verbs_poll.c */
int verbs_cq_create(struct bb_cq *cq, const struct bb_cq_attr *attr);
int verbs_cq_destroy(struct bb_cq *cq);
int verbs_cq_resize(struct bb_cq *cq, uint32_t depth);
int verbs_cq_moderate(struct bb_cq *cq, uint16_t count, uint16_t period_us);
/* Functions that get completions from the provider: cq->progress and cq->poll. */
void verbs_poll(void *arg);
unsigned int verbs_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
/* Gets all pending completions from the provider. */
void verbs_drain(struct verbs_cq *c);
/*
 * Gets the pending completions of a QP that goes to ERR, is reset or is destroyed. After ERR a
 * recovery then finds the messages of an SRQ in the ring. After a reset lib/core drops the
 * completions from the ring and returns receives to an SRQ. For a reset or destroy, call before and
 * after the provider's call, because only some providers drop the completions from their CQ.
 */
void verbs_drain_qp(const struct bb_qp *qp);
/* Writes the CQE that marks the end of the old ring, as a card does for bb_cqring_move(). */
void verbs_ring_end(struct verbs_cq *c);
/*
 * Completes the requests in own[] whose earlier requests at the provider have all completed. The
 * driver itself completes the requests in own[].
 */
void verbs_own_done(struct verbs_qp *q);
/* Writes an error CQE for a receive that the provider rejected. */
void verbs_recv_refused(struct bb_qp *qp, uint16_t idx);

/* ---- verbs_channel.c */
int verbs_channel_create(struct bb_channel *ch);
int verbs_channel_destroy(struct bb_channel *ch);
int verbs_channel_get(struct bb_channel *ch, struct bb_cq **cq);
int verbs_cq_arm(struct bb_cq *cq, bool solicited_only);
/*
 * Raises an event for a CQE that this driver has written, if the CQ is armed. If the CQ is armed
 * for solicited completions only, raises the event only with @error.
 */
void verbs_raise(struct verbs_cq *c, bool error);
void verbs_channel_remove(struct verbs_channel *h, struct verbs_cq *c);

/* ---- verbs_event.c */
int verbs_event_get(struct bb_dev *dev, struct bb_event *event);

/* ---- verbs_qp.c, verbs_modify.c */
int verbs_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr);
int verbs_qp_destroy(struct bb_qp *qp);
int verbs_mcast_attach(struct bb_qp *qp, struct bb_mcast *m);
int verbs_mcast_detach(struct bb_qp *qp, struct bb_mcast *m);
int verbs_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		    enum bb_qp_state to);
int verbs_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr);
/*
 * Moves the QP to ERR, because the provider rejected a request, or because a send of a UC or UD QP
 * failed.
 */
void verbs_qp_stop(struct bb_qp *qp, const char *what, int err);
/*
 * Moves the QP to ERR if it takes receives from an SRQ. Call it before the QP is destroyed or
 * reset: the provider removes the completions of the QP, and the SRQ would lose the receives of
 * those that came after the driver's last look.
 */
void verbs_srq_stop(struct bb_qp *qp);
static inline enum ibv_qp_type
verbs_qp_type(enum bb_qp_type type)
{
	return type == BB_QPT_UC ? IBV_QPT_UC : type == BB_QPT_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

/* ---- verbs_sq.c */
/* Makes the next post call verbs_begin(), which decides whether the request is posted. */
void verbs_sq_close(struct verbs_qp *q);
/*
 * Resets the driver's state of all requests. Call it for a new QP, and after the provider has
 * dropped the requests of a QP.
 */
void verbs_sq_reset(struct verbs_qp *q);
/* Implements bb_sq.ring for every kind of request. */
void verbs_sq_ring(struct bb_sq *sq);

/* ---- verbs_post.c: posts by ibv_wr_*() */
extern const struct bb_sq_ops verbs_post_ops;
/* Implements bb_sq.ring if every request since the last doorbell was posted by ibv_wr_*(). */
void verbs_post_ring(struct bb_sq *sq);
/*
 * Calls ibv_wr_abort() if a batch of ibv_wr_*() requests was begun, for instance because the QP is
 * to be reset. Returns true if it called ibv_wr_abort().
 */
bool verbs_post_abort(struct verbs_qp *q);
/*
 * Completes the requests that verbs_post_abort() has dropped, with an error. Call it if the QP
 * could then not be destroyed.
 */
void verbs_post_lost(struct bb_sq *sq, int err);

/* ---- verbs_chain.c: posts by ibv_post_send() */
/* Allocates the slots that hold requests for ibv_post_send(). Returns 0 or -ENOMEM. */
int verbs_chain_init(struct verbs_qp *q, const struct bb_qp_init_attr *attr, uint32_t slots);
/* Posts by these functions collect requests for ibv_post_send() at the next doorbell. */
extern const struct bb_sq_ops verbs_chain_ops;
/* Drops the requests that posts have collected for ibv_post_send(), without posting them. */
void verbs_chain_drop(struct verbs_qp *q);

/* ---- verbs_recv.c: called when a queue is rung */
void verbs_rq_ring(struct bb_rq *rq);
void verbs_srq_ring(struct bb_srqring *ring);

/* ---- verbs_srq.c */
int verbs_srq_create(struct bb_srq *srq);
int verbs_srq_modify(struct bb_srq *srq, uint32_t limit);
int verbs_srq_query(struct bb_srq *srq, uint32_t *limit);
int verbs_srq_destroy(struct bb_srq *srq);

#endif
