/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Numbers on the command lines of the programs. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * "512", "4K", "1M", "0x40": the first @len characters of @s, all of them.
 * @return NULL, or what is wrong as a piece of a sentence; then *v is not to be used.
 */
const char *number_parse(const char *s, size_t len, uint64_t *v);

#endif
