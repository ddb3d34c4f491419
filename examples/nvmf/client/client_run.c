/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The loop of a job: keeps as many requests as the depth outstanding, and checks the data read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "client.h"
#include "pattern.h"
#include "stop.h"

#define BURST       32u
#define WRONG_LINES 5u
#define GIVE_UP_S   1u /* seconds without a completed request until an interrupted run ends */

static int
fail(struct job *j, int rc, const char *why)
{
	if (j->rc == 0) {
		j->rc = rc;
		snprintf(j->why, sizeof(j->why), "%s", why);
	}
	return rc;
}

static void
job_wrong(struct job *j, uint64_t block, const char *what)
{
	if (j->wrong++ < WRONG_LINES)
		say("WRONG: %u bytes at %" PRIu64 ": %s", j->o->bs, (j->first + block) * j->o->bs,
		    what);
}

/* ---- Open and close a job */

static int
connect_target(struct job *j)
{
	const struct options *o = j->o;
	struct bb_nvmf_attr attr;
	char why[192];

	bb_nvmf_attr_init(&attr);
	attr.addr = o->connect;
	attr.subnqn = o->subsystem;
	attr.hostnqn = o->host;
	attr.nsid = o->nsid;
	attr.depth = o->depth;
	attr.timeout_ms = o->wait_s * 1000;
	attr.reconnect_ms = o->reconnect_s * 1000;
	attr.windows = o->windows;
	attr.stop = &stop_signal;
	j->rc = bb_nvmf_open(j->dev, &attr, &j->nvmf, why, sizeof(why));
	if (j->rc != 0)
		snprintf(j->why, sizeof(j->why), "target at %s: %s%s", o->connect, why,
			 j->rc == -ECONNREFUSED ? "; does it run, at this address?" : "");
	return j->rc;
}

/*
 * Sets the range of blocks of this job. All jobs have the same number of blocks. Returns 0 or a
 * negative errno.
 */
static int
cut(struct job *j)
{
	const struct options *o = j->o;
	const struct bb_nvmf_shape *s = bb_nvmf_shape(j->nvmf);
	uint64_t size = o->size;

	if (o->bs % s->block != 0 || o->bs > s->max_io) {
		snprintf(j->why, sizeof(j->why),
			 "--bs %u: the target takes multiples of %u up to %u", o->bs, s->block,
			 s->max_io);
		return j->rc = -EINVAL;
	}
	if (o->offset >= s->capacity || size > s->capacity - o->offset) {
		snprintf(j->why, sizeof(j->why),
			 "--offset %" PRIu64 ", --size %" PRIu64 ": the target has %" PRIu64
			 " bytes",
			 o->offset, o->size, s->capacity);
		return j->rc = -EINVAL;
	}
	if (size == 0)
		size = s->capacity - o->offset;
	j->blocks = size / o->bs / j->jobs;
	j->first = o->offset / o->bs + j->index * j->blocks;
	if (j->blocks == 0 || j->blocks > UINT32_MAX)
		return fail(j, -EINVAL,
			    "--size: each lcore needs 1 to 4294967295 blocks of --bs bytes");
	if (s->read_only && o->rw != RW_READ && o->rw != RW_RANDREAD)
		return fail(j, -EROFS, "the target is read-only");
	return 0;
}

int
job_open(void *job)
{
	struct job *j = job;
	uint32_t i, depth;
	size_t len;
	int rc;

	hist_reset(&j->latency);
	rc = connect_target(j);
	if (rc == 0)
		rc = cut(j);
	if (rc != 0)
		return rc;
	depth = bb_nvmf_shape(j->nvmf)->depth;
	len = (size_t)depth * j->o->bs;
	j->mem = rte_zmalloc("data", len, 4096);
	j->requests = calloc(depth, sizeof(*j->requests));
	j->table = calloc(j->blocks, sizeof(*j->table));
	if (j->mem == NULL || j->requests == NULL || j->table == NULL)
		return fail(j, -ENOMEM, "no memory: give EAL more, -m MB, or less --depth or --bs");
	rc = bb_nvmf_reg(j->nvmf, j->mem, len, &j->mr);
	if (rc != 0)
		return fail(j, rc, "memory cannot be registered");
	for (i = 0; i < depth; i++) {
		j->requests[i].mem = j->mem + (size_t)i * j->o->bs;
		j->requests[i].next = j->free;
		j->free = &j->requests[i];
	}
	j->ios = j->o->ios != 0 || j->o->seconds != 0 ? j->o->ios : j->blocks;
	j->random = j->o->seed * 0x9e3779b97f4a7c15ull + j->index + 1;
	return 0;
}

