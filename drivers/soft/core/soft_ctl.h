/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The software ConnectX, control path only: handles, their owners, and the command decoder. The
 * data path does not use this header.
 */
#ifndef SOFT_CTL_H
#define SOFT_CTL_H

#include "soft.h"
#include "soft_hooks.h"
#include "soft_host.h"
#include "soft_mcg.h"

#define SOFT_PORT          1u
#define SOFT_ACTIVE_MTU    5u      /* qpc.mtu for an MTU of 128 << 5 bytes */
#define SOFT_MIN_UDP_SPORT 0xc000u /* smallest UDP source port of RoCE v2 */
/* log2 of the READs and atomics that a QP may have outstanding in each direction */
#define SOFT_LOG_MAX_RA 4u
#define SOFT_LOG_MAX_PD 16
#define SOFT_FEW_MKEYS                                                                             \
	0x10000u /* mkey numbers in use at first; more are added when all are used                 \
		  */
#define SOFT_LOG_MAX_UMEM 17
/* A UAR page is a page of the BAR, so the BAR is at most 32 MiB. */
#define SOFT_LOG_MAX_UAR   13
#define SOFT_LOG_DM_ALIGN  12
#define SOFT_MAX_RQ_STRIDE 512 /* largest receive WQE, bytes */
#define SOFT_MAX_SQ_WQE    (BB_WQE_MAX_DS * BB_WQE_SEG)
#define SOFT_ATOMIC_SIZE   8u /* bytes of the largest atomic */
#define SOFT_EQS           8  /* number of completion vectors */
#define SOFT_FIRST_EQN     0x10
#define SOFT_EVENT_QUEUE   256 /* largest number of pending events per context */

/*
 * Numbers of one class of objects, allocated in ascending order. The search for a free number
 * begins after the number allocated last, so that a freed number is reused as late as possible.
 */
struct soft_ids {
	uint64_t *used;
	uint32_t first, size, next;
};

/* Source of random numbers: getrandom(), or a repeatable sequence if the option seed is given. */
struct soft_random {
	bool seeded;
	uint64_t state; /* state of the repeatable sequence; valid only if seeded */
	uint64_t pool[16];
	uint32_t unused; /* random numbers in pool[] that are not used yet */
};

/*
 * Length of the quarantine, as a divisor. A freed number of a struct soft_draw is reused only after
 * n / SOFT_DRAW_HOLD other numbers were freed after it. If no other number is free, the number that
 * was freed longest ago is reused at once.
 */
#define SOFT_DRAW_HOLD 4

/*
 * Numbers of one class of objects, chosen at random. The free numbers are in a ring, in the order
 * in which they were freed. The last n / SOFT_DRAW_HOLD freed numbers are in quarantine: they are
 * not allocated yet. When only numbers in quarantine are free, the ring grows. So the ring and the
 * tables that the numbers index need little memory while few objects exist.
 */
struct soft_draw {
	uint32_t *order; /* array of "max" numbers; 0 at index i means the number first + i */
	uint32_t first;
	uint32_t n, max;     /* count of numbers in the ring, __atomic; largest count */
	uint32_t head, free; /* ring index of the number freed longest ago; count of free numbers */
};

/* The device memory of a device, in whole pages. */
struct soft_memic {
	uint8_t *mem;
	struct soft_dm **owner; /* allocation of each page, NULL if the page is free */
	uint32_t pages;
};

/* A subscription to one type of event: of an object, or of the device. */
struct soft_event_sub {
	LIST_ENTRY(soft_event_sub) link; /* in soft_obj.subs or soft_ctl.subs */
	struct soft_ctx *ctx;
	uint16_t type;
	uint64_t cookie;
};
LIST_HEAD(soft_event_subs, soft_event_sub);

/* State of a device for the control path. Protected by soft_dev.lock, except for events. */
struct soft_ctl {
	struct soft_random random;
	struct soft_draw mkey_draw, qp_draw;
	struct soft_ids cq_ids, pd_ids, umem_ids, uar_ids, counter_ids, rmp_ids;
	uint8_t *mkey_variant; /* low byte of the last key that was created at each index */
	struct soft_umem **umems;
	struct soft_pd **pds;
	struct soft_rmp **rmps;
	struct soft_ctx *counter_ctx[SOFT_MAX_COUNTER_SETS];
	uint32_t counter_refs[SOFT_MAX_COUNTER_SETS]; /* number of QPs that use each counter set */
	struct soft_memic memic;
	int node_fd; /* file of the pages that programs map, -1 without the option mmap */

