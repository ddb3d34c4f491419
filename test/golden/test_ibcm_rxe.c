/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of the communication manager that Linux's rdma_cm sent over rdma_rxe. Each is parsed,
 * built again and compared byte for byte. The engine then takes the place of either side of a
 * recorded conversation, and must send the same bytes but for its communication IDs.
 */
#include "bb_ibcm.h"
#include "golden.h"
#include "pcap.h"
#include "roce_frame.h"

#define MAX_MADS 64u

/* A recorded MAD and where it came from. */
struct mad {
	struct bb_ibcm_gmp gmp;
	uint8_t bytes[BB_IBCM_MAD];
	struct bb_ibcm_msg msg;
};

static struct mad mads[MAX_MADS];
static unsigned int nmads;

/* Reads the MADs of a recording that went to QP1. */
static void
read_mads(const char *name)
{
	struct pcap r;
	const uint8_t *p;
	size_t len;

	nmads = 0;
	pcap_open(&r, name);
	while (pcap_next(&r, &p, &len)) {
		struct mad *m = &mads[nmads];
		struct bb_roce_pkt pkt;
		struct roce_frame f;

		assert_true(roce_frame_split(&f, p + PCAP_ETH_LEN, len - PCAP_ETH_LEN));
		assert_int_equal(bb_roce_parse(&pkt, f.bth, f.bth_len), BB_ROCE_OK);
		if (pkt.dqpn != BB_IBCM_QPN)
			continue;
		assert_true(++nmads <= MAX_MADS);
		memcpy(m->gmp.net.src, f.net.src, 16);
		memcpy(m->gmp.net.dst, f.net.dst, 16);
		m->gmp.sqpn = pkt.sqpn;
		m->gmp.qkey = pkt.qkey;
		assert_int_equal(pkt.len, BB_IBCM_MAD);
		memcpy(m->bytes, pkt.payload, BB_IBCM_MAD);
		assert_int_equal(bb_ibcm_parse(&m->msg, m->bytes, BB_IBCM_MAD), BB_IBCM_PARSED);
	}
	free(r.bytes);
}

/* Returns the @nth MAD of a type, from 0. */
static struct mad *
find(uint8_t type, unsigned int nth)
{
	for (unsigned int i = 0; i < nmads; i++)
		if (mads[i].msg.type == type && nth-- == 0)
			return &mads[i];
	fail_msg("no %s in the recording", bb_ibcm_type_str(type));
	return NULL;
}

static void
rebuild_all(const unsigned int want[BB_IBCM_TYPES])
{
	unsigned int n[BB_IBCM_TYPES] = {0};

	for (unsigned int i = 0; i < nmads; i++) {
		uint8_t again[BB_IBCM_MAD];

		assert_int_equal(mads[i].gmp.qkey, BB_IBCM_QKEY);
		assert_int_equal(mads[i].gmp.sqpn, BB_IBCM_QPN);
		n[mads[i].msg.type - BB_IBCM_REQ]++;
		assert_true(bb_ibcm_build(again, &mads[i].msg));
		assert_memory_equal(again, mads[i].bytes, BB_IBCM_MAD);
	}
	for (unsigned int i = 0; i < BB_IBCM_TYPES; i++)
		assert_int_equal(n[i], want[i]);
}

TEST(test_recorded_messages_parse_and_rebuild)
{
	/* REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP */
	static const unsigned int cm[BB_IBCM_TYPES] = {5, 1, 1, 3, 3, 3, 3, 2, 2};
	static const unsigned int old[BB_IBCM_TYPES] = {2, 0, 0, 2, 2, 2, 2};

	read_mads("rxe-6.1-conversations.pcap");
	rebuild_all(old);
	read_mads("rxe-6.1-cm.pcap");
	rebuild_all(cm);
}

/*
 * Values that tshark shows for these packets. The flow label and the rate are exceptions:
 * tshark 4.0 reads them one byte early.
 */
