/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Engine of an NVMe over Fabrics target. It has no transport, no clock and no threads: capsules and
 * the time come in by function calls, transfers and responses go out by struct nvmf_ops.
 *
 * A target has subsystems, a subsystem has namespaces. A host that connects an admin queue gets a
 * controller of a subsystem, and may then connect I/O queues to that controller. A queue has one
 * request for each entry. These are the states of a request:
 *
 * - most commands: free, pulling (data of the host), I/O (of the namespace), sending (data and
 *   response), free;
 * - Asynchronous Event Request: free, waiting, sending, free.
 *
 * A capsule that arrives while all requests are in use waits: the host may send a command as soon
 * as it has a response, which is before the transport knows that the response was delivered.
 *
 * Thread rule: all calls for a target come from one thread. Control calls return 0 or -errno. No
 * function for commands allocates memory, except for the Connect command of an admin queue.
 */
#ifndef NVMF_H
#define NVMF_H

#include <stdbool.h>
#include <stddef.h>

#include "nvmf_spec.h"

#define NVMF_MAX_QUEUES 128u  /* maximum I/O queues of a controller */
#define NVMF_MAX_DEPTH  1024u /* maximum entries of a queue */
#define NVMF_ASYNC      4u    /* maximum outstanding Asynchronous Event Requests of a controller */
#define NVMF_ERRORS     8u    /* entries of the error log */
#define NVMF_CHANGED    32u   /* NSIDs in a list of changed namespaces; if more change: "all" */
#define NVMF_FEATURES   6u    /* features whose value is only stored */
#define NVMF_ZERO_PART  (1u << 20) /* maximum bytes of memory that a turn sets to zero */
#define NVMF_STATUSES   32u        /* different status codes that are counted */
#define NVMF_LATENCIES  24u        /* classes of the latency histogram */
#define NVMF_PAUSE_MS   100u       /* a longer gap between nvmf_target_time() calls is a pause */

struct nvmf_queue;
struct nvmf_req;
struct nvmf_ns;

/* Functions of the transport. They must not call the engine before they return. */
struct nvmf_ops {
	/*
	 * Reads @len bytes at @offset of the host's buffer (address r->addr, rkey r->key) to @to,
	 * in the request's memory. The transport then calls nvmf_req_pulled().
	 */
	void (*pull)(struct nvmf_queue *q, struct nvmf_req *r, void *to, uint32_t offset,
		     uint32_t len);
	/*
	 * Writes r->push bytes of r->data to the host's buffer, then sends r->cqe, with an
	 * invalidation of r->key if r->invalidate. The receive r->capsule, which held the command,
	 * may be posted again. The transport calls nvmf_req_sent() once it needs the request's
	 * memory no longer.
	 */
	void (*respond)(struct nvmf_queue *q, struct nvmf_req *r);
	/* Posts the receive r->capsule again, because the command in it gets no response. */
	void (*discard)(struct nvmf_queue *q, struct nvmf_req *r);
	/*
	 * Disconnects the queue for the reason @why, which is NULL if the host has disabled or shut
	 * down its controller. The transport then calls nvmf_queue_close(). It may be called for a
	 * queue more than once.
	 */
	void (*close)(struct nvmf_queue *q, const char *why);
	/*
	 * Only for a target whose controllers belong to another target (attr.remote): passes the
	 * data of Connect, r->data, to nvmf_attach() of the other target, and its result to
	 * nvmf_attached(). Unlike the other functions it may call nvmf_attached() at once.
	 */
	void (*attach)(struct nvmf_queue *q, struct nvmf_req *r);
};

/* ---- Namespaces */

enum nvmf_io_op {
	NVMF_IO_READ,
	NVMF_IO_WRITE,
	NVMF_IO_FLUSH,
	NVMF_IO_ZERO,    /* makes a range read as zeros */
	NVMF_IO_DISCARD, /* a hint that the data of a range is no longer needed */
};

