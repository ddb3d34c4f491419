/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Posts every recorded receive again by the installed libmlx5, to an RQ or an SRQ. WQEs, links
 * and doorbell records must be the recorded ones, byte for byte. So the results of
 * golden_recv_wqe for our builders also hold for this libmlx5.
 *
 * Permitted to differ, for an SRQ, are the WQE used and the link in it. That is so after receives
 * that were not recorded, since their order made the list (before the index wraps from 65535 to
 * 0). It is also so after the first receive is returned to a libmlx5 from 48 on, which links such
 * WQEs when it posts.
 */
#include "golden.h"
#include "live.h"

#define VECTORS    281u
#define MAX_LIST   16u
#define MAX_SGE    8u
#define MAX_STRIDE 512u
#define LINK       16u /* bytes of an SRQ's WQE before its list */
#define SRQ_WQES   32u
#define FILL       0xee

static struct vec all[VECTORS];
static struct ibv_context *ctx;
static struct tally done, differs;

static struct {
	char name[64]; /* key of the queue: vectors with another one use another queue */
	struct live_cq cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* NULL: an RQ */
	struct mlx5dv_qp dv;
	struct mlx5dv_srq dv_srq;
	uint16_t index;           /* of the next receive */
	uint8_t out[SRQ_WQES];    /* posted WQEs, oldest first */
	unsigned int outstanding; /* number of posted WQEs */
	/* of an SRQ: its list has another order than the recorded one */
	bool other_list;
	uint32_t user_index;
	uint8_t *ring;
	uint32_t *dbrec;
} q;

static void
look(void)
{
	struct mlx5dv_obj obj;

	obj.qp.in = q.qp;
	obj.qp.out = &q.dv;
	obj.srq.in = q.srq;
	obj.srq.out = &q.dv_srq;
	assert_int_equal(mlx5dv_init_obj(&obj, q.srq != NULL ? MLX5DV_OBJ_SRQ : MLX5DV_OBJ_QP), 0);
	q.ring = q.srq != NULL ? q.dv_srq.buf : q.dv.rq.buf;
	q.dbrec = (uint32_t *)(void *)(q.srq != NULL ? q.dv_srq.dbrec : q.dv.dbrec);
}

static void
queue_for(const struct vec *v)
{
	const bool srq = strcmp(vec_str(v, "queue"), "SRQ") == 0;
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_srq_init_attr with = {.attr = {.max_wr = SRQ_WQES - 1}};
	char name[sizeof(q.name)];
	struct ibv_pd *pd;

	/* The SRQ of an event exists already. */
	if (vec_has(v, "event"))
		return;
	snprintf(name, sizeof(name), "%s %s %u", vec_str(v, "queue"),
		 srq ? "" : vec_str(v, "qp_type"), (unsigned int)vec_num(v, "max_recv_sge"));
	if (strcmp(name, q.name) == 0)
		return;
	memset(&q, 0, sizeof(q));
	memcpy(q.name, name, sizeof(name));
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	assert_true(live_cq_create(&q.cq, ctx));
	with.attr.max_sge = (uint32_t)vec_num(v, "max_recv_sge");
	if (srq) {
		q.srq = ibv_create_srq(pd, &with);
		assert_non_null(q.srq);
		init.srq = q.srq;
	} else {
		init.cap.max_recv_wr = (uint32_t)vec_num(v, "wqe_cnt");
		init.cap.max_recv_sge = with.attr.max_sge;
	}
	init.qp_type = !srq && strcmp(vec_str(v, "qp_type"), "UC") == 0 ? IBV_QPT_UC : IBV_QPT_RC;
	init.send_cq = q.cq.cq;
	init.recv_cq = q.cq.cq;
	q.qp = ibv_create_qp(pd, &init);
	assert_non_null(q.qp);
	assert_true(live_ready(q.qp));
	q.user_index = live.user_index;
	look();
	if (srq ? q.dv_srq.stride != vec_num(v, "stride")
		: q.dv.rq.stride != vec_num(v, "stride") ||
			    q.dv.rq.wqe_cnt != vec_num(v, "wqe_cnt"))
		vec_fail(v, "its ring has another form");
}

/* Completes a receive by WQE @slot. */
static void
receive(const struct vec *v, unsigned int slot)
{
	unsigned int i;

	for (i = 0; i < q.outstanding && q.out[i] != slot; i++)
		;
	if (i == q.outstanding)
		vec_fail(v, "WQE %u is not posted", slot);
	memmove(q.out + i, q.out + i + 1, q.outstanding - i - 1);
	q.outstanding--;
	if (!live_cq_done(&q.cq, q.user_index, (uint16_t)slot, true))
		vec_fail(v, "a receive by WQE %u is not polled", slot);
}

static unsigned int
next_slot(void)
{
	if (q.srq == NULL)
		return q.index % q.dv.rq.wqe_cnt;
	look();
	return q.dv_srq.head;
}

static int
post(struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return q.srq != NULL ? ibv_post_srq_recv(q.srq, wr, &bad) : ibv_post_recv(q.qp, wr, &bad);
}

/*
 * Does what the recorder did: consumes the posted receives, then posts and consumes single ones
 * up to the vector's index.
 */
static void
fill(const struct vec *v, unsigned int n)
{
	const uint16_t index = (uint16_t)vec_num(v, "wqe_index");

	q.other_list = q.other_list || (q.srq != NULL && q.index != index);
	if (q.index != index)
		while (q.outstanding > 0)
			receive(v, q.out[0]);
	while (q.srq == NULL && q.outstanding + n > q.dv.rq.wqe_cnt)
		receive(v, q.out[0]);
	for (; q.index != index; q.index++) {
		struct ibv_recv_wr wr = {.num_sge = 0};

		q.out[q.outstanding++] = (uint8_t)next_slot();
		if (post(&wr) != 0)
			vec_fail(v, "a receive in front of it is refused");
		receive(v, q.out[0]);
	}
}

