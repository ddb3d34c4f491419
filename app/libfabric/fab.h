/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The libfabric provider "bluebell": endpoints of type FI_EP_MSG over the public API of Bluebell.
 *
 * One device serves the process. Its lock guards every object below it, because libfabric lets a
 * thread read an event queue while another thread posts, and both run the same device. Names of
 * structs and functions follow fi_fabric(7) and the manual pages that it lists.
 */
#ifndef FAB_H
#define FAB_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

#include <bluebell.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/*
 * Limits that fi_getinfo() reports. It does not open the device, and every device of Bluebell has
 * at least these limits.
 */
#define FAB_INJECT     64u
#define FAB_IOV        4u
#define FAB_DEPTH      256u  /* default of fi_tx_attr.size and fi_rx_attr.size */
#define FAB_MAX_DEPTH  4096u /* maximum of fi_tx_attr.size and fi_rx_attr.size */
#define FAB_MAX_MSG    (1u << 30)
#define FAB_CM_DATA    256u /* maximum bytes of private data of a connection over TCP */
#define FAB_CM_RDMA    55u  /* maximum bytes of private data with librdmacm's messages */
#define FAB_POLL       32u  /* completions that a poll takes from Bluebell */
#define FAB_EVENTS     64u  /* maximum events of one run of the device */
#define FAB_NAP_MS     1    /* milliseconds of sleep between two runs of a software device */
#define FAB_PROTOCOL   (1u << 31 | 0xbbu) /* a protocol of the provider's own */
#define FAB_MSG_CAPS   (FI_MSG | FI_SEND | FI_RECV)
#define FAB_RMA_CAPS   (FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define FAB_OTHER_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define FAB_CAPS       (FAB_MSG_CAPS | FAB_RMA_CAPS | FI_ATOMIC | FAB_OTHER_CAPS)
#define FAB_TX_FLAGS   (FI_INJECT | FI_COMPLETION | FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE)
#define FAB_MR_MODE    (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

#define FAB_WARN(subsys, ...) FI_WARN(&fab_provider, FI_LOG_##subsys, __VA_ARGS__)

struct fab_connreq;
struct fab_dev;
struct fab_ep;
struct fab_pep;

/* Functions of the objects above the device. It calls them with its lock held. */
struct fab_on {
	/* Reports a connection request to its passive endpoint. */
	void (*request)(struct fab_dev *dev, const struct bb_cm_event *event);
	/* Reports an event of an endpoint's connection. */
	void (*event)(struct fab_ep *ep, const struct bb_cm_event *event);
	/* Reports that the connection of an endpoint is broken. */
	void (*broken)(struct fab_ep *ep);
	/* Frees a request that is neither accepted nor rejected. */
	void (*drop)(struct fab_connreq *request);
};

/* The device of the process, open while a fabric exists. */
struct fab_dev {
	uint32_t lock;     /* 1 while held; guards every object of the device. __atomic */
	unsigned int refs; /* number of open fabrics */
	pid_t pid;         /* process that opened the device */
	const struct fab_on *on;
	bool child; /* this process is a child of pid after fork(): it must not use bb_* */
	struct bb_dev *dev;
	struct bb_cm *cm;
	bool rdma;          /* the CM uses messages of librdmacm, not TCP */
	struct bb_cq *idle; /* a poll of this CQ runs a software device */
	struct bb_dev_attr attr;
	uint32_t lcore; /* lcore that owns all queues */
	/* Runs a software device while the application does not: see progress.c. */
	pthread_t thread;
	bool has_thread;
	int stop;            /* eventfd, readable when the thread must end */
	uint64_t polls;      /* number of reads of CQs and EQs */
	unsigned int active; /* number of open endpoints and passive endpoints */
	LIST_HEAD(, fab_ep) eps;
	LIST_HEAD(, fab_pep) peps;
	LIST_HEAD(, fab_connreq) requests; /* requests that are not accepted or rejected yet */
};

struct fab_fabric {
	struct fid_fabric fid;
	struct fab_dev *dev;
	unsigned int refs; /* number of open domains, passive endpoints and event queues */
};

struct fab_domain {
	struct fid_domain fid;
	struct fab_fabric *fabric;
	struct fab_dev *dev;
	struct bb_pd *pd;
	unsigned int refs; /* number of open regions, queues, counters and endpoints */
};

struct fab_mr {
	struct fid_mr fid;
	struct fab_domain *domain;
	struct bb_mr *mr;
};

