/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opening devices, their options, UAR pages, and the network that they share. */
#include "soft_ctl_env.h"

#include <unistd.h>

/* Captures the log; opens no device. */
static int
log_setup(void **state)
{
	struct env *env = calloc(1, sizeof(*env));

	assert_non_null(env);
	env_log_open(env);
	*state = env;
	return 0;
}

static int
log_teardown(void **state)
{
	env_log_close(*state);
	free(*state);
	return 0;
}

TEST(test_soft_devices_are_listed)
{
	struct bb_dev_info info[2];

	memset(info, 0xee, sizeof(info));
	assert_int_equal(soft_cmd_if.list(NULL, 0), 1);
	assert_int_equal(soft_cmd_if.list(info, 0), 1);
	assert_int_equal((uint8_t)info[0].name[0], 0xee);
	assert_int_equal(soft_cmd_if.list(info, 2), 1);
	assert_string_equal(info[0].name, "soft0");
	assert_string_equal(info[0].driver, "mlx5");
	assert_string_equal(info[0].bus, "");
	assert_int_equal((uint8_t)info[1].name[0], 0xee);
}

TEST_WITH(log_setup, log_teardown, test_unknown_names_are_refused)
{
	static const char *const bad[] = {"soft16", "soft",   "soft00", "soft01",      "soft-1",
					  "soft0x", "mlx5_0", "",       "0000:3b:00.0"};
	struct mlx5_ctx *ctx[SOFT_MAX_DEVS], *none = NULL;
	char name[16];
	uint32_t i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(soft_cmd_if.open(bad[i], NULL, &none), -ENODEV);
		assert_null(none);
	}
	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		snprintf(name, sizeof(name), "soft%u", i);
		OK(soft_cmd_if.open(name, "", &ctx[i]));
		assert_string_equal(ctx[i]->name, name);
		assert_ptr_equal(ctx[i]->cmd, &soft_cmd_if);
	}
	for (i = 0; i < SOFT_MAX_DEVS; i++)
		OK(soft_cmd_if.close(ctx[i]));
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_bad_options_are_refused)
{
	static const char *const bad[] = {
		"colour=red",
		"progress=fast",
		"progress",
		"progress=lcore",
		"lcore=0",
		"progress=inline,lcore=1",
		"progress=lcore,lcore=-1",
		"progress=lcore,lcore=x",
		"progress=lcore,lcore=",
		"shuffle=2",
		"shuffle=yes",
		"scan=0",
		"scan=65537",
		"scan=4k",
		"seed=18446744073709551616",
		"seed=-1",
		"link=eth0",
		"link=",
		"grh_required",
		"link=ib,grh_required=2",
		"log_max_msg=32",
		"log_max_msg=",
		"no_atomic=maybe",
		"no_bf=2",
		"bf_copy",
		"bf_copy=",
		"bf_copy=plain0123456789ab",
		"defect",
#ifdef SOFT_SEEDED
		"defect=sneeze",
		"defect=999",
		"defect=-1",
		"defect=",
		"wire=1,defect=tear",
		"defect=psn_wrap,wire=1",
		"shm=fabric,ip=192.0.2.1/24,defect=early_cqe",
#endif
		"wire=1,fault=qp_fatal:1",
		"fault=cq_error:1,wire=1",
		"shm=fabric,ip=192.0.2.1/24,fault=dev_fatal:1",
		"port=net_ring_no,ip=192.0.2.1/24,fault=port_down:1",
		"fault=",
		"fault=dev_fatal",
		"fault=dev_fatal:0",
		"fault=meteorite:1",
		"fault=port_down:1x",
		"uar_share=2",
		"dm=0",
		"dm=4095",
		"dm=33554432",
		"dm",
		"no_dm=x",
		"dmabuf",
		"dmabuf=file",
		"no_dmabuf=2",
		"=",
		"seed=1=2",
		",,nothing",
	};
	struct mlx5_ctx *ctx = NULL;
	const char *log;
	size_t i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		if (soft_cmd_if.open("soft0", bad[i], &ctx) != -EINVAL)
			fail_msg("\"%s\" was not refused", bad[i]);
		assert_null(ctx);
		log = env_log(env);
		if (strstr(log, "soft0") == NULL ||
		    (strstr(log, "(valid: ") == NULL && strstr(log, "the options are: ") == NULL &&
		     strstr(log, " needs ") == NULL && strstr(log, " exclude") == NULL &&
		     strstr(log, "leave out") == NULL))
			fail_msg("\"%s\": no help in the log: %s", bad[i], log);
	}
	/* The refused open left no state. */
	OK(soft_cmd_if.open("soft0", NULL, &ctx));
	assert_int_equal(soft_ctx(ctx)->dev->opts.scan, 16);
	OK(soft_cmd_if.close(ctx));
}

