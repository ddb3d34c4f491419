/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What a driver gives to the library, and the objects both know. Not installed.
 *
 * Core checks arguments, keeps parents and children, the state machine, CQ
 * credits and the address table; a driver makes device objects and sets up the
 * rings. A driver that decides an error logs it; core passes it on.
 */
#ifndef BB_DRIVER_H
#define BB_DRIVER_H

#include <pthread.h>
#include <sys/queue.h>

#include <rte_log.h>

#include "bb_ah.h"
#include "bb_cq.h"
#include "bb_dev.h"
#include "bb_devx.h"
#include "bb_dm.h"
#include "bb_mem.h"
#include "bb_qp.h"
#include "bb_srq.h"
#include "bb_umem.h"

/* Largest user index handed to a QP; the table of a device has this many slots + 1. */
#define BB_MAX_USER_INDEX 0xffffu

struct bb_mem_table;
struct bb_qp_error;

struct bb_dev {
	char name[BB_DEV_NAME_MAX];
	const struct bb_driver *drv;
	void *priv;              /* the driver's */
	struct bb_dev_attr attr; /* filled by the driver's open */
	bool ethernet;           /* what its ports speak; the driver's, too */
	bool iwarp;              /* QPs are connected through librdmacm alone; the driver's, too */
	pthread_mutex_t lock;    /* control path; driver ops are called under it */
	uint32_t pds;            /* children alive */
	uint32_t cqs;
	uint32_t dms;
	uint32_t umems;
	uint32_t devx_objs;
	uint32_t devx_uars; /* references */
	uint32_t channels;
	uint32_t qps_used;
	struct bb_qp **qps;      /* by user index, BB_MAX_USER_INDEX + 1 slots; 0 is never used */
	uint32_t qps_next;       /* where the search for a free slot starts */
	struct bb_mw_table *mws; /* windows by key, NULL: there were none; __atomic */
	void (*mws_free)(struct bb_mw_table *t); /* set with mws */
	LIST_HEAD(, bb_pd) pd_list;
	LIST_HEAD(, bb_cq_ctrl) cq_list;
	uint32_t generation;     /* bb_process_generation() as it was opened */
	uint32_t instance;       /* 1, or 2 and on: opened again under its name */
	LIST_ENTRY(bb_dev) open; /* bb_open_devs_lock() */
};

struct bb_pd {
	struct bb_dev *dev;
	LIST_ENTRY(bb_pd) link;
	void *priv;   /* the driver's */
	uint32_t mrs; /* explicit registrations */
	LIST_HEAD(, bb_mr_priv) mr_list;
	uint32_t mkeys;
	uint32_t mws;
	uint32_t qps;
	uint32_t srqs;
	uint32_t ahs;
	struct bb_mem_table *mem; /* automatic registrations, address table */
};

struct bb_channel {
	struct bb_dev *dev;
	void *priv; /* the driver's */
	int fd;
	uint32_t cqs; /* on it */
	bool run;     /* its device runs in its owners' calls: see bb_channel_wait() */
};

struct bb_cq_ctrl {
	struct bb_dev *dev;
	struct bb_cq *cq;
	LIST_ENTRY(bb_cq_ctrl) link;
	struct bb_channel *channel; /* NULL: none */
	void *priv;                 /* the driver's */
	uint32_t depth;             /* CQEs that fit */
	uint32_t reserved;          /* CQEs promised to the queues attached */
	uint32_t queues;            /* send and receive queues attached */
	uint64_t errors;            /* error CQEs consumed */
	uint64_t purged;            /* CQEs dropped */
	bool compress;              /* receive queues only */
	bool stray_logged;          /* a CQE that belongs to no QP was reported */
};

/* A receive CQ that the QPs of an SRQ complete into. */
struct bb_srq_cq {
	LIST_ENTRY(bb_srq_cq) link;
	struct bb_cq *cq;
	uint32_t qps;
};

struct bb_srq_ctrl {
	struct bb_pd *pd;
	void *priv;              /* the driver's */
	struct bb_srq_attr attr; /* as created, max_sge as it came out; lcore is resolved */
	uint32_t qps;
	uint64_t completed; /* receives given back, purged ones too */
	LIST_HEAD(, bb_srq_cq) cqs;
};

