/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A hand-made peer on a net_ring sends malformed or mismatched responses. The application gets a
 * completion that says so, and no byte of data.
 */
#include "../mlx5_env.h"

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../../../fakes/log_catch.h"
#include "../../../fakes/roce_frame.h"

#define ETH      14u
#define RINGS    64u
#define LEN      64u
#define PEER_QPN 0x4242u
#define GUARD    0xee

static const uint8_t peer_mac[6] = {0x02, 0xcc, 0, 0, 0, 2};

static struct {
	struct rte_ring *to, *from;
	struct rte_mempool *pool;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_mr *mr;
	uint8_t *buf;
	uint8_t mac[6]; /* The device's MAC address, as the device writes it. */
	struct bb_qp_addr us, them;
} e;

static void
begin(void)
{
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};
	struct bb_qp_init_attr init;
	struct bb_qp_attr attr;
	struct bb_cq_attr cq;
	char name[RTE_ETH_NAME_MAX_LEN], spec[128];

	assert_int_equal(rte_eth_dev_get_name_by_port(0, name), 0);
	snprintf(spec, sizeof(spec), "soft0,port=%s,ip=192.0.2.1/24,neigh=192.0.2.2@%s", name,
		 "02:cc:00:00:00:02");
	OK(bb_dev_open(spec, &e.dev));
	OK(bb_pd_alloc(e.dev, &e.pd));
	bb_cq_attr_init(&cq);
	OK(bb_cq_create(e.dev, &cq, &e.cq));
	e.buf = rte_malloc("buf", 4096, 4096);
	assert_non_null(e.buf);
	memset(e.buf, GUARD, 4096);
	OK(bb_mr_reg(e.pd, e.buf, 4096, BB_ACCESS_LOCAL_WRITE, &e.mr));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = e.cq;
	OK(bb_qp_create(e.pd, &init, &e.qp));
	bb_qp_attr_init(&attr);
	/* The second of its addresses: the first one is the link-local address. */
	attr.path.sgid_index = 1;
	attr.timeout = 0; /* no retransmission by timeout */
	OK(bb_qp_addr(e.qp, 1, 1, &e.us));
	e.them = e.us;
	e.them.qpn = PEER_QPN;
	memcpy(e.them.gid, gid, 16);
	OK(bb_qp_connect(e.qp, &e.us, &e.them, &attr));
}

static void
end(void)
{
	void *m;

	OK(bb_qp_destroy(e.qp));
	OK(bb_mr_dereg(e.mr));
	OK(bb_cq_destroy(e.cq));
	OK(bb_pd_free(e.pd));
	OK(bb_dev_close(e.dev));
	rte_free(e.buf);
	while (rte_ring_dequeue(e.from, &m) == 0)
		rte_pktmbuf_free(m);
}

/* Reads the next packet that the device sends, headers only. */
static void
request(struct bb_roce_pkt *pkt)
{
	struct roce_frame f;
	const uint8_t *p;
	struct rte_mbuf *m;
	void *obj = NULL;
	unsigned int i;

	for (i = 0; i < 1000 && rte_ring_dequeue(e.from, &obj) != 0; i++)
		bb_dev_progress(e.dev);
	assert_non_null(obj);
	m = obj;
	assert_int_equal(rte_pktmbuf_linearize(m), 0);
	p = rte_pktmbuf_mtod(m, const uint8_t *);
	assert_memory_equal(p, peer_mac, 6);
	memcpy(e.mac, p + 6, 6);
	assert_true(roce_frame_split(&f, p + ETH, m->data_len - ETH));
	assert_true(roce_frame_icrc_ok(&f, p + ETH));
	assert_int_equal(bb_roce_parse(pkt, f.bth, f.bth_len), BB_ROCE_OK);
	assert_int_equal(pkt->dqpn, PEER_QPN);
	rte_pktmbuf_free(m);
}

static void
answer(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t len)
{
	static const uint8_t payload[2 * LEN];
	const struct bb_roce_iov iov = {.p = payload, .len = len};
	const struct bb_roce_pkt pkt = {
		.opcode = opcode,
		.pkey = 0xffff,
		.dqpn = e.us.qpn,
		.psn = psn,
		.syndrome = syndrome,
		.len = len,
	};
	struct bb_roce_net net = {.sport = 0xc123, .hop_limit = 64};
	struct rte_mbuf *m = rte_pktmbuf_alloc(e.pool);
	uint8_t b[ROCE_FRAME_MAX], *at;
	uint32_t ip_len;

	memcpy(net.src, e.them.gid, 16);
	memcpy(net.dst, e.us.gid, 16);
	ip_len = (uint32_t)roce_frame_build(b, &net, &pkt, &iov, 1);
	assert_non_null(m);
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(ETH + ip_len));
	assert_non_null(at);
	memcpy(at, e.mac, 6);
	memcpy(at + 6, peer_mac, 6);
	memcpy(at + 12, "\x08\x00", 2);
	memcpy(at + ETH, b, ip_len);
	assert_int_equal(rte_ring_enqueue(e.to, m), 0);
}

