/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Telemetry. EAL's threads receive the commands, and the loop executes them between two turns. So
 * the commands need no lock, and the counters of a reply are of the same turn.
 */
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "bb_tel.h"
#include "nvmf_program.h"
#include "nvmf_rdma.h"

#define WAIT_US 2000000u /* us that a command waits for the loop */
#define STEP_US 100u

struct call {
	int (*fn)(const char *params, struct rte_tel_data *d);
	const char *params;
	struct rte_tel_data *d;
	int rc, done;
};

static struct storage *storage;
static struct nvmf_rdma *rdma; /* transport of the first lcore */
static struct call *waiting;   /* the next command, NULL if there is none; accessed with __atomic */
/* held by EAL's threads only, not by the loop */
static pthread_mutex_t callers = PTHREAD_MUTEX_INITIALIZER;

/* ---- Commands passed from EAL's threads to the loop */

unsigned int
telemetry_poll(void)
{
	struct call *c = __atomic_load_n(&waiting, __ATOMIC_RELAXED);

	if (c == NULL)
		return 0;
	c = __atomic_exchange_n(&waiting, NULL, __ATOMIC_ACQ_REL);
	if (c == NULL)
		return 0;
	c->rc = c->fn(c->params, c->d);
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
	return 1;
}

static int
in_loop(int (*fn)(const char *params, struct rte_tel_data *d), const char *params,
	struct rte_tel_data *d)
{
	struct call c = {fn, params, d, 0, 0};
	uint32_t us = 0;

	pthread_mutex_lock(&callers);
	__atomic_store_n(&waiting, &c, __ATOMIC_RELEASE);
	while (__atomic_load_n(&c.done, __ATOMIC_ACQUIRE) == 0) {
		usleep(STEP_US);
		us += STEP_US;
		/* Take the command back, unless the loop executes it already. */
		if (us >= WAIT_US &&
		    __atomic_exchange_n(&waiting, NULL, __ATOMIC_ACQ_REL) != NULL) {
			c.rc = bb_tel_refuse(d, "the target does not respond");
			break;
		}
	}
	pthread_mutex_unlock(&callers);
	return c.rc;
}

/* ---- Replies to telemetry commands */

/* Adds a text that may come from a host, without characters that JSON does not allow. */
static void
add_text(struct rte_tel_data *d, const char *name, const char *text)
{
	char safe[RTE_TEL_MAX_STRING_LEN];
	size_t i;

	for (i = 0; i < sizeof(safe) - 1 && text[i] != '\0'; i++)
		safe[i] =
			(char)(isprint((unsigned char)text[i]) && text[i] != '"' && text[i] != '\\'
				       ? text[i]
				       : '?');
	safe[i] = '\0';
	rte_tel_data_add_dict_string(d, name, safe);
}

static int
list(const char *params, struct rte_tel_data *d)
{
	char number[12];
	uint32_t i;

	(void)params;
	rte_tel_data_start_dict(d);
	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		if (storage->entry[i].state != SLOT_ACTIVE)
			continue;
		snprintf(number, sizeof(number), "%u", i);
		add_text(d, number, storage->entry[i].nqn);
	}
	return 0;
}

/* Adds the dictionary @part to @d. */
static void
add_part(struct rte_tel_data *d, const char *name, struct rte_tel_data *part)
{
	if (part != NULL && rte_tel_data_add_dict_container(d, name, part, 0) != 0)
		rte_tel_data_free(part);
}

static struct rte_tel_data *
namespace_info(const struct slot *slot)
{
	static const char *const kinds[] = {"malloc", "null", "file"};
	const struct nvmf_ns *ns = &slot->ns[0];
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d == NULL)
		return NULL;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "kind", kinds[slot->space.kind]);
	if (slot->space.path != NULL)
		add_text(d, "path", slot->space.path);
	bb_tel_dict_uint(d, "blocks", ns->blocks);
	bb_tel_dict_uint(d, "block", 1u << ns->shift);
	bb_tel_dict_uint(d, "read_only", ns->read_only);
	bb_tel_dict_uint(d, "reads", slot_sum(slot, offsetof(struct nvmf_ns, reads)));
	bb_tel_dict_uint(d, "writes", slot_sum(slot, offsetof(struct nvmf_ns, writes)));
	bb_tel_dict_uint(d, "bytes_read", slot_sum(slot, offsetof(struct nvmf_ns, bytes_read)));
	bb_tel_dict_uint(d, "bytes_written",
			 slot_sum(slot, offsetof(struct nvmf_ns, bytes_written)));
	return d;
}