struct bb_qp_ctrl {
	struct bb_pd *pd;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq;
	void *priv;                  /* the driver's */
	const void *conn;            /* connection that owns the QP (lib/connect), NULL if none */
	struct bb_qp_init_attr init; /* as created, rounded limits filled in */
	struct bb_qp_attr attr;      /* as last set */
	uint64_t errors;
	uint64_t recv_done;        /* receive completions, errors too */
	struct bb_qp_stats past;   /* of the queues before the last reset */
	bool error_logged;         /* once from reset to reset */
	struct bb_qp_error *error; /* what was logged then, NULL: nothing; __atomic */
	/* enum bb_wc_status of the first send since the reset that failed by itself; 0: none. */
	uint8_t send_error;
	/* The first send since the reset that has no success; failed_seq is set first. */
	bool send_failed;    /* __atomic */
	uint64_t failed_seq; /* bb_sq_seq64() */
	/* Of bb_qp_recover(), kept from call to call until the reset. */
	struct {
		bool begun, marked;
		uint32_t rung; /* seq of the last send rung before it began */
	} recovery;
};

struct bb_dm_ctrl {
	struct bb_dm pub;
	void *priv;   /* the driver's */
	uint32_t mrs; /* that name it */
};

struct bb_umem_ctrl {
	struct bb_umem pub;
	void *priv; /* the driver's */
};

/* Registration handle of a driver: embedded first in what the driver keeps. */
struct bb_drv_mr {
	uint32_t lkey;
	uint32_t rkey;
};

/* What a memory key names. */
enum bb_drv_mr_kind {
	BB_DRV_MR_MEM,      /* process memory, [addr, addr + len) */
	BB_DRV_MR_DM,       /* device memory, from offset on */
	BB_DRV_MR_DMABUF,   /* a dma-buf, from offset on */
	BB_DRV_MR_INDIRECT, /* pieces of other keys' memory, or none yet */
	BB_DRV_MR_MW,       /* a memory window, not bound */
};

/* What a memory key is to be; a kind's own fields stand behind the common ones. */
struct bb_drv_mr_attr {
	enum bb_drv_mr_kind kind;
	void *addr; /* of MEM */
	uint64_t len;
	uint64_t iova;               /* address that names the first byte */
	uint32_t access;             /* enum bb_access */
	uint64_t offset;             /* of DM and DMABUF */
	struct bb_dm_ctrl *dm;       /* of DM, else NULL */
	int fd;                      /* of DMABUF */
	const struct bb_sge *pieces; /* of INDIRECT: n of them, */
	uint32_t n;
	uint32_t max_pieces; /* or 0, and room for so many */
	uint32_t mw_type;    /* of MW: 1 or 2 */
};

/* Mailboxes of the application: sizes are checked, the contents are not. See bb_devx.h. */
struct bb_devx_ops {
	int (*general)(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen);
	int (*obj_create)(struct bb_dev *dev, const void *in, size_t inlen, void *out,
			  size_t outlen, void **obj);
	/* Modify, or query. */
	int (*obj_cmd)(struct bb_dev *dev, void *obj, bool modify, const void *in, size_t inlen,
		       void *out, size_t outlen);
	int (*obj_destroy)(struct bb_dev *dev, void *obj);
	/* Without dev->lock. */
	int (*query_eqn)(struct bb_dev *dev, uint32_t vector, uint32_t *eqn);
	uint32_t (*pd_number)(const struct bb_pd *pd);
	/* Fills in the page of uar->lcore. */
	int (*uar_alloc)(struct bb_devx_uar *uar);
	void (*uar_free)(struct bb_devx_uar *uar);
};

struct bb_driver {
	const char *name;
	/* Takes devices that others drive better: asked by open when none of these has the name. */
	bool last;

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
	/* @index is below the port's pkeys. */
	int (*pkey_query)(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);
	/* Never an event of an object that was destroyed. */
	int (*event_get)(struct bb_dev *dev, struct bb_event *event);
	int (*stats)(struct bb_dev *dev, struct bb_dev_stats *stats);
	/* As bb_dev_drops(); -ENOTSUP, and no line in the log: the device does not tell. */
	int (*drops)(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n);
	void (*progress)(struct bb_dev *dev);

	int (*pd_alloc)(struct bb_pd *pd);
	int (*pd_free)(struct bb_pd *pd);
	/*
	 * May run inside an EAL memory event callback, then without dev->lock and while
	 * EAL holds its memory lock: no rte_malloc, no memseg walk, no wait for another
	 * lcore, no lock under which the driver calls rte_malloc or rte_free elsewhere.
	 * mr_dereg may wait and is never called there.
	 */
	int (*mr_reg)(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **mr);
	int (*mr_dereg)(struct bb_pd *pd, struct bb_drv_mr *mr);
	/*
	 * Of MEM; flags of bb_mr_rereg(), what they do not name is NULL or 0. On success
	 * the keys are in @mr, and nothing works with the old ones any more. May wait.
	 */
	int (*mr_rereg)(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags,
			struct bb_pd *new_pd, void *addr, uint64_t len, uint32_t access);

