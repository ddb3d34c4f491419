/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "bb_version.h"

const char *
bb_version(void)
{
	return BB_VERSION_STRING;
}

uint32_t
bb_version_number(void)
{
	return BB_VERSION;
}