/* A request to a namespace. The range is inside of the namespace, and is in bytes. */
struct nvmf_io {
	enum nvmf_io_op op;
	bool fua; /* true if the request must not complete before the data is on the medium */
	void *buf;
	uint64_t offset, len;
};

struct nvmf_ns_ops {
	/*
	 * Starts a request. Returns 0 or -errno if it has ended, or -EINPROGRESS: then the
	 * namespace calls nvmf_req_done(), but not before this function returns.
	 */
	int (*start)(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io);
};

struct nvmf_ns {
	const struct nvmf_ns_ops *ops;
	void *ctx; /* private data of the functions in ops */
	uint64_t blocks;
	uint8_t shift; /* block size is 1 << shift, 512 to 4096 bytes */
	bool read_only;
	uint8_t id[16];         /* NGUID and UUID; chosen by nvmf_ns_add() if zero */
	uint32_t nsid;          /* set by nvmf_ns_add() */
	uint32_t refs;          /* number of commands that use the namespace */
	bool removed;           /* true if the namespace accepts no more requests */
	struct nvmf_ns *next;   /* the same namespace in another target, for statistics */
	uint64_t reads, writes; /* number of reads and writes that succeeded */
	uint64_t bytes_read, bytes_written; /* bytes that these reads and writes transferred */
};

/*
 * Creates a namespace in the process's memory. @mem has @len bytes, a multiple of 4096. The caller
 * must also call nvmf_target_turn(). Deallocated blocks keep their data.
 */
void nvmf_ns_memory(struct nvmf_ns *ns, void *mem, uint64_t len, uint8_t shift);
/* Creates a namespace without storage: writes vanish, reads return zeros. */
void nvmf_ns_null(struct nvmf_ns *ns, uint64_t len, uint8_t shift);

/* ---- Target */

/*
 * A subsystem. It may change while hosts are connected: see the functions nvmf_access_changed(),
 * nvmf_ns_add(), nvmf_ns_changed() and nvmf_ns_remove(). The arrays are the caller's.
 */
struct nvmf_subsys {
	bool inactive; /* hosts neither see it nor connect to it; the names may be missing */
	const char *nqn;
	const char *serial; /* serial number, up to 20 characters */
	bool any_host;
	const char *const *hosts; /* NQNs of the hosts that may connect, unless any_host */
	uint32_t nhosts;
	struct nvmf_ns **ns; /* NULL entries are inactive; entry 0 has NSID 1 */
	uint32_t max_ns;
	/* true for the target's own discovery subsystem; the caller leaves it false */
	bool discovery;
};

/* Address and port of a listener, for the discovery log. */
struct nvmf_port {
	const char *traddr, *trsvcid;
	uint8_t adrfam; /* 1: IPv4, 2: IPv6 */
};

struct nvmf_target_attr {
	struct nvmf_subsys *subsys;
	uint32_t nsubsys;
	uint32_t max_io; /* maximum bytes of a command's data: a power of two, 8192 to 1 MiB */
	/* maximum bytes of data in a capsule of an I/O queue, a multiple of 16 */
	uint32_t in_capsule;
	uint32_t io_queues; /* maximum I/O queues of a controller, 1 to NVMF_MAX_QUEUES */
	uint32_t io_depth;  /* maximum entries of an I/O queue, 2 to NVMF_MAX_DEPTH */
	bool remote;        /* the controllers belong to another target: I/O queues only */
	uint32_t ctrls;     /* maximum controllers of all subsystems, 1 to 65519 */
	/* ms: longest keep-alive time of hosts, which must ask for one; 0: no limit */
	uint32_t keep_alive;
	const struct nvmf_port *ports;
	uint32_t nports;
	const struct nvmf_ops *ops;
};

/*
 * Timer of a host that must send something in time. Messages that arrive while the target pauses
 * are read only later. So a timer that expires after a pause is extended once: by the length of the
 * pause, but by at most @ms.
 */
struct nvmf_timer {
	uint64_t deadline, paused; /* paused: nvmf_target.paused when the timer was started */
	uint32_t ms;               /* length of the timer; 0: the timer does not run */
	bool extended;
};

