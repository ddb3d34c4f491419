/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the files of core share among themselves.
 */
#ifndef BB_CORE_H
#define BB_CORE_H

#include "bb_driver.h"
#include "bb_recover.h"

/* 0 when this process may open devices, else a negative errno (logged). */
int bb_process_check(void);
uint32_t bb_process_generation(void);

/* 0, or -ENOTSUP with a line in the log: this is a child of the process that opened @dev. */
int bb_process_owns(const struct bb_dev *dev);

/* bb_check.c: each 0, or a negative errno (logged). */
int bb_layout_check(uint32_t layout);
/* @init: the function that would have set the size. */
int bb_attr_size_check(uint32_t size, size_t expected, const char *init);
int bb_limit_check(const struct bb_dev *dev, const char *name, uint32_t value, uint32_t min,
		   uint32_t max);

/*
 * bb_open.c: the devices that are open, for threads that were given a name only. Lock order:
 * this one, then dev->lock; no other is taken before it. Control path only.
 */
void bb_open_devs_lock(void);
void bb_open_devs_unlock(void);
void bb_open_devs_add(struct bb_dev *dev);
/* Locked: the first or the next one, in the order they were opened; NULL: no more. */
struct bb_dev *bb_open_devs_next(const struct bb_dev *dev);
/* What tells it apart: "soft0", "soft0#2". @buf of BB_OPEN_NAME_MAX bytes. */
#define BB_OPEN_NAME_MAX (BB_DEV_NAME_MAX + 12)
void bb_open_name(const struct bb_dev *dev, char *buf);
/* Locked: by that name; NULL: no such. */
struct bb_dev *bb_open_devs_find(const char *name);

/* "1 QP", "2 QPs" */
#define BB_PLURAL(n) ((n) == 1 ? "" : "s")

/* @wc from a CQE of any kind. 1: it was written; 0: there is nothing to report. */
int bb_cq_translate(struct bb_cq *cq, const struct bb_cqe *cqe, struct bb_wc *wc);

/*
 * CQ credits, dev->lock held. A CQ takes a queue only if a completion for every WQE
 * of all its queues fits: on an error each of them yields one, unsignalled or not.
 */
int bb_cq_attach(struct bb_cq *cq, uint32_t depth, const char *queue);
void bb_cq_detach(struct bb_cq *cq, uint32_t depth);

/*
 * The same for the SRQ of a QP, dev->lock held: a CQ promises its depth once. -ENOSPC,
 * -ENOMEM.
 */
int bb_srq_attach(struct bb_srq *srq, struct bb_cq *cq);
void bb_srq_detach(struct bb_srq *srq, struct bb_cq *cq);

/*
 * Drop what the CQ holds of a QP whose device object writes no more; receives of its SRQ
 * go back there.
 */
void bb_cq_purge(struct bb_cq *cq, const struct bb_qp *qp);

/* Give the slots of CQEs back that bb_cqring_purge() or its like has marked. */
void bb_cq_compact(struct bb_cq *cq);

/* enum bb_wc_status of a CQE's error syndrome. */
enum bb_wc_status bb_wc_status_of(uint8_t syndrome);

/* Zeroed memory of the C library for @what ("a PD"), to be freed; NULL and a line in the log. */
void *bb_alloc(const struct bb_dev *dev, const char *what, size_t size);
/* -ENOMEM, with that line. */
int bb_no_memory(const struct bb_dev *dev, const char *what);

/* A memory region of any kind. Under dev->lock. */
struct bb_mr_priv {
	struct bb_mr pub;
	LIST_ENTRY(bb_mr_priv) link; /* in pd->mr_list */
	enum bb_drv_mr_kind kind;
	struct bb_mem_reg *reg;
	uint32_t windows;      /* memory windows that hold it; __atomic */
	uint32_t mkeys;        /* keys that refer to it */
	struct bb_dm_ctrl *dm; /* of device memory, else NULL */
};

