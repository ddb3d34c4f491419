/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What a driver gives to core, and the objects both know. Not installed.
 *
 * Core checks arguments, keeps parents and children, the state machine, CQ
 * credits and the address table; a driver makes device objects and sets up the
 * rings. A driver that decides an error logs it; core passes it on.
 */
#ifndef BB_DRIVER_H
#define BB_DRIVER_H

#include <pthread.h>
#include <rte_log.h>

#include "bb_cq.h"
#include "bb_dev.h"
#include "bb_mem.h"
#include "bb_qp.h"

/* Largest user index handed to a QP; the table of a device has this many slots + 1. */
#define BB_MAX_USER_INDEX 0xffffu

struct bb_mem_table;

struct bb_dev {
	char name[BB_DEV_NAME_MAX];
	const struct bb_driver *drv;
	void *priv;              /* the driver's */
	struct bb_dev_attr attr; /* filled by the driver's open */
	pthread_mutex_t lock;    /* control path; driver ops are called under it */
	uint32_t pds;            /* children alive */
	uint32_t cqs;
	uint32_t qps_used;
	struct bb_qp **qps; /* by user index, BB_MAX_USER_INDEX + 1 slots; 0 is never used */
	uint32_t qps_next;  /* where the search for a free slot starts */
};

struct bb_pd {
	struct bb_dev *dev;
	void *priv;   /* the driver's */
	uint32_t mrs; /* explicit registrations */
	uint32_t qps;
	struct bb_mem_table *mem; /* automatic registrations, address table */
};

struct bb_cq_ctrl {
	struct bb_dev *dev;
	void *priv;        /* the driver's */
	uint32_t depth;    /* CQEs that fit */
	uint32_t reserved; /* CQEs promised to the queues attached */
	uint32_t queues;   /* send and receive queues attached */
	uint64_t errors;   /* error CQEs consumed */
	uint64_t purged;   /* CQEs dropped */
	bool stray_logged; /* a CQE that belongs to no QP was reported */
};

struct bb_qp_ctrl {
	struct bb_pd *pd;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq;
	void *priv;                  /* the driver's */
	struct bb_qp_init_attr init; /* as created, rounded limits filled in */
	struct bb_qp_attr attr;      /* as last set */
	uint64_t errors;
	uint64_t recv_done;      /* receive completions, errors too */
	struct bb_qp_stats past; /* of the queues before the last reset */
	bool error_logged;       /* once from reset to reset */
};

/* Registration handle of a driver: embedded first in what the driver keeps. */
struct bb_drv_mr {
	uint32_t lkey;
	uint32_t rkey;
};

struct bb_driver {
	const char *name;

	/* List devices; as bb_dev_list(). */
	int (*list)(struct bb_dev_info *info, unsigned int n);
	/*
	 * -ENODEV, and no line in the log, when @name is none of this driver's. @args is
	 * what stands behind the first comma, "" for nothing. Fills dev->priv, dev->attr.
	 */
	int (*open)(const char *name, const char *args, struct bb_dev *dev);
	int (*close)(struct bb_dev *dev);
	int (*port_query)(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);
	int (*gid_query)(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);
	/* Never an event of an object that was destroyed. */
	int (*event_get)(struct bb_dev *dev, struct bb_event *event);
	int (*stats)(struct bb_dev *dev, struct bb_dev_stats *stats);
	void (*progress)(struct bb_dev *dev);

	int (*pd_alloc)(struct bb_pd *pd);
	int (*pd_free)(struct bb_pd *pd);
	/*
	 * May run inside an EAL memory event callback, then without dev->lock and while
	 * EAL holds its memory lock: no rte_malloc, no memseg walk, no wait for another
	 * lcore, no lock under which the driver calls rte_malloc or rte_free elsewhere.
	 * mr_dereg may wait and is never called there.
	 */
	int (*mr_reg)(struct bb_pd *pd, void *addr, size_t len, uint32_t access,
		      struct bb_drv_mr **mr);
	int (*mr_dereg)(struct bb_pd *pd, struct bb_drv_mr *mr);

	/* Sets up cq->ring, cq->progress and ctrl->depth, ctrl->priv; owner is resolved. */
	int (*cq_create)(struct bb_cq *cq, const struct bb_cq_attr *attr);
	int (*cq_destroy)(struct bb_cq *cq);
	/*
	 * Sets up qp->sq, qp->rq, qpn; user_index is given. Queues take exactly sq_depth
	 * and rq_depth WQEs outstanding: CQ credits are counted by them. @attr is checked,
	 * with signal_every resolved and recv_cq never NULL.
	 */
	int (*qp_create)(struct bb_qp *qp, const struct bb_qp_init_attr *attr);
	/*
	 * The transition is legal and the attributes complete; @to may equal the state.
	 * Core resets and enables the rings afterwards, also the records on RESET.
	 */
	int (*qp_modify)(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
			 enum bb_qp_state to);
	/* @attr comes filled with what was last set; the driver puts in what it knows better. */
	int (*qp_query)(struct bb_qp *qp, struct bb_qp_attr *attr);
	/* No CQE of the QP is written after it returns. */
	int (*qp_destroy)(struct bb_qp *qp);
};

/*
 * Called by constructors only. list, port_query, gid_query, event_get, stats,
 * progress and qp_query may be NULL; a driver that lacks another one is not taken.
 */
void bb_driver_register(const struct bb_driver *drv);

#define BB_DRIVER_REGISTER(drv_)                                                                   \
	static void __attribute__((constructor)) bb_driver_ctor_##drv_(void)                       \
	{                                                                                          \
		bb_driver_register(&(drv_));                                                       \
	}

/* Logging: one type for the library's control path, "bluebell". */
extern int bb_logtype;

#define BB_LOG(level, ...) bb_log(RTE_LOG_##level, __VA_ARGS__)
void bb_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The lcore id a queue belongs to; -EINVAL (logged) for one EAL does not know. */
int bb_lcore_resolve(uint32_t lcore, uint32_t *resolved);

#endif
