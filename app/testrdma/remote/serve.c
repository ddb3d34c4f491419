/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "remote.h"

#define GROUPS 64 /* maximum number of initiators that have memory here */
#define NAP_US                                                                                     \
	100 /* microseconds between polls if the device needs no polling to execute requests */
/* After its last work the thread polls for this many seconds without pauses of NAP_US. */
#define BUSY_S   1
#define COUNT_HZ 100

/* Memory that all connections of an initiator share. */
struct group {
	uint64_t token;
	uint8_t *mem;
	uint64_t len;
	uint32_t size; /* number of control blocks, one per connection */
	struct bb_mr *mr;
	uint32_t conns; /* number of open connections; 0 if the entry is free */
};

/* State of one connection. */
struct target {
	LIST_ENTRY(target) next;
	struct bb_conn *conn;
	struct group *group;
	struct responder *responder;
};

struct server {
	struct tester *t;
	struct bb_cm *cm;
	struct bb_listener *listener;
	struct group groups[GROUPS];
	/*
	 * Lock of conns and counts. Only the server's thread changes them, with the lock held.
	 * Other threads read them with the lock held.
	 */
	pthread_mutex_t lock;
	LIST_HEAD(, target) conns; /* connections that were accepted and are not over */
	struct serve_counts counts;
	uint64_t recvs, errors;            /* sums over connections that are over */
	struct bb_dev_stats initial_stats; /* the device's counters when the server was opened */
	uint64_t busy_until; /* TSC until which the server's thread polls without pauses */
	uint64_t counted_at; /* TSC of the last update of recvs and errors in counts */
	/* Values at the last line of --interval. */
	struct bb_dev_stats last_stats;
	struct serve_counts last_counts;
};

static uint32_t
access_of(const struct tester *t)
{
	uint32_t access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;

	return t->attr.atomics ? access | BB_ACCESS_REMOTE_ATOMIC : access;
}

static void
group_put(struct group *g)
{
	if (--g->conns > 0)
		return;
	if (g->mr != NULL)
		bb_mr_dereg(g->mr);
	rte_free(g->mem);
	memset(g, 0, sizeof(*g));
}

/*
 * Gets the memory of the initiator with the token in @hello. The initiator's first connection
 * allocates the memory.
 */
static int
group_get(struct server *s, const struct remote_hello *hello, struct group **out)
{
	uint64_t token = rte_be_to_cpu_64(hello->token), len = rte_be_to_cpu_64(hello->bytes);
	uint32_t size = rte_be_to_cpu_32(hello->conns);
	uint64_t all = len + (uint64_t)size * REMOTE_CTL;
	struct group *g, *free_one = NULL;
	int rc;

	for (g = s->groups; g < s->groups + GROUPS; g++) {
		if (g->conns == 0) {
			free_one = g;
		} else if (g->token == token && g->len == len && g->size == size) {
			g->conns++;
			*out = g;
			return 0;
		}
	}
	if (free_one == NULL)
		return -ENOSPC;
	g = free_one;
	g->mem = rte_zmalloc("target", all, 4096);
	if (g->mem == NULL)
		return -ENOMEM;
	g->token = token;
	g->len = len;
	g->size = size;
	g->conns = 1;
	rc = bb_mr_reg(s->t->pd, g->mem, all, BB_ACCESS_LOCAL_WRITE | access_of(s->t), &g->mr);
	if (rc != 0) {
		group_put(g);
		return rc;
	}
	*out = g;
	return 0;
}

static void
target_destroy(struct target *target)
{
	if (target->responder != NULL)
		responder_destroy(target->responder);
	if (target->group != NULL)
		group_put(target->group);
	free(target);
}

static int
target_create(struct server *s, const struct remote_hello *hello, struct target **out)
{
	struct target *target = calloc(1, sizeof(*target));
	int rc = -ENOMEM;

	if (target == NULL)
		return rc;
	rc = group_get(s, hello, &target->group);
	if (rc == 0)
		rc = responder_create(s->t, hello, target->group->mem, target->group->mr,
				      &target->responder);
	if (rc != 0) {
		target_destroy(target);
		return rc;
	}
	*out = target;
	return 0;
}

/* Checks the private data of a CM REQ and copies it to *@hello. @return NULL, or the error. */
static const char *
hello_check(const struct bb_cm_event *ev, struct remote_hello *hello)
{
	uint64_t bytes;
	uint32_t conns;

	if (ev->private_len < sizeof(*hello))
		return "the connecting program is not testrdma";
	memcpy(hello, ev->private_data, sizeof(*hello));
	if (hello->magic != rte_cpu_to_be_32(REMOTE_MAGIC))
		return "the connecting program is not testrdma";
	if (hello->version != rte_cpu_to_be_32(REMOTE_VERSION))
		return "the connecting testrdma has another version; run one version at both ends";
	bytes = rte_be_to_cpu_64(hello->bytes);
	conns = rte_be_to_cpu_32(hello->conns);
	if (conns == 0 || conns > MAX_QPS || rte_be_to_cpu_32(hello->index) >= conns)
		return "the number of connections is out of range";
	if (bytes < 2 * EDGE || bytes % 8 != 0 || bytes > REMOTE_MAX_BYTES)
		return "the target's memory that it requests is too small or too large";
	return NULL;
}

