/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Latencies in cycles of the TSC, printed as times and written to result files. */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdio.h>

#include "histogram.h"

/* Room for the text of time_text(). */
#define TIME_TEXT 16

/* Returns the nanoseconds of @cycles. */
double latency_ns(uint64_t cycles);
/*
 * Writes @ns nanoseconds to @text with three digits and the unit that fits: 95 ns, 1.08 us, 19.2
 * ms, 3.00 s. Returns @text.
 */
const char *time_text(char text[TIME_TEXT], double ns);

/* Prints a line: @what, the smallest value, percentiles and the largest value. */
void latency_print(const char *what, const struct hist *h);
/* Prints two rows for each power of two of nanoseconds; a line with "..." for empty rows. */
void latency_print_histogram(const struct hist *h);

/* Writes percentiles and buckets in nanoseconds as the member @key of a JSON object. */
void latency_json(FILE *f, const char *key, const struct hist *h);
/* Writes @h to the file @path of option --hgrm, in microseconds. Returns 0 or -errno. */
int latency_hgrm(const char *path, const struct hist *h);

#endif
