/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Interface between the library and its drivers, and the objects that both access. This header is
 * not installed.
 *
 * The core (lib/) checks arguments, counts the children of each object, and manages the state
 * machine, the CQEs reserved for queues, and the address table. A driver creates device objects and
 * sets up the rings. A driver logs the errors that the driver itself detects; the core returns
 * these errors without a further log line.
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

/* Largest user index of a QP. The table of a device also has a slot 0, which is never used. */
#define BB_MAX_USER_INDEX 0xffffu

struct bb_mem_table;
struct bb_qp_error;

struct bb_dev {
	char name[BB_DEV_NAME_MAX];
	const struct bb_driver *drv;
	void *priv;              /* private data of the driver */
	struct bb_dev_attr attr; /* capabilities; set by the open operation of the driver */
	bool ethernet;           /* true if the link layer of the ports is Ethernet; set by the
				  * driver */
	bool iwarp; /* true if QPs are connected only through librdmacm; set by the driver */
	pthread_mutex_t lock; /* serializes the control path; held during every driver operation,
			       * except those whose comments say otherwise */
	uint32_t pds;         /* counts of child objects that exist, here PDs */
	uint32_t cqs;
	uint32_t dms;
	uint32_t umems;
	uint32_t devx_objs;
	uint32_t devx_uars; /* references of the application to doorbell pages */
	uint32_t channels;
	uint32_t qps_used;
	struct bb_qp **qps;      /* QPs by user index, BB_MAX_USER_INDEX + 1 slots; index 0 is
				  * never used */
	uint32_t qps_next;       /* index in qps at which the search for a free entry starts */
	struct bb_mw_table *mws; /* memory windows by key, NULL before the first one; accessed with
				  * __atomic */
	void (*mws_free)(struct bb_mw_table *t); /* frees mws; set together with mws */
	LIST_HEAD(, bb_pd) pd_list;
	LIST_HEAD(, bb_cq_ctrl) cq_list;
	uint32_t generation;     /* bb_process_generation() at the time of opening */
	uint32_t instance;       /* 1, or a larger number if the name was already open */
	LIST_ENTRY(bb_dev) open; /* entry of the list of open devices, under bb_open_devs_lock() */
};

struct bb_pd {
	struct bb_dev *dev;
	LIST_ENTRY(bb_pd) link;
	void *priv;   /* private data of the driver */
	uint32_t mrs; /* number of regions of the application (bb_mr_reg() etc.) */
	LIST_HEAD(, bb_mr_priv) mr_list;
	uint32_t mkeys;
	uint32_t mws;
	uint32_t qps;
	uint32_t srqs;
	uint32_t ahs;
	/* true if bb_devx_pd_number() was called, so that DEVX objects may name the PD */
	bool devx_number_read;
	struct bb_mem_table *mem; /* automatic registrations and the address table */
};

struct bb_channel {
	struct bb_dev *dev;
	void *priv; /* private data of the driver */
	int fd;
	uint32_t cqs; /* CQs attached to the channel */
	bool run;     /* bb_channel_wait() must run the device, because the device runs only inside
		       * calls of the queues' owners */
};

struct bb_cq_ctrl {
	struct bb_dev *dev;
	struct bb_cq *cq;
	LIST_ENTRY(bb_cq_ctrl) link;
	struct bb_channel *channel; /* NULL if none */
	void *priv;                 /* private data of the driver */
	uint32_t depth;             /* capacity in CQEs */
	uint32_t reserved;          /* CQEs reserved for the attached queues */
	uint32_t queues;            /* attached send and receive queues */
	uint64_t errors;            /* error CQEs consumed */
	uint64_t purged;            /* CQEs discarded by a purge */
	bool compress;     /* the CQ accepts compressed CQEs, and therefore only receive queues */
	bool stray_logged; /* true if a CQE that belongs to no QP was logged */
};

