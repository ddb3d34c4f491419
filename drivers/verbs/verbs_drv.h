/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver: what its files share.
 *
 * Any libibverbs device. The application posts into rings of mlx5 WQEs and polls a ring of mlx5
 * CQEs here as on every device, so that nothing above the driver differs; but no device reads
 * those rings. bb_sq_ring() and its like call the driver, which gives the new WQEs to the
 * provider as work requests (verbs_send.c, verbs_recv.c), and a poll first takes completions of
 * the provider's CQ and writes CQEs for them (verbs_poll.c). A request's wr_id there says which
 * WQE it was.
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

#define VERBS_MAX_SGE    32u  /* of a request: on the stack of a post */
#define VERBS_MAX_INLINE 512u /* bytes */
#define VERBS_MAX_WR     32768u

/* In place of an errno: this driver has refused it, not the provider, and has said why. */
#define VERBS_SAID (1 << 30)

/* A key's object, found by the key; see verbs_key_find(). */
struct verbs_mr {
	struct bb_drv_mr base; /* first: core holds a pointer to it */
	enum bb_drv_mr_kind kind;
	union {
		struct ibv_mr *mr;
		struct ibv_mw *mw; /* of MW */
	};
	LIST_ENTRY(verbs_mr) link;
};
LIST_HEAD(verbs_mr_list, verbs_mr);

#define VERBS_KEY_BUCKETS 256u

/* QPs of a device by number, for receives of SRQs: a page is never given back while it is open. */
#define VERBS_QPN_BITS 12
struct verbs_qpns {
	uint16_t *page[1u << (24 - VERBS_QPN_BITS)]; /* user indices, 0: none */
};

struct verbs_dev {
	struct bb_dev *dev;
	struct ibv_context *ctx;
	char ibname[BB_DEV_NAME_MAX]; /* as libibverbs has it, without a prefix */
	struct ibv_device_attr_ex attr;
	bool no_cq_ex, no_qp_ex, no_td; /* the provider has not: said once */
	bool rxe;                       /* the kernel's rxe: see verbs_caps.c */
	bool gone;                      /* see verbs_gone(); __atomic */
	bool siw;                       /* the kernel's siw */
	bool mlx5;                      /* libmlx5 is the provider: see verbs_qp.c */
	bool hns;                       /* libhns is the provider: see verbs_caps.c */
	struct ibv_cq *siw_low;         /* keeps siw's low addresses: see verbs_caps.c */
	struct ibv_mr no_mr;            /* without a key */
	pthread_mutex_t keys_lock;      /* EAL's callbacks register, owners bind */
	struct verbs_mr_list keys[VERBS_KEY_BUCKETS];
	struct verbs_qpns qpns;
};

/* A thread domain, which is one owner's: the provider then takes no locks. */
struct verbs_domain {
	LIST_ENTRY(verbs_domain) link;
	uint32_t owner;
	uint32_t refs;
	struct ibv_td *td;
	struct ibv_pd *pd; /* the parent domain of it */
};

struct verbs_qp;

struct verbs_pd {
	struct ibv_pd *pd;
	LIST_HEAD(, verbs_domain) domains;
	LIST_HEAD(, verbs_qp) ud;      /* its UD QPs */
	LIST_HEAD(, verbs_ah) leaving; /* handles that requests under way still need */
};

/* A handle that is to go when the requests have completed that were there. */
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
	/* Every poll. */
	struct ibv_cq_ex *ex; /* NULL: ibv_poll_cq() is what there is */
	struct ibv_cq *cq;
	struct bb_cq *bb;
	struct verbs_dev *d;
	uint64_t pi; /* CQEs written, as ring.ci counts those read */
	bool timestamps;
	bool one_by_one; /* ibv_next_poll() is not to be used */
	bool said;       /* a poll of the provider's failed: see poll_failed() */
	/* Its channel. */
	bool armed; /* one event is owed; under the channel's lock */
	bool solicited_only;
	bool raised; /* by us, and in the channel's list */
	TAILQ_ENTRY(verbs_cq) link;
	uint32_t dbrec[2];
};

/* A WQE that the provider does not complete: a NOP, or one that it refused. */
struct verbs_own {
	uint32_t behind; /* seq of the last request before it that the provider was given */
	uint16_t idx;
	uint8_t syndrome; /* 0: as the QP is */
	bool report;
};

/* Followed by WQE tables; see verbs_qp.c. */
struct verbs_qp {
	/* Every post and completion. */
	struct ibv_qp_ex *ex; /* NULL: ibv_post_send() is what there is */
	struct ibv_qp *ib;
	struct verbs_cq *scq;
	uint64_t wr_base;   /* VERBS_WR_USER() of wr_ids */
	uint64_t wr_told;   /* the same with VERBS_WR_REPORT */
	uint16_t head;      /* behind what verbs_sq_give() has last given to the provider */
	uint16_t ex_pieces; /* at most so many by ex, else by ibv_post_send() */
	bool failed;        /* ERR: what comes is flushed */
	bool refused;       /* the provider said no: nothing is given to it any more */
	bool open;          /* ibv_wr_start() was called: see verbs_post.c */
	uint32_t opened;    /* low half of rung_seq at that time */
	uint32_t given;     /* seq of the last request the provider was given; not while open */
	uint32_t done;      /* seq of the last of them that has completed */
	uint32_t own_head;  /* of own[], as of a ring of own_mask + 1 */
	uint32_t own_tail;
	uint32_t own_mask;
	struct verbs_own *own;
	/* Not touched on the data path. */
	uint64_t ops; /* IBV_QP_EX_WITH_* that ex has */
	struct verbs_domain *domain;
	void *ring; /* receive queue, then send queue */
	LIST_ENTRY(verbs_qp) link;
	struct bb_qp *bb;
};

