/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens the device, and connects and destroys the queues. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "perf.h"

int
perf_error(const char *what, int rc)
{
	say("%s failed: %s; the lines above say why", what, strerror(-rc));
	return EXIT_FAILED;
}

static int
open_device(struct perf *p)
{
	struct bb_dev_info info[16];
	int rc, n, i;

	rc = bb_dev_open(p->o.device, &p->dev);
	if (rc == 0) {
		rc = bb_dev_query(p->dev, &p->attr);
		return rc != 0 ? perf_error("querying the device", rc) : 0;
	}
	say("--device %s: cannot be opened: %s", p->o.device, strerror(-rc));
	if (rc != -ENODEV && rc != -EINVAL)
		return EXIT_FAILED;
	n = bb_dev_list(info, RTE_DIM(info));
	fprintf(stderr, "bb_perf: the devices are:");
	for (i = 0; i < n && i < (int)RTE_DIM(info); i++)
		fprintf(stderr, " %s", info[i].name);
	fprintf(stderr, "\n");
	return EXIT_USAGE;
}

static bool
is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/*
 * Picks the best RoCE v2 GID. The order of preference is: not link-local and IPv4, not link-local,
 * IPv4, any.
 */
static int
pick_gid(struct perf *p)
{
	static struct bb_gid_entry list[BB_GID_MAX];
	int i, n = bb_gid_list(p->dev, p->path.port, list, BB_GID_MAX), rank, best = -1;
	uint32_t found = GID_ANY;

	for (i = 0; i < n; i++) {
		if (list[i].type != BB_GID_ROCE_V2)
			continue;
		rank = 2 * !list[i].link_local + is_ipv4(list[i].raw);
		if (rank <= best)
			continue;
		best = rank;
		found = list[i].index;
	}
	if (found == GID_ANY) {
		say("port %u of %s has no RoCE v2 GID: give its netdev an address, or ip= to a "
		    "software device",
		    p->path.port, bb_dev_name(p->dev));
		return EXIT_FAILED;
	}
	p->path.sgid_index = (uint8_t)found;
	return 0;
}

/* Finds an active port of the device: --ib-port, or the first active one. */
static bool
find_port(struct perf *p)
{
	uint32_t i, first = p->o.ib_port, last = p->o.ib_port;

	if (p->o.ib_port == 0) {
		first = 1;
		last = p->attr.ports;
	}
	for (i = first; i <= last; i++) {
		if (bb_port_query(p->dev, i, &p->port) == 0 && p->port.state == BB_PORT_ACTIVE) {
			p->path.port = (uint8_t)i;
			return true;
		}
	}
	return false;
}

/*
 * Waits until the port is active. Some ports, such as a memif, have no link until the peer has
 * opened its port too.
 */
static int
wait_for_port(struct perf *p)
{
	uint64_t start = rte_rdtsc();
	bool said = false;

	while (!find_port(p)) {
		if (stop_signal != 0) {
			say("stopped while waiting for the link");
			return 128 + stop_signal;
		}
		if (p->o.ib_port > p->attr.ports) {
			say("--ib-port %u: %s has ports 1 to %u", p->o.ib_port, bb_dev_name(p->dev),
			    p->attr.ports);
			return EXIT_USAGE;
		}
		if (rte_rdtsc() - start >= p->limit) {
			say("no port of %s became active in %u s: check the link, here and at "
			    "the peer",
			    bb_dev_name(p->dev), p->o.seconds);
			return EXIT_FAILED;
		}
		if (!said) {
			printf("waiting for the link of %s\n", bb_dev_name(p->dev));
			fflush(stdout);
		}
		said = true;
		bb_dev_progress(p->dev);
		rte_delay_us_sleep(1000);
	}
	return 0;
}