TEST_WITH(log_setup, log_teardown, test_invalid_value_logs_the_syntax_of_its_option)
{
	static const char *const cases[][2] = {
		{"scan=0", "(valid: scan=1..65536)"},
		{"link=token", "(valid: link=eth|ib)"},
		{"no_bf=2", "(valid: no_bf=0|1)"},
		{"no_umr=2", "(valid: no_umr=0|1)"},
		{"no_umr_atomic=2", "(valid: no_umr_atomic=0|1)"},
		{"lcore=x", "(valid: lcore=N)"},
		{"dm=1", "(valid: dm=BYTES (a multiple of 4096 up to 16 MiB))"},
		{"wire=1,rx_full=x", "(valid: rx_full=PACKETS[:MS])"},
		{"wire=1,tx_ecn=x", "(valid: tx_ecn=PERCENT)"},
	};
	struct soft_opts opts;
	const char *log;
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		soft_opts_default(&opts);
		assert_int_equal(soft_opts_parse("soft0", cases[i][0], &opts), -EINVAL);
		log = env_log(*state);
		if (strstr(log, cases[i][1]) == NULL)
			fail_msg("\"%s\" logs: %s", cases[i][0], log);
	}
}

TEST_WITH(log_setup, log_teardown, test_defects_need_their_build)
{
#ifdef SOFT_SEEDED
	const uint32_t flip_bit = SOFT_DEFECT_FLIP_BIT, rnr_lost = SOFT_DEFECT_RNR_LOST;
	const int taken = 0;
#else
	const uint32_t flip_bit = SOFT_DEFECT_NONE, rnr_lost = SOFT_DEFECT_NONE;
	const int taken = -ENOTSUP;
#endif
	struct soft_opts opts;

	soft_opts_default(&opts);
	assert_int_equal(soft_opts_parse("soft0", "defect=flip_bit", &opts), taken);
	assert_int_equal(soft_opts_defect(&opts), flip_bit);
	assert_int_equal(soft_opts_parse("soft0", "defect=none", &opts), 0);
	assert_int_equal(soft_opts_defect(&opts), SOFT_DEFECT_NONE);
	assert_int_equal(soft_opts_parse("soft0", "defect=rnr_lost", &opts), taken);
	assert_int_equal(soft_opts_defect(&opts), rnr_lost);
	assert_int_equal(soft_opts_parse("soft0", "defect=0", &opts), 0);
	assert_int_equal(soft_opts_defect(&opts), SOFT_DEFECT_NONE);
	assert_int_equal(soft_opts_parse("soft0", "wire=1,defect=1", &opts), taken);
	assert_int_equal(soft_opts_defect(&opts), flip_bit);
}

