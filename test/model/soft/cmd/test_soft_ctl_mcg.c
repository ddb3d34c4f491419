/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * ATTACH_TO_MCG and DETACH_FROM_MCG by mailboxes written by hand. Each wrong value is refused and
 * changes nothing; the limits are those of the capabilities.
 */
#include "soft_ctl_env.h"

#include <unistd.h>

#include "soft_shm_group.h"

#define MORE (SOFT_MAX_QP_MCG + 1)

static struct env env;
static const uint8_t group[16] = {0xff, 0x1e, [15] = 7};

static struct mlx5_obj *
ud_qp(uint32_t *qpn)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_SHORT];
	struct mlx5_obj *qp;

	env_qp_in(&env, in);
	bb_prm_set(in + ENV_QPC, BB_PRM_QPC_ST, BB_PRM_QP_ST_UD);
	OK(soft_cmd_if.obj_create(env.ctx, in, sizeof(in), out, sizeof(out), &qp));
	*qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	return qp;
}

static void
attach_in(uint8_t in[BB_PRM_SZ_MCG], uint32_t qpn, const uint8_t gid[16])
{
	memset(in, 0, BB_PRM_SZ_MCG);
	env_op(in, 0x806);
	bb_prm_set(in, BB_PRM_ATTACH_TO_MCG_QPN, qpn);
	memcpy(in + 16, gid, 16);
}

static int
attach(uint32_t qpn, const uint8_t gid[16], uint8_t *out, struct mlx5_obj **obj)
{
	uint8_t in[BB_PRM_SZ_MCG];

	attach_in(in, qpn, gid);
	memset(out, 0, BB_PRM_SZ_SHORT);
	env_log(&env);
	return soft_cmd_if.obj_create(env.ctx, in, sizeof(in), out, BB_PRM_SZ_SHORT, obj);
}

/* Returns the members of a group. */
static uint32_t
members(const uint8_t gid[16])
{
	const struct soft_mcg *g = soft_mcg_find(env.dev, gid);

	return g != NULL ? g->n : 0;
}

static int
setup(void **state)
{
	(void)state;
	env_open(&env, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	env_close(&env);
	return 0;
}

#define MCG_TEST(name) TEST_WITH(setup, teardown, name)

MCG_TEST(test_attached_qp_is_a_member_until_its_object_ends)
{
	uint8_t out[BB_PRM_SZ_SHORT], other[16];
	struct mlx5_obj *qp, *at, *more;
	uint32_t qpn;

	qp = ud_qp(&qpn);
	memcpy(other, group, sizeof(other));
	other[15] += SOFT_MCG_BUCKETS; /* the same bucket */
	assert_int_equal(soft_mcg_bucket(group), soft_mcg_bucket(other));
	assert_int_equal(attach(qpn, group, out, &at), 0);
	assert_int_equal(attach(qpn, other, out, &more), 0);
	assert_int_equal(members(group), 1);
	assert_int_equal(members(other), 1);
	/* The number is that of both objects, the GID is not: each ends its own attachment. */
	OK(soft_cmd_if.obj_destroy(at));
	assert_int_equal(members(group), 0);
	assert_int_equal(members(other), 1);
	assert_int_equal(soft_cmd_if.obj_destroy(qp), -EBUSY);
	assert_non_null(strstr(env_log(&env), "multicast group"));
	OK(soft_cmd_if.obj_destroy(more));
	OK(soft_cmd_if.obj_destroy(qp));
}

MCG_TEST(test_bad_attach_command_is_refused)
{
	uint8_t in[BB_PRM_SZ_MCG], out[BB_PRM_SZ_SHORT], gid[16] = {0xfe, 0x80, [15] = 1};
	struct mlx5_obj *qp, *at, *obj = NULL;
	uint32_t qpn, i;

	qp = ud_qp(&qpn);
	env_refused(&env, "unicast", attach(qpn, gid, out, &obj), out, BB_PRM_STAT_BAD_PARAM,
		    "not a multicast GID");
	soft_ip_map_v4(gid, (const uint8_t[]){223, 255, 255, 255});
	env_refused(&env, "IPv4", attach(qpn, gid, out, &obj), out, BB_PRM_STAT_BAD_PARAM,
		    "not a multicast GID");
	env_refused(&env, "no QP", attach(qpn ^ 1, group, out, &obj), out, BB_PRM_STAT_BAD_RES,
		    "does not exist");
	env_qp_to(&env, BB_PRM_QP_RST);
	env_refused(&env, "RC", attach(env.qpn, group, out, &obj), out, BB_PRM_STAT_BAD_PARAM,
		    "type UD");
	env_qp_gone(&env);
	assert_int_equal(attach(qpn, group, out, &at), 0);
	env_refused(&env, "twice", attach(qpn, group, out, &obj), out, BB_PRM_STAT_BAD_PARAM,
		    "already");
	for (i = 4; i < 16; i += 4) {
		attach_in(in, qpn, group);
		in[i == 4 ? 7 : i] |= i == 8 ? 0x80 : 1;
		env_log(&env);
		env_refused(&env, "reserved",
			    soft_cmd_if.obj_create(env.ctx, in, sizeof(in), out, 16, &obj), out,
			    BB_PRM_STAT_BAD_PARAM, "reserved");
	}
	attach_in(in, qpn, group);
	env_log(&env);
	env_refused(&env, "short", soft_cmd_if.obj_create(env.ctx, in, 28, out, 16, &obj), out,
		    BB_PRM_STAT_BAD_INP_LEN, "28 bytes");
	/* The kernel passes neither command on as a general one, nor the second at all. */
	assert_int_equal(soft_cmd_if.general(env.ctx, in, sizeof(in), out, 16), -EINVAL);
	env_op(in, 0x807);
	assert_int_equal(soft_cmd_if.obj_create(env.ctx, in, sizeof(in), out, 16, &obj), -EINVAL);
	assert_int_equal(soft_cmd_if.general(env.ctx, in, sizeof(in), out, 16), -EINVAL);
	assert_null(obj);
	assert_int_equal(members(group), 1);
	OK(soft_cmd_if.obj_destroy(at));
	OK(soft_cmd_if.obj_destroy(qp));
}

MCG_TEST(test_members_of_a_group_are_limited)
{
	struct mlx5_obj *qp[MORE], *at[MORE];
	uint8_t out[BB_PRM_SZ_SHORT];
	uint32_t qpn[MORE], i;

	for (i = 0; i < MORE; i++) {
		qp[i] = ud_qp(&qpn[i]);
		if (i < SOFT_MAX_QP_MCG)
			assert_int_equal(attach(qpn[i], group, out, &at[i]), 0);
	}
	i = SOFT_MAX_QP_MCG;
	env_refused(&env, "full", attach(qpn[i], group, out, &at[i]), out, BB_PRM_STAT_NO_RES,
		    "max_qp_mcg");
	/* One from the middle goes, and its place is free. */
	OK(soft_cmd_if.obj_destroy(at[5]));
	assert_int_equal(members(group), SOFT_MAX_QP_MCG - 1);
	assert_false(soft_mcg_has(soft_mcg_find(env.dev, group), env.dev->qps[qpn[5]]));
	assert_int_equal(attach(qpn[i], group, out, &at[5]), 0);
	for (i = 0; i < SOFT_MAX_QP_MCG; i++)
		OK(soft_cmd_if.obj_destroy(at[i]));
	assert_int_equal(members(group), 0);
	for (i = 0; i < MORE; i++)
		OK(soft_cmd_if.obj_destroy(qp[i]));
}

MCG_TEST(test_groups_of_a_device_are_limited)
{
	struct mlx5_obj *qp, *at[1 << SOFT_LOG_MAX_MCG], *obj;
	uint8_t out[BB_PRM_SZ_SHORT], gid[16];
	uint32_t qpn, i, round;

	qp = ud_qp(&qpn);
	memcpy(gid, group, sizeof(gid));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < RTE_DIM(at); i++) {
			gid[13] = (uint8_t)(i >> 3);
			gid[15] = (uint8_t)i;
			assert_int_equal(attach(qpn, gid, out, &at[i]), 0);
		}
		gid[2] = 1;
		env_refused(&env, "full", attach(qpn, gid, out, &obj), out, BB_PRM_STAT_NO_RES,
			    "groups are in use");
		gid[2] = 0;
		for (i = 0; i < RTE_DIM(at); i++)
			OK(soft_cmd_if.obj_destroy(at[i]));
	}
	OK(soft_cmd_if.obj_destroy(qp));
}

