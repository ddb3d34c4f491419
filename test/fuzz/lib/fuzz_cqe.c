/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The library reads CQEs of a faulty device: any bytes, in any order, for queues in any state.
 * Core uses the fake driver of the unit tests. Steps are in enum step below. A CQE starts as a
 * valid one for its queue and is then corrupted.
 *
 * Invariants: a poll returns at most the requested number. Completions name live queues, and
 * valid statuses and opcodes. CQE slots are returned, and objects can be destroyed at the end.
 * Data in a CQE go only to buffers posted for it. Queue 0 receives from an SRQ, 1 is of type UD,
 * 3 has no receive queue. The wr_id for an invalid CQE is undefined.
 */
#include "../../unit/core/core_fixture.h"
#include "fuzz.h"

#define MAX_STEPS 96
#define QPS       4
#define LOG_CQ    6
#define POLL_MAX  8

enum step {
	STEP_CQE,
	STEP_SEND,
	STEP_RECV,
	STEP_POLL,
	STEP_POLL_TS,
	STEP_RESET,
	STEP_RAW_CQE,
	STEPS,
};

struct world {
	struct fuzz_in in;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_srq *srq;
	struct bb_qp *qp[QPS]; /* the last one has no receive queue */
	uint32_t written;      /* CQEs written since the ring was created */
};

/* Buffers of requests: the library itself copies data in a CQE. */
static uint8_t taken[64], source[64];

static void
world_open(struct world *w)
{
	struct bb_qp_init_attr init;
	struct bb_srq_attr srq;
	struct bb_cq_attr attr;

	fake_reset();
	fake.attr.max_srq = 1;
	fake.attr.max_srq_wr = FAKE_SRQ_WQES - 1;
	fake.attr.max_srq_sge = 2;
	memset(source, 0x5a, sizeof(source));
	check(bb_dev_open("fake0", &w->dev) == 0, "bb_dev_open");
	check(bb_pd_alloc(w->dev, &w->pd) == 0, "bb_pd_alloc");
	bb_srq_attr_init(&srq);
	srq.depth = 4;
	check(bb_srq_create(w->pd, &srq, &w->srq) == 0, "bb_srq_create");
	bb_cq_attr_init(&attr);
	attr.depth = 1u << LOG_CQ;
	check(bb_cq_create(w->dev, &attr, &w->cq) == 0, "bb_cq_create");
	for (uint32_t i = 0; i < QPS; i++) {
		bb_qp_init_attr_init(&init);
		init.send_cq = w->cq;
		init.recv_cq = w->cq;
		init.sq_depth = 1u << i;
		init.rq_depth = i == QPS - 1 ? 0 : 4;
		init.srq = i == 0 ? w->srq : NULL;
		init.type = i == 1 ? BB_QPT_UD : BB_QPT_RC;
		init.scatter_to_cqe = i != 1;
		check(bb_qp_create(w->pd, &init, &w->qp[i]) == 0, "bb_qp_create");
	}
}

static void
world_close(struct world *w)
{
	for (uint32_t i = 0; i < QPS; i++)
		check(bb_qp_destroy(w->qp[i]) == 0, "bb_qp_destroy");
	check(bb_srq_destroy(w->srq) == 0, "bb_srq_destroy");
	check(bb_cq_destroy(w->cq) == 0, "bb_cq_destroy");
	check(bb_pd_free(w->pd) == 0, "bb_pd_free");
	check(bb_dev_close(w->dev) == 0, "bb_dev_close");
}

static struct bb_qp *
some_qp(struct world *w)
{
	return w->qp[fuzz_u8(&w->in) % QPS];
}

static bool
known_qp(const struct world *w, const struct bb_qp *qp)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (w->qp[i] == qp)
			return true;
	return false;
}

/* Writes a CQE with the owner bit of its slot, if the ring has room. */
static void
write_cqe(struct world *w, const struct bb_cqe *cqe, uint8_t op_own)
{
	struct bb_cqe *at;
	uint8_t own = (uint8_t)(w->written >> LOG_CQ & 1);

	if (w->written - w->cq->ring.ci > w->cq->ring.mask)
		return;
	at = (struct bb_cqe *)(void *)w->cq->ring.buf + (w->written & w->cq->ring.mask);
	memcpy(at, cqe, offsetof(struct bb_cqe, op_own));
	bb_cqe_own_store(&at->op_own, (uint8_t)((op_own & ~1u) | own));
	w->written++;
}

static void
step_cqe(struct world *w)
{
	static const uint8_t opcodes[] = {
		BB_CQE_REQ,         BB_CQE_REQ,     BB_CQE_RESP_SEND, BB_CQE_RESP_SEND_IMM,
		BB_CQE_RESP_WR_IMM, BB_CQE_REQ_ERR, BB_CQE_RESP_ERR,  BB_CQE_RESP_SEND_INV};
	const struct bb_qp *qp = some_qp(w);
	uint8_t what = fuzz_u8(&w->in), *bytes, edits;
	struct bb_cqe cqe;

	memset(&cqe, 0, sizeof(cqe));
	bytes = (uint8_t *)&cqe;
	cqe.srqn_uidx = bb_be32(qp->user_index);
	cqe.wqe_counter = bb_be16(fuzz_u8(&w->in));
	cqe.byte_cnt = bb_be32(64);
	cqe.op_own = (uint8_t)(opcodes[what & 7] << 4 | (what & 8 ? 2 : 0));
	bytes[BB_CQE_SYNDROME_BYTE] = fuzz_u8(&w->in);
	edits = fuzz_u8(&w->in);
	if (edits >= 224)
		for (edits &= 7; edits != 0; edits--) {
			uint8_t at = fuzz_u8(&w->in) % sizeof(cqe);

			bytes[at] ^= fuzz_u8(&w->in);
		}
	write_cqe(w, &cqe, cqe.op_own);
}

