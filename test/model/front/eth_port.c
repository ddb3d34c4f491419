/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "eth_port.h"

struct port *ports[2];
const char *port_devices[2] = {"soft0,link=eth", "soft1,link=eth"};

uint8_t *
queue_box(struct port *p, uint16_t op, uint32_t cqn, const struct pages *ring, uint64_t dbr,
	  uint32_t log_size, uint32_t log_stride)
{
	uint8_t *ctx = box(&p->g, op, 0, BB_PRM_SZ_CREATE_SQ_IN) + BB_PRM_CREATE_SQ_CTX.byte;
	uint8_t *wq = ctx + BB_PRM_SQC_WQ.byte;

	bb_prm_set(ctx, BB_PRM_SQC_CQN, cqn);
	bb_prm_set(ctx, BB_PRM_SQC_USER_INDEX, 0x77);
	bb_prm_set(wq, BB_PRM_WQ_TYPE, BB_PRM_WQ_TYPE_CYCLIC);
	bb_prm_set(wq, BB_PRM_WQ_PD, p->pd);
	bb_prm_set(wq, BB_PRM_WQ_UAR_PAGE, p->uar);
	bb_prm_set64(wq, BB_PRM_WQ_DBR_ADDR, dbr);
	bb_prm_set(wq, BB_PRM_WQ_LOG_SZ, log_size);
	bb_prm_set(wq, BB_PRM_WQ_LOG_STRIDE, log_stride);
	box_list(&p->g, ring, 0);
	return ctx;
}

uint32_t
made_number(struct port *p)
{
	assert_status(&p->g, OK);
	return bb_prm_get(p->g.out, BB_PRM_F(8, 8, 24));
}

uint32_t
modify_queue(struct port *p, uint16_t op, uint32_t queue, uint32_t from, uint32_t to)
{
	uint8_t *in = box(&p->g, op, 0, BB_PRM_SZ_MODIFY_SQ_IN);

	bb_prm_set(in, BB_PRM_F(8, 8, 24), queue);
	bb_prm_set(in, BB_PRM_MODIFY_SQ_STATE, from);
	bb_prm_set(in + BB_PRM_MODIFY_SQ_CTX.byte, BB_PRM_SQC_STATE, to);
	return run(&p->g);
}

static void
make_queues(struct port *p)
{
	uint8_t *in, *ctx, *mkc;
	uint32_t tisn;

	in = box(&p->g, BB_PRM_OP_CREATE_MKEY, 0, BB_PRM_SZ_CREATE_MKEY_IN);
	mkc = in + BB_PRM_CREATE_MKEY_MKC.byte;
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_PD, p->pd);
	bb_prm_set(mkc, BB_PRM_MKC_LENGTH64, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_MKEY_7_0, 0x5a);
	p->key = made_number(p) << 8 | 0x5a;
	g_cq(&p->g, &p->scq, 0, p->uar);
	g_cq(&p->g, &p->rcq, 0, p->uar);
	p->sq = (struct g_qp){.log_sq = LOG_SQ,
			      .uar = p->uar,
			      .ring = g_pages(&p->g, 1),
			      .offset = UINT32_MAX - 63};
	p->sq.dbr = g_pages(&p->g, 1).pa[0];
	p->rq_dbr = p->sq.dbr + 8;
	p->rq_ring = g_pages(&p->g, 1);
	box(&p->g, BB_PRM_OP_CREATE_TIS, 0, BB_PRM_SZ_CREATE_TIS_IN);
	tisn = made_number(p);
	ctx = queue_box(p, BB_PRM_OP_CREATE_SQ, p->scq.cqn, &p->sq.ring, p->sq.dbr, LOG_SQ, 6);
	bb_prm_set(ctx, BB_PRM_SQC_TIS_LST_SZ, 1);
	bb_prm_set(ctx, BB_PRM_SQC_TIS_NUM_0, tisn);
	p->sqn = p->sq.qpn = made_number(p);
	queue_box(p, BB_PRM_OP_CREATE_RQ, p->rcq.cqn, &p->rq_ring, p->rq_dbr, LOG_RQ, LOG_STRIDE);
	p->rqn = made_number(p);
	assert_int_equal(modify_queue(p, BB_PRM_OP_MODIFY_SQ, p->sqn, RST, RDY), BB_PRM_STAT_OK);
	assert_int_equal(modify_queue(p, BB_PRM_OP_MODIFY_RQ, p->rqn, RST, RDY), BB_PRM_STAT_OK);
}

uint32_t
make_table(struct port *p, uint32_t miss)
{
	uint8_t *ctx = box(&p->g, BB_PRM_OP_CREATE_FLOW_TABLE, 0, BB_PRM_SZ_CREATE_FLOW_TABLE_IN) +
		       BB_PRM_CREATE_FT_CTX.byte;

	bb_prm_set(ctx, BB_PRM_FTC_LOG_SIZE, 4);
	bb_prm_set(ctx, BB_PRM_FTC_MISS_ACTION, miss != 0);
	bb_prm_set(ctx, BB_PRM_FTC_MISS_ID, miss);
	return made_number(p);
}