TEST_WITH(log_setup, log_teardown, test_options_take_effect)
{
	struct soft_opts opts;

	soft_opts_default(&opts);
	assert_int_equal(opts.progress, SOFT_PROGRESS_INLINE);
	assert_int_equal(opts.log_max_msg, 30);
	assert_int_equal(
		soft_opts_parse("soft0",
				"progress=lcore,lcore=3,shuffle=1,scan=65536,seed=0x10,"
				"link=ib,grh_required,log_max_msg=0,uar_share,no_atomic,no_bf=1,"
				"no_counters,no_devx=0,dm=0x2000,"
				"no_dm,dmabuf=memfd,no_dmabuf",
				&opts),
		0);
	assert_int_equal(opts.progress, SOFT_PROGRESS_LCORE);
	assert_int_equal(opts.lcore, 3);
	assert_true(opts.shuffle);
	assert_int_equal(opts.scan, 65536);
	assert_int_equal(opts.seed, 16);
	assert_true(opts.link_ib && opts.grh_required);
	assert_int_equal(opts.log_max_msg, 0);
	assert_true(opts.uar_share && opts.no_atomic && opts.no_bf && opts.no_counters);
	assert_false(opts.no_devx);
	assert_true(opts.no_dm && opts.no_dmabuf && opts.dmabuf_memfd);
	assert_int_equal(opts.dm, 0x2000);
	assert_int_equal(soft_opts_parse("soft0", "fault=cq_error:7", &opts), 0);
	assert_int_equal(opts.fault, SOFT_FAULT_CQ_ERROR);
	assert_int_equal(opts.fault_at, 7);
	/* A refused string changes no option, not even by its valid half. */
	assert_int_equal(soft_opts_parse("soft0", "scan=7,link=sand", &opts), -EINVAL);
	assert_int_equal(opts.scan, 65536);
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_device_without_devx_is_refused)
{
	struct mlx5_ctx *ctx = NULL;

	assert_int_equal(soft_cmd_if.open("soft0", "no_devx", &ctx), -EOPNOTSUPP);
	assert_null(ctx);
	assert_non_null(strstr(env_log(env), "no DEVX"));
	OK(soft_cmd_if.open("soft0", NULL, &ctx));
	OK(soft_cmd_if.close(ctx));
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_unknown_ethdev_is_refused)
{
	struct mlx5_ctx *ctx = NULL;

	env_log(env);
	assert_int_equal(soft_cmd_if.open("soft0", "port=net_ring0,ip=192.0.2.1/24", &ctx),
			 -EINVAL);
	assert_non_null(strstr(env_log(env), "there is no such ethdev"));
	assert_null(ctx);
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_second_open_shares_the_device)
{
	struct mlx5_ctx *a, *b, *c = NULL;

	OK(soft_cmd_if.open("soft0", "scan=8,seed=3", &a));
	/* An open without options, or with the same options, shares the device. */
	OK(soft_cmd_if.open("soft0", NULL, &b));
	assert_ptr_equal(soft_ctx(a)->dev, soft_ctx(b)->dev);
	OK(soft_cmd_if.close(b));
	OK(soft_cmd_if.open("soft0", "seed=3", &b));
	env_log(env);
	assert_int_equal(soft_cmd_if.open("soft0", "seed=4", &c), -EBUSY);
	assert_int_equal(soft_cmd_if.open("soft0", "no_devx", &c), -EBUSY);
	assert_int_equal(soft_cmd_if.open("soft0", "link=ib", &c), -EBUSY);
	assert_non_null(strstr(env_log(env), "already open with other options"));
	assert_null(c);
	/* Another device may have other options. */
	OK(soft_cmd_if.open("soft1", "seed=4", &c));
	OK(soft_cmd_if.close(c));
	OK(soft_cmd_if.close(a));
	assert_int_equal(soft_cmd_if.open("soft0", "seed=4", &c), -EBUSY);
	OK(soft_cmd_if.close(b));
	/* After the last close the next open starts with new options. */
	OK(soft_cmd_if.open("soft0", "seed=4", &a));
	assert_int_equal(soft_ctx(a)->dev->opts.scan, 16);
	OK(soft_cmd_if.close(a));
}

/* Each option that may be given alone. */
TEST_WITH(log_setup, log_teardown, test_second_open_with_any_other_option_is_busy)
{
	static const char *const other[] = {
		"nap=100",          "mmap",
		"shuffle",          "scan=8",
		"log_max_msg=7",    "uar_share",
		"no_atomic",        "no_bf",
		"no_ext_atomic",    "bf_copy=none",
		"no_counters",      "no_clock",
		"no_compress",      "no_cq_resize",
		"no_cq_moderation", "no_dm",
		"dm=8192",          "no_dmabuf",
		"dmabuf=memfd",     "no_srq",
		"no_mkey",          "no_ksm",
		"no_umr",           "no_umr_atomic",
		"no_interleaved",   "no_mw",
		"no_odp",           "no_relaxed",
		"log_max_mkey=5",   "wire",
		"window=9",         "no_keep",
		"capture_max=1",    "fault=port_down:7",
	};
	struct mlx5_ctx *a, *b = NULL;

	OK(soft_cmd_if.open("soft0", NULL, &a));
	for (uint32_t i = 0; i < RTE_DIM(other); i++) {
		if (soft_cmd_if.open("soft0", other[i], &b) != -EBUSY)
			fail_msg("%s", other[i]);
	}
	OK(soft_cmd_if.close(a));
}

