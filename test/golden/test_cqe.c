/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CQEs and the completions that libmlx5 made of them: our ring must give the same status,
 * lengths, immediates, work request and consumer index.
 */
#include "golden.h"

#include "bb_cqring.h"
#include "bb_post.h"
#include "bb_scatter.h"
#include "bb_sq.h"
#include "bb_sq_atomic.h"
#include "bb_sq_umr.h"
#include "bb_wqe_priv.h"

#define VECTORS  420u
#define MAX_CQES 256u

static const char *const known[] = {
	"id",
	"kind",
	"noise",
	"api",
	"cqe_size",
	"cqe_hex",
	"context",
	"returns",
	"wc",
	"ci_dbrec_after",
	"scattered",
	"num_entries",
	"cqes",
	"wcs",
	"cqn",
	"solicited_only",
	"consumer_index",
	"arm_sn",
	"arm_dbrec_after",
	"doorbell_hex",
	"reg_offset",
	"suspect",
	"scattered_corrected",
	NULL,
};

static const char *const known_wc[] = {
	"wr_id",
	"status",
	"opcode",
	"byte_len",
	"imm_data",
	"qp_num",
	"wc_flags",
	"vendor_err",
	"invalidated_rkey",
	"completion_ts",
	/* Not in struct bb_cqe: fields of datagrams and InfiniBand headers. */
	"src_qp",
	"pkey_index",
	"slid",
	"sl",
	"dlid_path_bits",
	NULL,
};

static const struct {
	uint8_t syndrome;
	const char *status;
} statuses[] = {
	{BB_SYN_LOCAL_LENGTH, "LOC_LEN_ERR"},     {BB_SYN_LOCAL_QP_OP, "LOC_QP_OP_ERR"},
	{BB_SYN_LOCAL_PROT, "LOC_PROT_ERR"},      {BB_SYN_WR_FLUSH, "WR_FLUSH_ERR"},
	{BB_SYN_MW_BIND, "MW_BIND_ERR"},          {BB_SYN_BAD_RESP, "BAD_RESP_ERR"},
	{BB_SYN_LOCAL_ACCESS, "LOC_ACCESS_ERR"},  {BB_SYN_REMOTE_INVAL_REQ, "REM_INV_REQ_ERR"},
	{BB_SYN_REMOTE_ACCESS, "REM_ACCESS_ERR"}, {BB_SYN_REMOTE_OP, "REM_OP_ERR"},
	{BB_SYN_RETRY_EXC, "RETRY_EXC_ERR"},      {BB_SYN_RNR_RETRY_EXC, "RNR_RETRY_EXC_ERR"},
	{BB_SYN_REMOTE_ABORTED, "REM_ABORT_ERR"},
};

#define MAX_PIECES 8u

struct tallies {
	struct tally done, done_data, open;
};

static const char *
status_of(uint8_t syndrome)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].syndrome == syndrome)
			return statuses[i].status;
	}
	return "GENERAL_ERR";
}

/*
 * The CQE of a key change says only UMR. The queue remembers the kind of request at the CQE's
 * counter, so the request is posted and completed here.
 */
static const char *
umr_opcode_of(const struct vec *v, const struct bb_cqe *cqe, const struct vec *ctx)
{
	static uint8_t ring[64 * 64] __attribute__((aligned(64)));
	static struct bb_sq_wqe wqes[64];
	const struct bb_bind bind = {.addr = 0x1000, .len = 64, .lkey = 0x100};
	uint32_t dbrec;
	uint64_t reg[8];
	struct bb_sq sq;
	struct bb_sq_conf conf = {.buf = ring,
				  .wqes = wqes,
				  .blocks = 64,
				  .depth = 8,
				  .sig_every = 1,
				  .dbrec = &dbrec,
				  .reg = reg,
				  .owner = UINT32_MAX};
	const struct bb_sq_wqe *w;
	uint16_t idx = (uint16_t)vec_num(ctx, "wqe_index");
	bool local_inv = strcmp(vec_str(ctx, "opcode"), "LOCAL_INV") == 0;
	const uint8_t *ctrl = ring + (size_t)(idx & 63) * 64;

	assert_int_equal(bb_sq_init(&sq, &conf), 0);
	bb_sq_enable(&sq, true);
	sq.pi = idx;
	if (local_inv)
		assert_int_equal(bb_sq_post_local_inv(&sq, 1, 0x300, BB_SEND_SIGNALED), 0);
	else
		assert_int_equal(
			bb_sq_post_bind(&sq, 1, true, 0x300, 0x301, &bind, BB_SEND_SIGNALED), 0);
	if (ctrl[3] != bb_be32(cqe->sop_qpn) >> 24)
		vec_fail(v, "the CQE is of opcode 0x%02x, the WQE has 0x%02x",
			 bb_be32(cqe->sop_qpn) >> 24, ctrl[3]);
	w = bb_sq_complete(&sq, bb_be16(cqe->wqe_counter));
	assert_int_equal(w->wr_id, 1);
	switch (w->wc_opcode) {
	case BB_WC_LOCAL_INV:
		return "LOCAL_INV";
	case BB_WC_BIND_MW:
		return "BIND_MW";
	default:
		return "another";
	}
}