struct verbs_srq {
	struct ibv_srq *ib;
	uint16_t head; /* WQE that is given to the provider next */
	void *ring;
};

struct verbs_channel {
	struct ibv_comp_channel *ib;
	int evfd; /* readable while something is in raised */
	pthread_mutex_t lock;
	TAILQ_HEAD(, verbs_cq) raised;
};

/*
 * wr_id of a request at the provider: which queue's WQE it is, and whether its completion is
 * told. The other ones are asked for only to know when a request is over.
 */
#define VERBS_WR_RECV         (UINT64_C(1) << 63)
#define VERBS_WR_SRQ          (UINT64_C(1) << 62)
#define VERBS_WR_REPORT       (UINT64_C(1) << 61)
#define VERBS_WR_MARK         (UINT64_C(1) << 60) /* not a WQE's */
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
 * What a call of libibverbs that gives an object back has returned. When the device has been taken
 * away, the kernel has freed the object already and says EIO, and what libibverbs then keeps of it
 * makes that of others say EBUSY: 0 for both.
 */
int verbs_gone(struct verbs_dev *d, int err);

/* ---- verbs_caps.c */
int verbs_caps(struct verbs_dev *d, struct bb_dev_attr *attr);

/* ---- verbs_port.c */
int verbs_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);
int verbs_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);
int verbs_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);
enum ibv_mtu verbs_mtu(uint32_t bytes);
/* What libibverbs calls a path: an address vector. */
void verbs_path(const struct bb_dev *dev, const struct bb_path *path, struct ibv_ah_attr *attr);

/* ---- verbs_pd.c */
int verbs_pd_alloc(struct bb_pd *pd);
int verbs_pd_free(struct bb_pd *pd);
/* The PD that a QP of @owner is made in; *domain is NULL if it is the PD itself. */
struct ibv_pd *verbs_domain_get(struct bb_pd *pd, uint32_t owner, struct verbs_domain **domain);
void verbs_domain_put(struct verbs_domain *domain);
int verbs_path_ready(struct bb_dev *dev, const struct bb_path *path);
int verbs_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);
void verbs_ah_release(struct bb_pd *pd, const struct bb_wqe_av *av);
/* @q has no request under way any more: it was reset, or is about to go. */
void verbs_ah_forget(struct verbs_pd *p, const struct verbs_qp *q);
/* The handle in an address vector. */
static inline struct ibv_ah *
verbs_ah_of(const struct bb_wqe_av *av)
{
	struct ibv_ah *ah;

	memcpy(&ah, av->rgid, sizeof(ah));
	return ah;
}

/* ---- verbs_dev.c: what stamps completions, as bb_dev_clock() */
int verbs_clock(struct bb_dev *dev, uint64_t *now);

/* ---- verbs_mr.c */
int verbs_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **mr);
int verbs_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *mr);
int verbs_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
		   void *addr, uint64_t len, uint32_t access);
/* The region or window that a key names now, NULL: none. */
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
/* Take completions of the provider: cq->progress, and cq->poll. */
void verbs_poll(void *arg);
unsigned int verbs_cq_poll(struct bb_cq *cq, struct bb_wc *wc, unsigned int n);
/* All there are. */
void verbs_drain(struct verbs_cq *c);
/*
 * Those of a QP that is reset or goes, for core to drop from our ring and to give an SRQ its
 * receives back: in front of that, as some providers drop them from their CQ, and behind it, as
 * others do not.
 */
void verbs_drain_qp(const struct bb_qp *qp);
/* End the ring by a CQE, as a card does for bb_cqring_move(). */
void verbs_ring_end(struct verbs_cq *c);
/* Complete what stands behind requests that have completed. */
void verbs_own_done(struct verbs_qp *q);
/* Write the CQE of a receive that the provider did not take. */
void verbs_recv_refused(struct bb_qp *qp, uint16_t idx);

/* ---- verbs_channel.c */
int verbs_channel_create(struct bb_channel *ch);
int verbs_channel_destroy(struct bb_channel *ch);
int verbs_channel_get(struct bb_channel *ch, struct bb_cq **cq);
int verbs_cq_arm(struct bb_cq *cq, bool solicited_only);
/* The driver has written a CQE, of which the provider knows nothing. */
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
/* The provider refused something of the QP, or an unreliable one failed: to ERR with it. */
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
/* bb_sq.write of it; bb_sq.piece is the provider's. */
void verbs_write(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id, uint64_t where);
/* bb_sq.ring of it: give what was posted to the provider. */
void verbs_sq_ring(struct bb_sq *sq);
/* Forget what was posted and not rung, as the QP is to go: true if anything was begun. */
bool verbs_post_abort(struct verbs_qp *q);
/* It did not go, and what was forgotten ends in error, in place of a doorbell. */
void verbs_post_lost(struct bb_sq *sq, int err);

/* ---- verbs_send.c, verbs_recv.c: what rings call */
/* bb_sq.ring: WQEs, of which some requests that are none may stand in front. */
void verbs_sq_give(struct bb_sq *sq);
/* Of requests that are none the provider took nothing: ibv_wr_complete() said @err. */
void verbs_sq_refused(struct bb_sq *sq, int err);
void verbs_rq_ring(struct bb_rq *rq);
void verbs_srq_ring(struct bb_srqring *ring);

/* ---- verbs_srq.c */
int verbs_srq_create(struct bb_srq *srq);
int verbs_srq_modify(struct bb_srq *srq, uint32_t limit);
int verbs_srq_query(struct bb_srq *srq, uint32_t *limit);
int verbs_srq_destroy(struct bb_srq *srq);

#endif
