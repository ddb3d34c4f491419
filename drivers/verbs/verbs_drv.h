/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared declarations of the verbs driver, for any libibverbs device.
 *
 * The application posts into rings of mlx5 WQEs and polls a ring of mlx5 CQEs, as on every device.
 * So the code above the driver is the same. But no device reads those rings. bb_sq_ring() and
 * similar functions call this driver, which posts the new WQEs to the provider as work requests
 * (verbs_send.c, verbs_recv.c). A poll first takes completions from the provider's CQ and writes
 * CQEs for them (verbs_poll.c). The wr_id of a provider's request identifies its WQE.
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

#define VERBS_MAX_SGE    32u  /* pieces of a request; a post keeps them on the stack */
#define VERBS_MAX_INLINE 512u /* bytes of inline data */
#define VERBS_MAX_WR     32768u

/*
 * Returned instead of an errno if this driver, not the provider, has rejected a request and logged
 * why.
 */
#define VERBS_SAID (1 << 30)

/* Object that a key names; verbs_key_find() finds it. */
struct verbs_mr {
	struct bb_drv_mr base; /* first member, because the core holds a pointer to it */
	enum bb_drv_mr_kind kind;
	union {
		struct ibv_mr *mr;
		struct ibv_mw *mw; /* kind MW only */
	};
	LIST_ENTRY(verbs_mr) link;
};
LIST_HEAD(verbs_mr_list, verbs_mr);

#define VERBS_KEY_BUCKETS 256u

/*
 * QPs of a device by number, for receives of SRQs. A page is freed only when the device is closed.
 */
#define VERBS_QPN_BITS 12
struct verbs_qpns {
	uint16_t *page[1u << (24 - VERBS_QPN_BITS)]; /* user indices, 0 for none */
};

struct verbs_dev {
	struct bb_dev *dev;
	struct ibv_context *ctx;
	char ibname[BB_DEV_NAME_MAX]; /* name at libibverbs, without a prefix */
	struct ibv_device_attr_ex attr;
	bool no_cq_ex, no_qp_ex, no_td; /* features that the provider lacks; each is logged once */
	bool rxe;                       /* device of the kernel's rxe: see verbs_caps.c */
	bool gone;                      /* the device was removed: see verbs_gone(); __atomic */
	bool siw;                       /* device of the kernel's siw */
	bool mlx5;                      /* libmlx5 is the provider: see verbs_qp.c */
	bool hns;                       /* libhns is the provider: see verbs_caps.c */
	struct ibv_cq *siw_low;         /* occupies siw's low offsets: see verbs_caps.c */
	struct ibv_mr no_mr;            /* placeholder MR without a key */
	pthread_mutex_t keys_lock;      /* EAL's callbacks register and owners bind at the same
					 * time */
	struct verbs_mr_list keys[VERBS_KEY_BUCKETS];
	struct verbs_qpns qpns;
};

/* Thread domain of one owner: in it the provider takes no locks. */
struct verbs_domain {
	LIST_ENTRY(verbs_domain) link;
	uint32_t owner;
	uint32_t refs;
	struct ibv_td *td;
	struct ibv_pd *pd; /* parent domain that contains td */
};

struct verbs_qp;

struct verbs_pd {
	struct ibv_pd *pd;
	LIST_HEAD(, verbs_domain) domains;
	LIST_HEAD(, verbs_qp) ud;      /* UD QPs of the PD */
	LIST_HEAD(, verbs_ah) leaving; /* destroyed handles that outstanding requests still use */
};

/* A destroyed handle, freed when the requests outstanding at its destruction have completed. */
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
	struct ibv_cq_ex *ex; /* NULL if the provider has only ibv_poll_cq() */
	struct ibv_cq *cq;
	struct bb_cq *bb;
	struct verbs_dev *d;
	uint64_t pi; /* CQEs written; ring.ci counts the CQEs read */
	bool timestamps;
	bool one_by_one; /* ibv_next_poll() must not be used */
	bool said;       /* a failed poll of the provider was logged: see poll_failed() */
	/* State on its channel. */
	bool armed; /* one event must be raised; under the channel's lock */
	bool solicited_only;
	bool raised; /* this driver raised the event; the CQ is in the channel's list */
	TAILQ_ENTRY(verbs_cq) link;
	uint32_t dbrec[2];
};

