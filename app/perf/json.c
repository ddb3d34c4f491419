/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes the results as JSON at the end of the run. */

#include <rte_version.h>

#include "json_string.h"
#include "output.h"
#include "perf.h"

static FILE *json;

int
json_open(const char *path)
{
	json = output_open("json", path);
	return json != NULL ? 0 : -1;
}

static void
put_options(const struct perf *p)
{
	const struct options *o = &p->o;

	fprintf(json, "  ");
	json_string(json, "protocol", o->proto->name);
	fprintf(json, ", \"role\": \"%s\", ", p->server ? "server" : "client");
	json_string(json, "device", o->device);
	/* iters is 0 with --duration. */
	fprintf(json, ",\n  \"connection\": \"%s\", \"size\": %u, \"iters\": %" PRIu64,
		bb_qp_type_name(o->type), o->size, o->duration > 0 ? 0 : o->iters);
	fprintf(json, ", \"all\": %s, \"bidirectional\": %s, \"duration\": %u",
		o->all ? "true" : "false", o->bidirectional ? "true" : "false", o->duration);
	fprintf(json, ", \"mtu\": %u, \"tx_depth\": %u, \"rx_depth\": %u, \"cq_mod\": %u", p->mtu,
		o->tx_depth, p->recv_slots, o->cq_mod);
	fprintf(json, ", \"check\": %s, \"rdma_cm\": %s,\n", o->check ? "true" : "false",
		o->rdma_cm ? "true" : "false");
	fprintf(json, "  \"peer_version\": \"%u.%02u\",\n", p->peer_version / 100,
		p->peer_version % 100);
}

/* Writes the figures and the peer's report of one size. */
static void
put_figures(const struct size_result *s)
{
	const struct figures *f = &s->figures;

	if (f->latency)
		fprintf(json,
			",\n   \"latency_us\": {\"samples\": %" PRIu64
			", \"min\": %.3f, \"median\": "
			"%.3f, \"avg\": %.3f, \"p99\": %.3f, \"max\": %.3f}",
			s->samples, f->min, f->median, f->mean, f->p99, f->max);
	if (f->bandwidth)
		fprintf(json,
			",\n   \"bandwidth\": {\"peak_mib_s\": %.6f, \"average_mib_s\": %.6f, "
			"\"rate_mpps\": %.9f}",
			f->peak, f->average, f->rate);
	if (s->peer_reported)
		fprintf(json,
			",\n   \"peer_report\": {\"size\": %" PRIu64 ", \"iters\": %" PRIu64
			", \"peak_mib_s\": %.6f, \"average_mib_s\": %.6f, \"rate_mpps\": %.9f}",
			s->peer.size, s->peer.iters, s->peer.peak, s->peer.average, s->peer.rate);
}

static void
put_sizes(const struct perf *p)
{
	const struct size_result *s;
	uint32_t i;

	fprintf(json, "  \"sizes\": [");
	for (i = 0; i < p->res.n_sizes; i++) {
		s = &p->res.sizes[i];
		fprintf(json,
			"%s\n  {\"size\": %u, \"messages\": %" PRIu64 ", \"sent\": %" PRIu64
			", \"received\": %" PRIu64 ", \"seconds\": %.9f",
			i > 0 ? "," : "", s->size, s->messages, s->sent, s->received,
			s->figures.seconds);
		put_figures(s);
		fprintf(json, "}");
	}
	fprintf(json, "],\n");
}

static void
put_queue_pairs(const struct perf *p)
{
	const struct perf_qp *q;
	uint32_t i;

	fprintf(json, "  \"queue_pairs\": [");
	for (i = 0; p->qps != NULL && i < p->o.qps; i++) {
		q = &p->qps[i];
		fprintf(json,
			"%s{\"qpn\": %u, \"peer_qpn\": %u, \"sent\": %" PRIu64
			", \"received\": %" PRIu64 "}",
			i > 0 ? ",\n    " : "", q->addr.qpn, q->peer.addr.qpn,
			q->total_sent + q->done, q->total_received + q->recv_done);
	}
	fprintf(json, "],\n");
}

/* Writes totals, and the figures of the last size. */
static void
put_result(const struct perf *p)
{
	const struct result *r = &p->res;
	struct size_result last = {0};

	if (r->n_sizes > 0)
		last = r->sizes[r->n_sizes - 1];
	/* The server of one-sided operations gets its client's report at the end. */
	if (r->peer_reported) {
		last.peer = r->peer;
		last.peer_reported = true;
	}
	put_sizes(p);
	put_queue_pairs(p);
	fprintf(json,
		"  \"messages\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"received\": %" PRIu64
		", \"served\": %" PRIu64 ",\n",
		r->messages, p->total_sent + p->done, p->total_received + p->recv_done, r->served);
	fprintf(json, "  \"checked_bytes\": %" PRIu64 ", \"words_grown\": %" PRIu64, r->checked,
		r->words_grown);
	put_figures(&last);
	fprintf(json, ",\n");
}

int
json_close(const struct perf *p, int status)
{
	FILE *f = json;

	if (json == NULL)
		return 0;
	fprintf(json, "{\n  \"program\": \"bb_perf\", ");
	json_string(json, "version", PERF_VERSION);
	fprintf(json, ", ");
	json_string(json, "dpdk", rte_version());
	fprintf(json, ",\n");
	put_options(p);
	put_result(p);
	fprintf(json, "  \"result\": \"%s\", \"exit_status\": %d\n}\n",
		status == 0    ? "pass"
		: status > 128 ? "interrupted"
			       : "fail",
		status);
	json = NULL;
	return output_close(f, "json", p->o.json);
}
