/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* State of drivers/front: users and objects. */
#ifndef FRONT_PRIV_H
#define FRONT_PRIV_H

#include <sys/queue.h>

#include <rte_log.h>
#include <rte_spinlock.h>

#include "bb_prm_kernel.h"
#include "front.h"
#include "soft_host.h"

#define FRONT_MAX_UIDS   256
#define FRONT_UID_SHARED 0xffff /* Linux MLX5_SHARED_RESOURCE_UID */
#define FRONT_BUCKETS    1024
/* log2 of the maximum number of objects of a kind that is only a number, such as XRC domains */
#define FRONT_LOG_MAX_NUMBERS 10
#define FRONT_BOX             16 /* bytes of the smallest mailbox */
/*
 * Maximum interval of calls of front_poll(), in ms, while the guest has QPs, whose timers expire
 * only in front_poll(), or a port that may receive frames.
 */
#define FRONT_POLL_MS 1
/*
 * After a doorbell, a frame, or a poll that left work, the program polls without a pause for this
 * long, ns.
 */
#define FRONT_BUSY_NS 2000000
/* After this time front_poll() runs no further UAR page, ns. */
#define FRONT_TURN_NS 1000000u

/* Kinds of objects, in the order in which a reset destroys them. */
enum front_kind {
	FRONT_MCG, /* a QP in a multicast group */
	FRONT_QP,
	FRONT_RMP,
	FRONT_XRC_SRQ,
	FRONT_FLOW_TABLE, /* this kind and those up to FRONT_TIS belong to drivers/front/eth */
	FRONT_TIR,
	FRONT_RQT,
	FRONT_SQ,
	FRONT_RQ,
	FRONT_TIS,
	FRONT_CQ,
	FRONT_COUNTER,
	FRONT_MKEY,
	FRONT_DM, /* device memory; its number is the index of its first page in the BAR */
	FRONT_UMEM,
	FRONT_PD,
	FRONT_UAR,
	FRONT_TD,
	FRONT_XRCD,
	FRONT_KINDS
};

struct front_cmd;
struct front_eth;

/* An event of the device that is not reported yet. */
struct front_event {
	STAILQ_ENTRY(front_event) next;
	struct mlx5_cmd_event event;
};

/* A user: a context of the device. */
struct front_user {
	uint16_t uid;
	struct mlx5_ctx *ctx; /* NULL if there is no such user */
	struct mlx5_channel *ch;
	uint32_t objs; /* number of objects of the user */
	/*
	 * Events of the context that front_events() has not reported yet, oldest first, and their
	 * number; under event_lock. A card loses no event, so events wait for room in the guest's
	 * event queue.
	 */
	STAILQ_HEAD(, front_event) events;
	uint32_t n_events;
	rte_spinlock_t event_lock;
};

/* A key, as CREATE_MKEY described it. */
struct front_key {
	uint32_t value, pdn;
	bool physical; /* true if the key covers all physical addresses of the guest */
	bool writable;
};

/* An object. The type of its handle depends on its kind. */
struct front_obj {
	enum front_kind kind;
	uint32_t id;
	struct front_user *user;
	struct mlx5_obj *obj;
	struct mlx5_pd *pd;
	struct mlx5_uar *uar;
	uint32_t eqn;     /* valid for a CQ: event queue of its completion events */
	uint32_t dm_size; /* valid for device memory: bytes */
	uint32_t refs;    /* number of objects that use this object: those of drivers/front/eth,
			     and CQs and QPs that use a UAR */
	struct front_obj *page; /* valid for a CQ or QP: its UAR, on which it holds a reference */
	bool orphan; /* true for a UAR that was freed before its last CQ or QP was destroyed */
	struct front_key key; /* valid for a key */
	void *eth;            /* state of an object of drivers/front/eth, which fini() frees */
	void (*fini)(struct front_obj *o); /* NULL if there is nothing to free */
	uint8_t gid[16];                   /* valid for a QP in a multicast group */
	/* Valid for a UAR: runs the QPs of the page; NULL if the device runs them by itself. */
	void (*progress)(void *arg);
	void *progress_arg;
	uint64_t round; /* valid for a UAR: number of the last round that has run the page */
	LIST_ENTRY(front_obj) bucket;
	LIST_ENTRY(front_obj) of_kind;
	LIST_ENTRY(front_obj) used; /* valid for a UAR with refs != 0 */
};

LIST_HEAD(front_objs, front_obj);