void
group_box(struct port *p, uint32_t table, uint32_t start, uint32_t mask_at, uint8_t mask)
{
	uint8_t *in = box(&p->g, BB_PRM_OP_CREATE_FLOW_GROUP, 0, BB_PRM_SZ_CREATE_FLOW_GROUP_IN);

	bb_prm_set(in, BB_PRM_FLOW_TABLE_ID, table);
	bb_prm_set(in, BB_PRM_CREATE_FG_START, start);
	bb_prm_set(in, BB_PRM_CREATE_FG_END, start + 1);
	bb_prm_set(in, BB_PRM_CREATE_FG_ENABLE, mask != 0);
	in[BB_PRM_CREATE_FG_MATCH.byte + mask_at] = mask;
}

uint8_t *
entry_box(struct port *p, uint32_t table, uint32_t group, uint32_t index, uint32_t action,
	  uint32_t type, uint32_t id)
{
	uint8_t *in = box(&p->g, BB_PRM_OP_SET_FLOW_TABLE_ENTRY, 0, BB_PRM_SZ_SET_FTE_IN + 8);
	uint8_t *flow = in + BB_PRM_SET_FTE_CTX.byte;

	bb_prm_set(in, BB_PRM_FLOW_TABLE_ID, table);
	bb_prm_set(in, BB_PRM_SET_FTE_INDEX, index);
	bb_prm_set(flow, BB_PRM_FLOWC_GROUP_ID, group);
	bb_prm_set(flow, BB_PRM_FLOWC_TAG, TAG);
	bb_prm_set(flow, BB_PRM_FLOWC_ACTION, action);
	if (action != 4)
		return flow;
	bb_prm_set(flow, BB_PRM_FLOWC_DESTS, 1);
	bb_prm_set(flow + BB_PRM_FLOWC_DESTINATION, BB_PRM_DEST_TYPE, type);
	bb_prm_set(flow + BB_PRM_FLOWC_DESTINATION, BB_PRM_DEST_ID, id);
	return flow;
}

void
set_root(struct port *p, uint32_t table)
{
	bb_prm_set(box(&p->g, BB_PRM_OP_SET_FLOW_TABLE_ROOT, 0, BB_PRM_SZ_FLOW_TABLE_IN),
		   BB_PRM_FLOW_TABLE_ID, table);
	assert_status(&p->g, OK);
}

/* Passes all frames to the RQ: a TIR, and a table with one entry. */
static void
steer(struct port *p)
{
	uint8_t *ctx = box(&p->g, BB_PRM_OP_CREATE_TIR, 0, BB_PRM_SZ_CREATE_TIR_IN) +
		       BB_PRM_CREATE_TIR_CTX.byte;

	bb_prm_set(ctx, BB_PRM_TIRC_INLINE_RQN, p->rqn);
	p->tirn = made_number(p);
	p->table = make_table(p, 0);
	group_box(p, p->table, 0, 0, 0);
	p->group = made_number(p);
	entry_box(p, p->table, p->group, 0, 4, 2, p->tirn);
	assert_status(&p->g, OK);
	set_root(p, p->table);
}

void
post_receive(struct port *p)
{
	uint8_t *w = g_at(&p->g, &p->rq_ring, (p->rq_pi % (1u << LOG_RQ)) << LOG_STRIDE);
	uint64_t pa = p->buffers.pa[p->rq_pi % p->buffers.n];

	memset(g_ram(&p->g, pa), 0xee, PAGE);
	bb_put32(w, 64 | 0x80000000u); /* MLX5_HW_START_PADDING, as mlx5e sets it */
	bb_put32(w + 4, p->key);
	bb_put64(w + 8, pa + 128);
	bb_put32(w + 16, FRAME_MAX);
	bb_put32(w + 20, p->key);
	bb_put64(w + 24, pa + 1024);
	bb_put32(g_ram(&p->g, p->rq_dbr), ++p->rq_pi);
}

void
read_frame(struct port *p, uint32_t i, uint8_t *to, uint32_t len)
{
	const uint8_t *at = g_ram(&p->g, p->buffers.pa[i % p->buffers.n]);

	memcpy(to, at + 128, len < 64 ? len : 64);
	if (len > 64)
		memcpy(to + 64, at + 1024, len - 64);
	assert_int_equal(at[127], 0xee);
	assert_int_equal(at[128 + 64], 0xee);
}

