/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* MODIFY_CQ by mailboxes, and channels of completion events. */
#include "soft_ctl_env.h"

#include "bb_cqring.h"
#include "soft_cqe.h"
#include "soft_host.h"

#define NEW_AT 4096

struct bad {
	const char *what;
	enum bb_prm_status status;
	struct edit edit[2];
};

#define TOP(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_##name, 0, v                                                                \
	}
#define CQC(name, v)                                                                               \
	{                                                                                          \
		BB_PRM_CQC_##name, ENV_CQC, v                                                      \
	}

/* Fills a resize to 8 CQEs at NEW_AT that the device accepts. */
static void
resize_in(const struct env *env, uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN])
{
	memset(in, 0, BB_PRM_SZ_MODIFY_CQ_IN);
	env_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, BB_PRM_CQ_OP_MOD_RESIZE);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, 7);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 3);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, NEW_AT);
}

static int
modify(const struct env *env, const uint8_t *in, uint8_t *out)
{
	return soft_cmd_if.obj_modify(env->cq, in, BB_PRM_SZ_MODIFY_CQ_IN, out, BB_PRM_SZ_SHORT);
}

T(test_bad_resize_is_refused)
{
	static const struct bad bad[] = {
		{"op_mod", BB_PRM_STAT_BAD_PARAM, {TOP(CMD_OP_MOD, 2)}},
		{"size alone", BB_PRM_STAT_BAD_PARAM, {TOP(MODIFY_CQ_FIELD_SELECT, 1)}},
		{"select of more", BB_PRM_STAT_BAD_PARAM, {TOP(MODIFY_CQ_FIELD_SELECT, 15)}},
		{"too many CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_CQ_SIZE, 23)}},
		{"more than fit", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_CQ_SIZE, 11)}},
		{"128 byte CQEs", BB_PRM_STAT_BAD_PARAM, {CQC(CQE_SZ, 1)}},
		{"no umem", BB_PRM_STAT_BAD_RES, {TOP(CREATE_CQ_UMEM_ID, UINT32_MAX)}},
		{"off 64 bytes", BB_PRM_STAT_BAD_PARAM, {TOP(CREATE_CQ_UMEM_OFFSET, 32)}},
		{"past 2^64",
		 BB_PRM_STAT_BAD_PARAM,
		 {TOP(CREATE_CQ_UMEM_OFFSET, UINT64_C(0) - 64)}},
		{"pages above the umem's", BB_PRM_STAT_BAD_PARAM, {CQC(LOG_PAGE_SIZE, 1)}},
		{"a new UAR", BB_PRM_STAT_BAD_PARAM, {CQC(UAR_PAGE, 1)}},
		{"a new record", BB_PRM_STAT_BAD_PARAM, {CQC(DBR_ADDR, 64)}},
		{"moderation", BB_PRM_STAT_BAD_PARAM, {CQC(CQ_PERIOD, 1)}},
		{"period of nothing",
		 BB_PRM_STAT_BAD_PARAM,
		 {TOP(CMD_OP_MOD, 0), TOP(MODIFY_CQ_FIELD_SELECT, 3)}},
	};
	const struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct census before = env_census(env);
	size_t i, j;

	for (i = 0; i < RTE_DIM(bad); i++) {
		resize_in(env, in);
		for (j = 0; j < 2 && bad[i].edit[j].f.width != 0; j++)
			env_set(in, bad[i].edit[j]);
		env_refused(env, bad[i].what, modify(env, in, out), out, bad[i].status,
			    "MODIFY_CQ");
		env_same(bad[i].what, before, env_census(env));
		assert_int_equal(cq->log_size, ENV_CQ_LOG);
		assert_ptr_equal(cq->buf, env->mem + ENV_CQ_AT);
		assert_int_equal(cq->pi, 0);
	}
	resize_in(env, in);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->ro_umem->id);
	env_refused(env, "not writable", modify(env, in, out), out, BB_PRM_STAT_BAD_PARAM,
		    "MODIFY_CQ");
	/* The kernel refuses a mailbox whose number is not the handle's. */
	resize_in(env, in);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn + 1);
	assert_int_equal(modify(env, in, out), -EINVAL);
}

