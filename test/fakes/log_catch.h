/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Captures the log for tests. */
#ifndef LOG_CATCH_H
#define LOG_CATCH_H

#include <stdbool.h>
#include <string.h>

#include <rte_log.h>

#include "bb_test.h"

/* Text that Bluebell logged since log_begin(). */
static FILE *log_file;
static char *log_text;
static size_t log_len;

static inline void
log_begin(void)
{
	log_file = open_memstream(&log_text, &log_len);
	assert_non_null(log_file);
	rte_openlog_stream(log_file);
}

static inline void
log_stop(void)
{
	rte_openlog_stream(NULL);
	fclose(log_file);
	free(log_text);
	log_text = NULL;
}

/* Stops the capture. Fails unless the log contains @want or, if @want is NULL, is empty. */
#define log_expect(want) log_expect_at(want, __FILE__, __LINE__)
static inline void
log_expect_at(const char *want, const char *file, int line)
{
	bool ok;

	fflush(log_file);
	ok = want != NULL ? strstr(log_text, want) != NULL : log_len == 0;
	if (!ok)
		print_error("log is \"%s\", wanted \"%s\"\n", log_text, want != NULL ? want : "");
	log_stop();
	_assert_true(ok, "log_expect()", file, line);
}

/* Stops the capture and returns the number of lines. Fails unless the log contains @want or NULL.
 */
static inline unsigned int
log_count(const char *want)
{
	unsigned int lines = 0;

	fflush(log_file);
	for (size_t i = 0; i < log_len; i++)
		lines += log_text[i] == '\n';
	if (want == NULL)
		log_stop();
	else
		log_expect(want);
	return lines;
}

/* Asserts that a call returns @ret_ and logs @want_, or nothing if @want_ is NULL. */
#define assert_logged(call_, ret_, want_)                                                          \
	do {                                                                                       \
		log_begin();                                                                       \
		assert_int_equal(call_, ret_);                                                     \
		log_expect(want_);                                                                 \
	} while (0)

#endif