/* Expects the completion of @wr_id with @status. Returns its vendor_err. */
static uint8_t
completes(uint64_t wr_id, enum bb_wc_status status)
{
	struct bb_wc wc;
	unsigned int i, n = 0;

	for (i = 0; i < 1000 && n == 0; i++) {
		bb_dev_progress(e.dev);
		n = bb_cq_poll(e.cq, &wc, 1);
	}
	assert_int_equal(n, 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	return wc.vendor_err;
}

static void
post(uint64_t wr_id, bool read)
{
	struct bb_sge sge = {(uintptr_t)e.buf, LEN, e.mr->lkey};

	assert_int_equal((read ? bb_post_read : bb_post_write)(e.qp, wr_id, &sge, 1, 0x1000, 0x1234,
							       BB_SEND_SIGNALED),
			 0);
	bb_qp_ring(e.qp);
}

/*
 * Checks that the preceding request failed as a bad response, in everything that an application
 * can see.
 */
static void
failed(void)
{
	char text[BB_ERROR_TEXT_MAX];
	struct bb_qp_attr attr;
	unsigned int i;
	uint8_t vendor;

	vendor = completes(1, BB_WC_BAD_RESP_ERR);
	completes(2, BB_WC_WR_FLUSH_ERR);
	log_expect("syndrome 0x10, the peer's response does not match the request");
	OK(bb_qp_query(e.qp, &attr));
	assert_int_equal(attr.state, BB_QP_ERR);
	assert_true(bb_qp_error_text(e.qp, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, bb_wc_status_name(BB_WC_BAD_RESP_ERR)));
	assert_non_null(strstr(text, bb_wc_status_cause(BB_WC_BAD_RESP_ERR, vendor)));
	for (i = 0; i < 4096; i++)
		assert_int_equal(e.buf[i], GUARD);
}

static void
bad(bool read, uint8_t opcode, uint8_t syndrome, uint32_t len)
{
	struct bb_roce_pkt pkt;

	begin();
	log_begin();
	post(1, read);
	request(&pkt);
	assert_int_equal(pkt.opcode, read ? BB_ROCE_READ_REQUEST : BB_ROCE_WRITE_ONLY);
	post(2, read);
	answer(opcode, pkt.psn, syndrome, len);
	failed();
	end();
}

#define ACK (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF)

TEST(test_bad_response_of_a_read_is_not_taken)
{
	bad(true, BB_ROCE_READ_RESP_ONLY, ACK, LEN - 4);
	bad(true, BB_ROCE_READ_RESP_ONLY, ACK, LEN - 1);
	bad(true, BB_ROCE_READ_RESP_ONLY, ACK, LEN + 4);
	bad(true, BB_ROCE_READ_RESP_ONLY, ACK, 0);
	bad(true, BB_ROCE_READ_RESP_FIRST, ACK, LEN);
	bad(true, BB_ROCE_ATOMIC_ACK, ACK, 0);
}

TEST(test_bad_response_of_a_write_is_not_taken)
{
	bad(false, BB_ROCE_READ_RESP_ONLY, ACK, LEN);
	bad(false, BB_ROCE_ACK, BB_ROCE_AETH_NAK | 5, 0);
}

/*
 * Correct responses of this peer are accepted, so the errors below come from the seeded faults
 * alone.
 */
TEST(test_correct_response_completes_the_request)
{
	struct bb_roce_pkt pkt;
	unsigned int i;

	begin();
	post(1, true);
	request(&pkt);
	answer(BB_ROCE_READ_RESP_ONLY, pkt.psn, ACK, LEN);
	completes(1, BB_WC_SUCCESS);
	for (i = 0; i < LEN; i++)
		assert_int_equal(e.buf[i], 0);
	assert_int_equal(e.buf[LEN], GUARD);
	post(2, false);
	request(&pkt);
	answer(BB_ROCE_ACK, pkt.psn, ACK, 0);
	completes(2, BB_WC_SUCCESS);
	end();
}

/* Posts an unsignalled READ, a WRITE of @mr unless it is NULL, and an atomic, with wr_ids from 1
 * on. */
static void
post_with_atomic(struct bb_mr *read_mr, struct bb_mr *write_mr)
{
	struct bb_sge sge = {(uintptr_t)e.buf, LEN, read_mr->lkey};
	uint64_t wr_id = 1;

	OK(bb_post_read(e.qp, wr_id++, &sge, 1, 0x1000, 0x1234, 0));
	if (write_mr != NULL) {
		sge.lkey = write_mr->lkey;
		OK(bb_post_write(e.qp, wr_id++, &sge, 1, 0x1000, 0x1234, 0));
	}
	sge = (struct bb_sge){(uintptr_t)e.buf, 8, e.mr->lkey};
	OK(bb_post_fetch_add(e.qp, wr_id, &sge, 0x1000, 0x1234, 1, 0));
	bb_qp_ring(e.qp);
}

/*
 * Recovers, and expects that request @bad failed with @status, and that it is unknown whether the
 * peer has executed the atomic after it, which must not be posted again then.
 */
static void
atomic_is_unknown(uint64_t bad, enum bb_wc_status status)
{
	struct bb_wr_end ends[3];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	unsigned int i;

	for (i = 0; i < 1000 && bb_cqring_peek(&e.cq->ring) == NULL; i++)
		bb_dev_progress(e.dev);
	OK(bb_qp_recover(e.qp, NULL, NULL, NULL, &r));
	assert_int_equal(r.n, bad + 1);
	for (i = 0; i < r.n; i++)
		assert_int_equal(ends[i].wc.wr_id, i + 1);
	assert_int_equal(ends[bad - 1].fate, BB_WR_FAILED);
	assert_int_equal(ends[bad - 1].wc.status, status);
	assert_int_equal(ends[bad].fate, BB_WR_UNKNOWN);
	assert_int_equal(r.flushed, BB_WR_UNKNOWN);
}

/* By then the device has sent the atomic. */
TEST(test_read_that_fails_on_its_response_leaves_later_sends_unknown)
{
	struct bb_roce_pkt read, atomic;
	struct bb_mr *mr;

	begin();
	OK(bb_mr_reg(e.pd, e.buf, LEN, BB_ACCESS_LOCAL_WRITE, &mr));
	post_with_atomic(mr, NULL);
	request(&read);
	assert_int_equal(read.opcode, BB_ROCE_READ_REQUEST);
	request(&atomic);
	assert_int_equal(atomic.opcode, BB_ROCE_FETCH_ADD);
	OK(bb_mr_dereg(mr));
	answer(BB_ROCE_READ_RESP_ONLY, read.psn, ACK, LEN);
	atomic_is_unknown(1, BB_WC_LOC_PROT_ERR);
	end();
}

/* The peer reads the memory when it responds, and may have executed the atomic before. */
TEST(test_read_that_the_peer_rejects_leaves_later_sends_unknown)
{
	struct bb_roce_pkt read, atomic;

	begin();
	post_with_atomic(e.mr, NULL);
	request(&read);
	request(&atomic);
	answer(BB_ROCE_ACK, read.psn, BB_ROCE_AETH_NAK | 2, 0);
	atomic_is_unknown(1, BB_WC_REM_ACCESS_ERR);
	end();
}

/* The peer has executed all three, but the response of the READ was lost. */
TEST(test_write_that_fails_when_sent_again_leaves_later_sends_unknown)
{
	struct bb_roce_pkt read, write, atomic;
	struct bb_mr *mr;

	begin();
	OK(bb_mr_reg(e.pd, e.buf, LEN, BB_ACCESS_LOCAL_WRITE, &mr));
	post_with_atomic(e.mr, mr);
	request(&read);
	request(&write);
	assert_int_equal(write.opcode, BB_ROCE_WRITE_ONLY);
	request(&atomic);
	assert_int_equal(atomic.opcode, BB_ROCE_FETCH_ADD);
	OK(bb_mr_dereg(mr));
	answer(BB_ROCE_ATOMIC_ACK, atomic.psn, ACK, 0);
	request(&read);
	assert_int_equal(read.opcode, BB_ROCE_READ_REQUEST);
	answer(BB_ROCE_READ_RESP_ONLY, read.psn, ACK, LEN);
	atomic_is_unknown(2, BB_WC_LOC_PROT_ERR);
	end();
}

int
main(void)
{
	int ret = env_eal_init("bad_resp");

	if (ret != 0)
		return ret;
	e.to = rte_ring_create("to", RINGS, 0, 0);
	e.from = rte_ring_create("from", RINGS, 0, 0);
	e.pool = rte_pktmbuf_pool_create("frames", 63, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	if (e.to == NULL || e.from == NULL || e.pool == NULL ||
	    rte_eth_from_rings("bad_resp", &e.to, 1, &e.from, 1, 0) != 0)
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