/* The old ring ends with a RESIZE CQE in the slot of the next CQE, with its owner bit. */
T(test_old_ring_ends_with_a_resize_cqe)
{
	struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN], out[BB_PRM_SZ_SHORT];
	uint32_t *rec = (uint32_t *)(void *)(env->mem + ENV_CQ_DB);

	/* 21 CQEs written, 18 consumed: second lap, slot 5. */
	cq->pi = 21;
	rec[0] = bb_be32(18);
	resize_in(env, in);
	assert_int_equal(modify(env, in, out), 0);
	assert_int_equal(env->mem[ENV_CQ_AT + 5 * 64 + 63], BB_CQE_RESIZE << 4 | 1);
	assert_int_equal(cq->pi, 22);
	assert_int_equal(cq->log_size, 3);
	assert_ptr_equal(cq->buf, env->mem + NEW_AT);
	/* Three unread CQEs and the RESIZE CQE need 4 slots: 2 are refused, 4 are accepted. */
	rec[0] = bb_be32(19);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 1);
	env_log(env);
	env_refused(env, "too small", modify(env, in, out), out, BB_PRM_STAT_BAD_SIZE_OUTS_CQES,
		    "MODIFY_CQ");
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 2);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ENV_CQ_AT);
	assert_int_equal(modify(env, in, out), 0);
	/* The ring is full: no slot for the RESIZE CQE. */
	rec[0] = bb_be32(cq->pi - 4);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_LOG_CQ_SIZE, 3);
	env_log(env);
	env_refused(env, "full", modify(env, in, out), out, BB_PRM_STAT_BAD_SIZE_OUTS_CQES,
		    "MODIFY_CQ");
	cq->error = true;
	env_log(env);
	env_refused(env, "dead", modify(env, in, out), out, BB_PRM_STAT_BAD_RES_STATE, "MODIFY_CQ");
}

T(test_moderation_values_are_checked)
{
	const struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT];
	static const uint32_t bad[] = {0, 4, 1 << 4, 7};
	size_t i;

	env_op(in, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_PERIOD, 40);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_MAX_COUNT, 9);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ENV_CQ_AT);
	for (i = 0; i < RTE_DIM(bad); i++) {
		bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, bad[i]);
		env_log(env);
		env_refused(env, "select", modify(env, in, out), out, BB_PRM_STAT_BAD_PARAM,
			    "MODIFY_CQ");
		assert_true(cq->mod_count == 0 && cq->mod_period == 0);
	}
	/* Each field is applied only with its bit. */
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, BB_PRM_CQ_MODIFY_PERIOD);
	assert_int_equal(modify(env, in, out), 0);
	assert_true(cq->mod_count == 0 && cq->mod_period == 40);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_PERIOD, 0);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, BB_PRM_CQ_MODIFY_COUNT);
	assert_int_equal(modify(env, in, out), 0);
	assert_true(cq->mod_count == 9 && cq->mod_period == 40);
}

/*
 * The kernel sets cq_umem_valid in every MODIFY_CQ. A command that names no ring, or another
 * ring, is refused, and the CQ stays as it is, before and after a resize.
 */
T(test_moderate_without_the_cqs_ring_is_refused)
{
	const struct soft_cq *cq = env->dev->cqs[env->cqn];
	const struct {
		uint32_t umem;
		uint64_t offset;
	} bad[] = {
		{0, 0},
		{UINT32_MAX, ENV_CQ_AT},
		{env->ro_umem->id, ENV_CQ_AT},
		{env->umem->id, ENV_CQ_AT + 64},
		{env->umem->id, UINT64_MAX},
	};
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN], out[BB_PRM_SZ_SHORT];
	size_t i;
	int moved;

	for (moved = 0; moved < 2; moved++) {
		if (moved) {
			resize_in(env, in);
			assert_int_equal(modify(env, in, out), 0);
		}
		memset(in, 0, sizeof(in));
		env_op(in, BB_PRM_OP_MODIFY_CQ);
		bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, env->cqn);
		bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, BB_PRM_CQ_MODIFY_COUNT);
		bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQ_MAX_COUNT, 9 + (uint32_t)moved);
		for (i = 0; i < RTE_DIM(bad) + (size_t)moved; i++) {
			bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID,
				   i < RTE_DIM(bad) ? bad[i].umem : env->umem->id);
			/* The last one names the ring before the resize. */
			bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET,
				     i < RTE_DIM(bad) ? bad[i].offset : ENV_CQ_AT);
			env_log(env);
			env_refused(env, "ring", modify(env, in, out), out, BB_PRM_STAT_BAD_PARAM,
				    "MODIFY_CQ");
			assert_int_equal(cq->mod_count, moved ? 9 : 0);
		}
		bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, env->umem->id);
		bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, moved ? NEW_AT : ENV_CQ_AT);
		assert_int_equal(modify(env, in, out), 0);
		assert_int_equal(cq->mod_count, 9 + moved);
	}
}

