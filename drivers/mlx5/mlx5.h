/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the files of the mlx5 driver.
 *
 * Queues are DEVX objects. Command mailboxes (bb_prm.h) go through the command interface
 * (mlx5_cmd.h) to firmware or to the software device. The driver does not know which of the two
 * executes them. lib/core calls the driver with its device lock held, so the driver takes locks
 * only for memory registrations (EAL callbacks) and events.
 */
#ifndef MLX5_H
#define MLX5_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "bb_driver.h"
#include "bb_prm.h"
#include "mlx5_cmd.h"

/* page size in bytes for log_page_size 0; each ring starts on such a page */
#define MLX5_QMEM_PAGE 4096u
#define MLX5_MAX_PORTS 8u
/*
 * log2 of the maximum number of entries that an indirect key can have: one command mailbox carries
 * the entries of a key, and 2^7 entries take 2 KiB.
 */
#define MLX5_LOG_MAX_KLM 7u
/* log2 of the maximum bytes of a message (IBTA vol. 1, 9.7.1). Some cards allow only 2^30 bytes. */
#define MLX5_LOG_MSG_MAX 31u

/* ---- The command interfaces of the process, mlx5_cmd_if.c */
#define MLX5_SOFT "soft" /* interface of the software device; its devices: soft0, soft1, ... */

unsigned int mlx5_cmd_count(void);
bool mlx5_cmd_is_registered(const char *name);
/* Implements list of struct bb_driver. */
int mlx5_list(struct bb_dev_info *info, unsigned int n);
/*
 * Opens the device @name with the first interface that has a device of that name. If @name is a
 * software device, loads the library of the software device first.
 */
int mlx5_ctx_open(const char *name, const char *args, struct mlx5_ctx **ctx);

/* ---- The library of the software device, mlx5_soft_load.c */
/* Returns true if mlx5_soft_load() would find a library file. */
bool mlx5_soft_is_installed(void);
/*
 * Loads the library of the software device, which registers MLX5_SOFT, for the device @name. Any
 * thread. Returns 0; -ELIBACC if no library can be loaded; -ELIBBAD if the file is another library;
 * -ENAMETOOLONG. Errors are logged, and after an error the library is not loaded.
 */
int mlx5_soft_load(const char *name);

/* ---- Capabilities, mlx5_caps.c */
struct mlx5_caps {
	uint32_t ports;
	uint32_t log_max_qp, log_max_qp_sz; /* log_max_qp_sz: 64-byte blocks of an SQ, WQEs of an
					       RQ */
	uint32_t log_max_cq, log_max_cq_sz;
	uint32_t log_max_rmp, log_max_srq_sz; /* 0 if the device has no shared receive queues */
	uint32_t log_max_mr, log_max_mkey;
	uint32_t log_max_ra_req, log_max_ra_res;
	uint32_t log_max_msg;
	/* bit mask: 1 << code for each static rate that QPs can use */
	uint32_t stat_rates;
	uint32_t max_wqe_sq, max_wqe_rq; /* maximum bytes of a WQE */
	/* bytes of each of the two halves of a BlueFlame register; 0 if there is no BlueFlame */
	uint32_t bf_half;
	uint16_t sport_min, sport_max; /* range of RoCEv2 UDP source ports */
	bool atomic;
	bool cong_statistics;
	bool cq_resize, cq_moderation, cqe_compression;
	uint64_t clock_hz;
	uint32_t qp_ts_format; /* value for qpc.ts_format */
	/* maximum entries of an indirect key; 0 if such keys are not supported */
	uint32_t max_klm;
	bool ksm, umr, interleaved, mw, mkey_atomics;
	/*
	 * alignment in bytes of an indirect key with atomics; 0 if an indirect key cannot have
	 * atomics
	 */
	uint32_t mkey_atomic_align;
	/*
	 * bit masks of operand sizes in bytes: supported sizes, and sizes whose results are big
	 * endian
	 */
	uint32_t masked_atomics, masked_atomics_be;
	uint32_t max_umem;
	uint32_t max_mcg, max_qp_mcg; /* 0 if there are no multicast groups */
	uint64_t events; /* bit mask: 1 << type for each object event that can be subscribed to */
	uint64_t max_dm; /* bytes of device memory; 0 if there is none */
	uint32_t max_dm_log_align;
	bool odp, odp_write, odp_read, odp_atomic, odp_implicit;
	bool relaxed_ordering;
	bool relaxed_only; /* the device accepts only keys with relaxed ordering */
	/* number of bonded ports over which QPs are distributed; 0 if QPs need no assigned port */
	uint32_t lag_ports;
};

/* ---- Queue memory, mlx5_qmem.c. A slab is memory for several rings, registered as one umem. */
struct mlx5_slab;

