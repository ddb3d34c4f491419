/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Numbers on the programs' command lines. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Parses a number such as "512", "4K", "1M" or "0x40". The number must fill the first @len
 * characters of @s. @return NULL and the number in *@v. On an error @return text that completes a
 * sentence about @s; *@v is then invalid.
 */
const char *number_parse(const char *s, size_t len, uint64_t *v);

#endif
