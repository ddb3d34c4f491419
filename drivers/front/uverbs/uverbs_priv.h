/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the uverbs device node. */
#ifndef UVERBS_PRIV_H
#define UVERBS_PRIV_H

#include <pthread.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "mlx5_cmd.h"
#include "soft_hooks.h"
#include "soft_host.h"
#include "uverbs.h"
#include "uverbs_cmd.h"
#include "uverbs_wait.h"

/* Number of completion vectors; one, because a device has one event queue for completions. */
#define UVERBS_COMP_VECTORS 1
/* Maximum number of READs and atomics that a QP serves, or has outstanding. */
#define UVERBS_MAX_RD_ATOMIC 16

/* Kinds of objects. Destroyed in this order when the node is closed. */
enum uverbs_kind {
	UV_FREE,
	UV_MW,
	UV_QP,
	UV_SRQ,
	UV_CQ,
	UV_OBJ,
	UV_AH,
	UV_MR,
	UV_DM,
	UV_UMEM,
	UV_UAR,
	UV_ORPHAN_UAR, /* a UAR that the program freed while CQs or QPs used it */
	UV_PD,
	UV_KINDS
};

struct uverbs_handle {
	enum uverbs_kind kind;
	void *p;
};

/* Kinds of file descriptors from which a program reads events. */
enum uverbs_events_kind {
	UV_ASYNC,   /* read by ibv_get_async_event() */
	UV_DEVX,    /* DEVX events; a read returns the cookie and the EQE */
	UV_CHANNEL, /* DEVX events without data; a read returns only the cookie */
	UV_COMP,    /* read by ibv_get_cq_event() */
};

/*
 * Maximum number of pending events of UV_DEVX, and of UV_ASYNC, where Linux has no limit. The ring
 * of UV_ASYNC begins with the former and grows.
 */
#define UVERBS_MAX_EVENTS       256
#define UVERBS_MAX_ASYNC_EVENTS (1u << 20)

struct uverbs_events {
	unsigned int refs; /* atomic */
	struct uverbs_file *file;
	struct uverbs_events *next; /* list of the file, under uverbs_file.lock */
	enum uverbs_events_kind kind;
	int program_fd; /* number of the program's descriptor; -1 after it was closed */
	/* duplicate of the program's descriptor; readable while an event is pending */
	int fd;
	/* valid for UV_CHANNEL and UV_COMP; NULL after the node was closed */
	struct mlx5_channel *ch;
	bool closed; /* protected by uverbs_file.lock */
	struct uverbs_wait wait;
	/*
	 * Pending events, under uverbs_file.event_lock. For UV_CHANNEL only their number is here,
	 * without completion events, which are in the channel.
	 */
	struct mlx5_cmd_event *event;
	unsigned int first, n, size;
	bool lost; /* events were lost; for UV_DEVX, since the last read that has reported it */
};

/* A subscription to DEVX events. The device gets its index in uverbs_file.subs as the cookie. */
struct uverbs_sub {
	/* descriptor that gets the events; NULL if it is closed or the entry is free */
	struct uverbs_events *to;
	const void *obj; /* object of the events, NULL for events of the device */
	uint64_t cookie; /* cookie that the program has given */
	uint64_t types;  /* mask of the types of events */
	uint64_t waits;  /* valid for UV_CHANNEL: mask of the types of pending events */
	bool used;
};

/* The attachment of a QP to a multicast group. */
struct uverbs_group;

struct uverbs_file {
	unsigned int refs; /* atomic */
	struct uverbs_attr attr;
	struct mlx5_ctx *soft; /* context of the software device; NULL after the node was closed */
	pthread_mutex_t lock;
	struct uverbs_handle *handles;
	uint32_t n_handles, last;
	struct uverbs_events *events;
	struct uverbs_group *groups;
	/*
	 * Protects pending events. Last in the lock order, because the device delivers events with
	 * its own locks held.
	 */
	pthread_mutex_t event_lock;
	/* descriptor of asynchronous events; NULL before the program has created its context */
	struct uverbs_events *async;
	struct uverbs_sub *subs;
	uint32_t n_subs;
};

/* ---- uverbs_file.c. All of the following are called with uverbs_file.lock held. */
/* Stores an object and returns its handle, 0 if there is no memory. */
uint32_t uverbs_keep(struct uverbs_file *f, enum uverbs_kind kind, void *p);
/* Returns the object, NULL if the handle is free or of another kind. */
void *uverbs_find(const struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle);
/* Frees a handle, but not its object. */
void uverbs_forget(struct uverbs_file *f, uint64_t handle);
/* ---- uverbs_event.c */
/*
 * Bit of the cookie of events for ibv_get_async_event(); the other bits are the handle of the
 * object.
 */
#define UVERBS_COOKIE ((uint64_t)1 << 63)

/*
 * Creates a descriptor from which the program reads events. Returns its number in the program, or a
 * negative errno.
 */