	/* Protects events. Last in the lock order, because engines take this lock, too. */
	pthread_mutex_t event_lock;
	struct soft_event_subs subs; /* device-wide events */
	LIST_HEAD(, soft_ctx) ctxs;
};

/* A context: the result of one soft_open(). */
struct soft_ctx {
	struct mlx5_ctx pub;
	struct soft_dev *dev;
	const struct soft_host *host; /* virtual machine of the context; NULL for DEVX */
	enum soft_role role;          /* valid only if host is not NULL */
	uint32_t objs, umems, uars, pds, mrs, dms, channels; /* numbers of live handles, by type */
	struct soft_phys *phys; /* mapped memory of the guest, NULL if no key needs it */
	LIST_ENTRY(soft_ctx) link;

	/* Fields that soft_ctl.event_lock protects. */
	void (*sink)(void *arg, const struct mlx5_cmd_event *event); /* NULL: events are queued */
	void *sink_arg;
	struct mlx5_cmd_event events[SOFT_EVENT_QUEUE];
	uint32_t event_head, event_count;
	bool event_lost;
};

struct soft_obj {
	struct mlx5_obj pub;
	uint64_t id;                 /* number from soft_kernel_obj_id() */
	uint8_t destroy[32];         /* command that destroys the object */
	uint32_t destroy_len;        /* length of "destroy" in bytes */
	struct soft_event_subs subs; /* under soft_ctl.event_lock */
};

struct soft_pd {
	struct mlx5_pd pub;
	struct soft_ctx *ctx;
	uint32_t mrs; /* number of keys; __atomic */
	uint32_t qps, rmps;
};

struct soft_mr {
	struct mlx5_mr pub;
	struct soft_ctx *ctx;
	struct soft_pd *pd;
	struct soft_mkey *mkey;
	struct mlx5_mr_attr attr;
	bool writable;       /* the memory was pinned for writing */
	uint64_t room;       /* number of pages to which the MR may grow without a new key */
	struct soft_dm *dm;  /* device memory of the MR, NULL if it is host memory */
	struct soft_map map; /* mapping of the dma-buf, if the MR is one */
};

struct soft_dm {
	struct mlx5_dm pub;
	struct soft_ctx *ctx;
	uint8_t *base;
	uint32_t page, pages;
	uint32_t mrs;
};

struct soft_mw {
	struct mlx5_mw pub;
	struct soft_ctx *ctx;
	struct soft_pd *pd;
	struct soft_mkey *mkey;
};

struct soft_uar {
	struct mlx5_uar pub;
	struct soft_ctx *ctx;
	struct soft_uar_page *page;
	uint32_t reg; /* index of the doorbell register in the page, 0 or 1 */
};

static inline struct soft_ctx *
soft_ctx(struct mlx5_ctx *ctx)
{
	return (struct soft_ctx *)ctx;
}

/* ---- soft_log.c */

/* Logs a formatted text, as soft_log() does. Lines with the same @key share a limit. */
void soft_log_text(uint32_t level, const void *key, const char *text);

/* ---- soft_opts.c */

/* Changes @opts by "key=value,..."; NULL or "" changes nothing. Returns 0, or -EINVAL (logged). */
int soft_opts_parse(const char *name, const char *args, struct soft_opts *opts);
void soft_opts_default(struct soft_opts *opts);
/* Parses one of the options tx_* and rx_* (soft_wire_fault.c). Returns 0 or -EINVAL. */
int soft_net_fault_opt(const char *key, const char *value, struct soft_opts *opts);
/* Parses the option flap (soft_wire_fault.c). Returns 0 or -EINVAL. */
int soft_flap_opt(const char *value, struct soft_opts *opts);
/* Sets the option defect. Returns 0, -EINVAL, or -ENOTSUP in a build without -Ddefects=true. */
int soft_defect_opt(const char *value, struct soft_opts *opts);
/*
 * Returns the name of the device's seeded defect if that defect does not exist on a device that
 * sends packets; else NULL.
 */
