/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the generator. */
#ifndef DIFF_GEN_H
#define DIFF_GEN_H

#include "diff.h"

static inline bool
odd(struct rng *r, uint32_t one_in)
{
	return rng_below(r, one_in) == 0;
}

static inline uint32_t
pick(struct rng *r, const uint32_t *list, uint32_t n)
{
	return list[rng_below(r, n)];
}
#define PICK(r, ...)                                                                               \
	pick(r, (const uint32_t[]){__VA_ARGS__},                                                   \
	     sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Requirements of a request on a region. */
struct need {
	uint32_t pd, rights;
	bool remote;
	bool recv; /* in the buffer for receives */
	bool missing;
};

/* ---- gen_mem.c */
uint32_t gen_access(struct rng *r);
uint32_t gen_len(struct rng *r);
void gen_mr(struct rng *r, struct step *s);
/* Picks a key and a range that mostly is in its memory; may reduce *len. */
void gen_range(struct rng *r, const struct model *m, struct need *need, uint32_t *len,
	       uint32_t *key, uint32_t *buf, uint32_t *off);
void gen_mw(struct rng *r, const struct model *m, struct step *s);
void gen_dm(struct rng *r, const struct model *m, struct step *s);
/* Each returns false if it lacks an object. */
bool gen_mkey(struct rng *r, const struct model *m, struct step *s);
bool gen_layout(struct rng *r, const struct model *m, uint32_t qp, struct step *s);
/* Returns false if there is nothing to bind; @s then creates it. */
bool gen_bind(struct rng *r, const struct model *m, uint32_t qp, struct step *s);
/* Returns whether @qp has bound a window that can be invalidated. */
bool gen_has_window(const struct model *m, const struct m_qp *qp);
/* Returns mostly the key of such a window. */
uint32_t gen_window(struct rng *r, const struct model *m, const struct m_qp *qp);

#endif