/* A WQE that the provider does not complete: a NOP, or a request that the provider rejected. */
struct verbs_own {
	uint32_t behind; /* seq of the last earlier request that was posted to the provider */
	uint16_t idx;
	uint8_t syndrome; /* 0: success or flush error, by the QP's state */
	bool report;
};

/* Followed by WQE tables; see verbs_qp.c. */
struct verbs_qp {
	/* Accessed by every post and completion. */
	struct ibv_qp_ex *ex; /* NULL if the provider has only ibv_post_send() */
	struct ibv_qp *ib;
	struct verbs_cq *scq;
	uint64_t wr_base;   /* VERBS_WR_USER() part of wr_ids */
	uint64_t wr_told;   /* wr_base with VERBS_WR_REPORT */
	uint16_t head;      /* first block not yet given to the provider by verbs_sq_give() */
	uint16_t ex_pieces; /* requests with more pieces are posted by ibv_post_send() */
	bool failed;        /* the QP is in ERR and flushes */
	bool refused;       /* the provider rejected a request; nothing more is posted to it */
	bool open;          /* ibv_wr_start() was called: see verbs_post.c */
	uint32_t opened;    /* low half of rung_seq at the ibv_wr_start() */
	uint32_t given;     /* seq of the last request posted to the provider; not valid while
			     * open */
	uint32_t done;      /* seq of the last posted request that has completed */
	uint32_t own_head;  /* index into own[], a ring of own_mask + 1 entries */
	uint32_t own_tail;
	uint32_t own_mask;
	struct verbs_own *own;
	/* Not touched on the data path. */
	uint64_t ops; /* IBV_QP_EX_WITH_* operations of ex */
	struct verbs_domain *domain;
	void *ring; /* memory of the rings: receive queue, then send queue */
	LIST_ENTRY(verbs_qp) link;
	struct bb_qp *bb;
};

struct verbs_srq {
	struct ibv_srq *ib;
	uint16_t head; /* next WQE to post to the provider */
	void *ring;
};

struct verbs_channel {
	struct ibv_comp_channel *ib;
	int evfd; /* readable while the list raised is not empty */
	pthread_mutex_t lock;
	TAILQ_HEAD(, verbs_cq) raised;
};

/*
 * wr_id of a request at the provider: its queue, its WQE, and whether its completion is reported.
 * Other signalled requests only show the driver when a request has completed.
 */
#define VERBS_WR_RECV         (UINT64_C(1) << 63)
#define VERBS_WR_SRQ          (UINT64_C(1) << 62)
#define VERBS_WR_REPORT       (UINT64_C(1) << 61)
#define VERBS_WR_MARK         (UINT64_C(1) << 60) /* marker request without a WQE */
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
 * Returns the result of a libibverbs call that destroys an object, or 0 if the device was removed.
 * In that case the kernel has already freed the object and returns EIO. libibverbs keeps its own
 * references, which make later calls on other objects return EBUSY.
 */
int verbs_gone(struct verbs_dev *d, int err);

/* ---- verbs_caps.c */
int verbs_caps(struct verbs_dev *d, struct bb_dev_attr *attr);

/* ---- verbs_port.c */
int verbs_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);
int verbs_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);
int verbs_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);
enum ibv_mtu verbs_mtu(uint32_t bytes);
/* Converts a path to the address vector of libibverbs. */
void verbs_path(const struct bb_dev *dev, const struct bb_path *path, struct ibv_ah_attr *attr);

