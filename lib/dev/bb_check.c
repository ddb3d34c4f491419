/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Argument checks that objects of all types share. */
#include <errno.h>
#include <string.h>

#include "bb_dev_priv.h"

int
bb_layout_check(uint32_t layout)
{
	if (layout == BB_LAYOUT_VERSION)
		return 0;
	BB_LOG(ERR,
	       "the program was built for queue layout %u, but the library has layout %u: "
	       "rebuild the program",
	       layout, BB_LAYOUT_VERSION);
	return -EPROTO;
}

int
bb_attr_size_check(uint32_t size, size_t expected, const char *init)
{
	if (size == expected)
		return 0;
	BB_LOG(ERR, "invalid attributes: their size field is %u, not %zu: set them up with %s()",
	       size, expected, init);
	return -EINVAL;
}

/*
 * Upper bound for the size of an output struct. A larger number cannot come from the inline
 * functions of the headers, so it is rejected.
 */
#define OUT_MAX 65536u

static int
out_copy(void *to, uint32_t room, const void *full, size_t size)
{
	const size_t n = room < size ? room : size;

	if (room < 2 * sizeof(room) || room > OUT_MAX) {
		BB_LOG(ERR,
		       "invalid output structure: its size field is %u (%zu in this library): "
		       "set it to the structure's sizeof",
		       room, size);
		return -EINVAL;
	}
	memcpy(to, full, n);
	memset((uint8_t *)to + n, 0, room - n);
	memcpy(to, &room, sizeof(room));
	return 0;
}

int
bb_out_at(void *out, unsigned int i, const void *full, size_t size)
{
	uint32_t room;

	memcpy(&room, out, sizeof(room));
	return out_copy((uint8_t *)out + (size_t)room * i, room, full, size);
}

int
bb_out(void *out, const void *full, size_t size)
{
	return bb_out_at(out, 0, full, size);
}

int
bb_limit_check(const struct bb_dev *dev, const char *name, uint32_t value, uint32_t min,
	       uint32_t max)
{
	if (value >= min && value <= max)
		return 0;
	BB_LOG(ERR, "%s: %s %u is out of range: give %u to %u", dev->name, name, value, min, max);
	return -EINVAL;
}