static int
info(const char *params, struct rte_tel_data *d)
{
	struct rte_tel_data *spaces = rte_tel_data_alloc();
	const struct entry *e;
	struct bb_tel_args args;
	char number[12];
	uint64_t index;
	uint32_t i;

	if (spaces == NULL)
		return bb_tel_refuse(d, "no memory for the reply");
	if (!bb_tel_args_init(&args, params) ||
	    !bb_tel_arg_uint(&args, MAX_SUBSYSTEMS - 1, &index) || args.next != NULL ||
	    storage->entry[index].state != SLOT_ACTIVE) {
		rte_tel_data_free(spaces);
		return bb_tel_refuse(d, "wrong parameters (one, a number of /bluebell/nvmf/list)");
	}
	e = &storage->entry[index];
	rte_tel_data_start_dict(d);
	add_text(d, "nqn", e->nqn);
	add_text(d, "serial", e->serial);
	bb_tel_dict_uint(d, "any_host", e->s->any_host);
	bb_tel_dict_uint(d, "hosts", e->s->nhosts);
	rte_tel_data_start_dict(spaces);
	for (i = 0; i < MAX_NAMESPACES; i++) {
		if (e->slot[i].state != SLOT_ACTIVE)
			continue;
		snprintf(number, sizeof(number), "%u", i + 1);
		add_part(spaces, number, namespace_info(&e->slot[i]));
	}
	add_part(d, "namespaces", spaces);
	return 0;
}

static int
controllers(const char *params, struct rte_tel_data *d)
{
	const struct nvmf_target *t = storage->t;
	struct bb_tel_page page;
	struct bb_tel_args args;
	uint32_t i;

	if (!bb_tel_args_init(&args, params))
		return bb_tel_refuse(d, "the parameters are too long");
	if (!bb_tel_page_begin(&page, &args, d))
		return 0;
	for (i = 0; i < t->attr.ctrls; i++)
		if (t->ctrl[i] != NULL)
			bb_tel_page_add(&page, t->ctrl[i]->cntlid);
	bb_tel_page_end(&page, "controllers", d);
	return 0;
}

/* Returns the controller whose id is the next parameter, NULL if there is none. */
static const struct nvmf_ctrl *
controller_of(struct bb_tel_args *args)
{
	uint64_t id;

	if (!bb_tel_arg_uint(args, storage->t->attr.ctrls, &id) || id == 0)
		return NULL;
	return storage->t->ctrl[id - 1];
}

static int
controller(const char *params, struct rte_tel_data *d)
{
	struct rte_tel_data *queues = rte_tel_data_alloc();
	const struct nvmf_ctrl *c = NULL;
	struct bb_tel_args args;
	uint32_t i;

	if (queues == NULL)
		return bb_tel_refuse(d, "no memory for the reply");
	if (bb_tel_args_init(&args, params))
		c = controller_of(&args);
	if (c == NULL || args.next != NULL) {
		rte_tel_data_free(queues);
		return bb_tel_refuse(d, "wrong parameters (one, a controller of "
					"/bluebell/nvmf/controllers)");
	}
	rte_tel_data_start_dict(d);
	add_text(d, "subsystem", c->subsys->nqn);
	add_text(d, "host", c->hostnqn);
	if (c->queue[0] != NULL)
		add_text(d, "address", ((const struct nvmf_conn *)c->queue[0]->user)->name);
	bb_tel_dict_uint(d, "ready", c->csts == CSTS_RDY);
	bb_tel_dict_uint(d, "keep_alive_ms", c->kato.ms);
	bb_tel_dict_uint(d, "errors", c->errors);
	rte_tel_data_start_array(queues, BB_TEL_UINT);
	for (i = 0; i <= NVMF_MAX_QUEUES; i++)
		if (c->queue[i] != NULL)
			bb_tel_array_uint(queues, i);
	add_part(d, "queues", queues);
	return 0;
}

