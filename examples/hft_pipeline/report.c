/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Compares the result with the expected one; prints the table and the JSON. */
#include <stdarg.h>
#include <string.h>

#include "hft.h"
#include "json_string.h"
#include "latency.h"
#include "output.h"

struct outcome {
	const struct options *o;
	const struct feed *feed;
	const struct gateway *g;
	const struct worker *workers;
	struct replay r;
	uint32_t ticks;
	uint32_t failures;
	uint64_t stopped;
};

static void __attribute__((format(printf, 2, 3))) fault(struct outcome *c, const char *fmt, ...)
{
	va_list ap;

	c->failures++;
	printf("WRONG: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* Checks the counts of lost, repeated and wrong messages of every stage. */
static void
check_counts(struct outcome *c)
{
	static const char *const what[] = {"", "ticks", "quotes", "orders"};
	uint32_t s;

	for (s = STAGE_BOOK; s < STAGE_GATEWAY; s++) {
		const union hft_msg *m = &c->g->report[s];

		if (m->report.lost != 0 || m->report.twice != 0)
			fault(c, "%s to %s: %u were lost, %u came twice or out of order", what[s],
			      stage_name[s], m->report.lost, m->report.twice);
	}
	if (c->g->report[STAGE_BOOK].report.wrong != c->r.wrong)
		fault(c, "the book stage rejected %u messages, the replay %u",
		      c->g->report[STAGE_BOOK].report.wrong, c->r.wrong);
	if (c->g->in.lost != 0 || c->g->in.twice != 0)
		fault(c, "orders to gateway: %u were lost, %u came twice or out of order",
		      c->g->in.lost, c->g->in.twice);
	if (c->g->warm.next != c->g->report[STAGE_STRATEGY].report.value[2] ||
	    c->g->warm.lost != 0 || c->g->warm.twice != 0)
		fault(c, "messages of --warm: %u of %u arrived, %u were lost, %u came twice",
		      c->g->warm.next, c->g->report[STAGE_STRATEGY].report.value[2],
		      c->g->warm.lost, c->g->warm.twice);
	if (c->g->in.next != c->g->report[STAGE_RISK].report.wrong)
		fault(c, "risk passed %u orders, but the gateway received %u",
		      c->g->report[STAGE_RISK].report.wrong, c->g->norders);
}

static void
check_replay(struct outcome *c)
{
	const union hft_msg *book = &c->g->report[STAGE_BOOK], *risk = &c->g->report[STAGE_RISK];
	uint32_t i, n = c->g->norders < c->r.norders ? c->g->norders : c->r.norders;

	if (book->report.value[2] != c->ticks)
		fault(c, "the book stage received %u of %u ticks", book->report.value[2], c->ticks);
	if (report_digest(book) != c->r.digest)
		fault(c, "the books differ from those of the replay, at the end or at an earlier "
			 "message");
	if (book->report.value[4] != c->r.quotes)
		fault(c, "the pipeline made %u quotes, the replay %u", book->report.value[4],
		      c->r.quotes);
	/*
	 * Compares the orders that arrived. There may be fewer than in the replay, because the kill
	 * switch stops orders.
	 */
	for (i = 0; i < n; i++) {
		const struct order_out *a = &c->g->orders[i], *b = &c->r.orders[i];

		if (memcmp(a, b, sizeof(*a)) == 0)
			continue;
		fault(c,
		      "order %u is for tick %u: %s %u of symbol %u at %u; in the replay for tick "
		      "%u: %s %u of symbol %u at %u",
		      i + 1, a->number + 1, a->side == 'B' ? "buy" : "sell", a->shares, a->locate,
		      a->price, b->number + 1, b->side == 'B' ? "buy" : "sell", b->shares,
		      b->locate, b->price);
		break;
	}
	if (risk->report.value[RISK_KILLED] == 0 && c->g->norders != c->r.norders)
		fault(c, "the pipeline sent %u orders, the replay %u", c->g->norders, c->r.norders);
	for (i = 0; i < RISK_REASONS; i++)
		c->stopped += risk->report.value[i];
	if (risk->report.wrong + c->stopped != c->r.decisions)
		fault(c, "risk checked %" PRIu64 " orders, but the strategy of the replay made %u",
		      risk->report.wrong + c->stopped, c->r.decisions);
}

static void
check_kill(struct outcome *c)
{
	const union hft_msg *risk = &c->g->report[STAGE_RISK];
	uint32_t killed = risk->report.value[RISK_KILLED];

	if (!c->g->killed) {
		if (killed != 0)
			fault(c, "risk stopped %u orders by a kill switch that was never pulled",
			      killed);
		return;
	}
	if (c->g->kill_found != 0)
		fault(c,
		      "the kill switch was already pulled: its word held %" PRIu64 ", "
		      "expected 0",
		      c->g->kill_found);
	/*
	 * Allows as many orders as could be in flight when the atomic completed: the slots of the
	 * ring, and the backlog of an lcore.
	 */
	if (c->g->norders - c->g->orders_at_kill > c->o->slots + STAGES)
		fault(c,
		      "%u orders arrived after the kill switch was pulled, more than can be "
		      "in flight",
		      c->g->norders - c->g->orders_at_kill);
	if (c->g->norders == c->g->orders_at_kill && killed == 0 && c->r.norders > c->g->norders)
		fault(c, "orders stopped without the kill switch");
}

/* Returns the seconds from the first tick to the last, 0 if the feed did not come to the last. */
static double
seconds(const struct outcome *c)
{
	if (c->feed->end_tsc == 0)
		return 0;
	return latency_ns(c->feed->end_tsc - c->feed->start) / 1e9;
}

struct pauses_of {
	char stages[64];
	uint32_t n;
	double longest_us, total_us;
};

/*
 * Returns the pauses of worker @i. They come from the worker itself if it is in this process,
 * otherwise from the report of one of its stages.
 */
static struct pauses_of
pauses_of(const struct outcome *c, uint32_t i)
{
	const struct worker *p = &c->workers[i];
	struct pauses_of r = {.n = 0};
	uint32_t s, len = 0;

	for (s = 0; s < STAGES; s++) {
		const union hft_msg *m = &c->g->report[s];

		if (c->o->worker_of[s] != i)
			continue;
		len += (uint32_t)snprintf(r.stages + len, sizeof(r.stages) - len, "%s%s",
					  len == 0 ? "" : "+", stage_name[s]);
		r.n = m->report.pauses;
		r.longest_us = m->report.longest_us;
		r.total_us = m->report.pauses_us;
	}
	if (p->dev != NULL) {
		r.n = p->pauses.n;
		r.longest_us = latency_ns(p->pauses.longest) / 1e3;
		r.total_us = latency_ns(p->pauses.total) / 1e3;
	}
	return r;
}

static void
print_pauses(const struct outcome *c)
{
	char total[TIME_TEXT], longest[TIME_TEXT];
	uint32_t i;

	for (i = 0; i < c->o->workers; i++) {
		struct pauses_of s = pauses_of(c, i);

		if (s.n != 0)
			printf("the worker of %s was paused %u times, %s in total, the longest "
			       "pause %s\n",
			       s.stages, s.n, time_text(total, s.total_us * 1e3),
			       time_text(longest, s.longest_us * 1e3));
	}
}

static void
print(const struct outcome *c)
{
	const union hft_msg *risk = &c->g->report[STAGE_RISK];
	const struct hist *h = &c->g->latency, *quiet = &c->g->quiet;
	double s = seconds(c);
	uint32_t i;

	printf("%u ticks of %u symbols in %.3f s, %.0f a second\n", c->ticks,
	       c->feed->file->h.symbols, s, s > 0 ? c->ticks / s : 0);
	printf("%u quotes, %u orders decided, %u sent", c->r.quotes, c->r.decisions, c->g->norders);
	for (i = 0; i < RISK_REASONS; i++)
		if (risk->report.value[i] != 0)
			printf("; %u stopped: %s", risk->report.value[i], risk_reason_name[i]);
	printf("\n");
	if (c->g->killed)
		printf("kill switch pulled after %u orders; %u more orders were in flight\n",
		       c->g->orders_at_post, c->g->norders - c->g->orders_at_post);
	if (h->count == 0)
		return;
	printf("\n");
	latency_print("tick to trade", h);
	latency_print_histogram(h);
	printf("\n");
	print_pauses(c);
	if (quiet->count == h->count)
		return;
	printf("no pause delayed %" PRIu64 " of %" PRIu64 " orders\n", quiet->count, h->count);
	if (quiet->count != 0)
		latency_print("tick to trade of these orders", quiet);
}

static int
write_json(const struct outcome *c, int rc)
{
	const union hft_msg *risk = &c->g->report[STAGE_RISK];
	FILE *f = output_open("json", c->o->json);
	uint32_t i;

	if (f == NULL)
		return EXIT_FAILED;
	fprintf(f, "{\n  \"program\": \"hft_pipeline\", ");
	json_string(f, "device", c->o->device);
	fprintf(f,
		",\n  \"seed\": %" PRIu64 ", \"ticks\": %u, \"seconds\": %.6f, \"quotes\": %u, "
		"\"decisions\": %u, "
		"\"orders\": %u, \"orders_replayed\": %u,\n",
		c->feed->file->h.seed, c->ticks, seconds(c),
		c->g->report[STAGE_BOOK].report.value[4],
		c->g->report[STAGE_STRATEGY].report.value[1], c->g->norders, c->r.norders);
	fprintf(f, "  \"stopped\": {");
	for (i = 0; i < RISK_REASONS; i++)
		fprintf(f, "%s\"%s\": %u", i == 0 ? "" : ", ", risk_reason_name[i],
			risk->report.value[i]);
	fprintf(f,
		"},\n  \"killed\": %s, \"book_digest\": \"%016" PRIx64
		"\", \"replay_digest\": \"%016" PRIx64 "\",\n",
		c->g->killed ? "true" : "false", report_digest(&c->g->report[STAGE_BOOK]),
		c->r.digest);
	latency_json(f, "tick_to_trade_ns", &c->g->latency);
	latency_json(f, "quiet_ns", &c->g->quiet);
	fprintf(f, "  \"warm\": %u, \"pauses\": [", c->g->warm.next);
	for (i = 0; i < c->o->workers; i++) {
		struct pauses_of s = pauses_of(c, i);

		fprintf(f,
			"%s\n    {\"stages\": \"%s\", \"count\": %u, \"longest_us\": %.1f, "
			"\"total_us\": %.1f}",
			i == 0 ? "" : ",", s.stages, s.n, s.longest_us, s.total_us);
	}
	fprintf(f, "],\n  \"wrong\": %u, \"exit_status\": %d\n}\n", c->failures, rc);
	return output_close(f, "json", c->o->json) == 0 ? rc : EXIT_FAILED;
}

int
report(const struct options *o, const struct worker *workers, int rc)
{
	struct outcome c = {
		.o = o,
		.feed = &workers[o->worker_of[STAGE_FEED]].feed,
		.g = &workers[o->worker_of[STAGE_GATEWAY]].gateway,
		.workers = workers,
	};

	if (o->listen != NULL) {
		printf("hft_pipeline: %s\n",
		       rc == 0 ? "done; the connecting process prints the result" : "not finished");
		return rc;
	}
	c.ticks = c.feed->next;
	if (rc == 0 && replay(&c.r, c.feed->file, c.ticks, &o->params) != 0) {
		say("no memory to replay the messages");
		rc = EXIT_FAILED;
	} else if (rc == 0) {
		print(&c);
		check_counts(&c);
		check_replay(&c);
		check_kill(&c);
		if (c.failures == 0)
			printf("all %u ticks arrived once and in order; books and %u orders equal "
			       "the replay\n",
			       c.ticks, c.g->norders);
		rc = c.failures == 0 ? 0 : EXIT_FAILED;
	}
	if (rc == 0 && stop_signal != 0)
		rc = 128 + stop_signal;
	if (o->hgrm != NULL && latency_hgrm(o->hgrm, &c.g->latency) != 0)
		rc = EXIT_FAILED;
	if (o->json != NULL)
		rc = write_json(&c, rc);
	replay_free(&c.r);
	return rc;
}
