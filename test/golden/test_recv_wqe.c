/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every recorded receive of an RC or UC queue pair or an SRQ, posted with our builders. Stride,
 * doorbell record, and the links after receives are returned must be the same. Only empty pieces
 * of an SRQ differ: libmlx5 writes them with byte count 0, which a device reads as 2^31. Our
 * builder omits them.
 */
#include "golden.h"

#include "bb_rq.h"
#include "bb_srqring.h"

#define VECTORS    281u
#define MAX_SGE    8u
#define MAX_STRIDE 512u
#define FILL       0xee

static const char *const known[] = {
	"id",
	"post",
	"queue",
	"qp_type",
	"max_recv_sge",
	"wqe_cnt",
	"stride",
	"wqe_index",
	"slot",
	"sge",
	"wqe_hex",
	"unwritten",
	"list",
	"event",
	"next_index",
	"dbrec_after",
	"next_wqe_index",
	"tail_before",
	"tail_after",
	"tail_next_after",
	"old_tail_hex",
	NULL,
};

struct tallies {
	struct tally done, open;
};

static uint32_t
log2_of(const struct vec *v, const char *key)
{
	uint64_t n = vec_num(v, key);

	if (n == 0 || n > 32768 || (n & (n - 1)) != 0)
		vec_fail(v, "\"%s\" is not a power of two", key);
	return (uint32_t)__builtin_ctzll(n);
}

static uint32_t
get_sge(const struct vec *v, struct bb_sge *sge)
{
	uint32_t i, n = (uint32_t)vec_array_len(v, "sge");

	assert_true(n <= MAX_SGE);
	for (i = 0; i < n; i++) {
		struct vec s = vec_at(v, "sge", i);

		sge[i].addr = vec_hex(&s, "addr");
		sge[i].len = (uint32_t)vec_num(&s, "length");
		sge[i].lkey = (uint32_t)vec_hex(&s, "lkey");
	}
	return n;
}

/* An SRQ of the largest recorded index, with no WQE written. */
struct srq {
	uint8_t ring[64 * MAX_STRIDE] __attribute__((aligned(64)));
	uint64_t wr_ids[64];
	uint8_t held[64];
	uint32_t dbrec;
	struct bb_srqring r;
};

static void
srq_open(const struct vec *v, struct srq *s)
{
	struct bb_srqring_conf conf = {
		.buf = s->ring,
		.wr_ids = s->wr_ids,
		.held = s->held,
		.wqes = 64,
		.depth = 63,
		.log_stride = log2_of(v, "stride"),
		.dbrec = &s->dbrec,
		.owner = UINT32_MAX,
	};

	assert_true(conf.log_stride <= 9);
	conf.max_sge = (1u << conf.log_stride) / BB_WQE_SEG - 1;
	assert_int_equal(bb_srqring_init(&s->r, &conf), 0);
	memset(s->ring, FILL, sizeof(s->ring));
}

static bool
has_empty(const struct bb_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (sge[i].len == 0)
			return true;
	return false;
}

/* Computes the WQE of libmlx5 without its empty pieces: the other pieces, then the end mark. */
static void
leave_out_empty(const struct vec *v, uint8_t *want, uint8_t *mask, size_t stride)
{
	static const uint8_t end[BB_WQE_SEG] = {[6] = 0x01};
	size_t from, to = BB_WQE_SEG;

	for (from = BB_WQE_SEG; from < stride && mask[from] == 0; from += BB_WQE_SEG) {
		if (memcmp(want + from, end, sizeof(end)) == 0)
			break;
		if (memcmp(want + from, "\0\0\0", 4) == 0)
			continue;
		memmove(want + to, want + from, BB_WQE_SEG);
		to += BB_WQE_SEG;
	}
	if (to == stride)
		vec_fail(v, "no empty piece in \"wqe_hex\"");
	memcpy(want + to, end, sizeof(end));
	memset(mask + to, 0, sizeof(end));
	memset(mask + to + BB_WQE_SEG, 1, stride - to - BB_WQE_SEG);
}