static const char *
opcode_of(const struct vec *v, const struct bb_cqe *cqe, const struct vec *ctx)
{
	uint8_t opcode = cqe->op_own >> 4;

	if (opcode == BB_CQE_RESP_WR_IMM)
		return "RECV_RDMA_WITH_IMM";
	if (opcode != BB_CQE_REQ)
		return "RECV";
	switch (bb_be32(cqe->sop_qpn) >> 24) {
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
	case BB_WQE_SEND_INV:
		return "SEND";
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		return "RDMA_WRITE";
	case BB_WQE_RDMA_READ:
		return "RDMA_READ";
	case BB_WQE_ATOMIC_CS:
		return "COMP_SWAP";
	case BB_WQE_ATOMIC_FA:
		return "FETCH_ADD";
	case BB_WQE_UMR:
		return umr_opcode_of(v, cqe, ctx);
	default:
		return "none that is posted";
	}
}

static void
compare_num(const struct vec *v, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		vec_fail(v, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)got,
			 (unsigned long long)want);
}

/*
 * Checks that data in the CQE go to the right bytes of the pieces of the request in @ctx. Our
 * CQEs have 64 bytes: of 128-byte ones only the format is checked.
 */
static void
check_data(const struct vec *v, const struct bb_cqe *cqe, const struct vec *ctx, bool too_long,
	   struct tallies *t)
{
	static uint8_t ring[64 * 512] __attribute__((aligned(64)));
	static uint8_t to[MAX_PIECES][64];
	static struct bb_sq_wqe wqes[64];
	const json_t *lens = json_object_get(ctx->obj, "sge_lengths");
	const json_t *want = json_object_get(v->obj, "scattered");
	const char *queue = vec_str(ctx, "queue");
	struct bb_sge sge[MAX_PIECES];
	uint8_t held[64] = {0};
	uint64_t wr_ids[64], reg[8];
	uint32_t dbrec, left = 0, i, k, n = (uint32_t)json_array_size(lens);
	uint16_t idx = bb_be16(cqe->wqe_counter);