struct nvmf_error {
	uint64_t count, lba;
	uint32_t nsid;
	uint16_t sqid, cid, status;
};

struct nvmf_ctrl {
	struct nvmf_target *target;
	struct nvmf_subsys *subsys;
	struct nvmf_queue *queue[NVMF_MAX_QUEUES + 1]; /* [0]: admin queue */
	bool proxy; /* true if the controller stands for one that belongs to another target */
	char hostnqn[NVMF_NQN];
	uint8_t hostid[16];
	uint16_t cntlid;
	uint32_t cc, csts;
	struct nvmf_timer kato;                              /* keep-alive timer */
	uint32_t async_enabled, async_pending, async_masked; /* bits ASYNC_* */
	struct nvmf_req *async[NVMF_ASYNC];
	uint32_t nasync;
	uint32_t feature[NVMF_FEATURES];
	uint32_t changed[NVMF_CHANGED]; /* NSIDs of changed namespaces, ascending */
	uint32_t nchanged;              /* entries of changed; NVMF_CHANGED + 1: too many to list */
	uint64_t errors;                /* number of errors since the start of the controller */
	struct nvmf_error error[NVMF_ERRORS];
	uint32_t held; /* I/O queues that may have requests; see nvmf_queue.held */
	bool ended;    /* true if the controller is in the list nvmf_target.ended */
	struct nvmf_ctrl *next_ended;
};

struct nvmf_target {
	struct nvmf_target_attr attr;
	struct nvmf_subsys discovery;
	struct nvmf_ctrl **ctrl; /* entry N has controller id N + 1 */
	uint32_t next_ctrl;      /* entry at which the search for a free one starts */
	struct nvmf_ctrl *ended; /* list of ended controllers that still have requests */
	uint64_t genctr;         /* generation counter of the discovery log */
	uint64_t now;            /* time of the last nvmf_target_time(), ms */
	/*
	 * Sum of the pauses of this process, in ms. A pause is the time between two calls of
	 * nvmf_target_time() if it exceeds NVMF_PAUSE_MS.
	 */
	uint64_t paused;
	/* Time for latencies, in any unit. The transport sets it before it calls the engine. */
	uint64_t ticks;
	struct {
		uint32_t status;
		uint64_t count;
	} status[NVMF_STATUSES]; /* failed commands by status; unused entries have the count 0 */
	/*
	 * max_io bytes of zeros that ops->respond() can send; NULL if none. Set by the transport.
	 */
	const uint8_t *zeros;
	/* List of the Write Zeroes commands that nvmf_target_turn() executes. */
	struct nvmf_req *zeroing, *last_zeroing;
};

/*
 * Checks @attr and creates a target at time 0. Returns 0; -ENOMEM; or -EINVAL: a value is out of
 * its range, or a qualified name is invalid or occurs twice.
 */
int nvmf_target_create(const struct nvmf_target_attr *attr, struct nvmf_target **out);
/* Destroys a target without queues. */
void nvmf_target_destroy(struct nvmf_target *t);
/*
 * Sets the time, in ms, and closes the queues of hosts whose keep-alive timer has expired. If the
 * last call was more than NVMF_PAUSE_MS before, the target has paused in between.
 */
void nvmf_target_time(struct nvmf_target *t, uint64_t now);
/* Starts a timer, or restarts it if it runs. */
void nvmf_timer_start(const struct nvmf_target *t, struct nvmf_timer *timer);
/* Returns whether a timer has expired. Call it after each nvmf_target_time(). */
bool nvmf_timer_expired(const struct nvmf_target *t, struct nvmf_timer *timer);
/*
 * Executes a part of a command that takes long (Write Zeroes to memory). Call it in each turn of
 * the loop. Returns 0 if there was nothing to do.
 */
uint32_t nvmf_target_turn(struct nvmf_target *t);
/*
 * Reports to the hosts of @s that asked for such events that namespace @nsid was added, removed or
 * resized.
 */
