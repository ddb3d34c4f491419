/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Log lines, and the lcore that owns a queue. */
#include <pthread.h>

#include <rte_lcore.h>

#include "../core/core_fixture.h"

TEST(test_long_line_is_cut_and_stays_one_line)
{
	char longer[2000];

	log_begin();
	bb_log(RTE_LOG_ERR, "number %d", 7);
	fflush(log_file);
	assert_string_equal(log_text, "BLUEBELL: number 7\n");
	log_stop();

	/* A text that is too long is cut and stays one line. */
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	log_begin();
	bb_log(RTE_LOG_ERR, "%s", longer);
	fflush(log_file);
	assert_in_range(log_len, 900, 1100);
	assert_int_equal(log_text[log_len - 1], '\n');
	log_stop();
}

TEST(test_level_selects_lines)
{
	log_begin();
	BB_LOG(DEBUG, "quiet");
	BB_LOG(INFO, "quiet");
	log_expect(NULL);
	assert_int_equal(rte_log_set_level_pattern("bluebell", RTE_LOG_DEBUG), 0);
	log_begin();
	BB_LOG(DEBUG, "loud");
	log_expect("loud");
	assert_int_equal(rte_log_set_level_pattern("bluebell", RTE_LOG_NOTICE), 0);
}

TEST(test_lcore_self_resolves_and_unused_is_refused)
{
	uint32_t lcore = 1234;

	assert_int_equal(bb_lcore_resolve(0, &lcore), 0);
	assert_int_equal(lcore, 0);
	lcore = 1234;
	assert_int_equal(bb_lcore_resolve(BB_LCORE_SELF, &lcore), 0);
	assert_int_equal(lcore, rte_lcore_id());
	lcore = 1234;
	assert_logged(bb_lcore_resolve(1, &lcore), -EINVAL, "lcore 1 is not in use");
	assert_int_equal(bb_lcore_resolve(RTE_MAX_LCORE, &lcore), -EINVAL);
	assert_int_equal(bb_lcore_resolve(UINT32_MAX - 1, &lcore), -EINVAL);
	assert_int_equal(lcore, 1234);
}

struct answer {
	int before, after;
	uint32_t lcore, id;
};

static void *
thread(void *arg)
{
	struct answer *a = arg;

	a->before = bb_lcore_resolve(BB_LCORE_SELF, &a->lcore);
	if (rte_thread_register() == 0) {
		a->after = bb_lcore_resolve(BB_LCORE_SELF, &a->lcore);
		a->id = rte_lcore_id();
		rte_thread_unregister();
	}
	return NULL;
}

/* A thread can own queues only after it is registered. */
TEST(test_unregistered_thread_owns_no_queue)
{
	struct answer a = {0, -1, 0, 0};
	pthread_t t;

	log_begin();
	assert_int_equal(pthread_create(&t, NULL, thread, &a), 0);
	pthread_join(t, NULL);
	log_expect("rte_thread_register()");
	assert_fields(a, before, -EINVAL, after, 0, lcore, a.id);
}

TEST_MAIN(fake_eal_init())