	if ((cqe->op_own & BB_CQE_FORMAT_MASK) == 0)
		vec_fail(v, "no format bits");
	if (vec_num(v, "cqe_size") != 64) {
		tally_add(&t->open, "data in a 128-byte CQE (its fields are compared)");
		return;
	}
	if ((cqe->op_own & BB_CQE_FORMAT_MASK) != BB_CQE_SCATTER_32)
		vec_fail(v, "format bits 0x%x", cqe->op_own & BB_CQE_FORMAT_MASK);
	assert_true(n <= MAX_PIECES && json_array_size(want) == n);
	memset(to, 0xee, sizeof(to));
	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)to[i];
		sge[i].len = (uint32_t)json_integer_value(json_array_get(lens, i));
		sge[i].lkey = 1;
		assert_true(sge[i].len <= sizeof(to[i]));
	}
	if (strcmp(queue, "SQ") == 0) {
		bool atomic = bb_be32(cqe->sop_qpn) >> 24 != BB_WQE_RDMA_READ;
		struct bb_sq sq;
		struct bb_sq_conf conf = {.buf = ring,
					  .wqes = wqes,
					  .blocks = 64,
					  .depth = 8,
					  .max_sge = MAX_PIECES,
					  .sig_every = 1,
					  .dbrec = &dbrec,
					  .reg = reg,
					  .owner = UINT32_MAX};

		assert_int_equal(bb_sq_init(&sq, &conf), 0);
		bb_sq_enable(&sq, true);
		sq.pi = idx;
		/* Before an atomic's piece are its operands, which are not checked. */
		if (atomic)
			assert_int_equal(
				bb_sq_post_atomic(&sq, BB_WQE_ATOMIC_CS, 1, sge, 0, 0, 1, 2, 0), 0);
		else
			assert_int_equal(
				bb_sq_post_sgl(&sq, BB_WQE_RDMA_READ, true, 1, sge, n, 0, 0, 0, 0),
				0);
		left = bb_sq_scatter(&sq, idx, cqe, bb_be32(cqe->byte_cnt));
	} else if (strcmp(queue, "RQ") == 0) {
		struct bb_rq rq;
		struct bb_rq_conf conf = {.buf = ring,
					  .wr_ids = wr_ids,
					  .wqes = 64,
					  .depth = 64,
					  .log_stride = 7,
					  .max_sge = MAX_PIECES,
					  .dbrec = &dbrec,
					  .owner = UINT32_MAX};

		assert_int_equal(bb_rq_init(&rq, &conf), 0);
		bb_rq_enable(&rq);
		rq.pi = idx;
		rq.ci = idx;
		assert_int_equal(bb_rq_post(&rq, 1, sge, n), 0);
		left = bb_rq_scatter(&rq, idx, cqe, bb_be32(cqe->byte_cnt));
	} else {
		struct bb_srqring srq;
		struct bb_srqring_conf conf = {.buf = ring,
					       .wr_ids = wr_ids,
					       .held = held,
					       .wqes = 64,
					       .depth = 63,
					       .log_stride = 8,
					       .max_sge = 15,
					       .dbrec = &dbrec,
					       .owner = UINT32_MAX};

		assert_int_equal(bb_srqring_init(&srq, &conf), 0);
		assert_true(idx < 64);
		srq.head = idx;
		assert_int_equal(bb_srqring_post(&srq, 1, sge, n), 0);
		left = bb_srqring_scatter(&srq, idx, cqe, bb_be32(cqe->byte_cnt));
	}
	if ((left != 0) != too_long)
		vec_fail(v, "%u bytes found no room", left);
	for (i = 0; i < n; i++) {
		const char *hex = json_string_value(json_array_get(want, i));

		assert_true(hex != NULL && strlen(hex) == 2 * sge[i].len);
		for (k = 0; k < sizeof(to[i]); k++) {
			unsigned int byte = 0xee;

			if (k < sge[i].len)
				assert_int_equal(sscanf(hex + (size_t)2 * k, "%2x", &byte), 1);
			if (to[i][k] != byte)
				vec_fail(v, "byte %u of piece %u is 0x%02x, not 0x%02x", k, i,
					 to[i][k], byte);
		}
	}
	tally_add(&t->done_data, "data in the CQE, %s", queue);
}