/* Rights of @access that the device honours: optional ones it lacks go. */
uint32_t bb_mr_access_in_force(const struct bb_dev *dev, uint32_t access);
/* 0, -EINVAL or -ENOTSUP; then *why says why, for the caller's line in the log. */
int bb_mr_access_check(const struct bb_dev *dev, uint32_t access, const char **why);
/* Register with the driver; @attr is checked, its access is what is in force. */
int bb_mr_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_mr **mr);
/* Put the driver's keys into mr->pub, those that the rights give. */
void bb_mr_keys(struct bb_mr_priv *mr);
/* What it adds to struct bb_mem_stats; nothing for the whole address space. */
uint64_t bb_mr_bytes(const struct bb_mr *mr);
/* The key it is listed by: its lkey, or its rkey if it has no other. */
static inline uint32_t
bb_mr_name(const struct bb_mr *mr)
{
	return mr->lkey != BB_LKEY_NONE ? mr->lkey : mr->rkey;
}
/* The explicit registration of any PD that has the key, as lkey or rkey; dev->lock held. */
const struct bb_mr_priv *bb_mr_by_key(const struct bb_dev *dev, uint32_t key);
/* "local_write|remote_read", "none"; @buf of BB_ACCESS_TEXT_MAX bytes. */
#define BB_ACCESS_TEXT_MAX 128
void bb_access_text(uint32_t access, char *buf);
/* -EBUSY, logged, while windows or keys refer to it; dev->lock held. */
int bb_mr_busy(const struct bb_mr_priv *mr, const char *what);

/* A peer, or a request, has invalidated the key: if it is a window's, its region is free of it. */
void bb_mw_invalidated(const struct bb_dev *dev, uint32_t rkey);
/* Let regions go from which completed requests took windows; dev->lock held. */
void bb_mw_settle(const struct bb_dev *dev);
/* A QP is about to forget its requests; dev->lock held. */
void bb_mw_qp_reset(const struct bb_qp *qp);
/* The send with number @seq, and all behind it, is not carried out; the owner. */
void bb_qp_send_failed(struct bb_qp *qp, uint32_t seq);
/* The device is closed. */
void bb_mw_table_free(struct bb_dev *dev);

/* bb_qp_modify() with dev->lock held. */
int bb_qp_modify_locked(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);
/* iWARP: what is in INIT here is in RTS, as librdmacm has connected it. -EINVAL if it is not so. */
int bb_qp_adopt(struct bb_qp *qp);

/* Returns 0, or -EBUSY and logs it if a connection owns the QP. @call: the refused function. */
int bb_qp_unowned(const struct bb_qp *qp, const char *call);
/* bb_qp_connect() and bb_qp_recover(), called by the connection that owns the QP. */
int bb_qp_connect_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr);
int bb_qp_recover_owned(struct bb_qp *qp, const struct bb_qp_addr *local,
			const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
			struct bb_qp_recovery *recovery);

/* What bb_qp_modify() would say of a transition and its attributes; logs the reason. */
int bb_qp_modify_check(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		       enum bb_qp_state to);

/*
 * Limits of a path through a port, the GID's existence among them. 0 or -EINVAL, logged as
 * of @what ("QP 0x12").
 */
int bb_path_check(struct bb_dev *dev, const char *what, const struct bb_path *path,
		  const struct bb_port_attr *port);

/*
 * The number of a request with all its bits, while fewer than 2^31 lie between it and the last
 * doorbell: what is kept beyond that must not look new again. Any thread; @seq is read before.
 */
static inline uint64_t
bb_sq_seq64(const struct bb_sq *sq, uint32_t seq)
{
	const uint64_t rung = bb_count_get(&sq->rung_seq);

	return rung + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)rung);
}

/* How many requests have no completion, and the first block of the oldest of them. */
uint32_t bb_sq_pending(const struct bb_sq *sq, uint16_t *counter);
/*
 * Keep and log the WQE at @counter, for bb_qp_error_text(): the owner, once from reset to
 * reset.
 */
void bb_qp_error_note(struct bb_qp *qp, const struct bb_wc *wc, bool send, uint16_t counter);
/* dev->lock held. */
void bb_qp_error_forget(struct bb_qp *qp);

/* Fold the rings' numbers into ctrl->past; the rings are about to be reset. */
void bb_qp_stats_fold(struct bb_qp *qp);

/*
 * The device has moved the QP to ERR by itself. Posts go on, or begin in RTR: they are
 * flushed. Atomic, as an error CQE and bb_event_get() may say so in two threads at once.
 */
static inline void
bb_qp_failed(struct bb_qp *qp)
{
	/* An event may be as late as behind a reset. */
	if (__atomic_load_n(&qp->state, __ATOMIC_RELAXED) != BB_QP_RESET)
		bb_sq_error(&qp->sq);
	__atomic_store_n(&qp->state, BB_QP_ERR, __ATOMIC_RELAXED);
}

#endif
