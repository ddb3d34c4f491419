/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The GIDs that pairs use. Linux lists each address of a RoCE port twice, as v1 and as v2, and
 * first the default GID of the MAC. A run on index 0 alone would test RoCE v1, which few networks
 * use.
 */
#include "conform.h"

static const struct {
	enum bb_gid_type type;
	const char *name;
} kinds[] = {
	{BB_GID_ROCE_V2, "RoCE v2"},
	{BB_GID_ROCE_V1, "RoCE v1"},
	{BB_GID_IB, "InfiniBand"},
};

static bool
is_ipv4(const struct bb_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* Finds the next GID of @type from *@index on. */
static bool
next_gid(const struct side *s, enum bb_gid_type type, uint32_t *index, struct bb_gid *gid)
{
	/* An address vector has 8 bits for the index. */
	for (; *index < RTE_MIN(s->port.gids, 256u); (*index)++)
		if (bb_gid_query(s->dev, 1, *index, gid) == 0 && gid->type == type)
			return true;
	return false;
}

/* Chooses A's first GID of @type whose address family B has, and B's first one of that family. */
static bool
choose(struct fx *fx, enum bb_gid_type type)
{
	struct bb_gid a, b;

	for (uint32_t i = 0; next_gid(&fx->a, type, &i, &a); i++) {
		for (uint32_t k = 0; next_gid(&fx->b, type, &k, &b); k++) {
			if (is_ipv4(&a) != is_ipv4(&b))
				continue;
			fx->a.gid = (uint8_t)i;
			fx->b.gid = (uint8_t)k;
			return true;
		}
	}
	return false;
}

int
gids_choose(struct fx *fx, unsigned int nth)
{
	unsigned int i, n = 0;

	for (i = 0; i < RTE_DIM(kinds); i++) {
		if (!choose(fx, kinds[i].type) || n++ != nth)
			continue;
		fx->gid_kind = kinds[i].name;
		return 0;
	}
	fx->a.gid = fx->b.gid = 0;
	fx->gid_kind = "no GID";
	/* InfiniBand and iWARP need none. */
	return n == 0 && nth == 0 ? 0 : -ENOENT;
}
