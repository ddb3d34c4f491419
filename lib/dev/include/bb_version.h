/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Version of Bluebell. The macros give the version of the headers at compile time. The functions
 * give the version of the library at run time.
 *
 * BB_LAYOUT_VERSION of bb_cq.h is a separate number. Headers and library of different versions work
 * together if their layout versions are equal.
 */
#ifndef BB_VERSION_H
#define BB_VERSION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Major number of the headers' version. */
#define BB_VERSION_MAJOR 0
/** Minor number of the headers' version. */
#define BB_VERSION_MINOR 1
/** Patch number of the headers' version. */
#define BB_VERSION_PATCH 0

/** A version as a number, to compare with BB_VERSION. Major, minor and patch are 0 to 255. */
#define BB_VERSION_NUM(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
/** The headers' version as a number. */
#define BB_VERSION BB_VERSION_NUM(BB_VERSION_MAJOR, BB_VERSION_MINOR, BB_VERSION_PATCH)

/** Helper of BB_VERSION_TEXT(): turns the numbers into a string. Use BB_VERSION_STRING. */
#define BB_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
/** Helper of BB_VERSION_STRING: expands its arguments first. Use BB_VERSION_STRING. */
#define BB_VERSION_TEXT(major, minor, patch) BB_VERSION_TEXT_(major, minor, patch)
/** The headers' version as a string: "0.1.0". */
#define BB_VERSION_STRING BB_VERSION_TEXT(BB_VERSION_MAJOR, BB_VERSION_MINOR, BB_VERSION_PATCH)

/**
 * Returns the library's version as a string: "0.1.0". Any thread may call this function, also
 * before rte_eal_init().
 */
const char *bb_version(void);

/**
 * Returns the library's version as a number, to compare with BB_VERSION_NUM(). Any thread may call
 * this function.
 */
uint32_t bb_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