/* Location of a ring in a slab. */
struct mlx5_qbuf {
	uint8_t *addr;
	size_t len; /* bytes, a multiple of the page size */
	uint32_t umem_id;
	uint64_t offset; /* offset of the ring in the umem */
	struct mlx5_slab *slab;
};

LIST_HEAD(mlx5_slab_list, mlx5_slab);

struct mlx5_qmem {
	struct mlx5_ctx *ctx;
	struct mlx5_slab_list slabs;
	uint32_t n_slabs;
	/* the kernel does not let the driver choose page sizes, so each ring has its own slab */
	bool alone;
};

void mlx5_qmem_init(struct mlx5_qmem *qmem, struct mlx5_ctx *ctx);
int mlx5_qmem_fini(struct mlx5_qmem *qmem);
/*
 * Allocates @len bytes for an object in whose context the field @page_offset gives the start.
 * Returns 0 or a negative errno, logged.
 */
int mlx5_qmem_alloc(struct mlx5_qmem *qmem, size_t len, struct bb_prm_field page_offset, int socket,
		    struct mlx5_qbuf *buf);
void mlx5_qmem_free(struct mlx5_qmem *qmem, struct mlx5_qbuf *buf);

/* A page of memory with doorbell records of one lcore. */
struct mlx5_dbr_page;
LIST_HEAD(mlx5_dbr_list, mlx5_dbr_page);

struct mlx5_dbr {
	uint32_t *rec; /* doorbell record: two 32-bit words, initially zero */
	uint32_t umem_id;
	uint64_t offset;
	struct mlx5_dbr_page *page;
};

int mlx5_dbr_alloc(struct mlx5_qmem *qmem, struct mlx5_dbr_list *pages, int socket,
		   struct mlx5_dbr *dbr);
void mlx5_dbr_free(struct mlx5_qmem *qmem, struct mlx5_dbr *dbr);

/* ---- Resources of an lcore on a device, mlx5_uar.c */
struct mlx5_lcore {
	/*
	 * offset of the half of the BlueFlame register to use next; on the lcore's own cache line
	 */
	uint16_t bf_offset;
	uint32_t refs; /* number of CQs, QPs and SRQs that use this struct */
	int socket;
	struct mlx5_uar *uar;
	uint32_t bf_size; /* bytes of a BlueFlame write; 0 if the UAR is not for BlueFlame */
	/*
	 * Doorbell records of QPs and of CQs, on separate cache lines because the software device
	 * reads only QP records.
	 */
	struct mlx5_dbr_list qp_dbrs, cq_dbrs;
	void (*progress)(void *arg);
	void *progress_arg;
};

/*
 * Pointer to the resources of an lcore on the device, and a flag that is 1 while the lcore runs the
 * device. bb_dev_progress() finds the resources of its caller here: see mlx5_progress().
 */
struct mlx5_run {
	struct mlx5_lcore *lcore;
	uint32_t busy;
};

/* ---- Events, mlx5_event.c */
enum mlx5_evt_kind {
	MLX5_EVT_FREE,
	MLX5_EVT_CQ,
	MLX5_EVT_QP,
	MLX5_EVT_SRQ,
};

struct mlx5_evt_slot {
	enum mlx5_evt_kind kind;
	uint32_t gen; /* generation: number of objects that have used the slot */
	union {
		void *obj;
		uint32_t next_free;
	};
};

struct mlx5_evts {
	pthread_mutex_t lock;
	struct mlx5_evt_slot *slots;
	uint32_t n;    /* number of slots */
	uint32_t free; /* index of the first free slot; n if no slot is free */
	bool off;      /* the kernel provides no events; this has been logged */
};

int mlx5_evt_init(struct mlx5_evts *evts);
void mlx5_evt_fini(struct mlx5_evts *evts);

/* ---- Counters, mlx5_counters.c */
#define MLX5_N_COUNTERS 18

struct mlx5_counters {
	struct mlx5_obj *obj; /* NULL if the device has no counter set */
	uint32_t id;
	uint32_t last[MLX5_N_COUNTERS];
	uint64_t sum[MLX5_N_COUNTERS];
};

/* ---- Objects */
struct mlx5_dev {
	struct bb_dev *dev;
	struct mlx5_ctx *ctx;
	const struct mlx5_cmd_if *cmd;
	struct mlx5_caps caps;
	enum bb_link_layer link; /* link layer of port 1, which is that of all ports of a device */
	enum bb_bf_copy bf_copy; /* method of BlueFlame copies of all send queues */
	/* true if no queue copies WQEs to a BlueFlame register; doorbells are then 8-byte stores */
	bool bf_none;
	/* all values of the low byte of an indirect key, in random order */
	uint8_t mkey_variants[256];
	uint8_t mkey_next; /* index into mkey_variants of the byte to use next; wraps */
	bool mkey_shuffled;
	uint32_t lag_next; /* selects the bonded port of the next QP; starts at random */
	struct mlx5_counters counters;
	struct mlx5_qmem qmem;
	struct mlx5_evts evts;
	/* number of existing registrations; __atomic because EAL's callbacks register too */
	uint32_t mrs;
	struct mlx5_run run[RTE_MAX_LCORE];
};

