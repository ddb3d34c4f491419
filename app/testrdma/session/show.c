/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command "show": prints the state of the program and of the device. */
#include <rte_cycles.h>

#include "session.h"

static void
show_config(struct session *s)
{
	setting_show(s);
}

static void
show_device(struct session *s)
{
	const struct bb_dev_attr *a = &s->t.attr;

	printf("%s: driver %s%s, %u port%s\n", bb_dev_name(s->t.dev), a->driver,
	       a->software ? " (software)" : "", a->ports, a->ports == 1 ? "" : "s");
	printf("  at most %u QPs, %u WQEs each, %u SGEs (%u of receives), %u bytes inline\n",
	       a->max_qp, a->max_qp_wr, a->max_sge, a->max_recv_sge, a->max_inline);
	printf("  at most %u CQs, %u CQEs each; messages of %" PRIu64 " bytes; %u memory keys\n",
	       a->max_cq, a->max_cqe, a->max_msg_size, a->max_mr);
	printf("  READs and atomics in flight: %u as initiator, %u as target; atomics: %s\n",
	       a->max_rd_atomic, a->max_dest_rd_atomic, a->atomics ? "yes" : "no");
	printf("  BlueFlame registers of %u bytes; memory of its own: %" PRIu64 " bytes\n",
	       a->bf_size, a->max_dm_size);
}

static void
show_port(struct session *s)
{
	static const char *const links[] = {
		[BB_LINK_INFINIBAND] = "InfiniBand", [BB_LINK_ETHERNET] = "Ethernet"};
	static const char *const types[] = {
		[BB_GID_IB] = "IB", [BB_GID_ROCE_V1] = "RoCE v1", [BB_GID_ROCE_V2] = "RoCE v2"};
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	struct bb_port_attr port;
	struct bb_gid gid;
	uint32_t i, k, n;

	for (i = 1; i <= s->t.attr.ports; i++) {
		if (bb_port_query(s->t.dev, i, &port) != 0)
			continue;
		printf("port %u: %s, %s, MTU %u of %u\n", i,
		       port.state == BB_PORT_ACTIVE ? "active" : "not active",
		       links[port.link_layer], port.active_mtu, port.max_mtu);
		for (k = 0; k < port.gids; k++) {
			if (bb_gid_query(s->t.dev, (uint8_t)i, k, &gid) != 0)
				continue;
			printf("  GID %u (%s) ", k, types[gid.type]);
			for (n = 0; n < sizeof(gid.raw); n++)
				printf("%s%02x", n > 0 && n % 2 == 0 ? ":" : "", gid.raw[n]);
			/*
			 * Prints a GID ::ffff:a.b.c.d, which is that of RoCE v2 over IPv4, as an
			 * IPv4 address.
			 */
			if (memcmp(gid.raw, v4, sizeof(v4)) == 0)
				printf(" %u.%u.%u.%u", gid.raw[12], gid.raw[13], gid.raw[14],
				       gid.raw[15]);
			printf("\n");
		}
	}
}

static void
show_since(struct session *s, FILE *out)
{
	uint64_t now = rte_rdtsc();
	double seconds = (double)(now - s->last_shown_at) / (double)s->t.tsc_hz;
	static struct hist lat;
	struct totals totals;

	if (s->run.server != NULL) {
		serve_interval(s->run.server, out, seconds);
	} else {
		runner_totals(&s->run, &totals);
		/*
		 * Adds only latencies of a running test, because test_finish() has added those of
		 * each finished test.
		 */
		if (s->run.running && runner_latency(&s->run, &lat))
			interval_latencies(&lat);
		interval_line(out, totals.ops - s->last_shown.ops, seconds,
			      totals.errors - s->last_shown.errors, s->t.tsc_hz);
		s->last_shown = totals;
	}
	s->last_shown_at = now;
}

void
show_interval(struct session *s)
{
	show_since(s, interval_out(&s->set));
}

static void
show_stats(struct session *s)
{
	struct serve_counts counts;
	struct totals totals;

	if (s->run.server != NULL) {
		counts = serve_counted(s->run.server);
		printf("listening at port %u; connections %u, %u of them open\n", counts.port,
		       counts.served, counts.present);
		if (serve_requests(s->run.server))
			printf("\n");
		return;
	}
	runner_totals(&s->run, &totals);
	printf("%s; operations %" PRIu64 ", verified bytes %" PRIu64 ", errors %" PRIu64 "\n",
	       s->run.running ? "running" : "stopped", totals.ops, totals.verified, totals.errors);
	printf("since the last show stats: ");
	show_since(s, stdout);
}

static void
show_latency(struct session *s)
{
	static const struct {
		uint32_t ppm;
		const char *name;
	} points[] = {{500000, "p50"},   {900000, "p90"},    {990000, "p99"},
		      {999000, "p99.9"}, {999900, "p99.99"}, {1000000, "max"}};
	double ns = 1e9 / (double)s->t.tsc_hz;
	static struct hist lat;
	unsigned int i;

	if (!runner_latency(&s->run, &lat) || lat.count == 0) {
		printf("no latencies yet; %s\n",
		       s->run.running ? "a test measures latencies in the second half of its time"
				      : "start a test, and let it run to its end");
		return;
	}
	printf("%" PRIu64 " samples, ns: min %.0f, mean %.0f", lat.count, (double)lat.min * ns,
	       (double)lat.sum / (double)lat.count * ns);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		printf(", %s %.0f", points[i].name,
		       (double)hist_quantile(&lat, points[i].ppm) * ns);
	printf("\n");
}

static const struct {
	const char *name;
	void (*show)(struct session *s);
} shows[] = {
	{"config", show_config}, {"device", show_device},   {"port", show_port},
	{"stats", show_stats},   {"latency", show_latency}, {"qp", show_qp},
	{"cq", show_cq},         {"mr", show_mr},           {"wqe", show_wqe},
	{"errors", show_errors},
};

const struct argument show_args[] = {
	{"config", "settings of the next start", NULL, NULL},
	{"device", "the device and its limits", NULL, NULL},
	{"port", "the ports of the device and their GIDs", NULL, NULL},
	{"stats", "operations done, and their rate since the last show stats", NULL, NULL},
	{"latency", "latencies of the current or the last test", NULL, NULL},
	{"qp", "each queue pair: state, requests, doorbells, receives", NULL, NULL},
	{"cq", "completion queues", NULL, NULL},
	{"mr", "registered memory and its keys", NULL, NULL},
	{"wqe", "the first WQE of each queue pair that failed, and why", NULL, NULL},
	{"errors", "errors found; the device's counters of errors, congestion and dropped packets",
	 NULL, NULL},
	{NULL, NULL, NULL, NULL},
};

void
show_run(struct session *s, unsigned int argc, char **argv)
{
	unsigned int i;

	for (i = 0; argc == 2 && i < sizeof(shows) / sizeof(shows[0]); i++) {
		if (strcmp(shows[i].name, argv[1]) == 0) {
			shows[i].show(s);
			return;
		}
	}
	command_error_begin(s);
	fprintf(stderr, "show: give one of");
	for (i = 0; i < sizeof(shows) / sizeof(shows[0]); i++)
		fprintf(stderr, " %s", shows[i].name);
	fprintf(stderr, "\n");
}