/* Compares @cqe with the work completion that libmlx5 returned for it. */
static void
check_wc(const struct vec *v, const struct bb_cqe *cqe, const struct vec *ctx, struct tallies *t)
{
	const struct vec wc = vec_sub(v, "wc");
	uint8_t opcode = cqe->op_own >> 4;
	bool error = opcode == BB_CQE_REQ_ERR || opcode == BB_CQE_RESP_ERR;
	bool too_long = strcmp(vec_str(v, "kind"), "responder_scatter_too_long") == 0;

	vec_only(&wc, known_wc);
	compare_num(v, "user index", bb_be32(cqe->srqn_uidx) & 0xffffff,
		    vec_hex(ctx, "user_index"));
	compare_num(v, "QP number", bb_be32(cqe->sop_qpn) & 0xffffff, vec_hex(&wc, "qp_num"));
	/* The counter finds the request: SQ and RQ by index, an SRQ by slot. */
	compare_num(v, "WQE counter", bb_be16(cqe->wqe_counter),
		    strcmp(vec_str(ctx, "queue"), "SRQ") == 0 ? vec_num(ctx, "slot")
							      : vec_num(ctx, "wqe_index"));
	compare_num(v, "wr_id", vec_hex(ctx, "wr_id"), vec_hex(&wc, "wr_id"));
	if (error) {
		if (strcmp(vec_str(&wc, "status"), status_of(bb_cqe_syndrome(cqe))) != 0)
			vec_fail(v, "syndrome 0x%02x is %s, not %s", bb_cqe_syndrome(cqe),
				 status_of(bb_cqe_syndrome(cqe)), vec_str(&wc, "status"));
		compare_num(v, "vendor syndrome", bb_cqe_vendor_syndrome(cqe),
			    vec_num(&wc, "vendor_err"));
		tally_add(&t->done, "%s", vec_str(v, "kind"));
		return;
	}
	if (strcmp(vec_str(&wc, "status"), too_long ? "LOC_LEN_ERR" : "SUCCESS") != 0)
		vec_fail(v, "status %s", vec_str(&wc, "status"));
	if (vec_has(&wc, "opcode")) {
		const char *name = opcode_of(v, cqe, ctx);

		if (strcmp(name, vec_str(&wc, "opcode")) != 0)
			vec_fail(v, "opcode %s, not %s", name, vec_str(&wc, "opcode"));
	}
	if (vec_has(&wc, "byte_len")) {
		uint32_t sop = bb_be32(cqe->sop_qpn) >> 24;
		bool atomic = opcode == BB_CQE_REQ && sop >= 0x11 && sop <= 0x15;

		/* libmlx5 returns 8 for an atomic, whatever the CQE says. */
		if (!(atomic && vec_num(&wc, "byte_len") == 8))
			compare_num(v, "byte count", bb_be32(cqe->byte_cnt),
				    vec_num(&wc, "byte_len"));
	}
	if (vec_has(&wc, "imm_data"))
		compare_num(v, "immediate", bb_be32(cqe->imm), vec_hex(&wc, "imm_data"));
	if (vec_has(&wc, "invalidated_rkey"))
		compare_num(v, "invalidated key", bb_be32(cqe->imm),
			    vec_hex(&wc, "invalidated_rkey"));
	if (vec_has(&wc, "completion_ts"))
		compare_num(v, "time stamp", bb_be64(cqe->timestamp),
			    vec_hex(&wc, "completion_ts"));
	if (vec_has(&wc, "wc_flags") && opcode != BB_CQE_REQ &&
	    vec_lists(&wc, "wc_flags", "WITH_IMM") !=
		    (opcode == BB_CQE_RESP_WR_IMM || opcode == BB_CQE_RESP_SEND_IMM))
		vec_fail(v, "WITH_IMM does not go with opcode %u", opcode);
	if (vec_has(&wc, "wc_flags") &&
	    vec_lists(&wc, "wc_flags", "WITH_INV") != (opcode == BB_CQE_RESP_SEND_INV))
		vec_fail(v, "WITH_INV does not go with opcode %u", opcode);
	if (vec_has(v, "scattered"))
		check_data(v, cqe, ctx, too_long, t);
	tally_add(&t->done, "%s", vec_str(v, "kind"));
}

/* Puts the ring into its state when libmlx5 polled, with @index CQEs consumed. */
static void
ring_at(struct bb_cqring *cq, uint8_t *buf, uint32_t *rec, const struct vec *ctx, uint64_t index)
{
	uint32_t cnt = (uint32_t)vec_num(ctx, "cqe_cnt");

	assert_true(cnt <= MAX_CQES && (cnt & (cnt - 1)) == 0);
	assert_int_equal(bb_cqring_init(cq, buf, (uint32_t)__builtin_ctz(cnt), rec), 0);
	cq->ci = (uint32_t)index;
}

static void
place(uint8_t *buf, const struct bb_cqring *cq, uint32_t index, const uint8_t *cqe)
{
	memcpy(buf + (size_t)(index & cq->mask) * 64, cqe, 64);
}

