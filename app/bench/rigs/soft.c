/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "soft.h"

#define LINK_SECONDS 30 /* longest wait for a link that comes up; less than REMOTE_SECONDS */

enum bb_db_mode soft_db_mode = BB_DB_DOORBELL;
uint32_t soft_recvs;
uint32_t soft_inline = SOFT_INLINE;
enum soft_timeout soft_timeout;

static bool
have_hugepages(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long pages = 0;
	char line[128];

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "HugePages_Free: %lu", &pages) == 1)
			break;
	fclose(f);
	return pages >= 512;
}

unsigned int
peer_lcore(void)
{
	return rte_get_next_lcore(-1, 1, 0);
}

static int eal_result = 1; /* 1 until EAL is started */

bool
eal_started(void)
{
	return eal_result <= 0;
}

int
eal_start(void)
{
	static char huge[][24] = {"bench",
				  "-l",
				  "",
				  "--no-pci",
				  "--no-telemetry",
				  "--no-shconf",
				  "--in-memory",
				  "--single-file-segments",
				  "--log-level=4"};
	static char nohuge[][24] = {"bench",       "-l",        "",   "--no-pci", "--no-telemetry",
				    "--no-shconf", "--no-huge", "-m", "2048",     "--log-level=4"};
	bool pages = have_hugepages();
	char *own[RTE_DIM(nohuge) + 1], **argv = own;
	int argc;

	if (eal_result <= 0)
		return eal_result;
	for (argc = 0; argc < (int)(pages ? RTE_DIM(huge) : RTE_DIM(nohuge)); argc++)
		own[argc] = pages ? huge[argc] : nohuge[argc];
	own[argc] = NULL;
	snprintf(own[2], sizeof(huge[2]), have_peer_cpu() ? "%u,%u" : "%u", cpu_self, cpu_peer);
	if (opts.eal_argc != 0) {
		argc = opts.eal_argc;
		argv = opts.eal_argv;
	}
	rte_errno = 0;
	/*
	 * If EAL sets no rte_errno, the cause is mostly another program that holds EAL's files:
	 * -EBUSY.
	 */
	eal_result = rte_eal_init(argc, argv) >= 0 ? 0 : rte_errno != 0 ? -rte_errno : -EBUSY;
	if (eal_result != 0) {
		fprintf(stderr, "bench: EAL does not start: %s\n", strerror(-eal_result));
		return eal_result;
	}
	if (!pages && opts.eal_argc == 0)
		printf("no free hugepages: EAL runs with --no-huge\n");
	/* Asks EAL for the CPUs, because EAL decides on which CPUs its threads run. */
	cpu_self = (unsigned int)rte_lcore_to_cpu_id(-1);
	cpu_peer = peer_lcore() == RTE_MAX_LCORE
			   ? cpu_self
			   : (unsigned int)rte_lcore_to_cpu_id((int)peer_lcore());
	return 0;
}

static int
open_memory(struct soft *s)
{
	int rc;

	s->from = rte_zmalloc("bench_from", s->bytes, 4096);
	s->to = rte_zmalloc("bench_to", s->bytes, 4096);
	if (s->from == NULL || s->to == NULL)
		return -ENOMEM;
	rc = bb_mr_reg(s->pd, s->from, s->bytes, BB_ACCESS_LOCAL_WRITE, &s->src);
	if (rc != 0)
		return rc;
	return bb_mr_reg(s->pd, s->to, s->bytes,
			 BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ,
			 &s->dst);
}

static int
open_qp(struct soft *s, uint32_t recvs)
{
	struct bb_qp_init_attr init;
	int rc;

	bb_qp_init_attr_init(&init);
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	init.sq_depth = s->depth;
	init.rq_depth = recvs;
	init.max_sge = 1;
	init.max_inline = soft_inline;
	init.db_mode = soft_db_mode;
	rc = bb_qp_create(s->pd, &init, &s->qps[s->n]);
	s->n += rc == 0;
	return rc;
}

/*
 * Returns the index of an IPv4 GID, because ip= usually gives IPv4 addresses. Without an IPv4 GID
 * returns the index of a RoCE v2 GID, otherwise the first index.
 */
static uint8_t
pick_gid(struct soft *s)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	struct bb_port_attr port;
	uint8_t best = 0;
	struct bb_gid gid;
	uint32_t i;

	if (bb_port_query(s->dev, 1, &port) != 0)
		return 0;
	for (i = port.gids; i-- > 0;) {
		if (i > UINT8_MAX || bb_gid_query(s->dev, 1, i, &gid) != 0 ||
		    gid.type != BB_GID_ROCE_V2)
			continue;
		best = (uint8_t)i;
		if (memcmp(gid.raw, v4, sizeof(v4)) == 0)
			break;
	}
	return best;
}

