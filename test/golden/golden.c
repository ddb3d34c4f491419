/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "golden.h"

#define LINE_MAX_BYTES (256u << 10)

void
golden_each(const char *name, unsigned int n, void (*fn)(const struct vec *v, void *arg), void *arg)
{
	char *line = malloc(LINE_MAX_BYTES);
	unsigned int lines = 0;
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", GOLDEN_DATA, name);
	f = fopen(path, "r");
	if (f == NULL)
		fail_msg("cannot open %s", path);
	assert_non_null(line);
	while (fgets(line, LINE_MAX_BYTES, f) != NULL) {
		json_error_t err;
		struct vec v;

		lines++;
		if (strchr(line, '\n') == NULL)
			fail_msg("%s:%u: line too long or without an end", name, lines);
		v.id = name;
		v.obj = json_loads(line, JSON_REJECT_DUPLICATES, &err);
		if (!json_is_object(v.obj))
			fail_msg("%s:%u: %s", name, lines,
				 v.obj == NULL ? err.text : "not an object");
		v.id = vec_str(&v, "id");
		fn(&v, arg);
		json_decref(v.obj);
	}
	fclose(f);
	free(line);
	if (lines != n)
		fail_msg("%s has %u lines, not %u", name, lines, n);
}

/* An array of vectors being filled. */
struct kept {
	struct vec *next;
	unsigned int room;
};

static void
keep(const struct vec *v, void *arg)
{
	struct kept *k = arg;

	assert_true(k->room > 0);
	json_incref(v->obj);
	*k->next++ = *v;
	k->room--;
}

void
golden_all(const char *name, struct vec *all, unsigned int n)
{
	struct kept k = {all, n};

	golden_each(name, n, keep, &k);
}

static json_t *
member(const struct vec *v, const char *key)
{
	json_t *j = json_object_get(v->obj, key);

	if (j == NULL)
		vec_fail(v, "no field \"%s\"", key);
	return j;
}

bool
vec_has(const struct vec *v, const char *key)
{
	return json_object_get(v->obj, key) != NULL;
}

void
vec_only(const struct vec *v, const char *const *keys)
{
	const char *key;
	json_t *value;

	json_object_foreach(v->obj, key, value)
	{
		const char *const *k = keys;

		while (*k != NULL && strcmp(*k, key) != 0)
			k++;
		if (*k == NULL)
			vec_fail(v, "field \"%s\" is not known to this test", key);
	}
}

const char *
vec_str(const struct vec *v, const char *key)
{
	json_t *j = member(v, key);

	if (!json_is_string(j))
		vec_fail(v, "\"%s\" is not a string", key);
	return json_string_value(j);
}

uint64_t
vec_num(const struct vec *v, const char *key)
{
	json_t *j = member(v, key);

	if (!json_is_integer(j) || json_integer_value(j) < 0)
		vec_fail(v, "\"%s\" is not a number", key);
	return (uint64_t)json_integer_value(j);
}

uint64_t
vec_hex(const struct vec *v, const char *key)
{
	const char *s = vec_str(v, key);
	char *end;
	uint64_t n;

	if (strncmp(s, "0x", 2) != 0 || s[2] == '\0')
		vec_fail(v, "\"%s\" is not 0x...", key);
	n = strtoull(s + 2, &end, 16);
	if (*end != '\0' || end - s > 18)
		vec_fail(v, "\"%s\" is not a hexadecimal number", key);
	return n;
}

bool
vec_flag(const struct vec *v, const char *key)
{
	json_t *j = json_object_get(v->obj, key);

	if (j == NULL)
		return false;
	if (!json_is_boolean(j))
		vec_fail(v, "\"%s\" is not true or false", key);
	return json_is_true(j);
}

static int
nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t
vec_bytes(const struct vec *v, const char *key, uint8_t *buf, size_t size)
{
	const char *s = vec_str(v, key);
	size_t len = strlen(s), i;

	if (len % 2 != 0 || len / 2 > size)
		vec_fail(v, "\"%s\" has %zu digits", key, len);
	for (i = 0; i < len / 2; i++) {
		int hi = nibble(s[2 * i]), lo = nibble(s[2 * i + 1]);

		if (hi < 0 || lo < 0)
			vec_fail(v, "\"%s\" is not hexadecimal", key);
		buf[i] = (uint8_t)(hi << 4 | lo);
	}
	return len / 2;
}

static json_t *
array(const struct vec *v, const char *key)
{
	json_t *j = member(v, key);

	if (!json_is_array(j))
		vec_fail(v, "\"%s\" is not an array", key);
	return j;
}

size_t
vec_array_len(const struct vec *v, const char *key)
{
	return json_array_size(array(v, key));
}

struct vec
vec_at(const struct vec *v, const char *key, size_t i)
{
	struct vec e = {json_array_get(array(v, key), i), v->id};

	if (!json_is_object(e.obj))
		vec_fail(v, "\"%s\"[%zu] is not an object", key, i);
	return e;
}

struct vec
vec_sub(const struct vec *v, const char *key)
{
	struct vec e = {member(v, key), v->id};

	if (!json_is_object(e.obj))
		vec_fail(v, "\"%s\" is not an object", key);
	return e;
}

bool
vec_lists(const struct vec *v, const char *key, const char *s)
{
	json_t *a = array(v, key), *e;
	bool found = false;
	size_t i;

	json_array_foreach(a, i, e)
	{
		if (!json_is_string(e))
			vec_fail(v, "\"%s\"[%zu] is not a string", key, i);
		found = found || strcmp(json_string_value(e), s) == 0;
	}
	return found;
}

void
vec_unwritten(const struct vec *v, uint8_t *mask, size_t size)
{
	json_t *a = array(v, "unwritten"), *pair;
	size_t i;

	memset(mask, 0, size);
	json_array_foreach(a, i, pair)
	{
		json_t *off = json_array_get(pair, 0), *n = json_array_get(pair, 1);
		size_t at = (size_t)json_integer_value(off), len = (size_t)json_integer_value(n);

		if (json_array_size(pair) != 2 || !json_is_integer(off) || !json_is_integer(n) ||
		    len > size || at > size - len)
			vec_fail(v, "\"unwritten\"[%zu] is not [offset, count] in the WQE", i);
		memset(mask + at, 1, len);
	}
}

void
vec_compare(const struct vec *v, const char *what, const uint8_t *got, const uint8_t *want,
	    const uint8_t *mask, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((mask == NULL || mask[i] == 0) && got[i] != want[i])
			vec_fail(v, "%s byte %zu is 0x%02x, not 0x%02x", what, i, got[i], want[i]);
	}
}

void
tally_add(struct tally *t, const char *fmt, ...)
{
	char name[64];
	unsigned int i;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	for (i = 0; i < t->rows && strcmp(t->row[i].name, name) != 0; i++)
		;
	if (i == t->rows) {
		assert_true(t->rows < sizeof(t->row) / sizeof(t->row[0]));
		memcpy(t->row[t->rows++].name, name, sizeof(name));
	}
	t->row[i].n++;
}

unsigned int
tally_get(const struct tally *t, const char *name)
{
	for (unsigned int i = 0; i < t->rows; i++) {
		if (strcmp(t->row[i].name, name) == 0)
			return t->row[i].n;
	}
	return 0;
}

void
tally_print(const struct tally *t, const char *title)
{
	for (unsigned int i = 0; i < t->rows; i++)
		printf("%s: %5u %s\n", title, t->row[i].n, t->row[i].name);
}
