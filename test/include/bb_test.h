/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Tests of cmocka that register themselves, without a list of tests.
 *
 *     TEST(test_name)                              a test
 *     {
 *     	...
 *     }
 *     TEST_WITH(setup, teardown, test_name)        a test with a fixture, in *state
 *     TEST_STATE(setup, teardown, start, test_name)  the same, *state is start before setup
 *     TEST_MAIN(0)                                 main(), at the end of the file
 *
 * The tests of a file run in the order of the file. TEST_IF(condition, test_name) is a test that
 * exists only if the condition holds.
 */
#ifndef BB_TEST_H
#define BB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bb_fields.h"

#define BB_TEST_MAX 128

static struct CMUnitTest bb_tests[BB_TEST_MAX];
static bool (*bb_test_when[BB_TEST_MAX])(void);
static int bb_test_lines[BB_TEST_MAX], bb_test_count;

/* Called by constructors, in any order; sorts by line. */
static inline void
bb_test_add(int line, struct CMUnitTest test, bool (*when)(void))
{
	int i;

	if (bb_test_count == BB_TEST_MAX)
		abort();
	for (i = bb_test_count++; i > 0 && bb_test_lines[i - 1] > line; i--) {
		bb_tests[i] = bb_tests[i - 1];
		bb_test_lines[i] = bb_test_lines[i - 1];
		bb_test_when[i] = bb_test_when[i - 1];
	}
	bb_tests[i] = test;
	bb_test_when[i] = when;
	bb_test_lines[i] = line;
}

#define TEST_STATE(setup_, teardown_, state_, name_)                                               \
	static void name_(void **state);                                                           \
	static void __attribute__((constructor)) bb_test_add_##name_(void)                         \
	{                                                                                          \
		bb_test_add(__LINE__,                                                              \
			    (struct CMUnitTest){#name_, name_, setup_, teardown_, state_}, NULL);  \
	}                                                                                          \
	static void name_(void **state __attribute__((unused)))

/* As TEST_STATE; the body gets the fixture's *state as @type_ *@var_. */
#define TEST_AS(setup_, teardown_, start_, type_, var_, name_)                                     \
	static void name_##_as(type_ *var_);                                                       \
	TEST_STATE(setup_, teardown_, start_, name_)                                               \
	{                                                                                          \
		name_##_as(*state);                                                                \
	}                                                                                          \
	static void name_##_as(type_ *var_ __attribute__((unused)))

#define TEST_WITH(setup_, teardown_, name_) TEST_STATE(setup_, teardown_, NULL, name_)
#define TEST(name_)                         TEST_WITH(NULL, NULL, name_)

/*
 * A test that only some variants of the program have, as its arguments or its environment say. The
 * condition is evaluated in main(). Unlike skip(), it is for tests that have no meaning elsewhere.
 */
#define TEST_IF(when_, name_)                                                                      \
	static bool name_##_when(void)                                                             \
	{                                                                                          \
		return when_;                                                                      \
	}                                                                                          \
	static void name_(void **state);                                                           \
	static void __attribute__((constructor)) bb_test_add_##name_(void)                         \
	{                                                                                          \
		bb_test_add(__LINE__, (struct CMUnitTest){#name_, name_, NULL, NULL, NULL},        \
			    name_##_when);                                                         \
	}                                                                                          \
	static void name_(void **state __attribute__((unused)))

static inline void
bb_test_ok(long ret, const char *call, const char *file, int line)
{
	if (ret == 0)
		return;
	print_error("%s returned %ld (%s)\n", call, ret, strerror(ret < 0 ? (int)-ret : (int)ret));
	_fail(file, line);
}

/* Checks a call that returns 0 or -errno. */
#define OK(call) bb_test_ok((call), #call, __FILE__, __LINE__)

/*
 * Runs the tests of this file, with @setup before and @teardown after all. Returns the number of
 * failures.
 */
static inline int
bb_test_run(const char *file, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	int i, n = 0;

	for (i = 0; i < bb_test_count; i++)
		if (bb_test_when[i] == NULL || bb_test_when[i]())
			bb_tests[n++] = bb_tests[i];
	bb_test_count = n;
	if (n == 0)
		return 1;
	return _cmocka_run_group_tests(file, bb_tests, (size_t)bb_test_count, setup, teardown);
}

/*
 * @ready_: an expression, such as a call that starts EAL. If it is not 0 it is the exit status.
 */
#define TEST_MAIN(ready_) TEST_MAIN_WITH(NULL, NULL, ready_)
#define TEST_MAIN_WITH(setup_, teardown_, ready_)                                                  \
	int main(void)                                                                             \
	{                                                                                          \
		const int not_ready = (ready_);                                                    \
                                                                                                   \
		return not_ready != 0 ? not_ready : bb_test_run(__FILE__, setup_, teardown_);      \
	}

#endif