int
soft_addr(struct soft *s, struct bb_qp *qp, struct bb_qp_addr *addr)
{
	return bb_qp_addr(qp, 1, s->sgid, addr);
}

int
soft_wait_link(struct soft *s)
{
	const uint64_t t = tsc();
	struct bb_port_attr port;
	int rc;

	for (;;) {
		rc = bb_port_query(s->dev, 1, &port);
		if (rc != 0 || port.state == BB_PORT_ACTIVE)
			return rc;
		if (ns_since(t) > LINK_SECONDS * 1e9)
			break;
		bb_dev_progress(s->dev);
		rte_delay_us_sleep(100);
	}
	fprintf(stderr, "bench: the port of %s is not active after %d s: check its link\n",
		bb_dev_name(s->dev), LINK_SECONDS);
	return -ENETDOWN;
}

int
soft_connect(struct soft *s, struct bb_qp *qp, const struct bb_qp_addr *own,
	     const struct bb_qp_addr *peer)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	attr.path.sgid_index = s->sgid;
	if (soft_timeout != SOFT_TIMEOUT_USUAL)
		attr.timeout = soft_timeout == SOFT_TIMEOUT_NONE ? 0 : 18;
	return bb_qp_connect(qp, own, peer, &attr);
}

static int
connect_pair(struct soft *s, struct bb_qp *a, struct bb_qp *b)
{
	struct bb_qp_addr addr_a, addr_b;
	int rc;

	rc = soft_addr(s, a, &addr_a);
	if (rc == 0)
		rc = soft_addr(s, b, &addr_b);
	if (rc == 0)
		rc = soft_connect(s, a, &addr_a, &addr_b);
	return rc == 0 ? soft_connect(s, b, &addr_b, &addr_a) : rc;
}

static int
open_all(struct soft *s, const char *spec, uint32_t qps, uint32_t recvs)
{
	struct bb_cq_attr cq;
	int rc;

	rc = bb_dev_open(spec, &s->dev);
	if (rc != 0)
		return rc;
	rc = bb_pd_alloc(s->dev, &s->pd);
	if (rc != 0)
		return rc;
	rc = open_memory(s);
	if (rc != 0)
		return rc;
	bb_cq_attr_init(&cq);
	cq.depth = qps * (s->depth + recvs);
	rc = bb_cq_create(s->dev, &cq, &s->cq);
	if (rc != 0)
		return rc;
	s->qps = calloc(qps, sizeof(s->qps[0]));
	if (s->qps == NULL)
		return -ENOMEM;
	while (s->n < qps && rc == 0)
		rc = open_qp(s, recvs);
	s->sgid = pick_gid(s);
	s->raddr = (uintptr_t)s->to;
	s->rkey = s->dst->rkey;
	return rc;
}

static int
begin(struct soft *s, uint32_t depth, size_t bytes)
{
	memset(s, 0, sizeof(*s));
	s->depth = depth;
	s->bytes = bytes;
	return eal_start();
}

static int
failed(struct soft *s, const char *spec, uint32_t qps, int rc)
{
	fprintf(stderr, "bench: device %s with %u queue pairs cannot be set up: %s\n", spec, qps,
		strerror(-rc));
	soft_close(s);
	return rc;
}

int
soft_open(struct soft *s, const char *spec, uint32_t pairs, uint32_t depth, size_t bytes)
{
	int rc = begin(s, depth, bytes);
	uint32_t i;

	if (rc != 0)
		return rc;
	rc = open_all(s, spec, 2 * pairs, soft_recvs);
	for (i = 0; i < pairs && rc == 0; i++)
		rc = connect_pair(s, s->qps[2 * i], s->qps[2 * i + 1]);
	return rc == 0 ? 0 : failed(s, spec, 2 * pairs, rc);
}

int
soft_open_one(struct soft *s, const char *spec, uint32_t depth, size_t bytes)
{
	int rc = begin(s, depth, bytes);

	if (rc != 0)
		return rc;
	rc = open_all(s, spec, 1, depth);
	return rc == 0 ? 0 : failed(s, spec, 1, rc);
}

