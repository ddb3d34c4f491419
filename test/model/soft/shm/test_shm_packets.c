/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets of the shared-memory port, byte by byte. The test acts as the other process: it has its
 * own ring and directory, reads what the device writes and writes what it likes. It publishes no
 * keys and no queue pairs, so that everything goes by packets. SENDs take the fast path
 * (soft_shm_send.c), whose packets must equal those of the full path.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../../mlx5/mlx5_env.h"
#include "bb_roce_pkt.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define PEER_QPN 0x4242u
#define TCLASS   0x28u
#define HOPS     7u
#define SLOT     3u /* slot in our directory; its word is our read position */
#define RKEY     0x1234u
#define MTU      1024u
#define ANSWER   64u /* bytes of an answer, inline: two blocks of the send queue */
/* Index of our address that the queue pair uses, of another address, and past the last one. */
#define THEIRS 0u
#define OTHER  1u
#define BEHIND 2u

static const uint8_t ours[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
static const uint8_t theirs[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};

static struct env e;
static struct bb_qp_addr us, them;

/* State of the process that the test acts as. */
static struct {
	int listener, caller, callee;
	struct soft_shm_dir *dir;
	const struct soft_shm_dir *dev_dir;
	uint8_t *ring;
	const uint8_t *dev_ring;
	struct soft_ring_tx out;
	struct soft_ring_rx in;
} peer;

static void
progress(void)
{
	bb_dev_progress(e.a.dev);
}

/* Reads the next message on a socket; the caller closes descriptors that are not taken over. */
static void
heard(int sock, bool from_listener, enum soft_shm_type type, struct soft_shm_msg *m, int fds[2])
{
	uint64_t end = rte_rdtsc() + ENV_WAIT_S * rte_get_tsc_hz();
	const char *why = NULL;
	int ret;

	while ((ret = soft_shm_recv(sock, from_listener, m, fds, &why)) == 0 && rte_rdtsc() < end)
		progress();
	assert_int_equal(ret, 1);
	assert_int_equal(m->type, type);
}

static const void *
map_peer(int fd, size_t len)
{
	const void *at = soft_shm_reserve(len);

	assert_non_null(at);
	assert_int_equal(soft_shm_map(fd, len, at), 0);
	close(fd);
	return at;
}

/* The device connects as its queue pair is connected: answers it, and connects to the device. */
static void
meet(const char *fabric)
{
	struct soft_shm_msg m;
	int fds[2], dir_fd, ring_fd;
	void *map;

	assert_int_equal(soft_shm_create("t-dir", sizeof(*peer.dir), &dir_fd, &map), 0);
	peer.dir = map;
	assert_int_equal(soft_shm_create("t-ring", SOFT_RING_SIZE, &ring_fd, &map), 0);
	peer.ring = map;
	assert_int_equal(soft_shm_accept(peer.listener, &peer.callee), 0);
	heard(peer.callee, false, SOFT_SHM_HELLO, &m, fds);
	close(fds[0]);
	peer.dev_ring = map_peer(fds[1], SOFT_RING_SIZE);
	soft_ring_rx_init(&peer.in, peer.dev_ring, &peer.dir->head[SLOT].v);
	soft_shm_msg_init(&m, SOFT_SHM_WELCOME);
	m.u.welcome.slot = SLOT;
	assert_int_equal(soft_shm_send(peer.callee, &m, &dir_fd, 1), 0);

	assert_int_equal(soft_shm_connect(fabric, ours, 0, &peer.caller), 0);
	soft_shm_msg_init(&m, SOFT_SHM_HELLO);
	m.u.hello.n_gids = BEHIND;
	memcpy(m.u.hello.gids[THEIRS], theirs, 16);
	memcpy(m.u.hello.gids[BEHIND], theirs, 16);
	fds[0] = dir_fd;
	fds[1] = ring_fd;
	assert_int_equal(soft_shm_send(peer.caller, &m, fds, 2), 0);
	close(dir_fd);
	close(ring_fd);
	heard(peer.caller, true, SOFT_SHM_WELCOME, &m, fds);
	peer.dev_dir = map_peer(fds[0], sizeof(*peer.dev_dir));
	soft_ring_tx_init(&peer.out, peer.ring, &peer.dev_dir->head[m.u.welcome.slot].v);
}

static int
begin_with(const char *more)
{
	char fabric[32], spec[96];
	pid_t pid;

	snprintf(fabric, sizeof(fabric), "pkt%d", (int)getpid());
	snprintf(spec, sizeof(spec), "soft0,shm=%s,ip=192.0.2.1/24%s", fabric, more);
	assert_int_equal(soft_shm_listen(fabric, theirs, 0, &peer.listener, &pid), 0);
	env_open_two(&e, spec, NULL);
	side_qp(&e, &e.a);
	e.attr.path.sgid_index = 1;
	e.attr.path.traffic_class = TCLASS;
	e.attr.path.hop_limit = HOPS;
	e.attr.path.flow_label = 0xabcde;
	e.attr.timeout = 0; /* no retransmission by timeout */
	OK(bb_qp_addr(e.a.qp, 1, 1, &us));
	us.psn = 0xfffffe;
	us.mtu = MTU;
	them = us;
	them.qpn = PEER_QPN;
	them.psn = 0x100;
	memcpy(them.gid, theirs, 16);
	OK(bb_qp_connect(e.a.qp, &us, &them, &e.attr));
	meet(fabric);
	return 0;
}

static int
begin(void **st)
{
	(void)st;
	return begin_with("");
}

/* With fault injection a received packet is serialized again; no fault hits it afterwards. */
static int
begin_faulty(void **st)
{
	(void)st;
	return begin_with(",rx_ecn=100");
}

static int
end(void **st)
{
	(void)st;
	close(peer.listener);
	close(peer.caller);
	close(peer.callee);
	env_stop(&e);
	munmap(peer.dir, sizeof(*peer.dir));
	munmap(peer.ring, SOFT_RING_SIZE);
	munmap((void *)(uintptr_t)peer.dev_dir, sizeof(*peer.dev_dir));
	munmap((void *)(uintptr_t)peer.dev_ring, SOFT_RING_SIZE);
	return 0;
}

#define T(name) TEST_WITH(begin, end, name)

/* ---- Packets that the device sends */

/* Returns the next packet, valid until take(). */
static const uint8_t *
next(struct soft_ring_rec *rec)
{
	const uint8_t *p = NULL;
	unsigned int i;

	for (i = 0; i < 1000 && (p = soft_ring_peek(&peer.in, rec)) == NULL; i++)
		progress();
	assert_non_null(p);
	return p;
}

static void
take(void)
{
	soft_ring_pop(&peer.in);
	soft_ring_release(&peer.in);
}

static void
nothing(void)
{
	struct soft_ring_rec rec;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		progress();
		assert_null(soft_ring_peek(&peer.in, &rec));
	}
}