	/*
	 * NULL where the device has none: then attr.max_dm_size is 0. Length and alignment
	 * are within the device's limits; copies are in bounds, aligned, not empty, and come
	 * from any thread, without dev->lock.
	 */
	int (*dm_alloc)(struct bb_dm_ctrl *dm);
	int (*dm_free)(struct bb_dm_ctrl *dm);
	int (*dm_write)(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len);
	int (*dm_read)(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len);

	/* NULL where there are none: then attr.max_umem is 0. @attr is checked. Sets pub.id. */
	int (*umem_reg)(struct bb_umem_ctrl *umem, const struct bb_umem_attr *attr);
	int (*umem_dereg)(struct bb_umem_ctrl *umem);

	/* NULL where the device has no command mailboxes. */
	const struct bb_devx_ops *devx;

	/* The device's clock: dev->attr.clock_hz is not 0. */
	int (*clock)(struct bb_dev *dev, uint64_t *now);

	/* Sets up ch->fd, ch->priv. -ENOTSUP, logged: no completion events. */
	int (*channel_create)(struct bb_channel *ch);
	int (*channel_destroy)(struct bb_channel *ch);
	/* -EAGAIN none. Never an event of a CQ that was destroyed. Without dev->lock. */
	int (*channel_get)(struct bb_channel *ch, struct bb_cq **cq);

	/*
	 * Asks for what qp_modify() to RTR and ah_resolve() would wait for, and never waits. 0:
	 * they do not wait for @path; -EAGAIN: call again; else why the peer cannot be reached. Any
	 * thread, without dev->lock. NULL: nothing ever waits.
	 */
	int (*path_ready)(struct bb_dev *dev, const struct bb_path *path);
	/* The address vector of @path, which is checked; key and QP number stay 0. */
	int (*ah_resolve)(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);
	/* Its handle is destroyed; requests that were posted with it still go out. */
	void (*ah_release)(struct bb_pd *pd, const struct bb_wqe_av *av);

	/*
	 * Sets up cq->ring, cq->progress, cq->cqn and ctrl->depth, ctrl->priv; with a channel
	 * cq->arm_reg, unless there is cq_arm. Owner is resolved, capabilities that @attr needs are
	 * there.
	 */
	int (*cq_create)(struct bb_cq *cq, const struct bb_cq_attr *attr);
	int (*cq_destroy)(struct bb_cq *cq);
	/* Of a CQ with a channel and no arm_reg; the owner, without dev->lock. */
	int (*cq_arm)(struct bb_cq *cq, bool solicited_only);
	/* @depth is a power of two, another one than now; there is room for a CQE. */
	int (*cq_resize)(struct bb_cq *cq, uint32_t depth);
	int (*cq_moderate)(struct bb_cq *cq, uint16_t count, uint16_t period_us);
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
	/*
	 * How often its requests were sent again since it was created: after silence or an answer
	 * that says that something is missing, and as the peer had no receive. -ENOTSUP, and no
	 * line in the log: the device does not tell of one QP.
	 */
	int (*qp_retries)(const struct bb_qp *qp, uint64_t *retries, uint64_t *rnr_retries);
	/* No CQE of the QP is written after it returns. */
	int (*qp_destroy)(struct bb_qp *qp);

	/* Optional, all or none. Sets up srq->ring, srqn, ctrl->priv and attr.max_sge. */
	int (*srq_create)(struct bb_srq *srq);
	int (*srq_modify)(struct bb_srq *srq, uint32_t limit);
	int (*srq_query)(struct bb_srq *srq, uint32_t *limit);
	int (*srq_destroy)(struct bb_srq *srq);
};

/*
 * Called by constructors only. list, port_query, gid_query, pkey_query, event_get, stats, drops,
 * progress, clock, channel_*, mr_rereg, ah_*, cq_arm, cq_resize, cq_moderate, qp_query and
 * qp_retries may be NULL; a driver that lacks another one is not taken.
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

/* Fills @buf from getrandom(). -EIO, logged. */
int bb_random(const struct bb_dev *dev, void *buf, size_t len);

/* The lcore id a queue belongs to; -EINVAL (logged) for one EAL does not know. */
int bb_lcore_resolve(uint32_t lcore, uint32_t *resolved);

/* -ENOTSUP, and a line that says how QPs of an iWARP device are connected. */
int bb_iwarp_refusal(const struct bb_dev *dev);

/*
 * Returns the likely cause of @err, a negative errno with which the kernel has refused memory (a
 * PD, region, window or umem; @dmabuf: of a dma-buf), and what to do: the end of a line of the log,
 * "" if nothing is known. The kernel says no more than the number.
 */
const char *bb_mem_hint(int err, bool dmabuf);

#endif
