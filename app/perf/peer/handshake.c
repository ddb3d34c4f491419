/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The order of the messages over TCP. It is taken from the sources that perf_msg.h names, and for
 * perftest also from the main() of each program.
 *
 * pingpong: the client sends its address, the server replies with its address, and the client sends
 * "done". Then ibv_*_pingpong closes TCP. The server is ready to receive before it replies, the
 * client before it sends "done". A bb_perf sends "done" again when all its messages are complete.
 *
 * perftest: in every exchange the client sends first. The exchanges are, in this order:
 * - Version, cycle buffer, cache line and MTU.
 * - Latency tests other than SEND: the keys of the first queue pair.
 * - The keys of each queue pair. Then both processes connect.
 * - SEND tests: the keys of the first queue pair, as a barrier.
 * - The keys of each queue pair again.
 * - Tests other than SEND: the keys of the first queue pair, as a barrier.
 * - Between two sizes: see sizes.c.
 * - One-sided bandwidth tests in one direction: keys and a bandwidth report.
 * - All tests except write_lat: the last keys. Then each process sends "done".
 * With --rdma-cm each message is a SEND, its keys are binary, and there is no "done". Then two more
 * exchanges follow the MTU, one before and one after the connections of the test are established.
 * They exchange keys that are all 0, as a barrier.
 */
#include "perf.h"

static int
print_invalid(const struct perf *p, const char *what, const char *why)
{
	say("the peer's message \"%s\" %s; does the peer run %s of %s?", what, why,
	    p->o.proto->peer, p->o.proto->verb == VERB_PINGPONG ? "rdma-core" : "perftest");
	return -1;
}

static int
pingpong_meet(struct perf *p)
{
	uint8_t own[MSG_PINGPONG], theirs[MSG_PINGPONG], done[MSG_DONE];
	const char *why;

	msg_pingpong_encode(own, &p->qps[0].own.addr);
	if (is_client(p) && peer_write(p, own, sizeof(own)) != 0)
		return -1;
	if (peer_read(p, theirs, sizeof(theirs), "address") != 0)
		return -1;
	why = msg_pingpong_decode(theirs, sizeof(theirs), &p->qps[0].peer.addr);
	if (why != NULL)
		return print_invalid(p, "address", why);
	if (perf_connect(p) != 0 || perf_post_recvs(p) != 0)
		return -1;
	if (is_client(p))
		return peer_write(p, "done", MSG_DONE);
	if (peer_write(p, own, sizeof(own)) != 0 ||
	    peer_read(p, done, sizeof(done), "\"done\"") != 0)
		return -1;
	why = msg_done_decode(done, sizeof(done));
	return why != NULL ? print_invalid(p, "end of the handshake", why) : 0;
}

int
pingpong_begin(struct perf *p)
{
	p->mtu = p->o.mtu;
	if (p->mtu > p->port.active_mtu) {
		say("--mtu %u is more than the %u of the port; give both ends -m with at most "
		    "that",
		    p->mtu, p->port.active_mtu);
		return -1;
	}
	return perf_create(p) != 0 || pingpong_meet(p) != 0 ? -1 : 0;
}

/* Exchanges one message in each direction; the client sends first. */
static int
exchange(struct perf *p, const uint8_t *own, uint8_t *theirs, size_t len, const char *what)
{
	if (is_client(p) && peer_write(p, own, len) != 0)
		return -1;
	if (peer_read(p, theirs, len, what) != 0)
		return -1;
	return is_client(p) ? 0 : peer_write(p, own, len);
}

static int
exchange_version(struct perf *p)
{
	uint8_t own[MSG_VERSION], theirs[MSG_VERSION];
	const char *why;

	msg_version_encode(own, MSG_VERSION_OWN);
	if (exchange(p, own, theirs, sizeof(own), "version") != 0)
		return -1;
	why = msg_version_decode(theirs, sizeof(theirs), &p->peer_version);
	if (why != NULL)
		return print_invalid(p, "version", why);
	if (p->peer_version >= MSG_VERSION_MIN)
		return 0;
	say("the peer runs perftest %u.%02u; its messages changed with 5.70: install a newer "
	    "perftest at the peer",
	    p->peer_version / 100, p->peer_version % 100);
	return -1;
}

static int
exchange_size(struct perf *p, uint32_t *size, const char *what,
	      const char *(*decode)(const uint8_t *, size_t, uint32_t *))
{
	uint8_t own[MSG_U32], theirs[MSG_U32];
	const char *why;
	uint32_t v;

	msg_u32_encode(own, *size);
	if (exchange(p, own, theirs, sizeof(own), what) != 0)
		return -1;
	why = decode(theirs, sizeof(theirs), &v);
	if (why != NULL)
		return print_invalid(p, what, why);
	if (v > *size)
		*size = v;
	return 0;
}

static int
exchange_mtu(struct perf *p)
{
	uint8_t own[MSG_MTU], theirs[MSG_MTU];
	const char *why;
	uint32_t mtu;

	p->mtu = p->o.mtu != 0 && p->o.mtu < p->port.active_mtu ? p->o.mtu : p->port.active_mtu;
	msg_mtu_encode(own, p->mtu);
	if (exchange(p, own, theirs, sizeof(own), "MTU") != 0)
		return -1;
	why = msg_mtu_decode(theirs, sizeof(theirs), &mtu);
	if (why != NULL)
		return print_invalid(p, "MTU", why);
	if (mtu < p->mtu)
		p->mtu = mtu;
	return 0;
}

/* perftest always sends a GID on RoCE, and on InfiniBand with -x. */
static size_t
keys_len(const struct perf *p)
{
	if (p->o.rdma_cm)
		return MSG_KEYS_CM;
	return p->port.link_layer == BB_LINK_ETHERNET || p->path.is_global ? MSG_KEYS_GID
									   : MSG_KEYS;
}