/* Without EAL there are no lcores; the device's thread is then one of the process. */
TEST_WITH(log_setup, log_teardown, test_progress_without_eal_needs_no_lcore)
{
	void (*fn)(void *arg) = NULL;
	struct mlx5_ctx *ctx = NULL;
	struct mlx5_uar *uar;
	void *arg = NULL;

	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=1", &ctx), -EINVAL);
	assert_null(ctx);

	OK(soft_cmd_if.open("soft0", "progress=thread,nap=1000", &ctx));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &uar));
	soft_cmd_if.progress_of(ctx, uar, &fn, &arg);
	assert_null(fn);
	soft_assist(ctx);
	OK(soft_cmd_if.uar_free(ctx, uar));
	OK(soft_cmd_if.close(ctx));

	OK(soft_cmd_if.open("soft0", NULL, &ctx));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &uar));
	soft_cmd_if.progress_of(ctx, uar, &fn, &arg);
	assert_ptr_equal(fn, soft_engine_progress);
	fn(arg);
	OK(soft_cmd_if.uar_free(ctx, uar));
	OK(soft_cmd_if.close(ctx));
}

T(test_uar_pages_are_given_and_taken_back)
{
	struct mlx5_uar *uar[3];
	uint32_t i, j;

	for (i = 0; i < 3; i++) {
		OK(soft_cmd_if.uar_alloc(env->ctx, i == 2 ? MLX5_UAR_NC : MLX5_UAR_BF, &uar[i]));
		assert_int_equal((uintptr_t)uar[i]->base_addr % SOFT_UAR_PAGE, 0);
		assert_ptr_equal(uar[i]->reg_addr, uar[i]->base_addr + 0x800);
		for (j = 0; j < SOFT_UAR_PAGE; j++)
			assert_int_equal(uar[i]->base_addr[j], 0);
		for (j = 0; j < i; j++)
			assert_int_not_equal(uar[i]->page_id, uar[j]->page_id);
	}
	for (i = 0; i < 3; i++)
		OK(soft_cmd_if.uar_free(env->ctx, uar[i]));
}

/* Two registers of a page, as mlx5dv_devx_alloc_uar() allocates them. */
TEST(test_two_registers_share_a_page)
{
	struct mlx5_ctx *ctx, *other;
	struct mlx5_uar *a, *b, *c, *nc, *theirs;
	void (*fn_a)(void *), (*fn_b)(void *);
	void *arg_a, *arg_b;

	OK(soft_cmd_if.open("soft0", "uar_share", &ctx));
	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &a));
	OK(soft_cmd_if.uar_alloc(other, MLX5_UAR_BF, &theirs));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_NC, &nc));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &b));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &c));
	assert_int_equal(a->page_id, b->page_id);
	assert_ptr_equal(a->base_addr, b->base_addr);
	assert_ptr_equal(a->reg_addr, a->base_addr + 0x800);
	assert_ptr_equal(b->reg_addr, a->base_addr + 0xa00);
	assert_int_not_equal(c->page_id, a->page_id);
	assert_int_not_equal(nc->page_id, a->page_id);
	assert_int_not_equal(nc->page_id, c->page_id);
	assert_int_not_equal(theirs->page_id, a->page_id);
	assert_int_not_equal(theirs->page_id, c->page_id);
	soft_cmd_if.progress_of(ctx, a, &fn_a, &arg_a);
	soft_cmd_if.progress_of(ctx, b, &fn_b, &arg_b);
	assert_ptr_equal(arg_a, arg_b);
	/* A freed register is allocated again, at its former offset. */
	OK(soft_cmd_if.uar_free(ctx, c));
	OK(soft_cmd_if.uar_free(ctx, a));
	OK(soft_cmd_if.uar_alloc(ctx, MLX5_UAR_BF, &a));
	assert_int_equal(a->page_id, b->page_id);
	assert_ptr_equal(a->reg_addr, b->base_addr + 0x800);
	OK(soft_cmd_if.uar_free(ctx, a));
	OK(soft_cmd_if.uar_free(ctx, b));
	OK(soft_cmd_if.uar_free(ctx, nc));
	OK(soft_cmd_if.uar_free(other, theirs));
	OK(soft_cmd_if.close(other));
	OK(soft_cmd_if.close(ctx));
}