/* Receive CQ of the QPs that use an SRQ. */
struct bb_srq_cq {
	LIST_ENTRY(bb_srq_cq) link;
	struct bb_cq *cq;
	uint32_t qps;
};

struct bb_srq_ctrl {
	struct bb_pd *pd;
	void *priv;              /* private data of the driver */
	struct bb_srq_attr attr; /* attributes at creation, with the max_sge granted and lcore
				  * resolved */
	uint32_t qps;
	uint64_t completed; /* receives returned to the SRQ, including purged ones */
	bool counted;       /* false, except inside bb_cq_resize(), under bb_dev.lock */
	LIST_HEAD(, bb_srq_cq) cqs;
};

/* Attachment of a QP to a multicast group. */
struct bb_mcast {
	LIST_ENTRY(bb_mcast) link;
	uint8_t gid[16];
	uint16_t lid; /* 0 on Ethernet */
	void *priv;   /* private data of the driver */
};

struct bb_qp_ctrl {
	struct bb_pd *pd;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq;
	void *priv;                  /* private data of the driver */
	const void *conn;            /* connection that owns the QP (lib/connect), NULL if none */
	struct bb_qp_init_attr init; /* attributes at creation, with the rounded limits */
	struct bb_qp_attr attr;      /* attributes as last set */
	uint64_t errors;
	struct bb_qp_stats past;      /* statistics accumulated before the last reset */
	bool error_logged;            /* true if the first error since the reset was logged */
	struct bb_qp_error *error;    /* the error that was logged, NULL if none; accessed with
				       * __atomic */
	LIST_HEAD(, bb_mcast) mcasts; /* multicast groups to which the QP is attached */
	/*
	 * Status (enum bb_wc_status) of the first send since the reset that failed with an error of
	 * its own, not with a flush error; 0 if there was none. BB_WC_GENERAL_ERR instead if the
	 * peer may have executed later sends.
	 */
	uint8_t send_error;
	/*
	 * True if a send has failed or was flushed since the reset. failed_seq is written before
	 * this flag.
	 */
	bool send_failed;    /* accessed with __atomic */
	uint64_t failed_seq; /* bb_sq_seq64() of the first failed or flushed send */
	/* State that bb_qp_recover() keeps between two calls, until the QP is reset. */
	struct {
		bool begun, marked;
		uint32_t rung; /* number of the last send that a doorbell covered before the
				  recovery began */
	} recovery;
};

struct bb_dm_ctrl {
	struct bb_dm pub;
	void *priv;   /* private data of the driver */
	uint32_t mrs; /* MRs on this device memory */
};

struct bb_umem_ctrl {
	struct bb_umem pub;
	void *priv; /* private data of the driver */
};

/* A driver's registration handle: first member of the driver's own struct. */
struct bb_drv_mr {
	uint32_t lkey;
	uint32_t rkey;
};

/* Type of the memory that a key covers. */
enum bb_drv_mr_kind {
	BB_DRV_MR_MEM,      /* process memory: [addr, addr + len) */
	BB_DRV_MR_DM,       /* device memory: len bytes at offset */
	BB_DRV_MR_DMABUF,   /* a dma-buf: len bytes at offset */
	BB_DRV_MR_INDIRECT, /* indirect key: ranges of memory that have keys of their own */
	BB_DRV_MR_MW,       /* a memory window, created unbound */
};

/*
 * Attributes of a new memory key. Fields that are valid only for some types of memory name these
 * types.
 */
struct bb_drv_mr_attr {
	enum bb_drv_mr_kind kind;
	void *addr; /* first byte; BB_DRV_MR_MEM only */
	uint64_t len;
	uint64_t iova;               /* address that requests use for the first byte */
	uint32_t access;             /* enum bb_access */
	uint64_t offset;             /* bytes; BB_DRV_MR_DM and BB_DRV_MR_DMABUF only */
	struct bb_dm_ctrl *dm;       /* the device memory; NULL unless the type is BB_DRV_MR_DM */
	int fd;                      /* file descriptor; BB_DRV_MR_DMABUF only */
	const struct bb_sge *pieces; /* n memory ranges; BB_DRV_MR_INDIRECT only */
	uint32_t n;
	uint32_t
		max_pieces; /* INDIRECT only: capacity in memory ranges, 0 if the layout is fixed */
	uint32_t mw_type;   /* type of the window, 1 or 2; BB_DRV_MR_MW only */
};