/* Rings a CQ's arm register on @page of @uar, with @word in the record, and polls the device. */
static void
arm_at(struct env *env, struct mlx5_uar *uar, uint8_t *page, uint32_t cqn, uint32_t word)
{
	uint32_t *rec = (uint32_t *)(void *)(env->mem + ENV_CQ_DB);
	void (*run)(void *);
	void *arg;

	rec[1] = bb_be32(word);
	*(uint64_t *)(void *)(page + SOFT_ARM_OFFSET) = bb_be64((uint64_t)word << 32 | cqn);
	soft_cmd_if.progress_of(env->ctx, uar, &run, &arg);
	run(arg);
}

static void
arm(struct env *env, uint8_t *page, uint32_t cqn, uint32_t word)
{
	arm_at(env, env->uar, page, cqn, word);
}

T(test_armed_cq_raises_its_event)
{
	struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t *page = env->uar->base_addr;
	struct mlx5_channel *ch;
	struct mlx5_uar *other;
	uint64_t cookie = 0;

	OK(soft_cmd_if.channel_create(env->ctx, &ch));
	OK(soft_cmd_if.channel_subscribe(ch, env->cq, 0xc00c1e));
	cq->pi = 5;
	/* Arming through another page than the CQ's is refused. */
	OK(soft_cmd_if.uar_alloc(env->ctx, MLX5_UAR_NC, &other));
	env_log(env);
	arm_at(env, other, other->base_addr, env->cqn, 4);
	assert_non_null(strstr(env_log(env), "arm the CQ there"));
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	OK(soft_cmd_if.uar_free(env->ctx, other));
	/* No CQE after index 5. */
	arm(env, page, env->cqn, 5);
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	/*
	 * One CQE after index 4, with the previous arming number: that arming raised no event
	 * yet.
	 */
	arm(env, page, env->cqn, 4);
	OK(soft_cmd_if.channel_get(ch, &cookie));
	assert_int_equal(cookie, 0xc00c1e);
	/* An event was raised for that number: a late duplicate of the arming is ignored. */
	arm(env, page, env->cqn, 3);
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	/* The next number arms again; two events that are not read count as one. */
	arm(env, page, env->cqn, 1u << 28 | 3);
	arm(env, page, env->cqn, 2u << 28 | 3);
	OK(soft_cmd_if.channel_get(ch, &cookie));
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	/* Reserved bits, and an index past the ring. */
	env_log(env);
	arm(env, page, env->cqn, 3u << 28 | 1u << 26 | 3);
	assert_non_null(strstr(env_log(env), "reserved"));
	arm(env, page, env->cqn, 3u << 28 | 6);
	assert_non_null(strstr(env_log(env), "outside the ring"));
	/* A number of no CQ. */
	arm(env, page, 0xffffff, 3u << 28 | 3);
	assert_non_null(strstr(env_log(env), "CQ 0xffffff does not exist"));
	OK(soft_cmd_if.channel_get(ch, &cookie)); /* the scan found the record */
	/* The record alone has no effect. */
	((uint32_t *)(void *)(env->mem + ENV_CQ_DB))[1] = bb_be32(3);
	arm(env, page + 0x100, env->cqn, 3);
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	assert_int_equal(soft_cmd_if.close(env->ctx), -EBUSY);
	OK(soft_cmd_if.channel_destroy(env->ctx, ch));
}

static int
mmap_setup(void **state)
{
	struct env *env = malloc(sizeof(*env));

	assert_non_null(env);
	env_open(env, "mmap=1");
	*state = env;
	return 0;
}