static int
pick_path(struct perf *p)
{
	int rc = wait_for_port(p);
	struct bb_gid gid;

	if (rc != 0)
		return rc;
	p->path.hop_limit = 64;
	if (p->o.gid_index == GID_ANY) {
		p->path.is_global = p->port.grh_required;
		return p->port.link_layer == BB_LINK_ETHERNET ? pick_gid(p) : 0;
	}
	if (bb_gid_query(p->dev, p->path.port, p->o.gid_index, &gid) != 0) {
		say("--gid-index %u: port %u of %s has no such GID", p->o.gid_index, p->path.port,
		    bb_dev_name(p->dev));
		return EXIT_USAGE;
	}
	p->path.sgid_index = (uint8_t)p->o.gid_index;
	p->path.is_global = 1;
	return 0;
}

static int
check_limits(struct perf *p)
{
	uint32_t room =
		is_ud(p) && p->attr.max_inline >= 32 ? p->attr.max_inline - 32 : p->attr.max_inline;
	uint64_t max = RTE_MIN(p->attr.max_msg_size, p->attr.max_mr_size / 2);

	if (p->o.size > max) {
		say("%s %u: the device allows at most %" PRIu64,
		    p->o.all ? "--all, up to" : "--size", p->o.size, max);
		return EXIT_USAGE;
	}
	if (p->o.qps > p->attr.max_qp) {
		say("--qp %u: the device allows at most %u", p->o.qps, p->attr.max_qp);
		return EXIT_USAGE;
	}
	if (p->o.tx_depth > p->attr.max_qp_wr) {
		say("--tx-depth %u: the device allows at most %u", p->o.tx_depth,
		    p->attr.max_qp_wr);
		return EXIT_USAGE;
	}
	if (p->o.proto->verb == VERB_ATOMIC && !p->attr.atomics) {
		say("device %s has no atomics; choose another --protocol", bb_dev_name(p->dev));
		return EXIT_USAGE;
	}
	/*
	 * The default is that of perftest: 220 bytes in latency tests. It is limited by the device.
	 */
	if (p->o.max_inline == UINT32_MAX)
		p->o.max_inline = p->o.proto->bandwidth ? 0 : RTE_MIN(220u, room);
	if (p->o.max_inline > room) {
		say("--inline %u: the device allows at most %u", p->o.max_inline, room);
		return EXIT_USAGE;
	}
	p->o.rx_depth = RTE_MIN(p->o.rx_depth, p->attr.max_qp_wr);
	p->o.rx_depth = RTE_MAX(p->o.rx_depth, 2u);
	return 0;
}

int
perf_open(struct perf *p)
{
	long page = sysconf(_SC_PAGESIZE), line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
	int rc;

	p->limit = p->o.seconds * p->tsc_hz;
	p->cycle = page > 0 && page <= (long)MSG_MAX_CYCLE ? (uint32_t)page : 4096;
	p->line = line >= 64 && line <= (long)MSG_MAX_LINE ? (uint32_t)line : 64;
	p->layout.slots = 1;
	hist_reset(&p->res.lat);
	rc = open_device(p);
	if (rc == 0)
		rc = pick_path(p);
	return rc == 0 ? check_limits(p) : rc;
}

static int
connect_ud(struct perf *p, struct perf_qp *q)
{
	struct bb_path path = p->path;
	int rc;

	rc = bb_qp_ud_up(q->qp, path.port, 0, PERF_QKEY, q->addr.psn);
	if (rc != 0)
		return rc;
	memcpy(path.dgid, q->peer.addr.gid, sizeof(path.dgid));
	path.dlid = q->peer.addr.lid;
	return bb_ah_create(p->pd, &path, &q->ah);
}