static bool
keys_equal(const struct msg_keys *a, const struct msg_keys *b)
{
	return a->addr.qpn == b->addr.qpn && a->addr.psn == b->addr.psn && a->rkey == b->rkey &&
	       a->vaddr == b->vaddr;
}

/*
 * Exchanges the keys of queue pair @i with the peer. If @again is true, the peer must send the same
 * keys as in the first exchange.
 */
static int
exchange_keys(struct perf *p, uint32_t i, bool again, const char *what)
{
	uint8_t own[MSG_KEYS_GID], theirs[MSG_KEYS_GID];
	struct perf_qp *q = &p->qps[i];
	size_t len = keys_len(p);
	struct msg_keys keys;
	const char *why;

	msg_keys_encode(own, len, &q->own);
	if (exchange(p, own, theirs, len, what) != 0)
		return -1;
	why = msg_keys_decode(theirs, len, &keys);
	if (why != NULL)
		return print_invalid(p, "keys", why);
	/*
	 * Without @again, a peer with fewer queue pairs than this process already repeats the keys
	 * of its first one. With @again, a peer with more queue pairs still sends the keys of
	 * another one.
	 */
	if (again ? keys_equal(&keys, &q->peer) : i == 0 || !keys_equal(&keys, &p->qps[0].peer)) {
		q->peer = keys;
		return 0;
	}
	say("the peer has %s than %u queue pair%s (--qp); give the same -q to both ends",
	    again ? "more" : "fewer", p->o.qps, p->o.qps > 1 ? "s" : "");
	return -1;
}

int
perftest_sync(struct perf *p, const char *what)
{
	return exchange_keys(p, 0, true, what);
}

/*
 * Exchanges keys that are all 0 with --rdma-cm: a barrier, which only shows that both ends have
 * come to this point.
 */
static int
barrier(struct perf *p)
{
	uint8_t own[MSG_KEYS_CM] = {0}, theirs[MSG_KEYS_CM];

	return exchange(p, own, theirs, sizeof(own), "keys, for the connections of rdma_cm");
}

static int
exchange_all_keys(struct perf *p, bool again, const char *what)
{
	uint32_t i;

	for (i = 0; i < p->o.qps; i++)
		if (exchange_keys(p, i, again, what) != 0)
			return -1;
	return 0;
}

int
perftest_begin(struct perf *p)
{
	bool send = p->o.proto->verb == VERB_SEND;

	if (exchange_version(p) != 0 ||
	    exchange_size(p, &p->cycle, "cycle buffer", msg_cycle_decode) != 0 ||
	    exchange_size(p, &p->line, "cache line", msg_line_decode) != 0 ||
	    exchange_mtu(p) != 0 || perf_create(p) != 0)
		return -1;
	if (p->o.rdma_cm &&
	    (cm_expect(p) != 0 || barrier(p) != 0 || cm_connect(p) != 0 || barrier(p) != 0))
		return -1;
	if (!send && !p->o.proto->bandwidth && exchange_keys(p, 0, false, "keys, round 0") != 0)
		return -1;
	if (exchange_all_keys(p, false, "keys") != 0)
		return -1;
	if (!p->o.rdma_cm && perf_connect(p) != 0)
		return -1;
	if (send && exchange_keys(p, 0, true, "keys, after connecting") != 0)
		return -1;
	if (exchange_all_keys(p, true, "keys, round 2, after connecting") != 0)
		return -1;
	return send ? 0 : exchange_keys(p, 0, true, "keys, round 3");
}

static void
own_report(const struct perf *p, struct msg_report *r)
{
	struct figures f;

	report_figures(p, &f);
	r->size = p->size;
	r->iters = p->res.messages;
	/* perftest sends and prints reports in the unit that its user chose. */
	r->peak = f.peak * report_unit(p);
	r->average = f.average * report_unit(p);
	r->rate = f.rate;
}

int
perftest_reports(struct perf *p)
{
	uint8_t own[MSG_REPORT_PARTS * MSG_REPORT_PART], theirs[sizeof(own)];
	struct msg_report r;
	uint32_t i;

	own_report(p, &r);
	msg_report_encode(own, &r);
	for (i = 0; i < MSG_REPORT_PARTS; i++)
		if (exchange(p, own + i * MSG_REPORT_PART, theirs + i * MSG_REPORT_PART,
			     MSG_REPORT_PART, "report") != 0)
			return -1;
	msg_report_decode(theirs, sizeof(theirs), &p->res.peer);
	p->res.peer.peak /= report_unit(p);
	p->res.peer.average /= report_unit(p);
	/*
	 * Ignores the report of a server that only receives. It has no measurement and sends the
	 * contents of its memory.
	 */
	p->res.peer_reported = (p->server || p->o.bidirectional) && msg_report_usable(&p->res.peer);
	return 0;
}

int
perftest_end(struct perf *p)
{
	enum verb verb = p->o.proto->verb;

	if (verb == VERB_WRITE && !p->o.proto->bandwidth)
		return 0;
	if (verb != VERB_SEND && p->o.proto->bandwidth && !p->o.bidirectional &&
	    (perftest_sync(p, "keys at the end") != 0 || perftest_reports(p) != 0))
		return -1;
	if (perftest_sync(p, "last keys") != 0)
		return -1;
	/*
	 * Sends no final message to a peer that has closed. A peer may close as soon as it has read
	 * the keys, so this is not an error.
	 */
	return p->o.rdma_cm || peer_gone(p) ? 0 : peer_write(p, "done", MSG_DONE);
}