/* ---- verbs_pd.c */
int verbs_pd_alloc(struct bb_pd *pd);
int verbs_pd_free(struct bb_pd *pd);
/* Returns the PD in which a QP of @owner is created. *domain is NULL if it is the plain PD. */
struct ibv_pd *verbs_domain_get(struct bb_pd *pd, uint32_t owner, struct verbs_domain **domain);
void verbs_domain_put(struct verbs_domain *domain);
int verbs_path_ready(struct bb_dev *dev, const struct bb_path *path);
int verbs_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);
void verbs_ah_release(struct bb_pd *pd, const struct bb_wqe_av *av);
/* Records that @q has no outstanding request any more: it was reset or is about to be destroyed. */
void verbs_ah_forget(struct verbs_pd *p, const struct verbs_qp *q);
/* Returns the handle stored in an address vector. */
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
/* Returns the region or window that has this key now, NULL if none. */
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
/* Take completions from the provider: for cq->progress and for cq->poll. */
void verbs_poll(void *arg);
unsigned int verbs_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
/* Takes all pending completions. */
void verbs_drain(struct verbs_cq *c);
/*
 * Takes the pending completions of a QP that is reset or destroyed. The core then drops them from
 * the ring and returns receives to an SRQ. Called both before and after the provider's call: some
 * providers drop the completions from their CQ, others do not.
 */
void verbs_drain_qp(const struct bb_qp *qp);
/* Writes the CQE that ends the ring, as a card does for bb_cqring_move(). */
void verbs_ring_end(struct verbs_cq *c);
/* Completes the entries of own[] whose earlier requests have completed. */
void verbs_own_done(struct verbs_qp *q);
/* Writes the CQE of a receive that the provider rejected. */
void verbs_recv_refused(struct bb_qp *qp, uint16_t idx);

/* ---- verbs_channel.c */
int verbs_channel_create(struct bb_channel *ch);
int verbs_channel_destroy(struct bb_channel *ch);
int verbs_channel_get(struct bb_channel *ch, struct bb_cq **cq);
int verbs_cq_arm(struct bb_cq *cq, bool solicited_only);
/* Raises an event for a CQE that the driver itself has written. */
void verbs_raise(struct verbs_cq *c, bool error);
void verbs_channel_forget(struct verbs_channel *h, struct verbs_cq *c);

/* ---- verbs_event.c */
int verbs_event_get(struct bb_dev *dev, struct bb_event *event);

/* ---- verbs_qp.c, verbs_modify.c */
int verbs_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr);
int verbs_qp_destroy(struct bb_qp *qp);
int verbs_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		    enum bb_qp_state to);
int verbs_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr);
/* Moves the QP to ERR: the provider rejected a request, or a send of an unreliable QP failed. */
void verbs_qp_stop(struct bb_qp *qp, const char *what, int err);
static inline enum ibv_qp_type
verbs_qp_type(enum bb_qp_type type)
{
	return type == BB_QPT_UC ? IBV_QPT_UC : type == BB_QPT_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

/* ---- verbs_post.c */
/* bb_sq.post of a QP that has extended post and a thread domain. */
int verbs_post(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
	       uint64_t raddr, uint64_t keys);
/* bb_sq.write of such a QP. The provider's function is in bb_sq.piece. */
void verbs_write(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id, uint64_t where);
/* bb_sq.ring of such a QP: passes the posted requests to the provider. */
void verbs_sq_ring(struct bb_sq *sq);
/*
 * Aborts the posts that were not rung, because the QP is to be destroyed. Returns true if there was
 * an open batch.
 */
bool verbs_post_abort(struct verbs_qp *q);
/* The QP could not be destroyed: completes the aborted requests with an error. */
void verbs_post_lost(struct bb_sq *sq, int err);

/* ---- verbs_send.c, verbs_recv.c: called when a queue is rung */
/* bb_sq.ring for WQEs. Requests posted without a WQE may precede them. */
void verbs_sq_give(struct bb_sq *sq);
/*
 * Handles ibv_wr_complete() returning @err: the provider took none of the requests posted without a
 * WQE.
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
