/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Strings in JSON: the output is valid UTF-8 and one JSON string, whatever bytes the input has.
 */
#include <string.h>

#include "bb_test.h"
#include "json_string.h"

/* Encodes a code point by the definition of UTF-8. Returns the length in bytes. */
static unsigned int
encode(uint32_t c, unsigned char out[4])
{
	if (c < 0x80) {
		out[0] = (unsigned char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (unsigned char)(0xc0 | c >> 6);
		out[1] = (unsigned char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (unsigned char)(0xe0 | c >> 12);
		out[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (unsigned char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (unsigned char)(0xf0 | c >> 18);
	out[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (unsigned char)(0x80 | (c & 0x3f));
	return 4;
}

/*
 * Returns the length that the first byte announces, or 0 if the decoded code point encodes to
 * other bytes.
 */
static unsigned int
expected(const unsigned char b[4])
{
	const unsigned int len = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? b[0] : b[0] & (0x7f >> len);
	unsigned char again[4];

	for (unsigned int i = 1; i < len; i++)
		c = c << 6 | (b[i] & 0x3f);
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return encode(c, again) == len && memcmp(b, again, len) == 0 ? len : 0;
}

TEST(test_every_sequence_of_bytes_is_a_character_or_none)
{
	static const unsigned char last[] = {0, 0x7f, 0x80, 0xbf, 0xc0, 0xff};

	for (uint32_t i = 0x010000; i < 1u << 24; i++) {
		for (uint32_t k = 0; k < sizeof(last); k++) {
			const unsigned char b[5] = {(unsigned char)(i >> 16),
						    (unsigned char)(i >> 8), (unsigned char)i,
						    last[k], 0};

			if (utf8_length((const char *)b) == expected(b))
				continue;
			fail_msg("%02x %02x %02x %02x: %u, not %u", b[0], b[1], b[2], b[3],
				 utf8_length((const char *)b), expected(b));
		}
	}
}

static char *
written(const char *value)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	json_string(f, "k", value);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

TEST(test_text_is_valid_json)
{
	static const char *const pairs[][2] = {
		{"", "\"k\": \"\""},
		{"soft0", "\"k\": \"soft0\""},
		{"\"\\", "\"k\": \"\\\"\\\\\""},
		{"\t\n\x01\x1f", "\"k\": \"\\u0009\\u000a\\u0001\\u001f\""},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94",
		 "\"k\": \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94\""},
		{"a\xff"
		 "b",
		 "\"k\": \"a\\ufffd"
		 "b\""},
		{"\xe2\x82", "\"k\": \"\\ufffd\\ufffd\""},
		{"\xe2\"", "\"k\": \"\\ufffd\\\"\""},
		{"\xed\xa0\x80", "\"k\": \"\\ufffd\\ufffd\\ufffd\""},
		{"\xc0\xaf", "\"k\": \"\\ufffd\\ufffd\""},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *text = written(pairs[i][0]);

		assert_string_equal(text, pairs[i][1]);
		free(text);
	}
}

TEST_MAIN(0)