/* Checks that the next packet equals @pkt and @payload to the last byte, and stores its headers. */
static void
sends(struct bb_roce_pkt *pkt, const uint8_t *payload)
{
	static uint8_t want[SOFT_RING_MAX];
	struct soft_ring_rec rec;
	uint32_t len;
	const uint8_t *p = next(&rec);

	pkt->pkey = 0xffff;
	pkt->dqpn = PEER_QPN;
	pkt->flags |= BB_ROCE_MIGREQ;
	len = bb_roce_build(want, pkt);
	if (pkt->len != 0)
		memcpy(want + len, payload, pkt->len);
	len += pkt->len;
	memset(want + len, 0, bb_roce_pad(pkt->len));
	len += bb_roce_pad(pkt->len);
	assert_int_equal(rec.len, len);
	assert_memory_equal(p, want, len);
	assert_int_equal(rec.sgid, 1);
	assert_int_equal(rec.tclass, TCLASS);
	assert_int_equal(rec.hop_limit, HOPS);
	assert_true(rec.sport >= 0xc000);
	assert_int_equal(rec.flow_label, 0xabcde);
	take();
}

/* Checks that the next packet is a response with @syndrome. */
static void
answers(uint32_t psn, uint8_t syndrome)
{
	struct soft_ring_rec rec;
	struct bb_roce_pkt pkt;
	const uint8_t *p = next(&rec);

	assert_int_equal(bb_roce_parse(&pkt, p, rec.len), BB_ROCE_OK);
	assert_int_equal(pkt.opcode, BB_ROCE_RC | BB_ROCE_ACK);
	assert_int_equal(pkt.syndrome, syndrome);
	assert_int_equal(pkt.psn, psn);
	take();
}

