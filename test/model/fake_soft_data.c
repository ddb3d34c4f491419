/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The data path, absent: engines that never run anything. */
#include <stdlib.h>

#include "soft.h"

struct soft_engine {
	int nothing;
};

struct soft_engine *
soft_engine_create(struct soft_dev *dev)
{
	(void)dev;
	return calloc(1, sizeof(struct soft_engine));
}

void
soft_engine_destroy(struct soft_engine *e)
{
	free(e);
}

int
soft_engine_start(struct soft_engine *e)
{
	(void)e;
	return 0;
}

void
soft_engine_stop(struct soft_engine *e)
{
	(void)e;
}

int
soft_engine_add_uar(struct soft_engine *e, struct soft_uar_page *uar)
{
	(void)e;
	(void)uar;
	return 0;
}

void
soft_engine_del_uar(struct soft_engine *e, struct soft_uar_page *uar)
{
	(void)e;
	(void)uar;
}

void
soft_engine_progress(void *engine)
{
	(void)engine;
}

void
soft_engine_lock(struct soft_engine *e)
{
	(void)e;
}

void
soft_engine_unlock(struct soft_engine *e)
{
	(void)e;
}

void
soft_quiesce(void)
{
}

int
soft_qp_attach(struct soft_qp *qp)
{
	(void)qp;
	return 0;
}

void
soft_qp_detach(struct soft_qp *qp)
{
	(void)qp;
}

void
soft_qp_state_changed(struct soft_qp *qp, uint32_t old_state)
{
	(void)qp;
	(void)old_state;
}

void
mlx5_cmd_register(const struct mlx5_cmd_if *cmd)
{
	(void)cmd;
}
