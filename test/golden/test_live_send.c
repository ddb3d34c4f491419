/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every recorded send request, posted once more by the libmlx5 that is installed: is the recording
 * still what it writes? golden_send_wqe compares the same recording with our builders, so what
 * holds here holds between those and this libmlx5. See data/README.md for the fields.
 *
 * Queue, QPN, index and keys are those of the recording, so WQE, doorbell record and register are
 * compared byte for byte. Permitted to differ:
 *
 * - the UDP source port of a datagram without a flow label, which libmlx5 draws;
 * - which half of the BlueFlame register comes next: it depends on the doorbells before.
 */
#include "golden.h"
#include "live.h"

#define VECTORS  2169u
#define MAX_LIST 16u
#define MAX_SGE  32u
#define MAX_WQE  1024u
#define BF_HALF  256u
#define FILL     0xee
#define MAX_SIZE (512u * 64) /* of a ring */

/* A queue as it was recorded. */
struct queue {
	char name[64]; /* what of a vector makes it another one */
	struct ibv_pd *pd;
	struct live_cq cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp dv;
	struct ibv_ah *ah; /* UD: of fillers */
	uint32_t user_index;
	uint16_t index; /* of the next block */
};

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[MAX_SGE];
	struct ibv_data_buf part[MAX_SGE];
	uint8_t data[MAX_WQE];
	bool is_inline;
};