static void
srq_post(const struct vec *v, struct tallies *t)
{
	uint32_t slot = (uint32_t)vec_num(v, "slot"), n, i;
	uint8_t want[MAX_STRIDE], mask[MAX_STRIDE];
	size_t stride = (size_t)1 << log2_of(v, "stride");
	struct bb_sge sge[MAX_SGE];
	static struct srq s;

	srq_open(v, &s);
	assert_true(slot < 64);
	s.r.head = (uint16_t)slot;
	s.r.pi = (uint32_t)vec_num(v, "wqe_index");
	s.r.ci = s.r.pi;
	s.r.rung = s.r.pi;
	/* The link was there before. */
	bb_srqring_wqe(&s.r, slot)->next_wqe_index =
		bb_be16((uint16_t)vec_num(v, "next_wqe_index"));
	n = get_sge(v, sge);
	if (bb_srqring_post(&s.r, 1, sge, n) != 0)
		vec_fail(v, "not posted");
	if (vec_bytes(v, "wqe_hex", want, sizeof(want)) != stride)
		vec_fail(v, "\"wqe_hex\" is not a stride");
	vec_unwritten(v, mask, stride);
	if (has_empty(sge, n))
		leave_out_empty(v, want, mask, stride);
	vec_compare(v, "WQE", s.ring + slot * stride, want, mask, stride);
	for (i = 0; i < sizeof(s.ring); i++) {
		size_t at = i - slot * stride;

		if (!(at < stride && mask[at] == 0) && s.ring[i] != FILL)
			vec_fail(v, "ring byte %u was written", i);
	}
	if (s.r.head != vec_num(v, "next_wqe_index"))
		vec_fail(v, "the next WQE is %u", s.r.head);
	if ((s.r.pi & 0xffff) != vec_num(v, "next_index"))
		vec_fail(v, "next index is %u", s.r.pi);
	tally_add(&t->done, has_empty(sge, n) ? "SRQ posts, empty pieces left out" : "SRQ posts");
	if (vec_has(v, "dbrec_after")) {
		bb_srqring_ring(&s.r);
		/* libmlx5 writes all 32 bits of its count; the device reads 16. */
		if (bb_be32(s.dbrec) != (vec_hex(v, "dbrec_after") & 0xffff))
			vec_fail(v, "doorbell record is 0x%x", bb_be32(s.dbrec));
		tally_add(&t->done, "SRQ doorbell records");
	}
}

/* A returned receive is linked after the last one. */
static void
srq_free(const struct vec *v, struct tallies *t)
{
	uint32_t slot = (uint32_t)vec_num(v, "slot"), tail = (uint32_t)vec_num(v, "tail_before");
	uint8_t want[BB_WQE_SEG];
	static struct srq s;
	uint64_t wr_id;

	srq_open(v, &s);
	assert_true(slot < 64 && tail < 64);
	s.r.tail = (uint16_t)tail;
	s.held[slot] = 1;
	if (!bb_srqring_complete(&s.r, (uint16_t)slot, &wr_id))
		vec_fail(v, "not given back");
	if (s.r.tail != vec_num(v, "tail_after"))
		vec_fail(v, "the tail is %u", s.r.tail);
	if (vec_bytes(v, "old_tail_hex", want, sizeof(want)) != sizeof(want))
		vec_fail(v, "\"old_tail_hex\" is not a segment");
	/* Two bytes are written, the others stay unchanged. */
	if (memcmp(s.ring + ((size_t)tail << s.r.log_stride) + 2, want + 2, 2) != 0)
		vec_fail(v, "the old tail links to another WQE");
	for (size_t i = 0; i < sizeof(s.ring); i++)
		if (i - ((size_t)tail << s.r.log_stride) - 2 >= 2 && s.ring[i] != FILL)
			vec_fail(v, "ring byte %zu was written", i);
	tally_add(&t->done, "SRQ entries given back");
}

