/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * hft_pipeline: market data in, orders out, through stages that are joined by RDMA WRITEs.
 *
 * Read next: ../common/rdma_ring.h (the ring), stages.h (the messages in the ring), hft.h (lcores
 * and links), run.c (the loop of an lcore).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "generate.h"
#include "hft.h"
#include "output.h"

static bool
options_no_pci(const void *options)
{
	const struct options *o = options;

	return eal_spec_no_pci(o->device) && eal_spec_no_pci(o->peer_device);
}

static const struct program program = {
	.name = "hft_pipeline",
	.memory_mb = 256,
	.options = hft_options,
	.help = options_help,
	.parse = options_parse,
	.no_pci = options_no_pci,
};

static int
load(const struct options *o, struct itch_file *f)
{
	const struct generate g = {o->seed, o->messages, o->symbols};
	const char *name = o->file != NULL ? o->file : "the generated day";
	struct itch_fault fault = {NULL, 0, 0};
	uint8_t *image = NULL;
	size_t size;
	int rc;

	if (o->file != NULL) {
		rc = itch_file_read(f, o->file, &fault);
	} else {
		rc = generate(&g, &image, &size);
		if (rc == 0)
			rc = itch_file_open(f, image, size, &fault);
	}
	if (rc == -EBADMSG && fault.message != 0)
		say("%s: message %u, at byte %" PRIu64 ", %s; the file is cut "
		    "short or damaged: make it again with --generate",
		    name, fault.message, fault.offset, fault.what);
	else if (rc == -EBADMSG)
		say("%s: %s (byte %" PRIu64 "); the file is cut short or "
		    "damaged: make it again with --generate",
		    name, fault.what, fault.offset);
	else if (rc != 0)
		say("%s cannot be read: %s", name, strerror(-rc));
	if (rc == 0 && f->h.symbols > o->params.symbols) {
		say("%s has %u symbols: give --symbols %u at both ends", name, f->h.symbols,
		    f->h.symbols);
		rc = -EINVAL;
	}
	if (rc == 0 && f->h.max_open > o->params.max_orders) {
		say("%s has up to %u open orders: give --max-orders %u at both ends", name,
		    f->h.max_open, f->h.max_open);
		rc = -EINVAL;
	}
	return rc;
}

static int
save(const struct options *o)
{
	const struct generate g = {o->seed, o->messages, o->symbols};
	uint8_t *image = NULL;
	FILE *out = NULL;
	size_t size = 0;
	int rc;

	if (!output_try("generate", o->generate))
		return EXIT_USAGE;
	rc = generate(&g, &image, &size);
	if (rc != 0)
		say("--generate %s: %s", o->generate, strerror(-rc));
	else
		out = output_open("generate", o->generate);
	if (out != NULL) {
		fwrite(image, 1, size, out);
		rc = output_close(out, "generate", o->generate);
	}
	free(image);
	if (out == NULL || rc != 0)
		return EXIT_FAILED;
	printf("%s: %u messages of %u symbols, seed %" PRIu64 ", %zu bytes\n", o->generate,
	       o->messages, o->symbols, o->seed, size);
	return 0;
}

static int
worker_open(struct worker *p)
{
	const struct params *params = &p->o->params;
	int rc = 0;

	if (runs(p, STAGE_BOOK))
		rc = book_stage_open(&p->book, params);
	if (p->o->defect == DEFECT_BOOK)
		p->book.spoil = p->o->defect_at;
	if (rc == 0 && runs(p, STAGE_STRATEGY))
		rc = strategy_stage_open(&p->strategy, params);
	if (runs(p, STAGE_GATEWAY) && rc == 0) {
		hist_reset(&p->gateway.latency);
		hist_reset(&p->gateway.quiet);
		p->gateway.orders =
			calloc((size_t)p->gateway.max_orders + 1, sizeof(*p->gateway.orders));
		rc = p->gateway.orders != NULL ? 0 : -ENOMEM;
	}
	if (rc != 0)
		return worker_fail(p, rc,
				   "no memory for the books: give smaller --symbols or "
				   "--max-orders");
	rc = links_open(p);
	if (rc == 0 && runs(p, STAGE_RISK) && risk_stage_open(&p->risk, params, p->kill) != 0)
		rc = worker_fail(p, -ENOMEM,
				 "no memory for the risk stage: give smaller "
				 "--symbols");
	return rc;
}

static void
worker_close(struct worker *p)
{
	links_close(p);
	book_stage_close(&p->book);
	strategy_stage_close(&p->strategy);
	risk_stage_close(&p->risk);
}

