/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the files of the verbs driver, which runs on any libibverbs device.
 *
 * The application posts into rings of mlx5 WQEs and polls a ring of mlx5 CQEs, as on every device.
 * So the code above the driver is the same for all devices. With this driver no device reads the
 * rings. Instead bb_sq_ring() and similar functions call this driver, which posts the new WQEs to
 * the provider as work requests (verbs_send.c, verbs_recv.c). A poll first gets completions from
 * the provider's CQ and writes CQEs for them (verbs_poll.c). The wr_id of a provider's request
 * identifies its WQE.
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

#define VERBS_MAX_SGE    32u  /* maximum SGEs of a request; a post has them on the stack */
#define VERBS_MAX_INLINE 512u /* maximum bytes of inline data */
#define VERBS_MAX_WR     32768u

/*
 * Returned instead of an errno if this driver has rejected a request and logged the reason. The
 * provider has not seen the request.
 */
#define VERBS_LOGGED (1 << 30)

/* A memory region or window. verbs_key_find() looks it up by its key. */
struct verbs_mr {
	/* must be the first member, because lib/core holds a pointer to it */
	struct bb_drv_mr base;
	enum bb_drv_mr_kind kind;
	union {
		struct ibv_mr *mr;
		struct ibv_mw *mw; /* valid only for kind MW */
	};
	LIST_ENTRY(verbs_mr) link;
};
LIST_HEAD(verbs_mr_list, verbs_mr);

#define VERBS_KEY_BUCKETS 256u

/*
 * QPs of a device by QP number, to find the QP of a receive from an SRQ. The pages of the table are
 * freed only when the device is closed.
 */
#define VERBS_QPN_BITS 12
struct verbs_qpns {
	/* user index of the QP with this number; 0 if none */
	uint16_t *page[1u << (24 - VERBS_QPN_BITS)];
};

struct verbs_dev {
	struct bb_dev *dev;
	struct ibv_context *ctx;
	char ibname[BB_DEV_NAME_MAX]; /* device name of libibverbs, without a prefix */
	struct ibv_device_attr_ex attr;
	/* features that the provider lacks; the lack of each is logged once */
	bool no_cq_ex, no_qp_ex, no_td;
	bool rxe;  /* driver is the kernel's rxe: see verbs_caps.c */
	bool gone; /* the device was removed: see verbs_gone(); __atomic */
	bool siw;  /* driver is the kernel's siw: see verbs_caps.c */
	bool mlx5; /* provider is libmlx5: see verbs_qp.c */
	bool hns;  /* provider is libhns: see verbs_caps.c */
	/* CQ that occupies the low mmap offsets of siw: see verbs_caps.c */
	struct ibv_cq *siw_low;
	struct ibv_mr no_mr; /* placeholder for an MR, without a key */
	/* protects the keys, because EAL's callbacks register memory while owners bind windows */
	pthread_mutex_t keys_lock;
	struct verbs_mr_list keys[VERBS_KEY_BUCKETS];
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
	struct ibv_cq_ex *ex; /* NULL if the provider has no extended CQs, but only ibv_poll_cq() */
	struct ibv_cq *cq;
	struct bb_cq *bb;
	struct verbs_dev *d;
	uint64_t pi; /* number of CQEs written to the ring; ring.ci is the number of CQEs read */
	bool timestamps;
	/* poll one completion at a time, because ibv_next_poll() must not be used */
	bool one_by_one;
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
	uint16_t idx;
	/* error syndrome of the CQE; 0: success, or flush error if the QP is in ERR */
	uint8_t syndrome;
	bool report;
};

/* A QP. Followed in memory by tables of its WQEs; see verbs_qp.c. */
struct verbs_qp {
	/* Accessed by every post and completion. */
	/* NULL if the provider has no extended post, but only ibv_post_send() */
	struct ibv_qp_ex *ex;
	struct ibv_qp *ib;
	struct verbs_cq *scq;
	uint64_t wr_base; /* wr_id bits that identify the QP: VERBS_WR_USER() */
	/* wr_base with VERBS_WR_REPORT, for requests whose completion is reported */
	uint64_t wr_reported;
	/* first block that verbs_sq_give() has not yet posted to the provider */
	uint16_t head;
	/* maximum SGEs of extended post; requests with more SGEs are posted by ibv_post_send() */
	uint16_t ex_pieces;
	bool failed; /* the QP is in ERR, so requests are flushed */
	/* the provider has rejected a request, so nothing more is posted to it */
	bool refused;
	bool open;       /* a batch is open: ibv_wr_start() was called, see verbs_post.c */
	uint32_t opened; /* low half of rung_seq when the batch was opened */
	/* seq of the request last posted to the provider; valid only if not open */
	uint32_t given;
	uint32_t done;     /* seq of the last request posted to the provider that has completed */
	uint32_t own_head; /* index of the oldest entry of own[], a ring of own_mask + 1 entries */
	uint32_t own_tail;
	uint32_t own_mask;
	struct verbs_own *own;
	/* Fields that the data path does not access. */
	uint64_t ops; /* bit mask of the operations IBV_QP_EX_WITH_* that ex supports */
	struct verbs_domain *domain;
	void *ring; /* memory of the rings: first the receive queue, then the send queue */
	LIST_ENTRY(verbs_qp) link;
	struct bb_qp *bb;
};

