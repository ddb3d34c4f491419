/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command interface: all functions that the mlx5 driver requires of a device.
 *
 * The interface has two implementations: mlx5_cmd_dv.c on libibverbs and mlx5dv, and the software
 * ConnectX in drivers/soft. Mailboxes are those of lib/format/bb_prm.h, in the format of the
 * kernel's DEVX. The other functions do what the mlx5dv_devx_* or ibv_* functions named in their
 * comments do.
 *
 * Functions return 0 or a negative errno. -EREMOTEIO means that the device has refused the command.
 * The output mailbox then has the status and the syndrome, as in recent kernels.
 *
 * Thread rule: any thread may call the functions of a context, because the implementation
 * serialises them.
 */
#ifndef MLX5_CMD_H
#define MLX5_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_dev.h"

struct bb_rung;
struct mlx5_cmd_if;

#define MLX5_BF_COPY_MAX 16u

/* A device context. First member of the context of each implementation. */
struct mlx5_ctx {
	const struct mlx5_cmd_if *cmd;
	char name[BB_DEV_NAME_MAX];
	/* number of completion vectors; query_eqn() accepts 0 to comp_vectors - 1 */
	uint32_t comp_vectors;
	bool dmabuf;          /* true if kernel and library support dma-buf MRs */
	bool target_progress; /* value for bb_dev_attr.target_progress */
	/* true if MODIFY_CQ may set another ring, provided that the capabilities allow it */
	bool cq_resize;
	bool uar_memory; /* true if UAR pages are ordinary memory, which the device reads */
	bool no_bf;      /* device option: no BlueFlame register, as if the device had none */
	/* device option: method of BlueFlame copies; "none", or "" if the driver chooses */
	char bf_copy[MLX5_BF_COPY_MAX];
};

/* Handles of objects. Each is the first member of the corresponding struct of an implementation. */
struct mlx5_obj {
	struct mlx5_ctx *ctx;
};

struct mlx5_umem {
	uint32_t id;
};

struct mlx5_dm {
	uint64_t len; /* bytes as requested */
};

enum mlx5_uar_type {
	MLX5_UAR_BF, /* write-combining, for BlueFlame and doorbells */
	MLX5_UAR_NC, /* uncached, for doorbells only */
};

struct mlx5_uar {
	uint8_t *reg_addr; /* register for doorbells: base_addr + 0x800 or + 0xa00 */
	/* start of the 4 KiB UAR that contains the register, whatever the host's page size is */
	uint8_t *base_addr;
	uint32_t page_id; /* number of the UAR for CREATE_QP and CREATE_CQ */
	struct bb_rung
		*rung; /* list of the QPs that rang the register (bb_rung.h); NULL on a card */
};

/* A channel of completion events. */
struct mlx5_channel {
	int fd; /* file descriptor that is readable while an event is pending */
};

struct mlx5_pd {
	uint32_t pdn;
};

struct mlx5_mr {
	uint32_t lkey;
	uint32_t rkey;
};

/* Access rights, equal to the IBV_ACCESS_* bits and to enum bb_access; mlx5_cmd_dv.c asserts it. */
enum mlx5_access {
	MLX5_ACCESS_LOCAL_WRITE = 1 << 0,
	MLX5_ACCESS_REMOTE_WRITE = 1 << 1,
	MLX5_ACCESS_REMOTE_READ = 1 << 2,
	MLX5_ACCESS_REMOTE_ATOMIC = 1 << 3,
	MLX5_ACCESS_MW_BIND = 1 << 4,
	MLX5_ACCESS_ZERO_BASED = 1 << 5,
	MLX5_ACCESS_ON_DEMAND = 1 << 6,
	MLX5_ACCESS_HUGETLB = 1 << 7,
	MLX5_ACCESS_RELAXED_ORDERING = 1 << 20,
};

/* Flags of mr_rereg, equal to the IBV_REREG_MR_CHANGE_* bits and to enum bb_mr_rereg_flags. */
enum mlx5_rereg {
	MLX5_REREG_TRANSLATION = 1 << 0,
	MLX5_REREG_PD = 1 << 1,
	MLX5_REREG_ACCESS = 1 << 2,
};

/* Types of memory that a memory key refers to. */
enum mlx5_mr_kind {
	MLX5_MR_MEM,    /* process memory: addr to addr + len */
	MLX5_MR_DM,     /* device memory: dm, from offset on */
	MLX5_MR_DMABUF, /* dma-buf: fd, from offset on */
};

/* Attributes of a memory key: first the fields of all types of memory, then those of one type. */
struct mlx5_mr_attr {
	enum mlx5_mr_kind kind;
	void *addr; /* valid only for MEM */
	uint64_t len;
	uint64_t iova;      /* address by which remote and local requests access the first byte */
	uint32_t access;    /* enum mlx5_access */
	uint64_t offset;    /* valid only for DM and DMABUF: offset of the first byte */
	struct mlx5_dm *dm; /* valid only for DM */
	int fd;             /* valid only for DMABUF */
};

