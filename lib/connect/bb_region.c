/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Named regions and their encoding. The functions have no side effects, and only bb_region_of()
 * reads an object (an MR).
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bb_bytes.h"
#include "bb_cm_msg.h"

#define REMOTE (BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC)

int
bb_region_of(const struct bb_mr *mr, const char *name, uint64_t off, uint64_t len,
	     struct bb_region *region)
{
	size_t n;

	if (mr == NULL || name == NULL || region == NULL || mr->rkey == 0 || off >= mr->len ||
	    len > mr->len - off)
		return -EINVAL;
	n = strnlen(name, BB_REGION_NAME);
	if (n == 0 || n == BB_REGION_NAME)
		return -EINVAL;
	memset(region, 0, sizeof(*region));
	memcpy(region->name, name, n);
	region->addr = mr->iova + off;
	region->len = len != 0 ? len : mr->len - off;
	region->rkey = mr->rkey;
	region->access = mr->access & REMOTE;
	return 0;
}

/* Returns true if the name is not empty and ends with at least one zero byte. */
static bool
name_ok(const char name[BB_REGION_NAME])
{
	size_t n = strnlen(name, BB_REGION_NAME);

	if (n == 0 || n == BB_REGION_NAME)
		return false;
	for (; n < BB_REGION_NAME; n++)
		if (name[n] != '\0')
			return false;
	return true;
}

const char *
bb_region_check(const struct bb_region *regions, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		const struct bb_region *r = &regions[i];

		if (!name_ok(r->name))
			return "has a region with an invalid name";
		if (r->len == 0 || r->len - 1 > UINT64_MAX - r->addr)
			return "has a region of length 0 or one that exceeds the address space";
		if ((r->access & ~REMOTE) != 0)
			return "has a region with unknown access rights";
		for (k = 0; k < i; k++)
			if (memcmp(r->name, regions[k].name, BB_REGION_NAME) == 0)
				return "has two regions with the same name";
	}
	return NULL;
}

void
bb_region_put(uint8_t *p, const struct bb_region *r)
{
	memcpy(p, r->name, BB_REGION_NAME);
	bb_put64(p + 16, r->addr);
	bb_put64(p + 24, r->len);
	bb_put32(p + 32, r->rkey);
	bb_put32(p + 36, r->access);
}

void
bb_region_get(const uint8_t *p, struct bb_region *r)
{
	memcpy(r->name, p, BB_REGION_NAME);
	r->addr = bb_get64(p + 16);
	r->len = bb_get64(p + 24);
	r->rkey = bb_get32(p + 32);
	r->access = bb_get32(p + 36);
}

int
bb_region_pack(const struct bb_region *regions, uint32_t n, void *buf, size_t len)
{
	uint32_t i;

	if ((regions == NULL || buf == NULL) && n != 0)
		return -EINVAL;
	if (n > BB_REGION_MAX || len < (size_t)n * BB_REGION_PACKED)
		return -ENOSPC;
	if (bb_region_check(regions, n) != NULL)
		return -EINVAL;
	for (i = 0; i < n; i++)
		bb_region_put((uint8_t *)buf + (size_t)i * BB_REGION_PACKED, &regions[i]);
	return (int)(n * BB_REGION_PACKED);
}

int
bb_region_unpack(const void *buf, size_t len, struct bb_region *regions, uint32_t max)
{
	struct bb_region all[BB_REGION_MAX];
	uint32_t i, n;

	if (len % BB_REGION_PACKED != 0 || (buf == NULL && len != 0))
		return -EINVAL;
	if (len / BB_REGION_PACKED > BB_REGION_MAX || len / BB_REGION_PACKED > max)
		return -ENOSPC;
	n = (uint32_t)(len / BB_REGION_PACKED);
	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		bb_region_get((const uint8_t *)buf + (size_t)i * BB_REGION_PACKED, &all[i]);
	if (bb_region_check(all, n) != NULL)
		return -EINVAL;
	memcpy(regions, all, n * sizeof(all[0]));
	return (int)n;
}