struct verbs_srq {
	struct ibv_srq *ib;
	uint16_t head; /* first WQE not yet posted to the provider */
	void *ring;
};

struct verbs_channel {
	struct ibv_comp_channel *ib;
	int evfd; /* descriptor that is readable while the list raised is not empty */
	pthread_mutex_t lock;
	TAILQ_HEAD(, verbs_cq) raised;
};

/*
 * wr_id of a request at the provider. It contains the queue, the WQE, and whether the driver
 * reports the completion to the application. Some requests are posted as signalled only because the
 * driver must know when they have completed.
 */
#define VERBS_WR_RECV         (UINT64_C(1) << 63)
#define VERBS_WR_SRQ          (UINT64_C(1) << 62)
#define VERBS_WR_REPORT       (UINT64_C(1) << 61)
#define VERBS_WR_MARK         (UINT64_C(1) << 60) /* marker: mark() in verbs_send.c */
#define VERBS_WR_USER(wr_id_) ((uint32_t)((wr_id_) >> 16) & 0xffffffu)

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
/* Returns the MR or window that has this key now; NULL if there is none. */
struct verbs_mr *verbs_key_find(struct verbs_dev *d, uint32_t key, bool window);

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
/* Get completions from the provider. They implement cq->progress and cq->poll. */
void verbs_poll(void *arg);
unsigned int verbs_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
/* Gets all pending completions from the provider. */
void verbs_drain(struct verbs_cq *c);
/*
 * Gets the pending completions of a QP that is reset or destroyed. lib/core then drops the
 * completions from the ring and returns receives to an SRQ. Call before and after the provider's
 * call, because only some providers drop the completions from their CQ.
 */
void verbs_drain_qp(const struct bb_qp *qp);
/* Writes the CQE that marks the end of the old ring, as a card does for bb_cqring_move(). */
void verbs_ring_end(struct verbs_cq *c);
/* Completes the entries of own[] before which no request of the provider is outstanding. */
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
 * Moves the QP to ERR, because the provider rejected a request or a send of an unreliable QP
 * failed.
 */
void verbs_qp_stop(struct bb_qp *qp, const char *what, int err);
static inline enum ibv_qp_type
verbs_qp_type(enum bb_qp_type type)
{
	return type == BB_QPT_UC ? IBV_QPT_UC : type == BB_QPT_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

/* ---- verbs_post.c */
/* Implements bb_sq.post for a QP with extended post and a thread domain. */
int verbs_post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	       uint64_t raddr, uint64_t keys);
/*
 * Implements bb_sq.write for a QP with extended post and a thread domain. bb_sq.piece has the
 * provider's function that sets the SGE.
 */
void verbs_write(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id, uint64_t where);
/*
 * Implements bb_sq.ring for a QP with extended post and a thread domain: passes the posted requests
 * to the provider.
 */
void verbs_sq_ring(struct bb_sq *sq);
/*
 * Aborts the posted requests that were not rung, because the QP is to be destroyed. Returns true if
 * a batch was open.
 */
bool verbs_post_abort(struct verbs_qp *q);
/*
 * Completes the requests of verbs_post_abort() with an error, because the QP could not be
 * destroyed.
 */
void verbs_post_lost(struct bb_sq *sq, int err);

/* ---- verbs_send.c, verbs_recv.c: called when a queue is rung */
/*
 * Implements bb_sq.ring for WQEs. Requests that verbs_post() posted without a WQE may precede the
 * WQEs.
 */
void verbs_sq_give(struct bb_sq *sq);
/*
 * Handles an error @err of ibv_wr_complete(): the provider accepted none of the requests that were
 * posted without a WQE.
 */
void verbs_sq_refused(struct bb_sq *sq, int err);
void verbs_rq_ring(struct bb_rq *rq);
void verbs_srq_ring(struct bb_srqring *ring);

/* ---- verbs_srq.c */
int verbs_srq_create(struct bb_srq *srq);
int verbs_srq_modify(struct bb_srq *srq, uint32_t limit);
int verbs_srq_query(struct bb_srq *srq, uint32_t *limit);
int verbs_srq_destroy(struct bb_srq *srq);

#endif
