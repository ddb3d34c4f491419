/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets of the shared-memory port, byte by byte. The test acts as the other process: it has its
 * own ring and directory, reads what the device writes and writes what it likes. It publishes no
 * keys and no queue pairs, so that everything goes by packets.
 */
#ifndef SHM_PACKET_H
#define SHM_PACKET_H

#include <sys/mman.h>
#include <unistd.h>

#include "../../../mlx5/mlx5_env.h"
#include "bb_roce_pkt.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define PEER_QPN 0x4242u
#define TCLASS   0x28u
#define HOPS     7u
#define SLOT     3u /* slot in our directory; its word is our read position */
#define RKEY     0x1234u
#define MTU      1024u
/* Index of our address that the queue pair uses, of another address, and past the last one. */
#define THEIRS 0u
#define OTHER  1u
#define BEHIND 2u

static const uint8_t own_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
static const uint8_t peer_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};

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

static inline void
progress(void)
{
	bb_dev_progress(e.a.dev);
}

/* Reads the next message on a socket; the caller closes descriptors that are not taken over. */
static inline void
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

static inline const void *
map_peer(int fd, size_t len)
{
	const void *at = soft_shm_reserve(NULL, len);

	assert_non_null(at);
	assert_int_equal(soft_shm_map(fd, len, at), 0);
	close(fd);
	return at;
}

/* The device connects as its queue pair is connected: answers it, and connects to the device. */
static inline void
meet(const char *fabric)
{
	struct soft_shm_msg m;
	int fds[2], dir_fd, ring_fd;
	void *map;

	assert_int_equal(soft_shm_create(NULL, "t-dir", sizeof(*peer.dir), &dir_fd, &map), 0);
	peer.dir = map;
	assert_int_equal(soft_shm_create(NULL, "t-ring", SOFT_RING_SIZE, &ring_fd, &map), 0);
	peer.ring = map;
	assert_int_equal(soft_shm_accept(peer.listener, &peer.callee), 0);
	heard(peer.callee, false, SOFT_SHM_HELLO, &m, fds);
	close(fds[0]);
	peer.dev_ring = map_peer(fds[1], SOFT_RING_SIZE);
	soft_ring_rx_init(&peer.in, peer.dev_ring, &peer.dir->head[SLOT].v);
	soft_shm_msg_init(&m, SOFT_SHM_WELCOME);
	m.u.welcome.slot = SLOT;
	assert_int_equal(soft_shm_send(peer.callee, &m, &dir_fd, 1), 0);

	assert_int_equal(soft_shm_connect(fabric, own_gid, 0, &peer.caller), 0);
	soft_shm_msg_init(&m, SOFT_SHM_HELLO);
	m.u.hello.n_gids = BEHIND;
	memcpy(m.u.hello.gids[THEIRS], peer_gid, 16);
	memcpy(m.u.hello.gids[BEHIND], peer_gid, 16);
	fds[0] = dir_fd;
	fds[1] = ring_fd;
	assert_int_equal(soft_shm_send(peer.caller, &m, fds, 2), 0);
	close(dir_fd);
	close(ring_fd);
	heard(peer.caller, true, SOFT_SHM_WELCOME, &m, fds);
	peer.dev_dir = map_peer(fds[0], sizeof(*peer.dev_dir));
	soft_ring_tx_init(&peer.out, peer.ring, &peer.dev_dir->head[m.u.welcome.slot].v);
}

static inline int
begin_with(const char *more)
{
	char fabric[32], spec[96];
	pid_t pid;

	snprintf(fabric, sizeof(fabric), "pkt%d", (int)getpid());
	snprintf(spec, sizeof(spec), "soft0,shm=%s,ip=192.0.2.1/24%s", fabric, more);
	assert_int_equal(soft_shm_listen(fabric, peer_gid, 0, &peer.listener, &pid), 0);
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
	memcpy(them.gid, peer_gid, 16);
	OK(bb_qp_connect(e.a.qp, &us, &them, &e.attr));
	meet(fabric);
	return 0;
}

static inline int
begin(void **st)
{
	(void)st;
	return begin_with("");
}

static inline int
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
static inline const uint8_t *
next(struct soft_ring_rec *rec)
{
	const uint8_t *p = NULL;
	unsigned int i;

	for (i = 0; i < 1000 && (p = soft_ring_peek(&peer.in, rec)) == NULL; i++)
		progress();
	assert_non_null(p);
	return p;
}

static inline void
take(void)
{
	soft_ring_pop(&peer.in);
	soft_ring_release(&peer.in);
}

static inline void
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
static inline void
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
static inline void
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
static inline void
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
static inline void
write_packet(const struct bb_roce_pkt *pkt, const uint8_t *payload, uint8_t sgid)
{
	write_two(pkt, payload, sgid, no_ack, 0);
}

/* Writes a packet; the device receives it. */
static inline void
put(const struct bb_roce_pkt *pkt, const uint8_t *payload, uint8_t sgid)
{
	write_packet(pkt, payload, sgid);
	progress();
}

static inline struct bb_roce_pkt
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

static inline void
ack(uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, psn, 0);

	pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	pkt.msn = msn;
	put(&pkt, NULL, THEIRS);
}

static inline void
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

/* ---- Sends of the device */

static inline void
send_inline(uint32_t len, uint32_t flags)
{
	OK(bb_post_send_inline(e.a.qp, len, e.a.buf, len, flags | BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
}

static inline void
send_from(uint32_t len, uint32_t flags)
{
	const struct bb_sge sge = {.addr = (uintptr_t)e.a.buf, .len = len, .lkey = e.a.mr->lkey};

	OK(bb_post_send(e.a.qp, len, &sge, 1, flags | BB_SEND_SIGNALED));
	bb_qp_ring(e.a.qp);
}

#endif