/* An entry of an event queue. */
struct fab_event {
	STAILQ_ENTRY(fab_event) next;
	uint32_t type;              /* event type of fi_eq(3); unused if err.err is not 0 */
	struct fi_eq_err_entry err; /* err.err is 0 if the entry is an event */
	struct fi_info *info; /* fi_info of an FI_CONNREQ event; the application owns it after it
				 has read the event */
	size_t head, len; /* head: bytes of the event's struct at the start of data; len: bytes of
			     data */
	unsigned char data[];
};

struct fab_eq {
	struct fid_eq fid;
	struct fab_fabric *fabric;
	STAILQ_HEAD(, fab_event) events;
	enum fi_wait_obj wait;
	int fd;     /* epoll descriptor of the CM or timer, and of wakeup; -1 with
		       FI_WAIT_NONE */
	int wakeup; /* eventfd, readable while events is not empty */
	int timer;  /* wakes a waiter each millisecond to run a software device; -1 if unused */
	unsigned int refs;       /* number of endpoints that are bound to the queue */
	unsigned char *err_data; /* error data (fi_eq(3)) of the last error that was read */
};

struct fab_cntr {
	struct fid_cntr fid;
	struct fab_domain *domain;
	uint64_t value, errors;
	unsigned int refs;
};

/* A completion that the application has not read. The endpoint may be closed already. */
struct fab_comp {
	struct fi_cq_data_entry entry;
	enum bb_wc_status status;
};

struct fab_cq {
	struct fid_cq fid;
	struct fab_domain *domain;
	struct bb_cq *cq;
	struct bb_channel *channel; /* event channel; NULL unless the CQ has a wait object and the
				       device is a card */
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	int fd;                /* epoll descriptor of channel or timer, and of wakeup */
	int timer, wakeup;     /* timer: wakes a waiter each millisecond to run a software device;
				  wakeup: eventfd; -1 if unused */
	struct fab_comp *comp; /* completions; the entries from at to count - 1 are not read yet */
	unsigned int at, count, size;
	uint32_t used; /* completions that the bound endpoints may have outstanding */
	unsigned int refs;
};

/* A receive context that several endpoints share (fi_srx_context()). */
struct fab_srx {
	struct fid_ep fid;
	struct fab_domain *domain;
	struct bb_srq *srq;
	uint32_t depth;
	unsigned int refs;
};

/* Counters of an endpoint, by the kind of operation. */
enum fab_count {
	FAB_COUNT_SEND,
	FAB_COUNT_RECV,
	FAB_COUNT_READ,
	FAB_COUNT_WRITE,
	FAB_COUNTS
};

/*
 * Attributes of requests with the flags of the endpoint, computed in advance. fi_send(), fi_recv()
 * and similar calls have no flags of their own.
 */
struct fab_own {
	uint64_t context; /* mask of the context in wr_id: 0 if the completion is not reported */
	uint64_t silent;  /* wr_id if the completion is not reported, otherwise 0 */
	uint64_t max;     /* maximum bytes of a message */
	uint32_t flags;   /* flags of the post */
};

/* State of an endpoint's connection, by the event that was reported last. */
enum fab_state {
	FAB_NEW,       /* no event */
	FAB_BROKEN,    /* no event, but the connection is broken already */
	FAB_CONNECTED, /* FI_CONNECTED */
	FAB_ENDED,     /* FI_SHUTDOWN, or an error */
};

struct fab_ep {
	struct fid_ep fid;
	struct bb_qp *qp; /* NULL until fi_enable() */
	struct fab_dev *dev;
	struct fab_own tx, rx;
	uint64_t tx_op_flags, rx_op_flags;
	uint32_t quiet; /* flags of a request without a completion for the application */
	bool tx_selective, rx_selective;
	bool counts; /* a counter is bound, so every request needs a completion */
	struct fab_cntr *cntr[FAB_COUNTS];
	struct fab_domain *domain;
	struct fab_eq *eq;
	struct fab_cq *tx_cq, *rx_cq;
	struct fab_srx *srx;
	struct bb_conn *conn;
	struct fab_connreq *request; /* request that fi_accept() accepts; NULL if there is none */
	struct fi_info *info;
	uint32_t tx_size, rx_size;
	bool connecting; /* fi_connect() was called, not fi_accept() */
	enum fab_state state;
	LIST_ENTRY(fab_ep) next; /* list of the device's endpoints */
};

/* A connection request: the handle in the fi_info of FI_CONNREQ. */
struct fab_connreq {
	struct fid fid;
	LIST_ENTRY(fab_connreq) next; /* list of the device's requests */
	struct fab_pep *pep;          /* NULL if the passive endpoint is closed */
	struct fab_ep *ep;            /* endpoint that fi_endpoint() has opened for it; or NULL */
	struct bb_conn *conn;
};

