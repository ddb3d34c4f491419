/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Transport of the target: connections by the RDMA CM, and the transfers that the engine asks for.
 *
 * An lcore has a poll loop with the CQ of its connections, a CM, and a poller. The first lcore has
 * the listeners, all admin queues and the controllers. The others, the workers, have I/O queues
 * only: the first lcore moves requests for them to their CMs. Messages between the first lcore and
 * a worker go by two rings. Each connection is one queue. It has a part of the transport's memory,
 * which is registered once, and to which no host has access: data moves only by RDMA READs and
 * WRITEs of the target.
 */
#ifndef NVMF_RDMA_H
#define NVMF_RDMA_H

#include <rte_common.h>

#include <bluebell.h>

#include "nvmf.h"

/* Slots of the send queue for each request: an RDMA WRITE and a SEND. */
#define NVMF_SQ_PER_REQ 2u
#define NVMF_LISTENERS  8u
#define NVMF_WORKERS    7u
#define NVMF_LINE_MS    1000u /* ms between two lines about refused, or disconnected, hosts */

struct nvmf_conn {
	struct nvmf_rdma *rdma;
	struct bb_conn *conn; /* NULL: the connection has ended */
	struct bb_qp *qp;
	struct nvmf_queue *queue; /* NULL: the entry is free */
	uint8_t *mem;             /* memory of the queue's requests */
	uint8_t *capsules;
	uint32_t depth;
	bool ending;
	bool ring_send, ring_recv; /* posts wait for their doorbell */
	bool listed;               /* true if the connection is in nvmf_rdma.to_ring */
	uint32_t pulls;            /* outstanding RDMA READs */
	struct nvmf_conn *next_to_ring;
	/* Responses that are posted before the next RDMA WRITE, or at the end of the turn. */
	uint32_t responses;                     /* number of these responses */
	uint32_t first_response, last_response; /* indices of their requests */
	uint32_t pushed;                        /* bytes of their RDMA WRITEs */
	/*
	 * 1 + index of the request whose SEND was the last one to be posted in this turn; 0: none.
	 * The SEND is not signalled.
	 */
	uint32_t unsignalled;
	/* The following fields are in use only if a worker has the connection. */
	uint16_t qid;
	/*
	 * MSG_ATTACH was sent: the first lcore may have a queue that stands for this connection's
	 * queue
	 */
	bool attach_sent;
	bool detaching;             /* the first lcore has not answered MSG_DETACH yet */
	struct nvmf_req *attaching; /* Connect that waits for its result */
	uint32_t status;            /* status of Connect, which the first lcore sets */
	uint64_t result;
	uint64_t active; /* number of capsules received; accessed with __atomic */
	/*
	 * Fields that only the first lcore uses: the queue that stands for the worker's queue, the
	 * last value of active that it has read, and whether it has sent MSG_CLOSE.
	 */
	struct nvmf_queue *stub;
	uint64_t seen;
	bool close_sent;
	bool closed_by_host;             /* argument of MSG_CLOSE, for the worker */
	uint8_t data[NVMF_CONNECT_DATA]; /* data of Connect, for the first lcore */
	/* the connection has ended, but a namespace still uses its memory */
	bool releasing;
	struct nvmf_timer connect; /* limits the time before the host's Connect command */
	char name[64];             /* address of the host */
};

struct nvmf_rdma_attr {
	struct bb_dev *dev;
	uint32_t lcore;            /* lcore that runs the poll loop, or BB_LCORE_SELF */
	struct nvmf_rdma *first;   /* transport of the first lcore; NULL in that transport itself */
	const char *const *listen; /* addresses and ports, as bb_cm_addr() takes them */
	uint32_t listeners;        /* 1 to NVMF_LISTENERS; 0 for a worker */
	uint32_t conns;            /* maximum number of queues of all hosts */
	/* Time in ms that a host has for its Connect command; then its queue is closed. */
	uint32_t connect_ms;
	/* The lcore sleeps after this many microseconds without work; 0: it never sleeps. */
	uint32_t sleep_us;
};