/*
 * The first request of libmlx5 has the value 0, as the record before it. Here the request of
 * another CQ has replaced its store to the register.
 */
TEST_AS(mmap_setup, env_teardown, NULL, struct env, env, test_hidden_first_arm_request_is_found)
{
	struct soft_cq *cq = env->dev->cqs[env->cqn];
	struct mlx5_channel *ch;
	uint64_t cookie = 0;

	OK(soft_cmd_if.channel_create(env->ctx, &ch));
	OK(soft_cmd_if.channel_subscribe(ch, env->cq, 0xc00c1e));
	cq->pi = 1;
	arm(env, env->uar->base_addr, 0xffffff, 0);
	OK(soft_cmd_if.channel_get(ch, &cookie));
	assert_int_equal(cookie, 0xc00c1e);
	OK(soft_cmd_if.channel_destroy(env->ctx, ch));
}

/* Linux 7.2 reports an event of a CQ whose record has still the first of these values. */
TEST_AS(mmap_setup, env_teardown, NULL, struct env, env, test_initial_record_is_no_arm_request)
{
	static const uint32_t initial[] = {2u << 28, BB_CQ_ARM_NONE};
	struct mlx5_channel *ch;
	uint64_t cookie = 0;
	unsigned int i;

	OK(soft_cmd_if.channel_create(env->ctx, &ch));
	OK(soft_cmd_if.channel_subscribe(ch, env->cq, 0xc00c1e));
	env->dev->cqs[env->cqn]->pi = 1;
	for (i = 0; i < RTE_DIM(initial); i++) {
		arm(env, env->uar->base_addr, 0xffffff, initial[i]);
		assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	}
	arm(env, env->uar->base_addr, 0xffffff, 0);
	OK(soft_cmd_if.channel_get(ch, &cookie));
	OK(soft_cmd_if.channel_destroy(env->ctx, ch));
}

/* A CQ that is only polled, beside one that is armed. Its record of 0 is no request. */
TEST_AS(mmap_setup, env_teardown, NULL, struct env, env,
	test_record_of_a_cq_never_armed_logs_nothing)
{
	env->dev->cqs[env->cqn]->pi = (1 << ENV_CQ_LOG) + 1;
	env_log(env);
	arm(env, env->uar->base_addr, 0xffffff, 0);
	assert_null(strstr(env_log(env), "invalid arm record"));
	/* The program writes a bad record later. */
	arm(env, env->uar->base_addr, 0xffffff, 1u << 26);
	assert_non_null(strstr(env_log(env), "invalid arm record"));
}

/* Solicited-only counts solicited CQEs and errors after the index. */
T(test_solicited_arming_counts_errors_too)
{
	struct soft_cq *cq = env->dev->cqs[env->cqn];
	uint8_t *page = env->uar->base_addr;
	struct mlx5_channel *ch;
	uint64_t cookie;

	OK(soft_cmd_if.channel_create(env->ctx, &ch));
	OK(soft_cmd_if.channel_subscribe(ch, env->cq, 1));
	cq->pi = 0x1000003;
	cq->sol_pi = 0x1000001;
	arm(env, page, env->cqn, 1u << 24 | 1);
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	/* The index is before the wrap of its 24 bits. */
	arm(env, page, env->cqn, 1u << 24 | 0xfffffe);
	OK(soft_cmd_if.channel_get(ch, &cookie));
	/* The last solicited CQE is more than 2^31 CQEs old. */
	cq->pi = 0x90000003;
	cq->sol_pi = 0;
	arm(env, page, env->cqn, 1u << 28 | 1u << 24 | 1);
	assert_int_equal(soft_cmd_if.channel_get(ch, &cookie), -EAGAIN);
	OK(soft_cmd_if.channel_destroy(env->ctx, ch));
}

/* A queue outside the device completes while no doorbell makes the device read the clock. */
T(test_cqe_of_an_outside_queue_has_the_time_of_its_write)
{
	const struct bb_cqe *ring = (const struct bb_cqe *)(const void *)(env->mem + ENV_CQ_AT);
	struct bb_cqe cqe = {.op_own = BB_CQE_RESP_SEND << 4};
	uint64_t before;

	arm(env, env->uar->base_addr, env->cqn, 0);
	before = rte_rdtsc();
	OK(soft_cqe_host(env->ctx, env->cqn, (const uint8_t *)&cqe));
	assert_true(bb_be64(ring->timestamp) >= before);
}