void nvmf_ns_changed(struct nvmf_target *t, struct nvmf_subsys *s, uint32_t nsid);
/*
 * Removes a namespace and reports that to the hosts. Commands that have passed no request to the
 * namespace yet end with SC_INVALID_NAMESPACE. The caller may free @ns and its storage once
 * ns->refs is 0.
 */
void nvmf_ns_remove(struct nvmf_target *t, struct nvmf_subsys *s, struct nvmf_ns *ns);
/*
 * Call it after a change of the hosts of @s or of s->inactive. Disconnects the hosts that may not
 * use @s any more, and reports the new discovery log.
 */
void nvmf_access_changed(struct nvmf_target *t, struct nvmf_subsys *s);
/* Returns whether no controller uses a subsystem. If it is inactive, its entry may be reused. */
bool nvmf_subsys_idle(const struct nvmf_target *t, const struct nvmf_subsys *s);
/* Returns whether @nqn is a valid qualified name. */
bool nvmf_nqn_valid(const char *nqn);
/* Puts a namespace into s->ns[nsid - 1]. Returns 0, -EINVAL or -EBUSY. */
int nvmf_ns_add(struct nvmf_subsys *s, uint32_t nsid, struct nvmf_ns *ns);

/* ---- Queues */

enum nvmf_req_state {
	REQ_FREE,
	REQ_PULLING,
	REQ_ATTACHING, /* another target decides on Connect */
	REQ_IO,
	REQ_WAITING, /* Asynchronous Event Request without an event */
	REQ_SENDING,
};

struct nvmf_req {
	struct nvmf_queue *q;
	uint8_t state;
	bool invalidate;
	bool in_capsule; /* the host's data is in the capsule */
	uint16_t cid;
	uint32_t index;      /* index of the request in q->req */
	uint32_t capsule;    /* index of the receive that holds the capsule */
	uint32_t key;        /* rkey of the host's buffer */
	uint32_t len;        /* bytes of the host's buffer */
	uint32_t push;       /* bytes of data to write to the host's buffer */
	uint64_t addr;       /* address of the host's buffer */
	uint8_t *mem;        /* memory of the request for data, max_io bytes */
	const uint8_t *data; /* data from the host (mem, capsule) or for it (mem, t->zeros) */
	struct nvmf_ns *ns;
	uint32_t step;    /* ranges, namespaces or bytes that the command has processed */
	uint32_t part;    /* bytes of the current part of a Compare */
	uint8_t *zero_at; /* rest of the memory that Write Zeroes must set to zero */
	uint64_t zero_left;
	struct nvmf_req *next_zeroing;
	/*
	 * res: result of a namespace request that ended before start() returned. again: res has not
	 * been handled yet. looping: nvmf_start() runs and will handle res.
	 */
	int res;
	bool again, looping;
	void (*pulled)(struct nvmf_req *r); /* called when the host's data has arrived */
	/* called when the namespace has finished its request */
	void (*done)(struct nvmf_req *r, int res);
	uint8_t cmd[NVMF_SQE];
	uint8_t cqe[NVMF_CQE];
	/*
	 * Index of the next free request. While the request is sending, the transport uses the
	 * field for a list.
	 */
	uint32_t next;
	uint64_t began; /* value of nvmf_target.ticks when the command arrived */
};

struct nvmf_capsule {
	const uint8_t *bytes;
	uint32_t len, index;
};

struct nvmf_stats {
	uint64_t commands, errors;
	uint64_t bytes_read, bytes_written;
	/*
	 * Entry N: number of commands whose latency was 2^N to 2^(N + 1) - 1 units of 256 ticks.
	 * Entry 0 also counts shorter latencies, and the last entry longer ones.
	 */
	uint64_t latency[NVMF_LATENCIES];
};