/* Ring of messages from one thread to another one. */
struct nvmf_ring {
	uintptr_t *slot; /* connection, and the kind of the message in the lowest bits */
	uint32_t mask;
	uint32_t head __rte_cache_aligned; /* written by the reader */
	uint32_t tail __rte_cache_aligned; /* written by the writer; accessed with __atomic */
};

/* A function that the thread of a worker executes. */
struct nvmf_call {
	void (*fn)(struct nvmf_rdma *worker, void *arg);
	void *arg;
};

struct nvmf_rdma {
	struct nvmf_rdma_attr attr;
	struct nvmf_target *target;
	struct bb_loop *loop;
	struct bb_cm *cm;
	struct bb_cq *send_cq, *recv_cq;
	struct bb_channel *channel; /* NULL if the lcore never sleeps */
	struct bb_pd *pd;
	struct bb_mr *mr;
	struct bb_listener *listener[NVMF_LISTENERS];
	struct nvmf_conn *conn;
	uint8_t *mem;
	size_t slice;    /* bytes of mem for each connection */
	uint32_t depth;  /* largest depth of a queue */
	uint32_t stride; /* bytes between two receive buffers; data in a capsule begins at a page */
	/*
	 * Maximum bytes of RDMA WRITEs that are posted in a row, before their responses. 0: each
	 * response follows its own WRITE, so that the host gets the response early. A software
	 * device copies the data of a row straight into a host's memory.
	 */
	uint32_t push_max;
	uint64_t tick;               /* TSC of the next call of nvmf_target_time() */
	uint64_t busy_at;            /* TSC of the last turn that had work */
	bool busy;                   /* events or completions were handled since the last turn */
	bool send_armed, recv_armed; /* the CQ raises an event at its next completion */
	uint32_t pulls;              /* outstanding RDMA READs of all connections */
	bool starved;                /* a command may be waiting for the end of a response */
	uint64_t sleeps, wakeups;    /* numbers of sleeps, and of those that a completion ended */
	uint64_t accepted, rejected, dropped;
	struct nvmf_rdma *worker[NVMF_WORKERS];
	uint32_t workers;
	struct nvmf_ring to_worker, to_first; /* used if this is a worker */
	/*
	 * connection requests that the first lcore has moved to this worker, and those that the
	 * worker has handled
	 */
	uint32_t moved, handled; /* handled is accessed with __atomic */
	uint32_t used;           /* connections in use; accessed with __atomic */
	/* function that a worker must execute, NULL if none; accessed with __atomic */
	const struct nvmf_call *call;
	struct nvmf_conn *to_ring; /* list of connections whose doorbells turn() must ring */
	uint32_t releasing;        /* number of connections whose field releasing is true */
	bool has_ending;           /* turn() must end the connections whose field ending is true */
	/*
	 * time in ms before which no line is printed about a refused host, and about a disconnected
	 * one
	 */
	uint64_t next_line, next_drop_line;
	bool looped; /* the pollers are attached to the loop */
	/* Called in each turn of the loop after all events; may be NULL. Returns 0 if idle. */
	unsigned int (*turn)(void *arg);
	/*
	 * Returns true if turn() must be called again soon, because requests to storage are
	 * outstanding. NULL: never.
	 */
	bool (*outstanding)(void *arg);
	void *turn_arg; /* argument of both */
};

extern const struct nvmf_ops nvmf_rdma_ops;

/* Returns the bytes of memory that a transport with @conns connections needs. */
size_t nvmf_rdma_memory(const struct nvmf_target_attr *target, uint32_t conns);
/*
 * Creates the transport of @t, whose ops are nvmf_rdma_ops, and listens. The calling thread becomes
 * the owner. Returns 0 or -errno, and prints the error.
 * @param mem nvmf_rdma_memory() bytes of EAL's memory, aligned to a page
 */