/* Returns the WQE that follows WQE @slot in the list. */
static unsigned int
behind(unsigned int slot)
{
	const uint8_t *wqe = q.ring + slot * (size_t)q.dv_srq.stride;

	return q.srq != NULL ? (unsigned int)wqe[2] << 8 | wqe[3] : (slot + 1) % q.dv.rq.wqe_cnt;
}

static void
check_wqe(const struct vec *v, unsigned int slot, const uint8_t *before)
{
	uint8_t want[MAX_STRIDE], mask[MAX_STRIDE];
	const size_t len = vec_bytes(v, "wqe_hex", want, sizeof(want));
	const uint8_t *got = q.ring + slot * len;

	assert_int_equal(len, vec_num(v, "stride"));
	vec_unwritten(v, mask, len);
	for (size_t i = 0; i < len; i++)
		if (mask[i] != 0 && before != NULL && got[i] != before[i])
			vec_fail(v, "byte %zu, which was left alone, is 0x%02x", i, got[i]);
	if (q.other_list) {
		memset(mask + 2, 1, 2);
		tally_add(&differs, "place and link in an SRQ");
	}
	vec_compare(v, "WQE", got, want, mask, len);
	tally_add(&done, "%s", vec_str(v, "queue"));
}

static void
check_free(const struct vec *v)
{
	uint8_t want[LINK];

	receive(v, (unsigned int)vec_num(v, "slot"));
	look();
	/* libmlx5 only marks it as free; a later post links it. */
	q.other_list = q.other_list || q.dv_srq.tail == vec_num(v, "tail_before");
	if (q.other_list) {
		tally_add(&differs, "SRQ, linked later");
		return;
	}
	assert_int_equal(vec_bytes(v, "old_tail_hex", want, sizeof(want)), LINK);
	vec_compare(v, "old tail", q.ring + vec_num(v, "tail_before") * vec_num(v, "stride"), want,
		    NULL, LINK);
	if (q.dv_srq.tail != vec_num(v, "tail_after"))
		vec_fail(v, "the tail is WQE %u", q.dv_srq.tail);
	tally_add(&done, "SRQ, given back");
}

static void
one_post(unsigned int first, unsigned int n)
{
	static uint8_t before[MAX_LIST][MAX_STRIDE];
	struct ibv_sge sge[MAX_LIST][MAX_SGE];
	struct ibv_recv_wr wr[MAX_LIST] = {0};
	const struct vec *v = &all[first];
	unsigned int i, k, slot[MAX_LIST];

	fill(v, n);
	for (i = 0; i < n; i++) {
		const size_t stride = vec_num(v + i, "stride");
		const size_t from = q.srq != NULL ? LINK : 0;
		const size_t pieces = vec_array_len(v + i, "sge");

		if (i == 0 || !q.other_list)
			slot[i] = i == 0 ? next_slot() : behind(slot[i - 1]);
		if (!q.other_list) {
			if (slot[i] != vec_num(v + i, "slot"))
				vec_fail(v + i, "it goes to WQE %u", slot[i]);
			memset(q.ring + slot[i] * stride + from, FILL, stride - from);
			memcpy(before[i], q.ring + slot[i] * stride, stride);
		}
		assert_true(pieces <= MAX_SGE);
		for (k = 0; k < pieces; k++) {
			struct vec s = vec_at(v + i, "sge", k);

			sge[i][k].addr = vec_hex(&s, "addr");
			sge[i][k].length = (uint32_t)vec_num(&s, "length");
			sge[i][k].lkey = (uint32_t)vec_hex(&s, "lkey");
		}
		wr[i].sg_list = sge[i];
		wr[i].num_sge = (int)pieces;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	if (post(wr) != 0)
		vec_fail(v, "it is refused: %s", strerror(errno));
	for (i = 0; i < n; i++) {
		/* Now the links are written. */
		if (i > 0)
			slot[i] = behind(slot[i - 1]);
		q.out[q.outstanding++] = (uint8_t)slot[i];
		check_wqe(v + i, slot[i], q.other_list ? NULL : before[i]);
	}
	q.index = (uint16_t)vec_num(v + n - 1, "next_index");
	if (be32toh(*q.dbrec) != vec_hex(v + n - 1, "dbrec_after"))
		vec_fail(v, "doorbell record is 0x%x", be32toh(*q.dbrec));
}

static void
test_vectors(void **state)
{
	unsigned int n;

	(void)state;
	live.ethernet = true;
	live.qpn = 0x123;
	ctx = live_open();
	assert_non_null(ctx);
	golden_all("recv_wqe.jsonl", all, VECTORS);
	for (unsigned int i = 0; i < VECTORS; i += n) {
		json_t *list = json_object_get(all[i].obj, "list");

		n = list != NULL ? (unsigned int)json_integer_value(json_array_get(list, 1)) : 1;
		assert_true(n >= 1 && n <= MAX_LIST && i + n <= VECTORS);
		queue_for(&all[i]);
		if (vec_has(&all[i], "event"))
			check_free(&all[i]);
		else
			one_post(i, n);
	}
	tally_print(&done, "as recorded");
	tally_print(&differs, "differs, permitted");
	assert_int_equal(tally_get(&done, "RQ") + tally_get(&done, "SRQ") +
				 tally_get(&done, "SRQ, given back") +
				 tally_get(&differs, "SRQ, linked later"),
			 VECTORS);
}

int
main(void)
{
	return live_main("live_recv", test_vectors);
}
