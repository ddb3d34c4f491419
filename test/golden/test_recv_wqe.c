/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every recorded receive request of an RC queue pair, posted with our builder:
 * the same stride and doorbell record.
 */
#include "golden.h"

#include "bb_rq.h"

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

static void
one(const struct vec *v, void *arg)
{
	static uint8_t ring[64 * MAX_STRIDE] __attribute__((aligned(64)));
	uint8_t want[MAX_STRIDE], mask[MAX_STRIDE];
	struct tallies *t = arg;
	struct bb_sge sge[MAX_SGE];
	uint64_t wr_ids[64];
	uint32_t dbrec = UINT32_MAX, i, n;
	struct bb_rq_conf conf;
	struct bb_rq rq;
	size_t stride;

	vec_only(v, known);
	if (strcmp(vec_str(v, "queue"), "RQ") != 0) {
		tally_add(&t->open, "%s %s", vec_str(v, "queue"),
			  vec_has(v, "event") ? "entry given back" : "post");
		return;
	}
	if (strcmp(vec_str(v, "qp_type"), "RC") != 0) {
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
	bb_rq_enable(&rq, true);
	rq.pi = (uint32_t)vec_num(v, "wqe_index");
	rq.ci = rq.pi;
	rq.rung = rq.pi;
	memset(ring, FILL, sizeof(ring));

	n = (uint32_t)vec_array_len(v, "sge");
	assert_true(n <= MAX_SGE);
	for (i = 0; i < n; i++) {
		struct vec s = vec_at(v, "sge", i);

		sge[i].addr = vec_hex(&s, "addr");
		sge[i].len = (uint32_t)vec_num(&s, "length");
		sge[i].lkey = (uint32_t)vec_hex(&s, "lkey");
	}
	if (bb_rq_post(&rq, 1, sge, n) != 1)
		vec_fail(v, "not posted");
	if (vec_num(v, "slot") != (vec_num(v, "wqe_index") & (conf.wqes - 1)))
		vec_fail(v, "\"slot\" is not the index in the ring");
	if (vec_bytes(v, "wqe_hex", want, sizeof(want)) != stride)
		vec_fail(v, "\"wqe_hex\" is not a stride");
	vec_unwritten(v, mask, stride);
	vec_compare(v, "WQE", ring + vec_num(v, "slot") * stride, want, mask, stride);
	/* What libmlx5 does not write we do not write either. */
	for (i = 0; i < sizeof(ring); i++) {
		size_t at = i - vec_num(v, "slot") * stride;

		if (!(at < stride && mask[at] == 0) && ring[i] != FILL)
			vec_fail(v, "ring byte %u was written", i);
	}
	if ((rq.pi & 0xffff) != vec_num(v, "next_index"))
		vec_fail(v, "next index is %u", rq.pi);
	tally_add(&t->done, "RC RQ posts");
	if (vec_has(v, "dbrec_after")) {
		bb_rq_ring(&rq);
		if (bb_be32(dbrec) != vec_hex(v, "dbrec_after"))
			vec_fail(v, "doorbell record is 0x%x", bb_be32(dbrec));
		tally_add(&t->done, "RC RQ doorbell records");
	}
}

static void
test_vectors(void **state)
{
	static struct tallies t;
	unsigned int i, n;

	(void)state;
	golden_each("recv_wqe.jsonl", VECTORS, one, &t);
	tally_print(&t.done, "compared");
	tally_print(&t.open, "not covered");
	n = tally_get(&t.done, "RC RQ posts");
	assert_true(n > 0);
	for (i = 0; i < t.open.rows; i++)
		n += t.open.row[i].n;
	assert_int_equal(n, VECTORS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};

	return cmocka_run_group_tests_name("recv_wqe", tests, NULL, NULL);
}
