/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdio.h>

#include "bb_test.h"
#include "bb_version.h"

#if BB_VERSION < BB_VERSION_NUM(0, 1, 0) || BB_VERSION >= BB_VERSION_NUM(255, 255, 255)
#error "a version must compare in the preprocessor"
#endif

/* The macros, the library and meson.build have the same PROJECT_VERSION. */
TEST(test_header_and_library_have_the_version_of_the_project)
{
	unsigned int major, minor, patch;
	char rest;

	assert_string_equal(BB_VERSION_STRING, PROJECT_VERSION);
	assert_string_equal(bb_version(), PROJECT_VERSION);
	assert_int_equal(sscanf(PROJECT_VERSION "%", "%u.%u.%u%c", &major, &minor, &patch, &rest),
			 4);
	assert_int_equal(rest, '%');
	assert_int_equal(BB_VERSION, BB_VERSION_NUM(major, minor, patch));
	assert_int_equal(bb_version_number(), BB_VERSION);
}

TEST(test_versions_have_an_order)
{
	assert_true(BB_VERSION_NUM(0, 1, 255) < BB_VERSION_NUM(0, 2, 0));
	assert_true(BB_VERSION_NUM(0, 255, 255) < BB_VERSION_NUM(1, 0, 0));
}

TEST_MAIN(0)
