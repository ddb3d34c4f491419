/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Tests on objects that are made before and checked after the body. */
#ifndef BB_TEST_ON_H
#define BB_TEST_ON_H

#include "bb_test.h"

/*
 * A test on an object of @type_. @start_ runs before the body and @end_ after it. They and the body
 * reach the object by the pointer @f.
 */
#define TEST_ON(setup_, teardown_, type_, start_, end_, name_)                                     \
	static void name_##_on(type_ *f);                                                          \
	TEST_WITH(setup_, teardown_, name_)                                                        \
	{                                                                                          \
		static type_ object;                                                               \
		type_ *const f = &object;                                                          \
                                                                                                   \
		start_;                                                                            \
		name_##_on(f);                                                                     \
		end_;                                                                              \
	}                                                                                          \
	static void name_##_on(type_ *f __attribute__((unused)))

/* The same without a fixture, and the body reaches the object by the pointer @var_. */
#define TEST_ON_AS(type_, var_, start_, end_, name_)                                               \
	static void name_##_on(type_ *var_);                                                       \
	TEST(name_)                                                                                \
	{                                                                                          \
		static type_ object;                                                               \
		type_ *const var_ = &object;                                                       \
                                                                                                   \
		start_;                                                                            \
		name_##_on(var_);                                                                  \
		end_;                                                                              \
	}                                                                                          \
	static void name_##_on(type_ *var_ __attribute__((unused)))

/* A test between @start_ and @end_, on objects of the file. */
#define TEST_BETWEEN(start_, end_, name_)                                                          \
	static void name_##_between(void);                                                         \
	TEST(name_)                                                                                \
	{                                                                                          \
		start_;                                                                            \
		name_##_between();                                                                 \
		end_;                                                                              \
	}                                                                                          \
	static void name_##_between(void)

#endif