struct fab_pep {
	struct fid_pep fid;
	LIST_ENTRY(fab_pep) next;
	struct fab_fabric *fabric;
	struct fab_eq *eq;
	struct fi_info *info;
	struct bb_listener *listener;
	bool listening;
};

extern struct fi_provider fab_provider;

/*
 * The descriptor of a region is its lkey, with a bit that makes it different from NULL. So a post
 * reads no memory of the region.
 */
#define FAB_DESC(lkey) ((void *)(uintptr_t)(UINT64_C(1) << 32 | (lkey)))
#define FAB_LKEY(desc) ((uint32_t)(uintptr_t)(desc))

/* A counted request without a completion for the application has this wr_id. */
#define FAB_SILENT(ep) ((uint64_t)(uintptr_t) & (ep)->quiet)
/* An injected request has this wr_id. The application learns nothing of it, even if it fails. */
#define FAB_INJECTED(ep) ((uint64_t)(uintptr_t) & (ep)->tx)

/* ---- addr.c */

/* Private data of a message of librdmacm. */
struct fab_cm_room {
	uint8_t bytes[1 + FAB_CM_RDMA];
};

/*
 * Sets *rdma to true if messages of librdmacm establish connections, to false if TCP does. Returns
 * 0, or -FI_EINVAL for an invalid FI_BLUEBELL_CM (logged).
 */
int fab_transport(bool *rdma);
/*
 * Returns the first address of the device, without opening it. @format: FI_SOCKADDR_IN,
 * FI_SOCKADDR_IN6, or another value for any. @routed: there is a destination; the kernel's routes
 * then choose the address of a kernel device. Returns 0; -ENOENT if connections use TCP or the
 * routes choose the address; -FI_ENODATA or -FI_EINVAL (logged) if there is no address.
 */
int fab_device_address(uint32_t format, bool routed, struct sockaddr_storage *addr);
/* Returns the maximum bytes of private data. */
size_t fab_cm_max(const struct fab_dev *dev);
/* Copies the peer's address, a sockaddr_in or sockaddr_in6, to @info. Returns 0 or -FI_ENOMEM. */
int fab_peer_set(struct fi_info *info, const void *addr);
/* Returns 0, or -FI_EINVAL (logged) if @call has too many bytes of private data. */
int fab_cm_check(const struct fab_dev *dev, const char *call, size_t len);
/*
 * Converts the application's private data, *len bytes, at most fab_cm_max(), to the private data of
 * a CM message. Updates *len. Returns a pointer to @data or @room.
 */
const void *fab_cm_pack(const struct fab_dev *dev, struct fab_cm_room *room, const void *data,
			size_t *len);
/* Returns the private data of an event that the peer's application sent, and sets *len. */
const void *fab_cm_unpack(const struct fab_dev *dev, const struct bb_cm_event *ev, size_t *len);

/*
 * Returns the value of a parameter, FI_BLUEBELL_NAME in the environment, or NULL if it is unset or
 * empty.
 */
const char *fab_param(const char *name);
int fab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/*
 * Opens the device that FI_BLUEBELL_DEVICE names, and starts EAL before that. All fabrics of the
 * process share the device. Returns 0 or a negative errno.
 */
int fab_dev_get(const struct fab_on *on, struct fab_dev **dev);
void fab_dev_put(struct fab_dev *dev);
/* Stops the thread of a device that the application has left open. */
void fab_dev_exit(void);
int fab_progress_start(struct fab_dev *dev);
void fab_progress_stop(struct fab_dev *dev);
/* Runs a software device and the CM, and puts the events of connections into event queues. */
void fab_dev_run(struct fab_dev *dev);
/* Returns 0, or -FI_EOPNOTSUPP (logged) in a child of the process that opened the device. */
int fab_dev_check(const struct fab_dev *dev);

int fab_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int fab_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
	       void *context);
int fab_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);
int fab_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		   void *context);
int fab_trywait(struct fid_fabric *fabric, struct fid **fids, int count);
int fab_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);
int fab_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);
int fab_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		 void *context);
int fab_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
		 void *context);
extern struct fi_ops_mr fab_mr_ops;

