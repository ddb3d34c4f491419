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
	fprintf(json, ",\n  \"connection\": \"%s\", \"size\": %u, \"iters\": %" PRIu64,
		bb_qp_type_name(o->type), o->size, o->iters);
	fprintf(json, ", \"mtu\": %u, \"tx_depth\": %u, \"rx_depth\": %u, \"cq_mod\": %u", p->mtu,
		o->tx_depth, p->recv_slots, o->cq_mod);
	fprintf(json, ", \"check\": %s,\n", o->check ? "true" : "false");
	fprintf(json, "  \"peer_version\": \"%u.%02u\",\n", p->peer_version / 100,
		p->peer_version % 100);
}

static void
put_result(const struct perf *p)
{
	const struct result *r = &p->res;
	struct figures f;

	report_figures(p, &f);
	fprintf(json,
		"  \"messages\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"received\": %" PRIu64
		", \"served\": %" PRIu64 ",\n",
		r->messages, p->done, p->recv_done, r->served);
	fprintf(json, "  \"checked_bytes\": %" PRIu64 ", \"words_grown\": %" PRIu64 ",\n",
		r->checked, r->words_grown);
	if (f.latency)
		fprintf(json,
			"  \"latency_us\": {\"samples\": %" PRIu64 ", \"min\": %.3f, \"median\": "
			"%.3f, \"avg\": %.3f, \"p99\": %.3f, \"max\": %.3f},\n",
			r->lat.count, f.min, f.median, f.mean, f.p99, f.max);
	if (f.bandwidth)
		fprintf(json,
			"  \"bandwidth\": {\"peak_mib_s\": %.6f, \"average_mib_s\": %.6f, "
			"\"rate_mpps\": %.9f},\n",
			f.peak, f.average, f.rate);
	if (r->peer_reported)
		fprintf(json,
			"  \"peer_report\": {\"size\": %" PRIu64 ", \"iters\": %" PRIu64
			", \"peak_mib_s\": %.6f, \"average_mib_s\": %.6f, \"rate_mpps\": %.9f},\n",
			r->peer.size, r->peer.iters, r->peer.peak, r->peer.average, r->peer.rate);
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