struct mlx5_cq {
	struct mlx5_obj *obj;
	uint32_t cqn;
	struct mlx5_lcore *lcore;
	struct mlx5_qbuf ring;
	/* old ring of a resize that failed half-way; slab is NULL if there is none */
	struct mlx5_qbuf left;
	struct mlx5_dbr dbr;
	uint64_t cookie;
};

/*
 * A QP. Followed in memory by the send queue's struct bb_sq_wqe array and the receive queue's
 * wr_ids.
 */
struct mlx5_qp {
	struct mlx5_obj *obj;
	struct mlx5_lcore *lcore;
	struct mlx5_qbuf ring;
	struct mlx5_dbr dbr;
	uint64_t cookie;
};

/* An SRQ. Followed in memory by the ring's wr_ids and its flags, one per receive. */
struct mlx5_srq {
	struct mlx5_obj *obj;
	struct mlx5_qbuf ring;
	struct mlx5_dbr dbr;
	uint64_t cookie;
};

static inline struct mlx5_dev *
mlx5_dev_of(const struct bb_dev *dev)
{
	return dev->priv;
}

/* ---- mlx5_exec.c: execute commands, log failures and return a negative errno */
/*
 * Logs why the action @what failed, and returns the negative errno that lib/core reports. @err is
 * the negative errno of the command. If @err is -EREMOTEIO the device has refused the command, and
 * @out, the command's output, has a status and a syndrome.
 */
int mlx5_cmd_failed(const struct mlx5_dev *d, const char *what, int err, const void *out);
int mlx5_general(struct mlx5_dev *d, const char *what, const void *in, size_t inlen, void *out,
		 size_t outlen);
int mlx5_obj_create(struct mlx5_dev *d, const char *what, const void *in, size_t inlen, void *out,
		    size_t outlen, struct mlx5_obj **obj);
int mlx5_obj_modify(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj, const void *in,
		    size_t inlen);
int mlx5_obj_query(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj, const void *in,
		   size_t inlen, void *out, size_t outlen);
int mlx5_obj_destroy(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj);
void mlx5_cmd_set_op(void *in, uint16_t opcode);

int mlx5_caps_query(struct mlx5_dev *d);
void mlx5_caps_attr(const struct mlx5_dev *d, struct bb_dev_attr *attr);

/*
 * Sets d->bf_copy and d->bf_none from the device option bf_copy. Chooses a method if the option is
 * not given.
 */
int mlx5_bf_copy_choose(struct mlx5_dev *d);
int mlx5_lcore_get(struct mlx5_dev *d, uint32_t lcore, struct mlx5_lcore **l);
void mlx5_lcore_put(struct mlx5_dev *d, uint32_t lcore);
void mlx5_progress(struct bb_dev *dev);

/*
 * Subscribes to the error events of @obj and returns their cookie in *@cookie. Events with that
 * cookie are reported for @owner.
 */
int mlx5_evt_add(struct mlx5_dev *d, enum mlx5_evt_kind kind, struct mlx5_obj *obj, void *owner,
		 uint64_t *cookie);
void mlx5_evt_del(struct mlx5_dev *d, uint64_t cookie);
/*
 * Subscribes to the events of ports, and logs which events of queues the device cannot report. Call
 * it once, after mlx5_caps_query(). Returns 0 or a negative errno, logged.
 */
int mlx5_evt_open(struct mlx5_dev *d);
/* Returns the value of bb_dev_attr.refusal_events. Valid after mlx5_evt_open(). */
bool mlx5_evt_refusals(const struct mlx5_dev *d);
/* Returns the object of @kind with @cookie; NULL if the object has been destroyed. */
void *mlx5_evt_obj(struct mlx5_dev *d, enum mlx5_evt_kind kind, uint64_t cookie);
int mlx5_event_get(struct bb_dev *dev, struct bb_event *event);

void mlx5_counters_init(struct mlx5_dev *d);
int mlx5_counters_fini(struct mlx5_dev *d);
int mlx5_stats(struct bb_dev *dev, struct bb_dev_stats *stats);
int mlx5_drops(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n);
int mlx5_qp_retries(const struct bb_qp *qp, uint64_t *retries, uint64_t *rnr_retries);
int mlx5_qp1_claim(struct bb_qp *qp);