const char *soft_defect_of_loop(const struct soft_opts *opts);

/* ---- soft_registry.c */

/*
 * Returns the device with number @index, and creates the device on the first call. Returns NULL if
 * out of memory, or if @index is out of range.
 */
struct soft_dev *soft_dev_get(uint32_t index);
/*
 * Returns the device with number @index if it is open and its port has the wanted type: InfiniBand
 * if @ib, else Ethernet. Returns NULL otherwise.
 */
struct soft_dev *soft_dev_reachable(uint32_t index, bool ib);
/*
 * Set the options, and change the count of contexts by @change. soft_dev_reachable() reads both
 * without a lock. Call these functions under soft_dev.lock.
 */
void soft_dev_set_opts(struct soft_dev *dev, const struct soft_opts *opts);
void soft_dev_count_contexts(struct soft_dev *dev, int change);
/* Sets the device's MAC on the network that connects the devices of a process. */
void soft_dev_own_mac(struct soft_dev *dev);
/* Write the link-local GID, or the IPv4 GID, of device @index on the network of the process. */
void soft_dev_link_local_gid(uint32_t index, uint8_t gid[16]);
void soft_dev_ipv4_gid(uint32_t index, uint8_t gid[16]);
/*
 * Returns the device of this process that has the address @gid on Ethernet, or NULL if there is
 * none.
 */
struct soft_dev *soft_dev_by_gid(const uint8_t gid[16]);
struct soft_dev *soft_dev_by_lid(uint16_t lid);

/* ---- soft_net.c */

/* Fills the GID table, before the device has its first context. */
void soft_dev_fill_gids(struct soft_dev *dev);
int soft_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr);
int soft_pkey_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
int soft_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);
int soft_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		    const uint8_t dgid[16], struct mlx5_av *av);
int soft_av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index, const uint8_t dgid[16]);

/* ---- soft_ids.c */
int soft_ids_init(struct soft_ids *ids, uint32_t first, uint32_t size);
/* Allocates a number (from @first to @end - 1). Returns 0, or -ENOSPC if all are used. */
int soft_ids_alloc(struct soft_ids *ids, uint32_t *id);
int soft_ids_alloc_in(struct soft_ids *ids, uint32_t first, uint32_t end, uint32_t *id);
void soft_ids_free(struct soft_ids *ids, uint32_t id);
/* Gets 64 random bits. Returns 0, or -EIO (logged) if getrandom() fails. */
int soft_random(struct soft_random *r, uint64_t *value);
/*
 * Sets up the numbers from @first to @size - 1, all free. At first the ring holds only the numbers
 * below @start. Returns 0 or -ENOMEM.
 */
int soft_draw_init(struct soft_draw *d, uint32_t first, uint32_t start, uint32_t size);
/* Frees all numbers and sets new limits. @size must not exceed that of soft_draw_init(). */
void soft_draw_resize(struct soft_draw *d, uint32_t start, uint32_t size);
/* Frees all numbers, which then go from @first to @size - 1. */
void soft_draw_move(struct soft_draw *d, uint32_t first, uint32_t size);
/*
 * Allocates a random free number. Returns 0, -ENOSPC if no number is free, or -EIO if there are no
 * random bits.
 */
int soft_draw_take(struct soft_draw *d, struct soft_random *r, uint32_t *id);
void soft_draw_give(struct soft_draw *d, uint32_t id);
/* Allocates a key of mkey_draw with a random low byte. Returns the values of soft_draw_take(). */
int soft_key_take(struct soft_ctl *ctl, uint32_t *key);

/* ---- soft_maps.c */

/*
 * Checks that [addr, addr + len) is mapped for reading, and for writing if @write. A mapping ends
 * with its file. Returns 0, -EFAULT, or another negative errno.
 */
int soft_maps_check(const void *addr, size_t len, bool write);
/*
 * Sets *page to the smallest page size among the mappings of a range. Returns 0 or a negative
 * errno.
 */