static void
one(const struct vec *v, void *arg)
{
	static uint8_t ring[64 * MAX_STRIDE] __attribute__((aligned(64)));
	uint8_t want[MAX_STRIDE], mask[MAX_STRIDE];
	struct tallies *t = arg;
	struct bb_sge sge[MAX_SGE];
	uint64_t wr_ids[64];
	uint32_t dbrec = UINT32_MAX, i;
	struct bb_rq_conf conf;
	struct bb_rq rq;
	size_t stride;

	vec_only(v, known);
	if (strcmp(vec_str(v, "queue"), "SRQ") == 0) {
		if (vec_has(v, "event"))
			srq_free(v, t);
		else
			srq_post(v, t);
		return;
	}
	/* The RQ of a UC queue pair is the same. */
	if (strcmp(vec_str(v, "qp_type"), "RC") != 0 && strcmp(vec_str(v, "qp_type"), "UC") != 0) {
		tally_add(&t->open, "RQ of a %s queue pair", vec_str(v, "qp_type"));
		return;
	}
	memset(&conf, 0, sizeof(conf));
	conf.buf = ring;
	conf.wr_ids = wr_ids;
	conf.wqes = 1u << log2_of(v, "wqe_cnt");
	conf.depth = conf.wqes;
	conf.log_stride = log2_of(v, "stride");
	conf.max_sge = (uint32_t)vec_num(v, "max_recv_sge");
	conf.dbrec = &dbrec;
	conf.owner = UINT32_MAX;
	stride = (size_t)1 << conf.log_stride;
	assert_true(conf.wqes <= 64 && stride <= MAX_STRIDE);
	assert_int_equal(bb_rq_init(&rq, &conf), 0);
	bb_rq_enable(&rq);
	rq.pi = (uint32_t)vec_num(v, "wqe_index");
	rq.ci = rq.pi;
	rq.rung = rq.pi;
	memset(ring, FILL, sizeof(ring));

	if (bb_rq_post(&rq, 1, sge, get_sge(v, sge)) != 0)
		vec_fail(v, "not posted");
	if (vec_num(v, "slot") != (vec_num(v, "wqe_index") & (conf.wqes - 1)))
		vec_fail(v, "\"slot\" is not the index in the ring");
	if (vec_bytes(v, "wqe_hex", want, sizeof(want)) != stride)
		vec_fail(v, "\"wqe_hex\" is not a stride");
	vec_unwritten(v, mask, stride);
	vec_compare(v, "WQE", ring + vec_num(v, "slot") * stride, want, mask, stride);
	/* Bytes that libmlx5 does not write must not be written by our builder. */
	for (i = 0; i < sizeof(ring); i++) {
		size_t at = i - vec_num(v, "slot") * stride;

		if (!(at < stride && mask[at] == 0) && ring[i] != FILL)
			vec_fail(v, "ring byte %u was written", i);
	}
	if ((rq.pi & 0xffff) != vec_num(v, "next_index"))
		vec_fail(v, "next index is %u", rq.pi);
	tally_add(&t->done, "RQ posts");
	if (vec_has(v, "dbrec_after")) {
		bb_rq_ring(&rq);
		if (bb_be32(dbrec) != vec_hex(v, "dbrec_after"))
			vec_fail(v, "doorbell record is 0x%x", bb_be32(dbrec));
		tally_add(&t->done, "RQ doorbell records");
	}
}

TEST(test_every_recorded_receive_wqe_is_compared_or_counted)
{
	static struct tallies t;
	unsigned int n;

	golden_each("recv_wqe.jsonl", VECTORS, one, &t);
	tally_print(&t.done, "compared");
	tally_print(&t.open, "not covered");
	n = tally_get(&t.done, "RQ posts");
	assert_true(n > 0);
	n += tally_get(&t.done, "SRQ posts") +
	     tally_get(&t.done, "SRQ posts, empty pieces left out") +
	     tally_get(&t.done, "SRQ entries given back");
	for (unsigned int i = 0; i < t.open.rows; i++)
		n += t.open.row[i].n;
	assert_int_equal(n, VECTORS);
}

TEST_MAIN(0)