static int
connect_to_peer(struct perf *p, struct perf_qp *q)
{
	struct bb_qp_addr peer = {.qpn = q->peer.addr.qpn,
				  .psn = q->peer.addr.psn,
				  .lid = q->peer.addr.lid,
				  .mtu = (uint16_t)p->mtu};
	enum verb verb = p->o.proto->verb;
	struct bb_qp_attr attr;

	memcpy(peer.gid, q->peer.addr.gid, sizeof(peer.gid));
	q->addr.mtu = (uint16_t)p->mtu;
	bb_qp_attr_init(&attr);
	attr.path = p->path;
	attr.timeout = (uint8_t)p->o.qp_timeout;
	attr.min_rnr_timer = 12; /* 0.64 ms, as in the peer programs */
	attr.max_dest_rd_atomic = (uint8_t)RTE_MIN(q->own.out_reads, UINT8_MAX);
	attr.max_rd_atomic = 1;
	if (verb == VERB_READ || verb == VERB_ATOMIC)
		attr.max_rd_atomic =
			(uint8_t)RTE_MIN(RTE_MIN((uint32_t)q->peer.out_reads,
						 p->o.out_reads != 0 ? p->o.out_reads : MAX_READS),
					 p->attr.max_rd_atomic);
	if (verb == VERB_WRITE)
		attr.access = BB_ACCESS_REMOTE_WRITE;
	else if (verb == VERB_READ)
		attr.access = BB_ACCESS_REMOTE_READ;
	else if (verb == VERB_ATOMIC)
		attr.access = BB_ACCESS_REMOTE_ATOMIC;
	return bb_qp_connect(q->qp, &q->addr, &peer, &attr);
}

static bool
is_zero(const uint8_t *at, size_t len)
{
	while (len-- > 0)
		if (*at++ != 0)
			return false;
	return true;
}

static int
connect_one(struct perf *p, struct perf_qp *q)
{
	enum verb verb = p->o.proto->verb;
	int rc;

	if (p->port.link_layer == BB_LINK_ETHERNET) {
		if (is_zero(q->peer.addr.gid, sizeof(q->peer.addr.gid))) {
			say("the peer sent no GID, and RoCE needs one: start the peer with -g N%s",
			    verb == VERB_PINGPONG ? "" : " (perftest: -x N)");
			return -1;
		}
		if (is_ipv4(q->peer.addr.gid) != is_ipv4(q->own.addr.gid)) {
			say("the local GID is of %s, the peer's of %s: select another GID with "
			    "-g here, or at the peer with %s",
			    is_ipv4(q->own.addr.gid) ? "IPv4" : "IPv6",
			    is_ipv4(q->peer.addr.gid) ? "IPv4" : "IPv6",
			    verb == VERB_PINGPONG ? "-g" : "-x");
			return -1;
		}
	}
	if ((verb == VERB_READ || verb == VERB_ATOMIC) && q->peer.out_reads == 0) {
		say("the peer allows no READs and atomics (0 outstanding): start the peer with "
		    "-o N");
		return -1;
	}
	rc = is_ud(p) ? connect_ud(p, q) : connect_to_peer(p, q);
	if (rc == 0)
		return 0;
	say("connecting to the peer's QP 0x%x failed: %s%s", q->peer.addr.qpn, strerror(-rc),
	    rc == -EHOSTUNREACH || rc == -ETIMEDOUT
		    ? "; the peer's IP address does not answer: is the link up, and ip= of "
		      "--device in the peer's network?"
		    : "; the lines above say why");
	return -1;
}

int
perf_connect(struct perf *p)
{
	uint32_t i;

	for (i = 0; i < p->o.qps; i++)
		if (connect_one(p, &p->qps[i]) != 0)
			return -1;
	return 0;
}

int
perf_destroy_qps(struct perf *p)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; p->qps != NULL && i < p->o.qps; i++) {
		if (p->qps[i].ah != NULL)
			rc |= bb_ah_destroy(p->qps[i].ah);
		if (p->qps[i].qp != NULL)
			rc |= bb_qp_destroy(p->qps[i].qp);
		p->qps[i].ah = NULL;
		p->qps[i].qp = NULL;
	}
	return rc;
}

void
perf_close(struct perf *p)
{
	int rc = perf_destroy_qps(p);

	if (p->cq != NULL)
		rc |= bb_cq_destroy(p->cq);
	if (p->mr != NULL)
		rc |= bb_mr_dereg(p->mr);
	check_stop(p);
	free(p->qps);
	p->qps = NULL;
	rte_free(p->mem);
	if (p->pd != NULL)
		rc |= bb_pd_free(p->pd);
	if (p->dev != NULL)
		rc |= bb_dev_close(p->dev);
	if (rc != 0)
		say("an object of the device could not be destroyed; the lines above say why");
}
