/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * storage_target: serves a file or a block device over RDMA.
 *
 * Read next: blk_proto.h (the protocol), target.h (workers, clients, slots), target_io.c (the
 * execution of a command).
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "target.h"

#define BURST 32u

int target_failed;

static bool
options_no_pci(const void *options)
{
	const struct options *o = options;
	uint32_t i;

	for (i = 0; i < o->devices; i++)
		if (!eal_spec_no_pci(o->device[i]))
			return false;
	return true;
}

static const struct program program = {
	.name = "storage_target",
	.memory_mb = 256,
	.options = (const struct option[]){{"file", 1, NULL, 0},
					   {"device", 1, NULL, 0},
					   {"listen", 1, NULL, 0},
					   {"size", 1, NULL, 0},
					   {NULL, 0, NULL, 0}},
	.help = target_help,
	.parse = target_options_parse,
	.no_pci = options_no_pci,
};

static bool
ends(void)
{
	return stop_signal != 0 || __atomic_load_n(&target_failed, __ATOMIC_RELAXED) != 0;
}

/* Rings the doorbells of all clients that have new requests. */
static void
ring(struct worker *w)
{
	uint32_t i;

	if (!w->ring)
		return;
	w->ring = false;
	for (i = 0; i < w->o->clients; i++) {
		struct client *c = &w->clients[i];

		if (c->qp == NULL)
			continue;
		if (c->ring_recv)
			bb_qp_ring_recv(c->qp);
		if (c->ring_send)
			bb_qp_ring(c->qp);
		c->ring_recv = c->ring_send = false;
	}
}

/*
 * Sends what the backing has completed, takes new commands, and starts their requests to the
 * backing by one system call. The completions go first: the system call may take tens of
 * microseconds, and a software device sends during the poll. Returns the number of completions and
 * commands, or the negative errno of the system call.
 */
static int
turn(struct worker *w)
{
	struct io_done done[BURST];
	struct bb_wc wc[BURST];
	uint32_t i, n, m;
	int rc;

	m = io_reap(w->io, done, BURST);
	for (i = 0; i < m; i++)
		worker_done(w, &done[i]);
	ring(w);
	n = bb_cq_poll(w->cq, wc, BURST);
	for (i = 0; i < n; i++)
		worker_wc(w, &wc[i]);
	ring(w);
	rc = io_submit(w->io);
	return rc < 0 ? rc : (int)(n + m);
}

/* Waits until the kernel has ended all requests, because they use memory that is freed next. */
static void
drain(struct worker *w)
{
	struct io_done done[BURST];
	uint32_t i, n, left;

	do {
		(void)io_submit(w->io);
		n = io_reap(w->io, done, BURST);
		for (i = 0; i < n; i++)
			worker_done(w, &done[i]);
		for (i = 0, left = 0; i < w->o->clients; i++)
			left += w->clients[i].under_way;
	} while (left > 0);
}

static int
worker_main(void *arg)
{
	struct worker *w = arg;
	uint32_t idle = 0;
	int n;

	w->rc = clients_open(w);
	if (w->rc == 0) {
		printf("storage_target: queue %u at port %u, %s, %s\n", w->index,
		       bb_listener_port(w->listener), io_queue_way(w->io),
		       w->b->direct ? "O_DIRECT" : "page cache");
		fflush(stdout);
	}
	while (w->rc == 0 && !ends()) {
		n = turn(w);
		idle = n == 0 ? idle + 1 : 0;
		if (n < 0) {
			w->rc = n;
			say("io_uring accepts no more requests: %s", strerror(-n));
		}
		/* bb_cm_poll() itself limits how often it checks the sockets (poll_us). */
		if (idle % 16 == 0)
			clients_watch(w);
	}
	if (w->rc != 0)
		__atomic_store_n(&target_failed, 1, __ATOMIC_RELAXED);
	if (w->io != NULL)
		drain(w);
	clients_close(w);
	return w->rc;
}

static int
open_workers(const struct options *o, struct backing *b, struct worker *workers, uint32_t n)
{
	unsigned int lcore = rte_get_main_lcore();
	const char *spec;
	uint32_t i;
	int rc;

	for (i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		w->o = o;
		w->b = b;
		w->index = i;
		w->lcore = lcore;
		lcore = rte_get_next_lcore(i == 0 ? (unsigned int)-1 : lcore, 1, 0);
		w->shape = (struct bb_blk_shape){.capacity = b->capacity,
						 .block = b->block,
						 .max_io = o->max_io,
						 .queues = n,
						 .read_only = b->read_only};
		spec = o->device[i < o->devices ? i : o->devices - 1];
		rc = bb_dev_open(spec, &w->dev);
		if (rc != 0) {
			say("--device %s: cannot be opened: %s; the lines above say why", spec,
			    strerror(-rc));
			return rc;
		}
	}
	return 0;
}

static int
run(const struct options *o, struct backing *b)
{
	static struct worker workers[MAX_WORKERS];
	uint32_t n = rte_lcore_count(), i;
	uint64_t reads = 0, writes = 0, flushes = 0, fuas = 0, refused = 0;
	int rc;

	if (n > MAX_WORKERS) {
		say("%u lcores: %u at most", n, MAX_WORKERS);
		return EXIT_USAGE;
	}
	rc = open_workers(o, b, workers, n);
	if (rc == 0) {
		printf("storage_target: %s, %" PRIu64 " bytes in blocks of %u, %u queues\n",
		       o->file.path, b->capacity, b->block, n);
		for (i = 1; i < n; i++)
			rte_eal_remote_launch(worker_main, &workers[i], workers[i].lcore);
		worker_main(&workers[0]);
		rte_eal_mp_wait_lcore();
	}
	for (i = 0; i < n; i++) {
		rc = workers[i].rc != 0 ? workers[i].rc : rc;
		reads += workers[i].reads;
		writes += workers[i].writes;
		flushes += workers[i].flushes;
		fuas += workers[i].fuas;
		refused += workers[i].refused;
		if (workers[i].dev != NULL)
			bb_dev_close(workers[i].dev);
	}
	printf("storage_target: %" PRIu64 " reads, %" PRIu64 " writes (%" PRIu64 " FUA), %" PRIu64
	       " flushes, %" PRIu64 " refused\n",
	       reads, writes, fuas, flushes, refused);
	return rc == 0 ? 0 : EXIT_FAILED;
}

int
main(int argc, char **argv)
{
	static struct options o;
	struct backing b;
	int eal_argc, rc;

	rc = program_args(&program, &o, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	/* Without this, a write above the limit of ulimit -f would kill the process. */
	signal(SIGXFSZ, SIG_IGN);
	if (backing_open(&b, &o.file) != 0)
		return EXIT_FAILED;
	if (program_start(eal_argc, argv) != 0) {
		backing_close(&b);
		return EXIT_FAILED;
	}
	rc = run(&o, &b);
	backing_close(&b);
	program_end();
	return rc;
}