/*
 * CQEs that may share a compressed block: receives of one queue with consecutive WQE counters,
 * because a block has only the first counter. Counters of a shared receive queue need not be
 * consecutive.
 */
T(test_alike_receives_share_a_block)
{
	static const struct {
		uint32_t qpn, user;
		uint16_t counter;
	} done[] = {{7, 1, 65535}, {7, 1, 0}, {7, 1, 1}, {7, 1, 3}, {7, 1, 4},
		    {8, 1, 5},     {8, 1, 6}, {8, 2, 7}, {8, 2, 9}, {8, 2, 8}};
	static const uint8_t blocks[] = {3, 2, 2, 1, 1, 1};
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN], out[BB_PRM_SZ_SHORT];
	struct soft_engine *e;
	struct bb_cqring ring;
	struct mlx5_obj *obj;
	struct soft_cq *cq;
	uint32_t i, k, n;

	OK(bb_cqring_init(&ring, env->mem + NEW_AT, ENV_CQ_LOG,
			  (uint32_t *)(void *)(env->mem + ENV_CQ_DB + 8)));
	ring.compress = 1;
	env_cq_in(env, in);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, NEW_AT);
	bb_prm_set64(in + ENV_CQC, BB_PRM_CQC_DBR_ADDR, ENV_CQ_DB + 8);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_CQE_COMP_EN, 1);
	bb_prm_set(in + ENV_CQC, BB_PRM_CQC_MINI_CQE_RES_FORMAT, BB_PRM_CQ_MINI_CSUM);
	OK(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, sizeof(out), &obj));
	cq = env->dev->cqs[bb_prm_get(out, BB_PRM_CREATE_CQ_OUT_CQN)];
	e = cq->uar->engine;
	soft_engine_lock(e);
	for (i = 0; i < RTE_DIM(done); i++) {
		const struct soft_cqe_parts c = {
			.w4 = bb_be32(done[i].user),
			.w5 = soft_pair(0, bb_be32(100 + i)),
			.op_flags = BB_CQE_RESP_SEND << 4,
			.counter = done[i].counter,
		};

		assert_true(soft_zip_take(e, done[i].qpn, cq, &c));
	}
	soft_zip_run(e);
	soft_engine_unlock(e);
	for (i = 0, k = 0; k < RTE_DIM(blocks); k++) {
		struct bb_cqe *cqe = bb_cqring_peek(&ring);

		assert_non_null(cqe);
		assert_int_equal(bb_cqe_is_compressed(cqe), blocks[k] > 1);
		if (blocks[k] > 1) {
			assert_int_equal(bb_be32(cqe->byte_cnt), blocks[k]);
			OK(bb_cqring_expand(&ring, cqe));
		}
		for (n = 0; n < blocks[k]; n++, i++, ring.ci++) {
			cqe = bb_cqring_peek(&ring);
			assert_non_null(cqe);
			assert_int_equal(bb_be16(cqe->wqe_counter), done[i].counter);
			assert_int_equal(bb_be32(cqe->srqn_uidx), done[i].user);
			assert_int_equal(bb_be32(cqe->sop_qpn), done[i].qpn);
			assert_int_equal(bb_be32(cqe->byte_cnt), 100 + i);
		}
	}
	assert_int_equal(i, RTE_DIM(done));
	assert_null(bb_cqring_peek(&ring));
	OK(soft_cmd_if.obj_destroy(obj));
}

T(test_bad_subscription_is_refused)
{
	struct mlx5_ctx *other;
	struct mlx5_channel *ch;

	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.channel_create(other, &ch));
	assert_int_equal(soft_cmd_if.channel_subscribe(ch, env->cq, 1), -EINVAL);
	assert_int_equal(soft_cmd_if.channel_destroy(env->ctx, ch), -EINVAL);
	OK(soft_cmd_if.channel_destroy(other, ch));
	OK(soft_cmd_if.close(other));
}

TEST_MAIN(0)