TEST(test_recorded_req_has_the_values_of_the_programs)
{
	const struct bb_ibcm_req *r;
	const struct mad *m;
	struct bb_ibcm_ip ip;

	read_mads("rxe-6.1-cm.pcap");
	m = find(BB_IBCM_REQ, 0);
	r = &m->msg.req;
	assert_fields(m->msg, local_id, 0x87ea9125, tid, 0x000000022591ea87);
	assert_fields(*r, service_id, 0x1061c06, ca_guid, 0x505400fffe000203, qpn, 0x11, psn,
		      0x38fa13, responder_resources, 1, initiator_depth, 1);
	assert_fields(*r, remote_timeout, 20, local_timeout, 20, transport, BB_IBCM_RC, retry_count,
		      7, rnr_retry, 7, cm_retries, 15);
	assert_fields(*r, pkey, 0xffff, mtu, 3, srq, 0, primary.local_lid, 0xffff,
		      primary.hop_limit, 64, primary.ack_timeout, 19);
	assert_memory_equal(r->primary.local_gid, m->gmp.net.src, 16);
	assert_memory_equal(r->primary.remote_gid, m->gmp.net.dst, 16);
	assert_int_equal(r->primary.flow_label, 0x4ea74);
	assert_true(bb_ibcm_ip_parse(&ip, m->msg.priv, m->msg.priv_len));
	assert_fields(ip, version, 4, sport, 0xabd2);
	assert_memory_equal(ip.src, m->gmp.net.src, 16);
	assert_memory_equal(ip.dst, m->gmp.net.dst, 16);

	m = find(BB_IBCM_REQ, 1);
	assert_true(bb_ibcm_ip_parse(&ip, m->msg.priv, m->msg.priv_len));
	assert_fields(ip, version, 6, sport, 0x84af, src[0], 0x20, src[15], 3, dst[15], 2);
	assert_memory_equal(ip.src, m->gmp.net.src, 16);
}

TEST(test_recorded_answers_have_the_values_of_the_programs)
{
	const struct mad *m;
	struct bb_ibcm_ip ip;

	read_mads("rxe-6.1-cm.pcap");
	m = find(BB_IBCM_REP, 0);
	assert_fields(m->msg, local_id, 0xaf26a5a6, remote_id, 0x87ea9125, rep.qpn, 0x11, rep.psn,
		      0xccba65, rep.ca_guid, 0x505400fffe000202, rep.rnr_retry, 7);
	/* The server of rping was stopped; Linux answers a repeated REQ. */
	m = find(BB_IBCM_MRA, 0);
	assert_fields(m->msg, remote_id, 0x82ea9125, mra.answers, BB_IBCM_ANSWERS_REQ, mra.timeout,
		      24);
	/* A port without a listener. */
	m = find(BB_IBCM_REJ, 0);
	assert_fields(m->msg, local_id, 0, remote_id, 0x84ea9125, rej.reason,
		      BB_IBCM_REJ_SERVICE_ID, rej.answers, BB_IBCM_ANSWERS_REQ, rej.ari_len, 0);
	m = find(BB_IBCM_DREQ, 0);
	assert_fields(m->msg, local_id, 0x87ea9125, remote_id, 0xaf26a5a6, dreq.remote_qpn, 0x11);
	m = find(BB_IBCM_SIDR_REQ, 0);
	assert_fields(m->msg, local_id, 0x85ea9125, sidr_req.pkey, 0xffff, sidr_req.service_id,
		      0x1111c06);
	assert_true(bb_ibcm_ip_parse(&ip, m->msg.priv, m->msg.priv_len));
	assert_fields(ip, version, 4, sport, 0x8b82);
	/* The Q_Key is RDMA_UDP_QKEY of Linux. */
	m = find(BB_IBCM_SIDR_REP, 0);
	assert_fields(m->msg, local_id, 0x85ea9125, sidr_rep.status, BB_IBCM_SIDR_OK, sidr_rep.qpn,
		      0x13, sidr_rep.service_id, 0x1111c06, sidr_rep.qkey, 0x1234567);
	assert_int_equal(find(BB_IBCM_SIDR_REP, 1)->msg.sidr_rep.status, BB_IBCM_SIDR_UNSUPPORTED);
}

