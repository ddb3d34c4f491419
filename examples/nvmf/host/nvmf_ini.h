/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Engine of an NVMe over Fabrics initiator. It has no transport, no clock and no threads: messages
 * of the target and the time come in by function calls, commands go out by struct nvmf_ini_ops, and
 * completed requests by nvmf_ini_take().
 *
 * The engine connects the admin queue, enables the controller, identifies controller and namespace,
 * and connects one I/O queue. The steps of enum nvmf_ini_step are in this order. If the connection
 * is lost, it begins again after a pause, until the time limit of the loss has passed.
 *
 * These are the states of a request:
 *
 *   free -> queued -> sent -> done -> free
 *   sent -> queued           the connection is lost; the request will be sent again
 *   sent -> revoking -> done the target replied, but has not invalidated the request's key
 *
 * The target is not trusted. Its data is in memory that it can change at any time, so the engine
 * reads each field once.
 */
#ifndef NVMF_INI_H
#define NVMF_INI_H

#include "bb_nvmf.h"
#include "nvmf_spec.h"

#define INI_PAGE  4096u /* bytes at the start of the shared memory for data of admin commands */
#define INI_RANGE 16u   /* bytes of shared memory after INI_PAGE for each request's discard */
#define INI_WHY   192u
#define INI_PAUSE_MIN                                                                              \
	20u /* ms before the first attempt to reconnect; doubles after each attempt                \
	     */
#define INI_PAUSE_MAX 1000u
#define INI_STEP_MAX  100u /* ms; the largest step of the time, see nvmf_ini_time() */

struct nvmf_ini;

/* Functions of the transport. None of them may call the engine before it returns. */
struct nvmf_ini_ops {
	/*
	 * Starts to connect queue @qid of @size entries. The transport then calls
	 * nvmf_ini_connected(), nvmf_ini_rejected() or nvmf_ini_lost(). Returns 0 or -errno.
	 */
	int (*connect)(struct nvmf_ini *e, uint16_t qid, uint32_t size,
		       const uint8_t req[NVMF_CM_REQ]);
	/*
	 * Ends both queues. When it returns, the target cannot access any memory through them. The
	 * transport makes no more calls for them.
	 */
	void (*disconnect)(struct nvmf_ini *e);
	/* Sends a command on queue @qid. Returns 0 or -errno. */
	int (*send)(struct nvmf_ini *e, uint16_t qid, const uint8_t cmd[NVMF_SQE]);
	/*
	 * With nvmf_ini_attr.windows: gives the target the right to read or, with @write, to write
	 * the memory of request @index. Returns 0 or -errno.
	 */
	int (*grant)(struct nvmf_ini *e, uint16_t index, const struct bb_nvmf_request *req,
		     bool write, uint32_t *key);
	/*
	 * Takes back the right that grant() has given. The transport then calls nvmf_ini_revoked().
	 * Returns 0 or -errno.
	 */
	int (*revoke)(struct nvmf_ini *e, uint16_t index, uint32_t key);
};

struct nvmf_ini_attr {
	/* checked by nvmf_ini_attr_check(); the caller keeps the strings */
	struct bb_nvmf_attr nvmf;
	/*
	 * INI_PAGE + depth * INI_RANGE bytes, which the target may read and write at address
	 * @shared_addr by @shared_key.
	 */
	uint8_t *shared;
	uint64_t shared_addr;
	uint32_t shared_key;
	const struct nvmf_ini_ops *ops;
	void *user;
};

enum nvmf_ini_step {
	INI_PAUSE,         /* waits before the next attempt to connect */
	INI_CM_ADMIN,      /* the admin queue is being connected */
	INI_CONNECT_ADMIN, /* Connect of the admin queue has been sent */
	INI_CAP,
	INI_ENABLE,
	INI_READY, /* reads CSTS until the controller is ready */
	INI_CONTROLLER,
	INI_QUEUES,
	INI_NAMESPACE,
	INI_CM_IO,
	INI_CONNECT_IO,
	INI_LIVE,
	INI_OVER, /* the connection has ended and will not be restored */
};