struct nvmf_queue {
	struct nvmf_target *t;
	struct nvmf_ctrl *ctrl; /* NULL before a successful Connect */
	/*
	 * Controller that an I/O queue holds until the queue's last request has ended, also after
	 * nvmf_queue_close(). A queue without requests holds it until nvmf_queue_destroy(). NULL if
	 * none.
	 */
	struct nvmf_ctrl *held;
	void *user;   /* private data of the transport */
	uint16_t qid; /* number of the queue in the connection request */
	uint32_t depth;
	uint32_t size; /* entries of the submission queue, as Connect says */
	uint32_t sqhd;
	bool no_flow; /* the host has disabled flow control of the submission queue */
	bool closed;
	bool ended;     /* the queue's controller has ended, so the queue starts no more requests */
	uint32_t in_ns; /* number of requests that a namespace is executing */
	uint32_t free;  /* index of the first free request; depth if there is none */
	/*
	 * Capsules that wait for a free request: first is the index of the first one in ring,
	 * waiting is their number.
	 */
	uint32_t first, waiting;
	struct nvmf_capsule *ring; /* ring of depth entries */
	uint64_t *cids;            /* bitmap of the ids of commands without a response */
	struct nvmf_req *req;
	struct nvmf_stats stats;
};

/*
 * Creates a queue for a new connection.
 * @param qid number of the queue that the connection request names
 * @param depth entries, 2 to NVMF_MAX_DEPTH; as many capsules may be outstanding
 * @param mem memory of the requests, depth * max_io bytes; owned by the transport
 * @return 0; -EINVAL: @qid or @depth is out of range; -ENOMEM
 */
int nvmf_queue_create(struct nvmf_target *t, uint16_t qid, uint32_t depth, void *mem, void *user,
		      struct nvmf_queue **out);
/*
 * Ends the queue after its connection has ended. The engine makes no more calls for it. If it is an
 * admin queue, the controller ends, and its I/O queues are closed by ops->close. Idempotent.
 *
 * Requests that a namespace holds continue. Until they have ended, Connect of the same host to the
 * same subsystem ends with SC_CONNECT_BUSY. Otherwise a write that the host sends again could be
 * overtaken by its first execution, which would then overwrite newer data. For the same reason a
 * reset or a shutdown of the controller is reported as complete only after these requests.
 */
void nvmf_queue_close(struct nvmf_queue *q);
/* Returns whether no namespace uses the memory of a closed queue. */
bool nvmf_queue_idle(const struct nvmf_queue *q);
/* Frees a queue that is closed and idle. */
void nvmf_queue_destroy(struct nvmf_queue *q);
/*
 * ---- Queues whose controller belongs to another target, which another thread runs. In that
 * target a queue without requests stands for the real queue. Its ops->close() must close the real
 * queue.
 */

/* Creates a queue without requests. nvmf_queue_close() and nvmf_queue_destroy() end it. */
int nvmf_stub_create(struct nvmf_target *t, uint16_t qid, void *user, struct nvmf_queue **out);
/*
 * Attaches a queue without requests to its controller. @data is the data of Connect. Returns the
 * status of Connect, and sets *@result to its result.
 */
uint32_t nvmf_attach(struct nvmf_queue *q, const uint8_t *data, uint64_t *result);
/*
 * Ends the Connect command @r that ops->attach() has passed to the other target. @status and
 * @result are those of nvmf_attach() there.
 */
void nvmf_attached(struct nvmf_req *r, uint32_t status, uint64_t result);
/* Restarts the keep-alive timer of the queue's controller. */
void nvmf_queue_alive(struct nvmf_queue *q);

/*
 * Executes a capsule of @len bytes that was received into receive @index. The bytes must stay until
 * ops->respond() of a request with this index.
 */
void nvmf_capsule(struct nvmf_queue *q, const void *bytes, uint32_t len, uint32_t index);
/*
 * Executes the command of @r after ops->pull() has read the command's data from the host. @ok
 * false: the transfer failed, and the queue still works.
 */
void nvmf_req_pulled(struct nvmf_req *r, bool ok);
/* Frees a request after the response of ops->respond() was sent. */
void nvmf_req_sent(struct nvmf_req *r);
/*
 * Continues a request for which a namespace's start() returned -EINPROGRESS. @res is 0 or -errno.
 */
void nvmf_req_done(struct nvmf_req *r, int res);

#endif