/* ---- The engine in the place of one side */

struct side {
	struct bb_ibcm *cm;
	uint8_t sent[BB_IBCM_MAD];
	unsigned int nsent;
	struct bb_ibcm_net net;
	enum bb_ibcm_event_type last;
	uint32_t id;
};

static void
side_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	struct side *s = ctx;

	memcpy(s->sent, mad, BB_IBCM_MAD);
	s->net = *net;
	s->nsent++;
}

static void
side_event(void *ctx, const struct bb_ibcm_event *ev)
{
	struct side *s = ctx;

	s->last = ev->type;
	s->id = ev->id;
}

static void
side_new(struct side *s, uint64_t guid)
{
	static const struct bb_ibcm_ops ops = {.tx = side_tx, .event = side_event};
	struct bb_ibcm_attr attr;

	memset(s, 0, sizeof(*s));
	bb_ibcm_attr_init(&attr);
	attr.max_conns = 8;
	attr.ca_guid = guid;
	attr.ops = &ops;
	attr.ctx = s;
	OK(bb_ibcm_create(&attr, &s->cm));
}

/* Gives the engine a recorded MAD, in which @id replaces the receiver's ID. */
static void
give(struct side *s, const struct mad *m, uint32_t id)
{
	struct bb_ibcm_msg msg = m->msg;
	uint8_t bytes[BB_IBCM_MAD];

	if (msg.type != BB_IBCM_REQ)
		msg.remote_id = id;
	assert_true(bb_ibcm_build(bytes, &msg));
	bb_ibcm_rx(s->cm, &m->gmp, bytes, BB_IBCM_MAD, 0);
}

/*
 * Compares the MAD that the engine sent last with a recorded one, in which @id replaces the
 * sender's ID. @tid: whether the TID is that of the peer's message, and so must be equal.
 */
static void
same(const struct side *s, const struct mad *want, uint32_t id, bool tid)
{
	struct bb_ibcm_msg sent, msg = want->msg;
	uint8_t bytes[BB_IBCM_MAD];

	assert_int_equal(bb_ibcm_parse(&sent, s->sent, BB_IBCM_MAD), BB_IBCM_PARSED);
	msg.local_id = id;
	if (!tid)
		msg.tid = sent.tid;
	assert_true(bb_ibcm_build(bytes, &msg));
	for (unsigned int i = 0; i < BB_IBCM_MAD; i++)
		if (bytes[i] != s->sent[i])
			fail_msg("%s: byte %u is 0x%02x, recorded 0x%02x",
				 bb_ibcm_type_str(msg.type), i, s->sent[i], bytes[i]);
	assert_memory_equal(s->net.src, want->gmp.net.src, 16);
	assert_memory_equal(s->net.dst, want->gmp.net.dst, 16);
}

/* Both conversations of rping, over IPv4 and IPv6. */
TEST(test_engine_answers_linux_as_linux_does)
{
	const struct bb_ibcm_service service = {
		.service_id = 0x1061c06, .mask = BB_IBCM_PS_MASK, .ip = true};

	read_mads("rxe-6.1-cm.pcap");
	for (unsigned int i = 0; i < 2; i++) {
		const struct mad *rep = find(BB_IBCM_REP, i);
		struct side s;
		uint32_t id;

		side_new(&s, rep->msg.rep.ca_guid);
		OK(bb_ibcm_listen(s.cm, &service));
		give(&s, find(BB_IBCM_REQ, i), 0);
		assert_int_equal(s.last, BB_IBCM_EV_REQ);
		id = s.id;
		OK(bb_ibcm_accept(s.cm, id, &rep->msg.rep, rep->msg.priv, rep->msg.priv_len, 0, 0));
		same(&s, rep, id, true);
		give(&s, find(BB_IBCM_RTU, i), id);
		assert_int_equal(s.last, BB_IBCM_EV_ESTABLISHED);
		give(&s, find(BB_IBCM_DREQ, i), id);
		assert_int_equal(s.last, BB_IBCM_EV_DISCONNECTED);
		same(&s, find(BB_IBCM_DREP, i), id, true);
		bb_ibcm_destroy(s.cm);
	}
}