/* Returns the attributes of a registration of @len bytes at @addr, with iova equal to @addr. */
static inline struct mlx5_mr_attr
mlx5_mr_mem(void *addr, uint64_t len, uint32_t access)
{
	struct mlx5_mr_attr attr = {
		.kind = MLX5_MR_MEM,
		.addr = addr,
		.len = len,
		.iova = (uintptr_t)addr,
		.access = access,
	};

	return attr;
}

/* A memory window. First member of the corresponding struct of an implementation. */
struct mlx5_mw {
	uint32_t rkey;
};

struct mlx5_port {
	enum bb_port_state state;
	enum bb_link_layer link_layer;
	uint32_t max_mtu, active_mtu; /* MTUs in bytes */
	uint16_t lid;
	uint32_t gids;
	uint32_t pkeys;
	bool grh_required; /* valid only for InfiniBand: see bb_port_attr */
};

/* Fields of a RoCE address vector other than the GID. */
struct mlx5_av {
	uint8_t dmac[6];
};

struct mlx5_cmd_event {
	uint16_t type;   /* enum bb_prm_event; 0xffff if the device is gone */
	uint64_t cookie; /* cookie of the subscription, which identifies the object */
	uint32_t port;   /* valid only for BB_PRM_EVENT_PORT_CHANGE */
	uint8_t change;  /* valid only for BB_PRM_EVENT_PORT_CHANGE: enum bb_prm_port_change */
};
#define MLX5_CMD_EVENT_DEV_FATAL 0xffff

struct mlx5_cmd_if {
	const char *name; /* name of the implementation: "dv" or "soft" */

	/* ibv_get_device_list() for devices with DEVX. Returns the same values as bb_dev_list(). */
	int (*list)(struct bb_dev_info *info, unsigned int n);
	/*
	 * mlx5dv_open_device() with MLX5DV_CONTEXT_FLAGS_DEVX. Returns -ENODEV if this
	 * implementation has no device @name.
	 */
	int (*open)(const char *name, const char *args, struct mlx5_ctx **ctx);
	/* ibv_close_device(). Returns -EBUSY while objects of the context exist. */
	int (*close)(struct mlx5_ctx *ctx);

	/* mlx5dv_devx_general_cmd(), _obj_create(), _obj_modify(), _obj_query(),
	 * _obj_destroy(). */
	int (*general)(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out,
		       size_t outlen);
	int (*obj_create)(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out,
			  size_t outlen, struct mlx5_obj **obj);
	int (*obj_modify)(struct mlx5_obj *obj, const void *in, size_t inlen, void *out,
			  size_t outlen);
	int (*obj_query)(struct mlx5_obj *obj, const void *in, size_t inlen, void *out,
			 size_t outlen);
	int (*obj_destroy)(struct mlx5_obj *obj);

	/*
	 * mlx5dv_devx_umem_reg_ex(). @access: enum mlx5_access. @pgsz_bitmap: allowed page sizes.
	 * Returns -EOPNOTSUPP if page sizes cannot be chosen; then only BB_UMEM_ANY_PAGE is valid.
	 */
	int (*umem_reg)(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access,
			uint64_t pgsz_bitmap, struct mlx5_umem **umem);
	/* Does the same as umem_reg(), but for @len bytes of a dma-buf from @offset on. */
	int (*umem_reg_dmabuf)(struct mlx5_ctx *ctx, int fd, uint64_t offset, size_t len,
			       uint32_t access, uint64_t pgsz_bitmap, struct mlx5_umem **umem);
	int (*umem_dereg)(struct mlx5_ctx *ctx, struct mlx5_umem *umem);

	/* mlx5dv_devx_alloc_uar(). */
	int (*uar_alloc)(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar);
	int (*uar_free)(struct mlx5_ctx *ctx, struct mlx5_uar *uar);

	/*
	 * ibv_alloc_dm(), ibv_free_dm(), ibv_memcpy_to_dm(), ibv_memcpy_from_dm(). Any thread may
	 * copy. A copy takes effect before later doorbells and after earlier completions.
	 */
	int (*dm_alloc)(struct mlx5_ctx *ctx, uint64_t len, uint32_t log_align,
			struct mlx5_dm **dm);
	int (*dm_free)(struct mlx5_ctx *ctx, struct mlx5_dm *dm);
	int (*dm_write)(struct mlx5_ctx *ctx, struct mlx5_dm *dm, uint64_t off, const void *src,
			size_t len);
	int (*dm_read)(struct mlx5_ctx *ctx, struct mlx5_dm *dm, void *dst, uint64_t off,
		       size_t len);

	/* mlx5dv_devx_query_eqn(). */
	int (*query_eqn)(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn);

	/* ibv_alloc_pd(); the number of the PD comes from mlx5dv_init_obj(). */
	int (*pd_alloc)(struct mlx5_ctx *ctx, struct mlx5_pd **pd);
	int (*pd_free)(struct mlx5_ctx *ctx, struct mlx5_pd *pd);