/* RFC 1112, 6.4 and RFC 2464, 7: of an IPv4 address only 23 bits count. */
MCG_TEST(test_macs_of_groups)
{
	static const struct {
		uint8_t gid[16], mac[6];
	} rows[] = {
		{{[10] = 0xff, 0xff, 239, 200, 1, 2}, {0x01, 0x00, 0x5e, 0x48, 1, 2}},
		{{[10] = 0xff, 0xff, 224, 0, 0, 251}, {0x01, 0x00, 0x5e, 0x00, 0, 251}},
		{{0xff, 0x02, [12] = 0xde, 0xad, 0xbe, 0xef}, {0x33, 0x33, 0xde, 0xad, 0xbe, 0xef}},
		{{0xff, 0x0e, [10] = 0xff, 0xff, 239, 200, 1, 2}, {0x33, 0x33, 239, 200, 1, 2}},
	};
	uint8_t mac[6];
	size_t i;

	for (i = 0; i < RTE_DIM(rows); i++) {
		assert_true(bb_roce_is_mcast(rows[i].gid));
		soft_mcast_mac(rows[i].gid, mac);
		assert_memory_equal(mac, rows[i].mac, sizeof(mac));
	}
}

/* ---- Groups of a fabric */

static uint32_t waits;

int
usleep(useconds_t us)
{
	assert_true(us <= SOFT_SHM_CAST_NS / 1000);
	waits++;
	return 0;
}

/*
 * An attach waits until each sender of the fabric knows the device, even if another QP attached to
 * the group shortly before.
 */
TEST(test_each_attach_waits_until_senders_know_the_device)
{
	struct mlx5_obj *qp[3], *at[3];
	uint8_t out[BB_PRM_SZ_SHORT];
	struct soft_mcg *g;
	char args[64];
	uint32_t i, qpn;

	snprintf(args, sizeof(args), "shm=mcg%d,ip=192.0.2.1/24", (int)getpid());
	env_open(&env, args);
	waits = 0;
	for (i = 0; i < 3; i++) {
		qp[i] = ud_qp(&qpn);
		OK(attach(qpn, group, out, &at[i]));
		g = (struct soft_mcg *)(uintptr_t)soft_mcg_find(env.dev, group);
		assert_int_equal(g->n, i + 1);
		if (i == 0)
			assert_true(g->known_at != 0);
		assert_int_equal(waits, i < 2);
		/* The second attach comes before the time, the third one after it. */
		g->known_at = i == 0 ? UINT64_MAX : 0;
		waits = 0;
	}
	while (i-- != 0) {
		OK(soft_cmd_if.obj_destroy(at[i]));
		OK(soft_cmd_if.obj_destroy(qp[i]));
	}
	env_close(&env);
}

TEST_MAIN(0)
