/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command interface: all that the mlx5 driver requests from a device.
 *
 * It has two implementations: mlx5_cmd_dv.c on libibverbs and mlx5dv, and the software ConnectX in
 * drivers/soft. Mailboxes are those of lib/format/bb_prm.h, exactly as the kernel's DEVX takes
 * them. The rest mirrors the mlx5dv_devx_* and ibv_* calls named at each function.
 *
 * Functions return 0 or a negative errno. -EREMOTEIO means that the device refused the command; the
 * output mailbox then has the status and the syndrome, as in recent kernels.
 *
 * Thread rule: any thread may call the functions of a context; the implementation serialises them.
 */
#ifndef MLX5_CMD_H
#define MLX5_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_dev.h"

struct mlx5_cmd_if;

#define MLX5_BF_COPY_MAX 16u

/* First member of every implementation's context. */
struct mlx5_ctx {
	const struct mlx5_cmd_if *cmd;
	char name[BB_DEV_NAME_MAX];
	uint32_t comp_vectors; /* completion vectors: query_eqn() knows 0 to comp_vectors - 1 */
	bool dmabuf;           /* kernel and library support dma-buf MRs */
	bool target_progress;  /* bb_dev_attr.target_progress */
	bool cq_resize;        /* MODIFY_CQ may set another ring, if the capabilities allow it */
	bool uar_memory;       /* UAR pages are ordinary memory, which the device reads */
	char bf_copy[MLX5_BF_COPY_MAX]; /* device option: kind of BlueFlame copy, "": any */
};

/* Handles: first members of an implementation's structs. */
struct mlx5_obj {
	struct mlx5_ctx *ctx;
};

struct mlx5_umem {
	uint32_t id;
};

struct mlx5_dm {
	uint64_t len; /* as requested */
};

enum mlx5_uar_type {
	MLX5_UAR_BF, /* write-combining, BlueFlame */
	MLX5_UAR_NC, /* uncached: doorbells only */
};

struct mlx5_uar {
	uint8_t *reg_addr;  /* register to ring: base_addr + 0x800 or + 0xa00 */
	uint8_t *base_addr; /* start of the 4 KiB UAR with the register, for any host page size */
	uint32_t page_id;   /* number for CREATE_QP and CREATE_CQ */
};

/* A channel of completion events. */
struct mlx5_channel {
	int fd; /* readable while an event is pending */
};

struct mlx5_pd {
	uint32_t pdn;
};

struct mlx5_mr {
	uint32_t lkey;
	uint32_t rkey;
};

/* The IBV_ACCESS_* bits, which enum bb_access mirrors; mlx5_cmd_dv.c asserts it. */
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

/* The IBV_REREG_MR_CHANGE_* bits, which enum bb_mr_rereg_flags mirrors. */
enum mlx5_rereg {
	MLX5_REREG_TRANSLATION = 1 << 0,
	MLX5_REREG_PD = 1 << 1,
	MLX5_REREG_ACCESS = 1 << 2,
};

/* Memory that a memory key refers to. */
enum mlx5_mr_kind {
	MLX5_MR_MEM,    /* process memory: addr to addr + len */
	MLX5_MR_DM,     /* device memory from offset on */
	MLX5_MR_DMABUF, /* dma-buf from offset on */
};

/* Attributes of a memory key: the common fields, then those of one kind. */
struct mlx5_mr_attr {
	enum mlx5_mr_kind kind;
	void *addr; /* MEM */
	uint64_t len;
	uint64_t iova;      /* address of the first byte for remote and local access */
	uint32_t access;    /* enum mlx5_access */
	uint64_t offset;    /* DM and DMABUF */
	struct mlx5_dm *dm; /* DM */
	int fd;             /* DMABUF */
};

/* Returns attributes to register memory at its own addresses. */
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

/* A memory window; first member of an implementation's struct. */
struct mlx5_mw {
	uint32_t rkey;
};

struct mlx5_port {
	enum bb_port_state state;
	enum bb_link_layer link_layer;
	uint32_t max_mtu, active_mtu; /* bytes */
	uint16_t lid;
	uint32_t gids;
	uint32_t pkeys;
	bool grh_required; /* InfiniBand: see bb_port_attr */
};

/* Fields of a RoCE address vector beyond the GID. */
struct mlx5_av {
	uint8_t dmac[6];
};

struct mlx5_cmd_event {
	uint16_t type;   /* enum bb_prm_event; 0xffff if the device is gone */
	uint64_t cookie; /* set by the subscription */
	uint32_t port;   /* BB_PRM_EVENT_PORT_CHANGE */
	uint8_t change;  /* BB_PRM_EVENT_PORT_CHANGE: enum bb_prm_port_change */
};
#define MLX5_CMD_EVENT_DEV_FATAL 0xffff

struct mlx5_cmd_if {
	const char *name; /* "dv", "soft" */

	/* ibv_get_device_list() for devices with DEVX; results as bb_dev_list(). */
	int (*list)(struct bb_dev_info *info, unsigned int n);
	/*
	 * mlx5dv_open_device() with MLX5DV_CONTEXT_FLAGS_DEVX. Returns -ENODEV for a device of
	 * another implementation.
	 */
	int (*open)(const char *name, const char *args, struct mlx5_ctx **ctx);
	/* ibv_close_device(). Returns -EBUSY with live objects. */
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
	 * mlx5dv_devx_umem_reg_ex(): access in enum mlx5_access, allowed page sizes. Returns
	 * -EOPNOTSUPP if page sizes cannot be chosen; then only BB_UMEM_ANY_PAGE is valid.
	 */
	int (*umem_reg)(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access,
			uint64_t pgsz_bitmap, struct mlx5_umem **umem);
	/* As umem_reg(), for a dma-buf. */
	int (*umem_reg_dmabuf)(struct mlx5_ctx *ctx, int fd, uint64_t offset, size_t len,
			       uint32_t access, uint64_t pgsz_bitmap, struct mlx5_umem **umem);
	int (*umem_dereg)(struct mlx5_ctx *ctx, struct mlx5_umem *umem);