/* Writes the lower bounds of the latency classes in ns, and the counts of the classes. */
static void
latencies(const struct nvmf_stats *s, struct rte_tel_data *bounds, struct rte_tel_data *counts)
{
	const double ns = 1e9 / (double)rte_get_tsc_hz();
	uint32_t i;

	rte_tel_data_start_array(bounds, BB_TEL_UINT);
	rte_tel_data_start_array(counts, BB_TEL_UINT);
	for (i = 0; i < NVMF_LATENCIES; i++) {
		bb_tel_array_uint(bounds, i == 0 ? 0 : (uint64_t)((double)(256ull << i) * ns));
		bb_tel_array_uint(counts, s->latency[i]);
	}
}

/* State of a queue, as telemetry reports it. */
struct view {
	const struct nvmf_conn *conn;
	struct nvmf_stats stats;
	uint32_t size, busy, waiting, lcore;
};

/* Copies the state of the queue of v->conn, in the thread of its lcore. */
static void
look(struct view *v)
{
	const struct nvmf_queue *q = v->conn->queue;
	uint32_t i;

	v->lcore = bb_loop_lcore(v->conn->rdma->loop);
	if (q == NULL)
		return;
	for (i = 0; i < q->depth; i++)
		v->busy += q->req[i].state != REQ_FREE;
	v->size = q->size;
	v->waiting = q->waiting;
	v->stats = q->stats;
}

static void
look_in_worker(struct nvmf_rdma *worker, void *arg)
{
	struct view *v = arg;

	if (v->conn->rdma == worker)
		look(v);
}

static int
queue(const char *params, struct rte_tel_data *d)
{
	struct rte_tel_data *bounds, *counts;
	const struct nvmf_ctrl *c = NULL;
	const struct nvmf_queue *q = NULL;
	struct bb_tel_args args;
	struct view v = {0};
	uint64_t qid;

	if (bb_tel_args_init(&args, params))
		c = controller_of(&args);
	if (c != NULL && bb_tel_arg_uint(&args, NVMF_MAX_QUEUES, &qid) && args.next == NULL)
		q = c->queue[qid];
	if (q == NULL)
		return bb_tel_refuse(d,
				     "wrong parameters (two, a controller and one of its queues)");
	v.conn = q->user;
	/* A queue without requests (depth 0) stands for a queue of another lcore. */
	if (q->depth != 0)
		look(&v);
	else
		nvmf_rdma_run(rdma, look_in_worker, &v);
	rte_tel_data_start_dict(d);
	bb_tel_dict_uint(d, "lcore", v.lcore);
	bb_tel_dict_uint(d, "size", v.size);
	bb_tel_dict_uint(d, "outstanding", v.busy);
	bb_tel_dict_uint(d, "waiting", v.waiting);
	bb_tel_dict_uint(d, "commands", v.stats.commands);
	bb_tel_dict_uint(d, "errors", v.stats.errors);
	bb_tel_dict_uint(d, "bytes_read", v.stats.bytes_read);
	bb_tel_dict_uint(d, "bytes_written", v.stats.bytes_written);
	bounds = rte_tel_data_alloc();
	counts = rte_tel_data_alloc();
	if (bounds == NULL || counts == NULL) {
		rte_tel_data_free(bounds);
		rte_tel_data_free(counts);
		return 0;
	}
	latencies(&v.stats, bounds, counts);
	add_part(d, "latency_ns", bounds);
	add_part(d, "latency_counts", counts);
	return 0;
}

/* Counters, summed over the lcores. */
struct totals {
	uint64_t accepted, rejected, sleeps, wakeups, count[NVMF_STATUSES];
	uint32_t status[NVMF_STATUSES];
};