/*
 * Passes the application's mailboxes to the device. The core has checked their sizes, not their
 * contents. See bb_devx.h.
 */
struct bb_devx_ops {
	int (*general)(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen);
	int (*obj_create)(struct bb_dev *dev, const void *in, size_t inlen, void *out,
			  size_t outlen, void **obj);
	/* Modifies the object if @modify is set, otherwise queries it. */
	int (*obj_cmd)(struct bb_dev *dev, void *obj, bool modify, const void *in, size_t inlen,
		       void *out, size_t outlen);
	int (*obj_destroy)(struct bb_dev *dev, void *obj);
	/* Called without dev->lock. */
	int (*query_eqn)(struct bb_dev *dev, uint32_t vector, uint32_t *eqn);
	uint32_t (*pd_number)(const struct bb_pd *pd);
	/* Fills in @uar with the doorbell page of uar->lcore. */
	int (*uar_alloc)(struct bb_devx_uar *uar);
	void (*uar_free)(struct bb_devx_uar *uar);
};

struct bb_driver {
	const char *name;
	/*
	 * True for a driver whose devices other drivers support better. The library asks such a
	 * driver to open a device only if no other driver knows the name.
	 */
	bool last;

	/* Lists devices, as bb_dev_list() does. */
	int (*list)(struct bb_dev_info *info, unsigned int n);
	/*
	 * Opens the device; fills dev->priv and dev->attr. @args is the text after the first comma
	 * of the spec, "" if none. Returns -ENODEV without a log line if the driver does not know
	 * @name.
	 */
	int (*open)(const char *name, const char *args, struct bb_dev *dev);
	int (*close)(struct bb_dev *dev);
	int (*port_query)(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);
	int (*gid_query)(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);
	/* Reads a P_Key. @index is below bb_port_attr.pkeys. */
	int (*pkey_query)(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);
	/* Consumes one event. Never returns an event of a destroyed object. */
	int (*event_get)(struct bb_dev *dev, struct bb_event *event);
	int (*stats)(struct bb_dev *dev, struct bb_dev_stats *stats);
	/*
	 * Does what bb_dev_drops() does. Returns -ENOTSUP without a log line if the device does not
	 * count drops.
	 */
	int (*drops)(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n);
	void (*progress)(struct bb_dev *dev);

	int (*pd_alloc)(struct bb_pd *pd);
	int (*pd_free)(struct bb_pd *pd);
	/*
	 * Registers memory. The core may call this operation inside an EAL memory event callback,
	 * that is, without dev->lock and while EAL holds its memory lock. So the operation must not
	 * call rte_malloc, walk memsegs, or wait for another lcore. It must not take a lock under
	 * which the driver calls rte_malloc or rte_free at another place. mr_dereg may wait and is
	 * never called from such a callback.
	 */
	int (*mr_reg)(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **mr);
	int (*mr_dereg)(struct bb_pd *pd, struct bb_drv_mr *mr);
	/*
	 * Re-registers a key of type BB_DRV_MR_MEM. @flags are those of bb_mr_rereg(). An argument
	 * is NULL or 0 if @flags does not ask for its change. On success @mr has the new keys, and
	 * the old keys are invalid. The operation may wait.
	 */
	int (*mr_rereg)(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags,
			struct bb_pd *new_pd, void *addr, uint64_t len, uint32_t access);