	/* mlx5dv_devx_alloc_uar(). */
	int (*uar_alloc)(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar);
	int (*uar_free)(struct mlx5_ctx *ctx, struct mlx5_uar *uar);

	/*
	 * ibv_alloc_dm(), ibv_free_dm(), ibv_memcpy_to_dm(), ibv_memcpy_from_dm(). Any thread may
	 * copy. Copies are ordered before later doorbells and after earlier completions.
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

	/* ibv_alloc_pd(), and its number by mlx5dv_init_obj(). */
	int (*pd_alloc)(struct mlx5_ctx *ctx, struct mlx5_pd **pd);
	int (*pd_free)(struct mlx5_ctx *ctx, struct mlx5_pd *pd);

	/*
	 * ibv_reg_mr_iova2(), ibv_reg_dm_mr(), ibv_reg_dmabuf_mr(). Rules: mr_reg of bb_driver.h.
	 */
	int (*mr_reg)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
		      struct mlx5_mr **mr);
	int (*mr_dereg)(struct mlx5_ctx *ctx, struct mlx5_mr *mr);
	/*
	 * ibv_rereg_mr(): flags in enum mlx5_rereg. New memory is registered at its own addresses.
	 * On success @mr has the keys, on an error it is unchanged.
	 */
	int (*mr_rereg)(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags,
			struct mlx5_pd *pd, void *addr, uint64_t len, uint32_t access);
	/* ibv_alloc_mw() for type 1 or 2, ibv_dealloc_mw(). */
	int (*mw_alloc)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t type,
			struct mlx5_mw **mw);
	int (*mw_free)(struct mlx5_ctx *ctx, struct mlx5_mw *mw);

	/* ibv_query_port(), ibv_query_gid_ex(). */
	int (*port_query)(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr);
	int (*gid_query)(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);
	/* ibv_query_pkey(), in host order; @port and @index are in range. */
	int (*pkey_query)(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
	/* Gets the destination MAC with ibv_create_ah() and mlx5dv_init_obj(). */
	int (*av_resolve)(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port,
			  uint32_t sgid_index, const uint8_t dgid[16], struct mlx5_av *av);
	/*
	 * Requests the MAC and never waits. Returns 0 if av_resolve() will not wait, -EAGAIN if the
	 * caller must call again, otherwise the reason why there is none. Any thread. NULL if
	 * av_resolve() never waits.
	 */
	int (*av_ready)(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index,
			const uint8_t dgid[16]);

	/*
	 * mlx5dv_devx_subscribe_devx_event() on one channel per context. @obj is NULL for device
	 * events.
	 */
	int (*event_subscribe)(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
			       unsigned int n, uint64_t cookie);
	/*
	 * mlx5dv_devx_get_event() and ibv_get_async_event(); never blocks. Returns -EAGAIN if none
	 * is pending.
	 */
	int (*event_get)(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event);

	/*
	 * Raw clock of ibv_query_rt_values_ex(), in ticks. Returns -EOPNOTSUPP if it cannot be
	 * read.
	 */
	int (*clock)(struct mlx5_ctx *ctx, uint64_t *now);

	/*
	 * mlx5dv_devx_create_event_channel() for completion events without data, so that pending
	 * events of one CQ merge. Its descriptor never blocks. Returns -EOPNOTSUPP if not
	 * supported.
	 */
	int (*channel_create)(struct mlx5_ctx *ctx, struct mlx5_channel **ch);
	int (*channel_destroy)(struct mlx5_ctx *ctx, struct mlx5_channel *ch);
	/* mlx5dv_devx_subscribe_devx_event() for a CQ's BB_PRM_EVENT_COMP. */
	int (*channel_subscribe)(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie);
	/* mlx5dv_devx_get_event(). Returns -EAGAIN if none is pending. */
	int (*channel_get)(struct mlx5_channel *ch, uint64_t *cookie);

	/*
	 * Not available on cards: received packets that were dropped, as bb_dev_drops(). NULL on
	 * hardware.
	 */
	int (*drops)(struct mlx5_ctx *ctx, struct bb_dev_drop *drops, unsigned int n);
	/*
	 * Not available on cards: retries of one QP, as qp_retries of bb_driver.h. NULL on
	 * hardware.
	 */
	int (*qp_retries)(struct mlx5_ctx *ctx, uint32_t qpn, uint64_t *retries,
			  uint64_t *rnr_retries);

	/*
	 * Inline progress: gets the function with which the owner of @uar runs the device. Leaves
	 * both outputs NULL if the device runs by itself (software with progress=lcore or thread).
	 * The function pointer is NULL on hardware.
	 */
	void (*progress_of)(struct mlx5_ctx *ctx, struct mlx5_uar *uar, void (**fn)(void *arg),
			    void **arg);
};

/*
 * Registers an implementation. Called by constructors only. Exported to libbluebell-soft, in the
 * version node of this release alone (lib/bluebell.map): struct mlx5_cmd_if may change from release
 * to release.
 */
void mlx5_cmd_register(const struct mlx5_cmd_if *cmd);

#define MLX5_CMD_REGISTER(cmd_)                                                                    \
	static void __attribute__((constructor)) mlx5_cmd_ctor_##cmd_(void)                        \
	{                                                                                          \
		mlx5_cmd_register(&(cmd_));                                                        \
	}

#endif
