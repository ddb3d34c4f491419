/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Checks that every kind of object makes of what it is asked for. */
#include <errno.h>

#include <rte_log.h>

#include "bb_dev_priv.h"

int
bb_layout_check(uint32_t layout)
{
	if (layout == BB_LAYOUT_VERSION)
		return 0;
	BB_LOG(ERR, "the program was built for queue layout %u, the library has %u: rebuild it",
	       layout, BB_LAYOUT_VERSION);
	return -EPROTO;
}

int
bb_attr_size_check(uint32_t size, size_t expected, const char *init)
{
	if (size == expected)
		return 0;
	BB_LOG(ERR, "attributes of size %u, not %zu: set them up with %s()", size, expected, init);
	return -EINVAL;
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
