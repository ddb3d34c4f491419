/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Puts every single recorded CQE into the ring of the installed libmlx5 and compares its
 * completion with the recorded one. golden_cqe compares our reader with the same recording.
 *
 * User index, WQE index and owner bit of a CQE are those of this run. The six doorbells that arm
 * a CQ and the bursts are not covered. Permitted to differ: data of 128-byte CQEs that the
 * recording calls suspect may be corrected, as in rdma-core 64.
 */
#include "golden.h"
#include "live.h"

#define VECTORS 420u
#define FILL    0xee
#define MAX_SGE 8u
#define DEPTH   31 /* a ring of 32 */

struct queue {
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct mlx5dv_qp dv;
	uint32_t user_index;
	uint16_t sq_index; /* index of the next request */
	uint64_t wr_id;    /* of the posted request */
	uint16_t at;       /* its index */
	bool posted;
};

/* A CQ with CQEs of one size, and a QP of each kind. */
static struct {
	uint32_t cqe_size;
	struct ibv_cq_ex *ex;
	struct mlx5dv_cq dv;
	uint32_t ci;
	struct queue rc, with_srq, ud;
} c;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint8_t memory[1 << 16];
static struct tally done, differs, left;

struct name {
	const char *name;
	int value;
};

static const struct name statuses[] = {
	{"SUCCESS", IBV_WC_SUCCESS},
	{"LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR},
	{"LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
	{"LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR},
	{"WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR},
	{"MW_BIND_ERR", IBV_WC_MW_BIND_ERR},
	{"BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR},
	{"LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR},
	{"REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
	{"REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
	{"REM_OP_ERR", IBV_WC_REM_OP_ERR},
	{"RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
	{"RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
	{"REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR},
	{"GENERAL_ERR", IBV_WC_GENERAL_ERR},
	{NULL, 0},
};
static const struct name wc_opcodes[] = {
	{"SEND", IBV_WC_SEND},
	{"RDMA_WRITE", IBV_WC_RDMA_WRITE},
	{"RDMA_READ", IBV_WC_RDMA_READ},
	{"COMP_SWAP", IBV_WC_COMP_SWAP},
	{"FETCH_ADD", IBV_WC_FETCH_ADD},
	{"BIND_MW", IBV_WC_BIND_MW},
	{"LOCAL_INV", IBV_WC_LOCAL_INV},
	{"RECV", IBV_WC_RECV},
	{"RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM},
	{NULL, 0},
};
static const struct name opcodes[] = {
	{"SEND", IBV_WR_SEND},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM},
	{"SEND_WITH_INV", IBV_WR_SEND_WITH_INV},
	{"RDMA_WRITE", IBV_WR_RDMA_WRITE},
	{"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM},
	{"RDMA_READ", IBV_WR_RDMA_READ},
	{"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP},
	{"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"LOCAL_INV", IBV_WR_LOCAL_INV},
	{"BIND_MW", IBV_WR_BIND_MW},
	{NULL, 0},
};

static int
value_of(const struct vec *v, const struct name *names, const char *name)
{
	while (names->name != NULL && strcmp(names->name, name) != 0)
		names++;
	if (names->name == NULL)
		vec_fail(v, "%s is no name", name);
	return names->value;
}

/* ---- objects */

static void
queue_make(struct queue *q, enum ibv_qp_type type, bool srq, uint32_t qpn)
{
	struct ibv_srq_init_attr with = {.attr = {.max_wr = DEPTH, .max_sge = MAX_SGE}};
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_cq_ex_to_cq(c.ex),
		.recv_cq = ibv_cq_ex_to_cq(c.ex),
		.qp_type = type,
		.cap = {.max_send_wr = 16, .max_send_sge = MAX_SGE},
	};
	struct mlx5dv_obj obj;

	memset(q, 0, sizeof(*q));
	if (srq) {
		q->srq = ibv_create_srq(pd, &with);
		assert_non_null(q->srq);
		init.srq = q->srq;
	} else {
		init.cap.max_recv_wr = DEPTH;
		init.cap.max_recv_sge = MAX_SGE;
	}
	live.qpn = qpn;
	q->qp = ibv_create_qp(pd, &init);
	assert_non_null(q->qp);
	assert_true(live_ready(q->qp));
	q->user_index = live.user_index;
	obj.qp.in = q->qp;
	obj.qp.out = &q->dv;
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
}

/* Makes all objects for CQEs of @size bytes, with the recorded QPNs. */
static void
make(uint32_t size)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = DEPTH,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
			    IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct mlx5dv_cq_init_attr with = {
		.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
		.cqe_size = (uint16_t)size,
	};
	const uint32_t qpn = size == 64 ? 0x20f0 : 0x20f3;
	struct mlx5dv_obj obj;

	memset(&c, 0, sizeof(c));
	c.cqe_size = size;
	c.ex = mlx5dv_create_cq(ctx, &attr, &with);
	assert_non_null(c.ex);
	obj.cq.in = ibv_cq_ex_to_cq(c.ex);
	obj.cq.out = &c.dv;
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	assert_int_equal(c.dv.cqe_size, size);
	queue_make(&c.rc, IBV_QPT_RC, false, qpn);
	queue_make(&c.with_srq, IBV_QPT_RC, true, qpn + 1);
	queue_make(&c.ud, IBV_QPT_UD, false, qpn + 2);
}

/* ---- outstanding requests */

static void
post_send(const struct vec *v, struct queue *q, const char *op, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr *bad, wr = {
					 .wr_id = q->wr_id,
					 .sg_list = sge,
					 .num_sge = n,
					 .send_flags = IBV_SEND_SIGNALED,
					 .opcode = (enum ibv_wr_opcode)value_of(v, opcodes, op),
				 };

	if (wr.opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		wr.bind_mw.bind_info.mr =
			ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_MW_BIND);
		assert_non_null(wr.bind_mw.mw);
		assert_non_null(wr.bind_mw.bind_info.mr);
		wr.bind_mw.bind_info.length = 64;
		wr.num_sge = 0;
	} else if (wr.opcode == IBV_WR_LOCAL_INV) {
		wr.num_sge = 0;
	}
	q->at = (uint16_t)be32toh(q->dv.dbrec[1]);
	if (ibv_post_send(q->qp, &wr, &bad) != 0)
		vec_fail(v, "the request is refused: %s", strerror(errno));
}

static void
post_recv(const struct vec *v, struct queue *q, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = q->wr_id, .sg_list = sge, .num_sge = n};
	struct mlx5dv_srq dv;
	struct mlx5dv_obj obj;

	if (q->srq != NULL) {
		obj.srq.in = q->srq;
		obj.srq.out = &dv;
		assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), 0);
		q->at = (uint16_t)dv.head;
	}
	if ((q->srq != NULL ? ibv_post_srq_recv(q->srq, &wr, &bad)
			    : ibv_post_recv(q->qp, &wr, &bad)) != 0)
		vec_fail(v, "the receive is refused: %s", strerror(errno));
}

/* Posts the request that the CQE ends, with its pieces one after another in @memory. */
static void
outstanding(const struct vec *v, const struct vec *context, struct queue *q)
{
	json_t *lengths = json_object_get(context->obj, "sge_lengths");
	const char *op;
	struct ibv_sge sge[MAX_SGE];
	uint64_t at = (uintptr_t)memory;
	int n = (int)json_array_size(lengths), i;

	if (!vec_has(context, "wr_id") || (q->posted && q->wr_id == vec_hex(context, "wr_id")))
		return;
	assert_true(!q->posted && n <= (int)MAX_SGE);
	memset(memory, FILL, sizeof(memory));
	for (i = 0; i < n; i++) {
		sge[i].addr = at;
		sge[i].length = (uint32_t)json_integer_value(json_array_get(lengths, (size_t)i));
		sge[i].lkey = 1;
		at += sge[i].length + 16;
	}
	q->wr_id = vec_hex(context, "wr_id");
	q->posted = true;
	op = vec_str(context, "opcode");
	if (strcmp(vec_str(context, "queue"), "SQ") == 0)
		post_send(v, q, op, sge, n);
	else
		post_recv(v, q, sge, n);
}

/* ---- the CQE and its completion */

static uint8_t *
put(const struct vec *v, const struct vec *context, const struct queue *q)
{
	uint8_t *cqe = (uint8_t *)c.dv.buf + (c.ci & (c.dv.cqe_cnt - 1)) * (size_t)c.cqe_size;
	const char *kind = vec_str(v, "kind"), *queue = vec_str(context, "queue");
	uint8_t *low = cqe + c.cqe_size - 64;
	const bool owner = (c.ci & c.dv.cqe_cnt) != 0;

	assert_int_equal(vec_bytes(v, "cqe_hex", cqe, c.cqe_size), c.cqe_size);
	if (strcmp(kind, "unknown_user_index") != 0) {
		low[33] = (uint8_t)(q->user_index >> 16);
		low[34] = (uint8_t)(q->user_index >> 8);
		low[35] = (uint8_t)q->user_index;
	}
	if (strcmp(queue, "RQ") != 0) {
		low[60] = (uint8_t)(q->at >> 8);
		low[61] = (uint8_t)q->at;
	}
	low[63] = (uint8_t)((low[63] & 0xfe) | (owner != (strcmp(kind, "owner_hardware") == 0)));
	return low;
}

static void
field(const struct vec *v, const struct vec *wc, const char *name, uint64_t got)
{
	json_t *j = json_object_get(wc->obj, name);

	if (j == NULL)
		return;
	if (json_is_string(j) ? vec_hex(wc, name) != got : vec_num(wc, name) != got)
		vec_fail(v, "%s is 0x%llx", name, (unsigned long long)got);
}

static void
check_wc(const struct vec *v, const struct ibv_wc *got)
{
	struct vec wc = vec_sub(v, "wc");
	unsigned int flags;

	if (vec_has(&wc, "status") &&
	    (int)got->status != value_of(v, statuses, vec_str(&wc, "status")))
		vec_fail(v, "status is %d", got->status);
	if (vec_has(&wc, "opcode") &&
	    (int)got->opcode != value_of(v, wc_opcodes, vec_str(&wc, "opcode")))
		vec_fail(v, "opcode is %d", got->opcode);
	if (vec_has(&wc, "wc_flags")) {
		flags = (vec_lists(&wc, "wc_flags", "GRH") ? IBV_WC_GRH : 0u) |
			(vec_lists(&wc, "wc_flags", "WITH_IMM") ? IBV_WC_WITH_IMM : 0u) |
			(vec_lists(&wc, "wc_flags", "WITH_INV") ? IBV_WC_WITH_INV : 0u);
		/* The validity of checksums is no matter of RDMA. */
		if ((got->wc_flags & ~(unsigned int)IBV_WC_IP_CSUM_OK) != flags)
			vec_fail(v, "wc_flags are 0x%x", got->wc_flags);
	}
	field(v, &wc, "wr_id", got->wr_id);
	field(v, &wc, "qp_num", got->qp_num);
	field(v, &wc, "byte_len", got->byte_len);
	field(v, &wc, "vendor_err", got->vendor_err);
	field(v, &wc, "imm_data", be32toh(got->imm_data));
	field(v, &wc, "invalidated_rkey", got->invalidated_rkey);
	field(v, &wc, "src_qp", got->src_qp);
	field(v, &wc, "pkey_index", got->pkey_index);
	field(v, &wc, "slid", got->slid);
	field(v, &wc, "sl", got->sl);
	field(v, &wc, "dlid_path_bits", got->dlid_path_bits);
}

/* Reads the current completion of the extended CQ, as far as it was recorded. */
static void
read_wc(const struct vec *v, struct ibv_wc *wc)
{
	struct vec want = vec_sub(v, "wc");

	wc->wr_id = c.ex->wr_id;
	wc->status = c.ex->status;
	wc->qp_num = ibv_wc_read_qp_num(c.ex);
	if (vec_has(&want, "vendor_err"))
		wc->vendor_err = ibv_wc_read_vendor_err(c.ex);
	if (vec_has(&want, "opcode"))
		wc->opcode = ibv_wc_read_opcode(c.ex);
	if (vec_has(&want, "byte_len"))
		wc->byte_len = ibv_wc_read_byte_len(c.ex);
	if (vec_has(&want, "wc_flags"))
		wc->wc_flags = ibv_wc_read_wc_flags(c.ex);
	if (vec_has(&want, "imm_data"))
		wc->imm_data = ibv_wc_read_imm_data(c.ex);
	if (vec_has(&want, "invalidated_rkey"))
		wc->invalidated_rkey = ibv_wc_read_invalidated_rkey(c.ex);
	if (vec_has(&want, "src_qp"))
		wc->src_qp = ibv_wc_read_src_qp(c.ex);
	if (vec_has(&want, "slid"))
		wc->slid = (uint16_t)ibv_wc_read_slid(c.ex);
	if (vec_has(&want, "sl"))
		wc->sl = ibv_wc_read_sl(c.ex);
	if (vec_has(&want, "dlid_path_bits"))
		wc->dlid_path_bits = ibv_wc_read_dlid_path_bits(c.ex);
	field(v, &want, "completion_ts", ibv_wc_read_completion_ts(c.ex));
}

/* Returns whether the pieces in @memory hold field @name from byte @from on. */
static bool
scattered(const struct vec *v, const struct vec *context, const char *name, size_t from)
{
	json_t *lengths = json_object_get(context->obj, "sge_lengths");
	json_t *pieces = json_object_get(v->obj, name);
	const uint8_t *at = memory;
	size_t i, k, n = 0;

	if (pieces == NULL)
		return false;
	assert_int_equal(json_array_size(pieces), json_array_size(lengths));
	for (i = 0; i < json_array_size(pieces); i++) {
		const size_t len = (size_t)json_integer_value(json_array_get(lengths, i));
		const char *hex = json_string_value(json_array_get(pieces, i));

		assert_int_equal(strlen(hex), 2 * len);
		for (k = 0; k < len; k++) {
			char byte[3];

			snprintf(byte, sizeof(byte), "%02x", at[k]);
			if (n++ >= from && memcmp(byte, hex + 2 * k, 2) != 0)
				return false;
		}
		at += len + 16;
	}
	return true;
}

static int
poll(const struct vec *v, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = {0};
	int ret;

	memset(wc, 0, sizeof(*wc));
	if (strcmp(vec_str(v, "api"), "ibv_poll_cq") == 0)
		return ibv_poll_cq(ibv_cq_ex_to_cq(c.ex), 1, wc);
	ret = ibv_start_poll(c.ex, &attr);
	if (ret == 0) {
		if (vec_has(v, "wc"))
			read_wc(v, wc);
		ibv_end_poll(c.ex);
	}
	return ret;
}

static void
one(const struct vec *v, void *arg)
{
	const char *kind = vec_str(v, "kind");
	struct vec context;
	int64_t want = 0;
	struct ibv_wc wc;
	struct queue *q;
	uint8_t *low;
	int ret, taken;

	(void)arg;
	if (strcmp(kind, "arm") == 0 || strcmp(kind, "burst") == 0) {
		tally_add(&left, "%s", kind);
		return;
	}
	context = vec_sub(v, "context");
	if (vec_num(v, "cqe_size") != c.cqe_size)
		make((uint32_t)vec_num(v, "cqe_size"));
	q = strcmp(vec_str(&context, "queue"), "SRQ") == 0    ? &c.with_srq
	    : strcmp(vec_str(&context, "qp_type"), "UD") == 0 ? &c.ud
							      : &c.rc;
	outstanding(v, &context, q);
	low = put(v, &context, q);
	want = json_integer_value(json_object_get(v->obj, "returns"));
	taken = strcmp(vec_str(v, "api"), "ibv_poll_cq") == 0 ? 1 : 0;
	ret = poll(v, &wc);
	if (ret != want)
		vec_fail(v, "%s() returns %d", vec_str(v, "api"), ret);
	if (vec_has(v, "wc"))
		check_wc(v, &wc);
	if (vec_has(v, "scattered") &&
	    !scattered(v, &context, "scattered",
		       /* Suspect ones of 64 bytes begin with a byte of the previous CQE. */
		       vec_flag(v, "suspect") && strcmp(kind, "requester_scatter64") == 0)) {
		if (!scattered(v, &context, "scattered_corrected", 0))
			vec_fail(v, "its data");
		tally_add(&differs, "data as corrected");
	}
	want = (int64_t)vec_hex(v, "ci_dbrec_after") - (int64_t)vec_num(&context, "cq_index");
	if (be32toh(c.dv.dbrec[0]) != ((c.ci + (uint64_t)want) & 0xffffff))
		vec_fail(v, "the consumer index is 0x%x", be32toh(c.dv.dbrec[0]));
	/* Consumed, or not yet valid: the next CQE goes into its slot. */
	if (ret == -2 || ret == taken) {
		c.ci++;
		if (vec_has(&context, "wr_id"))
			q->posted = false;
	} else {
		low[63] = 0xf1;
	}
	tally_add(&done, "%s, %u bytes", kind, c.cqe_size);
}

static void
test_vectors(void **state)
{
	unsigned int i, n = 0;

	(void)state;
	live.ethernet = true;
	ctx = live_open();
	assert_non_null(ctx);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	golden_each("cqe.jsonl", VECTORS, one, NULL);
	tally_print(&done, "as recorded");
	tally_print(&differs, "differs, permitted");
	tally_print(&left, "not here");
	for (i = 0; i < done.rows; i++)
		n += done.row[i].n;
	assert_int_equal(n + tally_get(&left, "arm") + tally_get(&left, "burst"), VECTORS);
}

int
main(void)
{
	return live_main("live_cqe", test_vectors);
}