static struct vec all[VECTORS];
static unsigned int vectors;
static struct queue q;
static struct ibv_context *ctx;
static char context[32]; /* what of a vector makes @ctx another one */
static struct tally done, differs;

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	const char *imm; /* the vector's name of what stands in the immediate's place */
	uint64_t op;
} opcodes[] = {
	{"SEND", IBV_WR_SEND, NULL, IBV_QP_EX_WITH_SEND},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, "imm", IBV_QP_EX_WITH_SEND_WITH_IMM},
	{"SEND_WITH_INV", IBV_WR_SEND_WITH_INV, "invalidate_rkey", IBV_QP_EX_WITH_SEND_WITH_INV},
	{"RDMA_WRITE", IBV_WR_RDMA_WRITE, NULL, IBV_QP_EX_WITH_RDMA_WRITE},
	{"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, "imm",
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
	{"RDMA_READ", IBV_WR_RDMA_READ, NULL, IBV_QP_EX_WITH_RDMA_READ},
	{"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, NULL, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
	{"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, NULL,
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
	{"LOCAL_INV", IBV_WR_LOCAL_INV, "invalidate_rkey", IBV_QP_EX_WITH_LOCAL_INV},
	{"BIND_MW", IBV_WR_BIND_MW, NULL, IBV_QP_EX_WITH_BIND_MW},
};

/* ---- objects */

static enum ibv_qp_type
type_of(const struct vec *v)
{
	const char *type = vec_str(v, "qp_type");

	return strcmp(type, "RC") == 0   ? IBV_QPT_RC
	       : strcmp(type, "UC") == 0 ? IBV_QPT_UC
					 : IBV_QPT_UD;
}

static uint64_t
ops_of(enum ibv_qp_type type)
{
	uint64_t ops = 0;
	unsigned int i;

	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		const bool rc_only = opcodes[i].opcode == IBV_WR_RDMA_READ ||
				     opcodes[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
				     opcodes[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		const bool ud = opcodes[i].opcode == IBV_WR_SEND ||
				opcodes[i].opcode == IBV_WR_SEND_WITH_IMM;

		if (type == IBV_QPT_RC || (type == IBV_QPT_UC && !rc_only) || ud)
			ops |= opcodes[i].op;
	}
	return ops;
}

/* The context that the recording was made in: link and kind of doorbell. */
static void
context_for(const struct vec *v)
{
	const char *mode = vec_has(v, "bell_mode") ? vec_str(v, "bell_mode") : "default";
	const bool ib = vec_has(v, "link") && strcmp(vec_str(v, "link"), "ib") == 0;
	char name[sizeof(context)];

	snprintf(name, sizeof(name), "%s %s", ib ? "ib" : "eth", mode);
	if (strcmp(name, context) == 0)
		return;
	memcpy(context, name, sizeof(context));
	unsetenv("MLX5_POST_SEND_PREFER_BF");
	unsetenv("MLX5_SHUT_UP_BF");
	if (strcmp(mode, "nobf") == 0)
		setenv("MLX5_POST_SEND_PREFER_BF", "0", 1);
	else if (strcmp(mode, "nc") == 0)
		setenv("MLX5_SHUT_UP_BF", "1", 1);
	else
		assert_string_equal(mode, "default");
	live.ethernet = !ib;
	ctx = live_open();
	assert_non_null(ctx);
}

static struct ibv_ah *
ah_of(const struct vec *v)
{
	struct vec a = vec_sub(v, "ah");
	struct ibv_ah_attr attr = {
		.port_num = (uint8_t)vec_num(&a, "port_num"),
		.is_global = vec_flag(&a, "is_global"),
		.sl = (uint8_t)vec_num(&a, "sl"),
		.static_rate = (uint8_t)vec_num(&a, "static_rate"),
		.dlid = (uint16_t)vec_num(&a, "dlid"),
		.src_path_bits = (uint8_t)vec_num(&a, "src_path_bits"),
	};
	struct ibv_ah *ah;

	if (attr.is_global) {
		assert_int_equal(vec_bytes(&a, "dgid", attr.grh.dgid.raw, 16), 16);
		attr.grh.sgid_index = (uint8_t)vec_num(&a, "sgid_index");
		attr.grh.hop_limit = (uint8_t)vec_num(&a, "hop_limit");
		attr.grh.traffic_class = (uint8_t)vec_num(&a, "traffic_class");
		attr.grh.flow_label = (uint32_t)vec_hex(&a, "flow_label");
	}
	if (vec_has(&a, "dmac")) {
		assert_int_equal(vec_bytes(&a, "dmac", live.dmac, sizeof(live.dmac)), 6);
		live_gid_type(attr.grh.sgid_index, strcmp(vec_str(&a, "sgid_type"), "RoCEv2") == 0
							   ? "RoCE v2\n"
							   : "IB/RoCE v1\n");
	}
	ah = ibv_create_ah(q.pd, &attr);
	if (ah == NULL)
		vec_fail(v, "ibv_create_ah()");
	return ah;
}

/* As many pieces and inline bytes as the queue's vectors have. */
static void
needs(unsigned int first, uint32_t *sge, uint32_t *inline_data)
{
	const char *qpn = vec_str(&all[first], "qpn");
	uint8_t data[MAX_WQE];
	unsigned int i;

	*sge = 1;
	*inline_data = 0;
	for (i = first; i < vectors && strcmp(vec_str(&all[i], "qpn"), qpn) == 0; i++) {
		const char *pieces = vec_has(&all[i], "inline_parts") ? "inline_parts" : "sge";
		const uint32_t n = (uint32_t)vec_array_len(&all[i], pieces);
		const uint32_t len =
			vec_has(&all[i], "inline_hex")
				? (uint32_t)vec_bytes(&all[i], "inline_hex", data, sizeof(data))
				: 0;

		*sge = n > *sge ? n : *sge;
		*inline_data = len > *inline_data ? len : *inline_data;
	}
}

/* The queue of vector @first, as long as it was; behind it is another one. */
static void
queue_for(unsigned int first)
{
	const struct vec *v = &all[first];
	const uint32_t blocks = (uint32_t)vec_num(v, "sq_size_bb");
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type_of(v),
		.sq_sig_all = vec_flag(v, "sq_sig_all"),
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops_of(type_of(v)),
	};
	struct mlx5dv_obj obj;
	uint32_t sge, data, n;

	if (strcmp(q.name, vec_str(v, "qpn")) == 0)
		return;
	context_for(v);
	memset(&q, 0, sizeof(q));
	snprintf(q.name, sizeof(q.name), "%s", vec_str(v, "qpn"));
	q.pd = ibv_alloc_pd(ctx);
	assert_non_null(q.pd);
	assert_true(live_cq_create(&q.cq, ctx));
	live.qpn = (uint32_t)vec_hex(v, "qpn");
	needs(first, &sge, &data);
	init.pd = q.pd;
	init.send_cq = q.cq.cq;
	init.recv_cq = q.cq.cq;
	for (n = 1; n <= blocks; n *= 2) {
		init.cap = (struct ibv_qp_cap){
			.max_send_wr = n, .max_send_sge = sge, .max_inline_data = data};
		q.qp = ibv_create_qp_ex(ctx, &init);
		if (q.qp == NULL)
			vec_fail(v, "ibv_create_qp_ex(): %s", strerror(errno));
		obj.qp.in = q.qp;
		obj.qp.out = &q.dv;
		assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
		if (q.dv.sq.wqe_cnt >= blocks)
			break;
		assert_int_equal(ibv_destroy_qp(q.qp), 0);
	}
	if (q.dv.sq.wqe_cnt != blocks || q.dv.sq.stride != 64)
		vec_fail(v, "its ring has %u blocks, not %u", q.dv.sq.wqe_cnt, blocks);
	assert_true(live_ready(q.qp));
	q.ex = ibv_qp_to_qp_ex(q.qp);
	q.user_index = live.user_index;
	if (init.qp_type == IBV_QPT_UD)
		q.ah = ah_of(v);
}

/* ---- requests */

static void
parse_bind(const struct vec *v, struct ibv_send_wr *wr)
{
	static uint8_t memory[64];
	struct vec mw = vec_sub(v, "mw");
	struct ibv_mw *window;
	struct ibv_mr *mr;

	live.key = (uint32_t)vec_hex(&mw, "rkey");
	window = ibv_alloc_mw(q.pd, vec_num(&mw, "type") == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	live.key = (uint32_t)vec_hex(&mw, "mr_lkey");
	mr = ibv_reg_mr(q.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (window == NULL || mr == NULL)
		vec_fail(v, "no window or no region");
	wr->bind_mw.mw = window;
	wr->bind_mw.rkey = (uint32_t)vec_hex(&mw, "new_rkey");
	wr->bind_mw.bind_info.mr = mr;
	wr->bind_mw.bind_info.addr = vec_hex(&mw, "addr");
	wr->bind_mw.bind_info.length = vec_hex(&mw, "length");
	wr->bind_mw.bind_info.mw_access_flags = (unsigned int)vec_hex(&mw, "access");
}

static void
parse_data(const struct vec *v, struct request *r)
{
	size_t i, n, at = 0;

	r->is_inline = vec_lists(v, "flags", "INLINE");
	if (!r->is_inline) {
		n = vec_array_len(v, "sge");
		assert_true(n <= MAX_SGE);
		for (i = 0; i < n; i++) {
			struct vec s = vec_at(v, "sge", i);

			r->sge[i].addr = vec_hex(&s, "addr");
			r->sge[i].length = (uint32_t)vec_num(&s, "length");
			r->sge[i].lkey = (uint32_t)vec_hex(&s, "lkey");
		}
	} else {
		json_t *parts = json_object_get(v->obj, "inline_parts");

		(void)vec_bytes(v, "inline_hex", r->data, sizeof(r->data));
		n = vec_array_len(v, "inline_parts");
		assert_true(n <= MAX_SGE);
		for (i = 0; i < n; i++) {
			const size_t len = (size_t)json_integer_value(json_array_get(parts, i));

			r->part[i] = (struct ibv_data_buf){r->data + at, len};
			r->sge[i].addr = (uintptr_t)r->data + at;
			r->sge[i].length = (uint32_t)len;
			at += len;
		}
	}
	r->wr.sg_list = r->sge;
	r->wr.num_sge = (int)n;
}

static void
parse(const struct vec *v, struct request *r)
{
	const char *op = vec_str(v, "opcode");
	struct ibv_send_wr *wr = &r->wr;
	unsigned int i = 0;

	memset(r, 0, sizeof(*r));
	while (i < sizeof(opcodes) / sizeof(opcodes[0]) && strcmp(op, opcodes[i].name) != 0)
		i++;
	if (i == sizeof(opcodes) / sizeof(opcodes[0]))
		vec_fail(v, "opcode %s", op);
	wr->opcode = opcodes[i].opcode;
	if (opcodes[i].imm != NULL && strcmp(opcodes[i].imm, "imm") == 0)
		wr->imm_data = htobe32((uint32_t)vec_hex(v, "imm"));
	else if (opcodes[i].imm != NULL)
		wr->invalidate_rkey = (uint32_t)vec_hex(v, "invalidate_rkey");
	wr->send_flags = (vec_lists(v, "flags", "SIGNALED") ? IBV_SEND_SIGNALED : 0u) |
			 (vec_lists(v, "flags", "SOLICITED") ? IBV_SEND_SOLICITED : 0u) |
			 (vec_lists(v, "flags", "FENCE") ? IBV_SEND_FENCE : 0u) |
			 (vec_lists(v, "flags", "INLINE") ? IBV_SEND_INLINE : 0u);
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = vec_hex(v, "remote_addr");
		wr->wr.rdma.rkey = (uint32_t)vec_hex(v, "rkey");
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.swap = vec_hex(v, "swap");
		/* fallthrough */
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.compare_add = vec_hex(v, "compare_add");
		wr->wr.atomic.remote_addr = vec_hex(v, "remote_addr");
		wr->wr.atomic.rkey = (uint32_t)vec_hex(v, "rkey");
		break;
	case IBV_WR_BIND_MW:
		parse_bind(v, wr);
		break;
	default:
		break;
	}
	if (q.ah != NULL) {
		struct vec a = vec_sub(v, "ah");

		wr->wr.ud.ah = ah_of(v);
		wr->wr.ud.remote_qpn = (uint32_t)vec_hex(&a, "remote_qpn");
		wr->wr.ud.remote_qkey = (uint32_t)vec_hex(&a, "remote_qkey");
	}
	parse_data(v, r);
}

/* By ibv_wr_*(), between its start and its complete. */
static void
build(struct ibv_qp_ex *ex, const struct request *r)
{
	const struct ibv_send_wr *wr = &r->wr;
	const size_t n = (size_t)wr->num_sge;

	ex->wr_id = 1;
	ex->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, wr->invalidate_rkey);
		return;
	default:
		ibv_wr_bind_mw(ex, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return;
	}
	if (q.ah != NULL)
		ibv_wr_set_ud_addr(ex, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (r->is_inline && n == 1)
		ibv_wr_set_inline_data(ex, r->part[0].addr, r->part[0].length);
	else if (r->is_inline)
		ibv_wr_set_inline_data_list(ex, n, r->part);
	else if (n == 1)
		ibv_wr_set_sge(ex, r->sge[0].lkey, r->sge[0].addr, r->sge[0].length);
	else
		ibv_wr_set_sge_list(ex, n, r->sge);
}

static int
post(const struct vec *v, struct request *r, unsigned int n)
{
	struct ibv_send_wr *bad;
	unsigned int i;

	if (strcmp(vec_str(v, "api"), "ibv_wr") != 0) {
		for (i = 0; i + 1 < n; i++)
			r[i].wr.next = &r[i + 1].wr;
		return ibv_post_send(q.qp, &r[0].wr, &bad);
	}
	ibv_wr_start(q.ex);
	for (i = 0; i < n; i++)
		build(q.ex, &r[i]);
	return ibv_wr_complete(q.ex);
}

/* Requests of a block each, and at last one that changes a key, until the index is the vector's. */
static void
fill(const struct vec *v)
{
	uint16_t left = (uint16_t)(vec_num(v, "wqe_index") - q.index);
	const bool umr = vec_flag(v, "after_umr");
	struct ibv_send_wr *bad;

	while (left > 0) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
		const bool last = umr && left == 2;

		if (umr && left == 1)
			vec_fail(v, "no room for what it comes behind");
		if (last)
			wr.opcode = IBV_WR_LOCAL_INV;
		else
			wr.wr.ud.ah = q.ah;
		if (ibv_post_send(q.qp, &wr, &bad) != 0 ||
		    !live_cq_done(&q.cq, q.user_index, q.index, false))
			vec_fail(v, "a request in front of it fails");
		q.index = (uint16_t)(q.index + 1 + last);
		left = (uint16_t)(left - 1 - last);
	}
}

/* ---- what was written */

static void
check_wqe(const struct vec *v, const struct request *r)
{
	uint8_t want[MAX_WQE], mask[MAX_WQE], got[MAX_WQE];
	const size_t len = vec_bytes(v, "wqe_hex", want, sizeof(want));
	const size_t ring = (size_t)q.dv.sq.wqe_cnt * 64, at = q.index * (size_t)64 % ring;
	size_t i;

	for (i = 0; i < len; i++)
		got[i] = ((const uint8_t *)q.dv.sq.buf)[(at + i) % ring];
	vec_unwritten(v, mask, len);
	for (i = 0; i < len; i++)
		if (mask[i] != 0 && got[i] != FILL)
			vec_fail(v, "byte %zu, which was left alone, is 0x%02x", i, got[i]);
	if (q.ah != NULL && live.ethernet) {
		struct vec a = vec_sub(v, "ah");

		/* Bytes 14 and 15 of the address vector, which is behind the control segment. */
		if (vec_num(&a, "udp_sport") != 0 && vec_hex(&a, "flow_label") == 0) {
			if (got[30] < 0xc0)
				vec_fail(v, "UDP source port 0x%02x%02x", got[30], got[31]);
			memset(mask + 30, 1, 2);
			tally_add(&differs, "UDP source port, drawn");
		}
	}
	vec_compare(v, "WQE", got, want, mask, len);
	tally_add(&done, "%s %s", vec_str(v, "qp_type"), vec_str(v, "opcode"));
	(void)r;
}

static void
check_doorbell(const struct vec *v, const uint8_t *last)
{
	const size_t ring = (size_t)q.dv.sq.wqe_cnt * 64, bytes = vec_num(v, "reg_bytes");
	const uint8_t *sq = q.dv.sq.buf;
	const uint8_t *reg = q.dv.bf.reg;
	size_t half = 0, i;

	if (be32toh(q.dv.dbrec[1]) != vec_hex(v, "dbrec_after"))
		vec_fail(v, "doorbell record is 0x%x", be32toh(q.dv.dbrec[1]));
	if (reg[0] == FILL && reg[1] == FILL && reg[2] == FILL && reg[3] == FILL)
		half = BF_HALF;
	if (half != vec_num(v, "reg_offset"))
		tally_add(&differs, "half of the register");
	for (i = 0; i < 2 * BF_HALF; i++) {
		uint8_t want = FILL;

		if (i >= half && i < half + bytes)
			want = sq[((size_t)(last - sq) + i - half) % ring];
		if (reg[i] != want)
			vec_fail(v, "register byte %zu is 0x%02x, not 0x%02x", i, reg[i], want);
	}
	tally_add(&done, "doorbells of %zu bytes", bytes);
}

static void
one_post(unsigned int first, unsigned int n)
{
	static struct request r[MAX_LIST];
	const struct vec *v = &all[first];
	const uint8_t *last = NULL;
	unsigned int i;

	queue_for(first);
	fill(v);
	for (i = 0; i < n; i++)
		parse(v + i, &r[i]);
	/* libmlx5 may not change what it does not write. */
	memset(q.dv.sq.buf, FILL, (size_t)q.dv.sq.wqe_cnt * 64);
	memset(q.dv.bf.reg, FILL, (size_t)2 * BF_HALF);
	if (post(v, r, n) != 0)
		vec_fail(v, "it is refused: %s", strerror(errno));
	for (i = 0; i < n; i++) {
		if (vec_num(&v[i], "wqe_index") != q.index)
			vec_fail(&v[i], "index %u does not follow", q.index);
		check_wqe(&v[i], &r[i]);
		last = (const uint8_t *)q.dv.sq.buf + q.index % q.dv.sq.wqe_cnt * (size_t)64;
		if (i + 1 < n)
			q.index = (uint16_t)vec_num(&v[i], "next_index");
	}
	check_doorbell(&v[n - 1], last);
	if (!live_cq_done(&q.cq, q.user_index, q.index, false))
		vec_fail(v, "its completion");
	q.index = (uint16_t)vec_num(&v[n - 1], "next_index");
}

static void
keep(const struct vec *v, void *arg)
{
	(void)arg;
	assert_true(vectors < VECTORS);
	json_incref(v->obj);
	all[vectors++] = *v;
}

static void
test_vectors(void **state)
{
	unsigned int i, n, k, total = 0;

	(void)state;
	golden_each("send_wqe.jsonl", VECTORS, keep, NULL);
	for (i = 0; i < vectors; i += n) {
		json_t *list = json_object_get(all[i].obj, "list");

		n = list != NULL ? (unsigned int)json_integer_value(json_array_get(list, 1)) : 1;
		assert_true(n >= 1 && n <= MAX_LIST && i + n <= vectors);
		one_post(i, n);
	}
	tally_print(&done, "as recorded");
	tally_print(&differs, "differs, permitted");
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		for (k = 0; k < 3; k++) {
			static const char *const types[] = {"RC", "UC", "UD"};
			char name[64];

			snprintf(name, sizeof(name), "%s %s", types[k], opcodes[i].name);
			total += tally_get(&done, name);
		}
	assert_int_equal(total, VECTORS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};

	if (!live_start()) {
		fprintf(stderr, "no /sys for libibverbs: TMPDIR, /tmp?\n");
		return 77;
	}
	return cmocka_run_group_tests_name("live_send", tests, NULL, NULL);
}