int mlx5_pd_alloc(struct bb_pd *pd);
int mlx5_pd_free(struct bb_pd *pd);
int mlx5_mr_reg(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_drv_mr **mr);
/* ---- mlx5_mkey.c */
int mlx5_mkey_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct mlx5_obj **obj,
		     uint32_t *key);

int mlx5_mr_dereg(struct bb_pd *pd, struct bb_drv_mr *mr);
int mlx5_mr_rereg(struct bb_pd *pd, struct bb_drv_mr *mr, uint32_t flags, struct bb_pd *new_pd,
		  void *addr, uint64_t len, uint32_t access);

int mlx5_dm_alloc(struct bb_dm_ctrl *dm);
int mlx5_dm_free(struct bb_dm_ctrl *dm);
int mlx5_dm_write(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len);
int mlx5_dm_read(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len);
int mlx5_umem_reg(struct bb_umem_ctrl *umem, const struct bb_umem_attr *attr);
int mlx5_umem_dereg(struct bb_umem_ctrl *umem);
/* ---- mlx5_devx.c */
extern const struct bb_devx_ops mlx5_devx;
int mlx5_channel_create(struct bb_channel *ch);
int mlx5_channel_destroy(struct bb_channel *ch);
int mlx5_channel_get(struct bb_channel *ch, struct bb_cq **cq);
/*
 * Adds a CQ to its channel, so that the channel reports the CQ's events. Required before the CQ is
 * armed.
 */
int mlx5_channel_add(struct mlx5_dev *d, struct bb_cq *cq);

int mlx5_cq_create(struct bb_cq *cq, const struct bb_cq_attr *attr);
int mlx5_cq_destroy(struct bb_cq *cq);
int mlx5_cq_resize(struct bb_cq *cq, uint32_t depth);
int mlx5_cq_moderate(struct bb_cq *cq, uint16_t count, uint16_t period_us);

/* Returns the service type qpc.st of a QP type. */
static inline uint32_t
mlx5_qp_st(enum bb_qp_type type)
{
	return type == BB_QPT_UC   ? BB_PRM_QP_ST_UC
	       : type == BB_QPT_UD ? BB_PRM_QP_ST_UD
				   : BB_PRM_QP_ST_RC;
}

int mlx5_qp_create(struct bb_qp *qp, const struct bb_qp_init_attr *attr);
int mlx5_qp_destroy(struct bb_qp *qp);
int mlx5_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask,
		   enum bb_qp_state to);
int mlx5_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr);

/* ---- mlx5_mcast.c */
int mlx5_mcast_attach(struct bb_qp *qp, struct bb_mcast *m);
int mlx5_mcast_detach(struct bb_qp *qp, struct bb_mcast *m);

int mlx5_srq_create(struct bb_srq *srq);
int mlx5_srq_modify(struct bb_srq *srq, uint32_t limit);
int mlx5_srq_query(struct bb_srq *srq, uint32_t *limit);
int mlx5_srq_destroy(struct bb_srq *srq);

/* ---- mlx5_path.c */
#define MLX5_DEFAULT_HOP_LIMIT 64u
#define MLX5_FLOW_LABEL_MASK   0xfffffu

/* Returns the UDP source port for @flow_label, which must not be 0. */
uint16_t mlx5_udp_sport(const struct mlx5_caps *caps, uint32_t flow_label);
/* Returns the MAC of a path's peer, and the GID type that selects the packet format. */
int mlx5_path_mac(struct mlx5_dev *d, struct mlx5_pd *pd, const struct bb_path *path,
		  uint8_t dmac[6], enum bb_gid_type *type);
int mlx5_path_ready(struct bb_dev *dev, const struct bb_path *path);

/* ---- mlx5_ah.c */
/* Fields of an address vector that exist only on Ethernet, in addition to those of the path. */
struct mlx5_av_eth {
	uint8_t dmac[6];
	uint16_t udp_sport; /* UDP source port; 0 for RoCE v1 */
};
/* Fills in an address vector. @eth must be NULL on InfiniBand. */
void mlx5_av_fill(const struct bb_path *path, const struct mlx5_av_eth *eth, struct bb_wqe_av *av);
int mlx5_ah_resolve(struct bb_pd *pd, const struct bb_path *path, struct bb_wqe_av *av);

/* Fills in the address path @ads of a QP context. The caller has zeroed @ads. */
int mlx5_path_set(struct mlx5_dev *d, const struct bb_qp *qp, const struct bb_path *path,
		  uint32_t dest_qpn, void *ads);
void mlx5_path_get(const struct mlx5_dev *d, const void *ads, struct bb_path *path);

#endif