int
job_close(void *job)
{
	struct job *j = job;

	/* The first call ends outstanding requests, which may use the memory. */
	if (j->nvmf != NULL && bb_nvmf_close(j->nvmf) != 0) {
		(void)bb_nvmf_dereg(j->nvmf, j->mr);
		(void)bb_nvmf_close(j->nvmf);
	}
	rte_free(j->mem);
	free(j->requests);
	return 0;
}

/* ---- Completed requests */

static void
check_read(struct job *j, const struct request *r)
{
	const struct block *b = &j->table[r->block];
	const char *wrong;
	uint64_t seq;

	wrong = pattern_check(r->mem, j->o->bs, (j->first + r->block) * j->o->bs, j->o->seed, &seq);
	/*
	 * If no write to the block was acknowledged, the block may still have data of an earlier
	 * run: the write may never have reached a target that died. The journal does not describe
	 * that data, so only count the block.
	 */
	if (wrong != NULL && j->o->check != NULL && b->acked == 0 &&
	    pattern_foreign(r->mem, j->o->bs, j->o->seed)) {
		j->foreign++;
		return;
	}
	if (wrong == NULL && seq == 0)
		j->unwritten++;
	if (wrong == NULL && seq < b->acked)
		wrong = seq == 0 ? "is zero: the acknowledged write is not there"
				 : "is of an older write: the acknowledged write is not there";
	/*
	 * An acknowledged write belongs to this run or to the run of the journal, so @seq must be a
	 * number that was sent. If no write to the block was acknowledged, the data may be that of
	 * an earlier run with the same seed.
	 */
	if (wrong == NULL && b->acked != 0 && seq > b->sent)
		wrong = "is of a write that was never sent";
	if (wrong != NULL)
		job_wrong(j, r->block, wrong);
	else
		j->verified++;
}

static void
done_one(struct job *j, const struct bb_nvmf_done *d)
{
	struct request *r = d->user;
	struct block *b = &j->table[r->block];

	if (d->error == 0)
		hist_add(&j->latency, (uint64_t)((double)(rte_get_tsc_cycles() - r->began) * 1e9 /
						 (double)rte_get_tsc_hz()));
	if (r->op == BB_NVMF_FLUSH)
		j->flushing = false;
	else
		b->busy = false;
	r->next = j->free;
	j->free = r;
	if (d->error == -ECONNRESET)
		return;
	if (d->error != 0) {
		if (j->failed++ < WRONG_LINES)
			say("%s of %u bytes at %" PRIu64 " failed: %s",
			    r->op == BB_NVMF_READ    ? "read"
			    : r->op == BB_NVMF_WRITE ? "write"
						     : "flush",
			    r->op == BB_NVMF_FLUSH ? 0 : j->o->bs, (j->first + r->block) * j->o->bs,
			    strerror(-d->error));
		return;
	}
	if (r->op == BB_NVMF_FLUSH) {
		j->flushes++;
		/* No other request was outstanding, so the flush covered all acknowledged writes.
		 */
		j->unflushed = 0;
	} else if (r->op == BB_NVMF_WRITE) {
		j->writes++;
		j->unflushed++;
		b->acked = r->seq;
	} else {
		j->reads++;
		if (j->o->verify)
			check_read(j, r);
	}
}

/* ---- New requests */

static uint64_t
next_random(struct job *j)
{
	/* The random number generator xorshift64* of Marsaglia and Vigna. */
	j->random ^= j->random >> 12;
	j->random ^= j->random << 25;
	j->random ^= j->random >> 27;
	return j->random * 0x2545f4914f6cdd1dull;
}

/*
 * Returns the block for the next request. Returns UINT64_MAX if that block has an outstanding
 * request, because the order of two requests for one block is not defined.
 */
static uint64_t
pick(struct job *j)
{
	uint64_t b;

	if (j->o->rw == RW_READ || j->o->rw == RW_WRITE) {
		/*
		 * --check reads only blocks of the journal. fill() calls this function only if at
		 * least one of them was not read yet, so the loop ends.
		 */
		while (j->o->check != NULL && j->table[j->cursor].sent == 0)
			j->cursor = j->cursor + 1 == j->blocks ? 0 : j->cursor + 1;
		b = j->cursor;
		if (j->table[b].busy)
			return UINT64_MAX;
		j->cursor = b + 1 == j->blocks ? 0 : b + 1;
		return b;
	}
	b = next_random(j) % j->blocks;
	return j->table[b].busy ? UINT64_MAX : b;
}

static bool
wants_write(struct job *j)
{
	if (j->o->rw == RW_RANDRW)
		return (next_random(j) >> 40 & 1) != 0;
	return j->o->rw == RW_WRITE || j->o->rw == RW_RANDWRITE;
}

