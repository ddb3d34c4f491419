/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Recorded vectors: JSON lines, read strictly. A field that is missing, has another type or was
 * not asked for fails the test with the vector's id.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include "bb_test.h"

/* One vector, or an object inside one. */
struct vec {
	json_t *obj;
	const char *id;
};

/*
 * Calls @fn for every line of data file @name. Fails unless there are @n lines, so that a
 * truncated file is detected.
 */
void golden_each(const char *name, unsigned int n, void (*fn)(const struct vec *v, void *arg),
		 void *arg);
/* Reads all @n vectors into @all; the caller owns their objects. */
void golden_all(const char *name, struct vec *all, unsigned int n);

bool vec_has(const struct vec *v, const char *key);
/* Fails unless every key of the object is in @keys, which ends with NULL. */
void vec_only(const struct vec *v, const char *const *keys);
const char *vec_str(const struct vec *v, const char *key);
/* Returns a JSON number that is not negative. */
uint64_t vec_num(const struct vec *v, const char *key);
/* Returns the value of a string "0x...". */
uint64_t vec_hex(const struct vec *v, const char *key);
/* Returns false if the field is absent. */
bool vec_flag(const struct vec *v, const char *key);
/* Reads bytes written as hex digits. Returns their number. */
size_t vec_bytes(const struct vec *v, const char *key, uint8_t *buf, size_t size);
size_t vec_array_len(const struct vec *v, const char *key);
/* Returns element @i of an array of objects. */
struct vec vec_at(const struct vec *v, const char *key, size_t i);
struct vec vec_sub(const struct vec *v, const char *key);
/* Returns true if the array of strings @key contains @s. */
bool vec_lists(const struct vec *v, const char *key, const char *s);
/* Marks in @mask (1 per byte) the ranges of "unwritten": [[offset, count], ...]. */
void vec_unwritten(const struct vec *v, uint8_t *mask, size_t size);

#define vec_fail(v, fmt, ...) fail_msg("%s: " fmt, (v)->id, ##__VA_ARGS__)

/* Compares @n bytes except those that @mask marks; @mask may be NULL. */
void vec_compare(const struct vec *v, const char *what, const uint8_t *got, const uint8_t *want,
		 const uint8_t *mask, size_t n);

/* Counts vectors by kind; the vectors that a test does not cover are printed. */
struct tally {
	struct {
		char name[64];
		unsigned int n;
	} row[48];
	unsigned int rows;
};

void tally_add(struct tally *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned int tally_get(const struct tally *t, const char *name);
void tally_print(const struct tally *t, const char *title);

#endif
