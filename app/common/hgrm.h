/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes a histogram as a percentile distribution of HdrHistogram (.hgrm). */
#ifndef HGRM_H
#define HGRM_H

#include <stdio.h>

#include "histogram.h"

/*
 * Writes @h to @f in the text format of outputPercentileDistribution() (HdrHistogram,
 * AbstractHistogram.java) and hdr_percentiles_print() (HdrHistogram_c, hdr_histogram.c): lines of
 * value, percentile, number of values up to it and 1/(1-percentile), five for each halving of the
 * distance to 100 %. Three lines with mean, maximum and number of buckets follow. @scale is the
 * factor from values of @h to the unit of the file. Writes only the head and these lines if @h is
 * empty.
 */
void hgrm_write(FILE *f, const struct hist *h, double scale);

#endif
