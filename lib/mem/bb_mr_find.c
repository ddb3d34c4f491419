/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Looks up registrations by key and formats access rights as text, for logs and telemetry. */
#include <stdio.h>
#include <string.h>

#include "bb_mem_priv.h"

const struct bb_mr_priv *
bb_mr_by_key(const struct bb_dev *dev, uint32_t key)
{
	const struct bb_mr_priv *mr;
	const struct bb_pd *pd;

	if (key == 0 || key == BB_LKEY_NONE)
		return NULL;
	LIST_FOREACH(pd, &dev->pd_list, link)
		LIST_FOREACH(mr, &pd->mr_list, link)
			if (mr->pub.lkey == key || mr->pub.rkey == key)
				return mr;
	return NULL;
}

void
bb_access_text(uint32_t access, char *buf)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} rights[] = {
		{BB_ACCESS_LOCAL_WRITE, "local_write"},
		{BB_ACCESS_REMOTE_WRITE, "remote_write"},
		{BB_ACCESS_REMOTE_READ, "remote_read"},
		{BB_ACCESS_REMOTE_ATOMIC, "remote_atomic"},
		{BB_ACCESS_MW_BIND, "mw_bind"},
		{BB_ACCESS_ZERO_BASED, "zero_based"},
		{BB_ACCESS_ON_DEMAND, "on_demand"},
		{BB_ACCESS_HUGETLB, "hugetlb"},
		{BB_ACCESS_RELAXED_ORDERING, "relaxed_ordering"},
	};
	size_t at = 0, i;

	snprintf(buf, BB_ACCESS_TEXT_MAX, "none");
	for (i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if ((access & rights[i].bit) != 0)
			at += (size_t)snprintf(buf + at, BB_ACCESS_TEXT_MAX - at, "%s%s",
					       at != 0 ? "|" : "", rights[i].name);
}
BB_STATIC_ASSERT(sizeof("local_write|remote_write|remote_read|remote_atomic|mw_bind|zero_based|"
			"on_demand|hugetlb|relaxed_ordering") <= BB_ACCESS_TEXT_MAX,
		 "all of them fit");
