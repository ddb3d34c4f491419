/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Tests on an object that is made before and checked after the body. */
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

#endif