void
soft_close(struct soft *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		bb_qp_destroy(s->qps[i]);
	free(s->qps);
	if (s->cq != NULL)
		bb_cq_destroy(s->cq);
	if (s->dst != NULL)
		bb_mr_dereg(s->dst);
	if (s->src != NULL)
		bb_mr_dereg(s->src);
	if (s->pd != NULL)
		bb_pd_free(s->pd);
	if (s->dev != NULL)
		bb_dev_close(s->dev);
	rte_free(s->to);
	rte_free(s->from);
	memset(s, 0, sizeof(*s));
}

double
soft_write8(void *run)
{
	const struct soft_run *r = run;
	const struct soft *s = r->s;
	const uint32_t flags = r->all ? BB_SEND_SIGNALED : 0;
	struct bb_qp *qp = s->qps[0];
	uint64_t posted = 0, done = 0, idle = 0, t = tsc();
	struct bb_wc wc[64];

	while (done < r->n) {
		unsigned int i, got;
		uint32_t k;

		while (posted < r->n && posted - done + r->batch <= r->window) {
			for (k = 1; k <= r->batch; k++, posted++)
				if (soft_post8(s, qp, posted,
					       k == r->batch ? BB_SEND_SIGNALED : flags) != 0)
					return -1;
			bb_qp_ring(qp);
		}
		if (r->other != NULL)
			bb_cq_poll(r->other->cq, wc, RTE_DIM(wc));
		got = bb_cq_poll(s->cq, wc, RTE_DIM(wc));
		for (i = 0; i < got; i++)
			if (wc[i].status != BB_WC_SUCCESS)
				return -1;
		done += r->all ? got : (uint64_t)got * r->batch;
		idle = got != 0 ? 0 : idle + 1;
		if (idle > 100000000)
			return -1;
		/*
		 * Gives up the CPU, because EAL's interrupt thread may serve a port and valgrind
		 * runs only one thread at a time.
		 */
		if (r->other != NULL && idle > 8)
			sched_yield();
	}
	return ns_since(t) / (double)r->n;
}

double
soft_in_turn(const struct soft *s, uint32_t active, uint64_t writes, uint64_t *worst)
{
	uint64_t poll = 0, done = 0, posted, t;
	uint64_t *since = calloc(active, sizeof(*since));
	struct bb_wc wc[256]; /* room for more completions than one poll of the device writes, so
				 that none stays in the CQ */
	double ns = -1;

	if (since == NULL)
		return -1;
	*worst = 0;
	t = tsc();
	for (posted = 0; posted < active; posted++) {
		if (soft_post8(s, s->qps[posted], posted, BB_SEND_SIGNALED) != 0)
			goto out;
		bb_qp_ring(s->qps[posted]);
	}
	while (done < posted && poll < 1000 * writes) {
		unsigned int k, got;

		poll++;
		got = bb_cq_poll(s->cq, wc, RTE_DIM(wc));
		for (k = 0; k < got; k++) {
			const uint64_t i = wc[k].wr_id % active;

			if (wc[k].status != BB_WC_SUCCESS)
				goto out;
			if (poll - since[i] > *worst)
				*worst = poll - since[i];
			if (posted >= writes)
				continue;
			if (soft_post8(s, s->qps[i], i, BB_SEND_SIGNALED) != 0)
				goto out;
			bb_qp_ring(s->qps[i]);
			since[i] = poll;
			posted++;
		}
		done += got;
	}
	if (done == posted)
		ns = ns_since(t) / (double)done;
out:
	free(since);
	return ns;
}

double
soft_together(void *rounds)
{
	const struct soft_rounds *r = rounds;
	const uint32_t step = r->s->n / r->active;
	uint64_t i, polls = 0, random = 1, t = tsc();
	struct bb_wc wc[64];

	for (i = 0; i < r->n; i++) {
		uint32_t k, done = 0;

		for (k = 0; k < r->active; k++) {
			uint32_t at = k * step;

			random = random * 6364136223846793005u + 1442695040888963407u;
			if (r->others)
				at += (uint32_t)((random >> 33) * step >> 31);
			if (soft_post8(r->s, r->s->qps[at], i, BB_SEND_SIGNALED) != 0)
				return -1;
			bb_qp_ring(r->s->qps[at]);
		}
		while (done < r->active) {
			unsigned int got = bb_cq_poll(r->s->cq, wc, RTE_DIM(wc));

			for (k = 0; k < got; k++)
				if (wc[k].status != BB_WC_SUCCESS)
					return -1;
			done += got;
			if (polls++ > 1000000 * r->n)
				return -1;
		}
	}
	return ns_since(t) / (double)(r->n * r->active);
}