int soft_maps_page(const void *addr, size_t len, uint64_t *page);

/* ---- soft_dmabuf.c */

/*
 * Maps a part of a dma-buf. @what names the caller's object, for the log. Returns 0 or a negative
 * errno (logged).
 */
int soft_dmabuf_map(const struct soft_dev *dev, const char *what, int fd, uint64_t offset,
		    uint64_t len, bool write, struct soft_map *map);
/* Unmaps a dma-buf. Does nothing if it is not mapped. */
void soft_dmabuf_unmap(struct soft_map *map);
/* Checks an MR over a dma-buf and maps it. Returns 0 or a negative errno (logged). */
int soft_dmabuf_mr(const struct soft_dev *dev, const struct mlx5_mr_attr *attr,
		   struct soft_map *map);

/* ---- soft_node.c */
int soft_node_start(struct soft_dev *dev);
void soft_node_stop(struct soft_dev *dev);
bool soft_node_uar(struct soft_dev *dev, struct soft_uar_page *page); /* false: no memory */
void soft_node_uar_free(struct soft_dev *dev, struct soft_uar_page *page);
/* Returns @pages pages for device memory, which munmap() frees; NULL if there is no memory. */
uint8_t *soft_node_dm(struct soft_dev *dev, uint32_t pages);

/* ---- soft_umem.c: the functions of struct mlx5_cmd_if */
int soft_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access,
		  uint64_t pgsz_bitmap, struct mlx5_umem **umem);
int soft_umem_reg_dmabuf(struct mlx5_ctx *ctx, int fd, uint64_t offset, size_t len, uint32_t access,
			 uint64_t pgsz_bitmap, struct mlx5_umem **umem);
int soft_umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *umem);
/* Enters a umem in the table under a new number. Returns 0 or -ENOMEM. Under soft_dev.lock. */
int soft_umem_enter(struct soft_ctx *ctx, struct soft_umem *u);
/* Removes a umem without references from the table. Under soft_dev.lock. */
void soft_umem_leave(struct soft_umem *u);

/* ---- soft_pages.c: page lists of mailboxes, big-endian entries of 8 bytes */

/*
 * Maps the @n guest pages of 2^@log_sz bytes that @list names as one range. @ctx must come from
 * soft_open_host(). Returns 0, -ENOMEM, or -EFAULT if a page is not memory of the guest.
 */
int soft_window_open(const struct soft_ctx *ctx, const uint8_t *list, uint32_t n,
		     unsigned int log_sz, struct soft_window *w);
void soft_window_close(struct soft_window *w);
/* Returns true if each entry of the page list permits writes. */
bool soft_pages_writable(const uint8_t *list, uint32_t n);
/*
 * Makes a umem of pages, from offset @off of the first page on; an empty umem if @n is 0. The umem
 * has number 0 and no reference. Returns the same values as soft_window_open().
 */
int soft_umem_of_pages(struct soft_ctx *ctx, const uint8_t *list, uint32_t n, unsigned int log_sz,
		       uint64_t off, bool writable, struct soft_umem **umem);
/* Frees a umem with number 0 that has no references. Does nothing for another umem or for NULL. */
void soft_umem_discard(struct soft_umem *u);
/* Drops a reference. A umem with number 0 is freed with its last reference. */
void soft_umem_unref(struct soft_umem *u);

/* ---- soft_mem.c: the functions of struct mlx5_cmd_if */

/*
 * Rejects ranges that ib_umem_get() rejects before it pins pages: empty ranges and ranges that wrap
 * around. Returns 0, or -EINVAL (logged).
 */
int soft_mem_range(const char *name, const char *what, const void *addr, size_t len);
/*
 * Rejects ranges that ib_umem_get() rejects before it pins pages or while it pins them. Returns 0
 * or a negative errno (logged).
 */
int soft_mem_check(const char *name, const char *what, const void *addr, size_t len, bool write);
int soft_pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **pd);
int soft_pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *pd);
/* Adds @change, 1 or -1, to the number of keys of a PD. A UMR may also change that number. */
void soft_pd_count_mr(struct soft_pd *pd, int change);

/* ---- soft_mr.c */
int soft_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
		struct mlx5_mr **mr);