/* Makes the queue pair of an endpoint, as fi_enable() does. The caller holds the lock. */
int fab_ep_enable(struct fab_ep *ep);
/* Gives back the room that the queue pair of an endpoint had in the CQs. */
void fab_ep_unreserve(struct fab_ep *ep);
extern struct fi_ops_ep fab_opt_ops;
extern struct fi_ops_cm fab_ep_cm_ops;
extern struct fi_ops_msg fab_msg_ops, fab_srx_msg_ops;
extern struct fi_ops_rma fab_rma_ops;
extern struct fi_ops_atomic fab_atomic_ops;
/*
 * Opens an endpoint for the request @handle, which then is ep->request. Ignores NULL and passive
 * endpoints. Returns 0, or -FI_EINVAL (logged) if @handle is no request, is accepted or rejected,
 * or has an endpoint.
 */
int fab_connreq_take(struct fab_ep *ep, fid_t handle);
/* Forgets a request, but not its connection. @request may be NULL. */
void fab_connreq_forget(struct fab_connreq *request);
/* Forgets a request, and destroys its connection: the peer's attempt fails. */
void fab_connreq_free(struct fab_connreq *request);
void fab_pep_event(struct fab_dev *dev, const struct bb_cm_event *event);
void fab_ep_event(struct fab_ep *ep, const struct bb_cm_event *event);
/*
 * Reports FI_SHUTDOWN once, because the connection of the endpoint has ended: a side has called
 * fi_shutdown(), or the connection is broken. Before FI_CONNECTED it follows right after that
 * event.
 */
void fab_ep_broken(struct fab_ep *ep);

/* Makes room for the completions of a queue in a CQ. Returns 0 or a negative errno. */
int fab_cq_reserve(struct fab_cq *cq, uint32_t entries);
/*
 * Moves up to FAB_POLL completions of the device to cq->comp, and counts those that a counter
 * counts. Returns the number of completions that it took from the device.
 */
unsigned int fab_cq_fill(struct fab_cq *cq);
ssize_t fab_cq_read(struct fid_cq *fid, void *buf, size_t count);
/*
 * Returns true if the application has read every completion. Then its wait object is readable only
 * after a later completion, a signal, or the next tick of a timer.
 */
bool fab_cq_is_empty(struct fab_cq *cq);
bool fab_eq_is_empty(struct fab_eq *eq);

/* Opens a timer that is readable each millisecond. Returns it or a negative errno. */
int fab_timer_open(void);
/* Consumes the expirations of a timer, so that it is not readable. @timer may be -1. */
void fab_timer_clear(int timer);

/* The wait object of a CQ. */
int fab_wait_open(struct fab_cq *cq, enum fi_wait_obj wait);
void fab_wait_close(struct fab_cq *cq);
int fab_wait_control(struct fid *fid, int command, void *arg);
ssize_t fab_wait_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout);
ssize_t fab_wait_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			   const void *cond, int timeout);
int fab_wait_signal(struct fid_cq *fid);
/* Consumes the signals of fi_cq_signal(). Returns true if there was one. */
bool fab_wait_signaled(struct fab_cq *cq);

/*
 * Adds an event with @len bytes of private data. Frees @info, or passes it to the application. @err
 * is 0, or the errno of an error entry. Drops the event if there is no memory.
 */
void fab_eq_add(struct fab_eq *eq, uint32_t type, int err, fid_t fid, struct fi_info *info,
		const void *data, size_t len);

/* Returns true if the application has not read the event of a connection request. */
bool fab_eq_has(const struct fab_eq *eq, fid_t request);
/* Drops the events of an object that is being closed. */
void fab_eq_forget(struct fab_eq *eq, const struct fid *fid);

/* Copies the text of an error to @buf, unless it is NULL, cut to @len bytes. Returns @text. */
const char *fab_error_text(const char *text, char *buf, size_t len);

/* Stubs for operations of libfabric that the provider lacks; they return -FI_ENOSYS. */
int fab_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int fab_no_control(struct fid *fid, int command, void *arg);
int fab_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

static inline bool
fab_trylock(struct fab_dev *dev)
{
	return __atomic_exchange_n(&dev->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

/*
 * Takes the lock. It is no mutex, because a mutex takes ten times the instructions of a post. The
 * holder may be in a call of the control path, so a waiter gives its CPU to other threads.
 */
static inline void
fab_lock(struct fab_dev *dev)
{
	while (bb_unlikely(!fab_trylock(dev)))
		sched_yield();
}

static inline void
fab_unlock(struct fab_dev *dev)
{
	__atomic_store_n(&dev->lock, 0, __ATOMIC_RELEASE);
}

/* Milliseconds of the monotonic clock. */
static inline int64_t
fab_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * Returns the time at which a wait of @timeout milliseconds ends. A negative @timeout means that
 * the wait has no end.
 */
static inline int64_t
fab_deadline(int timeout)
{
	return timeout < 0 ? INT64_MAX : fab_now_ms() + timeout;
}

#endif