int uverbs_events_new(struct uverbs_file *f, enum uverbs_events_kind kind);
/* Returns the events descriptor that has the number @fd in the program, NULL if there is none. */
struct uverbs_events *uverbs_events_find(const struct uverbs_file *f, int fd);
/* Subscribes @ev to DEVX events. Returns 0 or an errno. */
int uverbs_subscribe(struct uverbs_file *f, struct uverbs_events *ev, struct mlx5_obj *obj,
		     const uint16_t *types, unsigned int n, uint64_t cookie);
/* Frees the subscriptions of an object that is destroyed. */
void uverbs_unsubscribe(struct uverbs_file *f, const void *obj);
/* Starts and ends the delivery of events. */
void uverbs_events_start(struct uverbs_file *f);
void uverbs_events_stop(struct uverbs_file *f);

/* ---- uverbs_pending.c. Those of the first group are called with event_lock held. */
/* Makes a descriptor readable. This function needs no lock. */
void uverbs_pending_raise(struct uverbs_events *ev);
/* Makes room for more events of UV_ASYNC or UV_DEVX. Returns false if that fails. */
bool uverbs_pending_room(struct uverbs_events *ev);
/* Queues an event, unless there is no room. */
void uverbs_pending_add(struct uverbs_events *ev, const struct mlx5_cmd_event *event,
			uint64_t cookie);
/*
 * Makes an event pending for a descriptor of events without data. As deliver_event() of Linux does,
 * counts events of a subscription and type once until they are read.
 */
void uverbs_pending_add_type(struct uverbs_sub *sub, uint16_t type);
/*
 * Removes @n pending events. A descriptor without pending events is not readable, unless its
 * channel has events. The file's lock excludes other reads. Returns false if the eventfd fails.
 */
bool uverbs_pending_removed(struct uverbs_events *ev, unsigned int n);

/* Takes the oldest event. Returns false if none is pending. */
bool uverbs_pending_take(struct uverbs_events *ev, struct mlx5_cmd_event *event);
/* Takes an event of a subscription to @ev, a UV_CHANNEL. Returns false if none is pending. */
bool uverbs_pending_take_type(struct uverbs_events *ev, uint64_t *cookie);
/* Returns true, once, if events were lost since the last call. */
bool uverbs_pending_lost(struct uverbs_events *ev);
/* Removes the unread asynchronous events of an object that is destroyed. */
void uverbs_pending_drop(struct uverbs_file *f, uint64_t handle);

/* ---- uverbs_destroy.c */
/* Destroys an object of @kind. Returns 0 or an errno. */
int uverbs_end(struct uverbs_file *f, enum uverbs_kind kind, void *p);
/* Destroys the object of @handle. Returns 0 or an errno. */
int uverbs_destroy(struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle);
/*
 * Frees a UAR. Returns 0 or an errno. Linux frees a UAR that CQs and QPs use, and libmlx5 does so
 * if a program closes a device with CQs. Such a UAR is freed with the file.
 */
int uverbs_uar_destroy(struct uverbs_file *f, uint64_t handle);
/* Destroys all objects. Returns false if some are left. */
bool uverbs_destroy_all(struct uverbs_file *f);

/* ---- uverbs_query.c: return 0 or an errno */
/* Fills in the provider's part of the response for a context. */
void uverbs_fill_context(const struct uverbs_file *f, struct mlx5_ib_alloc_ucontext_resp *to);
int uverbs_get_context(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_query_device(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_query_device_ex(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_query_port(struct uverbs_file *f, const struct uverbs_cmd *c);
/* Returns true if the device has a clock that the program can read. */
bool uverbs_has_clock(const struct uverbs_file *f);

/* ---- uverbs_cq.c, uverbs_qp.c, uverbs_srq.c, uverbs_mcast.c: return 0 or an errno */
int uverbs_create_cq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_create_cq_ex(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_resize_cq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_modify_cq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_create_srq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_modify_srq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_query_srq(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_create_qp(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_create_qp_ex(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_modify_qp(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_modify_qp_ex(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_query_qp(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_attach_mcast(struct uverbs_file *f, const struct uverbs_cmd *c);
int uverbs_detach_mcast(struct uverbs_file *f, const struct uverbs_cmd *c);
/* Returns true if the QP of @handle is attached to a multicast group. */
bool uverbs_qp_has_groups(const struct uverbs_file *f, uint32_t handle);
/* Detaches all QPs from their multicast groups. */
void uverbs_mcast_end(struct uverbs_file *f);

/* ---- uverbs_write.c, uverbs_ioctl.c */
/* Execute a command of write(), a method of ioctl(). Return 0 or an errno. */
int uverbs_command(struct uverbs_file *f, struct uverbs_cmd *c);
int uverbs_method(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h);

/* ---- uverbs_import.c */
/* Executes a method that imported contexts need. Returns 0 or an errno. */
int uverbs_import_method(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h);

#endif