enum nvmf_ini_request_state {
	INI_FREE,
	INI_QUEUED,
	INI_SENT,
	INI_REVOKING,
	INI_DONE,
};

struct nvmf_ini_slot {
	uint8_t state, generation;
	uint16_t next; /* next slot of the list that the slot is in */
	int error;
	uint32_t key;  /* rkey of req.mem in the command */
	uint64_t time; /* time in ms at which the command was sent */
	struct bb_nvmf_request req;
	uint64_t addr; /* address of req.mem in the command */
	uint32_t rkey; /* rkey of req.mr; not used with windows */
};

/* List of slots, first in first out. An index equal to nvmf_ini.depth means none. */
struct nvmf_ini_list {
	uint16_t first, last;
};

struct nvmf_ini {
	struct nvmf_ini_attr attr;
	enum nvmf_ini_step step;
	/* properties of the namespace; valid after the first connection works */
	struct bb_nvmf_shape shape;
	struct bb_nvmf_shape next; /* like shape, but of the controller that is being connected */
	uint8_t shift;             /* block size is 1 << shift */
	uint8_t id[24];            /* NGUID and EUI-64 of the namespace */
	uint8_t hostid[16];
	struct nvmf_ini_slot *slot;
	uint32_t depth;  /* number of slots */
	uint32_t window; /* commands that may be sent at a time on this connection */
	uint32_t used, sent;
	struct nvmf_ini_list free, queued, done;
	/*
	 * Time in ms, as passed to nvmf_ini_time(), for the target's keep-alive timer. Time limits
	 * of the target's replies use @now instead, which leaves out pauses of the caller: replies
	 * that arrive in a pause are read only later.
	 */
	uint64_t clock;
	uint64_t now, deadline; /* ms; deadline is the time limit of the step */
	uint64_t lost;          /* time at which the connection was lost; valid if @losing */
	uint64_t ready_by;      /* time at which the controller must be ready */
	uint64_t checked;       /* time of the last check of the requests' timeouts */
	uint64_t alive;         /* time at which the next Keep Alive is due, compared with @clock */
	uint64_t alive_by;      /* time at which the last Keep Alive must be answered */
	uint32_t pause;
	uint64_t live_at; /* time at which the connection last became INI_LIVE */
	uint64_t poll_at; /* time of the next read of CSTS */
	bool losing, was_live, keep_alive_sent, admin_sent;
	uint16_t cntlid;
	uint16_t admin_cid, keep_alive_cid; /* ids of the outstanding admin commands */
	uint32_t io_size;                   /* entries of the I/O queue */
	uint32_t max_size;                  /* maximum entries that the controller permits */
	uint32_t reconnects;
	int error; /* -errno of the last loss */
	char why[INI_WHY];
};

/* Message that a queue has received from the target. */
struct nvmf_ini_response {
	const void *bytes;
	uint32_t len;
	bool invalidated; /* the message has invalidated @key */
	uint32_t key;
};

/* Returns 0, or -EINVAL and sets *@why if a value is out of its range. */
int nvmf_ini_attr_check(const struct bb_nvmf_attr *attr, const char **why);
/* Creates an engine that begins to connect at the first nvmf_ini_run(). Returns 0 or -ENOMEM. */
int nvmf_ini_create(const struct nvmf_ini_attr *attr, struct nvmf_ini **out);
void nvmf_ini_destroy(struct nvmf_ini *e);
/* Ends the connection for good, because the caller closes it. */
void nvmf_ini_close(struct nvmf_ini *e);
/*
 * Sets the time, in ms. Call it before events are passed. If more than INI_STEP_MAX has passed
 * since the last call, the caller has paused, and only INI_STEP_MAX counts for time limits.
 */