/* Several CQEs in one call, with unsignalled requests among them. */
static void
burst(const struct vec *v, struct tallies *t)
{
	static uint8_t cq_buf[MAX_CQES * 64] __attribute__((aligned(64)));
	static uint8_t sq_buf[256 * 64] __attribute__((aligned(64)));
	static struct bb_sq_wqe wqes[256];
	const struct vec ctx = vec_sub(v, "context");
	struct vec first = vec_at(v, "cqes", 0);
	uint32_t rec[2] __attribute__((aligned(8))), dbrec, wcs = 0;
	uint64_t reg[64];
	struct bb_cqring cq;
	struct bb_sq sq;
	struct bb_sq_conf conf = {
		.buf = sq_buf,
		.wqes = wqes,
		.blocks = (uint32_t)vec_num(&ctx, "sq_size_bb"),
		.qpn = (uint32_t)vec_hex(&ctx, "qpn"),
		.sig_every = 1,
		.dbrec = &dbrec,
		.reg = reg,
		.owner = UINT32_MAX,
	};

	assert_true(conf.blocks <= 256);
	conf.depth = conf.blocks;
	assert_int_equal(bb_sq_init(&sq, &conf), 0);
	bb_sq_enable(&sq, true);
	sq.sig_seq = UINT32_MAX;
	sq.sig_every = UINT16_MAX;
	first = vec_at(&ctx, "posted", 0);
	sq.pi = (uint16_t)vec_num(&first, "wqe_index");
	for (size_t i = 0; i < vec_array_len(&ctx, "posted"); i++) {
		const struct vec w = vec_at(&ctx, "posted", i);

		assert_int_equal(sq.pi, vec_num(&w, "wqe_index"));
		assert_int_equal(bb_sq_post_nop(&sq, vec_hex(&w, "wr_id"),
						vec_flag(&w, "signaled") ? BB_SEND_SIGNALED : 0),
				 0);
	}
	first = vec_at(v, "cqes", 0);
	ring_at(&cq, cq_buf, rec, &ctx, vec_num(&first, "cq_index"));
	for (size_t i = 0; i < vec_array_len(v, "cqes"); i++) {
		const struct vec c = vec_at(v, "cqes", i);
		uint8_t bytes[64];

		assert_int_equal(vec_bytes(&c, "cqe_hex", bytes, sizeof(bytes)), 64);
		place(cq_buf, &cq, (uint32_t)vec_num(&c, "cq_index"), bytes);
	}
	for (;;) {
		const struct bb_cqe *cqe = bb_cqring_peek(&cq);
		const struct bb_sq_wqe *w;
		struct vec wc;

		if (cqe == NULL || wcs == vec_num(v, "num_entries"))
			break;
		cq.ci++;
		w = bb_sq_complete(&sq, bb_be16(cqe->wqe_counter));
		if (wcs >= vec_array_len(v, "wcs"))
			vec_fail(v, "a completion too many");
		wc = vec_at(v, "wcs", wcs++);
		compare_num(v, "wr_id", w->wr_id, vec_hex(&wc, "wr_id"));
		if ((w->flags & BB_SEND_SIGNALED) == 0)
			vec_fail(v, "completion of an unsignalled request");
		if (strcmp(vec_str(&wc, "status"), "SUCCESS") != 0)
			vec_fail(v, "status %s", vec_str(&wc, "status"));
	}
	bb_cqring_update(&cq);
	compare_num(v, "completions", wcs, vec_num(v, "returns"));
	compare_num(v, "consumer record", bb_be32(rec[0]), vec_hex(v, "ci_dbrec_after"));
	compare_num(v, "outstanding", bb_sq_outstanding(&sq), 0);
	tally_add(&t->done, "burst");
}