	/*
	 * Operations on device memory. They are NULL, and attr.max_dm_size is 0, if the device has
	 * no such memory. Length and alignment are within the device's limits. Copies are in
	 * bounds, aligned and not empty. Any thread may call the copies, without dev->lock.
	 */
	int (*dm_alloc)(struct bb_dm_ctrl *dm);
	int (*dm_free)(struct bb_dm_ctrl *dm);
	int (*dm_write)(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len);
	int (*dm_read)(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len);

	/*
	 * Operations on umems. They are NULL, and attr.max_umem is 0, if the device has no umems.
	 * umem_reg gets a checked @attr and sets pub.id.
	 */
	int (*umem_reg)(struct bb_umem_ctrl *umem, const struct bb_umem_attr *attr);
	int (*umem_dereg)(struct bb_umem_ctrl *umem);

	/* Operations of bb_devx.h. NULL if the device has no DEVX. */
	const struct bb_devx_ops *devx;

	/* Reads the device's clock. Called only if dev->attr.clock_hz is not 0. */
	int (*clock)(struct bb_dev *dev, uint64_t *now);

	/*
	 * Sets up ch->fd and ch->priv. Returns -ENOTSUP (logged) if the device has no completion
	 * events.
	 */
	int (*channel_create)(struct bb_channel *ch);
	int (*channel_destroy)(struct bb_channel *ch);
	/*
	 * Consumes one event. Returns -EAGAIN if no event is pending. Never returns an event of a
	 * destroyed CQ. Called without dev->lock.
	 */
	int (*channel_get)(struct bb_channel *ch, struct bb_cq **cq);

	/*
	 * Starts the address resolution that qp_modify() to RTR and ah_resolve() would wait for;
	 * never waits. Returns 0 if these operations would not wait for @path, and -EAGAIN if the
	 * resolution is not finished, so that the caller must call again. Another errno says why
	 * the peer is unreachable. Called by any thread, without dev->lock. NULL if the operations
	 * of the driver never wait.
	 */
	int (*path_ready)(struct bb_dev *dev, const struct bb_path *path);
	/*
	 * Resolves @path, which the core has checked, to an address vector. The vector's Q_Key and
	 * QP number remain 0, because a post sets them.
	 */
	int (*ah_resolve)(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);
	/*
	 * Releases the address vector of a destroyed handle. Requests already posted with it are
	 * still sent.
	 */
	void (*ah_release)(struct bb_pd *pd, const struct bb_wqe_av *av);

	/*
	 * Sets up cq->ring, cq->progress, cq->cqn, ctrl->depth and ctrl->priv. If the CQ has a
	 * channel, the operation also sets cq->arm_reg, unless the driver has cq_arm. The core has
	 * resolved the lcore that owns the CQ, and has checked that the device has the capabilities
	 * that @attr needs.
	 */
	int (*cq_create)(struct bb_cq *cq, const struct bb_cq_attr *attr);
	int (*cq_destroy)(struct bb_cq *cq);
	/*
	 * Arms a CQ that has a channel and no arm_reg. Called by the CQ's owner, without dev->lock.
	 */
	int (*cq_arm)(struct bb_cq *cq, bool solicited_only);
	/*
	 * Changes the depth of a CQ. @depth is a power of two and differs from the current depth.
	 * At least one CQE is free.
	 */
	int (*cq_resize)(struct bb_cq *cq, uint32_t depth);
	int (*cq_moderate)(struct bb_cq *cq, uint16_t count, uint16_t period_us);
	/*
	 * Sets up qp->sq, qp->rq and qpn; the core has set user_index. The queues must hold exactly
	 * sq_depth and rq_depth outstanding WQEs, because the core reserves that many CQEs in the
	 * CQs. The core has checked @attr and resolved signal_every; recv_cq is never NULL.
	 */
	int (*qp_create)(struct bb_qp *qp, const struct bb_qp_init_attr *attr);
	/*
	 * Executes a transition. The core has checked that the transition is legal and the
	 * attributes are complete. @to may equal the current state. After a transition to RESET the
	 * core resets the rings and the doorbell records. After other transitions it enables the
	 * rings that the new state allows.
	 */
	int (*qp_modify)(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
			 enum bb_qp_state to);
	/*
	 * Queries a QP. The core has filled @attr with the values last set. The driver overwrites
	 * the values that it can read from the device.
	 */
	int (*qp_query)(struct bb_qp *qp, struct bb_qp_attr *attr);
	/*
	 * Returns how often requests were retransmitted since the QP was created. @retries counts
	 * timeouts and NAKs for missing packets, @rnr_retries counts RNR NAKs. Returns -ENOTSUP
	 * without a log line if the device has no counters per QP.
	 */
	int (*qp_retries)(const struct bb_qp *qp, uint64_t *retries, uint64_t *rnr_retries);
	/*
	 * Makes a UD QP in RESET the QP1 of its port: see bb_qp1_claim(). Returns -ENOTSUP without
	 * a log line if QP1 belongs to the kernel.
	 */
	int (*qp1_claim)(struct bb_qp *qp);
	/*
	 * Attach a QP to a multicast group, and detach it. NULL, and attr.max_mcast_grp is 0, if
	 * the device has no groups. The core has checked type, GID and LID, and calls mcast_attach
	 * only for a group to which the QP is not attached. mcast_attach may set m->priv.
	 */
	int (*mcast_attach)(struct bb_qp *qp, struct bb_mcast *m);
	int (*mcast_detach)(struct bb_qp *qp, struct bb_mcast *m);
	/*
	 * Destroys a QP, which is not attached to any multicast group. When the operation returns,
	 * the device writes no further CQE of the QP.
	 */
	int (*qp_destroy)(struct bb_qp *qp);