int soft_mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr);
int soft_mr_rereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags, struct mlx5_pd *pd,
		  void *addr, uint64_t len, uint32_t access);

/* Publishes a key of the table to other processes, if the device shares keys. */
void soft_mkey_share(struct soft_dev *dev, const struct soft_mkey *m);
/*
 * Replaces @m by @next (may be NULL) for all engines at once, and frees @m. Returns 0, or -EBUSY if
 * windows are bound to @m (man ibv_dereg_mr, NOTES; the errno is an assumption [A]).
 */
int soft_mkey_retire(struct soft_dev *dev, struct soft_mkey *m, struct soft_mkey *next);
/* Frees a key of any kind, which is not in the table. */
void soft_mkey_free(struct soft_mkey *m);

/* ---- soft_phys.c */
/* Holds the mapped guest memory of a context, for a new key. Returns NULL if out of memory. */
struct soft_phys *soft_phys_hold(struct soft_ctx *ctx);
void soft_phys_drop(struct soft_phys *p);

/* ---- soft_mkey.c */
int soft_mw_alloc(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t type, struct mlx5_mw **mw);
int soft_mw_free(struct mlx5_ctx *ctx, struct mlx5_mw *mw);
/*
 * Creates a key over up to @entries other keys; the caller adds it to the table. Returns NULL if
 * out of memory.
 */
struct soft_mkey *soft_indirect_make(uint32_t entries);
void soft_indirect_free(struct soft_mkey *m);

/* ---- soft_uar.c */
int soft_uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar);
int soft_uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *uar);
void soft_progress_of(struct mlx5_ctx *ctx, struct mlx5_uar *uar, void (**fn)(void *arg),
		      void **arg);

/* ---- soft_cmd_event.c */
int soft_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
			 unsigned int n, uint64_t cookie);
int soft_event_get(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event);

/* ---- soft_event.c */
/* Returns the subscriptions to events of @obj, or to device-wide events if @obj is NULL. */
struct soft_event_subs *soft_event_subs_of(struct soft_dev *dev, struct mlx5_obj *obj);
/* Removes the subscriptions of @ctx to @obj, or to device-wide events if @obj is NULL. */
void soft_event_remove(struct soft_ctx *ctx, struct mlx5_obj *obj);

/* ---- soft_telemetry.c */
int soft_drops(struct mlx5_ctx *ctx, struct bb_dev_drop *drops, unsigned int n);
int soft_qp_retries(struct mlx5_ctx *ctx, uint32_t qpn, uint64_t *retries, uint64_t *rnr_retries);

/* ---- soft_cmd_qp.c */
int soft_qp1_claim(struct mlx5_ctx *ctx, uint32_t qpn);

/* ---- soft_channel.c */
int soft_channel_create(struct mlx5_ctx *ctx, struct mlx5_channel **ch);
int soft_channel_destroy(struct mlx5_ctx *ctx, struct mlx5_channel *ch);
int soft_channel_subscribe(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie);
int soft_channel_get(struct mlx5_channel *ch, uint64_t *cookie);
/* Removes the subscriptions to a CQ. */
void soft_channel_remove_cq(struct soft_dev *dev, struct soft_cq *cq);

/*
 * Returns true if @ctx may use the objects of @owner. A context may use its own objects, and those
 * of other contexts of the same host as enum soft_role says. @owner is NULL for an object that does
 * not exist.
 */
static inline bool
soft_ctx_may_use(const struct soft_ctx *ctx, const struct soft_ctx *owner)
{
	return owner == ctx || (owner != NULL && ctx->host != NULL && ctx->host == owner->host &&
				(ctx->role == SOFT_ROLE_KERNEL || owner->role == SOFT_ROLE_SHARED));
}

/* ---- soft_cmd.c */

/* A command that the device executes. */
struct soft_cmd {
	struct soft_ctx *ctx;
	struct soft_dev *dev;
	const struct soft_cmd_desc *desc;
	const uint8_t *in;
	size_t inlen;
	uint8_t *out;
	size_t outlen;
	struct mlx5_obj *obj; /* new handle, set only for commands that create an object */
	uint32_t wait_us;     /* time after which the command's effect is complete, us */
};