	/*
	 * ibv_reg_mr_iova2(), ibv_reg_dm_mr(), ibv_reg_dmabuf_mr(). The rules of mr_reg of
	 * bb_driver.h apply.
	 */
	int (*mr_reg)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
		      struct mlx5_mr **mr);
	int (*mr_dereg)(struct mlx5_ctx *ctx, struct mlx5_mr *mr);
	/*
	 * ibv_rereg_mr(). @flags: enum mlx5_rereg. New memory is registered with iova equal to its
	 * address. On success @mr has the new keys; on an error @mr is unchanged.
	 */
	int (*mr_rereg)(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags,
			struct mlx5_pd *pd, void *addr, uint64_t len, uint32_t access);
	/* ibv_alloc_mw() for a window of @type 1 or 2; ibv_dealloc_mw(). */
	int (*mw_alloc)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t type,
			struct mlx5_mw **mw);
	int (*mw_free)(struct mlx5_ctx *ctx, struct mlx5_mw *mw);

	/* ibv_query_port(), ibv_query_gid_ex(). */
	int (*port_query)(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr);
	int (*gid_query)(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);
	/*
	 * ibv_query_pkey(). Returns the P_Key in host order. The caller has checked @port and
	 * @index.
	 */
	int (*pkey_query)(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
	/*
	 * Returns the destination MAC of a GID. Uses ibv_create_ah() and mlx5dv_init_obj(), so it
	 * may wait.
	 */
	int (*av_resolve)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			  uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);
	/*
	 * Starts to resolve the MAC and never waits. Returns 0 if av_resolve() will not wait,
	 * -EAGAIN if the caller must call again, otherwise the reason why the MAC cannot be
	 * resolved. Any thread. The function pointer is NULL if av_resolve() never waits.
	 */
	int (*av_ready)(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			const uint8_t dgid[16]);

	/*
	 * mlx5dv_devx_subscribe_devx_event() on the event channel of the context. @obj is NULL for
	 * device events.
	 */
	int (*event_subscribe)(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
			       unsigned int n, uint64_t cookie);
	/*
	 * mlx5dv_devx_get_event() and ibv_get_async_event(). Never waits. Returns -EAGAIN if no
	 * event is pending.
	 */
	int (*event_get)(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event);

	/*
	 * Reads the raw clock of ibv_query_rt_values_ex(), in ticks. Returns -EOPNOTSUPP if the
	 * device has no readable clock.
	 */
	int (*clock)(struct mlx5_ctx *ctx, uint64_t *now);

	/*
	 * mlx5dv_devx_create_event_channel() for completion events. The events have no data, so
	 * that pending events of one CQ merge. Reads of the channel's descriptor never wait.
	 * Returns -EOPNOTSUPP if the kernel does not support channels.
	 */
	int (*channel_create)(struct mlx5_ctx *ctx, struct mlx5_channel **ch);
	int (*channel_destroy)(struct mlx5_ctx *ctx, struct mlx5_channel *ch);
	/* mlx5dv_devx_subscribe_devx_event() for the event BB_PRM_EVENT_COMP of a CQ. */
	int (*channel_subscribe)(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie);
	/* mlx5dv_devx_get_event(). Returns -EAGAIN if no event is pending. */
	int (*channel_get)(struct mlx5_channel *ch, uint64_t *cookie);

	/*
	 * Reads the counters of dropped received packets for bb_dev_drops(). Only the software
	 * device has them; the function pointer is NULL on hardware.
	 */
	int (*drops)(struct mlx5_ctx *ctx, struct bb_dev_drop *drops, unsigned int n);
	/*
	 * Reads the numbers of retries of one QP for qp_retries of bb_driver.h. Only the software
	 * device has them; the function pointer is NULL on hardware.
	 */
	int (*qp_retries)(struct mlx5_ctx *ctx, uint32_t qpn, uint64_t *retries,
			  uint64_t *rnr_retries);

	/*
	 * Makes a UD QP of the context, which must be in RESET, the QP1 of the port: it receives
	 * the packets for QPN 1, and sends from QPN 1. The QP stays QP1 until it is destroyed.
	 * Returns -EBUSY (logged) if the port has a QP1. On a card QP1 belongs to the kernel, so
	 * only the software device has this operation; the function pointer is NULL on hardware.
	 */
	int (*qp1_claim)(struct mlx5_ctx *ctx, uint32_t qpn);

	/*
	 * For inline progress: returns the function and its argument with which the owner of @uar
	 * runs the device. Both are NULL if the device runs by itself (software with progress=lcore
	 * or thread). The function pointer progress_of is NULL on hardware.
	 */
	void (*progress_of)(struct mlx5_ctx *ctx, struct mlx5_uar *uar, void (**fn)(void *arg),
			    void **arg);
};

/*
 * Registers an implementation. Only constructors call this function. libbluebell-soft may call it,
 * but only in the same release (version node in lib/bluebell.map), because struct mlx5_cmd_if may
 * change from release to release.
 */
void mlx5_cmd_register(const struct mlx5_cmd_if *cmd);

#define MLX5_CMD_REGISTER(cmd_)                                                                    \
	static void __attribute__((constructor)) mlx5_cmd_ctor_##cmd_(void)                        \
	{                                                                                          \
		mlx5_cmd_register(&(cmd_));                                                        \
	}

#endif