T(test_port_reports_its_attributes)
{
	struct mlx5_port port;
	struct mlx5_ctx *ib;
	struct bb_gid gid;

	OK(soft_cmd_if.port_query(env->ctx, 1, &port));
	assert_int_equal(port.state, BB_PORT_ACTIVE);
	assert_int_equal(port.link_layer, BB_LINK_ETHERNET);
	assert_int_equal(port.max_mtu, 4096);
	assert_int_equal(port.active_mtu, 4096);
	assert_int_equal(port.lid, 0);
	assert_int_equal(port.gids, SOFT_MAX_GIDS);
	assert_int_equal(soft_cmd_if.port_query(env->ctx, 0, &port), -EINVAL);
	assert_int_equal(soft_cmd_if.port_query(env->ctx, 2, &port), -EINVAL);
	assert_int_equal(soft_cmd_if.gid_query(env->ctx, 2, 0, &gid), -EINVAL);
	assert_int_equal(soft_cmd_if.gid_query(env->ctx, 1, SOFT_MAX_GIDS, &gid), -EINVAL);

	OK(soft_cmd_if.open("soft3", "link=ib", &ib));
	OK(soft_cmd_if.port_query(ib, 1, &port));
	assert_int_equal(port.link_layer, BB_LINK_INFINIBAND);
	assert_int_equal(port.lid, 4);
	OK(soft_cmd_if.gid_query(ib, 1, 0, &gid));
	assert_int_equal(gid.type, BB_GID_IB);
	assert_int_equal(soft_cmd_if.gid_query(ib, 1, 1, &gid), -ENOENT);
	OK(soft_cmd_if.close(ib));
}

T(test_gids_are_of_both_types)
{
	static const uint8_t local[16] = {0xfe, 0x80, [9] = 0xbb, [11] = 0xff, 0xfe};
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
	const struct {
		const uint8_t *raw;
		enum bb_gid_type type;
	} want[] = {
		{local, BB_GID_ROCE_V1},
		{local, BB_GID_ROCE_V2},
		{ipv4, BB_GID_ROCE_V1},
		{ipv4, BB_GID_ROCE_V2},
	};
	struct bb_gid gid;
	uint32_t i;

	for (i = 0; i < SOFT_MAX_GIDS; i++) {
		if (i >= RTE_DIM(want)) {
			assert_int_equal(soft_cmd_if.gid_query(env->ctx, 1, i, &gid), -ENOENT);
			continue;
		}
		OK(soft_cmd_if.gid_query(env->ctx, 1, i, &gid));
		assert_memory_equal(gid.raw, want[i].raw, 16);
		assert_int_equal(gid.type, want[i].type);
	}
}

