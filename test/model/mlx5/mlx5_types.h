/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Pairs of QPs of any type, for the tests that use mlx5_env.h. */
#ifndef MLX5_TYPES_H
#define MLX5_TYPES_H

#include "mlx5_env.h"

#define TYPES_QKEY 0x11223344u
#define TYPES_GRH  40u

struct types_env {
	struct env e;
	struct bb_ah *to_a, *to_b; /* Address handles; UD only. */
};

/* Fills the path to side @to: its GID at index @gid, or its LID. */
static inline void
types_path(const struct side *to, uint32_t gid, struct bb_path *path)
{
	struct bb_port_attr port;
	struct bb_gid g;

	memset(path, 0, sizeof(*path));
	OK(bb_port_query(to->dev, 1, &port));
	OK(bb_gid_query(to->dev, 1, gid, &g));
	memcpy(path->dgid, g.raw, sizeof(g.raw));
	path->port = 1;
	path->sgid_index = (uint8_t)gid;
	path->dlid = port.lid;
}

/* Creates QPs of both sides. RC and UC are connected; UD is ready and has a handle of the peer. */
static inline void
types_start_on(struct types_env *t, const char *spec, enum bb_qp_type type)
{
	struct bb_path path;

	memset(t, 0, sizeof(*t));
	env_open_spec(&t->e, spec);
	t->e.init.type = type;
	env_qps(&t->e);
	if (type != BB_QPT_UD) {
		connect_pair(t->e.a.qp, t->e.b.qp, &t->e.attr);
		return;
	}
	OK(bb_qp_ud_up(t->e.a.qp, 1, 0, TYPES_QKEY, 1));
	OK(bb_qp_ud_up(t->e.b.qp, 1, 0, TYPES_QKEY, 2));
	types_path(&t->e.b, 1, &path);
	OK(bb_ah_create(t->e.a.pd, &path, &t->to_b));
	types_path(&t->e.a, 1, &path);
	OK(bb_ah_create(t->e.b.pd, &path, &t->to_a));
}

static inline void
types_start(struct types_env *t, enum bb_qp_type type)
{
	types_start_on(t, env_dev_a(), type);
}

static inline void
types_stop(struct types_env *t)
{
	if (t->to_a != NULL)
		OK(bb_ah_destroy(t->to_a));
	if (t->to_b != NULL)
		OK(bb_ah_destroy(t->to_b));
	env_stop(&t->e);
}

/* A test of a pair of QPs of a type; t is the struct types_env. */
#define TYPES_TEST(type, name)                                                                     \
	TEST_ON_AS(struct types_env, t, types_start(t, type), types_stop(t), name)

/* Returns the bytes in front of the data of a receive. */
static inline uint32_t
types_head(enum bb_qp_type type)
{
	return type == BB_QPT_UD ? TYPES_GRH : 0;
}

static inline void
types_receive(struct types_env *t, uint64_t wr_id, size_t at, uint32_t len)
{
	struct bb_sge sge = sge_of(&t->e.b, at, len);

	OK(bb_post_recv(t->e.b.qp, wr_id, &sge, 1));
	bb_qp_ring_recv(t->e.b.qp);
}

/*
 * Sends a datagram of @len bytes from a to b and expects its completion, whether it arrives or
 * not.
 */
static inline void
types_send_ud(struct types_env *t, const struct bb_ah *ah, uint32_t qpn, uint32_t qkey,
	      uint32_t len)
{
	struct bb_sge sge = sge_of(&t->e.a, 0, len);

	OK(bb_post_send_ud(t->e.a.qp, 9, &sge, 1, ah, qpn, qkey, BB_SEND_SIGNALED));
	env_done(&t->e, &t->e.a, 9, BB_WC_SUCCESS);
}

#endif
