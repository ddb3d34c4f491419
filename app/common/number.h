/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Numbers on the programs' command lines. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Parses a number such as "512", "4K", "1M" or "0x40", which must fill the first @len characters of
 * @s.
 * @return NULL, or the error as a part of a sentence; *v is then invalid.
 */
const char *number_parse(const char *s, size_t len, uint64_t *v);

#endif