static int
submit(struct job *j, struct request *r)
{
	struct bb_nvmf_request req = {.op = r->op, .user = r, .mr = j->mr, .mem = r->mem};
	struct block *b = &j->table[r->block];
	int rc;

	if (r->op != BB_NVMF_FLUSH) {
		req.length = j->o->bs;
		req.offset = (j->first + r->block) * j->o->bs;
	}
	if (r->op == BB_NVMF_WRITE) {
		req.flags = j->o->fua ? BB_NVMF_FUA : 0;
		r->seq = j->seq + 1;
		pattern_fill(r->mem, j->o->bs, req.offset, r->seq, j->o->seed);
	}
	r->began = rte_get_tsc_cycles();
	rc = bb_nvmf_submit(j->nvmf, &req);
	if (rc != 0)
		return rc;
	j->free = r->next;
	if (r->op == BB_NVMF_FLUSH) {
		j->flushing = true;
		return 0;
	}
	b->busy = true;
	if (r->op == BB_NVMF_WRITE) {
		j->seq++;
		b->sent = r->seq;
	}
	j->begun++;
	return 0;
}

/* Returns true if a flush is due after the outstanding requests have completed. */
static bool
flush_due(const struct job *j)
{
	return j->o->flush_every > 0 &&
	       j->unflushed + bb_nvmf_pending(j->nvmf) >= j->o->flush_every;
}

/* Submits as many requests as possible. Returns their number or a negative errno. */
static int
fill(struct job *j, bool over)
{
	bool flush = j->unflushed > 0 && !j->o->fua && (over || flush_due(j));
	int rc = 0, n = 0;

	if (j->flushing)
		return 0;
	/* A flush covers only completed writes, so wait until all have completed. */
	if (flush) {
		if (bb_nvmf_pending(j->nvmf) > 0)
			return 0;
		j->free->op = BB_NVMF_FLUSH;
		j->free->block = 0;
		rc = submit(j, j->free);
		n = rc == 0;
	}
	while (!flush && !over && !flush_due(j) && j->free != NULL && rc == 0 && n < (int)BURST &&
	       (j->ios == 0 || j->begun < j->ios)) {
		uint64_t b = pick(j);

		if (b == UINT64_MAX)
			break;
		j->free->block = b;
		j->free->op = wants_write(j) ? BB_NVMF_WRITE : BB_NVMF_READ;
		rc = submit(j, j->free);
		n += rc == 0;
	}
	return rc != 0 && rc != -EAGAIN ? rc : n;
}

/*
 * Returns true if no request has completed for GIVE_UP_S since the user interrupted the run: the
 * target is silent, or the connection is being restored. The journal has the outstanding writes.
 */
static bool
stuck(struct job *j)
{
	const uint64_t now = rte_get_tsc_cycles();

	if (stop_signal == 0)
		return false;
	if (j->progress == 0 || bb_nvmf_pending(j->nvmf) < j->pending)
		j->progress = now;
	j->pending = bb_nvmf_pending(j->nvmf);
	return now - j->progress > GIVE_UP_S * rte_get_tsc_hz();
}

int
job_run(void *job)
{
	struct job *j = job;
	const uint64_t start = rte_get_tsc_cycles();
	const uint64_t end = start + j->o->seconds * rte_get_tsc_hz();
	struct bb_nvmf_done done[BURST];
	bool over = false;
	uint32_t i, n;
	int rc = 0;

	for (;;) {
		over = over || stop_signal != 0 ||
		       ((j->ios != 0 || j->o->check != NULL) && j->begun >= j->ios) ||
		       (j->o->seconds != 0 && rte_get_tsc_cycles() > end) || j->failed > 1000 ||
		       j->seq == UINT32_MAX; /* the last number of a write */
		if (rc >= 0)
			rc = fill(j, over);
		if (rc > 0)
			bb_nvmf_ring(j->nvmf);
		n = bb_nvmf_poll(j->nvmf, done, BURST);
		for (i = 0; i < n; i++)
			done_one(j, &done[i]);
		if (stuck(j)) {
			snprintf(j->why, sizeof(j->why), "interrupted with %u outstanding requests",
				 bb_nvmf_pending(j->nvmf));
			j->rc = -EINTR;
			break;
		}
		if (bb_nvmf_pending(j->nvmf) > 0)
			continue;
		if (bb_nvmf_broken(j->nvmf) != NULL) {
			fail(j, -ECONNRESET, bb_nvmf_broken(j->nvmf));
			break;
		}
		if (rc < 0) {
			fail(j, rc, strerror(-rc));
			break;
		}
		if (over && (j->unflushed == 0 || j->o->fua || j->failed > 0))
			break;
	}
	j->reconnects = bb_nvmf_reconnects(j->nvmf);
	j->cycles = rte_get_tsc_cycles() - start;
	return j->rc;
}