/* ---- Packets that the test sends */

static const uint8_t no_ack[1];

/* Writes a record with a packet, and with the @ack_len bytes at @ack as a second packet. */
static void
write_two(const struct bb_roce_pkt *pkt, const uint8_t *payload, uint8_t sgid, const uint8_t *ack,
	  uint8_t ack_len)
{
	uint32_t hdr_len, len;
	uint8_t hdr[BB_ROCE_MAX_HDR];
	struct soft_ring_rec *rec;
	uint8_t *at;

	hdr_len = bb_roce_build(hdr, pkt);
	len = hdr_len + pkt->len + bb_roce_pad(pkt->len);
	rec = soft_ring_reserve(&peer.out, len + ack_len);
	assert_non_null(rec);
	rec->flow_label = 0;
	rec->sport = 0xc123;
	rec->tclass = 0;
	rec->hop_limit = 64;
	rec->sgid = sgid;
	rec->ack_len = ack_len;
	at = (uint8_t *)(rec + 1);
	memcpy(at, hdr, hdr_len);
	if (pkt->len != 0)
		memcpy(at + hdr_len, payload, pkt->len);
	memset(at + hdr_len + pkt->len, 0xee, bb_roce_pad(pkt->len));
	memcpy(at + len, ack, ack_len);
	soft_ring_publish(&peer.out, rec, len + ack_len);
}

/* Writes a packet. */
static void
write_packet(const struct bb_roce_pkt *pkt, const uint8_t *payload, uint8_t sgid)
{
	write_two(pkt, payload, sgid, no_ack, 0);
}

/* Writes a packet; the device receives it. */
static void
put(const struct bb_roce_pkt *pkt, const uint8_t *payload, uint8_t sgid)
{
	write_packet(pkt, payload, sgid);
	progress();
}

static struct bb_roce_pkt
packet(uint8_t opcode, uint32_t psn, uint32_t len)
{
	return (struct bb_roce_pkt){
		.opcode = (uint8_t)(BB_ROCE_RC | opcode),
		.pkey = 0xffff,
		.dqpn = us.qpn,
		.psn = psn & BB_ROCE_PSN_MASK,
		.len = len,
	};
}

static void
ack(uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, psn, 0);

	pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	pkt.msn = msn;
	put(&pkt, NULL, THEIRS);
}

/* ---- Tests */

