/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Results as text. The tables look like those of the original programs. */
#include <arpa/inet.h>

#include <rte_common.h>

#include "perf.h"

static void
print_end(const char *who, const struct perf *p, const struct msg_keys *k)
{
	char gid[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, k->addr.gid, gid, sizeof(gid));
	printf("  %-6s  LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s", who, k->addr.lid, k->addr.qpn,
	       k->addr.psn, gid);
	if (p->o.proto->verb != VERB_PINGPONG && p->o.proto->verb != VERB_SEND)
		printf(", RKey 0x%08x, VAddr 0x%016" PRIx64, k->rkey, k->vaddr);
	printf("\n");
}

void
report_start(const struct perf *p)
{
	uint32_t i;

	printf("bb_perf %s on %s (%s%s): %s of %s, ", PERF_VERSION, bb_dev_name(p->dev),
	       p->attr.driver, p->attr.software ? ", software" : "",
	       p->server ? "server" : "client", p->o.proto->peer);
	if (p->o.qps > 1)
		printf("%u x ", p->o.qps);
	printf("%s, ", bb_qp_type_name(p->o.type));
	if (p->o.duration > 0)
		printf("%u s of ", p->o.duration);
	else
		printf("%" PRIu64 " x ", p->o.iters);
	if (p->o.all)
		printf("2 to ");
	printf("%u bytes, %sMTU %u\n", options_size(&p->o, options_sizes(&p->o) - 1),
	       p->o.bidirectional ? "both directions, " : "", p->mtu);
	for (i = 0; i < p->o.qps; i++) {
		print_end("local", p, &p->qps[i].own);
		print_end("remote", p, &p->qps[i].peer);
	}
	fflush(stdout);
}

void
report_figures(const struct perf *p, struct figures *f)
{
	const struct result *r = &p->res;
	double us = (double)p->tsc_hz / 1e6, mib = (double)p->size / (1 << 20);
	enum verb verb = p->o.proto->verb;
	/*
	 * perftest reports half of a round trip if both processes send, otherwise the whole, as
	 * pingpong always does.
	 */
	double ways = verb == VERB_WRITE || verb == VERB_SEND ? 2 : 1;
	double seconds = (double)(r->end - r->start) / (double)p->tsc_hz;

	memset(f, 0, sizeof(*f));
	f->seconds = seconds;
	if (r->lat.count > 0) {
		f->latency = true;
		f->min = (double)r->lat.min / us / ways;
		f->median = (double)hist_quantile(&r->lat, 500000) / us / ways;
		f->mean = (double)r->lat.sum / (double)r->lat.count / us / ways;
		f->p99 = (double)hist_quantile(&r->lat, 990000) / us / ways;
		f->max = (double)r->lat.max / us / ways;
	}
	if (p->o.proto->bandwidth && r->messages > 0 && seconds > 0) {
		f->bandwidth = true;
		f->rate = (double)r->messages / seconds / 1e6;
		f->average = (double)r->messages / seconds * mib;
		/* The peak is unknown at an end that sends nothing, and with --duration. */
		if (r->peak_messages > 0)
			f->peak = RTE_MAX(f->average, (double)r->peak_messages * mib *
							      (double)p->tsc_hz /
							      (double)r->peak_cycles);
	}
}

double
report_unit(const struct perf *p)
{
	return p->o.gbits ? 8.0 * (1 << 20) / 1e9 : 1;
}

static void
print_bandwidth_head(const struct perf *p)
{
	const char *unit = p->o.gbits ? "Gb/sec" : "MB/sec";
	char peak_head[24], average_head[24];

	snprintf(peak_head, sizeof(peak_head), "BW peak[%s]", unit);
	snprintf(average_head, sizeof(average_head), "BW average[%s]", unit);
	printf(" %-9s %-12s %-18s %-21s %s\n", "#bytes", "#iterations", peak_head, average_head,
	       "MsgRate[Mpps]");
}

static void
print_bandwidth(const struct perf *p, uint64_t size, uint64_t iters, double peak, double average,
		double rate)
{
	printf(" %-9" PRIu64 " %-12" PRIu64 " %-18.2f %-21.2f %.6f\n", size, iters,
	       peak * report_unit(p), average * report_unit(p), rate);
}

void
report_size(const struct perf *p, const struct size_result *s)
{
	const struct figures *f = &s->figures;
	struct msg_report peer = {0};
	bool first = s == p->res.sizes;

	if (f->latency) {
		if (first)
			printf(" %-9s %-12s %-12s %-15s %-12s %-17s %s\n", "#bytes", "#iterations",
			       "t_min[usec]", "t_median[usec]", "t_avg[usec]",
			       "99% percentile[usec]", "t_max[usec]");
		printf(" %-9u %-12" PRIu64 " %-12.2f %-15.2f %-12.2f %-20.2f %.2f\n", s->size,
		       s->messages, f->min, f->median, f->mean, f->p99, f->max);
	}
	if (f->bandwidth) {
		if (first)
			print_bandwidth_head(p);
		/* Prints the sum of both directions, as perftest does. */
		if (s->peer_reported)
			peer = s->peer;
		print_bandwidth(p, s->size, s->messages, f->peak + peer.peak,
				f->average + peer.average, f->rate + peer.rate);
	}
	fflush(stdout);
}

void
report_result(const struct perf *p)
{
	const struct result *r = &p->res;

	if (r->peer_reported && !p->o.bidirectional) {
		print_bandwidth_head(p);
		print_bandwidth(p, r->peer.size, r->peer.iters, r->peer.peak, r->peer.average,
				r->peer.rate);
	}
	if (p->server && r->messages == 0 && r->served > 0)
		printf("the device executed %" PRIu64 " requests of the client\n", r->served);
	if (p->o.check)
		printf("%" PRIu64 " bytes checked%s\n", r->checked,
		       r->checked == 0 ? ": this end receives no data in this test" : "");
	fflush(stdout);
}