TEST(test_engine_connects_to_linux_as_linux_does)
{
	read_mads("rxe-6.1-cm.pcap");
	for (unsigned int i = 0; i < 2; i++) {
		const struct mad *m = find(BB_IBCM_REQ, i);
		const struct bb_ibcm_path *path = &m->msg.req.primary;
		struct bb_ibcm_net net = m->gmp.net;
		struct side s;
		uint32_t id;

		net.flow_label = path->flow_label;
		net.tclass = (uint8_t)path->tclass;
		net.hop_limit = (uint8_t)path->hop_limit;
		net.sl = (uint8_t)path->sl;
		side_new(&s, m->msg.req.ca_guid);
		OK(bb_ibcm_connect(s.cm, &net, &m->msg.req, m->msg.priv, m->msg.priv_len, 0, 0,
				   &id));
		same(&s, m, id, false);
		give(&s, find(BB_IBCM_REP, i), id);
		assert_int_equal(s.last, BB_IBCM_EV_REP);
		OK(bb_ibcm_ready(s.cm, id, NULL, 0));
		same(&s, find(BB_IBCM_RTU, i), id, false);
		OK(bb_ibcm_disconnect(s.cm, id, NULL, 0, 0));
		same(&s, find(BB_IBCM_DREQ, i), id, false);
		give(&s, find(BB_IBCM_DREP, i), id);
		assert_int_equal(s.last, BB_IBCM_EV_DISCONNECTED);
		bb_ibcm_destroy(s.cm);
	}
}

TEST(test_engine_refuses_as_linux_does)
{
	struct side s;

	read_mads("rxe-6.1-cm.pcap");
	side_new(&s, 0);
	/* The third REQ and the second SIDR_REQ named a port without a listener. */
	give(&s, find(BB_IBCM_REQ, 2), 0);
	same(&s, find(BB_IBCM_REJ, 0), 0, true);
	bb_ibcm_rx(s.cm, &find(BB_IBCM_SIDR_REQ, 1)->gmp, find(BB_IBCM_SIDR_REQ, 1)->bytes,
		   BB_IBCM_MAD, 0);
	same(&s, find(BB_IBCM_SIDR_REP, 1), find(BB_IBCM_SIDR_REP, 1)->msg.local_id, true);
	assert_int_equal(s.nsent, 2);
	bb_ibcm_destroy(s.cm);
}

TEST(test_engine_asks_for_time_as_linux_does)
{
	const struct bb_ibcm_service service = {
		.service_id = 0x1061c06, .mask = UINT64_MAX, .ip = true};
	struct side s;

	read_mads("rxe-6.1-cm.pcap");
	side_new(&s, 0);
	OK(bb_ibcm_listen(s.cm, &service));
	/* The fourth REQ was repeated, as the server was stopped. */
	give(&s, find(BB_IBCM_REQ, 3), 0);
	assert_memory_equal(find(BB_IBCM_REQ, 3)->bytes, find(BB_IBCM_REQ, 4)->bytes, BB_IBCM_MAD);
	assert_int_equal(s.nsent, 0);
	give(&s, find(BB_IBCM_REQ, 4), 0);
	same(&s, find(BB_IBCM_MRA, 0), s.id, true);
	bb_ibcm_destroy(s.cm);
}

TEST_MAIN(0)