static void
send_inline(uint32_t len, uint32_t flags)
{
	OK(bb_post_send_inline(e.a.qp, len, e.a.buf, len, flags | BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
}

static void
send_from(uint32_t len, uint32_t flags)
{
	const struct bb_sge sge = {.addr = (uintptr_t)e.a.buf, .len = len, .lkey = e.a.mr->lkey};

	OK(bb_post_send(e.a.qp, len, &sge, 1, flags | BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
}

/*
 * SENDs with all paddings, in a ring full of old bytes: a byte that is not written again would
 * show. WQEs with inline data have one block or two.
 */
T(test_sends_of_any_length_are_written_whole)
{
	struct bb_roce_pkt pkt;
	struct bb_wc wc;
	uint32_t i, len, psn = us.psn;

	for (i = 0; i < SOFT_RING_SIZE / MTU + 64; i++) {
		bool wide = i < SOFT_RING_SIZE / MTU;

		len = wide ? MTU : 1 + (i * 7) % 64;
		memset(e.a.buf, wide ? 0xff : (int)i, len);
		pkt = packet(BB_ROCE_SEND_ONLY, psn, len);
		pkt.flags = BB_ROCE_ACKREQ | (i % 3 == 0 ? BB_ROCE_SE : 0);
		(wide || i % 2 == 0 ? send_from : send_inline)(len,
							       i % 3 == 0 ? BB_SEND_SOLICITED : 0);
		sends(&pkt, e.a.buf);
		ack(psn, i + 1);
		env_poll(&e, &e.a, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, len);
		psn++;
	}
	/* One byte more than a packet can hold. */
	send_from(MTU + 1, 0);
	pkt = packet(BB_ROCE_SEND_FIRST, psn, MTU);
	sends(&pkt, e.a.buf);
	pkt = packet(BB_ROCE_SEND_LAST, psn + 1, 1);
	pkt.flags = BB_ROCE_ACKREQ;
	sends(&pkt, e.a.buf + MTU);
	nothing();
}

/* A fence waits for the preceding READ, and later requests wait with it. */
T(test_fence_waits_for_the_read_before_it)
{
	static const uint8_t data[8] = "read";
	struct bb_roce_pkt pkt;
	struct bb_sge sge = {.len = 8, .lkey = e.a.mr->lkey};
	uint32_t psn = us.psn, fenced, i;
	struct bb_wc wc[3];

	sge.addr = (uintptr_t)e.a.buf + 4096;
	for (fenced = 0; fenced < 2; fenced++) {
		OK(bb_post_read(e.a.qp, 1, &sge, 1, 0x1000, RKEY, BB_SEND_SIGNALED));
		bb_qp_ring(e.a.qp);
		pkt = packet(BB_ROCE_READ_REQUEST, psn, 0);
		pkt.va = 0x1000;
		pkt.rkey = RKEY;
		pkt.dmalen = 8;
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, NULL);
		send_from(16, fenced ? BB_SEND_FENCE : 0);
		send_from(32, 0);
		if (fenced) {
			nothing();
			pkt = packet(BB_ROCE_READ_RESP_ONLY, psn, 8);
			pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
			put(&pkt, data, THEIRS);
		}
		pkt = packet(BB_ROCE_SEND_ONLY, psn + 1, 16);
		/* Of two packets that are sent together the second asks for an ACK. */
		pkt.flags = fenced ? 0 : BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		pkt = packet(BB_ROCE_SEND_ONLY, psn + 2, 32);
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		if (!fenced) {
			pkt = packet(BB_ROCE_READ_RESP_ONLY, psn, 8);
			pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
			put(&pkt, data, THEIRS);
		}
		ack(psn + 2, 0);
		env_poll(&e, &e.a, wc, 3);
		for (i = 0; i < 3; i++)
			assert_int_equal(wc[i].status, BB_WC_SUCCESS);
		assert_memory_equal(e.a.buf + 4096, data, 8);
		psn += 3;
	}
}

/* ---- Records with a SEND and an ACK */

/* Stores an ACK of @psn to @to. */
static uint32_t
build_ack(uint8_t to[BB_ROCE_MAX_HDR], uint32_t dqpn, uint8_t flags, uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, psn, 0);

	pkt.dqpn = dqpn;
	pkt.flags = flags;
	pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	pkt.msn = msn;
	return bb_roce_build(to, &pkt);
}

/* Checks that the next record has the device's reply @reply and its ACK of @psn, byte for byte. */
static void
replies(uint32_t reply, uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_SEND_ONLY, reply, ANSWER);
	uint8_t want[2 * BB_ROCE_MAX_HDR + ANSWER];
	struct soft_ring_rec rec;
	uint32_t len, ack_len;
	const uint8_t *p = next(&rec);

	pkt.dqpn = PEER_QPN;
	pkt.flags = BB_ROCE_MIGREQ | BB_ROCE_ACKREQ;
	len = bb_roce_build(want, &pkt);
	memcpy(want + len, e.a.buf, ANSWER);
	ack_len = build_ack(want + len + ANSWER, PEER_QPN, BB_ROCE_MIGREQ, psn, msn);
	assert_int_equal(rec.ack_len, ack_len);
	assert_int_equal(rec.len, len + ANSWER + ack_len);
	assert_memory_equal(p, want, rec.len);
	assert_int_equal(rec.sgid, 1);
	assert_int_equal(rec.tclass, TCLASS);
	take();
}

static void
post_receive(uint64_t wr_id)
{
	const struct bb_sge sge = {
		.addr = (uintptr_t)e.a.buf + 8192, .len = 64, .lkey = e.a.mr->lkey};

	OK(bb_post_recv(e.a.qp, wr_id, &sge, 1));
	bb_qp_ring_recv(e.a.qp);
}

/*
 * A record is dropped if its second packet would fill it. A second packet that is malformed is
 * dropped alone. A device without a receive refuses the SEND, and accepts the ACK after it.
 */
T(test_second_packet_of_a_record_is_checked)
{
	static const uint8_t data[8] = "payload";
	struct bb_roce_pkt pkt = packet(BB_ROCE_SEND_ONLY, them.psn, 8);
	uint8_t bytes[255] = {0};
	struct soft_ring_rec *rec;
	struct bb_wc wc;
	uint32_t len, i;

	post_receive(1);
	for (i = 51; i <= 255; i += 51) {
		rec = soft_ring_reserve(&peer.out, i);
		assert_non_null(rec);
		*rec = (struct soft_ring_rec){.hop_limit = 64, .sgid = THEIRS, .ack_len = 255};
		bb_roce_build((uint8_t *)(rec + 1), &pkt);
		soft_ring_publish(&peer.out, rec, i);
	}
	nothing();
	assert_int_equal(bb_cq_poll(e.a.cq, &wc, 1), 0);

	write_two(&pkt, data, THEIRS, bytes, 5);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_memory_equal(e.a.buf + 8192, data, 8);
	nothing();

	send_from(8, 0);
	progress();
	pkt = packet(BB_ROCE_SEND_ONLY, us.psn, 8);
	pkt.flags = BB_ROCE_ACKREQ;
	sends(&pkt, e.a.buf);
	pkt = packet(BB_ROCE_SEND_ONLY, them.psn + 1, 8);
	len = build_ack(bytes, us.qpn, 0, us.psn, 1);
	write_two(&pkt, data, THEIRS, bytes, (uint8_t)len);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_SEND);
	answers(them.psn + 1, BB_ROCE_AETH_RNR | e.attr.min_rnr_timer);
}