static const char *
request_take(struct server *s, const struct bb_cm_event *ev, struct target **out)
{
	struct target *target = NULL;
	struct bb_conn_param param;
	struct remote_hello hello;
	struct bb_region region;
	const char *why = hello_check(ev, &hello);
	int rc;

	if (why != NULL)
		return why;
	rc = target_create(s, &hello, &target);
	if (rc == -EINVAL)
		return "the target's device does not support this --depth or --sgl";
	if (rc == -ENOMEM)
		return "no memory for the connection; give the target's EAL more (-m MB, "
		       "hugepages)";
	if (rc == 0)
		rc = bb_region_of(target->group->mr, REMOTE_REGION, 0, 0, &region);
	if (rc == 0) {
		bb_conn_param_init(&param);
		param.access = access_of(s->t);
		param.ack_timeout = REMOTE_ACK_TIMEOUT;
		param.responder_resources = (uint8_t)RTE_MIN(16u, s->t->attr.max_dest_rd_atomic);
		param.regions = &region;
		param.nregions = 1;
		rc = bb_conn_accept(ev->conn, responder_qp(target->responder), &param);
	}
	if (rc == 0) {
		*out = target;
		return NULL;
	}
	if (target != NULL)
		target_destroy(target);
	return strerror(-rc);
}

static void
request(struct server *s, const struct bb_cm_event *ev)
{
	struct bb_conn *conn = ev->conn;
	struct target *target = NULL;
	const char *why = request_take(s, ev, &target);

	if (why == NULL) {
		bb_conn_user_set(conn, target);
		target->conn = conn;
		LIST_INSERT_HEAD(&s->conns, target, next);
		s->counts.present++;
		return;
	}
	say("a connection request was rejected: %s", why);
	bb_conn_reject(conn, why, (uint32_t)strlen(why));
	bb_conn_destroy(conn);
}

static void
remove_target(struct server *s, struct bb_conn *conn)
{
	struct target *target = bb_conn_user(conn);

	bb_conn_destroy(conn);
	if (target == NULL)
		return;
	LIST_REMOVE(target, next);
	s->counts.present--;
	s->counts.times_empty += LIST_EMPTY(&s->conns);
	s->recvs += responder_receives(target->responder);
	s->errors += responder_errors(target->responder);
	target_destroy(target);
}

static void
event(struct server *s, const struct bb_cm_event *ev)
{
	switch (ev->type) {
	case BB_CM_CONNECT_REQUEST:
		request(s, ev);
		break;
	case BB_CM_ESTABLISHED:
		s->counts.served++;
		break;
	case BB_CM_DISCONNECTED:
		if (ev->status != 0)
			say("a connection broke: %s", ev->why);
		remove_target(s, ev->conn);
		break;
	default:
		say("a connection was not established: %s", ev->why);
		remove_target(s, ev->conn);
		break;
	}
}

/* Creates the connection manager and the listener at @where. @return 0, or a negative errno. */
static int
listen_at(struct server *s, const char *where)
{
	struct sockaddr_storage addr;
	struct bb_cm_attr attr;
	int rc = bb_cm_addr(where, &addr);

	bb_cm_attr_init(&attr);
	if (rc == 0)
		rc = bb_cm_create(s->t->dev, &attr, &s->cm);
	if (rc == 0)
		rc = bb_listener_create(s->cm, (const struct sockaddr *)&addr, &s->listener);
	return rc;
}

int
serve_open(struct tester *t, struct server **out)
{
	struct server *s = calloc(1, sizeof(*s));
	int rc = s == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		s->t = t;
		pthread_mutex_init(&s->lock, NULL);
		rc = listen_at(s, t->o.listen);
		/*
		 * Records the counters, because the device has also counted the tests that this
		 * process ran before.
		 */
		if (t->attr.counters)
			bb_dev_stats(t->dev, &s->initial_stats);
		s->last_stats = s->initial_stats;
	}
	if (rc != 0) {
		say("--listen %s: %s; give an address and a port that is free, as in :18515",
		    t->o.listen, strerror(-rc));
		serve_close(s);
		return EXIT_FAILED;
	}
	s->counts.port = bb_listener_port(s->listener);
	printf("listening at port %u\n", s->counts.port);
	fflush(stdout);
	*out = s;
	return 0;
}

/*
 * Prints the requests of peers that the device has executed since @since. With @keep updates
 * @since.
 */