struct soft_cmd_desc {
	uint16_t op;
	uint16_t inlen;  /* exact length of the input without a list, bytes */
	uint16_t outlen; /* minimum length of the output, bytes */
	const char *name;
	int (*exec)(struct soft_cmd *cmd);
	uint32_t flags; /* SOFT_CMD_* */
};

enum {
	SOFT_CMD_ENTRIES = 1 << 0, /* translation entries of a key may follow the input */
	/* a page list may follow the input if a guest's kernel sends the command (soft_ctx.host) */
	SOFT_CMD_PAGES = 1 << 1,
	SOFT_CMD_HOST = 1 << 2, /* accepted only if soft_ctx.host is set, not from DEVX */
};

/* A field that a command may contain, at offset @base of its mailbox. */
struct soft_field {
	struct bb_prm_field f;
	uint16_t base;
};

/*
 * Rejects a command: writes status and syndrome to the output mailbox and logs one line. @syndrome
 * identifies the cause. Returns -EREMOTEIO.
 */
int soft_cmd_refuse(struct soft_cmd *cmd, enum bb_prm_status status, uint32_t syndrome,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define SOFT_REFUSE(cmd, status, ...)                                                              \
	soft_cmd_refuse(cmd, BB_PRM_STAT_##status, SOFT_SYNDROME | __LINE__, __VA_ARGS__)

/* Rejects a mailbox that has a bit set outside the header and @fields. Returns 0 or -EREMOTEIO. */
int soft_cmd_only(struct soft_cmd *cmd, const struct soft_field *fields, unsigned int n);

/*
 * Look up an object by number in the context of the command. Return NULL if there is no such
 * object, or if another user owns it.
 */
struct soft_cq *soft_cmd_cq(const struct soft_cmd *cmd, uint32_t cqn);
struct soft_rmp *soft_cmd_rmp(const struct soft_cmd *cmd, uint32_t rmpn);
struct soft_qp *soft_cmd_qp(const struct soft_cmd *cmd, uint32_t qpn);
struct soft_pd *soft_cmd_pd(const struct soft_cmd *cmd, uint32_t pdn);
struct soft_umem *soft_cmd_umem(const struct soft_cmd *cmd, uint32_t id);
struct soft_uar_page *soft_cmd_uar(const struct soft_cmd *cmd, uint32_t id);

/* Returns 0 if a buffer or doorbell record of a queue is inside a umem, or rejects the command. */
int soft_cmd_umem_range(struct soft_cmd *cmd, const char *what, const struct soft_umem *umem,
			uint64_t offset, uint64_t len, uint64_t align);
/*
 * Checks the page size of a queue against that of its umem, and the offset against the page size.
 * The start in the page must fit @page_offset, the field of the queue's context. Returns 0, or
 * rejects the command.
 */
int soft_cmd_page_size(struct soft_cmd *cmd, const struct soft_umem *umem, uint32_t log_page_size,
		       uint64_t offset, struct bb_prm_field page_offset);

/* ---- soft_cmd_pages.c */

/* Ring and doorbell record of a queue that a mailbox creates. */
struct soft_queue_mem {
	const char *what, *umem_field; /* names of the ring and of its umem's field, for the log */
	/*
	 * Fields from the mailbox. If umem_valid is not set, the mailbox lists the pages of the
	 * ring.
	 */
	bool umem_valid, dbr_valid;
	uint32_t umem_id, dbr_id;
	uint64_t offset; /* offset of the ring in the umem, bytes */
	uint32_t log_page_size, page_offset;
	struct bb_prm_field page_offset_field;
	uint32_t list;     /* offset of the page list in the mailbox */
	bool has_dbr;      /* the mailbox names a doorbell record */
	uint64_t dbr_addr; /* offset of the record in its umem; or address in the guest */
	/*
	 * Results: umem of the ring, and umem of the doorbell record. When db_umem is set, dbr_addr
	 * is an offset in db_umem.
	 */
	struct soft_umem *umem, *db_umem;
};
/* Looks up the umems that the mailbox names. Returns 0, or rejects the command. */
int soft_queue_mem_find(struct soft_cmd *cmd, struct soft_queue_mem *m);
/*
 * Finds the memory of the ring, which has @bytes and is aligned to @align, and of the doorbell
 * record. Checks that both are inside the umems that the mailbox names. If the mailbox lists pages
 * instead, makes umems of these pages. Returns 0, or rejects the command. The caller takes
 * references to both umems, or calls soft_queue_mem_drop().
 */
int soft_queue_mem_open(struct soft_cmd *cmd, struct soft_queue_mem *m, uint64_t bytes,
			uint64_t align);
void soft_queue_mem_drop(struct soft_queue_mem *m);

/* Functions of struct mlx5_cmd_if. */
int soft_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen);
int soft_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
		    struct mlx5_obj **obj);