/*
 * A faulty SEND is dropped, or refused by a NAK, and consumes no receive. The next correct SEND
 * consumes it.
 */
T(test_faulty_send_consumes_no_receive)
{
	enum {
		DROPPED,
		ACKED,
		NAKED
	};
	static const struct {
		const char *name;
		uint32_t dqpn, psn; /* added to the correct value */
		uint16_t pkey;
		uint8_t sgid, answer;
	} rows[] = {
		{"another address", 0, 0, 0xffff, OTHER, DROPPED},
		{"an address behind the last", 0, 0, 0xffff, BEHIND, DROPPED},
		{"an address behind all there can be", 0, 0, 0xffff, 255, DROPPED},
		{"another QP", 1u << 20, 0, 0xffff, THEIRS, DROPPED},
		{"another P_Key", 0, 0, 0x8001, THEIRS, DROPPED},
		{"a PSN of before", 0, UINT32_MAX, 0xffff, THEIRS, ACKED},
		{"a PSN far ahead", 0, 0x10000, 0xffff, THEIRS, NAKED},
	};
	struct bb_sge sge = {.len = 64, .lkey = e.a.mr->lkey};
	uint32_t psn = them.psn;
	const struct bb_cqe *cqe;
	struct bb_roce_pkt pkt;
	uint8_t data[64];
	struct bb_wc wc;
	unsigned int i;

	sge.addr = (uintptr_t)e.a.buf + 8192;
	for (i = 0; i < RTE_DIM(rows); i++) {
		OK(bb_post_recv(e.a.qp, i, &sge, 1));
		bb_qp_ring_recv(e.a.qp);
		memset(e.a.buf + 8192, 0, 64);
		memset(data, 0xdd, sizeof(data));
		pkt = packet(BB_ROCE_SEND_ONLY, psn + rows[i].psn, 61);
		pkt.dqpn = (us.qpn + rows[i].dqpn) & BB_ROCE_QPN_MASK;
		pkt.pkey = rows[i].pkey;
		put(&pkt, data, rows[i].sgid);
		if (rows[i].answer == ACKED)
			answers(psn - 1, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		if (rows[i].answer == NAKED)
			answers(psn, BB_ROCE_AETH_NAK | BB_ROCE_NAK_PSN);
		nothing();
		if (bb_cq_poll(e.a.cq, &wc, 1) != 0)
			fail_msg("%s: completion %d", rows[i].name, wc.status);
		assert_int_equal(e.a.buf[8192], 0);

		memset(data, (int)i + 1, sizeof(data));
		pkt = packet(BB_ROCE_SEND_ONLY, psn, 61);
		pkt.flags = (uint8_t)(BB_ROCE_ACKREQ | (i % 2 != 0 ? BB_ROCE_SE : 0));
		cqe = bb_cqring_at(&e.a.cq->ring, e.a.cq->ring.ci);
		put(&pkt, data, THEIRS);
		env_poll(&e, &e.a, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, 61);
		assert_int_equal(cqe->op_own & BB_CQE_SE, i % 2 != 0 ? BB_CQE_SE : 0);
		assert_memory_equal(e.a.buf + 8192, data, 61);
		assert_int_equal(e.a.buf[8192 + 61], 0);
		answers(psn, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		psn++;
	}
}

/*
 * The application answers each message of the peer. After some of them the ACK leaves in the record
 * of the answer, and without an answer a turn later. The device accepts such a record, too.
 */
T(test_ack_leaves_with_the_answer_in_a_conversation)
{
	const uint8_t data[8] = "message";
	uint8_t bytes[BB_ROCE_MAX_HDR];
	struct bb_roce_pkt pkt;
	struct bb_wc wc[2];
	uint32_t i, len = 0;

	for (i = 0; i < SOFT_WIRE_CONVERSATION + 4; i++) {
		const bool late = i >= SOFT_WIRE_CONVERSATION;

		post_receive(i);
		memset(e.a.buf, (int)i, ANSWER);
		pkt = packet(BB_ROCE_SEND_ONLY, them.psn + i, sizeof(data));
		pkt.flags = BB_ROCE_ACKREQ;
		/* The poll that finds the message is the only turn before the answer is posted. */
		write_two(&pkt, data, THEIRS, bytes, (uint8_t)len);
		assert_int_equal(bb_cq_poll(e.a.cq, wc, 2), len != 0 ? 2 : 1);
		assert_int_equal(wc[0].opcode, BB_WC_RECV);
		assert_int_equal(wc[0].status, BB_WC_SUCCESS);
		if (len != 0)
			assert_int_equal(wc[1].status, BB_WC_SUCCESS);
		assert_int_equal(soft_ring_waiting(&peer.in), !late);
		if (!late)
			answers(them.psn + i, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		send_inline(ANSWER, 0);
		if (late) {
			replies(us.psn + i, them.psn + i, i + 1);
			len = build_ack(bytes, us.qpn, 0, us.psn + i, i + 1);
			continue;
		}
		pkt = packet(BB_ROCE_SEND_ONLY, us.psn + i, ANSWER);
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		ack(us.psn + i, i + 1);
		env_poll(&e, &e.a, wc, 1);
	}
	post_receive(i);
	pkt = packet(BB_ROCE_SEND_ONLY, them.psn + i, sizeof(data));
	pkt.flags = BB_ROCE_ACKREQ;
	put(&pkt, data, THEIRS);
	assert_false(soft_ring_waiting(&peer.in));
	progress();
	assert_true(soft_ring_waiting(&peer.in));
	answers(them.psn + i, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
}

/* ---- A live peer that consumes nothing */

static void
reconnect(uint8_t timeout)
{
	struct bb_qp_attr reset;
	struct bb_wc wc[16];

	bb_qp_attr_init(&reset);
	reset.state = BB_QP_RESET;
	OK(bb_qp_modify(e.a.qp, &reset, BB_QP_STATE));
	while (bb_cq_poll(e.a.cq, wc, RTE_DIM(wc)) != 0)
		;
	e.attr.timeout = timeout;
	e.attr.retry_cnt = 3;
	OK(bb_qp_connect(e.a.qp, &us, &them, &e.attr));
}

/* Acknowledges packets without consuming them, until the ring is full. */
static void
fill_ring(void)
{
	uint32_t i;

	for (i = 0; soft_ring_waiting(&peer.in) || i == 0; i++) {
		struct bb_wc wc;
		uint32_t polls;

		send_from(MTU, 0);
		ack(us.psn + i, i + 1);
		for (polls = 0; polls < 100 && bb_cq_poll(e.a.cq, &wc, 1) == 0; polls++)
			progress();
		if (polls == 100)
			return;
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
}

/*
 * On the fast path, in several packets, and as WRITE, READ and atomic; one request in flight or
 * many.
 */
T(test_peer_that_takes_nothing_ends_requests_with_retry_exceeded)
{
	const struct bb_sge sge = {
		.addr = (uintptr_t)e.a.buf, .len = 3 * MTU, .lkey = e.a.mr->lkey};
	const struct bb_sge word = {.addr = (uintptr_t)e.a.buf, .len = 8, .lkey = e.a.mr->lkey};
	uint32_t kind, n, i;
	struct bb_wc wc;

	fill_ring();
	for (kind = 0; kind < 5; kind++) {
		for (n = 1; n <= 64; n += 63) {
			reconnect(8);
			for (i = 0; i < n && kind != 0; i++)
				assert_int_equal(
					kind == 1
						? bb_post_send(e.a.qp, i, &sge, 1, BB_SEND_SIGNALED)
					: kind == 2 ? bb_post_write(e.a.qp, i, &sge, 1, 0x1000,
								    RKEY, BB_SEND_SIGNALED)
					: kind == 3 ? bb_post_read(e.a.qp, i, &sge, 1, 0x1000, RKEY,
								   BB_SEND_SIGNALED)
						    : bb_post_fetch_add(e.a.qp, i, &word, 0x1000,
									RKEY, 1, BB_SEND_SIGNALED),
					0);
			for (i = 0; i < n && kind == 0; i++)
				send_from(8, 0);
			bb_qp_ring(e.a.qp);
			env_poll(&e, &e.a, &wc, 1);
			assert_int_equal(wc.status, BB_WC_RETRY_EXC_ERR);
			for (i = 1; i < n; i++) {
				env_poll(&e, &e.a, &wc, 1);
				assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
			}
		}
	}
}

/* The peer's process ends, with or without BYE; the device learns it before its next packet. */
static void
peer_ends(bool bye)
{
	struct soft_shm_msg m;

	if (bye) {
		soft_shm_msg_init(&m, SOFT_SHM_BYE);
		assert_int_equal(soft_shm_send(peer.caller, &m, NULL, 0), 0);
		assert_int_equal(soft_shm_send(peer.callee, &m, NULL, 0), 0);
	} else {
		close(peer.caller);
		close(peer.callee);
		peer.caller = peer.callee = -1;
	}
	/* The device's chores come before the packets. */
	__atomic_store_n(&soft_dev_peek_gid(ours)->shm->chores_at, 0, __ATOMIC_RELAXED);
}

/*
 * A peer that sends and ends at once: its packets are in the ring when the device learns that it
 * has ended, and arrive as they would over a cable.
 */
static void
packets_before_the_end(bool bye)
{
	const uint32_t n = 400;
	struct bb_roce_pkt pkt;
	uint64_t i;

	memset(e.a.buf, 0, n * sizeof(i));
	for (i = 0; i < n; i++) {
		pkt = packet(BB_ROCE_WRITE_ONLY, them.psn + (uint32_t)i, sizeof(i));
		pkt.va = (uintptr_t)e.a.buf + i * sizeof(i);
		pkt.rkey = e.a.mr->rkey;
		pkt.dmalen = sizeof(i);
		write_packet(&pkt, (const uint8_t *)&(uint64_t){i + 1}, THEIRS);
	}
	peer_ends(bye);
	for (i = 0; i < 10 * n; i++)
		progress();
	for (i = 0; i < n; i++)
		assert_int_equal(((const uint64_t *)(const void *)e.a.buf)[i], i + 1);
}

T(test_packets_before_the_close_arrive)
{
	packets_before_the_end(true);
}

T(test_packets_before_the_death_arrive)
{
	packets_before_the_end(false);
}

/* The last answer of a peer decides how a request ends, not the end of the peer. */
static void
answer_before_the_end(bool bye)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, us.psn, 0);
	struct soft_ring_rec rec;
	struct bb_wc wc;

	send_from(64, 0);
	next(&rec);
	take();
	pkt.syndrome = BB_ROCE_AETH_NAK | BB_ROCE_NAK_INVALID;
	write_packet(&pkt, NULL, THEIRS);
	peer_ends(bye);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_REM_INV_REQ_ERR);
}

T(test_answer_before_the_close_ends_the_request)
{
	answer_before_the_end(true);
}

T(test_answer_before_the_death_ends_the_request)
{
	answer_before_the_end(false);
}

/* All opcodes that RC does not have, with and without bytes after the BTH (9.7.4.1.3). */
static void
unassigned_opcodes(void)
{
	static const uint8_t data[64];
	struct bb_wc wc;
	uint32_t i, op;

	for (op = 0, i = 0; op < 32; op++) {
		struct soft_ring_rec *rec;

		if (bb_roce_ops[op].flags != 0)
			continue;
		reconnect(0);
		rec = soft_ring_reserve(&peer.out, BB_ROCE_BTH_LEN + 4 * i);
		assert_non_null(rec);
		*rec = (struct soft_ring_rec){.sport = 0xc123, .hop_limit = 64, .sgid = THEIRS};
		bb_roce_bth_store((uint8_t *)(rec + 1), (uint8_t)op, BB_ROCE_ACKREQ, 0xffff, us.qpn,
				  them.psn, 0);
		memcpy((uint8_t *)(rec + 1) + BB_ROCE_BTH_LEN, data, 4 * i);
		soft_ring_publish(&peer.out, rec, BB_ROCE_BTH_LEN + 4 * i);
		progress();
		answers(them.psn, BB_ROCE_AETH_NAK | BB_ROCE_NAK_INVALID);
		assert_int_equal(bb_cq_poll(e.a.cq, &wc, 1), 0);
		i++;
	}
	assert_int_equal(i, 9);
}

T(test_unassigned_opcodes_are_refused_by_a_nak)
{
	unassigned_opcodes();
}

TEST_WITH(begin_faulty, end, test_unassigned_opcodes_are_refused_with_faults_enabled)
{
	unassigned_opcodes();
}

TEST_MAIN(env_eal_init("shm_packets"))
