/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>

#include "client.h"
#include "output.h"

struct sums {
	uint64_t reads, writes, flushes, verified, wrong, failed, unwritten, foreign, reconnects;
	double seconds;
	struct hist latency;
};

static const struct {
	const char *name, *key;
	uint32_t ppm;
} points[] = {{"p50", "p50", 500000},
	      {"p90", "p90", 900000},
	      {"p99", "p99", 990000},
	      {"p99.9", "p99_9", 999000}};

/* Returns the number of requests per second for @ios requests; 0 if no time has passed. */
static double
rate(const struct sums *s, uint64_t ios)
{
	return s->seconds > 0 ? (double)ios / s->seconds : 0;
}

/* Returns MB/s (10^6 bytes) of @ios requests. */
static double
mbytes(const struct options *o, const struct sums *s, uint64_t ios)
{
	return rate(s, ios) * o->bs / 1e6;
}

static void
add_up(struct sums *s, const struct job *jobs, uint32_t n)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	hist_reset(&s->latency);
	for (i = 0; i < n; i++) {
		const struct job *j = &jobs[i];
		double seconds = (double)j->cycles / (double)rte_get_tsc_hz();

		s->reads += j->reads;
		s->writes += j->writes;
		s->flushes += j->flushes;
		s->verified += j->verified;
		s->wrong += j->wrong;
		s->failed += j->failed;
		s->unwritten += j->unwritten;
		s->foreign += j->foreign;
		s->reconnects += j->reconnects;
		s->seconds = seconds > s->seconds ? seconds : s->seconds;
		if (j->latency.count > 0)
			hist_merge(&s->latency, &j->latency);
	}
}

static int
json(const struct options *o, const struct sums *s, uint32_t jobs, int status)
{
	FILE *f = output_open("json", o->json);
	uint32_t i;

	if (f == NULL)
		return -1;
	fprintf(f,
		"{\n  \"exit_status\": %d,\n  \"queues\": %u,\n  \"reads\": %" PRIu64
		",\n  \"writes\": %" PRIu64 ",\n  \"flushes\": %" PRIu64
		",\n  \"verified\": %" PRIu64 ",\n  \"unwritten\": %" PRIu64
		",\n  \"foreign\": %" PRIu64 ",\n  \"reconnects\": %" PRIu64
		",\n  \"wrong\": %" PRIu64 ",\n  \"failed\": %" PRIu64
		",\n  \"seconds\": %.6f,\n  \"read_mbytes_per_s\": %.3f,"
		"\n  \"write_mbytes_per_s\": %.3f,\n  \"latency_ns\": {\"samples\": %" PRIu64,
		status, jobs, s->reads, s->writes, s->flushes, s->verified, s->unwritten,
		s->foreign, s->reconnects, s->wrong, s->failed, s->seconds, mbytes(o, s, s->reads),
		mbytes(o, s, s->writes), s->latency.count);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		fprintf(f, ", \"%s\": %" PRIu64, points[i].key,
			hist_quantile(&s->latency, points[i].ppm));
	fprintf(f, "}\n}\n");
	return output_close(f, "json", o->json);
}

int
client_report(const struct options *o, const struct job *jobs, uint32_t n)
{
	static struct sums s;
	int status = 0;
	uint32_t i;

	add_up(&s, jobs, n);
	for (i = 0; i < n; i++) {
		if (jobs[i].rc == 0)
			continue;
		if (jobs[i].rc != -EINTR)
			status = jobs[i].rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
		if (jobs[i].why[0] != '\0')
			say("%s", jobs[i].why);
	}
	if (s.wrong > 0 || s.failed > 0)
		status = EXIT_FAILED;
	printf("%" PRIu64 " reads, %" PRIu64 " writes of %u bytes, %" PRIu64 " flushes in %.3f s",
	       s.reads, s.writes, o->bs, s.flushes, s.seconds);
	printf("\n");
	if (s.reads > 0)
		printf("read   %.0f a second, %.2f MB/s\n", rate(&s, s.reads),
		       mbytes(o, &s, s.reads));
	if (s.writes > 0)
		printf("write  %.0f a second, %.2f MB/s\n", rate(&s, s.writes),
		       mbytes(o, &s, s.writes));
	if (s.latency.count > 0) {
		printf("latency");
		for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
			printf("  %s %.1f us", points[i].name,
			       (double)hist_quantile(&s.latency, points[i].ppm) / 1000);
		printf("\n");
	}
	if (o->verify)
		printf("%" PRIu64 " verified, %" PRIu64 " of them never written, %" PRIu64
		       " WRONG\n",
		       s.verified, s.unwritten, s.wrong);
	if (s.foreign > 0)
		printf("%" PRIu64
		       " hold data of an earlier run; their writes were sent, but not acknowledged\n",
		       s.foreign);
	if (s.reconnects > 0)
		printf("%" PRIu64 " connections restored\n", s.reconnects);
	if (s.failed > 0)
		printf("%" PRIu64 " FAILED\n", s.failed);
	if (status == 0 && stop_signal != 0)
		status = 128 + stop_signal;
	if (o->json != NULL && json(o, &s, n, status) != 0)
		status = EXIT_FAILED;
	return status;
}