/* ibv_req_notify_cq: the record, and 8 bytes at one place of the UAR page. */
static void
arm(const struct vec *v, struct tallies *t)
{
	static uint8_t buf[64] __attribute__((aligned(64)));
	static uint64_t page[512];
	uint32_t rec[2] __attribute__((aligned(8)));
	uint8_t doorbell[8];
	struct bb_cqring cq;

	assert_int_equal(bb_cqring_init(&cq, buf, 0, rec), 0);
	memset(page, 0, sizeof(page));
	cq.ci = (uint32_t)vec_num(v, "consumer_index");
	bb_cqring_arm(&cq, (uint32_t)vec_hex(v, "cqn"), (uint32_t)vec_num(v, "arm_sn"),
		      vec_flag(v, "solicited_only"), &page[BB_UAR_ARM_OFFSET / 8]);
	assert_int_equal(vec_bytes(v, "doorbell_hex", doorbell, sizeof(doorbell)), 8);
	compare_num(v, "arm record", bb_be32(rec[1]), vec_hex(v, "arm_dbrec_after"));
	if (memcmp((uint8_t *)page + vec_num(v, "reg_offset"), doorbell, sizeof(doorbell)) != 0)
		vec_fail(v, "the doorbell differs");
	page[vec_num(v, "reg_offset") / 8] = 0;
	for (size_t i = 0; i < 512; i++)
		compare_num(v, "another register", page[i], 0);
	tally_add(&t->done, "arm");
}

static void
one(const struct vec *v, void *arg)
{
	static uint8_t buf[MAX_CQES * 64] __attribute__((aligned(64)));
	const char *kind = vec_str(v, "kind");
	uint8_t bytes[128];
	struct tallies *t = arg;
	struct bb_cqring cq;
	struct bb_cqe *cqe;
	struct vec ctx;
	uint32_t rec[2] __attribute__((aligned(8)));
	size_t size;
	bool empty;

	vec_only(v, known);
	if (strcmp(kind, "arm") == 0) {
		arm(v, t);
		return;
	}
	if (strcmp(kind, "burst") == 0) {
		burst(v, t);
		return;
	}
	ctx = vec_sub(v, "context");
	size = vec_bytes(v, "cqe_hex", bytes, sizeof(bytes));
	if (size != vec_num(v, "cqe_size") || (size != 64 && size != 128))
		vec_fail(v, "CQE of %zu bytes", size);
	ring_at(&cq, buf, rec, &ctx, vec_num(&ctx, "cq_index"));
	/* The second half of a 128-byte CQE is the 64-byte one. */
	place(buf, &cq, cq.ci, bytes + size - 64);
	cqe = bb_cqring_peek(&cq);

	/* ibv_poll_cq returns 0, ibv_start_poll ENOENT. */
	empty = json_integer_value(json_object_get(v->obj, "returns")) ==
		(strcmp(vec_str(v, "api"), "ibv_poll_cq") == 0 ? 0 : 2);
	if (empty != (cqe == NULL))
		vec_fail(v, "the CQE is %s", cqe == NULL ? "not seen" : "seen");
	if (cqe != NULL)
		cq.ci++;
	bb_cqring_update(&cq);
	/* A failed ibv_start_poll leaves the record to an ibv_end_poll that never follows. */
	if (strcmp(vec_str(v, "api"), "ibv_start_poll") == 0 &&
	    json_integer_value(json_object_get(v->obj, "returns")) == -2)
		tally_add(&t->open, "consumer record of a failed ibv_start_poll");
	else
		compare_num(v, "consumer record", bb_be32(rec[0]), vec_hex(v, "ci_dbrec_after"));

	if (empty) {
		tally_add(&t->done, "%s", kind);
	} else if (strcmp(kind, "unknown_user_index") == 0) {
		if ((bb_be32(cqe->srqn_uidx) & 0xffffff) == vec_hex(&ctx, "user_index"))
			vec_fail(v, "the user index is known");
		tally_add(&t->done, "%s", kind);
	} else if (strncmp(kind, "opcode_", 7) == 0) {
		/* Our reader differs: these are no completions and have no name. */
		if (strcmp(bb_cqe_opcode_name(cqe->op_own >> 4), "?") != 0)
			vec_fail(v, "opcode %u has a name", cqe->op_own >> 4);
		tally_add(&t->done, "%s", kind);
	} else {
		check_wc(v, cqe, &ctx, t);
	}
}

TEST(test_every_recorded_cqe_polls_as_libmlx5_does)
{
	static struct tallies t;
	unsigned int i, n = 0;

	golden_each("cqe.jsonl", VECTORS, one, &t);
	tally_print(&t.done, "compared");
	tally_print(&t.done_data, "and");
	tally_print(&t.open, "not covered");
	for (i = 0; i < t.done.rows; i++)
		n += t.done.row[i].n;
	assert_int_equal(n, VECTORS);
}

TEST_MAIN(0)