void nvmf_ini_time(struct nvmf_ini *e, uint64_t now);
/*
 * Checks the time limits, sends Keep Alive if due, and connects again after a pause. Call it after
 * the events that have arrived were passed.
 */
void nvmf_ini_run(struct nvmf_ini *e);

/* ---- Events of the transport */

/* Reports that queue @qid is connected. @rep is the private data of the target's reply. */
void nvmf_ini_connected(struct nvmf_ini *e, uint16_t qid, const void *rep, uint32_t len);
/* Reports that the target has rejected queue @qid. @rej is the private data of the rejection. */
void nvmf_ini_rejected(struct nvmf_ini *e, uint16_t qid, const void *rej, uint32_t len,
		       const char *why);
/* Reports that a queue could not be connected, or that its connection has ended. */
void nvmf_ini_lost(struct nvmf_ini *e, int error, const char *why);
/* Reports that a message of the target has arrived on queue @qid. */
void nvmf_ini_response(struct nvmf_ini *e, uint16_t qid, const struct nvmf_ini_response *r);
/* Reports that the right to the memory of request @index has been taken back. */
void nvmf_ini_revoked(struct nvmf_ini *e, uint16_t index);

/* ---- Requests */

/*
 * Adds a request whose memory the target can access at @addr by @rkey. Returns as bb_nvmf_submit();
 * the caller has checked the memory.
 */
int nvmf_ini_submit(struct nvmf_ini *e, const struct bb_nvmf_request *req, uint64_t addr,
		    uint32_t rkey);
/* Writes up to @max completed requests to @done. Returns their number. */
uint32_t nvmf_ini_take(struct nvmf_ini *e, struct bb_nvmf_done *done, uint32_t max);

/* ---- Functions that the files of the engine share */

/* Causes of a loss. They decide whether the engine tries to connect again. */
enum nvmf_ini_cause {
	INI_BUSY,   /* the target has no free queue or controller now; another attempt may work */
	INI_BROKEN, /* the connection broke; another attempt may work */
	INI_FATAL,
};

/* Ends the connection. The engine then connects again, or ends (INI_OVER). */
void nvmf_ini_lose(struct nvmf_ini *e, enum nvmf_ini_cause cause, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Starts a step with a time limit. */
void nvmf_ini_step_set(struct nvmf_ini *e, enum nvmf_ini_step step);
/* Returns the name of the request that the target has to answer in a step. */
const char *nvmf_ini_step_name(enum nvmf_ini_step step);
/* Starts to connect a queue, with a time limit. */
void nvmf_ini_connect_queue(struct nvmf_ini *e, uint16_t qid);
/* Reports the end of the connection for good: its requests end with -ECONNRESET. */
void nvmf_ini_over(struct nvmf_ini *e);
/* Sends the command of the step. Defined in nvmf_ini_admin.c, as the next two functions. */
void nvmf_ini_admin_send(struct nvmf_ini *e);
void nvmf_ini_admin_keep_alive(struct nvmf_ini *e);
void nvmf_ini_admin_response(struct nvmf_ini *e, uint32_t status, uint64_t result);
/* Sends the queued requests on a new connection. Defined in nvmf_ini_io.c. */
void nvmf_ini_io_start(struct nvmf_ini *e);
void nvmf_ini_io_response(struct nvmf_ini *e, uint16_t cid, uint32_t status,
			  const struct nvmf_ini_response *r);
/* Queues the sent requests again, or ends them with -ECONNRESET if @again is false. */
void nvmf_ini_io_lost(struct nvmf_ini *e, bool again);
/* Ends all queued requests with -ECONNRESET. */
void nvmf_ini_io_end(struct nvmf_ini *e);
/* Ends the connection if a request has waited for its response too long. */
void nvmf_ini_io_time(struct nvmf_ini *e);
int nvmf_ini_status_errno(uint32_t status);
const char *nvmf_ini_status_text(uint32_t status);

#endif