/* Adds the counters of an lcore, in its thread. */
static void
add_lcore(struct nvmf_rdma *r, void *arg)
{
	const struct nvmf_target *t = r->target;
	struct totals *to = arg;
	uint32_t i, j;

	to->accepted += r->accepted;
	to->rejected += r->rejected;
	to->sleeps += r->sleeps;
	to->wakeups += r->wakeups;
	for (i = 0; i < NVMF_STATUSES && t->status[i].count != 0; i++) {
		for (j = 0; j < NVMF_STATUSES - 1; j++)
			if (to->count[j] == 0 || to->status[j] == t->status[i].status)
				break;
		to->status[j] = t->status[i].status;
		to->count[j] += t->status[i].count;
	}
}

static int
stats(const char *params, struct rte_tel_data *d)
{
	struct rte_tel_data *status = rte_tel_data_alloc();
	struct totals sum = {0};
	char name[16];
	uint32_t i;

	(void)params;
	if (status == NULL)
		return bb_tel_refuse(d, "no memory for the reply");
	add_lcore(rdma, &sum);
	nvmf_rdma_run(rdma, add_lcore, &sum);
	rte_tel_data_start_dict(d);
	bb_tel_dict_uint(d, "lcores", rdma->workers + 1);
	bb_tel_dict_uint(d, "queues_connected", sum.accepted);
	bb_tel_dict_uint(d, "queues_refused", sum.rejected);
	bb_tel_dict_uint(d, "sleeps", sum.sleeps);
	bb_tel_dict_uint(d, "wakeups", sum.wakeups);
	bb_tel_dict_uint(d, "reloads", storage->reloads);
	bb_tel_dict_uint(d, "failed_reloads", storage->failed_reloads);
	bb_tel_dict_uint(d, "paused_ms", storage->t->paused);
	rte_tel_data_start_dict(status);
	for (i = 0; i < NVMF_STATUSES && sum.count[i] != 0; i++) {
		snprintf(name, sizeof(name), "0x%03x", sum.status[i]);
		bb_tel_dict_uint(status, name, sum.count[i]);
	}
	add_part(d, "status", status);
	return 0;
}

static int
reload(const char *params, struct rte_tel_data *d)
{
	(void)params;
	if (storage_reload(storage) != 0)
		return bb_tel_refuse(d, "not applied; standard error of the target has the reason");
	rte_tel_data_start_dict(d);
	bb_tel_dict_uint(d, "reloads", storage->reloads);
	return 0;
}

/* ---- Registration of the telemetry commands */

#define COMMAND(name)                                                                              \
	static int name##_cmd(const char *cmd, const char *params, struct rte_tel_data *d)         \
	{                                                                                          \
		(void)cmd;                                                                         \
		return in_loop(name, params, d);                                                   \
	}

COMMAND(list)
COMMAND(info)
COMMAND(controllers)
COMMAND(controller)
COMMAND(queue)
COMMAND(stats)
COMMAND(reload)

void
telemetry_register(struct storage *s, struct nvmf_rdma *r)
{
	storage = s;
	rdma = r;
	rte_telemetry_register_cmd("/bluebell/nvmf/list", list_cmd,
				   "Subsystems by number. Takes no parameters");
	rte_telemetry_register_cmd("/bluebell/nvmf/info", info_cmd,
				   "A subsystem and its namespaces. Parameters: number");
	rte_telemetry_register_cmd(
		"/bluebell/nvmf/controllers", controllers_cmd,
		"Controllers of all subsystems. Parameters: first entry (optional)");
	rte_telemetry_register_cmd("/bluebell/nvmf/controller", controller_cmd,
				   "A controller and its host. Parameters: controller");
	rte_telemetry_register_cmd("/bluebell/nvmf/queue", queue_cmd,
				   "Counters of a queue. Parameters: controller, queue");
	rte_telemetry_register_cmd("/bluebell/nvmf/stats", stats_cmd,
				   "Counters of the target. Takes no parameters");
	rte_telemetry_register_cmd("/bluebell/nvmf/reload", reload_cmd,
				   "Reads the configuration file again. Takes no parameters");
}