static void
step_raw_cqe(struct world *w)
{
	struct bb_cqe cqe;

	for (size_t i = 0; i < sizeof(cqe); i++)
		((uint8_t *)&cqe)[i] = fuzz_u8(&w->in);
	write_cqe(w, &cqe, cqe.op_own);
}

static void
step_send(struct world *w)
{
	const struct bb_sge out = {(uintptr_t)source, 64, 0x55}, in = {(uintptr_t)taken, 64, 0x55};
	struct bb_qp *qp = some_qp(w);
	uint32_t flags = fuzz_u8(&w->in) & 1 ? BB_SEND_SIGNALED : 0;

	switch (fuzz_u8(&w->in) % 5) {
	case 0:
		(void)bb_post_write(qp, 1, &out, 1, 0x2000, 7, flags);
		break;
	case 1:
		(void)bb_post_send_inline(qp, 2, "abcdefgh", 8, flags);
		break;
	case 2:
		(void)bb_post_read(qp, 3, &in, 1, 0x2000, 7, flags);
		break;
	case 3:
		(void)bb_post_fetch_add(qp, 4, &(struct bb_sge){(uintptr_t)taken, 8, 0x55}, 0x2000,
					7, 1, flags);
		break;
	default:
		(void)bb_post_nop(qp, 5, flags);
		break;
	}
	bb_qp_ring(qp);
}

static void
step_recv(struct world *w)
{
	const struct bb_sge sge = {(uintptr_t)taken, 24, 0x55};
	struct bb_qp *qp = some_qp(w);

	if (qp == w->qp[0]) {
		(void)bb_post_srq_recv(w->srq, 6, &sge, 1);
		bb_srq_ring(w->srq);
		return;
	}
	(void)bb_post_recv(qp, 6, &sge, 1);
	bb_qp_ring_recv(qp);
}

static void
step_poll(struct world *w, bool times)
{
	unsigned int want = fuzz_u8(&w->in) % (POLL_MAX + 1), n, i;
	uint32_t before = w->cq->ring.ci;
	struct bb_wc wc[POLL_MAX];
	uint64_t ts[POLL_MAX];

	memset(wc, 0xff, sizeof(wc));
	n = times ? bb_cq_poll_ts(w->cq, wc, ts, want) : bb_cq_poll(w->cq, wc, want);
	check(n <= want, "more completions than were asked for");
	/* A title of compressed CQEs may claim the whole ring, but not more. */
	check(w->cq->ring.ci - before <= bb_cqring_size(&w->cq->ring),
	      "more CQEs taken than the ring has");
	check(n <= w->cq->ring.ci - before, "more completions than CQEs");
	for (i = 0; i < sizeof(source); i++)
		check(source[i] == 0x5a, "data of a CQE in a buffer that is only read");
	for (i = 0; i < n; i++) {
		check(known_qp(w, wc[i].qp), "a completion of no QP");
		check(wc[i].status <= BB_WC_GENERAL_ERR, "a status that is none");
		check(wc[i].opcode <= BB_WC_RECV_RDMA_IMM, "an opcode that is none");
		check(wc[i].wr_id <= 6, "a wr_id that nobody gave");
		check(bb_wc_status_cause(wc[i].status, wc[i].vendor_err)[0] != '\0', "no cause");
		/*
		 * More data in a CQE than its buffers hold: only the library detects it. A QP in
		 * RESET stays there.
		 */
		if (wc[i].status != BB_WC_SUCCESS &&
		    (wc[i].status != BB_WC_LOC_LEN_ERR || wc[i].syndrome != 0))
			check(wc[i].qp->state == BB_QP_ERR || wc[i].qp->state == BB_QP_RESET,
			      "an error, and the QP is not in ERR");
	}
}

/* The QP's CQEs are purged, those of other QPs stay. */
static void
step_reset(struct world *w)
{
	struct bb_qp *qp = some_qp(w);
	struct bb_qp_attr attr;
	uint8_t how = fuzz_u8(&w->in);

	bb_qp_attr_init(&attr);
	attr.state = how & 1 ? BB_QP_ERR : BB_QP_RESET;
	check(bb_qp_modify(qp, &attr, BB_QP_STATE) == 0, "bb_qp_modify");
	if (how & 1)
		return;
	attr.state = BB_QP_ERR;
	if (how & 2)
		check(bb_qp_modify(qp, &attr, BB_QP_STATE) == 0, "bb_qp_modify");
}

static void
start(void)
{
	static FILE *quiet;

	if (quiet != NULL)
		return;
	if (fake_eal_init() != 0)
		exit(1);
	quiet = fopen("/dev/null", "w");
	rte_openlog_stream(quiet);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world w = {.in = {data, len}};
	struct bb_qp_attr attr;

	start();
	world_open(&w);
	/* In ERR posts are accepted, and the fake driver flushes none. */
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	for (uint32_t i = 0; i < QPS; i++)
		check(bb_qp_modify(w.qp[i], &attr, BB_QP_STATE) == 0, "bb_qp_modify");
	for (uint32_t n = 0; n < MAX_STEPS && w.in.left != 0; n++) {
		switch (fuzz_u8(&w.in) % STEPS) {
		case STEP_CQE:
			step_cqe(&w);
			break;
		case STEP_SEND:
			step_send(&w);
			break;
		case STEP_RECV:
			step_recv(&w);
			break;
		case STEP_POLL:
			step_poll(&w, false);
			break;
		case STEP_POLL_TS:
			step_poll(&w, true);
			break;
		case STEP_RESET:
			step_reset(&w);
			break;
		default:
			step_raw_cqe(&w);
			break;
		}
	}
	world_close(&w);
	return 0;
}
