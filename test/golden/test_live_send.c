/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Posts every recorded send request again by the installed libmlx5 and compares. golden_send_wqe
 * compares the same recording with our builders, so its results also hold for this libmlx5. See
 * data/README.md for the fields.
 *
 * Queue, QPN, index and keys are those of the recording. So WQE, doorbell record and register are
 * compared byte for byte. Permitted to differ:
 * - the UDP source port of a datagram without a flow label, which libmlx5 draws at random;
 * - the next half of the BlueFlame register, which depends on earlier doorbells.
 */
#include "live_request.h"

#define VECTORS  2169u
#define MAX_LIST 16u
#define BF_HALF  256u
#define FILL     0xee

/* A queue as recorded. */
struct queue {
	char name[64]; /* key of the queue: vectors with another one use another queue */
	struct ibv_pd *pd;
	struct live_cq cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp dv;
	struct ibv_ah *ah; /* UD: address handle of filler requests */
	uint32_t user_index;
	uint16_t index; /* of the next block */
};

static struct vec all[VECTORS];
static struct queue q;
static struct ibv_context *ctx;
static char context[32]; /* key of @ctx: vectors with another one use another context */
static struct tally done, differs;

/* ---- objects */

/* Opens a context as in the recording: link and kind of doorbell. */
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

/* Finds the largest number of pieces and inline bytes in the queue's vectors. */
static void
needs(unsigned int first, uint32_t *sge, uint32_t *inline_data)
{
	const char *qpn = vec_str(&all[first], "qpn");
	uint8_t data[LIVE_MAX_WQE];

	*sge = 1;
	*inline_data = 0;
	for (unsigned int i = first; i < VECTORS && strcmp(vec_str(&all[i], "qpn"), qpn) == 0;
	     i++) {
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

/* Makes the queue of vector @first in its recorded size, unless it is the current one. */
static void
queue_for(unsigned int first)
{
	const struct vec *v = &all[first];
	const uint32_t blocks = (uint32_t)vec_num(v, "sq_size_bb");
	struct ibv_qp_init_attr_ex init = {
		.qp_type = live_qp_type(v),
		.sq_sig_all = vec_flag(v, "sq_sig_all"),
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = live_send_ops(live_qp_type(v)),
	};
	struct mlx5dv_obj obj;
	uint32_t sge, data;

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
	for (uint32_t n = 1; n <= blocks; n *= 2) {
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
		q.ah = live_ah(v, q.pd);
}

static int
post(const struct vec *v, struct live_request *r, unsigned int n)
{
	struct ibv_send_wr *bad;

	if (strcmp(vec_str(v, "api"), "ibv_wr") != 0) {
		for (unsigned int i = 0; i + 1 < n; i++)
			r[i].wr.next = &r[i + 1].wr;
		return ibv_post_send(q.qp, &r[0].wr, &bad);
	}
	ibv_wr_start(q.ex);
	for (unsigned int i = 0; i < n; i++)
		live_build(q.ex, &r[i]);
	return ibv_wr_complete(q.ex);
}

/*
 * Posts requests of one block each, the last one a key change, until the index is the vector's.
 */
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

/* ---- bytes that were written */

static void
check_wqe(const struct vec *v)
{
	uint8_t want[LIVE_MAX_WQE], mask[LIVE_MAX_WQE], got[LIVE_MAX_WQE];
	const size_t len = vec_bytes(v, "wqe_hex", want, sizeof(want));
	const size_t ring = (size_t)q.dv.sq.wqe_cnt * 64, at = q.index * (size_t)64 % ring;

	for (size_t i = 0; i < len; i++)
		got[i] = ((const uint8_t *)q.dv.sq.buf)[(at + i) % ring];
	vec_unwritten(v, mask, len);
	for (size_t i = 0; i < len; i++)
		if (mask[i] != 0 && got[i] != FILL)
			vec_fail(v, "byte %zu, which was left alone, is 0x%02x", i, got[i]);
	if (q.ah != NULL && live.ethernet) {
		struct vec a = vec_sub(v, "ah");

		/* Bytes 14 and 15 of the address vector, which follows the control segment. */
		if (vec_num(&a, "udp_sport") != 0 && vec_hex(&a, "flow_label") == 0) {
			if (got[30] < 0xc0)
				vec_fail(v, "UDP source port 0x%02x%02x", got[30], got[31]);
			memset(mask + 30, 1, 2);
			tally_add(&differs, "UDP source port, drawn");
		}
	}
	vec_compare(v, "WQE", got, want, mask, len);
	tally_add(&done, "%s %s", vec_str(v, "qp_type"), vec_str(v, "opcode"));
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
	static struct live_request r[MAX_LIST];
	const struct vec *v = &all[first];
	const uint8_t *last = NULL;

	queue_for(first);
	fill(v);
	for (unsigned int i = 0; i < n; i++)
		live_parse(v + i, q.pd, &r[i]);
	/* libmlx5 must not change bytes outside its WQE. */
	memset(q.dv.sq.buf, FILL, (size_t)q.dv.sq.wqe_cnt * 64);
	memset(q.dv.bf.reg, FILL, (size_t)2 * BF_HALF);
	if (post(v, r, n) != 0)
		vec_fail(v, "it is refused: %s", strerror(errno));
	for (unsigned int i = 0; i < n; i++) {
		if (vec_num(&v[i], "wqe_index") != q.index)
			vec_fail(&v[i], "index %u does not follow", q.index);
		check_wqe(&v[i]);
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
test_vectors(void **state)
{
	unsigned int i, n, k, total = 0;

	(void)state;
	golden_all("send_wqe.jsonl", all, VECTORS);
	for (i = 0; i < VECTORS; i += n) {
		json_t *list = json_object_get(all[i].obj, "list");

		n = list != NULL ? (unsigned int)json_integer_value(json_array_get(list, 1)) : 1;
		assert_true(n >= 1 && n <= MAX_LIST && i + n <= VECTORS);
		one_post(i, n);
	}
	tally_print(&done, "as recorded");
	tally_print(&differs, "differs, permitted");
	for (i = 0; live_opcode(i) != NULL; i++)
		for (k = 0; k < 3; k++) {
			static const char *const types[] = {"RC", "UC", "UD"};
			char name[64];

			snprintf(name, sizeof(name), "%s %s", types[k], live_opcode(i));
			total += tally_get(&done, name);
		}
	assert_int_equal(total, VECTORS);
}

int
main(void)
{
	return live_main("live_send", test_vectors);
}