int soft_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int soft_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen);
int soft_obj_destroy(struct mlx5_obj *obj);

/* ---- soft_cmd_*.c: one function per command */
int soft_cmd_query_hca_cap(struct soft_cmd *cmd);
int soft_cmd_create_cq(struct soft_cmd *cmd);
int soft_cmd_destroy_cq(struct soft_cmd *cmd);
int soft_cmd_modify_cq(struct soft_cmd *cmd);
int soft_cmd_create_qp(struct soft_cmd *cmd);
int soft_cmd_destroy_qp(struct soft_cmd *cmd);
int soft_cmd_query_qp(struct soft_cmd *cmd);
int soft_cmd_modify_qp(struct soft_cmd *cmd);
int soft_cmd_create_mkey(struct soft_cmd *cmd);
/*
 * CREATE_MKEY for keys over page lists, physical addresses or device memory, and for keys whose
 * translations UMRs load; only if soft_ctx.host is set.
 */
int soft_cmd_create_mtt(struct soft_cmd *cmd);
/* Checks the rights and the QP of a new key. Returns 0, or rejects the command. */
int soft_cmd_mkey_rights(struct soft_cmd *cmd);
/* Allocates the index of a new key. Returns 0 or -EREMOTEIO, the command's result. */
int soft_cmd_mkey_index(struct soft_cmd *cmd, uint32_t *id);
int soft_cmd_destroy_mkey(struct soft_cmd *cmd);
int soft_cmd_alloc_q_counter(struct soft_cmd *cmd);
int soft_cmd_dealloc_q_counter(struct soft_cmd *cmd);
int soft_cmd_query_q_counter(struct soft_cmd *cmd);
int soft_cmd_query_cong_statistics(struct soft_cmd *cmd);
int soft_cmd_alloc_memic(struct soft_cmd *cmd);
int soft_cmd_dealloc_memic(struct soft_cmd *cmd);
int soft_cmd_create_umem(struct soft_cmd *cmd);
int soft_cmd_destroy_umem(struct soft_cmd *cmd);
int soft_cmd_create_rmp(struct soft_cmd *cmd);
int soft_cmd_modify_rmp(struct soft_cmd *cmd);
int soft_cmd_query_rmp(struct soft_cmd *cmd);
int soft_cmd_destroy_rmp(struct soft_cmd *cmd);
int soft_cmd_attach_to_mcg(struct soft_cmd *cmd);
int soft_cmd_detach_from_mcg(struct soft_cmd *cmd);
/* Returns true if the QP is attached to a multicast group. */
bool soft_mcg_busy(const struct soft_dev *dev, const struct soft_qp *qp);

/* ---- soft_cmd_path.c: @ads is the address path of INIT2RTR */

/* Checks the path to a peer. Returns 0, or rejects the command. */
int soft_cmd_check_path(struct soft_cmd *cmd, const uint8_t *ads);
/*
 * Returns the device of a peer in this process. If no device has the address, or the MAC is wrong,
 * logs it and returns NULL: the transition succeeds, and messages to the peer are lost.
 */
struct soft_dev *soft_cmd_find_peer(struct soft_cmd *cmd, const struct soft_qp *qp,
				    const uint8_t *ads, uint32_t remote_qpn);

/* Offsets of the QP context and of its address path in a mailbox. */
#define SOFT_QPC_AT 0x18
#define SOFT_ADS_AT (SOFT_QPC_AT + 0x18)

#endif