struct front {
	const struct mlx5_cmd_if *cmd;
	struct front_host host;
	/* functions that map the guest's memory, in the form that drivers/soft calls */
	struct soft_host memory;
	char device[32];
	char *opts;
	struct front_user users[FRONT_MAX_UIDS];
	struct front_user shared; /* uid 0xffff */
	struct front_objs objs[FRONT_BUCKETS];
	struct front_objs kinds[FRONT_KINDS];
	/*
	 * UARs of CQs and QPs, which are those that front_poll() runs. A poll must not be slow
	 * because a guest holds thousands of UARs without a queue.
	 */
	struct front_objs used_uars;
	uint32_t n_of_kind[FRONT_KINDS];
	uint32_t next_number; /* next number for an object that the device does not have, such as an
				 XRC domain */
	int shared_fd;        /* file of front_share_doorbells(), -1 if no page is shared */
	uint64_t shared_stores; /* result of front_shared_stores() */
	bool stopped;           /* set by front_stop(): the guest must not be accessed */
	bool dead;              /* the device failed; the next reset opens it again */
	uint64_t busy_until; /* time until which front_poll() asks for polls without a pause, ns */
	uint64_t round;      /* number of the round of run_pages() */
	struct front_eth *eth; /* frames of an Ethernet port, NULL without front_ethernet() */
	/* Valid with eth. Executes a command of eth; returns false if the opcode is none of them.
	 */
	bool (*eth_command)(struct front_cmd *cmd);
	/*
	 * Runs the SQs that have not executed all WQEs of their doorbells yet, and receives frames.
	 * Returns milliseconds as front_poll() does.
	 */
	int (*eth_poll)(struct front_eth *e);
	/* Called after the device was opened again. Returns 0 or a negative errno. */
	int (*eth_reopen)(struct front_eth *e);
	/* Frees what front_ethernet() made, after all objects are destroyed. */
	void (*eth_close)(struct front_eth *e);
	bool (*eth_doorbell)(struct front_eth *e, uint32_t uar, const uint8_t *store, uint32_t len);
};

/* A command during its execution. */
struct front_cmd {
	struct front *f;
	uint16_t op;
	struct front_user *user;
	const uint8_t *in;
	uint32_t inlen;
	uint8_t *out;
	uint32_t outlen;
};

/* ---- front_log.c */
extern int front_logtype;
/*
 * Logs one line. A guest can cause most of these lines, so at most FRONT_LOG_BURST of them appear
 * in a second. DEBUG lines have no limit.
 */
#define FRONT_LOG(level, ...)                                                                      \
	do {                                                                                       \
		if (front_may_log(RTE_LOG_##level))                                                \
			rte_log(RTE_LOG_##level, front_logtype, "front: " __VA_ARGS__);            \
	} while (0)
#define FRONT_LOG_BURST 20

/*
 * Returns true if a line of @level may be logged now. Also reports how many lines were dropped in
 * the last second.
 */
bool front_may_log(uint32_t level);

/*
 * Writes a status and a syndrome. The syndrome identifies the line of the code that refused the
 * command.
 */
void front_refuse(struct front_cmd *cmd, enum bb_prm_status status, uint32_t syndrome);
#define FRONT_REFUSE(cmd, status) front_refuse(cmd, BB_PRM_STAT_##status, FRONT_SYNDROME | __LINE__)
/*
 * Writes the status that corresponds to @err, the negative errno of a function. Needed for
 * functions that have no output mailbox.
 */
void front_refuse_errno(struct front_cmd *cmd, int err, uint32_t syndrome);

/* Returns the time in ns, from a clock that does not jump. */
uint64_t front_now(void);

/* ---- front_obj.c */
struct front_obj *front_obj_find(struct front *f, enum front_kind kind, uint32_t id);
/* Adds an object without a number, or returns NULL if out of memory. */
struct front_obj *front_obj_new(struct front *f, enum front_kind kind, struct front_user *user);
/* Gives the object its number, after which it can be found. */
void front_obj_publish(struct front *f, struct front_obj *o, uint32_t id);
void front_obj_free(struct front *f, struct front_obj *o);
/*
 * Destroys the device's object that @o stands for, then @o itself. Returns 0 or a negative errno;
 * -EBUSY: another object uses @o.
 */
int front_obj_destroy(struct front *f, struct front_obj *o);
/* Gives a new CQ or QP its UAR. Returns false if @number is not a UAR. */
bool front_obj_hold_uar(struct front *f, struct front_obj *o, uint32_t number);
/*
 * Frees a UAR. If CQs or QPs use the UAR, it cannot be found from now on, and is freed with the
 * last of them. Returns 0 or a negative errno.
 */
int front_obj_free_uar(struct front *f, struct front_obj *uar);

/* ---- front_user.c */
int front_user_open(struct front *f, struct front_user *u, uint16_t uid);
int front_user_close(struct front *f, struct front_user *u);
/*
 * Returns the user with number @uid, as the mailbox of a command names it; NULL if there is none.
 */
struct front_user *front_user_of(struct front *f, uint16_t uid);
/* Returns true if @u may use the objects of @owner. */
bool front_user_may(const struct front *f, const struct front_user *u,
		    const struct front_user *owner);

/* ---- front_shared.c */
/* Returns true, and counts, if the guest has stored to a register of a shared page. */
bool front_shared_rung(struct front *f, const struct front_obj *uar);
void front_shared_close(struct front *f);

/* ---- front_event.c */
int front_event_watch(struct front_obj *o);
/* Adds an event to the list of the user @arg. For soft_event_sink(). */
void front_event_add(void *arg, const struct mlx5_cmd_event *event);
/* Frees the events of a user whose context is closed. */
void front_event_drop_all(struct front_user *u);
bool front_events(struct front *f);

#endif