static bool
requests_print(FILE *out, const struct server *s, struct bb_dev_stats *since, bool keep)
{
	struct bb_dev_stats now;

	if (!s->t->attr.counters || bb_dev_stats(s->t->dev, &now) != 0)
		return false;
	fprintf(out,
		"requests of peers: %" PRIu64 " writes, %" PRIu64 " reads, %" PRIu64 " atomics",
		now.rx_write - since->rx_write, now.rx_read - since->rx_read,
		now.rx_atomic - since->rx_atomic);
	if (keep)
		*since = now;
	return true;
}

bool
serve_requests(const struct server *s)
{
	struct bb_dev_stats since = s->initial_stats;

	return requests_print(stdout, s, &since, false);
}

void
serve_interval(struct server *s, FILE *out, double seconds)
{
	struct serve_counts now = serve_counted(s);

	fprintf(out, "%u connection%s, in %.3f s: ", now.present, now.present == 1 ? "" : "s",
		seconds);
	if (requests_print(out, s, &s->last_stats, true))
		fprintf(out, "; ");
	fprintf(out, "%" PRIu64 " receives checked; %" PRIu64 " errors\n",
		now.recvs - s->last_counts.recvs, now.errors - s->last_counts.errors);
	fflush(out);
	s->last_counts = now;
}

uint64_t
serve_errors(const struct server *s)
{
	const struct target *target;
	uint64_t errors = s->errors;

	LIST_FOREACH(target, &s->conns, next)
		errors += responder_errors(target->responder);
	return errors;
}

static uint64_t
serve_receives(const struct server *s)
{
	const struct target *target;
	uint64_t recvs = s->recvs;

	LIST_FOREACH(target, &s->conns, next)
		recvs += responder_receives(target->responder);
	return recvs;
}

/*
 * Updates the counts for other threads COUNT_HZ times per second. With @print also prints the line
 * of --interval.
 */
static void
update_counts(struct server *s, bool print, uint64_t *printed)
{
	const uint64_t now = rte_rdtsc(), hz = s->t->tsc_hz;
	double seconds = (double)(now - *printed) / (double)hz;

	if (now - s->counted_at < hz / COUNT_HZ)
		return;
	s->counted_at = now;
	pthread_mutex_lock(&s->lock);
	s->counts.recvs = serve_receives(s);
	s->counts.errors = serve_errors(s);
	pthread_mutex_unlock(&s->lock);
	if (!print || seconds < s->t->o.interval)
		return;
	serve_interval(s, interval_out(&s->t->o), seconds);
	*printed = now;
}

static void
serve_summary(const struct server *s)
{
	printf("%u connection%s served; ", s->counts.served, s->counts.served == 1 ? "" : "s");
	if (serve_requests(s))
		printf("; ");
	printf("%" PRIu64 " receives checked; %" PRIu64 " errors\n", s->recvs, serve_errors(s));
	fflush(stdout);
}

/* Executes the target's part of tests on all connections. */
static void
work(struct server *s)
{
	struct target *target;
	bool busy = false;

	LIST_FOREACH(target, &s->conns, next)
		busy |= responder_poll(target->responder);
	if (busy)
		s->busy_until = rte_rdtsc() + BUSY_S * s->t->tsc_hz;
}

void
serve_run(struct server *s, bool until_gone)
{
	const struct tester *t = s->t;
	/* At a prompt, the main thread prints the lines of --interval. */
	bool print = until_gone && t->o.interval > 0;
	uint64_t printed = rte_rdtsc();
	struct bb_cm_event ev;

	while (!tester_stopping(t) &&
	       (!until_gone || s->counts.served == 0 || !LIST_EMPTY(&s->conns))) {
		if (bb_cm_poll(s->cm, &ev, 1) == 1) {
			pthread_mutex_lock(&s->lock);
			event(s, &ev);
			pthread_mutex_unlock(&s->lock);
		} else if (LIST_EMPTY(&s->conns) ||
			   (!t->attr.target_progress && rte_rdtsc() > s->busy_until)) {
			usleep(NAP_US);
		}
		work(s);
		bb_dev_progress(t->dev);
		update_counts(s, print, &printed);
	}
	serve_summary(s);
}

void
serve_close(struct server *s)
{
	if (s == NULL)
		return;
	if (s->listener != NULL)
		bb_listener_destroy(s->listener);
	/* Peers that are still connected see their connection break. */
	while (!LIST_EMPTY(&s->conns))
		remove_target(s, LIST_FIRST(&s->conns)->conn);
	if (s->cm != NULL)
		bb_cm_destroy(s->cm);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct serve_counts
serve_counted(struct server *s)
{
	struct serve_counts counts;

	pthread_mutex_lock(&s->lock);
	counts = s->counts;
	pthread_mutex_unlock(&s->lock);
	return counts;
}

void
serve_each(struct server *s, void (*look)(uint32_t conn, struct bb_qp *qp, const struct tester *t))
{
	struct target *target;
	uint32_t n = 0;

	pthread_mutex_lock(&s->lock);
	LIST_FOREACH(target, &s->conns, next)
		look(n++, responder_qp(target->responder), responder_tester(target->responder));
	pthread_mutex_unlock(&s->lock);
}