	/*
	 * Operations on SRQs. They are optional, but a driver has all four or none. srq_create sets
	 * up srq->ring, srqn, ctrl->priv and attr.max_sge.
	 */
	int (*srq_create)(struct bb_srq *srq);
	int (*srq_modify)(struct bb_srq *srq, uint32_t limit);
	int (*srq_query)(struct bb_srq *srq, uint32_t *limit);
	int (*srq_destroy)(struct bb_srq *srq);
};

/*
 * Registers a driver. Only constructors call this function. The following operations may be NULL:
 * list, port_query, gid_query, pkey_query, event_get, stats, drops, progress, clock, channel_*,
 * mr_rereg, dm_*, umem_*, devx, path_ready, ah_*, srq_*, mcast_*, cq_arm, cq_resize, cq_moderate,
 * qp_query, qp_retries and qp1_claim. A driver that lacks another operation is rejected.
 */
void bb_driver_register(const struct bb_driver *drv);

#define BB_DRIVER_REGISTER(drv_)                                                                   \
	static void __attribute__((constructor)) bb_driver_ctor_##drv_(void)                       \
	{                                                                                          \
		bb_driver_register(&(drv_));                                                       \
	}

/* Log type of the library's control path: "bluebell". */
extern int bb_logtype;

#define BB_LOG(level, ...) bb_log(RTE_LOG_##level, __VA_ARGS__)
void bb_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Fills @buf from getrandom(). Returns 0, or -EIO (logged). */
int bb_random(const struct bb_dev *dev, void *buf, size_t len);

/*
 * Resolves BB_LCORE_SELF and checks the lcore. Returns 0, or -EINVAL (logged) if EAL does not use
 * the lcore.
 */
int bb_lcore_resolve(uint32_t lcore, uint32_t *resolved);

/* Logs how QPs of an iWARP device are connected; returns -ENOTSUP. */
int bb_iwarp_refusal(const struct bb_dev *dev);

/*
 * Returns the likely cause of @err and what to do, as the end of a log line; "" if nothing is
 * known. @err is the negative errno with which the kernel rejected a PD, region, window or umem.
 * @dmabuf is true if the memory is that of a dma-buf. The cause is only likely, because the kernel
 * reports no more than the errno.
 */
const char *bb_mem_hint(int err, bool dmabuf);

#endif