int
ports_open(void **state)
{
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct port *p = ports[i] = test_calloc(1, sizeof(*p));

		g_open(&p->g, port_devices[i]);
		OK(front_ethernet(p->g.f));
		p->uar = g_alloc(&p->g, BB_PRM_OP_ALLOC_UAR, 0);
		p->pd = g_alloc(&p->g, BB_PRM_OP_ALLOC_PD, 0);
		make_queues(p);
		p->data = g_pages(&p->g, 4);
		p->buffers = g_pages(&p->g, 1u << LOG_RQ);
		steer(p);
		for (k = 0; k < 4; k++)
			post_receive(p);
	}
	return 0;
}

int
ports_close(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		g_close(&ports[i]->g);
		test_free(ports[i]);
	}
	return 0;
}

void
ring_sq(struct port *p, const uint8_t *wqe, uint32_t len)
{
	g_poll(&p->g);
	g_ring(&p->g, &p->sq, wqe, len);
}

void
post_frame_late(struct port *p, uint8_t opcode, const uint8_t *frame, uint32_t len, uint32_t inl,
		uint8_t flags, uint32_t mss)
{
	uint32_t at = (30 + inl + 15) & ~15u;
	uint8_t w[256] = {0};

	at = at < 32 ? 32 : at;
	wqe_head(&p->sq, w, opcode, at / 16 + 1, G_CQE_UPDATE);
	w[20] = flags;
	bb_prm_set(w + 20, BB_PRM_F(0, 16, 16), mss);
	bb_prm_set(w + 28, BB_PRM_F(0, 0, 16), inl);
	memcpy(w + 30, frame, inl);
	memcpy(g_ram(&p->g, p->data.pa[0]), frame + inl, len - inl);
	bb_put32(w + at, len - inl);
	bb_put32(w + at + 4, p->key);
	bb_put64(w + at + 8, p->data.pa[0]);
	g_post(&p->g, &p->sq, w, (at + 16 + 63) & ~63u);
	g_ring(&p->g, &p->sq, w, 8);
}

void
post_frame(struct port *p, uint8_t opcode, const uint8_t *frame, uint32_t len, uint32_t inl,
	   uint8_t flags, uint32_t mss)
{
	g_poll(&p->g);
	post_frame_late(p, opcode, frame, len, inl, flags, mss);
}

void
tcp_frame(uint8_t *f, uint32_t len, uint32_t from)
{
	static const uint8_t head[HEADERS] = {2,  0,    0,    0,    0,  0, 2, 0,    0,    0,    0,
					      0,  8,    0,    0x45, 0,  0, 0, 0x12, 0x34, 0x40, 0,
					      64, 6,    0,    0,    10, 0, 0, 1,    10,   0,    0,
					      2,  0x30, 0x39, 0,    80, 0, 0, 0xff, 0xf0, 0,    0,
					      0,  9,    0x50, 0x19, 1,  0, 0, 0,    0,    0};
	uint32_t i;

	memcpy(f, head, sizeof(head));
	f[5] = (uint8_t)(2 - from);
	f[11] = (uint8_t)(1 + from);
	bb_prm_set(f + 16, BB_PRM_F(0, 0, 16), len - 14);
	for (i = HEADERS; i < len; i++)
		f[i] = (uint8_t)(i * 7);
}

uint32_t
word_sum(const uint8_t *p, uint32_t len, uint32_t s)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		s += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

void
assert_checksums(const uint8_t *f)
{
	uint32_t len = bb_prm_get(f + 16, BB_PRM_F(0, 0, 16));

	assert_int_equal(word_sum(f + 14, 20, 0), 0xffff);
	assert_int_equal(word_sum(f + 34, len - 20, word_sum(f + 26, 8, 6 + len - 20)), 0xffff);
}

const uint8_t *
assert_received(struct port *p, uint32_t len)
{
	const uint8_t *cqe = g_cqe(&p->g, &p->rcq);

	assert_int_equal(cqe[63] >> 4, BB_CQE_RESP_SEND);
	assert_int_equal(bb_prm_dword(cqe, 44), len);
	assert_int_equal(bb_prm_dword(cqe, 32), 0x77);
	assert_int_equal(bb_prm_dword(cqe, 56), TAG);
	return cqe;
}

void
assert_sent(struct port *p, uint32_t syndrome)
{
	const uint8_t *cqe = g_cqe(&p->g, &p->scq);

	assert_int_equal(cqe[63] >> 4, syndrome == 0 ? BB_CQE_REQ : BB_CQE_REQ_ERR);
	if (syndrome != 0)
		assert_int_equal(cqe[BB_CQE_SYNDROME_BYTE], syndrome);
	assert_int_equal(bb_prm_dword(cqe, 56) & 0xffffff, p->sqn);
}

bool
no_cqe(struct port *p, const struct g_cq *cq)
{
	uint8_t own = *g_at(&p->g, &cq->ring,
			    cq->offset + (uint64_t)(cq->ci % (1u << cq->log)) * 64 + 63);

	return own >> 4 == 0xf || (own & 1) != (cq->ci >> cq->log & 1);
}