static int
worker_main(void *arg)
{
	struct worker *p = arg;
	int rc = worker_open(p);

	if (rc == 0)
		rc = links_connect(p);
	if (rc == 0)
		rc = worker_run(p);
	/* Keeps the first error. If only another lcore has failed, this lcore has no error. */
	if (rc != 0 && p->rc == 0)
		p->rc = rc;
	if (p->cm != NULL)
		links_disconnect(p);
	if (p->rc == 0 && p->book.wrong != 0)
		say("the book stage rejected message %u: it %s", p->book.which, p->book.why);
	worker_close(p);
	return rc;
}

static int
open_devices(const struct options *o, struct worker *workers)
{
	const char *spec;
	uint32_t i;
	int rc;

	for (i = 0; i < o->workers; i++) {
		struct worker *p = &workers[i];

		if (p->lcore == LCORE_ID_ANY)
			continue;
		spec = i > 0 && o->listen == NULL ? o->peer_device : o->device;
		rc = bb_dev_open(spec, &p->dev);
		if (rc != 0) {
			say("--device %s: cannot be opened: %s; the lines above "
			    "say why",
			    spec, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/*
 * Assigns an lcore to each worker of this process. Returns the number of workers, -1 if there are
 * too few lcores.
 */
static int
assign(const struct options *o, struct worker *workers)
{
	unsigned int lcore = rte_get_main_lcore();
	uint32_t i;
	int n = 0;

	for (i = 0; i < o->workers; i++) {
		struct worker *p = &workers[i];
		bool feed = o->worker_of[STAGE_FEED] == i;
		bool other = o->worker != ALL_WORKERS && o->worker != i;

		p->o = o;
		p->index = i;
		p->lcore = LCORE_ID_ANY;
		if ((o->listen != NULL && feed) || (o->connect != NULL && !feed) || other)
			continue;
		if (lcore == RTE_MAX_LCORE) {
			say("EAL has %u lcores, and each worker needs one: give EAL more, as in "
			    "-l 0-%u, or join stages with --stages",
			    rte_lcore_count(), o->workers - 1);
			return -1;
		}
		p->lcore = lcore;
		lcore = rte_get_next_lcore(n++ == 0 ? (unsigned int)-1 : lcore, 1, 0);
	}
	return n;
}

static int
run(const struct options *o, const struct itch_file *file)
{
	struct worker *workers = calloc(o->workers, sizeof(*workers)), *first = NULL, *p;
	int rc = EXIT_FAILED, n;
	uint32_t i;

	if (workers == NULL) {
		say("no memory for the workers: give EAL more, -m MB");
		return EXIT_FAILED;
	}
	n = assign(o, workers);
	if (n < 0) {
		free(workers);
		return EXIT_USAGE;
	}
	if (open_devices(o, workers) != 0)
		goto out;
	workers[o->worker_of[STAGE_FEED]].feed.file = file;
	workers[o->worker_of[STAGE_GATEWAY]].gateway.max_orders = file->h.messages;
	if (o->listen != NULL)
		printf("hft_pipeline: listening at %s\n", o->listen);
	if (o->connect != NULL)
		printf("hft_pipeline: connecting to %s, for up to %u s\n", o->connect, o->wait_s);
	fflush(stdout);
	for (i = 0; i < o->workers; i++) {
		p = &workers[i];
		if (p->lcore == LCORE_ID_ANY)
			continue;
		if (p->lcore == rte_get_main_lcore())
			first = p;
		else
			rte_eal_remote_launch(worker_main, p, p->lcore);
	}
	if (first != NULL)
		worker_main(first);
	rte_eal_mp_wait_lcore();
	for (i = 0, rc = 0; i < o->workers; i++) {
		if (workers[i].rc == 0)
			continue;
		rc = EXIT_FAILED;
		if (workers[i].why[0] != '\0')
			say("%s", workers[i].why);
	}
	rc = report(o, workers, rc);
out:
	for (i = 0; i < o->workers; i++) {
		free(workers[i].gateway.orders);
		if (workers[i].dev != NULL)
			bb_dev_close(workers[i].dev);
	}
	free(workers);
	return rc;
}

int
main(int argc, char **argv)
{
	static struct itch_file file;
	static struct options o;
	int eal_argc, rc;

	rc = program_args(&program, &o, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	if (o.generate != NULL)
		return save(&o);
	/* Checks the output before the run, which may be long. */
	if (!output_try("json", o.json) || !output_try("hgrm", o.hgrm))
		return EXIT_USAGE;
	if (o.listen == NULL && load(&o, &file) != 0) {
		itch_file_free(&file);
		return EXIT_USAGE;
	}
	/*
	 * The first signal ends the day early, and the checks still run. A second signal kills the
	 * program.
	 */
	if (program_start(eal_argc, argv) != 0) {
		itch_file_free(&file);
		return EXIT_FAILED;
	}
	rc = run(&o, &file);
	itch_file_free(&file);
	program_end();
	return rc;
}