T(test_known_gids_resolve_to_an_address)
{
	static const struct {
		uint8_t dgid[16];
		uint32_t port, index;
		int ret;
		uint8_t mac[6];
	} cases[] = {
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 1, 3, 0, {0x02, 0xbb, 0, 0, 0, 0}},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 16}, 1, 2, 0, {0x02, 0xbb, 0, 0, 0, 15}},
		/* A link-local GID contains the MAC of any vendor. */
		{{0xfe, 0x80, [8] = 0x50, 0x6b, 0x4b, 0xff, 0xfe, 1, 2, 3},
		 1,
		 1,
		 0,
		 {0x52, 0x6b, 0x4b, 1, 2, 3}},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 17}, 1, 3, -EHOSTUNREACH, {0}},
		{{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, 1, 3, -EHOSTUNREACH, {0}},
		{{0x20, 0x01, 0x0d, 0xb8, [15] = 1}, 1, 3, -EHOSTUNREACH, {0}},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 2, 3, -EINVAL, {0}},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 1, 4, -EINVAL, {0}},
		{{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}, 1, 99, -EINVAL, {0}},
		{{0}, 1, 3, -EINVAL, {0}},
	};
	struct mlx5_ctx *ib;
	struct mlx5_pd *pd;
	struct mlx5_av av;
	size_t i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		memset(&av, 0xee, sizeof(av));
		assert_int_equal(soft_cmd_if.av_resolve(env->ctx, env->pd, cases[i].port,
							cases[i].index, cases[i].dgid, &av),
				 cases[i].ret);
		if (cases[i].ret == 0)
			assert_memory_equal(av.dmac, cases[i].mac, 6);
		else
			assert_int_equal(av.dmac[0], 0xee);
	}
	OK(soft_cmd_if.open("soft1", "link=ib", &ib));
	OK(soft_cmd_if.pd_alloc(ib, &pd));
	assert_int_equal(soft_cmd_if.av_resolve(ib, pd, 1, 0, cases[0].dgid, &av), -EINVAL);
	assert_int_equal(soft_cmd_if.av_resolve(env->ctx, pd, 1, 3, cases[0].dgid, &av), -EINVAL);
	OK(soft_cmd_if.pd_free(ib, pd));
	OK(soft_cmd_if.close(ib));
}

TEST(test_numbers_are_given_until_exhausted)
{
	struct soft_ids ids;
	uint32_t id, i;

	assert_int_equal(soft_ids_init(&ids, 3, 70), 0);
	for (i = 3; i < 70; i++) {
		assert_int_equal(soft_ids_alloc(&ids, &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(soft_ids_alloc(&ids, &id), -ENOSPC);
	soft_ids_free(&ids, 66);
	soft_ids_free(&ids, 5);
	soft_ids_free(&ids, 64);
	/* Numbers are allocated in order after the last one, which was 69. */
	assert_int_equal(soft_ids_alloc(&ids, &id), 0);
	assert_int_equal(id, 5);
	soft_ids_free(&ids, 5);
	assert_int_equal(soft_ids_alloc(&ids, &id), 0);
	assert_int_equal(id, 64);
	assert_int_equal(soft_ids_alloc(&ids, &id), 0);
	assert_int_equal(id, 66);
	assert_int_equal(soft_ids_alloc(&ids, &id), 0);
	assert_int_equal(id, 5);
	assert_int_equal(soft_ids_alloc(&ids, &id), -ENOSPC);
	free(ids.used);
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_one_place_cannot_fill_the_log)
{
	uint32_t i, lines = 0;
	const char *at;

	for (i = 0; i < 10000; i++) {
		SOFT_LOG(ERR, "again %u", i);
		if (i % 50 == 0)
			for (at = env_log(env); (at = strstr(at, "again")) != NULL; at++)
				lines++;
	}
	/* The loop takes at most two seconds, unless the machine is suspended. */
	assert_in_range(lines, 50, 1000);
	SOFT_LOG(ERR, "something else");
	assert_non_null(strstr(env_log(env), "something else"));
	/* A line below the log level does not count. */
	rte_log_set_level((uint32_t)soft_logtype, RTE_LOG_CRIT);
	SOFT_LOG(ERR, "not this");
	rte_log_set_level((uint32_t)soft_logtype, RTE_LOG_NOTICE);
	assert_null(strstr(env_log(env), "not this"));
}

TEST_AS(log_setup, log_teardown, NULL, struct env, env, test_suppressed_lines_are_reported)
{
	bool reported = false;
	uint32_t i;

	for (i = 0; i <= 500; i++) {
		if (i == 500)
			usleep(1100000);
		SOFT_LOG(ERR, "over and over");
		/* If this process is stopped for a second, the report comes earlier. */
		reported = reported || strstr(env_log(env), "lines like the next one") != NULL;
	}
	assert_true(reported);
}

TEST_MAIN(0)