int nvmf_rdma_open(struct nvmf_rdma *r, const struct nvmf_rdma_attr *attr, struct nvmf_target *t,
		   void *mem);
/*
 * Ends all connections. Namespaces may still hold requests: call nvmf_rdma_idle() until it returns
 * true, then nvmf_rdma_close().
 */
void nvmf_rdma_end(struct nvmf_rdma *r);
bool nvmf_rdma_idle(struct nvmf_rdma *r);
void nvmf_rdma_close(struct nvmf_rdma *r);

/* Makes turn() ring the doorbells of a connection. */
static inline void
nvmf_rdma_list(struct nvmf_conn *c)
{
	if (c->listed)
		return;
	c->listed = true;
	c->next_to_ring = c->rdma->to_ring;
	c->rdma->to_ring = c;
}

/* Defined in nvmf_rdma_conn.c. */
void nvmf_rdma_event(struct bb_cm *cm, const struct bb_cm_event *ev, void *arg);
void nvmf_rdma_release(struct nvmf_conn *c);
/* Destroys and releases a connection that was disconnected, without waiting for the peer. */
void nvmf_rdma_end_conn(struct nvmf_conn *c);
/* Defined in nvmf_rdma_turn.c. */
/*
 * Runs the transport's part of a loop turn: messages of lcores, doorbells, released connections,
 * time. Sleeps if there was no work for attr.sleep_us. Returns 0 if there was none in this turn.
 */
unsigned int nvmf_rdma_turn(void *r);
/* Defined in nvmf_rdma_worker.c, as all functions up to nvmf_rdma_run(). */
/*
 * Creates the rings for the messages between a worker and the first lcore. Returns 0 or -ENOMEM.
 */
int nvmf_rdma_rings(struct nvmf_rdma *worker);
/*
 * Handles the messages about connections that other lcores have sent to the lcore of @r. Calls
 * @end for a connection whose controller has ended. Returns the number of these messages.
 */
unsigned int nvmf_rdma_messages(struct nvmf_rdma *r, void (*end)(struct nvmf_conn *c));
/* Restarts the keep-alive timers of controllers whose queues on workers have received capsules. */
void nvmf_rdma_activity(struct nvmf_rdma *first);
/*
 * Moves a connection request for an I/O queue to a worker. Returns false if the first lcore must
 * serve the connection.
 */
bool nvmf_rdma_delegate(struct nvmf_rdma *first, struct bb_conn *conn);
void nvmf_rdma_attach(struct nvmf_queue *q, struct nvmf_req *r);
/* Reports to the first lcore that a worker's queue is closed, but still has requests. */
void nvmf_rdma_linger(struct nvmf_conn *c);
/* Reports the end of a worker's queue to the first lcore. */
void nvmf_rdma_detach(struct nvmf_conn *c);
/*
 * Makes a worker close its queue, on the first lcore's request; @by_host: because the host has
 * ended its controller. Called in the first lcore's thread.
 */
void nvmf_rdma_close_stub(struct nvmf_conn *c, bool by_host);
/*
 * Returns whether the first lcore has a queue that stands for a worker's queue. Called in the first
 * lcore's thread.
 */
bool nvmf_rdma_has_stub(const struct nvmf_rdma *first);
/* Executes @fn in the thread of each worker, one after another, and waits for them. */
void nvmf_rdma_run(struct nvmf_rdma *first, void (*fn)(struct nvmf_rdma *worker, void *arg),
		   void *arg);
/* Defined in nvmf_rdma_io.c. */
/*
 * Disconnects a host, and prints the reason @why unless it is NULL. The next turn of the loop ends
 * the connection.
 */
void nvmf_rdma_drop(struct nvmf_conn *c, const char *why);
void nvmf_rdma_wc(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg);
/* Posts the responses that wait for the end of the turn. */
void nvmf_rdma_post_responses(struct nvmf_conn *c);
int nvmf_rdma_receive(struct nvmf_conn *c, uint32_t index);

#endif
